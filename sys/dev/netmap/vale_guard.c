/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guards against forged addresses: see vale_guard.h.
 *
 * What cannot be decided is refused: headers that are cut off, that lie behind
 * VALE_GUARD_HEAD, or that hide a neighbour message in fragments (RFC 6980).
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/systm.h>
#ifdef _KERNEL
#include <netinet/in.h>
#else
#include <arpa/inet.h>
#endif

#include <dev/netmap/vale_guard.h>

#define	ADDR_LEN	6		/* bytes of an Ethernet address */
#define	IP4_LEN		4
#define	IP6_LEN		16
#define	WORD		64		/* bytes of a prefix's text, with NUL */

/* The Ethernet header, and tags behind its addresses. */
#define	ETHER_LEN	14
#define	TAG_LEN		4
#define	TYPE_IP4	0x0800
#define	TYPE_ARP	0x0806
#define	TYPE_RARP	0x8035
#define	TYPE_VLAN	0x8100
#define	TYPE_IP6	0x86dd
#define	TYPE_EAPOL	0x888e
#define	TYPE_QINQ	0x88a8

/* RFC 826, 903, for Ethernet and IPv4. */
#define	ARP_LEN		28
#define	ARP_OPERATION	6
#define	 RARP_REQUEST	3
#define	ARP_SENDER	8		/* its Ethernet address */
#define	ARP_SENDER_IP	14
#define	ARP_TARGET	18		/* as the sender's */
#define	ARP_TARGET_IP	24

/* RFC 791, RFC 768. */
#define	IP4_MIN		20
#define	IP4_FRAGMENT	6		/* mask: the offset */
#define	IP4_PROTO	9
#define	IP4_SOURCE	12
#define	IGMP_LEN	8		/* RFC 3376 */
#define	IGMP_QUERY	0x11
#define	UDP_LEN		8
#define	PROTO_IGMP	2
#define	PROTO_UDP	17
#define	PORT_DHCP	67		/* RFC 2131 */
#define	PORT_DHCP_CLIENT 68
#define	PORT_DHCP6_CLIENT 546		/* RFC 8415 */

/* RFC 8200, 4302. */
#define	IP6_HEADER	40
#define	IP6_NEXT	6
#define	IP6_SOURCE	8
#define	NEXT_HOPS	0
#define	NEXT_ROUTING	43
#define	NEXT_FRAGMENT	44
#define	NEXT_AH		51
#define	NEXT_ICMP	58
#define	NEXT_OPTIONS	60

/* RFC 2710, 3810, 4861. */
#define	MLD_REPORT	131
#define	MLD_DONE	132
#define	MLD2_REPORT	143
#define	ND_ROUTER_SOL	133
#define	ND_ROUTER_ADV	134
#define	ND_SOL		135
#define	ND_ADV		136
#define	ND_REDIRECT	137
#define	ND_TARGET	8		/* of solicitations, advertisements */
#define	OPT_SOURCE	1		/* link-layer addresses */
#define	OPT_TARGET	2

/* The bytes of a frame from some header on. */
struct guard_bytes {
	const uint8_t	*gb_p;
	uint32_t	 gb_len;
};

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

static uint16_t
get16(const uint8_t *p)
{
	return (p[0] << 8 | p[1]);
}

/* Skip `len' bytes.  Returns false if there are fewer. */
static bool
bytes_skip(struct guard_bytes *gb, uint32_t len)
{
	if (gb->gb_len < len)
		return (false);
	gb->gb_p += len;
	gb->gb_len -= len;
	return (true);
}

/*
 * Lists.
 */

/* Copy and pass the next word of *list.  Returns false if too long. */
static bool
list_word(const char **list, char word[WORD])
{
	const size_t len = strcspn(*list, ",");

	if (len >= WORD)
		return (false);
	memcpy(word, *list, len);
	word[len] = '\0';
	*list += len;
	return (true);
}

