/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * netmap's tests of the control API, ctrl-api-test, with the names of its
 * cases.  Each has the right value, or the EOPNOTSUPP that netmap-run(1) gives
 * a reason for.  Two of netmap's cases are not about /dev/netmap: nmreq_parsing
 * of its library, and binarycomp of its header, which <net/netmap.h> asserts.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "netmap_port.h"

#define	PORT	"vale0:x"

/* A case with a descriptor, without a port yet. */
#define	CTRL_TEST(name, descr)						\
	static void name##_do(int fd);					\
	PID_TEST(name, descr)					\
	{								\
		int fd = device();					\
									\
		name##_do(fd);						\
		close(fd);						\
	}								\
	static void name##_do(int fd)

/* Register with options.  Returns 0 or an errno; *reg is as it was granted. */
static int
with_options(int fd, const char *name, struct nmreq_register *reg,
    struct nmreq_option *options)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = NETMAP_REQ_REGISTER, .nr_body = (uintptr_t)reg,
	    .nr_options = (uintptr_t)options };

	strcpy(hdr.nr_name, name);
	return (ioctl(fd, NIOCCTRL, &hdr) == -1 ? errno : 0);
}

#define	REGISTER(fd, name, ...)						\
	with_options(fd, name, &(struct nmreq_register){ __VA_ARGS__ }, NULL)

/* A registration, and its errno or 0. */
#define	REGISTER_TEST(name, descr, error, port, ...)			\
	CTRL_TEST(name, descr)						\
	{								\
		ATF_CHECK_EQ(error, REGISTER(fd, port, __VA_ARGS__));	\
	}

static void
info_right(int fd, const char *name)
{
	struct nmreq_port_info_get info = { .nr_mem_id = 0 };

	ATF_REQUIRE_EQ(0, request(fd, NETMAP_REQ_PORT_INFO_GET, name, &info));
	ATF_CHECK(info.nr_memsize != 0);
	ATF_CHECK(info.nr_tx_slots != 0 && info.nr_rx_slots != 0);
	ATF_CHECK(info.nr_tx_rings != 0 && info.nr_rx_rings != 0);
}

CTRL_TEST(port_info_get, "Of a port that is not there")
{
	info_right(fd, PORT);
}

REGISTER_TEST(port_register_hwall_host, "Refused: rings of the host",
    EOPNOTSUPP, PORT, .nr_mode = NR_REG_NIC_SW)
REGISTER_TEST(port_register_hwall, "All rings", 0, PORT,
    .nr_mode = NR_REG_ALL_NIC)
REGISTER_TEST(port_register_hostall, "Refused: rings of the host", EOPNOTSUPP,
    PORT, .nr_mode = NR_REG_SW)
REGISTER_TEST(port_register_single_hw_pair, "A ring pair", 0, PORT,
    .nr_mode = NR_REG_ONE_NIC)
REGISTER_TEST(port_register_single_host_pair, "Refused: rings of the host",
    EOPNOTSUPP, PORT, .nr_mode = NR_REG_ONE_SW, .nr_ringid = 1,
    .nr_host_tx_rings = 2, .nr_host_rx_rings = 2)
REGISTER_TEST(port_register_hostall_many, "Refused: rings of the host",
    EOPNOTSUPP, PORT, .nr_mode = NR_REG_SW, .nr_host_tx_rings = 5,
    .nr_host_rx_rings = 4)

/* A request that is refused, whatever its body. */
#define	REFUSED(fd, type, name)						\
	do {								\
		uint8_t _body[128] = { 0 };				\
									\
		ATF_CHECK_EQ(EOPNOTSUPP, request(fd, type, name, _body)); \
	} while (0)

CTRL_TEST(vale_attach_detach, "Refused: valectl(8) attaches interfaces")
{
	REFUSED(fd, NETMAP_REQ_VALE_ATTACH, "vale1:tap0");
	REFUSED(fd, NETMAP_REQ_VALE_DETACH, "vale1:tap0");
}

