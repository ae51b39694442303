/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What another thread could do between two memory accesses of a function, done
 * there each time, without another thread: the second access is to a page that
 * is protected, and the handler of its fault does it.
 */

#ifndef _TOUCH_H_
#define	_TOUCH_H_

#define	TOUCH_PAGE	4096

/*
 * The next access to the page at `page', one of those that touch_pages()
 * returned, calls fn(arg) in the thread that makes it, and is made after that.
 * fn may access the page, and call touch_next() for this page or another.  Up
 * to 8 pages can be protected at a time.  Only one thread may use them.  Aborts
 * if mprotect(2) fails.
 */
void	touch_next(void *page, void (*fn)(void *arg), void *arg);

/* Returns `n' pages of zeros, for as long as the process lives. */
void	*touch_pages(unsigned int n);

#endif /* !_TOUCH_H_ */
