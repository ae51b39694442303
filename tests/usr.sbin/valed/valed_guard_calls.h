/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guard, message by message: the test's process is the one that serves, and
 * answers.  valed_reload_test has a valed.  Functions that return nothing fail
 * the test case if what they say is not so.
 */

#ifndef _VALED_GUARD_CALLS_H_
#define	_VALED_GUARD_CALLS_H_

#include <stdbool.h>

#include "valed_guard.h"
#include "valed_options.h"

/* Lines of a configuration: adapters with sockets a.sock, b.sock, c.sock. */
#define	NODE(slot, name)						\
	"pci.0." #slot ".0.device=e1000\n"				\
	"pci.0." #slot ".0.backend=vale0:" name "\n"			\
	"pci.0." #slot ".0.path=" name ".sock\n"
#define	A	NODE(1, "a")
#define	B	NODE(2, "b")
#define	C	NODE(3, "c")

/* The error of an adapter of line `n'. */
#define	FAILED(n, port)							\
	"valed.conf:" #n ": vale0:" port ": the adapter cannot be started"

extern struct valed_options opt;
extern struct valed_change vc;		/* the last one that came */
/* "valed -k valed.conf -c ctl". */
extern char	*argv[];

/* The configuration file is that text from now on. */
void	conf(const char *text);

/* Start the guard with `argc' of argv; what it says is in a file. */
void	start(const char *text, int argc);

/*
 * This was said since the last time: lines about what was done, without what
 * they begin with, and others.
 */
void	said_both(const char *notes, const char *expected);
void	said(const char *expected);

bool	exists(const char *path);

/* Whether a process listens on a socket. */
bool	listens(const char *path, int type);

/* A descriptor is the listening socket with this path. */
void	check_socket(int fd, const char *path);

/* Whether a reload may disconnect clients; true at first. */
extern bool	replace;

/* Have the guard reload that text. */
void	reload(const char *text);

/* The next change is that one. */
void	comes(int what, int slot);

/* It is the end, with that error, or none. */
void	ends_why(const char *why);
void	ends(void);

/*
 * It is one of an adapter, and is answered.  One is added with a socket of its
 * own or, if `new' is NULL, none.
 */
void	reserves(int slot, const char *port, int answer);
void	asks(int slot, int answer);
void	removes(int slot);
void	moves(int slot, const char *port, int answer);
void	adds(int slot, const char *name, const char *port, const char *path,
	    bool no_csb, const char *new, int answer);

#endif /* !_VALED_GUARD_CALLS_H_ */
