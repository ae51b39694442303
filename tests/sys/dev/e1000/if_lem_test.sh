# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# if_lem(4) in a FreeBSD guest, on an adapter that the tests may use as they
# like: its interface has an IPv4 address, and a machine at the other end
# answers pings of 20000 bytes.  It may have an interface in VLAN 5, too.
#
#	kyua -v test_suites.bhyve-vale.lem=em0 \
#	    -v test_suites.bhyve-vale.lem_peer=10.0.0.2 \
#	    -v test_suites.bhyve-vale.lem_vlan5=10.0.5.2 test

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"

# An address for documentation, which no machine has.
nobody=192.0.2.1

begin()
{
	local unit

	[ "$(uname -s)" = FreeBSD ] || atf_skip "if_lem runs on FreeBSD"
	ifp=$(atf_config_get lem "")
	peer=$(atf_config_get lem_peer "")
	[ -n "$ifp" ] && [ -n "$peer" ] ||
	    atf_skip "lem= and lem_peer= name no adapter for tests"
	unit=${ifp#em}
	oid=dev.em.$unit
	[ "$(sysctl -n $oid.%desc)" = "Intel 8254x, emulated" ] ||
	    atf_fail "$ifp: not an interface of if_lem"
	sysctl -e $oid | awk -F= '$1 ~ /^dev\.em\.[0-9]+\.[a-z_]+$/' > knobs
	ifconfig $ifp > interface
}

# Restore what begin() found.
end()
{
	sysctl debug.malloc.failure_rate=0 > /dev/null 2>&1
	[ -s knobs ] || return 0
	[ ! -s module ] || kldstat -q -n if_lem || kldload "$(cat module)"
	ifp=$(head -1 interface | cut -d: -f1)
	arp -d $nobody > /dev/null 2>&1
	route -n delete -host $nobody > /dev/null 2>&1
	sysctl $(cat knobs) > /dev/null
	ifconfig $ifp mtu $(sed -n 's/.* mtu //p' interface) tso lro rxcsum \
	    txcsum
}

set_ok()
{
	atf_check -o ignore sysctl $(echo " $*" | sed "s/ / $oid./g")
}

# The adapter offers the shared memory.
has_csb()
{
	local cap dev=em${oid##*.}

	cap=$(pciconf -lc $dev | sed -n 's/.*cap 09\[\(..\)\].*/\1/p')
	[ -n "$cap" ] &&
	    [ "$(pciconf -r $dev $((0x$cap + 4)) | tr -d ' ')" = 42534350 ]
}

counter()
{
	sysctl -n $oid.stats.$1
}

# during COMMAND [argument ...]: runs it, and writes to `delta' by how much each
# counter has grown.
during()
{
	sysctl -e $oid.stats > before
	"$@" || atf_fail "$*"
	sysctl -e $oid.stats > after
	awk -F '[.=]' 'NR == FNR { was[$5] = $6; next }
	    { print $5, $6 - was[$5] }' before after > delta
}

grown()
{
	awk -v name=$1 '$1 == name { print $2 }' delta
}

# check EXPRESSION: the counters' growth, by their names, has this relation.
check()
{
	awk -v expr="$1" '{ n[$1] = $2 } END {
	    for (c in n) print "-v", c "=" n[c] }' delta > values
	awk $(cat values) "BEGIN { exit !($1) }" ||
	    atf_fail "not $1: $(tr '\n' ' ' < delta)"
}

pings()
{
	ping -q -c 20 -i 0.02 $peer | tee ping |
	    grep -q ' 20 packets received'
}

# Packets of many fragments; the stack takes 16 at most.  A slow machine may lose
# one.
fragments()
{
	ping -q -c 5 -i 0.1 -s 20000 $peer | tee ping |
	    grep -q ' [1-5] packets received'
}

answers()
{
	ping -q -c 1 -t 2 $peer
}

expect_answer()
{
	wait_until "an answer of $peer" answers || atf_fail "no answer"
}

# lem_case name description [variable value]...: a case whose body is NAME_run.
lem_case()
{
	local descr=$2 name=$1

	shift 2
	test_case -c end "$name" "$descr" require.user root timeout 900 "$@"
	eval "${name}_body() { begin; ${name}_run; }"
}

lem_case knobs "Each variable takes its least and its greatest value, and \
refuses others with EINVAL, unchanged"
knobs_run()
{
	local name min max bad value

	while read -r name min max; do
		for value in $max $min; do
			set_ok $name=$value
			atf_check_equal "$name=$value" \
			    "$name=$(sysctl -n $oid.$name)"
			for bad in $((max + 1)) 4294967295 \
			    $(($min > 0 ? $min - 1 : 4294967295)); do
				atf_check -s exit:1 -o ignore \
				    -e match:"Invalid argument" \
				    sysctl $oid.$name=$bad
				atf_check_equal $value \
				    "$(sysctl -n $oid.$name)"
			done
		done
	done <<-EOF
		itr 0 65535
		sc 0 1
		tx_lazy 0 1
		csb_rounds 0 65536
		poll 0 100000
		rx_budget 1 1024
		rx_share 1 100
	EOF
	atf_check -s exit:1 -o ignore -e match:"Invalid argument" \
	    sysctl $oid.csb=2
}

lem_case csb_offered "The shared memory is on if the adapter offers it, and \
refused with EOPNOTSUPP if not"
csb_offered_run()
{
	if has_csb; then
		set_ok csb=0
		set_ok csb=1
		expect_answer
	else
		atf_check -s exit:1 -o ignore -e match:"not (available|supported)" \
		    sysctl $oid.csb=1
		atf_check_equal 0 "$(sysctl -n $oid.csb)"
	fi
}

lem_case base "Without any of its modes the driver writes TDT for each packet"
base_run()
{
	set_ok csb=0 sc=0 tx_lazy=0 poll=0 itr=0
	during pings
	check "tx_packets >= 20 && rx_packets >= 20"
	check "tx_kicks == tx_packets && tx_kicks_saved == 0"
	check "interrupts >= 1 && polls == 0"
	during fragments
	# Packets queued while another processor sends go with its write.
	check "tx_kicks + tx_kicks_saved == tx_packets && tx_combined == 0"
}

lem_case sc "With send combining fragments share writes of TDT"
sc_run()
{
	set_ok csb=0 sc=1 tx_lazy=0 poll=0 itr=488
	during fragments
	check "tx_kicks + tx_kicks_saved == tx_packets"
	check "tx_combined > 0 && tx_flushes > 0 && tx_kicks < tx_packets"
}

lem_case itr "Interrupts are at least the interval apart"
itr_run()
{
	local start

	set_ok csb=0 sc=0 tx_lazy=0 poll=0 itr=65535
	start=$(date +%s)
	during ping_fast
	# 65535 is 16.8 ms.
	check "interrupts <= $((($(date +%s) - start + 1) * 60 + 2))"
	check "interrupts > 0 && rx_packets > 0 && tx_packets >= 500"
}

ping_fast()
{
	ping -q -c 500 -i 0.001 -W 1 $peer > ping || :
}

# Frames that nobody answers.
lem_case tx_lazy "Completed packets alone cause no interrupt"
tx_lazy_run()
{
	atf_check -o ignore route -n add -host $nobody -iface $ifp
	atf_check -o ignore arp -s $nobody 02:00:00:00:00:fe
	set_ok csb=0 sc=0 poll=0 itr=0 tx_lazy=0
	during ping_nobody
	check "interrupts > rx_packets && tx_packets >= 20"
	set_ok tx_lazy=1
	during ping_nobody
	check "interrupts <= rx_packets && tx_packets >= 20"
}

ping_nobody()
{
	ping -q -c 20 -i 0.02 -W 1 $nobody > ping || :
}

lem_case csb "With the shared memory few packets need a write"
csb_run()
{
	has_csb || atf_skip "the adapter has no shared memory"
	set_ok csb=1 poll=0
	during fragments
	check "tx_kicks + tx_kicks_saved == tx_packets"
	check "tx_kicks_saved > tx_packets / 2 && tx_combined == 0"
}

lem_case poll "A polled adapter does not interrupt, with each mode"
poll_run()
{
	local mode

	for mode in "csb=0 sc=0" "csb=0 sc=1" "csb=0 tx_lazy=1" \
	    $(has_csb && echo csb=1); do
		set_ok $mode poll=1000
		expect_answer
		during pings
		check "interrupts == 0 && polls > 0 && rx_packets >= 20"
		set_ok poll=0
		during pings
		check "interrupts > 0 && polls == 0"
	done
}

lem_case mtu "The MTU is from 72 to 16110 bytes"
mtu_run()
{
	local mtu

	for mtu in 72 576 1500 9000 16110; do
		atf_check ifconfig $ifp mtu $mtu
		expect_answer
	done
	for mtu in 71 16111; do
		atf_check -s exit:1 -e ignore ifconfig $ifp mtu $mtu
	done
	atf_check -o match:"mtu 16110" ifconfig $ifp
}

lem_case offloads "Each offload is switched while packets are sent"
offloads_run()
{
	local o i

	ping -q -i 0.005 -s 3000 $peer > ping 2>&1 &
	for i in 1 2 3; do
		for o in tso lro rxcsum txcsum; do
			atf_check ifconfig $ifp -$o
			atf_check ifconfig $ifp $o
		done
	done
	kill -INT $!
	wait
	atf_check grep -q "bytes from\|packets received" ping
	expect_answer
	[ "$(counter watchdogs)" -eq 0 ] || atf_fail "watchdog"
}

lem_case modes "All modes are switched while packets are sent"
modes_run()
{
	local i mode

	ping -q -i 0.005 -s 3000 $peer > ping 2>&1 &
	for i in 1 2 3 4 5; do
		for mode in "sc=0 tx_lazy=1" "sc=1 tx_lazy=0" "poll=2000" \
		    "poll=0" "itr=0" "itr=488" "rx_share=1" "rx_share=100" \
		    "csb_rounds=0" "csb_rounds=1024"; do
			set_ok $mode
		done
		! grep -q 'csb=1' knobs || set_ok csb=$((i % 2))
	done
	kill -INT $!
	wait
	expect_answer
	[ "$(counter watchdogs)" -eq 0 ] || atf_fail "watchdog"
}

# There were no buffers; or take_mbufs has ended.
refused_buffers()
{
	# Of more than is copied, and less than a page.
	ping -q -c 500 -i 0.001 -s 1000 -W 1 $peer > ping
	[ $(counter rx_nobuf) -gt "$1" ] || ! kill -0 $taker 2> /dev/null
}

# With this MTU receive buffers are pages, which ping(8) does not need to send.
lem_case nobuf "Reception goes on after all receive buffers were taken" \
    require.memory 1g
nobuf_run()
{
	local before mode taker

	atf_check ifconfig $ifp mtu 4000
	for mode in "csb=0 sc=0 poll=0" "csb=0 poll=1000" \
	    "$(has_csb && echo csb=1) poll=0"; do
		set_ok $mode
		expect_answer
		before=$(counter rx_nobuf)
		"$(atf_get_srcdir)/take_mbufs" 2> taken &
		taker=$!
		wait_until "no buffers" refused_buffers $before ||
		    { kill $taker; atf_fail "there are clusters"; }
		if ! kill $taker 2> /dev/null; then
			wait $taker
			[ $? -eq 69 ] || atf_fail "$(cat taken)"
			atf_skip "$(cat taken)"
		fi
		wait $taker
		wait_until "twenty answers" pings || atf_fail "$mode: loss"
	done
	[ "$(counter watchdogs)" -eq 0 ] || atf_fail "watchdog"
}

# Not while it attaches: ifmedia_add(9) panics if it gets no memory.
lem_case malloc "The interface starts, or says why not, while each n-th \
allocation fails"
malloc_run()
{
	local m rate

	sysctl -n debug.malloc.failure_rate > /dev/null 2>&1 ||
	    atf_skip "the kernel has no options MALLOC_MAKE_FAILURES"
	for rate in 2 3 5 7 11 19 31 53 97 199 401 809 1601 3203; do
		for m in "mtu 9000" "mtu 1500" down up; do
			sysctl debug.malloc.failure_rate=$rate > /dev/null
			ifconfig $ifp $m
			sysctl debug.malloc.failure_rate=0 > /dev/null
		done
		# It may have been too little to start with.
		atf_check ifconfig $ifp down
		atf_check ifconfig $ifp up
		expect_answer
	done
}

# The adapter, by its place on the bus, which it keeps without a driver.
location()
{
	sysctl -n $oid.%location | awk '{ for (i = 1; i <= NF; i++)
	    if ($i ~ /^dbsf=/) print substr($i, 6) }'
}

