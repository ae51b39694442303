/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Links of ports.  A port whose link is down is in no view as a destination;
 * what it sends is dropped, and its addresses are forgotten, so that frames for
 * them are flooded, as a switch does when a cable is pulled out.
 *
 * A link follows that of the uplinks if the setting says so.  Uplinks are ports
 * of which vale_set_carrier() has told whether they have a carrier.
 */

#include <string.h>

#include "vale_error.h"
#include "vale_link.h"
#include "vale_pair.h"
#include "vale_switch.h"
#include "vale_view.h"

int
vale_set_carrier(const char *name, bool up)
{
	const uint8_t carrier = up ? VALE_CARRIER_UP : VALE_CARRIER_DOWN;
	struct vale_port *port;
	struct vale_switch *vs;

	pthread_mutex_lock(&vale_lock);
	port = vale_switch_find_port(name);
	if (port == NULL || port->vp_carrier == carrier) {
		pthread_mutex_unlock(&vale_lock);
		return (port != NULL ? 0 : vale_fail(ENXIO));
	}
	vs = port->vp_switch;
	vale_switch_change(vs);
	/* Again: the lock was released. */
	port = vale_switch_port(vs, name);
	if (port != NULL) {
		port->vp_carrier = carrier;
		vale_view_publish(vs);
	}
	vale_switch_changed(vs);
	pthread_mutex_unlock(&vale_lock);
	return (port != NULL ? 0 : vale_fail(ENXIO));
}

void
vale_on_link(struct vale_desc *d, void (*changed)(void *arg, bool up),
    void *arg)
{
	struct vale_port *port = vale_desc_port(d);

	pthread_mutex_lock(&vale_lock);
	port->vp_link_told = changed;
	port->vp_link_arg = arg;
	if (changed != NULL && port->vp_down)
		changed(arg, false);
	pthread_mutex_unlock(&vale_lock);
}
