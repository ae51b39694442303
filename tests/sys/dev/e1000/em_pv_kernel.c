/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What em_pv(4) calls of FreeBSD's kernel: kobj(9), mutex(9), sx(9),
 * callout(9), sysctl(9).  See em_pv_guest.h.
 */

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "em_pv_guest.h"

enum vm_guest vm_guest = VM_GUEST_VM;

struct kobjop_desc ifdi_attach_pre_desc, ifdi_attach_post_desc,
    ifdi_detach_desc, ifdi_init_desc, ifdi_stop_desc, ifdi_intr_enable_desc,
    ifdi_intr_disable_desc, ifdi_rx_queues_alloc_desc,
    ifdi_tx_queue_intr_enable_desc, ifdi_resume_desc, ifdi_media_change_desc,
    ifdi_rx_queue_intr_enable_desc, ifdi_update_admin_status_desc;
int	em_vnets, em_ipforwarding, em_ip6_forwarding;
_Thread_local struct thread em_thread;
uint64_t em_clock_ns;

bool
sched_runnable(void)
{
	return (guest->runnable != NULL && guest->runnable(guest));
}

static struct kobj_method *
find_method(kobj_class_t cls, struct kobjop_desc *desc)
{
	struct kobj_method *m, *inherited;
	kobj_class_t *base;

	for (m = cls->methods; m->desc != NULL; m++)
		if (m->desc == desc)
			return (m);
	for (base = cls->bases; base != NULL && *base != NULL; base++)
		if ((inherited = find_method(*base, desc)) != NULL)
			return (inherited);
	return (NULL);
}

struct kobj_method *
kobj_lookup_method(kobj_class_t cls,
    struct kobj_method **cache __attribute__((__unused__)),
    struct kobjop_desc *desc)
{
	struct kobj_method *m = find_method(cls, desc);

	REQUIRE(m != NULL);
	return (m);
}

/*
 * PCI configuration space.
 */
#define	CSB_CAP	0x40

int
pci_find_cap(device_t dev, int capability, int *capreg)
{
	REQUIRE(capability == PCIY_VENDOR);
	*capreg = CSB_CAP;
	return (dev->csb != NULL ? 0 : ENOENT);
}

uint32_t
pci_read_config(device_t dev, int reg, int width)
{
	REQUIRE(width == 4 && (reg == CSB_CAP + 4 || reg == CSB_CAP + 8));
	return (dev->csb[(reg - CSB_CAP) / 4]);
}

int
device_printf(device_t dev __attribute__((__unused__)), const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vprintf(fmt, ap);
	va_end(ap);
	return (n);
}

/* Let another thread run here. */
static void
lock_hook(void)
{
	struct em_guest *g = guest;

	if (g->lock_hook == NULL || g->in_hook)
		return;
	g->in_hook = true;
	g->lock_hook(g);
	g->in_hook = false;
}

void
em_mtx_init(struct mtx *m, int opts)
{
	REQUIRE(!m->ready && opts == MTX_SPIN);
	m->ready = true;
	guest->mtx = m;
}

void
mtx_destroy(struct mtx *m)
{
	REQUIRE(m->ready && m->owner == 0);
	m->ready = false;
}

/* What distinguishes this thread from others. */
static uint64_t
self(void)
{
	static _Thread_local char thread;

	return ((uintptr_t)&thread);
}

bool
mtx_owned(struct mtx *m)
{
	return (atomic_load_64(&m->owner) == self());
}

void
mtx_lock_spin(struct mtx *m)
{
	REQUIRE(m->ready && !mtx_owned(m));
	lock_hook();
	while (!atomic_cmpset_acq_64(&m->owner, 0, self()))
		sched_yield();
}

void
mtx_unlock_spin(struct mtx *m)
{
	REQUIRE(mtx_owned(m));
	atomic_store_rel_64(&m->owner, 0);
	lock_hook();
}

void
sx_xlock(struct sx *sx)
{
	/* It is not recursive, and nobody sleeps with a spin lock. */
	REQUIRE(!sx->owned && !mtx_owned(guest->mtx));
	sx->owned = true;
}

void
sx_xunlock(struct sx *sx)
{
	REQUIRE(sx->owned);
	sx->owned = sx->other = false;
}

void
callout_init(struct callout *c, int mpsafe)
{
	REQUIRE(mpsafe == 1);
	c->func = NULL;
	/* em_pv(4)'s two, in this order. */
	if (guest->callout == NULL)
		guest->callout = c;
	else
		guest->rx_callout = c;
}

int
callout_drain(struct callout *c)
{
	REQUIRE(!mtx_owned(guest->mtx));
	c->func = NULL;
	return (0);
}

int
callout_reset_sbt(struct callout *c, sbintime_t in,
    sbintime_t precision, void (*func)(void *), void *arg, int flags)
{
	REQUIRE(precision == 0 && flags == C_DIRECT_EXEC && in > 0);
	c->in = in;
	c->func = func;
	c->arg = arg;
	return (0);
}

bool
sx_try_xlock(struct sx *sx)
{
	if (sx->owned)
		return (false);
	sx_xlock(sx);
	return (true);
}

/* Who has the lock goes on. */
void
em_pause(sbintime_t time)
{
	struct em_guest *g = guest;

	REQUIRE(time > 0 && !mtx_owned(g->mtx));
	REQUIRE(g->pause_hook != NULL);
	g->pause_hook(g);
}

