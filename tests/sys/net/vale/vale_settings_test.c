/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Settings of switches and ports: private ports, weights, the batch.
 * vale_rate_test has limits of senders, vale_mirror_test mirrors.
 */

#include <sys/param.h>
#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_rate_conf.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "setting.h"
#include "test.h"
#include "vale_setting.h"
#include "vale_test.h"

TEST(private, "No frame passes from one private port to another, and all "
    "others do")
{
	struct vale_desc *d[4];
	char name[] = "valet0:p0";
	unsigned int a, b, i;
	bool both;

	for (i = 0; i < nitems(d); i++) {
		name[sizeof(name) - 2] = '0' + i;
		d[i] = t_open(name, 0, 0);
		t_send(d[i], 60, EVERYBODY, i, 0);
	}
	ATF_REQUIRE_EQ(0, vale_set("valet0:p1", "private", "on"));
	ATF_REQUIRE_EQ(0, vale_set("valet0:p1", "private", "on"));
	ATF_REQUIRE_EQ(0, vale_set("valet0:p3", "private", "on"));
	for (i = 0; i < nitems(d); i++)
		t_drain(d[i]);
	for (a = 0; a < nitems(d); a++)
		for (b = 0; b < nitems(d); b++) {
			if (a == b)
				continue;
			both = a % 2 == 1 && b % 2 == 1;
			t_send(d[a], 60, b, a, 10 * a + b);
			if (both)
				t_expect_none(d[b]);
			else
				t_expect(d[b], 60, a, 10 * a + b);
		}
	T_COUNT(d[1], TX_DROP_PRIVATE, 1);
	T_COUNT(d[3], TX_DROP_PRIVATE, 1);
	T_COUNT(d[0], TX_DROP_PRIVATE, 0);
	/* To all, also in one batch with a frame to one. */
	t_queue(d[1], 60, 0, 1, 1);
	t_queue(d[1], 60, EVERYBODY, 1, 2);
	t_queue(d[1], 60, 3, 1, 3);
	ATF_REQUIRE_EQ(0, vale_txsync(d[1]));
	ATF_CHECK_EQ(2, t_drain(d[0]));
	ATF_CHECK_EQ(1, t_drain(d[2]));
	ATF_CHECK_EQ(0, t_drain(d[3]));
	t_send(d[0], 60, EVERYBODY, 0, 4);
	for (i = 1; i < nitems(d); i++)
		t_expect(d[i], 60, 0, 4);
	/* To p0, then the only other port; to p0 and p2; flooded; to p0. */
	T_COUNT(d[1], TX_COPY, 1 + 2 + 2 + 1);
	T_COUNT(d[1], TX_FLOOD, 2);
	/* No longer private. */
	ATF_REQUIRE_EQ(0, vale_set("valet0:p3", "private", "off"));
	t_send(d[1], 60, 3, 1, 5);
	t_expect(d[3], 60, 1, 5);
	/* Private ports alone: nobody to send to. */
	ATF_REQUIRE_EQ(0, vale_set("valet0:p3", "private", "on"));
	vale_close(d[0]);
	vale_close(d[2]);
	t_send(d[1], 60, EVERYBODY, 1, 6);
	T_COUNT(d[1], TX_DROP_NODEST, 1);
	/* A port that is opened again is not private. */
	vale_close(d[3]);
	d[3] = t_open("valet0:p3", 0, 0);
	t_send(d[1], 60, EVERYBODY, 1, 7);
	t_expect(d[3], 60, 1, 7);
	vale_close(d[1]);
	vale_close(d[3]);
}

TEST(batch, "A sender takes as many slots at once as is set, and its last "
    "frame whole")
{
	static uint8_t frame[9000];
	struct vale_desc *d, *to;
	unsigned int i;

	to = t_open("valet0:to", 0, 0);
	d = t_open("valet0:d", 0, 0);
	t_send(to, 60, EVERYBODY, 2, 0);
	ATF_CHECK_STREQ("1024", setting_of("valet0", "batch"));
	for (i = 0; i < 100; i++)
		t_queue(d, 60, 2, 1, i);
	ATF_REQUIRE_EQ(0, vale_txsync(d));
	T_COUNT(d, TX_BATCH, 1);
	ATF_REQUIRE_EQ(0, vale_set("valet0", "batch", "8"));
	for (i = 0; i < 100; i++)
		t_queue(d, 60, 2, 1, i);
	ATF_REQUIRE_EQ(0, vale_txsync(d));
	T_COUNT(d, TX_BATCH, 1 + 13);
	ATF_REQUIRE_EQ(0, vale_set("valet0", "batch", "1"));
	t_make(frame, sizeof(frame), 2, 1, 1);
	t_put(d, frame, sizeof(frame), 1000, false);
	t_put(d, frame, sizeof(frame), 1000, false);
	ATF_REQUIRE_EQ(0, vale_txsync(d));
	T_COUNT(d, TX_BATCH, 1 + 13 + 2);
	ATF_CHECK_EQ(202, t_drain(to));
	vale_close(d);
	vale_close(to);
}

