# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# bench/freebsd/*.sh with programs in place of FreeBSD's, which write down how
# they are called.  Their guests are shells, and nettest, pkt-gen and netstat
# print known figures.

. "$(atf_get_srcdir)/cases.subr"

nettest=$(atf_get_srcdir)/../../../bench/freebsd/nettest.sh
goodput=$(dirname "$nettest")/goodput.sh

# program NAME: put the script on standard input into the directory bin.
program()
{
	{ echo '#!/bin/sh'; cat; } > bin/$1
	chmod +x bin/$1
}

make_host()
{
	local p

	mkdir bin
	log=$PWD/log
	# A sleep of whole seconds, as a measurement has, takes a tenth of one.
	sleep=$(command -v sleep)
	program sleep <<-EOF
		case \$1 in
		*.*)	exec $sleep "\$1" ;;
		esac
		exec $sleep 0.1
	EOF
	: > log
	for p in bhyveload valectl kldload devctl mount; do
		program $p <<-EOF
			echo "\${vm:-host}: $p \$*" >> $log
		EOF
	done
	for p in kldstat ping stty; do
		program $p < /dev/null
	done
	program sysctl <<-EOF
		echo "\${vm:-host}: sysctl \$*" >> $log
		case "\$*" in
		*itr=*)
			echo "\$*" > $PWD/mode
			;;
		-n*hostcache*)
			echo 1
			;;
		esac
	EOF
	program ifconfig <<-EOF
		echo "\${vm:-host}: ifconfig \$*" >> $log
		case "\$*" in
		"epair create")
			echo epair0a
			;;
		*" create")
			echo \${1}0
			;;
		esac
	EOF
	# The guest asks for a name, and gives everybody a shell.
	program bhyve <<-EOF
		echo "\${0##*/} \$*" >> $log
		for vm; do :; done
		export vm
		[ ! -e $PWD/broken ] || { echo "broken" >&2; exit 4; }
		echo "\$\$" > $PWD/\$vm.pid
		printf 'boot messages\nlogin: '
		read -r user
		[ "\$user" = root ] || exit 5
		printf '# '
		exec /bin/sh
	EOF
	cp bin/bhyve bin/tree-bhyve
	program bhyvectl <<-EOF
		echo "bhyvectl \$*" >> $log
		case "\$*" in
		--force-poweroff*)
			vm=\${2#--vm=}
			kill \$(cat $PWD/\$vm.pid)
			;;
		esac
	EOF
	program nettest <<-EOF
		echo "\${vm:-host}: nettest \$*" >> $log
		case "\$*" in
		serve*)
			exec $sleep 1000
			;;
		esac
		case "\$*\$(cat $PWD/mode 2> /dev/null)" in
		udp*csb=1*)
			echo "udp size=\$3 seconds=2.000 sent=60000 full=0" \
			    received=40000
			;;
		udp*)
			echo "udp size=\$3 seconds=2.000 sent=8000 full=0" \
			    received=4000
			;;
		tcp*)
			echo "tcp streams=1 seconds=2.000 bytes=25000000"
			;;
		rr*)
			echo "rr seconds=2.000 transactions=600"
			;;
		esac
	EOF
	program pkt-gen <<-EOF
		echo "\${vm:-host}: pkt-gen \$*" >> $log
		[ ! -e $PWD/no_frames ] || exit 1
		echo "Ready..."
		case "\$*" in
		*" -n "*)
			n=\${*#* -n }
			n=\${n%% *}
			echo "Sent \$n packets 1 bytes 1 events 60 bytes each" \
			    "in 2.00 seconds."
			# Half of them arrive, but all with the CSB.
			grep -q csb=1 $PWD/mode || n=\$((n / 2))
			echo \$((\$(cat $PWD/delivered) + n)) \
			    > $PWD/delivered
			;;
		*rx*)
			echo "Received 30000 packets 1800000 bytes 1 events" \
			    "60 bytes each in 3.00 seconds."
			;;
		*)
			echo "Sent 40000 packets 2400000 bytes 2 events" \
			    "60 bytes each in 2.00 seconds."
			echo "Speed: 20.000 Kpps Bandwidth: ..."
			;;
		esac
	EOF
	program netstat <<-EOF
		printf '\\t99 datagrams received\\n\\t%d delivered\\n' \
		    \$(cat $PWD/delivered)
	EOF
	echo 100 > delivered
	: > mode
	: > image
	PATH=$PWD/bin:$PATH
	# Where guests have files, which other tests have, too.
	mkdir tmp
	export TMPDIR=$PWD/tmp QUIET_S=0.2 POLL_S=0.05 DRAIN_S=0
	export BHYVE=$PWD/bin/bhyve TREE_BHYVE=$PWD/bin/tree-bhyve
}

