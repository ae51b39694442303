# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Connections that valed refuses, or that take all of its descriptors.  The cases
# are functions of crowd.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases crowd <<'END'
refused_blocks: what a connection had that is closed holds up nobody
no_descriptors: when descriptors are out clients see the end, and administrators are served
unread: descriptors that a program does not receive are bounded
deaf: a program that reads no reply is dropped, with its port
no_passer: if the process that passes descriptors ends, only ports cannot be opened
END
