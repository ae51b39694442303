/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * compat/: the configuration tree, options of network devices, and the BSD
 * functions that glibc lacks.
 */

#include <sys/cdefs.h>
#include <sys/param.h>
#include <sys/wait.h>

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <atf-c.h>

#include "config.h"
#include "net_backends.h"
#include "net_utils.h"
#include "pci_emul.h"
#include "test.h"

/* Run f(arg) in a process of its own; returns its exit status. */
static int
exit_of(void (*f)(const char *), const char *arg)
{
	pid_t pid;
	int status;

	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		f(arg);
		_exit(EX_OK);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	return (WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

TEST(tree, "Values by path and by node are equal; a value that is not set is "
    "NULL")
{
	nvlist_t *node, *slot;

	init_config();
	ATF_CHECK_EQ(NULL, find_config_node("pci.0"));
	ATF_CHECK_EQ(NULL, get_config_value("pci.0.mac"));
	slot = create_config_node("pci.0.2.0");
	ATF_CHECK_EQ(slot, create_config_node("pci.0.2.0"));
	ATF_CHECK_EQ(slot, find_config_node("pci.0.2.0"));
	node = find_config_node("pci.0");
	ATF_REQUIRE(node != NULL);
	ATF_CHECK_EQ(slot, create_relative_config_node(node, "2.0"));
	ATF_CHECK_EQ(slot, find_relative_config_node(node, "2.0"));
	ATF_CHECK_EQ(NULL, find_relative_config_node(node, "3.0"));

	set_config_value_node(slot, "mac", "one");
	ATF_CHECK_STREQ("one", get_config_value("pci.0.2.0.mac"));
	set_config_value("pci.0.2.0.mac", "two");
	ATF_CHECK_STREQ("two", get_config_value_node(slot, "mac"));
	set_config_value_node(slot, "mac", get_config_value_node(slot, "mac"));
	ATF_CHECK_STREQ("two", get_config_value_node(slot, "mac"));
	set_config_value("name", "vm");
	ATF_CHECK_STREQ("vm", get_config_value("name"));
	ATF_CHECK_STREQ("vm", get_config_value_node(NULL, "name"));
	ATF_CHECK_EQ(NULL, get_config_value("pci.0.2"));

	init_config();
	ATF_CHECK_EQ(NULL, get_config_value("name"));
	init_config();
}

TEST(bools, "Booleans in each spelling")
{
	static const char * const yes[] = { "true", "TRUE", "on", "yes", "1" };
	static const char * const no[] = { "false", "Off", "no", "0" };
	size_t i;

	init_config();
	for (i = 0; i < nitems(yes); i++) {
		set_config_value("b", yes[i]);
		ATF_CHECK_MSG(get_config_bool("b"), "%s", yes[i]);
		ATF_CHECK(get_config_bool_node_default(NULL, "b", false));
	}
	for (i = 0; i < nitems(no); i++) {
		set_config_value("b", no[i]);
		ATF_CHECK_MSG(!get_config_bool_node(NULL, "b"), "%s", no[i]);
		ATF_CHECK(!get_config_bool_default("b", true));
	}
	ATF_CHECK(get_config_bool_default("unset", true));
	ATF_CHECK(!get_config_bool_node_default(NULL, "unset", false));
	set_config_bool("b", true);
	ATF_CHECK_STREQ("true", get_config_value("b"));
	set_config_bool_node(NULL, "b", false);
	ATF_CHECK_STREQ("false", get_config_value("b"));
}

static void
call_bool(const char *value)
{
	set_config_value("b", value);
	get_config_bool("b");
}

static void
call_unset(const char *name)
{
	get_config_bool(name);
}

static void
call_set_node(const char *name)
{
	set_config_value_node(NULL, name, "1");
}

static void
call_create(const char *path)
{
	create_config_node(path);
}

TEST(malformed, "Malformed configuration exits with EX_USAGE")
{
	init_config();
	set_config_value("node.leaf", "1");
	ATF_CHECK_EQ(EX_OK, exit_of(call_bool, "yes"));
	ATF_CHECK_EQ(EX_USAGE, exit_of(call_bool, "maybe"));
	ATF_CHECK_EQ(EX_USAGE, exit_of(call_bool, ""));
	ATF_CHECK_EQ(EX_USAGE, exit_of(call_unset, "unset"));
	ATF_CHECK_EQ(EX_OK, exit_of(call_set_node, "a"));
	ATF_CHECK_EQ(EX_USAGE, exit_of(call_set_node, "a.b"));
	ATF_CHECK_EQ(EX_USAGE, exit_of(call_set_node, ""));
	ATF_CHECK_EQ(EX_USAGE, exit_of(call_set_node, "node"));
	ATF_CHECK_EQ(EX_USAGE, exit_of(call_create, "node.leaf"));
	ATF_CHECK_EQ(EX_USAGE, exit_of(call_create, "node..x"));
	ATF_CHECK_EQ(EX_USAGE, exit_of(call_create, ""));
}

TEST(option, "-s options become nodes, in order")
{
	static const char * const names[] = { "backend", "mac", "quick" };
	const char *name;
	nvlist_t *nvl;
	void *cookie;
	size_t i;
	int type;

	init_config();
	nvl = create_config_node("pci.0.2.0");
	ATF_CHECK_EQ(0, netbe_legacy_config(nvl, NULL));
	ATF_CHECK(nvlist_empty(nvl));
	ATF_CHECK_EQ(0, netbe_legacy_config(nvl,
	    "vale0:vm1,mac=02:00:00:00:00:01,quick"));
	ATF_CHECK_STREQ("vale0:vm1", get_config_value_node(nvl, "backend"));
	ATF_CHECK_STREQ("02:00:00:00:00:01", get_config_value_node(nvl, "mac"));
	ATF_CHECK(get_config_bool_node(nvl, "quick"));

	cookie = NULL;
	for (i = 0; (name = nvlist_next(nvl, &type, &cookie)) != NULL; i++) {
		ATF_REQUIRE(i < nitems(names));
		ATF_CHECK_STREQ(names[i], name);
		ATF_CHECK_EQ(NV_TYPE_STRING, type);
	}
	ATF_CHECK_EQ(nitems(names), i);

	ATF_CHECK_EQ(0, netbe_legacy_config(nvl, "tap0"));
	ATF_CHECK_STREQ("tap0", get_config_value_node(nvl, "backend"));
	ATF_CHECK_EQ(0, netbe_legacy_config(nvl, "tap1,path=a=b"));
	ATF_CHECK_STREQ("a=b", get_config_value_node(nvl, "path"));
}

TEST(mac, "An Ethernet address is generated for a device")
{
	struct pci_devinst a = { .pi_slot = 1 }, b = { .pi_slot = 2 };
	uint8_t m[6], n[6];

	init_config();
	net_genmac(&a, m);
	net_genmac(&a, n);
	ATF_CHECK_EQ(0, memcmp(m, n, sizeof(m)));
	ATF_CHECK_EQ(0, m[0] & 1);
	net_genmac(&b, n);
	ATF_CHECK(memcmp(m, n, sizeof(m)) != 0);
	set_config_value("name", "vm1");
	net_genmac(&a, n);
	ATF_CHECK(memcmp(m, n, sizeof(m)) != 0);
}

TEST(mtu, "An MTU is a decimal number")
{
	static const char * const bad[] = { "", "-1", "+1", " 1", "1k", "x" };
	unsigned long n;
	size_t i;

	ATF_CHECK_EQ(0, net_parsemtu("1500", &n));
	ATF_CHECK_EQ(1500, n);
	ATF_CHECK_EQ(0, net_parsemtu("0x5dc", &n));
	ATF_CHECK_EQ(1500, n);
	for (i = 0; i < nitems(bad); i++)
		ATF_CHECK_EQ_MSG(EINVAL, net_parsemtu(bad[i], &n), "'%s'",
		    bad[i]);
	ATF_CHECK_EQ(ERANGE, net_parsemtu("99999999999999999999999", &n));
	ATF_CHECK_EQ(1500, n);
}

TEST(strings, "strlcpy, strlcat and strtonum at their bounds")
{
	const char *errstr;
	char buf[5];

	memset(buf, 'z', sizeof(buf));
	ATF_CHECK_EQ(3, strlcpy(buf, "abc", 0));
	ATF_CHECK_EQ('z', buf[0]);
	ATF_CHECK_EQ(3, strlcpy(buf, "abc", 3));
	ATF_CHECK_STREQ("ab", buf);
	ATF_CHECK_EQ('z', buf[3]);
	ATF_CHECK_EQ(4, strlcat(buf, "cd", sizeof(buf)));
	ATF_CHECK_STREQ("abcd", buf);
	ATF_CHECK_EQ(6, strlcat(buf, "ef", sizeof(buf)));
	ATF_CHECK_STREQ("abcd", buf);
	memset(buf, 'z', sizeof(buf));
	ATF_CHECK_EQ(7, strlcat(buf, "ab", sizeof(buf)));

	ATF_CHECK_EQ(7, strtonum("7", 0, 7, &errstr));
	ATF_CHECK_EQ(NULL, errstr);
	ATF_CHECK_EQ(0, strtonum("8", 0, 7, &errstr));
	ATF_CHECK_STREQ("too large", errstr);
	ATF_CHECK_EQ(0, strtonum("-1", 0, 7, &errstr));
	ATF_CHECK_STREQ("too small", errstr);
	ATF_CHECK_EQ(0, strtonum("7x", 0, 7, &errstr));
	ATF_CHECK_STREQ("invalid", errstr);
	ATF_CHECK_EQ(0, strtonum("", 0, 7, &errstr));
	ATF_CHECK_STREQ("invalid", errstr);
	ATF_CHECK_EQ(0, strtonum("0x7", 0, 7, &errstr));
	ATF_CHECK_STREQ("invalid", errstr);
	ATF_CHECK_EQ(0, strtonum("99999999999999999999", LLONG_MIN, LLONG_MAX,
	    &errstr));
	ATF_CHECK_STREQ("too large", errstr);
	ATF_CHECK_EQ(ERANGE, errno);
	ATF_CHECK_EQ(0, strtonum("-99999999999999999999", LLONG_MIN, LLONG_MAX,
	    &errstr));
	ATF_CHECK_STREQ("too small", errstr);
}

TEST_PROGRAM
