# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# UEFI and GRUB: Debian's EDK II, with iPXE's EFI driver from the ROM that comes
# with QEMU, gets an address and loads GRUB by its own TCP/IP.  GRUB, by its own
# again, loads its configuration, a module, and 20 MB, and says their CRC-32.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

. "$(atf_get_srcdir)/firmware.subr"

# uefi_case ADAPTER
uefi_case()
{
	guest_case $1 "UEFI on $1 gets an address and loads GRUB; GRUB loads 20 MB \
as they are" require.progs "dnsmasq unshare nsenter python3"
	eval "${1}_body() { setup; uefi_loads $1; }"
}

uefi_case e1000
uefi_case e1000e

# uefi_loads ADAPTER
uefi_loads()
{
	local f firmware grub

	firmware=$plain/deps/firmware/usr
	grub=$firmware/lib/grub/x86_64-efi
	for f in "$firmware/share/ovmf/OVMF.fd" "$grub/hashsum.mod" \
	    "$grub/monolithic/grubnetx64.efi"; do
		[ -e "$f" ] || atf_skip "$f is missing; see make deps"
	done
	network
	served
	mkdir -p tftp/grub/x86_64-efi
	cp "$grub/monolithic/grubnetx64.efi" tftp/
	cp "$grub/hashsum.mod" tftp/grub/x86_64-efi/
	cat > tftp/grub/grub.cfg <<-EOT
	serial --unit=0 --speed=115200
	terminal_output serial
	insmod hashsum
	net_ls_addr
	hashsum --hash crc32 (tftp)/data
	halt
	EOT

	valed_start -s 1,$1,tap0,path=vm1.sock,mac=$(mac 1) ||
	    atf_fail "valed does not start"
	tap_up tap0 10.0.0.1/24
	server 10.0.0.50,10.0.0.60 grubnetx64.efi
	uefi_start vm1 efi-$1.rom
	# One frame at a time, each way: long on a busy machine.
	WAIT_S=1800
	wait_until "the checksum" printed vm1 "data\$|UEFI.* Shell" ||
	    cat vm1.qemu valed.log
	console vm1
	cat server.log
	console vm1 | grep -q "NBP file downloaded successfully" ||
	    wrong "UEFI does not load GRUB"
	grep "DHCPACK(tap0) .* $(mac 1)" server.log ||
	    wrong "no lease for $(mac 1)"
	console vm1 | grep "^efinet0.* $(mac 1) 10\.0\.0\.5[0-9]" ||
	    wrong "GRUB has another adapter or address"
	console vm1 | grep "^$(crc32 tftp/data)  (tftp)/data" ||
	    wrong "$(crc32 tftp/data) was sent"
	finish
}

# uefi_start NAME ROM: starts a machine that has nothing to boot but the network.  The
# processor has RDRAND, without which EDK II does not offer that.
uefi_start()
{
	rm -f "$1.log"
	"$QEMU" -nodefaults -no-user-config -display none -cpu max \
	    -machine pc,memory-backend=mem -bios "$firmware/share/ovmf/OVMF.fd" \
	    $(accel_options) -m 256 -smp 1 \
	    -object memory-backend-memfd,id=mem,size=256M,share=on \
	    -serial file:"$1.log" \
	    -device "$(valed_device "$1" "\"romfile\":\"$2\"")" \
	    < /dev/null > "$1.qemu" 2>&1 &
	echo $! > "$1.pid"
}
