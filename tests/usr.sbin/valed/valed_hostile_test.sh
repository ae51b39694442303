# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Broken and hostile clients, which must not affect other clients.  The cases
# are functions of hostile.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases hostile <<'END'
memory_limit: a client maps no more memory than mem= permits
memory_vanishes: valed survives discarded pages and rings beyond memory
pages_vanish: a client whose pages vanish under a copy is dropped, alone
blocked_receiver: an eventfd that blocks its VM does not block senders
interrupts: eventfds that are full, block or fire again and again do no harm
close_blocks: a descriptor whose close blocks does not keep the next client out
log: a client cannot fill the log
stalls: an incomplete message does not delay other VMs
END
