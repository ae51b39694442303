/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * VLANs, guards and reserved addresses of vale_learn(4), without a kernel.  A
 * frame goes to ports that get it without a tag, or as it is, and to ports that
 * get it with a tag: "1+2 10:3+4".
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include <dev/netmap/vale_learn.h>
#include <dev/netmap/vale_learn_form.h>

#include "test.h"

#define	FRAME		60
#define	ADDRS		12
#define	NONE		0x10000	/* no tag */
#define	RESERVED	100	/* destinations; 100 to 115, 116 */

static const uint64_t seed[2] = { 0x0123456789abcdef, 0xfedcba9876543210 };
static struct vale_learn vl;
static struct vale_learn_frame lf;

static void
add(unsigned int index, const char *name)
{
	struct vale_learn_port *lp;

	lp = calloc(1, vale_learn_port_size(2, 255));
	ATF_REQUIRE(lp != NULL);
	vale_learn_port_add(&vl, index, name, 2, 255, lp);
}

static void
end(void)
{
	unsigned int i;

	for (i = 0; i < VALE_FDB_PORTS; i++)
		free(vale_learn_port_remove(&vl, i));
}

static void
rule(enum vale_learn_rule r, const char *text)
{
	ATF_REQUIRE_EQ_MSG(0, vale_learn_rule_set(&vl, r, text), "%s", text);
}

static uint64_t
counted(unsigned int port, enum vale_learn_counter c)
{
	struct vale_learn_port_info info;

	vale_learn_port_info(&vl, port, &info);
	return (info.lpi_counter[c]);
}

/* A station's address; 0 is broadcast. */
static void
station(uint8_t *addr, unsigned int n)
{
	static const uint8_t link[] = { 0x01, 0x80, 0xc2, 0, 0 };

	memset(addr, n == 0 ? 0xff : 0, 6);
	if (n >= RESERVED) {
		memcpy(addr, link, sizeof(link));
		addr[5] = n - RESERVED;
	} else if (n != 0) {
		addr[0] = 2;
		addr[5] = n;
	}
}

/* Write a frame of `len' bytes, with a tag if `tci' is not NONE. */
static void
write_frame(uint8_t *p, unsigned int src, unsigned int dst, uint32_t tci,
    uint32_t len)
{
	uint8_t bytes[FRAME];
	unsigned int i = ADDRS;

	memset(bytes, 0x5a, sizeof(bytes));
	station(bytes, dst);
	station(bytes + 6, src);
	if (tci != NONE) {
		bytes[i++] = 0x81;
		bytes[i++] = 0;
		bytes[i++] = tci >> 8;
		bytes[i++] = tci & 0xff;
	}
	bytes[i++] = 8;
	bytes[i++] = 0;
	memcpy(p, bytes, len);
}

static void
put(char *text, const struct vale_learn_set *s)
{
	unsigned int i;

	for (i = 0; i < VALE_FDB_PORTS; i++) {
		if (vale_learn_set_has(s, i))
			sprintf(text + strlen(text), "%s%u",
			    *text == '\0' || text[strlen(text) - 1] == ':' ||
			    text[strlen(text) - 1] == ' ' ? "" : "+", i);
	}
}

/* The ports that a frame goes to which is not ruled. */
static unsigned int
plain(struct vale_learn_ring *lr, unsigned int port, const uint8_t *frame,
    uint32_t len, struct vale_learn_set *to)
{
	struct vale_learn_set copies;
	unsigned int d, dst;

	memset(to, 0, sizeof(*to));
	d = vale_learn_forward(&vl, lr, port, frame, len, len, 0, &copies);
	dst = d & 0xff;
	if ((d & VALE_LEARN_COPIES) != 0)
		*to = copies;
	if (dst == VALE_FDB_FLOOD) {
		*to = vl.vl_present;
		to->s_word[port / 64] &= ~(UINT64_C(1) << port % 64);
	} else if (dst < VALE_FDB_FLOOD)
		to->s_word[dst / 64] |= UINT64_C(1) << dst % 64;
	return (d == VALE_LEARN_NONE ? d : dst);
}

/* As the module does.  Returns where it went. */
static unsigned int
send_frame(unsigned int port, const uint8_t *frame, uint32_t len,
    struct vale_learn_plan *plan)
{
	struct vale_learn_ring *lr = vale_learn_ring(&vl, port, 1);
	unsigned int dst;

