/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors that outlive the process: a store elsewhere has duplicates of
 * them, by name, and a process that takes over gets these.
 *
 * A name is put before anything else says that the descriptor exists, and
 * removed after nothing else does.  So a process that ends at any time leaves
 * all descriptors in the store that its state names, and perhaps others, which
 * the next one removes.
 */

#ifndef _PEER_KEEP_H_
#define	_PEER_KEEP_H_

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a name, with its NUL, at most. */
#define	PEER_KEEP_NAME	16

/*
 * The store of one owner of names, on its thread.  A function that fails must
 * not tell: what a store lacks, the process that takes over does without, as
 * if its owner's state were not consistent.
 */
struct peer_keep {
	/*
	 * Keep a duplicate of `fd' by this name, in place of one of the same
	 * name.  On return the store has the duplicate even if this process
	 * ends at once.
	 */
	void	(*pke_put)(void *arg, const char *name, int fd);
	/* Remove the duplicate of this name, if there is one. */
	void	(*pke_remove)(void *arg, const char *name);
	void	*pke_arg;
};

/* A descriptor that a process got from the store, which takes over. */
struct peer_kept {
	const char	*pkt_name;
	int		 pkt_fd;	/* -1: its user has taken it */
	bool		 pkt_used;	/* the name is in use: not to be
					   removed from the store */
};

/* Return the entry of a name with a descriptor, or NULL. */
struct peer_kept *peer_kept_find(struct peer_kept *kept, size_t nkept,
	    const char *name);

/* Put or remove a name; nothing happens if `keep' is NULL. */
void	peer_keep_put(const struct peer_keep *keep, const char *name, int fd);
void	peer_keep_remove(const struct peer_keep *keep, const char *name);

#endif /* !_PEER_KEEP_H_ */
