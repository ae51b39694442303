/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The receive ring: frames, descriptors and batches.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "wait_until.h"

TEST(sizes, "Every buffer size: frames that fit exactly, and over several "
    "descriptors")
{
	static const uint32_t sizes[] =
	    { 256, 512, 1024, 2048, 4096, 8192, 16384 };
	static const size_t lens[] = {
		60, 255, 256, 257, 511, 512, 513, 1024, 1025, 1514, 2048,
		2049, 4095, 4096, 4097, 8192, 8193, 9014, E82545_FRAME_MAX
	};
#define	NLENS	(sizeof(lens) / sizeof(lens[0]))
	struct host *h;
	uint8_t frame[E82545_FRAME_MAX];
	unsigned int i, j, k, n, need;
	uint32_t first, head;
	struct e82545_rxd *rxd;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		h = rx_up(128, sizes[i]);
		host_set(h, E82545_RCTL, E82545_RCTL_LPE);
		/* As one fragment, and as several. */
		for (n = 0; n < 2 * NLENS; n++) {
			j = n % NLENS;
			need = howmany(lens[j], sizes[i]);
			first = host_rd(h, E82545_RDH);
			host_make_frame(frame, lens[j], host_mac, n);
			host_inject(h, frame, lens[j],
			    n < NLENS ? 1 : 2 + j * 3);
			host_run(h);
			head = host_rd(h, E82545_RDH);
			ATF_CHECK_EQ((first + need) % 128, head);
			for (k = 0; k < need; k++) {
				rxd = host_rxd(h, (first + k) % 128);
				ATF_CHECK_EQ((k < need - 1 ? E82545_RXD_DD :
				    RXD_DONE | E82545_RXD_IXSM), rxd->status);
				if (k < need - 1)
					ATF_CHECK_EQ(sizes[i], rxd->length);
			}
			check_taken(h, frame, lens[j]);
			host_rx_post(h);
		}
		ATF_CHECK_EQ(n, host_counter(h, E82545_C_RX_FRAME));
		host_destroy(h);
	}
#undef NLENS
}

HOST_TEST(batch, rx_up(1024, 256), "A batch is 256 frames, one sync and one "
    "interrupt")
{
	uint8_t frame[64];
	unsigned int i, raised;

	for (i = 0; i < 600; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		host_inject(h, frame, sizeof(frame), 1);
	}
	raised = host_raised(h);
	for (i = 1; i <= 3; i++) {
		ATF_CHECK_EQ(i < 3 ? E82545_RX_MORE : E82545_RX_IDLE,
		    e82545_rx(h->dev));
		/* The last one returns its frames' space. */
		ATF_CHECK_EQ(i + i / 3, h->nsync);
		ATF_CHECK_EQ(MIN(i * 256, 600), host_rd(h, E82545_RDH));
		ATF_CHECK_EQ(600 - MIN(i * 256, 600), host_rx_pending(h));
		ATF_CHECK_EQ(raised + i, host_raised(h));
		host_rd(h, E82545_ICR);
	}
	ATF_CHECK_EQ(3, host_counter(h, E82545_C_RX_BATCH));
	ATF_CHECK_EQ(0, h->rx_unsynced);
	ATF_CHECK_EQ(raised + 3, host_raised(h));
	for (i = 0; i < 600; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		check_taken(h, frame, sizeof(frame));
	}
}

TEST(threshold, "RXDMT0 is set when the free descriptors fall to RDMTS")
{
	struct host *h;
	uint8_t frame[60];
	unsigned int i, rdmts;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	/* 3 is reserved: as 2. */
	for (rdmts = 0; rdmts < 4; rdmts++) {
		h = rx_up(64, 256);
		host_set(h, E82545_RCTL, rdmts << 8);
		/* 63 are free; the limits are 32, 16 and 8. */
		for (i = 1; i <= 63; i++) {
			rx_receive(h, frame, sizeof(frame));
			ATF_CHECK_EQ_MSG(63 - i == 64u >> MIN(rdmts + 1, 3),
			    (host_rd(h, E82545_ICR) & E82545_ICR_RXDMT0) != 0,
			    "rdmts %u, %u received", rdmts, i);
		}
		host_destroy(h);
	}
}

