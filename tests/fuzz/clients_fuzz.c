/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 *	clients_fuzz [-n messages] [-r rounds] [-s seed] [-t seconds]
 *
 * runs rounds with one seed after another, at least for so many seconds, each
 * with so many messages of each client.
 *
 * valed's threads and several hostile clients in one process, all on one
 * switch.  Each client has two threads that write to the memory which it
 * shares (rings and CSB; frames), while a third maps and unmaps that memory,
 * resets the adapter, stops it, writes registers, and reconnects
 * (clients_vm.c).  They withdraw pages of it at any time.  Ports without an
 * adapter come and go on the same switch, and so do monitors and mirrors of all
 * its ports, and settings.
 *
 * Which operations there are follows from the seed; when they run, from the
 * scheduler.  So that a thread often loses the processor where it hurts, some
 * of valed's functions sometimes wait: peer_mem_addr() when it has found an
 * address, before its caller uses it, and the adapter's when it has been paused
 * or resumed.
 *
 * Invariants, besides what the sanitizers see:
 *
 *  - Memory stays as it is after the reply to a message that took it away, or
 *    stopped the adapter, and after a disconnect.
 *  - Memory that no descriptor names, and memory beside what is shared, is
 *    never written to, and the former is never seen in a client's memory.
 *  - All messages are valid, and succeed.
 *  - A port's sink is not called after vale_close().
 *  - After each round, when all clients have left, valed has no descriptors,
 *    mappings or threads more than before, and serves correct clients.
 */

#include <sys/param.h>
#include <sys/systm.h>
#include <dev/netmap/vale_fdb_entry.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adapter.h"
#include "clients.h"
#include "e82545.h"
#include "frame.h"
#include "libvale.h"
#include "peer_close.h"
#include "peer_fault.h"
#include "setting.h"
#include "wait_until.h"
#include "wrap.h"

#define	PORTS		2
#define	SLOTS		64
#define	CHANGE_US	500		/* between changes, at most */

static struct client clients[CLIENTS];
static uint64_t round_seed;
static unsigned int round_messages;
static uint32_t threads_started;	/* with delays; atomic */

/*
 * Guest memory is not ThreadSanitizer's business: a guest's receive buffer may
 * be a frame that it sends.  The pattern matches the mapping's file.
 */
const char *__tsan_default_suppressions(void);

const char *
__tsan_default_suppressions(void)
{
	return ("race:memfd:clients\n");
}

/*
 * Delays.
 */

/* Once in n times. */
static void
delay(uint32_t n)
{
	static __thread struct rng rng;
	struct timespec pause = { 0, 0 };

	if (rng.state == 0)
		rng.state = 1 + atomic_fetchadd_32(&threads_started, 1);
	if (!rng_one_in(&rng, n))
		return;
	pause.tv_nsec = 1000 * rng_below(&rng, 200);
	if (rng_one_in(&rng, 4))
		nanosleep(&pause, NULL);
	else
		sched_yield();
}

WRAP(void *, peer_mem_addr, struct peer_mem *dma, uint64_t gpa, size_t len,
    int prot)
{
	void *addr;

	addr = __real_peer_mem_addr(dma, gpa, len, prot);
	if (addr != NULL)
		delay(64);
	return (addr);
}

WRAP(void, e82545_pause, struct e82545 *dev)
{
	__real_e82545_pause(dev);
	delay(4);
}

WRAP(void, e82545_resume, struct e82545 *dev)
{
	__real_e82545_resume(dev);
	delay(4);
}

/*
 * valed.
 */

int
valed_sandbox_drop(void)
{
	return (0);
}

