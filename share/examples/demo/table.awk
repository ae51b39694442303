# SPDX-License-Identifier: BSD-2-Clause
#
# Copyright (c) 2026 The bhyve-vale authors

# The demo's last page, from results.tsv; memory is what valed has in use, MB.

BEGIN {
	FS = "\t"
	print ""
	print "                     UDP, 60 bytes, both ways      TCP      ping"
	print "                    Kpps  frames/    exits/     Mbit/s   us there"
	print "                          interrupt  frame               and back"
}

{
	printf "%-6s %-8s %9.1f %9.1f %9.2f %9d %9d\n", $1, $2, $3, $5, $6, $4, $7
	kpps[$1, $2] = $3
	fpi[$1, $2] = $5
}

function ratio(a, b)
{
	return b > 0 ? a / b : 0
}

END {
	print ""
	printf "itr=250 against itr=0, both on valed: interrupts for a frame " \
	    "1/%.1f, frames a second x%.2f\n", \
	    ratio(fpi["valed", "itr=250"], fpi["valed", "itr=0"]), \
	    ratio(kpps["valed", "itr=250"], kpps["valed", "itr=0"])
	printf "valed against QEMU's own, frames a second: x%.2f at itr=250, " \
	    "x%.2f at itr=0, x%.2f at the driver's setting\n", \
	    ratio(kpps["valed", "itr=250"], kpps["qemu", "itr=250"]), \
	    ratio(kpps["valed", "itr=0"], kpps["qemu", "itr=0"]), \
	    ratio(kpps["valed", "driver"], kpps["qemu", "driver"])
	printf "valed uses %.1f MB beside the guests' memory\n", memory
}
