# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Draws a figure of bars or dots, a panel for each quantity one under another;
# gnuplot -c bars.gp ID.par.  figures.awk says what ID.par and ID.dat have.

load ARG1
panel = 170
head = 28 + 15 * nlines
# A letter is 6.4 pixels of 11.
foot = 16 + int(6.6 * letters)
height = head + npanels * panel + foot
color(i) = i == 1 ? 0x56b4e9 : i == 2 ? 0x0072b2 : i == 3 ? 0x009e73 : \
    i == 4 ? 0xd55e00 : i == 5 ? 0xcc79a7 : i == 6 ? 0xe69f00 : 0x333333

load scale

set terminal svg size 1000, height font "DejaVu Sans,11" background "white" \
    noenhanced
set output out
set border 3 lc rgb "#666666"
set style fill solid 1.0 noborder
set boxwidth 0.7
set key off
set logscale y
set xrange [0:right]
set lmargin at screen 0.085
set rmargin at screen 0.99
set ytics nomirror format "%g"
set grid ytics lc rgb "#e4e4e4" lt 1
set multiplot
set label 1000 "colours: here, with least and greatest;  grey: the paper" \
    at screen 0.99, screen 1 - 12.0 / height right tc rgb "#666666"

do for [k = 1:npanels] {
	set tmargin at screen 1 - (head + (k - 1.0) * panel) / height
	set bmargin at screen 1 - (head + k * panel - 16.0) / height
	set yrange [ylo[k] * 0.9999:yhi[k]]
	set ytics ()
	do for [i = 0:log_tics(ylo[k], yhi[k])] {
		set ytics add (log_tic(ylo[k], yhi[k], i))
	}
	set ylabel ylab[k] offset 0.5, 0
	do for [i = 1:ngroups] {
		if (k == 1) {
			do for [l = 1:nlines] {
				set label 4 * i + l group[4 * (i - 1) + l] \
				    at middle[i], screen \
				    1 - (head - 15.0 * l + 6) / height center
			}
		}
		if (i > 1) {
			set arrow i from edge[i], graph 0 to edge[i], graph 1 \
			    nohead lc rgb "#cccccc" back
		}
	}
	if (k == npanels) {
		set xtics nomirror scale 0 rotate by 90 right @tics
	} else {
		unset xtics
	}
	if (dots) {
		plot dat index 3 * k - 3 using 1:3:(0):($4 - $3):(color($5)) \
		    with vectors nohead lc rgb variable lw 1.5, \
		    dat index 3 * k - 3 using 1:2:(color($5)) with points \
		    lc rgb variable pt 7 ps 0.6, \
		    dat index 3 * k - 2 using 1:2 with points pt 12 ps 0.8 lw 1.5 \
		    lc rgb "#808080", \
		    dat index 3 * k - 1 using 1:2:3 with labels offset 0, 0.5
	} else {
		plot dat index 3 * k - 3 using 1:2:(color($5)) \
		    with boxes lc rgb variable, \
		    dat index 3 * k - 3 using 1:3:(0):($4 - $3) with vectors nohead \
		    lc rgb "#333333", \
		    dat index 3 * k - 2 using 1:2 with points pt 13 ps 1.4 \
		    lc rgb "#ffffff", \
		    dat index 3 * k - 2 using 1:2 with points pt 13 ps 1 \
		    lc rgb "#808080", \
		    dat index 3 * k - 1 using 1:2:3 with labels offset 0, 0.5
	}
	unset label
}
unset multiplot
