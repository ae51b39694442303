/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The cost of the model, a frame:
 *
 *	model tx	send; the port discards the frames
 *	model rx	receive frames that are pending
 *	model path	from a model through the switch to another model
 *	model direct	the same without the ring of the receiver's port
 *
 * A batch is one write to a tail register; with tx every descriptor has RS set.
 * The bare loops read the descriptors, copy the frame (tx: to a port's buffer;
 * path: to a port's buffer and from there; direct: once, to the receiver's
 * memory) and write the descriptors back.
 */

#include <sys/param.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bare_guest.h"
#include "bench.h"

struct job {
	struct bench_what what;
	struct bare_guest guest[2];
	uint32_t	 descs;		/* of a received frame */
	uint32_t	 txbare, rxbare; /* next of the bare loops */
	uint64_t	 passed;	/* frames; a counter must agree */
};

static void
run_tx(void *arg, unsigned int thread __unused, uint64_t frames)
{
	struct job *job = arg;
	struct bare_guest *guest = &job->guest[0];
	uint32_t batch = job->what.batch;
	uint64_t n;

	for (n = 0; n < frames; n += batch) {
		guest->tail = (guest->tail + batch) % GUEST_RING;
		e82545_write(guest->dev, E82545_BAR_MEM, E82545_TDT, 4,
		    guest->tail);
		while (e82545_tx(guest->dev))
			continue;
	}
	job->passed += n;
}

static void
run_rx(void *arg, unsigned int thread __unused, uint64_t frames)
{
	struct job *job = arg;
	struct bare_guest *guest = &job->guest[0];
	uint32_t batch = job->what.batch;
	uint64_t n;

	for (n = 0; n < frames; n += batch) {
		guest->pending = batch;
		while (e82545_rx(guest->dev) == E82545_RX_MORE &&
		    guest->pending > 0)
			continue;
		guest->next = (guest->next + batch * job->descs) % GUEST_RING;
		e82545_write(guest->dev, E82545_BAR_MEM, E82545_RDT, 4,
		    (guest->next + GUEST_RING - 1) % GUEST_RING);
	}
	job->passed += n;
}

static void
run_path(void *arg, unsigned int thread __unused, uint64_t frames)
{
	struct job *job = arg;
	uint32_t batch = job->what.batch;
	uint64_t n;

	for (n = 0; n < frames; n += batch) {
		bare_guest_send(&job->guest[0], batch);
		if (bare_guest_receive(&job->guest[1]) != batch * job->descs)
			errx(1, "frames are missing");
	}
	job->passed += n;
}

/* Copy a frame from a transmit ring into the buffers of a port. */
static void
bare_send(struct job *job, const struct bare_guest *guest)
{
	union e82545_txd *txd = &bare_guest_txd(guest)[job->txbare];
	uint32_t left, n;
	uint8_t *src;

	src = guest->ram + txd->legacy.addr;
	for (left = txd->lower & E82545_TXD_LEN_LEGACY; left > 0; left -= n) {
		n = MIN(left, GUEST_BUF);
		memcpy(bare_guest_frame_buf(&job->guest[0], 0), src, n);
		src += n;
		job->guest[0].frame++;
	}
	txd->legacy.status = E82545_TXD_DD;
	job->txbare = (job->txbare + 1) % GUEST_RING;
}

/* Copy the frame in buffer `frame' of a port into a receive ring. */
static void
bare_receive(struct job *job, const struct bare_guest *guest, uint32_t frame)
{
	struct e82545_rxd *rxd;
	uint32_t left, n;

	for (left = job->what.bytes; left > 0; left -= n, frame++) {
		n = MIN(left, GUEST_BUF);
		rxd = &bare_guest_rxd(guest)[job->rxbare];
		memcpy(guest->ram + rxd->addr, job->guest[0].frames +
		    (size_t)(frame % GUEST_RING) * GUEST_BUF, n);
		rxd->length = n;
		rxd->csum = rxd->special = 0;
		rxd->errors = 0;
		rxd->status = E82545_RXD_DD | E82545_RXD_EOP;
		job->rxbare = (job->rxbare + 1) % GUEST_RING;
	}
}

static void
bare_tx(void *arg, unsigned int thread __unused, uint64_t frames)
{
	struct job *job = arg;

	for (; frames > 0; frames--)
		bare_send(job, &job->guest[0]);
}

static void
bare_rx(void *arg, unsigned int thread __unused, uint64_t frames)
{
	struct job *job = arg;

	for (; frames > 0; frames--) {
		bare_receive(job, &job->guest[0], job->guest[0].frame);
		job->guest[0].frame += job->descs;
	}
}

/* In batches, like run_path(). */
static void
bare_path(void *arg, unsigned int thread __unused, uint64_t frames)
{
	struct job *job = arg;
	uint64_t n;
	uint32_t frame, i;

	for (n = 0; n < frames; n += job->what.batch) {
		frame = job->guest[0].frame;
		for (i = 0; i < job->what.batch; i++)
			bare_send(job, &job->guest[0]);
		for (i = 0; i < job->what.batch; i++, frame += job->descs)
			bare_receive(job, &job->guest[1], frame);
	}
	/* As the guest left them. */
	for (i = 0; i < GUEST_RING; i++)
		bare_guest_rxd(&job->guest[1])[i].status = 0;
}

