# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The sources of libvaleport, each in one list.
#
#	VALEPORT_SERVER_SRCS	ports of the switches of this process, whose
#				users are other processes
#	VALEPORT_CLIENT_SRCS	such a user, over valed's control socket
#	VALEPORT_VALED_SRCS	libvale over that

VALEPORT_SERVER_SRCS=	vale_inbox.c vale_layout.c vale_pipe.c vale_shared.c

VALEPORT_CLIENT_SRCS=	vale_client.c vale_layout.c vale_pipe.c vale_remote.c \
			vale_window.c

VALEPORT_VALED_SRCS=	vale_find.c vale_valed.c
