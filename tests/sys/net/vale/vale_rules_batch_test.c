/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What vale_rules.c does to a batch, without a switch: the copies of what the
 * rules look at, and frames in other forms.
 */

#include <sys/param.h>

#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "vale_rules.h"
#include "vale_test.h"

#define	ADDRS	12		/* bytes of a frame's addresses */
#define	TAG	4

static struct vale_txq vt;

/* The senders' memory, what was in it, and how much of it is in use. */
static uint8_t	memory[4 << 20], was[sizeof(memory)];
static uint32_t	used;

static void
begin(void)
{
	uint32_t i;

	memset(&vt, 0, sizeof(vt));
	ATF_REQUIRE_EQ(0, vale_txq_init(&vt, 1024));
	for (i = 0; i < sizeof(memory); i++)
		memory[i] = i * 7 + i / 251;
	memcpy(was, memory, sizeof(was));
	used = 0;
}

static void
end(void)
{
	vale_txq_fini(&vt);
}

/* Add a frame with such fragments.  Returns its first one. */
static struct vale_frag *
add(const uint16_t *lens, uint32_t n)
{
	struct vale_frag *fg = &vt.vt_frag[vt.vt_nfrags];
	uint32_t i;

	fg->fg_frame_len = 0;
	for (i = 0; i < n; i++) {
		fg[i].fg_buf = memory + used;
		fg[i].fg_len = lens[i];
		fg->fg_frame_len += lens[i];
		used += lens[i];
	}
	ATF_REQUIRE(used <= sizeof(memory));
	fg->fg_nfrags = n;
	fg->fg_slots = 1;
	fg->fg_offload = VALE_PLAIN;
	vt.vt_nfrags += n;
	return (fg);
}

/* Expect that the frame has these bytes, in no empty fragment. */
static void
expect_bytes(const struct vale_frag *fg, const uint8_t *bytes, uint32_t len)
{
	uint32_t i;

	ATF_CHECK_EQ(len, fg->fg_frame_len);
	for (i = 0; i < fg->fg_nfrags; i++) {
		ATF_CHECK(fg[i].fg_len > 0 && fg[i].fg_len <= len);
		ATF_REQUIRE(memcmp(bytes, fg[i].fg_buf, fg[i].fg_len) == 0);
		bytes += fg[i].fg_len;
		len -= fg[i].fg_len;
	}
	ATF_CHECK_EQ(0, len);
}

TEST(gather, "The first bytes of a frame in any fragments, then zeros")
{
	static const uint16_t rows[][4] = { { 1, 1, 1 }, { 3 }, { 3, 5 },
	    { 3, 5, 9 }, { 12, 6 }, { 17, 1 }, { 18 }, { 19 }, { 200 } };
	uint8_t head[20];
	unsigned int i;
	uint32_t len, n, total;

	begin();
	for (i = 0; i < nitems(rows); i++)
		for (len = 1; len <= 18; len++) {
			vt.vt_nfrags = used = 0;
			for (n = total = 0; rows[i][n] != 0; n++)
				total += rows[i][n];
			(void)add(rows[i], n);
			/* Another one is behind it. */
			(void)add(rows[2], 2);
			memset(head, 0xee, sizeof(head));
			vale_rules_gather(vt.vt_frag, len, head);
			ATF_CHECK(memcmp(memory, head, MIN(len, total)) == 0);
			for (n = total; n < len; n++)
				ATF_CHECK_EQ(0, head[n]);
			ATF_CHECK_EQ(0xee, head[len]);
		}
	end();
}

TEST(tag, "A tag is one of type 8100, and its VLAN has 12 bits")
{
	static const struct {
		uint8_t		bytes[4];
		unsigned int	vlan;
	} rows[] = {
		{ { 0x81, 0, 0, 10 }, 10 }, { { 0x81, 0, 0xf1, 10 }, 266 },
		{ { 0x81, 0, 0xf0, 0 }, 0 }, { { 0x81, 0, 0xaf, 0xff }, 4095 },
		{ { 0x81, 0, 0x02, 0x81 }, 641 },
		{ { 0x81, 1, 0, 10 }, VALE_TAG_NONE },
		{ { 0x80, 0, 0, 10 }, VALE_TAG_NONE },
		{ { 0x88, 0xa8, 0, 10 }, VALE_TAG_NONE },
		{ { 0x08, 0, 0x81, 0 }, VALE_TAG_NONE },
	};
	uint8_t head[VALE_HEAD_TAG] = { 0 };
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		memcpy(head + ADDRS, rows[i].bytes, TAG);
		ATF_CHECK_EQ_MSG(rows[i].vlan, vale_rules_tag(head), "row %u",
		    i);
	}
}

/* A frame of a batch, as it was before. */
struct frame_was {
	const uint8_t	*bytes;
	uint32_t	 len, nfrags, first;
	bool		 offload;
};

