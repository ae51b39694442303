/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The vfio-user protocol on the wire: "vfio-user Protocol Specification",
 * docs/interop/vfio-user.rst of QEMU ("spec" below, with its section titles).
 * All fields are in the byte order of the host.  <linux/vfio.h> defines the
 * flags and indexes that the protocol shares with VFIO.
 */

#ifndef _VFIO_USER_H_
#define	_VFIO_USER_H_

#include <linux/vfio.h>

#include <stdint.h>

/* Spec "VFIO_USER_VERSION": the version of this server. */
#define	VFIO_USER_MAJOR		0
#define	VFIO_USER_MINOR		0

/* Spec "Commands". */
enum vfio_user_command {
	VFIO_USER_VERSION		= 1,
	VFIO_USER_DMA_MAP		= 2,
	VFIO_USER_DMA_UNMAP		= 3,
	VFIO_USER_DEVICE_GET_INFO	= 4,
	VFIO_USER_DEVICE_GET_REGION_INFO = 5,
	VFIO_USER_DEVICE_GET_REGION_IO_FDS = 6,
	VFIO_USER_DEVICE_GET_IRQ_INFO	= 7,
	VFIO_USER_DEVICE_SET_IRQS	= 8,
	VFIO_USER_REGION_READ		= 9,
	VFIO_USER_REGION_WRITE		= 10,
	VFIO_USER_DMA_READ		= 11,
	VFIO_USER_DMA_WRITE		= 12,
	VFIO_USER_DEVICE_RESET		= 13,
	VFIO_USER_REGION_WRITE_MULTI	= 15,
	VFIO_USER_DEVICE_FEATURE	= 16,
	VFIO_USER_MIG_DATA_READ		= 17,
	VFIO_USER_MIG_DATA_WRITE	= 18,
};

/* Spec "Header". */
struct vfio_user_header {
	uint16_t	id;
	uint16_t	command;
	uint32_t	size;		/* of the message with this header */
	uint32_t	flags;
	uint32_t	error;		/* errno, in replies with F_ERROR */
};
_Static_assert(sizeof(struct vfio_user_header) == 16, "Header");

#define	VFIO_USER_F_TYPE	0x0f
#define	VFIO_USER_F_COMMAND	0x00
#define	VFIO_USER_F_REPLY	0x01
#define	VFIO_USER_F_NO_REPLY	0x10
#define	VFIO_USER_F_ERROR	0x20

/* Spec "VFIO_USER_VERSION"; JSON with a terminating NUL follows. */
struct vfio_user_version {
	uint16_t	major;
	uint16_t	minor;
};
_Static_assert(sizeof(struct vfio_user_version) == 4, "VERSION");

/*
 * Spec "VFIO_USER_DMA_MAP"; flags are VFIO_DMA_MAP_FLAG_*, and how the server
 * accesses the file, which only libvfio-user's include/vfio-user.h has: with
 * mmap(2), as without a flag, or with pread(2) and pwrite(2), for files that
 * cannot be mapped.
 */
#define	VFIO_USER_DMA_MAP_MMAP		0x04
#define	VFIO_USER_DMA_MAP_FILE_IO	0x08
struct vfio_user_dma_map {
	uint32_t	argsz;
	uint32_t	flags;
	uint64_t	offset;		/* in the file */
	uint64_t	address;	/* guest-physical */
	uint64_t	size;
};
_Static_assert(sizeof(struct vfio_user_dma_map) == 32, "DMA_MAP");

/* Spec "VFIO_USER_DMA_UNMAP"; QEMU may set VFIO_DMA_UNMAP_FLAG_ALL. */
struct vfio_user_dma_unmap {
	uint32_t	argsz;
	uint32_t	flags;
	uint64_t	address;
	uint64_t	size;
};
_Static_assert(sizeof(struct vfio_user_dma_unmap) == 24, "DMA_UNMAP");

/* Spec "VFIO_USER_DEVICE_GET_INFO"; flags are VFIO_DEVICE_FLAGS_*. */
struct vfio_user_device_info {
	uint32_t	argsz;
	uint32_t	flags;
	uint32_t	num_regions;
	uint32_t	num_irqs;
};
_Static_assert(sizeof(struct vfio_user_device_info) == 16, "GET_INFO");

/* Spec "VFIO_USER_DEVICE_GET_REGION_INFO"; VFIO_REGION_INFO_FLAG_*. */
struct vfio_user_region_info {
	uint32_t	argsz;
	uint32_t	flags;
	uint32_t	index;
	uint32_t	cap_offset;
	uint64_t	size;
	uint64_t	offset;
};
_Static_assert(sizeof(struct vfio_user_region_info) == 32, "GET_REGION_INFO");

/* Spec "VFIO_USER_DEVICE_GET_REGION_IO_FDS"; sub-regions follow. */
struct vfio_user_region_io_fds {
	uint32_t	argsz;
	uint32_t	flags;
	uint32_t	index;
	uint32_t	count;
};
_Static_assert(sizeof(struct vfio_user_region_io_fds) == 16,
    "GET_REGION_IO_FDS");

/* Spec "VFIO_USER_DEVICE_GET_IRQ_INFO"; flags are VFIO_IRQ_INFO_*. */
struct vfio_user_irq_info {
	uint32_t	argsz;
	uint32_t	flags;
	uint32_t	index;
	uint32_t	count;
};
_Static_assert(sizeof(struct vfio_user_irq_info) == 16, "GET_IRQ_INFO");

/* Spec "VFIO_USER_DEVICE_SET_IRQS"; flags are VFIO_IRQ_SET_*. */
struct vfio_user_irq_set {
	uint32_t	argsz;
	uint32_t	flags;
	uint32_t	index;
	uint32_t	start;
	uint32_t	count;
};
_Static_assert(sizeof(struct vfio_user_irq_set) == 20, "SET_IRQS");

/* Spec "VFIO_USER_REGION_READ" and "VFIO_USER_REGION_WRITE"; data follows. */
struct vfio_user_region_rw {
	uint64_t	offset;
	uint32_t	region;
	uint32_t	count;
};
_Static_assert(sizeof(struct vfio_user_region_rw) == 16, "REGION_READ");

/* Spec "VFIO_USER_REGION_WRITE_MULTI"; wr_cnt vfio_user_write_one follow. */
struct vfio_user_write_multi {
	uint64_t	wr_cnt;
};
struct vfio_user_write_one {
	uint64_t	offset;
	uint32_t	region;
	uint32_t	count;
	uint8_t		data[8];
};
_Static_assert(sizeof(struct vfio_user_write_multi) == 8, "WRITE_MULTI");
_Static_assert(sizeof(struct vfio_user_write_one) == 24, "WRITE_MULTI");

/* Writes that QEMU puts into one REGION_WRITE_MULTI, at most. */
#define	VFIO_USER_MULTI_MAX	200

#endif /* !_VFIO_USER_H_ */
