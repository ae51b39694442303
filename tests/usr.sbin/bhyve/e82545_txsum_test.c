/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Transmitted frames: VLAN tags and checksums are inserted.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_check.h"
#include "e82545_offload.h"

HOST_TEST(vlan, tx_up(64), "Tags of type VET are inserted with VLE and "
    "CTRL.VME")
{
	uint8_t frame[100], want[104];
	uint64_t gpa;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	memcpy(want, frame, 12);
	memcpy(want + 16, frame + 12, 88);
	gpa = tx_put(h, frame, sizeof(frame));
	/* VLE without VME, VME without VLE. */
	tx_desc(h, gpa, TXD_LAST | E82545_TXD_VLE | 100, 0xa123u << 16);
	tx_go(h);
	check_sent(h, 0, frame, 100);
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	tx_desc(h, gpa, TXD_LAST | 100, 0xa123u << 16);
	tx_go(h);
	check_sent(h, 1, frame, 100);
	/* Legacy and data descriptors; the tag is that of the last one. */
	be16enc(want + 12, 0x8100);
	be16enc(want + 14, 0xa123);
	tx_desc(h, gpa, E82545_TXD_VLE | 7, 0x7777u << 16);
	tx_desc(h, gpa + 7, TXD_LAST | E82545_TXD_VLE | 93, 0xa123u << 16);
	tx_go(h);
	check_sent(h, 2, want, 104);
	tx_desc(h, gpa, TXD_DATA | 50, 0x7777u << 16);
	tx_desc(h, gpa + 50, TXD_DATA | TXD_LAST | E82545_TXD_VLE | 50,
	    0xa123u << 16);
	tx_go(h);
	check_sent(h, 3, want, 104);
	host_wr(h, E82545_VET, 0x9100);
	be16enc(want + 12, 0x9100);
	tx_desc(h, gpa, TXD_LAST | E82545_TXD_VLE | 100, 0xa123u << 16);
	tx_go(h);
	check_sent(h, 4, want, 104);
	/* Without RS. */
	tx_desc(h, gpa, E82545_TXD_EOP | E82545_TXD_IFCS | E82545_TXD_VLE |
	    100, 0xa123u << 16);
	tx_go(h);
	check_sent(h, 5, want, 104);
	/* With padding, to 60 with the tag. */
	memset(want + 36, 0, 24);
	tx_desc(h, gpa, TXD_LAST | E82545_TXD_VLE | 32, 0xa123u << 16);
	tx_go(h);
	check_sent(h, 6, want, 60);
}

HOST_TEST(vlan_lengths, tx_up(64), "The longest frame is as long with a tag as "
    "without")
{
	static const struct {
		size_t	len;
		bool	tagged, ok;
	} t[] = {
		{ E82545_FRAME_MAX, false, true },
		{ E82545_FRAME_MAX - 4, true, true },
		{ E82545_FRAME_MAX - 3, true, false },
		{ E82545_FRAME_MAX, true, false },
		{ E82545_FRAME_MAX + 1, false, false },
	};
	static uint8_t frame[E82545_FRAME_MAX + 1];
	unsigned int i, n;
	uint64_t gpa;

	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	gpa = tx_put(h, frame, sizeof(frame));
	for (i = n = 0; i < nitems(t); i++) {
		tx_desc(h, gpa, TXD_LAST | t[i].len |
		    (t[i].tagged ? E82545_TXD_VLE : 0), 5u << 16);
		tx_go(h);
		n += t[i].ok;
		ATF_CHECK_EQ_MSG(n, host_sent(h), "row %u", i);
		ATF_CHECK_EQ_MSG(i + 1 - n,
		    host_counter(h, E82545_C_TX_BAD_LEN), "row %u", i);
		if (t[i].ok)
			ATF_CHECK_EQ(t[i].len + (t[i].tagged ? 4 : 0),
			    host_sent_frame(h, n - 1)->len);
	}
}

HOST_TEST(vlan_own_fcs, tx_up(64), "A tag is inserted into a frame with the "
    "guest's FCS")
{
	uint8_t frame[104], want[104];

	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	le32enc(frame + 100, e82545_crc(frame, 100, 0));
	memcpy(want, frame, 12);
	be16enc(want + 12, 0x8100);
	be16enc(want + 14, 0x0042);
	memcpy(want + 16, frame + 12, 88);
	tx_desc(h, tx_put(h, frame, 104), E82545_TXD_EOP | E82545_TXD_RS |
	    E82545_TXD_VLE | 104, 0x0042 << 16);
	tx_go(h);
	check_sent(h, 0, want, sizeof(want));
}

