/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Version negotiation: spec "VFIO_USER_VERSION".  The client sends what it
 * supports as JSON (RFC 8259); we answer with our values for those of its
 * capabilities that we have.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vm.h"

/* JSON nested deeper is refused: the specification needs three levels. */
#define	JSON_DEPTH	8

struct json {
	const char	*p;
	const char	*end;
};

enum {
	CAP_MAX_MSG_FDS		= 1 << 0,
	CAP_MAX_DATA_XFER_SIZE	= 1 << 1,
	CAP_MAX_DMA_MAPS	= 1 << 2,
	CAP_PGSIZES		= 1 << 3,
	CAP_WRITE_MULTIPLE	= 1 << 4,
};

/* What a capability looks like on the wire: its value, from us. */
static const struct {
	const char	*name;
	unsigned int	bit;
	unsigned int	number;		/* 0: true */
} caps[] = {
	{ "max_msg_fds", CAP_MAX_MSG_FDS, VFU_FDS_MAX },
	{ "max_data_xfer_size", CAP_MAX_DATA_XFER_SIZE, VFU_XFER_MAX },
	{ "max_dma_maps", CAP_MAX_DMA_MAPS, VFU_DMA_MAX },
	{ "pgsizes", CAP_PGSIZES, VFU_DMA_PAGE },
	{ "write_multiple", CAP_WRITE_MULTIPLE, 0 },
};

static bool	json_value(struct json *j, int depth, unsigned int *offered);

static void
json_space(struct json *j)
{
	while (j->p < j->end && strchr(" \t\r\n", *j->p) != NULL &&
	    *j->p != '\0')
		j->p++;
}

/* Step over `c' with white space around it, if it is next. */
static bool
json_char(struct json *j, char c)
{
	json_space(j);
	if (j->p == j->end || *j->p != c)
		return (false);
	j->p++;
	json_space(j);
	return (true);
}

static bool
json_word(struct json *j, const char *word)
{
	size_t len;

	len = strlen(word);
	if ((size_t)(j->end - j->p) < len || memcmp(j->p, word, len) != 0)
		return (false);
	j->p += len;
	return (true);
}

/* A string; sets *s and *len to what is between the quotes, as it stands. */
static bool
json_string(struct json *j, const char **s, size_t *len)
{
	if (j->p == j->end || *j->p != '"')
		return (false);
	*s = ++j->p;
	while (j->p < j->end && *j->p != '"') {
		if ((unsigned char)*j->p < 0x20)
			return (false);
		if (*j->p == '\\' && ++j->p == j->end)
			return (false);
		j->p++;
	}
	if (j->p == j->end)
		return (false);
	*len = j->p++ - *s;
	return (true);
}

static bool
json_number(struct json *j)
{
	const char *start;

	start = j->p;
	while (j->p < j->end && *j->p != '\0' &&
	    strchr("+-.0123456789eE", *j->p) != NULL)
		j->p++;
	return (j->p > start && j->p[-1] >= '0' && j->p[-1] <= '9');
}

/*
 * One member of the capabilities object: note it if it is one of ours, and
 * of the right type.
 */
static bool
json_capability(struct json *j, int depth, const char *key, size_t len,
    unsigned int *offered)
{
	const char *value;
	unsigned int i;
	bool is_number, is_true;

	value = j->p;
	if (!json_value(j, depth, NULL))
		return (false);
	is_number = (*value >= '0' && *value <= '9') || *value == '-';
	is_true = *value == 't';
	for (i = 0; i < nitems(caps); i++) {
		if (strlen(caps[i].name) != len ||
		    memcmp(caps[i].name, key, len) != 0)
			continue;
		if (caps[i].number != 0) {
			if (!is_number)
				return (false);
			*offered |= caps[i].bit;
		} else if (is_true)
			*offered |= caps[i].bit;
	}
	return (true);
}

