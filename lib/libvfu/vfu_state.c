/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The state of a device as bytes; see vfu_state.h.
 *
 * A header, and fields in the order of state_put(): numbers of 1, 2, 4 and 8
 * bytes, little endian.  A reader checks the version, the length and a CRC-32
 * first, which find what is cut off or was not meant; then each value, since a
 * CRC proves nothing.
 */

#include <sys/param.h>
#include <linux/pci_regs.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "peer_fd.h"
#include "peer_keep.h"
#include "vfu_device.h"
#include "vfu_state.h"

#define	MAGIC		0x56465553	/* "VFUS" */
#define	HEADER		16	/* magic, version, length, CRC: 4 each */

/* Bits of `flags'. */
#define	F_CONNECTED	0x0001
#define	F_NEGOTIATED	0x0002
#define	F_INTX		0x0004
#define	F_MSI		0x0008
#define	F_UNMASK	0x0010
#define	F_MASKED	0x0020
#define	F_SHOWN		0x0040
#define	F_INTX_DISABLED	0x0080
#define	F_UNMASKING	0x0100
#define	F_MSIX(v)	(0x0200 << (v))	/* of MSI-X; none without it */
#define	F_ALL		(F_MSIX(VFU_IRQ_VECTORS) - 1)

/* Counters that a state may have. */
#define	COUNTERS_MAX	64
_Static_assert(VFU_NCOUNTERS <= COUNTERS_MAX, "a state has all");

struct state {
	uint32_t	flags;
	struct vfu_progress progress;
	uint64_t	taken;
	struct vfu_irq_state irq;
	uint32_t	refusals;
	uint64_t	multi_tag;
	uint32_t	multi_done;
	uint32_t	ncounters;
	uint64_t	counters[COUNTERS_MAX];
	uint8_t		cfg[VFU_PCI_SIZE];
	const uint8_t	*out;		/* vpr_out_len bytes */
};

/* Bytes that are written or read; `bad' if there are too few. */
struct cursor {
	uint8_t		*p;
	size_t		left;
	bool		bad;
};

