/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Open an interface for hostif_xdp.c.  No state.
 *
 * A program at the interface gives each frame to the socket of its queue, and
 * the host's stack gets none.  A bpf_link attaches it, so it goes with the last
 * descriptor; it holds the program, which holds the map of the sockets.  The
 * kernel chooses its mode, in the driver if that can, and whether it copies
 * frames or the adapter uses the memory itself.
 *
 * AF_XDP gives frames as the driver has them in memory, without what it knows
 * of them.  So an interface that takes VLAN tags out of frames is refused: the
 * tags would be lost, and with them the VLANs' separation.  One that starts to
 * do so later: hostif_xdp.c.
 *
 * A bond is refused.  It has the program run by its interfaces, for their own
 * queues, and the kernel gives none of these frames to a socket of the bond's.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <net/if.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <linux/sockios.h>

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hostif_ethtool.h"
#include "hostif_impl.h"
#include "peer_fd.h"

/* Since Linux 6.17: how many frames a sendto(2) sends by copying. */
#define	OPEN_TX_BUDGET	9		/* XDP_MAX_TX_SKB_BUDGET */
/* How long to wait for a queue: 10 seconds, in steps of 5 ms. */
#define	OPEN_PAUSES	2000
#define	OPEN_PAUSE_NS	5000000

static int
open_ethtool(int s, const char *ifname, void *value)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	strlcpy(ifr.ifr_name, ifname, sizeof(ifr.ifr_name));
	ifr.ifr_data = value;
	return (ioctl(s, SIOCETHTOOL, &ifr));
}

/* Return the number of receive queues; 1 if the driver cannot tell. */
static unsigned int
open_queues(int s, const char *ifname)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };

	if (open_ethtool(s, ifname, &channels) == -1)
		return (1);
	return (MAX(channels.rx_count + channels.combined_count, 1));
}

/* Fail unless AF_XDP gives all frames as they are. */
static int
open_fits(int s, const struct hostif_fds *fds, unsigned int nqueues,
    char why[HOSTIF_WHY])
{
	struct ethtool_value flags = { .cmd = ETHTOOL_GFLAGS };
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	strlcpy(ifr.ifr_name, fds->hf_name, sizeof(ifr.ifr_name));
	if (ioctl(s, SIOCGIFFLAGS, &ifr) == 0 &&
	    (ifr.ifr_flags & IFF_MASTER) != 0)
		return (hostif_fail(why, EOPNOTSUPP, "%s: a bond receives "
		    "nothing with kind=xdp: use kind=packet", fds->hf_name));
	if (ioctl(s, SIOCGIFMTU, &ifr) == -1)
		return (hostif_fail(why, errno, "%s: %s", fds->hf_name,
		    strerror(errno)));
	if (ifr.ifr_mtu > HOSTIF_XDP_MTU)
		return (hostif_fail(why, EMSGSIZE, "%s: the MTU is %d, and at "
		    "most %d with kind=xdp", fds->hf_name, ifr.ifr_mtu,
		    HOSTIF_XDP_MTU));
	if (nqueues > HOSTIF_XDP_QUEUES)
		return (hostif_fail(why, ERANGE, "%s: %u receive queues, and "
		    "at most %u with kind=xdp: see ethtool -L", fds->hf_name,
		    nqueues, HOSTIF_XDP_QUEUES));
	if (open_ethtool(s, fds->hf_name, &flags) == 0 &&
	    (flags.data & ETH_FLAG_RXVLAN) != 0)
		return (hostif_fail(why, EOPNOTSUPP, "%s: VLAN tags would be "
		    "lost with kind=xdp: ethtool -K %s rxvlan off",
		    fds->hf_name, fds->hf_name));
	return (0);
}

/* Load the program.  Returns NULL with *map and *prog, or what failed. */
static const char *
open_program(unsigned int nqueues, int *map, int *prog)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_XSKMAP;
	attr.key_size = attr.value_size = sizeof(uint32_t);
	attr.max_entries = nqueues;
	*map = hostif_bpf(BPF_MAP_CREATE, &attr);
	if (*map == -1)
		return ("map of sockets");

	/* return (bpf_redirect_map(map, ctx->rx_queue_index, XDP_DROP)) */
	const struct bpf_insn insns[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2,
		    .src_reg = BPF_REG_1,
		    .off = offsetof(struct xdp_md, rx_queue_index) },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1,
		    .src_reg = BPF_PSEUDO_MAP_FD, .imm = *map },
		{ .code = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3,
		    .imm = XDP_DROP },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = nitems(insns);
	attr.license = (uintptr_t)"";
	*prog = hostif_bpf(BPF_PROG_LOAD, &attr);
	return (*prog == -1 ? "program" : NULL);
}

/* Give the socket the memory, which it keeps without this mapping. */
static int
open_register(int s, int fd, size_t size)
{
	struct xdp_umem_reg reg;
	void *p;
	int error;

	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return (-1);
	memset(&reg, 0, sizeof(reg));
	reg.addr = (uintptr_t)p;
	reg.len = size;
	reg.chunk_size = HOSTIF_XDP_CHUNK;
	error = setsockopt(s, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg));
	munmap(p, size);
	return (error);
}

static int
open_ring(int s, int option)
{
	const int n = HOSTIF_XDP_SLOTS;

	return (setsockopt(s, SOL_XDP, option, &n, sizeof(n)));
}

