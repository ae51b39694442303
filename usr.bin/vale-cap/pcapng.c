/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See pcapng.h.  A block has its type, its length, a body and its length once
 * more; an option its code, the length of its value, and the value.  All begin
 * at a multiple of 4 bytes.
 */

#include <string.h>

#include "pcapng.h"

#define	BLOCK_SECTION		0x0a0d0d0a
#define	BLOCK_INTERFACE		1
#define	BLOCK_PACKET		6
#define	BLOCK_STATISTICS	5
#define	BYTE_ORDER_MAGIC	0x1a2b3c4d
#define	LINKTYPE_ETHERNET	1

#define	OPT_END			0
#define	SHB_USERAPPL		4
#define	IF_NAME			2
#define	IF_TSRESOL		9
#define	TSRESOL_NS		9	/* 10^-9 s */
#define	EPB_FLAGS		2
#define	ISB_IFRECV		4
#define	ISB_IFDROP		5

#define	BLOCK_ROUND		12	/* bytes of a block without a body */
#define	OPTION_HEAD		4

static const char padding[4];

static uint32_t
padded(uint32_t len)
{
	return ((len + 3) & ~3U);
}

static void
put32(FILE *f, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, f);
}

static void
put16(FILE *f, uint16_t value)
{
	fwrite(&value, sizeof(value), 1, f);
}

/* Write a time: the upper half comes first, whatever the byte order. */
static void
put_time(FILE *f, uint64_t time_ns)
{
	put32(f, time_ns >> 32);
	put32(f, (uint32_t)time_ns);
}

static void
put_data(FILE *f, const void *data, uint32_t len)
{
	fwrite(data, 1, len, f);
	fwrite(padding, 1, padded(len) - len, f);
}

/* Begin a block; returns its length, for its end. */
static uint32_t
block(FILE *f, uint32_t type, uint32_t body)
{
	put32(f, type);
	put32(f, body + BLOCK_ROUND);
	return (body + BLOCK_ROUND);
}

static uint32_t
option_size(uint32_t len)
{
	return (OPTION_HEAD + padded(len));
}

static void
option(FILE *f, uint16_t code, const void *value, uint16_t len)
{
	put16(f, code);
	put16(f, len);
	put_data(f, value, len);
}

static void
option_end(FILE *f)
{
	option(f, OPT_END, padding, 0);
}

void
pcapng_begin(FILE *f, const char *program)
{
	const int64_t unknown = -1;	/* the section's length */
	const uint16_t len = strlen(program);
	uint32_t end;

	end = block(f, BLOCK_SECTION, 16 + option_size(len) + option_size(0));
	put32(f, BYTE_ORDER_MAGIC);
	put16(f, 1);
	put16(f, 0);
	put_data(f, &unknown, sizeof(unknown));
	option(f, SHB_USERAPPL, program, len);
	option_end(f);
	put32(f, end);
}

void
pcapng_interface(FILE *f, const char *name, uint32_t snaplen)
{
	static const uint8_t resolution = TSRESOL_NS;
	const uint16_t len = strlen(name);
	uint32_t end;

	end = block(f, BLOCK_INTERFACE, 8 + option_size(len) +
	    option_size(sizeof(resolution)) + option_size(0));
	put16(f, LINKTYPE_ETHERNET);
	put16(f, 0);
	put32(f, snaplen);
	option(f, IF_NAME, name, len);
	option(f, IF_TSRESOL, &resolution, sizeof(resolution));
	option_end(f);
	put32(f, end);
}

void
pcapng_packet(FILE *f, const struct pcapng_packet *p)
{
	const uint32_t flags = p->way;
	uint32_t body, end;

	body = 20 + padded(p->captured);
	if (p->way != PCAPNG_UNKNOWN)
		body += option_size(sizeof(flags)) + option_size(0);
	end = block(f, BLOCK_PACKET, body);
	put32(f, p->interface);
	put_time(f, p->time_ns);
	put32(f, p->captured);
	put32(f, p->len);
	put_data(f, p->data, p->captured);
	if (p->way != PCAPNG_UNKNOWN) {
		option(f, EPB_FLAGS, &flags, sizeof(flags));
		option_end(f);
	}
	put32(f, end);
}

void
pcapng_statistics(FILE *f, uint32_t interface, uint64_t time_ns,
    uint64_t captured, uint64_t dropped)
{
	uint32_t end;

	end = block(f, BLOCK_STATISTICS, 12 + 2 * option_size(
	    sizeof(captured)) + option_size(0));
	put32(f, interface);
	put_time(f, time_ns);
	captured += dropped;
	option(f, ISB_IFRECV, &captured, sizeof(captured));
	option(f, ISB_IFDROP, &dropped, sizeof(dropped));
	option_end(f);
	put32(f, end);
}
