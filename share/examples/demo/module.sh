# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Programs in stock Linux guests, with the module lem (lem(4)) and beside it;
# demo.sh includes this file.  The kernel is the same for all rows:
#
#	lem, valed	in the modes of the driver, CSB with the valed that
#			serves it at real-time priority and guests that poll
#			their sockets, too
#	lem, 82574L	the same on valed's 82574L; all others above and below
#			are on its 82545EM
#	e1000, valed	Linux's driver
#	e1000e, valed	Linux's driver for the 82574L
#	e1000, QEMU	Linux's driver and QEMU's own 82545EM
#	e1000e, QEMU	the same for QEMU's own 82574L
#	virtio-net	QEMU's virtio-net-pci
#
# The adapters of QEMU's own are connected by TAP interfaces and Linux's bridge,
# which passes on large segments uncut if both ends are virtio-net: the fastest
# that QEMU's netdevs are here.  They are made in the network namespace of
# demo.sh; without one these rows are missing.
#
# Rows whose register writes wait do so as in the ladder (ladder.sh).
#
# All figures are those of a program, nettest: datagrams of 8 and 1460 bytes that
# it sent and that it received, transactions of a byte, and bytes of one TCP
# stream.  Only pktgen's frames are counted by the driver.  Exits are
# register accesses, and interrupts, of the rows on valed, while datagrams of 8
# bytes are sent.
#
# A line of module.tsv has, separated by tabs: processors of a guest, the row's
# name, Kpps sent and received with 8 and with 1460 bytes and by pktgen, Mbit/s,
# transactions a second, exits a frame of the sender and of the receiver; "-" for
# what was not measured.

MODULE_S=2
# What Linux has in a guest with 2 GB.
MODULE_SYSCTL="net.ipv4.tcp_rmem='4096 131072 6291456' \
net.ipv4.tcp_wmem='4096 16384 4194304'"

# module_tap: make the bridge br0, with the TAP interfaces of two guests.
module_tap()
{
	local i

	for i in tap1 tap2; do
		"$BUSYBOX" ip link set $i master br0 up || return
	done
}

# module_guests HOW [QEMU's options]: start two guests, with adapters of valed
# that post writes (valed) or wait (waiting), or with QEMU's own.  `adapter' is
# e1000, or e1000e for the 82574L.
module_guests()
{
	local guest how=$1 i=0 qemu_adapter tap

	shift
	[ $adapter = e1000 ] && qemu_adapter=e1000-82545em || qemu_adapter=e1000e
	case $how in
	valed|waiting)
		valed_start \
		    -s "1,$adapter,vale0:vm1,path=vm1.sock,mac=$MAC1,csb=on" \
		    -s "2,$adapter,vale0:vm2,path=vm2.sock,mac=$MAC2,csb=on" ||
		    fail "valed does not start"
		;;
	esac
	for guest in vm1 vm2; do
		i=$((i + 1))
		tap=tap,id=net,ifname=tap$i,script=no,downscript=no
		case $how in
		valed)
			vm_valed $guest "$@"
			;;
		waiting)
			vm_start $guest -device "$(valed_device $guest \
			    '"x-no-posted-writes":true')" "$@"
			;;
		qemu)
			vm_start $guest -netdev $tap -device \
			    $qemu_adapter,netdev=net,mac=52:54:00:82:54:0$i "$@"
			;;
		virtio)
			vm_start $guest -netdev $tap,vnet_hdr=on -device \
			    virtio-net-pci,netdev=net,mac=52:54:00:82:54:0$i \
			    "$@"
			;;
		esac
	done
	vm_wait vm1 vm2 || fail "the guests do not start"
	case $how in
	qemu|virtio)
		module_tap || fail "the TAP interfaces are not connected"
		;;
	esac
	# A guest with two processors has both.
	[ $cpus -gt 1 ] || case $how in
	valed|waiting)	pin valed ;;
	*)		pin qemu ;;
	esac
}

# module_up options...: load the driver in both guests, and start the server.
module_up()
{
	local i

	for i in 1 2; do
		vm vm$i "rmmod $DRIVER 2> /dev/null
		    [ $DRIVER != virtio_net ] || module virtio_pci
		    module $DRIVER $* && wait_until eth0 \
		    [ -d /sys/class/net/eth0 ] && address $i &&
		    sysctl -q -w net.ipv6.conf.eth0.disable_ipv6=1 \
		    $MODULE_SYSCTL" > up.$i ||
		    fail "$DRIVER does not start: $(tail -n 1 up.$i)"
	done
	serve
	vm vm1 "wait_until 'an answer' ping -q -c 1 10.0.0.2" > /dev/null ||
	    fail "the guests do not reach each other"
}

# module_exits GUEST: print the exits and frames of its adapter so far.
module_exits()
{
	echo $(counter $1 reg_reads reg_writes intr_sent) \
	    $(counter $1 tx_frames rx_frames)
}

