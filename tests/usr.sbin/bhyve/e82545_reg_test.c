/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The register file of the 82545EM, through its BARs: reset values, writable
 * bits, what reading and writing do besides, access rules, device reset.
 */

#include <sys/param.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "e82545_host.h"
#include "e82545_impl.h"

#define	ALL	0xffffffff

/*
 * Offset, elements, bytes between them, value after reset, bits that can be
 * written: 8254x SDM table 13-2 and chapter 13.  By number, so that a slip in
 * e82545_reg.h shows.  Registers with effects of their own are told apart.
 */
enum kind {
	RW,		/* kept under the mask */
	RO,		/* ignores writes */
	RC,		/* statistics */
	FX,		/* writing has effects: tested elsewhere */
};

static const struct {
	uint32_t	off;
	uint16_t	count, stride;
	const char	*name;
	uint32_t	reset, mask;
	enum kind	kind;
} regs[] = {
	{ 0x0000, 1, 4, "CTRL", 0x00000201, 0, FX },
	{ 0x0004, 1, 4, "CTRL_DUP", 0x00000201, 0, FX },
	{ 0x0008, 1, 4, "STATUS", 0x00000281, 0, RO },
	{ 0x0010, 1, 4, "EECD", 0x00000110, 0, FX },
	{ 0x0014, 1, 4, "EERD", 0, 0, FX },
	{ 0x0018, 1, 4, "CTRL_EXT", 0, 0x00c28fff, RW },
	{ 0x001c, 1, 4, "FLA", 0, 0x00000017, RW },
	{ 0x0020, 1, 4, "MDIC", 0x10000000, 0, FX },
	{ 0x0028, 1, 4, "FCAL", 0, ALL, RW },
	{ 0x002c, 1, 4, "FCAH", 0, 0xffff, RW },
	{ 0x0030, 1, 4, "FCT", 0, 0xffff, RW },
	{ 0x0038, 1, 4, "VET", 0x8100, 0xffff, RW },
	{ 0x00c0, 1, 4, "ICR", 0, 0, FX },
	{ 0x00c4, 1, 4, "ITR", 0, 0xffff, RW },
	{ 0x00c8, 1, 4, "ICS", 0, 0, FX },
	{ 0x00d0, 1, 4, "IMS", 0, 0, FX },
	{ 0x00d8, 1, 4, "IMC", 0, 0, FX },
	{ 0x0100, 1, 4, "RCTL", 0, 0x06dfb3fe, RW },
	{ 0x0170, 1, 4, "FCTTV", 0, 0xffff, RW },
	{ 0x0178, 1, 4, "TXCW", 0, 0xc000ffff, RW },
	{ 0x0180, 1, 4, "RXCW", 0, 0, RO },
	{ 0x0400, 1, 4, "TCTL", 0, 0x03fffffa, RW },
	{ 0x0410, 1, 4, "TIPG", 0, 0x3fffffff, RW },
	{ 0x0458, 1, 4, "AIFS", 0, 0xffff, RW },
	{ 0x0e00, 1, 4, "LEDCTL", 0x07068302, 0xcfcfcfef, RW },
	{ 0x1000, 1, 4, "PBA", 0x00100030, 0, FX },
	{ 0x2160, 1, 4, "FCRTL", 0, 0x8000fff8, RW },
	{ 0x2168, 1, 4, "FCRTH", 0, 0xfff8, RW },
	{ 0x2410, 5, 8, "RDFH..RDFPC", 0, 0x1fff, RW },
	{ 0x2800, 1, 4, "RDBAL", 0, 0xfffffff0, RW },
	{ 0x2804, 1, 4, "RDBAH", 0, ALL, RW },
	{ 0x2808, 1, 4, "RDLEN", 0, 0x000fff80, RW },
	{ 0x2810, 1, 4, "RDH", 0, 0xffff, RW },
	{ 0x2818, 1, 4, "RDT", 0, 0xffff, RW },
	{ 0x2820, 1, 4, "RDTR", 0, 0xffff, RW },
	{ 0x2828, 1, 4, "RXDCTL", 0x00010000, 0x013f3f3f, RW },
	{ 0x282c, 1, 4, "RADV", 0, 0xffff, RW },
	{ 0x2c00, 1, 4, "RSRPD", 0, 0x0fff, RW },
	{ 0x3000, 1, 4, "TXDMAC", 0, 1, RW },
	{ 0x3410, 5, 8, "TDFH..TDFPC", 0, 0x1fff, RW },
	{ 0x3800, 1, 4, "TDBAL", 0, 0xfffffff0, RW },
	{ 0x3804, 1, 4, "TDBAH", 0, ALL, RW },
	{ 0x3808, 1, 4, "TDLEN", 0, 0x000fff80, RW },
	{ 0x3810, 1, 4, "TDH", 0, 0xffff, RW },
	{ 0x3818, 1, 4, "TDT", 0, 0xffff, RW },
	{ 0x3820, 1, 4, "TIDV", 0, 0xffff, RW },
	{ 0x3828, 1, 4, "TXDCTL", 0, 0xff3f3f3f, RW },
	{ 0x382c, 1, 4, "TADV", 0, 0xffff, RW },
	{ 0x3830, 1, 4, "TSPMT", 0x01000400, ALL, RW },
	{ 0x4000, 9, 4, "CRCERRS..LATECOL", 0, 0, RC },
	{ 0x4028, 1, 4, "COLC", 0, 0, RC },
	{ 0x4030, 5, 4, "DC..RLEC", 0, 0, RC },
	{ 0x4048, 15, 4, "XONRXC..GPTC", 0, 0, RC },
	{ 0x4088, 4, 4, "GORC, GOTC", 0, 0, RO },
	{ 0x40a0, 8, 4, "RNBC..MGTPTC", 0, 0, RC },
	{ 0x40c0, 4, 4, "TOR, TOT", 0, 0, RO },
	{ 0x40d0, 12, 4, "TPR..TSCTFC", 0, 0, RC },
	{ 0x5000, 1, 4, "RXCSUM", 0, 0x07ff, RW },
	{ 0x5200, 128, 4, "MTA", 0, ALL, RW },
	{ 0x5400, 1, 4, "RAL0", 0x12290c00, ALL, RW },
	{ 0x5404, 1, 4, "RAH0", 0x80005634, 0x8003ffff, RW },
	{ 0x5408, 15, 8, "RAL", 0, ALL, RW },
	{ 0x540c, 15, 8, "RAH", 0, 0x8003ffff, RW },
	{ 0x5600, 128, 4, "VFTA", 0, ALL, RW },
	{ 0x5800, 1, 4, "WUC", 0, 0x0b, RW },
	{ 0x5808, 1, 4, "WUFC", 0, 0x000f80ff, RW },
	{ 0x5810, 1, 4, "WUS", 0, 0, RO },
	{ 0x5820, 1, 4, "MANC", 0, ALL, RW },
	{ 0x5838, 1, 4, "IPAV", 0, 0x0001000f, RW },
	{ 0x5840, 4, 8, "IP4AT", 0, ALL, RW },
	{ 0x5880, 4, 4, "IP6AT", 0, ALL, RW },
	{ 0x5900, 1, 4, "WUPL", 0, 0, RO },
	{ 0x5a00, 32, 4, "WUPM", 0, 0, RO },
	{ 0x5f00, 4, 8, "FFLT", 0, 0x7f, RW },
	{ 0x9000, 128, 8, "FFMT", 0, 0x0f, RW },
	{ 0x9800, 128, 8, "FFVT", 0, ALL, RW },
};

