/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The 82545EM: identity, registers and descriptors, each with its section of
 * the 8254x SDM (317453-006EN).  The model and the driver share it.  Offsets
 * are in bytes, from the start of BAR 0.  Everything in the guest's memory is
 * little-endian.
 */

#ifndef _DEV_E1000_E82545_REG_H_
#define	_DEV_E1000_E82545_REG_H_

#ifdef _KERNEL
#include <sys/systm.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#include "e82545_csb_reg.h"

/*
 * PCI identity: table 5-1 and section 4.1.
 */
#define	E82545_PCI_VENDOR	0x8086
#define	E82545_PCI_DEVICE	0x100f	/* 82545EM, copper */
#define	E82545_PCI_REVISION	0x03	/* QEMU's; bhyve's is 0 */

/*
 * Ethernet (IEEE 802.3, 802.1Q), bytes.
 */
#define	E82545_ETH_HDRLEN	14
#define	E82545_ETH_MIN		60	/* a frame without FCS */
#define	E82545_ETH_FCS		4
#define	E82545_VLAN_LEN		4	/* of a tag */
#define	E82545_HDRLEN_MAX	(E82545_ETH_HDRLEN + E82545_VLAN_LEN)

/*
 * Limits of the adapter, its options and its driver.
 */
#define	E82545_MTU_MIN		68	/* bytes: IPv4's, RFC 791 */
#define	E82545_MTU_MAX		16110	/* bytes: the most that drivers offer */
#define	E82545_FRAME_MAX	(E82545_MTU_MAX + E82545_HDRLEN_MAX)
#define	E82545_ITR_MAX		65535	/* units of 256 ns */

/*
 * General.
 */
#define	E82545_CTRL		0x00000	/* 13.4.1 device control */
#define	E82545_CTRL_DUP		0x00004	/* 13.4.1 duplicate of it */
#define	 E82545_CTRL_FD		0x00000001	/* full duplex */
#define	 E82545_CTRL_LRST	0x00000008	/* link reset (fiber) */
#define	 E82545_CTRL_ASDE	0x00000020	/* take speed from the PHY */
#define	 E82545_CTRL_SLU	0x00000040	/* set link up */
#define	 E82545_CTRL_ILOS	0x00000080	/* invert loss of signal */
#define	 E82545_CTRL_SPEED	0x00000300	/* speed, if forced */
#define	 E82545_CTRL_SPEED_1000	0x00000200
#define	 E82545_CTRL_FRCSPD	0x00000800	/* force speed */
#define	 E82545_CTRL_FRCDPX	0x00001000	/* force duplex */
#define	 E82545_CTRL_ADVD3WUC	0x00100000	/* D3cold wake-up */
#define	 E82545_CTRL_RST	0x04000000	/* device reset */
#define	 E82545_CTRL_RFCE	0x08000000	/* receive flow control */
#define	 E82545_CTRL_TFCE	0x10000000	/* transmit flow control */
#define	 E82545_CTRL_VME	0x40000000	/* VLAN mode: insert, strip */
#define	 E82545_CTRL_PHY_RST	0x80000000	/* PHY reset */

#define	E82545_STATUS		0x00008	/* 13.4.2 device status */
#define	 E82545_STATUS_FD	0x00000001	/* full duplex */
#define	 E82545_STATUS_LU	0x00000002	/* link up */
#define	 E82545_STATUS_TXOFF	0x00000010	/* paused by flow control */
#define	 E82545_STATUS_SPEED	0x000000c0
#define	 E82545_STATUS_SPEED_1000 0x00000080	/* 1000 Mb/s */
#define	 E82545_STATUS_ASDV	0x00000300	/* speed as detected */
#define	 E82545_STATUS_ASDV_1000 0x00000200

#define	E82545_EECD		0x00010	/* 13.4.3 EEPROM control */
#define	 E82545_EECD_SK		0x00000001	/* clock */
#define	 E82545_EECD_CS		0x00000002	/* chip select */
#define	 E82545_EECD_DI		0x00000004	/* data to the EEPROM */
#define	 E82545_EECD_DO		0x00000008	/* data from the EEPROM */
#define	 E82545_EECD_FWE	0x00000030	/* flash writes: 10b allowed */
#define	 E82545_EECD_FWE_DIS	0x00000010	/* flash writes: 01b not */
#define	 E82545_EECD_REQ	0x00000040	/* software requests access */
#define	 E82545_EECD_GNT	0x00000080	/* access granted */
#define	 E82545_EECD_PRES	0x00000100	/* EEPROM present */
#define	 E82545_EECD_SIZE	0x00000200	/* 0: 64 words, 1: 256 */

