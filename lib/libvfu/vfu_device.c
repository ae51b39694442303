/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The commands of vfio-user except VERSION.  A table has the function of each,
 * and the length of its payload.  The function can rely on that length; it must
 * check the contents, and returns an errno or fills in the reply.
 *
 * Regions and interrupts have the indexes of all VFIO PCI devices, which are in
 * <linux/vfio.h>.
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <errno.h>
#include <inttypes.h>

#include <linux/pci_regs.h>

#include <string.h>
#include <syslog.h>

#include "vfu_device.h"

const struct counter_row vfu_counter_table[VFU_NCOUNTERS] = {
	COUNTER_ROWS(VFU_COUNTERS)
};

void
vfu_device_init(struct vfu_device *vd, const struct vfu_device_ops *ops,
    const struct vfu_device_type *type, uint16_t subdevice, void *arg)
{
	vd->vdev_ops = ops;
	vd->vdev_type = type;
	vd->vdev_arg = arg;
	vfu_pci_init(&vd->vdev_pci, type->vdt_field, type->vdt_nfields,
	    subdevice);
	vfu_irq_init(&vd->vdev_irq, type->vdt_vectors);
}

void
vfu_device_set_keep(struct vfu_device *vd, const struct peer_keep *keep)
{
	vd->vdev_keep = keep;
	vfu_irq_set_keep(&vd->vdev_irq, keep);
	peer_mem_set_keep(&vd->vdev_mem, keep);
}

void
vfu_device_reset(struct vfu_device *vd)
{
	vfu_pci_reset(&vd->vdev_pci);
	vfu_irq_intx_disable(&vd->vdev_irq, false);
	vfu_device_msix(vd);
}

void
vfu_device_msix(struct vfu_device *vd)
{
	const uint8_t cap = vd->vdev_type->vdt_msix;
	const bool on = cap != 0 && vfu_pci_msix(&vd->vdev_pci, cap);

	if (on == vd->vdev_msix)
		return;
	vd->vdev_msix = on;
	vd->vdev_ops->vdo_msix(vd->vdev_arg, on);
}

void
vfu_device_release(struct vfu_device *vd)
{
	vfu_irq_clear(&vd->vdev_irq);
	peer_mem_reset(&vd->vdev_mem);
	/* The next client may see another one than this one went on with. */
	vfu_pci_show(&vd->vdev_pci, vd->vdev_pci.subdevice);
}

void
vfu_log(struct vfu_device *vd, int priority, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vd->vdev_ops->vdo_log(vd->vdev_arg, priority, fmt, ap);
	va_end(ap);
}

static void
reply_set(struct vfu_request *req, const void *data, size_t len)
{
	memcpy(req->reply, data, len);
	req->reply_len = len;
}

/* Lines about ranges that are refused, at most for a client. */
#define	REFUSALS	3

_Static_assert(VFIO_DMA_MAP_FLAG_READ == PROT_READ &&
    VFIO_DMA_MAP_FLAG_WRITE == PROT_WRITE, "flags are those of mmap(2)");

/*
 * Log that a range was refused: a client may go on as if it had been accepted.
 */
static void
dma_refused(struct vfu_device *vd, const struct vfio_user_dma_map *map,
    const char *why)
{
	vfu_count(vd, VFU_C_DMA_REFUSED);
	if (vd->vdev_refusals++ >= REFUSALS)
		return;
	vfu_log(vd, LOG_WARNING, "memory at %#" PRIx64 ", size %#" PRIx64
	    ", refused: %s%s", map->address, map->size, why,
	    vd->vdev_refusals == REFUSALS ?
	    "; no more of this client is logged" : "");
}

/*
 * Return whether a process that has ended has carried out this message, which
 * changes the ranges.
 */
static bool
dma_done(const struct vfu_device *vd)
{
	return (VFU_STREAM_KEPT(vd) &&
	    peer_mem_tagged(&vd->vdev_mem) == vfu_message_tag(vd));
}

