/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The table of settings (vale_setting.h) in valectl(8), in what valectl -h
 * says, and in libvale(3).
 */

#include <sys/param.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "vale_setting.h"

/* Read a file, or what a command prints, with blanks for newlines. */
static void
read_all(FILE *f, char *text, size_t size)
{
	size_t len;

	ATF_REQUIRE(f != NULL);
	len = fread(text, 1, size - 1, f);
	ATF_REQUIRE(len > 0 && len < size - 1);
	text[len] = '\0';
	for (; *text != '\0'; text++)
		if (*text == '\n')
			*text = ' ';
}

static void
page_read(const atf_tc_t *tc, const char *page, char *text, size_t size)
{
	char path[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s",
	    atf_tc_get_config_var(tc, "srcdir"), page);
	f = fopen(path, "r");
	read_all(f, text, size);
	fclose(f);
}

/* A text has this number, as a word. */
static bool
has_number(const char *text, uint64_t n)
{
	const char *p = text;
	char word[32];
	size_t len;

	len = snprintf(word, sizeof(word), "%ju", (uintmax_t)n);
	while ((p = strstr(p, word)) != NULL) {
		if (!isdigit((unsigned char)p[-1]) &&
		    !isdigit((unsigned char)p[len]))
			return (true);
		p += len;
	}
	return (false);
}

/* What valectl(8) says of a setting, without the rest of the page. */
static void
paragraph(const char *page, const char *name, char *text, size_t size)
{
	const char *begin, *end;
	char item[64];

	snprintf(item, sizeof(item), ".It Cm %s Ns = Ns ", name);
	begin = strstr(page, item);
	ATF_REQUIRE_MSG(begin != NULL, "%s", item);
	ATF_CHECK_MSG(strstr(begin + 1, item) == NULL, "%s twice", name);
	end = strstr(begin + 1, " .It ");
	if (end == NULL || strstr(begin, " .El") < end)
		end = strstr(begin, " .El");
	ATF_REQUIRE(end != NULL && (size_t)(end - begin) + 2 < size);
	memcpy(text, begin, end - begin);
	memcpy(text + (end - begin), " ", 2);
}

TEST(pages, "Each setting, its range and its default is in valectl(8)")
{
	char page[32768], text[2048], unit[64];
	const struct vale_setting *se;
	const char *p;
	unsigned int n = 0;

	page_read(tc, "valectl.8", page, sizeof(page));
	for (se = vale_setting_table; se < vale_setting_table +
	    VALE_NSETTINGS; se++) {
		paragraph(page, se->se_name, text, sizeof(text));
		ATF_CHECK_MSG(strstr(text, se->se_scope == VALE_OF_SWITCH ?
		    "Of a switch:" : "Of a port:") != NULL, "%s", text);
		ATF_CHECK_MSG(strstr(text, "default") != NULL, "%s", text);
		if (se->se_kind != VALE_KIND_NUMBER)
			continue;
		ATF_CHECK_MSG(has_number(text, se->se_min), "%s", text);
		ATF_CHECK_MSG(has_number(text, se->se_max), "%s", text);
		ATF_CHECK_MSG(has_number(text, se->se_default), "%s", text);
		snprintf(unit, sizeof(unit), " Ns Ar %s ",
		    se->se_unit[0] != '\0' ? se->se_unit : "n");
		ATF_CHECK_MSG(strstr(text, unit) != NULL, "%s", text);
	}
	/* No others. */
	for (p = page; (p = strstr(p, ".It Cm ")) != NULL; p++)
		n += strncmp(p + 7 + strcspn(p + 7, " "), " Ns = ", 6) == 0;
	ATF_CHECK_EQ_MSG(VALE_NSETTINGS, n, "%u", n);
}

TEST(usage, "Each setting is in the usage")
{
	char command[1024], name[64], usage[8192];
	const struct vale_setting *se;
	FILE *f;

	snprintf(command, sizeof(command), "PATH=%s/../../../usr.sbin/valectl:"
	    "\"$PATH\" valectl -h", atf_tc_get_config_var(tc, "srcdir"));
	f = popen(command, "r");
	read_all(f, usage, sizeof(usage));
	ATF_REQUIRE_EQ(0, pclose(f));
	for (se = vale_setting_table; se < vale_setting_table +
	    VALE_NSETTINGS; se++) {
		snprintf(name, sizeof(name), " %s=", se->se_name);
		ATF_CHECK_MSG(strstr(usage, name) != NULL, "%s", name);
	}
}

TEST(numbers, "Numbers on the wire are those that they were, and no two are "
    "the same; names are in the order of the alphabet, except that a native "
    "VLAN is set after its trunk")
{
	static const char *const known[] = { [1] = "ageing", [2] = "limit",
	    [3] = "rate", [5] = "weight", [6] = "private", [7] = "batch",
	    [8] = "mirror", [9] = "vlan", [10] = "trunk", [11] = "native",
	    [12] = "source", [13] = "ip", [14] = "reserved" };
	unsigned int i, j;

	for (i = 0; i < nitems(known); i++) {
		j = vale_setting_find(i);
		if (known[i] == NULL)
			ATF_CHECK_EQ(VALE_NSETTINGS, j);
		else
			ATF_CHECK_STREQ(known[i],
			    vale_setting_table[j].se_name);
	}
	ATF_CHECK_EQ(4, VALE_SETTING_FRAMES);
	ATF_CHECK_EQ(VALE_SETTING_TRUNK + 1, VALE_SETTING_NATIVE);
	for (i = 1; i < VALE_NSETTINGS; i++) {
		if (i != VALE_SETTING_NATIVE && i != VALE_SETTING_NATIVE + 1)
			ATF_CHECK(strcmp(vale_setting_table[i - 1].se_name,
			    vale_setting_table[i].se_name) < 0);
		for (j = 0; j < i; j++)
			ATF_CHECK(vale_setting_table[i].se_number !=
			    vale_setting_table[j].se_number);
	}
}

TEST_PROGRAM
