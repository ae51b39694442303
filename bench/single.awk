# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints the table of single.csv (bench.sh): the time of a single frame through
# valed beside other adapters, the frames that busy ones send, and the memory of an
# idle one.  Each is the median of the rounds.  A line of single.csv is what
# single.c prints.  It uses median.awk.

{
	row = $1 "," $2 "," $3
	if (!(row in us))
		order[++n] = row
	us[row] = us[row] " " $5
	p99[row] = p99[row] " " $6
	fps[row] = fps[row] " " $9
	kb[row] = kb[row] " " $10
}

END {
	if (n == 0)
		exit
	print ""
	print "A single frame through valed, from the message that writes TDT to"
	print "the receiver's eventfd, beside adapters that send all the time (busy)"
	print "and connected ones that do not (idle).  Through vhost-user, from the store"
	print "that posts the frame: vhost, DPDK's testpmd, which polls; passt, which"
	print "sleeps and answers itself"
	print ""
	print "                                  us, of     frames/s of   KB of an"
	print "                busy  idle  median  99 of 100  the busy    idle one"
	for (i = 1; i <= n; i++) {
		split(order[i], key, ",")
		none = key[1] "," key[2] ",0"
		each = key[3] > 0 && none in kb ? sprintf("%.0f",
		    (median(kb[order[i]]) - median(kb[none])) / key[3]) : "-"
		printf "  %-13s %4d %5d %7.1f %10.1f %9d %11s\n", key[1], key[2],
		    key[3], median(us[order[i]]), median(p99[order[i]]),
		    median(fps[order[i]]), each
	}
}