CTRL_TEST(vale_attach_detach_host_rings, "Refused with rings of the host, too: "
    "valectl(8) attaches interfaces")
{
	struct nmreq nmr = { .nr_name = "vale1:tap0",
	    .nr_version = NETMAP_API, .nr_cmd = NETMAP_BDG_ATTACH,
	    .nr_arg1 = NETMAP_BDG_HOST };

	ATF_CHECK_ERRNO(EOPNOTSUPP, ioctl(fd, NIOCREGIF, &nmr) == -1);
	nmr.nr_cmd = NETMAP_BDG_DETACH;
	ATF_CHECK_ERRNO(EOPNOTSUPP, ioctl(fd, NIOCREGIF, &nmr) == -1);
}

CTRL_TEST(vale_ephemeral_port_hdr_manipulation, "A virtio-net header of each "
    "length")
{
	static const uint32_t lens[] = { 12, 0, 10 };
	struct nmreq_port_hdr hdr = { 0 };
	unsigned int i;

	ATF_REQUIRE_EQ(0, REGISTER(fd, "vale:eph0",
	    .nr_mode = NR_REG_ALL_NIC));
	for (i = 0; i < nitems(lens); i++) {
		hdr.nr_hdr_len = lens[i];
		ATF_CHECK_EQ(0, request(fd, NETMAP_REQ_PORT_HDR_SET,
		    "vale:eph0", &hdr));
		hdr.nr_hdr_len = 99;
		ATF_CHECK_EQ(0, request(fd, NETMAP_REQ_PORT_HDR_GET,
		    "vale:eph0", &hdr));
		ATF_CHECK_EQ(lens[i], hdr.nr_hdr_len);
	}
}

CTRL_TEST(vale_persistent_port, "Refused: a port is there while it is open")
{
	struct nmreq nmr = { .nr_name = "per4", .nr_version = NETMAP_API,
	    .nr_cmd = NETMAP_BDG_NEWIF };

	REFUSED(fd, NETMAP_REQ_VALE_NEWIF, "per4");
	ATF_CHECK_EQ(EOPNOTSUPP, request(fd, NETMAP_REQ_VALE_DELIF, "per4",
	    NULL));
	ATF_CHECK_ERRNO(EOPNOTSUPP, ioctl(fd, NIOCREGIF, &nmr) == -1);
	nmr.nr_cmd = NETMAP_BDG_DELIF;
	ATF_CHECK_ERRNO(EOPNOTSUPP, ioctl(fd, NIOCREGIF, &nmr) == -1);
}

CTRL_TEST(pools_info_get_and_register, "Refused: the memory has no pools")
{
	REFUSED(fd, NETMAP_REQ_POOLS_INFO_GET, PORT);
	ATF_CHECK_EQ(0, REGISTER(fd, PORT, .nr_mode = NR_REG_ONE_NIC));
	REFUSED(fd, NETMAP_REQ_POOLS_INFO_GET, PORT);
}

CTRL_TEST(pools_info_get_empty_ifname, "Refused, as by netmap")
{
	REFUSED(fd, NETMAP_REQ_POOLS_INFO_GET, "");
}

CTRL_TEST(pipe_master, "A pipe has no rings of the host")
{
	ATF_CHECK_EQ(EOPNOTSUPP, REGISTER(fd, PORT "{pipeid1",
	    .nr_mode = NR_REG_NIC_SW));
	ATF_CHECK_EQ(0, REGISTER(fd, PORT "{pipeid1",
	    .nr_mode = NR_REG_ALL_NIC));
}

REGISTER_TEST(pipe_slave, "The other end of a pipe", 0, PORT "}pipeid2",
    .nr_mode = NR_REG_ALL_NIC)

CTRL_TEST(pipe_port_info_get, "Of a pipe that is not there")
{
	info_right(fd, PORT "}pipeid3");
}

CTRL_TEST(pipe_pools_info_get, "Refused: the memory has no pools")
{
	REFUSED(fd, NETMAP_REQ_POOLS_INFO_GET, PORT "{xid");
}

CTRL_TEST(vale_polling_enable_disable, "Refused: valed has a thread for each "
    "port")
{
	REFUSED(fd, NETMAP_REQ_VALE_POLLING_ENABLE, "vale1:tap0");
	REFUSED(fd, NETMAP_REQ_VALE_POLLING_DISABLE, "vale1:tap0");
}

/* Register with a list of options, which is refused. */
static void
refused(int fd, struct nmreq_option *options, int error)
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC,
	    .nr_flags = NR_EXCLUSIVE };

	ATF_CHECK_EQ(error, with_options(fd, PORT, &reg, options));
}

