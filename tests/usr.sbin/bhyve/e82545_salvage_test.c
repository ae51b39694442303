/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A process that runs an adapter ends at any instruction, and the adapter goes
 * on in another one.
 */

#include <sys/param.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* The model's headers need no probes here. */
#ifndef WITHOUT_DTRACE
#define	WITHOUT_DTRACE
#endif

#include "e82545_check.h"
#include "e82545_crash.h"
#include "e82545_eeprom.h"
#include "e82545_phy.h"
#include "e82545_rx_impl.h"
#include "e82545_tx_impl.h"

#define	TSO		200		/* bytes of a segment */
#define	FRAMES_MAX	4096
#define	STEPS_MAX	1000000		/* instructions of a process */

/* What a guest does. */
struct traffic {
	bool		csb;
	uint32_t	packets;	/* it sends */
	uint16_t	tso;		/* bytes of segments */
	uint32_t	frames;		/* it receives */
};

/* What a crash leaves of batches. */
struct left {
	bool		tx_ended, rx_ended;	/* they were writing back */
	bool		taken;		/* an index was, from the CSB */
	uint32_t	nsent;
	uint32_t	rx_next;
};

static struct left
look_at(struct crash *c)
{
	const struct e82545 *old = (void *)c->model[c->cur];
	const uint32_t regs = E82574_QUEUE(crash_queue);
	const struct e82545_rxq *rxq;
	const struct e82545_txq *txq;
	struct e82545 parts;
	struct left l;

	e82545_memory_parts(&parts, c->model[c->cur]);
	txq = &parts.txq[crash_queue];
	rxq = &parts.rxq[crash_queue];
	l.tx_ended = txq->end != TX_END_NONE &&
	    txq->end != e82545_reg(old, E82545_TDH + regs);
	l.rx_ended = rxq->ndone > 0 || (rxq->end != RX_END_NONE &&
	    rxq->end != e82545_reg(old, E82545_RDH + regs));
	l.taken = c->csb && (old->csb.tdt.taken != NET_PARAVIRT_NONE ||
	    old->csb.rdt.taken != NET_PARAVIRT_NONE);
	l.nsent = c->nsent;
	l.rx_next = c->rx_next;
	return (l);
}

/*
 * All frames that were sent are right, in order, each once, but for those from
 * the batch on that the crash has cut off.
 */
static void
check_tx(const struct crash *c, const struct left *l, uint32_t batch,
    uint32_t told)
{
	static uint64_t want[FRAMES_MAX];
	static uint16_t tso;
	const uint32_t total = crash_frames(c->packets);
	uint32_t again, i;

	ATF_REQUIRE(total <= nitems(want));
	if (tso != c->tso)
		memset(want, 0, sizeof(want));
	tso = c->tso;
	for (i = total; i-- > 0 && want[i] == 0;)
		want[i] = crash_hash(i);
	ATF_REQUIRE_EQ(c->packets, c->told);
	ATF_REQUIRE(told <= l->nsent);
	for (i = 0; i < l->nsent; i++)
		ATF_REQUIRE_EQ_MSG(want[i], c->sent[i], "frame %u", i);
	ATF_REQUIRE(c->nsent >= total);
	again = c->nsent - total;
	if (l->tx_ended)
		ATF_REQUIRE_EQ(0, again);
	ATF_REQUIRE_MSG(again <= l->nsent - batch, "%u again of %u", again,
	    l->nsent);
	ATF_REQUIRE(l->nsent - again >= told);
	for (i = l->nsent; i < c->nsent; i++)
		ATF_REQUIRE_EQ_MSG(want[i - again], c->sent[i],
		    "frame %u, %u again", i, again);
}

