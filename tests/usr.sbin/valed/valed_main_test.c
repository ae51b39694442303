/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The main thread (valed.c, which is included), call by call: what it starts,
 * in which order, what it does when a step fails, and how it serves.  All that
 * it calls of valed is this file's.
 */

#define	main	valed_main
#include "valed.c"
#include "wrap.h"
#undef main

#include <sys/mman.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <stdarg.h>

#include <atf-c.h>

#include "test.h"

/* The calls of this process and its children, and what they return. */
static struct world {
	char	calls[1024];
	char	fail[32];		/* the step that fails */
	char	why[32];		/* of changes */
	bool	due, is_change, reloads, change_is_end, control, verbose;
	bool	store, manager, supervised, restart;
	unsigned int adapters, hostifs, settings, waits;
	short	revents[4][3];		/* of each wait; then SIGTERM */
	uint32_t flags;			/* of interfaces */
} *world;

static struct adapter_config configs[2] = {
	{ .ac_name = "a", .ac_backend = "vale0:a", .ac_listen = -1 },
	{ .ac_name = "b", .ac_backend = "vale0:b", .ac_listen = -1,
	    .ac_bus = 3, .ac_slot = 2, .ac_func = 1 }
};
static struct adapter ads[2] = {
	{ .config = { .ac_name = "a" } }, { .config = { .ac_name = "b" } }
};
static struct hostif_config hostifs[2] = {
	{ .hc_port = "vale0:e0", .hc_where = "-a vale0:e0" },
	{ .hc_port = "vale0:e1", .hc_where = "-a vale0:e1" },
};
static struct control_config co = { .co_listen = 77 };

static void __printflike(1, 2)
called(const char *fmt, ...)
{
	const size_t at = strlen(world->calls);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(world->calls + at, sizeof(world->calls) - at, fmt, ap);
	va_end(ap);
	strlcat(world->calls, ";", sizeof(world->calls));
}

/* A step, which fails with ENOBUFS. */
static bool
step(const char *name)
{
	called("%s", name);
	errno = ENOBUFS;
	return (strcmp(world->fail, name) != 0);
}

static void
make(void)
{
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANON, -1, 0);
	ATF_REQUIRE(world != MAP_FAILED);
}

/* These were called since the last check. */
static void
check(const char *expected)
{
	ATF_CHECK_STREQ(expected, world->calls);
	world->calls[0] = '\0';
}

#define	ERROR(name)	(step(name) ? 0 : ENOBUFS)

/* Functions that only say that they were called, and those that may fail. */
#define	CALLED(name, text)						\
	void name(void)							\
	{								\
		called(text);						\
	}
#define	FAILS(name, text)						\
	int name(void)							\
	{								\
		return (ERROR(text));					\
	}
#define	OF_ADAPTER(name, text)						\
	void name(struct adapter *ad)					\
	{								\
		called(text " %s", ad->config.ac_name);		\
	}

CALLED(valed_activation_init, "activation")
CALLED(valed_notify_open, "notify open")
CALLED(valed_notify_reloading, "reloading")
CALLED(valed_notify_watch, "notify watch")
CALLED(peer_accept_watch, "accept watch")
CALLED(peer_close_watch, "close watch")
CALLED(valed_carrier_watch, "carrier")
CALLED(ctl_names_end, "names end")
FAILS(peer_fault_init, "fault")
FAILS(peer_accept_start, "accept")

void
peer_log_init(const char *name)
{
	ATF_CHECK_STREQ("valed", name);
	called("log");
}

void
valed_watch_list(ctl_device_show *show __unused, void *arg __unused)
{
}

void
ctl_devices_are(void (*list)(ctl_device_show *show, void *arg))
{
	ATF_CHECK(list == valed_watch_list);
}

void
ctl_changes_are(void (*changed)(void))
{
	ATF_CHECK(changed == keep);
}

void
valed_settings_keep_start(const struct valed_options *options)
{
	ATF_CHECK(options == &opt);
}

void
valed_hostif_keep_start(const struct valed_options *options)
{
	ATF_CHECK(options == &opt);
}

void
valed_hostif_keep_attach(void)
{
}

void
valed_hostif_keep(void)
{
}

