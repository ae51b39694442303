# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# valectl(8) shows adapters and attached interfaces, and has all counters for
# Prometheus, with a valed, a client of its adapter, and ports that valed_ports
# opens.  watch.py compares.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"
. "$(atf_get_srcdir)/valed_ports.subr"

ADAPTER=1,e1000,vale0:vm1,path=vm1.sock,mac=02:00:00:00:00:07,itr=100

# compare function [argument ...]
compare()
{
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(atf_get_srcdir) \
	    python3 "$(atf_get_srcdir)/watch.py" "$@" ||
	    atf_fail "watch.py $*"
}

test_case all "Everything is shown: ports, adapters with the client, the address \
and the mode of the driver, and what they count" require.progs python3
all_body()
{
	setup_valed -s $ADAPTER
	atf_check -o match:"^vale0:vm1 tx_frames 0$" \
	    -o match:"^adapter vm1 port vale0:vm1$" \
	    -o match:"^adapter vm1 address 02:00:00:00:00:07$" \
	    -o match:"^adapter vm1 client_since none$" \
	    -o match:"^adapter vm1 csb off$" \
	    -o match:"^adapter vm1 reg_reads 0$" $VALECTL -k all
	VALECTL=$VALECTL compare client
	teardown
}

test_case kinds "What counts drops is known by its kind, not its description" \
    require.progs python3
kinds_body()
{
	setup_valed
	VALECTL=$VALECTL compare kinds
	teardown
}

# polls INTERFACE: whether its thread has polled the port.
polls()
{
	$VALECTL --openmetrics | grep -E "^vale_interface_polls_total\
\{interface=\"$1\",switch=\"vale0\",port=\"$1\"\} [1-9]"
}

test_case interface "An attached interface is shown with its counters" \
    require.user root require.progs "ip python3 unshare"
interface_body()
{
	unshare -n true || atf_skip "network namespaces are not permitted"
	VALE_SOCKET=$PWD/control
	export VALE_SOCKET
	top=$(atf_get_srcdir)/../../..
	VALECTL=$top/usr.sbin/valectl/valectl
	unshare -n sh -c 'ip link add h0 type veth peer name w0 &&
	    exec "$@"' sh "$top/usr.sbin/valed/valed" -c control \
	    -a vale0:h0 2> valed.err &
	valed=$!
	wait_must "the interface" sh -c "$VALECTL -l vale0:h0"
	atf_check -o match:"^interface h0 port vale0:h0$" \
	    -o match:"^interface h0 rx_frames [0-9]+$" \
	    -o match:"^vale0:h0 tx_frames [0-9]+$" $VALECTL -k all
	wait_must "a poll of the interface's thread" polls h0
	teardown
}

# has_link up|down: that of the adapter and its port.
has_link()
{
	local n=1

	[ $1 = up ] || n=0
	$VALECTL -k all | grep -x "adapter vm1 link $1" &&
	    $VALECTL --openmetrics |
	    grep -xF "vale_port_link_up{switch=\"vale0\",port=\"vm1\"} $n"
}

test_case link "An adapter has the link of its port, and follows the carrier of \
an attached interface" \
    require.user root require.progs "ip nsenter unshare"
link_body()
{
	unshare -n true || atf_skip "network namespaces are not permitted"
	VALE_SOCKET=$PWD/control
	export VALE_SOCKET
	top=$(atf_get_srcdir)/../../..
	VALECTL=$top/usr.sbin/valectl/valectl
	unshare -n sh -c 'ip link add h0 type veth peer name w0 &&
	    ip link set h0 up && ip link set w0 up && exec "$@"' sh \
	    "$top/usr.sbin/valed/valed" -c control -a vale0:h0 -s $ADAPTER \
	    2> valed.err &
	valed=$!
	wait_must "the interface" sh -c "$VALECTL -l vale0:h0"
	wait_must "the link" has_link up
	atf_check $VALECTL -o vale0:vm1 link=down
	wait_must "no link" has_link down
	atf_check -o match:"^link=down$" $VALECTL -o vale0:vm1
	atf_check -o match:'"link":"down"' $VALECTL -j -o vale0:vm1
	atf_check $VALECTL -o vale0:vm1 link=uplink
	wait_must "the interface's carrier" has_link up
	atf_check nsenter -n -t $valed ip link set w0 down
	wait_must "no carrier" has_link down
	atf_check nsenter -n -t $valed ip link set w0 up
	wait_must "a carrier again" has_link up
	# Without an uplink there is no link, until it is attached again.
	atf_check $VALECTL -d vale0:h0
	wait_must "no uplink" has_link down
	atf_check nsenter -n -t $valed $VALECTL -a vale0:h0
	wait_must "an uplink again" has_link up
	atf_check nsenter -n -t $valed ip link del h0
	wait_must "no interface" has_link down
	atf_check $VALECTL -o vale0:vm1 link=up
	wait_must "its own link" has_link up
	atf_check -s exit:65 -e match:"link is up, down or uplink" \
	    $VALECTL -o vale0:vm1 link=no
	teardown
}

