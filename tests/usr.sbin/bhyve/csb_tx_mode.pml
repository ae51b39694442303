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
 * The mode is on at first, and changes at any time, as often as it likes.  The
 * guest may reset the adapter at any time, and is
 *
 *	otherwise	like FreeBSD 10's lem(4): it always stores guest_tdt,
 *			does not kick when the mode changes, and leaves
 *			guest_need_txkick at 2
 *	-DOWN		like lem_core.c: it stores guest_tdt with the mode on,
 *			clears host_need_txkick when it kicks, and writes TDT
 *			when it changes the mode; it may leave guest_tdt as it
 *			is when it resets the adapter
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
 * The host keeps each write to TDT aside, whatever the mode, until the next
 * batch; only the first after a start is stored as it stands.  The index counts
 * if it is farther from the head than TDT and DD is clear in the descriptor
 * before it.  It does not count until one other than TDH has been written since
 * the start: the descriptor before TDH may never have been used, and DD is
 * clear there.  The host also takes guest_tdt, by a swap with
 * NET_PARAVIRT_NONE.  It does so with the mode off, too, but not before the
 * mode was on in a batch after a kick: guest_tdt may be from before the start,
 * and until then the guest kicks for each frame.  Before it sleeps, it sets
 * host_need_txkick and reads guest_tdt again.  A batch may end anywhere, and the
 * host may wake up for no reason.
 *
 * The host may be made to do otherwise:
 *
 *	-DNO_DD		an index counts whether or not DD is clear before it
 *	-DNO_SWAP	guest_tdt is read, and counts if it has changed
 *	-DNO_ON		it counts though the mode has not been on
 *	-DKEEP_FRESH	TDT counts though only TDH was written to it
 *	-DSTORE_OFF	TDT is stored as it stands if the last batch found the
 *			mode off
 *	-DNO_REREAD	the host does not do so
 *	-DREREAD_ON	it does only if the batch found the mode on
 *
 * An error is a descriptor sent that holds no new frame; a host that is kept
 * awake by nothing; or a deadlock: the host sleeps, and the guest has frames
 * pending or waits for room.
 *
 * Memory is sequentially consistent here; csb.pml is about the barriers.  A
 * step is an access to guest memory, or what reg_mtx or tx_mtx protects; what
 * only one side can see, such as a lock that is released, is done with the step
 * before.  Not modeled are guest_txkick_at, packets of several descriptors, descriptors
 * without RS, restarts without a reset, the bus master bit, snapshots, invalid
 * indices, and the check on the timer.  Nor is a guest that clears
 * host_need_txkick, but does not write TDT when the mode changes: its frames
 * may wait for the next kick.
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
bool fresh = true;		/* only TDH has been written to TDT */
bool kicked;
bool awake;			/* csb_tx_awake() */
bool used;			/* csb_tx_counts(): kicked, mode on */
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
		:: FROM(kept) > FROM(tdt) && POSTED(kept) -> tdt = kept
		:: else
		fi;
		kept = NONE; refused = false
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

#ifdef NO_ON
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

#ifdef STORE_OFF
bool last_on;
#define	KEEPS	(tx_en && last_on)
#else
#define	KEEPS	(tx_en && !starts)
#endif
#ifdef KEEP_FRESH
#define	OLD	false
#else
#define	OLD	fresh
#endif

/* A write to TDT, in two steps with reg_mtx:
   e82545_tdt_write(). */
