# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Makes the target (all, clean, install, manlint) in the directories of SUBDIR,
# in parallel.  Directories after a .WAIT need those before it.  Directories
# without a Makefile are skipped.
#
#	SUBDIR=		compat lib/libvale .WAIT usr.sbin/valed .WAIT tests
#	.include <bsd.subdir.mk>

.if !target(__<bsd.subdir.mk>__)
__<bsd.subdir.mk>__:	.NOTMAIN

.include <bsd.init.mk>

.for _t in all clean install manlint
_sub.${_t}=
.for _d in ${SUBDIR}
.if ${_d} == ".WAIT"
_sub.${_t}+=	.WAIT
.elif exists(${.CURDIR}/${_d}/Makefile)
_sub.${_t}+=	_${_t}.${_d}
_${_t}.${_d}: .PHONY .MAKE
	@cd ${.CURDIR}/${_d} && ${MAKE} ${_t}
.endif
.endfor
${_t}: ${_sub.${_t}}
.endfor
.endif
