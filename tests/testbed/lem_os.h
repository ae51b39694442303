/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The host of the driver's core in a process: registers are functions, guest
 * memory is at an address, frames are counted or passed to a function.  Errors
 * of the core, such as to return a packet twice or to use a buffer that it does
 * not own, count as misuses.
 */

#ifndef _LEM_OS_H_
#define	_LEM_OS_H_

#include <sys/cdefs.h>
#include <sys/systm.h>

#include <time.h>

/* State of a TX slot. */
#define	OS_TX_NONE	0
#define	OS_TX_FIRST	1		/* of a packet's descriptors */
#define	OS_TX_MORE	2

struct lem_os {
	/* The adapter. */
	uint32_t	(*reg_read)(void *arg, uint32_t reg);
	void		(*reg_write)(void *arg, uint32_t reg, uint32_t value);
	void		*arg;
	uint64_t	 exit_ns;	/* extra cost of an access */
	uint64_t	 reads, writes;	/* accesses; atomic */
	pthread_mutex_t	*tx_lock, *rx_lock;	/* asserted; or NULL */

	uint8_t		*ram;		/* gpa 0 */
	void		(*tx_hook)(void); /* called by the functions of the
					   transmit ring, if set */
	uint64_t	 delayed_us;	/* by lem_os_delay() */
	bool		(*idle)(void);	/* lem_os_idle(); NULL: true */
	uint64_t	 misuses;

	/* Transmit. */
	uint8_t		 tx_slot[LEM_RING_MAX];	/* OS_TX_* */
	uint64_t	 tx_done;	/* packets */

	/* Receive: buffers of the slots, and spare ones. */
	uint64_t	 rx_buf[LEM_RING_MAX];
	uint64_t	 spare[2 * LEM_RING_MAX];
	unsigned int	 nspare;
	uint64_t	 rx_bufs;	/* calls of lem_os_rx_buf() */
	bool		 rx_keep;	/* take the buffers of frames, */
	bool		 rx_hoard;	/* and do not reuse them */
	/* Called with each frame, if set. */
	void		(*frame)(void *arg, const uint8_t *data, size_t len,
			    uint32_t flags, uint16_t vlan);
	void		*frame_arg;
	uint8_t		 data[70000];	/* the frame so far, bytes */
	size_t		 len;
	uint64_t	 rx_dropped;	/* frames begun and dropped */
};

static inline uint64_t
lem_os_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * 1000000000ULL + ts.tv_nsec);
}

/* Keep the processor busy. */
static inline void
lem_os_spin(uint64_t ns)
{
	uint64_t until;

	if (ns == 0)
		return;
	until = lem_os_now() + ns;
	while (lem_os_now() < until)
		continue;
}

static inline uint32_t
lem_os_read(struct lem_core *lc, uint32_t reg)
{
	struct lem_os *os = LEM_OS(lc);

	atomic_add_64(&os->reads, 1);
	lem_os_spin(os->exit_ns);
	return (os->reg_read(os->arg, reg));
}

static inline void
lem_os_write(struct lem_core *lc, uint32_t reg, uint32_t value)
{
	struct lem_os *os = LEM_OS(lc);

	atomic_add_64(&os->writes, 1);
	atomic_thread_fence_rel();
	lem_os_spin(os->exit_ns);
	os->reg_write(os->arg, reg, value);
}

static inline void
lem_os_delay(struct lem_core *lc, unsigned int us)
{
	LEM_OS(lc)->delayed_us += us;
}

static inline bool
lem_os_idle(struct lem_core *lc)
{
	return (LEM_OS(lc)->idle == NULL || LEM_OS(lc)->idle());
}

/* Tests with one thread have no locks. */
static inline void
lem_os_assert_tx(const struct lem_core *lc)
{
	const struct lem_os *os = (const void *)lc;

	if (os->tx_lock != NULL)
		mtx_assert(os->tx_lock, MA_OWNED);
	if (os->tx_hook != NULL)
		os->tx_hook();
}

static inline void
lem_os_assert_rx(const struct lem_core *lc)
{
	const struct lem_os *os = (const void *)lc;

	if (os->rx_lock != NULL)
		mtx_assert(os->rx_lock, MA_OWNED);
}

static inline void
lem_os_tx_done(struct lem_core *lc, uint32_t slot)
{
	struct lem_os *os = LEM_OS(lc);

	if (slot >= LEM_RING_MAX || os->tx_slot[slot] == OS_TX_NONE) {
		os->misuses++;
		return;
	}
	os->tx_done += os->tx_slot[slot] == OS_TX_FIRST;
	os->tx_slot[slot] = OS_TX_NONE;
}

static inline uint64_t
lem_os_rx_buf(struct lem_core *lc, uint32_t slot)
{
	struct lem_os *os = LEM_OS(lc);

	os->rx_bufs++;
	if (os->rx_buf[slot] == 0 && os->nspare > 0)
		os->rx_buf[slot] = os->spare[--os->nspare];
	return (os->rx_buf[slot]);
}

static inline bool
lem_os_rx(struct lem_core *lc, uint32_t slot, uint32_t len, uint32_t flags,
    uint16_t vlan)
{
	struct lem_os *os = LEM_OS(lc);
	uint64_t gpa = os->rx_buf[slot];

	if ((flags & LEM_RX_OFFLOAD) != 0 &&
	    (flags & (LEM_RX_EOP | LEM_RX_BAD)) != LEM_RX_EOP)
		os->misuses++;
	if ((flags & LEM_RX_SOP) != 0)
		os->len = 0;
	if ((flags & LEM_RX_BAD) != 0) {
		os->misuses += len != 0;
		os->rx_dropped += os->len > 0;
		os->len = 0;
		return (false);
	}
	if (gpa == 0 || os->len + len > sizeof(os->data)) {
		os->misuses++;
		return (false);
	}
	if (os->frame != NULL) {
		memcpy(os->data + os->len, os->ram + gpa, len);
		os->len += len;
		if ((flags & LEM_RX_EOP) != 0)
			os->frame(os->frame_arg, os->data, os->len, flags,
			    vlan);
	}
	if (!os->rx_keep)
		return (false);
	if (!os->rx_hoard)
		os->spare[os->nspare++] = gpa;
	os->rx_buf[slot] = 0;
	return (true);
}

#endif /* !_LEM_OS_H_ */
