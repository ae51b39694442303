/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What valed takes from files of variables and -o: lines of adapters, switches,
 * ports and interfaces, where each was set, and what it says of wrong ones.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <atf-c.h>

#include "fail_calls.h"
#include "test.h"
#include "valed_config.h"
#include "valed_parse.h"

#define	A_NODE	"pci.0.1.0.device=e1000\npci.0.1.0.backend=vale0:a\n"	\
		"pci.0.1.0.path=a.sock\n"

TEST(settings, "Lines of switches and ports are settings, those of interfaces "
    "attach them")
{
	FILE_IS("one", A_NODE
	    "switch.vale0.ageing = 60\n switch.vale0.5.batch=9\n"
	    "switch.vale.reserved=off\n"
	    "port.vale0:a.limit=3\n"
	    "port.vale0:b.c.rate=5Mbit/s,burst=64K\n"
	    "port.vale0:b.c.mirror=vale0:a\n"
	    "port.vale0:e0.native=1\nport.vale0:e0.trunk=all\n"
	    "attach.vale0:e0.5 = xdp\nattach.vale1:e1=packet\n");
	PARSE("-k", "one", "-o", "switch.vale0.ageing=61", "-o",
	    "attach.vale1:e1=xdp", "-a", "vale2:e2", "-o",
	    "port.vale0:a.source=own");
	settings_are("vale0 ageing=61;vale0.5 batch=9;vale reserved=off;"
	    "vale0:a limit=3;vale0:b.c rate=5000000bit/s,burst=65536;"
	    "vale0:b.c mirror=vale0:a;vale0:e0 native=1;vale0:e0 trunk=all;"
	    "vale0:a source=own;");
	ATF_CHECK_EQ(3, opt->vo_nhostifs);
	ATF_CHECK_STREQ("vale2:e2", opt->vo_hostifs[0].hc_port);
	ATF_CHECK_STREQ("-a vale2:e2", opt->vo_hostifs[0].hc_where);
	ATF_CHECK_STREQ("vale0:e0.5", opt->vo_hostifs[1].hc_port);
	ATF_CHECK_STREQ("one:12", opt->vo_hostifs[1].hc_where);
	ATF_CHECK_EQ(HOSTIF_XDP, opt->vo_hostifs[1].hc_kind);
	ATF_CHECK_STREQ("-o attach.vale1:e1=xdp", opt->vo_hostifs[2].hc_where);
	ATF_CHECK_EQ(HOSTIF_XDP, opt->vo_hostifs[2].hc_kind);
	/* Of the settings of the adapter's port, each is said once. */
	PARSE("-k", "one", "-o", "pci.0.1.0.rate=1Mbit/s");
	ATF_CHECK_EQ(9, opt->vo_settings.vss_n);
}

