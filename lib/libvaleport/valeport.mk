# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The sources of libvaleport, each in one list.
#
#	VALEPORT_SWITCH_SRCS	ports of the switches of this process, whose
#				users are other processes, and pipes
#	VALEPORT_GRANT_SRCS	what clients of the control socket get of them
#	VALEPORT_CLIENT_SRCS	such a client
#	VALEPORT_VALED_SRCS	libvale over that

VALEPORT_SWITCH_SRCS=	vale_layout.c vale_pipe.c vale_shared.c vale_window.c

VALEPORT_GRANT_SRCS=	vale_grant.c vale_grant_null.c vale_grant_pipe.c \
			vale_grant_port.c vale_memory.c

VALEPORT_CLIENT_SRCS=	vale_client.c vale_remote.c

VALEPORT_VALED_SRCS=	vale_find.c vale_valed.c
