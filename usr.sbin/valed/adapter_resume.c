/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Going on from what an earlier process has left of an adapter; see
 * adapter_keep.h.
 *
 * The generation says which of two files is newer: what is saved has that of
 * the memory that it was made from, and a restored adapter has a greater one.
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <err.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "adapter_keep_impl.h"
#include "adapter_version.h"
#include "e82545.h"
#include "vfu_state.h"

/* Bytes of what is saved, at most: the model's part may have frames. */
#define	SAVED_MAX	(64U << 20)
/* Starts that did not come to an end, after which nothing is resumed. */
#define	RESUMES		3

static struct adapter_resumed resumed;	/* atomic */

static void
unmap(void *p, uint64_t size)
{
	if (p != NULL)
		munmap(p, size);
}

/*
 * What an earlier process has left.
 */

/* Return whether the memory is that of an adapter. */
static bool
old_ok(const struct adapter_keep *old, uint64_t size)
{
	return (old != NULL && size >= sizeof(*old) &&
	    memcmp(old->ak_magic, KEEP_MAGIC, sizeof(old->ak_magic)) == 0 &&
	    old->ak_size == size && old->ak_model_at <= size);
}

/* Return whether the program's file, and so the memory's form, is the same. */
static bool
old_same(const struct adapter_keep *old, const struct adapter_keep *ak)
{
	static const uint8_t none[BUILD_SIZE];

	return (memcmp(ak->ak_build, none, sizeof(none)) != 0 &&
	    memcmp(old->ak_build, ak->ak_build, sizeof(none)) == 0 &&
	    old->ak_model_at == ak->ak_model_at);
}

static bool
saved_ok(const struct adapter_saved *as, uint64_t size)
{
	return (as != NULL && size >= sizeof(*as) && size <= SAVED_MAX &&
	    memcmp(as->as_magic, SAVED_MAGIC, sizeof(as->as_magic)) == 0 &&
	    as->as_version == ADAPTER_SAVED_VERSION &&
	    as->as_device <= size - sizeof(*as) &&
	    as->as_model <= size - sizeof(*as) - as->as_device);
}

/* Return whether a file was saved in this form; if not, a line says so. */
static bool
same_version(const struct adapter_saved *as, uint64_t size,
    const struct adapter_config *ac)
{
	if (as == NULL || size < offsetof(struct adapter_saved, as_resumes) ||
	    memcmp(as->as_magic, SAVED_MAGIC, sizeof(as->as_magic)) != 0)
		return (false);
	if (as->as_version == ADAPTER_SAVED_VERSION)
		return (true);
	warnx("%s: %s: the state was saved in version %u, not %u: the adapter "
	    "starts anew", ac->ac_where, ac->ac_backend, as->as_version,
	    ADAPTER_SAVED_VERSION);
	return (false);
}

/*
 * Return whether a file is of the same adapter: one with the same address, on
 * this port or another one.
 */
static bool
same_mac(const uint8_t mac[6], const struct adapter_keep *ak,
    const struct adapter_config *ac)
{
	if (memcmp(mac, ak->ak_mac, sizeof(ak->ak_mac)) == 0)
		return (true);
	warnx("%s: %s: the adapter has another address than before: it starts "
	    "anew", ac->ac_where, ac->ac_backend);
	return (false);
}

/* Find it, and keep what is newer. */
static void
old_find(struct adapter_keep *ak, const struct adapter_config *ac)
{
	ak->ak_old = adapter_keep_stored(ac, "memory", &ak->ak_old_size);
	ak->ak_saved = adapter_keep_stored(ac, "saved", &ak->ak_saved_size);
	if (!old_ok(ak->ak_old, ak->ak_old_size) ||
	    !same_mac(ak->ak_old->ak_mac, ak, ac)) {
		unmap(ak->ak_old, ak->ak_old_size);
		ak->ak_old = NULL;
	}
	if (!same_version(ak->ak_saved, ak->ak_saved_size, ac) ||
	    !saved_ok(ak->ak_saved, ak->ak_saved_size) ||
	    memcmp(ak->ak_saved->as_mac, ak->ak_mac,
	    sizeof(ak->ak_mac)) != 0 || (ak->ak_old != NULL &&
	    ak->ak_old->ak_generation > ak->ak_saved->as_generation)) {
		unmap(ak->ak_saved, ak->ak_saved_size);
		ak->ak_saved = NULL;
	}
	if (ak->ak_saved != NULL) {
		ak->ak_generation = ak->ak_saved->as_generation + 1;
		memcpy(ak->ak_blame_s, ak->ak_saved->as_blame_s,
		    sizeof(ak->ak_blame_s));
	} else if (ak->ak_old != NULL) {
		ak->ak_generation = ak->ak_old->ak_generation + 1;
		memcpy(ak->ak_blame_s, ak->ak_old->ak_blame_s,
		    sizeof(ak->ak_blame_s));
	}
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
}

/*
 * Note that the adapter's client has ended the process.  Returns whether that
 * is too often; the memory stays in the store then, and says so to the next
 * process.
 */
