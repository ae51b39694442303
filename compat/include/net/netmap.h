/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * netmap's rings, a program's interface: netmap(4), API version 14, as far as
 * it is used here.  FreeBSD has <net/netmap.h> with the same layout, which the
 * assertions at the end check.
 */

#ifndef _NET_NETMAP_H_
#define	_NET_NETMAP_H_

#include <sys/types.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <net/if.h>

#include <stddef.h>
#include <stdint.h>

#define	NETMAP_API		14
#define	NETMAP_API_MAX		15	/* which netmap takes, too */
#define	NETMAP_MAX_FRAGS	64	/* slots per frame, at most */
#define	NM_CACHE_ALIGN		128
#define	NM_BDG_NAME		"vale"	/* the beginning of port names */

/* A buffer, or memory elsewhere. */
struct netmap_slot {
	uint32_t	buf_idx;
	uint16_t	len;		/* bytes */
	uint16_t	flags;		/* NS_* */
	uint64_t	ptr;		/* address, with NS_INDIRECT */
};

#define	NS_BUF_CHANGED	0x0001		/* the user has changed buf_idx */
#define	NS_INDIRECT	0x0010		/* transmit: the data are at ptr */
#define	NS_MOREFRAG	0x0020		/* the next slot continues the frame */
/* The number of slots of a received frame. */
#define	NS_RFRAGS(slot)	((slot)->flags >> 8)

/*
 * The user owns slots [head, tail): free slots of a transmit ring, frames of a
 * receive ring.  The user advances head and cur; a sync advances tail.
 */
struct netmap_ring {
	const int64_t	buf_ofs;	/* of buffer 0, from the ring */
	const uint32_t	num_slots;
	const uint32_t	nr_buf_size;	/* bytes */
	const uint16_t	ringid;
	const uint16_t	dir;		/* 0 transmit, 1 receive */
	uint32_t	head;		/* first slot of the user */
	uint32_t	cur;		/* poll(2) wakes when tail passes it */
	uint32_t	tail;		/* first slot of the switch */
	uint32_t	flags;
	struct timeval	ts;
	const uint64_t	offset_mask;
	const uint64_t	buf_align;
	_Alignas(NM_CACHE_ALIGN) uint8_t sem[128];
	struct netmap_slot slot[];
};

struct netmap_if {
	char		ni_name[IFNAMSIZ];
	const uint32_t	ni_version;
	const uint32_t	ni_flags;	/* NI_* */
#define	NI_PRIV_MEM	0x1		/* memory not shared with other ports */
	const uint32_t	ni_tx_rings;
	const uint32_t	ni_rx_rings;
	uint32_t	ni_bufs_head;	/* spare buffers; 0: none */
	const uint32_t	ni_host_tx_rings;
	const uint32_t	ni_host_rx_rings;
	uint32_t	ni_spare1[3];
	/* Offsets from here: transmit, host, receive, host rings. */
	const ssize_t	ring_ofs[];
};

/* Flags of a ring. */
#define	NR_TIMESTAMP	0x0002		/* a sync sets ts */

/*
 * Requests: ioctl(fd, NIOCCTRL, header) of /dev/netmap.  The structures and
 * numbers are FreeBSD's; which requests there are here, lib/libvale says.
 */
#define	NETMAP_REQ_MAXSIZE	4096	/* bytes, with all options */
#define	NETMAP_REQ_IFNAMSIZ	64	/* bytes of a name, with its NUL */

struct nmreq_header {
	uint16_t	nr_version;	/* NETMAP_API */
	uint16_t	nr_reqtype;	/* NETMAP_REQ_* */
	uint32_t	nr_reserved;	/* 0 */
	char		nr_name[NETMAP_REQ_IFNAMSIZ];
	uint64_t	nr_options;	/* address of the first option */
	uint64_t	nr_body;	/* address of what follows */
};

enum {
	NETMAP_REQ_REGISTER = 1,
	NETMAP_REQ_PORT_INFO_GET,
	NETMAP_REQ_VALE_ATTACH,
	NETMAP_REQ_VALE_DETACH,
	NETMAP_REQ_VALE_LIST,
	NETMAP_REQ_PORT_HDR_SET,
	NETMAP_REQ_PORT_HDR_GET,
	NETMAP_REQ_VALE_NEWIF,
	NETMAP_REQ_VALE_DELIF,
	NETMAP_REQ_VALE_POLLING_ENABLE,
	NETMAP_REQ_VALE_POLLING_DISABLE,
	NETMAP_REQ_POOLS_INFO_GET,
	NETMAP_REQ_SYNC_KLOOP_START,
	NETMAP_REQ_SYNC_KLOOP_STOP,
	NETMAP_REQ_CSB_ENABLE,
};

struct nmreq_register {
	uint64_t	nr_offset;	/* of the netmap_if, in the memory */
	uint64_t	nr_memsize;	/* bytes of the memory */
	uint32_t	nr_tx_slots;
	uint32_t	nr_rx_slots;
	uint16_t	nr_tx_rings;
	uint16_t	nr_rx_rings;
	uint16_t	nr_host_tx_rings;
	uint16_t	nr_host_rx_rings;
	uint16_t	nr_mem_id;
	uint16_t	nr_ringid;
	uint32_t	nr_mode;	/* NR_REG_* */
	uint32_t	nr_extra_bufs;
	uint64_t	nr_flags;
#define	NR_MONITOR_TX	0x100
#define	NR_MONITOR_RX	0x200
#define	NR_ZCOPY_MON	0x400
#define	NR_EXCLUSIVE	0x800
#define	NR_RX_RINGS_ONLY 0x2000
#define	NR_TX_RINGS_ONLY 0x4000
#define	NR_ACCEPT_VNET_HDR 0x8000
#define	NR_DO_RX_POLL	0x10000
#define	NR_NO_TX_POLL	0x20000
};

