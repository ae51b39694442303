/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Filter expressions of pcap-filter(7), which libpcap compiles.  The switch
 * runs the program (libvale.h), or, if it cannot, vale-cap does.
 */

#ifndef _CAP_FILTER_H_
#define	_CAP_FILTER_H_

#include <stdbool.h>
#include <stdint.h>

struct bpf_program;
struct vale_params;

/*
 * Compile an expression, for as long as the program runs.  NULL: *why, of
 * `size' bytes, says what is wrong with it.
 */
struct bpf_program *cap_filter_compile(const char *expression, char *why,
	    size_t size);

/* Have the monitor opened with this filter, which must stay. */
void	cap_filter_params(const struct bpf_program *filter,
	    struct vale_params *params);

/* Return whether a frame of `len' bytes passes. */
bool	cap_filter_passes(const struct bpf_program *filter,
	    const uint8_t *frame, uint32_t len);

#endif /* !_CAP_FILTER_H_ */
