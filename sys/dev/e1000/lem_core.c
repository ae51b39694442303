/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The life cycle, interrupts, mode and filters of an 8254x driver without an
 * operating system.  lem_core.h is its interface; lem_impl.h describes the
 * rings, which are in lem_tx.c and lem_rx.c.
 */

#include "lem_impl.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
    "hypervisors with an 8254x run on little endian machines");

#define	ALL_ONES	0xffffffff	/* a register of an absent device */
#define	RESET_TRIES	10		/* of a millisecond */

/* The EEPROM, at 250 kHz: half a clock, bits of the instruction, its wires. */
#define	EEPROM_US	2
#define	EEPROM_READ	0x6U
#define	EECD_WIRES	(E82545_EECD_SK | E82545_EECD_CS | E82545_EECD_DI | \
	E82545_EECD_DO | E82545_EECD_REQ | E82545_EECD_GNT)
#define	GRANT_TRIES	1000		/* of EEPROM_US */

#define	CAUSES_RX(lc)							\
	((lc)->lc_irq == LEM_IRQ_MSIX ? E82574_ICR_RXQ0 :		\
	E82545_ICR_RXT0 | E82545_ICR_RXDMT0 | E82545_ICR_RXO)
#define	CAUSES_LINK(lc)							\
	(E82545_ICR_LSC |						\
	((lc)->lc_irq == LEM_IRQ_MSIX ? E82574_ICR_OTHER : 0))
/* EIAC: those that a message of MSI-X clears and masks. */
#define	EIAC_ALL							\
	(E82574_ICR_RXQ0 | E82574_ICR_TXQ0 | E82574_ICR_OTHER)
/* IVAR: each cause has vector 0. */
#define	IVAR_ONE	0x00088888

const struct counter_row lem_counter_table[LEM_NCOUNTERS] = {
	COUNTER_ROWS(LEM_COUNTERS)
};

/* The register of the interval between interrupts. */
#define	ITR(lc)								\
	((lc)->lc_irq == LEM_IRQ_MSIX ? E82574_EITR(0) : E82545_ITR)

static void
give_up(struct lem_core *lc)
{
	lc->lc_counter[LEM_C_DEAD] += !lc->lc_dead;
	lc->lc_dead = true;
}

/* Read a register: none that is read here has all bits set. */
static uint32_t
reg_read(struct lem_core *lc, uint32_t reg)
{
	uint32_t value = lem_os_read(lc, reg);

	if (value == ALL_ONES)
		give_up(lc);
	return (value);
}

static void
intr_mask(struct lem_core *lc)
{
	atomic_store_rel_32(&lc->lc_intr_on, false);
	lem_os_write(lc, E82545_IMC, ALL_ONES);
}

/*
 * Reset, station address.
 */

/*
 * Reset the adapter.  SLU, which that clears on some adapters, is set at once,
 * because a stopped adapter has a link, too: lem_link().
 */
static int
reset(struct lem_core *lc)
{
	uint32_t ctrl;
	int i;

	lc->lc_dead = false;
	atomic_store_rel_32(&lc->lc_unread, false);
	intr_mask(lc);
	lem_os_write(lc, E82545_RCTL, 0);
	lem_os_write(lc, E82545_TCTL, E82545_TCTL_PSP);
	if (lc->lc_csb != NULL) {
		/*
		 * A reset keeps these, and the memory may be that of another
		 * driver, before us.
		 */
		lem_os_write(lc, E82545_CSBAH, 0);
		lem_os_write(lc, E82545_CSBAL, 0);
	}
	ctrl = reg_read(lc, E82545_CTRL) | E82545_CTRL_RST;
	if (!lc->lc_dead)
		lem_os_write(lc, E82545_CTRL, ctrl);
	for (i = 0; i < RESET_TRIES && !lc->lc_dead &&
	    (ctrl & E82545_CTRL_RST) != 0; i++) {
		lem_os_delay(lc, 1000);
		ctrl = reg_read(lc, E82545_CTRL);
	}
	if ((ctrl & E82545_CTRL_RST) != 0)
		give_up(lc);
	lem_os_write(lc, E82545_IMC, ALL_ONES);
	(void)reg_read(lc, E82545_ICR);
	if (lc->lc_dead)
		return (ENXIO);
	ctrl &= ~(E82545_CTRL_FRCSPD | E82545_CTRL_FRCDPX);
	lem_os_write(lc, E82545_CTRL, ctrl | E82545_CTRL_SLU |
	    E82545_CTRL_ASDE);
	return (0);
}

