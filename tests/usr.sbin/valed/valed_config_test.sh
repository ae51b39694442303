# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The configuration files of valed, and -o.

. "$(atf_get_srcdir)/valed.subr"

# sysexits.h
EX_USAGE=64
EX_NOINPUT=66
EX_CANTCREAT=73
EX_CONFIG=78

# A file with two adapters, on lines 2 to 4 and 6 to 9.
two()
{
	cat <<-END
	# The first one.
	pci.0.1.0.device=e1000
	pci.0.1.0.backend=vale0:a
	pci.0.1.0.path=a.sock

	   pci.0.2.0.device=e1000
	pci.0.2.0.backend=vale0:b
	pci.0.2.0.path=b.sock
	pci.0.2.0.itr=250
	END
}

test_case serves "Adapters of files, of -o and of -s are served; what is set \
later counts"
serves_body()
{
	two > two.conf
	# No newline at the end; a carriage return; a name with a dot.
	printf 'pci.0.2.0.path=other.sock\r\npci.0.2.0.mtu=9000' > more.conf
	"$VALED" -k two.conf -s 3,e1000,vale1:c,path=c.sock -k more.conf \
	    -o pci.0.1.0.backend=vale0:z -o pci.255.31.7.device=e1000 \
	    -o pci.255.31.7.path=d.sock -o pci.255.31.7.backend=vale0:d \
	    > out 2> err &
	pid=$!
	listening d.sock
	for s in a.sock other.sock c.sock; do
		listening $s
	done
	[ ! -e b.sock ] || atf_fail "b.sock: not replaced"
	kill -USR1 $pid
	valed_ends $pid err
	cut -d' ' -f1 out | sort -u > names
	atf_check -o inline:'b\nc\nd\nz\n' cat names
	atf_check -o empty cat err
}

test_case empty "A file without adapters is valid: valed serves none"
empty_body()
{
	echo "# nothing yet" > none.conf
	"$VALED" -k none.conf -v > out 2> err &
	pid=$!
	wait_must "the process" [ -d /proc/$pid/task ]
	# The process is up when the guard exists.
	wait_until "the guard" grep -q . /proc/$pid/task/$pid/children ||
	    atf_fail "no guard: $(cat err)"
	valed_ends $pid err
}

test_case wrong_line "One wrong line is one error with the file's name and the \
line's number, and nothing is created"
wrong_line_body()
{
	enter
	while IFS='	' read -r edit line pattern; do
		two | sed -e "$edit" > wrong.conf
		refused $EX_CONFIG "wrong.conf:$line: .*$pattern" -k wrong.conf
	done <<-END
	4s/.*/path/	4	not name=value
	5s/.*/pci.0.1.0.path=again/	5	path= twice: see wrong.conf:4
	7s/vale0:b/vale0:a/	7	vale0:a: port used twice
	9s/itr=250/fd=5/	8	both path= and fd=
	8s/path.*/fd=99/	8	fd=99: not a listening
	8d	6	path= is missing
	END
	# The first wrong line of two files.
	two > right.conf
	echo "pci.0.1.0.mtu=1" > wrong.conf
	refused $EX_CONFIG "wrong.conf:1: mtu=1" -k right.conf -k wrong.conf
}

test_case control "A terminal gets no control characters of a file"
control_body()
{
	enter
	printf 'x\033[2J\302\233=1\n' > wrong.conf
	refused $EX_CONFIG 'wrong.conf:1: unknown variable "x?\[2J?' \
	    -k wrong.conf
	mkdir "$(printf 's\033')"
	refused $EX_CANTCREAT 's?: exists and is not a socket' \
	    -s "1,e1000,vale0:a,path=$(printf 's\033')"
}

test_case wrong_option "An error of -o names it; a file that cannot be read is \
named"
wrong_option_body()
{
	enter
	two > two.conf
	refused $EX_USAGE "-o pci.0.1.0.itr=x: itr=x" -k two.conf \
	    -o pci.0.1.0.itr=x
	# The adapter of -s has been parsed.
	refused $EX_USAGE "-o pci.0.9.0.backend=vale0:y: slot 0:9:0 is that of \
an option -s" -s 9,e1000,vale0:x,path=x.sock -o pci.0.9.0.backend=vale0:y
	refused $EX_USAGE "-s 1,.*slot 0:1:0 twice" -k two.conf \
	    -s 1,e1000,vale0:x,path=x
	refused $EX_NOINPUT "-k none.conf: No such file" -k none.conf
	# What does not end.
	mkfifo fifo
	refused $EX_NOINPUT "-k fifo: not a regular file" -k fifo
	refused $EX_NOINPUT "-k /dev/zero: not a regular file" -k /dev/zero
	truncate -s 16777217 large
	refused $EX_CONFIG "-k large: larger than 16777216 bytes" -k large
	awk 'BEGIN { for (i = 0; i <= 8192; i++)
	    printf "port.vale0:p%d.vlan=5\n", i }' > many
	refused $EX_CONFIG "many:8193: more than 8192 variables of switches \
and ports" -k many
	mkdir dir
	refused $EX_NOINPUT "-k dir: " -k dir
}

