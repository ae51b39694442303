# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# vale-cap(1) with a valed; tcpdump(8) reads what it writes, and tshark(1) has it
# as its extcap.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"
. "$(atf_get_srcdir)/valed_ports.subr"

find_cap()
{
	CAP=$(atf_get_srcdir)/../../../usr.bin/vale-cap/vale-cap
	[ -x "$CAP" ] || CAP=vale-cap
}

# begin argument...: capture in the background, and wait until it does.
begin()
{
	find_cap
	# valed_ports sees the end of its orders without it.
	$CAP "$@" 2> cap.err 3>&- 4<&- &
	cap=$!
	wait_must "the capture" [ -s cap.pcapng ]
}

# captured N: the file has N frames, at least.
captured()
{
	[ "$(tcpdump -n -r cap.pcapng 2> /dev/null | wc -l)" -ge "$1" ]
}

# end CAPTURED: end it when it has captured so many frames: valed sends some
# time after a port's sync.  It has no more.
end()
{
	wait_must "$1 frames" captured "$1"
	kill -INT $cap
	wait $cap || atf_fail "vale-cap: $? $(cat cap.err)"
	atf_check -o inline:"$1 frames captured, 0 dropped\n" cat cap.err
}

# packets FILE: who sent each broadcast of 60 bytes.
packets()
{
	tcpdump -n -e -r "$1" "ether broadcast and len == 60" 2> tcpdump.err |
	    awk '{ print $2 }'
}

test_case both "What a port sends and gets is captured, and nothing else" \
    require.progs tcpdump
both_body()
{
	setup vale0:a vale0:b vale0:c
	begin -w cap.pcapng vale0:b
	atf_check -o inline:"600\n" stat -c %a cap.pcapng
	send 1 3
	send 0 2
	send 2 1
	end 6
	for i in 01 01 01 00 00 02; do
		echo "02:00:00:00:00:$i"
	done > expected
	packets cap.pcapng > seen
	atf_check diff expected seen
	teardown
}

test_case directions "One direction, of several ports, which the file names" \
    require.progs tcpdump
directions_body()
{
	setup vale0:a vale0:b vale0:c
	begin -Q out -w cap.pcapng vale0:b vale0:c
	send 0 2
	send 1 3
	send 2 4
	end 7
	atf_check -o inline:"3 4\n" sh -c "tcpdump -n -e -r cap.pcapng \
	    2>&1 | awk '/00:01 >/ { b++ } /00:02 >/ { c++ }
	    END { print b, c }'"
	atf_check -o match:"vale0:b" -o match:"vale0:c" strings cap.pcapng
	rm cap.pcapng
	begin -Q in -w cap.pcapng vale0:b
	send 0 2
	send 1 3
	end 2
	teardown
}

test_case pipe "A reader of the pipe sees a frame at once; a count ends the \
capture, and so does the reader's end" require.progs tcpdump
pipe_body()
{
	setup vale0:a vale0:b
	find_cap
	{ $CAP -n 3 -s 20 vale0:a 2> cap.err; echo $? > status; } 3>&- 4<&- |
	    tcpdump -n -e -l -U -r - > seen 2> tcpdump.err 3>&- 4<&- &
	wait_must "tcpdump" grep -q "reading" tcpdump.err
	send 0 1
	wait_must "the frame" [ -s seen ]
	atf_check -o inline:"1\n" sh -c 'wc -l < seen'
	send 0 4
	wait_must "the end" [ -s status ]
	atf_check -o inline:"0\n" cat status
	atf_check -o inline:"3 frames captured, 0 dropped\n" cat cap.err
	wait_must "the reader" sh -c '[ $(wc -l < seen) -eq 3 ]'

	# Nobody reads any more: it ends, with or without frames.
	rm status
	{ $CAP vale0:a 2> cap.err; echo $? > status; } 3>&- 4<&- |
	    head -c 8 > seen &
	wait_must "the end" [ -s status ]
	atf_check -o inline:"0\n" cat status
	atf_check -o inline:"0 frames captured, 0 dropped\n" cat cap.err
	rm status
	mkfifo frames
	{ $CAP -w frames vale0:a 2> cap.err; echo $? > status; } 3>&- 4<&- &
	head -c 2000 < frames > seen 3>&- 4<&- &
	until [ -s status ]; do
		send 0 100
	done
	atf_check -o inline:"0\n" cat status
	atf_check -o match:"^[1-9][0-9]* frames captured, [0-9]* dropped$" \
	    cat cap.err
	teardown
}

