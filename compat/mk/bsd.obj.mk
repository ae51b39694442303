# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# clean: removes what this directory made (CLEANFILES), from OBJTOP.

.if !target(__<bsd.obj.mk>__)
__<bsd.obj.mk>__:	.NOTMAIN

clean: _cleanfiles
_cleanfiles: .PHONY
.if !empty(CLEANFILES)
	@cd ${.OBJDIR} && rm -f ${CLEANFILES}
.endif
.endif
