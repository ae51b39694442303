/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _PCI_E82545_CSB_H_
#define	_PCI_E82545_CSB_H_

#include <net/paravirt.h>

#include <stdbool.h>

/* An entry of the header ring, in bytes. */
#define	E82545_CSB_HDR_SIZE	10

struct pci_devinst;
struct vmctx;

/*
 * The communication status block (CSB), host side: paravirt_csb(9).  All is
 * protected by the adapter's mutex, except the page, which changes only while
 * both rings are idle.
 */
struct e82545_csb {
	struct paravirt_csb *page;	/* in guest memory; NULL: none */
	uint64_t	addr;		/* its address, as written */
	uint8_t		*hdrs;		/* the header ring, NULL: none */
	uint32_t	nhdrs;		/* and its entries */
	uint32_t	held;		/* causes suppressed on receive */
	int		unmasked;	/* by IMS, and ICR not read since */
	int		txkick_at;	/* the guest uses guest_txkick_at */
	int		again;		/* as if the guest had read ICR */
};

/* Announce the CSB in configuration space. */
int	e82545_csb_init(struct pci_devinst *pi);

/*
 * Use the page at csb->addr, or none if that is 0 or not a page of memory, and
 * clear the header ring for `rxdescs' receive descriptors.
 */
void	e82545_csb_place(struct e82545_csb *csb, struct vmctx *ctx,
	    uint32_t rxdescs);

/* Whether the guest has turned the CSB on. */
bool	e82545_csb_on(const struct e82545_csb *csb);

/* Whether it is on and has a header ring, and whether that may have UDP. */
bool	e82545_csb_has_hdrs(const struct e82545_csb *csb);
bool	e82545_csb_takes_udp(const struct e82545_csb *csb);

/* Store the header of the frame that begins at descriptor `index'. */
void	e82545_csb_hdr(struct e82545_csb *csb, uint16_t index,
	    const void *hdr);

/*
 * Set a tail register, if the CSB is on, to the index that the guest has stored
 * there, if any, and if it is within `size' descriptors.
 */
void	e82545_csb_tdt(struct e82545_csb *csb, uint16_t *tdt, uint16_t size);
void	e82545_csb_rdt(struct e82545_csb *csb, uint16_t *rdt, uint16_t size);

/* Ask for writes to TDT, or not. */
void	e82545_csb_need_txkick(struct e82545_csb *csb, bool need);

/* Wait a limited time for an index to be stored, while *enabled. */
void	e82545_csb_poll(const struct e82545_csb *csb, const int *enabled);

/*
 * The head has moved from `old' to `new'.  Returns the causes of `cause' that
 * the guest is to be interrupted for, besides those in `icr', and sets
 * csb->again if the guest must be, although it has not read those.
 */
uint32_t e82545_csb_tx(struct e82545_csb *csb, uint16_t old, uint16_t new,
	    uint16_t size, uint32_t icr, uint32_t cause);
uint32_t e82545_csb_rx(struct e82545_csb *csb, uint16_t new, uint32_t icr,
	    uint32_t cause);

/* A write to IMS: returns causes that were suppressed before. */
uint32_t e82545_csb_unmask(struct e82545_csb *csb, uint32_t cause);

/* ICR was read, or the adapter is reset. */
void	e82545_csb_clear(struct e82545_csb *csb);

/* RDH was written, or the adapter is reset: forget guest_rdt. */
void	e82545_csb_restart(struct e82545_csb *csb);

#endif /* !_PCI_E82545_CSB_H_ */
