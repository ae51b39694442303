/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket's requests that set and show settings of ports and
 * switches, and mirrors.
 */

#include <sys/param.h>
#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_rate.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "ctl_peers.h"
#include "setting.h"
#include "test.h"
#include "vale_setting.h"
#include "vale_test.h"

static void
setting(const char *name, uint32_t what, uint64_t value, int error,
    const char *why)
{
	const struct vale_wire_value wv = { .wv_set = { what, 0, value } };

	ATF_CHECK_EQ_MSG(error, peer_ask(&root, VALE_WIRE_SET, name, &wv,
	    sizeof(wv)), "%u %ju: %s", what, (uintmax_t)value,
	    root.pe_reply.wire.vw_why);
	ATF_CHECK_STREQ(why, root.pe_reply.wire.vw_why);
	ATF_CHECK_EQ(0, root.pe_size);
}

/* Check a value in a reply, and go on to the next. */
static void
value_is(const struct vale_wire_value **wv, uint32_t setting, uint64_t value,
    uint32_t burst, const char *name)
{
	ATF_CHECK_EQ(setting, (*wv)->wv_set.ws_setting);
	ATF_CHECK_EQ(value, (*wv)->wv_set.ws_value);
	ATF_CHECK_EQ(burst, (*wv)->wv_set.ws_burst);
	ATF_CHECK_STREQ(name, (*wv)->wv_text);
	(*wv)++;
}

TEST(settings, "Each setting, its range, and what does not have it")
{
	static const struct {
		uint32_t	what;
		bool		port;
		uint64_t	min, max;
		const char	*why;
	} rows[] = {
		{ 1, false, 0, 1000000,
		    "the ageing time must be 0 to 1000000 seconds" },
		{ 2, true, 0, 5120,
		    "the limit must be 0 to 5120 addresses" },
		{ 5, true, 1, 100,
		    "the weight must be 1 to 100" },
		{ 6, true, 0, 1,
		    "private is on or off" },
		{ 7, false, 1, 1024,
		    "the batch must be 1 to 1024 slots" },
	};
	const struct vale_wire_value *wv;
	unsigned int i;

	peers_start();
	port_open(&one, "vale0:a");
	for (i = 0; i < nitems(rows); i++) {
		const char *name = rows[i].port ? "vale0:a" : "vale0";

		setting(name, rows[i].what, rows[i].min, 0, "");
		if (rows[i].min > 0)
			setting(name, rows[i].what, rows[i].min - 1, EINVAL,
			    rows[i].why);
		setting(name, rows[i].what, rows[i].max + 1, EINVAL,
		    rows[i].why);
		setting(name, rows[i].what, UINT64_C(1) << 32, EINVAL,
		    rows[i].why);
		setting(name, rows[i].what, rows[i].max, 0, "");
		setting(rows[i].port ? "vale0:b" : "vale1", rows[i].what,
		    rows[i].max, ENXIO, rows[i].port ? "there is no such port" :
		    "there is no such switch");
	}
	setting("vale0:a", 0, 1, EOPNOTSUPP, "setting 0 is not supported");
	setting("vale0:a", 8, 1, EOPNOTSUPP, "setting 8 is not supported");
	GRANTED(11 * sizeof(*wv), 0, &one, VALE_WIRE_PORT_SETTINGS, "vale0:a",
	    NULL, 0);
	wv = one.pe_body;
	wv++;
	value_is(&wv, 2, 5120, 0, "");
	wv += 2;
	value_is(&wv, 6, 1, 0, "");
	wv += 5;
	value_is(&wv, 5, 100, 0, "");
	GRANTED(3 * sizeof(*wv), 0, &one, VALE_WIRE_SWITCH_SETTINGS, "vale0",
	    NULL, 0);
	wv = one.pe_body;
	value_is(&wv, 1, 1000000, 0, "");
	value_is(&wv, 7, 1024, 0, "");
	peers_stop();
}

