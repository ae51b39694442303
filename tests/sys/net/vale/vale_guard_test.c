/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guards against forged addresses: vale_guard.h.  A frame is text: groups of
 * hexadecimal digits, blanks between, and letters for what a test changes.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include <dev/netmap/vale_guard.h>

#include "test.h"

#define	OWN	"020000000001"
#define	OTHER	"020000000002"
#define	DST	"ffffffffffff"
/* 192.0.2.5, 192.0.2.6 */
#define	IP4	"c0000205"
#define	IP4B	"c0000206"
#define	ZERO4	"00000000"
/* 2001:db8::5, 2001:db8::6 */
#define	IP6	"20010db8000000000000000000000005"
#define	IP6B	"20010db8000000000000000000000006"
#define	ZERO6	"00000000000000000000000000000000"
#define	ALL6	"ff020000000000000000000000000001"
/* fe80::ff:fe00:1, of OWN, and :2 */
#define	LOCAL	"fe8000000000000000 0000fffe000001"
#define	LOCALB	"fe8000000000000000 0000fffe000002"
#define	MAPPED	"00000000000000000000ffffc0000205"
#define	ARP(eth, ip) DST OWN "0806" "0001 0800 06 04 0001" eth ip	\
	"000000000000 c0000201"
/* From OWN and `ip' to `target'. */
#define	ARP_FOR(type, op, ip, eth, target) DST OWN type "0001 0800 06 04" op \
	OWN ip eth target
#define	PROBE(target)	ARP_FOR("0806", "0001", ZERO4, "000000000000", target)
#define	RARP(op, ip, eth, target) ARP_FOR("8035", op, ip, eth, target)
#define	IPV4_OF(proto, ip, more) DST OWN "0800" "4500001c 00000000 40" proto \
	"0000" ip "c0000201" more
#define	IPV4(ip, more)	IPV4_OF("11", ip, more)
#define	UDP(src, dst)	src dst "0008 0000"
#define	SOME	UDP("0001", "0002")
#define	IPV6(len, next, ip, more) DST OWN "86dd" "60000000" len next "ff" ip \
	ALL6 more
#define	OPTION(type, eth) type "01" eth
#define	SOL_FOR(ip, more) "87 00 0000 00000000" ip more
#define	SOL(more)	SOL_FOR(IP6B, more)
#define	ADV(ip, more)	"88 00 0000 60000000" ip more

static struct vale_guard gd;

static void
guard(const char *sources, const char *prefixes)
{
	memset(&gd, 0, sizeof(gd));
	ATF_REQUIRE(vale_guard_sources(&gd, sources));
	ATF_REQUIRE(vale_guard_prefixes(&gd, prefixes));
}

/* Its bytes are in memory of their own, so that AddressSanitizer sees it. */
static enum vale_guard_verdict
verdict(const char *text, uint32_t *len)
{
	uint8_t bytes[512], *head;
	enum vale_guard_verdict v;
	unsigned int n = 0;
	char digits[3] = "";

	for (; *text != '\0'; text++) {
		if (isblank((unsigned char)*text))
			continue;
		digits[n++ % 2] = *text;
		if (n % 2 == 0)
			bytes[n / 2 - 1] = strtoul(digits, NULL, 16);
	}
	ATF_REQUIRE(n % 2 == 0);
	*len = *len == 0 ? n / 2 : *len;
	head = malloc(*len);
	ATF_REQUIRE(head != NULL);
	memcpy(head, bytes, *len);
	v = vale_guard_check(&gd, head, *len);
	free(head);
	return (v);
}

struct row {
	const char	*text;
	enum vale_guard_verdict verdict;
};

static void
check_rows(const struct row *rows, unsigned int n)
{
	enum vale_guard_verdict v;
	unsigned int i;
	uint32_t len;

	for (i = 0; i < n; i++) {
		len = 0;
		v = verdict(rows[i].text, &len);
		ATF_CHECK_EQ_MSG(rows[i].verdict, v, "row %u: %d", i, v);
	}
}

