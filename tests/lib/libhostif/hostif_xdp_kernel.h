/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For hostif_xdp_test: the kernel, the switch and the thread of an attached
 * interface.  One thread.
 */

#ifndef _HOSTIF_XDP_KERNEL_H_
#define	_HOSTIF_XDP_KERNEL_H_

#include <sys/param.h>
#include <sys/systm.h>

#include <linux/if_xdp.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "hostif_ethtool.h"
#include "hostif_impl.h"
#include "hostif_stub.h"

#define	ETHTOOL		11		/* descriptors: ethtool, */
#define	XSK		15		/* a queue, and the one behind it */
#define	QUEUES		2
#define	SLOTS		HOSTIF_XDP_SLOTS
#define	FIRST		(QUEUES * SLOTS) /* chunk to transmit */

/* The rings, in the order in which they are mapped, and where parts are. */
enum { RX0, FILL0, TX, COMPLETION, RX1, FILL1, NRINGS };
#define	RX_PRODUCER	64
#define	RX_CONSUMER	128
#define	FILL_PRODUCER	8
#define	FILL_FLAGS	136
#define	FILL_ENTRIES	1024
#define	TX_PRODUCER	4
#define	TX_CONSUMER	68
#define	TX_FLAGS	132
#define	TX_ENTRIES	512
#define	CR_PRODUCER	12
#define	CR_CONSUMER	76
#define	CR_ENTRIES	2048

extern unsigned int	 fail_call;	/* the n-th of the start fails */
extern bool		 short_offsets;
extern uint8_t		 maps[NRINGS][40960]; /* mapped rings */
extern unsigned int	 nmapped;
extern uint8_t		*memory;
extern struct xdp_statistics statistics[QUEUES];
extern bool		 old_kernel;	/* it tells the first ones, of one */

extern uint8_t		 got[RING_SLOTS][4096];	/* what the switch got */
extern uint32_t		 got_len[RING_SLOTS], ngot;
extern struct hostif_ethtool told;	/* by ethtool */
extern bool		 told_all;

/* A word and an entry of a ring. */
uint32_t *word(unsigned int ring, size_t at);
struct xdp_desc *desc(unsigned int ring, uint32_t i);
uint64_t *chunk(unsigned int ring, uint32_t i);

/* Before ho_start(); both. */
void	prepare(void);
void	start(void);

#endif /* !_HOSTIF_XDP_KERNEL_H_ */
