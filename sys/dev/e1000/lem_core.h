/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The part of an 8254x driver that is the same in every system: rings,
 * interrupt service, send combining, lazy completion, polling, and the CSB.
 *
 * It calls no operating system.  Whoever builds lem_*.c, the driver's host,
 * puts a lem_os.h on the include path, which brings C's fixed-width integers,
 * bool, offsetof() and errno values, and defines, static inline where speed
 * matters (LEM_OS(lc) is the lem_os of a core):
 *
 *   struct lem_os		what the host needs to know of its adapter
 *   uint32_t lem_os_read(struct lem_core *lc, uint32_t reg)
 *   void lem_os_write(struct lem_core *lc, uint32_t reg, uint32_t value)
 *				a device register; a write is not to pass
 *				earlier stores to memory
 *   void lem_os_delay(struct lem_core *lc, unsigned int us)
 *   void lem_os_mb(), lem_os_rmb(), lem_os_wmb()
 *				full barrier; loads; stores, as the adapter
 *				(or another CPU) sees them
 *   void lem_os_sync(struct lem_core *lc, bool before)
 *				busdma's PREREAD | PREWRITE (before) and
 *				POSTREAD | POSTWRITE for the descriptor rings
 *   void lem_os_tx_done(struct lem_core *lc, uint32_t slot)
 *				the adapter is done with what was put in TX
 *				slot `slot', sent or not: drop its memory
 *   uint64_t lem_os_rx_buf(struct lem_core *lc, uint32_t slot)
 *				DMA address of an empty buffer of lc_rx_bufsize
 *				bytes for RX slot `slot', replacing the one
 *				that lem_os_rx() took; 0 if none can be had.
 *				lem_start() asks for every slot: one that has
 *				a buffer still is answered with that
 *   bool lem_os_rx(struct lem_core *lc, uint32_t slot, uint32_t len,
 *       uint32_t flags, uint16_t vlan)
 *				the adapter has filled the buffer of `slot',
 *				with `len' bytes that `flags', LEM_RX_*, tell
 *				of; called for each slot, in the ring's order.
 *				True: the host keeps the buffer, and
 *				lem_os_rx_buf() is asked for another; false: it
 *				goes back as it is
 *   lem_os_probe(lc, name, value)
 *				a macro: a place of dtrace_lem(4); `name' is the
 *				probe's, with __ for -, `value' at hand
 *
 * Locking is the host's: one lock around the transmit side (lem_tx*), one
 * around the receive side (lem_rx*), both around what says so; lem_intr() needs
 * neither.  Nothing here sleeps.
 *
 * Hostile devices.  A register that reads as all ones, descriptors that come
 * back wrong, a CSB full of nonsense: each is counted (lc_counter) and at worst
 * ends in lc_dead, after which every call does nothing until lem_start().
 *
 * Hardware facts: e82545_reg.h; the CSB: <net/paravirt.h>, paravirt_csb(9).
 */

#ifndef _DEV_E1000_LEM_CORE_H_
#define	_DEV_E1000_LEM_CORE_H_

struct lem_core;

/* Descriptors in a ring: a power of two. */
#define	LEM_RING_MIN	128
#define	LEM_RING_MAX	4096
/* Descriptors that one packet may take, at the most. */
#define	LEM_TX_MAXSEGS	64

/* What lem_os_rx() is told of a piece of a frame. */
#define	LEM_RX_SOP	0x01	/* the first one */
#define	LEM_RX_EOP	0x02	/* the last one, and then: */
#define	LEM_RX_IPSUM	0x04	/* IPv4 header checksum verified */
#define	LEM_RX_L4SUM	0x08	/* TCP or UDP checksum verified */
#define	LEM_RX_VLAN	0x10	/* tag `vlan' was taken out */
#define	LEM_RX_BAD	0x20	/* no frame, nor what came of it before */

/*
 * A core begins with its host's part: for lem_os.h, where it has no members
 * yet.
 */