/* Frames are lost that were taken from the port by that batch, and no other. */
static void
check_rx(const struct crash *c, const struct left *l, uint32_t batch,
    uint32_t frames)
{
	const uint32_t lost = c->nlost + frames - c->rx_frame;

	ATF_REQUIRE_EQ(frames, c->nreceived + lost);
	if (l->rx_ended)
		ATF_REQUIRE_EQ(0, lost);
	ATF_REQUIRE(lost <= l->rx_next - batch);
	if (c->nlost > 0)
		ATF_REQUIRE(c->lost_first >= batch &&
		    c->lost_last < l->rx_next);
}

/* The process that ran the adapter has ended: it goes on in this one. */
static void
check_left(struct crash *c, const struct traffic *t, bool look)
{
	const uint32_t batch_rx = c->batch_rx, batch_sent = c->batch_sent;
	const struct left l = look_at(c);
	uint32_t told;

	/* The guest may see what there is before another process does. */
	if (look)
		crash_look(c);
	told = crash_frames(c->told);
	ATF_REQUIRE_EQ(0, crash_recover(c));
	/* An access that was in progress is done again. */
	crash_serve(c);
	crash_run(c, 400, t->frames);
	check_tx(c, &l, batch_sent, told);
	check_rx(c, &l, batch_rx, t->frames);
	crash_down(c);
}

/* The same in a copy of `from', which stands still. */
static void
check_copy(const struct crash *from, struct crash *c, const struct traffic *t,
    bool look)
{
	memcpy(c, from, sizeof(*c));
	check_left(c, t, look);
}

#ifdef __linux__
#define	TRACE_ME()	ptrace(PTRACE_TRACEME, 0, 0, 0)
#define	TRACE_STEP(pid)	ptrace(PTRACE_SINGLESTEP, pid, 0, 0)
#else
#define	TRACE_ME()	ptrace(PT_TRACE_ME, 0, NULL, 0)
#define	TRACE_STEP(pid)	ptrace(PT_STEP, pid, (caddr_t)1, 0)
#endif

/* Returns false when the process has stopped by itself. */
static bool
step(pid_t pid)
{
	int status;

	ATF_REQUIRE_EQ(0, TRACE_STEP(pid));
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_REQUIRE(WIFSTOPPED(status));
	return (WSTOPSIG(status) == SIGTRAP);
}

/* Skip a case that has nothing but steps. */
static void
steps_only(void)
{
#ifdef SANITIZED
	atf_tc_skip("a sanitizer's own instructions are too many");
#endif
}

/*
 * Run a process up to a round, and then end it after each instruction of the
 * adapter that is one of `stride', or is in the middle of something: in a copy.
 */