static void
start_adapter(struct client *c)
{
	struct adapter_config *ac = &c->config;
	int n;

	snprintf(c->name, sizeof(c->name), "vm%u", c->n);
	c->sun.sun_family = AF_UNIX;
	n = snprintf(c->sun.sun_path + 1, sizeof(c->sun.sun_path) - 1,
	    "bhyve-vale-clients-%d-%u", getpid(), c->n);
	c->sunlen = offsetof(struct sockaddr_un, sun_path) + 1 + n;
	ac->ac_listen = socket(AF_UNIX,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	INVARIANT(bind(ac->ac_listen, (void *)&c->sun, c->sunlen) == 0);
	INVARIANT(listen(ac->ac_listen, 8) == 0);
	snprintf(ac->ac_backend, sizeof(ac->ac_backend), "vale0:%s", c->name);
	strlcpy(ac->ac_name, c->name, sizeof(ac->ac_name));
	ac->ac_mac[0] = 2;
	ac->ac_mac[5] = c->n;
	ac->ac_csb = ac->ac_direct = true;
	c->ad = adapter_start(ac, NULL);
	INVARIANT(c->ad != NULL);
	adapter_go(c->ad);
}

static void
start(void)
{
	unsigned int i;

	signal(SIGPIPE, SIG_IGN);
	json_object_seed(0);
	INVARIANT(peer_fault_init() == 0);
	INVARIANT(peer_close_start(valed_sandbox_drop) == 0);
	for (i = 0; i < CLIENTS; i++) {
		client_init(&clients[i], i);
		start_adapter(&clients[i]);
	}
}

/*
 * Ports that come and go.
 */

static struct port {
	pthread_t	thread;
	unsigned int	n;
	uint32_t	open;		/* atomic */
	uint32_t	stop;		/* atomic */
	uint64_t	opens;
} ports[PORTS];

/* Take some of the frames. */
static void
port_sink(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame f = { .f_iov = iov };
	struct port *port = arg;
	unsigned int i;

	INVARIANT(atomic_load_acq_32(&port->open) != 0);
	for (i = 0; i < 4 && frame_peek(frames, &f); i++)
		frame_next(frames);
	/* A sender stays in its sync while other ports come and go. */
	delay(4);
	INVARIANT(atomic_load_acq_32(&port->open) != 0);
}

static void
port_send(struct vale_desc *d, struct rng *rng)
{
	struct netmap_ring *ring = d->txring;
	struct netmap_slot *slot;
	uint8_t *buf;
	unsigned int i, n;

	n = 1 + rng_below(rng, 8);
	for (i = 0; i < n; i++) {
		slot = &ring->slot[ring->head];
		slot->len = 60 + rng_below(rng, 1500);
		slot->flags = 0;
		buf = (uint8_t *)NETMAP_BUF(ring, slot->buf_idx);
		memset(buf, 0xff, slot->len);
		buf[6] = 2;
		buf[11] = 0x10 + rng_below(rng, 64);
		if (rng_one_in(rng, 2)) {
			memset(buf, 0, 6);
			buf[0] = 2;
			buf[5] = rng_below(rng, CLIENTS);
		}
		ring->head = nm_ring_next(ring, ring->head);
	}
	INVARIANT(vale_txsync(d) == 0);
}

static void
port_receive(struct vale_desc *d)
{
	struct netmap_ring *ring = d->rxring;

	INVARIANT(vale_rxsync(d) == 0);
	ring->head = ring->cur = ring->tail;
	INVARIANT(vale_rxsync(d) == 0);
}

static void *
port_main(void *arg)
{
	const struct vale_params params = { .tx_slots = SLOTS,
	    .rx_slots = SLOTS };
	const struct timespec pause = { 0, 100000 };
	struct port *port = arg;
	struct rng rng = { round_seed + 1000 + port->n };
	struct vale_desc *d;
	char name[16];
	unsigned int i;

	snprintf(name, sizeof(name), "vale0:port%u", port->n);
	while (atomic_load_32(&port->stop) == 0) {
		d = vale_open(name, &params);
		INVARIANT(d != NULL);
		port->opens++;
		atomic_store_rel_32(&port->open, 1);
		if (!rng_one_in(&rng, 4))
			vale_set_sink(d, port_sink, port);
		for (i = rng_below(&rng, 8); i > 0; i--) {
			port_send(d, &rng);
			port_receive(d);
			nanosleep(&pause, NULL);
		}
		nanosleep(&pause, NULL);
		if (rng_one_in(&rng, 2)) {
			vale_set_sink(d, NULL, NULL);
			atomic_store_rel_32(&port->open, 0);
			setting_to("vale0", "ageing", "%u", rng_below(&rng, 3));
		}
		vale_close(d);
		atomic_store_rel_32(&port->open, 0);
	}
	return (NULL);
}

/*
 * Changes of the switch: an administrator's, of any port.
 */

static struct {
	pthread_t	thread;
	uint32_t	stop;		/* atomic */
	uint64_t	changes;
} changer;

/* The name of a client's port, or, which may not be there, another one's. */
static void
some_port(struct rng *rng, char *name, size_t size)
{
	if (rng_one_in(rng, 4))
		snprintf(name, size, "vale0:port%u", rng_below(rng, PORTS));
	else
		snprintf(name, size, "vale0:%s",
		    clients[rng_below(rng, CLIENTS)].name);
}

/* Copies of its frames, for a while. */
static void
monitor(const char *name, struct rng *rng)
{
	const struct vale_params params = { .tx_slots = SLOTS,
	    .rx_slots = SLOTS, .monitor = 1 + rng_below(rng, 3) };
	const struct timespec pause = { 0, 1000 * rng_below(rng, CHANGE_US) };
	struct vale_desc *d = vale_open(name, &params);

	if (d == NULL)
		return;
	nanosleep(&pause, NULL);
	port_receive(d);
	vale_close(d);
}

static void
change(struct rng *rng)
{
	static const char *const links[] = { "up", "down", "uplink" };
	char name[16], of[16];

	some_port(rng, name, sizeof(name));
	some_port(rng, of, sizeof(of));
	switch (rng_below(rng, 9)) {
	case 0:
		INVARIANT(setting_to("vale0", "ageing", "%u", rng_below(rng,
		    3)) == 0);
		break;
	case 1:
		INVARIANT(setting_to("vale0", "batch", "%u", 1 + rng_below(rng,
		    64)) == 0);
		break;
	case 2:
		(void)setting_to(name, "limit", "%u", rng_below(rng, 3));
		break;
	case 3:
		(void)setting_to(name, "rate", "%u00Kpkt/s",
		    rng_below(rng, 3));
		break;
	case 4:
		(void)setting_to(name, "weight", "%u", 1 + rng_below(rng, 3));
		break;
	case 5:
		(void)vale_set(name, "private", rng_one_in(rng, 2) ? "on" :
		    "off");
		break;
	case 6:
		(void)setting_mirror(name, of, rng_below(rng, 4));
		break;
	case 7:
		monitor(name, rng);
		break;
	case 8:
		(void)vale_set(name, "link", links[rng_below(rng, 3)]);
		(void)vale_set_carrier(of, rng_one_in(rng, 2));
		break;
	}
}

/* As without changes. */
static void
unchange(void)
{
	char name[16];
	unsigned int i;

	INVARIANT(vale_set("vale0", "ageing", "300") == 0);
	INVARIANT(vale_set("vale0", "batch", "1024") == 0);
	for (i = 0; i < CLIENTS; i++) {
		snprintf(name, sizeof(name), "vale0:%s", clients[i].name);
		INVARIANT(vale_set(name, "limit", "0") == 0);
		INVARIANT(vale_set(name, "rate", "0") == 0);
		INVARIANT(vale_set(name, "weight", "1") == 0);
		INVARIANT(vale_set(name, "private", "off") == 0);
		INVARIANT(vale_set(name, "link", "up") == 0);
		INVARIANT(vale_set(name, "mirror", "no") == 0);
	}
}

static void *
changer_main(void *arg __unused)
{
	struct rng rng = { round_seed + 2000 };
	struct timespec pause = { 0, 0 };

	while (atomic_load_32(&changer.stop) == 0) {
		change(&rng);
		changer.changes++;
		pause.tv_nsec = 1000 * rng_below(&rng, CHANGE_US);
		nanosleep(&pause, NULL);
	}
	unchange();
	return (NULL);
}

/*
 * Leaks.
 */

/*
 * The number of entries in a directory of /proc/self: without `kinds' all;
 * else those that are links to something of these kinds.
 */
static unsigned int
count_entries(const char *path, const char *const *kinds)
{
	struct dirent *entry;
	char target[64];
	unsigned int i, n;
	ssize_t len;
	DIR *dir;

	dir = opendir(path);
	INVARIANT(dir != NULL);
	n = 0;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		if (kinds == NULL) {
			n++;
			continue;
		}
		len = readlinkat(dirfd(dir), entry->d_name, target,
		    sizeof(target) - 1);
		target[MAX(len, 0)] = '\0';
		for (i = 0; kinds[i] != NULL; i++)
			n += strncmp(target, kinds[i], strlen(kinds[i])) == 0;
	}
	closedir(dir);
	return (n);
}