/* Fill a batch with random frames.  Returns their number. */
static uint32_t
fill(struct frame_was *fw, uint32_t *seed)
{
	static const uint16_t some[] = { 1, 1, 13, 14, 60, 60, 191, 192, 193,
	    2048 };
	/* Most batches begin with frames that are copied whole. */
	const uint32_t whole = test_random(seed) % 8;
	uint16_t lens[NETMAP_MAX_FRAGS];
	struct vale_frag *fg;
	uint32_t i, n, frames;

	for (frames = 0; vt.vt_nfrags < 200; frames++, fw++) {
		n = test_random(seed) % 4 != 0 ? 1 + test_random(seed) % 5 :
		    NETMAP_MAX_FRAGS - test_random(seed) % 2;
		for (i = 0; i < n; i++)
			lens[i] = some[test_random(seed) % nitems(some)];
		if (frames < whole) {
			n = 1;
			lens[0] = MIN(lens[0], VALE_GUARD_HEAD);
		}
		fw->bytes = was + used;
		fw->nfrags = n;
		fw->first = vt.vt_nfrags;
		fg = add(lens, n);
		fw->len = fg->fg_frame_len;
		/* Its headers, a fragment of their own, are a copy. */
		fw->offload = n > 1 && test_random(seed) % 4 == 0;
		if (fw->offload)
			fg->fg_offload = 7;
	}
	return (frames);
}

/* Whether the frame's head is copied, and what it is copied of has no space. */
static bool
is_dropped(const struct frame_was *fw, uint32_t first_len)
{
	return (!fw->offload && fw->nfrags == NETMAP_MAX_FRAGS &&
	    first_len > MIN(fw->len, VALE_GUARD_HEAD));
}

static void
check_copied(const struct frame_was *fw, const struct vale_frag *fg,
    uint32_t first_len)
{
	const uint32_t head = MIN(fw->len, VALE_GUARD_HEAD);

	if (fw->offload) {
		ATF_CHECK_EQ(7, fg->fg_offload);
		ATF_CHECK_EQ(fw->nfrags, fg->fg_nfrags);
		ATF_CHECK_EQ(first_len, fg->fg_len);
		ATF_CHECK_EQ(fw->bytes - was, fg->fg_buf - memory);
		return;
	}
	ATF_CHECK_EQ(VALE_PLAIN, fg->fg_offload);
	ATF_CHECK_EQ(head, fg->fg_len);
	ATF_CHECK(fg->fg_nfrags <= MIN(fw->nfrags + 1, NETMAP_MAX_FRAGS));
	ATF_CHECK(fg->fg_buf >= vt.vt_heads && fg->fg_buf + head <=
	    vt.vt_heads + VALE_HEADS_SIZE);
	expect_bytes(fg, fw->bytes, fw->len);
}

TEST(copy, "What the rules look at of each frame is copied, whatever its "
    "fragments, and all of it is there")
{
	static struct frame_was fw[300];
	static uint16_t first_len[300];
	uint32_t at, dropped, expected, first, frames, i, round, seed = 1;
	uint32_t whole;
	const struct vale_frag *fg;

	begin();
	for (round = 0; round < 300; round++) {
		vt.vt_nfrags = used = 0;
		vt.vt_headed = false;
		frames = fill(fw, &seed);
		expected = whole = 0;
		for (i = 0; i < frames; i++) {
			first_len[i] = vt.vt_frag[fw[i].first].fg_len;
			expected += is_dropped(&fw[i], first_len[i]);
			if (whole == i && fw[i].nfrags == 1 &&
			    fw[i].len <= VALE_GUARD_HEAD && !fw[i].offload)
				whole++;
		}
		first = vale_rules_copy(&vt, &dropped);
		ATF_CHECK(vt.vt_headed);
		ATF_CHECK_EQ(expected, dropped);
		/* The first one that was not copied whole. */
		ATF_CHECK_EQ(whole, first);
		/* No head depends on the senders' memory any more. */
		for (i = at = 0; i < frames; i++) {
			if (is_dropped(&fw[i], first_len[i]))
				continue;
			fg = &vt.vt_frag[at];
			if (!fw[i].offload)
				memset(memory + (fw[i].bytes - was), 0xee,
				    MIN(fw[i].len, VALE_GUARD_HEAD));
			at += fg->fg_nfrags;
		}
		ATF_CHECK_EQ(at, vt.vt_nfrags);
		for (i = at = 0; i < frames; i++) {
			if (is_dropped(&fw[i], first_len[i]))
				continue;
			check_copied(&fw[i], &vt.vt_frag[at], first_len[i]);
			at += vt.vt_frag[at].fg_nfrags;
		}
		memcpy(memory, was, used);
	}
	end();
}

/*
 * Expect the form of a frame with a priority that has a tag with that and VLAN
 * 10, or none.
 */
