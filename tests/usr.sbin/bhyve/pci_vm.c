/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <machine/vmm_snapshot.h>
#include <net/paravirt.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "bhyverun.h"
#include "config.h"
#include "e82545.h"
#ifndef __FreeBSD__
#include "loop.h"
#endif
#include "mevent.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "pci_vm.h"
#include "wait_until.h"

SET_DECLARE(pci_devemu_set, struct pci_devemu);

_Alignas(4096) uint8_t vm_ram[RAM_SIZE];
struct vm vm = { .mtx = PTHREAD_MUTEX_INITIALIZER };

void *
paddr_guest2host(struct vmctx *ctx, uintptr_t addr, size_t len)
{
	ATF_CHECK_EQ((struct vmctx *)vm_ram, ctx);
	if (addr >= RAM_SIZE || len > RAM_SIZE - addr)
		return (NULL);
	return (vm_ram + addr);
}

int
pci_emul_alloc_bar(struct pci_devinst *pi __unused, int idx,
    enum pcibar_type type, uint64_t size)
{
	vm.bar[idx].type = type;
	vm.bar[idx].size = size;
	return (vm.no_bars ? ENOMEM : 0);
}

/* Add a capability of zeros at `off', after the others, as bhyve does. */
static void
add_capability(struct pci_devinst *pi, int off, uint8_t id, int size)
{
	ATF_REQUIRE(off == (pi->pi_capend == 0 ? 0x40 : pi->pi_capend + 1));
	pci_set_cfgdata8(pi, pi->pi_capend == 0 ? PCIR_CAP_PTR :
	    pi->pi_prevcap + PCICAP_NEXTPTR, off);
	pci_set_cfgdata8(pi, off + PCICAP_ID, id);
	pi->pi_prevcap = off;
	pi->pi_capend = off + (size + 3) / 4 * 4 - 1;
}

int
pci_emul_add_msicap(struct pci_devinst *pi, int msgnum)
{
	add_capability(pi, VM_CAP_MSI, PCIY_MSI, 14);
	vm.msi_messages = msgnum;
	return (0);
}

int
pci_emul_add_pciecap(struct pci_devinst *pi, int pcie_device_type)
{
	add_capability(pi, VM_CAP_EXP, PCIY_EXPRESS, 60);
	vm.pcie_type = pcie_device_type;
	return (0);
}

int
pci_emul_add_msixcap(struct pci_devinst *pi, int msgnum, int barnum)
{
	static struct msix_table_entry table[E82574_VECTORS];
	int i;

	ATF_REQUIRE_EQ(E82574_VECTORS, msgnum);
	pi->pi_msix.table = table;
	memset(table, 0, sizeof(table));
	for (i = 0; i < msgnum; i++)
		table[i].vector_control = PCIM_MSIX_VCTRL_MASK;
	pi->pi_msix.table_bar = pi->pi_msix.pba_bar = barnum;
	pi->pi_msix.table_count = msgnum;
	pi->pi_msix.pba_offset = VM_PBA;
	add_capability(pi, VM_CAP_MSIX, PCIY_MSIX, 12);
	pci_set_cfgdata16(pi, VM_CAP_MSIX + PCIR_MSIX_CTRL, msgnum - 1);
	return (pci_emul_alloc_bar(pi, barnum, PCIBAR_MEM32, 2 * VM_PBA));
}

int
pci_msix_enabled(struct pci_devinst *pi)
{
	return (pi->pi_msix.enabled && !vm.msi_on);
}

int
pci_msix_table_bar(struct pci_devinst *pi)
{
	return (pi->pi_msix.table == NULL ? -1 : pi->pi_msix.table_bar);
}

/* bhyve drops these messages; the adapter must keep them itself. */
void
pci_generate_msix(struct pci_devinst *pi, int msgnum)
{
	ATF_REQUIRE(msgnum >= 0 && msgnum < pi->pi_msix.table_count);
	ATF_CHECK_MSG(pci_msix_enabled(pi) && !pi->pi_msix.function_mask &&
	    pi->pi_msix.table[msgnum].vector_control == 0, "vector %d",
	    msgnum);
	pthread_mutex_lock(&vm.mtx);
	vm.messages[msgnum]++;
	pthread_mutex_unlock(&vm.mtx);
}

