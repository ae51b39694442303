/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * libvale.h over valed: the switch is in that process, and the port's memory in
 * both.  vale_client.h.
 */

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_rate.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vale_client.h"
#include "vale_find.h"
#include "vale_name.h"
#include "vale_setting.h"

/* A ring pair. */
struct valed_ring {
	struct vale_desc	 vdr_desc;	/* must be first */
	struct valed_port	*vdr_port;
	unsigned int		 vdr_ring;
	int			 vdr_self;	/* an eventfd of this process */
};

struct valed_port {
	struct vale_common	 vdp_common;
	struct vale_client_port	 vdp_client;
	pthread_mutex_t		 vdp_lock;	/* requests over the port's
						   connection */
	struct valed_ring	 vdp_ring[VALE_RINGS_MAX];
};

static struct valed_ring *
desc_ring(struct vale_desc *d)
{
	return ((struct valed_ring *)(void *)d);
}

static struct valed_port *
desc_port(struct vale_desc *d)
{
	return (desc_ring(d)->vdr_port);
}

static struct vale_client_port *
client(struct vale_desc *d)
{
	return (&desc_port(d)->vdp_client);
}

const char *
vale_name_error(const char *name)
{
	return (vale_name_check(name, &vale_name_user));
}

/* Set up what a program waits for: valed's kicks, and vdr_self. */
static int
ring_poll(struct valed_ring *vdr, int kick)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int error, fd;

	vdr->vdr_self = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (vdr->vdr_self == -1)
		return (-1);
	fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd != -1 &&
	    epoll_ctl(fd, EPOLL_CTL_ADD, vdr->vdr_self, &ev) == 0 &&
	    epoll_ctl(fd, EPOLL_CTL_ADD, kick, &ev) == 0) {
		vdr->vdr_desc.fd = fd;
		return (0);
	}
	error = errno;
	if (fd != -1)
		close(fd);
	close(vdr->vdr_self);
	errno = error;
	return (-1);
}

/* Undo ring_init() of the first `n' ring pairs. */
static void
rings_fini(struct valed_port *vdp, unsigned int n)
{
	while (n-- > 0) {
		close(vdp->vdp_ring[n].vdr_self);
		close(vdp->vdp_ring[n].vdr_desc.fd);
	}
}

static int
ring_init(struct valed_port *vdp, unsigned int i)
{
	const struct vale_client_ring *vcr = &vdp->vdp_client.cp_ring[i];
	struct valed_ring *vdr = &vdp->vdp_ring[i];
	struct vale_desc *d = &vdr->vdr_desc;

	if (ring_poll(vdr, vcr->vcr_rx_kick) == -1)
		return (-1);
	vdr->vdr_port = vdp;
	vdr->vdr_ring = i;
	d->txring = vcr->vcr_txring;
	d->rxring = vcr->vcr_rxring;
	d->common = &vdp->vdp_common;
	return (0);
}

/* Set up all ring pairs. */
static int
rings_init(struct valed_port *vdp, const char *name)
{
	struct vale_common *vc = &vdp->vdp_common;
	unsigned int i;
	int error;

	vc->nifp = vdp->vdp_client.cp_nifp;
	vc->indirect_max = vdp->vdp_client.cp_ring[0].vcr_txring->nr_buf_size;
	memcpy(vc->name, name, strlen(name) + 1);
	for (i = 0; i < vdp->vdp_client.cp_nrings; i++)
		if (ring_init(vdp, i) == -1) {
			error = errno;
			rings_fini(vdp, i);
			errno = error;
			return (-1);
		}
	return (0);
}

/* Send the filter of the monitor that the connection opens next. */
static int
send_filter(int fd, const char *name, const struct vale_params *params)
{
	struct vale_wire_filter wf = { .wf_len = params->filter_len };
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = VALE_WIRE_FILTER };
	struct vale_client_call call = { .hdr = &hdr, .body = &wf,
	    .size = sizeof(wf) };

	memcpy(hdr.nr_name, name, strlen(name));
	memcpy(wf.wf_insn, params->filter,
	    wf.wf_len * sizeof(wf.wf_insn[0]));
	return (vale_client_call(fd, &call));
}

