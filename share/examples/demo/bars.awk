# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Lays out the bars of the stock guests' picture, from results.tsv: a record for
# each setting with column `column' of valed and of QEMU, each as a number, NaN
# if it is missing, and as text.

BEGIN {
	FS = OFS = "\t"
	n = split("itr=0 itr=250 driver", setting, " ")
}

function text(s)
{
	return sprintf(s >= 100 || s == int(s) ? "%.0f" : s >= 1 ? "%.1f" : \
	    "%.2f", s)
}

$column ~ /^[0-9.]+$/ { value[$1, $2] = $column }

END {
	for (i = 1; i <= n; i++) {
		line = i OFS setting[i]
		for (k = 1; k <= 2; k++) {
			cell = (k == 1 ? "valed" : "qemu") SUBSEP setting[i]
			line = line OFS ((cell in value) ? value[cell] OFS \
			    text(value[cell]) : "NaN" OFS "")
		}
		print line
	}
}
