/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports on a VALE switch, through netmap's API: rings, slots and buffers are
 * laid out as <net/netmap.h> says and used with <net/netmap_user.h>; opening,
 * closing, the two syncs and the settings are calls.
 *
 * A port is named "vale0:vm1".  The part before the colon names the switch,
 * which exists as long as it has ports.
 *
 * The library exists three times, and the same program works with each:
 *
 *	vale_switch.c, ...	The switches are in this process.
 *	vale_valed.c		They are in a process valed(8), and the port is
 *				opened through its control socket, VALE_SOCKET
 *				in the environment.  No sinks; frames with
 *				NS_INDIRECT are copied first.
 *	vale_netmap.c		FreeBSD: the switches are the kernel's, through
 *				/dev/netmap.  VALE_RING_POLLED does nothing;
 *				there are no sinks, no monitors, one ring pair a
 *				port, and no section "Switches of this process":
 *				valectl(8) lists the ports, and vale_learn(4)
 *				has addresses and limits.
 *
 * Threads: one thread at a time may use the transmit side of a ring pair
 * (vale_txsync(), txring), and one the receive side (vale_rxsync(), rxring);
 * the two may be different threads.  Every other function may be called by any
 * thread.  A port must not be closed while another call with it is in progress.
 *
 * Errors: a function that can fail returns an int, 0 or -1, or a pointer, NULL
 * if it fails; errno says why.  Functions that only the library calls do so,
 * too.  A bool answers a question, and sets no errno.  What says more than
 * errno, for people, is a text: vale_name_error() here, `why' of vale_client.h
 * in the caller's buffer.  The library itself prints nothing.  sys/dev/netmap,
 * which kernels have, too, returns errnos as they do.
 */

#ifndef _LIBVALE_H_
#define	_LIBVALE_H_

#include <sys/types.h>
#include <sys/counter_table.h>
#include <net/if.h>
#include <net/netmap.h>
#include <net/netmap_user.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a port's name with its NUL: netmap's NETMAP_REQ_IFNAMSIZ. */
#define	VALE_NAME_SIZE		64

/* Slots of a ring. */
#define	VALE_SLOTS_MIN		2
#define	VALE_SLOTS_MAX		16384
#define	VALE_SLOTS_DEFAULT	1024

/* Ring pairs of a port. */
#define	VALE_RINGS_MAX		16

/* Bytes of a frame, without FCS: an Ethernet header; 64 KB. */
#define	VALE_FRAME_MIN		14
#define	VALE_FRAME_MAX		65536

struct frame;				/* frame.h */
struct frame_source;

/* What the ring pairs of an open port have in common, and does not change. */
struct vale_common {
	struct netmap_if	*nifp;	/* all rings */
	bool			 single_slot;	/* frames should not use
					   NS_MOREFRAG: adapters and the host's
					   stack on the switch would take each
					   slot as a frame */
	uint32_t		 indirect_max;	/* bytes of a slot with
					   NS_INDIRECT: nr_buf_size or more */
	char			 name[VALE_NAME_SIZE];
};

/*
 * A ring pair of an open port.  The user may write to the rings and to
 * txframe[], and to nothing else.
 */
struct vale_desc {
	int			 fd;	/* for poll(2): see vale_rxsync() */
	struct netmap_ring	*txring;
	struct netmap_ring	*rxring;
	const struct vale_common *common;
	struct frame		*txframe;	/* with VALE_HEADER_FRAME, by
						   the number of a slot */
	struct frame		*rxframe;
};

/* What a mirror gets copies of; both may be set. */
#define	VALE_MIRROR_TX		1	/* what the port sends */
#define	VALE_MIRROR_RX		2	/* what the switch has for it */
#define	VALE_MIRROR_BOTH	3

/*
 * An instruction of a filter: one of classic BPF, in the form of its struct
 * bpf_insn and struct sock_filter.  bpf(4) lists them, with their code; a
 * filter may also have MOD (0x90) and XOR (0xa0) of the class ALU.
 */
struct vale_insn {
	uint16_t	code;
	uint8_t		jt;		/* instructions to skip if true, */
	uint8_t		jf;		/* and if false */
	uint32_t	k;
};

/*
 * A filter is at most so long: it runs for each frame, in the thread of the
 * frame's sender.
 */
#define	VALE_FILTER_MAX		512

/* How to open a port; all zero means the defaults. */
struct vale_params {
	uint32_t	tx_slots;	/* of a ring: VALE_SLOTS_MIN to _MAX, */
	uint32_t	rx_slots;	/* or 0 for VALE_SLOTS_DEFAULT; of all
					   rings of a direction, up to
					   VALE_SLOTS_MAX */
	uint32_t	monitor;	/* VALE_MIRROR_*; 0: a port */
	uint32_t	rings;		/* ring pairs, 1 to VALE_RINGS_MAX; 0
					   means 1 */
	const struct vale_insn *filter;	/* of a monitor: frames that it gets */
	uint32_t	filter_len;	/* instructions; 0: no filter */
};

/*
 * Return what is wrong with the name of a port, or NULL if the name is valid.
 * A name is "valeSWITCH:PORT"; SWITCH may be empty.  In user space both consist
 * of letters, digits, '_', '-' and '.', and all of it fits in VALE_NAME_SIZE.
 * FreeBSD's kernel takes only letters, digits and '_' in SWITCH, and at most 15
 * characters on each side of the ':'.
 */
const char *vale_name_error(const char *name);

/*
 * Open port `name'.  Creates the port, and the switch if that does not exist;
 * vale_close() destroys the port, and the switch with its last port.  `params'
 * may be NULL.
 *
 * Or open a monitor of port `name', which gets a copy of each frame that the
 * port sends, or is to get, and nothing else: a mirror (setting "mirror")
 * without a name, address or index of its own.  A port may have several.  When
 * the port is closed, its monitors stay.  vale_txsync() of a monitor drops what
 * is in the ring, and fails with EIO if there was something.
 *
 * A monitor with a filter gets the frames for which the filter returns another
 * number than 0; others are not copied.  The filter sees the Ethernet frame,
 * without virtio-net header and FCS, and whole: a packet that is copied in
 * segments is one frame, with the headers of all of them.  A filter ends with 0
 * where it reads behind the frame's end or divides by zero.  The library copies
 * the filter.
 *
 * Returns NULL with errno set:
 *	EINVAL	the name is not valid, or a number of `params' out of range; the
 *		filter is not that of a monitor, or jumps back or out of the
 *		filter, does not end with RET, has an instruction that does not
 *		exist, or one that divides by a k of 0, shifts by more than 31
 *		or uses more than 16 words of memory
 *	E2BIG	the filter has more than VALE_FILTER_MAX instructions
 *	EBUSY	the port is open already
 *	ENOSPC	the switch has 254 ports
 *	ENXIO	there is no port to monitor
 *	EOPNOTSUPP  vale_netmap.c: a monitor, or several ring pairs
 *	ENOMEM	out of memory
 * or an error of open(2) of /dev/netmap, of its ioctl(2)s, or of eventfd(2) and
 * getentropy(3).
 */
struct vale_desc *vale_open(const char *name, const struct vale_params *params);

/*
 * Close the port, with all its ring pairs: `d' is what vale_open() has
 * returned.  Pending frames are dropped.
 */
