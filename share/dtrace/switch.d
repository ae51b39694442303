#!/usr/sbin/dtrace -Zqs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What do the kernel's VALE switches do with the frames of their ports: how
 * many arrive at a time, where do they go, and where are they dropped?
 *
 *	switch.d		all VALE switches of this host; end it with
 *				Ctrl-C
 *
 * By port: batches, and a distribution of the slots in each (a large frame has
 * several); where its frames went: "all", "none", or the port_idx that
 * vale_learn(4) and valectl(8) list; the stations learned there.  Then dropped
 * frames, by port, reason and sender.
 *
 * Batches come from netmap's function nm_vale_flush(), through fbt, which is
 * not a stable interface: if it does not exist, no batches are shown.  The rest
 * requires vale_learn(4) to manage the switch.  Frames that netmap drops
 * because a receive ring is full are not included: the kernel does not count
 * them.
 *
 * Probes: dtrace_vale(4).
 */

fbt::nm_vale_flush:entry
/arg1 > 0/
{
	this->port = stringof(((struct netmap_vp_adapter *)arg2)->up.name);
	@batches[this->port] = count();
	@slots[this->port] = quantize(arg1);
}

vale:::lookup
{
	@where[stringof(arg0), arg1 == 254 ? "all" : arg1 == 255 ? "none" :
	    lltostr(arg1)] = count();
}

vale:::learn
{
	@learned[stringof(arg0), arg2 != 0 ? "moved" : "new"] = count();
}

vale:::drop
{
	@lost[stringof(arg0), stringof(arg1), stringof(arg3)] = sum(arg2);
}

END
{
	printf("%-24s %12s\n", "PORT", "BATCHES");
	printa("%-24s %@12d\n", @batches);
	printf("\n%-24s %-12s %12s\n", "PORT", "TO", "FRAMES");
	printa("%-24s %-12s %@12d\n", @where);
	printf("\n%-24s %-12s %12s\n", "PORT", "STATIONS", "COUNT");
	printa("%-24s %-12s %@12d\n", @learned);
	printf("\n%-24s %-14s %-24s %12s\n", "PORT", "LOST", "FROM", "FRAMES");
	printa("%-24s %-14s %-24s %@12d\n", @lost);
	printf("\nslots a batch\n");
	printa("%-24s%@d\n", @slots);
}
