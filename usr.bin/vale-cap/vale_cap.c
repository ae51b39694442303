/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * vale-cap: write what ports of valed's switches send and get to pcapng files,
 * through a monitor of each port (libvale.h).
 *
 *	vale_cap.c	options, and the capture
 *	cap_filter.c	filter expressions
 *	cap_files.c	the file, or the files
 *	cap_extcap.c	what Wireshark asks
 *	pcapng.c	the format
 *
 * One thread takes a ring's worth of frames from each monitor in turn, and
 * waits when none has any; then the file is up to date.  A frame has the time
 * at which it was found in the ring.
 *
 * All that takes privileges or names is done first: the filter is compiled, and
 * the monitors are opened.  Then they are dropped, and the file is created.
 */

#include <sys/param.h>

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "cap_extcap.h"
#include "cap_files.h"
#include "cap_filter.h"
#include "libvale.h"
#include "pcapng.h"
#include "vale_find.h"
#include "vale_version.h"

#define	PORTS_MAX	64
#define	SLOTS_DEFAULT	4096
#define	MB		1000000		/* as of tcpdump's -C */
#define	MB_MAX		1000000
#define	SECONDS_MAX	31536000
#define	FILES_MAX	100000

/*
 * How long to wait for ports when valed has restarted, and between two tries.
 */
#define	REOPEN_MS	10000
#define	REOPEN_WAIT_MS	100

static const char usage_text[] =
    "usage: vale-cap [-c socket] [-C megabytes] [-G seconds] [-n count]\n"
    "                [-Q in|out|inout] [-r slots] [-s bytes] [-w file]\n"
    "                [-W files] [-Z user] valeSSS:PPP ... [expression]\n"
    "\n"
    "  -c  valed's control socket, in place of that of the environment,\n"
    "      VALE_SOCKET\n"
    "  -C  begin another file after so many million bytes\n"
    "  -G  begin another file after so many seconds\n"
    "  -n  end after so many frames\n"
    "  -Q  what the ports get, what they send, or both, the default\n"
    "  -r  slots of a monitor's ring; default 4096\n"
    "  -s  bytes that are kept of a frame; default all\n"
    "  -w  the file to write; default or -: the standard output\n"
    "  -W  with -C, keep the last so many files; with -G alone, end after\n"
    "      so many\n"
    "  -Z  go on as this user when the ports are open, if run by root\n"
    "  -h, --help  print this\n"
    "  --version   print the version\n"
    "\n"
    "Frames that the expression of pcap-filter(7) does not match are not\n"
    "copied.\n";

/* Options without a letter.  Wireshark gives those of extcap(4). */
enum {
	OPTION_VERSION = 256,
	OPTION_INTERFACES,
	OPTION_DLTS,
	OPTION_CONFIG,
	OPTION_CAPTURE,
	OPTION_INTERFACE,
	OPTION_FILTER,
	OPTION_EXTCAP_VERSION
};

struct options {
	struct cap_files files;
	uint64_t	 count;		/* frames */
	unsigned int	 what;		/* VALE_MIRROR_* */
	uint32_t	 slots;
	uint32_t	 snaplen;	/* 0: all */
	const char	*user;		/* or NULL */
	int		 extcap;	/* OPTION_*, or 0 */
	char		*interface;	/* of extcap, or NULL */
	const char	*expression;	/* or NULL */
};

struct capture {
	struct cap_files *files;
	unsigned int	 what;		/* VALE_MIRROR_* */
	uint32_t	 snaplen;	/* 0: all */
	uint64_t	 left;		/* frames until the end */
	uint64_t	 frames;
	const struct bpf_program *filter; /* or NULL */
	uint32_t	 slots;
	const char	*user;		/* whom it has become, or NULL */
	unsigned int	 nports;
	struct {
		const char	*name;
		struct vale_desc *monitor;
		bool		 filter;	/* the switch cannot run it */
		uint64_t	 frames;
	}		 port[PORTS_MAX];
};

static int stop_pipe[2];

