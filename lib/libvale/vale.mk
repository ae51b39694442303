# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The sources of libvale, each in one list.  vale_fdb.c, vale_guard.c,
# vale_rate.c, vale_share.c and vale_vlan.c are in sys/dev/netmap, the others are
# here.
#
#	VALE_NETMAP_SRCS	libvale over FreeBSD's /dev/netmap
#	VALE_FRAME_SRCS		a frame port over it
#	VALE_SWITCH_SRCS	libvale with the switch in the process
#	VALE_SETTING_SRCS	the settings, wherever the switch is

VALE_NETMAP_SRCS=	vale_name.c vale_netmap.c

VALE_FRAME_SRCS=	vale_frame_port.c

VALE_SETTING_SRCS=	vale_rate.c vale_setting.c vale_setting_text.c

VALE_SWITCH_SRCS=	vale_deliver.c vale_fdb.c vale_filter.c vale_forward.c \
			vale_guard.c vale_link.c vale_lookup.c vale_mirror.c \
			vale_name.c vale_offload.c vale_pair.c vale_region.c \
			vale_rules.c vale_rxq.c ${VALE_SETTING_SRCS}	\
			vale_setting_preset.c vale_setting_switch.c	\
			vale_share.c vale_switch.c vale_txq.c vale_view.c \
			vale_vlan.c
