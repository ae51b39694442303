/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Linked into valed_failing: a valed in which a chosen call of a function
 * fails, in valed, the model, the backend and libvale; calls inside other
 * libraries are not changed.  fail_calls.c has most of the calls, and says how
 * one is chosen.  At the end of each process "live n" is appended to the log,
 * where n is how many allocations were not freed.
 */

#include <sys/types.h>

#include <errno.h>
#include <jansson.h>
#include <seccomp.h>
#include <stdarg.h>

#include "fail_calls.h"
#include "libvale.h"
#include "wrap.h"

WRAP(void __attribute__((__noreturn__)), _exit, int status)
{
	fail_report("live %jd\n", (intmax_t)fail_allocs());
	__real__exit(status);
}

WRAP(scmp_filter_ctx, seccomp_init, uint32_t action)
{
	return (FAIL_CALL("seccomp_init") ? NULL : __real_seccomp_init(action));
}

WRAP(int, seccomp_attr_set, scmp_filter_ctx ctx, enum scmp_filter_attr attr,
    uint32_t value)
{
	return (FAIL_CALL("seccomp_attr_set") ? -EINVAL :
	    __real_seccomp_attr_set(ctx, attr, value));
}

WRAP(int, seccomp_load, const scmp_filter_ctx ctx)
{
	return (FAIL_CALL("seccomp_load") ? -ENOSYS : __real_seccomp_load(ctx));
}

WRAP(json_t *, json_loadb, const char *buf, size_t len, size_t flags,
    json_error_t *error)
{
	return (FAIL_CALL("json_loadb") ? NULL : __real_json_loadb(buf, len,
	    flags, error));
}

WRAP(json_t *, json_object, void)
{
	return (FAIL_CALL("json_object") ? NULL : __real_json_object());
}

WRAP(json_t *, json_integer, json_int_t n)
{
	return (FAIL_CALL("json_integer") ? NULL : __real_json_integer(n));
}

WRAP(json_t *, json_true, void)
{
	return (FAIL_CALL("json_true") ? NULL : __real_json_true());
}

WRAP(int, json_object_set_new, json_t *object, const char *key, json_t *value)
{
	if (!FAIL_CALL("json_object_set_new"))
		return (__real_json_object_set_new(object, key, value));
	json_decref(value);
	return (-1);
}

WRAP(size_t, json_dumpb, const json_t *json, char *buf, size_t len,
    size_t flags)
{
	return (FAIL_CALL("json_dumpb") ? 0 : __real_json_dumpb(json, buf, len,
	    flags));
}

WRAP(json_t *, json_pack, const char *fmt, ...)
{
	json_t *json;
	va_list ap;

	if (FAIL_CALL("json_pack"))
		return (NULL);
	va_start(ap, fmt);
	json = json_vpack_ex(NULL, 0, fmt, ap);
	va_end(ap);
	return (json);
}

WRAP(int, vale_txsync, struct vale_desc *d)
{
	errno = EIO;
	return (FAIL_CALL("vale_txsync") ? -1 : __real_vale_txsync(d));
}

WRAP(int, vale_rxsync, struct vale_desc *d)
{
	errno = EIO;
	return (FAIL_CALL("vale_rxsync") ? -1 : __real_vale_rxsync(d));
}
