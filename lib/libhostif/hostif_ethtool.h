/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What ethtool(8) shows and changes of an interface, as far as AF_XDP depends
 * on it, by ethtool's netlink messages (Linux 5.6): how many receive queues it
 * has, and whether it takes VLAN tags out of frames.  The kernel sends a
 * message for each change of any interface.
 */

#ifndef _HOSTIF_ETHTOOL_H_
#define	_HOSTIF_ETHTOOL_H_

#include <stdbool.h>
#include <stdint.h>

struct hostif_ethtool {
	uint32_t	he_queues;	/* receive queues; 0: not known */
	bool		he_untags;	/* takes VLAN tags out of frames */
	bool		he_untags_ad;	/* those of 802.1ad */
};

/*
 * Open a socket that tells changes, and set *family, which is 0 if the kernel
 * has no such messages: then the socket tells nothing.  Needs no privileges.
 * Returns -1 with errno.
 */
int	hostif_ethtool_open(uint16_t *family);

/*
 * Ask for the state of interface `index'.  The answers are events.  Without a
 * family, nothing is done.
 */
void	hostif_ethtool_ask(int s, uint16_t family, uint32_t index);

/*
 * Read pending messages, and set what they say of interface `index' in *he.
 * Returns false if it must be asked: messages were lost, or one says only that
 * there is a change.
 */
bool	hostif_ethtool_read(int s, uint32_t index, struct hostif_ethtool *he);

#endif /* !_HOSTIF_ETHTOOL_H_ */
