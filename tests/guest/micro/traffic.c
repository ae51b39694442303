/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The packet generator.  One side leads (source, rr), the other follows (sink,
 * echo, program):
 *
 *	leader		HELLO, until it is answered: both are up, and know each
 *			other's addresses
 *	follower	WELCOME, to each
 *	leader		DATA, numbered from 0
 *	echo		each DATA as it came, back to its sender
 *	leader		BYE with the number of DATA sent, until it is answered
 *	follower	THANKS, to each
 *	leader		DONE, and it ends
 *	follower	ends, at the latest when no more BYE comes
 *
 * HELLO and BYE are numbered, and so are their answers.  The leader goes on
 * when the last one is answered: frames keep their order, so no other frame is
 * under way then, and none after DONE.
 *
 * A data frame has its number at the front and at the end, which shows a buffer
 * that was reused too early, or a truncated frame.
 */

#include "lem_core.h"
#include "micro.h"
#include "wire.h"

#define	MS		1000000ul	/* ns */
#define	PEER_WAIT	(60000 * MS)	/* for the other side to come up */
#define	RETRY_EVERY	(10 * MS)	/* HELLO and BYE */
#define	RETRY_LAST	(1000 * MS)	/* the same, once one was answered */
#define	BYE_WAIT	(60000 * MS)
#define	BYE_QUIET	(5000 * MS)	/* if DONE gets lost */
#define	REPLY_WAIT	(60000 * MS)	/* before a request counts as lost */

_Static_assert(sizeof(struct wire) + 8 <= FRAME_MIN, "wire");

/* The beginning and the end of the measurement. */
struct mark {
	struct nic_counts counts;
	uint64_t counter[LEM_NCOUNTERS];
};

static const struct options *opt;
static uint8_t peer[6];
static uint64_t asked;		/* leader: the last HELLO or BYE */
static uint64_t answered;	/* that of the last WELCOME or THANKS */
static uint8_t awaited;		/* which of them */
static bool bye;		/* follower: BYE has come */
static bool done;		/* and DONE */
static uint64_t bye_ns;		/* the last one */
static uint64_t announced;	/* what it said */
static struct mark begin, end;

static uint64_t sent, received, bytes, next_seq, lost, reordered, bad, other,
    echo_full;
static unsigned int unflushed;

static bool
follows(void)
{
	return (opt->role == ROLE_SINK || opt->role == ROLE_ECHO ||
	    opt->role == ROLE_PROGRAM);
}

static void
mark(struct mark *m)
{
	nic_counts(&m->counts);
	memcpy(m->counter, nic.lc_counter, sizeof(m->counter));
}

/* Queues a frame.  False if no descriptor is free. */
static bool
send(const uint8_t dst[6], uint32_t kind, uint32_t size, uint64_t seq,
    uint64_t count)
{
	struct wire *w = nic_buffer();

	memcpy(w->dst, dst, 6);
	memcpy(w->src, nic_mac, 6);
	w->type = WIRE_ETHERTYPE;
	w->magic = WIRE_MAGIC;
	w->kind = kind;
	w->size = size;
	w->seq = seq;
	w->count = count;
	*(uint64_t *)((uint8_t *)w + size - 8) = seq;
	if (!nic_send(size))
		return (false);
	if (++unflushed >= opt->batch) {
		nic_flush();
		unflushed = 0;
	}
	return (true);
}

static void
flush(void)
{
	if (unflushed > 0) {
		nic_flush();
		unflushed = 0;
	}
}

/* Sends a frame that is not data at once.  False if no descriptor is free. */
static bool
send_control(const uint8_t dst[6], uint32_t kind, uint64_t seq, uint64_t count)
{
	bool there;

	there = send(dst, kind, FRAME_MIN, seq, count);
	flush();
	return (there);
}

/* Sends back a frame as it came. */
static void
echo(const struct wire *w, uint32_t len)
{
	struct wire *reply = nic_buffer();

	memcpy(reply, w, len);
	memcpy(reply->dst, w->src, 6);
	memcpy(reply->src, nic_mac, 6);
	if (!nic_send(len)) {
		echo_full++;
		return;
	}
	sent++;
	if (++unflushed >= opt->batch) {
		nic_flush();
		unflushed = 0;
	}
}

/* Spend the time for a frame that work= asks for: it is not preempted. */
static void
work(void)
{
	uint64_t until = now_ns() + opt->work_ns;

	while (now_ns() < until)
		continue;
}

