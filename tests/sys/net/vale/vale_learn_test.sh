# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# vale_learn(4) in the kernel, with ports of the kernel's switch.  vale_traffic
# does the operations of its arguments in order, and prints what each port
# received; "count" prints a port's counters meanwhile.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"

oid=dev.netmap.vale_learn

# Load the module, which manages valet0 then.
begin()
{
	[ "$(uname -s)" = FreeBSD ] ||
	    atf_skip "vale_learn runs on FreeBSD"
	[ -c /dev/netmap ] || atf_skip "the kernel has no netmap"
	if ! kldstat -q -m vale_learn; then
		kldload vale_learn ||
		    atf_skip "there is no vale_learn.ko to load"
		: > loaded
	fi
	[ -z "$(sysctl -n $oid.attach)" ] ||
	    atf_skip "$oid.attach is in use"
	traffic="$(atf_get_srcdir)/vale_traffic"
	cat > count <<-'EOF'
		port=$1; shift
		line="$(sysctl -n dev.netmap.vale_learn.valet0.ports |
		    grep "^valet0:$port ") "
		out=$port
		for c; do
			rest=${line#* $c }
			[ "$rest" = "$line" ] && rest=none
			out="$out ${rest%% *}"
		done
		echo "$out"
	EOF
	cat > addresses <<-'EOF'
		list=$(sysctl -n dev.netmap.vale_learn.valet0.addresses)
		for n in 1 2 3 4 5 6 7 8 9; do
			echo "$list" | sed -n \
			    "s/^\(02:00:00:00:00:0$n [^ ]*\) .*/\1/p"
		done
	EOF
	set_ok attach valet0
}

# Restore the module's state.  If it is unloaded, it must not leak memory.
end()
{
	kldstat -q -m vale_learn 2> /dev/null || return 0
	if [ ! -e loaded ]; then
		sysctl -n $oid.attach | grep -q '^valet0' &&
		    sysctl $oid.attach= > /dev/null
		return 0
	fi
	kldunload vale_learn
	! dmesg | grep "vale_learn leaked"
}

set_ok()
{
	atf_check -o ignore sysctl "$oid.$1=$2"
}

# A value is refused, and the old one stays.
set_bad()
{
	before=$(sysctl -n "$oid.$1")
	atf_check -s not-exit:0 -o ignore -e match:"Invalid argument" \
	    sysctl "$oid.$1=$2"
	[ "$(sysctl -n "$oid.$1")" = "$before" ] ||
	    atf_fail "$1: $before became $(sysctl -n "$oid.$1")"
}

# talk PORT... -- OPERATION...: standard input is the expected output.
talk()
{
	cat > expected
	atf_check -o file:expected "$traffic" "$@"
}

case_with()
{
	test_case -c end "$1" "$2" require.user root
}

case_with attach "Switches are attached and detached, with ports or without;
an invalid name or one too many changes nothing"
attach_body()
{
	begin
	for bad in "val0" "em0" "valet0:" "valet0:a" "vale-1" "vale.1" \
	    "valefortysixteen" "vale0 vale0x/" \
	    "vale0123456789abcdef0123456789abcdef"; do
		set_bad attach "$bad"
	done
	atf_check -o inline:"valet0\n" sysctl -n $oid.attach
	set_ok attach "valet1, valet0 valet0"
	atf_check -o inline:"300\n" sysctl -n $oid.valet1.ageing
	atf_check -o inline:"valet0 valet1\n" sysctl -n $oid.attach
	set_ok attach valet0
	atf_check -s not-exit:0 -o ignore -e ignore sysctl $oid.valet1.ageing

	names="valet0"
	for n in $(seq 1 $(($(sysctl -n dev.netmap.max_bridges) + 1))); do
		names="$names valetx$n"
	done
	atf_check -s not-exit:0 -o ignore -e match:"No space left" \
	    sysctl "$oid.attach=$names"
	atf_check -o inline:"valet0\n" sysctl -n $oid.attach

	# A switch with ports: not attached, attached, not attached.
	talk valet1:a valet1:b valet1:c -- \
	    send,0,1,0 recv send,1,2,1 recv \
	    "run,sysctl $oid.attach=valet1 >/dev/null" \
	    send,1,2,1 recv send,0,1,2 recv \
	    "run,sysctl -n $oid.valet1.addresses | grep -c valet1" \
	    "run,sysctl $oid.attach= >/dev/null" \
	    send,1,2,1 recv send,0,1,2 recv send,1,2,1 recv <<-EOF
		recv 0 1 1
		recv 1 0 0
		recv 1 0 1
		recv 0 1 0
		2
		recv 1 0 1
		recv 0 1 0
		recv 1 0 0
	EOF
	atf_check -s ignore valectl
}

