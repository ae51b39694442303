/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Tables of counters, for the kernel and for user space.
 *
 * A table is written once, as a list.  X takes the identifier, the name that
 * users see, a description of what the counter counts, and its kind, if it has
 * one:
 *
 *	#define	FOO_COUNTERS(X)						\
 *		X(FOO_C_FRAME,	"frames",	"frames sent")		\
 *		X(FOO_C_DROP,	"drops",	"no space in the ring",	DROP)
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

/* What programs tell apart, whatever the description says. */
enum counter_kind {
	COUNTER_KIND_,
	COUNTER_KIND_DROP,	/* frames that were lost */
	COUNTER_KIND_FILTER	/* frames that were not for the receiver */
};

struct counter_row {
	const char	*cr_name;
	const char	*cr_desc;
	enum counter_kind cr_kind;
};

#define	COUNTER_ID(id, ...)		id,
#define	COUNTER_IDS(list)		list(COUNTER_ID)

#define	COUNTER_ROW(id, name, desc, ...)				\
	[id] = { name, desc, COUNTER_KIND_##__VA_ARGS__ },
#define	COUNTER_ROWS(list)		list(COUNTER_ROW)

#endif /* !_SYS_COUNTER_TABLE_H_ */
