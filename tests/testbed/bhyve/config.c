/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/cdefs.h>
#include <sys/param.h>

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "config.h"

static nvlist_t *config_root;

void
init_config(void)
{
	nvlist_destroy(config_root);
	config_root = nvlist_create(0);
	if (config_root == NULL)
		err(EX_OSERR, "configuration");
}

static nvlist_t *
config_create(nvlist_t *parent, const char *name)
{
	nvlist_t *nvl;

	nvl = nvlist_create(0);
	if (nvl == NULL)
		err(EX_OSERR, "configuration");
	nvlist_move_nvlist(parent, name, nvl);
	return (nvl);
}

/*
 * The node `path' below `parent'.  If it does not exist, create it or return
 * NULL.
 */
static nvlist_t *
config_walk(nvlist_t *parent, const char *path, bool create)
{
	char *copy, *name, *rest;
	nvlist_t *node;

	rest = copy = strdup(path);
	if (copy == NULL)
		err(EX_OSERR, "configuration");
	node = parent == NULL ? config_root : parent;
	while (node != NULL && (name = strsep(&rest, ".")) != NULL) {
		if (*name == '\0')
			errx(EX_USAGE, "bad configuration node '%s'", path);
		if (nvlist_exists_nvlist(node, name))
			node = __DECONST(nvlist_t *,
			    nvlist_get_nvlist(node, name));
		else if (nvlist_exists_string(node, name))
			errx(EX_USAGE, "configuration: '%s' in '%s' is a value",
			    name, path);
		else
			node = create ? config_create(node, name) : NULL;
	}
	free(copy);
	return (node);
}

nvlist_t *
create_config_node(const char *path)
{
	return (config_walk(NULL, path, true));
}

nvlist_t *
create_relative_config_node(nvlist_t *parent, const char *path)
{
	return (config_walk(parent, path, true));
}

nvlist_t *
find_config_node(const char *path)
{
	return (config_walk(NULL, path, false));
}

nvlist_t *
find_relative_config_node(nvlist_t *parent, const char *path)
{
	return (config_walk(parent, path, false));
}

/*
 * Split a full path into its node, *nodep, and the name of the leaf, which is
 * returned.  If the node does not exist, create it or set *nodep to NULL.
 */
static const char *
config_split(const char *path, nvlist_t **nodep, bool create)
{
	const char *dot;
	char *prefix;

	dot = strrchr(path, '.');
	if (dot == NULL) {
		*nodep = config_root;
		return (path);
	}
	prefix = strndup(path, dot - path);
	if (prefix == NULL)
		err(EX_OSERR, "configuration");
	*nodep = config_walk(NULL, prefix, create);
	free(prefix);
	return (dot + 1);
}

const char *
get_config_value_node(const nvlist_t *parent, const char *name)
{
	if (parent == NULL)
		parent = config_root;
	if (!nvlist_exists_string(parent, name))
		return (NULL);
	return (nvlist_get_string(parent, name));
}

const char *
get_config_value(const char *path)
{
	const char *name;
	nvlist_t *node;

	name = config_split(path, &node, false);
	return (node == NULL ? NULL : get_config_value_node(node, name));
}

void
set_config_value_node(nvlist_t *parent, const char *name, const char *value)
{
	char *copy;

	if (*name == '\0' || strchr(name, '.') != NULL)
		errx(EX_USAGE, "bad configuration variable '%s'", name);
	if (parent == NULL)
		parent = config_root;
	if (nvlist_exists_nvlist(parent, name))
		errx(EX_USAGE, "configuration: '%s' is not a variable", name);
	/* `value' may point into the string that nvlist_free() frees. */
	copy = strdup(value);
	if (copy == NULL)
		err(EX_OSERR, "configuration");
	if (nvlist_exists_string(parent, name))
		nvlist_free(parent, name);
	nvlist_add_string(parent, name, copy);
	free(copy);
}

void
set_config_value(const char *path, const char *value)
{
	const char *name;
	nvlist_t *node;

	name = config_split(path, &node, true);
	set_config_value_node(node, name, value);
}

static bool
config_bool(const char *name, const char *value)
{
	static const char * const words[][2] = {
		{ "false", "true" }, { "off", "on" }, { "no", "yes" },
		{ "0", "1" },
	};
	size_t i;

	for (i = 0; i < nitems(words); i++) {
		if (strcasecmp(value, words[i][0]) == 0)
			return (false);
		if (strcasecmp(value, words[i][1]) == 0)
			return (true);
	}
	errx(EX_USAGE, "%s=%s: neither true nor false", name, value);
}

bool
get_config_bool_default(const char *path, bool def)
{
	const char *value;

	value = get_config_value(path);
	return (value == NULL ? def : config_bool(path, value));
}

bool
get_config_bool_node_default(const nvlist_t *parent, const char *name,
    bool def)
{
	const char *value;

	value = get_config_value_node(parent, name);
	return (value == NULL ? def : config_bool(name, value));
}

bool
get_config_bool(const char *path)
{
	const char *value;

	value = get_config_value(path);
	if (value == NULL)
		errx(EX_USAGE, "%s is not set", path);
	return (config_bool(path, value));
}

bool
get_config_bool_node(const nvlist_t *parent, const char *name)
{
	const char *value;

	value = get_config_value_node(parent, name);
	if (value == NULL)
		errx(EX_USAGE, "%s is not set", name);
	return (config_bool(name, value));
}

void
set_config_bool(const char *path, bool value)
{
	set_config_value(path, value ? "true" : "false");
}

void
set_config_bool_node(nvlist_t *parent, const char *name, bool value)
{
	set_config_value_node(parent, name, value ? "true" : "false");
}