case_with values "A value out of range is refused, and the old one stays"
values_body()
{
	begin
	set_ok valet0.ageing 0
	set_ok valet0.ageing 1000000
	for bad in 1000001 4294967295 -1; do
		set_bad valet0.ageing $bad
	done
	set_ok valet0.limit "16 up*=0,vm?=5120"
	for bad in x 5121 -1 "vm=" "=4" "vm=4x" "4 vm=99999999999999999999" \
	    "$(printf 'vm\001=4')" "$(printf 'a%0767d=1' 0)"; do
		set_bad valet0.limit "$bad"
	done
	long=$(seq -s, 1 2000)
	for rule in private mirror; do
		set_ok valet0.$rule "vm*, !vm1 up[0-9]"
		for bad in "!" "vm1 !" "$(printf 'vm\177')" "$long" \
		    "$(printf 'a%0767d' 0)"; do
			set_bad valet0.$rule "$bad"
		done
		set_ok valet0.$rule ""
	done
	set_bad valet0.limit "$long"
	set_ok valet0.rate "1Gbit/s vm*=100Kpkt/s:64,up=0"
	for bad in x 5 -1bit/s 1001Gbit/s "vm=" "=1bit/s" "vm=1bit/s:0" \
	    "vm=1bit/s:513M" "1bit/s vm=1.5bit/s" "$long"; do
		set_bad valet0.rate "$bad"
	done
}

case_with values_rules "A list of VLANs or of a guard that is invalid is
refused, and the old one stays"
values_rules_body()
{
	begin
	set_ok valet0.vlan "10 vm*=4094,up=0"
	for bad in x 4095 -1 "vm=" "=4" "vm=1+2" "10 vm=1-2"; do
		set_bad valet0.vlan "$bad"
	done
	set_ok valet0.trunk "up=10+20-30 em?=all x=no"
	for bad in "up=" "up=0" "up=10+" "up=30-20" "up=10 x=4095"; do
		set_bad valet0.trunk "$bad"
	done
	set_ok valet0.native "up=5"
	set_bad valet0.native "up=4095"
	set_ok valet0.source "vm1=02:00:00:00:00:01+02:00:00:00:00:02 up=any"
	for bad in own "vm1=01:00:00:00:00:01" "vm1=02:00:00:00:00:01+" \
	    "vm1=02-00-00-00-00-01"; do
		set_bad valet0.source "$bad"
	done
	set_ok valet0.ip "vm1=192.0.2.5+2001:db8::/64"
	for bad in "vm1=192.0.2.5/24" "vm1=x" "vm1=192.0.2.5+"; do
		set_bad valet0.ip "$bad"
	done
	set_ok valet0.reserved 0
	for bad in 2 -1; do
		set_bad valet0.reserved $bad
	done
	set_ok valet0.reserved 1
}

