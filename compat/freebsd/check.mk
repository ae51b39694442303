# SPDX-License-Identifier: BSD-2-Clause
#
# Copyright (c) 2026 The bhyve-vale authors

# make freebsd: compile on Linux what is meant for FreeBSD's userland, against
# FreeBSD's own headers, which the zig compiler carries (deps/deps.sh fetches
# it).  Of compat/ only bhyve's internal API is seen: its headers are in
# FreeBSD's source tree, not among those it installs.

ZIG?=		${SRCTOP}/build/deps/zig/zig
FREEBSD_TARGET?= x86_64-freebsd

_out=		${SRCTOP}/build/freebsd

SRCS=		usr.sbin/bhyve/e82545.c			\
		usr.sbin/bhyve/e82545_filter.c		\
		usr.sbin/bhyve/e82545_intr.c		\
		usr.sbin/bhyve/e82545_nvm.c		\
		usr.sbin/bhyve/e82545_offload.c		\
		usr.sbin/bhyve/e82545_rx.c		\
		usr.sbin/bhyve/e82545_stat.c		\
		usr.sbin/bhyve/e82545_tx.c		\
		usr.sbin/bhyve/net_backend_vale.c	\
		usr.sbin/bhyve/net_batch.c		\
		usr.sbin/bhyve/pci_e82545.c		\
		lib/libvale/vale_netmap.c		\
		sys/dev/netmap/vale_name.c

CFLAGS=		-std=gnu11 -O2 -Wall -Wextra -Werror	\
		-I${SRCTOP}/usr.sbin/bhyve		\
		-I${SRCTOP}/lib/libvale			\
		-I${SRCTOP}/sys				\
		-I${SRCTOP}/compat/bhyve

.MAIN: freebsd
freebsd: .PHONY

.if !exists(${ZIG})
freebsd:
	@echo "${ZIG} is missing: run make deps" >&2; exit 69
.endif

.for _s in ${SRCS}
_o:=		${_out}/${_s:T:R}.o
${_o}: ${SRCTOP}/${_s} ${.PARSEDIR}/${.PARSEFILE}
	${_say} ZIGCC ${_s}
	@mkdir -p ${_out}
	${_q}ZIG_GLOBAL_CACHE_DIR=${_out}/.cache \
	    ZIG_LOCAL_CACHE_DIR=${_out}/.cache ${ZIG} cc -target ${FREEBSD_TARGET} ${CFLAGS} \
	    -MMD -MF ${.TARGET:R}.d -c ${.ALLSRC:[1]} -o ${.TARGET}
.-include "${_o:R}.d"
freebsd: ${_o}
.endfor
