/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The part of an 8254x driver that is the same in every system: rings,
 * interrupt service, send combining, lazy completion, polling, and the CSB.
 *
 * It calls no operating system.  The driver that compiles lem_*.c, its host,
 * must have a lem_os.h in the include path.  That header must provide the
 * fixed-width integers, bool, offsetof(), errno values, atomic(9) and MPASS(9),
 * and the following functions, as static inline functions where speed matters.
 * LEM_OS(lc) is the lem_os of a core.
 *
 *   struct lem_os		the host's state of its adapter
 *   uint32_t lem_os_read(struct lem_core *lc, uint32_t reg)
 *   void lem_os_write(struct lem_core *lc, uint32_t reg, uint32_t value)
 *				access a device register; a write must not pass
 *				earlier stores to memory
 *   void lem_os_delay(struct lem_core *lc, unsigned int us)
 *				wait
 *   void lem_os_tx_done(struct lem_core *lc, uint32_t slot)
 *				release the memory of the packet in TX slot
 *				`slot', which was sent or dropped
 *   uint64_t lem_os_rx_buf(struct lem_core *lc, uint32_t slot)
 *				return the DMA address of an empty buffer of
 *				lc_rx_bufsize bytes for RX slot `slot', or 0 if
 *				there is none.  lem_start() calls it for every
 *				slot: if a slot has a buffer, return that one
 *   bool lem_os_rx(struct lem_core *lc, uint32_t slot, uint32_t len,
 *       uint32_t flags, uint16_t vlan)
 *				receive `len' bytes in the buffer of `slot';
 *				`flags' are LEM_RX_*.  Called for each slot, in
 *				the order of the ring.  Return true to keep the
 *				buffer: lem_os_rx_buf() must then replace it.
 *				Return false to give it back to the adapter
 *   bool lem_os_idle(struct lem_core *lc)
 *				return whether no other thread wants the
 *				processor, nor work that is left to do
 *   lem_os_assert_tx(lc), lem_os_assert_rx(lc)
 *				macros: assert that the caller holds the
 *				transmit lock, the receive lock
 *
 * The host must lock: one lock for the transmit side (lem_tx*), one for the
 * receive side (lem_rx*), both for the functions that say so.  lem_intr() needs
 * none.  No function sleeps.
 *
 * Hostile devices.  A register that reads as all ones, invalid descriptors, an
 * invalid CSB: the core counts each of these (lc_counter), and at worst sets
 * lc_dead.  Every call does nothing then, until lem_start().
 *
 * Hardware facts: e82545_reg.h; the CSB: <net/paravirt.h>, paravirt_csb(9).
 */

#ifndef _DEV_E1000_LEM_CORE_H_
#define	_DEV_E1000_LEM_CORE_H_

struct lem_core;

/* Descriptors in a ring: a power of two. */
#define	LEM_RING_MIN	128
#define	LEM_RING_MAX	4096
/* Maximum of data descriptors for one packet. */
#define	LEM_TX_MAXSEGS	64

/* Flags of lem_os_rx(). */
#define	LEM_RX_SOP	0x01	/* first buffer of a frame */
#define	LEM_RX_EOP	0x02	/* last buffer of a frame, and with it: */
#define	LEM_RX_IPSUM	0x04	/* IPv4 header checksum verified */
#define	LEM_RX_L4SUM	0x08	/* TCP or UDP checksum verified */
#define	LEM_RX_VLAN	0x10	/* tag `vlan' was stripped */
#define	LEM_RX_BAD	0x20	/* drop this buffer, of `len' 0, and the frame
				   so far */
#define	LEM_RX_OFFLOAD	0x40	/* with LEM_RX_EOP: the frame is not complete,
				   see lc_rx_offload */
/* The longest frame with LEM_RX_OFFLOAD, bytes. */
#define	LEM_RX_OFFLOAD_MAX 65536

/* A core begins with its lem_os: lem_os.h sees an incomplete type. */
#define	LEM_OS(lc)	((struct lem_os *)(void *)(lc))

#include <lem_os.h>

#include <sys/counter_table.h>
#include <net/paravirt.h>

#include "e82545_reg.h"
#include "e82574_reg.h"
#include "lem_spin.h"

