# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# iPXE's own driver: the ROM that comes with QEMU boots over the network, from a
# DHCP and TFTP server in a network namespace, which valed reaches through a TAP
# interface.  A script that the ROM fetches loads 20 MB; iPXE checks the checksum
# of each datagram, which is of no adapter.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

. "$(atf_get_srcdir)/firmware.subr"

# ipxe_case ADAPTER NAME: NAME is what iPXE calls it.
ipxe_case()
{
	guest_case $1 "iPXE on $1 gets an address, and 20 MB without an error" \
	    require.progs "dnsmasq unshare nsenter"
	eval "${1}_body() { setup; ipxe_loads $1 $2; }"
}

ipxe_case e1000 82545em
ipxe_case e1000e 82574l

# ipxe_loads ADAPTER NAME
ipxe_loads()
{
	network
	served
	cat > tftp/script <<-EOT
	#!ipxe
	imgfetch data
	imgstat
	ifstat
	echo fetched
	EOT

	valed_start -s 1,$1,tap0,path=vm1.sock,mac=$(mac 1) ||
	    atf_fail "valed does not start"
	tap_up tap0 10.0.0.1/24
	server 10.0.0.50,10.0.0.60 script
	rom_valed vm1 pxe-$1.rom
	# One frame at a time, each way: long on a busy machine.
	WAIT_S=1800
	wait_until "the end" printed vm1 "^fetched|No bootable" ||
	    cat vm1.qemu valed.log
	console vm1
	cat server.log
	console vm1 | grep -q "^data : 20971520 bytes" ||
	    wrong "not all was loaded"
	console vm1 | grep -q "^net0: $(mac 1) using $2 " ||
	    wrong "iPXE has found another adapter or address"
	grep "DHCPACK(tap0) .* $(mac 1)" server.log ||
	    wrong "no lease for $(mac 1)"
	console vm1 | grep "TX:.* TXE:0 RX:.* RXE:0" || wrong "errors"
	finish
}

# rom_valed NAME ROM: starts a machine that has nothing to boot but the ROM.  What
# BIOS and ROM show goes to the serial port.
rom_valed()
{
	rm -f "$1.log"
	"$QEMU" -nodefaults -no-user-config -display none \
	    -machine pc,graphics=off,memory-backend=mem \
	    $(accel_options) -m 64 -smp 1 \
	    -object memory-backend-memfd,id=mem,size=64M,share=on \
	    -option-rom "$2" -serial file:"$1.log" \
	    -device "$(valed_device "$1")" < /dev/null > "$1.qemu" 2>&1 &
	echo $! > "$1.pid"
}
