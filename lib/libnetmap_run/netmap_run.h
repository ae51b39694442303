/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The library that netmap-run(1) preloads: descriptors of /dev/netmap are ports
 * of valed.  Private.
 *
 *	run_calls.c	the functions that take the place of the C library's
 *	run_desc.c	the descriptors: which are of /dev/netmap
 *	run_epoll.c	epoll(7) with them
 *	run_legacy.c	the requests that came before NIOCCTRL
 *	run_maps.c	where the program has mapped memory
 *	run_options.c	options of requests
 *	run_port.c	the ports, which several descriptors may share
 *	run_request.c	requests about them
 *	run_share.c	descriptors that come from another process
 *	run_wait.c	poll(2) and select(2) with them
 *
 * A descriptor is a socket, which the first request connects to valed, and of
 * which nothing but this library makes use.  With it a port is passed to
 * another process, or on to a program that is executed: the port is open as
 * long as any process has a copy of it, as with netmap.
 *
 * Errors: a function that can fail returns an int, 0 or -1, or a pointer, NULL
 * or MAP_FAILED if it fails; errno says why, as the C library's functions do,
 * in whose place these are.  A bool answers a question.  `why', in the caller's
 * buffer or a constant, says more for people, or is "".  It is written to the
 * standard error output in one place, where the request is first known to have
 * failed (run_request.c:desc_say).
 *
 * References: what a number of a descriptor stands for is a struct run_desc,
 * and rd_refs counts who has it: each number in the table, and each call in
 * progress that was given such a number, as the kernel's fget() does.  A call
 * looks up its numbers once, when it begins: run_get().  If another thread
 * closes one meanwhile, or opens something else as it, the call goes on with
 * what it began with.  The last reference closes the socket or leaves the port,
 * whose memory and sockets are there until then.  A lookup takes no lock: the
 * memory of a struct run_desc is never freed, only used again, so rd_refs is
 * valid to look at, and is 0 while nobody has it.
 *
 * Locks, in the order in which they are taken: rd_lock, one request at a time
 * of a descriptor; the ports' lock, while one is opened or closed; rp_lock, one
 * request at a time of a port; the table's lock, which is taken only if a
 * descriptor of /dev/netmap is opened, duplicated or closed, or has to do with
 * an epoll(7) descriptor.  No sync takes a lock, nor does any other wait: a ring
 * has one sync at a time (run_port_sync()), and no thread waits for another's.
 */

#ifndef _NETMAP_RUN_H_
#define	_NETMAP_RUN_H_

#include <sys/types.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/select.h>
#include <sys/stat.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "vale_client.h"
#include "vale_find.h"

/* Whether to say of all requests what went wrong, not only of refused ports. */
#define	RUN_DEBUG_ENV	"NETMAP_RUN_DEBUG"

/* Set errno, and return -1. */
static inline int
run_fail(int error)
{
	errno = error;
	return (-1);
}

/* The functions of the C library, or of what else is preloaded. */
struct run_calls {
	int	(*open)(const char *, int, ...);
	int	(*open_2)(const char *, int);
	int	(*openat)(int, const char *, int, ...);
	int	(*openat_2)(int, const char *, int);
	int	(*close)(int);
	int	(*close_range)(unsigned int, unsigned int, int);
	void	(*closefrom)(int);
	int	(*dup)(int);
	int	(*dup2)(int, int);
	int	(*dup3)(int, int, int);
	int	(*fcntl)(int, int, ...);
	int	(*ioctl)(int, unsigned long, ...);
	void	*(*mmap)(void *, size_t, int, int, int, off_t);
	int	(*poll)(struct pollfd *, nfds_t, int);
	int	(*ppoll)(struct pollfd *, nfds_t, const struct timespec *,
		    const sigset_t *);
	int	(*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	int	(*pselect)(int, fd_set *, fd_set *, fd_set *,
		    const struct timespec *, const sigset_t *);
	int	(*epoll_ctl)(int, int, int, struct epoll_event *);
	int	(*epoll_wait)(int, struct epoll_event *, int, int);
	int	(*epoll_pwait)(int, struct epoll_event *, int, int,
		    const sigset_t *);
	int	(*epoll_pwait2)(int, struct epoll_event *, int,
		    const struct timespec *, const sigset_t *);
};

/* Return the calls of libc, which are found once.  Any thread. */
const struct run_calls *run_calls(void);

/* Syncs of a ring: run_port_sync(). */
struct run_sync {
	atomic_bool	 rsy_wanted;	/* since the last one began */
	atomic_bool	 rsy_busy;	/* one is in progress */
};

/* A port of this process.  run_port.c. */
struct run_port {
	struct vale_client_port	 rp_client;
	pthread_mutex_t		 rp_lock;	/* requests over its
						   connection */
	/* The ports' lock. */
	TAILQ_ENTRY(run_port)	 rp_link;
	char			 rp_name[VALE_NAME_SIZE];
	bool			 rp_single;	/* not found by name */
	unsigned int		 rp_refs;	/* descriptors */
	unsigned int		 rp_users[2][VALE_RINGS_MAX]; /* tx, rx */
	bool			 rp_exclusive[2][VALE_RINGS_MAX];
	struct run_sync		 rp_sync[2][VALE_RINGS_MAX];
};

/* What open(2) of /dev/netmap makes. */
struct run_desc {
	struct run_desc	*rd_next;	/* of all; the table's lock */
	bool		 rd_used;	/* the table's lock */
	atomic_uint	 rd_refs;	/* numbers, and calls in progress */
	pthread_mutex_t	 rd_lock;
	int		 rd_fd;		/* a copy of the socket; with a port,
					   the port's; or -1 at the end */
	bool		 rd_connected;
	/* Set when the port is open: then nothing here changes. */
	atomic_bool	 rd_registered;
	struct run_port	*rd_port;
	unsigned int	 rd_first;	/* the ring pairs of this descriptor, */
	unsigned int	 rd_end;	/* and the one after them */
	bool		 rd_tx;		/* their transmit rings, */
	bool		 rd_rx;		/* their receive rings */
	bool		 rd_exclusive;	/* nobody else's */
	bool		 rd_tx_poll;	/* waiting sends, whatever for */
	bool		 rd_rx_poll;	/* and returns slots */
};

/*
 * The descriptor `fd', or NULL if it is not of /dev/netmap.  To look whether it
 * is one: who uses it calls run_get().
 */
