/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * pci_e82545.c with stubs of bhyve's PCI emulation, guest memory and network
 * backend, a socket whose other end is the network.  The test's own thread is
 * the vCPU and, except with bhyve's own, which never ends, the event loop.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <dev/e1000/e82545_reg.h>
#include <machine/vmm_snapshot.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "bhyverun.h"
#include "config.h"
#include "e82545.h"
#include "mevent.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "pci_emul.h"
#include "wait_until.h"

SET_DECLARE(pci_devemu_set, struct pci_devemu);

#define	RAM_SIZE	0x100000
#define	TX_RING		0x1000		/* guest addresses */
#define	RX_RING		0x2000
#define	CSB		0x3000
#define	TX_BUF		0x10000
#define	RX_BUF		0x40000
#define	RING		64		/* descriptors */

static _Alignas(4096) uint8_t ram[RAM_SIZE];

static struct {
	struct pci_devinst pi;
	struct {
		enum pcibar_type type;
		uint64_t	 size;
	} bar[PCIR_MAX_BAR_0 + 1];
	int		 msi_messages;	/* requested in the capability */
	bool		 lintr_requested;
	bool		 no_bars;

	pthread_mutex_t	 mtx;
	bool		 line;
	int		 asserts;
	bool		 msi_on;
	int		 msis;
	int		 sent;		/* frames the backend sent */
	uint8_t		 frame[2048];	/* the last one */
	size_t		 len;
	int		 opens, cleanups, enables, disables;
	int		 wire;		/* the network's end */
} bhyve = { .mtx = PTHREAD_MUTEX_INITIALIZER };

void *
paddr_guest2host(struct vmctx *ctx, uintptr_t addr, size_t len)
{
	ATF_CHECK_EQ((struct vmctx *)ram, ctx);
	if (addr >= RAM_SIZE || len > RAM_SIZE - addr)
		return (NULL);
	return (ram + addr);
}

int
pci_emul_alloc_bar(struct pci_devinst *pi __unused, int idx,
    enum pcibar_type type, uint64_t size)
{
	bhyve.bar[idx].type = type;
	bhyve.bar[idx].size = size;
	return (bhyve.no_bars ? ENOMEM : 0);
}

int
pci_emul_add_msicap(struct pci_devinst *pi __unused, int msgnum)
{
	bhyve.msi_messages = msgnum;
	return (0);
}

void
pci_lintr_request(struct pci_devinst *pi __unused)
{
	bhyve.lintr_requested = true;
}

void
pci_lintr_assert(struct pci_devinst *pi)
{
	ATF_CHECK_EQ(&bhyve.pi, pi);
	ATF_CHECK(bhyve.lintr_requested);
	pthread_mutex_lock(&bhyve.mtx);
	bhyve.line = true;
	bhyve.asserts++;
	pthread_mutex_unlock(&bhyve.mtx);
}

void
pci_lintr_deassert(struct pci_devinst *pi __unused)
{
	ATF_CHECK(bhyve.lintr_requested);
	pthread_mutex_lock(&bhyve.mtx);
	bhyve.line = false;
	pthread_mutex_unlock(&bhyve.mtx);
}

int
pci_msi_enabled(struct pci_devinst *pi __unused)
{
	return (bhyve.msi_on);
}

void
pci_generate_msi(struct pci_devinst *pi __unused, int msgnum)
{
	ATF_CHECK_EQ(0, msgnum);
	pthread_mutex_lock(&bhyve.mtx);
	bhyve.msis++;
	pthread_mutex_unlock(&bhyve.mtx);
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
	bhyve.wire = s[1];
	priv->ev = mevent_add_disabled(be->fd, EVF_READ, cb, param);
	ATF_REQUIRE(priv->ev != NULL);
	bhyve.opens++;
	return (0);
}

static void
wire_cleanup(struct net_backend *be)
{
	struct wire_priv *priv;

	priv = NET_BE_PRIV(be);
	mevent_delete_close(priv->ev);
	close(bhyve.wire);
	bhyve.cleanups++;
}

