#!/usr/sbin/dtrace -Zqs
/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What do the switches of the kernel do with the frames of their ports: how
 * many do they get at a time, where do those go, and who loses any?
 *
 *	switch.d		all VALE switches of this host; Ctrl-C ends it
 *
 * By port: batches, and a distribution of the slots in each, of which a large
 * frame has several; where its frames went, "all", "none", or the port_idx that
 * vale_learn(4) and valectl(8) list; the stations learned there.  Then frames
 * lost, by the port that lost them, reason and sender.
 *
 * Batches come from a function of netmap's, nm_vale_flush(), by fbt: that is no
 * stable interface, and where it is not found no batches are shown.  All else
 * needs vale_learn(4) to manage the switch.  Frames that netmap drops, as their
 * receiver has no room, are in none of these: nobody counts them.
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
