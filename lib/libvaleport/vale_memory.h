/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Memory that ports and pipes of other processes are in.
 *
 * A port and its pipes share memory, so that a program can pass a frame from
 * the one to the other without a copy.  It exists as long as one of them does:
 * pipes go on without their port, and a port that is opened again finds them
 * there.  A pipe that is opened without its port has such memory, too, in which
 * the port has its place.
 *
 * Behind the port's part, parts are given out one after the other: to pipes,
 * and as extra buffers of pipes and of who opens no port, but only memory.  As
 * all slots of the memory may have any buffer, an extra buffer is never
 * another's while the memory exists.  Behind all of them are the places of
 * windows, two for each pipe, and those without rings: no buffer is there.
 *
 * The memory is a memfd that can neither shrink nor grow, of a size for all
 * that there may be.  A page that nobody touches uses no memory.  valed maps it
 * as the memory of the port only, which may have any buffer that has been given
 * out: so no more than that can be touched by valed for the port's user, and
 * that much is charged, to all ports' limit and to that of the memory's user.
 * What programs touch besides is charged to them, by the kernel.
 *
 * All programs with a port or a pipe there can write to it at any time.  It is
 * that user's whose connection made it.  Another connection has it if it is of
 * the same user, or passes a descriptor of the memory, which proves that it has
 * it already.  Nobody has a monitor's but by that connection.  An administrator
 * is no exception: the programs of administrators are worth the most.
 *
 * What programs believe is not there, but in a file that each connection has
 * for itself: vale_layout.h.
 *
 * Locks: that of the table, under which nobody accesses such memory; then
 * mm_lock, under which its pipes are initialized.  A program that makes this
 * slow delays those with the same memory.
 */

#ifndef _VALE_MEMORY_H_
#define	_VALE_MEMORY_H_

#include <sys/types.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libvale.h"

struct vale_grant;

/* Memories at a time: each has a client at least. */
#define	VALE_MEMORIES	320
/* Pipes in one memory, */
#define	VALE_PIPES	32
/* windows without rings, of NR_REG_NULL, */
#define	VALE_NULLS	8
/* and extra buffers of both. */
#define	VALE_EXTRA	2048

/* A pipe, or a place for one.  vale_grant_pipe.c. */
struct vale_memory_pipe {
	/* The table's lock. */
	char		 cpi_name[VALE_NAME_SIZE]; /* before the brace, */
	char		 cpi_id[VALE_NAME_SIZE]; /* and behind it */
	bool		 cpi_open[2];	/* the ends: vale_pipe.h */
	uint32_t	 cpi_slots[2];	/* of their transmit rings, or 0; these
					   stay, as the buffers do, */
	size_t		 cpi_at;	/* and where it begins */
	/* mm_lock; the table's lock if no end is open. */
	bool		 cpi_ready;	/* it is initialized */
	int		 cpi_kick[2][2]; /* sockets: of the direction from this
					   end, at that end */
};

struct vale_memory {
	/* Constant. */
	unsigned int	 mm_index;	/* in the table */
	int		 mm_fd;
	dev_t		 mm_dev;	/* of mm_fd */
	ino_t		 mm_ino;
	uid_t		 mm_uid;	/* whose it is, */
	bool		 mm_admin;	/* an administrator's */
	bool		 mm_monitor;	/* of a monitor */
	size_t		 mm_size;
	size_t		 mm_port_size;	/* of the port, at the beginning */
	size_t		 mm_bufs;	/* where buffer 0 would be */
	uint32_t	 mm_pipe_slots;	/* of a ring, at most */
	size_t		 mm_windows;	/* where those begin */
	struct vale_params mm_params;	/* the port's, without defaults */
	uint32_t	 mm_extra_bufs;
	/* The table's lock. */
	char		 mm_name[VALE_NAME_SIZE]; /* of the port, or "" */
	bool		 mm_port;	/* the port is open, or about to be */
	struct vale_desc *mm_desc;	/* it, while it is; or NULL */
	unsigned int	 mm_refs;	/* ports and ends that are open */
	size_t		 mm_used;	/* what has been given out, */
	uint64_t	 mm_charged;	/* and what is charged for that */
	pthread_mutex_t	 mm_lock;
	struct vale_memory_pipe	 mm_pipe[VALE_PIPES];
	bool		 mm_null[VALE_NULLS];	/* taken; the table's lock */
	uint32_t	 mm_extra_used;	/* the table's lock */
};

/* All of them; each has a connection at least.  The table's lock. */
extern struct vale_memory *vale_memories[VALE_MEMORIES];

