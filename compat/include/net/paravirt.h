/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The communication status block (CSB) of a paravirtual network interface: a
 * page that guest and host share.  Through it they report progress without
 * register accesses and with few interrupts.  Little endian.  paravirt_csb(9)
 * has the protocol.
 *
 * FreeBSD has <net/paravirt.h> with the same layout, which the assertions at
 * the end check.
 */

#ifndef _NET_PARAVIRT_H_
#define	_NET_PARAVIRT_H_

#include <stddef.h>
#include <stdint.h>

#define	NET_PARAVIRT_CSB_SIZE	4096		/* bytes, one page */
#define	NET_PARAVIRT_NONE	0xffffffffu	/* *_at: at no index */

struct paravirt_csb {
	/* The guest writes, the host reads. */
	uint32_t	guest_tdt;		/* TDT: end of frames to send */
	uint32_t	guest_need_txkick;	/* host must interrupt (TX) */
	uint32_t	guest_need_rxkick;	/* host must interrupt (RX) */
	uint32_t	guest_csb_on;		/* the CSB is in use */
	uint32_t	guest_rdt;		/* RDT: end of posted buffers */
	uint32_t	guest_txkick_at;	/* interrupt (TX) at this TDH */
	uint32_t	guest_use_msix;
	uint32_t	pad[9];

	/* The host writes and the guest reads, except as noted. */
	uint32_t	host_tdh;		/* copy of TDH */
	uint32_t	host_need_txkick;	/* the guest must write TDT */
	uint32_t	host_txcycles_lim;	/* the guest writes: idle polls
						   before the host sleeps */
	uint32_t	host_txcycles;		/* idle polls so far */
	uint32_t	host_rdh;		/* copy of RDH */
	uint32_t	host_need_rxkick;	/* the guest must write RDT */
	uint32_t	host_isr;		/* copy of ICR */
	uint32_t	host_rxkick_at;		/* write RDT at this RDT */
	uint32_t	vnet_ring_high;		/* the guest writes: address of
						   virtio-net headers, or 0 */
	uint32_t	vnet_ring_low;
};

#define	_PARAVIRT_CSB_AT(member, offset)				\
	_Static_assert(offsetof(struct paravirt_csb, member) == (offset), \
	    #member)
_PARAVIRT_CSB_AT(guest_tdt, 0);
_PARAVIRT_CSB_AT(guest_need_txkick, 4);
_PARAVIRT_CSB_AT(guest_need_rxkick, 8);
_PARAVIRT_CSB_AT(guest_csb_on, 12);
_PARAVIRT_CSB_AT(guest_rdt, 16);
_PARAVIRT_CSB_AT(guest_txkick_at, 20);
_PARAVIRT_CSB_AT(guest_use_msix, 24);
_PARAVIRT_CSB_AT(pad, 28);
_PARAVIRT_CSB_AT(host_tdh, 64);
_PARAVIRT_CSB_AT(host_need_txkick, 68);
_PARAVIRT_CSB_AT(host_txcycles_lim, 72);
_PARAVIRT_CSB_AT(host_txcycles, 76);
_PARAVIRT_CSB_AT(host_rdh, 80);
_PARAVIRT_CSB_AT(host_need_rxkick, 84);
_PARAVIRT_CSB_AT(host_isr, 88);
_PARAVIRT_CSB_AT(host_rxkick_at, 92);
_PARAVIRT_CSB_AT(vnet_ring_high, 96);
_PARAVIRT_CSB_AT(vnet_ring_low, 100);
_Static_assert(sizeof(struct paravirt_csb) == 104, "paravirt_csb");
#undef _PARAVIRT_CSB_AT

#endif /* !_NET_PARAVIRT_H_ */
