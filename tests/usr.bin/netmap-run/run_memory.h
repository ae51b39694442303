/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For tests of a file of netmap-run's library: memory, any of which may fail.
 * What is behind a block is read as ones, and not written to.  free(3) leaves
 * errno, as a compiler may take for granted.
 */

#ifndef _RUN_MEMORY_H_
#define	_RUN_MEMORY_H_

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static int	blocks;			/* that there are */
static int	made;			/* so far */
static int	fails = -1;		/* the number of the one that does */
static void	(*on_alloc)(void);

#define	BEHIND	64

struct block {
	size_t	size;
	size_t	pad;
	uint8_t	data[];
};
static const struct block *newest;

void	*__real_malloc(size_t);
void	*__wrap_malloc(size_t);
void	*__wrap_calloc(size_t, size_t);
void	*__wrap_realloc(void *, size_t);
void	__real_free(void *);
void	__wrap_free(void *);

void *
__wrap_malloc(size_t size)
{
	struct block *b;

	if (on_alloc != NULL)
		on_alloc();
	if (made++ == fails) {
		errno = ENOMEM;
		return (NULL);
	}
	blocks++;
	b = __real_malloc(sizeof(*b) + size + BEHIND);
	b->size = size;
	memset(b->data, 0xaa, size);
	memset(b->data + size, 0xff, BEHIND);
	newest = b;
	return (b->data);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	void *p = __wrap_malloc(n * size);

	if (p != NULL)
		memset(p, 0, n * size);
	return (p);
}

static struct block *
block_of(void *p)
{
	struct block *b = (void *)((uint8_t *)p - offsetof(struct block, data));
	unsigned int i;

	for (i = 0; i < BEHIND; i++)
		ATF_REQUIRE_EQ(0xff, b->data[b->size + i]);
	return (b);
}

void *
__wrap_realloc(void *p, size_t size)
{
	struct block *b = p != NULL ? block_of(p) : NULL;
	void *new = __wrap_malloc(size);

	if (new != NULL && b != NULL) {
		memcpy(new, p, b->size < size ? b->size : size);
		blocks--;
		__real_free(b);
	}
	return (new);
}

void
__wrap_free(void *p)
{
	if (p != NULL) {
		blocks--;
		__real_free(block_of(p));
	}
}

#endif /* !_RUN_MEMORY_H_ */
