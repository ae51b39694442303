# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# make freebsd: compile FreeBSD's sources on Linux.
#
# Userland is compiled with FreeBSD's own headers, which are part of the zig
# compiler (deps/deps.sh fetches it).  compat/ provides bhyve's internal headers
# only, because FreeBSD does not install them.
#
# So is the kernel module vale_learn.  FreeBSD installs most headers of its
# kernel: sys/, net/, netinet/, vm/, machine/.  The others have stand-ins in
# compat/freebsd/kernel: those that the kernel's build generates, Concurrency
# Kit's, and dev/netmap/netmap_{bdg,kern}.h and sys/abi_types.h.  The module's
# options are those of a build outside of a kernel's, and what defines probes must
# have them then.

ZIG?=		${SRCTOP}/build/deps/zig/zig
FREEBSD_TARGET?= x86_64-freebsd

_out=		${SRCTOP}/build/freebsd

SRCS!=		cd ${SRCTOP} && echo usr.sbin/bhyve/*.c \
		    tests/usr.sbin/bhyve/e1000_*.c			\
		    tests/usr.sbin/bhyve/e82545_*.c			\
		    tests/usr.sbin/bhyve/e82574_*.c tests/sys/net/vale/*.c \
		    tests/lib/libframe/*.c
.include "${SRCTOP}/lib/libframe/frame.mk"
SRCS+=		${FRAME_SRCS:S,^,lib/libframe/,}
.include "${SRCTOP}/lib/libvale/vale.mk"
SRCS+=		${VALE_FRAME_SRCS:S,^,lib/libvale/,}
SRCS+=		${VALE_NETMAP_SRCS:S,^,lib/libvale/,}
# What vale_learn has, too, is in sys/.
_BOTH=		vale_fdb.c vale_guard.c vale_rate.c vale_share.c vale_vlan.c
SRCS+=		${VALE_SWITCH_SRCS:${_BOTH:S,^,N,:ts:}:Nvale_name.c:S,^,lib/libvale/,}
SRCS+=		${_BOTH:S,^,sys/dev/netmap/,}
.include "${SRCTOP}/lib/libvaleport/valeport.mk"
SRCS+=		${VALEPORT_SWITCH_SRCS:S,^,lib/libvaleport/,}
.include "${SRCTOP}/tests/testbed/e82545_host.mk"
SRCS+=		${E82545_HOST_SRCS:S,^,tests/testbed/,}
SRCS+=		bench/backends/backends.c
SRCS+=		tests/testbed/backend.c			\
		tests/testbed/port.c			\
		tests/testbed/bhyve_stub.c			\
		tests/usr.sbin/bhyve/net_backend_vale_netmap_test.c \
		tests/usr.sbin/bhyve/pci_e82545_test.c		\
		tests/usr.sbin/bhyve/pci_e82574_test.c		\
		tests/usr.sbin/bhyve/pci_vm.c			\
		tests/usr.sbin/bhyve/see.c
SRCS+=		tests/testbed/aborts.c tests/testbed/fail_calls.c	\
		tests/compat/kern/systm_test.c
# lem_netmap.c needs libnetmap(3), which is not in zig.
_LEM!=		cd ${SRCTOP} && echo tests/sys/dev/e1000/*.c
SRCS+=		${_LEM:N*/lem_netmap.c:N*/em_pv*.c}
SRCS+=		tests/testbed/lem_guest.c			\
		tests/testbed/lem_ladder.c			\
		tests/testbed/mevent_stub.c			\
		tests/usr.sbin/bhyve/net_backend_vale_header_test.c \
		tests/usr.sbin/bhyve/net_backend_vale_ring_test.c \
		tests/usr.sbin/bhyve/net_port_test.c		\
		tests/usr.sbin/bhyve/vale_fake.c		\
		tests/usr.sbin/bhyve/vale_sender_test.c		\
		tests/usr.sbin/bhyve/kernel_fit_test.c

# The output of Linux's dtrace -h also compiles with FreeBSD's <sys/sdt.h>.
.for _d in usr.sbin/bhyve/e82545_provider.d lib/libvale/vale_provider.d
_PROBES+=	${_out}/${_d:T:R}.h
${_out}/${_d:T:R}.h: ${SRCTOP}/${_d}
	@mkdir -p ${_out}
	@${DTRACE} -h -s ${.ALLSRC} -o ${.TARGET}
