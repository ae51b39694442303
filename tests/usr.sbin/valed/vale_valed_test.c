/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * libvale over a connection to valed: which requests about switches it sends,
 * and what it makes of replies.
 */

#include <sys/param.h>
#include <sys/systm.h>
#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_rate.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "open_fds.h"
#include "setting.h"
#include "fail_calls.h"
#include "test.h"
#include "vale_client.h"
#include "vale_setting.h"
#include "wire_connect.h"

struct page {
	struct vale_wire_page	 page;
	union {
		struct vale_wire_port	 port[2];
		struct vale_wire_addr	 addr[2];
	};
};

static struct page
ports(unsigned int count, const char *first, const char *second)
{
	struct page p;
	unsigned int i, k;

	memset(&p, 0, sizeof(p));
	p.page.wp_count = count;
	for (i = 0; i < count; i++) {
		strcpy(p.port[i].wo_name, i == 0 ? first : second);
		p.port[i].wo_index = 3 + i;
		p.port[i].wo_rings = 2;
		p.port[i].wo_tx_slots = 64;
		p.port[i].wo_rx_slots = 128;
		p.port[i].wo_ncounters = VALE_NCOUNTERS;
		for (k = 0; k < VALE_NCOUNTERS; k++)
			p.port[i].wo_counter[k] = 100 * i + k;
	}
	return (p);
}

static size_t
ports_size(unsigned int count)
{
	return (sizeof(struct vale_wire_page) +
	    count * sizeof(struct vale_wire_port));
}

struct shown {
	unsigned int	n;
	unsigned int	stop_at;	/* entry at which show() returns 7 */
	struct vale_port_info port[4];
	struct vale_fdb_entry addr[4];
};

static int
show_port(const struct vale_port_info *info, void *arg)
{
	struct shown *s = arg;

	ATF_REQUIRE(s->n < nitems(s->port));
	s->port[s->n++] = *info;
	return (s->n == s->stop_at ? 7 : 0);
}

static int
show_addr(const struct vale_fdb_entry *entry, void *arg)
{
	struct shown *s = arg;

	ATF_REQUIRE(s->n < nitems(s->addr));
	s->addr[s->n++] = *entry;
	return (s->n == s->stop_at ? 7 : 0);
}

/* The number from which a request wants a page. */
static uint32_t
asked(int fd, uint16_t type, const char *name)
{
	struct wire_request wr = request(fd, type, name,
	    sizeof(struct vale_wire_page));
	struct vale_wire_page page;

	memcpy(&page, wr.wr_body, sizeof(page));
	ATF_CHECK_EQ(0, page.wp_count);
	return (page.wp_first);
}

TEST(list, "Ports are listed page by page, until a page is empty")
{
	const struct page two = ports(2, "vale0:a", "vale0:b"),
	    one = ports(1, "vale0:c", NULL), none = ports(0, NULL, NULL);
	const unsigned int fds = open_fds();
	struct shown s = { .n = 0 };
	int fd[3];

	fd[0] = prepare_reply(0, &two, ports_size(2));
	fd[1] = prepare_reply(0, &one, ports_size(1));
	fd[2] = prepare_reply(0, &none, ports_size(0));
	ATF_CHECK_EQ(0, vale_list(NULL, show_port, &s));
	ATF_CHECK_EQ(0, asked(fd[0], VALE_WIRE_PORTS, ""));
	ATF_CHECK_EQ(2, asked(fd[1], VALE_WIRE_PORTS, ""));
	ATF_CHECK_EQ(3, asked(fd[2], VALE_WIRE_PORTS, ""));
	finish();
	ATF_REQUIRE_EQ(3, s.n);
	ATF_CHECK_STREQ("vale0:a", s.port[0].vpi_name);
	ATF_CHECK_STREQ("vale0:b", s.port[1].vpi_name);
	ATF_CHECK_STREQ("vale0:c", s.port[2].vpi_name);
	ATF_CHECK_EQ(4, s.port[1].vpi_index);
	ATF_CHECK_EQ(2, s.port[1].vpi_rings);
	ATF_CHECK_EQ(64, s.port[1].vpi_tx_slots);
	ATF_CHECK_EQ(128, s.port[1].vpi_rx_slots);
	ATF_CHECK_EQ(100 + VALE_NCOUNTERS - 1,
	    s.port[1].vpi_counter[VALE_NCOUNTERS - 1]);
	/* Of a switch. */
	fd[0] = prepare_reply(0, &none, ports_size(0));
	ATF_CHECK_EQ(0, vale_list("vale3", show_port, &s));
	ATF_CHECK_EQ(0, asked(fd[0], VALE_WIRE_PORTS, "vale3"));
	finish();
	ATF_CHECK_EQ(fds, open_fds());
}

