# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Linux's driver lem(4): its knobs, its modes changed under load, XDP, and its
# counters beside the adapter's.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"
. "$(atf_get_srcdir)/lem.subr"

# itr GUEST USECS: its adapter waits that long between interrupts, in units of 256
# ns.
itr()
{
	local ns=$((($2 * 1000 + 128) / 256 * 256))

	"$plain/usr.sbin/valectl/valectl" -c control -k all > devices ||
	    wrong "no counters"
	grep -x "adapter $1 itr_ns $ns" devices ||
	    wrong "rx-usecs $2: $(grep itr_ns devices)"
}

# frames N: vm1 sends N frames to nobody; prints how many interrupts it gets of
# them, and how many of them send combining deferred.
frames()
{
	on vm1 "pktgen_setup $(mac 9) 10.0.0.9 60 $1
	    n=\$(ethtool -S eth0 | sed -n 's/.* tx_combined: //p')
	    i=\$(ethtool -S eth0 | sed -n 's/.* interrupts: //p')
	    pktgen_run
	    sleep 0.1
	    echo interrupts \$((\$(ethtool -S eth0 |
	        sed -n 's/.* interrupts: //p') - i)) combined \$((\$(ethtool \
	        -S eth0 | sed -n 's/.* tx_combined: //p') - n))" | tail -n 1
}

# works: vm1's knobs do what they say.  Interrupts come for sent packets only, and
# late enough that others wait for them.
works()
{
	local i

	on vm1 "ethtool -C eth0 rx-usecs 16776"
	for i in "off off off" "off off on" "off on off" "on on on"; do
		set -- $i
		on vm1 "ethtool --set-priv-flags eth0 csb $1 tx_lazy $2 sc $3
		    sleep 0.1"
		echo "csb $1 tx_lazy $2 sc $3: $(frames 200 | tee frames.out)"
		case "$i:$(cat frames.out)" in
		"off off off:interrupts "[1-9]*" combined 0")	;;
		"off off on:interrupts "[1-9]*" combined "[1-9]*)	;;
		"off on off:interrupts 0 combined 0")	;;
		"on on on:interrupts 0 combined 0")	;;
		*)	wrong "csb $1 tx_lazy $2 sc $3: $(cat frames.out)" ;;
		esac
	done
	on vm1 "ethtool --set-priv-flags eth0 csb on tx_lazy off sc on
	    ethtool -C eth0 rx-usecs 125"
	# The last value that the core gets.
	on vm1 "trouble fail lem_set_rounds 0 0
	    for n in 10 0 65536; do
	        echo \$n > /sys/class/net/eth0/lem/csb_rounds &&
	        grep \"^0 \$n \" /sys/module/trouble/parameters/fail || exit 1
	    done"
	# The adapter has checked the checksum of a frame, or the stack does.
	for i in on off; do
		on vm1 "ethtool -K eth0 gro off rx $i && carrier eth0 &&
		    trouble fail __skb_checksum_complete 0 0"
		on vm2 "wire udp-send 10.0.0.1 9 20 100"
		is "rx $i: checksums" "$(on vm1 calls)" \
		    $([ $i = on ] && echo -eq 0 || echo -ge 100)
	done
	on vm1 "ethtool -K eth0 gro on rx on rx-gro-hw on && carrier eth0"
	# Frames come uncut or in segments.
	for i in on off on; do
		on vm1 "ethtool -K eth0 rx-gro-hw $i && carrier eth0"
		set -- "$(e vm1 rx_offload)" "$(a vm1 rx_cut)"
		transfer vm2 vm1 10.0.0.1 1000000
		is "$i: partial" "$(e vm1 rx_offload)" \
		    $([ $i = on ] && echo -gt || echo -eq) "$1"
		is "$i: cut" "$(a vm1 rx_cut)" \
		    $([ $i = on ] && echo -eq || echo -gt) "$2"
	done
}

