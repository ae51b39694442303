/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The receive ring with the CSB while its mode changes and the ring is started
 * again, for spin: e82545_csb.c neither uses a buffer that the guest has not
 * posted nor stalls with buffers posted.  csb.pml is the protocol with the mode
 * on.
 *
 * The guest is a driver like FreeBSD 10's lem(4).  It reads guest_csb_on once,
 * then takes any number of frames.  With the mode on it stores guest_rdt for
 * each of them, and writes RDT if that is host_rxkick_at; else it writes RDT at
 * the end.  It may start the ring again at any time, after a reset or with
 * RCTL.EN off, and leaves guest_rdt as it is then.  The mode changes at any
 * time, as often as it likes.
 *
 *	-DNDESC=n	descriptors in the ring
 *	-DOFF		the mode is always off; guest_rdt has any index when the
 *			ring is started
 *	-DFEW		the driver starts the ring with one buffer, then posts
 *			the others by RDT
 *	-DREFILL	it clears DD when it takes a frame, and with the mode
 *			off posts the buffers later
 *	-DLATE		writes to RDT take effect later, in order
 *	-DBUS_OFF	the bus master bit may be off when the ring is started
 *	-DSTARTS	the host stores the first RDT after a start as it stands
 *
 * REFILL and LATE exclude each other: an old index that arrives after DD was
 * cleared for the next lap cannot be told from a new one.
 *
 * The host takes guest_rdt by a swap with NET_PARAVIRT_NONE, and keeps RDT
 * aside until the next batch or until the ring runs dry.  An index counts if it
 * is farther from the head than RDT and DD is clear in the descriptor before
 * it.  A batch may end at any frame, and there are always frames to receive.
 * The host may be made to do otherwise:
 *
 *	-DNO_DD		an index counts whether or not DD is clear before it
 *	-DNO_SWAP	guest_rdt is read, and counts if it has changed
 *	-DNO_FORGET	it counts though it was stored before the ring was
 *			started
 *	-DSTORE_OFF	RDT is stored as it stands if the last batch found the
 *			mode off
 *	-DAT_ONCE	RDT counts at the time of the write
 *	-DDROP_ON	RDT is dropped if the mode is on when it is read
 *	-DNO_WAIT_KEPT	the host stalls without reading RDT kept aside
 *
 * An error is a frame in a buffer of the guest's, or a deadlock: the host has
 * stalled, and the guest, which has taken all frames, does not start the ring
 * or change the mode any more.
 *
 * Memory is sequentially consistent here; csb.pml is about the barriers.  A
 * step is an access to guest memory, or what reg_mtx or rx_mtx protects.  Not
 * modeled are a block placed or moved while the ring is in use, snapshots,
 * invalid indices, frames of several descriptors, and the check on the timer.
 */

#ifndef NDESC
#define	NDESC	3
#endif
#define	AHEAD	(NDESC - 1)		/* host_rxkick_at - RDH */
#define	NONE	255

#define	NEXT(i)	(((i) + 1) % NDESC)
#define	PREV(i)	(((i) + NDESC - 1) % NDESC)
#define	FROM(i)	(((i) + NDESC - rdh) % NDESC)	/* from the head on */

/* Guest memory. */
bool dd[NDESC];
bool guests[NDESC];		/* the buffer is the guest's, or there is none */
byte guest_rdt = NONE;
bool guest_on;			/* guest_csb_on */
byte kick_at = NONE;		/* host_rxkick_at */

/* The adapter. */
byte rdh, rdt;
bool rx_en;			/* RCTL.EN */
bool rx_mtx;			/* a batch is in progress */
bool reg_mtx;
bool stalled;
byte kept = NONE;		/* csb.rdt: RDT kept aside */
#ifdef STARTS
bool starts = true;		/* csb.rx_starts */
#endif
#ifdef BUS_OFF
bool bus = true;
bool unread;			/* CSB_RX_UNREAD: guest_rdt is old */
#else
#define	bus	true
#endif
#ifdef STORE_OFF
bool last_on;			/* CSB_RX_ON */
#endif
#ifdef NO_SWAP
byte seen = NONE;
#endif

bool quiet;			/* no start, no change of the mode any more */

/*
 * The host.
 */

