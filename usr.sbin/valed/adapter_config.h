/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The configuration of an adapter.
 */

#ifndef _ADAPTER_CONFIG_H_
#define	_ADAPTER_CONFIG_H_

#include <sys/types.h>
#include <sys/un.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "e82545.h"

/* Bytes of a socket's path, with its NUL. */
#define	VALED_PATH_SIZE	sizeof(((struct sockaddr_un *)0)->sun_path)
/* Bytes of the name of a backend or an adapter, with its NUL. */
#define	VALED_NAME_SIZE		64
/* Bytes of ac_where, with its NUL. */
#define	VALED_WHERE_SIZE	512

/*
 * One adapter: a -s option, or a node of variables, without the settings of its
 * port (valed_settings.h).  It points to nothing, so that it can be copied, and
 * sent to another process.
 */
enum adapter_device {
	ADAPTER_E1000,		/* 82545EM */
	ADAPTER_E1000E,		/* 82574L */
	ADAPTER_NDEVICES
};

struct adapter_config {
	enum adapter_device ac_device;
	int		ac_bus;
	int		ac_slot;
	int		ac_func;
	char		ac_backend[VALED_NAME_SIZE];	/* "vale0:vm1" */
	char		ac_name[VALED_NAME_SIZE];
					/* "vm1"; see valed.8, COUNTERS */
	char		ac_where[VALED_WHERE_SIZE];
					/* for messages: "vale0.conf:3", that of
					   its backend, or "-s ..."; its
					   beginning, if it is longer */
	char		ac_path[VALED_PATH_SIZE];
					/* "": the socket is inherited */
	int		ac_fd;		/* that socket, or -1 */
	char		ac_control[VALED_PATH_SIZE];
					/* the control socket of the valed that
					   has the switch; "": this one */
	int		ac_opener;	/* with that, to the process that opens
					   the port (valed_opener.h), or -1 */
	uint8_t		ac_mac[6];
	uint32_t	ac_mtu;		/* bytes; 0: no limit */
	uint32_t	ac_itr_256ns;
	uint32_t	ac_itr_min_256ns;
	uint32_t	ac_poll_us;	/* before its thread sleeps */
	uint64_t	ac_mem;		/* bytes a client may share; 0: the
					   default of peer_mem_init() */
	enum e82545_csb_kind ac_csb;
	bool		ac_direct;
	bool		ac_announce;
	int		ac_listen;	/* the listening socket, or -1 */
};

/* Return whether its port is on a switch of another process. */
static inline bool
valed_is_remote(const struct adapter_config *ac)
{
	return (ac->ac_control[0] != '\0');
}

/* Return whether its port is on a switch of this one. */
static inline bool
valed_has_port(const struct adapter_config *ac)
{
	return (strncmp(ac->ac_backend, "vale", 4) == 0 &&
	    !valed_is_remote(ac));
}

/* Return an adapter's place as a number, which no other has. */
static inline unsigned int
valed_place(const struct adapter_config *ac)
{
	return (ac->ac_bus << 8 | ac->ac_slot << 3 | ac->ac_func);
}

/* As many as a PCI bus has: 32 slots with 8 functions. */
#define	VALED_MAXADAPTERS	256
/* The greatest numbers of an adapter's place on the PCI buses. */
#define	VALED_MAXBUS		255
#define	VALED_MAXSLOT		31
#define	VALED_MAXFUNC		7

#endif /* !_ADAPTER_CONFIG_H_ */