/*
 * Bind, and wait for a queue: the kernel frees a queue some time after the last
 * socket of an earlier program was closed.  A queue in use has been noticed
 * before.
 */
static int
open_bind(int s, const struct sockaddr_xdp *sxdp)
{
	const struct timespec pause = { .tv_nsec = OPEN_PAUSE_NS };
	int i;

	for (i = 0; i < OPEN_PAUSES; i++) {
		if (bind(s, (const struct sockaddr *)sxdp, sizeof(*sxdp)) == 0)
			return (0);
		if (errno != EBUSY)
			break;
		nanosleep(&pause, NULL);
	}
	return (-1);
}

/*
 * Set up the socket of queue n.  The first socket has the memory, and
 * transmits.  Returns NULL, or what failed.
 */
static const char *
open_socket(const struct hostif_fds *fds, unsigned int nqueues, unsigned int n,
    int s)
{
	struct sockaddr_xdp sxdp = {
		.sxdp_family = AF_XDP, .sxdp_ifindex = fds->hf_index,
		.sxdp_queue_id = n, .sxdp_flags = XDP_USE_NEED_WAKEUP
	};
	const int budget = HOSTIF_BATCH;

	if (n == 0 && open_register(s, fds->hf_fd[HOSTIF_FD_MEMORY],
	    HOSTIF_XDP_MEMORY(nqueues)) == -1)
		return ("AF_XDP memory");
	if (n > 0) {
		sxdp.sxdp_flags = XDP_SHARED_UMEM;
		sxdp.sxdp_shared_umem_fd = fds->hf_fd[HOSTIF_FD_XSK];
	} else if (open_ring(s, XDP_TX_RING) == -1)
		return ("transmit ring");
	if (open_ring(s, XDP_RX_RING) == -1 ||
	    open_ring(s, XDP_UMEM_FILL_RING) == -1 ||
	    open_ring(s, XDP_UMEM_COMPLETION_RING) == -1)
		return ("receive ring");
	(void)setsockopt(s, SOL_XDP, OPEN_TX_BUDGET, &budget, sizeof(budget));
	return (open_bind(s, &sxdp) == -1 ? "bind" : NULL);
}

/* Make the memory and the sockets, and put these into the map. */
static const char *
open_sockets(struct hostif_fds *fds, unsigned int nqueues, int map)
{
	union bpf_attr attr;
	const char *failed;
	uint32_t n;
	int fd;

	fd = peer_memory_new("hostif", HOSTIF_XDP_MEMORY(nqueues));
	if (fd == -1)
		return ("memory");
	hostif_fds_add(fds, fd);
	for (n = 0; n < nqueues; n++) {
		fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
		if (fd == -1)
			return ("AF_XDP");
		hostif_fds_add(fds, fd);
		failed = open_socket(fds, nqueues, n, fd);
		if (failed != NULL)
			return (failed);
		memset(&attr, 0, sizeof(attr));
		attr.map_fd = map;
		attr.key = (uintptr_t)&n;
		attr.value = (uintptr_t)&fd;
		if (hostif_bpf(BPF_MAP_UPDATE_ELEM, &attr) == -1)
			return ("map of sockets");
	}
	return (NULL);
}

/* Attach the program, which drops frames until their queue has a socket. */
static const char *
open_attach(struct hostif_fds *fds, int prog)
{
	union bpf_attr attr;
	int link;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = prog;
	attr.link_create.target_ifindex = fds->hf_index;
	attr.link_create.attach_type = BPF_XDP;
	link = hostif_bpf(BPF_LINK_CREATE, &attr);
	if (link == -1)
		return ("cannot attach an XDP program");
	hostif_fds_add(fds, link);
	return (NULL);
}

/* Open everything.  Returns NULL, or what failed, with errno. */
static const char *
open_all(struct hostif_fds *fds, unsigned int nqueues)
{
	const char *failed;
	int map = -1, prog = -1, s;

	/* This socket receives nothing. */
	s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (s == -1)
		return ("packet socket");
	hostif_fds_add(fds, s);
	if (hostif_promiscuous(s, fds->hf_index) == -1)
		return ("promiscuous mode");
	failed = open_program(nqueues, &map, &prog);
	if (failed == NULL)
		failed = open_attach(fds, prog);
	if (failed == NULL)
		failed = open_sockets(fds, nqueues, map);
	hostif_fd_close(prog);
	hostif_fd_close(map);
	return (failed);
}

int
hostif_open_xdp(struct hostif_fds *fds, int s, char why[HOSTIF_WHY])
{
	const unsigned int nqueues = open_queues(s, fds->hf_name);
	const char *failed;
	uint16_t family;
	int fd;

	fd = hostif_ethtool_open(&family);
	if (fd == -1)
		return (hostif_fail(why, errno, "%s: netlink: %s",
		    fds->hf_name, strerror(errno)));
	hostif_fds_add(fds, fd);
	fds->hf_family = family;
	if (open_fits(s, fds, nqueues, why) == -1)
		return (-1);
	failed = open_all(fds, nqueues);
	if (failed != NULL)
		return (hostif_fail_step(why, fds->hf_name, failed));
	fds->hf_kind = HOSTIF_XDP;
	return (0);
}
