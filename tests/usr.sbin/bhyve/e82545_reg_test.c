/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The registers of the 82545EM through its BARs: reset values, writable bits,
 * side effects, access rules.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <errno.h>
#include <string.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "e82545_regs.h"

HOST_TEST(registers, host_create(HOST_RAM), "Values after reset, bits that can "
    "be written, and offsets without a register")
{
	check_registers(h, regs, nregs);
}

TEST(access_rules, "Accesses of other sizes, and beyond the BAR")
{
	static const int sizes[] = { 1, 2, 3, 4, 5, 8, 16, 0, -1, -8 };
	static const int bars[] = { -1, 0, 1, 2, 3, 6, 1000 };
	static const uint64_t offs[] = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 0xd, 0x28, 0x29, 0x2a, 0x2b, 0x2c,
		0x5fff, 0x9ffc, 0x9ffd, 0xa000, 0x1fff8, 0x1fffc, 0x1fffe,
		0x1ffff, 0x20000, 0x20004, 0xffffffff, 0x100000000,
		0x100000028, UINT64_MAX - 7, UINT64_MAX - 3, UINT64_MAX
	};
	struct host *h;
	unsigned int b, i, j;
	uint64_t limit, ones, v;
	bool ok;

	h = host_create(HOST_RAM);
	host_wr(h, E82545_FCAL, 0x11223344);
	host_wr(h, E82545_FCAH, 0x5566);
	for (b = 0; b < nitems(bars); b++)
		for (i = 0; i < nitems(offs); i++)
			for (j = 0; j < nitems(sizes); j++) {
				limit = bars[b] == 0 ? 0x20000 :
				    bars[b] == 2 ? 8 : 0;
				ok = (sizes[j] == 1 || sizes[j] == 2 ||
				    sizes[j] == 4 || sizes[j] == 8) &&
				    offs[i] < limit &&
				    limit - offs[i] >= (unsigned)sizes[j];
				if (ok)
					continue;
				ones = sizes[j] == 1 ? 0xff :
				    sizes[j] == 2 ? 0xffff :
				    sizes[j] == 4 ? 0xffffffff : UINT64_MAX;
				e82545_write(h->dev, bars[b], offs[i],
				    sizes[j], 0xa5a5a5a5a5a5a5a5);
				v = e82545_read(h->dev, bars[b], offs[i],
				    sizes[j]);
				ATF_CHECK_MSG(v == ones,
				    "bar %d, offset %#jx, size %d: %#jx",
				    bars[b], (uintmax_t)offs[i], sizes[j],
				    (uintmax_t)v);
			}
	ATF_CHECK_EQ(0x11223344, host_rd(h, E82545_FCAL));
	ATF_CHECK_EQ(0x5566, host_rd(h, E82545_FCAH));
	host_wr(h, E82545_FCAL, 0);
	host_wr(h, E82545_FCAH, 0);
	check_reset_values(h);

	/* An access of 64 bits reaches two registers. */
	e82545_write(h->dev, 0, E82545_FCAL, 8, 0x99991234cafef00d);
	ATF_CHECK_EQ(0xcafef00d, host_rd(h, E82545_FCAL));
	ATF_CHECK_EQ(0x1234, host_rd(h, E82545_FCAH));
	ATF_CHECK_EQ(0x1234cafef00d, e82545_read(h->dev, 0, E82545_FCAL, 8));
	host_destroy(h);
}

/* Some registers with values, as the bytes that the bus would show. */
static void
narrow_fill(struct host *h, uint8_t *bytes, size_t n)
{
	unsigned int i;

	for (i = 0; i < n / 4; i++) {
		host_wr(h, E82545_MTA + 4 * i, 0x04030201 + 0x04040404 * i);
		le32enc(bytes + 4 * i, 0x04030201 + 0x04040404 * i);
	}
}

