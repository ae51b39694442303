/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guards against forged addresses: what a port of a switch may send.
 *
 *	source		the Ethernet source must be one of a list
 *	ip		the sender's IP address must be in one of a list of
 *			prefixes:
 *
 *			IPv4	the source; 0.0.0.0 only in a request for an
 *				address (UDP from port 68 to 67), and in reports
 *				of IGMP (RFC 3376, 4.2.13)
 *			ARP	the sender's; in a probe, which is from 0.0.0.0,
 *				the target's (RFC 5227).  The sender's Ethernet
 *				address must be that of the frame
 *			RARP	requests for the frame's Ethernet address
 *			IPv6	the source, or the link-local address that is
 *				made of the frame's source (RFC 4291, appendix
 *				A); :: in reports of MLD, router solicitations
 *				and duplicate address detection
 *			ND	besides, the target of an advertisement, and of
 *				duplicate address detection (RFC 4862); the
 *				link-layer address of each option must be that
 *				of the frame (RFC 4861).  Router advertisements
 *				and redirects are refused
 *			DHCP	answers to clients, UDP to port 68, or 546 of
 *				IPv6, are refused
 *
 *			EAPOL passes.  Other types of frames are refused, as
 *			are those of 802.3: IP can be in them.  Tags of 802.1Q
 *			and 802.1ad are skipped, at most two.
 *
 * A guard must see bytes that the sender cannot change afterwards.
 *
 * The user-space switch (lib/libvale) and vale_learn(4) use these.  No function
 * takes a lock.
 */

#ifndef _DEV_NETMAP_VALE_GUARD_H_
#define	_DEV_NETMAP_VALE_GUARD_H_

#include <sys/param.h>
#include <sys/systm.h>

#define	VALE_GUARD_ADDRS	16	/* Ethernet addresses of a list */
#define	VALE_GUARD_PREFIXES	16	/* prefixes of a list */
/*
 * Bytes of a frame that a guard looks at, from its beginning, at most.  A frame
 * is refused if more are needed.
 */
#define	VALE_GUARD_HEAD		192

/* An IP prefix: IPv4 ones are those of IPv4-mapped addresses (RFC 4291). */
struct vale_guard_prefix {
	uint8_t		gp_addr[16];
	uint8_t		gp_len;		/* bits, 0 to 128 */
};

/* All zero: every frame passes. */
struct vale_guard {
	uint8_t		gd_naddrs;	/* 0: any source */
	uint8_t		gd_nprefixes;	/* 0: any IP address */
	uint8_t		gd_addr[VALE_GUARD_ADDRS][6];
	struct vale_guard_prefix gd_prefix[VALE_GUARD_PREFIXES];
};

enum vale_guard_verdict {
	VALE_GUARD_PASS,
	VALE_GUARD_SOURCE,	/* the Ethernet source is forged */
	VALE_GUARD_IP		/* an IP address is */
};

/*
 * Set the list of Ethernet addresses from text, with commas between; "any" for
 * none.  Returns false, and changes nothing, if the list is invalid: has a
 * group address, or all zeros, too.
 */
bool	vale_guard_sources(struct vale_guard *gd, const char *list);

/*
 * Set the list of prefixes from text, as "192.0.2.5,2001:db8::/64"; "any" for
 * none.  Returns false, and changes nothing, if the list is invalid.
 */
bool	vale_guard_prefixes(struct vale_guard *gd, const char *list);

/*
 * Return whether a frame may be sent.  `head' is its first `len' bytes, at
 * least 14: VALE_GUARD_HEAD, or the whole frame if that is shorter.
 */
enum vale_guard_verdict vale_guard_check(const struct vale_guard *gd,
	    const uint8_t *head, uint32_t len);

/* Return whether the Ethernet source, 6 bytes, passes. */
bool	vale_guard_source(const struct vale_guard *gd, const uint8_t *source);

#endif /* !_DEV_NETMAP_VALE_GUARD_H_ */
