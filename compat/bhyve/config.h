/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's configuration: a tree of nv(9) lists whose leaves are strings.  Full
 * paths name nodes with dots between, as sysctl(8) does.  `parent' NULL means
 * the root.  Values are taken as they are: %(name) is not expanded.
 *
 * A malformed name, a node where a leaf should be or the reverse, and want of
 * memory end the program with a message.  No locks; set up by one thread.
 */

#ifndef _CONFIG_H_
#define	_CONFIG_H_

#include <sys/nv.h>

#include <stdbool.h>

/* Begin with an empty tree. */
void	init_config(void);

/* The node, made with all that lead to it if need be. */
nvlist_t *create_config_node(const char *path);
nvlist_t *create_relative_config_node(nvlist_t *parent, const char *path);

/* The node, or NULL. */
nvlist_t *find_config_node(const char *path);
nvlist_t *find_relative_config_node(nvlist_t *parent, const char *path);

/* The value, or NULL; good until it is set again. */
const char *get_config_value(const char *path);
const char *get_config_value_node(const nvlist_t *parent, const char *name);

/* Add or replace a value. */
void	set_config_value(const char *path, const char *value);
void	set_config_value_node(nvlist_t *parent, const char *name,
	    const char *value);

/*
 * Truth values: true, on, yes, 1 and false, off, no, 0; anything else ends
 * the program.  Without _default, so does a value that is not set.
 */
bool	get_config_bool(const char *path);
bool	get_config_bool_node(const nvlist_t *parent, const char *name);
bool	get_config_bool_default(const char *path, bool def);
bool	get_config_bool_node_default(const nvlist_t *parent, const char *name,
	    bool def);
void	set_config_bool(const char *path, bool value);
void	set_config_bool_node(nvlist_t *parent, const char *name, bool value);

#endif /* !_CONFIG_H_ */
