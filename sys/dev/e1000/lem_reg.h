/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * What the driver needs of the 8254x: registers, bytes into BAR 0, and
 * descriptors, each with its section of Intel's 8254x SDM (317453-006EN).
 * Memory that the adapter shares is little endian.
 */

#ifndef _DEV_E1000_LEM_REG_H_
#define	_DEV_E1000_LEM_REG_H_

/* PCI subsystem device ID of an adapter with a CSB: paravirt_csb(9). */
#define	LEM_SUBDEVICE_CSB	0x1101

#define	LEM_CTRL		0x00000	/* 13.4.1 device control */
#define	 LEM_CTRL_ASDE		0x00000020	/* speed from the PHY */
#define	 LEM_CTRL_SLU		0x00000040	/* set link up */
#define	 LEM_CTRL_FRCSPD	0x00000800	/* force speed */
#define	 LEM_CTRL_FRCDPX	0x00001000	/* force duplex */
#define	 LEM_CTRL_RST		0x04000000	/* reset, self clearing */
#define	 LEM_CTRL_VME		0x40000000	/* VLAN tags in and out */
#define	LEM_STATUS		0x00008	/* 13.4.2 device status */
#define	 LEM_STATUS_LU		0x00000002	/* link up */

#define	LEM_ICR			0x000c0	/* 13.4.17 causes, clear on read */
#define	 LEM_ICR_TXDW		0x00000001	/* TX descriptors written */
#define	 LEM_ICR_LSC		0x00000004	/* link status change */
#define	 LEM_ICR_RXDMT0		0x00000010	/* RX descriptors low */
#define	 LEM_ICR_RXO		0x00000040	/* RX overrun */
#define	 LEM_ICR_RXT0		0x00000080	/* frames received */
#define	LEM_ITR			0x000c4	/* 13.4.18 interval, 256 ns */
#define	LEM_ICS			0x000c8	/* 13.4.19 set causes */
#define	LEM_IMS			0x000d0	/* 13.4.20 unmask causes */
#define	LEM_IMC			0x000d8	/* 13.4.21 mask causes */

#define	LEM_RCTL		0x00100	/* 13.4.22 receive control */
#define	 LEM_RCTL_EN		0x00000002	/* receiver on */
#define	 LEM_RCTL_UPE		0x00000008	/* all unicast */
#define	 LEM_RCTL_MPE		0x00000010	/* all multicast */
#define	 LEM_RCTL_LPE		0x00000020	/* frames over 1522 bytes */
#define	 LEM_RCTL_BAM		0x00008000	/* broadcast */
#define	 LEM_RCTL_BSIZE_4096	0x02030000	/* of a buffer; else 2048 */
#define	 LEM_RCTL_SECRC		0x04000000	/* strip the FCS */
#define	LEM_TCTL		0x00400	/* 13.4.33 transmit control */
#define	 LEM_TCTL_EN		0x00000002	/* transmitter on */
#define	 LEM_TCTL_PSP		0x00000008	/* pad short frames */
#define	 LEM_TCTL_CT		0x000000f0	/* collision threshold: 15 */
#define	 LEM_TCTL_COLD		0x00040000	/* their distance: 64 bytes */
#define	LEM_TIPG		0x00410	/* 13.4.34 inter-packet gap */
#define	 LEM_TIPG_COPPER	0x00602008	/* copper */

/* The rings' registers lie alike, from the low half of the base on. */
#define	LEM_RDBAL		0x02800	/* 13.4.25 RX ring */
#define	LEM_TDBAL		0x03800	/* 13.4.36 TX ring */
#define	 LEM_RING_HIGH		0x04	/* high half of the base */
#define	 LEM_RING_LEN		0x08	/* bytes */
#define	 LEM_RING_HEAD		0x10
#define	 LEM_RING_TAIL		0x18
#define	LEM_RDT			(LEM_RDBAL + LEM_RING_TAIL)
#define	LEM_TDT			(LEM_TDBAL + LEM_RING_TAIL)
#define	LEM_CSBAL		0x02830	/* the CSB, low: takes effect */
#define	LEM_CSBAH		0x02834	/* and high */

