# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints the texts of one of gnuplot's SVGs that overlap, or leave the picture.  A
# letter counts as 0.58 of the font's size.

function attribute(name,	s) {
	if (!match($0, name "=\"[^\"]*\""))
		return ("")
	s = substr($0, RSTART, RLENGTH)
	gsub(/^[^"]*"|"$/, "", s)
	return (s)
}

function add_text(s,	w, from, to) {
	gsub(/<[^>]*>/, "", s)
	gsub(/&[a-z]*;/, "x", s)
	gsub(/^[ \t]*|[ \t]*$/, "", s)
	if (s == "")
		return
	w = length(s) * size * 0.58
	from = anchor == "end" ? -w : anchor == "middle" ? -w / 2 : 0
	to = from + w
	text[++n] = s
	if (turned) {
		left[n] = x - size * 0.75
		right[n] = x + size * 0.2
		top[n] = y - to
		bottom[n] = y - from
	} else {
		left[n] = x + from
		right[n] = x + to
		top[n] = y - size * 0.75
		bottom[n] = y + size * 0.2
	}
}

/^ *viewBox=/ {
	split(attribute("viewBox"), box, " ")
}
/<g transform="translate/ {
	match($0, /translate[(][^)]*/)
	split(substr($0, RSTART + 10, RLENGTH - 10), at, ",")
	x = at[1]
	y = at[2]
	turned = $0 ~ /rotate[(](-90|270)/
	size = attribute("font-size")
	anchor = attribute("text-anchor")
}
/<text>/ { add_text($0) }

END {
	if (n == 0)
		print "no text"
	for (i = 1; i <= n; i++) {
		if (left[i] < 0 || right[i] > box[3] || top[i] < 0 || \
		    bottom[i] > box[4])
			print "outside: " text[i]
		for (j = 1; j < i; j++)
			if (left[i] < right[j] && left[j] < right[i] && \
			    top[i] < bottom[j] && top[j] < bottom[i])
				print "overlap: " text[i] ", " text[j]
	}
}
