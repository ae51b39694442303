/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One guest with em(4) and em_pv(4) on the host of the model's tests
 * (e82545_host.h), on an iflib(4) of our own that calls a driver in the same
 * order as FreeBSD's, and a clock that stands still.  There is one guest at a
 * time.  Its frames carry their number.  A test calls all from one thread;
 * or one thread sends and runs em_tx_task(), one runs em_rx_task(), one
 * em_interrupt(), and one sets knobs and injects frames.
 */

#ifndef _EM_PV_GUEST_H_
#define	_EM_PV_GUEST_H_

#include "e82545_host.h"
#include "if_em.h"

#define	EM_RING		256		/* descriptors of each ring */
#define	EM_BUDGET	16		/* frames that a receive task takes */
#define	EM_LEN		60		/* bytes of a frame: the least, */
#define	EM_LEN_MAX	9018		/* the most */
#define	EM_PAUSE_NS	250000		/* until em_rx_callout() is due */
#define	EM_BUF		4096		/* bytes of a receive buffer, at most */
#define	EM_QUEUES	2		/* with MSI-X */
#define	EM_SYSCTLS	20
#define	EM_PROBES	10

struct iflib_ctx {
	kobj_class_t	 cls;
	void		*softc;
	struct if_softc_ctx scctx;
	struct sx	 lock;
	struct em_ifnet	 ifnet;
};

struct em_sysctl {
	const char	*name;
	void		*arg1;
	intmax_t	 arg2;
	int		(*handler)(SYSCTL_HANDLER_ARGS);
};

struct em_config {
	enum e82545_kind kind;
	enum iflib_intr	 intr;
	bool		 no_csb;	/* the adapter has none */
	unsigned int	 fail;		/* the n-th call that may fail does */
	const char	*tunable;	/* that loader.conf(5) sets, */
	u_int		 value;		/* and its value */
	/*
	 * em(4)'s values of ITR: with AIM this one, which is even, and the next
	 * (0: no such variable); without.
	 */
	uint32_t	 aim, no_aim;
};

/* iflib's state of a pair of queues. */
struct em_queue {
	bool		 tx_task, rx_task;	/* queued */
	unsigned int	 queued;	/* packets not in the ring yet */
	unsigned int	 in_use, db_pending, rs_pending;
	qidx_t		 pidx;
	qidx_t		 rx_cidx, rx_pidx;
	unsigned int	 rx_credits;
	bool		 tx_notified, rx_notified;	/* a netmap program */
	unsigned int	 served;	/* messages */
	uint32_t	 itr_setting;	/* em(4)'s idea of ITR */
	bool		 published;	/* there are packets for it to count */

	uint64_t	 txring, rxring, txbuf, rxbuf;	/* gpa */
	uint32_t	 posted, sent, injected, received;
	bool		 tx_resync, rx_resync;	/* after a stop: may be lost */
};

struct em_probe {
	const char	*name;
	unsigned int	 count, sum;
};

struct em_guest {
	struct host	*h;
	struct em_config config;
	struct em_device device;
	struct iflib_ctx ctx;
	struct e1000_softc *sc;
	struct em_sysctl sysctls[EM_SYSCTLS];
	unsigned int	 nsysctls;
	struct sysctl_ctx_list em_sysctls;	/* em(4)'s: without AIM, itr */
	struct sysctl_ctx_entry em_entry[2];
	struct sysctl_oid em_oid[2];
	struct callout	*callout, *rx_callout;	/* polls; the end of a pause */
	struct mtx	*mtx;
	unsigned int	 ndma;		/* allocations that are not freed */
	const struct paravirt_csb *csb;	/* the first one */
	const uint8_t	*freed;		/* the last one that is */

	/* iflib's. */
	bool		 running, admin_task;
	unsigned int	 ntasks;	/* that have run */
	bool		 netmap;	/* a program has the rings */
	unsigned int	 resets;	/* requested */
	unsigned int	 calls;		/* that may fail */
	bool		 attached;	/* IFDI_DETACH is to come */
	unsigned int	 others_served;	/* messages for all else */
	unsigned int	 links;		/* looks of em(4) at the link */
	unsigned int	 updates;	/* of em(4)'s statistics */
	bool		 aim_on;
	struct em_queue	 q[EM_QUEUES];
	uint64_t	 frame_ns;	/* the stack's time for a frame */

