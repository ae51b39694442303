/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * PCI configuration space, byte by byte: PCI Local Bus Specification 3.0,
 * section 6.1, and Intel 317453-006EN ("8254x SDM") section 4.1.
 */

#include <sys/param.h>

#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "adapter.h"

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

static uint8_t	reset[VFU_PCI_SIZE], writable[VFU_PCI_SIZE];

static void
start(struct vfu_pci *pci)
{
	unsigned int i, j;

	for (i = 0; i < nitems(regs); i++) {
		for (j = 0; j < regs[i].size; j++) {
			reset[regs[i].off + j] = regs[i].reset >> (8 * j);
			writable[regs[i].off + j] =
			    regs[i].writable >> (8 * j);
		}
	}
	memset(pci, 0xa5, sizeof(*pci));
	vfu_pci_init(pci, adapter_pci.vdt_field, adapter_pci.vdt_nfields,
	    CSB_SUBDEVICE);
}

static void
check(const struct vfu_pci *pci, const uint8_t *expected)
{
	uint8_t buf[VFU_PCI_SIZE];
	unsigned int i;

	vfu_pci_read(pci, false, 0, buf, sizeof(buf));
	for (i = 0; i < sizeof(buf); i++)
		ATF_CHECK_EQ_MSG(expected[i], buf[i],
		    "offset %#x: %#x, not %#x", i, buf[i], expected[i]);
}

TEST(after_reset, "All registers have their values after a reset")
{
	struct vfu_pci pci;
	uint8_t ones[VFU_PCI_SIZE], id[2];

	start(&pci);
	check(&pci, reset);
	memset(ones, 0xff, sizeof(ones));
	vfu_pci_write(&pci, 0, ones, sizeof(ones));
	vfu_pci_reset(&pci);
	check(&pci, reset);
	vfu_pci_init(&pci, adapter_pci.vdt_field, adapter_pci.vdt_nfields,
	    0x1008);
	vfu_pci_read(&pci, false, 0x2e, id, sizeof(id));
	ATF_CHECK_EQ(0x08, id[0]);
	ATF_CHECK_EQ(0x10, id[1]);
}

TEST(writes, "Writes of any length change the writable bits and no others")
{
	struct vfu_pci pci;
	uint8_t data[VFU_PCI_SIZE], image[VFU_PCI_SIZE];
	uint32_t seed = 5;
	unsigned int i, len, off, step;

	start(&pci);
	memcpy(image, reset, sizeof(image));
	for (step = 0; step < 2000; step++) {
		off = test_below(&seed, VFU_PCI_SIZE);
		len = 1 + test_below(&seed, MIN(8, VFU_PCI_SIZE - off));
		if (step == 0 || step == 1) {
			off = 0;
			len = VFU_PCI_SIZE;
		}
		for (i = 0; i < len; i++) {
			data[i] = step == 0 ? 0xff : step == 1 ? 0 :
			    test_random(&seed);
			image[off + i] = (image[off + i] & ~writable[off + i]) |
			    (data[i] & writable[off + i]);
		}
		vfu_pci_write(&pci, off, data, len);
		if (step < 2)
			check(&pci, image);
		vfu_pci_read(&pci, false, off, data, len);
		ATF_REQUIRE_EQ_MSG(0, memcmp(data, image + off, len),
		    "step %u, offset %#x, length %u", step, off, len);
	}
	check(&pci, image);
}

TEST(command, "Bus mastering and INTx disable are bits 2 and 10 of command")
{
	struct vfu_pci pci;
	uint8_t value[2];
	unsigned int bit;

	start(&pci);
	ATF_CHECK(!vfu_pci_busmaster(&pci));
	ATF_CHECK(!vfu_pci_intx_disabled(&pci));
	for (bit = 0; bit < 16; bit++) {
		value[0] = 1 << bit;
		value[1] = 1 << bit >> 8;
		vfu_pci_write(&pci, 4, value, 2);
		ATF_CHECK_EQ(bit == 2, vfu_pci_busmaster(&pci));
		ATF_CHECK_EQ(bit == 10, vfu_pci_intx_disabled(&pci));
	}
}

TEST(status, "Interrupt status is bit 3 of status, in reads of any length")
{
	struct vfu_pci pci;
	uint8_t buf[VFU_PCI_SIZE], want[VFU_PCI_SIZE];
	unsigned int len, off;

	start(&pci);
	memcpy(want, reset, sizeof(want));
	want[6] |= 1 << 3;
	for (off = 0; off < 16; off++)
		for (len = 1; len <= 16; len++) {
			memset(buf, 0xa5, sizeof(buf));
			vfu_pci_read(&pci, true, off, buf, len);
			ATF_CHECK_EQ_MSG(0, memcmp(buf, want + off, len),
			    "offset %u, length %u", off, len);
			ATF_CHECK_EQ(0xa5, buf[len]);
		}
	check(&pci, reset);
}

TEST_PROGRAM