void
valed_counters_keep_start(const struct valed_options *options)
{
	ATF_CHECK(options == &opt);
}

void
valed_counters_keep(void)
{
	called("counters");
}

void
valed_settings_keep(void)
{
	if (world->store)
		called("keep");
}

int
valed_sandbox_drop(void)
{
	return (0);
}

int
valed_sandbox_enter_passer(void)
{
	return (0);
}

int
ctl_pass_start(int (*enter)(void))
{
	ATF_CHECK(enter == valed_sandbox_enter_passer);
	return (ERROR("pass"));
}

int
peer_close_start(int (*drop)(void))
{
	ATF_CHECK(drop == valed_sandbox_drop);
	/* For who reads a file that standard output is. */
	printf("counters");
	return (ERROR("close"));
}

OF_ADAPTER(valed_watch_add, "see")
OF_ADAPTER(adapter_go, "go")
OF_ADAPTER(adapter_watch, "watch")
OF_ADAPTER(adapter_listen, "listen")
OF_ADAPTER(adapter_save, "save")

bool
adapter_saved(struct adapter *ad __unused)
{
	return (true);
}

void
adapter_keep_signals(void)
{
	called("blame");
}

WRAP(int, signalfd, int fd, const sigset_t *set, int flags)
{
	ATF_CHECK_EQ(-1, fd);
	if (world == NULL || strcmp(world->fail, "signals") != 0)
		return (__real_signalfd(fd, set, flags));
	errno = ENOBUFS;
	return (-1);
}

WRAP(int, getrlimit, int resource, struct rlimit *rl)
{
	if (world == NULL || strcmp(world->fail, "limits") != 0)
		return (__real_getrlimit(resource, rl));
	rl->rlim_cur = rl->rlim_max = 50;
	return (-1);
}

void
valed_notify_ready(unsigned int n, const char *why)
{
	called("ready %u%s%s", n, why[0] == '\0' ? "" : " ", why);
}

void
ctl_reload_begin(enum ctl_wish wish)
{
	called("%sbegin", wish == CTL_RESTART ? "restart " : "");
}

