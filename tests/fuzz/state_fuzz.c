/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a process finds that takes over a client of valed: the state of a
 * device, or the device itself as another process has left it, a journal of
 * ranges, and descriptors by name (vfu_state.h).  An input is a sequence of
 * operations (ops.h), which change them and then play the client.  Invariants:
 *
 *  - What is refused leaves the device as it was, and no descriptor, mapping or
 *    event.
 *  - What is not serves the client, and lets go of everything when it leaves.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <linux/pci_regs.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event_stub.h"
#include "ops.h"
#include "peer_mem_journal.h"
#include "vfu_device.h"
#include "vfu_state.h"

#define	PAGE		4096
#define	PAGES		16
#define	RANGES		4
#define	ROUNDS		64
#define	HEADER		16		/* of a state */

enum state_op {
	STATE_FIELD,		/* a % 8 + 1 bytes of d at b of the state */
	STATE_RAW,		/* or at c of the device */
	STATE_RECORD,		/* or at b of record a of the journal */
	STATE_HEAD,		/* of its numbers, a % 4 is d */
	STATE_KEPT,		/* name a is of file b */
	STATE_SEND,		/* the client sends d, a message of b bytes */
	STATE_RUN,
	STATE_NOPS
};

enum { F_NONE, F_SOCKET, F_PIPE0, F_PIPE1, F_EVENT, F_MEMORY, F_NULL, NFILES };

static const struct {
	const char	*name;
	int		file;
} base_kept[] = {
	{ "client", F_SOCKET }, { "pipe.0", F_PIPE0 }, { "pipe.1", F_PIPE1 },
	{ "intx", F_EVENT }, { "msi", F_EVENT }, { "unmask", F_EVENT },
	{ "mem.0", F_MEMORY }, { "mem.1", F_MEMORY },
};
#define	NKEPT		nitems(base_kept)

static struct vfu_device dev, raw, base_raw;
static struct peer_mem_journal *journal;
static uint8_t	base_state[VFU_STATE_MAX], state[VFU_STATE_MAX];
static size_t	base_len;
static int	silent[2], files[NFILES];
static uint64_t	accesses;

static void
on_pause(void *arg __unused, bool paused __unused)
{
}

static uint64_t
on_read(void *arg __unused, int bar __unused, uint64_t off, int size __unused)
{
	accesses++;
	return (off);
}

static void
on_write(void *arg, int bar __unused, uint64_t off, int size __unused,
    uint64_t value __unused)
{
	struct vfu_device *vd = arg;
	volatile uint8_t *p;

	accesses++;
	vfu_irq_level(&vd->vdev_irq, off & 8);
	p = peer_mem_addr(&vd->vdev_mem, off * PAGE, 1, PROT_READ | PROT_WRITE);
	if (p != NULL)
		*p = 1;
}

static void
on_bus_master(void *arg __unused, bool on __unused)
{
}

static void
on_reset(void *arg)
{
	vfu_device_reset(arg);
}

static void
on_attach(void *arg __unused)
{
}

static void
on_detach(void *arg)
{
	vfu_device_reset(arg);
	vfu_device_release(arg);
}

static void
on_log(void *arg __unused, int priority __unused, const char *fmt __unused,
    va_list ap __unused)
{
}

static void
on_put(void *arg __unused, const char *name __unused, int fd)
{
	INVARIANT(fcntl(fd, F_GETFD) != -1);
}

static void
on_remove(void *arg __unused, const char *name)
{
	INVARIANT(strlen(name) < PEER_KEEP_NAME);
}

static const struct peer_keep keep = { on_put, on_remove, NULL };

static const struct vfu_pci_field fields[] = {
	{ PCI_VENDOR_ID, 4, 0x56789abc, 0 },
	{ PCI_COMMAND, 2, 0, PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE },
};

static const struct vfu_device_type type = {
	.vdt_field = fields,
	.vdt_nfields = nitems(fields),
	.vdt_bar_size = { [0] = 0x1000 }
};

static const struct vfu_device_ops device_ops = {
	.vdo_read = on_read,
	.vdo_write = on_write,
	.vdo_bus_master = on_bus_master,
	.vdo_reset = on_reset,
	.vdo_attach = on_attach,
	.vdo_detach = on_detach,
	.vdo_log = on_log,
};

