/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a reload does, as a table (valed_plan.c): the adapters that there are,
 * those that are wanted, the actions, and what there is then.
 *
 * An adapter is written as its slot, its backend, its path or fd=, and its
 * memory and its MTU, if it has them: "1 a p 5 1500".  "1 -" is one that is not
 * there.
 */

#include <sys/param.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "adapter_config.h"
#include "test.h"
#include "valed_guard.h"
#include "valed_plan.h"
#include "valed_settings.h"
#include "valed_values.h"

#define	ADAPTERS	5

static const struct row {
	const char	*name;
	const char	*old;
	const char	*new;
	const char	*refused;	/* indexes of new ones */
	const char	*actions;
	const char	*result;
} rows[] = {
	{ "nothing", "", "", "", "", "" },
	{ "the same, in another order", "1 a p,2 b q", "2 b q,1 a p", "", "",
	    "2 b q,1 a p" },
	{ "one more", "1 a p", "1 a p,2 b q", "", "open1 add1", "1 a p,2 b q" },
	{ "one less", "1 a p,2 b q", "2 b q", "", "remove0 unlink0", "2 b q" },
	{ "all go", "1 a p,2 b fd=3", "", "", "remove0 remove1 unlink0", "" },
	{ "another value, the same socket", "1 a p", "1 a p 15", "",
	    "remove0 add0", "1 a p 15" },
	{ "in place", "1 vale0:a p 5 1500,2 b q", "2 b q,1 vale0:a p 5 1400",
	    "", "change1", "2 b q,1 vale0:a p 5 1400" },
	{ "in place, and not", "1 vale0:a p 5 1500", "1 vale0:a p 6 1400", "",
	    "remove0 add0", "1 vale0:a p 6 1400" },
	{ "in place beside others", "1 vale0:a p 5,2 b q,3 c r",
	    "1 vale0:a p 5 68,3 c r 7,4 d s", "",
	    "open2 remove1 remove2 change0 add1 add2 unlink1",
	    "1 vale0:a p 5 68,3 c r 7,4 d s" },
	{ "the MTU of a TAP interface", "1 tap0 p 5 1500", "1 tap0 p 5 1400",
	    "", "tap0", "1 tap0 p 5 1500" },
	{ "another path", "1 a p", "1 a q", "",
	    "open0 remove0 add0 unlink0", "1 a q" },
	{ "another place, the same path", "1 a p", "2 a p", "",
	    "remove0 add0", "2 a p" },
	{ "paths change places", "1 a p,2 b q", "1 a q,2 b p", "",
	    "remove0 remove1 add0 add1", "1 a q,2 b p" },
	{ "an inherited socket", "", "1 a fd=3", "", "open0 add0",
	    "1 a fd=3" },
	{ "a path becomes inherited", "1 a p", "1 a fd=3", "",
	    "open0 remove0 add0 unlink0", "1 a fd=3" },
	{ "an inherited one gets a path", "1 a fd=3", "1 a p", "",
	    "open0 remove0 add0", "1 a p" },
	{ "one that was not added is tried again", "1 -", "1 a p", "",
	    "open0 remove0 add0", "1 a p" },
	{ "one that was not added is not wanted any more", "1 -", "", "",
	    "remove0", "" },
	{ "a port that is open: not added", "", "1 a p", "0", "busy0", "1 -" },
	{ "a port that is open: as it was", "1 a p", "1 b p", "0", "busy0",
	    "1 a p" },
	{ "a port that is open, of one that was not added", "1 -", "1 a p",
	    "0", "busy0", "1 -" },
	{ "a TAP interface: not added", "1 a p", "1 a p,2 tap0 q", "",
	    "tap1", "1 a p,2 -" },
	{ "a TAP interface: as it was", "1 tap0 p", "1 tap0 p 1500", "",
	    "tap0", "1 tap0 p" },
	{ "a TAP interface stays", "1 tap0 p", "1 tap0 p", "", "",
	    "1 tap0 p" },
	{ "a TAP interface goes", "1 tap0 p", "1 a p", "", "remove0 add0",
	    "1 a p" },
	{ "one that stays keeps its port", "1 a p", "1 x p,2 a q", "0",
	    "busy0 clash1", "1 a p,2 -" },
	{ "one that stays keeps its path", "1 a p", "1 x q,2 b p", "0",
	    "busy0 clash1", "1 a p,2 -" },
	{ "one that stays keeps its descriptor", "1 a fd=3",
	    "1 x fd=4,2 b fd=3", "0", "busy0 clash1", "1 a fd=3,2 -" },
	{ "one that stays does not keep another's descriptor", "1 a fd=3",
	    "1 x fd=5,2 b fd=4", "0", "busy0 open1 add1",
	    "1 a fd=3,2 b fd=4" },
	{ "a path and a descriptor do not clash", "1 a p",
	    "1 x q,2 b fd=3", "0", "busy0 open1 add1", "1 a p,2 b fd=3" },
	{ "one keeps the next from its place, and that the one after it",
	    "1 a p,2 b q,3 c r", "1 x p,2 a q,3 b r,4 c s", "0",
	    "busy0 clash1 clash2 clash3", "1 a p,2 b q,3 c r,4 -" },
	{ "the same from the end", "3 c r,2 b q,1 a p",
	    "4 c s,3 b r,2 a q,1 x p", "3",
	    "busy3 clash2 clash1 clash0", "4 -,3 c r,2 b q,1 a p" },
	{ "the others are changed all the same", "1 a p,2 b q,3 c r",
	    "1 x p,3 d r,4 e q", "0",
	    "busy0 remove1 remove2 add1 add2", "1 a p,3 d r,4 e q" },
	{ "another port", "1 vale0:a p", "1 vale0:b p", "", "move0",
	    "1 vale0:b p" },
	{ "another switch, and in place", "1 vale0:a p 5 1500",
	    "1 vale1:a p 5 1400", "", "move0", "1 vale1:a p 5 1400" },
	{ "another port, and not in place", "1 vale0:a p 5", "1 vale0:b p 6",
	    "", "remove0 add0", "1 vale0:b p 6" },
	{ "ports change places", "1 vale0:a p,2 vale0:b q",
	    "1 vale0:b p,2 vale0:a q", "", "unplug0 move1 move0",
	    "1 vale0:b p,2 vale0:a q" },
	{ "one after the other", "1 vale0:a p,2 vale0:b q,3 vale0:c r",
	    "1 vale0:b p,2 vale0:c q,3 vale0:d r", "", "move2 move1 move0",
	    "1 vale0:b p,2 vale0:c q,3 vale0:d r" },
	{ "the same from the end", "1 vale0:b p,2 vale0:c q,3 vale0:d r",
	    "1 vale0:a p,2 vale0:b q,3 vale0:c r", "", "move0 move1 move2",
	    "1 vale0:a p,2 vale0:b q,3 vale0:c r" },
	{ "two circles",
	    "1 vale0:a p,2 vale0:b q,3 vale0:c r,4 vale0:d s,5 vale0:e t",
	    "1 vale0:b p,2 vale0:c q,3 vale0:a r,4 vale0:e s,5 vale0:d t", "",
	    "unplug0 move2 move1 move0 unplug3 move4 move3",
	    "1 vale0:b p,2 vale0:c q,3 vale0:a r,4 vale0:e s,5 vale0:d t" },
	{ "to the port of one that goes", "1 vale0:a p,2 vale0:b q",
	    "1 vale0:b p", "", "remove1 move0 unlink1", "1 vale0:b p" },
	{ "to the port of one that is replaced", "1 vale0:a p,2 vale0:b q",
	    "1 vale0:b p,2 vale0:a q 9", "", "remove1 move0 add1",
	    "1 vale0:b p,2 vale0:a q 9" },
	{ "another comes to the port", "1 vale0:a p",
	    "2 vale0:a q,1 vale0:b p", "", "open0 move1 add0",
	    "2 vale0:a q,1 vale0:b p" },
	{ "a port that is open: not moved", "1 vale0:a p", "1 vale0:x p", "0",
	    "busy0", "1 vale0:a p" },
	{ "nor who wants the port of that",
	    "1 vale0:a p,2 vale0:b q,3 vale0:c r",
	    "3 vale0:b r,2 vale0:a q,1 vale0:x p", "2", "busy2 clash1 clash0",
	    "3 vale0:c r,2 vale0:b q,1 vale0:a p" },
	{ "from a TAP interface", "1 tap0 p 5 1500", "1 vale0:a p 5 1400", "",
	    "move0", "1 vale0:a p 5 1400" },
	{ "to a TAP interface", "1 vale0:a p", "1 tap0 p", "", "tap0",
	    "1 vale0:a p" },
	{ "from nowhere", "1 none p", "1 vale0:a p", "", "move0",
	    "1 vale0:a p" },
	{ "all kinds", "1 a p,2 b q,3 tap0 r",
	    "1 x p2,3 tap1 r,2 b q 68,4 a s,5 e t", "0",
	    "tap1 busy0 clash3 open4 remove1 add2 add4",
	    "1 a p,3 tap0 r,2 b q 68,4 -,5 e t" },
};

