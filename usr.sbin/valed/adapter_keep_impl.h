/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of adapter_keep.h share: adapter_keep.c, which has what this
 * process keeps, and adapter_resume.c, which goes on from what an earlier one
 * has left.
 */

#ifndef _ADAPTER_KEEP_IMPL_H_
#define	_ADAPTER_KEEP_IMPL_H_

#include <stdbool.h>
#include <stdint.h>

#include "adapter.h"
#include "adapter_keep.h"
#include "peer_keep.h"
#include "valed_store.h"

#define	KEEP_MAGIC	"valekep1"
#define	SAVED_MAGIC	"valesave"

#define	BUILD_SIZE	20		/* bytes of a build ID */
/* A client that ends the process so often within so many seconds is dropped. */
#define	BLAMES		2
#define	BLAME_S		60

struct peer_mem_journal;

struct adapter_keep {
	char		 ak_magic[8];
	uint64_t	 ak_size;	/* of the memory */
	uint8_t		 ak_build[BUILD_SIZE];
	uint8_t		 ak_mac[6];	/* the adapter's address */
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
	int		 ak_fd;		/* of the memory, or -1: then */
	void		*ak_allocated;	/* calloc(3) returned this */
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
	uint8_t		as_mac[6];	/* the adapter's address */
};

static inline struct adapter_keep *
keep_of(struct adapter *ad)
{
	return (__containerof(ad, struct adapter_keep, ak_adapter));
}

/* Return whether an adapter is kept: no process goes on without a journal. */
static inline bool
is_kept(const struct adapter_keep *ak)
{
	return (ak->ak_fd != -1 && ak->ak_journal != NULL);
}

/*
 * adapter_keep.c
 */

/* Write the name in the store of what is kept of an adapter; returns it. */
const char *adapter_keep_name(char name[VALED_STORE_NAME],
	    const struct adapter_config *ac, const char *what);
/*
 * Map a file of an adapter that is in the store, all of it.  NULL if there is
 * none, or it is no sealed memory.
 */
void	*adapter_keep_stored(const struct adapter_config *ac, const char *what,
	    uint64_t *size);

/*
 * adapter_resume.c
 */

/*
 * Find what an earlier process has left of the adapter, of which the newest
 * counts.  Returns false if its client has ended the process too often: then
 * there must be no adapter.  The main thread.
 */
bool	adapter_resume_find(struct adapter_keep *ak,
	    const struct adapter_config *ac);
/*
 * Make the earlier process's files unusable for another process: this one is
 * about to go on from them, and the guest's rings will be ahead of them.  The
 * service manager has the files for a moment more.
 */
void	adapter_resume_spent(struct adapter_keep *ak);
/* Drop the earlier process's files, which are of no use any more. */
void	adapter_resume_drop(struct adapter_keep *ak);

#endif /* !_ADAPTER_KEEP_IMPL_H_ */