# segments: a program sends vm1 segments of UDP.  The driver drops those whose
# header says that their checksum is elsewhere.  valed passes none of these on.
segments()
{
	on vm1 "trouble sum 100; stat rx_errors; stat rx_packets" > before
	VALE_SOCKET=$PWD/control "$plain/tests/guest/segments" vale0:program \
	    "$(mac 1)" 200 || wrong "segments: status $?"
	drained
	pings vm1 10.0.0.2
	on vm1 "cat /sys/module/trouble/parameters/sum
	    stat rx_errors; stat rx_packets" > after
	set -- $(cat before after)
	is "left to change" "$3" -eq 0
	is "errors" $(($4 - $1)) -eq 100
	is "packets" $(($5 - $2)) -ge 100
}

guest_case ethtool "ethtool shows and changes what there is, and nothing else"
ethtool_body()
{
	local n

	VALED_MORE="-c control"
	lem_guests 2
	shows '^driver: lem$' vm1 ethtool -i eth0
	shows 'Speed: 1000Mb/s' vm1 ethtool eth0
	shows 'Link detected: yes' vm1 ethtool eth0
	shows "$(mac 1)" vm1 cat /sys/class/net/eth0/address
	# Moderation.
	for n in 0 1 125 1000 16776; do
		on vm1 ethtool -C eth0 rx-usecs $n
		shows "^rx-usecs:[[:space:]]*$n\$" vm1 ethtool -c eth0
		itr vm1 $n
	done
	refused 'rx-usecs must be' vm1 ethtool -C eth0 rx-usecs 16777
	refused '' vm1 ethtool -C eth0 adaptive-rx on
	on vm1 ethtool -C eth0 rx-usecs 125
	# Rings.
	for n in 128 4096 256; do
		on vm1 ethtool -G eth0 rx $n tx $n
		shows "^TX:[[:space:]]*$n\$" vm1 ethtool -g eth0
		on vm1 carrier eth0
		pings vm1 10.0.0.2
	done
	refused 'power of two' vm1 ethtool -G eth0 rx 100
	refused '' vm1 ethtool -G eth0 tx 8192
	# Flags.
	for n in csb sc tx_lazy; do
		on vm1 ethtool --set-priv-flags eth0 $n off
		shows "^$n *: off\$" vm1 ethtool --show-priv-flags eth0
		pings vm2 10.0.0.1
		on vm1 ethtool --set-priv-flags eth0 $n on
		shows "^$n *: on\$" vm1 ethtool --show-priv-flags eth0
		pings vm1 10.0.0.2
	done
	on vm1 ethtool --set-priv-flags eth0 tx_lazy off
	for n in rx tx sg tso gro rx-gro-hw rxvlan; do
		on vm1 "ethtool -K eth0 $n off"
		PINGS=2 pings vm2 10.0.0.1
		on vm1 "ethtool -K eth0 rx on tx on sg on tso on gro on \
		    rx-gro-hw on rxvlan on && carrier eth0"
	done
	# The adapter has one bit for both.
	for n in off on; do
		on vm1 "ethtool -K eth0 rxvlan $n"
		shows "^tx-vlan-offload: $n" vm1 ethtool -k eth0
	done
	for n in 1 2; do
		on vm$n "sysctl -q -w net.ipv6.conf.eth0.disable_ipv6=1"
	done
	works
	# The rounds of the CSB.
	on vm1 "echo 10 > /sys/class/net/eth0/lem/csb_rounds"
	shows '^10$' vm1 cat /sys/class/net/eth0/lem/csb_rounds
	refused 'nvalid' vm1 "echo 65537 > /sys/class/net/eth0/lem/csb_rounds"
	# Tests.
	on vm1 "ethtool -t eth0 online"
	on vm1 "ethtool -t eth0 offline && carrier eth0"
	transfer vm1 vm2 10.0.0.2 5000000
	segments
	# Parameters.
	on vm1 "ip link set eth0 down && rmmod lem"
	refused 'nvalid' vm1 load itr=65536
	shows 'lem: itr must be 0 to 65535' vm1 dmesg
	on vm1 "up 1 itr=0 sc=0 csb=0 tx_lazy=1 csb_rounds=7"
	shows '^7$' vm1 cat /sys/class/net/eth0/lem/csb_rounds
	for n in "sc *: off" "csb *: off" "tx_lazy *: on"; do
		shows "^$n\$" vm1 ethtool --show-priv-flags eth0
	done
	itr vm1 0
	pings vm1 10.0.0.2
	clean vm1 vm2
	finish
}

