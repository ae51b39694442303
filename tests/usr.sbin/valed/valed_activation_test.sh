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
other_pid: descriptors that are passed to another process are not taken
unfit: a descriptor that is not a listening stream socket is refused
control_fd: the control socket may be inherited, too, and is left alone
notify: READY, STATUS and STOPPING reach the manager
abstract: the socket of the manager may be an abstract one
watchdog: WATCHDOG is sent again and again, if the manager waits for it
no_manager: a manager that cannot be reached is an error
journal: lines start with their priority if stderr is the journal
END
