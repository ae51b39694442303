# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Restarts of valed -R: its sockets and its clients.  The cases are functions of
# restart.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases restart <<'END'
crashes: a process that crashes is followed by another, with the same sockets
signals: a signal that comes while it starts does not end it
restarts: valectl restart does the same, unless the new process could not start
without: without -R valed is not restarted
went: a client that has closed its connection is not waited for
endless: a program that ends again and again before it serves is left alone
waits: if there are clients, they wait until it is mended
clients: a client goes on with the next process, after a restart or a crash
flood: frames come complete and in order while the process is killed again and again
ending: no frame of a client is lost when the process is slow to end on purpose
posted: descriptors that are posted when the process ends take frames of the port
hanging: an adapter that hangs keeps the others from their network for a moment only
counting: counters of adapters go on, with a client and without one
blamed: a client that ends it twice within a minute is disconnected, and stays so
closed: what clients, adapters and processes had that are no longer is closed
access: the control socket gets the group and mode of a new configuration
managed: a service manager keeps the descriptors, and clients, between two starts
killed: the same when the supervisor is killed
alone: one without -R follows one with, whose sockets are still in the manager
late: a process that does not end is not waited for, and a signal is not lost
ignored: SIGCHLD may be ignored at the start
numbers: an inherited socket keeps its number
quiet: processes that have nothing to do sleep
upgrades: clients go on with one new program after the other
hangs: a program that hangs when it is checked is not started
scarce: what fails for a moment at the next start is tried again
noted: a client that was accepted and not noted stays, whatever comes then
saved: a client goes on with what was saved in this form, and in no other
inherited: sockets that the service manager made are not taken for what is kept
no_program: if the program cannot be started again, the service manager has what is kept
watchdog: valed reports, and one that hangs is started again
settings: what valectl has changed is in force afterwards
counters: those of an adapter's port continue after a restart, not after a crash
programs: vale-cap and valectl go on with the next process
stored: settings in the store that are not valid are lost, after a line
told: what a process that a client has taken over tells the supervisor
interfaces: attached interfaces in the store that are not valid are lost, after a line
moves: an adapter that was moved goes on at its new port
moving: so it does at one of both if the process ends while it is moved
idle: an adapter whose guest does nothing takes few pages, kept or not, and after restarts
link: a guest sees the link of its port as it is after a restart
END