case_with learn "Stations are learned, found, listed and counted"
learn_body()
{
	begin
	talk valet0:a valet0:b valet0:c -- \
	    send,0,1,0 recv send,1,2,1,10,1514 recv isend,0,1,2,3 recv \
	    fsend,0,1,2,1,1000,14 show,1 \
	    "run,sh count a frames bytes flooded learned moved addresses" \
	    "run,sh count b frames bytes flooded learned moved addresses" \
	    "run,sh count c frames bytes flooded learned moved addresses" \
	    send,2,1,0 recv send,1,2,1 recv "run,sh count c moved learned" \
	    "run,sh addresses" <<-EOF
		recv 0 1 1
		recv 10 0 0
		recv 0 3 0
		show 1>2:1000
		a 5 1240 1 1 0 1
		b 10 15140 0 1 0 1
		c 0 0 0 0 0 0
		recv 1 1 0
		recv 0 0 1
		c 1 0
		02:00:00:00:00:01 valet0:c
		02:00:00:00:00:02 valet0:b
	EOF
}

case_with drops "Each reason to drop has its counter"
drops_body()
{
	begin
	talk valet0:a valet0:b -- \
	    send,0,1,0,2,13 lost,0 fsend,0,1,0,1,60,13 recv \
	    send,0,1,0 send,0,3,1,4 recv \
	    "run,sh count a frames flooded drop_runt drop_fault drop_self" \
	    <<-EOF
		recv 0 0
		recv 0 1
		a 9 1 3 1 4
	EOF
	atf_check -o inline:"0\n" sysctl -n $oid.valet0.drop_nomem
}

# The fifth frame takes the last byte of 241, and owes 59, for 472 s.
case_with rate "Frames over the rate of their port are dropped and counted"
rate_body()
{
	begin
	set_ok valet0.rate "a=1bit/s:241 b=0"
	talk valet0:a valet0:b -- \
	    send,0,1,0,20 recv send,1,2,0,20 recv \
	    "run,sh count a rate burst frames flooded drop_rate" \
	    "run,sh count b frames flooded drop_rate" <<-EOF
		recv 0 5
		recv 20 0
		a 1bit/s 241 20 5 15
		b 20 20 0
	EOF
}

case_with shares "Two senders to a ring that is full get 40 to 60 % each"
shares_body()
{
	local a b i ops="send,2,3,0 recv"

	begin
	# The second "recv" returns the slots of the first.
	for i in $(seq 12); do
		ops="$ops send,0,1,3,1000 send,1,2,3,1000 recv recv"
	done
	"$traffic" valet0:a valet0:b valet0:c -- $ops \
	    "run,sh count a frames drop_share" \
	    "run,sh count b frames drop_share" > out || atf_fail "vale_traffic"
	set -- $(grep '^[ab] ' out)
	[ "$1 $2 $4 $5" = "a 12000 b 12000" ] || atf_fail "$*"
	a=$((100 * ($2 - $3) / ($2 - $3 + $5 - $6)))
	[ $a -ge 40 -a $a -le 60 ] || atf_fail "$*: $a %"
}

case_with ageing "An address expires"
ageing_body()
{
	begin
	set_ok valet0.ageing 1
	talk valet0:a valet0:b valet0:c -- \
	    send,0,1,0 recv send,1,2,1 recv "run,sleep 3" send,1,2,1 recv \
	    "run,sh addresses" <<-EOF
		recv 0 1 1
		recv 1 0 0
		recv 1 0 1
		02:00:00:00:00:02 valet0:b
	EOF
}

case_with private "Private ports reach all ports except private ones,
unicast or flooded, whether the list or the port is first"
private_body()
{
	begin
	set_ok valet0.private "vm*"
	talk valet0:vm1 valet0:vm2 valet0:up1 valet0:up2 -- \
	    send,0,1,0 recv send,1,2,9 recv send,2,3,0 recv \
	    send,0,1,2 recv send,0,1,3 recv send,2,3,1 recv \
	    open,valet0:vm3 send,0,1,0 recv send,4,5,1 recv \
	    "run,sh count vm1 private flooded copies drop_private drop_copy" \
	    "run,sh count up1 private flooded copies drop_private" \
	    "run,sysctl $oid.valet0.private='* !up1 !vm2' > /dev/null" \
	    send,3,4,0 recv send,0,1,2 recv \
	    "run,sh count up2 private" "run,sh count vm2 private" <<-EOF
		recv 0 0 1 1
		recv 0 0 1 1
		recv 1 1 0 1
		recv 0 0 0 0
		recv 0 0 1 0
		recv 1 0 0 0
		recv 0 0 1 1 0
		recv 0 0 0 0 0
		vm1 1 2 4 1 0
		up1 0 1 0 0
		recv 0 1 1 0 0
		recv 0 1 0 0 0
		up2 1
		vm2 0
	EOF
}

