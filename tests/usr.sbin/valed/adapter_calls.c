/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* See adapter_calls.h. */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_calls.h"
#include "adapter_keep.h"
#include "event_stub.h"
#include "fail_calls.h"
#include "libvale.h"
#include "peer_fault.h"
#include "wait_until.h"
#include "wrap.h"

bool		fake;
enum e82545_tx_state tx_state;
enum e82545_rx_state rx_state;
unsigned int	tx_calls, rx_calls, yields, enabled, disabled;
unsigned int	pauses, resumes;
const struct e82545_ops *ops;
void		*ops_arg;
struct e82545_config model;
void		(*sink)(void *arg, struct frame_source *frames);
void		*sink_arg;
bool		raise_level;
unsigned int	directs;
unsigned int	direct_sends;
bool		sends_all;
unsigned int	round_ends;
const char	*fail_at;
uint8_t		address[6];
char		addressed[VALE_NAME_SIZE];
uint32_t	changed[3];
char		calls[256];
bool		joins;
uint64_t	gone, refused;
bool		again;
unsigned int	listens, drops, joined;
bool		patient;
static uint32_t	patient_waits;		/* atomic */
unsigned int	clockwaits;
bool		stepping;
void		(*close_hook)(void);
uint32_t		interrupted;
struct timespec	clock_now, waited;
unsigned int	go_interrupted;
uint32_t		go_waits;
unsigned int	stops;
void		(*wanted)(void *arg);
bool		serves;
char		thread_name[16];
const void	*freed;
bool		was_freed;
struct itimerspec timer;
int		timer_flags;
struct adapter_config config;
struct adapter	*ad;
uint8_t		*ram;

static bool
fails(const char *step)
{
	if (fail_at == NULL || strcmp(fail_at, step) != 0)
		return (false);
	errno = ENOBUFS;
	return (true);
}

/* Append the name of a call. */
static void
called(const char *name)
{
	strlcat(calls, name, sizeof(calls));
	strlcat(calls, ";", sizeof(calls));
}

/* The thread opens the adapter, and this one then serves it. */
void
loop_run(void)
{
	ATF_REQUIRE_EQ(0, prctl(PR_GET_NAME, thread_name));
	calls[0] = '\0';
	if (!serves)
		pthread_exit(NULL);
}

int
valed_sandbox_drop(void)
{
	return (fails("sandbox") ? -1 : 0);
}

WRAP(struct e82545 *, e82545_create, const struct e82545_config *c,
    const struct e82545_ops *o, void *arg, struct frame_port *port)
{
	model = *c;
	ops = o;
	ops_arg = arg;
	return (__real_e82545_create(c, o, arg, port));
}

WRAP(void, e82545_destroy, struct e82545 *dev)
{
	called("destroy");
	__real_e82545_destroy(dev);
}

WRAP(void, e82545_bus_master, struct e82545 *dev, bool on)
{
	called(on ? "master" : "no master");
	__real_e82545_bus_master(dev, on);
}

WRAP(void, e82545_reset, struct e82545 *dev)
{
	called("reset");
	__real_e82545_reset(dev);
}

WRAP(void, e82545_timer, struct e82545 *dev)
{
	called("timer");
	__real_e82545_timer(dev);
}

WRAP(void, vfu_irq_flush, struct vfu_irq *irq)
{
	called("flush");
	__real_vfu_irq_flush(irq);
}

WRAP(bool, vfu_irq_signal, struct vfu_irq *irq)
{
	ATF_CHECK(receives());
	ATF_CHECK(vfu_irq_pending(irq));
	direct_sends++;
	return (sends_all && __real_vfu_irq_signal(irq));
}

WRAP(void, vfu_irq_intx_disable, struct vfu_irq *irq, bool off)
{
	called(off ? "no intx" : "intx");
	__real_vfu_irq_intx_disable(irq, off);
}

WRAP(void, peer_mem_set_wanted, struct peer_mem *dma, void (*fn)(void *arg))
{
	wanted = fn;
	__real_peer_mem_set_wanted(dma, fn);
}

WRAP(bool, peer_mem_join, struct peer_mem *dma __unused)
{
	const bool joined = joins;

	joins = false;
	return (joined);
}

WRAP(bool, peer_mem_gone, struct peer_mem *dma __unused, uint64_t *gpa)
{
	*gpa = gone;
	gone = 0;
	return (*gpa != 0);
}

WRAP(bool, peer_mem_refused, struct peer_mem *dma __unused, uint64_t *gpa)
{
	*gpa = refused;
	refused = 0;
	return (*gpa != 0);
}

WRAP(void, vfu_server_listen, struct vfu_device *vd)
{
	listens++;
	__real_vfu_server_listen(vd);
}

WRAP(void, vfu_server_round, struct vfu_device *vd)
{
	round_ends++;
	__real_vfu_server_round(vd);
}

/* There is no client. */
WRAP(void, vfu_server_drop, struct vfu_device *vd __unused)
{
	drops++;
}

WRAP(bool, vfu_server_again, struct vfu_server *srv)
{
	ATF_CHECK_EQ(&ad->vfu.vdev_server, srv);
	return (again);
}

