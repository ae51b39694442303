/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Changes of the adapters, one by one (valed_reload.c): what is called, in
 * which order, what is answered, and what is closed and freed when a step
 * fails.  The adapters, the names and the guard are this file's.
 */

#include <sys/param.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter.h"
#include "ctl_names.h"
#include "ctl_owner.h"
#include "libvale.h"
#include "said.h"
#include "test.h"
#include "valed_guard.h"
#include "valed_reload.h"
#include "valed_watch.h"

/* Of valed_place(). */
#define	SLOT(place)	((place) >> 3 & VALED_MAXSLOT)

static char	calls[512];		/* what was called */
static int	answer;			/* the last one to the guard */
static int	start_error, reserve_error;
static bool	port_open, port_captured;
static unsigned int ends_after;		/* calls of watch() */
static struct adapter_list adapters = TAILQ_HEAD_INITIALIZER(adapters);

static void __printflike(1, 2)
called(const char *fmt, ...)
{
	const size_t at = strlen(calls);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(calls + at, sizeof(calls) - at, fmt, ap);
	va_end(ap);
}

/* These were called, and this was answered, since the last check. */
static void
check(const char *expected, int error)
{
	ATF_CHECK_STREQ(expected, calls);
	ATF_CHECK_EQ_MSG(error, answer, "%s: %d", expected, answer);
	calls[0] = '\0';
	answer = -1;
}

static void
watch(struct adapter *ending)
{
	called("watch %s;", ending == NULL ? "none" : ending->config.ac_name);
}

struct adapter *
adapter_start(const struct adapter_config *config,
    void (*fn)(struct adapter *ending))
{
	struct adapter *ad;

	ATF_CHECK_EQ(watch, fn);
	called("start %s %s %d %d;", config->ac_name, config->ac_backend,
	    config->ac_listen, config->ac_mtu);
	if (start_error != 0) {
		errno = start_error;
		return (NULL);
	}
	ad = calloc(1, sizeof(*ad));
	ATF_REQUIRE(ad != NULL);
	ad->config = *config;
	return (ad);
}

void
valed_watch_add(struct adapter *ad)
{
	called("see %s;", ad->config.ac_name);
}

void
valed_watch_remove(struct adapter *ad)
{
	called("hide %s;", ad->config.ac_name);
}

void
adapter_go(struct adapter *ad)
{
	ATF_CHECK_EQ(ad, TAILQ_LAST(&adapters, adapter_list));
	called("go %s;", ad->config.ac_name);
}

void
adapter_stop(struct adapter *ad)
{
	struct adapter *other;

	TAILQ_FOREACH(other, &adapters, link)
		ATF_CHECK(other != ad);
	called("stop %s;", ad->config.ac_name);
}

bool
adapter_ended(struct adapter *ad)
{
	if (ends_after-- > 0)
		return (false);
	called("ended %s;", ad->config.ac_name);
	ends_after = 0;
	free(ad);
	return (true);
}

void
adapter_change(struct adapter *ad, const struct adapter_config *config)
{
	called("change %s %d;", ad->config.ac_name, config->ac_mtu);
}

int
adapter_move(struct adapter *ad, const struct adapter_config *config,
    void (*fn)(struct adapter *ending))
{
	ATF_CHECK_EQ(watch, fn);
	called("move %s %s;", ad->config.ac_name, config->ac_backend);
	return (start_error);
}

void
ctl_names_move(unsigned int place)
{
	called("names move %u;", SLOT(place));
}

bool
ctl_names_hostif(const char *name)
{
	called("names %s;", name);
	return (true);
}

void
ctl_names_hostif_remove(const char *name)
{
	called("no name %s;", name);
}

bool
hostif_attach(const char *port_name, const struct hostif_fds *fds, char *error,
    size_t size)
{
	called("attach %s %u;", port_name, fds->hf_nfds);
	if (start_error != 0)
		snprintf(error, size, "%s: why", port_name);
	errno = EIO;
	return (start_error == 0);
}

int
hostif_detach(const char *port_name)
{
	called("detach %s;", port_name);
	return (start_error == 0 ? 0 : ENXIO);
}

void
hostif_close(struct hostif_fds *fds)
{
	called("close %u;", fds->hf_nfds);
}

int
vale_setting_keep_all(const char *name, const struct vale_setting_change *sc,
    unsigned int n, unsigned int *failed)
{
	for (*failed = n - 1; n > 0; sc++, n--)
		called("keep %s %u %d;", name, sc->sc_setting, !sc->sc_keep ?
		    -1 : (int)sc->sc_value.sv_number);
	errno = ENOBUFS;
	return (start_error == 0 ? 0 : -1);
}

