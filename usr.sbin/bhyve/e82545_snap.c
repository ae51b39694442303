/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Snapshots: the complete state of the model as a string of bytes.
 *
 *	header	magic number, version, length, CRC-32 of the rest
 *	state	registers, statistics, EEPROM, PHY, CSB, rings, moderation,
 *		counters
 *	frames	those in the loopback queue
 *
 * The version must change whenever the format or the meaning of a value does.
 *
 * A snapshot, which may be damaged, or made by an attacker, is restored into a
 * fresh model first, which checks every value.  Only if all of them are valid
 * is it restored into the real model, in the same way.
 *
 * The host must save guest memory itself, including the CSB's page and the
 * rings.  The model must be paused; all locks are held.
 */

#include <sys/endian.h>

#include <errno.h>
#include <string.h>

#include "e82545_impl.h"
#include "e82545_intr.h"
#include "e82545_offload.h"
#include "e82545_snap.h"
#include "e82545_stat.h"
#include "e82545_type.h"

struct snap_header {
	char		magic[8];
	uint32_t	version;
	uint32_t	size;		/* bytes, with this header */
	uint32_t	crc;		/* of what follows */
};
_Static_assert(sizeof(struct snap_header) == 20, "snap_header has padding");

/*
 * Values.
 */

void
e82545_snap_check(struct e82545_snap *s, bool holds)
{
	if (!holds)
		s->bad = true;
}

void
e82545_snap_bytes(struct e82545_snap *s, void *buf, size_t len)
{
	if (s->restore != NULL || s->save != NULL)
		e82545_snap_check(s, len <= s->size - s->done);
	if (s->bad)
		return;
	if (s->restore != NULL)
		memcpy(buf, s->restore + s->done, len);
	else if (s->save != NULL)
		memcpy(s->save + s->done, buf, len);
	s->done += len;
}

/* Save or restore a number.  `value' is no longer than `len' bytes. */
static uint64_t
snap_number(struct e82545_snap *s, uint64_t value, uint64_t max, size_t len)
{
	uint8_t bytes[sizeof(value)];

	le64enc(bytes, value);
	e82545_snap_bytes(s, bytes, len);
	if (s->restore != NULL && !s->bad) {
		e82545_snap_check(s, le64dec(bytes) <= max);
		if (!s->bad)
			value = le64dec(bytes);
	}
	return (value);
}

void
e82545_snap_u8(struct e82545_snap *s, uint8_t *value, uint8_t max)
{
	*value = snap_number(s, *value, max, sizeof(*value));
}

void
e82545_snap_u16(struct e82545_snap *s, uint16_t *value, uint16_t max)
{
	*value = snap_number(s, *value, max, sizeof(*value));
}

void
e82545_snap_u32(struct e82545_snap *s, uint32_t *value, uint32_t max)
{
	*value = snap_number(s, *value, max, sizeof(*value));
}

void
e82545_snap_u64(struct e82545_snap *s, uint64_t *value, uint64_t max)
{
	*value = snap_number(s, *value, max, sizeof(*value));
}

void
e82545_snap_bool(struct e82545_snap *s, bool *value)
{
	*value = snap_number(s, *value, 1, 1) != 0;
}

/*
 * The state.
 */

static void
snap_counters(struct e82545 *dev, struct e82545_snap *s)
{
	uint64_t value;
	int i;

	for (i = 0; i < E82545_NCOUNTERS; i++) {
		value = atomic_load_64(&dev->counters[i]);
		e82545_snap_u64(s, &value, UINT64_MAX);
		if (s->restore != NULL)
			atomic_store_64(&dev->counters[i], value);
	}
}

static void
snap_state(struct e82545 *dev, struct e82545_snap *s)
{
	/* For a restore, too: what was dropped until now is not the guest's. */
	e82545_stat_missed(dev);
	e82545_reg_snap(dev, s);
	e82545_stat_snap(dev, s);
	e82545_eeprom_snap(dev, s);
	e82545_phy_snap(dev, s);
	e82545_csb_snap(dev, s);
	e82545_txq_snap(dev, s);
	e82545_intr_snap(dev, s);
	if (dev->type->et_snap != NULL)
		dev->type->et_snap(dev, s);
	snap_counters(dev, s);
}

