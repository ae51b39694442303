/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Links of ports.  A port whose link is down sends and receives no frame.  A
 * port's user gets an event for each change.  link=uplink is the carrier of the
 * attached interface.
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

	t_ports_open(PORTS);
	t_port_set(3, "mirror", "valet0:p0");
	t_port_set(0, "link", "down");
	ATF_CHECK(!is_up(0));
	ATF_CHECK(is_up(1));
	t_queue(t_port[0], LEN, EVERYBODY, 0, 1);
	t_queue(t_port[0], LEN, 1, 0, 2);
	t_queue(t_port[0], 9000, EVERYBODY, 0, 3);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	T_COUNT(t_port[0], TX_DROP_LINK, 3);
	T_COUNT(t_port[0], TX_FRAME, 3);
	byte = t_count(t_port[0], VALE_C_TX_BYTE);
	ATF_CHECK_EQ(2 * LEN + 9000, byte);
	T_COUNT(t_port[0], TX_FLOOD, 0);
	T_COUNT(t_port[0], LEARNED, 0);
	T_COUNT(t_port[0], TX_MIRROR, 0);
	t_expect_none(t_port[1]);
	t_expect_none(t_port[3]);
	/* Malformed frames have their own reasons. */
	t_queue(t_port[0], 10, EVERYBODY, 0, 4);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	T_COUNT(t_port[0], TX_DROP_RUNT, 1);
	T_COUNT(t_port[0], TX_DROP_LINK, 3);
	t_port_set(0, "link", "up");
	ATF_CHECK(is_up(0));
	t_send(t_port[0], LEN, EVERYBODY, 0, 5);
	t_expect(t_port[1], LEN, 0, 5);
	T_COUNT(t_port[0], TX_DROP_LINK, 3);
	T_COUNT(t_port[0], LEARNED, 1);
	t_ports_close();
}

TEST(gets, "A port without a link gets nothing; its addresses are forgotten, "
    "so that frames for them are flooded")
{
	t_ports_open(PORTS);
	t_port_set(3, "mirror", "valet0:p1");
	t_send(t_port[0], LEN, EVERYBODY, 0, 1);
	t_drain(t_port[1]);
	t_drain(t_port[2]);
	t_drain(t_port[3]);
	t_send(t_port[1], LEN, 0, 1, 2);
	t_expect(t_port[0], LEN, 1, 2);
	t_drain(t_port[3]);
	t_port_set(0, "link", "down");
	t_send(t_port[1], LEN, 0, 1, 3);
	t_expect_none(t_port[0]);
	t_expect(t_port[2], LEN, 1, 3);
	T_COUNT(t_port[1], TX_FLOOD, 1);
	t_drain(t_port[3]);
	t_send(t_port[1], LEN, EVERYBODY, 1, 4);
	t_expect_none(t_port[0]);
	t_expect(t_port[2], LEN, 1, 4);
	/* Nor is it a mirror. */
	t_drain(t_port[3]);
	t_port_set(3, "link", "down");
	t_send(t_port[1], LEN, EVERYBODY, 1, 5);
	t_expect_none(t_port[3]);
	t_expect(t_port[2], LEN, 1, 5);
	/* Alone, a port has nobody to send to. */
	t_port_set(2, "link", "down");
	t_send(t_port[1], LEN, EVERYBODY, 1, 6);
	T_COUNT(t_port[1], TX_DROP_NODEST, 1);
	t_port_set(0, "link", "up");
	t_send(t_port[1], LEN, EVERYBODY, 1, 7);
	t_expect(t_port[0], LEN, 1, 7);
	t_expect_none(t_port[2]);
	t_ports_close();
}

TEST(others, "Ports with VLANs, a guard or privacy have links, too")
{
	t_ports_open(PORTS);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "10");
	t_port_set(2, "vlan", "11");
	t_port_set(3, "vlan", "11");
	t_port_set(0, "source", "02:00:00:00:00:01");
	t_port_set(0, "link", "down");
	t_send(t_port[0], LEN, EVERYBODY, 7, 1);
	T_COUNT(t_port[0], TX_DROP_LINK, 1);
	T_COUNT(t_port[0], TX_DROP_SOURCE, 0);
	t_send(t_port[1], LEN, EVERYBODY, 1, 2);
	t_expect_none(t_port[0]);
	t_port_set(1, "vlan", "0");
	t_port_set(2, "vlan", "0");
	t_port_set(3, "vlan", "0");
	t_port_set(2, "private", "on");
	t_port_set(3, "private", "on");
	t_port_set(3, "link", "down");
	t_send(t_port[1], LEN, EVERYBODY, 1, 3);
	t_expect(t_port[2], LEN, 1, 3);
	t_expect_none(t_port[3]);
	t_send(t_port[2], LEN, EVERYBODY, 2, 4);
	t_expect(t_port[1], LEN, 2, 4);
	t_port_set(3, "link", "up");
	t_send(t_port[1], LEN, EVERYBODY, 1, 5);
	t_expect(t_port[3], LEN, 1, 5);
	t_ports_close();
}