TEST(settings_wrong, "A wrong line of a switch, port or interface is named")
{
	static const struct {
		const char *line, *why;
	} all[] = {
		{ "switch.vale0.ageing", "not name=value" },
		{ "switch.vale0.ageing=", "switch.vale0.ageing=: the value is "
		    "missing" },
		{ "switch.vale0.ageing=x", "ageing=x: the value is not a "
		    "number" },
		{ "switch.vale0.ageing=1000001", "ageing=1000001: the ageing "
		    "time must be 0 to 1000000 seconds" },
		{ "switch.vale0.limit=1", "unknown variable "
		    "\"switch.vale0.limit\"" },
		{ "switch.vale0=1", "unknown variable \"switch.vale0\"" },
		{ "switch.ageing=1", "unknown variable \"switch.ageing\"" },
		{ "switch..ageing=1", ": " },
		{ "switch.eth0.ageing=1", "eth0: " },
		{ "switch.vale0:a.ageing=1", "vale0:a: not the name of a "
		    "switch" },
		{ "switch.vale0/x.ageing=1", "vale0/x: " },
		{ "port.vale0.limit=1", "vale0: " },
		{ "port.vale0:.limit=1", "vale0:: " },
		{ "port.vale0:a.ageing=1", "unknown variable "
		    "\"port.vale0:a.ageing\"" },
		{ "port.vale0:a.private=yes", "private=yes: not on or off" },
		{ "port.vale0:a.limit=5121", "limit=5121: the limit must be 0 "
		    "to 5120 addresses" },
		{ "port.vale0:a.rate=1g", "rate=1g: not a number up to 1000G" },
		{ "port.vale0:a.ip=192.0.2", "ip=192.0.2: ip is a list" },
		{ "port.vale0:b.mirror=vale0:b", "mirror=vale0:b: a port can "
		    "mirror another port" },
		{ "port.vale0:b.mirror=vale1:a", "mirror=vale1:a: a port can "
		    "mirror another port" },
		{ "port.vale0:b.mirror=vale0", "mirror=vale0: a port can "
		    "mirror" },
		{ "port.vale0:b.source=own", "source=own: vale0:b is not the "
		    "port of an adapter" },
		{ "port.vale0:b.native=5", "native=5: without trunk=" },
		{ "port.vale0:a.weight=2", "weight= of the adapter with this "
		    "port: see w:4" },
		{ "port.vale0:c.limit=2", "port.vale0:c.limit= twice: see "
		    "w:5" },
		{ "port.vale0:d.trunk=1", "both vlan= and trunk=" },
		{ "pci.0.1.0.trunk=1", "both vlan= and trunk=" },
		{ "pci.0.1.0.native=1", "native=1: without trunk=" },
		{ "pci.0.1.0.vlan=4095", "vlan=4095: the VLAN must be 0 to "
		    "4094" },
		{ "attach.vale0:e0=", "attach.vale0:e0=: the value is "
		    "missing" },
		{ "attach.vale0:e0=tap", "kind=tap: no such kind" },
		{ "attach.vale0=packet", "vale0: " },
		{ "attach.vale0:e123456789012345=packet",
		    "e123456789012345: not an interface's name" },
		{ "attach.vale0:a=packet", "port used twice" },
		{ "attach.vale9:e9=packet", "interface used twice" },
		{ "ports.vale0:a.limit=1", "unknown variable "
		    "\"ports.vale0:a.limit\"" },
	};
	char line[512], text[1024];
	unsigned int i;
	int status;

	for (i = 0; i < nitems(all); i++) {
		snprintf(text, sizeof(text), A_NODE "pci.0.1.0.weight=3\n"
		    "port.vale0:c.limit=1\nport.vale0:d.vlan=2\n"
		    "port.vale0:a.vlan=9\nattach.vale8:e9=packet\n%s\n",
		    all[i].line);
		file("w", text, strlen(text));
		status = status_of((char *[]){ __DECONST(char *, "-k"),
		    __DECONST(char *, "w"), NULL });
		snprintf(line, sizeof(line), "w:9: %s", all[i].why);
		ATF_CHECK_MSG(strncmp(why.wy_text, line, strlen(line)) == 0,
		    "%s: %s", all[i].line, why.wy_text);
		ATF_CHECK_EQ(EX_CONFIG, status);
	}
	/* The longest name, and one more. */
	snprintf(text, sizeof(text), "port.vale0:%057d.limit=1\n"
	    "switch.vale%057d.ageing=1\n", 0, 0);
	file("w", text, strlen(text));
	PARSE("-k", "w");
	ATF_CHECK_EQ(2, opt->vo_settings.vss_n);
	snprintf(text, sizeof(text), "port.vale0:%058d.limit=1\n",
	    0);
	file("w", text, strlen(text));
	status = status_of((char *[]){ __DECONST(char *, "-k"),
	    __DECONST(char *, "w"), NULL });
	ATF_CHECK_EQ(EX_CONFIG, status);
	snprintf(text, sizeof(text), "switch.vale%0300d.ageing=1\n",
	    0);
	file("w", text, strlen(text));
	status = status_of((char *[]){ __DECONST(char *, "-k"),
	    __DECONST(char *, "w"), NULL });
	ATF_CHECK_EQ(EX_CONFIG, status);
}

#define	NODE(place, name)						\
	"pci." place ".device=e1000\npci." place ".backend=vale0:" name "\n" \
	"pci." place ".path=" name ".sock\n"

#define	NO_MEMORY	"Cannot allocate memory"

