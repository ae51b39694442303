/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The 82574L of pci_e82545.c in a virtual machine without bhyve: what differs
 * from the 82545EM, namely its configuration and MSI-X.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <machine/vmm_snapshot.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "e82545.h"
#include "pci_vm.h"
#include "said.h"
#include "test.h"

#define	VECTOR_RX	0
#define	VECTOR_TX	1
#define	VECTOR_OTHER	2

/* As Linux: receive has vector 0, transmit 1, all else 2. */
#define	IVAR_LINUX	0x800a0908

/* Offsets in the table of MSI-X. */
#define	ENTRY(v)	(16 * (v))
#define	CONTROL(v)	(ENTRY(v) + 12)
#define	TABLE_END	ENTRY(E82574_VECTORS)

static int
init(const char *opts)
{
	vm_device = "e1000e";
	return (vm_init(opts));
}

static uint64_t
table_read(uint64_t offset, int size)
{
	return (vm.pi.pi_d->pe_barread(&vm.pi, E82574_BAR_MSIX, offset, size));
}

static void
table_write(uint64_t offset, int size, uint64_t value)
{
	vm.pi.pi_d->pe_barwrite(&vm.pi, E82574_BAR_MSIX, offset, size, value);
}

/* What the driver does after a reset: no vector of the table is written. */
static void
use_vectors(void)
{
	vm_wr(E82574_IVAR, IVAR_LINUX);
	vm_wr(E82574_EIAC, E82574_ICR_RXQ0 | E82574_ICR_TXQ0);
	vm_wr(E82545_IMS, E82574_ICR_RXQ0 | E82574_ICR_TXQ0 |
	    E82574_ICR_OTHER | E82545_ICR_LSC);
}

/* A running adapter whose driver uses the three vectors, none masked. */
static void
start(void)
{
	unsigned int v;

	vm_device = "e1000e";
	vm_start("wire0");
	for (v = 0; v < E82574_VECTORS; v++)
		vm_mask(v, false);
	vm_msix(true, false);
	use_vectors();
}

/* Have the cause of a vector happen, which has no timer. */
static void
raise_vector(unsigned int vector)
{
	static const uint32_t cause[] = { E82574_ICR_RXQ0, E82574_ICR_TXQ0,
	    E82574_ICR_OTHER };

	/* Not of a message before this one. */
	vm_wr(E82545_ICR, cause[vector]);
	vm_wr(E82545_IMS, cause[vector]);
	vm_wr(E82545_ICS, cause[vector]);
}

#define	CHECK_MESSAGES(v0, v1, v2) do {					\
	ATF_CHECK_EQ(v0, vm.messages[0]);				\
	ATF_CHECK_EQ(v1, vm.messages[1]);				\
	ATF_CHECK_EQ(v2, vm.messages[2]);				\
	ATF_CHECK_EQ(0, vm.messages[3] + vm.messages[4]);		\
	memset(vm.messages, 0, sizeof(vm.messages));			\
} while (0)

