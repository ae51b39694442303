/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The command line, and the files that it names.  One thread.
 */

#ifndef _VALED_OPTIONS_H_
#define	_VALED_OPTIONS_H_

#include <stdbool.h>
#include <string.h>

#include "adapter_config.h"
#include "hostif.h"
#include "libvale.h"
#include "valed_settings.h"
#include "valed_why.h"

struct control_config;

/* An interface of the host: an option -a, or a line.  It points to nothing. */
struct hostif_config {
	char		 hc_port[VALE_NAME_SIZE];	/* "vale0:eth0" */
	char		 hc_where[VALED_WHERE_SIZE];
					/* for messages: "-a " and its port, or
					   "vale0.conf:3" */
	enum hostif_kind hc_kind;
	bool		 hc_line;	/* not an option -a: may be absent */
	bool		 hc_absent;	/* the guard's: it is not attached, or
					   is gone; and why, as it was told */
	char		 hc_why[HOSTIF_WHY];
};

/* Return the interface's name, behind that of the switch. */
static inline const char *
hostif_config_name(const struct hostif_config *hc)
{
	return (strchr(hc->hc_port, ':') + 1);
}

struct valed_options {
	enum {
		VALED_NOTHING,
		VALED_USAGE,		/* -h */
		VALED_VERSION		/* --version */
	}		 vo_tell;	/* that is all */
	bool		 vo_verbose;
	bool		 vo_file;	/* -k */
	bool		 vo_check;	/* -t, -T: that is all, */
	bool		 vo_print;	/* -T: and to print it */
	bool		 vo_supervised;	/* -R */
	unsigned int	 vo_nadapters;
	struct adapter_config *vo_adapters;
	struct control_config *vo_control;	/* or NULL */
	unsigned int	 vo_nhostifs;
	struct hostif_config *vo_hostifs;
	struct valed_settings vo_settings;
};

/* Return whether an adapter, or an attached interface, of *opt has the port. */
static inline bool
valed_options_adapter(const struct valed_options *opt, const char *port)
{
	unsigned int i;

	for (i = 0; i < opt->vo_nadapters; i++)
		if (strcmp(opt->vo_adapters[i].ac_backend, port) == 0)
			return (true);
	return (false);
}

static inline bool
valed_options_hostif(const struct valed_options *opt, const char *port)
{
	unsigned int i;

	for (i = 0; i < opt->vo_nhostifs; i++)
		if (strcmp(opt->vo_hostifs[i].hc_port, port) == 0)
			return (true);
	return (false);
}

/*
 * Parse and check the command line, and the files that it names, before
 * anything is created.  Returns false with *why, whose status is EX_USAGE,
 * EX_CONFIG (a file's contents), EX_NOINPUT (a file) or EX_OSERR (memory).
 * May be called again; *opt is then as the files say now, and the strings of an
 * earlier *opt are gone.  With -t or -T sockets need not be inherited.
 */
bool	valed_options(int argc, char **argv, struct valed_options *opt,
	    struct valed_why *why);

/* Free the lists. */
void	valed_options_free(struct valed_options *opt);

/* Print the usage. */
void	valed_usage(void);

#endif /* !_VALED_OPTIONS_H_ */
