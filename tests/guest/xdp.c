/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * In a guest: attaches an XDP program to an interface, in its driver.
 *
 *	xdp INTERFACE pass | drop | abort	what happens to each frame
 *	xdp INTERFACE meta			it passes, with metadata
 *	xdp INTERFACE tx			it is sent back to its sender
 *	xdp INTERFACE redirect TARGET		it is sent on another interface
 *	xdp INTERFACE off			remove the program
 *	xdp INTERFACE count			print how many programs the
 *						kernel has
 *
 * Exits with status 0, or prints the error and exits with 1.
 */

#include <sys/socket.h>
#include <sys/syscall.h>

#include <err.h>
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#define	XDP_META	0x6d657461	/* trouble.c */

#define	LENGTH(a)	(sizeof(a) / sizeof((a)[0]))

/* Instructions: opcode, registers, offset, constant. */
#define	INSN(op, dst, src, off, imm)					\
	((struct bpf_insn){ op, dst, src, off, imm })
#define	LOAD(size, dst, src, off)					\
	INSN(BPF_LDX | BPF_MEM | size, dst, src, off, 0)
#define	STORE(size, dst, src, off)					\
	INSN(BPF_STX | BPF_MEM | size, dst, src, off, 0)
#define	MOV(dst, imm)	INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm)
#define	MOV_REG(dst, src)						\
	INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define	ADD(dst, imm)	INSN(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, imm)
#define	JUMP_GT(a, b, off)						\
	INSN(BPF_JMP | BPF_JGT | BPF_X, a, b, off, 0)
#define	CALL(helper)	INSN(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
#define	EXIT		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* Load a program and return its descriptor. */
static int
prog_load(const struct bpf_insn *insn, size_t n)
{
	static char log[65536];
	union bpf_attr attr;
	int fd;

	/* The kernel wants zeros in all of the union. */
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insns = (uintptr_t)insn;
	attr.insn_cnt = n;
	attr.license = (uintptr_t)"Dual BSD/GPL";
	attr.log_level = 1;
	attr.log_buf = (uintptr_t)log;
	attr.log_size = sizeof(log);
	fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd < 0)
		err(1, "BPF_PROG_LOAD: %s", log);
	return (fd);
}

/* A program that returns `action' for each frame. */
static int
prog_action(int action)
{
	const struct bpf_insn insn[] = { MOV(0, action), EXIT };

	return (prog_load(insn, LENGTH(insn)));
}

/* Exchange the addresses of a frame, and send it. */
static int
prog_tx(void)
{
	const struct bpf_insn insn[] = {
		LOAD(BPF_W, 2, 1, offsetof(struct xdp_md, data)),
		LOAD(BPF_W, 3, 1, offsetof(struct xdp_md, data_end)),
		MOV_REG(4, 2),
		ADD(4, 14),
		MOV(0, XDP_DROP),
		JUMP_GT(4, 3, 13),
		LOAD(BPF_H, 4, 2, 0),
		LOAD(BPF_H, 5, 2, 6),
		STORE(BPF_H, 2, 5, 0),
		STORE(BPF_H, 2, 4, 6),
		LOAD(BPF_H, 4, 2, 2),
		LOAD(BPF_H, 5, 2, 8),
		STORE(BPF_H, 2, 5, 2),
		STORE(BPF_H, 2, 4, 8),
		LOAD(BPF_H, 4, 2, 4),
		LOAD(BPF_H, 5, 2, 10),
		STORE(BPF_H, 2, 5, 4),
		STORE(BPF_H, 2, 4, 10),
		MOV(0, XDP_TX),
		EXIT,
	};

	return (prog_load(insn, LENGTH(insn)));
}

/* Put four bytes before a frame, or drop it. */
static int
prog_meta(void)
{
	const struct bpf_insn insn[] = {
		MOV_REG(6, 1),
		MOV(2, -4),
		CALL(BPF_FUNC_xdp_adjust_meta),
		LOAD(BPF_W, 2, 6, offsetof(struct xdp_md, data_meta)),
		LOAD(BPF_W, 3, 6, offsetof(struct xdp_md, data)),
		MOV_REG(4, 2),
		ADD(4, 4),
		MOV(0, XDP_DROP),
		JUMP_GT(4, 3, 2),
		INSN(BPF_ST | BPF_MEM | BPF_W, 2, 0, 0, XDP_META),
		MOV(0, XDP_PASS),
		EXIT,
	};

	return (prog_load(insn, LENGTH(insn)));
}

