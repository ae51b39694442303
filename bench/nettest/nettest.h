/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * nettest: traffic between two machines, counted where a program gets it.
 *
 * Each connection to the server begins with a line that says what it is for:
 *
 *	"udp"	The server answers "ready", counts datagrams to the same port
 *		until the line "end", and answers with their number and bytes.
 *		One such connection at a time; others get "busy".
 *	"tcp"	Bytes of the pattern follow, as many as the client likes.  At
 *		the end of file the server answers with their number, and
 *		whether they were those of the pattern: "ok" or "corrupt".
 *	"rr"	The server sends back each byte.
 */

#ifndef _NETTEST_H_
#define	_NETTEST_H_

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>

#define	NETTEST_PORT	"5678"
#define	NETTEST_CHUNK	65536		/* bytes of a read or write */
#define	NETTEST_STREAMS	64		/* at most */
#define	NETTEST_LINE	64		/* bytes of a line, with its end */

/* NETTEST_CHUNK bytes of the pattern, which begin `offset' bytes into it. */
const uint8_t *nettest_pattern(uint64_t offset);
/* Before any other thread runs. */
void	nettest_pattern_init(void);

/*
 * Read a line of up to NETTEST_LINE bytes, without its end, from a socket.
 * Returns 0, or -1 at its end, on errors and if the line is longer.
 */
int	nettest_read_line(int fd, char line[NETTEST_LINE]);
/* Write all bytes.  Returns 0, or -1 with errno set. */
int	nettest_write(int fd, const void *data, size_t len);
/* A socket of the type for the address, or exit with a message. */
int	nettest_socket(const char *address, const char *port, int type,
	    int flags, int (*call)(int, const struct sockaddr *, socklen_t));

/* Serve for ever.  An address of NULL stands for all of IPv4. */
void	nettest_serve(const char *address, const char *port)
	    __attribute__((__noreturn__));

struct nettest_client {
	const char	*address;
	const char	*port;
	unsigned int	 seconds;
	unsigned int	 size;		/* udp: bytes of a datagram */
	unsigned int	 rate;		/* a second: datagrams, transactions, bytes
					   of each stream of tcp; 0: no limit */
	unsigned int	 streams;	/* tcp */
	unsigned int	 chunk;		/* tcp: bytes of a write */
};

/* Run a test and print its result.  Exit with a message if it fails. */
void	nettest_udp(const struct nettest_client *c);
void	nettest_tcp(const struct nettest_client *c);
void	nettest_rr(const struct nettest_client *c);

#endif /* !_NETTEST_H_ */
