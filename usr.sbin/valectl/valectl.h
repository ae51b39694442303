/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valectl: the switches of a valed, by its control socket.
 *
 *	valectl.c	the command line; requests about one port or switch
 *	valectl_set.c	settings
 *	valectl_show.c	lists of ports and addresses
 *	valectl_live.c	rates of ports, again and again
 *
 * Each function that shows something prints text for people, or JSON if `json'
 * is set: one value on one line.  A failure ends the program with one line on
 * stderr.
 */

#ifndef _VALECTL_H_
#define	_VALECTL_H_

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "vale_client.h"
#include "vale_find.h"

/* The ports of a switch, or of all if `name' is NULL. */
struct vc_ports {
	struct vale_port_info	*vcp_info;
	size_t			 vcp_n;
};

/* Read them; fails if valed does not answer, or has no switch of this name. */
void	vc_ports_read(const char *name, struct vc_ports *ports);

/* valectl.c: end the program, after a failed connection or request. */
void	vc_fail(void) __attribute__((__noreturn__));
/* Make a request about `name'; a failure ends the program. */
void	vc_request(const char *name, uint16_t type, struct nmreq_header *hdr,
	    struct vale_client_call *call);
/* A decimal number. */
bool	vc_number(const char *s, uint64_t *value);

/* valectl_set.c *//* -o: name, and setting=value. */
void	vc_set(const char *name, const char *assignment);
/* All settings of a port or switch. */
void	vc_show_settings(const char *name, bool json);

/* valectl_show.c */
void	vc_print_json(json_t *value);
void	vc_show_ports(bool json);
/* All counters of a port, or of each port of a switch. */
void	vc_show_counters(const char *name, bool json);
void	vc_show_addrs(const char *name, bool json);

/*
 * valectl_live.c: print rates each `interval_s' seconds, `count' times, or
 * without an end if that is 0.
 */
void	vc_live(const char *name, unsigned int interval_s, unsigned int count,
	    bool json);

#endif /* !_VALECTL_H_ */