WRAP(int, vfu_server_init, struct vfu_device *vd, int listen_fd)
{
	wait_until(atomic_load_32(&interrupted) == 0, "%u waits", interrupted);
	wait_until(!patient || atomic_load_32(&patient_waits) != 0, "a wait");
	return (__real_vfu_server_init(vd, listen_fd));
}

WRAP(int, sem_init, sem_t *sem, int shared, unsigned int value)
{
	ATF_CHECK_EQ(0, shared);
	ATF_CHECK_EQ(0, value);
	/* Watch the adapter's memory. */
	freed = (const char *)sem - offsetof(struct adapter, go);
	if (FAIL_CALL("sem_init")) {
		errno = ENOSPC;
		return (-1);
	}
	return (__real_sem_init(sem, shared, value));
}

/* The adapter with this condition, if it is one's. */
static struct adapter *
adapter_of(pthread_cond_t *ready)
{
	return ((void *)((char *)ready - offsetof(struct adapter, ready)));
}

WRAP(int, pthread_cond_clockwait, pthread_cond_t *cond, pthread_mutex_t *mtx,
    clockid_t clock, const struct timespec *ts)
{
	const struct adapter *a = adapter_of(cond);
	struct timespec later = *ts;
	int error = 0;

	ATF_CHECK_EQ(EBUSY, pthread_mutex_trylock(mtx));
	clockwaits++;
	if (stepping) {
		pthread_mutex_unlock(mtx);
		ATF_CHECK(events_step() >= 1);
		pthread_mutex_lock(mtx);
		return (ETIMEDOUT);
	}
	if (patient) {
		later.tv_sec += WAIT_S;
		atomic_store_32(&patient_waits, 1);
		while (!a->opened && error == 0)
			error = __real_pthread_cond_clockwait(cond, mtx, clock,
			    &later);
		ATF_CHECK_EQ(0, error);
		return (0);
	}
	if (interrupted > 0) {
		ATF_CHECK_EQ(CLOCK_MONOTONIC, clock);
		waited = *ts;
		atomic_add_32(&interrupted, -1);
		return (ETIMEDOUT);
	}
	return (__real_pthread_cond_clockwait(cond, mtx, clock, ts));
}

/* Who signals has the lock. */
WRAP(int, pthread_cond_signal, pthread_cond_t *cond)
{
	struct adapter *a = adapter_of(cond);

	if (a == freed)
		ATF_CHECK_EQ(EBUSY, pthread_mutex_trylock(&a->mtx));
	return (__real_pthread_cond_signal(cond));
}

WRAP(int, pthread_join, pthread_t thread, void **value)
{
	joined++;
	return (__real_pthread_join(thread, value));
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *ts)
{
	if (clock_now.tv_sec == 0 || clock != CLOCK_MONOTONIC)
		return (__real_clock_gettime(clock, ts));
	*ts = clock_now;
	return (0);
}

WRAP(int, sem_wait, sem_t *sem)
{
	if (go_interrupted > 0) {
		--go_interrupted;
		errno = EINTR;
		return (-1);
	}
	atomic_add_32(&go_waits, 1);
	return (__real_sem_wait(sem));
}

bool	keep_found;
uint32_t keep_resumes;

WRAP(bool, adapter_keep_found, struct adapter *p)
{
	return (keep_found || __real_adapter_keep_found(p));
}

WRAP(void, adapter_keep_resume, struct adapter *p,
    const struct e82545_config *model)
{
	atomic_add_32(&keep_resumes, 1);
	if (!keep_found)
		__real_adapter_keep_resume(p, model);
}

WRAP(void, loop_stop, struct loop *loop)
{
	stops++;
	__real_loop_stop(loop);
}

WRAP(void, free, void *p)
{
	was_freed |= p != NULL && p == freed;
	__real_free(p);
}

WRAP(void, adapter_keep_free, struct adapter *p)
{
	was_freed |= p == freed;
	__real_adapter_keep_free(p);
}

WRAP(enum e82545_tx_state, e82545_tx, struct e82545 *dev)
{
	tx_calls++;
	return (fake ? tx_state : __real_e82545_tx(dev));
}

WRAP(enum e82545_rx_state, e82545_rx, struct e82545 *dev)
{
	rx_calls++;
	return (fake ? rx_state : __real_e82545_rx(dev));
}

WRAP(void, e82545_pause, struct e82545 *dev)
{
	ATF_CHECK_EQ(resumes, pauses++);
	__real_e82545_pause(dev);
}

WRAP(void, e82545_resume, struct e82545 *dev)
{
	ATF_CHECK_EQ(pauses, ++resumes);
	__real_e82545_resume(dev);
}

static const struct adapter *receiver;

WRAP(void, adapter_keep_receiver, struct adapter *to)
{
	receiver = to;
	__real_adapter_keep_receiver(to);
}

WRAP(void, e82545_rx_direct, struct e82545 *dev __unused,
    struct frame_source *frames __unused)
{
	ATF_CHECK(receiver == ad);
	directs++;
	if (raise_level)
		ops->eo_intr(ops_arg, true);
}

