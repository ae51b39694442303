/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Messages of a vfio-user client, for tests and fuzzers. */

#ifndef _VFU_MESSAGE_H_
#define	_VFU_MESSAGE_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vfio_user.h"

/*
 * Build message number `id' in `buf', which has space for its header and `len'
 * bytes of data.  Returns its size in bytes.
 */
static inline size_t
vfu_message(uint8_t *buf, uint16_t id, uint16_t command, uint32_t flags,
    const void *data, size_t len)
{
	const struct vfio_user_header h = { .id = id, .command = command,
	    .size = sizeof(h) + len, .flags = flags };

	memcpy(buf, &h, sizeof(h));
	if (len > 0)
		memcpy(buf + sizeof(h), data, len);
	return (sizeof(h) + len);
}

#endif /* !_VFU_MESSAGE_H_ */
