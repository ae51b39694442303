/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * All parsers of options.  An input is text.  Its first byte chooses the
 * parser, and each line after it is
 *
 *	v	an argument of valed, after -s if it has no '-'
 *	b	the rest of "-s 2,e1000," and "-s 2,e1000e," of bhyve
 *	n	the name of a port
 *
 * bhyve's files are compiled so that errx(3) calls a function below, which
 * returns here.  Invariants: valed has EX_USAGE, or of another
 * version in --takes EX_DATAERR, and one message, or options that its manual page
 * allows; the model is created with valid values only; a name is accepted if and
 * only if it is valid.
 */

#include <sys/param.h>

#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter_config.h"
#include "config.h"
#include "e82545.h"
#include "libvale.h"
#include "ops.h"
#include "pci_emul.h"
#include "valed_config.h"
#include "valed_control.h"
#include "valed_options.h"
#include "valed_settings.h"
#include "valed_socket.h"

#define	TEXT_MAX	4096
#define	LINES_MAX	32

static jmp_buf	ended;
static int	status;
static char	message[8192];

/* Memory that a program which exits does not free. */
#define	KEPT_MAX	64
static void	*kept[KEPT_MAX];

/*
 * Replacements of libc's functions, see the Makefile.
 */

void	*fuzz_calloc(size_t n, size_t size);
char	*fuzz_strdup(const char *s);
char	*fuzz_strndup(const char *s, size_t len);
void	fuzz_free(void *p);
void	fuzz_errx(int code, const char *fmt, ...) __attribute__((__noreturn__));
void	fuzz_config_file(const char *path);
struct e82545 *fuzz_create(const struct e82545_config *config,
	    const struct e82545_ops *ops, void *arg);

static void *
keep(void *p)
{
	int i;

	for (i = 0; kept[i] != NULL; i++)
		INVARIANT(i < KEPT_MAX - 1);
	kept[i] = p;
	return (p);
}

void *
fuzz_calloc(size_t n, size_t size)
{
	return (keep(calloc(n, size)));
}

char *
fuzz_strdup(const char *s)
{
	return (keep(strdup(s)));
}

char *
fuzz_strndup(const char *s, size_t len)
{
	return (keep(strndup(s, len)));
}

void
fuzz_free(void *p)
{
	int i;

	for (i = 0; i < KEPT_MAX; i++)
		if (kept[i] == p)
			kept[i] = NULL;
	free(p);
}

static void
kept_free(void)
{
	int i;

	for (i = 0; i < KEPT_MAX; i++)
		fuzz_free(kept[i]);
}

void
fuzz_errx(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	kept_free();
	status = code;
	longjmp(ended, 1);
}

/* No input opens a file. */
void
fuzz_config_file(const char *path)
{
	valed_wrong(EX_USAGE, "-k %s", path);
}

static bool
mac_ok(const uint8_t mac[6])
{
	static const uint8_t none[6];

	return ((mac[0] & 1) == 0 && memcmp(mac, none, sizeof(none)) != 0);
}

/* bhyve's adapter ends here. */
struct e82545 *
fuzz_create(const struct e82545_config *config,
    const struct e82545_ops *ops __unused, void *arg __unused)
{
	INVARIANT(config->ec_itr_256ns <= 65535);
	INVARIANT(config->ec_itr_min_256ns <= 65535);
	INVARIANT(mac_ok(config->ec_mac));
	INVARIANT(config->ec_name != NULL);
	errno = ENOMEM;
	return (NULL);
}

/*
 * bhyve, for pci_e82545.c.
 */

SET_DECLARE(pci_devemu_set, struct pci_devemu);

void *
paddr_guest2host(struct vmctx *ctx __unused, uintptr_t addr __unused,
    size_t len __unused)
{
	return (NULL);
}

int
pci_emul_alloc_bar(struct pci_devinst *pi __unused, int idx __unused,
    enum pcibar_type type __unused, uint64_t size __unused)
{
	return (0);
}

int
pci_emul_add_msicap(struct pci_devinst *pi __unused, int msgnum __unused)
{
	return (0);
}

int
pci_emul_add_pciecap(struct pci_devinst *pi __unused, int type __unused)
{
	return (0);
}

int
pci_emul_add_msixcap(struct pci_devinst *pi __unused, int msgnum __unused,
    int barnum __unused)
{
	return (0);
}

int
pci_msix_enabled(struct pci_devinst *pi __unused)
{
	return (0);
}

int
pci_msix_table_bar(struct pci_devinst *pi __unused)
{
	return (-1);
}

