# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Builds programs.
#
#	PROG=		valed		or PROGS= a b
#	SRCS=		a.c b.c		SRCS.prog= for one of several;
#					without either, prog.c
#	LIBADD=		e82545 pthread	LIBADD.prog=; see bsd.libnames.mk
#	CFLAGS+=, CFLAGS.prog+=, CFLAGS.a.c+=; for .cc CXXFLAGS, CXXFLAGS.prog
#	LDFLAGS+=, LDFLAGS.prog+=, LDADD+=, LDADD.prog+=, DPADD+=, DPADD.prog+=
#	SCRIPTS=	tool.sh		installed without the suffix
#	FILES=		data files, installed in FILESDIR
#	MAN=		valed.8		prog.8 is not assumed
#	BINDIR=		where it is installed
#	.include <bsd.prog.mk>
#
# If EMULATOR is set, each program becomes a script that runs it under this
# command: tests of another processor.
#
# Sources are found through .PATH.  Programs of one directory share the objects of
# a source (src.o), unless they compile it with different flags: the name has a
# hash of CFLAGS.prog, if there are any (src.hash.o).

.include <bsd.init.mk>

_PROGS=		${PROG} ${PROGS}
.if defined(EMULATOR)
_bin=		.bin
.endif

.for _p in ${_PROGS}
.if !defined(SRCS.${_p})
.if defined(PROG) && defined(SRCS)
SRCS.${_p}=	${SRCS}
.else
SRCS.${_p}=	${_p}.c
.endif
.endif

_all.${_p}:=	${LIBADD} ${LIBADD.${_p}}
.for _l in ${_all.${_p}}
_needs.${_p}+=	${LIB${_l:tu}NEEDS}
.endfor
_needs.${_p}:=	${_all.${_p}} ${_needs.${_p}}
LIBINCS+=	${_needs.${_p}}
.for _l in ${_needs.${_p}:O:u} compat
.if empty(_INTERNALLIBS:M${_l})
_libs.${_p}+=	-l${_l}
.elif exists(${SRCTOP}/${LIB${_l:tu}DIR}/Makefile)
.if defined(_INVARIANTS) && !empty(_INVARIANTSLIBS:M${_l})
_arch.${_p}+=	${LIB${_l:tu}:R}_invariants.a
.else
_arch.${_p}+=	${LIB${_l:tu}}
.endif
.endif
.endfor

.for _s in ${SRCS.${_p}:M*.[cS]}
_o:=		${_s:T:R}${CFLAGS.${_p}:D.${CFLAGS.${_p}:hash}}.o
_objs.${_p}:=	${_objs.${_p}} ${_o}
.if !defined(_obj.${_o})
_obj.${_o}=	yes
${_o}: ${_s}
	${_say} CC ${RELDIR}/${.TARGET}
	${_q}${CC} ${CFLAGS} ${CFLAGS.${_p}} ${CFLAGS.${_s:T}} ${_sanflags} \
	    ${_depflags} -c ${.ALLSRC:[1]} -o ${.TARGET}
.dinclude "${.OBJDIR}/${_o:R}.d"
.endif
.endfor

.for _s in ${SRCS.${_p}:M*.cc}
_o:=		${_s:T:R}${CXXFLAGS.${_p}:D.${CXXFLAGS.${_p}:hash}}.o
_objs.${_p}:=	${_objs.${_p}} ${_o}
.if !defined(_obj.${_o})
_obj.${_o}=	yes
${_o}: ${_s}
	${_say} CXX ${RELDIR}/${.TARGET}
	${_q}${CXX} ${CXXFLAGS} ${CXXFLAGS.${_p}} ${_sanflags} ${_depflags} \
	    -c ${.ALLSRC:[1]} -o ${.TARGET}
.dinclude "${.OBJDIR}/${_o:R}.d"
.endif
.endfor

${_p}: ${_objs.${_p}} ${_arch.${_p}} ${DPADD} ${DPADD.${_p}}
	${_say} LD ${RELDIR}/${.TARGET}
	${_q}${CC} ${_sanflags} ${LDFLAGS} ${LDFLAGS.${_p}} ${_objs.${_p}} \
	    -Wl,--start-group ${_arch.${_p}} -Wl,--end-group \
	    ${LDADD} ${LDADD.${_p}} ${_libs.${_p}} -o ${.TARGET}${_bin}
.if defined(EMULATOR)
	${_q}printf '#!/bin/sh\nexec %s "$$0${_bin}" "$$@"\n' '${EMULATOR}' > \
	    ${.TARGET} && chmod +x ${.TARGET}
.endif

all: ${_p}
CLEANFILES+=	${_p} ${_objs.${_p}} ${_objs.${_p}:.o=.d}

.if !defined(_NOINSTALL)
install: _install.${_p}
_install.${_p}: ${_p} .PHONY
	${INSTALL} -d ${DESTDIR}${BINDIR}
	${INSTALL} -m ${BINMODE} ${_p} ${DESTDIR}${BINDIR}/${_p}
.endif
.endfor

.for _l in ${LIBINCS:O:u}
.if !empty(_INTERNALLIBS:M${_l})
CFLAGS+=	${LIB${_l:tu}INC:S,^,-I${SRCTOP}/,}
.endif
.endfor

.for _f in ${SCRIPTS}
install: _install.${_f:T}
_install.${_f:T}: ${_f} .PHONY
	${INSTALL} -d ${DESTDIR}${BINDIR}
	${INSTALL} -m ${BINMODE} ${.ALLSRC:[1]} ${DESTDIR}${BINDIR}/${_f:T:R}
.endfor
.for _f in ${FILES}
install: _install.${_f:T}
_install.${_f:T}: ${_f} .PHONY
	${INSTALL} -d ${DESTDIR}${FILESDIR}
	${INSTALL} -m ${FILESMODE} ${.ALLSRC:[1]} ${DESTDIR}${FILESDIR}/${_f:T}
.endfor

.include <bsd.man.mk>
.include <bsd.subdir.mk>
.include <bsd.obj.mk>