TEST(list_ends, "A list ends with what the function returns, or with an error")
{
	const struct page two = ports(2, "vale0:a", "vale0:b");
	struct shown s = { .stop_at = 1 };

	prepare_reply(0, &two, ports_size(2));
	ATF_CHECK_EQ(7, vale_list("vale0", show_port, &s));
	ATF_CHECK_EQ(1, s.n);
	/* In the second page. */
	s = (struct shown){ .stop_at = 3 };
	prepare_reply(0, &two, ports_size(2));
	prepare_reply(0, &two, ports_size(2));
	ATF_CHECK_EQ(7, vale_list("vale0", show_port, &s));
	ATF_CHECK_EQ(3, s.n);
	/* A page of another size than it says. */
	s.n = 0;
	prepare_reply(0, &two, ports_size(2) - 1);
	ATF_CHECK_ERRNO(EPROTO, vale_list("vale0", show_port, &s) == -1);
	prepare_reply(0, &two, ports_size(1));
	ATF_CHECK_ERRNO(EPROTO, vale_list("vale0", show_port, &s) == -1);
	prepare_reply(ENXIO, NULL, 0);
	ATF_CHECK_ERRNO(ENXIO, vale_list("vale0", show_port, &s) == -1);
	ATF_CHECK_EQ(0, s.n);
	finish();
	ATF_CHECK_ERRNO(ECONNREFUSED, vale_list("vale0", show_port, &s) ==
	    -1);
	fail_calls(NULL, 1, 1);
	ATF_CHECK_ERRNO(ENOMEM, vale_list("vale0", show_port, &s) == -1);
	ATF_CHECK_EQ(1, fail_calls_end());
}

TEST(addresses, "Addresses are listed with their ports and ages")
{
	struct page p = { .page.wp_count = 2 };
	const struct page none = { .page.wp_count = 0 };
	struct shown s = { .n = 0 };
	int fd[2];

	memcpy(p.addr[1].wa_addr, "\2\0\0\0\0\1", 6);
	p.addr[1].wa_port = 253;
	p.addr[1].wa_age_s = 70000;
	fd[0] = prepare_reply(0, &p, sizeof(p.page) + sizeof(p.addr));
	fd[1] = prepare_reply(0, &none, sizeof(p.page));
	ATF_CHECK_EQ(0, vale_fdb_list("vale0", show_addr, &s));
	ATF_CHECK_EQ(0, asked(fd[0], VALE_WIRE_ADDRS, "vale0"));
	ATF_CHECK_EQ(2, asked(fd[1], VALE_WIRE_ADDRS, "vale0"));
	ATF_REQUIRE_EQ(2, s.n);
	ATF_CHECK_EQ(0, memcmp("\2\0\0\0\0\1", s.addr[1].fe_addr, 6));
	ATF_CHECK_EQ(253, s.addr[1].fe_port);
	ATF_CHECK_EQ(70000, s.addr[1].fe_age_s);
	s = (struct shown){ .stop_at = 2 };
	prepare_reply(0, &p, sizeof(p.page) + sizeof(p.addr));
	ATF_CHECK_EQ(7, vale_fdb_list("vale0", show_addr, &s));
	finish();
}

