/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * mutant.h for a module of Linux's: a part of it that mutants.py adds.  The
 * module's parameter "mutant" is the number of the mutant that runs.  With -1
 * none does, and the kernel says, "mutant N reached", when MUTANT(N) is first
 * evaluated: the console's log has that, even if the guest hangs.
 */

#include <linux/module.h>

#define	MUTANT_ON	1
#define	MUTANT_RECORD	2

unsigned char mutant_table[MUTANT_MAX];

int
mutant_slow(int n)
{
	if (mutant_table[n] == MUTANT_ON)
		return (1);
	mutant_table[n] = 0;
	pr_warn("mutant %d reached\n", n);
	return (0);
}

static int
mutant_set(const char *text, const struct kernel_param *kp)
{
	int n;

	if (kstrtoint(text, 0, &n) != 0 || n >= MUTANT_MAX)
		return (-EINVAL);
	memset(mutant_table, n < 0 ? MUTANT_RECORD : 0, sizeof(mutant_table));
	if (n > 0)
		mutant_table[n] = MUTANT_ON;
	return (0);
}

static const struct kernel_param_ops mutant_ops = { .set = mutant_set };
module_param_cb(mutant, &mutant_ops, NULL, 0200);
