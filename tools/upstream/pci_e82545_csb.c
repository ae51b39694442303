/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The communication status block (CSB), host side: paravirt_csb(9).
 *
 * The CSB is a page of guest memory, in which guest and host store their
 * indices of the rings, and whether they must be notified.  The guest may
 * change it at any time, so each field is loaded once, and then checked.
 *
 * Frames that find no buffer are dropped, with the CSB or without, so the host
 * never waits for a write to RDT: host_rxkick_at is always "none".
 */

#include <sys/types.h>
#include <sys/endian.h>
#include <machine/atomic.h>

#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "e1000_defines.h"
#include "e82545_csb_reg.h"

#include "bhyverun.h"
#include "pci_emul.h"
#include "pci_e82545_csb.h"

/* Causes that announce nothing but data. */
#define	CSB_TX_CAUSES	(E1000_ICR_TXDW | E1000_ICR_TXQE)
#define	CSB_RX_CAUSES	(E1000_ICR_RXT0 | E1000_ICR_RXDMT0)

/* The limit of polling, besides the guest's, and how often to yield. */
#define	CSB_ROUNDS_MAX	4096
#define	CSB_ROUNDS_YIELD 16

int
e82545_csb_init(struct pci_devinst *pi)
{
	u_char cap[E82545_CSB_CAP_SIZE] = { PCIY_VENDOR };

	cap[E82545_CSB_CAP_LENGTH] = E82545_CSB_CAP_SIZE;
	le32enc(&cap[E82545_CSB_CAP_SIGNATURE], E82545_CSB_SIGNATURE);
	le32enc(&cap[E82545_CSB_CAP_VERSION], E82545_CSB_VERSION);
	return (pci_emul_add_capability(pi, cap, sizeof(cap)));
}

void
e82545_csb_place(struct e82545_csb *csb, struct vmctx *ctx, uint32_t rxdescs)
{
	uint64_t ring;

	csb->page = NULL;
	csb->hdrs = NULL;
	csb->txkick_at = 0;
	e82545_csb_clear(csb);
	if (csb->addr == 0 || csb->addr % NET_PARAVIRT_CSB_SIZE != 0)
		return;
	csb->page = paddr_guest2host(ctx, csb->addr, NET_PARAVIRT_CSB_SIZE);
	if (csb->page == NULL)
		return;
	atomic_store_32(&csb->page->host_need_txkick, 1);
	atomic_store_32(&csb->page->host_rxkick_at, NET_PARAVIRT_NONE);
	ring = (uint64_t)atomic_load_32(&csb->page->vnet_ring_high) << 32 |
	    atomic_load_32(&csb->page->vnet_ring_low);
	if (ring == 0 || rxdescs == 0)
		return;
	csb->nhdrs = rxdescs;
	csb->hdrs = paddr_guest2host(ctx, ring, rxdescs * E82545_CSB_HDR_SIZE);
	if (csb->hdrs != NULL)
		memset(csb->hdrs, 0, rxdescs * E82545_CSB_HDR_SIZE);
}

bool
e82545_csb_has_hdrs(const struct e82545_csb *csb)
{

	return (e82545_csb_on(csb) && csb->hdrs != NULL);
}

bool
e82545_csb_takes_udp(const struct e82545_csb *csb)
{

	return (csb->page != NULL &&
	    (atomic_load_32(&E82545_CSB_GUEST_HEADERS(csb->page)) &
	    E82545_CSB_HEADERS_UDP) != 0);
}

void
e82545_csb_hdr(struct e82545_csb *csb, uint16_t index, const void *hdr)
{

	if (csb->hdrs != NULL && index < csb->nhdrs)
		memcpy(csb->hdrs + index * E82545_CSB_HDR_SIZE, hdr,
		    E82545_CSB_HDR_SIZE);
}

bool
e82545_csb_on(const struct e82545_csb *csb)
{

	return (csb->page != NULL &&
	    atomic_load_acq_32(&csb->page->guest_csb_on) != 0);
}

/* An index is taken, so that it is not used again when it has become old. */
static void
csb_take(uint32_t *index, uint16_t *tail, uint16_t size)
{
	uint32_t value;

	if (atomic_load_32(index) == NET_PARAVIRT_NONE)
		return;
	value = atomic_swap_32(index, NET_PARAVIRT_NONE);
	atomic_thread_fence_acq();
	if (value < size)
		*tail = value;
}

void
e82545_csb_tdt(struct e82545_csb *csb, uint16_t *tdt, uint16_t size)
{

	if (e82545_csb_on(csb))
		csb_take(&csb->page->guest_tdt, tdt, size);
}

