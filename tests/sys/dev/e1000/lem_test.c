/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See lem_test.h.
 */

#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "lem_test.h"

#define	TEST_RAM	(32u << 20)	/* bytes */
#define	TEST_TXBUF	16384		/* the same */

const uint8_t test_peer[6] = { 0x02, 0, 0, 0, 0, 0x99 };

static uint32_t
test_reg_read(void *arg, uint32_t reg)
{
	return (host_rd(arg, reg));
}

static void
test_reg_write(void *arg, uint32_t reg, uint32_t value)
{
	host_wr(arg, reg, value);
}

static struct lem_test *
create(enum e82545_kind kind, uint32_t bufsize)
{
	struct e82545_config config;
	struct lem_test *t;

	t = calloc(1, sizeof(*t));
	ATF_REQUIRE(t != NULL);
	t->h = host_create(TEST_RAM);
	e82545_destroy(t->h->dev);
	memset(&config, 0, sizeof(config));
	memcpy(config.ec_mac, host_mac, sizeof(host_mac));
	config.ec_kind = kind;
	config.ec_csb = E82545_CSB_ON;
	config.ec_name = "test";
	t->h->dev = e82545_create(&config, &host_ops, t->h, &t->h->port);
	ATF_REQUIRE(t->h->dev != NULL);
	e82545_bus_master(t->h->dev, true);
	ATF_REQUIRE(guest_init(&t->g, t->h->ram, 4096, TEST_RAM, TEST_RING,
	    TEST_RING, TEST_TXBUF, bufsize, true) != 0);
	t->g.lc.lc_os.reg_read = test_reg_read;
	t->g.lc.lc_os.reg_write = test_reg_write;
	t->g.lc.lc_os.arg = t->h;
	return (t);
}

struct lem_test *
test_create_down(uint32_t bufsize)
{
	return (create(E82545_KIND_EM, bufsize));
}

/* Start the driver. */
static struct lem_test *
up(struct lem_test *t, uint32_t mode, uint32_t mtu)
{
	ATF_REQUIRE_EQ(0, lem_set_mode(&t->g.lc, mode));
	ATF_REQUIRE_EQ(0, guest_up(&t->g, mtu));
	test_settle(t);
	(void)test_exits(t);
	(void)test_raised(t);
	return (t);
}

struct lem_test *
test_create(uint32_t mode, uint32_t bufsize, uint32_t mtu)
{
	return (up(test_create_down(bufsize), mode, mtu));
}

struct lem_test *
test_create_msix(uint32_t mode)
{
	struct lem_test *t;

	t = create(E82545_KIND_82574L, 2048);
	e82545_msix(t->h->dev, true);
	t->g.lc.lc_irq = LEM_IRQ_MSIX;
	return (up(t, mode, 1500));
}

void
test_destroy(struct lem_test *t)
{
	lem_stop(&t->g.lc);
	ATF_CHECK(lem_tx_idle(&t->g.lc));
	ATF_CHECK_EQ(t->g.sent, t->g.lc.lc_os.tx_done);
	ATF_CHECK_EQ(0, t->g.lc.lc_os.misuses);
	host_destroy(t->h);
	free(t);
}

void
test_send(struct lem_test *t, unsigned int n, size_t len)
{
	while (n-- > 0) {
		ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, len));
		lem_tx_flush(&t->g.lc);
	}
}

void
test_inject(struct lem_test *t, unsigned int n, size_t len)
{
	uint8_t frame[16384];

	while (n-- > 0) {
		host_make_frame(frame, len, t->g.mac, 0);
		memcpy(frame + 14, &t->injected, sizeof(t->injected));
		t->injected++;
		host_inject(t->h, frame, len, 1);
	}
}

/* How many messages of MSI-X were sent. */
static unsigned int
messages(struct lem_test *t)
{
	unsigned int i, n = 0;

	for (i = 0; i < E82574_VECTORS; i++)
		n += t->h->nmessages[i];
	return (n);
}

void
test_settle(struct lem_test *t)
{
	unsigned int i, n;

	for (i = 0; i < 1000; i++) {
		host_run(t->h);
		n = messages(t);
		if (!host_line(t->h) && n == t->served)
			return;
		t->served = n;
		if (!guest_interrupt(&t->g, 64))
			return;
	}
	atf_tc_fail("interrupts without end");
}

uint64_t
test_exits(struct lem_test *t)
{
	uint64_t before = t->exits;

	t->exits = guest_exits(&t->g);
	return (t->exits - before);
}

unsigned int
test_raised(struct lem_test *t)
{
	unsigned int before = t->raised;

	t->raised = host_raised(t->h) + messages(t);
	return (t->raised - before);
}

void
test_check_sent(struct lem_test *t, size_t len)
{
	const struct host_frame *f;
	unsigned int i;
	uint64_t number;

	ATF_REQUIRE_EQ(t->g.sent, host_sent(t->h));
	for (i = 0; i < t->g.sent; i++) {
		f = host_sent_frame(t->h, i);
		ATF_REQUIRE_EQ(len, f->len);
		memcpy(&number, f->data + 14, sizeof(number));
		ATF_REQUIRE_EQ(i, number);
	}
}

void
test_check_received(struct lem_test *t)
{
	ATF_CHECK_EQ(t->injected, t->g.received);
	ATF_CHECK_EQ(0, t->g.missing);
	ATF_CHECK_EQ(0, t->g.wrong);
	ATF_CHECK_EQ(t->g.received, t->g.lc.lc_counter[LEM_C_RX_PACKET]);
}
