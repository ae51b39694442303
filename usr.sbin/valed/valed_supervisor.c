/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The supervisor, the first process of a valed with -R.
 *
 *	supervisor			serving process		guard, passer
 *	   | fork ----------------------->|
 *	   | <------- serves, descriptors |
 *	   | -- SIGHUP, SIGTERM, ... ---->|
 *	   |				  X crashes, or has saved its state
 *	   | execve(2) of the program's file
 *	   | fork ----------------------->|
 *
 * It has no contact with clients: it only keeps descriptors, by name, passes on
 * signals, and sends what the serving process has for the service manager.  If
 * that process ends, and was not told to, it executes the program again, in its
 * own place: so its process ID stays, the program may be a newer one, and both
 * begin alike.  The new program finds the descriptors as sd_listen_fds(3) says,
 * in the queues of a few sockets.  That is also how systemd(1) passes them, which
 * keeps them while a unit is restarted: so before the supervisor ends, it gives
 * them to the service manager (FDSTORE=1 of sd_notify(3)), if there is one.
 *
 * A program that has clients to go on with does not exit for an error in its
 * options or a file, which would end its clients' connections: it waits until a
 * child finds none, or until no client is left.
 *
 * One thread.
 */

#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter_version.h"
#include "peer_fds.h"
#include "valed_activation.h"
#include "valed_error.h"
#include "valed_notify.h"
#include "valed_store.h"
#include "valed_supervisor.h"

/* A program that ends so often before it serves is not started again. */
#define	FAILURES	5
#define	FAILURES_ENV	"VALED_FAILURES"
/* Between an end and a start, if the process did not serve; ms. */
#define	FAILURE_MS	100
/* For the check whether the program can be started; seconds. */
#define	CHECK_S		10
/* Sockets that hold all descriptors, at most: five do, with the longest names. */
#define	PACKS		32

/* SIGABRT is from the service manager's watchdog, if the process hangs. */
static const int forwarded[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGABRT };

static char	program[PATH_MAX];
static char	**arguments;
static pid_t	child;			/* the serving process */
static int	child_fd = -1;		/* the connection with it */
static int	signal_fd = -1;
static bool	served;			/* VALED_STORE_SERVES came */
static bool	ends;			/* VALED_STORE_END came, or a signal */
static bool	restarts;		/* VALED_STORE_RESTART came */
static int	status;			/* of the child that has ended */
static bool	ended;

/* The path of the program, which may be another file later. */
static void
program_find(void)
{
	const ssize_t n = readlink("/proc/self/exe", program,
	    sizeof(program) - 1);

	if (n > 0)
		program[n] = '\0';
	else
		strlcpy(program, arguments[0], sizeof(program));
}

/*
 * The service manager.
 */

/*
 * Give it all descriptors, which it passes to the program that it starts.  It
 * gets the sockets that they are in: it compares each descriptor with each of
 * those that it has, and has none twice.
 */
static void
hand_over(void)
{
	unsigned int i = 0;
	int s;

	while (valed_notify_wanted() && i < valed_store_count()) {
		s = valed_store_pack(&i);
		if (s == -1) {
			warn("what is kept cannot be handed over");
			break;
		}
		valed_notify_fd(s, "FDSTORE=1\nFDPOLL=0\nFDNAME="
		    VALED_STORE_FDNAME);
		close(s);
	}
	valed_notify_barrier();
}

/*
 * Starting the program again.
 */

/* The service manager may be able to. */
static void __dead2
cannot_start(void)
{
	warn("cannot start again: %s", program);
	/* descriptors_place() may have taken the number of its connection. */
	valed_notify_open();
	hand_over();
	_exit(EX_OSERR);
}

/*
 * Put all descriptors where sd_listen_fds(3) expects them, in sockets, behind
 * those that the service manager passed, whose numbers stay.  Returns the
 * number of sockets.
 */
static unsigned int
descriptors_place(int first)
{
	int packs[PACKS];
	unsigned int i = 0, k, n = 0;

	while (i < valed_store_count()) {
		if (n == PACKS || (packs[n++] = valed_store_pack(&i)) == -1)
			cannot_start();
	}
	/* Away from these numbers, first. */
	for (k = 0; k < n; k++) {
		packs[k] = fcntl(packs[k], F_DUPFD_CLOEXEC, first + (int)n);
		if (packs[k] == -1)
			cannot_start();
	}
	for (k = 0; k < n; k++)
		if (dup2(packs[k], first + (int)k) == -1)
			cannot_start();
	return (n);
}