/* Return the value of a hexadecimal digit, or -1. */
static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return (c - '0');
	if (c >= 'a' && c <= 'f')
		return (c - 'a' + 10);
	if (c >= 'A' && c <= 'F')
		return (c - 'A' + 10);
	return (-1);
}

/* Parse "52:54:00:00:00:01". */
static bool
parse_addr(const char *text, uint8_t addr[ADDR_LEN])
{
	static const uint8_t zero[ADDR_LEN];
	unsigned int i;

	for (i = 0; i < ADDR_LEN; i++, text += 3) {
		if (hex(text[0]) == -1 || hex(text[1]) == -1 ||
		    text[2] != (i + 1 < ADDR_LEN ? ':' : '\0'))
			return (false);
		addr[i] = hex(text[0]) << 4 | hex(text[1]);
	}
	return ((addr[0] & 1) == 0 && memcmp(addr, zero, ADDR_LEN) != 0);
}

/* Parse the length of a prefix, 0 to max; "" stands for max. */
static bool
parse_length(const char *text, unsigned int max, unsigned int *len)
{
	const char *p = text;

	*len = max;
	if (*p == '\0')
		return (true);
	for (*len = 0; *p >= '0' && *p <= '9' && *len <= max; p++)
		*len = *len * 10 + (*p - '0');
	return (*p == '\0' && *len <= max &&
	    (*text != '0' || p == text + 1));
}

/* Parse "192.0.2.0/24" or "2001:db8::1".  `text' is changed. */
static bool
parse_prefix(char *text, struct vale_guard_prefix *gp)
{
	unsigned int len, n;
	char *slash;

	slash = strchr(text, '/');
	if (slash != NULL)
		*slash++ = '\0';
	/* "10.0.0.0/" has no length. */
	if (slash != NULL && *slash == '\0')
		return (false);
	if (inet_pton(AF_INET, text, gp->gp_addr + sizeof(mapped)) == 1) {
		memcpy(gp->gp_addr, mapped, sizeof(mapped));
		if (!parse_length(slash != NULL ? slash : "", 8 * IP4_LEN,
		    &len))
			return (false);
		len += 8 * sizeof(mapped);
	} else if (inet_pton(AF_INET6, text, gp->gp_addr) != 1 ||
	    !parse_length(slash != NULL ? slash : "", 8 * IP6_LEN, &len))
		return (false);
	gp->gp_len = len;
	/* Bits behind the prefix would make a host's address. */
	for (n = len; n < 8 * IP6_LEN; n++)
		if ((gp->gp_addr[n / 8] >> (7 - n % 8) & 1) != 0)
			return (false);
	return (true);
}

bool
vale_guard_sources(struct vale_guard *gd, const char *list)
{
	uint8_t addr[VALE_GUARD_ADDRS][ADDR_LEN];
	char word[WORD];
	unsigned int n;

	if (strcmp(list, "any") == 0) {
		gd->gd_naddrs = 0;
		return (true);
	}
	for (n = 0; n < VALE_GUARD_ADDRS; list++) {
		if (!list_word(&list, word) || !parse_addr(word, addr[n++]))
			return (false);
		if (*list == '\0') {
			memcpy(gd->gd_addr, addr, sizeof(addr[0]) * n);
			gd->gd_naddrs = n;
			return (true);
		}
	}
	return (false);
}

bool
vale_guard_prefixes(struct vale_guard *gd, const char *list)
{
	struct vale_guard_prefix prefix[VALE_GUARD_PREFIXES];
	char word[WORD];
	unsigned int n;

	if (strcmp(list, "any") == 0) {
		gd->gd_nprefixes = 0;
		return (true);
	}
	for (n = 0; n < VALE_GUARD_PREFIXES; list++) {
		if (!list_word(&list, word) ||
		    !parse_prefix(word, &prefix[n++]))
			return (false);
		if (*list == '\0') {
			memcpy(gd->gd_prefix, prefix, sizeof(prefix[0]) * n);
			gd->gd_nprefixes = n;
			return (true);
		}
	}
	return (false);
}