test_case rows "Each row's settings are made in both guests, and the table has \
its figures and their ratios to BASE" timeout 1200
rows_body()
{
	make_host
	atf_check -o save:table -e save:err \
	    sh "$nettest" -n 1 -t 1 -s e1000-vale -o out image
	atf_check -o inline:"3\n" grep -c '^From' table
	# Sent and received, thousands a second; MB as bits; 1/s; frames.
	atf_check -o match:"BASE +4.00 2.00 +4.00 2.00 +100 +300 +20.0 15.0" \
	    grep -E "e1000-vale +BASE" table
	atf_check -o match:"itr=0 sc=0 csb=1 +30.0 20.0" cat table
	atf_check -o match:"/ BASE +10.00 +10.00 +1.00 +1.00 +1.00 +1.00" \
	    cat table
	# 7 rows and 3 directions of 4, and 2 of pkt-gen between guests.
	atf_check -o match:"^ *98 " wc -l out/results.tsv
	atf_check -o inline:"14\n" \
	    grep -c "^nettest1: pkt-gen -i netmap:em0 -f rx -w 1$" log
	for n in 1 2; do
		atf_check -o inline:"1\n" grep -c "^nettest$n: sysctl \
dev.em.0.poll=0 dev.em.0.itr=250 dev.em.0.sc=0 dev.em.0.csb=1$" log
		adapter=e1000,valent:vm$n,mac=02:be:ef:00:00:0$n
		atf_check -o match:"-s 2,$adapter" \
		    grep "^bhyve .*nettest$n$" log
	done
	for vm in host nettest1 nettest2; do
		atf_check -o match:. \
		    grep "^$vm: sysctl .*tcp.hostcache.enable=0$" log
	done
	# Everything is undone.
	atf_check -o match:"^host: sysctl net.inet.tcp.hostcache.enable=1$" \
	    cat log
	atf_check -o match:. grep "valectl -d valent:epair0a" log
	atf_check -o match:. grep "host: ifconfig epair0a destroy" log
	for n in 1 2; do
		! kill -0 "$(cat nettest$n.pid)" 2> /dev/null ||
		    atf_fail "guest $n runs"
	done
}

test_case sets "Sets run the bhyve, adapter and backend that they name" \
    timeout 1200
sets_body()
{
	make_host
	atf_check -o save:table -e ignore sh "$nettest" -n 1 -t 1 -d guest \
	    -s "tree-virtio-tap virtio-vale" -c "1 2" -o out image
	for n in 1 2; do
		atf_check -o match:. \
		    grep "^tree-bhyve .*-c $n .*2,virtio-net,tap0" log
		atf_check -o match:. \
		    grep "^bhyve .*-c $n .*2,virtio-net,valent:vm1" log
		atf_check -o match:. grep "guest to guest, .*: $n$" table
	done
	atf_check -o match:"host: ifconfig bridge0 destroy" cat log
	atf_check -o match:"pkt-gen -i netmap:vtnet0" cat log
}

test_case goodput "goodput.sh prints what was delivered of each load, for each \
mode" timeout 1200
goodput_body()
{
	make_host
	atf_check -o save:table sh "$goodput" -r "4000 30000" -t 3 -l 1502 image
	atf_check -o match:"^Frames of 1502 bytes" -o match:"^ +4.0 +30.0$" \
	    -o match:"^- +2.0 +15.0$" \
	    -o match:"^itr=0 sc=0 csb=0 rx_share=100 +2.0 +15.0$" \
	    -o match:"^itr=0 sc=0 csb=1 rx_share=20 +4.0 +30.0$" cat table
	atf_check -o match:"^ *10 " wc -l table
	atf_check -o match:"-s 2,e1000,valegp:vm1,mac=02:be:ef:00:00:01" \
	    grep "^bhyve .*nettest1$" log
	atf_check -o inline:"6\n" grep -c "^host: pkt-gen -i valegp:gen -f tx \
-l 1502 .* -n 90000 -R 30000 .* -d 192.0.2.1:5678 -D 02:be:ef:00:00:01" log
	! kill -0 "$(cat nettest1.pid)" 2> /dev/null || atf_fail "guest runs"

	: > no_frames
	atf_check -s exit:1 -o ignore \
	    -e match:"^goodput.sh: 4000 a second: pkt-gen sent nothing," \
	    sh "$goodput" -r 4000 -t 1 image
	! kill -0 "$(cat nettest1.pid)" 2> /dev/null || atf_fail "guest runs"
}