static unsigned int
count_threads(void)
{
	return (count_entries("/proc/self/task", NULL));
}

/* Without pipes: those to the sanitizers' symbolizer come when it starts. */
static unsigned int
count_fds(void)
{
	static const char *const kinds[] = {
		"socket:", "anon_inode:", "/memfd:", NULL
	};

	return (count_entries("/proc/self/fd", kinds));
}

/* The number of mappings of the clients' memory, whose files are "clients". */
static unsigned int
count_mappings(void)
{
	char line[512];
	unsigned int n;
	FILE *f;

	f = fopen("/proc/self/maps", "re");
	INVARIANT(f != NULL);
	n = 0;
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, "memfd:clients") != NULL;
	fclose(f);
	return (n);
}

/*
 * Rounds.
 */

static void *
client_main(void *arg)
{
	client_run(arg, round_messages);
	return (NULL);
}

static void
run_round(void)
{
	pthread_t thread[CLIENTS];
	unsigned int fds, i, maps, tasks;

	fds = count_fds();
	tasks = count_threads();
	maps = count_mappings();
	for (i = 0; i < PORTS; i++) {
		ports[i].n = i;
		atomic_store_32(&ports[i].stop, 0);
		INVARIANT(pthread_create(&ports[i].thread, NULL, port_main,
		    &ports[i]) == 0);
	}
	atomic_store_32(&changer.stop, 0);
	INVARIANT(pthread_create(&changer.thread, NULL, changer_main, NULL) ==
	    0);
	for (i = 0; i < CLIENTS; i++) {
		clients[i].seed = round_seed + 100 * i;
		INVARIANT(pthread_create(&thread[i], NULL, client_main,
		    &clients[i]) == 0);
	}
	for (i = 0; i < CLIENTS; i++)
		INVARIANT(pthread_join(thread[i], NULL) == 0);
	for (i = 0; i < PORTS; i++) {
		atomic_store_32(&ports[i].stop, 1);
		INVARIANT(pthread_join(ports[i].thread, NULL) == 0);
	}
	atomic_store_32(&changer.stop, 1);
	INVARIANT(pthread_join(changer.thread, NULL) == 0);
	for (i = 0; i < CLIENTS; i++)
		clients_work(&clients[i], &clients[(i + 1) % CLIENTS]);
	for (i = 0; i < CLIENTS; i++)
		client_check(&clients[i]);
	wait_until(count_fds() == fds, "%u descriptors, before %u",
	    count_fds(), fds);
	wait_until(count_mappings() == maps, "%u mappings, before %u",
	    count_mappings(), maps);
	wait_until(count_threads() == tasks, "%u threads, before %u",
	    count_threads(), tasks);
}