TEST(identity, "PCI configuration space, BARs and interrupts are an 82574L's")
{
	const struct pci_devemu *pe;
	int size;

	ATF_REQUIRE_EQ(0, init("wire0"));
	ATF_CHECK_EQ(0x8086, vm_cfg16(PCIR_VENDOR));
	ATF_CHECK_EQ(0x10d3, vm_cfg16(PCIR_DEVICE));
	ATF_CHECK_EQ(0x8086, vm_cfg16(PCIR_SUBVEND_0));
	ATF_CHECK_EQ(0xa01f, vm_cfg16(PCIR_SUBDEV_0));
	ATF_CHECK_EQ(0, vm.pi.pi_cfgdata[PCIR_REVID]);
	ATF_CHECK_EQ(0x0200, vm_cfg16(PCIR_SUBCLASS));
	ATF_CHECK_EQ(0, vm.pi.pi_cfgdata[PCIR_HDRTYPE]);
	ATF_CHECK_EQ(1, vm.pi.pi_cfgdata[PCIR_INTPIN]);
	ATF_CHECK_EQ(PCIBAR_MEM32, vm.bar[0].type);
	ATF_CHECK_EQ(0x20000, vm.bar[0].size);
	ATF_CHECK_EQ(PCIBAR_MEM32, vm.bar[1].type);
	ATF_CHECK_EQ(0x20000, vm.bar[1].size);
	ATF_CHECK_EQ(PCIBAR_IO, vm.bar[2].type);
	ATF_CHECK_EQ(32, vm.bar[2].size);
	ATF_CHECK_EQ(PCIBAR_MEM32, vm.bar[3].type);
	ATF_CHECK_EQ(3, pci_msix_table_bar(&vm.pi));
	ATF_CHECK_EQ(PCIBAR_NONE, vm.bar[4].type);
	ATF_CHECK_EQ(4, vm_cfg16(VM_CAP_MSIX + PCIR_MSIX_CTRL));
	ATF_CHECK_EQ(PCIEM_TYPE_ENDPOINT, vm.pcie_type);
	ATF_CHECK_EQ(1, vm.msi_messages);
	ATF_CHECK(vm.lintr_requested);
	/* The flash is empty, and there is nothing behind the I/O registers. */
	pe = vm.pi.pi_d;
	for (size = 1; size <= 4; size *= 2) {
		ATF_CHECK_EQ(UINT64_MAX >> (64 - 8 * size),
		    pe->pe_barread(&vm.pi, E82574_BAR_FLASH, 0, size));
		ATF_CHECK_EQ(UINT64_MAX >> (64 - 8 * size),
		    pe->pe_barread(&vm.pi, E82545_BAR_IO, 8, size));
		pe->pe_barwrite(&vm.pi, E82574_BAR_FLASH, 0, size, 0);
		pe->pe_barwrite(&vm.pi, E82545_BAR_IO, 8, size, 0);
	}
	vm_wr(E82545_CTRL, E82545_CTRL_SLU);
	ATF_CHECK((vm_rd(E82545_STATUS) & E82545_STATUS_LU) != 0);
	/* The adapter's own identity, in its EEPROM. */
	vm_wr(E82545_EERD, 0x0d << 2 | 1);
	ATF_CHECK_EQ(0x10d30000U, vm_rd(E82545_EERD) & 0xffff0000U);
	vm_wr(E82545_EERD, 0x0b << 2 | 1);
	ATF_CHECK_EQ(0xa01f0000U, vm_rd(E82545_EERD) & 0xffff0000U);
}

/* The one line that bhyve prints when it cannot create the adapter. */
static const char *
init_said(const char *opts)
{
	static char line[256];
	size_t len;

	said_start();
	errno = 0;
	ATF_CHECK(init(opts) != 0);
	ATF_CHECK(errno == EINVAL || errno == ENXIO);
	strlcpy(line, said(), sizeof(line));
	len = strcspn(line, "\r\n");
	ATF_CHECK_STREQ("\n", line + len + strspn(line + len, "\r"));
	line[len] = '\0';
	return (line);
}

TEST(options, "The device takes the options of e1000; one line, with the "
    "device's name, says which is invalid")
{
	static const struct {
		const char *opts, *said;
	} bad[] = {
		{ NULL, "no network backend given" },
		{ "wire0,mac=01:00:00:00:00:01", "mac=01:00:00:00:00:01: "
		    "not a unicast Ethernet address" },
		{ "wire0,mtu=67", "mtu=67: too small, must be 68 to 16110" },
		{ "wire0,itr=65536", "itr=65536: too large, must be 0 to "
		    "65535" },
		{ "wire0,itr_min=x", "itr_min=x: invalid, must be 0 to 65535" },
		{ "wire0,csb=1", "csb=1: must be on, compat or off" },
		{ "wire0,msix=off", "unknown option \"msix\"" },
	};
	char expect[256];
	size_t i;

	for (i = 0; i < nitems(bad); i++) {
		snprintf(expect, sizeof(expect), "e1000e 2:0: %s",
		    bad[i].said);
		ATF_CHECK_STREQ(expect, init_said(bad[i].opts));
	}
	vm.no_bars = true;
	ATF_CHECK_STREQ("e1000e 2:0: no address space for its BARs",
	    init_said("wire0"));
	vm.no_bars = false;
	ATF_CHECK_EQ(vm.opens, vm.cleanups);
	ATF_REQUIRE_EQ(0, init("wire0,mac=02:04:06:08:0a:0c,mtu=1500,itr=1,"
	    "itr_min=2,csb=on,device=e1000e"));
	ATF_CHECK_EQ(0x08060402, vm_rd(E82545_RAL(0)));
	vm_wr(E82545_CSBAH, 1);
	ATF_CHECK_EQ(1, vm_rd(E82545_CSBAH));
}

