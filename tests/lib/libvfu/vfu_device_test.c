/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Each command of the vfio-user protocol: which arguments are valid, what the
 * model is asked to do, and the reply, byte by byte.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "vfu_stub.h"
#include "test.h"

#define	BAR0		VFIO_PCI_BAR0_REGION_INDEX
#define	BAR5		VFIO_PCI_BAR5_REGION_INDEX
#define	CONFIG		VFIO_PCI_CONFIG_REGION_INDEX
#define	BAR0_SIZE	STUB_BAR0_SIZE
#define	BAR5_SIZE	STUB_BAR5_SIZE
#define	PAGE		4096
#define	RW		(VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)
#define	FILL		0xa5

static uint8_t	reply[VFU_REPLY_MAX - sizeof(struct vfio_user_header)];
static size_t	reply_len;

/* Have a command executed whose payload is `data', then `more'. */
static int
command_fds(unsigned int command, const void *data, size_t len,
    const void *more, size_t more_len, int *fds, int nfds)
{
	struct vfio_user_header h = { .command = command };
	struct vfu_request req;
	uint8_t *payload;
	size_t i;
	int error;

	payload = malloc(len + more_len + 1);
	ATF_REQUIRE(payload != NULL);
	if (len != 0)
		memcpy(payload, data, len);
	if (more_len != 0)
		memcpy(payload + len, more, more_len);
	h.size = sizeof(h) + len + more_len;
	memset(&req, 0, sizeof(req));
	req.header = &h;
	req.data = payload;
	req.len = len + more_len;
	req.fds = fds;
	req.nfds = nfds;
	req.reply = reply;
	memset(reply, FILL, sizeof(reply));
	error = vfu_command(&dev, &req);
	free(payload);
	reply_len = req.reply_len;
	if (error == 0)
		for (i = reply_len; i < sizeof(reply); i++)
			ATF_REQUIRE_EQ(FILL, reply[i]);
	return (error);
}

static int
command(unsigned int cmd, const void *data, size_t len)
{
	return (command_fds(cmd, data, len, NULL, 0, NULL, 0));
}

static void
check_reply(const void *data, size_t len)
{
	ATF_CHECK_EQ_MSG(len, reply_len, "%zu, not %zu", reply_len, len);
	ATF_CHECK_EQ(0, memcmp(reply, data, len));
}

/*
 * As libvfio-user has it: handle_request() and what it calls.  SPDK's client
 * sends as much of GET_REGION_INFO as it wants to receive.
 */
