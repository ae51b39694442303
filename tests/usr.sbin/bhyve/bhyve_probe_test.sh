# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The probes of dtrace_e82545(4) in all virtual machines that run, for some
# seconds: their counts must add up.  The test covers what the guests do.

. "$(atf_get_srcdir)/cases.subr"

need()
{
	[ "$(uname)" = FreeBSD ] ||
	    atf_skip "dtrace(1) watches bhyve on FreeBSD"
	[ "$(id -u)" -eq 0 ] || atf_skip "dtrace needs root"
	# dtrace -l succeeds even if nothing matches.
	dtrace -ln 'e82545em*:::tx-begin' 2> /dev/null | grep -q tx-begin ||
	    atf_skip "no virtual machine with this adapter runs"
}

# watch SCRIPT: runs a script, whose output goes to `out'.
watch()
{
	timeout 60 dtrace -q -o out -n "$1" || atf_fail "dtrace: status $?"
	cat out
}

# value NAME: prints a number of the output, 0 if it is missing.
value()
{
	awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' out
}

probe_case()
{
	test_case $1 "$2" timeout 120
	eval "$1_body() { need; $1_run; }"
}

# Kicks count before the last second, answers always.  A ring that is kicked
# twice before it is looked at is answered once.  1 is kicked, 2 answered: 0
# would free the variable, and dtrace could run out of variables.
probe_case kicks "Every kick is answered"
kicks_run()
{
	watch '
	int late, tx[pid_t, string], rx[pid_t, string];
	e82545em*:::tx-kick
	/!late && arg2 == 1 && tx[pid, copyinstr(arg0)] != 1/
	{ tx[pid, copyinstr(arg0)] = 1; @kicks = sum(1); @open = sum(1); }
	e82545em*:::tx-begin
	/tx[pid, copyinstr(arg0)] == 1/
	{ tx[pid, copyinstr(arg0)] = 2; @open = sum(-1); }
	e82545em*:::rx-kick
	/!late && arg2 == 1 && rx[pid, copyinstr(arg0)] != 1/
	{ rx[pid, copyinstr(arg0)] = 1; @kicks = sum(1); @open = sum(1); }
	e82545em*:::rx-begin
	/rx[pid, copyinstr(arg0)] == 1/
	{ rx[pid, copyinstr(arg0)] = 2; @open = sum(-1); }
	tick-9s { late = 1; }
	tick-10s
	{ printa("kicks %@d\n", @kicks); printa("open %@d\n", @open); exit(0); }
	'
	[ "$(value kicks)" -gt 0 ] || atf_skip "no guest has sent anything"
	[ "$(value open)" -eq 0 ] ||
	    atf_fail "$(value open) kicks without an answer"
}

probe_case moderation "No interrupt is sent within the moderation interval"
moderation_run()
{
	watch '
	unsigned long long last[pid_t, string];
	e82545em*:::intr-sent
	{ @sent = sum(1); }
	e82545em*:::intr-sent
	/last[pid, copyinstr(arg0)] && arg2 - last[pid, copyinstr(arg0)] < arg3/
	{ @early = sum(1); }
	e82545em*:::intr-sent
	{ last[pid, copyinstr(arg0)] = arg2; }
	e82545em*:::reset
	{ last[pid, copyinstr(arg0)] = 0; }
	tick-10s
	{ printa("sent %@d\n", @sent); printa("early %@d\n", @early); exit(0); }
	'
	[ "$(value sent)" -gt 0 ] || atf_skip "no interrupt was sent"
	[ "$(value early)" -eq 0 ] || atf_fail "$(value early) too early"
}

probe_case reasons "A frame that an adapter drops has a known reason"
reasons_run()
{
	watch '
	e82545em*:::tx-drop, e82545em*:::rx-drop, e82545em*:::bad-descriptor
	{ @[probename, copyinstr(arg1)] = count(); }
	e82545em*:::tx-batch, e82545em*:::rx-batch
	{ @frames = sum(arg1); }
	tick-10s
	{ printa("drop %s-%s %@d\n", @); printa("frames %@d\n", @frames);
	  exit(0); }
	'
	[ "$(value frames)" -gt 0 ] || atf_skip "no guest has sent anything"
	awk '$1 == "drop" && $2 !~ /-(tx|rx|csb)_bad/ &&
	    $2 !~ /-tx_(noroom|linkdown)$/ &&
	    $2 !~ /-rx_(disabled|filtered|oversize)$/ { bad = 1 }
	    END { exit bad }' out || atf_fail "an unknown reason"
}

# An adapter that saved kicks uses the CSB; with fewer than 10000 frames it is
# not at full load.
probe_case csb_exits "With the CSB, under 0.02 exits a frame at full load"
csb_exits_run()
{
	watch '
	e82545em*:::tx-kick-saved, e82545em*:::rx-kick-saved,
	e82545em*:::intr-saved
	{ @saved[pid, copyinstr(arg0)] = count(); }
	e82545em*:::reg-read, e82545em*:::reg-write
	{ @exits[pid, copyinstr(arg0)] = count(); }
	e82545em*:::tx-batch, e82545em*:::rx-batch
	{ @frames[pid, copyinstr(arg0)] = sum(arg1); }
	tick-10s { exit(0); }
	END
	{
		printa("saved %d %s %@d\n", @saved);
		printa("exits %d %s %@d\n", @exits);
		printa("frames %d %s %@d\n", @frames);
	}
	'
	awk '{ n[$1, $2 " " $3 " " $4] = $NF }
	    $1 == "frames" && $NF >= 10000 { who[$2 " " $3 " " $4] = 1 }
	    END {
		for (w in who) {
			if (n["saved", w] == 0)
				continue
			print w ": " n["exits", w] / n["frames", w]
			if (n["exits", w] >= n["frames", w] / 50)
				bad = 1
			some = 1
		}
		exit(bad ? 1 : some ? 0 : 2)
	    }' out
	case $? in
	1)	atf_fail "0.02 exits a frame or more" ;;
	2)	atf_skip "no guest at full load uses the CSB" ;;
	esac
}
