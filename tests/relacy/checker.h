/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The project's C functions under Relacy, a model checker for C11's memory
 * model: checker.cc.
 *
 * The functions are compiled from their own files.  systm.h gives them
 * atomic(9) as calls of the checker; clang's -fsanitize=thread reports their
 * other accesses (__tsan_*()); the linker wraps mutexes, eventfds and
 * allocation.  Memory that is allocated in a scenario's setup() is shared: for
 * each atomic variable in it the checker has one of Relacy's atomics, which
 * returns old values where C11 allows that, and for each byte one of its
 * variables, which finds data races.
 */

#ifndef _CHECKER_H_
#define	_CHECKER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A site: an operation that orders others, in the source.  Relaxed operations
 * are none.
 */
struct mm_site {
	const char	*function;
	const char	*operation;	/* "load_acq", "fence_seq_cst", ... */
	const char	*operand;	/* as written */
	const char	*file;
	int		 line;
	bool		 hit;		/* done in an execution */
};

uint64_t mm_load(const volatile void *p, int size, struct mm_site *site);
void	 mm_store(volatile void *p, int size, uint64_t value,
	    struct mm_site *site);
/* Add `add', or store it; returns the old value. */
uint64_t mm_add(volatile void *p, int size, uint64_t add,
	    struct mm_site *site);
uint64_t mm_swap(volatile void *p, int size, uint64_t value);
bool	 mm_cmpset(volatile void *p, int size, uint64_t old, uint64_t value,
	    struct mm_site *site);
/* memory_order's values. */
void	 mm_fence(int order, struct mm_site *site);
void	 mm_fail(const char *what, const char *file, int line)
	    __attribute__((__noreturn__));

/*
 * For scenarios.
 */

#define	MM_THREADS_MAX	3

struct mm_scenario {
	const char	*name;
	const char	*descr;
	int		 nthreads;	/* 2 or 3 */
	void		(*setup)(void);	/* once; one thread */
	void		(*thread[MM_THREADS_MAX])(void);
	void		(*check)(void);	/* after each execution; or NULL */
};

extern const struct mm_scenario tx_scenarios[], rx_scenarios[],
    vale_scenarios[];

/* An event; static, zero at first.  mm_wait() clears it. */
struct mm_event {
	int	dummy;
};
void	 mm_set(struct mm_event *ev);
void	 mm_wait(struct mm_event *ev);
/* Clear it, in setup(). */
void	 mm_clear(struct mm_event *ev);
/* Wait until an eventfd is readable. */
void	 mm_wait_fd(int fd);
/* Let others run, and see what they stored. */
void	 mm_yield(void);
/* A number below `n', another one in each execution. */
unsigned int mm_rand(unsigned int n);
/* Each 8-byte word at `p' is one atomic variable, also to byte accesses. */
void	 mm_words(void *p, size_t size);
/* Shared memory, zeroed, aligned to `align'; in setup() only. */
void	*mm_alloc(size_t size, size_t align);

#define	MM_CHECK(exp) do {						\
	if (!(exp))							\
		mm_fail(#exp, __FILE__, __LINE__);			\
} while (0)

/* Called before a thread owns a mutex: see fair mutex; or NULL. */
extern void (*mm_locked)(const void *mutex, int thread);
int	 mm_thread(void);

#ifdef __cplusplus
}
#endif

#endif /* !_CHECKER_H_ */