	memset(plan, 0, sizeof(*plan));
	if (lr->lr_ruled == 0)
		return (plain(lr, port, frame, len, &plan->lpn_to[0]));
	dst = vale_learn_rule_frame(&vl, lr, port, frame, len, 0, plan);
	if (dst == VALE_LEARN_NONE)
		memset(plan->lpn_to, 0, sizeof(plan->lpn_to));
	return (dst);
}

static const char *
to(unsigned int port, unsigned int src, unsigned int dst, uint32_t tci)
{
	static char text[256];
	struct vale_learn_plan plan;
	uint8_t frame[FRAME];

	write_frame(frame, src, dst, tci, sizeof(frame));
	memset(text, 0, sizeof(text));
	if (send_frame(port, frame, sizeof(frame), &plan) == VALE_LEARN_NONE)
		return ("-");
	put(text, &plan.lpn_to[0]);
	sprintf(text + strlen(text), " %u:", plan.lpn_vlan);
	put(text, &plan.lpn_to[1]);
	return (text);
}

TEST(aware, "A switch has VLANs if a port has: rings know it as ports come "
    "and go and rules are set")
{
	vale_learn_init(&vl, seed);
	add(0, "vale0:a");
	ATF_CHECK(!vale_learn_rule_rules(&vl, VALE_LEARN_VLAN, " ,"));
	ATF_CHECK(vale_learn_rule_rules(&vl, VALE_LEARN_VLAN, "x=1"));
	ATF_CHECK(!vale_learn_rule_rules(&vl, VALE_LEARN_LIMIT, "1"));
	rule(VALE_LEARN_VLAN, "b=10");
	ATF_CHECK(vale_learn_rule_rules(&vl, VALE_LEARN_LIMIT, "1"));
	ATF_CHECK(!vale_learn_rule_rules(&vl, VALE_LEARN_VLAN, ""));
	ATF_CHECK(vl.vl_special && vl.vl_rules);
	ATF_CHECK_EQ(0, vale_learn_ring(&vl, 0, 0)->lr_ruled);
	add(1, "vale0:b");
	ATF_CHECK_EQ(1, vale_learn_ring(&vl, 0, 0)->lr_ruled);
	ATF_CHECK_EQ(1, vale_learn_ring(&vl, 0, 1)->lr_ruled);
	ATF_CHECK_EQ(1, vale_learn_ring(&vl, 1, 1)->lr_ruled);
	add(2, "vale0:b");
	free(vale_learn_port_remove(&vl, 1));
	ATF_CHECK_EQ(1, vale_learn_ring(&vl, 0, 0)->lr_ruled);
	free(vale_learn_port_remove(&vl, 2));
	ATF_CHECK_EQ(0, vale_learn_ring(&vl, 0, 0)->lr_ruled);
	rule(VALE_LEARN_VLAN, "a=0 b=10");
	ATF_CHECK_EQ(0, vale_learn_ring(&vl, 0, 0)->lr_ruled);
	rule(VALE_LEARN_NATIVE, "10");
	ATF_CHECK_EQ(0, vale_learn_ring(&vl, 0, 0)->lr_ruled);
	rule(VALE_LEARN_TRUNK, "10");
	ATF_CHECK_EQ(1, vale_learn_ring(&vl, 0, 0)->lr_ruled);
	/* A mirror has no VLANs. */
	rule(VALE_LEARN_MIRROR, "a");
	ATF_CHECK_EQ(0, vale_learn_ring(&vl, 0, 0)->lr_ruled);
	rule(VALE_LEARN_MIRROR, "");
	rule(VALE_LEARN_TRUNK, "10 a=no");
	ATF_CHECK_EQ(0, vale_learn_ring(&vl, 0, 0)->lr_ruled);
	/* A guard is its port's alone. */
	add(1, "vale0:c");
	rule(VALE_LEARN_TRUNK, "");
	rule(VALE_LEARN_VLAN, "");
	ATF_CHECK(!vl.vl_special && !vl.vl_rules);
	rule(VALE_LEARN_IP, "c=10.0.0.0/8");
	ATF_CHECK(!vl.vl_special && vl.vl_rules);
	ATF_CHECK_EQ(0, vale_learn_ring(&vl, 0, 0)->lr_ruled);
	ATF_CHECK_EQ(1, vale_learn_ring(&vl, 1, 0)->lr_ruled);
	rule(VALE_LEARN_IP, "c=any");
	ATF_CHECK_EQ(0, vale_learn_ring(&vl, 1, 0)->lr_ruled);
	add(2, "vale0:d");
	rule(VALE_LEARN_SOURCE, "d=02:00:00:00:00:01");
	ATF_CHECK_EQ(1, vale_learn_ring(&vl, 2, 0)->lr_ruled);
	end();
}

