# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

PEER_SRCS=	peer_accept.c peer_close.c peer_fault.c peer_fds.c peer_keep.c \
		peer_log.c peer_mem.c peer_mem_file.c peer_mem_journal.c	\
		peer_mem_range.c peer_signal.c peer_watch.c