/* Offloads of a packet. */
#define	LEM_TX_IPSUM	0x01	/* IPv4 header checksum */
#define	LEM_TX_TCPSUM	0x02	/* TCP checksum */
#define	LEM_TX_UDPSUM	0x04	/* UDP checksum */
#define	LEM_TX_TSO4	0x08	/* segmentation of TCP over IPv4 */
#define	LEM_TX_TSO6	0x10	/* segmentation of TCP over IPv6 */
#define	LEM_TX_VLAN	0x20	/* insert lpk_vlan */

/* A segment of a packet: DMA address and bytes, 1 to 16383. */
struct lem_seg {
	uint64_t	 ls_addr;
	uint32_t	 ls_len;
};

/* A packet to send. */
struct lem_packet {
	const struct lem_seg *lpk_segs;
	uint16_t	 lpk_nsegs;	/* 1 to LEM_TX_MAXSEGS */
	uint16_t	 lpk_flags;	/* LEM_TX_* */
	uint16_t	 lpk_vlan;	/* tag */
	uint16_t	 lpk_mss;	/* bytes of payload, with TSO */
	uint8_t		 lpk_l2len;	/* bytes of each header, with */
	uint8_t		 lpk_l3len;	/* checksum offload or TSO */
	uint8_t		 lpk_l4len;
};

/*
 * A frame received that its sender has left to us: its TCP or UDP checksum has
 * the sum of the pseudo-header only, and it may be longer than the MTU.  All
 * offsets are within the frame.
 */
struct lem_offload {
	uint16_t	 lo_csum_start;	/* first byte summed */
	uint16_t	 lo_csum_offset; /* of the checksum, from there */
	uint16_t	 lo_mss;	/* payload of a segment; 0: it is one */
	uint8_t		 lo_type;	/* LEM_OFFLOAD_* */
};
/* As VIRTIO_NET_HDR_GSO_*: VIRTIO 1.2, section 5.1.6. */
#define	LEM_OFFLOAD_NONE	0
#define	LEM_OFFLOAD_TCP4	1
#define	LEM_OFFLOAD_TCP6	4
#define	LEM_OFFLOAD_UDP		5
#define	LEM_OFFLOAD_ECN		0x80	/* or'ed in: TCP with CWR */

/* An entry of the header ring, a virtio-net header: VIRTIO 1.2, 5.1.6. */
struct lem_vnet {
	uint8_t		 lv_flags;	/* 1: the checksum is partial */
	uint8_t		 lv_type;
	uint16_t	 lv_hdrlen;
	uint16_t	 lv_mss;
	uint16_t	 lv_csum_start;
	uint16_t	 lv_csum_offset;
};
_Static_assert(sizeof(struct lem_vnet) == 10, "paravirt_csb(9)");

/* Flags of lem_set_mode(). */
#define	LEM_MODE_SC	0x01	/* send combining */
#define	LEM_MODE_CSB	0x02	/* use the CSB, if the adapter has one */
#define	LEM_MODE_LAZY	0x04	/* transmit interrupts only if the ring is
				   short of descriptors */
#define	LEM_MODE_POLL	0x08	/* no interrupts: the host polls */

/*
 * Counters, in the form of sys/counter_table.h.  One thread writes each
 * counter; any thread may read all at any time.
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
	X(LEM_C_RX_OFFLOAD, "rx_offload",				\
	    "frames received with a partial checksum")			\
	X(LEM_C_RX_ERROR, "rx_errors", "frames that the adapter marked bad") \
	X(LEM_C_RX_BAD, "rx_bad",					\
	    "invalid receive descriptors and CSB indices")		\
	X(LEM_C_INTERRUPT, "interrupts", "interrupts handled")		\
	X(LEM_C_POLL, "polls", "times that the receive ring was polled") \
	X(LEM_C_DEAD, "dead", "times the driver gave up on the adapter")

enum lem_counter {
	COUNTER_IDS(LEM_COUNTERS)
	LEM_NCOUNTERS
};
extern const struct counter_row lem_counter_table[LEM_NCOUNTERS];

/*
 * How the adapter interrupts.  The first two are the 82545EM's, whose causes a
 * driver must read, and which stay asserted until then.  LEM_IRQ_MSIX is an
 * 82574L's: a message clears and masks its causes, and the driver reads none.
 */
