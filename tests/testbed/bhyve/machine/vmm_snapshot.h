/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's snapshots, a device model's interface: a buffer to which it appends
 * values, or from which it takes them in the same order.
 */

#ifndef _MACHINE_VMM_SNAPSHOT_H_
#define	_MACHINE_VMM_SNAPSHOT_H_

#include <sys/types.h>

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

struct vm_snapshot_buffer {
	uint8_t	*buf;			/* the next byte */
	size_t	 buf_rem;		/* bytes from buf to the end */
};

struct vm_snapshot_meta {
	void	*dev_data;		/* struct pci_devinst */
	const char *dev_name;
	struct vm_snapshot_buffer buffer;
	enum vm_snapshot_op {
		VM_SNAPSHOT_SAVE,
		VM_SNAPSHOT_RESTORE
	} op;
};

/* Save or restore `size' bytes.  Returns 0, or E2BIG if too few are left. */
int	vm_snapshot_buf(void *data, size_t size,
	    struct vm_snapshot_meta *meta);

/* Report that saving or restoring `name' failed. */
void	vm_snapshot_buf_err(const char *name, const enum vm_snapshot_op op);

#define	SNAPSHOT_BUF_OR_LEAVE(data, size, meta, res, label)		\
	do {								\
		(res) = vm_snapshot_buf((data), (size), (meta));	\
		if ((res) != 0) {					\
			vm_snapshot_buf_err(#data, (meta)->op);		\
			goto label;					\
		}							\
	} while (0)
#define	SNAPSHOT_VAR_OR_LEAVE(data, meta, res, label)			\
	SNAPSHOT_BUF_OR_LEAVE(&(data), sizeof(data), meta, res, label)

#endif /* !_MACHINE_VMM_SNAPSHOT_H_ */
