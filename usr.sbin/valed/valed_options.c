/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The command line.  An adapter has the syntax of bhyve(8),
 *
 *	-s [bus:]slot[:func],device,backend[,name=value...]
 *
 * or is a node of variables, which -k and -o set (valed_config.c).  Both become
 * nodes, and then struct adapter_config (valed_values.c), and settings of ports
 * (valed_settings.c).  bhyve ignores
 * unknown options; valed rejects them.  An interface of the host has the syntax
 * of valectl(8),
 *
 *	-a vale0:eth0
 *
 * All options are checked before anything is created.  Nothing here prints an
 * error or ends the program: valed_config.h has what is wrong.
 */

#include <sys/param.h>

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "adapter_config.h"
#include "adapter_version.h"
#include "libvale.h"
#include "peer_log.h"
#include "valed_activation.h"
#include "valed_config.h"
#include "valed_control.h"
#include "valed_options.h"
#include "valed_values.h"

static const char shortopts[] = "+:a:c:hk:o:Rs:tTv";
enum {
	OPTION_VERSION = 256,		/* no letter */
	OPTION_TAKES			/* the supervisor's */
};
static const struct option longopts[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "takes", required_argument, NULL, OPTION_TAKES },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char usage_begin[] =
    "usage: valed [-hRtTv] [-a port[,kind=kind]] [-c socket[,option...]]\n"
    "             [-k file] [-o name=value]\n"
    "             [-s slot,device,backend,path=socket[,option...]] ...\n"
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
    "  -s  an adapter: [bus:]slot[:function],device,backend,option,...\n"
    "      Devices: e1000, an 82545EM; e1000e, an 82574L.\n"
    "        backend     vale<switch>:<port> or tap<n>\n";
static const char usage_end[] =
    "  -k  read variables from a file, as bhyve(8) does: a line\n"
    "        pci.bus.slot.function.name=value, where name is device,\n"
    "        backend, or an option of -s; or\n"
    "        switch.vale<switch>.setting=value,\n"
    "        port.vale<switch>:<port>.setting=value, with a setting of\n"
    "        valectl -o, or attach.vale<switch>:<interface>=kind\n"
    "  -o  set one variable\n"
    "  -R  go on if the process ends or is to be restarted: guests see a pause\n"
    "  -t  check the options and files, and do nothing else\n"
    "  -T  the same, and print what is in force, as lines of a file\n"
    "  -v  print a line for each adapter every second\n"
    "  -h, --help  print this\n"
    "  --version   print the version\n";

#define	UNKNOWN_DEVICE	"unknown device \"%.*s\": not e1000 or e1000e"

/* Print the usage, with texts about options of -s in one column. */
void
valed_usage(void)
{
	const struct valed_variable *v;
	const char *p;
	int len;

	fputs(usage_begin, stdout);
	for (v = valed_variables; v < valed_variables + VALED_NOPTIONS; v++) {
		len = printf("        %s=%s", v->var_name, v->var_arg);
		printf("%s%*s", len < 20 ? "" : "\n", len < 20 ? 20 - len : 20,
		    "");
		for (p = v->var_help; *p != '\0'; p++)
			printf(*p == '\n' ? "\n%20s" : "%.1s",
			    *p == '\n' ? "" : p);
		putchar('\n');
	}
	fputs(usage_end, stdout);
}

static bool checking;			/* -t or -T */

/* The place of a -s option. */
struct place {
	int	bus, slot, func;
};

/* A variable that a -s option sets. */
struct assignment {
	const char	*value;		/* or NULL */
	size_t		 len;
};

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
static bool
parse_place(struct place *place, struct valed_where where, const char *s,
    const char *end)
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
	place->bus = count == 2 ? n[0] : 0;
	place->slot = count == 2 ? n[1] : n[0];
	place->func = count == 0 ? 0 : n[count];
	if (place->slot > VALED_MAXSLOT || place->func > VALED_MAXFUNC)
		goto fail;
	return (true);