void
pci_generate_msix(struct pci_devinst *pi __unused, int msgnum __unused)
{
}

int
pci_emul_msix_twrite(struct pci_devinst *pi __unused, uint64_t offset __unused,
    int size __unused, uint64_t value __unused)
{
	return (0);
}

uint64_t
pci_emul_msix_tread(struct pci_devinst *pi __unused, uint64_t offset __unused,
    int size __unused)
{
	return (0);
}

void
pci_emul_capwrite(struct pci_devinst *pi __unused, int offset __unused,
    int bytes __unused, uint32_t value __unused, uint8_t capoff __unused,
    int capid __unused)
{
}

void
pci_lintr_request(struct pci_devinst *pi __unused)
{
}

void
pci_lintr_assert(struct pci_devinst *pi __unused)
{
}

void
pci_lintr_deassert(struct pci_devinst *pi __unused)
{
}

int
pci_msi_enabled(struct pci_devinst *pi __unused)
{
	return (0);
}

void
pci_generate_msi(struct pci_devinst *pi __unused, int msgnum __unused)
{
}

/*
 * Names.
 */

static bool
name_part(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) &&
		    strchr("_-.", s[i]) == NULL)
			return (false);
	return (true);
}

/* As netmap(4) has it. */
static bool
name_ok(const char *s)
{
	const char *colon = strchr(s, ':');

	return (strlen(s) < 64 && strncmp(s, "vale", 4) == 0 &&
	    colon != NULL && name_part(s + 4, colon - s - 4) &&
	    colon[1] != '\0' && name_part(colon + 1, strlen(colon + 1)));
}

static void
read_name(const char *line)
{
	const struct vale_params params = { .tx_slots = 2, .rx_slots = 2 };
	struct vale_desc *d;

	d = vale_open(line, &params);
	INVARIANT((d != NULL) == name_ok(line));
	if (d == NULL) {
		INVARIANT(errno == EINVAL);
		return;
	}
	INVARIANT(strcmp(d->common->name, line) == 0);
	vale_close(d);
}

/*
 * valed.
 */

static void
check_vm(const struct adapter_config *vc)
{
	INVARIANT(vc->ac_slot >= 0 && vc->ac_slot <= 31);
	INVARIANT(vc->ac_func >= 0 && vc->ac_func <= 7);
	/* Nothing is inherited, but -t takes a name for it. */
	INVARIANT((vc->ac_path[0] == '\0') == (vc->ac_fd != -1));
	INVARIANT(strnlen(vc->ac_path, sizeof(vc->ac_path)) <
	    sizeof(vc->ac_path));
	INVARIANT(mac_ok(vc->ac_mac));
	INVARIANT(vc->ac_mtu == 0 ||
	    (vc->ac_mtu >= 68 && vc->ac_mtu <= 16110));
	INVARIANT(vc->ac_itr_256ns <= 65535);
	INVARIANT(vc->ac_itr_min_256ns <= 65535);
	INVARIANT(vc->ac_poll_us <= 1000);
	INVARIANT(vc->ac_mem >= 1 << 20);
	INVARIANT(name_ok(vc->ac_backend) ||
	    (strncmp(vc->ac_backend, "tap", 3) == 0 &&
	    strlen(vc->ac_backend) < 16 &&
	    name_part(vc->ac_backend, strlen(vc->ac_backend))));
	INVARIANT(vc->ac_name[0] != '\0');
}

static void
check_control(const struct control_config *co)
{
	INVARIANT(strnlen(co->co_path, sizeof(co->co_path)) <
	    sizeof(co->co_path));
	INVARIANT((co->co_path[0] == '\0') != (co->co_fd == -1));
	INVARIANT(co->co_access.va_mode == VALED_NOMODE ||
	    (co->co_fd == -1 && co->co_access.va_mode <= 0777));
	INVARIANT(co->co_access.va_group == VALED_NOGROUP ||
	    co->co_fd == -1);
	INVARIANT(co->co_listen == -1);
}

