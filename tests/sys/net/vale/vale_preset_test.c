/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Settings that are preset, in sets that fit together or do not, while ports
 * come and go.  AddressSanitizer sees what is freed twice, or never.
 */

#include <sys/param.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "vale_setting.h"
#include "vale_test.h"

#define	PORT	"valet0:a"

/* The allocation that fails: 1 is the next one; 0: none. */
static unsigned int	turn;

void	*__real_calloc(size_t n, size_t size);
void	*__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
	if (turn > 0 && --turn == 0)
		return (NULL);
	return (__real_calloc(n, size));
}

/* One change, of a setting's name and text; NULL: no longer. */
static struct vale_setting_change
change(const char *setting, const char *text)
{
	struct vale_setting_change sc = { .sc_preset = text != NULL };

	sc.sc_setting = vale_setting_named(setting, strlen(setting));
	ATF_REQUIRE(sc.sc_setting < VALE_NSETTINGS);
	if (text != NULL)
		ATF_REQUIRE_EQ(0, vale_setting_parse(sc.sc_setting, text,
		    &sc.sc_value));
	return (sc);
}

/* Keep a setting, or no longer; not what is wrong of the port there. */
static void
keep(const char *setting, const char *text, bool once)
{
	struct vale_setting_change sc = change(setting, text);
	unsigned int failed;

	if (once && text != NULL)
		ATF_REQUIRE_EQ(0, vale_setting_once(PORT, sc.sc_setting,
		    &sc.sc_value));
	else if (vale_setting_preset_all(PORT, &sc, 1, &failed) == -1)
		ATF_CHECK_EQ(EINVAL, errno);
}

static void
is_kept(const char *setting, const char *expected)
{
	const unsigned int i = change(setting, NULL).sc_setting;
	struct vale_setting_value value;
	char text[VALE_SETTING_SIZE];

	vale_preset_get(PORT, i, &value);
	vale_setting_print(i, &value, text, sizeof(text));
	ATF_CHECK_STREQ(expected, text);
}

TEST(unfit, "A port with preset settings that do not fit together is not "
    "opened; once they do, it is")
{
	struct vale_desc *d;

	keep("ip", "192.0.2.1", false);
	keep("native", "5", false);
	errno = 0;
	ATF_CHECK_ERRNO(EINVAL, vale_open(PORT, NULL) == NULL);
	keep("trunk", "5", false);
	d = t_open(PORT, 16, 16);
	vale_close(d);
}

TEST(once_left, "A preset setting that does not go with one for the next port "
    "only is left out: the port is opened")
{
	static const char *const without[][2] = {
		{ "trunk", "no" }, { "native", "0" }, { "limit", "3" },
	};
	struct vale_setting_value value[VALE_NSETTINGS];
	char text[VALE_SETTING_SIZE];
	struct vale_desc *d;
	unsigned int i, j;

	keep("trunk", "5", false);
	keep("native", "5", false);
	keep("limit", "3", false);
	keep("trunk", "no", true);
	d = t_open(PORT, 16, 16);
	ATF_REQUIRE_EQ(0, vale_setting_get(PORT, VALE_OF_PORT, value));
	for (i = 0; i < nitems(without); i++) {
		j = change(without[i][0], NULL).sc_setting;
		vale_setting_print(j, &value[j], text, sizeof(text));
		ATF_CHECK_STREQ(without[i][1], text);
	}
	vale_close(d);
	/* The next one has what is preset. */
	d = t_open(PORT, 16, 16);
	ATF_REQUIRE_EQ(0, vale_setting_get(PORT, VALE_OF_PORT, value));
	ATF_CHECK_EQ(5, value[change("native", NULL).sc_setting].sv_number);
	vale_close(d);
}

TEST(once_before, "What is preset afterwards, or no longer, holds for the next "
    "port, too")
{
	struct vale_setting_value value[VALE_NSETTINGS];
	struct vale_desc *d;

	keep("vlan", "10", false);
	keep("vlan", "5", true);
	keep("limit", "3", true);
	keep("weight", "9", true);
	keep("vlan", "20", false);
	keep("limit", NULL, false);
	d = t_open(PORT, 16, 16);
	ATF_REQUIRE_EQ(0, vale_setting_get(PORT, VALE_OF_PORT, value));
	ATF_CHECK_EQ(20, value[change("vlan", NULL).sc_setting].sv_number);
	ATF_CHECK_EQ(0, value[change("limit", NULL).sc_setting].sv_number);
	/* Others are as they were. */
	ATF_CHECK_EQ(9, value[change("weight", NULL).sc_setting].sv_number);
	vale_close(d);
	keep("vlan", NULL, false);
}

TEST(random, "Any sequence of preset settings, and of ports that come and go, "
    "ends with ports that have what is preset")
{
	static const struct {
		const char *setting, *text[3];
	} some[] = {
		{ "ip", { "192.0.2.1", "2001:db8::/64" } },
		{ "source", { "02:00:00:00:00:01", "own", "any" } },
		{ "trunk", { "10,20", "all", "no" } },
		{ "native", { "10", "20", "0" } },
		{ "vlan", { "10", "0", "20" } },
		{ "rate", { "1Mbit/s", "5pkt/s" } },
		{ "mirror", { "valet0:b", "valet0:b/t", "no" } },
		{ "link", { "down", "up", "uplink" } },
	};
	static const uint8_t own[6] = { 2, 0, 0, 0, 0, 7 };
	struct vale_desc *d = NULL, *b = t_open("valet0:b", 16, 16);
	uint32_t i, j, seed = 11;
	unsigned int opened = 0, refused = 0;

	for (i = 0; i < 20000; i++) {
		j = test_random(&seed) % nitems(some);
		switch (test_random(&seed) % 4) {
		case 0:
			if (d != NULL)
				vale_close(d);
			errno = 0;
			d = vale_open(PORT, NULL);
			opened += d != NULL;
			refused += d == NULL;
			ATF_REQUIRE(d != NULL || errno == EINVAL);
			break;
		case 1:
			if (d != NULL)
				(void)vale_set_address(d, own);
			break;
		default:
			keep(some[j].setting, some[j].text[
			    test_random(&seed) % 3],
			    test_random(&seed) % 5 == 0);
			break;
		}
	}
	ATF_CHECK(opened > 1000 && refused > 100);
	if (d != NULL)
		vale_close(d);
	for (j = 0; j < nitems(some); j++)
		keep(some[j].setting, NULL, false);
	/* Those for the next port, too, go with it, if it comes. */
	for (i = 0; (d = vale_open(PORT, NULL)) == NULL && i < 20; i++)
		continue;
	ATF_REQUIRE(d != NULL);
	vale_close(d);
	vale_close(b);
}

