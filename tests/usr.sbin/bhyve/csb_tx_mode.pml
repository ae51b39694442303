/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The transmit ring with the CSB while its mode changes, for spin:
 * e82545_csb_tx.c neither sends a descriptor that the guest has not posted nor
 * sleeps with frames pending.  csb.pml is the protocol with the mode on,
 * csb_mode.pml the receive ring.
 *
 * The mode is on at first, and changes CHANGES times (2), whenever.  The guest
 * is
 *
 *	otherwise	like FreeBSD 10's lem(4): it always stores guest_tdt,
 *			does not kick when the mode changes, leaves
 *			guest_need_txkick at 2, and may reset the adapter
 *	-DOWN		like if_lem(4): it stores guest_tdt with the mode on,
 *			and writes TDT when it changes the mode
 *
 *	-DCOMBINE	lem(4) with send combining: it leaves out a kick until
 *			the next interrupt, then writes the index of the last
 *			frame without one, which may be behind guest_tdt
 *	-DLATE		writes to TDT take effect later, in order
 *
 * With COMBINE and LATE a descriptor is filled and posted in one step: an old
 * index that arrives after DD was cleared for the next lap cannot be told from
 * a new one.
 *
 * The host may be made to do otherwise:
 *
 *	-DNO_LAP	the same guest_tdt is never new
 *	-DNO_CHANGE	nor is another, unless it is farther than TDT
 *	-DNO_LOOK_AGAIN	it does not look again before it sleeps
 *	-DDROP_ON	it drops TDT kept aside, with the mode off, too
 *
 * An error is a descriptor sent that holds no new frame; a host that is kept
 * awake by nothing; or a deadlock: the host sleeps, and the guest has frames
 * pending or waits for room.
 *
 * Errors are found, and e82545_csb_tx.c has them, with
 *
 *	CHANGES=3	the mode goes on within a batch and off again, and
 *			guest_tdt has come round: no kick, and the host sleeps
 *	COMBINE, LATE	TDT behind the head is stored after the host has seen
 *			the mode off: the ring is sent again
 *
 * Memory is sequentially consistent here; csb.pml is about the barriers.  A
 * step is an access to guest memory, or what reg_mtx or tx_mtx protects.  Not
 * modeled are guest_txkick_at, packets of several descriptors, descriptors
 * without RS, restarts without a reset, the bus master bit, snapshots, invalid
 * indices, and the look on the timer.
 */

#define	NDESC	3
#ifndef CHANGES
#define	CHANGES	2
#endif
#define	NONE	255

#define	NEXT(i)	(((i) + 1) % NDESC)
#define	PREV(i)	(((i) + NDESC - 1) % NDESC)
#define	FROM(i)	(((i) + NDESC - tdh) % NDESC)	/* from the head on */

/* Guest memory. */
bool dd[NDESC];
bool frame[NDESC];		/* posted, and not sent */
byte guest_tdt;
bool guest_on = true;		/* guest_csb_on */
byte changes = CHANGES;		/* of it, still to come */
#ifdef OWN
byte need;			/* guest_need_txkick */
#else
byte need = 2;
#endif
bool host_need = true;		/* host_need_txkick */

/* The adapter. */
byte tdh, tdt;
bool tx_en;			/* TCTL.EN */
bool tx_mtx;			/* a batch is in progress */
bool reg_mtx;
bool wake;			/* eo_tx_kick() */
bool intr;			/* TXDW, and ICR has not been read */
byte kept = NONE;		/* csb.tdt: TDT kept aside */
bool kicked;
bool last_on;			/* csb.tx_last_on */
bool awake;			/* csb.tx_awake */
byte seen = NONE;		/* csb.tx_seen: guest_tdt when last read */

bool quiet;			/* no start, no change of the mode any more */
bool refused;			/* sleep, since then nothing has been done */

/*
 * The host.
 */

#define	POSTED(i)	(!dd[PREV(i)])

/* csb_advance() */
inline advance(value)
{
	if
	:: value != NONE && FROM(value) > FROM(tdt) &&
	    (tx_on || POSTED(value)) -> tdt = value
	:: else
	fi
}

/* csb_use_tdt() */
inline use_tdt(mapped)
{
	d_step { !reg_mtx -> reg_mtx = true };
	if
	:: mapped -> on = guest_on; value = guest_tdt
	:: else
	fi;
	d_step {
		if
#ifdef DROP_ON
		:: kept != NONE -> kept = NONE
#else
		:: kept != NONE && !on -> advance(kept); kept = NONE
		:: kept != NONE && on -> kept = NONE
#endif
		:: else
		fi;
		if
		:: mapped && seen != value -> seen = value; refused = false
		:: else
		fi;
		advance(value);
		value = NONE; on = false; reg_mtx = false
	}
}

