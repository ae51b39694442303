/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The start (valed.c, which is included), call by call: what is started, in
 * which order, and what happens when a step fails.  All that it calls of valed
 * is this file's.
 */

#define	main	valed_main
#include "valed.c"
#include "wrap.h"
#undef main

#include <sys/wait.h>

#include <atf-c.h>

#include "called.h"
#include "said.h"
#include "test.h"

/* What is started, and how. */
static struct world {
	unsigned int kept;
	char	fail[32];		/* the step that fails */
	bool	control, verbose, store, supervised;
	unsigned int adapters, hostifs, settings;
	uint32_t flags;			/* of interfaces */
} world;

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

/* A step, which fails with ENOBUFS. */
static bool
step(const char *name)
{
	called("%s", name);
	errno = ENOBUFS;
	return (strcmp(world.fail, name) != 0);
}

#define	ERROR(name)	(step(name) ? 0 : ENOBUFS)

/* A function that may fail. */
#define	FAILS(name, text)						\
	int name(void)							\
	{								\
		return (ERROR(text));					\
	}

CALLED(valed_activation_init, "activation")
CALLED(valed_notify_open, "notify open")
FAILS(peer_fault_init, "fault")
FAILS(peer_accept_start, "accept")
/* It may fail: this is for speed. */
FAILS(peer_signal_start, "signal")

void
peer_log_init(const char *name)
{
	ATF_CHECK_STREQ("valed", name);
	called("log");
}

