/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The option -c, value by value, up to the greatest and the longest; and what
 * is said of the next one.
 */

#include <sys/param.h>

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "valed_control.h"
#include "valed_socket.h"

static uint64_t
host_memory(void)
{
	return ((uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

TEST(sizes, "A size is a number with M, G or T, from 1M to 1T")
{
	static const struct {
		const char *text;
		uint64_t size;		/* 0: none */
	} rows[] = {
		{ "1M", UINT64_C(1) << 20 },
		{ "3M", UINT64_C(3) << 20 },
		{ "1048576M", UINT64_C(1) << 40 },
		{ "1048577M", 0 },
		{ "2G", UINT64_C(2) << 30 },
		{ "1024G", UINT64_C(1) << 40 },
		{ "1025G", 0 },
		{ "1T", UINT64_C(1) << 40 },
		{ "0001T", UINT64_C(1) << 40 },
		{ "2T", 0 },
		{ "0M", 0 }, { "0T", 0 }, { "", 0 }, { "M", 0 }, { "1", 0 },
		{ "1m", 0 }, { "1K", 0 }, { "1P", 0 }, { "1MB", 0 },
		{ "-1M", 0 }, { " 1M", 0 }, { "1 M", 0 }, { "1.5G", 0 },
		/* 2^44 and 2^64, in these units. */
		{ "16777216M", 0 }, { "16777216T", 0 },
		{ "17592186044416M", 0 }, { "17592186044417M", 0 },
		{ "1099511627776M", 0 }, { "1099511627777M", 0 },
		{ "18446744073709551617M", 0 },
		{ "18446744073709551616000001T", 0 },
	};
	uint64_t size;
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		ATF_CHECK_EQ_MSG(rows[i].size != 0,
		    valed_size_parse(rows[i].text, &size), "%s", rows[i].text);
		if (rows[i].size != 0)
			ATF_CHECK_EQ_MSG(rows[i].size, size, "%s",
			    rows[i].text);
	}
}

static struct control_config co;

static void
control(const char *option)
{
	const char *why = valed_control_parse(&co, option);

	ATF_CHECK_MSG(why == NULL, "%s: %s", option, why);
}

static void
bad_control(const char *option, const char *expected)
{
	const char *why = valed_control_parse(&co, option);

	ATF_REQUIRE_MSG(why != NULL, "%s", option);
	ATF_CHECK_STREQ(expected, why);
}

TEST(control, "-c: each option, from the smallest value to the greatest")
{
	const struct group *gr = getgrgid(1);
	char option[600], want[700];

	control("ctl");
	ATF_CHECK_STREQ("ctl", co.co_path);
	ATF_CHECK_EQ(-1, co.co_fd);
	ATF_CHECK_EQ(-1, co.co_listen);
	ATF_CHECK_EQ(VALED_NOGROUP, co.co_access.va_group);
	ATF_CHECK_EQ(VALED_NOMODE, co.co_access.va_mode);
	ATF_CHECK_EQ(VALED_NOGROUP, co.co_options.admin);
	ATF_CHECK_EQ(host_memory() / 4, co.co_options.mem);
	ATF_CHECK_EQ(host_memory() / 4 / 2, co.co_options.user_mem);
	control("c,group=4294967294,mode=777,admin=0,mem=1M,user_mem=1T");
	ATF_CHECK_EQ(4294967294, co.co_access.va_group);
	ATF_CHECK_EQ(0777, co.co_access.va_mode);
	ATF_CHECK_EQ(0, co.co_options.admin);
	ATF_CHECK_EQ(1 << 20, co.co_options.mem);
	ATF_CHECK_EQ(UINT64_C(1) << 40, co.co_options.user_mem);
	control("c,admin=7,mem=1T,mode=0,group=0");
	ATF_CHECK_EQ(0, co.co_access.va_group);
	ATF_CHECK_EQ(0, co.co_access.va_mode);
	ATF_CHECK_EQ(7, co.co_options.admin);
	ATF_CHECK_EQ(UINT64_C(1) << 40, co.co_options.mem);
	ATF_CHECK_EQ(UINT64_C(1) << 39, co.co_options.user_mem);
	control("c,mode=00640");
	ATF_CHECK_EQ(0640, co.co_access.va_mode);
	if (gr != NULL) {
		snprintf(option, sizeof(option), "c,group=%s", gr->gr_name);
		control(option);
		ATF_CHECK_EQ(1, co.co_access.va_group);
	}
	bad_control("", "one path is needed");
	bad_control("c,", "unknown option \"\"");
	bad_control("c,x,mode=0", "unknown option \"x\"");
	bad_control("c,grou=1", "unknown option \"grou=1\"");
	bad_control("c,modes=1", "unknown option \"modes=1\"");
	bad_control("c,xode=1", "unknown option \"xode=1\"");
	bad_control("c,mode", "mode=: the value is missing");
	bad_control("c,user_mem=", "user_mem=: the value is missing");
	bad_control("c,group=4294967295",
	    "group=4294967295: not the number of a group");
	bad_control("c,group=no-such", "group=no-such: no such group");
	bad_control("c,admin=no-such", "admin=no-such: no such group");
	bad_control("c,group=1,mode=1,group=1", "group= twice");
	bad_control("c,admin=1,mode=1,admin=1", "admin= twice");
	bad_control("c,mode=0,mode=0", "mode= twice");
	bad_control("c,mem=1M,mem=1M", "mem= twice");
	bad_control("c,user_mem=1M,user_mem=1M", "user_mem= twice");
	bad_control("c,mode=1000", "mode=1000: not an octal number up to 777");
	bad_control("c,mode=8", "mode=8: not an octal number up to 777");
	bad_control("c,mode=-1", "mode=-1: not an octal number up to 777");
	bad_control("c,mode=7777777777777777777777777",
	    "mode=7777777777777777777777777: not an octal number up to 777");
	bad_control("c,group=99999999999",
	    "group=99999999999: not the number of a group");
	bad_control("c,mode=+7", "mode=+7: not an octal number up to 777");
	bad_control("c,mem=1", "mem=1: not a size from 1M to 1T, with M, G or "
	    "T");
	bad_control("c,mem=1M,user_mem=x", "user_mem=x: not a size from 1M to "
	    "1T, with M, G or T");
	bad_control("fd=no", "no such name in LISTEN_FDNAMES");
	/* The longest option. */
	memset(option, '0', sizeof(option));
	memcpy(option, "c,mode=", 7);
	option[511] = '\0';
	control(option);
	ATF_CHECK_EQ(0, co.co_access.va_mode);
	option[511] = '0';
	option[512] = '\0';
	bad_control(option, "longer than 511 bytes");
	/* And the longest reason. */
	memset(option, 'x', sizeof(option));
	memcpy(option, "c,group=", 8);
	option[511] = '\0';
	snprintf(want, sizeof(want), "%s: no such group", option + 2);
	bad_control(option, want);
}

TEST_PROGRAM
