# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Settings, reloads, restarts, crashes, ports of programs and guests' frames in
# random order.  The case is a function of orders.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases orders <<'END'
orders: frames arrive where a model says, whatever was done before
END
