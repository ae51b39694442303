/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Faults that other e1000 emulations had, and e1000e ones.  e1000_faults.c has
 * the triggers, with what must come of each, of an 82545EM and of an 82574L;
 * cases have the names of advisories.  Besides:
 *
 *  - Guest memory that is no ring and no receive buffer does not change, nor
 *    does memory before and behind the guest's.
 *  - Every call does a bounded amount of work: memory mapped, frames sent.
 *  - Transmit triggers have the same outcome with frames looped back, by the
 *    MAC and by the PHY.
 *  - After a reset, the adapter sends and receives.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "e1000_faults.h"
#include "e82545_check.h"

/*
 * Calls of eo_map() in a batch: docs/security.md, and the ring.  Receive
 * buffers have at most five pages, and are also asked for as a whole.
 */
#define	MAPS_MAX	((1024 + 256 + 2) * 6)
#define	TX_CALLS_MAX	(E82545_TSO_FRAMES / E82545_TX_FRAMES + 16)

#define	CANARY		0x10000		/* bytes on each side of memory */
#define	CANARY_BYTE	0xa5

enum mode { NETWORK, MAC_LOOPBACK, PHY_LOOPBACK, NMODES };

struct bed {
	struct host	*h;
	uint8_t		*all;		/* memory with canaries */
	uint8_t		*before;	/* memory when the trigger began */
	struct e82545_ops ops;
	unsigned int	 maps;		/* in a call */
	uint32_t	 tail;
	uint64_t	 counters[E82545_NCOUNTERS]; /* when it began */
};

static struct bed *bed;			/* of the variant that runs */

static void *
bed_map(void *arg, uint64_t gpa, size_t len, unsigned int access)
{
	bed->maps++;
	return (host_ops.eo_map(arg, gpa, len, access));
}

/* A call into the model that may do work. */
#define	BOUNDED(call)							\
	do {								\
		unsigned int sent = host_sent(bed->h);			\
									\
		bed->maps = 0;						\
		call;							\
		ATF_CHECK(bed->maps <= MAPS_MAX);			\
		ATF_CHECK(host_sent(bed->h) - sent <= E82545_TX_FRAMES); \
	} while (0)

static void
run(void)
{
	struct host *h = bed->h;
	enum e82545_rx_state rx;
	enum e82545_tx_state tx;
	unsigned int calls;

	while (h->kicked || h->ready) {
		calls = 0;
		tx = E82545_TX_IDLE;
		rx = E82545_RX_IDLE;
		if (h->kicked) {
			h->kicked = false;
			do {
				BOUNDED(tx = e82545_tx(h->dev));
				ATF_REQUIRE(++calls < TX_CALLS_MAX);
			} while (tx != E82545_TX_IDLE);
		}
		if (h->ready) {
			h->ready = false;
			do {
				BOUNDED(rx = e82545_rx(h->dev));
				ATF_REQUIRE(++calls < TX_CALLS_MAX);
			} while (rx == E82545_RX_MORE);
		}
	}
}

