/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB's protocol, paravirt_csb(9), for spin: no kick and no interrupt is
 * lost, so that neither side sleeps while there is work.
 *
 *	-DRING_TX or -DRING_RX		which ring
 *	-DTHRESHOLD			a side that sleeps publishes the index
 *					at which the other one wakes it
 *					(guest_txkick_at, host_rxkick_at), else
 *					only a flag (guest_need_txkick,
 *					host_need_rxkick)
 *	-DNO_BARRIER_x			leave out barrier x of those below
 *
 * Memory is ordered as on x86: stores wait in a buffer, first in, first out,
 * and later loads may be done before them.  Each field is written by one side
 * only, except host_need_txkick, which a guest may clear when it kicks.  A kick
 * (TDT, RDT) or an interrupt is ordered after earlier stores.  On machines with
 * weaker order, full barriers give the order that is needed here.
 *
 * An error is a deadlock: both sides wait, one of them not at a label that
 * begins with "end".
 *
 * Indices count up and never wrap; SLOTS of them are the ring.
 */

#define	SLOTS	3
#define	AHEAD	2		/* three quarters of them, or so */
#define	FRAMES	5
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
#ifdef NO_BARRIER_HOST_TELL
#define	barrier_host_tell	skip
#else
#define	barrier_host_tell	empty(hbuf)
#endif
#ifdef NO_BARRIER_HOST_SLEEP
#define	barrier_host_sleep	skip
#else
#define	barrier_host_sleep	empty(hbuf)
#endif

/* Whether an index moves to or past the one at which the other side wakes. */
#define	PASSED(at, old, new)	((at) != NONE && (old) < (at) && (at) <= (new))

#ifdef RING_TX

#ifdef THRESHOLD
#define	ROOM_WANTED(clean)	((clean) + AHEAD)
#define	ROOM_UNWANTED		NONE
#define	WANTS_ROOM(old, new)	PASSED(mem[GWANT], old, new)
#else
#define	ROOM_WANTED(clean)	1
#define	ROOM_UNWANTED		2	/* acknowledged */
#define	WANTS_ROOM(old, new)	(mem[GWANT] == 1)
#endif

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
		gbuf!GWANT,ROOM_WANTED(sent - SLOTS);
		barrier_guest_sleep;
		if
		:: sent - mem[HHEAD] == SLOTS ->
			atomic { mem[INTR] == 1 -> mem[INTR] = 0 }
		:: else
		fi;
		gbuf!GWANT,ROOM_UNWANTED
	od;
	/* All frames are sent, though the guest does not wait for them. */
	mem[HHEAD] == FRAMES
}

proctype host()
{
	byte head, old, tail;

endasleep:
	atomic { mem[KICK] == 1 -> mem[KICK] = 0 };
	hbuf!HWANT,0;
	do
	:: mem[KICK] = 0;
		tail = mem[GTAIL];
		assert(head <= tail && tail - head <= SLOTS);
		if
		:: head < tail ->
			/* A batch may end anywhere. */
			old = head;
			if
			:: head = tail
			:: head++
			fi;
			hbuf!HHEAD,head;
			barrier_host_tell;
			if
			:: WANTS_ROOM(old, head) -> hbuf!INTR,1
			:: else
			fi
		:: head == tail		/* a round for nothing */
		:: head == tail ->
			hbuf!HWANT,1;
			barrier_host_sleep;
			if
			:: mem[GTAIL] == tail -> goto endasleep
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

#ifdef THRESHOLD
#define	BUFS_WANTED(head)	((head) + AHEAD)
#define	BUFS_UNWANTED		NONE
#define	WANTS_BUFS(old, new)	PASSED(mem[HWANT], old, new)
#else
#define	BUFS_WANTED(head)	1
#define	BUFS_UNWANTED		0
#define	WANTS_BUFS(old, new)	(mem[HWANT] == 1)
#endif

proctype guest()
{
	byte given = SLOTS, old, taken;

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
			atomic { mem[INTR] == 1 -> mem[INTR] = 0 }
		:: else
		fi;
		gbuf!GWANT,0
	od
}

/* The network has FRAMES frames. */
proctype host()
{
	byte head, tail = SLOTS;

	do
	:: head == FRAMES -> break
	:: head < FRAMES && head < tail ->
		head++;
		hbuf!HHEAD,head;
		barrier_host_tell;
		if
		:: mem[GWANT] == 1 -> hbuf!INTR,1
		:: else
		fi
	:: head < FRAMES && head == tail && mem[GTAIL] != tail ->
		tail = mem[GTAIL]
	:: head < FRAMES && head == tail && mem[GTAIL] == tail ->
		hbuf!HWANT,BUFS_WANTED(head);
		barrier_host_sleep;
		if
		:: mem[GTAIL] == tail ->
			atomic { mem[KICK] == 1 -> mem[KICK] = 0 }
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
