/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One x86-64 CPU of a PC: exceptions, the time stamp counter (measured against
 * the 8254), the local APIC and its timer, the I/O APIC, and the way out.
 */

#include <stdarg.h>

#include "micro.h"

#define	VECTOR_TIMER	0x20
#define	VECTOR_SPURIOUS	0xff
#define	CODE64		0x08

/* Local APIC, Intel SDM vol. 3, chapter 11. */
#define	LAPIC		0xfee00000ul
#define	LAPIC_EOI	0x0b0
#define	LAPIC_SVR	0x0f0
#define	 SVR_ENABLE	0x100
#define	LAPIC_LVT_TIMER	0x320
#define	 TIMER_PERIODIC	0x20000
#define	LAPIC_LVT_LINT0	0x350
#define	 LVT_MASKED	0x10000
#define	LAPIC_INITIAL	0x380
#define	LAPIC_CURRENT	0x390
#define	LAPIC_DIVIDE	0x3e0
#define	 DIVIDE_16	0x3

/* I/O APIC, Intel 82093AA. */
#define	IOAPIC		0xfec00000ul
#define	IOAPIC_DATA	0x10
#define	IOAPIC_REDIR(n)	(0x10 + 2 * (n))
#define	 REDIR_LEVEL	0x08000

/* 8254 timer, channel 2, and the port that gates it. */
#define	PIT_HZ		1193182
#define	PIT_CH2		0x42
#define	PIT_CONTROL	0x43
#define	 PIT_CH2_MODE0	0xb0
#define	PORT_B		0x61
#define	 PORT_B_GATE2	0x01
#define	 PORT_B_OUT2	0x20
#define	CALIBRATE_MS	10

#define	PIC1_MASK	0x21
#define	PIC2_MASK	0xa1

#define	DEBUG_EXIT	0xf4		/* -device isa-debug-exit,iobase= */
#define	PM1A_CONTROL	0x604		/* QEMU's machine pc */
#define	 SLEEP_S5	0x2000

struct gate {
	uint16_t	offset0;
	uint16_t	selector;
	uint16_t	flags;
	uint16_t	offset16;
	uint32_t	offset32;
	uint32_t	zero;
};

struct table {
	uint16_t	limit;
	uint64_t	base;
} __attribute__((packed));

static struct gate idt[256] __attribute__((aligned(16)));
static uint64_t tsc_start, tsc_khz;

volatile uint64_t cpu_ticks;

static inline uint32_t
mmio_read(uint64_t address)
{
	return (*(volatile uint32_t *)address);
}

static inline void
mmio_write(uint64_t address, uint32_t v)
{
	*(volatile uint32_t *)address = v;
}

uint64_t
now_ns(void)
{
	uint64_t t = rdtsc() - tsc_start;

	return (t / tsc_khz * 1000000 + t % tsc_khz * 1000000 / tsc_khz);
}

void
delay_us(uint32_t us)
{
	uint64_t until = rdtsc() + us * tsc_khz / 1000;

	while (rdtsc() < until)
		__asm __volatile("pause");
}

/* An exception ends the machine. */
void
cpu_trap(const struct trap_frame *f, uint64_t code)
{
	uint64_t cr2;

	__asm __volatile("movq %%cr2, %0" : "=r" (cr2));
	panic("exception at %lx, code %lx, address %lx", f->rip, code, cr2);
}

void
cpu_timer_intr(void)
{
	cpu_ticks++;
	nic_tick();
	mmio_write(LAPIC + LAPIC_EOI, 0);
}

void
cpu_nic_intr(void)
{
	nic_intr();
	mmio_write(LAPIC + LAPIC_EOI, 0);
}

static void
set_gate(int vector, const void *handler)
{
	uint64_t to = (uint64_t)handler;

	idt[vector] = (struct gate) {
		.offset0 = (uint16_t)to,
		.selector = CODE64,
		.flags = 0x8e00,
		.offset16 = (uint16_t)(to >> 16),
		.offset32 = (uint32_t)(to >> 32),
	};
}