static const uint32_t patterns[] = {
	0x5a5a5a5a, 0xa5a5a5a5, 0x00000000, 0xffffffff
};

#define	FOREACH_REG(i, j, o)						\
	for (i = 0; i < nitems(regs); i++)				\
		for (j = 0; j < regs[i].count &&			\
		    (o = regs[i].off + j * regs[i].stride, true); j++)

static void
check_reset_values(struct host *h)
{
	unsigned int i, j;
	uint32_t o, v;

	FOREACH_REG(i, j, o) {
		v = host_rd(h, o);
		ATF_CHECK_MSG(v == regs[i].reset, "%s[%u] (%#x): %#x, not %#x",
		    regs[i].name, j, o, v, regs[i].reset);
	}
}

/* Every kept register away from its reset value. */
static void
dirty(struct host *h)
{
	unsigned int i, j;
	uint32_t o;

	FOREACH_REG(i, j, o)
		if (regs[i].kind == RW && o != E82545_RCTL &&
		    o != E82545_TCTL)
			host_wr(h, o, ~regs[i].reset);
}

ATF_TC(reset_values);
ATF_TC_HEAD(reset_values, tc)
{
	atf_tc_set_md_var(tc, "descr", "Each register's value after power-up");
}
ATF_TC_BODY(reset_values, tc __unused)
{
	struct host *h;

	h = host_create(HOST_RAM);
	check_reset_values(h);
	host_destroy(h);
}

ATF_TC(writable_bits);
ATF_TC_HEAD(writable_bits, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Each register keeps the bits it has, and no others");
}
ATF_TC_BODY(writable_bits, tc __unused)
{
	struct host *h;
	unsigned int i, j, k;
	uint32_t o, v, want;

	h = host_create(HOST_RAM);
	FOREACH_REG(i, j, o) {
		if (regs[i].kind == FX)
			continue;
		for (k = 0; k < nitems(patterns); k++) {
			host_wr(h, o, patterns[k]);
			v = host_rd(h, o);
			want = (patterns[k] & regs[i].mask) |
			    (regs[i].reset & ~regs[i].mask);
			ATF_CHECK_MSG(v == want, "%s[%u] (%#x): wrote %#x, "
			    "read %#x, not %#x", regs[i].name, j, o,
			    patterns[k], v, want);
		}
		host_wr(h, o, regs[i].reset);
	}
	/* And none of them changed another one. */
	host_rd(h, E82545_ICR);
	check_reset_values(h);
	host_destroy(h);
}