TEST(narrow, "Accesses of 1, 2, 4 and 8 bytes at each offset reach these bytes")
{
	static const int sizes[] = { 1, 2, 4, 8 };
	uint8_t bytes[24], want[8], value[8];
	struct host *h;
	unsigned int i, j, off;

	h = host_create(HOST_RAM);
	for (i = 0; i < nitems(sizes); i++)
		for (off = 0; off <= 8; off++) {
			narrow_fill(h, bytes, sizeof(bytes));
			memset(want, 0, sizeof(want));
			memcpy(want, bytes + off, sizes[i]);
			ATF_CHECK_EQ_MSG(le64dec(want), e82545_read(h->dev, 0,
			    E82545_MTA + off, sizes[i]), "%u, %d", off,
			    sizes[i]);
			memset(value, 0xa5, sizeof(value));
			e82545_write(h->dev, 0, E82545_MTA + off, sizes[i],
			    le64dec(value));
			memcpy(bytes + off, value, sizes[i]);
			for (j = 0; j < sizeof(bytes); j += 4)
				ATF_CHECK_EQ_MSG(le32dec(bytes + j),
				    host_rd(h, E82545_MTA + j), "%u, %d: %u",
				    off, sizes[i], j);
		}
	/* Not a byte beyond the BAR. */
	ATF_CHECK_EQ(0, e82545_read(h->dev, 0, 0x1fffe, 2));
	ATF_CHECK_EQ(0xffff, e82545_read(h->dev, 0, 0x1ffff, 2));
	host_destroy(h);
}

HOST_TEST(narrow_effects, host_create(HOST_RAM), "Reading any byte of a "
    "register reads it, once; writing some leaves the others alone")
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		host_wr(h, E82545_ICS, E82545_ICR_LSC | 0x8000);
		ATF_CHECK_EQ(i == 0 ? 0x04 : i == 1 ? 0x80 : 0,
		    e82545_read(h->dev, 0, E82545_ICR + i, 1));
		ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
		reg_count(h, E82545_GPRC, 0x44332211);
		ATF_CHECK_EQ(0x11 * (i + 1),
		    e82545_read(h->dev, 0, E82545_GPRC + i, 1));
		ATF_CHECK_EQ(0, host_rd(h, E82545_GPRC));
	}
	/* Two registers, each once, the first one first. */
	reg_count64(h, E82545_TORL, 0x1122334455667788);
	ATF_CHECK_EQ(0x44556677, e82545_read(h->dev, 0, E82545_TORL + 1, 4));
	ATF_CHECK_EQ(0, host_rd(h, E82545_TORL));
	ATF_CHECK_EQ(0, host_rd(h, E82545_TORH));
	/* A cause that is not in the bytes written stays. */
	host_wr(h, E82545_ICS, E82545_ICR_LSC | 0x8000);
	e82545_write(h->dev, 0, E82545_ICR + 1, 1, 0xff);
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	host_wr(h, E82545_IMS, E82545_ICR_LSC | 0x8000);
	e82545_write(h->dev, 0, E82545_IMC, 1, 0xff);
	ATF_CHECK_EQ(0x8000, host_rd(h, E82545_IMS));
	e82545_write(h->dev, 0, E82545_IMS, 2, E82545_ICR_LSC);
	ATF_CHECK_EQ(0x8000 | E82545_ICR_LSC, host_rd(h, E82545_IMS));
	/* RST is in the highest byte. */
	host_wr(h, E82545_FCAL, 0x1234);
	e82545_write(h->dev, 0, E82545_CTRL, 2, 0x41);
	ATF_CHECK_EQ(0x1234, host_rd(h, E82545_FCAL));
	e82545_write(h->dev, 0, E82545_CTRL + 2, 2, E82545_CTRL_RST >> 16);
	ATF_CHECK_EQ(0, host_rd(h, E82545_FCAL));
	/* As drivers would write TDT. */
	e82545_write(h->dev, 0, E82545_TDT, 2, 0x0123);
	ATF_CHECK_EQ(0x0123, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_KICK));
}

HOST_TEST(narrow_io, host_create(HOST_RAM), "The I/O BAR: reads of all sizes, "
    "writes of 32 bits only")
{
	unsigned int i;

	host_wr(h, E82545_FCAL, 0x44332211);
	e82545_write(h->dev, E82545_BAR_IO, 0, 4, E82545_FCAL);
	for (i = 0; i < 4; i++) {
		ATF_CHECK_EQ(0x11 * (i + 1),
		    e82545_read(h->dev, E82545_BAR_IO, 4 + i, 1));
		ATF_CHECK_EQ(i == 0 ? E82545_FCAL : 0,
		    e82545_read(h->dev, E82545_BAR_IO, i, 1));
		e82545_write(h->dev, E82545_BAR_IO, i, 1, 0xff);
		e82545_write(h->dev, E82545_BAR_IO, 4 + i, 1, 0xff);
	}
	e82545_write(h->dev, E82545_BAR_IO, 4, 2, 0xffff);
	e82545_write(h->dev, E82545_BAR_IO, 2, 4, 0xffffffff);
	ATF_CHECK_EQ(0x3322, e82545_read(h->dev, E82545_BAR_IO, 5, 2));
	ATF_CHECK_EQ(0x22110000, e82545_read(h->dev, E82545_BAR_IO, 2, 4));
	ATF_CHECK_EQ(0x44332211, host_rd(h, E82545_FCAL));
}

