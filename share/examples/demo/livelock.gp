# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The demo's picture of livelock.tsv, as SVG and as PNG: demo-livelock.

set datafile separator "\t"
set border 3
set tics nomirror
set grid lc rgb "#dddddd" lt 1 lw 1
set logscale x 2
set xtics (50, 100, 200, 500, 1000)
set yrange [0:*]
set key outside right top Left reverse
set title "What a program receives of what is sent to it"
set xlabel "frames sent, percent of what the guest can take"
set ylabel "frames used by the program, 1000 a second"
names = system("cut -f 4 livelock.tsv | uniq | tr ' ' '~' | tr '\n' ' '")
name(i) = system("echo '".word(names, i)."' | tr '~' ' '")
colors = "#999999 #2166ac #e08214 #1b7837 #762a83"
png = strstrt(GPVAL_TERMINALS, "pngcairo") > 0 ? "pngcairo" : "png"

do for [out in "svg png"] {
	if (out eq "svg") {
		set terminal svg size 1000, 500 font "DejaVu Sans,13" \
		    background "white"
	} else {
		set terminal @png size 1000, 500 font "DejaVu Sans,10"
	}
	set output "demo-livelock.".out
	plot for [i = 1:words(names)] "livelock.tsv" \
	    using 1:(strcol(4) eq name(i) ? $3 : NaN) with linespoints \
	    lc rgb word(colors, i) lw 2 pt 7 ps 0.6 title name(i)
	unset output
}
