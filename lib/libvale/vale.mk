# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The sources of libvale, each in one list.  vale_fdb.c is in sys/dev/netmap,
# the others are here.
#
#	FRAME_SRCS		frames: no part of a switch
#	VALE_NETMAP_SRCS	libvale over FreeBSD's /dev/netmap
#	VALE_SWITCH_SRCS	libvale with the switch in the process

FRAME_SRCS=		frame_cut.c

VALE_NETMAP_SRCS=	vale_name.c vale_netmap.c

VALE_SWITCH_SRCS=	vale_deliver.c vale_fdb.c vale_forward.c vale_name.c \
			vale_region.c vale_rxq.c vale_switch.c