test_case events "What happens is printed, a line for each event" \
    require.progs python3
events_body()
{
	setup_valed -s $ADAPTER
	VALECTL=$VALECTL VALED_PORTS=$(atf_get_srcdir)/valed_ports \
	    compare events
	teardown
	# Without valed it ends.
	atf_check -s exit:69 -e match:"no valed at" $VALECTL --events
	atf_check -s exit:64 -e match:"--events and -t: one of them" \
	    $VALECTL --events -t vale0
}

test_case rates "A report has the rates since the report before" \
    require.progs python3
rates_body()
{
	setup_valed -s $ADAPTER
	VALECTL=$VALECTL VALED_PORTS=$(atf_get_srcdir)/valed_ports \
	    compare rates
	teardown
}

test_case form "Metrics have the form of OpenMetrics, and that of Prometheus" \
    require.progs python3
form_body()
{
	setup_valed -s $ADAPTER -s 2,e1000,vale1:vm2,path=vm2.sock
	setup_ports vale0:a vale1:b-c.d
	send 0 7
	atf_check -o save:metrics $VALECTL --openmetrics
	atf_check -o save:text $VALECTL --openmetrics=text
	atf_check -o save:json $VALECTL -j -k all
	compare form metrics text json
	compare dashboard metrics
	for line in 'vale_port_transmit_frames_total{switch="vale0",port="a"} 7' \
	    'vale_port_transmit_bytes_total{switch="vale0",port="a"} 420' \
	    'vale_port_transmit_dropped_frames_total{switch="vale1",port="b-c.d",reason="rate"} 0' \
	    'vale_port_transmit_filtered_frames_total{switch="vale0",port="a",reason="self"} 0' \
	    'vale_port_transmit_filtered_frames_total{switch="vale0",port="a",reason="reserved"} 0' \
	    'vale_adapter_receive_filtered_frames_total{adapter="vm1",'\
'switch="vale0",port="vm1",reason="filtered"} 0' \
	    '# TYPE vale_port_transmit_bytes counter' \
	    '# UNIT vale_port_transmit_bytes bytes' \
	    'vale_adapter_info{adapter="vm1",switch="vale0",port="vm1",address="02:00:00:00:00:07"} 1' \
	    'vale_adapter_interrupt_interval_seconds{adapter="vm1",switch="vale0",port="vm1"} 0.000025600'
	do
		grep -qxF "$line" metrics || atf_fail "not there: $line"
	done
	! grep -E 'dropped_frames.*reason="(self|reserved|filtered)"' metrics ||
	    atf_fail "what is for others is no loss"
	teardown
}

test_case lint "promtool(1) has nothing to say about the metrics" \
    require.progs python3
lint_body()
{
	promtool=$(prometheus_program promtool) ||
	    atf_skip "no promtool(1); see make deps"
	setup_valed -s $ADAPTER
	setup_ports vale0:a
	atf_check -o save:text $VALECTL --openmetrics=text
	atf_check -o empty -e empty $promtool check metrics < text
	printf 'GET /metrics HTTP/1.0\r\n\r\n' |
	    atf_check -o save:reply $VALECTL --openmetrics=http
	sed '1,/^.$/d' reply > body
	atf_check -o empty -e empty $promtool check metrics < body
	teardown
}

# prometheus_program name
prometheus_program()
{
	local top=$(cd "$(atf_get_srcdir)/../../.." && pwd)
	local program=${top%-san}/deps/prometheus/usr/bin/$1

	[ -x "$program" ] || program=$(command -v "$1") || return 1
	echo "$program"
}

