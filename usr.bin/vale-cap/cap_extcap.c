/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See cap_extcap.h.  An answer is a sentence on the standard output, or several
 * lines; a line is a word and values in braces.
 */

#include <pcap/dlt.h>
#include <stddef.h>
#include <stdio.h>

#include "cap_extcap.h"
#include "cap_filter.h"
#include "libvale.h"
#include "vale_version.h"

/* Print a port, whose name has no braces. */
static int
show_port(const struct vale_port_info *port, void *arg __unused)
{
	printf("interface {value=%s}{display=VALE port}\n", port->vpi_name);
	return (0);
}

void
cap_extcap_interfaces(void)
{
	puts("extcap {version=" VALE_VERSION "}{display=vale-cap}");
	(void)vale_list(NULL, show_port, NULL);
}

void
cap_extcap_dlts(void)
{
	printf("dlt {number=%d}{name=EN10MB}{display=Ethernet}\n", DLT_EN10MB);
}

void
cap_extcap_config(void)
{
	fputs("arg {number=0}{call=--direction}{display=Frames}"
	    "{tooltip=What the port gets, what it sends, or both}"
	    "{type=selector}\n"
	    "value {arg=0}{value=inout}{display=both}{default=true}\n"
	    "value {arg=0}{value=in}{display=that the port gets}\n"
	    "value {arg=0}{value=out}{display=that the port sends}\n", stdout);
	printf("arg {number=1}{call=--slots}{display=Slots}"
	    "{tooltip=Frames that wait to be written}"
	    "{type=unsigned}{range=%u,%u}{default=4096}\n", VALE_SLOTS_MIN,
	    VALE_SLOTS_MAX);
}

void
cap_extcap_filter(const char *expression)
{
	char why[256];

	if (cap_filter_compile(expression, why, sizeof(why)) == NULL)
		puts(why);
}
