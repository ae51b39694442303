/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of the model's fuzzer share: the state of an input that runs,
 * the host (model_host.c), the workers' batches (model_work.c), lem(4) as the
 * guest's driver (model_lem.c) and the operations (model_fuzz.c).
 */

#ifndef _FUZZ_MODEL_IMPL_H_
#define	_FUZZ_MODEL_IMPL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "e82545_host.h"
#include "model.h"

/* Frames waiting in the network, at most. */
#define	WAITING_MAX	64

struct model_workers {
	enum e82545_tx_state (*tx)(struct e82545 *);
	enum e82545_rx_state (*rx)(struct e82545 *);
	void	(*rx_direct)(struct e82545 *, struct frame_source *);
};

/* The adapter's. */
#define	ADAPTER_MEMORY	0x60000
extern uint8_t model_memory[ADAPTER_MEMORY];

extern struct model {
	struct host	*h;
	const struct model_workers *workers;
	uint8_t		*far;
	enum e82545_kind kind;
	bool		 paused;
	bool		 bus;		/* mastering is on */
	/* The driver's tails and CSB. */
	uint32_t	 txtail, rxtail;
	unsigned int	 queue;		/* that these are of, and */
	uint32_t	 txtail_other, rxtail_other;	/* those of the other */
	uint64_t	 csb;
	/* One access changes memory. */
	uint32_t	 race_in;	/* 0: none */
	uint64_t	 race_gpa, race_value;
	/* Of one call. */
	unsigned int	 maps, sent, taken_now;
	/* Of one input. */
	uint64_t	 accepted, refused, taken;
	uint64_t	 effect;	/* digest of the results */
	bool		 raced;		/* memory has changed in a call */
	bool		 race;		/* an operation asked for that */
	bool		 cut;		/* TSO was used since reset */
	bool		 offloads;	/* a frame had a partial checksum */
	int64_t		 open;		/* outcomes, less packets in the ring */
	/* lem(4). */
	bool		 lem;		/* drives the adapter */
	uint32_t	 injected, seq;	/* frames; the last one sent */
	uint64_t	 before[E82545_NCOUNTERS];
	bool		 in_model;	/* a call is under way */
	bool		 in_when;	/* a call or an action of lem(4) is */
	uint32_t	 when_in;	/* accesses of the model; 0: none */
	const struct op	*when;		/* the operations that then happen */
	unsigned int	 nwhen, happened;
} m;

/* Run an operation. */
void	op_run(const struct op *op);

/*
 * model_host.c
 */

/*
 * Create an adapter of a kind for an input, which these workers serve; destroy
 * it.
 */
void	model_begin(const struct model_workers *workers,
	    enum e82545_kind kind);
void	model_end(void);
/* Add to the digest of what the model does. */
void	digest(const void *data, size_t len);
void	digest_number(uint64_t n);
/* Guest memory, or NULL.  put32() and put64() leave out what is not memory. */
uint8_t	*memory(uint64_t gpa, size_t len);
void	put32(uint64_t gpa, uint32_t value);
void	put64(uint64_t gpa, uint64_t value);
/* Before and after a call of the model that may use memory. */
void	call_begin(void);
void	call_end(void);
/* The guest reads and writes a register. */
uint32_t reg_read(uint32_t off);
void	reg_write(uint32_t off, uint32_t value);
uint64_t ring_base(uint32_t low);
uint32_t ring_size(uint32_t len);
/* Pause or resume the adapter; turn bus mastering on or off. */
void	host_pause(bool pause);
void	host_bus(bool on);
/* e82545_recover() with the adapter paused. */
int	host_recover(void *old);

/*
 * model_work.c
 */

/* After a reset, which drops incomplete packets. */
void	forget(void);
/* A batch of transmit.  Returns whether there is more to do. */
bool	transmit(void);
/* Up to `calls' batches of receive. */
void	receive(unsigned int calls);
/* Receive until all frames are taken or one does not fit. */
void	receive_direct(void);
void	check_counters(void);

/*
 * model_lem.c
 */

/* The guest starts over, with lem(4) as its driver. */
void	lem_start(uint32_t ndesc, bool legacy_irq);
/* MODEL_LEM, MODEL_WHEN. */
void	lem_run(const struct op *op);
void	lem_when(const struct op *op);
/* Whether an operation can happen with lem(4) as the driver. */
bool	lem_allows(const struct op *op);
/* A frame comes in this many fragments; the model sends one. */
void	lem_frame(unsigned int pieces);
void	lem_sends(const struct frame *frame);
/* transmit(), for lem(4). */
bool	lem_transmit(void);
/* After receive() or receive_direct(). */
void	lem_received(void);
/* At an access of the model: another CPU of the guest may run lem(4). */
void	race_lem(void);
/* Nothing is left to do, and every frame is accounted for. */
void	lem_settle(void);

#endif /* !_FUZZ_MODEL_IMPL_H_ */
