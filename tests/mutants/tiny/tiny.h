/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What mutants_test mutates.
 */

#ifndef _TINY_H_
#define	_TINY_H_

#include <sys/cdefs.h>

#include <stdbool.h>

/* The number of steps of at most `step' from 0 to `end'.  step > 0. */
unsigned int	tiny_steps(unsigned int end, unsigned int step);
/* Is the number in [low, high)? */
bool		tiny_inside(int number, int low, int high);
/* Sets a flag; never called by the test. */
void		tiny_flag(unsigned int *flags);
/* The larger one. */
int		tiny_max(int a, int b);
/* Exits; never called by the test. */
void		tiny_exit(int status) __dead2;

#endif /* !_TINY_H_ */