struct vale_desc *
vale_open(const char *name, const struct vale_params *params)
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct valed_port *vdp;
	int error, fd;

	if (vale_name_error(name) != NULL || (params != NULL &&
	    ((params->monitor & ~VALE_MIRROR_BOTH) != 0 ||
	    params->rings > VALE_RINGS_MAX))) {
		errno = EINVAL;
		return (NULL);
	}
	if (params != NULL && params->filter_len > VALE_FILTER_MAX) {
		errno = E2BIG;
		return (NULL);
	}
	if (params != NULL) {
		reg.nr_tx_slots = params->tx_slots;
		reg.nr_rx_slots = params->rx_slots;
		reg.nr_tx_rings = reg.nr_rx_rings = params->rings;
		if ((params->monitor & VALE_MIRROR_TX) != 0)
			reg.nr_flags |= NR_MONITOR_TX;
		if ((params->monitor & VALE_MIRROR_RX) != 0)
			reg.nr_flags |= NR_MONITOR_RX;
	}
	vdp = calloc(1, sizeof(*vdp));
	if (vdp == NULL)
		return (NULL);
	fd = vale_client_connect(vale_find_path());
	if (fd == -1)
		goto fail;
	if (params != NULL && params->filter_len > 0 &&
	    send_filter(fd, name, params) == -1)
		goto fail_open;
	if (vale_client_open(&vdp->vdp_client, fd, name, &reg, -1, NULL) == -1)
		goto fail_open;
	if (rings_init(vdp, name) == -1) {
		error = errno;
		vale_client_close(&vdp->vdp_client);
		errno = error;
		goto fail;
	}
	/* This way to make a mutex cannot fail. */
	vdp->vdp_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	return (&vdp->vdp_ring[0].vdr_desc);

fail_open:
	error = errno;
	close(fd);
	errno = error;
fail:
	free(vdp);
	return (NULL);
}

void
vale_close(struct vale_desc *d)
{
	struct valed_port *vdp = desc_port(d);

	rings_fini(vdp, vdp->vdp_client.cp_nrings);
	vale_client_close(&vdp->vdp_client);
	pthread_mutex_destroy(&vdp->vdp_lock);
	free(vdp);
}

struct vale_desc *
vale_ring(struct vale_desc *d, unsigned int ring)
{
	if (ring < client(d)->cp_nrings)
		return (&desc_port(d)->vdp_ring[ring].vdr_desc);
	errno = EINVAL;
	return (NULL);
}

/* Make a request about the port, over its connection. */
static int
port_call(struct vale_desc *d, uint16_t type, struct vale_client_call *call)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = type };
	int error, result;

	memcpy(hdr.nr_name, d->common->name, sizeof(hdr.nr_name));
	call->hdr = &hdr;
	pthread_mutex_lock(&desc_port(d)->vdp_lock);
	result = vale_client_call(client(d)->cp_fd, call);
	error = errno;
	pthread_mutex_unlock(&desc_port(d)->vdp_lock);
	errno = error;
	return (result);
}

int
vale_set_header(struct vale_desc *d, unsigned int len)
{
	struct nmreq_port_hdr body = { .nr_hdr_len = len };
	struct vale_client_call call = { .body = &body, .size = sizeof(body) };

	if (len == VALE_HEADER_FRAME) {
		errno = EOPNOTSUPP;
		return (-1);
	}
	return (port_call(d, NETMAP_REQ_PORT_HDR_SET, &call));
}

int
vale_limit(struct vale_desc *d __unused)
{
	return (0);
}

/* Wait until everything is consumed, as the contract says. */
int
vale_txsync(struct vale_desc *d)
{
	const unsigned int i = desc_ring(d)->vdr_ring;
	struct vale_client_port *cp = client(d);
	struct pollfd pfd = { .fd = cp->cp_ring[i].vcr_tx_kick,
	    .events = POLLIN };

	if (vale_client_txsync(cp, i) == -1)
		return (-1);
	while (nm_ring_space(d->txring) != d->txring->num_slots - 1) {
		if (vale_client_txwait(cp, i) && nm_ring_space(d->txring) ==
		    d->txring->num_slots - 1)
			break;
		poll(&pfd, 1, -1);
		if ((pfd.revents & (POLLHUP | POLLERR)) != 0) {
			errno = ENXIO;
			return (-1);
		}
	}
	return (0);
}

