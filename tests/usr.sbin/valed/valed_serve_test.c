/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Serving (valed_serve.c, which is included), call by call: signals, checks of
 * the threads, reloads, restarts, and the end.  All that it calls of valed is
 * this file's.
 */

#include "valed_serve.c"
#include "wrap.h"

#include <sys/wait.h>

#include <fcntl.h>

#include <atf-c.h>

#include "called.h"
#include "said.h"
#include "test.h"

/* What is served, and what calls return. */
static struct world {
	bool		resuming;	/* until valed is ready b has not gone
					   on */
	char	why[32];		/* of changes */
	bool	no_signals, due, is_change, reloads, change_is_end;
	bool	store, manager, restart, replace, gone;
	bool	outgrown, line;
	unsigned int waits, polls, asked;
	short	revents[4][3];		/* of each wait; then SIGTERM */
} world;

static struct adapter ads[2] = {
	{ .config = { .ac_name = "a" } }, { .config = { .ac_name = "b" } }
};
static struct adapter_list served = TAILQ_HEAD_INITIALIZER(served);

CALLED(valed_notify_reloading, "reloading")
CALLED(valed_notify_watch, "notify watch")
CALLED(peer_accept_watch, "accept watch")
CALLED(peer_close_watch, "close watch")
CALLED(valed_carrier_watch, "carrier")
CALLED(ctl_names_end, "names end")
CALLED(ctl_go, "control")

OF_ADAPTER(adapter_watch, "watch")
OF_ADAPTER(adapter_listen, "listen")
OF_ADAPTER(adapter_go, "go")
OF_ADAPTER(adapter_quiesce, "quiesce")
OF_ADAPTER(adapter_save, "save")

/* Each adapter has done it when the main thread has waited so often. */
static bool
step_done(const struct adapter *ad, const char *what)
{
	if (++world.asked % (world.polls + 1) != 0)
		return (false);
	called("%s %s", what, ad->config.ac_name);
	return (true);
}

bool
adapter_resumed(struct adapter *ad)
{
	return (!world.resuming || strcmp(ad->config.ac_name, "b") != 0);
}

bool
adapter_quiesced(struct adapter *ad)
{
	return (step_done(ad, "quiesced"));
}

bool
adapter_saved(struct adapter *ad)
{
	return (step_done(ad, "saved"));
}

void
valed_hostif_keep(void)
{
}

void
valed_counters_keep(void)
{
	called("counters");
}

void
valed_settings_keep(void)
{
	if (world.store)
		called("keep");
}

void
valed_notify_ready(unsigned int n, const char *why)
{
	called("ready %u%s%s", n, why[0] == '\0' ? "" : " ", why);
	world.resuming = false;
}

static const char *const wishes[CTL_NWISHES] = {
	[CTL_RESTART] = "restart ", [CTL_REPLACE] = "replace ",
	[CTL_RELOAD] = ""
};

void
ctl_reload_begin(enum ctl_wish wish)
{
	called("%sbegin", wishes[wish]);
}

void
ctl_reload_end(enum ctl_wish wish, const char *why)
{
	called("%send%s%s", wishes[wish],
	    why[0] == '\0' ? "" : " ", why);
}

int
ctl_reload_fd(void)
{
	return (88);
}

enum ctl_wish
ctl_reload_wish(void)
{
	return (world.restart ? CTL_RESTART : world.replace ? CTL_REPLACE :
	    CTL_RELOAD);
}

void
valed_guard_end(bool keep)
{
	called("guard %s", keep ? "keep" : "end");
}

bool
valed_notify_wanted(void)
{
	return (world.manager);
}

bool
valed_store_active(void)
{
	return (world.store);
}

bool
valed_store_found(void)
{
	return (false);
}

struct adapter_resumed
adapter_keep_resumed(void)
{
	return ((struct adapter_resumed){ 0 });
}

int
valed_store_fd(void)
{
	return (world.store ? 44 : -1);
}

void
valed_store_started(void)
{
	if (world.store)
		called("started");
}

void
valed_store_tell(enum valed_store_what what, const char *text)
{
	static const char *const names[] = {
		[VALED_STORE_SERVES] = "serves", [VALED_STORE_CHECK] = "check",
		[VALED_STORE_RESTART] = "restarts", [VALED_STORE_END] = "ends",
	};

	ATF_CHECK(text == NULL);
	if (world.store)
		called("%s", names[what]);
}

bool
valed_store_reply(char *why, size_t size)
{
	strlcpy(why, world.why, size);
	return (world.reloads);
}