/*
 * Frames.
 */

bool
vale_guard_source(const struct vale_guard *gd, const uint8_t *source)
{
	unsigned int i;

	for (i = 0; i < gd->gd_naddrs; i++)
		if (memcmp(gd->gd_addr[i], source, ADDR_LEN) == 0)
			return (true);
	return (gd->gd_naddrs == 0);
}

/* Return whether an address has a prefix of the list. */
static bool
listed(const struct vale_guard *gd, const uint8_t addr[IP6_LEN])
{
	const struct vale_guard_prefix *gp;
	unsigned int bytes, bits;

	for (gp = gd->gd_prefix; gp < gd->gd_prefix + gd->gd_nprefixes; gp++) {
		bytes = gp->gp_len / 8;
		bits = gp->gp_len % 8;
		if (memcmp(gp->gp_addr, addr, bytes) == 0 && (bits == 0 ||
		    (gp->gp_addr[bytes] ^ addr[bytes]) >> (8 - bits) == 0))
			return (true);
	}
	return (false);
}

static bool
listed4(const struct vale_guard *gd, const uint8_t ip[IP4_LEN])
{
	uint8_t addr[IP6_LEN];

	memcpy(addr, mapped, sizeof(mapped));
	memcpy(addr + sizeof(mapped), ip, IP4_LEN);
	return (listed(gd, addr));
}

static bool
is_zero(const uint8_t *p, size_t len)
{
	static const uint8_t zero[IP6_LEN];

	return (memcmp(p, zero, len) == 0);
}

/* Make the link-local address of an Ethernet address. */
static void
link_local(const uint8_t source[ADDR_LEN], uint8_t ip[IP6_LEN])
{
	memset(ip, 0, IP6_LEN);
	ip[0] = 0xfe;
	ip[1] = 0x80;
	memcpy(ip + 8, source, 3);
	ip[8] ^= 2;
	ip[11] = 0xff;
	ip[12] = 0xfe;
	memcpy(ip + 13, source + 3, 3);
}

/* Return whether the sender may use an IPv6 address. */
static bool
allowed6(const struct vale_guard *gd, const uint8_t source[ADDR_LEN],
    const uint8_t ip[IP6_LEN])
{
	uint8_t own[IP6_LEN];

	link_local(source, own);
	return (memcmp(ip, own, IP6_LEN) == 0 || (listed(gd, ip) &&
	    memcmp(ip, mapped, sizeof(mapped)) != 0));
}

/* Return whether ARP or RARP is of the sender's Ethernet address. */
static bool
arp_from(const uint8_t *source, const struct guard_bytes *gb)
{
	static const uint8_t ether_ip4[6] = { 0, 1, 8, 0, ADDR_LEN, IP4_LEN };

	return (gb->gb_len >= ARP_LEN &&
	    memcmp(gb->gb_p, ether_ip4, sizeof(ether_ip4)) == 0 &&
	    memcmp(gb->gb_p + ARP_SENDER, source, ADDR_LEN) == 0);
}

/* Check ARP: a probe, from 0.0.0.0, tells the target's owner to give up. */
static bool
check_arp(const struct vale_guard *gd, const uint8_t *source,
    const struct guard_bytes *gb)
{
	return (arp_from(source, gb) && listed4(gd, gb->gb_p +
	    (is_zero(gb->gb_p + ARP_SENDER_IP, IP4_LEN) ? ARP_TARGET_IP :
	    ARP_SENDER_IP)));
}

/* Pass a request for the sender's own address, as QEMU announces a guest. */
static bool
check_rarp(const uint8_t *source, const struct guard_bytes *gb)
{
	return (arp_from(source, gb) &&
	    get16(gb->gb_p + ARP_OPERATION) == RARP_REQUEST &&
	    is_zero(gb->gb_p + ARP_SENDER_IP, IP4_LEN) &&
	    (is_zero(gb->gb_p + ARP_TARGET, ADDR_LEN) ||
	    memcmp(gb->gb_p + ARP_TARGET, source, ADDR_LEN) == 0));
}

