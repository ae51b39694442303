/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * tools/upstream/pci_e82545_csb.c, the CSB of FreeBSD's own model, with guests
 * that store anything.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <pthread.h>
#include <string.h>

#include <atf-c.h>

#include "bhyverun.h"
#include "e1000_defines.h"
#include "e82545_csb_reg.h"
#include "pci_e82545_csb.h"
#include "pci_emul.h"
#include "test.h"

#define	PAGE	NET_PARAVIRT_CSB_SIZE
#define	SIZE	256U			/* descriptors in a ring */

/* Memory of two pages and a part of one, and what is beyond them. */
#define	RAM_SIZE	(2 * PAGE + 64)
static _Alignas(PAGE) uint8_t ram[4 * PAGE];
static uint8_t added[64];
static int nadded;

void *
paddr_guest2host(struct vmctx *ctx, uintptr_t addr, size_t len)
{
	ATF_REQUIRE_EQ((struct vmctx *)ram, ctx);
	if (addr >= RAM_SIZE || len > RAM_SIZE - addr)
		return (NULL);
	return (ram + addr);
}

int
pci_emul_add_capability(struct pci_devinst *pi __unused, u_char *capdata,
    int caplen)
{
	memcpy(added, capdata, caplen);
	nadded = caplen;
	return (0);
}

/* A block that is placed in the second page, and on. */
static struct paravirt_csb *
place(struct e82545_csb *csb)
{
	memset(csb, 0, sizeof(*csb));
	memset(ram, 0, sizeof(ram));
	csb->addr = PAGE;
	e82545_csb_place(csb, (struct vmctx *)ram, SIZE);
	ATF_REQUIRE(csb->page == (void *)(ram + PAGE));
	csb->page->guest_csb_on = 1;
	csb->page->guest_txkick_at = NET_PARAVIRT_NONE;
	return (csb->page);
}

TEST(capability, "The capability is that of paravirt_csb(9)")
{
	ATF_REQUIRE_EQ(0, e82545_csb_init(NULL));
	ATF_REQUIRE_EQ(12, nadded);
	ATF_CHECK_EQ(9, added[0]);
	ATF_CHECK_EQ(12, added[2]);
	ATF_CHECK_EQ(0, added[3]);
	ATF_CHECK_EQ(0, memcmp(added + 4, "PCSB", 4));
	ATF_CHECK_EQ(1, le32dec(added + 8));
}

TEST(address, "A block that is not a page of memory is none")
{
	static const uint64_t bad[] = { 0, 1, PAGE + 4, 2 * PAGE, 3 * PAGE,
	    UINT64_MAX - PAGE + 1, UINT64_MAX, (1ULL << 32) + 8 };
	struct e82545_csb csb;
	uint16_t tail = 7;
	size_t i;

	for (i = 0; i < nitems(bad); i++) {
		(void)place(&csb);
		csb.addr = bad[i];
		e82545_csb_place(&csb, (struct vmctx *)ram, SIZE);
		ATF_CHECK(csb.page == NULL);
		ATF_CHECK(!e82545_csb_on(&csb));
		e82545_csb_tdt(&csb, &tail, SIZE);
		e82545_csb_rdt(&csb, &tail, SIZE);
		e82545_csb_restart(&csb);
		ATF_CHECK_EQ(7, tail);
		ATF_CHECK_EQ(E1000_ICR_TXDW, e82545_csb_tx(&csb, 0, 1, SIZE, 0,
		    E1000_ICR_TXDW));
		ATF_CHECK_EQ(E1000_ICR_RXT0, e82545_csb_rx(&csb, 1, 0,
		    E1000_ICR_RXT0));
		ATF_CHECK_EQ(0, e82545_csb_unmask(&csb, E1000_ICR_RXT0));
	}
}

