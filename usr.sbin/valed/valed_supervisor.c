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
 * begin alike.  The new program inherits the descriptors, with their numbers.
 *
 * systemd(1) can keep descriptors, too (FDSTORE=1 of sd_notify(3)), and passes
 * them to the program that it starts.  It has all of them at any time, in the
 * queues of a few sockets: a generation.  A change makes another generation, of
 * which there is at most one a second.  So clients go on if the unit is
 * restarted, and if the supervisor is killed.
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

#include <dirent.h>
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
#include "vale_clock.h"
#include "valed_activation.h"
#include "valed_notify.h"
#include "valed_store.h"
#include "valed_supervisor.h"
#include "valed_why.h"

/* A program that ends so often before it serves is not started again. */
#define	FAILURES	5
#define	FAILURES_ENV	"VALED_FAILURES"
/* Between an end and a start, if the process did not serve; ms. */
#define	FAILURE_MS	100
/* For the check whether the program can be started; seconds. */
#define	CHECK_S		10
/*
 * Sockets of a generation, at most; five do, with the longest names.  A service
 * manager has two generations at times.
 */
#define	PACKS		16
/* Between a change of the store and a generation that has it; ms. */
#define	CHANGE_MS	20
/* Between two generations; ms. */
#define	GENERATION_MS	1000
/* For the process to end when it has said that it does; ms. */
#define	END_MS		1000
/* Between two looks at the threads of one that does not; ms. */
#define	THREADS_MS	10

/* SIGABRT is from the service manager's watchdog, if the process hangs. */
static const int forwarded[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGABRT };

static char	program[PATH_MAX];
static char	**arguments;
static pid_t	child;			/* the serving process */
static int	child_fd = -1;		/* the connection with it */
static int	signal_fd = -1;
static bool	found;			/* an earlier process has left
					   something */
static bool	served;			/* VALED_STORE_SERVES came */
static bool	ends;			/* VALED_STORE_END came, or a signal */
static bool	said_end;		/* the former */
static int	end_signal;		/* the latter, or 0 */
static bool	restarts;		/* VALED_STORE_RESTART came */
static uint64_t	leaves_ms;		/* when one of these came, or
					   VALED_STORE_CRASHES; 0: none has */
static int	status;			/* of the child that has ended */
static bool	ended;

/* The generations that the service manager has. */
static unsigned int oldest, newest;
static uint64_t	changed_ms;		/* since when the newest lacks a change
					   of the store, or 0 */
static uint64_t	made_ms;		/* when it was made */

/* Find the path of the program, which may be another file later. */
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

static void
changed(void)
{
	if (changed_ms == 0 && valed_notify_wanted())
		changed_ms = vale_now_ms();
}

/* Return the milliseconds until the next generation is due, or -1. */
static int
generation_wait(void)
{
	const uint64_t now = vale_now_ms();
	const uint64_t due = MAX(changed_ms + CHANGE_MS,
	    made_ms + GENERATION_MS);

	if (changed_ms == 0)
		return (-1);
	return (due <= now ? 0 : (int)(due - now));
}

/* Pack all descriptors.  Returns the number of sockets, or -1 with errno. */
static int
packs_make(int packs[PACKS], bool wait)
{
	unsigned int i = 0;
	int n = 0;

	errno = ENOBUFS;
	while (i < valed_store_count() && n < PACKS &&
	    (packs[n] = valed_store_pack(&i, wait)) != -1)
		n++;
	if (i == valed_store_count())
		return (n);
	while (n > 0)
		close(packs[--n]);
	return (-1);
}

static const char *
generation_name(unsigned int generation)
{
	static char name[sizeof(VALED_STORE_FDNAME) + 11];

	snprintf(name, sizeof(name), generation == 0 ? VALED_STORE_FDNAME :
	    VALED_STORE_FDNAME ".%u", generation);
	return (name);
}

/*
 * Give the service manager all descriptors, in one message, and have it forget
 * the generations that it had.  `wait' is whether to wait for a manager that
 * does not read, and for others of this user that have descriptors in flight.
 */
