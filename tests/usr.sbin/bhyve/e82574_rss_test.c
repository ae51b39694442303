/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * RSS: which of the two receive queues of the 82574L a frame is for, and its
 * hash.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <netinet/in.h>

#include <arpa/inet.h>

#include <string.h>
#include <unistd.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "e82574_two.h"

/*
 * Receive a frame, and check which queue it goes to, with which type and hash;
 * the descriptors are posted again.
 */
static void
check_rss(struct host *h, const uint8_t *frame, size_t len, int nfrags,
    unsigned int type, uint32_t hash, unsigned int line)
{
	const unsigned int queue = type != 0 && (hash & 1) != 0;
	const uint32_t at = host_rd(h, queue == 0 ? E82545_RDH : RDH1);
	const uint32_t other = host_rd(h, queue == 0 ? RDH1 : E82545_RDH);
	struct e82574_rxd d;

	host_inject(h, frame, len, nfrags);
	host_run(h);
	d = two_desc(h, queue, at);
	ATF_CHECK_EQ_MSG(RXD_DONE, d.status & RXD_DONE, "%u", line);
	ATF_CHECK_EQ_MSG((queue << 8 | type), d.mrq, "%u: %#x", line, d.mrq);
	ATF_CHECK_EQ_MSG(hash, ((uint32_t)d.csum << 16 | d.ip_id),
	    "%u: %#x", line, (uint32_t)d.csum << 16 | d.ip_id);
	ATF_CHECK_EQ_MSG(len, d.length, "%u", line);
	ATF_CHECK_EQ_MSG(0, memcmp(frame, queue == 0 ?
	    host_mem(h, h->rxbuf + at * 2048, len) :
	    host_mem(h, two_buf1 + at * 2048, len), len), "%u", line);
	/* The other queue has not moved. */
	ATF_CHECK_EQ_MSG(other, host_rd(h, queue == 0 ? RDH1 : E82545_RDH),
	    "%u", line);
	/* Post it again: all but one are. */
	host_wr(h, queue == 0 ? E82545_RDT : RDT1, at);
	if (queue == 0) {
		memset(host_rxd(h, at), 0, 16);
		host_rxd(h, at)->addr = htole64(h->rxbuf + at * 2048);
	} else {
		memset(host_mem(h, two_ring1 + at * 16, 16), 0, 16);
		le64enc(host_mem(h, two_ring1 + at * 16, 8),
		    two_buf1 + at * 2048);
	}
}

#define	CHECK_RSS(h, frame, len, type, hash)				\
	check_rss(h, frame, len, 1, type, hash, __LINE__)

/* Two addresses behind which there is no memory; before them is a page. */
static uint8_t *edges[2];

static void
map_edges(void)
{
	const size_t page = getpagesize();
	unsigned int i;
	uint8_t *p;

	for (i = 0; i < nitems(edges); i++) {
		p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANON, -1, 0);
		ATF_REQUIRE(p != MAP_FAILED);
		edges[i] = p + page;
		ATF_REQUIRE_EQ(0, mprotect(edges[i], page, PROT_NONE));
	}
}

/*
 * Check the type and hash of a frame of which `bytes' has more than `len':
 * those do not count.  Nor does anything behind it, or where it is cut into
 * fragments.  The adapter has no threads, and no locks are needed.
 */
