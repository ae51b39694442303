/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The operations of the server's fuzzer, which server_ops.c generates and
 * server_fuzz.c executes.
 */

#ifndef _FUZZ_SERVER_H_
#define	_FUZZ_SERVER_H_

#include "ops.h"

#define	SERVER_RAM	0x80000		/* bytes, in each memfd */

/* X(identifier, what it does with the fields) */
#define	SERVER_OPS(X)							\
	X(VERSION,	"text a; c is the version; b bytes are left out")\
	X(MAP,		"gpa d, pages c, flags b & 7, offset pages b >> 8, "\
			"descriptor a; b & 128: c & 31 ranges of a page, at "\
			"the offset of page i ^ (b >> 4 & 7)")		\
	X(UNMAP,	"gpa d, pages c, flags b & 7")			\
	X(INFO,		"command 4 + a % 4, index c, argsz b, d % 32 bytes "\
			"too many")					\
	X(IRQS,		"index a & 7, start a >> 3 & 3, flags b, count c, "\
			"data d, c >> 16 & 3 descriptors from c >> 24 on")\
	X(READ,		"region a, offset d, b bytes")			\
	X(WRITE,	"region a, offset c, b & 15 bytes of d; b & 16: "\
			"without reply")				\
	X(MULTI,	"b writes of 4 bytes: region a, offset c + 4 i, d")\
	X(RESET,	"device reset")					\
	X(RAW,		"command b, size c, flags a, 8 bytes of d; with "\
			"as many descriptors as are in d & 31")		\
	X(JUNK,		"b & 1023 bytes made of d")			\
	X(PIECES,	"messages are split after a bytes; 0: not")	\
	X(RUN,		"the server runs until it is idle")		\
	X(DRIVER,	"ring registers set; d: TCTL, c: RCTL")		\
	X(MEMORY,	"8 bytes of descriptor a's memory at c are d")	\
	X(PUNCH,	"its pages from c on are discarded")		\
	X(PEER,		"a frame of b bytes comes from another port")	\
	X(EVENT,	"event descriptor a has an event")		\
	X(SECOND,	"another client connects")			\
	X(RECONNECT,	"the client disconnects and connects")		\
	X(DEAF,		"a & 1: replies are not read any more")		\
	X(FLOOD,	"b & 511 reads of 256 bytes")			\
	X(SNATCH,	"the same pages are discarded when the adapter has "\
			"looked b & 63 addresses up")			\
	X(SETTING,	"a % 8 of the switch, or of the adapter's port, is c; "\
			"or a port comes, sends, and goes")

enum server_op {
#define	SERVER_OP_ENUM(id, what)	SERVER_##id,
	SERVER_OPS(SERVER_OP_ENUM)
#undef SERVER_OP_ENUM
	SERVER_NOPS
};

/* In b of MAP. */
#define	MAP_PAGES	0x80

/* Descriptors to send. */
enum server_fd {
	FD_NONE, FD_RAM, FD_RAM2, FD_UNSEALED, FD_EVENT, FD_EVENT2, FD_UNMASK,
	FD_SOCKET, FD_FILE,
	FD_COUNT
};

#endif /* !_FUZZ_SERVER_H_ */
