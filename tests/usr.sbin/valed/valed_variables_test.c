/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Every variable of valed's configuration files: what valed -t says when one is
 * wrong, with its line, and that valed(8) has it.
 */

#include <sys/param.h>
#include <sys/wait.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "vale_setting.h"
#include "valed_config.h"

/* The line with the wrong value. */
#define	LINE	3

/* A value that is wrong, and one that is right with the others here. */
static const struct {
	const char	*name;
	const char	*wrong;		/* NULL: only a long one is */
	const char	*right;		/* NULL: without it */
} values[] = {
	{ "path", NULL, "a.sock" },
	{ "fd", "name", NULL },
	{ "control", "ctl", NULL },
	{ "mac", "01:00:00:00:00:01", "02:00:00:00:00:01" },
	{ "mtu", "67", "1500" },
	{ "itr", "65536", "250" },
	{ "itr_min", "-1", "100" },
	{ "csb", "1", "off" },
	{ "direct", "yes", "on" },
	{ "announce", "1", "off" },
	{ "poll", "1001", "50" },
	{ "mem", "1", "1G" },
	{ "ip", "192.0.2", "192.0.2.1,2001:db8::/64" },
	{ "limit", "5121", "2" },
	{ "link", "yes", "down" },
	{ "mirror", "vale0", "vale0:b/t" },
	{ "private", "yes", "on" },
	{ "rate", "1g", "300Mbit/s,burst=64K" },
	{ "source", "01:00:00:00:00:01", "own" },
	{ "trunk", "4095", "10,20-30" },
	{ "native", "x", "5" },
	{ "vlan", "4095", NULL },
	{ "weight", "0", "3" },
	{ "backend", "eth0", "vale0:a" },
	{ "device", "virtio-net", "e1000" },
};
_Static_assert(nitems(values) == VALED_NVARIABLES, "a row for each variable");

/*
 * A file with `text' on LINE, and right values of all variables but number i.
 * Of a path and an inherited socket there is one.
 */
static void
file_make(unsigned int i, const char *text)
{
	const bool fd = strcmp(values[i].name, "fd") == 0;
	unsigned int n, line = 1;
	FILE *f;

	f = fopen("valed.conf", "w");
	ATF_REQUIRE(f != NULL);
	for (n = nitems(values); n-- > 0;) {
		if (line == LINE) {
			fprintf(f, "%s\n", text);
			line++;
		}
		if (n == i || values[n].right == NULL ||
		    (fd && strcmp(values[n].name, "path") == 0))
			continue;
		fprintf(f, "pci.0.1.0.%s=%s\n", values[n].name,
		    values[n].right);
		line++;
	}
	ATF_REQUIRE(line > LINE);
	ATF_REQUIRE_EQ(0, fclose(f));
}

/* Run valed with `flags'.  Returns its status, and what it prints. */
static int
check(const atf_tc_t *tc, const char *flags, char *out, size_t size)
{
	char command[1024];
	size_t n;
	FILE *p;

	snprintf(command, sizeof(command), "PATH=%s/../../../usr.sbin/valed:"
	    "\"$PATH\" valed %s -k valed.conf 2>&1",
	    atf_tc_get_config_var(tc, "srcdir"), flags);
	p = popen(command, "r");
	ATF_REQUIRE(p != NULL);
	n = fread(out, 1, size - 1, p);
	out[n] = '\0';
	return (WEXITSTATUS(pclose(p)));
}

/* The file is wrong on LINE, for a reason that has `why' in it. */
static void
wrong(const atf_tc_t *tc, const char *flags, const char *why)
{
	char begin[64], out[1024];
	int status = check(tc, flags, out, sizeof(out));

	snprintf(begin, sizeof(begin), "valed: valed.conf:%d: ", LINE);
	ATF_CHECK_EQ_MSG(EX_CONFIG, status, "%s: %d", why, status);
	ATF_CHECK_MSG(strncmp(out, begin, strlen(begin)) == 0 &&
	    strstr(out, why) != NULL && strchr(out, '\n') != NULL &&
	    strchr(out, '\n')[1] == '\0', "%s: %s", why, out);
}

TEST(lines, "A wrong value of each variable is named with its line")
{
	char text[512];
	unsigned int i;

	for (i = 0; i < nitems(values); i++) {
		ATF_REQUIRE_STREQ(valed_variables[i].var_name, values[i].name);
		if (values[i].wrong == NULL)
			continue;
		snprintf(text, sizeof(text), "pci.0.1.0.%s=%s",
		    values[i].name, values[i].wrong);
		file_make(i, text);
		wrong(tc, "", values[i].wrong);
		/* Whoever checks a file does not inherit its sockets. */
		if (strcmp(values[i].name, "fd") == 0)
			ATF_CHECK_EQ(0, check(tc, "-t", text, sizeof(text)));
		else
			wrong(tc, "-t", values[i].wrong);
	}
}

