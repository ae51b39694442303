# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# vale-cap(1) with a valed; tcpdump(8) reads what it writes.

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
	wait_until "the capture" [ -s cap.pcapng ]
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
	wait_until "$1 frames" captured "$1"
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
	wait_until "tcpdump" grep -q "reading" tcpdump.err
	send 0 1
	wait_until "the frame" [ -s seen ]
	atf_check -o inline:"1\n" sh -c 'wc -l < seen'
	send 0 4
	wait_until "the end" [ -s status ]
	atf_check -o inline:"0\n" cat status
	atf_check -o inline:"3 frames captured, 0 dropped\n" cat cap.err
	wait_until "the reader" sh -c '[ $(wc -l < seen) -eq 3 ]'

	# Nobody reads any more: it ends, with or without frames.
	rm status
	{ $CAP vale0:a 2> cap.err; echo $? > status; } 3>&- 4<&- |
	    head -c 8 > seen &
	wait_until "the end" [ -s status ]
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

test_case restart "The capture goes on when its port is closed and opened \
again, and ends with valed"
restart_body()
{
	setup vale0:a vale0:b
	begin -Q out -w cap.pcapng vale0:a
	send 0 2
	exec 3>&- 4<&-
	wait $ports
	wait_until "closed ports" sh -c '[ -z "$('"$VALECTL"')" ]'
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
	73|/none/x: No such file|-w /none/x vale0:a
	74|/dev/full: No space|-w /dev/full vale0:a
	EOT
	atf_check -s exit:64 -e match:"^usage: vale-cap" $CAP
	atf_check -s exit:64 -e match:"^usage: vale-cap" $CAP -w x
	atf_check -s exit:64 -e match:"usage: vale-cap" $CAP -Z
	teardown
}
