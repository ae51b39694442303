# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints the table of programs in Linux guests, from module.tsv (module.sh).

BEGIN {
	FS = "\t"
}

NR == 1 {
	print ""
	print "Programs in Linux guests     UDP, 8 bytes  UDP, 1460     " \
	    "pktgen, 60    TCP,   trans-   exits a frame,"
	print "                             Kpps          bytes, Kpps   " \
	    "bytes, Kpps   Mbit/s actions  UDP, 8 bytes"
	print "                       CPUs  sent   recv.  sent   recv.  " \
	    "sent   arr.          a second sender receiver"
}

{
	printf "%-23s %3d %6.1f %6.1f %6.1f %6.1f %6.1f %6.1f %6d %8d %7s %8s\n", \
	    $2, $1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12
	seen[$1, $2]
	sent[$1, $2] = $3
	small[$1, $2] = $4
	large[$1, $2] = $6
	tcp[$1, $2] = $9
	rr[$1, $2] = $10
}

# part(TEXT, V, X, Y): V[X] / V[Y], or nothing if one was not measured.
function part(text, v, x, y)
{
	if (x in seen && y in seen && v[y] > 0)
		printf "%s %s x%.2f", comma, text, v[x] / v[y]
	comma = ","
}

function begin(what)
{
	printf "  %-42s", what
	comma = ""
}

# ratios(X, Y): what a program gets with X, of what it gets with Y.
function ratios(what, x, y)
{
	if (!(x in seen) || !(y in seen))
		return
	begin(what)
	part("UDP 8 sent", sent, x, y)
	part("received", small, x, y)
	part("1460 received", large, x, y)
	part("TCP", tcp, x, y)
	part("transactions", rr, x, y)
	print ""
}

END {
	if (NR == 0)
		exit
	print ""
	print "lem with the CSB compared with:"
	c = "1" SUBSEP "lem, CSB"
	ratios("its base, all register writes wait", c ", waiting", \
	    "1" SUBSEP "lem, base, waiting")
	ratios("its base, posted", c, "1" SUBSEP "lem, base")
	ratios("e1000 on valed", c, "1" SUBSEP "e1000, valed")
	for (cpus = 1; cpus <= 2; cpus++) {
		c = cpus SUBSEP "lem, CSB"
		ratios("e1000 on QEMU's own adapter, " cpus " CPU", c, \
		    cpus SUBSEP "e1000, QEMU")
		ratios("virtio-net, " cpus " CPU", c, cpus SUBSEP "virtio-net")
	}
	begin("e1000 on QEMU's own, with polling")
	part("transactions", rr, "1" SUBSEP "lem, CSB, polling", \
	    "1" SUBSEP "e1000, QEMU")
	print ""
	ratios("itself on the 82545EM, on the 82574L", \
	    "1" SUBSEP "lem, 82574L, CSB", "1" SUBSEP "lem, CSB")
	c = "1" SUBSEP "e1000e, valed"
	if (!(c in seen))
		exit
	print ""
	print "Linux's e1000e on valed's 82574L compared with:"
	ratios("e1000e on QEMU's own adapter", c, "1" SUBSEP "e1000e, QEMU")
	ratios("e1000 on valed's 82545EM", c, "1" SUBSEP "e1000, valed")
	ratios("virtio-net", c, "1" SUBSEP "virtio-net")
}
