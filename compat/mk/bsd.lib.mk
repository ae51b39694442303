# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Builds one static library, lib${LIB}.a.
#
#	LIB=		vale
#	INTERNALLIB=			not installed (all are internal here)
#	SRCS=		a.c b.c		found through .PATH
#			x.d		a DTrace provider: generates x.h
#	CFLAGS+=, CFLAGS.a.c+=
#	MAN=		vale.3
#	.include <bsd.lib.mk>
#
# The name must be in bsd.libnames.mk, so that LIBADD finds it.

.include <bsd.init.mk>

SRCS?=		${LIB}.c
_LIBFILE=	lib${LIB}.a
OBJS=		${SRCS:M*.[cS]:T:R:S/$/.o/}

.for _s in ${SRCS:M*.[cS]}
${_s:T:R}.o: ${_s}
	${_say} CC ${RELDIR}/${.TARGET}
	${_q}${CC} ${CFLAGS} ${CFLAGS.${_s:T}} ${_sanflags} ${_depflags} \
	    -c ${.ALLSRC:[1]} -o ${.TARGET}
.dinclude "${.OBJDIR}/${_s:T:R}.d"
.endfor

# The header, and the object with the semaphores that count a probe's tracers.
.for _s in ${SRCS:M*.d}
${_s:T:R}.h: ${_s}
	${_say} DTRACE ${RELDIR}/${.TARGET}
	${_q}${DTRACE} -h -s ${.ALLSRC} -o ${.TARGET}
${OBJS}: ${_s:T:R}.h
${_s:T:R}.o: ${_s}
	${_q}CC="${CC}" ${DTRACE} -G -s ${.ALLSRC} -o ${.TARGET}
CLEANFILES+=	${_s:T:R}.h
.endfor
.if !empty(SRCS:M*.d)
CFLAGS+=	-I${.OBJDIR}
OBJS+=		${SRCS:M*.d:T:R:S/$/.o/}
.endif

${_LIBFILE}: ${OBJS}
	${_say} AR ${RELDIR}/${.TARGET}
	${_q}rm -f ${.TARGET}
	${_q}${AR} ${ARFLAGS} ${.TARGET} ${OBJS}

all: ${_LIBFILE}
CLEANFILES+=	${_LIBFILE} ${OBJS} ${OBJS:.o=.d}

# Once more for tests, with assertions: see bsd.libnames.mk.
.if !empty(_INVARIANTSLIBS:M${LIB})
_IOBJS=		${SRCS:M*.[cS]:T:R:S/$/.inv.o/}
_IPROBES=
.for _s in ${SRCS:M*.[cS]}
${_s:T:R}.inv.o: ${_s}
	${_q}${CC} ${CFLAGS} ${CFLAGS.${_s:T}} -DINVARIANTS ${_depflags} \
	    -c ${.ALLSRC:[1]} -o ${.TARGET}
.-include "${.OBJDIR}/${_s:T:R}.inv.d"
.endfor

.for _s in ${SRCS:M*.d}
${_IOBJS}: ${_s:T:R}.h
_IPROBES+=	${_s:T:R}.o
.endfor

lib${LIB}_invariants.a: ${_IOBJS} ${_IPROBES}
	${_say} AR ${RELDIR}/${.TARGET}
	${_q}rm -f ${.TARGET}
	${_q}${AR} ${ARFLAGS} ${.TARGET} ${.ALLSRC}

all: lib${LIB}_invariants.a
CLEANFILES+=	lib${LIB}_invariants.a ${_IOBJS} ${_IOBJS:.o=.d}
.endif

.include <bsd.man.mk>
.include <bsd.subdir.mk>
.include <bsd.obj.mk>
