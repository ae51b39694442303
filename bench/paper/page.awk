# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints index.html, which stands alone but for the SVGs beside it: first what users
# ask, then the pictures, what the papers conclude, and the other tables; what was not
# measured is folded away.  It uses rows.awk, and reads verdicts.tsv, too.  All text
# is escaped.  pictures is no if there are none.

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
	print "<meta name=\"viewport\" content=\"width=device-width," \
	    " initial-scale=1\"/>"
	print "<title>bhyve-vale: what was measured</title>"
	print "<style>"
	print "body { font: 15px/1.4 sans-serif; max-width: 1000px;" \
	    " margin: 0 auto; padding: 0 8px; color: #222 }"
	print "h1 { font-size: 24px } h2 { font-size: 19px; margin: 36px 0 4px }"
	print "p { margin: 4px 0 }"
	print "table { border-collapse: collapse; font-size: 12.5px; margin: 8px 0 }"
	print "th, td { border-bottom: 1px solid #ddd; padding: 1px 6px;" \
	    " text-align: left; vertical-align: top }"
	print "div.t { overflow-x: auto } td:first-child { min-width: 100px }"
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
	print "<h1>bhyve-vale: what was measured</h1>"
}

# What machine.tsv says of NAME.
function of_machine(name,	i) {
	for (i = 1; i <= nmachine; i++)
		if (machine[i] == name)
			return (machine_text[i])
	return ("")
}

function about(	accel) {
	accel = of_machine("accel")
	print "<p>" (accel == "" ? "" : "All guests ran on " esc(accel) ". ") \
	    "Compare the rows: &#215; is the ratio to the first row of a group, and" \
	    " where processors are emulated all rates are far lower. Each value is" \
	    " the median of the rounds, with the least and the greatest.</p>"
	if (pictures == "no")
		print "<p>There are no pictures: gnuplot was not installed.</p>"
}

function about_machine(	i) {
	print "<h2 id=\"machine\">The machine</h2>\n<div class=\"t\"><table>"
	for (i = 1; i <= nmachine; i++)
		print "<tr>" cell(esc(machine[i])) cell(esc(machine_text[i])) "</tr>"
	print "</table></div>"
}

function links(	i) {
	print "<p>"
	for (i = 1; i <= nfigs; i++)
		if (is_measured(fig[i]))
			printf "<a href=\"#%s\">%s</a> &#183;\n", fig[i],
			    short(title[fig[i]])
	print "<a href=\"#conclusions\">conclusions</a> &#183;\n" \
	    "<a href=\"#skipped\">what was not measured</a> &#183;\n" \
	    "<a href=\"#machine\">the machine</a></p>"
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

function claims(	i, n) {
	print "<h2 id=\"conclusions\">What the papers conclude</h2>"
	counts()
	print "<p>The papers call the plain driver BASE, moderation ITR, combining" \
	    " SC, shared memory CSB, and virtio-net VIRTIO.</p>"
	claims_table(0)
	for (i = 1; i <= nclaims; i++)
		n += verdict[i] == "not measured"
	if (n == 0)
		return
	print "<details><summary>" n " rows that were not measured</summary>"
	claims_table(1)
	print "</details>"
}

# The rows that were measured, or those that were not.
function claims_table(not,	i) {
	print "<div class=\"t\"><table>\n<tr><th>figure</th><th>what it says</th>" \
	    "<th>theirs</th><th>ours</th><th>here</th><th>note</th></tr>"
	for (i = 1; i <= nclaims; i++)
		if (verdict[i] != "no conclusion" && \
		    (verdict[i] == "not measured") == not)
			print "<tr id=\"" esc(claim_id[i]) "\"" \
			    (claim_id[i] ~ /[.]/ ? " class=\"o\"" : "") ">" \
			    cell(esc(claim_figure[i])) \
			    cell(esc(statement(i, not)), "w") \
			    cell(esc(claim_theirs[i])) \
			    cell(esc(claim_ours[i])) \
			    cell(esc(verdict[i]), class_of(verdict[i])) \
			    cell(esc(note(claim_why[i]))) "</tr>"
	print "</table></div>"
}

# What a row says; of another form of a conclusion, whose row is in the other table,
# with that.
function statement(i, not,	id) {
	id = base_id(claim_id[i])
	if (id == claim_id[i] || (primary[id] == "not measured") == not)
		return (claim_what[i])
	return (what_of[id] " " claim_what[i])
}

function note(why) {
	if (why ~ /^no result of /)
		return ("this run has no result of it")
	return (why == "-" ? "" : why)
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
			    2 * (to - from) + 3, esc(in_line(group))
		}
		print "<tr>" row_cells(id, k, base, from, to) "</tr>"
	}
	print "</table></div>"
}

