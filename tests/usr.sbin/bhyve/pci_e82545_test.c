/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * pci_e82545.c in a virtual machine without bhyve: configuration, interrupts,
 * frames in both directions, counters, snapshots.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <machine/vmm_snapshot.h>
#include <net/paravirt.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "e82545.h"
#include "pci_vm.h"
#include "said.h"
#include "test.h"

TEST(identity, "PCI configuration space, BARs and interrupts are an 82545EM's")
{
	ATF_REQUIRE_EQ(0, vm_init("wire0"));
	ATF_CHECK_EQ(0x8086, vm_cfg16(PCIR_VENDOR));
	ATF_CHECK_EQ(0x100f, vm_cfg16(PCIR_DEVICE));
	ATF_CHECK_EQ(0x8086, vm_cfg16(PCIR_SUBVEND_0));
	ATF_CHECK_EQ(0x1008, vm_cfg16(PCIR_SUBDEV_0));
	ATF_CHECK_EQ(0, vm.pi.pi_cfgdata[PCIR_REVID]);
	ATF_CHECK_EQ(0x0200, vm_cfg16(PCIR_SUBCLASS));
	ATF_CHECK_EQ(0, vm.pi.pi_cfgdata[PCIR_HDRTYPE]);
	ATF_CHECK_EQ(1, vm.pi.pi_cfgdata[PCIR_INTPIN]);
	ATF_CHECK_EQ(PCIBAR_MEM32, vm.bar[0].type);
	ATF_CHECK_EQ(0x20000, vm.bar[0].size);
	ATF_CHECK_EQ(PCIBAR_NONE, vm.bar[1].type);
	ATF_CHECK_EQ(PCIBAR_IO, vm.bar[2].type);
	ATF_CHECK_EQ(8, vm.bar[2].size);
	ATF_CHECK_EQ(1, vm.msi_messages);
	ATF_CHECK(vm.lintr_requested);
	ATF_CHECK_EQ_MSG(1, vm.enables, "receiving starts enabled");
	vm_wr(E82545_CTRL, E82545_CTRL_SLU);
	ATF_CHECK((vm_rd(E82545_STATUS) & E82545_STATUS_LU) != 0);
}

TEST(options, "mac=, mtu=, itr=, itr_min= and csb= have their ranges; other "
    "options end bhyve, and leave nothing open")
{
	static const char * const bad[] = { NULL, "", "nosuch0",
	    "wire0,mac=01:00:00:00:00:01", "wire0,mac=x", "wire0,itr=-1",
	    "wire0,itr=65536", "wire0,itr=", "wire0,itr=1us", "wire0,itr",
	    "wire0,itr_min=-1", "wire0,itr_min=65536", "wire0,itr_min=",
	    "wire0,mtu=67", "wire0,mtu=big", "wire0,csb=", "wire0,csb=1",
	    "wire0,irt=488", "wire0,it=488", "wire0,itr_=488", "wire0,itrr",
	    "wire0,csb=on,itr-min=1" };
	char opts[64];
	size_t i;

	for (i = 0; i < nitems(bad); i++) {
		errno = 0;
		ATF_CHECK_MSG(vm_init(bad[i]) != 0, "%s", bad[i]);
		ATF_CHECK_MSG(errno == EINVAL || errno == ENXIO, "%s: %s",
		    bad[i], strerror(errno));
	}
	snprintf(opts, sizeof(opts), "wire0,mtu=%d", E82545_FRAME_MAX - 17);
	ATF_CHECK(vm_init(opts) != 0);
	vm.no_bars = true;
	ATF_CHECK(vm_init("wire0") != 0);
	vm.no_bars = false;
	ATF_CHECK_EQ(vm.opens, vm.cleanups);

	ATF_CHECK_EQ(0, vm_init("wire0,mac=02:04:06:08:0a:0c,itr=0,mtu=68"));
	ATF_CHECK_EQ(0x08060402, vm_rd(E82545_RAL(0)));
	ATF_CHECK_EQ(0x80000c0a, vm_rd(E82545_RAH(0)));
	snprintf(opts, sizeof(opts), "wire0,itr=65535,mtu=%d",
	    E82545_FRAME_MAX - 18);
	ATF_CHECK_EQ(0, vm_init(opts));
	ATF_CHECK((vm_rd(E82545_RAL(0)) & 1) == 0);
	/* Of other backends, and bhyve's. */
	ATF_CHECK_EQ(0, vm_init("wire0,path=x,hook=x,peerhook=x,"
	    "socket=x,open,hostfwd=x,device=e1000"));
	ATF_CHECK_EQ(vm.opens, vm.cleanups + 3);
}