static int
cmd_dma_map(struct vfu_device *vd, struct vfu_request *req)
{
	struct vfio_user_dma_map map;
	const char *why;
	int error, prot;

	memcpy(&map, req->data, sizeof(map));
	prot = map.flags & (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE);
	if (map.argsz < sizeof(map) || req->nfds > 1 || prot == 0 ||
	    (map.flags & ~(VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE |
	    VFIO_USER_DMA_MAP_MMAP | VFIO_USER_DMA_MAP_FILE_IO)) != 0 ||
	    ((map.flags & VFIO_USER_DMA_MAP_MMAP) != 0 && req->nfds == 0))
		return (EINVAL);
	if ((map.flags & VFIO_USER_DMA_MAP_FILE_IO) != 0) {
		dma_refused(vd, &map, "its file cannot be mapped");
		return (EOPNOTSUPP);
	}
	if (dma_done(vd))
		return (0);
	error = peer_mem_map(&vd->vdev_mem, req->nfds == 1 ? req->fds[0] : -1,
	    map.offset, map.address, map.size, prot, &why);
	if (error != 0) {
		dma_refused(vd, &map, why);
		return (error);
	}
	vfu_count(vd, VFU_C_DMA_MAP);
	if (req->nfds == 1) {
		/* Memory: no need to ask whether it closes at once. */
		vfu_server_close(&vd->vdev_server, req->fds[0]);
		req->fds[0] = -1;
	}
	return (0);
}

static int
cmd_dma_unmap(struct vfu_device *vd, struct vfu_request *req)
{
	struct vfio_user_dma_unmap unmap;
	int error;

	memcpy(&unmap, req->data, sizeof(unmap));
	if (unmap.argsz < sizeof(unmap))
		return (EINVAL);
	error = 0;
	if (dma_done(vd))
		;
	else if (unmap.flags == 0)
		error = peer_mem_unmap(&vd->vdev_mem, unmap.address,
		    unmap.size);
	else if (unmap.flags == VFIO_DMA_UNMAP_FLAG_ALL &&
	    unmap.address == 0 && unmap.size == 0)
		peer_mem_clear(&vd->vdev_mem);
	else
		error = EINVAL;
	if (error != 0)
		return (error);
	vfu_count(vd, VFU_C_DMA_UNMAP);
	reply_set(req, &unmap, sizeof(unmap));
	return (0);
}

/*
 * Tell what the device is, or refuse a client that shares no memory: QEMU asks
 * this after it has told of its memory, and ends if the answer is an error.
 * Errors of DMA_MAP do not end it.
 */
static int
cmd_device_info(struct vfu_device *vd, struct vfu_request *req)
{
	struct vfio_user_device_info info;

	memcpy(&info, req->data, sizeof(info));
	if (info.argsz < sizeof(info))
		return (EINVAL);
	if (vd->vdev_mem.nfiles == 0 &&
	    (vd->vdev_mem.n > 0 || vd->vdev_refusals > 0)) {
		vfu_log(vd, LOG_ERR, "client refused: it shares no memory: "
		    "QEMU needs memory-backend-memfd with share=on");
		return (EOPNOTSUPP);
	}
	info.argsz = sizeof(info);
	info.flags = VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI;
	info.num_regions = VFIO_PCI_NUM_REGIONS;
	info.num_irqs = VFIO_PCI_NUM_IRQS;
	reply_set(req, &info, sizeof(info));
	return (0);
}

/* Return the size of a region in bytes, or 0 if the device does not have it. */
static uint64_t
region_size(const struct vfu_device *vd, uint32_t region)
{
	if (region == VFIO_PCI_CONFIG_REGION_INDEX)
		return (vd->vdev_type->vdt_express ? VFU_PCIE_SIZE :
		    VFU_PCI_SIZE);
	if (region > VFIO_PCI_BAR5_REGION_INDEX)
		return (0);
	return (vd->vdev_type->vdt_bar_size[region]);
}

_Static_assert(VFIO_PCI_BAR0_REGION_INDEX == 0 &&
    nitems(((struct vfu_device_type *)0)->vdt_bar_size) ==
    VFIO_PCI_BAR5_REGION_INDEX + 1, "a region for each base address register");

static int
cmd_region_info(struct vfu_device *vd, struct vfu_request *req)
{
	struct vfio_user_region_info info;

	memcpy(&info, req->data, sizeof(info));
	if (info.argsz < sizeof(info) || info.index >= VFIO_PCI_NUM_REGIONS)
		return (EINVAL);
	info.argsz = sizeof(info);
	info.size = region_size(vd, info.index);
	info.flags = info.size == 0 ? 0 :
	    VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	info.cap_offset = 0;
	info.offset = 0;
	reply_set(req, &info, sizeof(info));
	return (0);
}