static void
check_bytes(struct host *h, const uint8_t *bytes, size_t len,
    unsigned int type, uint32_t hash, unsigned int line)
{
	const uint64_t expected = type == 0 ? 0 :
	    (uint64_t)hash << 32 | (hash & 1) << 8 | type;
	const size_t cuts[] = { 0, 20, len - 1, len };
	struct iovec iov[2] = { { __DECONST(void *, bytes), len } };
	struct frame f = { .f_iov = iov };
	struct e82574_rss rss;
	unsigned int i, queue;
	uint64_t lower;

	e82574_rss_begin(h->dev, &rss);
	frame_set(&f, 1, len);
	queue = e82574_rss_queue(h->dev, &rss, &f, &lower);
	ATF_CHECK_EQ_MSG(expected, le64toh(lower), "%u: %zu: %#jx", line, len,
	    (uintmax_t)le64toh(lower));
	ATF_CHECK_EQ_MSG(expected >> 8 & 1, queue, "%u: %zu", line, len);
	for (i = 0; i < nitems(cuts); i++) {
		iov[0].iov_len = MIN(cuts[i], len);
		iov[0].iov_base = edges[0] - iov[0].iov_len;
		iov[1].iov_len = len - iov[0].iov_len;
		iov[1].iov_base = edges[1] - iov[1].iov_len;
		memcpy(iov[0].iov_base, bytes, iov[0].iov_len);
		memcpy(iov[1].iov_base, bytes + iov[0].iov_len,
		    iov[1].iov_len);
		frame_set(&f, 2, len);
		queue = e82574_rss_queue(h->dev, &rss, &f, &lower);
		ATF_CHECK_EQ_MSG(expected, le64toh(lower), "%u: %zu, %zu",
		    line, len, iov[0].iov_len);
		ATF_CHECK_EQ_MSG(expected >> 8 & 1, queue, "%u: %zu, %zu",
		    line, len, iov[0].iov_len);
	}
}

HOST_TEST(hashes, two_up(64), "Microsoft's verification suite: addresses, "
    "and ports of TCP; in one fragment and in several, with a tag")
{
	uint8_t frame[104], tagged[104];
	const struct vector *v;
	unsigned int i;
	size_t len;

	for (i = 0; i < nitems(two_vectors); i++) {
		const bool v6 = i >= NVECTORS4;

		v = &two_vectors[i];
		len = two_vector_frame(v, v6, PROTO_TCP, frame);
		check_rss(h, frame, len, 1, v6 ? 3 : 1, v->hash_tcp, i);
		check_rss(h, frame, len, 3, v6 ? 3 : 1, v->hash_tcp, i);
		memcpy(tagged, frame, 12);
		be32enc(tagged + 12, 0x81000064);
		memcpy(tagged + 16, frame + 12, len - 12);
		check_rss(h, tagged, len + 4, 1, v6 ? 3 : 1, v->hash_tcp, i);
		len = two_vector_frame(v, v6, PROTO_UDP, frame);
		check_rss(h, frame, len, 1, v6 ? 4 : 2, v->hash, i);
		/* Each type alone. */
		host_wr(h, MRQC, 1 | (v6 ? IP6 : IP4));
		check_rss(h, frame, len, 1, v6 ? 5 : 2, v->hash, i);
		len = two_vector_frame(v, v6, PROTO_TCP, frame);
		check_rss(h, frame, len, 1, v6 ? 5 : 2, v->hash, i);
		host_wr(h, MRQC, 1 | (v6 ? IP6EX : IP4));
		check_rss(h, frame, len, 1, v6 ? 4 : 2, v->hash, i);
		host_wr(h, MRQC, 1 | (v6 ? TCPIP6 : TCPIP4));
		check_rss(h, frame, len, 1, v6 ? 3 : 1, v->hash_tcp, i);
		two_vector_frame(v, v6, PROTO_UDP, frame);
		check_rss(h, frame, len, 1, 0, 0, i);
		/* The other version's. */
		host_wr(h, MRQC, 1 | (v6 ? TCPIP4 | IP4 :
		    TCPIP6 | IP6EX | IP6));
		check_rss(h, frame, len, 1, 0, 0, i);
		host_wr(h, MRQC, RSS_ALL);
	}
}

