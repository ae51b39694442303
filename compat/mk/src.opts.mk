# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# FreeBSD's Makefiles read this for the MK_* options.
.include <bsd.own.mk>