/*
 * Clock `n' bits into the EEPROM, the highest first.  Returns the bits that
 * come out.
 */
static uint32_t
eeprom_clock(struct lem_core *lc, uint32_t eecd, uint32_t bits, int n)
{
	uint32_t out = 0, wires;

	while (n-- > 0) {
		wires = eecd | ((bits >> n & 1) != 0 ? E82545_EECD_DI : 0);
		lem_os_write(lc, E82545_EECD, wires);
		lem_os_delay(lc, EEPROM_US);
		lem_os_write(lc, E82545_EECD, wires | E82545_EECD_SK);
		lem_os_delay(lc, EEPROM_US);
		out = out << 1 |
		    ((lem_os_read(lc, E82545_EECD) & E82545_EECD_DO) != 0);
	}
	return (out);
}

/*
 * Read the address, words 0 to 2, by the EEPROM's wires, chapter 5.  Linux's
 * driver does it so, and every emulation supports that; bhyve has no EERD.  The
 * 82544 has no request, so it grants none.
 */
static void
eeprom_read(struct lem_core *lc, uint16_t mac[3])
{
	const uint32_t old = lem_os_read(lc, E82545_EECD) & ~EECD_WIRES;
	const uint32_t req = old | E82545_EECD_REQ;
	const int abits = (old & E82545_EECD_SIZE) != 0 ? 8 : 6;
	uint16_t sum = 0, word;
	uint32_t i;

	lem_os_write(lc, E82545_EECD, req);
	for (i = 0; i < GRANT_TRIES && (lem_os_read(lc, E82545_EECD) &
	    E82545_EECD_GNT) == 0; i++)
		lem_os_delay(lc, EEPROM_US);
	for (i = 0; i < E82545_EEPROM_SUMMED; i++) {
		lem_os_write(lc, E82545_EECD, req | E82545_EECD_CS);
		(void)eeprom_clock(lc, req | E82545_EECD_CS,
		    EEPROM_READ << abits | i, 3 + abits);
		word = eeprom_clock(lc, req | E82545_EECD_CS, 0, 16);
		lem_os_write(lc, E82545_EECD, req);
		lem_os_delay(lc, EEPROM_US);
		sum += word;
		if (i < 3)
			mac[i] = word;
	}
	lem_os_write(lc, E82545_EECD, old);
	lc->lc_eeprom_bad = sum != E82545_EEPROM_SUM;
}

static bool
mac_valid(const uint16_t mac[3])
{
	return ((mac[0] & 1) == 0 && (mac[0] | mac[1] | mac[2]) != 0);
}

/*
 * Look at the first filter, into which the adapter loads its address from the
 * EEPROM, 13.5.2.  A reset, which should do that again, leaves the filter alone
 * (QEMU) or clears AV (bhyve); with old versions of VirtualBox the filter is 0
 * from the start.
 */
int
lem_address(struct lem_core *lc, uint8_t mac[6])
{
	uint16_t word[3];
	uint32_t low;
	int i;

	lc->lc_dead = lc->lc_eeprom_bad = false;
	(void)reg_read(lc, E82545_STATUS);
	if (lc->lc_dead)
		return (ENXIO);
	low = lem_os_read(lc, E82545_RAL(0));
	word[0] = low;
	word[1] = low >> 16;
	word[2] = lem_os_read(lc, E82545_RAH(0));
	if (!mac_valid(word))
		eeprom_read(lc, word);
	for (i = 0; i < 6; i++)
		mac[i] = word[i / 2] >> 8 * (i % 2);
	return (mac_valid(word) ? 0 : EIO);
}

int
lem_attach(struct lem_core *lc, uint8_t mac[6])
{
	int error = lem_address(lc, mac);

	lc->lc_rounds = LEM_ROUNDS_DEFAULT;
	return (error != 0 ? error : reset(lc));
}

