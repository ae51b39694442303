# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The driver in a FreeBSD guest, watched by its probes, dtrace_lem(4), while
# pings leave through one of its interfaces.

need()
{
	[ "$(uname)" = FreeBSD ] || atf_skip "if_lem runs on FreeBSD"
	[ "$(id -u)" -eq 0 ] || atf_skip "dtrace needs root"
	kldstat -q -n if_lem || atf_skip "if_lem is not loaded"
	dtrace -ln BEGIN > /dev/null 2>&1 || atf_skip "no DTrace here"
	# The first interface that has an address to send to everybody.
	ifp=
	for i in $(ifconfig -l -u ether); do
		case $i in
		em[0-9]*)	;;
		*)		continue ;;
		esac
		everybody=$(ifconfig $i inet |
		    awk '$5 == "broadcast" { print $6; exit }')
		[ -z "$everybody" ] || { ifp=$i; break; }
	done
	[ -n "$ifp" ] || atf_skip "no em interface has an IPv4 address"
}

# watch SCRIPT: leaves in `out' what it prints about a hundred pings; `$ifp' is
# the script's first argument.
watch()
{
	timeout 60 dtrace -q -o out -n "$1
	    tick-5s { exit(0); }" -c "ping -q -c 100 -i 0.01 $everybody" \
	    "$ifp" > ping.out 2>&1 || { cat ping.out; atf_fail "dtrace"; }
	cat out
}

value()
{
	awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' out
}

probe_case()
{
	atf_test_case $1
	eval "
	$1_head() { atf_set descr \"$2\"; atf_set timeout 120; }
	$1_body() { need; $1_run; }"
	cases="$cases $1"
}

probe_case probes "each probe of the manual is there"
probes_run()
{
	local probe

	for probe in tx-kick tx-kick-saved rx-kick rx-kick-saved combine flush \
	    clean interrupt receive poll; do
		dtrace -ln "lem:::$probe" > /dev/null 2>&1 ||
		    atf_fail "no lem:::$probe"
	done
}

probe_case told "what is sent is told of, each time with a kick or without"
told_run()
{
	watch '
	lem:::flush /stringof(arg0) == $$1/ { @packets = sum(arg1);
	    @flushes = sum(1); }
	lem:::tx-kick, lem:::tx-kick-saved /stringof(arg0) == $$1/
	{ @told = sum(1); }
	END { printa("packets %@d\n", @packets);
	    printa("flushes %@d\n", @flushes); printa("told %@d\n", @told); }'
	[ "$(value packets)" -ge 100 ] || atf_fail "not all pings were told of"
	[ "$(value flushes)" -eq "$(value told)" ] ||
	    atf_fail "$(value flushes) flushes, told $(value told) times"
}

atf_init_test_cases()
{
	local case

	for case in $cases; do
		atf_add_test_case $case
	done
}
