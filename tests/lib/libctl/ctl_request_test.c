/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The requests of the control socket, and exactly what each is answered with:
 * the form of packets, and all but memory (ctl_memory_test.c) and attached
 * interfaces (ctl_attach_test.c).  who.py has who may ask.
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_rate.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "ctl_peers.h"
#include "fail_calls.h"
#include "frame_vnet.h"
#include "hostif_impl.h"
#include "test.h"
#include "vale_setting.h"
#include "vale_test.h"

#define	INFO_SIZE	sizeof(struct nmreq_port_info_get)

/*
 * Packets.
 */

/* A request that is answered with PORT_INFO_GET's reply, or an error. */
static struct {
	struct vale_wire wire;
	char		 body[5000];
} packet;

static void
packet_init(uint16_t request)
{
	memset(&packet, 0, sizeof(packet));
	packet.wire.vw_magic = VALE_WIRE_MAGIC;
	packet.wire.vw_header.nr_version = NETMAP_API;
	packet.wire.vw_header.nr_reqtype = request;
	strlcpy(packet.wire.vw_header.nr_name, "vale0:a", VALE_NAME_SIZE);
}

/* It is refused for that reason. */
static void
packet_refused(size_t len, int error, const char *why)
{
	ATF_CHECK_EQ(error, peer_packet(&root, &packet, len, -1));
	ATF_CHECK_STREQ(why, root.pe_reply.wire.vw_why);
	ATF_CHECK_EQ(0, root.pe_size);
}

TEST(form, "A packet of the wrong magic, version, name, options or length is "
    "refused, and answered as the server's version")
{
	static const char other[] = "the request is of another version";
	static char longest[VALE_WIRE_MAX];
	const size_t len = sizeof(packet.wire);
	struct vale_wire want;

	peers_start();
	port_open(&one, "vale0:a");
	packet_init(NETMAP_REQ_PORT_INFO_GET);
	memcpy(longest, &packet.wire, len);
	ATF_CHECK_EQ(EINVAL, peer_packet(&root, longest, sizeof(longest), -1));
	ATF_CHECK_EQ(0, peer_packet(&root, &packet, len, -1));
	ATF_CHECK_EQ(INFO_SIZE, root.pe_size);
	packet_refused(len - 1, EPROTO, other);
	packet_refused(4, EPROTO, other);
	/* What a packet does not have is zero in the reply. */
	memset(&want, 0, sizeof(want));
	want.vw_magic = VALE_WIRE_MAGIC;
	want.vw_error = EPROTO;
	strlcpy(want.vw_why, other, sizeof(want.vw_why));
	ATF_CHECK_EQ(0, memcmp(&want, &root.pe_reply.wire, sizeof(want)));
	packet.wire.vw_magic++;
	packet_refused(len, EPROTO, other);
	packet.wire.vw_magic = 0;
	packet_refused(len, EPROTO, other);
	packet_init(NETMAP_REQ_PORT_INFO_GET);
	packet.wire.vw_header.nr_version = 13;
	packet_refused(len, EINVAL, "netmap API 13, not 14");
	packet.wire.vw_header.nr_version = 15;
	packet_refused(len, EINVAL, "netmap API 15, not 14");
	packet_init(NETMAP_REQ_PORT_INFO_GET);
	packet.wire.vw_header.nr_options = 1;
	packet_refused(len, EOPNOTSUPP, "options are not supported");
	packet_init(NETMAP_REQ_PORT_INFO_GET);
	memset(packet.wire.vw_header.nr_name, 'a', VALE_NAME_SIZE);
	packet_refused(len, EINVAL, "the name does not end");
	packet.wire.vw_header.nr_name[VALE_NAME_SIZE - 1] = '\0';
	packet_refused(len, ENXIO, "there is no such port");
	peers_stop();
}