case_with mirror "A mirror port gets the frames of the others in order, and
cannot send"
mirror_body()
{
	begin
	set_ok valet0.mirror "mon*"
	talk valet0:a valet0:b valet0:c valet0:mon -- \
	    send,0,1,0 send,1,2,1,2,100 fsend,0,1,2,1,1500,14 isend,2,3,1 \
	    show,3 recv send,3,9,1,5 recv send,0,1,9 recv \
	    "run,sh count mon mirror frames drop_mirror addresses" \
	    "run,sh count b frames copies drop_copy" "run,sh addresses" \
	    "run,sysctl $oid.valet0.mirror= > /dev/null" \
	    send,1,2,1 recv send,3,9,1 recv <<-EOF
		show 1>0:60 2>1:100 2>1:100 1>2:1500 3>1:60
		recv 3 2 1 0
		recv 0 0 0 0
		recv 0 1 1 1
		mon 1 5 5 0
		b 2 2 0
		02:00:00:00:00:01 valet0:a
		02:00:00:00:00:02 valet0:b
		02:00:00:00:00:03 valet0:c
		recv 1 0 0 0
		recv 1 0 0 0
	EOF
	# A mirror port with a full ring loses its copies only.
	set_ok valet0.mirror "mon*"
	talk valet0:a valet0:b valet0:mon -- \
	    send,0,1,0 send,1,2,1,1000 recv \
	    send,1,2,1,1000 show,1 send,1,2,1,1000 \
	    "run,sh count b frames copies drop_copy" recv <<-EOF
		recv 1000 1 1001
		show
		b 3000 2023 977
		recv 1023 0 1023
	EOF
}

case_with header "Copies are converted between ports with and without a
virtio-net header"
header_body()
{
	begin
	set_ok valet0.mirror "mon*"
	talk valet0:with valet0:without valet0:mon valet0:mon12 -- \
	    header,0,12 header,3,12 \
	    send,0,1,0,1,72 send,1,2,1,1,60 fsend,0,1,2,1,112,12 \
	    show,0 show,1 show,2 show,3 \
	    "run,sh count with frames bytes copies drop_copy" \
	    "run,sysctl $oid.valet0.mirror= > /dev/null" \
	    "run,sysctl $oid.valet0.private=with* > /dev/null" \
	    fsend,0,1,0,1,112,12 show,1 show,2 show,3 \
	    "run,sh count with flooded copies drop_copy" <<-EOF
		show 2>1:72
		show 1>0:60 1>2:100
		show 1>0:60 2>1:60 1>2:100
		show 1>0:72 2>1:72 1>2:112
		with 2 160 5 0
		show
		show 1>0:100
		show 1>0:112
		with 2 7 0
	EOF
}

