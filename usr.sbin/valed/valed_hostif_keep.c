/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Attached interfaces for the next process: valed_hostif_keep.h.
 */

#include <net/if.h>

#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "ctl_names.h"
#include "hostif.h"
#include "libvale.h"
#include "vale_clock.h"
#include "valed_hostif_keep.h"
#include "valed_options.h"
#include "valed_store.h"

#define	KEPT_MAGIC	"valehif1"
/* How long all of them are waited for, ms. */
#define	AGAIN_MS	500

struct hostif_kept {
	char		hk_magic[8];
	char		hk_port[VALE_NAME_SIZE];
	struct hostif_fds hk_fds;
};

/* What is to be attached, until it is. */
static struct waiting {
	struct hostif_kept wtg_kept;
	bool		wtg_used;
} waiting[HOSTIF_MAX];

/* What the store has of this process.  keep_lock. */
static struct slot {
	char		sl_port[VALE_NAME_SIZE];	/* or "" */
	uint64_t	sl_serial;	/* hostif_serial() */
	uint32_t	sl_nfds;
	bool		sl_seen;
} slots[HOSTIF_MAX];
static pthread_mutex_t keep_lock = PTHREAD_MUTEX_INITIALIZER;

/* Make the name of an interface in the store, or of its descriptor. */
static const char *
store_name(char name[VALED_STORE_NAME], unsigned int n, int fd)
{
	if (fd == -1)
		snprintf(name, VALED_STORE_NAME, "hostif.%u", n);
	else
		snprintf(name, VALED_STORE_NAME, "hostif.%u.%d", n, fd);
	return (name);
}

/*
 * What an earlier process has left.
 */

/* Read memory, and only that: it cannot block. */
static bool
kept_read(unsigned int n, struct hostif_kept *hk)
{
	char name[VALED_STORE_NAME];
	const int fd = valed_store_take(store_name(name, n, -1));
	bool good;

	if (fd == -1)
		return (false);
	good = fcntl(fd, F_GET_SEALS) != -1 &&
	    pread(fd, hk, sizeof(*hk), 0) == (ssize_t)sizeof(*hk) &&
	    memcmp(hk->hk_magic, KEPT_MAGIC, sizeof(hk->hk_magic)) == 0 &&
	    memchr(hk->hk_port, '\0', sizeof(hk->hk_port)) != NULL &&
	    vale_name_error(hk->hk_port) == NULL &&
	    memchr(hk->hk_fds.hf_name, '\0', HOSTIF_NAME_SIZE) != NULL &&
	    hk->hk_fds.hf_kind < HOSTIF_NKINDS &&
	    hk->hk_fds.hf_nfds <= HOSTIF_FDS_MAX;
	close(fd);
	if (!good) {
		warnx("an attached interface of the earlier process is lost: "
		    "what was kept of it is not valid");
		valed_store_remove(name);
	}
	return (good);
}

/* Take its descriptors.  Returns false if there are not all. */
static bool
kept_take(unsigned int n, struct hostif_fds *fds)
{
	const uint32_t all = fds->hf_nfds;
	char name[VALED_STORE_NAME];
	uint32_t i;
	int fd;

	fds->hf_nfds = 0;
	for (i = 0; i < all; i++) {
		fd = valed_store_take(store_name(name, n, (int)i));
		if (fd == -1)
			break;
		fds->hf_fd[fds->hf_nfds++] = fd;
	}
	return (i == all && all > 0);
}

/*
 * Have its descriptors, for which there is time until `end_ms', or open it again,
 * by the name that it has now.  Returns false after a line.
 */
static bool
kept_open(unsigned int n, struct hostif_kept *hk, uint64_t end_ms)
{
	const enum hostif_kind kind = hk->hk_fds.hf_kind;
	char ifname[HOSTIF_NAME_SIZE], why[HOSTIF_WHY];

	if (kept_take(n, &hk->hk_fds) && ctl_attach_accepts(&hk->hk_fds) &&
	    hostif_again(&hk->hk_fds, end_ms) == 0)
		return (true);
	/* If it is gone, there may be one of its name again. */
	if (if_indextoname(hk->hk_fds.hf_index, ifname) == NULL)
		strlcpy(ifname, hk->hk_fds.hf_name, sizeof(ifname));
	hostif_close(&hk->hk_fds);
	if (hostif_open(ifname, kind, &hk->hk_fds, why) == 0)
		return (true);
	warnx("%s: the interface is not attached again: %s", hk->hk_port, why);
	return (false);
}

