/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver core's host: memory for rings and buffers, and interrupts.
 *
 * The interrupt handler calls lem_intr(), which masks the adapter's interrupts;
 * nic_service() does the work.  In polling mode there are no interrupts, and
 * nic_service() looks at both rings once a tick, or always with tick=0.
 *
 * After nic_preempt(), the handlers do the work.
 */

#include "lem_core.h"
#include "micro.h"

/* Most frames that a call of nic_service() receives, except in polling mode. */
#define	RX_BUDGET	64
/* Most frames of a turn, after nic_preempt(). */
#define	RX_TURN		16

struct lem_core nic;
uint8_t nic_mac[6];

static uint8_t txring[LEM_RING_MAX][16] __attribute__((aligned(4096)));
static uint8_t rxring[LEM_RING_MAX][16] __attribute__((aligned(4096)));
static uint8_t csb[4096] __attribute__((aligned(4096)));
static uint8_t txbufs[LEM_RING_MAX][2048] __attribute__((aligned(4096)));
static uint8_t rxbufs[LEM_RING_MAX][2048] __attribute__((aligned(4096)));

static struct pci_nic pci;
static uint32_t next_buf;	/* of txbufs */
static volatile bool pending;	/* there is work */
static uint64_t irqs, halts;
static bool polling;		/* LEM_MODE_POLL */
static bool spinning;		/* and without a pause */

/* After nic_preempt(). */
static uint32_t rx_share;	/* percent */
static uint64_t rx_due_ns;	/* lem_share_turn() */
static bool (*busy)(void);	/* set: handlers do the work */
static bool waiting;		/* for others, */
static uint64_t resume_ns;	/* at most until then */
static uint64_t preempted_ns;	/* time spent in handlers */

/* Packets to flush are work, too. */
bool
lem_os_idle(struct lem_core *lc)
{
	return (lc->lc_tx_pending == 0 && (busy == NULL || !busy()));
}

void
lem_os_delay(struct lem_core *lc __attribute__((unused)), unsigned int us)
{
	delay_us(us);
}

uint64_t
lem_os_rx_buf(struct lem_core *lc __attribute__((unused)), uint32_t slot)
{
	return ((uint64_t)rxbufs[slot]);
}

/* Every frame fits into one buffer. */
bool
lem_os_rx(struct lem_core *lc __attribute__((unused)), uint32_t slot,
    uint32_t len, uint32_t flags, uint16_t vlan __attribute__((unused)))
{
	if ((flags & (LEM_RX_SOP | LEM_RX_EOP | LEM_RX_BAD)) ==
	    (LEM_RX_SOP | LEM_RX_EOP))
		traffic_frame(rxbufs[slot], len);
	return (false);
}

/*
 * The stack: serve the adapter until the ring is empty, or others must run.
 * Interrupts are off.
 */
static void
stack(uint64_t begin_ns)
{
	uint64_t end_ns, pause, start = begin_ns;
	uint32_t n;

	waiting = false;
	for (;; begin_ns = now_ns()) {
		lem_tx_clean(&nic);
		n = lem_rx(&nic, RX_TURN);
		end_ns = now_ns();
		/* An interrupt for something else is no turn. */
		pause = rx_share == 0 || (n == 0 && !polling) ||
		    begin_ns >= end_ns ? 0 : lem_share_turn(&rx_due_ns,
		    rx_share, begin_ns, end_ns);
		if (pause != 0 && busy()) {
			waiting = true;
			resume_ns = now_ns() + pause;
			break;
		}
		if (n < RX_TURN && !lem_intr_enable(&nic))
			break;
	}
	lem_tx_flush(&nic);
	pending = true;		/* for nic_wait() */
	preempted_ns += now_ns() - start;
}

void
nic_preempt(uint32_t share, bool (*is_busy)(void))
{
	cpu_interrupts(false);
	rx_share = share;
	busy = is_busy;
	stack(now_ns());
	cpu_interrupts(true);
}

void
nic_idle(void)
{
	cpu_interrupts(false);
	pending = false;
	if (waiting)
		stack(now_ns());
	cpu_interrupts(true);
}

uint64_t
nic_preempted_ns(void)
{
	return (*(volatile uint64_t *)&preempted_ns);
}

void
nic_intr(void)
{
	uint64_t begin_ns = now_ns();

	irqs++;
	if (!lem_intr(&nic))
		return;
	pending = true;
	if (busy != NULL)
		stack(begin_ns);
}

