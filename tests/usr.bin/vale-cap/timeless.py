# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""timeless.py FILE: print a capture of vale-cap(1) whose times are all 0."""

import struct
import sys

PACKET, STATISTICS = 6, 5

with open(sys.argv[1], "rb") as f:
    data = bytearray(f.read())
at = 0
while at < len(data):
    kind, size = struct.unpack_from("=II", data, at)
    if kind in (PACKET, STATISTICS):
        data[at + 12:at + 20] = bytes(8)
    at += size
sys.stdout.buffer.write(data)
