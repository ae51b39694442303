#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What does a guest's driver tell its adapter, and what does it spare itself?
 *
 *	driver.d		in a guest, with if_lem; Ctrl-C ends it
 *
 * By interface: how often each probe of the driver was passed.  tx-kick and
 * rx-kick are exits, and interrupt mostly is one, too; what is saved is not.
 * Then distributions: packets the adapter is told of at once (flush), those
 * held back until then (combine), descriptors that are done (clean), frames
 * received (receive).
 *
 * A driver that tells of each packet, in base mode, flushes one at a time;
 * send combining makes that more, as the interrupts come seldom; with the CSB
 * nearly all kicks are saved.
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
