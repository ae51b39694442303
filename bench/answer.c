/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The host's end of a micro-guest that sends (tests/guest/micro/traffic.c):
 *
 *	answer IF
 *
 * answers its HELLO and BYE on the interface, and prints how many frames the
 * interface received between the two.  A filter keeps the others from this
 * program, so that only the interface is measured.
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <net/if.h>

#include <err.h>

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "wire.h"

#define	LEN		60

static int
wire_open(const char *ifname)
{
	/* All but data: its kind, in the order of the network. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct wire, kind)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WIRE_DATA << 24, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	const struct sock_fprog prog = { nitems(code), code };
	const struct sockaddr_ll sll = {
		.sll_family = AF_PACKET, .sll_protocol = WIRE_ETHERTYPE,
		.sll_ifindex = if_nametoindex(ifname)
	};
	int s;

	s = socket(AF_PACKET, SOCK_RAW, 0);
	if (s == -1 || setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
	    sizeof(prog)) == -1 || bind(s, (const struct sockaddr *)&sll,
	    sizeof(sll)) == -1)
		err(1, "%s", ifname);
	return (s);
}

int
main(int argc, char **argv)
{
	uint8_t buf[LEN];
	struct wire *w = (struct wire *)buf;
	uint32_t first = 0, last = 0;
	bool bye = false;
	int s;

	if (argc != 2)
		errx(1, "usage: answer interface");
	s = wire_open(argv[1]);
	for (;;) {
		if (recv(s, buf, sizeof(buf), 0) != LEN)
			continue;
		if (w->kind == WIRE_DONE)
			break;
		if (w->kind == WIRE_HELLO)
			first = bench_arrived(argv[1]);
		else if (w->kind == WIRE_BYE && !bye) {
			bye = true;
			last = bench_arrived(argv[1]);
		}
		memcpy(w->dst, w->src, sizeof(w->dst));
		memcpy(w->src, "\x02\0\0\0\0\x09", sizeof(w->src));
		w->kind++;
		if (send(s, buf, LEN, 0) != LEN)
			err(1, "%s", argv[1]);
	}
	printf("%u\n", last - first);
	return (0);
}
