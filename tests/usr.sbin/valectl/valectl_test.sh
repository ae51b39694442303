# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# valectl(8) with a valed, and ports that valed_ports opens.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"
. "$(atf_get_srcdir)/valed_ports.subr"

test_case list "Ports are listed with their places, as FreeBSD does"
list_body()
{
	setup vale0:a vale1:x vale0:b-c.d
	cat > expected <<-EOT
	vale0:a bridge_idx 0 port_idx 0
	vale0:b-c.d bridge_idx 0 port_idx 1
	vale1:x bridge_idx 1 port_idx 0
	EOT
	atf_check -o file:expected $VALECTL -l all
	atf_check -o inline:"bridge_idx: 1\nport_idx:   0\n" \
	    $VALECTL -l vale1:x
	atf_check -o inline:"bridge_idx: 0\nport_idx:   1\n" \
	    $VALECTL -l vale0:b-c.d
	atf_check -o inline:"tx_slots:   1024\nrx_slots:   1024\ntx_rings:   1\nrx_rings:   1\n" \
	    $VALECTL -g vale0:a
	atf_check -o inline:'{"bridge_idx": 1, "port_idx": 0}\n' \
	    $VALECTL -j -l vale1:x
	atf_check -o save:json $VALECTL --json
	atf_check -o inline:'["vale0:a", "vale0:b-c.d", "vale1:x"] [0, 0, 1]\n' \
	    python3 -c 'import json; p = json.load(open("json"))
names = [x["name"] for x in p]
print(json.dumps(names), json.dumps([x["bridge_idx"] for x in p]))'
	teardown
}

no_port()
{
	$VALECTL | grep "^vale7:y .* down "
}

test_case table "Without options there is a table: what each port is, and does" \
    require.progs python3
table_body()
{
	setup_valed -s 1,e1000,vale0:vm1,path=vm1.sock,mac=02:00:00:00:00:01 \
	    -s 2,e1000,vale7:y,path=y.sock,mac=02:00:00:00:00:02,control=/none
	setup_ports vale0:a vale1:x
	atf_check $VALECTL -o vale0:a rate=1500Kbit/s vlan=10
	atf_check $VALECTL -o vale1:x trunk=10,20-30 link=down
	send 0 7
	send 1 3
	wait_must "that the port of y is missing" no_port
	cat > expected <<-EOT
	PORT      KIND    ADDRESS           CLIENT LINK VLAN           RATE       TX RX DROP
	vale0:vm1 adapter 02:00:00:00:00:01 none   up   -              -           0  7    0
	vale0:a   program -                 -      up   10             1500Kbit/s  7  0    0
	vale1:x   program -                 -      down trunk:10,20-30 -           3  0    3
	vale7:y   adapter 02:00:00:00:00:02 none   down -              -           -  -    -
	EOT
	atf_check -o file:expected $VALECTL
	# Many frames, and a client.
	send 0 123449
	atf_check -o match:"^vale0:a .* 123[.]5K +0 +[0-9.]+K?$" \
	    -o match:"^vale0:vm1 adapter 02:00:00:00:00:01 [0-9]+s +up " \
	    env PYTHONPATH=$(atf_get_srcdir) python3 -B -c 'import subprocess
import sys
from vfu_client import *
with Driver("vm1.sock"):
    sys.exit(subprocess.run(sys.argv[1]).returncode)' "$VALECTL"
	teardown
}

test_case counters "Counters of a port and of a switch, in text and JSON"
counters_body()
{
	setup vale0:a vale0:b vale1:c
	send 0 7
	atf_check -o match:"^vale0:a tx_frames 7$" \
	    -o match:"^vale0:a tx_flooded 7$" -o not-match:"vale0:b" \
	    $VALECTL -k vale0:a
	atf_check -o match:"^vale0:b rx_frames 7$" -o match:"^vale0:a " \
	    -o not-match:"vale1" $VALECTL -k vale0
	atf_check -o save:json $VALECTL -j -k vale0
	atf_check -o inline:"7 7 7\n" python3 -c 'import json
p = json.load(open("json"))
print(p["vale0:a"]["tx_frames"], p["vale0:b"]["rx_frames"], 
    p["vale0:b"]["rx_bytes"] // 60)'
	teardown
}

no_addrs()
{
	[ -z "$($VALECTL -t vale0)" ]
}

# counts PORT NAME N: waits until the port's counter has this value.  Frames are
# counted a little later than consumed.
counts()
{
	wait_until "$*" has_counted "$@" || atf_fail "$*: $($VALECTL -k "$1" |
	    grep " $2 ")"
}

