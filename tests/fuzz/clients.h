/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Hostile clients of one valed, several at a time: see clients_fuzz.c.
 */

#ifndef _FUZZ_CLIENTS_H_
#define	_FUZZ_CLIENTS_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "adapter_config.h"
#include "ops.h"

#define	CLIENTS		3

/*
 * A client's memory: areas of the same size, so that the address at which valed
 * maps one may become that of another, also of another client's.  The file has
 * a page that is not shared before, between and behind them.
 */
enum area {
	AREA_RINGS,		/* rings and CSB */
	AREA_TX,		/* frames to send */
	AREA_RX,		/* receive buffers: the client does not write */
	AREA_SECRET,		/* shared; no descriptor or register names it */
	AREAS
};
#define	AREA_SIZE	0x40000
#define	AREA_PAGE	0x1000
#define	AREA_OFFSET(a)	(AREA_PAGE + (a) * (AREA_SIZE + AREA_PAGE))
#define	MEMORY_SIZE	AREA_OFFSET(AREAS)

/* The layout of AREA_RINGS. */
#define	RINGS_TX	0x1000
#define	RINGS_TX_DESCS	1024
#define	RINGS_RX	0x10000
#define	RINGS_RX_DESCS	4096
#define	RINGS_CSB	0x30000

struct client {
	unsigned int	 n;			/* 0 to CLIENTS - 1 */
	struct adapter_config config;
	char		 name[8];
	struct adapter	*ad;
	struct sockaddr_un sun;
	socklen_t	 sunlen;
	int		 memfd;
	uint8_t		*mem;			/* MEMORY_SIZE */
	int		 event_fd, unmask_fd;
	uint64_t	 seed;			/* of this round */
	uint32_t	 stop;			/* the writers end; atomic */
	uint32_t	 frame_punches;		/* holes in AREA_TX; atomic */

	/* The thread that sends messages. */
	struct rng	 rng;
	int		 s;			/* its socket, or -1 */
	uint16_t	 id;
	uint32_t	 mapped;		/* areas, 1 << enum area */
	unsigned int	 messages;
	unsigned int	 connects;
	unsigned int	 changes;		/* of the table of memory */
	unsigned int	 checks;		/* that memory stays as it is */
	unsigned int	 punches;		/* holes in the other areas */
};

/* The guest-physical address of an area. */
uint64_t client_gpa(enum area area);

/*
 * Make the memory, which is `n's, and fill it.
 */
void	client_init(struct client *c, unsigned int n);

/* Send about `messages' messages, while other threads write to the memory. */
void	client_run(struct client *c, unsigned int messages);

/*
 * Abort if memory has changed that nobody may write to, or has what only
 * another client's secret area has.
 */
void	client_check(const struct client *c);

/* Two correct clients: a frame that one sends reaches the other. */
void	clients_work(struct client *from, struct client *to);

#endif /* !_FUZZ_CLIENTS_H_ */