TEST(all_settings, "One request has all settings of a port, or of a switch")
{
	struct vale_wire_value set[3] = { { .wv_set = { 4, 77, 1000 } },
	    { .wv_set = { 5, 0, 9 } }, { .wv_set = { 10, 0, 0 } } };
	struct vale_wire_mirror wm = { .wm_what = VALE_MIRROR_RX,
	    .wm_of = "vale0:z" };
	const struct vale_wire_value *wv;

	_Static_assert(sizeof(*wv) == 528, "on the wire");
	peers_start();
	port_open(&one, "vale0:a");
	port_open(&two, "vale0:b");
	memcpy(set[2].wv_text, "10,20-30", sizeof("10,20-30"));
	GRANTED(0, 0, &root, VALE_WIRE_SET, "vale0:a", set, sizeof(set));
	GRANTED(0, 0, &root, VALE_WIRE_MIRROR, "vale0:a", &wm, sizeof(wm));
	set[0].wv_set = (struct vale_wire_set){ 11, 0, 5 };
	GRANTED(0, 0, &root, VALE_WIRE_SET, "vale0:a", set, sizeof(set[0]));
	GRANTED(11 * sizeof(*wv), 0, &one, VALE_WIRE_PORT_SETTINGS, "vale0:a",
	    NULL, 0);
	wv = one.pe_body;
	value_is(&wv, 13, 0, 0, "any");
	value_is(&wv, 2, 0, 0, "");
	value_is(&wv, 15, 0, 0, "up");
	value_is(&wv, 8, VALE_MIRROR_RX, 0, "vale0:z");
	value_is(&wv, 6, 0, 0, "");
	value_is(&wv, 4, 1000, 77, "");
	value_is(&wv, 12, 0, 0, "any");
	value_is(&wv, 10, 0, 0, "10,20-30");
	value_is(&wv, 11, 5, 0, "");
	value_is(&wv, 9, 0, 0, "");
	value_is(&wv, 5, 9, 0, "");
	set[0].wv_set = (struct vale_wire_set){ 3, 78, 1001 };
	GRANTED(0, 0, &root, VALE_WIRE_SET, "vale0:a", set, sizeof(set[0]));
	GRANTED(11 * sizeof(*wv), 0, &root, VALE_WIRE_PORT_SETTINGS, "vale0:a",
	    NULL, 0);
	wv = root.pe_body;
	wv += 5;
	value_is(&wv, 3, 1001, 78, "");
	GRANTED(3 * sizeof(*wv), 0, &one, VALE_WIRE_SWITCH_SETTINGS, "vale0",
	    NULL, 0);
	wv = one.pe_body;
	value_is(&wv, 1, 300, 0, "");
	value_is(&wv, 7, 1024, 0, "");
	value_is(&wv, 14, 1, 0, "");
	REFUSED(EPERM, "the port belongs to another user", &two,
	    VALE_WIRE_PORT_SETTINGS, "vale0:a", NULL, 0);
	REFUSED(ENXIO, "there is no such port", &root,
	    VALE_WIRE_PORT_SETTINGS, "vale0", NULL, 0);
	REFUSED(ENXIO, "there is no such switch", &two,
	    VALE_WIRE_SWITCH_SETTINGS, "vale0:a", NULL, 0);
	peers_stop();
}

TEST(several, "Several settings are set at once, or none if a value is invalid")
{
	static struct vale_wire_value set[VALE_NSETTINGS + 1];
	const struct vale_wire_value *wv;
	unsigned int i;

	peers_start();
	port_open(&one, "vale0:a");
	for (i = 0; i < nitems(set); i++)
		set[i].wv_set = (struct vale_wire_set){ 5, 0, 2 + i };
	REFUSED(E2BIG, "there are 14 settings", &root, VALE_WIRE_SET,
	    "vale0:a", set, sizeof(set));
	GRANTED(0, 0, &root, VALE_WIRE_SET, "vale0:a", set,
	    sizeof(set) - sizeof(set[0]));
	set[0].wv_set.ws_value = 77;
	set[1].wv_set.ws_value = 0;
	REFUSED(EINVAL, "the weight must be 1 to 100", &root, VALE_WIRE_SET,
	    "vale0:a", set, 2 * sizeof(set[0]));
	set[1].wv_set = (struct vale_wire_set){ 7, 0, 1 };
	REFUSED(EINVAL, "settings of a switch and of a port", &root,
	    VALE_WIRE_SET, "vale0:a", set, 2 * sizeof(set[0]));
	REFUSED(EINVAL, "request 30210 has the wrong length", &root,
	    VALE_WIRE_SET, "vale0:a", set, 2 * sizeof(set[0]) - 1);
	GRANTED(11 * sizeof(*wv), 0, &one, VALE_WIRE_PORT_SETTINGS, "vale0:a",
	    NULL, 0);
	wv = one.pe_body;
	wv += 10;
	value_is(&wv, 5, 15, 0, "");
	peers_stop();
}

TEST(texts, "Settings whose value is text")
{
	struct vale_wire_value wv = { .wv_set = { 10, 0, 0 } };

	peers_start();
	port_open(&one, "vale0:a");
	memcpy(wv.wv_text, "10", sizeof("10"));
	REFUSED(EPERM, "only administrators of valed may do that", &one,
	    VALE_WIRE_SET, "vale0:a", &wv, sizeof(wv));
	GRANTED(0, 0, &root, VALE_WIRE_SET, "vale0:a", &wv, sizeof(wv));
	REFUSED(ENXIO, "there is no such port", &root, VALE_WIRE_SET,
	    "vale0:b", &wv, sizeof(wv));
	memcpy(wv.wv_text, "4095", sizeof("4095"));
	REFUSED(EINVAL, "trunk is a list of VLANs and ranges from 1 to 4094, "
	    "all or no", &root, VALE_WIRE_SET, "vale0:a", &wv,
	    sizeof(wv));
	memset(wv.wv_text, '1', sizeof(wv.wv_text));
	REFUSED(EINVAL, "the value does not end", &root, VALE_WIRE_SET,
	    "vale0:a", &wv, sizeof(wv));
	memset(wv.wv_text, 0, sizeof(wv.wv_text));
	wv.wv_set.ws_setting = 99;
	REFUSED(EOPNOTSUPP, "setting 99 is not supported", &root,
	    VALE_WIRE_SET, "vale0:a", &wv, sizeof(wv));
	peers_stop();
}

