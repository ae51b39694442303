/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Two Intel Gigabit Ethernet controllers in software: the 82545EM (e1000), and
 * the 82574L (e1000e), which has other registers, interrupts and receive
 * descriptors on the same rings (ec_kind).
 *
 * This is the whole interface between the model and its host: bhyve
 * (pci_e82545.c), valed, or a test.  The model reaches guest memory, interrupts
 * and time only through the operations below, and the network only through a
 * frame port (frame_port.h).  The model has no thread of its own.  The host
 * brings three kinds of thread:
 *
 *	register	vCPUs, or the threads that carry their accesses:
 *			e82545_read(), e82545_write().  Any number at a time.
 *	transmit	one at a time in e82545_tx(); the port's sending thread.
 *	receive		one at a time in e82545_rx(); the port's receiving
 *			thread.
 *
 * One thread may play all three parts.  A thread that has frames for the guest
 * at hand, such as one that transmits for another adapter, may deliver them
 * itself: e82545_rx_direct().  e82545_timer(), e82545_link(), e82545_mode(),
 * e82545_pause(), e82545_reset(), e82545_counters() and the snapshots may be
 * called from any thread, but never from inside an operation.
 *
 * Manual: Intel, "PCI/PCI-X Family of Gigabit Ethernet Controllers Software
 * Developer's Manual", 317453-006EN (rev. 4.0), "8254x SDM" in this directory.
 */

#ifndef _E82545_H_
#define	_E82545_H_

#include <sys/types.h>
#include <sys/counter_table.h>
#include <dev/e1000/e82574_reg.h>	/* E82545_FRAME_MAX and other limits */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame_port;
struct frame_source;

/* The two base address registers: 8254x SDM section 4.1.  Sizes in bytes. */
#define	E82545_BAR_MEM		0
#define	E82545_BAR_MEM_SIZE	0x20000
#define	E82545_BAR_IO		2
#define	E82545_BAR_IO_SIZE	8

/* The most frames the model sends between two flushes of the port. */
#define	E82545_TX_FRAMES	256
/* Polls of the guest's CSB in a row: see e82545_tx(). */
#define	E82545_TX_POLLS		16
/*
 * The most frames the model makes of one packet with TSO; a packet with so
 * small an MSS that it would be more is dropped.  64 KB, the longest message
 * that 8254x SDM section 3.5.4 expects, are as many segments of 16 bytes.
 */
#define	E82545_TSO_FRAMES	4096

struct e82545;			/* one adapter; opaque */

/* What the model does with guest memory. */
#define	E82545_MAP_READ		0x1	/* frames to send */
#define	E82545_MAP_WRITE	0x2	/* frames received */
#define	E82545_MAP_RW		(E82545_MAP_READ | E82545_MAP_WRITE)

/*
 * What the host does for the model.  Every member must be set, unless it says
 * otherwise.  `arg' is the value given to e82545_create().
 */
struct e82545_ops {
	/*
	 * Return the host address of guest-physical bytes [gpa, gpa + len), or
	 * NULL if any of them is not guest RAM, may not be used as `access'
	 * says, or the range is not contiguous in the host.  Of a buffer that
	 * is not, the model then asks for each page.  len > 0.  The address is
	 * used until the model returns to the caller of e82545_tx(),
	 * e82545_rx(), e82545_rx_direct() or e82545_timer(), or a device reset
	 * by the guest is done, never later.  Never called with bus mastering
	 * off: e82545_bus_master().  Transmit and receive threads, threads in
	 * e82545_rx_direct() and e82545_timer(), and register threads in a
	 * reset.  Must not take a lock that is held around a call into the
	 * model.
	 */
	void	*(*eo_map)(void *arg, uint64_t gpa, size_t len,
		    unsigned int access);

	/*
	 * Set the interrupt line: asserted or not.  A host with MSI sends one
	 * message for each call with true.  Called only on changes, from any
	 * thread that is inside the model, under the model's register lock:
	 * must not block or call back.
	 */
	void	(*eo_intr)(void *arg, bool asserted);

