/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * -o: settings of switches and ports.  They are shown as they are set, so that
 * what is shown can be given back.
 */

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "valectl.h"
#include "vale_setting.h"

/* End: a call about `name' has failed. */
static void __dead2
fail(const char *name)
{
	const int error = errno;

	if (vale_error()[0] != '\0')
		errx(EX_DATAERR, "%s: %s", name, vale_error());
	if (error == EPROTO || error == EPIPE || error == ECONNRESET)
		err(EX_PROTOCOL, "%s", name);
	vc_fail();
}

static void
check_name(const char *name)
{
	if (strlen(name) >= VALE_NAME_SIZE)
		errx(EX_USAGE, "%s: more than %d characters", name,
		    VALE_NAME_SIZE - 1);
}

static enum vale_setting_scope
scope_of(const char *name)
{
	return (strchr(name, ':') != NULL ? VALE_OF_PORT : VALE_OF_SWITCH);
}

/* Find the setting of `len' bytes; if there is none, name all and end. */
static unsigned int
setting_of(const char *name, const char *setting, size_t len)
{
	const unsigned int found = vale_setting_named(setting, len);
	char names[256] = "";
	unsigned int i;

	if (found != VALE_NSETTINGS &&
	    vale_setting_table[found].se_scope == scope_of(name))
		return (found);
	for (i = 0; i < VALE_NSETTINGS; i++) {
		if (vale_setting_table[i].se_scope != scope_of(name))
			continue;
		strlcat(names, names[0] == '\0' ? "" : ", ", sizeof(names));
		strlcat(names, vale_setting_table[i].se_name, sizeof(names));
	}
	errx(EX_USAGE, "%.*s: no such setting of a %s, which has %s", (int)len,
	    setting, scope_of(name) == VALE_OF_PORT ? "port" : "switch",
	    names);
}

/* Warn: a mirror may wait for its port, but with a faulty name for ever. */
static void
warn_absent(const char *name, const char *mirrored)
{
	struct vc_ports ports;

	if (vc_ports_get(NULL, &ports) == -1)
		return;
	if (vc_ports_find(&ports, mirrored) == NULL)
		warnx("%s: there is no port %s yet", name, mirrored);
	free(ports.vcp_info);
}

void
vc_set(const char *name, char *const arg[], unsigned int n)
{
	struct vale_setting_value sv[VALE_NSETTINGS];
	struct vale_setting_change sc[VALE_NSETTINGS];
	bool has[VALE_NSETTINGS] = { false };
	unsigned int i, nsc = 0;
	size_t len;

	for (; n > 0; arg++, n--) {
		len = strcspn(*arg, "=");
		if ((*arg)[len] == '\0')
			continue;
		i = setting_of(name, *arg, len);
		if (vale_setting_parse(i, *arg + len + 1, &sv[i]) == -1)
			errx(EX_USAGE, "%s: %s", *arg, vale_error());
		has[i] = true;
	}
	check_name(name);
	for (i = 0; i < VALE_NSETTINGS; i++)
		if (has[i] && i != VALE_SETTING_MIRROR)
			sc[nsc++] = (struct vale_setting_change){
			    .sc_setting = i, .sc_value = sv[i] };
	if (nsc > 0 && vale_setting_set_all(name, sc, nsc) == -1)
		fail(name);
	i = VALE_SETTING_MIRROR;
	if (has[i] && vale_setting_set(name, i, &sv[i]) == -1)
		fail(name);
	if (has[i] && sv[i].sv_number != 0)
		warn_absent(name, sv[i].sv_text);
}

static json_t *
value_json(const struct vale_setting *se, const struct vale_setting_value *sv,
    const char *text)
{
	switch (se->se_kind) {
	case VALE_KIND_NUMBER:
		return (json_integer(sv->sv_number));
	case VALE_KIND_BOOL:
		return (json_boolean(sv->sv_number != 0));
	default:
		return (json_string(text));
	}
}

void
vc_show_settings(const char *name, const char *setting, bool json)
{
	const enum vale_setting_scope scope = scope_of(name);
	struct vale_setting_value sv[VALE_NSETTINGS];
	const struct vale_setting *se;
	char text[VALE_SETTING_SIZE];
	json_t *object = NULL;
	unsigned int i, only = VALE_NSETTINGS;

	if (setting != NULL)
		only = setting_of(name, setting, strlen(setting));
	check_name(name);
	if (vale_setting_get(name, scope, sv) == -1)
		fail(name);
	if (json)
		object = json_object();
	for (i = 0; i < VALE_NSETTINGS; i++) {
		se = &vale_setting_table[i];
		if (se->se_scope != scope ||
		    (only != VALE_NSETTINGS && only != i))
			continue;
		vale_setting_print(i, &sv[i], text, sizeof(text));
		if (json)
			json_object_set_new(object, se->se_name,
			    value_json(se, &sv[i], text));
		else
			printf("%s=%s\n", se->se_name, text);
	}
	if (json)
		vc_print_json(object);
}
