/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guard, message by message: this process is the one that serves, and
 * answers.  valed_reload_test has a valed.  The linker's --wrap brings system
 * calls here, to fail where the test says, in whichever process.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_config.h"
#include "failing.h"
#include "open_fds.h"
#include "test.h"
#include "valed_control.h"
#include "valed_guard.h"
#include "valed_options.h"
#include "wait_until.h"

#define	NODE(slot, name)						\
	"pci.0." #slot ".0.device=e1000\n"				\
	"pci.0." #slot ".0.backend=vale0:" name "\n"			\
	"pci.0." #slot ".0.path=" name ".sock\n"
#define	A	NODE(1, "a")
#define	B	NODE(2, "b")
#define	C	NODE(3, "c")

/* Errors of the next calls; a zero ends them.  All processes have it. */
static struct failing {
	int	fork[2], pipe2[2], socketpair[2], recv[3], recvmsg[4], send[5],
		read[3], write[3], calloc[2];
} *failing;

static struct valed_options opt;
static struct valed_change vc;
static off_t	seen;			/* of what was said */

WRAP(pid_t, fork, void)
{
	return (FAILS(fork) ? -1 : __real_fork());
}

WRAP(int, pipe2, int fds[2], int flags)
{
	ATF_CHECK_EQ(O_CLOEXEC, flags);
	return (FAILS(pipe2) ? -1 : __real_pipe2(fds, flags));
}

WRAP(int, socketpair, int domain, int type, int protocol, int fds[2])
{
	return (FAILS(socketpair) ? -1 : __real_socketpair(domain, type,
	    protocol, fds));
}

WRAP(ssize_t, recv, int s, void *p, size_t len, int flags)
{
	return (FAILS(recv) ? -1 : __real_recv(s, p, len, flags));
}

WRAP(ssize_t, recvmsg, int s, struct msghdr *msg, int flags)
{
	return (FAILS(recvmsg) ? -1 : __real_recvmsg(s, msg, flags));
}

WRAP(ssize_t, send, int s, const void *p, size_t len, int flags)
{
	ATF_CHECK_EQ(MSG_NOSIGNAL, flags);
	return (FAILS(send) ? -1 : __real_send(s, p, len, flags));
}

WRAP(ssize_t, read, int fd, void *p, size_t len)
{
	return (FAILS(read) ? -1 : __real_read(fd, p, len));
}

WRAP(ssize_t, write, int fd, const void *p, size_t len)
{
	return (FAILS(write) ? -1 : __real_write(fd, p, len));
}

WRAP(void *, calloc, size_t n, size_t size)
{
	return (FAILS(calloc) ? NULL : __real_calloc(n, size));
}

/* Interfaces have two descriptors, of pipes; "e9" cannot be opened. */
int
hostif_open(const char *ifname, const struct hostif_options *options,
    struct hostif_fds *fds, char *error, size_t size)
{
	int p[2];

	if (strcmp(ifname, "e9") == 0) {
		snprintf(error, size, "e9: no such interface");
		return (-1);
	}
	ATF_REQUIRE_EQ(0, __real_pipe2(p, O_CLOEXEC));
	memset(fds, 0, sizeof(*fds));
	strlcpy(fds->hf_name, ifname, sizeof(fds->hf_name));
	fds->hf_kind = options->ho_kind;
	fds->hf_flags = strcmp(ifname, "e8") == 0 ? HOSTIF_HOST_GETS : 0;
	fds->hf_nfds = 2;
	fds->hf_fd[0] = p[0];
	fds->hf_fd[1] = p[1];
	return (0);
}

void
hostif_close(struct hostif_fds *fds)
{
	while (fds->hf_nfds > 0)
		close(fds->hf_fd[--fds->hf_nfds]);
}

enum hostif_kind
hostif_kind(const char *name)
{
	return (strcmp(name, "packet") == 0 ? HOSTIF_PACKET :
	    strcmp(name, "xdp") == 0 ? HOSTIF_XDP : HOSTIF_NKINDS);
}

static void
conf(const char *text)
{
	FILE *f = fopen("new", "w");

	ATF_REQUIRE(f != NULL);
	ATF_REQUIRE(fputs(text, f) >= 0);
	ATF_REQUIRE_EQ(0, fclose(f));
	ATF_REQUIRE_EQ(0, rename("new", "valed.conf"));
}

static char *argv[] = { (char []){ "valed" }, (char []){ "-k" },
	(char []){ "valed.conf" }, (char []){ "-c" }, (char []){ "ctl" },
	NULL };