	/*
	 * Send the message of an MSI-X vector, less than E82574_VECTORS.  As
	 * eo_intr; called only after e82545_msix(), and may be NULL for an
	 * 82545EM.
	 */
	void	(*eo_message)(void *arg, unsigned int vector);

	/*
	 * Take back the interrupts that were sent and have not reached the
	 * guest, which has turned off the line (0), or these vectors of MSI-X,
	 * as bits.  The guest turns none on meanwhile.  Register threads,
	 * without locks of the model, before the access ends; may be NULL if
	 * nothing is ever under way.
	 */
	void	(*eo_withdraw)(void *arg, uint32_t vectors);

	/* Return the time of a monotonic clock, nanoseconds.  Any thread. */
	uint64_t (*eo_now)(void *arg);

	/*
	 * Arm the one-shot timer: the host must call e82545_timer() at or after
	 * when_ns on eo_now()'s clock.  Replaces an earlier call; 0 disarms.
	 * Under the register lock: must not block or call back.
	 */
	void	(*eo_timer)(void *arg, uint64_t when_ns);

	/*
	 * Have e82545_tx() called soon: there is something to transmit.
	 * Register threads and the thread in e82545_timer(), without locks of
	 * the model; must not block.
	 */
	void	(*eo_tx_kick)(void *arg);

	/*
	 * Have e82545_rx() called soon: the guest can take frames again after
	 * e82545_rx() returned E82545_RX_STALLED, or frames were looped back.
	 * Register and transmit threads and the thread in e82545_timer(),
	 * without locks of the model; must not block.
	 */
	void	(*eo_rx_ready)(void *arg);
};

/* The adapters. */
enum e82545_kind {
	E82545_KIND_EM,		/* 82545EM, the default */
	E82545_KIND_82574L,	/* 82574L */
	E82545_NKINDS
};

/* Whether an adapter has the CSB, and how drivers find it: paravirt_csb(9). */
enum e82545_csb_kind {
	E82545_CSB_OFF,
	E82545_CSB_ON,		/* a PCI capability */
	E82545_CSB_COMPAT,	/* the same, and another PCI subsystem ID */
	E82545_NCSBS
};

/* What users call them. */
extern const char *const e82545_csb_names[E82545_NCSBS];

struct e82545_config {
	enum e82545_kind ec_kind;
	uint8_t		ec_mac[6];	/* permanent address, in the EEPROM */
	uint32_t	ec_itr_256ns;	/* minimum interval between interrupts
					   for guests that leave ITR at 0, in
					   units of 256 ns; 0 to 65535,
					   0: none */
	uint32_t	ec_itr_min_256ns; /* the same for all guests: a shorter
					   interval in ITR counts as this */
	enum e82545_csb_kind ec_csb;	/* with it the host must show the PCI
					   capability */
	const char	*ec_name;	/* for diagnostics; copied */
	/*
	 * Where the state of the adapter lies as long as it exists, or NULL:
	 * the model allocates memory.  The memory must outlive the adapter,
	 * begin at a multiple of E82545_MEMORY_ALIGN, and have at least
	 * e82545_memory_size() bytes, zeros when e82545_create() is called,
	 * which leaves most pages untouched.  If it outlives the process,
	 * e82545_salvage() finds the state there.
	 */
	void		*ec_memory;
	size_t		ec_memory_size;	/* bytes */
};

#define	E82545_MEMORY_ALIGN	64

/*
 * Return the PCI subsystem ID that the host must show, and that the EEPROM has.
 */
uint16_t e82545_subdevice(enum e82545_kind kind, enum e82545_csb_kind csb);

