# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The counters of valed, compared with those of valed(8).

. "$(atf_get_srcdir)/valed.subr"

# documented page [interface]: prints the counters in its section COUNTERS that
# have a description: a line of text that follows the item.  They are those of
# adapters, or of attached interfaces.
documented()
{
	awk -v interface="${2:-adapter}" '
	    /^\.Sh/ { section = $2 == "COUNTERS"; of = "adapter" }
	    /^\.Ss/ { of = $2 == "Attached" ? "interface" : "adapter" }
	    { inside = section && of == interface }
	    inside && name != "" && /^[A-Za-z0-9]/ { print name }
	    { name = "" }
	    inside && $1 == ".It" && $2 == "Cm" && NF == 3 { name = $3 }' "$1"
}

test_case counters "valed(8) describes each counter that valed prints, and no \
other"
counters_body()
{
	documented "$(atf_get_srcdir)/valed.8" | sort > documented
	"$VALED" -s 1,e1000,vale0:a,path=a.sock > out &
	listening a.sock
	# valed handles both signals, SIGUSR1 first.
	kill -USR1 $!
	valed_ends $!
	cut -d ' ' -f 2 out | sort > printed
	[ -s printed ] || atf_fail "SIGUSR1 prints nothing"
	atf_check diff -u documented printed
}

test_case interface "valed(8) describes each counter of an attached interface, \
and no other" \
    require.user root require.progs "unshare ip"
interface_body()
{
	unshare -n true || atf_skip "no network namespace"
	documented "$(atf_get_srcdir)/valed.8" interface | sort > documented
	unshare -n sh -c 'ip link add h0 type veth peer name w0 &&
	    exec "$VALED" -a vale0:h0,kind=packet' > out &
	wait_must "the sandbox" grep -q "^Seccomp:.*2" /proc/$!/status
	wait_must "counters" printed $!
	valed_ends $!
	cut -d ' ' -f 2 out | grep -v ^port_ | sort -u > printed
	atf_check diff -u documented printed
}

printed()
{
	kill -USR1 $1 && grep -q port_rx_drop_full out
}
