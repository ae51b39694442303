/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What users of a learning switch see of its forwarding table (vale_fdb.h).
 */

#ifndef _DEV_NETMAP_VALE_FDB_ENTRY_H_
#define	_DEV_NETMAP_VALE_FDB_ENTRY_H_

#include <sys/types.h>

#define	VALE_FDB_BUCKETS	1024
#define	VALE_FDB_WAYS		5	/* that fit in a cache line */
#define	VALE_FDB_ENTRIES	(VALE_FDB_BUCKETS * VALE_FDB_WAYS)
#define	VALE_FDB_AGEING_S	300	/* IEEE 802.1D's default */
#define	VALE_FDB_AGEING_MAX_S	1000000	/* and its maximum */

struct vale_fdb_entry {
	uint8_t		fe_addr[6];
	uint8_t		fe_port;
	uint16_t	fe_vlan;	/* 0: none */
	uint32_t	fe_age_s;	/* since last seen */
};

#endif /* !_DEV_NETMAP_VALE_FDB_ENTRY_H_ */
