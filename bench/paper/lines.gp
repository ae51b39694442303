# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Draws a figure of lines; gnuplot -c lines.gp ID.par.  figures.awk says what ID.par
# and ID.dat have.

load ARG1
color(i) = i == 1 ? "#0072b2" : i == 2 ? "#d55e00" : i == 3 ? "#009e73" : \
    i == 4 ? "#cc79a7" : i == 5 ? "#e69f00" : i == 6 ? "#56b4e9" : "#333333"

load scale

set terminal svg size 1000, 420 font "DejaVu Sans,12" background "white" noenhanced
set output out
set border 3 lc rgb "#666666"
set grid lc rgb "#e4e4e4" lt 1
set key outside right top Left reverse
set xtics nomirror @tics
set ytics nomirror format "%g"
if (logx) {
	set logscale x
}
if (logy) {
	set logscale y
	unset ytics
	set ytics nomirror format "%g"
	set ytics ()
	do for [i = 0:log_tics(ylo, yhi)] {
		set ytics add (log_tic(ylo, yhi, i))
	}
}
set xrange [xlo:xhi]
set yrange [ylo * 0.9999:yhi]
set xlabel xlab
set ylabel ylab
plot dat index ncurves using 1:2 with points pt 13 ps 1.7 lc rgb "#999999" \
    title (marks ? "the paper" : ""), \
    for [i = 1:ncurves] dat index i - 1 using 1:2:3:4 with yerrorlines \
    lc rgb color(i) lw 2 pt 4 + i ps 0.7 title curve[i]
