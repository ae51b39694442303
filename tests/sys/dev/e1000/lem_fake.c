/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See lem_fake.h.
 */

#include <sys/param.h>

#include <string.h>

#include <atf-c.h>

#include "lem_fake.h"

struct fake fake;
const uint8_t fake_mac[6] = { 0x02, 0x13, 0x24, 0x35, 0x46, 0x97 };

static uint32_t
fake_read(void *arg __unused, uint32_t reg)
{
	switch (reg) {
	case E82545_CTRL:
		/* A reset may take a while; it is gone if all are set. */
		if ((fake.ctrl & E82545_CTRL_RST) != 0 &&
		    fake.ctrl != 0xffffffff) {
			fake.nreset++;
			if (fake.resetting-- == 0)
				fake.ctrl &= ~E82545_CTRL_RST;
		}
		return (fake.ctrl);
	case E82545_RCTL:
		return (fake.rctl);
	case E82545_STATUS:
		return (fake.status);
	case E82545_ICR:
		fake.nicr++;
		return (fake.icr);
	default:
		return (0);
	}
}

static void
fake_write(void *arg __unused, uint32_t reg, uint32_t value)
{
	/* The table of multicast addresses must be all zero. */
	if (reg >= E82545_MTA && reg < E82545_MTA + 4 * E82545_MTA_COUNT) {
		ATF_CHECK_EQ(0, value);
		fake.nmta++;
		return;
	}
	ATF_REQUIRE(fake.nwrote < FAKE_WRITES);
	fake.wrote[fake.nwrote++] = (struct access){ reg, value };
	if (reg == E82545_RCTL)
		fake.rctl = value;
	if (fake.write_hook != NULL)
		fake.write_hook(reg);
	if (reg == E82545_CTRL) {
		fake.ctrl = value;
		fake.resetting = fake.reset_reads;
	}
}

void
check_wrote(const char *when, const struct access *want, unsigned int n)
{
	const struct access *wrote = fake.wrote;
	unsigned int i;

	for (i = 0; i < n && i < fake.nwrote; i++) {
		ATF_CHECK_EQ_MSG(want[i].reg, wrote[i].reg,
		    "%s: write %u is to %#x, not %#x", when, i, wrote[i].reg,
		    want[i].reg);
		if (want[i].value != FAKE_ANY)
			ATF_CHECK_EQ_MSG(want[i].value, wrote[i].value,
			    "%s: write %u, to %#x, is %#x, not %#x", when, i,
			    wrote[i].reg, wrote[i].value, want[i].value);
	}
	ATF_CHECK_EQ_MSG(n, fake.nwrote, "%s: %u writes, not %u", when,
	    fake.nwrote, n);
	fake.nwrote = 0;
}

struct lem_test *
fake_create(bool csb)
{
	struct lem_test *t = test_create_down(2048);
	struct lem_core *lc = &t->g.lc;

	memset(&fake, 0, sizeof(fake));
	fake.ctrl = FAKE_CTRL;
	fake.status = E82545_STATUS_LU;
	fake.reset_reads = 3;
	lc->lc_os.reg_read = fake_read;
	lc->lc_os.reg_write = fake_write;
	lc->lc_rounds = LEM_ROUNDS_DEFAULT;
	lc->lc_txd_dma = FAKE_TXRING;
	lc->lc_rxd_dma = FAKE_RXRING;
	lc->lc_csb_dma = FAKE_CSB;
	if (!csb)
		lc->lc_csb = NULL;
	return (t);
}