/* Start the guard; what it says is in a file. */
static void
start(const char *text, int argc)
{
	int fd = open("err", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	failing = mmap(NULL, sizeof(*failing), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANON, -1, 0);
	ATF_REQUIRE(failing != MAP_FAILED);
	ATF_REQUIRE(fd != -1 && dup2(fd, STDERR_FILENO) != -1);
	close(fd);
	conf(text);
	argv[argc] = NULL;
	valed_options(argc, argv, &opt);
	ATF_REQUIRE_EQ(-1, valed_guard_fd());
	valed_guard_start(argc, argv, &opt);
	ATF_REQUIRE(valed_guard_fd() != -1);
}

/* This was said since the last time: lines about what was done, and others. */
static void
said_both(const char *notes, const char *expected)
{
	char done[4096] = "", other[4096] = "", text[4096], *line, *rest = text;
	const char prefix[] = "valed_guard_test: reloaded: ";
	int fd = open("err", O_RDONLY);
	ssize_t n = pread(fd, text, sizeof(text) - 1, seen);
	char *to;

	ATF_REQUIRE(n >= 0);
	close(fd);
	text[n] = '\0';
	seen += n;
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		to = other;
		if (strncmp(line, prefix, strlen(prefix)) == 0) {
			to = done;
			line += strlen(prefix);
		}
		strlcat(to, line, sizeof(other));
		strlcat(to, "\n", sizeof(other));
	}
	if (notes != NULL)
		ATF_CHECK_STREQ(notes, done);
	ATF_CHECK_STREQ(expected, other);
}

static void
said(const char *expected)
{
	said_both(NULL, expected);
}

static bool
exists(const char *path)
{
	struct stat st;

	return (lstat(path, &st) == 0);
}

static ino_t
inode(const char *path)
{
	struct stat st;

	ATF_REQUIRE_EQ(0, lstat(path, &st));
	return (st.st_ino);
}

/* Whether a process listens on a socket. */
static bool
listens(const char *path, int type)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	bool ok;

	strlcpy(sun.sun_path, path, sizeof(sun.sun_path));
	ok = connect(s, (void *)&sun, sizeof(sun)) == 0;
	ATF_CHECK(ok || errno == ECONNREFUSED);
	close(s);
	return (ok);
}

/* A descriptor is the listening socket with this path. */
static void
check_socket(int fd, const char *path)
{
	struct sockaddr_un sun;
	socklen_t len = sizeof(sun);
	int on = 0;

	memset(&sun, 0, sizeof(sun));
	ATF_REQUIRE_EQ(0, getsockname(fd, (void *)&sun, &len));
	ATF_CHECK_STREQ(path, sun.sun_path);
	len = sizeof(on);
	ATF_REQUIRE_EQ(0, getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on,
	    &len));
	ATF_CHECK_EQ(1, on);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
}

/* The next change is that one. */
static void
comes(int what, int slot)
{
	ATF_REQUIRE(valed_guard_change(&vc));
	ATF_REQUIRE_EQ_MSG(what, (int)vc.vc_what, "%d", vc.vc_what);
	ATF_CHECK_EQ_MSG(slot, vc.vc_config.ac_slot, "%d",
	    vc.vc_config.ac_slot);
	ATF_CHECK(!vc.vc_lost);
	if (what != VALED_ADD)
		ATF_CHECK_EQ(-1, vc.vc_config.ac_listen);
}

/* It is the end, with that error. */
static void
ends_why(const char *why)
{
	comes(VALED_END, 0);
	ATF_CHECK_STREQ(why, vc.vc_why);
}

static void
ends(void)
{
	ends_why("");
}

/* The name of a port is asked for. */
static void
reserves(int slot, const char *port, int answer)
{
	comes(VALED_RESERVE, slot);
	ATF_CHECK_STREQ(port, vc.vc_config.ac_backend);
	valed_guard_answer(answer);
}

static void
removes(int slot)
{
	comes(VALED_REMOVE, slot);
	valed_guard_answer(0);
}

/* One is added, with a socket of its own or, if `new' is NULL, none. */
static void
adds(int slot, const char *name, const char *port, const char *path,
    bool no_csb, const char *new, int answer)
{
	comes(VALED_ADD, slot);
	ATF_CHECK_STREQ(name, vc.vc_config.ac_name);
	ATF_CHECK_STREQ(port, vc.vc_config.ac_backend);
	ATF_CHECK_STREQ(path, vc.vc_config.ac_path);
	ATF_CHECK_EQ(no_csb, !vc.vc_config.ac_csb);
	if (new == NULL)
		ATF_CHECK_EQ(-1, vc.vc_config.ac_listen);
	else
		check_socket(vc.vc_config.ac_listen, new);
	valed_guard_answer(answer);
}