#ifdef NO_DD
#define	POSTED(i)	true
#else
#define	POSTED(i)	(!dd[PREV(i)])
#endif

/* csb_advance() */
inline advance(value)
{
	if
	:: value != NONE && FROM(value) > FROM(rdt) && POSTED(value) ->
		rdt = value
	:: else
	fi
}

#ifdef DROP_ON
#define	KEPT_COUNTS	(!guest_on)
#else
#define	KEPT_COUNTS	true
#endif

inline use_kept()
{
	if
	:: KEPT_COUNTS -> advance(kept)
	:: else
	fi;
	kept = NONE
}

/* csb_rdt_take() */
inline take()
{
#ifdef NO_SWAP
	got = (guest_rdt != seen -> guest_rdt : NONE);
	seen = guest_rdt
#else
	got = guest_rdt;
	guest_rdt = NONE
#endif
}

/* csb_use_rdt(): DD is read after the swap. */
inline use_rdt()
{
	d_step { reg_mtx = true; use_kept(); take() };
	d_step { advance(got); got = NONE; reg_mtx = false }
}

/* e82545_rx_unstall() */
inline unstall()
{
	stalled = (stalled && rdh == rdt)
}

#if defined(STORE_OFF)
#define	KEEPS	(rx_en && last_on)
#elif defined(STARTS)
#define	KEEPS	(rx_en && !starts)
#else
#define	KEEPS	rx_en
#endif

/* A write to RDT: e82545_csb_keep_rdt(), e82545_rx_kicked(). */
inline store_rdt(value)
{
	if
#ifdef AT_ONCE
	:: KEEPS -> advance(value); unstall()
#else
	:: KEEPS -> kept = value; stalled = false
#endif
	:: else -> kept = NONE; rdt = value; unstall()
	fi;
#ifdef STARTS
	starts = false
#endif
}

#ifdef NO_FORGET
#define	forget()	skip
#elif defined(BUS_OFF)
inline forget()
{
	unread = !bus;
	if
	:: bus -> guest_rdt = NONE
	:: else
	fi
}
#elif defined(NO_SWAP)
#define	forget()	seen = guest_rdt
#else
#define	forget()	guest_rdt = NONE
#endif

proctype host()
{
	bool dry, on;
	byte i, ndone, posted;
	byte got = NONE;	/* from guest_rdt */

	do
	:: atomic { !rx_mtx && rx_en && bus && !stalled -> d_step {
		rx_mtx = true;
		on = guest_on;
#ifdef STORE_OFF
		last_on = on;
#endif
#ifdef BUS_OFF
		if
		:: unread -> guest_rdt = NONE; unread = false
		:: else
		fi
#endif
		} };
		/* csb_rx_begin() */
		kick_at = NONE;
		if
		:: use_rdt()
		:: on && kept == NONE
		fi;
		d_step { posted = FROM(rdt) };
		do
		:: d_step { ndone < posted ->
			assert(!guests[(rdh + ndone) % NDESC]);
			guests[(rdh + ndone) % NDESC] = true;
			ndone++ }
		:: on ->
			/* csb_rx_poll() */
			use_rdt();
			d_step {
				posted = FROM(rdt);
				if
				:: posted < ndone -> posted = ndone
				:: else
				fi
			};
			if
			:: ndone == posted -> dry = true; break
			:: else
			fi
		:: !on && ndone == posted -> dry = true; break
		:: ndone > 0 -> break
		od;
		/* The write-back. */
		do
		:: i < ndone -> d_step { dd[(rdh + i) % NDESC] = true; i++ }
		:: else -> break
		od;
		i = 0;
		if
		:: dry ->
			/* csb_rx_wait() */
			d_step {
				rdh = (rdh + ndone) % NDESC;
				ndone = 0; posted = 0;
				kick_at = (rdh + AHEAD) % NDESC;
				reg_mtx = true;
#ifndef NO_WAIT_KEPT
				use_kept();
#endif
				take()
			};
			d_step {
				advance(got);
				stalled = (rdh == rdt);
				reg_mtx = false;
				got = NONE; dry = false; on = false;
				rx_mtx = false
			}
		:: else ->
			d_step {
				rdh = (rdh + ndone) % NDESC;
				ndone = 0; posted = 0; on = false;
				rx_mtx = false
			}
		fi
	od
}

