/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The calls of what a test takes the place of, in order, by the test's process
 * and its children.
 */

#ifndef _CALLED_H_
#define	_CALLED_H_

#include <sys/cdefs.h>
#include <sys/mman.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#define	CALLED_SIZE	1024

static char	*called_text;

/* Before the first call. */
static inline void
called_make(void)
{
	called_text = mmap(NULL, CALLED_SIZE, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANON, -1, 0);
	ATF_REQUIRE(called_text != MAP_FAILED);
}

/* Note a call; a semicolon follows it. */
static inline void __printflike(1, 2)
called(const char *fmt, ...)
{
	const size_t at = strlen(called_text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(called_text + at, CALLED_SIZE - at, fmt, ap);
	va_end(ap);
	strlcat(called_text, ";", CALLED_SIZE);
}

/* These were called since the last check. */
static inline void
check(const char *expected)
{
	ATF_CHECK_STREQ(expected, called_text);
	called_text[0] = '\0';
}

/* Functions that only say that they were called. */
#define	CALLED(name, text)						\
	void name(void)							\
	{								\
		called(text);						\
	}
#define	OF_ADAPTER(name, text)						\
	void name(struct adapter *ad)					\
	{								\
		called(text " %s", ad->config.ac_name);			\
	}

#endif /* !_CALLED_H_ */
