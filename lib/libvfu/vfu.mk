# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

VFU_SRCS=	vfu_device.c vfu_irq.c vfu_pci.c vfu_server.c vfu_state.c	\
		vfu_stream.c vfu_version.c