HOST_TEST(none, two_up(64), "What is no packet of IP, or is not as it says, "
    "has no hash, and goes to queue 0")
{
	static const struct vector *const v = &two_vectors[0];
	static const struct vector *const v6 = &two_vectors[5];
	uint8_t frame[100];
	size_t len;

	host_make_frame(frame, 100, host_mac, 1);
	CHECK_RSS(h, frame, 100, 0, 0);
	memset(frame, 0xff, 6);			/* broadcast */
	be16enc(frame + 12, 0x0806);
	CHECK_RSS(h, frame, 60, 0, 0);
	/* A broadcast of IP has one. */
	len = two_vector_frame(v, false, PROTO_UDP, frame);
	memset(frame, 0xff, 6);
	CHECK_RSS(h, frame, len, 2, v->hash);
	/* Other versions, and headers that are too short or too long. */
	len = two_vector_frame(v, false, PROTO_TCP, frame);
	frame[14] = 0x65;
	CHECK_RSS(h, frame, len, 0, 0);
	frame[14] = 0x44;
	CHECK_RSS(h, frame, len, 0, 0);
	frame[14] = 0x4f;
	CHECK_RSS(h, frame, 60, 0, 0);
	/* Options before TCP; and TCP that is not complete. */
	frame[14] = 0x46;
	memmove(frame + 38, frame + 34, 20);
	memset(frame + 34, 1, 4);
	CHECK_RSS(h, frame, 60, 1, v->hash_tcp);
	frame[14] = 0x4a;
	memmove(frame + 54, frame + 38, 20);
	CHECK_RSS(h, frame, 73, 2, v->hash);
	CHECK_RSS(h, frame, 74, 1, v->hash_tcp);
	/* Fragments: the first, and others. */
	len = two_vector_frame(v, false, PROTO_TCP, frame);
	be16enc(frame + 20, 0x2000);
	CHECK_RSS(h, frame, len, 2, v->hash);
	be16enc(frame + 20, 0x0001);
	CHECK_RSS(h, frame, len, 2, v->hash);
	be16enc(frame + 20, 0xc000);		/* DF, and a reserved bit */
	CHECK_RSS(h, frame, len, 1, v->hash_tcp);
	/* IPv6 of 39 bytes, with a tag that makes it so; and whole. */
	len = two_vector_frame(v6, true, PROTO_TCP, frame);
	frame[14] = 0x40;
	CHECK_RSS(h, frame, len, 0, 0);
	frame[14] = 0x60;
	CHECK_RSS(h, frame, 73, 4, v6->hash);
	CHECK_RSS(h, frame, 74, 3, v6->hash_tcp);
	memmove(frame + 20, frame + 12, 70);
	be32enc(frame + 12, 0x81000064);
	be32enc(frame + 16, 0x81000064);
	CHECK_RSS(h, frame, 80, 0, 0);
	/* Shorter than headers: sanitizers see what is read. */
	for (len = 14; len <= 20; len++) {
		const uint32_t at = host_rd(h, E82545_RDH);

		be16enc(frame + 12, len % 2 == 0 ? 0x8100 : 0x0800);
		rx_receive(h, frame, len);
		ATF_CHECK_EQ(60, two_desc(h, 0, at).length);
		ATF_CHECK_EQ(0, two_desc(h, 0, at).mrq);
		ATF_CHECK_EQ(0, two_desc(h, 0, at).csum);
	}
	/* It is not as one of hash 0. */
	host_wr(h, RETA(0), 0x80808080);
	host_make_frame(frame, 100, host_mac, 1);
	CHECK_RSS(h, frame, 100, 0, 0);
	two_set_reta(h, 1);
	/* Another EtherType of tags. */
	host_wr(h, E82545_VET, 0x88a8);
	len = two_vector_frame(v, false, PROTO_TCP, frame);
	memmove(frame + 16, frame + 12, len);
	be32enc(frame + 12, 0x81000064);
	CHECK_RSS(h, frame, len + 4, 0, 0);
	be16enc(frame + 12, 0x88a8);
	CHECK_RSS(h, frame, len + 4, 1, v->hash_tcp);
}

HOST_TEST(lengths, two_up(64), "Frames that end in a header, with one, and "
    "behind it")
{
	static const struct {
		bool		v6, tag;
		size_t		options;	/* bytes */
	} t[] = {
		{ false, false, 0 }, { false, true, 0 }, { false, false, 4 },
		{ false, true, 40 }, { true, false, 0 }, { true, true, 0 },
	};
	const struct vector *v;
	uint8_t frame[200];
	unsigned int i;
	size_t l4, len;

	map_edges();
	for (i = 0; i < nitems(t); i++) {
		const bool v6 = t[i].v6;

		v = &two_vectors[v6 ? 5 : 0];
		two_vector_frame(v, v6, PROTO_TCP, frame);
		l4 = v6 ? 54 : 34;
		/* Of TCP's header only the ports count. */
		memset(frame + l4 + 4, 0xff, 20);
		memmove(frame + l4 + t[i].options, frame + l4, 24);
		memset(frame + l4, 1, t[i].options);
		frame[14] += t[i].options / 4;
		l4 += t[i].options;
		if (t[i].tag) {
			memmove(frame + 16, frame + 12, l4 + 24 - 12);
			be16enc(frame + 12, 0x8100);
			l4 += 4;
		}
		for (len = 14; len <= l4 + 21; len++)
			check_bytes(h, frame, len, len < l4 ? 0 : len <
			    l4 + 20 ? (v6 ? 4 : 2) : (v6 ? 3 : 1),
			    len < l4 + 20 ? v->hash : v->hash_tcp, i);
	}
}