# module_udp SIZE: add what was sent and received to the row.
module_udp()
{
	vm vm1 nettest udp 10.0.0.2 $1 $MODULE_S > nettest.out ||
	    fail "datagrams of $1 bytes: $(tail -n 1 nettest.out)"
	row=$row$(awk -F '[= ]' '{
		for (i = 2; i < NF; i += 2)
			v[$i] = $(i + 1)
		printf "\t%.1f\t%.1f", v["sent"] / v["seconds"] / 1e3,
		    v["received"] / v["seconds"] / 1e3
	    }' nettest.out)
}

module_pktgen()
{
	local i sample=

	vm vm1 "pktgen_setup $MAC2 10.0.0.2 60 && pg eth0 'burst $BURST' &&
	    flood $MODULE_S /tmp/sample 1" && vm vm2 "flood $MODULE_S /tmp/sample 0" ||
	    fail "pktgen does not start"
	for i in 1 2; do
		vm vm$i "wait_word ' ' /tmp/sample" > sample.$i ||
		    fail "vm$i does not report its counters"
	done
	row=$row$(awk 'NR == 1 { sent = $2 / $1 }
	    END { printf "\t%.1f\t%.1f", sent, $3 / $1 }' sample.1 sample.2)
	# Another module could not be loaded in place of the driver.
	vm vm1 "wait_until 'the end of pktgen' pktgen_stopped && rmmod pktgen" \
	    > /dev/null || fail "pktgen does not end"
}

# module_row NAME: measure, and add a line to module.tsv.
module_row()
{
	local exits=-

	row="$cpus	$1"
	label="$1, $cpus"
	# Both ends know each other's address, and TCP has begun.
	vm vm1 nettest rr 10.0.0.2 1 > /dev/null || fail "$1: no answer"
	if [ -e valed.pid ]; then
		valed_counters
		set -- $(module_exits vm1) $(module_exits vm2)
	fi
	module_udp 8
	if [ -e valed.pid ]; then
		valed_counters
		exits=$(echo $* $(module_exits vm1) $(module_exits vm2) |
		    awk '{ printf "%.4f\t%.4f", ($5 - $1) / ($6 - $2),
			($7 - $3) / ($8 - $4) }')
	else
		exits="-	-"
	fi
	module_udp 1460
	module_pktgen
	row="$row	$(tcp_mbps $MODULE_S)"
	row="$row	$(vm vm1 nettest rr 10.0.0.2 $MODULE_S |
	    awk -F '[= ]' '{ printf "%.0f", $5 / $3 }')"
	echo "$row	$exits" >> module.tsv
	progress "$(echo "$row	$exits" | cut -f 3- | tr '\t' ' ')"
}

# module_polling: have valed's threads run before all others and the guests poll
# the sockets that they make from now on, for up to 1 ms: longer than an answer
# takes.
module_polling()
{
	local i task

	for task in /proc/"$(cat valed.pid)"/task/*; do
		chrt -f -p 1 "${task##*/}" > /dev/null 2>&1 || return
	done
	for i in 1 2; do
		vm vm$i "sysctl -q -w net.core.busy_read=1000 \
		    net.core.busy_poll=1000" || return
	done
	serve
}

module_modes()
{
	DRIVER=lem
	module_guests $1
	module_up itr=0 sc=0 csb=0
	module_row "lem, base$2"
	module_up itr=250 sc=1 csb=0
	module_row "lem, itr=250 sc=1$2"
	module_up csb=1
	module_row "lem, CSB$2"
}

# module_bare HOW DRIVER NAME: with a driver that has no modes.
module_bare()
{
	DRIVER=$2
	module_guests $1 -smp $cpus
	module_up
	module_row "$3"
	stop_all
}

module()
{
	local adapter=e1000 guest_mb=$GUEST_MB bridge=

	: > module.tsv
	DRIVER=lem
	. "$OBJTOP/tests/guest/guest.subr"
	[ -e "$INITRAMFS" ] || return 0
	GUEST_MB=512
	"$BUSYBOX" ip link add br0 type bridge 2> bridge.log &&
	    "$BUSYBOX" ip link set br0 up && bridge=yes
	cpus=1
	module_modes waiting ", waiting"
	stop_all
	module_modes valed ""
	module_polling && module_row "lem, CSB, polling"
	stop_all
	module_bare valed e1000 "e1000, valed"
	adapter=e1000e
	module_bare valed lem "lem, 82574L, CSB"
	module_bare valed e1000e "e1000e, valed"
	[ -z "$bridge" ] || module_bare qemu e1000e "e1000e, QEMU"
	adapter=e1000
	for cpus in 1 2; do
		if [ $cpus -eq 2 ]; then
			module_bare valed lem "lem, CSB"
		fi
		[ -n "$bridge" ] || continue
		module_bare qemu e1000 "e1000, QEMU"
		module_bare virtio virtio_net "virtio-net"
	done
	GUEST_MB=$guest_mb
	DRIVER=e1000
	. "$OBJTOP/tests/guest/guest.subr"
}
