/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See cap_filter.h.
 */

#include <sys/types.h>

#include <pcap/pcap.h>
#include <stddef.h>
#include <stdio.h>

#include "cap_filter.h"
#include "libvale.h"

/* libvale has the same instructions. */
_Static_assert(sizeof(struct vale_insn) == sizeof(struct bpf_insn) &&
    offsetof(struct vale_insn, jt) == offsetof(struct bpf_insn, jt) &&
    offsetof(struct vale_insn, jf) == offsetof(struct bpf_insn, jf) &&
    offsetof(struct vale_insn, k) == offsetof(struct bpf_insn, k),
    "struct bpf_insn");

struct bpf_program *
cap_filter_compile(const char *expression, char *why, size_t size)
{
	static struct bpf_program program;
	pcap_t *p;
	int r;

	p = pcap_open_dead(DLT_EN10MB, VALE_FRAME_MAX);
	if (p == NULL) {
		snprintf(why, size, "out of memory");
		return (NULL);
	}
	r = pcap_compile(p, &program, expression, 1, PCAP_NETMASK_UNKNOWN);
	if (r == -1)
		snprintf(why, size, "%s", pcap_geterr(p));
	pcap_close(p);
	return (r != -1 ? &program : NULL);
}

void
cap_filter_params(const struct bpf_program *filter, struct vale_params *params)
{
	params->filter = (const struct vale_insn *)(const void *)
	    filter->bf_insns;
	params->filter_len = filter->bf_len;
}

bool
cap_filter_passes(const struct bpf_program *filter, const uint8_t *frame,
    uint32_t len)
{
	return (bpf_filter(filter->bf_insns, frame, len, len) != 0);
}
