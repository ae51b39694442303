/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What valed takes from its options -s, -a and -c, value by value, up to the
 * greatest and the longest; and what it says of the next one.
 */

#include <sys/param.h>

#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_config.h"
#include "e82545.h"
#include "libvale.h"
#include "test.h"
#include "valed_config.h"
#include "valed_control.h"
#include "valed_parse.h"

static uint64_t
host_memory(void)
{
	return ((uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

TEST(defaults, "What is not given has its default")
{
	PARSE("-s", "1,e1000,vale0:a,path=a.sock");
	ATF_CHECK_EQ(1, opt->vo_nadapters);
	ATF_CHECK_STREQ("-s 1,e1000,vale0:a,path=a.sock", ac->ac_where);
	ATF_CHECK_EQ(0, opt->vo_nhostifs);
	ATF_CHECK(opt->vo_control == NULL);
	ATF_CHECK(!opt->vo_verbose);
	ATF_CHECK_EQ(0, ac->ac_bus);
	ATF_CHECK_EQ(1, ac->ac_slot);
	ATF_CHECK_EQ(0, ac->ac_func);
	ATF_CHECK_STREQ("vale0:a", ac->ac_backend);
	ATF_CHECK_STREQ("a", ac->ac_name);
	ATF_CHECK_STREQ("a.sock", ac->ac_path);
	ATF_CHECK_EQ(-1, ac->ac_fd);
	ATF_CHECK_EQ(-1, ac->ac_listen);
	ATF_CHECK_EQ(0, ac->ac_mtu);
	ATF_CHECK_EQ(0, ac->ac_itr_256ns + ac->ac_itr_min_256ns);
	ATF_CHECK_EQ(0, ac->ac_poll_us);
	ATF_CHECK(ac->ac_csb && ac->ac_direct && ac->ac_announce);
	ATF_CHECK_EQ(host_memory(), ac->ac_mem);
	settings_are("");
	default_mac(0xd9, 0xf3, 0x69);
	PARSE("-v", "-s", "5:6:7,e1000,tap3,path=a.sock");
	ATF_CHECK(opt->vo_verbose);
	ATF_CHECK_STREQ("tap3", ac->ac_name);
	default_mac(0xfc, 0x14, 0x96);
	file("machine-id", "0123456789abcdef0123456789abcdef\n", 33);
	PARSE("-s", "5:6:7,e1000,tap3,path=a.sock");
	default_mac(0x38, 0x29, 0x3a);
}

TEST(devices, "An adapter is an 82545EM or an 82574L")
{
	PARSE("-s", "1,e1000,vale0:a,path=a.sock");
	ATF_CHECK_EQ(ADAPTER_E1000, ac->ac_device);
	PARSE("-s", "1,e1000e,vale0:a,path=a.sock");
	ATF_CHECK_EQ(ADAPTER_E1000E, ac->ac_device);
	ATF_CHECK(ac->ac_csb && ac->ac_direct);
	PARSE("-s", "1,e1000e,vale0:a,path=a.sock,csb=off");
	ATF_CHECK_EQ(E82545_CSB_OFF, ac->ac_csb);
	PARSE("-s", "1,e1000e,vale0:a,path=a.sock,csb=compat");
	ATF_CHECK_EQ(E82545_CSB_COMPAT, ac->ac_csb);
}

TEST(values, "Each value is the adapter's, from the smallest to the greatest")
{
	static const uint8_t mac[6] = { 0x02, 0x0a, 0xbc, 0xde, 0xf0, 0x01 };

	PARSE("-s", "1,e1000,vale0:a,path=a.sock,mac=02:0a:bC:De:f0:01,mtu=68,"
	    "itr=65535,itr_min=0,csb=off,direct=off,announce=off,poll=0,"
	    "mem=1M,"
	    "rate=300Mbit/s,"
	    "burst=64K,limit=5120,private=on,weight=100");
	ATF_CHECK_EQ(0, memcmp(mac, ac->ac_mac, 6));
	ATF_CHECK_EQ(E82545_MTU_MIN, ac->ac_mtu);
	ATF_CHECK_EQ(E82545_ITR_MAX, ac->ac_itr_256ns);
	ATF_CHECK_EQ(0, ac->ac_itr_min_256ns);
	ATF_CHECK(!ac->ac_csb && !ac->ac_direct && !ac->ac_announce);
	ATF_CHECK_EQ(1 << 20, ac->ac_mem);
	settings_are("vale0:a limit=5120;vale0:a private=on;"
	    "vale0:a rate=300000000bit/s,burst=65536;vale0:a weight=100;");
	PARSE("-s", "1,e1000,vale0:a,path=a.sock,mac=fe:ff:ff:ff:ff:ff,"
	    "mtu=16110,itr=0,itr_min=65535,csb=on,direct=on,announce=on,"
	    "poll=1000,mem=1T,limit=0,"
	    "private=off,weight=1");
	ATF_CHECK_EQ(0xfe, ac->ac_mac[0]);
	ATF_CHECK_EQ(E82545_MTU_MAX, ac->ac_mtu);
	ATF_CHECK_EQ(0, ac->ac_itr_256ns);
	ATF_CHECK_EQ(E82545_ITR_MAX, ac->ac_itr_min_256ns);
	ATF_CHECK(ac->ac_csb && ac->ac_direct && ac->ac_announce);
	ATF_CHECK_EQ(UINT64_C(1) << 40, ac->ac_mem);
	ATF_CHECK_EQ(VALED_POLL_MAX, ac->ac_poll_us);
	settings_are("vale0:a limit=0;vale0:a private=off;vale0:a weight=1;");
}

TEST(lists, "A list of -s ends before the next name; VLANs and guards "
    "are settings of the port")
{
	static char text[2048];
	unsigned int i;

	PARSE("-s", "1,e1000,vale0:a,path=a.sock,trunk=10,20-30,40,native=5,"
	    "source=own,ip=192.0.2.1,2001:db8::/64", "-s",
	    "2,e1000,vale0:b,ip=10.0.0.1,mirror=vale0:a/t,"
	    "source=02:00:00:00:00:01,02:00:00:00:00:02,path=b.sock,vlan=4094");
	settings_are("vale0:a ip=192.0.2.1,2001:db8::/64;vale0:a source=own;"
	    "vale0:a trunk=10,20-30,40;vale0:a native=5;"
	    "vale0:b ip=10.0.0.1;vale0:b mirror=vale0:a/t;"
	    "vale0:b source=02:00:00:00:00:01,02:00:00:00:00:02;"
	    "vale0:b vlan=4094;");
	REFUSED(EX_USAGE, "-s 1,e1000,vale0:a,path=a,b: unknown option \"b\"",
	    "-s", "1,e1000,vale0:a,path=a,b");
	REFUSED(EX_USAGE, "-s 1,e1000,vale0:a,path=a,trunk=1,: unknown option "
	    "\"\"", "-s", "1,e1000,vale0:a,path=a,trunk=1,");
	REFUSED(EX_USAGE, "-s 1,e1000,vale0:a,path=a,trunk=1,x: trunk=1,x: "
	    "trunk is a list of VLANs and ranges from 1 to 4094, all or no",
	    "-s", "1,e1000,vale0:a,path=a,trunk=1,x");
	/* A list may be longer than a path. */
	strlcpy(text, "1,e1000,vale0:a,path=a,trunk=1", sizeof(text));
	for (i = 0; i < 250; i++)
		strlcat(text, ",1", sizeof(text));
	PARSE("-s", text);
	ATF_CHECK_EQ(1, opt->vo_settings.vss_n);
	strlcat(text, ",100000", sizeof(text));
	strlcat(text, ",100000", sizeof(text));
	ATF_CHECK_EQ(EX_USAGE, status_of((char *[]){ __DECONST(char *, "-s"),
	    text, NULL }));
	ATF_CHECK_MSG(strstr(why.wy_text, "longer than 511 bytes") != NULL,
	    "%s", why.wy_text);
}

TEST(places, "A place is [bus:]slot[:function]")
{
	static const struct {
		char *text;
		int bus, slot, func;	/* -1: it is none */
	} rows[] = {
		{ "0", 0, 0, 0 },
		{ "31", 0, 31, 0 },
		{ "31:7", 0, 31, 7 },
		{ "4:5:6", 4, 5, 6 },
		{ "255:31:7", 255, 31, 7 },
		{ "0:0:0", 0, 0, 0 },
		{ "012:003", 0, 12, 3 },
		{ "32", -1, 0, 0 }, { "255", -1, 0, 0 }, { "256", -1, 0, 0 },
		{ "31:8", -1, 0, 0 }, { "32:7", -1, 0, 0 },
		{ "1:32:7", -1, 0, 0 }, { "1:31:8", -1, 0, 0 },
		{ "256:31:7", -1, 0, 0 }, { "1:2:3:4", -1, 0, 0 },
		{ "1:2:3:", -1, 0, 0 }, { "1:2:", -1, 0, 0 },
		{ "1:", -1, 0, 0 }, { ":1", -1, 0, 0 }, { "1::2", -1, 0, 0 },
		{ "", -1, 0, 0 }, { "x", -1, 0, 0 }, { "1x", -1, 0, 0 },
		{ "1:x", -1, 0, 0 }, { "1:2x", -1, 0, 0 },
		{ "1:2:3x", -1, 0, 0 }, { " 1", -1, 0, 0 },
		{ "4294967297", -1, 0, 0 },
	};
	char line[256], text[128];
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		snprintf(text, sizeof(text), "%s,e1000,vale0:a,path=a",
		    rows[i].text);
		if (rows[i].bus == -1) {
			snprintf(line, sizeof(line), "-s %s: slot \"%s\" is "
			    "not [bus:]slot[:function] with slot 0 to 31, "
			    "function 0 to 7", text, rows[i].text);
			REFUSED(EX_USAGE, line, "-s", text);
			continue;
		}
		PARSE("-s", text);
		ATF_CHECK_EQ_MSG(rows[i].bus, ac->ac_bus, "%s", text);
		ATF_CHECK_EQ_MSG(rows[i].slot, ac->ac_slot, "%s", text);
		ATF_CHECK_EQ_MSG(rows[i].func, ac->ac_func, "%s", text);
	}
}

TEST(addresses, "A unicast Ethernet address, and nothing behind it")
{
	static char *const wrong[] = {
		"00:00:00:00:00:00", "01:00:00:00:00:00", "ff:ff:ff:ff:ff:ff",
		"03:00:00:00:00:01", "02:00:00:00:00:1", "02:00:00:00:00:001",
		"02:00:00:00:00:01:", "02-00-00-00-00-01", "2:00:00:00:00:001",
		"0g:00:00:00:00:01", "g0:00:00:00:00:01", "02:00:00:00:00:0x",
		"02:00:00:00:00:x0", "02:00:00:00:00", "02", "020000000001",
		"0x:00:00:00:00:01", "+2:00:00:00:00:01",
	};
	char line[256], text[128];
	unsigned int i;

	for (i = 0; i < nitems(wrong); i++) {
		snprintf(text, sizeof(text), "1,e1000,vale0:a,path=a,mac=%s",
		    wrong[i]);
		snprintf(line, sizeof(line), "-s %s: mac=%s: not %s", text,
		    wrong[i], i < 4 ? "a unicast Ethernet address" :
		    "six pairs of hexadecimal digits with colons between");
		REFUSED(EX_USAGE, line, "-s", text);
	}
	PARSE("-s", "1,e1000,vale0:a,path=a,mac=00:00:00:00:00:01");
	ATF_CHECK_EQ(1, ac->ac_mac[5]);
	PARSE("-s", "1,e1000,vale0:a,path=a,mac=02:00:00:00:00:00");
	ATF_CHECK_EQ(2, ac->ac_mac[0]);
	PARSE("-s", "1,e1000,vale0:a,path=a,mac=00:00:10:00:00:00");
	ATF_CHECK_EQ(16, ac->ac_mac[2]);
}

#define	BACKENDS							\
	": a port of a switch (valeSWITCH:PORT) or a TAP (tapN)"

/* What is wrong with one -s option. */
static const struct {
	const char *text, *why;
} slots[] = {
	{ "1", "the device is missing" },
	{ "1,", "the device is missing" },
	{ "1,,vale0:a", "the device is missing" },
	{ "1,e100", "unknown device \"e100\": not e1000 or e1000e" },
	{ "1,e1000f,vale0:a",
	    "unknown device \"e1000f\": not e1000 or e1000e" },
	{ "1,e1000e", "the port's name is missing" },
	{ "1,f1000,vale0:a", "unknown device \"f1000\": not e1000 or e1000e" },
	{ "1,e1000", "the port's name is missing" },
	{ "1,e1000,", "the port's name is missing" },
	{ "1,e1000,path=a", "the port's name is missing" },
	{ "1,e1000,val0:a,path=a", "val0:a: no such backend" BACKENDS },
	{ "1,e1000,ta0,path=a", "ta0: no such backend" BACKENDS },
	{ "1,e1000,tap/,path=a", "tap/: not an interface's name" },
	{ "1,e1000,tap 1,path=a", "tap 1: not an interface's name" },
	{ "1,e1000,tap0123456789012,path=a",
	    "tap0123456789012: not an interface's name" },
	{ "1,e1000,vale0:a,", "unknown option \"\"" },
	{ "1,e1000,vale0:a,device=e1000", "unknown option \"device=e1000\"" },
	{ "1,e1000,vale0:a,pat=a", "unknown option \"pat=a\"" },
	{ "1,e1000,vale0:a,paths=a,itr=1", "unknown option \"paths=a\"" },
	{ "1,e1000,vale0:a,path=a,itr", "itr=: the value is missing" },
	{ "1,e1000,vale0:a,path=a,itr,csb=on", "itr=: the value is missing" },
	{ "1,e1000,vale0:a,path=,itr=1", "path=: the value is missing" },
	{ "1,e1000,vale0:a,path=a,weight=",
	    "weight=: the value is missing" },
	{ "1,e1000,vale0:a,path=a,csb=on,path=b", "path= twice" },
	{ "1,e1000,vale0:a,itr=1", "path= is missing" },
	{ "1,e1000,vale0:a,path=a,itr=65536",
	    "itr=65536: not a number from 0 to 65535" },
	{ "1,e1000,vale0:a,path=a,itr=+1",
	    "itr=+1: not a number from 0 to 65535" },
	{ "1,e1000,vale0:a,path=a,itr_min=65536",
	    "itr_min=65536: not a number from 0 to 65535" },
	{ "1,e1000,vale0:a,path=a,poll=1001",
	    "poll=1001: not a number from 0 to 1000" },
	{ "1,e1000,vale0:a,path=a,mtu=67",
	    "mtu=67: not a number from 68 to 16110" },
	{ "1,e1000,vale0:a,path=a,mtu=16111",
	    "mtu=16111: not a number from 68 to 16110" },
	{ "1,e1000,vale0:a,path=a,limit=5121",
	    "limit=5121: the limit must be 0 to 5120 addresses" },
	{ "1,e1000,vale0:a,path=a,weight=0",
	    "weight=0: the weight must be 1 to 100" },
	{ "1,e1000,vale0:a,path=a,weight=101",
	    "weight=101: the weight must be 1 to 100" },
	{ "1,e1000,vale0:a,path=a,csb=", "csb=: the value is missing" },
	{ "1,e1000,vale0:a,path=a,csb=onn",
	    "csb=onn: not \"on\", \"compat\" or \"off\"" },
	{ "1,e1000,vale0:a,path=a,private=O",
	    "private=O: not on or off" },
	{ "1,e1000,vale0:a,path=a,mem=1",
	    "mem=1: not a size from 1M to 1T, with M, G or T" },
	{ "1,e1000,vale0:a,path=a,burst=1", "unknown option \"burst=1\": see "
	    "rate=limit,burst=size" },
	{ "1,e1000,vale0:a,path=a,rate=1bit",
	    "rate=1bit: not a number up to 1000G, with or without K, M or G, "
	    "and bit/s, Byte/s or pkt/s" },
	{ "1,e1000,vale0:a,path=a,rate=1bit/s,burst=x",
	    "rate=1bit/s,burst=x: not burst= and a number from 1 to 512M, "
	    "with or without K or M" },
	{ "1,e1000,vale0:a,path=a,rate=1bit/s,x=1",
	    "unknown option \"x=1\"" },
	{ "1,e1000,vale0:a,path=a,limit=1,burst=1",
	    "unknown option \"burst=1\": see rate=limit,burst=size" },
	{ "1,e1000,tap0,path=a,rate=1bit/s",
	    "rate=1bit/s: tap0 is not a port of a switch" },
	{ "1,e1000,tap0,path=a,limit=0",
	    "limit=0: tap0 is not a port of a switch" },
	{ "1,e1000,tap0,path=a,private=off",
	    "private=off: tap0 is not a port of a switch" },
	{ "1,e1000,tap0,path=a,weight=1",
	    "weight=1: tap0 is not a port of a switch" },
};

TEST(slots, "What is wrong with -s is said, and no more")
{
	char line[512];
	unsigned int i;

	for (i = 0; i < nitems(slots); i++) {
		snprintf(line, sizeof(line), "-s %s: %s", slots[i].text,
		    slots[i].why);
		REFUSED(EX_USAGE, line, "-s",
		    __DECONST(char *, slots[i].text));
	}
	/* libvale says what is wrong with a port's name. */
	ATF_REQUIRE(vale_name_error("vale0:a/b") != NULL);
	snprintf(line, sizeof(line), "-s 1,e1000,vale0:a/b,path=x: vale0:a/b: "
	    "%s", vale_name_error("vale0:a/b"));
	REFUSED(EX_USAGE, line, "-s", "1,e1000,vale0:a/b,path=x");
	snprintf(line, sizeof(line), "-a vale0:a/b: vale0:a/b: %s",
	    vale_name_error("vale0:a/b"));
	REFUSED(EX_USAGE, line, "-a", "vale0:a/b");
	/* The longest name of an interface, with all it may have. */
	PARSE("-s", "1,e1000,tap_-.zZ0189,path=a");
	ATF_CHECK_STREQ("tap_-.zZ0189", ac->ac_backend);
	PARSE("-s", "1,e1000,tap012345678901,path=a");
	ATF_CHECK_STREQ("tap012345678901", ac->ac_name);
	settings_are("");
}

TEST(paths, "A path has 107 bytes at most")
{
	char option[512], line[1024], path[128];

	memset(path, 'p', sizeof(path));
	path[107] = '\0';
	snprintf(option, sizeof(option), "1,e1000,vale0:a,path=%s", path);
	PARSE("-s", option);
	ATF_CHECK_STREQ(path, ac->ac_path);
	PARSE("-c", path);
	ATF_CHECK_STREQ(path, opt->vo_control->co_path);
	path[107] = 'p';
	path[108] = '\0';
	snprintf(option, sizeof(option), "1,e1000,vale0:a,path=%s", path);
	snprintf(line, sizeof(line), "-s %s: path=%s: longer than 107 bytes",
	    option, path);
	REFUSED(EX_USAGE, line, "-s", option);
	snprintf(line, sizeof(line), "-c %s: longer than 107 bytes", path);
	REFUSED(EX_USAGE, line, "-c", path);
}

TEST(twice, "Adapters share no port, socket or address, and interfaces neither")
{
#define	B	"-s", "2,e1000,vale0:b,path=b.sock,mac=02:00:00:00:00:0b"
#define	C	"-s", "3,e1000,vale0:c,path=c.sock,mac=02:00:00:00:00:0c"
	REFUSED(EX_USAGE, "-s 4,e1000,vale0:b,path=x: vale0:b: port used twice",
	    OK, B, C, "-s", "4,e1000,vale0:b,path=x");
	REFUSED(EX_USAGE, "-s 4,e1000,vale0:c,path=x: vale0:c: port used twice",
	    OK, B, C, "-s", "4,e1000,vale0:c,path=x");
	REFUSED(EX_USAGE, "-s 4,e1000,vale0:x,path=a.sock: path=a.sock: used "
	    "twice", OK, B, C, "-s", "4,e1000,vale0:x,path=a.sock");
	REFUSED(EX_USAGE, "-s 4,e1000,vale0:x,path=x,mac=02:00:00:00:00:0c: "
	    "mac=02:00:00:00:00:0c: used twice", OK, B, C, "-s",
	    "4,e1000,vale0:x,path=x,mac=02:00:00:00:00:0c");
	REFUSED(EX_USAGE, "-s 5,e1000,vale0:y,path=y,mac=02:11:22:33:44:55: "
	    "mac=02:11:22:33:44:55: used twice", OK, "-s",
	    "4,e1000,vale0:x,path=x,mac=02:11:22:33:44:55", "-s",
	    "5,e1000,vale0:y,path=y,mac=02:11:22:33:44:55");
	REFUSED(EX_USAGE, "-s 3,e1000,vale0:x,path=x: slot 0:3:0 twice", OK, B,
	    C, "-s", "3,e1000,vale0:x,path=x");
	REFUSED(EX_USAGE, "-a vale0:b: port used twice", OK, "-a", "vale1:x",
	    "-a", "vale0:b", B, C);
	REFUSED(EX_USAGE, "-a vale0:b: port used twice", OK, "-a", "vale0:b",
	    B, C);
	REFUSED(EX_USAGE, "-a vale2:x: interface used twice", "-a", "vale0:w",
	    "-a", "vale0:x", "-a", "vale0:y", "-a", "vale2:x");
	REFUSED(EX_USAGE, "-a vale2:w: interface used twice", "-a", "vale0:w",
	    "-a", "vale0:x", "-a", "vale2:w");
	REFUSED(EX_USAGE, "-c x: one path is needed", OK, "-c", "y", "-c", "x");
	/* Two names, and the same on another switch. */
	PARSE(OK, B, "-s", "4,e1000,vale1:b,path=x", C);
	ATF_CHECK_EQ(4, opt->vo_nadapters);
	ATF_CHECK_STREQ("a", ac[0].ac_name);
	ATF_CHECK_STREQ("vale0:b", ac[1].ac_name);
	ATF_CHECK_STREQ("vale1:b", ac[2].ac_name);
	ATF_CHECK_STREQ("c", ac[3].ac_name);
	ATF_CHECK_EQ(3, ac[3].ac_slot);
}

TEST(interfaces, "-a takes 64 interfaces, each with a kind or none")
{
	static char option[HOSTIF_MAX + 1][32];
	char *args[2 * HOSTIF_MAX + 3];
	unsigned int i;

	PARSE("-a", "vale0:e0", "-a", "vale1:e12345678901234,kind=packet",
	    "-a", "vale0:e2,kind=xdp");
	ATF_CHECK_EQ(3, opt->vo_nhostifs);
	ATF_CHECK_EQ(0, opt->vo_nadapters);
	ATF_CHECK_STREQ("vale0:e0", opt->vo_hostifs[0].hc_port);
	ATF_CHECK_STREQ("e0", hostif_config_name(&opt->vo_hostifs[0]));
	ATF_CHECK_EQ(HOSTIF_AUTO, opt->vo_hostifs[0].hc_kind);
	ATF_CHECK_STREQ("vale1:e12345678901234", opt->vo_hostifs[1].hc_port);
	ATF_CHECK_STREQ("e12345678901234",
	    hostif_config_name(&opt->vo_hostifs[1]));
	ATF_CHECK_EQ(HOSTIF_PACKET, opt->vo_hostifs[1].hc_kind);
	ATF_CHECK_EQ(HOSTIF_XDP, opt->vo_hostifs[2].hc_kind);
	REFUSED(EX_USAGE, "-a vale0:e123456789012345: e123456789012345: not an "
	    "interface's name", "-a", "vale0:e123456789012345");
	REFUSED(EX_USAGE, "-a vale0:e,kin=xdp: unknown option \"kin=xdp\"",
	    "-a", "vale0:e,kin=xdp");
	REFUSED(EX_USAGE, "-a vale0:e,: unknown option \"\"", "-a",
	    "vale0:e,");
	REFUSED(EX_USAGE, "-a vale0:e,kind=xd: kind=xd: no such kind", "-a",
	    "vale0:e,kind=xd");
	/* After -s, its letter is its own. */
	REFUSED(EX_USAGE, "-a vale0:e,x: unknown option \"x\"", OK, "-a",
	    "vale0:e,x");
	REFUSED(EX_USAGE, "-s 1: the device is missing", "-a", "vale0:e",
	    "-s", "1");
	for (i = 0; i <= HOSTIF_MAX; i++) {
		snprintf(option[i], sizeof(option[i]), "vale0:e%u", i);
		args[2 * i] = __DECONST(char *, "-a");
		args[2 * i + 1] = option[i];
	}
	args[2 * HOSTIF_MAX + 2] = NULL;
	refused(EX_USAGE, "-a vale0:e64: more than 64 interfaces", args);
	args[2 * HOSTIF_MAX] = NULL;
	parse(args);
	ATF_CHECK_EQ(HOSTIF_MAX, opt->vo_nhostifs);
	ATF_CHECK_STREQ("e63", hostif_config_name(&opt->vo_hostifs[63]));
}

TEST(adapters, "There are 256 adapters at most")
{
	static char option[VALED_MAXADAPTERS + 1][64];
	static char *args[2 * VALED_MAXADAPTERS + 3];
	unsigned int i;

	for (i = 0; i <= VALED_MAXADAPTERS; i++) {
		snprintf(option[i], sizeof(option[i]), "%u:%u:1,e1000,"
		    "vale%u:p%u,path=p%u", i / 32, i % 32, i / 128, i, i);
		args[2 * i] = __DECONST(char *, "-s");
		args[2 * i + 1] = option[i];
	}
	args[2 * VALED_MAXADAPTERS + 2] = NULL;
	refused(EX_USAGE, "-s 8:0:1,e1000,vale2:p256,path=p256: more than 256 "
	    "adapters", args);
	args[2 * VALED_MAXADAPTERS] = __DECONST(char *, "-k");
	args[2 * VALED_MAXADAPTERS + 1] = __DECONST(char *, "f");
	FILE_IS("f", "pci.9.1.0.device=e1000\n");
	refused(EX_CONFIG, "f:1: more than 256 adapters", args);
	args[2 * VALED_MAXADAPTERS] = NULL;
	parse(args);
	ATF_CHECK_EQ(VALED_MAXADAPTERS, opt->vo_nadapters);
	ATF_CHECK_STREQ("p255", ac[255].ac_name);
}

TEST(letters, "Each option and argument that is wrong is named")
{
	REFUSED(EX_USAGE, "-s, -a, -c, -k: one of them is "
	    "needed: see valed -h and valed(7)", "-v");
	REFUSED(EX_USAGE, "unknown option -x", OK, "-x");
	REFUSED(EX_USAGE, "unknown option -x", OK, "-vx");
	REFUSED(EX_USAGE, "unknown option --x", OK, "--x");
	REFUSED(EX_USAGE, "-s: the value is missing", OK, "-s");
	REFUSED(EX_USAGE, "more: unexpected argument", OK, "more", "-x");
	REFUSED(EX_USAGE, "-: unexpected argument", OK, "-");
	PARSE("-h", "-x");
	ATF_CHECK_EQ(VALED_USAGE, opt->vo_tell);
	PARSE("--version", "-x");
	ATF_CHECK_EQ(VALED_VERSION, opt->vo_tell);
	PARSE("-c", "x");
	PARSE("-a", "vale0:e");
	PARSE(OK, "-a", "vale0:e");
	PARSE("-k", "/dev/null");
	ATF_CHECK_EQ(0, opt->vo_nadapters);
	REFUSED(EX_NOINPUT, "-k none: No such file or directory", "-k", "none");
	REFUSED(EX_NOINPUT, "-k .: not a regular file", "-k", ".");
}

TEST_PROGRAM
