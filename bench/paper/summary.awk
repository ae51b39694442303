# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints verdicts.tsv as the summary, at most 110 columns wide, and the counts; if
# short is set, without what was not measured.
# Conclusions in another form (an id with a suffix) are not counted on their own;
# they follow the statement whose form they are, or have it before them.

# Cut text into lines of at most width columns; returns how many.
function wrap(text, width, line,	word, n, i, m) {
	n = split(text, word, " ")
	m = 1
	line[1] = word[1]
	for (i = 2; i <= n; i++)
		if (length(line[m] " " word[i]) <= width)
			line[m] = line[m] " " word[i]
		else
			line[++m] = word[i]
	return (m)
}

function row(a, b, c, d, e,	la, lb, lc, ld, le, n, i, m) {
	n = wrap(a, 10, la)
	if ((m = wrap(b, 40, lb)) > n)
		n = m
	if ((m = wrap(c, 22, lc)) > n)
		n = m
	if ((m = wrap(d, 17, ld)) > n)
		n = m
	wrap(e, 13, le)
	for (i = 1; i <= n; i++) {
		out = sprintf("%-10s %-40s  %-22s  %-17s  %s", la[i], lb[i], lc[i],
		    ld[i], i == 1 ? e : "")
		sub(/ +$/, "", out)
		print out
	}
}

function base(id) {
	sub(/[.].*/, "", id)
	return (id)
}

function place() {
	return ($2 == "-" ? $8 : $8 " " $2)
}

# What a row says, also if the row that it belongs to is left out.
function statement(	id) {
	id = base($1)
	return (id != $1 && short != "" && first[id] == "not measured" ? \
	    what_of[id] " " $3 : $3)
}

function print_row() {
	if (!heading++)
		row("figure", "what it says", "theirs", "ours", "same")
	row(place(), statement(), $4, $5, $6 ($7 ~ /^varies/ ? ", varies" : ""))
}

BEGIN { FS = "\t" }
$6 == "no conclusion" {
	none++
	next
}
{
	if (short == "" || $6 != "not measured")
		print_row()
	if ($1 !~ /[.]/) {
		all[$8]++
		count[$8, $6]++
		if (!($8 in order)) {
			order[$8] = ++n
			source[n] = $8
		}
		first[$1] = $6
		what_of[$1] = $3
		source_of[$1] = $8
	} else if ($6 == "holds")
		other[base($1)] = 1
}
END {
	print ""
	printf "%-12s %11s %6s %11s %10s %14s %22s\n", "source", "conclusions",
	    "hold", "do not hold", "undecided", "not measured",
	    "hold in another form"
	for (id in first)
		if (first[id] != "holds" && (id in other))
			forms[source_of[id]]++
	for (i = 1; i <= n; i++)
		printf "%-12s %11d %6d %11d %10d %14d %22d\n", source[i],
		    all[source[i]], count[source[i], "holds"],
		    count[source[i], "does not hold"],
		    count[source[i], "undecided"],
		    count[source[i], "not measured"], forms[source[i]]
	printf "%d more statements are setup or background, no conclusions.\n", none
}
