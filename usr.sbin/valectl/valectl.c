/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The command line, and requests about one port or switch.
 *
 * The letters, and the output of a list, are those of FreeBSD's valectl(8).
 * Each request is netmap's own, as that program makes it with ioctl(2).
 */

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "hostif.h"
#include "vale_client.h"
#include "vale_setting.h"
#include "vale_version.h"
#include "valectl.h"

/* How long to wait until valed ends, and until it has started again. */
#define	RESTART_MS	10000
#define	RESTART_TRIES	500

/* Restarts of valed in a row, during one request. */
#define	TRIES		5

static const char usage_begin[] =
    "usage: valectl [-c socket] [-j]\n"
    "       valectl [-c socket] [-j] -l valeSSS:PPP|all\n"
    "       valectl [-c socket] [-j] -g valeSSS:PPP\n"
    "       valectl [-c socket] [-j] -k valeSSS[:PPP]|all\n"
    "       valectl [-c socket] [-j] -t valeSSS\n"
    "       valectl [-c socket] [-j] -s valeSSS|all [interval [count]]\n"
    "       valectl [-c socket] -a valeSSS:interface[,kind=kind]\n"
    "       valectl [-c socket] -d valeSSS:interface\n"
    "       valectl [-c socket] [-j] -o valeSSS[:PPP] [setting[=value] ...]\n"
    "       valectl [-c socket] --events\n"
    "       valectl [-c socket] --openmetrics[=text|http]\n"
    "       valectl [-c socket] --save file\n"
    "       valectl [-c socket] reload [--replace]\n"
    "       valectl [-c socket] restart\n"
    "\n"
    "  without a verb, a table of all ports\n"
    "  -l  a port's place in the list of ports, or that list\n"
    "  -g  a port's rings\n"
    "  -k  the counters of a port, or of a switch's ports, or of everything\n"
    "  -t  the addresses that a switch has learned\n"
    "  -s  the rates of a switch's ports, each second or interval\n"
    "  -a  attach an interface of the host\n"
    "  -d  detach it\n"
    "  -o  change settings, or show them\n";
static const char usage_end[] =
    "  --save  write settings that are in force to valed's file\n"
    "  reload  have valed read its files again, and wait for that\n"
    "  --replace  disconnect clients of adapters that take it\n"
    "  restart  have valed -R start again, and wait for that\n"
    "  -c  valed's control socket, in place of that of the environment,\n"
    "      VALE_SOCKET\n"
    "  --events    what happens, as JSON, one object on each line\n"
    "  -h, --help  print this\n"
    "  -j, --json  print JSON\n"
    "  --openmetrics  all counters as OpenMetrics, or as Prometheus's text,\n"
    "      or a reply to an HTTP request on stdin\n"
    "  --version   print the version\n";

enum {
	OPTION_VERSION = 256,		/* no letter */
	OPTION_EVENTS,
	OPTION_METRICS,
	OPTION_SAVE,
	OPTION_REPLACE,
	OPTION_RELOAD,			/* words */
	OPTION_RESTART
};

void
vc_fail(void)
{
	char why[1280];

	if (vale_find_error(errno, why, sizeof(why)))
		errx(EX_UNAVAILABLE, "%s", why);
	err(EX_UNAVAILABLE, "%s", vale_find_path());
}

bool
vc_again(unsigned int *tries)
{
	return ((errno == EPIPE || errno == ECONNRESET) && (*tries)++ < TRIES);
}

/* Make a request about `name'; a failure ends the program. */
static void
request(const char *name, uint16_t type, struct vale_client_call *call)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = type };
	int fd;

	if (strlcpy(hdr.nr_name, name, sizeof(hdr.nr_name)) >=
	    sizeof(hdr.nr_name))
		errx(EX_USAGE, "%s: more than %zu characters", name,
		    sizeof(hdr.nr_name) - 1);
	call->hdr = &hdr;
	fd = vale_client_connect(vale_find_path());
	if (fd == -1)
		vc_fail();
	if (vale_client_call(fd, call) == -1) {
		if (call->why[0] != '\0')
			errx(EX_DATAERR, "%s: %s", name, call->why);
		err(EX_PROTOCOL, "%s", name);
	}
	close(fd);
}

