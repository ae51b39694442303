# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The programs and functions that measure the switch for VALE's figures: their
# output, and that what they set takes effect.  Never how fast something is.

. "$(atf_get_srcdir)/cases.subr"

bench=$(cd "$(atf_get_srcdir)/../../bench" && pwd)
here=$(cd "$(atf_get_srcdir)/../../../bench/paper" && pwd)
work=$PWD
PAPER_MS=20

put()
{
	echo "$*" >> put
}

skip()
{
	echo "$*" >> skipped
}

say()
{
	echo "$*"
}

# begin: as paper.sh does.
begin()
{
	. "$here/switch.subr"
	trap 'stop_all > /dev/null 2>&1' EXIT
	PAPER_BATCHES="1 64"
	PAPER_DESTINATIONS="1 8"
	PAPER_SIZES="60 1514"
	: > put
	: > skipped
}

# check_positive TEXT: a number above 0, and nothing else.
check_positive()
{
	echo "$1" | awk '{ n++ } NF != 1 || $1 !~ /^[0-9.]+$/ || $1 <= 0 {
	    bad = 1 } END { exit bad || n != 1 }' || {
		cat err
		atf_fail "not a number above 0: $1"
	}
}

# check_series "SERIES QUANTITY X..."...: exactly these have values, above 0.
# Those of another switch may have been skipped.
check_series()
{
	local line prefix rest

	cat put skipped
	while read -r prefix rest; do
		case $prefix in
		switch/bridge*|switch/ovs*|rtt/bridge*)	echo $prefix ;;
		*)	atf_fail "$prefix is skipped: $rest" ;;
		esac
	done < skipped > prefixes
	for line in "$@"; do
		echo "$line"
	done | awk -v prefixes="$(cat prefixes)" '
	    BEGIN { n = split(prefixes, prefix) }
	    {
		for (i = 1; i <= n; i++)
			if (index($1, prefix[i]) == 1)
				next
		for (i = 3; i <= NF; i++)
			print $1, $i, $2
	    }' | sort > expected
	awk 'NF == 4 && $4 > 0 { print $1, $2, $3 }' put | sort > seen
	diff expected seen || atf_fail "other series than expected"
}

test_case netmap "A netmap program counts frames, with any batch, \
and answers are those to frames sent"
netmap_body()
{
	local ns options

	begin
	netmap_valed
	netmap_run send vale0:a & pids="$pids $!"
	for options in "" "-b 1" "-b 1024"; do
		ns=$(netmap_run $options -t $PAPER_MS receive vale0:b)
		check_positive "$ns"
	done
	stop_all
	netmap_valed
	netmap_run echo vale0:b & pids="$pids $!"
	for bytes in 60 1514; do
		check_positive "$(netmap_run -t $PAPER_MS -s $bytes \
		    ping vale0:a)"
	done
	stop_all
	netmap_valed
	atf_check -s exit:1 -e match:"no answer" timeout 20 \
	    "$bench/../usr.bin/netmap-run/netmap-run" -c control \
	    "$bench/netmap" ping vale0:a
	stop_all
}

test_case pump "Frames of any length, and their answers, pass Linux's bridge" \
    require.user root require.progs "ip unshare"
pump_body()
{
	local bytes

	unshare -n true || atf_skip "network namespaces are not permitted"
	[ -c /dev/net/tun ] || atf_skip "there is no /dev/net/tun"
	begin
	for bytes in 60 1514; do
		check_positive "$(bridge_pump -t $PAPER_MS -l $bytes)"
		check_positive "$(bridge_pump -p -t $PAPER_MS -l $bytes)"
	done
	check_positive "$(bridge_pump -w 1 -t $PAPER_MS)"
	atf_check -s exit:1 -e match:"59: not from 60" "$bench/pump" -l 59 \
	    tap tap0 tap1
}

test_case fig6 "Figures 6 and 7 have frames to one port, and to all" timeout 120
fig6_body()
{
	begin
	paper_switch_fig6
	set -- "copy/memory ns 60 1514"
	for series in vale/unicast/60 vale/broadcast/60 vale/unicast/1514 \
	    vale/broadcast/1514; do
		set -- "$@" "switch/$series ns 1 8" "switch/$series mpps 1 8"
	done
	for series in bridge/unicast/60 bridge/unicast/1514 ovs/unicast/60; do
		set -- "$@" "switch/$series ns 1" "switch/$series mpps 1"
	done
	check_series "$@"
}

test_case fig8 "Figure 8's batches are those of the switch"
fig8_body()
{
	local n

	begin
	# Before valed ends: batches and frames that it took.
	stop_all()
	{
		local pid

		"$bench/../usr.sbin/valectl/valectl" -c control -k vale0:a |
		    awk '{ n[$2] = $3 } END { print n["tx_batches"],
			n["tx_frames"] }' >> counted
		for pid in $pids; do
			kill $pid && wait $pid
		done
		pids=
	}
	paper_switch_fig8
	check_series "switch/vale/kernel mpps 1 64" \
	    "switch/one-process/kernel mpps 1 64"
	# Of one process the program compares: -k 2 and 64 hold, whatever -b is.
	for n in 2 64; do
		atf_check -o ignore "$bench/switch" -n 20480 -b 1024 -r 1024 -k $n
	done
	cat counted
	# While it sends, one counter is older.  Some batches are not full.
	awk '{ batch[NR] = $2 / $1 }
	    END { exit NR != 2 || batch[1] < 0.9 || batch[1] > 1.1 ||
		batch[2] < 2 || batch[2] > 70 }' counted ||
	    atf_fail "the switch has other batches"
}

test_case fig9 "Figure 9 has the receiver's batches"
fig9_body()
{
	begin
	paper_switch_fig9
	check_series "switch/vale/receive mpps 1 64" \
	    "switch/one-process/receive mpps 1 64"
}

test_case fig10 "Figure 10 has the sender's batches, with two \
receivers"
fig10_body()
{
	begin
	paper_switch_fig10
	check_series "switch/vale/send mpps 1 64" \
	    "switch/vale/send1 mpps 1 64" \
	    "switch/one-process/send mpps 1 64" \
	    "switch/one-process/send1 mpps 1 64"
}

test_case fig11 "Figure 11 has lengths of frames" timeout 120
fig11_body()
{
	begin
	paper_switch_fig11
	check_series "switch/vale/size ns 60 1514" \
	    "switch/bridge/size ns 60 1514"
}

test_case fig12 "Figure 12 has round trips of single frames"
fig12_body()
{
	begin
	paper_switch_fig12
	check_series "rtt/vale us 60 512 1514" "rtt/bridge us 60 512 1514"
}

test_case skips "What is not built or fails is skipped, for its reason"
skips_body()
{
	local bench figure real=$bench

	begin
	bench=$work/none
	for figure in $PAPER_SWITCH; do
		$figure
	done
	[ ! -s put ] || atf_fail "values of nothing: $(cat put)"
	cat skipped
	for prefix in switch/vale switch/bridge switch/ovs rtt/vale rtt/bridge \
	    switch/vale/kernel switch/vale/receive switch/vale/send; do
		grep -q "^$prefix.* is not built$" skipped ||
		    atf_fail "$prefix is not skipped"
	done
	bench=$real
	: > skipped
	echo "it broke" > err
	paper_rate some/series 1 ""
	atf_check -o inline:"some/series it broke\n" cat skipped
}