TEST(lengths, "A payload has at least its command's length")
{
	static const struct {
		int command;
		size_t len;
	} cmds[] = {
		{ VFIO_USER_DMA_MAP, 32 },
		{ VFIO_USER_DMA_UNMAP, 24 },
		{ VFIO_USER_DEVICE_GET_INFO, 16 },
		{ VFIO_USER_DEVICE_GET_REGION_INFO, 32 },
		{ VFIO_USER_DEVICE_GET_REGION_IO_FDS, 16 },
		{ VFIO_USER_DEVICE_GET_IRQ_INFO, 16 },
		{ VFIO_USER_DEVICE_SET_IRQS, 20 },
		{ VFIO_USER_REGION_READ, 16 },
		{ VFIO_USER_REGION_WRITE, 16 },
		{ VFIO_USER_DEVICE_RESET, 0 },
		{ VFIO_USER_REGION_WRITE_MULTI, 8 },
	};
	static const int infos[] = { VFIO_USER_DEVICE_GET_INFO,
	    VFIO_USER_DEVICE_GET_REGION_INFO, VFIO_USER_DEVICE_GET_IRQ_INFO };
	const struct vfio_user_region_rw rw = { .region = CONFIG, .count = 4 };
	const struct vfio_user_dma_map m = { 32, RW, 0, 0x10000, PAGE };
	const struct vfio_user_dma_unmap u = { 24, 0, 0x10000, PAGE };
	uint8_t data[4096] = { 0 }, want[64];
	unsigned int i;
	size_t n;

	stub_start(-1);
	for (i = 0; i < nitems(cmds); i++) {
		if (cmds[i].len > 0)
			ATF_CHECK_EQ(EINVAL, command(cmds[i].command, data,
			    cmds[i].len - 1));
		ATF_CHECK_STREQ("", stub_calls());
		ATF_CHECK_EQ(0, reply_len);
	}
	/* The client has space for the reply. */
	for (i = 0; i < nitems(infos); i++)
		ATF_CHECK_EQ(EINVAL, command(infos[i], data, sizeof(data)));
	/* What follows changes nothing. */
	memset(data, 0xff, sizeof(data));
	for (n = 1; n < sizeof(data); n = 2 * n + 1) {
		for (i = 0; i < nitems(infos); i++) {
			const struct vfio_user_region_info info = {
			    .argsz = 4096 };
			const size_t len = cmds[2 + i + (i == 2)].len;

			ATF_REQUIRE_EQ(0, command(infos[i], &info, len));
			ATF_REQUIRE_EQ(len, reply_len);
			memcpy(want, reply, len);
			ATF_CHECK_EQ(0, command_fds(infos[i], &info, len, data,
			    n, NULL, 0));
			check_reply(want, len);
		}
		ATF_REQUIRE_EQ(0, command(VFIO_USER_REGION_READ, &rw,
		    sizeof(rw)));
		memcpy(want, reply, reply_len);
		ATF_CHECK_EQ(0, command_fds(VFIO_USER_REGION_READ, &rw,
		    sizeof(rw), data, n, NULL, 0));
		check_reply(want, sizeof(rw) + 4);
		ATF_CHECK_EQ(0, command_fds(VFIO_USER_DMA_MAP, &m, sizeof(m),
		    data, n, NULL, 0));
		ATF_CHECK_EQ(0, command_fds(VFIO_USER_DMA_UNMAP, &u, sizeof(u),
		    data, n, NULL, 0));
		check_reply(&u, sizeof(u));
		ATF_CHECK_EQ(0, dev.vdev_mem.n);
		(void)stub_calls();
		ATF_CHECK_EQ(0, command(VFIO_USER_DEVICE_RESET, data, n));
		ATF_CHECK_STREQ("reset;", stub_calls());
	}
	ATF_CHECK_EQ(0, command(VFIO_USER_DEVICE_RESET, NULL, 0));
	ATF_CHECK_STREQ("reset;", stub_calls());
	ATF_CHECK_EQ(0, reply_len);
	/* Not for a server, or not again. */
	ATF_CHECK_EQ(EINVAL, command(VFIO_USER_VERSION, data, 0));
	ATF_CHECK_EQ(EINVAL, command(VFIO_USER_VERSION, data, 20));
	ATF_CHECK_EQ(EINVAL, command(VFIO_USER_DMA_READ, data, 16));
	ATF_CHECK_EQ(EINVAL, command(VFIO_USER_DMA_WRITE, data, 16));
	/* Not supported, or unknown, whatever the length. */
	ATF_CHECK_EQ(ENOTSUP, command(VFIO_USER_DEVICE_GET_REGION_IO_FDS, data,
	    16));
	for (i = 0; i < 70; i++) {
		ATF_CHECK_EQ(ENOTSUP, command(0, data, i));
		ATF_CHECK_EQ(ENOTSUP, command(14, data, i));
		ATF_CHECK_EQ(ENOTSUP, command(VFIO_USER_DEVICE_FEATURE, data,
		    i));
		ATF_CHECK_EQ(ENOTSUP, command(17 + i, data, i));
	}
	ATF_CHECK_EQ(ENOTSUP, command(0xffff, data, 0));
	ATF_CHECK_STREQ("", stub_calls());
}

