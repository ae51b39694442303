/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See e82545_check.h.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "e82545_snap.h"

static struct host *
up(uint32_t ntxd, uint32_t nrxd, uint32_t bufsize)
{
	struct host *h;

	h = host_create(HOST_RAM);
	host_up(h, ntxd, nrxd, bufsize);
	host_wr(h, E82545_IMS, E82545_ICR_ALL);
	host_rd(h, E82545_ICR);
	return (h);
}

/*
 * Transmit.
 */

struct host *
tx_up(uint32_t ntxd)
{
	return (up(ntxd, 64, 2048));
}

uint64_t
tx_put(struct host *h, const void *data, size_t len)
{
	uint64_t gpa;

	/* A gap, so that no two buffers are adjacent. */
	gpa = host_alloc(h, len + 1, 1);
	memcpy(host_mem(h, gpa, len), data, len);
	return (gpa);
}

uint32_t
tx_desc(struct host *h, uint64_t addr, uint32_t lower, uint32_t upper)
{
	union e82545_txd txd;

	txd.addr = addr;
	txd.lower = lower;
	txd.upper = upper;
	return (host_tx_desc(h, &txd));
}

uint32_t
tx_context(struct host *h, const struct packet *p, uint16_t mss, uint32_t cmd)
{
	union e82545_txd txd;
	size_t l3 = packet_l3(p), l4 = packet_l4(p);

	memset(&txd, 0, sizeof(txd));
	txd.context.ipcss = l3;
	txd.context.ipcso = l3 + 10;
	txd.context.ipcse = l4 - 1;
	txd.context.tucss = l4;
	txd.context.tucso = l4 + (p->udp ? 6 : 16);
	txd.context.lower = TXD_CONTEXT | cmd | (mss != 0 ? p->paylen : 0) |
	    (p->udp ? 0 : E82545_TXD_TUCMD_TCP) |
	    (p->v6 ? 0 : E82545_TXD_TUCMD_IP) |
	    (mss != 0 ? E82545_TXD_TUCMD_TSE : 0);
	txd.context.hdrlen = mss != 0 ? packet_hdrlen(p) : 0;
	txd.context.mss = mss;
	return (host_tx_desc(h, &txd));
}

uint32_t
tx_data(struct host *h, const uint8_t *frame, size_t len, size_t first,
    size_t step, uint32_t flags, uint8_t popts, uint16_t tag)
{
	size_t n, off;
	uint32_t d;

	d = 0;
	for (off = 0; off < len; off += n) {
		n = off == 0 ? first : step;
		if (n > len - off)
			n = len - off;
		d = tx_desc(h, tx_put(h, frame + off, n), TXD_DATA | n | flags |
		    (off + n == len ? TXD_LAST : 0),
		    popts << 8 | (uint32_t)tag << 16);
	}
	return (d);
}

uint8_t
tx_popts(const struct packet *p)
{
	return (E82545_TXD_POPTS_TXSM | (p->v6 ? 0 : E82545_TXD_POPTS_IXSM));
}

void
tx_go(struct host *h)
{
	host_tx_go(h);
	host_run(h);
}

void
check_sent(struct host *h, unsigned int n, const void *data, size_t len)
{
	const struct host_frame *f;

	ATF_REQUIRE_MSG(n < host_sent(h), "frame %u of %u", n, host_sent(h));
	f = host_sent_frame(h, n);
	ATF_REQUIRE_EQ_MSG(len, f->len, "frame %u: %zu bytes, not %zu", n,
	    f->len, len);
	ATF_REQUIRE_EQ_MSG(0, memcmp(data, f->data, len), "frame %u", n);
}

void
check_tx_alive(struct host *h)
{
	uint8_t frame[100];
	uint32_t n;

	host_sent_clear(h);
	host_make_frame(frame, sizeof(frame), host_mac, 77);
	n = host_tx_frame(h, frame, sizeof(frame), 0);
	tx_go(h);
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK_EQ(1, host_sent(h));
	check_sent(h, 0, frame, sizeof(frame));
}

