/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ruled frames of vale_learn(4) on their way: vale_learn_ruled.c and
 * vale_learn_copy.c, with rings as netmap has them.  Whether netmap does what
 * they expect is the subject of vale_learn_test.
 */

#include "netmap_kernel.h"

#include <dev/netmap/vale_learn_copy.c>
#include <dev/netmap/vale_learn_ruled.c>

#undef malloc

#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"

#define	PORTS		4
#define	SLOTS		128
#define	ADDRS		12
#define	FRAGS		64
#define	NONE		0x10000	/* no tag */
#define	LONGEST		(VALE_LEARN_FRAME_MAX + 64)

time_t time_uptime = 7;
const char no_memory[1];
static const uint64_t seed[2] = { 0x0123456789abcdef, 0xfedcba9876543210 };
static struct vale_learn_switch sw;
static struct nm_bridge bridge;
static unsigned int notified;
static bool full;		/* the share of every sender is used up */
static bool changing;		/* the sender changes what was read */
static uint32_t rnd = 45;

/* A port: its adapter, and its receive ring. */
static struct rig {
	struct netmap_vp_adapter rg_na;
	struct netmap_kring	 rg_kring, *rg_krings[1];
	struct netmap_ring	*rg_ring;
	uint32_t		 rg_leases[SLOTS];
} rig[PORTS];

bool
vale_learn_switch_admit(struct vale_learn_switch *s, struct vale_learn_ring *lr,
    const struct netmap_vp_adapter *na, unsigned int dst, uint32_t before,
    uint32_t slots)
{
	ATF_CHECK(s == &sw && na == &rig[0].rg_na && dst < PORTS);
	ATF_CHECK_EQ(0, before);
	ATF_CHECK(slots > 0);
	lr->lr_pending += slots;
	return (!full);
}

int
copyin(const void *from, void *to, size_t len)
{
	if (from == no_memory)
		return (EFAULT);
	memcpy(to, from, len);
	if (changing)
		memset(__DECONST(void *, from), 0xee, len);
	return (0);
}

void
bdg_mismatch_datapath(struct netmap_vp_adapter *src,
    struct netmap_vp_adapter *dst, const struct nm_bdg_fwd *ft,
    struct netmap_ring *ring, unsigned int *j, unsigned int last,
    unsigned int *left)
{
	const unsigned int from = src->up.virt_hdr_len, n = ft->ft_frags;
	unsigned int i, header = dst->up.virt_hdr_len, skip = from;
	struct netmap_slot *slot;

	ATF_REQUIRE(n <= *left && ft->ft_len >= from + VALE_LEARN_HEADER);
	for (i = 0; i < n; i++, ft++, skip = header = 0) {
		slot = &ring->slot[*j];
		slot->len = ft->ft_len - skip + header;
		ATF_CHECK_EQ(i + 1 < n ? NS_MOREFRAG : 0, ft->ft_flags);
		ATF_REQUIRE(header + roundup2(ft->ft_len - skip, 64) <=
		    dst->up.lut_objsize);
		memset(NMB(&dst->up, slot), 0, header);
		memcpy((char *)NMB(&dst->up, slot) + header,
		    (char *)ft->ft_buf + skip, roundup2(ft->ft_len - skip, 64));
		slot->flags = i + 1 < n ? NS_MOREFRAG : 0;
		*j = nm_next(*j, last);
	}
	*left -= n;
}

static int
notify(struct netmap_kring *kring, int flags)
{
	ATF_CHECK(!kring->q_lock.held);
	if (flags == 0)
		notified++;
	return (0);
}