/*
 * Interrupts.
 */

/* Read and clear the causes.  Returns whether the adapter had any. */
static bool
causes_read(struct lem_core *lc)
{
	uint32_t icr = reg_read(lc, E82545_ICR);

	if (lc->lc_dead ||
	    (icr & (CAUSES_RX(lc) | CAUSES_TX(lc) | CAUSES_LINK(lc))) == 0)
		return (false);
	if ((icr & E82545_ICR_LSC) != 0)
		lem_link(lc);
	return (true);
}

/*
 * Return whether the adapter has got to where it was asked to report.  No lock:
 * a wrong answer costs a read of ICR, or puts it off.
 */
static bool
tx_reported(const struct lem_core *lc)
{
	const uint32_t at = atomic_load_32(&lc->lc_tx_at);

	return (at != NET_PARAVIRT_NONE && DISTANCE(at,
	    atomic_load_32(&lc->lc_csb->host_tdh), lc->lc_ntxd) <
	    lc->lc_ntxd / 2);
}

/*
 * Return whether the adapter has interrupted for the driver's last request, or
 * for a report.  It then knows numbers, and interrupts for the next one whether
 * or not the causes are read.  If not, the interrupt may have another cause.
 */
static bool
intr_told(const struct lem_core *lc)
{
	const struct paravirt_csb *csb = lc->lc_csb;
	const uint32_t rx = atomic_load_32(&E82545_CSB_HOST_RXTOLD(csb));
	const uint32_t tx = atomic_load_32(&E82545_CSB_HOST_TXTOLD(csb));

	return (rx == atomic_load_32(&lc->lc_rx_asked) ||
	    tx == atomic_load_32(&lc->lc_tx_asked) ||
	    ((rx != 0 || tx != 0) && tx_reported(lc)));
}

/*
 * Handle an interrupt.  With the CSB, the need-kick flags suppress interrupts
 * until the rings have been processed, and the mask does not change, which
 * saves two exits.  With messages there is no line to deassert, so the read of
 * the causes, another exit, can wait, and is left out if intr_told().  A write
 * that clears them could not take its place: it may be posted, and clear a
 * cause that came after the rings were processed.
 *
 * A message of MSI-X has cleared and masked its causes (EIAC), so that the one
 * access is the write that unmasks them, with the CSB or without.  RXT0 and
 * RXDMT0 are not among these: with the CSB they would ask for the causes that
 * it has suppressed.
 */
bool
lem_intr(struct lem_core *lc)
{
	if (!USABLE(lc) || POLLING(lc))
		return (false);
	if (lc->lc_irq == LEM_IRQ_MSIX)
		atomic_store_rel_32(&lc->lc_intr_on, false);
	else if (CSB_ON(lc) && lc->lc_irq == LEM_IRQ_MSI) {
		if (!intr_told(lc))
			atomic_store_rel_32(&lc->lc_unread, true);
	} else if (!causes_read(lc))
		return (false);
	lc->lc_counter[LEM_C_INTERRUPT]++;
	if (CSB_ON(lc)) {
		atomic_store_rel_32(&lc->lc_csb->guest_need_rxkick, 0);
		atomic_store_rel_32(&lc->lc_csb->guest_need_txkick, 0);
	} else if (lc->lc_irq != LEM_IRQ_MSIX)
		intr_mask(lc);
	return (true);
}

/*
 * Unmask the causes.  Pairs with lem_tx_wait() and lem_tx_report(): lc_intr_on
 * is stored before lc_tx_short and lc_tx_at are loaded.  The mask pairs with
 * lem_set_mode(), too, whose locks are not held here, and which masks the causes
 * after LEM_MODE_POLL is set.  If that was before the write below, the load after
 * the write sees the mode.
 */