/* Take the table's lock, or release it.  Any thread. */
void	vale_memory_lock(void);
void	vale_memory_unlock(void);

/*
 * Set the most that is charged for all memories, and for those of a user who is
 * no administrator, in bytes.  Before the first connection.
 */
void	vale_memory_limits(uint64_t all, uint64_t user);

/*
 * Make memory of the client's user, with one reference.  `params' and
 * `extra_bufs' are those of the port, in range; `slots' is the least that a
 * ring of a pipe can have.  Returns NULL with errno: ENOMEM, with gr_why set,
 * if a limit is reached.  The table's lock.
 */
struct vale_memory *vale_memory_new(struct vale_grant *gr,
	    const struct vale_params *params, uint32_t extra_bufs,
	    uint32_t slots);
/*
 * Give out `size' bytes more, a multiple of VALE_PAGE.  Returns their offset,
 * or 0 with errno as vale_memory_new().  The table's lock.
 */
size_t	vale_memory_take(struct vale_grant *gr, struct vale_memory *mm,
	    size_t size);
/* Give a reference back.  The table's lock. */
void	vale_memory_release(struct vale_memory *mm);
/*
 * Find the memory that a request names: by a descriptor that was passed, or by
 * nr_mem_id `id', which may be anything.  NULL if it names none, or with
 * *error not 0, after vale_grant_why(): EINVAL if there is none; EPERM if it is
 * another user's.  The table's lock.
 */
struct vale_memory *vale_memory_named(struct vale_grant *gr, unsigned int id,
	    int *error);
/* Return whether the client's user has the memory, without proof. */
bool	vale_memory_own(const struct vale_grant *gr,
	    const struct vale_memory *mm);
/* Return the bytes of the memory of such a port. */
size_t	vale_memory_size(const struct vale_params *params);

/* Return the bytes that have been given out behind the port. */
size_t	vale_memory_more(const struct vale_memory *mm);

/*
 * Give out a list of up to `n' extra buffers, which begins with *first.
 * Returns how many there were.
 */
uint32_t vale_memory_extra(struct vale_grant *gr, struct vale_memory *mm,
	    uint32_t n, uint32_t *first);

/*
 * Make the client's window, gr_window, for so many ring pairs with these slots:
 * a file of its own, with what valed says there.  Returns 0 or an errno.
 */
int	vale_memory_window(struct vale_grant *gr, uint32_t rings,
	    uint32_t tx_slots, uint32_t rx_slots, uint32_t extra);
/* Return the bytes of a pipe. */
size_t	vale_memory_pipe_size(const uint32_t slots[2]);
/* Say where the window of an end of pipe number `pipe' of mm_pipe is. */
size_t	vale_memory_pipe_window(const struct vale_memory *mm, unsigned int pipe,
	    unsigned int end);
/* Say where a window without rings is, by its number in mm_null. */
size_t	vale_memory_null_window(const struct vale_memory *mm,
	    unsigned int place);

/*
 * Find the user's memory of that name, with the port if there is one; or NULL.
 * With `other', find that of another user's port.  The table's lock.
 */
struct vale_memory *vale_memory_find(const struct vale_grant *gr,
	    const char *name, bool other);

/*
 * Find or make memory for a port that is about to be opened: that of the user's
 * pipes of this name if the numbers are the same, or new.  `name' is NULL for a
 * monitor.  The caller then calls vale_memory_opened() or vale_memory_closed().
 * Returns NULL with errno, EBUSY if the port is open.
 */
struct vale_memory *vale_memory_open(struct vale_grant *gr, const char *name,
	    const struct vale_params *params, uint32_t extra_bufs);
/*
 * Note that the port is open, with `more' bytes behind its own, and pipes that
 * have its name find this memory.
 */
void	vale_memory_opened(struct vale_memory *mm, struct vale_desc *port,
	    size_t more);
/* Note that the port is about to be closed. */
void	vale_memory_closing(struct vale_memory *mm);
/* Note that the port is closed, or was not opened. */
void	vale_memory_closed(struct vale_memory *mm);

/*
 * nr_mem_id: no other memory has the same.  1 is netmap's own.  A monitor's are
 * above the others, and name nothing.
 */
#define	VALE_MEMORY_FIRST	2
#define	VALE_MEMORY_END		(VALE_MEMORY_FIRST + VALE_MEMORIES)
#define	VALE_MEMORY_ID(mm)	(((mm)->mm_monitor ? VALE_MEMORY_END :	\
	    VALE_MEMORY_FIRST) + (mm)->mm_index)

#endif /* !_VALE_MEMORY_H_ */
