/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What an 82574L is made of: its registers, its PHY and its EEPROM.
 *
 * The registers are those of the 82545EM, of which a few have other bits, and
 * new ones.  Registers of what is not modelled are stored, and have no effect:
 * headers apart from packets, management.
 *
 * Manual: Intel, "82574 GbE Controller Family Datasheet".
 *
 * Functions of registers run under reg_mtx.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_intr.h"
#include "e82545_stat.h"
#include "e82545_type.h"
#include "e82574.h"
#include "frame_cursor.h"
#include "frame_hdr.h"

/*
 * Functions of registers.
 */

/*
 * Read STATUS.  Drivers wait until requests to memory have ended, which is at
 * once.
 */
static uint32_t
l_status_read(struct e82545 *dev, uint32_t off)
{
	return (e82545_reg(dev, off) | ((e82545_reg(dev, E82545_CTRL) &
	    E82574_CTRL_GIO_MD) != 0 ? 0 : E82574_STATUS_GIO_ME));
}

/* Divide 40 KB: transmit has what receive does not get. */
static void
l_pba_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	uint32_t rx_kb;

	rx_kb = MIN(value & E82545_PBA_RX, 40);
	e82545_reg_set(dev, off, rx_kb | (40 - rx_kb) << 16);
}

/*
 * Write a register of RSS: the frame that waits for descriptors may be another
 * queue's now.
 */
static void
l_rss_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	e82545_reg_set(dev, off, value);
	dev->wake_rx = e82545_rx_kicked(dev);
}

/*
 * Read SWSM.  A reader of 0 in SMBI has the semaphore, and others then read 1.
 */
static uint32_t
l_swsm_read(struct e82545 *dev, uint32_t off)
{
	const uint32_t value = e82545_reg(dev, off);

	e82545_reg_set(dev, off, value | E82574_SWSM_SMBI);
	return (value);
}

/*
 * Return the time: SYSTIM is what was written, and has grown since.  A read of
 * the low half latches the high half.
 */
static uint64_t
systim_at(const struct e82545 *dev, uint64_t now_ns)
{
	const uint32_t timinca = e82545_reg(dev, E82574_TIMINCA);
	const uint64_t period_ns = (uint64_t)E82574_SYSTIM_NS *
	    E82574_TIMINCA_PERIOD(timinca);

	if (period_ns == 0 || now_ns < dev->x.xs_systim_ns)
		return (dev->x.xs_systim);
	return (dev->x.xs_systim + (now_ns - dev->x.xs_systim_ns) / period_ns *
	    (timinca & E82574_TIMINCA_VALUE));
}

uint64_t
e82574_systim(struct e82545 *dev)
{
	return (systim_at(dev, dev->ops->eo_now(dev->arg)));
}

static void
l_systim_set(struct e82545 *dev, uint64_t value)
{
	dev->x.xs_systim = value;
	dev->x.xs_systim_ns = dev->ops->eo_now(dev->arg);
}

static uint32_t
l_systiml_read(struct e82545 *dev, uint32_t off __unused)
{
	const uint64_t systim = e82574_systim(dev);

	e82545_reg_set(dev, E82574_SYSTIMH, systim >> 32);
	return (systim);
}

static void
l_systiml_write(struct e82545 *dev, uint32_t off __unused, uint32_t value)
{
	l_systim_set(dev, (e82574_systim(dev) & ~(uint64_t)UINT32_MAX) | value);
}

static void
l_systimh_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	l_systim_set(dev, (uint64_t)value << 32 | (uint32_t)e82574_systim(dev));
	e82545_reg_set(dev, off, value);
}

static void
l_timinca_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	l_systim_set(dev, e82574_systim(dev));
	e82545_reg_set(dev, off, value);
}

/*
 * Time stamps of packets.  Registers have one of each direction, and no other
 * packet gets one until the guest has read its high half.
 */

/* Store a stamp if there is none: `low' and `low' + 4 are its registers. */
static bool
stamp_store(struct e82545 *dev, uint32_t ctl, uint32_t low, uint64_t now_ns)
{
	const uint32_t value = e82545_reg(dev, ctl);
	uint64_t systim;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if ((value & (E82574_TSYNC_ENABLE | E82574_TSYNC_VALID)) !=
	    E82574_TSYNC_ENABLE)
		return (false);
	systim = systim_at(dev, now_ns);
	e82545_reg_set(dev, low, systim);
	e82545_reg_set(dev, low + 4, systim >> 32);
	e82545_reg_set(dev, ctl, value | E82574_TSYNC_VALID);
	return (true);
}