static void
stop(int sig __unused)
{
	const int error = errno;

	(void)!write(stop_pipe[1], "", 1);
	errno = error;
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/*
 * Take a frame from the ring, of one slot or several.  Returns its length, and
 * as much of it in `buf' as fits in `size'.
 */
static uint32_t
take(struct netmap_ring *ring, uint8_t *buf, uint32_t size)
{
	const struct netmap_slot *slot;
	uint32_t len = 0, n;
	bool more;

	do {
		slot = &ring->slot[ring->head];
		more = (slot->flags & NS_MOREFRAG) != 0;
		if (len < size) {
			n = MIN(slot->len, size - len);
			memcpy(buf + len, NETMAP_BUF(ring, slot->buf_idx), n);
		}
		len += slot->len;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	} while (more && ring->head != ring->tail);
	return (len);
}

/* Begin a file. */
static void
file_begin(const struct capture *c)
{
	FILE *f = c->files->cf_file;
	unsigned int i;

	pcapng_begin(f, "vale-cap");
	for (i = 0; i < c->nports; i++)
		pcapng_interface(f, c->port[i].monitor->common->name,
		    c->snaplen);
	cap_files_flush(c->files);
}

/* End it.  Returns how many frames have been dropped since the first. */
static uint64_t
file_end(const struct capture *c)
{
	uint64_t dropped = 0, missed;
	unsigned int i;

	for (i = 0; i < c->nports; i++) {
		missed = vale_missed(c->port[i].monitor);
		pcapng_statistics(c->files->cf_file, i, now_ns(),
		    c->port[i].frames, missed);
		dropped += missed;
	}
	cap_files_flush(c->files);
	return (dropped);
}

/* Begin the next file if it is time.  False: the last one is complete. */
static bool
file_next(const struct capture *c)
{
	if (!cap_files_due(c->files))
		return (true);
	if (cap_files_last(c->files))
		return (false);
	(void)file_end(c);
	cap_files_next(c->files);
	file_begin(c);
	return (true);
}

/* Return, without waiting, whether a signal says to stop. */
static bool
stopped(void)
{
	struct pollfd pfd = { .fd = stop_pipe[0], .events = POLLIN };

	return (poll(&pfd, 1, 0) == 1);
}

/*
 * Open the monitor of port number `i'.  The filter may be too long for the
 * switch, or jump back, as that of "protochain" does: then this program runs
 * the filter.
 */
static struct vale_desc *
monitor_open(struct capture *c, unsigned int i)
{
	struct vale_params params = { .rx_slots = c->slots,
	    .monitor = c->what };
	const char *name = c->port[i].name;
	struct vale_desc *d;

	if (c->filter == NULL)
		return (vale_open(name, &params));
	cap_filter_params(c->filter, &params);
	d = vale_open(name, &params);
	if (d != NULL || (errno != E2BIG && errno != EINVAL))
		return (d);
	params.filter_len = 0;
	c->port[i].filter = true;
	return (vale_open(name, &params));
}

/*
 * Open all monitors again, of the valed that takes the place of one that has
 * ended, for which the connections wait.  Ports of programs come after that.
 * Returns false with errno.
 */
static bool
reopen(struct capture *c)
{
	unsigned int i, ms;

	for (i = 0; i < c->nports; i++)
		vale_close(c->port[i].monitor);
	for (i = 0, ms = 0; i < c->nports;) {
		c->port[i].filter = false;
		c->port[i].monitor = monitor_open(c, i);
		if (c->port[i].monitor != NULL) {
			i++;
			continue;
		}
		if ((errno != ENXIO && errno != EPIPE &&
		    errno != ECONNRESET) || stopped() || ms >= REOPEN_MS)
			return (false);
		poll(NULL, 0, REOPEN_WAIT_MS);
		ms += REOPEN_WAIT_MS;
	}
	warnx("valed has restarted");
	return (true);
}

/* End: a port is lost, with errno. */
static void __dead2
lost(const struct capture *c, const char *name)
{
	if (c->user != NULL && (errno == EPERM || errno == EACCES))
		errx(EX_NOPERM, "%s: valed has restarted, and only "
		    "administrators of valed may capture it: -Z %s", name,
		    c->user);
	err(EX_UNAVAILABLE, "%s", name);
}

/*
 * Write what is in the ring of port number `i', up to the end of the last file.
 * False: there was nothing, and its descriptor tells of the next one.
 */
static bool
capture_port(struct capture *c, unsigned int i)
{
	static uint8_t buf[VALE_FRAME_MAX];
	struct netmap_ring *ring = c->port[i].monitor->rxring;
	struct pcapng_packet p = { .interface = i, .data = buf,
	    .way = c->what == VALE_MIRROR_RX ? PCAPNG_IN :
	    c->what == VALE_MIRROR_TX ? PCAPNG_OUT : PCAPNG_UNKNOWN };

	if (vale_rxsync(c->port[i].monitor) == -1) {
		if (errno != ENXIO || !reopen(c))
			lost(c, c->port[i].name);
		/* None would tell of a frame before a sync. */
		return (true);
	}
	if (ring->head == ring->tail)
		return (false);
	p.time_ns = now_ns();
	while (ring->head != ring->tail && c->left > 0) {
		p.len = take(ring, buf, sizeof(buf));
		p.captured = MIN(p.len, sizeof(buf));
		if (c->port[i].filter &&
		    !cap_filter_passes(c->filter, buf, p.captured))
			continue;
		if (!file_next(c)) {
			c->left = 0;
			break;
		}
		if (c->snaplen != 0)
			p.captured = MIN(p.captured, c->snaplen);
		pcapng_packet(c->files->cf_file, &p);
		c->port[i].frames++;
		c->frames++;
		c->left--;
	}
	return (true);
}

/*
 * Wait for a frame, or the end of the file's time.  False: stop, after a signal
 * or the end of the reader.
 */
static bool
capture_wait(const struct capture *c)
{
	struct pollfd pfd[2 + PORTS_MAX];
	unsigned int i;

	pfd[0] = (struct pollfd){ .fd = stop_pipe[0], .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = fileno(c->files->cf_file) };
	for (i = 0; i < c->nports; i++)
		pfd[2 + i] = (struct pollfd){ .fd = c->port[i].monitor->fd,
		    .events = POLLIN };
	while (poll(pfd, 2 + c->nports, cap_files_wait(c->files)) == -1)
		if (errno != EINTR)
			err(EX_OSERR, "poll");
	return (pfd[0].revents == 0 && pfd[1].revents == 0);
}

static void
capture(struct capture *c)
{
	unsigned int i;
	bool found;

	for (;;) {
		found = false;
		for (i = 0; i < c->nports; i++)
			found |= capture_port(c, i);
		if (c->left == 0 ||
		    (found && (stopped() || cap_files_left(c->files))))
			return;
		if (found)
			continue;
		cap_files_flush(c->files);
		if (!capture_wait(c) || !file_next(c))
			return;
	}
}

static void
capture_end(const struct capture *c, bool quiet)
{
	const uint64_t dropped = file_end(c);
	unsigned int i;

	for (i = 0; i < c->nports; i++)
		vale_close(c->port[i].monitor);
	cap_files_close(c->files);
	/* Wireshark takes what is there for an error. */
	if (!quiet)
		fprintf(stderr, "%ju frames captured, %ju dropped\n",
		    (uintmax_t)c->frames, (uintmax_t)dropped);
}

static void
port_open(struct capture *c, const char *name)
{
	const char *error = vale_name_error(name);
	char why[1280];

	if (error != NULL)
		errx(EX_USAGE, "%s: %s", name, error);
	if (c->nports == PORTS_MAX)
		errx(EX_USAGE, "%s: more than %u ports", name, PORTS_MAX);
	c->port[c->nports].name = name;
	c->port[c->nports].monitor = monitor_open(c, c->nports);
	if (c->port[c->nports].monitor == NULL) {
		if (errno == ENXIO)
			errx(EX_DATAERR, "%s: there is no such port", name);
		if (errno == EPERM)
			errx(EX_NOPERM, "%s: only administrators of valed may "
			    "capture it", name);
		if (vale_find_error(errno, why, sizeof(why)))
			errx(EX_UNAVAILABLE, "%s", why);
		err(EX_UNAVAILABLE, "%s", name);
	}
	c->nports++;
}

/* Return the value of option `opt', from `min' to `max'. */
static uint64_t
number(int opt, const char *s, uint64_t min, uint64_t max)
{
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(s, &end, 10);
	if (!isdigit((unsigned char)*s) || *end != '\0' || errno != 0 ||
	    value < min || value > max)
		errx(EX_USAGE, "-%c %s: not a number from %ju to %ju", opt, s,
		    (uintmax_t)min, (uintmax_t)max);
	return (value);
}

static unsigned int
direction(const char *s)
{
	if (strcmp(s, "in") == 0)
		return (VALE_MIRROR_RX);
	if (strcmp(s, "out") == 0)
		return (VALE_MIRROR_TX);
	if (strcmp(s, "inout") == 0)
		return (VALE_MIRROR_BOTH);
	errx(EX_USAGE, "-Q %s: not in, out or inout", s);
}

static void
catch_signals(void)
{
	struct sigaction sa = { .sa_handler = stop };

	if (pipe(stop_pipe) == -1)
		err(EX_OSERR, "pipe");
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	/* The write fails instead. */
	signal(SIGPIPE, SIG_IGN);
}

static const struct option longopts[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "extcap-interfaces", no_argument, NULL, OPTION_INTERFACES },
	{ "extcap-dlts", no_argument, NULL, OPTION_DLTS },
	{ "extcap-config", no_argument, NULL, OPTION_CONFIG },
	{ "extcap-interface", required_argument, NULL, OPTION_INTERFACE },
	{ "extcap-capture-filter", required_argument, NULL, OPTION_FILTER },
	{ "extcap-version", optional_argument, NULL, OPTION_EXTCAP_VERSION },
	{ "capture", no_argument, NULL, OPTION_CAPTURE },
	{ "fifo", required_argument, NULL, 'w' },
	{ "direction", required_argument, NULL, 'Q' },
	{ "slots", required_argument, NULL, 'r' },
	{ NULL, 0, NULL, 0 },
};

