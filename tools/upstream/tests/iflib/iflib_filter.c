/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The filter of iflib.c, which is compiled as in the kernel, without a kernel.
 * The linker leaves out what the test does not call.
 */

#include "iflib.c"

#include "iflib_filter.h"

unsigned int filter_tx_tasks, filter_rx_tasks, filter_enables;

static struct iflib_dma_info ring;
static struct if_shared_ctx sctx;
static struct iflib_ctx ctx;
static struct iflib_txq txq;
static struct iflib_fl fl;
static struct iflib_rxq rxq;
static struct grouptask rx_task;
static int has_sent, has_received;

/* The adapter's methods. */
struct kobjop_desc ifdi_intr_enable_desc;
struct kobjop_desc ifdi_tx_queue_intr_enable_desc;
struct kobjop_desc ifdi_rx_queue_intr_enable_desc;

static void
intr_enable(if_ctx_t c __unused)
{
	filter_enables++;
}

static kobj_method_t method = {
	.desc = &ifdi_intr_enable_desc, .func = (kobjop_t)intr_enable
};
static struct kobj_ops ops = { .cache[0] = &method };

kobj_method_t *
kobj_lookup_method(kobj_class_t cls __unused, kobj_method_t **cep __unused,
    kobjop_desc_t desc __unused)
{
	panic("not a method of an adapter with one interrupt");
}

int
grouptaskqueue_enqueue(struct gtaskqueue *queue __unused, struct gtask *task)
{
	if (task == &rx_task.gt_task)
		filter_rx_tasks++;
	else if (task == &txq.ift_task.gt_task)
		filter_tx_tasks++;
	return (0);
}

static int
credits_update(void *softc __unused, uint16_t queue __unused,
    bool clear __unused)
{
	return (has_sent);
}

static int
rxd_available(void *softc __unused, uint16_t queue __unused,
    qidx_t cidx __unused, qidx_t budget __unused)
{
	return (has_received);
}

void
filter_call(int sent, int received)
{
	iflib_filter_info_t info = &rxq.ifr_filter_info;

	has_sent = sent;
	has_received = received;
	ctx.ops = &ops;
	ctx.ifc_sctx = &sctx;
	ctx.ifc_flags = IFC_LEGACY;
	ctx.ifc_txqs = &txq;
	ctx.isc_txd_credits_update = credits_update;
	ctx.isc_rxd_available = rxd_available;
	txq.ift_ifdi = &ring;
	fl.ifl_ifdi = &ring;
	rxq.ifr_ctx = &ctx;
	rxq.ifr_fl = &fl;
	rxq.ifr_nfl = 1;
	rxq.ifr_ntxqirq = 1;
	info->ifi_ctx = &rxq;
	info->ifi_task = &rx_task;
	iflib_fast_intr_rxtx(info);
}
