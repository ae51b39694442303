# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints the table of bench.sh's results.csv: for each configuration the median
# of its rounds, then each goal beside the result.
#
# A result is a list of values, one or more from each round; the table shows its
# median.  If all values are on one side of the bound, they decide.  Otherwise
# the median decides, unless the largest is more than STEADY times the smallest:
# then something else ran on the machine, and the goal is not judged.

# ns("switch", bytes, batch, destinations, senders, idle): the list of times, ""
# if there is none.
function ns(s, y, b, d, t, i) {
	return (all_ns[s "," y "," b "," d "," t "," i])
}

# The list of ratios to what was measured beside it; no idle ports by default.
function ratio(s, y, b, i) {
	return (all_ratio[s "," y "," b ",1,1," (i + 0)])
}

# Divide one list by another, round by round.  If one has two values a round and
# the other one, that one is used twice.
function over(a, b,	x, y, na, nb, n, i, list) {
	na = split(a, x, " ")
	nb = split(b, y, " ")
	if (na == 0 || nb == 0)
		return ("")
	n = na > nb ? na : nb
	for (i = 0; i < n; i++)
		list = list " " x[int(i * na / n) + 1] / y[int(i * nb / n) + 1]
	return (list)
}

function holds(seen, sign, bound) {
	return (sign == "<=" ? seen + 0 <= bound : seen + 0 >= bound)
}

# wanted(text, sign, bound, list): print a goal; sign is "<=" or ">=".
function wanted(what, sign, bound, seen,	v, n, m, verdict) {
	n = sorted(seen, v)
	if (n == 0) {
		printf "  %-58s %s %-6s %8s\n", what, sign, bound, "-"
		return
	}
	m = median(seen)
	verdict = holds(m, sign, bound) ? "reached" : "missed"
	if (holds(v[1], sign, bound) != holds(v[n], sign, bound) &&
	    v[n] > v[1] * STEADY)
		verdict = sprintf("not judged: %.2f to %.2f", v[1], v[n])
	printf "  %-58s %s %-6s %8.2f  %s\n", what, sign, bound, m, verdict
}

# told(text, list): print what has no goal.
function told(what, seen) {
	printf "  %-58s           %8s\n", what,
	    seen == "" ? "-" : sprintf("%.2f", median(seen))
}

function one() {
	return (ns("switch", 60, 256, 1, 1, 0))
}

# Compared with deliveries to the same rings in turn, because the rings of many
# ports do not fit a cache, which costs the bare loop as much.
function flooding(ports) {
	wanted("flooding to " ports " ports, times a delivery to each", "<=", 1,
	    over(over(ns("flood", 60, 256, ports, 1, 0),
	    ns("switch", 60, 256, ports, 1, 0)), ports))
}

# Times Linux's bridge with a TAP interface.
function attached(source, how) {
	return (over(ns(source "-tap", 60, 256, 1, 1, 0),
	    ns(source "-" how, 60, 256, 1, 1, 0)))
}

# What a datagram (f) or a transaction (t) costs the host, of what another costs.
function cost_of(unit, name, other,	bytes) {
	bytes = unit ~ /^f/ ? 1460 : 1
	return (over(ns("cost-" unit "-" name, bytes, 1, 1, 1, 0),
	    ns("cost-" unit "-" other, bytes, 1, 1, 1, 0)))
}