int
valed_guard_fd(void)
{
	return (66);
}

bool
valed_guard_reload(bool replace)
{
	called("guard %s", replace ? "replace" : "reload");
	errno = EPIPE;
	return (world.reloads);
}

void
valed_notify(const char *fmt, ...)
{
	called("notify %s", fmt);
}

bool
valed_guard_change(struct valed_change *vc)
{
	errno = 0;
	vc->vc_what = world.change_is_end ? VALED_END : VALED_ADD;
	strlcpy(vc->vc_why, world.why, sizeof(vc->vc_why));
	return (world.is_change);
}

void
valed_reload(struct valed_change *vc, struct adapter_list *list,
    void (*fn)(struct adapter *ending))
{
	called("change %d%s", (int)vc->vc_what, list == &served &&
	    fn == watch_due ? "" : "?");
}

uint64_t
peer_watch_start(void)
{
	return (5);
}

void
valed_stats_hostif(struct hostif *hi __unused, void *arg __unused)
{
}

void
valed_stats_hostif_live(struct hostif *hi __unused, void *arg __unused)
{
}

void
hostif_each(void (*fn)(struct hostif *hi, void *arg), void *arg)
{
	static struct hostif *const gone = (struct hostif *)&world;

	if (fn == valed_stats_hostif || fn == valed_stats_hostif_live)
		called("each %s%s", fn == valed_stats_hostif ? "print" : "live",
		    arg == NULL ? "" : "?");
	else
		fn(gone, arg);
}

bool
hostif_gone_now(struct hostif *hi __unused)
{
	return (world.gone);
}

bool
hostif_outgrown(const struct hostif *hi __unused)
{
	return (world.outgrown);
}

void
hostif_let_go(const char *port)
{
	called("let go %s", port);
	world.outgrown = false;
	world.gone = true;
}

bool
valed_hostif_line(const char *port __unused)
{
	return (world.line);
}

const char *
hostif_port_name(const struct hostif *hi __unused)
{
	return ("vale0:e");
}

void
valed_guard_unattached(const char *port, const char *why)
{
	called("gone %s%s", port, why);
}

bool
valed_guard_attach(void)
{
	if (world.gone)
		called("guard attach");
	return (world.gone);
}

void
valed_stats_print(const struct adapter_list *list)
{
	called("print%s", list == &served ? "" : "?");
}

void
valed_stats_live(const struct adapter_list *list)
{
	called("live%s", list == &served ? "" : "?");
}

bool
peer_watch_due(uint64_t *next)
{
	return (next == &next_ns && world.due);
}

/* After the waits of the script a signal ends the program. */
bool
peer_watch_wait(struct pollfd *fds, nfds_t n, uint64_t *next)
{
	unsigned int i;

	called("wait %d%s", fds[1].fd, fds[2].fd == 88 ? "" :
	    fds[2].fd == 44 ? " check" : " only");
	if (n != 3 || next != &next_ns || *next != 5 || (fds[2].fd != 88 &&
	    fds[2].fd != 44 && fds[2].fd != -1))
		called("?");
	for (i = 0; i < n; i++) {
		if (fds[i].events != POLLIN)
			called("?");
		fds[i].revents = world.revents[world.waits][i];
	}
	if (++world.waits == nitems(world.revents)) {
		fds[0].revents = POLLIN;
		raise(SIGTERM);
	}
	return (world.due);
}

WRAP(int, signalfd, int fd, const sigset_t *set, int flags)
{
	ATF_CHECK_EQ(-1, fd);
	if (!world.no_signals)
		return (__real_signalfd(fd, set, flags));
	errno = ENOBUFS;
	return (-1);
}

WRAP(int, poll, struct pollfd *fds, nfds_t n, int timeout_ms)
{
	ATF_CHECK(fds == NULL && n == 0 && timeout_ms == 1);
	return (0);
}

/* As valed_serve() begins, with no adapter. */
static void
make(void)
{
	called_make();
	adapters = &served;
}

static void
list_make(void)
{
	TAILQ_INSERT_TAIL(&served, &ads[0], link);
	TAILQ_INSERT_TAIL(&served, &ads[1], link);
}

