/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The switch: the leases of a receive ring, the sleep and wakeup of its user,
 * the same for a user in another process (vale_shared.c), a pipe (vale_pipe.c),
 * the way in and out of a switch that changes, the learning table; and the
 * model's fair mutex.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include "e82545_lock.h"
#include "vale_pipe.h"
#include "vale_window.h"
#include "vale_shared.h"
#include "vale_switch.h"

#define	LEN	60

static struct vale_desc *sender[2], *user;

static struct counts {
	unsigned int	got;		/* frames that the user has taken */
	unsigned int	last[2];	/* number of the last of each sender */
	bool		done[2];
} *counts;

static struct vale_desc *
port_open(const char *name, uint32_t rx_slots)
{
	struct vale_params params = { .tx_slots = 4, .rx_slots = rx_slots };
	struct vale_desc *d;

	d = vale_open(name, &params);
	MM_CHECK(d != NULL);
	return (d);
}

/* Two senders to one user, whose address the switch knows. */
static void
setup(uint32_t rx_slots)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 3 };
	struct vale_port *port;

	counts = mm_alloc(sizeof(*counts), 64);
	sender[0] = port_open("vale:a", 4);
	sender[1] = port_open("vale:b", 4);
	user = port_open("vale:c", rx_slots);
	port = vale_desc_port(user);
	vale_fdb_set_ageing(&port->vp_switch->vs_fdb, 0);
	vale_fdb_learn(&port->vp_switch->vs_fdb, mac, 0, port->vp_index, 1);
}

/* Put frame `number', from 1 on, into the transmit ring. */
static void
frame_put_into(struct netmap_ring *ring, int from, unsigned int number)
{
	struct netmap_slot *slot = &ring->slot[ring->head];
	uint8_t *p = (uint8_t *)NETMAP_BUF(ring, slot->buf_idx);

	memset(p, 0, LEN);
	p[0] = 2;
	p[5] = 3;
	p[6] = 2;
	p[11] = from + 1;
	p[20] = from;
	p[21] = number;
	slot->len = LEN;
	slot->flags = 0;
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
}

static void
frame_put(int from, unsigned int number)
{
	frame_put_into(sender[from]->txring, from, number);
}

static void
frame_send(int from, unsigned int number)
{
	frame_put(from, number);
	MM_CHECK(vale_txsync(sender[from]) == 0);
}

/* Take the frames that the last sync has shown. */
static void
take_from(struct netmap_ring *ring)
{
	struct netmap_slot *slot;
	uint8_t *p;
	uint32_t i;

	for (i = ring->head; i != ring->tail; i = nm_ring_next(ring, i)) {
		slot = &ring->slot[i];
		p = (uint8_t *)NETMAP_BUF(ring, slot->buf_idx);
		MM_CHECK(slot->len == LEN && p[20] < 2);
		/* Some may be lost, if the ring was full. */
		MM_CHECK(p[21] > counts->last[p[20]]);
		counts->last[p[20]] = p[21];
		counts->got++;
		memset(p, 0, LEN);
	}
	ring->head = ring->cur = ring->tail;
}

static void
take(void)
{
	take_from(user->rxring);
}

/* All frames that were not dropped have come. */
static void
arrived(unsigned int sent)
{
	struct vale_pair *pair = vale_desc_pair(user);

	MM_CHECK(counts->got + pair->pa_counter[VALE_C_RX_DROP_FULL] == sent);
}

/*
 * Leases: two senders, and a user that polls.
 */

static void
lease_setup(void)
{
	setup(4);
}

static void
lease_a(void)
{
	frame_send(0, 1);
	frame_send(0, 2);
}

static void
lease_b(void)
{
	frame_send(1, 1);
	frame_send(1, 2);
}

static void
lease_user(void)
{
	int i;

	user->rxring->flags |= VALE_RING_POLLED;
	for (i = 0; i < 6; i++) {
		MM_CHECK(vale_rxsync(user) == 0);
		take();
	}
}

static void
lease_check(void)
{
	MM_CHECK(vale_rxsync(user) == 0);
	take();
	arrived(4);
}

/*
 * The user returns slots, without a lock, and the sender fills them again.
 */

static void
return_setup(void)
{
	setup(3);
}

/* Batches of two, so that the second one fills a slot just returned. */
static void
return_send(void)
{
	unsigned int i;

	for (i = 1; i <= 6; i += 2) {
		frame_put(0, i);
		frame_send(0, i + 1);
	}
}

static void
return_check(void)
{
	lease_user();
	arrived(6);
}