static void
data(const struct wire *w, uint32_t len)
{
	if (*(const uint64_t *)((const uint8_t *)w + len - 8) != w->seq) {
		bad++;
		return;
	}
	if (w->seq < next_seq)
		reordered++;
	else {
		lost += w->seq - next_seq;
		next_seq = w->seq + 1;
	}
	if (received++ == 0 && follows())
		mark(&begin);
	bytes += len;
	if (opt->role == ROLE_ECHO)
		echo(w, len);
	if (opt->work_ns != 0)
		work();
	if (opt->role == ROLE_PROGRAM)
		program_frame(w->count);
}

void
traffic_frame(const void *frame, uint32_t len)
{
	const struct wire *w = frame;

	if (len < FRAME_MIN || w->type != WIRE_ETHERTYPE ||
	    w->magic != WIRE_MAGIC) {
		other++;
		return;
	}
	if (w->size != len) {
		bad++;
		return;
	}
	switch (w->kind) {
	case WIRE_DATA:
		data(w, len);
		break;
	case WIRE_HELLO:
		if (follows())
			send_control(w->src, WIRE_WELCOME, w->seq, 0);
		break;
	case WIRE_BYE:
		if (!bye) {
			bye = true;
			announced = w->count;
			lost += announced - next_seq;
			mark(&end);
		}
		bye_ns = now_ns();
		send_control(w->src, WIRE_THANKS, w->seq, received);
		break;
	case WIRE_DONE:
		done = true;
		break;
	case WIRE_WELCOME:
	case WIRE_THANKS:
		if (w->kind == awaited) {
			memcpy(peer, w->src, 6);
			answered = w->seq;
		}
		break;
	default:
		bad++;
		break;
	}
}

/* Receive frames, and send the answers. */
static void
serve(void)
{
	nic_service();
	flush();
}

/* Prints how many frames were sent and received in the last second. */
static void
each_second(uint64_t *next)
{
	static uint64_t before;
	uint64_t now = now_ns(), frames = sent + received;

	if (now < *next)
		return;
	*next = now + 1000 * MS;
	report("second", frames - before);
	before = frames;
}

static void
follow(void)
{
	uint64_t second, until, tick = 0;

	second = now_ns() + 1000 * MS;
	until = now_ns() + PEER_WAIT;
	if (opt->role == ROLE_PROGRAM)
		program_start(opt);
	for (;;) {
		if (opt->role != ROLE_PROGRAM)
			serve();
		else if (program_use())
			continue;
		if (done)
			return;
		if (tick != cpu_ticks) {
			tick = cpu_ticks;
			if (bye && now_ns() > bye_ns + BYE_QUIET)
				return;
			if (received == 0 && now_ns() > until)
				panic("no leader");
			if (received > 0 && !bye)
				each_second(&second);
		}
		nic_wait();
	}
}

/* Sends HELLO or BYE until the last one is answered.  False if it is not. */
static bool
ask(uint8_t kind, uint8_t answer, uint64_t count, uint64_t wait)
{
	uint64_t last = 0, until = now_ns() + wait, now;

	awaited = answer;
	asked = answered = 0;
	for (;;) {
		now = now_ns();
		if (now > until)
			return (false);
		if (now >= last + (answered == 0 ? RETRY_EVERY : RETRY_LAST) &&
		    send_control(kind == WIRE_HELLO ? opt->dst : peer, kind,
		    asked + 1, count)) {
			asked++;
			last = now;
		}
		serve();
		if (asked != 0 && answered == asked)
			return (true);
		nic_wait();
	}
}

/* How many more frames may be sent now, of a step that began then. */
static uint64_t
allowed(uint64_t start, uint64_t sent_before, uint32_t rate)
{
	uint64_t due, n = ~0ul;

	if (opt->count != 0)
		n = opt->count - sent;
	if (rate != 0) {
		/* us first: no overflow for as long as this may run. */
		due = sent_before + (now_ns() - start) / 1000 * rate / 1000000;
		if (due <= sent)
			return (0);
		if (due - sent < n)
			n = due - sent;
	}
	return (n);
}