TEST(source, "The Ethernet source is one of the list")
{
	static const struct row rows[] = {
		{ DST OWN "0800", VALE_GUARD_PASS },
		{ DST "0200000000ff" "0800", VALE_GUARD_PASS },
		{ DST OTHER "0800", VALE_GUARD_SOURCE },
		{ DST "020000000101" "0800", VALE_GUARD_SOURCE },
		{ DST "820000000001" "0800", VALE_GUARD_SOURCE },
		{ OWN "000000000000" "0800", VALE_GUARD_SOURCE },
	};

	guard("02:00:00:00:00:01,02:00:00:00:00:fF", "any");
	check_rows(rows, nitems(rows));
}

TEST(ip4, "The IPv4 source, and the sender of ARP, are in the list")
{
	static const struct row rows[] = {
		{ IPV4(IP4, UDP("0001", "0002")), VALE_GUARD_PASS },
		{ IPV4(IP4B, UDP("0001", "0002")), VALE_GUARD_IP },
		/* In 198.51.100.0/23, and on either side. */
		{ IPV4("c63364ff", SOME), VALE_GUARD_PASS },
		{ IPV4("c6336500", SOME), VALE_GUARD_PASS },
		{ IPV4("c6336600", SOME), VALE_GUARD_IP },
		{ IPV4("c63363ff", SOME), VALE_GUARD_IP },
		/* Only who has no address yet may ask for one without. */
		{ IPV4(ZERO4, UDP("0044", "0043")), VALE_GUARD_PASS },
		{ IPV4(ZERO4, UDP("0043", "0044")), VALE_GUARD_IP },
		{ IPV4(ZERO4, UDP("0044", "0044")), VALE_GUARD_IP },
		{ IPV4(ZERO4, UDP("0044", "0045")), VALE_GUARD_IP },
		{ IPV4(ZERO4, UDP("0045", "0043")), VALE_GUARD_IP },
		{ IPV4(ZERO4, "0044 0043 0008 00"), VALE_GUARD_IP },
		{ DST OWN "0800 4500001c 00002001 4011 0000" ZERO4 "c0000201"
		    UDP("0044", "0043"), VALE_GUARD_IP },
		{ DST OWN "0800 4500001c 00000000 4006 0000" ZERO4 "c0000201"
		    UDP("0044", "0043"), VALE_GUARD_IP },
		/* Answers to those are a server's, whatever its port. */
		{ IPV4(IP4, UDP("0043", "0044")), VALE_GUARD_IP },
		{ IPV4(IP4, UDP("0fab", "0044")), VALE_GUARD_IP },
		{ IPV4(IP4, UDP("0044", "0043")), VALE_GUARD_PASS },
		{ IPV4(IP4, "0043 0044 0008 00"), VALE_GUARD_IP },
		{ IPV4_OF("06", IP4, UDP("0043", "0044")), VALE_GUARD_PASS },
		/* In the first of two fragments, and in the second. */
		{ DST OWN "0800 4500001c 00002000 4011 0000" IP4 "c0000201"
		    UDP("0043", "0044"), VALE_GUARD_IP },
		{ DST OWN "0800 4500001c 00000001 4011 0000" IP4 "c0000201"
		    UDP("0043", "0044"), VALE_GUARD_PASS },
		/* Reports of IGMP, which are no queries: RFC 3376, 4.2.13. */
		{ IPV4_OF("02", ZERO4, "22000000 00000000"), VALE_GUARD_PASS },
		{ IPV4_OF("02", ZERO4, "16000000 e00000fb"), VALE_GUARD_PASS },
		{ IPV4_OF("02", ZERO4, "11000000 00000000"), VALE_GUARD_IP },
		{ IPV4_OF("02", ZERO4, "22000000 000000"), VALE_GUARD_IP },
		{ IPV4_OF("02", IP4, "11000000 00000000"), VALE_GUARD_PASS },
		{ IPV4_OF("02", IP4B, "22000000 00000000"), VALE_GUARD_IP },
		{ IPV4_OF("01", ZERO4, "0800 0000 00000000"), VALE_GUARD_IP },
		/* With options of the header. */
		{ DST OWN "0800 46000020 00000000 4011 0000" ZERO4 "c0000201"
		    "00000000" UDP("0044", "0043"), VALE_GUARD_PASS },
		{ DST OWN "0800 46000020 00000000 4011 0000" ZERO4 "c0000201"
		    UDP("0044", "0043") "00000000", VALE_GUARD_IP },
		/* Invalid headers. */
		{ DST OWN "0800 6500001c 00000000 4011 0000" IP4 "c0000201",
		    VALE_GUARD_IP },
		{ DST OWN "0800 4400001c 00000000 4011 0000" IP4 "c0000201",
		    VALE_GUARD_IP },
		{ DST OWN "0800 4500001c 00000000 4011 0000" IP4 "c00002",
		    VALE_GUARD_IP },
		{ DST OWN "0800 6500001c 00000000 4011 0000" IP4 "c0000201"
		    SOME, VALE_GUARD_IP },
		{ DST OWN "0800 4400001c 00000000 4011 0000" IP4 "c0000201"
		    SOME, VALE_GUARD_IP },
		{ DST OWN "0800 4500001c 00000000 4006 0000" IP4 "c0000201",
		    VALE_GUARD_PASS },
		{ DST OWN "0800", VALE_GUARD_IP },
		{ ARP(OWN, IP4), VALE_GUARD_PASS },
		/* A probe is for the sender's own address: RFC 5227. */
		{ PROBE(IP4), VALE_GUARD_PASS },
		{ PROBE(IP4B), VALE_GUARD_IP },
		{ PROBE(ZERO4), VALE_GUARD_IP },
		{ ARP_FOR("0806", "0002", ZERO4, OTHER, IP4B), VALE_GUARD_IP },
		{ ARP_FOR("0806", "0001", ZERO4, OTHER, IP4), VALE_GUARD_PASS },
		{ ARP_FOR("0806", "0001", "05000000", "000000000000", IP4),
		    VALE_GUARD_IP },
		{ ARP_FOR("0806", "0001", IP4, "000000000000", IP4B),
		    VALE_GUARD_PASS },
		/* What QEMU announces a guest with. */
		{ RARP("0003", ZERO4, OWN, ZERO4), VALE_GUARD_PASS },
		{ RARP("0003", ZERO4, OTHER, ZERO4), VALE_GUARD_IP },
		{ RARP("0004", ZERO4, OWN, ZERO4), VALE_GUARD_IP },
		{ RARP("0003", IP4B, OWN, ZERO4), VALE_GUARD_IP },
		{ RARP("0003", ZERO4, "000000000000", IP4), VALE_GUARD_PASS },
		{ RARP("0003", ZERO4, OWN, "000000"), VALE_GUARD_IP },
		{ DST OWN "8035 0001 0800 06 04 0003" OTHER ZERO4 OWN ZERO4,
		    VALE_GUARD_IP },
		{ ARP(OWN, IP4B), VALE_GUARD_IP },
		{ ARP(OTHER, IP4), VALE_GUARD_IP },
		{ DST OWN "0806 0001 0800 06 04 0001" OWN IP4
		    "000000000000 c00002", VALE_GUARD_IP },
		{ DST OWN "0806 0006 0800 06 04 0001" OWN IP4
		    "000000000000 c0000201", VALE_GUARD_IP },
		{ DST OWN "0806 0001 86dd 06 04 0001" OWN IP4
		    "000000000000 c0000201", VALE_GUARD_IP },
		/* No address of IPv6, though it looks like one. */
		{ IPV6("0000", "3b", MAPPED, ""), VALE_GUARD_IP },
		{ IPV6("0000", "3b", IP6, ""), VALE_GUARD_IP },
		/* The list of sources comes first. */
		{ DST OTHER "0800", VALE_GUARD_SOURCE },
	};

	guard("02:00:00:00:00:01", "192.0.2.5,198.51.100.0/23");
	check_rows(rows, nitems(rows));
}