HOST_TEST(states, rx_up(64, 256), "Receiver off, no link, paused")
{
	uint8_t frame[60];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	for (i = 0; i < 300; i++)
		host_inject(h, frame, sizeof(frame), 1);
	ATF_CHECK_EQ(E82545_RX_MORE, e82545_rx(h->dev));
	ATF_CHECK_EQ(44, host_rx_pending(h));
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(300, host_counter(h, E82545_C_RX_DISABLED));
	check_none(h);
	ATF_CHECK_EQ(0, host_rd(h, E82545_TPR));
	host_set(h, E82545_RCTL, E82545_RCTL_EN);
	e82545_link(h->dev, false);
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(301, host_counter(h, E82545_C_RX_DISABLED));
	e82545_link(h->dev, true);
	e82545_pause(h->dev);
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	check_none(h);
	e82545_resume(h->dev);
	host_run(h);
	check_taken(h, frame, sizeof(frame));
}

HOST_TEST(short_address, rx_up(64, 256), "A frame shorter than an address is "
    "filtered as if zeros followed")
{
	static const uint8_t frame[3] = { 0x02, 0x04, 0x06 };

	host_wr(h, E82545_RAL(1), 0x00060402);
	rx_receive(h, frame, sizeof(frame));
	check_none(h);
	host_wr(h, E82545_RAH(1), E82545_RAH_AV);
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_FRAME));
}

HOST_TEST(inexact, rx_up(64, 256), "PIF is set if only the hash passed, in how "
    "many fragments the frame may be")
{
	static const uint8_t group[6] = { 0x01, 0x00, 0x5e, 1, 2, 3 };
	struct e82545_rxd rxd;
	uint8_t frame[100];
	unsigned int i;
	int n;

	for (i = 0; i < E82545_MTA_COUNT; i++)
		host_wr(h, E82545_MTA + 4 * i, UINT32_MAX);
	for (n = 1; n < 5; n++) {
		host_make_frame(frame, sizeof(frame), group, n);
		host_inject(h, frame, sizeof(frame), n);
		host_run(h);
		rxd = check_taken(h, frame, sizeof(frame));
		ATF_CHECK_EQ(RXD_DONE | E82545_RXD_PIF,
		    rxd.status & (RXD_DONE | E82545_RXD_PIF));
		host_make_frame(frame, sizeof(frame), host_mac, n);
		host_inject(h, frame, sizeof(frame), n);
		host_run(h);
		rxd = check_taken(h, frame, sizeof(frame));
		ATF_CHECK_EQ(0, rxd.status & E82545_RXD_PIF);
	}
}

HOST_TEST(short_tag, rx_up(64, 256), "A tag is stripped if all of it and a "
    "type are there")
{
	struct e82545_rxd rxd;
	uint8_t frame[60], want[60];
	size_t len;

	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	be32enc(frame + 12, 0x81001234);
	for (len = 14; len < 22; len++) {
		rx_receive(h, frame, len);
		memset(want, 0, sizeof(want));
		memcpy(want, frame, len);
		if (len >= 18)
			memmove(want + 12, want + 16, sizeof(want) - 16);
		rxd = check_taken(h, want, len >= 18 ? 56 : 60);
		ATF_CHECK_EQ_MSG(len >= 18, (rxd.status & E82545_RXD_VP) != 0,
		    "%zu", len);
		ATF_CHECK_EQ(len >= 18 ? 0x1234 : 0, le16toh(rxd.special));
	}
}

HOST_TEST(null_last, rx_up(8, 256), "The last descriptor of the ring has no "
    "buffer: it is as it was, with DD, and the frame is in the next")
{
	struct e82545_rxd *rxd;
	uint8_t frame[100];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 7; i++) {
		rx_receive(h, frame, sizeof(frame));
		check_taken(h, frame, sizeof(frame));
	}
	host_rx_post(h);
	rxd = host_rxd(h, 7);
	rxd->addr = 0;
	rxd->length = htole16(0x1234);
	rxd->csum = htole16(0x5678);
	rxd->errors = 0x9a;
	rxd->special = htole16(0xbcde);
	host_inject(h, frame, sizeof(frame), 2);
	host_run(h);
	ATF_CHECK_EQ(0, rxd->addr);
	ATF_CHECK_EQ(0x1234, le16toh(rxd->length));
	ATF_CHECK_EQ(0x5678, le16toh(rxd->csum));
	ATF_CHECK_EQ(E82545_RXD_DD, rxd->status);
	ATF_CHECK_EQ(0x9a, rxd->errors);
	ATF_CHECK_EQ(0xbcde, le16toh(rxd->special));
	ATF_CHECK_EQ(1, host_rd(h, E82545_RDH));
	ATF_CHECK_EQ(RXD_DONE, host_rxd(h, 0)->status & RXD_DONE);
	ATF_CHECK_EQ(sizeof(frame), le16toh(host_rxd(h, 0)->length));
	ATF_CHECK_EQ(0, memcmp(frame, host_mem(h, h->rxbuf, sizeof(frame)),
	    sizeof(frame)));
	/* The same with a frame of one fragment. */
	host_rxd(h, 1)->addr = 0;
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(E82545_RXD_DD, host_rxd(h, 1)->status);
	ATF_CHECK_EQ(RXD_DONE, host_rxd(h, 2)->status & RXD_DONE);
	ATF_CHECK_EQ(3, host_rd(h, E82545_RDH));
}

