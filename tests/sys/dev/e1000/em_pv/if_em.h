/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What em_pv*.c need of FreeBSD's kernel, of iflib(4) and of em(4), in words of
 * our own: its names with the meaning that section 9 of the manual gives them.
 * Structures have only the members that em_pv*.c use.
 */

#ifndef _EM_PV_IF_EM_H_
#define	_EM_PV_IF_EM_H_

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/queue.h>
#include <sys/systm.h>

#include <dev/e1000/e82574_reg.h>

#include "require.h"

typedef unsigned int u_int;
typedef unsigned long u_long;
typedef int64_t sbintime_t;

#ifndef PAGE_SIZE
#define	PAGE_SIZE	4096
#endif
#define	SBT_1S		((sbintime_t)1 << 32)
#define	SBT_1MS		(SBT_1S / 1000)

struct em_guest;

/* In 14 these take no pointer to const, and the kernel's flags refuse a cast. */
#define	EM_LOAD(n, type)						\
static inline type							\
em_load_##n(volatile type *p)						\
{									\
	return (atomic_load_##n(p));					\
}
EM_LOAD(32, uint32_t)
EM_LOAD(acq_32, uint32_t)
EM_LOAD(64, uint64_t)
EM_LOAD(bool, bool)
#define	atomic_load_32(p)	em_load_32(p)
#define	atomic_load_acq_32(p)	em_load_acq_32(p)
#define	atomic_load_64(p)	em_load_64(p)
#define	atomic_load_bool(p)	em_load_bool(p)

/* sched(9); td_intr_nesting_level is not 0 in a filter. */
struct thread {
	int		 td_intr_nesting_level;
	bool		 idle;
};
extern _Thread_local struct thread em_thread;
#define	curthread	(&em_thread)
#define	TD_IS_IDLETHREAD(td)	((td)->idle)
bool	sched_runnable(void);
/* The scheduler's clock. */
extern uint64_t em_clock_ns;
#define	cpu_tickrate()	((uint64_t)1000000000)
#define	cpu_ticks()	atomic_load_64(&em_clock_ns)

static inline u_int
atomic_load_int(volatile u_int *p)
{
	return (__atomic_load_n(p, __ATOMIC_RELAXED));
}

static inline void
atomic_store_int(volatile u_int *p, u_int v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/*
 * kobj(9), device(9), SYSINIT(9).
 */
typedef void (*kobjop_t)(void);
struct kobjop_desc {
	int		 unused;
};
struct kobj_method {
	struct kobjop_desc *desc;
	kobjop_t	 func;
};
typedef struct kobj_method device_method_t;
typedef struct kobj_class *kobj_class_t;
struct kobj_class {
	const char	*name;
	device_method_t	*methods;
	size_t		 size;
	kobj_class_t	*bases;
};
typedef struct kobj_class driver_t;
#define	DEVMETHOD(m, f)	{ &m##_desc, (kobjop_t)(1 ? (f) : (m##_t *)NULL) }
#define	DEVMETHOD_END	{ NULL, NULL }
/* Aborts if neither the class nor a base of it has the method. */
struct kobj_method *kobj_lookup_method(kobj_class_t, struct kobj_method **,
	    struct kobjop_desc *);

typedef struct em_device {
	uint16_t	 vendor, device, subvendor, subdevice;
	const uint32_t	 *csb;		/* the capability, or NULL */
} *device_t;
#define	pci_get_vendor(dev)	((dev)->vendor)
#define	pci_get_device(dev)	((dev)->device)
#define	pci_get_subvendor(dev)	((dev)->subvendor)
#define	pci_get_subdevice(dev)	((dev)->subdevice)
#define	PCIY_VENDOR	0x09
int	pci_find_cap(device_t, int, int *);
uint32_t pci_read_config(device_t, int, int);
#define	device_get_nameunit(dev) ((void)(dev), "em0")
#define	device_get_unit(dev)	((void)(dev), 0)
int	device_printf(device_t, const char *, ...);

#define	SYSINIT(name, sub, order, func, arg)				\
	static void __attribute__((__constructor__))			\
	name##_sysinit_run(void)					\
	{								\
		func(arg);						\
	}

enum vm_guest { VM_GUEST_NO, VM_GUEST_VM };
extern enum vm_guest vm_guest;

/*
 * mutex(9), sx(9), callout(9).  A mistake in their use aborts.
 */
struct mtx {
	bool		 ready;
	uint64_t	 owner;		/* a thread, or 0 */
};
#define	MTX_SPIN	1
#define	mtx_init(m, name, type, opts)	em_mtx_init(m, opts)
void	em_mtx_init(struct mtx *, int);
void	mtx_destroy(struct mtx *);
void	mtx_lock_spin(struct mtx *);
void	mtx_unlock_spin(struct mtx *);
#undef mtx_assert
bool	mtx_owned(struct mtx *);
#define	mtx_assert(m, what)	REQUIRE(mtx_owned(m) == ((what) == MA_OWNED))

struct sx {
	bool		 owned, other;	/* by another thread */
};
void	sx_xlock(struct sx *);
void	sx_xunlock(struct sx *);
#define	sx_xlocked(sx)	((sx)->owned && !(sx)->other)
bool	sx_try_xlock(struct sx *);
#define	pause_sbt(text, time, precision, flags)	em_pause(time)
void	em_pause(sbintime_t);

struct callout {
	void		(*func)(void *);	/* NULL: it is not to run */
	void		*arg;
	sbintime_t	 in;
};
#define	C_DIRECT_EXEC	1
void	callout_init(struct callout *, int);
int	callout_drain(struct callout *);
int	callout_reset_sbt(struct callout *, sbintime_t, sbintime_t,
	    void (*)(void *), void *, int);
#define	callout_reset_sbt_curcpu	callout_reset_sbt

/*
 * SDT(9): em_probe() is called in place of a script.
 */
#define	SDT_PROVIDER_DECLARE(provider)	struct em_no_provider
#define	SDT_PROVIDER_DEFINE(provider)	struct em_no_provider
#define	SDT_PROBE_DEFINE2(provider, mod, func, name, arg0, arg1)	\
	static const char sdt_##provider##_##name[] = #name
#define	SDT_PROBE2(provider, mod, func, name, arg0, arg1)		\
	em_probe(sdt_##provider##_##name, arg0, arg1)
void	em_probe(const char *, const char *, uint32_t);

/*
 * sysctl(9).
 */
struct sysctl_oid {
	const char	*oid_name;
};
struct sysctl_oid_list;
struct sysctl_ctx_entry {
	struct sysctl_oid *entry;
	TAILQ_ENTRY(sysctl_ctx_entry) link;
};
TAILQ_HEAD(sysctl_ctx_list, sysctl_ctx_entry);
struct sysctl_req {
	const u_int	*newptr;
	int		 error;
	u_int		 old;
};
#define	SYSCTL_HANDLER_ARGS						\
	struct sysctl_oid *oidp, void *arg1, intmax_t arg2,		\
	    struct sysctl_req *req
#define	OID_AUTO	(-1)
#define	CTLTYPE_UINT	1
#define	CTLFLAG_RD	2
#define	CTLFLAG_RWTUN	4
#define	CTLFLAG_MPSAFE	8
struct sysctl_ctx_list *device_get_sysctl_ctx(device_t);
#define	device_get_sysctl_tree(dev)	((void)(dev), (void *)NULL)
#define	SYSCTL_CHILDREN(tree)		(tree)
int	sysctl_handle_int(struct sysctl_oid *, u_int *, int,
	    struct sysctl_req *);
/* Writes em(4)'s enable_aim, an int, or fails. */
int	kernel_sysctlbyname(void *, char *, void *, size_t *, void *, size_t,
	    size_t *, int);
/* A tunable of this name is given to the handler at once. */
#define	sysctl_ctx_init(list)	TAILQ_INIT(list)
#define	sysctl_ctx_free(list)	(em_sysctl_list(list), em_sysctl_free())
static inline void
em_sysctl_list(const struct sysctl_ctx_list *list)
{
	REQUIRE(list->tqh_last != NULL);
}
void	em_sysctl_free(void);
int	sysctl_ctx_entry_del(struct sysctl_ctx_list *, struct sysctl_oid *);
int	sysctl_remove_oid(struct sysctl_oid *, int, int);
#define	SYSCTL_ADD_PROC(list, child, nbr, name, flags, arg1, arg2,	\
	    handler, fmt, descr)					\
	(em_sysctl_list(list), (void)(child), em_sysctl_add(name, flags, arg1,	\
	    (intmax_t)(arg2), handler))
#define	SYSCTL_ADD_ULONG(list, child, nbr, name, flags, ptr, descr)	\
	(em_sysctl_list(list), (void)(child), em_sysctl_add(name, flags, ptr, 0, NULL))
void	em_sysctl_add(const char *, int, void *, intmax_t,
	    int (*)(SYSCTL_HANDLER_ARGS));

/*
 * iflib(4).
 */
typedef uint16_t qidx_t;
#define	QIDX_INVALID	0xffff
typedef struct iflib_ctx *if_ctx_t;

/* The interface: ifnet(9). */
typedef struct em_ifnet {
	int		 capenable;
	int		 linkstate;
} *if_t;
#define	LINK_STATE_DOWN		1
#define	LINK_STATE_UP		2
#define	IFCAP_RXCSUM		0x01
#define	IFCAP_RXCSUM_IPV6	0x02
#define	IFCAP_LRO		0x04
#define	IFCAP_TSO4		0x08
#define	IFCAP_TSO6		0x10
#define	IFCAP_TSO		(IFCAP_TSO4 | IFCAP_TSO6)
#define	IFCAP_NETMAP		0x20
#define	if_getcapenable(ifp)	((ifp)->capenable)
#define	if_getlinkstate(ifp)	((ifp)->linkstate)
#define	if_getvnet(ifp)		(ifp)
#define	CURVNET_SET(vnet)	((void)(vnet), (void)em_vnets++)
#define	CURVNET_RESTORE()	((void)em_vnets--)
#define	INET			1
#define	INET6			1
/* Variables of a vnet(9), which has been set. */
extern int	em_vnets, em_ipforwarding, em_ip6_forwarding;
#define	V_ipforwarding		(em_vnet(), em_ipforwarding)
#define	V_ip6_forwarding	(em_vnet(), em_ip6_forwarding)
static inline void
em_vnet(void)
{
	REQUIRE(em_vnets == 1);
}
#define	ETHER_HDR_LEN		14
#define	CSUM_DATA_VALID		0x01
#define	CSUM_PSEUDO_HDR		0x02
#define	CSUM_L3_VALID		0x04

#define	FILTER_STRAY		1
#define	FILTER_HANDLED		2
#define	FILTER_SCHEDULE_THREAD	4

typedef struct if_rxd_frag {
	uint16_t	 irf_len;
} *if_rxd_frag_t;
typedef struct if_rxd_info {
	uint16_t	 iri_qsidx, iri_nfrags, iri_len;
	qidx_t		 iri_cidx;
	if_rxd_frag_t	 iri_frags;
	uint32_t	 iri_csum_flags, iri_csum_data;
} *if_rxd_info_t;
typedef struct if_rxd_update {
	const uint64_t	*iru_paddrs;
	uint16_t	 iru_qsidx, iru_count;
	qidx_t		 iru_pidx;
} *if_rxd_update_t;
#define	IPI_TX_INTR	1
typedef struct if_pkt_info {
	uint64_t	 paddr;		/* of its one segment */
	uint32_t	 ipi_len;
	uint16_t	 ipi_qsidx, ipi_flags;
	qidx_t		 ipi_pidx, ipi_new_pidx;
} *if_pkt_info_t;

struct if_txrx {
	int		(*ift_txd_encap)(void *, if_pkt_info_t);
	void		(*ift_txd_flush)(void *, uint16_t, qidx_t);
	int		(*ift_txd_credits_update)(void *, uint16_t, bool);
	int		(*ift_rxd_available)(void *, uint16_t, qidx_t, qidx_t);
	int		(*ift_rxd_pkt_get)(void *, if_rxd_info_t);
	void		(*ift_rxd_refill)(void *, if_rxd_update_t);
	void		(*ift_rxd_flush)(void *, uint16_t, uint8_t, qidx_t);
	int		(*ift_legacy_intr)(void *);
};

enum iflib_intr { IFLIB_INTR_LEGACY, IFLIB_INTR_MSI, IFLIB_INTR_MSIX };
typedef struct if_softc_ctx {
	struct if_txrx	*isc_txrx;
	enum iflib_intr	 isc_intr;
	int		 isc_ntxd[2], isc_nrxd[2];	/* the first are used */
	int		 isc_ntxqsets, isc_nrxqsets;
	int		 isc_ntxqsets_max, isc_nrxqsets_max;
	int		 isc_msix_bar, isc_disable_msix;
	int		 isc_capabilities, isc_capenable;
	uint16_t	 isc_rxd_buf_size[2];	/* 0: the usual one */
} *if_softc_ctx_t;
struct if_shared_ctx {
	driver_t	*isc_driver;
	int		 magic;
};
struct iflib_dma_info {
	uint64_t	 idi_paddr;
	char		*idi_vaddr;
};
#define	BUS_DMA_NOWAIT	1
int	iflib_dma_alloc_align(if_ctx_t, int, int, struct iflib_dma_info *, int);
void	iflib_dma_free(struct iflib_dma_info *);
void	*iflib_get_softc(if_ctx_t);
if_softc_ctx_t iflib_get_softc_ctx(if_ctx_t);
struct sx *iflib_ctx_lock_get(if_ctx_t);
void	iflib_tx_intr_deferred(if_ctx_t, int);
void	iflib_rx_intr_deferred(if_ctx_t, int);
void	iflib_admin_intr_deferred(if_ctx_t);
void	iflib_request_reset(if_ctx_t);
if_t	iflib_get_ifp(if_ctx_t);

/* The methods of a class. */
typedef char *caddr_t;
typedef int ifdi_attach_pre_t(if_ctx_t);
typedef int ifdi_rx_queues_alloc_t(if_ctx_t, caddr_t *, uint64_t *, int, int);
typedef int ifdi_attach_post_t(if_ctx_t);
typedef int ifdi_detach_t(if_ctx_t);
typedef void ifdi_init_t(if_ctx_t);
typedef void ifdi_stop_t(if_ctx_t);
typedef int ifdi_resume_t(if_ctx_t);
typedef int ifdi_media_change_t(if_ctx_t);
typedef void ifdi_update_admin_status_t(if_ctx_t);
typedef void ifdi_intr_enable_t(if_ctx_t);
typedef void ifdi_intr_disable_t(if_ctx_t);
typedef int ifdi_tx_queue_intr_enable_t(if_ctx_t, uint16_t);
typedef int ifdi_rx_queue_intr_enable_t(if_ctx_t, uint16_t);
extern struct kobjop_desc ifdi_attach_pre_desc, ifdi_attach_post_desc,
    ifdi_detach_desc, ifdi_init_desc, ifdi_stop_desc, ifdi_intr_enable_desc,
    ifdi_rx_queues_alloc_desc, ifdi_resume_desc, ifdi_media_change_desc,
    ifdi_intr_disable_desc, ifdi_tx_queue_intr_enable_desc,
    ifdi_rx_queue_intr_enable_desc, ifdi_update_admin_status_desc;
/* Call a method of the device's class. */
#define	IFDI_CALL(ctx, m)						\
	((m##_t *)kobj_lookup_method(iflib_class(ctx), NULL,		\
	    &m##_desc)->func)
#define	IFDI_INTR_ENABLE(ctx)	IFDI_CALL(ctx, ifdi_intr_enable)(ctx)
#define	IFDI_INTR_DISABLE(ctx)	IFDI_CALL(ctx, ifdi_intr_disable)(ctx)
kobj_class_t iflib_class(if_ctx_t);

/*
 * em(4).  Registers and bits: e82545_reg.h.
 */
#define	E1000_CTRL		E82545_CTRL
#define	E1000_STATUS		E82545_STATUS
#define	E1000_STATUS_LU		E82545_STATUS_LU
#define	E1000_CTRL_VME		E82545_CTRL_VME
#define	EM_EIAC			E82574_EIAC
#define	E1000_ICR		E82545_ICR
#define	E1000_ITR		E82545_ITR
#define	E1000_EITR_82574(n)	E82574_EITR(n)
#define	E1000_IMS		E82545_IMS
#define	E1000_IMC		E82545_IMC
#define	E1000_TDT(q)		(E82545_TDT + E82574_QUEUE(q))
#define	E1000_RDT(q)		(E82545_RDT + E82574_QUEUE(q))
#define	E1000_RCTL		E82545_RCTL
#define	E1000_RCTL_SZ_4096	E82545_RCTL_BSIZE_256
#define	E1000_RCTL_BSEX		E82545_RCTL_BSEX
#define	E1000_ICR_LSC		E82545_ICR_LSC
#define	E1000_ICR_RXSEQ		E82545_ICR_RXSEQ
#define	E1000_ICR_TXDW		E82545_ICR_TXDW
#define	E1000_ICR_RXO		E82545_ICR_RXO
#define	E1000_TXD_CMD_RS	E82545_TXD_RS
#define	E1000_TXD_STAT_DD	E82545_TXD_DD
#define	E1000_RXD_STAT_DD	E82545_RXD_DD
#define	IMS_ENABLE_MASK							\
	(E82545_ICR_RXT0 | E82545_ICR_TXDW | E82545_ICR_RXDMT0 |	\
	    E82545_ICR_RXSEQ | E82545_ICR_LSC)

enum e1000_mac_type { e1000_82545, e1000_82571, e1000_82574 };
struct e1000_hw {
	struct {
		enum e1000_mac_type type;
		bool	 get_link_status;
	} mac;
};
uint32_t em_reg_read(uint32_t);
void	em_reg_write(uint32_t, uint32_t);
#define	E1000_READ_REG(hw, reg)		((void)(hw), em_reg_read(reg))
#define	E1000_WRITE_REG(hw, reg, v)	((void)(hw), em_reg_write(reg, v))

struct e1000_tx_desc {
	uint64_t	 buffer_addr;
	union {
		uint32_t data;
	} lower;
	union {
		uint32_t data;
		struct {
			uint8_t	 status, css;
			uint16_t special;
		} fields;
	} upper;
};
struct e1000_rx_desc {
	uint64_t	 buffer_addr;
	uint16_t	 length, csum;
	uint8_t		 status, errors;
	uint16_t	 special;
};
union e1000_rx_desc_extended {
	struct {
		uint64_t buffer_addr, reserved;
	} read;
	struct {
		uint64_t lower;
		struct {
			uint32_t status_error;
			uint16_t length, vlan;
		} upper;
	} wb;
};

struct tx_ring {
	struct e1000_tx_desc *tx_base;
	qidx_t		*tx_rsq;	/* descriptors with RS */
	qidx_t		 tx_rs_cidx, tx_rs_pidx;
	qidx_t		 tx_cidx_processed;	/* the last one reclaimed */
};
struct rx_ring {
	union e1000_rx_desc_extended *rx_base;
};
struct em_tx_queue {
	struct tx_ring	 txr;
};
struct em_rx_queue {
	struct rx_ring	 rxr;
};
struct e1000_softc {
	struct e1000_hw	 hw;
	if_softc_ctx_t	 shared;
	if_ctx_t	 ctx;
#define	tx_num_queues	shared->isc_ntxqsets
#define	rx_num_queues	shared->isc_nrxqsets
#define	intr_type	shared->isc_intr
	device_t	 dev;
	struct em_tx_queue *tx_queues;
	struct em_rx_queue *rx_queues;
	u_long		 rx_overruns;
	uint32_t	 ims;		/* of MSI-X */
};

#endif /* !_EM_PV_IF_EM_H_ */