HOST_TEST(legacy_checksum, tx_up(64), "IC, CSO and CSS inside and outside the "
    "frame")
{
	static const struct {
		uint8_t	css, cso;
		bool	ok;
	} t[] = {
		{ 14, 24, true }, { 0, 50, true }, { 99, 98, true },
		{ 33, 20, true }, { 100, 20, false }, { 20, 99, false },
		{ 255, 255, false }, { 20, 255, false },
	};
	uint8_t frame[100], want[100];
	unsigned int bad, i;
	uint64_t gpa;

	bad = 0;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		memcpy(want, frame, sizeof(frame));
		if (t[i].ok)
			be16enc(want + t[i].cso, packet_sum(frame + t[i].css,
			    100 - t[i].css));
		bad += !t[i].ok;
		gpa = tx_put(h, frame, sizeof(frame));
		/* In fragments that split every field. */
		tx_desc(h, gpa, 25 | 1 << 16, 2 << 8);
		tx_desc(h, gpa + 25, 74, 0);
		tx_desc(h, gpa + 99, TXD_LAST | E82545_TXD_IC |
		    t[i].cso << 16 | 1, t[i].css << 8);
		tx_go(h);
		check_sent(h, i, want, sizeof(want));
		ATF_CHECK_EQ(bad, host_counter(h, E82545_C_TX_BAD_CTX));
		ATF_CHECK_EQ(0, memcmp(frame, host_mem(h, gpa, 100), 100));
	}
}

HOST_TEST(checksum, tx_up(4096), "IP, TCP and UDP checksums, IPv4 and IPv6, in "
    "all fragments")
{
	uint8_t frame[1600], payload[1400], want[1600];
	struct packet p;
	uint32_t seed = 11;
	size_t first, len, step;
	unsigned int i;

	packet_fill(payload, sizeof(payload), 1);
	for (i = 0; i < 400; i++) {
		memset(&p, 0, sizeof(p));
		p.v6 = i & 1;
		p.udp = i & 2;
		p.vlan = i & 4;
		p.ipopts = i / 8 % 11;
		p.tcpopts = i / 16 % 11;
		p.flags = PACKET_ACK;
		p.payload = payload;
		p.paylen = test_random(&seed) % sizeof(payload);
		len = packet_build(&p, want);
		memcpy(frame, want, len);
		packet_prepare(&p, frame, true);
		first = 1 + test_random(&seed) % len;
		step = 30 + test_random(&seed) % 1000;
		tx_context(h, &p, 0, 0);
		tx_data(h, frame, len, first, step, 0, tx_popts(&p), 0);
		tx_go(h);
		if (len < 60) {
			memset(want + len, 0, 60 - len);
			len = 60;
		}
		check_sent(h, i, want, len);
	}
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_BAD_CTX));
}

HOST_TEST(checksum_zero, tx_up(64), "A UDP checksum of 0 is sent as ffff, a "
    "TCP one as 0")
{
	uint8_t frame[100], payload[2] = { 0, 0 };
	struct packet p = { .udp = true, .payload = payload, .paylen = 2 };
	size_t len;
	uint16_t sum;

	len = packet_build(&p, frame);
	sum = be16dec(frame + 40);
	be16enc(payload, sum);
	packet_build(&p, frame);
	ATF_REQUIRE_EQ(0xffff, be16dec(frame + 40));
	packet_prepare(&p, frame, true);
	tx_context(h, &p, 0, 0);
	tx_data(h, frame, len, 100, 100, 0, tx_popts(&p), 0);
	tx_go(h);
	ATF_CHECK_EQ(0xffff, be16dec(host_sent_frame(h, 0)->data + 40));
	tx_context(h, &p, 0, E82545_TXD_TUCMD_TCP);
	tx_data(h, frame, len, 100, 100, 0, tx_popts(&p), 0);
	tx_go(h);
	ATF_CHECK_EQ(0, be16dec(host_sent_frame(h, 1)->data + 40));
}

HOST_TEST(context_inside, tx_up(64), "A context descriptor in the middle of a "
    "frame")
{
	struct packet p = { .udp = true };
	uint8_t frame[100];
	uint32_t n;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	tx_desc(h, tx_put(h, frame, 40), TXD_DATA | 40, 0);
	n = tx_context(h, &p, 0, E82545_TXD_RS);
	tx_desc(h, tx_put(h, frame + 40, 60), TXD_DATA | TXD_LAST | 60, 0);
	tx_go(h);
	check_sent(h, 0, frame, sizeof(frame));
	ATF_CHECK(host_tx_done(h, n));
	check_tx_alive(h);
}

TEST_PROGRAM
