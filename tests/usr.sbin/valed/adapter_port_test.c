/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An adapter is changed while it runs: its settings, and its port.
 */

#include <sys/param.h>
#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_calls.h"
#include "event_stub.h"
#include "open_fds.h"
#include "said.h"
#include "libvale.h"
#include "test.h"
#include "vale_setting.h"

static void
put(uint32_t reg, uint32_t value)
{
	e82545_write(ad->dev, E82545_BAR_MEM, reg, 4, value);
}

static void
watch(struct adapter *ending)
{
	ATF_CHECK_EQ(NULL, ending);
}

TEST(change, "A change in place is made once, by the adapter's thread")
{
	struct adapter_config new;

	start();
	new = config;
	calls[0] = '\0';
	new.ac_itr_256ns = 5;
	new.ac_itr_min_256ns = 6;
	new.ac_poll_us = 7;
	polls_ns = 1;
	adapter_change(ad, &new);
	new.ac_mtu = 1500;
	adapter_change(ad, &new);
	ATF_CHECK(ad->work_posted != 0);
	ATF_CHECK(strstr(calls, "change") == NULL);
	ATF_CHECK(events_step() >= 1);
	ATF_CHECK(strstr(calls, "change") != NULL);
	ATF_CHECK_EQ(5, changed[0]);
	ATF_CHECK_EQ(6, changed[1]);
	ATF_CHECK_EQ(1500 + E82545_HDRLEN_MAX, changed[2]);
	ATF_CHECK_EQ(7000, polls_ns);
	calls[0] = '\0';
	(void)events_step();
	ATF_CHECK(strstr(calls, "change") == NULL);
	new.ac_mtu = 0;
	adapter_change(ad, &new);
	ATF_CHECK(events_step() >= 1);
	ATF_CHECK_EQ(UINT32_MAX, changed[2]);
}

/* Move the adapter. */
static int
move(const char *port, const char *name)
{
	struct adapter_config new = config;
	int error;

	strlcpy(new.ac_backend, port, sizeof(new.ac_backend));
	strlcpy(new.ac_name, name, sizeof(new.ac_name));
	strlcpy(new.ac_where, "f:2", sizeof(new.ac_where));
	new.ac_listen = -1;
	calls[0] = '\0';
	stepping = true;
	error = adapter_move(ad, &new, watch);
	stepping = false;
	return (error);
}

/* Whether there is a port. */
static bool
is_port(const char *name)
{
	uint64_t counters[VALE_NCOUNTERS];

	return (vale_port_counters(name, counters) == 0);
}

static void
send_frame(struct vale_desc *d, uint8_t byte)
{
	struct netmap_slot *slot = &d->txring->slot[d->txring->head];
	char *buf = NETMAP_BUF(d->txring, slot->buf_idx);

	memset(buf, 0xff, 6);
	memset(buf + 6, byte, 54);
	slot->len = 60;
	slot->flags = 0;
	d->txring->head = d->txring->cur = nm_ring_next(d->txring,
	    d->txring->head);
	ATF_REQUIRE_EQ(0, vale_txsync(d));
}

static struct vale_desc *other;

/* To both ports of an adapter that is moved. */
static void
send_to_both(void)
{
	ATF_CHECK(is_port("vale0:a") && is_port("vale0:b"));
	send_frame(other, 1);
}

/* Whether a frame waits in the adapter's port. */
static bool
waits(void)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	frame_port_sync(ad->net.an_port);
	return (frame_peek(ad->net.an_port->fp_source, &frame));
}

