/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What is kept of an adapter; see adapter_keep.h.
 *
 * The generation says which of two files is newer: what is saved has that of
 * the memory that it was made from, and a restored adapter has a greater one.
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <elf.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "adapter.h"
#include "adapter_keep.h"
#include "adapter_version.h"
#include "e82545.h"
#include "peer_fstat.h"
#include "peer_keep.h"
#include "peer_mem_journal.h"
#include "valed_store.h"
#include "vfu_state.h"

#define	KEEP_MAGIC	"valekeep"
#define	SAVED_MAGIC	"valesave"

/* Bytes of it, at most: it is copied, and the model's part may have frames. */
#define	SAVED_MAX	(64U << 20)

#define	BUILD_SIZE	20		/* bytes of a build ID */
/* A client that ends the process so often within so many seconds is dropped. */
#define	BLAMES		2
#define	BLAME_S		60
/* Starts that did not come to an end, after which nothing is resumed. */
#define	RESUMES		3

struct adapter_keep {
	char		 ak_magic[8];
	uint64_t	 ak_size;	/* of the memory */
	uint8_t		 ak_build[BUILD_SIZE];
	char		 ak_backend[VALED_NAME_SIZE];
	uint64_t	 ak_generation;
	uint32_t	 ak_resumes;	/* starts that began with it */
	uint32_t	 ak_blamed;	/* its thread has ended the process, */
#define	BLAMED		1
#define	REFUSED		2		/* too often */
	uint64_t	 ak_blame_s[BLAMES]; /* when; 0: not */
	uint64_t	 ak_model_at;	/* offset */
	/* This process's. */
	struct peer_keep ak_store;
	struct peer_mem_journal *ak_journal; /* or NULL */
	struct adapter_keep *ak_old;	/* of the earlier process, or NULL */
	struct adapter_saved *ak_saved;	/* or NULL */
	uint64_t	 ak_old_size, ak_saved_size;
	int		 ak_fd;		/* of the memory, or -1 */
	struct adapter	 ak_adapter;
};

/* Precedes the states of the device and of the model. */
struct adapter_saved {
	char		as_magic[8];
	uint32_t	as_version;
	uint32_t	as_resumes;
	uint64_t	as_generation;
	uint64_t	as_device;	/* bytes */
	uint64_t	as_model;
	uint64_t	as_since_s;
	uint64_t	as_blame_s[BLAMES];
	uint64_t	as_counters[ADAPTER_NCOUNTERS];
	char		as_backend[VALED_NAME_SIZE];
};

/* The adapter that a thread serves. */
static _Thread_local struct adapter_keep *serving;

static struct adapter_keep *
keep_of(struct adapter *ad)
{
	return (__containerof(ad, struct adapter_keep, ak_adapter));
}

/* Whether it is kept.  Without a journal no process could go on. */
static bool
is_kept(const struct adapter_keep *ak)
{
	return (ak->ak_fd != -1 && ak->ak_journal != NULL);
}

/*
 * Memory.
 */

/* Name a file of the adapter in the store. */
static const char *
keep_name(char name[VALED_STORE_NAME], const struct adapter_config *ac,
    const char *what)
{
	snprintf(name, VALED_STORE_NAME, "%04x.%s", valed_place(ac), what);
	return (name);
}

static int
note_build(struct dl_phdr_info *info, size_t size __unused, void *arg)
{
	const ElfW(Phdr) *ph = info->dlpi_phdr, *end = ph + info->dlpi_phnum;
	const ElfW(Nhdr) *note;
	const uint8_t *p, *last;

	for (; ph < end; ph++) {
		if (ph->p_type != PT_NOTE)
			continue;
		p = (const uint8_t *)(info->dlpi_addr + ph->p_vaddr);
		last = p + ph->p_memsz;
		while (p + sizeof(*note) <= last) {
			note = (const void *)p;
			p += sizeof(*note) + roundup2(note->n_namesz, 4);
			if (note->n_type == NT_GNU_BUILD_ID &&
			    note->n_descsz == BUILD_SIZE)
				memcpy(arg, p, BUILD_SIZE);
			p += roundup2(note->n_descsz, 4);
		}
	}
	return (1);			/* the program is the first */
}