TEST(ip6, "The IPv6 source is in the list, or the link-local one of the "
    "Ethernet source")
{
	static const struct row rows[] = {
		{ IPV6("0000", "3b", IP6, ""), VALE_GUARD_PASS },
		{ IPV6("0000", "3b", IP6B, ""), VALE_GUARD_IP },
		{ IPV6("0000", "3b", ZERO6, ""), VALE_GUARD_IP },
		{ IPV6("0000", "3b", LOCAL, ""), VALE_GUARD_PASS },
		{ IPV6("0000", "3b", LOCALB, ""), VALE_GUARD_IP },
		{ IPV6("0000", "3b", "20010db8010000000000000000000001", ""),
		    VALE_GUARD_PASS },
		{ IPV6("0000", "3b", "20010db8020000000000000000000001", ""),
		    VALE_GUARD_IP },
		{ DST OWN "86dd 40000000 0000 3b ff" IP6 ALL6, VALE_GUARD_IP },
		{ DST OWN "86dd 60000000 0000 3b ff" IP6
		    "ff0200000000000000000000000000", VALE_GUARD_IP },
		{ IPV4(IP4, SOME), VALE_GUARD_IP },
		/* From :: only what is sent before there is an address. */
		{ IPV6("0008", "11", ZERO6, SOME), VALE_GUARD_IP },
		{ IPV6("0010", "00", ZERO6, "3a00 0502 0000 0000"
		    "8f00 0000 0000 0000"), VALE_GUARD_PASS },
		{ IPV6("0008", "3a", ZERO6, "8300 0000 0000 0000"),
		    VALE_GUARD_PASS },
		{ IPV6("0008", "3a", ZERO6, "8400 0000 0000 0000"),
		    VALE_GUARD_PASS },
		{ IPV6("0008", "3a", ZERO6, "8500 0000 0000 0000"),
		    VALE_GUARD_PASS },
		{ IPV6("0008", "3a", ZERO6, "8200 0000 0000 0000"),
		    VALE_GUARD_IP },
		{ IPV6("0008", "3a", ZERO6, "8000 0000 0000 0000"),
		    VALE_GUARD_IP },
		{ IPV6("0010", "2c", ZERO6, "1100 0001 00000000" SOME),
		    VALE_GUARD_IP },
		/* Answers to DHCP's clients are a server's. */
		{ IPV6("0008", "11", IP6, UDP("0222", "0223")),
		    VALE_GUARD_PASS },
		{ IPV6("0008", "11", LOCAL, UDP("0223", "0222")),
		    VALE_GUARD_IP },
		{ IPV6("0008", "11", IP6, UDP("1000", "0222")), VALE_GUARD_IP },
		{ IPV6("0008", "06", IP6, UDP("0223", "0222")),
		    VALE_GUARD_PASS },
		{ IPV6("0007", "11", IP6, SOME), VALE_GUARD_IP },
		{ IPV6("0010", "2c", IP6, "1100 0001 00000000"
		    UDP("0223", "0222")), VALE_GUARD_IP },
		{ IPV6("0010", "2c", IP6, "1100 0009 00000000"
		    UDP("0223", "0222")), VALE_GUARD_PASS },
	};

	guard("any", "2001:db8::5,2001:db8:100::/40");
	check_rows(rows, nitems(rows));
}