/* Make the adapters that `text' says; returns how many. */
static unsigned int
make(struct adapter_config ac[ADAPTERS], const char *text)
{
	char *copy = strdup(text), *one, *rest = copy, socket[32];
	unsigned int n = 0;
	unsigned int mem;
	int found;

	ATF_REQUIRE(copy != NULL);
	while ((one = strsep(&rest, ",")) != NULL && *one != '\0') {
		ATF_REQUIRE(n < ADAPTERS);
		ac[n] = (struct adapter_config){ .ac_fd = -1,
		    .ac_listen = -1 };
		mem = 0;
		found = sscanf(one, "%d %63s %31s %u %u", &ac[n].ac_slot,
		    ac[n].ac_backend, socket, &mem, &ac[n].ac_mtu);
		ac[n].ac_mem = mem;
		ATF_REQUIRE(found >= 2);
		if (found == 2)
			ac[n].ac_backend[0] = '\0';
		else if (strncmp(socket, "fd=", 3) == 0)
			ac[n].ac_fd = atoi(socket + 3);
		else
			strlcpy(ac[n].ac_path, socket, sizeof(ac->ac_path));
		n++;
	}
	free(copy);
	return (n);
}

static const char *const names[] = { [VALED_TAP] = "tap",
	[VALED_BUSY] = "busy", [VALED_CLASH] = "clash", [VALED_OPEN] = "open",
	[VALED_REMOVE_OLD] = "remove", [VALED_UNPLUG] = "unplug",
	[VALED_MOVE_NEW] = "move", [VALED_CHANGE_NEW] = "change",
	[VALED_ADD_NEW] = "add", [VALED_UNLINK] = "unlink" };

