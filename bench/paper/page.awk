# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints index.html, which stands alone but for the SVGs beside it.  It uses
# rows.awk, and reads verdicts.tsv, too.  All text is escaped.  pictures is no if
# there are none.

function esc(text) {
	gsub(/&/, "\\&amp;", text)
	gsub(/</, "\\&lt;", text)
	gsub(/>/, "\\&gt;", text)
	gsub(/"/, "\\&quot;", text)
	return (text)
}

function cell(text, class) {
	return ("<td" (class == "" ? "" : " class=\"" class "\"") ">" text "</td>")
}

function num(y) {
	y += 0
	if (y > 0 && y < 0.001)
		return ("&lt;0.001")
	if (y == int(y) || y >= 100)
		return (sprintf("%.0f", y))
	return (sprintf(y >= 10 ? "%.1f" : y >= 0.1 ? "%.2f" : "%.2g", y))
}

function ratio(y, base) {
	return (base + 0 > 0 ? " <i>&#215;" num(y / base) "</i>" : "")
}

function head() {
	print "<!DOCTYPE html>\n<html lang=\"en\">\n<head>"
	print "<meta charset=\"utf-8\"/>"
	print "<title>bhyve-vale: the papers' figures</title>"
	print "<style>"
	print "body { font: 15px/1.4 sans-serif; max-width: 1000px;" \
	    " margin: 0 auto; padding: 0 8px; color: #222 }"
	print "h1 { font-size: 24px } h2 { font-size: 19px; margin: 36px 0 4px }"
	print "p { margin: 4px 0 }"
	print "table { border-collapse: collapse; font-size: 12.5px; margin: 8px 0 }"
	print "th, td { border-bottom: 1px solid #ddd; padding: 1px 6px;" \
	    " text-align: left; vertical-align: top }"
	print "td.n, th.n { text-align: right } td.n { white-space: nowrap }"
	print "td.t { text-align: right; white-space: nowrap; color: #767676 }"
	print "td i { color: #555 } small { color: #767676; display: block }"
	print "tr.g td { font-weight: bold; border-bottom: 1px solid #999 }"
	print "tr.o td { color: #555 } tr.o td.w { padding-left: 20px }"
	print "td.holds { color: #00694d; white-space: nowrap }"
	print "td.not { color: #b34700; font-weight: bold; white-space: nowrap }"
	print "td.none { color: #767676; white-space: nowrap }"
	print "summary { cursor: pointer; font-size: 13px; color: #555 }"
	print "img { width: 100%; height: auto; display: block }"
	print "</style>\n</head>\n<body>"
	print "<h1>The papers' figures, measured on bhyve-vale</h1>"
}

function about(	i) {
	print "<p>Ours beside what the papers print. Each value is the median of" \
	    " the rounds, with the least and the greatest; &#215; is the ratio to" \
	    " the first row of a group. Ratios carry the conclusion: guests may run on" \
	    " an emulated processor, where rates are far lower.</p>"
	if (pictures == "no")
		print "<p>There are no pictures: gnuplot was not installed.</p>"
	print "<table>"
	for (i = 1; i <= nmachine; i++)
		print "<tr>" cell(esc(machine[i])) cell(esc(machine_text[i])) "</tr>"
	print "</table>"
}

function links(	i) {
	print "<p><a href=\"#conclusions\">Conclusions</a>"
	for (i = 1; i <= nfigs; i++)
		printf " &#183; <a href=\"#%s\">%s</a>\n", fig[i],
		    short(title[fig[i]])
	print " &#183; <a href=\"#skipped\">what could not be measured</a></p>"
}

# A title up to its colon.
function short(text) {
	sub(/:.*/, "", text)
	return (esc(text))
}

function class_of(verdict) {
	return (verdict == "holds" ? "holds" : verdict == "does not hold" ? "not" : \
	    "none")
}

function counts(	i) {
	print "<p>Of " nprimary " conclusions " n_of["holds"] + 0 " hold, " \
	    n_of["does not hold"] + 0 " do not, " n_of["undecided"] + 0 " are" \
	    " undecided, holding in some rounds only (" nforms + 0 " of these" \
	    " and of the ones not measured hold in another form, in the row below), " \
	    n_of["not measured"] + 0 " were not measured. " \
	    n_of["no conclusion"] + 0 " more statements are setup or background.</p>"
}

function claims(	i) {
	print "<h2 id=\"conclusions\">Conclusions</h2>"
	counts()
	print "<table>\n<tr><th>id</th><th>figure</th><th>what it says</th>" \
	    "<th>theirs</th><th>ours</th><th>here</th><th>note</th></tr>"
	for (i = 1; i <= nclaims; i++)
		if (verdict[i] != "no conclusion")
			print "<tr" (claim_id[i] ~ /[.]/ ? " class=\"o\"" : "") ">" \
			    cell(esc(claim_id[i])) cell(esc(claim_figure[i])) \
			    cell(esc(claim_what[i]), "w") cell(esc(claim_theirs[i])) \
			    cell(esc(claim_ours[i])) \
			    cell(esc(verdict[i]), class_of(verdict[i])) \
			    cell(claim_why[i] == "-" ? "" : esc(claim_why[i])) "</tr>"
	print "</table>"
}

# Ours as a cell: value, ratio to the base, least and greatest.
function ours_cell(key, base,	text) {
	if (!(key in ours))
		return (cell("-", "n"))
	text = num(ours[key]) ((base in ours) && base != key ? \
	    ratio(ours[key], ours[base]) : "")
	if (num(low[key]) != num(high[key]))
		text = text "<small>" num(low[key]) " to " num(high[key]) "</small>"
	return (cell(text, "n"))
}

function theirs_cell(list, base,	part, n, i, at, text, who) {
	n = split(list, part, ";")
	for (i = 1; i <= n; i++) {
		at = index(part[i], "=")
		who = substr(part[i], at + 1)
		text = text (i > 1 && who == "-" ? "<br/>" : "") \
		    num(substr(part[i], 1, at - 1)) \
		    (n == 1 && base != "" && base != list && base !~ /;/ ? \
		    ratio(part[i] + 0, base + 0) : "") \
		    (who == "-" ? "" : " <small>" esc(who) "</small>")
	}
	return (cell(text == "" ? "-" : text, "t"))
}

# Whether any row has a value of theirs in a column.
function has_theirs(id, p,	k) {
	for (k = 1; k <= nrows[id]; k++)
		if (theirs_of(id, row_series[id, k], row_x[id, k], \
		    quantity[id, p]) != "")
			return (1)
	return (0)
}

function row_has(id, k, from, to,	p) {
	for (p = from; p <= to; p++)
		if ((row_series[id, k], row_x[id, k], quantity[id, p]) in ours ||
		    theirs_of(id, row_series[id, k], row_x[id, k], \
		    quantity[id, p]) != "")
			return (1)
	return (0)
}

# A table of some of a figure's quantities.
function table_of_rows(id, from, to,	k, base, group) {
	table_head(id, from, to)
	for (k = 1; k <= nrows[id]; k++) {
		if (!row_has(id, k, from, to))
			continue
		if (row_group[id, k] != group || base == "") {
			group = row_group[id, k]
			base = k
			printf "<tr class=\"g\"><td colspan=\"%d\">%s</td></tr>\n",
			    2 * (to - from) + 3, esc(group)
		}
		print "<tr>" row_cells(id, k, base, from, to) "</tr>"
	}
	print "</table>"
}

function table_head(id, from, to,	p) {
	print "<table>\n<tr><th></th>"
	for (p = from; p <= to; p++) {
		shown[p] = has_theirs(id, p)
		printf "<th class=\"n\">%s</th>%s", esc(label_of[id, p]), \
		    shown[p] ? "<th class=\"n\">theirs</th>" : ""
	}
	print "</tr>"
}

# A row's label, and for each quantity ours and, where they have any, theirs.
function row_cells(id, k, base, from, to,	p, key, line, t) {
	line = cell(esc(row_label[id, k]))
	for (p = from; p <= to; p++) {
		key = SUBSEP quantity[id, p]
		line = line ours_cell(row_series[id, k] SUBSEP row_x[id, k] key,
		    row_series[id, base] SUBSEP row_x[id, base] key)
		t = k == base ? "" : theirs_of(id, row_series[id, base],
		    row_x[id, base], quantity[id, p])
		if (shown[p])
			line = line theirs_cell(theirs_of(id, row_series[id, k],
			    row_x[id, k], quantity[id, p]), t)
	}
	return (line)
}

function table_of_lines(id,	k, i, n, x, t, q, line) {
	q = quantity[id, 1]
	n = all_x(id, x)
	line = "<th>" esc(xlabel[id]) "</th>"
	for (i = 1; i <= n; i++)
		line = line "<th class=\"n\">" x[i] "</th>"
	print "<table>\n<tr>" line "</tr>"
	for (k = 1; k <= nrows[id]; k++) {
		line = cell(esc(row_label[id, k]))
		t = ""
		for (i = 1; i <= n; i++)
			line = line ours_cell(row_series[id, k] SUBSEP x[i] SUBSEP q, "")
		for (i = 1; i <= n; i++)
			t = t theirs_cell(theirs_of(id, row_series[id, k], x[i], q), "")
		print "<tr>" line "</tr>"
		if (t ~ /[0-9]/)
			print "<tr>" cell("theirs", "t") t "</tr>"
	}
	print "</table>"
}

# Why a figure has nothing, from skipped.tsv.
function why_not(id,	k, i) {
	for (k = 1; k <= nrows[id]; k++)
		for (i = 1; i <= nskipped; i++)
			if (index(row_series[id, k], skipped[i]) == 1)
				return (skipped_why[i])
	return ("this run has no result of it")
}

function figure(id) {
	printf "<h2 id=\"%s\">%s</h2>\n<p>%s</p>\n", id, esc(title[id]),
	    esc(says[id])
	if (!is_measured(id)) {
		print "<p>Not measured: " esc(why_not(id)) ".</p>"
		return
	}
	if (is_drawn(id) && pictures != "no")
		printf "<img src=\"%s.svg\" alt=\"%s\"/>\n", id, esc(title[id])
	if (kind[id] == "lines")
		table_of_lines(id)
	else {
		table_of_rows(id, 1, npanels[id])
		if (ncolumns[id] == npanels[id])
			return
		print "<details><summary>More columns</summary>"
		table_of_rows(id, npanels[id] + 1, ncolumns[id])
		print "</details>"
	}
}

function not_measured(	i) {
	print "<h2 id=\"skipped\">What could not be measured</h2>"
	if (nskipped == 0) {
		print "<p>Nothing was left out.</p>"
		return
	}
	print "<table>"
	for (i = 1; i <= nskipped; i++)
		if (!((skipped[i], skipped_why[i]) in listed)) {
			listed[skipped[i], skipped_why[i]] = 1
			print "<tr>" cell(esc(skipped[i])) \
			    cell(esc(skipped_why[i])) "</tr>"
		}
	print "</table>"
}

function base_id(id) {
	sub(/[.].*/, "", id)
	return (id)
}

what == "verdicts" {
	claim_id[++nclaims] = $1
	claim_figure[nclaims] = $8 ($2 == "-" ? "" : " " $2)
	claim_what[nclaims] = $3
	claim_theirs[nclaims] = $4
	claim_ours[nclaims] = $5
	verdict[nclaims] = $6
	claim_why[nclaims] = $7
	if ($6 == "no conclusion" || $1 !~ /[.]/) {
		n_of[$6]++
		nprimary += $6 != "no conclusion"
		primary[$1] = $6
	} else if ($6 == "holds" && primary[base_id($1)] != "holds" && \
	    !(base_id($1) in formed)) {
		formed[base_id($1)] = 1
		nforms++
	}
}

END {
	head()
	about()
	links()
	# What a user of guests asks first.
	if (fig[1] == "users")
		figure(fig[1])
	claims()
	for (f = 1; f <= nfigs; f++)
		if (fig[f] != "users")
			figure(fig[f])
	not_measured()
	print "</body>\n</html>"
}