TEST(lengths, "Each request has one length; other numbers are no requests")
{
	static const struct {
		uint16_t	type;
		size_t		size;
	} requests[] = {
		{ NETMAP_REQ_REGISTER, REG_SIZE },
		{ NETMAP_REQ_PORT_INFO_GET, 0 },
		{ NETMAP_REQ_PORT_HDR_SET,
		    sizeof(struct nmreq_port_hdr) },
		{ NETMAP_REQ_PORT_HDR_GET, 0 },
		{ NETMAP_REQ_VALE_LIST, 8 },
		{ NETMAP_REQ_VALE_ATTACH, sizeof(struct hostif_fds) },
		{ NETMAP_REQ_VALE_DETACH, 0 },
		{ VALE_WIRE_PORTS, 8 },
		{ VALE_WIRE_ADDRS, 8 },
		{ VALE_WIRE_DEVICES, 8 },
		{ VALE_WIRE_SET, 528 },
		{ VALE_WIRE_MIRROR, 68 },
		{ VALE_WIRE_PORT_SETTINGS, 0 },
		{ VALE_WIRE_SWITCH_SETTINGS, 0 },
		{ VALE_WIRE_MISSED, 0 },
		{ VALE_WIRE_INFO, INFO_SIZE },
		{ VALE_WIRE_SHARE, 0 },
		{ VALE_WIRE_FILTER, 4 + 8 * VALE_FILTER_MAX },
		{ VALE_WIRE_RELOAD, 0 },
		{ VALE_WIRE_RESTART, 0 },
		{ VALE_WIRE_REPLACE, 0 },
	};
	static const uint16_t others[] = { 0, NETMAP_REQ_VALE_NEWIF, 0x75ff,
	    0x760f, 0xffff };
	static struct vale_wire_value set[VALE_NSETTINGS + 1];
	struct vale_wire_mirror wm = { VALE_MIRROR_TX, "" };
	char why[128];
	unsigned int i;
	size_t len;

	peers_start();
	for (i = 0; i < nitems(requests); i++) {
		packet_init(requests[i].type);
		len = sizeof(packet.wire) + requests[i].size;
		snprintf(why, sizeof(why), "request %u has the wrong length",
		    requests[i].type);
		packet_refused(len + 1, EINVAL, why);
		if (requests[i].size > 0)
			packet_refused(len - 1, EINVAL, why);
		packet.wire.vw_header.nr_name[0] = '\0';
		peer_packet(&root, &packet, len, -1);
		ATF_CHECK_MSG(strcmp(why, root.pe_reply.wire.vw_why) != 0,
		    "%s", why);
	}
	for (i = 0; i < nitems(others); i++) {
		packet_init(others[i]);
		snprintf(why, sizeof(why), "request %u is not supported",
		    others[i]);
		packet_refused(sizeof(packet.wire), EOPNOTSUPP, why);
	}
	/* As many settings as there are, and a name that ends. */
	port_open(&one, "vale0:a");
	for (i = 0; i < nitems(set); i++)
		set[i].wv_set = (struct vale_wire_set){ 5, 0, 2 };
	REFUSED(E2BIG, "there are 14 settings", &root, VALE_WIRE_SET,
	    "vale0:a", set, sizeof(set));
	GRANTED(0, 0, &root, VALE_WIRE_SET, "vale0:a", set,
	    sizeof(set) - sizeof(set[0]));
	/* A mirror has a request of its own, and a text ends. */
	set[0].wv_set.ws_setting = 8;
	REFUSED(EOPNOTSUPP, "setting 8 is not supported", &root,
	    VALE_WIRE_SET, "vale0:a", set, sizeof(set[0]));
	set[0].wv_set.ws_setting = 12;
	memset(set[0].wv_text, 'a', sizeof(set[0].wv_text));
	REFUSED(EINVAL, "the value does not end", &root, VALE_WIRE_SET,
	    "vale0:a", set, sizeof(set[0]));
	memset(wm.wm_of, 'a', sizeof(wm.wm_of));
	REFUSED(EINVAL, "the mirrored name does not end", &one,
	    VALE_WIRE_MIRROR, "vale0:a", &wm, sizeof(wm));
	peers_stop();
}

/*
 * What may be registered.
 */

static const char no_host[] = "a port has no rings of the host";
static const char rings_max[] = "a port has up to 16 rings in each direction";
static const char slots_range[] = "slots must be 2 to 16384, for all rings of "
    "a direction, extra buffers up to 8192";