TEST(signals, "Four signals are read, one interrupts calls, and one is ignored")
{
	static const int taken[] = { SIGHUP, SIGINT, SIGUSR1, SIGTERM };
	struct signalfd_siginfo si;
	struct sigaction sa;
	sigset_t set;
	unsigned int i;
	int fd, sig;

	fd = valed_serve_signals();
	ATF_REQUIRE(fd != -1);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	ATF_CHECK_EQ(O_NONBLOCK, fcntl(fd, F_GETFL) & O_NONBLOCK);
	ATF_REQUIRE_EQ(0, sigprocmask(SIG_SETMASK, NULL, &set));
	for (sig = 1; sig < 32; sig++) {
		for (i = 0; i < nitems(taken) && taken[i] != sig; i++)
			continue;
		ATF_CHECK_EQ_MSG(i < nitems(taken), sigismember(&set, sig),
		    "%d", sig);
	}
	for (i = 0; i < nitems(taken); i++) {
		raise(taken[i]);
		ATF_REQUIRE_EQ((ssize_t)sizeof(si), read(fd, &si, sizeof(si)));
		ATF_CHECK_EQ(taken[i], (int)si.ssi_signo);
	}
	ATF_CHECK_EQ(-1, read(fd, &si, sizeof(si)));
	ATF_REQUIRE_EQ(0, sigaction(SIGPIPE, NULL, &sa));
	ATF_CHECK_EQ(SIG_IGN, sa.sa_handler);
	ATF_REQUIRE_EQ(0, sigaction(PEER_SIGNAL, NULL, &sa));
	ATF_CHECK_EQ(signal_nothing, sa.sa_handler);
	ATF_CHECK_EQ(0, sa.sa_flags & (SA_RESTART | SA_RESETHAND | SA_SIGINFO |
	    SA_NODEFER));
	for (sig = 1; sig < 32; sig++)
		ATF_CHECK_EQ(0, sigismember(&sa.sa_mask, sig));
	raise(PEER_SIGNAL);
	world.no_signals = true;
	ATF_CHECK_EQ(-1, valed_serve_signals());
	ATF_CHECK_EQ(ENOBUFS, errno);
}

TEST(watches, "A check is of all threads, once a second, also at one that ends")
{
	struct adapter ending = { .config = { .ac_name = "x" } };

	make();
	ATF_CHECK_EQ(0, adapters_count());
	list_make();
	ATF_CHECK_EQ(2, adapters_count());
#define	CHECKED	"accept watch;watch a;listen a;watch b;listen b;"
	watch(NULL);
	check(CHECKED "close watch;carrier;notify watch;");
	verbose = true;
	watch(&ending);
	check(CHECKED "watch x;close watch;carrier;notify watch;"
	    "live;each live;");
	watch_due(&ending);
	check("");
	world.due = true;
	verbose = false;
	watch_due(&ending);
	check(CHECKED "watch x;close watch;carrier;notify watch;");
}

TEST(keeps, "What administrators change is kept at once; of others' changes "
    "the first of a second is, and the rest by its end")
{
	make();
	world.store = true;
	valed_serve_changed(true);
	valed_serve_changed(true);
	check("keep;keep;");
	valed_serve_changed(false);
	check("keep;");
	valed_serve_changed(false);
	valed_serve_changed(false);
	check("");
	watch(NULL);
	check("accept watch;close watch;carrier;notify watch;keep;");
	watch(NULL);
	check("accept watch;close watch;carrier;notify watch;");
	valed_serve_changed(false);
	check("keep;");
}

#define	GONE	"the process that reads the files has ended: restart valed"
#define	PIPE	"cannot reload: " GONE

TEST(reloads, "A reload that is asked for during another follows it; if the "
    "guard ends, its end is the answer")
{
	const char *const line = "valed_serve_test: " PIPE "\n";

	make();
	list_make();
	said_start();
	reload_begin(CTL_RELOAD);
	check("begin;guard reload;end " PIPE ";");
	ATF_CHECK_STREQ(line, said());
	said_start();
	world.reloads = true;
	reload_begin(CTL_RELOAD);
	check("begin;guard reload;reloading;");
	world.is_change = true;
	ATF_CHECK(reload_change());
	check("change 2;");
	/* Twice: one more. */
	reload_begin(CTL_RELOAD);
	reload_begin(CTL_RELOAD);
	check("");
	world.change_is_end = true;
	ATF_CHECK(reload_change());
	strlcpy(world.why, "x", sizeof(world.why));
	check("change 3;ready 2;end;begin;guard reload;reloading;");
	ATF_CHECK(reload_change());
	check("change 3;ready 2 x;end x;");
	/* No reload is in progress: valed only prints that the guard ended. */
	world.is_change = false;
	ATF_CHECK(!reload_change());
	check("");
	ATF_CHECK_STREQ("valed_serve_test: " GONE "\n", said());
	said_start();
	reload_begin(CTL_RELOAD);
	reload_begin(CTL_RELOAD);
	check("begin;guard reload;reloading;");
	ATF_CHECK(!reload_change());
	check("names end;ready 2 " PIPE ";end " PIPE ";");
	ATF_CHECK_STREQ(line, said());
	/* Neither goes on. */
	ATF_CHECK(!reload_change());
	check("");
	world.is_change = true;
	world.why[0] = '\0';
	ATF_CHECK(reload_change());
	check("change 3;");
}