static int
prog_redirect(const char *target)
{
	const struct bpf_insn insn[] = {
		MOV(1, if_nametoindex(target)),
		MOV(2, 0),
		CALL(BPF_FUNC_redirect),
		EXIT,
	};

	return (prog_load(insn, LENGTH(insn)));
}

static void
attr_put(struct nlmsghdr *nh, int type, const void *data, size_t len)
{
	struct rtattr *rta = (void *)((char *)nh + NLMSG_ALIGN(nh->nlmsg_len));

	rta->rta_type = type;
	rta->rta_len = RTA_LENGTH(len);
	memcpy(RTA_DATA(rta), data, len);
	nh->nlmsg_len = NLMSG_ALIGN(nh->nlmsg_len) + RTA_ALIGN(rta->rta_len);
}

/* The kernel explains an error in an attribute behind the request. */
static void
attach_failed(const struct nlmsghdr *nh, const struct nlmsgerr *ne)
{
	const struct rtattr *rta = (const void *)(ne + 1);
	int len = nh->nlmsg_len - NLMSG_LENGTH(sizeof(*ne));

	errno = -ne->error;
	for (; (nh->nlmsg_flags & NLM_F_ACK_TLVS) != 0 && RTA_OK(rta, len);
	    rta = RTA_NEXT(rta, len))
		if (rta->rta_type == NLMSGERR_ATTR_MSG)
			warnx("%s", (const char *)RTA_DATA(rta));
	err(1, "attach");
}

/* Attach a program, or remove it (-1). */
static void
attach(const char *interface, int fd)
{
	struct {
		struct nlmsghdr	 nh;
		struct ifinfomsg ifi;
		char		 room[64];
	} req = {
		.nh.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
		.nh.nlmsg_type = RTM_SETLINK,
		.nh.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.ifi.ifi_index = if_nametoindex(interface),
	};
	union {
		struct nlmsghdr	 nh;
		char		 room[4096];
	} ans;
	struct nlmsghdr *nh = &req.nh;
	struct rtattr *nest;
	uint32_t flags = XDP_FLAGS_DRV_MODE;
	int one = 1, s;

	nest = (void *)((char *)nh + nh->nlmsg_len);
	attr_put(nh, IFLA_XDP | NLA_F_NESTED, NULL, 0);
	attr_put(nh, IFLA_XDP_FD, &fd, sizeof(fd));
	attr_put(nh, IFLA_XDP_FLAGS, &flags, sizeof(flags));
	nest->rta_len = (char *)nh + nh->nlmsg_len - (char *)nest;
	s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (s < 0)
		err(1, "socket");
	(void)setsockopt(s, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	(void)setsockopt(s, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	if (send(s, &req, nh->nlmsg_len, 0) < 0 ||
	    recv(s, &ans, sizeof(ans), 0) < (ssize_t)NLMSG_LENGTH(4) ||
	    ans.nh.nlmsg_type != NLMSG_ERROR)
		err(1, "RTM_SETLINK");
	if (((struct nlmsgerr *)NLMSG_DATA(&ans.nh))->error != 0)
		attach_failed(&ans.nh, NLMSG_DATA(&ans.nh));
}

static void
count(void)
{
	union bpf_attr attr;
	int n;

	memset(&attr, 0, sizeof(attr));
	for (n = 0; syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &attr,
	    sizeof(attr)) == 0; n++)
		attr.start_id = attr.next_id;
	printf("%d\n", n);
}

int
main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	int fd;

	if (strcmp(what, "pass") == 0)
		fd = prog_action(XDP_PASS);
	else if (strcmp(what, "drop") == 0)
		fd = prog_action(XDP_DROP);
	else if (strcmp(what, "abort") == 0)
		fd = prog_action(XDP_ABORTED);
	else if (strcmp(what, "meta") == 0)
		fd = prog_meta();
	else if (strcmp(what, "tx") == 0)
		fd = prog_tx();
	else if (strcmp(what, "redirect") == 0 && argc > 3)
		fd = prog_redirect(argv[3]);
	else if (strcmp(what, "off") == 0)
		fd = -1;
	else if (strcmp(what, "count") == 0) {
		count();
		return (0);
	} else
		errx(1, "usage: xdp interface pass|drop|abort|meta|tx|off|"
		    "count|redirect target");
	attach(argv[1], fd);
	return (0);
}
