/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An adapter's thread: what nobody waits for; when it announces its address,
 * how often, and with which frame.  Each frame that arrives at another port of
 * the switch is counted.
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter.h"
#include "adapter_config.h"
#include "adapter_keep.h"
#include "e82545.h"
#include "event_stub.h"
#include "frame_port.h"
#include "libvale.h"
#include "test.h"
#include "vale_setting.h"
#include "wait_until.h"
#include "wrap.h"

static struct adapter_config config;
static struct adapter *ad;
static struct vale_desc *other;
static uint8_t	last = 7;		/* the last byte of the address */
static struct timespec clock_now;	/* the kernel's, if 0 */
static bool	stepping;		/* adapter_move() waits */
static uint32_t	late;			/* a wait times out; atomic */
static struct timespec waited;		/* until then */

WRAP(int, clock_gettime, clockid_t clock, struct timespec *ts)
{
	if (clock_now.tv_sec == 0 || clock != CLOCK_MONOTONIC)
		return (__real_clock_gettime(clock, ts));
	*ts = clock_now;
	return (0);
}

WRAP(int, pthread_cond_clockwait, pthread_cond_t *cond, pthread_mutex_t *mtx,
    clockid_t clock, const struct timespec *ts)
{
	if (atomic_load_32(&late) != 0) {
		ATF_CHECK_EQ(CLOCK_MONOTONIC, clock);
		waited = *ts;
		clock_now.tv_sec = 0;
		atomic_store_32(&late, 0);
		return (ETIMEDOUT);
	}
	if (!stepping)
		return (__real_pthread_cond_clockwait(cond, mtx, clock, ts));
	pthread_mutex_unlock(mtx);
	ATF_CHECK(events_step() >= 1);
	pthread_mutex_lock(mtx);
	return (0);
}

static bool	found;			/* an earlier process has left one */
static uint32_t	resumes;		/* atomic */
static bool	interrupted;		/* the wait for adapter_go(), once */

WRAP(int, sem_wait, sem_t *sem)
{
	if (!interrupted)
		return (__real_sem_wait(sem));
	interrupted = false;
	errno = EINTR;
	return (-1);
}

WRAP(bool, adapter_keep_found, struct adapter *p)
{
	wait_until(atomic_load_32(&late) == 0, "nobody waits");
	return (found || __real_adapter_keep_found(p));
}

WRAP(void, adapter_keep_resume, struct adapter *p,
    const struct e82545_config *model)
{
	atomic_add_32(&resumes, 1);
	if (!found)
		__real_adapter_keep_resume(p, model);
}

/* The adapter's thread opens the adapter, and this one then serves it. */
void
loop_run(void)
{
	pthread_exit(NULL);
}

int
valed_sandbox_drop(void)
{
	return (0);
}

/* One round of the event loop, with an event that needs no work itself. */
static void
work(void)
{
	const uint64_t one = 1;

	ATF_REQUIRE_EQ((ssize_t)sizeof(one), write(ad->work_fd, &one,
	    sizeof(one)));
	ATF_REQUIRE(events_step() >= 1);
}

/* Whether another thread has woken this one. */
static bool
posted(void)
{
	uint64_t n;

	if (read(ad->work_fd, &n, sizeof(n)) == -1)
		return (false);
	ATF_CHECK_EQ(1, n);
	ad->work_posted = 0;
	return (true);
}

static void
attach(void)
{
	ad->vfu.vdev_ops->vdo_attach(ad->vfu.vdev_arg);
}

static void
detach(void)
{
	ad->vfu.vdev_ops->vdo_detach(ad->vfu.vdev_arg);
}

static unsigned int watched;

static void
watch(struct adapter *ending)
{
	ATF_CHECK_EQ(NULL, ending);
	watched++;
}

/* Start the adapter; its thread does not yet serve. */
static void
start(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	config.ac_listen = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0);
	/* The kernel finds a name. */
	ATF_REQUIRE_EQ(0, bind(config.ac_listen, (void *)&sun,
	    sizeof(sa_family_t)));
	ATF_REQUIRE_EQ(0, listen(config.ac_listen, 8));
	if (config.ac_backend[0] == '\0')
		strlcpy(config.ac_backend, "vale0:a",
		    sizeof(config.ac_backend));
	strlcpy(config.ac_name, "a", sizeof(config.ac_name));
	memcpy(config.ac_mac, "\2\0\0\0\0\7", 6);
	ad = adapter_start(&config, watch);
	ATF_REQUIRE(ad != NULL);
}

/* Its thread goes on until it would serve. */
static void
go(void)
{
	adapter_go(ad);
	ATF_REQUIRE_EQ(0, pthread_join(ad->thread, NULL));
}