static void
setup_idt(void)
{
	struct table desc = { sizeof(idt) - 1, (uint64_t)idt };
	int i;

	for (i = 0; i < 32; i++)
		set_gate(i, vector_trap);
	/* Those that push an error code: #DF, #TS, #NP, #SS, #GP, #PF, #AC. */
	for (i = 10; i <= 14; i++)
		set_gate(i, vector_trap_code);
	set_gate(8, vector_trap_code);
	set_gate(17, vector_trap_code);
	set_gate(VECTOR_TIMER, vector_timer);
	set_gate(VECTOR_NIC, vector_nic);
	set_gate(VECTOR_SPURIOUS, vector_spurious);
	__asm __volatile("lidt %0" : : "m" (desc));
}

/*
 * How far the time stamp counter and the APIC's timer get while the 8254
 * counts down, which QEMU's does from when its count is written, whatever the
 * gate.  They are looked at before and after that, so anything that delays this
 * only makes them look faster, and the slowest of a few is right.
 */
static uint32_t
calibrate(void)
{
	uint64_t start, passed, tsc = ~0ul;
	uint32_t apic, lapic = ~0u;
	uint8_t port;
	int i;

	port = inb(PORT_B) & 0x0c;
	for (i = 0; i < 3; i++) {
		outb(PORT_B, port);
		outb(PIT_CONTROL, PIT_CH2_MODE0);
		outb(PIT_CH2, (PIT_HZ * CALIBRATE_MS / 1000) & 0xff);
		mmio_write(LAPIC + LAPIC_INITIAL, 0xffffffff);
		start = rdtsc();
		outb(PIT_CH2, (PIT_HZ * CALIBRATE_MS / 1000) >> 8);
		outb(PORT_B, port | PORT_B_GATE2);
		while ((inb(PORT_B) & PORT_B_OUT2) == 0)
			continue;
		passed = rdtsc() - start;
		apic = 0xffffffff - mmio_read(LAPIC + LAPIC_CURRENT);
		if (passed < tsc)
			tsc = passed;
		if (apic < lapic)
			lapic = apic;
	}
	outb(PORT_B, port);
	tsc_khz = tsc / CALIBRATE_MS;
	tsc_start = rdtsc();
	return (lapic / CALIBRATE_MS);
}

void
cpu_init(uint32_t tick_us)
{
	uint64_t count;
	uint32_t lapic_khz;

	setup_idt();
	outb(PIC1_MASK, 0xff);
	outb(PIC2_MASK, 0xff);
	mmio_write(LAPIC + LAPIC_SVR, SVR_ENABLE | VECTOR_SPURIOUS);
	mmio_write(LAPIC + LAPIC_LVT_LINT0, LVT_MASKED);
	mmio_write(LAPIC + LAPIC_LVT_TIMER, LVT_MASKED);
	mmio_write(LAPIC + LAPIC_DIVIDE, DIVIDE_16);
	lapic_khz = calibrate();
	if (tsc_khz == 0 || lapic_khz == 0)
		panic("the timers stand still");
	mmio_write(LAPIC + LAPIC_LVT_TIMER, TIMER_PERIODIC | VECTOR_TIMER);
	count = (uint64_t)lapic_khz * tick_us / 1000;
	mmio_write(LAPIC + LAPIC_INITIAL, (uint32_t)count);
}

void
cpu_route(uint32_t pin)
{
	/* The upper half first: to the local APIC with ID 0. */
	mmio_write(IOAPIC, IOAPIC_REDIR(pin) + 1);
	mmio_write(IOAPIC + IOAPIC_DATA, 0);
	mmio_write(IOAPIC, IOAPIC_REDIR(pin));
	mmio_write(IOAPIC + IOAPIC_DATA, REDIR_LEVEL | VECTOR_NIC);
}

void
cpu_interrupts(bool on)
{
	if (on)
		__asm __volatile("sti" : : : "memory");
	else
		__asm __volatile("cli" : : : "memory");
}

void
cpu_sleep(const volatile bool *unless)
{
	__asm __volatile("cli" : : : "memory");
	/* sti takes effect after hlt has begun. */
	if (!*unless)
		__asm __volatile("sti; hlt" : : : "memory");
	else
		__asm __volatile("sti" : : : "memory");
}

_Noreturn void
cpu_exit(uint8_t status)
{
	__asm __volatile("cli");
	outb(DEBUG_EXIT, status);
	__asm __volatile("outw %w0, %w1" : : "a" (SLEEP_S5),
	    "Nd" (PM1A_CONTROL));
	for (;;)
		__asm __volatile("hlt");
}
