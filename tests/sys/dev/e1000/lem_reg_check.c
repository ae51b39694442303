/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * Both sides' headers say the same of the hardware: the driver's lem_reg.h, and
 * the model's e82545_reg.h.  Nothing of it is left at run time.
 */

#include "lem_test.h"

#define	SAME(name)							\
	_Static_assert((uint64_t)LEM_##name == (uint64_t)E82545_##name, #name)
#define	SAME_AS(name, value)						\
	_Static_assert((uint64_t)LEM_##name == (uint64_t)(value), #name)
SAME(CTRL); SAME(CTRL_ASDE); SAME(CTRL_SLU); SAME(CTRL_FRCSPD);
SAME(CTRL_FRCDPX); SAME(CTRL_RST); SAME(CTRL_VME);
SAME(STATUS); SAME(STATUS_LU);
/* Both rings' registers are in the same places. */
#define	ALIKE(name, reg)						\
	SAME_AS(RING_##name, E82545_RD##reg - E82545_RDBAL);		\
	SAME_AS(RING_##name, E82545_TD##reg - E82545_TDBAL)
ALIKE(HIGH, BAH); ALIKE(LEN, LEN); ALIKE(HEAD, H); ALIKE(TAIL, T);
SAME(ICR); SAME(ICR_TXDW); SAME(ICR_LSC); SAME(ICR_RXDMT0);
SAME(ICR_RXO); SAME(ICR_RXT0);
SAME(ITR); SAME_AS(ITR_MAX, E82545_ITR_MASK);
SAME(ICS); SAME(IMS); SAME(IMC);
SAME(RCTL); SAME(RCTL_EN); SAME(RCTL_UPE); SAME(RCTL_MPE);
SAME(RCTL_LPE); SAME(RCTL_BAM); SAME(RCTL_SECRC);
SAME_AS(RCTL_BSIZE_4096, E82545_RCTL_BSEX | 3u << 16);
_Static_assert(E82545_RCTL_BSIZE(LEM_RCTL_BSIZE_4096) == 3, "BSIZE");
SAME(TCTL); SAME(TCTL_EN); SAME(TCTL_PSP); SAME(TIPG);
SAME(RDBAL); SAME(RDT); SAME(TDBAL); SAME(TDT); SAME(CSBAL); SAME(CSBAH);
SAME(RXCSUM); SAME(RXCSUM_IPOFL); SAME(RXCSUM_TUOFL);
SAME(MTA); SAME_AS(MTA_WORDS, E82545_MTA_COUNT);
SAME(RAL(0)); SAME(RAL(15)); SAME(RAH(0)); SAME(RAH(15)); SAME(RAH_AV);
SAME_AS(SUBDEVICE_CSB, E82545_PCI_SUBDEVICE_CSB);
SAME(TXD_EOP); SAME(TXD_IFCS); SAME(TXD_TSE); SAME(TXD_RS);
SAME(TXD_DEXT); SAME(TXD_VLE);
SAME_AS(TXD_DATA, E82545_TXD_DTYP_DATA);
SAME_AS(TXD_CTX_TCP, E82545_TXD_TUCMD_TCP);
SAME_AS(TXD_CTX_IP, E82545_TXD_TUCMD_IP);
SAME_AS(TXD_TSE, E82545_TXD_TUCMD_TSE);
#define	AT(type, member)	(8 * (offsetof(struct type, member) - 8))
#define	TXD(name, value, member)					\
	SAME_AS(TXD_##name,						\
	    (uint64_t)E82545_TXD_##value << AT(e82545_txd_data, member))
TXD(DD, DD, status); TXD(IXSM, POPTS_IXSM, popts);
TXD(TXSM, POPTS_TXSM, popts);
SAME_AS(TXD_VLAN(1), 1ULL << AT(e82545_txd_data, special));
SAME_AS(CTX_TSO(1, 0), 1ULL << AT(e82545_txd_context, hdrlen));
SAME_AS(CTX_TSO(0, 1), 1ULL << AT(e82545_txd_context, mss));
#define	RXD(name)							\
	SAME_AS(RXD_##name,						\
	    (uint64_t)E82545_RXD_##name << AT(e82545_rxd, status))
RXD(DD); RXD(EOP); RXD(IXSM); RXD(VP); RXD(TCPCS); RXD(IPCS);
SAME_AS(RXD_BAD, (uint64_t)(E82545_RXD_ERR_CE | E82545_RXD_ERR_SE |
    E82545_RXD_ERR_SEQ | E82545_RXD_ERR_CXE | E82545_RXD_ERR_RXE) <<
    AT(e82545_rxd, errors));
SAME_AS(RXD_TCPE, (uint64_t)E82545_RXD_ERR_TCPE << AT(e82545_rxd, errors));
SAME_AS(RXD_IPE, (uint64_t)E82545_RXD_ERR_IPE << AT(e82545_rxd, errors));