/* The names of all descriptors, as LISTEN_FDNAMES has them. */
static char *
descriptors_names(unsigned int n)
{
	const char *colon = valed_activation_count() > 0 ? ":" : "";
	char *names = NULL;
	size_t size = 0;
	FILE *fp;

	fp = open_memstream(&names, &size);
	if (fp == NULL)
		cannot_start();
	fputs(valed_activation_names(), fp);
	for (; n > 0; n--, colon = ":")
		fprintf(fp, "%s" VALED_STORE_FDNAME, colon);
	if (fclose(fp) != 0)
		cannot_start();
	return (names);
}

static void
env_number(const char *name, unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	setenv(name, text, 1);
}

/* How often the program has ended before it served, now included. */
static unsigned int
failures(void)
{
	const char *value = getenv(FAILURES_ENV);

	return (served ? 0 : 1 +
	    (value == NULL ? 0 : (unsigned int)strtoul(value, NULL, 10)));
}

/* Execute the program, with all descriptors. */
static void __dead2
start_again(void)
{
	const unsigned int failed = restarts ? 0 : failures();
	const int first = VALED_ACTIVATION_START +
	    (int)valed_activation_count();
	unsigned int n;
	char *names;

	if (failed > 0)
		poll(NULL, 0, FAILURE_MS << failed);
	env_number(FAILURES_ENV, failed);
	close(child_fd);
	close(signal_fd);
	n = descriptors_place(first);
	names = descriptors_names(n);
	valed_activation_keep();
	env_number("LISTEN_PID", (unsigned int)getpid());
	env_number("LISTEN_FDS", valed_activation_count() + n);
	setenv("LISTEN_FDNAMES", names, 1);
	/* The signals stay blocked: none is lost meanwhile. */
	execv(program, arguments);
	cannot_start();
}

/*
 * Checking whether it would start.
 */

/* Execute the program with -t and --takes, and its errors in `fd'. */
static void __dead2
check_exec(int fd)
{
	char version[ADAPTER_VERSION_SIZE], **argv;
	unsigned int n = 0;
	sigset_t none;

	while (arguments[n] != NULL)
		n++;
	dup2(fd, STDERR_FILENO);
	argv = calloc(n + 4, sizeof(*argv));
	if (argv == NULL)
		err(EX_OSERR, NULL);
	argv[0] = arguments[0];
	argv[1] = (char *)(uintptr_t)"-t";
	argv[2] = (char *)(uintptr_t)"--takes";
	argv[3] = version;
	adapter_version(version);
	memcpy(argv + 4, arguments + 1, (n - 1) * sizeof(*argv));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(CHECK_S);
	execv(program, argv);
	err(EX_OSERR, "%s", program);
}

/* Read the first line that it prints. */
static void
check_read(int fd, char why[VALED_WHY_SIZE])
{
	ssize_t len = 0, n;

	do {
		n = read(fd, why + len, VALED_WHY_SIZE - 1 - len);
		len += MAX(n, 0);
	} while (n > 0 || (n == -1 && errno == EINTR));
	why[len] = '\0';
	why[strcspn(why, "\n")] = '\0';
}

/*
 * Whether the program would start, and go on from the adapters' states.  Sets
 * *why to its error, or to an empty string.
 */
static bool
check(char why[VALED_WHY_SIZE])
{
	int fds[2], result;
	pid_t pid = -1;

	if (pipe2(fds, O_CLOEXEC) == 0) {
		pid = fork();
		if (pid == 0)
			check_exec(fds[1]);
		close(fds[1]);
		if (pid == -1)
			close(fds[0]);
	}
	if (pid == -1) {
		snprintf(why, VALED_WHY_SIZE, "%s", strerror(errno));
		return (false);
	}
	check_read(fds[0], why);
	close(fds[0]);
	while (waitpid(pid, &result, 0) == -1 && errno == EINTR)
		continue;
	if (result == 0)
		why[0] = '\0';
	else if (why[0] == '\0')
		strlcpy(why, "the program cannot be started", VALED_WHY_SIZE);
	return (why[0] == '\0');
}

/*
 * The serving process.
 */

static void
drop_fd(void *arg __unused, int fd)
{
	close(fd);
}

/*
 * Whether a text has only what valed tells a service manager: a process that a
 * client has taken over could give it another main process, for example.
 */
