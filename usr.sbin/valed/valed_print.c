/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What is in force, as a configuration file: -T.  Of an adapter that is each
 * variable, also with its default, as far as there is a text for that; of
 * switches and other ports, what is set.  A setting of an adapter's port is the
 * adapter's variable, whoever has set it.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapter_config.h"
#include "e82545.h"
#include "vale_setting.h"
#include "valed_config.h"
#include "valed_options.h"
#include "valed_print.h"
#include "valed_values.h"

static void
print(const struct adapter_config *ac, const char *name, const char *value)
{
	printf("pci.%d.%d.%d.%s=%s\n", ac->ac_bus, ac->ac_slot, ac->ac_func,
	    name, value);
}

/* Print a setting of an adapter's port. */
static void
print_setting(const struct valed_options *opt, const struct adapter_config *ac,
    const struct valed_variable *v)
{
	const struct valed_setting *st = opt->vo_settings.vss_list;
	unsigned int n = opt->vo_settings.vss_n;
	struct vale_setting_value value;
	char text[VALE_SETTING_SIZE];

	vale_setting_default(v->var_setting, &value);
	for (; n > 0; st++, n--)
		if (st->vst_setting == (unsigned int)v->var_setting &&
		    strcmp(st->vst_name, ac->ac_backend) == 0)
			value = st->vst_value;
	vale_setting_print(v->var_setting, &value, text, sizeof(text));
	print(ac, v->var_name, text);
}

/* Print another variable; `set' is its text, or NULL if it is not set. */
static void
print_variable(const struct adapter_config *ac, const struct valed_variable *v,
    const char *set)
{
	const void *member = (const char *)ac + v->var_offset;
	char text[32];

	switch (v->var_kind) {
	case VALED_KIND_MAC:
		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x",
		    ac->ac_mac[0], ac->ac_mac[1], ac->ac_mac[2], ac->ac_mac[3],
		    ac->ac_mac[4], ac->ac_mac[5]);
		print(ac, v->var_name, text);
		break;
	case VALED_KIND_NUMBER:
		/* An MTU that is not set is that of the interface, or any. */
		if (set == NULL && v->var_min > 0)
			break;
		snprintf(text, sizeof(text), "%" PRIu32,
		    *(const uint32_t *)member);
		print(ac, v->var_name, text);
		break;
	case VALED_KIND_BOOL:
		print(ac, v->var_name, *(const bool *)member ? "on" : "off");
		break;
	case VALED_KIND_CSB:
		print(ac, v->var_name, e82545_csb_names[
		    *(const enum e82545_csb_kind *)member]);
		break;
	default:
		if (set != NULL)
			print(ac, v->var_name, set);
		break;
	}
}

static void
print_adapter(const struct valed_options *opt, const struct adapter_config *ac)
{
	const struct valed_node *vn = valed_config_find(ac->ac_bus,
	    ac->ac_slot, ac->ac_func);
	const struct valed_variable *v = valed_variables;

	print(ac, "device", valed_devices[ac->ac_device]);
	for (; v < valed_variables + VALED_NVARIABLES; v++) {
		if (v->var_kind == VALED_KIND_DEVICE)
			continue;
		if (v->var_setting == -1)
			print_variable(ac, v,
			    vn->nd_variable[v - valed_variables].nt_value);
		else if (valed_has_port(ac))
			print_setting(opt, ac, v);
	}
}

static void
print_settings(const struct valed_options *opt)
{
	const struct valed_setting *st = opt->vo_settings.vss_list;
	unsigned int n = opt->vo_settings.vss_n;
	char text[VALE_SETTING_SIZE];

	for (; n > 0; st++, n--) {
		if (valed_options_adapter(opt, st->vst_name))
			continue;
		vale_setting_print(st->vst_setting, &st->vst_value, text,
		    sizeof(text));
		printf("%s.%s.%s=%s\n", strchr(st->vst_name, ':') == NULL ?
		    "switch" : "port", st->vst_name,
		    vale_setting_table[st->vst_setting].se_name, text);
	}
}

void
valed_print(const struct valed_options *opt)
{
	const struct hostif_config *hc;
	unsigned int i;

	for (i = 0; i < opt->vo_nadapters; i++)
		print_adapter(opt, &opt->vo_adapters[i]);
	print_settings(opt);
	for (i = 0; i < opt->vo_nhostifs; i++) {
		hc = &opt->vo_hostifs[i];
		printf("attach.%s=%s\n", hc->hc_port,
		    hc->hc_kind == HOSTIF_XDP ? "xdp" : "packet");
	}
}
