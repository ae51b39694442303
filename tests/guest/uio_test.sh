# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# INTx as a program in the guest gets it from uio_pci_generic: the kernel claims
# the interrupt by the status register, and disables it by the command register.
# For a guest in the guest its vfio-pci does the same, by the same function.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

guest_case intx "Each assertion of INTx is one interrupt, which the kernel \
claims and disables by PCI configuration space"
intx_body()
{
	guests 1
	on vm1 'module uio_pci_generic &&
	    echo 8086 100f > /sys/bus/pci/drivers/uio_pci_generic/new_id &&
	    wait_until "the adapter" [ -c /dev/uio0 ] && uio 100'
	grep -x "reported 101" vm1.out || wrong "$(cat vm1.out)"
	# What the processor got: no more than the kernel claimed.
	on vm1 "awk '/uio_pci_generic/ { print \$2 }' /proc/interrupts" > count
	is "interrupts" "$(cat count)" -eq 101
	on vm1 "dmesg | grep -i 'nobody cared' || :" > cared
	[ ! -s cared ] || wrong "$(cat cared)"
	finish
}
