/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The state of a device as bytes: what it has, what is refused, and that a
 * stored one of each version is taken over.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <linux/pci_regs.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "event_stub.h"
#include "open_fds.h"
#include "peer_mem_journal.h"
#include "send_fds.h"
#include "test.h"
#include "vfu_message.h"
#include "vfu_state.h"
#include "vfu_stub.h"

#define	PAGE		4096
#define	NAMES		16
#define	READS		100		/* replies that are not read */

static struct peer_mem_journal *journal;
static struct peer_kept kept[NAMES];
static char	names[NAMES][PEER_KEEP_NAME];
static int	client;			/* its end */
static uint8_t	state[VFU_STATE_MAX];
static size_t	state_len;

static void
on_put(void *arg __unused, const char *name, int fd)
{
	struct peer_kept *k;
	unsigned int i;

	k = peer_kept_find(kept, NAMES, name);
	if (k != NULL)
		close(k->pkt_fd);
	for (i = 0; k == NULL && i < NAMES; i++)
		if (kept[i].pkt_fd == -1)
			k = &kept[i];
	ATF_REQUIRE(k != NULL);
	k->pkt_name = strcpy(names[k - kept], name);
	k->pkt_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	ATF_REQUIRE(k->pkt_fd != -1);
}

static void
on_remove(void *arg __unused, const char *name)
{
	struct peer_kept *k = peer_kept_find(kept, NAMES, name);

	if (k == NULL)
		return;
	close(k->pkt_fd);
	k->pkt_fd = -1;
	names[k - kept][0] = '\0';
}

static const struct peer_keep keep = {
	.pke_put = on_put,
	.pke_remove = on_remove,
};

static int
dup_of(int fd)
{
	return (fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

static void	(*stub_begin)(int) = stub_start;

/* A device without a client. */
static void
start(void)
{
	static int silent[2];

	if (silent[0] == 0)
		ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, silent));
	stub_begin(silent[0]);
	vfu_device_set_keep(&dev, &keep);
	ATF_REQUIRE_EQ(0, vfu_server_init(&dev, silent[0]));
}

static void
begin(void)
{
	unsigned int i;

	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < NAMES; i++)
		kept[i] = (struct peer_kept){ names[i], -1, false };
	free(journal);
	journal = calloc(1, sizeof(*journal));
	ATF_REQUIRE(journal != NULL);
	start();
	peer_mem_set_journal(&dev.vdev_mem, journal);
}

/* Forget the device, as if its process had ended. */
static void
end(void)
{
	struct vfu_server *srv = &dev.vdev_server;
	struct vfu_irq *irq = &dev.vdev_irq;
	unsigned int v;

	if (srv->fd != -1) {
		loop_delete(srv->read_ev);
		loop_delete(srv->write_ev);
		close(srv->fd);
		close(srv->stream.vsm_pipe[0]);
		close(srv->stream.vsm_pipe[1]);
		if (irq->intx_fd != -1)
			close(irq->intx_fd);
		if (irq->msi_fd != -1)
			close(irq->msi_fd);
		for (v = 0; v < VFU_IRQ_VECTORS; v++)
			if (irq->msix_fd[v] != -1)
				close(irq->msix_fd[v]);
		if (irq->unmask_fd != -1) {
			loop_delete(irq->unmask_ev);
			close(irq->unmask_fd);
		}
	}
	loop_delete(srv->listen_ev);
	peer_mem_set_journal(&dev.vdev_mem, NULL);
	peer_mem_set_keep(&dev.vdev_mem, NULL);
	peer_mem_reset(&dev.vdev_mem);
}

static const struct vfio_user_dma_map map = { sizeof(map),
    VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE, PAGE, 8 * PAGE, PAGE };
static const struct vfio_user_region_rw rw = { 0, VFIO_PCI_CONFIG_REGION_INDEX,
    256 };

static void
put_message(unsigned int command, const void *data, size_t len, int fd)
{
	static uint16_t id;
	uint8_t buf[VFU_MSG_MAX];

	len = vfu_message(buf, id++, command, 0, data, len);
	ATF_REQUIRE_EQ((ssize_t)len, send_fds(client, buf, len, &fd, fd != -1,
	    0));
	events_run();
}

static void
set_irq(uint32_t index, uint32_t action, int fd)
{
	const struct vfio_user_irq_set set = { sizeof(set),
	    VFIO_IRQ_SET_DATA_EVENTFD | action, index, 0, 1 };

	put_message(VFIO_USER_DEVICE_SET_IRQS, &set, sizeof(set), fd);
	close(fd);
}