/* csb_tx_new() */
#ifdef NO_LAP
#define	tx_new()	isnew = (guest_tdt != seen)
#else
inline tx_new()
{
	if
#ifndef NO_CHANGE
	:: guest_tdt != seen -> isnew = true
#endif
	:: else ->
		if
		:: seen == tdt
		:: else ->
			if
#ifndef NO_CHANGE
			:: guest_tdt != seen -> isnew = true
#endif
			:: else ->
				on = guest_on;
				d_step {
					isnew = (seen != NONE && on
					    && FROM(seen) > FROM(tdt)
					    && POSTED(seen)
					    );
					on = false
				}
			fi
		fi
	fi
}
#endif

#define	KEEPS	(tx_en && last_on)

/* A write to TDT, in two steps with reg_mtx: tdt_write(). */
inline store_tdt(value)
{
	if
	:: KEEPS -> kept = value
	:: else -> kept = NONE; tdt = value
	fi;
	reg_mtx = true
}

inline kick()
{
	if
	:: tx_en -> kicked = true; wake = true
	:: else
	fi;
	reg_mtx = false
}

/* e82545_csb_tx_notify() */
inline notify()
{
	if
	:: need != 0 -> intr = true
	:: else ->
		if
		:: d_step { !guest_on -> intr = true }
		:: guest_on
		fi
	fi
}

proctype host()
{
	bool isnew, k, mapped, on, more, tx_on;
	byte end, i;
	byte value = NONE;	/* from guest_tdt */

endasleep:
	atomic { wake -> wake = false };
	do
	:: d_step { !tx_mtx -> tx_mtx = true; k = kicked; kicked = false };
		/* e82545_csb_tx_begin() */
		mapped = (tx_en || awake || k);
		if
		:: mapped ->
			tx_on = guest_on;
			d_step {
				tx_on = (tx_on && tx_en);
				last_on = tx_on
			}
		:: else
		fi;
		if
		:: k && kept != NONE -> use_tdt(tx_on)
		:: else
		fi;
		d_step {
			if
			:: mapped && k && !awake ->
				host_need = !tx_on; awake = tx_on
			:: !mapped -> awake = false
			:: else
			fi;
			k = false; mapped = false
		};
		if
		:: awake && tx_en ->
			tx_new();
			if
			:: isnew -> isnew = false; use_tdt(true)
			:: else
			fi
		:: else
		fi;
		/* The batch may end anywhere. */
		if
		:: atomic { tx_en && tdh != tdt ->
			if
			:: end = tdt
			:: FROM(tdt) > 1 -> end = NEXT(tdh)
			fi;
			d_step {
				more = (end != tdt);
				i = tdh;
				do
				:: i != end ->
					assert(frame[i]);
					frame[i] = false;
					i = NEXT(i)
				:: else -> break
				od;
				i = tdh; refused = false
			} };
			/* The write-back. */
			do
			:: i != end -> dd[i] = true; i = NEXT(i)
			:: else -> break
			od;
			atomic { !reg_mtx -> reg_mtx = true; i = tdh; tdh = end };
			if
			:: tx_on -> notify()
			:: else -> intr = true
			fi;
			d_step { reg_mtx = false; i = 0; end = 0 };
			/* e82545_csb_tx_end() */
			if
			:: awake && tx_on -> more = true; goto next
			:: else
			fi
		:: else ->
			if
			:: awake && tx_on -> more = true; goto next
			:: true
			fi
		fi;
		if
		:: awake ->
			/* csb_tx_sleep() */
			host_need = true;
			if
#ifndef NO_LOOK_AGAIN
			:: tx_en -> tx_new()
#endif
			:: else
			fi;
			d_step {
				if
				:: isnew ->
					host_need = false; more = true;
					isnew = false;
					assert(!refused);
					refused = quiet
				:: else -> awake = false
				fi
			}
		:: else
		fi;
next:		tx_on = false; tx_mtx = false;
		if
		:: more -> more = false
		:: else -> goto endasleep
		fi
	od
}

/*
 * The guest.
 */

#ifdef LATE
byte late = NONE;

#define	write_tdt(value)	atomic { late == NONE -> late = value }
#define	WRITTEN			(late == NONE)

proctype deliver()
{
end:	do
	:: d_step { late != NONE && !reg_mtx -> store_tdt(late) };
		d_step { kick(); late = NONE }
	od
}
#else
#define	write_tdt(value)	d_step { !reg_mtx -> store_tdt(value); kick() }
#define	WRITTEN			true
#endif