static void
plan_row(const struct row *row)
{
	struct adapter_config old[ADAPTERS], new[ADAPTERS], result[ADAPTERS],
	    want[ADAPTERS];
	struct valed_action actions[VALED_ACTIONS(ADAPTERS, ADAPTERS)];
	bool refused[ADAPTERS] = { false };
	struct valed_plan vp = { .pn_old = old, .pn_new = new,
	    .pn_refused = refused, .pn_result = result, .pn_action = actions };
	char text[256] = "";
	const char *p;
	unsigned int i, n;

	vp.pn_nold = make(old, row->old);
	vp.pn_nnew = make(new, row->new);
	for (p = row->refused; *p != '\0'; p++) {
		ATF_CHECK(valed_plan_reserves(&vp, *p - '0'));
		refused[*p - '0'] = true;
	}
	valed_plan(&vp);
	ATF_REQUIRE(vp.pn_nactions <= nitems(actions));
	for (i = 0; i < vp.pn_nactions; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "%s%s%u", i > 0 ? " " : "", names[actions[i].ax_what],
		    actions[i].ax_index);
	ATF_CHECK_MSG(strcmp(row->actions, text) == 0, "%s: %s", row->name,
	    text);
	n = make(want, row->result);
	ATF_REQUIRE_EQ(n, vp.pn_nnew);
	for (i = 0; i < n; i++) {
		ATF_CHECK_EQ(want[i].ac_slot, result[i].ac_slot);
		ATF_CHECK_MSG(valed_values_same(&want[i], &result[i]),
		    "%s: %u", row->name, i);
		if (!valed_plan_reserves(&vp, i))
			ATF_CHECK_EQ(-1, result[i].ac_listen);
	}
}

