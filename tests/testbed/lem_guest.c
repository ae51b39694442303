/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See lem_guest.h.
 */

#include <sys/types.h>

#include <errno.h>
#include <string.h>

#include "lem_guest.h"

/* A frame: addresses, an EtherType for experiments, its number. */
#define	NUMBER_OFF	14
#define	TYPE_HI		0x88
#define	TYPE_LO		0xb5

static void
guest_frame(void *arg, const uint8_t *data, size_t len,
    uint32_t flags __unused, uint16_t vlan __unused)
{
	struct guest *g = arg;
	uint64_t number;

	g->bytes += len;
	if (len < NUMBER_OFF + sizeof(number) || data[12] != TYPE_HI ||
	    data[13] != TYPE_LO) {
		g->wrong++;
		return;
	}
	memcpy(&number, data + NUMBER_OFF, sizeof(number));
	if (number < g->received + g->missing)
		g->wrong++;
	else {
		g->missing = number - g->received;
		atomic_store_rel_64(&g->received, g->received + 1);
	}
}

void
guest_listen(struct guest *g)
{
	g->lc.lc_os.frame = guest_frame;
	g->lc.lc_os.frame_arg = g;
}

static uint64_t
place(uint64_t *gpa, size_t len)
{
	uint64_t at;

	at = (*gpa + 4095) & ~4095ULL;
	*gpa = at + len;
	return (at);
}

uint64_t
guest_init(struct guest *g, uint8_t *ram, uint64_t gpa, size_t size,
    uint32_t ntxd, uint32_t nrxd, uint32_t txbufsize, uint32_t rxbufsize,
    bool csb)
{
	struct lem_core *lc = &g->lc;
	struct lem_os *os = &lc->lc_os;
	uint64_t rxbuf;
	uint32_t i;

	memset(g, 0, sizeof(*g));
	lc->lc_txd_dma = place(&gpa, ntxd * sizeof(struct e82545_desc));
	lc->lc_rxd_dma = place(&gpa, nrxd * sizeof(struct e82545_desc));
	lc->lc_csb_dma = place(&gpa, NET_PARAVIRT_CSB_SIZE);
	g->txbufsize = txbufsize;
	g->txbuf = place(&gpa, ntxd * (size_t)GUEST_STRIDE(txbufsize));
	rxbuf = place(&gpa, 2 * nrxd * (size_t)GUEST_STRIDE(rxbufsize));
	if (gpa > size)
		return (0);
	lc->lc_txd = (void *)(ram + lc->lc_txd_dma);
	lc->lc_rxd = (void *)(ram + lc->lc_rxd_dma);
	lc->lc_csb = csb ? (void *)(ram + lc->lc_csb_dma) : NULL;
	lc->lc_ntxd = ntxd;
	lc->lc_nrxd = nrxd;
	lc->lc_rx_bufsize = rxbufsize;
	os->ram = ram;
	for (i = 0; i < 2 * nrxd; i++)
		os->spare[os->nspare++] = rxbuf +
		    (uint64_t)i * GUEST_STRIDE(rxbufsize);
	guest_listen(g);
	return (gpa);
}

int
guest_up(struct guest *g, uint32_t mtu)
{
	int error;

	error = lem_attach(&g->lc, g->mac);
	if (error == 0)
		error = lem_start(&g->lc, g->mac, mtu);
	if (error == 0)
		lem_intr_enable(&g->lc);
	return (error);
}

uint64_t
guest_txbuf(const struct guest *g)
{
	return (g->txbuf + (uint64_t)g->lc.lc_tx_tail *
	    GUEST_STRIDE(g->txbufsize));
}

int
guest_tx(struct guest *g, const struct lem_packet *lp)
{
	struct lem_core *lc = &g->lc;
	uint32_t slot = lc->lc_tx_tail;
	uint8_t state = OS_TX_FIRST;
	int error;

	error = lem_tx(lc, lp);
	if (error != 0)
		return (error);
	for (; slot != lc->lc_tx_tail; slot = (slot + 1) % lc->lc_ntxd) {
		lc->lc_os.tx_slot[slot] = state;
		state = OS_TX_MORE;
	}
	g->sent++;
	return (0);
}

int
guest_send(struct guest *g, const uint8_t dst[6], size_t len)
{
	struct lem_packet lp;
	struct lem_seg seg;
	uint8_t *p;

	seg.ls_addr = guest_txbuf(g);
	seg.ls_len = len;
	p = g->lc.lc_os.ram + seg.ls_addr;
	memcpy(p, dst, 6);
	memcpy(p + 6, g->mac, 6);
	p[12] = TYPE_HI;
	p[13] = TYPE_LO;
	memcpy(p + NUMBER_OFF, &g->sent, sizeof(g->sent));
	memset(&lp, 0, sizeof(lp));
	lp.lpk_segs = &seg;
	lp.lpk_nsegs = 1;
	return (guest_tx(g, &lp));
}

bool
guest_interrupt(struct guest *g, unsigned int budget)
{
	if (!lem_intr(&g->lc))
		return (false);
	do {
		lem_tx_clean(&g->lc);
		while (lem_rx(&g->lc, budget) == budget)
			continue;
	} while (lem_intr_enable(&g->lc));
	return (true);
}

uint64_t
guest_exits(const struct guest *g)
{
	return (atomic_load_64(&g->lc.lc_os.reads) +
	    atomic_load_64(&g->lc.lc_os.writes));
}