/*
 * Two senders offer frames all the time to a receiver that takes a few.
 * Returns the part of the first, in 1/1000.
 */
static unsigned int
part(struct vale_desc *to, struct vale_desc *a, struct vale_desc *b)
{
	unsigned int got[2] = { 0, 0 }, i, round;
	struct t_frame f;

	for (round = 0; round < 2000; round++) {
		for (i = 0; i < 32; i++) {
			t_queue(a, 60, 9, 0, 0);
			t_queue(b, 60, 9, 1, 0);
		}
		ATF_REQUIRE_EQ(0, vale_txsync(a));
		ATF_REQUIRE_EQ(0, vale_txsync(b));
		ATF_REQUIRE_EQ(0, vale_rxsync(to));
		for (i = 0; i < 8 && t_take(to, &f); i++)
			if (round >= 200)
				got[f.tf_src]++;
	}
	return (1000 * got[0] / (got[0] + got[1]));
}

TEST(weight, "While a ring is short of space, senders get its slots by their "
    "weights")
{
	static const struct {
		uint32_t	a, b;
		unsigned int	part;
	} w[] = { { 1, 1, 500 }, { 3, 1, 750 }, { 1, 3, 250 }, { 100, 1, 990 },
	    { 2, 2, 500 } };
	struct vale_desc *a, *b, *to;
	unsigned int got, i;

	to = t_open("valet0:to", 0, 513);
	a = t_open("valet0:a", 0, 0);
	b = t_open("valet0:b", 0, 0);
	t_send(to, 60, EVERYBODY, 9, 0);
	for (i = 0; i < nitems(w); i++) {
		ATF_REQUIRE_EQ(0, setting_to("valet0:a", "weight", "%u",
		    w[i].a));
		ATF_REQUIRE_EQ(0, setting_to("valet0:b", "weight", "%u",
		    w[i].b));
		got = part(to, a, b);
		ATF_CHECK_MSG(got + 20 >= w[i].part && got <= w[i].part + 20,
		    "%u and %u: %u of 1000", w[i].a, w[i].b, got);
	}
	/* The weight goes with the port. */
	vale_close(a);
	a = t_open("valet0:a", 0, 0);
	ATF_CHECK_STREQ("1", setting_of("valet0:a", "weight"));
	vale_close(a);
	vale_close(b);
	vale_close(to);
}

TEST(values, "What is set is read back; an invalid value is refused and "
    "changes nothing")
{
	char text[VALE_SETTING_SIZE];
	struct vale_desc *a, *b;

	a = t_open("valet0:a", 0, 0);
	b = t_open("valet0:b", 0, 0);
	ATF_CHECK_STREQ("0", setting_of("valet0:a", "limit"));
	ATF_CHECK_STREQ("1", setting_of("valet0:a", "weight"));
	ATF_CHECK_STREQ("off", setting_of("valet0:a", "private"));
	ATF_CHECK_STREQ("no", setting_of("valet0:a", "mirror"));

	ATF_REQUIRE_EQ(0, vale_set("valet0:a", "limit", "3"));
	ATF_REQUIRE_EQ(0, vale_set("valet0:a", "weight", "100"));
	ATF_REQUIRE_EQ(0, vale_set("valet0:a", "private", "on"));
	/* It need not be there. */
	ATF_REQUIRE_EQ(0, vale_set("valet0:a", "mirror", "valet0:longer"));
	ATF_REQUIRE_EQ(0, vale_set("valet0:a", "mirror", "valet0:c/r"));
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0:a", "limit", "5121") == -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0:a", "weight", "0") == -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0:a", "weight", "101") == -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0:a", "mirror", "valet0:a/r") ==
	    -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0:a", "mirror", "valet1:b/r") ==
	    -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0:a", "mirror", "valet00:b/r") ==
	    -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0:a", "mirror", "valet0:/r") ==
	    -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0:a", "mirror", "/r") == -1);
	ATF_CHECK_STREQ("a port can mirror another port of the same switch",
	    vale_error());
	ATF_CHECK_STREQ("3", setting_of("valet0:a", "limit"));
	ATF_CHECK_STREQ("100", setting_of("valet0:a", "weight"));
	ATF_CHECK_STREQ("on", setting_of("valet0:a", "private"));
	ATF_CHECK_STREQ("valet0:c/r", setting_of("valet0:a", "mirror"));
	ATF_CHECK_STREQ("1", setting_of("valet0:b", "weight"));
	ATF_CHECK_STREQ("off", setting_of("valet0:b", "private"));

	ATF_REQUIRE_EQ(0, vale_set("valet0", "ageing", "17"));
	ATF_REQUIRE_EQ(0, vale_set("valet0", "batch", "1024"));
	ATF_REQUIRE_EQ(0, vale_set("valet0", "batch", "2"));
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0", "ageing", "1000001") ==
	    -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0", "batch", "0") == -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0", "batch", "1025") == -1);
	ATF_CHECK_STREQ("the batch must be 1 to 1024 slots", vale_error());
	ATF_CHECK_STREQ("17", setting_of("valet0", "ageing"));
	ATF_CHECK_STREQ("2", setting_of("valet0", "batch"));

	/* None of them changes what it does not find. */