TEST(io_bar, "Every register through IOADDR and IODATA")
{
	static const uint32_t bad[] = {
		1, 2, 3, 0x29, 0x20000, 0x20028, 0x80000, 0x80028, 0xfffffffc,
		0xffffffff
	};
	struct host *h;
	unsigned int i, j;
	uint32_t o;

	h = host_create(HOST_RAM);
	FOREACH_REG(i, j, o)
		ATF_CHECK_EQ_MSG(regs[i].reset, reg_io_rd(h, o), "%s",
		    regs[i].name);
	FOREACH_REG(i, j, o) {
		if (regs[i].kind != REG_RW)
			continue;
		reg_io_wr(h, o, 0x5a5a5a5a);
		ATF_CHECK_EQ_MSG(host_rd(h, o), reg_io_rd(h, o), "%s",
		    regs[i].name);
		ATF_CHECK_EQ_MSG(host_rd(h, o) & regs[i].mask,
		    0x5a5a5a5a & regs[i].mask, "%s", regs[i].name);
		reg_io_wr(h, o, regs[i].reset);
	}
	check_reset_values(h);

	for (i = 0; i < nitems(bad); i++) {
		reg_io_wr(h, bad[i], 0);
		ATF_CHECK_EQ_MSG(ALL, reg_io_rd(h, bad[i]), "%#x", bad[i]);
		ATF_CHECK_EQ(bad[i],
		    e82545_read(h->dev, E82545_BAR_IO, 0, 4));
	}
	check_reset_values(h);

	/* Both ports at once. */
	e82545_write(h->dev, E82545_BAR_IO, 0, 8,
	    (uint64_t)0x12345678 << 32 | E82545_FCAL);
	ATF_CHECK_EQ(0x12345678, host_rd(h, E82545_FCAL));
	ATF_CHECK_EQ((uint64_t)0x12345678 << 32 | E82545_FCAL,
	    e82545_read(h->dev, E82545_BAR_IO, 0, 8));

	/* A PCI reset clears IOADDR, a device reset does not. */
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(E82545_FCAL, e82545_read(h->dev, E82545_BAR_IO, 0, 4));
	e82545_reset(h->dev);
	ATF_CHECK_EQ(0, e82545_read(h->dev, E82545_BAR_IO, 0, 4));
	host_destroy(h);
}

HOST_TEST(ctrl, host_create(HOST_RAM), "CTRL and its duplicate, CTRL_EXT's "
    "self-clearing bits, PBA")
{
	host_wr(h, 0x0000, 0x5bfffbff);		/* no RST, no PHY_RST */
	ATF_CHECK_EQ(0x5bfc1be9, host_rd(h, 0x0000));
	ATF_CHECK_EQ(0x5bfc1be9, host_rd(h, 0x0004));
	host_wr(h, 0x0004, 0);
	ATF_CHECK_EQ(0, host_rd(h, 0x0000));
	ATF_CHECK_EQ(0, host_rd(h, 0x0004));

	/* EE_RST loads the station address, and changes nothing else. */
	host_wr(h, E82545_RAL(0), 0);
	host_wr(h, E82545_RAH(0), 0);
	host_wr(h, E82545_RAL(1), 5);
	host_wr(h, E82545_CTRL_EXT, 1 << 4);
	ATF_CHECK_EQ(0, host_rd(h, E82545_RAL(0)));
	ATF_CHECK_EQ(0, host_rd(h, E82545_RAH(0)));
	host_wr(h, E82545_CTRL_EXT, E82545_CTRL_EXT_EE_RST | 1 << 4);
	ATF_CHECK_EQ(1 << 4, host_rd(h, E82545_CTRL_EXT));
	ATF_CHECK_EQ(0x12290c00, host_rd(h, E82545_RAL(0)));
	ATF_CHECK_EQ(0x80005634, host_rd(h, E82545_RAH(0)));
	ATF_CHECK_EQ(5, host_rd(h, E82545_RAL(1)));

	/* The packet buffer is 64 KB. */
	host_wr(h, E82545_PBA, 40);
	ATF_CHECK_EQ(24 << 16 | 40, host_rd(h, E82545_PBA));
	host_wr(h, E82545_PBA, 41);
	ATF_CHECK_EQ(23 << 16 | 41, host_rd(h, E82545_PBA));
	host_wr(h, E82545_PBA, 0x00200000 | 64);
	ATF_CHECK_EQ(64, host_rd(h, E82545_PBA));
	host_wr(h, E82545_PBA, 65);
	ATF_CHECK_EQ(64, host_rd(h, E82545_PBA));
	host_wr(h, E82545_PBA, ALL);
	ATF_CHECK_EQ(64, host_rd(h, E82545_PBA));
}