void
ctl_reload_end(enum ctl_wish wish, const char *why)
{
	called("%send%s%s", wish == CTL_RESTART ? "restart " : "",
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
	return (world->restart ? CTL_RESTART : CTL_RELOAD);
}

void
valed_guard_end(bool keep)
{
	called("guard %s", keep ? "keep" : "end");
}

bool
valed_notify_wanted(void)
{
	return (world->manager);
}

bool
valed_store_active(void)
{
	return (world->store);
}

int
valed_store_fd(void)
{
	return (world->store ? 44 : -1);
}

void
valed_store_started(void)
{
	if (world->store)
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
	if (world->store)
		called("%s", names[what]);
}

bool
valed_store_reply(char *why, size_t size)
{
	strlcpy(why, world->why, size);
	return (world->reloads);
}

int
valed_store_pair(int other)
{
	ATF_CHECK_EQ(55, other);
	return (step("pair") ? 45 : -1);
}

void
ctl_pass_moved(int fd)
{
	called("moved %d", fd);
}

void
valed_supervise(char **argv)
{
	called("supervise %s", argv[0]);
}

void
valed_unsupervised(void)
{
}

int
ctl_pass_fd(void)
{
	return (55);
}

int
valed_guard_fd(void)
{
	return (66);
}

void
valed_guard_absent(const struct adapter_config *ac)
{
	called("absent %s", ac->ac_name);
}

bool
valed_guard_reload(void)
{
	called("guard reload");
	errno = EPIPE;
	return (world->reloads);
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
valed_options(int argc, char **argv, struct valed_options *o)
{
	struct valed_setting *st;

	ATF_CHECK(argc == 1 && strcmp(argv[0], "valed") == 0);
	called("options");
	memset(o, 0, sizeof(*o));
	o->vo_adapters = configs;
	o->vo_nadapters = world->adapters;
	o->vo_hostifs = hostifs;
	o->vo_nhostifs = world->hostifs;
	o->vo_control = world->control ? &co : NULL;
	o->vo_verbose = world->verbose;
	o->vo_supervised = world->supervised;
	if (world->settings == 0)
		return;
	o->vo_settings.vss_list = calloc(world->settings,
	    sizeof(*o->vo_settings.vss_list));
	ATF_REQUIRE(o->vo_settings.vss_list != NULL);
	for (; o->vo_settings.vss_n < world->settings; o->vo_settings.vss_n++) {
		st = &o->vo_settings.vss_list[o->vo_settings.vss_n];
		strlcpy(st->vst_name, "vale0:a", sizeof(st->vst_name));
		st->vst_setting = VALE_SETTING_LIMIT;
		st->vst_value.sv_number = 3 + o->vo_settings.vss_n;
	}
}

const struct vale_setting vale_setting_table[VALE_NSETTINGS] = {
	[VALE_SETTING_LIMIT] = { .se_name = "limit" },
};

int
vale_setting_keep(const char *name, unsigned int setting,
    const struct vale_setting_value *value)
{
	ATF_CHECK_EQ(VALE_SETTING_LIMIT, setting);
	called("keep %s %ju", name, (uintmax_t)value->sv_number);
	return (step("setting") ? 0 : -1);
}

const char *
vale_error(void)
{
	return ("no");
}

void
valed_print(const struct valed_options *o __unused)
{
	called("print");
}

void
valed_notify(const char *fmt, ...)
{
	called("notify %s", fmt);
}

void
json_object_seed(size_t seed)
{
	called("seed %zu", seed);
}

void
valed_guard_start(int argc, char **argv, struct valed_options *o)
{
	called("guard %d %s%s", argc, argv[0], o == &opt ? "" : "?");
}

bool
valed_guard_change(struct valed_change *vc)
{
	errno = 0;
	vc->vc_what = world->change_is_end ? VALED_END : VALED_ADD;
	strlcpy(vc->vc_why, world->why, sizeof(vc->vc_why));
	return (world->is_change);
}

void
ctl_names_adapter(unsigned int place, const char *name)
{
	called("name %u %s", place, name);
}

void
ctl_names_hostif(const char *name)
{
	called("name %s", name);
}

void
valed_reload(struct valed_change *vc, struct adapter_list *list,
    void (*fn)(struct adapter *ending))
{
	called("change %d%s", (int)vc->vc_what, list == &adapters &&
	    fn == watch_due ? "" : "?");
}

struct adapter *
adapter_start(const struct adapter_config *config,
    void (*fn)(struct adapter *ending))
{
	char name[32];

	snprintf(name, sizeof(name), "start %s%s", config->ac_name,
	    fn == NULL ? "" : "?");
	return (step(name) ? &ads[config - configs] : NULL);
}

int
ctl_start(int fd, const struct ctl_options *options, int (*drop)(void))
{
	char name[32];

	ATF_CHECK(drop == valed_sandbox_drop);
	snprintf(name, sizeof(name), "ctl %d%s", fd,
	    options == &co.co_options ? "" : "?");
	return (ERROR(name));
}

int
valed_sandbox_enter(int pass, int store)
{
	char name[32];

	snprintf(name, sizeof(name), store == -1 ? "sandbox %d" :
	    "sandbox %d %d", pass, store);
	return (step(name) ? 0 : -1);
}

int
hostif_open(const char *ifname, const struct hostif_options *options,
    struct hostif_fds *fds, char *error, size_t size)
{
	char name[32];

	ATF_CHECK(options == &hostifs[ifname[1] - '0'].hc_options);
	snprintf(name, sizeof(name), "open %s", ifname);
	snprintf(error, size, "why not");
	strlcpy(fds->hf_name, ifname, sizeof(fds->hf_name));
	fds->hf_flags = world->flags;
	fds->hf_nfds = 1;
	return (step(name) ? 0 : -1);
}

void
hostif_close(struct hostif_fds *fds)
{
	called("close %s", fds->hf_name);
}

void
ctl_names_hostif_remove(const char *name)
{
	called("no name %s", name);
}

void
valed_guard_unattached(unsigned int i)
{
	called("unattached %u", i);
}

bool
hostif_attach(const char *port_name, const struct hostif_fds *fds, char *error,
    size_t size)
{
	char name[32];

	snprintf(name, sizeof(name), "attach %s %s", port_name, fds->hf_name);
	snprintf(error, size, "%s: why not", port_name);
	return (step(name));
}

void
hostif_each(void (*fn)(struct hostif *hi, void *arg), void *arg)
{
	called("each %s%s", fn == valed_stats_hostif ? "print" :
	    fn == valed_stats_hostif_live ? "live" : "?", arg == NULL ? "" :
	    "?");
}

void
valed_stats_print(const struct adapter_list *list)
{
	called("print%s", list == &adapters ? "" : "?");
}

void
valed_stats_live(const struct adapter_list *list)
{
	called("live%s", list == &adapters ? "" : "?");
}

bool
peer_watch_due(uint64_t *next)
{
	return (next == &next_ns && world->due);
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
		fds[i].revents = world->revents[world->waits][i];
	}
	if (++world->waits == nitems(world->revents)) {
		fds[0].revents = POLLIN;
		raise(SIGTERM);
	}
	return (world->due);
}

static void
list_make(void)
{
	TAILQ_INSERT_TAIL(&adapters, &ads[0], link);
	TAILQ_INSERT_TAIL(&adapters, &ads[1], link);
}

TEST(signals, "Four signals are read, one interrupts calls, and one is ignored")
{
	static const int taken[] = { SIGHUP, SIGINT, SIGUSR1, SIGTERM };
	struct signalfd_siginfo si;
	struct sigaction sa;
	sigset_t set;
	unsigned int i;
	int fd, sig;

	fd = signals_open();
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
}

TEST(limits, "Descriptors are limited by the hard limit only")
{
	struct rlimit core, rl;

	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_CORE, &core));
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &rl));
	rl.rlim_max = rl.rlim_max < 300 ? rl.rlim_max : 300;
	rl.rlim_cur = 100;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &rl));
	limits_raise();
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &rl));
	ATF_CHECK_EQ(rl.rlim_max, rl.rlim_cur);
	ATF_CHECK(rl.rlim_max > 100);
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_CORE, &rl));
	ATF_CHECK_EQ(core.rlim_cur, rl.rlim_cur);
	/* One that is not known is not changed. */
	make();
	strlcpy(world->fail, "limits", sizeof(world->fail));
	limits_raise();
	ATF_REQUIRE_EQ(0, __real_getrlimit(RLIMIT_NOFILE, &rl));
	ATF_CHECK(rl.rlim_cur > 100);
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
	opt.vo_verbose = true;
	watch(&ending);
	check(CHECKED "watch x;close watch;carrier;notify watch;live;each live;");
	watch_due(&ending);
	check("");
	world->due = true;
	opt.vo_verbose = false;
	watch_due(&ending);
	check(CHECKED "watch x;close watch;carrier;notify watch;");
}