/* The EEPROM's words up to here, 5.6, have this sum; the last sets it. */
#define	E82545_EEPROM_SUMMED	64
#define	E82545_EEPROM_SUM	0xbaba

#define	E82545_EERD		0x00014	/* 13.4.4 EEPROM read */
#define	 E82545_EERD_START	0x00000001
#define	 E82545_EERD_DONE	0x00000010
#define	 E82545_EERD_ADDR(v)	(((v) >> 8) & 0xff)	/* word */
#define	 E82545_EERD_ADDR_MASK	0x0000ff00
#define	 E82545_EERD_DATA_SHIFT	16

#define	E82545_CTRL_EXT		0x00018	/* 13.4.6 extended control */
#define	 E82545_CTRL_EXT_ASDCHK	0x00001000	/* self clearing */
#define	 E82545_CTRL_EXT_EE_RST	0x00002000	/* reload from EEPROM */
#define	E82545_FLA		0x0001c	/* 13.4.5 flash access */

#define	E82545_MDIC		0x00020	/* 13.4.7 MDI control */
#define	 E82545_MDIC_DATA	0x0000ffff
#define	 E82545_MDIC_REG(v)	(((v) >> 16) & 0x1f)
#define	 E82545_MDIC_PHY(v)	(((v) >> 21) & 0x1f)
#define	 E82545_MDIC_OP_WRITE	0x04000000
#define	 E82545_MDIC_OP_READ	0x08000000
#define	 E82545_MDIC_OP		0x0c000000
#define	 E82545_MDIC_READY	0x10000000
#define	 E82545_MDIC_INT	0x20000000	/* MDAC when ready */
#define	 E82545_MDIC_ERROR	0x40000000

#define	E82545_FCAL		0x00028	/* 13.4.8 flow control address */
#define	E82545_FCAH		0x0002c	/* 13.4.9 */
#define	E82545_FCT		0x00030	/* 13.4.10 flow control type */
#define	E82545_VET		0x00038	/* 13.4.11 VLAN EtherType */

/*
 * Interrupts.
 */
#define	E82545_ICR		0x000c0	/* 13.4.17 causes, clear on read */
#define	 E82545_ICR_TXDW	0x00000001	/* TX descriptors written */
#define	 E82545_ICR_TXQE	0x00000002	/* TX ring empty */
#define	 E82545_ICR_LSC		0x00000004	/* link status change */
#define	 E82545_ICR_RXSEQ	0x00000008	/* RX sequence error */
#define	 E82545_ICR_RXDMT0	0x00000010	/* few RX descriptors left */
#define	 E82545_ICR_RXO		0x00000040	/* RX overrun */
#define	 E82545_ICR_RXT0	0x00000080	/* RX timer */
#define	 E82545_ICR_MDAC	0x00000200	/* MDI access complete */
#define	 E82545_ICR_RXCFG	0x00000400	/* RX /C/ ordered sets */
#define	 E82545_ICR_GPI		0x00007800	/* general purpose pins */
#define	 E82545_ICR_TXD_LOW	0x00008000	/* few TX descriptors left */
#define	 E82545_ICR_SRPD	0x00010000	/* small RX packet */
#define	 E82545_ICR_ALL		0x0001ffff	/* all, reserved ones too */
#define	E82545_ITR		0x000c4	/* 13.4.18 min. interval, 256 ns */
#define	 E82545_ITR_MASK	0x0000ffff
#define	E82545_ICS		0x000c8	/* 13.4.19 set causes */
#define	E82545_IMS		0x000d0	/* 13.4.20 enable causes */
#define	E82545_IMC		0x000d8	/* 13.4.21 disable causes */

/*
 * Receive control, flow control, link configuration.
 */