/* Let d->fd become readable with the next frame if no frame is pending. */
int
vale_rxsync(struct vale_desc *d)
{
	struct valed_ring *vdr = desc_ring(d);
	struct vale_client_port *cp = client(d);
	struct netmap_ring *ring = d->rxring;
	eventfd_t n;

	if (vale_client_rxsync(cp, vdr->vdr_ring) == -1)
		return (-1);
	if (ring->cur != ring->tail || (ring->flags & VALE_RING_POLLED) != 0)
		return (0);
	(void)eventfd_read(vdr->vdr_self, &n);
	if (vale_client_rxwait(cp, vdr->vdr_ring))
		(void)eventfd_write(vdr->vdr_self, 1);
	if (atomic_load_32(&cp->cp_gone) != 0) {
		errno = ENXIO;
		return (-1);
	}
	return (0);
}

int
vale_set_sink(struct vale_desc *d __unused,
    void (*sink)(void *, struct frame_source *), void *arg __unused)
{
	if (sink == NULL)
		return (0);
	errno = EOPNOTSUPP;
	return (-1);
}

/* Make a request about switches, over a connection of its own. */
static int
valed_call(const char *name, uint16_t type, struct vale_client_call *call)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = type };
	int error, fd, result;

	if (snprintf(hdr.nr_name, sizeof(hdr.nr_name), "%s", name) >=
	    (int)sizeof(hdr.nr_name))
		return (vale_setting_error(ENXIO, "the name is too long"));
	fd = vale_client_connect(vale_find_path());
	if (fd == -1)
		return (vale_setting_error(errno, "%s", ""));
	call->hdr = &hdr;
	result = vale_client_call(fd, call);
	error = errno;
	close(fd);
	if (result == -1)
		return (vale_setting_error(error, "%s", call->why));
	return (0);
}

int
vale_client_list(const char *name, uint16_t type, size_t size,
    int (*show)(const void *entry, void *arg), void *arg)
{
	struct vale_wire_page *page, ask = { 0, 0 };
	struct vale_client_call call = { .body = &ask, .size = sizeof(ask),
	    .reply_max = VALE_CLIENT_BODY };
	uint32_t i;
	int r;

	page = malloc(VALE_CLIENT_BODY);
	if (page == NULL)
		return (-1);
	call.reply = page;
	do {
		r = valed_call(name, type, &call);
		if (r == 0 && call.reply_size !=
		    sizeof(*page) + page->wp_count * size) {
			errno = EPROTO;
			r = -1;
		}
		for (i = 0; r == 0 && i < page->wp_count; i++)
			r = show((char *)(page + 1) + i * size, arg);
		ask.wp_first += page->wp_count;
	} while (r == 0 && page->wp_count > 0);
	free(page);
	return (r);
}

struct list_ports {
	int	(*show)(const struct vale_port_info *port, void *arg);
	void	*arg;
};

static int
list_port(const void *entry, void *arg)
{
	const struct vale_wire_port *wo = entry;
	const struct list_ports *lp = arg;
	struct vale_port_info info;

	memcpy(info.vpi_name, wo->wo_name, sizeof(info.vpi_name));
	vale_client_text(info.vpi_name, sizeof(info.vpi_name));
	info.vpi_index = wo->wo_index;
	info.vpi_rings = wo->wo_rings;
	info.vpi_link = wo->wo_down == 0;
	info.vpi_tx_slots = wo->wo_tx_slots;
	info.vpi_rx_slots = wo->wo_rx_slots;
	memcpy(info.vpi_counter, wo->wo_counter, sizeof(info.vpi_counter));
	return (lp->show(&info, lp->arg));
}

int
vale_list(const char *switch_name,
    int (*show)(const struct vale_port_info *, void *), void *arg)
{
	struct list_ports lp = { show, arg };

	return (vale_client_list(switch_name != NULL ? switch_name : "",
	    VALE_WIRE_PORTS, sizeof(struct vale_wire_port), list_port, &lp));
}

struct find_port {
	const char	*name;
	uint64_t	*counters;
};

