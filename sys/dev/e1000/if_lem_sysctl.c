/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * dev.em.N: the knobs, listed here, and the counters of lem_core.
 */

#include <dev/e1000/if_lem.h>

#include <sys/sysctl.h>

static const struct {
	const char	*name;
	size_t		 at;		/* in struct lem_knobs */
	u_int		 min, max;
	const char	*what;
} lem_knobs[] = {
	{ "itr", offsetof(struct lem_knobs, itr), 0, E82545_ITR_MAX,
	    "Minimum interval between interrupts, in units of 256 ns" },
	{ "rx_budget", offsetof(struct lem_knobs, rx_budget), 1, LEM_NDESC,
	    "Maximum number of frames per turn" },
	{ "rx_share", offsetof(struct lem_knobs, rx_share), 1, 100,
	    "Percent of the processor for reception while threads wait" },
	{ "sc", offsetof(struct lem_knobs, sc), 0, 1, "Send combining" },
	{ "csb", offsetof(struct lem_knobs, csb), 0, 1,
	    "Shared-memory notification, if the adapter offers it" },
	{ "csb_rounds", offsetof(struct lem_knobs, csb_rounds), 0,
	    LEM_ROUNDS_MAX,
	    "Maximum number of rounds that the adapter spins for packets" },
	{ "tx_lazy", offsetof(struct lem_knobs, tx_lazy), 0, 1,
	    "No transmit interrupts unless the ring is short" },
	{ "poll", offsetof(struct lem_knobs, poll), 0, LEM_POLL_MAX,
	    "Polls per second in place of interrupts; 0: interrupts" },
};

static int
lem_sysctl_knob(SYSCTL_HANDLER_ARGS)
{
	struct lem_softc *sc = arg1;
	u_int *knob = (u_int *)((char *)&sc->knobs + lem_knobs[arg2].at);
	u_int old, value = *knob;
	int error;

	error = sysctl_handle_int(oidp, &value, 0, req);
	if (error != 0 || req->newptr == NULL)
		return (error);
	if (value < lem_knobs[arg2].min || value > lem_knobs[arg2].max)
		return (EINVAL);
	sx_xlock(&sc->ctl);
	old = *knob;
	*knob = value;
	error = lem_mode_update(sc);
	if (error != 0)
		*knob = old;
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
		    CTLTYPE_UINT | CTLFLAG_RWTUN | CTLFLAG_MPSAFE, sc, i,
		    lem_sysctl_knob, "IU", lem_knobs[i].what);
	stats = SYSCTL_CHILDREN(SYSCTL_ADD_NODE(ctx, top, OID_AUTO, "stats",
	    CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, "Counters"));
	for (i = 0; i < LEM_NCOUNTERS; i++)
		SYSCTL_ADD_U64(ctx, stats, OID_AUTO,
		    lem_counter_table[i].cr_name, CTLFLAG_RD,
		    &sc->core.lc_counter[i], 0, lem_counter_table[i].cr_desc);
	SYSCTL_ADD_U64(ctx, stats, OID_AUTO, "watchdogs", CTLFLAG_RD,
	    &sc->watchdogs, 0, "resets by the watchdog");
}
