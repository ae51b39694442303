/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The two receive queues of the 82574L: batches, stalls, causes, bad rings.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "e82574_two.h"

HOST_TEST(batches, two_up(64), "Frames for both queues in a batch, of one "
    "buffer and of several: each in order, and counted once")
{
	static uint8_t frame[2][5000];
	unsigned int i, n[2] = { 0, 0 };
	struct e82574_rxd d;
	uint32_t at;

	for (i = 0; i < 2; i++) {
		two_frame_for(i, frame[i]);
		be16enc(frame[i] + 16, 4986);
	}
	for (i = 0; i < 30; i++) {
		uint8_t *f = frame[i % 3 == 0];

		f[4500] = f[50] = n[i % 3 == 0]++;
		host_inject(h, f, i % 5 == 0 ? 5000 : 100, 1 + i % 2);
	}
	ATF_CHECK_EQ(E82545_RX_IDLE, e82545_rx(h->dev));
	ATF_CHECK_EQ(0, host_rx_pending(h));
	for (i = at = 0; i < 2; i++) {
		const uint64_t buf = i == 0 ? h->rxbuf : two_buf1;
		unsigned int k = 0;

		for (at = 0; at < host_rd(h, i == 0 ? E82545_RDH : RDH1);
		    at++) {
			d = two_desc(h, i, at);
			ATF_CHECK((d.status & E82545_RXD_DD) != 0);
			if ((d.status & E82545_RXD_EOP) == 0) {
				ATF_CHECK_EQ(0, d.mrq | d.ip_id | d.csum);
				ATF_CHECK_EQ(2048, d.length);
				continue;
			}
			ATF_CHECK_EQ(i << 8 | 1, d.mrq);
			ATF_CHECK_EQ(two_vectors[i == 0 ? 0 : 3].hash_tcp >> 16,
			    d.csum);
			ATF_CHECK_EQ(k, *(uint8_t *)host_mem(h, buf + at *
			    2048 + (d.length == 100 ? 50 : 4500 - 4096), 1));
			k++;
		}
		ATF_CHECK_EQ(n[i], k);
	}
	ATF_CHECK_EQ(20, n[0]);
	ATF_CHECK_EQ(30, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(30, host_rd(h, 0x4074));	/* GPRC */
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_RX_BATCH));
}

HOST_TEST(stall, two_up(8), "A queue without descriptors holds up the frames "
    "behind: until it has some, or RETA, MRQC or RXCSUM says otherwise")
{
	uint8_t frame[2][100];
	size_t len[2];
	unsigned int i, way;

	len[0] = two_frame_for(0, frame[0]);
	len[1] = two_frame_for(1, frame[1]);
	for (way = 0; way < 5; way++) {
		for (i = 0; i < 8; i++)
			host_inject(h, frame[1], len[1], 1);
		host_inject(h, frame[0], len[0], 1);
		host_run(h);
		ATF_CHECK_EQ(2, host_rx_pending(h));
		ATF_CHECK_EQ(way + 1, host_counter(h, E82545_C_RX_STALL));
		ATF_CHECK_EQ(1, host_rd(h, 0x40a0));	/* RNBC */
		/* Descriptors of the other queue do not help. */
		host_wr(h, E82545_RDT, host_rd(h, E82545_RDT));
		host_run(h);
		ATF_CHECK_EQ(2, host_rx_pending(h));
		switch (way) {
		case 0:
			host_wr(h, RDT1, 1);
			break;
		case 1:
			host_wr(h, RETA(two_vectors[3].hash_tcp % 128 / 4), 0);
			break;
		case 2:
			host_wr(h, MRQC, 0);
			break;
		case 3:
			host_clear(h, E82545_RXCSUM, RXCSUM_PCSD);
			break;
		case 4:
			host_wr(h, RFCTL, 0);
			break;
		}
		host_run(h);
		ATF_CHECK_EQ_MSG(0, host_rx_pending(h), "%u", way);
		/* From the beginning. */
		host_wr(h, RFCTL, EXTEN);
		host_set(h, E82545_RXCSUM, RXCSUM_PCSD);
		host_wr(h, MRQC, RSS_ALL);
		two_set_reta(h, 1);
		host_wr(h, RDH1, 0);
		two_post1(h, 7);
		host_wr(h, E82545_RDH, 0);
		two_post0(h, 7);
	}
}

