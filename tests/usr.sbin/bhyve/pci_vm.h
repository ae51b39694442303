/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A virtual machine around pci_e82545.c: what bhyve provides to it, namely PCI
 * emulation, guest memory and snapshots, and a network backend `wire', a socket
 * whose other end is the network.  The test's own thread is the vCPU and,
 * except with bhyve's own event loop, which never ends, the event loop.
 */

#ifndef _PCI_VM_H_
#define	_PCI_VM_H_

#include <machine/vmm_snapshot.h>
#include <dev/e1000/e82574_reg.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pci_emul.h"

/* Guest memory: bytes, and guest addresses.  A buffer has 2048 bytes. */
#define	RAM_SIZE	0x100000
#define	TX_RING		0x1000
#define	RX_RING		0x2000
#define	CSB		0x3000
#define	TX_BUF		0x10000
#define	RX_BUF		0x40000
#define	RING		64		/* descriptors in each ring */

extern uint8_t vm_ram[RAM_SIZE];

/*
 * Where the capabilities are.  The table of MSI-X is at the start of its BAR,
 * with its pending bits at VM_PBA.
 */
#define	VM_CAP_MSI	0x40
#define	VM_CAP_EXP	0x50
#define	VM_CAP_MSIX	0x8c
#define	VM_CAP_CSB	0x98
#define	VM_CAP_END	0xa4
#define	VM_PBA		0x1000

/* What the adapter has done.  `mtx' protects what other threads change. */
extern struct vm {
	struct pci_devinst pi;
	struct {
		enum pcibar_type type;
		uint64_t	 size;	/* bytes */
	} bar[PCIR_MAX_BAR_0 + 1];
	int		 msi_messages;	/* requested in the capability */
	int		 pcie_type;	/* as above; -1: none */
	bool		 lintr_requested;
	bool		 no_bars;	/* set: BARs cannot be allocated */

	pthread_mutex_t	 mtx;
	bool		 line;
	int		 asserts;
	bool		 need_txkick;	/* at the last one, in the CSB */
	bool		 msi_on;	/* set: the guest uses MSI */
	int		 msis;
	int		 messages[E82574_VECTORS];	/* of MSI-X */
	int		 sent;		/* frames the backend sent */
	uint8_t		 frame[2048];	/* the last one */
	size_t		 len;
	int		 opens, cleanups;	/* of the backend */
	int		 enables, disables;	/* of its event */
	int		 wire;		/* the network's end */
} vm;

/* The device that vm_init() creates: "e1000", or what a test sets. */
extern const char *vm_device;
/*
 * Create an adapter with these options, as for -s 2,e1000,opts, with bus
 * mastering on.  Returns what pe_init() returns.
 */
int	vm_init(const char *opts);
/* The same, with the link up and both rings on, and no receive buffers. */
void	vm_start(const char *opts);

/*
 * Registers; configuration space as it is stored, and as a vCPU reads it; its
 * command register.
 */
uint32_t vm_rd(uint32_t off);
void	vm_wr(uint32_t off, uint32_t value);
uint16_t vm_cfg16(int off);
uint32_t vm_cfg(int off, int bytes);
void	vm_command(uint16_t value);
/* A vCPU's write to a capability, or behind them. */
void	vm_capability(int off, int bytes, uint32_t value);
/* Walk the list of capabilities.  Where the last one is, if it is the CSB's. */
int	vm_csb(void);
/* Turn MSI-X on or off by its capability, with all vectors masked or not. */
void	vm_msix(bool on, bool masked);
/* Mask a vector in the table, or not. */
void	vm_mask(unsigned int vector, bool masked);

/*
 * Have the adapter, which must be paused, save its state to `buf' or restore it
 * from there.  *sizep has the bytes that there are, and gets those used.
 * Returns what pe_snapshot() returns.
 */
int	vm_snapshot(enum vm_snapshot_op op, void *buf, size_t *sizep);

/* Make a broadcast whose bytes follow from `seed'. */
void	vm_frame(uint8_t *frame, size_t len, uint8_t seed);
/* Put one into descriptor `i' of the transmit ring.  TDT is not written. */
void	vm_transmit(int i, size_t len, uint8_t seed);

/* Whether done(), which is called with `mtx' held. */
bool	vm_is(bool (*done)(void));
/* Run the event loop until it is. */
void	vm_run_until(bool (*done)(void));
/* Run it for a time in which a frame that does not wait would have come. */
void	vm_run_ten_ms(void);

/* For vm_run_until(): the line is asserted; a vector has sent a message. */
bool	vm_line_up(void);
bool	vm_messaged(void);
/* So many frames are sent; so many receive descriptors are done. */
extern int vm_expected;
bool	vm_sent(void);
bool	vm_received(void);

#endif /* !_PCI_VM_H_ */