TEST(right, "All that is right, with blanks")
{
	char out[512];
	unsigned int i;
	FILE *f;

	f = fopen("valed.conf", "w");
	ATF_REQUIRE(f != NULL);
	for (i = 0; i < nitems(values); i++)
		if (values[i].right != NULL)
			fprintf(f, "\tpci.0.1.0.%s \t=  %s \n",
			    values[i].name, values[i].right);
	ATF_REQUIRE_EQ(0, fclose(f));
	ATF_CHECK_EQ_MSG(0, check(tc, "-t", out, sizeof(out)), "%s", out);
	ATF_CHECK_STREQ("", out);
	ATF_CHECK_MSG(access("a.sock", F_OK) == -1, "not only checked");
}

/*
 * The names that valed(8) has: in CONFIGURATION as variables, or in the list
 * of the options of -s.  Returns how many.
 */
static unsigned int
page_names(const atf_tc_t *tc, bool config, char names[][32], unsigned int max)
{
	char line[256], name[64], path[1024], section[32] = "";
	bool options = false;
	unsigned int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/valed.8",
	    atf_tc_get_config_var(tc, "srcdir"));
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL) {
		(void)sscanf(line, ".Sh %31s", section);
		if (strncmp(line, ".Ss", 3) == 0)
			section[0] = '\0';
		if (strncmp(line, ".It Fl ", 7) == 0)
			options = line[7] == 's';
		if (config ? strcmp(section, "CONFIGURATION") != 0 ||
		    sscanf(line, ".Va %63s", name) != 1 : !options ||
		    sscanf(line, ".It Cm %63[a-z_]=", name) != 1 ||
		    strchr(line, '=') == NULL)
			continue;
		ATF_REQUIRE(n < max);
		strlcpy(names[n++], name, 32);
	}
	fclose(f);
	return (n);
}

TEST(page, "valed(8) has each variable, and no other")
{
	char names[2 * VALED_NVARIABLES][32];
	unsigned int found, i, j, max, n, pass;

	for (pass = 0; pass < 2; pass++) {
		max = pass == 0 ? VALED_NVARIABLES : VALED_NOPTIONS;
		n = page_names(tc, pass == 0, names, nitems(names));
		for (i = 0; i < max; i++) {
			for (found = j = 0; j < n; j++)
				found += strcmp(names[j],
				    valed_variables[i].var_name) == 0;
			ATF_CHECK_EQ_MSG(1, found, "%s: %u times, in %s",
			    valed_variables[i].var_name, found, pass == 0 ?
			    "CONFIGURATION" : "the options of -s");
		}
		ATF_CHECK_EQ_MSG(max, n, "%u in pass %u", n, pass);
	}
}

/* What valed(8) says of an option of -s, on one line. */
static void
page_text(const atf_tc_t *tc, const char *name, char *text, size_t size)
{
	char item[64], line[256], path[1024];
	bool in = false, options = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/valed.8",
	    atf_tc_get_config_var(tc, "srcdir"));
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	snprintf(item, sizeof(item), ".It Cm %s= ", name);
	text[0] = '\0';
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, ".It Fl ", 7) == 0)
			options = line[7] == 's';
		if (strncmp(line, ".It ", 4) == 0 || strncmp(line, ".El",
		    3) == 0)
			in = options && strncmp(line, item, strlen(item)) == 0;
		line[strcspn(line, "\n")] = ' ';
		if (in)
			ATF_REQUIRE(strlcat(text, line, size) < size);
	}
	fclose(f);
}

/* A text has this number, as a word. */
static bool
has_number(const char *text, uint64_t n)
{
	char word[32];
	const char *p = text;
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

TEST(ranges, "valed(8) has the ranges and defaults, and the usage the greatest "
    "numbers; those of ports are the switch's")
{
	const struct valed_variable *v;
	const struct vale_setting *se;
	char text[4096], usage[8192];
	uint64_t max, min, otherwise;

	(void)check(tc, "-h", usage, sizeof(usage));
	for (v = valed_variables; v < valed_variables + VALED_NOPTIONS; v++) {
		page_text(tc, v->var_name, text, sizeof(text));
		se = v->var_setting == -1 ? NULL :
		    &vale_setting_table[v->var_setting];
		min = se != NULL ? se->se_min : v->var_min;
		max = se != NULL ? se->se_max : v->var_max;
		otherwise = se != NULL ? se->se_default : v->var_default;
		if (se != NULL ? se->se_kind == VALE_KIND_NUMBER :
		    v->var_kind == VALED_KIND_NUMBER) {
			/* The same as the option before. */
			if (strstr(text, "The same") == NULL) {
				ATF_CHECK_MSG(has_number(text, min) &&
				    has_number(text, max), "%s", text);
				ATF_CHECK_MSG(has_number(usage, max), "%s",
				    v->var_name);
			}
			/* Without a limit that is the maximum. */
			ATF_CHECK_MSG(strstr(text, "The default is ") != NULL &&
			    (has_number(strstr(text, "The default is "),
			    otherwise) || has_number(strstr(text,
			    "The default is "), max)), "%s", text);
		}
		if (se != NULL ? se->se_kind == VALE_KIND_BOOL :
		    v->var_kind == VALED_KIND_BOOL) {
			ATF_CHECK_EQ(1, max);
			ATF_CHECK_MSG(strstr(text, otherwise != 0 ?
			    "default is on" : "default is .Cm off") != NULL,
			    "%s", text);
		}
	}
}

TEST_PROGRAM