/* What was told: "0d" is port 0, down. */
static char told[64];

static void
tell(void *arg, bool up)
{
	char word[16];

	snprintf(word, sizeof(word), "%s%c ", (const char *)arg,
	    up ? 'u' : 'd');
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
	t_ports_open(PORTS);
	vale_on_link(t_port[0], tell, (void *)(uintptr_t)"0");
	check_told("");
	t_port_set(0, "link", "up");
	check_told("");
	t_port_set(0, "link", "down");
	check_told("0d ");
	t_port_set(0, "link", "down");
	t_port_set(1, "link", "down");
	check_told("");
	vale_on_link(t_port[1], tell, (void *)(uintptr_t)"1");
	check_told("1d ");
	t_port_set(1, "link", "up");
	check_told("1u ");
	vale_on_link(t_port[0], NULL, NULL);
	t_port_set(0, "link", "up");
	check_told("");
	/* A port that is opened again begins with a link. */
	t_port_set(0, "link", "down");
	vale_close(t_port[0]);
	t_port[0] = t_open(t_port_name(0), 0, 0);
	ATF_CHECK(is_up(0));
	t_ports_close();
	check_told("");
}

/* Send what is queued, as a thread may that the call wakes. */
static void
send_told(void *arg, bool up)
{
	if (up)
		ATF_REQUIRE_EQ(0, vale_txsync(arg));
}

TEST(told_sends, "A port can send as soon as the switch reports its link up")
{
	t_ports_open(PORTS);
	vale_on_link(t_port[0], send_told, t_port[0]);
	t_port_set(0, "link", "down");
	t_queue(t_port[0], LEN, EVERYBODY, 0, 1);
	t_port_set(0, "link", "up");
	t_expect(t_port[1], LEN, 0, 1);
	ATF_CHECK_EQ(0, vale_set_carrier(t_port_name(3), false));
	t_port_set(0, "link", "uplink");
	t_queue(t_port[0], LEN, EVERYBODY, 0, 2);
	ATF_CHECK_EQ(0, vale_set_carrier(t_port_name(3), true));
	t_expect(t_port[1], LEN, 0, 2);
	T_COUNT(t_port[0], TX_DROP_LINK, 0);
	t_ports_close();
}

TEST(uplinks, "A link follows the uplinks: up if any has a carrier")
{
	t_ports_open(PORTS);
	vale_on_link(t_port[0], tell, (void *)(uintptr_t)"0");
	vale_on_link(t_port[1], tell, (void *)(uintptr_t)"1");
	ATF_CHECK_EQ(0, vale_set_carrier(t_port_name(2), true));
	ATF_CHECK_EQ(0, vale_set_carrier(t_port_name(2), false));
	check_told("");
	/* There is none with a carrier. */
	t_port_set(0, "link", "uplink");
	check_told("0d ");
	ATF_CHECK_EQ(0, vale_set_carrier(t_port_name(2), true));
	check_told("0u ");
	ATF_CHECK_EQ(0, vale_set_carrier(t_port_name(3), true));
	ATF_CHECK_EQ(0, vale_set_carrier(t_port_name(2), false));
	check_told("");
	t_send(t_port[1], LEN, EVERYBODY, 1, 1);
	t_expect(t_port[0], LEN, 1, 1);
	ATF_CHECK_EQ(0, vale_set_carrier(t_port_name(3), false));
	check_told("0d ");
	t_send(t_port[1], LEN, EVERYBODY, 1, 2);
	t_expect_none(t_port[0]);
	/* An uplink's own link is another thing. */
	ATF_CHECK_EQ(0, vale_set_carrier(t_port_name(3), true));
	t_port_set(3, "link", "down");
	check_told("0u ");
	/* A port that is closed is no uplink. */
	vale_close(t_port[3]);
	check_told("0d ");
	t_port[3] = t_open(t_port_name(3), 0, 0);
	check_told("");
	t_port_set(0, "link", "up");
	check_told("0u ");
	errno = 0;
	ATF_CHECK_EQ(-1, vale_set_carrier("valet0:none", true));
	ATF_CHECK_EQ(ENXIO, errno);
	ATF_CHECK_EQ(-1, vale_set_carrier("valet7:p0", true));
	/* Other switches have their own. */
	ATF_CHECK_EQ(0, vale_set_carrier(t_port_name(2), false));
	vale_close(t_port[3]);
	t_port[3] = t_open("valet1:up", 0, 0);
	ATF_CHECK_EQ(0, vale_set_carrier("valet1:up", true));
	t_port_set(0, "link", "uplink");
	check_told("0d ");
	t_ports_close();
}

TEST_PROGRAM
