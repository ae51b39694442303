/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Links of ports.  A port whose link is down sends and gets nothing; its user
 * is told of changes; a link may follow an uplink's carrier.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "vale_test.h"

#define	PORTS	4
#define	LEN	60

static struct vale_desc *port[PORTS];

static const char *
port_name(unsigned int i)
{
	static char name[PORTS][16];

	snprintf(name[i], sizeof(name[i]), "valet0:p%u", i);
	return (name[i]);
}

static void
open_ports(void)
{
	unsigned int i;

	for (i = 0; i < PORTS; i++)
		port[i] = t_open(port_name(i), 0, 0);
}

static void
close_ports(void)
{
	unsigned int i;

	for (i = 0; i < PORTS; i++)
		if (port[i] != NULL)
			vale_close(port[i]);
}

static void
set(unsigned int i, const char *setting, const char *value)
{
	ATF_REQUIRE_MSG(vale_set(port_name(i), setting, value) == 0,
	    "%s=%s: %s", setting, value, vale_error());
}

/* vpi_link of a port. */
static unsigned int	shown_port;
static bool		shown_link;

static int
show(const struct vale_port_info *info, void *arg __unused)
{
	if (info->vpi_index == shown_port)
		shown_link = info->vpi_link;
	return (0);
}

static bool
is_up(unsigned int i)
{
	shown_port = i;
	vale_list("valet0", show, NULL);
	return (shown_link);
}

TEST(sends, "What a port without a link sends is dropped and counted, and not "
    "learned from or mirrored; then it sends again")
{
	uint64_t byte;

	open_ports();
	set(3, "mirror", "valet0:p0");
	set(0, "link", "down");
	ATF_CHECK(!is_up(0));
	ATF_CHECK(is_up(1));
	t_queue(port[0], LEN, EVERYBODY, 0, 1);
	t_queue(port[0], LEN, 1, 0, 2);
	t_queue(port[0], 9000, EVERYBODY, 0, 3);
	ATF_REQUIRE_EQ(0, vale_txsync(port[0]));
	T_COUNT(port[0], TX_DROP_LINK, 3);
	T_COUNT(port[0], TX_FRAME, 3);
	byte = t_count(port[0], VALE_C_TX_BYTE);
	ATF_CHECK_EQ(2 * LEN + 9000, byte);
	T_COUNT(port[0], TX_FLOOD, 0);
	T_COUNT(port[0], LEARNED, 0);
	T_COUNT(port[0], TX_MIRROR, 0);
	t_expect_none(port[1]);
	t_expect_none(port[3]);
	/* Malformed frames have their own reasons. */
	t_queue(port[0], 10, EVERYBODY, 0, 4);
	ATF_REQUIRE_EQ(0, vale_txsync(port[0]));
	T_COUNT(port[0], TX_DROP_RUNT, 1);
	T_COUNT(port[0], TX_DROP_LINK, 3);
	set(0, "link", "up");
	ATF_CHECK(is_up(0));
	t_send(port[0], LEN, EVERYBODY, 0, 5);
	t_expect(port[1], LEN, 0, 5);
	T_COUNT(port[0], TX_DROP_LINK, 3);
	T_COUNT(port[0], LEARNED, 1);
	close_ports();
}

TEST(gets, "A port without a link gets nothing; its addresses are forgotten, "
    "so that frames for them are flooded")
{
	open_ports();
	set(3, "mirror", "valet0:p1");
	t_send(port[0], LEN, EVERYBODY, 0, 1);
	t_drain(port[1]);
	t_drain(port[2]);
	t_drain(port[3]);
	t_send(port[1], LEN, 0, 1, 2);
	t_expect(port[0], LEN, 1, 2);
	t_drain(port[3]);
	set(0, "link", "down");
	t_send(port[1], LEN, 0, 1, 3);
	t_expect_none(port[0]);
	t_expect(port[2], LEN, 1, 3);
	T_COUNT(port[1], TX_FLOOD, 1);
	t_drain(port[3]);
	t_send(port[1], LEN, EVERYBODY, 1, 4);
	t_expect_none(port[0]);
	t_expect(port[2], LEN, 1, 4);
	/* Nor is it a mirror. */
	t_drain(port[3]);
	set(3, "link", "down");
	t_send(port[1], LEN, EVERYBODY, 1, 5);
	t_expect_none(port[3]);
	t_expect(port[2], LEN, 1, 5);
	/* Alone, a port has nobody to send to. */
	set(2, "link", "down");
	t_send(port[1], LEN, EVERYBODY, 1, 6);
	T_COUNT(port[1], TX_DROP_NODEST, 1);
	set(0, "link", "up");
	t_send(port[1], LEN, EVERYBODY, 1, 7);
	t_expect(port[0], LEN, 1, 7);
	t_expect_none(port[2]);
	close_ports();
}

