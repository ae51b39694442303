/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The cost of a TCP packet of 64 KB with TSO, from one model's TX ring directly
 * to another model's RX ring:
 *
 *	segments cut	to a driver that knows nothing of it: complete segments
 *	segments uncut	to one with a header ring: the packet as it is
 *
 * The bare loop copies the same bytes by memcpy(), from the sender's buffers
 * into as many of the receiver's.  -b is the number of packets a kick.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <net/paravirt.h>

#include <err.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bare_guest.h"
#include "bench.h"

#define	HDRLEN		54		/* Ethernet, IPv4, TCP */
#define	MSS		1460
#define	SEGMENTS	44
#define	PAYLEN		(SEGMENTS * MSS)
#define	LEN		(HDRLEN + PAYLEN)
#define	PACKETS		56		/* as many as a ring holds */
#define	BATCH_MAX	16		/* whose segments a ring holds */
#define	STRIDE		65536		/* bytes from one to the next */
#define	CLUSTER		4096		/* bytes a descriptor has; with a
					   header ring, a receive buffer, too */
/* Descriptors: context, header, payload. */
#define	DESCS		(2 + howmany(PAYLEN, CLUSTER))
#define	CSB		0x30000
#define	HEADER_RING	0x40000

struct job {
	struct bench_what what;
	struct bare_guest guest[2];
	uint32_t	 batch;		/* packets a kick */
	bool		 uncut;
	uint32_t	 txbare, rxbare; /* next packet, buffer of the bare
					   loop */
	uint64_t	 passed;	/* packets; a counter must agree */
};

static uint32_t
packet_gpa(uint32_t n)
{
	return (GUEST_TXBUFS + n % PACKETS * STRIDE);
}

/* Descriptors that the receiver takes for a packet. */
static uint32_t
packet_descs(const struct job *job)
{
	return (job->uncut ? howmany(LEN, CLUSTER) : SEGMENTS);
}

/* Make the descriptors of packet `n'. */
static void
make_descs(struct bare_guest *guest, uint32_t n)
{
	union e82545_txd *txd = &bare_guest_txd(guest)[n * DESCS];
	uint32_t gpa = packet_gpa(n), left = LEN, len;

	memset(txd, 0, DESCS * sizeof(*txd));
	txd->context.ipcss = 14;
	txd->context.ipcso = 24;
	txd->context.ipcse = htole16(33);
	txd->context.tucss = 34;
	txd->context.tucso = 50;
	txd->context.hdrlen = HDRLEN;
	txd->context.mss = htole16(MSS);
	txd->lower = htole32(PAYLEN | E82545_TXD_DEXT | E82545_TXD_TUCMD_TCP |
	    E82545_TXD_TUCMD_IP | E82545_TXD_TUCMD_TSE);
	for (len = HDRLEN; left > 0; len = MIN(left, CLUSTER)) {
		txd++;
		txd->addr = htole64(gpa);
		left -= len;
		txd->lower = htole32(len | E82545_TXD_DEXT |
		    E82545_TXD_DTYP_DATA | E82545_TXD_TSE | E82545_TXD_IFCS |
		    (left == 0 ? E82545_TXD_EOP | E82545_TXD_RS : 0));
		txd->data.popts = E82545_TXD_POPTS_IXSM |
		    E82545_TXD_POPTS_TXSM;
		gpa += len;
	}
}

static void
send_batch(struct job *job)
{
	struct bare_guest *guest = &job->guest[0];

	guest->tail = (guest->tail + job->batch * DESCS) % (PACKETS * DESCS);
	e82545_write(guest->dev, E82545_BAR_MEM, E82545_TDT, 4, guest->tail);
	while (e82545_tx(guest->dev) != E82545_TX_IDLE)
		continue;
	if (guest->line)
		(void)e82545_read(guest->dev, E82545_BAR_MEM, E82545_ICR, 4);
}

static void
run(void *arg, unsigned int thread __unused, uint64_t frames)
{
	struct job *job = arg;
	uint64_t n;

	for (n = 0; n < frames; n += job->batch) {
		send_batch(job);
		if (bare_guest_receive(&job->guest[1]) !=
		    job->batch * packet_descs(job))
			errx(1, "frames are missing");
	}
	job->passed += n;
}

static void
bare(void *arg, unsigned int thread __unused, uint64_t frames)
{
	const uint32_t piece = howmany(LEN, packet_descs(arg));
	struct job *job = arg;
	const uint32_t buf = job->uncut ? CLUSTER : GUEST_BUF;
	uint32_t left, n;
	uint8_t *src;

	for (; frames > 0; frames--) {
		src = job->guest[0].ram + packet_gpa(job->txbare++);
		for (left = LEN; left > 0; left -= n, src += n) {
			n = MIN(left, piece);
			memcpy(job->guest[1].ram + GUEST_RXBUFS +
			    job->rxbare * buf, src, n);
			job->rxbare = (job->rxbare + 1) % GUEST_RING;
		}
	}
}

