/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * libvale's calls: names, errors, the descriptor to wait on, lists and
 * settings.
 */

#include <sys/param.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "vale_pair.h"
#include "vale_name.h"
#include "vale_test.h"

TEST(name_rules, "What is wrong with a name is said; the kernel takes fewer "
    "names")
{
	/* Parts of the messages; NULL: valid. */
	static const struct {
		const char *name, *user, *kernel;
	} t[] = {
		{ "vale0:vm1", NULL, NULL },
		{ "vale:a", NULL, NULL },
		{ "vale_A9:b-c.d_E", NULL, NULL },
		{ "em0", "begin", "begin" },
		{ "val", "begin", "begin" },
		{ "vale7", "missing", "missing" },
		{ "vale7:", "missing", "missing" },
		{ "vale-x:b", NULL, "digits and '_' are" },
		{ "vale.x:b", NULL, "digits and '_' are" },
		{ "vale x:b", "before the ':' only letters, digits, '_', '-'",
		    "digits and '_' are" },
		{ "vale0:a/b", "after the ':' only", "after the ':' only" },
		{ "vale0:a:b", "after the ':' only", "after the ':' only" },
		{ "vale01234567890:b", NULL, NULL },
		{ "vale012345678901:b", NULL, "before the ':' there are more" },
		{ "vale0:012345678901234", NULL, NULL },
		{ "vale0:0123456789012345", NULL, "after the ':' there are" },
		{ "vale0123456789012345678901234567890123456789:"
		    "0123456789012345678", "more than 63", "more than 63" }
	};
	const char *error;
	unsigned int i, j;

	for (i = 0; i < nitems(t); i++)
		for (j = 0; j < 2; j++) {
			const char *want = j == 0 ? t[i].user : t[i].kernel;

			error = j == 0 ? vale_name_error(t[i].name) :
			    vale_name_check(t[i].name, &vale_name_kernel);
			ATF_CHECK_MSG((error == NULL) == (want == NULL) &&
			    (want == NULL || strstr(error, want) != NULL),
			    "%s: %s", t[i].name, error);
		}
}

TEST(smallest, "Rings of two slots hold one frame at a time")
{
	struct vale_desc *a, *b;
	uint32_t seq;

	a = t_open("valet0:a", 2, 2);
	b = t_open("valet0:b", 2, 2);
	ATF_CHECK_EQ(0, vale_limit(a));
	for (seq = 0; seq < 10; seq++) {
		ATF_CHECK_EQ(1, nm_ring_space(a->txring));
		t_send(a, 60, EVERYBODY, 0, seq);
		t_expect(b, 60, 0, seq);
	}
	vale_close(a);
	vale_close(b);
}

TEST(readable, "The descriptor is readable from the first frame until a sync "
    "finds none, with one wakeup")
{
	struct vale_desc *a, *b;
	struct t_frame f;
	uint32_t seq;

	a = t_open("valet0:a", 0, 0);
	b = t_open("valet0:b", 0, 0);
	ATF_CHECK(!t_readable(b));
	for (seq = 0; seq < 3; seq++) {
		t_send(a, 60, EVERYBODY, 0, seq);
		ATF_CHECK(t_readable(b));
	}
	T_COUNT(b, RX_WAKE, 1);

	/* Frames that wait, or are not released: still readable. */
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	ATF_CHECK(t_readable(b));
	for (seq = 0; seq < 3; seq++) {
		ATF_REQUIRE(t_take(b, &f));
		ATF_CHECK(t_readable(b));
	}
	/* More frames come before a sync finds none. */
	t_send(a, 60, EVERYBODY, 0, 3);
	t_send(a, 60, EVERYBODY, 0, 4);
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	ATF_CHECK(t_readable(b));
	T_COUNT(b, RX_WAKE, 1);
	ATF_REQUIRE(t_take(b, &f));
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	ATF_CHECK(t_readable(b));
	ATF_REQUIRE(t_take(b, &f));
	t_expect_none(b);
	ATF_CHECK(!t_readable(b));
	t_expect_none(b);
	ATF_CHECK(!t_readable(b));

	t_send(a, 60, EVERYBODY, 0, 5);
	ATF_CHECK(t_readable(b));
	T_COUNT(b, RX_WAKE, 2);
	ATF_CHECK(!t_readable(a));
	vale_close(a);
	vale_close(b);
}