/* Starts bhyve's device with `opts', and returns what it printed first. */
static const char *
init_said(const char *opts)
{
	static char line[256];

	said_start();
	(void)vm_init(opts);
	strlcpy(line, said(), sizeof(line));
	line[strcspn(line, "\r\n")] = '\0';
	return (line);
}

/*
 * What csb= makes of an adapter that has `subdevice' without it.  The word's
 * number begins at this bit in EERD.
 */
static void
check_csb(int cap, uint16_t subdevice, int eerd)
{
	static const struct {
		const char *opts;
		bool cap, compat;
	} rows[] = {
		{ "wire0,csb=off", false, false }, { "wire0", true, false },
		{ "wire0,csb=on", true, false },
		{ "wire0,csb=compat", true, true },
	};
	static const uint8_t capability[] = { 0x09, 0, 12, 0, 'P', 'C', 'S',
	    'B', 1, 0, 0, 0 };
	uint8_t off[PCI_REGMAX + 1];
	uint16_t id;
	size_t i;
	int b;

	for (i = 0; i < nitems(rows); i++) {
		ATF_REQUIRE_EQ(0, vm_init(rows[i].opts));
		id = rows[i].compat ? 0x1101 : subdevice;
		ATF_CHECK_EQ(id, vm_cfg16(PCIR_SUBDEV_0));
		vm_wr(E82545_EERD, 0x0b << eerd | 1);
		ATF_CHECK_EQ(id, vm_rd(E82545_EERD) >> 16);
		ATF_CHECK_EQ(rows[i].cap ? cap : 0, vm_csb());
		vm_wr(E82545_CSBAH, 1);
		ATF_CHECK_EQ(rows[i].cap, vm_rd(E82545_CSBAH));
		if (i == 0) {
			memcpy(off, vm.pi.pi_cfgdata, sizeof(off));
			continue;
		}
		/* The guest cannot change it. */
		for (b = 0; b < 12; b++)
			vm_capability(cap + b, 1, 0xa5);
		for (b = 0; b < 12; b += 4)
			vm_capability(cap + b, 4, 0x5a5a5a5a);
		ATF_CHECK_EQ(0, memcmp(capability, vm.pi.pi_cfgdata + cap,
		    sizeof(capability)));
		/* But for it and what leads there, nothing differs. */
		memset(vm.pi.pi_cfgdata + cap, 0, sizeof(capability));
		for (b = 0x40; vm.pi.pi_cfgdata[b + PCICAP_NEXTPTR] != cap;
		    b = vm.pi.pi_cfgdata[b + PCICAP_NEXTPTR])
			continue;
		vm.pi.pi_cfgdata[b + PCICAP_NEXTPTR] = 0;
		if (rows[i].compat)
			pci_set_cfgdata16(&vm.pi, PCIR_SUBDEV_0, subdevice);
		ATF_CHECK_EQ(0, memcmp(off, vm.pi.pi_cfgdata, sizeof(off)));
	}
}

TEST(csb, "csb=on and csb=compat add a capability that cannot be written; "
    "csb=compat has another subsystem ID, and nothing else differs from csb=off")
{
	check_csb(0x50, 0x1008, 8);
	vm_device = "e1000e";
	check_csb(VM_CAP_CSB, 0xa01f, 2);
}

