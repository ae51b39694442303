/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* touch.h says what this is for. */

#include <sys/mman.h>

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "require.h"
#include "touch.h"

#define	WAITING_MAX	8

static struct waiting {
	uint8_t	*page;		/* NULL: unused */
	void	(*fn)(void *arg);
	void	*arg;
} waiting[WAITING_MAX];

static void
touched(int sig __attribute__((__unused__)), siginfo_t *info,
    void *context __attribute__((__unused__)))
{
	uintptr_t addr = (uintptr_t)info->si_addr;
	struct waiting *w, now;

	for (w = waiting; w < waiting + WAITING_MAX; w++) {
		if (w->page == NULL || addr - (uintptr_t)w->page >= TOUCH_PAGE)
			continue;
		now = *w;
		w->page = NULL;
		REQUIRE(mprotect(now.page, TOUCH_PAGE,
		    PROT_READ | PROT_WRITE) == 0);
		now.fn(now.arg);
		return;
	}
	/* Another fault: the access is repeated, and ends the process. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
}

void
touch_next(void *page, void (*fn)(void *arg), void *arg)
{
	struct sigaction sa;
	struct waiting *w;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = touched;
	sa.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigemptyset(&sa.sa_mask);
	REQUIRE(sigaction(SIGSEGV, &sa, NULL) == 0);
	REQUIRE(sigaction(SIGBUS, &sa, NULL) == 0);
	for (w = waiting; w->page != NULL; w++)
		REQUIRE(w < waiting + WAITING_MAX - 1);
	w->page = page;
	w->fn = fn;
	w->arg = arg;
	REQUIRE(mprotect(page, TOUCH_PAGE, PROT_NONE) == 0);
}

void *
touch_pages(unsigned int n)
{
	void *p;

	p = mmap(NULL, n * TOUCH_PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	REQUIRE(p != MAP_FAILED);
	return (p);
}