static void
add(unsigned int index, unsigned int size, unsigned int header)
{
	struct rig *rg = &rig[index];
	struct vale_learn_port *lp;
	unsigned int i;

	memset(rg, 0, sizeof(*rg));
	rg->rg_ring = calloc(1, sizeof(*rg->rg_ring) +
	    SLOTS * sizeof(struct netmap_slot));
	ATF_REQUIRE(rg->rg_ring != NULL);
	for (i = 0; i < SLOTS; i++) {
		rg->rg_ring->slot[i].buf_idx = i;
		rg->rg_leases[i] = NR_NOSLOT;
	}
	rg->rg_krings[0] = &rg->rg_kring;
	rg->rg_kring = (struct netmap_kring){ .ring = rg->rg_ring,
	    .nkr_num_slots = SLOTS, .na = &rg->rg_na.up,
	    .nr_mode = NKR_NETMAP_ON, .nkr_leases = rg->rg_leases,
	    .nm_notify = notify };
	rg->rg_na.up.lut_objsize = size;
	rg->rg_na.up.rx_rings = rg->rg_krings;
	rg->rg_na.up.virt_hdr_len = header;
	rg->rg_na.up.buffers = calloc(SLOTS, size);
	ATF_REQUIRE(rg->rg_na.up.buffers != NULL);
	rg->rg_na.bdg_port = index;
	rg->rg_na.na_bdg = &bridge;
	rg->rg_na.mfs = header != 0 ? size : 1514;
	snprintf(rg->rg_na.up.name, sizeof(rg->rg_na.up.name), "vale0:p%u",
	    index);
	lp = calloc(1, vale_learn_port_size(1, 0));
	ATF_REQUIRE(lp != NULL);
	lp->lp_ring[0].lr_memory = vale_learn_memory_new(M_NOWAIT);
	ATF_REQUIRE(lp->lp_ring[0].lr_memory != NULL);
	vale_learn_port_add(&sw.sw_learn, index, rg->rg_na.up.name, 1, 0, lp);
	bridge.bdg_ports[index] = &rg->rg_na;
	bridge.bdg_port_index[bridge.bdg_active_ports++] = index;
}

static void
begin(void)
{
	memset(&sw, 0, sizeof(sw));
	memset(&bridge, 0, sizeof(bridge));
	vale_learn_init(&sw.sw_learn, seed);
	sw.sw_bdg = &bridge;
	full = changing = false;
}

static void
end(void)
{
	struct vale_learn_port *lp;
	unsigned int i;

	for (i = 0; i < PORTS; i++) {
		lp = vale_learn_port_remove(&sw.sw_learn, i);
		if (lp == NULL)
			continue;
		free(lp->lp_ring[0].lr_memory);
		free(lp);
		free(rig[i].rg_ring);
		free(rig[i].rg_na.up.buffers);
	}
}

static void
rule(enum vale_learn_rule r, const char *text)
{
	ATF_REQUIRE_EQ(0, vale_learn_rule_set(&sw.sw_learn, r, text));
}

static uint64_t
counted(enum vale_learn_counter c)
{
	return (vale_learn_ring(&sw.sw_learn, 0, 0)->lr_counter[c]);
}

/* Bytes of a frame from station 1 to all, of `len' bytes without its tag. */
static uint32_t
write_frame(uint8_t *p, uint32_t len, uint32_t tci)
{
	uint32_t i, n = 0;

	for (i = 0; i < len; i++) {
		if (i == ADDRS && tci != NONE) {
			p[n++] = 0x81;
			p[n++] = 0;
			p[n++] = tci >> 8;
			p[n++] = tci & 0xff;
		}
		p[n++] = i < 6 ? 0xff : i == 6 ? 2 : i == 11 ? 1 :
		    i <= ADDRS ? 0 : (i * 7) & 0xff;
	}
	return (n);
}

/*
 * Port 0 sends what is in `bytes', in slots of `first' bytes and then `size'.
 * Each slot has memory of its own.
 */