fail:
	return (valed_bad(where, "slot \"%.*s\" is not [bus:]slot[:function] "
	    "with slot 0 to %d, function 0 to %d", (int)(end - s), s,
	    VALED_MAXSLOT, VALED_MAXFUNC));
}

/*
 * Return whether a value goes on behind a comma: a list with a part that has no
 * name, a rate with burst=.
 */
static bool
goes_on(const struct valed_variable *v, const char *part)
{
	if (v->var_setting == -1)
		return (false);
	switch (vale_setting_table[v->var_setting].se_kind) {
	case VALE_KIND_RATE:
		return (strncmp(part, "burst=", strlen("burst=")) == 0);
	case VALE_KIND_TEXT:
		return (*part != '\0' && part[strcspn(part, ",=")] != '=');
	default:
		return (false);
	}
}

/* Return the end of a value. */
static const char *
assignment_end(int variable, const char *value)
{
	const char *end = value + strcspn(value, ",");

	while (*end == ',' && goes_on(&valed_variables[variable], end + 1))
		end += 1 + strcspn(end + 1, ",");
	return (end);
}

/* Parse the options after the backend: each is known, unique, has a value. */
static bool
parse_assignments(struct assignment as[VALED_NOPTIONS],
    struct valed_where where, const char *opts)
{
	const char *p;
	size_t len;
	int i;

	memset(as, 0, VALED_NOPTIONS * sizeof(as[0]));
	for (p = opts; p != NULL && *p == ',';) {
		p++;
		len = strcspn(p, ",=");
		i = valed_variable(p, len);
		if (i == -1 || i >= VALED_NOPTIONS)
			return (valed_bad(where, "unknown option \"%.*s\"%s",
			    (int)strcspn(p, ","), p, valed_unknown(p, len)));
		if (p[len] != '=' || p[len + 1] == ',' || p[len + 1] == '\0')
			return (valed_bad(where, "%s=: the value is missing",
			    valed_variables[i].var_name));
		if (as[i].value != NULL)
			return (valed_bad(where, "%s= twice",
			    valed_variables[i].var_name));
		as[i].value = p + len + 1;
		p = assignment_end(i, as[i].value);
		as[i].len = p - as[i].value;
	}
	return (true);
}

/* Check the backend, the first `len' characters of `conf'. */
static bool
check_backend(struct valed_where where, const char *conf, size_t len)
{
	char *backend = strndup(conf, len);
	bool ok;

	if (backend == NULL)
		return (valed_wrong(EX_OSERR, "-s: %s", strerror(errno)));
	ok = valed_backend_check(where, backend);
	free(backend);
	return (ok);
}

/* Make a node of one -s option, or return NULL. */
static const struct valed_node *
parse_slot(const char *s)
{
	const struct valed_where where = { "-s ", s };
	struct assignment as[VALED_NOPTIONS];
	const char *conf, *emul, *end;
	struct valed_node *vn;
	struct place place;
	size_t len;
	int i;

	end = s + strcspn(s, ",");
	if (!parse_place(&place, where, s, end))
		return (NULL);
	emul = *end == ',' ? end + 1 : end;
	len = strcspn(emul, ",");
	if (len == 0)
		valed_bad(where, "the device is missing");
	if (valed_device(emul, len) == -1)
		valed_bad(where, UNKNOWN_DEVICE, (int)len, emul);
	conf = emul[len] == ',' ? emul + len + 1 : "";
	len = strcspn(conf, ",");
	if (!check_backend(where, conf, len) || !parse_assignments(as, where,
	    conf[len] == ',' ? conf + len : NULL))
		return (NULL);
	if (valed_config_find(place.bus, place.slot, place.func) != NULL)
		valed_bad(where, "slot %d:%d:%d twice", place.bus, place.slot,
		    place.func);
	vn = valed_config_slot(place.bus, place.slot, place.func, s);
	valed_config_set(vn, VALED_V_BACKEND, conf, len);
	valed_config_set(vn, VALED_V_DEVICE, emul, strcspn(emul, ","));
	for (i = 0; i < VALED_NOPTIONS; i++)
		if (as[i].value != NULL)
			valed_config_set(vn, i, as[i].value, as[i].len);
	return (vn);
}

