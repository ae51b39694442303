#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How many frames travel together, at each stage?
 *
 *	batches.d		all virtual machines; end it with Ctrl-C
 *
 * Distributions of frames per batch, by virtual machine (process of bhyve) and
 * adapter: from the guest's TX ring to the switch, and from the switch to the
 * guest's RX ring.
 *
 * Exits, locks, wakeups and interrupts are paid once per batch.  Batches of one
 * frame mean that each stage is faster than frames arrive, or that the sender
 * notifies for each frame.  Received batches of 256, the maximum, mean that the
 * receiver is the slowest stage.
 *
 * Probes: dtrace_e82545(4).  On Linux: batches.bt.
 */

e82545em*:::tx-batch
/arg1 > 0/
{
	@sent[pid, copyinstr(arg0)] = quantize(arg1);
}

e82545em*:::rx-batch
/arg1 > 0/
{
	@received[pid, copyinstr(arg0)] = quantize(arg1);
}

END
{
	printf("sent, frames a batch\n");
	printa("%8d  %-16s%@d\n", @sent);
	printf("\nreceived, frames a batch\n");
	printa("%8d  %-16s%@d\n", @received);
}