/* Where a whole part of the table is, or NULL. */
static void *
table_part(struct pci_devinst *pi, uint64_t offset, int size)
{
	const uint64_t end = pi->pi_msix.table_count *
	    sizeof(struct msix_table_entry);

	return ((size == 4 || size == 8) && offset % size == 0 &&
	    offset < end ? (char *)pi->pi_msix.table + offset : NULL);
}

int
pci_emul_msix_twrite(struct pci_devinst *pi, uint64_t offset, int size,
    uint64_t value)
{
	void *part = table_part(pi, offset, size);

	if (part == NULL)
		return (-1);
	memcpy(part, &value, size);
	return (0);
}

uint64_t
pci_emul_msix_tread(struct pci_devinst *pi, uint64_t offset, int size)
{
	const void *part = table_part(pi, offset, size);
	uint64_t value = 0;

	if (part != NULL)
		memcpy(&value, part, size);
	else if ((size != 4 && size != 8) || offset < VM_PBA ||
	    offset >= VM_PBA + 8)
		value = UINT64_MAX;
	return (value);
}

/* Of that of MSI-X its control register; that of MSI is vm.msi_on. */
void
pci_emul_capwrite(struct pci_devinst *pi, int offset, int bytes,
    uint32_t value, uint8_t capoff, int capid)
{
	const uint16_t mask = PCIM_MSIXCTRL_MSIX_ENABLE |
	    PCIM_MSIXCTRL_FUNCTION_MASK;

	ATF_CHECK_EQ(0, capoff);
	ATF_CHECK_EQ(0, capid);
	if (offset == VM_CAP_MSI && bytes == 2) {
		vm.msi_on = value != 0;
	} else if (offset == VM_CAP_MSIX + PCIR_MSIX_CTRL && bytes == 2) {
		pci_set_cfgdata16(pi, offset, (vm_cfg16(offset) & ~mask) |
		    (value & mask));
		pi->pi_msix.enabled = value & PCIM_MSIXCTRL_MSIX_ENABLE;
		pi->pi_msix.function_mask = value &
		    PCIM_MSIXCTRL_FUNCTION_MASK;
	}
}

void
pci_lintr_request(struct pci_devinst *pi __unused)
{
	vm.lintr_requested = true;
}

void
pci_lintr_assert(struct pci_devinst *pi)
{
	ATF_CHECK_EQ(&vm.pi, pi);
	ATF_CHECK(vm.lintr_requested);
	pthread_mutex_lock(&vm.mtx);
	vm.line = true;
	vm.asserts++;
	vm.need_txkick = ((const struct paravirt_csb *)(void *)(vm_ram +
	    CSB))->host_need_txkick != 0;
	pthread_mutex_unlock(&vm.mtx);
}

void
pci_lintr_deassert(struct pci_devinst *pi __unused)
{
	ATF_CHECK(vm.lintr_requested);
	pthread_mutex_lock(&vm.mtx);
	vm.line = false;
	pthread_mutex_unlock(&vm.mtx);
}

int
pci_msi_enabled(struct pci_devinst *pi __unused)
{
	return (vm.msi_on);
}

void
pci_generate_msi(struct pci_devinst *pi __unused, int msgnum)
{
	ATF_CHECK_EQ(0, msgnum);
	pthread_mutex_lock(&vm.mtx);
	vm.msis++;
	pthread_mutex_unlock(&vm.mtx);
}

int
vm_snapshot_buf(void *data, size_t size, struct vm_snapshot_meta *meta)
{
	if (size > meta->buffer.buf_rem)
		return (E2BIG);
	if (meta->op == VM_SNAPSHOT_SAVE)
		memcpy(meta->buffer.buf, data, size);
	else
		memcpy(data, meta->buffer.buf, size);
	meta->buffer.buf += size;
	meta->buffer.buf_rem -= size;
	return (0);
}