/* Check the variables of a node that -s does not have. */
static bool
check_node(const struct valed_node *vn)
{
	const char *value;

	value = vn->nd_variable[VALED_V_DEVICE].nt_value;
	if (value == NULL)
		return (valed_bad(valed_config_where(vn, VALED_V_DEVICE),
		    "pci.%d.%d.%d.device is missing", vn->nd_bus, vn->nd_slot,
		    vn->nd_func));
	if (valed_device(value, strlen(value)) == -1)
		return (valed_bad(valed_config_where(vn, VALED_V_DEVICE),
		    UNKNOWN_DEVICE, (int)strlen(value), value));
	value = vn->nd_variable[VALED_V_BACKEND].nt_value;
	if (value == NULL)
		return (valed_bad(valed_config_where(vn, VALED_V_BACKEND),
		    "pci.%d.%d.%d.backend is missing", vn->nd_bus, vn->nd_slot,
		    vn->nd_func));
	return (valed_backend_check(valed_config_where(vn, VALED_V_BACKEND),
	    value));
}

/* Add an interface, of a kind, or of the default one if that is NULL. */
static bool
add_hostif(struct valed_options *opt, const char *port, size_t len,
    const char *kind, struct valed_where where)
{
	struct hostif_config *hc = &opt->vo_hostifs[opt->vo_nhostifs];
	char name[VALE_NAME_SIZE + 1];
	const char *error;

	if (opt->vo_nhostifs == HOSTIF_MAX)
		return (valed_bad(where, "more than %d interfaces",
		    HOSTIF_MAX));
	snprintf(name, sizeof(name), "%.*s", (int)MIN(len, VALE_NAME_SIZE),
	    port);
	error = vale_name_error(name);
	if (error != NULL)
		return (valed_bad(where, "%.*s: %s", (int)len, port, error));
	memset(hc, 0, sizeof(*hc));
	memcpy(hc->hc_port, name, len);
	snprintf(hc->hc_where, sizeof(hc->hc_where), "%s%s", where.wh_option,
	    where.wh_option[0] != '\0' ? hc->hc_port : where.wh_text);
	peer_log_clean(hc->hc_where, strlen(hc->hc_where), false);
	if (strlen(hostif_config_name(hc)) >= HOSTIF_NAME_SIZE)
		return (valed_bad(where, "%s: not an interface's name",
		    hostif_config_name(hc)));
	hc->hc_line = where.wh_option[0] == '\0';
	if (kind != NULL && hostif_kind(kind, &hc->hc_kind) == -1)
		return (valed_bad(where, "kind=%s: no such kind", kind));
	opt->vo_nhostifs++;
	return (true);
}

/* Parse one -a option. */
static void
parse_attach(struct valed_options *opt, const char *s)
{
	const struct valed_where where = { "-a ", s };
	const size_t len = strcspn(s, ",");
	const char *kind = s[len] == '\0' ? NULL : s + len + 1;

	if (kind == NULL)
		add_hostif(opt, s, len, NULL, where);
	else if (strncmp(kind, "kind=", strlen("kind=")) == 0)
		add_hostif(opt, s, len, kind + strlen("kind="), where);
	else
		valed_bad(where, "unknown option \"%s\"", kind);
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
	struct adapter_config *ac = opt->vo_adapters;
	const char *name;
	unsigned int i, j;

	for (i = 0; i < opt->vo_nadapters; i++) {
		name = port_name(&ac[i]);
		for (j = 0; j < opt->vo_nadapters; j++)
			if (j != i && strcmp(port_name(&ac[i]),
			    port_name(&ac[j])) == 0)
				name = ac[i].ac_backend;
		strlcpy(ac[i].ac_name, name, sizeof(ac[i].ac_name));
	}
}