/*
 * An object.  Depth 0 is the whole document, whose "capabilities" are looked
 * into when `offered' is given.
 */
static bool
json_object(struct json *j, int depth, unsigned int *offered)
{
	const char *key;
	size_t len;
	bool ok;

	if (!json_char(j, '{'))
		return (false);
	if (json_char(j, '}'))
		return (true);
	do {
		if (!json_string(j, &key, &len) || !json_char(j, ':'))
			return (false);
		if (offered == NULL)
			ok = json_value(j, depth + 1, NULL);
		else if (depth == 1)
			ok = json_capability(j, depth + 1, key, len, offered);
		else if (len == strlen("capabilities") &&
		    memcmp(key, "capabilities", len) == 0)
			ok = json_object(j, depth + 1, offered);
		else
			ok = json_value(j, depth + 1, NULL);
		if (!ok)
			return (false);
	} while (json_char(j, ','));
	return (json_char(j, '}'));
}

static bool
json_array(struct json *j, int depth)
{
	if (!json_char(j, '['))
		return (false);
	if (json_char(j, ']'))
		return (true);
	do {
		if (!json_value(j, depth + 1, NULL))
			return (false);
	} while (json_char(j, ','));
	return (json_char(j, ']'));
}

static bool
json_value(struct json *j, int depth, unsigned int *offered)
{
	const char *s;
	size_t len;

	if (depth > JSON_DEPTH || j->p == j->end)
		return (false);
	switch (*j->p) {
	case '{':
		return (json_object(j, depth, offered));
	case '[':
		return (json_array(j, depth));
	case '"':
		return (json_string(j, &s, &len));
	case 't':
		return (json_word(j, "true"));
	case 'f':
		return (json_word(j, "false"));
	case 'n':
		return (json_word(j, "null"));
	default:
		return (json_number(j));
	}
}

/* The capabilities offered in `len' bytes of JSON, the last of them NUL. */
static bool
version_offered(const uint8_t *data, size_t len, unsigned int *offered)
{
	struct json j;

	*offered = 0;
	if (len == 0)
		return (true);
	if (data[len - 1] != '\0')
		return (false);
	j.p = (const char *)data;
	j.end = j.p + len - 1;
	json_space(&j);
	return (json_object(&j, 0, offered) && j.p == j.end);
}

/* Our values of the capabilities offered, as JSON.  Returns the length. */
static size_t
version_answer(unsigned int offered, char *text, size_t size)
{
	const char *sep;
	unsigned int i;
	size_t n;

	n = snprintf(text, size, "{\"capabilities\":{");
	sep = "";
	for (i = 0; i < nitems(caps); i++) {
		if ((offered & caps[i].bit) == 0)
			continue;
		n += snprintf(text + n, size - n, "%s\"%s\":", sep,
		    caps[i].name);
		if (caps[i].number != 0)
			n += snprintf(text + n, size - n, "%u",
			    caps[i].number);
		else
			n += snprintf(text + n, size - n, "true");
		sep = ",";
	}
	n += snprintf(text + n, size - n, "}}");
	return (n);
}

int
vfu_version(struct vm *vm __unused, struct vfu_request *req)
{
	struct vfio_user_version version;
	unsigned int offered;
	char *text;

	if (req->len < sizeof(version))
		return (EINVAL);
	memcpy(&version, req->data, sizeof(version));
	if (version.major != VFIO_USER_MAJOR)
		return (ENOTSUP);
	if (!version_offered(req->data + sizeof(version),
	    req->len - sizeof(version), &offered))
		return (EINVAL);

	version.minor = VFIO_USER_MINOR;
	memcpy(req->reply, &version, sizeof(version));
	text = (char *)req->reply + sizeof(version);
	/* A fraction of the room there is; the NUL is part of it. */
	req->reply_len = sizeof(version) +
	    version_answer(offered, text, VFU_XFER_MAX) + 1;
	return (0);
}
