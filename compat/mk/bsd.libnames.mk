# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Libraries for LIBADD.  Internal ones are static archives in this
# tree: ${LIBE82545}, ${LIBVALE}, ${LIBCOMPAT} name the files.  Any other name X
# becomes -lX.  The internal ones go into one link group, so their order does
# not matter; libcompat is always in it.  Sources find the headers of those that
# LIBADD names, and of those that these need, and no others.
#
# A new internal library is one line: its name and its directory.  LIBXNEEDS
# names those that come with it.  LIBINCS= are internal libraries whose headers
# a directory needs without linking them.

_INTERNALLIBS=	frame peer loop vfu hostif ctl e82545 vale valeport \
		vale_valed testbed bhyve compat
LIBFRAMEDIR=	lib/libframe
LIBPEERDIR=	lib/libpeer
LIBLOOPDIR=	lib/libloop
LIBVFUDIR=	lib/libvfu
LIBVFUNEEDS=	loop peer
LIBHOSTIFDIR=	lib/libhostif
LIBHOSTIFNEEDS=	frame peer
LIBCTLDIR=	lib/libctl
LIBCTLNEEDS=	frame hostif peer valeport
LIBE82545DIR=	usr.sbin/bhyve
LIBE82545NEEDS=	frame
LIBVALEDIR=	lib/libvale
LIBVALENEEDS=	frame
LIBVALEPORTDIR=	lib/libvaleport
LIBVALEPORTNEEDS= frame peer
LIBVALEPORTINC=	lib/libvaleport lib/libvale
LIBVALE_VALEDDIR= lib/libvale_valed
LIBVALE_VALEDNEEDS=
LIBVALE_VALEDINC= lib/libvale lib/libvaleport
LIBTESTBEDDIR=	tests/testbed
LIBTESTBEDNEEDS= e82545 frame loop vale
LIBBHYVEDIR=	tests/testbed/bhyve
LIBBHYVEINC=	tests/testbed/bhyve tests/testbed/bhyve/linux
LIBBHYVENEEDS=	e82545 frame loop vale
LIBCOMPATDIR=	compat

.for _l in ${_INTERNALLIBS}
LIB${_l:tu}=	${OBJTOP}/${LIB${_l:tu}DIR}/lib${_l}.a
LIB${_l:tu}INC?= ${LIB${_l:tu}DIR}
.endfor
# It is installed, and there is no switch beside it.
LIBVALE_VALED=	${OBJTOP}/${LIBVALE_VALEDDIR}/libvale.a

# Libraries with assertions are built twice: libX.a without, for what is
# installed and measured, and libX_invariants.a, with -DINVARIANTS, for tests.
# A sanitizer build has assertions throughout, and one of each; a build without
# tests has the first only.
.if (defined(SAN) && !empty(SAN)) || defined(WITHOUT_TESTS)
_INVARIANTSLIBS=
.else
_INVARIANTSLIBS= frame peer loop vfu hostif ctl e82545 vale valeport \
		vale_valed testbed bhyve
.endif
