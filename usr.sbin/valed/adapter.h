/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One adapter of a virtual machine: the model, its port and its client, all
 * served by one thread with an event loop (loop.h).  A client can only
 * block its own thread.
 *
 * Threads of other adapters enter in one place: they deliver frames that their
 * guests send straight into this guest's memory (adapter_port.c,
 * adapter_sink()).  There they use the model, which has its own locks; the
 * table of guest memory, which changes only while the model is paused;
 * counters; and the interrupt, which they send, or ask this thread to.  Only
 * this thread uses everything else, without locks.
 */

#ifndef _ADAPTER_H_
#define	_ADAPTER_H_

#include <sys/counter_table.h>
#include <sys/queue.h>
#include <sys/systm.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "adapter_config.h"
#include "adapter_net.h"
#include "peer_log.h"
#include "peer_watch.h"
#include "vfu_device.h"

struct e82545;
struct loop_event;
struct loop;

/* Counters beside those of vfu_device.h, in sys/counter_table.h's form. */
#define	ADAPTER_COUNTERS(X)						\
	X(ADAPTER_C_WAKEUP, "wakeups",					\
	    "rounds of transmit and receive work")

enum adapter_counter {
	COUNTER_IDS(ADAPTER_COUNTERS)
	ADAPTER_NCOUNTERS
};

struct adapter {
	TAILQ_ENTRY(adapter)	 link;		/* valed_watch.c's */
	struct adapter_config	 config;	/* adapter_move() changes it */
	pthread_t		 thread;
	struct loop		*loop;		/* the thread's */
	pthread_mutex_t		 mtx;		/* of what follows, and of
						   config and net, of which the
						   thread and the main thread
						   need it only to change */
	pthread_cond_t		 ready;		/* opened or moved was set */
	bool			 opened;	/* adapter_open() returned */
	bool			 moved;		/* so has adapter_move() */
	bool			 resumed;	/* the earlier process's client,
						   if there was one */
	bool			 quiesced;	/* e82545_tx() runs no more */
	bool			 saved;		/* adapter_keep_save()
						   returned */
	struct adapter_change {
		bool		 ch_pending;	/* to what config has */
		bool		 ch_quiesce;	/* adapter_quiesce() */
		bool		 ch_save;	/* adapter_save() */
		const struct adapter_config *ch_move; /* adapter_move() */
	}			 change;	/* adapter_change() */
	int			 error;		/* of the last step, or 0 */
	const char		*failed;	/* that step, or NULL if a line
						   says it */
	char			 mem_over[VALED_PATH_SIZE + 80];
					/* more memory than mem= */
	sem_t			 go;		/* it may start serving */

	struct e82545		*dev;
	struct adapter_net	 net;
	int			 timer_fd;	/* for e82545_timer() */
	struct loop_event	*timer_ev;
	int			 work_fd;	/* event: more work is left */
	struct loop_event	*work_ev;
	struct loop_event	*rx_ev;		/* frames are pending; NULL if
						   there is no port */
	struct loop_event	*port_ev;	/* the opener has said
						   something, or NULL */
	bool			 no_port;	/* a line has said so */
	uint32_t		 work_posted;	/* 1: that event is pending;
						   atomic */
	uint32_t		 down;		/* the port has no link;
						   atomic */
	bool			 shown_down;	/* the model's link is */
	unsigned int		 end_rounds;	/* rounds before adapter_end(),
						   0 until adapter_save() */
	uint32_t		 announce;	/* announce the address;
						   atomic */
	uint32_t		 uplink;	/* the port's switch has one
						   with a carrier; atomic */
	uint64_t		 announce_ms;	/* when the next one is due, at
						   one a second */
	uint64_t		 announces;	/* how often; atomic */
	bool			 tx_wanted;	/* e82545_tx() must run */
	bool			 rx_wanted;	/* e82545_rx() must run */
	bool			 rx_stopped;	/* rx_ev is disabled */
	bool			 unshared;	/* adapter_unshared() has said
						   it */
	bool			 checked;	/* adapter_check() is done */

	struct vfu_device	 vfu;		/* its client */
	uint64_t		 since_s;	/* since when it is connected;
						   0: none; atomic */

	struct peer_watch		 watch;		/* the main thread's */
	uint64_t		*live;		/* of valed_stats_live() */
	struct peer_log_source	 log;

	uint64_t		 counters[ADAPTER_NCOUNTERS]; /* atomic */
};