TEST(rows, "Each row of the table")
{
	unsigned int i;

	for (i = 0; i < nitems(rows); i++)
		plan_row(&rows[i]);
}

TEST(listens, "The socket of an adapter that is added is the one that was at "
    "the path, or one that must be opened, also if it is inherited")
{
	struct adapter_config old[ADAPTERS], new[ADAPTERS], result[ADAPTERS];
	struct valed_action actions[VALED_ACTIONS(ADAPTERS, ADAPTERS)];
	const bool refused[ADAPTERS] = { false };
	struct valed_plan vp = { .pn_old = old, .pn_new = new,
	    .pn_refused = refused, .pn_result = result, .pn_action = actions };

	vp.pn_nold = make(old, "1 a p");
	vp.pn_nnew = make(new, "1 b p,2 c fd=7,3 d q");
	valed_plan(&vp);
	ATF_CHECK_EQ(-1, result[0].ac_listen);
	ATF_CHECK_EQ(-1, result[1].ac_listen);
	ATF_CHECK_EQ(-1, result[2].ac_listen);
	ATF_CHECK_EQ(VALED_OPEN, (int)actions[0].ax_what);
	ATF_CHECK_EQ(1, actions[0].ax_index);
	ATF_CHECK_EQ(VALED_OPEN, (int)actions[1].ax_what);
	ATF_CHECK_EQ(2, actions[1].ax_index);
}

TEST(reserves, "The switch's port of an adapter that the reload adds is "
    "reserved")
{
	struct adapter_config old[ADAPTERS], new[ADAPTERS];
	struct valed_plan vp = { .pn_old = old, .pn_new = new };

	vp.pn_nold = make(old, "1 vale0:a p,2 b q");
	vp.pn_nnew = make(new, "1 vale0:a p,2 b q 1500,3 tap0 r,4 c s");
	ATF_CHECK(!valed_plan_reserves(&vp, 0));
	ATF_CHECK(valed_plan_reserves(&vp, 1));
	ATF_CHECK(!valed_plan_reserves(&vp, 2));
	ATF_CHECK(valed_plan_reserves(&vp, 3));
	ATF_CHECK_EQ(&old[1], valed_plan_old(&vp, &new[1]));
	ATF_CHECK(valed_plan_old(&vp, &new[3]) == NULL);
	make(new, "1 vale1:a p");
	ATF_CHECK(valed_plan_reserves(&vp, 0));
}

