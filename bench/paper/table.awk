# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints what was measured of guests, from medians.csv: first what users get and
# pay, with the labels of curves.tsv, which is read before; then all series, by
# words.awk, which it uses.

BEGIN {
	users = "udp8 udp1460 tcp64 tcp tcpw rr tcp_notso host_f50 host_t50"
	programs = "udp8_sent udp8 udp1460_sent udp1460 pkt_sent pkt tcp tcpw rr " \
	    "exits exits_rx"
	frames = "pkt exits irqs exits_rx irqs_rx rtt"
}

what == "curves" {
	if ($1 ~ /(^|,)users(,|$)/) {
		label[$4] = $3
		user[++nusers] = $4
	}
	next
}

FNR > 1 {
	row = $1 "," $2
	if (!(row in kind)) {
		order[++rows] = row
		kind[row] = $1 ~ /^micro/ ? "frames" : \
		    $1 ~ /^livelock/ ? "livelock" : \
		    $1 ~ /^(lem|e1000|virtio)/ ? "programs" : ""
	}
	value[row, $3] = $4
}

function number(v, width) {
	if (v == "")
		return sprintf(" %" width "s", "-")
	return sprintf(" %" width "s", v >= 100 || v <= -1 || v == int(v) ? \
	    sprintf("%.0f", v) : v >= 1 ? sprintf("%.1f", v) : sprintf("%.4f", v))
}

function cells(row, quantities, width,	n, j, q, line) {
	n = split(quantities, q, " ")
	for (j = 1; j <= n; j++)
		line = line number(value[row, q[j]], width)
	return (line)
}

# A line of nine columns, which commas part.
function print_users_line(first, text,	part, i, line) {
	split(text, part, ",")
	line = sprintf("%-34s", first)
	for (i = 1; i <= 9; i++)
		line = line sprintf(" %6s", part[i])
	sub(/ +$/, "", line)
	print line
}

function print_users_head() {
	print ""
	print_users_line("What users get and pay: two guests,",
	    ",UDP,,,TCP,,TCP no,host:,us of")
	print_users_line("one processor each, offloads on",
	    "Kpps,Kpps,Mbit/s,Mbit/s,Mbit/s,trans-,TSO,us a,a trans-")
	print_users_line("", "8,1460,64,1460,64 KB,act./s,1460,frame,action")
}

# What users get and pay, in the order of curves.tsv.
function print_users(	i, n) {
	for (i = 1; i <= nusers; i++) {
		if (!((user[i] ",-", "tcp") in value))
			continue
		if (n++ == 0)
			print_users_head()
		printf "%-34s%s\n", label[user[i]],
		    cells(user[i] ",-", users, 6)
	}
}

# A row's series in words, without what the title says, and its x.
function name_of(row,	part, name) {
	split(row, part, ",")
	name = series_words(part[1])
	sub(/^(no kernel|overload), /, "", name)
	return (joined(name, part[2] == "-" || kind[row] == "livelock" ? "" : \
	    part[2] " bytes"))
}

# Text in a column as wide as the longest name of a kind's rows, 31 at least.
function column(text, what,	i, width) {
	width = 31
	for (i = 1; i <= rows; i++)
		if (kind[order[i]] == what && length(name_of(order[i])) > width)
			width = length(name_of(order[i]))
	return (sprintf("%-" width "s", text))
}

# The rows of a kind; before the first their title, and two lines above the columns.
function print_rows(what, quantities, title, first, second,	i, line) {
	for (i = 1; i <= rows; i++) {
		if (kind[order[i]] != what)
			continue
		if (first != "") {
			print ""
			print column(title, what) first
			print column("", what) second
			first = ""
		}
		line = column(name_of(order[i]), what) \
		    cells(order[i], quantities, 6)
		sub(/ +$/, "", line)
		print line
	}
}

# The rates of a livelock, by load, on a line for each mode.
function print_livelock(	i, part, name, line) {
	for (i = 1; i <= rows; i++) {
		if (kind[order[i]] != "livelock")
			continue
		split(order[i], part, ",")
		if (part[1] != name) {
			if (name == "") {
				print ""
				print "What a program receives, Kpps, at 50, " \
				    "100, 150, 200, 300, 500 and 1000 % of " \
				    "what it can take"
			} else
				print line
			name = part[1]
			line = sprintf("%-31s", name_of(order[i]))
		}
		line = line number(value[order[i], "goodput"], 6)
	}
	if (name != "")
		print line
}

END {
	print_users()
	print_rows("programs", programs, \
	    "Programs in guests", \
	    " UDP, 8 bytes  1460 bytes    " \
	    "pktgen, 60    TCP, no TSO,  trans- exits a frame", \
	    " sent   recv.  sent   recv.  " \
	    "sent   arr.   1460   64 KB  act./s sender receiver")
	print_rows("frames", frames, \
	    "Guests without a kernel", \
	    "   Kpps  exits   irqs  exits   irqs  round", \
	    "   arr.   a frame sent  received      trip, us")
	print_livelock()
}