/* The same, without the port's buffers. */
static void
bare_direct(void *arg, unsigned int thread __unused, uint64_t frames)
{
	struct job *job = arg;
	union e82545_txd *txd;
	struct e82545_rxd *rxd;
	uint32_t left, n;
	uint8_t *src;

	for (; frames > 0; frames--) {
		txd = &bare_guest_txd(&job->guest[0])[job->txbare];
		src = job->guest[0].ram + txd->legacy.addr;
		left = txd->lower & E82545_TXD_LEN_LEGACY;
		for (; left > 0; left -= n, src += n) {
			n = MIN(left, GUEST_BUF);
			rxd = &bare_guest_rxd(&job->guest[1])[job->rxbare];
			memcpy(job->guest[1].ram + rxd->addr, src, n);
			rxd->length = n;
			rxd->csum = rxd->special = 0;
			rxd->errors = 0;
			rxd->status = E82545_RXD_DD | E82545_RXD_EOP;
			job->rxbare = (job->rxbare + 1) % GUEST_RING;
		}
		txd->legacy.status = E82545_TXD_DD;
		job->txbare = (job->txbare + 1) % GUEST_RING;
	}
	for (n = 0; n < GUEST_RING; n++)
		bare_guest_rxd(&job->guest[1])[n].status = 0;
}

static void
usage(void)
{
	fprintf(stderr, "usage: model [-g] [-b batch] [-n frames] [-s bytes] "
	    "tx | rx | path | direct\n");
	exit(1);
}

/* Check that the adapter counted all frames. */
static void
check(const struct job *job, const struct bare_guest *guest,
    enum e82545_counter c)
{
	uint64_t counters[E82545_NCOUNTERS];

	e82545_counters(guest->dev, counters);
	if (counters[c] != job->passed)
		errx(1, "%ju of %ju frames", (uintmax_t)counters[c],
		    (uintmax_t)job->passed);
}

static void
measure(struct job *job, uint32_t frames, bool guarded)
{
	struct bench_what *what = &job->what;
	struct bare_guest *guest = job->guest;
	bool direct = strcmp(what->subject, "direct") == 0;
	bool path = direct || strcmp(what->subject, "path") == 0;
	uint32_t i;

	bare_guest_create(&guest[0], 1, path);
	bare_guest_frames(&guest[0], what->bytes);
	if (path) {
		bare_guest_create(&guest[1], 2, true);
		for (i = 0; guarded && i < 2; i++)
			bench_guard(guest[i].vale->common->name,
			    guest[i].mac);
		bare_guest_up(&guest[0], &guest[1], what->bytes);
		bare_guest_up(&guest[1], &guest[0], what->bytes);
		/* The switch learns where the receiver is. */
		bare_guest_send(&guest[1], 1);
		if (bare_guest_receive(&guest[0]) != job->descs)
			errx(1, "no frame was received");
		if (direct)
			bare_guest_direct(&guest[1]);
		bench_measure(what, run_path, direct ? bare_direct : bare_path,
		    job, frames);
		check(job, &guest[1], E82545_C_RX_FRAME);
		return;
	}
	bare_guest_up(&guest[0], &guest[0], what->bytes);
	for (i = 0; i < GUEST_RING; i++)
		bare_guest_txd(&guest[0])[i].lower |= E82545_TXD_RS;
	if (strcmp(what->subject, "tx") == 0) {
		bench_measure(what, run_tx, bare_tx, job, frames);
		check(job, &guest[0], E82545_C_TX_FRAME);
	} else {
		bench_measure(what, run_rx, bare_rx, job, frames);
		check(job, &guest[0], E82545_C_RX_FRAME);
	}
}

int
main(int argc, char **argv)
{
	static struct job job = { .what = { "", 60, 64, 1, 1, 0 } };
	uint32_t frames = 0;
	bool guarded = false;
	int ch;

	while ((ch = getopt(argc, argv, "b:gn:s:")) != -1) {
		switch (ch) {
		case 'b':
			job.what.batch = bench_number(optarg, 1,
			    GUEST_RING - 1);
			break;
		case 'g':
			guarded = true;
			break;
		case 'n':
			frames = bench_number(optarg, 1, UINT32_MAX);
			break;
		case 's':
			job.what.bytes = bench_number(optarg, 60,
			    GUEST_LEN_MAX);
			break;
		default:
			usage();
		}
	}
	if (optind != argc - 1 || (strcmp(argv[optind], "tx") != 0 &&
	    strcmp(argv[optind], "rx") != 0 &&
	    strcmp(argv[optind], "path") != 0 &&
	    strcmp(argv[optind], "direct") != 0))
		usage();
	job.what.subject = argv[optind];
	job.descs = howmany(job.what.bytes, GUEST_BUF);
	/* A batch must fit into a ring, one descriptor of which stays free. */
	if (job.what.batch > (GUEST_RING - 1) / job.descs)
		job.what.batch = (GUEST_RING - 1) / job.descs;
	measure(&job, frames, guarded);
	return (0);
}
