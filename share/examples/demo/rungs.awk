# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Lays out the ladder's picture, from ladder.tsv: one line of the picture a
# record, from the top down.  Fields, separated by tabs: the line's place, a
# negative number; "mode", or "head" for the heading of a group; its text; Kpps
# that arrived; the same as text; exits for a frame sent; as text; exits for a
# frame received; as text.  A value that is missing is "NaN".

BEGIN {
	FS = OFS = "\t"
	ngroups = split("60 wait|60 posted|60 own|1514 wait", order, "|")
	title["60 wait"] = "60-byte frames, each register write an exit, as " \
	    "under bhyve"
	title["60 posted"] = "60-byte frames, register writes posted by QEMU"
	title["60 own"] = "60-byte frames, QEMU's own 82545EM"
	title["1514 wait"] = "1514-byte frames, each register write an exit"
}

function isnum(s)
{
	return s ~ /^[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?$/
}

function val(s)
{
	return isnum(s) ? s : "NaN"
}

# Two digits at least, three at most.
function short(s)
{
	if (!isnum(s))
		return ""
	return sprintf(s == 0 ? "0" : s < 0.01 ? "%.4f" : s < 1 ? "%.3f" : \
	    s < 10 ? "%.2f" : s < 100 ? "%.1f" : "%.0f", s)
}

# The group a mode belongs to, and its name there.
function group(size, name)
{
	mode = name
	if (sub(/, posted$/, "", mode))
		return size " posted"
	if (sub(/, QEMU's own$/, "", mode))
		return size " own"
	return size " wait"
}

$1 !~ /^[0-9]+$/ || NF < 6 { next }

{
	g = group($1, $2)
	# The mode that all others of this length are measured by.
	if (mode == "BASE" && g == $1 " wait" && isnum($3))
		base[$1] = $3
	i = ++n[g]
	size[g, i] = $1
	name[g, i] = mode
	kpps[g, i] = $3
	sent[g, i] = $4
	received[g, i] = $6
}

END {
	y = 0
	for (k = 1; k <= ngroups; k++) {
		g = order[k]
		if (n[g] == 0)
			continue
		print --y, "head", title[g], "NaN", "", "NaN", "", "NaN", ""
		for (i = 1; i <= n[g]; i++) {
			text = isnum(kpps[g, i]) ? short(kpps[g, i]) : \
			    "not measured"
			b = base[size[g, i]]
			if (isnum(kpps[g, i]) && b > 0)
				text = text sprintf("  (x%.1f)", kpps[g, i] / b)
			print --y, "mode", name[g, i], val(kpps[g, i]), text, \
			    val(sent[g, i]), short(sent[g, i]), \
			    val(received[g, i]), short(received[g, i])
		}
		y -= 0.4
	}
}