static const char one_ring[] = "a pipe has one ring in each direction";
static const char pipe_slots[] = "slots of a pipe must be 2 to 4096";
static const char pipe_monitor[] = "monitors of pipes are not supported";
static const char pipe_mode[] = "a pipe has a name like vale0:x{1";
static const char copies[] = "monitors get copies: zero-copy is not supported";
static const char pipe_of[] = "the name before the pipe is that of no port";
static const char pipe_name[] = "the name of a pipe consists of letters, "
    "digits, '_', '-' and '.'";

#define	ALL	.nr_mode = NR_REG_ALL_NIC

static const struct {
	const char	*name;
	struct nmreq_register reg;
	int		 error;
	const char	*why;
} registers[] = {
	/* Ports. */
	{ "vale0", { ALL }, EINVAL,
	    "the port's name is missing (valeSWITCH:PORT)" },
	{ "x:a", { ALL }, EINVAL, "it does not begin with \"vale\"" },
	{ "vale0:a", { .nr_mode = NR_REG_DEFAULT }, EOPNOTSUPP, no_host },
	{ "vale0:a", { .nr_mode = NR_REG_SW }, EOPNOTSUPP, no_host },
	{ "vale0:a", { .nr_mode = NR_REG_NIC_SW }, EOPNOTSUPP, no_host },
	{ "vale0:a", { .nr_mode = NR_REG_PIPE_MASTER }, EINVAL, pipe_mode },
	{ "vale0:a", { .nr_mode = NR_REG_PIPE_SLAVE }, EINVAL, pipe_mode },
	{ "vale0:a", { .nr_mode = 100 }, EOPNOTSUPP, no_host },
	{ "vale0:a", { ALL, .nr_host_tx_rings = 1 }, EOPNOTSUPP, no_host },
	{ "vale0:a", { ALL, .nr_host_rx_rings = 1 }, EOPNOTSUPP, no_host },
	{ "vale0:a", { ALL, .nr_flags = NR_ZCOPY_MON }, EOPNOTSUPP, copies },
	{ "vale0:a", { ALL, .nr_flags = NR_ZCOPY_MON | NR_MONITOR_TX },
	    EOPNOTSUPP, copies },
	{ "vale0:a", { ALL, .nr_tx_rings = 16 }, 0, NULL },
	{ "vale0:a", { ALL, .nr_rx_rings = 16 }, 0, NULL },
	{ "vale0:a", { ALL, .nr_tx_rings = 17 }, EINVAL, rings_max },
	{ "vale0:a", { ALL, .nr_rx_rings = 17 }, EINVAL, rings_max },
	{ "vale0:a", { .nr_mode = NR_REG_ONE_NIC }, 0, NULL },
	{ "vale0:a", { .nr_mode = NR_REG_ONE_NIC, .nr_ringid = 1 }, EINVAL,
	    "ring 1 of 1" },
	{ "vale0:a", { .nr_mode = NR_REG_ONE_NIC, .nr_ringid = 2,
	    .nr_rx_rings = 3 }, 0, NULL },
	{ "vale0:a", { .nr_mode = NR_REG_ONE_NIC, .nr_ringid = 3,
	    .nr_tx_rings = 3 }, EINVAL, "ring 3 of 3" },
	{ "vale0:a", { ALL, .nr_ringid = 3 }, 0, NULL },
	{ "vale0:a", { ALL, .nr_tx_slots = 1 }, EINVAL, slots_range },
	{ "vale0:a", { ALL, .nr_rx_slots = 1 }, EINVAL, slots_range },
	{ "vale0:a", { ALL, .nr_tx_slots = 2, .nr_rx_slots = 2 }, 0, NULL },
	{ "vale0:a", { ALL, .nr_tx_slots = 16384 }, 0, NULL },
	{ "vale0:a", { ALL, .nr_rx_slots = 16384 }, 0, NULL },
	{ "vale0:a", { ALL, .nr_tx_slots = 16385 }, EINVAL, slots_range },
	{ "vale0:a", { ALL, .nr_rx_slots = 16385 }, EINVAL, slots_range },
	{ "vale0:a", { ALL, .nr_extra_bufs = 8192 }, 0, NULL },
	{ "vale0:a", { ALL, .nr_extra_bufs = 8193 }, EINVAL, slots_range },
	/* Pipes. */
	{ "vale0:a{1", { .nr_mode = NR_REG_ONE_NIC }, 0, NULL },
	{ "vale0:a{1", { .nr_mode = NR_REG_DEFAULT }, EOPNOTSUPP, one_ring },
	{ "vale0:a{1", { .nr_mode = NR_REG_SW }, EOPNOTSUPP, one_ring },
	{ "vale0:a{1", { .nr_mode = NR_REG_PIPE_MASTER }, EOPNOTSUPP,
	    one_ring },
	{ "vale0:a{1", { ALL, .nr_ringid = 1 }, EOPNOTSUPP, one_ring },
	{ "vale0:a{1", { ALL, .nr_tx_rings = 1, .nr_rx_rings = 1 }, 0, NULL },
	{ "vale0:a{1", { ALL, .nr_tx_rings = 2 }, EOPNOTSUPP, one_ring },
	{ "vale0:a{1", { ALL, .nr_rx_rings = 2 }, EOPNOTSUPP, one_ring },
	{ "vale0:a{1", { ALL, .nr_host_tx_rings = 1 }, EOPNOTSUPP, one_ring },
	{ "vale0:a{1", { ALL, .nr_host_rx_rings = 1 }, EOPNOTSUPP, one_ring },
	{ "vale0:a{1", { ALL, .nr_flags = NR_MONITOR_TX }, EOPNOTSUPP,
	    pipe_monitor },
	{ "vale0:a{1", { ALL, .nr_flags = NR_MONITOR_RX }, EOPNOTSUPP,
	    pipe_monitor },
	{ "vale0:a{1", { ALL, .nr_flags = NR_ZCOPY_MON }, EOPNOTSUPP,
	    pipe_monitor },
	{ "vale0:a{1", { ALL, .nr_flags = ~(uint64_t)(NR_MONITOR_TX |
	    NR_MONITOR_RX | NR_ZCOPY_MON) }, 0, NULL },
	{ "vale0:a{1", { ALL, .nr_tx_slots = 1 }, EINVAL, pipe_slots },
	{ "vale0:a{1", { ALL, .nr_rx_slots = 1 }, EINVAL, pipe_slots },
	{ "vale0:a{1", { ALL, .nr_tx_slots = 2, .nr_rx_slots = 2 }, 0, NULL },
	{ "vale0:a{1", { ALL, .nr_tx_slots = 4096 }, 0, NULL },
	{ "vale0:a{1", { ALL, .nr_rx_slots = 4096 }, 0, NULL },
	{ "vale0:a{1", { ALL, .nr_tx_slots = 4097 }, EINVAL, pipe_slots },
	{ "vale0:a{1", { ALL, .nr_rx_slots = 4097 }, EINVAL, pipe_slots },
	{ "vale0:a{", { ALL }, EINVAL, pipe_name },
	{ "vale0:a}a b", { ALL }, EINVAL, pipe_name },
	{ "vale0:a}a.B_9-", { ALL }, 0, NULL },
	{ "a b{1", { ALL }, EINVAL, pipe_of },
	{ "eth0{1", { ALL }, 0, NULL },
	{ "vale0:a b{1", { ALL }, EINVAL, pipe_of },
	/* Memory. */
	{ "x", { .nr_mode = NR_REG_NULL, .nr_mem_id = 1,
	    .nr_flags = NR_MONITOR_TX }, EOPNOTSUPP,
	    "there is nothing to monitor" },
	{ "x", { .nr_mode = NR_REG_NULL, .nr_mem_id = 1,
	    .nr_flags = NR_MONITOR_RX }, EOPNOTSUPP,
	    "there is nothing to monitor" },
	{ "x", { .nr_mode = NR_REG_NULL, .nr_mem_id = 1,
	    .nr_flags = NR_ZCOPY_MON }, EOPNOTSUPP,
	    "there is nothing to monitor" },
	{ "x", { .nr_mode = NR_REG_NULL, .nr_mem_id = 1,
	    .nr_flags = ~(uint64_t)(NR_MONITOR_TX | NR_MONITOR_RX |
	    NR_ZCOPY_MON) }, 0, NULL },
	{ "x", { .nr_mode = NR_REG_NULL, .nr_mem_id = 1, .nr_tx_rings = 16,
	    .nr_rx_rings = 16 }, 0, NULL },
	{ "x", { .nr_mode = NR_REG_NULL, .nr_mem_id = 1, .nr_tx_rings = 17 },
	    EINVAL, rings_max },
	{ "x", { .nr_mode = NR_REG_NULL, .nr_mem_id = 1, .nr_rx_rings = 17 },
	    EINVAL, rings_max },
	{ "x", { .nr_mode = NR_REG_NULL }, EINVAL, "no memory is named" },
	{ "x", { .nr_mode = NR_REG_NULL, .nr_mem_id = 2 }, EINVAL,
	    "there is no memory 2" },
	{ "vale0:a{1", { ALL, .nr_mem_id = 1 }, EINVAL,
	    "there is no memory 1" },
	{ "vale0:a{1", { ALL, .nr_mem_id = 65535 }, EINVAL,
	    "there is no memory 65535" },
};