static int
find_port(const struct vale_port_info *port, void *arg)
{
	const struct find_port *fp = arg;

	if (strcmp(port->vpi_name, fp->name) != 0)
		return (0);
	memcpy(fp->counters, port->vpi_counter, sizeof(port->vpi_counter));
	return (1);
}

int
vale_port_counters(const char *name, uint64_t counters[VALE_NCOUNTERS])
{
	struct find_port fp = { name, counters };

	switch (vale_list(name, find_port, &fp)) {
	case 1:
		return (0);
	case 0:
		errno = ENXIO;
		/* FALLTHROUGH */
	default:
		return (-1);
	}
}

struct list_addrs {
	int	(*show)(const struct vale_fdb_entry *entry, void *arg);
	void	*arg;
};

static int
list_addr(const void *entry, void *arg)
{
	const struct vale_wire_addr *wa = entry;
	const struct list_addrs *la = arg;
	struct vale_fdb_entry fe;

	memcpy(fe.fe_addr, wa->wa_addr, sizeof(fe.fe_addr));
	fe.fe_port = wa->wa_port;
	fe.fe_age_s = wa->wa_age_s;
	fe.fe_vlan = wa->wa_vlan;
	return (la->show(&fe, la->arg));
}

int
vale_fdb_list(const char *switch_name,
    int (*show)(const struct vale_fdb_entry *, void *), void *arg)
{
	struct list_addrs la = { show, arg };

	return (vale_client_list(switch_name, VALE_WIRE_ADDRS,
	    sizeof(struct vale_wire_addr), list_addr, &la));
}

/* Set a mirror, whose request is its own, because it is about two ports. */
static int
valed_mirror(const char *name, const struct vale_setting_value *value)
{
	struct vale_wire_mirror wm = { .wm_what = value->sv_number };
	struct vale_client_call call = { .body = &wm, .size = sizeof(wm) };

	memcpy(wm.wm_of, value->sv_text, sizeof(wm.wm_of));
	return (valed_call(name, VALE_WIRE_MIRROR, &call));
}

int
vale_setting_set_all(const char *name, const struct vale_setting_change *sc,
    unsigned int n)
{
	struct vale_wire_value wv[VALE_NSETTINGS];
	struct vale_client_call call = { .body = wv,
	    .size = n * sizeof(wv[0]) };
	unsigned int i;

	if (sc->sc_setting == VALE_SETTING_MIRROR)
		return (valed_mirror(name, &sc->sc_value));
	for (i = 0; i < n; i++)
		vale_wire_put(&wv[i], sc[i].sc_setting, &sc[i].sc_value);
	return (valed_call(name, VALE_WIRE_SET, &call));
}

/* Take what both know: another version of valed has more settings, or fewer. */
int
vale_setting_get(const char *name, enum vale_setting_scope scope,
    struct vale_setting_value value[VALE_NSETTINGS])
{
	struct vale_wire_value wv[64];
	struct vale_client_call call = { .reply = wv,
	    .reply_max = sizeof(wv) };
	struct vale_setting_value sv;
	unsigned int i, n, setting;

	if (valed_call(name, scope == VALE_OF_SWITCH ?
	    VALE_WIRE_SWITCH_SETTINGS : VALE_WIRE_PORT_SETTINGS, &call) == -1)
		return (-1);
	n = call.reply_size / sizeof(wv[0]);
	if (call.reply_size % sizeof(wv[0]) != 0)
		return (vale_setting_error(EPROTO, "%s", ""));
	memset(value, 0, VALE_NSETTINGS * sizeof(value[0]));
	for (i = 0; i < n; i++) {
		setting = vale_wire_take(&wv[i], &sv);
		if (setting == VALE_NSETTINGS)
			continue;
		vale_client_text(sv.sv_text, sizeof(sv.sv_text));
		value[setting] = sv;
	}
	return (0);
}

const struct counter_row vale_counter_table[VALE_NCOUNTERS] = {
	COUNTER_ROWS(VALE_COUNTERS)
};

uint64_t
vale_missed(const struct vale_desc *d)
{
	uint64_t missed = 0;
	struct vale_client_call call = { .reply = &missed,
	    .reply_max = sizeof(missed) };

	/* If valed has gone, nothing more is missed. */
	(void)port_call(__DECONST(struct vale_desc *, d), VALE_WIRE_MISSED,
	    &call);
	return (missed);
}