TEST(replaces, "An adapter that is removed and added again is replaced, and no "
    "other one")
{
	static const bool want[ADAPTERS] = { false, true, false, false, true };
	struct adapter_config old[ADAPTERS], new[ADAPTERS], result[ADAPTERS];
	struct valed_action actions[VALED_ACTIONS(ADAPTERS, ADAPTERS)];
	bool refused[ADAPTERS] = { false };
	struct valed_plan vp = { .pn_old = old, .pn_new = new,
	    .pn_refused = refused, .pn_result = result, .pn_action = actions };
	unsigned int i;

	vp.pn_nold = make(old, "1 vale0:a p,2 vale0:b q,3 -,4 vale0:d s,"
	    "5 vale0:e t");
	vp.pn_nnew = make(new, "1 vale1:a p,2 vale0:b q 5,3 vale0:c r,"
	    "4 vale0:d s 5,5 vale0:e t 6");
	refused[3] = true;
	valed_plan(&vp);
	for (i = 0; i < ADAPTERS; i++)
		ATF_CHECK_EQ_MSG(want[i], valed_plan_replaces(&vp, i), "%u", i);
}

TEST(same, "Adapters with the same values are the same, and each value counts")
{
	static const struct adapter_config none;
	struct adapter_config ac;

#define	COUNTS(member, value) do {					\
	ac = none;							\
	ATF_CHECK(valed_values_same(&ac, &none));			\
	ac.member = (value);						\
	ATF_CHECK_MSG(!valed_values_same(&ac, &none), #member);		\
} while (0)
	COUNTS(ac_backend[0], 'a');
	COUNTS(ac_path[0], 'a');
	COUNTS(ac_fd, 1);
	COUNTS(ac_control[0], 'a');
	COUNTS(ac_mac[5], 1);
	COUNTS(ac_mtu, 68);
	COUNTS(ac_itr_256ns, 1);
	COUNTS(ac_itr_min_256ns, 1);
	COUNTS(ac_poll_us, 1);
	COUNTS(ac_mem, 1);
	COUNTS(ac_csb, true);
	COUNTS(ac_direct, true);
	COUNTS(ac_announce, true);
	/* These are no values. */
	ac = (struct adapter_config){ .ac_bus = 1, .ac_slot = 2, .ac_func = 3,
	    .ac_name = "a", .ac_where = "f:1", .ac_listen = 4,
	    .ac_opener = 5 };
	ATF_CHECK(valed_values_same(&ac, &none));
}

/*
 * What a reload does with each variable of an adapter that has a client.  A new
 * one belongs here, and in the manual.
 */
static const struct {
	const char	*name;
	enum {
		SETTING,		/* of the port: is set there */
		IN_PLACE,
		REPLACES,		/* the adapter, if that is confirmed */
		NOTHING			/* has one value only */
	}		 what;
} variables[] = {
	{ "path", REPLACES }, { "fd", REPLACES }, { "control", REPLACES },
	{ "mac", REPLACES },
	{ "mtu", IN_PLACE }, { "itr", IN_PLACE }, { "itr_min", IN_PLACE },
	{ "csb", REPLACES }, { "direct", IN_PLACE }, { "announce", IN_PLACE },
	{ "poll", IN_PLACE }, { "mem", REPLACES },
	{ "ip", SETTING }, { "limit", SETTING }, { "link", SETTING },
	{ "mirror", SETTING }, { "private", SETTING }, { "rate", SETTING },
	{ "source", SETTING }, { "trunk", SETTING }, { "native", SETTING },
	{ "vlan", SETTING }, { "weight", SETTING },
	{ "backend", IN_PLACE }, { "device", NOTHING },
};