void
e82545_csb_rdt(struct e82545_csb *csb, uint16_t *rdt, uint16_t size)
{

	if (e82545_csb_on(csb))
		csb_take(&csb->page->guest_rdt, rdt, size);
}

void
e82545_csb_need_txkick(struct e82545_csb *csb, bool need)
{

	atomic_store_rel_32(&csb->page->host_need_txkick, need);
	if (need)
		atomic_thread_fence_seq_cst();
}

void
e82545_csb_poll(const struct e82545_csb *csb, const int *enabled)
{
	struct paravirt_csb *page = csb->page;
	uint32_t n;

	for (n = 0; n < CSB_ROUNDS_MAX &&
	    n < atomic_load_32(&page->host_txcycles_lim); n++) {
		if (!atomic_load_int(enabled) || !e82545_csb_on(csb) ||
		    atomic_load_32(&page->guest_tdt) != NET_PARAVIRT_NONE)
			break;
		if (n % CSB_ROUNDS_YIELD == CSB_ROUNDS_YIELD - 1)
			sched_yield();
	}
	atomic_store_32(&page->host_txcycles, n);
}

/* Whether a step from `old' to `new' reaches index `at'. */
static bool
csb_reaches(uint32_t at, uint16_t old, uint16_t new, uint16_t size)
{

	return (at < size &&
	    (at - old - 1 + size) % size < (uint32_t)(new - old + size) % size);
}

/*
 * Whether the guest requests an interrupt by `need'.  If its requests have
 * numbers, each has one interrupt, for which causes of before need not have
 * been read.
 */
static bool
csb_wanted(struct e82545_csb *csb, uint32_t need, uint32_t *told)
{

	if (need == 0 || atomic_load_32(&E82545_CSB_GUEST_NUMBERS(csb->page)) ==
	    0)
		return (need != 0);
	if (need == atomic_load_32(told))
		return (false);
	atomic_store_32(told, need);
	csb->again = 1;
	return (true);
}

uint32_t
e82545_csb_tx(struct e82545_csb *csb, uint16_t old, uint16_t new, uint16_t size,
    uint32_t icr, uint32_t cause)
{
	struct paravirt_csb *page = csb->page;
	uint32_t at;

	if (!e82545_csb_on(csb))
		return (cause);
	atomic_store_rel_32(&page->host_tdh, new);
	atomic_thread_fence_seq_cst();
	/* 0 is an index only for a guest that stores others, too. */
	at = atomic_load_32(&page->guest_txkick_at);
	if (at != 0)
		csb->txkick_at = 1;
	if (new != old && (csb_wanted(csb,
	    atomic_load_32(&page->guest_need_txkick),
	    &E82545_CSB_HOST_TXTOLD(page)) ||
	    (csb->txkick_at && csb_reaches(at, old, new, size))))
		cause |= E1000_ICR_TXDW;
	else
		cause &= ~CSB_TX_CAUSES;
	atomic_store_32(&page->host_isr, icr | cause);
	return (cause);
}

uint32_t
e82545_csb_rx(struct e82545_csb *csb, uint16_t new, uint32_t icr,
    uint32_t cause)
{
	struct paravirt_csb *page = csb->page;

	if (!e82545_csb_on(csb))
		return (cause);
	atomic_store_rel_32(&page->host_rdh, new);
	atomic_thread_fence_seq_cst();
	if (cause != 0 && !csb_wanted(csb,
	    atomic_load_32(&page->guest_need_rxkick),
	    &E82545_CSB_HOST_RXTOLD(page)) && !csb->unmasked) {
		csb->held |= cause & CSB_RX_CAUSES;
		cause &= ~CSB_RX_CAUSES;
	}
	atomic_store_32(&page->host_isr, icr | cause);
	return (cause);
}

uint32_t
e82545_csb_unmask(struct e82545_csb *csb, uint32_t cause)
{
	uint32_t held = csb->held;

	if (csb->page == NULL || (cause & CSB_RX_CAUSES) == 0)
		return (0);
	csb->held = 0;
	csb->unmasked = 1;
	return (held);
}

void
e82545_csb_clear(struct e82545_csb *csb)
{

	csb->held = 0;
	csb->unmasked = 0;
	csb->again = 0;
}

void
e82545_csb_restart(struct e82545_csb *csb)
{

	if (csb->page != NULL)
		atomic_store_32(&csb->page->guest_rdt, NET_PARAVIRT_NONE);
}
