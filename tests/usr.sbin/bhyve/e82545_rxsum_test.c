/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Received frames: VLAN tags are stripped, checksums verified.
 */

#include <sys/types.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_check.h"

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
