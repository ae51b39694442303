# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# What nettest prints is what was sent and received, over loopback in a network
# namespace of its own.

. "$(atf_get_srcdir)/cases.subr"

nettest=$(atf_get_srcdir)/../../bench/nettest/nettest

# in_netns FUNCTION: call it with a server on 127.0.0.1.
in_netns()
{
	unshare -rn true 2> /dev/null || unshare -n true 2> /dev/null ||
	    atf_skip "no network namespaces"
	cat > script <<-EOF
		ip link set lo up
		# An earlier server said "ready", too.
		rm -f server
		$nettest serve 127.0.0.1 > server &
		trap "kill \$!" EXIT
		until grep -qs ready server; do
			kill -0 \$! || exit 1
			sleep 0.1
		done
		$1
	EOF
	if [ "$(id -u)" -eq 0 ]; then
		atf_check -o save:out -e save:err unshare -n sh -e script
	else
		atf_check -o save:out -e save:err unshare -rn sh -e script
	fi
	cat out
}

# value KEY: the last one in the output.
value()
{
	sed -n "s/.* $1=\([0-9.]*\).*/\1/p" out | tail -n 1
}

test_case udp "No more datagrams are received than sent; of a few, all" \
    require.progs "unshare ip"
udp_body()
{
	in_netns "$nettest udp 127.0.0.1 8 1"
	[ "$(value received)" -gt 0 ] || atf_fail "none received"
	[ "$(value received)" -le "$(value sent)" ] || atf_fail "received more"
	# A socket's buffer holds these, if the server does not run meanwhile.
	in_netns "$nettest -r 50 udp 127.0.0.1 8 1"
	atf_check_equal "$(value sent)" "$(value received)"
	[ "$(value sent)" -gt 1 ] && [ "$(value sent)" -le 51 ] ||
	    atf_fail "$(value sent) sent"
	in_netns "$nettest -r 1 udp 127.0.0.1 65507 1"
	atf_check_equal "$(value sent)" "$(value received)"
}

test_case tcp "Each byte of several streams is compared" \
    require.progs "unshare ip python3"
tcp_body()
{
	in_netns "$nettest -n 3 tcp 127.0.0.1 1"
	[ "$(value bytes)" -gt 0 ] || atf_fail "nothing was sent"
	in_netns "$nettest -w 1460 tcp 127.0.0.1 1"
	[ $(($(value bytes) % 1460)) -eq 0 ] || atf_fail "part of a write"
	[ "$(value bytes)" -gt 0 ] || atf_fail "nothing was sent"
	# Unpaced, the first ten segments, of 65483 bytes.
	in_netns "$nettest -r 1000000 tcp 127.0.0.1 1"
	awk -v bytes="$(value bytes)" -v s="$(value seconds)" 'BEGIN {
		exit !(bytes <= 2e6 * s + 10 * 65483) }' ||
	    atf_fail "more than the rate"
	cat > peer.py <<-EOF
		import socket
		for data in b"", b"wrong":
		    s = socket.create_connection(("127.0.0.1", 5678))
		    s.sendall(b"tcp\n" + data)
		    s.shutdown(socket.SHUT_WR)
		    print(s.makefile().read().strip())
	EOF
	in_netns "python3 peer.py"
	atf_check -o inline:"0 ok\n5 corrupt\n" cat out
}

test_case rr "Each transaction is a byte and its answer" \
    require.progs "unshare ip"
rr_body()
{
	in_netns "$nettest rr 127.0.0.1 1"
	[ "$(value transactions)" -gt 0 ] || atf_fail "no transaction"
	# They follow each other, so half of them take at most twice the mean.
	awk -v n="$(value transactions)" -v s="$(value seconds)" \
	    -v p50="$(value p50_us)" -v p99="$(value p99_us)" 'BEGIN {
		exit !(0 < p50 && p50 <= p99 && p50 * n <= 2.1e6 * s)
	    }' || atf_fail "other percentiles than expected"
}

test_case busy "A second test of datagrams is refused while one runs; unknown \
lines end the connection" require.progs "unshare ip python3"
busy_body()
{
	cat > peer.py <<-EOF
		import socket
		def ask(data):
		    s = socket.create_connection(("127.0.0.1", 5678))
		    s.sendall(data)
		    return s, s.makefile()
		def line(of):
		    try:
		        print(of[1].readline().strip())
		    except ConnectionResetError:
		        print()
		a = ask(b"udp\n")
		line(a)
		b = ask(b"udp\n")
		line(b)
		for data in b"nonsense\n", b"x" * 100:
		    c = ask(data)
		    line(c)
		a[0].sendall(b"end\n")
		line(a)
		line(a)
		line(ask(b"udp\n"))
	EOF
	in_netns "python3 peer.py"
	atf_check -o inline:"ready\nbusy\n\n\n0 0\n\nready\n" cat out
}

# refused STATUS PATTERN argument...
refused()
{
	atf_check -s exit:"$1" -e match:"$2" "$nettest" $3
}

test_case usage "What is wrong with an argument is said"
usage_body()
{
	refused 2 usage ""
	refused 2 usage "-x"
	refused 2 usage "udp 127.0.0.1 8"
	refused 2 usage "-n 2 udp 127.0.0.1 8 1"
	refused 2 usage "-r 2 serve"
	refused 2 usage "rr 127.0.0.1"
	refused 2 usage "-w 2 rr 127.0.0.1 1"
	refused 2 usage "serve 127.0.0.1 1"
	refused 2 "0: not a number from 1 to 65507" "udp 127.0.0.1 0 1"
	refused 2 "65508: not" "udp 127.0.0.1 65508 1"
	refused 2 "65: not a number from 1 to 64" "-n 65 tcp 127.0.0.1 1"
	refused 2 "65537: not" "-w 65537 tcp 127.0.0.1 1"
	refused 2 "x: not" "-p x rr 127.0.0.1 1"
	refused 1 "localhost" "rr localhost 1"
}