void
e82574_tx_stamp(struct e82545 *dev, uint64_t now_ns)
{
	(void)stamp_store(dev, E82574_TSYNCTXCTL, E82574_TXSTMPL, now_ns);
}

/* Bytes of a frame in which PTP's header is found, and of that header. */
#define	PTP_FRAME	192
#define	PTP_HDRLEN	34
/* In it: IEEE 1588-2002 and -2008, the first 34 bytes of messages. */
#define	PTP_MESSAGE	0		/* of version 2: low 4 bits */
#define	 PTP_PDELAY_REQ	2
#define	 PTP_PDELAY_RESP 3
#define	 PTP_GENERAL	8		/* bit: no event */
#define	PTP_VERSION	1		/* low 4 bits */
#define	PTP_SOURCE	22		/* 6 bytes */
#define	PTP_SEQUENCE	30
#define	PTP_CONTROL	32		/* of version 1 */
#define	UDP_PORT	2		/* destination */
#define	UDP_HDRLEN	8

/* Tell whether a message gets a stamp; `udp': it is in UDP. */
static bool
ptp_wanted(const struct e82545 *dev, const uint8_t *ptp, bool udp)
{
	const uint32_t rxmtrl = e82545_reg(dev, E82574_RXMTRL);
	const uint32_t type = e82545_reg(dev, E82574_TSYNCRXCTL) &
	    E82574_TSYNCRXCTL_TYPE;
	const unsigned int message = ptp[PTP_MESSAGE] & 0xf;

	if ((ptp[PTP_VERSION] & 0xf) == 1)
		return (type == E82574_TSYNC_L4_V1 && udp &&
		    ptp[PTP_CONTROL] == E82574_RXMTRL_V1(rxmtrl));
	if ((ptp[PTP_VERSION] & 0xf) != 2)
		return (false);
	switch (type) {
	case E82574_TSYNC_L2_V2:
	case E82574_TSYNC_V2:
		return ((type == E82574_TSYNC_V2 || !udp) &&
		    (message == E82574_RXMTRL_V2(rxmtrl) ||
		    message == PTP_PDELAY_REQ || message == PTP_PDELAY_RESP));
	case E82574_TSYNC_EVENT_V2:
		return ((message & PTP_GENERAL) == 0);
	default:
		return (false);
	}
}

/* Find the message in the first `len' bytes of a frame; NULL: there is none. */
static const uint8_t *
ptp_find(const struct e82545 *dev, const uint8_t *p, uint32_t len, bool *udp)
{
	const uint16_t port = e82545_reg(dev, E82574_RXUDP);
	struct frame_hdr fh;
	uint32_t at;
	uint16_t type;

	at = frame_hdr_ether(p, len, 0, &type);
	*udp = type != E82574_RXMTRL_TYPE(e82545_reg(dev, E82574_RXMTRL));
	if (*udp) {
		if (!frame_hdr_find(p, len, &fh) ||
		    fh.fh_proto != FRAME_PROTO_UDP ||
		    fh.fh_l4 + UDP_HDRLEN > len ||
		    (be16dec(p + fh.fh_l4 + UDP_PORT) != port &&
		    le16dec(p + fh.fh_l4 + UDP_PORT) != port))
			return (NULL);
		at = fh.fh_l4 + UDP_HDRLEN;
	}
	return (at == 0 || at + PTP_HDRLEN > len ? NULL : p + at);
}