TEST(table, "The table of MSI-X takes whole words, and nothing else changes "
    "it; the pending bits cannot be written")
{
	uint64_t off;
	unsigned int v;

	ATF_REQUIRE_EQ(0, init("wire0"));
	for (v = 0; v < E82574_VECTORS; v++) {
		ATF_CHECK_EQ(0, table_read(ENTRY(v), 8));
		ATF_CHECK_EQ(1, table_read(CONTROL(v), 4));
		table_write(ENTRY(v), 8, 0x11223344fee00000 + v);
		table_write(ENTRY(v) + 8, 4, 0x4100 + v);
	}
	for (v = 0; v < E82574_VECTORS; v++) {
		ATF_CHECK_EQ(0xfee00000 + v, table_read(ENTRY(v), 4));
		ATF_CHECK_EQ(0x11223344, table_read(ENTRY(v) + 4, 4));
		ATF_CHECK_EQ(0x100004100 + v, table_read(ENTRY(v) + 8, 8));
	}
	for (off = TABLE_END; off < 2 * VM_PBA; off += 4) {
		table_write(off, 4, 0);
		ATF_CHECK_EQ(off == VM_PBA || off == VM_PBA + 4 ? 0 :
		    UINT64_MAX, table_read(off, 4));
	}
	table_write(VM_PBA, 8, 0x1f);
	ATF_CHECK_EQ(0, table_read(VM_PBA, 8));
	for (off = 0; off < TABLE_END; off++) {
		table_write(off, 1, 0);
		table_write(off, 2, 0);
		if (off % 4 != 0)
			table_write(off, 4, 0);
		if (off % 8 != 0)
			table_write(off, 8, 0);
	}
	for (v = 0; v < E82574_VECTORS; v++) {
		ATF_CHECK_EQ(0x11223344fee00000 + v, table_read(ENTRY(v), 8));
		ATF_CHECK_EQ(0x100004100 + v, table_read(ENTRY(v) + 8, 8));
	}
	/* None of this is a register. */
	ATF_CHECK_EQ(0, vm_rd(E82545_RDBAL));
}

TEST(masked, "The message of a vector that is masked is pending, and is sent "
    "once when it no longer is; others are not held up")
{
	int how;

	start();
	for (how = 0; how < 2; how++) {
		if (how == 0)
			vm_mask(VECTOR_TX, true);
		else
			vm_msix(true, true);
		raise_vector(VECTOR_TX);
		raise_vector(VECTOR_TX);
		CHECK_MESSAGES(0, 0, 0);
		ATF_CHECK_EQ(1 << VECTOR_TX, table_read(VM_PBA, 8));
		ATF_CHECK_EQ(1 << VECTOR_TX, table_read(VM_PBA, 4));
		ATF_CHECK_EQ(0, table_read(VM_PBA + 4, 4));
		ATF_CHECK_EQ(UINT64_MAX, table_read(VM_PBA, 2));
		/* Another is masked only with the whole function. */
		raise_vector(VECTOR_RX);
		CHECK_MESSAGES(how == 0, 0, 0);
		if (how == 0)
			ATF_CHECK_EQ(1 << VECTOR_TX, table_read(VM_PBA, 8));
		/* Writing the message itself unmasks nothing. */
		table_write(ENTRY(VECTOR_TX) + 8, 4, 0x41);
		CHECK_MESSAGES(0, 0, 0);
		if (how == 0)
			vm_mask(VECTOR_TX, false);
		else
			vm_msix(true, false);
		CHECK_MESSAGES(how, 1, 0);
		ATF_CHECK_EQ(0, table_read(VM_PBA, 8));
		raise_vector(VECTOR_TX);
		CHECK_MESSAGES(0, 1, 0);
	}
	/* A vector that is masked in both ways, and one only in the table. */
	vm_mask(VECTOR_OTHER, true);
	vm_msix(true, true);
	raise_vector(VECTOR_OTHER);
	raise_vector(VECTOR_RX);
	vm_msix(true, false);
	CHECK_MESSAGES(1, 0, 0);
	ATF_CHECK_EQ(1 << VECTOR_OTHER, table_read(VM_PBA, 8));
	vm_msix(true, true);
	vm_mask(VECTOR_OTHER, false);
	CHECK_MESSAGES(0, 0, 0);
	vm_msix(true, false);
	CHECK_MESSAGES(0, 0, 1);
	ATF_CHECK_EQ(0, vm.asserts);
	/* Without MSI-X none is sent, either. */
	vm_mask(VECTOR_OTHER, true);
	raise_vector(VECTOR_OTHER);
	vm_msix(false, false);
	vm_mask(VECTOR_OTHER, false);
	CHECK_MESSAGES(0, 0, 0);
	ATF_CHECK_EQ(1 << VECTOR_OTHER, table_read(VM_PBA, 8));
	vm_wr(E82545_IMC, UINT32_MAX);
	vm_msix(true, false);
	CHECK_MESSAGES(0, 0, 1);
}