/* Show a port's place, as -l of FreeBSD's valectl(8). */
static void
show_place(const char *name, bool json)
{
	struct nmreq_vale_list list = { .nr_bridge_idx = 0 };
	struct vale_client_call call = { .body = &list, .size = sizeof(list),
	    .reply = &list, .reply_max = sizeof(list) };

	request(name, NETMAP_REQ_VALE_LIST, &call);
	if (json)
		printf("{\"bridge_idx\": %u, \"port_idx\": %u}\n",
		    list.nr_bridge_idx, list.nr_port_idx);
	else
		printf("bridge_idx: %u\nport_idx:   %u\n", list.nr_bridge_idx,
		    list.nr_port_idx);
}

/* Show a port's rings, as -g of FreeBSD's valectl(8). */
static void
show_rings(const char *name, bool json)
{
	struct nmreq_port_info_get info = { .nr_tx_slots = 0 };
	struct vale_client_call call = { .reply = &info,
	    .reply_max = sizeof(info) };

	request(name, NETMAP_REQ_PORT_INFO_GET, &call);
	printf(json ? "{\"tx_slots\": %u, \"rx_slots\": %u, "
	    "\"tx_rings\": %u, \"rx_rings\": %u}\n" :
	    "tx_slots:   %u\nrx_slots:   %u\n"
	    "tx_rings:   %u\nrx_rings:   %u\n", info.nr_tx_slots,
	    info.nr_rx_slots, info.nr_tx_rings, info.nr_rx_rings);
}

bool
vc_number(const char *s, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(s, &end, 10);
	return (isdigit((unsigned char)*s) && *end == '\0' && errno == 0);
}

/* Open the interface, with the privileges of the user, and pass it to valed. */
static void
attach(char *name)
{
	enum hostif_kind how = HOSTIF_AUTO;
	struct vale_client_call call = { .nfds = 0 };
	struct hostif_fds fds;
	char why[HOSTIF_WHY];
	char *ifname, *kind = strchr(name, ',');

	if (kind != NULL) {
		*kind++ = '\0';
		if (strncmp(kind, "kind=", 5) != 0 ||
		    hostif_kind(kind + 5, &how) == -1)
			errx(EX_USAGE, "%s: not kind= and a kind", kind);
	}
	if (vale_name_error(name) != NULL)
		errx(EX_USAGE, "%s: %s", name, vale_name_error(name));
	ifname = strchr(name, ':') + 1;
	if (hostif_open(ifname, how, &fds, why) == -1)
		errx(EX_UNAVAILABLE, "%s: %s", name, why);
	if (hostif_warning(&fds, why))
		warnx("%s: %s", name, why);
	call.body = &fds;
	call.size = sizeof(fds);
	call.nfds = fds.hf_nfds;
	memcpy(call.fds, fds.hf_fd, fds.hf_nfds * sizeof(fds.hf_fd[0]));
	request(name, NETMAP_REQ_VALE_ATTACH, &call);
	hostif_close(&fds);
}

static void
detach(const char *name)
{
	struct vale_client_call call = { .nfds = 0 };

	request(name, NETMAP_REQ_VALE_DETACH, &call);
}

/*
 * Make a request whose reply is an error, or nothing.  Returns the connection,
 * unless there is an error.
 */
static int
ask(uint16_t reqtype, const char *verb)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = reqtype };
	static char text[VALE_CLIENT_BODY + 1];
	struct vale_client_call call = { .hdr = &hdr, .reply = text,
	    .reply_max = VALE_CLIENT_BODY };
	int fd = vale_client_connect(vale_find_path());

	if (fd == -1)
		vc_fail();
	if (vale_client_call(fd, &call) == -1) {
		if (call.why[0] != '\0')
			errx(EXIT_FAILURE, "%s", call.why);
		/* A restart may have come before the answer. */
		if (reqtype != VALE_WIRE_RESTART || errno != EPIPE)
			err(EX_PROTOCOL, "%s", verb);
	}
	vale_client_text(text, sizeof(text));
	if (text[0] != '\0')
		errx(EXIT_FAILURE, "%s", text);
	return (fd);
}