TEST(mac, "mac= is a unicast address; others are refused with the adapter's "
    "name")
{
	static const char * const bad[] = { "", "x", "02:00:00:00:00",
	    "02:00:00:00:00:01:02", "01:00:00:00:00:01", "00:00:00:00:00:00",
	    "02:00:00:00:00:0g", "02-00-00-00-00-01", "02:00:00:00:00:123",
	    "02:00:00:00:00:1 ", "020000000001", "0x:00:00:00:00:01",
	    "ff:ff:ff:ff:ff:ff" };
	char expect[128], opts[64];
	size_t i;

	for (i = 0; i < nitems(bad); i++) {
		snprintf(opts, sizeof(opts), "wire0,mac=%s", bad[i]);
		snprintf(expect, sizeof(expect), "e1000 2:0: mac=%s: not a "
		    "unicast Ethernet address", bad[i]);
		ATF_CHECK_STREQ(expect, init_said(opts));
	}
	ATF_CHECK_STREQ("e1000 2:0: itr=65536: too large, must be 0 to 65535",
	    init_said("wire0,itr=65536"));
	ATF_CHECK_STREQ("e1000 2:0: csb=1: must be on, compat or off",
	    init_said("wire0,csb=1"));
	ATF_CHECK_EQ(vm.opens, vm.cleanups);

	ATF_REQUIRE_EQ(0, vm_init("wire0,mac=02:aB:0:1:0c:fF"));
	ATF_CHECK_EQ(0x0100ab02, vm_rd(E82545_RAL(0)));
	ATF_CHECK_EQ(0x8000ff0c, vm_rd(E82545_RAH(0)));
	ATF_REQUIRE_EQ(0, vm_init("wire0,mac=00:00:00:00:00:01"));
	ATF_CHECK_EQ(0x80000100, vm_rd(E82545_RAH(0)));
	/* The default is one, too. */
	ATF_REQUIRE_EQ(0, vm_init("wire0"));
	ATF_CHECK((vm_rd(E82545_RAL(0)) & 1) == 0);
	ATF_CHECK(vm_rd(E82545_RAL(0)) != 0);
}

TEST(status, "Interrupt status is bit 3 of the status register, and follows "
    "the line")
{
	uint32_t stored;
	int bytes, off;

	vm_start("wire0");
	pci_set_cfgdata16(&vm.pi, PCIR_STATUS, PCIM_STATUS_CAPPRESENT);
	pci_set_cfgdata16(&vm.pi, PCIR_INTLINE, 0xa55a);
	vm_wr(E82545_IMS, E82545_ICR_LSC);
	for (bytes = 1; bytes <= 4; bytes *= 2)
		for (off = 0; off <= PCI_REGMAX + 1 - bytes; off += bytes) {
			stored = vm_cfg(off, bytes);
			vm_wr(E82545_ICS, E82545_ICR_LSC);
			vm_run_until(vm_line_up);
			if (off <= 6 && off + bytes > 6)
				ATF_CHECK_EQ(stored | 8U << 8 * (6 - off),
				    vm_cfg(off, bytes));
			else
				ATF_CHECK_EQ(stored, vm_cfg(off, bytes));
			vm_rd(E82545_ICR);
			ATF_CHECK_EQ(stored, vm_cfg(off, bytes));
		}
	/* Neither the command register nor MSI hides the line's state. */
	vm_command(PCIM_CMD_BUSMASTEREN | PCIM_CMD_INTxDIS);
	vm.msi_on = true;
	vm_wr(E82545_ICS, E82545_ICR_LSC);
	vm_run_until(vm_line_up);
	ATF_CHECK_EQ(PCIM_STATUS_CAPPRESENT | PCIM_STATUS_INTxSTATE,
	    vm_cfg(PCIR_STATUS, 2));
}

TEST(timer, "The timer sends an interrupt that was delayed by ITR or, if that "
    "is 0, by itr=, or by itr_min=")
{
	static const char * const opts[] = { "wire0", "wire0,itr=65535",
	    "wire0,itr_min=65535" };
	size_t i;
	int before;

	for (i = 0; i < nitems(opts); i++) {
		vm_start(opts[i]);
		if (i == 0)
			vm_wr(E82545_ITR, 65535);		/* 16.8 ms */
		else if (i == 2)
			vm_wr(E82545_ITR, 1);
		vm_wr(E82545_IMS, E82545_ICR_LSC);
		vm_wr(E82545_ICS, E82545_ICR_LSC);
		vm_run_until(vm_line_up);
		vm_rd(E82545_ICR);
		before = vm.asserts;
		vm_wr(E82545_ICS, E82545_ICR_LSC);
		vm_run_until(vm_line_up);
		ATF_CHECK_EQ(before + 1, vm.asserts);
		vm_rd(E82545_ICR);
		ATF_CHECK(!vm.line);
	}
}

