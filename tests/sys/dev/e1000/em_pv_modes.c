/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* See em_pv_modes.h. */

#include <stdio.h>

#include <atf-c.h>

#include "em_pv_modes.h"

const struct mode em_modes[] = {
	{ "off", 0, 0, 0 },	{ "sc", 1, 0, 0 },	{ "csb", 0, 1, 0 },
	{ "sc, csb", 1, 1, 0 },	{ "poll", 0, 0, 1000 },
	{ "sc, poll", 1, 0, 1000 },	{ "csb, poll", 0, 1, 1000 },
};

const struct em_config em_adapters[] = {
	{ .kind = E82545_KIND_EM, .intr = IFLIB_INTR_LEGACY },
	{ .kind = E82545_KIND_EM, .intr = IFLIB_INTR_MSI },
	{ .kind = E82545_KIND_82574L, .intr = IFLIB_INTR_LEGACY },
	{ .kind = E82545_KIND_82574L, .intr = IFLIB_INTR_MSI },
	{ .kind = E82545_KIND_82574L, .intr = IFLIB_INTR_MSIX, .no_csb = true },
	{ .kind = E82545_KIND_EM, .intr = IFLIB_INTR_LEGACY, .no_csb = true },
};

bool
em_is_msix(const struct em_guest *g)
{
	return (g->config.intr == IFLIB_INTR_MSIX);
}

void
em_set_mode(struct em_guest *g, const struct mode *m)
{
	ATF_REQUIRE_EQ(0, em_set(g, "sc", m->sc));
	ATF_REQUIRE_EQ(m->csb != 0 && g->config.no_csb ? EOPNOTSUPP : 0,
	    em_set(g, "csb", m->csb));
	ATF_REQUIRE_EQ(0, em_set(g, "poll", m->poll));
}

/* A started guest in a mode, with nothing to do. */
struct em_guest *
em_start(const struct em_config *c, u_int sc, u_int csb, u_int poll)
{
	struct em_guest *g = em_create(c);
	const struct mode m = { "", sc, csb, poll };

	em_up(g);
	em_set_mode(g, &m);
	em_settle(g);
	em_mark(g);
	return (g);
}

/* Call a function for each mode of each adapter. */
void
em_each(void (*test)(struct em_guest *))
{
	struct em_guest *g;
	size_t a, m;

	for (a = 0; a < nitems(em_adapters); a++)
		for (m = 0; m < nitems(em_modes); m++) {
			if (em_modes[m].csb != 0 && em_adapters[a].no_csb)
				continue;
			printf("adapter %zu, %s\n", a, em_modes[m].name);
			g = em_start(&em_adapters[a], em_modes[m].sc, em_modes[m].csb,
			    em_modes[m].poll);
			test(g);
			em_settle(g);
			em_check(g);
			em_destroy(g);
		}
}

void
em_traffic(struct em_guest *g)
{
	unsigned int i;

	for (i = 0; i < 60; i++) {
		em_send(g, i % 23);
		em_inject(g, i % 37);
		if (i % 3 != 0)
			em_settle(g);
		if (i % 6 == 1 && em_is_msix(g)) {
			em_rx_queue(g, !g->rx_queue);
			em_send_q(g, 1, i % 17);
		}
	}
	em_settle(g);
	em_check(g);
}
