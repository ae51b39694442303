/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Settings that are preset: vale_setting_preset_all(). */

#ifndef _VALE_SETTING_PRESET_H_
#define	_VALE_SETTING_PRESET_H_

#include <stdbool.h>

struct vale_port;
struct vale_setting_change;
struct vale_setting_value;
struct vale_switch;

/*
 * Set what is preset of a new switch, or of a new port, which no view has yet.
 * Returns 0, or -1 with errno.  With vale_lock, and of a port also with the
 * lock of a change.
 */
void	vale_preset_switch(struct vale_switch *vs);
int	vale_preset_port(struct vale_port *port);

/*
 * Set source=own, if that is preset: the port of this name has an address now.
 * Returns 0, or -1 with errno.
 */
int	vale_preset_address(const char *name);

/*
 * Preset settings, or no longer.  Returns 0, or -1 with ENOMEM: nothing has
 * changed.  With vale_lock.
 */
int	vale_preset_change(const char *name,
	    const struct vale_setting_change *sc, unsigned int n);

/*
 * Set valid values of a switch or port that may be there, and for those to come
 * if `preset' is set: all in one change.  Returns 0, or -1 with errno, what
 * vale_error() returns, and *failed; ENXIO: there is no such switch or port.
 * vale_setting_switch.c.
 */
int	vale_setting_change(const char *name,
	    const struct vale_setting_change *sc, unsigned int n, bool preset,
	    unsigned int *failed);

/* Set a valid value of a switch or port that is new.  vale_setting_switch.c. */
void	vale_setting_begin_switch(struct vale_switch *vs, unsigned int setting,
	    const struct vale_setting_value *value);
int	vale_setting_begin_port(struct vale_port *port, unsigned int setting,
	    const struct vale_setting_value *value);

#endif /* !_VALE_SETTING_PRESET_H_ */