static void
reload(const char *text)
{
	conf(text);
	ATF_REQUIRE(valed_guard_reload());
}

TEST(changes, "Names are reserved, then adapters removed, then added, and then "
    "sockets removed")
{
	ino_t was;

	start(A B, 3);
	check_socket(opt.vo_adapters[0].ac_listen, "a.sock");
	check_socket(opt.vo_adapters[1].ac_listen, "b.sock");
	ATF_CHECK(listens("a.sock", SOCK_STREAM));
	ATF_CHECK(listens("b.sock", SOCK_STREAM));
	was = inode("a.sock");
	reload(A B);
	ends();
	reload("# Nothing has changed.\n" B A);
	ends();
	reload(A B C);
	reserves(3, "vale0:c", 0);
	adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
	ends();
	ATF_CHECK(listens("c.sock", SOCK_STREAM));
	/* No guard has it. */
	close(vc.vc_config.ac_listen);
	close(opt.vo_adapters[1].ac_listen);
	ATF_CHECK(exists("b.sock") && !listens("b.sock", SOCK_STREAM));
	reload(A "pci.0.1.0.csb=off\n" C "pci.0.4.0.path=d\n"
	    "pci.0.4.0.backend=vale1:c\npci.0.4.0.device=e1000\n");
	reserves(1, "vale0:a", 0);
	reserves(4, "vale1:c", 0);
	removes(1);
	removes(2);
	adds(1, "a", "vale0:a", "a.sock", true, NULL, 0);
	ATF_CHECK(exists("b.sock"));
	adds(4, "vale1:c", "vale1:c", "d", false, "d", 0);
	ends();
	ATF_CHECK(!exists("b.sock"));
	ATF_CHECK_EQ(was, inode("a.sock"));
	/* Paths change places. */
	reload("pci.0.1.0.path=d\npci.0.1.0.backend=vale0:a\n"
	    "pci.0.1.0.device=e1000\npci.0.4.0.path=a.sock\n"
	    "pci.0.4.0.backend=vale0:x\npci.0.4.0.device=e1000\n");
	reserves(1, "vale0:a", 0);
	reserves(4, "vale0:x", 0);
	removes(1);
	removes(3);
	removes(4);
	adds(1, "a", "vale0:a", "d", false, NULL, 0);
	adds(4, "x", "vale0:x", "a.sock", false, NULL, 0);
	ends();
	ATF_CHECK(!exists("c.sock") && exists("d"));
	ATF_CHECK_EQ(was, inode("a.sock"));
	valed_guard_end(false);
	ATF_CHECK(!exists("a.sock") && !exists("d"));
	said("");
}

#define	BUSY	"the port is open already, or another user captures its name"
#define	KEEPS	"another adapter keeps its port or socket"
#define	WHY(n, port, why, what)						\
	"valed.conf:" #n ": vale0:" port ": " why ": the adapter " what
#define	LINE(...)	"valed_guard_test: " WHY(__VA_ARGS__) "\n"
#define	FAILED(n, port)							\
	"valed.conf:" #n ": vale0:" port ": the adapter cannot be started"

TEST(refused, "An adapter whose port is another's stays as it was, or is not "
    "added, and so does one that would be where it stays")
{
	start(A B, 3);
	reload(A "pci.0.1.0.csb=off\n" B C);
	reserves(1, "vale0:a", EBUSY);
	reserves(3, "vale0:c", EBUSY);
	ends_why(WHY(2, "a", BUSY, "stays as it was"));
	said(LINE(2, "a", BUSY, "stays as it was")
	    LINE(9, "c", BUSY, "is not added"));
	ATF_CHECK(!exists("c.sock"));
	/* It is tried again. */
	ATF_REQUIRE(valed_guard_reload());
	reserves(1, "vale0:a", EBUSY);
	reserves(3, "vale0:c", EBUSY);
	ends_why(WHY(2, "a", BUSY, "stays as it was"));
	said(LINE(2, "a", BUSY, "stays as it was")
	    LINE(9, "c", BUSY, "is not added"));
	ATF_REQUIRE(valed_guard_reload());
	reserves(1, "vale0:a", 0);
	reserves(3, "vale0:c", 0);
	removes(1);
	removes(3);			/* which is not there */
	adds(1, "a", "vale0:a", "a.sock", true, NULL, 0);
	adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
	ends();
	said("");
	/* One, and those that it keeps from their places. */
	reload("pci.0.1.0.device=e1000\npci.0.1.0.backend=vale0:x\n"
	    "pci.0.1.0.path=z.sock\n"
	    "pci.0.2.0.device=e1000\npci.0.2.0.backend=vale0:a\n"
	    "pci.0.2.0.path=y.sock\n"
	    "pci.0.4.0.device=e1000\npci.0.4.0.backend=vale0:d\n"
	    "pci.0.4.0.path=b.sock\n");
	reserves(1, "vale0:x", EBUSY);
	reserves(2, "vale0:a", 0);
	reserves(4, "vale0:d", 0);
	removes(3);
	ends_why(WHY(2, "x", BUSY, "stays as it was"));
	said(LINE(2, "x", BUSY, "stays as it was")
	    LINE(5, "a", KEEPS, "stays as it was")
	    LINE(8, "d", KEEPS, "is not added"));
	ATF_CHECK(exists("a.sock") && exists("b.sock") && !exists("c.sock") &&
	    !exists("y.sock") && !exists("z.sock"));
	valed_guard_end(false);
	ATF_CHECK(!exists("a.sock") && !exists("b.sock"));
}