enum lem_irq {
	LEM_IRQ_LINE,		/* perhaps shared */
	LEM_IRQ_MSI,
	LEM_IRQ_MSIX		/* vector 0, for all causes */
};

struct lem_core {
	struct lem_os	 lc_os;		/* the host's */

	/* The host must set these before lem_start(), and not change them. */
	struct e82545_desc *lc_txd;	/* rings: memory, DMA address, size */
	uint64_t	 lc_txd_dma;
	uint32_t	 lc_ntxd;
	struct e82545_desc *lc_rxd;
	uint64_t	 lc_rxd_dma;
	uint32_t	 lc_nrxd;
	uint32_t	 lc_rx_bufsize;	/* bytes: 2048 or 4096 */
	struct paravirt_csb *lc_csb;	/* one zeroed page for an adapter with
					   a CSB (E82545_CSB_SIGNATURE), or
					   NULL */
	uint64_t	 lc_csb_dma;
	struct lem_vnet	*lc_vnet;	/* lc_nrxd headers: the host takes
					   frames with LEM_RX_OFFLOAD while the
					   CSB is on.  Or NULL */
	uint64_t	 lc_vnet_dma;
	enum lem_irq	 lc_irq;	/* how the adapter interrupts */

	/* The host may read these. */
	bool		 lc_running;
	bool		 lc_dead;
	bool		 lc_link;	/* as of the last lem_link() */
	bool		 lc_eeprom_bad;	/* as of lem_address() */
	uint32_t	 lc_mode;	/* LEM_MODE_*; atomic */
	uint32_t	 lc_itr_256ns;
	uint32_t	 lc_rounds;	/* of a spin, at most */
	uint64_t	 lc_counter[LEM_NCOUNTERS];
	uint32_t	 lc_tx_head;	/* first descriptor not cleaned */
	uint32_t	 lc_tx_tail;	/* first descriptor not used */

	/* lem_tx.c; transmit lock. */
	uint32_t	 lc_tx_posted;	/* last value of TDT (or guest_tdt) */
	uint32_t	 lc_tx_pending;	/* packets since then, */
	uint32_t	 lc_tx_deferred; /* of them, by send combining */
	bool		 lc_tx_waiting;	/* (SC) an interrupt or a poll will
					   come */
	uint32_t	 lc_tx_short;	/* the host waits for descriptors;
					   atomic */
	uint32_t	 lc_tx_want;	/* the number that ends the wait */
	uint32_t	 lc_tx_at;	/* a report was asked for there, or
					   NET_PARAVIRT_NONE; atomic */
	uint64_t	 lc_tx_ctx[2];	/* the context descriptor in force */
	uint32_t	 lc_tx_batch;	/* first slot of the last batch, */
	uint16_t	 lc_tx_last[LEM_RING_MAX]; /* last of the others */
	struct lem_spin	 lc_tx_spin;	/* the adapter's, for packets */
	/* lem_rx.c; receive lock. */
	uint32_t	 lc_rx_next;	/* next descriptor to be received */
	uint32_t	 lc_rx_tail;	/* next descriptor to refill */
	uint32_t	 lc_rx_posted;	/* last value of RDT (or guest_rdt) */
	uint32_t	 lc_rx_len;	/* bytes of an incomplete frame */
	bool		 lc_rx_skip;	/* drop the rest of a frame */
	struct lem_vnet	 lc_rx_vnet;	/* of that frame */
	struct lem_offload lc_rx_offload; /* the host may read this while it
					   gets LEM_RX_OFFLOAD */
	struct lem_spin	 lc_rx_spin;	/* for frames */
	bool		 lc_rx_empty[LEM_RING_MAX]; /* slot has no buffer */
	/* lem_core.c; atomic. */
	uint32_t	 lc_tx_asked, lc_rx_asked; /* numbers of the last
					   requests: lem_ask() */
	uint32_t	 lc_intr_on;	/* causes are unmasked */
	uint32_t	 lc_unread;	/* a message came, ICR was not read */
};
_Static_assert(offsetof(struct lem_core, lc_os) == 0, "LEM_OS");

