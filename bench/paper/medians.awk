# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints medians.csv: the median of the rounds of each point of results.tsv, with
# the least and the greatest.  It uses results.awk and ../median.awk.

function print_point(key,	part, r, list, v, n) {
	split(key, part, SUBSEP)
	for (r = 1; r <= rounds; r++)
		if ((key, r) in values)
			list = list " " median(values[key, r])
	n = sorted(list, v)
	print part[1] "," part[2] "," part[3] "," median(list) "," v[1] "," \
	    v[n] "," n
}

END {
	print "series,x,quantity,median,min,max,rounds"
	for (i = 1; i <= npoints; i++)
		print_point(points[i])
}
