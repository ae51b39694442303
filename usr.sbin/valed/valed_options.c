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
 * or is a node of variables, which -k and -o set (valed_config.c).  Both are
 * stored in configuration nodes, as there.  bhyve ignores unknown options;
 * valed rejects them.  An interface of the host has that of valectl(8),
 *
 *	-a vale0:eth0
 *
 * All options are checked before anything is created.  An error is one line on
 * stderr that says where, and EX_USAGE, or EX_CONFIG if it is in a file.
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <dev/netmap/vale_fdb.h>

#include "config.h"
#include "e82545.h"
#include "libvale.h"
#include "net_backends.h"
#include "net_utils.h"
#include "pci_emul.h"
#include "vale_version.h"
#include "valed.h"
#include "peer_mem.h"

#define	TAP_NAMSIZ	16

static const char shortopts[] = "+:a:c:hk:o:s:tv";
enum {
	OPTION_VERSION = 256		/* no letter */
};
static const struct option longopts[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char usage_text[] =
    "usage: valed [-htv] [-a port[,kind=kind]] [-c socket[,option...]]\n"
    "             [-k file] [-o name=value]\n"
    "             [-s slot,e1000,backend,path=socket[,option...]] ...\n"
    "\n"
    "  -a  attach an interface of the host: vale<switch>:<interface>\n"
    "        kind=packet|xdp  how: with packet(7), the default, or AF_XDP\n"
    "  -c  the control socket: for valectl, and programs with a port; a path,\n"
    "      or fd=n|name as for -s\n"
    "        group=name|gid  its group\n"
    "        mode=octal      its permissions; default those of the umask\n"
    "        admin=name|gid  the group of administrators, beside root and the\n"
    "                        user of valed\n"
    "        mem=size        memory of all ports of programs, 1M to 1T; default\n"
    "                        a quarter of the host's\n"
    "        user_mem=size   of the ports of a user who is no administrator;\n"
    "                        default half of that\n"
    "  -s  an adapter: [bus:]slot[:function],e1000,backend,option,...\n"
    "        backend     vale<switch>:<port> or tap<n>\n"
    "        path=file   the vfio-user socket, which QEMU connects to\n"
    "        fd=n|name   the same, inherited: a descriptor, or a name of\n"
    "                    LISTEN_FDNAMES\n"
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
    "        rate=limit  of what the guest sends to the switch, for example\n"
    "                    300Mbit/s or 100Kpkt/s; default none\n"
    "        burst=size  bytes or packets that may exceed the rate\n"
    "        limit=n     addresses of the guest that the switch learns, 1 to\n"
    "                    5120; 0, the default: any number\n"
    "        private=on|off  no frames from or to other private ports;\n"
    "                    default off\n"
    "        weight=n    the guest's part of a ring that is short of space, 1\n"
    "                    to 100; default 1\n"
    "  -k  read variables from a file, as bhyve(8) does: a line\n"
    "        pci.bus.slot.function.name=value, where name is device (e1000),\n"
    "        backend, or an option of -s\n"
    "  -o  set one variable\n"
    "  -t  check the options and files, and do nothing else\n"
    "  -v  print a line for each adapter every second\n"
    "  -h, --help  print this\n"
    "  --version   print the version\n";

static bool checking;			/* -t */
/* For messages: the -a or -s option being parsed, or NULL. */
static const char *option;
static char option_letter;
/* Otherwise, where the variable was set that was looked at last. */
static const char *origin;

static void __dead2 __printflike(1, 2)
bad(const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (option != NULL)
		errx(EX_USAGE, "-%c %s: %s", option_letter, option, why);
	errx(strncmp(origin, "-o ", 3) == 0 ? EX_USAGE : EX_CONFIG, "%s: %s",
	    origin, why);
}

/* The value of an adapter's variable, or NULL. */
static const char *
value_get(const nvlist_t *nvl, const char *name)
{
	origin = valed_config_where(nvl, name);
	return (get_config_value_node(nvl, name));
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
parse_place(struct adapter_config *ac, const char *s, const char *end)
{
	int n[3], count;
	const char *p;

	p = s;
	for (count = 0; count < 3; count++) {
		n[count] = place_number(&p, VALED_MAXBUS);
		if (n[count] == -1 || p == end)
			break;
		if (*p++ != ':' || count == 2)
			goto fail;
	}
	if (n[count] == -1)
		goto fail;
	ac->ac_bus = count == 2 ? n[0] : 0;
	ac->ac_slot = count == 2 ? n[1] : n[0];
	ac->ac_func = count == 0 ? 0 : n[count];
	if (ac->ac_slot > VALED_MAXSLOT || ac->ac_func > VALED_MAXFUNC)
		goto fail;
	return;

fail:
	bad("slot \"%.*s\" is not [bus:]slot[:function] with slot 0 to %d, "
	    "function 0 to %d", (int)(end - s), s, VALED_MAXSLOT, VALED_MAXFUNC);
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
	bool seen[VALED_NOPTIONS] = { false };
	const char *p;
	size_t len;
	int i;

	for (p = opts; p != NULL; p = strchr(p, ',')) {
		if (*p == ',')
			p++;
		len = strcspn(p, ",=");
		i = valed_variable(p, len);
		if (i == -1 || i >= VALED_NOPTIONS)
			bad("unknown option \"%.*s\"", (int)strcspn(p, ","),
			    p);
		if (p[len] != '=' || p[len + 1] == ',' || p[len + 1] == '\0')
			bad("%s=: the value is missing", valed_variables[i]);
		if (seen[i])
			bad("%s= twice", valed_variables[i]);
		seen[i] = true;
	}
}

static uint32_t
parse_number(nvlist_t *nvl, const char *name, uint32_t min, uint32_t max)
{
	const char *errstr, *value;
	uint32_t n;

	value = value_get(nvl, name);
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
	const char *value;
	uint64_t size;

	value = value_get(nvl, "mem");
	if (value == NULL)
		return ((uint64_t)sysconf(_SC_PHYS_PAGES) *
		    sysconf(_SC_PAGESIZE));
	if (!valed_size_parse(value, &size))
		bad("mem=%s: not a size from 1M to 1T, with M, G or T",
		    value);
	return (size);
}

/* Parse the limit of what the guest sends. */
static void
parse_rate(struct adapter_config *ac)
{
	const char *burst, *rate;

	burst = value_get(ac->ac_nvl, "burst");
	rate = get_config_value_node(ac->ac_nvl, "rate");
	if (rate == NULL && burst != NULL)
		bad("burst=%s: without rate=", burst);
	if (rate == NULL)
		return;
	(void)value_get(ac->ac_nvl, "rate");
	if (strncmp(ac->ac_backend, "vale", 4) != 0)
		bad("rate=%s: %s is not a port of a switch", rate,
		    ac->ac_backend);
	if (!vale_rate_parse(rate, &ac->ac_rate))
		bad("rate=%s: not a number up to 1000G, with or without K, M "
		    "or G, and bit/s, Byte/s or pkt/s", rate);
	(void)value_get(ac->ac_nvl, "burst");
	if (burst != NULL && !vale_rate_parse_burst(burst, &ac->ac_rate))
		bad("burst=%s: not a number from 1 to 512M, with or without K "
		    "or M", burst);
}

static bool
parse_bool(nvlist_t *nvl, const char *name, bool otherwise)
{
	const char *value;

	value = value_get(nvl, name);
	if (value == NULL)
		return (otherwise);
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		bad("%s=%s: not \"on\" or \"off\"", name, value);
	return (strcmp(value, "on") == 0);
}

/* Parse the settings of a switch's port. */
static void
parse_port(struct adapter_config *ac)
{
	static const char *const names[] = { "limit", "private", "weight" };
	const char *value;
	unsigned int i;

	parse_rate(ac);
	ac->ac_limit = parse_number(ac->ac_nvl, "limit", 0, VALE_FDB_ENTRIES);
	ac->ac_private = parse_bool(ac->ac_nvl, "private", false);
	ac->ac_weight = parse_number(ac->ac_nvl, "weight", 1, VALE_WEIGHT_MAX);
	if (strncmp(ac->ac_backend, "vale", 4) == 0)
		return;
	for (i = 0; i < nitems(names); i++) {
		value = value_get(ac->ac_nvl, names[i]);
		if (value != NULL)
			bad("%s=%s: %s is not a port of a switch", names[i],
			    value, ac->ac_backend);
	}
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
default_mac(struct adapter_config *ac)
{
	struct pci_devinst pi;

	memset(&pi, 0, sizeof(pi));
	pi.pi_bus = ac->ac_bus;
	pi.pi_slot = ac->ac_slot;
	pi.pi_func = ac->ac_func;
	set_config_value("name", ac->ac_backend);
	net_genmac(&pi, ac->ac_mac);
}

/* The socket: one of path= and fd=. */
static void
parse_socket(struct adapter_config *ac)
{
	const char *error, *fd, *value;

	fd = value_get(ac->ac_nvl, "fd");
	value = value_get(ac->ac_nvl, "path");
	if (value == NULL && fd == NULL)
		bad("path= is missing");
	if (value != NULL && fd != NULL)
		bad("both path= and fd=");
	ac->ac_fd = -1;
	if (fd != NULL) {
		(void)value_get(ac->ac_nvl, "fd");
		error = valed_activation_fd(fd, SOCK_STREAM, &ac->ac_fd);
		if (error != NULL)
			bad("fd=%s: %s", fd, error);
		return;
	}
	strlcpy(ac->ac_path, value, sizeof(ac->ac_path));
}

static void
check_lengths(const nvlist_t *nvl)
{
	const char *value;
	int i;

	for (i = 0; i < VALED_NVARIABLES; i++) {
		value = value_get(nvl, valed_variables[i]);
		if (value != NULL && strlen(value) >= VALED_VALUE_SIZE)
			bad("%s=%s: longer than %zu bytes", valed_variables[i],
			    value, VALED_VALUE_SIZE - 1);
	}
}

static void
parse_values(struct adapter_config *ac)
{
	const char *value;

	ac->ac_listen = -1;
	check_lengths(ac->ac_nvl);
	parse_socket(ac);
	value = value_get(ac->ac_nvl, "mac");
	if (value == NULL)
		default_mac(ac);
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
	parse_port(ac);
}

/* Parse one -s option, as pci_parse_slot() of bhyve does. */
static void
parse_slot(struct adapter_config *ac, const char *s)
{
	const char *conf, *emul, *end;
	char *backend, node[32], *where;
	size_t len;

	option = s;
	end = s + strcspn(s, ",");
	parse_place(ac, s, end);
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

	snprintf(node, sizeof(node), "pci.%d.%d.%d", ac->ac_bus, ac->ac_slot,
	    ac->ac_func);
	if (find_config_node(node) != NULL)
		bad("slot %d:%d:%d twice", ac->ac_bus, ac->ac_slot,
		    ac->ac_func);
	ac->ac_nvl = create_config_node(node);
	if (netbe_legacy_config(ac->ac_nvl, conf) != 0)
		err(EX_OSERR, "-s");
	ac->ac_backend = get_config_value_node(ac->ac_nvl, "backend");
	len = strlen("-s ") + strlen(s) + 1;
	where = calloc(1, len);
	if (where == NULL)
		err(EX_OSERR, "-s");
	snprintf(where, len, "-s %s", s);
	ac->ac_where = where;
	parse_values(ac);
}

/* Parse a node of variables. */
static void
parse_node(struct adapter_config *ac, const struct valed_config_node *cn)
{
	const char *value;

	option = NULL;
	ac->ac_bus = cn->bus;
	ac->ac_slot = cn->slot;
	ac->ac_func = cn->func;
	ac->ac_nvl = cn->nvl;
	value = value_get(cn->nvl, "device");
	if (value == NULL)
		bad("pci.%d.%d.%d.device is missing", cn->bus, cn->slot,
		    cn->func);
	if (strcmp(value, "e1000") != 0)
		bad("unknown device \"%s\"", value);
	value = value_get(cn->nvl, "backend");
	if (value == NULL)
		bad("pci.%d.%d.%d.backend is missing", cn->bus, cn->slot,
		    cn->func);
	check_backend(value);
	ac->ac_backend = value;
	ac->ac_where = strdup(origin);
	if (ac->ac_where == NULL)
		err(EX_OSERR, NULL);
	parse_values(ac);
}

/* Whether two adapters inherit one socket.  With -t no descriptor is known. */
static bool
same_fd(const struct adapter_config *ac, const struct adapter_config *other)
{
	const char *a, *b;

	if (ac->ac_fd == -1 || ac->ac_fd != other->ac_fd)
		return (false);
	a = get_config_value_node(ac->ac_nvl, "fd");
	b = get_config_value_node(other->ac_nvl, "fd");
	return (!checking || strcmp(a, b) == 0);
}

/* Check that two adapters share no port, socket or address. */
static void
check_twice(const struct adapter_config *ac, const struct adapter_config *other)
{
	(void)value_get(ac->ac_nvl, "backend");
	if (strcmp(ac->ac_backend, other->ac_backend) == 0)
		bad("%s: port used twice", ac->ac_backend);
	(void)value_get(ac->ac_nvl, ac->ac_fd == -1 ? "path" : "fd");
	if (ac->ac_fd == -1 && strcmp(ac->ac_path, other->ac_path) == 0)
		bad("path=%s: used twice", ac->ac_path);
	if (same_fd(ac, other))
		bad("fd=%s: used twice", value_get(ac->ac_nvl, "fd"));
	(void)value_get(ac->ac_nvl, "mac");
	if (memcmp(ac->ac_mac, other->ac_mac, sizeof(ac->ac_mac)) == 0)
		bad("mac=%02x:%02x:%02x:%02x:%02x:%02x: used twice",
		    ac->ac_mac[0], ac->ac_mac[1], ac->ac_mac[2],
		    ac->ac_mac[3], ac->ac_mac[4], ac->ac_mac[5]);
}

/* Parse one -a option. */
static void
parse_attach(struct hostif_config *hc, const char *s)
{
	const char *error, *kind;
	char *name;
	size_t len;

	option = s;
	option_letter = 'a';
	len = strcspn(s, ",");
	hc->hc_port = name = strndup(s, len);
	if (name == NULL)
		err(EX_OSERR, "-a");
	error = vale_name_error(name);
	if (error != NULL)
		bad("%s: %s", name, error);
	hc->hc_ifname = strchr(name, ':') + 1;
	if (strlen(hc->hc_ifname) >= HOSTIF_NAME_SIZE)
		bad("%s: not an interface's name", hc->hc_ifname);
	if (s[len] == '\0')
		return;
	kind = s + len + 1;
	if (strncmp(kind, "kind=", strlen("kind=")) != 0)
		bad("unknown option \"%s\"", kind);
	kind += strlen("kind=");
	hc->hc_options.ho_kind = hostif_kind(kind);
	if (hc->hc_options.ho_kind == HOSTIF_NKINDS)
		bad("kind=%s: no such kind", kind);
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

/* Check that no interface shares a port or is attached twice. */
static void
check_hostifs(const struct valed_options *opt)
{
	const struct hostif_config *hc = opt->vo_hostifs;
	unsigned int i, j;

	for (i = 0; i < opt->vo_nhostifs; i++) {
		for (j = 0; j < opt->vo_nadapters; j++) {
			if (strcmp(hc[i].hc_port,
			    opt->vo_adapters[j].ac_backend) == 0)
				errx(EX_USAGE, "-a %s: port used twice",
				    hc[i].hc_port);
		}
		for (j = 0; j < i; j++) {
			if (strcmp(hc[i].hc_ifname, hc[j].hc_ifname) == 0)
				errx(EX_USAGE, "-a %s: interface used twice",
				    hc[i].hc_port);
		}
	}
}

/* The next adapter of the list, after a check of their number. */
static struct adapter_config *
adapter_next(struct valed_options *opt)
{
	if (opt->vo_nadapters == VALED_MAXADAPTERS)
		bad("more than %d adapters", VALED_MAXADAPTERS);
	return (&opt->vo_adapters[opt->vo_nadapters]);
}

/* Add to the list the adapter that adapter_next() returned. */
static void
adapter_add(struct valed_options *opt)
{
	unsigned int i;

	for (i = 0; i < opt->vo_nadapters; i++)
		check_twice(&opt->vo_adapters[opt->vo_nadapters],
		    &opt->vo_adapters[i]);
	opt->vo_nadapters++;
}

static void
add_slot(struct valed_options *opt, const char *s)
{
	option = s;
	option_letter = 's';
	parse_slot(adapter_next(opt), s);
	adapter_add(opt);
}

static void
add_nodes(struct valed_options *opt)
{
	const struct valed_config_node *cn;

	option = NULL;
	for (cn = valed_config_next(NULL); cn != NULL;
	    cn = valed_config_next(cn)) {
		(void)value_get(cn->nvl, "device");
		parse_node(adapter_next(opt), cn);
		adapter_add(opt);
	}
}

static void
add_hostif(struct valed_options *opt, const char *s)
{
	if (opt->vo_nhostifs == HOSTIF_MAX)
		errx(EX_USAGE, "-a %s: more than %d interfaces", s,
		    HOSTIF_MAX);
	parse_attach(&opt->vo_hostifs[opt->vo_nhostifs++], s);
}

static void
set_control(struct valed_options *opt, const char *s)
{
	static struct control_config co;
	const char *error;

	if (opt->vo_control != NULL)
		errx(EX_USAGE, "-c %s: one path is needed", s);
	error = valed_control_parse(&co, s);
	if (error != NULL)
		errx(EX_USAGE, "-c %s: %s", s, error);
	opt->vo_control = &co;
}

static void __dead2
bad_option(char **argv)
{
	const char *arg = argv[optind - 1];

	if (strncmp(arg, "--", 2) == 0)
		errx(EX_USAGE, "unknown option %s", arg);
	errx(EX_USAGE, "unknown option -%c", optopt);
}

/* Look for -t: the options before it are checked as those after it. */
static bool
look_for_check(int argc, char **argv)
{
	bool found = false;
	int ch;

	optind = 0;
	while ((ch = getopt_long(argc, argv, shortopts, longopts, NULL)) != -1)
		found |= ch == 't';
	valed_activation_ignore(found);
	return (found);
}

void
valed_options(int argc, char **argv, struct valed_options *opt)
{
	bool file = false;
	int ch;

	memset(opt, 0, sizeof(*opt));
	opt->vo_adapters = calloc(VALED_MAXADAPTERS, sizeof(*opt->vo_adapters));
	opt->vo_hostifs = calloc(HOSTIF_MAX, sizeof(*opt->vo_hostifs));
	if (opt->vo_adapters == NULL || opt->vo_hostifs == NULL)
		err(EX_OSERR, NULL);
	valed_config_clear();
	opterr = 0;
	opt->vo_check = checking = look_for_check(argc, argv);
	optind = 0;
	while ((ch = getopt_long(argc, argv, shortopts, longopts,
	    NULL)) != -1) {
		switch (ch) {
		case 'a':
			add_hostif(opt, optarg);
			break;
		case 'c':
			set_control(opt, optarg);
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(EX_OK);
		case 'k':
			valed_config_file(optarg);
			file = true;
			break;
		case 'o':
			valed_config_option(optarg);
			break;
		case 's':
			add_slot(opt, optarg);
			break;
		case 't':
			break;
		case 'v':
			opt->vo_verbose = true;
			break;
		case OPTION_VERSION:
			puts("valed " VALE_VERSION);
			exit(EX_OK);
		case ':':
			errx(EX_USAGE, "-%c: the value is missing", optopt);
		default:
			bad_option(argv);
		}
	}
	if (optind < argc)
		errx(EX_USAGE, "%s: unexpected argument", argv[optind]);
	add_nodes(opt);
	if (opt->vo_nadapters + opt->vo_nhostifs == 0 &&
	    opt->vo_control == NULL && !file)
		errx(EX_USAGE, "-s, -a, -c: one of them is needed");
	check_hostifs(opt);
	give_names(opt);
}