struct seen {
	unsigned int	n;
	unsigned int	stop_at;
	char		last[VALE_NAME_SIZE];
	unsigned int	port_of[8];
};

static int
see_port(const struct vale_port_info *info, void *arg)
{
	struct seen *seen = arg;

	snprintf(seen->last, sizeof(seen->last), "%s", info->vpi_name);
	ATF_CHECK_EQ(seen->n % 3 * 100 + 50, info->vpi_tx_slots);
	ATF_CHECK_EQ(60, info->vpi_rx_slots);
	ATF_CHECK_EQ(seen->n % 3, info->vpi_index);
	return (++seen->n == seen->stop_at ? 42 : 0);
}

static int
see_addr(const struct vale_fdb_entry *entry, void *arg)
{
	struct seen *seen = arg;
	uint8_t addr[6];

	t_addr(addr, entry->fe_addr[5]);
	ATF_CHECK_EQ(0, memcmp(addr, entry->fe_addr, sizeof(addr)));
	ATF_REQUIRE(entry->fe_addr[5] < 8);
	ATF_CHECK(entry->fe_age_s < 100);
	seen->port_of[entry->fe_addr[5]] = entry->fe_port + 1;
	seen->n++;
	return (0);
}

TEST(ctl, "Ports, counters and addresses of all switches can be listed")
{
	struct vale_desc *d[6];
	uint64_t counters[VALE_NCOUNTERS];
	struct seen seen;
	char name[VALE_NAME_SIZE];
	unsigned int i, j;

	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "valet%u:p%u", i / 3, i % 3);
		d[i] = t_open(name, i % 3 * 100 + 50, 60);
	}
	memset(&seen, 0, sizeof(seen));
	ATF_CHECK_EQ(0, vale_list(NULL, see_port, &seen));
	ATF_CHECK_EQ(6, seen.n);
	memset(&seen, 0, sizeof(seen));
	ATF_CHECK_EQ(0, vale_list("valet1", see_port, &seen));
	ATF_CHECK_EQ(3, seen.n);
	ATF_CHECK_STREQ("valet1:p2", seen.last);
	memset(&seen, 0, sizeof(seen));
	ATF_CHECK_EQ(0, vale_list("valet", see_port, &seen));
	ATF_CHECK_EQ(0, seen.n);
	seen.stop_at = 4;
	ATF_CHECK_EQ(42, vale_list(NULL, see_port, &seen));
	ATF_CHECK_STREQ("valet1:p0", seen.last);

	t_send(d[0], 60, EVERYBODY, 5, 0);
	t_send(d[0], 60, EVERYBODY, 6, 0);
	t_send(d[2], 60, 5, 7, 0);
	memset(&seen, 0, sizeof(seen));
	ATF_CHECK_EQ(0, vale_fdb_list("valet0", see_addr, &seen));
	ATF_CHECK_EQ(3, seen.n);
	ATF_CHECK_EQ(1, seen.port_of[5]);
	ATF_CHECK_EQ(1, seen.port_of[6]);
	ATF_CHECK_EQ(3, seen.port_of[7]);
	ATF_CHECK_EQ(0, vale_fdb_list("valet1", see_addr, &seen));
	ATF_CHECK_EQ(3, seen.n);
	ATF_CHECK_EQ(-1, vale_fdb_list("valet9", see_addr, &seen));
	ATF_CHECK_EQ(ENXIO, errno);

	ATF_REQUIRE_EQ(0, vale_port_counters("valet0:p1", counters));
	ATF_CHECK_EQ(2, counters[VALE_C_RX_FRAME]);
	ATF_CHECK_EQ(-1, vale_port_counters("valet0:p9", counters));
	ATF_CHECK_EQ(ENXIO, errno);
	for (i = 0; i < VALE_NCOUNTERS; i++) {
		ATF_CHECK(vale_counter_table[i].cr_name[0] != '\0');
		ATF_CHECK(vale_counter_table[i].cr_desc[0] != '\0');
		for (j = 0; j < i; j++)
			ATF_CHECK(strcmp(vale_counter_table[i].cr_name,
			    vale_counter_table[j].cr_name) != 0);
	}

	ATF_CHECK_EQ(0, vale_set("valet0", "ageing", "0"));
	ATF_CHECK_EQ(0, vale_set("valet0", "ageing", "1000000"));
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0", "ageing", "1000001") == -1);
	ATF_CHECK_ERRNO(ENXIO, vale_set("valet9", "ageing", "300") == -1);

	/* Port 0 has two addresses, and its limit is now two. */
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0:p0", "limit", "5121") == -1);
	ATF_CHECK_ERRNO(ENXIO, vale_set("valet0:p9", "limit", "2") == -1);
	ATF_CHECK_ERRNO(ENXIO, vale_set("valet9:p0", "limit", "2") == -1);
	ATF_CHECK_EQ(0, vale_set("valet0:p0", "limit", "2"));
	t_send(d[0], 60, EVERYBODY, 8, 0);
	t_send(d[0], 60, EVERYBODY, 5, 0);
	ATF_REQUIRE_EQ(0, vale_port_counters("valet0:p0", counters));
	ATF_CHECK_EQ(1, counters[VALE_C_TX_DROP_LIMIT]);
	ATF_CHECK_EQ(3, counters[VALE_C_TX_FLOOD]);
	ATF_REQUIRE_EQ(0, vale_port_counters("valet0:p1", counters));
	ATF_CHECK_EQ(3, counters[VALE_C_RX_FRAME]);
	for (i = 0; i < 6; i++)
		vale_close(d[i]);
	memset(&seen, 0, sizeof(seen));
	ATF_CHECK_EQ(0, vale_list(NULL, see_port, &seen));
	ATF_CHECK_EQ(0, seen.n);
}