/* Reload: the first error is that of a file, or of what it changes. */
static void
reload(bool replace)
{
	close(ask(replace ? VALE_WIRE_REPLACE : VALE_WIRE_RELOAD, "reload"));
}

/* Return whether valed answers, be it with an error. */
static bool
answers(void)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = VALE_WIRE_MISSED };
	struct vale_client_call call = { .hdr = &hdr };
	int fd = vale_client_connect(vale_find_path());
	bool answered;

	if (fd == -1)
		return (false);
	answered = vale_client_call(fd, &call) == 0 || call.why[0] != '\0';
	close(fd);
	return (answered);
}

/*
 * Restart: the process ends, and with it the connection.  Its socket stays: the
 * next process answers there when it serves.
 */
static void
restart(void)
{
	struct pollfd pfd = { .events = POLLIN };
	int tries;

	pfd.fd = ask(VALE_WIRE_RESTART, "restart");
	if (poll(&pfd, 1, RESTART_MS) != 1)
		errx(EXIT_FAILURE, "valed does not end");
	close(pfd.fd);
	for (tries = 0; tries < RESTART_TRIES; tries++) {
		if (answers())
			return;
		poll(NULL, 0, RESTART_MS / RESTART_TRIES);
	}
	errx(EXIT_FAILURE, "valed does not answer after its restart");
}

/* Print the settings of switches or of ports. */
static void
usage_settings(const char *of, enum vale_setting_scope scope)
{
	const struct vale_setting *se = vale_setting_table;

	printf("        of a %s:\n", of);
	for (; se < vale_setting_table + VALE_NSETTINGS; se++)
		if (se->se_scope == scope)
			printf("          %s=%s\n", se->se_name, se->se_arg);
}

/* Help, or refuse -h with an argument, as FreeBSD's valectl has it. */
static void __dead2
help(int argc, char **argv, int next)
{
	if (next < argc)
		errx(EX_USAGE, "-h %s: the host's stack is attached by a veth "
		    "pair: see valectl(8)", argv[next]);
	fputs(usage_begin, stdout);
	usage_settings("switch", VALE_OF_SWITCH);
	usage_settings("port", VALE_OF_PORT);
	fputs(usage_end, stdout);
	exit(EX_OK);
}

/* Return what a verb is called; `letter' has space for an option's. */
static const char *
option_name(int verb, char letter[3])
{
	if (verb == OPTION_EVENTS)
		return ("--events");
	if (verb == OPTION_METRICS)
		return ("--openmetrics");
	if (verb == OPTION_SAVE)
		return ("--save");
	snprintf(letter, 3, "-%c", verb);
	return (letter);
}

/* Write metrics, with --openmetrics. */
static void
metrics(const char *form)
{
	if (form == NULL)
		vc_show_metrics(true);
	else if (strcmp(form, "text") == 0)
		vc_show_metrics(false);
	else if (strcmp(form, "http") == 0)
		vc_http();
	else
		errx(EX_USAGE, "--openmetrics=%s: not text or http", form);
}

/* Parse a number of seconds or of reports. */
static unsigned int
operand(const char *s, unsigned int max)
{
	uint64_t n;

	if (!vc_number(s, &n) || n == 0 || n > max)
		errx(EX_USAGE, "%s: not a number from 1 to %u", s, max);
	return (n);
}

static const char shortopts[] = ":a:c:d:g:hjk:l:o:s:t:";

/* End if getopt_long(3) refuses an option; a long one is `arg'. */
static void __dead2
bad_option(const char *arg)
{
	if (optopt == 0)
		errx(EX_USAGE, "unknown option %s: see valectl -h", arg);
	if (optopt >= OPTION_VERSION || strchr(shortopts, optopt) != NULL)
		errx(EX_USAGE, "%s: the option takes no value", arg);
	errx(EX_USAGE, "unknown option -%c: see valectl -h", optopt);
}

