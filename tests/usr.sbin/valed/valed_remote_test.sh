# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Adapters whose port is on the switch of another valed.  The cases are functions
# of remote.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases remote <<'END'
frames: frames pass between processes, and a port is closed with its process
later: the switch may come later: until then there is no link
switch_restarts: the valed with the switch is restarted, and guests go on
switch_restarts_cut: a packet that is cut by halves then is forgotten
uplinks: those of a switch here that has the same name make no announcement
own_restarts: the valed of an adapter is restarted, and its guest goes on
reload: a reload adds, removes and moves such adapters
stops: a switch that does not run holds nobody up
hostile: a valed that answers with anything does no harm
confined: the process that serves a guest has no connection to the other valed
END
