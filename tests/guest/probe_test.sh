# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The probes of dtrace_e82545(4) and dtrace_vale(4): bpftrace counts their
# events in valed while two micro-guests exchange frames, and the counts must
# add up.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

# able: skips the test if bpftrace cannot run.
able()
{
	[ "$(id -u)" -eq 0 ] || atf_skip "bpftrace needs root"
	command -v bpftrace > /dev/null || atf_skip "there is no bpftrace"
	timeout 600 bpftrace -e "usdt:$VALED:e82545em:reset { }
	    interval:ms:1 { exit(); }" > able.out 2>&1 ||
	    atf_skip "no BPF here: $(grep ERROR able.out | tail -n 1)"
}

# traces NAME: bpftrace has attached all probes: those of the first and the last
# line print, and it attaches them in their order or the opposite one.  True,
# too, if bpftrace has ended.
traces()
{
	vm_alive "$1" || return 0
	cat "$1.err"
	grep -q '^first$' "$1.out" && grep -q '^last$' "$1.out"
}

# trace NAME < script: starts bpftrace on valed, and waits until it has attached
# all probes.
trace()
{
	local name=$1

	{
		echo 'interval:ms:100 { printf("first\n"); }'
		cat
		echo 'interval:ms:100 { printf("last\n"); }'
	} > "$name.bt"
	bpftrace -B line -p "$(cat valed.pid)" "$name.bt" \
	    > "$name.out" 2> "$name.err" &
	echo $! > "$name.pid"
	wait_until "bpftrace's probes" traces "$name" && vm_alive "$name" || {
		cat "$name.err"
		atf_fail "bpftrace does not start"
	}
}

# traced NAME: ends it, and leaves its counts in NAME.maps.
traced()
{
	local pid

	pid=$(cat "$1.pid")
	rm -f "$1.pid"
	kill -INT "$pid"
	wait "$pid"
	grep -v -e '^first$' -e '^last$' "$1.out" > "$1.maps"
}

# m NAME MAP [KEY]: prints a map's number, or the sum of those whose keys begin
# with KEY; 0 if there is none.
m()
{
	awk -v want="@$2${3:+[$3}" '{
		n = length(want)
		c = substr($0, n + 1, 1)
		if (substr($0, 1, n) == want && c ~ /[],:[]/)
			sum += $NF
	    }
	    END { print sum + 0 }' "$1.maps"
}

# ports N [option]: starts valed with N ports.
ports()
{
	local i n=$1 option=$2

	set --
	for i in $(seq "$n"); do
		set -- "$@" -s \
		    "$i,e1000,vale0:vm$i,path=vm$i.sock,mac=$(mac "$i")$option"
	done
	valed_start "$@" || atf_fail "valed does not start"
}

# run LEADER FOLLOWER: runs the guests to their end.
run()
{
	echo "== $1 / $2"
	micro_valed vm2 "$2"
	micro_valed vm1 "$1"
	micro_wait vm1 vm2 || atf_fail "a guest did not end: $1 / $2"
}

# done_with NAME: ends bpftrace and valed, and prints the counts.
done_with()
{
	traced "$1"
	grep '^@' "$1.maps"
	valed_counters || atf_fail "valed does not print its counters"
	valed_stop || atf_fail "valed ended with status $?"
	rm -f *.sock
}

micro_case documented "The manual pages list the probes that valed has"
documented_run()
{
	local page provider

	able
	for provider in e82545em vale; do
		page=$(atf_get_srcdir)/dtrace_${provider%em}.4
		sed -n 's/^\.It Fn \([a-z0-9-]*\).*/\1/p' "$page" |
		    sort > "$provider.page"
		bpftrace -l "usdt:$VALED:$provider:*" |
		    sed -e 's/.*://' -e 's/__/-/g' | sort -u > "$provider.has"
		[ -s "$provider.has" ] || atf_fail "$provider: no probes"
		atf_check diff -u "$provider.page" "$provider.has"
	done
}