/* Standard error is in a file. */
static int
said_start(void)
{
	int fd = open("err", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);

	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE(dup2(fd, STDERR_FILENO) != -1);
	return (fd);
}

static void
said(int fd, const char *expected)
{
	char text[1024];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	ATF_REQUIRE(n >= 0);
	text[n] = '\0';
	ATF_CHECK_STREQ(expected, text);
	ATF_REQUIRE_EQ(0, ftruncate(fd, 0));
}

#define	PIPE	"cannot reload: Broken pipe"

TEST(reloads, "A reload that is asked for during another follows it; what the "
    "guard takes with it is told")
{
	const char *const line = "valed_main_test: " PIPE "\n";
	int err;

	make();
	list_make();
	err = said_start();
	reload_begin();
	check("begin;guard reload;end " PIPE ";");
	said(err, line);
	world->reloads = true;
	reload_begin();
	check("begin;guard reload;reloading;");
	world->is_change = true;
	ATF_CHECK(reload_change());
	check("change 2;");
	/* Twice: one more. */
	reload_begin();
	reload_begin();
	check("");
	world->change_is_end = true;
	ATF_CHECK(reload_change());
	strlcpy(world->why, "x", sizeof(world->why));
	check("change 3;ready 2;end;begin;guard reload;reloading;");
	ATF_CHECK(reload_change());
	check("change 3;ready 2 x;end x;");
	said(err, "");
	/* Without one there is nothing to tell. */
	world->is_change = false;
	ATF_CHECK(!reload_change());
	check("");
	said(err, "");
	reload_begin();
	reload_begin();
	check("begin;guard reload;reloading;");
	ATF_CHECK(!reload_change());
	check("names end;ready 2 " PIPE ";end " PIPE ";");
	said(err, line);
	/* Neither goes on. */
	ATF_CHECK(!reload_change());
	check("");
	world->is_change = true;
	world->why[0] = '\0';
	ATF_CHECK(reload_change());
	check("change 3;ready 2;end;");
}

