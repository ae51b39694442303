#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Which registers does a guest access, each time with an exit, and how often
 * per frame?
 *
 *	exits.d			all virtual machines; end it with Ctrl-C
 *
 * A line for each virtual machine (process of bhyve), adapter and register; the
 * registers that no driver accesses under traffic share a line without a name.
 * Frames sent and received follow.  A driver that sends frame by frame writes
 * TDT for each.  An interrupt costs a read of ICR and, with most drivers, a
 * write of IMC and one of IMS.  A driver that uses the CSB needs few of these
 * at full load.
 *
 * Probes: dtrace_e82545(4).  On Linux: exits.bt.
 */

BEGIN
{
	reg[0x0000] = "CTRL";
	reg[0x0008] = "STATUS";
	reg[0x00c0] = "ICR";
	reg[0x00c4] = "ITR";
	reg[0x00c8] = "ICS";
	reg[0x00d0] = "IMS";
	reg[0x00d8] = "IMC";
	reg[0x0100] = "RCTL";
	reg[0x0400] = "TCTL";
	reg[0x2810] = "RDH";
	reg[0x2818] = "RDT";
	reg[0x3810] = "TDH";
	reg[0x3818] = "TDT";
}

e82545em*:::reg-read
{
	@exits[pid, copyinstr(arg0), "read", reg[(int)arg1]] = count();
}

e82545em*:::reg-write
{
	@exits[pid, copyinstr(arg0), "write", reg[(int)arg1]] = count();
}

e82545em*:::tx-batch
{
	@frames[pid, copyinstr(arg0), "sent"] = sum(arg1);
}

e82545em*:::rx-batch
{
	@frames[pid, copyinstr(arg0), "received"] = sum(arg1);
}

END
{
	printf("%8s  %-16s %-8s %-8s %12s\n", "PID", "ADAPTER", "ACCESS",
	    "REGISTER", "COUNT");
	printa("%8d  %-16s %-8s %-8s %@12d\n", @exits);
	printf("\n%8s  %-16s %-8s %21s\n", "PID", "ADAPTER", "FRAMES",
	    "COUNT");
	printa("%8d  %-16s %-8s %@21d\n", @frames);
}
