#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How often does a guest's driver notify its adapter, and how often not?
 *
 *	driver.d		in a guest with em_pv(4); end it with Ctrl-C
 *
 * By interface: how often each probe of the driver fired.  tx-kick, rx-kick and
 * most interrupts are exits; tx-kick-saved and rx-kick-saved are not.  Then
 * distributions: packets announced to the adapter at once (flush), packets held
 * back until then (combine), descriptors reclaimed (clean), frames received
 * (receive).
 *
 * Without any of its modes the driver flushes one packet at a time.  Send
 * combining flushes more, if interrupts are rare.  The CSB saves nearly all
 * kicks.
 *
 * Probes: dtrace_lem(4).
 */

lem:::
{
	@count[stringof(arg0), probename] = count();
}

lem:::flush,
lem:::combine,
lem:::clean,
lem:::receive
{
	@packets[stringof(arg0), probename] = quantize(arg1);
}

END
{
	printf("%-8s %-16s %12s\n", "DEVICE", "PROBE", "COUNT");
	printa("%-8s %-16s %@12d\n", @count);
	printf("\nat once\n");
	printa("%-8s %s%@d\n", @packets);
}