/* A setting is changed. */
static void
sets(const char *name, unsigned int setting, const char *value)
{
	char text[VALE_SETTING_SIZE];

	comes(VALED_SET, 0);
	ATF_CHECK_STREQ(name, vc.vc_setting.vst_name);
	ATF_CHECK_EQ(setting, vc.vc_setting.vst_setting);
	ATF_CHECK_EQ(value != NULL, vc.vc_keep);
	vale_setting_print(setting, &vc.vc_setting.vst_value, text,
	    sizeof(text));
	if (value != NULL)
		ATF_CHECK_STREQ(value, text);
	valed_guard_answer(0);
}

TEST(in_place, "What can be changed in place is, with one line for each thing, "
    "and the adapter is not removed")
{
	start(A B "switch.vale0.ageing=5\npci.0.1.0.rate=1Mbit/s\n", 3);
	reload(A B "pci.0.1.0.rate=2Mbit/s\npci.0.1.0.itr=5\n"
	    "pci.0.1.0.itr_min=6\npci.0.1.0.mtu=68\npci.0.2.0.vlan=7\n"
	    "port.vale0:x.private=yes\n");
	sets("vale0:x", VALE_SETTING_PRIVATE, "yes");
	sets("vale0:a", VALE_SETTING_RATE, "2000000bit/s");
	sets("vale0:b", VALE_SETTING_VLAN, "7");
	sets("vale0", VALE_SETTING_AGEING, NULL);
	comes(VALED_CHANGE, 1);
	ATF_CHECK_EQ(5, vc.vc_config.ac_itr_256ns);
	ATF_CHECK_EQ(6, vc.vc_config.ac_itr_min_256ns);
	ATF_CHECK_EQ(68, vc.vc_config.ac_mtu);
	valed_guard_answer(0);
	ends();
	said_both("vale0:x: private=yes\nvale0:a: rate=2000000bit/s\n"
	    "vale0:b: vlan=7\nvale0: ageing=300\nvale0:a: itr=5\n"
	    "vale0:a: itr_min=6\nvale0:a: mtu=68\n", "");
	/* What has changed is known, also what could not be. */
	reload(A "port.vale0:x.private=yes\n"
	    "pci.0.1.0.itr=5\npci.0.1.0.rate=2Mbit/s\n");
	removes(2);
	sets("vale0:b", VALE_SETTING_VLAN, NULL);
	comes(VALED_CHANGE, 1);
	valed_guard_answer(0);
	ends();
	said_both("vale0:b: the adapter is removed\nvale0:b: vlan=0\n"
	    "vale0:a: itr_min=0\nvale0:a: mtu=16110\n", "");
	reload(A);
	comes(VALED_SET, 0);
	valed_guard_answer(ENOMEM);
	sets("vale0:x", VALE_SETTING_PRIVATE, NULL);
	comes(VALED_CHANGE, 1);
	valed_guard_answer(0);
	ends_why("vale0:a: rate=0: Cannot allocate memory");
	said_both("vale0:x: private=no\nvale0:a: itr=0\n",
	    "valed_guard_test: vale0:a: rate=0: Cannot allocate memory\n");
	/* An adapter that stays as it was keeps its settings. */
	reload(A "pci.0.1.0.limit=1\n");
	sets("vale0:a", VALE_SETTING_LIMIT, "1");
	ends();
	reload("pci.0.1.0.device=e1000\npci.0.1.0.backend=vale0:y\n"
	    "pci.0.1.0.path=a.sock\npci.0.1.0.limit=2\n");
	reserves(1, "vale0:y", EBUSY);
	comes(VALED_END, 0);
	said_both("vale0:a: limit=1\n", LINE(2, "y", BUSY,
	    "stays as it was"));
	ATF_REQUIRE(valed_guard_reload());
	reserves(1, "vale0:y", 0);
	removes(1);
	sets("vale0:y", VALE_SETTING_LIMIT, "2");
	sets("vale0:a", VALE_SETTING_LIMIT, NULL);
	adds(1, "y", "vale0:y", "a.sock", false, NULL, 0);
	ends();
	said_both("vale0:a: the adapter is removed\nvale0:y: limit=2\n"
	    "vale0:a: limit=0\nvale0:y: the adapter is added\n", "");
	valed_guard_end(false);
}