TEST(move, "An adapter is moved to another port, and what came to both is "
    "dropped; the old one goes when the model does not use it any more")
{
	unsigned int fds;

	config.ac_direct = true;
	start();
	fds = open_fds();
	other = vale_open("vale0:other", NULL);
	ATF_REQUIRE(other != NULL);
	ATF_CHECK(sink != NULL);
	sink = NULL;
	close_hook = send_to_both;
	ATF_CHECK_EQ(0, move("vale0:b", "b"));
	close_hook = NULL;
	ATF_CHECK(!waits());
	send_frame(other, 2);
	ATF_CHECK(waits());
	vale_close(other);
	ATF_CHECK_STREQ("no sink;move;no port;change;sink;flush;flush;", calls);
	ATF_CHECK(sink != NULL && sink_arg == ad);
	ATF_CHECK(!is_port("vale0:a") && is_port("vale0:b"));
	ATF_CHECK_STREQ("vale0:b", addressed);
	ATF_CHECK_EQ(0, memcmp(config.ac_mac, address, sizeof(address)));
	ATF_CHECK_STREQ("vale0:b", ad->config.ac_backend);
	ATF_CHECK_STREQ("b", ad->config.ac_name);
	ATF_CHECK_STREQ("b", e82545_name(ad->dev));
	ATF_CHECK_EQ(config.ac_listen, ad->config.ac_listen);
	ATF_CHECK(ad->net.an_port->fp_offloads);
	/* Its frames are looked for. */
	ATF_CHECK_EQ(1, rx_calls);
	/* To nowhere, and back. */
	ATF_CHECK_EQ(0, move("none", "b"));
	ATF_CHECK(!is_port("vale0:b"));
	ATF_CHECK_EQ(0, move("vale1:c", "c"));
	ATF_CHECK(is_port("vale1:c"));
	ATF_CHECK_EQ(fds, open_fds());
	ATF_CHECK_EQ(3, events_used() - 1);
}

TEST(move_link, "The guest sees the link of the new port, and no change if "
    "that is the same")
{
	const struct vale_setting_change down = { .sc_preset = true,
	    .sc_setting = VALE_SETTING_LINK, .sc_value.sv_text = "down" };
	unsigned int failed;

	start();
	put(E82545_CTRL, E82545_CTRL_SLU);
	(void)e82545_read(ad->dev, E82545_BAR_MEM, E82545_ICR, 4);
	ATF_CHECK_EQ(0, move("vale0:b", "b"));
	ATF_CHECK_EQ(0, e82545_read(ad->dev, E82545_BAR_MEM, E82545_ICR, 4) &
	    E82545_ICR_LSC);
	ATF_REQUIRE_EQ(0, vale_setting_preset_all("vale0:c", &down, 1,
	    &failed));
	ATF_CHECK_EQ(0, move("vale0:c", "c"));
	ATF_CHECK_EQ(E82545_ICR_LSC, e82545_read(ad->dev, E82545_BAR_MEM,
	    E82545_ICR, 4) & E82545_ICR_LSC);
	ATF_CHECK_EQ(0, e82545_read(ad->dev, E82545_BAR_MEM, E82545_STATUS, 4) &
	    E82545_STATUS_LU);
	ATF_CHECK_EQ(0, move("vale0:d", "d"));
	ATF_CHECK_EQ(E82545_STATUS_LU, e82545_read(ad->dev, E82545_BAR_MEM,
	    E82545_STATUS, 4) & E82545_STATUS_LU);
}

TEST(move_fails, "An adapter that cannot be moved is as it was")
{
	struct vale_desc *d = vale_open("vale0:b", NULL);
	unsigned int fds, used;
	const char *text;

	config.ac_direct = true;
	start();
	fds = open_fds();
	used = events_used();
	said_start();
	ATF_CHECK_EQ(EIO, move("vale0:b", "b"));
	ATF_CHECK_STREQ("none;flush;flush;", calls);
	text = said();
	ATF_CHECK_MSG(strstr(text, ": f:2: backend=vale0:b: the port is open "
	    "already\n") != NULL, "%s", text);
	fail_at = "address";
	said_start();
	ATF_CHECK_EQ(ENOBUFS, move("vale0:c", "c"));
	ATF_CHECK_STREQ("no port;flush;flush;", calls);
	text = said();
	ATF_CHECK_MSG(strstr(text, ": a: address of the port: ") != NULL, "%s",
	    text);
	fail_at = NULL;
	events_fail = 1;
	ATF_CHECK_EQ(EIO, move("vale0:c", "c"));
	ATF_CHECK(is_port("vale0:a") && !is_port("vale0:c"));
	ATF_CHECK_STREQ("vale0:a", ad->config.ac_backend);
	ATF_CHECK_STREQ("a", ad->config.ac_name);
	ATF_CHECK(sink != NULL);
	ATF_CHECK_EQ(fds, open_fds());
	ATF_CHECK_EQ(used, events_used());
	vale_close(d);
	ATF_CHECK_EQ(0, move("vale0:b", "b"));
}

TEST_PROGRAM