TAILQ_HEAD(adapter_list, adapter);

/*
 * Start an adapter's thread, which opens everything it needs and then waits for
 * adapter_go().  It keeps a copy of *config.  Its port may wait for
 * senders of its switch; meanwhile watch(NULL) is called a hundred times a
 * second, if it is not NULL.  Returns NULL after a line on stderr, with errno
 * set.  The main thread.
 */
struct adapter *adapter_start(const struct adapter_config *config,
	    void (*watch)(struct adapter *ending));

/*
 * Let the adapter go on with an earlier process's client (adapter_keep.h), and
 * serve.  The main thread.
 */
void	adapter_go(struct adapter *ad);

/*
 * Return whether the adapter serves, and needs nothing of the store any more.
 */
bool	adapter_resumed(struct adapter *ad);

/*
 * Have the thread change the moderation, the MTU, how long it polls, and
 * whether others deliver directly, to those of *config.  It does that between
 * two batches; nothing waits for it.  The main thread, after adapter_go().
 */
void	adapter_change(struct adapter *ad, const struct adapter_config *config);

/*
 * Have the adapter on the port of *config, perhaps ADAPTER_NET_NONE, and with
 * all that adapter_change() changes; the rest of *config but the name must be
 * as it is.  The client stays.  Frames that were sent to it and that its guest
 * has not got are lost; none comes twice.  Waits for the adapter's thread,
 * which may wait for its client, and for senders of both switches; watch() is
 * as in adapter_start().  Returns 0, or an errno after a line: then the adapter
 * is as it was.  The main thread, after adapter_go().
 */
int	adapter_move(struct adapter *ad, const struct adapter_config *config,
	    void (*watch)(struct adapter *ending));

/*
 * Have the thread drop the client, close the port and end.  As the client may
 * block it, the caller must go on to call adapter_watch() until
 * adapter_ended(), which then has freed the adapter.  The listening socket
 * stays open.  The main thread, after adapter_go().
 */
void	adapter_stop(struct adapter *ad);
bool	adapter_ended(struct adapter *ad);

/*
 * Have the thread send no frames of its guest any more; they wait in the
 * guest's ring.  It receives as before.  adapter_quiesced() says whether it is
 * so.  The main thread, after adapter_go().
 */
void	adapter_quiesce(struct adapter *ad);
bool	adapter_quiesced(struct adapter *ad);

/*
 * Have the thread give its guest the frames that are in the port, as far as the
 * guest has posted buffers, with the client's messages that have come before
 * this call; save the state for the next process, and do nothing else any more.
 * adapter_saved() says whether it has.  What others send to it after that is
 * lost, so all adapters must be quiesced.  The main thread, after adapter_go().
 */
void	adapter_save(struct adapter *ad);
bool	adapter_saved(struct adapter *ad);

/*
 * Check by the watchdog (peer_watch.h): interrupts a system call in which the
 * client blocks the adapter's thread.  The main thread must call it once a
 * second, and set a handler for the signal that it sends, PEER_SIGNAL, without
 * SA_RESTART.
 */
void	adapter_watch(struct adapter *ad);

/*
 * Have the thread look for clients again, if it has stopped to because there
 * were no descriptors, unmap files of its client that have no ranges, and send
 * an announcement that waits.  The main thread, once a second, before
 * adapter_stop().
 */
void	adapter_listen(struct adapter *ad);

/*
 * Say whether an uplink of the switch that the adapter's port is on has a
 * carrier, and whether one has got it since the last call.  The main thread, once
 * a second, before adapter_stop().
 */
void	adapter_uplink(struct adapter *ad, bool up, bool came);

static inline void
adapter_assert_thread(const struct adapter *ad)
{
	MPASS(pthread_equal(ad->thread, pthread_self()));
	(void)ad;
}

/* Add one to a counter.  The adapter's thread. */
static inline void
adapter_count(struct adapter *ad, enum adapter_counter counter)
{
	adapter_assert_thread(ad);
	atomic_add_64(&ad->counters[counter], 1);
}

/*
 * Write a line to stderr, with a priority of syslog.h: peer_log.h.  The
 * adapter's thread.
 */
void	adapter_log(struct adapter *ad, int priority, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 3, 4)));

/*
 * adapter_pci.c: what it is on the PCI bus, without [0] and with the CSB [1].
 */
extern const struct vfu_device_type adapter_pci[ADAPTER_NDEVICES][2];

#endif /* !_ADAPTER_H_ */