#define	RUN_FDS		65536
extern _Atomic(struct run_desc *) run_fds[RUN_FDS];

static inline struct run_desc *
run_find(int fd)
{
	if ((unsigned int)fd >= RUN_FDS)
		return (NULL);
	return (atomic_load_explicit(&run_fds[fd], memory_order_acquire));
}

/* References that the calls in progress of this thread have. */
extern _Thread_local unsigned int run_held;

/* Free a descriptor: the last reference has gone.  Leaves errno. */
void	run_desc_free(struct run_desc *rd);

/* Give back a reference.  Leaves errno. */
static inline void
run_put(struct run_desc *rd)
{
	run_held--;
	if (atomic_fetch_sub(&rd->rd_refs, 1) == 1)
		run_desc_free(rd);
}

/*
 * Reference the descriptor `fd', or return NULL if it is not of /dev/netmap.
 * Without a reference `fd' may be closed, and used again as another.
 */
static inline struct run_desc *
run_get(int fd)
{
	struct run_desc *rd;
	unsigned int refs;

	while ((rd = run_find(fd)) != NULL) {
		refs = atomic_load(&rd->rd_refs);
		if (refs == 0 || !atomic_compare_exchange_weak(&rd->rd_refs,
		    &refs, refs + 1))
			continue;
		run_held++;
		if (run_find(fd) == rd)
			break;
		run_put(rd);
	}
	return (rd);
}

/* Take another reference; the caller has one. */
static inline void
run_ref(struct run_desc *rd)
{
	atomic_fetch_add(&rd->rd_refs, 1);
	run_held++;
}