ATF_TC(nowhere);
ATF_TC_HEAD(nowhere, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Offsets without a register read as 0 and ignore writes");
}
ATF_TC_BODY(nowhere, tc __unused)
{
	static bool known[E82545_BAR_MEM_SIZE / 4];
	struct host *h;
	unsigned int i, j;
	uint32_t o;

	h = host_create(HOST_RAM);
	FOREACH_REG(i, j, o) {
		ATF_CHECK_MSG(!known[o / 4], "%s (%#x) twice", regs[i].name,
		    o);
		known[o / 4] = true;
	}
	for (o = 0; o < E82545_BAR_MEM_SIZE; o += 4) {
		if (known[o / 4])
			continue;
		host_wr(h, o, ALL);
		ATF_CHECK_EQ_MSG(0, host_rd(h, o), "%#x", o);
	}
	check_reset_values(h);
	host_destroy(h);
}

ATF_TC(access_rules);
ATF_TC_HEAD(access_rules, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Accesses of other sizes, odd offsets, beyond the BAR");
}
ATF_TC_BODY(access_rules, tc __unused)
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
				ok = (sizes[j] == 4 || sizes[j] == 8) &&
				    offs[i] < limit &&
				    offs[i] % sizes[j] == 0;
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

	/* 64 bits are two registers. */
	e82545_write(h->dev, 0, E82545_FCAL, 8, 0x99991234cafef00d);
	ATF_CHECK_EQ(0xcafef00d, host_rd(h, E82545_FCAL));
	ATF_CHECK_EQ(0x1234, host_rd(h, E82545_FCAH));
	ATF_CHECK_EQ(0x1234cafef00d, e82545_read(h->dev, 0, E82545_FCAL, 8));
	host_destroy(h);
}

static void
io_wr(struct host *h, uint32_t off, uint32_t value)
{

	e82545_write(h->dev, E82545_BAR_IO, 0, 4, off);
	e82545_write(h->dev, E82545_BAR_IO, 4, 4, value);
}

static uint32_t
io_rd(struct host *h, uint32_t off)
{

	e82545_write(h->dev, E82545_BAR_IO, 0, 4, off);
	return (e82545_read(h->dev, E82545_BAR_IO, 4, 4));
}

ATF_TC(io_bar);
ATF_TC_HEAD(io_bar, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Every register through IOADDR and IODATA");
}
ATF_TC_BODY(io_bar, tc __unused)
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
		ATF_CHECK_EQ_MSG(regs[i].reset, io_rd(h, o), "%s",
		    regs[i].name);
	FOREACH_REG(i, j, o) {
		if (regs[i].kind != RW)
			continue;
		io_wr(h, o, 0x5a5a5a5a);
		ATF_CHECK_EQ_MSG(host_rd(h, o), io_rd(h, o), "%s",
		    regs[i].name);
		ATF_CHECK_EQ_MSG(host_rd(h, o) & regs[i].mask,
		    0x5a5a5a5a & regs[i].mask, "%s", regs[i].name);
		io_wr(h, o, regs[i].reset);
	}
	check_reset_values(h);

	for (i = 0; i < nitems(bad); i++) {
		io_wr(h, bad[i], 0);
		ATF_CHECK_EQ_MSG(ALL, io_rd(h, bad[i]), "%#x", bad[i]);
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

	/* A PCI reset takes the address, a device reset does not. */
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(E82545_FCAL, e82545_read(h->dev, E82545_BAR_IO, 0, 4));
	e82545_reset(h->dev);
	ATF_CHECK_EQ(0, e82545_read(h->dev, E82545_BAR_IO, 0, 4));
	host_destroy(h);
}

/* As Linux's e1000 tests registers for `ethtool -t'. */
static void
ethtool_pattern(struct host *h, uint32_t off, uint32_t mask, uint32_t write)
{
	unsigned int i;
	uint32_t v;

	for (i = 0; i < nitems(patterns); i++) {
		host_wr(h, off, write & patterns[i]);
		v = host_rd(h, off);
		ATF_CHECK_MSG(v == (write & patterns[i] & mask),
		    "%#x: wrote %#x, read %#x", off, write & patterns[i], v);
	}
}

static void
ethtool_set(struct host *h, uint32_t off, uint32_t mask, uint32_t write)
{
	uint32_t v;

	host_wr(h, off, write & mask);
	v = host_rd(h, off);
	ATF_CHECK_MSG((v & mask) == (write & mask),
	    "%#x: wrote %#x, read %#x", off, write & mask, v);
}