TEST(regions, "Two BARs and the configuration space can be read and written")
{
	struct vfio_user_region_info info, want;
	uint32_t i;

	stub_start(-1);
	for (i = 0; i < VFIO_PCI_NUM_REGIONS; i++) {
		memset(&info, 0xff, sizeof(info));
		info.argsz = sizeof(info) - 1;
		info.index = i;
		ATF_CHECK_EQ(EINVAL, command(VFIO_USER_DEVICE_GET_REGION_INFO,
		    &info, sizeof(info)));
		info.argsz = sizeof(info) + i;
		ATF_CHECK_EQ(0, command(VFIO_USER_DEVICE_GET_REGION_INFO,
		    &info, sizeof(info)));
		memset(&want, 0, sizeof(want));
		want.argsz = sizeof(want);
		want.index = i;
		want.size = i == BAR0 ? BAR0_SIZE : i == BAR5 ? BAR5_SIZE :
		    i == CONFIG ? 256 : 0;
		if (want.size != 0)
			want.flags = VFIO_REGION_INFO_FLAG_READ |
			    VFIO_REGION_INFO_FLAG_WRITE;
		check_reply(&want, sizeof(want));
	}
	info.argsz = sizeof(info);
	for (i = VFIO_PCI_NUM_REGIONS; i < VFIO_PCI_NUM_REGIONS + 2; i++) {
		info.index = i;
		ATF_CHECK_EQ(EINVAL, command(VFIO_USER_DEVICE_GET_REGION_INFO,
		    &info, sizeof(info)));
	}
}

static int
map(uint32_t argsz, uint32_t flags, uint64_t offset, uint64_t address,
    uint64_t size, int *fds, int nfds)
{
	const struct vfio_user_dma_map m = { argsz, flags, offset, address,
	    size };
	int error, i, own[2];

	for (i = 0; i < nfds; i++)
		own[i] = dup(fds[i]);
	error = command_fds(VFIO_USER_DMA_MAP, &m, sizeof(m), NULL, 0, own,
	    nfds);
	/* The command has closed its file. */
	for (i = 0; i < nfds; i++) {
		ATF_CHECK_EQ(error == 0, own[i] == -1);
		if (own[i] != -1)
			close(own[i]);
	}
	return (error);
}

