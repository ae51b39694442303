/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * PCI configuration space, byte by byte: PCI Local Bus Specification 3.0,
 * section 6.1; of PCI Express: Base Specification 2.0, section 7.2.
 */

#include <sys/param.h>

#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "vfu_pci.h"

#define	SUBDEVICE	0x1235

/* All bytes that are in none of these are 0 and read-only. */
static const struct vfu_pci_field regs[] = {
	{ 0x00, 4, 0x56789abc, 0 },
	{ 0x04, 2, 0, 0x0557 },			/* command */
	{ 0x06, 2, 0x0230, 0 },			/* status */
	{ 0x0c, 1, 0, 0xff },
	{ 0x0d, 1, 0, 0x0f },
	{ 0x10, 4, 0xa5000001, 0x00ffff00 },
	{ 0x2c, 2, 0xdef0, 0 },
	{ 0x3c, 1, 0x42, 0xff },
	{ 0xfc, 4, 0, 0xffffffff },
};

static uint8_t	reset[VFU_PCI_SIZE], writable[VFU_PCI_SIZE];

static void
start(struct vfu_pci *pci)
{
	unsigned int i, j;

	for (i = 0; i < nitems(regs); i++) {
		for (j = 0; j < regs[i].vpf_size; j++) {
			reset[regs[i].vpf_off + j] =
			    regs[i].vpf_value >> (8 * j);
			writable[regs[i].vpf_off + j] =
			    regs[i].vpf_writable >> (8 * j);
		}
	}
	reset[0x2e] = SUBDEVICE & 0xff;
	reset[0x2f] = SUBDEVICE >> 8;
	memset(pci, 0xa5, sizeof(*pci));
	vfu_pci_init(pci, regs, nitems(regs), SUBDEVICE);
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
	uint8_t ones[VFU_PCI_SIZE];

	start(&pci);
	check(&pci, reset);
	memset(ones, 0xff, sizeof(ones));
	vfu_pci_write(&pci, 0, ones, sizeof(ones));
	vfu_pci_reset(&pci);
	check(&pci, reset);
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

TEST(extended, "Bytes from 256 on are 0 and read-only")
{
	static uint8_t buf[VFU_PCIE_SIZE], ones[VFU_PCIE_SIZE],
	    want[VFU_PCIE_SIZE];
	/* The last bytes of *pci's are not written either. */
	struct {
		struct vfu_pci pci;
		uint8_t after[VFU_PCIE_SIZE];
	} s;
	static const unsigned int lens[] = { 1, 2, 4, 8, 64 };
	unsigned int i, len, off;

	start(&s.pci);
	memset(s.after, 0x5a, sizeof(s.after));
	memset(ones, 0xff, sizeof(ones));
	memcpy(want, reset, sizeof(reset));
	for (i = 0; i < nitems(lens); i++) {
		len = lens[i];
		for (off = VFU_PCI_SIZE - len; off <= VFU_PCIE_SIZE - len;
		    off++) {
			memset(buf, 0xa5, sizeof(buf));
			vfu_pci_read(&s.pci, true, off, buf, len);
			ATF_CHECK_EQ_MSG(0, memcmp(buf, want + off, len),
			    "offset %#x, length %u", off, len);
			ATF_CHECK_EQ(0xa5, buf[len]);
			if (off >= VFU_PCI_SIZE)
				vfu_pci_write(&s.pci, off, ones, len);
		}
	}
	check(&s.pci, reset);
	vfu_pci_write(&s.pci, 0, ones, sizeof(ones));
	for (i = 0; i < sizeof(reset); i++)
		want[i] = (reset[i] & ~writable[i]) | writable[i];
	vfu_pci_read(&s.pci, false, 0, buf, sizeof(buf));
	ATF_CHECK_EQ(0, memcmp(buf, want, sizeof(buf)));
	for (i = 0; i < sizeof(s.after); i++)
		ATF_CHECK_EQ(0x5a, s.after[i]);
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