void
valed_error_begin(int fd)
{
	called("error %d", fd);
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
ctl_changes_are(void (*changed)(bool admin))
{
	ATF_CHECK(changed == valed_serve_changed);
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
valed_counters_keep_start(const struct valed_options *options)
{
	ATF_CHECK(options == &opt);
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
	return (ERROR("close"));
}

OF_ADAPTER(valed_watch_add, "see")

void
adapter_keep_signals(void)
{
	called("blame");
}

WRAP(int, getrlimit, int resource, struct rlimit *rl)
{
	if (strcmp(world.fail, "limits") != 0)
		return (__real_getrlimit(resource, rl));
	rl->rlim_cur = rl->rlim_max = 50;
	return (-1);
}

void
valed_guard_end(bool keep)
{
	called("guard %s", keep ? "keep" : "end");
}

int
valed_serve_signals(void)
{
	return (step("signals") ? 33 : -1);
}

void
valed_serve_changed(bool admin __unused)
{
}

void
valed_serve(struct adapter_list *list, bool live, int signal_fd)
{
	struct adapter *ad;

	called("serve %d%s", signal_fd, live ? " live" : "");
	TAILQ_FOREACH(ad, list, link)
		called("of %s", ad->config.ac_name);
	_exit(EX_OK);
}

bool
valed_store_active(void)
{
	return (world.store);
}

int
valed_store_fd(void)
{
	return (world.store ? 44 : -1);
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
valed_supervisor_begin(char **argv)
{
	called("begin %s", argv[0]);
}

void
valed_supervisor_begun(void)
{
	called("begun");
}

bool
valed_notify_wanted(void)
{
	return (false);
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

void
valed_guard_absent(const struct adapter_config *ac)
{
	called("absent %s", ac->ac_name);
}

void
valed_options(int argc, char **argv, struct valed_options *o)
{
	struct valed_setting *st;

	ATF_CHECK(argc == 1 && strcmp(argv[0], "valed") == 0);
	called("options");
	memset(o, 0, sizeof(*o));
	o->vo_adapters = configs;
	o->vo_nadapters = world.adapters;
	o->vo_hostifs = hostifs;
	o->vo_nhostifs = world.hostifs;
	o->vo_control = world.control ? &co : NULL;
	o->vo_verbose = world.verbose;
	o->vo_supervised = world.supervised;
	if (world.settings == 0)
		return;
	o->vo_settings.vss_list = calloc(world.settings,
	    sizeof(*o->vo_settings.vss_list));
	ATF_REQUIRE(o->vo_settings.vss_list != NULL);
	for (; o->vo_settings.vss_n < world.settings; o->vo_settings.vss_n++) {
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
json_object_seed(size_t seed)
{
	called("seed %zu", seed);
}

void
valed_guard_start(int argc, char **argv, struct valed_options *o)
{
	called("guard %d %s%s", argc, argv[0], o == &opt ? "" : "?");
}

void
ctl_names_adapter(unsigned int place, const char *name)
{
	called("name %u %s", place, name);
}

bool
ctl_names_hostif(const char *name)
{
	called("name %s", name);
	return (true);
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
	fds->hf_flags = world.flags;
	fds->hf_nfds = 1;
	return (step(name) ? 0 : -1);
}

bool
hostif_warning(const struct hostif_fds *fds, char *line, size_t size)
{
	snprintf(line, size, "the host gets what %s receives, too",
	    fds->hf_name);
	return ((fds->hf_flags & HOSTIF_HOST_GETS) != 0);
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

unsigned int
valed_store_count(void)
{
	return (world.kept);
}

void
valed_guard_unattached(const char *port, const char *why)
{
	called("unattached %s %s", port, why);
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
	strlcpy(world.fail, "limits", sizeof(world.fail));
	limits_raise();
	ATF_REQUIRE_EQ(0, __real_getrlimit(RLIMIT_NOFILE, &rl));
	ATF_CHECK(rl.rlim_cur > 100);
}

/* Run main() in a child: how it ends, and what is said. */
static void
runs(int status, const char *line, const char *calls)
{
	char *argv[] = { (char []){ "valed" }, NULL };
	int got;

	said_start();
	if (fork() == 0)
		_exit(valed_main(1, argv) + 100);
	ATF_REQUIRE(wait(&got) != -1);
	ATF_CHECK_STREQ(line, said());
	ATF_CHECK_EQ_MSG(status, WEXITSTATUS(got), "%s: %#x", calls, got);
	check(calls);
}

#define	BEGIN_1	"log;error -1;activation;begin valed;options;begun;"	\
		"notify open;"
#define	BEGIN	BEGIN_1 "seed 0;signals;"
#define	BEGIN_R	BEGIN_1 "supervise valed;seed 0;signals;"
#define	NAME_A	"name 0 vale0:a;"
#define	NAMES_AB NAME_A "name 785 vale0:b;"
#define	NAMES_E	"name vale0:e0;name vale0:e1;"
#define	SERVES	"serve 33;"
#define	OF_AB	"of a;of b;"
#define	NONE	"valed_main_test: %s: No buffer space available\n"

TEST(starts, "Everything is started in order: the guard before any thread, the "
    "interfaces' sockets before the sandbox, and what uses them behind it")
{
	called_make();
	runs(EX_OK, "", BEGIN "fault;guard 1 valed;accept;close;signal;"
	    "sandbox 55;" SERVES);
	world.adapters = world.hostifs = 2;
	world.settings = 1;
	world.control = true;
	runs(EX_OK, "", BEGIN "fault;guard 1 valed;accept;pass;close;signal;"
	    NAMES_AB NAMES_E "keep vale0:a 3;setting;start a;see a;"
	    "start b;see b;open e0;open e1;ctl 77;sandbox 55;"
	    "attach vale0:e0 e0;attach vale0:e1 e1;" SERVES OF_AB);
	/* Without it, an adapter's thread sends all interrupts. */
	strlcpy(world.fail, "signal", sizeof(world.fail));
	runs(EX_OK, "", BEGIN "fault;guard 1 valed;accept;pass;close;signal;"
	    NAMES_AB NAMES_E "keep vale0:a 3;setting;start a;see a;"
	    "start b;see b;open e0;open e1;ctl 77;sandbox 55;"
	    "attach vale0:e0 e0;attach vale0:e1 e1;" SERVES OF_AB);
	world.fail[0] = '\0';
	world.flags = HOSTIF_HOST_GETS;
	world.verbose = true;
	runs(EX_OK, "valed_main_test: -a vale0:e0: the host gets what e0 "
	    "receives, too\n"
	    "valed_main_test: -a vale0:e1: the host gets what e1 receives, "
	    "too\n",
	    BEGIN "fault;guard 1 valed;accept;pass;close;signal;"
	    NAMES_AB NAMES_E "keep vale0:a 3;setting;start a;see a;"
	    "start b;see b;open e0;open e1;ctl 77;sandbox 55;"
	    "attach vale0:e0 e0;attach vale0:e1 e1;serve 33 live;"
	    OF_AB);
}

TEST(supervised, "With -R another process starts it, and the sandbox protects "
    "the connection with that")
{
	called_make();
	world.supervised = world.store = world.control = true;
	runs(EX_OK, "", BEGIN_R "fault;guard 1 valed;accept;pass;"
	    "pair;moved 45;close;signal;blame;ctl 77;sandbox 55 44;" SERVES);
	strlcpy(world.fail, "pair", sizeof(world.fail));
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
		    "fault;guard 1 valed;accept;pass;close;signal;"
		    NAME_A NAMES_E "keep vale0:a 3;setting;guard end;" },
		{ "ctl 77", "control socket", EX_OSERR,
		    "fault;guard 1 valed;accept;pass;close;signal;"
		    NAME_A NAMES_E "keep vale0:a 3;setting;start a;see a;"
		    "open e0;open e1;ctl 77;guard end;" },
		{ "sandbox 55", "sandbox", EX_OSERR,
		    "fault;guard 1 valed;accept;pass;close;signal;"
		    NAME_A NAMES_E "keep vale0:a 3;setting;start a;see a;"
		    "open e0;open e1;ctl 77;sandbox 55;guard end;" },
		{ "open e1", NULL, EX_UNAVAILABLE,
		    "fault;guard 1 valed;accept;pass;close;signal;"
		    NAME_A NAMES_E "keep vale0:a 3;setting;start a;see a;"
		    "open e0;open e1;guard end;" },
		{ "attach vale0:e1 e1", NULL, EX_UNAVAILABLE,
		    "fault;guard 1 valed;accept;pass;close;signal;"
		    NAME_A NAMES_E "keep vale0:a 3;setting;start a;see a;"
		    "open e0;open e1;ctl 77;sandbox 55;attach vale0:e0 e0;"
		    "attach vale0:e1 e1;close e1;guard end;" },
	};
	char calls[512], line[256];
	unsigned int i;

	called_make();
	world.adapters = 1;
	world.hostifs = 2;
	world.settings = 1;
	world.control = true;
	for (i = 0; i < nitems(rows); i++) {
		strlcpy(world.fail, rows[i].step, sizeof(world.fail));
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
	world.control = false;
	world.hostifs = world.settings = 0;
	strlcpy(world.fail, "start a", sizeof(world.fail));
	runs(EX_UNAVAILABLE, "", BEGIN
	    "fault;guard 1 valed;accept;close;signal;"
	    NAME_A "start a;absent a;guard end;");
	/* Another is served. */
	world.adapters = 2;
	runs(EX_OK, "", BEGIN "fault;guard 1 valed;accept;close;signal;"
	    NAMES_AB "start a;absent a;start b;see b;sandbox 55;"
	    SERVES "of b;");
}

TEST(lines, "An interface of a line that cannot be attached is told, and does "
    "not keep valed down")
{
	called_make();
	world.hostifs = 2;
	hostifs[0].hc_line = true;
	strlcpy(hostifs[0].hc_where, "f:1", sizeof(hostifs[0].hc_where));
	strlcpy(world.fail, "open e0", sizeof(world.fail));
	runs(EX_OK, "valed_main_test: f:1: why not\n", BEGIN
	    "fault;guard 1 valed;accept;close;signal;" NAMES_E "open e0;"
	    "no name vale0:e0;unattached vale0:e0 why not;open e1;sandbox 55;"
	    "attach vale0:e1 e1;" SERVES);
	strlcpy(world.fail, "attach vale0:e0 e0", sizeof(world.fail));
	runs(EX_OK, "valed_main_test: vale0:e0: why not\n", BEGIN
	    "fault;guard 1 valed;accept;close;signal;" NAMES_E
	    "open e0;open e1;"
	    "sandbox 55;attach vale0:e0 e0;close e0;no name vale0:e0;"
	    "unattached vale0:e0 ;attach vale0:e1 e1;" SERVES);
	/* One of -a does when valed is started again. */
	hostifs[0].hc_line = false;
	world.kept = 1;
	strlcpy(world.fail, "open e0", sizeof(world.fail));
	runs(EX_OK, "valed_main_test: f:1: why not\n", BEGIN
	    "fault;guard 1 valed;accept;close;signal;" NAMES_E "open e0;"
	    "no name vale0:e0;unattached vale0:e0 why not;open e1;sandbox 55;"
	    "attach vale0:e1 e1;" SERVES);
}

TEST_PROGRAM