static void
generation_make(bool wait)
{
	static bool said;
	int i, n, packs[PACKS];

	if (!valed_notify_wanted())
		return;
	n = packs_make(packs, wait);
	made_ms = vale_now_ms();
	if (n == -1 && !said)
		warn("what is kept cannot be handed over");
	said = n == -1;
	if (n == -1 || (n > 0 && !valed_notify_fds(packs, (unsigned int)n,
	    wait, "FDSTORE=1\nFDPOLL=0\nFDNAME=%s",
	    generation_name(newest + 1))))
		changed();
	else {
		changed_ms = 0;
		newest++;
	}
	for (i = 0; i < n; i++)
		close(packs[i]);
	while (oldest < newest && valed_notify_fds(NULL, 0, wait,
	    "FDSTOREREMOVE=1\nFDNAME=%s", generation_name(oldest)))
		oldest++;
}

/* Have the service manager keep what there is, before this process ends. */
static void
hand_over(void)
{
	if (changed_ms != 0)
		generation_make(true);
	valed_notify_barrier();
}

/*
 * Starting the program again.
 */

/* Return whether the other end of a connection is open. */
static bool
connected(int fd)
{
	struct pollfd pfd = { .fd = fd };

	return (poll(&pfd, 1, 0) != 1);
}

/*
 * Return whether an adapter has a client.  The process that served may have
 * ended before it could remove a client that has closed its connection.
 */
static bool
clients_kept(void)
{
	unsigned int i;
	int fd;

	for (i = 0; i < valed_store_count(); i++) {
		if (valed_store_is_client(valed_store_entry(i, &fd)) &&
		    connected(fd))
			return (true);
	}
	return (false);
}

static void
env_number(const char *name, unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	setenv(name, text, 1);
}

/* Return how often the program has ended before it served, now included. */
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
	unsigned int tries = 0;
	int fd;

	if (failed > 0)
		poll(NULL, 0, FAILURE_MS << failed);
	env_number(FAILURES_ENV, failed);
	close(child_fd);
	close(signal_fd);
	/*
	 * The signals stay blocked: none is lost meanwhile.  One that has come
	 * when the process did not read signals any more ends the next one.
	 */
	if (end_signal != 0)
		raise(end_signal);
	do {
		poll(NULL, 0, tries == 0 ? 0 : FAILURE_MS << tries);
		fd = valed_store_leave(oldest, newest);
		if (fd != -1) {
			execv(program, arguments);
			close(fd);
		}
		warn("cannot start again: %s", program);
	} while (++tries <= FAILURES);
	hand_over();
	_exit(EX_OSERR);
}

/*
 * Checking whether it would start.
 */