static void
bad_hostif(const struct hostif_config *hc, const char *why)
{
	valed_wrong(strncmp(hc->hc_where, "-a ", 3) == 0 ||
	    strncmp(hc->hc_where, "-o ", 3) == 0 ? EX_USAGE : EX_CONFIG,
	    "%s: %s", hc->hc_where, why);
}

/* Check that no interface shares a port or is attached twice. */
static void
check_hostifs(const struct valed_options *opt)
{
	const struct hostif_config *hc = opt->vo_hostifs;
	unsigned int i, j;

	for (i = 0; i < opt->vo_nhostifs; i++) {
		for (j = 0; j < opt->vo_nadapters; j++)
			if (strcmp(hc[i].hc_port,
			    opt->vo_adapters[j].ac_backend) == 0)
				bad_hostif(&hc[i], "port used twice");
		for (j = 0; j < i; j++)
			if (strcmp(hostif_config_name(&hc[i]),
			    hostif_config_name(&hc[j])) == 0)
				bad_hostif(&hc[i], "interface used twice");
	}
}

/* Check that there may be another adapter. */
static bool
check_space(const struct valed_options *opt, struct valed_where where)
{
	return (opt->vo_nadapters < VALED_MAXADAPTERS || valed_bad(where,
	    "more than %d adapters", VALED_MAXADAPTERS));
}

/* Add an adapter to the list. */
static void
add_adapter(struct valed_options *opt, const struct valed_node *vn)
{
	struct adapter_config *ac = &opt->vo_adapters[opt->vo_nadapters];
	unsigned int i;

	valed_values(ac, vn);
	for (i = 0; i < opt->vo_nadapters; i++)
		valed_values_twice(ac, &opt->vo_adapters[i], checking);
	opt->vo_nadapters++;
}

static void
add_slot(struct valed_options *opt, const char *s)
{
	const struct valed_node *vn = NULL;

	if (check_space(opt, (struct valed_where){ "-s ", s }))
		vn = parse_slot(s);
	if (vn != NULL && valed_config_ok())
		add_adapter(opt, vn);
}

static void
add_nodes(struct valed_options *opt)
{
	const struct valed_node *vn;

	for (vn = valed_config_next(NULL); vn != NULL &&
	    check_space(opt, valed_config_where(vn, VALED_V_DEVICE)) &&
	    check_node(vn); vn = valed_config_next(vn))
		add_adapter(opt, vn);
}

/* Add the interfaces of lines. */
static void
add_attached(struct valed_options *opt)
{
	const struct valed_line *ln, *lines;
	unsigned int n = valed_config_lines(&lines);

	for (ln = lines; n > 0; ln++, n--)
		if (ln->ln_of == VALED_OF_ATTACH)
			add_hostif(opt, ln->ln_name, strlen(ln->ln_name),
			    ln->ln_value, valed_line_where(ln));
}

static void
set_control(struct valed_options *opt, const char *s)
{
	static struct control_config co;
	const char *error = "one path is needed";

	if (opt->vo_control == NULL)
		error = valed_control_parse(&co, s);
	if (error != NULL)
		valed_wrong(EX_USAGE, "-c %s: %s", s, error);
	opt->vo_control = &co;
}

static void
bad_option(char **argv)
{
	const char *arg = argv[optind - 1];

	if (strncmp(arg, "--", 2) == 0)
		valed_wrong(EX_USAGE, "unknown option %s", arg);
	else
		valed_wrong(EX_USAGE, "unknown option -%c", optopt);
}

/*
 * Look for -t and -T: the options before it are checked as those after it.
 * With --takes what is inherited is there, and is checked, too.
 */
