# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The demo's pictures, 1000 pixels wide, each as SVG and as PNG: demo, the
# ladder of driver modes, from ladder.tsv; demo-stock, stock guests on valed and
# on QEMU's own adapter, from results.tsv.  gnuplot -c plot.gp runs in the
# directory of these two files and writes the pictures there.

set datafile separator "\t"
set style fill solid 0.9 noborder
set border 0
set tics scale 0
set key off
blue = "#2166ac"
orange = "#e08214"
grey = "#999999"
dark = "#666666"

here = system("dirname '".ARG0."'")
png = strstrt(GPVAL_TERMINALS, "pngcairo") > 0 ? "pngcairo" : "png"

# A font of that size in points; SVG counts in pixels, 96 to an inch.
pt(n) = sprintf(",%d", out eq "svg" ? n * 96 / 72 : n)
# Where on the screen a line of text or a margin is: pixels from the top.
top(y) = 1 - 1.0 * y / height

# The lines of the ladder by kind, and the place of the last.
rungs = "awk -f '".here."/rungs.awk' ladder.tsv"
heads = "< ".rungs." | grep '\thead\t'"
modes = "< ".rungs." | grep '\tmode\t'"
bottom = system(rungs." | tail -n 1") - 0.8

# What a driver mode is, under the ladder.
legend = "BASE: no moderation, a write to TDT for each frame.  " \
    ."itr: least time between interrupts, units of 256 ns.\n" \
    ."SC: send combining.  lazy: no interrupts for frames sent.  polling: no " \
    ."interrupts, the driver looks every 250 us.\n" \
    ."CSB: the rings' indices are in shared memory."

do for [out in "svg png"] {
	height = int(177 - bottom * 27)
	if (out eq "svg") {
		set terminal svg size 1000, height font "DejaVu Sans".pt(10) \
		    background "white"
	} else {
		set terminal @png size 1000, height font "DejaVu Sans".pt(10)
	}
	set output "demo.".out
	set multiplot
	set label 1 "What each driver mode is worth: one guest sends, " \
	    ."another receives" at screen 0.02, screen top(22) font pt(16)
	set label 2 legend at screen 0.02, screen top(height - 54)
	set label 3 "Frames that arrived, 1000 a second (times BASE)" \
	    at screen 0.13, screen top(58)
	set label 4 "Exits a frame:" at screen 0.66, screen top(58)
	set label 5 "sent" at screen 0.78, screen top(58) tc rgb blue
	set label 6 "received" at screen 0.83, screen top(58) tc rgb orange
	set tmargin at screen top(75)
	set bmargin at screen top(height - 97)
	set grid xtics noytics lc rgb "#dddddd" lt 1 lw 1
	set yrange [bottom:-0.4]
	set xrange [0:1 < *]
	set offsets 0, graph 0.3, 0, 0

	set lmargin at screen 0.13
	set rmargin at screen 0.60
	plot modes using ($4 / 2):1:($4 / 2):(0.36):ytic(3) \
	    with boxxyerror lc rgb blue, \
	    modes using (valid(4) ? $4 : 0):1:5 with labels left offset 0.7,0, \
	    heads using (0):1:3 with labels left font pt(11)

	unset label
	unset ytics
	set lmargin at screen 0.66
	set rmargin at screen 0.98
	plot modes using ($6 / 2):($1 + 0.2):($6 / 2):(0.17) \
	    with boxxyerror lc rgb blue, \
	    modes using ($8 / 2):($1 - 0.2):($8 / 2):(0.17) \
	    with boxxyerror lc rgb orange, \
	    modes using 6:($1 + 0.2):7 with labels left offset 0.7,0 \
	    font pt(8), \
	    modes using 8:($1 - 0.2):9 with labels left offset 0.7,0 \
	    font pt(8)
	unset multiplot
	unset output

	height = 960
	if (out eq "svg") {
		set terminal svg size 1000, height font "DejaVu Sans".pt(10) \
		    background "white"
	} else {
		set terminal @png size 1000, height font "DejaVu Sans".pt(10)
	}
	set output "demo-stock.".out
	set multiplot layout 4, 2 margins 0.02, 0.98, 0.04, top(110) \
	    spacing 0.04, 0.08
	set label 1 "Two stock Linux guests" \
	    at screen 0.02, screen top(22) font pt(16)
	set label 2 "on valed's 82545EM" at screen 0.02, screen top(52) \
	    tc rgb blue font pt(12)
	set label 3 "on QEMU's own" at screen 0.22, screen top(52) \
	    tc rgb dark font pt(12)
	set label 4 "itr=250: at least 64 us between interrupts.  driver: " \
	    ."as Linux's driver chooses" at screen 0.40, screen top(52)
	set offsets 0, 0, graph 0.15, 0
	set xrange [0.4:3.6]
	set yrange [0:0.01 < *]
	set grid noxtics noytics
	columns = "3 4 5 6 7 9 10 11"
	array titles[8] = [ \
	    "UDP, 60 bytes, one way: 1000 frames sent a second", \
	    "The same: 1000 frames that arrived a second", \
	    "UDP, 60 bytes, both ways: 1000 frames sent a second", \
	    "The same: 1000 frames that arrived a second", \
	    "UDP, one way: frames an interrupt", \
	    "UDP, both ways: exits a frame", \
	    "TCP: Mbit/s", \
	    "Ping: microseconds" ]
	do for [i = 1:8] {
		bars = "< awk -v column=".word(columns, i)." -f '".here \
		    ."/bars.awk' results.tsv"
		set title titles[i]
		plot bars using ($1 - 0.2):3:(0.38) with boxes lc rgb blue, \
		    bars using ($1 + 0.2):5:(0.38) with boxes lc rgb grey, \
		    bars using ($1 - 0.2):3:4 with labels offset 0,0.6, \
		    bars using ($1 + 0.2):5:6 with labels offset 0,0.6, \
		    bars using 1:(0):xtic(2) with points pt -1
		unset label
	}
	unset multiplot
	unset output
	unset title
	set ytics scale 0
}
