/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's configuration.  Tests have one device, so that there is one node,
 * whose values are strings.  The functions exit with a message if a name is
 * malformed, or if there is no memory.  They do not lock: one thread sets up
 * the configuration.
 */

#ifndef _CONFIG_H_
#define	_CONFIG_H_

#include <sys/nv.h>

/* Remove all values. */
void	init_config(void);

/* Return the node. */
nvlist_t *create_config_node(const char *path);

/* Return a value, or NULL; it is valid until it is set again. */
const char *get_config_value_node(const nvlist_t *parent, const char *name);

/* Add or replace a value. */
void	set_config_value_node(nvlist_t *parent, const char *name,
	    const char *value);

#endif /* !_CONFIG_H_ */
