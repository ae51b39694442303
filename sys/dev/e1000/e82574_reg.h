/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The 82574L: what differs from the 82545EM of e82545_reg.h, or is new.
 * Offsets are in bytes, from the start of BAR 0.  Everything in the guest's
 * memory is little-endian.
 *
 * Manual: Intel, "82574 GbE Controller Family Datasheet".
 */

#ifndef _DEV_E1000_E82574_REG_H_
#define	_DEV_E1000_E82574_REG_H_

#include "e82545_reg.h"

/*
 * PCI identity.
 */
#define	E82574_PCI_DEVICE	0x10d3	/* 82574L */
#define	E82574_PCI_SUBDEVICE	0xa01f	/* Gigabit CT Desktop Adapter */
#define	E82574_PCI_REVISION	0x00
#define	E82574_VECTORS		5	/* of MSI-X */
/*
 * BARs: registers in memory, flash, registers by I/O, MSI-X.  Sizes in bytes.
 */
#define	E82574_BAR_FLASH	1
#define	E82574_BAR_FLASH_SIZE	0x20000
#define	E82574_BAR_IO_SIZE	32
#define	E82574_BAR_MSIX		3

/*
 * General.
 */
#define	 E82574_CTRL_GIO_MD	0x00000004	/* no requests to memory */
#define	 E82574_STATUS_GIO_ME	0x00080000	/* requests are enabled */

/* EECD has the bits of an EEPROM that the adapter has read itself. */
#define	 E82574_EECD_AUTO_RD	0x00000200	/* it has */
#define	 E82574_EECD_ADDR_1	0x00008000	/* addresses of one byte */

/* EERD and EEWR. */
#define	E82574_EEWR		0x0102c
#define	 E82574_EERW_START	0x00000001
#define	 E82574_EERW_DONE	0x00000002
#define	 E82574_EERW_ADDR(v)	(((v) >> 2) & 0x3fff)	/* word */
#define	 E82574_EERW_ADDR_MASK	0x0000fffc
#define	 E82574_EERW_DATA(v)	((v) >> 16)
#define	 E82574_EERW_DATA_SHIFT	16

#define	 E82574_CTRL_EXT_EIAME	0x01000000	/* IAM when a message is sent */
#define	 E82574_CTRL_EXT_IAME	0x08000000	/* IAM with ICR */
#define	 E82574_CTRL_EXT_PBA_CLR 0x80000000	/* IMS clears pending bits */

/*
 * Interrupts.  The first five have a vector each, by IVAR.
 */
#define	 E82574_ICR_ACK		0x00020000	/* receive ACK frame */
#define	 E82574_ICR_MNG		0x00040000	/* management */
#define	 E82574_ICR_RXQ0	0x00100000	/* receive queue 0 */
#define	 E82574_ICR_RXQ1	0x00200000	/* receive queue 1 */
#define	 E82574_ICR_TXQ0	0x00400000	/* transmit queue 0 */
#define	 E82574_ICR_TXQ1	0x00800000	/* transmit queue 1 */
#define	 E82574_ICR_OTHER	0x01000000	/* any that is not of a queue */
#define	 E82574_ICR_ASSERTED	0x80000000	/* a cause is not masked */
#define	 E82574_ICR_MSIX	0x01f00000	/* those with a vector */
#define	 E82574_ICR_ALL		0x01f7ffff	/* all, reserved ones too */
#define	 E82574_ICR_OTHERS	(E82545_ICR_LSC | E82545_ICR_RXO |	\
				 E82545_ICR_MDAC | E82545_ICR_SRPD |	\
				 E82574_ICR_ACK | E82574_ICR_MNG)
#define	E82574_EIAC		0x000dc	/* causes that a message clears */
#define	E82574_IAM		0x000e0	/* causes that ICR masks */
#define	E82574_IVAR		0x000e4	/* causes to vectors */
#define	 E82574_IVAR_VECTOR(v, i) (((v) >> (4 * (i))) & 0x7)
#define	 E82574_IVAR_VALID(v, i) ((((v) >> (4 * (i))) & 0x8) != 0)
#define	E82574_EITR(n)		(0x000e8 + 4 * (n))	/* as ITR, a vector */

/*
 * Receive.
 */