ATF_TC(ethtool);
ATF_TC_HEAD(ethtool, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "What Linux's ethtool -t expects of registers");
}
ATF_TC_BODY(ethtool, tc __unused)
{
	struct host *h;
	uint32_t before;
	int i;

	h = host_create(HOST_RAM);
	before = host_rd(h, E82545_STATUS);
	host_wr(h, E82545_STATUS, 0xfffff833);
	ATF_CHECK_EQ(before & 0xfffff833,
	    host_rd(h, E82545_STATUS) & 0xfffff833);
	host_wr(h, E82545_STATUS, before);

	ethtool_pattern(h, E82545_FCAL, ALL, ALL);
	ethtool_pattern(h, E82545_FCAH, 0xffff, ALL);
	ethtool_pattern(h, E82545_FCT, 0xffff, ALL);
	ethtool_pattern(h, E82545_VET, 0xffff, ALL);
	ethtool_pattern(h, E82545_RDTR, 0xffff, ALL);
	ethtool_pattern(h, E82545_RDBAH, ALL, ALL);
	ethtool_pattern(h, E82545_RDLEN, 0xfff80, 0xfffff);
	ethtool_pattern(h, E82545_RDH, 0xffff, 0xffff);
	ethtool_pattern(h, E82545_RDT, 0xffff, 0xffff);
	ethtool_pattern(h, E82545_FCRTH, 0xfff8, 0xfff8);
	ethtool_pattern(h, E82545_FCTTV, 0xffff, 0xffff);
	ethtool_pattern(h, E82545_TIPG, 0x3fffffff, 0x3fffffff);
	ethtool_pattern(h, E82545_TDBAH, ALL, ALL);
	ethtool_pattern(h, E82545_TDLEN, 0xfff80, 0xfffff);
	ethtool_set(h, E82545_RCTL, ALL, 0);
	ethtool_set(h, E82545_RCTL, 0x06dfb3fe, 0x003ffffb);
	ethtool_set(h, E82545_TCTL, ALL, 0);
	ethtool_set(h, E82545_RCTL, 0x06dfb3fe, ALL);
	ethtool_pattern(h, E82545_RDBAL, 0xfffffff0, ALL);
	ethtool_pattern(h, E82545_TXCW, 0xc000ffff, 0x0000ffff);
	ethtool_pattern(h, E82545_TDBAL, 0xfffffff0, ALL);
	ethtool_pattern(h, E82545_TIDV, 0xffff, 0xffff);
	for (i = 0; i < 15; i++)
		ethtool_pattern(h, E82545_RAH(i), 0x8003ffff, ALL);
	for (i = 0; i < 128; i++)
		ethtool_pattern(h, E82545_MTA + 4 * i, ALL, ALL);
	/* The ring that leaves behind is nowhere; frames find that out. */
	host_inject(h, host_mac, sizeof(host_mac), 1);
	host_run(h);
	host_destroy(h);
}

static void
count(struct host *h, uint32_t off, uint64_t n)
{

	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_stat(h->dev, off, n);
	pthread_mutex_unlock(&h->dev->reg_mtx);
}

static void
count64(struct host *h, uint32_t off, uint64_t n)
{

	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_stat64(h->dev, off, n);
	pthread_mutex_unlock(&h->dev->reg_mtx);
}

ATF_TC(statistics);
ATF_TC_HEAD(statistics, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Statistics add up, stick at all ones, and clear when read");
}
ATF_TC_BODY(statistics, tc __unused)
{
	struct host *h;
	unsigned int i, j;
	uint32_t o;

	h = host_create(HOST_RAM);
	FOREACH_REG(i, j, o) {
		if (regs[i].kind != RC)
			continue;
		count(h, o, 3);
		count(h, o, 4);
		ATF_CHECK_EQ(7, host_rd(h, o));
		ATF_CHECK_EQ(0, host_rd(h, o));
		count(h, o, ALL);
		count(h, o, 1);
		ATF_CHECK_EQ(ALL, host_rd(h, o));
		count(h, o, UINT64_MAX);
		ATF_CHECK_EQ(ALL, host_rd(h, o));
		ATF_CHECK_EQ(0, host_rd(h, o));
		check_reset_values(h);
	}
	host_destroy(h);
}

