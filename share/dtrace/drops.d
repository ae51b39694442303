#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Who loses frames, and why?
 *
 *	drops.d			all virtual machines that run; Ctrl-C ends it
 *
 * By virtual machine (process of bhyve), adapter and reason: frames that did
 * not leave an adapter, frames that did not reach a guest, descriptors that
 * cannot be (whether or not a frame was lost), and how often a guest had no
 * buffers; then what was sent and received.
 *
 * Reasons are names of the model's counters, in e82545.h.  What the kernel's
 * VALE drops is not seen from here: it is what was sent and not received, and
 * stands in no other line.
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