static void
intr_unmask(struct lem_core *lc)
{
	uint32_t causes = CAUSES_RX(lc) | CAUSES_LINK(lc);

	atomic_store_rel_32(&lc->lc_intr_on, true);
	atomic_thread_fence_seq_cst();
	if ((atomic_load_acq_32(&lc->lc_mode) & LEM_MODE_LAZY) == 0 ||
	    CSB_ON(lc) || atomic_load_acq_32(&lc->lc_tx_short) != 0 ||
	    atomic_load_acq_32(&lc->lc_tx_at) != NET_PARAVIRT_NONE)
		causes |= CAUSES_TX(lc);
	lem_os_write(lc, E82545_IMS, causes);
	atomic_thread_fence_seq_cst();
	if (POLLING(lc))
		intr_mask(lc);
}

bool
lem_intr_enable(struct lem_core *lc)
{
	lem_os_assert_rx(lc);
	if (!USABLE(lc) || POLLING(lc))
		return (false);
	if (atomic_load_acq_32(&lc->lc_intr_on) == 0)
		intr_unmask(lc);
	if (CSB_ON(lc)) {
		/* After an interrupt, that is. */
		if (atomic_load_32(&lc->lc_csb->guest_need_rxkick) == 0 &&
		    lem_rx_spin(lc))
			return (true);
		if (!lem_rx_wait(lc))
			return (true);
	}
	if (atomic_load_acq_32(&lc->lc_unread) == 0)
		return (false);
	atomic_store_rel_32(&lc->lc_unread, false);
	return (causes_read(lc));
}

void
lem_intr_hold(struct lem_core *lc)
{
	lem_os_assert_rx(lc);
	if (USABLE(lc) && !POLLING(lc) && CSB_ON(lc) &&
	    atomic_load_32(&lc->lc_csb->guest_need_rxkick) != 0)
		atomic_store_rel_32(&lc->lc_csb->guest_need_rxkick, 0);
}

void
lem_intr_request(struct lem_core *lc)
{
	/* Causes that were not read would keep the message from being sent. */
	if (lc->lc_irq == LEM_IRQ_MSI && lc->lc_csb != NULL)
		(void)causes_read(lc);
	lem_os_write(lc, E82545_ICS, CAUSES_TX(lc) |
	    (lc->lc_irq == LEM_IRQ_MSIX ? E82574_ICR_RXQ0 : E82545_ICR_RXT0));
}

int
lem_set_itr(struct lem_core *lc, uint32_t itr_256ns)
{
	if (itr_256ns > E82545_ITR_MAX)
		return (EINVAL);
	lc->lc_itr_256ns = itr_256ns;
	if (USABLE(lc))
		lem_os_write(lc, ITR(lc), itr_256ns);
	return (0);
}

/*
 * The CSB and the mode.
 */

/* Begin to learn for how long spinning pays. */
static void
rounds_start(struct lem_core *lc)
{
	lem_spin_init(&lc->lc_tx_spin, lc->lc_rounds);
	lem_spin_init(&lc->lc_rx_spin, lc->lc_rounds);
	atomic_store_rel_32(&lc->lc_csb->host_txcycles_lim, lc->lc_rounds);
}

/*
 * Fill the guest's part of the CSB, guest_csb_on last.  The caller then writes
 * a register, which tells the host.  Both locks.
 */
static void
csb_fill(struct lem_core *lc)
{
	struct paravirt_csb *csb = lc->lc_csb;
	const bool kicks = !POLLING(lc);
	const uint32_t tx = lem_ask(lc, &lc->lc_tx_asked);
	const uint32_t rx = lem_ask(lc, &lc->lc_rx_asked);

	atomic_store_32(&E82545_CSB_GUEST_NUMBERS(csb),
	    lc->lc_irq == LEM_IRQ_MSI);
	atomic_store_32(&E82545_CSB_GUEST_HEADERS(csb), E82545_CSB_HEADERS_UDP);
	atomic_store_rel_32(&csb->guest_tdt, lc->lc_tx_posted);
	atomic_store_rel_32(&csb->guest_rdt, lc->lc_rx_posted);
	atomic_store_rel_32(&csb->guest_need_txkick,
	    kicks && lc->lc_tx_short ? tx : 0);
	atomic_store_rel_32(&csb->guest_need_rxkick, kicks ? rx : 0);
	atomic_store_rel_32(&csb->guest_txkick_at, lc->lc_tx_at);
	rounds_start(lc);
	atomic_store_rel_32(&csb->guest_csb_on, CSB_ON(lc));
}

