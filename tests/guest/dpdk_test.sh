# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# DPDK's em driver, in its testpmd: a process of the stock guest vm1 drives two
# adapters, an e1000 on the switch of vm2 and an e1000e on that of vm3.  It polls,
# and uses no interrupts.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

guest_case testpmd "testpmd receives, sends, and forwards; all are counted"
testpmd_body()
{
	setup
	[ -e "$plain/tests/guest/initramfs-dpdk" ] ||
	    atf_skip "build/deps/dpdk is missing; see make deps"
	three_guests
	testpmd_start

	testpmd "set fwd rxonly" "rxonly packet forwarding mode"
	testpmd "start" "rxonly packet forwarding"
	on vm2 "pktgen_setup $(mac 1) 10.0.0.9 60 10000; pktgen_run"
	wait_until "10000 frames at vm1" reach vm1 10000 port_rx_frames \
	    port_rx_drop_full || wrong "vm2 sent fewer"
	drained
	testpmd "stop" "^Done"
	same 0 RX vm1 $RECEIVED

	testpmd "set fwd txonly" "txonly packet forwarding mode"
	testpmd "set portlist 0" ""
	testpmd "set eth-peer 0 $(mac 2)" ""
	testpmd "start" "txonly packet forwarding"
	wait_until "10000 frames of vm1" reach vm1 10000 tx_frames ||
	    wrong "testpmd does not send"
	testpmd "stop" "^Done"
	same 0 TX vm1 $SENT
	equal "txonly: sent and arrived" "$(counter vm1 port_tx_frames)" \
	    "$(counter vm2 port_rx_frames port_rx_drop_full)"
	received=$(counter vm2 $RECEIVED)
	on vm2 "wait_until '$received frames' eval \
	    'stat rx_packets; [ \$(stat rx_packets) -ge $received ]' &&
	    stat rx_packets" > packets
	equal "txonly: adapter and driver" "$received" "$(cat packets)"

	testpmd "set portlist 0,1" ""
	testpmd "set fwd io" "io packet forwarding mode"
	testpmd "start" "io packet forwarding"
	pings vm2 10.0.0.3
	pings vm3 10.0.0.2 -s 1472
	transfer vm2 vm3 10.0.0.3 1000000
	transfer vm3 vm2 10.0.0.2 1000000
	drained
	testpmd "stop" "^Done"
	same 0 RX vm1 $RECEIVED
	same 0 TX vm1 $SENT
	same 1 RX vm1b $RECEIVED
	same 1 TX vm1b $SENT
	testpmd "quit" "Bye"
	finish
}

# three_guests: vm1 on two switches, vm2 and vm3 on one of them each.
three_guests()
{
	local INITRAMFS=$INITRAMFS GUEST_MB=$GUEST_MB i

	valed_start -s 1,e1000,vale0:vm1,path=vm1.sock,mac=$(mac 1) \
	    -s 2,e1000e,vale1:vm1b,path=vm1b.sock,mac=$(mac 4) \
	    -s 3,e1000,vale0:vm2,path=vm2.sock,mac=$(mac 2) \
	    -s 4,e1000,vale1:vm3,path=vm3.sock,mac=$(mac 3) ||
	    atf_fail "valed does not start"
	vm_valed vm2
	vm_valed vm3
	INITRAMFS=$plain/tests/guest/initramfs-dpdk
	GUEST_MB=320
	# DPDK is compiled for SSE 4.2.
	vm_valed vm1 -cpu max -device "$(valed_device vm1b)"
	for i in 1 2 3; do
		vm_wait vm$i || {
			cat vm$i.qemu vm$i.log valed.log
			atf_fail "vm$i does not start"
		}
	done
	up 2 3
}

# testpmd_start: hands vm1's adapters to testpmd, which reads commands from a
# FIFO, and writes to the console, because it buffers what it writes to a file.
testpmd_start()
{
	said=0
	on vm1 'echo 32 > /proc/sys/vm/nr_hugepages
	    module uio_pci_generic &&
	    echo 8086 100f > /sys/bus/pci/drivers/uio_pci_generic/new_id &&
	    echo 8086 10d3 > /sys/bus/pci/drivers/uio_pci_generic/new_id &&
	    mkdir -p /var/run && mkfifo /tmp/testpmd || exit 1
	    sleep 1000000 > /tmp/testpmd < /dev/null 2> /dev/null &
	    dpdk-testpmd --lcores "(0,1)@0" --in-memory --no-telemetry \
		-d /lib/librte_mempool_ring.so -d /lib/librte_net_e1000.so \
		-- -i --no-flush-rx --total-num-mbufs=4096 \
		< /tmp/testpmd > /dev/ttyS0 2>&1 &'
	wait_until "testpmd" testpmd_said "Done" || wrong "testpmd: no start"
}

# testpmd_said PATTERN: whether testpmd has written that since the last command;
# testpmd.out has all that it has written since.
testpmd_said()
{
	tail -n +$((said + 1)) vm1.log | tr -d '\r' > testpmd.out
	cat testpmd.out
	grep -q "$1" testpmd.out
}

# testpmd TEXT PATTERN: gives testpmd a command, and waits for the pattern.
testpmd()
{
	said=$(wc -l < vm1.log)
	on vm1 "echo '$1' > /tmp/testpmd"
	wait_until "testpmd: $1" testpmd_said "$2" || wrong "testpmd: $1"
	cat testpmd.out
}

# same PORT RX|TX GUEST COUNTER...: the PMD has counted as many packets as
# valed.  It adds up the adapter's registers.  Guests may send a frame at any
# time, to see whether their neighbour is there: both count it.
same()
{
	drained
	wait_until "port $1: $2" has "$@" ||
	    wrong "port $1: $2: counted otherwise"
}

has()
{
	local way=$2 n

	testpmd "show port stats $1" "#####\$"
	valed_counters || return 1
	shift 2
	n=$(counter "$@")
	echo "$n"
	grep "$way-packets: $n " testpmd.out
}

# reach GUEST N COUNTER...: whether the sum of the counters is at least N.
reach()
{
	local guest=$1 n=$2

	shift 2
	valed_counters || return 1
	counter "$guest" "$@"
	[ "$(counter "$guest" "$@")" -ge "$n" ]
}

equal()
{
	echo "$1: $2 $3"
	[ "$2" -eq "$3" ] || wrong "$1: $2 is not $3"
}
