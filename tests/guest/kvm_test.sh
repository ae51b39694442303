# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Micro-guests under KVM, whose kernel takes valed's interrupts itself (irqfd), and
# tells valed of the guest's end of an INTx (resampling).  It is enough if /dev/kvm
# emulates the processor: a micro-guest starts within seconds there, too.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"
. "$(atf_get_srcdir)/pair.subr"
. "$(atf_get_srcdir)/restart.subr"

# kvm_case NAME DESCRIPTION: a case of micro-guests under KVM; its body is NAME_run.
kvm_case()
{
	test_case -c "micro_setup; stop_all" "$1" "$2" timeout 3600
	eval "$1_body() { micro_setup; kvm; $1_run; }"
}

# What QEMU says of interrupts on its standard error.
TRACE="-trace vfio_msi_interrupt -trace vfio_intx_interrupt \
-trace kvm_irqchip_add_msi_route -trace vfio_intx_enable_kvm"

kvm()
{
	accel_usable || atf_skip "no access to /dev/kvm"
	# It has no adapter.
	ACCEL_S=30 ACCEL_MORE="-bios qboot.rom"
	[ "$(accel_find "$MICRO" "^panic")" = kvm ] ||
	    atf_skip "/dev/kvm starts no guest"
	ACCEL=kvm
	QEMU_MORE=$TRACE
}

kvm_case probe "KVM is used where a guest gets to the end of its start, unless \
ACCEL says otherwise"
probe_run()
{
	local plain=$PWD

	# It gets there: kvm().
	atf_check_equal tcg "$(ACCEL_S=1; accel_find "$MICRO" "^never")"
	atf_check_equal tcg "$(KVM_DEVICE=nowhere; accel_find "$MICRO" "^panic")"
	mkdir -p tests/guest
	echo kvm > tests/guest/accel
	atf_check_equal "-accel kvm -cpu host" \
	    "$(ACCEL=; accel; accel_options)"
	atf_check_equal "-accel tcg" "$(ACCEL=tcg; accel; accel_options)"
	atf_check_equal "-accel tcg" \
	    "$(ACCEL= KVM_DEVICE=nowhere; accel; accel_options)"
	echo tcg > tests/guest/accel
	atf_check_equal "-accel tcg" "$(ACCEL=; accel; accel_options)"
	rm tests/guest/accel
	atf_check_equal "-accel tcg" "$(ACCEL=; accel; accel_options)"
}

# taken MSI|INTX [GUEST...]: the kernel took all interrupts; none went through
# QEMU.
taken()
{
	local name said

	case $1 in
	MSI)	said=kvm_irqchip_add_msi_route ;;
	INTX)	said=vfio_intx_enable_kvm ;;
	esac
	shift
	for name in ${*:-vm1 vm2}; do
		atf_check -o match:"$said" -o not-match:"vfio_[a-z]*_interrupt" \
		    cat $name.qemu
	done
}

# Each end of an INTx comes back: without that there would be no second one.
kvm_case interrupts "The kernel takes MSI, with writes that wait, and INTx, with \
posted ones, whose end unmasks the next one; other modes; as fast as they go"
interrupts_run()
{
	valed_start -s "1,e1000,vale0:vm1,path=vm1.sock,mac=$(mac 1)" \
	    -s "2,e1000,vale0:vm2,path=vm2.sock,mac=$(mac 2)" ||
	    atf_fail "valed does not start"
	micro_valed vm2 "role=echo intr=intx" $TRACE
	SYNC=true
	micro_valed vm1 "role=rr count=30 ms=0 intr=msi" $TRACE
	SYNC=false
	pair_end "msi / intx"
	answered 30
	taken MSI vm1
	taken INTX vm2
	is "MSI" "$(v vm1 msi)" -eq 1
	is "MSI" "$(v vm2 msi)" -eq 0
	for n in 1 2; do
		is "vm$n: interrupts" "$(v vm$n irqs)" -ge 30
		is "vm$n: interrupts, and sent" "$(v vm$n irqs)" -le \
		    "$(c vm$n irq_sent)"
	done
	is "sent, and unmasked" "$(c vm2 irq_sent)" -le \
	    "$(c vm2 irq_unmasked)"

	pair "role=rr count=30 ms=0 mode=sc,lazy,itr=250" \
	    "role=echo mode=csb,itr=250"
	answered 30
	pair "role=rr count=30 ms=0 mode=csb,poll" "role=echo mode=poll,sc"
	answered 30
	is "interrupts" "$(v vm1 irqs)" -eq 0

	SYNC=true
	pair "role=source count=500 ms=0 batch=16 intr=intx" \
	    "role=sink intr=intx"
	accounted
	taken INTX
	SYNC=false
	pair "role=source count=500 ms=0 batch=16 mode=csb" \
	    "role=sink mode=csb"
	accounted
	taken MSI
}

# reach GUEST N: whether its adapter has sent N frames.
reach()
{
	valed_counters || return 1
	counter "$1" tx_frames
	[ "$(counter "$1" tx_frames)" -ge "$2" ]
}

# more N: waits until vm1 has sent N frames more.
more()
{
	valed_counters || atf_fail "valed does not print its counters"
	wait_until "$1 frames" reach vm1 $(($(counter vm1 tx_frames) + $1)) ||
	    atf_fail "no frames"
}

kvm_case reset "A machine is reset while it sends, and ended while it sends"
reset_run()
{
	QEMU_MORE="$TRACE -qmp unix:vm1.qmp,server=on,wait=off"
	valed_start -s "1,e1000,vale0:vm1,path=vm1.sock,mac=$(mac 1)" \
	    -s "2,e1000,vale0:vm2,path=vm2.sock,mac=$(mac 2)" ||
	    atf_fail "valed does not start"
	micro_valed vm2 "role=echo intr=msi" $TRACE
	micro_ready vm2 || atf_fail "vm2 does not start"
	micro_valed vm1 "role=rr ms=0 intr=intx" $QEMU_MORE
	more 20
	qmp vm1 '{"execute": "system_reset"}'
	more 20
	vm_kill vm1
	micro_valed vm1 "role=rr count=30 ms=0 intr=intx" $TRACE
	pair_end "reset"
	# vm2 has seen the numbers of three senders.
	in_order vm1
	is "received" "$(v vm1 received)" -eq 30
}

# The kernel keeps the eventfds; who signals them is another process.
kvm_case restart "valed is restarted and killed; interrupts reach the guests as before"
restart_run()
{
	valed_start -R -c control \
	    -s "1,e1000,vale0:vm1,path=vm1.sock,mac=$(mac 1)" \
	    -s "2,e1000,vale0:vm2,path=vm2.sock,mac=$(mac 2)" ||
	    atf_fail "valed does not start"
	micro_valed vm2 "role=echo intr=intx" $TRACE
	micro_ready vm2 || atf_fail "vm2 does not start"
	micro_valed vm1 "role=rr ms=0 intr=msi" $TRACE
	# It sends one when the one before has come back, or after a minute.
	more 20
	restart
	more 20
	crash KILL
	more 20
	taken MSI vm1
	taken INTX vm2
}