static bool
blame(struct adapter_keep *ak)
{
	unsigned int i;

	if (ak->ak_old == NULL || ak->ak_old->ak_blamed == 0)
		return (false);
	if (ak->ak_old->ak_blamed == REFUSED)
		return (true);
	for (i = BLAMES - 1; i > 0; i--)
		ak->ak_blame_s[i] = ak->ak_blame_s[i - 1];
	ak->ak_blame_s[0] = now_ns() / 1000000000;
	if (ak->ak_blame_s[BLAMES - 1] == 0 ||
	    ak->ak_blame_s[0] - ak->ak_blame_s[BLAMES - 1] > BLAME_S)
		return (false);
	ak->ak_old->ak_blamed = REFUSED;
	return (true);
}

bool
adapter_resume_find(struct adapter_keep *ak, const struct adapter_config *ac)
{
	old_find(ak, ac);
	if (!blame(ak))
		return (true);
	warnx("%s: the client has ended valed %u times within %u seconds: it "
	    "is disconnected until the next reload", ac->ac_where, BLAMES,
	    BLAME_S);
	return (false);
}

void
adapter_resume_spent(struct adapter_keep *ak)
{
	if (ak->ak_old != NULL)
		ak->ak_old->ak_magic[0] = '\0';
	if (ak->ak_saved != NULL)
		ak->ak_saved->as_magic[0] = '\0';
}

void
adapter_resume_drop(struct adapter_keep *ak)
{
	unmap(ak->ak_old, ak->ak_old_size);
	unmap(ak->ak_saved, ak->ak_saved_size);
	ak->ak_old = NULL;
	ak->ak_saved = NULL;
}

/*
 * Going on.
 */

/* The descriptors that the store has for a client. */
struct kept_list {
	struct peer_kept *all;
	unsigned int	n;
	size_t		prefix;		/* bytes of a name before `what' */
};

static void
kept_add(void *arg, const char *name, int fd)
{
	struct kept_list *kl = arg;

	kl->all[kl->n++] = (struct peer_kept){ .pkt_name = name + kl->prefix,
	    .pkt_fd = fd };
}

static bool
kept_find(struct kept_list *kl, const struct adapter_config *ac)
{
	char prefix[VALED_STORE_NAME];

	adapter_keep_name(prefix, ac, "");
	kl->prefix = strlen(prefix);
	kl->n = 0;
	kl->all = calloc(VALED_STORE_MAX, sizeof(*kl->all));
	if (kl->all == NULL)
		return (false);
	valed_store_each(prefix, kept_add, kl);
	return (true);
}

/* Take what was used out of the store's list: the rest is closed with that. */
static void
kept_end(struct kept_list *kl, const struct adapter_config *ac)
{
	char name[VALED_STORE_NAME];
	unsigned int i;

	for (i = 0; i < kl->n; i++) {
		if (!kl->all[i].pkt_used)
			continue;
		(void)valed_store_take(adapter_keep_name(name, ac,
		    kl->all[i].pkt_name));
		if (kl->all[i].pkt_fd != -1)
			close(kl->all[i].pkt_fd);
	}
	free(kl->all);
}

/* A state of the device and of the model. */
struct resume_state {
	const uint8_t	*rs_device;
	size_t		 rs_device_len;
	const uint8_t	*rs_model;
	size_t		 rs_model_len;
	uint8_t		*rs_buf;	/* where both are */
	const char	*rs_why;
};

/*
 * Copy the states that were saved: a client that had taken over the process may
 * have the file.
 */
static bool
state_saved(struct adapter_keep *ak, struct resume_state *rs)
{
	struct adapter_saved *as = malloc(ak->ak_saved_size);

	rs->rs_buf = (uint8_t *)as;
	if (as == NULL) {
		rs->rs_why = "no memory";
		return (false);
	}
	memcpy(as, ak->ak_saved, ak->ak_saved_size);
	if (!saved_ok(as, ak->ak_saved_size))
		return (false);
	rs->rs_device = (const uint8_t *)(as + 1);
	rs->rs_device_len = as->as_device;
	rs->rs_model = rs->rs_device + as->as_device;
	rs->rs_model_len = as->as_model;
	return (true);
}

/* Make the states from the memory of a process that has crashed. */
static bool
state_made(struct adapter_keep *ak, const struct e82545_config *config,
    struct resume_state *rs)
{
	const struct adapter_keep *old = ak->ak_old;
	const uint8_t *model = (const uint8_t *)old + old->ak_model_at;
	const size_t size = ak->ak_old_size - old->ak_model_at;
	ssize_t len;

