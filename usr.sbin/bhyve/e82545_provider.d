/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The probes of the 82545EM model; dtrace_e82545(4) describes them.  The first
 * argument of each is the name of the adapter.
 *
 * dtrace(1) rejects a provider name that ends in a digit, hence the "em".  It
 * generates a header without `const'.
 */

provider e82545em {
	/* offset, value, BAR */
	probe reg__read(char *, uint32_t, uint64_t, int);
	probe reg__write(char *, uint32_t, uint64_t, int);
	/* tail, whether the write wakes the worker */
	probe tx__kick(char *, uint32_t, int);
	probe rx__kick(char *, uint32_t, int);
	/* tail */
	probe tx__kick__saved(char *, uint32_t);
	probe rx__kick__saved(char *, uint32_t);
	probe tx__begin(char *);
	probe rx__begin(char *);
	/* frames, bytes, descriptors */
	probe tx__batch(char *, uint32_t, uint64_t, uint32_t);
	probe rx__batch(char *, uint32_t, uint64_t, uint32_t);
	/* reason, descriptor */
	probe tx__drop(char *, char *, uint32_t);
	probe rx__drop(char *, char *, uint32_t);
	probe bad__descriptor(char *, char *, uint32_t);
	/* descriptors needed */
	probe rx__stall(char *, uint32_t);
	/* causes */
	probe intr__asked(char *, uint32_t);
	probe intr__saved(char *, uint32_t);
	/* causes, ns to wait */
	probe intr__held(char *, uint32_t, uint64_t);
	/* causes, now in ns, moderation window in ns */
	probe intr__sent(char *, uint32_t, uint64_t, uint64_t);
	/* guest-physical address of the block */
	probe csb__on(char *, uint64_t);
	probe csb__off(char *, uint64_t);
	probe reset(char *);
};
