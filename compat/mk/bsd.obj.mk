# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# clean: remove the files that this directory made in OBJTOP (CLEANFILES).

.if !target(__<bsd.obj.mk>__)
__<bsd.obj.mk>__:	.NOTMAIN

clean: _cleanfiles
_cleanfiles: .PHONY
.if !empty(CLEANFILES)
	@cd ${.OBJDIR} && rm -f ${CLEANFILES}
.endif
.endif
