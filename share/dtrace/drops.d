#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Where are frames dropped, and why?
 *
 *	drops.d			all virtual machines; end it with Ctrl-C
 *
 * By virtual machine (process of bhyve), adapter and reason: frames that did
 * not leave an adapter, frames that did not reach a guest, invalid descriptors
 * (whether or not a frame was dropped), and how often a guest had no buffers;
 * then frames sent and received.
 *
 * A reason is the name of a counter of the adapter.  Frames that the kernel's
 * VALE drops have no line: they are the frames sent that are in no other line.
 *
 * Probes: dtrace_e82545(4).  On Linux: drops.bt.
 */

e82545em*:::tx-drop,
e82545em*:::rx-drop,
e82545em*:::bad-descriptor
{
	@lost[pid, copyinstr(arg0), probename, copyinstr(arg1)] = count();
}

e82545em*:::rx-stall
{
	@lost[pid, copyinstr(arg0), probename, "no buffers"] = count();
}

e82545em*:::tx-batch,
e82545em*:::rx-batch
{
	@frames[pid, copyinstr(arg0), probename] = sum(arg1);
}

END
{
	printf("%8s  %-16s %-16s %-16s %12s\n", "PID", "ADAPTER", "PROBE",
	    "REASON", "COUNT");
	printa("%8d  %-16s %-16s %-16s %@12d\n", @lost);
	printf("\n%8s  %-16s %-16s %29s\n", "PID", "ADAPTER", "PROBE",
	    "FRAMES");
	printa("%8d  %-16s %-16s %@29d\n", @frames);
}
