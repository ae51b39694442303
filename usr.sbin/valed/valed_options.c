/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The command line.  An adapter has the syntax of bhyve(8),
 *
 *	-s [bus:]slot[:func],e1000,backend[,name=value...]
 *
 * and is stored in configuration nodes, as there.  bhyve ignores unknown
 * options; valed rejects them.  All options are checked before anything is
 * created.  An error is one line on stderr, and EX_USAGE.
 */

#include <sys/param.h>

#include <ctype.h>
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "config.h"
#include "e82545.h"
#include "libvale.h"
#include "net_backends.h"
#include "net_utils.h"
#include "pci_emul.h"
#include "valed.h"
#include "vfu_dma.h"

#define	MAXBUS		255
#define	MAXSLOT		31
#define	MAXFUNC		7

#define	TAP_NAMSIZ	16

static const char usage_text[] =
    "usage: valed [-hv] [-c socket] "
    "[-s slot,e1000,backend,path=socket[,option...] ...]\n"
    "\n"
    "  -c  the control socket, for valectl and programs with ports of a switch\n"
    "  -s  an adapter: [bus:]slot[:function],e1000,backend,option,...\n"
    "        backend     vale<switch>:<port> or tap<n>\n"
    "        path=file   the vfio-user socket, which QEMU connects to\n"
    "        mac=address the adapter's Ethernet address\n"
    "        mtu=bytes   maximum transmission unit, 68 to 16110\n"
    "        itr=n       minimum interval between interrupts, in units of\n"
    "                    256 ns, if the driver sets none; 0 to 65535\n"
    "        itr_min=n   the same, whatever the driver sets\n"
    "        csb=on|off  offer the driver shared memory in place of most\n"
    "                    register accesses and interrupts; default on\n"
    "        direct=on|off  let other adapters of this process copy frames\n"
    "                    straight to the guest; default on\n"
    "        mem=size    memory that the client may share, 1M to 1T; default\n"
    "                    that of the host\n"
    "  -v  print a line for each adapter every second\n"
    "  -h  print this\n";

/* The -s option being parsed, for messages. */
static const char *option;

static void __dead2 __printflike(1, 2)
bad(const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	errx(EX_USAGE, "-s %s: %s", option, why);
}

/* Parse a decimal number at *p and advance *p.  -1 if it exceeds `max'. */
static int
place_number(const char **p, int max)
{
	int n;

	if (!isdigit((unsigned char)**p))
		return (-1);
	for (n = 0; isdigit((unsigned char)**p); (*p)++) {
		n = n * 10 + (**p - '0');
		if (n > max)
			return (-1);
	}
	return (n);
}

/* Parse [bus:]slot[:func], which ends at `end'. */
static void
parse_place(struct adapter_config *ac, const char *s, const char *end, int *bus)
{
	int n[3], count;
	const char *p;

	p = s;
	for (count = 0; count < 3; count++) {
		n[count] = place_number(&p, MAXBUS);
		if (n[count] == -1 || p == end)
			break;
		if (*p++ != ':' || count == 2)
			goto fail;
	}
	if (n[count] == -1)
		goto fail;
	*bus = count == 2 ? n[0] : 0;
	ac->ac_slot = count == 2 ? n[1] : n[0];
	ac->ac_func = count == 0 ? 0 : n[count];
	if (ac->ac_slot > MAXSLOT || ac->ac_func > MAXFUNC)
		goto fail;
	return;

fail:
	bad("slot \"%.*s\" is not [bus:]slot[:function] with slot 0 to %d, "
	    "function 0 to %d", (int)(end - s), s, MAXSLOT, MAXFUNC);
}

static bool
name_ok(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' &&
		    s[i] != '-' && s[i] != '.')
			return (false);
	}
	return (true);
}

static void
check_backend(const char *be)
{
	const char *error;

	if (*be == '\0' || strchr(be, '=') != NULL)
		bad("the port's name is missing");
	if (strncmp(be, "vale", 4) == 0) {
		error = vale_name_error(be);
		if (error != NULL)
			bad("%s: %s", be, error);
	} else if (strncmp(be, "tap", 3) == 0) {
		if (!name_ok(be, strlen(be)) || strlen(be) >= TAP_NAMSIZ)
			bad("%s: not an interface's name", be);
	} else
		bad("%s: no such backend", be);
}

/* Check that each option after the backend is known, unique and has a value. */
static void
check_names(const char *opts)
{
	static const char *const known[] = {
		"path", "mac", "mtu", "itr", "itr_min", "csb", "direct",
		"mem"
	};
	bool seen[nitems(known)] = { false };
	const char *p;
	size_t i, len;

	for (p = opts; p != NULL; p = strchr(p, ',')) {
		if (*p == ',')
			p++;
		len = strcspn(p, ",=");
		for (i = 0; i < nitems(known); i++) {
			if (strlen(known[i]) == len &&
			    memcmp(known[i], p, len) == 0)
				break;
		}
		if (i == nitems(known))
			bad("unknown option \"%.*s\"", (int)strcspn(p, ","),
			    p);
		if (p[len] != '=' || p[len + 1] == ',' || p[len + 1] == '\0')
			bad("%s=: the value is missing", known[i]);
		if (seen[i])
			bad("%s= twice", known[i]);
		seen[i] = true;
	}
}