/* Two sets of settings; whoever opens the port has the one or the other. */
static const char *const sets[2][5] = {
	{ "10,20", "10", "0", "192.0.2.1", "7" },
	{ "no", "0", "30", "192.0.2.2", "0" },
};
static const char *const names[5] = { "trunk", "native", "vlan", "ip",
    "limit" };

/* The set that the port has, if it is there; it is read at once. */
static int
set_now(void)
{
	struct vale_setting_value value[VALE_NSETTINGS];
	char text[VALE_SETTING_SIZE];
	unsigned int i, j;
	int set = -1;

	if (vale_setting_get(PORT, VALE_OF_PORT, value) == -1)
		return (-1);
	for (i = 0; i < nitems(names); i++) {
		j = change(names[i], NULL).sc_setting;
		vale_setting_print(j, &value[j], text, sizeof(text));
		if (i == 0)
			set = strcmp(text, sets[0][0]) == 0 ? 0 : 1;
		ATF_REQUIRE_MSG(strcmp(text, sets[set][i]) == 0, "%s=%s",
		    names[i], text);
	}
	return (set);
}

static void
set_all(unsigned int set)
{
	struct vale_setting_change sc[nitems(names)];
	unsigned int failed, i, n = 0;

	/* What is the default is preset no longer. */
	for (i = 0; i < nitems(names); i++)
		sc[n++] = change(names[i], strcmp(sets[set][i], "0") == 0 ||
		    strcmp(sets[set][i], "no") == 0 ? NULL : sets[set][i]);
	ATF_REQUIRE_EQ(0, vale_setting_preset_all(PORT, sc, n, &failed));
}

static bool	ends;

static void *
opens(void *arg __unused)
{
	while (!__atomic_load_n(&ends, __ATOMIC_RELAXED))
		vale_close(t_open(PORT, 16, 16));
	return (NULL);
}

TEST(together, "Settings that are preset together are all there or none, for "
    "each port that comes, and for one that is there")
{
	struct vale_desc *d;
	pthread_t thread;
	uint32_t seed = 5;
	unsigned int i, seen[2] = { 0, 0 };
	int set;

	set_all(0);
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, opens, NULL));
	while (seen[0] < 100 || seen[1] < 100) {
		set_all(test_random(&seed) % 2);
		set = set_now();
		if (set != -1)
			seen[set]++;
	}
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	ATF_REQUIRE_EQ(0, pthread_join(thread, NULL));
	for (i = 0; i < 2; i++) {
		set_all(i);
		d = t_open(PORT, 16, 16);
		ATF_CHECK_EQ((int)i, set_now());
		set_all(!i);
		ATF_CHECK_EQ(!i, set_now());
		vale_close(d);
	}
}

TEST(failures, "If one of several settings is wrong, or there is no memory, "
    "none is preset; if one cannot be set, the others are")
{
	struct vale_setting_change sc[3] = { change("limit", "3"),
	    change("weight", "5"), change("vlan", "7") };
	struct vale_desc *d;
	unsigned int failed = 9, i;

	sc[1].sc_value.sv_number = 0;
	ATF_CHECK_ERRNO(EINVAL, vale_setting_preset_all(PORT, sc, 3, &failed) ==
	    -1);
	ATF_CHECK_EQ(3, failed);
	is_kept("limit", "0");
	sc[1].sc_value.sv_number = 5;
	for (i = 1; i <= 3; i++) {
		turn = i;
		ATF_CHECK_ERRNO(ENOMEM, vale_setting_preset_all(PORT, sc, 3,
		    &failed) == -1);
		ATF_CHECK_EQ(3, failed);
		ATF_CHECK_STREQ(strerror(ENOMEM), vale_error());
		is_kept("limit", "0");
		is_kept("weight", "1");
		is_kept("vlan", "0");
	}
	d = t_open(PORT, 16, 16);
	/* The port has no address; that is preset for one that has. */
	sc[1] = change("source", "own");
	failed = 9;
	ATF_CHECK_ERRNO(EINVAL, vale_setting_preset_all(PORT, sc, 3, &failed) ==
	    -1);
	ATF_CHECK_EQ(1, failed);
	is_kept("limit", "3");
	is_kept("source", "own");
	is_kept("vlan", "7");
	/* What is said is why the first failed. */
	sc[2] = change("native", "8");
	ATF_CHECK_ERRNO(EINVAL, vale_setting_preset_all(PORT, sc, 3, &failed) ==
	    -1);
	ATF_CHECK_EQ(1, failed);
	ATF_CHECK_MATCH("source must be a list", vale_error());
	vale_close(d);
	turn = 1;
	ATF_CHECK_ERRNO(ENOMEM, vale_setting_once(PORT, sc[0].sc_setting,
	    &sc[0].sc_value) == -1);
}

TEST_PROGRAM
