/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The probes of the 82545EM model: dtrace_e82545(4) has what they mean.  The
 * first argument of each is the adapter's name.  dtrace(1) takes no name of a
 * provider that ends in a digit: so this is all of the chip's.
 */

provider e82545em {
	/* offset, value, BAR */
	probe reg__read(const char *, uint32_t, uint64_t, int);
	probe reg__write(const char *, uint32_t, uint64_t, int);
	/* tail, whether the rings will be looked at */
	probe tx__kick(const char *, uint32_t, int);
	probe rx__kick(const char *, uint32_t, int);
	/* tail */
	probe tx__kick__saved(const char *, uint32_t);
	probe rx__kick__saved(const char *, uint32_t);
	probe tx__look(const char *);
	probe rx__look(const char *);
	/* frames, bytes, descriptors */
	probe tx__batch(const char *, uint32_t, uint64_t, uint32_t);
	probe rx__batch(const char *, uint32_t, uint64_t, uint32_t);
	/* reason, descriptor */
	probe tx__drop(const char *, const char *, uint32_t);
	probe rx__drop(const char *, const char *, uint32_t);
	probe bad__descriptor(const char *, const char *, uint32_t);
	/* descriptors needed */
	probe rx__stall(const char *, uint32_t);
	/* causes */
	probe intr__asked(const char *, uint32_t);
	probe intr__saved(const char *, uint32_t);
	/* causes, ns to wait */
	probe intr__held(const char *, uint32_t, uint64_t);
	/* causes, now in ns, moderation window in ns */
	probe intr__sent(const char *, uint32_t, uint64_t, uint64_t);
	/* guest-physical address of the block */
	probe csb__on(const char *, uint64_t);
	probe csb__off(const char *, uint64_t);
	probe reset(const char *);
};