TEST(fallback, "Without MSI-X, and with MSI, which overrides it, causes that "
    "are left assert the line or send the message of MSI")
{
	start();
	raise_vector(VECTOR_OTHER);
	CHECK_MESSAGES(0, 0, 1);
	ATF_CHECK(!vm.line);
	vm_msix(false, false);
	ATF_CHECK(vm.line);
	ATF_CHECK_EQ(1, vm.asserts);
	ATF_CHECK_EQ(0, vm.msis);
	/* Back: the line goes down, and the vector sends once more. */
	vm_msix(true, false);
	ATF_CHECK(!vm.line);
	CHECK_MESSAGES(0, 0, 1);
	/* MSI is on, too. */
	vm_capability(VM_CAP_MSI, 2, 1);
	ATF_CHECK_EQ(1, vm.msis);
	CHECK_MESSAGES(0, 0, 0);
	vm_wr(E82545_IMC, UINT32_MAX);
	ATF_CHECK(!vm.line);
	vm_wr(E82545_IMS, E82545_ICR_LSC);
	vm_wr(E82545_ICS, E82545_ICR_LSC);
	ATF_CHECK_EQ(2, vm.msis);
	CHECK_MESSAGES(0, 0, 0);
	vm_capability(VM_CAP_MSI, 2, 0);
	ATF_CHECK(!vm.line);
	/* What else is in configuration space is bhyve's. */
	ATF_CHECK(vm.pi.pi_d->pe_cfgwrite(&vm.pi, VM_CAP_END - 1, 1, 0) == 0);
	ATF_CHECK(vm.pi.pi_d->pe_cfgwrite(&vm.pi, VM_CAP_END, 4, 0) != 0);
	ATF_CHECK(vm.pi.pi_d->pe_cfgwrite(&vm.pi, PCIR_INTLINE, 4, 0) != 0);
	vm_command(PCIM_CMD_BUSMASTEREN);
	ATF_CHECK_EQ(PCIM_CMD_BUSMASTEREN, vm_cfg16(PCIR_COMMAND));
}

TEST(race, "No message is lost while the guest masks its vector and unmasks "
    "it again")
{
	int i, toggle;

	start();
	for (i = 0; i < 200; i++) {
		memset(vm.messages, 0, sizeof(vm.messages));
		vm_wr(E82545_IMS, E82574_ICR_TXQ0);
		vm_transmit(i % RING, 60, i);
		vm_wr(E82545_TDT, (i + 1) % RING);
		for (toggle = 0; toggle < 20; toggle++) {
			vm_mask(VECTOR_TX, true);
			if (toggle % 2 == 0)
				vm_msix(true, true);
			vm_mask(VECTOR_TX, false);
			vm_msix(true, false);
		}
		vm_run_until(vm_messaged);
		CHECK_MESSAGES(0, 1, 0);
		ATF_CHECK_EQ(0, table_read(VM_PBA, 8));
	}
	vm_expected = 200;
	vm_run_until(vm_sent);
}

