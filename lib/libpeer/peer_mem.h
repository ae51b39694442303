/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guest memory that the client shares: ranges of guest-physical addresses, or
 * of addresses behind the guest's IOMMU, each a part of a file.  A range
 * without a file cannot be accessed.
 *
 * An IOMMU has a range for each page, which may come and go with each packet.
 * So files are mapped, and ranges are entries in a table: the first range of a
 * file maps all of it, if the limit permits, and the mapping stays for a while
 * without ranges: peer_mem_drop().  Ranges that are adjacent in the guest's
 * addresses and in the file are adjacent here.  A ring whose pages are not
 * adjacent in the file is mapped once more, in the guest's order:
 * peer_mem_join().
 *
 * The client is not trusted.  Only a memfd with F_SEAL_SHRINK is accepted, as
 * QEMU's memory-backend-memfd creates it, in normal or huge pages.  The client
 * cannot truncate it, but it can punch holes into it.  The next access then
 * needs a new page, and raises SIGBUS if there is none: peer_fault.h.
 *
 * Any thread may call peer_mem_addr(), and only the adapter's thread the other
 * functions.  Those that change the table pause the model while they do, so
 * that no thread uses an address that peer_mem_addr() returned.
 *
 * A handler of SIGBUS cannot wait for that.  peer_mem_host() may run at any
 * time in any thread, so the mappings have a sequence number, which is odd
 * during a change.  A thread that accesses a range keeps the model from being
 * paused; so the mapping in which its fault lies is in a table that does not
 * change, and a table that does change is not the one to look for.
 */

#ifndef _PEER_MEM_H_
#define	_PEER_MEM_H_

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Ranges that a client may have at a time: as many as the protocol has by
 * default, and the most that QEMU accepts.
 */
#define	PEER_MEM_MAX	65535
/* Mappings that they may take. */
#define	PEER_MEM_MAPPINGS 256
/* Rings that may be mapped once more, and their pieces. */
#define	PEER_MEM_JOINS	4
#define	PEER_MEM_PIECES	128
/*
 * Bytes that a client may map, whatever its limit is, so that many fit into the
 * address space.
 */
#define	PEER_MEM_BYTES	(1ULL << 40)
/* The unit of ranges, and the size of normal pages. */
#define	PEER_MEM_PAGE	4096

struct peer_keep;
struct peer_kept;
struct peer_mem_journal;

struct peer_mem_range {
	uint64_t	gpa;
	uint64_t	size;
	uint8_t		*base;		/* NULL: no access */
	uint16_t	prot;		/* PROT_READ, PROT_WRITE */
	uint16_t	mapping;	/* index, if there is access */
};

/*
 * The table of ranges is an array of leaves, each with some of the ranges,
 * sorted by gpa.  Two neighbours have more than half a leaf's together.
 */
#define	PEER_MEM_LEAF	128
#define	PEER_MEM_LEAVES	(4 * PEER_MEM_MAX / PEER_MEM_LEAF + 2)
struct peer_mem_leaf {
	uint32_t	n;
	struct peer_mem_range range[PEER_MEM_LEAF];
};

/*
 * A part of a file that is mapped, or a ring.  The functions that change it
 * write the first three fields as relaxed atomics.
 */
struct peer_mem_mapping {
	uint8_t		*base;
	uint64_t	size;		/* 0: not used */
	uint64_t	page;		/* page size of the file */
	uint64_t	offset;		/* in the file */
	uint64_t	dev, ino;
	uint32_t	nranges;	/* that lie in it */
	bool		stale;		/* no range since peer_mem_drop() */
	int		prot;		/* 0: a ring, or not used */
	uint32_t	file;		/* "mem.N" is kept: N + 1; 0: none */
};

/* A ring whose pieces are in several places. */
struct peer_mem_joined {
	uint64_t	gpa;
	uint64_t	size;		/* 0: not used */
	uint8_t		*base;
	unsigned int	npieces;
	unsigned int	mapping;	/* index */
};

