# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The sources of if_lem(4) in this directory, each in one list.
#
#	LEM_CORE_SRCS	the driver's core, which calls no kernel; also built
#			into tests and the micro-guest
#	LEM_SRCS	the driver for FreeBSD's kernel around it

LEM_CORE_SRCS=	lem_core.c lem_rx.c lem_spin.c lem_tx.c

LEM_SRCS=	if_lem.c if_lem_netmap.c if_lem_sysctl.c if_lem_txrx.c \
		if_lem_work.c
