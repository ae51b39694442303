# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Reads series.tsv and results.tsv, for the programs of report.sh, which follow
# this file, expand.awk and ../median.awk.  Before each input stands what=NAME.
#
# Names a series may have are in x_of and quantities_of.  values[series, x,
# quantity, round] is a list; xs_of[series, quantity] the x that were measured.

function fail(text) {
	printf "%s: line %d: %s\n", FILENAME, FNR, text > "/dev/stderr"
	failed = 1
	exit 1
}

function number(text) {
	return (text ~ /^-?[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?$/)
}

function has(list, word) {
	return (index(" " list " ", " " word " ") > 0)
}

function read_series(	list, n, i) {
	n = expand($3, list)
	$3 = list[1]
	for (i = 2; i <= n; i++)
		$3 = $3 " " list[i]
	n = expand($1, list)
	for (i = 1; i <= n; i++) {
		x_of[list[i]] = $2
		quantities_of[list[i]] = $3
	}
}

# What is wrong with a line of results.tsv, or "".
function result_error() {
	if (NF != 5)
		return (NF " fields, not round, series, x, quantity, value")
	if ($1 !~ /^[1-9][0-9]*$/)
		return ("round is no number: " $1)
	if (!($2 in x_of))
		return ("unknown series: " $2)
	if (!has(quantities_of[$2], $4))
		return ("series " $2 " has no quantity " $4)
	if (x_of[$2] == "-" ? $3 != "-" : !number($3))
		return ("x of " $2 " is " (x_of[$2] == "-" ? "-" : "a number") \
		    ", not " $3)
	if (!number($5))
		return ("value is no number: " $5)
	return ("")
}

function read_result(	error, x) {
	error = result_error()
	if (error != "")
		fail(error)
	x = $3 == "-" ? "-" : $3 + 0
	if ($1 + 0 > rounds)
		rounds = $1 + 0
	if (!((" " $2, $4, x) in seen_x)) {
		seen_x[" " $2, $4, x] = 1
		xs_of[$2, $4] = xs_of[$2, $4] " " x
		points[++npoints] = $2 SUBSEP x SUBSEP $4
	}
	values[$2, x, $4, $1 + 0] = values[$2, x, $4, $1 + 0] " " ($5 + 0)
}

BEGIN { FS = OFS = "\t" }
what != "results" && /^(#|$)/ { next }
what == "series" { read_series() }
what == "results" { read_result() }
END {
	if (failed)
		exit 1
}