static void __dead2
usage(void)
{
	fputs(usage_text, stderr);
	exit(EX_USAGE);
}

/* Take an option. */
static void
option(struct options *o, int ch)
{
	switch (ch) {
	case 'c':
		setenv("VALE_SOCKET", optarg, 1);
		break;
	case 'C':
		o->files.cf_bytes = number(ch, optarg, 1, MB_MAX) * MB;
		break;
	case 'G':
		o->files.cf_seconds = number(ch, optarg, 1, SECONDS_MAX);
		break;
	case 'h':
		fputs(usage_text, stdout);
		exit(EX_OK);
	case 'n':
		o->count = number(ch, optarg, 1, UINT64_MAX);
		break;
	case 'Q':
		o->what = direction(optarg);
		break;
	case 'r':
		o->slots = number(ch, optarg, VALE_SLOTS_MIN, VALE_SLOTS_MAX);
		break;
	case 's':
		o->snaplen = number(ch, optarg, 1, VALE_FRAME_MAX);
		break;
	case 'w':
		o->files.cf_name = optarg;
		break;
	case 'W':
		o->files.cf_max = number(ch, optarg, 1, FILES_MAX);
		break;
	case 'Z':
		o->user = optarg;
		break;
	case OPTION_VERSION:
		puts("vale-cap " VALE_VERSION);
		exit(EX_OK);
	case OPTION_INTERFACES:
	case OPTION_DLTS:
	case OPTION_CONFIG:
	case OPTION_CAPTURE:
		o->extcap = ch;
		break;
	case OPTION_INTERFACE:
		o->interface = optarg;
		break;
	case OPTION_FILTER:
		o->expression = optarg;
		break;
	case OPTION_EXTCAP_VERSION:
		break;
	default:
		usage();
	}
}