ATF_TC(statistics64);
ATF_TC_HEAD(statistics64, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Byte counts are cleared by reading the high half, and lose none");
}
ATF_TC_BODY(statistics64, tc __unused)
{
	static const uint32_t offs[] = { 0x4088, 0x4090, 0x40c0, 0x40c8 };
	struct host *h;
	unsigned int i;
	uint32_t o;

	h = host_create(HOST_RAM);
	for (i = 0; i < nitems(offs); i++) {
		o = offs[i];
		count64(h, o, 0x1fffffff0);
		count64(h, o, 0x20);
		/* The low half may be read again. */
		ATF_CHECK_EQ(0x10, host_rd(h, o));
		ATF_CHECK_EQ(0x10, host_rd(h, o));
		/* Comes between the halves, and would carry. */
		count64(h, o, 0xfffffff5);
		ATF_CHECK_EQ(0x2, host_rd(h, o + 4));
		ATF_CHECK_EQ(0xfffffff5, host_rd(h, o));
		ATF_CHECK_EQ(0, host_rd(h, o + 4));
		/* The high half alone clears both. */
		count64(h, o, 0x300000001);
		ATF_CHECK_EQ(3, host_rd(h, o + 4));
		ATF_CHECK_EQ(0, host_rd(h, o));
		ATF_CHECK_EQ(0, host_rd(h, o + 4));
		count64(h, o, UINT64_MAX);
		count64(h, o, 5);
		ATF_CHECK_EQ(UINT64_MAX, e82545_read(h->dev, 0, o, 8));
		ATF_CHECK_EQ(0, e82545_read(h->dev, 0, o, 8));
	}
	check_reset_values(h);
	host_destroy(h);
}

ATF_TC(statistics_size);
ATF_TC_HEAD(statistics_size, tc)
{
	atf_tc_set_md_var(tc, "descr", "Frames are counted by their size");
}
ATF_TC_BODY(statistics_size, tc __unused)
{
	static const struct {
		size_t		len;
		unsigned int	n;
	} sizes[] = {
		{ 18, 0 }, { 64, 0 }, { 65, 1 }, { 127, 1 }, { 128, 2 },
		{ 255, 2 }, { 256, 3 }, { 511, 3 }, { 512, 4 }, { 1023, 4 },
		{ 1024, 5 }, { 1522, 5 }, { 16114, 5 }
	};
	struct e82545_tally two, three;
	struct host *h;
	unsigned int i, j;

	h = host_create(HOST_RAM);
	for (i = 0; i < nitems(sizes); i++) {
		memset(&two, 0, sizeof(two));
		e82545_tally(&two, host_mac, sizes[i].len);
		e82545_tally(&two, host_mac, sizes[i].len);
		three = two;
		e82545_tally(&three, host_mac, sizes[i].len);
		pthread_mutex_lock(&h->dev->reg_mtx);
		e82545_stat_sizes(h->dev, E82545_PRC64, &two);
		e82545_stat_sizes(h->dev, E82545_PTC64, &three);
		pthread_mutex_unlock(&h->dev->reg_mtx);
		for (j = 0; j < 6; j++) {
			ATF_CHECK_EQ(sizes[i].n == j ? 2 : 0,
			    host_rd(h, 0x405c + 4 * j));
			ATF_CHECK_EQ(sizes[i].n == j ? 3 : 0,
			    host_rd(h, 0x40d8 + 4 * j));
		}
	}
	check_reset_values(h);
	host_destroy(h);
}

ATF_TC(ctrl);
ATF_TC_HEAD(ctrl, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "CTRL and its duplicate, CTRL_EXT's self-clearing bits, PBA");
}
ATF_TC_BODY(ctrl, tc __unused)
{
	struct host *h;

	h = host_create(HOST_RAM);
	host_wr(h, 0x0000, 0x5bfffbff);		/* no RST, no PHY_RST */
	ATF_CHECK_EQ(0x5bfc1be9, host_rd(h, 0x0000));
	ATF_CHECK_EQ(0x5bfc1be9, host_rd(h, 0x0004));
	host_wr(h, 0x0004, 0);
	ATF_CHECK_EQ(0, host_rd(h, 0x0000));
	ATF_CHECK_EQ(0, host_rd(h, 0x0004));

	/* EE_RST brings the station address back, and nothing else. */
	host_wr(h, E82545_RAL(0), 0);
	host_wr(h, E82545_RAH(0), 0);
	host_wr(h, E82545_RAL(1), 5);
	host_wr(h, E82545_CTRL_EXT, E82545_CTRL_EXT_EE_RST | 1 << 4);
	ATF_CHECK_EQ(1 << 4, host_rd(h, E82545_CTRL_EXT));
	ATF_CHECK_EQ(0x12290c00, host_rd(h, E82545_RAL(0)));
	ATF_CHECK_EQ(0x80005634, host_rd(h, E82545_RAH(0)));
	ATF_CHECK_EQ(5, host_rd(h, E82545_RAL(1)));

	/* The packet buffer is 64 KB. */
	host_wr(h, E82545_PBA, 40);
	ATF_CHECK_EQ(24 << 16 | 40, host_rd(h, E82545_PBA));
	host_wr(h, E82545_PBA, 0x00200000 | 64);
	ATF_CHECK_EQ(64, host_rd(h, E82545_PBA));
	host_wr(h, E82545_PBA, ALL);
	ATF_CHECK_EQ(64, host_rd(h, E82545_PBA));
	host_destroy(h);
}

static void
reset_by_ctrl(struct host *h)
{

	host_wr(h, 0x0000, E82545_CTRL_RST | E82545_CTRL_SLU);
}