TEST(headers, "The header ring is cleared, if all of it is memory")
{
	const uint32_t bytes = SIZE * 10;
	struct e82545_csb csb;
	struct paravirt_csb *page = place(&csb);

	memset(ram, 0xee, PAGE);
	page->vnet_ring_low = 16;
	e82545_csb_place(&csb, (struct vmctx *)ram, SIZE);
	ATF_CHECK_EQ(0xee, ram[15]);
	ATF_CHECK_EQ(0, ram[16]);
	ATF_CHECK_EQ(0, ram[16 + bytes - 1]);
	ATF_CHECK_EQ(0xee, ram[16 + bytes]);
	ATF_CHECK(e82545_csb_has_hdrs(&csb));
	ATF_CHECK(!e82545_csb_takes_udp(&csb));
	E82545_CSB_GUEST_HEADERS(page) = E82545_CSB_HEADERS_UDP;
	ATF_CHECK(e82545_csb_takes_udp(&csb));
	/* An entry, the last one, and none behind it. */
	e82545_csb_hdr(&csb, 1, "abcdefghij");
	ATF_CHECK_EQ(0, memcmp(ram + 16 + 10, "abcdefghij\0", 11));
	e82545_csb_hdr(&csb, SIZE - 1, "0123456789");
	e82545_csb_hdr(&csb, SIZE, "0123456789");
	ATF_CHECK_EQ(0, memcmp(ram + 16 + bytes - 10, "0123456789\xee", 11));
	page->guest_csb_on = 0;
	ATF_CHECK(!e82545_csb_has_hdrs(&csb));
	page->guest_csb_on = 1;
	memset(ram + RAM_SIZE - 8, 0xee, PAGE);
	page->vnet_ring_low = RAM_SIZE - 8;
	e82545_csb_place(&csb, (struct vmctx *)ram, SIZE);
	ATF_CHECK(!e82545_csb_has_hdrs(&csb));
	e82545_csb_hdr(&csb, 0, "0123456789");
	ATF_CHECK_EQ(0xee, ram[RAM_SIZE - 8]);
	ATF_CHECK_EQ(0xee, ram[RAM_SIZE]);
	page->vnet_ring_high = page->vnet_ring_low = UINT32_MAX;
	e82545_csb_place(&csb, (struct vmctx *)ram, SIZE);
	ATF_CHECK(csb.page == page);
	ATF_CHECK(!e82545_csb_has_hdrs(&csb));
	/* A block that is gone has none. */
	page->vnet_ring_high = 0;
	page->vnet_ring_low = 16;
	e82545_csb_place(&csb, (struct vmctx *)ram, SIZE);
	ATF_CHECK(e82545_csb_has_hdrs(&csb));
	csb.addr = 0;
	e82545_csb_place(&csb, (struct vmctx *)ram, SIZE);
	ATF_CHECK(!e82545_csb_has_hdrs(&csb));
	ATF_CHECK(!e82545_csb_takes_udp(&csb));
	memset(ram, 0xee, PAGE);
	e82545_csb_hdr(&csb, 0, "0123456789");
	ATF_CHECK_EQ(0xee, ram[16]);
}

TEST(indices, "An index counts once, and only if it is in the ring")
{
	static const uint32_t bad[] = { SIZE, SIZE + 1, 0x10000, 0x10005,
	    0x80000000, UINT32_MAX - 1, NET_PARAVIRT_NONE };
	struct e82545_csb csb;
	struct paravirt_csb *page = place(&csb);
	uint16_t tdt = 7, rdt = 9;
	size_t i;

	for (i = 0; i < nitems(bad); i++) {
		page->guest_tdt = page->guest_rdt = bad[i];
		e82545_csb_tdt(&csb, &tdt, SIZE);
		e82545_csb_rdt(&csb, &rdt, SIZE);
		ATF_CHECK_EQ(7, tdt);
		ATF_CHECK_EQ(9, rdt);
		ATF_CHECK_EQ(NET_PARAVIRT_NONE, page->guest_tdt);
		ATF_CHECK_EQ(NET_PARAVIRT_NONE, page->guest_rdt);
	}
	page->guest_tdt = 0;
	page->guest_rdt = SIZE - 1;
	e82545_csb_tdt(&csb, &tdt, SIZE);
	e82545_csb_rdt(&csb, &rdt, SIZE);
	ATF_CHECK_EQ(0, tdt);
	ATF_CHECK_EQ(SIZE - 1, rdt);
	/* A register may be written then, and must not be set back. */
	tdt = 20;
	e82545_csb_tdt(&csb, &tdt, SIZE);
	ATF_CHECK_EQ(20, tdt);
	/* No ring. */
	page->guest_tdt = 0;
	e82545_csb_tdt(&csb, &tdt, 0);
	ATF_CHECK_EQ(20, tdt);
	/* While the CSB is off, nothing is taken. */
	page->guest_csb_on = 0;
	page->guest_tdt = page->guest_rdt = 30;
	e82545_csb_tdt(&csb, &tdt, SIZE);
	ATF_CHECK_EQ(20, tdt);
	ATF_CHECK_EQ(30, page->guest_tdt);
	/* What was stored before RDH is old. */
	page->guest_csb_on = 1;
	e82545_csb_restart(&csb);
	e82545_csb_rdt(&csb, &rdt, SIZE);
	ATF_CHECK_EQ(SIZE - 1, rdt);
}

