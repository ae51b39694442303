/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The netmap backend's transmit ring.  The ring is an array, and the kernel,
 * which takes all that is in the ring when it is told to, is sync_ring().
 */

#include <sys/types.h>
#include <sys/ioctl.h>

static int	sync_ring(int fd, unsigned long request, void *arg);
#define	ioctl(fd, request, arg)	sync_ring(fd, request, arg)
#include "net_backend_netmap.c"
#undef ioctl
#include "iov.c"

#include <atf-c.h>

#define	NSLOTS		8
#define	BUFSZ		128

int raw_stdio;

static struct {
	struct netmap_ring ring;
	struct netmap_slot slots[NSLOTS];
	uint8_t	bufs[NSLOTS][BUFSZ];
} tx;
static unsigned int nsyncs, nframes;
static uint32_t sent;			/* the kernel's head */

static int
sync_ring(int fd __unused, unsigned long request, void *arg __unused)
{
	if (request != NIOCTXSYNC)
		return (-1);
	nsyncs++;
	for (; sent != tx.ring.head; sent = nm_ring_next(&tx.ring, sent))
		if ((tx.ring.slot[sent].flags & NS_MOREFRAG) == 0)
			nframes++;
	tx.ring.tail = (sent + NSLOTS - 1) % NSLOTS;
	return (0);
}

struct mevent *
mevent_add_disabled(int tfd __unused, enum ev_type type __unused,
    void (*func)(int, enum ev_type, void *) __unused, void *param __unused)
{
	return (NULL);
}

int
mevent_enable(struct mevent *evp __unused)
{
	return (0);
}

int
mevent_disable(struct mevent *evp __unused)
{
	return (0);
}

int
mevent_delete(struct mevent *evp __unused)
{
	return (0);
}

/* A backend with an empty ring of NSLOTS - 1 free slots. */
static struct net_backend *
create(void)
{
	struct net_backend *be;
	struct netmap_priv *priv;
	int64_t offset = (char *)tx.bufs - (char *)&tx.ring;
	uint32_t nslots = NSLOTS, size = BUFSZ;

	be = calloc(1, sizeof(*be) + sizeof(*priv));
	ATF_REQUIRE(be != NULL);
	priv = NET_BE_PRIV(be);
	priv->tx = &tx.ring;
	/* These are constant for users of netmap. */
	memcpy((char *)&tx.ring + offsetof(struct netmap_ring, buf_ofs),
	    &offset, sizeof(offset));
	memcpy((char *)&tx.ring + offsetof(struct netmap_ring, num_slots),
	    &nslots, sizeof(nslots));
	memcpy((char *)&tx.ring + offsetof(struct netmap_ring, nr_buf_size),
	    &size, sizeof(size));
	tx.ring.tail = NSLOTS - 1;
	for (uint32_t i = 0; i < NSLOTS; i++)
		tx.ring.slot[i].buf_idx = i;
	return (be);
}

static void
send_frame(struct net_backend *be, size_t len)
{
	static uint8_t frame[NSLOTS * BUFSZ];
	struct iovec iov = { .iov_base = frame, .iov_len = len };

	ATF_CHECK_EQ((ssize_t)len, vale_backend.send(be, &iov, 1));
}

ATF_TC_WITHOUT_HEAD(batch);
ATF_TC_BODY(batch, tc)
{
	struct net_backend *be = create();

	for (int i = 0; i < NSLOTS - 1; i++)
		send_frame(be, 60);
	ATF_CHECK_EQ(0, nsyncs);
	vale_backend.flush(be);
	ATF_CHECK_EQ(1, nsyncs);
	ATF_CHECK_EQ(NSLOTS - 1, nframes);
}

ATF_TC_WITHOUT_HEAD(full);
ATF_TC_BODY(full, tc)
{
	struct net_backend *be = create();

	/* What was queued makes room for the frame that finds none. */
	for (int i = 0; i < NSLOTS; i++)
		send_frame(be, 60);
	ATF_CHECK_EQ(1, nsyncs);
	ATF_CHECK_EQ(NSLOTS - 1, nframes);
	send_frame(be, (NSLOTS - 1) * BUFSZ);
	ATF_CHECK_EQ(2, nsyncs);
	vale_backend.flush(be);
	ATF_CHECK_EQ(NSLOTS + 1, nframes);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, batch);
	ATF_TP_ADD_TC(tp, full);
	return (atf_no_error());
}
