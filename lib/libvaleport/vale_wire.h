/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What programs say to valed on its control socket: the requests of netmap(4),
 * as ioctl(2) NIOCCTRL of /dev/netmap takes them, and some that netmap lacks.
 *
 * The socket is of type SOCK_SEQPACKET.  A request is one packet: a struct
 * vale_wire, whose vw_header.nr_reqtype says which, and the body of that
 * request.  valed answers each request with one packet of the same form.  If
 * vw_error is not 0, the reply has no body, and vw_why says what is wrong.
 * Everything is in the byte order of the host.
 *
 * nr_options and nr_body, addresses in a program, must be 0.
 *
 *	NETMAP_REQ_REGISTER	struct nmreq_register, both ways.  Opens the
 *		port, for as long as the connection lasts; with NR_MONITOR_TX or
 *		NR_MONITOR_RX, a monitor of the port.  It has as many rings in
 *		both directions: the larger number of the two.  The reply has
 *		the descriptor of the port's memory (libvale.h, struct
 *		vale_csb), that of the window which belongs over a part of it
 *		(vale_layout.h), at nr_offset, and for each ring pair one of a
 *		socket of each ring, transmit first.  A kick is a byte; the user
 *		kicks on the first of the sockets, whichever transmit ring it is
 *		for.
 *		With the name of a pipe ("vale0:x{1", "vale0:x}1"), one of its
 *		ends, which has a ring pair.  The descriptors are the same, and
 *		nr_offset tells where in the memory it is (vale_pipe.h).  The
 *		other end has the other ends of the sockets: a kick wakes it.
 *		nr_mem_id names the memory for a new pipe.
 *		With NR_REG_NULL no port, but the memory nr_mem_id, or for 1
 *		memory of its own, with extra buffers, and the descriptors of
 *		the memory and the window.
 *		A descriptor of a memory that comes with the request names that
 *		memory, and shows that the user has it: otherwise EPERM, if the
 *		memory, or the port that a pipe is of, is another user's.
 *	NETMAP_REQ_PORT_INFO_GET  no body; struct nmreq_port_info_get.  Of any
 *		port or pipe that there is.
 *	NETMAP_REQ_PORT_HDR_SET  struct nmreq_port_hdr; no body.  Of the
 *		connection's port.  NETMAP_REQ_PORT_HDR_GET: the reverse.
 *	NETMAP_REQ_VALE_LIST	struct nmreq_vale_list, both ways.  With a name,
 *		that port's place; without, the first port at or behind the
 *		place, and its name, or ENOENT.
 *
 *	NETMAP_REQ_VALE_ATTACH	struct hostif_fds of valed's hostif.h, and the
 *		descriptors of the interface; no body.  The name is that of the
 *		port to be: "vale0:eth0".
 *	NETMAP_REQ_VALE_DETACH	no bodies.
 *
 *	VALE_WIRE_PORTS		struct vale_wire_page; the same, and struct
 *		vale_wire_port for each port of the switch nr_name, or of all if
 *		that is empty, as many as fit; for the port of that name only,
 *		if it is a port's.
 *	VALE_WIRE_ADDRS		struct vale_wire_page; so many of struct
 *		vale_wire_addr, one for each address that the switch has
 *		learned, in pages as those of VALE_WIRE_PORTS.
 *	VALE_WIRE_SET		one or more of struct vale_wire_value; no body.
 *		Of a switch or port: all of them are set at once.
 *	VALE_WIRE_MIRROR	struct vale_wire_mirror; no body.  Of a port.
 *	VALE_WIRE_PORT_SETTINGS, VALE_WIRE_SWITCH_SETTINGS  no body; struct
 *		vale_wire_value for each setting that a port, or a switch, has.
 *
 *	VALE_WIRE_DEVICES	struct vale_wire_page; the same, and struct
 *		vale_wire_device for each adapter and attached interface whose
 *		port is nr_name, or is of that switch, or for all if it is
 *		empty, in pages as those of VALE_WIRE_PORTS.
 *
 *	VALE_WIRE_MISSED	no body; a uint64_t: vale_missed() of the
 *		connection's port.
 *	VALE_WIRE_FILTER	struct vale_wire_filter; no body.  The filter of
 *		the monitor that the connection opens next; wf_len 0: none.
 *		Another port is then refused.
 *	VALE_WIRE_INFO		struct nmreq_port_info_get, both ways: as netmap
 *		answers NETMAP_REQ_PORT_INFO_GET.  Of a port or pipe that is not
 *		there, what it would have if it were opened with these numbers;
 *		without a name, of the memory nr_mem_id.
 *	VALE_WIRE_SHARE		no body; the reply of the connection's
 *		NETMAP_REQ_REGISTER once more, with its descriptors, and the
 *		name of the port: for a process to which the connection was
 *		passed.
 *	VALE_WIRE_RELOAD	no body; a text without a NUL: the first error,
 *		or nothing.  Answered when valed has read its configuration
 *		again.  If that would disconnect a client of an adapter whose
 *		options have changed, this is an error, and nothing is changed.
 *	VALE_WIRE_REPLACE	the same, but such clients are disconnected.
 *	VALE_WIRE_RESTART	no body; a text, as above.  valed is started
 *		again, from the program's file as it is now.  Answered before
 *		that; or the connection ends without an answer.
 */

