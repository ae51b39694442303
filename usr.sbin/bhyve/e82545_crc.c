/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CRC-32 of IEEE 802.3, clause 3.2.9, eight bytes at a time: crc_table[n]
 * has the CRC of each byte with n bytes of zeros behind it.
 */

#include <sys/endian.h>

#include <pthread.h>

#include "e82545_offload.h"

#define	CRC_POLYNOMIAL	0xedb88320	/* its bits in the order sent */

static uint32_t crc_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static uint32_t
crc_byte(uint32_t crc, uint8_t byte)
{
	return (crc >> 8 ^ crc_table[0][(crc ^ byte) & 0xff]);
}

static void
crc_init(void)
{
	uint32_t crc, i, n;

	for (i = 0; i < 256; i++) {
		crc = i;
		for (n = 0; n < 8; n++)
			crc = crc >> 1 ^ (CRC_POLYNOMIAL & -(crc & 1));
		crc_table[0][i] = crc;
	}
	for (n = 1; n < 8; n++)
		for (i = 0; i < 256; i++)
			crc_table[n][i] = crc_byte(crc_table[n - 1][i], 0);
}

uint32_t
e82545_crc(const void *data, size_t len, uint32_t crc)
{
	const uint8_t *p = data;
	uint64_t v;

	pthread_once(&crc_once, crc_init);
	crc = ~crc;
	for (; len >= sizeof(v); len -= sizeof(v), p += sizeof(v)) {
		v = le64dec(p) ^ crc;
		crc = crc_table[7][v & 0xff] ^ crc_table[6][v >> 8 & 0xff] ^
		    crc_table[5][v >> 16 & 0xff] ^
		    crc_table[4][v >> 24 & 0xff] ^
		    crc_table[3][v >> 32 & 0xff] ^
		    crc_table[2][v >> 40 & 0xff] ^
		    crc_table[1][v >> 48 & 0xff] ^ crc_table[0][v >> 56];
	}
	while (len-- > 0)
		crc = crc_byte(crc, *p++);
	return (~crc);
}
