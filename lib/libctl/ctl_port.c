/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: requests about ports and pipes of other processes, which
 * the connection is granted (vale_grant.h) if the client may have them.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_impl.h"
#include "frame_vnet.h"
#include "vale_filter.h"
#include "vale_pipe.h"

/* Forget the filter of the monitor that the connection would open next. */
static void
filter_drop(struct ctl_conn *cc)
{
	free(cc->cc_filter);
	cc->cc_filter = NULL;
}

int
ctl_filter(struct ctl_conn *cc, size_t *size __unused)
{
	const struct vale_wire_filter *wf = cc->cc_body;

	if (vale_grant_any(&cc->cc_grant))
		return (ctl_why(cc, EBUSY, "the connection has a port"));
	if (wf->wf_len > nitems(wf->wf_insn))
		return (ctl_why(cc, E2BIG, "a filter has up to %u "
		    "instructions", VALE_FILTER_MAX));
	if (wf->wf_len > 0 && !vale_filter_valid(wf->wf_insn, wf->wf_len))
		return (ctl_why(cc, EINVAL, "the filter is not valid"));
	filter_drop(cc);
	if (wf->wf_len == 0)
		return (0);
	cc->cc_filter = malloc(sizeof(*wf));
	if (cc->cc_filter == NULL)
		return (ctl_why_errno(cc, ENOMEM));
	memcpy(cc->cc_filter, wf, sizeof(*wf));
	return (0);
}

int
ctl_port_reserved(struct ctl_conn *cc, enum ctl_name_of of)
{
	return (ctl_why(cc, EPERM, "the port is %s of valed's configuration",
	    of == CTL_NAME_ADAPTER ? "an adapter's" : "an interface's"));
}

/* Say what is wrong, unless that has been said.  Returns `error'. */
static int
register_why(struct ctl_conn *cc, int error)
{
	switch (error) {
	case EBUSY:
		return (ctl_why(cc, error, "the port is open already"));
	case ENOSPC:
		return (ctl_why(cc, error,
		    "the switch has no place for another port"));
	case ENXIO:
		return (ctl_why(cc, error, "there is no such port"));
	default:
		return (ctl_why_errno(cc, error));
	}
}

/* Open the port as the client's. */
static int
port_register(struct ctl_conn *cc, struct nmreq_register *reg)
{
	const bool monitor =
	    (reg->nr_flags & (NR_MONITOR_TX | NR_MONITOR_RX)) != 0;
	const char *name = cc->cc_wire->vw_header.nr_name;
	enum ctl_name_of of;
	int claim, error;

	error = vale_grant_check(&cc->cc_grant, reg);
	if (error != 0)
		return (error);
	claim = ctl_owner_claim(&cc->cc_owner, name, &cc->cc_who, monitor);
	of = monitor ? CTL_NAME_FREE : ctl_names_of(name);
	if (claim == 0 && of == CTL_NAME_FREE) {
		error = vale_grant_port(&cc->cc_grant, reg, cc->cc_filter);
		if (error == 0) {
			ctl_owner_opened(&cc->cc_owner);
			return (0);
		}
	}
	ctl_owner_leave(&cc->cc_owner);
	if (of != CTL_NAME_FREE)
		return (ctl_port_reserved(cc, of));
	return (claim != 0 ? ctl_why_owner(cc, claim) :
	    register_why(cc, error));
}

static int
register_any(struct ctl_conn *cc, struct nmreq_register *reg)
{
	unsigned int end;

	if (reg->nr_mode == NR_REG_NULL)
		return (vale_grant_null(&cc->cc_grant, reg));
	if (vale_pipe_name(cc->cc_wire->vw_header.nr_name, &end) != 0)
		return (vale_grant_pipe(&cc->cc_grant, reg));
	return (port_register(cc, reg));
}

