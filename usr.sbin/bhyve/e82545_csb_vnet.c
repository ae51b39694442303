/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The header ring of the CSB: virtio-net headers for what the guest receives.
 *
 * vnet_ring_high and vnet_ring_low name an array of headers of 10 bytes, one
 * for each receive descriptor.  With the mode on, a frame with a partial
 * checksum or to be cut reaches the guest as it is, in as many buffers as it
 * takes, and the entry of its first descriptor is its header.  Without the
 * array, or with the mode off, the guest gets complete frames: e82545_rx.c.
 * So does a guest that does not announce that its stack takes UDP so: FreeBSD's
 * would take segments for one datagram, and shows programs that read frames
 * with bpf(4), such as dhclient(8), the partial checksum.
 * The entry of a complete frame is zeros, whatever the mode, because the guest
 * may change that before it reads the entry.
 *
 * The address and the number of entries are those when CSBAL is written.  The
 * array is mapped again for each batch, as the rings are.
 *
 * The address changes with all locks held; a batch reads it under rx_mtx.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <net/paravirt.h>

#include <string.h>

#include "e82545_csb_impl.h"
#include "e82545_snap.h"
#include "frame_vnet.h"

#define	TCP_SUM		16	/* the checksum's offset: RFC 9293, 3.1 */

void
csb_vnet_place(struct e82545 *dev, const struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;
	void *ring;

	e82545_assert_all(dev);
	MPASS(c->vnet_gpa == 0);	/* csb_release() */
	if (page == NULL)
		return;
	c->vnet_gpa =
	    (uint64_t)le32toh(atomic_load_32(&page->vnet_ring_high)) << 32 |
	    le32toh(atomic_load_32(&page->vnet_ring_low));
	c->vnet_size = csb_ring_size(dev, &csb_rx_ring);
	c->vnet_clean = UINT32_MAX;
	if (c->vnet_gpa == 0 || c->vnet_size == 0)
		return;
	ring = e82545_map(dev, c->vnet_gpa,
	    (size_t)c->vnet_size * FRAME_VNET_SHORT);
	if (ring != NULL)
		memset(ring, 0, (size_t)c->vnet_size * FRAME_VNET_SHORT);
	else
		csb_bad(dev, c->vnet_gpa);
}

/* Clear `n' entries from `first' on. */
static void
vnet_clear(uint8_t *ring, uint32_t size, uint32_t first, uint32_t n)
{
	uint32_t run;

	for (; n > 0; n -= run) {
		run = MIN(n, size - first);
		memset(ring + first * FRAME_VNET_SHORT, 0,
		    run * FRAME_VNET_SHORT);
		first = 0;
	}
}

/*
 * Clear the entries of descriptors that are posted, once a lap, so that plain
 * frames need not: the guest has read them.
 */
void
csb_vnet_clear(struct e82545 *dev, uint8_t *ring, uint32_t size,
    uint32_t head, uint32_t posted)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t done;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	/* All are posted if RDT is beyond the ring: e82545_rx.c. */
	MPASS(head < size && posted <= size);
	done = c->vnet_clean < size ? (c->vnet_clean + size - head) % size : 0;
	/* More only after a restore from a snapshot that somebody changed. */
	done = MIN(done, posted);
	vnet_clear(ring, size, (head + done) % size, posted - done);
	c->vnet_clean = (head + posted) % size;
}

uint8_t *
csb_vnet_map(struct e82545 *dev, uint32_t size, uint32_t head, uint32_t posted)
{
	struct e82545_csb *c = &dev->csb;
	uint8_t *ring = NULL;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	MPASS(c->vnet_gpa != 0);
	if (dev->port->fp_offloads && size <= c->vnet_size)
		ring = e82545_map(dev, c->vnet_gpa,
		    (size_t)c->vnet_size * FRAME_VNET_SHORT);
	if (ring != NULL)
		csb_vnet_clear(dev, ring, size, head, posted);
	else /* The head passes entries that are not cleared again. */
		c->vnet_clean = UINT32_MAX;
	return (ring);
}

bool
csb_vnet_takes(const struct e82545 *dev, const struct frame *frame)
{
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	MPASS(dev->csb.rx_on && dev->csb.rx != NULL);
	return ((frame->f_csum_offset == TCP_SUM &&
	    frame->f_gso_type != FRAME_GSO_UDP_L4) ||
	    (atomic_load_32(&E82545_CSB_GUEST_HEADERS(dev->csb.rx)) &
	    htole32(E82545_CSB_HEADERS_UDP)) != 0);
}

void
csb_vnet_snap(struct e82545_csb *c, struct e82545_snap *s)
{
	e82545_snap_u64(s, &c->vnet_gpa, UINT64_MAX);
	e82545_snap_u32(s, &c->vnet_size, E82545_DLEN_MASK /
	    sizeof(union e82545_txd));
	e82545_snap_u32(s, &c->vnet_clean, UINT32_MAX);
	e82545_snap_check(s, c->vnet_gpa == 0 || c->gpa != 0);
}
