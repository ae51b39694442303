/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The operations of the model's fuzzer, which model_ops.c generates and
 * model_fuzz.c executes.
 */

#ifndef _FUZZ_MODEL_H_
#define	_FUZZ_MODEL_H_

#include "ops.h"

#define	MODEL_RAM	0x80000		/* bytes, from gpa 0 */
/* A second range of memory, not a multiple of pages, far away. */
#define	MODEL_FAR	0x100000000
#define	MODEL_FAR_SIZE	12344

/* X(identifier, what it does with the fields) */
#define	MODEL_OPS(X)							\
	X(WRITE,	"register at b * 4 is set to c")		\
	X(ACCESS,	"BAR a & 7 at c + (b & 3), 1 << (b >> 2 & 3) bytes, "\
			"3 if b & 32, writing d if b & 16")		\
	X(UP,		"rings of a * 8 and b * 8 descriptors, RX buffers "\
			"as RCTL c says; of an 82574L two of each, and RSS, " \
			"if d & 0x100")					\
	X(TXD,		"descriptor at the tail: d, c, a << 24 | b << 8") \
	X(TX_KICK,	"TDT: the tail + (int8_t)a; b & 1: by the CSB")	\
	X(RX_GIVE,	"a buffers from d on, then RDT; b & 1: by the CSB") \
	X(CSB,		"the CSB's word a is c")			\
	X(PLACE,	"the CSB is at d")				\
	X(MEMORY,	"8 bytes at gpa c are d")			\
	X(TX,		"up to a transmit batches")			\
	X(RX,		"up to a receive batches; b & 1: another thread "\
			"brings the frames")				\
	X(FRAME,	"a frame of b bytes, kind a & 7, seed c, arrives in "\
			"1 + (a >> 3) fragments")			\
	X(TIME,		"c ns pass")					\
	X(LINK,		"the cable: a & 1")				\
	X(RESET,	"a & 1: by the guest, else from outside")	\
	X(PAUSE,	"a & 1: paused, or resumed")			\
	X(ROOM,		"the network takes b frames more")		\
	X(RACE,		"the b-th access from now on changes the 8 bytes at "\
			"gpa c to d")					\
	X(BUS,		"bus mastering is on if a & 1")			\
	X(LEM,		"lem(4) (lem10_guest.h) does what b says, with a, c") \
	X(WHEN,		"the next a & 7 operations happen at the b-th "	\
			"access of lem(4), or of the model if c & 1")	\
	X(OFFLOADS,	"the network takes offloads if a & 1")		\
	X(PACKET,	"a frame with a partial checksum arrives: b bytes of " \
			"payload, to be cut into segments of c bytes if that " \
			"is not 0, kind a & 7, in 2 + (a >> 3) fragments; "   \
			"the 16 bits d >> 16 & 7 of its header are d")	\
	X(MSIX,		"MSI-X is on if a & 1; an input that has one is an "  \
			"82574L's, which lem(4) does not drive")	\
	X(QUEUE,	"TXD, TX_KICK and RX_GIVE are of queue a & 1 from " \
			"now on, if that is an 82574L's")

enum model_op {
#define	MODEL_OP_ENUM(id, what)	MODEL_##id,
	MODEL_OPS(MODEL_OP_ENUM)
#undef MODEL_OP_ENUM
	MODEL_NOPS
};

/* X(identifier, what it does) */
#define	LEM_OPS(X)							\
	X(START,	"attaches, 16 + c % 8 * 8 descriptors; a & 1: "	\
			"hw.em.use_legacy_irq")				\
	X(INTR,		"handles an interrupt, if there is one")	\
	X(STRAY,	"the same for one of another device")		\
	X(SEND,		"sends 1 + c % 16 frames")			\
	X(QUIET,	"the same; guest_need_txkick is 0 meanwhile")	\
	X(CSB,		"guest_csb_on is c & 1")			\
	X(COMBINE,	"send combining is c & 1")			\
	X(RESTART,	"restarts")					\
	X(RX_RESTART,	"restarts the receive ring")

enum lem_op {
#define	LEM_OP_ENUM(id, what)	LEM_##id,
	LEM_OPS(LEM_OP_ENUM)
#undef LEM_OP_ENUM
	LEM_NOPS
};

/* Habits of lem(4): what a run ends with. */
enum lem_habit {
	HABIT_LATE,	/* guest_need_rxkick is 0 after LSC without a frame */
	HABIT_LATE_TX,	/* the same after TXDW */
	HABIT_NEXT,	/* guest_need_rxkick is 0, and IMS is written */
	HABIT_LAP,	/* guest_txkick_at is 0 */
	HABIT_OLD_RDT,	/* guest_rdt is old */
	HABIT_COMBINE,	/* a kick for no frame */
	HABIT_N
};
/* Accesses of lem(4) at which the late frame comes. */
#define	HABIT_TIMES	16

struct fault;

/*
 * The trigger of a fault (e1000_faults.h) as up to `max' operations; returns
 * their number.
 */
size_t	model_fault(const struct fault *f, struct op *ops, size_t max);
/*
 * lem(4) starts and comes to a habit; `n' selects details, for HABIT_LATE and
 * HABIT_LATE_TX when the frame comes.  Returns the number of operations, at
 * most 40.
 */
size_t	model_habit(bool legacy_irq, enum lem_habit habit, uint32_t n,
	    struct op *ops);

#endif /* !_FUZZ_MODEL_H_ */