int
ctl_register(struct ctl_conn *cc, size_t *size)
{
	struct vale_wire *wire = cc->cc_wire;
	struct nmreq_register *reg = cc->cc_body;
	int error;

	if (vale_grant_any(&cc->cc_grant))
		return (ctl_why(cc, EBUSY, "the connection has a port"));
	if (cc->cc_filter != NULL &&
	    (reg->nr_flags & (NR_MONITOR_TX | NR_MONITOR_RX)) == 0)
		return (ctl_why(cc, EINVAL, "only a monitor has a filter"));
	error = register_any(cc, reg);
	if (error == EBUSY || error == EPERM || error == ENOSPC ||
	    error == EMFILE || error == ENOMEM) {
		ctl_settle(cc);
		memset(wire->vw_why, 0, sizeof(wire->vw_why));
		error = register_any(cc, reg);
	}
	if (error != 0)
		return (error);
	filter_drop(cc);
	cc->cc_header = 0;
	*size = sizeof(*reg);
	memcpy(&cc->cc_reg, reg, sizeof(cc->cc_reg));
	memcpy(cc->cc_name, wire->vw_header.nr_name, sizeof(cc->cc_name));
	return (0);
}

/* Reply once more with what the connection was granted at first. */
int
ctl_share(struct ctl_conn *cc, size_t *size)
{
	int error;

	if (!vale_grant_any(&cc->cc_grant))
		return (ctl_why(cc, ENXIO, "the connection has no port"));
	error = vale_grant_fds(&cc->cc_grant);
	if (error != 0)
		return (ctl_why(cc, error, "%s", strerror(error)));
	memcpy(cc->cc_wire->vw_header.nr_name, cc->cc_name,
	    sizeof(cc->cc_name));
	memcpy(cc->cc_body, &cc->cc_reg, sizeof(cc->cc_reg));
	*size = sizeof(cc->cc_reg);
	return (0);
}

/* Return the connection's port, or NULL if the request names another one. */
static struct vale_desc *
header_port(struct ctl_conn *cc)
{
	struct vale_desc *port = cc->cc_grant.gr_port;

	if (port != NULL && strcmp(port->common->name,
	    cc->cc_wire->vw_header.nr_name) == 0)
		return (port);
	(void)ctl_why(cc, ENXIO, "the connection does not have this port");
	return (NULL);
}

int
ctl_header_set(struct ctl_conn *cc, size_t *size __unused)
{
	const struct nmreq_port_hdr *hdr = cc->cc_body;
	struct vale_desc *port = header_port(cc);

	if (port == NULL)
		return (ENXIO);
	if (hdr->nr_hdr_len != 0 && hdr->nr_hdr_len != FRAME_VNET_SHORT &&
	    hdr->nr_hdr_len != FRAME_VNET_LONG)
		return (ctl_why(cc, EINVAL, "a header has 0, %u or %u bytes",
		    FRAME_VNET_SHORT, FRAME_VNET_LONG));
	vale_set_header(port, hdr->nr_hdr_len);
	cc->cc_header = hdr->nr_hdr_len;
	return (0);
}

int
ctl_header_get(struct ctl_conn *cc, size_t *size)
{
	struct nmreq_port_hdr *hdr = cc->cc_body;

	if (header_port(cc) == NULL)
		return (ENXIO);
	hdr->nr_hdr_len = cc->cc_header;
	*size = sizeof(*hdr);
	return (0);
}

int
ctl_missed(struct ctl_conn *cc, size_t *size)
{
	uint64_t missed;

	if (cc->cc_grant.gr_port == NULL)
		return (ctl_why(cc, ENXIO, "the connection has no port"));
	missed = vale_missed(cc->cc_grant.gr_port);
	memcpy(cc->cc_body, &missed, sizeof(missed));
	*size = sizeof(missed);
	return (0);
}

void
ctl_port_close(struct ctl_conn *cc)
{
	/* What the client has published is sent, even if it has left. */
	if (cc->cc_grant.gr_port != NULL) {
		vale_grant_transmit(&cc->cc_grant);
		ctl_owner_leave(&cc->cc_owner);
	}
	vale_grant_close(&cc->cc_grant);
	filter_drop(cc);
}