#define	MISSING(call)	do {						\
	errno = 0;							\
	ATF_CHECK_ERRNO(ENXIO, (call) == -1);				\
	ATF_CHECK_MSG(strncmp(vale_error(), "there is no such ", 17) == 0, \
	    "%s", vale_error());					\
} while (0)
	MISSING(vale_set("valet0:c", "limit", "1"));
	MISSING(vale_set("valet0:c", "weight", "1"));
	MISSING(vale_set("valet0:c", "private", "on"));
	MISSING(vale_set("valet0:c", "mirror", "valet0:a/r"));
	MISSING(vale_get("valet0:c", "rate", text, sizeof(text)));
	MISSING(vale_set("valet1", "ageing", "1"));
	MISSING(vale_set("valet1", "batch", "1"));
	MISSING(vale_get("valet1", "batch", text, sizeof(text)));
	vale_close(a);
	vale_close(b);
}

/* Preset one setting; NULL: no longer. */
static int
preset_one(const char *name, unsigned int setting,
    const struct vale_setting_value *value)
{
	struct vale_setting_change sc = { .sc_setting = setting,
	    .sc_preset = value != NULL };
	unsigned int failed;

	if (value != NULL)
		sc.sc_value = *value;
	return (vale_setting_preset_all(name, &sc, 1, &failed));
}

/* Keep a setting of valectl(8)'s form; NULL: no longer. */
static int
set_preset(const char *name, const char *setting, const char *text)
{
	const unsigned int i = vale_setting_named(setting, strlen(setting));
	struct vale_setting_value value;

	ATF_REQUIRE(i < VALE_NSETTINGS);
	if (text == NULL)
		return (preset_one(name, i, NULL));
	ATF_REQUIRE_EQ(0, vale_setting_parse(i, text, &value));
	return (preset_one(name, i, &value));
}

static void
is_set(const char *name, const char *setting, const char *expected)
{
	char text[VALE_SETTING_SIZE];

	ATF_REQUIRE_EQ_MSG(0, vale_get(name, setting, text, sizeof(text)),
	    "%s %s", name, setting);
	ATF_CHECK_MSG(strcmp(expected, text) == 0, "%s: %s=%s, not %s", name,
	    setting, text, expected);
}

/* Each setting, a value, and the default. */
static const struct {
	const char *name, *setting, *value, *otherwise;
} preset[] = {
	{ "valet0", "ageing", "17", "300" },
	{ "valet0", "batch", "9", "1024" },
	{ "valet0", "reserved", "off", "on" },
	{ "valet0:a", "ip", "192.0.2.1,2001:db8::/64", "any" },
	{ "valet0:a", "limit", "7", "0" },
	{ "valet0:a", "link", "down", "up" },
	{ "valet0:a", "mirror", "valet0:b/t", "no" },
	{ "valet0:a", "native", "5", "0" },
	{ "valet0:a", "private", "on", "off" },
	{ "valet0:a", "rate", "1000bit/s,burst=500", "0" },
	{ "valet0:a", "source", "02:00:00:00:00:01", "any" },
	{ "valet0:a", "trunk", "10,20-30", "no" },
	{ "valet0:a", "weight", "3", "1" },
	{ "valet0:b", "vlan", "10", "0" },
};