/* Send frames that are delivered, flooded, and dropped for several reasons. */
static void
send_some(struct vale_desc *a, struct vale_desc *b)
{
	unsigned int i;

	t_send(b, 60, EVERYBODY, 2, 0);
	t_send(a, 100, 2, 1, 0);
	t_send(a, 1500, EVERYBODY, 1, 1);
	t_send(a, 60, 1, 3, 2);
	t_send(a, T_FRAME_MIN, 77, 1, 3);
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	for (i = 0; i < 100; i++)
		t_send(a, 3000, 2, 1, i);
	t_drain(b);
	/* Without a header, and to itself. */
	a->txring->slot[a->txring->head].len = 3;
	a->txring->slot[a->txring->head].flags = 0;
	a->txring->head = nm_ring_next(a->txring, a->txring->head);
	ATF_REQUIRE_EQ(0, vale_txsync(a));
	t_send(a, 60, 1, 1, 5);
	a->rxring->head = a->rxring->num_slots;
	ATF_CHECK_EQ(-1, vale_rxsync(a));
}

TEST(counters_wrap, "A port's counters go on past 2^32 and 2^64")
{
	static const uint64_t starts[] = { 0, UINT32_MAX, UINT64_MAX };
	uint64_t counters[VALE_NCOUNTERS], first[2][VALE_NCOUNTERS], n;
	static const char *const names[] = { "valet0:a", "valet0:b" };
	struct vale_desc *d[2];
	struct vale_pair *pair;
	unsigned int i, j, moved, p;

	moved = 0;
	for (i = 0; i < nitems(starts); i++) {
		for (p = 0; p < 2; p++) {
			d[p] = t_open(names[p], 64, 64);
			pair = vale_desc_pair(d[p]);
			for (j = 0; j < VALE_NCOUNTERS; j++)
				pair->pa_counter[j] = starts[i];
			pair->pa_rx.rq_syncs = starts[i];
		}
		send_some(d[0], d[1]);
		for (p = 0; p < 2; p++) {
			ATF_REQUIRE_EQ(0, vale_port_counters(names[p],
			    counters));
			for (j = 0; j < VALE_NCOUNTERS; j++) {
				n = counters[j] - starts[i];
				if (i == 0)
					first[p][j] = n;
				moved += n > 0;
				ATF_CHECK_EQ_MSG(first[p][j], n,
				    "%s of %s from %ju: %ju",
				    vale_counter_table[j].cr_name, names[p],
				    (uintmax_t)starts[i], (uintmax_t)n);
			}
		}
		for (p = 0; p < 2; p++)
			vale_close(d[p]);
	}
	ATF_CHECK_MSG(moved >= 3 * 20, "%u", moved);
}

TEST_PROGRAM