	if (!old_same(old, ak)) {
		rs->rs_why = "valed crashed, and is another program now";
		return (false);
	}
	len = e82545_salvage(model, size, config, 0, NULL, 0);
	rs->rs_buf = len == -1 ? NULL : malloc(VFU_STATE_MAX + (size_t)len);
	if (rs->rs_buf == NULL) {
		rs->rs_why = "no memory";
		return (false);
	}
	rs->rs_device = rs->rs_buf;
	rs->rs_device_len = vfu_state_save(&old->ak_adapter.vfu, rs->rs_buf,
	    VFU_STATE_MAX, &rs->rs_why);
	if (rs->rs_device_len == 0)
		return (false);
	rs->rs_model = rs->rs_buf + VFU_STATE_MAX;
	len = e82545_salvage(model, size, config, now_ns(),
	    rs->rs_buf + VFU_STATE_MAX, (size_t)len);
	rs->rs_model_len = MAX(len, 0);
	return (true);
}

/*
 * Restore the model; if that is not possible it is as after power-on.  If there
 * was no client, counters and what is in the EEPROM go on; a process that has
 * crashed may not have come to its reset.  Returns whether it is restored.
 */
static bool
resume_model(struct adapter *ad, const struct resume_state *rs, bool client)
{
	struct adapter_keep *ak = keep_of(ad), *old = ak->ak_old;
	int error;

	e82545_pause(ad->dev);
	error = rs->rs_model_len == 0 ? EINVAL : e82545_snapshot_restore(
	    ad->dev, rs->rs_model, rs->rs_model_len);
	if (error == 0 && client && ak->ak_saved == NULL)
		error = e82545_recover(ad->dev, (uint8_t *)old +
		    old->ak_model_at, ak->ak_old_size - old->ak_model_at);
	if (error != 0 && client) {
		adapter_log(ad, LOG_WARNING, "the state of the adapter is "
		    "lost: it is reset");
		/* The CSB may have been that state's. */
		vfu_pci_show(&ad->vfu.vdev_pci, ad->vfu.vdev_pci.subdevice);
	}
	if (error != 0 || (!client && ak->ak_saved == NULL))
		e82545_reset(ad->dev);
	e82545_resume(ad->dev);
	return (error == 0);
}

/* Go on with the counters of the adapter itself. */
static void
resume_counters(struct adapter *ad)
{
	const struct adapter_keep *ak = keep_of(ad);
	const uint64_t *old = ak->ak_saved != NULL ?
	    ak->ak_saved->as_counters : ak->ak_old->ak_adapter.counters;
	unsigned int i;

	for (i = 0; i < ADAPTER_NCOUNTERS; i++)
		atomic_add_64(&ad->counters[i], old[i]);
}

static void
lost(struct adapter *ad, const char *why)
{
	adapter_log(ad, LOG_WARNING, "the client is lost: %s", why);
	atomic_add_64(&resumed.ar_lost, 1);
}

static void
resume(struct adapter *ad, const struct e82545_config *config,
    struct kept_list *kl)
{
	struct resume_state rs = { .rs_why = NULL };
	struct adapter_keep *ak = keep_of(ad);
	int error = EINVAL;
	bool client, whole;

	if (ak->ak_saved != NULL ? state_saved(ak, &rs) :
	    state_made(ak, config, &rs))
		error = vfu_state_restore(&ad->vfu, rs.rs_device,
		    rs.rs_device_len, ak->ak_journal, kl->all, kl->n,
		    &rs.rs_why);
	if (error != 0)
		lost(ad, rs.rs_why == NULL ? "its state is invalid" :
		    rs.rs_why);
	else {
		client = vfu_state_client(rs.rs_device, rs.rs_device_len);
		whole = resume_model(ad, &rs, client);
		resume_counters(ad);
		if (client)
			atomic_add_64(!whole ? &resumed.ar_reset :
			    ak->ak_saved != NULL ? &resumed.ar_saved :
			    &resumed.ar_salvaged, 1);
	}
	free(rs.rs_buf);
}

/* Return whether to begin: not if others that did have not come to an end. */
static bool
resume_counts(struct adapter_keep *ak)
{
	uint32_t *count = ak->ak_saved != NULL ? &ak->ak_saved->as_resumes :
	    &ak->ak_old->ak_resumes;

	return ((*count)++ < RESUMES);
}

bool
adapter_keep_found(struct adapter *ad)
{
	const struct adapter_keep *ak = keep_of(ad);

	return (is_kept(ak) && (ak->ak_old != NULL || ak->ak_saved != NULL));
}

void
adapter_keep_resume(struct adapter *ad, const struct e82545_config *config)
{
	struct adapter_keep *ak = keep_of(ad);
	struct kept_list kl;

	if (!adapter_keep_found(ad))
		return;
	if (!resume_counts(ak)) {
		lost(ad, "valed ends when it goes on with it");
		return;
	}
	if (!kept_find(&kl, &ad->config)) {
		lost(ad, "no memory");
		return;
	}
	resume(ad, config, &kl);
	kept_end(&kl, &ad->config);
	if (ad->vfu.vdev_server.fd != -1)
		atomic_store_64(&ad->since_s, ak->ak_saved != NULL ?
		    ak->ak_saved->as_since_s :
		    ak->ak_old->ak_adapter.since_s);
}

struct adapter_resumed
adapter_keep_resumed(void)
{
	return (resumed);
}
