# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints a results.tsv of three rounds with every series of series.tsv, made up so
# that each rule of claims.tsv holds.  A round is 2 % slower than the one before.
# It follows bench/paper/expand.awk and results.awk.

BEGIN {
	split("base 1 itr 2.5 itr4000 3 sc 3 itr+sc 10 lazy 1.6 " \
	    "poll 8 poll+sc 12 csb 12 itr+csb 11 stock 1 notso 12 tso 12 " \
	    "csb+tso 12", f, " ")
	for (i = 1; i in f; i += 2)
		factor[f[i]] = f[i + 1]
	split("base 1 itr 1.1 itr+sc 1 csb 2.2 itr+csb 1.5 stock 1 notso 2.4 " \
	    "tso 2.4", f, " ")
	for (i = 1; i in f; i += 2)
		answers[f[i]] = f[i + 1]
	split("itr 0.2 itr4000 0.1 itr+sc 0.1 lazy 0.1 poll 0.01 poll+sc 0.01 " \
	    "csb 0.02", f, " ")
	for (i = 1; i in f; i += 2)
		rare[f[i]] = f[i + 1]
}

# Guests with a kernel; part: driver, backend, direction, processors, mode.
function guest(part, q,	y, vale, mode) {
	mode = part[5]
	# There SC alone gains nothing with one processor.
	if (part[2] == "bhyve-vale" && part[4] == 1 && mode == "sc")
		mode = "base"
	vale = part[2] != "vale" ? 1 : mode == "csb" ? 1.6 : 1.1
	if (q ~ /exits/)
		return (1 / factor[mode])
	if (q == "rr")
		return (5000 * answers[mode] * (part[2] == "vale" ? 1.2 : 1))
	y = factor[mode] * vale * (part[4] == 1 ? 1 : mode == "base" ? 1.3 : 1.1)
	if (q ~ /tcp/)
		return (20 * y * (mode ~ /tso$/ && mode != "notso" ? 5 : 1) * \
		    (part[3] == "rx" ? 10 : 1))
	return (30 * y)
}

function micro(part, x, q,	mode) {
	mode = part[5]
	if (q == "rtt")
		return (mode == "base" ? 100 : 40)
	if (q ~ /irqs/)
		return (mode in rare ? rare[mode] : 1)
	if (q ~ /exits/)
		return (mode ~ /sc/ ? 0.2 : mode ~ /csb/ ? 0.02 : 1)
	# There SC alone gains nothing with one processor.
	if (part[2] == "qemu" && mode == "sc")
		mode = "base"
	return (100 * factor[mode] * (x > 60 ? 0.4 : 1))
}

function switched(part, x, q,	y) {
	if (part[3] == "size")
		return ((part[2] == "vale" ? 50 : 1000) + x / 10)
	if (part[3] ~ /cast$/) {
		y = part[2] == "bridge" ? 0.8 : part[2] == "ovs" ? 0.7 : \
		    part[4] == 60 ? 18 : 6
		if (part[3] == "broadcast")
			y /= x
		return (q == "ns" ? 1000 / y : y)
	}
	return (part[3] == "send1" ? 2 : \
	    18 * x / (x + (part[3] == "receive" ? 1 : part[3] == "send" ? 4 : 2.6)))
}

function made_up(s, x, q,	part) {
	split(s, part, "/")
	if (part[1] ~ /^micro/)
		return (micro(part, x, q))
	if (part[1] == "switch")
		return (switched(part, x, q))
	if (part[1] == "livelock")
		return (q == "offered" ? x / 10 : part[2] == "base-nolimit" ? \
		    (x == 50 ? 5 : 100 / x) : x == 50 ? 5 : 9)
	if (part[1] == "rtt")
		return (part[2] == "vale" ? 20 : 25)
	if (part[1] == "copy")
		return (x / 10)
	if (part[1] == "cost")
		return (q == "cpu" ? (part[2] == "virtio" ? 1 : 2) : \
		    part[3] == "full" ? 0.00014 : 1)
	if (part[1] == "instr")
		return (500)
	if (part[1] == "ew")
		return (part[2] ~ /nocsum/ ? 20 : 100)
	return (guest(part, q))
}

END {
	for (s in x_of) {
		n = split(x_of[s], x, " ")
		m = split(quantities_of[s], q, " ")
		for (r = 1; r <= 3; r++)
			for (i = 1; i <= n; i++)
				for (j = 1; j <= m; j++)
					print r, s, x[i], q[j], \
					    made_up(s, x[i], q[j]) * (1.02 - r / 50)
	}
}
