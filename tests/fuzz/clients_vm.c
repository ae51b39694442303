/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One client of clients_fuzz: a thread that sends messages, and two that write
 * to the memory that it shares.  Its messages are valid, so that valed must
 * never drop it.  Words of memory are accessed as relaxed atomics: the client's
 * own threads share them.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/systm.h>
#include <dev/e1000/e82545_reg.h>
#include <linux/vfio.h>
#include <net/paravirt.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adapter.h"
#include "clients.h"
#include "send_fds.h"
#include "vfio_user.h"
#include "vfu_message.h"
#include "wait_until.h"

#define	WORDS(bytes)	((bytes) / sizeof(uint64_t))
/* Eight equal bytes, so that each aligned word of a copy has this value. */
#define	SECRET(n)	((0xa1 + (n)) * 0x0101010101010101ULL)
#define	GUARD		0x6767676767676767ULL	/* pages between areas */
#define	QUIET		0x5a5a5a5a5a5a5a5aULL	/* memory not in use */
#define	MARK		0xb7b7b7b7b7b7b7b7ULL	/* a frame of clients_work() */
#define	FRAME_LEN	64		/* its length */
#define	PAUSE_NS	50000
#define	MULTI		8		/* writes in one message, at most */

/* What must not be written to any more. */
#define	QUIET_RX	0x1		/* receive buffers */
#define	QUIET_RINGS	0x2		/* descriptors' status, CSB */

static uint64_t *
area(const struct client *c, enum area a)
{
	return ((uint64_t *)(void *)(c->mem + AREA_OFFSET(a)));
}

static uint64_t *
rx_status(const struct client *c, unsigned int i)
{
	return (area(c, AREA_RINGS) + WORDS(RINGS_RX) + 2 * i + 1);
}

static struct paravirt_csb *
csb(const struct client *c)
{
	return ((struct paravirt_csb *)(void *)(c->mem +
	    AREA_OFFSET(AREA_RINGS) + RINGS_CSB));
}

/*
 * That of the secret area does not come about by chance, if the adapter takes
 * for a descriptor what is none: such as bytes of two, an address and a length.
 */
uint64_t
client_gpa(enum area a)
{
	static const uint64_t gpa[AREAS] = {
		0x100000, 0x4000000, 0x8000000, 0xb6d3a91c5e740000
	};

	return (gpa[a]);
}

static void
fill(uint64_t *words, size_t n, uint64_t value)
{
	size_t i;

	for (i = 0; i < n; i++)
		atomic_store_64(&words[i], value);
}

static void
check_filled(const struct client *c, const char *what, const uint64_t *words,
    size_t n, uint64_t value)
{
	uint64_t found;
	size_t i;

	for (i = 0; i < n; i++) {
		found = atomic_load_64(&words[i]);
		if (found == value)
			continue;
		fprintf(stderr, "client %u, message %u: %s, word %zu: "
		    "%#jx was written\n", c->n, c->messages, what, i,
		    (uintmax_t)found);
		INVARIANT(found == value);
	}
}

/* Nobody knows of these, or may read them. */
static void
check_secrets(const struct client *c, enum area a)
{
	const uint64_t *words = area(c, a);
	uint64_t found;
	unsigned int n;
	size_t i;

	for (i = 0; i < WORDS(AREA_SIZE); i++) {
		found = atomic_load_64(&words[i]);
		n = (found & 0xff) - 0xa1;
		if (n >= CLIENTS || found != SECRET(n))
			continue;
		fprintf(stderr, "client %u, message %u: area %u, word %zu: "
		    "client %u's secret\n", c->n, c->messages, a, i, n);
		INVARIANT(found != SECRET(n));
	}
}

void
client_check(const struct client *c)
{
	unsigned int a;

	for (a = 0; a < AREAS; a++) {
		check_filled(c, "guard", area(c, a) - WORDS(AREA_PAGE),
		    WORDS(AREA_PAGE), GUARD);
		if (a != AREA_SECRET)
			check_secrets(c, a);
	}
	check_filled(c, "secret", area(c, AREA_SECRET), WORDS(AREA_SIZE),
	    SECRET(c->n));
}