TEST(forgets, "A port whose VLAN changes has no addresses in the former one, "
    "which would count for its limit")
{
	vale_learn_init(&vl, seed);
	add(0, "vale0:a");
	add(1, "vale0:b");
	rule(VALE_LEARN_LIMIT, "a=1");
	ATF_CHECK_STREQ("1 0:", to(0, 1, 0, NONE));
	rule(VALE_LEARN_VLAN, "10");
	ATF_CHECK_STREQ("1 10:", to(0, 1, 0, NONE));
	rule(VALE_LEARN_VLAN, "20");
	ATF_CHECK_STREQ("1 20:", to(0, 1, 0, NONE));
	/* The limit stays; a rule that changes nothing forgets nothing. */
	rule(VALE_LEARN_VLAN, "a=20 b=20");
	ATF_CHECK_STREQ("-", to(0, 2, 0, NONE));
	ATF_CHECK_EQ(1, counted(0, VALE_LEARN_C_DROP_LIMIT));
	end();
}

TEST(guards, "A guard drops and counts what its port must not send, before it "
    "is learned")
{
	static const uint8_t arp[] = { 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1,
	    2, 0, 0, 0, 0, 1, 192, 0, 2, 5 };
	struct vale_learn_plan plan;
	uint8_t frame[FRAME];

	vale_learn_init(&vl, seed);
	add(0, "vale0:vm1");
	add(1, "vale0:up");
	rule(VALE_LEARN_SOURCE, "vm1=02:00:00:00:00:01+02:00:00:00:00:02");
	ATF_CHECK_STREQ("1 0:", to(0, 1, 0, NONE));
	ATF_CHECK_STREQ("1 0:", to(0, 2, 0, 10));
	ATF_CHECK_STREQ("-", to(0, 3, 0, NONE));
	ATF_CHECK_STREQ("0 0:", to(1, 3, 0, NONE));
	ATF_CHECK_EQ(1, counted(0, VALE_LEARN_C_DROP_SOURCE));
	ATF_CHECK_EQ(2, counted(0, VALE_LEARN_C_LEARNED));
	ATF_CHECK_EQ(3, counted(0, VALE_LEARN_C_FRAME));

	rule(VALE_LEARN_IP, "vm*=192.0.2.5+2001:db8::/64");
	write_frame(frame, 1, 0, NONE, sizeof(frame));
	memcpy(frame + ADDRS, arp, sizeof(arp));
	ATF_CHECK_EQ(VALE_FDB_FLOOD, send_frame(0, frame, sizeof(frame),
	    &plan));
	frame[ADDRS + sizeof(arp) - 1] = 6;
	ATF_CHECK_EQ(VALE_LEARN_NONE, send_frame(0, frame, sizeof(frame),
	    &plan));
	/* It is cut off. */
	ATF_CHECK_EQ(VALE_LEARN_NONE, send_frame(0, frame, 14, &plan));
	ATF_CHECK_EQ(2, counted(0, VALE_LEARN_C_DROP_IP));
	ATF_CHECK_EQ(VALE_FDB_FLOOD, send_frame(1, frame, sizeof(frame),
	    &plan));
	/* Mirrors have none, and get the others' frames. */
	add(2, "vale0:vmon");
	rule(VALE_LEARN_MIRROR, "vmon");
	ATF_CHECK_EQ(0, vale_learn_ring(&vl, 2, 0)->lr_ruled);
	rule(VALE_LEARN_IP, "");
	ATF_CHECK_STREQ("1+2 0:", to(0, 1, 3, NONE));
	ATF_CHECK_STREQ("-", to(0, 4, 3, NONE));
	end();
}

