# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Faults that other e1000 emulations had, from a client.  The cases are
# functions of faults.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases faults <<'END'
amplification: one descriptor makes a bounded number of frames
turns: accesses to registers wait for one batch each way at most
own_bar: the registers of the adapter are no memory to it
loopback: a frame looped back is received once, and by nobody else
registers: odd accesses, and rings that move or have no descriptors
END