/*
 * Sleep and wakeup: the user waits for each frame, polls now and then.
 */

static void
sleep_setup(void)
{
	setup(8);
}

static void
sleep_user(void)
{
	struct netmap_ring *ring = user->rxring;

	while (counts->got < 4) {
		if (mm_rand(4) == 0)
			ring->flags ^= VALE_RING_POLLED;
		MM_CHECK(vale_rxsync(user) == 0);
		if (ring->head == ring->tail) {
			if ((ring->flags & VALE_RING_POLLED) != 0)
				mm_yield();
			else
				mm_wait_fd(user->fd);
		}
		take();
	}
}

static void
sleep_check(void)
{
	arrived(4);
}

/*
 * A user in another process.  Its side is what vale_client.c does, with events
 * in place of sockets.
 */

static struct vale_csb *csb;
static struct vale_desc *shared;
static struct netmap_ring *txring, *rxring;
static struct mm_event rx_kick, tx_kick, tx_space;

static void
shared_wake(void *arg __attribute__((__unused__)),
    unsigned int ring __attribute__((__unused__)), bool tx)
{
	mm_set(tx ? &tx_space : &rx_kick);
}

/* The switch's user of setup() is the shared port. */
static void
shared_open(uint32_t rx_slots)
{
	struct vale_params params = { .tx_slots = 4, .rx_slots = rx_slots };
	struct vale_shared vs = { .wake = shared_wake };
	struct netmap_if *nifp;

	mm_clear(&rx_kick);
	mm_clear(&tx_kick);
	mm_clear(&tx_space);
	vs.memory = mm_alloc(vale_shared_size(&params, 0), 4096);
	shared = vale_open_shared("vale:shared", &params, &vs);
	MM_CHECK(shared != NULL);
	csb = vs.memory;
	nifp = shared->common->nifp;
	txring = NETMAP_TXRING(nifp, 0);
	rxring = NETMAP_RXRING(nifp, 0);
}

/* Frames for station 3 go to the shared port. */
static void
shared_rx_setup(uint32_t rx_slots)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 3 };
	struct vale_port *port;

	setup(8);
	shared_open(rx_slots);
	port = vale_desc_port(shared);
	vale_fdb_learn(&port->vp_switch->vs_fdb, mac, 0, port->vp_index, 1);
}

/* vale_client_rxsync() */
static void
user_rxsync(void)
{
	atomic_store_rel_32(&csb->rx_atok.head, rxring->head);
	rxring->tail = atomic_load_acq_32(&csb->rx_ktoa.hwtail);
}

/* vale_client_rxwait() */
static bool
user_rxwait(void)
{
	atomic_store_32(&csb->rx_atok.appl_need_kick, 1);
	atomic_thread_fence_seq_cst();
	return (atomic_load_32(&csb->rx_ktoa.hwtail) != rxring->head);
}

static void
shared_sleep_setup(void)
{
	shared_rx_setup(8);
}

static void
shared_sleep_user(void)
{
	while (counts->got < 4) {
		user_rxsync();
		take_from(rxring);
		if (counts->got < 4 && !user_rxwait())
			mm_wait(&rx_kick);
	}
}

static void
shared_return_setup(void)
{
	shared_rx_setup(3);
}

static void
shared_return_user(void)
{
	int i;

	for (i = 0; i < 6; i++) {
		user_rxsync();
		take_from(rxring);
	}
}

static void
shared_return_check(void)
{
	struct vale_pair *pair = vale_desc_pair(shared);

	shared_return_user();
	MM_CHECK(counts->got + pair->pa_counter[VALE_C_RX_DROP_FULL] == 6);
}

static void
shared_tx_setup(void)
{
	setup(8);
	shared_open(4);
}

/* vale_client_txwait(), which acquires: wait for a free slot. */
static void
user_txwait(void)
{
	while (txring->head == txring->tail) {
		atomic_store_32(&csb->tx_atok.appl_need_kick, 1);
		atomic_thread_fence_seq_cst();
		txring->tail = atomic_load_32(&csb->tx_ktoa.hwtail);
		if (txring->head == txring->tail)
			mm_wait(&tx_space);
	}
}

/* vale_client_txsync() */
static void
user_txsync(void)
{
	atomic_store_rel_32(&csb->tx_atok.head, txring->head);
	atomic_thread_fence_seq_cst();
	if (atomic_load_32(&csb->tx_ktoa.kern_need_kick) != 0 &&
	    atomic_swap_32(&csb->tx_ktoa.kern_need_kick, 0) != 0)
		mm_set(&tx_kick);
}

