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

#define	SUBDEVICE	0x1008

/*
 * The registers: what they have after a reset, and their writable bits.  All
 * other bytes are 0 and read-only.
 */
static const struct pci_reg {
	unsigned int	off, size;
	uint32_t	reset, writable;
} e1000[] = {
	{ 0x00, 4, 0x100f8086, 0 },		/* 82545EM */
	{ 0x04, 2, 0, 0x0557 },			/* command */
	{ 0x06, 2, 0x0230, 0 },			/* status */
	{ 0x08, 4, 0x02000003, 0 },		/* Ethernet, revision 3 */
	{ 0x0c, 2, 0, 0xffff },			/* cache line, latency */
	{ 0x10, 4, 0, 0xfffe0000 },		/* 128 KB of memory */
	{ 0x18, 4, 1, 0xfffffff8 },		/* 8 bytes of I/O */
	{ 0x2c, 4, SUBDEVICE << 16 | 0x8086, 0 },
	{ 0x34, 1, 0xdc, 0 },			/* capabilities */
	{ 0x3c, 4, 0x00ff0100, 0x000000ff },	/* interrupt, MIN_GNT */
	{ 0xdc, 4, 0x0002f001, 0 },		/* power management 1.1 */
	{ 0xe0, 2, 0x0008, 0x0003 },
	{ 0xf0, 4, 0x00800005, 0x00010000 },	/* MSI, 64-bit */
	{ 0xf4, 4, 0, 0xfffffffc },
	{ 0xf8, 4, 0, 0xffffffff },
	{ 0xfc, 2, 0, 0xffff },
	{ 0 }
}, e1000e[] = {
	{ 0x00, 4, 0x10d38086, 0 },		/* 82574L */
	{ 0x04, 2, 0, 0x0547 },			/* command */
	{ 0x06, 2, 0x0010, 0 },			/* status */
	{ 0x08, 4, 0x02000000, 0 },		/* Ethernet */
	{ 0x0c, 1, 0, 0xff },			/* cache line */
	{ 0x10, 4, 0, 0xfffe0000 },		/* 128 KB of memory */
	{ 0x14, 4, 0, 0xfffe0000 },		/* 128 KB of flash */
	{ 0x18, 4, 1, 0xffffffe0 },		/* 32 bytes of I/O */
	{ 0x1c, 4, 0, 0xffffc000 },		/* 16 KB: MSI-X */
	{ 0x2c, 4, SUBDEVICE << 16 | 0x8086, 0 },
	{ 0x34, 1, 0xc8, 0 },			/* capabilities */
	{ 0x3c, 2, 0x0100, 0x00ff },		/* interrupt */
	{ 0xa0, 4, 0x00040011, 0xc0000000 },	/* MSI-X, 5 vectors */
	{ 0xa4, 4, 0x00000003, 0 },		/* table and pending bits */
	{ 0xa8, 4, 0x00002003, 0 },		/* in the fourth BAR */
	{ 0xc8, 4, 0x0003d001, 0 },		/* power management 1.2 */
	{ 0xcc, 2, 0x0008, 0x0003 },
	{ 0xd0, 4, 0x0080e005, 0x00010000 },	/* MSI, 64-bit */
	{ 0xd4, 4, 0, 0xfffffffc },
	{ 0xd8, 4, 0, 0xffffffff },
	{ 0xdc, 2, 0, 0xffff },
	{ 0xe0, 4, 0x0001a010, 0 },		/* PCI Express endpoint */
	{ 0xe4, 4, 0x00008001, 0 },
	{ 0xe8, 2, 0x2810, 0x7fff },
	{ 0xec, 4, 0x00000011, 0 },		/* one lane, 2.5 GT/s */
	{ 0xf0, 2, 0, 0x00cb },
	{ 0xf2, 2, 0x0011, 0 },
	{ 0 }
};

/* What the CSB adds, without the pointer to the capability. */
static const struct pci_reg csb[] = {
	{ 0x40, 4, 0x000c0009, 0 },		/* vendor-specific, 12 bytes */
	{ 0x44, 4, 0x42534350, 0 },
	{ 0x48, 4, 0x00000001, 0 },
	{ 0 }
};

/* Fill in registers after a reset, and with all bits written as ones. */
static void
fill(const struct pci_reg *r, uint8_t *reset, uint8_t *set)
{
	unsigned int i, off;

	for (; r->size != 0; r++) {
		for (i = 0; i < r->size; i++) {
			off = r->off + i;
			reset[off] = r->reset >> (8 * i);
			set[off] = reset[off] | r->writable >> (8 * i);
		}
	}
}

