/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * Transmission of the virtio-net device model, whose registers and rings are
 * virtio.c's.  What both call of bhyve is here: the guest's memory is an array,
 * and frames go to the test.
 */

#include "pci_virtio_net.c"
#include "virtio.c"
#include "iov.c"

#include <atf-c.h>
#include <sched.h>

#define	MEM_SIZE	(1024 * 1024)
#define	RINGS		0x10000		/* of both queues */
#define	RING_SIZE	0x10000		/* more than a queue needs */
#define	DATA		0x80000
#define	HDR_LEN		10		/* without merged buffers */
#define	FRAME_LEN	60

int raw_stdio;

static struct pci_devinst device;
static struct pci_vtnet_softc *sc;
static uint8_t mem[MEM_SIZE] __aligned(PAGE_SIZE);
static struct vring tx;
static void (*in_send)(void);		/* called once, while one is sent */

/* Frames sent, and what the backend held when it was flushed last. */
static volatile unsigned int nsent, nflushed, sent_at_flush;

void *
paddr_guest2host(struct vmctx *ctx __unused, uintptr_t addr, size_t len)
{
	if (addr > MEM_SIZE || len > MEM_SIZE - addr)
		return (NULL);
	return (mem + addr);
}

int
netbe_init(net_backend_t **be, nvlist_t *nvl __unused,
    net_be_rxeof_t cb __unused, void *param __unused)
{
	*be = (net_backend_t *)(uintptr_t)mem;
	return (0);
}

ssize_t
netbe_send(net_backend_t *be __unused, const struct iovec *iov, int iovcnt)
{
	void (*hook)(void) = in_send;
	ssize_t len = 0;

	for (int i = 0; i < iovcnt; i++)
		len += iov[i].iov_len;
	ATF_CHECK_EQ(FRAME_LEN, len);
	nsent++;
	in_send = NULL;
	if (hook != NULL)
		hook();
	return (len);
}

void	netbe_flush(net_backend_t *be);

void
netbe_flush(net_backend_t *be __unused)
{
	nflushed++;
	sent_at_flush = nsent;
}

ssize_t
netbe_recv(net_backend_t *be __unused, const struct iovec *iov __unused,
    int iovcnt __unused)
{
	return (0);
}

ssize_t
netbe_peek_recvlen(net_backend_t *be __unused)
{
	return (0);
}

void
netbe_rx_enable(net_backend_t *be __unused)
{
}

void
netbe_rx_disable(net_backend_t *be __unused)
{
}

uint64_t
netbe_get_cap(net_backend_t *be __unused)
{
	return (0);
}

int
netbe_set_cap(net_backend_t *be __unused, uint64_t features __unused,
    unsigned int vnet_hdr_len __unused)
{
	return (0);
}

size_t
netbe_get_vnet_hdr_len(net_backend_t *be __unused)
{
	return (0);
}

int
netbe_legacy_config(nvlist_t *nvl __unused, const char *opts __unused)
{
	return (0);
}

const char *
get_config_value_node(const nvlist_t *parent __unused, const char *name)
{
	return (strcmp(name, "backend") == 0 ? "vale0:0" : NULL);
}

int
net_parsemac(const char *mac_str __unused, uint8_t *mac_addr __unused)
{
	return (0);
}

int
net_parsemtu(const char *mtu_str __unused, unsigned long *mtu __unused)
{
	return (0);
}

void
net_genmac(struct pci_devinst *dev __unused, uint8_t *macaddr)
{
	memset(macaddr, 2, ETHER_ADDR_LEN);
}

int
fbsdrun_virtio_msix(void)
{
	return (0);
}

int
pci_emul_add_msicap(struct pci_devinst *dev __unused, int msgnum __unused)
{
	return (0);
}

int
pci_emul_add_msixcap(struct pci_devinst *dev __unused, int msgnum __unused,
    int barnum __unused)
{
	return (0);
}

int
pci_emul_alloc_bar(struct pci_devinst *dev __unused, int idx __unused,
    enum pcibar_type type __unused, uint64_t size __unused)
{
	return (0);
}

uint64_t
pci_emul_msix_tread(struct pci_devinst *dev __unused, uint64_t offset __unused,
    int size __unused)
{
	return (0);
}

