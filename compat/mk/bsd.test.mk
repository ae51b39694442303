# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Builds tests, and a Kyuafile that runs them in the directory of objects:
#
#	kyua test -k build/tests/Kyuafile
#
#	ATF_TESTS_C=	a b		programs, from SRCS.a or a.c, with
#					libatf-c; everything of bsd.prog.mk
#					(SRCS.a, CFLAGS.a, LIBADD.a) applies
#	ATF_TESTS_SH=	c		scripts, from c.sh
#	TEST_METADATA+=			for all programs of the directory,
#	TEST_METADATA.a+=		for one program, as on FreeBSD:
#		required_user="root", is_exclusive=true, timeout=600, ...
#	TSAN_TESTS=	a c		of those, the ones for SAN=thread: that
#					have threads
#	PROGS=		helper		built beside the tests, not run by Kyua
#	${PACKAGE}FILES+= data		copied, with their mode, to where
#					atf_get_srcdir finds them
#	TESTS_SUBDIRS=	x y		the Kyuafile includes those that exist
#	.include <bsd.test.mk>

# A compiler needs less than half of its time if it does not optimize.  The
# libraries that tests are linked with are optimized.
OPTFLAGS?=	-O0 -g

.include <bsd.init.mk>

_NOINSTALL=	yes
# Tests, and the libraries they are linked with, have assertions on.
_INVARIANTS=	yes
.if defined(SAN) && !empty(SAN:M*thread*)
.for _l in ATF_TESTS_C ATF_TESTS_SH
${_l}:=		${${_l}:@_t@${TSAN_TESTS:M${_t}}@}
.endfor
.endif
CFLAGS+=	-DINVARIANTS
PROGS+=		${ATF_TESTS_C}
.for _t in ${ATF_TESTS_C}
LIBADD.${_t}+=	atf-c
.if defined(SAN) && !empty(SAN)
SRCS.${_t}?=	${_t}.c
SRCS.${_t}+=	${SRCTOP}/compat/mk/atf_lsan.c
.endif
.endfor

.for _t in ${ATF_TESTS_SH}
${_t}: ${_t}.sh
	${_say} TEST ${RELDIR}/${.TARGET}
	${_q}{ echo '#! /usr/bin/env atf-sh'; cat ${.ALLSRC:[1]}; } \
	    > ${.TARGET}.tmp
	${_q}chmod +x ${.TARGET}.tmp && mv ${.TARGET}.tmp ${.TARGET}
all: ${_t}
CLEANFILES+=	${_t}
.endfor

.for _f in ${${PACKAGE}FILES}
${.OBJDIR}/${_f:T}: ${_f:M/*}${_f:N/*:@_n@${.CURDIR}/${_n}@}
	${_q}cp -p ${.ALLSRC:[1]} ${.TARGET}.tmp && touch ${.TARGET}.tmp && \
	    mv ${.TARGET}.tmp ${.TARGET}
all: ${.OBJDIR}/${_f:T}
CLEANFILES+=	${_f:T}
.endfor

# Kyua finds a directory's tests in its Kyuafile only.  That is written again
# when the Makefile changes or a subdirectory is added or removed.
_kyuasub=
.for _d in ${TESTS_SUBDIRS}
.if exists(${.CURDIR}/${_d}/Makefile)
_kyuasub+=	${_d}
.endif
.endfor
_kyuadirs=	.kyuadirs.${_kyuasub:ts_:S,/,-,g:hash}
${_kyuadirs}:
	${_q}rm -f .kyuadirs.*; : > ${.TARGET}

# Kyua's own, 300 s, leaves a test little more than one wait (wait_until.subr).
# Seconds.
_TIMEOUT=	900

.for _t in ${ATF_TESTS_C} ${ATF_TESTS_SH}
_kyuameta.${_t}=	, timeout=${_TIMEOUT} ${TEST_METADATA:@_v@, ${_v}@} \
			${TEST_METADATA.${_t}:@_v@, ${_v}@}
.endfor

Kyuafile: ${.CURDIR}/Makefile ${SRCTOP}/compat/mk/bsd.test.mk ${_kyuadirs}
	${_q}{ echo "syntax(2)"; echo; echo "test_suite('bhyve-vale')"; echo; \
	${ATF_TESTS_C:@_t@echo \
	    'atf_test_program{name="${_t}"${_kyuameta.${_t}}}';@} \
	${ATF_TESTS_SH:@_t@echo \
	    'atf_test_program{name="${_t}"${_kyuameta.${_t}}}';@} \
	${_kyuasub:@_d@echo 'include("${_d}/Kyuafile")';@} } > ${.TARGET}
all: Kyuafile
CLEANFILES+=	Kyuafile ${_kyuadirs}
SUBDIR+=	${TESTS_SUBDIRS}

.include <bsd.prog.mk>
