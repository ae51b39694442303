/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: memory that ports and pipes of other processes are in.
 * Private to ctl*.c.
 *
 * A port and its pipes share memory, so that a program can pass a frame from
 * the one to the other without a copy.  It exists as long as one of them does:
 * pipes go on without their port, and a port that is opened again finds them
 * there.  A pipe that is opened without its port has such memory, too, in which
 * the port has its place.
 *
 * Pipes have extra buffers behind all pipes, and so has who opens no port, but
 * only memory.  As all slots of the memory may have any buffer, an extra buffer
 * is never another's while the memory exists.
 *
 * The memory is a memfd that can neither shrink nor grow, of a size for all
 * pipes that there may be.  A page that nobody touches uses no memory.  All
 * programs with a port or a pipe there can write to it at any time.  valed maps
 * it as the memory of the port only, which may have any buffer of it.
 *
 * Locks: that of the table, under which nobody accesses such memory; then
 * mm_lock, under which its pipes are initialized.  A program that makes this
 * slow delays those with the same memory.
 */

#ifndef _CTL_MEMORY_H_
#define	_CTL_MEMORY_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl.h"
#include "libvale.h"

/* Pipes in one memory, */
#define	CTL_PIPES	32
/* netmap_ifs of NR_REG_NULL, each on a page, */
#define	CTL_NULLS	8
/* and extra buffers of both. */
#define	CTL_EXTRA	2048

/* A pipe, or a place for one.  ctl_pipe.c. */
struct ctl_pipe {
	/* The table's lock. */
	char		 pi_name[VALE_NAME_SIZE]; /* before the brace, */
	char		 pi_id[VALE_NAME_SIZE];	/* and behind it */
	bool		 pi_open[2];	/* the ends: vale_pipe.h */
	uint32_t	 pi_slots[2];	/* of their transmit rings, or 0; these
					   stay, as the buffers do */
	/* mm_lock; the table's lock if no end is open. */
	bool		 pi_ready;	/* it is initialized */
	int		 pi_kick[2][2];	/* sockets: of the direction from this
					   end, at that end */
};

struct ctl_memory {
	/* Constant. */
	unsigned int	 mm_index;	/* in the table */
	int		 mm_fd;
	size_t		 mm_size;
	size_t		 mm_port_size;	/* of the port, at the beginning */
	size_t		 mm_bufs;	/* where buffer 0 would be */
	size_t		 mm_pipes;	/* where the pipes begin */
	size_t		 mm_pipe_size;
	uint32_t	 mm_pipe_slots;	/* of a ring, at most */
	size_t		 mm_nulls;	/* where those begin, */
	size_t		 mm_extra;	/* and the extra buffers */
	struct vale_params mm_params;	/* the port's, without defaults */
	uint32_t	 mm_extra_bufs;
	/* The table's lock. */
	char		 mm_name[VALE_NAME_SIZE]; /* of the port, or "" */
	bool		 mm_port;	/* the port is open, */
	bool		 mm_closing;	/* and is being closed */
	unsigned int	 mm_refs;	/* ports and ends that are open */
	pthread_mutex_t	 mm_lock;
	struct ctl_pipe	 mm_pipe[CTL_PIPES];
	bool		 mm_null[CTL_NULLS];	/* taken; the table's lock */
	uint32_t	 mm_extra_used;	/* the table's lock */
};

/* All of them; each has a connection at least.  The table's lock. */
extern struct ctl_memory *ctl_memories[CTL_MAX];
void	ctl_memories_lock(void);
void	ctl_memories_unlock(void);

/*
 * New memory, with one reference.  `params' and `extra_bufs' are those of the
 * port, in range; `slots' is the least that a ring of a pipe can have.  Returns
 * NULL with errno.  The table's lock.
 */
struct ctl_memory *ctl_memory_new(const struct vale_params *params,
	    uint32_t extra_bufs, uint32_t slots);
/* Give a reference back.  The table's lock. */
void	ctl_memory_release(struct ctl_memory *mm);
/*
 * The memory that has nr_mem_id `id', or NULL; `id' may be anything.  The
 * table's lock.
 */
struct ctl_memory *ctl_memory_by_id(unsigned int id);
/* Bytes of memory of such a port. */
size_t	ctl_memory_size(const struct vale_params *params);

/*
 * Give the netmap_if at `nifp' a list of up to `n' extra buffers.  Returns how
 * many there were.
 */
uint32_t ctl_memory_extra(struct ctl_memory *mm, size_t nifp, uint32_t n);

/*
 * The memory of that name, with the port if there is one; or NULL.  The table's
 * lock.
 */
struct ctl_memory *ctl_memory_find(const char *name);

/*
 * Memory for a port that is about to be opened: that of its pipes if the numbers
 * are the same, or new.  `name' is NULL for a monitor.  The caller then calls
 * ctl_memory_opened() or ctl_memory_closed().  Returns NULL with errno, EBUSY if
 * the port is open.
 */
struct ctl_memory *ctl_memory_open(const char *name,
	    const struct vale_params *params, uint32_t extra_bufs);
/* It is open, and pipes that have its name find this memory. */
void	ctl_memory_opened(struct ctl_memory *mm, const char *name);
/* It is about to be closed: who opens it again waits for that. */
void	ctl_memory_closing(struct ctl_memory *mm);
/* It is closed, or was not opened. */
void	ctl_memory_closed(struct ctl_memory *mm);

/* nr_mem_id: no other memory has the same.  1 is netmap's own. */
#define	CTL_MEMORY_FIRST	2
#define	CTL_MEMORY_ID(mm)	(CTL_MEMORY_FIRST + (mm)->mm_index)

#endif /* !_CTL_MEMORY_H_ */
