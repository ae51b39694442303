# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# What make(1) knows before it reads a Makefile, where the system's own BSD
# make files are missing (Linux, with Debian's bmake).  Found with
#
#	bmake -m .../compat/mk [target]
#
# from any directory of the tree; GNUmakefile does so for GNU make.  The
# Makefiles in the tree are those that FreeBSD's make reads too.
#
# SRCTOP	top of this tree
# OBJTOP	build; build-san when SAN is set, build-tsan when that is thread;
#		everything made goes there and nothing beside the sources
# SAN		sanitizers to build with, e.g. SAN=address,undefined
#
# Every directory's objects go to the directory of the same name under OBJTOP,
# which is made here, before its Makefile is read.

SRCTOP:=	${.PARSEDIR:tA:H:H}
.if defined(SAN) && !empty(SAN:M*thread*)
OBJTOP?=	${SRCTOP}/build-tsan
.elif defined(SAN) && !empty(SAN)
OBJTOP?=	${SRCTOP}/build-san
.else
OBJTOP?=	${SRCTOP}/build
.endif
RELDIR:=	${.CURDIR:tA:S,^${SRCTOP},,:S,^/,,}

.if ${.CURDIR:tA} == ${SRCTOP} || !empty(.CURDIR:tA:M${SRCTOP}/*)
.if empty(RELDIR)
_objdir:=	${OBJTOP}
.else
_objdir:=	${OBJTOP}/${RELDIR}
.endif
.if !exists(${_objdir}/)
_mkobjdir!=	mkdir -p ${_objdir}
.endif
.OBJDIR:	${_objdir}
.endif

# For the makes called from here.
MAKESYSPATH:=	${.PARSEDIR:tA}
.export MAKESYSPATH

.SUFFIXES:
.SUFFIXES:	.o .c .S .sh

CC?=		clang
.if ${CC} == "cc"
CC=		clang
.endif
AR?=		ar
ARFLAGS?=	rcs
INSTALL?=	install
MANDOC?=	mandoc
DTRACE?=	dtrace
ECHO?=		echo

# Build one command quietly, with its name; V=1 shows the command instead.
.if defined(V)
_say=		@:
_q=
.else
_say=		@printf '  %-6s %s\n'
_q=		@
.endif

# No line for every target, only the commands' own.
.MAKE.JOB.PREFIX=

# Tests add their data files to ${PACKAGE}FILES.
PACKAGE?=	tests

# The BSDs' sys.mk leaves these empty or nearly so; the flags of this project
# are in Makefile.inc at the top.
CFLAGS?=
LDFLAGS?=

# A failed command must not leave a half-made file behind.
.DELETE_ON_ERROR:
