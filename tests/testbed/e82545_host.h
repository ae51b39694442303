/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A host for the 82545EM model, for tests: guest memory, a clock that the test
 * advances, a network that records the frames sent and delivers the frames
 * injected, and a small driver for the guest's side of the rings.
 *
 * A test either runs all work itself (host_run(), host_advance()), or starts a
 * transmit and a receive thread (host_start_threads()) and acts as the vCPUs.
 * Any thread may call any function, except that one thread at a time may use
 * the driver (its indices, the allocator).
 *
 * The network takes no offloads, unless a test sets port.fp_offloads.
 *
 * If memory is exhausted, there are more frames than HOST_FRAMES, or the model
 * violates struct e82545_ops, the program prints a line and aborts.
 */

#ifndef _E82545_HOST_H_
#define	_E82545_HOST_H_

#include <sys/types.h>
#include <sys/uio.h>
#include <dev/e1000/e82545_reg.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "e82545.h"
#include "frame_port.h"

#define	HOST_FRAMES	4096		/* frames recorded or pending */
#define	HOST_EDGES	4096		/* changes of the interrupt line */
#define	HOST_RAM	(16u << 20)	/* bytes, enough for all tests */

struct paravirt_csb;

struct host_frame {
	size_t		 len;		/* bytes */
	int		 nfrags;	/* as passed by the model */
	uint8_t		*data;
	struct frame	 frame;		/* without its fragments */
};

struct host_edge {
	uint64_t	 ns;
	bool		 asserted;
};

struct host {
	struct e82545	*dev;
	struct frame_port port;
	struct frame_source source;
	uint8_t		*ram;		/* gpa 0 */
	size_t		 ram_size;	/* bytes */
	struct paravirt_csb *csb;	/* e82545_guest.h */

	pthread_mutex_t	 mtx;		/* all below, up to the driver */
	pthread_cond_t	 tx_cv, rx_cv;
	uint64_t	 now_ns;
	uint64_t	 timer_ns;	/* 0: not armed */
	bool		 line;
	struct host_edge edges[HOST_EDGES];
	unsigned int	 nedges;
	unsigned int	 nraised;	/* edges to asserted */
	unsigned int	 nmessages[E82574_VECTORS];	/* of MSI-X */
	unsigned int	 nwithdrawn;	/* calls of eo_withdraw */
	uint32_t	 withdrawn;	/* of the last one */

	/* Calls of the operations. */
	unsigned int	 ntimer, nkick, nready, nflush, nsync;

	/* Sent: ntx frames, complete once flushed. */
	struct host_frame tx[HOST_FRAMES];
	unsigned int	 ntx;
	struct iovec	*tx_iov[HOST_FRAMES];	/* until the flush */
	unsigned int	 ntx_flushed;
	unsigned int	 tx_space;	/* frames accepted before ENOBUFS */
	bool		 tx_discard;	/* do not record frames sent */

	/* Called within a batch: for each frame queued, and each taken. */
	void		(*tx_hook)(struct host *);
	void		(*rx_hook)(struct host *);
	/* Called before guest memory is mapped. */
	void		(*map_hook)(struct host *);
	/* Called when the line is asserted, with model and host locked. */
	void		(*intr_hook)(struct host *);

	/* Frames to be received: [rx_head, rx_tail). */
	struct host_frame rx[HOST_FRAMES];
	struct iovec	*rx_iov[HOST_FRAMES];
	unsigned int	 rx_head, rx_tail;
	unsigned int	 rx_unsynced;	/* taken since frame_port_sync() */
	uint64_t	 missed;	/* frame_port_missed() */

	/* Work requested, and the threads that do it. */
	bool		 kicked, ready, stop;
	bool		 threads;
	pthread_t	 tx_thread, rx_thread;

	/* The driver. */
	uint64_t	 brk;		/* next free gpa */
	uint64_t	 txring, rxring;	/* gpa */
	uint32_t	 ntxd, nrxd;	/* descriptors */
	uint32_t	 txtail, rxtail, rxnext;
	uint32_t	 rxposted;	/* rxtail, when last posted */
	uint32_t	 rxbufsize;	/* bytes */
	uint64_t	 rxbuf;		/* gpa of the first buffer */
};

/* The address that host_create() gives an adapter. */
extern const uint8_t host_mac[6];

/*
 * A host with `ram_size' bytes of guest memory and an adapter with these
 * ec_itr_256ns and ec_itr_min_256ns, and bus mastering on.
 */
struct host *host_create_itr(size_t ram_size, uint32_t itr_256ns,
	    uint32_t itr_min_256ns);
struct host *host_create(size_t ram_size);
/* One whose adapter is an 82574L. */
struct host *host_create_82574(size_t ram_size);
/* One whose adapter offers the CSB. */
struct host *host_create_csb(size_t ram_size);
/* An 82574L that does. */
struct host *host_create_82574_csb(size_t ram_size);
/* Saves the adapter, restores it, and destroys it.  Aborts if either fails. */
void	host_destroy(struct host *h);