struct peer_mem {
	struct peer_mem_range *last;	/* the last hit; relaxed atomic */
	uint32_t	gone;		/* 1 after peer_mem_lose(); atomic */
	uint32_t	seq;		/* odd during a change; atomic */
	uint32_t	n;		/* ranges */
	uint32_t	nleaves;
	uint32_t	nmappings;	/* used once; relaxed atomic */
	uint32_t	drop;		/* 1: peer_mem_drop() is due; atomic */
	uint64_t	gone_gpa;	/* relaxed atomic */
	uint64_t	mapped;		/* bytes of files */
	uint64_t	idle;		/* of them, of mappings without
					   ranges; relaxed atomic */
	uint64_t	limit;		/* of mapped */
	const char	*over;		/* what is said if that is exceeded */
	void		(*pause)(void *arg, bool paused);
	void		(*wanted)(void *arg);
	void		*arg;
	uint64_t	want_gpa;	/* a ring to join; relaxed atomics */
	uint64_t	want_size;
	uint32_t	nfiles;		/* ranges with a file */
	uint32_t	refused;	/* 1: an access to one without;
					   atomic */
	uint64_t	refused_gpa;	/* relaxed atomic */
	const struct peer_keep *keep;	/* or NULL */
	struct peer_mem_journal *journal; /* or NULL */
	uint64_t	tag;		/* of the next change */
	uint64_t	tagged;		/* of the last one */
	uint32_t	file_next;	/* what mapping.file may be, at least */
	uint32_t	file_hint;	/* what it is if that is free, or 0 */
	struct peer_mem_joined joined[PEER_MEM_JOINS];
	/* What is not used has any value: most pages stay untouched. */
	struct peer_mem_mapping mapping[PEER_MEM_MAPPINGS];
	struct peer_mem_leaf *leaf[PEER_MEM_LEAVES];
};

/* Where an address of this process lies in guest memory. */
struct peer_mem_host {
	uint64_t	gpa;
	uint8_t		*page;		/* the start of its page, */
	size_t		page_size;	/* normal or huge */
	uint8_t		*map;		/* the whole mapping */
	size_t		map_size;
};

/*
 * Initialize an empty table.  The client may map `limit' bytes; 0 stands for
 * PEER_MEM_BYTES, which is also the maximum.  pause(arg, true) must return only
 * when no thread uses an address that peer_mem_addr() returned, and keep
 * threads from calling it until pause(arg, false).
 */
void	peer_mem_init(struct peer_mem *dma, uint64_t limit,
	    void (*pause)(void *arg, bool paused), void *arg);

/*
 * Set what *why of peer_mem_map() is for memory beyond the limit, in place of
 * "too much memory".  The text must stay.
 */
void	peer_mem_set_over(struct peer_mem *dma, const char *over);

/*
 * Have wanted(arg) called, with the argument of peer_mem_init(), when
 * peer_mem_addr() has not found a ring that peer_mem_join() may make, and once
 * when peer_mem_refused() becomes true.  Any thread; it must not wait.
 */
void	peer_mem_set_wanted(struct peer_mem *dma, void (*wanted)(void *arg));

/*
 * Keep what is needed to have the same table in another process, or in this one
 * from now on: the journal, which the table's owner has in memory that outlives
 * the process, gets each change, and `keep' the file of each mapping, as
 * "mem.N".  Either may be NULL.  peer_mem_set_journal() writes the table as it
 * is over what the journal had, which may be the same; to begin with, the
 * memory has zeros or a journal.
 */
void	peer_mem_set_keep(struct peer_mem *dma, const struct peer_keep *keep);
void	peer_mem_set_journal(struct peer_mem *dma,
	    struct peer_mem_journal *journal);

/*
 * Give the changes that follow this tag, which is not 0.  peer_mem_tagged()
 * returns the tag of the last change, or 0: if a process ended in the middle of
 * what makes one change, the tag says whether that change was made.  Ranges
 * that are cleared because the client has left are changes, too.
 */
void	peer_mem_set_tag(struct peer_mem *dma, uint64_t tag);
uint64_t peer_mem_tagged(const struct peer_mem *dma);

/*
 * Map the ranges of a journal, which is not trusted, with its files "mem.N" of
 * `kept', into a table without ranges.  Entries that are used get pkt_used, and
 * keep their descriptors.  Returns 0 or an errno as peer_mem_map(), with a
 * reason in *why, and no range then: also EINVAL if the journal is not
 * consistent, and ENOENT if it lacks a file.
 */
