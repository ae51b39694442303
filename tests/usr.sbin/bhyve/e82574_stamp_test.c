/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Time stamps of packets that the 82574L sends and receives, on a virtual
 * clock.  Messages of PTP: IEEE 1588-2002 (version 1), -2008 (version 2).
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_check.h"
#include "e82545_impl.h"

#define	ENABLE		0x10
#define	VALID		0x01
#define	TXD_STAMP	0x10		/* in a descriptor's fourth word */
#define	RXD_STAMP	0x100		/* in an extended one's status */

/* Linux's types, << 1 in TSYNCRXCTL. */
enum { L2_V2, L4_V1, L2_L4_V2, ALL = 4, EVENT_V2, NTYPES };

/* An adapter whose SYSTIM counts nanoseconds; receive descriptors extended. */
static struct host *
up(void)
{
	struct host *h = host_create_82574(HOST_RAM);

	host_wr(h, E82574_RFCTL, E82574_RFCTL_EXTEN);
	host_up(h, 64, 64, 2048);
	host_wr(h, E82574_TIMINCA, 1 << 24 | 40);
	return (h);
}

static uint64_t
stamp(struct host *h, uint32_t low)
{
	const uint32_t value = host_rd(h, low);

	return (value | (uint64_t)host_rd(h, low + 4) << 32);
}

/* Send a frame with a data descriptor, with a time stamp or without. */
static void
send_stamped(struct host *h, uint32_t upper)
{
	uint8_t frame[100];

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	tx_desc(h, tx_put(h, frame, sizeof(frame)), TXD_DATA | TXD_LAST |
	    sizeof(frame), upper);
	tx_go(h);
}

HOST_TEST(sent, up(), "A packet that asks for it gets SYSTIM; no other one "
    "until the stamp is read")
{
	uint64_t first;

	/* Not enabled. */
	host_advance(h, 1000000);
	send_stamped(h, TXD_STAMP);
	ATF_CHECK_EQ(0, host_rd(h, E82574_TSYNCTXCTL));
	host_wr(h, E82574_TSYNCTXCTL, ENABLE);
	send_stamped(h, 0);
	ATF_CHECK_EQ(ENABLE, host_rd(h, E82574_TSYNCTXCTL));
	host_wr(h, E82574_SYSTIMH, 5);
	host_advance(h, 4000);
	first = 5ULL << 32 | host_rd(h, E82574_SYSTIML);
	send_stamped(h, TXD_STAMP);
	ATF_CHECK_EQ(ENABLE | VALID, host_rd(h, E82574_TSYNCTXCTL));
	host_advance(h, 4000);
	send_stamped(h, TXD_STAMP);
	/* The guest cannot write what says so, nor the stamp. */
	host_wr(h, E82574_TSYNCTXCTL, ENABLE);
	host_wr(h, E82574_TXSTMPL, 1);
	ATF_CHECK_EQ(ENABLE | VALID, host_rd(h, E82574_TSYNCTXCTL));
	ATF_CHECK_EQ((uint32_t)first, host_rd(h, E82574_TXSTMPL));
	ATF_CHECK_EQ(ENABLE | VALID, host_rd(h, E82574_TSYNCTXCTL));
	ATF_CHECK_EQ(first, stamp(h, E82574_TXSTMPL));
	ATF_CHECK_EQ(ENABLE, host_rd(h, E82574_TSYNCTXCTL));
	send_stamped(h, TXD_STAMP);
	ATF_CHECK_EQ(ENABLE | VALID, host_rd(h, E82574_TSYNCTXCTL));
	ATF_CHECK_EQ(first + 4000, stamp(h, E82574_TXSTMPL));
	ATF_CHECK_EQ(5, host_counter(h, E82545_C_TX_FRAME));
}

/* A clock that ticks whenever it is read. */
static uint64_t
tick(void *arg)
{
	struct host *h = arg;

	return (h->now_ns += 1000);
}

/* The time stamp of a batch of `n' packets that ask for one. */
static uint64_t
batch_stamp(unsigned int n)
{
	struct host *h = up();
	struct e82545_ops ops = host_ops;
	uint8_t frame[100];
	uint64_t value;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_wr(h, E82574_TSYNCTXCTL, ENABLE);
	ops.eo_now = tick;
	h->dev->ops = &ops;
	while (n-- > 0)
		tx_desc(h, tx_put(h, frame, sizeof(frame)), TXD_DATA |
		    TXD_LAST | sizeof(frame), TXD_STAMP);
	tx_go(h);
	h->dev->ops = &host_ops;
	value = stamp(h, E82574_TXSTMPL);
	host_destroy(h);
	return (value);
}

TEST(first, "Of a batch the first packet's time counts")
{
	ATF_CHECK(batch_stamp(1) != 0);
	ATF_CHECK_EQ(batch_stamp(1), batch_stamp(3));
}

