#!/usr/sbin/dtrace -qs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Which register accesses does a guest make, each of them an exit from it, and
 * how many to a frame?
 *
 *	exits.d			all virtual machines that run; Ctrl-C ends it
 *
 * A line for each virtual machine (process of bhyve), adapter, and register;
 * all those that no driver touches under traffic are one line without a name.
 * Frames sent and received stand below.  A driver that sends frame by frame
 * writes TDT for each; an interrupt costs a read of ICR, and with most drivers
 * a write of IMC and one of IMS; a driver that uses the CSB does next to
 * nothing of that at full load.
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