static bool
notify_ok(const char *text)
{
	static const char *const known[] = { "READY=1", "STATUS=",
	    "RELOADING=1", "MONOTONIC_USEC=", "STOPPING=1", "WATCHDOG=1" };
	unsigned int i;

	for (;; text++) {
		for (i = 0; i < nitems(known) && strncmp(text, known[i],
		    strlen(known[i])) != 0; i++)
			continue;
		if (i == nitems(known))
			return (false);
		text = strchr(text, '\n');
		if (text == NULL)
			return (true);
	}
}

/* Do what the serving process tells. */
static void
message(const struct valed_store_message *vsm, int fd)
{
	char why[VALED_WHY_SIZE];

	switch (vsm->vsm_what) {
	case VALED_STORE_PUT:
		if (fd != -1)
			valed_store_set(vsm->vsm_text, fd);
		return;
	case VALED_STORE_REMOVE:
		valed_store_unset(vsm->vsm_text);
		break;
	case VALED_STORE_NOTIFY:
		if (notify_ok(vsm->vsm_text))
			valed_notify("%s", vsm->vsm_text);
		break;
	case VALED_STORE_SERVES:
		served = true;
		break;
	case VALED_STORE_CHECK:
		(void)check(why);
		while (send(child_fd, why, strlen(why) + 1, MSG_NOSIGNAL) ==
		    -1 && (errno == EINTR || errno == ENOBUFS))
			continue;
		break;
	case VALED_STORE_RESTART:
		restarts = true;
		break;
	case VALED_STORE_END:
		ends = true;
		break;
	}
	if (fd != -1)
		close(fd);
}

/* Whether a name may be one. */
static bool
name_ok(const char *name)
{
	return (name[0] != '\0' && strlen(name) < VALED_STORE_NAME);
}

/* Handle a packet.  Returns false if there is none, or no more. */
static bool
message_read(void)
{
	static struct valed_store_message vsm;
	union {
		struct cmsghdr	align;
		char		buf[PEER_FDS_SPACE(1)];
	} control;
	struct iovec iov = { &vsm, sizeof(vsm) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control.buf, .msg_controllen = sizeof(control.buf) };
	struct peer_fds mf = { .mf_max = 1, .mf_drop = drop_fd };
	int fd = -1;
	ssize_t n;

	mf.mf_fd = &fd;
	n = recvmsg(child_fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n <= 0)
		return (n == -1 && (errno == EINTR || errno == ENOMEM));
	(void)peer_fds_take(&msg, &mf);
	if (n > (ssize_t)offsetof(struct valed_store_message, vsm_text)) {
		((char *)&vsm)[n - 1] = '\0';
		if (vsm.vsm_what != VALED_STORE_PUT || name_ok(vsm.vsm_text)) {
			message(&vsm, fd);
			return (true);
		}
	}
	if (fd != -1)
		close(fd);
	return (true);
}

/* Children have ended: the serving process, or those it has left. */
static void
children(void)
{
	pid_t pid;
	int result;

	while ((pid = waitpid(-1, &result, WNOHANG)) > 0)
		if (pid == child) {
			status = result;
			ended = true;
		}
}

static void
signals(void)
{
	struct signalfd_siginfo si;

	while (read(signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGCHLD) {
			children();
			continue;
		}
		if (si.ssi_signo != SIGHUP && si.ssi_signo != SIGUSR1)
			ends = true;
		kill(child, (int)si.ssi_signo);
		if (si.ssi_signo == SIGABRT)
			kill(child, SIGCONT);
	}
}

/* Say how the serving process has ended, if nobody asked it to. */
static void
say_end(void)
{
	if (WIFSIGNALED(status))
		warnx("the process that serves has ended: %s",
		    strsignal(WTERMSIG(status)));
	else
		warnx("the process that serves has ended: exit status %d",
		    WEXITSTATUS(status));
}

/* The serving process has ended. */
static void __dead2
end(void)
{
	/* What it has sent is still there. */
	while (message_read())
		continue;
	if (!restarts && !ends)
		say_end();
	/* An error at the start was printed, and will not go away. */
	if (!restarts && (ends || (!served && (WIFEXITED(status) ||
	    failures() > FAILURES)))) {
		hand_over();
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EX_SOFTWARE);
	}
	start_again();
}

static void __dead2
supervise(void)
{
	struct pollfd fds[] = {
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = child_fd, .events = POLLIN },
	};

	prctl(PR_SET_NAME, "valed-super");
	while (!ended) {
		if (poll(fds, nitems(fds), -1) == -1)
			continue;
		if (fds[1].revents != 0 && !message_read())
			fds[1].fd = -1;
		if (fds[0].revents != 0)
			signals();
	}
	end();
}

