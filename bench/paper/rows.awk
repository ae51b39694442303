# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Reads what figures and page are made of, for figures.awk and page.awk, which
# follow this file: machine.tsv, figures.tsv, curves.tsv, medians.csv, skipped.tsv
# and the papers' values (data).  Before each input stands what=NAME.
#
# It uses expand.awk, words.awk and ../median.awk.

function read_figure(	id) {
	if ($2 != "-" && $2 != guest)
		return
	id = $1
	fig[++nfigs] = id
	title[id] = $3
	says[id] = $4
	kind[id] = $5
	xlabel[id] = $6
	ylabel[id] = $7
	logs[id] = $8
	npanels[id] = read_quantities(id, $9, 0)
	ncolumns[id] = read_quantities(id, $10, npanels[id])
	data_of[id] = $11
	sub(/figG/, guest == "freebsd" ? "fig5" : "fig4", data_of[id])
}

function read_quantities(id, text, n,	part, m, i, at) {
	m = text == "-" ? 0 : split(text, part, ";")
	for (i = 1; i <= m; i++) {
		at = index(part[i], "=")
		quantity[id, n + i] = substr(part[i], 1, at - 1)
		label_of[id, n + i] = substr(part[i], at + 1)
	}
	return (n + m)
}

function read_curve(	id, list, n, i, ids, m, j) {
	n = expand($4, list)
	m = split($1, ids, ",")
	for (j = 1; j <= m; j++)
		for (i = 1; i <= n; i++)
			add_row(ids[j], $2, $3, list[i])
}

function add_row(id, group, label, series,	k, part) {
	k = ++nrows[id]
	split(series, part, "@")
	row_group[id, k] = group
	row_series[id, k] = part[1]
	row_x[id, k] = part[2] == "" ? "-" : part[2]
	if (label == "*") {
		label = part[1]
		sub(/.*\//, "", label)
		label = mode_words(label)
	}
	row_label[id, k] = label
}

function read_median(	f) {
	split($0, f, ",")
	if (f[1] == "series")
		return
	ours[f[1], f[2], f[3]] = f[4]
	low[f[1], f[2], f[3]] = f[5]
	high[f[1], f[2], f[3]] = f[6]
	note_x(f[1], f[3], f[2])
}

# Remember that a series has a value at x.
function note_x(series, quantity, x) {
	if (!has(xs[series, quantity] "", x))
		xs[series, quantity] = xs[series, quantity] " " x
}

function read_data(	file) {
	file = FILENAME
	sub(/.*\//, "", file)
	sub(/[.]tsv$/, "", file)
	theirs[file, $1, $2, $3] = theirs[file, $1, $2, $3] \
	    (theirs[file, $1, $2, $3] == "" ? "" : ";") $4 "=" $5
}

# The papers' values of a point in a figure: VALUE=WHOSE[;VALUE=WHOSE ...].
function theirs_of(id, series, x, q,	file, n, i, text, t) {
	n = split(data_of[id], file, " ")
	for (i = 1; i <= n; i++) {
		t = theirs[file[i], series, x, q]
		if (t != "")
			text = text (text == "" ? "" : ";") t
	}
	return (text)
}

function is_measured(id,	k, p, x, n, i) {
	for (k = 1; k <= nrows[id]; k++)
		for (p = 1; p <= ncolumns[id]; p++) {
			if (kind[id] == "lines" ? \
			    (row_series[id, k], quantity[id, p]) in xs : \
			    (row_series[id, k], row_x[id, k], quantity[id, p]) in ours)
				return (1)
		}
	return (0)
}

# Whether one of the panels has a value: there is a picture.
function is_drawn(id,	k, p) {
	if (kind[id] == "table")
		return (0)
	for (k = 1; k <= nrows[id]; k++)
		for (p = 1; p <= npanels[id]; p++)
			if (kind[id] == "lines" ? \
			    (row_series[id, k], quantity[id, p]) in xs : \
			    (row_series[id, k], row_x[id, k], quantity[id, p]) in ours)
				return (1)
	return (0)
}

function has(list, word) {
	return (index(" " list " ", " " word " ") > 0)
}

# All x of a figure's curves, in order, into v; returns how many.
function all_x(id, v,	k, x, n, i, list) {
	for (k = 1; k <= nrows[id]; k++) {
		if (!((row_series[id, k], quantity[id, 1]) in xs))
			continue
		n = split(xs[row_series[id, k], quantity[id, 1]], x, " ")
		for (i = 1; i <= n; i++)
			if (!has(list, x[i]))
				list = list " " x[i]
	}
	return (sorted(list, v))
}

BEGIN {
	FS = OFS = "\t"
	guest = "linux"
}
what != "skipped" && what != "machine" && what != "verdicts" && /^(#|$)/ { next }
what == "machine" {
	if ($1 == "guest")
		guest = $2
	machine[++nmachine] = $1
	machine_text[nmachine] = $2
}
what == "figures" { read_figure() }
what == "curves" { read_curve() }
what == "medians" { read_median() }
what == "data" { read_data() }
what == "skipped" {
	skipped[++nskipped] = $1
	skipped_why[nskipped] = $2
}
