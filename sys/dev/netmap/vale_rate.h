/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A token bucket: the limit of what one sender may send.  The user-space switch
 * (lib/libvale) and vale_learn(4) have one for each sender.
 *
 * The bucket has no lock: one thread at a time may use it.  vale_rate_set()
 * must be called while no other thread does: the switches stop their senders
 * for a change, so it takes effect as a whole.
 * Time is an argument: nanoseconds of a monotonic clock.  A clock that stands
 * still, or goes back by a tick, adds no tokens.
 */

#ifndef _DEV_NETMAP_VALE_RATE_H_
#define	_DEV_NETMAP_VALE_RATE_H_

#include <sys/param.h>
#include <sys/systm.h>
#include <dev/netmap/vale_rate_conf.h>

/* Private to vale_rate.c, except that the caller allocates it, zeroed. */
struct vale_rate {
	struct vale_rate_conf r_conf;	/* with a burst that is not 0 */
	int64_t		r_level;	/* 1e-9 bits or frames; negative:
					   owed */
	uint64_t	r_last_ns;	/* until then tokens were added */
};

/*
 * Set the limit.  Returns 0, or EINVAL if `conf' is out of range.  The bucket
 * is full then, unless `conf' is the same as before: then nothing changes.
 */
int	vale_rate_set(struct vale_rate *r, const struct vale_rate_conf *conf);

/* Return whether the sender has a limit, as the next two functions require. */
static inline bool
vale_rate_limited(const struct vale_rate *r)
{
	return (r->r_conf.rc_rate != 0);
}

/* Add the tokens that are due.  To be called once a batch. */
void	vale_rate_refill(struct vale_rate *r, uint64_t now_ns);

/*
 * Take a frame, sent as `frames' segments of `bytes' bytes in all: 1 segment if
 * the frame is not cut.  A frame passes if the bucket is not empty, and may take
 * more than there is: the bucket owes the rest.  So a frame of any length passes,
 * and in any time the sender exceeds rate times time plus burst by less than one
 * frame.  Returns false if the caller must drop the frame.
 */
bool	vale_rate_frame(struct vale_rate *r, uint64_t frames, uint64_t bytes);

/*
 * Set rc_rate and rc_frames to what `text' says: a decimal number, followed by
 * K, M or G for powers of 1000 or nothing, and one of the units bit/s, Byte/s
 * and pkt/s; or "0", for no limit.  Set rc_burst: a decimal number, followed by
 * K, M or G for powers of 1024 or nothing.  True, or false if the text is
 * invalid or the value out of range; `conf' is unchanged then.
 */
bool	vale_rate_parse(const char *text, struct vale_rate_conf *conf);
bool	vale_rate_parse_burst(const char *text, struct vale_rate_conf *conf);

#endif /* !_DEV_NETMAP_VALE_RATE_H_ */