bool
receives(void)
{
	return (receiver != NULL);
}

static bool
port_set_sink(struct frame_port *port __unused,
    void (*fn)(void *arg, struct frame_source *frames), void *arg)
{
	called(fn != NULL ? "sink" : "no sink");
	sink = fn;
	sink_arg = arg;
	return (true);
}

WRAP(int, adapter_net_open, struct adapter_net *an, const char *name,
    uint32_t mtu, int opener, char *why, size_t size)
{
	static struct frame_port_ops port_ops[16];
	static unsigned int n;
	struct frame_port_ops *po = &port_ops[n++ % nitems(port_ops)];
	int error;

	error = __real_adapter_net_open(an, name, mtu, opener, why, size);
	if (error == 0) {
		*po = *an->an_port->fp_ops;
		po->fpo_set_sink = port_set_sink;
		an->an_port->fp_ops = po;
	}
	return (error);
}

WRAP(void, adapter_net_close, struct adapter_net *an)
{
	called(an->an_port != NULL ? "no port" : "none");
	if (close_hook != NULL)
		close_hook();
	__real_adapter_net_close(an);
}

WRAP(int, loop_enable, struct loop_event *ev)
{
	enabled += ad != NULL && ev == ad->rx_ev;
	return (__real_loop_enable(ev));
}

WRAP(int, loop_disable, struct loop_event *ev)
{
	disabled += ad != NULL && ev == ad->rx_ev;
	return (__real_loop_disable(ev));
}

WRAP(int, sched_yield, void)
{
	yields++;
	return (0);
}

WRAP(int, timerfd_settime, int fd, int flags, const struct itimerspec *its,
    struct itimerspec *old)
{
	ATF_CHECK_EQ(ad->timer_fd, fd);
	timer = *its;
	timer_flags = flags;
	return (__real_timerfd_settime(fd, flags, its, old));
}

WRAP(int, vale_set_address, struct vale_desc *d, const uint8_t addr[6])
{
	strlcpy(addressed, d->common->name, sizeof(addressed));
	memcpy(address, addr, sizeof(address));
	return (fails("address") ? -1 : __real_vale_set_address(d, addr));
}

WRAP(void, e82545_move, struct e82545 *dev, struct frame_port *port,
    const char *name)
{
	called("move");
	__real_e82545_move(dev, port, name);
}

WRAP(void, e82545_change, struct e82545 *dev, uint32_t itr_256ns,
    uint32_t itr_min_256ns, uint32_t frame_max)
{
	ATF_CHECK_EQ(ad->dev, dev);
	called("change");
	changed[0] = itr_256ns;
	changed[1] = itr_min_256ns;
	changed[2] = frame_max;
}

void
configure(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	config.ac_listen = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0);
	/* The kernel finds a name. */
	ATF_REQUIRE_EQ(0, bind(config.ac_listen, (void *)&sun,
	    sizeof(sa_family_t)));
	ATF_REQUIRE_EQ(0, listen(config.ac_listen, 8));
	strlcpy(config.ac_backend, "vale0:a", sizeof(config.ac_backend));
	strlcpy(config.ac_name, "a", sizeof(config.ac_name));
	memcpy(config.ac_mac, "\2\0\0\0\0\7", 6);
}

void
start(void)
{
	configure();
	ad = adapter_start(&config, NULL);
	ATF_REQUIRE(ad != NULL);
	adapter_go(ad);
	pthread_join(ad->thread, NULL);
	ad->thread = ad->vfu.vdev_thread = pthread_self();
	tx_calls = rx_calls = enabled = disabled = events_repeated = 0;
}

void
share(uint64_t gpa, int prot)
{
	const char *why;
	int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ATF_REQUIRE(fd != -1 && ftruncate(fd, SIZE) == 0);
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	ram = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ATF_REQUIRE(ram != MAP_FAILED);
	ATF_REQUIRE_EQ(0, peer_mem_map(&ad->vfu.vdev_mem, fd, 0, gpa, SIZE,
	    prot, &why));
}

void
attach(void)
{
	ad->vfu.vdev_ops->vdo_attach(ad->vfu.vdev_arg);
}

void
detach(void)
{
	ad->vfu.vdev_ops->vdo_detach(ad->vfu.vdev_arg);
}

void
client(void)
{
	const uint16_t command = 7;

	attach();
	share(GPA, PROT_READ | PROT_WRITE);
	vfu_pci_write(&ad->vfu.vdev_pci, 4, &command, sizeof(command));
	e82545_bus_master(ad->dev, true);
}

void
work(void)
{
	const uint64_t one = 1;

	ATF_REQUIRE_EQ((ssize_t)sizeof(one), write(ad->work_fd, &one,
	    sizeof(one)));
	ATF_REQUIRE(events_step() >= 1);
}

bool
goes_on(void)
{
	const bool on = round_within == 0;

	round_within = -1;
	return (on);
}

bool
posted(void)
{
	uint64_t n;

	if (read(ad->work_fd, &n, sizeof(n)) == -1)
		return (false);
	ATF_CHECK_EQ(1, n);
	ad->work_posted = 0;
	return (true);
}