#define	E82545_RCTL		0x00100	/* 13.4.22 receive control */
#define	 E82545_RCTL_EN		0x00000002	/* receiver on */
#define	 E82545_RCTL_SBP	0x00000004	/* store bad packets */
#define	 E82545_RCTL_UPE	0x00000008	/* unicast promiscuous */
#define	 E82545_RCTL_MPE	0x00000010	/* multicast promiscuous */
#define	 E82545_RCTL_LPE	0x00000020	/* long packets */
#define	 E82545_RCTL_LBM	0x000000c0	/* loopback mode */
#define	 E82545_RCTL_LBM_MAC	0x00000040
#define	 E82545_RCTL_LBM_TCVR	0x000000c0
#define	 E82545_RCTL_RDMTS(v)	(((v) >> 8) & 0x3)	/* 0: 1/2 left */
#define	 E82545_RCTL_MO(v)	(((v) >> 12) & 0x3)	/* hash bits */
#define	 E82545_RCTL_BAM	0x00008000	/* accept broadcast */
#define	 E82545_RCTL_BSIZE(v)	(((v) >> 16) & 0x3)	/* 0: 2048 ... */
#define	 E82545_RCTL_BSIZE_256	0x00030000
#define	 E82545_RCTL_VFE	0x00040000	/* VLAN filter */
#define	 E82545_RCTL_CFIEN	0x00080000	/* filter on CFI */
#define	 E82545_RCTL_CFI	0x00100000	/* CFI to accept */
#define	 E82545_RCTL_DPF	0x00400000	/* discard pause frames */
#define	 E82545_RCTL_PMCF	0x00800000	/* pass MAC control frames */
#define	 E82545_RCTL_BSEX	0x02000000	/* buffer sizes times 16 */
#define	 E82545_RCTL_SECRC	0x04000000	/* strip the FCS */
#define	E82545_FCTTV		0x00170	/* 13.4.12 pause time */
#define	E82545_TXCW		0x00178	/* 13.4.13 link configuration, TX */
#define	E82545_RXCW		0x00180	/* 13.4.14 link configuration, RX */
#define	E82545_FCRTL		0x02160	/* 13.4.23 flow control low mark */
#define	E82545_FCRTH		0x02168	/* 13.4.24 flow control high mark */

/*
 * Transmit control.
 */
#define	E82545_TCTL		0x00400	/* 13.4.33 transmit control */
#define	 E82545_TCTL_EN		0x00000002	/* transmitter on */
#define	 E82545_TCTL_PSP	0x00000008	/* pad short packets */
#define	 E82545_TCTL_CT(n)	((n) << 4)	/* max. collisions */
#define	 E82545_TCTL_COLD(n)	((n) << 12)	/* their distance, bytes */
#define	E82545_TIPG		0x00410	/* 13.4.34 inter-packet gap */
#define	 E82545_TIPG_COPPER	0x00602008	/* copper */
#define	E82545_TBT		0x00448	/* burst timer, 82543 and older */
#define	E82545_AIFS		0x00458	/* 13.4.35 adaptive IFS */
#define	E82545_LEDCTL		0x00e00	/* 13.4.15 LEDs */
#define	E82545_PBA		0x01000	/* 13.4.16 packet buffer division */
#define	 E82545_PBA_RX		0x0000007f	/* KB */
#define	 E82545_PBA_TX		0x007f0000

/*
 * Data FIFOs, diagnostic.
 */
#define	E82545_RDFH		0x02410	/* 13.8.1 */
#define	E82545_RDFT		0x02418	/* 13.8.2 */
#define	E82545_RDFHS		0x02420	/* 13.8.3 */
#define	E82545_RDFTS		0x02428	/* 13.8.4 */
#define	E82545_RDFPC		0x02430	/* 13.8.5 */
#define	E82545_TDFH		0x03410	/* 13.8.6 */
#define	E82545_TDFT		0x03418	/* 13.8.7 */
#define	E82545_TDFHS		0x03420	/* 13.8.8 */
#define	E82545_TDFTS		0x03428	/* 13.8.9 */
#define	E82545_TDFPC		0x03430	/* 13.8.10 */

/*
 * The registers of both rings have the same layout, relative to the low half of
 * the base address.
 */
