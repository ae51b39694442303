#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How many interrupts did an adapter want to send, how many went, and how long
 * did moderation hold back those that had to wait?
 *
 *	interrupts.d		all virtual machines that run; Ctrl-C ends it
 *
 * By virtual machine (process of bhyve) and adapter:
 *	asked	times the model wanted the guest's attention
 *	saved	times it did not, as the CSB said that the guest looks anyway
 *	held	times the throttle (ITR, itr=) put an interrupt off
 *	sent	interrupts sent
 * and distributions, in us, of how long they were held, and from one interrupt
 * to the next.
 *
 * Many asked for and few sent is what moderation is for.  What is asked for
 * while one is pending needs none of its own, so the numbers do not add up.
 *
 * Probes: dtrace_e82545(4).  On Linux: interrupts.bt.
 */

#pragma D option dynvarsize=16m

uint64_t since[pid_t, string], last[pid_t, string];

e82545em*:::intr-asked,
e82545em*:::intr-saved,
e82545em*:::intr-held,
e82545em*:::intr-sent
{
	@count[pid, copyinstr(arg0), probename] = count();
}

e82545em*:::intr-held
{
	since[pid, copyinstr(arg0)] = timestamp;
}

e82545em*:::intr-sent
/since[pid, copyinstr(arg0)] != 0/
{
	@held_us[pid, copyinstr(arg0)] =
	    quantize((timestamp - since[pid, copyinstr(arg0)]) / 1000);
	since[pid, copyinstr(arg0)] = 0;
}

e82545em*:::intr-sent
/last[pid, copyinstr(arg0)] != 0/
{
	@gap_us[pid, copyinstr(arg0)] =
	    quantize((timestamp - last[pid, copyinstr(arg0)]) / 1000);
}

e82545em*:::intr-sent
{
	last[pid, copyinstr(arg0)] = timestamp;
}

/* The guest takes the causes, or masks them: nothing waits any more. */
e82545em*:::reg-read
/arg1 == 0xc0/
{
	since[pid, copyinstr(arg0)] = 0;
}

e82545em*:::reg-write
/arg1 == 0xd8/
{
	since[pid, copyinstr(arg0)] = 0;
}

END
{
	printf("%8s  %-16s %-12s %12s\n", "PID", "ADAPTER", "INTERRUPTS",
	    "COUNT");
	printa("%8d  %-16s %-12s %@12d\n", @count);
	printf("\nheld, us\n");
	printa("%8d  %-16s%@d\n", @held_us);
	printf("\nfrom one to the next, us\n");
	printa("%8d  %-16s%@d\n", @gap_us);
}