/* Let each call fail that it takes to read these arguments. */
static void
each_fails(char *const *args)
{
	const char *name;
	int64_t before;
	uint32_t n = 0;
	int status;

	if (ac != NULL)
		valed_options_free(opt);
	ac = NULL;
	valed_config_begin(&why);
	before = fail_allocs();
	do {
		fail_calls(NULL, ++n, 1);
		status = status_of(args);
		fail_calls_end();
		name = fail_calls_name();
		ATF_CHECK_EQ_MSG(name == NULL, status == -1,
		    "%s, call %u: %d", name, n, status);
		if (name != NULL && strcmp(name, "open") != 0 &&
		    strcmp(name, "fstat") != 0) {
			ATF_CHECK_EQ_MSG(EX_OSERR, status, "%s, call %u: %d",
			    name, n, status);
			ATF_CHECK_MSG(strstr(why.wy_text, NO_MEMORY) != NULL,
			    "%s, call %u: %s", name, n, why.wy_text);
		}
		if (name == NULL)
			valed_options_free(opt);
		ac = NULL;
		valed_config_begin(&why);
		ATF_CHECK_EQ_MSG(before, fail_allocs(), "%s, call %u: %jd",
		    name, n, (intmax_t)(fail_allocs() - before));
	} while (name != NULL);
	ATF_CHECK(n > 2);
}

TEST(no_memory, "Each call that fails is an error of the system, and what was "
    "read is freed")
{
	FILE_IS("one", NODE("0.1.0", "a") "switch.vale0.ageing=60\n"
	    "port.vale0:b.limit=3\nattach.vale0:e0=xdp\n");
	each_fails((char *[]){ OK, NULL });
	each_fails((char *[]){ "-a", __DECONST(char *, "vale0:e"), NULL });
	each_fails((char *[]){ "-k", "one", "-o", "pci.0.1.0.mtu=68", NULL });
}

TEST(files, "Variables of files and -o: what is set last counts, and each "
    "knows where it was set")
{
	const struct valed_node *a, *b;

	FILE_IS("one", "\n  # x\n\t\n" NODE("0.1.0", "a")
	    "pci.255.31.7.path=b.sock  \r\n \f pci.255.31.7.device=e1000");
	FILE_IS("two", "pci.0.1.0.path=z\npci.255.31.7.backend=vale0:b");
	PARSE("-k", "one", "-k", "two", "-o", "pci.0.1.0.mtu=1500",
	    "-o", "pci.0.1.0.itr=1", "-o", "pci.0.1.0.itr=2");
	ATF_CHECK_EQ(2, opt->vo_nadapters);
	ATF_CHECK_STREQ("z", ac[0].ac_path);
	ATF_CHECK_EQ(1500, ac[0].ac_mtu);
	ATF_CHECK_EQ(2, ac[0].ac_itr_256ns);
	ATF_CHECK_EQ(255, ac[1].ac_bus);
	ATF_CHECK_EQ(31, ac[1].ac_slot);
	ATF_CHECK_EQ(7, ac[1].ac_func);
	ATF_CHECK_STREQ("b.sock", ac[1].ac_path);
	ATF_CHECK_STREQ("vale0:b", ac[1].ac_backend);
	default_mac(0xd9, 0xf3, 0x69);
	a = valed_config_next(NULL);
	ATF_REQUIRE(a != NULL);
	b = valed_config_next(a);
	ATF_REQUIRE(b != NULL);
	ATF_CHECK(valed_config_next(b) == NULL);
	ATF_CHECK_EQ(1, a->nd_slot);
	ATF_CHECK_EQ(31, b->nd_slot);
	ATF_CHECK_STREQ("one:4", valed_config_where(a, VALED_V_DEVICE).wh_text);
	ATF_CHECK_STREQ("two:1", valed_config_where(a, VALED_V_PATH).wh_text);
	ATF_CHECK_STREQ("-o pci.0.1.0.mtu=1500",
	    valed_config_where(a, VALED_V_MTU).wh_text);
	ATF_CHECK_STREQ("-o pci.0.1.0.itr=2",
	    valed_config_where(a, VALED_V_ITR).wh_text);
	/* Of a variable that is not set, the first of the node. */
	ATF_CHECK_STREQ("one:4", valed_config_where(a, VALED_V_MAC).wh_text);
	ATF_CHECK_STREQ("one:7", valed_config_where(b, VALED_V_MAC).wh_text);
	ATF_CHECK_STREQ("one:8", valed_config_where(b, VALED_V_DEVICE).wh_text);
	ATF_CHECK(valed_config_find(0, 2, 0) == NULL);
	ATF_CHECK_EQ(a, valed_config_find(0, 1, 0));
	/* Once more, from the beginning, with nothing left of the first. */
	valed_config_begin(&why);
	PARSE("-k", "one", "-o", "pci.255.31.7.backend=vale0:c");
	ATF_CHECK_STREQ("a.sock", ac[0].ac_path);
	ATF_CHECK_EQ(0, ac[0].ac_mtu);
	ATF_CHECK_STREQ("-o pci.255.31.7.backend=vale0:c",
	    valed_config_where(valed_config_find(255, 31, 7),
	    VALED_V_BACKEND).wh_text);
	ATF_CHECK_STREQ("one:6", valed_config_where(
	    valed_config_find(0, 1, 0), VALED_V_PATH).wh_text);
	ATF_CHECK_EQ(-1, valed_variable("pat", 3));
	ATF_CHECK_EQ(0, valed_variable("path=", 4));
	ATF_CHECK_EQ(VALED_V_DEVICE, valed_variable("device", 6));
}