TEST(serves, "It serves until a signal ends it")
{
	int fd;

	make();
	list_make();
	fd = signals_open();
	world->reloads = true;
	world->revents[0][0] = POLLIN;
	raise(SIGUSR1);
	raise(SIGHUP);
	run(fd);
	check("wait 66;begin;guard reload;reloading;print;each print;"
	    "wait 66 only;wait 66 only;wait 66 only;");
	/* The guard has gone. */
	memset(world->revents, 0, sizeof(world->revents));
	world->waits = 0;
	world->revents[1][1] = POLLHUP;
	world->due = true;
	run(fd);
#define	CHECKED_2	"accept watch;watch a;listen a;watch b;listen b;"	\
		"close watch;carrier;notify watch;"
	check("wait 66 only;" CHECKED_2 "wait 66 only;names end;ready 2 " PIPE ";"
	    "end " PIPE ";" CHECKED_2 "wait -1;" CHECKED_2 "wait -1;");
	world->waits = 0;
	world->revents[1][1] = 0;
	world->revents[2][1] = POLLIN;
	world->is_change = true;
	world->due = false;
	run(fd);
	check("wait 66;wait 66;wait 66;change 2;wait 66;");
	/* A client asks for a reload, also while the signal does. */
	memset(world->revents, 0, sizeof(world->revents));
	world->waits = 0;
	world->revents[1][2] = POLLIN;
	run(fd);
	check("wait 66;wait 66;begin;guard reload;reloading;wait 66 only;"
	    "wait 66 only;");
	world->waits = 0;
	world->change_is_end = true;
	world->revents[0][1] = POLLIN;
	world->revents[1][0] = POLLIN;
	raise(SIGHUP);
	run(fd);
	check("wait 66 only;change 3;ready 2;end;wait 66;begin;guard reload;"
	    "reloading;wait 66 only;wait 66 only;");
}

TEST(restarts, "A client asks for a restart: it ends if the program can be "
    "started again")
{
	int fd;

	make();
	fd = signals_open();
	world->reloads = world->restart = true;
	world->revents[0][2] = POLLIN;
	ATF_CHECK(!run(fd));
	check("wait 66;restart begin;restart end valed has no option -R: "
	    "restart it as it was started;wait 66;wait 66;wait 66;");
	/* The supervisor says why not. */
	world->store = true;
	world->waits = 0;
	world->revents[1][2] = POLLIN;
	strlcpy(world->why, "no", sizeof(world->why));
	ATF_CHECK(!run(fd));
	check("wait 66;restart begin;check;wait 66 check;restart end no;"
	    "wait 66;wait 66;");
	world->waits = 0;
	world->why[0] = '\0';
	ATF_CHECK(run(fd));
	check("wait 66;restart begin;check;wait 66 check;restart end;");
	/* It has gone. */
	world->waits = 0;
	world->reloads = false;
	ATF_CHECK(!run(fd));
	check("wait 66;restart begin;check;wait 66 check;"
	    "restart end the supervisor has ended;wait 66;wait 66;");
}

/* Run main() in a child: how it ends, and what is said. */
static void
runs(int status, const char *line, const char *calls)
{
	int err = open("err", O_RDWR | O_CREAT | O_TRUNC, 0600), got;
	int out = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *argv[] = { (char []){ "valed" }, NULL };

	ATF_REQUIRE(err != -1 && out != -1);
	fflush(stdout);
	world->waits = 0;
	if (fork() == 0) {
		dup2(err, STDERR_FILENO);
		dup2(out, STDOUT_FILENO);
		_exit(valed_main(1, argv) + 100);
	}
	ATF_REQUIRE(wait(&got) != -1);
	ATF_CHECK_EQ_MSG(status, WEXITSTATUS(got), "%s: %#x", calls, got);
	said(err, line);
	close(err);
	if (status == EX_OK)
		said(out, "counters");
	close(out);
	check(calls);
}