# The sink has a short ring and polls seldom, so most frames are dropped.  A
# third adapter has no guest: broadcasts wait in its port.
micro_case accounted "A frame that enters leaves, or is dropped with a reason"
accounted_run()
{
	local i in out reason

	able
	ports 3
	trace all <<-EOF
	usdt:*:e82545em:tx__batch { @sent[str(arg0)] = sum(arg1); }
	usdt:*:e82545em:tx__drop { @unsent[str(arg0), str(arg1)] = count(); }
	usdt:*:vale:batch__in { @in[str(arg0)] = sum(arg1); }
	usdt:*:vale:flood { @more = sum(arg2 - 1); }
	usdt:*:vale:deliver
	    { @delivered[str(arg0)] = sum(arg2); @waits[str(arg0)] = arg4; }
	usdt:*:vale:direct
	    { @delivered[str(arg0)] = sum(arg2); @direct = sum(arg2); }
	usdt:*:vale:rx__sync { @waits[str(arg0)] = arg2; }
	usdt:*:vale:drop { @dropped[str(arg0), str(arg1)] = sum(arg2); }
	usdt:*:e82545em:rx__batch { @received[str(arg0)] = sum(arg1); }
	usdt:*:e82545em:rx__drop { @refused[str(arg0), str(arg1)] = count(); }
	EOF
	run "role=source ms=500" "role=sink mode=poll ring=128 tick=20000"
	done_with all

	is "vm1, driver and adapter" "$(v vm1 total_tx_packets)" -eq \
	    $(($(m all sent vm1) + $(m all unsent vm1)))
	for i in 1 2; do
		is "vm$i, adapter and port" "$(m all sent vm$i)" -eq \
		    "$(m all in vale0:vm$i)"
	done
	in=$(($(m all in) + $(m all more)))
	out=$(($(m all delivered) + $(m all dropped)))
	is "into the switch and out of it" "$in" -eq "$out"
	for i in 2 3; do
		is "vm$i, port and adapter" "$(m all delivered vale0:vm$i)" \
		    -eq $(($(m all received vm$i) + $(m all refused vm$i) + \
		    $(m all waits vale0:vm$i)))
	done
	is "vm2, waiting" "$(m all waits vale0:vm2)" -eq 0
	# The leader ends first: its adapter may have received frames whose
	# slots it has not released yet.
	in=$(($(m all received vm1) + $(m all refused vm1)))
	is "vm1, adapter and port" "$in" -le "$(m all delivered vale0:vm1)"
	is "vm1, port and adapter" "$(m all delivered vale0:vm1)" -le \
	    $((in + $(m all waits vale0:vm1)))
	is "vm2, adapter and driver" "$(m all received vm2)" -eq \
	    "$(v vm2 total_rx_packets)"

	is "direct from guest to guest" "$(m all direct)" -gt 0
	is "dropped at vm2" "$(m all dropped vale0:vm2)" -gt 0
	is "broadcasts" "$(m all delivered vale0:vm3)" -gt 0
	sed -n -e 's/^@dropped\[.*, \(.*\)\].*/port_\1/p' \
	    -e 's/^@\(unsent\|refused\)\[.*, \(.*\)\].*/\2/p' all.maps |
	    sort -u > reasons
	while read -r reason; do
		grep -q " $reason " valed.counters ||
		    atf_fail "'$reason' is not a counter"
	done < reasons
}

# The scripts of share/dtrace, all at once.
micro_case scripts "Each script prints the maps that its first lines explain"
scripts_run()
{
	local script scripts="batches drops exits interrupts latency"

	able
	ports 2 ,itr=250
	for script in $scripts; do
		sed 1d "$(atf_get_srcdir)/$script.bt" > script
		trace $script < script
	done
	run "role=source ms=500" "role=sink ring=128 tick=50000 mode=poll"
	run "role=rr count=200 ms=0" "role=echo"
	for script in $scripts; do
		traced $script
	done
	valed_stop || atf_fail "valed ended with status $?"
	for script in $scripts; do
		# It prints no map that it does not explain.
		grep '^ \*' "$(atf_get_srcdir)/$script.bt" |
		    grep -o '@[a-z0-9_]*' | sort -u > explained
		sed -n 's/^\(@[a-z0-9_]*\).*/\1/p' $script.maps |
		    sort -u > counted
		echo "$script: $(cat counted | xargs)"
		[ -z "$(comm -13 explained counted)" ] || atf_fail \
		    "$script: not explained: $(comm -13 explained counted)"
	done
	is "TDT" "$(m exits write "vm1, TDT")" -gt 0
	is "sent" "$(m interrupts sent vm1)" -gt 0
	is "dropped" "$(m drops switch "vale0:vm2, rx_drop_full")" -gt 0
	for script in s1_sent s2_switched s3_delivered s4_waiting \
	    s5_received; do
		grep -q "^@$script\[" batches.maps ||
		    atf_fail "batches: no $script"
	done
	for script in s1_kick_begin s2_begin_switch s3_switch_port \
	    s4_port_receiver s5_receiver_ring s6_ring_intr s7_intr_guest \
	    total_ring total_guest; do
		grep -q "^@$script\[" latency.maps ||
		    atf_fail "latency: no $script"
	done
}