TEST(in_place, "Each variable can be changed in place, or replaces the "
    "adapter; what is of a TAP interface replaces it")
{
	static const struct adapter_config old = { .ac_backend = "vale0:a" };
	struct adapter_config new, tap;
	unsigned int i;

	ATF_REQUIRE_EQ(VALED_NVARIABLES, nitems(variables));
	for (i = 0; i < nitems(variables); i++) {
		ATF_CHECK_STREQ(variables[i].name, valed_variables[i].var_name);
		ATF_CHECK_EQ(variables[i].what == SETTING,
		    valed_variables[i].var_setting != -1);
		if (variables[i].what == SETTING ||
		    variables[i].what == NOTHING)
			continue;
		new = old;
		((char *)&new)[valed_variables[i].var_offset +
		    (i == VALED_V_BACKEND ? strlen("vale") : 0)] ^= 1;
		ATF_CHECK(valed_values_changed(&new, &old, i));
		ATF_CHECK(!valed_values_same(&new, &old));
		ATF_CHECK_EQ_MSG(variables[i].what == IN_PLACE ? -1 : (int)i,
		    valed_values_bars(&old, &new), "%s", variables[i].name);
		ATF_CHECK_EQ(variables[i].what == IN_PLACE,
		    valed_values_in_place(&old, &new));
	}
	/* The first one that differs. */
	new = old;
	new.ac_mac[5] = 1;
	new.ac_csb = E82545_CSB_ON;
	new.ac_itr_256ns = 1;
	ATF_CHECK_EQ(VALED_V_MAC, valed_values_bars(&old, &new));
	ATF_CHECK(!valed_values_changed(&new, &old, VALED_V_ITR_MIN));
	new = tap = (struct adapter_config){ .ac_backend = "tap0" };
	new.ac_mtu = 68;
	ATF_CHECK_EQ(VALED_V_MTU, valed_values_bars(&tap, &new));
	new = tap;
	new.ac_itr_256ns = 9;
	ATF_CHECK(valed_values_in_place(&tap, &new));
	ATF_CHECK_EQ(VALED_V_BACKEND, valed_values_bars(&old, &tap));
	ATF_CHECK(valed_values_in_place(&tap, &old));
}

/* Settings, as "name setting=value place;...". */
static void
settings_make(struct valed_settings *ss, const char *text)
{
	static struct valed_setting list[2][8];
	static unsigned int which;
	char copy[512], *one, *rest = copy, *equals, setting[32], value[64];
	struct valed_setting *st;

	strlcpy(copy, text, sizeof(copy));
	ss->vss_list = list[which++ % 2];
	ss->vss_n = 0;
	while ((one = strsep(&rest, ";")) != NULL && *one != '\0') {
		st = &ss->vss_list[ss->vss_n++];
		ATF_REQUIRE(ss->vss_n <= nitems(list[0]));
		memset(st, 0, sizeof(*st));
		st->vst_place = -1;
		equals = strchr(one, '=');
		ATF_REQUIRE(equals != NULL);
		*equals = ' ';
		ATF_REQUIRE(sscanf(one, "%63s %31s %63s %d", st->vst_name,
		    setting, value, &st->vst_place) >= 3);
		st->vst_setting = vale_setting_named(setting, strlen(setting));
		ATF_REQUIRE_EQ(0, vale_setting_parse(st->vst_setting, value,
		    &st->vst_value));
	}
}

static char	acted[512];

static void
act(const char *name, const struct vale_setting_change *sc, unsigned int n)
{
	char value[VALE_SETTING_SIZE];
	size_t at;

	for (; n > 0; sc++, n--) {
		at = strlen(acted);
		vale_setting_print(sc->sc_setting, &sc->sc_value, value,
		    sizeof(value));
		snprintf(acted + at, sizeof(acted) - at, "%s %s%s%s%c", name,
		    vale_setting_table[sc->sc_setting].se_name,
		    sc->sc_preset ? "=" : " no", sc->sc_preset ? value : "",
		    n > 1 ? ',' : ';');
	}
}

static bool
is_any(const char *name __unused, const void *arg __unused)
{
	return (true);
}

static bool
is_name(const char *name, const void *arg)
{
	return (strcmp(name, arg) == 0);
}