static void
device_new(struct vfu_device *vd)
{
	memset(vd, 0, sizeof(*vd));
	vfu_device_init(vd, &device_ops, &type, 0x1101, vd);
	peer_mem_init(&vd->vdev_mem, PAGES * PAGE * 3, on_pause, vd);
	vfu_device_set_keep(vd, &keep);
}

/* A device with a client, as a process has left it. */
static void
start(void)
{
	struct vfu_progress *p;
	const char *why;

	signal(SIGPIPE, SIG_IGN);
	INVARIANT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, silent) ==
	    0);
	files[F_NONE] = -1;
	files[F_EVENT] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	files[F_NULL] = open("/dev/null", O_RDWR | O_CLOEXEC);
	files[F_MEMORY] = memfd_create("fuzz", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	INVARIANT(ftruncate(files[F_MEMORY], PAGES * PAGE) == 0);
	INVARIANT(fcntl(files[F_MEMORY], F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	journal = calloc(1, sizeof(*journal));
	INVARIANT(journal != NULL);
	device_new(&base_raw);
	vfu_stream_init(&base_raw.vdev_server.stream);
	p = &base_raw.vdev_server.stream.vsm_progress[0];
	p->vpr_connected = p->vpr_negotiated = true;
	p->vpr_out_len = 32;
	p->vpr_piped = 16;
	base_raw.vdev_irq.intx_fd = base_raw.vdev_irq.msi_fd =
	    base_raw.vdev_irq.unmask_fd = 5;
	base_raw.vdev_irq.masked = base_raw.vdev_irq.shown = true;
	base_raw.vdev_pci.cfg[PCI_COMMAND] = PCI_COMMAND_MASTER;
	base_len = vfu_state_save(&base_raw, base_state, sizeof(base_state),
	    &why);
	INVARIANT(base_len != 0);
}

static void
journal_new(void)
{
	struct peer_mem_half *h = &journal->half[0];
	unsigned int i;

	journal->magic = PEER_MEM_JOURNAL_MAGIC;
	journal->records = PEER_MEM_RECORDS;
	journal->commit = RANGES * 2;
	h->base = 1;
	h->tag = 0;
	for (i = 0; i < RANGES; i++)
		h->record[i] = (struct peer_mem_record){
		    .gpa = 2 * i * PAGE, .size = PAGE, .offset = i * PAGE,
		    .tag = i, .kind = PEER_MEM_RECORD_MAP, .prot = 1 + i % 3,
		    .file = i % 3 };
	memset(&h->record[RANGES], 0, sizeof(h->record[0]) * 16);
}

/* Change bytes of what has `size'. */
static void
patch(void *at, size_t size, size_t off, const struct op *op)
{
	const size_t n = op->a % 8 + 1;

	off %= size;
	memcpy((uint8_t *)at + off, &op->d, MIN(n, size - off));
}

static void
change(const struct op *op, int kept_file[NKEPT], bool *of_raw)
{
	struct peer_mem_half *h = &journal->half[0];

	switch (op->kind % STATE_NOPS) {
	case STATE_FIELD:
		patch(state + 4, base_len - 4, op->b, op);
		break;
	case STATE_RAW:
		*of_raw = true;
		switch (op->b % 4) {
		case 0:
			patch(&raw.vdev_irq, sizeof(raw.vdev_irq), op->c, op);
			break;
		case 1:
			patch(&raw.vdev_pci.cfg, sizeof(raw.vdev_pci.cfg),
			    op->c, op);
			break;
		default:
			patch(&raw.vdev_server.stream,
			    sizeof(raw.vdev_server.stream), op->c, op);
		}
		break;
	case STATE_RECORD:
		patch(&h->record[op->a / 8 % 16], sizeof(h->record[0]), op->b,
		    op);
		break;
	case STATE_HEAD:
		switch (op->a % 4) {
		case 0:
			journal->commit = op->d;
			break;
		case 1:
			h->base = op->d;
			break;
		case 2:
			h->tag = op->d;
			break;
		default:
			journal->records = op->d;
		}
		break;
	case STATE_KEPT:
		kept_file[op->a % NKEPT] = op->b % NFILES;
		break;
	}
}

static void
play(const struct op *op, int s)
{
	struct vfio_user_header h = { 1, op->a, sizeof(h) + op->b % 64, 0, 0 };
	uint8_t buf[sizeof(h) + 64] = { 0 };
	unsigned int i;

	switch (op->kind % STATE_NOPS) {
	case STATE_SEND:
		memcpy(buf, &h, sizeof(h));
		memcpy(buf + sizeof(h), &op->d, sizeof(op->d));
		memcpy(buf + sizeof(h) + sizeof(op->d), &op->c, sizeof(op->c));
		(void)send(s, buf, h.size, MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case STATE_RUN:
		for (i = 0; i < ROUNDS && events_step() != 0; i++)
			;
		while (recv(s, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
		vfu_irq_flush(&dev.vdev_irq);
		break;
	}
}

/* Restore, and play the client. */
static void
take_over(const struct op *ops, size_t n, size_t len, const int kept_file[])
{
	struct peer_kept kept[NKEPT];
	int before, nevents, pair[2], pipes[2];
	const char *why;
	size_t i;

	device_new(&dev);
	INVARIANT(vfu_server_init(&dev, silent[0]) == 0);
	nevents = events_used();
	before = fds_open();
	INVARIANT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0, pair) == 0);
	INVARIANT(pipe2(pipes, O_NONBLOCK | O_CLOEXEC) == 0);
	files[F_SOCKET] = pair[0];
	files[F_PIPE0] = pipes[0];
	files[F_PIPE1] = pipes[1];
	for (i = 0; i < NKEPT; i++)
		kept[i] = (struct peer_kept){ base_kept[i].name,
		    kept_file[i] == F_NONE ? -1 :
		    fcntl(files[kept_file[i]], F_DUPFD_CLOEXEC, 0), false };
	close(pair[0]);
	close(pipes[0]);
	close(pipes[1]);
	if (vfu_state_restore(&dev, state, len, journal, kept, NKEPT, &why) !=
	    0) {
		INVARIANT(dev.vdev_mem.n == 0 && dev.vdev_server.fd == -1);
		INVARIANT((int)events_used() == nevents);
		for (i = 0; i < NKEPT; i++)
			INVARIANT(!kept[i].pkt_used);
	}
	for (i = 0; i < NKEPT; i++)
		if (kept[i].pkt_fd != -1)
			close(kept[i].pkt_fd);
	for (i = 0; i < n; i++)
		play(&ops[i], pair[1]);
	close(pair[1]);
	if (dev.vdev_server.fd != -1)
		vfu_server_drop(&dev);
	INVARIANT(dev.vdev_mem.n == 0 && dev.vdev_mem.mapped == 0);
	INVARIANT((int)events_used() == nevents);
	INVARIANT(fds_open() == before);
	vfu_server_fini(&dev);
}

static uint32_t
crc_of(const uint8_t *p, size_t len)
{
	uint32_t crc = UINT32_MAX;
	int bit;

	for (; len > 0; len--)
		for (crc ^= *p++, bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	return (~crc);
}

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct op ops[OPS_MAX];
	int kept_file[NKEPT];
	bool of_raw = false;
	const char *why;
	uint32_t word;
	size_t i, len, n;

	if (journal == NULL)
		start();
	n = ops_read(data, size, ops);
	memcpy(&raw, &base_raw, sizeof(raw));
	memcpy(state, base_state, base_len);
	journal_new();
	for (i = 0; i < NKEPT; i++)
		kept_file[i] = base_kept[i].file;
	for (i = 0; i < n; i++)
		change(&ops[i], kept_file, &of_raw);
	len = base_len;
	if (of_raw) {
		len = vfu_state_save(&raw, state, sizeof(state), &why);
		if (len == 0)
			return (0);
	} else {
		/* What a CRC finds is not worth trying. */
		word = crc_of(state + HEADER, len - HEADER);
		memcpy(state + 12, &word, sizeof(word));
	}
	take_over(ops, n, len, kept_file);
	return (0);
}

void
target_op(struct rng *rng, struct op *op)
{
	op->kind = rng_below(rng, STATE_NOPS);
	op->a = rng_next(rng);
	op->b = rng_below(rng, 2) == 0 ? rng_below(rng, 128) : rng_next(rng);
	op->c = rng_number(rng);
	op->d = rng_number(rng);
	if (op->kind == STATE_SEND)
		op->a = rng_below(rng, 18);
}

size_t
target_phrase(struct rng *rng, struct op *ops, size_t max)
{
	size_t i;

	/* Change something, and let the client send. */
	for (i = 0; i < MIN(max, 4); i++) {
		target_op(rng, &ops[i]);
		if (i > 0)
			ops[i].kind = i == 1 ? STATE_SEND : STATE_RUN;
	}
	return (i);
}
