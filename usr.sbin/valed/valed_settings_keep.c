/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Changed settings for the next process: valed_settings_keep.h.
 */

#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter_config.h"
#include "libvale.h"
#include "vale_setting.h"
#include "vale_wire.h"
#include "valed_hostif_keep.h"
#include "valed_options.h"
#include "valed_settings_keep.h"
#include "valed_store.h"
#include "valed_watch.h"

#define	STORE_NAME	"settings"
#define	FIRST_LINE	"valed settings 1\n"

/* A line's fields. */
enum {
	FIELD_NAME,
	FIELD_SETTING,
	FIELD_VALUE,
	FIELD_CONFIGURED,
	NFIELDS
};

/*
 * The file of an earlier process.
 */

/* Return whether a name is that of an adapter's port, or of an interface's. */
static bool
port_of(const struct valed_options *opt, const char *name)
{
	return (valed_options_adapter(opt, name) ||
	    valed_options_hostif(opt, name) || valed_hostif_keep_has(name));
}

/* Return whether a name is that of a switch. */
static bool
is_switch(const char *name)
{
	char port[VALE_NAME_SIZE];

	return (snprintf(port, sizeof(port), "%s:p", name) <
	    (int)sizeof(port) && vale_name_error(port) == NULL);
}

/* Have a line's setting set.  Returns false if it is none. */
static bool
line_set(char *field[NFIELDS], const struct valed_options *opt)
{
	const char *name = field[FIELD_NAME], *text = field[FIELD_SETTING];
	const unsigned int setting = vale_setting_named(text, strlen(text));
	const enum vale_setting_scope scope = strchr(name, ':') == NULL ?
	    VALE_OF_SWITCH : VALE_OF_PORT;
	struct vale_setting_value value, before, configured;

	if (setting == VALE_NSETTINGS ||
	    vale_setting_table[setting].se_scope != scope ||
	    vale_setting_parse(setting, field[FIELD_VALUE], &value) == -1 ||
	    vale_setting_parse(setting, field[FIELD_CONFIGURED],
	    &before) == -1 || vale_setting_check(setting, &value) == -1)
		return (false);
	if (scope == VALE_OF_SWITCH ? !is_switch(name) :
	    vale_name_error(name) != NULL)
		return (false);
	if (scope == VALE_OF_PORT && !port_of(opt, name))
		return (true);
	vale_preset_get(name, setting, &configured);
	return (!vale_setting_same(&before, &configured) ||
	    vale_setting_once(name, setting, &value) == 0);
}

/* Split a line, which is changed, into fields.  False: there are too few. */
static bool
line_split(char *line, char *field[NFIELDS])
{
	unsigned int i;

	for (i = 0; i < NFIELDS; i++)
		field[i] = strsep(&line, "\t");
	return (field[NFIELDS - 1] != NULL && line == NULL);
}

void
valed_settings_keep_start(const struct valed_options *opt)
{
	char *field[NFIELDS], *line, *next, *text;
	bool good;

	if (!valed_store_take_text(STORE_NAME, &text))
		return;
	next = text;
	line = strsep(&next, "\n");
	good = line != NULL && next != NULL &&
	    strncmp(line, FIRST_LINE, strlen(FIRST_LINE) - 1) == 0 &&
	    line[strlen(FIRST_LINE) - 1] == '\0';
	while (good && (line = strsep(&next, "\n")) != NULL && next != NULL)
		good = line_split(line, field) && line_set(field, opt);
	if (!good)
		warnx("settings of the earlier process are lost: they are not "
		    "valid");
	free(text);
}

/*
 * The file of this process.
 */

/* Write the settings of a switch or port that differ from those kept. */
static void
write_settings(FILE *fp, const char *name, enum vale_setting_scope scope)
{
	struct vale_setting_value configured, value[VALE_NSETTINGS];
	char text[VALE_SETTING_SIZE];
	unsigned int i;

	if (vale_setting_get(name, scope, value) == -1)
		return;
	for (i = 0; i < VALE_NSETTINGS; i++) {
		if (vale_setting_table[i].se_scope != scope)
			continue;
		vale_preset_get(name, i, &configured);
		if (vale_setting_same(&value[i], &configured))
			continue;
		vale_setting_print(i, &value[i], text, sizeof(text));
		fprintf(fp, "%s\t%s\t%s", name,
		    vale_setting_table[i].se_name, text);
		vale_setting_print(i, &configured, text, sizeof(text));
		fprintf(fp, "\t%s\n", text);
	}
}

/* The names of switches and ports; libvale's locks are held for each. */
struct names {
	char		(*nms_name)[VALE_NAME_SIZE];
	size_t		 nms_n;
	bool		 nms_failed;
};

static void
name_add(struct names *nms, const char *name)
{
	char (*all)[VALE_NAME_SIZE];

	all = reallocarray(nms->nms_name, nms->nms_n + 1, sizeof(*all));
	nms->nms_failed = nms->nms_failed || all == NULL;
	if (all == NULL)
		return;
	nms->nms_name = all;
	strlcpy(all[nms->nms_n++], name, sizeof(*all));
}

/* Add a switch: its ports come one after the other. */
static int
switch_add(const struct vale_port_info *info, void *arg)
{
	struct names *nms = arg;
	char name[VALE_NAME_SIZE];

	strlcpy(name, info->vpi_name, sizeof(name));
	name[strcspn(name, ":")] = '\0';
	if (nms->nms_n == 0 ||
	    strcmp(nms->nms_name[nms->nms_n - 1], name) != 0)
		name_add(nms, name);
	return (0);
}

static int
port_add(const struct vale_wire_device *wd, void *arg)
{
	if (vale_name_error(wd->wdv_port) == NULL)
		name_add(arg, wd->wdv_port);
	return (0);
}

/* Write all.  Returns a text that is the caller's, or NULL with errno. */
static char *
write_all(size_t *size)
{
	struct names nms = { .nms_n = 0 };
	char *text = NULL;
	bool good;
	FILE *fp;
	size_t i;

	fp = open_memstream(&text, size);
	if (fp == NULL)
		return (NULL);
	fputs(FIRST_LINE, fp);
	(void)vale_list(NULL, switch_add, &nms);
	valed_watch_list(port_add, &nms);
	for (i = 0; i < nms.nms_n; i++)
		write_settings(fp, nms.nms_name[i],
		    strchr(nms.nms_name[i], ':') == NULL ? VALE_OF_SWITCH :
		    VALE_OF_PORT);
	free(nms.nms_name);
	good = fclose(fp) == 0 && !nms.nms_failed;
	if (good)
		return (text);
	free(text);
	errno = ENOMEM;
	return (NULL);
}

void
valed_settings_keep(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char *stored;		/* NULL: perhaps an earlier process's */
	size_t size = 0;
	char *text;
	bool kept;

	if (!valed_store_active())
		return;
	/* The last one that writes has seen all. */
	pthread_mutex_lock(&lock);
	text = write_all(&size);
	if (text != NULL && stored != NULL && strcmp(text, stored) == 0)
		goto out;
	kept = text != NULL;
	if (kept && size == strlen(FIRST_LINE))
		valed_store_remove(STORE_NAME);
	else
		kept = kept && valed_store_put_text(STORE_NAME, text);
	if (!kept)
		warn("changed settings are not kept for a restart");
	free(stored);
	stored = kept ? text : NULL;
	text = kept ? NULL : text;
out:
	pthread_mutex_unlock(&lock);
	free(text);
}
