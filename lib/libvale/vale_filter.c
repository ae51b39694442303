/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The filter machine of McCanne and Jacobson, "The BSD Packet Filter", USENIX
 * Winter 1993, as bpf(4) describes it, with the later MOD and XOR: two
 * registers, 16 words of memory, loads from the frame in network byte order,
 * and jumps forward only, so that a program ends.
 *
 * A program comes from a user whom the switch does not trust, and runs in the
 * threads of those who send to that user.  So it is checked once, when it
 * comes, and is then kept where its user cannot write; it reads nothing but the
 * frame and its own memory, which begins with zeros; and it is short.
 *
 * libpcap has such a machine, for a frame in one piece.  Frames are in several
 * here, and a library that opens devices does not belong in valed's sandbox;
 * vale_filter_test compares the two.
 */

#include <sys/systm.h>

#include <string.h>

#include "vale_filter.h"

/* Words of a program's memory, bits of a register. */
#define	MEM_WORDS	16
#define	BITS		32

/* The parts of an instruction's code. */
#define	CLASS(code)	((code) & 0x07)
#define	SIZE(code)	((code) & 0x18)
#define	MODE(code)	((code) & 0xe0)
#define	OPERATION(code)	((code) & 0xf0)
#define	OPERAND_X	0x08		/* else k */

enum { CLASS_LD, CLASS_LDX, CLASS_ST, CLASS_STX, CLASS_ALU, CLASS_JMP,
    CLASS_RET, CLASS_MISC };
enum { SIZE_W = 0x00, SIZE_H = 0x08, SIZE_B = 0x10 };
enum { MODE_IMM = 0x00, MODE_ABS = 0x20, MODE_IND = 0x40, MODE_MEM = 0x60,
    MODE_LEN = 0x80, MODE_MSH = 0xa0 };
enum { ALU_ADD = 0x00, ALU_SUB = 0x10, ALU_MUL = 0x20, ALU_DIV = 0x30,
    ALU_OR = 0x40, ALU_AND = 0x50, ALU_LSH = 0x60, ALU_RSH = 0x70,
    ALU_NEG = 0x80, ALU_MOD = 0x90, ALU_XOR = 0xa0 };
enum { JMP_JA = 0x00, JMP_JEQ = 0x10, JMP_JGT = 0x20, JMP_JGE = 0x30,
    JMP_JSET = 0x40 };
enum { RET_K = CLASS_RET, RET_A = CLASS_RET | 0x10 };
enum { MISC_TAX = CLASS_MISC, MISC_TXA = CLASS_MISC | 0x80 };

/* A program that runs. */
struct machine {
	const struct vale_frag	*m_frame;
	uint32_t		 m_a;
	uint32_t		 m_x;
	uint32_t		 m_mem[MEM_WORDS];
};

static bool
load_valid(const struct vale_insn *in)
{
	const bool x = CLASS(in->code) == CLASS_LDX;

	switch (in->code & ~CLASS(in->code)) {
	case MODE_IMM:
	case MODE_LEN:
		return (true);
	case MODE_MEM:
		return (in->k < MEM_WORDS);
	case MODE_ABS | SIZE_W:
	case MODE_ABS | SIZE_H:
	case MODE_ABS | SIZE_B:
	case MODE_IND | SIZE_W:
	case MODE_IND | SIZE_H:
	case MODE_IND | SIZE_B:
		return (!x);
	case MODE_MSH | SIZE_B:
		return (x);
	default:
		return (false);
	}
}

static bool
alu_valid(const struct vale_insn *in)
{
	const bool x = (in->code & OPERAND_X) != 0;

	switch (OPERATION(in->code)) {
	case ALU_ADD:
	case ALU_SUB:
	case ALU_MUL:
	case ALU_OR:
	case ALU_AND:
	case ALU_XOR:
		return (true);
	case ALU_DIV:
	case ALU_MOD:
		return (x || in->k != 0);
	case ALU_LSH:
	case ALU_RSH:
		return (x || in->k < BITS);
	case ALU_NEG:
		return (!x);
	default:
		return (false);
	}
}

/* Return whether a jump is valid, if `left' instructions follow. */
static bool
jump_valid(const struct vale_insn *in, uint32_t left)
{
	switch (OPERATION(in->code)) {
	case JMP_JA:
		return ((in->code & OPERAND_X) == 0 && in->k < left);
	case JMP_JEQ:
	case JMP_JGT:
	case JMP_JGE:
	case JMP_JSET:
		return (in->jt < left && in->jf < left);
	default:
		return (false);
	}
}

static bool
insn_valid(const struct vale_insn *in, uint32_t left)
{
	/* The rest of the code has no meaning. */
	if (in->code > 0xff)
		return (false);
	switch (CLASS(in->code)) {
	case CLASS_LD:
	case CLASS_LDX:
		return (load_valid(in));
	case CLASS_ST:
	case CLASS_STX:
		return (in->code == CLASS(in->code) && in->k < MEM_WORDS);
	case CLASS_ALU:
		return (alu_valid(in));
	case CLASS_JMP:
		return (jump_valid(in, left));
	case CLASS_RET:
		return (in->code == RET_K || in->code == RET_A);
	default:
		return (in->code == MISC_TAX || in->code == MISC_TXA);
	}
}