guest_case no_csb "An adapter without a CSB: everything else works"
no_csb_body()
{
	local n

	guests 2 ,csb=off
	up 1 2
	shows 'no CSB' vm1 dmesg
	shows '^csb *: off$' vm1 ethtool --show-priv-flags eth0
	refused 'not supported' vm1 ethtool --set-priv-flags eth0 csb on
	refused '' vm1 ethtool -K eth0 rx-gro-hw on
	for n in on off; do
		on vm1 ethtool --set-priv-flags eth0 sc $n tx_lazy $n
		transfer vm1 vm2 10.0.0.2 5000000
		transfer vm2 vm1 fd00::1 5000000
	done
	no_checksum_errors vm1
	no_checksum_errors vm2
	finish
}

# identity GUEST "DEVICE VENDOR DEVICE" DRIVER: its adapter has this ID and
# subsystem ID, and this driver.
identity()
{
	on "$1" 'cd /sys/class/net/eth0/device && basename "$(readlink driver)" &&
	    cat device subsystem_vendor subsystem_device' > identity
	atf_check -o inline:"$3 $2" sh -c "paste -sd ' ' identity | tr -d '\n'"
}

guest_case found "The CSB is found whatever the subsystem ID is, that of QEMU's \
e1000, too; an 82574L without it is left to e1000e"
found_body()
{
	property()
	{
		[ "$1" = vm2 ] || echo '"x-pci-sub-vendor-id":6900,
		    "x-pci-sub-device-id":4352'
		[ "$1" != vm1 ] || echo ',"x-pci-device-id":4110'
	}
	DRIVERS="lem lem@e1000e,csb=off lem@e1000e lem,csb=compat"
	guests 4
	up 1 3 4
	identity vm1 "0x100e 0x1af4 0x1100" lem
	on vm2 'module lem && [ ! -e /sys/class/net/eth0 ] && module e1000e &&
	    wait_until eth0 [ -d /sys/class/net/eth0 ] && address 2'
	identity vm2 "0x10d3 0x8086 0xa01f" e1000e
	on vm3 module e1000e
	identity vm3 "0x10d3 0x1af4 0x1100" lem
	unset -f property
	pings vm1 10.0.0.2
	pings vm3 10.0.0.4
	for n in 1 3 4; do
		is "CSB of vm$n" "$(a vm$n csb_on)" -ge 1
	done
	is "CSB of vm2" "$(a vm2 csb_on)" -eq 0
	on vm1 'rmmod lem && module e1000 &&
	    wait_until eth0 [ -d /sys/class/net/eth0 ] && address 1'
	pings vm1 10.0.0.3
	finish
}

# knob N GUEST: the N-th of the settings that a guest gets under load.
knob()
{
	case $(($1 % 10)) in
	0)	on "$2" ethtool --set-priv-flags eth0 csb off ;;
	1)	on "$2" ethtool --set-priv-flags eth0 sc off ;;
	2)	on "$2" ethtool -C eth0 rx-usecs 0 ;;
	3)	on "$2" ethtool --set-priv-flags eth0 tx_lazy on sc on ;;
	4)	on "$2" ethtool -G eth0 rx 128 tx 128 ;;
	5)	on "$2" ethtool --set-priv-flags eth0 csb on ;;
	6)	on "$2" "ethtool -K eth0 rx-gro-hw off
		    echo 1 > /sys/class/net/eth0/threaded" ;;
	7)	on "$2" ethtool -C eth0 rx-usecs 1000 ;;
	8)	on "$2" ethtool --set-priv-flags eth0 tx_lazy off ;;
	9)	on "$2" "ethtool -G eth0 rx 1024 tx 1024 &&
		    ethtool -K eth0 rx-gro-hw on && ethtool -C eth0 rx-usecs 125
		    echo 0 > /sys/class/net/eth0/threaded" ;;
	esac
}

