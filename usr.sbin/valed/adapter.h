/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One adapter of a virtual machine: the model, its port and its client, all
 * served by one thread with an event loop (bhyve's mevent).  A client can only
 * block its own thread.
 *
 * Threads of other adapters enter in one place: they deliver frames that their
 * guests send straight into this guest's memory (adapter.c, adapter_sink()).
 * There they use the model, which has its own locks; the table of guest memory,
 * which changes only while the model is paused; counters; and the interrupt,
 * which they ask this thread to send.  Only this thread uses everything else,
 * without locks.
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

#include "peer_log.h"
#include "peer_mem.h"
#include "vfu_irq.h"
#include "vfu_pci.h"
#include "vfu_server.h"
#include "peer_watch.h"

struct e82545;
struct mevent;
struct mevent_loop;
struct net_backend;
struct frame_port;
struct adapter_config;

/* Counters, in sys/counter_table.h's form. */
#define	ADAPTER_COUNTERS(X)						\
	X(ADAPTER_C_CONNECT, "connects", "clients connected")		\
	X(ADAPTER_C_DISCONNECT, "disconnects", "clients disconnected")	\
	X(ADAPTER_C_REFUSED, "refused",					\
	    "clients refused: one is connected, or no descriptors left") \
	X(ADAPTER_C_ACCEPT, "accept_waits",				\
	    "times that no client could be accepted or refused")	\
	X(ADAPTER_C_BROKEN, "broken", "clients dropped for bad framing") \
	X(ADAPTER_C_GONE, "gone",					\
	    "clients dropped because their memory was gone")		\
	X(ADAPTER_C_RECV, "recvs", "reads from the socket")		\
	X(ADAPTER_C_MESSAGE, "messages", "messages received")		\
	X(ADAPTER_C_POSTED, "posted", "messages that asked for no reply") \
	X(ADAPTER_C_SEND, "sends", "writes to the socket")		\
	X(ADAPTER_C_ERROR, "errors", "commands that failed")		\
	X(ADAPTER_C_DMA_MAP, "dma_maps", "memory ranges mapped")	\
	X(ADAPTER_C_DMA_REFUSED, "dma_refused",				\
	    "memory ranges refused")					\
	X(ADAPTER_C_DMA_UNMAP, "dma_unmaps", "memory ranges unmapped")	\
	X(ADAPTER_C_DMA_JOIN, "dma_joins",				\
	    "rings mapped once more: their pages are apart")		\
	X(ADAPTER_C_WAKEUP, "wakeups",					\
	    "rounds of transmit and receive work")

enum adapter_counter {
	COUNTER_IDS(ADAPTER_COUNTERS)
	ADAPTER_NCOUNTERS
};

struct adapter {
	TAILQ_ENTRY(adapter)	 link;		/* the main thread's */
	const struct adapter_config	*config;
	pthread_t		 thread;
	struct mevent_loop	*loop;		/* the thread's */
	pthread_mutex_t		 mtx;		/* of opened */
	pthread_cond_t		 ready;		/* opened was set */
	bool			 opened;	/* adapter_open() returned */
	int			 error;		/* its errno, or 0 */
	const char		*failed;	/* the step that failed */
	sem_t			 go;		/* it may start serving */

	struct e82545		*dev;
	struct net_backend	*be;
	struct frame_port	*port;
	int			 timer_fd;	/* for e82545_timer() */
	struct mevent		*timer_ev;
	int			 work_fd;	/* event: more work is left */
	struct mevent		*work_ev;
	uint32_t		 work_posted;	/* 1: that event is pending;
						   atomic */
	bool			 tx_wanted;	/* e82545_tx() must run */
	bool			 rx_wanted;	/* e82545_rx() likewise */
	bool			 rx_stopped;	/* backend events are off */
	bool			 unshared;	/* adapter_unshared() has said it */
	bool			 looked;	/* adapter_look() is done */
	unsigned int		 refusals;	/* of ranges of this client */

	struct peer_mem		 dma;
	struct vfu_pci		 pci;
	struct vfu_irq		 irq;
	struct vfu_server	 server;

	struct peer_watch		 watch;		/* the main thread's */
	uint64_t		*live;		/* of valed_stats_live() */
	struct peer_log_source	 log;

	uint64_t		 counters[ADAPTER_NCOUNTERS]; /* atomic */
};

TAILQ_HEAD(adapter_list, adapter);

/*
 * Start an adapter's thread, which opens everything it needs and then waits for
 * adapter_go().  `config' must outlive the adapter.  Its port may wait for
 * senders of its switch; meanwhile look(NULL) is called a hundred times a
 * second, if it is not NULL.  Returns NULL after a line on stderr, with errno
 * set.  The main thread.
 */
struct adapter *adapter_start(const struct adapter_config *config,
	    void (*look)(struct adapter *ending));

/* Let the adapter serve its client.  The main thread. */
void	adapter_go(struct adapter *ad);

/*
 * Have the thread drop the client, close the port and end.  As the client may
 * block it, the caller must go on to call adapter_watch() until
 * adapter_ended(), which then has freed the adapter.  The listening socket
 * stays open.  The main thread, after adapter_go().
 */
void	adapter_stop(struct adapter *ad);
bool	adapter_ended(struct adapter *ad);

/*
 * A look of the watchdog (peer_watch.h): interrupts a system call in which the
 * client blocks the adapter's thread.  The main thread must call it once a
 * second, and set a handler for the signal that it sends, PEER_SIGNAL,
 * without SA_RESTART.
 */
void	adapter_watch(struct adapter *ad);

/*
 * Have the thread look for clients again, if it has stopped to because there
 * were no descriptors.  The main thread, once a second, before adapter_stop().
 */
void	adapter_listen(struct adapter *ad);

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
 * Only the adapter's thread may call the functions below.
 */

/* A client has connected: start receiving. */
void	adapter_attach(struct adapter *ad);

/*
 * The client has disconnected: reset the adapter, then release its memory and
 * interrupts.
 */
void	adapter_detach(struct adapter *ad);

/* Reset the adapter as by PCI RST#. */
void	adapter_reset(struct adapter *ad);

/* Write a line to stderr, with a priority of syslog.h: peer_log.h. */
void	adapter_log(struct adapter *ad, int priority, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 3, 4)));

#endif /* !_ADAPTER_H_ */
