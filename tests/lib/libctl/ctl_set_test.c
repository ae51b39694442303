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
