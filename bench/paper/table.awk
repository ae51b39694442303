# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints what was measured of guests, from medians.csv, as the names of the series
# say: driver, what connects the guests, direction, processors of a guest, mode.

BEGIN {
	FS = ","
	programs = "udp8_sent udp8 udp1460_sent udp1460 pkt_sent pkt tcp tcpw rr " \
	    "exits exits_rx"
	frames = "pkt exits irqs exits_rx irqs_rx rtt"
}

NR > 1 {
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
	return sprintf(" %" width "s", v >= 100 || v == int(v) ? \
	    sprintf("%.0f", v) : v >= 1 ? sprintf("%.1f", v) : sprintf("%.4f", v))
}

# The rows of a kind, with two lines before the first.
function print_rows(what, quantities, first, second,	i, n, j, q, line, name) {
	n = split(quantities, q, " ")
	for (i = 1; i <= rows; i++) {
		if (kind[order[i]] != what)
			continue
		if (first != "") {
			print ""
			print first
			print second
			first = ""
		}
		name = order[i]
		sub(/,-$/, "", name)
		sub(/,/, " ", name)
		line = sprintf("%-31s", name)
		for (j = 1; j <= n; j++)
			line = line number(value[order[i], q[j]], 6)
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
			line = sprintf("%-31s", name)
		}
		line = line number(value[order[i], "goodput"], 6)
	}
	if (name != "")
		print line
}

END {
	print_rows("programs", programs, \
	    "Programs in guests              UDP, 8 bytes  1460 bytes    " \
	    "pktgen, 60    TCP, no TSO,  trans- exits a frame", \
	    "                                sent   recv.  sent   recv.  " \
	    "sent   arr.   1460   64 KB  act./s sender receiver")
	print_rows("frames", frames, \
	    "Guests without a kernel           Kpps  exits   irqs  exits   " \
	    "irqs  round", \
	    "                                 arr.   a frame sent  " \
	    "received      trip, us")
	print_livelock()
}