/*
 * What identifies the program's file, which says how its memory is laid out; of
 * zeros if it has no build ID.
 */
static void
keep_build(uint8_t build[BUILD_SIZE])
{
	memset(build, 0, BUILD_SIZE);
	dl_iterate_phdr(note_build, build);
}

/* A file of this size, which cannot become another one. */
static int
file_make(const char *name, uint64_t size)
{
	int error, fd;

	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd == -1)
		return (-1);
	if (ftruncate(fd, (off_t)size) == -1 || fcntl(fd, F_ADD_SEALS,
	    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == -1) {
		error = errno;
		close(fd);
		errno = error;
		return (-1);
	}
	return (fd);
}

/* Map what is kept, a file from the store.  NULL if it is none. */
static void *
file_map(int fd, uint64_t *size)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	const int has = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *p;

	if (has == -1 || (has & seals) != seals || peer_fstat(fd, &st) == -1 ||
	    st.st_size <= 0)
		return (NULL);
	*size = (uint64_t)st.st_size;
	p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return (p == MAP_FAILED ? NULL : p);
}

/* Take a file of the adapter from the store, and map it.  NULL: there is none. */
static void *
stored_map(const struct adapter_config *ac, const char *what, uint64_t *size)
{
	char name[VALED_STORE_NAME];
	const int fd = valed_store_take(keep_name(name, ac, what));
	void *p;

	if (fd == -1)
		return (NULL);
	p = file_map(fd, size);
	close(fd);
	return (p);
}

static void
unmap(void *p, uint64_t size)
{
	if (p != NULL)
		munmap(p, size);
}

/*
 * What an earlier process has left.
 */

static bool
text_ends(const char *text, size_t size)
{
	return (memchr(text, '\0', size) != NULL);
}

/* Whether the memory is that of an adapter on the same port. */
static bool
old_ok(const struct adapter_keep *old, uint64_t size,
    const struct adapter_keep *ak)
{
	return (old != NULL && size >= sizeof(*old) &&
	    memcmp(old->ak_magic, KEEP_MAGIC, sizeof(old->ak_magic)) == 0 &&
	    old->ak_size == size &&
	    text_ends(old->ak_backend, sizeof(old->ak_backend)) &&
	    strcmp(old->ak_backend, ak->ak_backend) == 0 &&
	    old->ak_model_at <= size);
}

/* Whether the program's file is the same, and so what the memory is like. */
static bool
old_same(const struct adapter_keep *old, const struct adapter_keep *ak)
{
	static const uint8_t none[BUILD_SIZE];

	return (memcmp(ak->ak_build, none, sizeof(none)) != 0 &&
	    memcmp(old->ak_build, ak->ak_build, sizeof(none)) == 0 &&
	    old->ak_model_at == ak->ak_model_at);
}

static bool
saved_ok(const struct adapter_saved *as, uint64_t size,
    const struct adapter_keep *ak)
{
	return (as != NULL && size >= sizeof(*as) && size <= SAVED_MAX &&
	    memcmp(as->as_magic, SAVED_MAGIC, sizeof(as->as_magic)) == 0 &&
	    as->as_version == ADAPTER_SAVED_VERSION &&
	    text_ends(as->as_backend, sizeof(as->as_backend)) &&
	    strcmp(as->as_backend, ak->ak_backend) == 0 &&
	    as->as_device <= size - sizeof(*as) &&
	    as->as_model <= size - sizeof(*as) - as->as_device);
}