static void
show(void)
{
	uint64_t counters[VALE_NCOUNTERS], copied, direct, opens;
	unsigned int changes, checks, connects, i, messages, punches;
	char name[16];

	changes = checks = connects = messages = punches = 0;
	copied = direct = opens = 0;
	for (i = 0; i < CLIENTS; i++) {
		messages += clients[i].messages;
		connects += clients[i].connects;
		changes += clients[i].changes;
		checks += clients[i].checks;
		punches += clients[i].punches +
		    atomic_load_32(&clients[i].frame_punches);
		snprintf(name, sizeof(name), "vale0:%s", clients[i].name);
		INVARIANT(vale_port_counters(name, counters) == 0);
		copied += counters[VALE_C_RX_COPY];
		direct += counters[VALE_C_RX_DIRECT];
	}
	for (i = 0; i < PORTS; i++)
		opens += ports[i].opens;
	printf("%u messages, %u connections, %u changes of memory, %u checks, "
	    "%ju frames direct, %ju through a ring, %ju ports opened, "
	    "%u holes, %ju changes of the switch\n",
	    messages, connects, changes, checks, (uintmax_t)direct,
	    (uintmax_t)copied, (uintmax_t)opens, punches,
	    (uintmax_t)changer.changes);
}

static unsigned long
number(const char *text)
{
	unsigned long n;
	char *end;

	n = strtoul(text, &end, 10);
	if (*text == '\0' || *end != '\0')
		errx(1, "not a number: %s", text);
	return (n);
}

int
main(int argc, char **argv)
{
	unsigned long round, rounds = 1, seconds = 0, seed = 1;
	struct timespec begin, now;
	int ch;

	round_messages = 4000;
	while ((ch = getopt(argc, argv, "n:r:s:t:")) != -1) {
		switch (ch) {
		case 'n':
			round_messages = number(optarg);
			break;
		case 'r':
			rounds = number(optarg);
			break;
		case 's':
			seed = number(optarg);
			break;
		case 't':
			seconds = number(optarg);
			break;
		default:
			errx(1, "usage: clients_fuzz [-n messages] [-r rounds] "
			    "[-s seed] [-t seconds]");
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	start();
	now = begin;
	for (round = 0; round < rounds ||
	    now.tv_sec - begin.tv_sec < (time_t)seconds; round++) {
		round_seed = seed + round;
		printf("seed %ju\n", (uintmax_t)round_seed);
		fflush(stdout);
		run_round();
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	show();
	return (0);
}