CTRL_TEST(unsupported_option, "An option that netmap does not have says so")
{
	struct nmreq_option opt = { .nro_reqtype = 1234 };

	refused(fd, &opt, EOPNOTSUPP);
	ATF_CHECK_EQ(EOPNOTSUPP, opt.nro_status);
	opt.nro_reqtype = 0;
	refused(fd, &opt, EINVAL);
	ATF_CHECK_EQ(EINVAL, opt.nro_status);
}

CTRL_TEST(infinite_options, "A list without an end, of unknown options")
{
	struct nmreq_option opt = { .nro_reqtype = NETMAP_REQ_OPT_MAX + 1 };

	opt.nro_next = (uintptr_t)&opt;
	refused(fd, &opt, EMSGSIZE);
}

CTRL_TEST(infinite_options2, "A list without an end, of an option that there "
    "is: it is there twice")
{
	struct nmreq_option opt = { .nro_reqtype = NETMAP_REQ_OPT_OFFSETS };

	opt.nro_next = (uintptr_t)&opt;
	refused(fd, &opt, EINVAL);
	ATF_CHECK_EQ(EINVAL, opt.nro_status);
}

CTRL_TEST(invalid_valid_options3, "More options than a request has space for; "
    "fewer are refused each")
{
	struct nmreq_option opt[100];
	unsigned int i;

	memset(opt, 0, sizeof(opt));
	for (i = 0; i < nitems(opt) - 1; i++) {
		opt[i].nro_reqtype = NETMAP_REQ_OPT_MAX;
		opt[i].nro_next = (uintptr_t)&opt[i + 1];
	}
	opt[i].nro_reqtype = NETMAP_REQ_OPT_SYNC_KLOOP_EVENTFDS;
	opt[i].nro_size = 1000;
	refused(fd, opt, EMSGSIZE);
	ATF_CHECK_EQ(0, opt[0].nro_status);
	/* Sizes that wrap. */
	opt[i].nro_size = UINT64_MAX;
	refused(fd, opt, EMSGSIZE);
	opt[i].nro_size = 0;
	refused(fd, opt, EOPNOTSUPP);
	for (i = 0; i < nitems(opt); i++)
		ATF_CHECK_EQ(EOPNOTSUPP, opt[i].nro_status);
}

/* Options that netmap has. */
#define	OPTION_TEST(name, type, descr)					\
	CTRL_TEST(name, descr)						\
	{								\
		struct {						\
			struct nmreq_option	opt;			\
			uint64_t		body[16];		\
		} o = { .opt = { .nro_reqtype = type } };		\
									\
		refused(fd, &o.opt, EOPNOTSUPP);			\
		ATF_CHECK_EQ(EOPNOTSUPP, o.opt.nro_status);		\
	}

OPTION_TEST(extmem_option, NETMAP_REQ_OPT_EXTMEM,
    "Refused: valed makes the memory")
OPTION_TEST(bad_extmem_option, NETMAP_REQ_OPT_EXTMEM, "Refused, as by netmap")

CTRL_TEST(duplicate_extmem_options, "An option that is there twice says so in "
    "both places")
{
	struct {
		struct nmreq_option	opt;
		uint64_t		body[16];
	} o[2] = { { .opt = { .nro_reqtype = NETMAP_REQ_OPT_EXTMEM } },
	    { .opt = { .nro_reqtype = NETMAP_REQ_OPT_EXTMEM } } };

	o[0].opt.nro_next = (uintptr_t)&o[1];
	refused(fd, &o[0].opt, EINVAL);
	ATF_CHECK_EQ(EINVAL, o[0].opt.nro_status);
	ATF_CHECK_EQ(EINVAL, o[1].opt.nro_status);
}

/* The cases with a CSB begin with this; the loop is refused, too. */
#define	CSB_TEST(name)							\
	OPTION_TEST(name, NETMAP_REQ_OPT_CSB, "Refused: a CSB")

CSB_TEST(csb_mode)
CSB_TEST(csb_mode_invalid_memory)
CSB_TEST(sync_kloop)
CSB_TEST(sync_kloop_eventfds_all)
CSB_TEST(sync_kloop_eventfds_all_tx)
CSB_TEST(sync_kloop_eventfds_all_direct)
CSB_TEST(sync_kloop_eventfds_all_direct_tx)
CSB_TEST(sync_kloop_eventfds_all_direct_rx)
CSB_TEST(sync_kloop_conflict)
CSB_TEST(sync_kloop_eventfds_mismatch)