has_counted()
{
	$VALECTL -k "$1" | grep -q "^$1 $2 $3\$"
}

test_case addresses "Addresses are listed with their ports; settings apply"
addresses_body()
{
	setup vale0:a vale0:b
	atf_check $VALECTL -t vale0
	send 1 1
	atf_check -o match:"^02:00:00:00:00:01 vale0:b age [0-9]+s$" \
	    $VALECTL -t vale0
	atf_check -o match:'^\[\{"address":"02:00:00:00:00:01","port":"vale0:b","age":[0-9]+\}\]$' \
	    $VALECTL -j -t vale0
	atf_check $VALECTL -o vale0 ageing=1
	wait_must "the address expires" no_addrs
	atf_check $VALECTL -o vale0:a limit=1
	atf_check $VALECTL -o vale0:a limit=0
	teardown
}

test_case vlans "Addresses are listed with their VLAN; a frame of another is \
counted"
vlans_body()
{
	setup vale0:a vale0:b
	atf_check $VALECTL -o vale0:a vlan=10
	atf_check $VALECTL -o vale0:b vlan=10
	send 1 1
	atf_check \
	    -o match:"^02:00:00:00:00:01 vale0:b vlan 10 age [0-9]+s$" \
	    $VALECTL -t vale0
	atf_check -o match:'"age":[0-9]+,"vlan":10\}\]$' $VALECTL -j -t vale0
	atf_check $VALECTL -o vale0:b trunk=20
	send 1 3
	counts vale0:b tx_drop_vlan 3
	atf_check $VALECTL -o vale0:b trunk=no source=02:00:00:00:00:07
	send 1 2
	counts vale0:b tx_drop_source 2
	teardown
}

has_received()
{
	local n

	n=$($outside cat /proc/net/dev | sed -n 's/^ *w0: *[0-9]* *\([0-9]*\).*/\1/p')
	echo "w0: $n"
	[ "$n" -ge "$1" ]
}

test_case attach "An interface is opened where valectl runs, and attached  and \
detached while valed runs" require.user root require.progs "ip nsenter unshare"
attach_body()
{
	unshare -n true || atf_skip "network namespaces are not permitted"
	unshare -n sh -c 'ip link add h0 type veth peer name w0 &&
	    ip link set h0 up && ip link set w0 up && touch up &&
	    exec sleep 100000' &
	ns=$!
	# Run a command in the namespace of the interface.
	outside="nsenter -n -t $ns"
	wait_must "the interfaces" [ -e up ]
	setup vale0:a
	atf_check $outside $VALECTL -a vale0:h0
	atf_check -o match:"^vale0:h0 bridge_idx 0 port_idx 1$" \
	    $VALECTL -l all
	atf_check -o match:"^vale0:h0 +interface +- +- +up +- +- +[0-9]+ " $VALECTL
	wait_must "a frame outside" sends_out
	atf_check -s exit:65 -e match:"^valectl: vale0:h0: " \
	    $outside $VALECTL -a vale0:h0
	atf_check -s exit:69 -e match:"vale0:none: " \
	    $outside $VALECTL -a vale0:none
	atf_check -s exit:65 -e match:"vale0:a: it is not an attached" \
	    $VALECTL -d vale0:a
	atf_check $VALECTL -d vale0:h0
	atf_check -o not-match:"h0" $VALECTL
	atf_check $outside $VALECTL -a vale0:h0,kind=packet
	atf_check $VALECTL -d vale0:h0
	atf_check -s exit:69 -e match:"^valectl: vale0:h0: h0: " \
	    $outside $VALECTL -a vale0:h0,kind=xdp
	$outside python3 "$(atf_get_srcdir)/capture.py" plain h0
	xdp && {
		atf_check $outside $VALECTL -a vale0:h0,kind=xdp
		wait_must "a frame outside" sends_out
		atf_check $VALECTL -d vale0:h0
		atf_check -o not-match:prog/xdp $outside ip link show h0
	}
	# What was changed on the interface has ended.
	atf_check -o not-match:PROMISC $outside ip link show h0
	kill $ns
	wait $ns
	teardown
}

# Whether the kernel has AF_XDP.
xdp()
{
	python3 -c 'import socket; socket.socket(44, socket.SOCK_RAW)'
}

# A frame is flooded to the interface as soon as that has a carrier.
sends_out()
{
	send 0 1
	has_received 1
}