#define	E82545_RING_BAH		0x04
#define	E82545_RING_LEN		0x08
#define	E82545_RING_HEAD	0x10
#define	E82545_RING_TAIL	0x18

/*
 * Receive ring.
 */
#define	E82545_RDBAL		0x02800	/* 13.4.25 base, low */
#define	E82545_RDBAH		0x02804	/* 13.4.26 base, high */
#define	E82545_RDLEN		0x02808	/* 13.4.27 bytes */
#define	E82545_RDH		0x02810	/* 13.4.28 head */
#define	E82545_RDT		0x02818	/* 13.4.29 tail */
#define	E82545_RDTR		0x02820	/* 13.4.30 packet timer, 1.024 us */
#define	 E82545_RDTR_FPD	0x80000000	/* flush partial descriptors */
#define	E82545_RXDCTL		0x02828	/* 13.4.46 descriptor control */
#define	E82545_RADV		0x0282c	/* 13.4.31 absolute, 1.024 us */
#define	E82545_RSRPD		0x02c00	/* 13.4.32 small packet, bytes */

/*
 * Transmit ring.
 */
#define	E82545_TXDMAC		0x03000	/* 13.4.42 DMA control */
#define	E82545_TDBAL		0x03800	/* 13.4.36 base, low */
#define	E82545_TDBAH		0x03804	/* 13.4.37 base, high */
#define	E82545_TDLEN		0x03808	/* 13.4.38 bytes */
#define	E82545_TDH		0x03810	/* 13.4.39 head */
#define	E82545_TDT		0x03818	/* 13.4.40 tail */
#define	E82545_TIDV		0x03820	/* 13.4.41 delay, 1.024 us */
#define	E82545_TXDCTL		0x03828	/* 13.4.43 descriptor control */
#define	 E82545_TXDCTL_LWTHRESH(v) ((v) >> 25)	/* TXD_LOW, units of 8 */
#define	E82545_TADV		0x0382c	/* 13.4.44 absolute, 1.024 us */
#define	E82545_TSPMT		0x03830	/* 13.4.45 TSO pad and threshold */

#define	E82545_DBAL_MASK	0xfffffff0	/* rings: 16-byte aligned */
#define	E82545_DLEN_MASK	0x000fff80	/* of n times 128 bytes */
#define	E82545_DPTR_MASK	0x0000ffff	/* head and tail */

/*
 * Statistics, section 13.7: clear on read, stick at all ones.
 */
