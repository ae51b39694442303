/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The modes and adapters that the tests of em_pv(4) repeat, and what they do in
 * each.
 */

#ifndef _EM_PV_MODES_H_
#define	_EM_PV_MODES_H_

#include "em_pv_guest.h"

struct mode {
	const char	*name;
	u_int		 sc, csb, poll;
};
extern const struct mode em_modes[7];

/* A line and an MSI of each kind with a CSB; MSI-X, and a line, without. */
extern const struct em_config em_adapters[6];

bool	em_is_msix(const struct em_guest *g);
void	em_set_mode(struct em_guest *g, const struct mode *m);

/* Create and start a guest in a mode; it has nothing to do. */
struct em_guest *em_start(const struct em_config *c, u_int sc, u_int csb,
	    u_int poll);

/* Call a function for each mode of each adapter. */
void	em_each(void (*test)(struct em_guest *));

/* Send and receive, and check all frames. */
void	em_traffic(struct em_guest *g);

#endif /* !_EM_PV_MODES_H_ */
