# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Broken and hostile clients: the others do not notice.  The cases are functions
# of hostile.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases hostile <<'END'
framing: messages of impossible size or type end the connection
payload_sizes: payloads of wrong size, and fields that disagree with them
version: proposals that are not JSON, too deep, or of another version
dma_ranges: memory that could vanish, bad ranges, overlaps, too many
memory_vanishes: pages punched out under the adapter, rings beyond memory
blocked_receiver: a client with events that block holds up no sender
interrupts: bad interrupt indexes, ranges, flags and descriptors
descriptors: more descriptors than allowed are closed, not kept
second_client: a second client of a VM is refused, the first stays
stalls: messages that are never finished hold up nobody
deaf: a client that reads no replies costs no memory, and loses none
flood: frames at full rate, and kill -9 in the middle
random_bytes: streams of random bytes
random_messages: well-framed messages of random content
END
