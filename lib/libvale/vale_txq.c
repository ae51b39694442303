/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The transmit side of a ring pair: vale_txq.h. */

#include <stdlib.h>
#include <string.h>

#include "vale_txq.h"

int
vale_txq_init(struct vale_txq *vt, uint32_t nslots)
{
	unsigned int i;

	vt->vt_nslots = nslots;
	for (i = 0; i < nitems(vt->vt_list); i++)
		vale_list_init(&vt->vt_list[i]);
	/* Most ports never touch this memory. */
	vt->vt_copy = calloc(1, VALE_COPY_SIZE + VALE_HEADS_SIZE +
	    VALE_FORMS * VALE_FORM_HEAD);
	if (vt->vt_copy == NULL)
		return (-1);
	vt->vt_heads = vt->vt_copy + VALE_COPY_SIZE;
	vt->vt_form = (uint8_t (*)[VALE_FORM_HEAD])(vt->vt_heads +
	    VALE_HEADS_SIZE);
	vt->vt_flood = &vt->vt_list[VALE_FDB_FLOOD];
	return (0);
}

void
vale_txq_fini(struct vale_txq *vt)
{
	free(vt->vt_copy);
}

void
vale_txq_copy(struct vale_txq *vt, struct vale_frag *fg, uint32_t n)
{
	uint8_t *copy;

	for (; n > 0; n--, fg++) {
		MPASS(fg->fg_len <= VALE_COPY_SIZE - vt->vt_copy_used);
		copy = vt->vt_copy + vt->vt_copy_used;
		memcpy(copy, fg->fg_buf, fg->fg_len);
		fg->fg_buf = copy;
		vt->vt_copy_used += fg->fg_len;
	}
}
