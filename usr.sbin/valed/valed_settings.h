/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The settings of switches and ports that the configuration has: variables of
 * adapters, and lines of switches and ports.
 */

#ifndef _VALED_SETTINGS_H_
#define	_VALED_SETTINGS_H_

#include <stdbool.h>

#include "adapter_config.h"
#include "vale_setting.h"

/* A setting without pointers, which can be sent to another process. */
struct valed_setting {
	char		 vst_name[VALE_NAME_SIZE];	/* what it is of */
	int		 vst_place;	/* that of the adapter whose variable it
					   is, valed_place(), or -1 */
	unsigned int	 vst_setting;
	struct vale_setting_value vst_value;
};

struct valed_settings {
	struct valed_setting *vss_list;	/* from malloc(3), or NULL */
	unsigned int	 vss_n;
	unsigned int	 vss_max;	/* that have room */
};

/*
 * Make the settings of all nodes and lines (valed_config.h), of which the nodes
 * have been checked; `adapters' are those of the nodes.
 */
void	valed_settings(struct valed_settings *ss,
	    const struct adapter_config *adapters, unsigned int nadapters);

/* Have room for `n' more.  Returns false, with errno, if there is none. */
bool	valed_settings_room(struct valed_settings *ss, unsigned int n);

/*
 * Take out the settings of the adapter at a place, and put in those that
 * another list has for it, for which there must be room.
 */
void	valed_settings_move(struct valed_settings *ss,
	    const struct valed_settings *from, int place);

/* Return whether a switch or port is one of those meant. */
typedef bool	valed_settings_of(const char *name, const void *arg);

/*
 * Replace the settings of the switches and ports that of() selects with those
 * of another list, for which there must be room.
 */
void	valed_settings_take(struct valed_settings *ss,
	    const struct valed_settings *from, valed_settings_of *of,
	    const void *arg);

/*
 * Call act() for each of these switches and ports of which settings change,
 * with all that do: first those that are to be set, then those that are no
 * longer.
 */
typedef void	valed_settings_act(const char *name,
		    const struct vale_setting_change *sc, unsigned int n);
void	valed_settings_plan(const struct valed_settings *old,
	    const struct valed_settings *new, valed_settings_of *of,
	    const void *arg, valed_settings_act *act);

#endif /* !_VALED_SETTINGS_H_ */
