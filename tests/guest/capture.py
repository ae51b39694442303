# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""capture.py plain INTERFACE: the interface's driver shall get and give frames as
they are on a wire: no checksum left to it, nothing to cut, VLAN tags in their place.
"""

import ctypes
import fcntl
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
# ETHTOOL_STXCSUM, _SSG, _STSO, _SGSO and _SFLAGS.
SET = (0x17, 0x19, 0x1f, 0x24, 0x26)
ETHTOOL_GSTRINGS = 0x1b
ETHTOOL_SFEATURES = 0x3b
ETH_SS_FEATURES = 4
FEATURES = 256


def ethtool(s, interface, *words, space=0):
    """The words, and the space after them, as the kernel leaves them."""
    value = bytearray(struct.pack("%dI" % len(words), *words) + bytes(space))
    address = (ctypes.c_char * len(value)).from_buffer(value)
    fcntl.ioctl(s, SIOCETHTOOL, struct.pack(
        "16sP16x", interface.encode(), ctypes.addressof(address)))
    return bytes(value)


def plain(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in SET:
            ethtool(s, interface, command, 0)
        # Those of 802.1ad have no command of their own.
        names = ethtool(s, interface, ETHTOOL_GSTRINGS, ETH_SS_FEATURES, 0,
                        space=32 * FEATURES)
        n, = struct.unpack_from("I", names, 8)
        names = [names[i:i + 32].split(b"\0")[0]
                 for i in range(12, 12 + 32 * n, 32)]
        blocks = (n + 31) // 32
        for name in b"rx-vlan-stag-hw-parse", b"tx-vlan-stag-hw-insert":
            words = [0] * (2 * blocks)
            i = names.index(name)
            words[i // 32 * 2] = 1 << i % 32
            ethtool(s, interface, ETHTOOL_SFEATURES, blocks, *words)


{"plain": plain}[sys.argv[1]](sys.argv[2])
