/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The adapter's PCI configuration space, byte by byte: PCI Local Bus
 * Specification 3.0, section 6.1, and Intel 317453-006EN ("8254x SDM")
 * section 4.1.
 */

#include <sys/param.h>

#include <stdint.h>
#include <string.h>

#include <atf-c.h>

#include "adapter.h"
#include "test.h"

#define	CSB_SUBDEVICE	0x1101

/*
 * The registers: what they have after a reset, and their writable bits.  All
 * other bytes are 0 and read-only.
 */
static const struct {
	unsigned int	off, size;
	uint32_t	reset, writable;
} regs[] = {
	{ 0x00, 4, 0x100f8086, 0 },		/* 82545EM */
	{ 0x04, 2, 0, 0x0557 },			/* command */
	{ 0x06, 2, 0x0230, 0 },			/* status */
	{ 0x08, 4, 0x02000003, 0 },		/* Ethernet, revision 3 */
	{ 0x0c, 2, 0, 0xffff },			/* cache line, latency */
	{ 0x10, 4, 0, 0xfffe0000 },		/* 128 KB of memory */
	{ 0x18, 4, 1, 0xfffffff8 },		/* 8 bytes of I/O */
	{ 0x2c, 4, CSB_SUBDEVICE << 16 | 0x8086, 0 },
	{ 0x34, 1, 0xdc, 0 },			/* capabilities */
	{ 0x3c, 4, 0x00ff0100, 0x000000ff },	/* interrupt, MIN_GNT */
	{ 0xdc, 4, 0x0002f001, 0 },		/* power management 1.1 */
	{ 0xe0, 2, 0x0008, 0x0003 },
	{ 0xf0, 4, 0x00800005, 0x00010000 },	/* MSI, 64-bit */
	{ 0xf4, 4, 0, 0xfffffffc },
	{ 0xf8, 4, 0, 0xffffffff },
	{ 0xfc, 2, 0, 0xffff },
};

TEST(registers, "All registers have their values after a reset, and these bits "
    "can be written")
{
	uint8_t got[VFU_PCI_SIZE], ones[VFU_PCI_SIZE], reset[VFU_PCI_SIZE],
	    set[VFU_PCI_SIZE];
	struct vfu_pci pci;
	unsigned int i, j, off;

	memset(ones, 0xff, sizeof(ones));
	memset(reset, 0, sizeof(reset));
	memset(set, 0, sizeof(set));
	for (i = 0; i < nitems(regs); i++) {
		for (j = 0; j < regs[i].size; j++) {
			off = regs[i].off + j;
			reset[off] = regs[i].reset >> (8 * j);
			set[off] = reset[off] | regs[i].writable >> (8 * j);
		}
	}
	vfu_pci_init(&pci, adapter_pci.vdt_field, adapter_pci.vdt_nfields,
	    CSB_SUBDEVICE);
	vfu_pci_read(&pci, false, 0, got, sizeof(got));
	for (i = 0; i < sizeof(got); i++)
		ATF_CHECK_EQ_MSG(reset[i], got[i], "offset %#x: %#x, not %#x",
		    i, got[i], reset[i]);
	vfu_pci_write(&pci, 0, ones, sizeof(ones));
	vfu_pci_read(&pci, false, 0, got, sizeof(got));
	for (i = 0; i < sizeof(got); i++)
		ATF_CHECK_EQ_MSG(set[i], got[i], "offset %#x: %#x, not %#x",
		    i, got[i], set[i]);
	ATF_CHECK_EQ(0x20000, adapter_pci.vdt_bar_size[0]);
	ATF_CHECK_EQ(8, adapter_pci.vdt_bar_size[2]);
}

TEST_PROGRAM