/* Execute the program with -t and --takes, and its errors in `fd'. */
static void __dead2
check_exec(int fd)
{
	static char version[] = ADAPTER_VERSION;
	unsigned int n = 0;
	char **argv;
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
	memcpy(argv + 4, arguments + 1, (n - 1) * sizeof(*argv));
	/* What is inherited is there for this process, too. */
	env_number("LISTEN_PID", (unsigned int)getpid());
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
 * Return whether the program would start, and go on from the adapters' states.
 * Sets *why to the program's error, or to an empty string.
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

/*
 * Return whether a text has only what valed tells a service manager: a process
 * that a client has taken over could name another main process, for example.
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

static void
reply(const char *text)
{
	(void)peer_fds_send(child_fd, text, strlen(text) + 1, NULL, 0,
	    PEER_FDS_WAIT);
}

/* Do what the serving process tells. */
static void
message(const struct valed_store_message *vsm, int fd)
{
	char why[VALED_WHY_SIZE];

	switch (vsm->vsm_what) {
	case VALED_STORE_PUT:
		changed();
		/* A lost descriptor is not the one that was there. */
		if (fd != -1)
			valed_store_set(vsm->vsm_text, fd);
		else
			valed_store_unset(vsm->vsm_text);
		return;
	case VALED_STORE_REMOVE:
		changed();
		valed_store_unset(vsm->vsm_text);
		break;
	case VALED_STORE_NOTIFY:
		if (notify_ok(vsm->vsm_text))
			valed_notify("%s", vsm->vsm_text);
		break;
	case VALED_STORE_SERVES:
		served = true;
		/* The files that adapters have gone on from are spent. */
		generation_make(false);
		break;
	case VALED_STORE_CHECK:
		(void)check(why);
		reply(why);
		break;
	case VALED_STORE_RESTART:
		restarts = true;
		leaves_ms = vale_now_ms();
		break;
	case VALED_STORE_END:
		ends = said_end = true;
		leaves_ms = vale_now_ms();
		break;
	case VALED_STORE_CRASHES:
		leaves_ms = vale_now_ms();
		break;
	}
	if (fd != -1)
		close(fd);
}

/* Return whether a name may be one. */
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
	const struct iovec iov = { &vsm, sizeof(vsm) };
	int fd = -1;
	struct peer_fds mf = { .mf_fd = &fd, .mf_max = 1 };
	const ssize_t n = peer_fds_recv(child_fd, &iov, 1, &mf, MSG_DONTWAIT);

	/* ECONNRESET: it has ended with an unread reply; packets are here. */
	if (n <= 0)
		return (n == -1 && errno == ECONNRESET);
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

/* Handle children's end: the serving process, or those it has left. */
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
		if (si.ssi_signo != SIGHUP && si.ssi_signo != SIGUSR1) {
			ends = true;
			end_signal = (int)si.ssi_signo;
		}
		kill(child, (int)si.ssi_signo);
		if (si.ssi_signo == SIGABRT)
			kill(child, SIGCONT);
	}
}

/*
 * Return whether a thread of the serving process may still execute
 * instructions.
 */
static bool
thread_runs(const char *tid)
{
	char path[64], stat[256], *state;
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", child, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return (false);
	n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	stat[MAX(n, 0)] = '\0';
	state = strrchr(stat, ')');
	/*
	 * proc_pid_stat(5): a zombie, dead, or in uninterruptible sleep; as
	 * that and idle while another thread has the kernel write a core dump.
	 */
	return (state != NULL && strlen(state) > 2 &&
	    strchr("ZXxDI", state[2]) == NULL);
}

/*
 * Return whether the serving process, which was killed, executes no instruction
 * of its program any more.  A thread that waits for a page of a client's
 * memory, which the client can withhold, ends as late as the client likes, but
 * in the kernel: what the kernel copies then goes to or comes from that page.
 */
static bool
threads_gone(void)
{
	char path[32];
	struct dirent *de;
	bool gone = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", child);
	dir = opendir(path);
	while (dir != NULL && gone && (de = readdir(dir)) != NULL)
		gone = de->d_name[0] == '.' || !thread_runs(de->d_name);
	if (dir != NULL)
		closedir(dir);
	return (dir != NULL && gone);
}

/* Say how the serving process has ended, if nobody asked it to. */
static void
say_end(void)
{
	if (!ended)
		warnx("the process that serves does not end: another one "
		    "takes its place");
	else if (WIFSIGNALED(status))
		warnx("the process that serves has ended: %s",
		    strsignal(WTERMSIG(status)));
	else
		warnx("the process that serves has ended: exit status %d",
		    WEXITSTATUS(status));
}

/* Return whether the program is not started again after its end. */
static bool
is_last(void)
{
	if (restarts || ends || served)
		return (ends && !restarts);
	/* An error that was printed, and that will not go away. */
	if (ended && WIFEXITED(status) && !(found && (WEXITSTATUS(status) ==
	    EX_OSERR || WEXITSTATUS(status) == EX_UNAVAILABLE)))
		return (true);
	return (failures() > FAILURES);
}

/* End: the serving process has ended, or is as good as that. */
static void __dead2
end(void)
{
	/* What it has sent is still there. */
	while (message_read())
		continue;
	children();
	if (!restarts && !ends)
		say_end();
	if (!is_last())
		start_again();
	hand_over();
	_exit(ended && WIFEXITED(status) ? WEXITSTATUS(status) :
	    said_end ? EX_OK : EX_SOFTWARE);
}