#define	E82545_STAT_FIRST	0x04000
#define	E82545_CRCERRS		0x04000	/* CRC errors */
#define	E82545_ALGNERRC		0x04004	/* alignment errors */
#define	E82545_SYMERRS		0x04008	/* symbol errors */
#define	E82545_RXERRC		0x0400c	/* RX errors */
#define	E82545_MPC		0x04010	/* missed packets */
#define	E82545_SCC		0x04014	/* single collisions */
#define	E82545_ECOL		0x04018	/* excessive collisions */
#define	E82545_MCC		0x0401c	/* multiple collisions */
#define	E82545_LATECOL		0x04020	/* late collisions */
#define	E82545_COLC		0x04028	/* collisions */
#define	E82545_DC		0x04030	/* defers */
#define	E82545_TNCRS		0x04034	/* TX without carrier sense */
#define	E82545_SEC		0x04038	/* sequence errors */
#define	E82545_CEXTERR		0x0403c	/* carrier extension errors */
#define	E82545_RLEC		0x04040	/* RX length errors */
#define	E82545_XONRXC		0x04048	/* XON received */
#define	E82545_XONTXC		0x0404c	/* XON sent */
#define	E82545_XOFFRXC		0x04050	/* XOFF received */
#define	E82545_XOFFTXC		0x04054	/* XOFF sent */
#define	E82545_FCRUC		0x04058	/* unsupported flow control */
#define	E82545_PRC64		0x0405c	/* received, 64 bytes */
#define	E82545_PRC127		0x04060	/* 65 to 127 */
#define	E82545_PRC255		0x04064	/* 128 to 255 */
#define	E82545_PRC511		0x04068	/* 256 to 511 */
#define	E82545_PRC1023		0x0406c	/* 512 to 1023 */
#define	E82545_PRC1522		0x04070	/* 1024 and more */
#define	E82545_GPRC		0x04074	/* good packets received */
#define	E82545_BPRC		0x04078	/* broadcasts received */
#define	E82545_MPRC		0x0407c	/* multicasts received */
#define	E82545_GPTC		0x04080	/* good packets sent */
#define	E82545_GORCL		0x04088	/* good bytes received */
#define	E82545_GORCH		0x0408c
#define	E82545_GOTCL		0x04090	/* good bytes sent */
#define	E82545_GOTCH		0x04094
#define	E82545_RNBC		0x040a0	/* no RX buffer */
#define	E82545_RUC		0x040a4	/* RX undersize */
#define	E82545_RFC		0x040a8	/* RX fragments */
#define	E82545_ROC		0x040ac	/* RX oversize */
#define	E82545_RJC		0x040b0	/* RX jabber */
#define	E82545_MGTPRC		0x040b4	/* management received */
#define	E82545_MGTPDC		0x040b8	/* management dropped */
#define	E82545_MGTPTC		0x040bc	/* management sent */
#define	E82545_TORL		0x040c0	/* total bytes received */
#define	E82545_TORH		0x040c4
#define	E82545_TOTL		0x040c8	/* total bytes sent */
#define	E82545_TOTH		0x040cc
#define	E82545_TPR		0x040d0	/* total packets received */
#define	E82545_TPT		0x040d4	/* total packets sent */
#define	E82545_PTC64		0x040d8	/* sent, 64 bytes */
#define	E82545_PTC127		0x040dc	/* 65 to 127 */
#define	E82545_PTC255		0x040e0	/* 128 to 255 */
#define	E82545_PTC511		0x040e4	/* 256 to 511 */
#define	E82545_PTC1023		0x040e8	/* 512 to 1023 */
#define	E82545_PTC1522		0x040ec	/* 1024 and more */
#define	E82545_MPTC		0x040f0	/* multicasts sent */
#define	E82545_BPTC		0x040f4	/* broadcasts sent */
#define	E82545_TSCTC		0x040f8	/* TSO contexts */
#define	E82545_TSCTFC		0x040fc	/* TSO contexts failed */
#define	E82545_STAT_LAST	0x040fc

/*
 * Filters.
 */
#define	E82545_RXCSUM		0x05000	/* 13.4.47 RX checksum control */
#define	 E82545_RXCSUM_PCSS	0x000000ff	/* first byte summed */
#define	 E82545_RXCSUM_IPOFL	0x00000100	/* IP checksum offload */
#define	 E82545_RXCSUM_TUOFL	0x00000200	/* TCP, UDP checksum offload */
#define	 E82545_RXCSUM_IPV6OFL	0x00000400	/* IPv6 checksum offload */
#define	E82545_MTA		0x05200	/* 13.5.1 multicast hash */
#define	E82545_MTA_COUNT	128
#define	E82545_RAL(n)		(0x05400 + 8 * (n))	/* 13.5.2 */
#define	E82545_RAH(n)		(0x05404 + 8 * (n))	/* 13.5.3 */
#define	 E82545_RAH_AS		0x00030000	/* 0: destination, 1: source */
#define	 E82545_RAH_AV		0x80000000	/* address valid */
#define	E82545_RA_COUNT		16
#define	E82545_VFTA		0x05600	/* 13.5.4 VLAN table */
#define	E82545_VFTA_COUNT	128

/*
 * Wake-up and management.  The model stores these; they have no effect.
 */
#define	E82545_WUC		0x05800	/* 13.6.1 wake-up control */
#define	E82545_WUFC		0x05808	/* 13.6.2 wake-up filters */
#define	E82545_WUS		0x05810	/* 13.6.3 wake-up status */
#define	E82545_MANC		0x05820	/* table 13-2, management control */
#define	E82545_IPAV		0x05838	/* 13.6.4 IP addresses valid */
#define	E82545_IP4AT(n)		(0x05840 + 8 * (n))	/* 13.6.5 */
#define	E82545_IP4AT_COUNT	4
#define	E82545_IP6AT		0x05880	/* 13.6.6 */
#define	E82545_IP6AT_COUNT	4
#define	E82545_WUPL		0x05900	/* 13.6.7 wake-up packet length */
#define	E82545_WUPM		0x05a00	/* 13.6.8 wake-up packet */
#define	E82545_WUPM_COUNT	32
/*
 * Of later adapters (82571): the semaphore of firmware and driver.  U-Boot
 * takes it on this one, too: it sets SWESMBI, and waits until it reads that
 * back.
 */
