/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Whose a port is, between the steps of opening and closing it, at which a
 * program can only guess: see who.py for the rest.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include <atf-c.h>

#include "ctl_owner.h"
#include "test.h"
#include "wait_until.h"

static const struct ctl_who one = { .cw_uid = 1001 };
static const struct ctl_who two = { .cw_uid = 1002 };
static const struct ctl_who root = { .cw_admin = true };

/* A port that a program opens. */
static struct vale_desc *
start(struct ctl_owner *ow, const char *name, const struct ctl_who *who)
{
	struct vale_desc *d;

	ATF_REQUIRE_EQ(0, ctl_owner_claim(ow, name, who, false));
	d = vale_open(name, NULL);
	ATF_REQUIRE(d != NULL);
	ctl_owner_opened(ow);
	return (d);
}

static void
stop(struct ctl_owner *ow, struct vale_desc *d)
{
	ctl_owner_leave(ow);
	vale_close(d);
}

TEST(claims, "A name that another user is about to open is not captured, nor "
    "the other way round")
{
	struct ctl_owner port = { .ow_pins = 0 }, next = port, capture = port;
	struct ctl_owner early = port, late = port;
	struct vale_desc *d = start(&port, "vale0:x", &one);

	/* It fails when it is opened, unless the port goes before that. */
	ATF_CHECK_EQ(0, ctl_owner_claim(&next, "vale0:x", &two, false));
	ATF_CHECK_EQ(EBUSY, ctl_owner_claim(&early, "vale0:x", &one, true));
	ATF_CHECK_EQ(EPERM, ctl_owner_claim(&late, "vale0:x", &two, true));
	ATF_CHECK_EQ(0, ctl_owner_claim(&capture, "vale0:x", &root, true));
	ctl_owner_leave(&capture);
	ctl_owner_leave(&next);
	ATF_CHECK_EQ(0, ctl_owner_claim(&capture, "vale0:x", &one, true));
	ATF_CHECK_EQ(EBUSY, ctl_owner_claim(&next, "vale0:x", &two, false));
	ATF_CHECK_EQ(EBUSY, ctl_owner_claim(&next, "vale0:x", &root, false));
	ATF_CHECK_EQ(0, ctl_owner_claim(&next, "vale0:x", &one, false));
	ctl_owner_leave(&next);
	ctl_owner_opened(&capture);
	stop(&port, d);
	/* A monitor is no port. */
	ATF_CHECK(!ctl_owner_sees("vale0:x", &one));
	ATF_CHECK(ctl_owner_pin("vale0:x", &one) == NULL);
	ATF_CHECK_EQ(EBUSY, ctl_owner_claim(&next, "vale0:x", &two, false));
	ctl_owner_leave(&capture);
	ATF_CHECK_EQ(ENXIO, ctl_owner_claim(&capture, "vale0:x", &one, true));
	/* Once more does nothing, whoever has left since. */
	ATF_CHECK_EQ(0, ctl_owner_claim(&early, "vale0:a", &one, false));
	ATF_CHECK_EQ(0, ctl_owner_claim(&late, "vale0:b", &one, false));
	ctl_owner_leave(&early);
	ctl_owner_leave(&late);
	ctl_owner_leave(&early);
	strlcpy(late.ow_mirror, "vale0:c", sizeof(late.ow_mirror));
	ATF_CHECK_EQ(0, ctl_owner_claim(&next, "vale0:c", &two, false));
	ctl_owner_leave(&next);
}

TEST(steps, "A port is its owner's from when it is open until it is about to "
    "be closed")
{
	struct ctl_owner ow = { .ow_pins = 0 };
	struct vale_desc *d;

	ATF_REQUIRE_EQ(0, ctl_owner_claim(&ow, "vale0:x", &one, false));
	ATF_CHECK(ctl_owner_taken("vale0:x", true));
	ATF_CHECK(!ctl_owner_taken("vale0:x", false));
	ATF_CHECK(!ctl_owner_taken("vale0:y", true));
	ATF_CHECK(!ctl_owner_sees("vale0:x", &one));
	ATF_CHECK(ctl_owner_pin("vale0:x", &one) == NULL);
	d = vale_open("vale0:x", NULL);
	ATF_REQUIRE(d != NULL);
	ATF_CHECK(!ctl_owner_sees("vale0:x", &one));
	ctl_owner_opened(&ow);
	ATF_CHECK(ctl_owner_sees("vale0:x", &one));
	ATF_CHECK(!ctl_owner_sees("vale0:x", &two));
	ATF_CHECK(ctl_owner_sees("vale0:x", &root));
	ATF_CHECK(!ctl_owner_sees("vale0:y", &one));
	ATF_CHECK(ctl_owner_pin("vale0:x", &two) == NULL);
	ctl_owner_leave(&ow);
	ATF_CHECK(!ctl_owner_taken("vale0:x", true));
	ATF_CHECK(!ctl_owner_sees("vale0:x", &one));
	ATF_CHECK_EQ(EPERM, ctl_owner_refuse("vale0:x"));
	vale_close(d);
	ATF_CHECK_EQ(ENXIO, ctl_owner_refuse("vale0:x"));
}

