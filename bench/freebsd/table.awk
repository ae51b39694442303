# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints tables from results.tsv: a line has set, processors of a guest, row,
# direction, round, test, sent a second, received a second.  `base' is the row
# of the set e1000-vale that ratios are to.

BEGIN {
	FS = "\t"
	tests = split("udp8 udp1460 tcp rr pkt-gen-1 pkt-gen", test, " ")
	heading = "UDP, 8 bytes|UDP, 1460 bytes|TCP|TCP RR|pkt-gen -b 1|pkt-gen"
	split(heading, name, "|")
	split("1000 1000 125000 1 1000 1000", unit, " ")
	split("Kpps Kpps Mbit/s 1/s Kpps Kpps", units, " ")
	title["guest"] = "From guest to guest"
	title["host"] = "From guest to host"
	title["from-host"] = "From host to guest"
}

{
	table = $2 SUBSEP $4
	line = $1 SUBSEP $3
	if (!(table in seen)) {
		seen[table] = 1
		order[++tables] = table
	}
	if (!((table, line) in seen)) {
		seen[table, line] = 1
		row[table, ++rows[table]] = line
	}
	measured[table, $6] = 1
	for (i = 7; i <= 8; i++)
		if ($i != "-") {
			k = table SUBSEP line SUBSEP $6 SUBSEP i
			value[k, ++count[k]] = $i
		}
}

# The median of what was measured, or -1.
function median(k,    i, j, n, v, t)
{
	n = count[k]
	if (n == 0)
		return -1
	for (i = 1; i <= n; i++) {
		t = value[k, i] + 0
		for (j = i - 1; j >= 1 && v[j] > t; j--)
			v[j + 1] = v[j]
		v[j + 1] = t
	}
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function number(x)
{
	if (x < 0)
		return "-"
	return sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : "%.2f", x)
}

# What a test sent and received in a row, "sent received", in the test's unit.
function cell(table, line, i,    k, s, r)
{
	k = table SUBSEP line SUBSEP test[i] SUBSEP
	s = median(k 7)
	r = median(k 8)
	s = number(s < 0 ? s : s / unit[i])
	r = number(r < 0 ? r : r / unit[i])
	return test[i] == "tcp" || test[i] == "rr" ? r : s " " r
}

function ratio(table, line, i,    a, b)
{
	a = median(table SUBSEP line SUBSEP test[i] SUBSEP 8)
	b = median(table SUBSEP "e1000-vale" SUBSEP base SUBSEP test[i] \
	    SUBSEP 8)
	return a < 0 || b <= 0 ? "-" : sprintf("%.2f", a / b)
}

END {
	print "Medians; of two numbers, sent and received."
	print "BASE is " base " of e1000-vale."
	print "Ratios are of what was received."
	for (t = 1; t <= tables; t++) {
		split(order[t], part, SUBSEP)
		printf "\n%s, processors of a guest: %s\n\n", title[part[2]], \
		    part[1]
		printf "%-16s %-27s", "", ""
		columns = 0
		for (i = 1; i <= tests; i++)
			if ((order[t], test[i]) in measured)
				column[++columns] = i
		for (i = 1; i <= columns; i++)
			printf " %15s", name[column[i]]
		printf "\n%-16s %-27s", "", ""
		for (i = 1; i <= columns; i++)
			printf " %15s", units[column[i]]
		printf "\n"
		for (r = 1; r <= rows[order[t]]; r++) {
			line = row[order[t], r]
			split(line, part, SUBSEP)
			printf "%-16s %-27s", part[1], \
			    (part[2] == "-" ? "base system's driver" : \
			    part[2] == base ? "BASE" : part[2])
			for (i = 1; i <= columns; i++)
				printf " %15s", cell(order[t], line, column[i])
			printf "\n%-16s %-27s", "", "  / BASE"
			for (i = 1; i <= columns; i++)
				printf " %15s", ratio(order[t], line, column[i])
			printf "\n"
		}
	}
}