/* The guest's memory and rings, as e1000_faults.h says. */
static void
lay_out(struct host *h)
{
	struct packet p = { .flags = PACKET_ACK };
	uint8_t *data;
	unsigned int i;

	data = host_mem(h, FAULT_DATA, FAULT_RXBUF - FAULT_DATA);
	for (i = 0; i < FAULT_RXBUF - FAULT_DATA; i++)
		data[i] = 1 + i % 255;
	packet_build(&p, data);
	for (i = 0; i < FAULT_NRXD; i++)
		host_rxd(h, i)->addr = FAULT_RXBUF + i * FAULT_BUFSIZE;
	host_wr(h, E82545_CTRL, E82545_CTRL_SLU);
	host_wr(h, E82545_TDBAL, FAULT_TXRING);
	host_wr(h, E82545_TDLEN, FAULT_NTXD * sizeof(union e82545_txd));
	host_wr(h, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	host_wr(h, E82545_RDBAL, FAULT_RXRING);
	host_wr(h, E82545_RDLEN, FAULT_NRXD * sizeof(struct e82545_rxd));
	host_wr(h, E82545_RDT, FAULT_NRXD - 1);
	/* After a reset an 82574L verifies checksums. */
	host_wr(h, E82545_RXCSUM, 0);
	host_wr(h, E82545_RCTL, FAULT_RCTL);
	host_wr(h, E82545_IMS, E82545_ICR_ALL);
}

static void
bed_up(enum e82545_kind kind)
{
	struct e82545_config config = { .ec_name = "fault", .ec_kind = kind };
	struct host *h;

	bed = calloc(1, sizeof(*bed));
	ATF_REQUIRE(bed != NULL);
	bed->h = h = host_create(FAULT_RAM);
	/* Memory with canaries, and an adapter whose calls are counted. */
	bed->all = malloc(FAULT_RAM + 2 * CANARY);
	bed->before = malloc(FAULT_RAM);
	ATF_REQUIRE(bed->all != NULL && bed->before != NULL);
	memset(bed->all, CANARY_BYTE, FAULT_RAM + 2 * CANARY);
	memset(bed->all + CANARY, 0, FAULT_RAM);
	munmap(h->ram, h->ram_size);
	h->ram = bed->all + CANARY;
	e82545_destroy(h->dev);
	bed->ops = host_ops;
	bed->ops.eo_map = bed_map;
	memcpy(config.ec_mac, host_mac, sizeof(host_mac));
	h->dev = e82545_create(&config, &bed->ops, h, &h->port);
	ATF_REQUIRE(h->dev != NULL);
	e82545_bus_master(h->dev, true);
	/* The driver of host_rx_take(). */
	h->rxring = FAULT_RXRING;
	h->nrxd = FAULT_NRXD;
	h->rxbufsize = FAULT_BUFSIZE;
	h->rxtail = FAULT_NRXD - 1;
	lay_out(h);
	memcpy(bed->before, h->ram, FAULT_RAM);
	e82545_counters(h->dev, bed->counters);
}

/* Memory changes only where the guest gave it to the adapter. */
static void
check_memory(const char *id)
{
	const uint8_t *ram = bed->h->ram;
	size_t i;

	for (i = 0; i < FAULT_RAM; i++) {
		if (i == FAULT_TXRING)
			i = FAULT_DATA;
		if (i == FAULT_RXBUF)
			i += FAULT_NRXD * FAULT_BUFSIZE;
		ATF_REQUIRE_EQ_MSG(bed->before[i], ram[i], "%s: gpa %#zx", id,
		    i);
	}
	for (i = 0; i < CANARY; i++)
		ATF_REQUIRE_MSG(bed->all[i] == CANARY_BYTE &&
		    ram[FAULT_RAM + i] == CANARY_BYTE, "%s: outside memory",
		    id);
}

static void
bed_down(const char *id)
{
	struct host *h = bed->h;

	check_memory(id);
	e82545_reset(h->dev);
	run();
	h->brk = 0x10000;
	host_up(h, 16, 16, 2048);
	run();
	while (host_rx_take(h, bed->before, FAULT_RAM, NULL) != -1)
		host_rx_post(h);
	check_tx_alive(h);
	check_rx_alive(h);
	h->ram = mmap(NULL, h->ram_size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	host_destroy(h);
	free(bed->all);
	free(bed->before);
	free(bed);
}

/*
 * The steps of a trigger.
 */

static void
queue(const struct fault_step *s)
{
	union e82545_txd *txd;
	uint32_t i, size;
	uint64_t base;

	size = host_rd(bed->h, E82545_TDLEN) / sizeof(*txd);
	base = host_rd(bed->h, E82545_TDBAL);
	for (i = 0; i < s->n; i++) {
		if (bed->tail >= size)
			bed->tail = 0;
		txd = host_mem(bed->h, base + bed->tail++ * sizeof(*txd),
		    sizeof(*txd));
		txd->addr = s->addr;
		txd->lower = s->lower;
		txd->upper = s->upper;
	}
}

static void
step(const struct fault_step *s)
{
	uint8_t frame[E82545_FRAME_MAX];
	struct host *h = bed->h;

	switch (s->kind) {
	case FAULT_WRITE:
		host_wr(h, s->addr, s->lower);
		/* A ring begins at its beginning. */
		if (s->addr == E82545_TDBAL)
			bed->tail = 0;
		break;
	case FAULT_ACCESS:
		e82545_write(h->dev, E82545_BAR_MEM, s->addr, s->n, s->lower);
		e82545_read(h->dev, E82545_BAR_MEM, s->addr, s->n);
		break;
	case FAULT_TXD:
		queue(s);
		break;
	case FAULT_KICK:
		host_wr(h, E82545_TDT, bed->tail);
		run();
		break;
	case FAULT_RUN:
		run();
		break;
	case FAULT_RXD:
		host_rxd(h, s->n)->addr = s->addr;
		break;
	case FAULT_FRAME:
		host_make_frame(frame, s->n, host_mac, s->n);
		host_inject(h, frame, s->n, 1);
		run();
		break;
	case FAULT_END:
		break;
	}
}

/*
 * Results.
 */

static unsigned int
since(enum e82545_counter counter)
{
	return (host_counter(bed->h, counter) - bed->counters[counter]);
}

static unsigned int
expected(const struct fault *f, enum e82545_counter counter)
{
	unsigned int i;

	for (i = 0; i < FAULT_COUNTS; i++)
		if (f->counts[i].n != 0 && f->counts[i].counter == counter)
			return (f->counts[i].n);
	return (0);
}

/* Every reason to drop a packet or frame. */
static void
check_counters(const struct fault *f, const char *id, bool rx)
{
	static const enum e82545_counter which[] = {
		E82545_C_TX_BAD_RING, E82545_C_TX_BAD_DESC,
		E82545_C_TX_BAD_ADDR, E82545_C_TX_BAD_LEN,
		E82545_C_TX_BAD_CTX, E82545_C_TX_LINKDOWN,
		/* Receive. */
		E82545_C_TX_NOROOM, E82545_C_RX_FILTERED,
		E82545_C_RX_OVERSIZE, E82545_C_RX_DISABLED, E82545_C_RX_STALL,
		E82545_C_RX_BAD_RING, E82545_C_RX_BAD_ADDR
	};
	unsigned int i;

	for (i = 0; i < (rx ? nitems(which) : 6); i++)
		ATF_CHECK_EQ_MSG(expected(f, which[i]), since(which[i]),
		    "%s: %s is %u, not %u", id,
		    e82545_counter_table[which[i]].cr_name, since(which[i]),
		    expected(f, which[i]));
}

/* All descriptors are done, and the ring is empty. */
static void
check_written_back(const char *id)
{
	const union e82545_txd *txd;
	uint64_t base;
	uint32_t i, tail;

	tail = host_rd(bed->h, E82545_TDT);
	base = host_rd(bed->h, E82545_TDBAL);
	if (base > FAULT_RAM)
		return;			/* no ring at the end */
	ATF_CHECK_EQ_MSG(tail, host_rd(bed->h, E82545_TDH), "%s: TDH %u", id,
	    host_rd(bed->h, E82545_TDH));
	for (i = 0; i < tail; i++) {
		txd = host_mem(bed->h, base + i * sizeof(*txd), sizeof(*txd));
		if ((txd->lower & E82545_TXD_RS) != 0)
			ATF_CHECK_MSG((txd->upper & E82545_TXD_DD) != 0,
			    "%s: descriptor %u not done", id, i);
	}
}

static void
check_rx(const struct fault *f, const char *id)
{
	static uint8_t buf[65536];
	unsigned int errors, n;
	struct e82545_rxd last;
	uint32_t i, rdh;

	rdh = host_rd(bed->h, E82545_RDH);
	ATF_CHECK_EQ_MSG(f->rxds, rdh, "%s: %u RX descriptors", id, rdh);
	ATF_CHECK_EQ(f->received, since(E82545_C_RX_FRAME));
	/* None is empty: frames that fill buffers end in a full one. */
	for (i = 0; i < rdh; i++)
		ATF_CHECK_MSG(host_rxd(bed->h, i)->length > 0 ||
		    host_rxd(bed->h, i)->addr == 0,
		    "%s: empty descriptor %u", id, i);
	/* host_rx_take() reads the buffers of frames without an error. */
	for (i = 0; i < FAULT_NRXD; i++)
		if (host_rxd(bed->h, i)->addr > FAULT_RAM - FAULT_BUFSIZE)
			host_rxd(bed->h, i)->addr = FAULT_RXBUF;
	errors = 0;
	for (n = 0; host_rx_take(bed->h, buf, sizeof(buf), &last) != -1; n++)
		errors += last.errors != 0;
	ATF_CHECK_EQ_MSG(f->received, n - errors, "%s: %u frames", id,
	    n - errors);
	ATF_CHECK_EQ(since(E82545_C_RX_BAD_ADDR), errors);
}

/*
 * Each packet is one descriptor, and its frame is the data as it was, padded
 * with zeros.
 */
static void
check_plain(const char *id, bool looped)
{
	const uint8_t *data = bed->before + FAULT_DATA, *frame;
	const union e82545_txd *txd;
	uint32_t i, j, len, n, tail;

	tail = host_rd(bed->h, E82545_TDT);
	for (i = j = 0; i < tail; i++) {
		txd = host_mem(bed->h, FAULT_TXRING + i * sizeof(*txd),
		    sizeof(*txd));
		if ((txd->lower & (E82545_TXD_DEXT | E82545_TXD_DTYP)) ==
		    TXD_CONTEXT)
			continue;
		len = txd->lower & E82545_TXD_LEN_LEGACY;
		if (looped) {
			frame = host_mem(bed->h, FAULT_RXBUF +
			    j * FAULT_BUFSIZE, FAULT_BUFSIZE);
			n = host_rxd(bed->h, j)->length;
		} else {
			frame = host_sent_frame(bed->h, j)->data;
			n = host_sent_frame(bed->h, j)->len;
		}
		j++;
		ATF_CHECK_EQ_MSG(MAX(len, 60), n, "%s: %u bytes", id, n);
		ATF_CHECK_EQ_MSG(0, memcmp(data, frame, len), "%s: frame %u",
		    id, j);
		for (; len < n; len++)
			ATF_CHECK_EQ_MSG(0, frame[len], "%s: padding", id);
	}
}

/* Frames looped back are received, or dropped for a reason. */
static void
check_looped(const struct fault *f, const char *id)
{
	ATF_CHECK_EQ_MSG(f->frames, since(E82545_C_LOOPBACK) +
	    since(E82545_C_TX_NOROOM), "%s: %u looped back", id,
	    since(E82545_C_LOOPBACK));
	host_wr(bed->h, E82545_RCTL, 0);
	run();
	ATF_CHECK_EQ(since(E82545_C_LOOPBACK), since(E82545_C_RX_FRAME) +
	    since(E82545_C_RX_OVERSIZE) + since(E82545_C_RX_DISABLED) +
	    since(E82545_C_RX_FILTERED) + since(E82545_C_RX_BAD_ADDR));
}

static void
variant(const struct fault *f, enum e82545_kind kind, enum mode mode,
    bool loops)
{
	static const char *const names[] = { "", ", MAC loopback",
	    ", PHY loopback" };
	const struct fault_step *s;
	char id[128];

	snprintf(id, sizeof(id), "%s: %s%s%s", f->name, f->what, names[mode],
	    kind == E82545_KIND_82574L ? ", 82574L" : "");
	bed_up(kind);
	if (mode == MAC_LOOPBACK)
		host_wr(bed->h, E82545_RCTL, FAULT_RCTL |
		    E82545_RCTL_LBM_MAC);
	else if (mode == PHY_LOOPBACK)
		host_wr(bed->h, E82545_MDIC, E82545_MDIC_OP_WRITE | 1 << 21 |
		    0x4140);
	for (s = f->steps; s->kind != FAULT_END; s++)
		step(s);
	check_counters(f, id, mode == NETWORK);
	check_written_back(id);
	if (mode == NETWORK) {
		ATF_CHECK_EQ_MSG(f->frames, host_sent(bed->h) +
		    since(E82545_C_LOOPBACK), "%s: %u frames", id,
		    host_sent(bed->h));
		ATF_CHECK_EQ_MSG(loops ? f->frames : 0,
		    since(E82545_C_LOOPBACK), "%s: loopback", id);
		if (f->plain)
			check_plain(id, loops);
		check_rx(f, id);
	} else {
		ATF_CHECK_EQ_MSG(0, host_sent(bed->h), "%s: frames sent", id);
		check_looped(f, id);
	}
	bed_down(id);
}

/* Whether a trigger turns loopback on itself. */
static bool
loops(const struct fault *f)
{
	const struct fault_step *s;

	for (s = f->steps; s->kind != FAULT_END; s++)
		if (s->kind == FAULT_WRITE &&
		    ((s->addr == E82545_MDIC && (s->lower & 0xc000) ==
		    0x4000) || (s->addr == E82545_RCTL &&
		    (s->lower & E82545_RCTL_LBM) != 0)))
			return (true);
	return (false);
}

/* Whether it only transmits, and so has the same outcome with loopback. */
static bool
transmits(const struct fault *f)
{
	const struct fault_step *s;

	for (s = f->steps; s->kind != FAULT_END; s++)
		if (s->kind == FAULT_FRAME || (s->kind == FAULT_WRITE &&
		    (s->addr == E82545_MDIC || s->addr == E82545_RCTL)))
			return (false);
	return (true);
}

static void
replay(const char *name)
{
	static const enum e82545_kind kinds[] = { E82545_KIND_EM,
	    E82545_KIND_82574L };
	const struct fault *f;
	unsigned int i, mode, n;

	n = 0;
	for (f = e1000_faults; f < e1000_faults + e1000_nfaults; f++) {
		if (strcmp(f->name, name) != 0)
			continue;
		for (i = 0; i < nitems(kinds); i++) {
			variant(f, kinds[i], NETWORK, loops(f));
			for (mode = MAC_LOOPBACK; mode < NMODES &&
			    transmits(f); mode++)
				variant(f, kinds[i], mode, true);
		}
		n++;
	}
	ATF_CHECK(n > 0);
}

/* A case for each name in e1000_faults.c. */
#define	FAULT_CASES(X)							\
	X(sa_19_21, "TSO headers shorter than what is in them")		\
	X(sa_22_05, "Checksums outside the packet")			\
	X(d26798, "The TX ring is moved while transmit is on")		\
	X(stock_bhyve_1, "Receive addresses 1 to 15 exist")		\
	X(stock_bhyve_2, "The RX ring is moved while receive is on")	\
	X(stock_bhyve_3, "Legacy and data descriptors in one packet")	\
	X(stock_bhyve_4, "A frame arrives for a ring without descriptors") \
	X(stock_bhyve_5, "TSO with MSS 0")				\
	X(stock_bhyve_6, "TSO into a million frames; PAYLEN beyond the data") \
	X(stock_bhyve_7, "Buffers and rings outside memory")		\
	X(stock_bhyve_8, "Packets of many descriptors; frames that fill " \
	    "buffers")							\
	X(cve_2012_6075, "Frames above the limit")			\
	X(cve_2015_6815, "TSO with HDRLEN 0 and MSS 0")			\
	X(cve_2016_1981, "Heads beyond their rings")			\
	X(cve_2021_20257_a, "An incomplete packet before TSO")		\
	X(cve_2021_20257_b, "Loopback into own registers")		\
	X(cve_2021_3416, "A frame looped back is not sent again")	\
	X(cve_2023_3019, "Receive into own registers")			\
	X(qemu_3043, "Short frames looped back")			\
	X(cve_2020_28916, "Receive descriptors with address 0")		\
	X(cve_2020_16092, "Many fragments")				\
	X(cve_2017_10235, "Loopback of more than a frame may have")	\
	X(virtualbox_5_2_20, "TSO packets without headers")

#define	FAULT_CASE(name, descr)						\
TEST(name, descr)							\
{									\
	replay(#name);							\
}

FAULT_CASES(FAULT_CASE)

/* Advisories about QEMU's e1000e that have the triggers of another one. */
#define	FAULT_ALSO(name, other, descr)					\
TEST(name, descr)							\
{									\
	replay(#other);							\
}

FAULT_ALSO(cve_2017_9310, cve_2016_1981, "e1000e: heads beyond their rings")
FAULT_ALSO(cve_2020_15859, cve_2023_3019, "e1000e: data in its own registers")
FAULT_ALSO(cve_2020_25707, cve_2020_28916, "e1000e: receive descriptors with "
    "address 0")

/* A frame with `n' extension headers of one type and length. */
static size_t
extended(uint8_t *frame, unsigned int type, unsigned int n, unsigned int words,
    uint16_t paylen, size_t len)
{
	uint8_t *p;
	unsigned int i;

	host_make_frame(frame, len, host_mac, type + n);
	be16enc(frame + 12, 0x86dd);
	memset(frame + 14, 0, len - 14);
	frame[14] = 0x60;
	be16enc(frame + 18, paylen);
	frame[20] = type;
	for (i = 0; i < n; i++) {
		p = frame + 54 + 8 * i;
		if (p + 8 > frame + len)
			break;
		p[0] = i + 1 == n ? 6 : type;
		p[1] = words;
	}
	return (len);
}

TEST(lp_1879531, "IPv6 extension headers, of any type, number and length")
{
	static const uint8_t types[] = { 0, 43, 44, 50, 51, 59, 60, 135, 255 };
	static const uint8_t words[] = { 0, 1, 31, 255 };
	static const uint16_t paylens[] = { 0, 7, 8, 40, 1460, 0xffff };
	static const size_t lens[] = { 60, 62, 94, 1514 };
	uint8_t buf[2048], frame[1514];
	struct e82545_rxd last;
	struct host *h;
	unsigned int i, n, nfrags;
	size_t len;

	h = rx_up(64, 2048);
	host_wr(h, E82545_RXCSUM, RXCSUM_ON | 14);
	for (i = 0; i < 9 * 4 * 6 * 4 * 2; i++) {
		n = i % 2 == 0 ? 1 : 200;
		len = extended(frame, types[i / 2 % 9], n,
		    words[i / 18 % 4], paylens[i / 72 % 6],
		    lens[i / 432 % 4]);
		for (nfrags = 1; nfrags <= 60; nfrags += 59) {
			host_inject(h, frame, len, nfrags);
			host_run(h);
			ATF_REQUIRE_EQ((ssize_t)len, host_rx_take(h, buf,
			    sizeof(buf), &last));
			ATF_CHECK_EQ(0, memcmp(frame, buf, len));
			/* Nothing is said about its checksums. */
			ATF_CHECK_EQ_MSG(RXD_DONE | E82545_RXD_IXSM,
			    last.status, "%u: status %#x", i, last.status);
			ATF_CHECK_EQ(0, last.errors);
			host_rx_post(h);
		}
	}
	ATF_CHECK_EQ(2 * i, host_counter(h, E82545_C_RX_FRAME));
	host_destroy(h);
}

TEST(every_fault, "Every trigger is of a case")
{
#define	FAULT_NAME(name, descr) #name,
	static const char *const names[] = { FAULT_CASES(FAULT_NAME) };
	unsigned int i, j;

	for (i = 0; i < e1000_nfaults; i++) {
		for (j = 0; j < nitems(names); j++)
			if (strcmp(e1000_faults[i].name, names[j]) == 0)
				break;
		ATF_CHECK_MSG(j < nitems(names), "%s", e1000_faults[i].name);
	}
}

TEST_PROGRAM
