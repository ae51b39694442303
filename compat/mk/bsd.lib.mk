# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Builds a static library, lib${LIB}.a, a shared one, or both.
#
#	LIB=		vale
#	INTERNALLIB=			not installed
#	SHLIB_MAJOR=	1		also libvale.so.1, with a link libvale.so
#	SHLIB_NAME=	x.so		or, without LIB, only this
#	VERSION_MAP=	x.map		which symbols a shared library exports
#	INCS=		a.h b.h		installed in INCSDIR
#	SRCS=		a.c b.c		found through .PATH
#			x.d		a DTrace provider: generates x.h
#	CFLAGS+=, CFLAGS.a.c+=
#	MAN=		vale.3
#	.include <bsd.lib.mk>
#
# The name (LIBNAME, if it differs) must be in bsd.libnames.mk, so that LIBADD
# finds it.
#
#	LIBADD=		peer		internal libraries, of which it takes
#					the objects that it needs
#	PICSRCS=	a.c		what others take: lib${LIB}_pic.a has
#					them compiled for a shared library;
#					with SHLIB_MAJOR these are all

.include <bsd.init.mk>

LIBNAME?=	${LIB}

# The headers of the libraries that this one needs.
LIBINCS+=	${LIB${LIBNAME:tu}NEEDS} ${LIBADD}
.for _l in ${LIBADD}
_LIBARCHS+=	${LIB${_l:tu}}
_PICLIBS+=	${LIB${_l:tu}:R}_pic.a
_IARCHS+=	${LIB${_l:tu}:R}_invariants.a
.endfor
.for _l in ${LIBINCS:O:u}
CFLAGS+=	${LIB${_l:tu}INC:S,^,-I${SRCTOP}/,}
.endfor

SRCS?=		${LIB}.c
.if defined(LIB)
_LIBFILE=	lib${LIB}.a
OBJS=		${SRCS:M*.[cS]:T:R:S/$/.o/}
.endif

.if defined(LIB)
.for _s in ${SRCS:M*.[cS]}
${_s:T:R}.o: ${_s}
	${_say} CC ${RELDIR}/${.TARGET}
	${_q}${CC} ${CFLAGS} ${CFLAGS.${_s:T}} ${_sanflags} ${_depflags} \
	    -c ${.ALLSRC:[1]} -o ${.TARGET}
.dinclude "${.OBJDIR}/${_s:T:R}.d"
.endfor
.endif

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

.if defined(LIB)
.if defined(LIBADD)
_LIBOBJS=	lib${LIB}.o
lib${LIB}.o: ${OBJS} ${_LIBARCHS}
	${_q}${CC} ${LDFLAGS} -r -nostdlib ${OBJS} -Wl,--start-group \
	    ${_LIBARCHS} -Wl,--end-group -o ${.TARGET}
CLEANFILES+=	lib${LIB}.o
.else
_LIBOBJS=	${OBJS}
.endif
${_LIBFILE}: ${_LIBOBJS}
	${_say} AR ${RELDIR}/${.TARGET}
	${_q}rm -f ${.TARGET}
	${_q}${AR} ${ARFLAGS} ${.TARGET} ${.ALLSRC}

all: ${_LIBFILE}
CLEANFILES+=	${_LIBFILE} ${OBJS} ${OBJS:.o=.d}

.if !defined(INTERNALLIB)
install: _install.${_LIBFILE}
_install.${_LIBFILE}: ${_LIBFILE} .PHONY
	${INSTALL} -d ${DESTDIR}${LIBDIR}
	${INSTALL} -m 644 ${.ALLSRC:[1]} ${DESTDIR}${LIBDIR}/${_LIBFILE}
.endif
.endif