TEST(dma_map, "A range is mapped with its file, offset, address and access")
{
	int fd, fds[2];
	char *p;

	stub_start(-1);
	fd = stub_memory(4 * PAGE);
	ATF_REQUIRE_EQ(1, pwrite(fd, "x", 1, 3 * PAGE));
	fds[0] = fds[1] = fd;
	/* Both accesses: the adapter has it. */
	ATF_CHECK_EQ(0, map(32, RW, 2 * PAGE, 0x100000, 2 * PAGE, fds, 1));
	ATF_CHECK_EQ(0, reply_len);
	ATF_CHECK_STREQ("pause;resume;", stub_calls());
	p = peer_mem_addr(&dev.vdev_mem, 0x100000 + PAGE, PAGE, RW);
	ATF_REQUIRE(p != NULL);
	ATF_CHECK_EQ('x', *p);
	/* One access, or none, for want of a file. */
	ATF_CHECK_EQ(0, map(32, VFIO_DMA_MAP_FLAG_READ, 0, 0x200000, PAGE, fds,
	    1));
	ATF_CHECK_EQ(0, map(33, VFIO_DMA_MAP_FLAG_WRITE, 0, 0x300000, PAGE, fds,
	    1));
	ATF_CHECK_EQ(0, map(UINT32_MAX, RW, 0, 0x400000, PAGE, NULL, 0));
	ATF_CHECK_EQ(4, dev.vdev_mem.n);
	ATF_CHECK(peer_mem_addr(&dev.vdev_mem, 0x200000, 1, PROT_READ) != NULL);
	ATF_CHECK_EQ(NULL, peer_mem_addr(&dev.vdev_mem, 0x200000, 1,
	    PROT_WRITE));
	ATF_CHECK(peer_mem_addr(&dev.vdev_mem, 0x300000, 1,
	    PROT_WRITE) != NULL);
	ATF_CHECK_EQ(NULL, peer_mem_addr(&dev.vdev_mem, 0x300000, 1,
	    PROT_READ));
	ATF_CHECK_EQ(NULL, peer_mem_addr(&dev.vdev_mem, 0x400000, 1,
	    PROT_READ));
	ATF_CHECK_EQ(4 * PAGE, dev.vdev_mem.mapped);
	ATF_CHECK_EQ(4, stub_count(VFU_C_DMA_MAP));
	(void)stub_calls();
	ATF_CHECK_EQ(EINVAL, map(31, RW, 0, 0x500000, PAGE, fds, 1));
	ATF_CHECK_EQ(EINVAL, map(32, 0, 0, 0x500000, PAGE, fds, 1));
	ATF_CHECK_EQ(EINVAL, map(32, RW | 0x10, 0, 0x500000, PAGE, fds, 1));
	ATF_CHECK_EQ(EINVAL, map(32, 0x80000000, 0, 0x500000, PAGE, fds, 1));
	ATF_CHECK_EQ(EINVAL, map(32, RW, 0, 0x500000, PAGE, fds, 2));
	ATF_CHECK_STREQ("", stub_calls());
	/* The table's own reasons are logged. */
	ATF_CHECK_EQ(EEXIST, map(32, RW, 0, 0x101000, PAGE, fds, 1));
	ATF_CHECK_STREQ("log 4: memory at 0x101000, size 0x1000, refused: "
	    "range overlaps another;", stub_calls());
	ATF_CHECK_EQ(EINVAL, map(32, RW, 0, 0x500000, PAGE + 1, fds, 1));
	ATF_CHECK_EQ(0, stub_count(VFU_C_DMA_MAP));
	ATF_CHECK_EQ(2, stub_count(VFU_C_DMA_REFUSED));
	/* The third line is the last, as a client may go on with thousands. */
	(void)stub_calls();
	ATF_CHECK_EQ(EEXIST, map(32, RW, 0, 0x102000 - PAGE, PAGE, fds, 1));
	ATF_CHECK_STREQ("log 4: memory at 0x101000, size 0x1000, refused: "
	    "range overlaps another; no more of this client is logged;",
	    stub_calls());
	ATF_CHECK_EQ(EEXIST, map(32, RW, 0, 0x101000, PAGE, fds, 1));
	ATF_CHECK_STREQ("", stub_calls());
	ATF_CHECK_EQ(2, stub_count(VFU_C_DMA_REFUSED));
	ATF_CHECK_EQ(4, dev.vdev_mem.n);
}

/*
 * As libvfio-user's handle_dma_map(): MMAP asks for a file, and for what is
 * done without it; FILE_IO says that the file has no mmap(2).
 */
TEST(dma_map_access, "A range says how its file is accessed; it must be by "
    "mmap")
{
	const uint32_t mmap_it = 4, file_io = 8, none = 0;
	int fd, fds[2];
	uint32_t bit;

	stub_start(-1);
	fd = stub_memory(4 * PAGE);
	fds[0] = fds[1] = fd;
	ATF_CHECK_EQ(0, map(32, RW | mmap_it, 0, 0, PAGE, fds, 1));
	ATF_CHECK_EQ(0, map(32, VFIO_DMA_MAP_FLAG_READ | mmap_it, 0, 0x10000,
	    PAGE, fds, 1));
	ATF_CHECK(peer_mem_addr(&dev.vdev_mem, 0, PAGE, RW) != NULL);
	ATF_CHECK(peer_mem_addr(&dev.vdev_mem, 0x10000, 1, PROT_READ) != NULL);
	ATF_CHECK_EQ(NULL, peer_mem_addr(&dev.vdev_mem, 0x10000, 1,
	    PROT_WRITE));
	ATF_CHECK_EQ(EINVAL, map(32, RW | mmap_it, 0, 0x20000, PAGE, NULL, 0));
	ATF_CHECK_EQ(EINVAL, map(32, RW | mmap_it, 0, 0x20000, PAGE, fds, 2));
	ATF_CHECK_EQ(EINVAL, map(32, none | mmap_it, 0, 0x20000, PAGE, fds, 1));
	ATF_CHECK_EQ(EINVAL, map(32, none | file_io, 0, 0x20000, PAGE, fds, 1));
	(void)stub_calls();
	ATF_CHECK_EQ(EOPNOTSUPP, map(32, RW | file_io, 0, 0x20000, PAGE, fds,
	    1));
	ATF_CHECK_STREQ("log 4: memory at 0x20000, size 0x1000, refused: its "
	    "file cannot be mapped;", stub_calls());
	ATF_CHECK_EQ(EOPNOTSUPP, map(32, RW | mmap_it | file_io, 0, 0x20000,
	    PAGE, fds, 1));
	ATF_CHECK_EQ(2, stub_count(VFU_C_DMA_REFUSED));
	for (bit = 0x10; bit != 0; bit <<= 1)
		ATF_CHECK_EQ(EINVAL, map(32, RW | bit, 0, 0x20000, PAGE, fds,
		    1));
	ATF_CHECK_EQ(2, dev.vdev_mem.n);
}