test_case guest_ends "If bhyve does not start the guest, its last message is \
shown, the set is left out, and the host is as before"
guest_ends_body()
{
	make_host
	: > broken
	atf_check -s exit:1 -o ignore \
	    -e match:"guest [12] ended, status 4: broken" \
	    -e match:"e1000-tap: stopped" \
	    sh "$nettest" -n 1 -s e1000-tap -o out image
	atf_check -o match:. grep "ifconfig bridge0 destroy" log
}

test_case paper "What nettest.sh measured is set beside the papers' numbers" \
    timeout 1200 require.progs gnuplot
paper_body()
{
	local paper=$(dirname "$nettest")/paper.sh

	make_host
	atf_check -o save:summary -e ignore env PAPER_OUT=report sh "$paper" \
	    -n 2 -t 1 -d "guest host" \
	    -s "e1000-vale tree-e1000-vale tree-virtio-tap" image
	cut -f 1-4 report/results.tsv | tr '\t' ' ' > seen
	for line in "1 lem/vale/gg/1/base - udp8_sent" \
	    "2 lem/vale/gg/1/csb - udp8" "1 lem/vale/tx/1/itr+sc - tcpw" \
	    "2 lem/vale/gg/1/itr - rr" "1 e1000/vale/gg/1/stock - pkt" \
	    "1 lem/vale/gg/1/csb - pkt1" "1 e1000/bhyve-vale/gg/1/stock - rr" \
	    "2 lem/bhyve-vale/gg/1/sc - udp8_sent" \
	    "2 lem/bhyve-vale/gg/1/itr+sc - pkt1_sent" \
	    "2 virtio/qemu-tap/gg/1/tso - rr"; do
		grep -qx "$line" seen || atf_fail "no $line"
	done
	# 30,000 and 4,000 a second were sent; 100 Mbit/s of TCP.
	atf_check -o inline:"30\n4\n" awk -F '\t' '$1 == 1 &&
	    $2 ~ "lem/vale/gg/1/(csb|base)" && $4 == "udp8_sent" {
		v[$2] = $5
	    }
	    END { print v["lem/vale/gg/1/csb"]; print v["lem/vale/gg/1/base"] }' \
	    report/results.tsv
	atf_check -o inline:"100\n" awk -F '\t' '$1 == 1 && $4 == "tcpw" &&
	    $2 == "lem/vale/gg/1/csb" { print $5 }' report/results.tsv
	for figure in fig5 fig10; do
		[ -s report/$figure.svg ] || atf_fail "no $figure.svg"
	done
	# The tree's bhyve is not this one.
	! grep -q lem/bhyve-vale.*csb report/results.tsv ||
	    atf_fail "CSB on the tree's bhyve"
	atf_check -o match:"does not measure it" cat report/skipped.tsv
	# Poll and other rows are not the papers'.
	! grep -q poll report/results.tsv || atf_fail "a row without a mode"

	cp report/nettest/results.tsv .
	mkdir again
	printf 'guest\tfreebsd\nmachine\tanother\n' > again/machine.tsv
	atf_check -o ignore env RESULTS=results.tsv PAPER_OUT=again sh "$paper"
	atf_check -o ignore grep "<td>another</td>" again/index.html
	cmp report/results.tsv again/results.tsv || atf_fail "other results"
	atf_check -s exit:1 -e match:"none: cannot open" \
	    env RESULTS=none PAPER_OUT=again sh "$paper"
	atf_check -s exit:2 -e match:"the sets are" \
	    env PAPER_OUT=again sh "$paper" -s nonsense image
}

test_case refused "Wrong arguments are refused with one message"
refused_body()
{
	make_host
	atf_check -s exit:2 -e match:"^nettest.sh \[" sh "$nettest"
	atf_check -s exit:2 -e match:"^nettest.sh \[" sh "$nettest" -x image
	atf_check -s exit:2 -e match:"^nettest.sh: 0: a number from 1 is" \
	    sh "$nettest" -n 0 image
	atf_check -s exit:2 -e match:"^nettest.sh: vale: the sets are e1000" \
	    sh "$nettest" -s vale image
	atf_check -s exit:2 -e match:"^nettest.sh: up: the directions are" \
	    sh "$nettest" -d up image
	atf_check -s exit:2 -e inline:"nettest.sh: nosuch: cannot open\n" \
	    sh "$nettest" nosuch
	[ ! -e nettest.out ] || atf_fail "a directory was made"

	atf_check -s exit:2 -e match:"^goodput.sh \[" sh "$goodput"
	atf_check -s exit:2 -e match:"^goodput.sh: 0: a number from 1 is" \
	    sh "$goodput" -r "1000 0" image
	atf_check -s exit:2 -e inline:"goodput.sh: nosuch: cannot open\n" \
	    sh "$goodput" nosuch
}