HOST_TEST(parts, up(), "A packet of several descriptors gets a time stamp if "
    "it asks for one")
{
	uint8_t frame[100];
	uint64_t gpa;
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_wr(h, E82574_TSYNCTXCTL, ENABLE);
	for (i = 0; i < 2; i++) {
		gpa = tx_put(h, frame, sizeof(frame));
		tx_desc(h, gpa, TXD_DATA | 50, i * TXD_STAMP);
		tx_desc(h, gpa + 50, TXD_DATA | TXD_LAST | 50, i * TXD_STAMP);
		tx_go(h);
		ATF_CHECK_EQ(ENABLE | i, host_rd(h, E82574_TSYNCTXCTL));
		ATF_CHECK_EQ(i + 1, host_counter(h, E82545_C_TX_FRAME));
	}
}

HOST_TEST(unsent, up(), "A packet that is not sent gets none")
{
	host_wr(h, E82574_TSYNCTXCTL, ENABLE);
	e82545_link(h->dev, false);
	send_stamped(h, TXD_STAMP);
	ATF_CHECK_EQ(ENABLE, host_rd(h, E82574_TSYNCTXCTL));
}

/* What a message is in. */
enum in { ETHER, TAGGED, UDP4, UDP6, UDP_OTHER, IP4_TCP, NOTHING };

/* Make a frame with a message; returns its length. */
static size_t
make(uint8_t *p, enum in in, unsigned int version, unsigned int message)
{
	const uint16_t port = in == UDP_OTHER ? 320 : 319;
	uint8_t *ptp;

	memset(p, 0, 128);
	host_make_frame(p, 128, host_mac, 1);
	memset(p + 14, 0, 114);
	switch (in) {
	case ETHER:
		be16enc(p + 12, 0x88f7);
		ptp = p + 14;
		break;
	case TAGGED:
		be32enc(p + 12, 0x81000005);
		be16enc(p + 16, 0x88f7);
		ptp = p + 18;
		break;
	case UDP6:
		be16enc(p + 12, 0x86dd);
		p[14] = 0x60;
		be16enc(p + 18, 52);
		p[20] = 17;
		be16enc(p + 54 + 2, port);
		ptp = p + 62;
		break;
	case NOTHING:
		return (128);
	default:
		be16enc(p + 12, 0x0800);
		p[14] = 0x45;
		be16enc(p + 16, 72);
		p[23] = in == IP4_TCP ? 6 : 17;
		be16enc(p + 34 + 2, port);
		ptp = p + 42;
		break;
	}
	ptp[1] = version;
	if (version == 1)
		ptp[32] = message;
	else
		ptp[0] = 0x10 | message;
	memcpy(ptp + 22, "\x11\x22\x33\x44\x55\x66", 6);
	be16enc(ptp + 30, 0x0102);
	return (128);
}

/* The next frame; returns whether its descriptor says that it has a stamp. */
static bool
take(struct host *h)
{
	const struct e82574_rxd *d = (void *)host_rxd(h, h->rxnext);
	const uint32_t status = le32toh(d->status);

	ATF_REQUIRE_EQ(RXD_DONE, status & RXD_DONE);
	memset(host_rxd(h, h->rxnext), 0, 16);
	host_rxd(h, h->rxnext)->addr = htole64(h->rxbuf + h->rxnext * 2048);
	h->rxnext = (h->rxnext + 1) % h->nrxd;
	h->rxtail = (h->rxtail + 1) % h->nrxd;
	host_rx_post(h);
	return ((status & RXD_STAMP) != 0);
}

/* The types that a message has a stamp with, as bits, if RXMTRL has these. */
static const struct {
	enum in		in;
	unsigned int	version, message;
	uint32_t	rxmtrl;
	unsigned int	types;
} messages[] = {
#define	ANY	(1U << ALL)
	/* Sync, Delay_Req, as Linux asks for them; Pdelay_Req, _Resp. */
	{ ETHER, 2, 0, 0x000088f7, ANY | 1 << L2_V2 | 1 << L2_L4_V2 |
	    1 << EVENT_V2 },
	{ ETHER, 2, 1, 0x000088f7, ANY | 1 << EVENT_V2 },
	{ ETHER, 2, 1, 0x010088f7, ANY | 1 << L2_V2 | 1 << L2_L4_V2 |
	    1 << EVENT_V2 },
	{ ETHER, 2, 0, 0x010088f7, ANY | 1 << EVENT_V2 },
	{ ETHER, 2, 2, 0x000088f7, ANY | 1 << L2_V2 | 1 << L2_L4_V2 |
	    1 << EVENT_V2 },
	{ TAGGED, 2, 3, 0x010088f7, ANY | 1 << L2_V2 | 1 << L2_L4_V2 |
	    1 << EVENT_V2 },
	/* Follow_Up, Announce; another version. */
	{ ETHER, 2, 8, 0x000088f7, ANY },
	{ ETHER, 2, 11, 0x000088f7, ANY },
	{ ETHER, 3, 0, 0x000088f7, ANY },
	{ UDP4, 2, 0, 0x000088f7, ANY | 1 << L2_L4_V2 | 1 << EVENT_V2 },
	{ UDP6, 2, 1, 0x010088f7, ANY | 1 << L2_L4_V2 | 1 << EVENT_V2 },
	{ UDP4, 2, 8, 0x000088f7, ANY },
	{ UDP4, 1, 0, 0x00000000, ANY | 1 << L4_V1 },
	{ UDP4, 1, 1, 0x00000000, ANY },
	{ UDP4, 1, 1, 0x00010000, ANY | 1 << L4_V1 },
	{ ETHER, 1, 0, 0x000088f7, ANY },
	{ UDP_OTHER, 2, 0, 0x000088f7, ANY },
	{ IP4_TCP, 2, 0, 0x000088f7, ANY },
	{ NOTHING, 2, 0, 0x000088f7, ANY },
};