/* A setting can be set, is there once, and is shown as it can be set again. */
static void
check_settings(const struct valed_settings *ss)
{
	const struct valed_setting *st, *other;
	struct vale_setting_value again;
	char text[VALE_SETTING_SIZE];

	unsigned int n;

	for (st = ss->vss_list, n = ss->vss_n; n > 0; st++, n--) {
		INVARIANT(st->vst_setting < VALE_NSETTINGS);
		INVARIANT(vale_setting_check(st->vst_setting,
		    &st->vst_value) == 0);
		vale_setting_print(st->vst_setting, &st->vst_value, text,
		    sizeof(text));
		INVARIANT(vale_setting_parse(st->vst_setting, text,
		    &again) == 0);
		INVARIANT(again.sv_number == st->vst_value.sv_number &&
		    strcmp(again.sv_text, st->vst_value.sv_text) == 0);
		INVARIANT(vale_setting_table[st->vst_setting].se_scope ==
		    (strchr(st->vst_name, ':') != NULL ? VALE_OF_PORT :
		    VALE_OF_SWITCH));
		for (other = ss->vss_list; other < st; other++)
			INVARIANT(other->vst_setting != st->vst_setting ||
			    strcmp(other->vst_name, st->vst_name) != 0);
	}
}

static void
check_valed(const struct valed_options *opt)
{
	const struct adapter_config *a, *b;

	check_settings(&opt->vo_settings);

	if (opt->vo_control != NULL)
		check_control(opt->vo_control);
	INVARIANT(opt->vo_nadapters > 0 || opt->vo_control != NULL ||
	    opt->vo_nhostifs > 0);
	INVARIANT(opt->vo_nadapters <= VALED_MAXADAPTERS &&
	    opt->vo_nhostifs <= HOSTIF_MAX);
	for (a = opt->vo_adapters;
	    a < opt->vo_adapters + opt->vo_nadapters; a++) {
		check_vm(a);
		for (b = opt->vo_adapters; b < a; b++) {
			INVARIANT(strcmp(a->ac_backend, b->ac_backend) != 0);
			INVARIANT(a->ac_path[0] == '\0' ||
			    strcmp(a->ac_path, b->ac_path) != 0);
			INVARIANT(memcmp(a->ac_mac, b->ac_mac, 6) != 0);
			INVARIANT(strcmp(a->ac_name, b->ac_name) != 0);
		}
	}
}

/* Whether --takes may be among the arguments, also in part: "--t". */
static bool
has_takes(char **argv)
{
	while (*argv != NULL && strncmp(*argv, "--t", 3) != 0)
		argv++;
	return (*argv != NULL);
}

static void
read_valed(char **lines, int n)
{
	static char program[] = "valed", dash_s[] = "-s";
	char *argv[2 * LINES_MAX + 2];
	struct valed_why why = { .wy_status = 0 };
	struct valed_options opt;
	int argc, i;

	argc = 0;
	argv[argc++] = program;
	for (i = 0; i < n; i++) {
		if (lines[i][0] != '-')
			argv[argc++] = dash_s;
		argv[argc++] = lines[i];
	}
	argv[argc] = NULL;
	optind = 0;
	if (!valed_options(argc, argv, &opt, &why)) {
		INVARIANT(why.wy_text[0] != '\0');
		INVARIANT(why.wy_status == EX_USAGE ||
		    (why.wy_status == EX_DATAERR && has_takes(argv)));
		return;
	}
	if (opt.vo_tell == VALED_NOTHING)
		check_valed(&opt);
	valed_options_free(&opt);
}

/*
 * bhyve.
 */

static void
create_bhyve(struct pci_devemu *pe, const char *line)
{
	struct pci_devinst pi;
	nvlist_t *nvl;

	memset(&pi, 0, sizeof(pi));
	pi.pi_d = pe;
	pi.pi_slot = 2;
	if (setjmp(ended) != 0) {
		INVARIANT(status == EX_USAGE && message[0] != '\0');
		return;
	}
	init_config();
	nvl = create_config_node("pci.0.2.0");
	if (pe->pe_legacy_config(nvl, line) == 0)
		INVARIANT(pe->pe_init(&pi, nvl) != 0);
}

/* Both adapters have the same options. */
static void
read_bhyve(const char *line)
{
	struct pci_devemu **pdpp;

	SET_FOREACH(pdpp, pci_devemu_set)
		create_bhyve(*pdpp, line);
}

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX], *lines[LINES_MAX], *p, *line;
	int i, n;

	if (size == 0 || size > sizeof(text))
		return (0);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	n = 0;
	for (p = text; n < LINES_MAX && (line = strsep(&p, "\n")) != NULL;)
		lines[n++] = line;
	if (data[0] == 'v')
		read_valed(lines, n);
	for (i = 0; i < n; i++) {
		switch (data[0]) {
		case 'b':
			read_bhyve(lines[i]);
			break;
		case 'n':
			read_name(lines[i]);
			break;
		}
	}
	return (0);
}
