# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Every bsd.*.mk includes this first.  It includes ../Makefile.inc, as on
# FreeBSD, and the top Makefile.inc, which has the project's flags, and adds the
# flags of the sanitizers.

.if !target(__<bsd.init.mk>__)
__<bsd.init.mk>__:	.NOTMAIN

.include <bsd.own.mk>
.if exists(${.CURDIR}/../Makefile.inc)
.include "${.CURDIR}/../Makefile.inc"
.endif
.if !target(__<Makefile.inc>__)
.include "${SRCTOP}/Makefile.inc"
.endif
.include <bsd.libnames.mk>

# Assertions are on in sanitizer builds, and in what bsd.test.mk builds.
.if defined(SAN) && !empty(SAN)
_sanflags=	-fsanitize=${SAN} -fno-sanitize-recover=all \
		-fno-omit-frame-pointer -DINVARIANTS -DSANITIZED
.else
_sanflags=
.endif

all:		.PHONY
.MAIN:		all
clean:		.PHONY
install:	.PHONY
manlint:	.PHONY
.endif
