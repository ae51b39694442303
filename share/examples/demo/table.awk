# SPDX-License-Identifier: BSD-2-Clause
#
# Copyright (c) 2026 The bhyve-vale authors

# The demo's last page, from results.tsv; memory is what valed has in use, MB.

BEGIN {
	FS = "\t"
	print ""
	print "                 UDP, 60 bytes,  frames for one  exits   TCP    ping,"
	print "                      Kpps         interrupt     for a  Mbit/s  there"
	print "                   one    both     one    both   frame            and"
	print "                   way    ways     way    ways              back, us"
}

{
	printf "%-6s %-8s %7.1f %7.1f %7.1f %7.1f %7.2f %7d %7d\n", \
	    $1, $2, $3, $4, $5, $6, $7, $8, $9
	one[$1, $2] = $3
	both[$1, $2] = $4
	fpi_one[$1, $2] = $5
	fpi_both[$1, $2] = $6
}

function ratio(a, b)
{
	return b > 0 ? a / b : 0
}

# line(WHAT, A, B, X, Y): A[X] / A[Y] one way, and B[X] / B[Y] both ways.
function line(what, a, b, x, y)
{
	printf "  %-48s x%.2f one way, x%.2f both ways\n", what, \
	    ratio(a[x], a[y]), ratio(b[x], b[y])
}

END {
	v = "valed" SUBSEP
	q = "qemu" SUBSEP
	print ""
	print "valed, itr=250 against itr=0:"
	line("frames a second", one, both, v "itr=250", v "itr=0")
	line("frames for one interrupt", fpi_one, fpi_both, v "itr=250", \
	    v "itr=0")
	print "valed against QEMU's own adapter, frames a second:"
	line("both with itr=250", one, both, v "itr=250", q "itr=250")
	line("both with the driver's moderation", one, both, v "driver", \
	    q "driver")
	line("both with none", one, both, v "itr=0", q "itr=0")
	print ""
	printf "valed uses %.1f MB beside the guests' own memory.\n", memory
}