void	vale_close(struct vale_desc *d);

/*
 * Return ring pair `ring' of the port, 0 to the number that the port was opened
 * with less one; 0 is what vale_open() has returned.  The two syncs and waiting
 * are of the ring pair, so several threads may use a port at once; all other
 * functions are of the port.  All rings are in one memory, and any slot may
 * have any of its buffers.  Returns NULL with EINVAL if there is no such ring
 * pair.
 *
 * Frames from ring i go to ring i of other ports, modulo their number of rings.
 * From one ring to another, frames arrive in the order in which they were sent.
 */
struct vale_desc *vale_ring(struct vale_desc *d, unsigned int ring);

/*
 * A virtio-net header (VIRTIO 1.2, section 5.1.6) says that a frame's checksum
 * is partial, or how long its segments must be.  Between two ports with
 * headers, frames pass as they are.  Towards a port without, the switch cuts
 * them and completes the checksums in the pass that copies them: a frame then
 * makes several in the ring, or none if there is no space for all.
 *
 * Set what frames of this port begin with:
 *	0		nothing: the default
 *	10, 12		each with a header of so many bytes, in its first slot
 *	VALE_HEADER_FRAME  nothing, but if the first slot of a frame has the
 *			flag VALE_SLOT_FRAME, what a header would say of it is
 *			in txframe[] or rxframe[], at the number of that slot,
 *			without its fragments and their length
 * No sync of the port may be in progress.  On return frames are put into the
 * ring in the new form; those that are there keep theirs.
 *	EINVAL		invalid value, or VALE_HEADER_FRAME and the port's user
 *			is another process
 *	EOPNOTSUPP	vale_netmap.c: VALE_HEADER_FRAME
 */