static uint32_t
parse_number(nvlist_t *nvl, const char *name, uint32_t min, uint32_t max)
{
	const char *errstr, *value;
	uint32_t n;

	value = get_config_value_node(nvl, name);
	if (value == NULL)
		return (0);
	n = strtonum(value, min, max, &errstr);
	if (errstr != NULL || !isdigit((unsigned char)*value))
		bad("%s=%s: not a number from %u to %u", name, value, min,
		    max);
	return (n);
}

/*
 * Parse a size with the suffix M, G or T.  The default is the memory of the
 * host, of which a guest rarely has more.
 */
static uint64_t
parse_mem(nvlist_t *nvl)
{
	static const char suffixes[] = "MGT";
	const char *p, *suffix, *value;
	uint64_t n;

	value = get_config_value_node(nvl, "mem");
	if (value == NULL)
		return ((uint64_t)sysconf(_SC_PHYS_PAGES) *
		    sysconf(_SC_PAGESIZE));
	n = 0;
	for (p = value; isdigit((unsigned char)*p) && n <= VFU_DMA_BYTES; p++)
		n = n * 10 + (*p - '0');
	suffix = *p == '\0' ? NULL : strchr(suffixes, *p);
	if (suffix == NULL || p[1] != '\0' || n == 0 || n > VFU_DMA_BYTES >>
	    (20 + 10 * (suffix - suffixes)))
		bad("mem=%s: not a size from 1M to 1T, with M, G or T",
		    value);
	return (n << (20 + 10 * (suffix - suffixes)));
}

static bool
parse_bool(nvlist_t *nvl, const char *name, bool otherwise)
{
	const char *value;

	value = get_config_value_node(nvl, name);
	if (value == NULL)
		return (otherwise);
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		bad("%s=%s: not \"on\" or \"off\"", name, value);
	return (strcmp(value, "on") == 0);
}

/* Parse six pairs of hexadecimal digits, separated by colons. */
static bool
parse_mac(const char *s, uint8_t mac[6])
{
	static const uint8_t none[6];
	int i;

	for (i = 0; i < 6; i++, s += 3) {
		if (!isxdigit((unsigned char)s[0]) ||
		    !isxdigit((unsigned char)s[1]) ||
		    s[2] != (i < 5 ? ':' : '\0'))
			return (false);
		mac[i] = (uint8_t)strtoul(s, NULL, 16);
	}
	return ((mac[0] & 1) == 0 && memcmp(mac, none, sizeof(none)) != 0);
}

/*
 * Set the default address, as bhyve does, with the name of the port in place of
 * the name of the virtual machine.
 */
static void
default_mac(struct adapter_config *ac, int bus)
{
	struct pci_devinst pi;

	memset(&pi, 0, sizeof(pi));
	pi.pi_bus = bus;
	pi.pi_slot = ac->ac_slot;
	pi.pi_func = ac->ac_func;
	set_config_value("name", ac->ac_backend);
	net_genmac(&pi, ac->ac_mac);
}

static void
parse_values(struct adapter_config *ac, int bus)
{
	const char *value;

	value = get_config_value_node(ac->ac_nvl, "path");
	if (value == NULL)
		bad("path= is missing");
	if (strlcpy(ac->ac_path, value, sizeof(ac->ac_path)) >=
	    sizeof(ac->ac_path))
		bad("path=%s: longer than %zu bytes", value,
		    sizeof(ac->ac_path) - 1);
	value = get_config_value_node(ac->ac_nvl, "mac");
	if (value == NULL)
		default_mac(ac, bus);
	else if (!parse_mac(value, ac->ac_mac))
		bad("mac=%s: not a unicast Ethernet address", value);
	ac->ac_mtu = parse_number(ac->ac_nvl, "mtu", E82545_MTU_MIN,
	    E82545_MTU_MAX);
	ac->ac_itr_256ns = parse_number(ac->ac_nvl, "itr", 0, E82545_ITR_MAX);
	ac->ac_itr_min_256ns = parse_number(ac->ac_nvl, "itr_min", 0,
	    E82545_ITR_MAX);
	ac->ac_csb = parse_bool(ac->ac_nvl, "csb", true);
	ac->ac_direct = parse_bool(ac->ac_nvl, "direct", true);
	ac->ac_mem = parse_mem(ac->ac_nvl);
}