TEST(serves, "It serves until a signal ends it")
{
	make();
	list_make();
	signals_fd = valed_serve_signals();
	world.reloads = true;
	world.revents[0][0] = POLLIN;
	raise(SIGUSR1);
	raise(SIGHUP);
	run();
	check("wait 66;begin;guard reload;reloading;print;each print;"
	    "wait 66 only;wait 66 only;wait 66 only;");
	/* The guard has gone. */
	memset(world.revents, 0, sizeof(world.revents));
	world.waits = 0;
	world.revents[1][1] = POLLHUP;
	world.due = true;
	run();
#define	CHECKED_2	CHECKED "close watch;carrier;notify watch;"
	check("wait 66 only;" CHECKED_2
	    "wait 66 only;names end;ready 2 " PIPE ";end " PIPE ";"
	    CHECKED_2 "wait -1;" CHECKED_2 "wait -1;");
	world.waits = 0;
	world.revents[1][1] = 0;
	world.revents[2][1] = POLLIN;
	world.is_change = true;
	world.due = false;
	run();
	check("wait 66;wait 66;wait 66;change 2;wait 66;");
	/* A client asks for a reload, also while the signal does. */
	memset(world.revents, 0, sizeof(world.revents));
	world.waits = 0;
	world.revents[1][2] = POLLIN;
	run();
	check("wait 66;wait 66;begin;guard reload;reloading;wait 66 only;"
	    "wait 66 only;");
	world.waits = 0;
	world.change_is_end = true;
	world.revents[0][1] = POLLIN;
	world.revents[1][0] = POLLIN;
	raise(SIGHUP);
	run();
	check("wait 66 only;change 3;ready 2;end;wait 66;begin;guard reload;"
	    "reloading;wait 66 only;wait 66 only;");
}

TEST(gone, "While an interface is gone the guard is asked once a second to "
    "attach another one; nobody is told of a reload, and one that is asked for "
    "meanwhile waits")
{
	make();
	list_make();
	world.gone = world.due = true;
	watch(NULL);
	watch(NULL);
	check(CHECKED "gone vale0:e;guard attach;close watch;carrier;"
	    "notify watch;" CHECKED "close watch;carrier;notify watch;");
	reload_begin(CTL_RELOAD);
	check("");
	world.gone = false;
	world.reloads = world.is_change = true;
	ATF_CHECK(reload_change());
	check("change 2;");
	world.change_is_end = true;
	ATF_CHECK(reload_change());
	check("change 3;begin;guard reload;reloading;");
	ATF_CHECK(reload_change());
	check("change 3;ready 2;end;");
	world.gone = true;
	attach_begin();
	world.is_change = false;
	ATF_CHECK(!reload_change());
	check("gone vale0:e;guard attach;");
	attach_begin();
	check("gone vale0:e;guard attach;");
}

TEST(outgrown, "An interface with more queues than it had is closed, and the "
    "guard asked to attach it, if the configuration has it")
{
	make();
	list_make();
	world.outgrown = true;
	attach_begin();
	check("");
	world.line = true;
	attach_begin();
	check("let go vale0:e;gone vale0:e;guard attach;");
}

TEST(replaces, "A client asks for a reload that may disconnect others; a "
    "signal meanwhile is one that may not")
{
	make();
	signals_fd = valed_serve_signals();
	world.reloads = world.replace = true;
	world.revents[0][2] = POLLIN;
	ATF_CHECK(!run());
	check("wait 66;replace begin;guard replace;reloading;wait 66 only;"
	    "wait 66 only;wait 66 only;");
	reload_begin(CTL_RELOAD);
	check("");
	world.is_change = world.change_is_end = true;
	strlcpy(world.why, "no", sizeof(world.why));
	ATF_CHECK(reload_change());
	check("change 3;ready 0 no;replace end no;begin;guard reload;"
	    "reloading;");
}