static int
signals_open(void)
{
	sigset_t set;
	unsigned int i;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (i = 0; i < nitems(forwarded); i++)
		sigaddset(&set, forwarded[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

/*
 * Begin with what is inherited, which the service manager would pass again.
 * Returns whether there was something.
 */
static bool
inherit(void)
{
	static bool done, any;

	if (done)
		return (any);
	done = true;
	any = valed_store_inherit();
	if (any)
		valed_notify("FDSTOREREMOVE=1\nFDNAME=" VALED_STORE_FDNAME);
	return (any);
}

static bool passed_store;

static void
note_store(const char *name, size_t len, int fd __unused)
{
	passed_store = passed_store || (len == strlen(VALED_STORE_FDNAME) &&
	    memcmp(name, VALED_STORE_FDNAME, len) == 0);
}

/* Whether the other end of a connection is open. */
static bool
connected(int fd)
{
	struct pollfd pfd = { .fd = fd };

	return (poll(&pfd, 1, 0) != 1);
}

/*
 * Whether an adapter has a client.  The process that served may have ended
 * before it could remove one that has closed its connection.
 */
static bool
clients_kept(void)
{
	const char *what;
	unsigned int i;
	int fd;

	for (i = 0; i < valed_store_count(); i++) {
		what = strchr(valed_store_entry(i, &fd), '.');
		if (what != NULL && strcmp(what, ".client") == 0 &&
		    connected(fd))
			return (true);
	}
	return (false);
}

/* Wait for a moment.  Returns whether the process is told to end. */
static bool
wait_told(const sigset_t *set)
{
	const struct timespec second = { .tv_sec = 1 };
	const int sig = sigtimedwait(set, NULL, &second);

	return (sig == SIGTERM || sig == SIGINT || sig == SIGABRT);
}

static bool begun;

/* The program exits before it has begun: an option, or a file, is wrong. */
static void
wait_mended(void)
{
	char why[VALED_WHY_SIZE], said[VALED_WHY_SIZE];
	sigset_t set;
	unsigned int i;

	if (begun)
		return;
	snprintf(said, sizeof(said), "%s: %s", program_invocation_short_name,
	    valed_error());
	warnx("clients wait until this is mended");
	sigemptyset(&set);
	for (i = 0; i < nitems(forwarded); i++)
		sigaddset(&set, forwarded[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (!check(why)) {
		if (strcmp(why, said) != 0)
			fprintf(stderr, "%s\n", why);
		strlcpy(said, why, sizeof(said));
		if (wait_told(&set)) {
			hand_over();
			_exit(EX_TEMPFAIL);
		}
		if (!clients_kept())
			return;
	}
	restarts = true;
	start_again();
}

void
valed_supervisor_begin(char **argv)
{
	valed_activation_each(note_store);
	if (!passed_store)
		return;
	arguments = argv;
	program_find();
	valed_notify_open();
	if (!inherit() || !clients_kept())
		return;
	valed_error_begin(-1);
	if (atexit(wait_mended) != 0)
		errx(EX_OSERR, "no memory");
}

void
valed_supervisor_begun(void)
{
	begun = true;
}

void
valed_unsupervised(void)
{
	const char *name;
	int fd;

	if (!inherit())
		return;
	while (valed_store_count() > 0) {
		name = valed_store_entry(0, &fd);
		valed_store_unset(name);
	}
	/* Nothing listens on the sockets any longer. */
	valed_notify_barrier();
}

void
valed_supervise(char **argv)
{
	const pid_t self = getpid();
	int fds[2];
	sigset_t later;

	arguments = argv;
	program_find();
	(void)inherit();
	signal_fd = signals_open();
	if (signal_fd == -1 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1 ||
	    (child = fork()) == -1)
		err(EX_OSERR, "supervisor");
	if (child != 0) {
		close(fds[1]);
		child_fd = fds[0];
		supervise();
	}
	close(fds[0]);
	close(signal_fd);
	signal_fd = -1;
	/* They wait until it handles them; others end it. */
	sigemptyset(&later);
	sigaddset(&later, SIGHUP);
	sigaddset(&later, SIGUSR1);
	sigprocmask(SIG_SETMASK, &later, NULL);
	/* Without the supervisor it would run for ever. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != self)
		_exit(EX_UNAVAILABLE);
	valed_store_serve(fds[1]);
}
