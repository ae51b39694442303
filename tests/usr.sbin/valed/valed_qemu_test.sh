# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The adapters beside QEMU's own of the same kind.  The cases are functions of
# qemu.py.

. "$(atf_get_srcdir)/valed.subr"

QEMU=$(atf_get_srcdir)/../../../../build/deps/bin/qemu-system-x86_64
export QEMU

python_cases qemu <<'END'
registers_e1000: registers, words of the EEPROM and causes of interrupts
registers_e1000e: the same of an 82574L
sent_e1000: packets with checksums, segments and tags, and what counts them
sent_e1000e: the same of an 82574L
received_e1000: filters, tags, buffers and rings, and what counts frames
received_e1000e: the same of an 82574L, checksums, RSS, split descriptors
END