/* A frame by a kick, after which the adapter polls the CSB for a while. */
static void
polls(struct paravirt_csb *csb, uint32_t tail)
{
	vm_transmit((tail + RING - 1) % RING, 60, 1);
	atomic_store_rel_32(&csb->guest_tdt, tail);
	vm_wr(E82545_TDT, tail);
	while (atomic_load_acq_32(&csb->host_tdh) != tail)
		continue;
}

/* An interrupt at once, and one that is delayed.  Returns whether it is. */
static bool
delayed(void)
{
	vm_wr(E82545_ICS, E82545_ICR_LSC);
	vm_rd(E82545_ICR);
	vm_wr(E82545_ICS, E82545_ICR_LSC);
	return (!vm_is(vm_line_up));
}

TEST(timer_polls, "The timer sends an interrupt while the adapter polls the "
    "CSB, not after it")
{
	struct paravirt_csb *csb = (void *)(vm_ram + CSB);
	uint32_t i;

	vm_start("wire0");
	csb->guest_csb_on = 1;
	csb->host_txcycles_lim = 65536;
	vm_wr(E82545_CSBAL, CSB);
	/* 100 us: the adapter polls for 200. */
	vm_wr(E82545_ITR, 390);
	vm_wr(E82545_IMS, E82545_ICR_LSC);
	/* If this thread does not run, it may be too late, or not delayed. */
	for (i = 1; i < 1000; i++) {
		vm_rd(E82545_ICR);
		usleep(2000);
		polls(csb, i % RING);
		if (!delayed())
			continue;
		vm_run_until(vm_line_up);
		if (!vm.need_txkick)
			return;
	}
	atf_tc_fail("the interrupts came when the adapter slept");
}

TEST(receive, "Frames are received by the event loop; without descriptors "
    "they wait in the backend, with its event disabled, until RDT changes")
{
	uint8_t frame[300];
	int i;

	vm_start("wire0");
	vm_wr(E82545_IMS, E82545_ICR_RXT0);
	for (i = 0; i < 5; i++) {
		vm_frame(frame, sizeof(frame), i);
		ATF_REQUIRE_EQ(300, send(vm.wire, frame, sizeof(frame), 0));
	}
	vm_wr(E82545_RDT, 2);
	vm_expected = 2;
	vm_run_until(vm_received);
	vm_run_until(vm_line_up);
	vm_run_ten_ms();
	ATF_CHECK_EQ_MSG(0, vm_ram[RX_BUF + 2 * 2048], "beyond the tail");
	ATF_CHECK(vm.disables > 0);
	ATF_CHECK_MSG(vm.disables <= 2, "spins: %d", vm.disables);

	vm_wr(E82545_RDT, 10);
	vm_expected = 5;
	vm_run_until(vm_received);
	for (i = 0; i < 5; i++) {
		vm_frame(frame, sizeof(frame), i);
		ATF_CHECK_EQ(0, memcmp(frame, vm_ram + RX_BUF + 2048 * i,
		    sizeof(frame)));
	}

	/* The event is enabled again. */
	vm_frame(frame, sizeof(frame), 9);
	ATF_REQUIRE_EQ(300, send(vm.wire, frame, sizeof(frame), 0));
	vm_expected = 6;
	vm_run_until(vm_received);
}

TEST(bus_master, "With bus mastering off guest memory stays as it is; frames "
    "go in both directions when it is on again")
{
	static uint8_t saved[RAM_SIZE];
	uint8_t frame[300];
	int other;

	vm_start("wire0");
	vm_wr(E82545_RDT, RING - 1);
	vm_transmit(0, 200, 1);
	vm_frame(frame, sizeof(frame), 2);
	vm_wr(E82545_CSBAL, CSB);
	vm_command(0);
	ATF_CHECK_EQ(0, vm_cfg16(PCIR_COMMAND));
	memset(vm_ram + CSB, 0xaa, 4096);
	memcpy(saved, vm_ram, RAM_SIZE);
	ATF_REQUIRE_EQ(300, send(vm.wire, frame, sizeof(frame), 0));
	vm_wr(E82545_TDT, 1);
	vm.disables = 0;
	vm_run_ten_ms();
	ATF_CHECK_MSG(vm.disables <= 2, "spins: %d", vm.disables);
	/* Other registers do not turn it on. */
	for (other = 0; other <= PCI_REGMAX; other++)
		if (other != PCIR_COMMAND)
			ATF_CHECK(vm.pi.pi_d->pe_cfgwrite(&vm.pi, other,
			    1, 0xff) != 0);
	vm_run_ten_ms();
	ATF_CHECK_EQ(0, vm.sent);
	ATF_CHECK_EQ(0, memcmp(saved, vm_ram, RAM_SIZE));

	memset(vm_ram + CSB, 0, 4096);
	vm_command(PCIM_CMD_BUSMASTEREN);
	vm_expected = 1;
	vm_run_until(vm_sent);
	vm_run_until(vm_received);
	ATF_CHECK_EQ(0, memcmp(frame, vm_ram + RX_BUF, sizeof(frame)));

	vm_command(0);
	memcpy(saved, vm_ram, RAM_SIZE);
	vm_wr(E82545_TDT, 1);
	vm_wr(E82545_CTRL, E82545_CTRL_RST);
	vm_run_ten_ms();
	ATF_CHECK_EQ(0, memcmp(saved, vm_ram, RAM_SIZE));
}

