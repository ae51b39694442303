# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# valed as a service manager starts it.  The cases are functions of
# activation.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases activation <<'END'
named: an adapter takes the socket with its name in LISTEN_FDNAMES
number: fd=n takes a descriptor, and valed leaves the name of the socket alone
credentials: what the options of an inherited socket add to messages are no descriptors
control_fd: the control socket may be inherited, too, and is left alone
notify: READY, STATUS and STOPPING reach the manager
watchdog: WATCHDOG is sent again and again, if the manager waits for it
journal: lines start with their priority if stderr is the journal
END
