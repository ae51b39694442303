/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valectl: the switches of a valed, by its control socket.
 *
 *	valectl.c	the command line; requests about one port or switch
 *	valectl_save.c	writes settings to a configuration file
 *	valectl_set.c	settings
 *	valectl_show.c	lists of ports and addresses
 *	valectl_table.c	the table of ports
 *	valectl_device.c	adapters and attached interfaces
 *	valectl_live.c	rates of ports, again and again
 *	valectl_events.c	what happens, again and again
 *	valectl_metrics.c	all counters, for Prometheus
 *	valectl_http.c	a reply to Prometheus's server
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
#include <stdio.h>

#include "vale_client.h"
#include "vale_find.h"

/* The ports of a switch, or of all if `name' is NULL. */
struct vc_ports {
	struct vale_port_info	*vcp_info;
	size_t			 vcp_n;
};

/* Read them; fails if valed does not answer, or has no switch of this name. */
void	vc_ports_read(const char *name, struct vc_ports *ports);

/* Read them; returns -1 if valed does not answer. */
int	vc_ports_get(const char *name, struct vc_ports *ports);

/* Return the port of this name, or NULL. */
const struct vale_port_info *vc_ports_find(const struct vc_ports *ports,
	    const char *name);

/* Adapters and attached interfaces. */
struct vc_devices {
	struct vale_wire_device	*vcd_device;
	size_t			 vcd_n;
};

/* The ports and devices of a valed at a time. */
struct vc_state {
	struct vc_ports		 vcs_ports;
	struct vc_devices	 vcs_devices;
};

/*
 * Read the ports and devices into *st.  Returns 0, or -1 with errno and nothing
 * to free if valed does not answer.  vc_state_free() frees what was read.
 */
int	vc_state_get(struct vc_state *st);
void	vc_state_free(struct vc_state *st);

/* End the program, after a failed connection or request.  valectl.c. */
void	vc_fail(void) __attribute__((__noreturn__));
/*
 * Return whether to try again after a failure, errno, of a program that goes on
 * while valed is restarted: valed has ended before its answer, and the next
 * connection waits for the process that follows.  *tries is 0 at first.
 */
bool	vc_again(unsigned int *tries);
/* Parse a decimal number. */
bool	vc_number(const char *s, uint64_t *value);

/* valectl_set.c */
/* Set all at once those of `n' arguments that are setting=value: -o. */
void	vc_set(const char *name, char *const arg[], unsigned int n);
/* Show all settings of a port or switch, or one of them. */
void	vc_show_settings(const char *name, const char *setting, bool json);

/*
 * Write settings that are in force, and that a configuration file does not
 * have, to that file; prints the lines.  valectl_save.c.
 */
void	vc_save(const char *path);

/* valectl_show.c */
void	vc_print_json(json_t *value);
/* Show the place of each port, as FreeBSD's valectl(8) prints it. */
void	vc_show_ports(bool json);
/*
 * Return the counters of one of the ports, or of all if `port' is NULL; without
 * `json' they are printed, too.
 */
json_t	*vc_print_counters(const struct vc_ports *ports, const char *port,
	    bool json);
/* Show all counters of a port, or of each port of a switch. */
void	vc_show_counters(const char *name, bool json);
void	vc_show_addrs(const char *name, bool json);

/* valectl_device.c */
#define	VC_ADDRESS_SIZE	18
void	vc_address(const uint8_t addr[6], char text[VC_ADDRESS_SIZE]);
/* Return "adapter" or "interface". */
const char *vc_device_kind(const struct vale_wire_device *wd);
/* Show the counters and state of everything. */
void	vc_show_all(bool json);

/*
 * Write all counters to `f', in the text format of OpenMetrics or in the older
 * one of Prometheus.  0, or -1 with errno if valed does not answer.
 * valectl_metrics.c.
 */
int	vc_metrics(FILE *f, bool openmetrics);
/* Write all counters to stdout; a failure ends the program. */
void	vc_show_metrics(bool openmetrics);

/*
 * Read a request from stdin, and reply to stdout.  The time is limited, also for
 * a client that neither sends nor reads.  valectl_http.c.
 */
void	vc_http(void);

/* Show what each port is, and does.  valectl_table.c. */
void	vc_show_table(void);

/* Print what happens, without an end.  valectl_events.c. */
void	vc_events(void) __attribute__((__noreturn__));

/* Return how many frames of a port were dropped.  valectl_live.c. */
uint64_t vc_drops(const uint64_t counter[VALE_NCOUNTERS]);

/*
 * Print rates each `interval_s' seconds, `count' times, or
 * without an end if that is 0.
 */
void	vc_live(const char *name, unsigned int interval_s, unsigned int count,
	    bool json);

#endif /* !_VALECTL_H_ */
