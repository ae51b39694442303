/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The announcement of an adapter's Ethernet address: one RARP request (RFC 903)
 * to all stations, the frame that QEMU sends after a migration.  Switches learn
 * from the frame where the address is, before the guest itself sends anything:
 * so frames for a guest that has come from another host follow at once.  The
 * address is the one that the guest's driver has set: others send to that.
 *
 * An announcement is due when the guest's driver turns bus mastering on, when
 * the link of the port comes up, when the adapter gets another port, and when an
 * uplink of the switch gets a carrier.  A switch without uplink has nobody to
 * tell: the guests' own frames teach the switch itself.
 */

#include <sys/param.h>
#include <sys/uio.h>

#include <net/ethernet.h>

#include <string.h>

#include "adapter_impl.h"
#include "e82545.h"
#include "frame_port.h"
#include "vale_clock.h"

#define	LENGTH		(ETHER_MIN_LEN - ETHER_CRC_LEN)
/* Where the request has the address of its sender, and the one asked for. */
#define	AT_SENDER	22
#define	AT_TARGET	32
/*
 * A guest that turns bus mastering on and off announces no more often: once a
 * second, and three times at once.
 */
#define	INTERVAL_MS	1000
#define	AHEAD_MS	(2 * INTERVAL_MS)

void
adapter_announce_soon(struct adapter *ad)
{
	atomic_store_32(&ad->announce, 1);
}

/* Return whether an announcement is permitted and reaches anybody. */
static bool
is_of_use(struct adapter *ad)
{
	bool on;

	pthread_mutex_lock(&ad->mtx);
	on = ad->config.ac_announce;
	pthread_mutex_unlock(&ad->mtx);
	return (on && !ad->quiesced && atomic_load_32(&ad->down) == 0 &&
	    vfu_pci_busmaster(&ad->vfu.vdev_pci) &&
	    (ad->net.an_vale == NULL || atomic_load_32(&ad->uplink) != 0));
}

/*
 * Send the request, unless the driver has set no address.  Returns whether it
 * has, and the port had space for the frame.
 */
static bool
request(struct adapter *ad)
{
	/* Type RARP; Ethernet, IPv4, lengths of both addresses, request. */
	static const uint8_t kind[] = { 0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3 };
	static const uint8_t none[ETHER_ADDR_LEN];
	struct e82545_mode mode;
	const uint8_t *mac = mode.em_address;
	uint8_t bytes[LENGTH] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct frame frame = { .f_iov = &iov };
	bool sent;

	e82545_mode(ad->dev, &mode);
	if (memcmp(mac, none, sizeof(none)) == 0)
		return (false);
	memset(bytes, 0xff, ETHER_ADDR_LEN);
	memcpy(bytes + ETHER_ADDR_LEN, mac, ETHER_ADDR_LEN);
	memcpy(bytes + 2 * ETHER_ADDR_LEN, kind, sizeof(kind));
	memcpy(bytes + AT_SENDER, mac, ETHER_ADDR_LEN);
	memcpy(bytes + AT_TARGET, mac, ETHER_ADDR_LEN);
	frame_set(&frame, 1, sizeof(bytes));
	sent = frame_port_send(ad->net.an_port, &frame) == 0;
	frame_port_flush(ad->net.an_port);
	return (sent);
}

void
adapter_announce(struct adapter *ad)
{
	uint64_t now_ms;

	adapter_assert_thread(ad);
	if (atomic_load_32(&ad->announce) == 0)
		return;
	now_ms = vale_now_ms();
	/* adapter_listen() wakes the thread later. */
	if (now_ms + AHEAD_MS < ad->announce_ms)
		return;
	/* What comes from now on asks for another one. */
	(void)atomic_swap_32(&ad->announce, 0);
	if (!is_of_use(ad) || !request(ad))
		return;
	ad->announce_ms = MAX(ad->announce_ms, now_ms) + INTERVAL_MS;
	atomic_add_64(&ad->announces, 1);
}

/*
 * The main thread.
 */

void
adapter_uplink(struct adapter *ad, bool up, bool came)
{
	const bool was = atomic_swap_32(&ad->uplink, up) != 0;

	if (!up || (was && !came))
		return;
	adapter_announce_soon(ad);
	adapter_post(ad);
}