guest_case modes "Modes and rings change under load, sender and receiver"
modes_body()
{
	local n

	APPEND=slub_debug=FZPU
	lem_guests 3
	on vm1 "pktgen_setup $(mac 2) 10.0.0.2 60; pktgen_start"
	for n in $(seq 0 9); do
		knob $n vm2
		knob $n vm1
	done
	on vm1 pktgen_stop
	for n in $(seq 0 9); do
		knob $n vm1
		transfer vm1 vm2 10.0.0.2 2000000
		knob $n vm2
		transfer vm2 vm1 10.0.0.1 2000000
	done
	pings vm3 10.0.0.1
	pings vm3 10.0.0.2
	on vm1 "ethtool -S eth0" > stats
	on vm2 "ethtool -S eth0" >> stats
	! grep -e '_bad: [1-9]' -e 'dead: [1-9]' -e 'watchdogs: [1-9]' stats ||
	    wrong "the adapter was at fault, or the driver"
	clean vm1 vm2
	finish
}

guest_case tap "TCP passes uncut to the host and from it"
tap_body()
{
	tap_guest ,csb=on
	tcp_streams "$ns" 10.0.0.9 10.0.0.1 20000000
	some tap0 tx_uncut
	is "segments cut" "$(a tap0 rx_cut)" -eq 0
	is "received uncut" "$(e vm1 rx_offload)" -gt 0
	clean vm1
	finish
}

# csb_stream: a stream of datagrams, from a socket of vm1 to one of vm2.
csb_stream()
{
	on vm2 "rm -f /tmp/recv
	    wire udp-recv 5002 > /tmp/recv 2>&1 < /dev/null &
	    wait_port 5002"
	on vm1 "wire udp-send 10.0.0.2 5002 60 200000"
	on vm2 "wait_word good /tmp/recv"
	drained
	valed_counters
}

# charged: a socket of vm1 has more than half of its buffer in what was not sent,
# and the ring has something, by one packet more than its limit at most.
charged()
{
	on vm1 "cat /proc/net/udp
	    cd /sys/class/net/eth0/queues/tx-0/byte_queue_limits
	    echo ring \$(cat inflight limit)" > charged
	awk '$3 == "0200000A:138A" && $5 >= "00019000:" { some = 1 }
	    $1 == "ring" && $2 > 0 && $2 < $3 + 1442 { limited = 1 }
	    END { exit !(some && limited) }' charged
}

# receives MODE: vm1 gets a mode, and vm2 is to receive datagrams from it.
receives()
{
	on vm1 "ethtool --set-priv-flags eth0 $1"
	pings vm1 10.0.0.2
	on vm2 "rm -f /tmp/recv
	    wire udp-recv 5002 > /tmp/recv 2>&1 < /dev/null &
	    wait_port 5002"
}

guest_case charged "A packet is charged to its socket and to byte queue limits until \
it is sent, with the CSB and lazy completion, too; then its sender goes on, and a \
program has its memory back"
charged_body()
{
	local limit mode

	lem_guests 2
	# Nothing but reports, and no register is read, for which a guest would
	# wait until valed goes on.
	on vm1 "trouble fail lem_tick 0 1000000 &&
	    wait_until 'the last tick' eval '[ \$(calls) -ge 1 ]'"
	# With the second limit all datagrams are in the ring.
	while read -r limit mode <&3; do
		on vm1 "echo $limit > /sys/class/net/eth0/queues/tx-0/\
byte_queue_limits/limit_min"
		receives "$mode"
		kill -STOP "$(cat valed.pid)"
		on vm1 "wire udp-send 10.0.0.2 5002 1400 500 > /tmp/sent 2>&1 \
		    < /dev/null &"
		wait_until "$mode: a full buffer" charged || {
			cat charged
			wrong "$mode, limit $limit: not charged"
		}
		kill -CONT "$(cat valed.pid)"
		on vm2 "wait_word good /tmp/recv"
		receives "$mode"
		on vm1 "wire xsk-send eth0 $(mac 2) 10.0.0.2 5002 1000 50" > xsk
		grep -x "sent 50" xsk || wrong "$mode: $(cat xsk)"
		on vm1 "wire zero-send 10.0.0.2 5002 1000 50" > zero
		grep -x "sent 50 copied 0" zero || wrong "$mode: $(cat zero)"
		on vm2 "wait_word good /tmp/recv"
	done 3<<-EOF
		0 csb on tx_lazy off
		1000000 csb on tx_lazy off
		1000000 csb off tx_lazy on
		1000000 csb off tx_lazy off
	EOF
	on vm1 "sysctl -q -w net.core.wmem_default=4608"
	for mode in "csb on tx_lazy off" "csb off tx_lazy on"; do
		receives "$mode"
		on vm1 "wire udp-send 10.0.0.2 5002 1400 1000"
		on vm2 "wait_word good /tmp/recv"
	done
	clean vm1
	finish
}

