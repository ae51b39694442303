/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * dev.em.N: the knobs, in one table, and the counters, which are lem_core's.
 */

#include <dev/e1000/if_lem.h>

#include <sys/sysctl.h>

/* A knob is one of these, or a bit of the mode. */
#define	KNOB_ITR	0x100
#define	KNOB_RX_BUDGET	0x200

static const struct {
	const char	*name;
	int		 knob;
	const char	*what;
} lem_knobs[] = {
	{ "itr", KNOB_ITR,
	    "Least time between interrupts, units of 256 ns; 0: none" },
	{ "rx_budget", KNOB_RX_BUDGET, "Frames a batch" },
	{ "sc", LEM_MODE_SC, "Send combining" },
	{ "csb", LEM_MODE_CSB,
	    "Shared-memory notification, where the adapter has it" },
	{ "tx_lazy", LEM_MODE_LAZY,
	    "No transmit interrupts until the ring runs short" },
};

/* ctl held. */
static int
lem_knob_set(struct lem_softc *sc, int knob, u_int value)
{
	uint32_t old = sc->mode;
	int error;

	if (knob == KNOB_ITR)
		return (lem_set_itr(&sc->core, value));
	if (knob == KNOB_RX_BUDGET) {
		if (value < 1 || value > LEM_NDESC)
			return (EINVAL);
		sc->rx_budget = value;
		return (0);
	}
	if (value > 1)
		return (EINVAL);
	sc->mode = value ? old | knob : old & ~knob;
	error = lem_mode_update(sc);
	if (error != 0)
		sc->mode = old;
	return (error);
}

static int
lem_sysctl_knob(SYSCTL_HANDLER_ARGS)
{
	struct lem_softc *sc = arg1;
	u_int value = (sc->mode & arg2) != 0;
	int error;

	if (arg2 == KNOB_ITR)
		value = sc->core.lc_itr_256ns;
	else if (arg2 == KNOB_RX_BUDGET)
		value = sc->rx_budget;
	error = sysctl_handle_int(oidp, &value, 0, req);
	if (error != 0 || req->newptr == NULL)
		return (error);
	sx_xlock(&sc->ctl);
	error = lem_knob_set(sc, arg2, value);
	sx_xunlock(&sc->ctl);
	return (error);
}

void
lem_sysctls(struct lem_softc *sc)
{
	struct sysctl_ctx_list *ctx = device_get_sysctl_ctx(sc->dev);
	struct sysctl_oid_list *top, *stats;
	u_int i;

	top = SYSCTL_CHILDREN(device_get_sysctl_tree(sc->dev));
	for (i = 0; i < nitems(lem_knobs); i++)
		SYSCTL_ADD_PROC(ctx, top, OID_AUTO, lem_knobs[i].name,
		    CTLTYPE_UINT | CTLFLAG_RWTUN | CTLFLAG_MPSAFE, sc,
		    lem_knobs[i].knob, lem_sysctl_knob, "IU",
		    lem_knobs[i].what);
	stats = SYSCTL_CHILDREN(SYSCTL_ADD_NODE(ctx, top, OID_AUTO, "stats",
	    CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, "Counters"));
#define	LEM_COUNTER(name, what)						\
	SYSCTL_ADD_U64(ctx, stats, OID_AUTO, #name, CTLFLAG_RD,		\
	    &sc->core.lc_stats.name, 0, what);
	LEM_STATS(LEM_COUNTER)
#undef LEM_COUNTER
	SYSCTL_ADD_U64(ctx, stats, OID_AUTO, "watchdogs", CTLFLAG_RD,
	    &sc->watchdogs, 0, "resets of an adapter that hung");
}