/* Make the packets, in a ring that holds just these. */
static void
make_packets(struct job *job)
{
	struct bare_guest *guest = &job->guest[0];
	uint32_t i;
	uint8_t *p;

	for (i = 0; i < PACKETS; i++) {
		p = guest->ram + packet_gpa(i);
		memset(p, i + 1, LEN);
		memset(p, 0, HDRLEN);
		memcpy(p, job->guest[1].mac, sizeof(job->guest[1].mac));
		memcpy(p + 6, guest->mac, sizeof(guest->mac));
		be16enc(p + 12, 0x0800);
		p[14] = 0x45;
		p[23] = 6;
		p[46] = 0x50;
		be16enc(p + 50, 6);	/* the pseudo-header's sum */
		make_descs(guest, i);
	}
	e82545_write(guest->dev, E82545_BAR_MEM, E82545_TCTL, 4, 0);
	e82545_write(guest->dev, E82545_BAR_MEM, E82545_TDLEN, 4,
	    PACKETS * DESCS * sizeof(union e82545_txd));
	e82545_write(guest->dev, E82545_BAR_MEM, E82545_TDH, 4, 0);
	e82545_write(guest->dev, E82545_BAR_MEM, E82545_TDT, 4, 0);
	e82545_write(guest->dev, E82545_BAR_MEM, E82545_TCTL, 4,
	    E82545_TCTL_EN);
	guest->tail = 0;
}

/*
 * Have the guest use the CSB, with a header ring and larger buffers, as
 * em_pv(4) does.  They reach into the send buffers, which it does not use.
 */
static void
enable_csb(struct bare_guest *guest)
{
	struct paravirt_csb *csb = (void *)(guest->ram + CSB);
	struct e82545_rxd *rxd = bare_guest_rxd(guest);
	uint32_t i;

	for (i = 0; i < GUEST_RING; i++)
		rxd[i].addr = htole64(GUEST_RXBUFS + i * CLUSTER);
	e82545_write(guest->dev, E82545_BAR_MEM, E82545_RCTL, 4,
	    e82545_read(guest->dev, E82545_BAR_MEM, E82545_RCTL, 4) |
	    E82545_RCTL_BSEX | E82545_RCTL_BSIZE_256);
	csb->guest_tdt = csb->guest_rdt = htole32(NET_PARAVIRT_NONE);
	csb->guest_need_txkick = csb->guest_need_rxkick = htole32(1);
	csb->guest_txkick_at = htole32(NET_PARAVIRT_NONE);
	csb->vnet_ring_low = htole32(HEADER_RING);
	csb->guest_csb_on = htole32(1);
	e82545_write(guest->dev, E82545_BAR_MEM, E82545_CSBAH, 4, 0);
	e82545_write(guest->dev, E82545_BAR_MEM, E82545_CSBAL, 4, CSB);
}

/* Check that the adapter counted all packets. */
static void
check(const struct job *job)
{
	uint64_t counters[E82545_NCOUNTERS], want = job->passed;

	e82545_counters(job->guest[1].dev, counters);
	if (counters[E82545_C_RX_UNCUT] != (job->uncut ? want : 0) ||
	    counters[E82545_C_RX_SEGMENT] != (job->uncut ? 0 : want * SEGMENTS))
		errx(1, "the packets were cut otherwise");
}

static void __dead2
usage(void)
{
	fprintf(stderr, "usage: segments [-b batch] [-n packets] "
	    "cut | uncut\n");
	exit(1);
}

int
main(int argc, char **argv)
{
	static struct job job = { .what = { "", LEN, 1, 1, 1, 0 } };
	struct bare_guest *guest = job.guest;
	uint32_t frames = 0;
	int ch;

	while ((ch = getopt(argc, argv, "b:n:")) != -1)
		if (ch == 'b')
			job.what.batch = bench_number(optarg, 1, BATCH_MAX);
		else if (ch == 'n')
			frames = bench_number(optarg, 1, UINT32_MAX);
		else
			usage();
	if (optind != argc - 1 || (strcmp(argv[optind], "cut") != 0 &&
	    strcmp(argv[optind], "uncut") != 0))
		usage();
	job.what.subject = argv[optind];
	job.batch = job.what.batch;
	job.uncut = strcmp(argv[optind], "uncut") == 0;
	bare_guest_create(&guest[0], 1, true);
	bare_guest_create(&guest[1], 2, true);
	bare_guest_up(&guest[0], &guest[1], 60);
	bare_guest_up(&guest[1], &guest[0], 60);
	/* The switch learns where the receiver is. */
	bare_guest_send(&guest[1], 1);
	if (bare_guest_receive(&guest[0]) != 1)
		errx(1, "no frame was received");
	if (job.uncut)
		enable_csb(&guest[1]);
	bare_guest_direct(&guest[1]);
	make_packets(&job);
	bench_measure(&job.what, run, bare, &job, frames);
	check(&job);
	return (0);
}