static void
send_bytes(const uint8_t *bytes, uint32_t len, uint32_t first, uint32_t size,
    uint16_t flags)
{
	struct netmap_vp_adapter *na = &rig[0].rg_na;
	struct nm_bdg_fwd ft[FRAGS];
	const unsigned int header = na->up.virt_hdr_len;
	uint32_t done, n = 0, part;

	memset(ft, 0, sizeof(ft));
	for (done = 0; done < len; done += part, n++) {
		ATF_REQUIRE(n < FRAGS);
		part = MIN(n == 0 ? first : size, len - done);
		ft[n].ft_buf = malloc(part);
		memcpy(ft[n].ft_buf, bytes + done, part);
		ft[n].ft_len = part;
		ft[n].ft_flags = flags | (done + part < len ? NS_MOREFRAG : 0);
	}
	ft[0].ft_frags = n;
	vale_learn_ruled(&sw, ft, na, vale_learn_ring(&sw.sw_learn, 0, 0),
	    header < ft[0].ft_len ? ft[0].ft_len - header : ft[1].ft_len,
	    len - header);
	while (n-- > 0)
		free(ft[n].ft_buf);
}

/* Take a frame out of a port's ring.  Returns its bytes, or 0. */
static uint32_t
receive(unsigned int port, uint8_t *to)
{
	struct netmap_kring *kring = &rig[port].rg_kring;
	const struct netmap_slot *slot;
	uint32_t len = 0;
	bool more = true;

	while (more && kring->nr_hwcur != kring->nr_hwtail) {
		slot = &kring->ring->slot[kring->nr_hwcur];
		memcpy(to + len, (char *)NMB(kring->na, slot) + slot->ptr,
		    slot->len);
		len += slot->len;
		more = (slot->flags & NS_MOREFRAG) != 0;
		kring->nr_hwcur = nm_next(kring->nr_hwcur, SLOTS - 1);
	}
	return (len);
}

/* A port gets a frame, behind `header' zeros, and nothing else. */
static void
check_received(unsigned int port, uint32_t header, uint32_t len, uint32_t tci)
{
	static uint8_t expected[LONGEST], got[LONGEST];
	uint32_t n;

	memset(expected, 0, header);
	n = header + write_frame(expected + header, len, tci);
	ATF_CHECK_EQ(n, receive(port, got));
	ATF_CHECK(memcmp(expected, got, n) == 0);
	ATF_CHECK_EQ(0, receive(port, got));
}

TEST(forms, "Each member gets its form, in slots of its own buffers, behind "
    "its own header")
{
	static uint8_t bytes[LONGEST];
	static const uint32_t lens[] = { 14, 60, 1514, 1921, 9000, 65536 };
	unsigned int header, i, k, n;

	for (k = 0; k < 8; k++) {
		header = k % 2 * 12;
		begin();
		add(0, 2048, header);
		add(1, k < 4 ? 2048 : 1024, 0);
		add(2, 4096, header);
		add(3, 2048, 12 - header);
		rule(VALE_LEARN_VLAN, "p0=10 p1=10");
		rule(VALE_LEARN_TRUNK, "p2=10");
		for (i = 0; i < 6; i++) {
			memset(bytes, 0, header);
			n = header + write_frame(bytes + header, lens[i], NONE);
			notified = 0;
			send_bytes(bytes, n, k % 4 < 2 ? MIN(2048, header +
			    lens[i]) : header + 14, 2048, k < 4 ? 0 :
			    NS_INDIRECT);
			ATF_CHECK_EQ(3, notified);
			check_received(1, 0, lens[i], NONE);
			check_received(2, header, lens[i], 10);
			check_received(3, 12 - header, lens[i], 10);
		}
		ATF_CHECK_EQ(18, counted(VALE_LEARN_C_COPY));
		ATF_CHECK_EQ(0, counted(VALE_LEARN_C_DROP_COPY));
		ATF_CHECK_EQ(6, counted(VALE_LEARN_C_FLOOD));
		end();
	}
}

TEST(changing, "What the sender changes after it was read is not delivered")
{
	uint8_t bytes[100];

	begin();
	add(0, 2048, 0);
	add(1, 2048, 0);
	add(2, 2048, 0);
	rule(VALE_LEARN_SOURCE, "p0=02:00:00:00:00:01");
	changing = true;
	(void)write_frame(bytes, sizeof(bytes), NONE);
	send_bytes(bytes, sizeof(bytes), 20, 30, NS_INDIRECT);
	check_received(1, 0, sizeof(bytes), NONE);
	check_received(2, 0, sizeof(bytes), NONE);
	bytes[11] = 2;
	send_bytes(bytes, sizeof(bytes), 20, 30, NS_INDIRECT);
	ATF_CHECK_EQ(0, receive(1, bytes));
	ATF_CHECK_EQ(1, counted(VALE_LEARN_C_DROP_SOURCE));
	end();
}