CTRL_TEST(sync_kloop_nocsb, "Refused, as by netmap: a loop in the kernel")
{
	ATF_CHECK_EQ(0, REGISTER(fd, PORT, .nr_mode = NR_REG_ALL_NIC));
	REFUSED(fd, NETMAP_REQ_SYNC_KLOOP_START, PORT);
	ATF_CHECK_EQ(EOPNOTSUPP, request(fd, NETMAP_REQ_SYNC_KLOOP_STOP, PORT,
	    NULL));
}

CTRL_TEST(sync_kloop_csb_enable, "Refused: a CSB")
{
	ATF_CHECK_EQ(0, REGISTER(fd, PORT, .nr_mode = NR_REG_ALL_NIC,
	    .nr_flags = NR_EXCLUSIVE));
	ATF_CHECK_EQ(EOPNOTSUPP, request(fd, NETMAP_REQ_CSB_ENABLE, PORT,
	    NULL));
}

/* NR_REG_NULL, whatever the name. */
static void
null_register(int fd, struct nmreq_register reg)
{
	const struct nmreq_register ask = reg;
	void *map;

	ATF_REQUIRE_EQ(0, with_options(fd, "tap0", &reg, NULL));
	ATF_CHECK(reg.nr_memsize != 0);
	ATF_CHECK_EQ(ask.nr_mode, reg.nr_mode);
	ATF_CHECK_EQ(ask.nr_mem_id, reg.nr_mem_id);
	ATF_CHECK_EQ(ask.nr_tx_rings, reg.nr_tx_rings);
	ATF_CHECK_EQ(ask.nr_rx_rings, reg.nr_rx_rings);
	ATF_CHECK_EQ(ask.nr_tx_slots, reg.nr_tx_slots);
	ATF_CHECK_EQ(ask.nr_rx_slots, reg.nr_rx_slots);
	map = mmap(NULL, reg.nr_memsize, PROT_READ | PROT_WRITE, MAP_SHARED,
	    fd, 0);
	ATF_REQUIRE(map != MAP_FAILED);
	ATF_CHECK_STREQ("tap0", ((struct netmap_if *)(void *)((char *)map +
	    reg.nr_offset))->ni_name);
	munmap(map, reg.nr_memsize);
	ATF_CHECK_EQ(0, ports());
}

#define	NULL_ASK(...)							\
	(struct nmreq_register){ .nr_mode = NR_REG_NULL, .nr_mem_id = 1, \
	    __VA_ARGS__ }

CTRL_TEST(null_port, "Memory without rings")
{
	null_register(fd, NULL_ASK(.nr_tx_rings = 10, .nr_rx_rings = 5,
	    .nr_tx_slots = 256, .nr_rx_slots = 100));
}

CTRL_TEST(null_port_all_zero, "Memory without rings, and without numbers; as "
    "often as wanted")
{
	int i, other = device();
	char *map[2];

	null_register(fd, NULL_ASK(.nr_flags = 0));
	null_register(other, NULL_ASK(.nr_flags = 0));
	/* Each is a memory of its own. */
	for (i = 0; i < 2; i++) {
		map[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
		    i == 0 ? fd : other, 0);
		ATF_REQUIRE(map[i] != MAP_FAILED);
	}
	map[0][4095] = 1;
	ATF_CHECK_EQ(0, map[1][4095]);
	close(other);
}

CTRL_TEST(null_port_sync, "A sync has nothing to do")
{
	null_register(fd, NULL_ASK(.nr_tx_rings = 10, .nr_rx_rings = 5));
	ATF_CHECK_EQ(0, ioctl(fd, NIOCTXSYNC, NULL));
	ATF_CHECK_EQ(0, ioctl(fd, NIOCRXSYNC, NULL));
	ATF_CHECK_EQ(0, poll_one(fd, POLLIN | POLLOUT, 0));
}

