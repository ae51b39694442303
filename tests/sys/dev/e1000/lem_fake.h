/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An adapter for the driver's core (lem_test.h) that only records what is
 * written to its registers.  Descriptors and CSB are the test's.
 */

#ifndef _LEM_FAKE_H_
#define	_LEM_FAKE_H_

#include "lem_test.h"

#define	FAKE_ANY	0x5a5a5a5a	/* a value that is not compared */
#define	FAKE_CTRL	(E82545_CTRL_FRCSPD | E82545_CTRL_FRCDPX | 0x9)
#define	FAKE_TXRING	0x123456789000	/* addresses beyond 4 GB */
#define	FAKE_RXRING	0xabcdef012000
#define	FAKE_CSB	0x765432109000
#define	FAKE_WRITES	512

struct access {
	uint32_t	reg, value;
};

struct fake {
	uint32_t	ctrl, rctl, status, icr;
	uint32_t	reset_reads;	/* of CTRL, that a reset takes */
	uint32_t	resetting;	/* those left */
	unsigned int	nreset;		/* reads of CTRL during a reset, */
	unsigned int	nicr;		/* and of ICR */
	/* Writes, but to the table of multicast addresses; those to it. */
	struct access	wrote[FAKE_WRITES];
	unsigned int	nwrote, nmta;
	/* Called with each write, if set. */
	void		(*write_hook)(uint32_t reg);
};

extern struct fake fake;
extern const uint8_t fake_mac[6];

/*
 * A driver, not started, with this adapter in its first state, with or without
 * a CSB.
 */
struct lem_test *fake_create(bool csb);

/* Check what was written since the last call. */
void	check_wrote(const char *when, const struct access *want,
	    unsigned int n);

#endif /* !_LEM_FAKE_H_ */