/* Answer what Wireshark asks.  Returns false if it captures. */
static bool
extcap(const struct options *o)
{
	switch (o->extcap) {
	case OPTION_INTERFACES:
		cap_extcap_interfaces();
		return (true);
	case OPTION_DLTS:
		cap_extcap_dlts();
		return (true);
	case OPTION_CONFIG:
		cap_extcap_config();
		return (true);
	case OPTION_CAPTURE:
		return (false);
	default:
		if (o->interface == NULL || o->expression == NULL)
			return (false);
		cap_extcap_filter(o->expression);
		return (true);
	}
}

/* Return whether an argument is a port, and not a word of the expression. */
static bool
is_port(const char *arg)
{
	return (strncmp(arg, "vale", 4) == 0 && strchr(arg, ':') != NULL);
}

/* Return the words of the expression, or NULL if there is none. */
static char *
expression(char **words)
{
	char *all = NULL;
	size_t size;
	FILE *f;

	if (*words == NULL)
		return (NULL);
	f = open_memstream(&all, &size);
	if (f == NULL)
		err(EX_OSERR, "%s", *words);
	for (; *words != NULL; words++)
		fprintf(f, "%s ", *words);
	if (fclose(f) != 0)
		err(EX_OSERR, "memory");
	return (all);
}