void
vm_snapshot_buf_err(const char *name __unused,
    const enum vm_snapshot_op op __unused)
{
}

/* The backend `wire'. */

struct wire_priv {
	struct mevent	*ev;
};

static int
wire_init(struct net_backend *be, const char *devname __unused,
    nvlist_t *nvl __unused, net_be_rxeof_t cb, void *param)
{
	struct wire_priv *priv;
	int s[2];

	priv = NET_BE_PRIV(be);
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0,
	    s));
	be->fd = s[0];
	vm.wire = s[1];
	priv->ev = mevent_add_disabled(be->fd, EVF_READ, cb, param);
	ATF_REQUIRE(priv->ev != NULL);
	vm.opens++;
	return (0);
}

static void
wire_cleanup(struct net_backend *be)
{
	struct wire_priv *priv;

	priv = NET_BE_PRIV(be);
	mevent_delete_close(priv->ev);
	close(vm.wire);
	vm.cleanups++;
}

static ssize_t
wire_send(struct net_backend *be __unused, const struct iovec *iov, int iovcnt)
{
	size_t len;
	int i;

	pthread_mutex_lock(&vm.mtx);
	for (i = 0, len = 0; i < iovcnt; len += iov[i++].iov_len)
		memcpy(vm.frame + len, iov[i].iov_base, iov[i].iov_len);
	vm.len = len;
	vm.sent++;
	pthread_mutex_unlock(&vm.mtx);
	return (len);
}

static ssize_t
wire_recv(struct net_backend *be, const struct iovec *iov, int iovcnt)
{
	ssize_t len;

	len = readv(be->fd, iov, iovcnt);
	return (len == -1 && errno == EAGAIN ? 0 : len);
}

static void
wire_recv_enable(struct net_backend *be)
{
	struct wire_priv *priv;

	priv = NET_BE_PRIV(be);
	vm.enables++;
	mevent_enable(priv->ev);
}

static void
wire_recv_disable(struct net_backend *be)
{
	struct wire_priv *priv;

	priv = NET_BE_PRIV(be);
	vm.disables++;
	mevent_disable(priv->ev);
}

static uint64_t
wire_get_cap(struct net_backend *be __unused)
{
	return (0);
}

static int
wire_set_cap(struct net_backend *be __unused, uint64_t features __unused,
    unsigned int vnet_hdr_len __unused)
{
	return (-1);
}

static struct net_backend wire_backend = {
	.prefix = "wire",
	.priv_size = sizeof(struct wire_priv),
	.init = wire_init,
	.cleanup = wire_cleanup,
	.send = wire_send,
	.recv = wire_recv,
	.recv_enable = wire_recv_enable,
	.recv_disable = wire_recv_disable,
	.get_cap = wire_get_cap,
	.set_cap = wire_set_cap,
};
DATA_SET(net_backend_set, wire_backend);

/* The vCPU's side. */

const char *vm_device = "e1000";

static struct pci_devemu *
model(void)
{
	struct pci_devemu **pep;

	SET_FOREACH(pep, pci_devemu_set)
		if (strcmp((*pep)->pe_emu, vm_device) == 0)
			return (*pep);
	atf_tc_fail("no model called %s", vm_device);
}

int
vm_init(const char *opts)
{
	struct pci_devemu *pe;
	nvlist_t *nvl;

	pe = model();
	init_config();
	nvl = create_config_node("pci.0.2.0");
	ATF_REQUIRE_EQ(0, pe->pe_legacy_config(nvl, opts));
	memset(&vm.pi, 0, sizeof(vm.pi));
	memset(vm.bar, 0, sizeof(vm.bar));
	vm.pcie_type = -1;
	vm.pi.pi_d = pe;
	vm.pi.pi_slot = 2;
	vm.pi.pi_vmctx = (struct vmctx *)vm_ram;
	/* As bhyve does. */
	pci_set_cfgdata8(&vm.pi, PCIR_COMMAND, PCIM_CMD_BUSMASTEREN);
	return (pe->pe_init(&vm.pi, nvl));
}