/*
 * Numbers of the library's own descriptors, which the program must not close:
 * it does not know them, and closes all but its own with closefrom(3) or in a
 * loop.  Numbers from RUN_FDS on are not protected.  Any thread.
 */
extern atomic_bool run_own[RUN_FDS];

static inline void
run_own_set(int fd, bool own)
{
	if ((unsigned int)fd < RUN_FDS)
		atomic_store_explicit(&run_own[fd], own, memory_order_relaxed);
}

static inline bool
run_is_own(int fd)
{
	return ((unsigned int)fd < RUN_FDS &&
	    atomic_load_explicit(&run_own[fd], memory_order_relaxed));
}

/* How many numbers there are. */
extern atomic_uint run_count;

static inline bool
run_any(void)
{
	return (atomic_load_explicit(&run_count, memory_order_relaxed) != 0);
}

/* Handle open(2) of /dev/netmap. */
int	run_open(int flags);
/*
 * Make one of the socket `copy', which it owns then.  Returns it with a
 * reference of the caller's, or NULL with errno.
 */
struct run_desc *run_desc_new(int copy);
/* Let it be found as `fd', below RUN_FDS. */
void	run_desc_add(struct run_desc *rd, int fd);
/*
 * Add `copy', a new number of `rd'.  Returns `copy', or -1 with errno if the
 * table has no space.
 */
int	run_copied(struct run_desc *rd, int copy);
/*
 * Forget `fd', or all from `first' to `last', which are about to be closed.
 * Numbers that are not of /dev/netmap are left alone.
 */
void	run_closed(int fd);
void	run_closed_range(unsigned int first, unsigned int last);

/* Return whether the descriptor has a port. */
static inline bool
run_registered(struct run_desc *rd)
{
	return (atomic_load_explicit(&rd->rd_registered,
	    memory_order_acquire));
}

/*
 * Open the port, or share the port of this name that the process has:
 * NETMAP_REQ_REGISTER.  Sets what rd_registered guards, but not that.  Returns
 * 0 or -1 with errno, and with what is wrong in `why', which has as many bytes
 * as vw_why, or "".  rd_lock.
 */
int	run_port_open(struct run_desc *rd, const char *name,
	    struct nmreq_register *reg, char *why);
/*
 * Open the port that the descriptor's connection has already, in another
 * process.  Returns 0, or -1 with errno.  The ports' lock.
 */
int	run_port_share(struct run_desc *rd);
/* Leave the port, which is closed with its last descriptor. */
void	run_port_close(struct run_desc *rd);
/* Keep the ports as they are, around fork(2).  Any thread. */
void	run_ports_lock(void);
void	run_ports_unlock(void);
/*
 * Sync ring `ring' of a direction: 0 transmit, 1 receive.  A thread that waits
 * for frames syncs the transmit ring that another one fills.  If a sync is in
 * progress, the thread that makes it makes another one, and this returns 0.
 * Else 0, or -1 with errno.
 */
int	run_port_sync(struct run_port *rp, unsigned int dir, unsigned int ring);
/*
 * Release rp_lock of all ports, their rings, and the lock of lines, in a child
 * of fork(2): the threads that had them are not there.
 */
void	run_ports_leave(void);
void	run_request_leave(void);
/* Connect rd_fd, if it is not yet.  0, or -1 with errno.  rd_lock. */
int	run_connect(struct run_desc *rd);
/*
 * Begin and end requests over a connection, which other processes may have,
 * too.  Of threads of this process, one is here at a time.
 */
void	run_request_begin(int fd);
void	run_request_end(int fd);

/*
 * Take `fd' for one of /dev/netmap if it has come from another process and is
 * one there.  Returns its entry, with a reference, or NULL.  `connected' is
 * false if the descriptor may have no connection yet.  Leaves errno.
 */
struct run_desc *run_share(int fd, bool connected);

