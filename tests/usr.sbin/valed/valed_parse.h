/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valed's arguments, parsed.  Functions that return nothing fail the test case
 * if what they say is not so.
 */

#ifndef _VALED_PARSE_H_
#define	_VALED_PARSE_H_

#include <stddef.h>

#include "adapter_config.h"
#include "valed_options.h"

/* What the last call of parse() has made of its arguments. */
extern struct valed_options *const opt;
extern struct adapter_config *ac;	/* the first one */
extern struct valed_why why;

/* Parse these arguments.  Returns -1, or the status in `why'. */
int	status_of(char *const *args);

/* They are right. */
void	parse(char *const *args);
#define	PARSE(...)	parse((char *[]){ __VA_ARGS__, NULL })

/* They are wrong, with this status and message. */
void	refused(int status, const char *message, char *const *args);
#define	REFUSED(status, message, ...)					\
	refused(status, message, (char *[]){ __VA_ARGS__, NULL })

/* Write a file. */
void	file(const char *name, const char *text, size_t len);
#define	FILE_IS(name, text)	file(name, text, sizeof(text) - 1)

/* An option that is right. */
#define	OK	"-s", "1,e1000,vale0:a,path=a.sock"

/* The address of an adapter that has none begins as all of bhyve's do. */
void	default_mac(int a, int b, int c);

/* These are the settings, in valectl(8)'s form. */
void	settings_are(const char *expected);

#endif /* !_VALED_PARSE_H_ */