#define	LEM_OS(lc)	((struct lem_os *)(void *)(lc))

#include <lem_os.h>

#include <sys/counter_table.h>
#include <net/paravirt.h>

#include "e82545_reg.h"

/* What lem_tx() is to have the adapter do to a packet. */
#define	LEM_TX_IPSUM	0x01	/* IPv4 header checksum */
#define	LEM_TX_TCPSUM	0x02	/* TCP checksum */
#define	LEM_TX_UDPSUM	0x04	/* UDP checksum */
#define	LEM_TX_TSO4	0x08	/* cut into segments, TCP over IPv4 */
#define	LEM_TX_TSO6	0x10	/* the same over IPv6 */
#define	LEM_TX_VLAN	0x20	/* insert lp_vlan */

/* A piece of a packet: DMA address and bytes, 1 to 16383. */
struct lem_seg {
	uint64_t	 ls_addr;
	uint32_t	 ls_len;
};

/* A packet to send. */
struct lem_packet {
	const struct lem_seg *lp_segs;
	uint16_t	 lp_nsegs;	/* 1 to LEM_TX_MAXSEGS */
	uint16_t	 lp_flags;	/* LEM_TX_* */
	uint16_t	 lp_vlan;	/* tag */
	uint16_t	 lp_mss;	/* bytes of payload, with TSO */
	uint8_t		 lp_l2len;	/* bytes of each header, where */
	uint8_t		 lp_l3len;	/* a checksum or TSO is asked for */
	uint8_t		 lp_l4len;
};

/* How the adapter is to be run; lem_set_mode() takes a set of these. */
#define	LEM_MODE_SC	0x01	/* send combining */
#define	LEM_MODE_CSB	0x02	/* use the CSB, if the adapter has one */
#define	LEM_MODE_LAZY	0x04	/* no transmit interrupts but when short */
#define	LEM_MODE_POLL	0x08	/* no interrupts at all: the host polls */

/*
 * Counters, in the form of sys/counter_table.h.  One thread writes each of
 * them; any thread may read them at any time.
 */
#define	LEM_COUNTERS(X)							\
	X(LEM_C_TX_PACKET, "tx_packets", "packets posted to the adapter") \
	X(LEM_C_TX_KICK, "tx_kicks", "writes to TDT")			\
	X(LEM_C_TX_KICK_SAVED, "tx_kicks_saved",			\
	    "packets posted without a write to TDT")			\
	X(LEM_C_TX_COMBINED, "tx_combined",				\
	    "packets deferred by send combining")			\
	X(LEM_C_TX_FLUSH, "tx_flushes", "flushes of deferred packets")	\
	X(LEM_C_TX_FULL, "tx_full", "times the transmit ring was full")	\
	X(LEM_C_TX_CLEAN, "tx_cleans", "batches of completed packets")	\
	X(LEM_C_TX_BAD, "tx_bad", "invalid completions")		\
	X(LEM_C_RX_PACKET, "rx_packets", "frames received")		\
	X(LEM_C_RX_BATCH, "rx_batches", "receive batches")		\
	X(LEM_C_RX_KICK, "rx_kicks", "writes to RDT")			\
	X(LEM_C_RX_KICK_SAVED, "rx_kicks_saved",			\
	    "buffers posted without a write to RDT")			\
	X(LEM_C_RX_NOBUF, "rx_nobuf", "buffers that could not be allocated") \
	X(LEM_C_RX_ERROR, "rx_errors", "frames that the adapter marked bad") \
	X(LEM_C_RX_BAD, "rx_bad",					\
	    "invalid receive descriptors and CSB indices")		\
	X(LEM_C_INTERRUPT, "interrupts", "interrupts handled")		\
	X(LEM_C_DEAD, "dead", "times the driver gave up on the adapter")

