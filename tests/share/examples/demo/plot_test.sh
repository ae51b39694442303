# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The demo's tables and pictures, from made-up results.

. "$(atf_get_srcdir)/cases.subr"

demo=$(atf_get_srcdir)/../../../../../share/examples/demo

# One line of ladder.tsv for each mode: bytes, mode, Kpps; exits and interrupts
# a frame of the sender and of the receiver.
ladder()
{
	tr ' ' '\t' <<-'EOF'
	60 BASE 10.0 2.0 0.5 1.5 0.5
	60 SC 0.0 0.0 0.0 0.0 0.0
	60 CSB 250.0 0.004 0.0 - 0.0
	1514 BASE 8.0 2.0 0.5 1.5 0.5
	rtt BASE 185.0
	overload CSB 50.0 50.0 1000.0 25.0 900 0
	60 BASE,_posted - 1.0 0.5 0.1 0.5
	EOF
}

# Two settings of three, and nothing of QEMU's with one.
results()
{
	tr ' ' '\t' <<-'EOF'
	valed itr=0 700.0 90.0 600.0 80.0 400.0 300.0 0.06 1000 1100
	valed driver 0.0 0.0 0.0 0.0 0.0 0.0 0.00 0 0
	qemu itr=0 200.0 70.0 200.0 70.0 80.0 90.0 0.15 900 1200
	EOF
}

test_case ladder "The ladder's picture has a line for each mode measured, with \
its value and its ratio to BASE"
ladder_body()
{
	ladder | sed 's/,_/, /' > ladder.tsv
	awk -f "$demo/rungs.awk" ladder.tsv > rungs || atf_fail "awk"
	cut -f 2,3,5,7,9 rungs > seen
	cat > expected <<-'EOF'
	head	60-byte frames, each register write an exit, as under bhyve			
	mode	BASE	10.0  (x1.0)	2.00	1.50
	mode	SC	0  (x0.0)	0	0
	mode	CSB	250  (x25.0)	0.0040	
	head	60-byte frames, register writes posted by QEMU			
	mode	BASE	not measured	1.00	0.100
	head	1514-byte frames, each register write an exit			
	mode	BASE	8.00  (x1.0)	2.00	1.50
	EOF
	diff expected seen || atf_fail "other lines than expected"
}

test_case stock "The stock guests' picture has a place for each setting, empty \
if it was not measured"
stock_body()
{
	results > results.tsv
	awk -v column=4 -f "$demo/bars.awk" results.tsv > seen ||
	    atf_fail "awk"
	tr ' ' '\t' > expected <<-'EOF'
	1 itr=0 90.0 90 70.0 70
	2 itr=250 NaN  NaN 
	3 driver 0.0 0 NaN 
	EOF
	diff expected seen || atf_fail "other bars than expected"
}

# ratios ADDRESS: prints the ratios of "seen" from that line on, one a line.
ratios()
{
	tr -s ' ' < seen | sed -n "$1,\$p" | sed 's/, /,\
 /g'
}

test_case module "The table of programs has a row for each one measured, and \
the ratios of those that were"
module_body()
{
	tr ' _' '\t ' > module.tsv <<-'EOF'
	1 lem,_base 10.0 5.0 10.0 8.0 100.0 50.0 1000 500 1.5000 0.5000
	1 lem,_CSB 30.0 20.0 20.0 12.0 0.0 0.0 4000 1500 0.0010 0.0100
	1 lem,_CSB,_polling 1.0 1.0 1.0 1.0 1.0 1.0 1000 6000 0.9000 0.1000
	1 e1000,_QEMU 10.0 0.0 10.0 6.0 100.0 50.0 800 600 - -
	EOF
	awk -f "$demo/module.awk" module.tsv > seen || atf_fail "awk"
	atf_check -o inline:'4\n' grep -c '^[el].* 1  ' seen
	ratios '/compared with/' > ratios
	cat > expected <<-'EOF'
	lem with the CSB compared with:
	 its base,
	 posted UDP 8 sent x3.00,
	 received x4.00,
	 1460 received x1.50,
	 TCP x4.00,
	 transactions x3.00
	 e1000 on QEMU's own adapter,
	 1 CPU UDP 8 sent x3.00,
	 1460 received x2.00,
	 TCP x5.00,
	 transactions x2.50
	 e1000 on QEMU's own,
	 with polling transactions x10.00
	EOF
	diff expected ratios || atf_fail "other ratios than expected"
	tr ' _' '\t ' >> module.tsv <<-'EOF'
	1 lem,_82574L,_CSB 60.0 20.0 20.0 12.0 0.0 0.0 4000 3000 0.0010 0.0100
	1 e1000e,_valed 20.0 10.0 10.0 6.0 100.0 50.0 1600 600 0.5000 0.1000
	1 e1000e,_QEMU 10.0 10.0 10.0 5.0 100.0 50.0 800 600 - -
	EOF
	awk -f "$demo/module.awk" module.tsv > seen || atf_fail "awk"
	ratios '/^ itself on/' > ratios
	cat > expected <<-'EOF'
	 itself on the 82545EM,
	 on the 82574L UDP 8 sent x2.00,
	 received x1.00,
	 1460 received x1.00,
	 TCP x1.00,
	 transactions x2.00

	Linux's e1000e on valed's 82574L compared with:
	 e1000e on QEMU's own adapter UDP 8 sent x2.00,
	 received x1.00,
	 1460 received x1.20,
	 TCP x2.00,
	 transactions x1.00
	EOF
	diff expected ratios || atf_fail "other ratios than expected"
	atf_check awk -f "$demo/module.awk" /dev/null
}

# Bytes 17 to 20 of a PNG are its width.
width()
{
	od -A n -t u1 -j 16 -N 4 "$1" | awk '{ print $3 * 256 + $4 }'
}

test_case pictures "gnuplot draws both pictures, 1000 pixels wide, also if modes \
are missing or all values are 0" require.progs gnuplot
pictures_body()
{
	local f

	for f in some zero; do
		ladder | sed 's/,_/, /' > ladder.tsv
		results > results.tsv
		if [ $f = zero ]; then
			for t in ladder results; do
				awk -F '\t' -v OFS='\t' '{
				    for (i = 3; i <= NF; i++)
					$i = 0
				    print }' $t.tsv > zero.tsv
				mv zero.tsv $t.tsv
			done
		fi
		gnuplot -c "$demo/plot.gp" 2> err || {
			cat err
			atf_fail "gnuplot fails"
		}
		atf_check_equal 1000 "$(width demo.png)"
		atf_check_equal 1000 "$(width demo-stock.png)"
		[ -s demo.svg ] && [ -s demo-stock.svg ] || atf_fail "no SVG"
		rm demo.png demo-stock.png
	done
}