TEST(null_batch, "A batch passes over 1024 descriptors without buffers, or "
    "fewer and 256 frames of one buffer each")
{
	uint8_t frame[300];
	struct host *h;
	unsigned int buffers, i;

	for (buffers = 1; buffers <= 2; buffers++) {
		h = rx_up(2048, 256);
		for (i = 0; i < 1023; i++)
			host_rxd(h, i)->addr = 0;
		host_make_frame(frame, sizeof(frame), host_mac, 1);
		for (i = 0; i < 300; i++)
			host_inject(h, frame, buffers == 1 ? 60 : 300, 2);
		ATF_CHECK_EQ(E82545_RX_MORE, e82545_rx(h->dev));
		ATF_CHECK_EQ(buffers == 1 ? 1023 + 256 : 1023,
		    host_rd(h, E82545_RDH));
		host_run(h);
		ATF_CHECK_EQ(1023 + 300 * buffers, host_rd(h, E82545_RDH));
		host_destroy(h);
	}
}

TEST(null_restart, "A frame that waited for more than all of the descriptors "
    "goes into the ring that a guest starts, after a reset or without one")
{
	uint32_t rctl, rdbal;
	uint64_t addr[64];
	uint8_t frame[100];
	unsigned int i, reset;
	struct host *h;

	for (reset = 0; reset < 2; reset++) {
		h = rx_up(64, 256);
		rctl = host_rd(h, E82545_RCTL);
		rdbal = host_rd(h, E82545_RDBAL);
		for (i = 0; i < 64; i++) {
			addr[i] = host_rxd(h, i)->addr;
			host_rxd(h, i)->addr = 0;
		}
		host_make_frame(frame, sizeof(frame), host_mac, 1);
		host_inject(h, frame, sizeof(frame), 2);
		ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
		if (reset != 0)
			host_wr(h, E82545_CTRL, E82545_CTRL_RST);
		host_wr(h, E82545_RCTL, rctl);
		for (i = 0; i < 64; i++)
			host_rxd(h, i)->addr = addr[i];
		host_wr(h, E82545_RDBAL, rdbal);
		host_wr(h, E82545_RDLEN, 64 * sizeof(struct e82545_rxd));
		host_wr(h, E82545_RDH, 0);
		host_wr(h, E82545_RDT, 60);
		/* The host has been asked to call e82545_rx(). */
		ATF_CHECK(!h->dev->rx_wait.stalled);
		host_run(h);
		ATF_CHECK_EQ(1, host_rd(h, E82545_RDH));
		ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_FRAME));
		host_destroy(h);
	}
}

static uint64_t odd_gpa;

/* The host has mapped one page elsewhere. */
static void *
map_odd(void *arg, uint64_t gpa, size_t len, unsigned int access)
{
	uint8_t *p = host_ops.eo_map(arg, gpa, len, access);

	return (gpa == odd_gpa && p != NULL ? p + 4 : p);
}

HOST_TEST(misaligned, rx_up(64, 2048), "A ring that the host has mapped to an "
    "address which atomic operations cannot have is none")
{
	static struct e82545_ops ops;
	uint8_t frame[100];

	ops = host_ops;
	ops.eo_map = map_odd;
	odd_gpa = h->rxring;
	h->dev->ops = &ops;
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_inject(h, frame, sizeof(frame), 1);
	ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_BAD_RING));
	ATF_CHECK_EQ(1, host_rx_pending(h));
}