/* NIOCREGIF.  Returns 0 or an errno. */
static int
legacy(int fd, const char *name, struct nmreq nmr)
{
	const struct nmreq ask = nmr;

	strcpy(nmr.nr_name, name);
	if (ioctl(fd, NIOCREGIF, &nmr) == -1)
		return (errno);
	ATF_CHECK(nmr.nr_memsize != 0);
	ATF_CHECK(nmr.nr_tx_rings != 0 && nmr.nr_rx_slots != 0);
	ATF_CHECK_EQ(ask.nr_ringid, nmr.nr_ringid);
	ATF_CHECK_EQ(ask.nr_flags, nmr.nr_flags);
	ATF_CHECK_EQ(ask.nr_arg3, nmr.nr_arg3);
	return (0);
}

#define	LEGACY(fd, name, ...)						\
	legacy(fd, name, (struct nmreq){ __VA_ARGS__ })
#define	LEGACY_TEST(name, descr, error, port, ...)			\
	CTRL_TEST(name, descr)						\
	{								\
		ATF_CHECK_EQ(error, LEGACY(fd, port, __VA_ARGS__));	\
	}

LEGACY_TEST(legacy_regif_default, "NIOCREGIF", 0, PORT,
    .nr_version = NETMAP_API)
LEGACY_TEST(legacy_regif_all_nic, "All rings", 0, PORT,
    .nr_version = NETMAP_API, .nr_flags = NR_REG_ALL_NIC)

CTRL_TEST(legacy_regif_12, "A newer version, which NIOCCTRL takes, too")
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API + 1,
	    .nr_reqtype = NETMAP_REQ_PORT_HDR_GET, .nr_name = PORT };
	struct nmreq_port_hdr body = { 0 };

	ATF_CHECK_EQ(0, LEGACY(fd, PORT, .nr_version = NETMAP_API + 1,
	    .nr_flags = NR_REG_ALL_NIC));
	hdr.nr_body = (uintptr_t)&body;
	ATF_CHECK_EQ(0, ioctl(fd, NIOCCTRL, &hdr));
	ATF_CHECK_EQ(NETMAP_API + 1, hdr.nr_version);
	hdr.nr_version = NETMAP_API + 2;
	ATF_CHECK_ERRNO(EINVAL, ioctl(fd, NIOCCTRL, &hdr) == -1);
	ATF_CHECK_EQ(NETMAP_API, hdr.nr_version);
}

LEGACY_TEST(legacy_regif_sw, "Refused: rings of the host", EOPNOTSUPP, PORT,
    .nr_version = NETMAP_API, .nr_flags = NR_REG_SW)

CTRL_TEST(legacy_regif_future, "Refused: rings of the host, whatever the "
    "version")
{
	ATF_CHECK_EQ(EOPNOTSUPP, LEGACY(fd, PORT,
	    .nr_version = NETMAP_API + 2, .nr_flags = NR_REG_NIC_SW));
	ATF_CHECK_EQ(0, LEGACY(fd, PORT, .nr_version = NETMAP_API + 2,
	    .nr_flags = NR_REG_ALL_NIC));
}

LEGACY_TEST(legacy_regif_extra_bufs, "Extra buffers", 0, PORT,
    .nr_version = NETMAP_API, .nr_flags = NR_REG_ALL_NIC, .nr_arg3 = 20)
LEGACY_TEST(legacy_regif_extra_bufs_pipe, "Extra buffers of a pipe", 0, "x{pex",
    .nr_version = NETMAP_API, .nr_flags = NR_REG_ALL_NIC, .nr_arg3 = 58)
LEGACY_TEST(legacy_regif_extra_bufs_pipe_vale, "Extra buffers of a port's pipe",
    0, "valeX1:Y4{pex", .nr_version = NETMAP_API, .nr_flags = NR_REG_ALL_NIC,
    .nr_arg3 = 58)

CTRL_TEST(name_without_end, "Refused, whatever the name begins with")
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = NETMAP_REQ_REGISTER, .nr_body = (uintptr_t)&reg };

	memset(hdr.nr_name, 'x', sizeof(hdr.nr_name));
	ATF_CHECK_ERRNO(EINVAL, ioctl(fd, NIOCCTRL, &hdr) == -1);
	memcpy(hdr.nr_name, PORT, strlen(PORT));
	ATF_CHECK_ERRNO(EINVAL, ioctl(fd, NIOCCTRL, &hdr) == -1);
}

TEST_PROGRAM
