/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The handler of SIGBUS; see peer_fault.h.
 *
 * It makes only system calls that are safe in a signal handler and that the
 * sandbox allows: mmap(2), and what the owner's function needs.  To map a page
 * of a file that is shared and in memory already charges nothing.
 *
 * A huge page cannot be replaced in part.  In its place the handler maps a part
 * of the spare file that is beyond the file's end, so that each normal page
 * raises SIGBUS again when it is accessed, and is replaced then.
 *
 * A page that is replaced in the midst of others takes two more mappings, and
 * those of a process are limited.  So after FAULT_PAGES pages the handler does
 * the same with all of that client's memory, which is lost anyway: each range
 * is one mapping again.
 */

#include <sys/mman.h>
#include <sys/systm.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "peer_mem.h"
#include "peer_fault.h"

/* More than an instruction accesses. */
#define	FAULT_PAGES	64

/*
 * Slots are used again.  A handler counts itself before it looks at one, so
 * that who has emptied a slot can wait until nobody looks at what was there.
 */
static struct fault_owner {
	uint32_t	used;		/* 0: empty; atomic */
	struct peer_mem	*dma;
	void		(*lost)(void *arg);
	void		*arg;
	int		spare;		/* a memfd of one page */
	uint32_t	replaced;	/* pages; atomic */
} fault_owners[PEER_FAULT_MAX];
/* Additions and removals; never the handler's. */
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t fault_nowners;		/* slots used once; atomic */
static void	(*fault_end)(void);	/* peer_fault_on_end() */
static uint32_t fault_handlers;		/* that look at slots; atomic */

static bool
fault_mmap(void *at, size_t size, int flags, int fd, off_t offset)
{
	return (mmap(at, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED |
	    MAP_NORESERVE, fd, offset) != MAP_FAILED);
}

/* Replace a range by one mapping, in which each access raises SIGBUS. */
static void
fault_collapse(const void *arg, uint8_t *map, size_t size)
{
	const struct fault_owner *o = arg;

	fault_mmap(map, size, MAP_SHARED, o->spare, PEER_MEM_PAGE);
}

/* Replace the page of guest memory at `addr'. */
static bool
fault_replace(struct fault_owner *o, uint8_t *addr,
    const struct peer_mem_host *host)
{
	uint8_t *page = addr - (uintptr_t)addr % PEER_MEM_PAGE;

	if (atomic_fetchadd_32(&o->replaced, 1) % FAULT_PAGES ==
	    FAULT_PAGES - 1)
		peer_mem_each(o->dma, fault_collapse, o);
	if (fault_mmap(page, PEER_MEM_PAGE, MAP_SHARED, o->spare, 0))
		return (true);
	if (host->page_size > PEER_MEM_PAGE && fault_mmap(host->page,
	    host->page_size, MAP_SHARED, o->spare, PEER_MEM_PAGE) &&
	    fault_mmap(page, PEER_MEM_PAGE, MAP_SHARED, o->spare, 0))
		return (true);
	/*
	 * All together use as many mappings as the process may have: make the
	 * range one, of memory that is allocated when it is accessed.
	 */
	return (fault_mmap(host->map, host->map_size, MAP_PRIVATE | MAP_ANON,
	    -1, 0));
}

/*
 * Find whose memory the address is, and replace its page.  Returns true if the
 * address is guest memory again.
 */
static bool
fault_handle(void *addr)
{
	struct fault_owner *o;
	struct peer_mem_host host;
	uint32_t i, n;

	n = atomic_load_acq_32(&fault_nowners);
	for (i = 0; i < n; i++) {
		o = &fault_owners[i];
		if (atomic_load_acq_32(&o->used) == 0 ||
		    !peer_mem_host(o->dma, addr, &host))
			continue;
		peer_mem_lose(o->dma, host.gpa);
		o->lost(o->arg);
		return (fault_replace(o, addr, &host));
	}
	return (false);
}

static void
fault_signal(int sig, siginfo_t *info, void *context __unused)
{
	int error = errno;
	bool handled;

	/*
	 * A memory error in a page that nobody accesses now: if somebody does,
	 * a signal follows.
	 */
	if (info->si_code == BUS_MCEERR_AO)
		return;
	/* Before the slots are read: pairs with peer_fault_remove(). */
	atomic_add_32(&fault_handlers, 1);
	atomic_thread_fence_seq_cst();
	handled = info->si_code > 0 && fault_handle(info->si_addr);
	atomic_add_rel_32(&fault_handlers, -1);
	if (!handled) {
		if (fault_end != NULL)
			fault_end();
		/* The access faults again; a signal that was sent does not. */
		signal(sig, SIG_DFL);
		if (info->si_code <= 0)
			raise(sig);
	}
	errno = error;
}

int
peer_fault_init(void)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = fault_signal;
	sa.sa_flags = SA_SIGINFO | SA_RESTART;
	return (sigaction(SIGBUS, &sa, NULL) == -1 ? errno : 0);
}

void
peer_fault_on_end(void (*end)(void))
{
	fault_end = end;
}

static int
fault_add(struct peer_mem *dma, void (*lost)(void *arg), void *arg)
{
	static const uint8_t page[PEER_MEM_PAGE];
	struct fault_owner *o;
	int error;

	for (o = fault_owners; o < fault_owners + fault_nowners; o++) {
		if (o->used == 0)
			break;
	}
	if (o == fault_owners + PEER_FAULT_MAX)
		return (ENOSPC);
	o->dma = dma;
	o->lost = lost;
	o->arg = arg;
	o->replaced = 0;
	o->spare = memfd_create("spare", MFD_CLOEXEC);
	if (o->spare == -1)
		return (errno);
	if (write(o->spare, page, sizeof(page)) != (ssize_t)sizeof(page)) {
		error = errno;
		close(o->spare);
		return (error);
	}
	atomic_store_rel_32(&o->used, 1);
	if (o == fault_owners + fault_nowners)
		atomic_store_rel_32(&fault_nowners, fault_nowners + 1);
	return (0);
}

int
peer_fault_add(struct peer_mem *dma, void (*lost)(void *arg), void *arg)
{
	int error;

	pthread_mutex_lock(&fault_lock);
	error = fault_add(dma, lost, arg);
	pthread_mutex_unlock(&fault_lock);
	return (error);
}

void
peer_fault_remove(struct peer_mem *dma)
{
	struct fault_owner *o;

	pthread_mutex_lock(&fault_lock);
	for (o = fault_owners; o < fault_owners + fault_nowners; o++) {
		if (o->used == 0 || o->dma != dma)
			continue;
		atomic_store_rel_32(&o->used, 0);
		/* Pairs with fault_signal().  Handlers wait for nothing. */
		atomic_thread_fence_seq_cst();
		while (atomic_load_acq_32(&fault_handlers) != 0)
			sched_yield();
		close(o->spare);
		break;
	}
	pthread_mutex_unlock(&fault_lock);
}