HOST_TEST(link, host_create(HOST_RAM), "STATUS.LU and LSC follow the cable, "
    "SLU and PHY_RST")
{
#define	EXPECT(lu, lsc)	do {						\
	ATF_CHECK_EQ(lu, (host_rd(h, E82545_STATUS) &			\
	    E82545_STATUS_LU) != 0);					\
	ATF_CHECK_EQ(lsc, host_rd(h, E82545_ICR) == E82545_ICR_LSC);	\
} while (0)
	/* Up from the start; the first write reports it. */
	EXPECT(true, false);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	EXPECT(true, true);
	EXPECT(true, false);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	EXPECT(true, false);
	e82545_link(h->dev, true);
	EXPECT(true, false);
	e82545_link(h->dev, false);
	EXPECT(false, true);
	e82545_link(h->dev, false);
	EXPECT(false, false);
	host_clear(h, E82545_CTRL, E82545_CTRL_SLU);
	EXPECT(false, false);
	e82545_link(h->dev, true);
	EXPECT(false, false);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	EXPECT(true, true);
	host_set(h, E82545_CTRL, E82545_CTRL_PHY_RST);
	EXPECT(false, true);
	host_clear(h, E82545_CTRL, E82545_CTRL_PHY_RST);
	EXPECT(true, true);
	/* A reset does not plug the cable in. */
	e82545_link(h->dev, false);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	EXPECT(false, false);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	EXPECT(false, false);
	e82545_link(h->dev, true);
	EXPECT(true, true);
	/* A reset sets SLU, and a change before any write is reported. */
	host_clear(h, E82545_CTRL, E82545_CTRL_SLU);
	EXPECT(false, true);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	EXPECT(true, false);
	e82545_link(h->dev, false);
	EXPECT(false, true);
	e82545_link(h->dev, true);
	EXPECT(true, true);
#undef EXPECT

	/* Speed and duplex as forced. */
	ATF_CHECK_EQ(E82545_STATUS_FD | E82545_STATUS_LU |
	    E82545_STATUS_SPEED_1000 | E82545_STATUS_ASDV_1000,
	    host_rd(h, E82545_STATUS));
	host_wr(h, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_FRCSPD |
	    E82545_CTRL_FRCDPX | 1 << 8);
	ATF_CHECK_EQ(E82545_STATUS_LU | 1 << 6 | E82545_STATUS_ASDV_1000,
	    host_rd(h, E82545_STATUS));
}

