/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * lem_netmap interface address count [vlan]: opens an interface in netmap mode,
 * asks for the Ethernet address of `address' (ARP) `count' times, each after
 * the answer to the one before, and prints how many were sent and answered.  It
 * ends with the first that is not answered.  With `vlan', requests and answers
 * have a tag for that VLAN.
 *
 * lem_netmap interface count: only sends, frames that nobody answers, and
 * prints how many, and how often it waited for a slot.
 */

#include <sys/types.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <err.h>
#include <ifaddrs.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/if_dl.h>
#include <net/netmap_user.h>
#include <netinet/in.h>
#include <netinet/if_ether.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libnetmap.h>

#define	WAIT_MS	10000
#define	REQUEST	60	/* bytes, without a tag */

static uint8_t station[ETHER_ADDR_LEN];
static struct in_addr own;
/* The bytes between the addresses and the type: a tag, or none. */
static uint8_t tag[ETHER_VLAN_ENCAP_LEN];
static size_t tag_len;

/* The Ethernet and the IPv4 address of an interface. */
static void
addresses(const char *name)
{
	const struct sockaddr_dl *dl;
	struct ifaddrs *all, *ifa;
	bool found = false;

	if (getifaddrs(&all) != 0)
		err(1, "getifaddrs");
	for (ifa = all; ifa != NULL; ifa = ifa->ifa_next) {
		if (strcmp(ifa->ifa_name, name) != 0 || ifa->ifa_addr == NULL)
			continue;
		if (ifa->ifa_addr->sa_family == AF_LINK) {
			dl = (const void *)ifa->ifa_addr;
			memcpy(station, LLADDR(dl), sizeof(station));
		} else if (ifa->ifa_addr->sa_family == AF_INET) {
			own = ((const struct sockaddr_in *)(const void *)
			    ifa->ifa_addr)->sin_addr;
			found = true;
		}
	}
	freeifaddrs(all);
	if (!found)
		errx(1, "%s: no IPv4 address", name);
}

static size_t
request(uint8_t frame[static REQUEST + ETHER_VLAN_ENCAP_LEN],
    struct in_addr peer)
{
	const uint16_t type = htons(ETHERTYPE_ARP);
	struct ether_arp arp;
	uint8_t *p = frame;

	memset(frame, 0, REQUEST + tag_len);
	memset(p, 0xff, ETHER_ADDR_LEN);
	p += ETHER_ADDR_LEN;
	memcpy(p, station, sizeof(station));
	p += sizeof(station);
	memcpy(p, tag, tag_len);
	p += tag_len;
	memcpy(p, &type, sizeof(type));
	p += sizeof(type);
	memset(&arp, 0, sizeof(arp));
	arp.arp_hrd = htons(ARPHRD_ETHER);
	arp.arp_pro = htons(ETHERTYPE_IP);
	arp.arp_hln = ETHER_ADDR_LEN;
	arp.arp_pln = sizeof(peer);
	arp.arp_op = htons(ARPOP_REQUEST);
	memcpy(arp.arp_sha, station, sizeof(station));
	memcpy(arp.arp_spa, &own, sizeof(own));
	memcpy(arp.arp_tpa, &peer, sizeof(peer));
	memcpy(p, &arp, sizeof(arp));
	return (REQUEST + tag_len);
}

static bool
is_answer(const uint8_t *frame, size_t len, struct in_addr peer)
{
	const uint16_t type = htons(ETHERTYPE_ARP);
	const uint8_t *p = frame + 2 * ETHER_ADDR_LEN;
	struct ether_arp arp;

	if (len < ETHER_HDR_LEN + tag_len + sizeof(arp) ||
	    memcmp(p, tag, tag_len) != 0 ||
	    memcmp(p + tag_len, &type, sizeof(type)) != 0)
		return (false);
	memcpy(&arp, p + tag_len + sizeof(type), sizeof(arp));
	return (arp.arp_op == htons(ARPOP_REPLY) &&
	    memcmp(arp.arp_spa, &peer, sizeof(peer)) == 0);
}

/* Wait for an answer, and discard other frames. */
static bool
answered(struct nmport_d *port, struct in_addr peer)
{
	struct netmap_ring *ring = NETMAP_RXRING(port->nifp, 0);
	struct pollfd pfd = { .fd = port->fd, .events = POLLIN };
	const struct netmap_slot *slot;
	bool found = false;

	while (!found && poll(&pfd, 1, WAIT_MS) > 0)
		while (!nm_ring_empty(ring)) {
			slot = &ring->slot[ring->cur];
			if (is_answer((void *)NETMAP_BUF(ring, slot->buf_idx),
			    slot->len, peer))
				found = true;
			ring->head = ring->cur =
			    nm_ring_next(ring, ring->cur);
		}
	return (found);
}

/* Returns false if no slot became free. */
static bool
wait_slot(struct nmport_d *port, unsigned int *waits)
{
	struct pollfd pfd = { .fd = port->fd, .events = POLLOUT };

	if (poll(&pfd, 1, 0) > 0)
		return (true);
	++*waits;
	return (poll(&pfd, 1, WAIT_MS) > 0);
}

static void
only_send(struct nmport_d *port, unsigned int n)
{
	uint8_t frame[60] = { 0x02, 0, 0, 0, 0, 0xfe };
	unsigned int i = 0, waits = 0;

	memcpy(frame + ETHER_ADDR_LEN, station, sizeof(station));
	while (i < n)
		if (nmport_inject(port, frame, sizeof(frame)) != 0)
			i++;
		else if (!wait_slot(port, &waits))
			break;
	printf("sent %u, waits %u\n", i, waits);
}

int
main(int argc, char *argv[])
{
	struct nmport_d *port;
	struct in_addr peer;
	char name[IFNAMSIZ + 8];
	uint8_t frame[REQUEST + ETHER_VLAN_ENCAP_LEN];
	unsigned int answers = 0, i, n, vlan;

	if (argc < 3 || argc > 5 ||
	    (argc > 3 && inet_pton(AF_INET, argv[2], &peer) != 1))
		errx(1, "usage: lem_netmap interface [address] count [vlan]");
	n = strtoul(argv[argc == 3 ? 2 : 3], NULL, 10);
	if (argc == 5) {
		vlan = strtoul(argv[4], NULL, 10);
		tag[0] = ETHERTYPE_VLAN >> 8;
		tag[1] = ETHERTYPE_VLAN & 0xff;
		tag[2] = vlan >> 8;
		tag[3] = vlan & 0xff;
		tag_len = sizeof(tag);
	}
	addresses(argv[1]);
	snprintf(name, sizeof(name), "netmap:%s", argv[1]);
	port = nmport_open(name);
	if (port == NULL)
		err(1, "%s", name);
	if (argc == 3) {
		only_send(port, n);
		nmport_close(port);
		return (0);
	}
	for (i = 0; i < n && answers == i; i++) {
		if (nmport_inject(port, frame, request(frame, peer)) == 0 ||
		    ioctl(port->fd, NIOCTXSYNC, NULL) != 0)
			break;
		answers += answered(port, peer);
	}
	printf("sent %u, answers %u\n", i, answers);
	nmport_close(port);
	return (0);
}
