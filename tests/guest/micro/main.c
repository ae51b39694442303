/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * From the loader's start info to power off.
 */

#include "micro.h"

/* Xen's public/arch-x86/hvm/start_info.h, version 0 and later. */
struct start_info {
	uint32_t	magic;
	uint32_t	version;
	uint32_t	flags;
	uint32_t	nr_modules;
	uint64_t	modlist_paddr;
	uint64_t	cmdline_paddr;
	uint64_t	rsdp_paddr;
};

#define	START_MAGIC	0x336ec578

_Static_assert(offsetof(struct start_info, cmdline_paddr) == 24, "start_info");

_Noreturn void	micro_main(const struct start_info *info);

_Noreturn void
micro_main(const struct start_info *info)
{
	static struct options opt;
	static char cmdline[1024];
	const char *s;
	size_t n;

	console_init();
	if (info->magic != START_MAGIC)
		panic("not started by PVH");
	/* It may be in memory that is used later. */
	s = (const char *)info->cmdline_paddr;
	for (n = 0; s != NULL && s[n] != '\0'; n++) {
		if (n == sizeof(cmdline) - 1)
			panic("the command line is too long");
		cmdline[n] = s[n];
	}
	print("\nmicro %s\n", cmdline);
	options_parse(&opt, cmdline);
	cpu_init(opt.tick != 0 ? opt.tick : 1000);
	nic_init(&opt);
	report("ready", 1);
	traffic_run(&opt);
	cpu_exit(0);
}