#define	BEGIN_1	"log;activation;options;notify open;"
#define	BEGIN	BEGIN_1 "seed 0;"
#define	BEGIN_R	BEGIN_1 "supervise valed;seed 0;"
#define	NAME_A	"name 0 vale0:a;"
#define	NAMES_AB NAME_A "name 785 vale0:b;"
#define	NAMES_E	"name vale0:e0;name vale0:e1;"
#define	SERVES	"wait 66;wait 66;wait 66;wait 66;notify STOPPING=1;guard end;"
#define	NONE	"valed_main_test: %s: No buffer space available\n"

TEST(starts, "Everything is started in order: the guard before any thread, the "
    "interfaces' sockets before the sandbox, and what uses them behind it")
{
	make();
	runs(EX_OK, "", BEGIN "fault;guard 1 valed;accept;close;"
	    "sandbox 55;ready 0;" SERVES);
	world->adapters = world->hostifs = 2;
	world->settings = 1;
	world->control = true;
	runs(EX_OK, "", BEGIN "fault;guard 1 valed;accept;pass;close;"
	    NAMES_AB NAMES_E "keep vale0:a 3;setting;start a;see a;"
	    "start b;see b;ctl 77;open e0;open e1;sandbox 55;"
	    "attach vale0:e0 e0;attach vale0:e1 e1;go a;go b;ready 2;" SERVES);
	world->flags = HOSTIF_HOST_GETS;
	runs(EX_OK, "valed_main_test: -a vale0:e0: the host gets what e0 "
	    "receives, too: remove its addresses there\n"
	    "valed_main_test: -a vale0:e1: the host gets what e1 receives, "
	    "too: remove its addresses there\n",
	    BEGIN "fault;guard 1 valed;accept;pass;close;"
	    NAMES_AB NAMES_E "keep vale0:a 3;setting;start a;see a;"
	    "start b;see b;ctl 77;open e0;open e1;sandbox 55;"
	    "attach vale0:e0 e0;attach vale0:e1 e1;go a;go b;ready 2;" SERVES);
}

TEST(supervised, "With -R another process starts it, and the next one finds "
    "the sockets if there is a service manager")
{
	make();
	world->supervised = world->store = world->control = true;
	runs(EX_OK, "", BEGIN_R "fault;guard 1 valed;accept;pass;"
	    "pair;moved 45;close;blame;ctl 77;sandbox 55 44;started;keep;serves;ready 0;"
	    SERVES "ends;");
	world->manager = true;
	runs(EX_OK, "", BEGIN_R "fault;guard 1 valed;accept;pass;"
	    "pair;moved 45;close;blame;ctl 77;sandbox 55 44;started;keep;serves;ready 0;"
	    "wait 66;wait 66;wait 66;wait 66;notify STOPPING=1;keep;counters;guard keep;"
	    "ends;");
	world->manager = false;
	world->reloads = true;
	world->restart = true;
	world->revents[0][2] = world->revents[1][2] = POLLIN;
	runs(EX_OK, "", BEGIN_R "fault;guard 1 valed;accept;pass;"
	    "pair;moved 45;close;blame;ctl 77;sandbox 55 44;started;keep;serves;ready 0;"
	    "wait 66;restart begin;check;wait 66 check;restart end;"
	    "keep;counters;guard keep;restarts;");
	strlcpy(world->fail, "pair", sizeof(world->fail));
	runs(EX_OSERR, "valed_main_test: supervisor: No buffer space "
	    "available\n", BEGIN_R "fault;guard 1 valed;accept;"
	    "pass;pair;guard end;");
}

