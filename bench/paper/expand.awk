# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Names that a pattern stands for: (a|b) is a or b.

# Write each name that a pattern stands for into list; returns how many.
function expand(pattern, list,	rest, n, i, start, end, part) {
	n = 1
	list[1] = ""
	rest = pattern
	while ((start = index(rest, "(")) > 0) {
		end = index(rest, ")")
		for (i = 1; i <= n; i++)
			list[i] = list[i] substr(rest, 1, start - 1)
		split(substr(rest, start + 1, end - start - 1), part, "|")
		n = times(list, n, part)
		rest = substr(rest, end + 1)
	}
	for (i = 1; i <= n; i++)
		list[i] = list[i] rest
	return (n)
}

# Each of n names with each of the parts behind it, in the names' order.
function times(list, n, part,	out, m, i, j) {
	for (i = 1; i <= n; i++)
		for (j = 1; j in part; j++)
			out[++m] = list[i] part[j]
	for (i = 1; i <= m; i++)
		list[i] = out[i]
	return (m)
}
