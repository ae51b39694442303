#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How many frames travel together, at each stage of their way?
 *
 *	batches.d		all virtual machines that run; Ctrl-C ends it
 *
 * Distributions of frames a batch, by virtual machine (process of bhyve) and
 * adapter: out of the guest's TX ring into the switch, and from the switch into
 * the guest's RX ring.
 *
 * What costs much (an exit, a lock, a wake-up, an interrupt) is paid once a
 * batch.  Batches of one mean that everything is quicker than frames come, or
 * that somebody tells of each frame; received batches of 256, the most there
 * is, that the receiver is the slow one.
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