static bool
look_for_check(int argc, char **argv)
{
	bool found = false, inherits = false;
	int ch;

	optind = 0;
	while ((ch = getopt_long(argc, argv, shortopts, longopts,
	    NULL)) != -1) {
		found |= ch == 't' || ch == 'T';
		inherits |= ch == OPTION_TAKES;
	}
	valed_activation_ignore(found && !inherits);
	return (found);
}

/* Check that this program goes on from states of this version. */
static void
takes(const char *version)
{
	if (strcmp(version, ADAPTER_VERSION) != 0)
		valed_wrong(EX_DATAERR, "cannot go on from the state of this "
		    "valed: its version is %s, not %s", version,
		    ADAPTER_VERSION);
}

/* Take an option. */
static void
option(struct valed_options *opt, int ch, char **argv)
{
	switch (ch) {
	case 'a':
		parse_attach(opt, optarg);
		break;
	case 'c':
		set_control(opt, optarg);
		break;
	case 'h':
		opt->vo_tell = VALED_USAGE;
		break;
	case 'k':
		valed_config_file(optarg);
		opt->vo_file = true;
		break;
	case 'o':
		valed_config_option(optarg);
		break;
	case 'R':
		opt->vo_supervised = true;
		break;
	case 's':
		add_slot(opt, optarg);
		break;
	case 'T':
		opt->vo_print = true;
		break;
	case 't':
		break;
	case 'v':
		opt->vo_verbose = true;
		break;
	case OPTION_TAKES:
		takes(optarg);
		break;
	case OPTION_VERSION:
		opt->vo_tell = VALED_VERSION;
		break;
	case ':':
		valed_wrong(EX_USAGE, "-%c: the value is missing", optopt);
		break;
	default:
		bad_option(argv);
		break;
	}
}

/* Take options up to the end, a wrong one, -h or --version. */
static void
options(struct valed_options *opt, int argc, char **argv)
{
	int ch;

	opterr = 0;
	opt->vo_check = checking = look_for_check(argc, argv);
	optind = 0;
	while (valed_config_ok() && opt->vo_tell == VALED_NOTHING &&
	    (ch = getopt_long(argc, argv, shortopts, longopts, NULL)) != -1)
		option(opt, ch, argv);
	if (optind < argc && opt->vo_tell == VALED_NOTHING)
		valed_wrong(EX_USAGE, "%s: unexpected argument", argv[optind]);
}

/* Make the configuration of all variables. */
static void
variables(struct valed_options *opt)
{
	add_nodes(opt);
	add_attached(opt);
	if (opt->vo_nadapters + opt->vo_nhostifs == 0 &&
	    opt->vo_control == NULL && !opt->vo_file)
		valed_wrong(EX_USAGE, "-s, -a, -c, -k: one of them is needed: "
		    "see valed -h and valed(7)");
	check_hostifs(opt);
	valed_settings(&opt->vo_settings, opt->vo_adapters,
	    opt->vo_nadapters);
	give_names(opt);
}

bool
valed_options(int argc, char **argv, struct valed_options *opt,
    struct valed_why *why)
{
	*opt = (struct valed_options){
	    .vo_adapters = calloc(VALED_MAXADAPTERS, sizeof(*opt->vo_adapters)),
	    .vo_hostifs = calloc(HOSTIF_MAX, sizeof(*opt->vo_hostifs)) };
	valed_config_begin(why);
	if (opt->vo_adapters == NULL || opt->vo_hostifs == NULL)
		valed_wrong(EX_OSERR, "%s", strerror(errno));
	else
		options(opt, argc, argv);
	if (valed_config_ok() && opt->vo_tell == VALED_NOTHING)
		variables(opt);
	if (!valed_config_ok())
		valed_options_free(opt);
	return (valed_config_ok());
}

void
valed_options_free(struct valed_options *opt)
{
	free(opt->vo_adapters);
	free(opt->vo_hostifs);
	free(opt->vo_settings.vss_list);
}