#define	 E82574_RCTL_DTYP	0x00000c00	/* type of descriptors */
#define	 E82574_RCTL_DTYP_SPLIT	0x00000400	/* with four buffers */
#define	E82574_PSRCTL		0x02170	/* sizes of these */
#define	 E82574_PSRCTL_BSIZE0(v) (((v) & 0x7f) * 128)
#define	 E82574_PSRCTL_BSIZE(v, i) /* 1 to 3 */				\
	    (((v) >> 8 * (i) & 0x3f) * 1024)
#define	E82574_SPLIT_BUFFERS	4
#define	E82574_RFCTL		0x05008	/* receive filter control */
#define	 E82574_RFCTL_IP6_DIS	0x00000400	/* IPv6 is payload */
#define	 E82574_RFCTL_IP6_XSUM_DIS 0x00000800	/* without checksums checked */
#define	 E82574_RFCTL_ACK_DIS	0x00001000	/* no cause ACK */
#define	 E82574_RFCTL_IPFRSP_DIS 0x00004000	/* fragments are not split */
#define	 E82574_RFCTL_EXTEN	0x00008000	/* extended descriptors */
#define	 E82574_RFCTL_IP6_EX_DIS 0x00010000	/* RSS: no types for extension
						   headers, if there are any; */
#define	 E82574_RFCTL_NEW_IP6_EX_DIS 0x00020000	/* if these have addresses */
#define	 E82574_RXCSUM_PCSD	0x00002000	/* no packet checksum */

/*
 * Second queues, arbitration.  A queue has its registers so many bytes after
 * those of queue 0, from RDBAL and from TDBAL on.
 */
#define	E82574_QUEUE(n)		(0x100 * (n))
#define	E82574_RXDCTL1		0x02928
#define	E82574_TXDCTL1		0x03928
#define	E82574_TARC(n)		(0x03840 + 0x100 * (n))
#define	 E82574_TARC_ENABLE	0x00000400

/*
 * EEPROM, PHY and their semaphores.
 */
#define	E82574_EXTCNF_CTRL	0x00f00
#define	 E82574_EXTCNF_OWNER	0x00000020	/* a driver has the PHY */
#define	E82574_EXTCNF_SIZE	0x00f08
#define	E82574_PHY_CTRL		0x00f10
#define	E82574_PBS		0x01008	/* packet buffer size */
#define	E82574_EEMNGCTL		0x01010
#define	 E82574_EEMNGCTL_CFG0	0x00040000	/* port 0 is configured */
#define	 E82574_EEMNGCTL_DONE	0x80000000
/* In SWSM. */
#define	 E82574_SWSM_SMBI	0x00000001	/* set by reading */
#define	E82574_FWSM		0x05b54
#define	E82574_SWSM2		0x05b58
#define	 E82574_SWSM2_LOCK	0x00000002	/* a driver has the adapter */

/*
 * PCI Express, management.
 */
#define	E82574_GCR		0x05b00
#define	E82574_FUNCTAG		0x05b08
#define	E82574_GSCL(n)		(0x05b10 + 4 * (n))	/* event counters */
#define	E82574_GSCN(n)		(0x05b20 + 4 * (n))
#define	E82574_FACTPS		0x05b30
#define	 E82574_FACTPS_LAN0	0x00000003	/* power state D0, enabled */
#define	 E82574_FACTPS_NO_MNG	0x20000000	/* management has no clock */
#define	E82574_GCR2		0x05b64
#define	E82574_PBACLR		0x05b68	/* clears pending bits */
#define	E82574_MRQC		0x05818	/* multiple receive queues */
#define	 E82574_MRQC_ENABLE	0x00000003
#define	 E82574_MRQC_ENABLE_RSS	0x00000001
#define	 E82574_MRQC_TCPIP4	0x00010000	/* types of hash */
#define	 E82574_MRQC_IP4	0x00020000
#define	 E82574_MRQC_TCPIP6	0x00040000
#define	 E82574_MRQC_IP6EX	0x00080000
#define	 E82574_MRQC_IP6	0x00100000
#define	E82574_MFUTP(n)		(0x05828 + 8 * (n))
#define	E82574_MFVAL		0x05824
#define	E82574_MANC2H		0x05860
#define	E82574_MDEF		0x05890
#define	E82574_MDEF_COUNT	8
#define	E82574_RETA		0x05c00	/* hash to queue, bytes */
#define	E82574_RETA_COUNT	32
#define	E82574_RETA_ENTRIES	128
#define	 E82574_RETA_QUEUE	0x80	/* of an entry */
#define	E82574_RSSRK		0x05c80	/* key of the hash */
#define	E82574_RSSRK_COUNT	10