TEST(resumes, "What an earlier process has left of an adapter keeps nobody "
    "waiting who starts it")
{
	found = interrupted = true;
	start();
	ATF_CHECK_EQ(0, atomic_load_32(&resumes));
	ATF_CHECK(!adapter_resumed(ad));
	go();
	ATF_CHECK_EQ(1, atomic_load_32(&resumes));
	ATF_CHECK(adapter_resumed(ad));
	/* One that is new is ready at once. */
	found = false;
	strlcpy(config.ac_backend, "vale0:b", sizeof(config.ac_backend));
	start();
	ATF_CHECK_EQ(2, atomic_load_32(&resumes));
	ATF_CHECK(adapter_resumed(ad));
	ATF_CHECK(ad->net.an_port->fp_offloads);
}

TEST(waits, "Who starts an adapter waits for 10 ms each time, and watches "
    "others between")
{
	static const struct timespec rows[][2] = {
		{ { 5, 0 }, { 5, 10000000 } },
		{ { 5, 989999999 }, { 5, 999999999 } },
		{ { 5, 990000000 }, { 6, 0 } },
		{ { 5, 999999999 }, { 6, 9999999 } },
	};
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		snprintf(config.ac_backend, sizeof(config.ac_backend),
		    "vale0:%u", i);
		clock_now = rows[i][0];
		atomic_store_32(&late, 1);
		watched = 0;
		start();
		ATF_CHECK(watched > 0);
		ATF_CHECK_EQ_MSG(rows[i][1].tv_sec, waited.tv_sec, "%u", i);
		ATF_CHECK_EQ_MSG(rows[i][1].tv_nsec, waited.tv_nsec, "%u", i);
	}
}

/* An adapter that has a client without a driver, and somebody who listens. */
static void
begin(bool on)
{
	other = vale_open("vale0:other", NULL);
	ATF_REQUIRE(other != NULL);
	config.ac_announce = on;
	clock_now.tv_sec = 1000;
	start();
	go();
	ad->thread = ad->vfu.vdev_thread = pthread_self();
	attach();
	work();
}

/* The guest's driver turns bus mastering on or off. */
static void
master(bool on)
{
	const uint16_t command = on ? 7 : 3;

	vfu_pci_write(&ad->vfu.vdev_pci, 4, &command, sizeof(command));
	ad->vfu.vdev_ops->vdo_bus_master(ad->vfu.vdev_arg, on);
	work();
}

/* What the main thread tells in another second. */
static void
second(bool up, bool came)
{
	clock_now.tv_sec++;
	adapter_uplink(ad, up, came);
	adapter_listen(ad);
	work();
}

/* How many frames have come, each of which is a request for the address. */
static unsigned int
announced(void)
{
	const uint8_t request[60] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, last,
		0x80, 0x35,
		0, 1, 8, 0, 6, 4, 0, 3,
		2, 0, 0, 0, 0, last, 0, 0, 0, 0,
		2, 0, 0, 0, 0, last, 0, 0, 0, 0,
	};
	struct netmap_ring *ring = other->rxring;
	struct netmap_slot *slot;
	unsigned int n;

	ATF_REQUIRE_EQ(0, vale_rxsync(other));
	for (n = 0; ring->head != ring->tail; n++) {
		slot = &ring->slot[ring->head];
		ATF_REQUIRE_EQ(sizeof(request), slot->len);
		ATF_CHECK_EQ(0, memcmp(NETMAP_BUF(ring, slot->buf_idx),
		    request, sizeof(request)));
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	}
	return (n);
}

/* So many frames have come since the last check, and `all' are counted. */
static void
check(unsigned int n, unsigned int all)
{
	const unsigned int got = announced();

	ATF_CHECK_EQ_MSG(n, got, "%u frames, not %u", got, n);
	ATF_CHECK_EQ_MSG(all, ad->announces, "%ju counted, not %u",
	    (uintmax_t)ad->announces, all);
}

TEST(driver, "The address is announced when the guest's driver starts, once, "
    "and at once, and not before")
{
	begin(true);
	second(true, true);
	second(true, false);
	check(0, 0);
	master(true);
	check(1, 1);
	work();
	second(true, false);
	second(true, false);
	check(0, 1);
	/* Another guest, or the same one again. */
	detach();
	attach();
	work();
	second(true, true);
	check(0, 1);
	master(true);
	check(1, 2);
}