lem_case detach "The driver detaches and attaches under traffic"
detach_run()
{
	local address netmask where i

	set -- $(awk '$1 == "inet"' interface)
	address=$2 netmask=$4
	where=$(location)
	for i in 1 2 3; do
		ping -q -i 0.005 -s 3000 $peer > ping 2>&1 &
		sleep 0.3
		atf_check devctl detach $ifp
		atf_check devctl attach $where
		kill -INT $!
		wait
		atf_check ifconfig $ifp inet $address netmask $netmask up
		expect_answer
	done
	sysctl $(cat knobs) > /dev/null
}

lem_case link "The link is reported while the interface is down"
link_run()
{
	local address netmask where

	set -- $(awk '$1 == "inet"' interface)
	address=$2 netmask=$4
	where=$(location)
	atf_check ifconfig $ifp down
	atf_check -o match:"status: active" ifconfig $ifp
	atf_check devctl detach $ifp
	dmesg > before
	atf_check devctl attach $where
	atf_check -o match:"status: active" ifconfig $ifp
	dmesg > after
	# ether_ifattach(9) prints the address.
	diff before after | awk -v ifp="$ifp:" '$2 == ifp && $3 == "Ethernet" {
	    attached = 1 } $2 == ifp && $3 == "link" { exit !attached }' ||
	    atf_fail "link before interface: $(diff before after)"
	atf_check ifconfig $ifp inet $address netmask $netmask up
	expect_answer
	sysctl $(cat knobs) > /dev/null
}

