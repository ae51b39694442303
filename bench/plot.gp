# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The plots of bench.sh, from the files that curves.awk writes, in the current
# directory.  Variables: term, svg or png; out, the directory of the plots.
# A solid line is what is measured, a dashed one of the same color the bare loop
# that touches the same bytes.

if (term eq "svg") {
	set terminal svg size 1000, 600 font "DejaVu Sans,13" background "white"
} else {
	if (strstrt(GPVAL_TERMINALS, "pngcairo") > 0) {
		set terminal pngcairo size 1000, 600 font "DejaVu Sans,10"
	} else {
		set terminal png size 1000, 600 font "DejaVu Sans,10"
	}
}
set border 3
set tics nomirror
set grid lc rgb "#dddddd" lt 1 lw 1
set logscale x 2
set logscale y
set offsets graph 0.03, graph 0.03, 0, 0
set key outside right top Left reverse
array color[4] = ["#2166ac", "#e08214", "#1b7837", "#762a83"]
loop = " bare loop"

set ylabel "million frames a second"
set output out."/switch-batch.".term
set title "Switch: frames a batch"
set xlabel "frames a batch"
sizes = "60 256 1514 9000"
plot for [i = 1:4] "switch-".word(sizes, i) using 1:2 smooth unique \
    with linespoints lc rgb color[i] pt 7 ps 0.6 \
    title word(sizes, i)." bytes", \
    for [i = 1:3:2] "switch-".word(sizes, i) using 1:3 smooth unique \
    with lines lc rgb color[i] dashtype 2 lw 1.5 \
    title word(sizes, i)." bytes,".loop

set output out."/switch-size.".term
set title "Switch: length of the frames, batches of 256"
set xlabel "bytes a frame"
plot "size" using 1:2 smooth unique with linespoints lc rgb color[1] pt 7 \
    ps 0.6 title "switch", \
    "size" using 1:3 smooth unique with lines lc rgb color[1] \
    dashtype 2 lw 1.5 title "bare loop"

set output out."/switch-destinations.".term
set title "Switch: destinations, 60 bytes, batches of 256"
set xlabel "destinations"
set ylabel "million deliveries a second"
plot "unicast" using 1:2 smooth unique with linespoints lc rgb color[1] \
    pt 7 ps 0.6 title "in turn", \
    "unicast" using 1:3 smooth unique with lines lc rgb color[1] \
    dashtype 2 lw 1.5 title "in turn,".loop, \
    "flood" using 1:2 smooth unique with linespoints lc rgb color[2] \
    pt 7 ps 0.6 title "flooding", \
    "flood" using 1:3 smooth unique with lines lc rgb color[2] \
    dashtype 2 lw 1.5 title "flooding,".loop

set ylabel "million frames a second"
set output out."/switch-senders.".term
set title "Switch: senders, a thread and a destination each"
set xlabel "senders"
set xrange [0.9:2.2 < *]
plot "senders" using 1:2 smooth unique with linespoints lc rgb color[1] \
    pt 7 ps 0.6 title "switch", \
    "senders" using 1:3 smooth unique with lines lc rgb color[1] \
    dashtype 2 lw 1.5 title "bare loop"
set xrange [*:*]

do for [m in "tx rx path"] {
	set output out."/model-".m.".".term
	set title m eq "path" ? "Model, switch, model" : "Model: ".m
	set xlabel "frames a batch"
	plot for [i = 1:4] m."-".word(sizes, i) using 1:2 smooth unique \
	    with linespoints lc rgb color[i] pt 7 ps 0.6 \
	    title word(sizes, i)." bytes", \
	    for [i = 1:3:2] m."-".word(sizes, i) using 1:3 smooth unique \
	    with lines lc rgb color[i] dashtype 2 lw 1.5 \
    title word(sizes, i)." bytes,".loop
}