/*
 * Find the station address, for a probe: this uses registers only, needs
 * nothing but lc_os, and changes nothing.  The address is that of the first
 * receive filter, valid or not, or if that is zero or multicast, that of the
 * EEPROM; then lc_eeprom_bad is set if the EEPROM's checksum is wrong.  Returns
 * 0; ENXIO if the registers read as all ones; EIO if there is no address.
 */
int	lem_address(struct lem_core *lc, uint8_t mac[6]);

/*
 * Find the station address, then reset the adapter.  No function other than
 * lem_address() may be called before.  Returns as lem_address(), and ENXIO if
 * the reset does not end.
 */
int	lem_attach(struct lem_core *lc, uint8_t mac[6]);

/*
 * Program the rings, default filters and offloads, post all RX buffers, and
 * start the adapter with interrupts masked.  `mac' is the station address,
 * `mtu' E82545_MTU_MIN to E82545_MTU_MAX bytes.  Both locks.  Returns 0; ENXIO;
 * EINVAL for the sizes of rings, buffers or mtu; ENOBUFS if the host has no
 * buffer at all.
 */
int	lem_start(struct lem_core *lc, const uint8_t mac[6], uint32_t mtu);

/*
 * Stop: mask interrupts, disable the CSB, reset.  Calls lem_os_tx_done() for
 * each slot in use.  The host keeps the RX buffers, and those of an incomplete
 * frame.  Both locks.
 */
void	lem_stop(struct lem_core *lc);

/*
 * Set the mode; it may change at any time.  LEM_MODE_POLL masks interrupts;
 * when that is cleared, the host must call lem_intr_enable(), and an interrupt
 * follows in any case.  Both locks.  Returns 0; EINVAL for unknown bits;
 * ENOTSUP for LEM_MODE_CSB without a CSB (the mode is unchanged then).
 */
int	lem_set_mode(struct lem_core *lc, uint32_t mode);

/*
 * Set the minimum time between interrupts, in units of 256 ns, 0 to
 * E82545_ITR_MAX.  Returns 0, or EINVAL if it is out of range.  Any thread.
 */
int	lem_set_itr(struct lem_core *lc, uint32_t itr_256ns);

/*
 * Set how long both sides spin.  With LEM_MODE_CSB, an adapter that has sent
 * all packets polls the CSB for more, in rounds, before it sleeps.  What a
 * round is depends on the adapter: see paravirt_csb(9).  The core lets it spin
 * for more rounds while that finds packets, for fewer while the adapter sleeps
 * when a packet comes.  lem_intr_enable() spins for frames before it asks for
 * an interrupt, as long as lem_os_idle(); there a round is a read of a
 * descriptor, and the number of rounds follows what was found in the same way.
 * `rounds' is the maximum of both numbers, 0 to LEM_ROUNDS_MAX; with 0 neither
 * spins.  lem_attach() sets LEM_ROUNDS_DEFAULT.  Both locks.  Returns 0, or
 * EINVAL if `rounds' is out of range.
 */
int	lem_set_rounds(struct lem_core *lc, uint32_t rounds);
#define	LEM_ROUNDS_MAX		65536
#define	LEM_ROUNDS_DEFAULT	1024

/*
 * Set the receive filter.  Broadcasts and unicast to the station address always
 * pass.  `rctl': E82545_RCTL_UPE and E82545_RCTL_MPE; `mta': 128 words of
 * multicast hash bits, NULL for none; `vlan': strip and insert tags.  Any
 * thread, one at a time.
 */
void	lem_set_filter(struct lem_core *lc, uint32_t rctl, bool vlan,
	    const uint32_t mta[128]);
/*
 * The MTA bit of a multicast address, 0 to 4095: word = bit / 32.  8254x SDM
 * section 13.5.1 with RCTL.MO 0: the upper twelve bits.
 */
#define	lem_mta_bit(mac)	((mac)[4] >> 4 | (mac)[5] << 4)
/*
 * Read the state of the link into lc_link, also of a stopped adapter, after
 * lem_attach().  Any thread.
 */
void	lem_link(struct lem_core *lc);