TEST(registers, "What a port, a pipe or a memory may be asked for, up to each "
    "limit")
{
	struct fail_held before;
	unsigned int i;

	peers_start();
	before = fail_held();
	for (i = 0; i < nitems(registers); i++) {
		ATF_CHECK_EQ_MSG(registers[i].error, peer_ask(&one,
		    NETMAP_REQ_REGISTER, registers[i].name, &registers[i].reg,
		    REG_SIZE), "%u: %s", i, one.pe_reply.wire.vw_why);
		ATF_CHECK_STREQ_MSG(registers[i].error == 0 ? "" :
		    registers[i].why, one.pe_reply.wire.vw_why, "%u", i);
		ATF_CHECK_EQ(registers[i].error == 0 ? REG_SIZE : 0,
		    one.pe_size);
		ATF_CHECK_EQ(registers[i].error == 0, one.pe_nfds > 0);
		if (registers[i].error == 0) {
			peer_end(&one);
			peer_connect(&one, 1001, false);
		}
		fail_held_check(&before);
	}
	peers_stop();
}

/*
 * Headers, filters.
 */

TEST(headers, "The header of the connection's own port: none, or of one of two "
    "sizes")
{
	static const uint32_t sizes[] = { 0, FRAME_VNET_SHORT,
	    FRAME_VNET_LONG };
	static const uint32_t others[] = { 1, FRAME_VNET_SHORT - 1,
	    FRAME_VNET_SHORT + 1, FRAME_VNET_LONG + 1, UINT32_MAX };
	static const char not_its[] = "the connection does not have this port";
	struct nmreq_port_hdr hdr = { .nr_hdr_len = FRAME_VNET_SHORT };
	unsigned int i;

	peers_start();
	REFUSED(ENXIO, not_its, &one, NETMAP_REQ_PORT_HDR_SET, "vale0:a", &hdr,
	    sizeof(hdr));
	REFUSED(ENXIO, not_its, &one, NETMAP_REQ_PORT_HDR_GET, "vale0:a", NULL,
	    0);
	REFUSED(ENXIO, "the connection has no port", &one, VALE_WIRE_MISSED, "",
	    NULL, 0);
	port_open(&one, "vale0:a");
	port_open(&two, "vale0:b");
	REFUSED(ENXIO, not_its, &one, NETMAP_REQ_PORT_HDR_SET, "vale0:b", &hdr,
	    sizeof(hdr));
	REFUSED(ENXIO, not_its, &one, NETMAP_REQ_PORT_HDR_GET, "vale0:b", NULL,
	    0);
	for (i = 0; i < nitems(sizes); i++) {
		hdr.nr_hdr_len = sizes[i];
		GRANTED(0, 0, &one, NETMAP_REQ_PORT_HDR_SET, "vale0:a", &hdr,
		    sizeof(hdr));
		GRANTED(sizeof(hdr), 0, &one, NETMAP_REQ_PORT_HDR_GET,
		    "vale0:a", NULL, 0);
		ATF_CHECK(memcmp(&hdr, one.pe_body, sizeof(hdr)) == 0);
	}
	for (i = 0; i < nitems(others); i++) {
		hdr.nr_hdr_len = others[i];
		REFUSED(EINVAL, "a header has 0, 10 or 12 bytes", &one,
		    NETMAP_REQ_PORT_HDR_SET, "vale0:a", &hdr, sizeof(hdr));
	}
	GRANTED(8, 0, &one, VALE_WIRE_MISSED, "", NULL, 0);
	ATF_CHECK_EQ(0, *(uint64_t *)one.pe_body);
	/* The next connection's port has none. */
	peer_end(&one);
	peer_connect(&one, 1001, false);
	port_open(&one, "vale0:a");
	GRANTED(sizeof(hdr), 0, &one, NETMAP_REQ_PORT_HDR_GET, "vale0:a", NULL,
	    0);
	ATF_CHECK_EQ(0, ((struct nmreq_port_hdr *)one.pe_body)->nr_hdr_len);
	peers_stop();
}

