/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the control socket tells of a port or a pipe, and to whom.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "ctl_peers.h"
#include "test.h"
#include "vale_pipe.h"
#include "vale_shared.h"
#include "vale_test.h"

#define	INFO_SIZE	sizeof(struct nmreq_port_info_get)
#define	ALL		.nr_mode = NR_REG_ALL_NIC

static const char no_port[] = "there is no such port";
static const char others_port[] = "the port belongs to another user";

/* Ask with all bytes of the body set but `numbers'; the reply is `want'. */
static void
check_info(struct peer *p, const char *name,
    const struct nmreq_port_info_get *numbers,
    struct nmreq_port_info_get want)
{
	struct nmreq_port_info_get info;

	if (numbers != NULL)
		info = *numbers;
	else
		memset(&info, 0xff, sizeof(info));
	GRANTED(INFO_SIZE, 0, p, VALE_WIRE_INFO, name, &info, sizeof(info));
	ATF_CHECK_MSG(memcmp(p->pe_body, &want, sizeof(want)) == 0, "%s",
	    name);
}

#define	INFO(...)	(struct nmreq_port_info_get){ __VA_ARGS__ }

TEST(ports, "A port's numbers, with the memory if it is one's own; without a "
    "name of a port, those that it would have")
{
	const struct vale_params small = { .rings = 1, .tx_slots = 16,
	    .rx_slots = 8 };
	const struct vale_params many = { .rings = 3, .tx_slots = 1024,
	    .rx_slots = 1024 };
	struct vale_desc *d = t_open("vale0:none", 64, 32);
	uint64_t memsize;

	peers_start();
	GRANTED(REG_SIZE, 2 + 2 * 2, &one, REGISTER("vale0:a", ALL,
	    .nr_tx_rings = 2, .nr_tx_slots = 16, .nr_rx_slots = 8));
	memsize = one.pe_cc->cc_grant.gr_memory->mm_size;
	check_info(&one, "vale0:a", NULL, INFO(.nr_memsize = memsize,
	    .nr_tx_slots = 16, .nr_rx_slots = 8, .nr_tx_rings = 2,
	    .nr_rx_rings = 2, .nr_mem_id = 2));
	GRANTED(INFO_SIZE, 0, &one, NETMAP_REQ_PORT_INFO_GET, "vale0:a", NULL,
	    0);
	check_info(&root, "vale0:a", NULL, INFO(.nr_tx_slots = 16,
	    .nr_rx_slots = 8, .nr_tx_rings = 2, .nr_rx_rings = 2));
	check_info(&root, "vale0:none", NULL, INFO(.nr_tx_slots = 64,
	    .nr_rx_slots = 32, .nr_tx_rings = 1, .nr_rx_rings = 1));
	REFUSED(EPERM, others_port, &two, NETMAP_REQ_PORT_INFO_GET, "vale0:a",
	    NULL, 0);
	REFUSED(EPERM, others_port, &two, VALE_WIRE_INFO, "vale0:none",
	    &INFO(.nr_mem_id = 0), INFO_SIZE);
	REFUSED(ENXIO, no_port, &one, NETMAP_REQ_PORT_INFO_GET, "vale0:b", NULL,
	    0);
	/* What would be. */
	check_info(&one, "vale0:b", &INFO(.nr_tx_slots = 16, .nr_rx_slots = 8,
	    .nr_memsize = 77, .nr_mem_id = 77), INFO(
	    .nr_memsize = vale_memory_size(&small), .nr_tx_slots = 16,
	    .nr_rx_slots = 8, .nr_tx_rings = 1, .nr_rx_rings = 1));
	check_info(&one, "vale0:b", &INFO(.nr_tx_rings = 3), INFO(
	    .nr_memsize = vale_memory_size(&many), .nr_tx_slots = 1024,
	    .nr_rx_slots = 1024, .nr_tx_rings = 3, .nr_rx_rings = 3));
	check_info(&one, "vale0:b", &INFO(.nr_rx_rings = 3), INFO(
	    .nr_memsize = vale_memory_size(&many), .nr_tx_slots = 1024,
	    .nr_rx_slots = 1024, .nr_tx_rings = 3, .nr_rx_rings = 3));
	REFUSED(EINVAL, "a port has up to 16 rings in each direction", &one,
	    VALE_WIRE_INFO, "vale0:b", &INFO(.nr_tx_rings = 17), INFO_SIZE);
	REFUSED(EINVAL, "slots must be 2 to 16384, for all rings of a "
	    "direction, extra buffers up to 8192", &one, VALE_WIRE_INFO,
	    "vale0:b", &INFO(.nr_tx_slots = 1), INFO_SIZE);
	/* A pipe's memory without its port is not the port's. */
	GRANTED(REG_SIZE, 4, &two, REGISTER("vale0:b{1", ALL));
	vale_close(d);
	d = t_open("vale0:b", 64, 32);
	check_info(&root, "vale0:b", NULL, INFO(.nr_tx_slots = 64,
	    .nr_rx_slots = 32, .nr_tx_rings = 1, .nr_rx_rings = 1));
	peers_stop();
	vale_close(d);
}