HOST_TEST(hostile, two_up(8), "A second ring that is nowhere, none at all, "
    "and indices beyond it: counted, and no frame is elsewhere")
{
	static const struct {
		uint32_t	off, value;
		bool		bad;	/* an invalid ring; else none */
	} t[] = {
		{ 0x2904, 0x80, true },
		{ 0x2908, 0, false },
		{ RDH1, 8, true },
		{ RDH1, 0xffff, true },
	};
	uint8_t frame[2][100];
	size_t len[2];
	unsigned int i;

	len[0] = two_frame_for(0, frame[0]);
	len[1] = two_frame_for(1, frame[1]);
	for (i = 0; i < nitems(t); i++) {
		const uint64_t bad = host_counter(h, E82545_C_RX_BAD_RING);
		const uint64_t got = host_counter(h, E82545_C_RX_FRAME);

		two_place1(h, 8);
		host_wr(h, t[i].off, t[i].value);
		host_inject(h, frame[0], len[0], 1);
		host_inject(h, frame[1], len[1], 1);
		host_inject(h, frame[0], len[0], 1);
		host_run(h);
		ATF_CHECK_EQ_MSG(2, host_rx_pending(h), "%u", i);
		ATF_CHECK_EQ(got + 1, host_counter(h, E82545_C_RX_FRAME));
		ATF_CHECK_EQ(t[i].bad, host_counter(h,
		    E82545_C_RX_BAD_RING) > bad);
		ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
		/* With RSS off the frames go to queue 0. */
		host_wr(h, MRQC, 0);
		host_run(h);
		ATF_CHECK_EQ(0, host_rx_pending(h));
		host_wr(h, MRQC, RSS_ALL);
		host_wr(h, E82545_RDH, 0);
		two_post0(h, 7);
	}
	/*
	 * RDT beyond the ring: it is never reached, and the second round finds
	 * what the adapter has written in place of addresses.
	 */
	two_place1(h, 8);
	two_post1(h, 8);
	host_wr(h, RDT1, 0xffff);
	for (i = 0; i < 20; i++)
		host_inject(h, frame[1], len[1], 1);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(20 % 8, host_rd(h, RDH1));
	ATF_CHECK_EQ(20 - 8, host_counter(h, E82545_C_RX_BAD_ADDR));
}

HOST_TEST(causes, two_up(64), "With MSI-X each queue has its cause, for "
    "frames and for RXDMT0; without they share RXT0 and RXDMT0")
{
	uint8_t frame[2][100];
	size_t len[2];
	unsigned int i;

	len[0] = two_frame_for(0, frame[0]);
	len[1] = two_frame_for(1, frame[1]);
	rx_receive(h, frame[1], len[1]);
	ATF_CHECK_EQ(0x80, host_rd(h, E82545_ICR));
	e82545_msix(h->dev, true);
	host_wr(h, 0xe4, 0x000000ba);	/* two_vectors 2 and 3 */
	host_wr(h, 0xdc, RXQ0 | RXQ1);
	host_wr(h, E82545_IMS, RXQ0 | RXQ1);
	rx_receive(h, frame[1], len[1]);
	ATF_CHECK_EQ(0, h->nmessages[2]);
	ATF_CHECK_EQ(1, h->nmessages[3]);
	ATF_CHECK_EQ(RXQ0, host_rd(h, E82545_IMS));
	rx_receive(h, frame[0], len[0]);
	ATF_CHECK_EQ(1, h->nmessages[2]);
	ATF_CHECK_EQ(1, h->nmessages[3]);
	/* Both in a batch. */
	host_wr(h, E82545_IMS, RXQ0 | RXQ1);
	host_inject(h, frame[0], len[0], 1);
	host_inject(h, frame[1], len[1], 1);
	host_run(h);
	ATF_CHECK_EQ(2, h->nmessages[2]);
	ATF_CHECK_EQ(2, h->nmessages[3]);
	/* RDTR delays neither. */
	host_wr(h, E82545_IMS, RXQ0 | RXQ1);
	host_wr(h, E82545_RDTR, 10);
	rx_receive(h, frame[1], len[1]);
	ATF_CHECK_EQ(2, h->nmessages[2]);
	ATF_CHECK_EQ(3, h->nmessages[3]);
	/* RXDMT0 of queue 1: half of its ring is left, and no more. */
	host_wr(h, E82545_IMC, 0xffffffff);
	host_rd(h, E82545_ICR);
	for (i = 4; i < 30; i++)
		rx_receive(h, frame[1], len[1]);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & 0x10);
	rx_receive(h, frame[1], len[1]);
	ATF_CHECK_EQ(31, host_rd(h, RDH1));
	ATF_CHECK_EQ(0x90 | RXQ1, host_rd(h,
	    E82545_ICS) & (0x90 | RXQ0 | RXQ1));
	ATF_CHECK_EQ(2, h->nmessages[2]);
	ATF_CHECK_EQ(3, h->nmessages[3]);
}

