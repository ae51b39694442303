/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * Registers and rings of the e1000 device model, as a guest uses them that
 * need not be a friend.  The model is included; what it calls of bhyve is here:
 * the guest's memory is an array with nothing mapped behind it, and frames go
 * to and come from the test.
 */

#include "pci_e82545.c"

#include <sys/mman.h>

#include <atf-c.h>
#include <sched.h>

#define	MEM_SIZE	(1024 * 1024)
#define	TX_RING		0x1000
#define	RX_RING		0x2000
#define	NDESC		128
#define	DATA		0x10000		/* what frames are sent from */
#define	BUFFERS		0x40000		/* of RX_BUFSZ bytes */
#define	RX_BUFSZ	256
#define	OUTSIDE		0xf0000000u	/* no memory of the guest's */
#define	FRAME_LEN	60
#define	TSO_HDRLEN	54		/* Ethernet, IPv4 and TCP */
#define	SENT_MAX	1000		/* more than any test may send */

int raw_stdio;

static struct pci_devinst device;
static struct e82545_softc *sc;
static uint8_t *mem;

/* What the backend was given, and what it has for the guest. */
static volatile unsigned int nsent, ndiscarded;
static size_t sent_len;			/* of the last frame */
static ssize_t recv_len;		/* of a frame that waits, or 0 */
static void (*in_batch)(void);		/* called while a batch goes on */