/* Find it, and keep what is newer. */
static void
old_find(struct adapter_keep *ak, const struct adapter_config *ac)
{
	ak->ak_old = stored_map(ac, "memory", &ak->ak_old_size);
	ak->ak_saved = stored_map(ac, "saved", &ak->ak_saved_size);
	if (!old_ok(ak->ak_old, ak->ak_old_size, ak)) {
		unmap(ak->ak_old, ak->ak_old_size);
		ak->ak_old = NULL;
	}
	if (!saved_ok(ak->ak_saved, ak->ak_saved_size, ak) ||
	    (ak->ak_old != NULL &&
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
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec);
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
	ak->ak_blame_s[0] = now_s();
	if (ak->ak_blame_s[BLAMES - 1] == 0 ||
	    ak->ak_blame_s[0] - ak->ak_blame_s[BLAMES - 1] > BLAME_S)
		return (false);
	ak->ak_old->ak_blamed = REFUSED;
	return (true);
}

/*
 * Memory.
 */

/* The journal of the client's memory, which one process leaves to the next. */
static struct peer_mem_journal *
journal_map(const struct adapter_config *ac)
{
	char name[VALED_STORE_NAME];
	struct peer_mem_journal *journal;
	uint64_t size;
	int fd;

	fd = valed_store_take(keep_name(name, ac, "journal"));
	if (fd == -1) {
		fd = file_make("journal", sizeof(*journal));
		if (fd == -1)
			return (NULL);
		(void)valed_store_put(name, fd);
	}
	journal = file_map(fd, &size);
	close(fd);
	if (journal != NULL && size != sizeof(*journal)) {
		munmap(journal, size);
		journal = NULL;
	}
	return (journal);
}

static void
store_put(void *arg, const char *what, int fd)
{
	struct adapter_keep *ak = arg;
	char name[VALED_STORE_NAME];

	(void)valed_store_put(keep_name(name, &ak->ak_adapter.config, what),
	    fd);
}

static void
store_remove(void *arg, const char *what)
{
	struct adapter_keep *ak = arg;
	char name[VALED_STORE_NAME];

	valed_store_remove(keep_name(name, &ak->ak_adapter.config, what));
}

/* Memory that is kept. */
static struct adapter_keep *
keep_map(const struct adapter_config *ac, uint64_t size)
{
	const int fd = file_make(ac->ac_name, size);
	struct adapter_keep *ak;

	if (fd == -1)
		return (NULL);
	ak = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ak == MAP_FAILED) {
		close(fd);
		return (NULL);
	}
	ak->ak_fd = fd;
	return (ak);
}

/* Memory that is not: there is no store. */
static struct adapter_keep *
keep_new(uint64_t size)
{
	struct adapter_keep *ak = aligned_alloc(E82545_MEMORY_ALIGN, size);

	if (ak == NULL)
		return (NULL);
	memset(ak, 0, size);
	ak->ak_fd = -1;
	return (ak);
}

struct adapter *
adapter_keep_alloc(const struct adapter_config *ac)
{
	const uint64_t model_at = roundup2(sizeof(struct adapter_keep),
	    PEER_MEM_PAGE);
	const uint64_t size = roundup2(model_at + e82545_memory_size(),
	    PEER_MEM_PAGE);
	struct adapter_keep *ak = valed_store_active() ? keep_map(ac, size) :
	    keep_new(size);

	if (ak == NULL) {
		warn("%s", ac->ac_name);
		return (NULL);
	}
	memcpy(ak->ak_magic, KEEP_MAGIC, sizeof(ak->ak_magic));
	ak->ak_size = size;
	ak->ak_model_at = model_at;
	strlcpy(ak->ak_backend, ac->ac_backend, sizeof(ak->ak_backend));
	ak->ak_store = (struct peer_keep){ store_put, store_remove, ak };
	if (ak->ak_fd == -1)
		return (&ak->ak_adapter);
	keep_build(ak->ak_build);
	old_find(ak, ac);
	if (blame(ak)) {
		warnx("%s: the client has ended valed %u times within %u "
		    "seconds: it is disconnected until the next reload",
		    ac->ac_where, BLAMES, BLAME_S);
		adapter_keep_free(&ak->ak_adapter);
		errno = EPERM;
		return (NULL);
	}
	ak->ak_journal = journal_map(ac);
	return (&ak->ak_adapter);
}

/* The earlier process's files are of no use any more. */
static void
old_drop(struct adapter_keep *ak)
{
	unmap(ak->ak_old, ak->ak_old_size);
	unmap(ak->ak_saved, ak->ak_saved_size);
	ak->ak_old = NULL;
	ak->ak_saved = NULL;
}

