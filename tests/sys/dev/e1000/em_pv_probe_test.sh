# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The probes of the driver in a FreeBSD guest, dtrace_lem(4), while pings are
# sent through one of its interfaces.

. "$(atf_get_srcdir)/cases.subr"

need()
{
	[ "$(uname)" = FreeBSD ] || atf_skip "em_pv runs on FreeBSD"
	[ "$(id -u)" -eq 0 ] || atf_skip "dtrace needs root"
	kldstat -q -n if_em_pv || atf_skip "if_em_pv is not loaded"
	dtrace -ln BEGIN > /dev/null 2>&1 || atf_skip "no DTrace here"
	# The first interface that has a broadcast address.
	ifp=
	for i in $(ifconfig -l -u ether); do
		case $i in
		em[0-9]*)	;;
		*)		continue ;;
		esac
		broadcast=$(ifconfig $i inet |
		    awk '$5 == "broadcast" { print $6; exit }')
		[ -z "$broadcast" ] || { ifp=$i; break; }
	done
	[ -n "$ifp" ] || atf_skip "no em interface has an IPv4 address"
}

# watch SCRIPT: runs a script during a hundred pings; its first argument is the
# interface, its output goes to `out'.
watch()
{
	timeout 60 dtrace -q -o out -n "$1
	    tick-5s { exit(0); }" -c "ping -q -c 100 -i 0.01 $broadcast" \
	    "$ifp" > ping.out 2>&1 || { cat ping.out; atf_fail "dtrace"; }
	cat out
}

value()
{
	awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' out
}

probe_case()
{
	test_case $1 "$2" timeout 120
	eval "$1_body() { need; $1_run; }"
}

probe_case probes "Each probe of the manual page exists"
probes_run()
{
	local probe

	for probe in tx-kick tx-kick-saved rx-kick rx-kick-saved combine flush \
	    clean interrupt receive poll; do
		# dtrace -l succeeds even if nothing matches.
		dtrace -ln "lem:::$probe" 2> /dev/null | grep -q "$probe" ||
		    atf_fail "no lem:::$probe"
	done
}

probe_case flushes "Each flush has a kick or saves one"
flushes_run()
{
	watch '
	lem:::flush /stringof(arg0) == $$1/ { @packets = sum(arg1);
	    @flushes = sum(1); }
	lem:::tx-kick, lem:::tx-kick-saved /stringof(arg0) == $$1/
	{ @kicks = sum(1); }
	END { printa("packets %@d\n", @packets);
	    printa("flushes %@d\n", @flushes); printa("kicks %@d\n", @kicks); }'
	[ "$(value packets)" -ge 100 ] || atf_fail "not all pings were flushed"
	[ "$(value flushes)" -eq "$(value kicks)" ] || atf_fail \
	    "$(value flushes) flushes, $(value kicks) kicks, saved or not"
}
