/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guest memory whose pages are anywhere in the host, as behind an IOMMU, and
 * may be used for one purpose only.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_check.h"
#include "e82545_impl.h"

#define	PAGE		4096
#define	AREA		(256 * 1024)	/* where no pages are adjacent */

static uint64_t		area, hole;	/* gpa; of a page that is not there */
static unsigned int	permitted;	/* accesses to the area */

static void *
map_scattered(void *arg, uint64_t gpa, size_t len, unsigned int access)
{
	if (gpa + len <= area || gpa >= area + AREA)
		return (host_ops.eo_map(arg, gpa, len, access));
	if (access != permitted || gpa / PAGE != (gpa + len - 1) / PAGE ||
	    gpa / PAGE == hole / PAGE)
		return (NULL);
	return (host_ops.eo_map(arg, gpa ^ PAGE, len, access));
}

/* Copy between the guest's view of the area and another memory. */
static void
area_copy(struct host *h, uint64_t gpa, void *buf, size_t len, bool in)
{
	uint8_t *p = buf, *q;
	size_t n;

	for (; len > 0; len -= n, gpa += n, p += n) {
		n = MIN(len, PAGE - gpa % PAGE);
		q = host_mem(h, gpa ^ PAGE, n);
		memcpy(in ? q : p, in ? p : q, n);
	}
}

static void
scatter(struct host *h, unsigned int access)
{
	static struct e82545_ops ops;

	ops = host_ops;
	ops.eo_map = map_scattered;
	h->dev->ops = &ops;
	area = host_alloc(h, AREA, 2 * PAGE);
	hole = 0;
	permitted = access;
}

/* Have the buffers of the ring in the area, `off' bytes into pages. */
static void
scatter_buffers(struct host *h, size_t off)
{
	unsigned int i;

	for (i = 0; i < h->nrxd; i++)
		host_rxd(h, i)->addr = htole64(area + off + i * h->rxbufsize);
}

/* The bytes of the frame that begins in buffer `n'. */
static void
check_buffers(struct host *h, unsigned int n, const uint8_t *frame, size_t len,
    size_t off)
{
	static uint8_t got[E82545_FRAME_MAX];

	area_copy(h, area + off + n * h->rxbufsize, got, len, false);
	ATF_CHECK_EQ(0, memcmp(frame, got, len));
}

TEST(receive, "A frame is received into such buffers")
{
	static const uint32_t sizes[] = { 256, 2048, 4096, 16384 };
	static const size_t lens[] = { 60, 1514, 4096, 9014 };
	struct host *h;
	uint8_t frame[9014];
	unsigned int head, i, j;
	size_t off;

	for (i = 0; i < nitems(sizes); i++) {
		h = rx_up(sizes[i] == 256 ? 128 : 8, sizes[i]);
		host_set(h, E82545_RCTL, E82545_RCTL_LPE);
		scatter(h, E82545_MAP_WRITE);
		off = i == 0 ? 4092 : 1236;
		scatter_buffers(h, off);
		for (j = 0; j < nitems(lens); j++) {
			head = host_rd(h, E82545_RDH);
			if (head + howmany(lens[j], sizes[i]) >= h->nrxd)
				break;
			host_make_frame(frame, lens[j], host_mac, j);
			rx_receive(h, frame, lens[j]);
			ATF_REQUIRE_EQ(head + howmany(lens[j], sizes[i]),
			    host_rd(h, E82545_RDH));
			check_buffers(h, head, frame, lens[j], off);
		}
		ATF_CHECK(j >= 3);
		ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_BAD_ADDR));
		host_destroy(h);
	}
}

static unsigned int	calls;

static void *
map_counted(void *arg, uint64_t gpa, size_t len, unsigned int access)
{
	calls++;
	return (map_scattered(arg, gpa, len, access));
}

HOST_TEST(bounded, tx_up(1024), "A batch ends after some pages, though its "
    "packets are short of descriptors")
{
	static struct e82545_ops ops;
	unsigned int i, batches = 0;

	scatter(h, E82545_MAP_READ);
	ops = *h->dev->ops;
	ops.eo_map = map_counted;
	h->dev->ops = &ops;
	/* Too long to be sent, which is seen when all is mapped. */
	for (i = 0; i < 200; i++)
		tx_desc(h, area, (200 * 1024) | TXD_DATA | E82545_TXD_IFCS |
		    E82545_TXD_EOP, 0);
	host_tx_go(h);
	do {
		calls = 0;
		(void)e82545_tx(h->dev);
		ATF_CHECK_MSG(calls <= 1024 + 64 + 8, "%u", calls);
		batches++;
	} while (host_rd(h, E82545_TDH) != host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(200, host_counter(h, E82545_C_TX_BAD_LEN));
	ATF_CHECK(batches >= 200 * 50 / (1024 + 50));
	ATF_CHECK(batches <= 200 * 50 / 1024 + 1);
}

TEST_PROGRAM
