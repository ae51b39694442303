# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# FreeBSD: what a program other than bhyve needs of bhyve, from the source tree
# SRCTOP and from here, to have network backends.  For tests and measurements:
#
#	BHYVE_SRCS		goes into SRCS
#	BHYVE_SWITCH_SRCS	the same, with the user-space switch in place of
#				the kernel's, and without events
#	BHYVE_FAKE_SRCS		the same, without a libvale
#	BHYVE_LIBADD		goes into LIBADD

_BHYVE_OURS:=	${.PARSEDIR:tA}
_BHYVE_TREE:=	${SRCTOP}/usr.sbin/bhyve
_BHYVE_TOP:=	${_BHYVE_OURS:H:H}

# The tree's directory last: it has files of the same names.
.PATH:		${_BHYVE_OURS} ${_BHYVE_TOP}/lib/libframe \
		${_BHYVE_TOP}/lib/libvale ${_BHYVE_TOP}/tests/testbed ${_BHYVE_TOP}/sys/dev/netmap \
		${_BHYVE_TREE}
CFLAGS+=	-I${_BHYVE_OURS} -I${_BHYVE_TOP}/lib/libframe \
		-I${_BHYVE_TOP}/lib/libvale \
		-I${_BHYVE_TOP}/tests/testbed -I${_BHYVE_TOP}/sys \
		-I${_BHYVE_TOP}/compat/kern -I${_BHYVE_TREE} \
		-I${_BHYVE_TREE}/${MACHINE_CPUARCH}

.include "e82545.mk"
.include "../../lib/libframe/frame.mk"
.include "../../lib/libvale/vale.mk"

# Of two backends for the same names, the first one linked serves.
_BHYVE_SRCS=	${NETBE_SRCS} bhyve_stub.c config.c iov.c net_backends.c \
		net_utils.c ${FRAME_BHYVE_SRCS} ${VALE_FRAME_SRCS}
BHYVE_SRCS=	${_BHYVE_SRCS} mevent.c ${VALE_NETMAP_SRCS}
BHYVE_SWITCH_SRCS= ${_BHYVE_SRCS} mevent_stub.c frame_tunnel.c \
		${VALE_SWITCH_SRCS}
BHYVE_FAKE_SRCS= ${_BHYVE_SRCS} mevent_stub.c vale_name.c
BHYVE_LIBADD=	md nv pthread