void
adapter_keep_free(struct adapter *ad)
{
	struct adapter_keep *ak = keep_of(ad);

	old_drop(ak);
	if (ak->ak_journal != NULL)
		munmap(ak->ak_journal, sizeof(*ak->ak_journal));
	if (ak->ak_fd == -1) {
		free(ak);
		return;
	}
	close(ak->ak_fd);
	munmap(ak, ak->ak_size);
}

void *
adapter_keep_model(struct adapter *ad, size_t *size)
{
	struct adapter_keep *ak = keep_of(ad);

	*size = ak->ak_size - ak->ak_model_at;
	return ((uint8_t *)ak + ak->ak_model_at);
}

void
adapter_keep_start(struct adapter *ad)
{
	struct adapter_keep *ak = keep_of(ad);

	if (!is_kept(ak))
		return;
	vfu_device_set_keep(&ad->vfu, &ak->ak_store);
	peer_mem_set_keep(&ad->vfu.vdev_mem, &ak->ak_store);
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

	keep_name(prefix, ac, "");
	kl->prefix = strlen(prefix);
	kl->n = 0;
	kl->all = calloc(VALED_STORE_MAX, sizeof(*kl->all));
	if (kl->all == NULL)
		return (false);
	valed_store_each(prefix, kept_add, kl);
	return (true);
}

