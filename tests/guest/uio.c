/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * uio N: has the adapter that uio_pci_generic hands out as /dev/uio0 raise N
 * interrupts, one after the other, on its INTx line, and prints how many the
 * kernel reported.  For each it checks the registers of PCI configuration space
 * that the kernel claims and masks the interrupt by, PCI 3.0 section 6.2.3;
 * then it raises one while the command register disables the line.
 */

#include <sys/mman.h>

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define	DEVICE		"/sys/class/uio/uio0/device/"

/* PCI configuration space. */
#define	COMMAND		0x04
#define	 INTX_DISABLE	0x0400
#define	STATUS		0x06
#define	 INTX_STATUS	0x0008

/* Registers of the 82545EM, 8254x SDM section 13.4. */
#define	BAR_SIZE	0x20000
#define	ICR		(0x00c0 / 4)
#define	ICS		(0x00c8 / 4)
#define	IMS		(0x00d0 / 4)
#define	IMC		(0x00d8 / 4)
#define	 LSC		0x00000004

static int		config, uio;
static volatile uint32_t *regs;

static bool
is_set(off_t off, uint16_t bit)
{
	uint16_t v;

	if (pread(config, &v, sizeof(v), off) != sizeof(v))
		err(1, "read configuration space");
	return ((v & bit) != 0);
}

static void
disable_intx(bool disable)
{
	uint16_t v;

	if (pread(config, &v, sizeof(v), COMMAND) != sizeof(v))
		err(1, "read configuration space");
	v = disable ? v | INTX_DISABLE : v & ~INTX_DISABLE;
	if (pwrite(config, &v, sizeof(v), COMMAND) != sizeof(v))
		err(1, "write configuration space");
}

static void
check(bool holds, const char *what, unsigned int i)
{
	if (!holds)
		errx(1, "interrupt %u: %s", i, what);
}

/* Wait for an interrupt; returns how many there were before it, and itself. */
static uint32_t
wait_interrupt(void)
{
	uint32_t n;

	if (read(uio, &n, sizeof(n)) != sizeof(n))
		err(1, "/dev/uio0");
	return (n);
}

/* The kernel claims an interrupt by its status, and disables the line. */
static void
take_interrupt(unsigned int i)
{
	check(is_set(COMMAND, INTX_DISABLE), "not disabled", i);
	check(is_set(STATUS, INTX_STATUS), "disabled: no status", i);
	check((regs[ICR] & LSC) != 0, "no cause", i);
	check(!is_set(STATUS, INTX_STATUS), "status without cause", i);
	disable_intx(false);
}

int
main(int argc, char **argv)
{
	struct pollfd fd;
	unsigned int i, n;
	uint32_t first, seen;
	int bar;

	if (argc != 2)
		errx(2, "usage: uio n");
	n = strtoul(argv[1], NULL, 10);
	config = open(DEVICE "config", O_RDWR);
	bar = open(DEVICE "resource0", O_RDWR | O_SYNC);
	uio = open("/dev/uio0", O_RDONLY);
	if (config == -1 || bar == -1 || uio == -1)
		err(1, "no adapter");
	regs = mmap(NULL, BAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, bar, 0);
	if (regs == MAP_FAILED)
		err(1, "mmap");
	regs[IMC] = UINT32_MAX;
	(void)regs[ICR];
	regs[IMS] = LSC;
	first = seen = 0;
	for (i = 0; i < n; i++) {
		check(!is_set(STATUS, INTX_STATUS), "status before", i);
		regs[ICS] = LSC;
		check(is_set(STATUS, INTX_STATUS), "no status", i);
		seen = wait_interrupt();
		if (i == 0)
			first = seen;
		take_interrupt(i);
	}

	disable_intx(true);
	regs[ICS] = LSC;
	fd.fd = uio;
	fd.events = POLLIN;
	check(poll(&fd, 1, 100) == 0, "came although disabled", n);
	disable_intx(false);
	seen = wait_interrupt();
	take_interrupt(n);
	printf("reported %u\n", seen - first + 1);
	return (0);
}