int
vale_port_counters(const char *name, uint64_t counters[VALE_NCOUNTERS] __unused)
{
	called("counters %s;", name);
	return (port_open ? 0 : ENXIO);
}

int
ctl_owner_claim(struct ctl_owner *ow __unused, const char *name,
    const struct ctl_who *who, bool create)
{
	ATF_CHECK(who->cw_admin);
	ATF_CHECK(!create);
	called("claim %s;", name);
	return (port_captured ? EPERM : 0);
}

void
ctl_owner_leave(struct ctl_owner *ow __unused)
{
	called("leave;");
}

int
ctl_names_reserve(unsigned int place, const char *name)
{
	called("reserve %u %s;", SLOT(place), name);
	return (reserve_error);
}

void
ctl_names_unreserve(unsigned int place)
{
	called("unreserve %u;", SLOT(place));
}

void
ctl_names_add(unsigned int place)
{
	called("names add %u;", SLOT(place));
}

void
ctl_names_remove(unsigned int place)
{
	called("names remove %u;", SLOT(place));
}

void
ctl_names_end(void)
{
	called("names end;");
}

void
valed_guard_answer(int error)
{
	ATF_CHECK_EQ(-1, answer);
	answer = error;
}

int
poll(struct pollfd *fds, nfds_t n, int timeout)
{
	/* It is not to use a processor while it waits. */
	ATF_CHECK(fds == NULL && n == 0 && timeout > 0 && timeout < 1000);
	return (0);
}

/* A change of the adapter in this slot. */
static void
change(int what, int slot, const char *name, int fd)
{
	static struct valed_change vc;

	memset(&vc, 0, sizeof(vc));
	vc.vc_what = what;
	vc.vc_config.ac_bus = 1;
	vc.vc_config.ac_slot = slot;
	vc.vc_config.ac_func = 3;
	vc.vc_config.ac_listen = fd;
	vc.vc_config.ac_mtu = 1500;
	snprintf(vc.vc_config.ac_path, sizeof(vc.vc_config.ac_path), "%s.sock",
	    name);
	strlcpy(vc.vc_config.ac_name, name, sizeof(vc.vc_config.ac_name));
	snprintf(vc.vc_config.ac_backend, sizeof(vc.vc_config.ac_backend),
	    "vale0:%s", name);
	vc.vc_lost = fd == -2;
	valed_reload(&vc, &adapters, watch);
}

/* A descriptor with a number. */
static int
open_at(int fd)
{
	ATF_REQUIRE_EQ(fd, fcntl(STDERR_FILENO, F_DUPFD, fd));
	return (fd);
}

static bool
is_open(int fd)
{
	return (fcntl(fd, F_GETFD) != -1);
}

static void
add(int slot, const char *name, int fd)
{
	char want[128];

	change(VALED_ADD, slot, name, fd);
	snprintf(want, sizeof(want), "names add %d;start %s vale0:%s %d 1500;"
	    "see %s;go %s;", slot, name, name, fd, name, name);
	check(want, 0);
}

TEST(removes, "A removed one is watched until it has ended; its socket is "
    "kept until the end, for one with its path")
{
	answer = -1;
	add(1, "a", open_at(101));
	add(2, "b", open_at(102));
	add(3, "c", open_at(103));
	change(VALED_REMOVE, 1, "a", -1);
	check("names remove 1;hide a;stop a;ended a;", 0);
	ends_after = 2;
	change(VALED_REMOVE, 2, "b", -1);
	check("names remove 2;hide b;stop b;watch b;watch b;ended b;", 0);
	ATF_CHECK(is_open(102));
	/* One that could not be added. */
	change(VALED_REMOVE, 9, "a", -1);
	check("names remove 9;", 0);
	/* Another place, the same path. */
	change(VALED_ADD, 7, "b", -1);
	check("names add 7;start b vale0:b 102 1500;see b;go b;", 0);
	/* Only one has it. */
	change(VALED_ADD, 8, "b", -1);
	check("names add 8;start b vale0:b -1 1500;see b;go b;", 0);
	change(VALED_REMOVE, 8, "b", -1);
	check("names remove 8;hide b;stop b;ended b;", 0);
	ATF_CHECK(is_open(101) && is_open(102) && is_open(103));
	change(VALED_END, 0, "x", -1);
	check("names end;", -1);
	ATF_CHECK(!is_open(101));
	ATF_CHECK(is_open(102) && is_open(103));
	/* It is not found any more. */
	change(VALED_ADD, 1, "a", -1);
	check("names add 1;start a vale0:a -1 1500;see a;go a;", 0);
	change(VALED_REMOVE, 1, "a", -1);
	check("names remove 1;hide a;stop a;ended a;", 0);
	change(VALED_REMOVE, 7, "b", -1);
	check("names remove 7;hide b;stop b;ended b;", 0);
	change(VALED_REMOVE, 3, "c", -1);
	check("names remove 3;hide c;stop c;ended c;", 0);
	ATF_CHECK(TAILQ_EMPTY(&adapters));
	change(VALED_END, 0, "x", -1);
	check("names end;", -1);
	ATF_CHECK(!is_open(102) && !is_open(103));
}