TEST(nd, "Neighbour messages name the sender's own addresses")
{
	static const struct row rows[] = {
		{ IPV6("0020", "3a", IP6, SOL(OPTION("01", OWN))),
		    VALE_GUARD_PASS },
		{ IPV6("0020", "3a", IP6, SOL(OPTION("01", OTHER))),
		    VALE_GUARD_IP },
		/* Duplicate address detection, RFC 4862: its own. */
		{ IPV6("0018", "3a", ZERO6, SOL("")), VALE_GUARD_IP },
		{ IPV6("0018", "3a", ZERO6, SOL_FOR(IP6, "")),
		    VALE_GUARD_PASS },
		{ IPV6("0018", "3a", ZERO6, SOL_FOR(LOCAL, "")),
		    VALE_GUARD_PASS },
		{ IPV6("0018", "3a", ZERO6, SOL_FOR(LOCALB, "")),
		    VALE_GUARD_IP },
		{ IPV6("0020", "00", ZERO6, "3a00 000000000000" SOL("")),
		    VALE_GUARD_IP },
		{ IPV6("0017", "3a", ZERO6, SOL_FOR(IP6, "")), VALE_GUARD_IP },
		{ IPV6("0018", "3a", ZERO6, ADV(IP6, "")), VALE_GUARD_IP },
		{ IPV6("0020", "3a", IP6, ADV(IP6, OPTION("02", OWN))),
		    VALE_GUARD_PASS },
		{ IPV6("0020", "3a", LOCAL, ADV(LOCAL, OPTION("02", OWN))),
		    VALE_GUARD_PASS },
		{ IPV6("0020", "3a", IP6, ADV(IP6B, OPTION("02", OWN))),
		    VALE_GUARD_IP },
		{ IPV6("0020", "3a", IP6, ADV(IP6, OPTION("02", OTHER))),
		    VALE_GUARD_IP },
		/* The second option. */
		{ IPV6("0028", "3a", IP6, ADV(IP6, OPTION("0e", OTHER)
		    OPTION("02", OTHER))), VALE_GUARD_IP },
		{ IPV6("0028", "3a", IP6, ADV(IP6, OPTION("0e", OTHER)
		    OPTION("02", OWN))), VALE_GUARD_PASS },
		/* An option of 16 bytes has no Ethernet address. */
		{ IPV6("0028", "3a", IP6, ADV(IP6, "02 02" OWN
		    "0000000000000000")), VALE_GUARD_IP },
		/* Options without length, or cut off. */
		{ IPV6("0020", "3a", IP6, ADV(IP6, "0e00" OWN)),
		    VALE_GUARD_IP },
		{ IPV6("0020", "3a", IP6, ADV(IP6, "0e02" OWN)),
		    VALE_GUARD_IP },
		{ IPV6("001f", "3a", IP6, ADV(IP6, "0201 0200000000")),
		    VALE_GUARD_IP },
		{ IPV6("001c", "3a", IP6, ADV(IP6, "0201 0000")),
		    VALE_GUARD_IP },
		{ IPV6("0018", "3a", IP6, "88 00 0000 60000000 20010db8"),
		    VALE_GUARD_IP },
		/* What is behind the packet is padding. */
		{ IPV6("0018", "3a", IP6, ADV(IP6, "0200")), VALE_GUARD_PASS },
		/* Routers' messages. */
		{ IPV6("0010", "3a", LOCAL, "86 00 0000 00000000"
		    "0000000000000000"), VALE_GUARD_IP },
		{ IPV6("0028", "3a", LOCAL, "89 00 0000 00000000" IP6 IP6B),
		    VALE_GUARD_IP },
		{ IPV6("0010", "3a", LOCAL, "85 00 0000 00000000"
		    OPTION("01", OWN)), VALE_GUARD_PASS },
		{ IPV6("0010", "3a", LOCAL, "85 00 0000 00000000"
		    OPTION("01", OTHER)), VALE_GUARD_IP },
		/* A byte behind the options. */
		{ IPV6("0021", "3a", IP6, SOL(OPTION("01", OWN)) "01"),
		    VALE_GUARD_IP },
		/* An echo is no neighbour message. */
		{ IPV6("0008", "3a", IP6, "80 00 0000 00000000"),
		    VALE_GUARD_PASS },
		{ IPV6("0000", "3a", IP6, ""), VALE_GUARD_IP },
		/* Behind other headers. */
		{ IPV6("0028", "00", IP6, "3a00 000000000000" ADV(IP6B,
		    OPTION("02", OWN))), VALE_GUARD_IP },
		{ IPV6("0028", "3c", IP6, "3a00 000000000000" ADV(IP6,
		    OPTION("02", OWN))), VALE_GUARD_PASS },
		{ IPV6("0038", "2b", IP6, "3c01 000000000000 0000000000000000"
		    "3a00 000000000000" ADV(IP6B, "")), VALE_GUARD_IP },
		{ IPV6("0038", "2b", IP6, "3c01 000000000000 0000000000000000"
		    "3a00 000000000000" ADV(IP6, "")), VALE_GUARD_PASS },
		{ IPV6("0008", "00", IP6, "3a01 000000000000"), VALE_GUARD_IP },
		{ IPV6("0008", "00", IP6, "0600 000000000000"),
		    VALE_GUARD_PASS },
		/* An authentication header counts words of 4 bytes. */
		{ IPV6("0030", "33", IP6, "3a04 0000" "00000001 00000001"
		    "000000000000000000000000" ADV(IP6B, "")), VALE_GUARD_IP },
		{ IPV6("0030", "33", IP6, "3a04 0000" "00000001 00000001"
		    "000000000000000000000000" ADV(IP6, "")), VALE_GUARD_PASS },
		{ IPV6("0004", "00", IP6, "3a00 0000"), VALE_GUARD_IP },
		/* In fragments: RFC 6980. */
		{ IPV6("0020", "2c", IP6, "3a00 0001 00000000" ADV(IP6, "")),
		    VALE_GUARD_IP },
		{ IPV6("0010", "2c", IP6, "3a00 0001 00000000"
		    "80 00 0000 00000000"), VALE_GUARD_PASS },
		{ IPV6("0010", "2c", IP6, "3a00 0008 00000000"
		    "88 00 0000 00000000"), VALE_GUARD_PASS },
		{ IPV6("0008", "2c", IP6, "3a00 0001 00000000"),
		    VALE_GUARD_IP },
		/* The type is in another fragment; what is here is padding. */
		{ IPV6("0008", "2c", IP6, "3a00 0001 00000000 80"),
		    VALE_GUARD_IP },
		{ IPV6("0009", "2c", IP6, "3a00 0001 00000000 80"),
		    VALE_GUARD_PASS },
		{ IPV6("000a", "2c", IP6, "3a00 0001 00000000 84ff"),
		    VALE_GUARD_PASS },
		{ IPV6("000a", "2c", IP6, "3a00 0001 00000000 8500"),
		    VALE_GUARD_IP },
		{ IPV6("000a", "2c", IP6, "3a00 0001 00000000 89ff"),
		    VALE_GUARD_IP },
		{ IPV6("000a", "2c", IP6, "3a00 0001 00000000 8a00"),
		    VALE_GUARD_PASS },
		{ IPV6("0010", "2c", IP6, "2c00 0001 00000000"
		    "3a00 0001 00000000"), VALE_GUARD_IP },
		{ IPV6("0010", "2c", IP6, "062c 0001 00000000"
		    UDP("0223", "0222")), VALE_GUARD_PASS },
		{ IPV6("0010", "2c", IP6, "3c00 0001 00000000"
		    "3a00 000000000000"), VALE_GUARD_IP },
		{ IPV6("0010", "2c", IP6, "3300 0001 00000000"
		    "3a00 000000000000"), VALE_GUARD_IP },
		{ IPV6("0010", "2c", IP6, "1100 0001 00000000" SOME),
		    VALE_GUARD_PASS },
	};

	guard("any", "2001:db8::5");
	check_rows(rows, nitems(rows));
}

