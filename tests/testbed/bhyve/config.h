/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's configuration: a tree of nv(9) lists whose leaves are strings.  A
 * full path separates the names of nodes by dots, as sysctl(8) does.  If
 * `parent' is NULL, it is the root.  %(name) in a value is not expanded.
 *
 * The functions exit with a message if a name is malformed, if a leaf is used
 * as a node or a node as a leaf, or if there is no memory.  They do not lock:
 * one thread sets up the configuration.
 */

#ifndef _CONFIG_H_
#define	_CONFIG_H_

#include <sys/nv.h>

#include <stdbool.h>

/* Create an empty tree, in place of the one there is. */
void	init_config(void);

/* The node; if it does not exist, it is created, with its parents. */
nvlist_t *create_config_node(const char *path);
nvlist_t *create_relative_config_node(nvlist_t *parent, const char *path);

/* The node, or NULL. */
nvlist_t *find_config_node(const char *path);
nvlist_t *find_relative_config_node(nvlist_t *parent, const char *path);

/* The value, or NULL; valid until it is set again. */
const char *get_config_value(const char *path);
const char *get_config_value_node(const nvlist_t *parent, const char *name);

/* Add or replace a value. */
void	set_config_value(const char *path, const char *value);
void	set_config_value_node(nvlist_t *parent, const char *name,
	    const char *value);

/*
 * Truth values: true, on, yes, 1 and false, off, no, 0.  The functions exit if
 * the value is another one and, without _default, if it is not set.
 */
bool	get_config_bool(const char *path);
bool	get_config_bool_node(const nvlist_t *parent, const char *name);
bool	get_config_bool_default(const char *path, bool def);
bool	get_config_bool_node_default(const nvlist_t *parent, const char *name,
	    bool def);
void	set_config_bool(const char *path, bool value);
void	set_config_bool_node(nvlist_t *parent, const char *name, bool value);

#endif /* !_CONFIG_H_ */