/* An interface is attached, with its descriptors. */
static void
attaches(const char *port, const char *ifname, unsigned int kind, int answer)
{
	comes(VALED_ATTACH, 0);
	ATF_CHECK_STREQ(port, vc.vc_config.ac_backend);
	ATF_CHECK_STREQ(ifname, vc.vc_hostif.hf_name);
	ATF_CHECK_EQ(kind, vc.vc_hostif.hf_kind);
	ATF_REQUIRE_EQ(2, vc.vc_hostif.hf_nfds);
	ATF_CHECK_EQ(1, write(vc.vc_hostif.hf_fd[1], "x", 1));
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(vc.vc_hostif.hf_fd[0], F_GETFD));
	hostif_close(&vc.vc_hostif);
	valed_guard_answer(answer);
}

static void
detaches(const char *port)
{
	comes(VALED_DETACH, 0);
	ATF_CHECK_STREQ(port, vc.vc_config.ac_backend);
	valed_guard_answer(0);
}

#define	ATTACHED(port)	port ": the interface is attached\n"
#define	DETACHED(port)	port ": the interface is detached\n"

TEST(interfaces, "Interfaces of lines come and go; those of -a stay; one that "
    "cannot be attached is tried again")
{
	char line[256];

	argv[3] = (char []){ "-a" };
	argv[4] = (char []){ "vale0:e0" };
	start("attach.vale0:e1=packet\nattach.vale0:e9=packet\n", 5);
	valed_guard_unattached(2);
	/* The same; a new one; another kind. */
	reload("attach.vale0:e1=packet\nattach.vale0:e9=packet\n"
	    "attach.vale0:e2=xdp\n");
	attaches("vale0:e2", "e2", HOSTIF_XDP, 0);
	ends_why("valed.conf:2: e9: no such interface");
	said_both(ATTACHED("vale0:e2"), "valed_guard_test: valed.conf:2: e9: "
	    "no such interface\n");
	reload("attach.vale0:e1=xdp\nattach.vale1:e2=xdp\n"
	    "port.vale1:e2.vlan=7\n");
	detaches("vale0:e1");
	detaches("vale0:e2");
	sets("vale1:e2", VALE_SETTING_VLAN, "7");
	attaches("vale0:e1", "e1", HOSTIF_XDP, 0);
	attaches("vale1:e2", "e2", HOSTIF_XDP, EIO);
	snprintf(line, sizeof(line), "valed.conf:2: vale1:e2: the interface "
	    "is not attached: %s", strerror(EIO));
	ends_why(line);
	said_both(DETACHED("vale0:e1") DETACHED("vale0:e2")
	    "vale1:e2: vlan=7\n" ATTACHED("vale0:e1"),
	    "valed_guard_test: valed.conf:2: vale1:e2: the interface is not "
	    "attached: Input/output error\n");
	ATF_REQUIRE(valed_guard_reload());
	attaches("vale1:e2", "e2", HOSTIF_XDP, 0);
	ends();
	said_both(ATTACHED("vale1:e2"), "");
	reload("attach.vale0:e8=packet\n");
	detaches("vale0:e1");
	detaches("vale1:e2");
	sets("vale1:e2", VALE_SETTING_VLAN, NULL);
	attaches("vale0:e8", "e8", HOSTIF_PACKET, 0);
	comes(VALED_END, 0);
	said_both(NULL, "valed_guard_test: valed.conf:1: the host gets what e8 "
	    "receives, too: remove its addresses there\n");
	valed_guard_end(false);
}

