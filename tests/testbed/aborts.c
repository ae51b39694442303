/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/resource.h>
#include <sys/wait.h>

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "aborts.h"

static void __attribute__((__noreturn__))
child(void (*fn)(void *), void *arg, int output)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	dup2(output, STDERR_FILENO);
	fn(arg);
	_exit(0);
}

bool
aborts(void (*fn)(void *), void *arg, const char *text)
{
	char said[1024];
	size_t len = 0;
	ssize_t n;
	pid_t pid;
	int fds[2], status;

	if (pipe(fds) == -1)
		err(1, "pipe");
	fflush(NULL);
	pid = fork();
	if (pid == -1)
		err(1, "fork");
	if (pid == 0)
		child(fn, arg, fds[1]);
	close(fds[1]);
	while (len < sizeof(said) - 1 &&
	    (n = read(fds[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += n;
	said[len] = '\0';
	close(fds[0]);
	if (waitpid(pid, &status, 0) != pid)
		err(1, "waitpid");
	fprintf(stderr, "child: status %#x, \"%s\"\n", status, said);
	return (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
	    strstr(said, text) != NULL);
}
