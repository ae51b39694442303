# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The ladder of driver modes; demo.sh includes this file.  One micro-guest
# (tests/guest/micro: the driver core and a packet generator, no kernel) sends
# to another as fast as it can, once in each mode of the driver.
#
# Moderation is measured twice: with 64 us between interrupts, as in the rest of
# the demo, which delays few interrupts of these guests; and with 1 ms (8254x
# SDM section 13.4.18 suggests 167 us to 1.4 ms for a start).
#
# The guests wait for each register write, as under a hypervisor that emulates
# the adapter itself.  Two comparisons follow: QEMU's default, which posts the
# writes to valed and lets the guest go on; and QEMU's own adapter, for which a
# register write is a function call.  Each guest shares a processor with the
# valed thread that serves it, because under such a hypervisor an exit stays on
# its processor; with two processors, most of the time measured would be that of
# waking the other one, which varies.

LADDER_MS=1000
# Polling needs a ring that has space for the frames of a tick.
POLL="ring=1024 tick=250"

# micro_pair LEADER FOLLOWER: run two micro-guests to their end.
micro_pair()
{
	valed_start -s "1,e1000,vale0:vm1,path=vm1.sock,mac=$MAC1" \
	    -s "2,e1000,vale0:vm2,path=vm2.sock,mac=$MAC2" ||
	    fail "valed does not start"
	micro_valed vm2 "$2"
	micro_valed vm1 "$1"
	pin valed
	micro_wait vm1 vm2 > micro.out ||
	    fail "micro-guests: see $PWD/micro.out"
	valed_counters
	valed_stop || fail "valed: see $PWD/valed.log"
}

# micro_pair_qemu LEADER FOLLOWER: the same on QEMU's own adapters.
micro_pair_qemu()
{
	rm -f wire
	micro_qemu vm2 e1000-82545em "$MAC2" on "$2"
	micro_qemu vm1 e1000-82545em "$MAC1" off "$1"
	pin qemu
	micro_wait vm1 vm2 > micro.out ||
	    fail "micro-guests: see $PWD/micro.out"
}

# micro_frame GUEST FRAMES COUNTER...: print the sum of the counters a frame.
micro_frame()
{
	local guest=$1 frames=$2

	shift 2
	awk -v n="$(micro_value "$guest" "$@")" \
	    -v frames="$(micro_value "$guest" "$frames")" \
	    'BEGIN { printf "%.4f", frames ? n / frames : 0 }'
}

# step NAME SIZE MODE [options]: measure one mode; PAIR starts the guests.
step()
{
	local name=$1 size=$2 mode=$3

	shift 3
	${PAIR:-micro_pair} \
	    "role=source size=$size ms=$LADDER_MS mode=$mode $*" \
	    "role=sink mode=$mode $*"
	kpps=$(per_ms $(micro_value vm2 received))
	label="micro, $size"
	progress "$name: $kpps Kpps"
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$size" "$name" "$kpps" \
	    "$(micro_frame vm1 sent reg_reads reg_writes)" \
	    "$(micro_frame vm1 sent irqs)" \
	    "$(micro_frame vm2 received reg_reads reg_writes)" \
	    "$(micro_frame vm2 received irqs)" >> ladder.tsv
}

# round_trip NAME MODE [options]: measure the median round-trip time of single
# frames.
round_trip()
{
	local name=$1 mode=$2

	shift 2
	micro_pair "role=rr ms=1000 mode=$mode $*" "role=echo mode=$mode $*"
	rtt=$(awk -v ns="$(micro_value vm1 rtt_median_ns)" \
	    'BEGIN { printf "%.1f", ns / 1e3 }')
	label="micro, 60"
	progress "$name, round trip: $rtt us"
	printf 'rtt\t%s\t%s\n' "$name" "$rtt" >> ladder.tsv
}

# overload NAME MODE [options]: the receiver spends WORK_NS on each frame.  The
# sender sends first at the receiver's rate, then as fast as it can; count what
# the receiver takes, and where the other frames are dropped.
WORK_NS=20000
overload()
{
	local name=$1 mode=$2 rate

	shift 2
	label="micro, 60"
	printf 'overload\t%s' "$name" >> ladder.tsv
	for rate in $((1000000000 / WORK_NS)) 0; do
		micro_pair \
		    "role=source ms=$LADDER_MS rate=$rate mode=$mode $*" \
		    "role=sink mode=$mode work=$WORK_NS $*"
		printf '\t%s\t%s' "$(per_ms $(micro_value vm1 sent))" \
		    "$(per_ms $(micro_value vm2 received))" >> ladder.tsv
	done
	printf '\t%s\t%s\n' "$(counter vm2 port_rx_drop_full)" \
	    "$(counter vm2 rx_disabled rx_oversize)" >> ladder.tsv
	progress "$name, overload: $(tail -n 1 ladder.tsv | cut -f 3-)"
}

# per_ms FRAMES: print Kpps over the time that vm1 sent.
per_ms()
{
	awk -v n="$1" -v us="$(micro_value vm1 us)" \
	    'BEGIN { printf "%.1f", n * 1e3 / us }'
}

ladder()
{
	: > ladder.tsv
	SYNC=true
	step "BASE" 60 base
	step "itr=250" 60 itr=250
	step "itr=4000" 60 itr=4000
	step "SC" 60 sc
	step "itr=250, SC" 60 itr=250,sc
	step "lazy" 60 lazy
	step "polling" 60 poll $POLL
	step "polling, SC" 60 poll,sc $POLL
	step "CSB" 60 csb
	step "BASE" 1514 base
	step "CSB" 1514 csb
	round_trip "BASE" base
	round_trip "CSB" csb
	# Poll without a pause, as a system does that polls before it halts.
	round_trip "CSB, polling" csb,poll tick=0
	overload "polling, SC" poll,sc $POLL
	overload "CSB" csb
	SYNC=false
	step "BASE, posted" 60 base
	step "itr=250, SC, posted" 60 itr=250,sc
	step "CSB, posted" 60 csb
	PAIR=micro_pair_qemu
	step "BASE, QEMU's own" 60 base
	step "itr=250, SC, QEMU's own" 60 itr=250,sc
}
