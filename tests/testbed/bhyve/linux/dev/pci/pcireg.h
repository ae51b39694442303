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

/* Capabilities.  MSI 1.0, MSI-X 1.0, PCI Express Base 2.0, section 7.8. */
#define	PCIR_CAP_PTR		0x34
#define	PCICAP_ID		0x0
#define	PCICAP_NEXTPTR		0x1
#define	PCIY_MSI		0x05
#define	PCIY_VENDOR		0x09
#define	PCIY_EXPRESS		0x10
#define	PCIY_MSIX		0x11
#define	PCIR_MSIX_CTRL		0x2
#define	PCIM_MSIXCTRL_MSIX_ENABLE	0x8000
#define	PCIM_MSIXCTRL_FUNCTION_MASK	0x4000
#define	PCIM_MSIX_VCTRL_MASK	0x1
#define	PCIEM_TYPE_ENDPOINT	0x0000

#define	PCIC_NETWORK		0x02
#define	PCIS_NETWORK_ETHERNET	0x00

#endif /* !_COMPAT_DEV_PCI_PCIREG_H_ */
