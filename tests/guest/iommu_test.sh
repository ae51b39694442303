# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Memory of stock machines that is not one shared range: behind an IOMMU, in
# blocks that come and go, or not shared at all.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

guest_case strict "Guests whose IOMMU maps each buffer for its time in use, with \
each driver"
strict_body()
{
	local before guest

	DRIVERS="e1000 e1000e lem,csb=on"
	setup
	valed_start -s "1,$(adapter vm1)" -s "2,$(adapter vm2)" \
	    -s "3,$(adapter vm3)" ||
	    atf_fail "valed does not start"
	APPEND="intel_iommu=on iommu.strict=1"
	"$QEMU" -device help | grep -q '"intel-iommu"' ||
	    atf_skip "QEMU has no intel-iommu"
	for guest in vm1 vm2 vm3; do
		vm_start $guest -machine q35 \
		    -device intel-iommu,caching-mode=on \
		    -device "$(valed_device $guest)"
	done
	vm_wait vm1 vm2 vm3 || {
		cat vm?.qemu vm?.log valed.log
		atf_fail "the guests do not start"
	}
	up 1 2 3
	for guest in vm1 vm2 vm3; do
		on $guest "dmesg | grep 'invalidation policy: strict mode'
		    cat /sys/class/net/eth0/device/iommu_group/type"
		[ "$(tail -n 1 $guest.out)" = DMA ] || atf_skip \
		    "the kernel does not use the IOMMU: $(cat $guest.out)"
	done
	pings vm1 10.0.0.2 -s 1400
	PINGS=3 pings vm1 10.0.0.2 -s 20000
	PINGS=3 pings vm2 10.0.0.1 -s 20000
	PINGS=3 pings vm3 10.0.0.1 -s 20000
	each_pair stream 2000000
	# Buffers and rings of several pages; of e1000e, four buffers of a
	# descriptor.  The driver refuses a ring in which there is a multiple of
	# 64 KB.
	for guest in vm1 vm2 vm3; do
		on $guest "for n in 2048 1024 768 512 384; do
		        ethtool -G eth0 rx \$n tx \$n && break
		    done && ethtool -g eth0 && ip link set eth0 mtu 9000"
	done
	pings vm1 10.0.0.2 -s 8000
	each_pair stream 1000000
	unsent
	for guest in vm1 vm2 vm3; do
		# Each page that was sent or received into was mapped.
		some $guest dma_maps
		is "$guest: ranges mapped, and frames" \
		    "$(counter $guest dma_maps)" -gt \
		    "$(counter $guest tx_frames)"
		some $guest dma_unmaps
		echo "$guest: rings joined: $(counter $guest dma_joins)"
		for c in dma_refused tx_bad_addr rx_bad_addr gone; do
			is "$guest: $c" "$(counter $guest $c)" -eq 0
		done
		[ ! -s $guest.qemu ] || atf_fail "QEMU: $(cat $guest.qemu)"
	done
	finish
}

# stream BYTES FROM N: a TCP stream to the Nth guest.
stream()
{
	transfer "$2" "vm$3" "10.0.0.$3" "$1"
}

# mapped GUEST: prints how many ranges are mapped.
mapped()
{
	valed_counters || atf_fail "not counted"
	echo $(($(counter "$1" dma_maps) - $(counter "$1" dma_unmaps)))
}

# unsent: packets that lem cannot queue leave nothing mapped.
unsent()
{
	local before

	drained
	before=$(mapped vm3)
	on vm3 "trouble fail lem_tx 105 200
	    wire udp-send 10.0.0.1 9 1000 250 &&
	    grep '^0 ' /sys/module/trouble/parameters/fail"
	drained
	is "mapped" "$(mapped vm3)" -lt $((before + 100))
}

# running NAME: whether QEMU has made the machine, which waits for its start.
running()
{
	vm_alive "$1" || return 0
	qmp "$1" '{"execute": "query-status"}'
}

guest_case blocks "QEMU starts with 64 GB of virtio-mem beside the adapter"
blocks_body()
{
	setup
	valed_start -s 1,e1000,vale0:vm1,path=vm1.sock ||
	    atf_fail "valed does not start"
	"$QEMU" -device help | grep -q '"virtio-mem-pci"' ||
	    atf_skip "QEMU has no virtio-mem"
	vm_booted() { :; }
	vm_start vm1 -S -m "$GUEST_MB,maxmem=100G" \
	    -qmp unix:vm1.qmp,server=on,wait=off \
	    -object memory-backend-memfd,id=blocks,size=64G,reserve=off \
	    -device virtio-mem-pci,memdev=blocks,requested-size=0 \
	    -device "$(valed_device vm1)"
	wait_must "the machine" running vm1
	cat vm1.qemu
	vm_alive vm1 || atf_fail "QEMU does not start"
	[ ! -s vm1.qemu ] || atf_fail "QEMU complains"
	some vm1 dma_maps
	is dma_refused "$(counter vm1 dma_refused)" -eq 0
}

guest_case unshared "QEMU does not start with memory that it does not share"
unshared_body()
{
	local kind

	setup
	valed_start -s 1,e1000,vale0:vm1,path=vm1.sock ||
	    atf_fail "valed does not start"
	vm_booted() { :; }
	for kind in ram memfd,seal=off memfd,share=on,seal=off; do
		# At once: valed may not have seen the end of the one before.
		vm_start vm1 -S -object \
		    memory-backend-"$kind",id=no,size=64M -m 64 \
		    -machine memory-backend=no -device "$(valed_device vm1)"
		wait_must "QEMU's end" proc_ended "$(cat vm1.pid)"
		cat vm1.qemu valed.log
		grep -q "GET_INFO failed" vm1.qemu ||
		    atf_fail "$kind: QEMU does not say why"
	done
	is "lines" "$(grep -c 'vm1: client refused: .*share=on$' valed.log)" \
	    -eq 3
	is "lines" "$(grep -c 'second client' valed.log)" -eq 0
	# The last two were refused because of that.
	grep -q 'vm1: memory at 0, .*, refused: .* not a memfd sealed' valed.log ||
	    atf_fail "no reason"
}