guest_case redirected "What a redirected frame reclaims lets the stack go on, which \
waits for descriptors or for byte queue limits"
redirected_body()
{
	local least limit

	lem_guests 2
	on vm1 "module veth && ip link add v0 type veth && ip link set v0 up &&
	    ip link set veth0 up && ip addr add 10.9.0.1/24 dev v0 &&
	    arp -i v0 -s 10.9.0.2 $(mac 9) && xdp veth0 redirect eth0 &&
	    ethtool -G eth0 tx 128 && carrier eth0"
	# The ring takes more than a hundred frames of 102 bytes.
	while read -r limit least <&3; do
		on vm1 "ip link set eth0 down && ip link set eth0 up &&
		    carrier eth0 && echo $limit > /sys/class/net/eth0/queues/\
tx-0/byte_queue_limits/limit_min"
		receives "csb on tx_lazy off"
		# Nothing has NAPI look: no tick, and no interrupt.
		on vm1 "trouble fail lem_tick 0 1 &&
		    wait_until 'the last tick' eval '[ \$(calls) -ge 1 ]' &&
		    trouble fail lem_interrupt 1 1000000"
		kill -STOP "$(cat valed.pid)"
		on vm1 "wire udp-send 10.0.0.2 5002 60 150 > /tmp/sent 2>&1 \
		    < /dev/null &"
		wait_until "$least bytes in the ring" in_ring "$least" ||
		    wrong "limit $limit: nothing in the ring"
		kill -CONT "$(cat valed.pid)"
		wait_until "an interrupt" interrupted || wrong "no interrupt"
		on vm1 "ping -q -c 60 -i 0.05 -W 1 10.9.0.2 > /dev/null; true"
		on vm2 "wait_word good /tmp/recv"
		on vm1 "trouble fail lem_interrupt 1 0"
	done 3<<-EOF
		1000000 9000
		0 1
	EOF
	clean vm1 vm2
	finish
}

# in_ring N: vm1's ring has N bytes that byte queue limits count.
in_ring()
{
	on vm1 "[ \$(cat /sys/class/net/eth0/queues/tx-0/byte_queue_limits/\
inflight) -ge $1 ]"
}

# interrupted: vm1 has got an interrupt, which its driver does not see.
interrupted()
{
	on vm1 "[ \$(calls) -ge 1 ]"
}

guest_case reads "With the CSB and MSI, no register read for an interrupt"
reads_body()
{
	local interrupts reads

	lem_guests 2
	on vm1 "cat /sys/class/net/eth0/device/msi_irqs/*" > interrupts
	atf_check -o inline:"msi\n" cat interrupts
	on vm2 "nettest serve > /tmp/serve 2>&1 < /dev/null &
	    wait_word ready /tmp/serve"
	pings vm1 10.0.0.2
	valed_counters
	reads=$(counter vm1 reg_reads)
	interrupts=$(counter vm1 intr_sent)
	on vm1 "nettest rr 10.0.0.2 5"
	valed_counters
	# Once a second it reads the link.
	is "reads and interrupts" $((2 * ($(counter vm1 reg_reads) - reads))) \
	    -lt $(($(counter vm1 intr_sent) - interrupts))
	finish
}

