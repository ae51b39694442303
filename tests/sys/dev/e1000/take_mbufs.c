/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * take_mbufs: takes as many mbuf clusters of the size of a page as the kernel
 * allows, and those of ICMP packets that are received, until it is killed.
 * They wait in sockets that nobody reads.
 *
 * A processor keeps some free clusters for itself, which only the received
 * packets can take.
 */

#include <sys/types.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysctl.h>

#include <err.h>
#include <netinet/in.h>
#include <unistd.h>

#define	PAGE	4096
#define	QUEUE	(16 * 1024 * 1024)	/* bytes in a socket, at most */

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
	size_t len;
	ssize_t n;
	int icmp, pages, s[2];

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	icmp = socket(PF_INET, SOCK_RAW, IPPROTO_ICMP);
	if (icmp == -1)
		err(1, "socket");
	lengthen(icmp, SO_RCVBUF);
	len = sizeof(pages);
	if (sysctlbyname("kern.ipc.nmbjumbop", &pages, &len, NULL, 0) != 0)
		err(1, "kern.ipc.nmbjumbop");
	/* The kernel takes smaller clusters when there are no more pages. */
	for (wanted = (long long)pages * PAGE; wanted > 0;) {
		if (socketpair(PF_LOCAL, SOCK_STREAM, 0, s) != 0)
			err(1, "socketpair");
		lengthen(s[0], SO_SNDBUF);
		lengthen(s[1], SO_RCVBUF);
		while ((n = send(s[0], data, sizeof(data), MSG_DONTWAIT)) > 0)
			wanted -= n;
	}
	for (;;)
		(void)pause();
}
