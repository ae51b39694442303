/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Adapters that come, change and go while valed serves others, settings, and
 * attached interfaces.  The guard has read and checked the configuration
 * (valed_guard.c); this process trusts it, and knows an adapter by its place.
 * The sandbox allows a thread to be started, and all that a VALE port takes.
 */

#include <sys/param.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter.h"
#include "ctl_names.h"
#include "ctl_owner.h"
#include "hostif.h"
#include "libvale.h"
#include "vale_setting.h"
#include "valed_guard.h"
#include "valed_reload.h"
#include "valed_watch.h"

/* How often to check whether a thread has ended. */
#define	POLL_MS		10

/* Listening sockets of removed adapters, until the reload ends. */
static struct {
	char	path[sizeof(((struct adapter_config *)0)->ac_path)];
	int	fd;
} kept[VALED_MAXADAPTERS];
static unsigned int nkept;

/* The listening socket of a removed adapter with this path. */
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
adapter_at(struct adapter_list *adapters, const struct adapter_config *place)
{
	struct adapter *ad;

	TAILQ_FOREACH(ad, adapters, link) {
		if (ad->config.ac_bus == place->ac_bus &&
		    ad->config.ac_slot == place->ac_slot &&
		    ad->config.ac_func == place->ac_func)
			return (ad);
	}
	return (NULL);
}

/*
 * Whether a program captures what has this name: a monitor outlasts its port.
 * It cannot begin to, once the name is reserved.
 */
static bool
captured(const char *port)
{
	const struct ctl_who admin = { .cw_admin = true };
	struct ctl_owner ow;

	if (ctl_owner_claim(&ow, port, &admin, false) != 0)
		return (true);
	ctl_owner_leave(&ow);
	return (false);
}

/* Whether a port is open that no adapter has. */
static bool
taken(const char *port, const struct adapter_list *adapters)
{
	uint64_t counters[VALE_NCOUNTERS];
	const struct adapter *ad;

	TAILQ_FOREACH(ad, adapters, link)
		if (strcmp(ad->config.ac_backend, port) == 0)
			return (false);
	return (vale_port_counters(port, counters) == 0 || captured(port));
}

/* Reserve the port of an adapter that is to be added. */
static int
reserve(const struct valed_change *vc, const struct adapter_list *adapters)
{
	const struct adapter_config *ac = &vc->vc_config;
	int error = ctl_names_reserve(valed_place(ac), ac->ac_backend);

	if (error == 0 && taken(ac->ac_backend, adapters)) {
		ctl_names_unreserve(valed_place(ac));
		error = EBUSY;
	}
	return (error);
}

static int
add(const struct valed_change *vc, struct adapter_list *adapters,
    void (*watch)(struct adapter *))
{
	struct adapter_config config = vc->vc_config;
	struct adapter *ad;
	int error;

	if (vc->vc_lost) {
		errno = EMFILE;
		warn("%s", config.ac_name);
		if (config.ac_listen != -1)
			close(config.ac_listen);
		return (EMFILE);
	}
	if (config.ac_listen == -1)
		config.ac_listen = kept_take(config.ac_path);
	ad = adapter_start(&config, watch);
	if (ad == NULL) {
		error = errno;
		close(config.ac_listen);
		if (valed_is_remote(&config))
			close(config.ac_opener);
		return (error);
	}
	TAILQ_INSERT_TAIL(adapters, ad, link);
	valed_watch_add(ad);
	adapter_go(ad);
	return (0);
}

static void
remove_at(const struct adapter_config *place, struct adapter_list *adapters,
    void (*watch)(struct adapter *))
{
	struct adapter *ad;

	ad = adapter_at(adapters, place);
	if (ad == NULL)		/* it could not be added */
		return;
	TAILQ_REMOVE(adapters, ad, link);
	valed_watch_remove(ad);
	strlcpy(kept[nkept].path, ad->config.ac_path, sizeof(kept->path));
	kept[nkept++].fd = ad->config.ac_listen;
	adapter_stop(ad);
	while (!adapter_ended(ad)) {
		poll(NULL, 0, POLL_MS);
		watch(ad);
	}
}

/* Whether the adapter has a client. */
static int
ask(const struct adapter_config *place, struct adapter_list *adapters)
{
	const struct adapter *ad = adapter_at(adapters, place);

	return (ad != NULL && atomic_load_64(&ad->since_s) != 0 ? EISCONN : 0);
}

/* Its other name is reserved, if it has not had it before. */
static int
move(const struct adapter_config *ac, struct adapter_list *adapters,
    void (*watch)(struct adapter *))
{
	struct adapter *ad = adapter_at(adapters, ac);
	const int error = ad == NULL ? ENOENT : adapter_move(ad, ac, watch);

	if (error != 0)
		ctl_names_unreserve(valed_place(ac));
	else if (strcmp(ac->ac_backend, ADAPTER_NET_NONE) != 0)
		ctl_names_move(valed_place(ac));
	return (error);
}

static int
set(const struct valed_change *vc)
{
	unsigned int failed;

	return (vale_setting_keep_all(vc->vc_name, vc->vc_change,
	    vc->vc_nchanges, &failed) == 0 ? 0 : errno + VALED_FAILED * failed);
}

/* Attach an interface, unless a program captures what has the port's name. */
static int
attach(struct valed_change *vc)
{
	const char *port = vc->vc_config.ac_backend;
	char why[256] = "";
	int error = 0;

	const bool named = ctl_names_hostif(port);

	if (vc->vc_lost)
		error = EMFILE;
	else if (captured(port))
		error = EBUSY;
	else if (!hostif_attach(port, &vc->vc_hostif, why, sizeof(why)))
		error = errno;
	if (why[0] != '\0' && error != EEXIST)
		warnx("%s", why);
	if (error != 0)
		hostif_close(&vc->vc_hostif);
	if (error != 0 && error != EEXIST && named)
		ctl_names_hostif_remove(port);
	return (error);
}

static int
detach(const struct valed_change *vc)
{
	ctl_names_hostif_remove(vc->vc_config.ac_backend);
	return (hostif_detach(vc->vc_config.ac_backend));
}

void
valed_reload(struct valed_change *vc, struct adapter_list *adapters,
    void (*watch)(struct adapter *ending))
{
	struct adapter *ad;
	int error = 0;

	switch (vc->vc_what) {
	case VALED_RESERVE:
		error = reserve(vc, adapters);
		break;
	case VALED_ASK:
		error = ask(&vc->vc_config, adapters);
		break;
	case VALED_MOVE:
		error = move(&vc->vc_config, adapters, watch);
		break;
	case VALED_REMOVE:
		ctl_names_remove(valed_place(&vc->vc_config));
		remove_at(&vc->vc_config, adapters, watch);
		break;
	case VALED_SET:
		error = set(vc);
		break;
	case VALED_ATTACH:
		error = attach(vc);
		break;
	case VALED_DETACH:
		error = detach(vc);
		break;
	case VALED_CHANGE:
		ad = adapter_at(adapters, &vc->vc_config);
		if (ad != NULL)
			adapter_change(ad, &vc->vc_config);
		break;
	case VALED_ADD:
		ctl_names_add(valed_place(&vc->vc_config));
		error = add(vc, adapters, watch);
		break;
	case VALED_END:
		kept_close();
		ctl_names_end();
		return;
	}
	valed_guard_answer(error);
}