static void
check_steps(struct traffic t, unsigned int round, unsigned int stride)
{
	struct crash *c = crash_alloc(), *copy = crash_alloc();
	unsigned int n = 0, nchecked = 0, nleft = 0, nsteps;
	struct left l;
	pid_t pid;
	int status;

#ifdef SANITIZED
	printf("no steps: a sanitizer's own instructions are too many\n");
	return;
#endif
	crash_up(c, t.csb, t.packets, t.tso);
	crash_down(c);
	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		crash_up(c, t.csb, t.packets, t.tso);
		crash_run(c, round, t.frames);
		TRACE_ME();
		raise(SIGSTOP);
		crash_run(c, 1, t.frames);
		raise(SIGSTOP);
		_exit(0);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_REQUIRE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	for (nsteps = 0; nsteps < STEPS_MAX && step(pid); nsteps++) {
		if (!c->in_model)
			continue;
		l = look_at(c);
		if (!l.tx_ended && !l.rx_ended && !l.taken && n++ % stride != 0)
			continue;
		nleft += l.tx_ended || l.rx_ended;
		nchecked++;
		check_copy(c, copy, &t, false);
		check_copy(c, copy, &t, true);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	printf("%u instructions, %u checked, %u of them in a write back\n",
	    nsteps, nchecked, nleft);
	ATF_CHECK(nsteps < STEPS_MAX);
	ATF_CHECK(nleft > 10);
	crash_free(copy);
	crash_free(c);
}

/* End a process at each `stride'-th call of the host. */
static void
check_points(struct traffic t, unsigned int stride)
{
	struct crash *c = crash_alloc();
	unsigned int at = 1;
	pid_t pid;
	int status;

	do {
		crash_up(c, t.csb, t.packets, t.tso);
		crash_down(c);
		pid = fork();
		ATF_REQUIRE(pid != -1);
		if (pid == 0) {
			crash_up(c, t.csb, t.packets, t.tso);
			c->point = 0;
			c->die_at = at;
			crash_run(c, 400, t.frames);
			c->die_at = 0;
			_exit(1);
		}
		ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
		ATF_REQUIRE(WIFEXITED(status));
		if (c->in_model)
			check_left(c, &t, at % 2 == 0);
		at += stride;
	} while (WEXITSTATUS(status) == 0);
	printf("%u points\n", at / stride);
	crash_free(c);
}

TEST(run, "The guest of these tests gets all frames if nothing crashes")
{
	struct crash *c = crash_alloc();
	const struct left l = { .nsent = 0 };
	int csb;

	for (csb = 0; csb < 2; csb++) {
		crash_up(c, csb, 60, TSO);
		crash_run(c, 400, 40);
		check_tx(c, &l, 0, 0);
		check_rx(c, &l, 0, 40);
		crash_down(c);
	}
	crash_free(c);
}

TEST(steps, "A process may end at any instruction of a batch")
{
	steps_only();
	check_steps((struct traffic){ false, 60, TSO, 40 }, 0, 97);
	check_steps((struct traffic){ false, 60, TSO, 40 }, 3, 97);
}

TEST(tx_steps, "The same if the guest only sends")
{
	steps_only();
	check_steps((struct traffic){ false, 7, TSO, 0 }, 0, 31);
	check_steps((struct traffic){ false, 60, TSO, 0 }, 2, 97);
}

TEST(rx_steps, "The same if the guest only receives")
{
	steps_only();
	check_steps((struct traffic){ false, 0, TSO, 3 }, 0, 31);
	check_steps((struct traffic){ false, 0, TSO, 40 }, 4, 97);
}

TEST(csb_steps, "A process may end at any instruction of a batch with the CSB")
{
	steps_only();
	check_steps((struct traffic){ true, 60, TSO, 40 }, 0, 97);
	check_steps((struct traffic){ true, 60, TSO, 40 }, 3, 97);
}

TEST(csb_tx_steps, "The same if the guest only sends")
{
	steps_only();
	check_steps((struct traffic){ true, 7, TSO, 0 }, 0, 31);
	check_steps((struct traffic){ true, 60, TSO, 0 }, 2, 97);
}

TEST(csb_rx_steps, "The same if the guest only receives")
{
	steps_only();
	check_steps((struct traffic){ true, 0, TSO, 3 }, 0, 31);
	check_steps((struct traffic){ true, 0, TSO, 40 }, 4, 97);
}

TEST(csb_numbers, "The same if the guest's requests have numbers, and it never "
    "reads ICR")
{
	crash_numbers = true;
	check_steps((struct traffic){ true, 7, TSO, 3 }, 0, 31);
	check_steps((struct traffic){ true, 60, TSO, 40 }, 3, 97);
	check_points((struct traffic){ true, 60, TSO, 40 }, 1);
}

TEST(csb_old_rdt, "An index that the CSB has from before a ring was started "
    "posts nothing, wherever a process ends")
{
	steps_only();
	crash_old_rdt = true;
	check_steps((struct traffic){ true, 0, TSO, 40 }, 0, 31);
}

TEST(points, "A process may end in any call of the host")
{
	check_points((struct traffic){ false, 60, TSO, 40 }, 1);
}

TEST(csb_points, "A process may end in any call of the host with the CSB")
{
	check_points((struct traffic){ true, 60, TSO, 40 }, 1);
}

/* With extended descriptors, of these queues. */
static void
check_extended(unsigned int queue)
{
	struct crash *c = crash_alloc();
	const struct left l = { .nsent = 0 };

	crash_extended = true;
	crash_queue = queue;
	crash_up(c, false, 60, TSO);
	crash_run(c, 400, 40);
	check_tx(c, &l, 0, 0);
	check_rx(c, &l, 0, 40);
	crash_down(c);
	crash_free(c);
	check_points((struct traffic){ false, 60, TSO, 40 }, 1);
	check_steps((struct traffic){ false, 0, TSO, 3 }, 0, 31);
	check_steps((struct traffic){ false, 0, TSO, 40 }, 4, 97);
}

TEST(extended, "The guest gets all frames into extended descriptors, too, "
    "wherever a process ends")
{
	check_extended(0);
}

TEST(queue1, "The same of an adapter's second queues, with RSS")
{
	check_extended(1);
	check_steps((struct traffic){ false, 2, TSO, 0 }, 0, 31);
}

TEST(segments, "A process may end while a packet is sent in several batches")
{
	check_points((struct traffic){ false, 14, 3, 0 }, 7);
}

/* Frames that were sent until a process was killed, and after that. */
struct record {
	uint32_t	nseen;		/* recorded, and compared */
	uint32_t	next;		/* the frame expected then */
	uint32_t	again;		/* the most that may come again */
};

static void
check_record(const struct crash *c, struct record *r)
{
	const uint32_t nsent = atomic_load_acq_32(&c->nsent);
	uint64_t hash;
	uint32_t back;

	ATF_REQUIRE(nsent - r->nseen <= CRASH_SENT);
	for (; r->nseen < nsent; r->nseen++, r->next++) {
		hash = c->sent[r->nseen % CRASH_SENT];
		for (back = 0; crash_hash(r->next - back) != hash; back++)
			ATF_REQUIRE_MSG(back < r->again, "frame %u, record %u",
			    r->next, r->nseen);
		r->next -= back;
		r->again = 0;
	}
}

/* The process that runs the adapter. */
static void
run_adapter(struct crash *c, bool first)
{
	if (!first && crash_recover(c) != 0)
		_exit(1);
	for (;;) {
		crash_serve(c);
		crash_host(c);
	}
}

/* What other processors do meanwhile. */
static void
run_guest(struct crash *c, unsigned int rounds, uint32_t frames)
{
	while (rounds-- > 0) {
		atomic_store_64(&c->now_ns, c->now_ns + 100000);
		if (c->rx_limit < frames)
			atomic_store_rel_32(&c->rx_limit, c->rx_limit + 1);
		crash_guest(c);
		usleep(1);
	}
}

static void
check_kills(bool csb, unsigned int nkills)
{
	struct crash *c = crash_alloc();
	struct record r = { .nseen = 0 };
	struct left l;
	unsigned int i, n, nended = 0;
	uint32_t lost = 0, seed = 1;
	pid_t pid;
	int status;

	crash_up(c, csb, UINT32_MAX, TSO);
	crash_down(c);
	for (i = 0; i <= nkills; i++) {
		pid = fork();
		ATF_REQUIRE(pid != -1);
		if (pid == 0) {
			if (i == 0) {
				crash_up(c, csb, UINT32_MAX, TSO);
				c->remote = true;
			}
			run_adapter(c, i == 0);
		}
		while (!((volatile struct crash *)c)->remote)
			sched_yield();
		if (i == nkills)
			break;
		run_guest(c, test_below(&seed, 100), UINT32_MAX);
		kill(pid, SIGKILL);
		ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
		ATF_REQUIRE(WIFSIGNALED(status));
		check_record(c, &r);
		l = look_at(c);
		nended += l.tx_ended || l.rx_ended;
		r.again = l.tx_ended ? 0 : c->nsent - c->batch_sent;
		lost += c->rx_next - c->batch_rx;
	}
	/* The last one goes on until all is done. */
	c->packets = (c->next_packet / 7 + 2) * 7;
	for (n = 0; n < 100000 && c->told != c->packets; n++) {
		run_guest(c, 10, c->rx_limit);
		check_record(c, &r);
	}
	ATF_CHECK_EQ(c->packets, c->told);
	for (n = 0; n < 100000 && c->rx_next != c->rx_limit; n++)
		run_guest(c, 10, c->rx_limit);
	ATF_CHECK_EQ(c->rx_limit, c->rx_next);
	run_guest(c, 1000, c->rx_limit);
	kill(pid, SIGKILL);
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	check_record(c, &r);
	ATF_CHECK_EQ(crash_frames(c->packets), r.next);
	ATF_CHECK_MSG(c->nlost + c->rx_limit - c->rx_frame <= lost,
	    "%u lost of %u", c->nlost, lost);
	printf("%u packets sent, %u frames received, %u lost, %u of %u kills "
	    "in a write back\n", c->told, c->nreceived, c->nlost, nended,
	    nkills);
	crash_free(c);
}

TEST(kills, "A process is killed again and again while the guest goes on")
{
	check_kills(false, 200);
}

TEST(csb_kills, "A process is killed again and again, with the CSB")
{
	check_kills(true, 200);
}

/* Change the memory of an adapter at a few places. */
static void
damage(uint8_t *memory, uint32_t *seed)
{
	const size_t size = e82545_memory_size();
	struct e82545 *dev = (void *)memory, parts;
	uint8_t *at[] = {
		(void *)&dev->csb, (void *)&dev->moder, memory,
		(void *)dev->stat_latch, (void *)&dev->io_addr, NULL, NULL,
		NULL, NULL, (void *)&dev->regs[E82545_RDBAL / 4],
		(void *)&dev->regs[E82545_TDBAL / 4]
	};
	unsigned int i, n;
	size_t off;

	e82545_memory_parts(&parts, memory);
	at[5] = (void *)parts.eeprom;
	at[6] = (void *)parts.phy;
	at[7] = (void *)parts.txq;
	at[8] = (void *)parts.rxq;
	n = 1 + test_random(seed) % 8;
	for (i = 0; i < n; i++) {
		off = at[test_random(seed) % nitems(at)] - memory +
		    test_random(seed) % 256;
		memory[off % size] = test_random(seed) % 4 == 0 ?
		    test_random(seed) : test_random(seed) % 4 == 0 ? 0xff :
		    test_random(seed) % 64;
	}
	dev->magic = E82545_MAGIC;
}

TEST(damaged, "Memory that was changed is refused, or an adapter goes on from "
    "it and harms nobody else")
{
	struct crash *c = crash_alloc(), *copy = crash_alloc();
	unsigned int i, nbad = 0, ngood = 0;
	uint32_t seed = 1;
	int error;

	for (i = 0; i < 3000; i++) {
		if (i % 100 == 0) {
			if (i > 0)
				crash_down(c);
			crash_up(c, i / 100 % 2 != 0, 60, TSO);
			crash_run(c, i / 100 % 8, 40);
		}
		memcpy(copy, c, sizeof(*c));
		damage(copy->model[copy->cur], &seed);
		error = crash_recover(copy);
		ATF_REQUIRE(error == 0 || error == EINVAL);
		if (error != 0) {
			nbad++;
			continue;
		}
		ngood++;
		copy->rx_limit = 1000;
		crash_host(copy);
		copy->now_ns += 20000000;
		crash_host(copy);
		crash_down(copy);
	}
	printf("%u refused, %u went on\n", nbad, ngood);
	ATF_CHECK(nbad > 100 && ngood > 100);
	crash_down(c);
	crash_free(copy);
	crash_free(c);
}

TEST(refused, "Memory that is too short, or of no adapter, and a buffer that "
    "is too short are refused")
{
	const size_t size = e82545_memory_size();
	struct crash *c = crash_alloc();
	struct e82545_config config;
	uint8_t buf[65536], *memory = c->model[0];
	ssize_t len;
	uint32_t seed = 1;
	unsigned int i;

	crash_up(c, false, 10, TSO);
	crash_config(c, &config);
	len = e82545_salvage(memory, size, &config, 0, NULL, 0);
	ATF_REQUIRE(len > 0 && (size_t)len <= sizeof(buf));
	ATF_CHECK_EQ(len, e82545_salvage(memory, CRASH_MODEL, &config, 0, buf,
	    len));
	errno = 0;
	ATF_CHECK_EQ(-1, e82545_salvage(memory, size - 1, &config, 0, buf,
	    len));
	ATF_CHECK_EQ(EINVAL, errno);
	ATF_CHECK_EQ(-1, e82545_salvage(memory, size, &config, 0, buf,
	    len - 1));
	ATF_CHECK_EQ(ENOSPC, errno);
	/* Not paused; too short. */
	ATF_CHECK_EQ(EBUSY, e82545_recover(c->dev, memory, size));
	e82545_pause(c->dev);
	ATF_CHECK_EQ(EINVAL, e82545_recover(c->dev, memory, size - 1));
	ATF_CHECK_EQ(0, e82545_recover(c->dev, memory, size));
	memset(c->model[1], 0, size);
	ATF_CHECK_EQ(EINVAL, e82545_recover(c->dev, c->model[1], size));
	/* With another ec_csb the snapshot is not restored. */
	config.ec_csb = E82545_CSB_ON;
	ATF_CHECK_EQ(len, e82545_salvage(memory, size, &config, 0, buf, len));
	ATF_CHECK_EQ(EINVAL, e82545_snapshot_restore(c->dev, buf, len));
	/* Nothing is left of an adapter that was destroyed. */
	crash_down(c);
	errno = 0;
	ATF_CHECK_EQ(-1, e82545_salvage(memory, size, &config, 0, buf, len));
	ATF_CHECK_EQ(EINVAL, errno);
	for (i = 0; i < 100; i++) {
		packet_fill(memory, size, test_random(&seed));
		ATF_CHECK_EQ(-1, e82545_salvage(memory, size, &config, 0, buf,
		    len));
		/* The magic number alone makes no adapter. */
		((struct e82545 *)(void *)memory)->magic = E82545_MAGIC;
		(void)e82545_salvage(memory, size, &config, 0, buf, len);
	}
	crash_free(c);
}

/* Write all registers, but leave the rings off and reset nothing. */
static void
write_registers(struct crash *c)
{
	const uint32_t value = 0x5a5a5a58;
	uint32_t off;

	for (off = 0; off < E82545_NREGS * 4; off += 4)
		e82545_write(c->dev, E82545_BAR_MEM, off, 4,
		    off == E82545_CTRL || off == E82545_CTRL_DUP ? value &
		    ~(E82545_CTRL_RST | E82545_CTRL_PHY_RST) : value);
	for (off = 0; off < E82545_PHY_NREGS; off++)
		e82545_write(c->dev, E82545_BAR_MEM, E82545_MDIC, 4,
		    E82545_MDIC_OP_WRITE | 1 << 21 | off << 16 | 0x1a40);
	if (c->dev->config.ec_kind == E82545_KIND_82574L)
		e82545_write(c->dev, E82545_BAR_MEM, E82574_EEWR, 4,
		    0x12340000 | 7 << 2 | E82574_EERW_START);
	e82545_write(c->dev, E82545_BAR_IO, E82545_IOADDR, 4, 0x5a5a5a5a);
}

TEST(registers, "All registers, the I/O one, the EEPROM's and the PHY's, are "
    "what they were")
{
	struct crash *c = crash_alloc();
	struct e82545 *old;
	unsigned int i, kind;

	for (kind = 0; kind < 2; kind++) {
		crash_extended = kind == 1;
		crash_up(c, false, 0, TSO);
		write_registers(c);
		old = c->dev;
		ATF_REQUIRE_EQ(0, crash_recover(c));
		for (i = 0; i < E82545_NREGS; i++)
			ATF_CHECK_EQ_MSG(old->regs[i], c->dev->regs[i],
			    "%#x: %#x, %#x", i * 4, old->regs[i],
			    c->dev->regs[i]);
		ATF_CHECK_EQ(0x5a5a5a5a, e82545_read(c->dev, E82545_BAR_IO,
		    E82545_IOADDR, 4));
		ATF_CHECK_EQ(0, memcmp(old->eeprom, c->dev->eeprom,
		    e82545_eeprom_size()));
		ATF_CHECK_EQ(0, memcmp(old->phy, c->dev->phy,
		    e82545_phy_size()));
		e82545_destroy(old);
		crash_down(c);
	}
	crash_free(c);
}

TEST(csb_heads, "A head that was not stored in the CSB yet is stored there")
{
	struct crash *c = crash_alloc();
	struct paravirt_csb *page;
	struct e82545 *old;

	crash_up(c, true, 60, TSO);
	crash_run(c, 3, 40);
	page = (void *)(c->ram + e82545_read(c->dev, E82545_BAR_MEM,
	    E82545_CSBAL, 4));
	page->host_tdh = page->host_rdh = htole32(CRASH_TXD + CRASH_RXD);
	old = c->dev;
	ATF_REQUIRE_EQ(0, crash_recover(c));
	e82545_destroy(old);
	ATF_CHECK_EQ(e82545_reg(c->dev, E82545_TDH), le32toh(page->host_tdh));
	ATF_CHECK_EQ(e82545_reg(c->dev, E82545_RDH), le32toh(page->host_rdh));
	crash_down(c);
	crash_free(c);
}

/* Go on in another process.  Returns the causes that the guest sees then. */
static uint32_t
causes_after(struct crash *c)
{
	struct e82545 *old = c->dev;

	ATF_REQUIRE_EQ(0, crash_recover(c));
	e82545_destroy(old);
	return (e82545_read(c->dev, E82545_BAR_MEM, E82545_ICR, 4));
}

/* The guest reads the status of the PHY, twice, as drivers do. */
static void
read_phy(struct crash *c)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		e82545_write(c->dev, E82545_BAR_MEM, E82545_MDIC, 4,
		    E82545_MDIC_OP_READ | 1 << 21 | 1 << 16);
}

