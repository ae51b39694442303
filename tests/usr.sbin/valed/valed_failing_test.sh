# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# valed when calls of the C library, of the kernel or of netmap fail, once each.
# The cases are functions of failing.py.

. "$(atf_get_srcdir)/valed.subr"

VALED=$(atf_get_srcdir)/valed_failing

python_cases failing <<'END'
first: the first call of each place in valed fails
second: the second call of each place in valed fails
reload: a call of each place fails while adapters come and go
control: a call of each place fails that serves the control socket
END
