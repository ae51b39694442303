# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints the ladder's table, from ladder.tsv: bytes, mode, Kpps that arrived;
# exits and interrupts for a frame sent, the same for a frame received.

BEGIN {
	FS = "\t"
	print ""
	print "Two micro-guests,                   for a frame sent  " \
	    "for a frame received"
	print "one way                       Kpps  exits interrupts  " \
	    "exits interrupts"
}

function ratio(a, b)
{
	return b > 0 ? a / b : 0
}

$1 == "rtt" {
	rtt[$2] = $3
	next
}

$1 == "overload" {
	overload[$2] = sprintf("  %-12s %7.1f of %7.1f  %7.1f of %7.1f  x%.2f" \
	    "  %8d at the port, %d in the adapter", \
	    $2, $4, $3, $6, $5, ratio($6, $4), $7, $8)
	next
}

{
	if (!($1 in base))
		base[$1] = $3
	printf "%4d %-23s %6.1f %6.3f %10.3f %6.3f %10.3f  x%.1f\n", \
	    $1, $2, $3, $4, $5, $6, $7, ratio($3, base[$1])
}

END {
	print "Round-trip time of single frames, median:"
	for (mode in rtt)
		printf "  %-12s %7.1f us  x%.2f\n", mode, rtt[mode], \
		    ratio(rtt[mode], rtt["BASE"])
	print "A receiver that needs 20 us for a frame, Kpps received of Kpps " \
	    "sent: at its own rate,"
	print "and at the sender's full rate; frames dropped of the latter:"
	for (mode in overload)
		print overload[mode]
}
