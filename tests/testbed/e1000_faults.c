/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See e1000_faults.h.  Names are those of advisories, reports and programs;
 * sections are of the 8254x SDM.
 */

#include <sys/param.h>

#include "e1000_faults.h"

#define	WR(reg, value)		{ FAULT_WRITE, 4, reg, value, 0 }
#define	ACCESS(reg, size, value) { FAULT_ACCESS, size, reg, value, 0 }
#define	TXD(addr, lower, upper)	{ FAULT_TXD, 1, addr, lower, upper }
#define	TXDS(n, addr, lower, upper) { FAULT_TXD, n, addr, lower, upper }
#define	KICK			{ FAULT_KICK, 0, 0, 0, 0 }
#define	RUN			{ FAULT_RUN, 0, 0, 0, 0 }
#define	RXD(n, addr)		{ FAULT_RXD, n, addr, 0, 0 }
#define	FRAME(len)		{ FAULT_FRAME, len, 0, 0, 0 }

#define	EOP	(E82545_TXD_EOP | E82545_TXD_IFCS | E82545_TXD_RS)
#define	DATA	(E82545_TXD_DEXT | E82545_TXD_DTYP_DATA | E82545_TXD_RS)
#define	TSE	(DATA | E82545_TXD_TSE)
#define	VLE	E82545_TXD_VLE
/* POPTS, the first byte summed, the offset of the sum. */
#define	IXSM	(E82545_TXD_POPTS_IXSM << 8)
#define	TXSM	(E82545_TXD_POPTS_TXSM << 8)
#define	CSS(n)	((n) << 8)
#define	CSO(n)	((n) << 16)

/* A context descriptor: where the sums are, and the second quadword. */
#define	SUMS(ipcss, ipcso, ipcse, tucss, tucso)				\
	((uint64_t)(ipcss) | (uint64_t)(ipcso) << 8 |			\
	(uint64_t)(ipcse) << 16 | (uint64_t)(tucss) << 32 |		\
	(uint64_t)(tucso) << 40)
#define	CTX(sums, cmd, paylen, hdrlen, mss)				\
	TXD(sums, E82545_TXD_DEXT | E82545_TXD_DTYP_CONTEXT |		\
	    E82545_TXD_RS | (cmd) | (paylen),				\
	    (uint32_t)(hdrlen) << 8 | (uint32_t)(mss) << 16)
#define	TCP4	(E82545_TXD_TUCMD_TCP | E82545_TXD_TUCMD_IP)
#define	UDP4	E82545_TXD_TUCMD_IP
#define	TSO	E82545_TXD_TUCMD_TSE
#define	TCPSUMS	SUMS(14, 24, 33, 34, 50)

/* Short forms of the counters. */
#define	BAD_CTX(n)	{ E82545_C_TX_BAD_CTX, n }
#define	BAD_LEN(n)	{ E82545_C_TX_BAD_LEN, n }
#define	BAD_DESC(n)	{ E82545_C_TX_BAD_DESC, n }
#define	BAD_ADDR(n)	{ E82545_C_TX_BAD_ADDR, n }
#define	BAD_RING(n)	{ E82545_C_TX_BAD_RING, n }
#define	RX_BAD_ADDR(n)	{ E82545_C_RX_BAD_ADDR, n }
#define	RX_BAD_RING(n)	{ E82545_C_RX_BAD_RING, n }
#define	RX_STALL(n)	{ E82545_C_RX_STALL, n }
#define	OVERSIZE(n)	{ E82545_C_RX_OVERSIZE, n }

/* PHY register 0, section 13.4.7.1: loopback alone; the whole upper byte. */
#define	MDIC_LOOPBACK	0x04204140
#define	MDIC_CVE	0x0420ff00