void
nic_init(const struct options *opt)
{
	uint8_t own[6];
	int error;

	pci_find_nic(&pci);
	nic.lc_os.regs = (volatile uint8_t *)pci.regs;
	nic.lc_txd = (void *)txring;
	nic.lc_txd_dma = (uint64_t)txring;
	nic.lc_rxd = (void *)rxring;
	nic.lc_rxd_dma = (uint64_t)rxring;
	nic.lc_ntxd = nic.lc_nrxd = opt->ring;
	nic.lc_rx_bufsize = sizeof(rxbufs[0]);
	if (pci_has_csb(&pci)) {
		nic.lc_csb = (void *)csb;
		nic.lc_csb_dma = (uint64_t)csb;
	}
	polling = (opt->mode & LEM_MODE_POLL) != 0;
	spinning = polling && opt->tick == 0;

	pci_setup_intr(&pci, opt->intr == INTR_MSI ||
	    (opt->intr == INTR_AUTO && pci_has_msi(&pci)));
	nic.lc_irq = pci.msi ? LEM_IRQ_MSI : LEM_IRQ_LINE;
	error = lem_attach(&nic, own);
	if (error != 0)
		panic("attach: error %d", error);
	memcpy(nic_mac, opt->has_mac ? opt->mac : own, sizeof(nic_mac));
	report("device", pci.device);
	report("subdevice", pci.subdevice);
	report("msi", pci.msi);
	print("mac %02x:%02x:%02x:%02x:%02x:%02x\n", nic_mac[0], nic_mac[1],
	    nic_mac[2], nic_mac[3], nic_mac[4], nic_mac[5]);

	error = lem_set_itr(&nic, opt->itr);
	if (error == 0)
		error = lem_set_rounds(&nic, opt->rounds);
	if (error == 0)
		error = lem_set_mode(&nic, opt->mode);
	if (error == 0)
		error = lem_start(&nic, nic_mac, 1500);
	if (error != 0)
		panic("start: error %d", error);
	while (lem_link(&nic), !nic.lc_link)
		delay_us(1000);
	lem_intr_enable(&nic);
	cpu_interrupts(true);
}

void
nic_stop(void)
{
	cpu_interrupts(false);
	lem_stop(&nic);
}

void *
nic_buffer(void)
{
	return (txbufs[next_buf]);
}

bool
nic_send(uint32_t len)
{
	struct lem_seg seg = { (uint64_t)txbufs[next_buf], len };
	struct lem_packet packet = {
		.lpk_segs = &seg,
		.lpk_nsegs = 1,
	};

	if (lem_tx(&nic, &packet) != 0) {
		if (nic.lc_dead)
			panic("the adapter is dead");
		return (false);
	}
	if (++next_buf == nic.lc_ntxd)
		next_buf = 0;
	return (true);
}

void
nic_flush(void)
{
	lem_tx_flush(&nic);
}

void
nic_clean(void)
{
	lem_tx_clean(&nic);
}

void
nic_tick(void)
{
	if (polling)
		pending = true;
	if (busy != NULL && (waiting ? now_ns() >= resume_ns : polling))
		stack(now_ns());
}

/* Serve both rings; receive at most as many frames as the ring has slots. */
static void
poll(void)
{
	uint32_t n;

	for (n = 0; n < nic.lc_nrxd; n += RX_BUDGET)
		if (lem_rx(&nic, RX_BUDGET) != RX_BUDGET)
			break;
	lem_tx_clean(&nic);
}

void
nic_service(void)
{
	if (!pending && !spinning)
		return;
	pending = false;
	if (polling) {
		poll();
		return;
	}
	lem_tx_clean(&nic);
	if (lem_rx(&nic, RX_BUDGET) == RX_BUDGET)
		pending = true;	/* more wait; the adapter stays masked */
	else if (lem_intr_enable(&nic))
		pending = true;
}

void
nic_wait(void)
{
	if (spinning) {
		__asm __volatile("pause");
		return;
	}
	if (!pending)
		halts++;
	cpu_sleep(&pending);
}

void
nic_counts(struct nic_counts *counts)
{
	counts->ns = now_ns();
	counts->reg_reads = nic.lc_os.reg_reads;
	counts->reg_writes = nic.lc_os.reg_writes;
	counts->irqs = irqs;
	counts->halts = halts;
}