static void
shared_tx_user(void)
{
	unsigned int i;

	for (i = 1; i <= 5; i++) {
		user_txwait();
		frame_put_into(txring, 0, i);
		user_txsync();
	}
}

/* The thread of the port. */
static void
shared_tx_serve(void)
{
	struct vale_pair *pair = vale_desc_pair(shared);

	while (pair->pa_counter[VALE_C_TX_FRAME] < 5)
		if (!vale_shared_tx(shared) && vale_shared_wait(shared))
			mm_wait(&tx_kick);
}

static void
shared_tx_check(void)
{
	MM_CHECK(vale_rxsync(user) == 0);
	take();
	arrived(5);
}

/*
 * An inbox: a frame to all ports, and one behind it to the shared port alone.
 */

static void
inbox_send(void)
{
	struct netmap_ring *ring = sender[0]->txring;
	uint8_t *p = (uint8_t *)NETMAP_BUF(ring,
	    ring->slot[ring->head].buf_idx);

	frame_put(0, 1);
	memset(p, 0xff, 6);
	MM_CHECK(vale_txsync(sender[0]) == 0);
	frame_send(0, 2);
}

/* The owner's thread: it is woken for the first, and polls for the second. */
static void
inbox_serve(void)
{
	struct vale_pair *pair = vale_desc_pair(shared);

	mm_wait_fd(vale_shared_fd(shared));
	while (atomic_load_64(&pair->pa_counter[VALE_C_RX_FRAME]) < 2)
		if (!vale_shared_rx(shared))
			mm_yield();
}

static void
inbox_user(void)
{
	while (counts->got < 2) {
		user_rxsync();
		take_from(rxring);
		mm_yield();
	}
}

/*
 * A pipe, from the master to the slave.  Each end is opened again in between.
 */

#define	PIPE_FRAMES	6

static struct vale_pipe ends[2];
static struct vale_window_ring ends_heads[2];
static struct vale_pipe_layout ends_layout;
static uint32_t ends_first;		/* buffer */

static void
pipe_open(unsigned int end)
{
	vale_pipe_attach(&ends[end], &ends_layout, end, ends_first);
}

/* A ring as it is in a window, of buffers from `bufs' on. */
static struct netmap_ring *
pipe_ring(const char *bufs, unsigned int dir, uint32_t slots)
{
	struct netmap_ring *ring = mm_alloc(vale_ring_size(slots),
	    NM_CACHE_ALIGN);

	vale_ring_init(ring, bufs - (char *)ring, 0, dir, slots);
	return (ring);
}

static void
pipe_setup(void)
{
	const uint32_t slots[2] = { 3, 2 };
	uint32_t nbufs;
	unsigned int i;
	char *memory;

	mm_clear(&rx_kick);
	mm_clear(&tx_space);
	vale_pipe_layout(&ends_layout, slots);
	memory = mm_alloc(VALE_PAGE + ends_layout.pl_size, VALE_PAGE);
	ends_first = (VALE_PAGE + ends_layout.pl_bufs) / VALE_BUF_SIZE;
	nbufs = (VALE_PAGE + ends_layout.pl_size) / VALE_BUF_SIZE;
	vale_pipe_init(memory + VALE_PAGE, &ends_layout, ends_first, nbufs);
	for (i = 0; i < 2; i++) {
		ends[i] = (struct vale_pipe){
			.pp_txring = pipe_ring(memory, 0, slots[i]),
			.pp_rxring = pipe_ring(memory, 1, slots[!i]),
			.pp_heads = &ends_heads[i],
			.pp_nbufs = nbufs,
		};
		vale_pipe_find(&ends[i], memory + VALE_PAGE, &ends_layout, i);
		pipe_open(i);
	}
}

/* A sync, and the kick that it asks for. */
static void
pipe_sync(int (*sync)(struct vale_pipe *, bool *), unsigned int end,
    struct mm_event *event)
{
	bool kick;

	MM_CHECK(sync(&ends[end], &kick) == 0);
	if (kick)
		mm_set(event);
}