.endfor

# libatf's headers are the same on FreeBSD; take them from Linux's.
_ATF=		${_out}/include

# Nothing runs: clang warns before it optimizes.  zig would add a sanitizer.
_opt=		-O0 -fno-sanitize=undefined

CFLAGS=		-std=gnu11 ${_opt} -Wall -Wextra -Werror	\
		-Wmissing-prototypes -Wmissing-variable-declarations \
		-Wvisibility				\
		-Wcast-align -Wcast-qual -Wshadow	\
		-DBHYVE_SNAPSHOT			\
		-I${SRCTOP}/usr.sbin/bhyve		\
		-I${SRCTOP}/lib/libframe		\
		-I${SRCTOP}/lib/libvale			\
		-I${SRCTOP}/lib/libpeer -I${SRCTOP}/lib/libvaleport \
		-I${SRCTOP}/tests/testbed		\
		-I${SRCTOP}/tests/usr.sbin/bhyve	\
		-I${SRCTOP}/sys				\
		-I${SRCTOP}/sys/dev/e1000		\
		-I${SRCTOP}/compat/kern -DINVARIANTS	\
		-I${SRCTOP}/tests/testbed/bhyve		\
		-I${_ATF} -I${_out}

# em_pv*.c need em(4)'s headers; em_pv_test has others.
KSRCS!=		cd ${SRCTOP} && echo sys/dev/e1000/lem_spin.c \
		    sys/dev/netmap/vale_learn*.c
KSRCS+=		${_BOTH:S,^,sys/dev/netmap/,}

# What defines probes.
_SDT=		sys/dev/netmap/vale_learn_mod.c

_cflags:=	${CFLAGS}
CFLAGS=
.include "${SRCTOP}/sys/modules/Makefile.inc"
_OPTS:=		${CFLAGS}
CFLAGS:=	${_cflags}

# The warnings are those of sys/conf/kern.mk.  The assertions are compiled, too.
KCFLAGS=	-std=gnu17 ${_opt} -Wall -Werror -Wcast-qual		\
		-Wmissing-prototypes -Wno-pointer-sign			\
		-Wpointer-arith -Wstrict-prototypes -Wundef		\
		-ffreestanding -mcmodel=kernel -mno-red-zone		\
		-D_KERNEL -DKLD_MODULE -DDEV_NETMAP ${_OPTS}		\
		-DINVARIANTS -DINVARIANT_SUPPORT			\
		-include ${SRCTOP}/compat/freebsd/kernel/opt_global.h	\
		-I${SRCTOP}/sys						\
		-isystem ${SRCTOP}/compat/freebsd/kernel

.MAIN: freebsd
freebsd: .PHONY

.if !exists(${ZIG})
freebsd:
	@echo "${ZIG} is missing: run make deps" >&2; exit 69
.endif

${_ATF}:
	@mkdir -p ${_ATF}
	@ln -sf /usr/include/atf-c.h /usr/include/atf-c ${_ATF}

.for _s _f in ${SRCS:@s@$s CFLAGS@} ${KSRCS:@s@$s KCFLAGS@}
_o:=		${_out}/${_f}/${_s:T:R}.o
${_o}: ${SRCTOP}/${_s} ${.PARSEDIR}/${.PARSEFILE} ${_ATF} ${_PROBES}
	${_say} ZIGCC ${_s}
	@mkdir -p ${.TARGET:H}
	${_q}ZIG_GLOBAL_CACHE_DIR=${_out}/.cache \
	    ZIG_LOCAL_CACHE_DIR=${_out}/.cache \
	    ${ZIG} cc -target ${FREEBSD_TARGET} \
	    ${${_f}} \
	    -MMD -MP -MF ${.TARGET:R}.dep -c ${.ALLSRC:[1]} -o ${.TARGET}
.if !empty(_SDT:M${_s})
	${_q}readelf -SW ${.TARGET} | grep -q set_sdt_probes_set || \
	    { echo "${_s}: no SDT probes" >&2; exit 1; }
.endif
.dinclude "${_o:R}.dep"
freebsd: ${_o}
.endfor
