/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A guest and an adapter all of whose state is in one piece of memory, struct
 * crash, which processes share, or which a test copies while the process that
 * runs the adapter is stopped.  The guest has a packet of each kind sent, one
 * after the other, and receives frames.
 *
 * Functions of the guest may be called while no adapter runs.
 */

#ifndef _E82545_CRASH_H_
#define	_E82545_CRASH_H_

#include <sys/param.h>
#include <net/paravirt.h>

#include <stdbool.h>
#include <stdint.h>

#include "e82545.h"
#include "frame_port.h"

#define	CRASH_RAM	0x20000		/* bytes of guest memory */
#define	CRASH_MODEL	0x60000		/* bytes for an adapter */
#define	CRASH_TXD	32		/* descriptors */
#define	CRASH_RXD	16
#define	CRASH_SENT	8192		/* frames recorded */

/* A register access by the guest. */
struct crash_access {
	uint32_t	off, value;
	uint32_t	state;		/* atomic; CRASH_IDLE, ... */
	bool		write;
};

enum { CRASH_IDLE, CRASH_ASKED, CRASH_DONE };

struct crash {
	/* Two: one is salvaged while the other is set up. */
	_Alignas(E82545_MEMORY_ALIGN) uint8_t model[2][CRASH_MODEL];
	unsigned int	cur;		/* that in use */
	_Alignas(4096) uint8_t ram[CRASH_RAM];

	/* The host. */
	struct e82545	*dev;		/* in the process that runs it */
	struct frame_port port;
	struct frame_source source;
	bool		csb;
	bool		in_model;	/* a function of the model is called */
	unsigned int	point;		/* calls of the host; at this one */
	unsigned int	die_at;		/* the process ends; 0: not */
	uint64_t	now_ns, timer_ns;
	bool		line, kicked, ready, stalled;
	unsigned int	rises;		/* of the line */
	uint64_t	queued[E82545_TX_FRAMES];	/* not flushed */
	unsigned int	nqueued;
	uint64_t	sent[CRASH_SENT];	/* hashes */
	uint32_t	nsent;		/* atomic */
	uint32_t	batch_sent;	/* nsent when a batch began */
	uint32_t	rx_next;	/* the next frame to be received */
	uint32_t	rx_limit;	/* those from it on have not come */
	uint32_t	batch_rx;	/* rx_next when a batch began */
	uint8_t		rx_data[64][2048];	/* by frame */

	/* The guest. */
	struct crash_access access;
	bool		remote;		/* another process runs the adapter */
	bool		awake;		/* with the CSB: it polls */
	unsigned int	idle;		/* rounds of that */
	bool		numbers;	/* its requests have, and it never
					   reads ICR */
	uint32_t	asked;		/* the last one */
	unsigned int	seen;		/* rises of the line */
	uint32_t	packets;	/* to be sent */
	uint16_t	tso;		/* bytes of their segments */
	uint32_t	next_packet;
	uint32_t	tx_clean, tx_tail;	/* indices */
	struct {
		uint32_t	last;	/* index */
		uint32_t	packet;
	} report[CRASH_TXD];
	uint32_t	report_head, report_tail;
	uint32_t	told;		/* packets that the guest was told of */
	uint32_t	rx_index, rx_posted;
	uint32_t	window;		/* descriptors posted at most */
	bool		tdt, rdt;	/* to be written to the register */
	uint32_t	rx_frame;	/* next number expected at least */
	uint32_t	nreceived, nlost;
	uint32_t	lost_first, lost_last;
};

/*
 * Adapters are 82574Ls, and receive descriptors extended.  For crash_up() and
 * what follows.
 */
extern bool crash_extended;
/* The queue that the guest uses, in both directions; 1 with crash_extended. */
extern unsigned int crash_queue;
/* With the CSB, requests for interrupts have numbers. */
extern bool crash_numbers;
/*
 * With the CSB, guest_rdt is at first that of a ring that was started again.
 * The guest posts few descriptors.
 */
extern bool crash_old_rdt;

/* Memory that processes forked later share. */
struct crash *crash_alloc(void);
void	crash_free(struct crash *c);

/*
 * Create an adapter, and have the guest set it up.  It sends `packets', those
 * with TSO in segments of `tso' bytes.
 */
void	crash_up(struct crash *c, bool csb, uint32_t packets, uint16_t tso);
/* Destroy the adapter. */
void	crash_down(struct crash *c);
/* The configuration of its adapters. */
void	crash_config(struct crash *c, struct e82545_config *config);

/*
 * The process that ran the adapter has ended: have this one go on.  Returns
 * what the first step that failed did, and there is no adapter, or 0.
 */
int	crash_recover(struct crash *c);

/* Run the adapter until it has nothing to do, and its timer. */
void	crash_host(struct crash *c);
/* Do what the guest asked for in c->access. */
void	crash_serve(struct crash *c);
/* Let the guest look at its rings if it is awake or interrupted. */
void	crash_guest(struct crash *c);
/* What a guest that is awake does; writes no register. */
void	crash_look(struct crash *c);
/* Both in turn, until all is done or `rounds' are over; `n' frames arrive. */
void	crash_run(struct crash *c, unsigned int rounds, uint32_t n);

/* The number of frames of packets before `packet'. */
uint32_t crash_frames(uint32_t packet);
/* The hash of a frame that is sent. */
uint64_t crash_hash(uint32_t frame);

#endif /* !_E82545_CRASH_H_ */
