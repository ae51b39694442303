/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Filters: which programs are valid, and what they return.  libpcap's machine
 * says what is right.
 */

#include <sys/param.h>

#include <atf-c.h>
#include <pcap/pcap.h>
#include <string.h>

#include "test.h"
#include "vale_filter.h"

/* Numbers of frames and programs. */
#define	FRAME_MAX	300
#define	FRAGS_MAX	8
#define	INSNS_MAX	48
#define	PROGRAMS	100000

#define	WORDS		16		/* of memory */

#define	LD_B		0x30		/* A = byte at k */
#define	LD_MEM		0x60
#define	ST		0x02
#define	JA		0x05
#define	JEQ		0x15
#define	RET		0x06
#define	RET_A		0x16

/* All that there are. */
static const uint8_t codes[] = {
	/* ld: a number, a word, half or byte at k or x + k, memory, length */
	0x00, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60, 0x80,
	/* ldx: the same, and the length of an IPv4 header */
	0x01, 0x61, 0x81, 0xb1,
	/* st, stx */
	0x02, 0x03,
	/* alu, with k and x */
	0x04, 0x14, 0x24, 0x34, 0x44, 0x54, 0x64, 0x74, 0x84, 0x94, 0xa4,
	0x0c, 0x1c, 0x2c, 0x3c, 0x4c, 0x5c, 0x6c, 0x7c, 0x9c, 0xac,
	/* ja; jeq, jgt, jge, jset */
	0x05, 0x15, 0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d,
	/* ret, tax, txa */
	0x06, 0x16, 0x07, 0x87,
};

/* A frame in fragments. */
struct pieces {
	uint8_t		bytes[FRAME_MAX];
	uint32_t	len;
	uint8_t		cut[FRAGS_MAX][FRAME_MAX + 1];
	struct vale_frag frag[FRAGS_MAX];
};

/* Cut it, after `cut' bytes of each fragment, each of which is elsewhere. */
static void
pieces_cut(struct pieces *p, uint32_t cut)
{
	uint32_t n = 0, off = 0;

	memset(p->frag, 0, sizeof(p->frag));
	do {
		memcpy(p->cut[n], p->bytes + off, p->len - off);
		p->frag[n].fg_buf = p->cut[n];
		p->frag[n].fg_len = n + 1 < FRAGS_MAX ?
		    MIN(cut, p->len - off) : p->len - off;
		off += p->frag[n].fg_len;
		p->cut[n][p->frag[n].fg_len] ^= 0xff;
		n++;
	} while (off < p->len);
	p->frag[0].fg_frame_len = p->len;
	p->frag[0].fg_nfrags = n;
}

/* What libpcap's machine returns. */
static uint32_t
pcap_run(const struct vale_insn *insns, const struct pieces *p)
{
	return (bpf_filter((const struct bpf_insn *)(const void *)insns,
	    p->bytes, p->len, p->len));
}

static bool
pcap_valid(const struct vale_insn *insns, uint32_t n)
{
	return (bpf_validate((const struct bpf_insn *)(const void *)insns,
	    n) != 0);
}

static bool
valid1(uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	const struct vale_insn insns[] = {
		{ code, jt, jf, k },
		{ RET, 0, 0, 1 },
		{ RET, 0, 0, 1 },
	};

	return (vale_filter_valid(insns, nitems(insns)));
}

TEST(codes, "Just these instructions are valid")
{
	unsigned int code;
	bool listed;

	for (code = 0; code < 0x10000; code++) {
		listed = code < 0x100 && memchr(codes, code, sizeof(codes)) !=
		    NULL;
		ATF_CHECK_EQ_MSG(listed, valid1(code, 0, 0, 1), "%#x", code);
	}
}

TEST(numbers, "Memory, divisors, shifts and jumps have their ranges")
{
	static const uint8_t mem[] = { 0x60, 0x61, 0x02, 0x03 };
	static const uint8_t div[] = { 0x34, 0x94 }, shift[] = { 0x64, 0x74 };
	static const uint8_t jumps[] = { 0x15, 0x25, 0x35, 0x45, 0x1d, 0x2d,
	    0x3d, 0x4d };
	unsigned int i;

	for (i = 0; i < nitems(mem); i++) {
		ATF_CHECK(valid1(mem[i], 0, 0, WORDS - 1));
		ATF_CHECK(!valid1(mem[i], 0, 0, WORDS));
		ATF_CHECK(!valid1(mem[i], 0, 0, UINT32_MAX));
	}
	for (i = 0; i < nitems(div); i++) {
		ATF_CHECK(!valid1(div[i], 0, 0, 0));
		/* By X: decided when it runs. */
		ATF_CHECK(valid1(div[i] | 8, 0, 0, 0));
	}
	for (i = 0; i < nitems(shift); i++) {
		ATF_CHECK(valid1(shift[i], 0, 0, 31));
		ATF_CHECK(!valid1(shift[i], 0, 0, 32));
		ATF_CHECK(valid1(shift[i] | 8, 0, 0, 32));
	}
	ATF_CHECK(valid1(JA, 9, 9, 1));
	ATF_CHECK(!valid1(JA, 0, 0, 2));
	ATF_CHECK(!valid1(JA, 0, 0, UINT32_MAX));
	for (i = 0; i < nitems(jumps); i++) {
		ATF_CHECK(valid1(jumps[i], 1, 1, UINT32_MAX));
		ATF_CHECK(!valid1(jumps[i], 2, 0, 0));
		ATF_CHECK(!valid1(jumps[i], 0, 2, 0));
		ATF_CHECK(!valid1(jumps[i], 255, 255, 0));
	}
}

