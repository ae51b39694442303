# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# What a program receives, over what is sent to it; demo.sh includes this file.
# One micro-guest sends to another at several rates, one after another.  The
# other one's stack spends STACK_NS on each frame, and preempts its program,
# which spends PROGRAM_NS: tests/guest/micro/program.c.

STACK_NS=20000
PROGRAM_NS=40000
LIVELOCK_MS=300
# Percent of what the guest can take without any other cost.
LOADS="50 100 150 200 300 500 1000"

# livelock_mode NAME options: a line for each load: load in percent, what was
# sent and what the program used, Kpps, and the name.
livelock_mode()
{
	local name=$1 load rates=

	shift
	for load in $LOADS; do
		rates=$rates,$((load * 10000000 / (STACK_NS + PROGRAM_NS)))
	done
	micro_pair \
	    "role=source ms=$LIVELOCK_MS rate=${rates#,} batch=16" \
	    "role=program work=$STACK_NS program=$PROGRAM_NS tick=250 $*"
	set -- $LOADS
	step=0
	for load; do
		printf '%s\t%s\t%s\t%s\n' "$load" \
		    "$(step_kpps vm1 sent sent_us)" \
		    "$(step_kpps vm2 used us)" "$name"
		step=$((step + 1))
	done >> livelock.tsv
	label="livelock, 60"
	progress "$name: $(awk -v name="$name" -F '\t' '$4 == name {
	    printf "%s ", $3 }' livelock.tsv)Kpps"
}

# step_kpps GUEST FRAMES US: print the Kpps of a step.
step_kpps()
{
	awk -v n="$(micro_value "$1" step_${step}_$2)" \
	    -v us="$(micro_value "$1" step_${step}_$3)" \
	    'BEGIN { printf "%.2f", us ? n * 1e3 / us : 0 }'
}

livelock()
{
	: > livelock.tsv
	livelock_mode "BASE, no limit" share=0
	livelock_mode "BASE" share=20
	livelock_mode "itr=250" share=20 mode=itr=250
	livelock_mode "polling" share=20 mode=poll ring=1024
	livelock_mode "CSB" share=20 mode=csb
}