TEST(tags, "The same behind tags")
{
	static const struct row rows[] = {
		{ DST OWN "8100 000a 0806 0001 0800 06 04 0001" OWN IP4B
		    "000000000000 c0000201", VALE_GUARD_IP },
		{ DST OWN "8100 000a 0806 0001 0800 06 04 0001" OWN IP4
		    "000000000000 c0000201", VALE_GUARD_PASS },
		{ DST OWN "88a8 000a 8100 000b 0800" "4500001c 00000000 4011"
		    "0000" IP4B "c0000201", VALE_GUARD_IP },
		{ DST OWN "88a8 000a 8100 000b 0800" "4500001c 00000000 4011"
		    "0000" IP4 "c0000201" SOME, VALE_GUARD_PASS },
		{ DST OWN "8100 000a 8100 000b 8100 000c 0800", VALE_GUARD_IP },
		{ DST OWN "88a8 000a 8100 000b 888e", VALE_GUARD_PASS },
		{ DST OWN "8100 000a 8100 000b 8100 000c 888e", VALE_GUARD_IP },
		{ DST OWN "8100 000a", VALE_GUARD_IP },
	};

	guard("any", "192.0.2.5");
	check_rows(rows, nitems(rows));
}

TEST(others, "Frames in which IP can be hidden do not pass")
{
	static const struct row rows[] = {
		/*
		 * 802.3 with LLC: ARP and IPv4 by RFC 1042, behind a tag; STP.
		 */
		{ DST OWN "0024 aaaa03 000000 0806 0001 0800 06 04 0001" OWN
		    IP4B "000000000000 c0000201", VALE_GUARD_IP },
		{ DST OWN "0024 aaaa03 000000 0806 0001 0800 06 04 0001" OWN
		    IP4 "000000000000 c0000201", VALE_GUARD_IP },
		{ DST OWN "8100 0000 0024 aaaa03 000000 0800 4500001c 00000000"
		    "4011 0000" IP4B "c0000201" SOME, VALE_GUARD_IP },
		{ DST OWN "0026 424203 0000 00 00", VALE_GUARD_IP },
		/* Tags of other types, MPLS, PPPoE, MACsec. */
		{ DST OWN "9100 0000 0800 4500001c 00000000 4011 0000" IP4
		    "c0000201" SOME, VALE_GUARD_IP },
		{ DST OWN "9200 0000 0806", VALE_GUARD_IP },
		{ DST OWN "8847 00000140 4500", VALE_GUARD_IP },
		{ DST OWN "8864 1100 0001 002a 0021 4500", VALE_GUARD_IP },
		{ DST OWN "88e5 0000 00000000 0800 4500", VALE_GUARD_IP },
		{ DST OWN "88cc", VALE_GUARD_IP },
		{ DST OWN "8100 000a 88cc", VALE_GUARD_IP },
		{ DST OWN "888e 0101 0000", VALE_GUARD_PASS },
	};

	guard("any", "192.0.2.5");
	check_rows(rows, nitems(rows));
}