TEST(not_added, "The socket of one that could not be added is removed, and the "
    "next reload tries again")
{
	unsigned int i;

	start(A, 3);
	for (i = 0; i < 2; i++) {
		reload(A B C);
		reserves(2, "vale0:b", 0);
		reserves(3, "vale0:c", 0);
		if (i > 0) {
			removes(2);
			removes(3);
		}
		adds(2, "b", "vale0:b", "b.sock", false, "b.sock", ENOMEM);
		close(vc.vc_config.ac_listen);
		adds(3, "c", "vale0:c", "c.sock", false, "c.sock",
		    i == 0 ? ENOSPC : 0);
		ends_why(FAILED(5, "b"));
		ATF_CHECK(!exists("b.sock"));
		ATF_CHECK_EQ(i > 0, exists("c.sock"));
		ATF_CHECK(exists("a.sock"));
	}
	said("");
	valed_guard_end(false);
	ATF_CHECK(!exists("a.sock") && !exists("c.sock"));
}

TEST(wrong, "A configuration that is wrong changes nothing; nor does a socket "
    "that cannot be created, after others were")
{
	ino_t was;

	start(A, 3);
	was = inode("a.sock");
	reload(A C "x\n");
	ends_why("valed.conf:7: not name=value");
	said("valed_guard_test: valed.conf:7: not name=value\n");
	ATF_CHECK(!exists("c.sock"));
	ATF_REQUIRE_EQ(0, mkdir("d.sock", 0700));
	reload(C NODE(4, "d"));
	reserves(3, "vale0:c", 0);
	reserves(4, "vale0:d", 0);
	ends_why("valed.conf:6: path=d.sock: exists and is not a socket");
	ATF_CHECK(!exists("c.sock") && exists("d.sock"));
	ATF_CHECK_EQ(was, inode("a.sock"));
	reload(A);
	ends();
	ATF_CHECK_EQ(was, inode("a.sock"));
	valed_guard_end(false);
	ATF_CHECK(!exists("a.sock"));
}

TEST(inherited, "An inherited socket is passed again, and is not removed")
{
	struct sockaddr_un sun = { AF_UNIX, "in" };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	ATF_REQUIRE_EQ(0, bind(s, (void *)&sun, sizeof(sun)));
	ATF_REQUIRE_EQ(0, listen(s, 1));
	ATF_REQUIRE(dup2(s, 20) == 20);
	close(s);
#define	IN	"pci.0.2.0.fd=20\npci.0.2.0.device=e1000\n"		\
		"pci.0.2.0.backend=vale0:i\n"
	start(A IN, 3);
	ATF_CHECK_EQ(20, opt.vo_adapters[1].ac_listen);
	reload(A IN "pci.0.2.0.mem=5M\n");
	reserves(2, "vale0:i", 0);
	removes(2);
	adds(2, "i", "vale0:i", "", false, "in", 0);
	ATF_CHECK_EQ(5 << 20, vc.vc_config.ac_mem);
	ATF_CHECK_EQ(20, vc.vc_config.ac_fd);
	ends();
	reload(A);
	removes(2);
	ends();
	ATF_CHECK(exists("in"));
	reload(A IN);
	reserves(2, "vale0:i", 0);
	adds(2, "i", "vale0:i", "", false, "in", 0);
	ends();
	/* Its path, for another one, is in use: it is a socket's name only. */
	reload(A IN NODE(3, "i2") "pci.0.3.0.csb=off\n");
	reserves(3, "vale0:i2", 0);
	adds(3, "i2", "vale0:i2", "i2.sock", true, "i2.sock", 0);
	ends();
	valed_guard_end(false);
	ATF_CHECK(exists("in") && !exists("a.sock") && !exists("i2.sock"));
}

/* The guard, the child of this process. */
static pid_t
guard_pid(void)
{
	char path[64];
	pid_t pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	ATF_REQUIRE_EQ(1, fscanf(f, "%d", &pid));
	fclose(f);
	return (pid);
}

/* The guard is there, under its own name. */
static bool
guard_named(void)
{
	char name[32] = "", path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", guard_pid());
	f = fopen(path, "r");
	if (f != NULL) {
		(void)fscanf(f, "%31s", name);
		fclose(f);
	}
	return (strcmp(name, "valed-guard") == 0);
}

TEST(process, "The guard has a name and a session, and no signal ends it")
{
	uint64_t blocked = 0;
	char line[128], path[64];
	pid_t pid;
	FILE *f;

	start(A, 5);
	wait_until(guard_named(), "its name");
	pid = guard_pid();
	ATF_CHECK_EQ(pid, getsid(pid));
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "SigBlk: %" SCNx64, &blocked);
	fclose(f);
	ATF_CHECK((blocked & 1 << (SIGTERM - 1)) != 0 &&
	    (blocked & 1 << (SIGHUP - 1)) != 0 &&
	    (blocked & 1 << (SIGPIPE - 1)) != 0);
	ATF_CHECK(exists("ctl"));
	/* It does not have the control socket. */
	ATF_CHECK(opt.vo_control->co_listen != -1);
	close(opt.vo_control->co_listen);
	ATF_CHECK(!listens("ctl", SOCK_SEQPACKET));
	reload(A);
	ends();
	ATF_CHECK(exists("ctl"));
	valed_guard_end(false);
	ATF_CHECK(!exists("ctl") && !exists("a.sock"));
}

