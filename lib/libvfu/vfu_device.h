/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A PCI device that is served to one client at a time over vfio-user.
 *
 * What the device does is a table of functions, vfu_device_ops, and what it is
 * a table of fields of its configuration space and the sizes of its base
 * address registers, vfu_device_type.  Everything else is here: the connection
 * (vfu_server.h), the memory that the client shares (peer_mem.h), interrupts
 * (vfu_irq.h) and configuration space (vfu_pci.h).
 *
 * One thread, the device's, uses all of it, without locks, and runs an event
 * loop (loop.h).  Other threads may use the memory's addresses, raise
 * interrupts and send them (vfu_irq.h), and read counters.
 */

#ifndef _VFU_DEVICE_H_
#define	_VFU_DEVICE_H_

#include <sys/counter_table.h>
#include <sys/systm.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "peer_keep.h"
#include "peer_mem.h"
#include "vfu_irq.h"
#include "vfu_pci.h"
#include "vfu_server.h"

/* Counters, in sys/counter_table.h's form. */
#define	VFU_COUNTERS(X)							\
	X(VFU_C_CONNECT, "connects", "clients connected")		\
	X(VFU_C_DISCONNECT, "disconnects", "clients disconnected")	\
	X(VFU_C_REFUSED, "refused",					\
	    "clients refused: one is connected, or no descriptors left") \
	X(VFU_C_ACCEPT, "accept_waits",					\
	    "times that no client could be accepted or refused")	\
	X(VFU_C_BROKEN, "broken", "clients dropped for bad framing")	\
	X(VFU_C_GONE, "gone",						\
	    "clients dropped because their memory was gone")		\
	X(VFU_C_RECV, "recvs", "reads from the socket")			\
	X(VFU_C_MESSAGE, "messages", "messages received")		\
	X(VFU_C_POSTED, "posted", "messages that asked for no reply")	\
	X(VFU_C_SEND, "sends", "writes to the socket")			\
	X(VFU_C_ERROR, "errors", "commands that failed")		\
	X(VFU_C_DMA_MAP, "dma_maps", "memory ranges mapped")		\
	X(VFU_C_DMA_REFUSED, "dma_refused", "memory ranges refused")	\
	X(VFU_C_DMA_UNMAP, "dma_unmaps", "memory ranges unmapped")	\
	X(VFU_C_DMA_JOIN, "dma_joins",					\
	    "rings mapped once more: their pages are apart")

enum vfu_counter {
	COUNTER_IDS(VFU_COUNTERS)
	VFU_NCOUNTERS
};
extern const struct counter_row vfu_counter_table[VFU_NCOUNTERS];

/* What the device does, on its thread.  `arg' is that of vfu_device_init(). */
struct vfu_device_ops {
	/*
	 * Read or write `size' bytes, 1, 2, 4 or 8, at `off' of a base address
	 * register.  They are inside of it, and at any alignment.
	 */
	uint64_t (*vdo_read)(void *arg, int bar, uint64_t off, int size);
	void	(*vdo_write)(void *arg, int bar, uint64_t off, int size,
		    uint64_t value);
	/*
	 * Note that the guest has let the device access memory, or forbidden
	 * it.
	 */
	void	(*vdo_bus_master)(void *arg, bool on);
	/*
	 * Note that the guest has turned MSI-X on or off.  May be NULL if the
	 * device has none.
	 */
	void	(*vdo_msix)(void *arg, bool on);
	/* Reset the device, and vfu_device_reset(). */
	void	(*vdo_reset)(void *arg);
	/* Note that a client has connected. */
	void	(*vdo_attach)(void *arg);
	/*
	 * Reset the device, whose client has left, so that nothing uses the
	 * client's memory, and call vfu_device_release().
	 */
	void	(*vdo_detach)(void *arg);
	/* Write a line, with a priority of syslog.h. */
	void	(*vdo_log)(void *arg, int priority, const char *fmt,
		    va_list ap);
};

/* What the device is. */
struct vfu_device_type {
	const struct vfu_pci_field *vdt_field;	/* configuration space */
	unsigned int	 vdt_nfields;
	/* A PCI Express capability: configuration space has VFU_PCIE_SIZE. */
	bool		 vdt_express;
	uint64_t	 vdt_bar_size[6];	/* bytes; 0: there is none */
	/* MSI-X: vectors, and where its capability is; 0: there is none. */
	unsigned int	 vdt_vectors;
	uint8_t		 vdt_msix;
};

struct vfu_device {
	const struct vfu_device_ops *vdev_ops;
	const struct vfu_device_type *vdev_type;
	void			*vdev_arg;
	pthread_t		 vdev_thread;	/* set by vfu_server_init() */
	struct peer_mem		 vdev_mem;	/* its owner's:
						   peer_mem_init() */
	struct vfu_pci		 vdev_pci;
	struct vfu_irq		 vdev_irq;
	struct vfu_server	 vdev_server;
	unsigned int		 vdev_refusals;	/* of ranges of this client */
	uint64_t		 vdev_counters[VFU_NCOUNTERS]; /* atomic */
	const struct peer_keep	*vdev_keep;	/* or NULL */
	/*
	 * The message with this tag is a REGION_WRITE_MULTI, of which so many
	 * writes have been carried out.
	 */
	uint64_t		 vdev_multi_tag;
	uint32_t		 vdev_multi_done;
	bool			 vdev_msix;	/* what vdo_msix() was told */
};

/*
 * Initialize a device of zeros, with this PCI subsystem ID, before its thread
 * starts.  Its owner initializes vdev_mem.
 */
void	vfu_device_init(struct vfu_device *vd,
	    const struct vfu_device_ops *ops,
	    const struct vfu_device_type *type, uint16_t subdevice, void *arg);

/*
 * Keep what another process needs to go on: *vd, and `journal', which may be
 * NULL, are in memory that outlives the process, and descriptors go to the
 * store, by the names "client", "pipe.0", "pipe.1", "intx", "msi", "msix.N",
 * "unmask" and "mem.N".  `keep' must outlive *vd.  Before vfu_server_init(),
 * and before peer_mem_set_journal(), which is its owner's: see vfu_state.h.
 *
 * SIGPIPE must be ignored then.
 */
void	vfu_device_set_keep(struct vfu_device *vd,
	    const struct peer_keep *keep);

/* Reset configuration space, as PCI RST# does. */
void	vfu_device_reset(struct vfu_device *vd);

/* Tell the device whether MSI-X is on: the capability may have been written. */
void	vfu_device_msix(struct vfu_device *vd);

/* Reset it, and let go of the client's memory and interrupts. */
void	vfu_device_release(struct vfu_device *vd);

/*
 * Handle any command but VERSION.  Returns 0, or the errno of the reply.
 */
int	vfu_command(struct vfu_device *vd, struct vfu_request *req);

/* Write a line through the device's function. */
void	vfu_log(struct vfu_device *vd, int priority, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 3, 4)));

/* Return the number of the message that is being carried out; not 0. */
static inline uint64_t
vfu_message_tag(const struct vfu_device *vd)
{
	return (vd->vdev_server.stream.vsm_done + 1);
}

static inline void
vfu_assert_thread(const struct vfu_device *vd)
{
	MPASS(pthread_equal(vd->vdev_thread, pthread_self()));
	(void)vd;
}

/* Add one to a counter. */
static inline void
vfu_count(struct vfu_device *vd, enum vfu_counter counter)
{
	vfu_assert_thread(vd);
	atomic_add_64(&vd->vdev_counters[counter], 1);
}

#endif /* !_VFU_DEVICE_H_ */
