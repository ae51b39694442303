# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Broken and hostile clients, which must not affect other clients.  The cases
# are functions of hostile.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases hostile <<'END'
framing: a message of invalid size or type ends the connection
payload_sizes: payloads of wrong size, or with a wrong size field, are refused
version: version messages with bad JSON or another version are refused
dma_ranges: valed refuses memory that may vanish, bad ranges and too many
memory_limit: a client maps no more memory than mem= permits
memory_vanishes: valed survives discarded pages and rings beyond memory
pages_vanish: a client whose pages vanish under a copy is dropped, alone
blocked_receiver: an eventfd that blocks its VM does not block senders
interrupts: bad interrupt indexes, ranges, flags and descriptors are refused
descriptors: valed closes descriptors that exceed the limit
close_blocks: a descriptor whose close blocks does not keep the next client out
descriptors_apart: descriptors of messages that arrive in parts are not mixed up
log: a client cannot fill the log
second_client: a second client of a VM is refused, and the first stays
stalls: an incomplete message does not delay other VMs
unread_replies: valed buffers no replies for a client that does not read
flood: a client that is killed while it sends at full rate leaves nothing
random_bytes: valed survives streams of random bytes
random_messages: valed survives well-framed messages with random payloads
END