test_case settings "Settings take effect, and are shown as they are set"
settings_body()
{
	setup vale0:a vale0:b vale0:c
	atf_check -o inline:"ageing=300\nbatch=1024\nreserved=on\n" \
	    $VALECTL -o vale0
	cat > default <<-EOT
	ip=any
	limit=0
	link=up
	mirror=no
	private=off
	rate=0
	source=any
	trunk=no
	native=0
	vlan=0
	weight=1
	EOT
	atf_check -o file:default $VALECTL -o vale0:a
	cat > changed <<-EOT
	ip=192.0.2.5,2001:db8::/64
	limit=3
	link=up
	mirror=vale0:b/t
	private=on
	rate=1000000pkt/s,burst=50000
	source=02:00:00:00:00:00
	trunk=10,20-30
	native=5
	vlan=0
	weight=7
	EOT
	atf_check $VALECTL -o vale0:a $(cat changed)
	atf_check -o file:changed $VALECTL -o vale0:a
	atf_check -o inline:'3 vale0:b/t True 7\n' sh -c "$VALECTL -j -o vale0:a |
	    python3 -c 'import json, sys
s = json.load(sys.stdin)
print(s[\"limit\"], s[\"mirror\"], s[\"private\"], s[\"weight\"])'"
	atf_check -o file:default $VALECTL -o vale0:b
	atf_check $VALECTL -o vale0 ageing=17 batch=8 reserved=off
	atf_check -o inline:'{"ageing":17,"batch":8,"reserved":false}\n' $VALECTL -j -o vale0

	atf_check $VALECTL -o vale0 reserved=on
	atf_check $VALECTL -o vale0:a trunk=no
	# All at once, in any order, or none.
	atf_check -o inline:"native=5\n" $VALECTL -o vale0:a native=5 \
	    trunk=5-9 native
	atf_check -s exit:65 -e match:"weight must be" \
	    $VALECTL -o vale0:a trunk=no weight=0
	atf_check -o inline:"trunk=5-9\n" $VALECTL -o vale0:a trunk
	atf_check $VALECTL -o vale0:a trunk=no

	# Port a gets b's frames once as a port of the switch, and once as a
	# mirror; c gets them once; a private port does not get them.
	send 1 10
	counts vale0:a rx_frames 20
	counts vale0:c rx_frames 10
	counts vale0:b tx_mirrored 10
	atf_check $VALECTL -o vale0:a mirror=no
	atf_check $VALECTL -o vale0:b private=on
	send 1 5
	counts vale0:c rx_frames 15
	counts vale0:a rx_frames 20

	# All back.
	atf_check $VALECTL -o vale0:a $(cat default)
	atf_check -o file:default $VALECTL -o vale0:a
	atf_check $VALECTL -o vale0:a mirror=vale0:c/r
	atf_check -o match:"^mirror=vale0:c/r$" $VALECTL -o vale0:a
	atf_check -e inline:"valectl: vale0:a: there is no port vale0:q yet\n" \
	    $VALECTL -o vale0:a mirror=vale0:q
	atf_check $VALECTL -o vale0:a mirror=vale0:c
	atf_check -o match:"^mirror=vale0:c$" $VALECTL -o vale0:a
	teardown
}

test_case reload "valed's files are read again: it is done when valectl exits, \
or the first error is printed"
reload_body()
{
	cat > valed.conf <<-EOT
	pci.0.1.0.device=e1000
	pci.0.1.0.backend=vale0:vm1
	pci.0.1.0.path=vm1.sock
	EOT
	setup_valed -k valed.conf
	atf_check $VALECTL reload
	sed 's/vm1/vm2/; s/0\.1\.0/0.2.0/' valed.conf > more
	cat more >> valed.conf
	atf_check $VALECTL reload
	atf_check -o match:"^vale0:vm2 " $VALECTL
	cp valed.conf good
	printf 'x\ny\n' >> valed.conf
	atf_check -s exit:1 \
	    -e inline:"valectl: valed.conf:7: not name=value\n" $VALECTL reload
	sed '1,3d' good > valed.conf
	atf_check $VALECTL -c control reload
	atf_check -o not-match:"^vale0:vm1 " -o match:"^vale0:vm2 " $VALECTL
	# What others keep is an error, too; the rest is changed.
	mkfifo orders
	"$(atf_get_srcdir)/valed_ports" vale0:vm3 < orders > replies &
	ports=$!
	exec 3> orders
	wait_must "the program's port" sh -c "$VALECTL -l vale0:vm3"
	sed 's/vm2/vm3/; s/0\.2\.0/0.3.0/' more >> valed.conf
	sed 's/vm2/vm4/; s/0\.2\.0/0.4.0/' more >> valed.conf
	atf_check -s exit:1 -e match:"^valectl: valed.conf:5: vale0:vm3: the \
port is open already" $VALECTL reload
	atf_check -o match:"^vale0:vm4 " $VALECTL
	exec 3>&-
	wait $ports || atf_fail "valed_ports: $?"
	ports=
	rm valed.conf
	atf_check -s exit:1 -e inline:"valectl: -k valed.conf: No such file or \
directory\n" $VALECTL reload
	atf_check -o match:"^vale0:vm4 " $VALECTL
	teardown
	atf_check -s exit:69 -e match:"no valed at" $VALECTL reload
}

test_case save "What valectl has changed is in the file, and in force after a \
restart; all other lines stay"
save_body()
{
	cat > valed.conf <<-EOT
	# Comments stay,
	  pci.0.1.0.device = e1000
	pci.0.1.0.backend=vale0:g
	pci.0.1.0.path=g.sock
	pci.0.1.0.rate=1Mbit/s
	# and so does what is not changed.
	pci.0.1.0.weight = 7

	port.vale0:a.limit=3
	port.vale0:g.limit=8
	port.vale0:gone.limit=4
	switch.vale0.ageing=60
	EOT
	printf '# no newline' >> valed.conf
	cp valed.conf before
	chmod 640 valed.conf
	[ "$(id -u)" -ne 0 ] || chown nobody:nogroup valed.conf
	owner=$(stat -c %U:%G valed.conf)
	ln -s valed.conf link
	setup_valed -k valed.conf -s 2,e1000,vale0:s,path=s.sock
	mkfifo orders replies
	"$(atf_get_srcdir)/valed_ports" vale0:a vale1:b < orders > replies &
	ports=$!
	exec 3> orders 4< replies
	reply
	# Nothing has changed.
	inode=$(stat -c %i valed.conf)
	atf_check $VALECTL --save link
	atf_check_equal $inode $(stat -c %i valed.conf)
	atf_check cmp before valed.conf
	atf_check $VALECTL -o vale0 ageing=61
	atf_check $VALECTL -o vale1 reserved=off
	atf_check $VALECTL -o vale0:a limit=0 private=on
	atf_check $VALECTL -o vale0:g rate=2Mbit/s,burst=100000 private=on \
	    vlan=10 source=own limit=9
	atf_check $VALECTL -o vale0:s limit=2
	atf_check $VALECTL -o vale1:b rate=5Kpkt/s
	atf_check -o save:printed $VALECTL --save link
	cat > expected <<-EOT
	# Comments stay,
	  pci.0.1.0.device = e1000
	pci.0.1.0.backend=vale0:g
	pci.0.1.0.vlan=10
	pci.0.1.0.source=own
	pci.0.1.0.private=on
	pci.0.1.0.path=g.sock
	pci.0.1.0.rate=2000000bit/s,burst=100000
	# and so does what is not changed.
	pci.0.1.0.weight = 7

	port.vale0:a.limit=0
	port.vale0:g.limit=9
	port.vale0:gone.limit=4
	switch.vale0.ageing=61
	# no newline
	port.vale0:s.limit=2
	port.vale0:a.private=on
	switch.vale1.reserved=off
	port.vale1:b.rate=5000pkt/s,burst=2500
	EOT
	sort expected > want
	sort valed.conf > got
	atf_check diff want got
	atf_check -o ignore grep -n "^# no newline$" valed.conf
	atf_check -o inline:"$owner 640\n" stat -c "%U:%G %a" valed.conf
	[ -h link ] || atf_fail "the link was replaced"
	sort printed > want
	diff before valed.conf | sed -n 's/^> //p' | grep -v "^#" | sort > got
	atf_check diff want got
	atf_check $VALECTL --save valed.conf
	# It says what is in force.
	atf_check $VALECTL reload
	for p in vale0 vale0:a vale0:g vale0:s vale1 vale1:b; do
		$VALECTL -o $p
	done > was
	teardown
	ports=
	rm orders replies
	setup_valed -k valed.conf -s 2,e1000,vale0:s,path=s.sock,limit=1
	mkfifo orders replies
	"$(atf_get_srcdir)/valed_ports" vale0:a vale1:b < orders > replies &
	ports=$!
	exec 3> orders 4< replies
	reply
	for p in vale0 vale0:a vale0:g vale0:s vale1 vale1:b; do
		$VALECTL -o $p
	done > is
	atf_check diff was is
	# A file that cannot be read or written stays as it is.
	atf_check -s exit:66 -e match:"none: No such file" $VALECTL --save none
	atf_check $VALECTL -o vale0:a limit=5
	atf_check -s exit:64 -e match:"the file is missing" $VALECTL --save
	atf_check -s exit:64 -e match:"--save and -t: one of them" $VALECTL --save f -t vale0
	atf_check -s exit:64 -e match:"-t and --save: one of them" $VALECTL -t vale0 --save f
	atf_check -s exit:64 -e match:"unexpected" $VALECTL --save f x
	mkdir full
	cp valed.conf full
	if mount -t tmpfs -o size=4k tmpfs full 2>/dev/null; then
		head -c 3000 valed.conf > full/valed.conf
		atf_check -s exit:74 -o ignore -e match:"No space" \
		    $VALECTL --save full/valed.conf
		atf_check cmp -n 100 valed.conf full/valed.conf
		atf_check -o inline:"valed.conf\n" ls full
		umount full
	fi
	teardown
}

test_case live "Rates: the busiest port first, as often as asked for"
live_body()
{
	setup vale0:a vale0:b vale0:c
	# Fill the rings of the other two, so that only b has a rate.
	send 1 2000
	$VALECTL -j -s vale0 1 2 > reports &
	live=$!
	# Until it has the first report, port b keeps sending.
	while [ ! -s reports ]; do
		send 1 100
	done
	wait $live || atf_fail "valectl: $?"
	atf_check -o inline:"2 True vale0:b\n" python3 -c 'import json
r = [json.loads(x) for x in open("reports")]
top = r[0][0]
print(len(r), top["tx_frames"] > 0 and top["rx_frames"] == 0, top["name"])'
	atf_check -o match:"^port +tx frame/s" -o match:"^vale0:b " \
	    $VALECTL -s all 1 1
	teardown
}

test_case errors "What is invalid is refused in one line, and valed goes on"
errors_body()
{
	long=vale0:$(printf %060d 0)

	setup vale0:a
	while IFS='|' read -r status message args; do
		[ -n "$status" ] || continue
		atf_check -s exit:$status -e match:"$message" \
		    $VALECTL $args
		[ "$($VALECTL $args 2>&1 | wc -l)" -eq 1 ] ||
		    atf_fail "$args: not one line"
	done <<-EOT
	65|vale0:z: there is no such port|-l vale0:z
	65|vale0:z: there is no such port|-k vale0:z
	65|vale7: there is no such switch|-k vale7
	65|vale7: there is no such switch|-o vale7 ageing=1
	65|vale0:z: there is no such port|-o vale0:z limit=1
	65|limit must be 0 to 5120|-o vale0:a limit=5121
	65|ageing time must be 0 to 1000000|-o vale0 ageing=1000001
	64|limit=x: the value is not a number|-o vale0:a limit=x
	64|limits: no such setting of a port, which has ip, limit, link, |-o vale0:a limits
	64|x: not kind= and a kind|-a vale0:eth0,x
	64|eth0: it does not begin with|-a eth0
	64|vlan: no such setting of a switch, which has ageing, batch, reserved|-o vale0 vlan
	64|rate=7: not a number up to 1000G|-o vale0:a rate=7
	64|burst=0: not burst= and a number|-o vale0:a rate=7Mbit/s,burst=0
	64|x=1: not burst= and a number|-o vale0:a rate=7Mbit/s,x=1
	65|weight must be 1 to 100|-o vale0:a weight=101
	65|vale7: there is no such switch|-o vale7
	65|vale0:z: there is no such port|-o vale0:z
	64|private=maybe: not on or off|-o vale0:a private=maybe
	64|mirror=vale0:b/x: not the name of a port|-o vale0:a mirror=vale0:b/x
	64|mirror=$long: not the name of a port|-o vale0:a mirror=$long
	65|can mirror another port of the same switch|-o vale0:a mirror=vale1:b
	64|y: no such setting|-o vale0:a limit=1 y=2
	64|unexpected argument|-t vale0 x
	64|vale0: unexpected argument: see valectl -h; without arguments, the ports|vale0
	64|unknown option --hlep: see valectl -h|--hlep
	64|unknown option -Z|--json -Zj
	64|--json=x: the option takes no value|--json=x
	64|--events=x: the option takes no value|--events=x
	64|x: unexpected argument|reload x
	64|reload: unexpected argument|-t vale0 reload
	64|0: not a number from 1|-s vale0 0
	64|x: not a number from 1|-s vale0 1 x
	64|-l and -t: one of them|-l vale0:a -t vale0
	64|-t: the name is missing|-t
	64|more than 63 characters|-l $long
	69|no valed at none|-c none -l vale0:a
	EOT
	# One setting is shown.
	atf_check -o inline:"limit=0\nvlan=0\n" \
	    $VALECTL -o vale0:a limit=0 limit vlan
	atf_check -o inline:'{"private":false}\n' \
	    $VALECTL -j -o vale0:a private
	atf_check -o match:"vale0:a" $VALECTL
	teardown
}