# stored.pcapng is what this case made of vale-cap 1.0: timeless.pcapng.
test_case stored "A capture of version 1.0 is read, and of the same frames the same \
is written" require.progs "python3 tcpdump"
stored_body()
{
	local i stored=$(atf_get_srcdir)/stored.pcapng

	setup vale0:a vale0:b
	begin -s 64 -w cap.pcapng vale0:b
	send 1 3
	send 0 2
	end 5
	atf_check -o save:timeless.pcapng \
	    python3 "$(atf_get_srcdir)/timeless.py" cap.pcapng
	atf_check cmp "$stored" timeless.pcapng
	teardown
	for i in 01 01 01 00 00; do
		echo "00:00:00.000000 02:00:00:00:00:$i > ff:ff:ff:ff:ff:ff,"
	done > expected
	atf_check -o save:seen -e ignore env TZ=UTC tcpdump -n -e -r "$stored"
	cut -d ' ' -f 1-4 seen > got
	atf_check diff expected got
}

# from N: an expression for what port N sends.
from()
{
	echo "ether src 02:00:00:00:00:0$1"
}

# Whether the third frame of port 1 is there, behind all others.
last_captured()
{
	[ "$(tcpdump -n -r cap.pcapng ether src 02:00:00:00:00:01 \
	    2> tcpdump.err | wc -l)" -eq 3 ]
}

test_case fields "All fields of a file that a slow reader has are right" \
    require.progs "python3 tcpdump"
fields_body()
{
	setup vale0:a vale0:b
	mkfifo fifo
	find_cap
	$CAP -Q out -s 20 -r 64 -w fifo vale0:a vale0:b 2> cap.err 3>&- 4<&- &
	cap=$!
	exec 5< fifo
	send 1 2
	# More than the pipe and the ring have space for.
	send 0 5000
	cat <&5 > cap.pcapng &
	cat=$!
	send 1 1
	wait_must "the last frame" last_captured
	kill -INT $cap
	wait $cap || atf_fail "vale-cap: $?"
	wait $cat
	exec 5<&-
	atf_check -o file:cap.err -e empty python3 - <<-'EOF'
	import struct, time
	data = open("cap.pcapng", "rb").read()
	names, frames, received, dropped = [], [0, 0], {}, {}

	def options(at, end):
	    found = {}
	    while at < end:
	        code, size = struct.unpack_from("=HH", data, at)
	        found[code] = data[at + 4:at + 4 + size]
	        at += 4 + (size + 3) // 4 * 4
	    return found

	def number(value):
	    return int.from_bytes(value, "little")

	def now(at):
	    high, low = struct.unpack_from("=II", data, at)
	    assert abs((high << 32 | low) / 1e9 - time.time()) < 3600

	at = 0
	while at < len(data):
	    kind, size = struct.unpack_from("=II", data, at)
	    end = at + size - 4
	    assert struct.unpack_from("=I", data, end) == (size,), at
	    if kind == 0x0a0d0d0a:
	        assert struct.unpack_from("=IHHq", data, at + 8) == (
	            0x1a2b3c4d, 1, 0, -1)
	        assert options(at + 24, end) == {4: b"vale-cap", 0: b""}
	    elif kind == 1:
	        assert struct.unpack_from("=HHI", data, at + 8) == (1, 0, 20)
	        o = options(at + 16, end)
	        assert o == {2: o[2], 9: b"\x09", 0: b""}, o
	        names.append(o[2])
	    elif kind == 6:
	        of, _, _, captured, length = struct.unpack_from("=5I", data, at + 8)
	        now(at + 12)
	        assert (captured, length) == (20, 60)
	        assert data[at + 28:at + 48] == (b"\xff" * 6 + b"\2\0\0\0\0" +
	            bytes([of]) + bytes(8))
	        # Outbound.
	        assert options(at + 48, end) == {2: b"\2\0\0\0", 0: b""}
	        frames[of] += 1
	    else:
	        assert kind == 5, kind
	        of, = struct.unpack_from("=I", data, at + 8)
	        now(at + 12)
	        o = options(at + 20, end)
	        received[of], dropped[of] = number(o[4]), number(o[5])
	    at = end + 4
	assert names == [b"vale0:a", b"vale0:b"], names
	assert received == {0: 5000, 1: 3}, received
	assert dropped == {0: 5000 - frames[0], 1: 0}, dropped
	assert frames[1] == 3 and 0 < frames[0] < 5000, frames
	print("%d frames captured, %d dropped" % (sum(frames),
	    sum(dropped.values())))
	EOF
	teardown
}