TEST(pipes, "An end's numbers, or those that it would have, which are its "
    "port's")
{
	const struct vale_params params = { .rings = 1, .tx_slots = 1024,
	    .rx_slots = 1024 };
	struct peer port;
	uint64_t memsize;

	peers_start();
	peer_connect(&port, 1001, false);
	GRANTED(REG_SIZE, 4, &one, REGISTER("vale0:a{1", ALL,
	    .nr_tx_slots = 16, .nr_rx_slots = 8));
	memsize = one.pe_cc->cc_grant.gr_memory->mm_size;
	check_info(&port, "vale0:a{1", NULL, INFO(.nr_memsize = memsize,
	    .nr_tx_slots = 16, .nr_rx_slots = 8, .nr_tx_rings = 1,
	    .nr_rx_rings = 1, .nr_mem_id = 2));
	check_info(&port, "vale0:a}1", NULL, INFO(.nr_memsize = memsize,
	    .nr_tx_slots = 8, .nr_rx_slots = 16, .nr_tx_rings = 1,
	    .nr_rx_rings = 1, .nr_mem_id = 2));
	GRANTED(INFO_SIZE, 0, &port, NETMAP_REQ_PORT_INFO_GET, "vale0:a}1",
	    NULL, 0);
	REFUSED(ENXIO, "there is no such pipe", &two, NETMAP_REQ_PORT_INFO_GET,
	    "vale0:a{1", NULL, 0);
	REFUSED(ENXIO, "there is no such pipe", &one, NETMAP_REQ_PORT_INFO_GET,
	    "vale0:a{2", NULL, 0);
	REFUSED(EINVAL, "the name of a pipe consists of letters, digits, '_', "
	    "'-' and '.'", &one, NETMAP_REQ_PORT_INFO_GET, "vale0:a{", NULL, 0);
	REFUSED(EINVAL, "the name of a pipe consists of letters, digits, '_', "
	    "'-' and '.'", &one, VALE_WIRE_INFO, "vale0:a{",
	    &INFO(.nr_mem_id = 0), INFO_SIZE);
	REFUSED(EINVAL, "slots of a pipe must be 2 to 4096", &one,
	    VALE_WIRE_INFO, "vale0:b{1", &INFO(.nr_tx_slots = 1), INFO_SIZE);
	/* Of no memory. */
	check_info(&one, "vale0:b{1", &INFO(.nr_mem_id = 77), INFO(
	    .nr_memsize = vale_memory_size(&params), .nr_tx_slots = 1024,
	    .nr_rx_slots = 1024, .nr_tx_rings = 1, .nr_rx_rings = 1));
	check_info(&one, "vale0:b{1", &INFO(.nr_tx_slots = 5,
	    .nr_rx_slots = 6), INFO(.nr_memsize = vale_memory_size(&params),
	    .nr_tx_slots = 5, .nr_rx_slots = 6, .nr_tx_rings = 1,
	    .nr_rx_rings = 1));
	/* Of a port's. */
	GRANTED(REG_SIZE, 4, &port, REGISTER("vale0:b", ALL,
	    .nr_tx_slots = 32, .nr_rx_slots = 64));
	memsize = port.pe_cc->cc_grant.gr_memory->mm_size;
	check_info(&one, "vale0:b{1", &INFO(.nr_tx_slots = 5), INFO(
	    .nr_memsize = memsize, .nr_tx_slots = 5, .nr_rx_slots = 64,
	    .nr_tx_rings = 1, .nr_rx_rings = 1, .nr_mem_id = 3));
	check_info(&one, "vale0:b{1", &INFO(.nr_rx_slots = 5), INFO(
	    .nr_memsize = memsize, .nr_tx_slots = 32, .nr_rx_slots = 5,
	    .nr_tx_rings = 1, .nr_rx_rings = 1, .nr_mem_id = 3));
	peer_end(&port);
	peer_connect(&port, 1001, false);
	GRANTED(REG_SIZE, 4, &port, REGISTER("vale0:b", ALL,
	    .nr_tx_slots = 5000, .nr_rx_slots = 6000));
	check_info(&one, "vale0:b{1", &INFO(.nr_mem_id = 0), INFO(
	    .nr_memsize = port.pe_cc->cc_grant.gr_memory->mm_size,
	    .nr_tx_slots = 4096,
	    .nr_rx_slots = 4096, .nr_tx_rings = 1, .nr_rx_rings = 1,
	    .nr_mem_id = 3));
	peer_end(&port);
	peers_stop();
}

TEST_PROGRAM
