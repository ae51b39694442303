/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What an 82545EM is made of: its registers, its PHY, an 88E1011, and its
 * EEPROM.
 *
 * 8254x SDM chapter 5 (contents of the EEPROM), chapter 13 (registers), section
 * 13.4.7.1 (PHY registers).
 */

#include <sys/param.h>

#include "e82545_intr.h"
#include "e82545_stat.h"
#include "e82545_type.h"

/* Divide 64 KB: transmit has what receive does not get.  Section 13.4.16. */
static void
em_pba_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	uint32_t rx_kb;

	rx_kb = value & E82545_PBA_RX;
	if (rx_kb > 64)
		rx_kb = 64;
	e82545_reg_set(dev, off, rx_kb | (64 - rx_kb) << 16);
}

/*
 * Read ICS, which the manual has as written only (13.4.19): return ICR and clear
 * nothing.  By QEMU's source (hw/net/e1000.c) hardware does so, and VxWorks'
 * driver needs that.
 */
static uint32_t
em_ics_read(struct e82545 *dev, uint32_t off __unused)
{
	return (e82545_reg(dev, E82545_ICR));
}

static const struct e82545_line em_line[] = {
	/* SLU as firmware leaves it: drivers that never set it have a link. */
	LINE_FN(E82545_CTRL, E82545_CTRL_FD | E82545_CTRL_SLU |
	    E82545_CTRL_SPEED_1000, 0xdbfc1be9, NULL, e82545_ctrl_write,
	    RING_NONE),
	LINE_FN(E82545_CTRL_DUP, 0,
	    0xdbfc1be9, e82545_ctrl_dup_read, e82545_ctrl_write, RING_NONE),
	LINE_OWN(E82545_STATUS, 0, 0, E82545_STATUS_FD | E82545_STATUS_LU |
	    E82545_STATUS_SPEED | E82545_STATUS_ASDV, NULL, NULL),
	LINE_FN(E82545_EECD, E82545_EECD_PRES | E82545_EECD_FWE_DIS,
	    E82545_EECD_SK | E82545_EECD_CS | E82545_EECD_DI | E82545_EECD_FWE |
	    E82545_EECD_REQ, e82545_eecd_read, e82545_eecd_write, RING_NONE),
	LINE_OWN(E82545_EERD, 0, E82545_EERD_START | E82545_EERD_ADDR_MASK,
	    E82545_EERD_DONE | E82545_ALL << E82545_EERD_DATA_SHIFT, NULL,
	    e82545_eerd_write),
	LINE_FN(E82545_CTRL_EXT, 0, 0x00c2bfff,
	    NULL, e82545_ctrl_ext_write, RING_NONE),
	LINE_RW(E82545_FLA, 0, 0x00000017),
	LINE_OWN(E82545_MDIC, E82545_MDIC_READY, 0x2fffffff,
	    E82545_MDIC_READY | E82545_MDIC_ERROR, NULL, e82545_mdic_write),
	LINE_RW(E82545_FCAL, 0, E82545_ALL),
	LINE_RW(E82545_FCAH, 0, 0x0000ffff),
	LINE_RW(E82545_FCT, 0, 0x0000ffff),
	LINE_RW(E82545_VET, 0x8100, 0x0000ffff),

	LINE_FN(E82545_ICR, 0, E82545_ICR_ALL,
	    e82545_icr_read, e82545_icr_write, RING_NONE),
	LINE_FN(E82545_ITR, 0, E82545_ITR_MASK,
	    NULL, e82545_itr_write, RING_NONE),
	LINE_FN(E82545_ICS, 0, E82545_ICR_ALL,
	    em_ics_read, e82545_ics_write, RING_NONE),
	LINE_FN(E82545_IMS, 0, E82545_ICR_ALL,
	    NULL, e82545_ims_write, RING_NONE),
	LINE_FN(E82545_IMC, 0, E82545_ICR_ALL,
	    e82545_zero_read, e82545_imc_write, RING_NONE),

	LINE_RXRING(E82545_RCTL, 0x06dfb3fe),
	LINE_RW(E82545_FCTTV, 0, 0x0000ffff),
	LINE_RW(E82545_TXCW, 0, 0xc000ffff),
	LINE_RW(E82545_RXCW, 0, 0),
	LINE_TXRING(E82545_TCTL, 0x03fffffa),
	LINE_RW(E82545_TIPG, 0, 0x3fffffff),
	LINE_RW(E82545_AIFS, 0, 0x0000ffff),
	LINE_RW(E82545_LEDCTL, 0x07068302, 0xcfcfcfef),
	LINE_OWN(E82545_PBA, 0x00100030, E82545_PBA_RX, E82545_PBA_TX,
	    NULL, em_pba_write),
	LINE_RW(E82545_FCRTL, 0, 0x8000fff8),
	LINE_RW(E82545_FCRTH, 0, 0x0000fff8),

	LINES_RX_FIFO,
	LINE_RW(E82545_TDFH, 0, 0x00001fff),
	LINE_RW(E82545_TDFT, 0, 0x00001fff),
	LINE_RW(E82545_TDFHS, 0, 0x00001fff),
	LINE_RW(E82545_TDFTS, 0, 0x00001fff),
	LINE_RW(E82545_TDFPC, 0, 0x00001fff),

	LINES_RX_RING,

	LINE_RW(E82545_TXDMAC, 0, 0x00000001),
	LINES_TX_RING,
	LINE_RW(E82545_TXDCTL, 0, 0xff3f3f3f),
	LINE_RW(E82545_TADV, 0, 0x0000ffff),
	LINE_RW(E82545_TSPMT, 0x01000400, E82545_ALL),

	LINES_STAT,

	LINE_RW(E82545_RXCSUM, 0, 0x000007ff),
	LINES_FILTER,

	LINE_RW(E82545_WUC, 0, 0x0000000b),
	LINE_RW(E82545_WUFC, 0, 0x000f80ff),
	LINE_RW(E82545_WUS, 0, 0),
	LINE_RW(E82545_MANC, 0, E82545_ALL),
	LINE_RW(E82545_IPAV, 0, 0x0001000f),
	LINE_ARRAY(E82545_IP4AT(0), E82545_IP4AT_COUNT, 8, E82545_ALL),
	LINE_ARRAY(E82545_IP6AT, E82545_IP6AT_COUNT, 4, E82545_ALL),
	LINE_RW(E82545_WUPL, 0, 0),
	LINE_ARRAY(E82545_WUPM, E82545_WUPM_COUNT, 4, 0),
	LINE_RW(E82545_SWSM, 0, E82545_SWSM_ALL),
	LINE_ARRAY(E82545_FFLT(0), E82545_FFLT_COUNT, 8, 0x0000007f),
	LINE_ARRAY(E82545_FFMT(0), E82545_FFMT_COUNT, 8, 0x0000000f),
	LINE_ARRAY(E82545_FFVT(0), E82545_FFVT_COUNT, 8, E82545_ALL),
};