TEST(set, "A set of ports follows changes between two looks")
{
	struct ctl_owner a = { .ow_pins = 0 }, b = a, c = a;
	struct ctl_owner_set os = { .os_changes = 0 };
	struct vale_desc *da = start(&a, "vale0:a", &one);
	struct vale_desc *db = start(&b, "vale0:b", &one);
	struct vale_desc *dc;

	ATF_CHECK(ctl_owner_sees_index(&os, "vale0", 0, &one));
	ATF_CHECK(ctl_owner_sees_index(&os, "vale0", 1, &one));
	ATF_CHECK(!ctl_owner_sees_index(&os, "vale0", 2, &one));
	stop(&a, da);
	ATF_CHECK(!ctl_owner_sees_index(&os, "vale0", 0, &one));
	/* Another user's gets the place; so does one of another switch. */
	dc = start(&c, "vale0:c", &two);
	ATF_CHECK(!ctl_owner_sees_index(&os, "vale0", 0, &one));
	da = start(&a, "vale01:a", &one);
	ATF_CHECK(!ctl_owner_sees_index(&os, "vale0", 0, &one));
	ATF_CHECK(ctl_owner_sees_index(&os, "vale0", 1, &one));
	ATF_CHECK(ctl_owner_sees_index(&os, "vale0", 0, &root));
	/* Two changes. */
	stop(&a, da);
	stop(&b, db);
	ATF_CHECK(!ctl_owner_sees_index(&os, "vale0", 1, &one));
	stop(&c, dc);
}

struct leaver {
	struct ctl_owner *ow;
	uint32_t	 done;		/* atomic */
};

static void *
leave_main(void *arg)
{
	struct leaver *l = arg;

	ctl_owner_leave(l->ow);
	atomic_store_rel_32(&l->done, 1);
	return (NULL);
}

TEST(pinned, "A port that somebody asks about stays until he has finished, but "
    "nobody finds it any more")
{
	struct ctl_owner ow = { .ow_pins = 0 };
	struct vale_desc *d = start(&ow, "vale0:x", &one);
	struct leaver l = { .ow = &ow };
	struct ctl_owner *pin, *more;
	pthread_t thread;

	pin = ctl_owner_pin("vale0:x", &one);
	more = ctl_owner_pin("vale0:x", &root);
	ATF_CHECK(pin == &ow && more == &ow);
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, leave_main, &l));
	wait_until(!ctl_owner_sees("vale0:x", &one), "still there");
	ATF_CHECK(ctl_owner_pin("vale0:x", &one) == NULL);
	ctl_owner_unpin(more);
	/* It has time to go wrong in. */
	usleep(20000);
	ATF_CHECK_EQ(0, atomic_load_acq_32(&l.done));
	ctl_owner_unpin(pin);
	ATF_REQUIRE_EQ(0, pthread_join(thread, NULL));
	ATF_CHECK_EQ(1, l.done);
	vale_close(d);
}

TEST(mirrors, "What a mirror shows and what it is about to show are captured, "
    "unless an administrator has set it")
{
	struct ctl_owner a = { .ow_pins = 0 }, b = a, m = a, next = a;
	struct vale_desc *da = start(&a, "vale0:a", &one);
	struct vale_desc *db = start(&b, "vale0:b", &one);
	struct vale_desc *dm = start(&m, "vale0:m", &one);

	ATF_CHECK_EQ(EPERM, ctl_owner_mirror(&m, "vale0:a", &two));
	ATF_REQUIRE_EQ(0, ctl_owner_mirror(&m, "vale0:a", &one));
	ATF_CHECK_EQ(EBUSY, ctl_owner_claim(&next, "vale0:a", &two, false));
	ctl_owner_mirrored(&m, true);
	ATF_REQUIRE_EQ(0, ctl_owner_mirror(&m, "vale0:b", &one));
	/* Until it is known which. */
	ATF_CHECK_EQ(EBUSY, ctl_owner_claim(&next, "vale0:a", &two, false));
	ATF_CHECK_EQ(EBUSY, ctl_owner_claim(&next, "vale0:b", &two, false));
	ctl_owner_mirrored(&m, false);
	ATF_CHECK_EQ(EBUSY, ctl_owner_claim(&next, "vale0:a", &two, false));
	ATF_CHECK_EQ(0, ctl_owner_claim(&next, "vale0:b", &two, false));
	ctl_owner_leave(&next);
	ATF_REQUIRE_EQ(0, ctl_owner_mirror(&m, "vale0:b", &root));
	ctl_owner_mirrored(&m, true);
	ATF_CHECK_EQ(0, ctl_owner_claim(&next, "vale0:a", &two, false));
	ctl_owner_leave(&next);
	ATF_CHECK_EQ(0, ctl_owner_claim(&next, "vale0:b", &two, false));
	ctl_owner_leave(&next);
	/* Of a port that no program has opened. */
	ATF_CHECK_EQ(0, ctl_owner_mirror(NULL, "vale0:b", &root));
	ctl_owner_mirrored(NULL, true);
	stop(&a, da);
	stop(&b, db);
	stop(&m, dm);
}

TEST_PROGRAM