/* A client comes, which reads little at a time. */
static void
come(void)
{
	static const struct vfio_user_version version;
	int pair[2];

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
	    pair));
	ATF_REQUIRE_EQ(0, setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF,
	    &(int){ 0 }, sizeof(int)));
	client = pair[1];
	ATF_REQUIRE_EQ(0, vfu_server_come(&dev, pair[0]));
	put_message(VFIO_USER_VERSION, &version, sizeof(version), -1);
}

/*
 * A client with a page of memory, all interrupts, of which INTx has been sent,
 * and replies that it does not read; save that.
 */
static void
make_state(void)
{
	struct {
		struct vfio_user_region_rw rw;
		uint8_t value[2];
	} write = { { PCI_COMMAND, VFIO_PCI_CONFIG_REGION_INDEX, 2 },
	    { PCI_COMMAND_MASTER, 0 } };
	const char *why;
	int fd, i;

	come();
	fd = stub_memory(4 * PAGE);
	put_message(VFIO_USER_DMA_MAP, &map, sizeof(map), fd);
	put_message(VFIO_USER_DMA_MAP, &map, sizeof(map), fd);
	close(fd);
	set_irq(VFIO_PCI_INTX_IRQ_INDEX, VFIO_IRQ_SET_ACTION_TRIGGER,
	    eventfd(0, EFD_NONBLOCK));
	set_irq(VFIO_PCI_INTX_IRQ_INDEX, VFIO_IRQ_SET_ACTION_UNMASK,
	    eventfd(0, EFD_NONBLOCK));
	vfu_irq_level(&dev.vdev_irq, true);
	vfu_irq_flush(&dev.vdev_irq);
	set_irq(VFIO_PCI_MSI_IRQ_INDEX, VFIO_IRQ_SET_ACTION_TRIGGER,
	    eventfd(0, EFD_NONBLOCK));
	put_message(VFIO_USER_REGION_WRITE, &write, sizeof(write.rw) + 2, -1);
	for (i = 0; i < READS; i++)
		put_message(VFIO_USER_REGION_READ, &rw, sizeof(rw), -1);
	ATF_REQUIRE(dev.vdev_server.blocked);
	vfu_pci_show(&dev.vdev_pci, 0x4321);
	state_len = vfu_state_save(&dev, state, sizeof(state), &why);
	ATF_REQUIRE(state_len != 0);
	ATF_CHECK(vfu_state_client(state, state_len));
	(void)stub_calls();
}

/* Restore, as in a new process, with duplicates of what is kept. */
static int
restore(const void *buf, size_t len, const struct peer_mem_journal *from,
    const char **why)
{
	struct peer_kept now[NAMES];
	unsigned int before, events_before, i;
	int error;

	start();
	before = open_fds();
	events_before = events_used();
	for (i = 0; i < NAMES; i++) {
		now[i] = (struct peer_kept){ names[i], -1, false };
		if (kept[i].pkt_fd != -1)
			now[i].pkt_fd = dup_of(kept[i].pkt_fd);
	}
	error = vfu_state_restore(&dev, buf, len, from, now, NAMES, why);
	for (i = 0; i < NAMES; i++) {
		ATF_CHECK(error == 0 || !now[i].pkt_used);
		if (now[i].pkt_fd != -1)
			close(now[i].pkt_fd);
	}
	if (error == 0)
		return (0);
	/* Nothing is left of it. */
	ATF_CHECK_EQ(before, open_fds());
	ATF_CHECK_EQ(events_before, events_used());
	ATF_CHECK_EQ(-1, dev.vdev_server.fd);
	ATF_CHECK_EQ(0, dev.vdev_mem.n);
	ATF_CHECK_EQ(-1, dev.vdev_irq.intx_fd);
	ATF_CHECK_EQ(-1, dev.vdev_irq.msi_fd);
	ATF_CHECK_EQ(-1, dev.vdev_irq.unmask_fd);
	ATF_CHECK_EQ(0, dev.vdev_server.out_len);
	end();
	return (error);
}

static uint16_t
subsystem(void)
{
	uint8_t id[2];

	vfu_pci_read(&dev.vdev_pci, false, PCI_SUBSYSTEM_ID, id, sizeof(id));
	return (id[0] | id[1] << 8);
}

TEST(subsystem, "A client keeps the subsystem ID that it saw, also after a "
    "reset; the next one gets the device's")
{
	const char *why;

	begin();
	make_state();
	end();
	ATF_REQUIRE_EQ(0, restore(state, state_len, journal, &why));
	ATF_CHECK_EQ(0x4321, subsystem());
	vfu_device_reset(&dev);
	ATF_CHECK_EQ(0x4321, subsystem());
	state_len = vfu_state_save(&dev, state, sizeof(state), &why);
	end();
	ATF_REQUIRE_EQ(0, restore(state, state_len, journal, &why));
	ATF_CHECK_EQ(0x4321, subsystem());
	vfu_server_drop(&dev);
	vfu_device_release(&dev);
	ATF_CHECK_EQ(0x1101, subsystem());
}

