/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Adapters that come, change and go while valed serves others:
 * valed_adapters.h.  The sandbox allows a thread to be started, and all that a
 * VALE port takes.
 */

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "adapter.h"
#include "ctl_names.h"
#include "ctl_owner.h"
#include "libvale.h"
#include "valed_adapters.h"
#include "valed_serve.h"
#include "valed_watch.h"

/* How often to check whether a thread has ended. */
#define	POLL_MS		10

/* Listening sockets of removed adapters, until the reload ends. */
static struct {
	char	path[sizeof(((struct adapter_config *)0)->ac_path)];
	int	fd;
} kept[VALED_MAXADAPTERS];
static unsigned int nkept;

/* Take the listening socket of a removed adapter with this path. */
static int
kept_take(const char *path)
{
	unsigned int i;
	int fd;

	for (i = 0; i < nkept; i++) {
		if (strcmp(kept[i].path, path) == 0) {
			fd = kept[i].fd;
			kept[i].fd = -1;
			return (fd);
		}
	}
	return (-1);
}

static void
kept_close(void)
{
	while (nkept > 0) {
		if (kept[--nkept].fd != -1)
			close(kept[nkept].fd);
	}
}

static struct adapter *
adapter_at(const struct adapter_config *ac)
{
	struct adapter *ad;

	TAILQ_FOREACH(ad, &valed_adapters, link)
		if (valed_place(&ad->config) == valed_place(ac))
			return (ad);
	return (NULL);
}

unsigned int
valed_adapters_copy(struct adapter_config *all)
{
	const struct adapter *ad;
	unsigned int n = 0;

	TAILQ_FOREACH(ad, &valed_adapters, link)
		all[n++] = ad->config;
	return (n);
}

/*
 * Return whether a port that no adapter has is open or being opened, or
 * captured: a monitor outlasts the port.  When the name is reserved, no other
 * program can begin to do that.
 */
static bool
taken(const char *port)
{
	uint64_t counters[VALE_NCOUNTERS];
	const struct adapter *ad;

	TAILQ_FOREACH(ad, &valed_adapters, link)
		if (strcmp(ad->config.ac_backend, port) == 0)
			return (false);
	/* The port of an interface is there before its claim ends. */
	return (ctl_owner_taken(port, true) ||
	    vale_port_counters(port, counters) == 0);
}

bool
valed_adapters_reserve(const struct adapter_config *ac)
{
	ctl_names_reserve(valed_place(ac), ac->ac_backend);
	if (!taken(ac->ac_backend))
		return (true);
	ctl_names_unreserve(valed_place(ac));
	return (false);
}

void
valed_adapters_end(void)
{
	kept_close();
	ctl_names_end();
}

bool
valed_adapters_add(const struct adapter_config *ac)
{
	struct adapter_config config = *ac;
	struct adapter *ad;

	ctl_names_add(valed_place(ac));
	if (config.ac_listen == -1)
		config.ac_listen = kept_take(config.ac_path);
	ad = adapter_start(&config, valed_serve_watch);
	if (ad == NULL) {
		close(config.ac_listen);
		if (valed_is_remote(&config))
			close(config.ac_opener);
		return (false);
	}
	valed_watch_add(ad);
	adapter_go(ad);
	return (true);
}

void
valed_adapters_remove(const struct adapter_config *ac)
{
	struct adapter *ad = adapter_at(ac);

	ctl_names_remove(valed_place(ac));
	if (ad == NULL)
		return;
	valed_watch_remove(ad);
	strlcpy(kept[nkept].path, ad->config.ac_path, sizeof(kept->path));
	kept[nkept++].fd = ad->config.ac_listen;
	adapter_stop(ad);
	while (!adapter_ended(ad)) {
		poll(NULL, 0, POLL_MS);
		valed_serve_watch(ad);
	}
}

void
valed_adapters_change(const struct adapter_config *ac)
{
	struct adapter *ad = adapter_at(ac);

	if (ad != NULL)
		adapter_change(ad, ac);
}

bool
valed_adapters_move(const struct adapter_config *ac)
{
	struct adapter *ad = adapter_at(ac);
	const bool moved = ad != NULL && adapter_move(ad, ac,
	    valed_serve_watch) == 0;

	if (!moved)
		ctl_names_unreserve(valed_place(ac));
	else if (strcmp(ac->ac_backend, ADAPTER_NET_NONE) != 0)
		ctl_names_move(valed_place(ac));
	return (moved);
}

bool
valed_adapters_client(const struct adapter_config *ac)
{
	const struct adapter *ad = adapter_at(ac);

	return (ad != NULL && atomic_load_64(&ad->since_s) != 0);
}