/* Set a setting for the next one only. */
static int
once(const char *name, const char *setting, const char *text)
{
	const unsigned int i = vale_setting_named(setting, strlen(setting));
	struct vale_setting_value value;

	ATF_REQUIRE_EQ(0, vale_setting_parse(i, text, &value));
	return (vale_setting_once(name, i, &value));
}

TEST(once, "A setting that is for the next one of its name is there once, in "
    "place of what is preset")
{
	struct vale_desc *a, *b;
	struct vale_setting_value value;
	unsigned int i, j;

	for (j = 0; j < nitems(preset); j++)
		ATF_REQUIRE_EQ(0, once(preset[j].name, preset[j].setting,
		    preset[j].value));
	for (i = 0; i < 2; i++) {
		b = t_open("valet0:b", 0, 0);
		a = t_open("valet0:a", 0, 0);
		for (j = 0; j < nitems(preset); j++)
			is_set(preset[j].name, preset[j].setting, i == 0 ?
			    preset[j].value : preset[j].otherwise);
		vale_close(a);
		vale_close(b);
	}
	/* A trunk that was an access port, and the rate that it had. */
	ATF_REQUIRE_EQ(0, set_preset("valet0:a", "vlan", "10"));
	ATF_REQUIRE_EQ(0, set_preset("valet0:a", "rate", "8Mbit/s"));
	vale_preset_get("valet0:a", VALE_SETTING_RATE, &value);
	ATF_CHECK_EQ(8000000, value.sv_number);
	ATF_CHECK(value.sv_burst > 0);
	vale_preset_get("valet0:b", VALE_SETTING_RATE, &value);
	ATF_CHECK_EQ(0, value.sv_number);
	ATF_CHECK_EQ(0, value.sv_burst);
	ATF_REQUIRE_EQ(0, once("valet0:a", "vlan", "0"));
	ATF_REQUIRE_EQ(0, once("valet0:a", "trunk", "20"));
	ATF_REQUIRE_EQ(0, once("valet0:a", "native", "30"));
	ATF_REQUIRE_EQ(0, once("valet0:a", "rate", "0"));
	a = t_open("valet0:a", 0, 0);
	is_set("valet0:a", "vlan", "0");
	is_set("valet0:a", "trunk", "20");
	is_set("valet0:a", "native", "30");
	is_set("valet0:a", "rate", "0");
	vale_close(a);
	/* What does not go with what is preset is left out, and used up. */
	ATF_REQUIRE_EQ(0, once("valet0:a", "native", "30"));
	for (i = 0; i < 2; i++) {
		a = t_open("valet0:a", 0, 0);
		is_set("valet0:a", "vlan", "10");
		is_set("valet0:a", "native", "0");
		vale_close(a);
	}
	/* The port's own address, and others in its place. */
	ATF_REQUIRE_EQ(0, set_preset("valet0:a", "source", "own"));
	ATF_REQUIRE_EQ(0, once("valet0:a", "source", "any"));
	for (i = 0; i < 2; i++) {
		a = t_open("valet0:a", 0, 0);
		ATF_REQUIRE_EQ(0, vale_set_address(a,
		    (const uint8_t *)"\2\0\0\0\0\7"));
		is_set("valet0:a", "source", i == 0 ? "any" : "own");
		vale_close(a);
	}
	ATF_REQUIRE_EQ(0, set_preset("valet0:a", "source",
	    "02:00:00:00:00:01"));
	ATF_REQUIRE_EQ(0, once("valet0:a", "source", "own"));
	for (i = 0; i < 2; i++) {
		a = t_open("valet0:a", 0, 0);
		ATF_REQUIRE_EQ(0, vale_set_address(a,
		    (const uint8_t *)"\2\0\0\0\0\7"));
		is_set("valet0:a", "source", i == 0 ? "own" :
		    "02:00:00:00:00:01");
		vale_close(a);
	}
	ATF_CHECK_ERRNO(EINVAL, once("valet0:a", "source", "me") == -1);
}

TEST(nothing_behind, "Behind the text of each setting there are zeros, and "
    "nothing of the switch")
{
	struct vale_setting_value value[VALE_NSETTINGS];
	struct vale_desc *a = t_open("valet0:a", 0, 0);
	const char *text;
	unsigned int i, n, round;

	for (round = 0; round < 2; round++) {
		memset(value, 0xff, sizeof(value));
		ATF_REQUIRE_EQ(0, vale_setting_get("valet0:a", VALE_OF_PORT,
		    value));
		for (i = 0; i < VALE_NSETTINGS; i++) {
			text = value[i].sv_text;
			for (n = strlen(text); n < sizeof(value->sv_text); n++)
				ATF_REQUIRE_EQ_MSG(0, text[n], "%s: %u",
				    vale_setting_table[i].se_name, n);
		}
		ATF_REQUIRE_EQ(0, vale_set("valet0:a", "mirror",
		    "valet0:longer/r"));
		ATF_REQUIRE_EQ(0, vale_set("valet0:a", "mirror", "valet0:b/r"));
	}
	vale_close(a);
}

