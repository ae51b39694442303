/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Filters of monitors (vale_filter.h).  An input is a sequence of operations
 * (ops.h): the first describes a frame and where it is cut into fragments, each
 * of the others is an instruction of a program, most often a valid one.
 *
 * Invariants: what is valid is valid for libpcap, too, and returns what it does
 * in libpcap's machine.  AddressSanitizer sees what is read outside of the
 * fragments, and UndefinedBehaviorSanitizer the rest.
 */

#include <sys/param.h>

#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "vale_filter.h"

#define	WORDS		16		/* of memory */
#define	ST		0x02
#define	RET_A		0x16
#define	FRAGS_MAX	64

/* How an instruction is used: op.d. */
enum {
	USE_RAW = 7			/* with any code and numbers */
};

static const uint8_t codes[] = {
	0x00, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60, 0x80, 0x01, 0x61, 0x81,
	0xb1, 0x02, 0x03, 0x04, 0x14, 0x24, 0x34, 0x44, 0x54, 0x64, 0x74, 0x84,
	0x94, 0xa4, 0x0c, 0x1c, 0x2c, 0x3c, 0x4c, 0x5c, 0x6c, 0x7c, 0x9c, 0xac,
	0x05, 0x15, 0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d, 0x06, 0x16, 0x07,
	0x87,
};

static uint8_t		bytes[2048];
static uint32_t		len;
static struct vale_frag	frag[FRAGS_MAX];
static uint32_t		nfrags;
static struct vale_insn	insns[WORDS + OPS_MAX];
static uint32_t		ninsns;

/* A frame, whose fragments are each in memory of their own. */
static void
make_frame(const struct op *op)
{
	struct rng rng = { .state = op->d | 1 };
	const uint32_t cut = MAX(1, op->a);
	uint32_t i, n, off;
	uint8_t *buf;

	len = 14 + op->b % (sizeof(bytes) - 14);
	for (i = 0; i < len; i++)
		bytes[i] = op->c % 2 == 0 ? rng_next(&rng) : rng_below(&rng, 4);
	memset(frag, 0, sizeof(frag));
	for (off = nfrags = 0; off < len; off += n, nfrags++) {
		n = nfrags + 1 < FRAGS_MAX ? MIN(cut, len - off) : len - off;
		buf = malloc(n);
		INVARIANT(buf != NULL);
		memcpy(buf, bytes + off, n);
		frag[nfrags].fg_buf = buf;
		frag[nfrags].fg_len = n;
	}
	frag[0].fg_frame_len = len;
	frag[0].fg_nfrags = nfrags;
}

static void
free_frame(void)
{
	while (nfrags > 0)
		free(__DECONST(uint8_t *, frag[--nfrags].fg_buf));
}

/* An instruction with `left' behind it. */
static struct vale_insn
make_insn(const struct op *op, uint32_t left)
{
	struct vale_insn in = { codes[op->kind % sizeof(codes)], op->a, op->b,
	    op->c };

	if (op->d % 8 == USE_RAW) {
		in.code = op->d >> 8;
		return (in);
	}
	in.jt %= left;
	in.jf %= left;
	switch (in.code) {
	case 0x60:			/* what has memory, */
	case 0x61:
	case 0x02:
	case 0x03:
		in.k %= WORDS;
		break;
	case 0x34:			/* divides, */
	case 0x94:
		in.k = MAX(1, in.k);
		break;
	case 0x64:			/* shifts, */
	case 0x74:
		in.k %= 32;
		break;
	case 0x05:			/* jumps */
		in.k %= left;
		break;
	}
	return (in);
}

static void
make_program(const struct op *ops, size_t n)
{
	size_t i;

	/* libpcap's memory has anything in it. */
	for (ninsns = 0; ninsns < WORDS; ninsns++)
		insns[ninsns] = (struct vale_insn){ ST, 0, 0, ninsns };
	for (i = 0; i < n; i++)
		insns[ninsns++] = make_insn(&ops[i], n - i);
	insns[ninsns++] = (struct vale_insn){ RET_A, 0, 0, 0 };
}

void
target_op(struct rng *rng, struct op *op)
{
	op->kind = rng_next(rng);
	op->a = rng_number(rng);
	op->b = rng_number(rng);
	op->c = rng_one_in(rng, 3) ? rng_number(rng) : rng_below(rng, 64);
	op->d = rng_next(rng) & (rng_one_in(rng, 8) ? UINT32_MAX : ~7U);
}

/* A load, and what uses it. */
size_t
target_phrase(struct rng *rng, struct op *ops, size_t max)
{
	size_t i, n = MIN(max, 3);

	for (i = 0; i < n; i++)
		target_op(rng, &ops[i]);
	ops[0].kind = 1 + rng_below(rng, 6);
	return (n);
}

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct bpf_insn *theirs = (const void *)insns;
	struct op ops[OPS_MAX];
	size_t n;

	n = ops_read(data, size, ops);
	if (n == 0)
		return (0);
	make_frame(&ops[0]);
	make_program(ops + 1, n - 1);
	if (vale_filter_valid(insns, ninsns)) {
		INVARIANT(bpf_validate(theirs, ninsns));
		INVARIANT(vale_filter_run(insns, frag) ==
		    bpf_filter(theirs, bytes, len, len));
	}
	free_frame();
	return (0);
}