TEST(lengths, "A program has an instruction or more, up to the most, and ends "
    "with a return")
{
	static struct vale_insn insns[VALE_FILTER_MAX + 1];
	uint32_t i;

	ATF_CHECK(!vale_filter_valid(insns, 0));
	for (i = 0; i < nitems(insns); i++)
		insns[i] = (struct vale_insn){ RET, 0, 0, 1 };
	ATF_CHECK(vale_filter_valid(insns, 1));
	ATF_CHECK(vale_filter_valid(insns, VALE_FILTER_MAX));
	ATF_CHECK(!vale_filter_valid(insns, VALE_FILTER_MAX + 1));
	ATF_CHECK(!vale_filter_valid(insns, UINT32_MAX));
	insns[0].code = LD_B;
	ATF_CHECK(!vale_filter_valid(insns, 1));
	ATF_CHECK(vale_filter_valid(insns, 2));
	/* The last one cannot jump, either. */
	insns[1] = (struct vale_insn){ JA, 0, 0, 0 };
	ATF_CHECK(!vale_filter_valid(insns, 2));
	insns[1] = (struct vale_insn){ JEQ, 0, 0, 0 };
	ATF_CHECK(!vale_filter_valid(insns, 2));
	insns[1] = (struct vale_insn){ RET_A, 0, 0, 0 };
	ATF_CHECK(vale_filter_valid(insns, 2));
}

TEST(memory, "A program's memory and registers are 0 at first")
{
	struct vale_insn insns[] = {
		{ LD_MEM, 0, 0, 0 },
		{ RET_A, 0, 0, 0 },
	};
	static const struct vale_insn a[] = { { RET_A, 0, 0, 0 } };
	static const struct vale_insn x[] = { { 0x87, 0, 0, 0 },
	    { RET_A, 0, 0, 0 } };
	struct pieces p = { .len = 14 };

	pieces_cut(&p, 14);
	for (insns[0].k = 0; insns[0].k < WORDS; insns[0].k++)
		ATF_CHECK_EQ(0, vale_filter_run(insns, p.frag));
	ATF_CHECK_EQ(0, vale_filter_run(a, p.frag));
	ATF_CHECK_EQ(0, vale_filter_run(x, p.frag));
}

TEST(empty, "Fragments without bytes are passed over")
{
	static const struct vale_insn insns[] = {
		{ 0x20, 0, 0, 11 },		/* ld [11] */
		{ RET_A, 0, 0, 0 },
	};
	struct pieces p = { .len = 20 };
	unsigned int i;

	for (i = 0; i < p.len; i++)
		p.bytes[i] = i;
	memset(p.frag, 0, sizeof(p.frag));
	p.frag[0].fg_frame_len = 20;
	p.frag[1] = (struct vale_frag){ .fg_buf = p.bytes, .fg_len = 12 };
	p.frag[3] = (struct vale_frag){ .fg_buf = p.bytes + 12, .fg_len = 1 };
	p.frag[5] = (struct vale_frag){ .fg_buf = p.bytes + 13, .fg_len = 7 };
	ATF_CHECK_EQ(0x0b0c0d0e, vale_filter_run(insns, p.frag));
}

/* A random number, often of an edge. */
static uint32_t
number(uint32_t *seed)
{
	static const uint32_t edges[] = { 0, 1, 2, 31, 32, 33, 255, 0x7fffffff,
	    0x80000000, 0xfffffffe, UINT32_MAX };

	switch (test_below(seed, 4)) {
	case 0:
		return (edges[test_below(seed, nitems(edges))]);
	case 1:
		return (test_random(seed));
	default:
		return (test_below(seed, FRAME_MAX + 8));
	}
}