TEST(tail_beyond, "RDT equal to the number of descriptors or greater is never "
    "reached: frames go into all descriptors, round after round")
{
	static const uint32_t tails[] = { 64, 65, 65535 };
	uint8_t frame[60];
	struct host *h;
	unsigned int i, n;

	for (i = 0; i < nitems(tails); i++) {
		h = rx_up(64, 256);
		host_wr(h, E82545_RDH, 5);
		host_wr(h, E82545_RDT, tails[i]);
		for (n = 1; n <= 200; n++) {
			host_make_frame(frame, sizeof(frame), host_mac, n);
			host_inject(h, frame, sizeof(frame), 1);
		}
		/* A batch takes one round. */
		ATF_CHECK_EQ(E82545_RX_MORE, e82545_rx(h->dev));
		ATF_CHECK_EQ(5, host_rd(h, E82545_RDH));
		ATF_CHECK_EQ(200 - 64, host_rx_pending(h));
		host_run(h);
		ATF_CHECK_EQ(0, host_rx_pending(h));
		ATF_CHECK_EQ((5 + 200) % 64, host_rd(h, E82545_RDH));
		ATF_CHECK_EQ(tails[i], host_rd(h, E82545_RDT));
		/* The last 64 are there. */
		for (n = 200; n > 200 - 64; n--) {
			host_make_frame(frame, sizeof(frame), host_mac, n);
			ATF_CHECK_EQ(0, memcmp(frame, host_mem(h,
			    host_rxd(h, (5 + n - 1) % 64)->addr, 60), 60));
		}
		ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_BAD_RING));
		ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_STALL));
		/* A smaller index is reached. */
		host_wr(h, E82545_RDT, 15);
		for (n = 0; n < 10; n++)
			host_inject(h, frame, sizeof(frame), 1);
		host_run(h);
		ATF_CHECK_EQ(15, host_rd(h, E82545_RDH));
		ATF_CHECK_EQ(8, host_rx_pending(h));
		host_destroy(h);
	}
}

HOST_TEST(tail_beyond_long, rx_up(8, 256), "With such an RDT frames of several "
    "buffers pass the end of the ring, and RXDMT0 comes each half")
{
	uint8_t frame[700];
	unsigned int n;

	host_wr(h, E82545_RDT, 8);
	host_rd(h, E82545_ICR);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (n = 1; n <= 9; n++) {
		rx_receive(h, frame, sizeof(frame));
		ATF_CHECK_EQ_MSG(3 * n % 8, host_rd(h, E82545_RDH), "%u", n);
		/* From 3 to 6, 1 to 4, 2 to 5: four are left, or less. */
		ATF_CHECK_EQ_MSG(3 * (n - 1) % 8 < 4 && 3 * (n - 1) % 8 > 0,
		    (host_rd(h, E82545_ICR) & E82545_ICR_RXDMT0) != 0, "%u", n);
	}
	ATF_CHECK_EQ(9, host_counter(h, E82545_C_RX_FRAME));
}

HOST_TEST(bad_middle, rx_up(8, 256), "A buffer outside guest memory loses its "
    "own bytes only; descriptors before the last say no more than DD")
{
	struct e82545_rxd *rxd;
	uint8_t frame[700];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_rxd(h, 1)->addr = htole64(1ULL << 40);
	rx_receive(h, frame, sizeof(frame));
	for (i = 0; i < 2; i++) {
		rxd = host_rxd(h, i);
		ATF_CHECK_EQ(256, le16toh(rxd->length));
		ATF_CHECK_EQ(0, rxd->csum);
		ATF_CHECK_EQ(E82545_RXD_DD, rxd->status);
		ATF_CHECK_EQ(0, rxd->errors);
		ATF_CHECK_EQ(0, rxd->special);
	}
	rxd = host_rxd(h, 2);
	ATF_CHECK_EQ(700 - 512, le16toh(rxd->length));
	ATF_CHECK_EQ(E82545_RXD_ERR_RXE, rxd->errors & E82545_RXD_ERR_RXE);
	ATF_CHECK_EQ(0, memcmp(frame, host_mem(h, h->rxbuf, 256), 256));
	ATF_CHECK_EQ(0, memcmp(frame + 512, host_mem(h, h->rxbuf + 512, 188),
	    188));
}

/*
 * A ring without descriptors: frames wait until some are posted.
 */

HOST_TEST(race, rx_up(8, 256), "Descriptors added while the ring runs empty "
    "are seen")
{
	uint8_t buf[256], frame[64];
	unsigned int in, out;
	ssize_t len;

	host_start_threads(h);
	in = out = 0;
	while (out < 20000) {
		/* Always more waiting than fit. */
		while (in < 20000 && in - out < 40) {
			host_make_frame(frame, sizeof(frame), host_mac, in);
			be32enc(frame + 14, in++);
			host_inject(h, frame, sizeof(frame), 1);
		}
		/* After a lost wakeup no frame comes. */
		wait_until((len = host_rx_take(h, buf, sizeof(buf),
		    NULL)) != -1, "%u of %u frames received", out, in);
		ATF_REQUIRE_EQ(64, len);
		ATF_REQUIRE_EQ(out, be32dec(buf + 14));
		out++;
		host_rx_post(h);
	}
	host_stop_threads(h);
	ATF_CHECK(host_counter(h, E82545_C_RX_STALL) > 0);
	ATF_CHECK_EQ(20000, host_counter(h, E82545_C_RX_FRAME));
}

