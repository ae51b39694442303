/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What names of ports a switch takes: private to libvale.
 */

#ifndef _VALE_NAME_H_
#define	_VALE_NAME_H_

#include <stddef.h>

struct vale_name_rules {
	/* Characters of the switch's name, after "vale". */
	const char	*vn_chars;
	const char	*vn_chars_error;
	/* Lengths, of the switch's name with "vale". */
	size_t		 vn_switch_max;
	const char	*vn_switch_error;
	size_t		 vn_port_max;
	const char	*vn_port_error;
};

/* The switch of this library, and VALE in FreeBSD's kernel. */
extern const struct vale_name_rules vale_name_user, vale_name_kernel;

/* Check a name by these rules, as vale_name_error() does. */
const char *vale_name_check(const char *name,
	    const struct vale_name_rules *rules);

#endif /* !_VALE_NAME_H_ */