function host_costs(rate) {
	wanted("host, a datagram at " rate " % load: lem, of virtio-net",
	    "<=", 0.7, cost_of("f" rate, "lem-csb", "virtio"))
	wanted("  stock e1000e, of QEMU's own e1000e", "<=", 0.5,
	    cost_of("f" rate, "e1000e", "qemu-e1000e"))
	wanted("  stock e1000, of QEMU's own e1000", "<=", 0.8,
	    cost_of("f" rate, "e1000", "qemu-e1000"))
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
	printf "%-24s%7s%7s%7s%9s%6s%11s%9s%9s%8s\n", "what", "bytes", "batch",
	    "dests", "senders", "idle", "ns/frame", "Mpps", "bare ns", "x bare"
	for (i = 1; i <= n; i++) {
		split(order[i], f, ",")
		t = median(all_ns[order[i]])
		printf "%-24s%7d%7d%7d%9d%6d%11.1f%9.2f%9s%8s\n", f[1], f[2],
		    f[3], f[4], f[5], f[6], t, 1e3 / t,
		    median(all_bare[order[i]]), median(all_ratio[order[i]])
	}
	printf "\nGoals and results:\n"
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
	wanted("two processes over valed, of the switch in one process", ">=",
	    0.3, over(one(), ns("netmap-run", 60, 256, 1, 1, 0)))
	wanted("  times two of testpmd with memif", ">=", 1,
	    over(ns("testpmd-memif-2", 60, 256, 1, 1, 0),
	    ns("netmap-run", 60, 256, 1, 1, 0)))
	told("two ports of another valed, 64 bytes, times two of one",
	    ratio("remote", 64, 64))
	told("  1460 bytes", ratio("remote", 1460, 64))
	told("  64 bytes, one at a time", ratio("remote", 64, 1))
	told("  1460 bytes, one at a time", ratio("remote", 1460, 1))
	wanted("veth to a port by AF_XDP, times Linux bridge with a tap", ">=",
	    2, attached("wire", "xdp"))
	wanted("  by packet(7)", ">=", 1, attached("wire", "packet"))
	wanted("  by AF_XDP, sent by a program", ">=", 1,
	    attached("skb", "xdp"))
	wanted("  by packet(7), sent by a program", ">=", 1,
	    attached("skb", "packet"))
	wanted("a port to veth by AF_XDP, times the same", ">=", 2,
	    attached("to-wire", "xdp"))
	wanted("  by packet(7)", ">=", 1, attached("to-wire", "packet"))
	host_costs("10")
	host_costs("50")
	wanted("  a transaction, stock e1000e, of QEMU's own e1000e", "<=", 1,
	    cost_of("t50", "e1000e", "qemu-e1000e"))
	told("guest to tap, 1514 bytes, TCP, times QEMU's own e1000",
	    over(ns("tap-tcp-qemu", 1514, 1, 1, 1, 0),
	    ns("tap-tcp", 1514, 1, 1, 1, 0)))
	told("  behind an IOMMU in strict mode, of the rate without",
	    over(ns("tap-tcp", 1514, 1, 1, 1, 0),
	    ns("tap-iommu", 1514, 1, 1, 1, 0)))
	told("  the same of QEMU's own e1000",
	    over(ns("tap-tcp-qemu", 1514, 1, 1, 1, 0),
	    ns("tap-iommu-qemu", 1514, 1, 1, 1, 0)))
	wanted("  frames of our driver, times the same", ">=", 1,
	    over(ns("tap-driver-qemu", 1514, 1, 1, 1, 0),
	    ns("tap-driver", 1514, 1, 1, 1, 0)))
	flooding(8)
	flooding(64)
	flooding(253)
	wanted("252 idle ports, times none", "<=", 1.05,
	    ratio("idle", 60, 256, 252))
	wanted("model TX, 60 bytes, batch 64, times the bare loop", "<=", 3,
	    ratio("tx", 60, 64))
	wanted("model RX, 60 bytes, batch 64, times the bare loop", "<=", 3,
	    ratio("rx", 60, 64))
	wanted("TCP, 8 times 64 KB, to a header ring, times memcpy()", "<=",
	    1.67, ratio("uncut", 64294, 8))
	wanted("  to a stock driver, in segments, times memcpy()", "<=", 2.86,
	    ratio("cut", 64294, 8))
	wanted("guest to host, rate of testpmd virtio-user to vhost", ">=", 1,
	    over(virtio(), ns("ladder-host", 60, 64, 1, 1, 0)))
	wanted("guest to guest, rate of the same", ">=", 0.5,
	    over(virtio(), ns("ladder", 60, 64, 1, 1, 0)))
}
