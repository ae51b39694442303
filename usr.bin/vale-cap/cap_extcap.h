/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * extcap(4): what Wireshark asks before it captures.
 */

#ifndef _CAP_EXTCAP_H_
#define	_CAP_EXTCAP_H_

/* Print a line for each port of valed's switches; none if there is no valed. */
void	cap_extcap_interfaces(void);

/* Print the kind of the frames of an interface. */
void	cap_extcap_dlts(void);

/* Print the options of a capture that may be chosen: vale-cap(1). */
void	cap_extcap_config(void);

/* Print what is wrong with a filter expression, if anything. */
void	cap_extcap_filter(const char *expression);

#endif /* !_CAP_EXTCAP_H_ */
