/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The driver's core in a process: registers through a pair of functions,
 * guest memory at an address, frames counted or handed to a function.  What
 * the core must not do (name a packet twice, a buffer it does not have) is
 * counted as misuse.
 */

#ifndef _LEM_OS_H_
#define	_LEM_OS_H_

#include <sys/cdefs.h>
#include <string.h>
#include <time.h>

struct lem_os {
	/* The adapter. */
	uint32_t	(*reg_read)(void *arg, uint32_t reg);
	void		(*reg_write)(void *arg, uint32_t reg, uint32_t value);
	void		*arg;
	uint64_t	 exit_ns;	/* what an access costs besides */
	uint64_t	 reads, writes;	/* accesses; atomic */

	uint8_t		*ram;		/* gpa 0 */
	uint64_t	 misuses;

	/* Transmit. */
	bool		 tx_owned[LEM_RING_MAX];	/* by slot of EOP */
	uint64_t	 tx_done;	/* packets */

	/* Receive: buffers of the slots, and spare ones. */
	uint64_t	 rx_buf[LEM_RING_MAX];
	uint64_t	 spare[2 * LEM_RING_MAX];
	unsigned int	 nspare;
	bool		 rx_keep;	/* buffers of frames are kept, and */
	bool		 rx_hoard;	/* are not spare again */
	/* Called with a whole frame, if set. */
	void		(*frame)(void *arg, const uint8_t *data, size_t len,
			    const struct lem_rx *rx);
	void		*frame_arg;
	uint8_t		 data[20000];	/* the frame so far, bytes */
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

/* A processor that is away for a while. */
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

	__atomic_fetch_add(&os->reads, 1, __ATOMIC_RELAXED);
	lem_os_spin(os->exit_ns);
	return (os->reg_read(os->arg, reg));
}

static inline void
lem_os_write(struct lem_core *lc, uint32_t reg, uint32_t value)
{
	struct lem_os *os = LEM_OS(lc);

	__atomic_fetch_add(&os->writes, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	lem_os_spin(os->exit_ns);
	os->reg_write(os->arg, reg, value);
}

static inline void
lem_os_delay(struct lem_core *lc __unused, unsigned int us __unused)
{
}

static inline void
lem_os_mb(void)
{

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void
lem_os_rmb(void)
{

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static inline void
lem_os_wmb(void)
{

	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void
lem_os_txring_sync(struct lem_core *lc __unused, bool before __unused)
{
}

static inline void
lem_os_rxring_sync(struct lem_core *lc __unused, bool before __unused)
{
}

static inline void
lem_os_tx_done(struct lem_core *lc, uint32_t slot)
{
	struct lem_os *os = LEM_OS(lc);

	if (slot >= LEM_RING_MAX || !os->tx_owned[slot])
		os->misuses++;
	else
		os->tx_owned[slot] = false;
	os->tx_done++;
}

static inline uint64_t
lem_os_rx_buf(struct lem_core *lc, uint32_t slot)
{
	struct lem_os *os = LEM_OS(lc);

	if (os->rx_buf[slot] == 0 && os->nspare > 0)
		os->rx_buf[slot] = os->spare[--os->nspare];
	return (os->rx_buf[slot]);
}

static inline bool
lem_os_rx(struct lem_core *lc, uint32_t slot, const struct lem_rx *rx)
{
	struct lem_os *os = LEM_OS(lc);
	uint64_t gpa = os->rx_buf[slot];

	if (gpa == 0 || os->len + rx->len > sizeof(os->data)) {
		os->misuses++;
		return (false);
	}
	if (os->frame != NULL) {
		memcpy(os->data + os->len, os->ram + gpa, rx->len);
		os->len += rx->len;
		if (rx->eop) {
			os->frame(os->frame_arg, os->data, os->len, rx);
			os->len = 0;
		}
	}
	if (!os->rx_keep)
		return (false);
	if (!os->rx_hoard)
		os->spare[os->nspare++] = gpa;
	os->rx_buf[slot] = 0;
	return (true);
}

static inline void
lem_os_rx_drop(struct lem_core *lc)
{
	struct lem_os *os = LEM_OS(lc);

	os->len = 0;
	os->rx_dropped++;
}

#endif /* !_LEM_OS_H_ */
