/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What this process keeps of an adapter; see adapter_keep.h.  adapter_resume.c
 * goes on from what an earlier one has left.
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
#include <unistd.h>

#include "adapter_keep_impl.h"
#include "adapter_version.h"
#include "e82545.h"
#include "peer_fault.h"
#include "peer_fd.h"
#include "peer_mem_journal.h"
#include "vfu_state.h"

/* The adapter that a thread serves, and another one that takes its frames. */
static _Thread_local struct adapter_keep *serving, *receiving;

/*
 * Memory.
 */

const char *
adapter_keep_name(char name[VALED_STORE_NAME], const struct adapter_config *ac,
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
 * Get what identifies the program's file, which says how its memory is laid
 * out; zeros if the file has no build ID.
 */
static void
keep_build(uint8_t build[BUILD_SIZE])
{
	memset(build, 0, BUILD_SIZE);
	dl_iterate_phdr(note_build, build);
}

/* Map a file, which must not change its size.  NULL if that fails. */
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

void *
adapter_keep_stored(const struct adapter_config *ac, const char *what,
    uint64_t *size)
{
	char name[VALED_STORE_NAME];
	const int fd = valed_store_take(adapter_keep_name(name, ac, what));
	void *p;

	if (fd == -1)
		return (NULL);
	p = file_map(fd, size);
	close(fd);
	return (p);
}

/* Map the journal of the client's memory, for this and the next process. */
static struct peer_mem_journal *
journal_map(const struct adapter_config *ac)
{
	char name[VALED_STORE_NAME];
	struct peer_mem_journal *journal;
	uint64_t size;
	int fd;

	journal = adapter_keep_stored(ac, "journal", &size);
	if (journal != NULL && size == sizeof(*journal))
		return (journal);
	if (journal != NULL)
		munmap(journal, size);
	fd = peer_memory_new("journal", sizeof(*journal));
	if (fd == -1)
		return (NULL);
	journal = file_map(fd, &size);
	if (journal != NULL)
		(void)valed_store_put(adapter_keep_name(name, ac, "journal"),
		    fd);
	close(fd);
	return (journal);
}

static void
store_put(void *arg, const char *what, int fd)
{
	struct adapter_keep *ak = arg;
	char name[VALED_STORE_NAME];

	(void)valed_store_put(adapter_keep_name(name, &ak->ak_adapter.config,
	    what), fd);
}

static void
store_remove(void *arg, const char *what)
{
	struct adapter_keep *ak = arg;
	char name[VALED_STORE_NAME];

	valed_store_remove(adapter_keep_name(name, &ak->ak_adapter.config,
	    what));
}

/* Map memory that is kept. */
static struct adapter_keep *
keep_map(const struct adapter_config *ac, uint64_t size)
{
	const int fd = peer_memory_new(ac->ac_name, size);
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

/*
 * Allocate memory that is not kept: there is no store.  Nobody touches most of
 * it, buffers and arrays of batches: no memset(3).
 */
static struct adapter_keep *
keep_new(uint64_t size)
{
	void *memory = calloc(1, size + E82545_MEMORY_ALIGN);
	struct adapter_keep *ak;

	if (memory == NULL)
		return (NULL);
	ak = (void *)roundup2((uintptr_t)memory, E82545_MEMORY_ALIGN);
	ak->ak_allocated = memory;
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
	memcpy(ak->ak_mac, ac->ac_mac, sizeof(ak->ak_mac));
	ak->ak_store = (struct peer_keep){ store_put, store_remove, ak };
	if (ak->ak_fd == -1)
		return (&ak->ak_adapter);
	keep_build(ak->ak_build);
	if (!adapter_resume_find(ak, ac)) {
		adapter_keep_free(&ak->ak_adapter);
		errno = EPERM;
		return (NULL);
	}
	ak->ak_journal = journal_map(ac);
	return (&ak->ak_adapter);
}

void
adapter_keep_free(struct adapter *ad)
{
	struct adapter_keep *ak = keep_of(ad);

	adapter_resume_drop(ak);
	if (ak->ak_journal != NULL)
		munmap(ak->ak_journal, sizeof(*ak->ak_journal));
	if (ak->ak_fd == -1) {
		free(ak->ak_allocated);
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

void
adapter_keep_live(struct adapter *ad)
{
	struct adapter_keep *ak = keep_of(ad);

	if (!is_kept(ak))
		return;
	peer_mem_set_journal(&ad->vfu.vdev_mem, ak->ak_journal);
	store_put(ak, "memory", ak->ak_fd);
	store_remove(ak, "saved");
	adapter_resume_spent(ak);
	adapter_resume_drop(ak);
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
	const int fd = peer_memory_new("saved", size);
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
	memcpy(as->as_mac, ak->ak_mac, sizeof(as->as_mac));
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
	vfu_irq_hold(&ad->vfu.vdev_irq);
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

/*
 * Blame the clients of the thread.  While it delivers frames to another
 * adapter, it handles what two clients have written: frames of the one,
 * descriptors of the other.  Nobody can tell which of them has ended the
 * process, so both are blamed: the culprit each time, and the others only as
 * often as they had to do with it.
 */
static void
note_blame(void)
{
	if (serving != NULL)
		serving->ak_blamed = BLAMED;
	if (receiving != NULL)
		receiving->ak_blamed = BLAMED;
	/* Other threads may hang in the kernel, which holds up the end. */
	valed_store_tell(VALED_STORE_CRASHES, NULL);
}

#ifndef SANITIZED
/* Print which call it was: the kernel tells nobody else. */
static void
say_call(int call)
{
	char text[64];
	int n;

	n = snprintf(text, sizeof(text),
	    "valed: system call %d is not permitted\n", call);
	(void)!write(STDERR_FILENO, text, n);
}

static void
fault(int sig, siginfo_t *info, void *context __unused)
{
	note_blame();
	if (sig == SIGSYS && info->si_code > 0)
		say_call(info->si_syscall);
	/* A fault comes again, and then ends the process; others do not. */
	if (sig == SIGSYS || info->si_code <= 0)
		raise(sig);
}
#endif

void
adapter_keep_blame(struct adapter *ad)
{
	serving = keep_of(ad);
}

void
adapter_keep_receiver(struct adapter *ad)
{
	receiving = ad == NULL ? NULL : keep_of(ad);
}

/* Handle the signals, unless a sanitizer has its own handlers. */
void
adapter_keep_signals(void)
{
#ifndef SANITIZED
	static const int signals[] = { SIGSEGV, SIGILL, SIGFPE, SIGABRT,
	    SIGSYS };
	struct sigaction sa;
	unsigned int i;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = fault;
	sa.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER;
	for (i = 0; i < nitems(signals); i++)
		sigaction(signals[i], &sa, NULL);
#endif
	peer_fault_on_end(note_blame);
}