TEST(cut, "A tag that is cut off is refused where there are VLANs")
{
	struct vale_learn_plan plan;
	uint8_t frame[FRAME];
	uint32_t len;

	vale_learn_init(&vl, seed);
	add(0, "vale0:a");
	add(1, "vale0:b");
	rule(VALE_LEARN_VLAN, "b=10");
	write_frame(frame, 1, 0, 10, sizeof(frame));
	for (len = 14; len < 18; len++)
		ATF_CHECK_EQ(VALE_LEARN_NONE,
		    send_frame(0, frame, len, &plan));
	ATF_CHECK_EQ(4, counted(0, VALE_LEARN_C_DROP_VLAN));
	ATF_CHECK_EQ(VALE_FDB_FLOOD, send_frame(0, frame, 18, &plan));
	rule(VALE_LEARN_VLAN, "");
	ATF_CHECK_EQ(VALE_FDB_FLOOD, send_frame(0, frame, 14, &plan));
	end();
}

TEST(lists, "A list is refused as a whole if one of its words is invalid")
{
	static const struct {
		enum vale_learn_rule	 rule;
		bool			 valid;
		const char		*text;
	} row[] = {
		{ VALE_LEARN_VLAN, true, "10" },
		{ VALE_LEARN_VLAN, true, "vm*=4094,x=0" },
		{ VALE_LEARN_VLAN, false, "4095" },
		{ VALE_LEARN_VLAN, false, "vm=" },
		{ VALE_LEARN_VLAN, false, "vm=1 =2" },
		{ VALE_LEARN_VLAN, false, "vm=10+20" },
		{ VALE_LEARN_VLAN, false, "vm=no" },
		{ VALE_LEARN_NATIVE, true, "vm=1" },
		{ VALE_LEARN_NATIVE, false, "vm=-1" },
		{ VALE_LEARN_TRUNK, true, "no all vm=10+20-30+1" },
		{ VALE_LEARN_TRUNK, false, "vm=0" },
		{ VALE_LEARN_TRUNK, false, "vm=10+" },
		{ VALE_LEARN_TRUNK, false, "vm=30-20" },
		{ VALE_LEARN_TRUNK, false, "vm=10,20 vm=4095" },
		{ VALE_LEARN_SOURCE, true, "any vm=02:00:00:00:00:01" },
		{ VALE_LEARN_SOURCE, false, "vm=own" },
		{ VALE_LEARN_SOURCE, false, "vm=03:00:00:00:00:01" },
		{ VALE_LEARN_SOURCE, false, "vm=02:00:00:00:00:01+" },
		{ VALE_LEARN_SOURCE, false, "vm=02:00:00:00:00:0g" },
		{ VALE_LEARN_IP, true, "any vm=192.0.2.5+2001:db8::/64" },
		{ VALE_LEARN_IP, false, "vm=192.0.2.5/24" },
		{ VALE_LEARN_IP, false, "vm=192.0.2.256" },
		{ VALE_LEARN_IP, false, "vm=192.0.2.5 ip=::/129" },
	};
	char text[VALE_LEARN_WORD + 64], before[VALE_LEARN_TEXT];
	unsigned int i, n;

	vale_learn_init(&vl, seed);
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		strcpy(before, vl.vl_rule[row[i].rule]);
		ATF_CHECK_EQ_MSG(row[i].valid ? 0 : EINVAL,
		    vale_learn_rule_set(&vl, row[i].rule, row[i].text), "%s",
		    row[i].text);
		ATF_CHECK_STREQ(row[i].valid ? row[i].text : before,
		    vl.vl_rule[row[i].rule]);
	}
	/* As many prefixes as a guard has, in their longest form. */
	n = sprintf(text, "%0*d=", VALE_LEARN_NAME - 1, 0);
	for (i = 0; i <= VALE_GUARD_PREFIXES; i++) {
		n += sprintf(text + n, "%s2001:0db8:1111:2222:3333:4444:5555:"
		    "666%x/128", i == 0 ? "" : "+", i);
		ATF_CHECK_EQ(i < VALE_GUARD_PREFIXES ? 0 : EINVAL,
		    vale_learn_rule_set(&vl, VALE_LEARN_IP, text));
	}
	n = sprintf(text, "x=");
	for (i = 0; i <= VALE_GUARD_ADDRS; i++) {
		n += sprintf(text + n, "%s02:00:00:00:00:%02x",
		    i == 0 ? "" : "+", i);
		ATF_CHECK_EQ(i < VALE_GUARD_ADDRS ? 0 : EINVAL,
		    vale_learn_rule_set(&vl, VALE_LEARN_SOURCE, text));
	}
	/* And a second time; the random test sets others. */
	rule(VALE_LEARN_SOURCE, "");
	rule(VALE_LEARN_IP, "");
}