static void
reset_by_dup(struct host *h)
{

	host_wr(h, 0x0004, E82545_CTRL_RST);
}

/* As FreeBSD and Linux do for this adapter. */
static void
reset_by_io(struct host *h)
{

	io_wr(h, 0x0000, host_rd(h, 0x0000) | E82545_CTRL_RST);
}

static void
reset_by_pci(struct host *h)
{

	e82545_reset(h->dev);
}

ATF_TC(reset);
ATF_TC_HEAD(reset, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Every way to reset the device brings every register back");
}
ATF_TC_BODY(reset, tc __unused)
{
	static void (*const how[])(struct host *) = {
		reset_by_ctrl, reset_by_dup, reset_by_io, reset_by_pci
	};
	struct host *h;
	unsigned int i;

	h = host_create(HOST_RAM);
	for (i = 0; i < nitems(how); i++) {
		dirty(h);
		count(h, E82545_GPRC, 5);
		count64(h, E82545_TOTL, 0x500000005);
		host_rd(h, E82545_TOTL);
		host_wr(h, E82545_CTRL, E82545_CTRL_SLU);
		host_wr(h, E82545_IMS, ALL);
		host_wr(h, E82545_ITR, 0);
		host_wr(h, E82545_ICS, E82545_ICR_RXDMT0);
		ATF_CHECK(host_line(h));
		how[i](h);
		ATF_CHECK(!host_line(h));
		/* The low half read before counts no more. */
		ATF_CHECK_EQ(0, host_rd(h, E82545_TOTH));
		check_reset_values(h);
		ATF_CHECK_EQ(i + 1, host_counter(h, E82545_C_RESET));
		/* No timer was left behind. */
		ATF_CHECK_EQ(0, h->timer_ns);
	}
	host_destroy(h);
}

ATF_TC(link);
ATF_TC_HEAD(link, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "STATUS.LU and LSC follow the cable, SLU and PHY_RST");
}
ATF_TC_BODY(link, tc __unused)
{
	struct host *h;

	h = host_create(HOST_RAM);
#define	EXPECT(lu, lsc)	do {						\
	ATF_CHECK_EQ(lu, (host_rd(h, E82545_STATUS) &			\
	    E82545_STATUS_LU) != 0);					\
	ATF_CHECK_EQ(lsc, host_rd(h, E82545_ICR) == E82545_ICR_LSC);	\
} while (0)
	EXPECT(false, false);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	EXPECT(true, true);
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
	/* The cable stays out over a reset. */
	e82545_link(h->dev, false);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	EXPECT(false, false);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	EXPECT(false, false);
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
	host_destroy(h);
}

ATF_TC(wakeups);
ATF_TC_HEAD(wakeups, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Which writes ask the host for transmit and receive");
}
ATF_TC_BODY(wakeups, tc __unused)
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
	/* The ring is somewhere else now. */
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
	ATF_CHECK_EQ(2, host_rx_waiting(h));
	ATF_CHECK_EQ(0, h->nready);
	for (i = 0; i < 7; i++)
		ATF_CHECK_EQ(64, host_rx_take(h, frame, sizeof(frame), NULL));
	ATF_CHECK_EQ(0, h->nready);
	host_rx_post(h);
	ATF_CHECK_EQ(1, h->nready);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_waiting(h));
	ATF_CHECK_EQ(64, host_rx_take(h, frame, sizeof(frame), NULL));
	/* Not stalled: RDT tells nothing new. */
	host_rx_post(h);
	ATF_CHECK_EQ(1, h->nready);
	host_destroy(h);

	/* A ring outside memory, then a good one. */
	h = host_create(HOST_RAM);
	host_up(h, 8, 8, 2048);
	host_wr(h, E82545_RDBAH, 1);
	h->nready = 0;
	host_inject(h, frame, sizeof(frame), 1);
	host_run(h);
	ATF_CHECK_EQ(1, host_rx_waiting(h));
	ATF_CHECK_EQ(0, h->nready);
	host_wr(h, E82545_RDBAH, 0);
	ATF_CHECK_EQ(1, h->nready);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_waiting(h));
	/* Receive turned off and on with frames waiting for room. */
	for (i = 0; i < 9; i++)
		host_inject(h, frame, sizeof(frame), 1);
	host_run(h);
	ATF_CHECK_EQ(3, host_rx_waiting(h));
	host_wr(h, E82545_RCTL, 0);
	ATF_CHECK_EQ(2, h->nready);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_waiting(h));
	ATF_CHECK_EQ(3, host_counter(h, E82545_C_RX_DISABLED));
	host_destroy(h);
}

