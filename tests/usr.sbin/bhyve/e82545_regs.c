/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See e82545_regs.h.  The table has numbers, not names, so that it finds
 * mistakes in e82545_reg.h.
 */

#include <sys/param.h>

#include <atf-c.h>

#include "e82545_impl.h"
#include "e82545_regs.h"
#include "e82545_stat.h"

const struct reg regs[] = {
	{ 0x0000, 1, 4, "CTRL", 0x00000241, 0, REG_FX },
	{ 0x0004, 1, 4, "CTRL_DUP", 0x00000241, 0, REG_FX },
	{ 0x0008, 1, 4, "STATUS", 0x00000283, 0, REG_RO },
	{ 0x0010, 1, 4, "EECD", 0x00000110, 0, REG_FX },
	{ 0x0018, 1, 4, "CTRL_EXT", 0, 0x00c28fff, REG_RW },
	{ 0x0028, 1, 4, "FCAL", 0, ALL, REG_RW },
	{ 0x002c, 1, 4, "FCAH", 0, 0xffff, REG_RW },
	{ 0x0030, 1, 4, "FCT", 0, 0xffff, REG_RW },
	{ 0x0100, 1, 4, "RCTL", 0, 0x06dfb3fe, REG_RW },
	{ 0x0180, 1, 4, "RXCW", 0, 0, REG_RO },
	{ 0x0400, 1, 4, "TCTL", 0, 0x03fffffa, REG_RW },
	{ 0x0410, 1, 4, "TIPG", 0, 0x3fffffff, REG_RW },
	{ 0x0458, 1, 4, "AIFS", 0, 0xffff, REG_RW },
	{ 0x0e00, 1, 4, "LEDCTL", 0x07068302, 0xcfcfcfef, REG_RW },
	{ 0x1000, 1, 4, "PBA", 0x00100030, 0, REG_FX },
	{ 0x3000, 1, 4, "TXDMAC", 0, 1, REG_RW },
	{ 0x3410, 5, 8, "TDFH..TDFPC", 0, 0x1fff, REG_RW },
	{ 0x3828, 1, 4, "TXDCTL", 0, 0xff3f3f3f, REG_RW },
	{ 0x3830, 1, 4, "TSPMT", 0x01000400, ALL, REG_RW },
	{ 0x5000, 1, 4, "RXCSUM", 0, 0x07ff, REG_RW },
	{ 0x5b50, 1, 4, "SWSM", 0, 0x0f, REG_RW },
	{ 0x5f00, 4, 8, "FFLT", 0, 0x7f, REG_RW },
	REGS_COMMON
};

const size_t nregs = nitems(regs);

const uint32_t reg_patterns[4] = {
	0x5a5a5a5a, 0xa5a5a5a5, 0x00000000, 0xffffffff
};

void
check_reset_rows(struct host *h, const struct reg *rows, size_t n)
{
	unsigned int i, j;
	uint32_t o, v;

	FOREACH_ROW(rows, n, i, j, o) {
		v = host_rd(h, o);
		ATF_CHECK_MSG(v == rows[i].reset, "%s[%u] (%#x): %#x, not %#x",
		    rows[i].name, j, o, v, rows[i].reset);
	}
	/* Reading has taken this semaphore of an 82574L. */
	host_wr(h, 0x5b50, 0);
}

void
check_reset_values(struct host *h)
{
	check_reset_rows(h, regs, nregs);
}

static void
check_writable(struct host *h, const struct reg *rows, size_t n)
{
	unsigned int i, j, k;
	uint32_t o, v, want;

	FOREACH_ROW(rows, n, i, j, o) {
		if (rows[i].kind == REG_FX)
			continue;
		for (k = 0; k < nitems(reg_patterns); k++) {
			host_wr(h, o, reg_patterns[k]);
			v = host_rd(h, o);
			want = (reg_patterns[k] & rows[i].mask) |
			    (rows[i].reset & ~rows[i].mask);
			ATF_CHECK_MSG(v == want, "%s[%u] (%#x): wrote %#x, "
			    "read %#x, not %#x", rows[i].name, j, o,
			    reg_patterns[k], v, want);
		}
		host_wr(h, o, rows[i].reset);
	}
}

static void
check_nowhere(struct host *h, const struct reg *rows, size_t n)
{
	static bool known[E82545_BAR_MEM_SIZE / 4];
	unsigned int i, j;
	uint32_t o;

	FOREACH_ROW(rows, n, i, j, o) {
		ATF_CHECK_MSG(!known[o / 4], "%s (%#x) twice", rows[i].name,
		    o);
		known[o / 4] = true;
	}
	for (o = 0; o < E82545_BAR_MEM_SIZE; o += 4) {
		if (known[o / 4])
			continue;
		host_wr(h, o, ALL);
		ATF_CHECK_EQ_MSG(0, host_rd(h, o), "%#x", o);
	}
}

void
check_registers(struct host *h, const struct reg *rows, size_t n)
{
	check_reset_rows(h, rows, n);
	check_writable(h, rows, n);
	/* No write changed another register. */
	host_rd(h, E82545_ICR);
	check_reset_rows(h, rows, n);
	check_nowhere(h, rows, n);
	check_reset_rows(h, rows, n);
}

void
eecd_out(struct host *h, uint32_t bits, int n)
{
	while (n-- > 0) {
		host_clear(h, E82545_EECD, E82545_EECD_DI);
		if ((bits >> n & 1) != 0)
			host_set(h, E82545_EECD, E82545_EECD_DI);
		host_set(h, E82545_EECD, E82545_EECD_SK);
		host_clear(h, E82545_EECD, E82545_EECD_SK);
	}
	host_clear(h, E82545_EECD, E82545_EECD_DI);
}

uint32_t
eecd_in(struct host *h, int n)
{
	uint32_t v;

	for (v = 0; n > 0; n--) {
		host_set(h, E82545_EECD, E82545_EECD_SK);
		v = v << 1 | ((host_rd(h, E82545_EECD) &
		    E82545_EECD_DO) != 0);
		host_clear(h, E82545_EECD, E82545_EECD_SK);
	}
	return (v);
}

uint16_t
reg_phy_rd(struct host *h, unsigned int reg)
{
	uint32_t v;

	host_wr(h, E82545_MDIC, E82545_MDIC_OP_READ | 1 << 21 | reg << 16);
	v = host_rd(h, E82545_MDIC);
	ATF_CHECK_EQ(E82545_MDIC_READY, v & (E82545_MDIC_READY |
	    E82545_MDIC_ERROR));
	return (v);
}

void
reg_phy_wr(struct host *h, unsigned int reg, uint16_t value)
{
	host_wr(h, E82545_MDIC, E82545_MDIC_OP_WRITE | 1 << 21 | reg << 16 |
	    value);
}

uint32_t
reg_io_rd(struct host *h, uint32_t off)
{
	e82545_write(h->dev, E82545_BAR_IO, 0, 4, off);
	return (e82545_read(h->dev, E82545_BAR_IO, 4, 4));
}

void
reg_io_wr(struct host *h, uint32_t off, uint32_t value)
{
	e82545_write(h->dev, E82545_BAR_IO, 0, 4, off);
	e82545_write(h->dev, E82545_BAR_IO, 4, 4, value);
}

void
reg_count(struct host *h, uint32_t off, uint64_t n)
{
	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_stat(h->dev, off, n);
	pthread_mutex_unlock(&h->dev->reg_mtx);
}

void
reg_count64(struct host *h, uint32_t off, uint64_t n)
{
	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_stat64(h->dev, off, n);
	pthread_mutex_unlock(&h->dev->reg_mtx);
}