/* The last timer. */
static int timer_value, timer_fflags;

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
	static uint8_t frame[MEM_SIZE];
	size_t len = 0;

	for (int i = 0; i < iovcnt; i++) {
		ATF_REQUIRE(iov[i].iov_len <= sizeof(frame) - len);
		memcpy(frame + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	sent_len = len;
	nsent++;
	if (in_batch != NULL)
		in_batch();
	return (len);
}

ssize_t
netbe_recv(net_backend_t *be __unused, const struct iovec *iov, int iovcnt)
{
	ssize_t len = recv_len, left = recv_len;

	recv_len = 0;
	for (int i = 0; i < iovcnt && left > 0; i++) {
		size_t now = MIN((size_t)left, iov[i].iov_len);

		memset(iov[i].iov_base, 0x55, now);
		left -= now;
	}
	ATF_REQUIRE(left == 0);
	if (in_batch != NULL)
		in_batch();
	return (len);
}

ssize_t
netbe_rx_discard(net_backend_t *be __unused)
{
	ssize_t len = recv_len;

	recv_len = 0;
	if (len > 0)
		ndiscarded++;
	return (len);
}

void
netbe_rx_enable(net_backend_t *be __unused)
{
}

int
netbe_legacy_config(nvlist_t *nvl __unused, const char *opts __unused)
{
	return (0);
}

struct mevent *
mevent_add(int tfd, enum ev_type type __unused,
    void (*func)(int, enum ev_type, void *) __unused, void *param __unused)
{
	timer_value = tfd;
	timer_fflags = 0;
	return ((struct mevent *)(uintptr_t)mem);
}

struct mevent *
mevent_add_flags(int tfd, enum ev_type type, int fflags,
    void (*func)(int, enum ev_type, void *), void *param)
{
	struct mevent *evp = mevent_add(tfd, type, func, param);

	timer_fflags = fflags;
	return (evp);
}

int
mevent_delete(struct mevent *evp __unused)
{
	return (0);
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

int
pci_emul_alloc_bar(struct pci_devinst *dev __unused, int idx __unused,
    enum pcibar_type type __unused, uint64_t size __unused)
{
	return (0);
}

const char *
get_config_value_node(const nvlist_t *parent __unused,
    const char *name __unused)
{
	return (NULL);
}

int
net_parsemac(const char *mac_str __unused, uint8_t *mac_addr __unused)
{
	return (0);
}

void
net_genmac(struct pci_devinst *dev __unused, uint8_t *macaddr)
{
	memset(macaddr, 2, ETHER_ADDR_LEN);
}

static void
wr(uint64_t reg, uint32_t value)
{
	pci_de_e82545.pe_barwrite(&device, E82545_BAR_REGISTER, reg, 4, value);
}

static uint32_t
rd(uint64_t reg)
{
	return (pci_de_e82545.pe_barread(&device, E82545_BAR_REGISTER, reg, 4));
}

static struct e1000_rx_desc *
rxd(unsigned int i)
{
	return ((struct e1000_rx_desc *)(uintptr_t)(mem + RX_RING) + i);
}

static union e1000_tx_udesc *
txd(unsigned int i)
{
	return ((union e1000_tx_udesc *)(uintptr_t)(mem + TX_RING) + i);
}

/* Create an adapter, with both rings set up and transmission enabled. */
static void
create(void)
{
	/* What is behind the guest's memory faults. */
	mem = mmap(NULL, MEM_SIZE + 0x100000, PROT_NONE, MAP_ANON | MAP_PRIVATE,
	    -1, 0);
	ATF_REQUIRE(mem != MAP_FAILED);
	ATF_REQUIRE(mprotect(mem, MEM_SIZE, PROT_READ | PROT_WRITE) == 0);
	ATF_REQUIRE(pci_de_e82545.pe_init(&device, NULL) == 0);
	sc = device.pi_arg;
	for (unsigned int i = 0; i < NDESC; i++)
		rxd(i)->buffer_addr = BUFFERS + i * RX_BUFSZ;
	wr(E1000_RDBAL(0), RX_RING);
	wr(E1000_RDLEN(0), NDESC * sizeof(struct e1000_rx_desc));
	wr(E1000_RDT(0), NDESC - 1);
	wr(E1000_TDBAL(0), TX_RING);
	wr(E1000_TDLEN(0), NDESC * sizeof(union e1000_tx_udesc));
	wr(E1000_TCTL, E1000_TCTL_EN);
}

static void
enable_rx(uint32_t flags)
{
	wr(E1000_RCTL, E1000_RCTL_EN | E1000_RCTL_SZ_256 | E1000_RCTL_SECRC |
	    flags);
}

/* Move the tail, and wait until the transmit thread sleeps again. */
static void
transmit(uint32_t tail)
{
	bool idle;

	wr(E1000_TDT(0), tail);
	do {
		pthread_mutex_lock(&sc->esc_mtx);
		idle = !sc->esc_tx_active && sc->esc_TDHr == sc->esc_TDT;
		pthread_mutex_unlock(&sc->esc_mtx);
		ATF_REQUIRE_MSG(nsent < SENT_MAX, "%u frames sent", nsent);
		sched_yield();
	} while (!idle);
}

/* Have a frame for the guest. */
static void
receive(ssize_t len)
{
	recv_len = len;
	e82545_rx_callback(-1, EVF_READ, sc);
}

static void
put_legacy(unsigned int i, uint64_t addr, uint16_t len, uint32_t cmd)
{
	memset(txd(i), 0, sizeof(*txd(i)));
	txd(i)->td.buffer_addr = addr;
	txd(i)->td.lower.data = len | E1000_TXD_CMD_IFCS | cmd;
}

static void
put_data(unsigned int i, uint64_t addr, uint32_t len, uint32_t cmd)
{
	memset(txd(i), 0, sizeof(*txd(i)));
	txd(i)->dd.buffer_addr = addr;
	txd(i)->dd.lower.data = len | E1000_TXD_CMD_IFCS | E1000_TXD_TYP_D |
	    cmd;
}

/* A segmentation of TCP over IPv4. */
static void
put_context(unsigned int i, uint32_t paylen, uint16_t mss)
{
	struct e1000_context_desc *cd = &txd(i)->cd;

	memset(cd, 0, sizeof(*cd));
	cd->lower_setup.ip_fields.ipcss = 14;
	cd->lower_setup.ip_fields.ipcso = 24;
	cd->lower_setup.ip_fields.ipcse = 33;
	cd->upper_setup.tcp_fields.tucss = 34;
	cd->upper_setup.tcp_fields.tucso = 50;
	cd->cmd_and_length = paylen | E1000_TXD_TYP_C | E1000_TXD_CMD_TSE |
	    E1000_TXD_CMD_TCP | E1000_TXD_CMD_IP;
	cd->tcp_seg_setup.fields.hdr_len = TSO_HDRLEN;
	cd->tcp_seg_setup.fields.mss = mss;
}

/* Send a frame from this descriptor: the adapter is alive. */
static void
send_one(unsigned int i)
{
	unsigned int before = nsent;

	put_legacy(i, DATA, FRAME_LEN, E1000_TXD_CMD_EOP | E1000_TXD_CMD_RS);
	transmit(i + 1);
	ATF_CHECK_EQ_MSG(before + 1, nsent, "%u frames", nsent - before);
	ATF_CHECK_EQ(FRAME_LEN, sent_len);
	ATF_CHECK((txd(i)->td.upper.fields.status & E1000_TXD_STAT_DD) != 0);
}

/* Receive a frame into this descriptor. */
static void
receive_one(unsigned int i)
{
	receive(FRAME_LEN);
	ATF_CHECK((rxd(i)->status & E1000_RXD_STAT_EOP) != 0);
	ATF_CHECK_EQ(FRAME_LEN, rxd(i)->length);
	ATF_CHECK_EQ(i + 1, rd(E1000_RDH(0)));
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

TEST(receive_addresses, "There are 16 receive addresses")
{
	create();
	for (int i = 0; i < 16; i++) {
		wr(E1000_RAL(i), 0x03020100 + i);
		wr(E1000_RAH(i), E1000_RAH_AV | 0x0504);
	}
	for (int i = 0; i < 16; i++) {
		ATF_CHECK_EQ(0x03020100u + i, rd(E1000_RAL(i)));
		ATF_CHECK_EQ(E1000_RAH_AV | 0x0504, rd(E1000_RAH(i)));
	}
}

TEST(rx_ring_set_while_enabled, "While reception is enabled the receive ring "
    "keeps its length and the upper half of its address")
{
	create();
	enable_rx(0);
	wr(E1000_RDBAH(0), 1);
	wr(E1000_RDLEN(0), 0);
	ATF_CHECK_EQ(0, rd(E1000_RDBAH(0)));
	ATF_CHECK_EQ(NDESC * sizeof(struct e1000_rx_desc), rd(E1000_RDLEN(0)));
	receive_one(0);
}

TEST(rx_ring_empty, "A frame for a receive ring of length 0 is dropped")
{
	create();
	wr(E1000_RDLEN(0), 0);
	enable_rx(0);
	receive(FRAME_LEN);
	ATF_CHECK_EQ(1, ndiscarded);
	wr(E1000_RCTL, 0);
	wr(E1000_RDLEN(0), NDESC * sizeof(struct e1000_rx_desc));
	enable_rx(0);
	receive_one(0);
}

TEST(rx_outside, "Frames for a receive ring or buffers that are outside of "
    "memory are dropped")
{
	create();
	wr(E1000_RDBAL(0), OUTSIDE);
	enable_rx(0);
	receive(FRAME_LEN);
	ATF_CHECK_EQ(1, ndiscarded);
	wr(E1000_RDBAL(0), RX_RING);
	for (int i = 0; i < 8; i++) {
		rxd(i)->buffer_addr = OUTSIDE;
		receive(FRAME_LEN);
		ATF_CHECK_EQ_MSG(i + 2, (int)ndiscarded, "buffer %d", i);
		rxd(i)->buffer_addr = BUFFERS + i * RX_BUFSZ;
		if (i == 5)	/* More than a frame of 1522 bytes needs. */
			break;
	}
	receive_one(0);
}

TEST(rx_buffer_filled, "The length of a frame that fills its last buffer is "
    "not 0")
{
	create();
	enable_rx(0);
	receive(2 * RX_BUFSZ);
	ATF_CHECK_EQ(2, rd(E1000_RDH(0)));
	ATF_CHECK_EQ(RX_BUFSZ, rxd(0)->length);
	ATF_CHECK_EQ(0, rxd(0)->status & E1000_RXD_STAT_EOP);
	ATF_CHECK_EQ(RX_BUFSZ, rxd(1)->length);
	ATF_CHECK((rxd(1)->status & E1000_RXD_STAT_EOP) != 0);
	receive(RX_BUFSZ + 1);
	ATF_CHECK_EQ(1, rxd(3)->length);
}

static void
move_rx_ring(void)
{
	wr(E1000_RDBAL(0), OUTSIDE);
}

TEST(rx_ring_moved, "The receive ring may move out of memory while a frame is "
    "received")
{
	create();
	enable_rx(0);
	in_batch = move_rx_ring;
	receive(FRAME_LEN);
	in_batch = NULL;
	ATF_CHECK_EQ(FRAME_LEN, rxd(0)->length);
	wr(E1000_RDBAL(0), RX_RING);
	receive_one(1);
}

TEST(tx_types_differ, "A packet of descriptors of different types is dropped")
{
	create();
	put_legacy(0, DATA, FRAME_LEN, 0);
	put_data(1, DATA, FRAME_LEN, E1000_TXD_CMD_EOP);
	put_data(2, DATA, FRAME_LEN, 0);
	put_legacy(3, DATA, FRAME_LEN, E1000_TXD_CMD_EOP);
	transmit(4);
	ATF_CHECK_EQ(0, nsent);
	send_one(4);
}

TEST(tx_too_many, "A packet of too many descriptors is dropped, not cut off")
{
	create();
	for (int i = 0; i < I82545_MAX_TXSEGS; i++)
		put_legacy(i, DATA, 1, 0);
	put_legacy(I82545_MAX_TXSEGS, DATA, 1, E1000_TXD_CMD_EOP);
	transmit(I82545_MAX_TXSEGS + 1);
	ATF_CHECK_EQ(0, nsent);
	send_one(I82545_MAX_TXSEGS + 1);
}

TEST(tx_outside, "Packets from a ring or buffers outside of memory are dropped")
{
	create();
	put_legacy(0, OUTSIDE, FRAME_LEN, E1000_TXD_CMD_EOP);
	put_legacy(1, OUTSIDE, FRAME_LEN, E1000_TXD_CMD_EOP |
	    E1000_TXD_CMD_IC);
	txd(1)->td.lower.flags.cso = 50;
	put_legacy(2, DATA, FRAME_LEN, 0);
	put_legacy(3, MEM_SIZE - 1, FRAME_LEN, E1000_TXD_CMD_EOP);
	transmit(4);
	ATF_CHECK_EQ(0, nsent);
	wr(E1000_TDBAL(0), OUTSIDE);
	transmit(5);
	ATF_CHECK_EQ(0, nsent);
	wr(E1000_TDBAL(0), TX_RING);
	put_legacy(4, 0, 0, E1000_TXD_CMD_EOP);
	send_one(5);
}

TEST(tx_ring_empty, "A transmit ring of length 0 sends nothing")
{
	create();
	wr(E1000_TDLEN(0), 0);
	transmit(1);
	ATF_CHECK_EQ(0, nsent);
	wr(E1000_TDLEN(0), NDESC * sizeof(union e1000_tx_udesc));
	put_legacy(0, 0, 0, E1000_TXD_CMD_EOP);
	send_one(1);
}

TEST(tx_tail_beyond, "The transmit thread sleeps if the tail lies beyond the "
    "ring's end")
{
	create();
	transmit(NDESC);
	ATF_CHECK_EQ(0, nsent);
	send_one(0);
}

static void
move_tx_ring(void)
{
	wr(E1000_TDBAL(0), OUTSIDE);
}

static void
grow_tx_ring(void)
{
	wr(E1000_TDBAL(0), MEM_SIZE - 0x1000);
	wr(E1000_TDLEN(0), 0xfff80);
}

TEST(tx_ring_moved, "The transmit ring may move out of memory while a batch is "
    "sent")
{
	create();
	for (int i = 0; i < 4; i++)
		put_legacy(i, DATA, FRAME_LEN, E1000_TXD_CMD_EOP);
	in_batch = move_tx_ring;
	transmit(4);
	ATF_CHECK_EQ(4, nsent);
	in_batch = NULL;
	wr(E1000_TDBAL(0), TX_RING);
	send_one(4);
	in_batch = grow_tx_ring;
	send_one(5);
}

TEST(tso, "A packet is cut into segments")
{
	create();
	put_context(0, 150, 100);
	put_data(1, DATA, TSO_HDRLEN + 150, E1000_TXD_CMD_TSE |
	    E1000_TXD_CMD_EOP);
	transmit(2);
	ATF_CHECK_EQ(2, nsent);
	ATF_CHECK_EQ(TSO_HDRLEN + 50, sent_len);
}

TEST(tso_mss_0, "Segments without a payload are not sent")
{
	create();
	put_context(0, 100, 0);
	put_data(1, DATA, TSO_HDRLEN + 100, E1000_TXD_CMD_TSE |
	    E1000_TXD_CMD_EOP);
	transmit(2);
	ATF_CHECK_EQ(0, nsent);
	send_one(2);
}

TEST(tso_payload_beyond, "A payload that is longer than its descriptors is not "
    "sent")
{
	create();
	put_context(0, 0xfffff, 1);
	put_data(1, DATA, TSO_HDRLEN + 10, E1000_TXD_CMD_TSE |
	    E1000_TXD_CMD_EOP);
	transmit(2);
	ATF_CHECK_EQ(0, nsent);
	put_context(2, 101, 50);
	put_data(3, DATA, TSO_HDRLEN + 100, E1000_TXD_CMD_TSE |
	    E1000_TXD_CMD_EOP);
	transmit(4);
	ATF_CHECK_EQ(0, nsent);
	send_one(4);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, receive_addresses);
	ATF_TP_ADD_TC(tp, rx_ring_set_while_enabled);
	ATF_TP_ADD_TC(tp, rx_ring_empty);
	ATF_TP_ADD_TC(tp, rx_outside);
	ATF_TP_ADD_TC(tp, rx_buffer_filled);
	ATF_TP_ADD_TC(tp, rx_ring_moved);
	ATF_TP_ADD_TC(tp, tx_types_differ);
	ATF_TP_ADD_TC(tp, tx_too_many);
	ATF_TP_ADD_TC(tp, tx_outside);
	ATF_TP_ADD_TC(tp, tx_ring_empty);
	ATF_TP_ADD_TC(tp, tx_tail_beyond);
	ATF_TP_ADD_TC(tp, tx_ring_moved);
	ATF_TP_ADD_TC(tp, tso);
	ATF_TP_ADD_TC(tp, tso_mss_0);
	ATF_TP_ADD_TC(tp, tso_payload_beyond);
	return (atf_no_error());
}
