/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: the requests for a reload, VALE_WIRE_RELOAD and
 * VALE_WIRE_REPLACE, and for a restart, VALE_WIRE_RESTART.  The main thread
 * carries them out; the connection's thread waits for the end of one that began
 * after the request, and answers.  If the client leaves meanwhile, its
 * connection is closed after that.  A restart ends, for them, when it is known
 * that it is possible.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/queue.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "ctl_impl.h"

/* A connection that waits, on its thread's stack. */
struct reload_wait {
	TAILQ_ENTRY(reload_wait) rw_link;
	bool		rw_began;
	bool		rw_ended;
	char		rw_why[CTL_RELOAD_WHY_SIZE];
};

static int reload_fd = -1;
static pthread_mutex_t reload_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t reload_ended = PTHREAD_COND_INITIALIZER;
static TAILQ_HEAD(, reload_wait) reload_waits[CTL_NWISHES] = {
	TAILQ_HEAD_INITIALIZER(reload_waits[CTL_RESTART]),
	TAILQ_HEAD_INITIALIZER(reload_waits[CTL_REPLACE]),
	TAILQ_HEAD_INITIALIZER(reload_waits[CTL_RELOAD]),
};

int
ctl_reload_start(void)
{
	reload_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return (reload_fd == -1 ? errno : 0);
}

int
ctl_reload_fd(void)
{
	return (reload_fd);
}

/*
 * Return the first wish for which somebody waits and that has not begun, or
 * CTL_NWISHES.  reload_lock held.
 */
static enum ctl_wish
reload_next(void)
{
	const struct reload_wait *rw;
	enum ctl_wish wish;

	for (wish = 0; wish < CTL_NWISHES; wish++)
		TAILQ_FOREACH(rw, &reload_waits[wish], rw_link)
			if (!rw->rw_began)
				return (wish);
	return (CTL_NWISHES);
}

enum ctl_wish
ctl_reload_wish(void)
{
	enum ctl_wish wish;

	pthread_mutex_lock(&reload_lock);
	wish = MIN(reload_next(), CTL_RELOAD);
	pthread_mutex_unlock(&reload_lock);
	return (wish);
}

void
ctl_reload_begin(enum ctl_wish wish)
{
	struct reload_wait *rw;
	uint64_t n;

	pthread_mutex_lock(&reload_lock);
	/* There may be no request: errors do not matter. */
	(void)!read(reload_fd, &n, sizeof(n));
	TAILQ_FOREACH(rw, &reload_waits[wish], rw_link)
		rw->rw_began = true;
	n = 1;
	if (reload_next() != CTL_NWISHES)
		(void)!write(reload_fd, &n, sizeof(n));
	pthread_mutex_unlock(&reload_lock);
}

void
ctl_reload_end(enum ctl_wish wish, const char *why)
{
	struct reload_wait *next, *rw;

	pthread_mutex_lock(&reload_lock);
	TAILQ_FOREACH_SAFE(rw, &reload_waits[wish], rw_link, next) {
		if (!rw->rw_began)
			continue;
		TAILQ_REMOVE(&reload_waits[wish], rw, rw_link);
		strlcpy(rw->rw_why, why, sizeof(rw->rw_why));
		rw->rw_ended = true;
	}
	pthread_cond_broadcast(&reload_ended);
	pthread_mutex_unlock(&reload_lock);
}

/* Ask the main thread, and wait for its answer. */
int
ctl_reload(struct ctl_conn *cc, size_t *size)
{
	const uint16_t type = cc->cc_wire->vw_header.nr_reqtype;
	const enum ctl_wish wish = type == VALE_WIRE_RESTART ? CTL_RESTART :
	    type == VALE_WIRE_REPLACE ? CTL_REPLACE : CTL_RELOAD;
	struct reload_wait rw = { .rw_began = false };
	const uint64_t one = 1;
	int error = 0;

	pthread_mutex_lock(&reload_lock);
	if (write(reload_fd, &one, sizeof(one)) == -1)
		error = errno;
	else
		TAILQ_INSERT_TAIL(&reload_waits[wish], &rw, rw_link);
	while (error == 0 && !rw.rw_ended)
		pthread_cond_wait(&reload_ended, &reload_lock);
	pthread_mutex_unlock(&reload_lock);
	if (error != 0)
		return (ctl_why_errno(cc, error));
	*size = strlen(rw.rw_why);
	memcpy(cc->cc_body, rw.rw_why, *size);
	return (0);
}