TEST(link, "The link is announced again if the guest may not know it")
{
	struct crash *c = crash_alloc();
	bool up;

	crash_up(c, false, 0, TSO);
	ATF_CHECK((causes_after(c) & E82545_ICR_LSC) != 0);
	read_phy(c);
	ATF_CHECK_EQ(E82545_ICR_RXT0 | E82545_ICR_TXDW, causes_after(c) &
	    (E82545_ICR_RXT0 | E82545_ICR_TXDW | E82545_ICR_LSC));
	for (up = false;; up = true) {
		e82545_link(c->dev, up);
		/* The reply to this may be lost. */
		e82545_read(c->dev, E82545_BAR_MEM, E82545_ICR, 4);
		ATF_CHECK((causes_after(c) & E82545_ICR_LSC) != 0);
		if (up)
			break;
	}
	read_phy(c);
	ATF_CHECK_EQ(0, causes_after(c) & E82545_ICR_LSC);
	crash_down(c);
	crash_free(c);
}

TEST(timers, "Timers go on: what is left of them is what was left")
{
	struct crash *c = crash_alloc();
	const uint64_t before = 1000000;
	struct e82545 *old;
	uint64_t want;

	crash_up(c, false, 0, TSO);
	e82545_write(c->dev, E82545_BAR_MEM, E82545_RDTR, 4, 5000);
	e82545_read(c->dev, E82545_BAR_MEM, E82545_ICR, 4);
	c->rx_limit = 1;
	crash_host(c);
	want = c->dev->moder.rx_packet_ns;
	ATF_REQUIRE(want != 0 && !c->line);
	c->now_ns += before;
	old = c->dev;
	ATF_REQUIRE_EQ(0, crash_recover(c));
	e82545_destroy(old);
	/* The interrupt of the recovery has announced the frame. */
	ATF_CHECK(c->line);
	crash_down(c);

	/* The throttle, with a masked cause. */
	crash_up(c, false, 0, TSO);
	e82545_write(c->dev, E82545_BAR_MEM, E82545_ITR, 4, 20000);
	c->rx_limit = 1;
	crash_host(c);
	ATF_REQUIRE(c->line);
	want = c->dev->moder.last_ns;
	e82545_read(c->dev, E82545_BAR_MEM, E82545_ICR, 4);
	ATF_REQUIRE(!c->line);
	c->now_ns += before;
	old = c->dev;
	ATF_REQUIRE_EQ(0, crash_recover(c));
	e82545_destroy(old);
	ATF_CHECK_EQ(want, c->dev->moder.last_ns);
	ATF_CHECK(!c->line);
	ATF_CHECK_EQ(want + 20000 * 256, c->timer_ns);
	c->now_ns = c->timer_ns;
	crash_host(c);
	ATF_CHECK(c->line);
	crash_down(c);
	crash_free(c);
}