#define	LEM_RXCSUM		0x05000	/* 13.4.47 RX checksums */
#define	 LEM_RXCSUM_IPOFL	0x00000100	/* verify IPv4 headers */
#define	 LEM_RXCSUM_TUOFL	0x00000200	/* verify TCP and UDP */
#define	LEM_MTA			0x05200	/* 13.5.1 multicast hash */
#define	 LEM_MTA_WORDS		128
#define	LEM_RAL(n)		(0x05400 + 8 * (n))	/* 13.5.2 address */
#define	LEM_RAH(n)		(0x05404 + 8 * (n))	/* 13.5.3 */
#define	 LEM_RAH_AV		0x80000000	/* valid */

/*
 * Transmit descriptor.  A legacy one (3.3.3) and a data descriptor (3.3.7)
 * are alike but for DEXT and POPTS; a context descriptor (3.3.6) is two words.
 */
struct lem_txd {
	uint64_t	 addr;		/* of the buffer */
	uint64_t	 cmd;		/* length, LEM_TXD_* */
};
_Static_assert(sizeof(struct lem_txd) == 16, "8254x SDM 3.3");
#define	LEM_TXD_STATUS		12	/* where in it DD comes, bytes */

#define	LEM_TXD_DATA		0x00100000	/* with DEXT, else context */
#define	LEM_TXD_EOP		0x01000000	/* end of packet */
#define	LEM_TXD_IFCS		0x02000000	/* insert FCS */
#define	LEM_TXD_TSE		0x04000000	/* with DEXT: TSO */
#define	LEM_TXD_RS		0x08000000	/* report status */
#define	LEM_TXD_DEXT		0x20000000	/* not legacy */
#define	LEM_TXD_VLE		0x40000000	/* insert the VLAN tag */
#define	LEM_TXD_CTX_TCP		0x01000000	/* context: TCP, else UDP */
#define	LEM_TXD_CTX_IP		0x02000000	/* context: IPv4, else IPv6 */
#define	LEM_TXD_DD		(0x001ULL << 32) /* done */
#define	LEM_TXD_IXSM		(0x100ULL << 32) /* insert the IP checksum */
#define	LEM_TXD_TXSM		(0x200ULL << 32) /* insert TCP's or UDP's */
#define	LEM_TXD_VLAN(tag)	((uint64_t)(tag) << 48)
/* The words of a context. */
#define	LEM_CTX_IP(css, cso, cse)					\
	((uint64_t)(css) | (uint64_t)(cso) << 8 | (uint64_t)(cse) << 16)
#define	LEM_CTX_L4(css, cso)						\
	((uint64_t)(css) << 32 | (uint64_t)(cso) << 40)
#define	LEM_CTX_TSO(hdrlen, mss)					\
	((uint64_t)(hdrlen) << 40 | (uint64_t)(mss) << 48)

/* Receive descriptor, 3.2.3; `done' is what the adapter writes. */
struct lem_rxd {
	uint64_t	 addr;		/* of the buffer */
	uint64_t	 done;
};
_Static_assert(sizeof(struct lem_rxd) == 16, "8254x SDM 3.2.3");

#define	LEM_RXD_LEN(done)	((uint16_t)(done))
#define	LEM_RXD_TAG(done)	((uint16_t)((done) >> 48))
/* Status, 3.2.3.1. */
#define	LEM_RXD_DD		(0x01ULL << 32)	/* done */
#define	LEM_RXD_EOP		(0x02ULL << 32)	/* end of packet */
#define	LEM_RXD_IXSM		(0x04ULL << 32)	/* no checksums verified */
#define	LEM_RXD_VP		(0x08ULL << 32)	/* VLAN tag taken out */
#define	LEM_RXD_TCPCS		(0x20ULL << 32)	/* TCP or UDP verified */
#define	LEM_RXD_IPCS		(0x40ULL << 32)	/* IPv4 verified */
/* Errors, 3.2.3.2: CE, SE, SEQ, CXE and RXE make a frame bad. */
#define	LEM_RXD_BAD		(0x97ULL << 40)
#define	LEM_RXD_TCPE		(0x20ULL << 40)
#define	LEM_RXD_IPE		(0x40ULL << 40)

#endif /* !_DEV_E1000_LEM_REG_H_ */