/*
 * Extension headers, between IPv6 and what follows.
 */
struct ext {
	uint8_t		proto;
	uint8_t		bytes[264];
	size_t		len;
};

/* Make a packet of TCP with headers.  Returns its length. */
static size_t
ext_frame(const struct vector *v, const struct ext *e, size_t n,
    uint8_t *frame)
{
	uint8_t tcp[20], *next = frame + 20;
	size_t i, pos = 54;

	two_vector_frame(v, true, PROTO_TCP, frame);
	memcpy(tcp, frame + 54, sizeof(tcp));
	for (i = 0; i < n; i++) {
		*next = e[i].proto;
		memcpy(frame + pos, e[i].bytes, e[i].len);
		next = frame + pos;
		pos += e[i].len;
	}
	*next = PROTO_TCP;
	memcpy(frame + pos, tcp, sizeof(tcp));
	return (pos + sizeof(tcp));
}

#define	HOPOPTS	{ 0, { 0, 0, 1, 4 }, 8 }	/* PadN */
#define	DSTOPTS	{ 60, { 0, 0, 1, 4 }, 8 }
#define	FRAGMENT { 44, { 0, 0, 0, 1 }, 8 }
/* The addresses of two_vectors[6], in a packet with those of two_vectors[5]. */
#define	SRC15	0x3f, 0xfe, 0x05, 0x01, 0x00, 0x08, 0x00, 0x00, 0x02,	\
	0x60, 0x97, 0xff, 0xfe, 0x40, 0xef	/* and 0xab */
#define	DST16	0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1
#define	HOME	{ 60, { 0, 2, 0, 0, 201, 16, SRC15, 0xab, 0, 0 }, 24 }
#define	ROUTING	{ 43, { 0, 2, 2, 1, 0, 0, 0, 0, DST16 }, 24 }
/* First; last, behind PadN with bytes that mean nothing; behind one Pad1. */
#define	HOME_1ST { 60, { 0, 2, 201, 16, SRC15, 0xab, 1, 2 }, 24 }
#define	HOME_LAST { 60, { 0, 2, 1, 2, 0, 9, 201, 16, SRC15, 0xab }, 24 }
#define	HOME_ODD { 60, { 0, 2, 0, 201, 16, SRC15, 0xab, 1, 1 }, 24 }
/* Ones that are not: another type, no segment left, a length. */
#define	ROUTING0 { 43, { 0, 2, 0, 1, 0, 0, 0, 0, 0xff, 0x02 }, 24 }
#define	ROUTING2 { 43, { 0, 2, 2, 0, 0, 0, 0, 0, 0xff, 0x02 }, 24 }
#define	HOME_LEN { 60, { 0, 2, 201, 15, 0x3f, 0xfe }, 24 }
#define	HOME_CUT { 60, { 0, 2, 1, 4, 0, 0, 0, 0, 201, 16, 0x3f, 0xfe }, 24 }
#define	HOME_END { 60, { 0, 0, 1, 3, 0, 0, 0, 201 }, 8 }
/* One byte too short; another option; options that are for each hop. */
#define	HOME_23	{ 60, { 0, 2, 1, 3, 0, 0, 0, 201, 16, SRC15 }, 24 }
#define	HOME_PAD { 60, { 0, 2, 1, 16, SRC15, 0xab, 1, 2 }, 24 }
#define	HOME_HOP { 0, { 0, 2, 201, 16, SRC15, 0xab, 1, 2 }, 24 }
/* Shorter and longer than one address; options that look like one. */
#define	ROUTING_8 { 43, { 0, 0, 2, 1 }, 8 }
#define	ROUTING_32 { 43, { 0, 3, 2, 1, 0, 0, 0, 0, DST16 }, 32 }
#define	HOP_2	{ 0, { 0, 2, 2, 1, 0, 0, 0, 0, DST16 }, 24 }
#define	DST_2	{ 60, { 0, 2, 2, 1, 0, 0, 0, 0, DST16 }, 24 }
#define	AUTH	{ 51, { 0, 1 }, 12 }
#define	LONG	{ 0, { 0, 31, 1, 252 }, 256 }

