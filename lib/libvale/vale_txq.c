/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The transmit side of a ring pair: vale_txq.h. */

#include <stdlib.h>

#include "vale_txq.h"

int
vale_txq_init(struct vale_txq *vt, uint32_t nslots)
{
	unsigned int i;

	vt->vt_nslots = nslots;
	/* mutants: it writes to a member that is set later */
	for (i = 0; i <= VALE_FDB_FLOOD; i++)
		vale_list_init(&vt->vt_list[i]);
	/* Most ports never touch it. */
	vt->vt_copy = calloc(1, VALE_COPY_SIZE);
	return (vt->vt_copy != NULL ? 0 : -1);
}

void
vale_txq_fini(struct vale_txq *vt)
{
	free(vt->vt_copy);
}