TEST(loopback, "A frame looped back is received without a frame in the backend")
{
	vm_start("wire0");
	vm_wr(E82545_RCTL, vm_rd(E82545_RCTL) | E82545_RCTL_LBM_MAC);
	vm_wr(E82545_RDT, RING - 1);
	vm_transmit(0, 200, 5);
	vm_wr(E82545_TDT, 1);
	vm_expected = 1;
	vm_run_until(vm_received);
	ATF_CHECK_EQ(0, memcmp(vm_ram + TX_BUF, vm_ram + RX_BUF, 200));
	ATF_CHECK_EQ(0, vm.sent);
}

TEST(save_restore, "An adapter is saved under traffic and restored; while "
    "paused it asserts no line, leaves frames in the backend and does not "
    "spin; an invalid snapshot changes nothing")
{
	static uint8_t saved[1 << 20], spoilt[1 << 20];
	uint8_t frame[300];
	size_t n, room, size;
	int i;

	vm_start("wire0");
	vm_wr(E82545_RDT, 2);
	for (i = 0; i < 5; i++) {
		vm_frame(frame, sizeof(frame), i);
		ATF_REQUIRE_EQ(300, send(vm.wire, frame, sizeof(frame), 0));
	}
	vm_expected = 2;
	vm_run_until(vm_received);
	vm_wr(E82545_IMS, E82545_ICR_LSC);
	vm_wr(E82545_ICS, E82545_ICR_LSC);
	ATF_CHECK(vm.line);

	ATF_REQUIRE_EQ(0, vm.pi.pi_d->pe_pause(&vm.pi));
	ATF_CHECK(!vm.line);
	vm.disables = 0;
	vm_run_ten_ms();
	ATF_CHECK_MSG(vm.disables <= 2, "spins: %d", vm.disables);
	size = sizeof(saved);
	ATF_REQUIRE_EQ(0, vm_snapshot(VM_SNAPSHOT_SAVE, saved, &size));
	for (room = 0; room < size; room += 100) {
		n = room;
		ATF_CHECK(vm_snapshot(VM_SNAPSHOT_SAVE, spoilt, &n) != 0);
	}
	ATF_REQUIRE_EQ(0, vm.pi.pi_d->pe_resume(&vm.pi));
	ATF_CHECK(vm.line);

	/* A new process pauses the adapter before it was ever used. */
	ATF_REQUIRE_EQ(0, vm_init("wire0,mac=02:00:00:00:00:09"));
	vm.line = false;
	vm.asserts = 0;
	vm.msi_on = true;
	ATF_REQUIRE_EQ(0, vm.pi.pi_d->pe_pause(&vm.pi));
	for (room = 0; room < size; room += 100) {
		n = room;
		ATF_CHECK(vm_snapshot(VM_SNAPSHOT_RESTORE, saved, &n) != 0);
	}
	memcpy(spoilt, saved, size);
	for (i = 0; i < 200; i++) {
		n = size;
		spoilt[i] ^= 0x80;
		ATF_CHECK(vm_snapshot(VM_SNAPSHOT_RESTORE, spoilt, &n) != 0);
		spoilt[i] ^= 0x80;
	}
	ATF_CHECK_EQ(0x80000900, vm_rd(E82545_RAH(0)));
	n = size;
	/* bhyve has restored the command register, with bus mastering off. */
	pci_set_cfgdata8(&vm.pi, PCIR_COMMAND, 0);
	ATF_REQUIRE_EQ(0, vm_snapshot(VM_SNAPSHOT_RESTORE, saved, &n));
	ATF_CHECK_EQ(size, n);
	ATF_CHECK(!vm.line);
	ATF_REQUIRE_EQ(0, vm.pi.pi_d->pe_resume(&vm.pi));
	ATF_CHECK(vm.line);
	ATF_CHECK_EQ(1, vm.asserts);
	ATF_CHECK_EQ_MSG(0, vm.msis, "its message came before the save");
	vm.msi_on = false;
	ATF_CHECK((vm_rd(E82545_ICR) & E82545_ICR_LSC) != 0);
	ATF_CHECK(!vm.line);

	/* The rings continue where they were. */
	for (i = 2; i < 5; i++) {
		vm_frame(frame, sizeof(frame), i);
		ATF_REQUIRE_EQ(300, send(vm.wire, frame, sizeof(frame), 0));
	}
	vm_wr(E82545_RDT, 10);
	vm_run_ten_ms();
	ATF_CHECK_EQ(2, vm_rd(E82545_RDH));
	vm_command(PCIM_CMD_BUSMASTEREN);
	vm_expected = 5;
	vm_run_until(vm_received);
	for (i = 0; i < 5; i++) {
		vm_frame(frame, sizeof(frame), i);
		ATF_CHECK_EQ(0, memcmp(frame, vm_ram + RX_BUF + 2048 * i,
		    sizeof(frame)));
	}
	vm_transmit(0, 1000, 7);
	vm_expected = 1;
	vm.sent = 0;
	vm_wr(E82545_TDT, 1);
	vm_run_until(vm_sent);
	vm_frame(frame, sizeof(frame), 7);
	ATF_CHECK_EQ(0, memcmp(frame, vm.frame, sizeof(frame)));
}

