# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# valed with attached interfaces: it runs in a network namespace of its own, in
# its sandbox, between other namespaces, which are hosts on the wire.

. "$(atf_get_srcdir)/valed.subr"
. "$(atf_get_srcdir)/hosts.subr"

# two_hosts: A, 10.9.0.1, is on the wire of S's pa, and B, 10.9.0.2, on that of
# pb.
two_hosts()
{
	host A && host S && host B
	wire $S pa $A ea
	wire $S pb $B eb
	in_host $A ip addr add 10.9.0.1/24 dev ea
	in_host $B ip addr add 10.9.0.2/24 dev eb
}

# Whether the thread that tells switches of their uplinks has nothing to do.
carrier_sleeps()
{
	local task

	task=$(grep -l '^carrier$' /proc/$VALED_PID/task/*/comm) &&
	    grep -q '^State:.S' "${task%comm}status"
}

host_case bridge "TCP passes between two attached interfaces, in large \
segments, with right checksums"
bridge_body()
{
	local frames

	two_hosts
	valed_in $S -a vale0:pa -a vale0:pb
	tcp $B 10.9.0.2 $A 20000000
	tcp $A 10.9.0.1 $B 20000000
	wait_must "sleep" carrier_sleeps
	counters $VALED_PID $S
	frames=$(value $S pa rx_frames)
	[ $frames -gt 0 ] || atf_fail "no frames"
	# In frames of the MTU these would be 13,800, and as many answers.
	[ $frames -lt 13800 ] || atf_fail "$frames frames: they were cut"
	for h in $A $B; do
		in_host $h cat /proc/net/snmp > snmp
		awk '/^Tcp: [0-9]/ { exit $NF != 0 }' snmp ||
		    atf_fail "checksums: $(grep Tcp: snmp | tail -n 1)"
	done
	valed_ends $VALED_PID valed.err.$S
	atf_check_equal "" "$(cat valed.err.$S)"
}

listed()
{
	"$VALECTL" -c control | grep -q "$1 "
}

host_case lines "Interfaces that a file attaches are there after a restart; a \
reload attaches and detaches them, with their settings"
lines_body()
{
	two_hosts
	cat > valed.conf <<-END
	attach.vale0:pa=packet
	attach.vale0:none=packet
	port.vale0:pa.limit=1
	END
	valed_in $S -c control -k valed.conf
	# It has its sandbox before interfaces are attached.
	wait_must "vale0:pa" listed vale0:pa
	atf_check -o match:limit=1 "$VALECTL" -c control -o vale0:pa
	grep -q "valed.conf:2: none: " valed.err.$S ||
	    atf_fail "$(cat valed.err.$S)"
	printf 'attach.vale0:pb=packet\nport.vale0:pb.limit=2\n' >> valed.conf
	sed -i /none/d valed.conf
	atf_check "$VALECTL" -c control reload
	grep "^valed: reloaded: vale0:pb: the interface is attached" \
	    valed.err.$S || atf_fail "not told"
	atf_check -o match:limit=2 "$VALECTL" -c control -o vale0:pb
	tcp $B 10.9.0.2 $A 1000000
	# What valectl has detached is not attached by a reload that has no
	# change for it, and detaching it twice is no error.
	atf_check "$VALECTL" -c control -d vale0:pb
	sed -i /pb/d valed.conf
	atf_check "$VALECTL" -c control reload
	atf_check -o not-match:vale0:pb "$VALECTL" -c control
	echo attach.vale0:pb=packet >> valed.conf
	atf_check "$VALECTL" -c control reload
	tcp $A 10.9.0.1 $B 1000000
	# The name of its port is nobody else's.  Each reload tries again.
	sed -i s/pb=packet/nope=packet/ valed.conf
	for i in 1 2; do
		atf_check -s exit:1 -e match:"valed.conf:[0-9]*: nope: " \
		    "$VALECTL" -c control reload
	done
	atf_check -o not-match:vale0:pb "$VALECTL" -c control
	sed -i s/nope=packet/pb=packet/ valed.conf
	valed_ends $VALED_PID valed.err.$S
	valed_in $S -c control -k valed.conf
	tcp $A 10.9.0.1 $B 1000000
	atf_check_equal "" "$(cat valed.err.$S)"
}

# serving PID: the process that serves, of a valed -R.
serving()
{
	awk '{ print $1 }' /proc/$1/task/$1/children
}

# another PID OLD: another process serves.
another()
{
	local now

	now=$(serving $1)
	[ -n "$now" ] && [ "$now" != "$2" ] &&
	    "$VALECTL" -c control > /dev/null 2>&1
}

promiscuity()
{
	in_host $1 ip -d link show $2 | grep -q " promiscuity $3 "
}

# goes_on SUPERVISOR restart|crash...: vale0:pa and vale0:pb pass TCP after each.
goes_on()
{
	local how old pid=$1

	shift
	for how; do
		old=$(serving $pid)
		case $how in
		restart)
			atf_check "$VALECTL" -c control restart
			;;
		crash)
			kill -9 $old
			;;
		esac
		wait_until "another process" another $pid "$old" ||
		    atf_fail "$how: $(cat valed.err.$S)"
		# Valed answers before it attaches interfaces.
		wait_must "vale0:pa" listed vale0:pa
		atf_check -o match:limit=9 "$VALECTL" -c control -o vale0:pa
		tcp $B 10.9.0.2 $A 1000000
		tcp $A 10.9.0.1 $B 1000000
		promiscuity $S $(attached) 1 || atf_fail "promiscuous mode"
	done
}

# attached: the name that the interface at vale0:pa has now.
attached()
{
	in_host $S ip link show pz > /dev/null 2>&1 && echo pz || echo pa
}

host_case kept "With -R, interfaces that valectl has attached stay attached \
after restarts and crashes, without privileges, until it detaches them" setpriv
kept_body()
{
	local pid

	two_hosts
	for_others
	nsenter -t $S -n setpriv --inh-caps=-all --bounding-set=-all \
	    "$VALED" -R -c control > valed.out.$S 2> valed.err.$S &
	pid=$!
	echo $pid >> pids
	wait_until "valed" another $pid 0 || atf_fail "$(cat valed.err.$S)"
	atf_check nsenter -t $S -n "$VALECTL" -c control -a vale0:pa
	atf_check nsenter -t $S -n "$VALECTL" -c control -a vale0:pb
	atf_check "$VALECTL" -c control -o vale0:pa limit=9
	tcp $B 10.9.0.2 $A 1000000
	goes_on $pid restart crash crash restart
	atf_check "$VALECTL" -c control -d vale0:pa
	wait_must "no promiscuous mode" promiscuity $S pa 0
	atf_check "$VALECTL" -c control restart
	wait_must "vale0:pb" listed vale0:pb
	atf_check -o not-match:vale0:pa -o match:vale0:pb \
	    "$VALECTL" -c control
	atf_check -o inline:"2\n" grep -vc restarted: valed.err.$S
	valed_ends $pid valed.err.$S
	wait_must "no promiscuous mode" promiscuity $S pb 0
}

host_case privileges "Lines of a file attach interfaces with the privileges of \
attach.conf, at the start and by a reload, and valed serves without any" setpriv
privileges_body()
{
	local caps=+net_raw,+net_admin,+bpf pid

	two_hosts
	echo attach.vale0:pa=packet > valed.conf
	chmod 644 valed.conf
	for_others
	nsenter -t $S -n setpriv --reuid 65534 --regid 65534 --clear-groups \
	    --inh-caps=$caps --ambient-caps=$caps --bounding-set=-all,$caps \
	    "$VALED" -k valed.conf > valed.out.$S 2> valed.err.$S &
	pid=$!
	echo $pid >> pids
	wait_until "the sandbox" grep -q "^Seccomp:.*2" /proc/$pid/status ||
	    atf_fail "valed: $(cat valed.err.$S)"
	atf_check -o match:"^CapPrm:.*0000$" grep ^CapPrm: /proc/$pid/status
	echo attach.vale0:pb=packet >> valed.conf
	kill -HUP $pid
	wait_until "the interface" grep -q "vale0:pb: the interface is \
attached" valed.err.$S || atf_fail "valed: $(cat valed.err.$S)"
	tcp $B 10.9.0.2 $A 1000000
	atf_check -o inline:"1\n" -x "wc -l < valed.err.$S"
	valed_ends $pid valed.err.$S
}

# plain PID NAME...: frames are there as on a wire, which AF_XDP needs.
plain()
{
	local name pid=$1

	shift
	for name; do
		in_host $pid python3 "$(atf_get_srcdir)/capture.py" plain \
		    $name || atf_fail "$name: its offloads stay on"
	done
}

# Skips the test if the kernel lacks AF_XDP.
needs_xdp()
{
	python3 -c 'import socket; socket.socket(44, socket.SOCK_RAW)' ||
	    atf_skip "the kernel has no AF_XDP"
}

host_case xdp "TCP passes between two interfaces that are attached with \
AF_XDP, and between one of these and one that has large frames"
xdp_body()
{
	local c

	needs_xdp
	two_hosts
	atf_check -s exit:69 -o empty -e match:"ethtool -K pa rxvlan off" \
	    nsenter -t $S -n "$VALED" -a vale0:pa,kind=xdp
	plain $S pa pb
	plain $A ea
	plain $B eb
	valed_in $S -a vale0:pa,kind=xdp -a vale0:pb,kind=xdp
	tcp $B 10.9.0.2 $A 5000000
	tcp $A 10.9.0.1 $B 5000000
	counters $VALED_PID $S
	for c in rx_drop_bad rx_drop_long tx_errors tx_drop_mtu tx_drop_bad; do
		atf_check_equal "$c 0" "$c $(value $S pa $c)"
	done
	valed_ends $VALED_PID valed.err.$S
	atf_check_equal "" "$(cat valed.err.$S)"

	# What B's host sends is large now; A's interface gets what fits it.
	in_host $S ip link del pb
	wire $S pb $B eb
	in_host $B ip addr add 10.9.0.2/24 dev eb
	valed_in $S -a vale0:pa,kind=xdp -a vale0:pb
	tcp $A 10.9.0.1 $B 5000000
	tcp $B 10.9.0.2 $A 5000000
	counters $VALED_PID $S
	atf_check_equal 0 $(value $S pa tx_drop_mtu)
}

host_case kept_xdp "With -R, an interface that valectl has attached with \
kind=xdp is opened again"
kept_xdp_body()
{
	local pid

	needs_xdp
	two_hosts
	plain $S pa pb
	plain $A ea
	plain $B eb
	nsenter -t $S -n "$VALED" -R -c control > valed.out.$S 2> valed.err.$S &
	pid=$!
	echo $pid >> pids
	wait_until "valed" another $pid 0 || atf_fail "$(cat valed.err.$S)"
	atf_check nsenter -t $S -n "$VALECTL" -c control -a vale0:pa,kind=xdp
	atf_check nsenter -t $S -n "$VALECTL" -c control -a vale0:pb
	atf_check "$VALECTL" -c control -o vale0:pa limit=9
	goes_on $pid restart crash
	# By whatever name: the old one is another's now.
	in_host $S ip link set pa down
	in_host $S ip link set pa name pz up
	wire $S pa $B eq
	wait_until "the name" said 1 "pa: the interface is called pz now" ||
	    atf_fail "no line: $(cat valed.err.$S)"
	goes_on $pid restart
	atf_check "$VALECTL" -c control -d vale0:pa
	wait_must "no promiscuous mode" promiscuity $S pz 0
	in_host $S ip -d link show pz > link
	atf_check -o not-match:xdp cat link
	valed_ends $pid valed.err.$S
}

# said N TEXT: S's valed has written N lines with it.
said()
{
	[ $(grep -c "$2" valed.err.$S) -eq $1 ]
}

# made_again KIND: pa is removed and made again, and passes TCP.  The number of
# times is in $rounds.
made_again()
{
	rounds=$((rounds + 1))
	in_host $S ip link del pa
	wait_until "the end" said $rounds "pa: the interface is gone" ||
	    atf_fail "not gone: $(cat valed.err.$S)"
	again $1
}

again()
{
	wire $S pa $A ea
	in_host $A ip addr add 10.9.0.1/24 dev ea
	[ $1 = packet ] || plain $A ea
	[ $1 = packet ] || plain $S pa
	wait_until "vale0:pa" said $rounds "pa: the interface is attached" ||
	    atf_fail "not attached: $(cat valed.err.$S)"
	tcp $B 10.9.0.2 $A 1000000
	tcp $A 10.9.0.1 $B 1000000
}

host_case again "An interface that is made again is attached again, also after a \
restart and when valed was started before there was one; its port stays, and its \
settings"
again_body()
{
	made_again_body packet
}

host_case xdp_again "The same with AF_XDP"
xdp_again_body()
{
	needs_xdp
	made_again_body xdp
}

# made_again_body KIND
made_again_body()
{
	local pid rounds=1

	host A && host S && host B
	wire $S pb $B eb
	in_host $B ip addr add 10.9.0.2/24 dev eb
	[ $1 = packet ] || plain $S pb
	[ $1 = packet ] || plain $B eb
	printf "attach.vale0:%s\n" pa=$1 pc=packet > valed.conf
	nsenter -t $S -n "$VALED" -R -c control -k valed.conf -a vale0:pb \
	    > valed.out.$S 2> valed.err.$S &
	pid=$!
	echo $pid >> pids
	wait_until "valed" another $pid 0 || atf_fail "$(cat valed.err.$S)"
	wait_until "the line" said 1 "valed.conf:1: pa: no such interface" ||
	    atf_fail "$(cat valed.err.$S)"
	wait_must "the line" said 1 "valed.conf:2: pc: no such interface"
	again $1
	rounds=0
	: > valed.err.$S
	atf_check "$VALECTL" -c control -o vale0:pa limit=9
	# valed looks for both, and says of neither once more that there is none.
	in_host $S ip link del pa
	rounds=1
	wait_must "the end" said 1 "pa: the interface is gone"
	wire $S pc $A ec
	wait_must "vale0:pc" said 1 "pc: the interface is attached"
	atf_check_equal 0 $(grep -c "no such interface" valed.err.$S)
	again $1
	made_again $1
	made_again $1
	atf_check -o match:limit=9 "$VALECTL" -c control -o vale0:pa
	atf_check "$VALECTL" -c control restart
	wait_must "vale0:pa" listed vale0:pa
	made_again $1
	# A reload sees that there is none, and that there is one.
	in_host $S ip link del pa
	rounds=$((rounds + 1))
	wait_must "the end" said $rounds "pa: the interface is gone"
	wait_until "the reload" reload_fails ||
	    atf_fail "it has what is gone: $(cat valed.err.$S)"
	again $1
	atf_check "$VALECTL" -c control reload
	made_again $1
	# A line that is left out while there is none: the port ends.
	in_host $S ip link del pa
	rounds=$((rounds + 1))
	wait_must "the end" said $rounds "pa: the interface is gone"
	: > valed.conf
	atf_check "$VALECTL" -c control reload
	atf_check -o not-match:vale0:pa "$VALECTL" -c control
	valed_ends $pid valed.err.$S
}

reload_fails()
{
	! "$VALECTL" -c control reload 2> why &&
	    grep -q "valed.conf:1: pa: no such interface" why
}


host_case xdp_queues "An interface that gets more queues is attached again with \
all of them" ethtool
xdp_queues_body()
{
	local i

	needs_xdp
	host A && host S && host B
	in_host $S ip link add pa numrxqueues 8 numtxqueues 8 type veth peer \
	    name ea numrxqueues 4 numtxqueues 4 netns $A || atf_skip "no veth"
	in_host $S ethtool -L pa rx 1 tx 1 && in_host $A ethtool -L ea rx 1 \
	    tx 1 || atf_skip "the kernel cannot change the queues"
	in_host $S ip link set pa up && in_host $A ip link set ea up
	wire $S pb $B eb
	in_host $A ip addr add 10.9.0.1/24 dev ea
	in_host $B ip addr add 10.9.0.2/24 dev eb
	plain $A ea
	plain $S pa
	valed_in $S -c control -a vale0:pa,kind=xdp -a vale0:pb
	tcp $B 10.9.0.2 $A 1000000
	# Of another one that valectl has attached valed knows no line to attach
	# the interface again, and leaves its queues as they are.
	in_host $S ip link add pc numrxqueues 4 numtxqueues 4 type veth peer \
	    name ec numrxqueues 4 numtxqueues 4 netns $A
	in_host $S ethtool -L pc rx 1 tx 1 && in_host $A ethtool -L ec rx 1 tx 1
	in_host $S ip link set pc up && in_host $A ip link set ec up
	plain $A ec
	plain $S pc
	atf_check nsenter -t $S -n "$VALECTL" -c control -a vale0:pc,kind=xdp
	in_host $S ethtool -L pc rx 4 tx 4 ||
	    atf_skip "the kernel does not add queues under XDP"
	wait_must "the line of pc" said 1 "pc: 4 receive queues"
	in_host $S ethtool -L pa rx 4 tx 4
	wait_until "the end" said 1 "pa: 4 receive queues" ||
	    atf_fail "not noticed: $(cat valed.err.$S)"
	wait_until "vale0:pa" said 1 "pa: the interface is attached" ||
	    atf_fail "not attached: $(cat valed.err.$S)"
	# Connections come from all queues; there are no fewer at this end.
	in_host $A ethtool -L ea rx 4 tx 4
	for i in 1 2 3 4 5 6 7 8; do
		tcp $B 10.9.0.2 $A 10000
	done
	tcp $A 10.9.0.1 $B 1000000
	in_host $S ip link del pb
	wait_must "the end" said 1 "pb: the interface is gone"
	atf_check -o ignore "$VALECTL" -c control
	in_host $S ip link show pc > link
	atf_check -o match:xdp cat link

	# By its old name it cannot be opened again: it stays as it is.
	in_host $S ip link set pa down
	in_host $S ip link set pa name pz up
	wait_must "the name" said 1 "pa: the interface is called pz now"
	in_host $S ethtool -L pz rx 8 tx 8
	wait_must "the line of pz" said 1 "pa: 8 receive queues"
	wire $S pb $B eb
	in_host $B ip addr add 10.9.0.2/24 dev eb
	# Valed has looked at all of them then.
	wait_must "vale0:pb" said 1 "pb: the interface is attached"
	in_host $S ip link show pz > link
	atf_check -o match:xdp cat link
	tcp $A 10.9.0.1 $B 10000
}

host_case again_by_valectl "valectl attaches an interface in place of one that \
is gone, and of no other" setpriv
again_by_valectl_body()
{
	local rounds=0

	two_hosts
	nsenter -t $S -n setpriv --inh-caps=-all --bounding-set=-all \
	    "$VALED" -c control > valed.out.$S 2> valed.err.$S &
	echo $! >> pids
	wait_must "valed" "$VALECTL" -c control
	atf_check nsenter -t $S -n "$VALECTL" -c control -a vale0:pb
	atf_check nsenter -t $S -n "$VALECTL" -c control -a vale0:pa
	atf_check -s exit:65 -e match:"vale0:pa: pa is attached to vale0 \
already" nsenter -t $S -n "$VALECTL" -c control -a vale0:pa
	in_host $S ip link del pa
	wait_must "the end" said 1 "pa: the interface is gone"
	wire $S pa $A ea
	in_host $A ip addr add 10.9.0.1/24 dev ea
	atf_check nsenter -t $S -n "$VALECTL" -c control -a vale0:pa
	tcp $B 10.9.0.2 $A 1000000
	tcp $A 10.9.0.1 $B 1000000
}

host_case addresses "An interface with the host's addresses is attached, with a \
line that names one"
addresses_body()
{
	local line="at which the host is not reached while the interface is \
attached"

	two_hosts
	in_host $S ip addr add 192.0.2.7/24 dev pa
	valed_in $S -c control -a vale0:pa
	atf_check_equal "valed: -a vale0:pa: pa has the address 192.0.2.7, \
$line" "$(cat valed.err.$S)"
	# Not for that of the link.
	in_host $S ip -6 addr add fe80::7/64 dev pb nodad
	atf_check nsenter -t $S -n "$VALECTL" -c control -a vale0:pb
	atf_check nsenter -t $S -n "$VALECTL" -c control -d vale0:pb
	in_host $S ip -6 addr add fd00::7/64 dev pb nodad
	atf_check -e inline:"valectl: vale0:pb: pb has the address fd00::7, \
$line\n" nsenter -t $S -n "$VALECTL" -c control -a vale0:pb
}

host_case gone_crash "With -R, valed serves again after a crash when an \
interface of -a is gone, and attaches one that comes back"
gone_crash_body()
{
	local old pid rounds=1

	two_hosts
	nsenter -t $S -n "$VALED" -R -c control -a vale0:pa -a vale0:pb \
	    > valed.out.$S 2> valed.err.$S &
	pid=$!
	echo $pid >> pids
	wait_until "valed" another $pid 0 || atf_fail "$(cat valed.err.$S)"
	wait_must "vale0:pb" listed vale0:pb
	in_host $S ip link del pa
	wait_must "the end" said 1 "pa: the interface is gone"
	old=$(serving $pid)
	kill -9 $old
	wait_until "another process" another $pid "$old" ||
	    atf_fail "none: $(cat valed.err.$S)"
	atf_check -o not-match:vale0:pa "$VALECTL" -c control
	said 1 "valed: -a vale0:pa: pa: no such interface" ||
	    atf_fail "$(cat valed.err.$S)"
	again packet
	valed_ends $pid valed.err.$S
	# At the first start it is an error.
	in_host $S ip link del pa
	atf_check -s exit:69 -e match:"-a vale0:pa: pa: no such interface" \
	    nsenter -t $S -n "$VALED" -R -c control -a vale0:pa
}

promiscuous()
{
	in_host $1 ip -d link show $2 | grep -q "promiscuity $3"
}

answers()
{
	in_host $1 timeout 2 python3 "$(atf_get_srcdir)/stream.py" refused $2
}

host_case killed "After SIGKILL the interface is the host's again"
killed_body()
{
	killed packet
}

host_case xdp_killed "The same with AF_XDP"
xdp_killed_body()
{
	needs_xdp
	killed xdp
	! in_host $S ip link show pa | grep prog/xdp ||
	    atf_fail "the program is left"
}

# killed KIND
killed()
{
	host A && host S
	wire $S pa $A ea
	in_host $A ip addr add 10.9.0.1/24 dev ea
	in_host $S ip addr add 10.9.0.3/24 dev pa
	wait_until "the host" answers $A 10.9.0.3 || atf_fail "no answer"
	plain $S pa
	valed_in $S -a vale0:pa,kind=$1
	promiscuous $S pa 1 || atf_fail "not promiscuous"
	! answers $A 10.9.0.3 || atf_fail "the host answers"
	kill -9 $VALED_PID
	wait $VALED_PID
	wait_until "normal mode" promiscuous $S pa 0 ||
	    atf_fail "still promiscuous"
	wait_until "the host" answers $A 10.9.0.3 || atf_fail "no answer"
}

host_case big "Packets of more than 64 KB (BIG TCP) are dropped and counted, \
TCP gets through, and a line says how to do without"
big_body()
{
	local dropped

	two_hosts
	in_host $A ip link set ea gso_max_size 185000 ||
	    atf_skip "no packets of more than 64 KB"
	in_host $A ip -6 addr add fd00::1/64 dev ea nodad
	in_host $B ip -6 addr add fd00::2/64 dev eb nodad
	valed_in $S -a vale0:pa -a vale0:pb
	tcp $B fd00::2 $A 3000000
	counters $VALED_PID $S
	[ $(value $S pa rx_drop_long) -gt 0 ] ||
	    atf_skip "TCP sends no packets of more than 64 KB"
	wait_until "a line" grep -q "more than 64 KB are dropped" valed.err.$S ||
	    atf_fail "no line"
	# What it says.
	in_host $A ip link set ea gso_max_size 65536
	counters $VALED_PID $S
	dropped=$(value $S pa rx_drop_long)
	tcp $B fd00::2 $A 3000000
	counters $VALED_PID $S
	atf_check_equal $dropped $(value $S pa rx_drop_long)
	atf_check_equal 1 $(grep -c "64 KB" valed.err.$S)
}

# passed COUNT: what B's end of the pair has received, at least.
passed()
{
	in_host $B cat /proc/net/dev | tr : ' ' |
	    awk -v n=$1 '$1 == "eb" { exit !($3 >= n) }'
}

host_case stop "In the sandbox, too, a receive ring that the kernel has \
stopped is opened again"
stop_body()
{
	host S && host B
	wire $S pb $B eb
	in_host $S ip tuntap add tap0 mode tap ||
	    atf_skip "no TAP interfaces"
	in_host $S ip link set tap0 up
	# Each line on its input is a command: stop the ring; send some frames.
	mkfifo commands
	nsenter -t $S -n python3 -c 'import fcntl, os, struct, sys
f = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(f, 0x400454ca, struct.pack("16sH22x", b"tap0", 0x5002))
ether = b"\xff" * 6 + bytes([2, 0, 0, 0, 0, 1])
ip = bytes([0x45, 0, 4000 >> 8, 4000 & 255]) + bytes(4) + bytes(
    [64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2])
udp = bytes([0, 9, 0, 9, 3980 >> 8, 3980 & 255, 0, 0]) + bytes(3972)
for line in sys.stdin:
    if line == "stop\n":
        # Fragments of UDP, which no virtio-net header tells any more.
        os.write(f, struct.pack("<BBHHHH", 1, 3, 42, 1480, 34, 6) +
                 ether + b"\x08\x00" + ip + udp)
    else:
        for i in range(10):
            os.write(f, bytes(10) + ether + b"\x88\xb5" + bytes(46))
' < commands 2> tap.err &
	echo $! >> pids
	exec 9> commands
	wait_until "carrier" carrier || atf_fail "no carrier: $(cat tap.err)"
	valed_in $S -a vale0:tap0 -a vale0:pb
	wait_until "frames" frames_pass || atf_fail "no frames"
	echo stop >&9
	wait_until "frames after that" frames_pass || atf_fail "no frames"
	counters $VALED_PID $S
	[ $(value $S tap0 rx_stops) -gt 0 ] ||
	    atf_skip "this kernel's ring does not stop"
	atf_check_equal 1 $(grep -c "receive ring stopped" valed.err.$S)
	valed_ends $VALED_PID valed.err.$S
}

carrier()
{
	in_host $S ip link show tap0 | grep -q LOWER_UP
}

# Ten frames from the TAP reach B's host.
frames_pass()
{
	local n

	n=$(in_host $B cat /proc/net/dev | tr : ' ' |
	    awk '$1 == "eb" { print $3 }')
	echo send >&9
	sleep 0.1
	passed $((n + 10))
}

host_case live "-v prints a line for the interface, with what it dropped"
live_body()
{
	host A && host S
	wire $S pa $A ea
	in_host $A ip addr add 10.9.0.1/24 dev ea
	in_host $S ip link set pa mtu 1000
	wire $S pb $A eb
	valed_in $S -v -a vale0:pa -a vale0:pb
	# A frame of 1514 bytes to all.
	in_host $A python3 -c 'import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eb", 0))
s.send(bytes([255] * 6 + [2] + [0] * 4 + [1, 8, 0]) + bytes(1500))'
	wait_until "the dropped frame" grep -q \
	    '^pa tx .* calls, rx .*, port tx .*, tx_drop_mtu [1-9]' valed.out.$S ||
	    atf_fail "no line: $(cat valed.out.$S)"
	wait_until "the other interface" grep -q \
	    '^pb tx .* calls, rx [1-9][0-9]* frames' valed.out.$S ||
	    atf_fail "no line: $(cat valed.out.$S)"
}

# without CAPABILITIES KIND WHY: valed lacks these, and says so.
without()
{
	atf_check -s exit:69 -o empty \
	    -e inline:"valed: -a vale0:p: p: $3\n" nsenter -t $S -n \
	    setpriv --bounding-set="$1" "$VALED" -a "vale0:p,kind=$2"
}

host_case capabilities "An interface that cannot be attached without a \
capability is refused with its name" setpriv
capabilities_body()
{
	local denied="Operation not permitted: it takes"

	host S
	in_host $S ip link add p type veth peer name q ||
	    atf_skip "no veth interfaces"
	without -net_raw packet "packet socket: $denied CAP_NET_RAW"
	without -net_admin packet "SO_SNDBUFFORCE: $denied CAP_NET_ADMIN"
	needs_xdp
	in_host $S ip link set p up
	in_host $S ip link set q up
	plain $S p q
	without -net_raw xdp "packet socket: $denied CAP_NET_RAW"
	(ulimit -l 64; without -ipc_lock xdp "AF_XDP memory: No buffer space \
available: it takes CAP_IPC_LOCK, or more memory that may be locked") || exit
	[ "$(cat /proc/sys/kernel/unprivileged_bpf_disabled)" != 0 ] ||
	    atf_skip "without privileges bpf(2) makes maps here"
	for capability in -bpf -net_admin; do
		without $capability,-sys_admin xdp \
		    "map of sockets: $denied CAP_BPF and CAP_NET_ADMIN"
	done
}