TEST(transmit, "Completions interrupt if the guest asks for that")
{
	const uint32_t both = E1000_ICR_TXDW | E1000_ICR_TXQE;
	struct e82545_csb csb;
	struct paravirt_csb *page = place(&csb);

	ATF_CHECK_EQ(0, e82545_csb_tx(&csb, 3, 5, SIZE, 0, both));
	ATF_CHECK_EQ(5, page->host_tdh);
	ATF_CHECK_EQ(E1000_ICR_LSC, e82545_csb_tx(&csb, 3, 5, SIZE, 0,
	    both | E1000_ICR_LSC));
	page->guest_need_txkick = 2;
	/* With RS in a descriptor, and without. */
	ATF_CHECK_EQ(both, e82545_csb_tx(&csb, 5, 6, SIZE, E1000_ICR_LSC,
	    both));
	ATF_CHECK_EQ(both | E1000_ICR_LSC, page->host_isr);
	ATF_CHECK_EQ(E1000_ICR_TXDW, e82545_csb_tx(&csb, 6, 7, SIZE, 0, 0));
	ATF_CHECK_EQ(0, e82545_csb_tx(&csb, 7, 7, SIZE, 0, 0));
	page->guest_need_txkick = 0;
	page->guest_csb_on = 0;
	ATF_CHECK_EQ(both, e82545_csb_tx(&csb, 7, 8, SIZE, 0, both));
}

TEST(txkick_at, "An interrupt comes when TDH reaches guest_txkick_at")
{
	struct e82545_csb csb;
	struct paravirt_csb *page = place(&csb);

	page->guest_txkick_at = 0;
	ATF_CHECK_EQ(0, e82545_csb_tx(&csb, SIZE - 1, 1, SIZE, 0, 0));
	page->guest_txkick_at = 5;
	ATF_CHECK_EQ(0, e82545_csb_tx(&csb, 2, 4, SIZE, 0, 0));
	ATF_CHECK_EQ(E1000_ICR_TXDW, e82545_csb_tx(&csb, 4, 5, SIZE, 0, 0));
	ATF_CHECK_EQ(0, e82545_csb_tx(&csb, 5, 4, SIZE, 0, 0));
	page->guest_txkick_at = 0;
	ATF_CHECK_EQ(E1000_ICR_TXDW, e82545_csb_tx(&csb, SIZE - 1, 1, SIZE, 0,
	    0));
	page->guest_txkick_at = SIZE + 1;
	ATF_CHECK_EQ(0, e82545_csb_tx(&csb, 0, SIZE - 1, SIZE, 0, 0));
	page->guest_txkick_at = NET_PARAVIRT_NONE;
	ATF_CHECK_EQ(0, e82545_csb_tx(&csb, 0, SIZE - 1, SIZE, 0, 0));
}

TEST(receive, "Frames interrupt if the guest asks, or by IMS")
{
	const uint32_t both = E1000_ICR_RXT0 | E1000_ICR_RXDMT0;
	struct e82545_csb csb;
	struct paravirt_csb *page = place(&csb);

	page->guest_need_rxkick = 1;
	ATF_CHECK_EQ(both, e82545_csb_rx(&csb, 1, 0, both));
	ATF_CHECK_EQ(1, page->host_rdh);
	page->guest_need_rxkick = 0;
	ATF_CHECK_EQ(E1000_ICR_LSC, e82545_csb_rx(&csb, 2, 0,
	    both | E1000_ICR_LSC));
	ATF_CHECK_EQ(0, e82545_csb_unmask(&csb, E1000_ICR_LSC));
	ATF_CHECK_EQ(both, e82545_csb_unmask(&csb, E1000_ICR_RXT0));
	ATF_CHECK_EQ(0, e82545_csb_unmask(&csb, E1000_ICR_RXT0));
	ATF_CHECK_EQ(both, e82545_csb_rx(&csb, 3, 0, both));
	e82545_csb_clear(&csb);
	ATF_CHECK_EQ(0, e82545_csb_rx(&csb, 4, 0, both));
	e82545_csb_clear(&csb);
	ATF_CHECK_EQ(0, e82545_csb_unmask(&csb, E1000_ICR_RXT0));
}