#ifndef _VALE_WIRE_H_
#define	_VALE_WIRE_H_

#include <net/netmap.h>

#include <stdint.h>
#include <string.h>

#include "vale_setting.h"

/* Where valed listens, unless the environment says otherwise: vale_find.h. */
#define	VALE_WIRE_PATH		"/run/valed/control"
#define	VALE_WIRE_ENV		"VALE_SOCKET"

#define	VALE_WIRE_MAGIC		0x76616c31	/* "val1": the version */
#define	VALE_WIRE_MAX		65536	/* bytes of a packet */
#define	VALE_WIRE_FDS		18	/* descriptors of a request */
/* Of a reply: NETMAP_REQ_REGISTER. */
#define	VALE_WIRE_REPLY_FDS	(2 + 2 * VALE_RINGS_MAX)

struct vale_wire {
	uint32_t	vw_magic;
	int32_t		vw_error;	/* an errno; 0 in requests */
	char		vw_why[128];	/* a sentence, with a NUL */
	struct nmreq_header vw_header;
};
_Static_assert(sizeof(struct vale_wire) == 224, "vale_wire");

/* Behind netmap's own numbers. */
#define	VALE_WIRE_PORTS		0x7600
#define	VALE_WIRE_ADDRS		0x7601
#define	VALE_WIRE_SET		0x7602
#define	VALE_WIRE_MIRROR	0x7603
#define	VALE_WIRE_MISSED	0x7604
#define	VALE_WIRE_INFO		0x7605
#define	VALE_WIRE_SHARE		0x7606
#define	VALE_WIRE_RELOAD	0x7607
#define	VALE_WIRE_PORT_SETTINGS	0x7608
#define	VALE_WIRE_SWITCH_SETTINGS 0x7609
#define	VALE_WIRE_FILTER	0x760b
#define	VALE_WIRE_DEVICES	0x760c
#define	VALE_WIRE_RESTART	0x760d
#define	VALE_WIRE_REPLACE	0x760e

/* Counters of a device at most. */
#define	VALE_DEVICE_COUNTERS	80

/* A part of a list: `count' entries from number `first' on. */
struct vale_wire_page {
	uint32_t	wp_first;
	uint32_t	wp_count;	/* in requests 0: as many as fit */
};

struct vale_wire_port {
	char		wo_name[VALE_NAME_SIZE];
	uint16_t	wo_index;
	uint8_t		wo_rings;
	uint8_t		wo_down;	/* its link is down */
	uint32_t	wo_tx_slots;
	uint32_t	wo_rx_slots;
	uint32_t	wo_ncounters;	/* VALE_NCOUNTERS of valed */
	uint64_t	wo_counter[VALE_NCOUNTERS];
};

