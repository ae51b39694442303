/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * em_pv(4)'s knobs and counters: dev.em.N.
 */

#include "em_pv.h"

#include <sys/proc.h>

#define	EM_PV_ITR_MAX	0xffff		/* 8254x SDM 13.4.18, 256 ns */
#define	EM_PV_POLL_MAX	100000		/* a second */

static u_int
em_pv_knob_max(const struct em_pv *pv, const u_int *knob)
{
	return (knob == &pv->itr ? EM_PV_ITR_MAX :
	    knob == &pv->poll ? EM_PV_POLL_MAX :
	    knob == &pv->rx_share ? 100 : 1);
}

/*
 * Set itr.  em(4) adapts the interval no longer: releases that do have a
 * variable for that, and 14.1 does not.
 */
static void
em_pv_set_itr(struct em_pv *pv)
{
	char name[sizeof("dev.em.2147483647.enable_aim")];
	int off = 0;

	snprintf(name, sizeof(name), "dev.em.%d.enable_aim",
	    device_get_unit(pv->sc.dev));
	(void)kernel_sysctlbyname(curthread, name, NULL, NULL, &off,
	    sizeof(off), NULL, 0);
	pv->itr_set = true;
	if (pv->running)
		em_pv_itr(pv);
}

static int
em_pv_sysctl(SYSCTL_HANDLER_ARGS)
{
	struct em_pv *pv = arg1;
	u_int *knob = (u_int *)((char *)pv + arg2);
	u_int value = *knob;
	struct sx *ctx_lock = iflib_ctx_lock_get(pv->sc.ctx);
	/* Attach has the lock, and reads tunables. */
	const bool attaching = sx_xlocked(ctx_lock);
	int error;

	error = sysctl_handle_int(oidp, &value, 0, req);
	if (error != 0 || req->newptr == NULL)
		return (error);
	if (value > em_pv_knob_max(pv, knob) ||
	    (value == 0 && knob == &pv->rx_share))
		return (EINVAL);
	if (knob == &pv->csb_wanted && value != 0 && pv->csb == NULL)
		return (EOPNOTSUPP);
	/* Detach has the lock, and waits for us to leave. */
	while (!attaching && !sx_try_xlock(ctx_lock)) {
		if (atomic_load_bool(&pv->detaching))
			return (ENXIO);
		pause_sbt("em_pv", SBT_1MS, 0, 0);
	}
	if (*knob != value || knob == &pv->itr) {
		atomic_store_int(knob, value);
		if (knob == &pv->itr)
			em_pv_set_itr(pv);
		else if (pv->running && knob != &pv->rx_share)
			em_pv_mode(pv);
	}
	if (!attaching)
		sx_xunlock(ctx_lock);
	return (0);
}

static const struct em_pv_knob {
	const char	*name, *text;
	size_t		 offset;
} em_pv_knobs[] = {
	{ "itr", "Minimum interval between interrupts, in units of 256 ns",
	    offsetof(struct em_pv, itr) },
	{ "sc", "Send combining", offsetof(struct em_pv, sc_on) },
	{ "csb", "Notification by shared memory, if the adapter has a CSB",
	    offsetof(struct em_pv, csb_wanted) },
	{ "poll", "Polls a second in place of interrupts; 0: interrupts",
	    offsetof(struct em_pv, poll) },
	{ "rx_share", "Percentage of a processor that reception may use while "
	    "other threads want it", offsetof(struct em_pv, rx_share) },
}, em_pv_counters[] = {
	{ "tx_kicks", "writes to TDT", offsetof(struct em_pv, tx_kicks) },
	{ "tx_kicks_saved", "flushes without a write to TDT",
	    offsetof(struct em_pv, tx_kicks_saved) },
	{ "tx_combined", "flushes deferred by send combining",
	    offsetof(struct em_pv, tx_combined) },
	{ "tx_flushes", "writes to TDT of deferred packets",
	    offsetof(struct em_pv, tx_flushes) },
	{ "rx_kicks", "writes to RDT", offsetof(struct em_pv, rx_kicks) },
	{ "rx_kicks_saved", "refills without a write to RDT",
	    offsetof(struct em_pv, rx_kicks_saved) },
	{ "rx_offload", "frames received with a partial checksum",
	    offsetof(struct em_pv, rx_offload) },
	{ "rx_bad", "frames with an invalid header, or too long",
	    offsetof(struct em_pv, rx_bad) },
	{ "rx_pauses", "times that reception let other threads run",
	    offsetof(struct em_pv, rx_pauses) },
	{ "intrs", "interrupts handled",
	    offsetof(struct em_pv, interrupts) },
	{ "icr_reads", "reads of the causes that are not em(4)'s own",
	    offsetof(struct em_pv, icr_reads) },
	{ "polls", "polls", offsetof(struct em_pv, polls) },
};

/* Remove em(4)'s own variable itr, which 14.1 has. */
static void
em_pv_remove_itr(device_t dev)
{
	struct sysctl_ctx_list *list = device_get_sysctl_ctx(dev);
	struct sysctl_ctx_entry *e;
	struct sysctl_oid *oid;

	TAILQ_FOREACH(e, list, link) {
		oid = e->entry;
		if (strcmp(oid->oid_name, "itr") == 0) {
			sysctl_ctx_entry_del(list, oid);
			sysctl_remove_oid(oid, 1, 0);
			return;
		}
	}
}

void
em_pv_sysctl_attach(struct em_pv *pv)
{
	struct sysctl_ctx_list *list = &pv->sysctls;
	struct sysctl_oid_list *child =
	    SYSCTL_CHILDREN(device_get_sysctl_tree(pv->sc.dev));
	const struct em_pv_knob *k;

	em_pv_remove_itr(pv->sc.dev);
	for (k = em_pv_knobs; k < em_pv_knobs + nitems(em_pv_knobs); k++)
		SYSCTL_ADD_PROC(list, child, OID_AUTO, k->name, CTLTYPE_UINT |
		    CTLFLAG_RWTUN | CTLFLAG_MPSAFE, pv, k->offset,
		    em_pv_sysctl, "IU", k->text);
	for (k = em_pv_counters; k < em_pv_counters + nitems(em_pv_counters);
	    k++)
		SYSCTL_ADD_ULONG(list, child, OID_AUTO, k->name, CTLFLAG_RD,
		    (u_long *)((char *)pv + k->offset), k->text);
}