/* Only em(4)'s enable_aim is written, if this release has it. */
int
kernel_sysctlbyname(void *td, char *name, void *old, size_t *oldlen,
    void *new, size_t newlen, size_t *retval, int flags)
{
	struct em_guest *g = guest;

	REQUIRE(td == curthread && old == NULL && oldlen == NULL &&
	    retval == NULL && flags == 0);
	REQUIRE(newlen == sizeof(int) && *(int *)new == 0);
	REQUIRE(strcmp(name, "dev.em.0.enable_aim") == 0);
	if (g->config.aim == 0)
		return (ENOENT);
	g->aim_on = false;
	return (0);
}

int
sysctl_handle_int(struct sysctl_oid *oidp __attribute__((__unused__)),
    u_int *value, int arg2, struct sysctl_req *req)
{
	REQUIRE(arg2 == 0);
	req->old = *value;
	if (req->error != 0)
		return (req->error);
	if (req->newptr != NULL)
		*value = *req->newptr;
	return (0);
}

/* The kernel refuses a second variable of the same name. */
void
em_sysctl_add(const char *name, int flags, void *arg1, intmax_t arg2,
    int (*handler)(SYSCTL_HANDLER_ARGS))
{
	struct em_guest *g = guest;
	unsigned int i;

	REQUIRE(g->nsysctls < EM_SYSCTLS);
	for (i = 0; i < g->nsysctls; i++)
		REQUIRE(strcmp(g->sysctls[i].name, name) != 0);
	if (em_fails())
		return;
	g->sysctls[g->nsysctls++] =
	    (struct em_sysctl){ name, arg1, arg2, handler };
	if ((flags & CTLFLAG_RWTUN) != 0 && g->config.tunable != NULL &&
	    strcmp(g->config.tunable, name) == 0)
		REQUIRE(em_set(g, name, g->config.value) == 0);
}

struct sysctl_ctx_list *
device_get_sysctl_ctx(device_t dev)
{
	REQUIRE(dev == &guest->device);
	return (&guest->em_sysctls);
}

/* em(4)'s own itr is no longer freed with the device; the entry is freed. */
int
sysctl_ctx_entry_del(struct sysctl_ctx_list *list, struct sysctl_oid *oid)
{
	struct em_guest *g = guest;

	REQUIRE(list == &g->em_sysctls && oid == &g->em_oid[1]);
	TAILQ_REMOVE(list, &g->em_entry[1], link);
	memset(&g->em_entry[1], 0xde, sizeof(g->em_entry[1]));
	return (0);
}

int
sysctl_remove_oid(struct sysctl_oid *oid, int del, int recurse)
{
	struct em_guest *g = guest;

	REQUIRE(oid == &g->em_oid[1] && del == 1 && recurse == 0);
	REQUIRE(TAILQ_NEXT(&g->em_entry[0], link) == NULL);
	REQUIRE(g->nsysctls == 1 && strcmp(g->sysctls[0].name, "itr") == 0);
	g->nsysctls = 0;
	return (0);
}

/* Who is in a handler has left before. */
void
em_sysctl_free(void)
{
	guest->nsysctls = 0;
}

static const struct em_sysctl *
find_sysctl(struct em_guest *g, const char *name)
{
	unsigned int i;

	for (i = 0; i < g->nsysctls; i++)
		if (strcmp(g->sysctls[i].name, name) == 0)
			return (&g->sysctls[i]);
	REQUIRE(!"no such sysctl");
	return (NULL);
}

int
em_set(struct em_guest *g, const char *name, u_int value)
{
	const struct em_sysctl *s = find_sysctl(g, name);
	struct sysctl_req req = { &value, g->copy_error, 0 };

	return (s->handler(NULL, s->arg1, s->arg2, &req));
}

u_long
em_get(struct em_guest *g, const char *name)
{
	const struct em_sysctl *s = find_sysctl(g, name);

	struct sysctl_req req = { NULL, 0, 0 };

	if (s->handler == NULL)
		return (*(u_long *)s->arg1);
	REQUIRE(s->handler(NULL, s->arg1, s->arg2, &req) == 0);
	return (req.old);
}

/* The probe of this name, or a new one: other threads look for theirs. */
static struct em_probe *
find_probe(struct em_guest *g, const char *name)
{
	struct em_probe *p = g->probes;
	const char *of;

	for (;; p++) {
		REQUIRE(p < g->probes + EM_PROBES);
		of = NULL;
		if (__atomic_compare_exchange_n(&p->name, &of, name, false,
		    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
		    strcmp(of, name) == 0)
			return (p);
	}
}

void
em_probe(const char *name, const char *device, uint32_t value)
{
	struct em_probe *p = find_probe(guest, name);

	REQUIRE(strcmp(device, "em0") == 0);
	atomic_add_32(&p->count, 1);
	atomic_add_32(&p->sum, value);
}

unsigned int
em_fired(struct em_guest *g, const char *name)
{
	return (find_probe(g, name)->count);
}

unsigned int
em_fired_sum(struct em_guest *g, const char *name)
{
	return (find_probe(g, name)->sum);
}

uint32_t
em_reg_read(uint32_t reg)
{
	struct em_guest *g = guest;

	atomic_add_32(&g->accesses, 1);
	atomic_add_32(&g->reads[reg / 4], 1);
	if (reg == E82545_ICR && g->icr != 0)
		return (__atomic_exchange_n(&g->icr, 0, __ATOMIC_SEQ_CST));
	return (host_rd(g->h, reg));
}

void
em_reg_write(uint32_t reg, uint32_t value)
{
	struct em_guest *g = guest;

	g->when[reg / 4] = atomic_fetchadd_32(&g->accesses, 1) + 1;
	atomic_add_32(&g->writes[reg / 4], 1);
	host_wr(g->h, reg, value);
	if (g->reg_hook != NULL)
		g->reg_hook(g, reg);
}