#define	VALE_HEADER_FRAME	1
#define	VALE_SLOT_FRAME		0x0080	/* a flag of a slot: netmap has none
					   here */
int	vale_set_header(struct vale_desc *d, unsigned int len);

/*
 * Limit the descriptor to syncs and waiting.  After that vale_set_header()
 * fails, and the descriptor cannot attach interfaces of the host to a switch.
 * Any thread.  Returns 0, or -1 with errno as of cap_ioctls_limit(2).  The
 * user-space switch does nothing.
 */
int	vale_limit(struct vale_desc *d);

/*
 * Transmit the slots before ring->head.  On return all of them are consumed: a
 * frame is delivered or dropped, and never stays in the ring.
 *
 * A slot may have these flags:
 *	NS_INDIRECT	the data is at address `ptr', `len' bytes, at most
 *			d->common->indirect_max
 *	NS_MOREFRAG	the frame continues in the next slot; at most
 *			NETMAP_MAX_FRAGS slots a frame.  If the last slot is not
 *			before ring->head, the frame is dropped.
 *
 *	EINVAL	ring->head is outside the ring.  It and ring->cur are set back
 *		to the first slot that was not consumed, and no frame is sent.
 *	EIO	the descriptor is a monitor's; vale_valed.c: another program has
 *		the memory, and what it has written is not valid
 *	ENXIO	vale_netmap.c: the port has gone; vale_valed.c: valed has ended
 */
int	vale_txsync(struct vale_desc *d);

/*
 * Return the slots before ring->head to the switch, and show new frames up to
 * ring->tail.
 *
 * If no frame is pending beyond ring->cur, d->fd becomes readable with the next
 * one, and stays readable until a vale_rxsync() finds none again.  So a thread
 * may ignore d->fd while frames are pending, and wait for it later.
 *
 * vale_netmap.c: to wait for d->fd does the same.  So the work is left to
 * poll(2), or to the next call, if ring->head has moved since the last call and
 * no frame is pending, or if ring->head has not moved and a frame is; but not
 * for more than a quarter of the ring.
 *
 *	EINVAL	ring->head and ring->cur are not in this order between the last
 *		head and the last tail.  Both are set back to the last head.
 *	EIO	vale_valed.c: as of vale_txsync()
 *	ENXIO	vale_netmap.c: the port has gone; vale_valed.c: valed has ended,
 *		and no frame is left
 */
int	vale_rxsync(struct vale_desc *d);

/*
 * A flag in rxring->flags.  The port's user may set the flag while polling with
 * vale_rxsync(), without waiting for d->fd.  Then senders need not wake the
 * user, and do not call the sink: sender and receiver run on two processors,
 * and the throughput is best if one fills the ring and the other empties it.
 * d->fd may be readable without frames until a vale_rxsync() without the flag
 * finds none.
 *
 * A change takes effect with the next vale_rxsync().
 */