/* Check what follows IPv4's header; from 0.0.0.0 if `zero'. */
static bool
check_ip4_payload(const struct guard_bytes *gb, uint8_t proto, bool zero)
{
	const uint8_t *p = gb->gb_p;

	switch (proto) {
	case PROTO_UDP:
		return (gb->gb_len >= UDP_LEN &&
		    get16(p + 2) != PORT_DHCP_CLIENT && (!zero ||
		    (get16(p) == PORT_DHCP_CLIENT &&
		    get16(p + 2) == PORT_DHCP)));
	case PROTO_IGMP:
		return (!zero || (gb->gb_len >= IGMP_LEN &&
		    p[0] != IGMP_QUERY));
	default:
		return (!zero);
	}
}

static bool
check_ip4(const struct vale_guard *gd, struct guard_bytes gb)
{
	const uint8_t *p = gb.gb_p;
	uint32_t hdrlen;
	bool zero;

	if (gb.gb_len == 0 || p[0] >> 4 != 4)
		return (false);
	hdrlen = (p[0] & 0xf) * 4;
	if (hdrlen < IP4_MIN || !bytes_skip(&gb, hdrlen))
		return (false);
	zero = is_zero(p + IP4_SOURCE, IP4_LEN);
	if (!zero && !listed4(gd, p + IP4_SOURCE))
		return (false);
	/* Ports are in the first fragment. */
	if ((get16(p + IP4_FRAGMENT) & 0x1fff) != 0)
		return (!zero);
	return (check_ip4_payload(&gb, p[IP4_PROTO], zero));
}

/* Return whether the options' link-layer addresses are the sender's. */
static bool
check_options(const uint8_t *source, struct guard_bytes gb)
{
	uint32_t len;

	while (gb.gb_len > 0) {
		if (gb.gb_len < 8)
			return (false);
		len = gb.gb_p[1] * 8;
		if (len == 0 || ((gb.gb_p[0] == OPT_SOURCE ||
		    gb.gb_p[0] == OPT_TARGET) && (len != 8 ||
		    memcmp(gb.gb_p + 2, source, ADDR_LEN) != 0)) ||
		    !bytes_skip(&gb, len))
			return (false);
	}
	return (true);
}

/* Return whether the header begins with the number of the next header. */
static bool
is_extension(uint8_t next)
{
	return (next == NEXT_HOPS || next == NEXT_ROUTING || next == NEXT_AH ||
	    next == NEXT_OPTIONS);
}

/* Check UDP over IPv6: no answer to a DHCP client. */
static bool
check_udp6(const struct guard_bytes *gb)
{
	return (gb->gb_len >= UDP_LEN &&
	    get16(gb->gb_p + 2) != PORT_DHCP6_CLIENT);
}

/*
 * Check a complete message of ICMPv6; from :: if `zero', where the sender has
 * no address yet (RFC 3590, 4861, 4862).
 */
static bool
check_icmp6(const struct vale_guard *gd, const uint8_t *source,
    const struct guard_bytes *gb, bool zero)
{
	struct guard_bytes options = *gb;

	if (gb->gb_len == 0)
		return (false);
	switch (gb->gb_p[0]) {
	case ND_ROUTER_SOL:
		return (bytes_skip(&options, ND_TARGET) &&
		    check_options(source, options));
	case ND_SOL:
		/* From :: this tells the target's owner to give up. */
		return (bytes_skip(&options, ND_TARGET + IP6_LEN) &&
		    (!zero || allowed6(gd, source, gb->gb_p + ND_TARGET)) &&
		    check_options(source, options));
	case ND_ADV:
		return (!zero && bytes_skip(&options, ND_TARGET + IP6_LEN) &&
		    allowed6(gd, source, gb->gb_p + ND_TARGET) &&
		    check_options(source, options));
	case ND_ROUTER_ADV:
	case ND_REDIRECT:
		return (false);
	case MLD_REPORT:
	case MLD_DONE:
	case MLD2_REPORT:
		return (true);
	default:
		return (!zero);
	}
}