/*
 * Time: SYSTIM grows by the increment in TIMINCA in each period of so many
 * times 40 ns.
 */
#define	E82574_SYSTIML		0x0b600
#define	E82574_SYSTIMH		0x0b604
#define	E82574_TIMINCA		0x0b608
#define	 E82574_TIMINCA_VALUE	0x00ffffff
#define	 E82574_TIMINCA_PERIOD(v) ((v) >> 24)
#define	E82574_SYSTIM_NS	40
#define	E82574_TIMADJL		0x0b60c
#define	E82574_TIMADJH		0x0b610
#define	E82574_TSYNCTXCTL	0x0b614
#define	 E82574_TSYNC_VALID	0x00000001	/* of both: there is a stamp */
#define	 E82574_TSYNC_ENABLE	0x00000010	/* of both */
#define	E82574_TXSTMPL		0x0b618
#define	E82574_TXSTMPH		0x0b61c
#define	E82574_TSYNCRXCTL	0x0b620
#define	 E82574_TSYNCRXCTL_TYPE	0x0000000e	/* which messages of PTP: */
#define	 E82574_TSYNC_L2_V2	0x00000000
#define	 E82574_TSYNC_L4_V1	0x00000002
#define	 E82574_TSYNC_V2	0x00000004
#define	 E82574_TSYNC_ALL	0x00000008	/* all frames */
#define	 E82574_TSYNC_EVENT_V2	0x0000000a
#define	E82574_RXSTMPL		0x0b624
#define	E82574_RXSTMPH		0x0b628
#define	E82574_RXSATRL		0x0b62c	/* source of the message */
#define	E82574_RXSATRH		0x0b630	/* and its number << 16 */
#define	E82574_RXMTRL		0x0b634
#define	 E82574_RXMTRL_TYPE(v)	((v) & 0xffff)		/* Ethernet's */
#define	 E82574_RXMTRL_V1(v)	((v) >> 16 & 0xff)	/* control */
#define	 E82574_RXMTRL_V2(v)	((v) >> 24 & 0xf)	/* message */
#define	E82574_RXUDP		0x0b638	/* a port, in either byte order */
/* `status' of a data descriptor: the packet gets a stamp. */
#define	E82574_TXD_STAMP	0x10

/*
 * Receive descriptor with RFCTL.EXTEN.  The guest writes an address and zeros;
 * the adapter writes this.
 */
struct e82574_rxd {
	uint32_t	mrq;		/* queue << 8, E82574_RSS_* */
	uint16_t	ip_id;		/* or, with PCSD, */
	uint16_t	csum;		/* packet checksum; the hash */
	uint32_t	status;		/* E82545_RXD_*, errors << 24 */
	uint16_t	length;		/* bytes */
	uint16_t	vlan;		/* tag */
};
_Static_assert(sizeof(struct e82574_rxd) == 16, "as the other format");
#define	E82574_RXD_STAMP	0x00000100	/* in `status' */
#define	E82574_RSS_NONE		0	/* no hash */
#define	E82574_RSS_TCPIP4	1
#define	E82574_RSS_IP4		2
#define	E82574_RSS_TCPIP6	3
#define	E82574_RSS_IP6EX	4
#define	E82574_RSS_IP6		5

/*
 * The same with RCTL.DTYP, too: the guest writes four addresses, and counts two
 * places of the ring.  If the headers are split from the packet they are in the
 * first buffer of its first descriptor, and no more is in first buffers.  Else
 * the bytes of a frame are in the first buffer, then in the second, and so on.
 */
struct e82574_rxd_split {
	struct e82574_rxd first;	/* length: in the first buffer */
	uint16_t	header;		/* E82574_HEADER_SPLIT and the length
					   of the headers, or 0 */
	uint16_t	length[3];	/* in the others */
	uint64_t	reserved;
};
_Static_assert(sizeof(struct e82574_rxd_split) == 32, "four addresses");
#define	E82574_HEADER_SPLIT	0x8000
#define	E82574_HEADER_LEN	0x03ff

#endif /* !_DEV_E1000_E82574_REG_H_ */