#define	E82545_SWSM		0x05b50
#define	 E82545_SWSM_SWESMBI	0x00000002	/* the driver has it */
#define	 E82545_SWSM_ALL	0x0000000f
#define	E82545_FFLT(n)		(0x05f00 + 8 * (n))	/* 13.6.9 */
#define	E82545_FFLT_COUNT	4
#define	E82545_FFMT(n)		(0x09000 + 8 * (n))	/* 13.6.10 */
#define	E82545_FFMT_COUNT	128
#define	E82545_FFVT(n)		(0x09800 + 8 * (n))	/* 13.6.11 */
#define	E82545_FFVT_COUNT	128

/* The I/O BAR: section 13.2.2. */
#define	E82545_IOADDR		0
#define	E82545_IODATA		4

/*
 * Receive descriptor, section 3.2.3.
 */
struct e82545_rxd {
	uint64_t	addr;		/* of the buffer */
	uint16_t	length;		/* bytes */
	uint16_t	csum;		/* packet checksum */
	uint8_t		status;
	uint8_t		errors;
	uint16_t	special;	/* VLAN tag */
};
_Static_assert(sizeof(struct e82545_rxd) == 16, "3.2.3");
_Static_assert(offsetof(struct e82545_rxd, status) == 12, "3.2.3");
_Static_assert(offsetof(struct e82545_rxd, errors) == 13, "3.2.3");
_Static_assert(offsetof(struct e82545_rxd, special) == 14, "3.2.3");

/* 3.2.3.1 */
#define	E82545_RXD_DD		0x01	/* descriptor done */
#define	E82545_RXD_EOP		0x02	/* end of packet */
#define	E82545_RXD_IXSM		0x04	/* ignore the checksum bits */
#define	E82545_RXD_VP		0x08	/* VLAN tag stripped */
#define	E82545_RXD_TCPCS	0x20	/* TCP or UDP checksum checked */
#define	E82545_RXD_IPCS		0x40	/* IP checksum checked */
#define	E82545_RXD_PIF		0x80	/* passed the hash filter only */
/* 3.2.3.2 */
#define	E82545_RXD_ERR_CE	0x01	/* CRC */
#define	E82545_RXD_ERR_SE	0x02	/* symbol */
#define	E82545_RXD_ERR_SEQ	0x04	/* sequence */
#define	E82545_RXD_ERR_CXE	0x10	/* carrier extension */
#define	E82545_RXD_ERR_TCPE	0x20	/* TCP or UDP checksum */
#define	E82545_RXD_ERR_IPE	0x40	/* IP checksum */
#define	E82545_RXD_ERR_RXE	0x80	/* RX data */

/*
 * Transmit descriptors.  DEXT and DTYP in `lower' distinguish the three types:
 * sections 3.3.3, 3.3.6 and 3.3.7.
 */
struct e82545_txd_legacy {
	uint64_t	addr;		/* of the buffer */
	uint16_t	length;		/* bytes */
	uint8_t		cso;		/* offset of the checksum */
	uint8_t		cmd;		/* lower >> 24 */
	uint8_t		status;
	uint8_t		css;		/* first byte summed */
	uint16_t	special;	/* VLAN tag */
};

struct e82545_txd_context {
	uint8_t		ipcss;		/* IP checksum: first byte, */
	uint8_t		ipcso;		/* offset of the checksum, */
	uint16_t	ipcse;		/* last byte */
	uint8_t		tucss;		/* the same for TCP and UDP */
	uint8_t		tucso;
	uint16_t	tucse;		/* 0: to the end */
	uint32_t	lower;		/* PAYLEN, DTYP, TUCMD */
	uint8_t		status;
	uint8_t		hdrlen;		/* TSO: bytes of header */
	uint16_t	mss;		/* TSO: bytes of payload */
};