TEST(others, "Ports with VLANs, a guard or privacy have links, too")
{
	open_ports();
	set(0, "vlan", "10");
	set(1, "vlan", "10");
	set(2, "vlan", "11");
	set(3, "vlan", "11");
	set(0, "source", "02:00:00:00:00:01");
	set(0, "link", "down");
	t_send(port[0], LEN, EVERYBODY, 7, 1);
	T_COUNT(port[0], TX_DROP_LINK, 1);
	T_COUNT(port[0], TX_DROP_SOURCE, 0);
	t_send(port[1], LEN, EVERYBODY, 1, 2);
	t_expect_none(port[0]);
	set(1, "vlan", "0");
	set(2, "vlan", "0");
	set(3, "vlan", "0");
	set(2, "private", "yes");
	set(3, "private", "yes");
	set(3, "link", "down");
	t_send(port[1], LEN, EVERYBODY, 1, 3);
	t_expect(port[2], LEN, 1, 3);
	t_expect_none(port[3]);
	t_send(port[2], LEN, EVERYBODY, 2, 4);
	t_expect(port[1], LEN, 2, 4);
	set(3, "link", "up");
	t_send(port[1], LEN, EVERYBODY, 1, 5);
	t_expect(port[3], LEN, 1, 5);
	close_ports();
}

/* What was told: "0d" is port 0, down. */
static char told[64];

static void
tell(void *arg, bool up)
{
	char word[16];

	snprintf(word, sizeof(word), "%s%c ", (const char *)arg, up ? 'u' : 'd');
	strlcat(told, word, sizeof(told));
}

static void
check_told(const char *what)
{
	ATF_CHECK_STREQ(what, told);
	told[0] = '\0';
}

TEST(tells, "vale_on_link()'s function is called for each change, and at once "
    "if the link is down")
{
	open_ports();
	vale_on_link(port[0], tell, (void *)(uintptr_t)"0");
	check_told("");
	set(0, "link", "up");
	check_told("");
	set(0, "link", "down");
	check_told("0d ");
	set(0, "link", "down");
	set(1, "link", "down");
	check_told("");
	vale_on_link(port[1], tell, (void *)(uintptr_t)"1");
	check_told("1d ");
	set(1, "link", "up");
	check_told("1u ");
	vale_on_link(port[0], NULL, NULL);
	set(0, "link", "up");
	check_told("");
	/* A port that is opened again begins with a link. */
	set(0, "link", "down");
	vale_close(port[0]);
	port[0] = t_open(port_name(0), 0, 0);
	ATF_CHECK(is_up(0));
	close_ports();
	check_told("");
}

TEST(uplinks, "A link follows the uplinks: up if any has a carrier")
{
	open_ports();
	vale_on_link(port[0], tell, (void *)(uintptr_t)"0");
	vale_on_link(port[1], tell, (void *)(uintptr_t)"1");
	ATF_CHECK_EQ(0, vale_set_carrier(port_name(2), true));
	ATF_CHECK_EQ(0, vale_set_carrier(port_name(2), false));
	check_told("");
	/* There is none with a carrier. */
	set(0, "link", "uplink");
	check_told("0d ");
	ATF_CHECK_EQ(0, vale_set_carrier(port_name(2), true));
	check_told("0u ");
	ATF_CHECK_EQ(0, vale_set_carrier(port_name(3), true));
	ATF_CHECK_EQ(0, vale_set_carrier(port_name(2), false));
	check_told("");
	t_send(port[1], LEN, EVERYBODY, 1, 1);
	t_expect(port[0], LEN, 1, 1);
	ATF_CHECK_EQ(0, vale_set_carrier(port_name(3), false));
	check_told("0d ");
	t_send(port[1], LEN, EVERYBODY, 1, 2);
	t_expect_none(port[0]);
	/* An uplink's own link is another thing. */
	ATF_CHECK_EQ(0, vale_set_carrier(port_name(3), true));
	set(3, "link", "down");
	check_told("0u ");
	/* A port that is closed is no uplink. */
	vale_close(port[3]);
	check_told("0d ");
	port[3] = t_open(port_name(3), 0, 0);
	check_told("");
	set(0, "link", "up");
	check_told("0u ");
	errno = 0;
	ATF_CHECK_EQ(-1, vale_set_carrier("valet0:none", true));
	ATF_CHECK_EQ(ENXIO, errno);
	ATF_CHECK_EQ(-1, vale_set_carrier("valet7:p0", true));
	/* Other switches have their own. */
	ATF_CHECK_EQ(0, vale_set_carrier(port_name(2), false));
	vale_close(port[3]);
	port[3] = t_open("valet1:up", 0, 0);
	ATF_CHECK_EQ(0, vale_set_carrier("valet1:up", true));
	set(0, "link", "uplink");
	check_told("0d ");
	close_ports();
}

TEST(values, "The setting has three values")
{
	static const char *const bad[] = { "", "UP", "up ", "no", "uplinks",
	    "1" };
	char text[VALE_SETTING_SIZE];
	unsigned int i;

	open_ports();
	ATF_CHECK_EQ(0, vale_get(port_name(0), "link", text, sizeof(text)));
	ATF_CHECK_STREQ("up", text);
	set(0, "link", "uplink");
	for (i = 0; i < nitems(bad); i++) {
		errno = 0;
		ATF_CHECK_EQ(-1, vale_set(port_name(0), "link", bad[i]));
		ATF_CHECK_EQ(EINVAL, errno);
		ATF_CHECK_STREQ("link is up, down or uplink", vale_error());
	}
	ATF_CHECK_EQ(0, vale_get(port_name(0), "link", text, sizeof(text)));
	ATF_CHECK_STREQ("uplink", text);
	ATF_CHECK_EQ(-1, vale_set("valet0:none", "link", "up"));
	ATF_CHECK_EQ(ENXIO, errno);
	close_ports();
}

TEST_PROGRAM