/*
 * Handle an interrupt, and enable the next one.  lem_intr() returns false if
 * the interrupt is not the adapter's.  Otherwise interrupts are masked, and
 * lc_link is updated if the causes are read; with messages they may not be, and
 * the host must call lem_link() now and then.  The host must call
 * lem_tx_clean(), then lem_rx() until that returns less than its budget, and
 * then lem_intr_enable(), which does nothing with LEM_MODE_POLL; and may wait
 * in between, as lem_share_turn() says.  lem_intr() needs no lock,
 * lem_intr_enable() the receive lock.
 *
 * With LEM_MODE_CSB, lem_intr_enable() returns true if the host must do all of
 * the above again, because frames have arrived meanwhile, or, with messages,
 * because there are causes: no line stays asserted with LEM_IRQ_MSI, so
 * lem_intr() assumes that the message was for frames, and the causes are read
 * last.  In all other cases it returns false.
 */
bool	lem_intr(struct lem_core *lc);
bool	lem_intr_enable(struct lem_core *lc);

/*
 * Request an interrupt of the running adapter, as frames and sent packets would
 * cause it.  Any thread.
 */
void	lem_intr_request(struct lem_core *lc);

/*
 * Suppress interrupts, for a host that calls lem_rx() for some time without
 * them, and then lem_intr_enable(): with LEM_MODE_CSB, frames cause no
 * interrupt until then, as after lem_intr().  This costs no exit.  In other
 * modes it does nothing, and lem_intr() masks the interrupts.  Receive lock.
 */
void	lem_intr_hold(struct lem_core *lc);

/*
 * Queue a packet, from slot lc_tx_tail on.  lem_tx_flush() posts any number of
 * queued packets to the adapter.  Returns 0; all slots of a packet go to
 * lem_os_tx_done() together.  Returns ENOBUFS if there are not enough free
 * descriptors; an interrupt follows when there are (if polling, call
 * lem_tx_clean()).  Returns EINVAL for invalid lengths or segments, and ENXIO
 * if the adapter is dead.  Transmit lock.
 */
int	lem_tx(struct lem_core *lc, const struct lem_packet *lp);
void	lem_tx_flush(struct lem_core *lc);

/*
 * Reclaim descriptors that the adapter has completed, and post packets that
 * send combining deferred.  With LEM_MODE_POLL this is the poll that they wait
 * for.  Returns the number of descriptors.  Transmit lock.
 */
unsigned int lem_tx_clean(struct lem_core *lc);

/*
 * Request the interrupt that follows ENOBUFS, for a host that waits for `need'
 * free descriptors before it has a packet.  There may be enough already; the
 * host must check lem_tx_avail() afterwards.  Else the wait ends, and
 * lc_tx_short is 0, when lem_tx_clean() finds `need' free, and a quarter of the
 * ring.  Transmit lock.
 */
void	lem_tx_wait(struct lem_core *lc, uint32_t need);

/*
 * Request an interrupt for packets that were sent, for a host that waits for
 * them, as for a socket's buffer.  Without LEM_MODE_CSB and LEM_MODE_LAZY, each
 * batch has one, and this does nothing.  With them, the interrupt comes when
 * three quarters of the posted descriptors are completed, once: lem_tx_clean()
 * ends the request, and a host that still waits must call this again.  Packets
 * that were not flushed do not count.  lem_os_tx_done() may be called meanwhile.
 * Transmit lock.
 */
void	lem_tx_report(struct lem_core *lc);

/*
 * Return the number of free TX descriptors, and whether all are free.  Transmit
 * lock.
 */
uint32_t lem_tx_avail(const struct lem_core *lc);
#define	lem_tx_idle(lc)	((lc)->lc_tx_head == (lc)->lc_tx_tail)

/*
 * Receive up to `budget' frames and refill the ring.  Returns their number.  If
 * it is less than `budget', the ring is empty, and, except with LEM_MODE_POLL,
 * the adapter interrupts for the next frame after lem_intr_enable().  Receive
 * lock.
 */
unsigned int lem_rx(struct lem_core *lc, unsigned int budget);

/*
 * Polling.  With LEM_MODE_POLL the adapter's interrupts are masked, and the
 * host must do at each poll what it does after an interrupt: turns, until
 * lem_rx() returns less than its budget.  lem_tx_clean()
 * comes last, for the answers to the frames.  Nothing reports a change of the
 * link: the host must call lem_link() now and then.
 */

#endif /* !_DEV_E1000_LEM_CORE_H_ */