case_with vlan "Frames stay in their VLAN, and each port gets them with a tag
or without; addresses are learned in each VLAN"
vlan_body()
{
	begin
	set_ok valet0.vlan "a=10 b=10 c=20"
	set_ok valet0.trunk "up=10+20-30"
	set_ok valet0.native "up=5"
	talk valet0:a valet0:b valet0:c valet0:up valet0:any -- \
	    send,0,1,0 fsend,0,1,0,1,1514,14 isend,0,1,0 \
	    show,1 show,2 show,3 show,4 \
	    tag,3,10 send,3,2,1,1,64 tag,3,20 send,3,2,9 tag,3,0 send,3,3,0 \
	    show,0 show,1 show,2 show,4 \
	    tag,0,10 send,0,1,0 tag,3,40 send,3,3,0 recv \
	    "run,sh addresses" \
	    "run,sysctl -n $oid.valet0.addresses | grep -c ' vlan 20'" \
	    "run,sh count a vlan trunk native drop_vlan frames flooded" \
	    "run,sh count up vlan trunk native drop_vlan copies" \
	    "run,sysctl $oid.valet0.vlan= $oid.valet0.trunk= > /dev/null" \
	    send,0,1,0,1,64 show,2 show,3 <<-EOF
		show 1>0:60 1>0:1514 1>0:60
		show
		show 1>0@10:64 1>0@10:1518 1>0@10:64
		show 1>0@10:64 1>0@10:1518 1>0@10:64
		show 2>1:60
		show
		show 2>9:56
		show 2>9@20:60 3>0@5:64
		recv 0 0 0 0 0
		02:00:00:00:00:01 valet0:a
		02:00:00:00:00:02 valet0:up
		02:00:00:00:00:02 valet0:up
		02:00:00:00:00:03 valet0:up
		1
		a 10 0 0 1 4 3
		up 0 12 5 1 4
		show 1>0@10:64
		show 1>0@10:64
	EOF
}

case_with vlan_header "With a virtio-net header the tag is put behind it;
frames of several slots, and ports with another header or none, get it"
vlan_header_body()
{
	begin
	set_ok valet0.vlan "with=10"
	talk valet0:with valet0:without valet0:h12 -- \
	    header,0,12 header,2,12 \
	    send,0,1,0,1,72 fsend,0,1,0,1,112,12 fsend,0,1,0,2,1984,1000 \
	    show,1 show,2 \
	    tag,1,10 send,1,2,1,1,64 tag,2,10 send,2,3,1,1,76 show,0 \
	    "run,sh count with copies drop_copy drop_header" <<-EOF
		show 1>0@10:64 1>0@10:104 1>0@10:1976 1>0@10:1976
		show 1>0@10:76 1>0@10:116 1>0@10:1988 1>0@10:1988
		show 2>1:72 3>1:72
		with 8 0 0
	EOF
}

case_with guard "A port cannot send from another's address"
guard_body()
{
	begin
	set_ok valet0.source "a=02:00:00:00:00:01+02:00:00:00:00:02"
	talk valet0:a valet0:b -- \
	    send,0,1,0 send,0,2,0 send,0,3,0,5 isend,0,4,0 \
	    fsend,0,1,0,1,1984,1000 show,1 \
	    "run,sysctl $oid.valet0.ip=a=192.0.2.5 > /dev/null" \
	    send,0,1,0 arp,0,1,5 arp,0,1,6 arp,0,1,0 show,1 send,1,3,0 recv \
	    "run,sh count a source ip frames drop_source drop_ip addresses" \
	    "run,sh count b source ip drop_source" \
	    "run,sysctl $oid.valet0.source= $oid.valet0.ip= > /dev/null" \
	    send,0,3,0 arp,0,1,6 recv <<-EOF
		show 1>0:60 2>0:60 1>0:1984
		show 1>0:60
		recv 1 0
		a 2 1 13 6 3 2
		b 0 0 0
		recv 0 2
	EOF
}

case_with reserved "Frames to 01:80:c2:00:00:00 to 0f pass, or are \
dropped with reserved=0"
reserved_body()
{
	begin
	talk valet0:a valet0:b -- \
	    link,0,0 link,0,15 link,0,16 recv \
	    "run,sysctl $oid.valet0.reserved=0 > /dev/null" \
	    link,0,0 link,0,15 link,0,16 recv \
	    "run,sh count a frames flooded drop_reserved" <<-EOF
		recv 0 3
		recv 0 1
		a 6 4 2
	EOF
}