static int
unmap(uint32_t argsz, uint32_t flags, uint64_t address, uint64_t size)
{
	const struct vfio_user_dma_unmap u = { argsz, flags, address, size };
	int error;

	error = command(VFIO_USER_DMA_UNMAP, &u, sizeof(u));
	if (error == 0)
		check_reply(&u, sizeof(u));
	else
		ATF_CHECK_EQ(0, reply_len);
	return (error);
}

TEST(dma_unmap, "A range is unmapped, or all of them")
{
	const uint32_t all = VFIO_DMA_UNMAP_FLAG_ALL;
	int i;

	stub_start(-1);
	for (i = 1; i < 5; i++)
		ATF_REQUIRE_EQ(0, map(32, RW, 0, i * 0x100000, PAGE, NULL, 0));
	ATF_CHECK_EQ(EINVAL, unmap(23, 0, 0x100000, PAGE));
	ATF_CHECK_EQ(EINVAL, unmap(24, 0, 0x100000, PAGE / 2));
	ATF_CHECK_EQ(EINVAL, unmap(24, 0, 0x100000 + PAGE / 2, PAGE));
	ATF_CHECK_EQ(ENOENT, unmap(24, 0, 0x180000, PAGE));
	ATF_CHECK_EQ(EINVAL, unmap(24, 0, 0, 0));
	ATF_CHECK_EQ(EINVAL, unmap(24, 1, 0x100000, PAGE));
	ATF_CHECK_EQ(EINVAL, unmap(24, all, 0x100000, PAGE));
	ATF_CHECK_EQ(EINVAL, unmap(24, all, 0x100000, 0));
	ATF_CHECK_EQ(EINVAL, unmap(24, all, 0, PAGE));
	ATF_CHECK_EQ(EINVAL, unmap(24, all | 1, 0, 0));
	ATF_CHECK_EQ(4, dev.vdev_mem.n);
	ATF_CHECK_EQ(0, stub_count(VFU_C_DMA_UNMAP));
	ATF_CHECK_EQ(0, unmap(24, 0, 0x100000, PAGE));
	ATF_CHECK_EQ(0, unmap(25, 0, 0x300000, PAGE));
	ATF_CHECK_EQ(2, dev.vdev_mem.n);
	ATF_CHECK_EQ(0, unmap(24, all, 0, 0));
	ATF_CHECK_EQ(0, dev.vdev_mem.n);
	ATF_CHECK_EQ(0, unmap(24, all, 0, 0));
	ATF_CHECK_EQ(4, stub_count(VFU_C_DMA_UNMAP));
}

static int
region_read(uint32_t region, uint64_t offset, uint32_t count)
{
	const struct vfio_user_region_rw rw = { offset, region, count };
	int error;

	error = command(VFIO_USER_REGION_READ, &rw, sizeof(rw));
	if (error == 0) {
		ATF_CHECK_EQ(sizeof(rw) + count, reply_len);
		ATF_CHECK_EQ(0, memcmp(&rw, reply, sizeof(rw)));
	} else
		ATF_CHECK_EQ(0, reply_len);
	return (error);
}