bool
vale_filter_valid(const struct vale_insn *insns, uint32_t n)
{
	uint32_t i;

	if (n == 0 || n > VALE_FILTER_MAX)
		return (false);
	for (i = 0; i < n; i++)
		if (!insn_valid(&insns[i], n - i - 1))
			return (false);
	return (CLASS(insns[n - 1].code) == CLASS_RET);
}

/* Copy bytes from where they span several fragments; the frame has them. */
static void __attribute__((__noinline__))
frame_gather(const struct vale_frag *fg, uint32_t off, uint8_t *to, uint32_t n)
{
	for (; n > 0; n--, off++) {
		for (; off >= fg->fg_len; fg++)
			off -= fg->fg_len;
		*to++ = fg->fg_buf[off];
	}
}

/* Load a number of `size' bytes.  Returns false if the frame is too short. */
static bool
frame_load(const struct vale_frag *fg, uint64_t off, uint32_t size,
    uint32_t *value)
{
	uint8_t bytes[sizeof(*value)];
	uint32_t i;

	if (off + size > fg->fg_frame_len)
		return (false);
	if (off + size <= fg->fg_len)
		memcpy(bytes, fg->fg_buf + off, size);
	else
		frame_gather(fg, off, bytes, size);
	*value = 0;
	for (i = 0; i < size; i++)
		*value = *value << 8 | bytes[i];
	return (true);
}

/* Load into register A or X.  Returns false if the program ends. */
static bool
load(struct machine *m, const struct vale_insn *in, uint32_t *reg)
{
	const uint32_t size = SIZE(in->code) == SIZE_W ? 4 :
	    SIZE(in->code) == SIZE_H ? 2 : 1;

	switch (MODE(in->code)) {
	case MODE_IMM:
		*reg = in->k;
		return (true);
	case MODE_LEN:
		*reg = m->m_frame->fg_frame_len;
		return (true);
	case MODE_MEM:
		*reg = m->m_mem[in->k];
		return (true);
	case MODE_ABS:
		return (frame_load(m->m_frame, in->k, size, reg));
	case MODE_IND:
		return (frame_load(m->m_frame, (uint64_t)m->m_x + in->k, size,
		    reg));
	default:
		/* MODE_MSH: the length of an IPv4 header. */
		if (!frame_load(m->m_frame, in->k, size, reg))
			return (false);
		*reg = (*reg & 0xf) * 4;
		return (true);
	}
}

/* Compute.  Returns false if a division by zero ends the program. */
static bool
alu(struct machine *m, const struct vale_insn *in)
{
	const uint32_t v = (in->code & OPERAND_X) != 0 ? m->m_x : in->k;

	switch (OPERATION(in->code)) {
	case ALU_ADD:
		m->m_a += v;
		break;
	case ALU_SUB:
		m->m_a -= v;
		break;
	case ALU_MUL:
		m->m_a *= v;
		break;
	case ALU_DIV:
		if (v == 0)
			return (false);
		m->m_a /= v;
		break;
	case ALU_MOD:
		if (v == 0)
			return (false);
		m->m_a %= v;
		break;
	case ALU_OR:
		m->m_a |= v;
		break;
	case ALU_AND:
		m->m_a &= v;
		break;
	case ALU_XOR:
		m->m_a ^= v;
		break;
	case ALU_LSH:
		m->m_a = v < BITS ? m->m_a << v : 0;
		break;
	case ALU_RSH:
		m->m_a = v < BITS ? m->m_a >> v : 0;
		break;
	default:
		m->m_a = -m->m_a;	/* ALU_NEG */
		break;
	}
	return (true);
}

/* Return how many instructions are skipped. */
static uint32_t
jump(const struct machine *m, const struct vale_insn *in)
{
	const uint32_t v = (in->code & OPERAND_X) != 0 ? m->m_x : in->k;
	bool yes;

	switch (OPERATION(in->code)) {
	case JMP_JA:
		return (in->k);
	case JMP_JEQ:
		yes = m->m_a == v;
		break;
	case JMP_JGT:
		yes = m->m_a > v;
		break;
	case JMP_JGE:
		yes = m->m_a >= v;
		break;
	default:
		yes = (m->m_a & v) != 0;	/* JMP_JSET */
		break;
	}
	return (yes ? in->jt : in->jf);
}

uint32_t
vale_filter_run(const struct vale_insn *insns, const struct vale_frag *frame)
{
	struct machine m = { .m_frame = frame };
	const struct vale_insn *in;

	for (in = insns;; in++) {
		switch (CLASS(in->code)) {
		case CLASS_LD:
			if (!load(&m, in, &m.m_a))
				return (0);
			break;
		case CLASS_LDX:
			if (!load(&m, in, &m.m_x))
				return (0);
			break;
		case CLASS_ST:
			m.m_mem[in->k] = m.m_a;
			break;
		case CLASS_STX:
			m.m_mem[in->k] = m.m_x;
			break;
		case CLASS_ALU:
			if (!alu(&m, in))
				return (0);
			break;
		case CLASS_JMP:
			in += jump(&m, in);
			break;
		case CLASS_RET:
			return (in->code == RET_K ? in->k : m.m_a);
		default:
			if (in->code == MISC_TAX)
				m.m_x = m.m_a;
			else
				m.m_a = m.m_x;
			break;
		}
	}
}
