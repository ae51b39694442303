#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How long does a frame take from one guest's driver to the other's, stage by
 * stage?
 *
 *	latency.d		all virtual machines; end it with Ctrl-C
 *
 * Two guests must exchange frames with each other only, one frame or burst at a
 * time (a ping): the script takes the frames that one receives for those that
 * the other sent last.  Distributions in ns, by virtual machine (process of
 * bhyve):
 *	1 kick to begin		TDT is written ... the adapter's thread begins a batch
 *	2 begin to switch	... it passes the batch to the kernel's VALE
 *	3 switch to receiver	... the other adapter's thread begins
 *	4 receiver to ring	... the batch is in the guest's RX ring
 *	5 ring to interrupt	... the interrupt is sent (moderation)
 *	6 interrupt to guest	... the guest reads ICR
 *	total to ring		from the kick to the guest's RX ring
 *	total to guest		from the kick to ICR
 *
 * A sender that uses the CSB does not kick while the host polls; its frames
 * start at 2.
 *
 * Probes: dtrace_e82545(4).  On Linux: latency.bt.
 */

#pragma D option aggsortkey
#pragma D option dynvarsize=16m

e82545em*:::tx-kick
/kick[pid, copyinstr(arg0)] == 0/
{
	kick[pid, copyinstr(arg0)] = timestamp;
}

e82545em*:::tx-begin
{
	self->tx = timestamp;
	self->begin = timestamp;
}

e82545em*:::tx-begin
/kick[pid, copyinstr(arg0)] != 0/
{
	self->begin = kick[pid, copyinstr(arg0)];
	@ns[pid, "1 kick to begin"] = quantize(self->tx - self->begin);
	kick[pid, copyinstr(arg0)] = 0;
}

/* The flush of a batch is a sync of the netmap port. */
syscall::ioctl:entry
/self->tx != 0/
{
	@ns[pid, "2 begin to switch"] = quantize(timestamp - self->tx);
	switched = timestamp;
	begun = self->begin;
	sender = pid;
	self->tx = 0;
}

e82545em*:::tx-batch
{
	self->tx = 0;
}

e82545em*:::rx-begin
{
	self->rx = timestamp;
}

e82545em*:::rx-batch
/arg1 > 0 && switched != 0 && sender != pid && self->rx > switched/
{
	@ns[pid, "3 switch to receiver"] = quantize(self->rx - switched);
	@ns[pid, "4 receiver to ring"] = quantize(timestamp - self->rx);
	@ns[pid, "total to ring"] = quantize(timestamp - begun);
	ring[pid, copyinstr(arg0)] = timestamp;
	kicked[pid, copyinstr(arg0)] = begun;
	switched = 0;
}

e82545em*:::intr-saved
{
	ring[pid, copyinstr(arg0)] = 0;
}

e82545em*:::intr-sent
/ring[pid, copyinstr(arg0)] != 0/
{
	@ns[pid, "5 ring to interrupt"] =
	    quantize(timestamp - ring[pid, copyinstr(arg0)]);
	intr[pid, copyinstr(arg0)] = timestamp;
	ring[pid, copyinstr(arg0)] = 0;
}

e82545em*:::reg-read
/arg1 == 0xc0 && intr[pid, copyinstr(arg0)] != 0/
{
	@ns[pid, "6 interrupt to guest"] =
	    quantize(timestamp - intr[pid, copyinstr(arg0)]);
	@ns[pid, "total to guest"] =
	    quantize(timestamp - kicked[pid, copyinstr(arg0)]);
	intr[pid, copyinstr(arg0)] = 0;
}
