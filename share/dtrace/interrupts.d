#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How often did an adapter raise causes of an interrupt, how many interrupts
 * did it send, and for how long did moderation delay them?
 *
 *	interrupts.d		all virtual machines; end it with Ctrl-C
 *
 * By virtual machine (process of bhyve) and adapter:
 *	asked	times that the adapter raised causes
 *	saved	times that it did not, because the guest polls (CSB)
 *	held	times that moderation (ITR, itr=) delayed an interrupt
 *	sent	interrupts sent
 * and distributions, in us, of the delays and of the time between interrupts.
 *
 * Many asked and few sent is the purpose of moderation.  The numbers do not add
 * up: causes raised while an interrupt is pending need none of their own.
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

/* The guest read the causes or masked them: no interrupt is pending. */
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