int
main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "events", no_argument, NULL, OPTION_EVENTS },
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ "openmetrics", optional_argument, NULL, OPTION_METRICS },
		{ "replace", no_argument, NULL, OPTION_REPLACE },
		{ "save", required_argument, NULL, OPTION_SAVE },
		{ "version", no_argument, NULL, OPTION_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	unsigned int count = 0, interval_s = 1;
	char *name = NULL;
	bool json = false, replace = false;
	char first[3], second[3];
	int ch, i, max, verb = 0;

	opterr = 0;
	while ((ch = getopt_long(argc, argv, shortopts, longopts,
	    NULL)) != -1) {
		switch (ch) {
		case 'c':
			setenv(VALE_WIRE_ENV, optarg, 1);
			break;
		case 'h':
			help(argc, argv, optind);
		case 'j':
			json = true;
			break;
		case OPTION_REPLACE:
			replace = true;
			break;
		case OPTION_VERSION:
			puts("valectl " VALE_VERSION);
			exit(EX_OK);
		case ':':
			if (optopt == OPTION_SAVE)
				errx(EX_USAGE, "--save: the file is missing");
			errx(EX_USAGE, "-%c: the name is missing", optopt);
		case '?':
			bad_option(argv[optind - 1]);
		default:
			if (verb != 0)
				errx(EX_USAGE, "%s and %s: one of them",
				    option_name(verb, first), option_name(ch,
				    second));
			verb = ch;
			name = optarg;
			break;
		}
	}
	argc -= optind;
	argv += optind;
	if (verb == 0 && argc > 0 && strcmp(argv[0], "reload") == 0)
		verb = OPTION_RELOAD;
	if (verb == 0 && argc > 0 && strcmp(argv[0], "restart") == 0)
		verb = OPTION_RESTART;
	max = verb == 's' ? 2 : verb == 'o' ? INT_MAX :
	    verb == OPTION_RELOAD || verb == OPTION_RESTART ? 1 : 0;
	if (replace && verb != OPTION_RELOAD)
		errx(EX_USAGE, "--replace: only with reload");
	if (argc > max)
		errx(EX_USAGE, "%s: unexpected argument%s", argv[max],
		    verb == 0 ? ": see valectl -h; without arguments, the "
		    "ports are listed" : "");
	switch (verb) {
	case 0:
		if (json)
			vc_show_ports(true);
		else
			vc_show_table();
		break;
	case 'a':
		attach(name);
		break;
	case 'd':
		detach(name);
		break;
	case 'g':
		show_rings(name, json);
		break;
	case 'k':
		if (strcmp(name, "all") == 0)
			vc_show_all(json);
		else
			vc_show_counters(name, json);
		break;
	case 'l':
		if (strcmp(name, "all") == 0)
			vc_show_ports(json);
		else
			show_place(name, json);
		break;
	case 'o':
		if (argc == 0)
			vc_show_settings(name, NULL, json);
		vc_set(name, argv, argc);
		for (i = 0; i < argc; i++)
			if (strchr(argv[i], '=') == NULL)
				vc_show_settings(name, argv[i], json);
		break;
	case 's':
		if (argc > 0)
			interval_s = operand(argv[0], 86400);
		if (argc > 1)
			count = operand(argv[1], UINT32_MAX);
		vc_live(strcmp(name, "all") == 0 ? NULL : name, interval_s,
		    count, json);
		break;
	case 't':
		vc_show_addrs(name, json);
		break;
	case OPTION_EVENTS:
		vc_events();
	case OPTION_METRICS:
		metrics(name);
		break;
	case OPTION_SAVE:
		vc_save(name);
		break;
	case OPTION_RELOAD:
		reload(replace);
		break;
	case OPTION_RESTART:
		restart();
		break;
	}
	if (fflush(stdout) != 0)
		err(EX_IOERR, "stdout");
	return (EX_OK);
}
