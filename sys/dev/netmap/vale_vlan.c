/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * VLANs of ports: their lists as text.  vale_vlan.h.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_vlan.h>

void
vale_vlan_access(struct vale_vlan *vn, unsigned int vlan)
{
	MPASS(vlan >= 1 && vlan <= VALE_VLAN_MAX);
	memset(vn, 0, sizeof(*vn));
	vn->vln_mode = VALE_VLAN_ACCESS;
	vn->vln_native = vlan;
}

/* Parse a VLAN's number, and advance *p. */
static bool
vlan_number(const char **p, unsigned int *n)
{
	const char *start = *p;

	*n = 0;
	while (**p >= '0' && **p <= '9' && *n <= VALE_VLAN_MAX)
		*n = *n * 10 + (*(*p)++ - '0');
	return (*p != start && *start != '0' && *n <= VALE_VLAN_MAX);
}

/* Parse "10" or "20-30", and advance *p. */
static bool
vlan_range(const char **p, unsigned int *first, unsigned int *last)
{
	if (!vlan_number(p, first))
		return (false);
	*last = *first;
	if (**p != '-')
		return (true);
	(*p)++;
	return (vlan_number(p, last) && *first <= *last);
}

bool
vale_vlan_trunk(struct vale_vlan *vn, const char *list)
{
	struct vale_vlan new = { .vln_mode = VALE_VLAN_TRUNK };
	unsigned int first, last;
	const char *p = list;

	if (strcmp(list, "all") == 0)
		p = "1-4094";
	for (;;) {
		if (!vlan_range(&p, &first, &last))
			return (false);
		for (; first <= last; first++)
			new.vln_set[first / 64] |= UINT64_C(1) << first % 64;
		if (*p == '\0')
			break;
		if (*p++ != ',')
			return (false);
	}
	if (vn->vln_mode == VALE_VLAN_TRUNK)
		new.vln_native = vn->vln_native;
	*vn = new;
	return (true);
}
