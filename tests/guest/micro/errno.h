/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The errors that the driver core returns, numbered as in FreeBSD's <errno.h>.
 */

#ifndef _ERRNO_H_
#define	_ERRNO_H_

#define	EIO		5
#define	ENXIO		6
#define	EINVAL		22
#define	ENOTSUP		45
#define	ENOBUFS		55

#endif /* !_ERRNO_H_ */
