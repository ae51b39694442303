/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The micro-guest consists of the driver core of an 8254x (lem_core.c) and a
 * packet generator.  It has one CPU and one thread; virtual addresses are
 * physical addresses, which the adapter uses.
 *
 *	start.S		from the loader to C
 *	vector.S	from an interrupt to C
 *	console.c	serial port, and the little of libc there is
 *	cpu.c		clock, interrupts, power
 *	pci.c		finds the adapter
 *	options.c	the command line
 *	nic.c		the driver core's host
 *	traffic.c	the packet generator
 *	program.c	a receiver of two stages, for receive livelock
 *	main.c		brings them up in order, and reports
 *
 * Interrupt handlers do no more than note what happened.  All work is done by
 * nic_service(), which the generator calls between frames and nic_wait() has it
 * call: the driver core needs no lock.  Only with role=program they do that
 * work themselves, and nothing else calls the driver core.
 */

#ifndef _MICRO_H_
#define	_MICRO_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a frame, without FCS. */
#define	FRAME_MIN	60
#define	FRAME_MAX	1514

/*
 * console.c
 */
void	console_init(void);
/* Knows %s %c %d %u %x, with l, a width and leading zeroes. */
void	print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print a line "name value", for programs outside. */
void	report(const char *name, uint64_t value);
/* The same, "total_" before the name. */
void	report_total(const char *name, uint64_t value);
void	*memcpy(void *restrict dst, const void *restrict src, size_t len);
void	*memset(void *dst, int c, size_t len);
int	memcmp(const void *a, const void *b, size_t len);
size_t	strlen(const char *s);

/*
 * cpu.c
 */
static inline void
outb(uint16_t port, uint8_t v)
{
	__asm __volatile("outb %0, %1" : : "a" (v), "Nd" (port));
}

static inline uint8_t
inb(uint16_t port)
{
	uint8_t v;

	__asm __volatile("inb %1, %0" : "=a" (v) : "Nd" (port));
	return (v);
}

static inline uint64_t
rdtsc(void)
{
	uint32_t lo, hi;

	__asm __volatile("rdtsc" : "=a" (lo), "=d" (hi));
	return ((uint64_t)hi << 32 | lo);
}

#define	VECTOR_NIC	0x21

/*
 * Interrupt tables, clocks and local APIC; the timer ticks every tick_us.
 * Interrupts are still off.
 */
void	cpu_init(uint32_t tick_us);
/* Ticks of the timer so far. */
extern volatile uint64_t cpu_ticks;
/* Time since cpu_init(), nanoseconds. */
uint64_t now_ns(void);
void	delay_us(uint32_t us);
/* Routes a pin of the I/O APIC, level triggered, to VECTOR_NIC. */
void	cpu_route(uint32_t pin);
/* Sleep until an interrupt, unless *unless is true; misses no interrupt. */
void	cpu_sleep(const volatile bool *unless);
void	cpu_interrupts(bool on);
/* Ends the machine: power off, or QEMU's isa-debug-exit with the status. */
_Noreturn void cpu_exit(uint8_t status);
/* Prints a message, and ends the machine with status 1. */
_Noreturn void panic(const char *fmt, ...)
	    __attribute__((format(printf, 1, 2)));

/* What the processor pushes on an exception. */
struct trap_frame {
	uint64_t rip, cs, rflags, rsp, ss;
};

/*
 * vector.S: the entries in the interrupt descriptor table, and the functions
 * of cpu.c that they call with interrupts off.
 */
void	vector_trap(void);		/* exception without an error code */
void	vector_trap_code(void);		/* with one */
void	vector_timer(void);
void	vector_nic(void);
void	vector_spurious(void);
_Noreturn void cpu_trap(const struct trap_frame *f, uint64_t code);
void	cpu_timer_intr(void);
void	cpu_nic_intr(void);

/*
 * pci.c
 */
struct pci_nic {
	uint32_t address;	/* of its configuration, mechanism 1 */
	uint16_t device;
	uint16_t subdevice;
	uint64_t regs;		/* what BAR 0 was set to */
	bool	 msi;		/* interrupts by MSI, else the line */
};