TEST(places, "An adapter is found by its bus, slot and function; one of the "
    "start is not freed")
{
	static const struct {
		int bus, slot, func;
	} rows[] = {
		{ 2, 2, 3 }, { 1, 3, 3 }, { 1, 2, 4 }, { 1, 2, 3 },
	};
	static struct adapter_config configs[nitems(rows)];
	struct adapter *ad[nitems(rows)];
	unsigned int i;

	answer = -1;
	for (i = 0; i < nitems(rows); i++) {
		configs[i] = (struct adapter_config){ .ac_bus = rows[i].bus,
		    .ac_slot = rows[i].slot, .ac_func = rows[i].func,
		    .ac_listen = open_at(100 + i), .ac_name = "s",
		    .ac_path = "s", .ac_backend = "vale0:s" };
		ad[i] = calloc(1, sizeof(*ad[i]));
		ATF_REQUIRE(ad[i] != NULL);
		ad[i]->config = configs[i];
		TAILQ_INSERT_TAIL(&adapters, ad[i], link);
	}
	change(VALED_REMOVE, 2, "x", -1);
	check("names remove 2;hide s;stop s;ended s;", 0);
	ATF_CHECK_EQ(ad[2], TAILQ_LAST(&adapters, adapter_list));
	change(VALED_END, 0, "x", -1);
	check("names end;", -1);
	ATF_CHECK(!is_open(103) && is_open(102));
	change(VALED_REMOVE, 3, "x", -1);
	check("names remove 3;hide s;stop s;ended s;", 0);
	ATF_CHECK_EQ(ad[0], TAILQ_FIRST(&adapters));
	ATF_CHECK_EQ(ad[2], TAILQ_NEXT(ad[0], link));
}

TEST(in_place, "An adapter is changed, if it is there, and a setting is kept, "
    "or no longer")
{
	static struct valed_change vc = { .vc_what = VALED_SET,
	    .vc_name = "vale0:x", .vc_change = { { .sc_setting = 7,
	    .sc_value = { .sv_number = 9 } }, { .sc_setting = 8 } },
	    .vc_nchanges = 1 };

	answer = -1;
	add(3, "c", open_at(103));
	change(VALED_CHANGE, 3, "c", -1);
	check("change c 1500;", 0);
	change(VALED_CHANGE, 4, "c", -1);
	check("", 0);
	valed_reload(&vc, &adapters, watch);
	check("keep vale0:x 7 -1;", 0);
	vc.vc_change[0].sc_keep = true;
	vc.vc_nchanges = 2;
	valed_reload(&vc, &adapters, watch);
	check("keep vale0:x 7 9;keep vale0:x 8 -1;", 0);
	start_error = 1;
	valed_reload(&vc, &adapters, watch);
	check("keep vale0:x 7 9;keep vale0:x 8 -1;", ENOBUFS + VALED_FAILED);
}

TEST(moves, "An adapter is moved, and so are the names; one that cannot be has "
    "only its own")
{
	static struct valed_change vc = { .vc_what = VALED_MOVE,
	    .vc_config = { .ac_bus = 1, .ac_slot = 3, .ac_func = 3,
	    .ac_backend = "vale1:c" } };

	answer = -1;
	add(3, "c", open_at(103));
	valed_reload(&vc, &adapters, watch);
	check("move c vale1:c;names move 3;", 0);
	strlcpy(vc.vc_config.ac_backend, "none",
	    sizeof(vc.vc_config.ac_backend));
	valed_reload(&vc, &adapters, watch);
	check("move c none;", 0);
	start_error = ENOMEM;
	valed_reload(&vc, &adapters, watch);
	check("move c none;unreserve 3;", ENOMEM);
	vc.vc_config.ac_slot = 4;
	valed_reload(&vc, &adapters, watch);
	check("unreserve 4;", ENOENT);
}

