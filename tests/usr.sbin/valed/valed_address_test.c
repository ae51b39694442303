/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The default address of an adapter. */

#include <sys/param.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "valed_address.h"
#include "valed_config.h"

#define	ID	"0123456789abcdef0123456789ABCDEF"

static void
write_id(const char *text)
{
	FILE *f = fopen("id", "w");

	ATF_REQUIRE(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
	valed_address_file = "id";
}

/* The address of an adapter, as a number. */
static uint64_t
address(int slot, const char *backend)
{
	struct adapter_config ac = { .ac_slot = slot };
	uint64_t n = 0;
	int i;

	strlcpy(ac.ac_backend, backend, sizeof(ac.ac_backend));
	valed_address(&ac);
	for (i = 0; i < 6; i++)
		n = n << 8 | ac.ac_mac[i];
	return (n);
}

/*
 * Aumasson and Bernstein's numbers: bytes 0, 1, 2, ... with the key of those.
 */
TEST(hash, "The hash is SipHash-2-4")
{
	static const struct {
		size_t	 len;
		uint64_t hash;
	} known[] = {
		{ 0, 0x726fdb47dd0e0e31 }, { 1, 0x74f839c593dc67fd },
		{ 8, 0x93f5f5799a932462 }, { 15, 0xa129ca6149be45e5 },
	};
	uint8_t bytes[16];
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (i = 0; i < nitems(known); i++)
		ATF_CHECK_EQ_MSG(known[i].hash, valed_address_hash(bytes,
		    bytes, known[i].len), "%zu bytes", known[i].len);
}

TEST(hosts, "It differs by host, place and port, and stays")
{
	uint64_t a;

	write_id(ID "\n");
	a = address(1, "vale0:vm1");
	ATF_CHECK_EQ_MSG(0x589cfc43056b, a, "%" PRIx64, a);
	ATF_CHECK_EQ(a, address(1, "vale0:vm1"));
	ATF_CHECK(a != address(2, "vale0:vm1"));
	ATF_CHECK(a != address(1, "vale0:vm2"));
	/* The digits' case and the newline say nothing. */
	write_id("0123456789abcdef0123456789abcdef");
	ATF_CHECK_EQ(a, address(1, "vale0:vm1"));
	write_id("0123456789abcdef0123456789abcdee\n");
	ATF_CHECK(a != address(1, "vale0:vm1"));
}

TEST(none, "Without a machine-id it is the same on all hosts")
{
	static const char *const texts[] = { "", "uninitialized\n",
	    "0123456789abcdef0123456789abcde\n", ID "0\n",
	    "0123456789abcdef0123456789abcdeg\n",
	    "00000000000000000000000000000000\n" };
	unsigned int i;

	valed_address_file = "there/is/none";
	ATF_CHECK_EQ(0x589cfccd724d, address(1, "vale0:vm1"));
	for (i = 0; i < nitems(texts); i++) {
		write_id(texts[i]);
		ATF_CHECK_EQ_MSG(0x589cfccd724d, address(1, "vale0:vm1"), "%s",
		    texts[i]);
	}
}

TEST_PROGRAM
