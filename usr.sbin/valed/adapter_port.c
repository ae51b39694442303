/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The port of an adapter: opening it, following its link, moving the adapter to
 * another one, and a port of another valed's switch, which may go and come
 * again.  adapter_net.c knows the kinds of ports; this is what the adapter does
 * with one.
 *
 * Frames of other adapters of this process do not wait for the thread: their
 * threads deliver them (adapter_sink()), unless direct=off, as long as the
 * client has enabled bus mastering, the guest has posted buffers, and nothing
 * older is in the port's ring.  They signal its client, too, and wake the
 * thread only if that cannot be done without waiting.
 *
 * Everything is of the adapter's thread but adapter_sink() and adapter_link(),
 * which other threads call.  It changes the port and the configuration with the
 * adapter's lock, because others read them.
 */

#include <sys/prctl.h>
#include <sys/uio.h>

#include <err.h>
#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "adapter_impl.h"
#include "adapter_keep.h"
#include "e82545.h"
#include "frame_port.h"
#include "libvale.h"
#include "loop.h"

/*
 * Its link.
 */

/* Note that the port's link has changed.  Any thread, with locks of libvale. */
static void
adapter_link(void *arg, bool up)
{
	struct adapter *ad = arg;

	atomic_store_32(&ad->down, !up);
	adapter_post(ad);
}

void
adapter_port_on_link(struct adapter *ad)
{
	if (ad->net.an_vale != NULL)
		vale_on_link(ad->net.an_vale, adapter_link, ad);
}

void
adapter_port_show_link(struct adapter *ad)
{
	const bool down = atomic_load_32(&ad->down) != 0;

	if (down == ad->shown_down)
		return;
	ad->shown_down = down;
	e82545_link(ad->dev, !down);
	if (!down)
		adapter_announce_soon(ad);
}

/*
 * Frames.
 */

/* Take frames of another adapter, on that adapter's thread. */
static void
adapter_sink(void *arg, struct frame_source *frames)
{
	struct adapter *ad = arg;

	adapter_keep_receiver(ad);
	e82545_rx_direct(ad->dev, frames);
	if (vfu_irq_pending(&ad->vfu.vdev_irq) &&
	    !vfu_irq_signal(&ad->vfu.vdev_irq))
		adapter_post(ad);
	adapter_keep_receiver(NULL);
}

void
adapter_port_direct(struct adapter *ad, bool on)
{
	frame_port_set_sink(ad->net.an_port, on ? adapter_sink : NULL, ad);
}

void
adapter_port_events(struct adapter *ad, bool on)
{
	on = on && !adapter_net_gone(&ad->net);
	if (on == !ad->rx_stopped)
		return;
	ad->rx_stopped = !on;
	if (on)
		loop_enable(ad->rx_ev);
	else
		loop_disable(ad->rx_ev);
}

/* Note that the backend has frames. */
static void
adapter_rx_event(int fd __unused, void *arg)
{
	struct adapter *ad = arg;

	ad->rx_wanted = true;
}

/*
 * A port of another valed's switch.
 */

/*
 * End the event of a port of another valed's switch, which has gone or comes:
 * the next port has its own, and other frames.
 */
static void
adapter_rx_end(struct adapter *ad)
{
	e82545_port_gone(ad->dev);
	if (ad->rx_ev != NULL)
		loop_delete(ad->rx_ev);
	ad->rx_ev = NULL;
	ad->rx_stopped = true;
}

void
adapter_port_check(struct adapter *ad)
{
	if (!adapter_net_bad(&ad->net))
		return;
	adapter_log(ad, LOG_WARNING, "%s: what %s has written to the "
	    "port's memory is not valid: it is opened again",
	    ad->config.ac_backend, ad->config.ac_control);
	adapter_rx_end(ad);
	adapter_net_again(&ad->net);
}

/* Receive from a port, which there is now. */
static void
adapter_port_opened(struct adapter *ad)
{
	ad->rx_ev = loop_add_disabled(ad->net.an_fd, LOOP_READ,
	    adapter_rx_event, ad);
	if (ad->rx_ev == NULL) {
		adapter_log(ad, LOG_ERR, "%s: cannot wait for frames: %s",
		    ad->config.ac_backend, strerror(errno));
		adapter_net_again(&ad->net);
		return;
	}
	ad->rx_wanted = true;
	if (ad->no_port)
		adapter_log(ad, LOG_NOTICE, "%s: %s: the port is open",
		    ad->config.ac_control, ad->config.ac_backend);
	ad->no_port = false;
	atomic_store_32(&ad->down, 0);
	adapter_announce_soon(ad);
}