struct vale_wire_addr {
	uint8_t		wa_addr[6];
	uint8_t		wa_port;	/* wo_index */
	uint8_t		wa_pad;
	uint32_t	wa_age_s;
	uint16_t	wa_vlan;
	uint8_t		wa_pad2[2];
};

/* A counter of a device: its name, what it counts, with a NUL, its kind. */
struct vale_wire_counter {
	char		wn_name[24];
	char		wn_what[71];
	uint8_t		wn_kind;	/* enum counter_kind */
	uint64_t	wn_value;
};

/* wdv_kind */
#define	VALE_DEVICE_ADAPTER	1
#define	VALE_DEVICE_INTERFACE	2

/* wdv_flags of an adapter */
#define	VALE_DEVICE_CLIENT	0x01	/* a client is connected */
#define	VALE_DEVICE_CSB		0x02	/* its driver uses the CSB */
#define	VALE_DEVICE_LINK	0x04	/* its driver sees a carrier */

/* An adapter, or an attached interface, of which only the names and counters
   are set. */
struct vale_wire_device {
	char		wdv_name[VALE_NAME_SIZE];
	char		wdv_port[VALE_NAME_SIZE];	/* or its TAP */
	uint8_t		wdv_kind;
	uint8_t		wdv_flags;
	uint8_t		wdv_addr[6];	/* the adapter's own */
	uint64_t	wdv_since_s;	/* since when a client is connected:
					   seconds since 1970, or 0 */
	uint32_t	wdv_itr_ns;	/* least time between two interrupts, as
					   the driver and the configuration say;
					   0: none */
	uint32_t	wdv_ncounters;
	struct vale_wire_counter wdv_counter[VALE_DEVICE_COUNTERS];
};

/* A setting: vale_setting.h has their numbers. */
struct vale_wire_set {
	uint32_t	ws_setting;
	uint32_t	ws_burst;	/* of a rate */
	uint64_t	ws_value;	/* a truth value is 0 or 1 */
};

struct vale_wire_value {
	struct vale_wire_set wv_set;
	char		wv_text[VALE_SETTING_SIZE]; /* with a NUL: see struct
					   vale_setting_value */
};

/* Put a setting into *wv. */
static inline void
vale_wire_put(struct vale_wire_value *wv, unsigned int setting,
    const struct vale_setting_value *sv)
{
	wv->wv_set.ws_setting = sv->sv_frames ? VALE_SETTING_FRAMES :
	    vale_setting_table[setting].se_number;
	wv->wv_set.ws_burst = sv->sv_burst;
	wv->wv_set.ws_value = sv->sv_number;
	memcpy(wv->wv_text, sv->sv_text, sizeof(wv->wv_text));
}

/*
 * Take a setting from *wv, whose text may be without its NUL.  Returns
 * VALE_NSETTINGS if there is no such setting.
 */
static inline unsigned int
vale_wire_take(const struct vale_wire_value *wv, struct vale_setting_value *sv)
{
	sv->sv_number = wv->wv_set.ws_value;
	sv->sv_burst = wv->wv_set.ws_burst;
	sv->sv_frames = wv->wv_set.ws_setting == VALE_SETTING_FRAMES;
	memcpy(sv->sv_text, wv->wv_text, sizeof(sv->sv_text));
	return (sv->sv_frames ? VALE_SETTING_RATE :
	    vale_setting_find(wv->wv_set.ws_setting));
}

struct vale_wire_mirror {
	uint32_t	wm_what;	/* VALE_MIRROR_*, or 0 */
	char		wm_of[VALE_NAME_SIZE];
};

struct vale_wire_filter {
	uint32_t	wf_len;		/* instructions */
	struct vale_insn wf_insn[VALE_FILTER_MAX];
};

#endif /* !_VALE_WIRE_H_ */