bool
e82574_rx_stamp(struct e82545 *dev, const struct frame *f)
{
	const uint32_t len = MIN(f->f_len, (uint32_t)PTP_FRAME);
	const uint8_t *ptp;
	uint8_t p[PTP_FRAME];
	struct frame_cursor cur;
	bool stamped, udp;

	frame_cursor_init(&cur, f->f_iov);
	frame_cursor_copy(&cur, p, len);
	ptp = ptp_find(dev, p, len, &udp);
	if ((e82545_reg(dev, E82574_TSYNCRXCTL) & E82574_TSYNCRXCTL_TYPE) !=
	    E82574_TSYNC_ALL && (ptp == NULL || !ptp_wanted(dev, ptp, udp)))
		return (false);
	pthread_mutex_lock(&dev->reg_mtx);
	stamped = stamp_store(dev, E82574_TSYNCRXCTL, E82574_RXSTMPL,
	    dev->ops->eo_now(dev->arg));
	if (stamped && ptp != NULL) {
		e82545_reg_set(dev, E82574_RXSATRL,
		    le32dec(ptp + PTP_SOURCE));
		e82545_reg_set(dev, E82574_RXSATRH,
		    le16dec(ptp + PTP_SOURCE + 4) |
		    (uint32_t)le16dec(ptp + PTP_SEQUENCE) << 16);
	}
	pthread_mutex_unlock(&dev->reg_mtx);
	return (stamped);
}

/* Return the high half of a stamp; another packet may get one from now on. */
static uint32_t
l_stamp_read(struct e82545 *dev, uint32_t off)
{
	const uint32_t ctl = off == E82574_TXSTMPH ? E82574_TSYNCTXCTL :
	    E82574_TSYNCRXCTL;

	e82545_reg_set(dev, ctl, e82545_reg(dev, ctl) & ~E82574_TSYNC_VALID);
	return (e82545_reg(dev, off));
}