TEST(info, "A port's state has its VLANs and its guard")
{
	struct vale_learn_port_info info;

	vale_learn_init(&vl, seed);
	add(0, "vale0:a");
	rule(VALE_LEARN_VLAN, "a=10");
	rule(VALE_LEARN_NATIVE, "a=7");
	rule(VALE_LEARN_SOURCE, "a=02:00:00:00:00:01+02:00:00:00:00:02");
	rule(VALE_LEARN_IP, "a=192.0.2.1+192.0.2.2+::1");
	rule(VALE_LEARN_LIMIT, "a=6");
	vale_learn_port_info(&vl, 0, &info);
	ATF_CHECK_EQ(6, info.lpi_limit);
	ATF_CHECK_EQ(10, info.lpi_vlan);
	ATF_CHECK_EQ(0, info.lpi_trunk);
	ATF_CHECK_EQ(0, info.lpi_native);
	ATF_CHECK_EQ(2, info.lpi_source);
	ATF_CHECK_EQ(3, info.lpi_ip);
	rule(VALE_LEARN_TRUNK, "a=1+20-29+4094");
	vale_learn_port_info(&vl, 0, &info);
	ATF_CHECK_EQ(0, info.lpi_vlan);
	ATF_CHECK_EQ(12, info.lpi_trunk);
	ATF_CHECK_EQ(7, info.lpi_native);
	rule(VALE_LEARN_NATIVE, "");
	vale_learn_port_info(&vl, 0, &info);
	ATF_CHECK_EQ(0, info.lpi_native);
	end();
}

#define	FRAMES	20000

static void *
send_frames(void *arg)
{
	const unsigned int ring = (uintptr_t)arg;
	struct vale_learn_ring *lr = vale_learn_ring(&vl, 0, ring);
	struct vale_learn_plan plan;
	unsigned int i;
	uint8_t frame[FRAME];

	for (i = 0; i < FRAMES; i++) {
		write_frame(frame, 1 + i % 5, i % 3, NONE, sizeof(frame));
		(void)vale_learn_rule_frame(&vl, lr, 0, frame, sizeof(frame), 0,
		    &plan);
	}
	return (NULL);
}

TEST(threads, "A port sends on several rings while ports in VLANs are added")
{
	struct vale_learn_port_info info;
	pthread_t thread[2];
	unsigned int i;

	vale_learn_init(&vl, seed);
	rule(VALE_LEARN_VLAN, "a=10");
	rule(VALE_LEARN_TRUNK, "t=10+20");
	rule(VALE_LEARN_SOURCE, "02:00:00:00:00:01+02:00:00:00:00:02");
	add(0, "vale0:a");
	for (i = 0; i < 2; i++)
		ATF_REQUIRE_EQ(0, pthread_create(&thread[i], NULL, send_frames,
		    (void *)(uintptr_t)i));
	for (i = 1; i < 200; i++)
		add(i, i % 3 == 0 ? "vale0:a" : i % 3 == 1 ? "vale0:t" :
		    "vale0:x");
	for (i = 0; i < 2; i++)
		ATF_REQUIRE_EQ(0, pthread_join(thread[i], NULL));
	vale_learn_port_info(&vl, 0, &info);
	ATF_CHECK_EQ(2 * FRAMES, info.lpi_counter[VALE_LEARN_C_FRAME]);
	ATF_CHECK_EQ(2 * FRAMES / 5 * 3,
	    info.lpi_counter[VALE_LEARN_C_DROP_SOURCE]);
	ATF_CHECK_EQ(1 + 66 + 67, vl.vl_nvlans);
	end();
}

/*
 * A model of the switch, as simple as can be: stations 1 to 7, VLANs 0 to 4,
 * and what each port is.
 */