/*
 * The guest.
 */

#ifdef LATE
byte late = NONE;

#define	write_rdt(value)	atomic { late == NONE -> late = value }
#define	WRITTEN			(late == NONE)

proctype deliver()
{
end:	do
	:: d_step { late != NONE && !reg_mtx -> store_rdt(late); late = NONE }
	od
}
#else
#define	write_rdt(value)	d_step { !reg_mtx -> store_rdt(value) }
#define	WRITTEN			true
#endif

#ifdef FEW
#define	FIRST	1
#else
#define	FIRST	(NDESC - 1)
#endif

/* The driver empties the ring, and posts the first buffers. */
inline clear()
{
	next = 0;
	do
	:: next < NDESC ->
		dd[next] = false;
		guests[next] = (next >= FIRST && FIRST < NDESC - 1);
		next++
	:: else -> break
	od;
	next = 0
}

inline post_before(end)
{
	do
	:: first != end -> guests[first] = false; first = NEXT(first)
	:: else -> break
	od;
	first = 0
}

/* Take frames, and post the buffers. */
inline rxeof()
{
	first = next;
	do
	:: dd[next] ->
#ifdef REFILL
		dd[next] = false;
		if
		:: on -> guests[next] = false
		:: else
		fi;
#else
		d_step { dd[next] = false; guests[next] = false };
#endif
		if
		:: on ->
			guest_rdt = next;
			if
			:: kick_at == next -> write_rdt(next)
			:: else
			fi
		:: else
		fi;
		next = NEXT(next);
		if
		:: true
		:: break
		fi
	:: else -> break
	od;
	if
	:: !on ->
#ifdef REFILL
		d_step { post_before(next) };
#endif
		write_rdt(PREV(next))
	:: else
	fi;
	first = 0
}

#ifdef STARTS
#define	restart()	if :: kept != NONE -> rdt = kept :: else fi; \
			kept = NONE; starts = true
#else
#define	restart()	skip
#endif

#ifdef BUS_OFF
inline turn_bus()
{
	if
	:: bus = true
	:: bus = false
	fi
}
#else
#define	turn_bus()	skip
#endif

/* What the driver may have left there. */
#ifdef OFF
#define	old_guest_rdt()	select(guest_rdt : 0 .. NDESC - 1)
#else
#define	old_guest_rdt()	skip
#endif

proctype guest()
{
	byte next, first;
	bool on;

reset:
	/* CTRL.RST: csb_idle(), e82545_csb_reset() */
	atomic {
		!rx_mtx && WRITTEN -> turn_bus();
		old_guest_rdt();
		d_step {
			forget(); kept = NONE; rdh = 0; rdt = 0;
			rx_en = false; kick_at = NONE;
#ifdef STARTS
			starts = true;
#endif
			clear()
		}
	};
	d_step { !rx_mtx -> rx_en = true; stalled = false };
ring:
	/* A write to RDH: e82545_csb_rx_restart(). */
	atomic { !rx_mtx && WRITTEN -> d_step {
		forget(); restart(); rdh = 0; unstall()
	} };
	write_rdt(FIRST);
	if
	:: !rx_en -> d_step { !rx_mtx && WRITTEN ->
		rx_en = true; stalled = false }
	:: else
	fi;
#ifdef BUS_OFF
	/* e82545_bus_master() */
	d_step { !rx_mtx && WRITTEN -> bus = true };
#endif
#ifdef FEW
	d_step { first = FIRST; post_before(0) };
	write_rdt(NDESC - 1);
#endif
	do
	:: !quiet -> goto reset
	:: atomic { !quiet && !rx_mtx && WRITTEN -> turn_bus();
		old_guest_rdt();
		d_step { rx_en = false; stalled = false; clear() } };
		goto ring
	:: dd[next] || !quiet ->
		on = guest_on;
		if
		:: dd[next] -> rxeof(); on = false
		:: !dd[next] -> on = false
		fi
	od
}

proctype mode()
{
	do
#ifndef OFF
	:: guest_on = !guest_on
#endif
	:: quiet = true; break
	od
}

init {
	atomic {
		run guest(); run mode(); run host();
#ifdef LATE
		run deliver()
#endif
	}
}