uint32_t
vm_rd(uint32_t off)
{
	return (vm.pi.pi_d->pe_barread(&vm.pi, E82545_BAR_MEM, off, 4));
}

void
vm_wr(uint32_t off, uint32_t value)
{
	vm.pi.pi_d->pe_barwrite(&vm.pi, E82545_BAR_MEM, off, 4, value);
}

uint16_t
vm_cfg16(int off)
{
	return (vm.pi.pi_cfgdata[off] | vm.pi.pi_cfgdata[off + 1] << 8);
}

/* As bhyve does for a vCPU. */
uint32_t
vm_cfg(int off, int bytes)
{
	uint32_t value;
	int i;

	if (vm.pi.pi_d->pe_cfgread(&vm.pi, off, bytes, &value) == 0)
		return (value);
	for (value = 0, i = 0; i < bytes; i++)
		value |= (uint32_t)vm.pi.pi_cfgdata[off + i] << 8 * i;
	return (value);
}

/* As bhyve does for a vCPU. */
void
vm_command(uint16_t value)
{
	if (vm.pi.pi_d->pe_cfgwrite(&vm.pi, PCIR_COMMAND, 2, value) != 0)
		pci_set_cfgdata16(&vm.pi, PCIR_COMMAND, value);
}

/* As bhyve does for a vCPU, of what the model leaves to it. */
void
vm_capability(int off, int bytes, uint32_t value)
{
	int i;

	if (vm.pi.pi_d->pe_cfgwrite(&vm.pi, off, bytes, value) == 0)
		return;
	if (off <= vm.pi.pi_capend)
		pci_emul_capwrite(&vm.pi, off, bytes, value, 0, 0);
	else
		for (i = 0; i < bytes; i++)
			pci_set_cfgdata8(&vm.pi, off + i, value >> 8 * i);
}

int
vm_csb(void)
{
	int off = vm.pi.pi_cfgdata[PCIR_CAP_PTR], next;

	for (; (next = vm.pi.pi_cfgdata[off + PCICAP_NEXTPTR]) != 0; off = next)
		ATF_REQUIRE(next > off && next % 4 == 0 &&
		    next <= vm.pi.pi_capend);
	return (vm.pi.pi_cfgdata[off + PCICAP_ID] == PCIY_VENDOR ? off : 0);
}

void
vm_msix(bool on, bool masked)
{
	vm_capability(VM_CAP_MSIX + PCIR_MSIX_CTRL, 2,
	    (on ? PCIM_MSIXCTRL_MSIX_ENABLE : 0) |
	    (masked ? PCIM_MSIXCTRL_FUNCTION_MASK : 0));
}

void
vm_mask(unsigned int vector, bool masked)
{
	vm.pi.pi_d->pe_barwrite(&vm.pi, E82574_BAR_MSIX,
	    16 * vector + offsetof(struct msix_table_entry, vector_control), 4,
	    masked ? PCIM_MSIX_VCTRL_MASK : 0);
}

int
vm_snapshot(enum vm_snapshot_op op, void *buf, size_t *sizep)
{
	struct vm_snapshot_meta meta = {
		.dev_data = &vm.pi,
		.dev_name = vm_device,
		.buffer = { .buf = buf, .buf_rem = *sizep },
		.op = op,
	};
	int error;

	error = vm.pi.pi_d->pe_snapshot(&meta);
	*sizep -= meta.buffer.buf_rem;
	return (error);
}

/* done(), which looks at `vm'. */
bool
vm_is(bool (*done)(void))
{
	bool result;

	pthread_mutex_lock(&vm.mtx);
	result = done();
	pthread_mutex_unlock(&vm.mtx);
	return (result);
}

#define	SEEN	"%d frames sent, %d assertions, RDH %u", vm.sent,	\
	    vm.asserts, vm_rd(E82545_RDH)