/* What was used is out of the store's list; the rest is closed with that. */
static void
kept_end(struct kept_list *kl, const struct adapter_config *ac)
{
	char name[VALED_STORE_NAME];
	unsigned int i;

	for (i = 0; i < kl->n; i++) {
		if (!kl->all[i].pkt_used)
			continue;
		(void)valed_store_take(keep_name(name, ac,
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
 * The states that were saved.  They are copied: a client that had taken over
 * the process may have the file.
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
	if (!saved_ok(as, ak->ak_saved_size, ak))
		return (false);
	rs->rs_device = (const uint8_t *)(as + 1);
	rs->rs_device_len = as->as_device;
	rs->rs_model = rs->rs_device + as->as_device;
	rs->rs_model_len = as->as_model;
	return (true);
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
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
 * crashed may not have come to its reset.
 */
static void
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
	if (error != 0 && client)
		adapter_log(ad, LOG_WARNING, "the state of the adapter is "
		    "lost: it is reset");
	if (error != 0 || (!client && ak->ak_saved == NULL))
		e82545_reset(ad->dev);
	e82545_resume(ad->dev);
}

/* Those of the adapter itself. */
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
resume(struct adapter *ad, const struct e82545_config *config,
    struct kept_list *kl)
{
	struct resume_state rs = { .rs_why = NULL };
	struct adapter_keep *ak = keep_of(ad);
	int error = EINVAL;

	if (ak->ak_saved != NULL ? state_saved(ak, &rs) :
	    state_made(ak, config, &rs))
		error = vfu_state_restore(&ad->vfu, rs.rs_device,
		    rs.rs_device_len, ak->ak_journal, kl->all, kl->n,
		    &rs.rs_why);
	if (error != 0)
		adapter_log(ad, LOG_WARNING, "the client is lost: %s",
		    rs.rs_why == NULL ? "its state is invalid" : rs.rs_why);
	else {
		resume_model(ad, &rs, vfu_state_client(rs.rs_device,
		    rs.rs_device_len));
		resume_counters(ad);
	}
	free(rs.rs_buf);
}

/* Whether to begin: not if others that did have not come to an end. */
static bool
resume_counts(struct adapter_keep *ak)
{
	uint32_t *count = ak->ak_saved != NULL ? &ak->ak_saved->as_resumes :
	    &ak->ak_old->ak_resumes;

	return ((*count)++ < RESUMES);
}

void
adapter_keep_resume(struct adapter *ad, const struct e82545_config *config)
{
	struct adapter_keep *ak = keep_of(ad);
	struct kept_list kl;

	if (!is_kept(ak) || (ak->ak_old == NULL && ak->ak_saved == NULL))
		return;
	if (!resume_counts(ak)) {
		adapter_log(ad, LOG_WARNING, "the client is lost: valed ends "
		    "when it goes on with it");
		return;
	}
	if (!kept_find(&kl, &ad->config)) {
		adapter_log(ad, LOG_WARNING, "the client is lost: no memory");
		return;
	}
	resume(ad, config, &kl);
	kept_end(&kl, &ad->config);
	if (ad->vfu.vdev_server.fd != -1)
		ad->since_s = ak->ak_saved != NULL ? ak->ak_saved->as_since_s :
		    ak->ak_old->ak_adapter.since_s;
}

void
adapter_keep_live(struct adapter *ad)
{
	struct adapter_keep *ak = keep_of(ad);

	if (!is_kept(ak))
		return;
	peer_mem_set_journal(&ad->vfu.vdev_mem, ak->ak_journal);
	store_put(ak, "memory", ak->ak_fd);
	store_remove(ak, "saved");
	old_drop(ak);
}

/*
 * The end.
 */

/* Write a file with the states.  Returns it, or -1. */
static int
saved_write(struct adapter *ad, const uint8_t *device, size_t device_len)
{
	const size_t model_len = e82545_snapshot_size(ad->dev);
	const uint64_t size = sizeof(struct adapter_saved) + device_len +
	    model_len;
	struct adapter_keep *ak = keep_of(ad);
	const int fd = file_make("saved", size);
	struct adapter_saved *as;
	unsigned int i;
	int error;

	as = fd == -1 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	if (as == MAP_FAILED)
		return (-1);
	memcpy(as->as_magic, SAVED_MAGIC, sizeof(as->as_magic));
	as->as_version = ADAPTER_SAVED_VERSION;
	as->as_generation = ak->ak_generation;
	as->as_device = device_len;
	as->as_model = model_len;
	as->as_since_s = ad->since_s;
	memcpy(as->as_blame_s, ak->ak_blame_s, sizeof(as->as_blame_s));
	for (i = 0; i < ADAPTER_NCOUNTERS; i++)
		as->as_counters[i] = atomic_load_64(&ad->counters[i]);
	strlcpy(as->as_backend, ak->ak_backend, sizeof(as->as_backend));
	memcpy(as + 1, device, device_len);
	error = e82545_snapshot_save(ad->dev, (uint8_t *)(as + 1) + device_len,
	    model_len);
	munmap(as, size);
	return (error == 0 ? fd : -1);
}

void
adapter_keep_save(struct adapter *ad)
{
	const char *why = "no memory";
	uint8_t *device;
	size_t len = 0;
	int fd = -1;

	if (!is_kept(keep_of(ad)))
		return;
	device = malloc(VFU_STATE_MAX);
	e82545_pause(ad->dev);
	if (device != NULL)
		len = vfu_state_save(&ad->vfu, device, VFU_STATE_MAX, &why);
	if (len > 0)
		fd = saved_write(ad, device, len);
	if (fd != -1)
		store_put(keep_of(ad), "saved", fd);
	else
		adapter_log(ad, LOG_WARNING, "the state cannot be saved: %s",
		    why);
	/* The process ends now: nothing is freed. */
}

void
adapter_keep_forget(struct adapter *ad)
{
	struct adapter_keep *ak = keep_of(ad);

	if (ak->ak_fd == -1)
		return;
	store_remove(ak, "memory");
	store_remove(ak, "journal");
	store_remove(ak, "saved");
}

/*
 * Faults.
 */

#ifndef SANITIZED
static void
fault(int sig, siginfo_t *info, void *context __unused)
{
	if (serving != NULL)
		serving->ak_blamed = BLAMED;
	/* A fault comes again, and then ends the process; what was sent not. */
	if (info->si_code <= 0)
		raise(sig);
}
#endif

void
adapter_keep_blame(struct adapter *ad)
{
	serving = keep_of(ad);
}

/* A sanitizer has its own handlers. */
void
adapter_keep_signals(void)
{
#ifndef SANITIZED
	static const int signals[] = { SIGSEGV, SIGILL, SIGFPE, SIGABRT };
	struct sigaction sa;
	unsigned int i;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = fault;
	sa.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER;
	for (i = 0; i < nitems(signals); i++)
		sigaction(signals[i], &sa, NULL);
#endif
}