#define	VALE_RING_POLLED	0x80000000

/*
 * Set the port's sink; NULL for none.  A sink takes frames in their sender's
 * memory, before the switch copies them into the receive ring.  On return no
 * call of the former sink is in progress.  A change loses no frame: while the
 * sink changes, frames go to the ring.  Must not be called by a sink.
 *
 * The sending thread calls sink(arg, frames) with a source (frame.h) of the
 * frames, in the order in which they were sent; those that the sink does not
 * take go to the ring.  `frames' is valid during the call.  Several senders may
 * call the sink at once.  Each sender waits for its call, and so may a change
 * of the switch.  The sink is not called about frames that other ports get,
 * too, nor about copies for a mirror.  The sink must not call any function of
 * this library.
 *
 * Frames with a virtio-net header reach the sink of a port with
 * VALE_HEADER_FRAME only.
 *
 * The switch calls the sink only while the ring is empty, all its slots are
 * returned, and VALE_RING_POLLED is not set.  So frames of one sender stay in
 * order if the receiver has processed the frames of the ring before calling the
 * vale_rxsync() that returns their slots.
 *
 *	EOPNOTSUPP	`sink' is not NULL: vale_netmap.c and vale_valed.c, or
 *			the port has several ring pairs
 */
int	vale_set_sink(struct vale_desc *d,
	    void (*sink)(void *arg, struct frame_source *frames), void *arg);

/*
 * Return the number of frames that the switch has dropped because a receive
 * ring of the port was full (rx_drop_full), or 0 in vale_netmap.c: the kernel
 * does not count them.  Takes no lock.
 */
uint64_t vale_missed(const struct vale_desc *d);

/*
 * Switches of this process, or of valed.  Not in vale_netmap.c.
 */

/*
 * Counters of a port, of all its rings, since its creation.  "tx" counts what
 * the port sends to the switch; "rx" counts what the switch puts into the
 * port's rings, or its sink takes.  A frame is dropped in one place and counted
 * there, so that
 *
 *	tx_frames = unicast + tx_flooded + all of tx_drop_*
 *	tx_copies = unicast + tx_flooded * (ports - 1)
 *
 * if no port is private, and the sum of tx_copies and tx_mirrored over all
 * ports is the sum of rx_frames and rx_drop_full over all ports and monitors,
 * if none came or went and no sync is in progress.  For each port
 *
 *	rx_frames = rx_copies + rx_direct
 *
 * Words, here and in the files of the library: a frame that the switch takes
 * and does not deliver is dropped, whatever the reason (tx_drop_*,
 * rx_drop_full).  If it is because a receive ring was full, the port of that
 * ring has missed it (vale_missed()).  What a user has put into the memory of
 * its port, outside of frames, is bad if the switch could not use it and has
 * put it right (tx_bad_ring, rx_bad_ring, rx_bad_buf): that drops no frame.  A
 * request that fails is refused, and has changed nothing.  Nothing is lost:
 * what is dropped is counted.
 */