enum {
	NR_REG_DEFAULT	= 0,
	NR_REG_ALL_NIC	= 1,
	NR_REG_SW	= 2,
	NR_REG_NIC_SW	= 3,
	NR_REG_ONE_NIC	= 4,
	NR_REG_PIPE_MASTER = 5,
	NR_REG_PIPE_SLAVE = 6,
	NR_REG_NULL	= 7,
	NR_REG_ONE_SW	= 8,
};

/* The beginning of each option. */
struct nmreq_option {
	uint64_t	nro_next;	/* address of the next, or 0 */
	uint32_t	nro_reqtype;
	uint32_t	nro_status;	/* an errno */
	uint64_t	nro_size;	/* bytes behind this */
};

enum {
	NETMAP_REQ_OPT_EXTMEM = 1,
	NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS,
	NETMAP_REQ_OPT_CSB,
	NETMAP_REQ_OPT_SYNC_KLOOP_MODE,
	NETMAP_REQ_OPT_OFFSETS,
	NETMAP_REQ_OPT_MAX,		/* no option */
};

#define	NIOCCTRL	_IOWR('i', 151, struct nmreq_header)
#define	NIOCTXSYNC	_IO('i', 148)
#define	NIOCRXSYNC	_IO('i', 149)

struct nmreq_port_info_get {
	uint64_t	nr_memsize;
	uint32_t	nr_tx_slots;
	uint32_t	nr_rx_slots;
	uint16_t	nr_tx_rings;
	uint16_t	nr_rx_rings;
	uint16_t	nr_host_tx_rings;
	uint16_t	nr_host_rx_rings;
	uint16_t	nr_mem_id;
	uint16_t	pad[3];
};

struct nmreq_vale_attach {
	struct nmreq_register reg;
	uint32_t	port_index;
	uint32_t	pad1;
};

struct nmreq_vale_detach {
	uint32_t	port_index;
	uint32_t	pad1;
};

struct nmreq_vale_list {
	uint16_t	nr_bridge_idx;
	uint16_t	pad1;
	uint32_t	nr_port_idx;
};

struct nmreq_vale_newif {
	uint32_t	nr_tx_slots;
	uint32_t	nr_rx_slots;
	uint16_t	nr_tx_rings;
	uint16_t	nr_rx_rings;
	uint16_t	nr_mem_id;
	uint16_t	pad1;
};

struct nmreq_port_hdr {
	uint32_t	nr_hdr_len;	/* bytes of the virtio-net header */
	uint32_t	pad1;
};

/*
 * netmap's CSB: how the user of a ring and whoever serves it pass indexes in
 * shared memory.  "a" is the user, "k" who serves.  Each line has one writer,
 * but each side clears the other's need_kick when it kicks.
 */
struct nm_csb_atok {
	uint32_t	head;
	uint32_t	cur;
	uint32_t	appl_need_kick;
	uint32_t	sync_flags;
	uint32_t	pad[12];
};

struct nm_csb_ktoa {
	uint32_t	hwcur;		/* first slot not consumed */
	uint32_t	hwtail;		/* the ring's tail */
	uint32_t	kern_need_kick;
	uint32_t	pad[13];
};

_Static_assert(sizeof(struct nmreq_header) == 88, "nmreq_header");
_Static_assert(sizeof(struct nmreq_register) == 56, "nmreq_register");
_Static_assert(sizeof(struct nmreq_port_info_get) == 32, "nmreq_port_info_get");
_Static_assert(sizeof(struct nmreq_option) == 24, "nmreq_option");
_Static_assert(sizeof(struct nmreq_vale_newif) == 16, "nmreq_vale_newif");
_Static_assert(sizeof(struct nm_csb_atok) == 64, "nm_csb_atok");
_Static_assert(sizeof(struct nm_csb_ktoa) == 64, "nm_csb_ktoa");
_Static_assert(sizeof(struct netmap_slot) == 16, "slot");
_Static_assert(offsetof(struct netmap_slot, len) == 4, "len");
_Static_assert(offsetof(struct netmap_slot, flags) == 6, "flags");
_Static_assert(offsetof(struct netmap_slot, ptr) == 8, "ptr");
_Static_assert(offsetof(struct netmap_ring, num_slots) == 8, "num_slots");
_Static_assert(offsetof(struct netmap_ring, nr_buf_size) == 12, "nr_buf_size");
_Static_assert(offsetof(struct netmap_ring, dir) == 18, "dir");
_Static_assert(offsetof(struct netmap_ring, head) == 20, "head");
_Static_assert(offsetof(struct netmap_ring, cur) == 24, "cur");
_Static_assert(offsetof(struct netmap_ring, tail) == 28, "tail");
_Static_assert(offsetof(struct netmap_ring, flags) == 32, "flags");
_Static_assert(offsetof(struct netmap_ring, ts) == 40, "ts");
_Static_assert(offsetof(struct netmap_ring, offset_mask) == 56, "offset_mask");
_Static_assert(offsetof(struct netmap_ring, sem) == 128, "sem");
_Static_assert(offsetof(struct netmap_ring, slot) == 256, "slot[]");
_Static_assert(offsetof(struct netmap_if, ni_tx_rings) == 24, "ni_tx_rings");
_Static_assert(offsetof(struct netmap_if, ni_bufs_head) == 32, "ni_bufs_head");
_Static_assert(offsetof(struct netmap_if, ring_ofs) == 56, "ring_ofs");

#include <net/netmap_legacy.h>

#endif /* !_NET_NETMAP_H_ */
