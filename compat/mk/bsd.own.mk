# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Directories and modes for installing.  The user may set DESTDIR and PREFIX.
#
# BINDIR	programs	${PREFIX}/sbin for usr.sbin, else ${PREFIX}/bin
# MANDIR	man pages	${PREFIX}/share/man/man (the section is added)
# LIBDIR	libraries	${PREFIX}/lib; SHLIBDIR the shared ones
# INCSDIR	headers		${PREFIX}/include
# FILESDIR	FILES		${PREFIX}/share/bhyve-vale

.if !target(__<bsd.own.mk>__)
__<bsd.own.mk>__:	.NOTMAIN

# WITHOUT_DTRACE=yes builds without probes, as on FreeBSD.
.if defined(WITHOUT_DTRACE)
MK_DTRACE=	no
.endif
MK_DTRACE?=	yes

PREFIX?=	/usr/local
.if !empty(RELDIR:Musr.sbin/*)
BINDIR?=	${PREFIX}/sbin
.else
BINDIR?=	${PREFIX}/bin
.endif
MANDIR?=	${PREFIX}/share/man/man
LIBDIR?=	${PREFIX}/lib
SHLIBDIR?=	${LIBDIR}
INCSDIR?=	${PREFIX}/include
FILESDIR?=	${PREFIX}/share/bhyve-vale
BINMODE?=	755
FILESMODE?=	644
.endif