# Shared: never with sanitizers, whose programs bring them along, and with no
# compat library, whose objects are not for that.
.if defined(SHLIB_MAJOR)
PICSRCS?=	${SRCS:M*.c}
SHLIB_NAME?=	lib${LIB}.so.${SHLIB_MAJOR}
SHLIB_LINK?=	lib${LIB}.so
.endif
.for _s in ${PICSRCS} ${SHLIB_NAME:D${SRCS:M*.c}}
.if !defined(_pico.${_s})
_pico.${_s}=	yes
${_s:T:R}.pico: ${_s}
	${_say} CC ${RELDIR}/${.TARGET}
	${_q}${CC} ${CFLAGS} ${CFLAGS.${_s:T}} -fPIC -MMD -MP -MF ${.TARGET}.d \
	    -c ${.ALLSRC:[1]} -o ${.TARGET}
.dinclude "${.OBJDIR}/${_s:T:R}.pico.d"
CLEANFILES+=	${_s:T:R}.pico ${_s:T:R}.pico.d
.endif
.endfor
.if defined(PICSRCS)
lib${LIB}_pic.a: ${PICSRCS:T:R:S/$/.pico/}
	${_say} AR ${RELDIR}/${.TARGET}
	${_q}rm -f ${.TARGET}
	${_q}${AR} ${ARFLAGS} ${.TARGET} ${.ALLSRC}
all: lib${LIB}_pic.a
CLEANFILES+=	lib${LIB}_pic.a
.endif
.if defined(SHLIB_NAME)
_SOBJS=		${SRCS:M*.c:T:R:S/$/.pico/}
${SHLIB_NAME}: ${_SOBJS} ${_PICLIBS} ${VERSION_MAP}
	${_say} LD ${RELDIR}/${.TARGET}
	${_q}${CC} -shared ${LDFLAGS} -Wl,-z,defs \
	    -Wl,-soname,${SHLIB_NAME} ${VERSION_MAP:S/^/-Wl,--version-script=${.CURDIR}\//} \
	    ${_SOBJS} ${_PICLIBS} -Wl,--exclude-libs,ALL ${LDADD} -o ${.TARGET}
all: ${SHLIB_NAME}
CLEANFILES+=	${SHLIB_NAME}

install: _install.${SHLIB_NAME}
_install.${SHLIB_NAME}: ${SHLIB_NAME} .PHONY
	${INSTALL} -d ${DESTDIR}${SHLIBDIR}
	${INSTALL} -m 644 ${SHLIB_NAME} ${DESTDIR}${SHLIBDIR}/${SHLIB_NAME}
.if defined(SHLIB_LINK)
	ln -sf ${SHLIB_NAME} ${DESTDIR}${SHLIBDIR}/${SHLIB_LINK}
.endif
.endif

.for _i in ${INCS}
install: _install.${_i:T}
_install.${_i:T}: ${_i} .PHONY
	${INSTALL} -d ${DESTDIR}${INCSDIR}
	${INSTALL} -m 644 ${.ALLSRC:[1]} ${DESTDIR}${INCSDIR}/${_i:T}
.endfor

# Once more for tests, with assertions: see bsd.libnames.mk.
.if defined(LIB) && !empty(_INVARIANTSLIBS:M${LIBNAME})
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

.if defined(LIBADD)
lib${LIB}.inv.o: ${_IOBJS} ${_IARCHS}
	${_q}${CC} ${LDFLAGS} -r -nostdlib ${_IOBJS} -Wl,--start-group \
	    ${_IARCHS} -Wl,--end-group -o ${.TARGET}
_ILIBOBJS=	lib${LIB}.inv.o
CLEANFILES+=	lib${LIB}.inv.o
.else
_ILIBOBJS=	${_IOBJS} ${_IPROBES}
.endif
lib${LIB}_invariants.a: ${_ILIBOBJS}
	${_say} AR ${RELDIR}/${.TARGET}
	${_q}rm -f ${.TARGET}
	${_q}${AR} ${ARFLAGS} ${.TARGET} ${.ALLSRC}

all: lib${LIB}_invariants.a
CLEANFILES+=	lib${LIB}_invariants.a ${_IOBJS} ${_IOBJS:.o=.d}
.endif

.include <bsd.man.mk>
.include <bsd.subdir.mk>
.include <bsd.obj.mk>
