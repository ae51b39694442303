/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The communication status block (CSB) of an emulated adapter, which no
 * hardware has: how a driver finds it, its registers, and its fields that
 * <net/paravirt.h> has as padding.  paravirt_csb(9).
 */

#ifndef _DEV_E1000_E82545_CSB_REG_H_
#define	_DEV_E1000_E82545_CSB_REG_H_

/*
 * What an adapter with a CSB has in configuration space: a vendor-specific
 * capability (PCI Local Bus Specification 3.0, appendix H), with the offsets of
 * its fields; and, of some, a subsystem device ID.
 */
#define	E82545_CSB_CAP_LENGTH	2	/* 8 bits */
#define	E82545_CSB_CAP_SIGNATURE 4	/* 32 bits */
#define	 E82545_CSB_SIGNATURE	0x42534350	/* "PCSB" */
#define	E82545_CSB_CAP_VERSION	8	/* 32 bits */
#define	 E82545_CSB_VERSION	1
#define	E82545_CSB_CAP_SIZE	12	/* bytes, and its length */
#define	E82545_PCI_SUBDEVICE	0x1008	/* without a CSB, and with */
#define	E82545_PCI_SUBDEVICE_CSB 0x1101

/*
 * Registers.  A write to the low half sets the address.
 */
#define	E82545_CSBAL		0x02830	/* address, low */
#define	E82545_CSBAH		0x02834	/* address, high */

/*
 * Fields of the CSB that <net/paravirt.h> has as padding: paravirt_csb(9),
 * "Requests with numbers".  The guest stores whether its requests have numbers;
 * the host, in each direction, that of the request it has last interrupted for.
 * "The header ring": the guest stores which headers it takes.
 */
#define	E82545_CSB_GUEST_NUMBERS(csb)	((csb)->pad[0])
#define	E82545_CSB_GUEST_HEADERS(csb)	((csb)->pad[1])
#define	 E82545_CSB_HEADERS_UDP	0x00000001	/* UDP, not only TCP */
#define	E82545_CSB_HOST_TXTOLD(csb)	((csb)->pad[7])
#define	E82545_CSB_HOST_RXTOLD(csb)	((csb)->pad[8])

#endif /* !_DEV_E1000_E82545_CSB_REG_H_ */