#define	PORTS		6
static const unsigned int place[PORTS] = { 0, 1, 63, 64, 100, 253 };
#define	STATIONS	8
#define	VLANS		5
enum mode { ANY, ACCESS, TRUNK };
static struct model {
	enum mode	mo_mode;
	unsigned int	mo_vlan;	/* of an access port, or native */
	bool		mo_listed[VLANS];
	bool		mo_private, mo_mirror;
	unsigned int	mo_guard;	/* stations, a bit for each; 0: any */
} model[PORTS];
static uint64_t	count[PORTS][VALE_LEARN_NCOUNTERS];
static int	learned[STATIONS][VLANS];	/* port, or -1 */
static bool	pass;
static uint32_t	rnd;

/* One list: a word for each port. */
static void
model_list(enum vale_learn_rule r, void (*word)(char *, const struct model *))
{
	char text[VALE_LEARN_TEXT] = "";
	unsigned int i;

	for (i = 0; i < PORTS; i++) {
		sprintf(text + strlen(text), " p%u=", i);
		word(text + strlen(text), &model[i]);
	}
	rule(r, text);
}

static void
word_vlan(char *to_text, const struct model *mo)
{
	sprintf(to_text, "%u", mo->mo_mode == ACCESS ? mo->mo_vlan : 0);
}

static void
word_native(char *to_text, const struct model *mo)
{
	sprintf(to_text, "%u", mo->mo_vlan);
}

static void
word_trunk(char *to_text, const struct model *mo)
{
	unsigned int v;

	if (mo->mo_mode != TRUNK) {
		strcpy(to_text, "no");
		return;
	}
	for (v = 1; v < VLANS; v++) {
		if (mo->mo_listed[v])
			to_text += sprintf(to_text, "%u+", v);
	}
	/* None of the frames is in it. */
	strcpy(to_text, "4000");
}

static void
word_source(char *to_text, const struct model *mo)
{
	unsigned int s;

	if (mo->mo_guard == 0)
		strcpy(to_text, "any");
	for (s = 1; s < STATIONS; s++) {
		if ((mo->mo_guard >> s & 1) != 0)
			to_text += sprintf(to_text, "%s02:00:00:00:00:%02x",
			    (mo->mo_guard & ((1U << s) - 1)) != 0 ? "+" : "",
			    s);
	}
}

static void
model_pattern(enum vale_learn_rule r, bool mirror)
{
	char text[256] = "";
	unsigned int i;

	for (i = 0; i < PORTS; i++) {
		if (mirror ? model[i].mo_mirror : model[i].mo_private)
			sprintf(text + strlen(text), " p%u", i);
	}
	rule(r, text);
}

/* The addresses of a port are forgotten. */
static void
model_forget(int port)
{
	unsigned int s, v;

	for (s = 0; s < STATIONS; s++)
		for (v = 0; v < VLANS; v++)
			if (learned[s][v] == port)
				learned[s][v] = -1;
}

/* Whether two ports are in the same VLANs, in the same way. */
static bool
model_same(const struct model *a, const struct model *b)
{
	const unsigned int am = a->mo_mirror ? ANY : a->mo_mode;
	const unsigned int bm = b->mo_mirror ? ANY : b->mo_mode;

	return (am == bm && (am == ANY || a->mo_vlan == b->mo_vlan) &&
	    (am != TRUNK || memcmp(a->mo_listed, b->mo_listed,
	    sizeof(a->mo_listed)) == 0));
}

static void
model_change(void)
{
	struct model before[PORTS], *mo;
	unsigned int i, v;

	memcpy(before, model, sizeof(before));

	for (mo = model; mo < model + PORTS; mo++) {
		memset(mo, 0, sizeof(*mo));
		mo->mo_mode = test_below(&rnd, 3);
		if (mo->mo_mode == ACCESS)
			mo->mo_vlan = 1 + test_below(&rnd, VLANS - 1);
		if (mo->mo_mode == TRUNK) {
			mo->mo_vlan = test_below(&rnd, VLANS);
			for (v = 1; v < VLANS; v++)
				mo->mo_listed[v] = test_chance(&rnd, 2, 3);
		}
		mo->mo_private = test_chance(&rnd, 1, 4);
		mo->mo_mirror = test_chance(&rnd, 1, 12);
		if (test_chance(&rnd, 1, 4))
			mo->mo_guard = test_below(&rnd, 1 << STATIONS) & ~1U;
	}
	/* In some rounds the switch has no VLANs. */
	if (test_chance(&rnd, 1, 4)) {
		for (mo = model; mo < model + PORTS; mo++) {
			mo->mo_mode = ANY;
			mo->mo_vlan = 0;
		}
	}
	for (i = 0; i < PORTS; i++)
		if (model[i].mo_mirror || !model_same(&before[i], &model[i]))
			model_forget(i);
	pass = test_chance(&rnd, 1, 2);
	model_list(VALE_LEARN_VLAN, word_vlan);
	model_list(VALE_LEARN_TRUNK, word_trunk);
	model_list(VALE_LEARN_NATIVE, word_native);
	model_list(VALE_LEARN_SOURCE, word_source);
	model_pattern(VALE_LEARN_PRIVATE, false);
	model_pattern(VALE_LEARN_MIRROR, true);
	vale_learn_set_reserved(&vl, pass);
}