# A group's name, which has semicolons where a picture has lines.
function in_line(name) {
	gsub(/; /, ", ", name)
	return (name == "-" ? "" : name)
}

function table_head(id, from, to,	p) {
	print "<div class=\"t\"><table>\n<tr><th></th>"
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
	print "<div class=\"t\"><table>\n<tr>" line "</tr>"
	for (k = 1; k <= nrows[id]; k++) {
		line = t = ""
		for (i = 1; i <= n; i++)
			line = line ours_cell(row_series[id, k] SUBSEP x[i] SUBSEP q, "")
		for (i = 1; i <= n; i++)
			t = t theirs_cell(theirs_of(id, row_series[id, k], x[i], q), "")
		if (line t ~ /[0-9]/)
			print "<tr>" cell(esc(row_label[id, k])) line "</tr>"
		if (t ~ /[0-9]/)
			print "<tr>" cell("theirs", "t") t "</tr>"
	}
	print "</table></div>"
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

# Figures without a value, folded away, and what skipped.tsv has.
function not_measured(	f, i, n) {
	print "<h2 id=\"skipped\">What was not measured</h2>"
	for (f = 1; f <= nfigs; f++)
		n += !is_measured(fig[f])
	if (n == 0 && nskipped == 0)
		print "<p>Nothing was left out.</p>"
	if (n > 0) {
		print "<details><summary>" n " figures and tables</summary>"
		for (f = 1; f <= nfigs; f++)
			if (!is_measured(fig[f]))
				figure(fig[f])
		print "</details>"
	}
	if (nskipped == 0)
		return
	print "<div class=\"t\"><table>"
	for (i = 1; i <= nskipped; i++)
		if (!((skipped[i], skipped_why[i]) in listed)) {
			listed[skipped[i], skipped_why[i]] = 1
			print "<tr>" cell(esc(series_words(skipped[i]))) \
			    cell(esc(skipped_why[i])) "</tr>"
		}
	print "</table></div>"
}

function base_id(id) {
	sub(/[.].*/, "", id)
	return (id)
}

# Where a paper says it.
function place(source, number,	kind_of) {
	if (source == "ANCS" || source == "CoNEXT")
		source = source (source == "ANCS" ? " 2013" : " 2012")
	if (number == "-")
		return (source)
	kind_of = gsub(/T/, "", number) > 0 ? "Table" : "Figure"
	return (source ", " kind_of " " number)
}

what == "verdicts" {
	claim_id[++nclaims] = $1
	claim_figure[nclaims] = place($8, $2)
	claim_what[nclaims] = $3
	claim_theirs[nclaims] = $4
	claim_ours[nclaims] = $5
	verdict[nclaims] = $6
	claim_why[nclaims] = $7
	if ($6 == "no conclusion" || $1 !~ /[.]/) {
		n_of[$6]++
		nprimary += $6 != "no conclusion"
		primary[$1] = $6
		what_of[$1] = $3
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
	for (f = 1; f <= nfigs; f++)
		if (fig[f] == "users" && is_measured(fig[f]))
			figure(fig[f])
	for (f = 1; f <= nfigs; f++)
		if (is_drawn(fig[f]))
			figure(fig[f])
	claims()
	for (f = 1; f <= nfigs; f++)
		if (fig[f] != "users" && !is_drawn(fig[f]) && is_measured(fig[f]))
			figure(fig[f])
	not_measured()
	about_machine()
	print "</body>\n</html>"
}
