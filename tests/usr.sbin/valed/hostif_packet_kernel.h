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

#define	PACKET_SOCKET	11
#define	RX_SLOTS	510
#define	TX_SLOTS	255
#define	RING_SLOTS	1024		/* of the port */
#define	INDIRECT	2048		/* bytes of one */

struct got {				/* a frame that the switch got */
	uint32_t	 len;
	bool		 headed;
	uint8_t		 hdr[FRAME_VNET_LONG];
	uint8_t		*p;
};

extern char		 trace[4096];	/* calls that were made */
extern const char	*fails;		/* the call that fails, with EIO */
extern int		 domain;	/* of the socket */
extern uint32_t		 drops;		/* that PACKET_STATISTICS tells */
extern uint8_t		*memory;	/* both rings */
extern struct got	 got[RING_SLOTS];
extern uint32_t		 ngot;

/* Frames for the interface; the port's ring has their indices. */
extern struct frame	 frames[2 * HOSTIF_BATCH];
extern uint32_t		 nframes;

/* What sendto(2) does: it takes slots, then it fails.  The last is repeated. */
extern struct sends {
	uint32_t	take;
	int		error;		/* 0: none */
}			 sends[8];
extern unsigned int	 nsends, nsent;
extern bool		 busy;		/* slots that are taken are not free */
extern uint32_t		 kernel_slot;	/* of the transmit ring: it is next */

extern struct hostif	 hi;

/* These calls were made since the last time. */
#define	CALLS(expected)							\
	do {								\
		ATF_CHECK_STREQ(expected, trace);			\
		trace[0] = '\0';					\
	} while (0)

/* From now on calls do this; without any, each takes all. */
#define	SENDS(...)							\
	do {								\
		static const struct sends all_[] = { __VA_ARGS__ };	\
									\
		memcpy(sends, all_, sizeof(all_));			\
		nsends = nitems(all_);					\
		nsent = 0;						\
	} while (0)

/* A slot of a ring: of 68 KB, 15 in each MB. */
struct tpacket2_hdr *slot(bool tx, uint32_t i);

/* Make the memory and the interface; all of the transmit ring is 0xa5. */
void	start(void);
/* The switch has got nothing. */
void	nothing_got(void);
/* A frame of 60 bytes with a number in it. */
void	number(uint8_t *frame, uint32_t n);
/* A counter since the last time. */
void	counted(enum hostif_counter c, uint64_t n);
/* No counter has changed since then. */
void	counted_all(void);

#endif /* !_HOSTIF_PACKET_KERNEL_H_ */
