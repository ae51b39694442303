/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For code of tests that is also linked into programs without ATF: REQUIRE()
 * aborts the program if a condition does not hold.
 */

#ifndef _REQUIRE_H_
#define	_REQUIRE_H_

#include <stdio.h>
#include <stdlib.h>

#define	REQUIRE(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: %s\n", __FILE__,	\
			    __LINE__, #cond);				\
			abort();					\
		}							\
	} while (0)

#endif /* !_REQUIRE_H_ */
