# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# valed with clients that follow the vfio-user protocol.  The cases are
# functions of protocol.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases protocol <<'END'
registers: both BARs reach the adapter
announced: the CSB adds a capability, and with csb=compat a subsystem ID
config_space: each byte of it, and what of it can be written
interrupts: MSI and INTx tell of the adapter, and INTx is unmasked
traffic: frames move between VMs and are counted
one_copy: a frame is copied once if the receiver has a buffer posted
no_bus_master_rx: a VM without bus mastering or memory receives no frames
live: -v prints what was counted and dropped since the line before
moderation: itr= and itr_min= delay interrupts
csb: the CSB works through shared memory until its client disconnects
bus_master: without bus mastering the adapter does not access memory
dma: ranges of memory are mapped and unmapped, and permit what they are for
unshared: one line tells of a guest whose memory is not shared
reset: a reset clears the adapter and keeps memory and interrupts
stopped: clients of a valed that is stopped and goes on lose nothing
tenants: whatever a client writes, the next one finds the adapter as a new one
END
