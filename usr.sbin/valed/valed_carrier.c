/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Carriers of attached interfaces: once a second the switches are told which of
 * their ports are uplinks, and which of these have one (vale_set_carrier()).
 *
 * That may wait for a guest whose client withholds its memory, so a thread does
 * it for which nobody waits.  The first interface starts it, in the sandbox.
 */

#include <sys/prctl.h>

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "hostif.h"
#include "libvale.h"
#include "valed_carrier.h"

#define	STACK	(256 * 1024)

/* The interfaces as they are now. */
struct carriers {
	unsigned int	cr_n;
	struct {
		char	port[VALE_NAME_SIZE];
		bool	up;
	} cr_of[HOSTIF_MAX];
};

/* Now, and a second before: the main thread's. */
static struct carriers carrier_now, carrier_before;

/* What the thread has to tell, with its lock. */
static pthread_mutex_t carrier_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t carrier_cond = PTHREAD_COND_INITIALIZER;
static struct carriers carrier_told;
static bool carrier_news;

static void *
carrier_thread(void *arg __unused)
{
	static struct carriers told;
	unsigned int i;

	prctl(PR_SET_NAME, "carrier");
	for (;;) {
		pthread_mutex_lock(&carrier_lock);
		while (!carrier_news)
			pthread_cond_wait(&carrier_cond, &carrier_lock);
		carrier_news = false;
		told = carrier_told;
		pthread_mutex_unlock(&carrier_lock);
		/* A port that has been detached meanwhile is not there. */
		for (i = 0; i < told.cr_n; i++)
			(void)vale_set_carrier(told.cr_of[i].port,
			    told.cr_of[i].up);
	}
	return (NULL);
}

static bool
carrier_start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	error = pthread_create(&thread, &attr, carrier_thread, NULL);
	pthread_attr_destroy(&attr);
	return (error == 0);
}

static void
carrier_note(struct hostif *hi, void *arg)
{
	struct carriers *now = arg;

	if (now->cr_n == HOSTIF_MAX)
		return;
	strlcpy(now->cr_of[now->cr_n].port, hostif_port_name(hi),
	    VALE_NAME_SIZE);
	now->cr_of[now->cr_n++].up = hostif_up(hi);
}

void
valed_carrier_watch(void)
{
	static bool started;

	carrier_before = carrier_now;
	carrier_now.cr_n = 0;
	hostif_each(carrier_note, &carrier_now);
	/* The switch forgets a port that is closed. */
	if (carrier_now.cr_n == 0)
		return;
	if (!started)
		started = carrier_start();
	pthread_mutex_lock(&carrier_lock);
	carrier_told = carrier_now;
	carrier_news = true;
	pthread_cond_signal(&carrier_cond);
	pthread_mutex_unlock(&carrier_lock);
}

/* Return whether a port was an uplink with a carrier a second before. */
static bool
was_up(const char *port)
{
	unsigned int i;

	for (i = 0; i < carrier_before.cr_n; i++)
		if (strcmp(carrier_before.cr_of[i].port, port) == 0)
			return (carrier_before.cr_of[i].up);
	return (false);
}

bool
valed_carrier_of(const char *port, bool *came)
{
	const size_t len = strcspn(port, ":") + 1;
	const char *uplink;
	unsigned int i;
	bool up = false;

	*came = false;
	for (i = 0; i < carrier_now.cr_n; i++) {
		uplink = carrier_now.cr_of[i].port;
		if (!carrier_now.cr_of[i].up || strncmp(uplink, port, len) != 0)
			continue;
		up = true;
		*came |= !was_up(uplink);
	}
	return (up);
}
