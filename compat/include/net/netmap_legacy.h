/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * netmap's requests before NIOCCTRL: one structure for all.  <net/netmap.h>
 * includes this.
 */

#ifndef _NET_NETMAP_LEGACY_H_
#define	_NET_NETMAP_LEGACY_H_

struct nmreq {
	char		nr_name[IFNAMSIZ];
	uint32_t	nr_version;	/* NETMAP_API; set to it on an error */
	uint32_t	nr_offset;	/* of the netmap_if, in the memory */
	uint32_t	nr_memsize;	/* bytes of the memory */
	uint32_t	nr_tx_slots;
	uint32_t	nr_rx_slots;
	uint16_t	nr_tx_rings;
	uint16_t	nr_rx_rings;
	uint16_t	nr_ringid;	/* the ring's number, and */
#define	NETMAP_HW_RING	0x4000		/* only this ring */
#define	NETMAP_SW_RING	0x2000		/* only the host's rings */
#define	NETMAP_RING_MASK 0x0fff
#define	NETMAP_NO_TX_POLL 0x1000	/* NR_NO_TX_POLL */
#define	NETMAP_DO_RX_POLL 0x8000	/* NR_DO_RX_POLL */
	uint16_t	nr_cmd;		/* 0, or: */
#define	NETMAP_BDG_ATTACH 1
#define	NETMAP_BDG_DETACH 2
#define	NETMAP_BDG_LIST	4		/* of NIOCGINFO */
#define	NETMAP_BDG_VNET_HDR 5		/* PORT_HDR_SET */
#define	NETMAP_BDG_NEWIF 6
#define	NETMAP_BDG_DELIF 7
#define	NETMAP_VNET_HDR_GET 12
	uint16_t	nr_arg1;
#define	NETMAP_BDG_HOST	1		/* of NETMAP_BDG_ATTACH */
	uint16_t	nr_arg2;	/* the memory's id */
	uint32_t	nr_arg3;	/* extra buffers */
	uint32_t	nr_flags;	/* NR_REG_*, and nmreq_register's */
#define	NR_REG_MASK	0xf
	uint32_t	spare2[1];
};

#define	NIOCGINFO	_IOWR('i', 145, struct nmreq)
#define	NIOCREGIF	_IOWR('i', 146, struct nmreq)

_Static_assert(sizeof(struct nmreq) == 60, "nmreq");
_Static_assert(offsetof(struct nmreq, nr_ringid) == 40, "nr_ringid");
_Static_assert(offsetof(struct nmreq, nr_flags) == 52, "nr_flags");

#endif /* !_NET_NETMAP_LEGACY_H_ */