ATF_TC(pause);
ATF_TC_HEAD(pause, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "A paused adapter leaves guest memory alone until it resumes");
}
ATF_TC_BODY(pause, tc __unused)
{
	uint8_t frame[64];
	struct host *h;
	uint32_t n;

	h = host_create(HOST_RAM);
	host_up(h, 8, 8, 2048);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	e82545_pause(h->dev);
	n = host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	host_inject(h, frame, sizeof(frame), 1);
	host_run(h);
	ATF_CHECK(!host_tx_done(h, n));
	ATF_CHECK(!host_rx_done(h, 0));
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(1, host_rx_waiting(h));
	/* Registers answer. */
	ATF_CHECK_EQ(0, host_rd(h, E82545_TDH));

	h->nkick = h->nready = 0;
	e82545_resume(h->dev);
	ATF_CHECK_EQ(1, h->nkick);
	ATF_CHECK_EQ(1, h->nready);
	host_run(h);
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK(host_rx_done(h, 0));
	ATF_CHECK_EQ(1, host_sent(h));
	ATF_CHECK_EQ(0, host_rx_waiting(h));
	host_destroy(h);
}

ATF_TC(create);
ATF_TC_HEAD(create, tc)
{
	atf_tc_set_md_var(tc, "descr", "Bad configurations; counters' names");
}
ATF_TC_BODY(create, tc __unused)
{
	struct e82545_config config = { .ec_mac = { 2, 0, 0, 0, 0, 1 } };
	struct e82545 *dev;
	struct host *h;
	int i, j;

	h = host_create(HOST_RAM);
	config.ec_itr_256ns = 65536;
	errno = 0;
	ATF_CHECK(e82545_create(&config, &host_ops, h) == NULL);
	ATF_CHECK_EQ(EINVAL, errno);
	config.ec_itr_256ns = 65535;
	config.ec_mac[0] = 3;
	errno = 0;
	ATF_CHECK(e82545_create(&config, &host_ops, h) == NULL);
	ATF_CHECK_EQ(EINVAL, errno);
	/* A name is not needed. */
	config.ec_mac[0] = 2;
	dev = e82545_create(&config, &host_ops, h);
	ATF_REQUIRE(dev != NULL);
	e82545_destroy(dev);

	for (i = 0; i < E82545_NCOUNTERS; i++) {
		ATF_REQUIRE(e82545_counter_name(i) != NULL);
		ATF_CHECK_EQ(0, h->dev->counters[i]);
		for (j = 0; j < i; j++)
			ATF_CHECK(strcmp(e82545_counter_name(i),
			    e82545_counter_name(j)) != 0);
	}
	ATF_CHECK_STREQ("reg_reads", e82545_counter_name(E82545_C_REG_READ));
	host_rd(h, E82545_STATUS);
	e82545_read(h->dev, 5, 0, 1);
	host_wr(h, E82545_STATUS, 0);
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_REG_READ));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_REG_WRITE));
	host_destroy(h);
}

/*
 * What must not return while a batch is in progress, as the guest or the host
 * takes the memory back then.  The batch is stopped in its middle until the
 * other thread had time to get ahead of it, if it can.
 */
static struct barrier {
	pthread_mutex_t	mtx;
	pthread_cond_t	cv;
	bool		in_batch;
} barrier = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false };

static void
stop_in_batch(struct host *h __unused)
{
	bool first;

	pthread_mutex_lock(&barrier.mtx);
	first = !barrier.in_batch;
	barrier.in_batch = true;
	pthread_cond_signal(&barrier.cv);
	pthread_mutex_unlock(&barrier.mtx);
	if (first)
		usleep(20000);
}

static void
wait_for_batch(void)
{

	pthread_mutex_lock(&barrier.mtx);
	while (!barrier.in_batch)
		pthread_cond_wait(&barrier.cv, &barrier.mtx);
	barrier.in_batch = false;
	pthread_mutex_unlock(&barrier.mtx);
}

static void
transmit_off(struct host *h)
{

	host_wr(h, E82545_TCTL, 0);
}

static void
move_txring(struct host *h)
{

	host_wr(h, E82545_TDBAL, 0);
}

static void
receive_off(struct host *h)
{

	host_wr(h, E82545_RCTL, 0);
}

static void
move_rxring(struct host *h)
{

	host_wr(h, E82545_RDLEN, 0);
}

static void
pause_model(struct host *h)
{

	e82545_pause(h->dev);
}

ATF_TC(wait_for_batch);
ATF_TC_HEAD(wait_for_batch, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "What takes a ring away waits for the batch in progress");
}
ATF_TC_BODY(wait_for_batch, tc __unused)
{
	static void (*const how[2][5])(struct host *) = {
		{ reset_by_ctrl, reset_by_pci, pause_model, transmit_off,
		  move_txring },
		{ reset_by_ctrl, reset_by_pci, pause_model, receive_off,
		  move_rxring },
	};
	uint8_t frame[64];
	struct host *h;
	unsigned int i, rx;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (rx = 0; rx < 2; rx++)
		for (i = 0; i < nitems(how[rx]); i++) {
			h = host_create(HOST_RAM);
			host_up(h, 8, 8, 2048);
			if (rx)
				h->rx_hook = stop_in_batch;
			else
				h->tx_hook = stop_in_batch;
			host_start_threads(h);
			if (rx) {
				host_inject(h, frame, sizeof(frame), 1);
			} else {
				host_tx_frame(h, frame, sizeof(frame), 0);
				host_tx_go(h);
			}
			wait_for_batch();
			how[rx][i](h);
			/* The batch is over: this was its end. */
			ATF_CHECK_MSG((rx ? host_rx_done(h, 0) :
			    host_tx_done(h, 0)), "%s %u", rx ? "rx" : "tx", i);
			host_stop_threads(h);
			host_destroy(h);
		}
}