TEST(first_place, "Places start with 0:0:0, and differ by their function")
{
	FILE_IS("f", NODE("0.0.0", "a") NODE("0.0.1", "b"));
	PARSE("-k", "f");
	ATF_CHECK_EQ(2, opt->vo_nadapters);
	ATF_CHECK_EQ(0, ac[0].ac_slot);
	ATF_CHECK_EQ(0, ac[0].ac_func);
	ATF_CHECK_STREQ("a", ac[0].ac_name);
	ATF_CHECK_EQ(0, ac[1].ac_slot);
	ATF_CHECK_EQ(1, ac[1].ac_func);
	ATF_CHECK_STREQ("b", ac[1].ac_name);
	/* The same, of those that another parse leaves. */
	valed_config_begin(&why);
	PARSE("-k", "f");
	ATF_CHECK_EQ(2, opt->vo_nadapters);
	ATF_CHECK_STREQ("b", ac[1].ac_name);
}

/* What is wrong with the last line of a file, which is its fourth one. */
static const struct {
	const char *line, *why;
} lines[] = {
	{ "x", "not name=value" },
	{ "=", "unknown variable \"\"" },
	/* Blanks before its name are not of the name. */
	{ "\t = x", "unknown variable \"\"" },
	{ "pci", "not name=value" },
	{ "pci.0.1.0.x=1", "unknown variable \"pci.0.1.0.x\"" },
	{ "pcx.0.1.0.mtu=1500", "unknown variable \"pcx.0.1.0.mtu\"" },
	{ "pci.256.1.0.mtu=1500", "unknown variable \"pci.256.1.0.mtu\"" },
	{ "pci.0.32.0.mtu=1500", "unknown variable \"pci.0.32.0.mtu\"" },
	{ "pci.0.1.8.mtu=1500", "unknown variable \"pci.0.1.8.mtu\"" },
	{ "pci.0.1.10.mtu=1500", "unknown variable \"pci.0.1.10.mtu\"" },
	{ "pci.00.1.0.mtu=1500", "unknown variable \"pci.00.1.0.mtu\"" },
	{ "pci.0.01.0.mtu=1500", "unknown variable \"pci.0.01.0.mtu\"" },
	{ "pci..1.0.mtu=1500", "unknown variable \"pci..1.0.mtu\"" },
	{ "pci.0.1.0mtu=1500", "unknown variable \"pci.0.1.0mtu\"" },
	{ "pci.0.1.0.0.mtu=1500", "unknown variable \"pci.0.1.0.0.mtu\"" },
	{ "pci.0.4294967297.0.mtu=1500",
	    "unknown variable \"pci.0.4294967297.0.mtu\"" },
	{ "pci.0.1.0.mtu=", "mtu=: the value is missing" },
	{ "pci.0.1.0.path=b", "path= twice: see f:3" },
	{ "pci.0.1.0.mtu=67", "mtu=67: not a number from 68 to 16110" },
	{ "pci.0.1.0.csb=1", "csb=1: not \"on\", \"compat\" or \"off\"" },
	{ "pci.0.2.0.mtu=68", "pci.0.2.0.device is missing" },
	{ "pci.9.8.7.device=e1000", "pci.9.8.7.backend is missing" },
	{ "pci.9.8.7.device=x", "unknown device \"x\": not e1000 or "
	    "e1000e" },
};

