/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The host's side of the model (the files of adapter_impl.h), step by step: the
 * event loop is event_stub.c, and the linker's --wrap sends what they call of
 * the model, the port and the kernel to adapter_calls.c first, which counts the
 * call and can make it fail.  The only other thread is the adapter's.
 */

#ifndef _ADAPTER_CALLS_H_
#define	_ADAPTER_CALLS_H_

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "adapter.h"
#include "adapter_config.h"
#include "e82545.h"
#include "frame_port.h"

#define	GPA		0x500000000	/* of the client's memory */
#define	SIZE		0x10000
#define	RING		0x1010		/* the transmit ring there */

/* What the model returns instead of running, if `fake'. */
extern bool		fake;
extern enum e82545_tx_state tx_state;
extern enum e82545_rx_state rx_state;
extern unsigned int	tx_calls, rx_calls, yields, enabled, disabled;
extern unsigned int	pauses, resumes;
/* What the adapter gave the model, and its port. */
extern const struct e82545_ops *ops;
extern void		*ops_arg;
extern struct e82545_config model;
extern void		(*sink)(void *arg, struct frame_source *frames);
extern void		*sink_arg;
extern bool		raise_level;	/* e82545_rx_direct() does */
extern unsigned int	directs;	/* its calls, */
bool	receives(void);			/* in which this is so */
extern unsigned int	direct_sends;	/* calls of vfu_irq_signal(), */
extern bool		sends_all;	/* which sends all then */
/* The step that fails, with ENOBUFS; what the port's address and a change in
   place are; and other calls. */
extern const char	*fail_at;
extern uint8_t		address[6];
extern char		addressed[];	/* the port whose address it is */
extern uint32_t	changed[3];
extern char		calls[256];
extern bool		joins;		/* peer_mem_join() does once */
extern uint64_t		gone, refused;	/* where memory is, once, or 0 */
extern bool		again;		/* vfu_server_again() */
extern unsigned int	listens, drops, round_ends; /* of vfu_server_*() */
extern unsigned int	joined;		/* threads */
extern uint32_t		interrupted;	/* waits to come for `ready', atomic */
/*
 * The adapter's thread opens it only when adapter_start() waits for that, and
 * the wait ends only by pthread_cond_signal(3), not by its timeout.
 */
extern bool		patient;
extern unsigned int	clockwaits;
extern void		(*close_hook)(void);	/* before adapter_net_close() */
extern bool		stepping;	/* adapter_move(): events_step() */
extern struct timespec	clock_now;	/* the kernel's, if 0 */
extern struct timespec	waited;		/* until when, in the last of these */
extern unsigned int	go_interrupted;	/* and for `go' */
extern uint32_t		go_waits;	/* waits for `go'; atomic */
extern bool		keep_found;	/* an earlier process has left one */
extern uint32_t		keep_resumes;	/* atomic */
extern unsigned int	stops;
extern void		(*wanted)(void *arg);
extern bool		serves;		/* the loop ends by adapter_stop() */
extern char		thread_name[16];
extern const void	*freed;		/* was it? */
extern bool		was_freed;
extern struct itimerspec timer;
extern int		timer_flags;

extern struct adapter_config config;
extern struct adapter	*ad;
extern uint8_t		*ram;

/* Make a configuration. */
void	configure(void);
/* Start the adapter; the caller is its thread then. */
void	start(void);
/* Share memory at `gpa', also at `ram'. */
void	share(uint64_t gpa, int prot);
/* A client comes, and leaves. */
void	attach(void);
void	detach(void);
/* A client with memory at GPA, whose guest has enabled bus mastering. */
void	client(void);
/* One round of the event loop, with an event that needs no work itself. */
void	work(void);
/* Whether another thread has woken this one. */
bool	posted(void);
/* Whether the next round comes without an event. */
bool	goes_on(void);

#endif /* !_ADAPTER_CALLS_H_ */