TEST(intx, "An INTx event that waits to be unmasked comes once more, if the "
    "line is asserted")
{
	const char *why = "";
	uint64_t n;
	int level;

	for (level = 0; level < 2; level++) {
		begin();
		make_state();
		end();
		ATF_REQUIRE_EQ(0, restore(state, state_len, journal, &why));
		/* Without MSI. */
		close(dev.vdev_irq.msi_fd);
		dev.vdev_irq.msi_fd = -1;
		(void)!read(dev.vdev_irq.intx_fd, &n, sizeof(n));
		vfu_irq_level(&dev.vdev_irq, level);
		vfu_irq_flush(&dev.vdev_irq);
		ATF_CHECK_EQ(level ? 8 : -1, read(dev.vdev_irq.intx_fd, &n,
		    sizeof(n)));
		ATF_CHECK(dev.vdev_irq.masked && dev.vdev_irq.shown);
		/* Once. */
		vfu_irq_level(&dev.vdev_irq, level);
		vfu_irq_flush(&dev.vdev_irq);
		ATF_CHECK_EQ(-1, read(dev.vdev_irq.intx_fd, &n, sizeof(n)));
		vfu_server_drop(&dev);
		peer_mem_clear(&dev.vdev_mem);
		loop_delete(dev.vdev_server.listen_ev);
	}
}

static void
make_msix(void)
{
	struct {
		struct vfio_user_region_rw rw;
		uint8_t value[2];
	} write = { { STUB_MSIX + PCI_MSIX_FLAGS, VFIO_PCI_CONFIG_REGION_INDEX,
	    2 }, { 0, PCI_MSIX_FLAGS_ENABLE >> 8 } };
	struct vfio_user_irq_set set = { sizeof(set),
	    VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
	    VFIO_PCI_MSIX_IRQ_INDEX, 0, 1 };
	const char *why;
	int fd;

	make_state();
	/* The client reads replies again, and the device its messages. */
	put_message(VFIO_USER_REGION_WRITE, &write, sizeof(write.rw) + 2, -1);
	for (set.start = 0; set.start < 3; set.start += 2) {
		fd = eventfd(0, EFD_NONBLOCK);
		put_message(VFIO_USER_DEVICE_SET_IRQS, &set, sizeof(set), fd);
		close(fd);
	}
	while (dev.vdev_server.blocked || dev.vdev_irq.msix_fd[2] == -1) {
		uint8_t data[4096];

		ATF_REQUIRE(recv(client, data, sizeof(data), MSG_DONTWAIT) !=
		    -1 || events_step() != 0);
		events_run();
	}
	state_len = vfu_state_save(&dev, state, sizeof(state), &why);
	ATF_REQUIRE(state_len != 0);
	(void)stub_calls();
}

TEST(msix, "Vectors of MSI-X are taken over, and each sends a message")
{
	const char *why = "";
	uint64_t n;

	stub_begin = stub_start_msix;
	begin();
	make_msix();
	end();
	ATF_REQUIRE_EQ_MSG(0, restore(state, state_len, journal, &why), "%s",
	    why);
	ATF_CHECK_STREQ("pause;resume;master 1;msix 1;", stub_calls());
	ATF_CHECK_EQ(-1, dev.vdev_irq.msix_fd[1]);
	vfu_irq_flush(&dev.vdev_irq);
	ATF_CHECK_EQ(8, read(dev.vdev_irq.msix_fd[0], &n, sizeof(n)));
	ATF_CHECK_EQ(8, read(dev.vdev_irq.msix_fd[2], &n, sizeof(n)));
	vfu_server_drop(&dev);
	end();
	/* Not by a device that has none. */
	stub_begin = stub_start;
	ATF_CHECK_EQ(EINVAL, restore(state, state_len, journal, &why));
	ATF_CHECK_STREQ("the state has more vectors than the device", why);
}