HOST_TEST(bad_head, rx_up(8, 256), "RDH outside the ring ends no stall, a "
    "valid one does")
{
	uint8_t frame[60];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 8; i++)
		rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	h->nready = 0;
	host_wr(h, E82545_RDH, 8);
	host_wr(h, E82545_RDH, 9);
	host_wr(h, E82545_RDH, 0xffff);
	ATF_CHECK_EQ(0, h->nready);
	host_wr(h, E82545_RDH, 0);
	ATF_CHECK_EQ(1, h->nready);
}

/*
 * VLAN tags are stripped, checksums verified.
 */

HOST_TEST(checksum, rx_up(64, 256), "IPCS, TCPCS, IPE, TCPE of valid and "
    "corrupted packets")
{
	struct e82545_rxd last;
	uint8_t frame[PACKET_HDR_MAX + 600], payload[600], want;
	struct packet p;
	unsigned int i, spoil;
	size_t len;

	host_wr(h, E82545_RXCSUM, RXCSUM_ON);
	for (i = 0; i < sizeof(payload); i++)
		payload[i] = i * 11;
	for (i = 0; i < 24 * 3; i++) {
		spoil = i / 24;
		memset(&p, 0, sizeof(p));
		p.v6 = i & 1;
		p.udp = i & 2;
		p.vlan = i & 4;
		p.payload = payload;
		p.paylen = i % 24 < 8 ? 0 : i % 24 < 16 ? 1 : 600;
		len = packet_build(&p, frame);
		want = 0;
		if (spoil == 1) {
			frame[packet_l4(&p) + 1] ^= 1;
			want = E82545_RXD_ERR_TCPE;
		} else if (spoil == 2 && !p.v6) {
			frame[packet_l3(&p) + 1] ^= 4;
			want = E82545_RXD_ERR_IPE;
		}
		host_inject(h, frame, len, 1 + i % 7);
		host_run(h);
		if (len < 60) {
			memset(frame + len, 0, 60 - len);
			len = 60;
		}
		last = check_taken(h, frame, len);
		ATF_CHECK_EQ_MSG(RXD_DONE | E82545_RXD_TCPCS |
		    (p.v6 ? 0 : E82545_RXD_IPCS), last.status, "case %u", i);
		ATF_CHECK_EQ_MSG(want, last.errors, "case %u", i);
		ATF_CHECK_EQ(packet_sum(frame, len), last.csum);
		host_rx_post(h);
	}
	/* Another protocol, however much it looks like IPv6. */
	p = (struct packet){ .v6 = true, .payload = payload, .paylen = 600 };
	len = packet_build(&p, frame);
	be16enc(frame + 12, 0x88b5);
	rx_receive(h, frame, len);
	last = check_taken(h, frame, len);
	ATF_CHECK_EQ(RXD_DONE | E82545_RXD_IXSM, last.status);
	be16enc(frame + 12, 0x86dd);
	/* All off: IXSM is set. */
	host_wr(h, E82545_RXCSUM, 0);
	rx_receive(h, frame, len);
	last = check_taken(h, frame, len);
	ATF_CHECK_EQ(RXD_DONE | E82545_RXD_IXSM, last.status);
	/* PCSS. */
	host_wr(h, E82545_RXCSUM, 14);
	rx_receive(h, frame, len);
	last = check_taken(h, frame, len);
	ATF_CHECK_EQ(packet_sum(frame + 14, len - 14), last.csum);
}

HOST_TEST(strip_checksum, rx_up(64, 2048), "The sums of a frame are verified "
    "with its tag, and it has none in the ring")
{
	struct e82545_rxd last;
	uint8_t frame[PACKET_HDR_MAX + 100], payload[100];
	struct packet p = { .vlan = true, .tag = 5, .payload = payload,
	    .paylen = sizeof(payload) };
	size_t len;

	packet_fill(payload, sizeof(payload), 1);
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	host_wr(h, E82545_RXCSUM, RXCSUM_ON);
	len = packet_build(&p, frame);
	rx_receive(h, frame, len);
	memmove(frame + 12, frame + 16, len - 16);
	last = check_taken(h, frame, len - 4);
	ATF_CHECK_EQ(RXD_DONE | E82545_RXD_VP | E82545_RXD_IPCS |
	    E82545_RXD_TCPCS, last.status);
	ATF_CHECK_EQ(0, last.errors);
	ATF_CHECK_EQ(packet_sum(frame, len - 4), last.csum);
}

TEST_PROGRAM
