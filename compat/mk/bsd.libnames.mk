# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Libraries for LIBADD.  Internal ones are static archives in this
# tree: ${LIBE82545}, ${LIBVALE}, ${LIBCOMPAT} name the files.  Any other name X
# becomes -lX.  The internal ones go into one link group, so their order does
# not matter; libcompat is always in it.
#
# A new internal library is one line: its name and its directory.  LIBXNEEDS
# names those that come with it.

_INTERNALLIBS=	e82545 vale testbed compat
LIBE82545DIR=	usr.sbin/bhyve
LIBE82545NEEDS=	vale
LIBVALEDIR=	lib/libvale
LIBTESTBEDDIR=	lib/libtestbed
LIBCOMPATDIR=	compat

.for _l in ${_INTERNALLIBS}
LIB${_l:tu}=	${OBJTOP}/${LIB${_l:tu}DIR}/lib${_l}.a
.endfor

# Libraries with assertions are built twice: libX.a without, for what is
# installed and measured, and libX_invariants.a, with -DINVARIANTS, for tests.
# A sanitizer build has assertions throughout, and one of each.
.if defined(SAN) && !empty(SAN)
_INVARIANTSLIBS=
.else
_INVARIANTSLIBS= e82545 vale testbed
.endif
