# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# A valed that reads its configuration again.  The cases are functions of
# reload.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases reload <<'END'
add_remove: adapters come and go, and the others do not notice
changed: an adapter with another variable starts anew, on the same socket
in_place: settings change in place, each is said, and no client notices
moved: adapters exchange slots, ports and paths
ports: an adapter on another port, perhaps that of another one, keeps its client
no_room: one that cannot be moved stays where it was
moving: under traffic no frame comes twice, or before an earlier one
each: each variable is changed in place, or needs a confirmation
unconfirmed: what disconnects nobody needs none
wrong: a wrong file is one error with its line, and nothing changes
in_use: a socket in use is an error, and nothing changes
tap: a TAP interface cannot be added, and does not keep the others from it
no_tap: a TAP interface that cannot be opened does not keep the others down
no_port: so does a switch that has no port left
inherited: an inherited socket is taken, given up and taken again
killed: the sockets of added adapters are removed after SIGKILL, too
no_guard: without the guard adapters are served, and a reload is an error
guard_lost: a reload during which the guard ends is an error, and ends
guard_dies: if the guard ends in the midst of one, sockets stay, with a line
crashed: with -R, a crash in the midst of one leaves no socket of a removed adapter
settings_fail: if the switch refuses several, each is an error
another: one that is asked for in the midst of another follows
asked: so does one that is asked for while valed looks for an interface
told: a signal in the midst of one ends valed
again: many reloads leave no process, descriptor or mapping behind
reserved: ports of configured adapters belong to nobody else, whether they are there or not
between: nobody can take the port of an adapter that is replaced
taken: a port that a program has is not taken from it, and nothing is lost
functions: adapters of one slot are known by their functions
END