case_with uplink "An interface and its host's side are two ports, which are
detached together"
uplink_body()
{
	begin
	tap=$(ifconfig tap create) || atf_skip "no tap(4)"
	echo $tap > tap
	exec 3<>/dev/$tap	# the link is up while it is open
	ifconfig $tap inet 198.51.100.1/24 up
	valectl -h valet0:$tap || atf_skip "no emulated mode"
	set_ok valet0.private "* !$tap"
	talk valet0:a -- \
	    "run,ping -q -c 1 -t 1 198.51.100.2 > /dev/null; true" \
	    "run,sh count '$tap^' private frames flooded addresses" \
	    "run,sh count $tap private frames" recv \
	    "run,sysctl $oid.valet0.private= > /dev/null" \
	    "run,ping -q -c 1 -t 1 198.51.100.3 > /dev/null; true" recv \
	    "run,valectl -d valet0:$tap" \
	    "run,sh count '$tap^' frames; sh count $tap frames" \
	    "run,sysctl -n $oid.valet0.addresses" <<-EOF
		$tap^ 1 1 1 1
		$tap 0 0
		recv 0
		recv 1
		$tap^ none
		$tap none

	EOF
}
uplink_cleanup()
{
	[ -s tap ] && ifconfig $(cat tap) destroy
	end
}

case_with limit "A port learns addresses up to its limit"
limit_body()
{
	begin
	set_ok valet0.limit "2 up=0"
	talk valet0:a valet0:up -- \
	    send,0,1,0 send,0,2,0 send,0,3,0 send,0,1,0 recv \
	    send,1,4,0 send,1,5,0 send,1,6,0 recv \
	    "run,sh count a limit addresses frames drop_limit" \
	    "run,sh count up limit addresses frames drop_limit" \
	    "run,sysctl $oid.valet0.limit='a=3' > /dev/null" \
	    send,0,3,0 send,0,7,0 recv \
	    "run,sh count a limit addresses drop_limit" \
	    "run,sh count up limit" <<-EOF
		recv 0 3
		recv 3 0
		a 2 2 4 1
		up 0 3 3 0
		recv 0 1
		a 3 3 2
		up 0
	EOF
}

case_with ports "The state of a closed port does not apply to the next one
in its place"
ports_body()
{
	begin
	set_ok valet0.private "vm*"
	talk valet0:vm1 valet0:vm2 valet0:up -- \
	    send,0,1,0 send,1,2,0 recv \
	    close,1 open,valet0:x "run,sh count x private frames addresses" \
	    "run,sh count vm2 frames" \
	    send,3,3,1 recv send,2,9,2 recv send,0,1,3 recv \
	    close,3 open,valet0:vm3 send,4,3,1 recv send,4,3,0 recv \
	    "run,sh addresses" <<-EOF
		recv 0 0 2
		x 0 0 0
		vm2 none
		recv 1 0 0
		recv 1 0 1
		recv 0 0 1
		recv 0 0 0
		recv 0 1 0
		02:00:00:00:00:01 valet0:vm1
		02:00:00:00:00:03 valet0:vm3
		02:00:00:00:00:09 valet0:up
	EOF
	# Without ports the switch keeps its settings.
	atf_check -o inline:"vm*\n" sysctl -n $oid.valet0.private
	atf_check -o empty sh addresses
	talk valet0:vm1 valet0:vm2 -- send,0,1,0 recv <<-EOF
		recv 0 0
	EOF
}