/* Check a fragment of a packet, from its header on (RFC 6980). */
static bool
check_fragment(struct guard_bytes gb)
{
	const uint8_t *p = gb.gb_p;

	/* A chain of headers that goes on behind is not looked at. */
	if (!bytes_skip(&gb, 8) || is_extension(p[0]) || p[0] == NEXT_FRAGMENT)
		return (false);
	/* Types and ports are in the first fragment. */
	if ((get16(p + 2) & 0xfff8) != 0)
		return (true);
	if (p[0] == NEXT_ICMP)
		return (gb.gb_len > 0 && (gb.gb_p[0] < ND_ROUTER_SOL ||
		    gb.gb_p[0] > ND_REDIRECT));
	return (p[0] != PROTO_UDP || check_udp6(&gb));
}

static bool
check_ip6(const struct vale_guard *gd, const uint8_t *source,
    struct guard_bytes gb)
{
	const uint8_t *p = gb.gb_p;
	uint32_t len;
	uint8_t next;
	bool zero;

	if (gb.gb_len < IP6_HEADER || p[0] >> 4 != 6)
		return (false);
	zero = is_zero(p + IP6_SOURCE, IP6_LEN);
	if (!zero && !allowed6(gd, source, p + IP6_SOURCE))
		return (false);
	/* What follows the packet is padding. */
	len = IP6_HEADER + get16(p + 4);
	gb.gb_len = MIN(gb.gb_len, len);
	next = p[IP6_NEXT];
	(void)bytes_skip(&gb, IP6_HEADER);
	while (is_extension(next)) {
		p = gb.gb_p;
		if (!bytes_skip(&gb, 8) ||
		    !bytes_skip(&gb, p[1] * (next == NEXT_AH ? 4 : 8)))
			return (false);
		next = p[0];
	}
	if (next == NEXT_ICMP)
		return (check_icmp6(gd, source, &gb, zero));
	if (next == NEXT_FRAGMENT)
		return (!zero && check_fragment(gb));
	return (!zero && (next != PROTO_UDP || check_udp6(&gb)));
}

enum vale_guard_verdict
vale_guard_check(const struct vale_guard *gd, const uint8_t *head,
    uint32_t len)
{
	const uint8_t *source = head + ADDR_LEN;
	struct guard_bytes gb = { head, len };
	unsigned int tags = 0;
	uint16_t type;
	bool pass = false;

	MPASS(len >= ETHER_LEN);
	if (!vale_guard_source(gd, source))
		return (VALE_GUARD_SOURCE);
	if (gd->gd_nprefixes == 0)
		return (VALE_GUARD_PASS);
	for (;;) {
		if (gb.gb_len < ETHER_LEN)
			return (VALE_GUARD_IP);
		type = get16(gb.gb_p + 2 * ADDR_LEN);
		if (type != TYPE_VLAN && type != TYPE_QINQ)
			break;
		/* Behind a third tag anything may be. */
		if (tags++ == 2)
			return (VALE_GUARD_IP);
		(void)bytes_skip(&gb, TAG_LEN);
	}
	(void)bytes_skip(&gb, ETHER_LEN);
	/* Most other types can carry IP: LLC, MPLS, PPPoE, other tags. */
	switch (type) {
	case TYPE_ARP:
		pass = check_arp(gd, source, &gb);
		break;
	case TYPE_RARP:
		pass = check_rarp(source, &gb);
		break;
	case TYPE_IP4:
		pass = check_ip4(gd, gb);
		break;
	case TYPE_IP6:
		pass = check_ip6(gd, source, gb);
		break;
	case TYPE_EAPOL:
		pass = true;
		break;
	}
	return (pass ? VALE_GUARD_PASS : VALE_GUARD_IP);
}
