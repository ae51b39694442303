# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

HOSTIF_SRCS=	hostif.c hostif_drop.c hostif_ethtool.c hostif_link.c \
		hostif_open.c hostif_open_xdp.c hostif_packet.c hostif_ring.c \
		hostif_table.c hostif_why.c hostif_xdp.c