/* The CRC-32 of what follows the header. */
static void
sign(uint8_t *buf, size_t len)
{
	uint32_t crc = UINT32_MAX;
	size_t i;
	int bit;

	for (i = 16; i < len; i++)
		for (crc ^= buf[i], bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	crc = ~crc;
	memcpy(buf + 12, &crc, sizeof(crc));
	i = (uint32_t)len;
	memcpy(buf + 8, &i, 4);
}

TEST(raw, "Of a device with anything in it, a state is written, or none")
{
	static uint8_t buf[VFU_STATE_MAX];
	unsigned int done = 0, i, k;
	uint32_t seed = 1;
	struct vfu_device *junk;
	const char *why;
	uint8_t *p;
	size_t len;

	begin();
	make_state();
	end();
	junk = malloc(sizeof(*junk));
	ATF_REQUIRE(junk != NULL);
	for (i = 0; i < 2000; i++) {
		memcpy(junk, &dev, sizeof(*junk));
		p = (uint8_t *)&junk->vdev_server.stream;
		for (k = 0; k < sizeof(junk->vdev_server.stream); k++)
			if (i < 10 || test_chance(&seed, 1, 64))
				p[k] = test_random(&seed);
		p = (uint8_t *)&junk->vdev_irq;
		for (k = 0; k < sizeof(junk->vdev_irq); k++)
			p[k] = test_random(&seed);
		len = vfu_state_save(junk, buf, sizeof(buf), &why);
		ATF_CHECK(len <= sizeof(buf));
		done += len != 0;
		if (len != 0 && restore(buf, len, journal, &why) == 0) {
			events_step();
			end();
		}
	}
	ATF_CHECK(done > 0 && done < 2000);
	len = vfu_state_save(&dev, buf, sizeof(buf), &why);
	for (i = 0; i < len; i++)
		ATF_CHECK_EQ(0, vfu_state_save(&dev, buf, i, &why));
	free(junk);
}

TEST(exact, "A state has no byte and no flag that is not known, and no "
    "progress that cannot be")
{
	static const uint32_t most = 2 * VFU_BUFFER + VFU_MSG_MAX;
	static uint8_t bad[VFU_STATE_MAX];
	static struct vfu_device copy;
	static const struct {
		struct vfu_progress p;
		bool		good;
	} progress[] = {
		{ { .vpr_out_len = VFU_BUFFER }, true },
		{ { .vpr_out_len = VFU_BUFFER + 1 }, false },
		{ { .vpr_out_len = 9, .vpr_out_pos = 9 }, true },
		{ { .vpr_out_len = 9, .vpr_out_pos = 10 }, false },
		{ { .vpr_out_len = 9, .vpr_out_pos = 4, .vpr_piped = 5 },
		    true },
		{ { .vpr_out_len = 9, .vpr_out_pos = 4, .vpr_piped = 6 },
		    false },
		{ { .vpr_done = most }, true },
		{ { .vpr_done = most + 1 }, false },
		{ { .vpr_done = -1ULL }, false },
	};
	struct vfu_stream *st = &copy.vdev_server.stream;
	const char *why;
	unsigned int i;

	begin();
	make_state();
	end();
	memcpy(bad, state, state_len);
	bad[state_len] = 0;
	sign(bad, state_len + 1);
	ATF_CHECK_EQ(EINVAL, restore(bad, state_len + 1, journal, &why));
	ATF_CHECK_STREQ("the state is not consistent", why);
	memcpy(bad, state, state_len);
	bad[17] |= 0x80;
	sign(bad, state_len);
	ATF_CHECK_EQ(EINVAL, restore(bad, state_len, journal, &why));
	ATF_CHECK_STREQ("the state is not consistent", why);
	for (i = 0; i < nitems(progress); i++) {
		memcpy(&copy, &dev, sizeof(copy));
		memset(&st->vsm_take, 0, sizeof(st->vsm_take));
		st->vsm_progress[st->vsm_now & 1] = progress[i].p;
		why = NULL;
		ATF_CHECK_EQ_MSG(progress[i].good, vfu_state_save(&copy, bad,
		    sizeof(bad), &why) != 0, "%u", i);
		if (!progress[i].good)
			ATF_CHECK_STREQ("the device's state is not consistent",
			    why);
	}
}

#include "vfu_state_v1.h"

TEST(version_1, "A stored state of version 1 is taken over")
{
	static uint8_t bytes[VFU_STATE_MAX];
	const char *hex, *why = "";
	unsigned int byte;
	size_t len = 0;

	begin();
	make_state();
	end();
	for (hex = vfu_state_v1; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		bytes[len++] = byte;
	ATF_REQUIRE_EQ_MSG(0, restore(bytes, len, journal, &why), "%s", why);
	ATF_CHECK_STREQ("pause;resume;master 1;", stub_calls());
	ATF_CHECK_EQ(true, dev.vdev_server.negotiated);
	ATF_CHECK(dev.vdev_irq.masked && dev.vdev_irq.shown);
	ATF_CHECK_EQ(1, dev.vdev_irq.sent);
	ATF_CHECK_EQ(1, dev.vdev_refusals);
	ATF_CHECK_EQ(1, dev.vdev_counters[VFU_C_CONNECT]);
	ATF_CHECK_EQ(7, dev.vdev_counters[VFU_C_MESSAGE]);
	ATF_CHECK_EQ(16, dev.vdev_server.out_len);
	ATF_CHECK_EQ(0, memcmp(dev.vdev_server.out, "sixteen bytes...", 16));
	vfu_server_drop(&dev);
}

TEST_PROGRAM