static int
cmd_irq_info(struct vfu_device *vd, struct vfu_request *req)
{
	struct vfio_user_irq_info info;
	int error;

	memcpy(&info, req->data, sizeof(info));
	if (info.argsz < sizeof(info))
		return (EINVAL);
	error = vfu_irq_info(&vd->vdev_irq, &info);
	if (error != 0)
		return (error);
	info.argsz = sizeof(info);
	reply_set(req, &info, sizeof(info));
	return (0);
}

static int
cmd_set_irqs(struct vfu_device *vd, struct vfu_request *req)
{
	struct vfio_user_irq_set set;

	memcpy(&set, req->data, sizeof(set));
	if (set.argsz < sizeof(set))
		return (EINVAL);
	return (vfu_irq_set(&vd->vdev_irq, &set, req->data + sizeof(set),
	    req->len - sizeof(set), req->fds, req->nfds));
}

/* Apply a write to the command register, or that of MSI-X. */
static void
config_changed(struct vfu_device *vd, bool was_master)
{
	bool master;

	vfu_irq_intx_disable(&vd->vdev_irq,
	    vfu_pci_intx_disabled(&vd->vdev_pci));
	vfu_device_msix(vd);
	master = vfu_pci_busmaster(&vd->vdev_pci);
	if (master == was_master)
		return;
	vd->vdev_ops->vdo_bus_master(vd->vdev_arg, master);
}

_Static_assert(VFU_PCIE_SIZE <= VFU_XFER_MAX, "the longest read of a region");

/* Return whether [offset, offset + count) can be accessed in a region. */
static bool
region_ok(const struct vfu_device *vd, uint32_t region, uint64_t offset,
    uint32_t count)
{
	uint64_t size;

	size = region_size(vd, region);
	if (count == 0 || count > size || offset > size - count)
		return (false);
	/* A register access has one of the sizes of a CPU's accesses. */
	return (region == VFIO_PCI_CONFIG_REGION_INDEX ||
	    (count <= 8 && powerof2(count)));
}

static int
region_write(struct vfu_device *vd, uint32_t region, uint64_t offset,
    uint32_t count, const uint8_t *data)
{
	uint64_t value;
	uint32_t i;
	bool master;

	if (!region_ok(vd, region, offset, count))
		return (EINVAL);
	if (region == VFIO_PCI_CONFIG_REGION_INDEX) {
		master = vfu_pci_busmaster(&vd->vdev_pci);
		vfu_pci_write(&vd->vdev_pci, offset, data, count);
		config_changed(vd, master);
		return (0);
	}
	value = 0;
	for (i = 0; i < count; i++)
		value |= (uint64_t)data[i] << (8 * i);
	vd->vdev_ops->vdo_write(vd->vdev_arg, region, offset, count, value);
	return (0);
}

static int
cmd_region_read(struct vfu_device *vd, struct vfu_request *req)
{
	struct vfio_user_region_rw rw;
	uint64_t value;
	uint8_t *data;
	uint32_t i;

	memcpy(&rw, req->data, sizeof(rw));
	if (!region_ok(vd, rw.region, rw.offset, rw.count))
		return (EINVAL);
	reply_set(req, &rw, sizeof(rw));
	data = req->reply + sizeof(rw);
	req->reply_len += rw.count;
	if (rw.region == VFIO_PCI_CONFIG_REGION_INDEX) {
		vfu_pci_read(&vd->vdev_pci, vfu_irq_asserted(&vd->vdev_irq),
		    rw.offset, data, rw.count);
		return (0);
	}
	value = vd->vdev_ops->vdo_read(vd->vdev_arg, rw.region, rw.offset,
	    rw.count);
	for (i = 0; i < rw.count; i++)
		data[i] = (uint8_t)(value >> (8 * i));
	return (0);
}

static int
cmd_region_write(struct vfu_device *vd, struct vfu_request *req)
{
	struct vfio_user_region_rw rw;
	int error;

	memcpy(&rw, req->data, sizeof(rw));
	if (req->len - sizeof(rw) != rw.count)
		return (EINVAL);
	error = region_write(vd, rw.region, rw.offset, rw.count,
	    req->data + sizeof(rw));
	if (error == 0)
		reply_set(req, &rw, sizeof(rw));
	return (error);
}