test_case filter "Frames that the expression does not match take no place in the \
ring" require.progs tcpdump
filter_body()
{
	setup vale0:a vale0:b vale0:c
	begin -r 16 -Q in -w cap.pcapng vale0:a $(from 2)
	send 1 300
	send 2 5
	end 5
	atf_check_equal "5 02:00:00:00:00:02" \
	    "$(packets cap.pcapng | uniq -c | awk '{ print $1, $2 }')"
	rm cap.pcapng
	# In one word; for each of several ports.
	begin -Q in -w cap.pcapng vale0:a vale0:b "$(from 2) or $(from 0)"
	send 0 1
	send 1 2
	send 2 4
	end 9
	teardown
}

test_case filter_here "What the switch does not take as a filter is decided by \
vale-cap: a long one, one that loops" require.progs tcpdump
filter_here_body()
{
	setup vale0:a vale0:b vale0:c
	expression=$(from 2)
	for i in $(seq 100 400); do
		expression="$expression or ether host 02:00:00:$((i / 100)):00:$((i % 100))"
	done
	tcpdump -y EN10MB -ddd "$expression" 2> /dev/null | head -1 > insns
	[ "$(cat insns)" -gt 512 ] || atf_fail "it is short: $(cat insns)"
	for expression in "$expression" "$(from 2) or ip6 protochain 6"; do
		# Frames that do not match do not count.
		begin -n 5 -Q in -w cap.pcapng vale0:a "$expression"
		send 1 30
		send 2 5
		end 5
		atf_check_equal 5 $(packets cap.pcapng | grep -c ':02$')
		rm cap.pcapng
	done
	teardown
}

# written N: whether the files of ring/ have at least N - 200 frames.  vale-cap
# writes the last ones later, a buffer at a time.
written()
{
	[ "$(cat ring/* | wc -c)" -ge $((104 * ($1 - 200))) ]
}

# paced N: port 0 sends N times 1000 frames, no faster than they are written.
paced()
{
	local i

	for i in $(seq "$1"); do
		send 0 1000
		wait_must "$((1000 * i)) frames" written $((1000 * i))
	done
}

# frames FILE...: how many they have, one by one.
frames()
{
	local f

	for f; do
		tcpdump -n -r "$f" 2> tcpdump.err | wc -l
	done | paste -sd ' '
}

test_case size "Another file begins after -C bytes; -W keeps the last ones" \
    require.progs tcpdump
