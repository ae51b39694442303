# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Medians, for table.awk and single.awk, which are read after this file.

# Split a list into v and sort it; returns its length.
function sorted(list, v,	n, i, j, t) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++) {
		t = v[i]
		for (j = i - 1; j > 0 && v[j] + 0 > t + 0; j--)
			v[j + 1] = v[j]
		v[j + 1] = t
	}
	return (n)
}

function median(list,	v, n) {
	n = sorted(list, v)
	return (v[int((n + 1) / 2)])
}
