# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# On Linux, GNUmakefile runs bmake with compat/mk, which replaces FreeBSD's
# bsd.*.mk.  On FreeBSD, make needs a source tree in SRCTOP=/usr/src.
#
#	all		build, on Linux into build/
#	check		build, run the tests, run them again with sanitizers,
#			check the man pages, compile the FreeBSD parts
#	check-all	the same with the groups of tests that check leaves out
#			since their files have not changed: tests/groups.sh
#	test		build, and run the tests once, without sanitizers
#	check-root	make TARGETS (test) in a clean root of another Debian
#			RELEASE (trixie or bookworm); needs root
#	check-arch	compile for ARCH (aarch64 or riscv64), and run the tests
#			that are programs under QEMU's user emulation
#	demo		measure two guests on the switch and on QEMU's own e1000
#	paper		measure what the papers did, and show both (PAPER=fig4,...
#			for some figures, ROUNDS=3)
#	bench		measure beside bare loops and other switches
#	fuzz		run each fuzzer for FUZZ_SECONDS (300)
#	fuzz-merge	save minimized corpora, with what the fuzzers found
#	mutants		see which mutants of FILES no test kills
#	soak		run everything at once for SOAK_SECONDS (600)
#	relacy		run the model checker for RELACY_EXECUTIONS (300000)
#	tsan		run the threaded tests under ThreadSanitizer
#	freebsd		compile the FreeBSD parts, on Linux
#	manlint		check the man pages
#	dist		make the archive of a release, in build/dist, and the
#			ports with its checksum
#	install		install; DESTDIR= and PREFIX= apply on Linux
#	clean		remove what was built; downloads stay in build/deps

# What is built for; TARGET_OS=FreeBSD on another system is a cross-build.
TARGET_OS?=	${.MAKE.OS}
.if ${TARGET_OS} == "Linux"
_LIBS=		compat lib/libframe lib/libpeer lib/libloop lib/libvfu	\
		lib/libhostif lib/libctl lib/libvale lib/libvaleport	\
		usr.sbin/bhyve
_TESTBED=	tests/testbed tests/testbed/bhyve
# ONLY_LIBS=yes: the internal libraries, and those of tests.
.if defined(ONLY_LIBS)
SUBDIR=		${_LIBS} ${_TESTBED}
.else
SUBDIR=		${_LIBS} .WAIT lib/libvale_valed .WAIT			\
		usr.sbin/valed usr.sbin/valectl lib/libnetmap_run	\
		usr.bin/netmap-run usr.bin/vale-cap			\
		share/bash-completion share/systemd share/sysusers
# WITHOUT_TESTS=yes, as on FreeBSD: what is installed, and no more.
.if !defined(WITHOUT_TESTS)
SUBDIR+=	${_TESTBED} sys/dev/e1000/linux bench/nettest .WAIT tests
.if !defined(SAN) || empty(SAN)
SUBDIR+=	bench share/dtrace
.endif
.endif
.endif
.else
SRCTOP?=	/usr/src
SYSDIR?=	${SRCTOP}/sys
# Only the source tree's makefiles know the libraries of LIBADD and of tests.
MAKESYSPATH?=	${SRCTOP}/share/mk
.export SRCTOP SYSDIR MAKESYSPATH
SUBDIR=		usr.sbin/bhyve share/dtrace share/man tests
SUBDIR+=	sys/modules/vale_learn
# Not if the kernel's if_em.c is one that em_pv.sh does not know, which says so.
_EM_PV!=	sh ${.CURDIR}/sys/dev/e1000/em_pv.sh -m			\
		    ${SYSDIR}/dev/e1000/if_em.c > /dev/null &&		\
		    echo sys/modules/em_pv || :
SUBDIR+=	${_EM_PV}
.endif

.if ${TARGET_OS} == "Linux"
_check=		sh ${SRCTOP}/tests/check.sh ${SRCTOP} "${MAKE}"
check: .PHONY
	@${_check} "${TEST_GROUPS:Uchanged}"

check-all: .PHONY
	@${_check} "${TEST_GROUPS:Uall}"

test: .PHONY
	@${_check} "${TEST_GROUPS:Uchanged}" plain

tsan: .PHONY
	@${_check} "" threads

FUZZ_SECONDS?=	300
.for _t in run merge
_fuzz.${_t}: .PHONY
	@cd ${SRCTOP} && ${MAKE} SAN=address,undefined all
	@FUZZ_SECONDS=${FUZZ_SECONDS} \
	    sh ${SRCTOP}/tests/fuzz/fuzz.sh ${_t} ${SRCTOP}
.endfor
fuzz: .PHONY _fuzz.run
fuzz-merge: .PHONY _fuzz.merge

# Debian's python3 has the bindings of libclang.
mutants: .PHONY
	@/usr/bin/python3 -B ${SRCTOP}/tests/mutants/mutants.py \
	    -o ${OBJTOP}/mutants ${MUTANTS_FLAGS} ${FILES}

SOAK_SECONDS?=	600
soak: .PHONY all .WAIT _soak
_soak: .PHONY
	@SOAK_SECONDS=${SOAK_SECONDS} kyua -v parallelism=2 test \
	    -k ${OBJTOP}/tests/Kyuafile soak

check-arch: .PHONY
	@sh ${SRCTOP}/tests/check_arch.sh ${SRCTOP} "${MAKE}" ${ARCH:Uaarch64}

RELACY_EXECUTIONS?= 300000
relacy: .PHONY all .WAIT _relacy
_relacy: .PHONY
	@RELACY_EXECUTIONS=${RELACY_EXECUTIONS} kyua test \
	    -k ${OBJTOP}/tests/Kyuafile relacy

demo: all .WAIT _demo
_demo: .PHONY
	@PAPER=demo PAPER_DIR=demo ROUNDS=1 \
	    sh ${SRCTOP}/bench/paper/paper.sh ${OBJTOP}

paper: all .WAIT _paper
_paper: .PHONY
	@sh ${SRCTOP}/bench/paper/paper.sh ${OBJTOP}

bench: all .WAIT _bench
_bench: .PHONY
	@sh ${SRCTOP}/bench/bench.sh ${OBJTOP}

freebsd: .PHONY
	@${MAKE} -f ${SRCTOP}/compat/freebsd/check.mk
.endif

.include <bsd.subdir.mk>