TEST(fails, "A step that fails is told, ends the guard if there is one, and "
    "the program")
{
	static const struct {
		const char *step, *what;
		int status;
		const char *calls;
	} rows[] = {
		{ "signals", "signals", EX_OSERR, "" },
		{ "fault", "SIGBUS", EX_OSERR, "fault;" },
		{ "accept", "descriptors", EX_OSERR,
		    "fault;guard 1 valed;accept;guard end;" },
		{ "pass", "process that passes descriptors", EX_OSERR,
		    "fault;guard 1 valed;accept;pass;guard end;" },
		{ "close", "thread", EX_OSERR,
		    "fault;guard 1 valed;accept;pass;close;guard end;" },
		{ "setting", NULL, EX_OSERR,
		    "fault;guard 1 valed;accept;pass;close;"
		    NAME_A NAMES_E "keep vale0:a 3;setting;guard end;" },
		{ "ctl 77", "control socket", EX_OSERR,
		    "fault;guard 1 valed;accept;pass;close;"
		    NAME_A NAMES_E "keep vale0:a 3;setting;start a;see a;ctl 77;"
		    "guard end;" },
		{ "sandbox 55", "sandbox", EX_OSERR,
		    "fault;guard 1 valed;accept;pass;close;"
		    NAME_A NAMES_E "keep vale0:a 3;setting;start a;see a;ctl 77;"
		    "open e0;open e1;sandbox 55;guard end;" },
		{ "open e1", NULL, EX_UNAVAILABLE,
		    "fault;guard 1 valed;accept;pass;close;"
		    NAME_A NAMES_E "keep vale0:a 3;setting;start a;see a;ctl 77;"
		    "open e0;open e1;guard end;" },
		{ "attach vale0:e1 e1", NULL, EX_UNAVAILABLE,
		    "fault;guard 1 valed;accept;pass;close;"
		    NAME_A NAMES_E "keep vale0:a 3;setting;start a;see a;ctl 77;"
		    "open e0;open e1;sandbox 55;attach vale0:e0 e0;"
		    "attach vale0:e1 e1;close e1;guard end;" },
	};
	char calls[512], line[256];
	unsigned int i;

	make();
	world->adapters = 1;
	world->hostifs = 2;
	world->settings = 1;
	world->control = true;
	for (i = 0; i < nitems(rows); i++) {
		strlcpy(world->fail, rows[i].step, sizeof(world->fail));
		snprintf(calls, sizeof(calls), BEGIN "%s", rows[i].calls);
		if (rows[i].what != NULL)
			snprintf(line, sizeof(line), NONE, rows[i].what);
		else
			snprintf(line, sizeof(line), "valed_main_test: %s\n",
			    strcmp(rows[i].step, "setting") == 0 ?
			    "vale0:a: limit=: no" : "-a vale0:e1: why not");
		runs(rows[i].status, line, calls);
	}
	/* An adapter has said it itself. */
	world->control = false;
	world->hostifs = world->settings = 0;
	strlcpy(world->fail, "start a", sizeof(world->fail));
	runs(EX_UNAVAILABLE, "", BEGIN "fault;guard 1 valed;accept;close;"
	    NAME_A "start a;absent a;guard end;");
	/* Another is served. */
	world->adapters = 2;
	runs(EX_OK, "", BEGIN "fault;guard 1 valed;accept;close;"
	    NAMES_AB "start a;absent a;start b;see b;sandbox 55;go b;ready 1;" SERVES);
}

TEST(lines, "An interface of a line that cannot be attached is told, and does "
    "not keep valed down")
{
	make();
	world->hostifs = 2;
	hostifs[0].hc_line = true;
	strlcpy(hostifs[0].hc_where, "f:1", sizeof(hostifs[0].hc_where));
	strlcpy(world->fail, "open e0", sizeof(world->fail));
	runs(EX_OK, "valed_main_test: f:1: why not\n", BEGIN
	    "fault;guard 1 valed;accept;close;" NAMES_E "open e0;"
	    "no name vale0:e0;unattached 0;open e1;sandbox 55;"
	    "attach vale0:e1 e1;ready 0;" SERVES);
	strlcpy(world->fail, "attach vale0:e0 e0", sizeof(world->fail));
	runs(EX_OK, "valed_main_test: vale0:e0: why not\n", BEGIN
	    "fault;guard 1 valed;accept;close;" NAMES_E "open e0;open e1;"
	    "sandbox 55;attach vale0:e0 e0;close e0;no name vale0:e0;"
	    "unattached 0;attach vale0:e1 e1;ready 0;" SERVES);
}

TEST_PROGRAM
