/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See valed_address.h.  machine-id(5) wants the identifier hashed, with a key,
 * and a constant of the application: here it is the key of SipHash
 * (Aumasson, Bernstein: SipHash: a fast short-input PRF, 2012, section 2).
 */

#include <sys/endian.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "valed_address.h"
#include "valed_config.h"

/* Bytes of the text that is hashed. */
#define	TEXT_SIZE	(VALED_NAME_SIZE + 24)

const char *valed_address_file = "/etc/machine-id";

static uint64_t
rotate(uint64_t x, int bits)
{
	return (x << bits | x >> (64 - bits));
}

static void
rounds(uint64_t v[4], int n)
{
	for (; n > 0; n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void
block(uint64_t v[4], const uint8_t *p)
{
	const uint64_t m = le64dec(p);

	v[3] ^= m;
	rounds(v, 2);
	v[0] ^= m;
}

uint64_t
valed_address_hash(const uint8_t key[16], const void *data, size_t len)
{
	const uint64_t k0 = le64dec(key), k1 = le64dec(key + 8);
	uint64_t v[4] = { k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
	    k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573 };
	uint8_t last[8] = { [7] = (uint8_t)len };
	const uint8_t *p = data;

	for (; len >= 8; len -= 8, p += 8)
		block(v, p);
	memcpy(last, p, len);
	block(v, last);
	v[2] ^= 0xff;
	rounds(v, 4);
	return (v[0] ^ v[1] ^ v[2] ^ v[3]);
}

/* Read the machine-id: 32 hexadecimal digits, not all 0.  False: none. */
static bool
machine_id(uint8_t id[16])
{
	char text[34] = "", pair[3] = "";
	uint8_t any = 0;
	FILE *f;
	int i;

	f = fopen(valed_address_file, "re");
	if (f == NULL)
		return (false);
	(void)!fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	if (strlen(text) != 32 ||
	    strspn(text, "0123456789abcdefABCDEF") != 32)
		return (false);
	for (i = 0; i < 16; i++) {
		memcpy(pair, text + 2 * i, 2);
		id[i] = (uint8_t)strtoul(pair, NULL, 16);
		any |= id[i];
	}
	return (any != 0);
}

/* Print what tells the adapter from others of this host. */
static void
adapter_text(const struct adapter_config *ac, char text[TEXT_SIZE])
{
	snprintf(text, TEXT_SIZE, "%d-%d-%d-%s", ac->ac_bus, ac->ac_slot,
	    ac->ac_func, ac->ac_backend);
}

/* Make an address of the first bits of a hash. */
static void
address_set(uint8_t mac[6], uint64_t hash)
{
	/* The OUI that FreeBSD has for bhyve. */
	mac[0] = 0x58;
	mac[1] = 0x9c;
	mac[2] = 0xfc;
	mac[3] = (uint8_t)(hash >> 56);
	mac[4] = (uint8_t)(hash >> 48);
	mac[5] = (uint8_t)(hash >> 40);
}

/* Hash a text for a host without a machine-id: 64 bits of FNV-1a. */
static uint64_t
hash_of_none(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return (hash);
}

void
valed_address(struct adapter_config *ac)
{
	char text[6 + TEXT_SIZE] = "valed ";
	uint8_t id[16];

	adapter_text(ac, text + 6);
	address_set(ac->ac_mac, machine_id(id) ?
	    valed_address_hash(id, text, strlen(text)) :
	    hash_of_none(text + 6));
}
