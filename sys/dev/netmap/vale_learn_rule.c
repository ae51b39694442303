/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Lists of patterns.  They are kept as text: a port is matched when it is
 * added and when a list changes, which is rare.  A list is checked before it is
 * put in force.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_learn.h>

static bool
rule_blank(char c)
{
	return (c == ' ' || c == '\t' || c == '\n' || c == ',');
}

int
vale_learn_word(const char **text, char word[VALE_LEARN_WORD])
{
	const char *p = *text;
	size_t n = 0;

	while (rule_blank(*p))
		p++;
	for (; *p != '\0' && !rule_blank(*p); p++) {
		if (*p < '!' || *p > '~' || n == VALE_LEARN_WORD - 1)
			return (-1);
		word[n++] = *p;
	}
	word[n] = '\0';
	*text = p;
	return (n != 0);
}

/* Whether all of `p' is a decimal number up to `max'. */
static bool
rule_number(const char *p, unsigned int max, unsigned int *n)
{
	if (*p == '\0')
		return (false);
	for (*n = 0; *p != '\0'; p++) {
		if (*p < '0' || *p > '9')
			return (false);
		*n = *n * 10 + (*p - '0');
		if (*n > max)
			return (false);
	}
	return (true);
}

/*
 * Split a word, in place, into a pattern and the value for ports that match.
 * Returns false if the word is invalid for this rule.
 */
static bool
rule_parse(enum vale_learn_rule rule, char *word, const char **pattern,
    unsigned int *value)
{
	char *equals;

	if (rule != VALE_LEARN_LIMIT) {
		*value = word[0] != '!';
		*pattern = *value ? word : word + 1;
		return (**pattern != '\0');
	}
	equals = strrchr(word, '=');
	if (equals == NULL) {
		*pattern = "*";
		return (rule_number(word, VALE_FDB_ENTRIES, value));
	}
	*equals = '\0';
	*pattern = word;
	return (word[0] != '\0' &&
	    rule_number(equals + 1, VALE_FDB_ENTRIES, value));
}

bool
vale_learn_rule_valid(enum vale_learn_rule rule, const char *text)
{
	char word[VALE_LEARN_WORD];
	const char *pattern;
	unsigned int value;
	int r;

	while ((r = vale_learn_word(&text, word)) == 1) {
		if (!rule_parse(rule, word, &pattern, &value))
			return (false);
	}
	return (r == 0);
}

unsigned int
vale_learn_rule_match(enum vale_learn_rule rule, const char *text,
    const char *port_name)
{
	char word[VALE_LEARN_WORD];
	const char *colon = strchr(port_name, ':'), *pattern;
	unsigned int found = 0, value;

	if (colon != NULL)
		port_name = colon + 1;
	while (vale_learn_word(&text, word) == 1) {
		if (rule_parse(rule, word, &pattern, &value) &&
		    fnmatch(pattern, port_name, 0) == 0)
			found = value;
	}
	return (found);
}