TEST(space, "A frame that finds no space is counted for each port that does "
    "not get it; over its share, only mirrors get it")
{
	uint8_t bytes[2048];
	unsigned int i;

	begin();
	add(0, 2048, 0);
	add(1, 2048, 0);
	add(2, 256, 0);
	rule(VALE_LEARN_SOURCE, "p0=02:00:00:00:00:01");
	(void)write_frame(bytes, 60, NONE);
	for (i = 0; i < SLOTS; i++)
		send_bytes(bytes, 60, 60, 1, 0);
	/* A ring has a slot less; the buffers of port 2 are too small. */
	ATF_CHECK_EQ(SLOTS - 1, counted(VALE_LEARN_C_COPY));
	ATF_CHECK_EQ(SLOTS + 1, counted(VALE_LEARN_C_DROP_COPY));
	for (i = 0; i < SLOTS - 1; i++)
		ATF_CHECK_EQ(60, receive(1, bytes));
	ATF_CHECK_EQ(0, receive(1, bytes));

	/* To station 9, at port 1. */
	add(3, 2048, 0);
	rule(VALE_LEARN_MIRROR, "p3");
	(void)write_frame(bytes, 60, NONE);
	memcpy(bytes, "\x02\x00\x00\x00\x00\x09", 6);
	vale_fdb_learn(&sw.sw_learn.vl_fdb, bytes, 0, 1, 7);
	send_bytes(bytes, 60, 60, 1, 0);
	ATF_CHECK_EQ(60, receive(1, bytes + 100));
	ATF_CHECK_EQ(60, receive(3, bytes + 100));
	ATF_CHECK_EQ(0, vale_learn_ring(&sw.sw_learn, 0, 0)->lr_pending);
	full = true;
	send_bytes(bytes, 60, 60, 1, 0);
	ATF_CHECK_EQ(0, receive(1, bytes + 100));
	ATF_CHECK_EQ(60, receive(3, bytes + 100));
	end();
}

TEST(random, "Random frames, headers, slots and buffers")
{
	static uint8_t bytes[LONGEST];
	unsigned int round, header, other;
	uint32_t len, n, tci;

	for (round = 0; round < 3000; round++) {
		header = test_chance(&rnd, 1, 2) ? 12 : 0;
		other = test_chance(&rnd, 1, 2) ? 12 : 0;
		begin();
		add(0, 2048, header);
		add(1, 2048 - test_below(&rnd, 1000), other);
		add(2, 2048 + test_below(&rnd, 1000), header);
		rule(VALE_LEARN_TRUNK, "p0=10 p1=10 p2=no");
		rule(VALE_LEARN_NATIVE, test_chance(&rnd, 1, 2) ? "p1=10" :
		    "p2=10");
		tci = test_below(&rnd, 16) << 12 | 10;
		len = test_chance(&rnd, 1, 4) ? 14 + test_below(&rnd, 65000) :
		    14 + test_below(&rnd, 2000);
		memset(bytes, 0, header);
		n = header + write_frame(bytes + header, len, tci);
		send_bytes(bytes, n, header + 14 + test_below(&rnd, 2000),
		    n / (FRAGS - 1) + 1 + test_below(&rnd, 900),
		    test_chance(&rnd, 1, 2) ? NS_INDIRECT : 0);
		ATF_REQUIRE_EQ(2, counted(VALE_LEARN_C_COPY));
		check_received(1, other, len, sw.sw_learn.vl_port[1]->lp_vlan.
		    vln_native == 10 ? NONE : tci);
		check_received(2, header, len, tci);
		end();
	}
}

TEST_PROGRAM
