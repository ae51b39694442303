/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For hostif_open_test: the kernel, whose descriptors are 100 and following.
 * One thread.
 *
 * In the calls integers are decimal, and other values are bytes.  Families:
 * 2 INET, 16 NETLINK, 17 PACKET, 44 XDP.  Options: 1 SOL_SOCKET,
 * 263 SOL_PACKET, 270 SOL_NETLINK, 283 SOL_XDP.
 */

#ifndef _HOSTIF_OPEN_KERNEL_H_
#define	_HOSTIF_OPEN_KERNEL_H_

#include <sys/types.h>
#include <sys/socket.h>

#include <linux/ethtool.h>
#include <linux/netlink.h>

#include <stdbool.h>
#include <stdint.h>

#define	POLL_MS		20
#define	CALLS_MAX	6000		/* opening one takes 4,100 */

extern char		 calls[CALLS_MAX][640];
extern unsigned int	 ncalls;
extern unsigned int	 fail_call;	/* it fails with EIO */
extern unsigned int	 nopened;	/* descriptors */
extern bool		 is_open[32];

/* What it says. */
extern int		 hw_type;
extern short		 if_flags;
extern int		 mtu;
extern struct ethtool_channels channels;
extern uint32_t		 offloads;
extern bool		 no_ethtool, no_bpf;
extern unsigned int	 busy;		/* times that bind() fails so */
extern unsigned int	 mapped;	/* times that a ring cannot be changed */
extern unsigned int	 npolls;	/* each of them takes POLL_MS */
extern _Alignas(NLMSG_ALIGNTO) uint8_t answer[256];	/* about the family */
extern ssize_t		 answer_len;
extern struct sockaddr_nl answer_from;
extern socklen_t	 answer_fromlen;
extern _Alignas(NLMSG_ALIGNTO) uint8_t acks[2][64];	/* of nf_tables */
extern ssize_t		 ack_len[2];
extern unsigned int	 nacks;

/* Descriptors that are open. */
unsigned int left_open(void);

#endif /* !_HOSTIF_OPEN_KERNEL_H_ */