/* Parse one -s option, as pci_parse_slot() of bhyve does. */
static void
parse_slot(struct adapter_config *ac, const char *s)
{
	const char *conf, *emul, *end;
	char *backend, node[32];
	size_t len;
	int bus;

	option = s;
	end = s + strcspn(s, ",");
	parse_place(ac, s, end, &bus);
	emul = *end == ',' ? end + 1 : end;
	len = strcspn(emul, ",");
	if (len == 0)
		bad("the device is missing");
	if (len != strlen("e1000") || memcmp(emul, "e1000", len) != 0)
		bad("unknown device \"%.*s\"", (int)len, emul);
	conf = emul[len] == ',' ? emul + len + 1 : "";

	len = strcspn(conf, ",");
	backend = strndup(conf, len);
	if (backend == NULL)
		err(EX_OSERR, "-s");
	check_backend(backend);
	free(backend);
	check_names(conf[len] == ',' ? conf + len : NULL);

	snprintf(node, sizeof(node), "pci.%d.%d.%d", bus, ac->ac_slot,
	    ac->ac_func);
	if (find_config_node(node) != NULL)
		bad("slot %d:%d:%d twice", bus, ac->ac_slot, ac->ac_func);
	ac->ac_nvl = create_config_node(node);
	if (netbe_legacy_config(ac->ac_nvl, conf) != 0)
		err(EX_OSERR, "-s");
	ac->ac_backend = get_config_value_node(ac->ac_nvl, "backend");
	parse_values(ac, bus);
}

/* Check that two adapters share no port, socket or address. */
static void
check_twice(const struct adapter_config *ac, const struct adapter_config *other)
{
	if (strcmp(ac->ac_backend, other->ac_backend) == 0)
		bad("%s: port used twice", ac->ac_backend);
	if (strcmp(ac->ac_path, other->ac_path) == 0)
		bad("path=%s: used twice", ac->ac_path);
	if (memcmp(ac->ac_mac, other->ac_mac, sizeof(ac->ac_mac)) == 0)
		bad("mac=%02x:%02x:%02x:%02x:%02x:%02x: used twice",
		    ac->ac_mac[0], ac->ac_mac[1], ac->ac_mac[2],
		    ac->ac_mac[3], ac->ac_mac[4], ac->ac_mac[5]);
}

static const char *
port_name(const struct adapter_config *ac)
{
	const char *colon;

	colon = strchr(ac->ac_backend, ':');
	return (colon == NULL ? ac->ac_backend : colon + 1);
}

/* Name adapters after their ports, with the switch if that is not unique. */
static void
give_names(struct valed_options *opt)
{
	unsigned int i, j;

	for (i = 0; i < opt->vo_nadapters; i++) {
		opt->vo_adapters[i].ac_name = port_name(&opt->vo_adapters[i]);
		for (j = 0; j < opt->vo_nadapters; j++) {
			if (j != i && strcmp(port_name(&opt->vo_adapters[i]),
			    port_name(&opt->vo_adapters[j])) == 0)
				opt->vo_adapters[i].ac_name =
				    opt->vo_adapters[i].ac_backend;
		}
	}
}

void
valed_options(int argc, char **argv, struct valed_options *opt)
{
	struct adapter_config *ac;
	unsigned int i;
	int ch;

	memset(opt, 0, sizeof(*opt));
	opt->vo_adapters = calloc(VALED_MAXADAPTERS, sizeof(*opt->vo_adapters));
	if (opt->vo_adapters == NULL)
		err(EX_OSERR, NULL);
	init_config();
	opterr = 0;
	while ((ch = getopt(argc, argv, "+:c:hs:v")) != -1) {
		switch (ch) {
		case 'c':
			if (strlen(optarg) >= sizeof(ac->ac_path))
				errx(EX_USAGE, "-c %s: longer than %zu bytes",
				    optarg, sizeof(ac->ac_path) - 1);
			if (opt->vo_control != NULL || *optarg == '\0')
				errx(EX_USAGE, "-c %s: one path is needed",
				    optarg);
			opt->vo_control = optarg;
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(EX_OK);
		case 's':
			if (opt->vo_nadapters == VALED_MAXADAPTERS)
				errx(EX_USAGE, "-s %s: more than %d adapters",
				    optarg, VALED_MAXADAPTERS);
			ac = &opt->vo_adapters[opt->vo_nadapters];
			parse_slot(ac, optarg);
			for (i = 0; i < opt->vo_nadapters; i++)
				check_twice(ac, &opt->vo_adapters[i]);
			opt->vo_nadapters++;
			break;
		case 'v':
			opt->vo_verbose = true;
			break;
		case ':':
			errx(EX_USAGE, "-%c: the value is missing", optopt);
		default:
			errx(EX_USAGE, "unknown option -%c", optopt);
		}
	}
	if (optind < argc)
		errx(EX_USAGE, "%s: unexpected argument", argv[optind]);
	if (opt->vo_nadapters == 0 && opt->vo_control == NULL)
		errx(EX_USAGE, "-s: at least one adapter is needed, or -c");
	give_names(opt);
}