#define	DONE	dd[clean]
#define	FULL	(NEXT(next) == clean)

#define	ALL_SENT	(!frame[0] && !frame[1] && !frame[2])

inline reclaim()
{
	d_step {
		do
		:: clean != next && DONE -> clean = NEXT(clean)
		:: else -> break
		od
	}
}

/* Reset the adapter: e82545_csb_idle(), e82545_csb_reset(). */
inline restart()
{
	d_step {
		!tx_mtx && !reg_mtx && WRITTEN ->
		if
		:: awake || kicked -> host_need = true
		:: else
		fi;
		awake = false; kicked = false; kept = NONE; seen = NONE;
		refused = false; intr = false;
		tdh = 0; tdt = 0; tx_en = false;
		next = 0;
		do
		:: next < NDESC ->
			dd[next] = false; frame[next] = false; next++
		:: else -> break
		od;
		next = 0; clean = 0; scarce = false
	}
}

inline fill()
{
#if !defined(LATE) && !defined(COMBINE)
	dd[next] = false;
#endif
	d_step {
		dd[next] = false; frame[next] = true; next = NEXT(next);
		refused = false;
#ifdef OWN
		if
		:: guest_on -> guest_tdt = next
		:: else
		fi;
#else
		guest_tdt = next;
#endif
	}
}

#ifdef OWN

#define	want_room()	need = 1
#define	want_no_room()	need = 0

inline wait_room()
{
	scarce = true;
	if
	:: guest_on -> want_room()
	:: else
	fi;
	reclaim();
	if
	:: FULL
	:: else -> scarce = false;
		if
		:: guest_on -> want_no_room()
		:: else
		fi
	fi
}

proctype guest()
{
	byte next, clean;
	bool scarce, kicks;

reset:
	restart();
	guest_tdt = 0;
	d_step { !tx_mtx && !reg_mtx -> tx_en = true };
	do
	:: !quiet -> quiet = true
	:: !quiet && changes > 0 ->
		/* lem_set_mode() */
		changes--;
		guest_tdt = next;
		guest_on = !guest_on;
		if
		:: write_tdt(next)
		fi;
		if
		:: scarce -> wait_room()
		:: else
		fi
	:: !scarce && !FULL ->
		fill();
		kicks = (!guest_on || host_need);
		if
		:: kicks -> write_tdt(next)
		:: else
		fi;
		kicks = false
	:: !scarce && FULL -> wait_room()
	:: intr -> intr = false;
		if
		:: scarce -> wait_room()
		:: else -> reclaim()
		fi
	:: quiet && !scarce -> break
	od;
	ALL_SENT
}

#else	/* lem(4) */

bool scarce;
byte shadow = NONE;		/* the index of a combined frame */
bool combined;			/* an interrupt is due, */
bool none;			/* or not */

inline txeof()
{
	if
	:: clean != next ->
		reclaim();
#ifdef COMBINE
		if
		:: shadow != NONE -> write_tdt(shadow);
			shadow = NONE; combined = true; none = (clean == next)
		:: else -> combined = false; none = false
		fi;
#endif
		if
		:: !FULL -> scarce = false; need = 2
		:: else
		fi
	:: else
	fi
}

proctype guest()
{
	byte next, clean;
	bool kicks;

reset:
	restart();
	d_step { !tx_mtx && !reg_mtx -> tx_en = true };
#ifdef COMBINE
	shadow = NONE; combined = false; none = false;
#endif
	do
	:: !quiet -> goto reset
	:: !scarce && !FULL ->
		fill();
		kicks = guest_on;
		kicks = (!kicks || host_need);
		if
#ifdef COMBINE
		:: kicks && combined -> shadow = next
		:: kicks && !combined -> combined = true; write_tdt(next)
#else
		:: kicks -> write_tdt(next)
#endif
		:: !kicks
		:: !kicks -> txeof()
		fi;
		kicks = false;
		if
		:: FULL ->
			scarce = true;
			if
			:: guest_on && need != 1 -> need = 1; txeof()
			:: else
			fi
		:: else
		fi
	:: intr -> intr = false; txeof()
#ifdef COMBINE
	/* An interrupt for something else. */
	:: none && clean != next -> txeof()
#endif
	:: quiet && !scarce && shadow == NONE -> break
	od;
	ALL_SENT
}

proctype mode()
{
	do
	:: changes > 0 -> guest_on = !guest_on; changes--
	:: quiet = true; break
	od
}
#endif

init {
	atomic {
		run guest(); run host();
#ifndef OWN
		run mode();
#endif
#ifdef LATE
		run deliver()
#endif
	}
}