static ssize_t
wire_send(struct net_backend *be __unused, const struct iovec *iov, int iovcnt)
{
	size_t len;
	int i;

	pthread_mutex_lock(&bhyve.mtx);
	for (i = 0, len = 0; i < iovcnt; len += iov[i++].iov_len)
		memcpy(bhyve.frame + len, iov[i].iov_base, iov[i].iov_len);
	bhyve.len = len;
	bhyve.sent++;
	pthread_mutex_unlock(&bhyve.mtx);
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
	bhyve.enables++;
	mevent_enable(priv->ev);
}

static void
wire_recv_disable(struct net_backend *be)
{
	struct wire_priv *priv;

	priv = NET_BE_PRIV(be);
	bhyve.disables++;
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

static struct pci_devemu *
model(void)
{
	struct pci_devemu **pep;

	SET_FOREACH(pep, pci_devemu_set)
		if (strcmp((*pep)->pe_emu, "e1000") == 0)
			return (*pep);
	atf_tc_fail("no model called e1000");
}

static int
try_init(const char *opts)
{
	struct pci_devemu *pe;
	nvlist_t *nvl;

	pe = model();
	init_config();
	nvl = create_config_node("pci.0.2.0");
	ATF_REQUIRE_EQ(0, pe->pe_legacy_config(nvl, opts));
	memset(&bhyve.pi, 0, sizeof(bhyve.pi));
	bhyve.pi.pi_d = pe;
	bhyve.pi.pi_slot = 2;
	bhyve.pi.pi_vmctx = (struct vmctx *)ram;
	/* As bhyve does. */
	pci_set_cfgdata8(&bhyve.pi, PCIR_COMMAND, PCIM_CMD_BUSMASTEREN);
	return (pe->pe_init(&bhyve.pi, nvl));
}

static uint32_t
rd(uint32_t off)
{
	return (bhyve.pi.pi_d->pe_barread(&bhyve.pi, E82545_BAR_MEM, off, 4));
}

static void
wr(uint32_t off, uint32_t value)
{
	bhyve.pi.pi_d->pe_barwrite(&bhyve.pi, E82545_BAR_MEM, off, 4, value);
}

static uint16_t
cfg16(int off)
{
	return (bhyve.pi.pi_cfgdata[off] | bhyve.pi.pi_cfgdata[off + 1] << 8);
}

/* Write the command register as bhyve does for a vCPU. */
static void
command(uint16_t value)
{
	if (bhyve.pi.pi_d->pe_cfgwrite(&bhyve.pi, PCIR_COMMAND, 2, value) != 0)
		pci_set_cfgdata16(&bhyve.pi, PCIR_COMMAND, value);
}

/* done(), which looks at `bhyve'. */
static bool
locked(bool (*done)(void))
{
	bool result;

	pthread_mutex_lock(&bhyve.mtx);
	result = done();
	pthread_mutex_unlock(&bhyve.mtx);
	return (result);
}

#define	SEEN	"%d frames sent, %d assertions, RDH %u", bhyve.sent,	\
	    bhyve.asserts, rd(E82545_RDH)

/* Run the event loop until done(). */
#ifdef __FreeBSD__
static void *
event_loop(void *arg __unused)
{
	mevent_dispatch();
	return (NULL);
}

static void
run_until(bool (*done)(void))
{
	static bool started;
	pthread_t thread;

	if (!started)
		ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, event_loop,
		    NULL));
	started = true;
	wait_until(locked(done), SEEN);
}
#else
/* wait_until(), from a handler of the event loop. */
static struct wait_state wait_state;

static void
on_clock(int fd __unused, enum ev_type type __unused, void *param)
{
	bool (*done)(void);

	done = *(bool (**)(void))param;
	if (locked(done))
		mevent_stop(mevent_loop());
	else if (!wait_more(&wait_state))
		wait_failed(__FILE__, __LINE__, "done()", SEEN);
}

static void
run_until(bool (*done)(void))
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

static void
run_ten_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ten_ms_end = ts.tv_sec * 1000000000LL + ts.tv_nsec + 10000000;
	run_until(ten_ms);
}

static bool
line_up(void)
{
	return (bhyve.line);
}

static int expected;