/*
 * The model's operations and its port's, for a test that changes some; arg:
 * struct host.
 */
extern const struct e82545_ops host_ops;
extern const struct frame_port_ops host_port_ops;

/* Registers, 32 bits. */
uint32_t host_rd(struct host *h, uint32_t off);
void	host_wr(struct host *h, uint32_t off, uint32_t value);
/* Set and clear bits of a register. */
void	host_set(struct host *h, uint32_t off, uint32_t bits);
void	host_clear(struct host *h, uint32_t off, uint32_t bits);

/* One of the model's counters. */
uint64_t host_counter(struct host *h, enum e82545_counter counter);

/* Advance the clock, and call the model's timer each time it expires. */
void	host_advance(struct host *h, uint64_t ns);

/* The interrupt line. */
bool	host_line(struct host *h);
/* How many times the line was asserted. */
unsigned int host_raised(struct host *h);

/*
 * Do the work requested by eo_tx_kick(), eo_rx_ready(), an injected frame or
 * E82545_RX_MORE, until there is none.  Not with threads.
 */
void	host_run(struct host *h);

/* The transmit and receive threads. */
void	host_start_threads(struct host *h);
void	host_stop_threads(struct host *h);

/* Add a frame from the network, in `nfrags' fragments of similar size. */
void	host_inject(struct host *h, const void *data, size_t len, int nfrags);
/* The same for a frame with a partial checksum; `frame' says what it asks. */
void	host_inject_offload(struct host *h, const struct frame *frame,
	    const void *data, size_t len, int nfrags);
/*
 * The same for TCP over IPv4, to be cut if mss is not 0, in two fragments:
 * writes the headers, without the receiver's address, into `data'.
 */
void	host_inject_tcp(struct host *h, uint8_t *data, size_t len,
	    uint16_t mss);
/* The number of frames that the model has not taken yet. */
unsigned int host_rx_pending(struct host *h);

/* The number of frames sent and flushed; the n-th of them. */
unsigned int host_sent(struct host *h);
const struct host_frame *host_sent_frame(struct host *h, unsigned int n);
/* Discard the record of frames sent. */
void	host_sent_clear(struct host *h);

/*
 * Driver: guest memory.
 */

/* Memory at `gpa', which must be RAM. */
void	*host_mem(struct host *h, uint64_t gpa, size_t len);
/* Allocate zeroed memory; `align' must be a power of two. */
uint64_t host_alloc(struct host *h, size_t len, size_t align);

/*
 * Driver: rings.  host_rings() lays out both, and gives every RX descriptor a
 * buffer of `rxbufsize' bytes (256, 512, ... 16384).  host_place_tx() and
 * host_place_rx() write their registers in the usual order, but not RDT.
 * host_up() does all that, posts all buffers but one, sets the link up, and
 * turns both sides on: broadcast accepted, FCS stripped.
 */
void	host_rings(struct host *h, uint32_t ntxd, uint32_t nrxd,
	    uint32_t rxbufsize);
void	host_place_tx(struct host *h);
void	host_place_rx(struct host *h);
void	host_up(struct host *h, uint32_t ntxd, uint32_t nrxd,
	    uint32_t rxbufsize);
/* RCTL's BSIZE and BSEX for a buffer size. */
uint32_t host_rctl_bsize(uint32_t rxbufsize);

union e82545_txd *host_txd(struct host *h, uint32_t n);
struct e82545_rxd *host_rxd(struct host *h, uint32_t n);
/* Put a descriptor at the tail; returns its index.  TDT is not written. */
uint32_t host_tx_desc(struct host *h, const union e82545_txd *txd);
/* A legacy descriptor for memory at `gpa'; `cmd' are E82545_TXD_* bits. */
uint32_t host_tx_legacy(struct host *h, uint64_t gpa, uint16_t len,
	    uint32_t cmd);
/*
 * Copy a frame into memory of its own, as one legacy descriptor with EOP,
 * IFCS, RS and `cmd'.
 */
uint32_t host_tx_frame(struct host *h, const void *data, uint16_t len,
	    uint32_t cmd);
/* Write TDT. */
void	host_tx_go(struct host *h);

/* Whether descriptor `n' was written back. */
bool	host_tx_done(struct host *h, uint32_t n);
bool	host_rx_done(struct host *h, uint32_t n);

/*
 * Take the next packet out of the RX ring: its descriptors' data one after
 * the other into `buf', the last descriptor into *last (if not NULL).
 * Returns its length, or -1 if no complete packet is there.  Clears the
 * descriptors; host_rx_post() posts them again.
 */
ssize_t	host_rx_take(struct host *h, void *buf, size_t size,
	    struct e82545_rxd *last);
/* Write RDT: post all descriptors taken. */
void	host_rx_post(struct host *h);

/* A frame to `dst' with a counting payload, `len' bytes in all. */
void	host_make_frame(uint8_t *frame, size_t len, const uint8_t dst[6],
	    unsigned int seed);

#endif /* !_E82545_HOST_H_ */
