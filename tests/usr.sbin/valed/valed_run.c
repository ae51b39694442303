/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "vale_client.h"
#include "vale_find.h"
#include "valed_run.h"
#include "wait_until.h"

/* nobody: that it is not root's is what counts. */
#define	PROGRAM_UID	65534

bool	valed_run_program, valed_killed;
const char *valed_run_control = "control,mode=666";

pid_t
valed_run(const char *tc_srcdir)
{
	struct nmreq_vale_list list = { .nr_bridge_idx = 0 };
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = NETMAP_REQ_VALE_LIST };
	struct vale_client_call call = { .hdr = &hdr, .body = &list,
	    .size = sizeof(list), .reply = &list, .reply_max = sizeof(list) };
	char path[1024];
	int fd = -1;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/../../../usr.sbin/valed/valed",
	    tc_srcdir);
	if (access(path, X_OK) != 0)
		snprintf(path, sizeof(path), "valed");
	setenv(VALE_WIRE_ENV, "control", 1);
	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp(path, "valed", "-c", valed_run_control, (char *)NULL);
		_exit(127);
	}
	wait_until((fd = vale_client_connect("control")) != -1, "%s", path);
	/* There is no port to list yet. */
	ATF_REQUIRE_EQ(-1, vale_client_call(fd, &call));
	ATF_REQUIRE_EQ(ENOENT, errno);
	close(fd);
	if (valed_run_program && geteuid() == 0) {
		/* Its files are in this directory. */
		ATF_REQUIRE_EQ(0, chown(".", PROGRAM_UID, -1));
		ATF_REQUIRE_EQ(0, setresuid(PROGRAM_UID, PROGRAM_UID, 0));
	}
	return (pid);
}

void
valed_kill(pid_t pid, int sig)
{
	uid_t real, effective, saved;

	ATF_REQUIRE_EQ(0, getresuid(&real, &effective, &saved));
	ATF_REQUIRE_EQ(0, setresuid(saved, saved, saved));
	ATF_REQUIRE_EQ(0, kill(pid, sig));
}

void
valed_end(pid_t pid)
{
	struct stat st;
	int status;

	ATF_REQUIRE_EQ(0, waitpid(pid, &status, WNOHANG));
	valed_kill(pid, SIGTERM);
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	    "valed: %#x", status);
	ATF_CHECK_EQ(-1, stat("control", &st));
}

void
valed_needs_users(void)
{
	if (geteuid() != 0)
		atf_tc_skip("only root can be several users");
}

int
valed_dial(uid_t uid)
{
	const uid_t before = geteuid();
	int fd;

	ATF_REQUIRE_EQ(0, seteuid(uid));
	fd = vale_client_connect(vale_find_path());
	ATF_REQUIRE_EQ(0, seteuid(before));
	ATF_REQUIRE_MSG(fd != -1, "%s", strerror(errno));
	return (fd);
}

int
valed_try(struct vale_client_port *cp, uid_t uid, const char *name,
    struct nmreq_register reg, int proof, char why[128])
{
	int error, fd = valed_dial(uid);

	if (reg.nr_mode == NR_REG_DEFAULT)
		reg.nr_mode = NR_REG_ALL_NIC;
	if (vale_client_open(cp, fd, name, &reg, proof, why) == 0)
		return (0);
	error = errno;
	close(fd);
	return (error);
}

struct vale_client_port
valed_open(uid_t uid, const char *name, struct nmreq_register reg, int proof)
{
	struct vale_client_port cp;
	char why[128];
	int error = valed_try(&cp, uid, name, reg, proof, why);

	ATF_REQUIRE_EQ_MSG(0, error, "%s: %s", name, why);
	return (cp);
}

void
valed_descriptors(pid_t pid, void (*fn)(const char *, const char *, void *),
    void *arg)
{
	char what[64], path[32 + sizeof(((struct dirent *)0)->d_name)];
	struct dirent *de;
	ssize_t len;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	ATF_REQUIRE_MSG(dir != NULL, "%s: %s", path, strerror(errno));
	while ((de = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid,
		    de->d_name);
		len = readlink(path, what, sizeof(what) - 1);
		if (len <= 0)
			continue;
		what[len] = '\0';
		fn(path, what, arg);
	}
	closedir(dir);
}
