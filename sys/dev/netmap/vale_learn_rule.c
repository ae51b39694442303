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

/* Parse RATE[:BURST]; splits the text in place. */
static bool
rule_rate(char *p, struct vale_rate_conf *conf)
{
	char *colon = strchr(p, ':');

	memset(conf, 0, sizeof(*conf));
	if (colon != NULL)
		*colon = '\0';
	return (vale_rate_parse(p, conf) &&
	    (colon == NULL || vale_rate_parse_burst(colon + 1, conf)));
}

/*
 * Split a word, in place, into a pattern and the value for ports that match.
 * Returns false if the word is invalid for this rule.
 */
static bool
rule_parse(enum vale_learn_rule rule, char *word, const char **pattern,
    union vale_learn_value *value)
{
	char *equals, *text = word;

	if (rule == VALE_LEARN_PRIVATE || rule == VALE_LEARN_MIRROR) {
		value->v_number = word[0] != '!';
		*pattern = value->v_number ? word : word + 1;
		return (**pattern != '\0');
	}
	*pattern = "*";
	equals = strrchr(word, '=');
	if (equals != NULL) {
		*equals = '\0';
		*pattern = word;
		text = equals + 1;
	}
	return (**pattern != '\0' && (rule == VALE_LEARN_RATE ?
	    rule_rate(text, &value->v_rate) :
	    rule_number(text, VALE_FDB_ENTRIES, &value->v_number)));
}

bool
vale_learn_rule_valid(enum vale_learn_rule rule, const char *text)
{
	char word[VALE_LEARN_WORD];
	const char *pattern;
	union vale_learn_value value;
	int r;

	while ((r = vale_learn_word(&text, word)) == 1) {
		if (!rule_parse(rule, word, &pattern, &value))
			return (false);
	}
	return (r == 0);
}

void
vale_learn_rule_match(enum vale_learn_rule rule, const char *text,
    const char *port_name, union vale_learn_value *value)
{
	char word[VALE_LEARN_WORD];
	const char *colon = strchr(port_name, ':'), *pattern;
	union vale_learn_value found;

	memset(value, 0, sizeof(*value));
	if (colon != NULL)
		port_name = colon + 1;
	while (vale_learn_word(&text, word) == 1) {
		if (rule_parse(rule, word, &pattern, &found) &&
		    fnmatch(pattern, port_name, 0) == 0)
			*value = found;
	}
}