lem_case late "Loaded while another driver has the adapter, the module says \
what to do"
late_run()
{
	local address module netmask said where

	[ $(sysctl -a | grep -c '^dev\.em\..*desc: Intel 8254x, emulated') \
	    -eq 1 ] || atf_skip "if_lem has other adapters, too"
	set -- $(awk '$1 == "inet"' interface)
	address=$2 netmask=$4
	where=$(location)
	kldstat -v | sed -n 's/.*if_lem\.ko (\(.*\))$/\1/p' > module
	module=$(cat module)
	atf_check kldunload if_lem
	if ! devctl attach $where; then
		atf_check kldload "$module"
		atf_check ifconfig $ifp inet $address netmask $netmask up
		atf_skip "the kernel has no other driver for it"
	fi
	dmesg > before
	atf_check kldload "$module"
	dmesg > after
	# Both commands, as they are printed.
	said=$(diff before after |
	    sed -n "s/^> $ifp: kept by another driver; for if_lem: //p")
	[ -n "$said" ] || atf_fail "$(diff before after)"
	atf_check sh -c "$said"
	atf_check_equal "Intel 8254x, emulated" "$(sysctl -n $oid.%desc)"
	atf_check ifconfig $ifp inet $address netmask $netmask up
	expect_answer
	sysctl $(cat knobs) > /dev/null
}