/* Counters since the creation; a reset by the guest does not clear them. */
#define	E82545_COUNTERS(X)						\
	X(E82545_C_REG_READ, "reg_reads", "register reads (exits)")	\
	X(E82545_C_REG_WRITE, "reg_writes", "register writes (exits)")	\
	X(E82545_C_TX_KICK, "tx_kicks", "writes to TDT")		\
	X(E82545_C_TX_KICK_SAVED, "tx_kicks_saved",			\
	    "TX tails read from the CSB")				\
	X(E82545_C_TX_FRAME, "tx_frames", "frames sent")		\
	X(E82545_C_TX_BYTE, "tx_bytes", "bytes sent")			\
	X(E82545_C_TX_BATCH, "tx_batches", "transmit batches")		\
	X(E82545_C_TX_TSO, "tx_tso", "packets with TSO")		\
	X(E82545_C_TX_UNCUT, "tx_uncut", "packets with TSO sent as one frame") \
	X(E82545_C_TX_SEGMENT, "tx_segments", "segments of these packets") \
	X(E82545_C_TX_PARTIAL, "tx_partial",				\
	    "frames sent with a partial checksum")			\
	X(E82545_C_TX_BAD_RING, "tx_bad_ring",				\
	    "batches that found an invalid TX ring")			\
	X(E82545_C_TX_BAD_DESC, "tx_bad_desc",				\
	    "TX packets dropped: invalid descriptor", DROP)		\
	X(E82545_C_TX_BAD_ADDR, "tx_bad_addr",				\
	    "TX packets dropped: buffer outside guest memory", DROP)	\
	X(E82545_C_TX_BAD_LEN, "tx_bad_len",				\
	    "TX packets dropped: invalid length", DROP)			\
	X(E82545_C_TX_BAD_CTX, "tx_bad_ctx",				\
	    "TX offload requests outside the packet")			\
	X(E82545_C_TX_NOROOM, "tx_noroom",				\
	    "TX frames dropped: no space in the network", DROP)		\
	X(E82545_C_TX_LINKDOWN, "tx_linkdown",				\
	    "TX frames dropped: no link", DROP)				\
	X(E82545_C_RX_KICK, "rx_kicks", "writes to RDT")		\
	X(E82545_C_RX_KICK_SAVED, "rx_kicks_saved",			\
	    "RX tails read from the CSB")				\
	X(E82545_C_RX_FRAME, "rx_frames", "frames received")		\
	X(E82545_C_RX_BYTE, "rx_bytes", "bytes received")		\
	X(E82545_C_RX_BATCH, "rx_batches", "receive batches")		\
	X(E82545_C_RX_CUT, "rx_cut", "frames received in segments")	\
	X(E82545_C_RX_SEGMENT, "rx_segments", "segments of these frames") \
	X(E82545_C_RX_UNCUT, "rx_uncut",				\
	    "frames received as they are, with a header")		\
	X(E82545_C_RX_BAD_OFFLOAD, "rx_bad_offload",			\
	    "RX frames dropped: not what their virtio-net header says", DROP) \
	X(E82545_C_RX_FILTERED, "rx_filtered",				\
	    "RX frames filtered: another destination", FILTER)		\
	X(E82545_C_RX_OVERSIZE, "rx_oversize",				\
	    "RX frames dropped: too long", DROP)			\
	X(E82545_C_RX_DISABLED, "rx_disabled",				\
	    "RX frames dropped: receiver off or no link", DROP)		\
	X(E82545_C_RX_STALL, "rx_stalls",				\
	    "times the guest ran out of receive buffers")		\
	X(E82545_C_RX_BAD_RING, "rx_bad_ring",				\
	    "batches that found an invalid RX ring")			\
	X(E82545_C_RX_BAD_ADDR, "rx_bad_addr",				\
	    "RX frames dropped: buffer outside guest memory", DROP)	\
	X(E82545_C_LOOPBACK, "loopback", "frames looped back")		\
	X(E82545_C_INTR_ASKED, "intr_asked",				\
	    "events that raised interrupt causes")			\
	X(E82545_C_INTR_SENT, "intr_sent", "interrupts sent")		\
	X(E82545_C_INTR_HELD, "intr_held",				\
	    "interrupts delayed by moderation")				\
	X(E82545_C_INTR_SAVED, "intr_saved",				\
	    "interrupts suppressed by the CSB")				\
	X(E82545_C_CSB_ON, "csb_on", "times the guest turned CSB mode on") \
	X(E82545_C_CSB_OFF, "csb_off", "times CSB mode went off")	\
	X(E82545_C_CSB_BAD, "csb_bad", "invalid CSB addresses and indices") \
	X(E82545_C_RESET, "resets", "device resets")