#ifdef __FreeBSD__
static void *
event_loop(void *arg __unused)
{
	mevent_dispatch();
	return (NULL);
}

void
vm_run_until(bool (*done)(void))
{
	static bool started;
	pthread_t thread;

	if (!started)
		ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, event_loop,
		    NULL));
	started = true;
	wait_until(vm_is(done), SEEN);
}
#else
/* wait_until(), from a handler of the event loop. */
static struct wait_state wait_state;

static void
on_clock(int fd __unused, enum ev_type type __unused, void *param)
{
	bool (*done)(void);

	done = *(bool (**)(void))param;
	if (vm_is(done))
		loop_stop(loop_self());
	else if (!wait_more(&wait_state))
		wait_failed(__FILE__, __LINE__, "done()", SEEN);
}

void
vm_run_until(bool (*done)(void))
{
	struct mevent *clock;

	wait_state = (struct wait_state){ 0, 0 };
	clock = mevent_add(1, EVF_TIMER, on_clock, &done);
	ATF_REQUIRE(clock != NULL);
	mevent_dispatch();
	ATF_REQUIRE_EQ(0, mevent_delete(clock));
}
#endif

/* A time in which a frame that does not wait would have been received. */
static long long ten_ms_end;		/* ns */

static bool
ten_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * 1000000000LL + ts.tv_nsec >= ten_ms_end);
}

void
vm_run_ten_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ten_ms_end = ts.tv_sec * 1000000000LL + ts.tv_nsec + 10000000;
	vm_run_until(ten_ms);
}

bool
vm_line_up(void)
{
	return (vm.line);
}

bool
vm_messaged(void)
{
	int i, n;

	for (i = n = 0; i < E82574_VECTORS; i++)
		n += vm.messages[i];
	return (n != 0);
}

int vm_expected;

bool
vm_sent(void)
{
	return (vm.sent == vm_expected);
}

bool
vm_received(void)
{
	struct e82545_rxd *rxd;

	rxd = (struct e82545_rxd *)(void *)(vm_ram + RX_RING);
	rxd += vm_expected - 1;
	return ((__atomic_load_n(&rxd->status, __ATOMIC_ACQUIRE) &
	    E82545_RXD_DD) != 0);
}

void
vm_start(const char *opts)
{
	struct e82545_rxd *rxd;
	int i;

	ATF_REQUIRE_EQ(0, vm_init(opts));
	vm_wr(E82545_CTRL, E82545_CTRL_SLU);
	vm_rd(E82545_ICR);
	vm_wr(E82545_TDBAL, TX_RING);
	vm_wr(E82545_TDLEN, RING * sizeof(union e82545_txd));
	vm_wr(E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	rxd = (struct e82545_rxd *)(void *)(vm_ram + RX_RING);
	for (i = 0; i < RING; i++)
		rxd[i].addr = RX_BUF + 2048 * i;
	vm_wr(E82545_RDBAL, RX_RING);
	vm_wr(E82545_RDLEN, RING * sizeof(struct e82545_rxd));
	vm_wr(E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_UPE | E82545_RCTL_BAM |
	    E82545_RCTL_SECRC);
}

void
vm_frame(uint8_t *frame, size_t len, uint8_t seed)
{
	size_t i;

	memset(frame, 0xff, 6);
	memset(frame + 6, 2, 6);
	for (i = 12; i < len; i++)
		frame[i] = seed + i * 3;
}

void
vm_transmit(int i, size_t len, uint8_t seed)
{
	union e82545_txd *txd;

	vm_frame(vm_ram + TX_BUF + 2048 * i, len, seed);
	txd = (union e82545_txd *)(void *)(vm_ram + TX_RING);
	memset(&txd[i], 0, sizeof(txd[i]));
	txd[i].legacy.addr = TX_BUF + 2048 * i;
	txd[i].legacy.length = len;
	txd[i].legacy.cmd = (E82545_TXD_EOP | E82545_TXD_IFCS |
	    E82545_TXD_RS) >> 24;
}
