/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * A transmit queue of iflib.c, which is compiled as in the kernel, without a
 * kernel.  The linker leaves out what the test does not call.
 */

#include "iflib.c"

#include "iflib_doorbell.h"

static unsigned int nflushed;
static struct iflib_dma_info ring;
static struct iflib_ctx ctx;
static struct iflib_txq queue;

static void
flush(void *softc __unused, uint16_t queueid __unused, qidx_t pidx __unused)
{
	nflushed++;
}

void
doorbell_create(unsigned int size)
{
	ctx.isc_txd_flush = flush;
	ctx.ifc_softc_ctx.isc_tx_nsegments = 1;
	queue.ift_ctx = &ctx;
	queue.ift_ifdi = &ring;
	queue.ift_size = size;
	queue.ift_update_freq = IFLIB_DEFAULT_TX_UPDATE_FREQ;
}

void
doorbell_add(unsigned int n)
{
	queue.ift_pidx = (queue.ift_pidx + n) % queue.ift_size;
	queue.ift_in_use += n;
	queue.ift_db_pending += n;
}

void
doorbell_check(int force)
{
	iflib_txd_db_check(&queue, force);
}

unsigned int
doorbell_count(void)
{
	return (nflushed);
}