/* Handle ioctl(2) NIOCCTRL. */
int	run_control(struct run_desc *rd, struct nmreq_header *hdr);
/* Handle NIOCREGIF and NIOCGINFO. */
int	run_legacy(struct run_desc *rd, unsigned long request,
	    struct nmreq *nmr);
/*
 * Refuse a request with options.  Returns -1 with errno: EOPNOTSUPP, and each
 * option says so; EINVAL, of an option that is there twice or has no type,
 * which say so; EMSGSIZE, of more than a request has space for.
 */
int	run_options_refuse(const struct nmreq_header *hdr);

/*
 * Map the window of a port that has been opened over all mappings of its
 * memory; and that of any port over a mapping that has been made, if it is of
 * its memory: `memory' is that of the mapping.  0, or -1 with errno.  The
 * ports' lock.  run_maps.c.
 */
int	run_maps_port(const struct vale_client_port *cp);
int	run_maps_memory(const struct vale_client_port *cp,
	    const struct stat *memory, void *addr, size_t len, int prot,
	    int flags, off_t offset);
/* Map the port's memory, with all windows, for mmap(2).  run_port.c. */
void	*run_port_mmap(const struct run_port *rp, void *addr, size_t len,
	    int prot, int flags, off_t offset);

/* Handle ioctl(2) and mmap(2) of a descriptor of /dev/netmap. */
int	run_ioctl(struct run_desc *rd, unsigned long request, void *arg);
void	*run_mmap(struct run_desc *rd, void *addr, size_t len, int prot,
	    int flags, off_t offset);

/* What poll(2) calls space in a transmit ring, and frames in a receive ring. */
#define	RUN_TX_EVENTS	(POLLOUT | POLLWRNORM)
#define	RUN_RX_EVENTS	(POLLIN | POLLRDNORM)

/* Return the time `timeout' from now, by CLOCK_MONOTONIC. */
struct timespec run_deadline(const struct timespec *timeout);
/* Return the time from now until `deadline', at least 0. */
struct timespec run_left(const struct timespec *deadline);

/*
 * Handle ppoll(2) with at least one descriptor of /dev/netmap.  `descs' are
 * those of `fds' that are of /dev/netmap, to which the caller has references,
 * or NULL: look them up.  `timeout' NULL is no limit.
 */
int	run_poll(struct pollfd *fds, struct run_desc *const *descs, nfds_t n,
	    const struct timespec *timeout, const sigset_t *mask);
/*
 * Handle pselect(2) with at least one descriptor of /dev/netmap.  `timeout'
 * NULL is no limit.
 */
int	run_select(int n, fd_set *sets[3], const struct timespec *timeout,
	    const sigset_t *mask);
/* Return whether a descriptor of /dev/netmap is in `sets'. */
bool	run_select_any(int n, fd_set *sets[3]);

/* Handle epoll_ctl(2) of `fd', a descriptor of /dev/netmap. */
int	run_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
/*
 * Return whether a descriptor of /dev/netmap is in any epoll(7) descriptor, or
 * in `epfd'.
 */
bool	run_epoll_used(void);
bool	run_epoll_any(int epfd);
/*
 * Surround a wait for any epoll(7) descriptor: who adds an `fd' meanwhile wakes
 * it.  Any thread.
 */
void	run_epoll_enter(void);
void	run_epoll_leave(void);
/*
 * Take the library's own event out of `n', which may be -1.  Returns how many
 * are left.
 */
int	run_epoll_own(struct epoll_event *events, int n);
/* Handle epoll_pwait2(2) of an `epfd' with such an `fd'.  NULL is no limit. */
int	run_epoll_wait(int epfd, struct epoll_event *events, int max,
	    const struct timespec *timeout, const sigset_t *mask);
/*
 * Forget `fd', of /dev/netmap or epoll(7), before it is closed.  The table's
 * lock.
 */
void	run_epoll_closed(int fd);

/* Take and release the lock of the table of descriptors.  Any thread. */
void	run_lock(void);
void	run_unlock(void);

#endif /* !_NETMAP_RUN_H_ */
