/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The operations of the switch's fuzzer, which switch_ops.c generates and
 * switch_fuzz.c executes.
 */

#ifndef _FUZZ_SWITCH_H_
#define	_FUZZ_SWITCH_H_

#include "ops.h"

#define	PORTS		6
#define	RINGS		3
#define	NAMES		8		/* more than ports, some twice */

/* X(identifier, what it does with the fields); the port is a % PORTS, and the
   ring pair a / PORTS modulo its number */
#define	SWITCH_OPS(X)							\
	X(OPEN,		"opened as name b, rings of c and d slots, "	\
			"a / PORTS % RINGS + 1 of them")		\
	X(CLOSE,	"closed")					\
	X(TX_SLOT,	"slot c of the transmit ring is d")		\
	X(RX_SLOT,	"slot c of the receive ring is d")		\
	X(TX_HEAD,	"transmit head is c")				\
	X(RX_HEAD,	"receive head is c, cur is d")			\
	X(SEND,		"a frame of b bytes in slots of c, from station "\
			"d & 15 to d >> 4 & 15")			\
	X(TXSYNC,	"a transmit sync")				\
	X(RXSYNC,	"a receive sync; b frames taken")		\
	X(LOOK,		"everything is listed; ageing is c seconds")	\
	X(SINK,		"has a sink that takes b frames a time; 0: none") \
	X(HEADER,	"frames begin with headers of kind b & 3")	\
	X(OFFLOAD,	"a packet of b bytes of payload in segments of c, "\
			"from station d & 15 to d >> 4 & 15, of protocol "\
			"d >> 8 & 3, byte d >> 16 & 127 changed by d >> 24") \
	X(SET,		"setting b & 3 becomes c; or a mirror of name d") \
	X(MONITOR,	"monitor a & 1 becomes one of name b, of c & 3")

enum switch_op {
#define	SWITCH_OP_ENUM(id, what)	SWITCH_##id,
	SWITCH_OPS(SWITCH_OP_ENUM)
#undef SWITCH_OP_ENUM
	SWITCH_NOPS
};

#endif /* !_FUZZ_SWITCH_H_ */