TEST(off, "Without the setting nothing is announced; it is changed in place")
{
	struct adapter_config changed_config;

	begin(false);
	second(true, true);
	master(true);
	ATF_CHECK_EQ(0, vale_set("vale0:a", "link", "down"));
	work();
	ATF_CHECK_EQ(0, vale_set("vale0:a", "link", "up"));
	work();
	second(true, true);
	check(0, 0);
	changed_config = config;
	changed_config.ac_announce = true;
	adapter_change(ad, &changed_config);
	work();
	/* What has passed is not announced later. */
	second(true, false);
	check(0, 0);
	second(true, true);
	check(1, 1);
	changed_config.ac_announce = false;
	adapter_change(ad, &changed_config);
	second(true, true);
	check(0, 1);
}

TEST(uplinks, "Nothing is announced to a switch without an uplink; each uplink "
    "that comes up gets an announcement")
{
	begin(true);
	second(false, false);
	master(true);
	second(false, false);
	check(0, 0);
	/* There is one that has been there. */
	second(true, false);
	check(1, 1);
	second(true, false);
	check(0, 1);
	/* Another one comes. */
	second(true, true);
	check(1, 2);
	second(false, false);
	second(false, false);
	check(0, 2);
	second(true, true);
	check(1, 3);
	master(false);
	second(true, true);
	check(0, 3);
}

TEST(rate, "Three announcements come at once, and then one a second")
{
	unsigned int i;

	begin(true);
	second(true, false);
	for (i = 0; i < 100; i++) {
		master(false);
		master(true);
	}
	check(3, 3);
	/* The thread is woken for what waits. */
	(void)posted();
	clock_now.tv_nsec = 999999999;
	adapter_listen(ad);
	ATF_CHECK(posted());
	work();
	check(0, 3);
	clock_now.tv_sec++;
	clock_now.tv_nsec = 0;
	adapter_listen(ad);
	ATF_CHECK(posted());
	work();
	check(1, 4);
	adapter_listen(ad);
	ATF_CHECK(!posted());
	/* What was not used is not saved up for more than three. */
	clock_now.tv_sec += 100;
	for (i = 0; i < 100; i++) {
		master(false);
		master(true);
	}
	check(3, 7);
}

TEST(links, "The address is announced when the link of the port comes up, and "
    "not while there is none")
{
	begin(true);
	second(true, false);
	ATF_CHECK_EQ(0, vale_set("vale0:a", "link", "down"));
	work();
	master(true);
	second(true, true);
	check(0, 0);
	clock_now.tv_sec++;
	ATF_CHECK_EQ(0, vale_set("vale0:a", "link", "up"));
	work();
	check(1, 1);
	clock_now.tv_sec++;
	ATF_CHECK_EQ(0, vale_set("vale0:a", "link", "up"));
	work();
	check(0, 1);
}

/* Move the adapter to another port. */
static void
move(const char *port)
{
	struct adapter_config new = ad->config;

	strlcpy(new.ac_backend, port, sizeof(new.ac_backend));
	clock_now.tv_sec++;
	stepping = true;
	ATF_CHECK_EQ(0, adapter_move(ad, &new, watch));
	stepping = false;
	work();
}

TEST(moves, "The address is announced at another port; a frame that could not "
    "be sent does not count")
{
	begin(true);
	second(true, false);
	move("vale0:b");
	check(0, 0);
	master(true);
	check(1, 1);
	move("vale0:c");
	check(1, 2);
	/* Nowhere. */
	move("none");
	check(0, 2);
	move("vale0:d");
	check(1, 3);
}

/* The driver writes the first of the addresses that the guest receives. */
static void
set_address(uint8_t first, uint8_t end, bool valid)
{
	e82545_write(ad->dev, E82545_BAR_MEM, E82545_RAL(0), 4, first);
	e82545_write(ad->dev, E82545_BAR_MEM, E82545_RAH(0), 4,
	    (valid ? E82545_RAH_AV : 0) | end << 8);
}

TEST(address, "The address is that which the driver has set, if any; the next "
    "client's is the adapter's own again")
{
	begin(true);
	second(true, false);
	master(true);
	check(1, 1);
	set_address(2, last = 9, true);
	second(true, true);
	check(1, 2);
	set_address(2, last, false);
	second(true, true);
	check(0, 2);
	/* No station has such an address. */
	set_address(3, last, true);
	second(true, true);
	set_address(0, 0, true);
	second(true, true);
	check(0, 2);
	set_address(2, last, true);
	second(true, true);
	check(1, 3);
	detach();
	attach();
	work();
	last = 7;
	second(true, false);
	master(true);
	check(1, 4);
}

TEST(quiesced, "Nothing is announced when the process is about to end")
{
	begin(true);
	second(true, false);
	adapter_quiesce(ad);
	work();
	master(true);
	check(0, 0);
}

TEST_PROGRAM