TEST(settings_of, "Settings of one port change alone")
{
	struct valed_settings old = { .vss_n = 0 }, from, new;

	settings_make(&from, "a limit=1;b limit=2;b vlan=3");
	ATF_REQUIRE(valed_settings_room(&old, 16));
	valed_settings_take(&old, &from, is_any, NULL);
	settings_make(&new, "a limit=5;b limit=6;b private=on;c vlan=7");
	acted[0] = '\0';
	valed_settings_plan(&old, &new, is_name, "b", act);
	ATF_CHECK_STREQ("b limit=6,b private=on,b vlan no;", acted);
	valed_settings_take(&old, &new, is_name, "b");
	acted[0] = '\0';
	valed_settings_plan(&old, &new, is_any, NULL, act);
	ATF_CHECK_STREQ("a limit=5;c vlan=7;", acted);
	valed_settings_take(&old, &new, is_any, NULL);
	acted[0] = '\0';
	valed_settings_plan(&old, &new, is_any, NULL, act);
	ATF_CHECK_STREQ("", acted);
	free(old.vss_list);
}

TEST(settings, "Settings that have changed are set, and then those that have "
    "gone are no longer")
{
	static const struct {
		const char *old, *new, *acts;
	} all[] = {
		{ "", "", "" },
		{ "a rate=1bit/s;b limit=2", "b limit=2;a rate=1bit/s", "" },
		{ "a rate=1bit/s", "a rate=2bit/s", "a rate=2bit/s;" },
		{ "a rate=1bit/s", "a rate=1pkt/s", "a rate=1pkt/s;" },
		{ "a rate=1bit/s", "a rate=1bit/s,burst=2",
		    "a rate=1bit/s,burst=2;" },
		{ "a ip=10.0.0.1", "a ip=10.0.0.2", "a ip=10.0.0.2;" },
		{ "", "a limit=1", "a limit=1;" },
		{ "a limit=1", "", "a limit no;" },
		{ "a limit=1", "b limit=1", "b limit=1;a limit no;" },
		{ "a limit=1;b vlan=2;a vlan=1", "b limit=1;c vlan=1;"
		    "b weight=3", "b limit=1,b weight=3,b vlan no;c vlan=1;"
		    "a limit no,a vlan no;" },
		{ "a limit=1", "a weight=1", "a weight=1,a limit no;" },
		{ "a vlan=1", "a native=5;a trunk=2",
		    "a trunk=2,a native=5,a vlan no;" },
		{ "a native=5;a trunk=2", "a vlan=1",
		    "a vlan=1,a trunk no,a native no;" },
		/* Whose it is does not matter. */
		{ "a limit=1 8", "a limit=1", "" },
	};
	struct valed_settings old, new;
	unsigned int i;

	for (i = 0; i < nitems(all); i++) {
		settings_make(&old, all[i].old);
		settings_make(&new, all[i].new);
		acted[0] = '\0';
		valed_settings_plan(&old, &new, is_any, NULL, act);
		ATF_CHECK_STREQ(all[i].acts, acted);
	}
}

TEST(settings_left, "The settings of an adapter that stays as it was stay")
{
	struct valed_settings ss = { .vss_n = 0 }, from, more;
	const struct valed_settings none = { .vss_n = 0 };

	settings_make(&from, "a rate=1bit/s 8;a limit=2 8;b limit=3 16;"
	    "c limit=4");
	ATF_REQUIRE(valed_settings_room(&ss, 16));
	valed_settings_move(&ss, &from, 8);
	valed_settings_move(&ss, &from, 16);
	ATF_CHECK_EQ(3, ss.vss_n);
	settings_make(&more, "x rate=5bit/s 8;x weight=2 8");
	valed_settings_move(&ss, &more, 8);
	valed_settings_move(&ss, &none, 24);
	acted[0] = '\0';
	valed_settings_plan(&none, &ss, is_any, NULL, act);
	ATF_CHECK_STREQ("b limit=3;x rate=5bit/s,x weight=2;", acted);
	valed_settings_move(&ss, &none, 8);
	ATF_CHECK_EQ(1, ss.vss_n);
	free(ss.vss_list);
}

TEST_PROGRAM
