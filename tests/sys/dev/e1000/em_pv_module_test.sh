# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# em_pv(4) in a FreeBSD guest, on an adapter that the tests may use as they
# like: its interface has an IPv4 address, and a machine at the other end
# answers pings of 20000 bytes.  It may have an interface in VLAN 5, too.
#
#	kyua -v test_suites.bhyve-vale.em_pv=em0 \
#	    -v test_suites.bhyve-vale.em_pv_peer=10.0.0.2 \
#	    -v test_suites.bhyve-vale.em_pv_vlan5=10.0.5.2 test

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"

begin()
{
	local name unit

	[ "$(uname -s)" = FreeBSD ] || atf_skip "em_pv runs on FreeBSD"
	ifp=$(atf_config_get em_pv "")
	peer=$(atf_config_get em_pv_peer "")
	[ -n "$ifp" ] && [ -n "$peer" ] ||
	    atf_skip "em_pv= and em_pv_peer= name no adapter for tests"
	unit=${ifp#em}
	oid=dev.em.$unit
	# The counters, too, have no node of their own.
	sysctl -n $oid.rx_share > /dev/null 2>&1 ||
	    atf_fail "$ifp: not an interface of em_pv"
	for name in itr sc csb poll rx_share; do
		echo $oid.$name=$(sysctl -n $oid.$name)
	done > knobs
	ifconfig $ifp > interface
	pciconf -lc $ifp > capabilities || atf_fail "no capabilities of $ifp"
	# 1: em_pv does not count interrupts.
	msix=$(grep -c "MSI-X .*enabled" capabilities)
}

# Restore what begin() found.
end()
{
	local option options

	[ -s knobs ] || return 0
	ifp=$(head -1 interface | cut -d: -f1)
	sysctl $(cat knobs) > /dev/null
	ifconfig $ifp mtu $(sed -n 's/.* mtu //p' interface)
	options=$(sed -n 's/.*options=[^<]*//p' interface |
	    tr '<>A-Z' ',,a-z' | tr -d '_\n')
	for option in txcsum rxcsum tso4 tso6 lro vlanhwfilter; do
		case $options in
		*,$option,*) ifconfig $ifp $option ;;
		*) ifconfig $ifp -$option ;;
		esac
	done
}

set_ok()
{
	atf_check -o ignore sysctl $(echo " $*" | sed "s/ / $oid./g")
}

# The adapter offers the shared memory.
has_csb()
{
	local cap dev=em${oid##*.}

	cap=$(sed -n 's/.*cap 09\[\(..\)\].*/\1/p' capabilities)
	[ -n "$cap" ] &&
	    [ "$(pciconf -r $dev $((0x$cap + 4)) | tr -d ' ')" = 42534350 ]
}

counter()
{
	sysctl -n $oid.$1
}

# during COMMAND [argument ...]: runs it, and writes to `delta' by how much each
# counter has grown.
during()
{
	counters > before
	"$@" || atf_fail "$*"
	counters > after
	awk 'NR == FNR { was[$1] = $2; next }
	    { print $1, $2 - was[$1] }' before after > delta
}

counters()
{
	local name

	for name in tx_kicks tx_kicks_saved tx_combined tx_flushes rx_kicks \
	    intrs polls; do
		echo $name $(counter $name)
	done
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

# pv_case name description [variable value]...: a case whose body is NAME_run.
pv_case()
{
	local descr=$2 name=$1

	shift 2
	test_case -c end "$name" "$descr" require.user root timeout 900 "$@"
	eval "${name}_body() { begin; ${name}_run; }"
}

pv_case knobs "Each variable takes its least and its greatest value, and \
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
		poll 0 100000
		rx_share 1 100
	EOF
	atf_check -s exit:1 -o ignore -e match:"Invalid argument" \
	    sysctl $oid.csb=2
}

pv_case csb_offered "The shared memory is on if the adapter offers it, and \
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

pv_case base "Without any of its modes the driver writes TDT for each packet"
base_run()
{
	set_ok csb=0 sc=0 poll=0 itr=0
	during pings
	check "tx_kicks >= 20 && tx_kicks_saved == 0 && tx_combined == 0"
	check "(intrs >= 1 || $msix) && polls == 0"
}

pv_case sc "With send combining fragments share writes of TDT"
sc_run()
{
	case $(sysctl -n $oid.%pnpinfo) in
	*subvendor=0x1af4*)
		has_csb || atf_skip "QEMU's adapter sends while TDT is written"
		;;
	esac
	set_ok csb=0 sc=1 poll=0 itr=488
	during fragments
	check "tx_combined > 0 && tx_flushes > 0 && tx_kicks_saved == 0"
}

pv_case itr "Interrupts are at least the interval apart"
itr_run()
{
	local start

	set_ok csb=0 sc=0 poll=0 itr=65535
	start=$(date +%s)
	during ping_fast
	# 65535 is 16.8 ms.
	check "intrs <= $((($(date +%s) - start + 1) * 60 + 2))"
	check "(intrs > 0 || $msix) && tx_kicks >= 500"
}

