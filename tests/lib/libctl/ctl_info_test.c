/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the control socket tells of ports, pipes, memory and addresses, and to
 * whom; and whom a request waits for.
 */

#include <sys/param.h>
#include <dev/netmap/vale_fdb.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "ctl_peers.h"
#include "hostif.h"
#include "test.h"
#include "vale_pipe.h"
#include "vale_shared.h"
#include "vale_test.h"
#include "wrap.h"

#define	INFO_SIZE	sizeof(struct nmreq_port_info_get)
#define	ALL		.nr_mode = NR_REG_ALL_NIC

static const char no_port[] = "there is no such port";
static const char others_port[] = "the port belongs to another user";

/*
 * Of one.
 */

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

TEST(port_gone, "The memory of a pipe whose port has gone is not shown as that "
    "of another port with its name")
{
	struct vale_desc *d;

	peers_start();
	GRANTED(REG_SIZE, 4, &root, REGISTER("vale0:a{1", ALL));
	d = t_open("vale0:a", 64, 32);
	check_info(&root, "vale0:a", NULL, INFO(.nr_tx_slots = 64,
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

TEST(memories, "Without a name: the memory that is named, or that of a port")
{
	static const char another[] = "memory 2 is another user's, and the "
	    "request has no descriptor of it";
	const struct vale_params params = { .rings = 1, .tx_slots = 1024,
	    .rx_slots = 1024 };
	struct nmreq_port_info_get info = INFO(.nr_mem_id = 2);
	struct peer more;
	uint64_t memsize;

	peers_start();
	peer_connect(&more, 1001, false);
	GRANTED(REG_SIZE, 4, &one, REGISTER("vale0:a", ALL,
	    .nr_tx_slots = 16));
	memsize = one.pe_cc->cc_grant.gr_memory->mm_size;
	check_info(&two, "", &INFO(.nr_mem_id = 0), INFO(
	    .nr_memsize = vale_memory_size(&params), .nr_mem_id = 1));
	check_info(&two, "", &INFO(.nr_mem_id = 1), INFO(
	    .nr_memsize = vale_memory_size(&params), .nr_mem_id = 1));
	check_info(&more, "", &info, INFO(.nr_memsize = memsize,
	    .nr_mem_id = 2));
	REFUSED(EPERM, another, &two, VALE_WIRE_INFO, "", &info, INFO_SIZE);
	REFUSED(EPERM, another, &root, VALE_WIRE_INFO, "", &info, INFO_SIZE);
	ATF_CHECK_EQ(0, peer_pass(&two, VALE_WIRE_INFO, "", &info, INFO_SIZE,
	    one.pe_fds[0]));
	info.nr_mem_id = 3;
	REFUSED(EINVAL, "there is no memory 3", &more, VALE_WIRE_INFO, "",
	    &info, INFO_SIZE);
	peer_end(&more);
	peers_stop();
}

/*
 * Of all.
 */

static const char *const names[] = { "vale01:a", "vale0:a", "vale0:b",
    "vale0:c", "vale02:a", "vale1:d" };

/* The port at a place, or behind it. */
static void
check_place(struct peer *p, uint16_t bridge, uint32_t port, const char *name,
    uint16_t at_bridge, uint32_t at_port)
{
	struct nmreq_vale_list list = { .nr_bridge_idx = bridge,
	    .nr_port_idx = port };
	const struct nmreq_vale_list *got = p->pe_body;

	if (name == NULL) {
		REFUSED(ENOENT, "there is no further port", p,
		    NETMAP_REQ_VALE_LIST, "", &list, sizeof(list));
		return;
	}
	GRANTED(sizeof(list), 0, p, NETMAP_REQ_VALE_LIST, "", &list,
	    sizeof(list));
	got = p->pe_body;
	ATF_CHECK_STREQ(name, p->pe_reply.wire.vw_header.nr_name);
	ATF_CHECK_EQ(at_bridge, got->nr_bridge_idx);
	ATF_CHECK_EQ(at_port, got->nr_port_idx);
	/* And by its name. */
	GRANTED(sizeof(list), 0, p, NETMAP_REQ_VALE_LIST, name, &list,
	    sizeof(list));
	got = p->pe_body;
	ATF_CHECK_STREQ(name, p->pe_reply.wire.vw_header.nr_name);
	ATF_CHECK_EQ(at_bridge, got->nr_bridge_idx);
	ATF_CHECK_EQ(at_port, got->nr_port_idx);
}

TEST(list, "Ports are found one after the other, in all switches, and by name: "
    "each user's, and all for an administrator")
{
	const struct nmreq_vale_list list = { .nr_bridge_idx = 0 };
	struct peer peers[nitems(names)];
	unsigned int i;

	peers_start();
	for (i = 0; i < nitems(names); i++) {
		/* The second's is every other one. */
		peer_connect(&peers[i], 1001 + i % 2, false);
		GRANTED(REG_SIZE, 4, &peers[i], REGISTER(names[i], ALL));
	}
	check_place(&root, 0, 0, "vale01:a", 0, 0);
	check_place(&root, 0, 1, "vale0:a", 1, 0);
	check_place(&root, 1, 0, "vale0:a", 1, 0);
	check_place(&root, 1, 1, "vale0:b", 1, 1);
	check_place(&root, 1, 2, "vale0:c", 1, 2);
	check_place(&root, 1, 3, "vale02:a", 2, 0);
	check_place(&root, 2, 1, "vale1:d", 3, 0);
	check_place(&root, 3, 0, "vale1:d", 3, 0);
	check_place(&root, 3, 1, NULL, 0, 0);
	check_place(&root, 4, 0, NULL, 0, 0);
	check_place(&one, 0, 0, "vale01:a", 0, 0);
	check_place(&one, 0, 1, "vale0:b", 1, 1);
	check_place(&one, 1, 2, "vale02:a", 2, 0);
	check_place(&one, 2, 1, NULL, 0, 0);
	check_place(&two, 0, 0, "vale0:a", 1, 0);
	check_place(&two, 1, 1, "vale0:c", 1, 2);
	check_place(&two, 2, 0, "vale1:d", 3, 0);
	REFUSED(EPERM, others_port, &one, NETMAP_REQ_VALE_LIST, "vale0:a",
	    &list, sizeof(list));
	REFUSED(ENXIO, no_port, &one, NETMAP_REQ_VALE_LIST, "vale0:x", &list,
	    sizeof(list));
	for (i = 0; i < nitems(names); i++)
		peer_end(&peers[i]);
	peers_stop();
}

/* The ports from `first' on: their number.  The first of them is `name'. */
static uint32_t
check_page(struct peer *p, const char *of, uint32_t first, const char *name)
{
	const struct vale_wire_page wp = { .wp_first = first, .wp_count = 9 };
	const struct vale_wire_page *got;
	const struct vale_wire_port *wo;

	ATF_CHECK_EQ(0, peer_ask(p, VALE_WIRE_PORTS, of, &wp, sizeof(wp)));
	got = p->pe_body;
	ATF_CHECK_EQ(first, got->wp_first);
	ATF_CHECK_EQ(sizeof(wp) + got->wp_count * sizeof(*wo), p->pe_size);
	wo = (const void *)(got + 1);
	if (got->wp_count > 0)
		ATF_CHECK_STREQ(name, wo->wo_name);
	return (got->wp_count);
}

TEST(page, "As many ports are sent at once as fit, from any one on")
{
	const uint32_t max = (VALE_WIRE_MAX - sizeof(struct vale_wire) -
	    sizeof(struct vale_wire_page)) / sizeof(struct vale_wire_port);
	struct vale_desc *d[250];
	const struct vale_wire_port *wo;
	char name[VALE_NAME_SIZE];
	unsigned int i;

	ATF_REQUIRE(max > 10 && max + 10 < nitems(d));
	peers_start();
	for (i = 0; i < max + 10; i++) {
		snprintf(name, sizeof(name), "vale7:p%u", i);
		d[i] = t_open(name, 2, 4);
	}
	GRANTED(REG_SIZE, 2 + 2 * 2, &one, REGISTER("vale8:a", ALL,
	    .nr_tx_rings = 2));
	ATF_CHECK_EQ(max, check_page(&root, "vale7", 0, "vale7:p0"));
	wo = (const void *)((struct vale_wire_page *)root.pe_body + 1);
	wo += 3;
	ATF_CHECK_STREQ("vale7:p3", wo->wo_name);
	ATF_CHECK_EQ(3, wo->wo_index);
	ATF_CHECK_EQ(1, wo->wo_rings);
	ATF_CHECK_EQ(2, wo->wo_tx_slots);
	ATF_CHECK_EQ(4, wo->wo_rx_slots);
	ATF_CHECK_EQ(VALE_NCOUNTERS, wo->wo_ncounters);
	ATF_CHECK_EQ(10, check_page(&root, "vale7", max, d[max]->common->name));
	ATF_CHECK_EQ(max, check_page(&root, "vale7", 1, "vale7:p1"));
	ATF_CHECK_EQ(1, check_page(&root, "vale7", max + 9, name));
	ATF_CHECK_EQ(0, check_page(&root, "vale7", max + 10, NULL));
	ATF_CHECK_EQ(11, check_page(&root, "", max, d[max]->common->name));
	ATF_CHECK_EQ(0, check_page(&root, "vale9", 0, NULL));
	ATF_CHECK_EQ(1, check_page(&one, "", 0, "vale8:a"));
	wo = (const void *)((struct vale_wire_page *)one.pe_body + 1);
	ATF_CHECK_EQ(2, wo->wo_rings);
	ATF_CHECK_EQ(0, check_page(&one, "vale7", 0, NULL));
	ATF_CHECK_EQ(0, check_page(&two, "", 0, NULL));
	/* One port. */
	ATF_CHECK_EQ(1, check_page(&root, "vale7:p3", 0, "vale7:p3"));
	ATF_CHECK_EQ(0, check_page(&root, "vale7:p3", 1, NULL));
	ATF_CHECK_EQ(1, check_page(&one, "vale8:a", 0, "vale8:a"));
	ATF_CHECK_EQ(0, check_page(&two, "vale8:a", 0, NULL));
	ATF_CHECK_EQ(0, check_page(&root, "vale7:", 0, NULL));
	ATF_CHECK_EQ(0, check_page(&root, ":p3", 0, NULL));
	ATF_CHECK_EQ(0, check_page(&root, "vale70:p3", 0, NULL));
	for (i = 0; i < max + 10; i++)
		vale_close(d[i]);
	peers_stop();
}

TEST(counters, "A port is shown with its counters")
{
	struct vale_desc *a = t_open("vale0:a", 64, 64);
	struct vale_desc *b = t_open("vale0:b", 64, 64);
	const struct vale_wire_port *wo;

	peers_start();
	t_send(a, 60, EVERYBODY, 1, 7);
	t_drain(b);
	ATF_CHECK_EQ(2, check_page(&root, "vale0", 0, "vale0:a"));
	wo = (const void *)((struct vale_wire_page *)root.pe_body + 1);
	ATF_CHECK_EQ(1, wo[0].wo_counter[VALE_C_TX_FRAME]);
	ATF_CHECK_EQ(0, wo[0].wo_counter[VALE_C_RX_FRAME]);
	ATF_CHECK_EQ(1, wo[1].wo_counter[VALE_C_RX_FRAME]);
	peers_stop();
	vale_close(a);
	vale_close(b);
}

/* The addresses from `first' on: a bit for the station of each. */
static unsigned int
addrs(struct peer *p, uint32_t first)
{
	const struct vale_wire_page wp = { .wp_first = first };
	const struct vale_wire_addr *wa;
	unsigned int i, stations = 0;
	uint8_t addr[6];

	ATF_CHECK_EQ(0, peer_ask(p, VALE_WIRE_ADDRS, "vale0", &wp,
	    sizeof(wp)));
	wa = (const void *)((struct vale_wire_page *)p->pe_body + 1);
	ATF_CHECK_EQ(sizeof(wp) + ((struct vale_wire_page *)
	    p->pe_body)->wp_count * sizeof(*wa), p->pe_size);
	for (i = 0; i < ((struct vale_wire_page *)p->pe_body)->wp_count; i++) {
		t_addr(addr, wa[i].wa_addr[5]);
		ATF_CHECK(memcmp(addr, wa[i].wa_addr, sizeof(addr)) == 0);
		/* Station n is at port n / 2. */
		ATF_CHECK_EQ(wa[i].wa_addr[5] / 2, wa[i].wa_port);
		ATF_CHECK_EQ(0, wa[i].wa_pad);
		ATF_CHECK(wa[i].wa_age_s < 60);
		stations |= 1 << wa[i].wa_addr[5];
	}
	return (stations);
}

/* Have a port's user send a frame of a station. */
static void
learn(struct peer *p, unsigned int station)
{
	struct vale_desc *d = p->pe_cc->cc_grant.gr_port;
	uint8_t *memory = shared_last.memory;
	struct netmap_if *nifp;
	struct netmap_ring *ring;
	struct vale_csb *csb;
	uint32_t head;

	memory = peer_mem_addr(&p->pe_cc->cc_grant.gr_dma, 0,
	    p->pe_cc->cc_grant.gr_memory->mm_size, 3);
	ATF_REQUIRE(memory != NULL);
	nifp = d->common->nifp;
	ring = NETMAP_TXRING(nifp, 0);
	csb = (void *)memory;
	head = csb->tx_ktoa.hwcur;
	t_make((uint8_t *)NETMAP_BUF(ring, ring->slot[head].buf_idx), 60,
	    EVERYBODY, station, 1);
	ring->slot[head].len = 60;
	csb->tx_atok.head = head + 1;
	ATF_CHECK(vale_shared_tx(d));
}

TEST(addresses, "Addresses that a switch has learned at the ports of the user, "
    "from any one on")
{
	const struct vale_wire_page wp = { .wp_first = 0 };
	struct peer more;
	unsigned int all, rest;

	peers_start();
	peer_connect(&more, 1001, false);
	GRANTED(REG_SIZE, 4, &one, REGISTER("vale0:a", ALL));
	GRANTED(REG_SIZE, 4, &two, REGISTER("vale0:b", ALL));
	GRANTED(REG_SIZE, 4, &more, REGISTER("vale0:c", ALL));
	learn(&one, 0);
	learn(&one, 1);
	learn(&two, 2);
	learn(&more, 4);
	learn(&more, 5);
	all = addrs(&root, 0);
	ATF_CHECK_EQ(0x37, all);
	ATF_CHECK_EQ(0x33, addrs(&one, 0));
	ATF_CHECK_EQ(0x33, addrs(&more, 0));
	ATF_CHECK_EQ(0x04, addrs(&two, 0));
	rest = addrs(&root, 1);
	ATF_CHECK_EQ(4, __builtin_popcount(rest));
	ATF_CHECK_EQ(0, rest & ~all);
	ATF_CHECK_EQ(1, __builtin_popcount(addrs(&one, 3)));
	ATF_CHECK_EQ(0, addrs(&one, 4));
	ATF_CHECK_EQ(0, addrs(&root, 5));
	REFUSED(ENXIO, "there is no such switch", &root, VALE_WIRE_ADDRS,
	    "vale1", &wp, sizeof(wp));
	/* A page is filled from its beginning each time. */
	peer_end(&more);
	ATF_CHECK_EQ(0x03, addrs(&one, 0));
	peers_stop();
}

/*
 * Waiting.
 */

static bool	there;		/* vale0:a, when an interface is attached */

WRAP(int, hostif_attach, const char *name __unused,
    const struct hostif_fds *fds __unused, char *why __unused)
{
	uint64_t counters[VALE_NCOUNTERS];

	there = vale_port_counters("vale0:a", counters) == 0;
	return (0);
}

/* A client with port vale0:a has just left. */
static void
leaves(void)
{
	peer_connect(&one, 1001, false);
	GRANTED(REG_SIZE, 4, &one, REGISTER("vale0:a", ALL));
	peer_leave(&one);
}

TEST(settles, "A port whose client has left is closed for who asks for it, or "
    "what there is, or for its name")
{
	const struct nmreq_vale_list list = { .nr_bridge_idx = 0 };
	const struct hostif_fds none = { .hf_nfds = 0 };
	struct peer more;

	peer_connect(&two, 1001, false);
	peer_connect(&root, 0, true);
	peer_connect(&more, 1001, false);
	leaves();
	REFUSED(ENXIO, no_port, &root, NETMAP_REQ_PORT_INFO_GET, "vale0:a",
	    NULL, 0);
	leaves();
	REFUSED(EINVAL, "there is no memory 2", &two, VALE_WIRE_INFO, "",
	    &INFO(.nr_mem_id = 2), INFO_SIZE);
	leaves();
	REFUSED(ENOENT, "there is no further port", &root,
	    NETMAP_REQ_VALE_LIST, "", &list, sizeof(list));
	leaves();
	ATF_CHECK_EQ(0, check_page(&root, "", 0, NULL));
	leaves();
	GRANTED(0, 0, &root, NETMAP_REQ_VALE_ATTACH, "vale0:a", &none,
	    sizeof(none));
	ATF_CHECK(!there);
	leaves();
	GRANTED(REG_SIZE, 4, &two, REGISTER("vale0:a", ALL));
	peer_end(&two);
	leaves();
	/* What does not need to wait does not. */
	GRANTED(REG_SIZE, 4, &more, REGISTER("vale0:b", ALL));
	ATF_CHECK(one.pe_cc->cc_open && one.pe_cc->cc_grant.gr_port != NULL);
	peer_end(&more);
	peer_end(&root);
}

TEST_PROGRAM
