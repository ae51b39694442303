# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Plots for bench.sh, of what curves.awk made in this directory.  Variables:
# term, svg or png; out, the directory to put them in.

if (term eq "svg") set terminal svg size 900,600; \
else set terminal png size 900,600
set grid
set logscale xy
set ylabel "million frames a second"
set key bottom right

set output out."/switch-batch.".term
set title "The switch: frames a batch"
set xlabel "frames a batch"
plot for [s in "60 256 1514 9000"] "switch-".s using 1:2 smooth unique \
    with linespoints title s." bytes", \
    for [s in "60 1514"] "switch-".s using 1:3 smooth unique \
    with lines dashtype 2 title s." bytes, bare loop"

set output out."/switch-size.".term
set title "The switch: length of the frames, batches of 256"
set xlabel "bytes a frame"
plot "size" using 1:2 smooth unique with linespoints title "switch", \
    "size" using 1:3 smooth unique with lines dashtype 2 title "bare loop"

set output out."/switch-destinations.".term
set title "The switch: destinations, 60 bytes, batches of 256"
set xlabel "destinations"
set ylabel "million deliveries a second"
plot "unicast" using 1:2 smooth unique with linespoints \
    title "one after the other", \
    "unicast" using 1:3 smooth unique with lines dashtype 2 \
    title "bare loop", \
    "flood" using 1:2 smooth unique with linespoints title "flooding", \
    "flood" using 1:3 smooth unique with lines dashtype 2 \
    title "bare loop, flooding"

set ylabel "million frames a second"
set output out."/switch-senders.".term
set title "The switch: senders, a thread and a destination each"
set xlabel "senders"
plot [0.5:] "senders" using 1:2 smooth unique with linespoints \
    title "switch", \
    "senders" using 1:3 smooth unique with lines dashtype 2 title "bare loop"

do for [m in "tx rx path"] {
	set output out."/model-".m.".".term
	set title m eq "path" ? "Model, switch, model" : "The model: ".m
	set xlabel "frames a batch"
	plot for [s in "60 256 1514 9000"] m."-".s using 1:2 smooth unique \
	    with linespoints title s." bytes", \
	    for [s in "60 1514"] m."-".s using 1:3 smooth unique \
	    with lines dashtype 2 title s." bytes, bare loop"
}