int
lem_set_rounds(struct lem_core *lc, uint32_t rounds)
{
	lem_os_assert_tx(lc);
	lem_os_assert_rx(lc);
	if (rounds > LEM_ROUNDS_MAX)
		return (EINVAL);
	if (rounds == lc->lc_rounds)
		return (0);
	lc->lc_rounds = rounds;
	if (USABLE(lc) && lc->lc_csb != NULL)
		rounds_start(lc);
	return (0);
}

/*
 * Change the mode.  The CSB may be turned on or off under traffic.  Both sides
 * must continue with the same indices: after the change the posted tails are
 * written to the registers, which is also a kick.
 *
 * An interrupt that is due in the old mode may be lost by the change, so one is
 * requested for each direction afterwards.
 */
int
lem_set_mode(struct lem_core *lc, uint32_t mode)
{
	const uint32_t changed = lc->lc_mode ^ mode;
	bool unmask;

	lem_os_assert_tx(lc);
	lem_os_assert_rx(lc);
	if ((mode & ~(LEM_MODE_SC | LEM_MODE_CSB | LEM_MODE_LAZY |
	    LEM_MODE_POLL)) != 0)
		return (EINVAL);
	if ((mode & LEM_MODE_CSB) != 0 && lc->lc_csb == NULL)
		return (ENOTSUP);
	if (!USABLE(lc) || changed == 0) {
		atomic_store_rel_32(&lc->lc_mode, mode);
		return (0);
	}
	lem_tx_post(lc);
	atomic_store_rel_32(&lc->lc_mode, mode);
	lc->lc_tx_waiting = SC_POLLS(lc);
	if ((changed & LEM_MODE_CSB) != 0 ||
	    (CSB_ON(lc) && (changed & LEM_MODE_POLL) != 0)) {
		csb_fill(lc);
		lem_os_write(lc, E82545_TDT, lc->lc_tx_posted);
		lem_os_write(lc, E82545_RDT, lc->lc_rx_posted);
	}
	unmask = atomic_load_acq_32(&lc->lc_intr_on) != 0;
	intr_mask(lc);
	if (POLLING(lc))
		return (0);
	if (unmask)
		intr_unmask(lc);
	lem_intr_request(lc);
	return (0);
}

/*
 * Start, stop.
 */

#define	RING_OK(n)							\
	((n) >= LEM_RING_MIN && (n) <= LEM_RING_MAX && ((n) & ((n) - 1)) == 0)

static void
ring_start(struct lem_core *lc, uint32_t base, uint64_t dma, uint32_t n)
{
	lem_os_write(lc, base, dma);
	lem_os_write(lc, base + E82545_RING_BAH, dma >> 32);
	lem_os_write(lc, base + E82545_RING_LEN, n * sizeof(*lc->lc_txd));
	lem_os_write(lc, base + E82545_RING_HEAD, 0);
	lem_os_write(lc, base + E82545_RING_TAIL, 0);
}

/* Program all registers that a reset has cleared. */
static void
hw_start(struct lem_core *lc, const uint8_t mac[6], uint32_t rctl)
{
	uint64_t dma;

	lem_os_write(lc, E82545_RAL(0), mac[0] | mac[1] << 8 | mac[2] << 16 |
	    (uint32_t)mac[3] << 24);
	lem_os_write(lc, E82545_RAH(0), mac[4] | mac[5] << 8 | E82545_RAH_AV);
	lem_set_filter(lc, 0, false, NULL);
	if (lc->lc_irq == LEM_IRQ_MSIX) {
		lem_os_write(lc, E82574_IVAR, IVAR_ONE);
		lem_os_write(lc, E82574_EIAC, EIAC_ALL);
	}
	lem_os_write(lc, ITR(lc), lc->lc_itr_256ns);
	ring_start(lc, E82545_TDBAL, lc->lc_txd_dma, lc->lc_ntxd);
	lem_os_write(lc, E82545_TIPG, E82545_TIPG_COPPER);
	lem_os_write(lc, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP |
	    E82545_TCTL_CT(15) | E82545_TCTL_COLD(64));
	ring_start(lc, E82545_RDBAL, lc->lc_rxd_dma, lc->lc_nrxd);
	/* An 82574L verifies IPv6 packets anyway. */
	lem_os_write(lc, E82545_RXCSUM, E82545_RXCSUM_IPOFL |
	    E82545_RXCSUM_TUOFL | E82545_RXCSUM_IPV6OFL);
	lem_os_write(lc, E82545_RCTL, rctl);
	lem_os_write(lc, E82545_RDT, lc->lc_rx_posted);
	lem_link(lc);
	if (lc->lc_csb == NULL)
		return;
	atomic_store_rel_32(&lc->lc_csb->host_need_txkick, 1);
	atomic_store_rel_32(&lc->lc_csb->host_rxkick_at, NET_PARAVIRT_NONE);
	csb_fill(lc);
	dma = lc->lc_vnet != NULL ? lc->lc_vnet_dma : 0;
	atomic_store_rel_32(&lc->lc_csb->vnet_ring_high, dma >> 32);
	atomic_store_rel_32(&lc->lc_csb->vnet_ring_low, dma);
	lem_os_write(lc, E82545_CSBAH, lc->lc_csb_dma >> 32);
	lem_os_write(lc, E82545_CSBAL, lc->lc_csb_dma);
}

