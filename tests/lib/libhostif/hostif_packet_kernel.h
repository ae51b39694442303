/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For tests of the rings of packet(7) of an attached interface, which has no
 * thread: the kernel, the switch and what the thread does.  One thread.
 *
 * hostif_rings_test has what a hostile kernel may write to a slot.
 */

#ifndef _HOSTIF_PACKET_KERNEL_H_
#define	_HOSTIF_PACKET_KERNEL_H_

#include <sys/param.h>
#include <sys/systm.h>

#include <linux/if_packet.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "frame_vnet.h"
#include "hostif_impl.h"
#include "hostif_stub.h"

#define	PACKET_SOCKET	11
#define	RX_SLOTS	510
#define	TX_SLOTS	255
#define	INDIRECT	2048		/* bytes of one */

struct got {				/* a frame that the switch got */
	uint32_t	 len;
	bool		 headed;
	uint8_t		 hdr[FRAME_VNET_LONG];
	uint8_t		*p;
};

extern const char	*fails;		/* the call that fails, with EIO */
extern int		 domain;	/* of the socket */
extern uint32_t		 drops;		/* that PACKET_STATISTICS tells */
extern uint8_t		*memory;	/* both rings */
extern struct got	 got[RING_SLOTS];
extern uint32_t		 ngot;

extern bool		 busy;		/* slots that are taken are not free */
extern uint32_t		 kernel_slot;	/* of the transmit ring: it is next */

/* A slot of a ring: of 68 KB, 15 in each MB. */
struct tpacket2_hdr *slot(bool tx, uint32_t i);

/* Make the memory and the interface; all of the transmit ring is 0xa5. */
void	start(void);
/* The switch has got nothing. */
void	nothing_got(void);
/* A frame of 60 bytes with a number in it. */
void	number(uint8_t *frame, uint32_t n);

#endif /* !_HOSTIF_PACKET_KERNEL_H_ */