static uint32_t
crc32_of(const uint8_t *p, size_t len)
{
	uint32_t crc = UINT32_MAX;
	unsigned int i;

	for (; len > 0; len--) {
		crc ^= *p++;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return (~crc);
}

/* Take the next `n' bytes.  Returns NULL if there are fewer. */
static uint8_t *
next(struct cursor *c, size_t n)
{
	uint8_t *p = c->p;

	if (c->bad || n > c->left) {
		c->bad = true;
		return (NULL);
	}
	c->p += n;
	c->left -= n;
	return (p);
}

static void
put(struct cursor *c, unsigned int n, uint64_t value)
{
	uint8_t *p = next(c, n);
	unsigned int i;

	for (i = 0; p != NULL && i < n; i++)
		p[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t
get(struct cursor *c, unsigned int n)
{
	const uint8_t *p = next(c, n);
	uint64_t value = 0;
	unsigned int i;

	for (i = 0; p != NULL && i < n; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return (value);
}

static void
put_bytes(struct cursor *c, const void *data, size_t n)
{
	uint8_t *p = next(c, n);

	if (p != NULL && n > 0)
		memcpy(p, data, n);
}

/*
 * Out of a device that another process has left.
 */

static uint32_t
flag(bool set, uint32_t bit)
{
	return (set ? bit : 0);
}

/* Return whether the values that a state has are possible. */
static bool
progress_ok(const struct vfu_progress *p, uint64_t taken)
{
	return (p->vpr_out_len <= VFU_BUFFER &&
	    p->vpr_out_pos <= p->vpr_out_len &&
	    p->vpr_piped <= p->vpr_out_len - p->vpr_out_pos &&
	    p->vpr_done >= taken &&
	    p->vpr_done - taken <= 2 * VFU_BUFFER + VFU_MSG_MAX);
}

/* Read a bool of another process, which may be any number. */
static bool
truth(const bool *b)
{
	uint8_t byte;

	memcpy(&byte, b, sizeof(byte));
	return (byte != 0);
}

static bool
state_gather(const struct vfu_device *vd, struct state *s)
{
	const struct vfu_irq *irq = &vd->vdev_irq;
	const struct vfu_stream *st = &vd->vdev_server.stream;
	struct vfu_progress *p = &s->progress;
	unsigned int v;

	memset(s, 0, sizeof(*s));
	memcpy(p, &st->vsm_progress[st->vsm_now & 1], sizeof(*p));
	s->taken = vfu_stream_taken(st);
	if (!progress_ok(p, s->taken))
		return (false);
	s->flags = flag(truth(&p->vpr_connected), F_CONNECTED) |
	    flag(truth(&p->vpr_negotiated), F_NEGOTIATED) |
	    flag(irq->intx_fd != -1, F_INTX) |
	    flag(irq->msi_fd != -1, F_MSI) |
	    flag(irq->unmask_fd != -1, F_UNMASK) |
	    flag(truth(&irq->masked), F_MASKED) |
	    flag(truth(&irq->shown), F_SHOWN) |
	    flag(truth(&irq->intx_disabled), F_INTX_DISABLED) |
	    flag(truth(&irq->unmasking), F_UNMASKING);
	for (v = 0; v < VFU_IRQ_VECTORS; v++)
		s->flags |= flag(irq->msix_fd[v] != -1, F_MSIX(v));
	/* Without a client, nothing of it is left. */
	if ((s->flags & F_CONNECTED) == 0) {
		s->flags = 0;
		p->vpr_out_pos = p->vpr_out_len = p->vpr_piped = 0;
		s->taken = p->vpr_done;
	}
	s->irq.vis_rises = irq->rises;
	s->irq.vis_sent = irq->sent;
	s->irq.vis_unmasked = irq->unmasked;
	s->refusals = vd->vdev_refusals;
	s->multi_tag = vd->vdev_multi_tag;
	s->multi_done = vd->vdev_multi_done;
	s->ncounters = VFU_NCOUNTERS;
	memcpy(s->counters, vd->vdev_counters, sizeof(vd->vdev_counters));
	memcpy(s->cfg, vd->vdev_pci.cfg, sizeof(s->cfg));
	s->out = vd->vdev_server.out + p->vpr_out_pos;
	p->vpr_out_len -= p->vpr_out_pos;
	return (true);
}

static void
state_put(struct cursor *c, const struct state *s)
{
	uint32_t i;

	put(c, 4, s->flags);
	put(c, 8, s->progress.vpr_done);
	put(c, 8, s->taken);
	put(c, 4, s->progress.vpr_out_len);
	put(c, 4, s->progress.vpr_piped);
	put(c, 4, s->irq.vis_rises);
	put(c, 8, s->irq.vis_sent);
	put(c, 8, s->irq.vis_unmasked);
	put(c, 4, s->refusals);
	put(c, 8, s->multi_tag);
	put(c, 4, s->multi_done);
	put(c, 4, s->ncounters);
	for (i = 0; i < s->ncounters; i++)
		put(c, 8, s->counters[i]);
	put_bytes(c, s->cfg, sizeof(s->cfg));
	put_bytes(c, s->out, s->progress.vpr_out_len);
}

size_t
vfu_state_save(const struct vfu_device *vd, void *buf, size_t size,
    const char **why)
{
	struct cursor header = { .p = buf, .left = MIN(size, HEADER) };
	struct cursor c = { .p = buf, .left = size };
	struct state s;
	size_t len;

	*why = "the device's state is not consistent";
	if (!state_gather(vd, &s))
		return (0);
	*why = "the device's state does not fit";
	(void)next(&c, HEADER);
	state_put(&c, &s);
	if (c.bad)
		return (0);
	len = size - c.left;
	put(&header, 4, MAGIC);
	put(&header, 4, VFU_STATE_VERSION);
	put(&header, 4, len);
	put(&header, 4, crc32_of((const uint8_t *)buf + HEADER, len - HEADER));
	return (len);
}

/*
 * Into a new device.
 */

static bool
state_get(struct state *s, const void *buf, size_t len, const char **why)
{
	struct cursor c = { .p = (uint8_t *)(uintptr_t)buf, .left = len };
	const uint8_t *payload;
	const uint8_t *cfg;
	uint32_t crc, i;

	*why = "no state of a device";
	if (get(&c, 4) != MAGIC)
		return (false);
	*why = "a state of an unknown version";
	if (get(&c, 4) != VFU_STATE_VERSION)
		return (false);
	*why = "the state is damaged";
	if (get(&c, 4) != len)
		return (false);
	crc = (uint32_t)get(&c, 4);
	payload = c.p;
	if (c.bad || crc != crc32_of(payload, len - HEADER))
		return (false);
	*why = "the state is not consistent";
	memset(s, 0, sizeof(*s));
	s->flags = (uint32_t)get(&c, 4);
	s->progress.vpr_done = get(&c, 8);
	s->taken = get(&c, 8);
	s->progress.vpr_out_len = (uint32_t)get(&c, 4);
	s->progress.vpr_piped = (uint32_t)get(&c, 4);
	s->irq.vis_rises = (uint32_t)get(&c, 4);
	s->irq.vis_sent = get(&c, 8);
	s->irq.vis_unmasked = get(&c, 8);
	s->refusals = (uint32_t)get(&c, 4);
	s->multi_tag = get(&c, 8);
	s->multi_done = (uint32_t)get(&c, 4);
	s->ncounters = (uint32_t)get(&c, 4);
	if (s->ncounters > COUNTERS_MAX)
		return (false);
	for (i = 0; i < s->ncounters; i++)
		s->counters[i] = get(&c, 8);
	cfg = next(&c, sizeof(s->cfg));
	if (cfg == NULL || !progress_ok(&s->progress, s->taken))
		return (false);
	memcpy(s->cfg, cfg, sizeof(s->cfg));
	s->out = next(&c, s->progress.vpr_out_len);
	if (c.bad || c.left != 0 || (s->flags & ~F_ALL) != 0)
		return (false);
	if ((s->flags & F_CONNECTED) == 0)
		return (s->flags == 0 && s->progress.vpr_out_len == 0 &&
		    s->progress.vpr_done == s->taken);
	s->progress.vpr_connected = true;
	s->progress.vpr_negotiated = (s->flags & F_NEGOTIATED) != 0;
	s->irq.vis_masked = (s->flags & F_MASKED) != 0;
	s->irq.vis_shown = (s->flags & F_SHOWN) != 0;
	s->irq.vis_intx_disabled = (s->flags & F_INTX_DISABLED) != 0;
	s->irq.vis_unmasking = (s->flags & F_UNMASKING) != 0;
	return (true);
}

/* A client's descriptors. */
enum kept_fd {
	KEPT_CLIENT, KEPT_PIPE0, KEPT_PIPE1, KEPT_INTX, KEPT_MSI, KEPT_UNMASK,
	KEPT_MSIX, NKEPT = KEPT_MSIX + VFU_IRQ_VECTORS
};

static const struct {
	const char	*name;
	uint32_t	flag;		/* if it must be there */
} kept_fds[NKEPT] = {
	[KEPT_CLIENT] = { "client", F_CONNECTED },
	[KEPT_PIPE0] = { "pipe.0", F_CONNECTED },
	[KEPT_PIPE1] = { "pipe.1", F_CONNECTED },
	[KEPT_INTX] = { "intx", F_INTX },
	[KEPT_MSI] = { "msi", F_MSI },
	[KEPT_UNMASK] = { "unmask", F_UNMASK },
	[KEPT_MSIX] = { "msix.0", F_MSIX(0) },
	[KEPT_MSIX + 1] = { "msix.1", F_MSIX(1) },
	[KEPT_MSIX + 2] = { "msix.2", F_MSIX(2) },
	[KEPT_MSIX + 3] = { "msix.3", F_MSIX(3) },
	[KEPT_MSIX + 4] = { "msix.4", F_MSIX(4) },
};

/* Return whether a descriptor is of the kind that the name stands for. */
static bool
kept_kind(enum kept_fd which, int fd)
{
	struct stat st;

	if (which >= KEPT_INTX)
		return (vfu_irq_fd(fd));
	if (peer_fstat(fd, &st) == -1)
		return (false);
	if (which == KEPT_CLIENT ? !S_ISSOCK(st.st_mode) :
	    !S_ISFIFO(st.st_mode))
		return (false);
	/* The thread reads it, and must not block. */
	return (fcntl(fd, F_SETFL, O_NONBLOCK) != -1);
}

/* Find the descriptors that the state needs; the others are NULL. */
static int
kept_find(const struct state *s, struct peer_kept *kept, size_t nkept,
    struct peer_kept *found[NKEPT], const char **why)
{
	unsigned int i;

	for (i = 0; i < NKEPT; i++) {
		found[i] = NULL;
		if ((s->flags & kept_fds[i].flag) == 0)
			continue;
		found[i] = peer_kept_find(kept, nkept, kept_fds[i].name);
		*why = "a descriptor of the state is not there";
		if (found[i] == NULL)
			return (ENOENT);
		*why = "a descriptor of the state is of another kind";
		if (!kept_kind(i, found[i]->pkt_fd))
			return (EINVAL);
	}
	return (0);
}

static int
kept_fd(const struct peer_kept *k)
{
	return (k == NULL ? -1 : k->pkt_fd);
}

/* Note that the device has taken the descriptor. */
static void
kept_taken(struct peer_kept *k)
{
	if (k == NULL)
		return;
	k->pkt_used = true;
	k->pkt_fd = -1;
}

/* Restore what cannot fail. */
static void
state_apply(struct vfu_device *vd, const struct state *s)
{
	uint32_t i;

	/* Counters that are new, or gone, are the last ones. */
	for (i = 0; i < MIN(s->ncounters, VFU_NCOUNTERS); i++)
		atomic_add_64(&vd->vdev_counters[i], s->counters[i]);
	vd->vdev_refusals = s->refusals;
	vd->vdev_multi_tag = s->multi_tag;
	vd->vdev_multi_done = s->multi_done;
	/* Only what a client can have written. */
	vfu_pci_write(&vd->vdev_pci, 0, s->cfg, sizeof(s->cfg));
}

/* Go on with a client. */
static int
restore_client(struct vfu_device *vd, const struct state *s,
    const struct peer_mem_journal *journal, struct peer_kept *kept,
    size_t nkept, const char **why)
{
	struct peer_kept *found[NKEPT];
	int error, msix[VFU_IRQ_VECTORS], pipe[2];
	unsigned int i;

	*why = "the state has more vectors than the device";
	if (s->flags >= (uint32_t)F_MSIX(vd->vdev_irq.nvectors))
		return (EINVAL);
	error = kept_find(s, kept, nkept, found, why);
	if (error != 0)
		return (error);
	if (journal != NULL) {
		error = peer_mem_replay(&vd->vdev_mem, journal, kept, nkept,
		    why);
		if (error != 0)
			return (error);
	}
	for (i = 0; i < VFU_IRQ_VECTORS; i++)
		msix[i] = kept_fd(found[KEPT_MSIX + i]);
	*why = "no resources for the events of the state";
	error = vfu_irq_restore(&vd->vdev_irq, &s->irq,
	    kept_fd(found[KEPT_INTX]), kept_fd(found[KEPT_MSI]),
	    kept_fd(found[KEPT_UNMASK]), msix);
	if (error != 0)
		goto fail_mem;
	pipe[0] = kept_fd(found[KEPT_PIPE0]);
	pipe[1] = kept_fd(found[KEPT_PIPE1]);
	memcpy(vd->vdev_server.out, s->out, s->progress.vpr_out_len);
	error = vfu_server_restore(vd, kept_fd(found[KEPT_CLIENT]), pipe,
	    &s->progress, s->taken);
	if (error != 0)
		goto fail_irq;
	for (i = 0; i < NKEPT; i++)
		kept_taken(found[i]);
	return (0);

fail_irq:
	vfu_irq_unrestore(&vd->vdev_irq);
fail_mem:
	/* The store has its files as before. */
	peer_mem_set_keep(&vd->vdev_mem, NULL);
	peer_mem_reset(&vd->vdev_mem);
	peer_mem_set_keep(&vd->vdev_mem, vd->vdev_keep);
	for (i = 0; i < nkept; i++)
		kept[i].pkt_used = false;
	return (error);
}

int
vfu_state_restore(struct vfu_device *vd, const void *buf, size_t len,
    const struct peer_mem_journal *journal, struct peer_kept *kept,
    size_t nkept, const char **why)
{
	struct peer_kept *client;
	struct state s;
	int error;

	vfu_assert_thread(vd);
	MPASS(vd->vdev_server.fd == -1);
	if (!state_get(&s, buf, len, why))
		return (EINVAL);
	if ((s.flags & F_CONNECTED) != 0) {
		error = restore_client(vd, &s, journal, kept, nkept, why);
		if (error != 0)
			return (error);
		state_apply(vd, &s);
		vfu_pci_show(&vd->vdev_pci, s.cfg[PCI_SUBSYSTEM_ID] |
		    s.cfg[PCI_SUBSYSTEM_ID + 1] << 8);
		if (vfu_pci_busmaster(&vd->vdev_pci))
			vd->vdev_ops->vdo_bus_master(vd->vdev_arg, true);
		vfu_device_msix(vd);
		return (0);
	}
	/* One that was accepted, and not noted yet; or has been told to go. */
	vd->vdev_server.stream.vsm_done = s.progress.vpr_done;
	client = peer_kept_find(kept, nkept, "client");
	if (client != NULL && kept_kind(KEPT_CLIENT, client->pkt_fd) &&
	    vfu_server_come(vd, client->pkt_fd) == 0)
		kept_taken(client);
	memset(s.cfg, 0, sizeof(s.cfg));
	s.refusals = 0;
	state_apply(vd, &s);
	vfu_device_reset(vd);
	return (0);
}

bool
vfu_state_client(const void *buf, size_t len)
{
	const char *why;
	struct state s;

	return (state_get(&s, buf, len, &why) && (s.flags & F_CONNECTED) != 0);
}
