/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * VERSION: which versions and which JSON are accepted, and the reply, byte by
 * byte.  vfio-user specification, "VFIO_USER_VERSION".
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "peer_mem.h"
#include "vfu_server.h"

#define	FILL	0xa5

static uint8_t	reply[VFU_REPLY_MAX];

/* Propose major.minor with `len' bytes of data. */
static int
propose(unsigned int major, unsigned int minor, const void *data, size_t len,
    size_t *reply_len)
{
	struct vfio_user_version v = { .major = major, .minor = minor };
	struct vfu_request req;
	uint8_t *msg;
	int error;

	/* Exactly as long as the message, for AddressSanitizer. */
	msg = malloc(sizeof(v) + len);
	ATF_REQUIRE(msg != NULL);
	memcpy(msg, &v, sizeof(v));
	if (len != 0)
		memcpy(msg + sizeof(v), data, len);
	memset(&req, 0, sizeof(req));
	memset(reply, FILL, sizeof(reply));
	req.data = msg;
	req.len = sizeof(v) + len;
	req.reply = reply;
	error = vfu_version(NULL, &req);
	free(msg);
	*reply_len = req.reply_len;
	return (error);
}

/* The proposal is accepted with this reply; NULL: it is refused. */
static void
check(const char *json, const char *expected)
{
	const struct vfio_user_version ours = { 0, 0 };
	size_t len;
	int error;

	error = propose(0, 7, json, strlen(json) + 1, &len);
	if (expected == NULL) {
		ATF_CHECK_EQ_MSG(EINVAL, error, "%s: %d", json, error);
		ATF_CHECK_EQ(0, len);
		return;
	}
	ATF_CHECK_EQ_MSG(0, error, "%s: %d", json, error);
	ATF_CHECK_EQ(sizeof(ours) + strlen(expected) + 1, len);
	ATF_CHECK_EQ(0, memcmp(reply, &ours, sizeof(ours)));
	ATF_CHECK_STREQ(expected, (char *)reply + sizeof(ours));
	ATF_CHECK_EQ(FILL, reply[len]);
}

TEST(versions, "Any minor version of the major version is accepted")
{
	struct vfu_request req;
	uint8_t *page;
	size_t len;

	ATF_CHECK_EQ(0, propose(0, 0, NULL, 0, &len));
	ATF_CHECK_STREQ("{\"capabilities\":{}}", (char *)reply + 4);
	ATF_CHECK_EQ(0, propose(0, 65535, NULL, 0, &len));
	ATF_CHECK_EQ(0, memcmp(reply, "\0\0\0\0", 4));
	ATF_CHECK_EQ(ENOTSUP, propose(1, 0, NULL, 0, &len));
	ATF_CHECK_EQ(0, len);
	memset(&req, 0, sizeof(req));
	req.reply = reply;
	/* A shorter message ends where memory does. */
	page = mmap(NULL, 2 * PEER_MEM_PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	ATF_REQUIRE(page != MAP_FAILED);
	page += PEER_MEM_PAGE;
	ATF_REQUIRE_EQ(0, mprotect(page, PEER_MEM_PAGE, PROT_NONE));
	for (req.len = 0; req.len < sizeof(struct vfio_user_version);
	    req.len++) {
		req.data = page - req.len;
		ATF_CHECK_EQ(EINVAL, vfu_version(NULL, &req));
	}
}

TEST(json, "The data is one JSON object and a NUL, without duplicates")
{
	const char *none = "{\"capabilities\":{}}";
	size_t len;

	check("{}", none);
	check(" { } ", none);
	check("{\"x\":[1,null,\"y\"]}", none);
	check("", NULL);
	check("[]", NULL);
	check("0", NULL);
	check("{} x", NULL);
	check("{\"a\":1,\"a\":1}", NULL);
	check("{\"capabilities\":{\"pgsizes\":1,\"pgsizes\":1}}", NULL);
	/* The NUL ends it, at the end of the message only. */
	ATF_CHECK_EQ(EINVAL, propose(0, 0, "{}", 2, &len));
	ATF_CHECK_EQ(EINVAL, propose(0, 0, "{}}", 3, &len));
	ATF_CHECK_EQ(EINVAL, propose(0, 0, "{}\0", 4, &len));
	ATF_CHECK_EQ(EINVAL, propose(0, 0, "", 1, &len));
}

static void
check_depth(const char *open, const char *close, int depth, bool ok)
{
	char text[256];
	int i;

	strcpy(text, "{\"a\":");
	for (i = 1; i < depth; i++)
		strcat(text, open);
	strcat(text, "0");
	for (i = 1; i < depth; i++)
		strcat(text, close);
	strcat(text, "}");
	check(text, ok ? "{\"capabilities\":{}}" : NULL);
}

TEST(depth, "Eight levels below the object are accepted, of either kind")
{
	check_depth("[", "]", 1, true);
	check_depth("[", "]", 8, true);
	check_depth("[", "]", 9, false);
	check_depth("[1,", "]", 8, true);
	check_depth("[1,", "]", 9, false);
	check_depth("{\"b\":", "}", 8, true);
	check_depth("{\"b\":", "}", 9, false);
	check_depth("{\"b\":[", "]}", 4, true);
	check_depth("{\"b\":[", "]}", 5, false);
}

TEST(capabilities, "The reply has valed's values of what was proposed")
{
	const char *none = "{\"capabilities\":{}}";

	check("{\"capabilities\":{}}", none);
	check("{\"capabilities\":0}", NULL);
	check("{\"capabilities\":[]}", NULL);
	check("{\"capabilities\":null}", NULL);
	check("{\"capabilities\":{\"max_peer_fds\":1}}",
	    "{\"capabilities\":{\"max_peer_fds\":16}}");
	check("{\"capabilities\":{\"max_data_xfer_size\":1048576}}",
	    "{\"capabilities\":{\"max_data_xfer_size\":4096}}");
	check("{\"capabilities\":{\"max_dma_maps\":65535}}",
	    "{\"capabilities\":{\"max_dma_maps\":65535}}");
	check("{\"capabilities\":{\"pgsizes\":4198400}}",
	    "{\"capabilities\":{\"pgsizes\":4096}}");
	check("{\"capabilities\":{\"write_multiple\":true}}",
	    "{\"capabilities\":{\"write_multiple\":true}}");
	check("{\"capabilities\":{\"write_multiple\":false}}", none);
	check("{\"capabilities\":{\"migration\":{},\"twin_socket\":1}}", none);
	check("{\"capabilities\":{\"x\":1,\"write_multiple\":true,"
	    "\"pgsizes\":1,\"max_peer_fds\":1,\"max_dma_maps\":1,"
	    "\"max_data_xfer_size\":1}}",
	    "{\"capabilities\":{\"max_peer_fds\":16,"
	    "\"max_data_xfer_size\":4096,\"max_dma_maps\":65535,"
	    "\"pgsizes\":4096,\"write_multiple\":true}}");
	/* Numbers are integers. */
	check("{\"capabilities\":{\"max_peer_fds\":true}}", NULL);
	check("{\"capabilities\":{\"pgsizes\":\"4096\"}}", NULL);
	check("{\"capabilities\":{\"pgsizes\":1,\"max_peer_fds\":1.5}}", NULL);
}

TEST_PROGRAM