static int
region_write(uint32_t region, uint64_t offset, uint32_t count,
    const void *data, size_t len)
{
	const struct vfio_user_region_rw rw = { offset, region, count };
	int error;

	error = command_fds(VFIO_USER_REGION_WRITE, &rw, sizeof(rw), data, len,
	    NULL, 0);
	if (error == 0)
		check_reply(&rw, sizeof(rw));
	else
		ATF_CHECK_EQ(0, reply_len);
	return (error);
}

/*
 * [offset, offset + count) can be read and written, with one access of that
 * size, or neither.
 */
static void
check_access(uint32_t region, uint64_t offset, uint32_t count, bool ok)
{
	static const uint8_t data[8] = { 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6,
	    0xf7, 0xf8 };
	uint8_t buf[512] = { 0 };
	char text[128];
	uint64_t value;

	ATF_REQUIRE(count <= sizeof(buf));
	memcpy(buf, data, MIN(count, sizeof(data)));
	stub_value = 0xc8c7c6c5c4c3c2c1;
	ATF_CHECK_EQ_MSG(ok ? 0 : EINVAL, region_read(region, offset, count),
	    "region %u, offset %#jx, count %u", region, (uintmax_t)offset,
	    count);
	text[0] = '\0';
	if (region == CONFIG) {
		ATF_CHECK_STREQ("", stub_calls());
		ATF_CHECK_EQ(ok ? 0 : EINVAL, region_write(region, offset,
		    count, buf, count));
		(void)stub_calls();	/* vfu_pci_test.c and config */
		return;
	}
	if (ok) {
		ATF_CHECK_EQ(0, memcmp(&stub_value, reply +
		    sizeof(struct vfio_user_region_rw), count));
		sprintf(text, "read %u+%#jx,%u;", region, (uintmax_t)offset,
		    count);
	}
	ATF_CHECK_STREQ(text, stub_calls());
	ATF_CHECK_EQ_MSG(ok ? 0 : EINVAL, region_write(region, offset, count,
	    buf, count), "region %u, offset %#jx, count %u", region,
	    (uintmax_t)offset, count);
	if (ok) {
		value = 0;
		memcpy(&value, data, count);
		sprintf(text, "write %u+%#jx,%u=%#jx;", region,
		    (uintmax_t)offset, count, (uintmax_t)value);
	}
	ATF_CHECK_STREQ(text, stub_calls());
}

TEST(access, "Registers are accessed inside their BAR, with 1, 2, 4 or 8 bytes")
{
	uint32_t count, region;
	uint64_t size;

	stub_start(-1);
	for (region = 0; region < 12; region++) {
		size = region == BAR0 ? BAR0_SIZE : region == BAR5 ? BAR5_SIZE :
		    region == CONFIG ? 256 : 0;
		for (count = 0; count <= 17; count++) {
			bool ok = size >= count && count != 0 &&
			    (region == CONFIG || count == 1 || count == 2 ||
			    count == 4 || count == 8);

			check_access(region, 0, count, ok);
			check_access(region, size - count, count, ok);
			check_access(region, size - count + 1, count, false);
			check_access(region, size, count, false);
			check_access(region, -(uint64_t)count, count, false);
			check_access(region, 1ULL << 32, count, false);
			check_access(region, UINT64_MAX, count, false);
		}
	}
	check_access(UINT32_MAX, 0, 4, false);
	check_access(CONFIG, 0, 256, true);
	check_access(CONFIG, 0, 257, false);
	check_access(BAR0, 0x5816, 1, true);
	check_access(BAR0, 0, 256, false);
	/* Never more than there is space for in a reply. */
	ATF_CHECK_EQ(EINVAL, region_read(BAR0, 0, VFU_XFER_MAX));
	ATF_CHECK_EQ(EINVAL, region_read(BAR0, 0, BAR0_SIZE));
	ATF_CHECK_EQ(EINVAL, region_read(CONFIG, 0, UINT32_MAX));
}

