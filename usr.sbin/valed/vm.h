/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One virtual machine: the adapter, its port and its client, all served by
 * one thread with an event loop (bhyve's mevent).  A client can only hold up
 * its own thread.
 *
 * Threads of other VMs come in by one door: they bring frames that their guests
 * send straight into this one's memory (vm.c, vm_sink()).  What they meet
 * there is the model, which has its own locks, the table of guest memory, which
 * changes only while the model is paused, counters, and the interrupt, which
 * they ask this thread to send.  Everything else is its own, without locks.
 */

#ifndef _VM_H_
#define	_VM_H_

#include <sys/counter_table.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "vfu_dma.h"
#include "vfu_irq.h"
#include "vfu_pci.h"
#include "vfu_server.h"

struct e82545;
struct mevent;
struct net_backend;
struct frame_port;
struct vm_config;

/* Counters, in sys/counter_table.h's form. */
#define	VM_COUNTERS(X)							\
	X(VM_C_CONNECT, "connects", "clients connected")		\
	X(VM_C_DISCONNECT, "disconnects", "clients disconnected")	\
	X(VM_C_REFUSED, "refused", "clients refused: one is connected")	\
	X(VM_C_BROKEN, "broken", "clients dropped for bad framing")	\
	X(VM_C_RECV, "recvs", "reads from the socket")			\
	X(VM_C_MESSAGE, "messages", "messages received")		\
	X(VM_C_POSTED, "posted", "messages that asked for no reply")	\
	X(VM_C_SEND, "sends", "writes to the socket")			\
	X(VM_C_ERROR, "errors", "commands that failed")			\
	X(VM_C_DMA_MAP, "dma_maps", "memory ranges mapped")		\
	X(VM_C_DMA_UNMAP, "dma_unmaps", "memory ranges unmapped")	\
	X(VM_C_WAKEUP, "wakeups", "rounds of transmit and receive work")

enum vm_counter {
	COUNTER_IDS(VM_COUNTERS)
	VM_NCOUNTERS
};

struct vm {
	const struct vm_config	*config;
	pthread_t		 thread;
	sem_t			 ready;		/* the thread is set up... */
	int			 error;		/* ...or failed: errno, */
	const char		*failed;	/* and at what */
	sem_t			 go;		/* it may start serving */

	struct e82545		*dev;
	struct net_backend	*be;
	struct frame_port	*port;
	int			 timer_fd;	/* for e82545_timer() */
	int			 work_fd;	/* event: more work is left */
	bool			 work_posted;	/* that event is under way;
						   atomic */
	bool			 tx_wanted;	/* e82545_tx() is to run */
	bool			 rx_wanted;	/* e82545_rx() likewise */
	bool			 rx_stopped;	/* backend events are off */

	struct vfu_dma		 dma;
	struct vfu_pci		 pci;
	struct vfu_irq		 irq;
	struct vfu_server	 server;

	uint32_t		 watched;	/* irq.calls, at vm_watch() */
	uint64_t		 log_ns;	/* vm_log() rate limit */
	unsigned int		 log_lines;

	uint64_t		 counters[VM_NCOUNTERS]; /* relaxed atomics */
};

/*
 * Start a VM's thread and have it open everything it needs; then it waits for
 * vm_go().  Returns NULL after a line on stderr, with errno set.
 * The main thread.
 */
struct vm *vm_start(const struct vm_config *config);

/* Let the VM serve its client.  The main thread. */
void	vm_go(struct vm *vm);

/*
 * To be called once in a while: interrupts a system call in which the VM's
 * thread has been since the last time, held up by its client.  The signal for
 * this, VM_SIGNAL, must have a handler, set without SA_RESTART.  The main
 * thread.
 */
void	vm_watch(struct vm *vm);
#define	VM_SIGNAL	SIGUSR2

/* Add to a counter.  The VM's thread. */
static inline void
vm_count(struct vm *vm, enum vm_counter counter)
{
	__atomic_fetch_add(&vm->counters[counter], 1, __ATOMIC_RELAXED);
}

/*
 * The following are for the VM's thread.
 */

/* A client has connected: let frames in. */
void	vm_attach(struct vm *vm);

/*
 * The client is gone: reset the adapter, then let go of its memory and
 * interrupts.
 */
void	vm_detach(struct vm *vm);

/* Reset the adapter as by PCI RST#. */
void	vm_reset(struct vm *vm);

/* Send and receive what is asked for, up to a batch each. */
void	vm_work(struct vm *vm);

/* A line on stderr.  A client cannot cause more than ten a second. */
void	vm_log(struct vm *vm, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 2, 3)));

#endif /* !_VM_H_ */
