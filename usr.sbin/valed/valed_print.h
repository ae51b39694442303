/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Printing the configuration: -T.
 */

#ifndef _VALED_PRINT_H_
#define	_VALED_PRINT_H_

struct valed_options;

/*
 * Print what *opt says to the standard output, as lines of a configuration file
 * that says the same.  One thread.
 */
void	valed_print(const struct valed_options *opt);

#endif /* !_VALED_PRINT_H_ */