TEST(rates, "Rates of bits and of frames, with their burst")
{
	struct vale_wire_value set = { .wv_set = { 4, 77, 1000 } };
	struct vale_wire_set *ws = &set.wv_set;
	const struct vale_wire_value *wv;
	unsigned int i;

	peers_start();
	port_open(&one, "vale0:a");
	for (i = 0; i < 2; i++) {
		ws->ws_burst = 77000 + i;
		ws->ws_value = 1000000 + i;
		GRANTED(0, 0, &root, VALE_WIRE_SET, "vale0:a", &set,
		    sizeof(set));
		GRANTED(11 * sizeof(*wv), 0, &one, VALE_WIRE_PORT_SETTINGS,
		    "vale0:a", NULL, 0);
		wv = one.pe_body;
		ATF_CHECK(memcmp(ws, &wv[5].wv_set, sizeof(*ws)) == 0);
		REFUSED(ENXIO, "there is no such port", &root, VALE_WIRE_SET,
		    "vale0:b", &set, sizeof(set));
		ws->ws_value = UINT64_MAX;
		REFUSED(EINVAL, "the rate or the burst is out of range", &root,
		    VALE_WIRE_SET, "vale0:a", &set, sizeof(set));
		ws->ws_setting = 3;
	}
	peers_stop();
}

static void
mirror(struct peer *p, const char *name, uint32_t what, const char *of,
    int error, const char *why)
{
	struct vale_wire_mirror wm = { .wm_what = what };

	strlcpy(wm.wm_of, of, sizeof(wm.wm_of));
	ATF_CHECK_EQ(error, peer_ask(p, VALE_WIRE_MIRROR, name, &wm,
	    sizeof(wm)));
	ATF_CHECK_STREQ(why, p->pe_reply.wire.vw_why);
	ATF_CHECK_EQ(0, p->pe_size);
}

TEST(mirrors, "A port mirrors one of its user's; an administrator's mirrors "
    "any; a name that is mirrored is captured")
{
	static const char same[] =
	    "a port can mirror another port of the same switch";
	struct vale_wire_mirror wm = { VALE_MIRROR_TX, "" };
	struct vale_desc *d = t_open("vale0:none", 64, 64);
	struct vale_desc *far = t_open("vale1:far", 64, 64);
	struct ctl_owner *ow;
	struct peer more;

	peers_start();
	peer_connect(&more, 1001, false);
	ow = &one.pe_cc->cc_owner;
	port_open(&one, "vale0:a");
	port_open(&more, "vale0:m");
	port_open(&two, "vale0:b");
	mirror(&one, "vale0:a", VALE_MIRROR_RX, "vale0:m", 0, "");
	ATF_CHECK_STREQ("vale0:m", ow->ow_mirror);
	ATF_CHECK_STREQ("", ow->ow_mirror_next);
	ATF_CHECK_EQ(0, ow->ow_pins);
	mirror(&one, "vale0:a", VALE_MIRROR_RX, "vale0:b", EPERM,
	    "the port belongs to another user");
	mirror(&one, "vale0:a", VALE_MIRROR_RX, "vale0:c", ENXIO,
	    "there is no such port");
	mirror(&one, "vale0:a", VALE_MIRROR_RX, "vale0:a", EINVAL, same);
	mirror(&one, "vale0:a", 4, "vale0:m", EINVAL, same);
	mirror(&root, "vale0:c", VALE_MIRROR_RX, "vale0:m", ENXIO,
	    "there is no such port");
	/* They have changed nothing. */
	ATF_CHECK_STREQ("vale0:m", ow->ow_mirror);
	ATF_CHECK_STREQ("", ow->ow_mirror_next);
	peer_end(&more);
	REFUSED(EBUSY, "another user opens the port, or captures what has its "
	    "name", &root, REGISTER("vale0:m",
	    .nr_mode = NR_REG_ALL_NIC));
	/* Nothing: whatever is named. */
	mirror(&one, "vale0:a", 0, "vale0:b", 0, "");
	ATF_CHECK_STREQ("", ow->ow_mirror);
	mirror(&root, "vale0:a", VALE_MIRROR_BOTH, "vale0:b", 0, "");
	ATF_CHECK_STREQ("", ow->ow_mirror);
	mirror(&root, "vale0:none", VALE_MIRROR_BOTH, "vale0:b", 0, "");
	mirror(&root, "vale1:far", VALE_MIRROR_BOTH, "vale0:b", EINVAL, same);
	memset(wm.wm_of, 'a', sizeof(wm.wm_of));
	REFUSED(EINVAL, "the mirrored name does not end", &one,
	    VALE_WIRE_MIRROR, "vale0:a", &wm, sizeof(wm));
	ATF_CHECK_STREQ("vale0:b", setting_of("vale0:none", "mirror"));
	peers_stop();
	vale_close(d);
	vale_close(far);
}

TEST_PROGRAM