void
valed_hostif_keep_start(const struct valed_options *opt)
{
	const uint64_t end_ms = vale_now_ms() + AGAIN_MS;
	struct hostif_kept *hk;
	unsigned int n;

	for (n = 0; n < HOSTIF_MAX; n++) {
		hk = &waiting[n].wtg_kept;
		if (!kept_read(n, hk))
			continue;
		/* Of another process: valed_hostif_keep() removes it. */
		strlcpy(slots[n].sl_port, hk->hk_port, VALE_NAME_SIZE);
		slots[n].sl_nfds = hk->hk_fds.hf_nfds;
		if (valed_options_adapter(opt, hk->hk_port) ||
		    valed_options_hostif(opt, hk->hk_port) ||
		    valed_hostif_keep_has(hk->hk_port) ||
		    !kept_open(n, hk, end_ms))
			continue;
		waiting[n].wtg_used = true;
		(void)ctl_names_hostif(hk->hk_port);
	}
}

bool
valed_hostif_keep_has(const char *port)
{
	unsigned int n;

	for (n = 0; n < HOSTIF_MAX; n++)
		if (waiting[n].wtg_used &&
		    strcmp(waiting[n].wtg_kept.hk_port, port) == 0)
			return (true);
	return (false);
}

void
valed_hostif_keep_attach(void)
{
	struct waiting *wt;
	char why[HOSTIF_WHY];

	for (wt = waiting; wt < waiting + HOSTIF_MAX; wt++) {
		if (!wt->wtg_used)
			continue;
		if (hostif_attach(wt->wtg_kept.hk_port, &wt->wtg_kept.hk_fds,
		    why) == -1) {
			warnx("%s: the interface is not attached again", why);
			hostif_close(&wt->wtg_kept.hk_fds);
		}
		ctl_names_hostif_remove(wt->wtg_kept.hk_port);
		wt->wtg_used = false;
	}
}

/*
 * What this process has.
 */

/* Keep no more of a place; what says that there is something goes first. */
static void
slot_remove(struct slot *sl)
{
	const unsigned int n = (unsigned int)(sl - slots);
	char name[VALED_STORE_NAME];
	uint32_t i;

	valed_store_remove(store_name(name, n, -1));
	for (i = 0; i < sl->sl_nfds; i++)
		valed_store_remove(store_name(name, n, (int)i));
	sl->sl_port[0] = '\0';
}

/* Keep an interface at a place. */
static void
slot_put(struct slot *sl, const char *port, const struct hostif_fds *fds)
{
	const unsigned int n = (unsigned int)(sl - slots);
	struct hostif_kept hk = { .hk_fds = *fds };
	char name[VALED_STORE_NAME];
	bool kept = true;
	uint32_t i;

	memcpy(hk.hk_magic, KEPT_MAGIC, sizeof(hk.hk_magic));
	strlcpy(hk.hk_port, port, sizeof(hk.hk_port));
	strlcpy(sl->sl_port, port, sizeof(sl->sl_port));
	/* While the store has them, no other process can use the interface. */
	if (fds->hf_kind != HOSTIF_PACKET)
		hk.hk_fds.hf_nfds = 0;
	sl->sl_nfds = hk.hk_fds.hf_nfds;
	for (i = 0; i < sl->sl_nfds && kept; i++)
		kept = valed_store_put(store_name(name, n, (int)i),
		    fds->hf_fd[i]);
	if (kept && valed_store_put_bytes(store_name(name, n, -1), &hk,
	    sizeof(hk)))
		return;
	warn("%s: the interface is not kept for a restart", port);
	slot_remove(sl);
}

/* Find the place of an interface; with NULL, one that is free. */
static struct slot *
slot_find(const struct hostif *hi)
{
	struct slot *sl;

	for (sl = slots; sl < slots + HOSTIF_MAX; sl++)
		if (hi == NULL ? sl->sl_port[0] == '\0' :
		    sl->sl_port[0] != '\0' &&
		    sl->sl_serial == hostif_serial(hi))
			return (sl);
	return (NULL);
}

/* Mark an interface that is there: the others make room first. */
static void
mark(struct hostif *hi, void *arg __unused)
{
	struct slot *sl = slot_find(hi);

	if (sl != NULL)
		sl->sl_seen = true;
}

static void
add(struct hostif *hi, void *arg __unused)
{
	const char *port = hostif_port_name(hi);
	struct slot *sl = slot_find(NULL);

	/* What the configuration has is attached at each start. */
	if (sl == NULL || slot_find(hi) != NULL ||
	    ctl_names_of(port) != CTL_NAME_FREE)
		return;
	sl->sl_serial = hostif_serial(hi);
	slot_put(sl, port, hostif_fds(hi));
}

void
valed_hostif_keep(void)
{
	struct slot *sl;

	if (!valed_store_active())
		return;
	pthread_mutex_lock(&keep_lock);
	for (sl = slots; sl < slots + HOSTIF_MAX; sl++)
		sl->sl_seen = false;
	hostif_each(mark, NULL);
	/* What is not there makes room first. */
	for (sl = slots; sl < slots + HOSTIF_MAX; sl++)
		if (sl->sl_port[0] != '\0' && !sl->sl_seen)
			slot_remove(sl);
	hostif_each(add, NULL);
	pthread_mutex_unlock(&keep_lock);
}