/*
 * Resets from one thread while batches are in progress in two others: the
 * rings are torn down and set up again in other places, and what a batch of
 * before writes to the new memory shows.
 */
ATF_TC(reset_under_load);
ATF_TC_HEAD(reset_under_load, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Device reset while transmit and receive are at work");
}
ATF_TC_BODY(reset_under_load, tc __unused)
{
	const unsigned int nring = 64, rounds = 300;
	uint8_t frame[64], got[2048];
	uint64_t brk;
	struct host *h;
	unsigned int i, r;

	h = host_create(HOST_RAM);
	brk = h->brk;
	host_start_threads(h);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (r = 0; r < rounds; r++) {
		h->brk = brk + (r % 2) * (HOST_RAM / 2);
		pthread_mutex_lock(&h->mtx);
		h->tx_discard = true;
		pthread_mutex_unlock(&h->mtx);
		host_up(h, nring, nring, 2048);
		host_wr(h, E82545_IMS, ALL);
		for (i = 0; i < nring - 1; i++) {
			host_tx_frame(h, frame, sizeof(frame), 0);
			if (host_rx_waiting(h) < HOST_FRAMES)
				host_inject(h, frame, sizeof(frame), 1);
			if (i % 8 == r % 8)
				host_tx_go(h);
		}
		host_tx_go(h);
		if (r % 3 == 0)
			host_rd(h, E82545_ICR);
		if (r % 2 == 0)
			host_wr(h, E82545_CTRL, E82545_CTRL_RST);
		else
			e82545_reset(h->dev);
		/* From here on this memory is the guest's alone. */
		memset(host_mem(h, h->txring, nring * 16), 0xee, nring * 16);
		memset(host_mem(h, h->rxring, nring * 16), 0xee, nring * 16);
		ATF_REQUIRE_EQ(0, host_rd(h, E82545_TDH));
		ATF_REQUIRE_EQ(0, host_rd(h, E82545_RDH));
		ATF_REQUIRE(!host_line(h));
		for (i = 0; i < nring * 16; i++) {
			ATF_REQUIRE_EQ(0xee,
			    *(uint8_t *)host_mem(h, h->txring + i, 1));
			ATF_REQUIRE_EQ(0xee,
			    *(uint8_t *)host_mem(h, h->rxring + i, 1));
		}
	}
	host_stop_threads(h);
	ATF_CHECK_EQ(rounds, host_counter(h, E82545_C_RESET));

	/* And it works. */
	h->tx_discard = false;
	host_run(h);
	host_sent_clear(h);
	host_up(h, nring, nring, 2048);
	while (host_rx_waiting(h) > 0) {
		host_wr(h, E82545_RDT, h->rxtail);
		while (host_rx_take(h, got, sizeof(got), NULL) > 0)
			ATF_CHECK_EQ(0, memcmp(got, frame, sizeof(frame)));
		h->ready = true;
		host_run(h);
	}
	host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	host_run(h);
	ATF_CHECK_EQ(1, host_sent(h));
	ATF_CHECK_EQ(0, memcmp(host_sent_frame(h, 0)->data, frame,
	    sizeof(frame)));
	host_destroy(h);
}

ATF_TP_ADD_TCS(tp)
{

	ATF_TP_ADD_TC(tp, reset_values);
	ATF_TP_ADD_TC(tp, writable_bits);
	ATF_TP_ADD_TC(tp, nowhere);
	ATF_TP_ADD_TC(tp, access_rules);
	ATF_TP_ADD_TC(tp, io_bar);
	ATF_TP_ADD_TC(tp, ethtool);
	ATF_TP_ADD_TC(tp, statistics);
	ATF_TP_ADD_TC(tp, statistics64);
	ATF_TP_ADD_TC(tp, statistics_size);
	ATF_TP_ADD_TC(tp, ctrl);
	ATF_TP_ADD_TC(tp, reset);
	ATF_TP_ADD_TC(tp, link);
	ATF_TP_ADD_TC(tp, wakeups);
	ATF_TP_ADD_TC(tp, pause);
	ATF_TP_ADD_TC(tp, create);
	ATF_TP_ADD_TC(tp, wait_for_batch);
	ATF_TP_ADD_TC(tp, reset_under_load);
	return (atf_no_error());
}
