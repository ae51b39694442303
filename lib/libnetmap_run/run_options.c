/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Options of requests, none of which is supported.  netmap_run.h.
 *
 * They are looked at as netmap does, so that a program learns the same of a
 * list that is not valid.  The list is the program's own.
 */

#include <sys/param.h>

#include <errno.h>

#include "netmap_run.h"

/* What a request has space for, with a pointer for each option. */
#define	OPTIONS_MAX	NETMAP_REQ_MAXSIZE

/*
 * Return the bytes of an option besides its header, as the option says.
 * Options of a fixed size say 0; as each may be there once only, they fit.
 */
static uint64_t
option_size(const struct nmreq_option *opt)
{
	return (MAX(opt->nro_size, sizeof(*opt)) - sizeof(*opt));
}

/*
 * Say what is wrong with a list: always -1, with errno.  netmap writes the
 * options back if one of them is wrong, but not if there are too many: the list
 * may have no end.
 */
static int
options_check(struct nmreq_option *first)
{
	struct nmreq_option *opt, *of[NETMAP_REQ_OPT_MAX] = { NULL };
	uint64_t size = 0;

	for (opt = first; opt != NULL;
	    opt = (void *)(uintptr_t)opt->nro_next) {
		size += sizeof(opt->nro_next) + sizeof(*opt);
		if (size > OPTIONS_MAX)
			return (run_fail(EMSGSIZE));
		if (opt->nro_reqtype == 0) {
			opt->nro_status = EINVAL;
			return (run_fail(EINVAL));
		}
		if (opt->nro_reqtype >= NETMAP_REQ_OPT_MAX)
			continue;
		if (of[opt->nro_reqtype] != NULL) {
			opt->nro_status = EINVAL;
			of[opt->nro_reqtype]->nro_status = EINVAL;
			return (run_fail(EINVAL));
		}
		of[opt->nro_reqtype] = opt;
		if (option_size(opt) > OPTIONS_MAX - size)
			return (run_fail(EMSGSIZE));
		size += option_size(opt);
	}
	return (run_fail(EOPNOTSUPP));
}

int
run_options_refuse(const struct nmreq_header *hdr)
{
	struct nmreq_option *opt, *first = (void *)(uintptr_t)hdr->nr_options;

	(void)options_check(first);
	for (opt = first; errno == EOPNOTSUPP && opt != NULL;
	    opt = (void *)(uintptr_t)opt->nro_next)
		opt->nro_status = EOPNOTSUPP;
	return (-1);
}
