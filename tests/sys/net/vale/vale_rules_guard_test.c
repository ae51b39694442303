/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guards of a switch's ports, and reserved addresses: which frames pass.
 */

#include <sys/param.h>

#include <string.h>

#include <atf-c.h>

#include "frame.h"
#include "test.h"
#include "vale_test.h"

#define	ADDRS	12		/* bytes of a frame's addresses */

TEST(source, "Frames from other sources than the list's are dropped")
{
	const uint8_t own[6] = { 2, 0, 0, 0, 0, 1 };
	uint8_t buf[T_FRAME_MAX];
	uint32_t len;

	t_ports_open(T_PORTS);
	ATF_CHECK_EQ(-1, vale_set(t_port_name(0), "source", "own"));
	ATF_CHECK_STREQ("the switch does not know the port's own address: "
	    "source must be a list", vale_error());
	vale_set_address(t_port[1], own);
	t_port_set(1, "source", "own");
	t_send_tagged(1, T_NONE, EVERYBODY, 1, 1);
	t_expect_tagged(0, T_NONE, EVERYBODY, 1, 1);
	/* It is dropped, and not learned from. */
	t_queue_tagged(1, T_NONE, EVERYBODY, 2, 2);
	t_queue_tagged(1, T_NONE, EVERYBODY, 2, 3);
	t_queue_tagged(1, T_NONE, 0, 1, 4);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[1]));
	T_COUNT(t_port[1], TX_DROP_SOURCE, 2);
	T_COUNT(t_port[1], LEARNED, 1);
	/* A tag is not looked at on a switch without VLANs. */
	t_send_tagged(1, 77, 0, 1, 5);
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[0]));
	len = t_make_tagged(buf, 60, T_NONE, 0, 1, 4);
	t_expect_bytes(t_port[0], buf, len);
	len = t_make_tagged(buf, 60, 77, 0, 1, 5);
	t_expect_bytes(t_port[0], buf, len);
	t_port_set(1, "source", "any");
	t_send_tagged(1, T_NONE, EVERYBODY, 2, 6);
	T_COUNT(t_port[1], TX_DROP_SOURCE, 2);
	t_ports_close();
}

/* A frame of IPv4 from 192.0.2.`host'. */
static void
queue_ip(unsigned int from, unsigned int host, uint32_t fraglen)
{
	uint8_t buf[64];

	t_make(buf, sizeof(buf), EVERYBODY, from, 0);
	memcpy(buf + ADDRS, (const uint8_t[]){ 8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0,
	    64, 17, 0, 0, 192, 0, 2, host, 192, 0, 2, 1 }, 22);
	t_put(t_port[from], buf, sizeof(buf), fraglen, false);
}

TEST(ip, "Frames from other IP addresses than the list's are dropped")
{
	uint8_t buf[T_FRAME_MAX];
	unsigned int n = 0;

	t_ports_open(T_PORTS);
	t_port_set(0, "ip", "192.0.2.5");
	queue_ip(0, 5, 64);
	queue_ip(0, 6, 64);
	queue_ip(0, 5, 17);
	queue_ip(0, 6, 17);
	queue_ip(0, 7, 17);
	queue_ip(0, 5, 64);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	T_COUNT(t_port[0], TX_DROP_IP, 3);
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	while (t_take_bytes(t_port[1], buf) != 0) {
		ATF_CHECK_EQ(5, buf[14 + 15]);
		n++;
	}
	ATF_CHECK_EQ(3, n);
	t_ports_close();
}

/* What a sink does: another processor of the sender changes its memory. */
static uint8_t	changed[2][64];

static void
change(void *arg __unused, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	while (frame_peek(frames, &frame)) {
		t_addr(changed[1] + 6, 9);
		memcpy(changed[1] + ADDRS, (const uint8_t[]){ 0x81, 0, 0, 20 },
		    4);
		frame_next(frames);
	}
}

TEST(memory, "What was checked is what is delivered, though the sender changes "
    "its memory meanwhile")
{
	uint8_t before[64];
	unsigned int i;

	t_ports_open(T_PORTS);
	t_port_set(0, "source", "02:00:00:00:00:00");
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "10");
	t_port_set(2, "vlan", "10");
	for (i = 1; i <= 2; i++) {
		t_send_tagged(i, T_NONE, EVERYBODY, i, 0);
		t_drain(t_port[0]);
		t_drain(t_port[3 - i]);
	}
	ATF_REQUIRE_EQ(0, vale_set_sink(t_port[1], change, NULL));
	for (i = 0; i < 2; i++) {
		t_make(changed[i], sizeof(changed[i]), i + 1, 0, i);
		t_put(t_port[0], changed[i], sizeof(changed[i]),
		    sizeof(changed[i]), true);
	}
	memcpy(before, changed[1], sizeof(before));
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	ATF_CHECK(memcmp(before, changed[1], ADDRS + 4) != 0);
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[2]));
	t_expect_bytes(t_port[2], before, sizeof(before));
	t_ports_close();
}

TEST(reserved, "Frames to 01:80:c2:00:00:00 to 0f pass, or are dropped with "
    "reserved=off")
{
	uint8_t buf[60];
	unsigned int i;
	char value[VALE_SETTING_SIZE];

	t_ports_open(T_PORTS);
	ATF_REQUIRE_EQ(0, vale_get("valet0", "reserved", value, sizeof(value)));
	ATF_CHECK_STREQ("on", value);
	for (i = 0; i <= 0x10; i++) {
		t_make(buf, sizeof(buf), EVERYBODY, 0, i);
		memcpy(buf, (const uint8_t[]){ 1, 0x80, 0xc2, 0, 0, i }, 6);
		t_put(t_port[0], buf, sizeof(buf), sizeof(buf), false);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	ATF_CHECK_EQ(0x11, t_drain(t_port[1]));
	ATF_REQUIRE_EQ(0, vale_set("valet0", "reserved", "off"));
	for (i = 0; i <= 0x10; i++) {
		t_make(buf, sizeof(buf), EVERYBODY, 0, i);
		memcpy(buf, (const uint8_t[]){ 1, 0x80, 0xc2, 0, 0, i }, 6);
		t_put(t_port[0], buf, sizeof(buf), sizeof(buf), false);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	ATF_CHECK_EQ(1, t_drain(t_port[1]));
	T_COUNT(t_port[0], TX_DROP_RESERVED, 16);
	/* In VLANs. */
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "10");
	t_make(buf, sizeof(buf), EVERYBODY, 0, 0);
	memcpy(buf, (const uint8_t[]){ 1, 0x80, 0xc2, 0, 0, 2 }, 6);
	t_put(t_port[0], buf, sizeof(buf), sizeof(buf), false);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	T_COUNT(t_port[0], TX_DROP_RESERVED, 17);
	t_ports_close();
}

TEST_PROGRAM