TEST(numbers, "A request with a number has one interrupt")
{
	struct e82545_csb csb;
	struct paravirt_csb *page = place(&csb);

	E82545_CSB_GUEST_NUMBERS(page) = 1;
	page->guest_need_rxkick = page->guest_need_txkick = 3;
	ATF_CHECK_EQ(0, e82545_csb_rx(&csb, 1, 0, 0));
	ATF_CHECK_EQ(0, E82545_CSB_HOST_RXTOLD(page));
	ATF_CHECK_EQ(E1000_ICR_RXT0, e82545_csb_rx(&csb, 2, 0, E1000_ICR_RXT0));
	ATF_CHECK_EQ(3, E82545_CSB_HOST_RXTOLD(page));
	ATF_CHECK_EQ(0, E82545_CSB_HOST_TXTOLD(page));
	ATF_CHECK_EQ(1, csb.again);
	e82545_csb_clear(&csb);
	ATF_CHECK_EQ(0, csb.again);
	ATF_CHECK_EQ(0, e82545_csb_rx(&csb, 3, 0, E1000_ICR_RXT0));
	ATF_CHECK_EQ(0, csb.again);
	page->guest_need_rxkick = 5;
	ATF_CHECK_EQ(E1000_ICR_RXT0, e82545_csb_rx(&csb, 4, 0, E1000_ICR_RXT0));
	e82545_csb_clear(&csb);
	ATF_CHECK_EQ(E1000_ICR_TXDW, e82545_csb_tx(&csb, 0, 1, SIZE, 0, 0));
	ATF_CHECK_EQ(3, E82545_CSB_HOST_TXTOLD(page));
	ATF_CHECK_EQ(1, csb.again);
	ATF_CHECK_EQ(0, e82545_csb_tx(&csb, 1, 2, SIZE, 0, 0));
	/* Without numbers, each batch has one, and ICR must be read. */
	E82545_CSB_GUEST_NUMBERS(page) = 0;
	e82545_csb_clear(&csb);
	ATF_CHECK_EQ(E1000_ICR_TXDW, e82545_csb_tx(&csb, 2, 3, SIZE, 0, 0));
	ATF_CHECK_EQ(0, csb.again);
}

TEST(poll, "Polling has a limit, and ends with what it waits for")
{
	struct e82545_csb csb;
	struct paravirt_csb *page = place(&csb);
	int enabled = 1;

	page->guest_tdt = NET_PARAVIRT_NONE;
	page->host_txcycles_lim = 100;
	e82545_csb_poll(&csb, &enabled);
	ATF_CHECK_EQ(100, page->host_txcycles);
	page->host_txcycles_lim = UINT32_MAX;
	e82545_csb_poll(&csb, &enabled);
	ATF_CHECK_EQ(4096, page->host_txcycles);
	page->guest_tdt = 1;
	e82545_csb_poll(&csb, &enabled);
	ATF_CHECK_EQ(0, page->host_txcycles);
	page->guest_tdt = NET_PARAVIRT_NONE;
	enabled = 0;
	page->host_txcycles = 1;
	e82545_csb_poll(&csb, &enabled);
	ATF_CHECK_EQ(0, page->host_txcycles);
	enabled = 1;
	page->guest_csb_on = 0;
	page->host_txcycles = 1;
	e82545_csb_poll(&csb, &enabled);
	ATF_CHECK_EQ(0, page->host_txcycles);
}

static bool storing;

/* Store indices in and out of the ring. */
static void *
storer(void *arg)
{
	struct paravirt_csb *page = arg;
	uint32_t n;

	for (n = 0; __atomic_load_n(&storing, __ATOMIC_RELAXED); n++) {
		__atomic_store_n(&page->guest_tdt, n % (2 * SIZE),
		    __ATOMIC_RELAXED);
		__atomic_store_n(&page->guest_csb_on, n & 1, __ATOMIC_RELAXED);
	}
	return (NULL);
}

TEST(changing, "A guest that changes an index meanwhile gets none out of range")
{
	struct e82545_csb csb;
	struct paravirt_csb *page = place(&csb);
	uint16_t tail = 0;
	pthread_t thread;
	int n, moved = 0;

	storing = true;
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, storer, page));
	for (n = 0; n < 10000 || moved < 10; n++) {
		const uint16_t old = tail;

		e82545_csb_tdt(&csb, &tail, SIZE);
		ATF_REQUIRE(tail < SIZE);
		moved += tail != old;
	}
	__atomic_store_n(&storing, false, __ATOMIC_RELAXED);
	ATF_REQUIRE_EQ(0, pthread_join(thread, NULL));
}

TEST_PROGRAM
