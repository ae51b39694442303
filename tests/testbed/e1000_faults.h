/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Faults that other e1000 emulations had: what triggers each, as accesses of a
 * guest, and what must come of it.  e1000_faults_test replays them against the
 * model and compares; model_fuzz starts from them.
 *
 * The guest has FAULT_RAM bytes of memory from 0 on, with
 *
 *	FAULT_TXRING	FAULT_NTXD descriptors
 *	FAULT_RXRING	FAULT_NRXD descriptors, all but one posted
 *	FAULT_DATA	a packet's first FAULT_HDRLEN bytes: Ethernet to the
 *			guest's own address, IPv4, TCP; then a counting payload
 *	FAULT_RXBUF	a buffer of FAULT_BUFSIZE bytes for each RX descriptor
 *
 * and rings that are on, the link up, TCTL.PSP set, RCTL with BAM and SECRC.
 */

#ifndef _E1000_FAULTS_H_
#define	_E1000_FAULTS_H_

#include <stdbool.h>
#include <stdint.h>

#include "e82545.h"

#define	FAULT_RAM	0x80000
#define	FAULT_TXRING	0x10000
#define	FAULT_NTXD	512
#define	FAULT_RXRING	0x18000
#define	FAULT_NRXD	16
#define	FAULT_DATA	0x20000
#define	FAULT_HDRLEN	54
#define	FAULT_RXBUF	0x40000
#define	FAULT_BUFSIZE	2048
#define	FAULT_RCTL	(E82545_RCTL_EN | E82545_RCTL_BAM | E82545_RCTL_SECRC)

/* Addresses that are not memory: the adapter's own BAR, and none at all. */
#define	FAULT_BAR	0xfebc0000
#define	FAULT_NOWHERE	0x40000000

#define	FAULT_STEPS	29
#define	FAULT_COUNTS	4

enum fault_kind {
	FAULT_END = 0,
	FAULT_WRITE,		/* register `addr' = `lower' */
	FAULT_ACCESS,		/* the same with `n' bytes */
	FAULT_TXD,		/* `n' descriptors { addr, lower, upper } at the
				   tail of the ring that TDBA names */
	FAULT_KICK,		/* TDT = the tail; run */
	FAULT_RUN,
	FAULT_RXD,		/* RX descriptor `n' gets address `addr' */
	FAULT_FRAME		/* a frame of `n' bytes arrives; run */
};

struct fault_step {
	enum fault_kind	kind;
	uint32_t	n;
	uint64_t	addr;
	uint32_t	lower, upper;
};

struct fault {
	const char	*name;		/* advisory or program; of the case */
	const char	*what;		/* the variant */
	struct fault_step steps[FAULT_STEPS];
	unsigned int	frames;		/* made of the TX ring */
	unsigned int	received;	/* frames in the RX ring, */
	unsigned int	rxds;		/* in so many descriptors */
	bool		plain;		/* packets of one descriptor, the data
					   of which is sent as it is */
	/* All other counters of errors and drops do not change. */
	struct {
		enum e82545_counter counter;
		unsigned int	n;
	} counts[FAULT_COUNTS];
};

extern const struct fault e1000_faults[];
extern const unsigned int e1000_nfaults;

#endif /* !_E1000_FAULTS_H_ */