ping_fast()
{
	ping -q -c 500 -i 0.001 -W 1 $peer > ping || :
}

pv_case csb "With the shared memory few packets need a write"
csb_run()
{
	has_csb || atf_skip "the adapter has no shared memory"
	set_ok csb=1 poll=0
	during fragments
	check "tx_kicks_saved > tx_kicks && tx_combined == 0"
}

pv_case poll "A polled adapter does not interrupt, with each mode"
poll_run()
{
	local mode

	for mode in "csb=0 sc=0" "csb=0 sc=1" $(has_csb && echo csb=1); do
		set_ok $mode poll=1000
		expect_answer
		during pings
		check "intrs == 0 && polls > 0"
		set_ok poll=0
		during pings
		check "(intrs > 0 || $msix) && polls == 0"
	done
}

pv_case mtu "The interface starts with an MTU of 9000 and of 1500 bytes"
mtu_run()
{
	local mtu

	for mtu in 9000 1500; do
		atf_check ifconfig $ifp mtu $mtu
		expect_answer
	done
}

# no_watchdog COMMAND [argument ...]: runs it while packets are sent; answers
# come afterwards, and em(4) has reset nothing.
no_watchdog()
{
	local before=$(counter watchdog_timeouts)

	ping -q -i 0.005 -s 3000 $peer > ping 2>&1 &
	"$@"
	kill -INT $!
	wait
	expect_answer
	[ "$(counter watchdog_timeouts)" -eq "$before" ] || atf_fail "watchdog"
}

offloads_switched()
{
	local i o

	for i in 1 2 3; do
		for o in tso lro rxcsum txcsum; do
			atf_check ifconfig $ifp -$o
			atf_check ifconfig $ifp $o
		done
	done
}

pv_case offloads "Each offload is switched while packets are sent"
offloads_run()
{
	no_watchdog offloads_switched
}

modes_switched()
{
	local i mode

	for i in 1 2 3 4 5; do
		for mode in "sc=0" "sc=1" "poll=2000" "poll=0" "itr=0" \
		    "itr=488" "rx_share=1" "rx_share=100"; do
			set_ok $mode
		done
		! has_csb || set_ok csb=$((i % 2))
	done
}

pv_case modes "All modes are switched while packets are sent"
modes_run()
{
	no_watchdog modes_switched
}

restarted()
{
	local i

	for i in 1 2 3; do
		atf_check devctl suspend $ifp
		atf_check devctl resume $ifp
		expect_answer
		atf_check ifconfig $ifp media 100baseTX
		atf_check ifconfig $ifp media autoselect
		expect_answer
	done
}

pv_case restart "The driver goes on after it was suspended, and after a change of \
the media, in each mode"
restart_run()
{
	local mode

	for mode in "csb=0 sc=0" "sc=1" "poll=1000" "poll=0" \
	    $(has_csb && echo csb=1) "poll=1000"; do
		set_ok $mode
		sysctl $(sed 's/=.*//' knobs) > before
		no_watchdog restarted
		sysctl $(sed 's/=.*//' knobs) | diff before - ||
		    atf_fail "knobs"
	done
}

# The adapter, by its place on the bus, which it keeps without a driver.
location()
{
	sysctl -n $oid.%location | awk '{ for (i = 1; i <= NF; i++)
	    if ($i ~ /^dbsf=/) print substr($i, 6) }'
}

pv_case detach "The driver detaches and attaches under traffic"
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

pv_case vlan "An interface that vlan(4) uses is not detached"
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

pv_case netmap "A netmap(4) program sends and receives, or only sends, in \
each mode"
netmap_run()
{
	local mode

	[ -c /dev/netmap ] || atf_skip "the kernel has no netmap"
	for mode in "csb=0 sc=0" "sc=1" "poll=1000" "poll=0" \
	    $(has_csb && echo csb=1) "poll=1000" "poll=0"; do
		set_ok $mode
		atf_check -o match:"^sent 100, answers 100$" \
		    "$(atf_get_srcdir)/lem_netmap" $ifp $peer 100
		during netmap_sends
		check "intrs + polls > 1 || $msix || \
		    $(sed 's/.* //' sends) < 10"
		expect_answer
	done
}

pv_case netmap_vlan "A netmap(4) program gets frames with their tags"
netmap_vlan_run()
{
	local to

	[ -c /dev/netmap ] || atf_skip "the kernel has no netmap"
	to=$(atf_config_get em_pv_vlan5 "")
	[ -n "$to" ] || atf_skip "em_pv_vlan5= names no address in VLAN 5"
	atf_check ifconfig $ifp -vlanhwfilter
	atf_check -o match:"^sent 10, answers 10$" \
	    "$(atf_get_srcdir)/lem_netmap" $ifp $to 10 5
	atf_check ifconfig $ifp vlanhwfilter
	expect_answer
}