TEST(asks, "An adapter has a client, or none, or is not there")
{
	answer = -1;
	add(3, "c", open_at(103));
	change(VALED_ASK, 3, "c", -1);
	check("", 0);
	TAILQ_FIRST(&adapters)->since_s = 1;
	change(VALED_ASK, 3, "c", -1);
	check("", EISCONN);
	change(VALED_ASK, 4, "c", -1);
	check("", 0);
}

TEST(reserves, "The port of an adapter is reserved, unless it is open, "
    "captured or another's")
{
	answer = -1;
	change(VALED_RESERVE, 1, "a", -1);
	check("reserve 1 vale0:a;counters vale0:a;claim vale0:a;leave;", 0);
	port_captured = true;
	change(VALED_RESERVE, 1, "a", -1);
	check("reserve 1 vale0:a;counters vale0:a;claim vale0:a;unreserve 1;",
	    EBUSY);
	port_captured = false;
	port_open = true;
	change(VALED_RESERVE, 1, "a", -1);
	check("reserve 1 vale0:a;counters vale0:a;unreserve 1;", EBUSY);
	/* By an adapter, which goes. */
	add(3, "x", open_at(100));
	add(2, "a", open_at(101));
	change(VALED_RESERVE, 1, "a", -1);
	check("reserve 1 vale0:a;", 0);
	port_open = false;
	reserve_error = EBUSY;
	change(VALED_RESERVE, 1, "b", -1);
	check("reserve 1 vale0:b;", EBUSY);
	reserve_error = ENOMEM;
	change(VALED_RESERVE, 1, "b", -1);
	check("reserve 1 vale0:b;", ENOMEM);
}

/* This was said since said_start(). */
static void
check_said(const char *expected)
{
	char line[256];

	snprintf(line, sizeof(line), "%s%s", program_invocation_short_name,
	    expected);
	ATF_CHECK_STREQ(expected[0] == '\0' ? "" : line, said());
	said_start();
}

TEST(interfaces, "The name of an interface's port is reserved while it is "
    "attached; one that cannot be is closed, and reported")
{
	static struct valed_change vc = { .vc_what = VALED_ATTACH,
	    .vc_config = { .ac_backend = "vale0:e" },
	    .vc_hostif = { .hf_nfds = 2 } };

	said_start();
	answer = -1;
	valed_reload(&vc, &adapters, watch);
	check("names vale0:e;claim vale0:e;leave;attach vale0:e 2;", 0);
	check_said("");
	start_error = 1;
	valed_reload(&vc, &adapters, watch);
	check("names vale0:e;claim vale0:e;leave;attach vale0:e 2;close 2;"
	    "no name vale0:e;", EIO);
	check_said(": vale0:e: why\n");
	port_captured = true;
	valed_reload(&vc, &adapters, watch);
	check("names vale0:e;claim vale0:e;close 2;no name vale0:e;", EBUSY);
	check_said("");
	vc.vc_lost = true;
	valed_reload(&vc, &adapters, watch);
	check("names vale0:e;close 2;no name vale0:e;", EMFILE);
	vc.vc_what = VALED_DETACH;
	valed_reload(&vc, &adapters, watch);
	check("no name vale0:e;detach vale0:e;", ENXIO);
	start_error = 0;
	valed_reload(&vc, &adapters, watch);
	check("no name vale0:e;detach vale0:e;", 0);
}

TEST(fails, "One that cannot be added is reported, and its socket closed")
{
	said_start();
	answer = -1;
	change(VALED_ADD, 1, "a", -2);
	check("names add 1;", EMFILE);
	check_said(": a: Too many open files\n");
	start_error = ENOBUFS;
	change(VALED_ADD, 1, "a", open_at(100));
	check("names add 1;start a vale0:a 100 1500;", ENOBUFS);
	check_said("");			/* adapter_start() has */
	ATF_CHECK(!is_open(100));
	ATF_CHECK(TAILQ_EMPTY(&adapters));
	/* One that has no socket of its own closes none. */
	change(VALED_ADD, 1, "a", -1);
	check("names add 1;start a vale0:a -1 1500;", ENOBUFS);
	ATF_CHECK(is_open(STDIN_FILENO) && is_open(STDOUT_FILENO));
	start_error = 0;
	change(VALED_ADD, 1, "a", open_at(100));
	check("names add 1;start a vale0:a 100 1500;see a;go a;", 0);
}

TEST_PROGRAM