int	peer_mem_replay(struct peer_mem *dma,
	    const struct peer_mem_journal *journal, struct peer_kept *kept,
	    size_t nkept, const char **why);

/*
 * Add the range [gpa, gpa + size), which is memory of `fd' at `offset', for
 * accesses of `prot': PROT_READ, PROT_WRITE or both.  If `fd' is -1, it cannot
 * be accessed.  The caller keeps `fd' and may close it.  Returns 0, or an errno
 * and a reason in *why: EINVAL for an invalid range or one outside the file,
 * EEXIST for an overlap, ENOSPC beyond the limits, ENOMEM, EPERM for a file
 * that is not memory of the required kind, or an error of mmap(2).  A mapping of
 * the file may stay in each case: the caller must end with peer_mem_clear() or
 * peer_mem_reset().
 */
int	peer_mem_map(struct peer_mem *dma, int fd, uint64_t offset,
	    uint64_t gpa, uint64_t size, int prot, const char **why);

/*
 * Remove all ranges inside [gpa, gpa + size).  Returns 0; ENOENT if there is
 * none; or EINVAL, having removed none, if a range is partly inside, or the
 * arguments are no range.
 */
int	peer_mem_unmap(struct peer_mem *dma, uint64_t gpa, uint64_t size);

/* Remove all ranges, and unmap all files. */
void	peer_mem_clear(struct peer_mem *dma);

/*
 * Do as peer_mem_clear() does, and forget peer_mem_lose(): for the next client.
 */
void	peer_mem_reset(struct peer_mem *dma);

/*
 * Return whether peer_mem_drop() is due: there are files without ranges.  Any
 * thread; at most once a second.
 */
bool	peer_mem_idle(struct peer_mem *dma);

/*
 * Unmap the files that have had no range since the call before; nothing happens
 * unless peer_mem_idle() has returned true.  A file whose ranges come and go with
 * each packet is mapped once then, and memory that the client has let go of is free
 * after two seconds, or earlier: if another file needs the space, the entry or the
 * limit.
 */
void	peer_mem_drop(struct peer_mem *dma);

/*
 * Return the host address of [gpa, gpa + len), with len > 0, or NULL if this is
 * not inside ranges that permit `prot' and are adjacent in the host.
 */
void	*peer_mem_addr(struct peer_mem *dma, uint64_t gpa, size_t len,
	    int prot);

/*
 * Map the ring that peer_mem_addr() has not found, so that the next call finds
 * it.  Returns false if there is none, or it cannot be mapped.
 */
bool	peer_mem_join(struct peer_mem *dma);

/*
 * Return whether an address was asked for in a range without a file; *gpa is
 * such an address.  wanted(arg) is called for it as for a ring.
 */
bool	peer_mem_refused(const struct peer_mem *dma, uint64_t *gpa);

/*
 * Fill in *host and return true if addr is inside a mapping of the table.
 * host->gpa is 0 if peer_mem_lose() has been called, or no range is there.
 * Finds only mappings that no thread can be removing: those that the calling
 * thread was accessing.  Any thread, in a signal handler.
 */
bool	peer_mem_host(const struct peer_mem *dma, const void *addr,
	    struct peer_mem_host *host);

/*
 * Call fn(arg, map, size) for each mapping of the table.  Only while the
 * calling thread accesses one of them, so that none is removed.  Any thread, in
 * a signal handler.
 */
void	peer_mem_each(const struct peer_mem *dma,
	    void (*fn)(const void *arg, uint8_t *map, size_t size),
	    const void *arg);

/*
 * Note that guest memory is gone at gpa: peer_mem_addr() returns NULL from now
 * on, until peer_mem_reset().  Only the first call counts.  Any thread, in a
 * signal handler.
 */
void	peer_mem_lose(struct peer_mem *dma, uint64_t gpa);

/*
 * Return whether peer_mem_lose() has been called, and set *gpa to its address.
 * Any thread.
 */
bool	peer_mem_gone(const struct peer_mem *dma, uint64_t *gpa);

#endif /* !_PEER_MEM_H_ */
