/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The values of an adapter's variables.
 */

#ifndef _VALED_VALUES_H_
#define	_VALED_VALUES_H_

#include <stdbool.h>

#include "adapter_config.h"
#include "vale_setting.h"
#include "valed_config.h"

/*
 * Fill in *ac, except for ac_name, from a node with a valid device and backend.
 * A wrong value is an error of valed_wrong() (valed_config.h).
 */
void	valed_values(struct adapter_config *ac, const struct valed_node *vn);

/* Return whether a text is the name of a backend. */
bool	valed_backend_check(struct valed_where where, const char *backend);

/*
 * Check that two adapters share no port, socket or address.  If `checking'
 * (-t), two names of inherited sockets are two sockets.
 */
void	valed_values_twice(const struct adapter_config *ac,
	    const struct adapter_config *other, bool checking);

/*
 * Set *value to what a text is as a setting, or complain of `where' and return
 * false.
 */
bool	valed_values_setting(struct valed_where where, unsigned int setting,
	    const char *text, struct vale_setting_value *value);

/*
 * Compare the values of two adapters, without the settings of the port
 * (valed_settings.h).  Return whether all are the same; the first variable that
 * differs and cannot be changed from *ac to *other while the adapter has a
 * client, or -1; whether there is no such variable; and whether one variable
 * differs.
 */
bool	valed_values_same(const struct adapter_config *ac,
	    const struct adapter_config *other);
int	valed_values_bars(const struct adapter_config *ac,
	    const struct adapter_config *other);
bool	valed_values_in_place(const struct adapter_config *ac,
	    const struct adapter_config *other);
bool	valed_values_changed(const struct adapter_config *ac,
	    const struct adapter_config *other, int variable);

/* The names of devices; which one has `len' characters, or -1. */
extern const char *const valed_devices[ADAPTER_NDEVICES];
int	valed_device(const char *name, size_t len);

#endif /* !_VALED_VALUES_H_ */
