/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* See valed_parse.h. */

#include <sys/param.h>
#include <sys/wait.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "libvale.h"
#include "valed_address.h"
#include "valed_parse.h"

/* Each call's stays, so that a sanitizer finds what it points to. */
static struct valed_options parsed[16];

struct valed_options *opt;
struct adapter_config *ac;
char		out[8192];

void
parse(char *const *args)
{
	static char *argv[1024];
	int argc = 1;

	argv[0] = __DECONST(char *, "valed");
	while (args[argc - 1] != NULL) {
		ATF_REQUIRE(argc + 1 < (int)nitems(argv));
		argv[argc] = args[argc - 1];
		argc++;
	}
	argv[argc] = NULL;
	/* Those of a host without a machine-id, or with this one. */
	valed_address_file = "machine-id";
	opt = opt == NULL ? parsed : opt + 1;
	ATF_REQUIRE(opt < parsed + nitems(parsed));
	valed_options(argc, argv, opt);
	ac = opt->vo_adapters;
}

int
child(char *const *args)
{
	int fds[2], status;
	size_t len = 0;
	ssize_t n;

	ATF_REQUIRE_EQ(0, pipe(fds));
	fflush(stdout);
	if (fork() == 0) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		parse(args);
		_exit(0xff);
	}
	close(fds[1]);
	while ((n = read(fds[0], out + len, sizeof(out) - 1 - len)) > 0)
		len += n;
	out[len] = '\0';
	close(fds[0]);
	ATF_REQUIRE(wait(&status) != -1 && WIFEXITED(status));
	return (WEXITSTATUS(status) == 0xff ? -1 : WEXITSTATUS(status));
}

void
refused(int status, const char *message, char *const *args)
{
	const char *name = program_invocation_short_name;
	int got = child(args);
	char line[1024];

	snprintf(line, sizeof(line), "%s: %s\n", name, message);
	ATF_CHECK_EQ_MSG(status, got, "%s: status %d, %s", message, got, out);
	ATF_CHECK_STREQ(line, out);
}

void
file(const char *name, const char *text, size_t len)
{
	FILE *f = fopen(name, "w");

	ATF_REQUIRE(f != NULL);
	ATF_REQUIRE_EQ(len, fwrite(text, 1, len, f));
	ATF_REQUIRE_EQ(0, fclose(f));
}

void
default_mac(int a, int b, int c)
{
	const uint8_t mac[6] = { 0x58, 0x9c, 0xfc, a, b, c };

	ATF_CHECK_EQ_MSG(0, memcmp(mac, ac->ac_mac, 6),
	    "%02x:%02x:%02x", ac->ac_mac[3], ac->ac_mac[4], ac->ac_mac[5]);
}

void
settings_are(const char *expected)
{
	const struct valed_setting *st = opt->vo_settings.vss_list;
	char text[2048] = "", value[VALE_SETTING_SIZE];
	size_t at = 0;

	unsigned int n;

	for (n = opt->vo_settings.vss_n; n > 0; st++, n--) {
		vale_setting_print(st->vst_setting, &st->vst_value, value,
		    sizeof(value));
		at += snprintf(text + at, sizeof(text) - at, "%s %s=%s;",
		    st->vst_name, vale_setting_table[st->vst_setting].se_name,
		    value);
		ATF_REQUIRE(at < sizeof(text));
	}
	ATF_CHECK_STREQ(expected, text);
}