static const struct e82545_phy_reg em_phy[E82545_PHY_NREGS] = {
	[PHY_CTRL] =		{ 0x1140, 0x7dc0 },
	[PHY_STATUS] =		{ 0x7949, 0 },
	[PHY_ID1] =		{ 0x0141, 0 },
	[PHY_ID2] =		{ 0x0c20, 0 },
	[PHY_ADV] =		{ 0x0de1, 0xbfff },
	[PHY_EXPANSION] =	{ 0x0004, 0 },
	[PHY_NEXT_PAGE] =	{ 0x2001, 0xbfff },
	[PHY_GCTRL] =		{ 0x0300, 0xff00 },
	[PHY_EXT_STATUS] =	{ 0x3000, 0 },
	[PHY_M88_CTRL] =	{ 0x0068, 0xffff },
	[PHY_M88_INT_ENABLE] =	{ 0x0000, 0xffff },
	[PHY_M88_EXT_CTRL] =	{ 0x0d60, 0xffff },
	[PHY_M88_LED] =		{ 0x4100, 0xffff },
	[PHY_M88_EXT_CTRL2] =	{ 0x0000, 0xffff },
	[PHY_M88_PAGE] =	{ 0x0000, 0xffff },
};

static const struct e82545_eeprom_word em_eeprom[] = {
	{ EEPROM_COMPAT,	EEPROM_COMPAT_SERVER },
	{ EEPROM_VERSION,	0 },
	{ EEPROM_PBA,		0 },
	{ EEPROM_PBA + 1,	0 },
	{ EEPROM_INIT1,		EEPROM_INIT1_VALID | EEPROM_INIT1_FD |
				EEPROM_INIT1_PM | EEPROM_INIT1_IDS },
	{ EEPROM_SUBVENDOR,	E82545_PCI_VENDOR },
	{ EEPROM_DEVICE,	E82545_PCI_DEVICE },
	{ EEPROM_VENDOR,	E82545_PCI_VENDOR },
	{ EEPROM_INIT2,		EEPROM_INIT2_PAUSE },
	{ EEPROM_INIT3,		0 },	/* no wake on LAN */
};

static uint8_t em_index[E82545_BAR_MEM_SIZE / 4];

const struct e82545_type e82545_em = {
	.et_magic = { '8', '2', '5', '4', '5', 'E', 'M' },
	.et_subdevice = E82545_PCI_SUBDEVICE,
	.et_queues = 1,
	.et_line = em_line,
	.et_nlines = nitems(em_line),
	.et_index = em_index,
	.et_phy = em_phy,
	.et_phy_page = PHY_M88_PAGE,
	.et_eeprom = em_eeprom,
	.et_neeprom = nitems(em_eeprom),
	.et_bus = &e82545_microwire,
};