static bool
model_aware(void)
{
	unsigned int i;

	for (i = 0; i < PORTS; i++) {
		if (model[i].mo_mode != ANY && !model[i].mo_mirror)
			return (true);
	}
	return (false);
}

static bool
model_member(unsigned int port, unsigned int v)
{
	const struct model *mo = &model[port];

	if (mo->mo_mirror || mo->mo_mode == ANY)
		return (true);
	return (v != 0 && (v == mo->mo_vlan ||
	    (mo->mo_mode == TRUNK && mo->mo_listed[v])));
}

/* The VLAN of a frame, or VLANS if it is refused. */
static unsigned int
model_vlan(unsigned int port, uint32_t tci)
{
	const struct model *mo = &model[port];
	unsigned int v = tci == NONE ? 0 : tci & 0xfff;

	if (v == 0)
		return (mo->mo_mode == TRUNK && mo->mo_vlan == 0 ? VLANS :
		    mo->mo_mode == ANY ? 0 : mo->mo_vlan);
	if (mo->mo_mode == ANY || (mo->mo_mode == TRUNK && mo->mo_listed[v]))
		return (v);
	return (VLANS);
}

/*
 * Which ports get it: 1 as it is, 2 without a tag, 3 with one.  Returns its
 * VLAN.
 */
static unsigned int
model_send(unsigned int port, unsigned int src, unsigned int dst, uint32_t tci,
    unsigned int got[PORTS])
{
	unsigned int i, v = 0;
	int to_port;

	memset(got, 0, PORTS * sizeof(*got));
	count[port][VALE_LEARN_C_FRAME]++;
	count[port][VALE_LEARN_C_BYTE] += FRAME;
	if (model[port].mo_mirror) {
		count[port][VALE_LEARN_C_DROP_MIRROR]++;
		return (0);
	}
	if (model[port].mo_guard != 0 &&
	    (model[port].mo_guard >> src & 1) == 0) {
		count[port][VALE_LEARN_C_DROP_SOURCE]++;
		return (0);
	}
	if (model_aware())
		v = model_vlan(port, tci);
	if (v == VLANS) {
		count[port][VALE_LEARN_C_DROP_VLAN]++;
		return (0);
	}
	if (learned[src][v] != (int)port)
		count[port][learned[src][v] == -1 ? VALE_LEARN_C_LEARNED :
		    VALE_LEARN_C_MOVED]++;
	learned[src][v] = port;
	to_port = dst != 0 && dst < STATIONS ? learned[dst][v] : -1;
	if (to_port != -1 && !model_member(to_port, v))
		to_port = -1;
	if (to_port == (int)port) {
		count[port][VALE_LEARN_C_DROP_SELF]++;
		return (v);
	}
	if (to_port != -1 && model[port].mo_private &&
	    model[to_port].mo_private && !model[to_port].mo_mirror) {
		count[port][VALE_LEARN_C_DROP_PRIVATE]++;
		return (v);
	}
	if (!pass && dst >= RESERVED && dst < RESERVED + 16) {
		count[port][VALE_LEARN_C_DROP_RESERVED]++;
		return (v);
	}
	if (to_port == -1)
		count[port][VALE_LEARN_C_FLOOD]++;
	for (i = 0; i < PORTS; i++) {
		if (i == port || (!model[i].mo_mirror && (!model_member(i, v) ||
		    (to_port != -1 ? i != (unsigned int)to_port :
		    model[port].mo_private && model[i].mo_private))))
			continue;
		got[i] = v == 0 ? 1 : !model[i].mo_mirror &&
		    model[i].mo_mode != ANY && v == model[i].mo_vlan ? 2 : 3;
	}
	return (v);
}