inline store_tdt(value)
{
	fresh = (fresh && value == 0);
	if
	:: KEEPS && OLD
	:: KEEPS && !OLD -> kept = value
	:: else -> kept = NONE; tdt = value; starts = false
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

#ifdef REREAD_ON
#define	REREADS	(tx_en && on)
#else
#define	REREADS	tx_en
#endif

proctype host()
{
	bool k, more, on;
	byte end, i;

endasleep:
	if
	:: atomic { wake -> wake = false }
	:: !quiet		/* something else wakes it */
	fi;
	do
	:: d_step { !tx_mtx -> tx_mtx = true; k = kicked; kicked = false };
		/* csb_tx_begin() */
		atomic {
			on = (guest_on && tx_en);
#ifdef STORE_OFF
			last_on = guest_on;
#endif
			awake = (awake || k);
			k = false;
			used = (used || (awake && on))
		};
		if
		:: awake && on && host_need -> host_need = false
		:: else
		fi;
		if
		:: d_step { tx_en && (FOUND || kept != NONE) && !reg_mtx ->
			/* csb_use_tdt() */
			reg_mtx = true; use_kept() };
			d_step { take(); reg_mtx = false }
		:: !(tx_en && (FOUND || kept != NONE))
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
			:: d_step { i != end -> dd[i] = true; i = NEXT(i) }
			:: else -> break
			od;
			/* csb_tx_notify() */
			atomic {
				!reg_mtx -> tdh = end; i = 0; end = 0;
				if
				:: on && need == 0 -> reg_mtx = true
				:: else -> intr = true; goto sent
				fi
			};
			atomic {
				intr = (intr || !guest_on); reg_mtx = false;
sent:				/* csb_tx_end() */
				if
				:: awake && on -> more = true; goto next
				:: else
				fi
			}
		:: else
		fi;
		atomic {
			if
			:: awake && on -> more = true; goto next
			:: awake -> host_need = true	/* it is idle */
			:: !awake -> goto next
			fi
		};
		/* csb_tx_sleep() */
		atomic {
			if
#ifndef NO_REREAD
			:: REREADS && (FOUND || kept != NONE) ->
				more = true;
				assert(!refused);
				refused = quiet
#endif
			:: else -> awake = false
			fi;
next:			on = false; tx_mtx = false;
			if
			:: more -> more = false
			:: else -> goto endasleep
			fi
		}
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
	:: d_step { late != NONE && !reg_mtx ->
		store_tdt(late); kick(); late = NONE }
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
	do
	:: clean != next && DONE -> clean = NEXT(clean)
	:: else -> break
	od
}

/* Reset the adapter: csb_idle(), e82545_csb_reset(). */
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

inline post()
{
	dd[next] = false; frame[next] = true; next = NEXT(next);
	refused = false;
#ifdef OWN
	if
	:: guest_on -> guest_tdt = next
	:: else
	fi
#else
	guest_tdt = next
#endif
}

#define	MAY_FILL	(!scarce && !FULL)
#if defined(LATE) || defined(COMBINE)
#define	fill()		d_step { MAY_FILL -> post() }
#else
#define	fill()		atomic { MAY_FILL -> dd[next] = false }; \
			d_step { post() }
#endif

#ifdef OWN

inline wait_room()
{
	d_step {
		scarce = true;
		if
		:: guest_on -> need = 1
		:: else
		fi
	};
	d_step {
		reclaim();
		if
		:: FULL
		:: else -> scarce = false;
			if
			:: guest_on -> need = 0
			:: else
			fi
		fi
	}
}

proctype guest()
{
	byte next, clean;
	bool scarce;

reset:
	restart();
	if
	:: guest_tdt = 0; write_tdt(0)
	:: true
	fi;
	d_step { !tx_mtx && !reg_mtx && WRITTEN -> tx_en = true };
	do
	:: atomic { !quiet -> quiet = true }
	:: !quiet -> goto reset
	:: atomic { !quiet -> guest_tdt = next };
		/* lem_set_mode() */
		guest_on = !guest_on;
		write_tdt(next);
		if
		:: scarce -> wait_room()
		:: else
		fi
	:: fill();
		if
		:: !guest_on || host_need ->
			host_need = (host_need && !guest_on);
			write_tdt(next)
		:: else
		fi
	:: !scarce && FULL -> wait_room()
	:: atomic { intr -> intr = false };
		if
		:: scarce -> wait_room()
		:: atomic { !scarce -> reclaim() }
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
		d_step { reclaim() };
#ifdef COMBINE
		if
		:: shadow != NONE -> write_tdt(shadow);
			d_step { shadow = NONE; combined = true;
			    none = (clean == next) }
		:: d_step { shadow == NONE -> combined = false; none = false }
		fi;
#endif
		if
		:: d_step { !FULL -> scarce = false; need = 2 }
		:: FULL
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
	d_step { !tx_mtx && !reg_mtx && WRITTEN ->
		tx_en = true;
#ifdef COMBINE
		shadow = NONE; combined = false; none = false
#endif
	};
	do
	:: !quiet -> goto reset
	:: fill();
		kicks = guest_on;
		if
		:: atomic { kicks && !host_need -> kicks = false };
			if
			:: true
			:: txeof()
			fi
#ifdef COMBINE
		:: d_step { (!kicks || host_need) && combined ->
			kicks = false; shadow = next }
		:: d_step { (!kicks || host_need) && !combined ->
			kicks = false; combined = true };
			write_tdt(next)
#else
		:: d_step { !kicks || host_need -> kicks = false };
			write_tdt(next)
#endif
		fi;
		if
		:: atomic { FULL -> scarce = true };
			if
			:: guest_on && need != 1 -> need = 1; txeof()
			:: else
			fi
		:: !FULL
		fi
	:: atomic { intr -> intr = false }; txeof()
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