test_case check "-t checks options and files as a start does, beside a valed \
that serves them, and does nothing else"
check_body()
{
	enter
	two > two.conf
	"$VALED" -c control -k two.conf > out 2> err &
	pid=$!
	listening b.sock
	listening control
	ls -Ai *.sock control > ../before
	atf_check "$VALED" -t -c control -k two.conf
	atf_check "$VALED" -c control,mem=1G -s 9,e1000,tap7,fd=x \
	    -k two.conf -t
	refused 64 "fd=x: used twice" -s 9,e1000,vale0:x,fd=x \
	    -s 10,e1000,vale0:y,fd=x -t
	atf_check "$VALED" -s 9,e1000,vale0:x,fd=x \
	    -s 10,e1000,vale0:y,fd=y -c fd=z -t
	refused 64 "one of them is needed" -t
	refused 64 "-c control,mem=x: mem=x" -c control,mem=x -t
	refused 66 "-k none: " -t -k two.conf -k none
	# What is read again is checked; the valed that runs is not asked.
	sed -i 's/itr=250/itr = x/' two.conf
	refused 78 "two.conf:9: itr=x" -t -c control -k two.conf
	ls -Ai *.sock control > ../after
	atf_check diff ../before ../after
	valed_ends $pid err
	atf_check -o empty cat out err
}

test_case print "-T prints what is in force, as a file that says the same"
print_body()
{
	enter
	two > two.conf
	cat >> two.conf <<-END
	pci.0.2.0.rate=5Mbit/s,burst=64K
	pci.0.2.0.trunk=10,20-30
	pci.0.2.0.private=on
	pci.0.2.0.mem=1G
	port.vale0:a.limit=3
	port.vale0:x.mirror=vale0:a/t
	switch.vale0.ageing=60
	attach.vale0:e0=packet
	END
	"$VALED" -T -k two.conf -o switch.vale0.ageing=61 -a vale1:e1,kind=xdp \
	    -s 3,e1000,tap7,fd=x,mtu=1500,itr=9 > printed 2> err ||
	    atf_fail "$(cat err)"
	cat > expected <<-END
	pci.0.3.0.device=e1000
	pci.0.3.0.fd=x
	pci.0.3.0.mac=58:9c:fc:XX:XX:XX
	pci.0.3.0.mtu=1500
	pci.0.3.0.itr=9
	pci.0.3.0.itr_min=0
	pci.0.3.0.csb=on
	pci.0.3.0.direct=on
	pci.0.3.0.announce=on
	pci.0.3.0.poll=0
	pci.0.3.0.backend=tap7
	pci.0.1.0.device=e1000
	pci.0.1.0.path=a.sock
	pci.0.1.0.mac=58:9c:fc:XX:XX:XX
	pci.0.1.0.itr=0
	pci.0.1.0.itr_min=0
	pci.0.1.0.csb=on
	pci.0.1.0.direct=on
	pci.0.1.0.announce=on
	pci.0.1.0.poll=0
	pci.0.1.0.ip=any
	pci.0.1.0.limit=3
	pci.0.1.0.link=up
	pci.0.1.0.mirror=no
	pci.0.1.0.private=off
	pci.0.1.0.rate=0
	pci.0.1.0.source=any
	pci.0.1.0.trunk=no
	pci.0.1.0.native=0
	pci.0.1.0.vlan=0
	pci.0.1.0.weight=1
	pci.0.1.0.backend=vale0:a
	pci.0.2.0.device=e1000
	pci.0.2.0.path=b.sock
	pci.0.2.0.mac=MAC
	pci.0.2.0.itr=250
	pci.0.2.0.itr_min=0
	pci.0.2.0.csb=on
	pci.0.2.0.direct=on
	pci.0.2.0.announce=on
	pci.0.2.0.poll=0
	pci.0.2.0.mem=1G
	pci.0.2.0.ip=any
	pci.0.2.0.limit=0
	pci.0.2.0.link=up
	pci.0.2.0.mirror=no
	pci.0.2.0.private=on
	pci.0.2.0.rate=5000000bit/s,burst=65536
	pci.0.2.0.source=any
	pci.0.2.0.trunk=10,20-30
	pci.0.2.0.native=0
	pci.0.2.0.vlan=0
	pci.0.2.0.weight=1
	pci.0.2.0.backend=vale0:b
	port.vale0:x.mirror=vale0:a/t
	switch.vale0.ageing=61
	attach.vale1:e1=xdp
	attach.vale0:e0=packet
	END
	# That of an adapter without mac= is another one on each host.
	sed -e '/0.2.0.mac/s/=.*/=MAC/' -e '/0.3.0.mac/d' \
	    -e 's/=58:9c:fc:.*/=58:9c:fc:XX:XX:XX/' printed > got
	sed -i /0.3.0.mac/d expected
	atf_check diff -u expected got
	# What is printed is read as the same.
	"$VALED" -T -k printed > again 2> err || atf_fail "$(cat err)"
	sort printed > one
	sort again > two
	atf_check diff one two
	rm printed got expected again one two
	refused 64 "-o pci.0.9.0.device=e1000: pci.0.9.0.backend is missing" \
	    -T -k two.conf -o pci.0.9.0.device=e1000
	atf_check -s exit:74 -e match:"stdout" sh -c '"$VALED" -T -k two.conf \
	    > /dev/full'
}
