# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints the stock guests' table, from results.tsv; memory is valed's, in MB.

BEGIN {
	FS = "\t"
	print ""
	print "                 UDP, 60 bytes, Kpps: sent, arrived  frames for one  " \
	    "exits   TCP    ping,"
	print "                    one way         both ways       interrupt    " \
	    "for a  Mbit/s  there"
	print "                  sent    arr.    sent    arr.    one    both   " \
	    "frame           and"
	print "                                                  way    ways   " \
	    "              back, us"
}

{
	printf "%-6s %-8s %7.1f %7.1f %7.1f %7.1f %7.1f %7.1f %6.2f %6d %8d\n", \
	    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
	sent_one[$1, $2] = $3
	one[$1, $2] = $4
	sent_both[$1, $2] = $5
	both[$1, $2] = $6
	fpi_one[$1, $2] = $7
	fpi_both[$1, $2] = $8
}

function ratio(a, b)
{
	return b > 0 ? a / b : 0
}

# line(WHAT, A, B, X, Y): A[X] / A[Y] one way, and B[X] / B[Y] both ways.
function line(what, a, b, x, y)
{
	printf "  %-34s x%.2f one way, x%.2f both ways\n", what, \
	    ratio(a[x], a[y]), ratio(b[x], b[y])
}

function rates(x, y)
{
	line("frames sent in a second", sent_one, sent_both, x, y)
	line("frames that arrived in a second", one, both, x, y)
}

END {
	v = "valed" SUBSEP
	q = "qemu" SUBSEP
	print ""
	print "valed, itr=250 compared with itr=0:"
	line("frames for one interrupt", fpi_one, fpi_both, v "itr=250", \
	    v "itr=0")
	rates(v "itr=250", v "itr=0")
	print "valed compared with QEMU's own adapter, both with itr=250:"
	rates(v "itr=250", q "itr=250")
	print "both with the driver's moderation:"
	rates(v "driver", q "driver")
	print "both with none:"
	rates(v "itr=0", q "itr=0")
	print ""
	printf "valed uses %.1f MB besides the guests' memory.\n", memory
}
