# SPDX-License-Identifier: BSD-2-Clause
#
# Copyright (c) 2026 The bhyve-vale authors

# Makes the table of bench.sh's results.csv: for each configuration the median
# of its rounds, then what is to be reached beside what was seen.
#
# What was seen is a median with its range, the least and the greatest that the
# rounds, put together in any way, would give.  A range that lies on one side of
# the bound decides, however wide.  Else the median does, unless the range is
# wider than STEADY: then something else was running, and nothing is said.

# Sorts v[1] to v[n].
function sort(v, n,	i, j, t) {
	for (i = 2; i <= n; i++) {
		t = v[i]
		for (j = i - 1; j > 0 && v[j] + 0 > t + 0; j--)
			v[j + 1] = v[j]
		v[j + 1] = t
	}
}

function median(list,	v, n) {
	n = split(list, v, " ")
	sort(v, n)
	return (v[int((n + 1) / 2)])
}

# "median least greatest" of a list.
function figure(list,	v, n) {
	n = split(list, v, " ")
	sort(v, n)
	return (v[int((n + 1) / 2)] " " v[1] " " v[n])
}

# The figure of ns("switch", bytes, batch, destinations, senders, idle), ""
# where not seen.
function ns(s, y, b, d, t, i,	k) {
	k = s "," y "," b "," d "," t "," i
	return (k in all_ns ? figure(all_ns[k]) : "")
}

# The same of what stood beside it, idle ports being none where not said.
function ratio(s, y, b, i,	k) {
	k = s "," y "," b ",1,1," (i + 0)
	return (k in all_ratio ? figure(all_ratio[k]) : "")
}

function over(a, b,	x, y) {
	if (a == "" || b == "")
		return ("")
	split(a, x, " ")
	split(b, y, " ")
	return (x[1] / y[1] " " x[2] / y[3] " " x[3] / y[2])
}

function times(n, a,	x) {
	split(a, x, " ")
	return (a == "" ? "" : n * x[1] " " n * x[2] " " n * x[3])
}

function holds(seen, sign, bound) {
	return (sign == "<=" ? seen + 0 <= bound : seen + 0 >= bound)
}

# what, the bound, the figure seen; sign is "<=" or ">=".
function wanted(what, sign, bound, seen,	v, verdict) {
	if (seen == "") {
		printf "  %-58s %s %-6s %8s\n", what, sign, bound, "-"
		return
	}
	split(seen, v, " ")
	verdict = holds(v[1], sign, bound) ? "reached" : "missed"
	if (holds(v[2], sign, bound) != holds(v[3], sign, bound) &&
	    v[3] > v[2] * STEADY)
		verdict = sprintf("not judged: %.2f to %.2f", v[2], v[3])
	printf "  %-58s %s %-6s %8.2f  %s\n", what, sign, bound, v[1], verdict
}

function one() {
	return (ns("switch", 60, 256, 1, 1, 0))
}

# Beside deliveries to the same rings, by turns: those of many ports are in no
# cache, where that of one is, which costs the bare loop as much.
function flooding(ports) {
	wanted("flooding to " ports " ports, times a delivery to each", "<=", 1,
	    over(ns("flood", 60, 256, ports, 1, 0),
	    times(ports, ns("switch", 60, 256, ports, 1, 0))))
}

function virtio() {
	return (ns("testpmd-virtio", 60, 32, 1, 1, 0))
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