#define	VALE_COUNTERS(X)						\
	X(VALE_C_TX_SYNC, "tx_syncs", "transmit syncs")			\
	X(VALE_C_TX_BATCH, "tx_batches", "batches taken from the port")	\
	X(VALE_C_TX_FRAME, "tx_frames", "frames taken from the port")	\
	X(VALE_C_TX_BYTE, "tx_bytes", "bytes of well-formed frames")	\
	X(VALE_C_TX_FLOOD, "tx_flooded", "frames flooded")		\
	X(VALE_C_TX_COPY, "tx_copies", "frames times destinations")	\
	X(VALE_C_TX_MIRROR, "tx_mirrored", "frames times mirrors")	\
	X(VALE_C_LEARNED, "learned", "addresses learned on the port")	\
	X(VALE_C_MOVED, "moved", "addresses that moved to the port")	\
	X(VALE_C_TX_BAD_RING, "tx_bad_ring",				\
	    "transmit syncs with an invalid head")			\
	X(VALE_C_TX_DROP_RUNT, "tx_drop_runt",				\
	    "frames dropped: incomplete header", DROP)			\
	X(VALE_C_TX_DROP_OVERSIZE, "tx_drop_oversize",			\
	    "frames dropped: longer than 64 KB", DROP)			\
	X(VALE_C_TX_DROP_BUF, "tx_drop_buf",				\
	    "frames dropped: invalid buffer", DROP)			\
	X(VALE_C_TX_DROP_LEN, "tx_drop_len",				\
	    "frames dropped: slot longer than a buffer", DROP)		\
	X(VALE_C_TX_DROP_FRAGS, "tx_drop_frags",			\
	    "frames dropped: too many fragments", DROP)			\
	X(VALE_C_TX_DROP_CUT, "tx_drop_cut",				\
	    "frames dropped: last fragment missing", DROP)		\
	X(VALE_C_TX_DROP_HEADER, "tx_drop_header",			\
	    "frames dropped: invalid virtio-net header, or headers", DROP) \
	X(VALE_C_TX_DROP_RATE, "tx_drop_rate",				\
	    "frames dropped: over the port's rate", DROP)		\
	X(VALE_C_TX_DROP_NODEST, "tx_drop_nodest",			\
	    "frames dropped: no other port", DROP)			\
	X(VALE_C_TX_DROP_SELF, "tx_drop_self",				\
	    "frames filtered: destination is the source port", FILTER)	\
	X(VALE_C_TX_DROP_PRIVATE, "tx_drop_private",			\
	    "frames dropped: source and destination port are private", DROP) \
	X(VALE_C_TX_DROP_LIMIT, "tx_drop_limit",			\
	    "frames dropped: source over the address limit", DROP)	\
	X(VALE_C_TX_DROP_VLAN, "tx_drop_vlan",				\
	    "frames dropped: not in a VLAN of the port", DROP)		\
	X(VALE_C_TX_DROP_SOURCE, "tx_drop_source",			\
	    "frames dropped: Ethernet source not allowed", DROP)	\
	X(VALE_C_TX_DROP_IP, "tx_drop_ip",				\
	    "frames dropped: IP address not allowed", DROP)		\
	X(VALE_C_TX_DROP_RESERVED, "tx_drop_reserved",			\
	    "frames filtered: for the link only", FILTER)		\
	X(VALE_C_TX_DROP_LINK, "tx_drop_link",				\
	    "frames dropped: the port's link is down", DROP)		\
	X(VALE_C_TX_SLOW, "tx_slow",					\
	    "times the port's frames began to be copied before delivery") \
	X(VALE_C_RX_SYNC, "rx_syncs", "receive syncs")			\
	X(VALE_C_RX_BATCH, "rx_batches", "batches put into the ring")	\
	X(VALE_C_RX_FRAME, "rx_frames", "frames delivered to the port")	\
	X(VALE_C_RX_BYTE, "rx_bytes", "bytes delivered to the port")	\
	X(VALE_C_RX_COPY, "rx_copies", "frames copied into the ring")	\
	X(VALE_C_RX_DIRECT, "rx_direct",				\
	    "frames that the sink took from the sender")		\
	X(VALE_C_RX_SLOW, "rx_slow",					\
	    "times direct delivery to the port was suspended")		\
	X(VALE_C_RX_WAKE, "rx_wakeups",					\
	    "times a sleeping receiver was woken")			\
	X(VALE_C_RX_BAD_RING, "rx_bad_ring",				\
	    "receive syncs with an invalid head or cur")		\
	X(VALE_C_RX_BAD_BUF, "rx_bad_buf",				\
	    "receive slots with an invalid buffer")			\
	X(VALE_C_RX_DROP_FULL, "rx_drop_full",				\
	    "frames dropped: receive ring full, or the sender's share of it", \
	    DROP)