enum e82545_counter {
	COUNTER_IDS(E82545_COUNTERS)
	E82545_NCOUNTERS
};
extern const struct counter_row e82545_counter_table[E82545_NCOUNTERS];

/* What e82545_tx() returns: when the host must call it again. */
enum e82545_tx_state {
	E82545_TX_IDLE,		/* after eo_tx_kick() */
	E82545_TX_MORE,		/* now: more frames may be pending */
	E82545_TX_POLL,		/* now: the model polls the guest's CSB, and
				   nothing was pending */
	E82545_TX_YIELD,	/* as E82545_TX_POLL, but yield the processor
				   first: the guest may need it */
};

/* What e82545_rx() returns: when the host must call it again. */
enum e82545_rx_state {
	E82545_RX_IDLE,		/* when the port has frames */
	E82545_RX_MORE,		/* now: more frames may be pending, or the
				   port must get space back */
	E82545_RX_STALLED,	/* after eo_rx_ready(): the guest has no
				   buffers, the model is paused, or bus
				   mastering is off */
};

/* Return the bytes of ec_memory that the model needs.  Any thread. */
size_t	e82545_memory_size(void);

/*
 * Create an adapter on `port', in its power-on state, with the link up and bus
 * mastering off.  If the port takes offloads (frame_port_set_offloads()),
 * packets with TSO go out uncut, and such frames may come in.
 * `ops', `arg' and `port' must outlive it.  Returns NULL with errno set:
 * ENOMEM, or EINVAL for a config value out of range, a multicast address, or
 * ec_memory that is too short or not aligned.
 */
struct e82545 *e82545_create(const struct e82545_config *config,
	    const struct e82545_ops *ops, void *arg, struct frame_port *port);

/* Free it.  No other call may be in progress or follow. */
void	e82545_destroy(struct e82545 *dev);

/*
 * Access registers for the guest: `off' bytes into BAR `bar', `size' 1, 2, 4 or
 * 8 bytes.  Registers are 32 bits wide and little endian.  An access that is
 * not one register is one to each that it touches, in ascending order, with
 * PCI's byte enables: a read of any byte has all side effects of reading the
 * register, once; a write changes the bytes that it has, but in the I/O BAR it
 * must have all of a register.  Other sizes, and bytes outside the BAR, are
 * answered with ones and ignored when written.  Register threads.
 */
uint64_t e82545_read(struct e82545 *dev, int bar, uint64_t off, int size);
void	e82545_write(struct e82545 *dev, int bar, uint64_t off, int size,
	    uint64_t value);

/*
 * Send up to E82545_TX_FRAMES frames from the guest's ring, or from one of
 * them: each has its turn.  Transmit thread.
 *
 * With the CSB on, the model polls the CSB after the last frame, once in each
 * call, until the guest's limit (host_txcycles_lim) or 200 us are reached.  The
 * caller should make E82545_TX_POLLS such calls in a row; time between two such
 * rows is not part of the 200 us.  The last call of a row returns
 * E82545_TX_YIELD, because the guest may need this processor to post its next
 * frame.  If the guest polls for received frames, it returns E82545_TX_POLL:
 * such a guest keeps its own processor busy, and would not return this one
 * before its time is up.
 */
enum e82545_tx_state e82545_tx(struct e82545 *dev);

/*
 * Move a batch of received frames from the port into the guest's ring, or
 * rings.  Receive thread.
 */
enum e82545_rx_state e82545_rx(struct e82545 *dev);

