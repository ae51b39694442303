# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The counters of valed, compared with those of valed(8).

. "$(atf_get_srcdir)/valed.subr"

# documented page: prints the counters in its section COUNTERS that have a
# description: a line of text that follows the item.
documented()
{
	awk '/^\.Sh/ { inside = $2 == "COUNTERS" }
	    inside && name != "" && /^[A-Za-z0-9]/ { print name }
	    { name = "" }
	    inside && $1 == ".It" && $2 == "Cm" && NF == 3 { name = $3 }' "$1"
}

atf_test_case counters
counters_head()
{
	atf_set descr \
	    "valed(8) describes each counter that valed prints, and no other"
}
counters_body()
{
	documented "$(atf_get_srcdir)/valed.8" | sort > documented
	"$VALED" -s 1,e1000,vale0:a,path=a.sock > out &
	listening a.sock
	# valed handles both signals, SIGUSR1 first.
	kill -USR1 $!
	kill $!
	wait $! || atf_fail "valed failed"
	cut -d ' ' -f 2 out | sort > printed
	[ -s printed ] || atf_fail "SIGUSR1 prints nothing"
	atf_check diff -u documented printed
}

atf_init_test_cases()
{
	atf_add_test_case counters
}