/* Return whether a process that leaves is late, and can be left to itself. */
static bool
overdue(void)
{
	if (leaves_ms == 0 || vale_now_ms() - leaves_ms < END_MS)
		return (false);
	kill(child, SIGKILL);
	return (threads_gone());
}

/* Return how long supervise() may wait, ms, or -1. */
static int
supervise_wait(void)
{
	const int ms = generation_wait();
	const uint64_t late = vale_now_ms() - leaves_ms;

	if (leaves_ms != 0)
		return (late < END_MS ? (int)(END_MS - late) : THREADS_MS);
	return (ms);
}

static void __dead2
supervise(void)
{
	struct pollfd fds[] = {
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = child_fd, .events = POLLIN },
	};

	prctl(PR_SET_NAME, "valed-super");
	while (!ended && !overdue()) {
		if (generation_wait() == 0)
			generation_make(false);
		if (poll(fds, nitems(fds), supervise_wait()) == -1)
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

/* Wait for a moment.  Returns whether the process is told to end. */
static bool
wait_told(const sigset_t *set)
{
	const struct timespec second = { .tv_sec = 1 };
	const int sig = sigtimedwait(set, NULL, &second);

	return (sig == SIGTERM || sig == SIGINT || sig == SIGABRT);
}

void
valed_supervisor_mend(const struct valed_why *wrong)
{
	const char *level = strchr(program_invocation_short_name, '>');
	char why[VALED_WHY_SIZE], said[VALED_WHY_SIZE];
	sigset_t set;
	unsigned int i;

	if (!found || !clients_kept())
		return;
	/* As the child prints that, whose stderr is not the journal's. */
	snprintf(said, sizeof(said), "%s: %s", level != NULL ? level + 1 :
	    program_invocation_short_name, wrong->wy_text);
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
	/* Whoever has started this process may ignore them. */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	/* That discards a SIGCHLD of a process that was left before. */
	children();
	found = valed_store_inherit(&oldest, &newest);
	if (!found)
		return;
	arguments = argv;
	program_find();
	valed_notify_open();
	/* The sockets that the service manager has passed are empty now. */
	changed();
	generation_make(false);
}

void
valed_unsupervised(void)
{
	const char *name;
	int fd;

	if (valed_store_count() == 0)
		return;
	while (valed_store_count() > 0) {
		name = valed_store_entry(0, &fd);
		/* systemd(1) closes its duplicate some time after this. */
		if (strncmp(name, "socket", strlen("socket")) == 0)
			(void)shutdown(fd, SHUT_RDWR);
		valed_store_unset(name);
	}
	changed();
	hand_over();
}

/* Try again, if this is not the first start: there is no child. */
static void __dead2
cannot_serve(void)
{
	warn("supervisor");
	if (found && failures() <= FAILURES)
		start_again();
	hand_over();
	_exit(EX_OSERR);
}

void
valed_supervise(char **argv)
{
	const pid_t self = getpid();
	int fds[2];
	sigset_t later;

	arguments = argv;
	program_find();
	signal_fd = signals_open();
	if (signal_fd == -1 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1 ||
	    (child = fork()) == -1)
		cannot_serve();
	if (child != 0) {
		close(fds[1]);
		child_fd = fds[0];
		supervise();
	}
	close(fds[0]);
	close(signal_fd);
	signal_fd = -1;
	/* Signals wait until the handlers are set: valed_serve_signals(). */
	sigemptyset(&later);
	sigaddset(&later, SIGHUP);
	sigaddset(&later, SIGINT);
	sigaddset(&later, SIGTERM);
	sigaddset(&later, SIGUSR1);
	sigprocmask(SIG_SETMASK, &later, NULL);
	/*
	 * Without the supervisor the process would run for ever.  A service
	 * manager starts another one, which goes on from the store, and must be
	 * the only one that serves; otherwise the sockets are to be removed.
	 */
	prctl(PR_SET_PDEATHSIG, valed_notify_wanted() ? SIGKILL : SIGTERM);
	if (getppid() != self)
		_exit(EX_UNAVAILABLE);
	valed_store_serve(fds[1]);
}