/*
 * Move frames from `frames' into the guest's ring, from first to last, as
 * e82545_rx() does with those of the port.  Leaves frames that the guest has no
 * buffers for, and takes none while the receive side is stalled or paused, or
 * with bus mastering off.  Does not take frames that are pending in the
 * port: the caller must see to their order.
 *
 * Any thread, any number of them, also from inside another adapter's
 * frame_port_flush().  Does not wait for a batch in progress, nor for a thread
 * that waits for its end: leaves all frames then.  Calls eo_map() and the
 * operations that any thread may call.
 */
void	e82545_rx_direct(struct e82545 *dev, struct frame_source *frames);

/*
 * Note that the guest has turned bus mastering on or off (the bit of the PCI
 * command register; PCI Local Bus 3.0, section 6.2.2).  With it off the model
 * does not access guest memory: e82545_tx(), e82545_rx() and e82545_rx_direct()
 * do nothing, and a reset by the guest leaves the CSB's page as it is.  A call
 * that turns it off waits for batches in progress; one that turns it on asks
 * the host for the calls of e82545_tx() and e82545_rx() that were missed.  A
 * reset does not change it.  Any thread, but not from inside an operation.
 */
void	e82545_bus_master(struct e82545 *dev, bool on);

/*
 * Note that the guest has turned MSI-X on or off, in configuration space, which
 * a reset by PCI RST# does, too: the caller must say so then.  While it is on
 * the adapter sends messages, eo_message(), and does not assert the line.  Not
 * of an 82545EM, which has no MSI-X.  Any thread, but not from inside an
 * operation.
 */
void	e82545_msix(struct e82545 *dev, bool on);

/*
 * Handle the end of the timer that eo_timer() has set.  Early calls do no harm.
 * May wait for a batch in progress.  Any thread, but not from inside an
 * operation.
 */
void	e82545_timer(struct e82545 *dev);

/* Plug the cable in or out: STATUS.LU, the PHY, and an LSC interrupt. */
void	e82545_link(struct e82545 *dev, bool up);

/*
 * Reset as by PCI RST#: registers, rings and interrupts.  Waits for a batch
 * in progress to end.
 */
void	e82545_reset(struct e82545 *dev);

/*
 * Have the adapter as another guest expects a new one: e82545_reset(), with the
 * EEPROM as e82545_create() filled it, and without the frames that wait in the
 * port, which count as dropped (rx_disabled).  Receive thread.
 */
void	e82545_power_cycle(struct e82545 *dev);

/*
 * Change ec_itr_256ns and ec_itr_min_256ns, which must be in their ranges, and
 * the longest frame of the port, fp_frame_max.  Batches that begin later have
 * them, and so have interrupts.  Waits for a batch in progress to end.  Any
 * thread, but not from inside an operation.
 */
void	e82545_change(struct e82545 *dev, uint32_t itr_256ns,
	    uint32_t itr_min_256ns, uint32_t frame_max);

/*
 * Have the adapter on another port, whose longest frame is set, under another
 * name (ec_name).  The port's counters go on where those of the old one are.
 * When this returns, the model does not use the old port any more.  Frames that
 * were received there and not taken are lost; nothing else changes for the
 * guest.  As e82545_change().
 */
void	e82545_move(struct e82545 *dev, struct frame_port *port,
	    const char *name);

/*
 * Note that the port has gone, and what is received from now on comes from one
 * that takes its place: of a frame that was waiting the guest gets no more.  As
 * e82545_change().
 */
void	e82545_port_gone(struct e82545 *dev);

/*
 * Keep the model away from guest memory, for changes in the guest's memory map
 * and for snapshots.  When e82545_pause() returns, no batch is in progress, and
 * e82545_tx(), e82545_rx(), e82545_rx_direct() and e82545_timer() do nothing
 * until e82545_resume(), which asks the host for the calls they missed.  Calls
 * do not nest.
 */
void	e82545_pause(struct e82545 *dev);
void	e82545_resume(struct e82545 *dev);

