/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Settings that were changed while valed runs, kept for the next process: those
 * of switches, and of ports of adapters and attached interfaces, that differ
 * from what the configuration says.  The settings of a program's port end with
 * it, as always.
 *
 * They are a file in the store (valed_store.h), "settings".  The first line
 * says what it is; each other one has, between tabs, the name of a switch or
 * port, that of the setting, its value, and the value that the configuration
 * had.  Where the next configuration has another, that is what is set.  Nothing
 * in the file is trusted: a client may have taken over the process.
 */

#ifndef _VALED_SETTINGS_KEEP_H_
#define	_VALED_SETTINGS_KEEP_H_

struct valed_options;

/*
 * Have the settings that an earlier process has left set on the switches, and
 * on the ports of *opt, when these come.  The
 * main thread, when the settings of the configuration are kept and no port is
 * there.
 */
void	valed_settings_keep_start(const struct valed_options *opt);

/*
 * Write the file again, or remove it, as the settings are now.  Without a
 * store, nothing.  Any thread, with no lock.
 */
void	valed_settings_keep(void);

#endif /* !_VALED_SETTINGS_KEEP_H_ */
