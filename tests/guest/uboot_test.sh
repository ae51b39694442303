# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# U-Boot's own driver, on two processors, each with one of the adapters: Debian's
# U-Boot for QEMU gets an address by DHCP and loads 20 MB by TFTP, and says their
# CRC-32.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"
. "$(atf_get_srcdir)/firmware.subr"

# uboot_test_case PROCESSOR
uboot_test_case()
{
	guest_case $1 "U-Boot on $1 gets an address, and 20 MB as they are" \
	    require.progs "dnsmasq unshare nsenter python3"
	eval "${1}_body() { setup; uboot_$1; uboot_loads; }"
}

uboot_test_case x86
uboot_test_case riscv64

# What differs: QEMU, its machine and accelerator, the image, and the adapter.
uboot_x86()
{
	accel=$(accel_options)
	adapter=e1000
	machine=pc,graphics=off
	image=$plain/deps/firmware/usr/lib/u-boot/qemu-x86/u-boot.rom
}

uboot_riscv64()
{
	accel="-accel tcg"
	adapter=e1000e
	QEMU=$plain/deps/bin/qemu-system-riscv64
	machine=virt
	image=$plain/deps/firmware/usr/lib/u-boot/qemu-riscv64/u-boot.bin
}

uboot_loads()
{
	local f crc

	for f in "$QEMU" "$image"; do
		[ -e "$f" ] || atf_skip "$f is missing; see make deps"
	done
	network
	served
	crc=$(crc32 tftp/data)
	valed_start -s 1,$adapter,tap0,path=vm1.sock,mac=$(mac 1) ||
	    atf_fail "valed does not start"
	tap_up tap0 10.0.0.1/24
	server 10.0.0.50,10.0.0.60 none
	uboot_start vm1
	# One frame at a time, each way: long on a busy machine.
	WAIT_S=1800
	wait_until "U-Boot" printed vm1 "^Net:" || uboot_failed "U-Boot: no start"
	wait_until "its prompt" prompt vm1 || uboot_failed "U-Boot: no prompt"
	echo 'setenv autoload no; dhcp && tftpboot $loadaddr data &&' \
	    'crc32 $loadaddr $filesize; echo finished' >&9
	wait_until "the checksum" printed vm1 "^finished" ||
	    uboot_failed "U-Boot: no end"
	console vm1 | grep -v '#####'
	console vm1 | grep -q "e1000: $(mac 1)" ||
	    wrong "U-Boot has found another adapter or address"
	grep "DHCPACK(tap0) .* $(mac 1)" server.log ||
	    wrong "no lease for $(mac 1)"
	console vm1 | grep "^Bytes transferred = 20971520 " ||
	    wrong "not all was loaded"
	console vm1 | grep "^crc32 for .* ==> $crc" || wrong "$crc was sent"
	finish
}

# uboot_start NAME: starts a machine with the image for its firmware.  The serial
# port's input comes from descriptor 9.
uboot_start()
{
	rm -f "$1.log" "$1.in"
	mkfifo "$1.in"
	exec 9<> "$1.in"
	"$QEMU" -nodefaults -no-user-config -display none \
	    -machine $machine,memory-backend=mem -bios "$image" \
	    $accel -m 128 -smp 1 \
	    -object memory-backend-memfd,id=mem,size=128M,share=on \
	    -chardev file,id=con,path="$1.log",input-path="$1.in" \
	    -serial chardev:con \
	    -device "$(valed_device "$1")" < /dev/null > "$1.qemu" 2>&1 9>&- &
	echo $! > "$1.pid"
}

# prompt NAME: interrupts what U-Boot does, and says whether it takes commands.
# If nobody was in time to keep it from booting, it first tries, from the network.
# It must have its console before: QEMU 11 does not go on with input that came
# when the guest reset the serial port.
prompt()
{
	vm_alive "$1" || return 0
	printf '\003' >&9
	console "$1" | tail -n 5
	console "$1" | tail -n 1 | grep -q "^=> "
}

uboot_failed()
{
	cat vm1.qemu valed.log server.log
	console vm1
	wrong "$*"
}
