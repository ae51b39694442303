/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Stand-in for Concurrency Kit's epochs, in sys/contrib/ck. */

#ifndef CK_EPOCH_H
#define	CK_EPOCH_H

struct ck_epoch_entry {
	void		*function;
	void		*link;
};
typedef struct ck_epoch_entry ck_epoch_entry_t;
typedef struct ck_epoch ck_epoch_t;
typedef struct ck_epoch_record ck_epoch_record_t;
struct ck_epoch_section {
	unsigned int	 bucket;
};
typedef struct ck_epoch_section ck_epoch_section_t;

#endif
