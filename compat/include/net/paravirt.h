/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The communication status block (CSB) of a paravirtual network interface: a
 * page that guest and host share, so that they need no register accesses and
 * few interrupts to tell each other of progress.  Little endian.  See
 * paravirt_csb(9) for who does what, and when.
 *
 * The layout is that of FreeBSD's <net/paravirt.h>, which takes this file's
 * place on FreeBSD; the assertions at the end hold it there.
 */

#ifndef _NET_PARAVIRT_H_
#define	_NET_PARAVIRT_H_

#include <stddef.h>
#include <stdint.h>

#define	NET_PARAVIRT_CSB_SIZE	4096		/* bytes, one page */
#define	NET_PARAVIRT_NONE	0xffffffffu	/* no index, in *_at */

struct paravirt_csb {
	/* The guest writes, the host reads. */
	uint32_t	guest_tdt;		/* end of what is to be sent */
	uint32_t	guest_need_txkick;	/* TX interrupt, please */
	uint32_t	guest_need_rxkick;	/* RX interrupt, please */
	uint32_t	guest_csb_on;		/* the mode is on */
	uint32_t	guest_rdt;		/* end of the empty buffers */
	uint32_t	guest_txkick_at;	/* TX interrupt at this TDH */
	uint32_t	guest_use_msix;
	uint32_t	pad[9];

	/* The host writes, the guest reads, but for what is noted. */
	uint32_t	host_tdh;		/* copy of TDH */
	uint32_t	host_need_txkick;	/* write TDT, please */
	uint32_t	host_txcycles_lim;	/* empty rounds before the host
						   sleeps; by the guest */
	uint32_t	host_txcycles;		/* empty rounds so far */
	uint32_t	host_rdh;		/* copy of RDH */
	uint32_t	host_need_rxkick;	/* write RDT, please */
	uint32_t	host_isr;		/* copy of ICR */
	uint32_t	host_rxkick_at;		/* write RDT from here on */
	uint32_t	vnet_ring_high;		/* virtio-net headers; by the */
	uint32_t	vnet_ring_low;		/* guest, 0: none */
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