TEST(msix, "What MSI-X has sent is known after a crash if ICR and IMS have it "
    "still; the vectors and SYSTIM go on")
{
	struct crash *c = crash_alloc();
	const uint64_t now = 1000000000;
	const struct e82574 was = {
		.xs_sent = 0x00f00004,
		.xs_vector = {
			{ now - 1, true }, { now - 2, false },
			{ now - 3, true }, { 0, true }, { now - 5, false }
		},
		.xs_systim = 0x123456789a, .xs_systim_ns = now - 4000
	};
	struct e82574 *x;
	struct e82545 *old;
	unsigned int v;

	crash_extended = true;
	crash_up(c, false, 0, TSO);
	ATF_REQUIRE_EQ(now, c->now_ns);
	/* No causes are raised for rings that are off. */
	e82545_write(c->dev, E82545_BAR_MEM, E82545_RCTL, 4, 0);
	e82545_write(c->dev, E82545_BAR_MEM, E82545_TCTL, 4, 0);
	e82545_write(c->dev, E82545_BAR_MEM, E82574_TIMINCA, 4, 1 << 24 | 2);
	e82545_write(c->dev, E82545_BAR_MEM, E82545_IMC, 4, 0xffffffff);
	e82545_write(c->dev, E82545_BAR_MEM, E82545_ICR, 4, 0xffffffff);
	e82545_write(c->dev, E82545_BAR_MEM, E82545_ICS, 4, 0x00300004);
	e82545_write(c->dev, E82545_BAR_MEM, E82545_IMS, 4, 0x00500004);
	c->dev->x = was;
	/* As an attacker leaves it. */
	*(uint8_t *)&c->dev->x.xs_vector[2].ev_held = 2;
	old = c->dev;
	ATF_REQUIRE_EQ(0, crash_recover(c));
	e82545_destroy(old);
	x = &c->dev->x;
	ATF_CHECK_EQ(0x00100000, x->xs_sent);
	for (v = 0; v < E82574_VECTORS; v++) {
		ATF_CHECK_EQ_MSG(was.xs_vector[v].ev_last_ns,
		    x->xs_vector[v].ev_last_ns, "%u", v);
		ATF_CHECK_EQ_MSG(was.xs_vector[v].ev_held,
		    x->xs_vector[v].ev_held, "%u", v);
	}
	ATF_CHECK_EQ(0x123456789a + 4000 / 40 * 2, x->xs_systim);
	ATF_CHECK_EQ(now, x->xs_systim_ns);
	crash_down(c);
	crash_free(c);
}

TEST_PROGRAM