static char info[16384];		/* what SIGINFO printed */
static FILE *info_file;

static bool
info_complete(void)
{
	size_t n;

	rewind(info_file);
	n = fread(info, 1, sizeof(info) - 1, info_file);
	info[n] = '\0';
	return (strstr(info, "rx_overmtu") != NULL);
}

TEST_WITH(counters, "timeout", "60", "SIGINFO prints the counters of the "
    "adapter and of its frame port")
{
	static const char *const lines[] = {
		"e1000 2:0: tx_frames 2\n", "e1000 2:0: tx_kicks 1\n",
		"e1000 2:0: tx_overmtu 1\n", "e1000 2:0: rx_frames 1\n",
		"e1000 2:0: rx_overmtu 2\n"
	};
	uint8_t frame[600] = { 0 };
	size_t i;
	int saved;

	vm_start("wire0,mtu=500");
	vm_wr(E82545_RDT, RING - 1);
	vm_transmit(0, 519, 0);
	vm_transmit(1, 518, 1);
	vm_wr(E82545_TDT, 2);
	vm_expected = 1;
	vm_run_until(vm_sent);
	ATF_REQUIRE_EQ(519, send(vm.wire, frame, 519, 0));
	ATF_REQUIRE_EQ(520, send(vm.wire, frame, 520, 0));
	ATF_REQUIRE_EQ(518, send(vm.wire, frame, 518, 0));
	vm_run_until(vm_received);

	info_file = tmpfile();
	ATF_REQUIRE(info_file != NULL);
	/* Reading moves the offset. */
	ATF_REQUIRE(fcntl(fileno(info_file), F_SETFL, O_APPEND) != -1);
	saved = dup(STDERR_FILENO);
	ATF_REQUIRE(dup2(fileno(info_file), STDERR_FILENO) != -1);
	ATF_REQUIRE_EQ(0, kill(getpid(), SIGINFO));
	vm_run_until(info_complete);
	ATF_REQUIRE(dup2(saved, STDERR_FILENO) != -1);
	for (i = 0; i < nitems(lines); i++)
		ATF_CHECK_MSG(strstr(info, lines[i]) != NULL, "%snot in\n%s",
		    lines[i], info);
	ATF_CHECK(strstr(info, " 0\n") == NULL);
}

TEST_PROGRAM