/*
 * Snapshots.
 */

size_t
snap_part(struct host *h, void (*snap)(struct e82545 *, struct e82545_snap *),
    void *save, const void *restore, size_t size)
{
	struct e82545_snap s = { .save = save, .restore = restore,
	    .size = size };

	e82545_pause(h->dev);
	e82545_lock_all(h->dev);
	snap(h->dev, &s);
	e82545_unlock_all(h->dev);
	return (s.bad ? 0 : s.done);
}

void
check_eeprom_limits(struct host *h, const struct eeprom_limit *t, size_t n,
    const uint8_t good[SNAP_EE_SIZE])
{
	uint8_t buf[SNAP_EE_SIZE];
	size_t i;

	for (i = 0; i < n; i++) {
		memcpy(buf, good, SNAP_EE_SIZE);
		buf[SNAP_EE_STATE] = t[i].state;
		le32enc(buf + t[i].off, t[i].max);
		ATF_CHECK_EQ_MSG(SNAP_EE_SIZE, snap_part(h, e82545_eeprom_snap,
		    NULL, buf, SNAP_EE_SIZE), "%zu", i);
		le32enc(buf + t[i].off, t[i].max + 1);
		ATF_CHECK_EQ_MSG(0, snap_part(h, e82545_eeprom_snap, NULL, buf,
		    SNAP_EE_SIZE), "%zu", i);
	}
}

/*
 * Receive.
 */

struct host *
offload_up(uint32_t ndescs, uint32_t rxbufsize)
{
	struct host *h = host_create(HOST_RAM);

	host_up(h, ndescs, ndescs, rxbufsize);
	h->port.fp_offloads = true;
	return (h);
}

size_t
offload_frame(const struct packet *p, size_t mss, struct frame *frame,
    uint8_t *buf)
{
	size_t len = packet_build_partial(p, buf);

	memcpy(buf, host_mac, sizeof(host_mac));
	memset(frame, 0, sizeof(*frame));
	frame_set(frame, 1, len);
	frame->f_flags = FRAME_CSUM_PARTIAL;
	frame->f_csum_start = packet_l4(p);
	frame->f_csum_offset = p->udp ? 6 : 16;
	if (mss != 0) {
		frame->f_gso_type = p->udp ? FRAME_GSO_UDP_L4 : p->v6 ?
		    FRAME_GSO_TCPV6 : FRAME_GSO_TCPV4;
		frame->f_gso_size = mss;
		frame->f_hdr_len = packet_hdrlen(p);
	}
	return (len);
}

struct host *
rx_up(uint32_t nrxd, uint32_t bufsize)
{
	return (up(64, nrxd, bufsize));
}

void
rx_receive(struct host *h, const void *frame, size_t len)
{
	host_inject(h, frame, len, 1);
	host_run(h);
}

struct e82545_rxd
check_taken(struct host *h, const void *data, size_t len)
{
	static uint8_t buf[65536];
	struct e82545_rxd last;
	ssize_t n;

	n = host_rx_take(h, buf, sizeof(buf), &last);
	ATF_REQUIRE_EQ_MSG((ssize_t)len, n, "%zd bytes, not %zu", n, len);
	ATF_REQUIRE_EQ(0, memcmp(data, buf, len));
	return (last);
}

void
check_none(struct host *h)
{
	uint8_t buf[1];

	ATF_REQUIRE_EQ(-1, host_rx_take(h, buf, 0, NULL));
}

void
check_rx_alive(struct host *h)
{
	uint8_t frame[100];

	host_make_frame(frame, sizeof(frame), host_mac, 77);
	rx_receive(h, frame, sizeof(frame));
	check_taken(h, frame, sizeof(frame));
	host_rx_post(h);
}

bool
lock_has_waiter(struct e82545_lock *lock)
{
	if (pthread_mutex_trylock(&lock->gate) != 0)
		return (true);
	pthread_mutex_unlock(&lock->gate);
	return (false);
}