# request status text: what is read is answered with that status.
request()
{
	atf_check -o save:reply sh -c \
	    'printf "$1" | exec "$2" --openmetrics=http' sh "$2" "$VALECTL"
	head -n 1 reply | tr -d '\r' | grep -qx "HTTP/1.1 $1" ||
	    atf_fail "$2: $(head -n 1 reply)"
}

test_case http "Requests of HTTP are answered, and so are others; a long one and \
a slow one end" require.progs python3
http_body()
{
	setup_valed -s $ADAPTER
	request "200 OK" 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'
	grep -q "^Content-Type: text/plain; version=0.0.4; charset=utf-8" reply ||
	    atf_fail "$(cat reply)"
	compare reply reply
	request "200 OK" \
	    "GET /metrics?x=1 HTTP/1.1\r\naccept: text/plain, \
application/openmetrics-text;version=1.0.0\r\n\r\n"
	grep -q "^Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8" reply ||
	    atf_fail "$(cat reply)"
	compare reply reply
	# That is another header's.
	request "200 OK" \
	    'GET /metrics HTTP/1.0\nAccept: */*\nX: application/openmetrics-text\n\n'
	grep -q "^Content-Type: text/plain" reply || atf_fail "$(cat reply)"
	request "200 OK" 'HEAD /metrics HTTP/1.1\r\n\r\n'
	[ "$(sed '1,/^.$/d' reply | wc -c)" -eq 0 ] || atf_fail "a body"
	request "404 Not Found" 'GET / HTTP/1.1\r\n\r\n'
	request "404 Not Found" 'GET /metrics/.. HTTP/1.1\r\n\r\n'
	request "405 Method Not Allowed" 'POST /metrics HTTP/1.1\r\n\r\nx'
	grep -q "^Allow: GET, HEAD" reply || atf_fail "$(cat reply)"
	request "400 Bad Request" 'GET /metrics\r\n\r\n'
	request "400 Bad Request" 'GET /metrics SIP/2.0\r\n\r\n'
	request "400 Bad Request" '\r\n\r\n'
	request "400 Bad Request" 'GET /\0metrics HTTP/1.1\r\n\r\n'
	request "400 Bad Request" "GET /$(printf %0600d 0) HTTP/1.1\r\n\r\n"
	request "431 Request Header Fields Too Large" \
	    "GET /metrics HTTP/1.1\r\nX: $(printf %09000d 0)\r\n\r\n"
	# A client that has gone.
	atf_check -o empty $VALECTL --openmetrics=http < /dev/null
	printf 'GET /metr' | atf_check -o empty $VALECTL --openmetrics=http
	# SIGALRM ends the program.
	sleep 60 | { "$VALECTL" --openmetrics=http; echo $? > status; } &
	slow=$!
	wait_must "the end" [ -s status ]
	kill $slow
	atf_check -o inline:"142\n" cat status
	teardown
	request "503 Service Unavailable" 'GET /metrics HTTP/1.1\r\n\r\n'
	grep -q "^no valed at " reply || atf_fail "$(cat reply)"
	atf_check -s exit:69 -e match:"no valed at" $VALECTL --openmetrics
	atf_check -s exit:64 -e match:"not text or http" \
	    $VALECTL --openmetrics=xml
	atf_check -s exit:64 -e match:"-t and --openmetrics: one of them" \
	    $VALECTL -t vale0 --openmetrics
}

test_case prometheus "Prometheus's server scrapes valectl(8), which a listener \
starts for each connection" require.user root \
    require.progs "ip python3 socat unshare" timeout 900
prometheus_body()
{
	prometheus=$(prometheus_program prometheus) ||
	    atf_skip "no prometheus(1); see make deps"
	unshare -n true || atf_skip "network namespaces are not permitted"
	setup_valed -s $ADAPTER
	setup_ports vale0:a
	send 0 7
	# Only loopback is there.
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(atf_get_srcdir) \
	    VALECTL=$(cd "$(dirname "$VALECTL")" && pwd)/valectl \
	    unshare -n sh -c 'ip link set lo up && exec "$@"' sh \
	    python3 "$(atf_get_srcdir)/watch.py" scrape "$prometheus" ||
	    atf_fail "watch.py scrape"
	teardown
}