TEST(bits, "A prefix has no bits behind its length, and all before it count")
{
	char text[64];
	struct vale_guard_prefix *gp = gd.gd_prefix;
	unsigned int bit, len;

	for (bit = 0; bit < 32; bit++)
		for (len = 0; len <= 32; len++) {
			snprintf(text, sizeof(text), "%u.%u.%u.%u/%u",
			    bit / 8 == 0 ? 128 >> bit % 8 : 0,
			    bit / 8 == 1 ? 128 >> bit % 8 : 0,
			    bit / 8 == 2 ? 128 >> bit % 8 : 0,
			    bit / 8 == 3 ? 128 >> bit % 8 : 0, len);
			ATF_CHECK_EQ_MSG(len > bit,
			    vale_guard_prefixes(&gd, text), "%s", text);
			if (len > bit)
				ATF_CHECK_EQ(96 + len, gp->gp_len);
		}
	for (bit = 0; bit < 128; bit++)
		for (len = 0; len <= 128; len++) {
			snprintf(text, sizeof(text), "%s%x%s/%u",
			    &"0:0:0:0:0:0:0:"[14 - bit / 16 * 2],
			    0x8000 >> bit % 16, bit / 16 == 7 ? "" : "::", len);
			ATF_CHECK_EQ_MSG(len > bit,
			    vale_guard_prefixes(&gd, text), "%s", text);
			if (len > bit)
				ATF_CHECK_EQ(len, gp->gp_len);
		}
}