TEST(counters, "A port's counters are those of the port with the name, or "
    "ENXIO")
{
	const struct page two = ports(2, "vale0:a", "vale0:b"),
	    none = ports(0, NULL, NULL);
	uint64_t c[VALE_NCOUNTERS];
	int fd = prepare_reply(0, &two, ports_size(2));

	ATF_CHECK_EQ(0, vale_port_counters("vale0:b", c));
	/* Others are not asked for. */
	ATF_CHECK_EQ(0, asked(fd, VALE_WIRE_PORTS, "vale0:b"));
	ATF_CHECK_EQ(100, c[0]);
	ATF_CHECK_EQ(100 + VALE_NCOUNTERS - 1, c[VALE_NCOUNTERS - 1]);
	prepare_reply(0, &two, ports_size(2));
	prepare_reply(0, &none, ports_size(0));
	ATF_CHECK_ERRNO(ENXIO, vale_port_counters("vale0:", c) == -1);
	prepare_reply(EIO, NULL, 0);
	ATF_CHECK_ERRNO(EIO, vale_port_counters("vale0:b", c) == -1);
	finish();
}

/* What a setting has sent. */
static void
set(int fd, const char *name, unsigned int setting, uint64_t value,
    uint32_t burst)
{
	struct wire_request wr = request(fd, VALE_WIRE_SET, name,
	    sizeof(struct vale_wire_value));
	struct vale_wire_set ws;

	memcpy(&ws, wr.wr_body, sizeof(ws));
	ATF_CHECK_EQ(setting, ws.ws_setting);
	ATF_CHECK_EQ(value, ws.ws_value);
	ATF_CHECK_EQ(burst, ws.ws_burst);
}

TEST(set, "Each setting is sent with its name and value; an error is valed's")
{
	int fd;

	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set("vale0", "ageing", "11"));
	set(fd, "vale0", 1, 11, 0);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set("vale0:a", "limit", "4294967295"));
	set(fd, "vale0:a", 2, UINT32_MAX, 0);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set("vale0:a", "weight", "13"));
	set(fd, "vale0:a", 5, 13, 0);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set("vale0:a", "private", "on"));
	set(fd, "vale0:a", 6, 1, 0);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set("vale0", "batch", "14"));
	set(fd, "vale0", 7, 14, 0);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set("vale0:a", "rate", "1000Gbit/s,burst=9"));
	set(fd, "vale0:a", 3, VALE_RATE_MAX, 9);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set("vale0:a", "rate", "1000Gpkt/s,burst=9"));
	set(fd, "vale0:a", 4, VALE_RATE_MAX, 9);
	finish();
	prepare_reply(EINVAL, NULL, 0);
	ATF_CHECK_ERRNO(EINVAL, vale_set("vale0", "batch", "0") == -1);
	finish();
}

TEST(mirror, "A mirror's name goes with the request, if it fits")
{
	char name[VALE_NAME_SIZE + 1];
	struct vale_wire_mirror wm;
	struct wire_request wr;
	int fd;

	memset(name, 'm', sizeof(name));
	name[VALE_NAME_SIZE] = '\0';
	ATF_CHECK_ERRNO(EINVAL, setting_mirror("vale0:b", name,
	    VALE_MIRROR_TX) == -1);
	name[VALE_NAME_SIZE - 1] = '\0';
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, setting_mirror("vale0:b", name, VALE_MIRROR_TX));
	wr = request(fd, VALE_WIRE_MIRROR, "vale0:b", sizeof(wm));
	memcpy(&wm, wr.wr_body, sizeof(wm));
	ATF_CHECK_EQ(VALE_MIRROR_TX, wm.wm_what);
	ATF_CHECK_STREQ(name, wm.wm_of);
	/* None. */
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set("vale0:b", "mirror", "no"));
	wr = request(fd, VALE_WIRE_MIRROR, "vale0:b", sizeof(wm));
	memcpy(&wm, wr.wr_body, sizeof(wm));
	ATF_CHECK_EQ(0, wm.wm_what);
	ATF_CHECK_EQ('\0', wm.wm_of[0]);
	finish();
}

