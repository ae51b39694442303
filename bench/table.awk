# SPDX-License-Identifier: BSD-2-Clause
#
# Copyright (c) 2026 The bhyve-vale authors

# Makes the table of bench.sh's results.csv: for each configuration the median
# of its rounds, then what is to be reached beside what was seen.  Where the rounds
# of what is compared differ by more than STEADY, something else was running: the
# figure is shown, but nothing is said to be reached or missed by it.

function median(list,	v, n, i, j, t) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++) {
		t = v[i]
		for (j = i - 1; j > 0 && v[j] + 0 > t + 0; j--)
			v[j + 1] = v[j]
		v[j + 1] = t
	}
	return (v[int((n + 1) / 2)])
}

# How many times the least of a list its greatest is.
function spread(list,	v, n, i, least, most) {
	n = split(list, v, " ")
	least = most = v[1] + 0
	for (i = 2; i <= n; i++) {
		if (v[i] + 0 < least)
			least = v[i] + 0
		if (v[i] + 0 > most)
			most = v[i] + 0
	}
	return (least > 0 ? most / least : 1)
}

# A figure that the next verdict is from.
function used(list,	s) {
	s = spread(list)
	if (s > unsteady)
		unsteady = s
	return (median(list))
}

# ns("switch", bytes, batch, destinations, senders, idle), "" where not seen.
function ns(s, y, b, d, t, i,	k) {
	k = s "," y "," b "," d "," t "," i
	return (k in all_ns ? used(all_ns[k]) : "")
}

# The same of what stood beside it, idle ports being none where not said.
function ratio(s, y, b, i,	k) {
	k = s "," y "," b ",1,1," (i + 0)
	return (k in all_ratio ? used(all_ratio[k]) : "")
}

# what, the bound, what was seen; sign is "<=" or ">=".
function wanted(what, sign, bound, seen,	verdict) {
	if (seen == "") {
		printf "  %-58s %s %-6s %8s\n", what, sign, bound, "-"
		unsteady = 0
		return
	}
	if (unsteady > STEADY)
		verdict = sprintf("  not judged: rounds differ %.1f times",
		    unsteady)
	else if (sign == "<=" ? seen <= bound : seen >= bound)
		verdict = "  reached"
	else
		verdict = "  missed"
	unsteady = 0
	printf "  %-58s %s %-6s %8.2f%s\n", what, sign, bound, seen, verdict
}

function one() {
	return (ns("switch", 60, 256, 1, 1, 0))
}

# Beside deliveries to the same rings, by turns: those of many ports are in no
# cache, where that of one is, which costs the bare loop as much.
function flooding(ports) {
	wanted("flooding to " ports " ports, times a delivery to each", "<=", 1,
	    over(ns("flood", 60, 256, ports, 1, 0),
	    ports * ns("switch", 60, 256, ports, 1, 0)))
}

function virtio() {
	return (ns("testpmd-virtio", 60, 32, 1, 1, 0))
}

function over(a, b) {
	return (a == "" || b == "" ? "" : a / b)
}

NR > 1 {
	k = $1 "," $2 "," $3 "," $4 "," $5 "," $6
	if (!(k in all_ns))
		order[++n] = k
	all_ns[k] = all_ns[k] " " $7
	all_bare[k] = all_bare[k] " " $8
	all_ratio[k] = all_ratio[k] " " $9
}

END {
	STEADY = 1.5
	printf "%s, %d processors\n\n", machine, cores
	printf "%-16s%7s%7s%7s%9s%6s%11s%9s%9s%8s\n", "what", "bytes", "batch",
	    "dests", "senders", "idle", "ns/frame", "Mpps", "bare ns", "x bare"
	for (i = 1; i <= n; i++) {
		split(order[i], f, ",")
		t = median(all_ns[order[i]])
		printf "%-16s%7d%7d%7d%9d%6d%11.1f%9.2f%9s%8s\n", f[1], f[2],
		    f[3], f[4], f[5], f[6], t, 1e3 / t,
		    median(all_bare[order[i]]), median(all_ratio[order[i]])
	}
	printf "\nTo be reached, and seen:\n"
	wanted("switch, 60 bytes, batch 256, times the bare loop", "<=", 2.5,
	    ratio("switch", 60, 256))
	wanted("  its rate at batch 8, of that at 256", ">=", 0.6,
	    over(one(), ns("switch", 60, 8, 1, 1, 0)))
	wanted("  1514 bytes, times the bare loop", "<=", 1.5,
	    ratio("switch", 1514, 256))
	wanted("  times Linux bridge", ">=", 20,
	    over(ns("bridge", 60, 64, 1, 1, 0), one()))
	wanted("  times vde_switch", ">=", 20,
	    over(ns("vde_switch", 60, 64, 1, 1, 0), one()))
	wanted("  times testpmd with memif, both in batches of 32", ">=", 1,
	    over(ns("testpmd-memif", 60, 32, 1, 1, 0), ns("switch", 60, 32, 1, 1, 0)))
	flooding(8)
	flooding(64)
	flooding(253)
	wanted("252 idle ports, times none", "<=", 1.05,
	    ratio("idle", 60, 256, 252))
	wanted("model TX, 60 bytes, batch 64, times the bare loop", "<=", 3,
	    ratio("tx", 60, 64))
	wanted("model RX, 60 bytes, batch 64, times the bare loop", "<=", 3,
	    ratio("rx", 60, 64))
	wanted("guest to host, rate of testpmd virtio-user to vhost", ">=", 1,
	    over(virtio(), ns("ladder-host", 60, 64, 1, 1, 0)))
	wanted("guest to guest, rate of the same", ">=", 0.5,
	    over(virtio(), ns("ladder", 60, 64, 1, 1, 0)))
}