guest_case csb "With the CSB under 0.05 exits a frame, and equal counters"
csb_body()
{
	local before end n

	lem_guests 2
	# A packet that is posted when the ring changes is lost.
	for n in 1 2; do
		on vm$n "sysctl -q -w net.ipv6.conf.eth0.disable_ipv6=1"
		same vm$n tx_packets tx_frames
	done
	# The receiver's interrupts depend on how often it has done all, so on
	# what else the machine does; here on moderation only.
	on vm2 "ethtool -C eth0 rx-usecs 16776 && ethtool -G eth0 rx 4096 &&
	    carrier eth0"
	pings vm1 10.0.0.2
	valed_counters
	for n in 1 2; do
		eval "before$n=$(counter vm$n reg_reads reg_writes intr_sent)"
		eval "frames$n=$(counter vm$n tx_frames rx_frames)"
	done
	# How many the receiver gets of each depends on the machine.
	while :; do
		csb_stream
		n=$(($(counter vm2 tx_frames rx_frames) - frames2))
		[ $n -lt 20000 ] || break
	done
	for n in 1 2; do
		eval "before=\$before$n frames=\$frames$n"
		end=$(counter vm$n reg_reads reg_writes intr_sent)
		frames=$(($(counter vm$n tx_frames rx_frames) - frames))
		is "vm$n: exits, 20 times" $((20 * (end - before))) -lt $frames
	done
	# The driver has counted what the adapter has.
	for n in 1 2; do
		# To the adapter, a write of TDT as it starts is one, too.
		is "vm$n: kicks" "$(e vm$n tx_kicks)" -le \
		    "$(a vm$n tx_kicks)"
		is "vm$n: other writes of TDT" $(($(a vm$n tx_kicks) - \
		    $(e vm$n tx_kicks))) -le 4
		# There is a message for each request.  Two before the processor
		# takes the first are one interrupt, and one may be on its way.
		is "vm$n: interrupts" "$(e vm$n interrupts)" -le \
		    "$(a vm$n intr_sent)"
		is "vm$n: messages" "$(a vm$n intr_sent)" -le \
		    $((2 * $(e vm$n interrupts) + 4))
		same vm$n tx_packets tx_frames
		same vm$n rx_packets rx_frames
	done
	# A program that does not read gets what fits its buffer of 8 MB: 10,000 if
	# a short frame has no page of its own, else 1,700.
	on vm2 "wire udp-recv 5003 > /tmp/recv 2>&1 < /dev/null &
	    wait_port 5003; killall -STOP wire"
	on vm1 "wire udp-send 10.0.0.2 5003 60 5000 > /dev/null 2>&1 &
	    wait_sent 4000; killall wire"
	drained
	on vm2 "grep ':138B ' /proc/net/udp6" > socket
	cat socket
	awk '$5 !~ /:00000000$/ && $NF == 0 { some = 1 } END { exit !some }' \
	    socket || wrong "datagrams were dropped at the socket"
	finish
}