int
lem_start(struct lem_core *lc, const uint8_t mac[6], uint32_t mtu)
{
	uint32_t rctl = E82545_RCTL_EN | E82545_RCTL_BAM | E82545_RCTL_SECRC;

	lem_os_assert_tx(lc);
	lem_os_assert_rx(lc);
	if (!RING_OK(lc->lc_ntxd) || !RING_OK(lc->lc_nrxd) ||
	    (lc->lc_rx_bufsize != 2048 && lc->lc_rx_bufsize != 4096) ||
	    mtu < E82545_MTU_MIN || mtu > E82545_MTU_MAX)
		return (EINVAL);
	lem_stop(lc);
	if (reset(lc) != 0)
		return (ENXIO);
	lem_tx_init(lc);
	if (!lem_rx_init(lc))
		return (ENOBUFS);
	if (lc->lc_rx_bufsize == 4096)
		rctl |= E82545_RCTL_BSEX | E82545_RCTL_BSIZE_256;
	if (mtu > 1500)
		rctl |= E82545_RCTL_LPE;
	hw_start(lc, mac, rctl);
	if (lc->lc_dead) {
		(void)reset(lc);
		return (ENXIO);
	}
	lc->lc_running = true;
	return (0);
}

void
lem_stop(struct lem_core *lc)
{
	lem_os_assert_tx(lc);
	lem_os_assert_rx(lc);
	if (!lc->lc_running)
		return;
	lem_tx_assert(lc);
	lem_rx_assert(lc);
	if (lc->lc_csb != NULL)
		atomic_store_rel_32(&lc->lc_csb->guest_csb_on, 0);
	(void)reset(lc);
	lc->lc_running = false;
	(void)lem_tx_drop(lc, lc->lc_tx_tail);
}

/*
 * Filters, link.
 */

void
lem_set_filter(struct lem_core *lc, uint32_t rctl, bool vlan,
    const uint32_t mta[128])
{
	const uint32_t ctrl = reg_read(lc, E82545_CTRL);
	const uint32_t old = reg_read(lc, E82545_RCTL);
	unsigned int i;

	if (lc->lc_dead)
		return;
	lem_os_write(lc, E82545_CTRL, vlan ?
	    ctrl | E82545_CTRL_VME : ctrl & ~E82545_CTRL_VME);
	rctl |= old & ~(E82545_RCTL_UPE | E82545_RCTL_MPE);
	/* After each write, QEMU's e1000 receives nothing for a second. */
	if (rctl != old)
		lem_os_write(lc, E82545_RCTL, rctl);
	for (i = 0; i < E82545_MTA_COUNT; i++)
		lem_os_write(lc, E82545_MTA + 4 * i, mta == NULL ? 0 : mta[i]);
}

void
lem_link(struct lem_core *lc)
{
	uint32_t status = reg_read(lc, E82545_STATUS);

	lc->lc_link = !lc->lc_dead && (status & E82545_STATUS_LU) != 0;
}
