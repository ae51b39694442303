/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * take_mbufs: takes as many mbuf clusters of the size of a page as the kernel
 * allows, and those of ICMP packets that are received, until it is killed.
 * They wait in sockets that nobody reads.  It ends with EX_UNAVAILABLE before
 * it takes memory that the rest of the system needs.
 *
 * A processor keeps some free clusters for itself, which only the received
 * packets can take.
 */

#include <sys/param.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysctl.h>

#include <err.h>
#include <netinet/in.h>
#include <sysexits.h>
#include <unistd.h>

#define	PAGE	4096
#define	QUEUE	(16 * 1024 * 1024)	/* bytes in a socket, at most */

static u_int
value(const char *name)
{
	size_t len;
	u_int n;

	len = sizeof(n);
	if (sysctlbyname(name, &n, &len, NULL, 0) != 0)
		err(1, "%s", name);
	return (n);
}

/*
 * The page daemon makes free pages of inactive ones.  If both together are not
 * more than it aims at, the kernel kills processes.
 */
static void
check_memory(void)
{
	u_int least, pages;

	pages = value("vm.stats.vm.v_free_count") +
	    value("vm.stats.vm.v_inactive_count");
	least = 2 * value("vm.stats.vm.v_free_target");
	if (pages < least)
		errx(EX_UNAVAILABLE, "too little memory to take all mbuf "
		    "clusters: %u pages are left, of at least %u", pages,
		    least);
}

static void
lengthen(int s, int option)
{
	int size;

	for (size = QUEUE; size > PAGE; size /= 2)
		if (setsockopt(s, SOL_SOCKET, option, &size, sizeof(size)) == 0)
			break;
}

int
main(void)
{
	static char data[16 * PAGE];
	struct rlimit limit;
	long long wanted;
	ssize_t n;
	int icmp, s[2];

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	icmp = socket(PF_INET, SOCK_RAW, IPPROTO_ICMP);
	if (icmp == -1)
		err(1, "socket");
	lengthen(icmp, SO_RCVBUF);
	wanted = (long long)value("kern.ipc.nmbjumbop") * PAGE;
	/* The kernel takes smaller clusters when there are no more pages. */
	while (wanted > 0) {
		if (socketpair(PF_LOCAL, SOCK_STREAM, 0, s) != 0)
			err(1, "socketpair");
		lengthen(s[0], SO_SNDBUF);
		lengthen(s[1], SO_RCVBUF);
		do {
			check_memory();
			n = send(s[0], data, sizeof(data), MSG_DONTWAIT);
			wanted -= MAX(n, 0);
		} while (n > 0);
	}
	for (;;)
		(void)pause();
}
