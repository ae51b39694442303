/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The tables of counters: each row has a name that a script can split on
 * blanks, no two rows of a table have the same, and each has a description.
 */

#include <sys/param.h>

#include <stdbool.h>
#include <string.h>

#include <atf-c.h>

#include <dev/netmap/vale_learn.h>

#include "adapter.h"
#include "e82545.h"
#include "lem_guest.h"
#include "libvale.h"
#include "test.h"

static void
check_table(const struct counter_row *table, unsigned int n)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	unsigned int i, j;

	for (i = 0; i < n; i++) {
		ATF_REQUIRE_MSG(table[i].cr_name != NULL &&
		    table[i].cr_desc != NULL, "row %u is missing", i);
		ATF_CHECK_MSG(table[i].cr_name[0] != '\0' &&
		    strspn(table[i].cr_name, allowed) ==
		    strlen(table[i].cr_name), "\"%s\"", table[i].cr_name);
		ATF_CHECK_MSG(strlen(table[i].cr_desc) > 5, "%s: \"%s\"",
		    table[i].cr_name, table[i].cr_desc);
		for (j = 0; j < i; j++)
			ATF_CHECK_MSG(strcmp(table[i].cr_name,
			    table[j].cr_name) != 0, "%s twice",
			    table[i].cr_name);
	}
}

TEST(rows, "Every counter has a name of its own and a description")
{
	static const struct counter_row
	    adapter_counter_table[ADAPTER_NCOUNTERS] = {
		COUNTER_ROWS(ADAPTER_COUNTERS)
	};

	check_table(e82545_counter_table, E82545_NCOUNTERS);
	check_table(vale_counter_table, VALE_NCOUNTERS);
	check_table(vale_learn_counter_table, VALE_LEARN_NCOUNTERS);
	check_table(lem_counter_table, LEM_NCOUNTERS);
	check_table(vfu_counter_table, VFU_NCOUNTERS);
	check_table(adapter_counter_table, ADAPTER_NCOUNTERS);
}

TEST(names, "A row's index is its counter's identifier")
{
	ATF_CHECK_STREQ("reg_reads",
	    e82545_counter_table[E82545_C_REG_READ].cr_name);
	ATF_CHECK_STREQ("resets", e82545_counter_table[E82545_C_RESET].cr_name);
	ATF_CHECK_EQ(E82545_C_RESET + 1, (int)E82545_NCOUNTERS);
	ATF_CHECK_STREQ("tx_syncs", vale_counter_table[VALE_C_TX_SYNC].cr_name);
	ATF_CHECK_STREQ("rx_drop_full",
	    vale_counter_table[VALE_C_RX_DROP_FULL].cr_name);
	ATF_CHECK_STREQ("frames",
	    vale_learn_counter_table[VALE_LEARN_C_FRAME].cr_name);
	ATF_CHECK_STREQ("tx_packets",
	    lem_counter_table[LEM_C_TX_PACKET].cr_name);
	ATF_CHECK_STREQ("dead", lem_counter_table[LEM_C_DEAD].cr_name);
}

TEST_PROGRAM
