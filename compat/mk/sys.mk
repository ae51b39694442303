# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The file that make(1) reads before a Makefile, for systems without BSD make
# files (Linux, with Debian's bmake).  From any directory of the tree,
#
#	bmake -m .../compat/mk [target]
#
# finds it, and GNUmakefile runs that for GNU make.  FreeBSD's make reads the
# same Makefiles.
#
# SRCTOP	top of this tree
# OBJTOP	build; build-san when SAN is set, build-tsan when that is
#		thread; all output is written there, none beside the sources
# SAN		sanitizers to build with, e.g. SAN=address,undefined
#
# The objects of a directory are in the directory of the same name under OBJTOP.
# It is created here, before make reads the Makefile.

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

# For the makes that this one runs.
MAKESYSPATH:=	${.PARSEDIR:tA}
.export MAKESYSPATH

.SUFFIXES:
.SUFFIXES:	.o .c .cc .S .sh

CC?=		clang
.if ${CC} == "cc"
CC=		clang
.endif
CXX?=		clang++
.if ${CXX} == "c++"
CXX=		clang++
.endif
AR?=		ar
ARFLAGS?=	rcs
INSTALL?=	install
MANDOC?=	mandoc
DTRACE?=	dtrace
ECHO?=		echo

# Show the name of a command; V=1 shows the command itself.
.if defined(V)
_say=		@:
_q=
.else
_say=		@printf '  %-6s %s\n'
_q=		@
.endif

# No line for every target, only the output of the commands.
.MAKE.JOB.PREFIX=

# Tests add their data files to ${PACKAGE}FILES.
PACKAGE?=	tests

# FreeBSD's sys.mk sets few flags.  Those of this project are in the top
# Makefile.inc.
CFLAGS?=
CXXFLAGS?=
LDFLAGS?=

# Delete the target of a command that fails.
.DELETE_ON_ERROR:
