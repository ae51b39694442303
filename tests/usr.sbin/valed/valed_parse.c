/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* See valed_parse.h. */

#include <sys/param.h>

#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "libvale.h"
#include "valed_address.h"
#include "valed_parse.h"

static struct valed_options options;
struct valed_options *const opt = &options;
struct adapter_config *ac;
struct valed_why why;

int
status_of(char *const *args)
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
	if (ac != NULL)
		valed_options_free(opt);
	memset(&why, 0, sizeof(why));
	ac = valed_options(argc, argv, opt, &why) ? opt->vo_adapters : NULL;
	return (ac != NULL ? -1 : why.wy_status);
}

void
parse(char *const *args)
{
	ATF_REQUIRE_EQ_MSG(-1, status_of(args), "%s", why.wy_text);
}

void
refused(int status, const char *message, char *const *args)
{
	int got = status_of(args);

	ATF_CHECK_EQ_MSG(status, got, "%s: status %d", message, got);
	ATF_CHECK_STREQ(message, why.wy_text);
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
