/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Load the kernel that Linux starts when it panics, as kdump does:
 *
 *	crash_kernel kernel initrd command-line
 *
 * The memory for it was reserved by the running kernel's crashkernel=.
 */

#include <sys/syscall.h>

#include <linux/kexec.h>

#include <err.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	int initrd, kernel;

	if (argc != 4)
		errx(2, "usage: crash_kernel kernel initrd command-line");
	kernel = open(argv[1], O_RDONLY);
	if (kernel == -1)
		err(1, "%s", argv[1]);
	initrd = open(argv[2], O_RDONLY);
	if (initrd == -1)
		err(1, "%s", argv[2]);
	if (syscall(SYS_kexec_file_load, kernel, initrd, strlen(argv[3]) + 1,
	    argv[3], (long)KEXEC_FILE_ON_CRASH) == -1)
		err(1, "kexec_file_load");
	return (0);
}