/* Finds the first 82545EM or 82540EM and turns it on. */
void	pci_find_nic(struct pci_nic *nic);
/* Makes it interrupt with VECTOR_NIC, by MSI or INTx. */
void	pci_setup_intr(struct pci_nic *nic, bool msi);
bool	pci_has_msi(const struct pci_nic *nic);
/* Whether there is a CSB: paravirt_csb(9). */
bool	pci_has_csb(const struct pci_nic *nic);

/*
 * options.c
 */
enum role { ROLE_SINK, ROLE_SOURCE, ROLE_ECHO, ROLE_RR, ROLE_PROGRAM };
enum intr { INTR_AUTO, INTR_INTX, INTR_MSI };

#define	STEPS		8

struct options {
	enum role role;
	enum intr intr;
	uint32_t size;		/* bytes of a frame */
	uint32_t rate[STEPS];	/* frames a second, one after another */
	uint32_t nrates;	/* 0: one, without a limit */
	uint32_t work_ns;	/* for each frame that a sink or a stack gets */
	uint32_t program_ns;	/* for each frame that a program gets */
	uint32_t socket;	/* frames between stack and program */
	uint32_t share;		/* lem_share_turn() */
	uint32_t rounds;	/* lem_set_rounds() */
	uint32_t batch;		/* frames for one flush */
	uint64_t count;		/* frames to send, 0: no limit */
	uint32_t ms;		/* to send for; 0: no limit */
	uint32_t tick;		/* us between timer interrupts; 0: 1000, and
				   polling never sleeps */
	uint32_t ring;		/* descriptors, each way */
	uint32_t mode;		/* LEM_MODE_* */
	uint32_t itr;		/* 256 ns */
	bool	 has_mac;
	uint8_t	 mac[6];	/* station address */
	uint8_t	 dst[6];	/* where HELLO is sent */
};

/* Reads the command line; ends the machine if it makes no sense. */
void	options_parse(struct options *opt, const char *cmdline);

/*
 * nic.c
 */
struct nic_counts {
	uint64_t ns;		/* when this was taken */
	uint64_t reg_reads;
	uint64_t reg_writes;
	uint64_t irqs;		/* interrupts of the adapter's vector */
	uint64_t halts;		/* times there was nothing to do */
};

extern struct lem_core nic;
extern uint8_t nic_mac[6];

/* Finds the adapter and starts the driver. */
void	nic_init(const struct options *opt);
/* Memory for the next frame to send, FRAME_MAX bytes. */
void	*nic_buffer(void);
/* Queues the frame in it.  False if no descriptor is free. */
bool	nic_send(uint32_t len);
void	nic_flush(void);
/* Serves the adapter, if it asked; calls traffic_frame() for each frame. */
void	nic_service(void);
/* Cleans the transmit ring, whether or not the adapter asked. */
void	nic_clean(void);
/* Sleeps until there may be work. */
void	nic_wait(void);
void	nic_counts(struct nic_counts *counts);
void	nic_stop(void);
/* An interrupt of the adapter; called by VECTOR_NIC's handler. */
void	nic_intr(void);
/* A tick of the timer; called by its handler. */
void	nic_tick(void);
/*
 * From now on, the handlers serve the adapter, in turns, and use `share'
 * percent of the processor at most while busy() returns true.
 */
void	nic_preempt(uint32_t share, bool (*busy)(void));
/* Nothing else has to be done: serve the adapter if it had to wait for that. */
void	nic_idle(void);
/* The time that the handlers have spent. */
uint64_t nic_preempted_ns(void);

/*
 * traffic.c
 */
/* A frame was received; called by nic_service(). */
void	traffic_frame(const void *frame, uint32_t len);
/* Plays the role to its end, and reports. */
void	traffic_run(const struct options *opt);

/*
 * program.c
 */
/* The stack: a frame of a step was received; called by traffic_frame(). */
void	program_frame(uint64_t step);
/* The program: use the next frame.  False if there is none. */
bool	program_use(void);
void	program_start(const struct options *opt);
void	program_report(void);

#endif /* !_MICRO_H_ */
