/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A token bucket: see vale_rate.h.
 *
 * The level counts bits or frames in units of 1e-9, so that rate times
 * nanoseconds is exact and no time is lost in divisions.  A bucket has at most
 * 2^32 times 1e9, and owes at most as much; so nothing overflows.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_rate.h>

#define	UNIT		1000000000	/* of r_level: a bit or a frame */
#define	MAX_UNITS	(8ULL * VALE_RATE_BURST_MAX)

_Static_assert(MAX_UNITS <= INT64_MAX / UNIT / 2, "r_level");

/* Return the default burst of a rate. */
static uint32_t
rate_burst(const struct vale_rate_conf *conf)
{
	uint64_t min = VALE_RATE_BURST_FRAMES, n;

	n = conf->rc_rate / VALE_RATE_BURST_PART;
	if (!conf->rc_frames) {
		n /= 8;
		min = VALE_RATE_BURST_BYTES;
	}
	return (MIN(MAX(n, min), VALE_RATE_BURST_MAX));
}

/* Return the cost of `frames' frames with `bytes' bytes in all. */
static int64_t
rate_cost(const struct vale_rate *r, uint64_t frames, uint64_t bytes)
{
	uint64_t n = r->r_conf.rc_frames ? frames : bytes;

	n = MIN(n, VALE_RATE_BURST_MAX);
	return ((int64_t)(r->r_conf.rc_frames ? n : n * 8) * UNIT);
}

int
vale_rate_set(struct vale_rate *r, const struct vale_rate_conf *conf)
{
	struct vale_rate_conf new = *conf;

	if (new.rc_rate > VALE_RATE_MAX || new.rc_burst > VALE_RATE_BURST_MAX)
		return (EINVAL);
	if (new.rc_rate == 0)
		memset(&new, 0, sizeof(new));
	else if (new.rc_burst == 0)
		new.rc_burst = rate_burst(&new);
	if (new.rc_rate == r->r_conf.rc_rate &&
	    new.rc_burst == r->r_conf.rc_burst &&
	    new.rc_frames == r->r_conf.rc_frames)
		return (0);
	r->r_conf = new;
	r->r_level = rate_cost(r, new.rc_burst, new.rc_burst);
	return (0);
}

void
vale_rate_refill(struct vale_rate *r, uint64_t now_ns)
{
	const int64_t full = rate_cost(r, r->r_conf.rc_burst,
	    r->r_conf.rc_burst);
	uint64_t more;

	MPASS(r->r_level <= full);
	if (now_ns <= r->r_last_ns)
		return;
	if (__builtin_mul_overflow(now_ns - r->r_last_ns, r->r_conf.rc_rate,
	    &more) || more > (uint64_t)(full - r->r_level))
		r->r_level = full;
	else
		r->r_level += more;
	r->r_last_ns = now_ns;
}

bool
vale_rate_frame(struct vale_rate *r, uint64_t frames, uint64_t bytes)
{
	MPASS(vale_rate_limited(r));
	if (r->r_level <= 0)
		return (false);
	r->r_level -= rate_cost(r, frames, bytes);
	return (true);
}

/*
 * Parse a number up to `max' with a suffix that multiplies it by a power of
 * `base'.  Returns what follows the number, or NULL.
 */
static const char *
rate_number(const char *p, uint32_t base, uint64_t max, uint64_t *n)
{
	static const char suffix[] = "KMG";
	unsigned int i;

	if (*p < '0' || *p > '9')
		return (NULL);
	for (*n = 0; *p >= '0' && *p <= '9'; p++) {
		*n = *n * 10 + (*p - '0');
		if (*n > max)
			return (NULL);
	}
	for (i = 0; suffix[i] != '\0' && *p != suffix[i]; i++)
		;
	if (suffix[i] == '\0')
		return (p);
	do {
		*n *= base;
		if (*n > max)
			return (NULL);
	} while (i-- > 0);
	return (p + 1);
}

bool
vale_rate_parse(const char *text, struct vale_rate_conf *conf)
{
	const char *p;
	bool frames;
	uint64_t n;

	p = rate_number(text, 1000, VALE_RATE_MAX, &n);
	if (p == NULL)
		return (false);
	frames = strcmp(p, "pkt/s") == 0;
	if (strcmp(p, "Byte/s") == 0)
		n *= 8;
	else if (!frames && strcmp(p, "bit/s") != 0 && strcmp(text, "0") != 0)
		return (false);
	if (n > VALE_RATE_MAX)
		return (false);
	conf->rc_rate = n;
	conf->rc_frames = frames;
	return (true);
}

bool
vale_rate_parse_burst(const char *text, struct vale_rate_conf *conf)
{
	const char *p;
	uint64_t n;

	p = rate_number(text, 1024, VALE_RATE_BURST_MAX, &n);
	if (p == NULL || *p != '\0' || n == 0)
		return (false);
	conf->rc_burst = n;
	return (true);
}