TEST(save_restore, "A snapshot has what is pending and what was sent; while "
    "the adapter is paused nothing is sent; one of another adapter, or with "
    "vectors that do not exist, is refused")
{
	static uint8_t saved[1 << 20], other[1 << 20];
	struct pci_devinst config;
	struct msix_table_entry *table, entries[E82574_VECTORS];
	size_t n, othersize, room, size;
	char expect[128];

	/* A snapshot of an 82545EM. */
	vm_device = "e1000";
	ATF_REQUIRE_EQ(0, vm_init("wire0"));
	ATF_REQUIRE_EQ(0, vm.pi.pi_d->pe_pause(&vm.pi));
	othersize = sizeof(other);
	ATF_REQUIRE_EQ(0, vm_snapshot(VM_SNAPSHOT_SAVE, other, &othersize));

	start();
	vm_mask(VECTOR_TX, true);
	raise_vector(VECTOR_TX);
	raise_vector(VECTOR_OTHER);
	CHECK_MESSAGES(0, 0, 1);
	ATF_REQUIRE_EQ(0, vm.pi.pi_d->pe_pause(&vm.pi));
	raise_vector(VECTOR_RX);
	CHECK_MESSAGES(0, 0, 0);
	size = sizeof(saved);
	ATF_REQUIRE_EQ(0, vm_snapshot(VM_SNAPSHOT_SAVE, saved, &size));
	for (room = 0; room < size; room += 100) {
		n = room;
		ATF_CHECK(vm_snapshot(VM_SNAPSHOT_SAVE, other + othersize,
		    &n) != 0);
	}
	ATF_REQUIRE_EQ(0, vm.pi.pi_d->pe_resume(&vm.pi));
	CHECK_MESSAGES(1, 0, 0);
	ATF_CHECK_EQ(1 << VECTOR_TX, table_read(VM_PBA, 8));

	/*
	 * A new process, in which bhyve restores configuration space and table
	 * before.
	 */
	config = vm.pi;
	memcpy(entries, config.pi_msix.table, sizeof(entries));
	ATF_REQUIRE_EQ(0, init("wire0,mac=02:00:00:00:00:09"));
	ATF_REQUIRE_EQ(0, vm.pi.pi_d->pe_pause(&vm.pi));
	strlcpy(vm.pi.pi_name, "e1000e@pci.0.2.0", sizeof(vm.pi.pi_name));
	table = vm.pi.pi_msix.table;
	memcpy(table, entries, sizeof(entries));
	vm.pi.pi_msix.enabled = config.pi_msix.enabled;
	memcpy(vm.pi.pi_cfgdata, config.pi_cfgdata, sizeof(config.pi_cfgdata));

	said_start();
	n = othersize;
	ATF_CHECK_EQ(EINVAL, vm_snapshot(VM_SNAPSHOT_RESTORE, other, &n));
	snprintf(expect, sizeof(expect), "%s: cannot be restored: not a "
	    "snapshot of such an e1000e", vm.pi.pi_name);
	ATF_CHECK_EQ(0, strncmp(expect, said(), strlen(expect)));
	for (room = 0; room < size; room += 100) {
		n = room;
		ATF_CHECK(vm_snapshot(VM_SNAPSHOT_RESTORE, saved, &n) != 0);
	}
	/* The pending bits follow the size. */
	ATF_CHECK_EQ(1 << VECTOR_TX | 1 << VECTOR_RX, saved[8]);
	saved[8] |= 1 << E82574_VECTORS;
	n = size;
	ATF_CHECK_EQ(EINVAL, vm_snapshot(VM_SNAPSHOT_RESTORE, saved, &n));
	saved[8] &= ~(1 << E82574_VECTORS);
	saved[size - 1] ^= 1;
	n = size;
	ATF_CHECK_EQ(EINVAL, vm_snapshot(VM_SNAPSHOT_RESTORE, saved, &n));
	saved[size - 1] ^= 1;
	ATF_CHECK_EQ(0, table_read(VM_PBA, 8));
	ATF_CHECK_EQ(0x80000900, vm_rd(E82545_RAH(0)));
	n = size;
	ATF_REQUIRE_EQ(0, vm_snapshot(VM_SNAPSHOT_RESTORE, saved, &n));
	ATF_CHECK_EQ(size, n);
	ATF_CHECK_EQ(1 << VECTOR_TX | 1 << VECTOR_RX, table_read(VM_PBA, 8));
	CHECK_MESSAGES(0, 0, 0);
	ATF_REQUIRE_EQ(0, vm.pi.pi_d->pe_resume(&vm.pi));
	/* Not that of all others: it was sent before. */
	CHECK_MESSAGES(1, 0, 0);
	ATF_CHECK_EQ(0, vm.asserts);
	vm_mask(VECTOR_TX, false);
	CHECK_MESSAGES(0, 1, 0);
	/* MSI-X is on in the model, too. */
	raise_vector(VECTOR_OTHER);
	CHECK_MESSAGES(0, 0, 1);
	ATF_CHECK(!vm.line);
}

TEST_PROGRAM