TEST(restarts, "A client asks for a restart: it ends if the program can be "
    "started again")
{
	make();
	signals_fd = valed_serve_signals();
	world.reloads = world.restart = true;
	world.revents[0][2] = POLLIN;
	ATF_CHECK(!run());
	check("wait 66;restart begin;restart end valed has no option -R: "
	    "restart it as it was started;wait 66;wait 66;wait 66;");
	/* The supervisor says why not. */
	world.store = true;
	world.waits = 0;
	world.revents[1][2] = POLLIN;
	strlcpy(world.why, "no", sizeof(world.why));
	ATF_CHECK(!run());
	check("wait 66;restart begin;check;wait 66 check;restart end no;"
	    "wait 66;wait 66;");
	world.waits = 0;
	world.why[0] = '\0';
	ATF_CHECK(run());
	check("wait 66;restart begin;check;wait 66 check;restart end;");
	/* It has gone. */
	world.waits = 0;
	world.reloads = false;
	ATF_CHECK(!run());
	check("wait 66;restart begin;check;wait 66 check;"
	    "restart end the supervisor has ended;wait 66;wait 66;");
}

TEST(told, "A signal ends the program while it waits for an adapter that does "
    "not end")
{
	struct adapter ending = { .config = { .ac_name = "x" } };
	int status;

	make();
	signals_fd = valed_serve_signals();
	world.due = true;
	if (fork() == 0) {
		raise(SIGHUP);
		reloading = true;
		watch_due(&ending);
		raise(SIGTERM);
		watch_due(&ending);
		_exit(EX_SOFTWARE);
	}
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK_EQ_MSG(EX_OK, status, "%#x", status);
}

/* Serve in a child, until the end. */
static void
runs(bool live, const char *calls)
{
	int out = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600), status;
	char text[32] = "";

	ATF_REQUIRE(out != -1);
	fflush(stdout);
	world.waits = 0;
	if (fork() == 0) {
		dup2(out, STDOUT_FILENO);
		/* For who reads a file that standard output is. */
		printf("counters");
		valed_serve(&served, live, valed_serve_signals());
	}
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK_EQ_MSG(EX_OK, status, "%#x", status);
	ATF_CHECK(pread(out, text, sizeof(text) - 1, 0) != -1);
	ATF_CHECK_STREQ("counters", text);
	close(out);
	check(calls);
}

#define	WAITS	"wait 66;wait 66;wait 66;wait 66;"
#define	QUIESCES "quiesce a;quiesce b;quiesced a;quiesced b;"
#define	SAVED(how) "keep;counters;" how ";guard keep;"
#define	SAVES(how) QUIESCES "save a;save b;saved a;saved b;" SAVED(how)

TEST(ends, "It says that it serves; at the end, what the next process needs is "
    "kept, and the sockets, if there is one: with -R and a service manager, or "
    "for a restart")
{
	called_make();
	runs(false, "control;ready 0;" WAITS "notify STOPPING=1;guard end;");
	list_make();
	world.manager = true;
	runs(false, "go a;go b;control;ready 2;" WAITS
	    "notify STOPPING=1;guard end;");
	world.manager = false;
	world.store = true;
#define	SERVES	"go a;go b;started;keep;serves;control;ready 2;"
	runs(false, SERVES WAITS "notify STOPPING=1;ends;guard end;");
	world.manager = true;
	runs(false, SERVES WAITS "notify STOPPING=1;" SAVES("ends"));
	world.manager = false;
	world.reloads = true;
	world.restart = true;
	world.revents[0][2] = world.revents[1][2] = POLLIN;
	world.due = true;
#define	CHECKED_LIVE	CHECKED_2 "live;each live;"
	runs(true, SERVES "wait 66;restart begin;check;" CHECKED_LIVE
	    "wait 66 check;restart end;" SAVES("restarts"));
}

TEST(slow, "No adapter saves its state before all have quiesced, which takes "
    "two seconds at most, as does saving it")
{
	called_make();
	list_make();
	world.manager = world.store = true;
	world.polls = 3;
	runs(false, SERVES WAITS "notify STOPPING=1;" SAVES("ends"));
	world.polls = 2000 - 1;
	runs(false, SERVES WAITS "notify STOPPING=1;quiesce a;quiesce b;"
	    "quiesced a;save a;save b;saved a;" SAVED("ends"));
}

TEST(resumes, "What the store has besides is there until all adapters have "
    "gone on; for one that takes long nothing waits")
{
	called_make();
	list_make();
	world.store = world.due = true;
	world.resuming = true;
	runs(false, "go a;go b;keep;serves;control;ready 2;wait 66;started;"
	    CHECKED_2 "wait 66;" CHECKED_2 "wait 66;" CHECKED_2 "wait 66;"
	    "notify STOPPING=1;ends;guard end;");
}

TEST_PROGRAM