/* The hash of `src' and `dst', and of ports if `v' is not NULL. */
static uint32_t
hash_of(const char *src, const char *dst, const struct vector *v)
{
	uint8_t input[36];

	ATF_REQUIRE_EQ(1, inet_pton(AF_INET6, src, input));
	ATF_REQUIRE_EQ(1, inet_pton(AF_INET6, dst, input + 16));
	if (v != NULL) {
		be16enc(input + 32, v->sport);
		be16enc(input + 34, v->dport);
	}
	return (e82574_rss_hash(two_key, input, v == NULL ? 32 : 36));
}

HOST_TEST(extension, two_up(64), "Extension headers: addresses in them count, "
    "unless RFCTL says otherwise")
{
	static const struct ext pad[] = { HOPOPTS, DSTOPTS },
	    home[] = { HOME }, routing[] = { HOPOPTS, ROUTING },
	    both[] = { ROUTING, HOME },
	    odd[] = { ROUTING0, ROUTING2, HOME_LEN, HOME_CUT, HOME_END },
	    fragment[] = { HOME, FRAGMENT }, only[] = { FRAGMENT },
	    large[] = { LONG };
	const struct vector *const v = &two_vectors[5];
	const struct vector *const w = &two_vectors[6];
	const struct {
		const struct ext *e;
		size_t		n;
		bool		home;	/* addresses in them */
		const char	*src, *dst;
		bool		tcp;	/* can be seen */
	} t[] = {
		{ pad, nitems(pad), false, v->src, v->dst, true },
		{ home, nitems(home), true, w->src, v->dst, true },
		{ routing, nitems(routing), true, v->src, w->dst, true },
		{ both, nitems(both), true, w->src, w->dst, true },
		{ odd, nitems(odd), false, v->src, v->dst, true },
		{ fragment, nitems(fragment), true, w->src, v->dst, false },
		{ only, nitems(only), false, v->src, v->dst, false },
		{ large, nitems(large), false, v->src, v->dst, false },
	};
	uint8_t frame[600];
	unsigned int i;
	size_t len;

	/* The two_vectors' hashes, by this function. */
	ATF_CHECK_EQ(v->hash, hash_of(v->src, v->dst, NULL));
	ATF_CHECK_EQ(v->hash_tcp, hash_of(v->src, v->dst, v));
	for (i = 0; i < nitems(t); i++) {
		const uint32_t ex = hash_of(t[i].src, t[i].dst, NULL);
		const uint32_t tcp = hash_of(t[i].src, t[i].dst, v);

		len = ext_frame(v, t[i].e, t[i].n, frame);
		check_rss(h, frame, len, 1, t[i].tcp ? 3 : 4, t[i].tcp ? tcp :
		    ex, i);
		check_rss(h, frame, len, 4, t[i].tcp ? 3 : 4, t[i].tcp ? tcp :
		    ex, i);
		host_wr(h, MRQC, 1 | IP6EX);
		check_rss(h, frame, len, 1, 4, ex, i);
		host_wr(h, MRQC, 1 | TCPIP6 | IP6);
		check_rss(h, frame, len, 1, t[i].tcp ? 3 : 5, t[i].tcp ? tcp :
		    v->hash, i);
		host_wr(h, MRQC, RSS_ALL);
		/* Not with any header; not with one that has an address. */
		host_wr(h, RFCTL, EXTEN | IP6_EX_DIS);
		check_rss(h, frame, len, 1, 5, v->hash, i);
		host_wr(h, RFCTL, EXTEN | NEW_IP6_EX_DIS);
		if (t[i].home)
			check_rss(h, frame, len, 1, 5, v->hash, i);
		else
			check_rss(h, frame, len, 1, t[i].tcp ? 3 : 4,
			    t[i].tcp ? tcp : ex, i);
		host_wr(h, RFCTL, EXTEN);
	}
	/* Without headers RFCTL says nothing. */
	len = two_vector_frame(v, true, PROTO_TCP, frame);
	host_wr(h, RFCTL, EXTEN | IP6_EX_DIS | NEW_IP6_EX_DIS);
	CHECK_RSS(h, frame, len, 3, v->hash_tcp);
	/* A header that is longer than the frame. */
	host_wr(h, RFCTL, EXTEN);
	len = ext_frame(v, pad, 1, frame);
	frame[55] = 3;
	CHECK_RSS(h, frame, len, 4, v->hash);
	CHECK_RSS(h, frame, 61, 4, v->hash);
}