TEST(write_length, "A write has as much data as it says")
{
	const uint8_t data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	stub_start(-1);
	ATF_CHECK_EQ(EINVAL, region_write(BAR0, 0, 4, data, 3));
	ATF_CHECK_EQ(EINVAL, region_write(BAR0, 0, 4, data, 5));
	ATF_CHECK_EQ(EINVAL, region_write(BAR0, 0, 4, data, 0));
	ATF_CHECK_EQ(EINVAL, region_write(BAR0, 0, 0, data, 0));
	ATF_CHECK_STREQ("", stub_calls());
	ATF_CHECK_EQ(0, region_write(BAR0, 0x3818, 4, data, 4));
	ATF_CHECK_STREQ("write 0+0x3818,4=0x4030201;", stub_calls());
}

static struct vfio_user_write_one	ones[VFIO_USER_MULTI_MAX + 1];

static int
write_multi(uint64_t said, unsigned int sent, size_t more)
{
	const struct vfio_user_write_multi multi = { said };
	int error;

	error = command_fds(VFIO_USER_REGION_WRITE_MULTI, &multi, sizeof(multi),
	    ones, sent * sizeof(ones[0]) + more, NULL, 0);
	if (error == 0)
		check_reply(&multi, sizeof(multi));
	else
		ATF_CHECK_EQ(0, reply_len);
	return (error);
}

TEST(multi, "Several writes are done in order, up to the first invalid one")
{
	char want[200 * 32] = "";
	unsigned int i;

	stub_start(-1);
	for (i = 0; i < nitems(ones); i++) {
		ones[i] = (struct vfio_user_write_one){ .offset = 4 * i,
		    .region = BAR0, .count = 4, .data = { i, 1 } };
		if (i < VFIO_USER_MULTI_MAX)
			sprintf(want + strlen(want), "write 0+%#x,4=%#x;",
			    4 * i, 0x100 | i);
	}
	ATF_CHECK_EQ(0, write_multi(0, 0, 0));
	ATF_CHECK_STREQ("", stub_calls());
	ATF_CHECK_EQ(0, write_multi(200, 200, 0));
	ATF_CHECK_STREQ(want, stub_calls());
	ATF_CHECK_EQ(EINVAL, write_multi(201, 201, 0));
	ATF_CHECK_EQ(EINVAL, write_multi(200, 201, 0));
	ATF_CHECK_EQ(EINVAL, write_multi(200, 199, 0));
	ATF_CHECK_EQ(EINVAL, write_multi(1, 1, 1));
	ATF_CHECK_EQ(EINVAL, write_multi(1ULL << 61, 0, 0));
	ATF_CHECK_STREQ("", stub_calls());
	ones[0].count = 8;
	memset(ones[0].data, 0x11, 8);
	ones[1].count = 9;
	ATF_CHECK_EQ(EINVAL, write_multi(3, 3, 0));
	ATF_CHECK_STREQ("write 0+0,8=0x1111111111111111;", stub_calls());
	ones[1].count = 4;
	ones[1].offset = BAR0_SIZE;
	ATF_CHECK_EQ(EINVAL, write_multi(3, 3, 0));
	ATF_CHECK_STREQ("write 0+0,8=0x1111111111111111;", stub_calls());
	/* Also where more than 8 bytes can be written. */
	ones[0] = (struct vfio_user_write_one){ .offset = 0x3c,
	    .region = CONFIG, .count = 9, .data = { 0x55 } };
	ATF_CHECK_EQ(EINVAL, write_multi(1, 1, 0));
	ATF_CHECK_EQ(0, dev.vdev_pci.cfg[0x3c]);
	/* In any region. */
	ones[0] = (struct vfio_user_write_one){ .offset = 4,
	    .region = CONFIG, .count = 1, .data = { 4 } };
	ones[1] = (struct vfio_user_write_one){ .offset = 7,
	    .region = BAR5, .count = 1, .data = { 0xff } };
	ATF_CHECK_EQ(0, write_multi(2, 2, 0));
	ATF_CHECK_STREQ("master 1;write 5+0x7,1=0xff;", stub_calls());
}

TEST_PROGRAM
