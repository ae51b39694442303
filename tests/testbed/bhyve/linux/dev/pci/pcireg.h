/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The registers of PCI configuration space that an Ethernet adapter has, with
 * the names of FreeBSD's <dev/pci/pcireg.h>.  PCI Local Bus Specification 3.0,
 * section 6.1 and appendix D.
 */

#ifndef _COMPAT_DEV_PCI_PCIREG_H_
#define	_COMPAT_DEV_PCI_PCIREG_H_

#define	PCI_REGMAX		0xff
#define	PCIR_MAX_BAR_0		5

#define	PCIR_VENDOR		0x00
#define	PCIR_DEVICE		0x02
#define	PCIR_COMMAND		0x04
#define	PCIR_STATUS		0x06
#define	PCIR_REVID		0x08
#define	PCIR_PROGIF		0x09
#define	PCIR_SUBCLASS		0x0a
#define	PCIR_CLASS		0x0b
#define	PCIR_HDRTYPE		0x0e
#define	PCIR_SUBVEND_0		0x2c
#define	PCIR_SUBDEV_0		0x2e
#define	PCIR_INTLINE		0x3c
#define	PCIR_INTPIN		0x3d

#define	PCIM_CMD_BUSMASTEREN	0x0004
#define	PCIM_CMD_INTxDIS	0x0400
#define	PCIM_STATUS_INTxSTATE	0x0008
#define	PCIM_STATUS_CAPPRESENT	0x0010
#define	PCIM_HDRTYPE_NORMAL	0x00

#define	PCIC_NETWORK		0x02
#define	PCIS_NETWORK_ETHERNET	0x00

#endif /* !_COMPAT_DEV_PCI_PCIREG_H_ */