TEST(wakeups, "Register writes that ask the host to transmit and receive")
{
	uint8_t frame[64];
	struct host *h;
	unsigned int i;

	h = host_create(HOST_RAM);
	/* The transmitter is off. */
	host_wr(h, E82545_TDLEN, 128);
	host_wr(h, E82545_TDT, 3);
	ATF_CHECK_EQ(0, h->nkick);
	host_wr(h, E82545_TCTL, E82545_TCTL_PSP);
	ATF_CHECK_EQ(0, h->nkick);
	host_wr(h, E82545_TCTL, E82545_TCTL_EN);
	ATF_CHECK_EQ(1, h->nkick);
	host_wr(h, E82545_TDT, 4);
	ATF_CHECK_EQ(2, h->nkick);
	host_wr(h, E82545_TIDV, 1);
	ATF_CHECK_EQ(2, h->nkick);
	/* The ring has moved. */
	host_wr(h, E82545_TDBAL, 0x10000);
	ATF_CHECK_EQ(3, h->nkick);
	host_wr(h, E82545_TDH, 4);
	ATF_CHECK_EQ(3, h->nkick);
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_TX_KICK));
	ATF_CHECK_EQ(0, h->nready);
	host_destroy(h);

	/* Frames fill the ring; the next one waits for RDT. */
	h = host_create(HOST_RAM);
	host_up(h, 8, 8, 2048);
	ATF_CHECK_EQ(0, h->nkick);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	h->nready = 0;
	for (i = 0; i < 9; i++)
		host_inject(h, frame, sizeof(frame), 1);
	host_run(h);
	ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	ATF_CHECK_EQ(2, host_rx_pending(h));
	ATF_CHECK_EQ(0, h->nready);
	for (i = 0; i < 7; i++)
		ATF_CHECK_EQ(64, host_rx_take(h, frame, sizeof(frame), NULL));
	ATF_CHECK_EQ(0, h->nready);
	host_rx_post(h);
	ATF_CHECK_EQ(1, h->nready);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(64, host_rx_take(h, frame, sizeof(frame), NULL));
	/* Not stalled: RDT has no effect. */
	host_rx_post(h);
	ATF_CHECK_EQ(1, h->nready);
	host_destroy(h);

	/* A ring outside memory, then a valid one. */
	h = host_create(HOST_RAM);
	host_up(h, 8, 8, 2048);
	host_wr(h, E82545_RDBAH, 1);
	h->nready = 0;
	host_inject(h, frame, sizeof(frame), 1);
	host_run(h);
	ATF_CHECK_EQ(1, host_rx_pending(h));
	ATF_CHECK_EQ(0, h->nready);
	host_wr(h, E82545_RDBAH, 0);
	ATF_CHECK_EQ(1, h->nready);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	/* Receive is turned off and on while frames wait for descriptors. */
	for (i = 0; i < 9; i++)
		host_inject(h, frame, sizeof(frame), 1);
	host_run(h);
	ATF_CHECK_EQ(3, host_rx_pending(h));
	host_wr(h, E82545_RCTL, 0);
	ATF_CHECK_EQ(2, h->nready);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(3, host_counter(h, E82545_C_RX_DISABLED));
	host_destroy(h);
}

HOST_TEST(create, host_create(HOST_RAM), "Invalid configurations; names of "
    "counters")
{
	struct e82545_config config = { .ec_mac = { 2, 0, 0, 0, 0, 1 } };
	struct e82545 *dev;
	int i, j;

	config.ec_itr_256ns = 65536;
	errno = 0;
	ATF_CHECK(e82545_create(&config, &host_ops, h, &h->port) == NULL);
	ATF_CHECK_EQ(EINVAL, errno);
	config.ec_itr_256ns = 65535;
	config.ec_itr_min_256ns = 65536;
	errno = 0;
	ATF_CHECK(e82545_create(&config, &host_ops, h, &h->port) == NULL);
	ATF_CHECK_EQ(EINVAL, errno);
	config.ec_itr_min_256ns = 65535;
	config.ec_mac[0] = 3;
	errno = 0;
	ATF_CHECK(e82545_create(&config, &host_ops, h, &h->port) == NULL);
	ATF_CHECK_EQ(EINVAL, errno);
	/* A name is not needed. */
	config.ec_mac[0] = 2;
	dev = e82545_create(&config, &host_ops, h, &h->port);
	ATF_REQUIRE(dev != NULL);
	e82545_destroy(dev);

	for (i = 0; i < E82545_NCOUNTERS; i++) {
		ATF_REQUIRE(e82545_counter_table[i].cr_name != NULL);
		ATF_CHECK_EQ(0, h->dev->counters[i]);
		for (j = 0; j < i; j++)
			ATF_CHECK(strcmp(e82545_counter_table[i].cr_name,
			    e82545_counter_table[j].cr_name) != 0);
	}
	ATF_CHECK_STREQ("reg_reads",
	    e82545_counter_table[E82545_C_REG_READ].cr_name);
	host_rd(h, E82545_STATUS);
	e82545_read(h->dev, 5, 0, 1);
	host_wr(h, E82545_STATUS, 0);
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_REG_READ));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_REG_WRITE));
}

TEST_PROGRAM