/* A random program, most often a valid one.  Returns its length. */
static uint32_t
make_program(struct vale_insn *insns, uint32_t *seed)
{
	const uint32_t n = WORDS + 2 + test_below(seed, INSNS_MAX - WORDS - 2);
	struct vale_insn *in;
	uint32_t i;

	/* libpcap's memory has anything in it. */
	for (i = 0; i < WORDS; i++)
		insns[i] = (struct vale_insn){ ST, 0, 0, i };
	for (; i < n - 1; i++) {
		in = &insns[i];
		in->code = codes[test_below(seed, sizeof(codes))];
		/* Most programs go on for some time. */
		if ((in->code == RET || in->code == RET_A) &&
		    test_chance(seed, 3, 4))
			in->code = 0x00;
		in->k = number(seed);
		if (in->code == 0x60 || in->code == 0x61 || in->code == 0x02 ||
		    in->code == 0x03)
			in->k %= WORDS;
		if (in->code == 0x64 || in->code == 0x74)
			in->k %= 32;
		if (in->code == JA)
			in->k %= n - i - 1;
		if (in->code == 0x34 || in->code == 0x94)
			in->k |= test_chance(seed, 31, 32);
		in->jt = test_below(seed, n - i - 1);
		in->jf = test_below(seed, n - i - 1);
	}
	insns[i] = (struct vale_insn){ RET_A, 0, 0, 0 };
	return (n);
}

TEST(random, "Programs return what they do in libpcap's machine, with frames "
    "in any fragments")
{
	struct vale_insn insns[INSNS_MAX];
	struct pieces p;
	uint32_t i, j, n, seed = 1, results = 0, valid = 0, want;

	for (i = 0; i < PROGRAMS; i++) {
		n = make_program(insns, &seed);
		if (!vale_filter_valid(insns, n))
			continue;
		valid++;
		ATF_REQUIRE(pcap_valid(insns, n));
		p.len = 14 + test_below(&seed, FRAME_MAX - 14);
		for (j = 0; j < p.len; j++)
			p.bytes[j] = test_random(&seed);
		want = pcap_run(insns, &p);
		results += want != 0;
		for (j = 0; j < 3; j++) {
			pieces_cut(&p, 1 + test_below(&seed, p.len));
			ATF_REQUIRE_EQ_MSG(want, vale_filter_run(insns, p.frag),
			    "program %u", i);
		}
	}
	/* Most of them do something. */
	ATF_CHECK_MSG(valid > PROGRAMS / 2, "%u valid", valid);
	ATF_CHECK_MSG(results > valid / 8, "%u of %u", results, valid);
}

TEST(expressions, "Programs that libpcap makes of expressions, optimized or "
    "not, are valid, and short")
{
	static const char *const expressions[] = {
		"", "arp", "ip6", "tcp port 80", "udp and not port 53",
		"ether host 02:00:00:00:00:01", "ether broadcast",
		"host 10.0.0.1 and (port 22 or port 443 or icmp)",
		"net 10.0.0.0/8 and tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
		"vlan 10 and ip", "greater 1000", "less 100 or ip proto 17",
		"ip[6:2] & 0x1fff != 0", "ip6 protochain 6",
		"tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420",
		"len % 3 = 1 or len ^ 5 = 9 or len / 7 = 3 or len << 2 = 400",
	};
	struct bpf_program program;
	const struct vale_insn *insns;
	struct pieces p = { .len = 0 };
	uint32_t seed = 1, want;
	unsigned int i, j, k;
	pcap_t *pcap;

	pcap = pcap_open_dead(DLT_EN10MB, 65536);
	ATF_REQUIRE(pcap != NULL);
	for (i = 0; i < 2 * nitems(expressions); i++) {
		ATF_REQUIRE_EQ_MSG(0, pcap_compile(pcap, &program,
		    expressions[i / 2], i % 2, PCAP_NETMASK_UNKNOWN), "%s: %s",
		    expressions[i / 2], pcap_geterr(pcap));
		insns = (const struct vale_insn *)(const void *)
		    program.bf_insns;
		/* This one loops. */
		if (strstr(expressions[i / 2], "protochain") != NULL) {
			ATF_CHECK(!vale_filter_valid(insns, program.bf_len));
			pcap_freecode(&program);
			continue;
		}
		ATF_CHECK_MSG(vale_filter_valid(insns, program.bf_len), "%s",
		    expressions[i / 2]);
		ATF_CHECK(program.bf_len < VALE_FILTER_MAX / (i % 2 == 0 ? 2 :
		    8));
		for (j = 0; j < 100; j++) {
			p.len = 14 + test_below(&seed, 100);
			for (k = 0; k < p.len; k++)
				p.bytes[k] = test_below(&seed, 4);
			/* Most often IPv4, with TCP or UDP. */
			p.bytes[12] = 8;
			p.bytes[13] = test_below(&seed, 8) == 0 ? 6 : 0;
			p.bytes[14] = 0x45;
			p.bytes[23] = j % 2 == 0 ? 6 : 17;
			want = pcap_run(insns, &p);
			pieces_cut(&p, 1 + test_below(&seed, p.len));
			ATF_CHECK_EQ_MSG(want, vale_filter_run(insns, p.frag),
			    "%s", expressions[i / 2]);
		}
		pcap_freecode(&program);
	}
	pcap_close(pcap);
}

TEST_PROGRAM
