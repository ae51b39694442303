/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Version negotiation: spec "VFIO_USER_VERSION".  The client sends its
 * capabilities as JSON (RFC 8259); the server replies with its own values of
 * those that it supports.
 */

#include <sys/param.h>

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "vfu_device.h"

/*
 * Deeper JSON is rejected.  The specification needs three levels.  jansson's
 * own limit is 2048 levels, and a message has at most VFU_MSG_MAX bytes.
 */
#define	JSON_DEPTH	8

/* The supported capabilities, with the server's values. */
static const struct {
	const char	*name;
	unsigned int	number;		/* 0: true */
} caps[] = {
	{ "max_peer_fds", VFU_FDS_MAX },
	{ "max_data_xfer_size", VFU_XFER_MAX },
	{ "max_dma_maps", PEER_MEM_MAX },
	{ "pgsizes", PEER_MEM_PAGE },
	{ "write_multiple", 0 },
};

/* Return whether `json' has at most `depth' levels below it. */
static bool
depth_ok(json_t *json, int depth)
{
	const char *key;
	json_t *value;
	size_t i;

	if (depth < 0)
		return (false);
	json_object_foreach(json, key, value) {
		if (!depth_ok(value, depth - 1))
			return (false);
	}
	json_array_foreach(json, i, value) {
		if (!depth_ok(value, depth - 1))
			return (false);
	}
	return (true);
}

/*
 * Parse `len' bytes of JSON with a terminating NUL.  0 bytes are an empty
 * object.  Returns an object, or NULL if the JSON is invalid or something else.
 */
static json_t *
version_parse(const uint8_t *data, size_t len)
{
	json_t *doc;

	if (len == 0)
		return (json_object());
	if (data[len - 1] != '\0')
		return (NULL);
	doc = json_loadb((const char *)data, len - 1, JSON_REJECT_DUPLICATES,
	    NULL);
	if (!json_is_object(doc) || !depth_ok(doc, JSON_DEPTH)) {
		json_decref(doc);
		return (NULL);
	}
	return (doc);
}

/*
 * Add to `ours' the value of each supported capability in `offered', which may
 * be NULL.  0, EINVAL if one has the wrong type, or ENOMEM.
 */
static int
version_answer(const json_t *offered, json_t *ours)
{
	const json_t *value;
	unsigned int i;
	int error;

	if (offered != NULL && !json_is_object(offered))
		return (EINVAL);
	error = 0;
	for (i = 0; i < nitems(caps) && error == 0; i++) {
		value = json_object_get(offered, caps[i].name);
		if (value == NULL)
			continue;
		if (caps[i].number != 0) {
			if (!json_is_integer(value))
				return (EINVAL);
			error = json_object_set_new(ours, caps[i].name,
			    json_integer(caps[i].number));
		} else if (json_is_true(value))
			error = json_object_set_new(ours, caps[i].name,
			    json_true());
	}
	return (error == 0 ? 0 : ENOMEM);
}

int
vfu_version(struct vfu_device *vd __unused, struct vfu_request *req)
{
	struct vfio_user_version version;
	json_t *answer, *doc, *ours;
	char *text;
	size_t len;
	int error;

	if (req->len < sizeof(version))
		return (EINVAL);
	memcpy(&version, req->data, sizeof(version));
	if (version.major != VFIO_USER_MAJOR)
		return (ENOTSUP);
	doc = version_parse(req->data + sizeof(version),
	    req->len - sizeof(version));
	if (doc == NULL)
		return (EINVAL);
	ours = json_object();
	answer = json_pack("{s:O}", "capabilities", ours);
	error = version_answer(json_object_get(doc, "capabilities"), ours);
	if (error != 0)
		goto out;

	version.minor = VFIO_USER_MINOR;
	memcpy(req->reply, &version, sizeof(version));
	text = (char *)req->reply + sizeof(version);
	len = json_dumpb(answer, text, VFU_XFER_MAX, JSON_COMPACT);
	if (len == 0) {
		error = ENOMEM;
		goto out;
	}
	MPASS(len < VFU_XFER_MAX);
	text[len] = '\0';
	req->reply_len = sizeof(version) + len + 1;
out:
	json_decref(answer);
	json_decref(ours);
	json_decref(doc);
	return (error);
}