guest_case xdp "XDP: pass, drop, send back, redirect; its limits"
xdp_body()
{
	local n

	lem_guests 3
	shows 'lem' vm2 "readlink /sys/class/net/eth0/device/driver"
	on vm2 "xdp eth0 pass && carrier eth0"
	shows 'rx-gro-hw: off' vm2 ethtool -k eth0
	refused 'too long' vm2 "ip link set eth0 mtu 9000 || { dmesg; false; }"
	pings vm1 10.0.0.2
	transfer vm1 vm2 10.0.0.2 5000000
	transfer vm2 vm1 fd00::1 5000000
	# The program's metadata gets to the stack.
	on vm2 "xdp eth0 meta && trouble meta 0"
	pings vm1 10.0.0.2
	is "with metadata" \
	    "$(on vm2 "cat /sys/module/trouble/parameters/meta")" -ge 10
	# Dropped, and counted.
	on vm2 "xdp eth0 drop"
	on vm1 "pktgen_setup $(mac 2) 10.0.0.2 60 1000; pktgen_run"
	on vm2 "wait_until '1000 drops' eval '
	    [ \$(ethtool -S eth0 | sed -n \"s/.*xdp_drop: //p\") -ge 1000 ]'"
	on vm2 "xdp eth0 abort"
	# Sent back to vm1.
	on vm2 "xdp eth0 tx"
	n=$(on vm1 "stat rx_packets")
	on vm1 "pktgen_run
	    wait_until 'what came back' eval '
	    [ \$(stat rx_packets) -ge $((n + 900)) ]'"
	is "sent back" "$(e vm2 xdp_tx)" -ge 900
	# Redirected to another interface, and from there to the adapter.
	# busybox names the peer itself.
	on vm2 "xdp eth0 off && carrier eth0 && module veth &&
	    ip link add v0 type veth && ip link set v0 up &&
	    ip link set veth0 up && xdp veth0 pass && xdp eth0 redirect v0 &&
	    carrier eth0"
	on vm1 "pktgen_run"
	on vm2 "wait_until 'redirected frames' eval '
	    [ \$(cat /sys/class/net/veth0/statistics/rx_packets) -ge 900 ]'"
	is "redirected" "$(e vm2 xdp_redirect)" -ge 900
	on vm2 "xdp eth0 off && xdp eth0 pass && carrier eth0 &&
	    xdp veth0 off && xdp veth0 redirect eth0 &&
	    ip addr add 10.9.0.1/24 dev v0 && arp -i v0 -s 10.9.0.2 $(mac 1)"
	n=$(on vm1 "stat rx_packets")
	on vm2 "ping -q -c 30 -i 0.01 -W 1 10.9.0.2; true"
	on vm1 "wait_until 'what vm2 redirects' eval '
	    [ \$(stat rx_packets) -ge $((n + 25)) ]'"
	on vm2 "xdp eth0 off && carrier eth0"
	shows 'rx-gro-hw: on' vm2 ethtool -k eth0
	# Not with frames that do not fit.
	on vm2 "ip link set eth0 mtu 9000"
	refused 'MTU is too long' vm2 xdp eth0 pass
	on vm2 "ip link set eth0 mtu 1500 && carrier eth0"
	pings vm3 10.0.0.2
	# Nobody has a program any more.
	on vm2 "xdp veth0 off; wait_until 'no program' eval '[ \$(xdp eth0 count) \
	    -eq 0 ]'"
	# Frames for which there is no memory are counted.
	n=$(on vm2 "stat rx_dropped")
	on vm2 "trouble fail __napi_alloc_skb 0 5 ||
	    trouble fail napi_alloc_skb 0 5"
	pings vm3 10.0.0.2
	is "dropped" "$(on vm2 "stat rx_dropped")" -ge $((n + 5))
	clean vm2
	finish
}

guest_case poll "Busy polling: data is right, and interrupts come afterwards"
poll_body()
{
	local n polled sent

	lem_guests 2
	# On a busy machine a guest may not poll long enough at once.
	for n in 1 2 3 4 5; do
		sent=$(answers 0)
		polled=$(answers 100000)
		echo "interrupts: $sent; while a program polls, $polled"
		[ $((4 * polled)) -ge $((3 * sent)) ] || break
	done
	is "interrupts" $((4 * polled)) -lt $((3 * sent))
	for n in 1 2; do
		on vm$n "sysctl -q -w net.core.busy_read=500 \
		    net.core.busy_poll=500"
	done
	transfer vm1 vm2 10.0.0.2 5000000
	transfer vm2 vm1 10.0.0.1 5000000
	sent=$(e vm1 interrupts)
	pings vm1 10.0.0.2
	is "interrupts" "$(e vm1 interrupts)" -gt "$sent"
	for n in 1 2; do
		on vm$n "echo 2 > /sys/class/net/eth0/napi_defer_hard_irqs
		    echo 200000 > /sys/class/net/eth0/gro_flush_timeout"
	done
	transfer vm1 vm2 fd00::2 5000000
	pings vm2 10.0.0.1
	clean vm1 vm2
	finish
}

# answers USECS: a program of vm1, which polls for that long, waits for 90 answers,
# one after the other.  Prints how many interrupts vm1 got.
answers()
{
	local before

	on vm2 "wire udp-recv 5002 > /tmp/recv 2>&1 < /dev/null & wait_port 5002"
	before=$(e vm1 interrupts)
	on vm1 "sysctl -q -w net.core.busy_poll=$1 net.core.busy_read=$1
	    wire udp-sweep 10.0.0.2 5002 16 1455" > /dev/null
	echo $(($(e vm1 interrupts) - before))
}

guest_case routed "Large segments with partial checksums, routed and bridged"
routed_body()
{
	local i

	setup
	set --
	for i in 1 2; do
		set -- "$@" -s "$i,e1000,vale$i:vm$i,path=vm$i.sock,\
mac=$(mac $i),csb=on"
	done
	set -- "$@" -s "3,e1000,vale1:vm3,path=vm3.sock,mac=$(mac 3),csb=on" \
	    -s "4,e1000,vale2:vm4,path=vm4.sock,mac=$(mac 4),csb=on"
	valed_start "$@" || atf_fail "valed does not start"
	vm_valed vm1
	vm_valed vm2
	vm_valed vm3 -device "$(valed_device vm4)"
	vm_wait vm1 vm2 vm3 || atf_fail "the guests do not start"
	on vm1 "up 1 && ip route add 10.0.1.0/24 via 10.0.0.3"
	on vm2 "load && ip addr add 10.0.1.2/24 dev eth0 &&
	    ip link set eth0 up && carrier eth0 &&
	    ip route add 10.0.0.0/24 via 10.0.1.3"
	# vm3 has a leg in each switch, and routes, ...
	on vm3 "up 3 && ip addr add 10.0.1.3/24 dev eth1 &&
	    ip link set eth1 up && carrier eth1 &&
	    sysctl -q -w net.ipv4.ip_forward=1"
	both
	is "uncut" "$(e vm3 rx_offload)" -gt 0
	# ... and is a bridge.
	on vm1 "ip addr add 10.2.0.1/24 dev eth0"
	on vm2 "ip addr add 10.2.0.2/24 dev eth0"
	on vm3 "module bridge && ip addr flush dev eth0 &&
	    ip addr flush dev eth1 && ip link add br0 type bridge &&
	    ip link set eth0 master br0 && ip link set eth1 master br0 &&
	    ip link set br0 up && wait_until forwarding \
	    grep 3 /sys/class/net/br0/brif/eth1/state"
	pings vm1 10.2.0.2
	transfer vm1 vm2 10.2.0.2 10000000
	transfer vm2 vm1 10.2.0.1 10000000
	for i in 1 2 3; do
		no_checksum_errors vm$i
	done
	clean vm3
	finish
}

# both: streams between vm1 and vm2 through vm3.
both()
{
	pings vm1 10.0.1.2
	transfer vm1 vm2 10.0.1.2 10000000
	transfer vm2 vm1 10.0.0.1 10000000
}

guest_case qemu "QEMU's own adapter: knobs, tests, reload"
qemu_body()
{
	local n

	ADAPTER=qemu
	guests 2
	up 1 2
	pings vm1 10.0.0.2
	refused 'not supported' vm1 ethtool --set-priv-flags eth0 csb on
	for n in sc tx_lazy; do
		on vm1 ethtool --set-priv-flags eth0 $n on
		transfer vm1 vm2 10.0.0.2 2000000
		on vm1 ethtool --set-priv-flags eth0 $n off
		transfer vm1 vm2 10.0.0.2 2000000
	done
	on vm1 "ethtool -t eth0 online"
	on vm1 "ethtool -G eth0 rx 256 tx 256 && carrier eth0"
	for n in 1 2 3; do
		on vm1 "rmmod lem && up 1"
	done
	pings vm2 10.0.0.1
	clean vm1
	finish
}