struct e82545_txd_data {
	uint64_t	addr;		/* of the buffer */
	uint32_t	lower;		/* DTALEN, DTYP, DCMD */
	uint8_t		status;
	uint8_t		popts;
	uint16_t	special;	/* VLAN tag */
};

union e82545_txd {
	struct e82545_txd_legacy	legacy;
	struct e82545_txd_context	context;
	struct e82545_txd_data		data;
	struct {
		uint64_t		addr;
		uint32_t		lower;
		uint32_t		upper;
	};
};
_Static_assert(sizeof(struct e82545_txd_legacy) == 16, "3.3.3");
_Static_assert(offsetof(struct e82545_txd_legacy, cmd) == 11, "3.3.3");
_Static_assert(sizeof(struct e82545_txd_context) == 16, "3.3.6");
_Static_assert(offsetof(struct e82545_txd_context, hdrlen) == 13, "3.3.6");
_Static_assert(offsetof(struct e82545_txd_context, mss) == 14, "3.3.6");
_Static_assert(sizeof(struct e82545_txd_data) == 16, "3.3.7");
_Static_assert(offsetof(struct e82545_txd_data, status) == 12, "3.3.7");
_Static_assert(offsetof(struct e82545_txd_data, popts) == 13, "3.3.7");
_Static_assert(offsetof(struct e82545_txd_data, special) == 14, "3.3.7");
_Static_assert(sizeof(union e82545_txd) == 16, "3.3");

/* `lower' in all of them. */
#define	E82545_TXD_LEN		0x000fffff	/* DTALEN, PAYLEN */
#define	E82545_TXD_LEN_LEGACY	0x0000ffff
#define	E82545_TXD_DTYP		0x00f00000
#define	E82545_TXD_DTYP_CONTEXT	0x00000000
#define	E82545_TXD_DTYP_DATA	0x00100000
#define	E82545_TXD_EOP		0x01000000	/* end of packet */
#define	E82545_TXD_IFCS		0x02000000	/* insert FCS */
#define	E82545_TXD_IC		0x04000000	/* legacy: insert checksum */
#define	E82545_TXD_TSE		0x04000000	/* data: TSO */
#define	E82545_TXD_RS		0x08000000	/* report status */
#define	E82545_TXD_RPS		0x10000000	/* report packet sent */
#define	E82545_TXD_DEXT		0x20000000	/* not legacy */
#define	E82545_TXD_VLE		0x40000000	/* insert VLAN tag */
#define	E82545_TXD_IDE		0x80000000	/* interrupt delay */
/* TUCMD, in a context descriptor's `lower'. */
#define	E82545_TXD_TUCMD_TCP	0x01000000	/* TCP, else UDP */
#define	E82545_TXD_TUCMD_IP	0x02000000	/* IPv4, else IPv6 */
#define	E82545_TXD_TUCMD_TSE	0x04000000	/* TSO */
/* POPTS, in a data descriptor. */
#define	E82545_TXD_POPTS_IXSM	0x01		/* insert IP checksum */
#define	E82545_TXD_POPTS_TXSM	0x02		/* insert TCP/UDP checksum */
/* `status', and the low byte of `upper'. */
#define	E82545_TXD_DD		0x01		/* descriptor done */

/*
 * A descriptor of either ring as two words, for the driver.  The low bits of
 * the second word are the length or `lower'; the macros shift the other fields
 * into place.
 */
struct e82545_desc {
	uint64_t	addr;
	uint64_t	rest;
};
#define	E82545_REST_STATUS(v)	((uint64_t)(v) << 32)
#define	E82545_REST_ERRORS(v)	((uint64_t)(v) << 40)	/* RX */
#define	E82545_REST_POPTS(v)	((uint64_t)(v) << 40)	/* TX data */
#define	E82545_REST_HDRLEN(v)	((uint64_t)(v) << 40)	/* TX context */
#define	E82545_REST_MSS(v)	((uint64_t)(v) << 48)	/* TX context */
#define	E82545_REST_SPECIAL(v)	((uint64_t)(v) << 48)
_Static_assert(sizeof(struct e82545_desc) == 16, "3.2.3, 3.3");

#endif /* !_DEV_E1000_E82545_REG_H_ */