void
client_init(struct client *c, unsigned int n)
{
	unsigned int a;

	c->n = n;
	c->s = -1;
	c->memfd = memfd_create("clients", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	INVARIANT(c->memfd != -1 && ftruncate(c->memfd, MEMORY_SIZE) == 0);
	INVARIANT(fcntl(c->memfd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	c->mem = mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
	    c->memfd, 0);
	INVARIANT(c->mem != MAP_FAILED);
	for (a = 0; a < AREAS; a++)
		fill(area(c, a) - WORDS(AREA_PAGE), WORDS(AREA_PAGE), GUARD);
	fill(area(c, AREA_SECRET), WORDS(AREA_SIZE), SECRET(n));
	c->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	c->unmask_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	INVARIANT(c->event_fd != -1 && c->unmask_fd != -1);
}

/*
 * Writers.
 */

static uint64_t
some_address(struct rng *rng)
{
	switch (rng_below(rng, 16)) {
	case 0:
		return (0);
	case 1:
		return (client_gpa(AREA_RINGS) + rng_below(rng, AREA_SIZE));
	case 2:
		return (client_gpa(AREA_TX) + AREA_SIZE -
		    rng_below(rng, 2000));
	case 3:
		return (client_gpa(AREA_RX) - rng_below(rng, 64));
	case 4:
		return (rng_next(rng));
	case 5:
		return (client_gpa(AREA_RX) + rng_below(rng, AREA_SIZE));
	default:
		return (client_gpa(AREA_TX) + rng_below(rng, AREA_SIZE));
	}
}

static void
write_tx_desc(struct rng *rng, uint64_t *desc)
{
	uint64_t cmd;

	cmd = rng_one_in(rng, 4) ? rng_below(rng, 1 << 20) :
	    60 + rng_below(rng, 1500);
	if (!rng_one_in(rng, 4))
		cmd |= E82545_TXD_EOP;
	if (rng_one_in(rng, 2))
		cmd |= E82545_TXD_RS;
	if (rng_one_in(rng, 4))
		cmd |= E82545_TXD_IDE;
	if (rng_one_in(rng, 8))
		cmd |= E82545_TXD_TSE;
	if (rng_one_in(rng, 3))
		cmd |= E82545_TXD_DEXT | (rng_one_in(rng, 2) ?
		    E82545_TXD_DTYP_DATA : E82545_TXD_DTYP_CONTEXT);
	else
		cmd &= ~(uint64_t)E82545_TXD_DTYP;
	cmd |= (uint64_t)rng_next(rng) << 40;
	atomic_store_64(&desc[0], some_address(rng));
	atomic_store_64(&desc[1], cmd);
}

static void
write_csb(struct rng *rng, struct paravirt_csb *p)
{
	uint32_t *const fields[] = {
		&p->guest_tdt, &p->guest_rdt, &p->guest_csb_on,
		&p->guest_need_txkick, &p->guest_need_rxkick,
		&p->guest_txkick_at, &p->host_txcycles_lim
	};
	unsigned int i, n;

	for (n = rng_below(rng, 8); n > 0; n--) {
		i = rng_below(rng, nitems(fields));
		atomic_store_32(fields[i], i < 2 || rng_one_in(rng, 4) ?
		    rng_below(rng, RINGS_TX_DESCS) : rng_one_in(rng, 8) ?
		    rng_number(rng) : rng_below(rng, 2));
	}
}

static void
write_rings(struct client *c, struct rng *rng)
{
	uint64_t *rings = area(c, AREA_RINGS);
	unsigned int i;

	for (i = 0; i < 32; i++) {
		write_tx_desc(rng, rings + WORDS(RINGS_TX) +
		    2 * rng_below(rng, RINGS_TX_DESCS));
		atomic_store_64(rings + WORDS(RINGS_RX) +
		    2 * rng_below(rng, RINGS_RX_DESCS), rng_one_in(rng, 8) ?
		    some_address(rng) : client_gpa(AREA_RX) +
		    rng_below(rng, AREA_SIZE - 2048));
	}
	write_csb(rng, csb(c));
}

/* Ethernet and IP headers of a frame to anybody, for all offloads. */
static void
write_header(struct client *c, struct rng *rng, uint64_t *words)
{
	uint8_t h[40];
	uint64_t word;
	unsigned int i;

	memset(h, 0, sizeof(h));
	if (rng_one_in(rng, 3))
		memset(h, 0xff, 6);
	else {
		h[0] = 2;
		h[5] = rng_below(rng, CLIENTS);
	}
	h[6] = 2;
	h[11] = c->n;
	h[12] = 8;
	h[14] = 0x45;
	h[16] = rng_below(rng, 8);
	h[23] = rng_one_in(rng, 2) ? 6 : 17;
	h[32] = h[33] = rng_below(rng, 256);
	for (i = 0; i < WORDS(sizeof(h)); i++) {
		memcpy(&word, h + i * sizeof(word), sizeof(word));
		atomic_store_64(&words[i], word);
	}
}

/* Withdraw pages: there is a hole until somebody looks, and then zeros. */
static void
punch(const struct client *c, struct rng *rng, enum area a)
{
	INVARIANT(madvise(c->mem + AREA_OFFSET(a) +
	    AREA_PAGE * rng_below(rng, AREA_SIZE / AREA_PAGE / 2),
	    AREA_PAGE * (1 + rng_below(rng, 16)), MADV_REMOVE) == 0);
}

static void
write_frames(struct client *c, struct rng *rng)
{
	uint64_t *words = area(c, AREA_TX), one = 1;
	size_t at;
	int i;

	for (i = 0; i < 16; i++) {
		/* Frames of any offset overlap. */
		at = 8 * rng_below(rng, WORDS(AREA_SIZE) / 8 - 1);
		write_header(c, rng, words + at);
		atomic_store_64(&words[rng_below(rng, WORDS(AREA_SIZE))],
		    0xfa00000000000000 | (uint64_t)c->n << 32 | rng_next(rng));
	}
	if (rng_one_in(rng, 16)) {
		punch(c, rng, AREA_TX);
		atomic_add_32(&c->frame_punches, 1);
	}
	if (rng_one_in(rng, 8))
		(void)!write(c->unmask_fd, &one, sizeof(one));
}

static void
writer(struct client *c, unsigned int n,
    void (*func)(struct client *c, struct rng *rng))
{
	const struct timespec pause = { 0, PAUSE_NS };
	struct rng rng = { c->seed + n };

	while (atomic_load_32(&c->stop) == 0) {
		func(c, &rng);
		if (rng_one_in(&rng, 4))
			nanosleep(&pause, NULL);
	}
}

static void *
ring_writer(void *arg)
{
	writer(arg, 1, write_rings);
	return (NULL);
}

static void *
frame_writer(void *arg)
{
	writer(arg, 2, write_frames);
	return (NULL);
}

/*
 * Messages.
 */

static void
receive(struct client *c, void *buf, size_t len)
{
	ssize_t n;

	for (; len > 0; len -= n) {
		wait_readable(c->s, "client %u, message %u: no reply", c->n,
		    c->messages);
		n = recv(c->s, buf, len, 0);
		/* Messages are valid: valed does not drop the client. */
		INVARIANT(n > 0);
		buf = (uint8_t *)buf + n;
	}
}

/* Send a message, and wait for its reply, which must not be an error. */
static void
message(struct client *c, uint16_t command, const void *data, size_t len,
    int fd, bool reply)
{
	struct vfio_user_header h;
	uint8_t msg[VFU_MSG_MAX], rest[VFU_REPLY_MAX];
	ssize_t n;

	INVARIANT(len <= sizeof(msg) - sizeof(h));
	len = vfu_message(msg, c->id++, command, reply ? 0 :
	    VFIO_USER_F_NO_REPLY, data, len);
	c->messages++;
	/* The socket has space for a message: or else valed is stuck. */
	n = send_fds(c->s, msg, len, &fd, fd != -1, 0);
	INVARIANT(n == (ssize_t)len);
	if (!reply)
		return;
	receive(c, &h, sizeof(h));
	INVARIANT(h.id == (uint16_t)(c->id - 1));
	if ((h.flags & VFIO_USER_F_ERROR) != 0)
		fprintf(stderr, "client %u, message %u: command %u: %s\n",
		    c->n, c->messages, command, strerror(h.error));
	INVARIANT((h.flags & VFIO_USER_F_ERROR) == 0);
	INVARIANT(h.size >= sizeof(h) && h.size <= sizeof(h) + sizeof(rest));
	receive(c, rest, h.size - sizeof(h));
}

/* Write `size' bytes of `value'. */
static void
region_write(struct client *c, uint32_t region, uint64_t offset,
    uint32_t value, uint32_t size, bool reply)
{
	struct {
		struct vfio_user_region_rw rw;
		uint32_t	value;
	} data = { { offset, region, size }, value };

	message(c, VFIO_USER_REGION_WRITE, &data, sizeof(data.rw) + size, -1,
	    reply);
}

static void
put(struct client *c, uint32_t reg, uint32_t value, bool reply)
{
	region_write(c, VFIO_PCI_BAR0_REGION_INDEX, reg, value, sizeof(value),
	    reply);
}

static void
get(struct client *c, uint32_t reg)
{
	const struct vfio_user_region_rw rw = {
		reg, VFIO_PCI_BAR0_REGION_INDEX, sizeof(uint32_t)
	};

	message(c, VFIO_USER_REGION_READ, &rw, sizeof(rw), -1, true);
}

static void
put_command(struct client *c, uint16_t value)
{
	region_write(c, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, value,
	    sizeof(value), true);
}

/* Several register writes. */
static void
put_multi(struct client *c, const uint32_t (*writes)[2], unsigned int n,
    bool reply)
{
	struct {
		struct vfio_user_write_multi multi;
		struct vfio_user_write_one one[16];
	} data;
	unsigned int i;

	INVARIANT(n <= nitems(data.one));
	memset(&data, 0, sizeof(data));
	data.multi.wr_cnt = n;
	for (i = 0; i < n; i++) {
		data.one[i].offset = writes[i][0];
		data.one[i].region = VFIO_PCI_BAR0_REGION_INDEX;
		data.one[i].count = sizeof(uint32_t);
		memcpy(data.one[i].data, &writes[i][1], sizeof(uint32_t));
	}
	message(c, VFIO_USER_REGION_WRITE_MULTI, &data, sizeof(data.multi) +
	    n * sizeof(data.one[0]), -1, reply);
}

/* Map an area: as it is; or as an IOMMU has it, which permits less. */
static void
map(struct client *c, enum area a, bool iommu)
{
	struct vfio_user_dma_map dma = {
		sizeof(dma), VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		AREA_OFFSET(a), client_gpa(a), AREA_SIZE
	};
	uint32_t at, swap = 0;

	if ((c->mapped & 1u << a) != 0)
		return;
	if (iommu) {
		if (a == AREA_TX)
			dma.flags = VFIO_DMA_MAP_FLAG_READ;
		if (a == AREA_RX)
			dma.flags = VFIO_DMA_MAP_FLAG_WRITE;
		dma.size = AREA_PAGE;
		swap = rng_below(&c->rng, 4) * AREA_PAGE;
	}
	for (at = 0; at < AREA_SIZE; at += dma.size) {
		dma.address = client_gpa(a) + at;
		dma.offset = AREA_OFFSET(a) + (at ^ swap);
		message(c, VFIO_USER_DMA_MAP, &dma, sizeof(dma), c->memfd,
		    true);
	}
	c->mapped |= 1u << a;
	c->changes++;
}

static void
unmap(struct client *c, enum area a)
{
	const struct vfio_user_dma_unmap dma = {
		sizeof(dma), 0, client_gpa(a), AREA_SIZE
	};

	if ((c->mapped & 1u << a) == 0)
		return;
	message(c, VFIO_USER_DMA_UNMAP, &dma, sizeof(dma), -1, true);
	c->mapped &= ~(1u << a);
	c->changes++;
}

static void
unmap_all(struct client *c)
{
	const struct vfio_user_dma_unmap dma = {
		sizeof(dma), VFIO_DMA_UNMAP_FLAG_ALL, 0, 0
	};

	message(c, VFIO_USER_DMA_UNMAP, &dma, sizeof(dma), -1, true);
	c->mapped = 0;
	c->changes++;
}

static void
map_all(struct client *c)
{
	unsigned int a, first;

	first = rng_below(&c->rng, AREAS);
	for (a = 0; a < AREAS; a++)
		map(c, (first + a) % AREAS, false);
}

static void
set_irqs(struct client *c, uint32_t index, uint32_t action, int fd)
{
	const struct vfio_user_irq_set set = {
		sizeof(set), VFIO_IRQ_SET_DATA_EVENTFD | action, index, 0, 1
	};

	message(c, VFIO_USER_DEVICE_SET_IRQS, &set, sizeof(set), fd, true);
}

static void
interrupts(struct client *c)
{
	set_irqs(c, VFIO_PCI_INTX_IRQ_INDEX, VFIO_IRQ_SET_ACTION_TRIGGER,
	    c->event_fd);
	set_irqs(c, VFIO_PCI_INTX_IRQ_INDEX, VFIO_IRQ_SET_ACTION_UNMASK,
	    c->unmask_fd);
	set_irqs(c, VFIO_PCI_MSI_IRQ_INDEX, VFIO_IRQ_SET_ACTION_TRIGGER,
	    rng_one_in(&c->rng, 2) ? c->event_fd : -1);
}

static void
disconnect(struct client *c)
{
	(void)shutdown(c->s, SHUT_RDWR);
	close(c->s);
	c->s = -1;
	c->mapped = 0;
}

static void
connect_client(struct client *c)
{
	static const struct vfio_user_version version = {
		VFIO_USER_MAJOR, VFIO_USER_MINOR
	};

	c->s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	INVARIANT(connect(c->s, (void *)&c->sun, c->sunlen) == 0);
	c->connects++;
	message(c, VFIO_USER_VERSION, &version, sizeof(version), -1, true);
}

/* Set the rings up, and start. */
static void
drive(struct client *c)
{
	struct rng *rng = &c->rng;
	uint32_t rctl = E82545_RCTL_EN | E82545_RCTL_UPE | E82545_RCTL_MPE |
	    E82545_RCTL_BAM | E82545_RCTL_SECRC;
	uint32_t rings = client_gpa(AREA_RINGS);

	if (rng_one_in(rng, 3))
		rctl |= E82545_RCTL_BSIZE_256;
	if (rng_one_in(rng, 3))
		rctl |= E82545_RCTL_LPE;
	if (rng_one_in(rng, 8))
		rctl |= E82545_RCTL_LBM_TCVR;
	const uint32_t writes[][2] = {
		{ E82545_CTRL, E82545_CTRL_SLU },
		{ E82545_CSBAL, rng_one_in(rng, 2) ? rings + RINGS_CSB : 0 },
		{ E82545_TDBAL, rings + RINGS_TX },
		{ E82545_TDLEN, RINGS_TX_DESCS * 16 },
		{ E82545_TDH, 0 },
		{ E82545_RDBAL, rings + RINGS_RX },
		{ E82545_RDLEN, rng_one_in(rng, 2) ? 65408 :
		    128 * (1 + rng_below(rng, 64)) },
		{ E82545_RDH, 0 },
		{ E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP },
		{ E82545_RDT, rng_below(rng, 4000) },
		{ E82545_RXCSUM, rng_one_in(rng, 2) ?
		    E82545_RXCSUM_IPOFL | E82545_RXCSUM_TUOFL : 0 },
		{ E82545_IMS, 0xff },
		{ E82545_ITR, rng_one_in(rng, 2) ? rng_below(rng, 1000) : 0 },
		{ E82545_RCTL, rctl },
	};

	put_multi(c, writes, nitems(writes), rng_one_in(rng, 2));
}

static void
kick(struct client *c)
{
	struct rng *rng = &c->rng;
	uint32_t writes[MULTI][2];
	unsigned int i, n;

	n = 1 + rng_below(rng, MULTI);
	for (i = 0; i < n; i++) {
		writes[i][0] = rng_one_in(rng, 2) ? E82545_TDT : E82545_RDT;
		writes[i][1] = rng_one_in(rng, 50) ? rng_number(rng) :
		    writes[i][0] == E82545_TDT ?
		    rng_below(rng, RINGS_TX_DESCS) : rng_below(rng, 4088);
	}
	put_multi(c, (const uint32_t (*)[2])writes, n, false);
}

/*
 * Memory that must not be written to any more: fill it, let time pass, and look
 * at it.  Registers may be written meanwhile if `use' is set: the adapter has
 * no access to memory.
 */
static void
check_quiet(struct client *c, unsigned int what, bool use)
{
	const struct timespec pause = { 0, PAUSE_NS };
	struct paravirt_csb *p = csb(c);
	uint32_t *const fields[] = {
		&p->host_tdh, &p->host_rdh, &p->host_need_rxkick,
		&p->host_isr, &p->host_rxkick_at
	};
	unsigned int i, n;

	c->checks++;
	if ((what & QUIET_RX) != 0)
		fill(area(c, AREA_RX), WORDS(AREA_SIZE), QUIET);
	if ((what & QUIET_RINGS) != 0) {
		for (i = 0; i < RINGS_RX_DESCS; i++)
			atomic_store_64(rx_status(c, i), QUIET);
		for (i = 0; i < nitems(fields); i++)
			atomic_store_32(fields[i], (uint32_t)QUIET);
	}
	if (use && rng_one_in(&c->rng, 2))
		drive(c);
	for (n = rng_below(&c->rng, 8); n > 0; n--) {
		nanosleep(&pause, NULL);
		if (use)
			kick(c);
	}
	if ((what & QUIET_RX) != 0)
		check_filled(c, "receive buffers", area(c, AREA_RX),
		    WORDS(AREA_SIZE), QUIET);
	if ((what & QUIET_RINGS) != 0) {
		for (i = 0; i < RINGS_RX_DESCS; i++)
			check_filled(c, "descriptor", rx_status(c, i), 1,
			    QUIET);
		for (i = 0; i < nitems(fields); i++)
			INVARIANT(atomic_load_32(fields[i]) ==
			    (uint32_t)QUIET);
	}
	if (rng_one_in(&c->rng, 4))
		client_check(c);
}

static void
start(struct client *c)
{
	connect_client(c);
	/* Whatever valed had mapped for the client that left. */
	check_quiet(c, QUIET_RX | QUIET_RINGS, true);
	map_all(c);
	interrupts(c);
	put_command(c, PCI_COMMAND_IO | PCI_COMMAND_MEMORY |
	    PCI_COMMAND_MASTER);
	drive(c);
}

/* A register that takes an address or a length gets one of these areas'. */
static void
move(struct client *c)
{
	static const uint32_t regs[] = {
		E82545_TDBAL, E82545_RDBAL, E82545_CSBAL, E82545_TDLEN,
		E82545_RDLEN, E82545_RCTL, E82545_TCTL, E82545_RDTR,
		E82545_ICS, E82545_TDH, E82545_RDH, E82545_ITR
	};
	struct rng *rng = &c->rng;
	uint32_t reg, value;

	reg = regs[rng_below(rng, nitems(regs))];
	value = rng_number(rng);
	switch (reg) {
	case E82545_TDBAL:
	case E82545_RDBAL:
	case E82545_CSBAL:
		value = client_gpa(rng_below(rng, AREA_SECRET)) +
		    rng_below(rng, AREA_SIZE);
		break;
	case E82545_RCTL:
		value = E82545_RCTL_EN | (value & (E82545_RCTL_UPE |
		    E82545_RCTL_LPE | E82545_RCTL_LBM | E82545_RCTL_BSIZE_256 |
		    E82545_RCTL_BSEX | E82545_RCTL_VFE));
		break;
	}
	put(c, reg, value, rng_one_in(rng, 4));
}

/* Take memory away, or stop the adapter, and see that it stops. */
static void
withdraw(struct client *c)
{
	struct rng *rng = &c->rng;
	enum area a;

	switch (rng_below(rng, 8)) {
	case 0:
	case 1:
		a = rng_below(rng, AREAS);
		unmap(c, a);
		if (a == AREA_RX || a == AREA_RINGS)
			check_quiet(c, a == AREA_RX ? QUIET_RX : QUIET_RINGS,
			    true);
		map(c, a, rng_one_in(&c->rng, 4));
		break;
	case 2:
		unmap_all(c);
		check_quiet(c, QUIET_RX | QUIET_RINGS, true);
		map_all(c);
		break;
	case 3:
		message(c, VFIO_USER_DEVICE_RESET, NULL, 0, -1, true);
		check_quiet(c, QUIET_RX | QUIET_RINGS, true);
		put_command(c, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
		drive(c);
		break;
	case 4:
		put(c, E82545_CTRL, E82545_CTRL_RST, true);
		check_quiet(c, QUIET_RX | QUIET_RINGS, false);
		drive(c);
		break;
	case 5:
		put_command(c, PCI_COMMAND_MEMORY);
		check_quiet(c, QUIET_RX | QUIET_RINGS, true);
		put_command(c, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
		break;
	case 6:
		/* Nor may the others that write be in AREA_RX. */
		put(c, E82545_TDBAL, client_gpa(AREA_RINGS), false);
		put(c, E82545_CSBAL, 0, false);
		put(c, E82545_RCTL, 0, true);
		check_quiet(c, QUIET_RX, false);
		drive(c);
		break;
	case 7:
		disconnect(c);
		start(c);
		break;
	}
}

static void
step(struct client *c)
{
	uint64_t n;

	switch (rng_below(&c->rng, 24)) {
	case 0:
	case 1:
		withdraw(c);
		break;
	case 2:
		move(c);
		break;
	case 3:
		drive(c);
		break;
	case 4:
		(void)!read(c->event_fd, &n, sizeof(n));
		get(c, rng_one_in(&c->rng, 2) ? E82545_ICR : E82545_GPRC);
		break;
	case 5:
		interrupts(c);
		break;
	case 6:
		punch(c, &c->rng, rng_one_in(&c->rng, 2) ? AREA_RX :
		    AREA_RINGS);
		c->punches++;
		break;
	default:
		kick(c);
		break;
	}
}

void
client_run(struct client *c, unsigned int messages)
{
	pthread_t rings, frames;
	unsigned int end = c->messages + messages;

	c->rng.state = c->seed;
	atomic_store_32(&c->stop, 0);
	INVARIANT(pthread_create(&rings, NULL, ring_writer, c) == 0);
	INVARIANT(pthread_create(&frames, NULL, frame_writer, c) == 0);
	start(c);
	while (c->messages < end)
		step(c);
	disconnect(c);
	atomic_store_32(&c->stop, 1);
	INVARIANT(pthread_join(rings, NULL) == 0);
	INVARIANT(pthread_join(frames, NULL) == 0);
	client_check(c);
}

/*
 * Correct clients.
 */

static void
start_correct(struct client *c)
{
	const uint32_t rings = client_gpa(AREA_RINGS);
	const uint32_t writes[][2] = {
		{ E82545_CTRL, E82545_CTRL_SLU },
		{ E82545_TDBAL, rings + RINGS_TX },
		{ E82545_TDLEN, RINGS_TX_DESCS * 16 },
		{ E82545_RDBAL, rings + RINGS_RX },
		{ E82545_RDLEN, 65408 },
		{ E82545_TCTL, E82545_TCTL_EN },
		{ E82545_RDT, 65408 / 16 - 1 },
		{ E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM },
	};
	unsigned int i;

	fill(area(c, AREA_RX), WORDS(AREA_SIZE), QUIET);
	for (i = 0; i < RINGS_RX_DESCS; i++) {
		atomic_store_64(rx_status(c, i) - 1, client_gpa(AREA_RX));
		atomic_store_64(rx_status(c, i), 0);
	}
	connect_client(c);
	map_all(c);
	put_command(c, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	put_multi(c, writes, nitems(writes), true);
}

/* Send n frames with one kick, and wait until valed has sent them. */
static void
send_frames(struct client *c, uint32_t *tail, unsigned int n)
{
	uint64_t *desc, *rings = area(c, AREA_RINGS) + WORDS(RINGS_TX);

	for (; n > 0; n--) {
		desc = rings + 2 * *tail;
		atomic_store_64(&desc[0], client_gpa(AREA_TX));
		atomic_store_64(&desc[1], FRAME_LEN | E82545_TXD_EOP |
		    E82545_TXD_IFCS | E82545_TXD_RS);
		*tail = (*tail + 1) % RINGS_TX_DESCS;
	}
	put(c, E82545_TDT, *tail, true);
	wait_until((atomic_load_64(&desc[1]) &
	    E82545_REST_STATUS(E82545_TXD_DD)) != 0,
	    "frame at %u of client %u not sent", *tail, c->n);
}

/*
 * More than a batch, so that valed goes on by itself.  Frames that were sent to
 * an earlier client come first, or fill the port, and then another is needed.
 */
void
clients_work(struct client *from, struct client *to)
{
	const uint64_t *last = area(to, AREA_RX) + WORDS(FRAME_LEN) - 1;
	uint64_t *frame = area(from, AREA_TX);
	uint32_t tail = 0;

	start_correct(from);
	start_correct(to);
	fill(frame, WORDS(FRAME_LEN), MARK);
	atomic_store_64(&frame[0], UINT64_MAX);
	atomic_store_64(&frame[1], 0xb7b7b7b702020202);
	send_frames(from, &tail, 1000);
	wait_until(atomic_load_64(last) == MARK ||
	    (send_frames(from, &tail, 1), false),
	    "client %u has not received a frame of client %u", to->n, from->n);
	disconnect(from);
	disconnect(to);
}