enum vale_counter {
	COUNTER_IDS(VALE_COUNTERS)
	VALE_NCOUNTERS
};
extern const struct counter_row vale_counter_table[VALE_NCOUNTERS];

/* A port as vale_list() shows it. */
struct vale_port_info {
	char		vpi_name[VALE_NAME_SIZE];	/* "vale0:vm1" */
	uint8_t		vpi_index;	/* 0 to 253, as fe_port */
	uint8_t		vpi_rings;	/* ring pairs */
	bool		vpi_link;	/* its link is up */
	uint32_t	vpi_tx_slots;	/* of a ring */
	uint32_t	vpi_rx_slots;
	uint64_t	vpi_counter[VALE_NCOUNTERS];
};

/*
 * Call show(port, arg) for each port of switch `switch_name' ("vale0"), or of
 * all switches if it is NULL.  Stops when `show' returns non-zero, and returns
 * that value; else 0.  `show' must not call any function of this library.
 */
int	vale_list(const char *switch_name,
	    int (*show)(const struct vale_port_info *port, void *arg),
	    void *arg);

/*
 * Return the counters of port `name' ("vale0:vm1").
 *	ENXIO	the port does not exist
 */
int	vale_port_counters(const char *name, uint64_t counters[VALE_NCOUNTERS]);

/*
 * Call show(entry, arg) for each address that switch `switch_name' has learned,
 * in no particular order; fe_port is the vpi_index of its port.  Returns as
 * vale_list() does; so `show' should not return -1.
 *	ENXIO	the switch does not exist
 */
struct vale_fdb_entry;			/* <dev/netmap/vale_fdb_entry.h> */
int	vale_fdb_list(const char *switch_name,
	    int (*show)(const struct vale_fdb_entry *entry, void *arg),
	    void *arg);

/*
 * Set or get any setting of a switch or port as text, as valectl(8) does with
 * -o: its name and its value there, like "trunk" and "10,20-30".  A value has
 * at most VALE_SETTING_SIZE bytes, with the NUL; `size' is that of `text'.
 *	EINVAL	there is no such setting of a switch, or of a port, or its
 *		value is invalid
 *	ENXIO	the switch or port does not exist
 */
#define	VALE_SETTING_SIZE	512
#define	VALE_BATCH_MAX		1024	/* the greatest batch= */
#define	VALE_WEIGHT_MAX		100	/* the greatest weight= */
int	vale_set(const char *name, const char *setting, const char *text);
int	vale_get(const char *name, const char *setting, char *text,
	    size_t size);

/*
 * Tell the switch the port's own Ethernet address, for the setting source=own.
 * All zeros, the default: the port has none.  Only in vale_switch.c.  Takes
 * effect when source=own is set; now, if vale_setting_preset_all() has it.
 * Returns 0, or -1 with ENOMEM: the port may then send from any address.
 */
int	vale_set_address(struct vale_desc *d, const uint8_t addr[6]);

/*
 * Have changed(arg, up) called when the port's link goes down or comes up again
 * (setting "link"), until vale_close(); and now, if it is down.  The call is on
 * any thread, with locks of the library: changed() must neither block nor call
 * the library.  Only in vale_switch.c.
 */
void	vale_on_link(struct vale_desc *d, void (*changed)(void *arg, bool up),
	    void *arg);

/*
 * Make port `name' an uplink, until the port is closed, with a carrier or
 * without: ports of its switch with link=uplink follow.  May wait for senders.
 * Only in vale_switch.c.
 *	ENXIO	the port does not exist
 */
int	vale_set_carrier(const char *name, bool up);

/*
 * Return what was wrong, if the last call by this thread of a function that
 * sets or gets settings has failed: a sentence like "the weight must be 1 to
 * 100", in valed's words if the switch is there; or "", if errno says all.
 * Valid until the thread's next call.
 */
const char *vale_error(void);

#endif /* !_LIBVALE_H_ */