/* What a port gets must be the frame in its form. */
static void
check_bytes(unsigned int src, unsigned int dst, uint32_t tci, unsigned int vlan,
    const struct vale_learn_plan *plan, unsigned int form)
{
	uint8_t expected[FRAME + VALE_VLAN_TAG], frame[FRAME];
	uint32_t len = FRAME;

	write_frame(frame, src, dst, tci, sizeof(frame));
	vale_learn_frame_begin(&lf, 0);
	memcpy(vale_learn_frame_append(&lf, sizeof(frame)), frame,
	    sizeof(frame));
	ATF_REQUIRE(vale_learn_frame_end(&lf));
	vale_learn_frame_form(&lf, plan->lpn_vlan, form == 3);
	memset(expected, 0x5a, sizeof(expected));
	if (form == 1)
		memcpy(expected, frame, sizeof(frame));
	else if (form == 2) {
		len = FRAME - (tci == NONE ? 0 : VALE_VLAN_TAG);
		write_frame(expected, src, dst, NONE, len);
	} else {
		len = FRAME + (tci == NONE ? VALE_VLAN_TAG : 0);
		write_frame(expected, src, dst, vlan |
		    (tci == NONE ? 0 : tci & 0xf000), FRAME);
	}
	ATF_REQUIRE_EQ(len, lf.lf_len);
	ATF_REQUIRE(memcmp(expected, vale_learn_frame_data(&lf), len) == 0);
}

static void
send_random(unsigned int sent[4])
{
	static const uint32_t priority[] = { 0, 0x3000, 0xf000 };
	struct vale_learn_plan plan;
	unsigned int dst, form, got[PORTS], i, port, src, vlan;
	uint8_t frame[FRAME];
	uint32_t tci = NONE;

	port = test_below(&rnd, PORTS);
	src = 1 + test_below(&rnd, STATIONS - 1);
	dst = test_below(&rnd, STATIONS);
	if (test_chance(&rnd, 1, 8))
		dst = RESERVED + test_below(&rnd, 18);
	if (test_chance(&rnd, 1, 2))
		tci = priority[test_below(&rnd, 3)] |
		    test_below(&rnd, VLANS);
	write_frame(frame, src, dst, tci, sizeof(frame));
	(void)send_frame(place[port], frame, sizeof(frame), &plan);
	vlan = model_send(port, src, dst, tci, got);
	for (i = 0; i < PORTS; i++) {
		form = 0;
		if (vale_learn_set_has(&plan.lpn_to[0], place[i]))
			form = plan.lpn_vlan == 0 ? 1 : 2;
		if (vale_learn_set_has(&plan.lpn_to[1], place[i])) {
			ATF_REQUIRE_EQ(0, form);
			form = 3;
		}
		ATF_REQUIRE_EQ_MSG(got[i], form, "from %u to %u: %u>%u tci %#x:"
		    " %u, not %u", port, i, src, dst, tci, form, got[i]);
		if (form != 0)
			check_bytes(src, dst, tci, vlan, &plan, form);
		sent[form]++;
	}
}

TEST(random, "Random frames under random rules go where a simple model sends "
    "them, in the form that it gives them, and are counted")
{
	unsigned int c, i, round, sent[4] = { 0 };
	char name[16];

	vale_learn_init(&vl, seed);
	memset(learned, 0xff, sizeof(learned));
	for (i = 0; i < PORTS; i++) {
		snprintf(name, sizeof(name), "vale0:p%u", i);
		add(place[i], name);
	}
	/* The default. */
	ATF_CHECK(vl.vl_reserved);
	for (rnd = 45, round = 0; round < 2000; round++) {
		model_change();
		for (i = 0; i < 50; i++)
			send_random(sent);
	}
	printf("none %u plain %u without %u with %u\n", sent[0], sent[1],
	    sent[2], sent[3]);
	for (i = 0; i < 4; i++)
		ATF_CHECK(sent[i] > 10000);
	for (i = 0; i < PORTS; i++)
		for (c = 0; c < VALE_LEARN_NCOUNTERS; c++)
			ATF_CHECK_EQ_MSG(count[i][c], counted(place[i], c),
			    "port %u, counter %u: %ju", i, c,
			    (uintmax_t)counted(place[i], c));
	end();
}

TEST_PROGRAM
