/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What clients of the control socket may see of adapters and attached
 * interfaces: the state and the counters of each.
 *
 * A thread of the control socket reads them while their owners go on.  An
 * adapter is not stopped, and an interface not freed, while it is read: a lock
 * of each list sees to that, and nobody waits for anything with it.  Nor is an
 * adapter moved to another port: its lock sees to that.
 */

#include <pthread.h>
#include <string.h>

#include "adapter.h"
#include "e82545.h"
#include "hostif.h"
#include "valed_stats.h"
#include "valed_watch.h"

#define	NS_PER_ITR	256

/*
 * Protects the list, and keeps its adapters from being stopped.  Only the main
 * thread changes the list, with the lock, and reads the list without.
 */
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
struct adapter_list valed_adapters = TAILQ_HEAD_INITIALIZER(valed_adapters);

/* For whom a device is read, and the device. */
struct reader {
	ctl_device_show	*wrd_show;
	void		*wrd_arg;
	bool		 wrd_done;
	struct vale_wire_device wrd_device;
};

void
valed_watch_add(struct adapter *ad)
{
	pthread_mutex_lock(&watch_lock);
	TAILQ_INSERT_TAIL(&valed_adapters, ad, link);
	pthread_mutex_unlock(&watch_lock);
}

void
valed_watch_remove(struct adapter *ad)
{
	pthread_mutex_lock(&watch_lock);
	TAILQ_REMOVE(&valed_adapters, ad, link);
	pthread_mutex_unlock(&watch_lock);
}

static void
begin(struct reader *rd, unsigned int kind, const char *name, const char *port)
{
	struct vale_wire_device *wd = &rd->wrd_device;

	memset(wd, 0, sizeof(*wd));
	wd->wdv_kind = kind;
	strlcpy(wd->wdv_name, name, sizeof(wd->wdv_name));
	strlcpy(wd->wdv_port, port, sizeof(wd->wdv_port));
}

static void
end(struct reader *rd)
{
	rd->wrd_done = rd->wrd_show(&rd->wrd_device, rd->wrd_arg) != 0;
}

static void
read_adapter(struct adapter *ad, struct reader *rd)
{
	struct vale_wire_device *wd = &rd->wrd_device;
	struct e82545_mode mode;

	pthread_mutex_lock(&ad->mtx);
	begin(rd, VALE_DEVICE_ADAPTER, ad->config.ac_name,
	    ad->config.ac_backend);
	e82545_mode(ad->dev, &mode);
	memcpy(wd->wdv_addr, ad->config.ac_mac, sizeof(wd->wdv_addr));
	wd->wdv_since_s = atomic_load_64(&ad->since_s);
	wd->wdv_flags = (wd->wdv_since_s != 0 ? VALE_DEVICE_CLIENT : 0) |
	    (mode.em_csb ? VALE_DEVICE_CSB : 0) |
	    (mode.em_link ? VALE_DEVICE_LINK : 0);
	wd->wdv_itr_ns = mode.em_itr_256ns * NS_PER_ITR;
	valed_stats_adapter(ad, wd);
	pthread_mutex_unlock(&ad->mtx);
	end(rd);
}

static void
read_interface(struct hostif *hi, void *arg)
{
	struct reader *rd = arg;

	if (rd->wrd_done)
		return;
	begin(rd, VALE_DEVICE_INTERFACE, hostif_name(hi),
	    hostif_port_name(hi));
	valed_stats_interface(hi, &rd->wrd_device);
	end(rd);
}

void
valed_watch_list(ctl_device_show *show, void *arg)
{
	struct reader rd = { .wrd_show = show, .wrd_arg = arg };
	struct adapter *ad;

	pthread_mutex_lock(&watch_lock);
	TAILQ_FOREACH(ad, &valed_adapters, link) {
		read_adapter(ad, &rd);
		if (rd.wrd_done)
			break;
	}
	pthread_mutex_unlock(&watch_lock);
	if (!rd.wrd_done)
		hostif_each(read_interface, &rd);
}
