# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The process of valed -R that serves is killed, crashes, and is restarted on
# purpose, while guests send to each other: they see pauses, and no more.  Nor do
# they if they are moved to another switch.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"
. "$(atf_get_srcdir)/restart.subr"

VALED_MORE="-R -c control"

# Restarts on purpose; as many times the process is killed.
RESTARTS=${RESTARTS:-6}

# Bytes of one TCP stream; another one follows it.
STREAM=10000000

# QEMU posts vm1's writes of registers, and waits for each of vm2's.
property()
{
	[ "$1" = vm1 ] || echo '"x-no-posted-writes":true'
}

# configure PORT1 PORT2: has the adapters of vm1 and vm2 there, in the file CONF.
configure()
{
	local i=0 port

	for port; do
		i=$((i + 1))
		printf "pci.0.$i.0.%s\n" "device=$(device vm$i)" "backend=$port" \
		    "path=vm$i.sock" "mac=$(mac $i)"
	done > "$CONF"
}

# moved N: if there is CONF, the adapters are moved to the other switch, and
# exchange the names of their ports.
moved()
{
	[ -n "${CONF-}" ] || return 0
	if [ $(($1 % 2)) -eq 1 ]; then
		configure vale1:vm2 vale1:vm1
	else
		configure vale0:vm1 vale0:vm2
	fi
	valectl reload || wrong "valectl reload: $(cat valed.log)"
}

# held: prints how many descriptors and mapped files in memory the supervisor
# and the process that serves have.
held()
{
	local fds pid

	for pid in $(cat valed.pid) $(valed_serving); do
		set -- /proc/"$pid"/fd/*
		fds="$fds $# $(grep -c memfd: /proc/"$pid"/maps)"
	done
	echo $fds
}

# holds NUMBERS: whether they are these, or fewer: while a restart ends, a
# descriptor of it may still be there.
holds()
{
	held
	set -- $(held) $1
	[ "$1" -le "$5" ] && [ "$2" -le "$6" ] && [ "$3" -le "$7" ] &&
	    [ "$4" -le "$8" ]
}

# size: prints the supervisor's address space, in kB.
size()
{
	sed -n 's/^VmSize:[^0-9]*\([0-9]*\) kB/\1/p' \
	    /proc/"$(cat valed.pid)"/status
}

# traffic_start: streams of TCP between vm1 and vm2, one each way at a time, and
# pings; in the guests, in the background.
traffic_start()
{
	local n

	for n in 1 2; do
		on vm$n "while :; do
			wire tcp-recv 5001
		    done > /tmp/recv 2>&1 < /dev/null &
		    {
			until [ -e /tmp/stop ]; do
				wire tcp-send 10.0.0.$((3 - n)) 5001 $STREAM
			done
			echo end
		    } > /tmp/send 2>&1 < /dev/null &
		    ping -i 0.1 10.0.0.$((3 - n)) > /tmp/ping 2>&1 \
			< /dev/null &"
	done
	for n in 1 2; do
		on vm$n wait_word bytes /tmp/recv
	done
}

# traffic_end: lets the last streams end.  All have arrived, and no connection
# was reset.
traffic_end()
{
	local bad n sent

	for n in 1 2; do
		on vm$n "killall -INT ping; touch /tmp/stop"
	done
	for n in 1 2; do
		on vm$n "wait_word end /tmp/send" | grep -v '^end$' > sent.$n
	done
	for n in 1 2; do
		on vm$n "cat /tmp/recv" > recv.$n
		on vm$n "tail -n 2 /tmp/ping"
	done
	for n in 1 2; do
		bad=$(grep -v "^bytes $STREAM seconds" sent.$n
		    grep -v "^bytes $STREAM bad 0 " recv.$((3 - n))) || :
		[ -z "$bad" ] || wrong "vm$n: $bad"
		sent=$(grep -c . sent.$n)
		is "vm$n: streams sent and received" "$sent" -eq \
		    "$(grep -c . recv.$((3 - n)))"
	done
}

# undisturbed GUEST RESETS: its driver has seen neither a hang nor a lost link,
# QEMU no end of the connection, and the adapter no more resets.
undisturbed()
{
	on "$1" dmesg > dmesg
	! grep -i -e 'link is down' -e 'unit hang' -e 'netdev watchdog' \
	    -e 'timed out' -e 'reset adapter' -e 'resetting' -e 'call trace' \
	    dmesg || wrong "$1: see its messages"
	is "$1: connections" "$(counter "$1" connects)" -eq 1
	is "$1: disconnected" "$(counter "$1" disconnects)" -eq 0
	is "$1: resets" "$(counter "$1" resets)" -eq "$2"
	# The switch begins again, the adapter does not.
	is "$1: frames of the port" "$(valectl -k "vale0:$1" |
	    sed -n "s/^vale0:$1 tx_frames //p")" -lt \
	    "$(counter "$1" tx_frames)"
}

# pause: for less than a second, at random; SEED repeats a run.
pause()
{
	pauses=$((pauses + 1))
	sleep "$(awk -v seed="$SEED$pauses" \
	    'BEGIN { srand(seed); print 0.1 + 0.9 * rand() }')"
}

# restarted [option]: guests, whose adapters have the option, and their streams,
# go on whatever ends the process.
restarted()
{
	local crashes=0 n pauses=0 resets1 resets2

	: "${SEED:=$(shuf -n 1 -i 1-9999)}"
	echo "SEED=$SEED"
	guests 2 "$1"
	up 1 2
	pings vm1 10.0.0.2
	valed_counters
	resets1=$(counter vm1 resets)
	resets2=$(counter vm2 resets)
	restart
	held > held
	size > size
	traffic_start
	for n in $(seq "$RESTARTS"); do
		pause
		case $((n % 3)) in
		0)	crash SEGV ;;
		*)	crash KILL ;;
		esac
		pause
		moved "$n"
		pause
		restart
	done
	moved 0
	traffic_end
	valed_counters
	undisturbed vm1 "$resets1"
	undisturbed vm2 "$resets2"
	is "crashes" "$(grep -c "process that serves" valed.log)" \
	    -eq "$RESTARTS"
	# Nothing is left behind.
	wait_until "as many descriptors and mappings as before: $(cat held)" \
	    holds "$(cat held)" || wrong "descriptors, mappings: $(held)"
	is "kB of the supervisor" "$(size)" -le "$(cat size)"
	pings vm1 10.0.0.2
	finish
}

guest_case e1000 "Linux's e1000 and e1000e go on when valed crashes and restarts, \
and when they are moved to another switch"
e1000_body()
{
	DRIVERS="e1000 e1000e"
	setup
	CONF=valed.conf
	configure vale0:vm1 vale0:vm2
	restarted
}

guest_case csb "lem(4) with the CSB goes on when valed crashes and restarts"
csb_body()
{
	DRIVER=lem
	restarted ,csb=on
}
