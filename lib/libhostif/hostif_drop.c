/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Keep what an interface receives from the host's stack, as long as a
 * descriptor is open.  tc(8) cannot do that: its filters stay when their maker
 * ends.  So this is one of
 *
 *  - a program at the ingress of the interface, which drops all frames and is
 *    attached by a bpf_link (tcx, Linux 6.6);
 *  - a chain of nf_tables at the ingress, in a table that its socket owns and
 *    takes along when it is closed (Linux 5.12).
 *
 * Packet sockets get a frame before either.  No state.
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <netinet/in.h>

#include <limits.h>

#include <linux/bpf.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hostif_impl.h"

/* Not in Debian 12's headers. */
#define	DROP_TCX_INGRESS	46	/* BPF_TCX_INGRESS */
#define	DROP_TCX_DROP		2	/* TCX_DROP */
#define	DROP_TABLE_OWNER	0x2	/* NFT_TABLE_F_OWNER */

int
hostif_bpf(int command, union bpf_attr *attr)
{
	return ((int)syscall(SYS_bpf, command, attr, sizeof(*attr)));
}

static int
drop_tcx(uint32_t index)
{
	static const struct bpf_insn drop[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0,
		    .imm = DROP_TCX_DROP },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;
	int link, prog;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	attr.insns = (uintptr_t)drop;
	attr.insn_cnt = nitems(drop);
	attr.license = (uintptr_t)"";
	prog = hostif_bpf(BPF_PROG_LOAD, &attr);
	if (prog == -1)
		return (-1);
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = prog;
	attr.link_create.target_ifindex = index;
	attr.link_create.attach_type = DROP_TCX_INGRESS;
	link = hostif_bpf(BPF_LINK_CREATE, &attr);
	hostif_fd_close(prog);
	return (link);
}

/* A batch of messages to nf_tables: zeros at first. */
struct drop_batch {
	_Alignas(NLMSG_ALIGNTO) uint8_t db_buf[1024];
	size_t		 db_len;
	struct nlmsghdr	*db_msg;	/* the last message */
};

static void *
drop_put(struct drop_batch *db, size_t len)
{
	void *p = db->db_buf + db->db_len;

	MPASS(db->db_len + NLMSG_ALIGN(len) <= sizeof(db->db_buf));
	db->db_len += NLMSG_ALIGN(len);
	if (db->db_msg != NULL)
		db->db_msg->nlmsg_len += NLMSG_ALIGN(len);
	return (p);
}

static void
drop_message(struct drop_batch *db, uint16_t type, uint16_t flags, bool last)
{
	struct nfgenmsg *nfg;

	db->db_msg = NULL;
	db->db_msg = drop_put(db, NLMSG_HDRLEN);
	db->db_msg->nlmsg_len = NLMSG_HDRLEN;
	db->db_msg->nlmsg_type = type;
	db->db_msg->nlmsg_flags = NLM_F_REQUEST | flags;
	nfg = drop_put(db, sizeof(*nfg));
	nfg->version = NFNETLINK_V0;
	if (last)
		nfg->res_id = htons(NFNL_SUBSYS_NFTABLES);
	else
		nfg->nfgen_family = NFPROTO_NETDEV;
}

static struct nlattr *
drop_attr(struct drop_batch *db, uint16_t type, const void *data, size_t len)
{
	struct nlattr *nla;

	nla = drop_put(db, NLA_HDRLEN + len);
	nla->nla_type = type;
	nla->nla_len = NLA_HDRLEN + len;
	memcpy((char *)nla + NLA_HDRLEN, data, len);
	return (nla);
}

static void
drop_number(struct drop_batch *db, uint16_t type, uint32_t value)
{
	value = htonl(value);
	drop_attr(db, type, &value, sizeof(value));
}

static void
drop_string(struct drop_batch *db, uint16_t type, const char *s)
{
	drop_attr(db, type, s, strlen(s) + 1);
}

static void
drop_nft_chain(struct drop_batch *db, const char *table, const char *ifname)
{
	struct nlattr *hook;
	size_t begin;

	drop_message(db, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN,
	    NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, false);
	drop_string(db, NFTA_CHAIN_TABLE, table);
	drop_string(db, NFTA_CHAIN_NAME, "ingress");
	begin = db->db_len;
	hook = drop_attr(db, NFTA_CHAIN_HOOK | NLA_F_NESTED, "", 0);
	drop_number(db, NFTA_HOOK_HOOKNUM, NF_NETDEV_INGRESS);
	drop_number(db, NFTA_HOOK_PRIORITY, INT_MIN);
	drop_string(db, NFTA_HOOK_DEV, ifname);
	hook->nla_len = db->db_len - begin;
	drop_number(db, NFTA_CHAIN_POLICY, NF_DROP);
	drop_string(db, NFTA_CHAIN_TYPE, "filter");
}

/*
 * Return whether the kernel acknowledges `n' messages.  The kernel answers
 * within sendto().
 */
static bool
drop_nft_answers(int s, int n)
{
	_Alignas(NLMSG_ALIGNTO) uint8_t buf[8192];
	struct nlmsghdr *msg;
	ssize_t len;

	for (; n > 0; n--) {
		len = recv(s, buf, sizeof(buf), MSG_DONTWAIT);
		msg = (struct nlmsghdr *)buf;
		if (len < (ssize_t)NLMSG_SPACE(sizeof(struct nlmsgerr)) ||
		    msg->nlmsg_type != NLMSG_ERROR ||
		    ((struct nlmsgerr *)NLMSG_DATA(msg))->error != 0)
			return (false);
	}
	return (true);
}

static int
drop_nft(const char *ifname)
{
	struct drop_batch db = { .db_len = 0 };
	char table[HOSTIF_NAME_SIZE + 8];
	int s;

	s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (s == -1)
		return (-1);
	snprintf(table, sizeof(table), "valed_%s", ifname);
	drop_message(&db, NFNL_MSG_BATCH_BEGIN, 0, true);
	drop_message(&db, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE,
	    NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, false);
	drop_string(&db, NFTA_TABLE_NAME, table);
	drop_number(&db, NFTA_TABLE_FLAGS, DROP_TABLE_OWNER);
	drop_nft_chain(&db, table, ifname);
	drop_message(&db, NFNL_MSG_BATCH_END, 0, true);
	if (send(s, db.db_buf, db.db_len, 0) == (ssize_t)db.db_len &&
	    drop_nft_answers(s, 2))
		return (s);
	return (hostif_fd_close(s));
}

int
hostif_drop(const char *ifname, uint32_t index)
{
	int fd;

	fd = drop_tcx(index);
	return (fd != -1 ? fd : drop_nft(ifname));
}
