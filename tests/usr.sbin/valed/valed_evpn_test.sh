# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Guests on three hosts, as valed-evpn(7) has it: each host is a network
# namespace with a valed, Linux's bridge, a VXLAN and Debian's FRR.  The commands,
# FRR's file and valed's are those of the page.

. "$(atf_get_srcdir)/valed.subr"
. "$(atf_get_srcdir)/hosts.subr"

FRR=/usr/lib/frr

# evpn_page: takes the page apart: commands/N/ has the commands of step N, of
# VLANS in 5 and 6, and texts/N/ the files.
evpn_page()
{
	local n

	for n in 1 2 3 4 5 6; do
		mkdir -p commands/$n texts/$n
		awk -v n=$n '/^[.]S[sh]/ { step = $2 + 0 }
		    /^[.]Sh VLANS/ { step = 5 }
		    /^[.]Ss One/ { step = 6 }
		    step == n' "$(atf_get_srcdir)/valed-evpn.7" > step
		awk -f "$(atf_get_srcdir)/commands.awk" dir=commands/$n \
		    texts=texts/$n step
	done
}

# of_host N [FILE...]: the text for host N: it and the first one change places.
of_host()
{
	local n=$1

	shift
	sed -e "s/192\.0\.2\.1/HERE/g" -e "s/192\.0\.2\.$n/192.0.2.1/g" \
	    -e "s/HERE/192.0.2.$n/g" "$@"
}

# vtysh_here: the vtysh of the page, for the FRR of host $HOST.
vtysh_here()
{
	mkdir bin
	cat > bin/vtysh <<-END
	#!/bin/sh
	exec /usr/bin/vtysh --vty_socket $PWD/frr\$HOST "\$@"
	END
	chmod +x bin/vtysh
}

# step N STEP: print the commands of a step of the page for host N, without those
# that install packages or restart services.
step()
{
	local file

	echo "export HOST=$1 VTYSH_PAGER=cat PATH=$PWD/bin:$PATH"
	for file in commands/$2/*.host; do
		case $(cat $file) in
		apt-get*|systemctl*|sed*)	;;
		*)	of_host $1 $file ;;
		esac
	done
}

# run_step PID N STEP: runs these.
run_step()
{
	step $2 $3 > step$2.$3
	in_host $1 sh -ex step$2.$3 > out 2>&1 ||
	    atf_fail "host $2, step $3: $(cat out)"
}

# frr PID N: starts zebra and bgpd on host N, which become the user frr.
frr()
{
	local d dir=$PWD/frr$2

	mkdir $dir && chown frr:frr $dir
	of_host $2 texts/2/01 > $dir/bgpd.conf
	: > $dir/zebra.conf
	for d in zebra bgpd; do
		nsenter -t $1 -n $FRR/$d -f $dir/$d.conf \
		    -i $dir/$d.pid -z $dir/zserv --vty_socket $dir -P 0 \
		    > $dir/$d.out 2>&1 &
		echo $! >> pids
		wait_until "$d" [ -S $dir/$d.vty ] ||
		    atf_fail "$d: $(head -n 1 $dir/$d.out)"
	done
}

# three_hosts STEP...: makes three hosts, each in a network namespace, with these
# steps of the page, and a valed with the rest of the file conf, too.
three_hosts()
{
	local n

	chmod 755 .
	[ -x $FRR/zebra ] && [ -x $FRR/bgpd ] && [ -x /usr/bin/vtysh ] ||
	    atf_skip "there is no FRR: apt-get install frr"
	vtysh_here
	host F
	in_host $F ip link add br0 type bridge
	in_host $F ip link set br0 up
	for n in 1 2 3; do
		host H$n
		eval one_host \$H$n $n "$@"
	done
}

# one_host PID N STEP...
one_host()
{
	local n=$2 pid=$1 step

	shift 2
	in_host $pid sh -c \
	    'echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6'
	wire $F f$n $pid eth0
	in_host $F ip link set f$n master br0
	in_host $pid ip addr add 192.0.2.$n/24 dev eth0
	for step; do
		run_step $pid $n $step
	done
	frr $pid $n
	mkdir h$n
	sed "s,/run/valed,h$n," texts/3/01 conf > h$n/valed.conf
	valed_in $pid -c h$n/control -k h$n/valed.conf
	wait_must "vale0:up0" attached $n
}

attached()
{
	"$VALECTL" -c h$1/control | grep -q vale0:up0
}

# guests CASE: what guests see.
guests()
{
	step 2 4 > look
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(atf_get_srcdir) \
	    python3 "$(atf_get_srcdir)/evpn.py" $1 $H1 $H2 $H3 ||
	    atf_fail "evpn.py $1"
	# evpn.py has up20 go down, and come up again.
	atf_check -s exit:1 grep -h -v -E "^valed: vale0:up20: the interface is \
(down|up)$" valed.err.*
}

host_case moves "Guests on three hosts with a VXLAN and EVPN reach each other; a \
guest that moves, and one whose host dies, is found again" bridge sysctl
moves_body()
{
	evpn_page
	: > conf
	three_hosts 1
	guests moves
}

# vlan_guests N: conf has the page's uplinks of N, and guests in VLANs.
vlan_guests()
{
	cp texts/$1/01 conf
	cat >> conf <<-END
	pci.0.1.0.vlan=20
	pci.0.2.0.vlan=20
	pci.0.3.0.device=e1000
	pci.0.3.0.backend=vale0:vm3
	pci.0.3.0.path=/run/valed/vm3.sock
	pci.0.3.0.mac=02:00:00:00:00:03
	pci.0.3.0.vlan=10
	END
}

host_case vlans "Guests of a VLAN, with a VXLAN of its own, reach each other, \
and no others" bridge sysctl
vlans_body()
{
	evpn_page
	vlan_guests 5
	three_hosts 1 5
	guests vlans
}

host_case trunk "Guests of a VLAN reach each other, and no others, through a \
bridge and a VXLAN that have all VLANs" bridge sysctl
trunk_body()
{
	unshare -n ip link add br0 type bridge vlan_filtering 1 ||
	    atf_skip "the kernel's bridge does not filter VLANs"
	case $($FRR/zebra --version) in
	*version\ [5-8].*)
		atf_skip "FRR 8 knows no VXLAN of all VNIs"
	esac
	evpn_page
	vlan_guests 6
	three_hosts 6
	guests trunk
}