/* The number of descriptors of the guard, or 0 if that is about to end. */
static unsigned int
guard_fds(void)
{
	const struct dirent *d;
	char children[64], path[64];
	unsigned int n = 0;
	pid_t pid, other;
	DIR *dir;
	FILE *f;
	int found;

	snprintf(children, sizeof(children), "/proc/self/task/%d/children",
	    getpid());
	do {
		f = fopen(children, "r");
		ATF_REQUIRE(f != NULL);
		found = fscanf(f, "%d %d", &pid, &other);
		fclose(f);
		ATF_REQUIRE(found >= 1);
	} while (found > 1);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	/* The one before it may end just now. */
	dir = opendir(path);
	if (dir == NULL)
		return (0);
	while ((d = readdir(dir)) != NULL)
		n += d->d_name[0] != '.';
	closedir(dir);
	return (n);
}

TEST(descriptors, "A guard has no more descriptors than the one before it")
{
	unsigned int fds, i;

	/* New ones are this process's children, too. */
	ATF_REQUIRE_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	start(A, 3);
	/* It has closed what is not its own. */
	wait_until(guard_named(), "its name");
	fds = guard_fds();
	for (i = 0; i < 3; i++) {
		reload(A C);
		reserves(3, "vale0:c", 0);
		adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
		ends();
		close(vc.vc_config.ac_listen);
		wait_until(guard_fds() == fds, "%u descriptors, not %u",
		    guard_fds(), fds);
		/* One that is wrong is not the guard. */
		reload("x\n");
		ends_why("valed.conf:1: not name=value");
		ATF_CHECK_EQ_MSG(fds, guard_fds(), "%u, not %u", guard_fds(),
		    fds);
		reload(A);
		removes(3);
		ends();
		wait_until(guard_fds() == fds, "%u descriptors, not %u",
		    guard_fds(), fds);
	}
	valed_guard_end(false);
}

TEST(gone, "If the guard has gone, there is no reload, and nothing waits")
{
	start(A, 3);
	kill(guard_pid(), SIGKILL);
	ATF_CHECK(!valed_guard_change(&vc));
	ATF_CHECK(!valed_guard_reload());
	ATF_CHECK_EQ(EPIPE, errno);
	valed_guard_answer(0);
	valed_guard_end(false);
	ATF_CHECK(exists("a.sock"));
}

TEST(replaced, "One that reloads goes on as the guard if the one before it has "
    "gone meanwhile")
{
	pid_t pid;

	start(A, 3);
	reload(A C);
	comes(VALED_RESERVE, 3);
	pid = guard_pid();
	kill(pid, SIGKILL);
	wait_until(kill(pid, 0) == -1, "its end");
	valed_guard_answer(0);
	adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
	ends();
	reload(C);
	removes(1);
	ends();
	ATF_CHECK(!exists("a.sock"));
	valed_guard_end(false);
	ATF_CHECK(!exists("c.sock"));
}

TEST(killed, "If the process that reloads is killed, everything stays, and the "
    "next reload works")
{
	pid_t child, guard;
	char path[64];
	FILE *f;

	start(A, 3);
	reload(A C);
	comes(VALED_RESERVE, 3);
	guard = guard_pid();
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", guard, guard);
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	ATF_REQUIRE_EQ(1, fscanf(f, "%d", &child));
	fclose(f);
	kill(child, SIGKILL);
	ends_why("the process that reads the files has ended");
	said("");
	reload(A C);
	reserves(3, "vale0:c", 0);
	adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
	ends();
	valed_guard_end(false);
}

TEST(end, "An end in the middle of a reload leaves no socket and no descriptor")
{
	unsigned int fds;

	start(A, 3);
	fds = open_fds();
	reload(A B C);
	reserves(2, "vale0:b", 0);
	reserves(3, "vale0:c", 0);
	/* The next message is there, and is not taken. */
	wait_readable(valed_guard_fd(), "a change");
	valed_guard_end(false);
	ATF_CHECK_EQ_MSG(fds, open_fds(), "%u, not %u", open_fds(), fds);
	ATF_CHECK(!exists("a.sock") && !exists("b.sock") && !exists("c.sock"));
}

