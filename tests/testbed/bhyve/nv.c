/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * nv(9), see <sys/nv.h>.  A list is a queue of pairs and searched from its
 * head: bhyve's lists have a dozen pairs at most.
 */

#include <sys/queue.h>
#include <sys/nv.h>

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

struct nvpair {
	STAILQ_ENTRY(nvpair)	 nvp_link;
	char			*nvp_name;
	char			*nvp_string;	/* or NULL */
	nvlist_t		*nvp_nvlist;	/* or NULL */
};

struct nvlist {
	STAILQ_HEAD(, nvpair)	 nl_pairs;
};

nvlist_t *
nvlist_create(int flags)
{
	nvlist_t *nvl;

	if (flags != 0) {
		errno = EINVAL;
		return (NULL);
	}
	nvl = malloc(sizeof(*nvl));
	if (nvl != NULL)
		STAILQ_INIT(&nvl->nl_pairs);
	return (nvl);
}

static void
nvpair_destroy(struct nvpair *np)
{
	free(np->nvp_name);
	free(np->nvp_string);
	nvlist_destroy(np->nvp_nvlist);
	free(np);
}

void
nvlist_destroy(nvlist_t *nvl)
{
	struct nvpair *np, *next;

	if (nvl == NULL)
		return;
	STAILQ_FOREACH_SAFE(np, &nvl->nl_pairs, nvp_link, next)
		nvpair_destroy(np);
	free(nvl);
}

static struct nvpair *
nvlist_find(const nvlist_t *nvl, const char *name)
{
	struct nvpair *np;

	STAILQ_FOREACH(np, &nvl->nl_pairs, nvp_link)
		if (strcmp(np->nvp_name, name) == 0)
			return (np);
	return (NULL);
}

bool
nvlist_empty(const nvlist_t *nvl)
{
	return (STAILQ_EMPTY(&nvl->nl_pairs));
}

bool
nvlist_exists(const nvlist_t *nvl, const char *name)
{
	return (nvlist_find(nvl, name) != NULL);
}

bool
nvlist_exists_string(const nvlist_t *nvl, const char *name)
{
	const struct nvpair *np;

	np = nvlist_find(nvl, name);
	return (np != NULL && np->nvp_string != NULL);
}

bool
nvlist_exists_nvlist(const nvlist_t *nvl, const char *name)
{
	const struct nvpair *np;

	np = nvlist_find(nvl, name);
	return (np != NULL && np->nvp_nvlist != NULL);
}

const char *
nvlist_get_string(const nvlist_t *nvl, const char *name)
{
	if (!nvlist_exists_string(nvl, name))
		errx(EX_SOFTWARE, "no string '%s' in nvlist", name);
	return (nvlist_find(nvl, name)->nvp_string);
}

const nvlist_t *
nvlist_get_nvlist(const nvlist_t *nvl, const char *name)
{
	if (!nvlist_exists_nvlist(nvl, name))
		errx(EX_SOFTWARE, "no nvlist '%s' in nvlist", name);
	return (nvlist_find(nvl, name)->nvp_nvlist);
}

static struct nvpair *
nvlist_add(nvlist_t *nvl, const char *name)
{
	struct nvpair *np;

	if (nvlist_exists(nvl, name))
		errx(EX_SOFTWARE, "'%s' is in nvlist already", name);
	np = calloc(1, sizeof(*np));
	if (np == NULL || (np->nvp_name = strdup(name)) == NULL)
		err(EX_OSERR, "nvlist");
	STAILQ_INSERT_TAIL(&nvl->nl_pairs, np, nvp_link);
	return (np);
}

void
nvlist_add_string(nvlist_t *nvl, const char *name, const char *value)
{
	struct nvpair *np;

	np = nvlist_add(nvl, name);
	np->nvp_string = strdup(value);
	if (np->nvp_string == NULL)
		err(EX_OSERR, "nvlist");
}

void
nvlist_move_nvlist(nvlist_t *nvl, const char *name, nvlist_t *value)
{
	nvlist_add(nvl, name)->nvp_nvlist = value;
}

void
nvlist_free(nvlist_t *nvl, const char *name)
{
	struct nvpair *np;

	np = nvlist_find(nvl, name);
	if (np == NULL)
		errx(EX_SOFTWARE, "no '%s' in nvlist", name);
	STAILQ_REMOVE(&nvl->nl_pairs, np, nvpair, nvp_link);
	nvpair_destroy(np);
}

const char *
nvlist_next(const nvlist_t *nvl, int *typep, void **cookiep)
{
	struct nvpair *np;

	np = *cookiep;
	np = np == NULL ? STAILQ_FIRST(&nvl->nl_pairs) :
	    STAILQ_NEXT(np, nvp_link);
	*cookiep = np;
	if (np == NULL)
		return (NULL);
	if (typep != NULL)
		*typep = np->nvp_string != NULL ? NV_TYPE_STRING :
		    NV_TYPE_NVLIST;
	return (np->nvp_name);
}