static void
pipe_send(void)
{
	struct netmap_ring *ring = ends[VALE_PIPE_MASTER].pp_txring;
	struct netmap_slot *slot;
	uint32_t i = 1;

	while (i <= PIPE_FRAMES) {
		if (ring->head == ring->tail &&
		    !vale_pipe_txwait(&ends[VALE_PIPE_MASTER]))
			mm_wait(&tx_space);
		pipe_sync(vale_pipe_txsync, VALE_PIPE_MASTER, &rx_kick);
		/* Two at once, if there is space. */
		for (; ring->head != ring->tail && i <= PIPE_FRAMES; i++) {
			slot = &ring->slot[ring->head];
			*(uint32_t *)(void *)NETMAP_BUF(ring, slot->buf_idx) =
			    i;
			slot->len = 60;
			ring->head = ring->cur = nm_ring_next(ring,
			    ring->head);
		}
		pipe_sync(vale_pipe_txsync, VALE_PIPE_MASTER, &rx_kick);
		if (i == 3)
			pipe_open(VALE_PIPE_MASTER);
	}
}

static void
pipe_receive(void)
{
	struct netmap_ring *ring = ends[VALE_PIPE_SLAVE].pp_rxring;
	uint32_t i = 1;

	while (i <= PIPE_FRAMES) {
		pipe_sync(vale_pipe_rxsync, VALE_PIPE_SLAVE, &tx_space);
		if (i == 3)
			pipe_open(VALE_PIPE_SLAVE);
		pipe_sync(vale_pipe_rxsync, VALE_PIPE_SLAVE, &tx_space);
		if (ring->head == ring->tail) {
			if (!vale_pipe_rxwait(&ends[VALE_PIPE_SLAVE]))
				mm_wait(&rx_kick);
			continue;
		}
		/* It may release two at once. */
		for (; ring->head != ring->tail; i++) {
			MM_CHECK(*(uint32_t *)(void *)NETMAP_BUF(ring,
			    ring->slot[ring->head].buf_idx) == i);
			ring->head = ring->cur = nm_ring_next(ring,
			    ring->head);
		}
	}
}

/*
 * A change of the switch while ports send.
 */

/* The arguments of the first and of the next sink. */
static uint32_t *sunk, *sunk_next;

static void
sink(void *arg, struct frame_source *frames)
{
	uint32_t *n = arg;
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	/* The sink's argument is freed when it is no longer the sink. */
	MM_CHECK(*n == 1);
	while (frame_peek(frames, &frame))
		frame_next(frames);
}

static void
change_setup(void)
{
	setup(8);
	sunk = mm_alloc(sizeof(*sunk), 64);
	sunk_next = mm_alloc(sizeof(*sunk_next), 64);
	*sunk = 1;
	MM_CHECK(vale_set_sink(user, sink, sunk) == 0);
}

static void
change_send(void)
{
	frame_send(0, 1);
	frame_send(0, 2);
}

static void
change_send_b(void)
{
	frame_send(1, 1);
}

static void
change_change(void)
{
	MM_CHECK(vale_set_sink(user, NULL, NULL) == 0);
	*sunk = 0;
	*sunk_next = 1;
	MM_CHECK(vale_set_sink(user, sink, sunk_next) == 0);
}

/*
 * The learning table.
 */

static struct vale_fdb *fdb;
static struct vale_fdb_bucket *bucket;
static uint8_t addr[3][6];

/* Addresses of one bucket. */
static void
table_setup(void)
{
	static const uint64_t seed[2] = { 0, 0 };
	struct vale_fdb_bucket *b;
	unsigned int i, n = 0;
	uint8_t a[6] = { 2 };

	fdb = mm_alloc(sizeof(*fdb), 64);
	vale_fdb_init(fdb, seed);
	for (i = 0; n < 3; i++) {
		memcpy(a + 2, &i, sizeof(i));
		vale_fdb_learn(fdb, a, 0, 9, 1);
		for (b = fdb->fdb_bucket; b->fb_entry[0] == 0; b++)
			;
		vale_fdb_flush(fdb, 9);
		if (bucket == NULL)
			bucket = b;
		if (b == bucket)
			memcpy(addr[n++], a, 6);
	}
	vale_fdb_learn(fdb, addr[0], 0, 1, 1);
}

/* Move one station, learn another. */
static void
table_learn(unsigned int port)
{
	enum vale_fdb_news news;

	do {
		news = vale_fdb_learn(fdb, addr[1], 0, port, 2);
	} while (news == VALE_FDB_IGNORED);
	vale_fdb_learn(fdb, addr[2], 0, port, 2);
}

static void
table_learn_2(void)
{
	table_learn(2);
}

static void
table_learn_3(void)
{
	table_learn(3);
}

static void
table_lookup(void)
{
	unsigned int i, port;

	for (i = 0; i < 2; i++) {
		port = vale_fdb_lookup(fdb, addr[1], 0, 2);
		MM_CHECK(port == 2 || port == 3 || port == VALE_FDB_FLOOD);
		MM_CHECK(vale_fdb_lookup(fdb, addr[0], 0, 2) == 1);
	}
}

