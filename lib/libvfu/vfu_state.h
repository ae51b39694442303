/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The state of a device, so that another process goes on with its client.
 *
 * A process that takes over
 *
 *  1. saves the state of the device that the old one has left, in memory that
 *     both have mapped, or gets it in this form;
 *  2. initializes a device elsewhere: vfu_device_init(), peer_mem_init(),
 *     vfu_device_set_keep(), vfu_server_init();
 *  3. restores it, with the old journal of ranges and the descriptors of the
 *     store;
 *  4. restores the model;
 *  5. has its own journal written, which may be in the place of the old one:
 *     peer_mem_set_journal();
 *  6. notes by one store that the new device counts, not the old one;
 *  7. removes from the store what is not pkt_used, and closes descriptors that
 *     were not taken;
 *  8. calls vfu_irq_flush(), and runs its loop.
 *
 * Until step 6 the old state and journal are as good as before, so a process
 * that ends earlier has changed nothing but interrupts that come once more.
 *
 * The form is little endian and has a version, which changes when something of
 * the form does.  No other version is read.
 */

#ifndef _VFU_STATE_H_
#define	_VFU_STATE_H_

#include <stddef.h>

#include "vfu_server.h"

struct peer_kept;
struct peer_mem_journal;
struct vfu_device;

#define	VFU_STATE_VERSION	1
/* Bytes of a state, at most. */
#define	VFU_STATE_MAX		(VFU_BUFFER + 2048)

/*
 * Write the state of a device, which may be in use by no process any more.
 * Reads only the device itself, follows no pointer in it, and trusts nothing.
 * Returns its length, or 0 if it is not consistent, with a reason in *why, or
 * does not fit.  Any thread, while the device's thread does not run.
 */
size_t	vfu_state_save(const struct vfu_device *vd, void *buf, size_t size,
	    const char **why);

/*
 * Go on from a state, which is not trusted, with the ranges of a journal and
 * the descriptors of a store.  The journal may be NULL: there are no ranges.
 * The device must be as new, without a client.  Entries of `kept' that are used
 * get pkt_used, and pkt_fd -1 if the device has taken the descriptor.
 *
 * The client keeps the PCI subsystem ID that it saw, until it leaves.
 * The functions of the device are called as after what the client has done:
 * vdo_bus_master() if the PCI command register permits it.  If the state has no
 * client, there is none afterwards, or one has just come (vdo_attach()), whose
 * socket was kept: then the model must be reset, as it may not have been.
 * vfu_state_client() tells.
 *
 * Returns 0 or an errno, with a reason in *why, and the device then is as
 * before but has counted what it did.  The device's thread.
 */
int	vfu_state_restore(struct vfu_device *vd, const void *buf, size_t len,
	    const struct peer_mem_journal *journal, struct peer_kept *kept,
	    size_t nkept, const char **why);

/*
 * Return whether a state, which is valid, has a client that had not left: then
 * the model goes on, too.
 */
bool	vfu_state_client(const void *buf, size_t len);

#endif /* !_VFU_STATE_H_ */
