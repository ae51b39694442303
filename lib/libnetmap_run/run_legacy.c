/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The requests that came before NIOCCTRL: NIOCREGIF and NIOCGINFO, which become
 * those of NIOCCTRL.  netmap_run.h.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "netmap_run.h"

/* A legacy request, in the new form.  Bodies, one of which it has. */
union run_legacy {
	struct nmreq_register		reg;
	struct nmreq_port_info_get	info;
	struct nmreq_vale_list		list;
	struct nmreq_port_hdr		hdr;
};

static void
legacy_register(const struct nmreq *nmr, struct nmreq_register *reg)
{
	reg->nr_tx_slots = nmr->nr_tx_slots;
	reg->nr_rx_slots = nmr->nr_rx_slots;
	reg->nr_tx_rings = nmr->nr_tx_rings;
	reg->nr_rx_rings = nmr->nr_rx_rings;
	reg->nr_mem_id = nmr->nr_arg2;
	reg->nr_extra_bufs = nmr->nr_arg3;
	reg->nr_ringid = nmr->nr_ringid & NETMAP_RING_MASK;
	reg->nr_flags = nmr->nr_flags & ~NR_REG_MASK;
	if ((nmr->nr_ringid & NETMAP_NO_TX_POLL) != 0)
		reg->nr_flags |= NR_NO_TX_POLL;
	if ((nmr->nr_ringid & NETMAP_DO_RX_POLL) != 0)
		reg->nr_flags |= NR_DO_RX_POLL;
	reg->nr_mode = nmr->nr_flags & NR_REG_MASK;
	if (reg->nr_mode == NR_REG_DEFAULT)
		reg->nr_mode = (nmr->nr_ringid & NETMAP_SW_RING) != 0 ?
		    NR_REG_SW : (nmr->nr_ringid & NETMAP_HW_RING) != 0 ?
		    NR_REG_ONE_NIC : NR_REG_ALL_NIC;
}

/* Put a pipe's number into the name, where it belongs now. */
static void
legacy_pipe(struct nmreq_header *hdr, struct nmreq_register *reg)
{
	const size_t len = strlen(hdr->nr_name);

	if (reg->nr_mode != NR_REG_PIPE_MASTER &&
	    reg->nr_mode != NR_REG_PIPE_SLAVE)
		return;
	snprintf(hdr->nr_name + len, sizeof(hdr->nr_name) - len, "%c%u",
	    reg->nr_mode == NR_REG_PIPE_MASTER ? '{' : '}', reg->nr_ringid);
	reg->nr_mode = NR_REG_ALL_NIC;
	reg->nr_ringid = 0;
}

/* Convert NIOCREGIF.  Returns the request, or 0 if it is not supported. */
static uint16_t
legacy_regif(const struct nmreq *nmr, struct nmreq_header *hdr,
    union run_legacy *body)
{
	switch (nmr->nr_cmd) {
	case 0:
		legacy_register(nmr, &body->reg);
		legacy_pipe(hdr, &body->reg);
		return (NETMAP_REQ_REGISTER);
	case NETMAP_BDG_VNET_HDR:
		body->hdr.nr_hdr_len = nmr->nr_arg1;
		return (NETMAP_REQ_PORT_HDR_SET);
	case NETMAP_VNET_HDR_GET:
		return (NETMAP_REQ_PORT_HDR_GET);
	default:
		return (0);
	}
}

static uint16_t
legacy_info(const struct nmreq *nmr, union run_legacy *body)
{
	if (nmr->nr_cmd != NETMAP_BDG_LIST) {
		body->info.nr_tx_slots = nmr->nr_tx_slots;
		body->info.nr_rx_slots = nmr->nr_rx_slots;
		body->info.nr_tx_rings = nmr->nr_tx_rings;
		body->info.nr_rx_rings = nmr->nr_rx_rings;
		body->info.nr_mem_id = nmr->nr_arg2;
		return (NETMAP_REQ_PORT_INFO_GET);
	}
	body->list.nr_bridge_idx = nmr->nr_arg1;
	body->list.nr_port_idx = nmr->nr_arg2;
	return (NETMAP_REQ_VALE_LIST);
}

/* Return what a request has said. */
static void
legacy_result(struct nmreq *nmr, const struct nmreq_header *hdr,
    const union run_legacy *body)
{
	switch (hdr->nr_reqtype) {
	case NETMAP_REQ_REGISTER:
		nmr->nr_offset = body->reg.nr_offset;
		nmr->nr_memsize = body->reg.nr_memsize;
		nmr->nr_tx_slots = body->reg.nr_tx_slots;
		nmr->nr_rx_slots = body->reg.nr_rx_slots;
		nmr->nr_tx_rings = body->reg.nr_tx_rings;
		nmr->nr_rx_rings = body->reg.nr_rx_rings;
		nmr->nr_arg2 = body->reg.nr_mem_id;
		nmr->nr_arg3 = body->reg.nr_extra_bufs;
		break;
	case NETMAP_REQ_PORT_INFO_GET:
		nmr->nr_memsize = body->info.nr_memsize;
		nmr->nr_tx_slots = body->info.nr_tx_slots;
		nmr->nr_rx_slots = body->info.nr_rx_slots;
		nmr->nr_tx_rings = body->info.nr_tx_rings;
		nmr->nr_rx_rings = body->info.nr_rx_rings;
		nmr->nr_arg2 = body->info.nr_mem_id;
		break;
	case NETMAP_REQ_VALE_LIST:
		snprintf(nmr->nr_name, sizeof(nmr->nr_name), "%.*s",
		    (int)sizeof(nmr->nr_name) - 1, hdr->nr_name);
		nmr->nr_arg1 = body->list.nr_bridge_idx;
		nmr->nr_arg2 = body->list.nr_port_idx;
		break;
	case NETMAP_REQ_PORT_HDR_GET:
		nmr->nr_arg1 = body->hdr.nr_hdr_len;
		break;
	}
}

int
run_legacy(struct run_desc *rd, unsigned long request, struct nmreq *nmr)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API };
	union run_legacy body;

	if (nmr->nr_version < NETMAP_API) {
		nmr->nr_version = NETMAP_API;
		errno = EINVAL;
		return (-1);
	}
	memset(&body, 0, sizeof(body));
	memcpy(hdr.nr_name, nmr->nr_name, sizeof(nmr->nr_name) - 1);
	hdr.nr_body = (uintptr_t)&body;
	hdr.nr_reqtype = request == NIOCREGIF ? legacy_regif(nmr, &hdr, &body) :
	    legacy_info(nmr, &body);
	if (hdr.nr_reqtype == 0) {
		errno = EOPNOTSUPP;
		return (-1);
	}
	if (run_control(rd, &hdr) == -1)
		return (-1);
	legacy_result(nmr, &hdr, &body);
	return (0);
}
