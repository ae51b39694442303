/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "iov.h"

size_t
count_iov(const struct iovec *iov, int niov)
{
	size_t total;
	int i;

	total = 0;
	for (i = 0; i < niov; i++)
		total += iov[i].iov_len;
	return (total);
}

ssize_t
buf_to_iov(const void *buf, size_t len, const struct iovec *iov, int niov,
    size_t seek)
{
	const char *src;
	size_t done, n;
	int i;

	src = buf;
	done = 0;
	for (i = 0; i < niov && done < len; i++) {
		if (seek >= iov[i].iov_len) {
			seek -= iov[i].iov_len;
			continue;
		}
		n = iov[i].iov_len - seek;
		if (n > len - done)
			n = len - done;
		memcpy((char *)iov[i].iov_base + seek, src + done, n);
		done += n;
		seek = 0;
	}
	return (done);
}
