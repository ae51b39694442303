# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Man pages: MAN= valed.8 e82545.4 ...
#
# install	install them in ${MANDIR}${section}
# manlint	check them with mandoc; a warning is an error

.if !target(__<bsd.man.mk>__)
__<bsd.man.mk>__:	.NOTMAIN

.include <bsd.init.mk>

.for _m in ${MAN}
install: _install.${_m:T}
_install.${_m:T}: ${_m} .PHONY
	${INSTALL} -d ${DESTDIR}${MANDIR}${_m:E}
	${INSTALL} -m 644 ${.ALLSRC:[1]} ${DESTDIR}${MANDIR}${_m:E}/${_m:T}

manlint: _manlint.${_m:T}
_manlint.${_m:T}: ${_m} .PHONY
	${_say} LINT ${RELDIR}/${_m:T}
	${_q}${MANDOC} -Tlint -Wwarning ${.ALLSRC:[1]}
.endfor
.endif
