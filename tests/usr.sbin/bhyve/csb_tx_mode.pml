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
#define	NONE	255

#define	NEXT(i)	(((i) + 1) % NDESC)
#define	PREV(i)	(((i) + NDESC - 1) % NDESC)
#define	FROM(i)	(((i) + NDESC - tdh) % NDESC)	/* from the head on */

/* Guest memory. */
bool dd[NDESC];
bool frame[NDESC];		/* posted, and not sent */
byte guest_tdt;
bool guest_on = true;		/* guest_csb_on */
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
bool starts = true;		/* csb.tx_starts */
bool fresh = true;		/* nothing was posted since the start */
bool kicked;
bool awake;			/* csb.tx_awake */
bool used;			/* csb.tx_used: the mode was on since the start */
#ifdef NO_SWAP
byte seen = NONE;
#endif

bool quiet;			/* no start, no change of the mode any more */
bool refused;			/* sleep, since then nothing has been found */

/*
 * The host.
 */

#ifdef NO_DD
#define	POSTED(i)	true
#else
#define	POSTED(i)	(!dd[PREV(i)])
#endif

inline use_kept()
{
	if
	:: kept != NONE ->
		if
		:: starts || (FROM(kept) > FROM(tdt) && POSTED(kept)) ->
			tdt = kept
		:: else
		fi;
		kept = NONE; starts = false; refused = false
	:: else
	fi
}

/* csb_tdt_take() */
#ifdef NO_SWAP
#define	NEW	(guest_tdt != seen)
#define	taken()	seen = guest_tdt
#else
#define	NEW	(guest_tdt != NONE)
#define	taken()	guest_tdt = NONE
#endif

#ifdef NO_USED
#define	FOUND	NEW
#else
#define	FOUND	(used && NEW)
#endif

inline take()
{
	if
	:: FOUND ->
		if
		:: FROM(guest_tdt) > FROM(tdt) -> tdt = guest_tdt
		:: else
		fi;
		taken(); refused = false
	:: else
	fi
}

/* csb_use_tdt(): DD is read before guest_tdt is taken. */
inline use_tdt()
{
#ifdef KEPT_LAST
	d_step { !reg_mtx -> reg_mtx = true; take() };
	d_step { use_kept(); reg_mtx = false }
#else
	d_step { !reg_mtx -> reg_mtx = true; use_kept() };
	d_step { take(); reg_mtx = false }
#endif
}

#ifdef STORE_OFF
bool last_on;
#define	KEEPS	(tx_en && last_on)
#else
#define	KEEPS	tx_en
#endif
#ifdef NO_LAST
#define	AGAIN(value)	false
#else
#define	AGAIN(value)	(value == 0 && fresh && !starts)
#endif

/* A write to TDT, in two steps with reg_mtx: tdt_write(). */
inline store_tdt(value)
{
	if
	:: KEEPS && !AGAIN(value) -> kept = value
	:: KEEPS && AGAIN(value)
	:: else -> kept = NONE; tdt = value; starts = false
	fi;
	fresh = (fresh && value == 0);
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

#ifdef NO_AWAKE_OFF
#define	WAKES	(k && on)
#else
#define	WAKES	k
#endif
#ifdef LOOK_ON
#define	LOOKS	(tx_en && on)
#else
#define	LOOKS	tx_en
#endif

proctype host()
{
	bool isnew, k, more, on;
	byte end, i;

endasleep:
	if
	:: atomic { wake -> wake = false }
	:: !quiet		/* something else wakes it */
	fi;
	do
	:: d_step { !tx_mtx -> tx_mtx = true; k = kicked; kicked = false };
		/* e82545_csb_tx_begin() */
		on = guest_on;
		d_step {
#ifdef STORE_OFF
			last_on = on;
#endif
			on = (on && tx_en);
			awake = (awake || WAKES);
			k = false;
			used = (used || (awake && on));
			host_need = (host_need && !(awake && on))
		};
		if
		:: tx_en && (FOUND || kept != NONE) -> use_tdt()
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
			:: on -> notify()
			:: else -> intr = true
			fi;
			d_step { reg_mtx = false; i = 0; end = 0 };
			/* e82545_csb_tx_end() */
			if
			:: awake && on -> more = true; goto next
			:: else
			fi
		:: else ->
			if
			:: awake && on -> more = true; goto next
			:: true
			fi
		fi;
		if
		:: awake ->
			/* csb_tx_sleep() */
			host_need = true;
			d_step {
#ifndef NO_LOOK
				isnew = (LOOKS && (FOUND || kept != NONE));
#endif
				if
				:: isnew ->
					more = true; isnew = false;
					assert(!refused);
					refused = quiet
				:: else -> awake = false
				fi
			}
		:: else
		fi;
next:		on = false; tx_mtx = false;
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
		used = false; fresh = true;
#ifdef NO_SWAP
		seen = guest_tdt;
#endif
		awake = false; kicked = false; kept = NONE; starts = true;
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
#ifdef RESET
	:: !quiet -> goto reset
#endif
	:: !quiet ->
		/* lem_set_mode() */
		guest_tdt = next;
		guest_on = !guest_on;
		write_tdt(next);
		if
		:: scarce -> wait_room()
		:: else
		fi
	:: !scarce && !FULL ->
		fill();
		kicks = (!guest_on || host_need);
		if
		:: kicks ->
			if
			:: guest_on -> host_need = false
			:: else
			fi;
			write_tdt(next)
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
	:: guest_on = !guest_on
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
