# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The sources of libframe.  bhyve has no tunnels, and no adapter without a network.
#
#	FRAME_SRCS		all
#	FRAME_BHYVE_SRCS	what bhyve, its backends and the model use

FRAME_BHYVE_SRCS=	frame_cut.c frame_hdr.c frame_host.c frame_port.c \
			frame_vnet.c
FRAME_SRCS=		${FRAME_BHYVE_SRCS} frame_none.c frame_tunnel.c
