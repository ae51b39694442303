/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter.h"
#include "adapter_stub.h"
#include "e82545.h"
#include "valed.h"

#define	FDS	512

struct adapter	ad;
uint64_t	stub_value;
int		stub_level = -1;

static struct adapter_config	config = { .ac_name = "vm" };
static uint64_t	seen[ADAPTER_NCOUNTERS];
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
stub_count(enum adapter_counter counter)
{
	uint64_t n;

	n = ad.counters[counter] - seen[counter];
	seen[counter] = ad.counters[counter];
	return (n);
}

int
stub_fds(void)
{
	int fd, n;

	n = 0;
	for (fd = 0; fd < FDS; fd++)
		n += fcntl(fd, F_GETFD) != -1;
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
	ATF_REQUIRE_EQ(&ad, arg);
	call("%s", paused ? "pause" : "resume");
}

void
stub_start(int listen_fd)
{
	memset(&ad, 0, sizeof(ad));
	memset(seen, 0, sizeof(seen));
	ad.config = &config;
	config.ac_listen = listen_fd;
	ad.thread = pthread_self();
	ad.server.fd = -1;
	vfu_pci_init(&ad.pci, 0x1101);
	vfu_irq_init(&ad.irq);
	peer_mem_init(&ad.dma, 0, on_pause, &ad);
	(void)stub_calls();
}

uint64_t
e82545_read(struct e82545 *dev, int bar, uint64_t off, int size)
{
	ATF_REQUIRE_EQ(ad.dev, dev);
	call("read %d+%#" PRIx64 ",%d", bar, off, size);
	return (stub_value);
}

void
e82545_write(struct e82545 *dev, int bar, uint64_t off, int size,
    uint64_t value)
{
	ATF_REQUIRE_EQ(ad.dev, dev);
	call("write %d+%#" PRIx64 ",%d=%#" PRIx64, bar, off, size, value);
	if (stub_level != -1)
		vfu_irq_level(&ad.irq, stub_level);
}

void
e82545_bus_master(struct e82545 *dev, bool on)
{
	ATF_REQUIRE_EQ(ad.dev, dev);
	call("master %d", on);
}

void
adapter_attach(struct adapter *a)
{
	ATF_REQUIRE_EQ(&ad, a);
	call("attach");
}

void
adapter_detach(struct adapter *a)
{
	ATF_REQUIRE_EQ(&ad, a);
	ATF_CHECK_EQ(-1, ad.server.fd);
	vfu_irq_clear(&ad.irq);
	call("detach");
}

void
adapter_reset(struct adapter *a)
{
	ATF_REQUIRE_EQ(&ad, a);
	call("reset");
}

void
adapter_log(struct adapter *a, int priority, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	ATF_REQUIRE_EQ(&ad, a);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	call("log %d: %s", priority, text);
}