/* Without the CSB, or with it, whose capability follows that at `last'. */
static void
check_registers(const struct vfu_device_type *type, const struct pci_reg *r,
    unsigned int last)
{
	uint8_t got[VFU_PCI_SIZE], ones[VFU_PCI_SIZE], reset[VFU_PCI_SIZE],
	    set[VFU_PCI_SIZE];
	struct vfu_pci pci;
	unsigned int i;

	memset(ones, 0xff, sizeof(ones));
	memset(reset, 0, sizeof(reset));
	memset(set, 0, sizeof(set));
	fill(r, reset, set);
	if (last != 0) {
		fill(csb, reset, set);
		reset[last + 1] = set[last + 1] = csb->off;
	}
	vfu_pci_init(&pci, type->vdt_field, type->vdt_nfields, SUBDEVICE);
	vfu_pci_read(&pci, false, 0, got, sizeof(got));
	for (i = 0; i < sizeof(got); i++)
		ATF_CHECK_EQ_MSG(reset[i], got[i], "offset %#x: %#x, not %#x",
		    i, got[i], reset[i]);
	vfu_pci_write(&pci, 0, ones, sizeof(ones));
	vfu_pci_read(&pci, false, 0, got, sizeof(got));
	for (i = 0; i < sizeof(got); i++)
		ATF_CHECK_EQ_MSG(set[i], got[i], "offset %#x: %#x, not %#x",
		    i, got[i], set[i]);
}

/* Whether there is a capability with this ID. */
static bool
has_capability(const struct vfu_device_type *type, uint8_t id)
{
	uint8_t cfg[VFU_PCI_SIZE];
	struct vfu_pci pci;
	unsigned int n;
	uint8_t off;

	vfu_pci_init(&pci, type->vdt_field, type->vdt_nfields, 0);
	vfu_pci_read(&pci, false, 0, cfg, sizeof(cfg));
	n = 0;
	for (off = cfg[0x34]; off != 0; off = cfg[off + 1]) {
		ATF_REQUIRE(off >= 0x40 && off <= 0xfc && n++ < 48);
		if (cfg[off] == id)
			return (true);
	}
	return (false);
}

/*
 * A client takes a device for one of PCI Express that has the capability, or
 * that has the size: QEMU ends if they differ, behind a PCI Express port.
 */
TEST(express, "What has a PCI Express capability has a configuration space of "
    "PCI Express")
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ATF_CHECK(!has_capability(&adapter_pci[ADAPTER_E1000][i],
		    0x10));
		ATF_CHECK(has_capability(&adapter_pci[ADAPTER_E1000E][i],
		    0x10));
		ATF_CHECK(!adapter_pci[ADAPTER_E1000][i].vdt_express);
		ATF_CHECK(adapter_pci[ADAPTER_E1000E][i].vdt_express);
	}
}

TEST(registers, "All registers have their values after a reset, and these bits "
    "can be written; with the CSB there is a capability more")
{
	const struct vfu_device_type *type = adapter_pci[ADAPTER_E1000];
	unsigned int i;

	for (i = 0; i < 2; i++, type++) {
		check_registers(type, e1000, i == 0 ? 0 : 0xf0);
		ATF_CHECK_EQ(0x20000, type->vdt_bar_size[0]);
		ATF_CHECK_EQ(8, type->vdt_bar_size[2]);
		ATF_CHECK_EQ(0, type->vdt_vectors + type->vdt_msix);
	}
}

TEST(e1000e_registers, "The same of an 82574L")
{
	const struct vfu_device_type *type = adapter_pci[ADAPTER_E1000E];
	unsigned int i;

	for (i = 0; i < 2; i++, type++) {
		check_registers(type, e1000e, i == 0 ? 0 : 0xa0);
		ATF_CHECK_EQ(0x20000, type->vdt_bar_size[0]);
		ATF_CHECK_EQ(0x20000, type->vdt_bar_size[1]);
		ATF_CHECK_EQ(32, type->vdt_bar_size[2]);
		ATF_CHECK_EQ(0x4000, type->vdt_bar_size[3]);
		ATF_CHECK_EQ(5, type->vdt_vectors);
		ATF_CHECK_EQ(0xa0, type->vdt_msix);
	}
}

TEST_PROGRAM
