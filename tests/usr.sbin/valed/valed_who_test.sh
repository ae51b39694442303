# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Who may do what on the control socket.  The cases are functions of who.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases who <<'END'
table: each cell of the table in valed(8) is so, for users and administrators
administrators: root, the user of valed and members of admin= are that
captures: a name that a program captures cannot become a port of another user
reloads: nor one of an adapter that a reload adds
attached: nor one of an interface that a file attaches
lists: a program sees the ports of its user, and their addresses
END