case_with probes "The probes of dtrace_vale(4) agree with the counters"
probes_body()
{
	begin
	dtrace -ln BEGIN > /dev/null 2>&1 || atf_skip "no DTrace here"
	set_ok valet0.private "vm*"
	set_ok valet0.mirror mon
	set_ok valet0.limit "b=2"
	cat > probes.d <<-'EOF'
		vale:::lookup { @[stringof(arg0), "frames"] = count(); }
		vale:::flood { @[stringof(arg0), "flooded"] = count(); }
		vale:::flood { @to[stringof(arg0), arg1] = sum(arg2); }
		vale:::learn { @[stringof(arg0),
		    arg2 == 0 ? "learned" : "moved"] = count(); }
		vale:::drop {
		    @lost[stringof(arg3), stringof(arg1)] = sum(arg2); }
		END { printa("%s %s %@d\n", @); printa("%s %s %@d\n", @lost);
		    printa("to %s %d %@d\n", @to); }
	EOF
	cat > traffic.sh <<-EOF
		"$traffic" valet0:a valet0:b valet0:vm1 valet0:vm2 valet0:mon \
		    -- send,0,1,0,1,100 send,1,2,1,3 send,2,3,0,1,200 \
		    send,3,4,3,2 send,0,1,1 send,1,1,0 send,1,7,0 lost,2 \
		    send,0,5,0,2,13 send,4,6,0,3 send,1,2,3,1100 \
		    "run,sysctl -n $oid.valet0.ports > ports"
	EOF
	atf_check -e ignore dtrace -q -s probes.d -o out -c "sh traffic.sh"
	# Copies go to all except the sender, and except private from private.
	atf_check -o inline:"to valet0:a 100 4\nto valet0:b 60 4\n\
to valet0:vm1 200 3\n" sh -c "grep ^to out | sort"
	awk '{
		for (i = 2; i < NF; i++)
			if ($i ~ /^(frames|flooded|learned|moved|drop_.*)$/ &&
			    $(i + 1) > 0)
				print $1, $i, $(i + 1)
	}' ports | sort > counted
	cat counted
	for c in runt fault self limit private mirror copy; do
		grep -q " drop_$c " counted || atf_fail "no drop_$c"
	done
	atf_check -o file:counted sh -c "grep ^valet0 out | sort"
}

# listed VARIABLE PATTERN: a line of valet0's variable matches.
listed()
{
	sysctl -n "$oid.valet0.$1" | grep "$2"
}

case_with unload "Values are changed, switches detached, and the module is
unloaded and loaded, under traffic"
unload_body()
{
	begin
	[ -e loaded ] || atf_skip "the module was loaded before"
	"$traffic" valet0:vm1 valet0:vm2 valet0:up valet0:mon valet0:x -- \
	    storm,900000 &
	storm=$!
	wait_until "port valet0:x" sh -c "valectl | grep '^valet0:x '" ||
	    atf_fail "no port valet0:x"
	(
		while [ ! -e enough ]; do
			"$traffic" valet0:in valet0:out -- storm,20 || exit 1
		done
	) > /dev/null &
	inout=$!
	for round in $(seq 4); do
		kldstat -q -m vale_learn || kldload vale_learn
		set_ok attach "valet0 valet1"
		set_ok valet0.private "vm*"
		set_ok valet0.mirror mon
		set_ok valet0.limit "4 up=0"
		set_ok valet0.ageing 1
		set_ok valet0.vlan "vm*=10"
		set_ok valet0.trunk "up=10"
		set_ok valet0.source "x=02:00:00:00:00:21"
		wait_must "frames" listed ports \
		    "^valet0:[a-z0-9]* .* frames [1-9]"
		wait_must "an address" listed addresses "^02:.* valet0:"
		set_ok valet0.private ""
		set_ok valet0.mirror ""
		set_ok valet0.vlan ""
		set_ok valet0.trunk ""
		set_ok valet0.source ""
		sleep 0.1
		[ $((round % 2)) = 0 ] && set_ok attach ""
		atf_check kldunload vale_learn
	done
	# Both have sent all the time.
	: > enough
	wait $inout || atf_fail "a port could not be opened"
	kill $storm || atf_fail "traffic ended"
	wait $storm
	atf_check -s exit:1 sh -c "dmesg | grep 'vale_learn leaked'"
	atf_check -s ignore valectl
}