TEST(lost, "A socket for which there is no descriptor is reported as lost")
{
	struct rlimit limit, none;

	start(A, 3);
	reload(A C);
	reserves(3, "vale0:c", 0);
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	ATF_REQUIRE(valed_guard_change(&vc));
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ATF_CHECK(vc.vc_lost);
	ATF_CHECK_EQ(-1, vc.vc_config.ac_listen);
	valed_guard_answer(EMFILE);
	ends_why(FAILED(5, "c"));
	ATF_CHECK(!exists("c.sock"));
	valed_guard_end(false);
}

TEST(interrupted, "Calls that a signal or a lack of memory interrupts are "
    "repeated")
{
	start(A, 3);
	failing->recv[0] = failing->recv[1] = EINTR;
	failing->read[0] = failing->read[1] = EINTR;
	failing->write[0] = EINTR;
	failing->write[1] = EAGAIN;
	failing->recvmsg[0] = EINTR;
	failing->recvmsg[1] = ENOMEM;
	failing->recvmsg[2] = EINTR;
	/* The guard may wait already: the next one meets them. */
	reload(A);
	ends();
	reload(A C);
	comes(VALED_RESERVE, 3);
	failing->send[0] = EINTR;
	failing->send[1] = ENOBUFS;
	failing->send[2] = ENOMEM;
	failing->send[3] = EINTR;
	valed_guard_answer(0);
	adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
	ends();
	reload(A);
	removes(3);
	ends();
	ATF_CHECK_EQ(0, failing->recv[0] + failing->read[0] +
	    failing->write[0] + failing->recvmsg[0] + failing->send[0]);
	/* Other errors are the end. */
	failing->recvmsg[0] = EBADF;
	ATF_CHECK(!valed_guard_change(&vc));
	failing->send[0] = EBADF;
	ATF_CHECK(!valed_guard_reload());
	ATF_CHECK_EQ(EBADF, errno);
	failing->send[0] = EPIPE;
	valed_guard_answer(0);
	ATF_CHECK_EQ(0, failing->send[0]);
	valed_guard_end(false);
	said("");
}

TEST(no_process, "A reload for which there is no process is reported, and the "
    "next one works")
{
	char line[128], why[64];

	start(A, 3);
	snprintf(why, sizeof(why), "reload: %s", strerror(EAGAIN));
	snprintf(line, sizeof(line), "valed_guard_test: %s\n", why);
	failing->fork[0] = EAGAIN;
	reload(A C);
	ends_why(why);
	said(line);
	failing->pipe2[0] = EAGAIN;
	ATF_REQUIRE(valed_guard_reload());
	ends_why(why);
	said(line);
	reload(A C);
	reserves(3, "vale0:c", 0);
	adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
	ends();
	/* The next guard says it, too. */
	failing->fork[0] = EAGAIN;
	reload(A);
	ends_why(why);
	said(line);
	valed_guard_end(false);
}

/* Start with a call that fails: a line, an exit status, and no socket. */
static void
start_fails(int *errors, const char *line)
{
	int fds[2], status;
	char text[256];
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	ATF_REQUIRE_EQ(0, pipe(fds));
	pid = __real_fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		valed_options(3, argv, &opt);
		errors[0] = ENOMEM;
		valed_guard_start(3, argv, &opt);
		_exit(0);
	}
	close(fds[1]);
	while ((n = __real_read(fds[0], text + len, sizeof(text) - 1 -
	    len)) > 0)
		len += n;
	text[len] = '\0';
	close(fds[0]);
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_CHECK_EQ_MSG(EX_OSERR, WEXITSTATUS(status), "%#x", status);
	ATF_CHECK_STREQ(line, text);
	ATF_CHECK(!exists("a.sock") && !exists("b.sock"));
}

TEST(start_fails, "A guard that cannot start leaves no socket")
{
	failing = mmap(NULL, sizeof(*failing), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANON, -1, 0);
	ATF_REQUIRE(failing != MAP_FAILED);
	conf(A B);
	argv[3] = NULL;
	start_fails(failing->socketpair, "valed_guard_test: guard: Cannot "
	    "allocate memory\n");
	start_fails(failing->fork, "valed_guard_test: guard: Cannot allocate "
	    "memory\n");
	start_fails(failing->calloc, "valed_guard_test: Cannot allocate "
	    "memory\n");
}

TEST(no_memory, "A reload that runs out of memory changes nothing")
{
	start(A, 3);
	conf(A C);
	failing->calloc[0] = ENOMEM;
	ATF_REQUIRE(valed_guard_reload());
	ends_why("Cannot allocate memory");
	said("valed_guard_test: Cannot allocate memory\n");
	ATF_CHECK(!exists("c.sock") && exists("a.sock"));
	valed_guard_end(false);
}

TEST_PROGRAM
