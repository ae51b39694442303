/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve and vmm(4) share structures without a version of their own.  The
 * system's bhyve comes with its kernel; this one is installed by itself, and
 * with a kernel that it does not fit would fail at some ioctl(2) later.
 */

#include <sys/param.h>

#ifdef __FreeBSD__
#include <err.h>
#include <sysexits.h>
#include <unistd.h>
#endif

#include "kernel_fit.h"

#define	MAJOR(version)	((version) / 100000)
#define	MINOR(version)	((version) / 1000 % 100)

bool
kernel_fits(int built, int running)
{
	return (running >= built && MAJOR(running) == MAJOR(built));
}

#ifdef __FreeBSD__
/* Check before main(), which is the source tree's, as is what opens vmm(4). */
static void __attribute__((constructor))
check_kernel(void)
{
	int running;

	running = getosreldate();
	if (!kernel_fits(__FreeBSD_version, running))
		errx(EX_OSERR, "built from the sources of FreeBSD %d.%d (%d), "
		    "does not fit vmm(4) of this kernel, %d.%d (%d)",
		    MAJOR(__FreeBSD_version), MINOR(__FreeBSD_version),
		    __FreeBSD_version, MAJOR(running), MINOR(running), running);
}
#endif