HOST_TEST(headers, two_up(64), "Frames that end in an extension header, with "
    "one, and behind it; addresses at each place, and what looks like them")
{
	enum address { NONE, SRC, DST };
	static const struct {
		struct ext	e[2];
		enum address	address[2];	/* that they have */
	} t[] = {
		{ { HOME_1ST, HOME_1ST }, { SRC, SRC } },
		{ { HOME_LAST, HOME_LAST }, { SRC, SRC } },
		{ { HOME_ODD, ROUTING }, { SRC, DST } },
		{ { ROUTING, HOME }, { DST, SRC } },
		{ { HOME_23, HOME_23 }, { NONE, NONE } },
		{ { HOME_PAD, HOME_PAD }, { NONE, NONE } },
		{ { HOME_HOP, HOME_HOP }, { NONE, NONE } },
		{ { ROUTING_8, ROUTING_8 }, { NONE, NONE } },
		{ { ROUTING_32, ROUTING_32 }, { NONE, NONE } },
		{ { HOP_2, HOP_2 }, { NONE, NONE } },
		{ { DST_2, DST_2 }, { NONE, NONE } },
		{ { HOME_END, DSTOPTS }, { NONE, NONE } },
		{ { HOME_CUT, HOME_LEN }, { NONE, NONE } },
		{ { ROUTING0, ROUTING2 }, { NONE, NONE } },
		{ { HOME, FRAGMENT }, { SRC, NONE } },
		{ { FRAGMENT, HOME }, { NONE, NONE } },
		{ { ROUTING, AUTH }, { DST, NONE } },
		{ { HOPOPTS, LONG }, { NONE, NONE } },
		{ { LONG, HOME }, { NONE, NONE } },
	};
	const struct vector *const v = &two_vectors[5];
	const struct vector *const w = &two_vectors[6];
	const char *src, *dst;
	uint8_t frame[600];
	unsigned int i, n;
	size_t end, len, pos;
	bool home, tcp;

	map_edges();
	for (i = 0; i < nitems(t); i++) {
		end = ext_frame(v, t[i].e, 2, frame);
		memset(frame + end - 16, 0xff, 40);
		for (len = 54; len <= end + 1; len++) {
			src = v->src;
			dst = v->dst;
			pos = 54;
			for (n = 0; n < 2; n++) {
				const struct ext *e = &t[i].e[n];

				if (e->proto == 44 || e->proto == 51 ||
				    pos + e->len > MIN(len, 256))
					break;
				if (t[i].address[n] == SRC)
					src = w->src;
				if (t[i].address[n] == DST)
					dst = w->dst;
				pos += e->len;
			}
			tcp = n == 2 && pos + 20 <= MIN(len, 256);
			home = src != v->src || dst != v->dst;
			check_bytes(h, frame, len, tcp ? 3 : 4,
			    hash_of(src, dst, tcp ? v : NULL), i);
			/* Not with an address; and not with a header. */
			host_wr(h, RFCTL, EXTEN | NEW_IP6_EX_DIS);
			check_bytes(h, frame, len, home ? 5 : tcp ? 3 : 4,
			    home ? v->hash : tcp ? v->hash_tcp : v->hash, i);
			host_wr(h, RFCTL, EXTEN | IP6_EX_DIS);
			check_bytes(h, frame, len, 5, v->hash, i);
			host_wr(h, RFCTL, EXTEN);
		}
	}
}

