/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Tables of counters, for the kernel and for user space.
 *
 * A table is written once, as a list.  X takes the identifier, the name that
 * users see, and a description of what the counter counts:
 *
 *	#define	FOO_COUNTERS(X)						\
 *		X(FOO_C_FRAME,	"frames",	"frames sent")		\
 *		X(FOO_C_DROP,	"drops",	"frames dropped: ring full")
 *
 * The enumeration of the identifiers follows from it in a header,
 *
 *	enum foo_counter {
 *		COUNTER_IDS(FOO_COUNTERS)
 *		FOO_NCOUNTERS
 *	};
 *	extern const struct counter_row foo_counter_table[FOO_NCOUNTERS];
 *
 * and names and descriptions, indexed by identifier, in one source file:
 *
 *	const struct counter_row foo_counter_table[FOO_NCOUNTERS] = {
 *		COUNTER_ROWS(FOO_COUNTERS)
 *	};
 */

#ifndef _SYS_COUNTER_TABLE_H_
#define	_SYS_COUNTER_TABLE_H_

struct counter_row {
	const char	*cr_name;
	const char	*cr_desc;
};

#define	COUNTER_ID(id, name, desc)	id,
#define	COUNTER_IDS(list)		list(COUNTER_ID)

#define	COUNTER_ROW(id, name, desc)	[id] = { name, desc },
#define	COUNTER_ROWS(list)		list(COUNTER_ROW)

#endif /* !_SYS_COUNTER_TABLE_H_ */