static int
cmd_write_multi(struct vfu_device *vd, struct vfu_request *req)
{
	struct vfio_user_write_multi multi;
	struct vfio_user_write_one one;
	const uint8_t *p;
	uint64_t i;
	int error;

	memcpy(&multi, req->data, sizeof(multi));
	if (multi.wr_cnt > VFIO_USER_MULTI_MAX ||
	    req->len != sizeof(multi) + multi.wr_cnt * sizeof(one))
		return (EINVAL);
	if (!VFU_STREAM_KEPT(vd) ||
	    vd->vdev_multi_tag != vfu_message_tag(vd)) {
		vd->vdev_multi_done = 0;
		atomic_store_rel_64(&vd->vdev_multi_tag, vfu_message_tag(vd));
	}
	for (i = vd->vdev_multi_done; i < multi.wr_cnt; i++) {
		p = req->data + sizeof(multi) + i * sizeof(one);
		memcpy(&one, p, sizeof(one));
		if (one.count > sizeof(one.data))
			return (EINVAL);
		error = region_write(vd, one.region, one.offset, one.count,
		    one.data);
		if (error != 0)
			return (error);
		atomic_store_rel_32(&vd->vdev_multi_done, i + 1);
	}
	reply_set(req, &multi, sizeof(multi));
	return (0);
}

static int
cmd_reset(struct vfu_device *vd, struct vfu_request *req __unused)
{
	vd->vdev_ops->vdo_reset(vd->vdev_arg);
	return (0);
}

static int
cmd_unsupported(struct vfu_device *vd __unused,
    struct vfu_request *req __unused)
{
	return (ENOTSUP);
}

/* Refuse a command that a client must not send, or not twice. */
static int
cmd_invalid(struct vfu_device *vd __unused, struct vfu_request *req __unused)
{
	return (EINVAL);
}

/*
 * A payload has at least the length of its structure.  As with libvfio-user,
 * what follows is ignored, unless the command has data there: some clients send
 * as much as they want to receive.
 */
static const struct vfu_cmd {
	int	(*fn)(struct vfu_device *vd, struct vfu_request *req);
	size_t	len;			/* of the payload, bytes */
} vfu_cmds[] = {
	[VFIO_USER_VERSION] = { cmd_invalid, 0 },
	[VFIO_USER_DMA_MAP] =
	    { cmd_dma_map, sizeof(struct vfio_user_dma_map) },
	[VFIO_USER_DMA_UNMAP] =
	    { cmd_dma_unmap, sizeof(struct vfio_user_dma_unmap) },
	[VFIO_USER_DEVICE_GET_INFO] =
	    { cmd_device_info, sizeof(struct vfio_user_device_info) },
	[VFIO_USER_DEVICE_GET_REGION_INFO] =
	    { cmd_region_info, sizeof(struct vfio_user_region_info) },
	[VFIO_USER_DEVICE_GET_REGION_IO_FDS] =
	    { cmd_unsupported, sizeof(struct vfio_user_region_io_fds) },
	[VFIO_USER_DEVICE_GET_IRQ_INFO] =
	    { cmd_irq_info, sizeof(struct vfio_user_irq_info) },
	[VFIO_USER_DEVICE_SET_IRQS] =
	    { cmd_set_irqs, sizeof(struct vfio_user_irq_set) },
	[VFIO_USER_REGION_READ] =
	    { cmd_region_read, sizeof(struct vfio_user_region_rw) },
	[VFIO_USER_REGION_WRITE] =
	    { cmd_region_write, sizeof(struct vfio_user_region_rw) },
	[VFIO_USER_DMA_READ] = { cmd_invalid, 0 },
	[VFIO_USER_DMA_WRITE] = { cmd_invalid, 0 },
	[VFIO_USER_DEVICE_RESET] = { cmd_reset, 0 },
	[VFIO_USER_REGION_WRITE_MULTI] =
	    { cmd_write_multi, sizeof(struct vfio_user_write_multi) },
};

int
vfu_command(struct vfu_device *vd, struct vfu_request *req)
{
	const struct vfu_cmd *c;
	unsigned int command;

	command = req->header->command;
	if (command >= nitems(vfu_cmds) || vfu_cmds[command].fn == NULL)
		return (cmd_unsupported(vd, req));
	c = &vfu_cmds[command];
	if (req->len < c->len)
		return (EINVAL);
	return (c->fn(vd, req));
}