/*
 * The complete state of a paused model as a string of bytes: registers, ring
 * positions, EEPROM and PHY, filters, statistics, moderation with the time left
 * on its timers, the CSB, counters, frames being looped back.  Not guest
 * memory, and none of struct e82545_config: the caller must create the model
 * it restores into with the same configuration (ec_itr_256ns and
 * ec_itr_min_256ns may differ; ec_mac is overridden).
 *
 * e82545_snapshot_size() returns how many bytes e82545_snapshot_save() writes
 * while the model stays paused.  Errors: EBUSY if the model is not paused,
 * EINVAL for another size.
 *
 * e82545_snapshot_restore() trusts nothing in `buf'.  Errors, which leave the
 * model unchanged: EBUSY as above; ENOTSUP for a snapshot of another version;
 * EINVAL for one that is damaged, has the wrong length or values that no model
 * can have, or is of a model with another ec_csb; ENOMEM.
 * On success it returns 0; it has called eo_intr() if the line changed, and
 * counts time from now on.  e82545_resume() asks for everything else.
 */
#define	E82545_SNAPSHOT_VERSION	1	/* of all adapters */
size_t	e82545_snapshot_size(struct e82545 *dev);
int	e82545_snapshot_save(struct e82545 *dev, void *buf, size_t size);
int	e82545_snapshot_restore(struct e82545 *dev, const void *buf,
	    size_t size);

/*
 * Have an adapter go on of which ec_memory is left: the process that ran the
 * adapter has ended, by a crash or SIGKILL.  Another process of the same
 * program file calls
 *
 *	e82545_salvage()		old memory -> a snapshot
 *	e82545_create()			on other memory
 *	e82545_bus_master()		as it was
 *	e82545_pause(), e82545_snapshot_restore()
 *	e82545_recover()		completes what was begun
 *	e82545_resume()
 *
 * No register may be accessed before e82545_recover() has returned.  An access
 * that was in progress when the process ended may be done, or not: the host
 * must do it again if the guest waits for it.  If a step fails, the old memory
 * is as it was, or a step farther; the host then resets the adapter as by
 * hardware fault, or begins again.  What is lost and what is sent twice:
 * e82545_salvage.c.
 *
 * e82545_salvage() writes a snapshot of what `memory' holds, of `size' bytes,
 * into `buf', and returns its length in bytes; with `buf' NULL it returns that
 * only, which does not depend on the state.  `config' must be the adapter's, as
 * for snapshots; its ec_memory is not used.  now_ns is the time now, by the
 * clock that eo_now() was: the time left on timers is right.  Nothing in
 * `memory' is trusted, whoever has written there.  Returns -1 with errno set:
 * EINVAL if it is too short, of no adapter, or has a state that cannot be;
 * ENOSPC if bufsize is less than the snapshot's length; ENOMEM.
 *
 * e82545_recover() needs an adapter that is paused, with the snapshot restored,
 * and the memory that was salvaged; writes descriptors back that a batch had
 * left, and raises interrupt causes that the guest may have missed.  Calls
 * eo_map() and the operations that any thread may call.  Returns 0, EBUSY if
 * the adapter is not paused, or EINVAL as above.
 */
ssize_t	e82545_salvage(const void *memory, size_t size,
	    const struct e82545_config *config, uint64_t now_ns, void *buf,
	    size_t bufsize);
int	e82545_recover(struct e82545 *dev, void *memory, size_t size);

/* Read all counters.  Any thread; takes no lock. */
void	e82545_counters(const struct e82545 *dev,
	    uint64_t counters[E82545_NCOUNTERS]);

/* What the guest's driver has set. */
struct e82545_mode {
	bool		em_csb;		/* it uses the CSB */
	bool		em_link;	/* it sees a carrier: STATUS.LU */
	uint16_t	em_itr_256ns;	/* minimum interval between interrupts,
					   with struct e82545_config's; or 0 */
	uint8_t		em_address[6];	/* the first that it receives; zeros:
					   none, or one that no station has */
};

/* Read the mode.  Any thread; takes no lock. */
void	e82545_mode(const struct e82545 *dev, struct e82545_mode *mode);

/* Return ec_name, as the model copied it. */
const char *e82545_name(const struct e82545 *dev);

#endif /* !_E82545_H_ */