TEST(filters, "A filter comes before the monitor that it is for, is checked, "
    "and is for that one only")
{
	static const char invalid[] = "the filter is not valid";
	static struct vale_wire_filter wf;
	const struct vale_insn all = { 0x06, 0, 0, 1 };
	const struct nmreq_register monitor = { .nr_mode = NR_REG_ALL_NIC,
	    .nr_flags = NR_MONITOR_TX };

	peers_start();
	port_open(&two, "vale0:b");
	wf.wf_len = VALE_FILTER_MAX;
	REFUSED(EBUSY, "the connection has a port", &two, VALE_WIRE_FILTER, "",
	    &wf, sizeof(wf));
	REFUSED(EINVAL, invalid, &one, VALE_WIRE_FILTER, "", &wf, sizeof(wf));
	ATF_CHECK(one.pe_cc->cc_filter == NULL);
	wf.wf_len = VALE_FILTER_MAX + 1;
	REFUSED(E2BIG, "a filter has up to 512 instructions", &one,
	    VALE_WIRE_FILTER, "", &wf, sizeof(wf));
	wf.wf_len = UINT32_MAX;
	REFUSED(E2BIG, "a filter has up to 512 instructions", &one,
	    VALE_WIRE_FILTER, "", &wf, sizeof(wf));
	wf.wf_len = 1;
	wf.wf_insn[0] = all;
	GRANTED(0, 0, &one, VALE_WIRE_FILTER, "", &wf, sizeof(wf));
	ATF_CHECK(memcmp(&wf, one.pe_cc->cc_filter, sizeof(wf)) == 0);
	/* One that is invalid changes nothing. */
	wf.wf_insn[0].code = 0xffff;
	REFUSED(EINVAL, invalid, &one, VALE_WIRE_FILTER, "", &wf, sizeof(wf));
	ATF_CHECK_EQ(0x06, one.pe_cc->cc_filter->wf_insn[0].code);
	REFUSED(EINVAL, "only a monitor has a filter", &one,
	    REGISTER("vale0:a", .nr_mode = NR_REG_ALL_NIC));
	REFUSED(EINVAL, "only a monitor has a filter", &one,
	    REGISTER("x", .nr_mode = NR_REG_NULL, .nr_mem_id = 1));
	/* None again; then one for a monitor, which may fail to open. */
	wf.wf_len = 0;
	GRANTED(0, 0, &one, VALE_WIRE_FILTER, "", &wf, sizeof(wf));
	ATF_CHECK(one.pe_cc->cc_filter == NULL);
	port_open(&one, "vale0:a");
	peer_end(&one);
	peer_connect(&one, 1002, false);
	wf.wf_len = 1;
	wf.wf_insn[0] = all;
	GRANTED(0, 0, &one, VALE_WIRE_FILTER, "", &wf, sizeof(wf));
	REFUSED(ENXIO, "there is no such port", &one, NETMAP_REQ_REGISTER,
	    "vale0:c", &monitor, sizeof(monitor));
	ATF_CHECK(one.pe_cc->cc_filter != NULL);
	GRANTED(sizeof(monitor), 4, &one, NETMAP_REQ_REGISTER, "vale0:b",
	    &monitor, sizeof(monitor));
	ATF_CHECK(one.pe_cc->cc_filter == NULL);
	REFUSED(EBUSY, "the connection has a port", &one, VALE_WIRE_FILTER, "",
	    &wf, sizeof(wf));
	peer_end(&one);
	/* It leaves with one that was not used. */
	peer_connect(&one, 1001, false);
	GRANTED(0, 0, &one, VALE_WIRE_FILTER, "", &wf, sizeof(wf));
	peers_stop();
}

TEST_PROGRAM
