/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Network backends: the dispatch over the linker set.
 */

#include <sys/cdefs.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "debug.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "pci_emul.h"

int
pci_parse_legacy_config(nvlist_t *nvl, const char *opt)
{
	char *copy, *name, *rest, *value;

	if (opt == NULL)
		return (0);
	rest = copy = strdup(opt);
	if (copy == NULL)
		return (-1);
	while ((name = strsep(&rest, ",")) != NULL) {
		value = strchr(name, '=');
		if (value != NULL)
			*value++ = '\0';
		set_config_value_node(nvl, name,
		    value != NULL ? value : "true");
	}
	free(copy);
	return (0);
}

int
netbe_legacy_config(nvlist_t *nvl, const char *opts)
{
	char *name;
	size_t len;

	if (opts == NULL)
		return (0);
	len = strcspn(opts, ",");
	name = strndup(opts, len);
	if (name == NULL)
		return (-1);
	set_config_value_node(nvl, "backend", name);
	free(name);
	if (opts[len] == '\0')
		return (0);
	return (pci_parse_legacy_config(nvl, opts + len + 1));
}

static struct net_backend *
netbe_find(const char *type)
{
	struct net_backend **bep;

	SET_FOREACH(bep, net_backend_set)
		if (strncmp(type, (*bep)->prefix, strlen((*bep)->prefix)) == 0)
			return (*bep);
	return (NULL);
}

int
netbe_init(net_backend_t **ret, nvlist_t *nvl, net_be_rxeof_t cb, void *param)
{
	const char *name, *type;
	struct net_backend *be, *template;
	int error;

	*ret = NULL;
	name = get_config_value_node(nvl, "backend");
	if (name == NULL) {
		EPRINTLN("no network backend given");
		return (EINVAL);
	}
	type = get_config_value_node(nvl, "type");
	template = netbe_find(type == NULL ? name : type);
	if (template == NULL) {
		EPRINTLN("%s: no such network backend",
		    type == NULL ? name : type);
		return (EINVAL);
	}
	be = calloc(1, sizeof(*be) + template->priv_size);
	if (be == NULL) {
		EPRINTLN("%s: %s", name, strerror(errno));
		return (ENOMEM);
	}
	*be = *template;
	be->fd = -1;
	error = be->init(be, name, nvl, cb, param);
	if (error != 0) {
		free(be);
		return (error);
	}
	*ret = be;
	return (0);
}

void
netbe_cleanup(net_backend_t *be)
{
	if (be != NULL) {
		be->cleanup(be);
		free(be);
	}
}

uint64_t
netbe_get_cap(net_backend_t *be)
{
	return (be->get_cap(be));
}

int
netbe_set_cap(net_backend_t *be, uint64_t features, unsigned int vnet_hdr_len)
{
	if (vnet_hdr_len != 0 && vnet_hdr_len != 10 && vnet_hdr_len != 12)
		return (-1);
	be->fe_vnet_hdr_len = vnet_hdr_len;
	return (be->set_cap(be, features, vnet_hdr_len));
}

size_t
netbe_get_vnet_hdr_len(net_backend_t *be)
{
	return (be->be_vnet_hdr_len);
}

ssize_t
netbe_send(net_backend_t *be, const struct iovec *iov, int iovcnt)
{
	return (be->send(be, iov, iovcnt));
}

ssize_t
netbe_peek_recvlen(net_backend_t *be)
{
	return (be->peek_recvlen(be));
}

ssize_t
netbe_recv(net_backend_t *be, const struct iovec *iov, int iovcnt)
{
	return (be->recv(be, iov, iovcnt));
}

ssize_t
netbe_rx_discard(net_backend_t *be)
{
	char buf[2048];
	struct iovec iov;
	ssize_t len;

	len = be->peek_recvlen(be);
	if (len <= 0)
		return (len);
	iov.iov_base = buf;
	iov.iov_len = sizeof(buf);
	be->recv(be, &iov, 1);
	return (len);
}

void
netbe_rx_disable(net_backend_t *be)
{
	be->recv_disable(be);
}

void
netbe_rx_enable(net_backend_t *be)
{
	be->recv_enable(be);
}