size_body()
{
	local i sum

	setup vale0:a vale0:b
	mkdir ring
	find_cap
	$CAP -Q out -n 35000 -C 1 -W 3 -r 16384 -w ring/f vale0:a 2> cap.err \
	    3>&- 4<&- &
	cap=$!
	wait_must "the first file" [ -s ring/f0 ]
	paced 24
	# The other frames find space in its ring, however slow it is.
	for i in $(seq 11); do
		send 0 1000
	done
	wait_must "the last frame" [ -s cap.err ]
	wait $cap || atf_fail "vale-cap: $?"
	atf_check -o inline:"35000 frames captured, 0 dropped\n" cat cap.err
	# 104 bytes a frame: 9615 frames in a file; the fourth is the first.
	atf_check -o inline:"f0\nf1\nf2\n" ls ring
	atf_check_equal "6155 9615 9615" "$(frames ring/f0 ring/f1 ring/f2)"
	# Without -W all stay; the first has no number.
	rm ring/*
	$CAP -Q out -n 22000 -C 1 -r 16384 -w ring/f vale0:a 2> cap.err \
	    3>&- 4<&- &
	cap=$!
	wait_must "the first file" [ -s ring/f ]
	paced 22
	wait_must "the last frame" [ -s cap.err ]
	wait $cap || atf_fail "vale-cap: $?"
	atf_check_equal "9615 9615 2770" "$(frames ring/f ring/f1 ring/f2)"
	teardown
}

test_case seconds "Another file begins after -G seconds, without frames too; -W \
ends the capture" require.progs tcpdump
seconds_body()
{
	setup vale0:a vale0:b
	mkdir ring
	find_cap
	$CAP -G 1 -W 2 -w ring/f vale0:a 2> cap.err 3>&- 4<&- &
	cap=$!
	wait_must "the first file" [ -s ring/f0 ]
	send 0 3
	wait_must "the second file" [ -s ring/f1 ]
	send 0 4
	wait_must "the end" [ -s cap.err ]
	wait $cap || atf_fail "vale-cap: $?"
	atf_check -o inline:"7 frames captured, 0 dropped\n" cat cap.err
	atf_check_equal "3 4" "$(frames ring/f0 ring/f1)"
	# The time is in the name, and there is no number.
	rm ring/*
	atf_check -e inline:"0 frames captured, 0 dropped\n" \
	    $CAP -G 1 -W 2 -w ring/%Y-%s.pcapng vale0:a
	atf_check -o match:"^$(date +%Y)-[0-9]*[.]pcapng$" -o \
	    not-match:"%" ls ring
	[ "$(ls ring | wc -l)" -eq 2 ] || atf_fail "$(ls ring)"
	# With -C the last ones stay, whatever their names are.
	rm ring/*
	$CAP -C 1 -G 1 -W 2 -w ring/%s. vale0:a 2> cap.err 3>&- 4<&- &
	cap=$!
	wait_must "a file" sh -c '[ -n "$(ls ring)" ]'
	first=$(ls ring)
	wait_must "the end of $first" [ ! -e "ring/$first" ]
	kill -INT $cap
	wait $cap || atf_fail "vale-cap: $?"
	atf_check_equal 2 "$(ls ring | wc -l)"
	teardown
}

test_case user "root goes on as another user, which creates the file" \
    require.progs tcpdump require.user root
user_body()
{
	setup vale0:a vale0:b
	mkdir his
	chown nobody his
	chmod 755 .
	ln -s his/cap.pcapng cap.pcapng
	begin -Z nobody -w his/cap.pcapng vale0:a
	uid=$(id -u nobody) gid=$(id -g nobody)
	atf_check -o inline:"Uid:\t$uid\t$uid\t$uid\t$uid
Gid:\t$gid\t$gid\t$gid\t$gid\n" grep -E "^(Uid|Gid)" /proc/$cap/status
	atf_check -o inline:"Groups:\t$(id -G nobody) \n" \
	    grep "^Groups" /proc/$cap/status
	atf_check -o not-match:"[1-9a-f]" sed -n 's/^CapPrm://p' \
	    /proc/$cap/status
	send 0 2
	end 2
	atf_check -o inline:"nobody 600\n" stat -c '%U %a' his/cap.pcapng
	mkdir ours
	atf_check -s exit:73 -e match:"ours/x: Permission denied" \
	    $CAP -Z nobody -w ours/x vale0:a
	teardown
}

# as_nobody command...
as_nobody()
{
	HOME=$PWD/home TMPDIR=$PWD/home WIRESHARK_EXTCAP_DIR=$PWD/ext setpriv \
	    --reuid=nobody --regid=nogroup --clear-groups "$@" 3>&- 4<&-
}

test_case extcap "Wireshark has the ports in its list, and captures with a filter, \
without root" require.progs "tshark setpriv tcpdump" require.user root
extcap_body()
{
	control_options=,mode=0666,admin=nogroup
	setup vale0:a vale0:b
	find_cap
	mkdir ext home
	chmod 755 .
	chown nobody home
	# Where it is built root only may look.
	cp "$(command -v "$CAP")" ext/vale-cap
	as_nobody tshark -D > seen 2> tshark.err ||
	    atf_fail "tshark: $(cat tshark.err)"
	atf_check -o match:"^[0-9]*[.] vale0:a [(]VALE port[)]$" \
	    -o match:"^[0-9]*[.] vale0:b [(]VALE port[)]$" cat seen
	as_nobody tshark -L -i vale0:a > seen 2> tshark.err ||
	    atf_fail "tshark: $(cat tshark.err)"
	atf_check -o match:"EN10MB" cat seen
	as_nobody tshark -i vale0:b -f "$(from 0)" -c 3 -w home/cap.pcapng \
	    > tshark.out 2>&1 &
	tshark=$!
	# It says nothing when it has begun.
	until ! kill -0 $tshark 2> /dev/null; do
		send 1 1
		send 0 1
	done
	wait $tshark || atf_fail "tshark: $? $(cat tshark.out)"
	cat tshark.out
	atf_check_equal "3 02:00:00:00:00:00" \
	    "$(packets home/cap.pcapng | uniq -c | awk '{ print $1, $2 }')"
	# What is wrong with a filter, and what is right.
	atf_check -o match:"syntax error" ext/vale-cap --extcap-interface \
	    vale0:a --extcap-capture-filter "tcp port"
	atf_check ext/vale-cap --extcap-interface vale0:a \
	    --extcap-capture-filter "tcp port 80"
	atf_check -o match:"^arg .*--direction" -o match:"^arg .*--slots" \
	    ext/vale-cap --extcap-config --extcap-interface vale0:a
	# Its options, in a file of any kind.
	atf_check -o ignore ext/vale-cap --capture --extcap-interface vale0:a \
	    --fifo /dev/null --direction in --slots 64 -G 1 -W 1
	teardown
	# Without a valed there are no ports.
	atf_check -o inline:"extcap {version=$($CAP --version |
	    sed 's/.* //')}{display=vale-cap}\n" ext/vale-cap \
	    --extcap-interfaces --extcap-version=4.0
}

# Whether the table has no line but its head.
no_ports()
{
	! $VALECTL | grep -q "^vale"
}

test_case restart "The capture goes on when its port is closed and opened \
again, and ends with valed"
restart_body()
{
	setup vale0:a vale0:b
	begin -Q out -w cap.pcapng vale0:a
	send 0 2
	exec 3>&- 4<&-
	wait $ports
	wait_until "closed ports" no_ports || atf_fail "they are there"
	"$(atf_get_srcdir)/../../usr.sbin/valectl/valed_ports" vale0:a vale0:b \
	    < orders > replies &
	ports=$!
	exec 3> orders 4< replies
	reply
	send 0 3
	end 5
	rm cap.pcapng
	begin -w cap.pcapng vale0:a
	teardown
	status=0
	wait $cap || status=$?
	atf_check_equal 69 $status
	atf_check -o match:"^vale-cap: vale0:a: " cat cap.err
}

test_case errors "What is invalid is refused in one line"
errors_body()
{
	setup vale0:a
	find_cap
	while IFS='|' read -r status message args; do
		[ -n "$status" ] || continue
		atf_check -s exit:$status -e match:"$message" -o ignore \
		    $CAP $args
		[ "$($CAP $args 2>&1 > /dev/null | wc -l)" -eq 1 ] ||
		    atf_fail "$args: not one line"
	done <<-EOT
	65|vale0:z: there is no such port|vale0:z
	65|vale1:a: there is no such port|vale0:a vale1:a
	64|eth0: it does not begin with|eth0
	64|-n 0: not a number from 1|-n 0 vale0:a
	64|-s 65537: not a number from 1 to 65536|-s 65537 vale0:a
	64|-r 1: not a number from 2 to 16384|-r 1 vale0:a
	64|-Q up: not in, out or inout|-Q up vale0:a
	69|no valed at none|-c none vale0:a
	64|can't parse filter expression: syntax error|vale0:a tcp port
	64|syntax error|vale0:a eth0
	64|rejects all packets|vale0:a arp and ip
	64|-C, -G and -W: there is no file: -w|-C 1 vale0:a
	64|-C, -G and -W: there is no file: -w|-G 1 vale0:a
	64|-C, -G and -W: there is no file: -w|-W 1 vale0:a
	64|-W: there is one file: -C or -G|-W 2 -w x vale0:a
	64|-C 0: not a number from 1 to 1000000|-C 0 -w x vale0:a
	64|-G 0: not a number from 1|-G 0 -w x vale0:a
	64|-W 0: not a number from 1|-W 0 -w x vale0:a
	67|-Z none: there is no such user|-Z none -w x vale0:a
	73|/none/x: No such file|-w /none/x vale0:a
	74|/dev/full: No space|-w /dev/full vale0:a
	EOT
	atf_check -s exit:64 -e match:"no port: see vale-cap -h" $CAP
	atf_check -s exit:64 -e match:"no port: see vale-cap -h" $CAP -w x
	atf_check -s exit:64 -e match:"no port: see vale-cap -h" $CAP --capture \
	    --fifo x
	atf_check -s exit:64 -e match:"usage: vale-cap" $CAP -Z
	teardown
}
