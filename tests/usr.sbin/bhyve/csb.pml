/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB's protocol, paravirt_csb(9), for spin, with guests that break it: no
 * kick and no interrupt is lost, so that neither side sleeps while there is
 * work.  That a guest which follows the rules loses none, and needs each of the
 * barriers, is checked with the code itself: tests/relacy.
 *
 *	-DRING_TX or -DRING_RX		which ring
 *	-DNO_BARRIER_GUEST_TELL		the guest has no barrier after it has
 *					stored an index
 *	-DNO_BARRIER_GUEST_SLEEP	nor after it has asked for an interrupt
 *	-DRECHECK			the host checks again, later
 *
 * and on receive for the first driver, FreeBSD 10's lem(4):
 *
 *	-DLEM				after an interrupt that found no frame
 *					guest_need_rxkick stays 0
 *	-DLEM_LEGACY			and interrupts are never masked
 *	-DUNMASK			a write to IMS asks for interrupts
 *
 * Memory is ordered as on x86: stores wait in a buffer, first in, first out,
 * and later loads may be done before them.  Each field is written by one side
 * only, except host_need_txkick, which a guest may clear when it kicks.  A kick
 * (TDT, RDT) or an interrupt is ordered after earlier stores.  On machines with
 * weaker order, full barriers give the order that is needed here.
 *
 * The check is so late that the guest's buffer is empty.  It does not heed
 * guest_txkick_at, which lem(4) does not use.
 *
 * An error is a deadlock: both sides wait, one of them not at a label that
 * begins with "end".
 *
 * Indices count up and never wrap; SLOTS of them are the ring.
 */

#if defined(RECHECK) || defined(LEM)
#define	SLOTS	2
#define	AHEAD	1
#define	FRAMES	4
#else
#define	SLOTS	3
#define	AHEAD	2		/* three quarters of them, or so */
#define	FRAMES	5
#endif
#define	NONE	255

/* Fields, and the two events that act like stores. */
#define	GTAIL	0		/* guest_tdt, guest_rdt */
#define	GWANT	1		/* guest_need_txkick, guest_need_rxkick,
				   guest_txkick_at */
#define	HHEAD	2		/* DD in the descriptors; host_tdh, host_rdh */
#define	HWANT	3		/* host_need_txkick, host_need_rxkick,
				   host_rxkick_at */
#define	KICK	4
#define	INTR	5
#define	NFIELDS	6

byte mem[NFIELDS];

/* Store buffers. */
chan gbuf = [2] of { byte, byte };
chan hbuf = [2] of { byte, byte };

proctype drain(chan buf)
{
	byte field, value;

end:	do
	:: atomic { buf?field,value -> mem[field] = value }
	od
}

/* Interrupts: what the adapter keeps with its registers. */
bool held;			/* a suppressed cause */
bool unmasked;			/* IMS written since causes were read */

#define	read_icr	mem[INTR] = 0; held = false; unmasked = false

/* The check.  When it is due, all that the guest stored is visible. */
bool recheck;
byte recheck_tail;			/* guest_rdt when it was decided on */

#define	recheck_done	recheck = false; recheck_tail = 0

#ifdef RECHECK
#define	recheck_due	(recheck && empty(gbuf))

inline recheck_later()
{
	d_step {
		if
		:: !recheck -> recheck = true; recheck_tail = mem[GTAIL]
		:: else
		fi
	}
}

inline suppress()
{
	held = true;
	recheck_later()
}
#else
#define	recheck_due	false
#define	recheck_later()	skip
#define	suppress()	held = true
#endif

/* The barriers, each between a store and a load, in the order of the text. */
#ifdef NO_BARRIER_GUEST_TELL
#define	barrier_guest_tell	skip
#else
#define	barrier_guest_tell	empty(gbuf)
#endif
#ifdef NO_BARRIER_GUEST_SLEEP
#define	barrier_guest_sleep	skip
#else
#define	barrier_guest_sleep	empty(gbuf)
#endif
#define	barrier_host_tell	empty(hbuf)
#define	barrier_host_sleep	empty(hbuf)

/* Whether an index moves to or past the one at which the other side wakes. */
#define	PASSED(at, old, new)	((at) != NONE && (old) < (at) && (at) <= (new))

#ifdef RING_TX

/* guest_need_txkick */
#define	ROOM_WANTED		1
#define	ROOM_UNWANTED		2	/* acknowledged */
#define	WANTS_ROOM		(mem[GWANT] == 1)

proctype guest()
{
	byte sent;

	do
	:: sent == FRAMES -> break
	:: sent < FRAMES && sent - mem[HHEAD] < SLOTS ->
		sent++;
		gbuf!GTAIL,sent;
		barrier_guest_tell;
		if
		:: mem[HWANT] == 1 -> gbuf!KICK,1
		:: mem[HWANT] == 1 -> gbuf!HWANT,0; gbuf!KICK,1
		:: else
		fi
	:: sent < FRAMES && sent - mem[HHEAD] == SLOTS ->
		gbuf!GWANT,ROOM_WANTED;
		barrier_guest_sleep;
		if
		:: sent - mem[HHEAD] == SLOTS ->
			atomic { mem[INTR] == 1 -> read_icr }
		:: else
		fi;
		gbuf!GWANT,ROOM_UNWANTED
	od;
	/* All frames are sent, though the guest does not wait for them. */
	mem[HHEAD] == FRAMES
}

/* csb_tx_recheck() */
inline recheck_tx()
{
	recheck_done;
	if
	:: held && mem[GWANT] == 1 -> held = false; mem[INTR] = 1
	:: else
	fi
}

