# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# valed as a well-behaved vfio-user client sees it.  The cases are functions of
# protocol.py.

. "$(atf_get_srcdir)/valed.subr"

python_cases protocol <<'END'
version: versions and capabilities are negotiated
info: the device, its regions and its interrupts are described
config: PCI configuration space has the right values and writable bits
registers: registers are reached through both base address registers
default_mac: addresses not given are made up, each other, always the same
writes: posted, coalesced and multiple writes are done in order
fragments: messages may arrive in any pieces
descriptors: descriptors go to the message they came with
msi: MSI: one event for each assertion
intx: INTx: masked by itself, unmasked by command and by event
traffic: frames go from the memory of one VM to another, and are counted
one_copy: from guest to guest a frame is copied once, if a buffer is there
withheld: nobody brings frames to a VM without the bus or memory
withdrawn: memory goes, adapters are reset, clients leave while others send
mtu: frames longer than mtu= are dropped both ways
moderation: itr= puts off interrupts
csb: the CSB works through shared memory, and ends with its client
bus_master: without bus mastering memory is left alone
dma: ranges of memory come, go and come back elsewhere
reset: a reset clears the adapter and keeps memory and interrupts
reconnect: clients come and go, the adapter being new each time
END
