/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For tests of attached interfaces: a veth pair in a network namespace of the
 * test.  One end, h0, is attached as vale0:h0.  A packet socket at the other
 * end, w0, is the wire.  vale0:t is another port of the switch.
 *
 * A function that fails ends the test case.  One thread.
 */

#ifndef _HOSTIF_PAIR_H_
#define	_HOSTIF_PAIR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hostif.h"
#include "libvale.h"
#include "test.h"

#define	BUFSIZE	70000

/* A test case that needs ip(8) and its own network namespace. */
#define	ROOT_TEST(name, descr)						\
	ATF_TC(name);							\
	TEST_LISTED(name)						\
	ATF_TC_HEAD(name, tc)						\
	{								\
		atf_tc_set_md_var(tc, "descr", descr);			\
		atf_tc_set_md_var(tc, "require.user", "root");		\
		atf_tc_set_md_var(tc, "require.progs", "ip");		\
	}								\
	ATF_TC_BODY(name, tc)

extern struct hostif	*hi;		/* the attached interface */
extern struct vale_desc	*port;		/* vale0:t */
extern int		 wire;		/* at w0; frames have a virtio-net
					   header of FRAME_VNET_SHORT bytes */
extern enum hostif_kind	 kind;		/* attach() uses it */
extern const char	*pair;		/* the command that makes the pair */
extern bool		 no_bpf;	/* bpf(2) fails, as on an old kernel */
extern int		 send_error;	/* sendto(2) of the interface's thread
					   fails so, */
extern unsigned int	 send_failures;	/* that many times; atomic */
extern uint8_t		 buf[BUFSIZE];	/* the last frame received */

/* Offsets in a packet of TCP or UDP over IPv4. */
#define	IP	14
#define	L4	34
#define	TCP_HDR	(L4 + 20)
#define	UDP_HDR	(L4 + 8)

/* Run a command of sh(1). */
void	run(const char *fmt, ...) __attribute__((__format__(__printf__, 1, 2)));
/* Set or clear a feature of h0, as ethtool(8) with -K; its queues, with -L. */
void	set_feature(const char *name, bool on);
void	set_queues(uint32_t n);
/* From now on the kind is AF_XDP. */
void	use_xdp(void);

/* Make the namespace and the pair, without IPv6, which sends frames. */
void	make_pair(void);
/* Attach h0; open the wire; both, and vale0:t, in a new namespace. */
void	attach(void);
void	open_wire(void);
void	setup(void);

/* A counter of the attached interface. */
uint64_t counter(enum hostif_counter c);
/* Its thread does not spin. */
void	thread_sleeps(void);

/* Make a broadcast of `len' bytes with a number in it. */
void	make_frame(uint8_t *p, uint32_t len, uint32_t number);
uint32_t frame_number(const uint8_t *p);
/*
 * Make a packet over IPv4, without its checksums, and a header that has it cut
 * after `size' bytes; `type' is FRAME_GSO_*.
 */
void	make_packet(uint8_t *p, uint8_t *hdr, uint32_t len, uint8_t type,
	    uint32_t size);
/* The Internet checksum of a packet's data and pseudo-header: 0 if right. */
uint16_t packet_sum(const uint8_t *p, uint32_t len);
/* Set the sum of the pseudo-header, which a partial checksum begins with. */
void	pseudo_sum(uint8_t *p, uint32_t len, uint32_t field);

/* Send on the wire, with a header or, if that is NULL, with zeros. */
void	wire_send(const uint8_t *hdr, const uint8_t *p, size_t len);
/* Receive from the wire: the frame's length; its header in `hdr'. */
uint32_t wire_receive(uint8_t *hdr);
/* Put a frame into the port's ring, with a header if there is one. */
void	port_put(const uint8_t *hdr, const uint8_t *p, uint32_t len);
/* Receive a frame from the port's ring; its header in `hdr', or zeros. */
uint32_t port_receive(uint8_t *hdr);
/* The port's ring has no frame. */
void	nothing_in_port(void);

#endif /* !_HOSTIF_PAIR_H_ */