TEST(lists, "Lists that are invalid change nothing")
{
	static const char *const sources[] = { "", "own", "02:00:00:00:00:01,",
	    ",02:00:00:00:00:01", "03:00:00:00:00:01", "00:00:00:00:00:00",
	    "02:00:00:00:00", "02:00:00:00:00:01:02", "02-00-00-00-00-01",
	    "02:00:00:00:00:0g", "any,02:00:00:00:00:01", "2:0:0:0:0:1",
	    "02:00:00:00:00:01 ",
	    /* As many as the longest word, and more. */
	    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
	    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	};
	static const char *const good[] = { "02:00:00:00:00:0A",
	    "00:00:00:00:00:09", "fe:dc:ba:98:76:54" };
	static const char *const prefixes[] = { "", "1", "192.0.2.256",
	    "192.0.2.0/33", "192.0.2.1/24", "2001:db8::1/64", "2001:db8::/129",
	    "192.0.2.0/", "192.0.2.0/024", "192.0.2.0/24,", ",192.0.2.1",
	    "192.0.2.0/2x", "any,192.0.2.1", "fe80::1%eth0", "192.0.2.1 ",
	    "0.0.0.0/2x", "0.0.0.0/2:", "0.0.0.0/2/", "0.0.0.0/x", "::/x",
	    "0.0.0.0/4294967320", "::/00", "0.0.0.0/-1" };
	char word[4096];
	struct vale_guard before;
	unsigned int i;

	guard("02:00:00:00:00:01", "192.0.2.5");
	before = gd;
	for (i = 0; i < nitems(sources); i++)
		ATF_CHECK_MSG(!vale_guard_sources(&gd, sources[i]), "\"%s\"",
		    sources[i]);
	for (i = 0; i < nitems(prefixes); i++)
		ATF_CHECK_MSG(!vale_guard_prefixes(&gd, prefixes[i]), "\"%s\"",
		    prefixes[i]);
	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	ATF_CHECK(!vale_guard_sources(&gd, word));
	ATF_CHECK(!vale_guard_prefixes(&gd, word));
	ATF_CHECK_EQ(0, memcmp(&gd, &before, sizeof(gd)));
	for (i = 0; i < nitems(good); i++)
		ATF_CHECK(vale_guard_sources(&gd, good[i]));
	ATF_CHECK_EQ(0, memcmp(gd.gd_addr[0], "\xfe\xdc\xba\x98\x76\x54", 6));
	ATF_CHECK(vale_guard_prefixes(&gd, "0.0.0.0/9,192.0.2.1/32,::/19,"
	    "::1/128"));
	ATF_CHECK_EQ(4, gd.gd_nprefixes);
}