static void
expect_form(uint32_t index, const uint8_t *bytes, uint32_t len, bool tagged)
{
	static uint8_t want[VALE_FRAME_MAX];
	const struct vale_frag *fg = &vt.vt_frag[index];

	if (!tagged)
		len -= TAG;
	memcpy(want, bytes, ADDRS);
	memcpy(want + ADDRS, bytes + ADDRS + (tagged ? 0 : TAG), len - ADDRS);
	if (tagged)
		want[ADDRS + 3] = 10;
	ATF_REQUIRE(index >= VALE_FORM_FIRST);
	ATF_CHECK(index + fg->fg_nfrags <= nitems(vt.vt_frag));
	expect_bytes(fg, want, len);
	ATF_CHECK_EQ(howmany(len, 2048), fg->fg_slots);
}

/* What is known of frame `i': its headers are as long as no other's. */
static void
expect_known(const struct vale_frag *fg, uint32_t i, int more)
{
	const struct frame *known = vale_offload(&vt, fg);

	ATF_REQUIRE(known != NULL);
	ATF_CHECK_EQ((uint32_t)(60 + more), known->f_len);
	ATF_CHECK_EQ(54 + i + more, (uint32_t)known->f_hdr_len);
	ATF_CHECK_EQ(34 + i + more, (uint32_t)known->f_csum_start);
	ATF_CHECK_EQ(16, known->f_csum_offset);
}

TEST(forms, "There is space for both forms of a frame up to one of three "
    "limits, which are reached exactly; none is written over another")
{
	static const struct {
		uint32_t	nfrags, len;
		bool		offload, odd;
		uint32_t	frames;
	} rows[] = {
		/* 1024 forms; 64 of what is known; 1152 fragments. */
		{ 1, 16, false, false, 1024 / 2 },
		{ 1, 60, true, false, 64 / 2 },
		{ 63, 40, false, false, 1152 / 64 / 2 },
		/* There must be space for the longest ones. */
		{ 1, 20, false, false, (1152 - 128) / 4 + 1 },
		{ 2, 20, false, false, (1152 - 128) / 6 + 1 },
		/* A single form with one fragment, then pairs. */
		{ 1, 16, false, true, 1 + (1024 - 1) / 2 },
		{ 1, 60, true, true, 1 + (64 - 1) / 2 },
		{ 1, 20, false, true, 1 + (1152 - 128) / 4 },
	};
	static uint32_t index[1024][2];
	static uint8_t headers[sizeof(vt.vt_offloads.of_headers)];
	uint16_t lens[NETMAP_MAX_FRAGS];
	struct vale_frag *fg;
	uint32_t at, i, n;
	unsigned int row;

	for (row = 0; row < nitems(rows); row++) {
		begin();
		memset(vt.vt_offloads.of_headers, 0x5a, sizeof(headers));
		memset(headers, 0x5a, sizeof(headers));
		vale_rules_begin(&vt);
		for (i = 0; i < nitems(lens); i++)
			lens[i] = rows[row].len;
		for (n = 0; vale_rules_space(&vt); n++) {
			ATF_REQUIRE(n < nitems(index));
			memcpy(memory + used + ADDRS, "\x81\x00\x60\x00", TAG);
			at = vt.vt_nfrags;
			lens[0] = rows[row].odd && n == 0 &&
			    !rows[row].offload ? 16 : rows[row].len;
			fg = add(lens, rows[row].nfrags);
			if (rows[row].offload) {
				fg->fg_offload = VALE_OFFLOADS - 1 - n;
				vt.vt_offloads.of_frame[fg->fg_offload] =
				    (struct frame){ .f_len = 60,
				    .f_hdr_len = 54 + n, .f_csum_start = 34 + n,
				    .f_csum_offset = 16 };
			}
			index[n][0] = vale_rules_form(&vt, at, 10, false);
			index[n][1] = rows[row].odd && n == 0 ? VALE_END :
			    vale_rules_form(&vt, at, 10, true);
		}
		ATF_CHECK_EQ_MSG(rows[row].frames, n, "row %u: %u", row, n);
		for (i = 0, fg = vt.vt_frag; i < n; i++, fg += fg->fg_nfrags) {
			expect_form(index[i][0], fg->fg_buf, fg->fg_frame_len,
			    false);
			if (index[i][1] != VALE_END)
				expect_form(index[i][1], fg->fg_buf,
				    fg->fg_frame_len, true);
			if (rows[row].offload) {
				expect_known(fg, i, 0);
				expect_known(&vt.vt_frag[index[i][0]], i, -TAG);
				if (index[i][1] != VALE_END)
					expect_known(&vt.vt_frag[index[i][1]],
					    i, 0);
			}
		}
		ATF_CHECK(memcmp(headers, vt.vt_offloads.of_headers,
		    sizeof(headers)) == 0);
		end();
	}
}

TEST_PROGRAM