	/* Frames. */
	unsigned int	 len;		/* the most bytes of one */
	unsigned int	 rx_queue;	/* that gets injected frames */
	uint32_t	 wrong;		/* out of order, or of other contents */
	/* The last frame that is not of em_inject(): long, or partial. */
	struct if_rxd_info other;
	unsigned int	 others;
	uint32_t	 other_bytes;	/* of its buffers */

	/* Accesses to registers. */
	unsigned int	 reads[E82545_BAR_MEM_SIZE / 4];
	unsigned int	 writes[E82545_BAR_MEM_SIZE / 4];
	unsigned int	 when[E82545_BAR_MEM_SIZE / 4];	/* last write */
	unsigned int	 accesses;
	uint32_t	 icr;		/* what the next read returns, or 0 */
	int		 copy_error;	/* of a knob's new value */
	int		 rx_error;	/* of em(4), for a frame */
	uint32_t	 rx_flags;	/* what em(4) says of checksums */

	/* Called before em_pv's lock is taken and after it is let go. */
	void		(*lock_hook)(struct em_guest *);
	/* Called after a register is written. */
	void		(*reg_hook)(struct em_guest *, uint32_t);
	bool		 in_hook;
	struct em_probe	 probes[EM_PROBES];
	/* Called by sched_runnable(), which returns false without. */
	bool		(*runnable)(struct em_guest *);
	/* Called while a knob waits for the lock. */
	void		(*pause_hook)(struct em_guest *);
};

/* The guest that there is, or NULL. */
extern struct em_guest *guest;

/*
 * Attach; NULL if that fails.  em_up() starts the interface, and em_down()
 * stops it.
 */
struct em_guest *em_create(const struct em_config *config);
void	em_up(struct em_guest *g);
void	em_down(struct em_guest *g);
/*
 * Resume, or change the media; em_down() and em_up() follow, and the stack may
 * send and receive before.
 */
void	em_restart(struct em_guest *g, bool media);
/* Detach, and check that nothing is left. */
void	em_destroy(struct em_guest *g);

/* em(4)'s functions of the rings. */
extern struct if_txrx em_base_txrx;

/* em(4)'s part of attach and detach, and its filters of MSI-X. */
int	em_tx_queues_alloc(if_ctx_t ctx);
void	em_queues_free(if_ctx_t ctx);
void	em_msix_intr_assign(struct e1000_softc *sc);
void	em_msix_que(unsigned int q);
void	em_msix_link(struct e1000_softc *sc);

/* Whether a call that may fail does: the n-th, as the configuration says. */
bool	em_fails(void);

/* A knob: returns its errno.  A counter, or a knob. */
int	em_set(struct em_guest *g, const char *name, u_int value);
u_long	em_get(struct em_guest *g, const char *name);

/* Give packets to the stack's queue, each by itself; to another one. */
void	em_send(struct em_guest *g, unsigned int n);
void	em_send_q(struct em_guest *g, unsigned int q, unsigned int n);
/* The same for a program with netmap: one flush for all. */
void	em_netmap_send(struct em_guest *g, unsigned int n);
/* Have the program take at most `n' frames. */
void	em_netmap_receive(struct em_guest *g, unsigned int n);
/* With RSS all frames from now on are for this queue. */
void	em_rx_queue(struct em_guest *g, unsigned int q);
/* Frames from the network. */
void	em_inject(struct em_guest *g, unsigned int n);
/*
 * A frame of TCP over IPv4, of `len' bytes, with a partial checksum, to be cut
 * if mss is not 0.
 */
void	em_inject_partial(struct em_guest *g, uint32_t len, uint16_t mss);
/* What the admin task of iflib(4) does; a reset that was requested follows. */
void	em_admin(struct em_guest *g);

/* One step of each kind; false if there is none. */
bool	em_interrupt(struct em_guest *g);
bool	em_tx_task(struct em_guest *g);
bool	em_rx_task(struct em_guest *g);
bool	em_poll(struct em_guest *g);
bool	em_rx_callout(struct em_guest *g);
/* All steps, until nothing is left to do.  The clock stands still. */
void	em_settle(struct em_guest *g);

/* Check that all frames came and went in order. */
void	em_check(struct em_guest *g);
/* How often a probe has fired, and the sum of its second argument. */
unsigned int em_fired(struct em_guest *g, const char *probe);
unsigned int em_fired_sum(struct em_guest *g, const char *probe);

/* Forget the accesses so far. */
void	em_mark(struct em_guest *g);
unsigned int em_wrote(const struct em_guest *g, uint32_t reg);
unsigned int em_read(const struct em_guest *g, uint32_t reg);

#endif /* !_EM_PV_GUEST_H_ */
