# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The demo's results as charts: demo.svg and demo.png from results.tsv and
# ladder.tsv.

set datafile separator "\t"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set boxwidth 0.9
set yrange [0:*]
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set key off

valed = "< grep '^valed' results.tsv"
qemu = "< grep '^qemu' results.tsv"
blue = "#2166ac"
grey = "#999999"
ladder = "< awk -F'\\t' '$1 == 60' ladder.tsv"

do for [out in "svg png"] {
	if (out eq "svg") {
		set terminal svg size 900,1400 font "sans,12" background "white"
	} else {
		set terminal png size 900,1400
	}
	set output "demo.".out
	set multiplot layout 5,2 title "Two guests: the 82545EM of valed, and QEMU's own"
	set key at screen 0.98,0.99 right top horizontal
	set title "UDP, 60 bytes, one way: Kpps sent"
	plot valed using 3:xtic(2) title "valed" lc rgb blue, \
	    qemu using 3 title "QEMU" lc rgb grey
	set key off
	set title "The same: Kpps that arrived"
	plot valed using 4:xtic(2) lc rgb blue, qemu using 4 lc rgb grey
	set title "UDP, 60 bytes, both ways: Kpps sent"
	plot valed using 5:xtic(2) lc rgb blue, qemu using 5 lc rgb grey
	set title "The same: Kpps that arrived"
	plot valed using 6:xtic(2) lc rgb blue, qemu using 6 lc rgb grey
	set title "Frames for one interrupt, one way"
	plot valed using 7:xtic(2) lc rgb blue, qemu using 7 lc rgb grey
	set title "Exits for one frame"
	plot valed using 9:xtic(2) lc rgb blue, qemu using 9 lc rgb grey
	set title "TCP: Mbit/s"
	plot valed using 10:xtic(2) lc rgb blue, qemu using 10 lc rgb grey
	set title "Ping: microseconds"
	plot valed using 11:xtic(2) lc rgb blue, qemu using 11 lc rgb grey
	set logscale y
	set yrange [1:*]
	set xtics rotate by -40
	set title "Micro-guests, 60 bytes, one way: Kpps that arrived"
	plot ladder using 3:xtic(2) lc rgb blue
	set yrange [0.001:*]
	set title "The same: the sender's exits for one frame"
	plot ladder using 4:xtic(2) lc rgb blue
	unset logscale
	set yrange [0:*]
	set xtics norotate
	unset multiplot
	unset output
}