enum lem_counter {
	COUNTER_IDS(LEM_COUNTERS)
	LEM_NCOUNTERS
};
extern const struct counter_row lem_counter_table[LEM_NCOUNTERS];

struct lem_core {
	struct lem_os	 lc_os;		/* the host's own */

	/* Set by the host before lem_start(), and not changed after. */
	struct e82545_desc *lc_txd;	/* rings: memory, DMA address, size */
	uint64_t	 lc_txd_dma;
	uint32_t	 lc_ntxd;
	struct e82545_desc *lc_rxd;
	uint64_t	 lc_rxd_dma;
	uint32_t	 lc_nrxd;
	uint32_t	 lc_rx_bufsize;	/* bytes: 2048 or 4096 */
	struct paravirt_csb *lc_csb;	/* one zeroed page for an adapter with a
					   CSB (E82545_PCI_SUBDEVICE_CSB), or
					   NULL */
	uint64_t	 lc_csb_dma;
	bool		 lc_msi;	/* interrupts are messages */

	/* For the host to read. */
	bool		 lc_running;
	bool		 lc_dead;
	bool		 lc_link;	/* as of the last lem_link() */
	uint32_t	 lc_mode;	/* LEM_MODE_*, as is in force */
	uint32_t	 lc_itr_256ns;
	uint64_t	 lc_counter[LEM_NCOUNTERS];
	uint32_t	 lc_tx_head;	/* first descriptor not cleaned */
	uint32_t	 lc_tx_tail;	/* where the next packet begins */

	/* lem_tx.c's own. */
	uint32_t	 lc_tx_told;	/* what TDT (or guest_tdt) was set to */
	uint32_t	 lc_tx_untold;	/* packets since then */
	uint32_t	 lc_tx_held;	/* of them, held back (SC) */
	bool		 lc_tx_waiting;	/* an interrupt is to come (SC) */
	bool		 lc_tx_short;	/* the host waits for room */
	uint64_t	 lc_tx_ctx[2];	/* the context descriptor in force */
	uint32_t	 lc_tx_batch;	/* where the last batch begins, */
	uint16_t	 lc_tx_last[LEM_RING_MAX]; /* and the others end */
	/* lem_rx.c's own. */
	uint32_t	 lc_rx_next;	/* next descriptor to come back */
	uint32_t	 lc_rx_tail;	/* next to give */
	uint32_t	 lc_rx_told;	/* what RDT (or guest_rdt) was set to */
	uint32_t	 lc_rx_len;	/* bytes of a frame not complete */
	bool		 lc_rx_skip;	/* the rest of it is to be dropped */
	bool		 lc_rx_empty[LEM_RING_MAX]; /* slot has no buffer */
	/* lem_core.c's own. */
	bool		 lc_intr_on;	/* causes are unmasked */
	bool		 lc_unread;	/* ICR is, since the last message */
};
_Static_assert(offsetof(struct lem_core, lc_os) == 0, "LEM_OS");

/*
 * Reset the adapter and read its station address, before anybody else has to do
 * with it.  0, or an errno value: ENXIO where the registers read as all ones or
 * the reset does not end; EIO where there is no address, or not a station's.
 */
int	lem_attach(struct lem_core *lc, uint8_t mac[6]);

/*
 * Program rings, filters' defaults and offloads, give all RX buffers, and
 * start; interrupts are still off.  `mac' is the station address, `mtu'
 * E82545_MTU_MIN to E82545_MTU_MAX bytes.  Both locks.  0, or ENXIO, EINVAL
 * (rings, sizes), ENOBUFS if the host has no buffer at all.
 */
int	lem_start(struct lem_core *lc, const uint8_t mac[6], uint32_t mtu);

/*
 * Stop: mask interrupts, take the CSB back, reset.  lem_os_tx_done() is called
 * for each slot in use; RX buffers stay with the host, and so do the pieces of
 * a frame that has not ended.  Both locks.
 */
void	lem_stop(struct lem_core *lc);

