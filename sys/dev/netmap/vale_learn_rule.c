/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Lists of patterns, as text: a port is matched when it is added and when a
 * list changes, which is rare.  A list is checked before it is put in force.
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

/* Return whether all of `p' is a decimal number up to `max'. */
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

/* Put commas in place of the signs +. */
static const char *
rule_list(char *p)
{
	char *q;

	for (q = p; *q != '\0'; q++) {
		if (*q == '+')
			*q = ',';
	}
	return (p);
}

static bool
rule_trunk(char *p, struct vale_vlan *vn)
{
	return (strcmp(p, "no") == 0 || vale_vlan_trunk(vn, rule_list(p)));
}

/*
 * Split a word, in place, into a pattern and the text of the value for ports
 * that match.  Returns the text.
 */
static char *
rule_split(enum vale_learn_rule rule, char *word, const char **pattern)
{
	char *equals;

	if (rule == VALE_LEARN_PRIVATE || rule == VALE_LEARN_MIRROR) {
		*pattern = word[0] == '!' ? word + 1 : word;
		return (word);
	}
	*pattern = "*";
	equals = strrchr(word, '=');
	if (equals == NULL)
		return (word);
	*equals = '\0';
	*pattern = word;
	return (equals + 1);
}

/* Parse a value, and change its text.  Returns false if that is invalid. */
static bool
rule_parse(enum vale_learn_rule rule, char *text,
    union vale_learn_value *value)
{
	memset(value, 0, sizeof(*value));
	switch (rule) {
	case VALE_LEARN_PRIVATE:
	case VALE_LEARN_MIRROR:
		value->v_number = text[0] != '!';
		return (true);
	case VALE_LEARN_LIMIT:
		return (rule_number(text, VALE_FDB_ENTRIES, &value->v_number));
	case VALE_LEARN_RATE:
		return (rule_rate(text, &value->v_rate));
	case VALE_LEARN_VLAN:
	case VALE_LEARN_NATIVE:
		return (rule_number(text, VALE_VLAN_MAX, &value->v_number));
	case VALE_LEARN_TRUNK:
		return (rule_trunk(text, &value->v_trunk));
	case VALE_LEARN_SOURCE:
		return (vale_guard_sources(&value->v_guard, rule_list(text)));
	case VALE_LEARN_IP:
		return (vale_guard_prefixes(&value->v_guard, rule_list(text)));
	case VALE_LEARN_NRULES:
		break;
	}
	return (false);
}

bool
vale_learn_rule_empty(const char *text)
{
	while (rule_blank(*text))
		text++;
	return (*text == '\0');
}

bool
vale_learn_rule_valid(enum vale_learn_rule rule, const char *text)
{
	char word[VALE_LEARN_WORD], *p;
	const char *pattern;
	union vale_learn_value value;
	int r;

	while ((r = vale_learn_word(&text, word)) == 1) {
		p = rule_split(rule, word, &pattern);
		if (*pattern == '\0' || !rule_parse(rule, p, &value))
			return (false);
	}
	return (r == 0);
}

void
vale_learn_rule_match(enum vale_learn_rule rule, const char *text,
    const char *port_name, union vale_learn_value *value)
{
	char word[VALE_LEARN_WORD], *p;
	const char *colon = strchr(port_name, ':'), *pattern;

	memset(value, 0, sizeof(*value));
	if (colon != NULL)
		port_name = colon + 1;
	while (vale_learn_word(&text, word) == 1) {
		p = rule_split(rule, word, &pattern);
		if (fnmatch(pattern, port_name, 0) == 0)
			(void)rule_parse(rule, p, value);
	}
}
