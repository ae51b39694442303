# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

CTL_SRCS=	ctl.c ctl_hostif.c ctl_names.c ctl_owner.c ctl_pass.c	\
		ctl_port.c ctl_reload.c ctl_switch.c ctl_who.c
