/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valed as a child process with a control socket, for tests in C.  VALE_SOCKET
 * in the environment leads to it, so libvale over valed and vale_client.h use
 * it.
 */

#ifndef _VALED_RUN_H_
#define	_VALED_RUN_H_

#include <sys/types.h>

#include <stdbool.h>

#include "test.h"
#include "vale_client.h"

/*
 * Start valed in the working directory, and wait until it serves "control".
 * `tc_srcdir' is the directory of the test program.
 */
pid_t	valed_run(const char *tc_srcdir);

/*
 * If it is true, and the test runs as root, valed_run() gives it another user:
 * valed's client is a program then, and no administrator.
 */
extern bool	valed_run_program;
/* A case that ends it sets this. */
extern bool valed_killed;
/* Its option -c; the path is "control". */
extern const char *valed_run_control;

/* Signal it, as the user that has started it. */
void	valed_kill(pid_t pid, int sig);

/* Assert that it still runs, end it with SIGTERM, and wait for its end. */
void	valed_end(pid_t pid);

/* Skip the test unless it runs as root, which can be several users. */
void	valed_needs_users(void);

/*
 * Connect to valed as user `uid', who is this process's unless that is root's.
 * Returns the connection.
 */
int	valed_dial(uid_t uid);

/*
 * Open what `reg' says, all rings of a port or pipe unless it says so, with a
 * connection of that user.  `proof' and `why' are vale_client_open()'s.  Returns
 * 0 or an errno.
 */
int	valed_try(struct vale_client_port *cp, uid_t uid, const char *name,
	    struct nmreq_register reg, int proof, char why[128]);

/* The same, which must succeed. */
struct vale_client_port valed_open(uid_t uid, const char *name,
	    struct nmreq_register reg, int proof);

/*
 * Call fn() for each descriptor of process `pid', with the path in /proc and
 * what proc_pid_fd(5) says of it, for example "socket:[1234]".
 */
void	valed_descriptors(pid_t pid, void (*fn)(const char *path,
	    const char *what, void *arg), void *arg);

/*
 * A test case (test.h) with a valed, whose process is `valed'; its body
 * follows.
 */
#define	PID_TEST(name, descr)						\
	static void name##_run(pid_t valed);				\
	TEST(name, descr)						\
	{								\
		pid_t pid = valed_run(atf_tc_get_config_var(tc, "srcdir")); \
									\
		name##_run(pid);					\
		if (!valed_killed)					\
			valed_end(pid);					\
	}								\
	static void name##_run(pid_t valed __unused)

/* The same without the process. */
#define	VALED_TEST(name, descr)						\
	static void name##_body(void);					\
	PID_TEST(name, descr)					\
	{								\
		name##_body();						\
	}								\
	static void name##_body(void)

#endif /* !_VALED_RUN_H_ */