static void
compile(struct capture *c, const char *text)
{
	char why[256];

	if (text == NULL || *text == '\0')
		return;
	c->filter = cap_filter_compile(text, why, sizeof(why));
	if (c->filter == NULL)
		errx(EX_USAGE, "%s", why);
}

/* Check what the options must agree on. */
static void
options_check(const struct options *o)
{
	const struct cap_files *cf = &o->files;

	if (strcmp(cf->cf_name, "-") == 0 && (cf->cf_bytes > 0 ||
	    cf->cf_seconds > 0 || cf->cf_max > 0))
		errx(EX_USAGE, "-C, -G and -W: there is no file: -w");
	if (cf->cf_max > 0 && cf->cf_bytes == 0 && cf->cf_seconds == 0)
		errx(EX_USAGE, "-W: there is one file: -C or -G");
}

/*
 * Become a user, with the groups that he has, for good.  Who is not root has
 * no privileges to drop, and stays.
 */
static void
become(const char *name)
{
	const struct passwd *pw = getpwnam(name);

	if (pw == NULL)
		errx(EX_NOUSER, "-Z %s: there is no such user", name);
	if (geteuid() != 0)
		return;
	if (initgroups(pw->pw_name, pw->pw_gid) == -1 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) == -1 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) == -1)
		err(EX_OSERR, "-Z %s", name);
}

int
main(int argc, char **argv)
{
	static struct capture c;
	struct options o = { .files = { .cf_name = "-" }, .count = UINT64_MAX,
	    .what = VALE_MIRROR_BOTH, .slots = SLOTS_DEFAULT };
	char *one[2] = { NULL, NULL }, **ports, *text, **words;
	int ch;

	while ((ch = getopt_long(argc, argv, "c:C:G:hn:Q:r:s:w:W:Z:", longopts,
	    NULL)) != -1)
		option(&o, ch);
	if (extcap(&o))
		return (EX_OK);
	ports = argv + optind;
	if (o.extcap != 0) {
		one[0] = o.interface;
		ports = one;
	}
	if (*ports == NULL)
		errx(EX_USAGE, "no port: see vale-cap -h");
	options_check(&o);
	/* The first is a port, whatever it looks like. */
	for (words = ports + 1; *words != NULL && is_port(*words); words++)
		continue;
	c = (struct capture){ .files = &o.files, .what = o.what,
	    .snaplen = o.snaplen, .slots = o.slots, .left = o.count };
	text = expression(words);
	compile(&c, text != NULL ? text : o.expression);
	free(text);
	catch_signals();
	for (; ports < words; ports++)
		port_open(&c, *ports);
	if (o.user != NULL)
		become(o.user);
	c.user = o.user;
	cap_files_open(&o.files);
	file_begin(&c);
	capture(&c);
	capture_end(&c, o.extcap != 0);
	return (EX_OK);
}