TEST(lines, "What is wrong with a line is said, and which it is")
{
	char longer[300], text[1024], line[1024];
	unsigned int i;
	int n;

	for (i = 0; i < nitems(lines); i++) {
		n = snprintf(text, sizeof(text), NODE("0.1.0", "a") "%s\n",
		    lines[i].line);
		file("f", text, n);
		snprintf(line, sizeof(line), "f:4: %s", lines[i].why);
		REFUSED(EX_CONFIG, line, "-k", "f");
		/* The same as an option. */
		file("f", NODE("0.1.0", "a"), strlen(NODE("0.1.0", "a")));
		snprintf(line, sizeof(line), "-o %s: %s", lines[i].line,
		    lines[i].why);
		if (strstr(lines[i].why, "twice") == NULL)
			REFUSED(EX_USAGE, line, "-k", "f", "-o",
			    __DECONST(char *, lines[i].line));
	}
	/* Names are cut to 128 characters, where they were set to 159. */
	memset(longer, 'x', sizeof(longer));
	longer[250] = '=';
	longer[299] = '\0';
	snprintf(line, sizeof(line), "-o %.156s: unknown variable \"%.128s\"",
	    longer, longer);
	REFUSED(EX_USAGE, line, "-o", longer);
	FILE_IS("f", "pci.0.1.0.mtu=9\0000\n");
	REFUSED(EX_CONFIG, "f:1: not text", "-k", "f");
	FILE_IS("f", NODE("0.1.0", "a"));
	REFUSED(EX_CONFIG, "f:2: vale0:a: port used twice", "-k", "f", "-s",
	    "2,e1000,vale0:a,path=x");
	REFUSED(EX_CONFIG, "f:3: path=a.sock: used twice", "-k", "f", "-s",
	    "2,e1000,vale0:x,path=a.sock");
	REFUSED(EX_USAGE, "-o pci.0.1.0.mac=02:00:00:00:00:01: "
	    "mac=02:00:00:00:00:01: used twice", "-k", "f", "-s",
	    "2,e1000,vale0:x,path=x,mac=02:00:00:00:00:01", "-o",
	    "pci.0.1.0.mac=02:00:00:00:00:01");
	REFUSED(EX_USAGE, "-o pci.0.2.0.mtu=68: slot 0:2:0 is that of an "
	    "option -s", "-s", "2,e1000,vale0:x,path=x", "-o",
	    "pci.0.2.0.mtu=68");
}

TEST(many, "There are 256 nodes at most")
{
	static char text[32768];
	size_t n = 0;
	unsigned int i;

	for (i = 0; i < VALED_MAXADAPTERS; i++)
		n += snprintf(text + n, sizeof(text) - n, "pci.%u.1.7."
		    "device=e1000\npci.%u.1.7.backend=vale%u:p%u\n"
		    "pci.%u.1.7.path=%u\n", i, i, i / 128, i, i, i);
	file("f", text, n);
	PARSE("-k", "f");
	ATF_CHECK_EQ(VALED_MAXADAPTERS, opt->vo_nadapters);
	ATF_CHECK_EQ(255, ac[255].ac_bus);
	n = 0;
	for (i = 0; i <= VALED_MAXADAPTERS; i++)
		n += snprintf(text + n, sizeof(text) - n,
		    "pci.%u.%u.0.device=e1000\n", i % 256, 1 + i / 256);
	file("f", text, n);
	REFUSED(EX_CONFIG, "f:257: more than 256 adapters", "-k", "f");
	valed_config_begin(&why);
	ATF_CHECK(valed_config_next(NULL) == NULL);
}

TEST_PROGRAM
