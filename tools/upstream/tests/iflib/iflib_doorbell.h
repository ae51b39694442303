/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/* A transmit queue of iflib(4) that has a doorbell, and no adapter. */

void	doorbell_create(unsigned int size);	/* descriptors in the ring */
void	doorbell_add(unsigned int n);		/* as for packets of one each */
void	doorbell_check(int force);
unsigned int doorbell_count(void);
