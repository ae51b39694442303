/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <linux/pci_regs.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "vfu_stub.h"

struct vfu_device dev;
uint64_t	stub_value;
int		stub_level = -1;
int		stub_listen_fd;

static uint64_t	seen[VFU_NCOUNTERS];
static char	calls[65536], taken[sizeof(calls)];
static size_t	calls_len;

static void __attribute__((__format__(__printf__, 1, 0)))
vcall(const char *fmt, va_list ap)
{
	calls_len += vsnprintf(calls + calls_len, sizeof(calls) - calls_len,
	    fmt, ap);
	ATF_REQUIRE(calls_len < sizeof(calls) - 2);
	strcpy(calls + calls_len++, ";");
}

static void __attribute__((__format__(__printf__, 1, 2)))
call(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vcall(fmt, ap);
	va_end(ap);
}

const char *
stub_calls(void)
{
	memcpy(taken, calls, calls_len + 1);
	calls[0] = '\0';
	calls_len = 0;
	return (taken);
}

uint64_t
stub_count(enum vfu_counter counter)
{
	uint64_t n;

	n = dev.vdev_counters[counter] - seen[counter];
	seen[counter] = dev.vdev_counters[counter];
	return (n);
}

int
stub_memory(size_t size)
{
	int fd;

	fd = memfd_create("guest", MFD_ALLOW_SEALING);
	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE_EQ(0, ftruncate(fd, size));
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return (fd);
}

static void
on_pause(void *arg, bool paused)
{
	ATF_REQUIRE_EQ(&dev, arg);
	call("%s", paused ? "pause" : "resume");
}

static uint64_t
on_read(void *arg, int bar, uint64_t off, int size)
{
	ATF_REQUIRE_EQ(&dev, arg);
	call("read %d+%#" PRIx64 ",%d", bar, off, size);
	return (stub_value);
}

static void
on_write(void *arg, int bar, uint64_t off, int size, uint64_t value)
{
	ATF_REQUIRE_EQ(&dev, arg);
	call("write %d+%#" PRIx64 ",%d=%#" PRIx64, bar, off, size, value);
	if (stub_level != -1)
		vfu_irq_level(&dev.vdev_irq, stub_level);
}

static void
on_bus_master(void *arg, bool on)
{
	ATF_REQUIRE_EQ(&dev, arg);
	call("master %d", on);
}

static void
on_msix(void *arg, bool on)
{
	ATF_REQUIRE_EQ(&dev, arg);
	call("msix %d", on);
}

static void
on_attach(void *arg)
{
	ATF_REQUIRE_EQ(&dev, arg);
	call("attach");
}

static void
on_detach(void *arg)
{
	ATF_REQUIRE_EQ(&dev, arg);
	ATF_CHECK_EQ(-1, dev.vdev_server.fd);
	vfu_irq_clear(&dev.vdev_irq);
	call("detach");
}

static void
on_reset(void *arg)
{
	ATF_REQUIRE_EQ(&dev, arg);
	call("reset");
}

static void __attribute__((__format__(__printf__, 3, 0)))
on_log(void *arg, int priority, const char *fmt, va_list ap)
{
	char text[256];

	ATF_REQUIRE_EQ(&dev, arg);
	vsnprintf(text, sizeof(text), fmt, ap);
	call("log %d: %s", priority, text);
}

static const struct vfu_pci_field fields[] = {
	{ PCI_VENDOR_ID, 4, 0x56789abc, 0 },
	{ PCI_COMMAND, 2, 0, PCI_COMMAND_IO | PCI_COMMAND_MEMORY |
	    PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE },
	{ PCI_INTERRUPT_LINE, 1, 0, 0xff },
	{ PCI_INTERRUPT_PIN, 1, 1, 0 },
	/* For a device without MSI-X it is any register. */
	{ STUB_MSIX + PCI_MSIX_FLAGS, 2, STUB_VECTORS - 1,
	    PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL },
};

static const struct vfu_device_type type = {
	.vdt_field = fields,
	.vdt_nfields = nitems(fields),
	.vdt_bar_size = { [0] = STUB_BAR0_SIZE, [5] = STUB_BAR5_SIZE }
};

static const struct vfu_device_type type_msix = {
	.vdt_field = fields,
	.vdt_nfields = nitems(fields),
	.vdt_express = true,
	.vdt_bar_size = { [0] = STUB_BAR0_SIZE },
	.vdt_vectors = STUB_VECTORS,
	.vdt_msix = STUB_MSIX
};

static const struct vfu_device_ops ops = {
	.vdo_read = on_read,
	.vdo_write = on_write,
	.vdo_bus_master = on_bus_master,
	.vdo_msix = on_msix,
	.vdo_reset = on_reset,
	.vdo_attach = on_attach,
	.vdo_detach = on_detach,
	.vdo_log = on_log,
};

static void
start(int listen_fd, const struct vfu_device_type *t)
{
	memset(&dev, 0, sizeof(dev));
	memset(seen, 0, sizeof(seen));
	vfu_device_init(&dev, &ops, t, 0x1101, &dev);
	stub_listen_fd = listen_fd;
	dev.vdev_thread = pthread_self();
	dev.vdev_server.fd = -1;
	peer_mem_init(&dev.vdev_mem, 0, on_pause, &dev);
	(void)stub_calls();
}

void
stub_start(int listen_fd)
{
	start(listen_fd, &type);
}

void
stub_start_msix(int listen_fd)
{
	start(listen_fd, &type_msix);
}