/*
 * The mode; may change at any time.  Both locks.  Into LEM_MODE_POLL,
 * interrupts are masked; out of it, the host calls lem_intr_enable() when it is
 * ready for one, which comes in any case.  EINVAL for unknown bits,
 * ENOTSUP for LEM_MODE_CSB on an adapter without one (the other bits are then
 * not set either).
 */
int	lem_set_mode(struct lem_core *lc, uint32_t mode);

/*
 * Least time between interrupts, units of 256 ns, 0 to E82545_ITR_MAX; 0: none.
 * EINVAL out of range.  Any thread.
 */
int	lem_set_itr(struct lem_core *lc, uint32_t itr_256ns);

/*
 * What is received, besides unicast to us and broadcast: what E82545_RCTL_UPE
 * and E82545_RCTL_MPE say, and multicast by 128 words of hash bits, NULL for
 * none; `vlan': tags are taken out, and put in.  Any thread, one at a time.
 */
void	lem_set_filter(struct lem_core *lc, uint32_t rctl, bool vlan,
	    const uint32_t mta[128]);
/*
 * The MTA bit of a multicast address, 0 to 4095: word = bit / 32.  8254x SDM
 * section 13.5.1 with RCTL.MO 0: the upper twelve bits.
 */
#define	lem_mta_bit(mac)	((mac)[4] >> 4 | (mac)[5] << 4)
/* Read the link's state into lc_link, polling.  Any thread. */
void	lem_link(struct lem_core *lc);

/*
 * Interrupts.  lem_intr() is false if the interrupt was not ours; else they are
 * masked, the link's state is up to date, and the host is to call
 * lem_tx_clean(), lem_rx() until that returns less than its budget, and then
 * lem_intr_enable(), which does nothing with LEM_MODE_POLL.
 *
 * With LEM_MODE_CSB and messages, which no line keeps asserted, the causes are
 * read last, when the frames have gone their way: lem_intr() guesses, and
 * lem_intr_enable() is true if there may be more to do, all of the above, and
 * itself to be called again; it is false at all other times.
 */
bool	lem_intr(struct lem_core *lc);
bool	lem_intr_enable(struct lem_core *lc);

/*
 * Queue a packet, from slot lc_tx_tail on; the adapter learns of it by
 * lem_tx_flush(), called once for any number of packets.  0, and no slot of it
 * comes to lem_os_tx_done() before all are done; ENOBUFS where there is no
 * room, and then an interrupt (or, polling, the next lem_tx_clean()) comes when
 * there is; EINVAL for lengths or pieces out of range; ENXIO when dead.
 * Transmit lock.
 */
int	lem_tx(struct lem_core *lc, const struct lem_packet *lp);
void	lem_tx_flush(struct lem_core *lc);

/*
 * Take back what the adapter has sent, and let go what send combining held
 * back.  Returns how many descriptors.  Transmit lock.
 */
unsigned int lem_tx_clean(struct lem_core *lc);

/*
 * Ask for the interrupt that lem_tx() asks for when it returns ENOBUFS: for a
 * host that waits for room of `need' descriptors before it has a packet.  There
 * may be some at once; look at lem_tx_room() after it.  Transmit lock.
 */
void	lem_tx_wait(struct lem_core *lc, uint32_t need);

/* Free TX descriptors, and whether that is all.  Transmit lock. */
uint32_t lem_tx_room(const struct lem_core *lc);
#define	lem_tx_idle(lc)	((lc)->lc_tx_head == (lc)->lc_tx_tail)

/*
 * Take up to `budget' frames out of the ring and give buffers back.  Returns
 * how many; fewer than `budget' means the ring is empty, and that the adapter
 * will interrupt for the next frame (not polling) once lem_intr_enable() is
 * called.  Receive lock.
 */
unsigned int lem_rx(struct lem_core *lc, unsigned int budget);

#endif /* !_DEV_E1000_LEM_CORE_H_ */
