# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Writes for each figure that has a value what gnuplot draws: DIR/ID.par, which sets
# variables for bars.gp or lines.gp, and DIR/ID.dat; prints ID and the program's
# name.  It uses rows.awk.
#
# ID.dat of bars: for each panel three blocks, ours (place, value, min, max, colour),
# theirs (place, value), and zeros of ours (place, height, text).  Of lines: a block
# for each curve (x, value, min, max), then one of theirs.

function quoted(text) {
	gsub(/'/, "''", text)
	return ("'" text "'")
}

# The colour of a series, by its mode.
function color(series) {
	if (series ~ /^virtio/)
		return (6)
	sub(/.*\//, "", series)
	if (series ~ /csb/)
		return (series ~ /itr/ ? 5 : 4)
	return (series ~ /sc/ ? 3 : series ~ /itr/ ? 2 : series == "base" ? 1 : 7)
}

# 1, 2 or 5 times a power of ten, at most y (up = 0) or at least y (up = 1).
function step(y, up,	p, m) {
	p = exp(log(10) * floor(log(y) / log(10) + 1e-9))
	m = y / p
	if (up)
		return (p * (m <= 1.0001 ? 1 : m <= 2.0001 ? 2 : \
		    m <= 5.0001 ? 5 : 10))
	return (p * (m >= 4.9999 ? 5 : m >= 1.9999 ? 2 : 1))
}

function floor(y,	i) {
	i = int(y)
	return (i > y ? i - 1 : i)
}

# Take y into the range of the axis.
function include(y) {
	if (y + 0 <= 0)
		return
	if (least == "" || y + 0 < least)
		least = y + 0
	if (y + 0 > greatest)
		greatest = y + 0
}

function include_all(list,	part, n, i) {
	n = split(list, part, ";")
	for (i = 1; i <= n; i++)
		include(part[i] + 0)
}

function print_theirs(place, list, dat,	part, n, i) {
	n = split(list, part, ";")
	for (i = 1; i <= n; i++)
		print place, part[i] + 0 > dat
}

# Whether a row of bars has anything in a panel.
function is_used(id, k,	p) {
	for (p = 1; p <= npanels[id]; p++)
		if ((row_series[id, k], row_x[id, k], quantity[id, p]) in ours ||
		    theirs_of(id, row_series[id, k], row_x[id, k], \
		    quantity[id, p]) != "")
			return (1)
	return (0)
}

# Give each used row a place in its group.
function place_rows(id,	k) {
	ngroups = 0
	split("", place)
	for (k = 1; k <= nrows[id]; k++) {
		if (!is_used(id, k))
			continue
		if (ngroups == 0 || row_group[id, k] != group_name[ngroups]) {
			group_name[++ngroups] = row_group[id, k]
			members[ngroups] = 0
		}
		members[ngroups]++
		group_of[k] = ngroups
		place[k] = members[ngroups]
	}
}

# The longest of a group's lines, which semicolons part.
function longest(name,	line, n, i, most) {
	n = split(name, line, "; ")
	for (i = 1; i <= n; i++)
		if (length(line[i]) > most)
			most = length(line[i])
	return (most + 0)
}

# Widen groups that are narrower than their names, of 7 pixels a letter; returns
# whether there was one.
function widen(	g, total, changed) {
	for (g = 1; g <= ngroups; g++)
		total += width[g] + 1
	for (g = 1; g <= ngroups; g++)
		if ((width[g] + 1) * 880 / total < longest(group_name[g]) * 7) {
			width[g]++
			changed = 1
		}
	return (changed)
}

function place_groups(	g, turn) {
	for (g = 1; g <= ngroups; g++)
		width[g] = members[g]
	for (turn = 0; turn < 30 && widen(); turn++)
		;
	start[1] = 0
	for (g = 1; g <= ngroups; g++)
		start[g + 1] = start[g] + width[g] + 1
}

function where(k,	g) {
	g = group_of[k]
	return (start[g] + (width[g] - members[g]) / 2 + place[k])
}

# How many letters the longest label of a figure's rows has.
function label_length(id,	k, most) {
	for (k = 1; k <= nrows[id]; k++)
		if ((k in place) && length(row_label[id, k]) > most)
			most = length(row_label[id, k])
	return (most + 0)
}

# Set the lines of the groups' names: four for each, from the lowest up.
function bars_groups(par,	g, i, line, n) {
	printf "array group[%d]\n", 4 * ngroups > par
	nlines = 1
	for (g = 1; g <= ngroups; g++) {
		n = split(group_name[g] == "-" ? "" : group_name[g], line, "; ")
		if (n > nlines)
			nlines = n
		for (i = 1; i <= 4; i++)
			printf "group[%d] = %s\n", 4 * (g - 1) + i,
			    quoted(i <= n ? line[n + 1 - i] : "") > par
	}
	printf "nlines = %d\n", nlines > par
}

function bars_par(id, par,	k, g, tics) {
	for (k = 1; k <= nrows[id]; k++)
		if (k in place)
			tics = tics (tics == "" ? "" : ", ") \
			    quoted(row_label[id, k]) " " where(k)
	printf "tics = \"(%s)\"\nletters = %d\n", tics, label_length(id) > par
	printf "npanels = %d\nngroups = %d\nright = %g\n", npanels[id], ngroups,
	    start[ngroups + 1] > par
	printf "dots = %d\n", (kind[id] == "dots") > par
	bars_groups(par)
	printf "array middle[%d]\narray edge[%d]\n", ngroups, ngroups > par
	for (g = 1; g <= ngroups; g++)
		printf "middle[%d] = %g\nedge[%d] = %g\n", g,
		    (start[g] + start[g + 1]) / 2, g, start[g] > par
	printf "array ylo[%d]\narray yhi[%d]\narray ylab[%d]\n", npanels[id],
	    npanels[id], npanels[id] > par
}

function bars_ours(id, p, dat,	k, key, y) {
	print "# ours" > dat
	print 0, "NaN", "NaN", "NaN", 7 > dat
	for (k = 1; k <= nrows[id]; k++) {
		key = row_series[id, k] SUBSEP row_x[id, k] SUBSEP quantity[id, p]
		if (!(k in place) || !(key in ours))
			continue
		y = ours[key]
		include(y + 0)
		include(low[key] + 0)
		include(high[key] + 0)
		print where(k), (y > 0 ? y : "NaN"), (low[key] > 0 ? low[key] : y), \
		    high[key], color(row_series[id, k]) > dat
	}
	print "\n" > dat
}

function bars_theirs(id, p, dat,	k, y) {
	print "# theirs" > dat
	print 0, "NaN" > dat
	for (k = 1; k <= nrows[id]; k++) {
		if (!(k in place))
			continue
		y = theirs_of(id, row_series[id, k], row_x[id, k], quantity[id, p])
		include_all(y)
		print_theirs(where(k), y, dat)
	}
	print "\n" > dat
}

# A zero has no place on a logarithmic axis: a figure at its lower end.
function bars_zeros(id, p, lowest, dat,	k, key) {
	print "# zeros" > dat
	print 0, "NaN", "-" > dat
	for (k = 1; k <= nrows[id]; k++) {
		key = row_series[id, k] SUBSEP row_x[id, k] SUBSEP quantity[id, p]
		if ((k in place) && (key in ours) && ours[key] + 0 == 0)
			print where(k), lowest, "0" > dat
	}
	print "\n" > dat
}

function bars_panel(id, p, par, dat) {
	least = ""
	greatest = 0
	bars_ours(id, p, dat)
	bars_theirs(id, p, dat)
	if (least == "") {
		least = 1
		greatest = 10
	}
	bars_zeros(id, p, step(least / 1.5, 0), dat)
	printf "ylo[%d] = %g\nyhi[%d] = %g\nylab[%d] = %s\n", p,
	    step(least / 1.5, 0), p, step(greatest * 1.1, 1), p,
	    quoted(label_of[id, p]) > par
}

function bars(id, par, dat,	p) {
	place_rows(id)
	place_groups()
	bars_par(id, par)
	for (p = 1; p <= npanels[id]; p++)
		bars_panel(id, p, par, dat)
}

function curve(id, k, dat,	x, n, i, key) {
	printf "# %s\n", row_label[id, k] > dat
	n = sorted(xs[row_series[id, k], quantity[id, 1]] "", x)
	if (n == 0)
		print "NaN", "NaN", "NaN", "NaN" > dat
	for (i = 1; i <= n; i++) {
		key = row_series[id, k] SUBSEP x[i] SUBSEP quantity[id, 1]
		include(ours[key] + 0)
		include(low[key] + 0)
		include(high[key] + 0)
		print x[i], ours[key], low[key], high[key] > dat
	}
	print "\n" > dat
}

function lines(id, par, dat,	k, n, m, i, x, t) {
	least = ""
	greatest = 0
	m = all_x(id, x)
	for (k = 1; k <= nrows[id]; k++)
		if ((row_series[id, k], quantity[id, 1]) in xs) {
			curve(id, k, dat)
			name[++n] = row_label[id, k]
		}
	print "NaN", "NaN" > dat
	for (k = 1; k <= nrows[id]; k++)
		for (i = 1; i <= m; i++) {
			t = theirs_of(id, row_series[id, k], x[i], quantity[id, 1])
			marks += t != ""
			include_all(t)
			print_theirs(x[i], t, dat)
		}
	printf "ncurves = %d\narray curve[%d]\n", n, n > par
	for (i = 1; i <= n; i++)
		printf "curve[%d] = %s\n", i, quoted(name[i]) > par
	lines_axes(id, par, m, x)
	printf "marks = %d\n", (marks > 0) > par
	marks = 0
}

function lines_axes(id, par, m, x,	i, tics) {
	for (i = 1; i <= m; i++)
		tics = tics (i == 1 ? "" : ", ") x[i]
	if (least == "")
		least = greatest = 1
	printf "tics = \"(%s)\"\nxlab = %s\nylab = %s\n", tics, quoted(xlabel[id]),
	    quoted(ylabel[id]) > par
	printf "logx = %d\nlogy = %d\n", (logs[id] ~ /x/), (logs[id] ~ /y/) > par
	if (logs[id] ~ /x/)
		printf "xlo = %g\nxhi = %g\n", x[1] / 1.15, x[m] * 1.15 > par
	else
		printf "xlo = 0\nxhi = %g\n", x[m] * 1.05 > par
	if (logs[id] ~ /y/)
		printf "ylo = %g\nyhi = %g\n", step(least / 1.1, 0),
		    step(greatest * 1.1, 1) > par
	else
		printf "ylo = 0\nyhi = %g\n", greatest * 1.1 > par
}

END {
	for (f = 1; f <= nfigs; f++) {
		id = fig[f]
		if (!is_drawn(id))
			continue
		par = dir "/" id ".par"
		dat = dir "/" id ".dat"
		printf "out = %s\ndat = %s\nscale = %s\n", \
		    quoted(dir "/" id ".svg"), quoted(dat), \
		    quoted(here "/scale.gp") > par
		if (kind[id] == "lines")
			lines(id, par, dat)
		else
			bars(id, par, dat)
		close(par)
		close(dat)
		print id, (kind[id] == "lines" ? "lines" : "bars")
	}
}