/*
 * Save the state.  Returns the size of the snapshot; does nothing else if `buf'
 * is NULL.
 */
static size_t
snap_save(struct e82545 *dev, uint8_t *buf, size_t size)
{
	struct e82545_snap s = {
		.save = buf, .size = size, .now_ns = dev->ops->eo_now(dev->arg)
	};
	struct snap_header h;

	s.done = sizeof(h);
	snap_state(dev, &s);
	e82545_loop_snap(dev, &s);
	if (buf != NULL && !s.bad) {
		memcpy(h.magic, dev->type->et_magic, sizeof(h.magic));
		h.version = htole32(E82545_SNAPSHOT_VERSION);
		h.size = htole32(s.done);
		h.crc = htole32(e82545_crc(buf + sizeof(h),
		    s.done - sizeof(h), 0));
		memcpy(buf, &h, sizeof(h));
	}
	return (s.bad ? 0 : s.done);
}

size_t
e82545_snapshot_size(struct e82545 *dev)
{
	size_t size;

	e82545_lock_all(dev);
	size = snap_save(dev, NULL, 0);
	e82545_unlock_all(dev);
	return (size);
}

int
e82545_snapshot_save(struct e82545 *dev, void *buf, size_t size)
{
	int error;

	error = 0;
	e82545_lock_all(dev);
	if (!dev->paused)
		error = EBUSY;
	else if (size < sizeof(struct snap_header) ||
	    snap_save(dev, buf, size) != size)
		error = EINVAL;
	e82545_unlock_all(dev);
	return (error);
}

static int
snap_header_check(const struct e82545_type *type, const void *buf, size_t size)
{
	struct snap_header h;

	if (size < sizeof(h))
		return (EINVAL);
	memcpy(&h, buf, sizeof(h));
	if (memcmp(h.magic, type->et_magic, sizeof(h.magic)) != 0)
		return (EINVAL);
	if (le32toh(h.version) != E82545_SNAPSHOT_VERSION)
		return (ENOTSUP);
	if (le32toh(h.size) != size || le32toh(h.crc) !=
	    e82545_crc((const uint8_t *)buf + sizeof(h), size - sizeof(h), 0))
		return (EINVAL);
	return (0);
}

int
e82545_snapshot_restore(struct e82545 *dev, const void *buf, size_t size)
{
	struct e82545_snap s = { .restore = buf, .size = size };
	struct e82545_loop *loop;
	struct e82545 *fresh;
	unsigned int i;
	bool asserted;
	int error;

	error = snap_header_check(dev->type, buf, size);
	if (error != 0)
		return (error);
	fresh = e82545_create(&dev->config, dev->ops, dev->arg,
	    dev->port);
	if (fresh == NULL)
		return (ENOMEM);
	e82545_lock_all(dev);
	if (!dev->paused) {
		error = EBUSY;
		goto out;
	}
	s.now_ns = dev->ops->eo_now(dev->arg);
	s.done = sizeof(struct snap_header);
	pthread_mutex_lock(&fresh->reg_mtx);
	snap_state(fresh, &s);
	pthread_mutex_unlock(&fresh->reg_mtx);
	e82545_loop_snap(fresh, &s);
	e82545_snap_check(&s, s.done == size);
	if (s.bad) {
		error = s.nomem ? ENOMEM : EINVAL;
		goto out;
	}

	/* Take over the queue with its frames; restore the rest once more. */
	loop = dev->loop;
	dev->loop = fresh->loop;
	fresh->loop = loop;
	asserted = dev->moder.asserted;
	s.done = sizeof(struct snap_header);
	for (i = 0; i < E82545_QUEUES; i++)
		e82545_rxq_moved(dev, i);
	snap_state(dev, &s);
	e82545_intr_restored(dev, asserted);
out:
	e82545_unlock_all(dev);
	e82545_destroy(fresh);
	return (error);
}