HOST_TEST(cut, two_up(64), "Segments of a frame go where its hash says, each "
    "with that; a stall amid them goes on where it was")
{
	static uint8_t payload[20000], buf[sizeof(payload) + 100];
	struct packet p = { .payload = payload, .paylen = sizeof(payload) };
	struct frame f = { .f_len = 0 };
	struct e82574_rxd d;
	unsigned int i, q, want;
	size_t len;

	for (i = 0; i < sizeof(payload); i++)
		payload[i] = i / 100;
	/* 200 segments: more than the ring has. */
	len = offload_frame(&p, 100, &f, buf);
	h->port.fp_offloads = true;
	host_inject_offload(h, &f, buf, len, 2);
	host_run(h);
	ATF_CHECK_EQ(1, host_rx_pending(h));
	q = host_rd(h, RDH1) != 0;
	ATF_CHECK_EQ(63, host_rd(h, q == 0 ? E82545_RDH : RDH1));
	ATF_CHECK_EQ(0, host_rd(h, q == 0 ? RDH1 : E82545_RDH));
	for (i = 0; i < 63; i++) {
		d = two_desc(h, q, i);
		ATF_CHECK_EQ(q << 8 | 1, d.mrq);
		ATF_CHECK_EQ(two_desc(h, q, 0).csum, d.csum);
		ATF_CHECK_EQ(154, d.length);
	}
	/* The rest to the other queue: RETA has changed meanwhile. */
	for (i = 0; i < 32; i++)
		host_wr(h, RETA(i), q == 0 ? 0x80808080 : 0);
	host_run(h);
	ATF_CHECK_EQ(1, host_rx_pending(h));
	ATF_CHECK_EQ(63, host_rd(h, q == 0 ? RDH1 : E82545_RDH));
	for (i = 0; i < 63; i++) {
		want = 63 + i;
		d = two_desc(h, !q, i);
		ATF_CHECK_EQ((1 - q) << 8 | 1, d.mrq);
		ATF_CHECK_EQ_MSG(want, *(uint8_t *)host_mem(h, (q == 0 ?
		    two_buf1 : h->rxbuf) + i * 2048 + 54, 1), "%u", i);
	}
}

TEST(recovered, "After a crash each queue, in both directions, is announced: "
    "its packets may have been")
{
	static uint8_t buf[1 << 20];
	struct e82545_config config = { .ec_kind = E82545_KIND_82574L };
	struct host *h, *to;
	ssize_t size;
	unsigned int i;

	h = two_up(64);
	e82545_msix(h->dev, true);
	host_wr(h, 0xe4, 0x0000ba98);	/* IVAR: vectors 0 to 3 */
	host_wr(h, 0xdc, 0x00f00000);	/* EIAC */
	host_wr(h, E82545_IMS, 0x00f00000);
	memcpy(config.ec_mac, host_mac, sizeof(config.ec_mac));
	e82545_pause(h->dev);
	size = e82545_salvage(h->dev, e82545_memory_size(), &config,
	    h->now_ns, buf, sizeof(buf));
	ATF_REQUIRE(size > 0);
	to = host_create_82574(HOST_RAM);
	memcpy(to->ram, h->ram, HOST_RAM);
	e82545_msix(to->dev, true);
	e82545_pause(to->dev);
	ATF_REQUIRE_EQ(0, e82545_snapshot_restore(to->dev, buf, size));
	ATF_REQUIRE_EQ(0, e82545_recover(to->dev, h->dev,
	    e82545_memory_size()));
	for (i = 0; i < 4; i++)
		ATF_CHECK_EQ_MSG(1, to->nmessages[i], "%u", i);
	e82545_resume(to->dev);
	e82545_resume(h->dev);
	host_destroy(h);
	host_destroy(to);
}

TEST_PROGRAM