static bool
sent_expected(void)
{
	return (bhyve.sent == expected);
}

static bool
received_expected(void)
{
	struct e82545_rxd *rxd;

	rxd = (struct e82545_rxd *)(void *)(ram + RX_RING);
	return ((__atomic_load_n(&rxd[expected - 1].status, __ATOMIC_ACQUIRE) &
	    E82545_RXD_DD) != 0);
}

static void
start(const char *opts)
{
	struct e82545_rxd *rxd;
	int i;

	ATF_REQUIRE_EQ(0, try_init(opts));
	wr(E82545_CTRL, E82545_CTRL_SLU);
	rd(E82545_ICR);
	wr(E82545_TDBAL, TX_RING);
	wr(E82545_TDLEN, RING * sizeof(union e82545_txd));
	wr(E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	rxd = (struct e82545_rxd *)(void *)(ram + RX_RING);
	for (i = 0; i < RING; i++)
		rxd[i].addr = RX_BUF + 2048 * i;
	wr(E82545_RDBAL, RX_RING);
	wr(E82545_RDLEN, RING * sizeof(struct e82545_rxd));
	wr(E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_UPE | E82545_RCTL_BAM |
	    E82545_RCTL_SECRC);
}

static void
fill(uint8_t *frame, size_t len, uint8_t seed)
{
	size_t i;

	memset(frame, 0xff, 6);
	memset(frame + 6, 2, 6);
	for (i = 12; i < len; i++)
		frame[i] = seed + i * 3;
}

/* Put a frame into the transmit ring.  The caller writes TDT. */
static void
transmit(int i, size_t len, uint8_t seed)
{
	union e82545_txd *txd;

	fill(ram + TX_BUF + 2048 * i, len, seed);
	txd = (union e82545_txd *)(void *)(ram + TX_RING);
	memset(&txd[i], 0, sizeof(txd[i]));
	txd[i].legacy.addr = TX_BUF + 2048 * i;
	txd[i].legacy.length = len;
	txd[i].legacy.cmd = (E82545_TXD_EOP | E82545_TXD_IFCS |
	    E82545_TXD_RS) >> 24;
}

ATF_TC(identity);
ATF_TC_HEAD(identity, tc)
{
	atf_tc_set_md_var(tc, "descr", "PCI configuration space, BARs and "
	    "interrupts are an 82545EM's");
}
ATF_TC_BODY(identity, tc)
{
	ATF_REQUIRE_EQ(0, try_init("wire0"));
	ATF_CHECK_EQ(0x8086, cfg16(PCIR_VENDOR));
	ATF_CHECK_EQ(0x100f, cfg16(PCIR_DEVICE));
	ATF_CHECK_EQ(0x8086, cfg16(PCIR_SUBVEND_0));
	ATF_CHECK_EQ(0x1101, cfg16(PCIR_SUBDEV_0));
	ATF_CHECK_EQ(3, bhyve.pi.pi_cfgdata[PCIR_REVID]);
	ATF_CHECK_EQ(0x0200, cfg16(PCIR_SUBCLASS));
	ATF_CHECK_EQ(0, bhyve.pi.pi_cfgdata[PCIR_HDRTYPE]);
	ATF_CHECK_EQ(1, bhyve.pi.pi_cfgdata[PCIR_INTPIN]);
	ATF_CHECK_EQ(PCIBAR_MEM32, bhyve.bar[0].type);
	ATF_CHECK_EQ(0x20000, bhyve.bar[0].size);
	ATF_CHECK_EQ(PCIBAR_NONE, bhyve.bar[1].type);
	ATF_CHECK_EQ(PCIBAR_IO, bhyve.bar[2].type);
	ATF_CHECK_EQ(8, bhyve.bar[2].size);
	ATF_CHECK_EQ(1, bhyve.msi_messages);
	ATF_CHECK(bhyve.lintr_requested);
	ATF_CHECK_EQ_MSG(1, bhyve.enables, "receiving starts enabled");
	wr(E82545_CTRL, E82545_CTRL_SLU);
	ATF_CHECK((rd(E82545_STATUS) & E82545_STATUS_LU) != 0);
}

ATF_TC(options);
ATF_TC_HEAD(options, tc)
{
	atf_tc_set_md_var(tc, "descr", "mac=, mtu=, itr= and csb= have their "
	    "ranges; other options end bhyve, and leave nothing open");
}
ATF_TC_BODY(options, tc)
{
	static const char * const bad[] = { NULL, "", "nosuch0",
	    "wire0,mac=01:00:00:00:00:01", "wire0,mac=x", "wire0,itr=-1",
	    "wire0,itr=65536", "wire0,itr=", "wire0,itr=1us", "wire0,itr",
	    "wire0,mtu=67", "wire0,mtu=big", "wire0,csb=", "wire0,csb=1" };
	char opts[64];
	size_t i;

	for (i = 0; i < nitems(bad); i++)
		ATF_CHECK_MSG(try_init(bad[i]) != 0, "%s", bad[i]);
	snprintf(opts, sizeof(opts), "wire0,mtu=%d", E82545_FRAME_MAX - 17);
	ATF_CHECK(try_init(opts) != 0);
	bhyve.no_bars = true;
	ATF_CHECK(try_init("wire0") != 0);
	bhyve.no_bars = false;
	ATF_CHECK_EQ(bhyve.opens, bhyve.cleanups);

	ATF_CHECK_EQ(0, try_init("wire0,mac=02:04:06:08:0a:0c,itr=0,mtu=68"));
	ATF_CHECK_EQ(0x08060402, rd(E82545_RAL(0)));
	ATF_CHECK_EQ(0x80000c0a, rd(E82545_RAH(0)));
	snprintf(opts, sizeof(opts), "wire0,itr=65535,mtu=%d",
	    E82545_FRAME_MAX - 18);
	ATF_CHECK_EQ(0, try_init(opts));
	ATF_CHECK((rd(E82545_RAL(0)) & 1) == 0);
	ATF_CHECK_EQ(0, try_init("wire0,csb=on"));
	ATF_CHECK_EQ(0x1101, cfg16(PCIR_SUBDEV_0));
	wr(E82545_CSBAH, 1);
	ATF_CHECK_EQ(1, rd(E82545_CSBAH));
	ATF_CHECK_EQ(0, try_init("wire0,csb=off"));
	ATF_CHECK_EQ(0x1008, cfg16(PCIR_SUBDEV_0));
	wr(E82545_CSBAH, 1);
	ATF_CHECK_EQ(0, rd(E82545_CSBAH));
	ATF_CHECK_EQ(bhyve.opens, bhyve.cleanups + 4);
}

ATF_TC(transmit);
ATF_TC_HEAD(transmit, tc)
{
	atf_tc_set_md_var(tc, "descr", "The adapter's own thread sends frames; "
	    "the line is asserted, and deasserted by a read of ICR");
}
ATF_TC_BODY(transmit, tc)
{
	uint8_t frame[1000];
	int i;

	start("wire0");
	wr(E82545_IMS, E82545_ICR_TXDW);
	for (i = 0; i < RING - 1; i++)
		transmit(i, 1000, i);
	expected = RING - 1;
	wr(E82545_TDT, RING - 1);
	run_until(sent_expected);
	run_until(line_up);
	fill(frame, sizeof(frame), RING - 2);
	ATF_CHECK_EQ(1000, bhyve.len);
	ATF_CHECK_EQ(0, memcmp(frame, bhyve.frame, sizeof(frame)));
	ATF_CHECK((rd(E82545_ICR) & E82545_ICR_TXDW) != 0);
	ATF_CHECK(!bhyve.line);
	ATF_CHECK_EQ(0, bhyve.msis);
}

ATF_TC(msi);
ATF_TC_HEAD(msi, tc)
{
	atf_tc_set_md_var(tc, "descr", "With MSI on, each assertion sends a "
	    "message");
}
ATF_TC_BODY(msi, tc)
{
	int i;

	start("wire0");
	bhyve.msi_on = true;
	wr(E82545_IMS, E82545_ICR_LSC);
	for (i = 1; i <= 3; i++) {
		wr(E82545_ICS, E82545_ICR_LSC);
		run_until(line_up);
		ATF_CHECK_EQ(i, bhyve.msis);
		ATF_CHECK((rd(E82545_ICR) & E82545_ICR_LSC) != 0);
		ATF_CHECK(!bhyve.line);
	}
}

ATF_TC(timer);
ATF_TC_HEAD(timer, tc)
{
	atf_tc_set_md_var(tc, "descr", "The timer sends an interrupt that was "
	    "delayed by ITR or, if that is 0, by itr=");
}
ATF_TC_BODY(timer, tc)
{
	static const char * const opts[] = { "wire0", "wire0,itr=65535" };
	size_t i;
	int before;

	for (i = 0; i < nitems(opts); i++) {
		start(opts[i]);
		if (i == 0)
			wr(E82545_ITR, 65535);		/* 16.8 ms */
		wr(E82545_IMS, E82545_ICR_LSC);
		wr(E82545_ICS, E82545_ICR_LSC);
		run_until(line_up);
		rd(E82545_ICR);
		before = bhyve.asserts;
		wr(E82545_ICS, E82545_ICR_LSC);
		run_until(line_up);
		ATF_CHECK_EQ(before + 1, bhyve.asserts);
		rd(E82545_ICR);
		ATF_CHECK(!bhyve.line);
	}
}

ATF_TC(receive);
ATF_TC_HEAD(receive, tc)
{
	atf_tc_set_md_var(tc, "descr", "Frames are received by the event loop; "
	    "without descriptors they wait in the backend, with its event "
	    "disabled, until RDT changes");
}
ATF_TC_BODY(receive, tc)
{
	uint8_t frame[300];
	int i;

	start("wire0");
	wr(E82545_IMS, E82545_ICR_RXT0);
	for (i = 0; i < 5; i++) {
		fill(frame, sizeof(frame), i);
		ATF_REQUIRE_EQ(300, send(bhyve.wire, frame, sizeof(frame), 0));
	}
	wr(E82545_RDT, 2);
	expected = 2;
	run_until(received_expected);
	run_until(line_up);
	run_ten_ms();
	ATF_CHECK_EQ_MSG(0, ram[RX_BUF + 2 * 2048], "beyond the tail");
	ATF_CHECK(bhyve.disables > 0);
	ATF_CHECK_MSG(bhyve.disables <= 2, "spins: %d", bhyve.disables);

	wr(E82545_RDT, 10);
	expected = 5;
	run_until(received_expected);
	for (i = 0; i < 5; i++) {
		fill(frame, sizeof(frame), i);
		ATF_CHECK_EQ(0, memcmp(frame, ram + RX_BUF + 2048 * i,
		    sizeof(frame)));
	}

	/* The event is enabled again. */
	fill(frame, sizeof(frame), 9);
	ATF_REQUIRE_EQ(300, send(bhyve.wire, frame, sizeof(frame), 0));
	expected = 6;
	run_until(received_expected);
}

ATF_TC(bus_master);
ATF_TC_HEAD(bus_master, tc)
{
	atf_tc_set_md_var(tc, "descr", "With bus mastering off guest memory "
	    "stays as it is; frames go in both directions when it is on again");
}
ATF_TC_BODY(bus_master, tc)
{
	static uint8_t saved[RAM_SIZE];
	uint8_t frame[300];
	int other;

	start("wire0");
	wr(E82545_RDT, RING - 1);
	transmit(0, 200, 1);
	fill(frame, sizeof(frame), 2);
	wr(E82545_CSBAL, CSB);
	command(0);
	ATF_CHECK_EQ(0, cfg16(PCIR_COMMAND));
	memset(ram + CSB, 0xaa, 4096);
	memcpy(saved, ram, RAM_SIZE);
	ATF_REQUIRE_EQ(300, send(bhyve.wire, frame, sizeof(frame), 0));
	wr(E82545_TDT, 1);
	bhyve.disables = 0;
	run_ten_ms();
	ATF_CHECK_MSG(bhyve.disables <= 2, "spins: %d", bhyve.disables);
	/* Other registers do not turn it on. */
	for (other = 0; other <= PCI_REGMAX; other++)
		if (other != PCIR_COMMAND)
			ATF_CHECK(bhyve.pi.pi_d->pe_cfgwrite(&bhyve.pi, other,
			    1, 0xff) != 0);
	run_ten_ms();
	ATF_CHECK_EQ(0, bhyve.sent);
	ATF_CHECK_EQ(0, memcmp(saved, ram, RAM_SIZE));

	memset(ram + CSB, 0, 4096);
	command(PCIM_CMD_BUSMASTEREN);
	expected = 1;
	run_until(sent_expected);
	run_until(received_expected);
	ATF_CHECK_EQ(0, memcmp(frame, ram + RX_BUF, sizeof(frame)));

	command(0);
	memcpy(saved, ram, RAM_SIZE);
	wr(E82545_TDT, 1);
	wr(E82545_CTRL, E82545_CTRL_RST);
	run_ten_ms();
	ATF_CHECK_EQ(0, memcmp(saved, ram, RAM_SIZE));
}

ATF_TC(loopback);
ATF_TC_HEAD(loopback, tc)
{
	atf_tc_set_md_var(tc, "descr", "A frame looped back is received "
	    "without a frame in the backend");
}
ATF_TC_BODY(loopback, tc)
{
	start("wire0");
	wr(E82545_RCTL, rd(E82545_RCTL) | E82545_RCTL_LBM_MAC);
	wr(E82545_RDT, RING - 1);
	transmit(0, 200, 5);
	wr(E82545_TDT, 1);
	expected = 1;
	run_until(received_expected);
	ATF_CHECK_EQ(0, memcmp(ram + TX_BUF, ram + RX_BUF, 200));
	ATF_CHECK_EQ(0, bhyve.sent);
}

ATF_TC(mtu);
ATF_TC_HEAD(mtu, tc)
{
	atf_tc_set_md_var(tc, "descr", "Frames longer than mtu= with header "
	    "and VLAN tag are dropped, sent or received");
}
ATF_TC_BODY(mtu, tc)
{
	uint8_t frame[600];
	int i;

	start("wire0,mtu=500");
	wr(E82545_RDT, RING - 1);
	for (i = 0; i < 4; i++)
		transmit(i, 519 - i, i);
	wr(E82545_TDT, 4);
	expected = 3;
	run_until(sent_expected);
	ATF_CHECK_EQ(516, bhyve.len);

	for (i = 0; i < 100; i++) {
		fill(frame, 519, i);
		ATF_REQUIRE_EQ(519, send(bhyve.wire, frame, 519, 0));
		if (i % 20 == 19) {
			run_ten_ms();
		}
	}
	expected = 1;
	fill(frame, 518, 7);
	ATF_REQUIRE_EQ(518, send(bhyve.wire, frame, 518, 0));
	run_until(received_expected);
	ATF_CHECK_EQ(0, memcmp(frame, ram + RX_BUF, 518));
	expected = 3;
	ATF_CHECK(sent_expected());
}

ATF_TC(flood);
ATF_TC_HEAD(flood, tc)
{
	atf_tc_set_md_var(tc, "descr", "Frames for many rounds of the event "
	    "loop are all received");
}
ATF_TC_BODY(flood, tc)
{
	struct e82545_rxd *rxd;
	uint8_t frame[60];
	int i, n, round;

	start("wire0");
	rxd = (struct e82545_rxd *)(void *)(ram + RX_RING);
	wr(E82545_RDT, RING - 1);
	n = 0;
	for (round = 0; round < 200; round++) {
		for (i = 0; i < 5; i++, n++) {
			fill(frame, sizeof(frame), n);
			ATF_REQUIRE_EQ(60, send(bhyve.wire, frame, 60, 0));
		}
		n -= 5;
		expected = (n + 4) % RING + 1;
		run_until(received_expected);
		for (i = 0; i < 5; i++, n++) {
			fill(frame, sizeof(frame), n);
			ATF_CHECK_EQ(0, memcmp(frame, ram + RX_BUF +
			    2048 * (n % RING), sizeof(frame)));
			rxd[n % RING].status = 0;
		}
		wr(E82545_RDT, (n + RING - 1) % RING);
	}
}

static int
snapshot(enum vm_snapshot_op op, void *buf, size_t *sizep)
{
	struct vm_snapshot_meta meta = {
		.dev_data = &bhyve.pi,
		.dev_name = "e1000",
		.buffer = { .buf = buf, .buf_rem = *sizep },
		.op = op,
	};
	int error;

	error = bhyve.pi.pi_d->pe_snapshot(&meta);
	*sizep -= meta.buffer.buf_rem;
	return (error);
}

ATF_TC(save_restore);
ATF_TC_HEAD(save_restore, tc)
{
	atf_tc_set_md_var(tc, "descr", "An adapter is saved under traffic and "
	    "restored; while paused it asserts no line, leaves frames in the "
	    "backend and does not spin; an invalid snapshot changes nothing");
}
ATF_TC_BODY(save_restore, tc)
{
	static uint8_t saved[1 << 20], spoilt[1 << 20];
	uint8_t frame[300];
	size_t n, room, size;
	int i;

	start("wire0");
	wr(E82545_RDT, 2);
	for (i = 0; i < 5; i++) {
		fill(frame, sizeof(frame), i);
		ATF_REQUIRE_EQ(300, send(bhyve.wire, frame, sizeof(frame), 0));
	}
	expected = 2;
	run_until(received_expected);
	wr(E82545_IMS, E82545_ICR_LSC);
	wr(E82545_ICS, E82545_ICR_LSC);
	ATF_CHECK(bhyve.line);

	ATF_REQUIRE_EQ(0, bhyve.pi.pi_d->pe_pause(&bhyve.pi));
	ATF_CHECK(!bhyve.line);
	bhyve.disables = 0;
	run_ten_ms();
	ATF_CHECK_MSG(bhyve.disables <= 2, "spins: %d", bhyve.disables);
	size = sizeof(saved);
	ATF_REQUIRE_EQ(0, snapshot(VM_SNAPSHOT_SAVE, saved, &size));
	for (room = 0; room < size; room += 100) {
		n = room;
		ATF_CHECK(snapshot(VM_SNAPSHOT_SAVE, spoilt, &n) != 0);
	}
	ATF_REQUIRE_EQ(0, bhyve.pi.pi_d->pe_resume(&bhyve.pi));
	ATF_CHECK(bhyve.line);

	/* A new process pauses the adapter before it was ever used. */
	ATF_REQUIRE_EQ(0, try_init("wire0,mac=02:00:00:00:00:09"));
	bhyve.line = false;
	bhyve.asserts = 0;
	bhyve.msi_on = true;
	ATF_REQUIRE_EQ(0, bhyve.pi.pi_d->pe_pause(&bhyve.pi));
	for (room = 0; room < size; room += 100) {
		n = room;
		ATF_CHECK(snapshot(VM_SNAPSHOT_RESTORE, saved, &n) != 0);
	}
	memcpy(spoilt, saved, size);
	for (i = 0; i < 200; i++) {
		n = size;
		spoilt[i] ^= 0x80;
		ATF_CHECK(snapshot(VM_SNAPSHOT_RESTORE, spoilt, &n) != 0);
		spoilt[i] ^= 0x80;
	}
	ATF_CHECK_EQ(0x80000900, rd(E82545_RAH(0)));
	n = size;
	/* bhyve has restored the command register, with bus mastering off. */
	pci_set_cfgdata8(&bhyve.pi, PCIR_COMMAND, 0);
	ATF_REQUIRE_EQ(0, snapshot(VM_SNAPSHOT_RESTORE, saved, &n));
	ATF_CHECK_EQ(size, n);
	ATF_CHECK(!bhyve.line);
	ATF_REQUIRE_EQ(0, bhyve.pi.pi_d->pe_resume(&bhyve.pi));
	ATF_CHECK(bhyve.line);
	ATF_CHECK_EQ(1, bhyve.asserts);
	ATF_CHECK_EQ_MSG(0, bhyve.msis, "its message came before the save");
	bhyve.msi_on = false;
	ATF_CHECK((rd(E82545_ICR) & E82545_ICR_LSC) != 0);
	ATF_CHECK(!bhyve.line);

	/* The rings continue where they were. */
	for (i = 2; i < 5; i++) {
		fill(frame, sizeof(frame), i);
		ATF_REQUIRE_EQ(300, send(bhyve.wire, frame, sizeof(frame), 0));
	}
	wr(E82545_RDT, 10);
	run_ten_ms();
	ATF_CHECK_EQ(2, rd(E82545_RDH));
	command(PCIM_CMD_BUSMASTEREN);
	expected = 5;
	run_until(received_expected);
	for (i = 0; i < 5; i++) {
		fill(frame, sizeof(frame), i);
		ATF_CHECK_EQ(0, memcmp(frame, ram + RX_BUF + 2048 * i,
		    sizeof(frame)));
	}
	transmit(0, 1000, 7);
	expected = 1;
	bhyve.sent = 0;
	wr(E82545_TDT, 1);
	run_until(sent_expected);
	fill(frame, sizeof(frame), 7);
	ATF_CHECK_EQ(0, memcmp(frame, bhyve.frame, sizeof(frame)));
}

static char info[16384];		/* what SIGINFO printed */
static FILE *info_file;

static bool
info_complete(void)
{
	size_t n;

	rewind(info_file);
	n = fread(info, 1, sizeof(info) - 1, info_file);
	info[n] = '\0';
	return (strstr(info, "rx_overmtu") != NULL);
}

ATF_TC(counters);
ATF_TC_HEAD(counters, tc)
{
	atf_tc_set_md_var(tc, "timeout", "60");
	atf_tc_set_md_var(tc, "descr", "SIGINFO prints the counters of the "
	    "adapter and of its frame port");
}
ATF_TC_BODY(counters, tc)
{
	static const char *const lines[] = {
		"e1000 2:0: tx_frames 2\n", "e1000 2:0: tx_kicks 1\n",
		"e1000 2:0: tx_overmtu 1\n", "e1000 2:0: rx_frames 1\n",
		"e1000 2:0: rx_overmtu 2\n"
	};
	uint8_t frame[600] = { 0 };
	size_t i;
	int saved;

	start("wire0,mtu=500");
	wr(E82545_RDT, RING - 1);
	transmit(0, 519, 0);
	transmit(1, 518, 1);
	wr(E82545_TDT, 2);
	expected = 1;
	run_until(sent_expected);
	ATF_REQUIRE_EQ(519, send(bhyve.wire, frame, 519, 0));
	ATF_REQUIRE_EQ(520, send(bhyve.wire, frame, 520, 0));
	ATF_REQUIRE_EQ(518, send(bhyve.wire, frame, 518, 0));
	run_until(received_expected);

	info_file = tmpfile();
	ATF_REQUIRE(info_file != NULL);
	/* Reading moves the offset. */
	ATF_REQUIRE(fcntl(fileno(info_file), F_SETFL, O_APPEND) != -1);
	saved = dup(STDERR_FILENO);
	ATF_REQUIRE(dup2(fileno(info_file), STDERR_FILENO) != -1);
	ATF_REQUIRE_EQ(0, kill(getpid(), SIGINFO));
	run_until(info_complete);
	ATF_REQUIRE(dup2(saved, STDERR_FILENO) != -1);
	for (i = 0; i < nitems(lines); i++)
		ATF_CHECK_MSG(strstr(info, lines[i]) != NULL, "%snot in\n%s",
		    lines[i], info);
	ATF_CHECK(strstr(info, " 0\n") == NULL);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, identity);
	ATF_TP_ADD_TC(tp, options);
	ATF_TP_ADD_TC(tp, transmit);
	ATF_TP_ADD_TC(tp, msi);
	ATF_TP_ADD_TC(tp, timer);
	ATF_TP_ADD_TC(tp, receive);
	ATF_TP_ADD_TC(tp, bus_master);
	ATF_TP_ADD_TC(tp, loopback);
	ATF_TP_ADD_TC(tp, mtu);
	ATF_TP_ADD_TC(tp, counters);
	ATF_TP_ADD_TC(tp, flood);
	ATF_TP_ADD_TC(tp, save_restore);
	return (atf_no_error());
}
