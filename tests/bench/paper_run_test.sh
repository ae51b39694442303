# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# bench/paper/paper.sh itself: a short round of two of its parts; and how far it
# and bench.sh say that they are.

. "$(atf_get_srcdir)/cases.subr"

tests=$(atf_get_srcdir)
objtop=$(cd "$tests/../.." && pwd)
paper=$tests/../../../bench/paper/paper.sh

# Beside the results of "make paper".
run()
{
	env PAPER_DIR="paper_run_test.$$" PAPER="$1" ROUNDS=1 MICRO_MS=100 \
	    sh "$paper" "$objtop"
}

test_case parts "Guests with and without a kernel fill their series, and the page" \
    timeout 1200 require.user root require.progs "unshare ip gnuplot taskset"
parts_body()
{
	local dir="$objtop/paper_run_test.$$" name

	unshare -n true || atf_skip "network namespaces are not permitted"
	[ -c /dev/net/tun ] || atf_skip "there is no /dev/net/tun"
	run fig3,e1000e > out 2>&1 || { cat out; atf_fail "it failed"; }
	cat out "$dir/skipped.tsv"
	grep -q "^ *[0-9]* s, .* \(left\|done\)  part 3 of 3: two Linux guests" \
	    out || atf_fail "no time left"
	# What is said, and printed, is in words.
	grep -q "  e1000e of valed: received UDP, 8 bytes [0-9]" out ||
	    atf_fail "no result in words"
	atf_check -s exit:1 grep -E \
	    "(^|  )(e1000e?|lem|micro|livelock|users|cost)/" out
	mv "$dir"/*.tsv "$dir"/*.svg "$dir/index.html" .
	rm -rf "$dir"
	# Where bpftrace cannot run, guests have figures, and the host has none.
	sed "/the host's cost: bpftrace/d" skipped.tsv > skipped
	atf_check cat skipped
	for name in base-nolimit base itr poll csb; do
		atf_check -o inline:"7\n" grep -c \
		    "^1	livelock/$name	[0-9]*	goodput	" results.tsv
	done
	for name in udp8_sent udp8 udp1460 tcp tcpw rr exits exits_rx; do
		awk -F '\t' -v q=$name '$2 == "e1000e/vale/gg/1/stock" &&
		    $4 == q && $5 > 0 { n++ } END { exit n != 1 }' results.tsv ||
		    atf_fail "$name of a guest"
	done
	for name in udp8 udp1460 rr tcp64 tcp tcpw tcp_notso tcpw_notso; do
		awk -F '\t' -v q=$name '$2 == "users/e1000e" && $4 == q &&
		    $5 > 0 { n++ } END { exit n != 1 }' results.tsv ||
		    atf_fail "$name of users"
	done
	for name in switches cpu exits irqs; do
		awk -F '\t' -v q=$name '$2 == "cost/e1000e/10mbit" && $4 == q &&
		    $5 > 0 { n++ } END { exit n != 1 }' results.tsv ||
		    atf_fail "$name of a datagram"
	done
	# valed, system calls and vCPU threads, without the guests' own code, have a
	# part in what the host pays, and the threads' parts are all.
	if [ ! -s skipped.tsv ]; then
		atf_check awk -F '\t' '$2 == "users/e1000e" { v[$4] = $5 }
		END {
			if (!(v["host_t50_valed"] > 0 && v["calls_t50"] >= 4 &&
			    v["host_t50_vcpu"] > 0 &&
			    v["host_t50_vcpu"] < v["host_t50"] / 2))
				exit 1
			d = v["host_t50"] - v["host_t50_vcpu"] - \
			    v["host_t50_qemu"] - v["host_t50_valed"]
			exit d < -0.1 || d > 0.1
		}' results.tsv
	fi
	grep -q "^e1000e of valed, stock driver " out || atf_fail "no row of users"
	grep -q "^LL4	.*	\(holds\|undecided\|does not hold\)	" verdicts.tsv ||
	    atf_fail "no verdict"
	[ -s fig3.svg ] && grep -q fig3 index.html || atf_fail "no picture"
	grep -q "^e1000e of valed   *[0-9]" out || atf_fail "no table"
	grep -q "^plain, without limit " out || atf_fail "no livelock"
}

test_case words "A figure that there is not is refused, before anything is removed" \
    require.user root require.progs unshare
words_body()
{
	unshare -n true || atf_skip "network namespaces are not permitted"
	mkdir -p "$objtop/paper_run_test.$$"
	: > "$objtop/paper_run_test.$$/results.tsv"
	run fig3,fig99 > out 2>&1
	[ $? -eq 2 ] || atf_fail "another status"
	atf_check -o match:"fig99: no such figure; there are .*fig3 " cat out
	[ -e "$objtop/paper_run_test.$$/results.tsv" ] ||
	    atf_fail "the results of an earlier run are gone"
	rm -rf "$objtop/paper_run_test.$$"
}

# told SECONDS TEXT: what is said at that time.
told()
{
	now=$1
	say part > told
	atf_check_equal "$2  part" "$(cat told)"
}

test_case progress "say() prints how long the parts left will take, at the speed of \
the parts done"
progress_body()
{
	. "$tests/../../../bench/progress.subr"
	date()
	{
		echo $((1000000 + now))
	}
	now=0
	progress_begin 600
	told 0 "   0 s, 10 min left"
	told 120 " 120 s, 8 min left"
	# A first part so short says nothing of the others.
	now=60
	progress_done 20
	told 60 "  60 s, 10 min left"
	# Twice as long as on two processors.
	now=400
	progress_done 180
	told 400 " 400 s, 13 min left"
	told 580 " 580 s, 10 min left"
	progress_done 400
	told 1200 "1200 s, nearly done"
}