/* A register of a time stamp. */
#define	LINE_STAMP(name, read)						\
	LINE_OWN(E82574_##name, 0, 0, E82545_ALL, read, NULL)
/* A register of queue 1. */
#define	LINE_1(name, mask, write, ring)					\
	LINE_FN(E82545_##name + E82574_QUEUE(1), 0, mask, NULL, write, ring)
/* Registers that say which queue a frame is for. */
#define	LINE_RSS(off, count, reset, mask)				\
	{ off, count, 4, reset, mask, 0, NULL, l_rss_write, RING_RX }
/* A register that enables a queue. */
#define	LINE_TARC(n)							\
	LINE_FN(E82574_TARC(n), 0x3 | E82574_TARC_ENABLE,		\
	    0x7fffffff, NULL, e82545_tx_write, RING_TX)

static const struct e82545_line l_line[] = {
	/* SLU as firmware leaves it: drivers that never set it have a link. */
	LINE_FN(E82545_CTRL, E82545_CTRL_FD | E82545_CTRL_SLU |
	    E82545_CTRL_SPEED_1000 | E82545_CTRL_ADVD3WUC, 0xdbfc1bed,
	    NULL, e82545_ctrl_write, RING_NONE),
	LINE_FN(E82545_CTRL_DUP, 0,
	    0xdbfc1bed, e82545_ctrl_dup_read, e82545_ctrl_write, RING_NONE),
	LINE_OWN(E82545_STATUS, 0, 0, E82545_STATUS_FD | E82545_STATUS_LU |
	    E82545_STATUS_SPEED | E82545_STATUS_ASDV, l_status_read, NULL),
	LINE_FN(E82545_EECD, E82545_EECD_PRES | E82574_EECD_AUTO_RD |
	    E82545_EECD_FWE_DIS, 0x0000007f,
	    e82574_eecd_read, e82574_eecd_write, RING_NONE),
	LINE_OWN(E82545_EERD, 0,
	    E82574_EERW_START | E82574_EERW_ADDR_MASK, E82574_EERW_DONE |
	    E82545_ALL << E82574_EERW_DATA_SHIFT, NULL, e82574_eerd_write),
	LINE_FN(E82545_CTRL_EXT, 0, 0xd9ebffff,
	    NULL, e82545_ctrl_ext_write, RING_NONE),
	LINE_RW(E82545_FLA, 0, 0x00000017),
	LINE_OWN(E82545_MDIC, E82545_MDIC_READY, 0x2fffffff,
	    E82545_MDIC_READY | E82545_MDIC_ERROR, NULL, e82545_mdic_write),
	LINE_RW(E82545_FCAL, 0x00c28001, E82545_ALL),
	LINE_RW(E82545_FCAH, 0x00000100, 0x0000ffff),
	LINE_RW(E82545_FCT, 0x00008808, 0x0000ffff),
	LINE_RW(E82545_VET, 0x8100, 0x0000ffff),

	LINE_FN(E82545_ICR, 0, E82574_ICR_ALL,
	    e82574_icr_read, e82574_icr_write, RING_NONE),
	LINE_FN(E82545_ITR, 0, E82545_ITR_MASK,
	    NULL, e82545_itr_write, RING_NONE),
	LINE_FN(E82545_ICS, 0, E82574_ICR_ALL,
	    e82574_ics_read, e82545_ics_write, RING_NONE),
	LINE_FN(E82545_IMS, 0, E82574_ICR_ALL,
	    NULL, e82545_ims_write, RING_NONE),
	LINE_FN(E82545_IMC, 0, E82574_ICR_ALL,
	    e82545_zero_read, e82545_imc_write, RING_NONE),
	LINE_RW(E82574_EIAC, 0, E82574_ICR_MSIX),
	LINE_RW(E82574_IAM, 0, E82545_ALL),
	LINE_FN(E82574_IVAR, 0, 0x800fffff,
	    NULL, e82574_vector_write, RING_NONE),
	{ E82574_EITR(0), E82574_VECTORS, 4, 0, E82545_ITR_MASK, 0,
	    NULL, e82574_vector_write, RING_NONE },

	LINE_RXRING(E82545_RCTL, 0x06dfbffe),
	LINE_RW(E82545_FCTTV, 0, 0x0000ffff),
	LINE_RW(E82545_TXCW, 0, 0xc000ffff),
	LINE_TXRING(E82545_TCTL, 0x7ffffffa),
	LINE_RW(E82545_TIPG, 0x00602008, 0x3fffffff),
	LINE_RW(E82545_AIFS, 0, 0x0000ffff),
	LINE_RW(E82545_LEDCTL, 0x00068302, 0x00cfcfef),
	LINE_RW(E82574_EXTCNF_CTRL, 0x00000008, 0x0fff00e7),
	LINE_RW(E82574_EXTCNF_SIZE, 0, 0x00ffffff),
	LINE_RW(E82574_PHY_CTRL, 0x0000030d, 0x0000ffff),
	LINE_OWN(E82545_PBA, 0x00140014, E82545_PBA_RX, E82545_PBA_TX,
	    NULL, l_pba_write),
	LINE_RW(E82574_PBS, 0x00000028, 0x0000ffff),
	LINE_RW(E82574_EEMNGCTL,
	    E82574_EEMNGCTL_DONE | E82574_EEMNGCTL_CFG0, 0),
	LINE_OWN(E82574_EEWR, E82574_EERW_DONE, E82545_ALL &
	    ~E82574_EERW_DONE, E82574_EERW_DONE, NULL, e82574_eewr_write),
	LINE_RW(E82545_FCRTL, 0, 0x8000fff8),
	LINE_RW(E82545_FCRTH, 0, 0x0000fff8),
	{ E82574_PSRCTL, 1, 4, 0x00040402, 0x3f3f3f7f, 0,
	    NULL, e82545_rx_write, RING_RX },

	LINES_RX_FIFO,
	LINE_RW(E82545_TDFH, 0x00000600, 0x00001fff),
	LINE_RW(E82545_TDFT, 0x00000600, 0x00001fff),
	LINE_RW(E82545_TDFHS, 0x00000600, 0x00001fff),
	LINE_RW(E82545_TDFTS, 0x00000600, 0x00001fff),
	LINE_RW(E82545_TDFPC, 0, 0x00001fff),

	LINES_RX_RING,
	LINE_1(RDBAL, E82545_DBAL_MASK, e82545_rx_write, RING_RX),
	LINE_1(RDBAH, E82545_ALL, e82545_rx_write, RING_RX),
	LINE_1(RDLEN, E82545_DLEN_MASK, e82545_rx_write, RING_RX),
	LINE_1(RDH, E82545_DPTR_MASK, e82545_rx_write, RING_RX),
	LINE_1(RDT, E82545_DPTR_MASK, e82545_rdt_write, RING_NONE),
	LINE_RW(E82574_RXDCTL1, 0x00010000, 0x013f3f3f),

	LINES_TX_RING,
	LINE_RW(E82545_TXDCTL, 0, 0xff7f3f3f),
	LINE_RW(E82545_TADV, 0, 0x0000ffff),
	LINE_TARC(0),
	LINE_1(TDBAL, E82545_DBAL_MASK, e82545_tx_write, RING_TX),
	LINE_1(TDBAH, E82545_ALL, e82545_tx_write, RING_TX),
	LINE_1(TDLEN, E82545_DLEN_MASK, e82545_tx_write, RING_TX),
	LINE_1(TDH, E82545_DPTR_MASK, e82545_tx_write, RING_TX),
	LINE_1(TDT, E82545_DPTR_MASK, e82545_tdt_write, RING_NONE),
	LINE_RW(E82574_TXDCTL1, 0, 0xff7f3f3f),
	LINE_TARC(1),

	LINES_STAT,

	LINE_RSS(E82545_RXCSUM, 1, E82545_RXCSUM_IPOFL |
	    E82545_RXCSUM_TUOFL, 0x000037ff),
	LINE_RSS(E82574_RFCTL, 1, 0, 0x000fffff),
	LINES_FILTER,

	LINE_RW(E82545_WUC, 0, 0x0000000b),
	LINE_RW(E82545_WUFC, 0, 0x000f80ff),
	LINE_RW(E82545_WUS, 0, 0),
	LINE_RSS(E82574_MRQC, 1, 0, 0xffff0003),
	LINE_RW(E82545_MANC, 0, E82545_ALL),
	LINE_RW(E82574_MFVAL, 0, E82545_ALL),
	LINE_ARRAY(E82574_MFUTP(0), 2, 8, E82545_ALL),
	LINE_RW(E82545_IPAV, 0, 0x0001000f),
	LINE_ARRAY(E82545_IP4AT(0), E82545_IP4AT_COUNT, 8, E82545_ALL),
	LINE_RW(E82574_MANC2H, 0, E82545_ALL),
	LINE_ARRAY(E82545_IP6AT, E82545_IP6AT_COUNT, 4, E82545_ALL),
	LINE_ARRAY(E82574_MDEF, E82574_MDEF_COUNT, 4, E82545_ALL),
	LINE_RW(E82545_WUPL, 0, 0),
	LINE_ARRAY(E82545_WUPM, E82545_WUPM_COUNT, 4, 0),
	LINE_RW(E82574_GCR, 0, E82545_ALL),
	LINE_RW(E82574_FUNCTAG, 0, E82545_ALL),
	LINE_ARRAY(E82574_GSCL(0), 4, 4, E82545_ALL),
	LINE_ARRAY(E82574_GSCN(0), 4, 4, E82545_ALL),
	LINE_RW(E82574_FACTPS, E82574_FACTPS_LAN0 | E82574_FACTPS_NO_MNG, 0),
	LINE_FN(E82545_SWSM, 0, E82545_SWSM_ALL, l_swsm_read, NULL, RING_NONE),
	LINE_RW(E82574_FWSM, 0, 0),
	LINE_RW(E82574_SWSM2, 0, 0x00000003),
	LINE_RW(E82574_GCR2, 0, E82545_ALL),
	LINE_RW(E82574_PBACLR, 0, 0x0000001f),
	LINE_RSS(E82574_RETA, E82574_RETA_COUNT, 0, E82545_ALL),
	LINE_RSS(E82574_RSSRK, E82574_RSSRK_COUNT, 0, E82545_ALL),
	LINE_ARRAY(E82545_FFLT(0), E82545_FFLT_COUNT, 8, 0x000007ff),
	LINE_ARRAY(E82545_FFMT(0), E82545_FFMT_COUNT, 8, 0x0000000f),
	LINE_ARRAY(E82545_FFVT(0), E82545_FFVT_COUNT, 8, E82545_ALL),

	LINE_FN(E82574_SYSTIML, 0, E82545_ALL,
	    l_systiml_read, l_systiml_write, RING_NONE),
	LINE_FN(E82574_SYSTIMH, 0, E82545_ALL,
	    NULL, l_systimh_write, RING_NONE),
	LINE_FN(E82574_TIMINCA, 0, E82545_ALL,
	    NULL, l_timinca_write, RING_NONE),
	LINE_RW(E82574_TIMADJL, 0, E82545_ALL),
	LINE_RW(E82574_TIMADJH, 0, E82545_ALL),
	LINE_OWN(E82574_TSYNCTXCTL, 0, E82574_TSYNC_ENABLE,
	    E82574_TSYNC_VALID, NULL, NULL),
	LINE_OWN(E82574_TSYNCRXCTL, 0, E82574_TSYNC_ENABLE |
	    E82574_TSYNCRXCTL_TYPE, E82574_TSYNC_VALID, NULL, NULL),
	LINE_RW(E82574_RXMTRL, 0x000088f7, E82545_ALL),
	LINE_RW(E82574_RXUDP, 0x00000319, 0x0000ffff),
	LINE_STAMP(TXSTMPL, NULL), LINE_STAMP(TXSTMPH, l_stamp_read),
	LINE_STAMP(RXSTMPL, NULL), LINE_STAMP(RXSTMPH, l_stamp_read),
	LINE_STAMP(RXSATRL, NULL), LINE_STAMP(RXSATRH, NULL),
};

/* An 82574L has a PHY of Marvell's, whose registers from 16 on have pages. */
static const struct e82545_phy_reg l_phy[E82545_PHY_NREGS] = {
	[PHY_CTRL] =		{ 0x1140, 0x7dc0 },
	[PHY_STATUS] =		{ 0x7949, 0 },
	[PHY_ID1] =		{ 0x0141, 0 },
	[PHY_ID2] =		{ 0x0cb1, 0 },
	[PHY_ADV] =		{ 0x0de1, 0xbfff },
	[PHY_EXPANSION] =	{ 0x0004, 0 },
	[PHY_NEXT_PAGE] =	{ 0x2001, 0xbfff },
	[PHY_GCTRL] =		{ 0x0f00, 0xff00 },
	[PHY_EXT_STATUS] =	{ 0x3000, 0 },
	[PHY_M88_CTRL] =	{ 0x3360, 0xffff },
	[PHY_M88_INT_ENABLE] =	{ 0x0000, 0xffff },
	[PHY_M88_EXT_CTRL] =	{ 0x0000, 0xffff },
	[PHY_BM_PAGE] =		{ 0x0000, 0xffff },
	[PHY_BM_OEM] =		{ 0x0000, 0xffff },
	[PHY_M88_EXT_CTRL2] =	{ 0x0000, 0xffff },
	[PHY_BM_BIAS1] =	{ 0x0000, 0xffff },
	[PHY_BM_BIAS2] =	{ 0x0000, 0xffff },
};

static const struct e82545_eeprom_word l_eeprom[] = {
	{ EEPROM_COMPAT,	0 },
	{ EEPROM_VERSION,	0 },
	{ EEPROM_PBA,		0 },
	{ EEPROM_PBA + 1,	0 },
	{ EEPROM_INIT1,		EEPROM_INIT1_VALID | EEPROM_INIT1_IDS },
	{ EEPROM_SUBVENDOR,	E82545_PCI_VENDOR },
	{ EEPROM_DEVICE,	E82574_PCI_DEVICE },
	{ EEPROM_VENDOR,	E82545_PCI_VENDOR },
	{ EEPROM_INIT2,		0 },	/* no management */
	{ EEPROM_PCIE_CTRL,	EEPROM_PCIE_MSIX(E82574_VECTORS) },
	{ EEPROM_INIT3,		0 },	/* no wake on LAN */
};

static uint8_t l_index[E82545_BAR_MEM_SIZE / 4];

const struct e82545_type e82574_l = {
	.et_magic = { '8', '2', '5', '7', '4', 'L' },
	.et_subdevice = E82574_PCI_SUBDEVICE,
	.et_queues = 2,
	.et_line = l_line,
	.et_nlines = nitems(l_line),
	.et_index = l_index,
	.et_phy = l_phy,
	.et_phy_page = PHY_BM_PAGE,
	.et_eeprom = l_eeprom,
	.et_neeprom = nitems(l_eeprom),
	.et_bus = &e82574_spi,
	.et_reset = e82574_reset,
	.et_snap = e82574_snap,
	.et_salvage = e82574_salvage,
};