TEST(all_settings, "All settings of a port come with one request; what is not "
    "known is left out")
{
	struct vale_wire_value wv[] = {
		{ .wv_set = { 99, 1, 2 }, .wv_text = "?" },
		{ .wv_set = { 4, 77, 1000 } },
		{ .wv_set = { 8, 0, 1 }, .wv_text = "vale0:b" },
		{ .wv_set = { 5, 0, 9 } },
	};
	struct vale_setting_value sv[VALE_NSETTINGS];
	int fd;

	memset(sv, 0xff, sizeof(sv));
	fd = prepare_reply(0, wv, sizeof(wv));
	ATF_CHECK_EQ(0, vale_setting_get("vale0:a", VALE_OF_PORT, sv));
	(void)request(fd, VALE_WIRE_PORT_SETTINGS, "vale0:a", 0);
	ATF_CHECK_EQ(1000, sv[VALE_SETTING_RATE].sv_number);
	ATF_CHECK_EQ(77, sv[VALE_SETTING_RATE].sv_burst);
	ATF_CHECK(sv[VALE_SETTING_RATE].sv_frames);
	ATF_CHECK_EQ(1, sv[VALE_SETTING_MIRROR].sv_number);
	ATF_CHECK_STREQ("vale0:b", sv[VALE_SETTING_MIRROR].sv_text);
	ATF_CHECK_EQ(9, sv[VALE_SETTING_WEIGHT].sv_number);
	ATF_CHECK_EQ(0, sv[VALE_SETTING_LIMIT].sv_number);
	/* A name without an end; a rate of bits. */
	memset(wv[2].wv_text, 'v', sizeof(wv[2].wv_text));
	wv[1].wv_set.ws_setting = 3;
	prepare_reply(0, wv, sizeof(wv));
	ATF_CHECK_EQ(0, vale_setting_get("vale0:a", VALE_OF_PORT, sv));
	ATF_CHECK_EQ(VALE_SETTING_SIZE - 1,
	    strlen(sv[VALE_SETTING_MIRROR].sv_text));
	ATF_CHECK_EQ(1000, sv[VALE_SETTING_RATE].sv_number);
	ATF_CHECK(!sv[VALE_SETTING_RATE].sv_frames);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_setting_get("vale0", VALE_OF_SWITCH, sv));
	(void)request(fd, VALE_WIRE_SWITCH_SETTINGS, "vale0", 0);
	/* A reply of another size. */
	prepare_reply(0, wv, sizeof(wv) - 1);
	ATF_CHECK_ERRNO(EPROTO, vale_setting_get("vale0:a", VALE_OF_PORT,
	    sv) == -1);
	ATF_CHECK_STREQ("", vale_error());
	/* What valed says. */
	wire_reply(prepare(), EPERM, "it is another's", NULL, 0, NULL, 0);
	ATF_CHECK_ERRNO(EPERM, vale_setting_get("vale0:a", VALE_OF_PORT,
	    sv) == -1);
	ATF_CHECK_STREQ("it is another's", vale_error());
	prepare_reply(ERANGE, NULL, 0);
	ATF_CHECK_ERRNO(ERANGE, vale_set("vale0:a", "weight", "0") == -1);
	ATF_CHECK_STREQ("", vale_error());
	wire_reply(prepare(), EINVAL, "no weight", NULL, 0, NULL, 0);
	ATF_CHECK_ERRNO(EINVAL, vale_set("vale0:a", "weight", "0") == -1);
	ATF_CHECK_STREQ("no weight", vale_error());
	finish();
}

TEST(names, "A name that no request can have is that of nothing")
{
	char name[sizeof(((struct nmreq_header *)0)->nr_name) + 1];
	int fd;

	memset(name, 'v', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	ATF_CHECK_ERRNO(ENXIO, setting_of(name, "batch") == NULL);
	name[sizeof(name) - 2] = '\0';
	fd = prepare_reply(ENXIO, NULL, 0);
	ATF_CHECK_ERRNO(ENXIO, setting_of(name, "batch") == NULL);
	(void)request(fd, VALE_WIRE_SWITCH_SETTINGS, name, 0);
	finish();
}

TEST_PROGRAM