proctype host()
{
	byte head, tail;

endasleep:
	do
	:: atomic { mem[KICK] == 1 -> mem[KICK] = 0 }; break
	:: atomic { recheck_due && mem[GTAIL] != tail -> recheck_tx() }; break
	:: atomic { recheck_due && mem[GTAIL] == tail -> recheck_tx() }
	od;
	hbuf!HWANT,0;
	do
	:: atomic { recheck_due -> recheck_tx() }
	:: mem[KICK] = 0;
		tail = mem[GTAIL];
		assert(head <= tail && tail - head <= SLOTS);
		if
		:: head < tail ->
			/* A batch may end anywhere. */
			if
			:: head = tail
			:: head++
			fi;
			hbuf!HHEAD,head;
			barrier_host_tell;
			if
			:: WANTS_ROOM -> hbuf!INTR,1
			:: else -> suppress()
			fi
		:: head == tail		/* a round for nothing */
		:: head == tail ->
			hbuf!HWANT,1;
			barrier_host_sleep;
			if
			:: mem[GTAIL] == tail -> recheck_later(); goto endasleep
			:: else -> hbuf!HWANT,0
			fi
		fi
	od
}

init {
	atomic {
		mem[GWANT] = ROOM_UNWANTED;
		mem[HWANT] = 1;
		run drain(gbuf); run drain(hbuf);
		run guest(); run host()
	}
}

#else	/* RING_RX */

/* host_rxkick_at */
#define	BUFS_WANTED(head)	((head) + AHEAD)
#define	BUFS_UNWANTED		NONE
#define	WANTS_BUFS(old, new)	PASSED(mem[HWANT], old, new)

byte taken;			/* DD is clear */

#ifdef LEM
/*
 * Interrupts of other causes find no frame.  It gives back one buffer at a
 * time.
 */
proctype guest()
{
	byte given = SLOTS, others = 1;

	do
	:: taken == FRAMES -> break
	:: taken < FRAMES ->
		if
		:: atomic { mem[INTR] == 1 -> read_icr }
		:: atomic { others > 0 -> others--; read_icr }
		fi;
		gbuf!GWANT,0;
		if
		:: taken < mem[HHEAD] ->
more:			do
			:: taken < mem[HHEAD] ->
				gbuf!GWANT,0;
				taken++;
				given++;
				gbuf!GTAIL,given;
				barrier_guest_tell;
				if
				:: mem[HWANT] == given -> gbuf!KICK,1
				:: else
				fi
			:: else -> break
			od;
			gbuf!GWANT,1;
			barrier_guest_sleep;
			if
			:: taken < mem[HHEAD] -> goto more
			:: else
			fi
		:: else
		fi;
#ifndef LEM_LEGACY
		/* A write to IMS. */
		atomic {
			empty(gbuf);
#ifdef UNMASK
			if
			:: held -> held = false; mem[INTR] = 1
			:: else
			fi;
			unmasked = true
#endif
		}
#endif
	od
}
#else
proctype guest()
{
	byte given = SLOTS, old;

	do
	:: taken == FRAMES -> break
	:: taken < FRAMES && taken < mem[HHEAD] ->
		taken++
	:: given < taken + SLOTS ->
		/* One buffer or many. */
		old = given;
		if
		:: given = taken + SLOTS
		:: given++
		fi;
		gbuf!GTAIL,given;
		barrier_guest_tell;
		if
		:: WANTS_BUFS(old, given) -> gbuf!KICK,1
		:: else
		fi
	:: taken < FRAMES && taken == mem[HHEAD] && given == taken + SLOTS ->
		gbuf!GWANT,1;
		barrier_guest_sleep;
		if
		:: taken == mem[HHEAD] ->
			atomic { mem[INTR] == 1 -> read_icr }
		:: else
		fi;
		gbuf!GWANT,0
	od
}
#endif

/* csb_rx_recheck(): a guest that polls gives back buffers. */
inline recheck_rx()
{
	tail = mem[GTAIL];
	if
	:: held && taken < head && mem[GWANT] == 0 && tail != recheck_tail ->
		recheck_tail = tail
	:: held && taken < head && (mem[GWANT] != 0 || tail == recheck_tail) ->
		held = false; mem[INTR] = 1;
		recheck_done
	:: else -> recheck_done
	fi
}

/* The network has FRAMES frames. */
proctype host()
{
	byte head, tail = SLOTS;

end:	do
	:: atomic { recheck_due -> recheck_rx() }
	:: head < FRAMES && head < tail ->
		head++;
		hbuf!HHEAD,head;
		barrier_host_tell;
		if
		:: atomic { mem[GWANT] == 1 || unmasked -> hbuf!INTR,1 }
		:: atomic { else -> suppress() }
		fi
	:: head < FRAMES && head == tail && mem[GTAIL] != tail ->
		tail = mem[GTAIL]
	:: head < FRAMES && head == tail && mem[GTAIL] == tail ->
		hbuf!HWANT,BUFS_WANTED(head);
		barrier_host_sleep;
		if
		:: mem[GTAIL] == tail ->
			recheck_later();
endstalled:		do
			:: atomic { mem[KICK] == 1 -> mem[KICK] = 0 }; break
			:: atomic { recheck_due -> recheck_rx() };
				if
				:: tail > head -> break
				:: else
				fi
			od
		:: else
		fi;
		hbuf!HWANT,BUFS_UNWANTED;
		tail = mem[GTAIL];
		assert(head <= tail && tail - head <= SLOTS)
	od
}

init {
	atomic {
		mem[GTAIL] = SLOTS;
		mem[GWANT] = 1;
		mem[HWANT] = BUFS_UNWANTED;
		run drain(gbuf); run drain(hbuf);
		run guest(); run host()
	}
}

#endif
