# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Writes a file under dir for each curve that plot.gp draws, from bench.sh's
# results.csv: x, Mpps, Mpps of the bare loop.  A point has a line for each
# round; gnuplot plots their mean.

function point(curve, x) {
	print x, 1e3 / $7, 1e3 / $8 > (dir "/" curve)
}

NR == 1 || $8 == "" { next }
$1 ~ /^(tx|rx|path)$/ { point($1 "-" $2, $3) }
$1 == "switch" && $4 == 1 && $5 == 1 && $6 == 0 {
	point("switch-" $2, $3)
	if ($3 == 256)
		point("size", $2)
}
$1 == "switch" && $2 == 60 && $3 == 256 && $5 == 1 && $6 == 0 {
	point("unicast", $4)
}
# Deliveries a second, not frames.
$1 == "flood" { print $4, $4 * 1e3 / $7, $4 * 1e3 / $8 > (dir "/flood") }
$1 == "switch" && $2 == 60 && $3 == 256 && $4 == 1 && $6 == 0 {
	point("senders", $5)
}
