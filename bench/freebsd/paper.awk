# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints nettest.sh's results.tsv as bench/paper's: round, series, x, quantity,
# value.  em_pv(4) is lem there, em(4) e1000, vtnet(4) virtio; bhyve-vale is the
# bhyve of FreeBSD's tree.  Rows of the driver that the papers have no mode for are
# left out.

BEGIN {
	FS = OFS = "\t"
	to["guest"] = "gg"
	to["host"] = "tx"
	to["from-host"] = "rx"
	mode["itr=0 sc=0 csb=0"] = "base"
	mode["itr=250 sc=0 csb=0"] = "itr"
	mode["itr=250 sc=1 csb=0"] = "itr+sc"
	mode["itr=0 sc=0 csb=1"] = "csb"
	mode["itr=250 sc=0 csb=1"] = "itr+csb"
	# On the tree's bhyve alone.
	mode["itr=0 sc=1 csb=0"] = "sc"
}

# The series of a line, or "".
function series(	net) {
	net = $1 ~ /vale$/ ? "vale" : "tap"
	if ($1 ~ /^e1000-/ && $3 in mode)
		return ("lem/" net "/" to[$4] "/" $2 "/" mode[$3])
	if ($1 == "e1000-vale" && $4 == "guest" && $2 == 1)
		return ($3 == "-" ? "e1000/vale/gg/1/stock" : "")
	if ($1 == "tree-e1000-vale" && $4 == "guest" && $2 <= 2) {
		if ($3 == "-")
			return ("e1000/bhyve-vale/gg/" $2 "/stock")
		if ($3 in mode)
			return ("lem/bhyve-vale/gg/" $2 "/" mode[$3])
	}
	if ($1 == "tree-virtio-tap" && $4 == "guest" && $2 <= 2)
		return ("virtio/qemu-tap/gg/" $2 "/tso")
	return ("")
}

function put(quantity, v) {
	if (v != "-")
		print $5, s, "-", quantity, v
}

function part(v, divisor) {
	return (v == "-" ? v : v / divisor)
}

{
	s = series()
	if (s == "")
		next
	if ($6 ~ /^udp/) {
		put($6 "_sent", part($7, 1000))
		put($6, part($8, 1000))
	} else if ($6 == "pkt-gen") {
		put("pkt_sent", part($7, 1000))
		put("pkt", part($8, 1000))
	} else if ($6 == "pkt-gen-1") {
		put("pkt1_sent", part($7, 1000))
		put("pkt1", part($8, 1000))
	} else if ($6 == "tcp")
		# Writes of 64 KB.
		put("tcpw", part($8, 125000))
	else if ($6 == "rr")
		put("rr", $8)
}