/* The port of PTP, 319, as Linux writes it, and as it is. */
HOST_TEST(received, up(), "The messages of PTP that Linux asks for get SYSTIM, "
    "and no others")
{
	static const uint16_t ports[] = { 0x3f01, 0x013f };
	uint8_t frame[128];
	uint32_t systim;
	unsigned int i, j, type;
	bool want;

	for (i = 0; i < nitems(messages); i++) {
		host_wr(h, E82574_RXMTRL, messages[i].rxmtrl);
		for (type = 0; type < NTYPES; type++)
			for (j = 0; j < nitems(ports); j++) {
				host_wr(h, E82574_RXUDP, ports[j]);
				host_wr(h, E82574_TSYNCRXCTL, ENABLE |
				    type << 1);
				host_advance(h, 40000);
				make(frame, messages[i].in,
				    messages[i].version, messages[i].message);
				rx_receive(h, frame, sizeof(frame));
				want = (messages[i].types >> type & 1) != 0;
				ATF_CHECK_EQ_MSG(want, take(h), "%u, type %u",
				    i, type);
				ATF_CHECK_EQ_MSG(ENABLE | type << 1 | want,
				    host_rd(h, E82574_TSYNCRXCTL),
				    "%u, type %u", i, type);
				systim = host_rd(h, E82574_SYSTIML);
				if (want)
					ATF_CHECK_EQ(systim, stamp(h,
					    E82574_RXSTMPL));
			}
	}
}

HOST_TEST(one, up(), "The first of a batch gets the stamp, with its source and "
    "number; the next one when that is read")
{
	uint8_t frame[128], other[100];
	uint64_t systim;
	unsigned int i;

	host_make_frame(other, sizeof(other), host_mac, 1);
	make(frame, UDP4, 2, 0);
	host_wr(h, E82574_RXUDP, 0x3f01);
	/* Off: nothing. */
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK(!take(h));
	host_wr(h, E82574_TSYNCRXCTL, ENABLE | EVENT_V2 << 1);
	host_advance(h, 400);
	systim = host_rd(h, E82574_SYSTIML);
	for (i = 0; i < 4; i++) {
		host_inject(h, other, sizeof(other), 1);
		frame[42 + 31] = 2 + i;
		host_inject(h, frame, sizeof(frame), 3);
	}
	host_run(h);
	for (i = 0; i < 8; i++)
		ATF_CHECK_EQ_MSG(i == 1, take(h), "%u", i);
	host_advance(h, 400);
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK(!take(h));
	ATF_CHECK_EQ(0x44332211, host_rd(h, E82574_RXSATRL));
	ATF_CHECK_EQ(0x02016655, host_rd(h, E82574_RXSATRH));
	ATF_CHECK_EQ(systim, stamp(h, E82574_RXSTMPL));
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK(take(h));
	ATF_CHECK_EQ(systim + 400, stamp(h, E82574_RXSTMPL));
	/* Dropped: no stamp. */
	memset(frame, 2, 6);
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(ENABLE | EVENT_V2 << 1, host_rd(h, E82574_TSYNCRXCTL));
}

HOST_TEST(cut, up(), "A message that ends before its header does is none")
{
	static const struct {
		enum in	in;
		size_t	end;
	} rows[] = {
		{ ETHER, 48 }, { TAGGED, 52 }, { UDP4, 76 }, { UDP6, 96 }
	};
	uint8_t frame[128];
	unsigned int i;
	size_t len;

	host_wr(h, E82574_RXUDP, 0x3f01);
	host_wr(h, E82574_TSYNCRXCTL, ENABLE | EVENT_V2 << 1);
	for (i = 0; i < nitems(rows); i++)
		for (len = rows[i].end; len > 40; len--) {
			make(frame, rows[i].in, 2, 0);
			rx_receive(h, frame, len);
			ATF_CHECK_EQ_MSG(len == rows[i].end, take(h),
			    "%u: %zu", i, len);
			(void)stamp(h, E82574_RXSTMPL);
		}
}

TEST_PROGRAM