const struct fault e1000_faults[] = {
	/*
	 * TSO headers that end before what is in them.  HDRLEN can be anything
	 * up to 255: section 3.3.6.
	 */
	{ "sa_19_21", "HDRLEN 241", {
		CTX(TCPSUMS, TCP4 | TSO, 1000, 241, 500),
		TXD(FAULT_DATA, TSE | EOP | 1241, IXSM | TXSM), KICK },
	  .frames = 2 },
	{ "sa_19_21", "HDRLEN 255", {
		CTX(TCPSUMS, TCP4 | TSO, 1000, 255, 500),
		TXD(FAULT_DATA, TSE | EOP | 1255, IXSM | TXSM), KICK },
	  .frames = 2 },
	{ "sa_19_21", "HDRLEN 11 with a tag", {
		WR(E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_VME),
		CTX(SUMS(0, 0, 0, 0, 0), TCP4 | TSO, 1000, 11, 500),
		TXD(FAULT_DATA, TSE | EOP | VLE | 1011, IXSM | TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "sa_19_21", "HDRLEN 0 with a tag", {
		WR(E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_VME),
		CTX(SUMS(0, 0, 0, 0, 0), TSO, 1000, 0, 500),
		TXD(FAULT_DATA, TSE | EOP | VLE | 1000, 0), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "sa_19_21", "HDRLEN < IPCSS + 6", {
		CTX(SUMS(50, 24, 53, 34, 50), TCP4 | TSO, 1000, 54, 500),
		TXD(FAULT_DATA, TSE | EOP | 1054, IXSM | TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "sa_19_21", "IPCSS 255", {
		CTX(SUMS(255, 24, 0, 34, 50), TCP4 | TSO, 1000, 54, 500),
		TXD(FAULT_DATA, TSE | EOP | 1054, IXSM | TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "sa_19_21", "HDRLEN < IPCSO + 2", {
		CTX(SUMS(14, 53, 33, 34, 50), TCP4 | TSO, 1000, 54, 500),
		TXD(FAULT_DATA, TSE | EOP | 1054, IXSM), KICK },
	  .frames = 2 },		/* it goes where IPv4 has it */
	{ "sa_19_21", "HDRLEN < TUCSS + 14, TCP", {
		CTX(SUMS(14, 24, 33, 41, 50), TCP4 | TSO, 1000, 54, 500),
		TXD(FAULT_DATA, TSE | EOP | 1054, IXSM | TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "sa_19_21", "HDRLEN < TUCSS + 8, UDP", {
		CTX(SUMS(14, 24, 33, 34, 40), UDP4 | TSO, 1000, 41, 500),
		TXD(FAULT_DATA, TSE | EOP | 1041, IXSM | TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "sa_19_21", "HDRLEN < TUCSO + 2", {
		CTX(SUMS(14, 24, 33, 34, 53), TCP4 | TSO, 1000, 54, 500),
		TXD(FAULT_DATA, TSE | EOP | 1054, TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "sa_19_21", "a packet shorter than HDRLEN", {
		CTX(TCPSUMS, TCP4 | TSO, 1000, 54, 500),
		TXD(FAULT_DATA, TSE | EOP | 53, IXSM | TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "sa_19_21", "a packet shorter than HDRLEN + 4, with a tag", {
		WR(E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_VME),
		CTX(TCPSUMS, TCP4 | TSO, 1000, 54, 500),
		TXD(FAULT_DATA, TSE | EOP | VLE | 57, IXSM | TXSM), KICK },
	  .frames = 1 },

	/*
	 * Checksums outside the packet: it is counted.  A packet with TSO is
	 * dropped, any other is sent.
	 */
	{ "sa_22_05", "legacy, CSO one byte beyond", {
		TXD(FAULT_DATA, EOP | E82545_TXD_IC | CSO(59) | 60, CSS(14)),
		KICK },
	  .frames = 1, .plain = true, .counts = { BAD_CTX(1) } },
	{ "sa_22_05", "legacy, CSO 255", {
		TXD(FAULT_DATA, EOP | E82545_TXD_IC | CSO(255) | 60, CSS(14)),
		KICK },
	  .frames = 1, .plain = true, .counts = { BAD_CTX(1) } },
	{ "sa_22_05", "legacy, CSO in the padding", {
		TXD(FAULT_DATA, EOP | E82545_TXD_IC | CSO(40) | 20, CSS(14)),
		KICK },
	  .frames = 1, .plain = true, .counts = { BAD_CTX(1) } },
	{ "sa_22_05", "legacy, CSS beyond", {
		TXD(FAULT_DATA, EOP | E82545_TXD_IC | CSO(50) | 60, CSS(60)),
		KICK },
	  .frames = 1, .plain = true, .counts = { BAD_CTX(1) } },
	{ "sa_22_05", "IXSM, IPCSO beyond", {
		CTX(SUMS(14, 59, 0, 34, 50), TCP4, 0, 0, 0),
		TXD(FAULT_DATA, DATA | EOP | 60, IXSM), KICK },
	  .frames = 1, .plain = true, .counts = { BAD_CTX(1) } },
	{ "sa_22_05", "IXSM, IPCSE beyond", {
		CTX(SUMS(14, 24, 60, 34, 50), TCP4, 0, 0, 0),
		TXD(FAULT_DATA, DATA | EOP | 60, IXSM), KICK },
	  .frames = 1, .plain = true, .counts = { BAD_CTX(1) } },
	{ "sa_22_05", "TXSM, TUCSO beyond", {
		CTX(SUMS(14, 24, 33, 34, 59), TCP4, 0, 0, 0),
		TXD(FAULT_DATA, DATA | EOP | 60, TXSM), KICK },
	  .frames = 1, .plain = true, .counts = { BAD_CTX(1) } },
	{ "sa_22_05", "both, everything 255", {
		CTX(SUMS(255, 255, 0xffff, 255, 255), TCP4, 0, 0, 0),
		TXD(FAULT_DATA, DATA | EOP | 60, IXSM | TXSM), KICK },
	  .frames = 1, .plain = true, .counts = { BAD_CTX(2) } },
	{ "sa_22_05", "TSO as UDP, TUCSO beyond", {
		CTX(SUMS(14, 24, 33, 34, 41), UDP4 | TSO, 1000, 42, 500),
		TXD(FAULT_DATA, TSE | EOP | 1042, TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "sa_22_05", "TSO as UDP, TUCSO in the payload", {
		CTX(SUMS(14, 24, 33, 34, 200), UDP4 | TSO, 1000, 42, 500),
		TXD(FAULT_DATA, TSE | EOP | 1042, TXSM), KICK },
	  .counts = { BAD_CTX(1) } },

	/* The ring is moved while it is on. */
	{ "d26798", "TCTL.EN first, then TDBAL, TDBAH, TDLEN", {
		TXD(FAULT_DATA, EOP | 100, 0),	/* in the old ring */
		WR(E82545_TCTL, 0), WR(E82545_TDLEN, 0),
		WR(E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP),
		WR(E82545_TDBAL, FAULT_TXRING + 0x2000),
		WR(E82545_TDBAH, 0), WR(E82545_TDLEN, 1024),
		WR(E82545_TDH, 0), WR(E82545_TDT, 0),
		TXD(FAULT_DATA, EOP | 61, 0), TXD(FAULT_DATA, EOP | 61, 0),
		KICK },
	  .frames = 2 },
	{ "d26798", "a kick before TDBAH and TDLEN", {
		WR(E82545_TDBAL, FAULT_TXRING + 0x2000),
		TXD(FAULT_DATA, EOP | 61, 0), TXD(FAULT_DATA, EOP | 61, 0),
		WR(E82545_TDLEN, 0), WR(E82545_TDBAH, 1),
		WR(E82545_TDT, 2), RUN,		/* there is no ring */
		WR(E82545_TDBAH, 0), WR(E82545_TDLEN, 1024), RUN },
	  .frames = 2, .counts = { BAD_RING(1) } },

	/* Registers that others lack: RAL and RAH 1 to 15. */
	{ "stock_bhyve_1", "Plan 9 clears addresses 1 to 15", {
		WR(E82545_RAL(1), 0), WR(E82545_RAH(1), 0),
		WR(E82545_RAL(14), 0), WR(E82545_RAH(14), 0),
		WR(E82545_RAL(15), 0), WR(E82545_RAH(15), 0),
		ACCESS(0x5478, 4, 0), ACCESS(0x547c, 4, 0),
		FRAME(60) },
	  .received = 1, .rxds = 1 },
	{ "stock_bhyve_2", "RDBAH and RDLEN with RCTL.EN", {
		WR(E82545_RDBAH, 0), WR(E82545_RDLEN, FAULT_NRXD * 16),
		FRAME(60),
		WR(E82545_RDBAH, 0), FRAME(61) },
	  .received = 2, .rxds = 2 },
	{ "stock_bhyve_2", "RDBAH of a ring outside memory and back", {
		WR(E82545_RDBAH, 1), FRAME(60),
		WR(E82545_RDBAH, 0), FRAME(61) },
	  .received = 2, .rxds = 2,
	  .counts = { RX_BAD_RING(1), RX_STALL(1) } },
	{ "stock_bhyve_3", "legacy without EOP, then data", {
		TXD(FAULT_DATA, E82545_TXD_RS | 100, 0),
		TXD(FAULT_DATA, DATA | EOP | 100, 0), KICK },
	  .counts = { BAD_DESC(1) } },
	{ "stock_bhyve_3", "data without EOP, then legacy", {
		TXD(FAULT_DATA, DATA | 100, 0),
		TXD(FAULT_DATA, EOP | 100, 0), KICK },
	  .counts = { BAD_DESC(1) } },
	{ "stock_bhyve_4", "RDLEN 0", {
		WR(E82545_RDLEN, 0), FRAME(60),
		WR(E82545_RDLEN, FAULT_NRXD * 16), FRAME(61) },
	  .received = 2, .rxds = 2, .counts = { RX_STALL(1) } },
	{ "stock_bhyve_5", "MSS 0", {
		CTX(TCPSUMS, TCP4 | TSO, 1000, 54, 0),
		TXD(FAULT_DATA, TSE | EOP | 1054, IXSM | TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "stock_bhyve_5", "MSS 0, no payload", {
		CTX(TCPSUMS, TCP4 | TSO, 0, 54, 0),
		TXD(FAULT_DATA, TSE | EOP | 54, IXSM | TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "stock_bhyve_5", "MSS 0, PAYLEN of a megabyte", {
		CTX(TCPSUMS, TCP4 | TSO, 0xfffff, 54, 0),
		TXDS(15, FAULT_DATA, TSE | 0x10000, IXSM | TXSM),
		TXD(FAULT_DATA, TSE | EOP | 0x10035, 0), KICK },
	  .counts = { BAD_CTX(1) } },

	/* A packet makes E82545_TSO_FRAMES frames at most. */
	{ "stock_bhyve_6", "MSS 1, PAYLEN 0xfffff, all of it", {
		CTX(TCPSUMS, TCP4 | TSO, 0xfffff, 54, 1),
		TXDS(15, FAULT_DATA, TSE | 0x10000, IXSM | TXSM),
		TXD(FAULT_DATA, TSE | EOP | 0x10035, 0), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "stock_bhyve_6", "MSS 1, as many frames as allowed", {
		CTX(TCPSUMS, TCP4 | TSO, E82545_TSO_FRAMES, 54, 1),
		TXD(FAULT_DATA, TSE | EOP | (54 + E82545_TSO_FRAMES),
		    IXSM | TXSM), KICK },
	  .frames = E82545_TSO_FRAMES },
	{ "stock_bhyve_6", "MSS 1, one frame too many", {
		CTX(TCPSUMS, TCP4 | TSO, E82545_TSO_FRAMES + 1, 54, 1),
		TXD(FAULT_DATA, TSE | EOP | (55 + E82545_TSO_FRAMES),
		    IXSM | TXSM), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "stock_bhyve_6", "64 KB of 16 bytes each", {
		CTX(TCPSUMS, TCP4 | TSO, 0x10000, 54, 16),
		TXD(FAULT_DATA, TSE | EOP | (54 + 0x10000), IXSM | TXSM),
		KICK },
	  .frames = 4096 },
	{ "stock_bhyve_6", "MSS 1, PAYLEN beyond the data", {
		CTX(TCPSUMS, TCP4 | TSO, 0xfffff, 54, 1),
		TXD(FAULT_DATA, TSE | EOP | (54 + 100), IXSM | TXSM), KICK },
	  .frames = 100 },
	{ "stock_bhyve_6", "PAYLEN beyond the data, headers only", {
		CTX(TCPSUMS, TCP4 | TSO, 0xfffff, 54, 1460),
		TXD(FAULT_DATA, TSE | EOP | 54, IXSM | TXSM), KICK },
	  .frames = 1 },

	/* Buffers and rings outside memory. */
	{ "stock_bhyve_7", "buffer, legacy checksum", {
		TXD(FAULT_NOWHERE, EOP | E82545_TXD_IC | CSO(24) | 100,
		    CSS(14)), KICK },
	  .counts = { BAD_ADDR(1) } },
	{ "stock_bhyve_7", "buffer, IXSM and TXSM", {
		CTX(TCPSUMS, TCP4, 0, 0, 0),
		TXD(FAULT_NOWHERE, DATA | EOP | 100, IXSM | TXSM), KICK },
	  .counts = { BAD_ADDR(1) } },
	{ "stock_bhyve_7", "payload of TSO", {
		CTX(TCPSUMS, TCP4 | TSO, 1000, 54, 500),
		TXD(FAULT_DATA, TSE | 54, IXSM | TXSM),
		TXD(FAULT_NOWHERE, TSE | EOP | 1000, 0), KICK },
	  .counts = { BAD_ADDR(1) } },
	{ "stock_bhyve_7", "buffer that begins in memory", {
		TXD(FAULT_RAM - 99, EOP | E82545_TXD_IC | CSO(24) | 100,
		    CSS(14)), KICK },
	  .counts = { BAD_ADDR(1) } },
	{ "stock_bhyve_7", "TX ring", {
		WR(E82545_TDBAL, FAULT_NOWHERE), WR(E82545_TDT, 8), RUN },
	  .counts = { BAD_RING(1) } },
	{ "stock_bhyve_7", "RX ring, with VFE", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_VFE),
		WR(E82545_RDBAL, FAULT_NOWHERE), FRAME(60),
		WR(E82545_RDBAL, FAULT_RXRING), FRAME(61) },
	  .received = 2, .rxds = 2,
	  .counts = { RX_BAD_RING(1), RX_STALL(1) } },
	{ "stock_bhyve_7", "RX buffer, with VFE and VME", {
		WR(E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_VME),
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_VFE),
		RXD(0, FAULT_NOWHERE), RXD(1, FAULT_RAM - 59), FRAME(60),
		FRAME(60), FRAME(60) },
	  .received = 1, .rxds = 3, .counts = { RX_BAD_ADDR(2) } },

	/* Sizes at limits. */
	{ "stock_bhyve_8", "as many fragments as a frame may have", {
		TXDS(63, FAULT_DATA, DATA | 4, 0),
		TXD(FAULT_DATA, DATA | EOP | 4, 0), KICK },
	  .frames = 1 },
	{ "stock_bhyve_8", "one more", {
		TXDS(64, FAULT_DATA, DATA | 4, 0),
		TXD(FAULT_DATA, DATA | EOP | 4, 0), KICK },
	  .counts = { BAD_LEN(1) } },
	{ "stock_bhyve_8", "256 descriptors of one fragment", {
		TXD(FAULT_DATA, DATA | 60, 0),
		TXDS(254, FAULT_DATA, DATA, 0),
		TXD(FAULT_DATA, DATA | EOP, 0), KICK },
	  .frames = 1 },
	{ "stock_bhyve_8", "257 descriptors", {
		TXD(FAULT_DATA, DATA | 60, 0),
		TXDS(255, FAULT_DATA, DATA, 0),
		TXD(FAULT_DATA, DATA | EOP, 0),
		TXD(FAULT_DATA, EOP | 60, 0), KICK },
	  .frames = 1, .counts = { BAD_LEN(1) } },
	{ "stock_bhyve_8", "frames that fill their buffers", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LPE),
		FRAME(FAULT_BUFSIZE), FRAME(2 * FAULT_BUFSIZE),
		FRAME(2 * FAULT_BUFSIZE + 1), FRAME(7 * FAULT_BUFSIZE) },
	  .received = 4, .rxds = 1 + 2 + 3 + 7 },
	{ "stock_bhyve_8", "with FCS", {
		WR(E82545_RCTL, (FAULT_RCTL & ~E82545_RCTL_SECRC) |
		    E82545_RCTL_LPE),
		FRAME(FAULT_BUFSIZE - 4), FRAME(2 * FAULT_BUFSIZE - 4),
		FRAME(2 * FAULT_BUFSIZE - 3) },
	  .received = 3, .rxds = 1 + 2 + 3 },

	/* RCTL.LPE off: 1522 bytes with FCS at most, section 13.4.22. */
	{ "cve_2012_6075", "LPE 0, SBP 0", {
		FRAME(1519), FRAME(FAULT_BUFSIZE), FRAME(FAULT_BUFSIZE + 1),
		FRAME(9000), FRAME(E82545_FRAME_MAX), FRAME(1518) },
	  .received = 1, .rxds = 1, .counts = { OVERSIZE(5) } },
	{ "cve_2012_6075", "buffers of 256 bytes", {
		WR(E82545_RCTL, FAULT_RCTL | 3 << 16),
		FRAME(1519), FRAME(16000), FRAME(1518) },
	  .received = 1, .rxds = 6, .counts = { OVERSIZE(2) } },
	{ "cve_2015_6815", "HDRLEN 0, MSS 0", {
		CTX(TCPSUMS, TCP4 | TSO, 0, 0, 0),
		TXD(FAULT_DATA, TSE | EOP | 1000, 0), KICK },
	  .counts = { BAD_CTX(1) } },
	{ "cve_2016_1981", "TDH beyond TDLEN", {
		TXD(FAULT_DATA, EOP | 60, 0),
		WR(E82545_TDH, FAULT_NTXD), KICK,
		WR(E82545_TDH, 0xffff), KICK,
		WR(E82545_TDH, 0), KICK },
	  .frames = 1, .counts = { BAD_RING(2) } },
	{ "cve_2016_1981", "RDH beyond RDLEN", {
		WR(E82545_RDH, FAULT_NRXD), FRAME(60),
		WR(E82545_RDH, 0xffff), RUN, WR(E82545_RDH, 0), FRAME(61) },
	  .received = 2, .rxds = 2,
	  .counts = { RX_BAD_RING(1), RX_STALL(1) } },

	{ "cve_2016_1981", "RDT beyond RDLEN", {
		WR(E82545_RDT, 0xffff), FRAME(60), WR(E82545_RDT, FAULT_NRXD),
		RUN, WR(E82545_RDT, FAULT_NRXD - 1), FRAME(61) },
	  .received = 2, .rxds = 2 },

	{ "cve_2021_20257_a", "legacy without EOP, then TSO of less", {
		CTX(TCPSUMS, TCP4 | TSO, 100, 54, 100),
		TXD(FAULT_DATA, E82545_TXD_RS | 0x1000, 0),
		TXD(FAULT_DATA, TSE | EOP | 154, IXSM | TXSM), KICK },
	  .counts = { BAD_DESC(1) } },
	{ "cve_2021_20257_a", "data without EOP, then TSO of less", {
		CTX(TCPSUMS, TCP4 | TSO, 100, 54, 100),
		TXD(FAULT_DATA, DATA | 0x1000, 0),
		TXD(FAULT_DATA, TSE | EOP | 154, IXSM | TXSM), KICK },
	  .frames = 1 },

	/* The adapter's own registers are no memory to it. */
	{ "cve_2021_20257_b", "receive into TDT, PHY loopback", {
		WR(E82545_MDIC, MDIC_LOOPBACK),
		RXD(0, FAULT_BAR + E82545_TDT), RXD(1, FAULT_BAR + E82545_TDT),
		TXD(FAULT_DATA, EOP | 60, 0), TXD(FAULT_DATA, EOP | 60, 0),
		TXD(FAULT_DATA, EOP | 60, 0), KICK },
	  .frames = 3, .received = 1, .rxds = 3,
	  .counts = { RX_BAD_ADDR(2) } },
	{ "cve_2021_20257_b", "with reset and power down: there is no link", {
		WR(E82545_MDIC, MDIC_CVE),
		RXD(0, FAULT_BAR + E82545_TDT),
		TXD(FAULT_DATA, EOP | 60, 0), KICK },
	  .counts = { { E82545_C_TX_LINKDOWN, 1 } } },
	{ "cve_2021_20257_b", "writes of odd sizes and places", {
		WR(E82545_MDIC, MDIC_LOOPBACK),
		RXD(0, FAULT_BAR + E82545_TDT),
		ACCESS(0x102, 1, 0xff), ACCESS(0x102, 3, 0xffffff),
		ACCESS(0x102, 4, 0xffffffff), ACCESS(0x280a, 1, 0xff),
		ACCESS(0x280a, 3, 0xffffff), ACCESS(0x280a, 4, 0xffffffff),
		ACCESS(0x2815, 1, 0xff), ACCESS(0x2815, 3, 0xffffff),
		ACCESS(0x2815, 4, 0xffffffff), ACCESS(0x3ff, 4, 0xffffffff),
		ACCESS(0x380a, 1, 0xff), ACCESS(0x380a, 3, 0xffffff),
		ACCESS(0x380a, 4, 0xffffffff), ACCESS(0x3818, 1, 1),
		ACCESS(0x3818, 3, 1), ACCESS(0x3ff, 1, 0xff),
		WR(E82545_TDLEN, FAULT_NTXD * 16), WR(E82545_TDT, 0),
		WR(E82545_RDLEN, FAULT_NRXD * 16), WR(E82545_RDH, 0),
		WR(E82545_RCTL, FAULT_RCTL),
		TXD(FAULT_DATA, EOP | 60, 0), KICK },
	  .frames = 1, .rxds = 1, .counts = { RX_BAD_ADDR(1) } },
	{ "cve_2021_3416", "one frame sent is one frame looped back", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LBM_MAC),
		TXD(FAULT_DATA, EOP | 60, 0), TXD(FAULT_DATA, EOP | 61, 0),
		KICK },
	  .frames = 2, .received = 2, .rxds = 2, .plain = true },
	{ "cve_2021_3416", "received into the ring and the data sent", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LBM_MAC),
		RXD(0, FAULT_TXRING + 16), RXD(1, FAULT_TXRING + 32),
		TXD(FAULT_DATA, EOP | 60, 0), KICK },
	  .frames = 1, .received = 1, .rxds = 1 },
	{ "cve_2023_3019", "receive into own registers", {
		RXD(0, FAULT_BAR + E82545_CTRL),
		RXD(1, FAULT_BAR + E82545_RCTL),
		RXD(2, FAULT_BAR + E82545_RDT), RXD(3, FAULT_BAR + E82545_TDT),
		FRAME(60), FRAME(1514), FRAME(60), FRAME(60), FRAME(60) },
	  .received = 1, .rxds = 5, .counts = { RX_BAD_ADDR(4) } },
	{ "cve_2023_3019", "both rings in own registers", {
		WR(E82545_RDBAL, FAULT_BAR + E82545_RDBAL),
		WR(E82545_TDBAL, FAULT_BAR + E82545_TDBAL),
		FRAME(60), WR(E82545_TDT, 5), RUN,
		WR(E82545_TDBAL, FAULT_TXRING), WR(E82545_TDT, 0),
		WR(E82545_RDBAL, FAULT_RXRING), FRAME(60),
		TXD(FAULT_DATA, EOP | 60, 0), WR(E82545_TDH, 0), KICK },
	  .frames = 1, .received = 2, .rxds = 2,
	  .counts = { BAD_RING(1), RX_BAD_RING(1), RX_STALL(1) } },

	/*
	 * Short frames, looped back: padded with zeros to 60 bytes, also after
	 * longer ones.
	 */
	{ "qemu_3043", "14 to 59 bytes", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LBM_MAC),
		TXD(FAULT_DATA, EOP | 14, 0), TXD(FAULT_DATA, EOP | 15, 0),
		TXD(FAULT_DATA, EOP | 42, 0), TXD(FAULT_DATA, EOP | 59, 0),
		KICK },
	  .frames = 4, .received = 4, .rxds = 4, .plain = true },
	{ "qemu_3043", "after longer ones", {
		TXDS(4, FAULT_DATA, EOP | E82545_TXD_IC | CSO(255) | 250, 0),
		KICK,
		TXD(FAULT_DATA, EOP | 14, 0), TXD(FAULT_DATA, EOP | 15, 0),
		TXD(FAULT_DATA, EOP | 42, 0), TXD(FAULT_DATA, EOP | 59, 0),
		KICK },
	  .frames = 8, .plain = true, .counts = { BAD_CTX(4) } },
	{ "qemu_3043", "without padding by TCTL", {
		WR(E82545_TCTL, E82545_TCTL_EN),
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LBM_MAC),
		TXD(FAULT_DATA, EOP | 14, 0), TXD(FAULT_DATA, EOP | 15, 0),
		TXD(FAULT_DATA, EOP | 42, 0), TXD(FAULT_DATA, EOP | 59, 0),
		KICK },
	  .frames = 4, .received = 4, .rxds = 4, .plain = true },
	{ "qemu_3043", "no header", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LBM_MAC),
		TXD(FAULT_DATA, EOP, 0), TXD(FAULT_DATA, EOP | 1, 0),
		TXD(FAULT_DATA, EOP | 13, 0), KICK },
	  .counts = { BAD_LEN(3) } },

	/* A receive descriptor with address 0 is passed over: section 3.2.5. */
	{ "cve_2020_28916", "the first", {
		RXD(0, 0), FRAME(60), FRAME(60) },
	  .received = 2, .rxds = 3 },
	{ "cve_2020_28916", "in the middle of a frame", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LPE),
		RXD(1, 0), RXD(2, 0), FRAME(3 * FAULT_BUFSIZE), FRAME(60) },
	  .received = 2, .rxds = 6 },
	{ "cve_2020_28916", "as many as a frame can pass over", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LPE),
		RXD(1, 0), RXD(2, 0), RXD(3, 0), RXD(4, 0), RXD(5, 0),
		RXD(6, 0), RXD(7, 0), RXD(8, 0), FRAME(7 * FAULT_BUFSIZE) },
	  .received = 1, .rxds = 15 },
	{ "cve_2020_28916", "one more", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LPE),
		RXD(1, 0), RXD(2, 0), RXD(3, 0), RXD(4, 0), RXD(5, 0),
		RXD(6, 0), RXD(7, 0), RXD(8, 0), RXD(9, 0),
		FRAME(7 * FAULT_BUFSIZE) },
	  .rxds = 15, .counts = { RX_BAD_ADDR(1) } },
	{ "cve_2020_28916", "all", {
		RXD(0, 0), RXD(1, 0), RXD(2, 0), RXD(3, 0), RXD(4, 0),
		RXD(5, 0), RXD(6, 0), RXD(7, 0), RXD(8, 0), RXD(9, 0),
		RXD(10, 0), RXD(11, 0), RXD(12, 0), RXD(13, 0), RXD(14, 0),
		FRAME(60) },
	  .counts = { RX_STALL(1) } },

	{ "cve_2020_16092", "many small fragments", {
		TXDS(200, FAULT_DATA, DATA | 1, 0),
		TXD(FAULT_DATA, DATA | EOP | 1, 0), KICK },
	  .counts = { BAD_LEN(1) } },
	{ "cve_2020_16092", "TSO of small fragments", {
		CTX(TCPSUMS, TCP4 | TSO, 180, 54, 100),
		TXD(FAULT_DATA, TSE | 54, IXSM | TXSM),
		TXDS(179, FAULT_DATA + 54, TSE | 1, 0),
		TXD(FAULT_DATA, TSE | EOP | 1, 0), KICK },
	  .counts = { BAD_LEN(2) } },
	{ "cve_2020_16092", "empty ones and ones at address 0 between", {
		TXD(FAULT_DATA, DATA | 30, 0), TXD(FAULT_DATA, DATA, 0),
		TXD(0, DATA | 1000, 0), TXD(0, DATA, 0),
		TXD(FAULT_DATA + 30, DATA | 30, 0),
		TXD(0, DATA | EOP | 0xfffff, 0), KICK },
	  .frames = 1 },
	{ "cve_2020_16092", "nothing else", {
		TXDS(64, 0, DATA | 1000, 0), TXD(0, DATA | EOP | 1000, 0),
		KICK },
	  .counts = { BAD_LEN(1) } },

	/* More than fits into a frame: section 3.3.6, note 2. */
	{ "cve_2017_10235", "HDRLEN + MSS 16289, looped back", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LPE |
		    E82545_RCTL_LBM_MAC),
		CTX(TCPSUMS, TCP4 | TSO, 0xffff - 54, 54, 16289 - 54),
		TXD(FAULT_DATA, TSE | EOP | 0xffff, IXSM | TXSM), KICK },
	  .counts = { BAD_LEN(1) } },
	{ "cve_2017_10235", "HDRLEN 255, MSS 65535, looped back", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LPE |
		    E82545_RCTL_LBM_MAC),
		CTX(TCPSUMS, TCP4 | TSO, 0xffff, 255, 0xffff),
		TXD(FAULT_DATA, TSE | 0xffff, IXSM | TXSM),
		TXD(FAULT_DATA, TSE | EOP | 0xffff, 0), KICK },
	  .counts = { BAD_LEN(1) } },
	{ "cve_2017_10235", "legacy and data of 64 KB, looped back", {
		WR(E82545_RCTL, FAULT_RCTL | E82545_RCTL_LPE |
		    E82545_RCTL_LBM_MAC),
		TXD(FAULT_DATA, EOP | 0xffff, 0),
		TXD(FAULT_DATA, DATA | EOP | 0xffff, 0),
		TXD(FAULT_DATA, DATA | EOP | (E82545_FRAME_MAX + 1), 0),
		TXD(FAULT_DATA, DATA | EOP | E82545_FRAME_MAX, 0), KICK },
	  .frames = 1, .received = 1,
	  .rxds = howmany(E82545_FRAME_MAX, FAULT_BUFSIZE),
	  .counts = { BAD_LEN(3) } },
	{ "virtualbox_5_2_20", "two TSO packets without a header", {
		CTX(0, TSO, 0, 0, 0x3010),
		TXD(FAULT_DATA, TSE | 0x10, 0),
		TXD(FAULT_DATA, TSE | EOP, 0),
		CTX(0, TSO, 0, 0, 0xf),
		TXD(FAULT_DATA, TSE | EOP | 0x4188, 0), KICK },
	  .counts = { BAD_CTX(2) } },
};

const unsigned int e1000_nfaults = nitems(e1000_faults);