/* No address is in the table twice, and the entries are counted. */
static void
table_check(void)
{
	unsigned int i, j, n = 0, used[4] = { 0 };
	uint64_t entry;

	for (i = 0; i < VALE_FDB_WAYS; i++) {
		entry = bucket->fb_entry[i];
		if (entry == 0)
			continue;
		for (j = 0; j < i; j++)
			MM_CHECK(bucket->fb_entry[j] >> 8 != entry >> 8);
		MM_CHECK((entry & 0xff) < 4);
		used[entry & 0xff]++;
		n++;
	}
	MM_CHECK(n == 2 || n == 3);
	for (i = 0; i < 4; i++)
		MM_CHECK(fdb->fdb_used[i] == used[i]);
}

/* A cached lookup is as good as the generation. */
static void
generation_setup(void)
{
	table_setup();
	vale_fdb_learn(fdb, addr[1], 0, 2, 1);
}

static void
generation_learn(void)
{
	vale_fdb_learn(fdb, addr[1], 0, 3, 1);
}

static void
generation_lookup(void)
{
	uint32_t before = vale_fdb_changes(fdb);
	unsigned int i, port;

	for (i = 0; i < 4; i++) {
		port = vale_fdb_lookup(fdb, addr[1], 0, 1);
		MM_CHECK(port == 2 || port == 3);
		/* What was looked up before is no longer good. */
		if (vale_fdb_changes(fdb) != before)
			MM_CHECK(vale_fdb_lookup(fdb, addr[1], 0, 1) == 3);
	}
}

/*
 * The fair mutex: what it protects, and that nobody gets it ahead of a thread
 * that has the gate.
 */

static struct fair {
	struct e82545_lock lock;
	unsigned int	n;
} *fair;
static int gate;		/* the thread that has it, or -1 */

static void
fair_locked(const void *mutex, int thread)
{
	if (mutex == &fair->lock.gate)
		gate = thread;
	if (mutex == &fair->lock.mtx) {
		MM_CHECK(gate == thread);
		gate = -1;
	}
}

static void
fair_setup(void)
{
	gate = -1;
	mm_locked = fair_locked;
	fair = mm_alloc(sizeof(*fair), 64);
	pthread_mutex_init(&fair->lock.gate, NULL);
	pthread_mutex_init(&fair->lock.mtx, NULL);
}

static void
fair_thread(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		e82545_lock(&fair->lock);
		fair->n++;
		e82545_unlock(&fair->lock);
	}
}

static void
fair_check(void)
{
	MM_CHECK(fair->n == 6);
}

const struct mm_scenario vale_scenarios[] = {
	{ "lease", "two senders lease slots; the user polls", 3,
	  lease_setup, { lease_a, lease_b, lease_user }, lease_check },
	{ "return", "a user that polls returns slots", 2,
	  return_setup, { return_send, lease_user }, return_check },
	{ "sleep", "the user waits for frames of two senders", 3,
	  sleep_setup, { lease_a, lease_b, sleep_user }, sleep_check },
	{ "shared_sleep", "a user in another process waits for two senders", 3,
	  shared_sleep_setup, { lease_a, lease_b, shared_sleep_user }, NULL },
	{ "shared_return", "a user in another process returns slots", 2,
	  shared_return_setup, { return_send, shared_return_user },
	  shared_return_check },
	{ "shared_tx", "a user in another process sends, and waits for space",
	  2, shared_tx_setup, { shared_tx_user, shared_tx_serve },
	  shared_tx_check },
	{ "inbox", "frames wait for a user in another process, and keep their "
	  "order", 3, shared_sleep_setup,
	  { inbox_send, inbox_serve, inbox_user }, NULL },
	{ "pipe", "a pipe: both ends wait for each other", 2,
	  pipe_setup, { pipe_send, pipe_receive }, NULL },
	{ "change", "the switch changes while two ports send", 3,
	  change_setup, { change_send, change_send_b, change_change }, NULL },
	{ "table", "two threads learn, one looks up", 3,
	  table_setup, { table_learn_2, table_learn_3, table_lookup },
	  table_check },
	{ "generation", "a cached lookup and the generation", 2,
	  generation_setup, { generation_learn, generation_lookup }, NULL },
	{ "fair", "the fair mutex", 3,
	  fair_setup, { fair_thread, fair_thread, fair_thread }, fair_check },
	{ NULL, NULL, 0, NULL, { NULL }, NULL }
};
