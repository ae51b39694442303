/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The option -c.
 */

#ifndef _VALED_CONTROL_H_
#define	_VALED_CONTROL_H_

#include <stdbool.h>
#include <stdint.h>

#include "adapter_config.h"
#include "ctl.h"
#include "valed_socket.h"

/* The -c option. */
struct control_config {
	char		co_path[VALED_PATH_SIZE];
					/* "": the socket is inherited */
	int		co_fd;		/* that socket, or -1 */
	struct valed_access co_access;
	struct ctl_options co_options;
	int		co_listen;	/* the listening socket, or -1 */
};

/*
 * Parse the -c option.  Returns NULL, or what is wrong, which is valid until
 * the next call.
 */
const char *valed_control_parse(struct control_config *co, const char *option);
/* Parse a size from 1M to 1T.  False if `value' is none. */
bool	valed_size_parse(const char *value, uint64_t *size);

#endif /* !_VALED_CONTROL_H_ */
