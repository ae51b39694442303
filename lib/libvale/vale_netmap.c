/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * libvale.h over FreeBSD's /dev/netmap: the kernel's own VALE.  netmap(4).
 *
 * NR_EXCLUSIVE makes a second open of a port fail with EBUSY; without it netmap
 * would let two programs share the rings.  NR_NO_TX_POLL keeps poll(2) and
 * kevent(2) from transmitting: only vale_txsync() does.
 *
 * Both calls do what NIOCRXSYNC does: return slots, and show new frames.  So
 * the descriptor is readable whenever frames are pending, whatever the last
 * vale_rxsync() found, and a thread that waits for the descriptor needs no
 * system call of vale_rxsync() before a frame nor after.
 */

#include <sys/param.h>
#include <sys/capsicum.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libvale.h"
#include "vale_name.h"

_Static_assert(sizeof(((struct nmreq_header *)0)->nr_name) == VALE_NAME_SIZE,
    "nr_name");

struct netmap_port {
	struct vale_desc	 np_desc;	/* must be first */
	struct vale_common	 np_common;
	void			*np_mem;
	size_t			 np_memsize;
	uint32_t		 np_rx_head;	/* at the last vale_rxsync() */
	uint32_t		 np_rx_synced;	/* at its last system call */
};

/* Check a number of slots, which the kernel would round. */
static bool
netmap_slots_valid(uint32_t slots)
{
	return (slots == 0 ||
	    (slots >= VALE_SLOTS_MIN && slots <= VALE_SLOTS_MAX));
}

static int
netmap_request(int fd, const char *name, uint16_t type, void *body)
{
	struct nmreq_header hdr;

	memset(&hdr, 0, sizeof(hdr));
	hdr.nr_version = NETMAP_API;
	hdr.nr_reqtype = type;
	hdr.nr_body = (uintptr_t)body;
	memcpy(hdr.nr_name, name, strlen(name));
	return (ioctl(fd, NIOCCTRL, &hdr));
}

const char *
vale_name_error(const char *name)
{
	return (vale_name_check(name, &vale_name_kernel));
}

/*
 * Leave the rights to sync, to wait and, if `ctrl', to configure.  A kernel
 * without capsicum(4) has no rights to take.
 */
static int
netmap_limit(int fd, bool ctrl)
{
	static const unsigned long cmds[] = { NIOCTXSYNC, NIOCRXSYNC,
	    NIOCCTRL };
	cap_rights_t rights;

	cap_rights_init(&rights, CAP_EVENT, CAP_IOCTL);
	if (cap_rights_limit(fd, &rights) == -1 ||
	    cap_ioctls_limit(fd, cmds, nitems(cmds) - (ctrl ? 0 : 1)) == -1)
		return (errno == ENOSYS ? 0 : -1);
	return (0);
}

struct vale_desc *
vale_open(const char *name, const struct vale_params *params)
{
	struct nmreq_register reg;
	struct netmap_port *np;
	struct vale_common *vc;
	struct vale_desc *d;

	memset(&reg, 0, sizeof(reg));
	reg.nr_mode = NR_REG_ALL_NIC;
	reg.nr_flags = NR_EXCLUSIVE | NR_NO_TX_POLL | NR_ACCEPT_VNET_HDR;
	reg.nr_tx_rings = reg.nr_rx_rings = 1;
	if (params != NULL) {
		reg.nr_tx_slots = params->tx_slots;
		reg.nr_rx_slots = params->rx_slots;
		if (params->monitor != 0 || params->rings > 1) {
			errno = EOPNOTSUPP;
			return (NULL);
		}
		if (params->filter_len > 0) {
			errno = EINVAL;
			return (NULL);
		}
	}
	if (vale_name_error(name) != NULL ||
	    !netmap_slots_valid(reg.nr_tx_slots) ||
	    !netmap_slots_valid(reg.nr_rx_slots)) {
		errno = EINVAL;
		return (NULL);
	}

	np = calloc(1, sizeof(*np));
	if (np == NULL)
		return (NULL);
	d = &np->np_desc;
	d->fd = open(NETMAP_DEVICE_NAME, O_RDWR | O_CLOEXEC);
	if (d->fd == -1)
		goto fail_open;
	if (netmap_request(d->fd, name, NETMAP_REQ_REGISTER, &reg) == -1)
		goto fail_register;
	np->np_memsize = reg.nr_memsize;
	np->np_mem = mmap(NULL, np->np_memsize, PROT_READ | PROT_WRITE,
	    MAP_SHARED, d->fd, 0);
	if (np->np_mem == MAP_FAILED)
		goto fail_register;
	if (netmap_limit(d->fd, true) == -1)
		goto fail_limit;
	vc = &np->np_common;
	vc->nifp = (void *)((char *)np->np_mem + reg.nr_offset);
	d->txring = NETMAP_TXRING(vc->nifp, 0);
	d->rxring = NETMAP_RXRING(vc->nifp, 0);
	d->common = vc;
	vc->single_slot = true;
	vc->indirect_max = d->txring->nr_buf_size;
	memcpy(vc->name, name, strlen(name) + 1);
	np->np_rx_head = np->np_rx_synced = d->rxring->head;
	return (d);

fail_limit:
	munmap(np->np_mem, np->np_memsize);
fail_register:
	close(d->fd);
fail_open:
	free(np);
	return (NULL);
}

void
vale_close(struct vale_desc *d)
{
	struct netmap_port *np = (struct netmap_port *)d;

	munmap(np->np_mem, np->np_memsize);
	close(d->fd);
	free(np);
}

struct vale_desc *
vale_ring(struct vale_desc *d, unsigned int ring)
{
	if (ring == 0)
		return (d);
	errno = EINVAL;
	return (NULL);
}

int
vale_set_header(struct vale_desc *d, unsigned int len)
{
	struct nmreq_port_hdr req;

	if (len == VALE_HEADER_FRAME) {
		errno = EOPNOTSUPP;
		return (-1);
	}
	memset(&req, 0, sizeof(req));
	req.nr_hdr_len = len;
	return (netmap_request(d->fd, d->common->name, NETMAP_REQ_PORT_HDR_SET,
	    &req));
}

int
vale_limit(struct vale_desc *d)
{
	return (netmap_limit(d->fd, false));
}

int
vale_txsync(struct vale_desc *d)
{
	return (ioctl(d->fd, NIOCTXSYNC, NULL));
}

/*
 * Make no system call where the user needs none.  Frames that nobody has taken
 * were shown when the user waited.  A user that has taken frames, and sees no
 * other, is about to wait or to call again; at most a quarter of the ring is
 * held back until then.
 */
int
vale_rxsync(struct vale_desc *d)
{
	struct netmap_port *np = (struct netmap_port *)d;
	const uint32_t head = d->rxring->head, n = d->rxring->num_slots;
	const bool taken = head != np->np_rx_head;
	const bool pending = head != d->rxring->tail;

	np->np_rx_head = head;
	if (taken != pending && (head + n - np->np_rx_synced) % n < n / 4)
		return (0);
	np->np_rx_synced = head;
	return (ioctl(d->fd, NIOCRXSYNC, NULL));
}

/* Refuse a sink: the kernel's VALE does not call one. */
int
vale_set_sink(struct vale_desc *d __unused,
    void (*sink)(void *, struct frame_source *), void *arg __unused)
{
	if (sink == NULL)
		return (0);
	errno = EOPNOTSUPP;
	return (-1);
}

uint64_t
vale_missed(const struct vale_desc *d __unused)
{
	return (0);
}
