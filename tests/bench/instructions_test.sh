# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The instructions that a frame takes, compared with bench/baseline*.

. "$(atf_get_srcdir)/cases.subr"

test_case per_frame "No frame takes over 3% more instructions than it used to, \
and 5% more with a VLAN and a guard; ports that nothing goes to cost none, and \
flooding to N at most N times a delivery" timeout 600 require.progs "valgrind clang"
per_frame_body()
{
	local baseline f obj top

	top=$(atf_get_srcdir)/../../..
	obj=$(atf_get_srcdir)/../..
	baseline=
	case $(basename "$(realpath "$obj")") in
	build)	;;
	*)	atf_skip "counted in the plain build only" ;;
	esac
	atf_check -o save:now sh "$top/bench/count.sh" "$obj"
	awk '{ n[$1] = $2 }
	    END {
		one = n["switch-60-256"]
		if (n["idle-60-256-252"] > one)
			print "252 ports that nothing goes to cost something"
		for (ports = 8; ports <= 64; ports *= 8)
			if (n["flood-60-256-" ports] > ports * one)
				print "flooding to " ports " ports costs more"
		for (name in n) {
			plain = name
			if (sub("-guard-", "-", plain) &&
			    n[name] > n[plain] * 1.05)
				print name " costs more than 5%"
		}
	    }' now > worse
	[ ! -s worse ] || atf_fail "$(cat worse)"
	grep '^#' now > env.now
	for f in "$top"/bench/baseline*; do
		grep '^#' "$f" > env.then
		! cmp -s env.then env.now || baseline=$f
	done
	[ -n "$baseline" ] || atf_skip "no baseline for $(sed -n \
	    -e 's/^# compiler //p' -e 's/^# libc //p' now | paste -sd ' ')"
	awk '/^#/ || /-guard-/ { next }
	    NR == FNR { then[$1] = $2; next }
	    !($1 in then) { print $1 ": not in the baseline"; next }
	    $2 > then[$1] * 1.03 {
		printf "%s: %s instructions a frame, were %s\n", $1, $2,
		    then[$1]
	    }' "$baseline" now > worse
	cat now
	[ ! -s worse ] || atf_fail "$(cat worse)"
}
