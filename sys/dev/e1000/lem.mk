# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The core of the driver lem, which calls no kernel; also built into tests and
# the micro-guest.

LEM_CORE_SRCS=	lem_core.c lem_rx.c lem_spin.c lem_tx.c