lem_case vlan "An interface that vlan(4) uses is not detached"
vlan_run()
{
	ifconfig vlan create > vlan || atf_skip "no vlan(4)"
	atf_check ifconfig $(cat vlan) vlan 5 vlandev $ifp up
	atf_check -s not-exit:0 -o ignore -e match:"busy" devctl detach $ifp
	atf_check ifconfig $(cat vlan) destroy
	expect_answer
}

# Without an interrupt a program that waits for a slot is woken once a second.
netmap_sends()
{
	"$(atf_get_srcdir)/lem_netmap" $ifp 20000 > sends &&
	    grep -q "^sent 20000," sends
}

lem_case netmap "A netmap(4) program sends and receives, or only sends, in \
each mode"
netmap_run()
{
	local mode

	[ -c /dev/netmap ] || atf_skip "the kernel has no netmap"
	for mode in "csb=0 sc=0" "sc=1" "poll=1000" "poll=0" \
	    "$(grep -o 'csb=.*' knobs)" "poll=1000" "poll=0"; do
		set_ok $mode
		atf_check -o match:"^sent 100, answers 100$" \
		    "$(atf_get_srcdir)/lem_netmap" $ifp $peer 100
		during netmap_sends
		check "interrupts + polls > 1 || $(sed 's/.* //' sends) < 10"
		expect_answer
	done
}

lem_case netmap_vlan "A netmap(4) program gets frames with their tags"
netmap_vlan_run()
{
	local to

	[ -c /dev/netmap ] || atf_skip "the kernel has no netmap"
	to=$(atf_config_get lem_vlan5 "")
	[ -n "$to" ] || atf_skip "lem_vlan5= names no address in VLAN 5"
	atf_check -o match:"^sent 10, answers 10$" \
	    "$(atf_get_srcdir)/lem_netmap" $ifp $to 10 5
	expect_answer
}