static void
source_step(uint32_t step)
{
	uint64_t before = sent, n = 0, start, second, tick = ~0ul;

	start = now_ns();
	second = start + 1000 * MS;
	for (;;) {
		nic_service();
		if (tick != cpu_ticks) {
			tick = cpu_ticks;
			if (opt->ms != 0 && now_ns() > start + opt->ms * MS)
				break;
			each_second(&second);
			n = allowed(start, before, opt->rate[step]);
		}
		if (opt->count != 0 && sent == opt->count)
			break;
		if (n == 0 || !send(peer, WIRE_DATA, opt->size, sent, step)) {
			flush();
			nic_wait();
			continue;
		}
		sent++;
		bytes += opt->size;
		n--;
	}
	flush();
	if (opt->nrates > 1)
		print("step_%u_sent %lu\nstep_%u_sent_us %lu\n", step,
		    sent - before, step, (now_ns() - start) / 1000);
}

static void
source(void)
{
	uint32_t step = 0;

	do {
		source_step(step);
	} while (++step < opt->nrates);
}

/* Round trips by length: us, all from RTT_MAX on in the last. */
#define	RTT_MAX		100000
static uint32_t rtts[RTT_MAX + 1];

static uint64_t
median_us(void)
{
	uint64_t n = 0;
	uint32_t us;

	for (us = 0; us < RTT_MAX; us++) {
		n += rtts[us];
		if (2 * n >= received)
			break;
	}
	return (us);
}

/* Sends one frame at a time, when the one before has come back. */
static void
request_response(void)
{
	uint64_t asked, had, rtt, start, min = ~0ul, max = 0, unanswered = 0;

	start = now_ns();
	while ((opt->count == 0 || sent < opt->count) &&
	    (opt->ms == 0 || now_ns() <= start + opt->ms * MS)) {
		had = received;
		asked = now_ns();
		if (!send(peer, WIRE_DATA, opt->size, sent, 0)) {
			serve();
			nic_wait();
			continue;
		}
		sent++;
		flush();
		while (received == had && now_ns() < asked + REPLY_WAIT) {
			nic_service();
			if (received == had)
				nic_wait();
		}
		if (received == had) {
			unanswered++;
			continue;
		}
		rtt = now_ns() - asked;
		rtts[rtt / 1000 < RTT_MAX ? rtt / 1000 : RTT_MAX]++;
		if (rtt < min)
			min = rtt;
		if (rtt > max)
			max = rtt;
	}
	report("unanswered", unanswered);
	if (received != 0) {
		report("rtt_min_ns", min);
		report("rtt_median_ns", median_us() * 1000);
		report("rtt_max_ns", max);
	}
}

/* Waits until all frames are sent, for which there may be no interrupt. */
static void
drain(void)
{
	while (!lem_tx_idle(&nic)) {
		serve();
		nic_clean();
		if (!lem_tx_idle(&nic))
			nic_wait();
	}
}

static void
lead(void)
{
	if (!ask(WIRE_HELLO, WIRE_WELCOME, 0, PEER_WAIT))
		panic("no answer to HELLO");
	mark(&begin);
	if (opt->role == ROLE_RR)
		request_response();
	else
		source();
	drain();
	mark(&end);
	if (!ask(WIRE_BYE, WIRE_THANKS, sent, BYE_WAIT))
		report("no_answer", 1);
	send_control(peer, WIRE_DONE, 0, 0);
	drain();
}

static void
print_report(void)
{
	uint64_t us;
	unsigned int i;

	us = (end.counts.ns - begin.counts.ns) / 1000;
	report("sent", sent);
	report("received", received);
	report("bytes", bytes);
	report("us", us);
	report("announced", announced);
	report("lost", lost);
	report("reordered", reordered);
	report("bad", bad);
	report("other", other);
	report("echo_full", echo_full);
#define	DELTA(name)	report(#name, end.counts.name - begin.counts.name)
	DELTA(reg_reads);
	DELTA(reg_writes);
	DELTA(irqs);
	DELTA(halts);
#undef DELTA
	for (i = 0; i < LEM_NCOUNTERS; i++) {
		report(lem_counter_table[i].cr_name,
		    end.counter[i] - begin.counter[i]);
		report_total(lem_counter_table[i].cr_name, nic.lc_counter[i]);
	}
	if (opt->role == ROLE_PROGRAM)
		program_report();
	report("done", 1);
}

void
traffic_run(const struct options *o)
{
	opt = o;
	memcpy(peer, o->dst, 6);
	if (follows())
		follow();
	else
		lead();
	nic_stop();
	print_report();
}
