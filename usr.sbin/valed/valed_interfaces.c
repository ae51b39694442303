/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The interfaces that the configuration attaches: valed_interfaces.h.  The
 * guard opens them, with the privileges of the start, if the configuration has
 * them.  One that is absent is attached as soon as there is an interface of its
 * name.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_names.h"
#include "ctl_owner.h"
#include "hostif.h"
#include "valed_guard.h"
#include "valed_interfaces.h"
#include "valed_why.h"

static struct hostif_config *interfaces;
static unsigned int	ninterfaces;

/* Find the interface of `n' that has the same port and kind, or return NULL. */
static const struct hostif_config *
find(const struct hostif_config *all, unsigned int n,
    const struct hostif_config *hc)
{
	const struct hostif_config *end = all + n;

	for (; all < end; all++)
		if (strcmp(all->hc_port, hc->hc_port) == 0 &&
		    all->hc_kind == hc->hc_kind)
			return (all);
	return (NULL);
}

/*
 * Attach an open interface, unless a program captures what has the port's name.
 * Returns 0, or errno with a line; the descriptors are closed then.
 */
static int
attach_open(const char *port, struct hostif_fds *fds,
    char line[HOSTIF_WHY])
{
	const bool named = ctl_names_hostif(port);
	int error = EBUSY;

	line[0] = '\0';
	if (!ctl_owner_taken(port, false))
		error = hostif_attach(port, fds, line) == 0 ? 0 : errno;
	if (error == 0)
		return (0);
	if (line[0] == '\0')
		snprintf(line, HOSTIF_WHY, "%s: the interface is not "
		    "attached: %s", port, strerror(error));
	hostif_close(fds);
	if (error != EEXIST && named)
		ctl_names_hostif_remove(port);
	return (error);
}

/*
 * Attach an interface, or say why not, unless that is what was said last.
 * valectl(8) may have attached it meanwhile.  Returns whether this call has.
 */
static bool
attach(struct hostif_config *hc, struct valed_why *first)
{
	char line[HOSTIF_WHY];
	struct hostif_fds fds;
	int error = 0;

	if (!valed_guard_open(hc->hc_port, &fds, line))
		error = errno;
	else {
		if (line[0] != '\0')
			valed_warnx(first, "%s: %s", hc->hc_where, line);
		error = attach_open(hc->hc_port, &fds, line);
	}
	/* An interface that is away has been told. */
	if (error == ENXIO && hc->hc_absent)
		return (false);
	hc->hc_absent = error != 0 && error != EEXIST;
	if (hc->hc_absent && strcmp(line, hc->hc_why) != 0)
		valed_warnx(first, "%s: %s", hc->hc_where, line);
	strlcpy(hc->hc_why, hc->hc_absent ? line : "", sizeof(hc->hc_why));
	return (error == 0);
}

void
valed_interfaces_begin(struct valed_options *opt)
{
	interfaces = opt->vo_hostifs;
	ninterfaces = opt->vo_nhostifs;
}

void
valed_interfaces_absent(const char *port, const char *why)
{
	struct hostif_config *hc;

	for (hc = interfaces; hc < interfaces + ninterfaces; hc++)
		if (strcmp(hc->hc_port, port) == 0 && !hc->hc_absent) {
			hc->hc_absent = true;
			strlcpy(hc->hc_why, why, sizeof(hc->hc_why));
		}
}

void
valed_interfaces_again(void)
{
	struct hostif_config *hc;

	for (hc = interfaces; hc < interfaces + ninterfaces; hc++)
		if (hc->hc_absent && attach(hc, NULL))
			valed_warnx(NULL, "%s: the interface is attached",
			    hc->hc_port);
}

bool
valed_interfaces_start(void)
{
	struct hostif_config *hc;
	bool all = true;

	for (hc = interfaces; hc < interfaces + ninterfaces; hc++)
		if (!attach(hc, NULL) && !hc->hc_line)
			all = false;
	return (all);
}

void
valed_interfaces_detach(const struct valed_options *opt)
{
	const struct hostif_config *hc;

	for (hc = interfaces; hc < interfaces + ninterfaces; hc++) {
		if (find(opt->vo_hostifs, opt->vo_nhostifs, hc) != NULL)
			continue;
		ctl_names_hostif_remove(hc->hc_port);
		if (hostif_detach(hc->hc_port) == 0)
			valed_warnx(NULL, "reloaded: %s: the interface is "
			    "detached", hc->hc_port);
	}
}

void
valed_interfaces_attach(struct valed_options *opt, struct valed_why *first)
{
	const struct hostif_config *old;
	struct hostif_config *hc;

	for (hc = opt->vo_hostifs; hc < opt->vo_hostifs + opt->vo_nhostifs;
	    hc++) {
		old = find(interfaces, ninterfaces, hc);
		if ((old == NULL || old->hc_absent) && attach(hc, first))
			valed_warnx(NULL, "reloaded: %s: the interface is "
			    "attached", hc->hc_port);
	}
	free(interfaces);
	valed_interfaces_begin(opt);
	opt->vo_hostifs = NULL;
}