int
pci_emul_msix_twrite(struct pci_devinst *dev __unused, uint64_t offset __unused,
    int size __unused, uint64_t value __unused)
{
	return (0);
}

int
pci_msix_enabled(struct pci_devinst *dev __unused)
{
	return (0);
}

int
pci_msix_table_bar(struct pci_devinst *dev __unused)
{
	return (-1);
}

int
pci_msix_pba_bar(struct pci_devinst *dev __unused)
{
	return (-1);
}

void
pci_generate_msi(struct pci_devinst *dev __unused, int msgnum __unused)
{
}

void
pci_generate_msix(struct pci_devinst *dev __unused, int msgnum __unused)
{
}

void
pci_lintr_assert(struct pci_devinst *dev __unused)
{
}

void
pci_lintr_deassert(struct pci_devinst *dev __unused)
{
}

void
pci_lintr_request(struct pci_devinst *dev __unused)
{
}

static void
wr(uint64_t reg, int size, uint32_t value)
{
	pci_de_vnet.pe_barwrite(&device, 0, reg, size, value);
}

/* Create a device, and set both queues up as a driver does. */
static void
create(void)
{
	ATF_REQUIRE(pci_de_vnet.pe_init(&device, NULL) == 0);
	sc = device.pi_arg;
	wr(VIRTIO_PCI_GUEST_FEATURES, 4, 0);
	for (int q = VTNET_RXQ; q <= VTNET_TXQ; q++) {
		wr(VIRTIO_PCI_QUEUE_SEL, 2, q);
		wr(VIRTIO_PCI_QUEUE_PFN, 4,
		    (RINGS + q * RING_SIZE) >> VRING_PFN);
	}
	vring_init(&tx, VTNET_RINGSZ, mem + RINGS + VTNET_TXQ * RING_SIZE,
	    VRING_ALIGN);
	wr(VIRTIO_PCI_STATUS, 1, VIRTIO_CONFIG_STATUS_DRIVER_OK);
}

/* Put a packet, with its header, into the transmit ring. */
static void
put(void)
{
	uint16_t i = tx.avail->idx;

	ATF_REQUIRE(i < VTNET_RINGSZ);
	tx.desc[i].addr = DATA;
	tx.desc[i].len = HDR_LEN + FRAME_LEN;
	tx.avail->ring[i] = i;
	atomic_thread_fence_rel();
	tx.avail->idx++;
}

/* Notify the device, and wait until its transmit thread sleeps again. */
static void
transmit(void)
{
	bool idle;

	do {
		/* A thread that does not wait yet would miss the first one. */
		wr(VIRTIO_PCI_QUEUE_NOTIFY, 2, VTNET_TXQ);
		sched_yield();
		pthread_mutex_lock(&sc->tx_mtx);
		idle = tx.used->idx == tx.avail->idx && sc->tx_in_progress == 0;
		pthread_mutex_unlock(&sc->tx_mtx);
	} while (!idle);
}

/* Each case has 20 seconds; none needs one. */
#define	TEST(name, descr)						\
	ATF_TC(name);							\
	ATF_TC_HEAD(name, tc)						\
	{								\
		atf_tc_set_md_var(tc, "descr", descr);			\
		atf_tc_set_md_var(tc, "timeout", "20");			\
	}								\
	ATF_TC_BODY(name, tc)

TEST(tx_flush, "The backend is flushed after each packet of those that one "
    "notification sends")
{
	create();
	for (int i = 0; i < 16; i++)
		put();
	transmit();
	ATF_CHECK_EQ(16, nsent);
	ATF_CHECK_EQ_MSG(16, nflushed, "flushed %u times", nflushed);
	ATF_CHECK_EQ(16, sent_at_flush);
}

TEST(tx_added, "A packet that comes while another one is sent needs no "
    "notification, and is flushed")
{
	create();
	in_send = put;
	put();
	transmit();
	ATF_CHECK_EQ(2, nsent);
	ATF_CHECK_EQ_MSG(2, nflushed, "flushed %u times", nflushed);
	ATF_CHECK_EQ(2, sent_at_flush);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, tx_flush);
	ATF_TP_ADD_TC(tp, tx_added);
	return (atf_no_error());
}