HOST_TEST(off, two_up(64), "Without MRQC, with another value of its field, "
    "without PCSD or EXTEN there is one queue and no hash")
{
	static const struct vector *const v = &two_vectors[1];	/* odd */
	uint8_t frame[100];
	struct e82574_rxd d;
	unsigned int i;
	size_t len;

	ATF_REQUIRE_EQ(0, v->hash_tcp & 1);
	two_set_reta(h, 0x7f & v->hash_tcp);
	len = two_vector_frame(v, false, PROTO_TCP, frame);
	for (i = 0; i < 5; i++) {
		host_wr(h, MRQC, i < 3 ? (RSS_ALL & ~3U) | (i == 0 ? 0 :
		    i + 1) : RSS_ALL);
		if (i == 3)
			host_clear(h, E82545_RXCSUM, RXCSUM_PCSD);
		if (i == 4) {
			host_set(h, E82545_RXCSUM, RXCSUM_PCSD);
			host_wr(h, RFCTL, 0);
		}
		rx_receive(h, frame, len);
		ATF_CHECK_EQ(i + 1, host_rd(h, E82545_RDH));
		ATF_CHECK_EQ(0, host_rd(h, RDH1));
		if (i == 4)
			continue;
		d = two_desc(h, 0, i);
		ATF_CHECK_EQ(0, d.mrq | d.ip_id);
		ATF_CHECK_EQ(i == 3 ? packet_sum(frame, len) : 0, d.csum);
	}
	/* On again. */
	host_wr(h, RFCTL, EXTEN);
	rx_receive(h, frame, len);
	ATF_CHECK_EQ(1, host_rd(h, RDH1));
	d = two_desc(h, 1, 0);
	ATF_CHECK_EQ(0x101, d.mrq);
}

HOST_TEST(table, two_up(64), "An entry of RETA is for seven bits of the hash, "
    "and bit 7 of it counts; the key is RSSRK")
{
	uint8_t frame[100];
	struct {
		struct e82574_rss rss;
		uint8_t		behind[8];
	} r;
	uint32_t hash, heads[2] = { 0, 0 };
	unsigned int entry, i, q;
	size_t len;

	for (i = 0; i < NVECTORS4; i++) {
		hash = two_vectors[i].hash_tcp;
		entry = hash & 0x7f;
		len = two_vector_frame(&two_vectors[i], false, PROTO_TCP,
		    frame);
		/* All others are for the other queue; no other bit counts. */
		for (q = 0; q < 2; q++) {
			unsigned int j;

			for (j = 0; j < 32; j++)
				host_wr(h, RETA(j), q == 0 ? 0xffffffff :
				    0x7f7f7f7f);
			host_wr(h, RETA(entry / 4), host_rd(h,
			    RETA(entry / 4)) ^ 0x80U << entry % 4 * 8);
			rx_receive(h, frame, len);
			heads[q]++;
			ATF_CHECK_EQ(heads[0], host_rd(h, E82545_RDH));
			ATF_CHECK_EQ(heads[1], host_rd(h, RDH1));
			ATF_CHECK_EQ(q << 8 | 1, two_desc(h, q, heads[q] -
			    1).mrq);
		}
	}
	/* All of the key is read, and no more. */
	memset(&r, 0xff, sizeof(r));
	e82574_rss_begin(h->dev, &r.rss);
	ATF_CHECK_EQ(0, memcmp(r.rss.er_key, two_key, sizeof(two_key)));
	for (i = 0; i < nitems(r.behind); i++)
		ATF_CHECK_EQ(0xff, r.behind[i]);
	/* Another key: the last bytes count for IPv6 only. */
	two_set_reta(h, 0);
	host_wr(h, RSSRK(9), 0);
	rx_receive(h, frame, len);
	ATF_CHECK_EQ(two_vectors[4].hash_tcp >> 16, two_desc(h, 0, 5).csum);
	len = two_vector_frame(&two_vectors[5], true, PROTO_TCP, frame);
	rx_receive(h, frame, len);
	ATF_CHECK(two_vectors[5].hash_tcp >> 16 != two_desc(h, 0, 6).csum);
	ATF_CHECK_EQ(3, two_desc(h, 0, 6).mrq);
	host_wr(h, RSSRK(0), 0);
	two_vector_frame(&two_vectors[0], false, PROTO_TCP, frame);
	rx_receive(h, frame, len);
	ATF_CHECK(two_vectors[0].hash_tcp >> 16 != two_desc(h, 0, 7).csum);
}

TEST_PROGRAM