static void
adapter_port_none(struct adapter *ad, const char *why)
{
	adapter_log(ad, LOG_WARNING, "no port: %s", why);
	ad->no_port = true;
	atomic_store_32(&ad->down, 1);
}

/*
 * Handle what the opener says (valed_opener.h).  The guest sees no link if
 * there is no port for longer than another valed takes to be started again.
 */
static void
adapter_port_event(int fd __unused, void *arg)
{
	struct adapter *ad = arg;
	char why[320];

	adapter_assert_thread(ad);
	adapter_rx_end(ad);
	if (!adapter_net_news(&ad->net, ad->config.ac_backend, why,
	    sizeof(why))) {
		loop_delete(ad->port_ev);
		ad->port_ev = NULL;
	}
	if (ad->net.an_fd != -1)
		adapter_port_opened(ad);
	else if (why[0] != '\0')
		adapter_port_none(ad, why);
	adapter_port_show_link(ad);
}

/*
 * Opening, closing and moving.
 */

int
adapter_port_open(struct adapter *ad, const struct adapter_config *ac,
    struct adapter_net *an, struct loop_event **ev)
{
	char why[512];

	ad->failed = NULL;
	if (adapter_net_open(an, ac->ac_backend, ac->ac_mtu,
	    valed_is_remote(ac) ? ac->ac_opener : -1, why, sizeof(why)) != 0) {
		warnx("%s: %s", ac->ac_where, why);
		return (EIO);
	}
	if (an->an_fd != -1)
		*ev = loop_add_disabled(an->an_fd, LOOP_READ, adapter_rx_event,
		    ad);
	else
		ad->port_ev = loop_add_disabled(an->an_opener, LOOP_READ,
		    adapter_port_event, ad);
	if (*ev == NULL && ad->port_ev == NULL) {
		warnx("%s: %s: cannot wait for frames: %s", ac->ac_where,
		    ac->ac_backend, strerror(errno));
		return (EIO);
	}
	ad->failed = "address of the port";
	if (an->an_vale != NULL &&
	    vale_set_address(an->an_vale, ac->ac_mac) != 0)
		return (errno);
	frame_port_set_offloads(an->an_port);
	return (0);
}

void
adapter_port_close(struct adapter_net *an, struct loop_event *ev)
{
	if (ev != NULL)
		loop_delete(ev);
	adapter_net_close(an);
}

/* Drop the frames that wait in a port. */
static void
port_drop(struct frame_port *port)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	frame_port_sync(port);
	while (frame_peek(port->fp_source, &frame))
		frame_next(port->fp_source);
}

/*
 * Move to another port.  Both ports are there for a moment, perhaps of one
 * switch, and so may get the same frame: what came through the new port, until
 * the old one was closed, is dropped.
 */
int
adapter_port_move(struct adapter *ad, const struct adapter_config *ac)
{
	struct adapter_net old = ad->net, new = { .an_port = NULL };
	struct loop_event *ev = NULL;
	const int listen = ad->config.ac_listen;
	const int error = adapter_port_open(ad, ac, &new, &ev);

	if (error != 0) {
		if (ad->failed != NULL)
			adapter_log(ad, LOG_ERR, "%s: %s", ad->failed,
			    strerror(error));
		adapter_port_close(&new, ev);
		return (error);
	}
	adapter_port_direct(ad, false);
	e82545_move(ad->dev, new.an_port, ac->ac_name);
	pthread_mutex_lock(&ad->mtx);
	ad->net = new;
	ad->config = *ac;
	ad->config.ac_listen = listen;
	pthread_mutex_unlock(&ad->mtx);
	adapter_port_close(&old, ad->rx_ev);
	port_drop(ad->net.an_port);
	ad->rx_ev = ev;
	ad->rx_stopped = ad->rx_wanted = true;
	prctl(PR_SET_NAME, ad->config.ac_name);
	/* Nothing else says that the link is up. */
	atomic_store_32(&ad->down, 0);
	adapter_port_on_link(ad);
	adapter_port_show_link(ad);
	adapter_announce_soon(ad);
	return (0);
}