/* Each row: a setting, what it is set to, whether it is valid. */
static const struct {
	const char *setting, *value, *error, *vlan, *trunk, *native;
} rows[] = {
	{ "vlan", "10", NULL, "10", "no", "0" },
	{ "vlan", "4095", "the VLAN must be 0 to 4094", "10", "no", "0" },
	{ "native", "5", "a native VLAN is that of a trunk", "10", "no", "0" },
	{ "native", "0", NULL, "10", "no", "0" },
	{ "trunk", "no", NULL, "10", "no", "0" },
	{ "trunk", "10,20-30", NULL, "0", "10,20-30", "0" },
	{ "native", "5", NULL, "0", "10,20-30", "5" },
	{ "trunk", "0", "trunk is a list of VLANs and ranges from 1 to 4094, "
	    "all or no", "0", "10,20-30", "5" },
	{ "trunk", "all", NULL, "0", "all", "5" },
	{ "native", "4095", "the native VLAN must be 0 to 4094", "0", "all",
	    "5" },
	{ "vlan", "ten", "the value is not a number", "0", "all", "5" },
	{ "trunk", "no", NULL, "0", "no", "0" },
	{ "trunk", "1", NULL, "0", "1", "0" },
	{ "vlan", "0", NULL, "0", "1", "0" },
	{ "vlan", "7", NULL, "7", "no", "0" },
	{ "vlan", "0", NULL, "0", "no", "0" },
	{ "ageing", "5", "ageing is not a setting of a port", "0", "no", "0" },
	{ "x", "5", "x is not a setting of a port", "0", "no", "0" },
};

static void
check_setting(const char *setting, const char *value)
{
	char text[VALE_SETTING_SIZE];

	ATF_REQUIRE_EQ(0, vale_get(t_port_name(0), setting, text,
	    sizeof(text)));
	ATF_CHECK_STREQ(value, text);
}

TEST(rules, "A port is an access port or a trunk, as it was set last")
{
	char list[VALE_SETTING_SIZE + 1];
	unsigned int i;

	t_ports_open(T_PORTS);
	for (i = 0; i < nitems(rows); i++) {
		ATF_CHECK_EQ_MSG(rows[i].error == NULL ? 0 : -1,
		    vale_set(t_port_name(0), rows[i].setting, rows[i].value),
		    "row %u: %s", i, vale_error());
		if (rows[i].error != NULL)
			ATF_CHECK_STREQ(rows[i].error, vale_error());
		check_setting("vlan", rows[i].vlan);
		check_setting("trunk", rows[i].trunk);
		check_setting("native", rows[i].native);
	}
	check_setting("source", "any");
	check_setting("ip", "any");
	t_port_set(0, "source", "02:00:00:00:00:01");
	t_port_set(0, "ip", "192.0.2.5,2001:db8::/64");
	check_setting("source", "02:00:00:00:00:01");
	check_setting("ip", "192.0.2.5,2001:db8::/64");
	ATF_CHECK_EQ(-1, vale_set(t_port_name(0), "ip", "192.0.2"));
	ATF_CHECK_STREQ("ip is a list of at most 16 addresses or prefixes, or "
	    "any", vale_error());
	ATF_CHECK_EQ(EINVAL, errno);
	memset(list, 'x', sizeof(list) - 1);
	list[sizeof(list) - 1] = '\0';
	ATF_CHECK_EQ(-1, vale_set(t_port_name(0), "ip", list));
	ATF_CHECK_STREQ("the value has more than 511 characters",
	    vale_error());
	check_setting("ip", "192.0.2.5,2001:db8::/64");
	ATF_CHECK_EQ(-1, vale_set("valet0:none", "ip", "any"));
	ATF_CHECK_STREQ("there is no such port", vale_error());
	ATF_CHECK_EQ(ENXIO, errno);
	ATF_CHECK_EQ(-1, vale_set("valet0", "vlan", "1"));
	ATF_CHECK_STREQ("vlan is not a setting of a switch", vale_error());
	t_ports_close();
}

TEST_PROGRAM