TEST(longest, "A list has as many as there is space for, and no more")
{
	char addrs[18 * (VALE_GUARD_ADDRS + 1) + 1] = "";
	char ips[16 * (VALE_GUARD_PREFIXES + 1) + 1] = "";
	unsigned int i;

	memset(&gd, 0, sizeof(gd));
	for (i = 0; i <= VALE_GUARD_ADDRS; i++) {
		snprintf(addrs + strlen(addrs), 19, "%s02:00:00:00:00:%02x",
		    i > 0 ? "," : "", i);
		ATF_CHECK_EQ(i < VALE_GUARD_ADDRS, vale_guard_sources(&gd,
		    addrs));
	}
	ATF_CHECK_EQ(VALE_GUARD_ADDRS, gd.gd_naddrs);
	for (i = 0; i <= VALE_GUARD_PREFIXES; i++) {
		snprintf(ips + strlen(ips), 17, "%s192.0.2.%u", i > 0 ? "," :
		    "", i);
		ATF_CHECK_EQ(i < VALE_GUARD_PREFIXES, vale_guard_prefixes(&gd,
		    ips));
	}
	ATF_CHECK_EQ(VALE_GUARD_PREFIXES, gd.gd_nprefixes);
	ATF_REQUIRE(vale_guard_prefixes(&gd, "0.0.0.0/0,::/0"));
	ATF_CHECK_EQ(2, gd.gd_nprefixes);
}

TEST_PROGRAM
