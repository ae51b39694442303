/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The host's side of the model (adapter.c), step by step: the event loop is
 * event_stub.c, and the linker's --wrap sends what adapter.c calls of the
 * model, its port and the kernel here first.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter.h"
#include "config.h"
#include "e82545.h"
#include "event_stub.h"
#include "frame_port.h"
#include "net_backends.h"
#include "net_port.h"
#include "test.h"
#include "valed.h"
#include "vfu_fault.h"
#include "wait_until.h"

#define	GPA		0x500000000	/* of the client's memory */
#define	SIZE		0x10000
#define	RING		0x1010		/* the transmit ring there */
#define	TX_POLLS	16		/* in one call of adapter_work() */

/* What the model returns instead of running, if `fake'. */
static bool		fake;
static enum e82545_tx_state tx_state;
static enum e82545_rx_state rx_state;
static unsigned int	tx_calls, rx_calls, yields, enabled, disabled;
static unsigned int	pauses, resumes;
/* What the adapter gave the model, and its port. */
static const struct e82545_ops *ops;
static void		*ops_arg;
static struct e82545_config model;
static uint32_t		frame_max;
static void		(*sink)(void *arg, struct frame_source *frames);
static void		*sink_arg;
static bool		raise_level;	/* e82545_rx_direct() does */
/* The step that fails, with ENOBUFS; the calls for settings, and others. */
static const char	*fail_at;
static char		settings[128];
static char		calls[256];
static bool		joins;		/* vfu_dma_join() does once */
static unsigned int	interrupted;	/* calls of sem_wait() to come */
static bool		serves;		/* the loop ends as adapter_stop() has it */
static char		thread_name[16];
static const void	*freed;		/* was it? */
static bool		was_freed;
static net_be_rxeof_t	receive;	/* the backend's */
static struct itimerspec timer;
static int		timer_flags;

static struct adapter_config config;
static struct adapter	*ad;
static uint8_t		*ram;

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
mevent_dispatch(void)
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

/*
 * WRAP(type, name, arguments) defines a function to call in place of `name'.
 */
#define	WRAP(type, name, ...)						\
	type	__real_##name(__VA_ARGS__);				\
	type	__wrap_##name(__VA_ARGS__);				\
	type	__wrap_##name(__VA_ARGS__)

WRAP(struct e82545 *, e82545_create, const struct e82545_config *c,
    const struct e82545_ops *o, void *arg, struct frame_port *port)
{
	model = *c;
	ops = o;
	ops_arg = arg;
	return (fails("model") ? NULL : __real_e82545_create(c, o, arg, port));
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

WRAP(void, vfu_irq_intx_disable, struct vfu_irq *irq, bool off)
{
	called(off ? "no intx" : "intx");
	__real_vfu_irq_intx_disable(irq, off);
}

WRAP(void, vfu_dma_set_wanted, struct vfu_dma *dma, void (*fn)(void *arg))
{
	called("wanted");
	__real_vfu_dma_set_wanted(dma, fn);
}

WRAP(bool, vfu_dma_join, struct vfu_dma *dma __unused)
{
	const bool joined = joins;

	joins = false;
	return (joined);
}

WRAP(int, vfu_fault_add, struct vfu_dma *dma, void (*lost)(void *arg),
    void *arg)
{
	return (fails("fault") ? ENOBUFS : __real_vfu_fault_add(dma, lost,
	    arg));
}

WRAP(int, vfu_server_init, struct adapter *a)
{
	return (fails("server") ? -1 : __real_vfu_server_init(a));
}

WRAP(int, sem_init, sem_t *sem, int shared, unsigned int value)
{
	ATF_CHECK_EQ(0, shared);
	ATF_CHECK_EQ(0, value);
	/* The first, or the second. */
	if (fail_at != NULL && strcmp(fail_at, "sem2") == 0)
		fail_at = "sem";
	else if (fails("sem"))
		return (-1);
	return (__real_sem_init(sem, shared, value));
}

WRAP(int, sem_wait, sem_t *sem)
{
	if (interrupted > 0) {
		interrupted--;
		errno = EINTR;
		return (-1);
	}
	return (__real_sem_wait(sem));
}

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr,
    void *(*fn)(void *), void *arg)
{
	return (fails("thread") ? ENOBUFS : __real_pthread_create(thread, attr,
	    fn, arg));
}

WRAP(void, free, void *p)
{
	was_freed |= p != NULL && p == freed;
	__real_free(p);
}

WRAP(int, netbe_init, net_backend_t **be, nvlist_t *nvl, net_be_rxeof_t fn,
    void *arg)
{
	receive = fn;
	return (__real_netbe_init(be, nvl, fn, arg));
}

WRAP(void, net_port_destroy, struct frame_port *port)
{
	called(port != NULL ? "no port" : "none");
	__real_net_port_destroy(port);
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

WRAP(void, e82545_rx_direct, struct e82545 *dev __unused,
    struct frame_source *frames __unused)
{
	if (raise_level)
		ops->eo_intr(ops_arg, true);
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

WRAP(struct frame_port *, net_port_create, struct net_backend *be,
    uint32_t max)
{
	static struct frame_port_ops port_ops;
	struct frame_port *port;

	if (fails("port"))
		return (NULL);
	frame_max = max;
	port = __real_net_port_create(be, max);
	port_ops = *port->fp_ops;
	port_ops.fpo_set_sink = port_set_sink;
	port->fp_ops = &port_ops;
	return (port);
}

WRAP(void, netbe_rx_enable, struct net_backend *be)
{
	enabled++;
	__real_netbe_rx_enable(be);
}

WRAP(void, netbe_rx_disable, struct net_backend *be)
{
	disabled++;
	__real_netbe_rx_disable(be);
}

WRAP(int, sched_yield, void)
{
	yields++;
	return (0);
}

WRAP(int, timerfd_create, int clock, int flags)
{
	ATF_CHECK_EQ(CLOCK_MONOTONIC, clock);
	return (fails("timer") ? -1 : __real_timerfd_create(clock, flags));
}

WRAP(int, eventfd, unsigned int value, int flags)
{
	return (fails("event") ? -1 : __real_eventfd(value, flags));
}

WRAP(int, timerfd_settime, int fd, int flags, const struct itimerspec *its,
    struct itimerspec *old)
{
	ATF_CHECK_EQ(ad->timer_fd, fd);
	timer = *its;
	timer_flags = flags;
	return (__real_timerfd_settime(fd, flags, its, old));
}

/* A setting of the port: its name and value. */
static int
set(const char *what, const char *name, unsigned long value)
{
	size_t at = strlen(settings);

	ATF_CHECK_STREQ("vale0:a", name);
	snprintf(settings + at, sizeof(settings) - at, "%s %lu;", what, value);
	return (fails(what) ? -1 : 0);
}

WRAP(int, vale_set_rate, const char *name, const struct vale_rate_conf *conf)
{
	return (set("rate", name, conf->rc_rate));
}

WRAP(int, vale_set_limit, const char *name, uint32_t limit)
{
	return (set("limit", name, limit));
}

WRAP(int, vale_set_private, const char *name, bool private)
{
	return (set("private", name, private));
}

WRAP(int, vale_set_weight, const char *name, uint32_t weight)
{
	return (set("weight", name, weight));
}

/* Have what is written to standard error in a file, until log_text(). */
static int	log_fd = -1, log_stderr = -1;

static void
log_start(void)
{
	log_fd = open("log", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	log_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	ATF_REQUIRE(log_fd != -1 && log_stderr != -1);
	ATF_REQUIRE(dup2(log_fd, STDERR_FILENO) != -1);
}

static const char *
log_text(void)
{
	static char text[1024];
	ssize_t n;

	ATF_REQUIRE(dup2(log_stderr, STDERR_FILENO) != -1);
	n = pread(log_fd, text, sizeof(text) - 1, 0);
	ATF_REQUIRE(n >= 0);
	text[n] = '\0';
	close(log_fd);
	close(log_stderr);
	return (text);
}

static void
configure(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	init_config();
	config.ac_listen = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0);
	/* The kernel finds a name. */
	ATF_REQUIRE_EQ(0, bind(config.ac_listen, (void *)&sun,
	    sizeof(sa_family_t)));
	ATF_REQUIRE_EQ(0, listen(config.ac_listen, 8));
	config.ac_nvl = create_config_node("pci.0.1.0");
	set_config_value_node(config.ac_nvl, "backend", "vale0:a");
	config.ac_backend = "vale0:a";
	config.ac_name = "a";
	memcpy(config.ac_mac, "\2\0\0\0\0\7", 6);
}

/* Start it; this thread is the adapter's then. */
static void
start(void)
{
	configure();
	ad = adapter_start(&config);
	ATF_REQUIRE(ad != NULL);
	adapter_go(ad);
	pthread_join(ad->thread, NULL);
	ad->thread = pthread_self();
	tx_calls = rx_calls = enabled = disabled = events_repeated = 0;
}

/* Share memory. */
static void
share(uint64_t gpa, int prot)
{
	const char *why;
	int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ATF_REQUIRE(fd != -1 && ftruncate(fd, SIZE) == 0);
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	ram = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ATF_REQUIRE(ram != MAP_FAILED);
	ATF_REQUIRE_EQ(0, vfu_dma_map(&ad->dma, fd, 0, gpa, SIZE, prot,
	    &why));
}

/* A client with memory, whose guest has enabled bus mastering. */
static void
client(void)
{
	const uint16_t command = 7;

	adapter_attach(ad);
	share(GPA, PROT_READ | PROT_WRITE);
	vfu_pci_write(&ad->pci, 4, &command, sizeof(command));
	e82545_bus_master(ad->dev, true);
}

static void
put(uint32_t reg, uint32_t value)
{
	e82545_write(ad->dev, E82545_BAR_MEM, reg, 4, value);
}

/* One round of the event loop, with an event that needs no work itself. */
static void
work(void)
{
	const uint64_t one = 1;

	ATF_REQUIRE_EQ((ssize_t)sizeof(one), write(ad->work_fd, &one,
	    sizeof(one)));
	ATF_REQUIRE(events_step() >= 1);
}

/* Whether the thread has been asked to work once more. */
static bool
posted(void)
{
	uint64_t n;

	if (read(ad->work_fd, &n, sizeof(n)) == -1)
		return (false);
	ATF_CHECK_EQ(1, n);
	ad->work_posted = 0;
	return (true);
}

TEST(transmits, "A poll is repeated 16 times a round, a yield once more gives \
the processor away, and what is not idle goes on")
{
	static const struct {
		enum e82545_tx_state state;
		unsigned int calls, yields;
		bool again;
	} rows[] = {
		{ E82545_TX_POLL, TX_POLLS, 0, true },
		{ E82545_TX_YIELD, TX_POLLS, 1, true },
		{ E82545_TX_MORE, 1, 0, true },
		{ E82545_TX_IDLE, 1, 0, false },
	};
	unsigned int i;

	start();
	fake = true;
	rx_state = E82545_RX_IDLE;
	adapter_attach(ad);
	work();
	ATF_CHECK_EQ_MSG(0, tx_calls, "not before a kick");
	ATF_CHECK_EQ(1, rx_calls);
	ATF_CHECK(!posted());
	for (i = 0; i < nitems(rows); i++) {
		tx_state = rows[i].state;
		tx_calls = yields = 0;
		ops->eo_tx_kick(ops_arg);
		work();
		ATF_CHECK_EQ(rows[i].calls, tx_calls);
		ATF_CHECK_EQ(rows[i].yields, yields);
		ATF_CHECK_EQ(rows[i].again, posted());
		work();
		ATF_CHECK_EQ_MSG(rows[i].again ? 2 * rows[i].calls : 1,
		    tx_calls, "%u: %u", i, tx_calls);
		(void)posted();
	}
	ATF_CHECK_EQ(1, rx_calls);
}

TEST(receives, "The backend's events are off while the guest has no buffers, \
and are turned on or off once")
{
	unsigned int i;

	start();
	fake = true;
	adapter_attach(ad);
	rx_state = E82545_RX_MORE;
	for (i = 1; i < 4; i++) {
		work();
		ATF_CHECK_EQ(i, rx_calls);
		ATF_CHECK(posted());
	}
	ATF_CHECK_EQ(0, enabled + disabled);
	for (i = 0; i < 2; i++) {
		rx_state = E82545_RX_IDLE;
		ops->eo_rx_ready(ops_arg);
		work();
		ATF_CHECK_EQ(1, enabled);
		ATF_CHECK(!posted());
	}
	work();
	ATF_CHECK_EQ_MSG(5, rx_calls, "%u: not unless wanted", rx_calls);
	ATF_CHECK_EQ(0, disabled);
	for (i = 0; i < 2; i++) {
		rx_state = E82545_RX_STALLED;
		ops->eo_rx_ready(ops_arg);
		work();
		ATF_CHECK_EQ(1, disabled);
		ATF_CHECK(!posted());
	}
	rx_state = E82545_RX_IDLE;
	ops->eo_rx_ready(ops_arg);
	work();
	ATF_CHECK_EQ(2, enabled);
	ATF_CHECK_EQ(0, tx_calls);
	ATF_CHECK_EQ(0, events_repeated);
	/* The backend says that there are frames. */
	rx_calls = 0;
	receive(-1, EVF_READ, ad);
	work();
	ATF_CHECK_EQ(1, rx_calls);
}

TEST(rounds, "A round is counted, sends interrupts before and after, and goes \
both ways if rings were joined")
{
	uint64_t n;

	start();
	fake = true;
	tx_state = E82545_TX_IDLE;
	rx_state = E82545_RX_IDLE;
	n = ad->counters[ADAPTER_C_WAKEUP];
	work();
	ATF_CHECK_STREQ("flush;flush;", calls);
	ATF_CHECK_EQ(n + 1, ad->counters[ADAPTER_C_WAKEUP]);
	ATF_CHECK_EQ(0, tx_calls + rx_calls);
	ATF_CHECK_EQ(0, ad->counters[ADAPTER_C_DMA_JOIN]);
	joins = true;
	work();
	ATF_CHECK_EQ(1, tx_calls);
	ATF_CHECK_EQ(1, rx_calls);
	ATF_CHECK_EQ(1, ad->counters[ADAPTER_C_DMA_JOIN]);
}

TEST(attaches, "A new client finds nothing of the former")
{
	start();
	fake = true;
	rx_state = E82545_RX_IDLE;
	client();
	ATF_CHECK_EQ(1, pauses);
	ATF_CHECK_EQ(1, resumes);
	ad->irq.msi_fd = eventfd(0, EFD_CLOEXEC);
	ATF_REQUIRE(ad->irq.msi_fd != -1);
	ops->eo_tx_kick(ops_arg);
	work();
	ad->unshared = ad->looked = true;
	ad->refusals = 7;
	ad->tx_wanted = true;
	calls[0] = '\0';
	adapter_detach(ad);
	ATF_CHECK_STREQ("no master;reset;intx;", calls);
	ATF_CHECK_EQ(-1, ad->irq.msi_fd);
	ATF_CHECK_EQ(0, ad->dma.n);
	ATF_CHECK(!vfu_pci_busmaster(&ad->pci));
	ad->rx_wanted = false;
	adapter_attach(ad);
	ATF_CHECK(!ad->unshared && !ad->looked);
	ATF_CHECK_EQ(0, ad->refusals);
	tx_calls = rx_calls = 0;
	work();
	ATF_CHECK_EQ(0, tx_calls);
	ATF_CHECK_EQ(1, rx_calls);
}

TEST(timers, "A time is the kernel's, to the nanosecond")
{
	static const uint64_t when[] = { 1, 999999999, 1000000000,
	    7000000255, 123456789987654321 };
	struct timespec ts;
	uint64_t now;
	unsigned int i;

	start();
	for (i = 0; i < nitems(when); i++) {
		ops->eo_timer(ops_arg, when[i]);
		ATF_CHECK_EQ(when[i] / 1000000000, timer.it_value.tv_sec);
		ATF_CHECK_EQ(when[i] % 1000000000, timer.it_value.tv_nsec);
		ATF_CHECK_EQ(0, timer.it_interval.tv_sec);
		ATF_CHECK_EQ(0, timer.it_interval.tv_nsec);
		ATF_CHECK_EQ(TFD_TIMER_ABSTIME, timer_flags);
	}
	/* The same clock. */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = ops->eo_now(ops_arg);
	ATF_CHECK(now >= ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ATF_CHECK(now <= ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec);
	/* Its event reads it. */
	ops->eo_timer(ops_arg, now);
	calls[0] = '\0';
	while (events_step() == 0)
		continue;
	ATF_CHECK_EQ(0, strncmp(calls, "timer;", 6));
	ATF_CHECK_EQ(0, events_step());
}

TEST(interrupts, "Frames of another adapter wake the thread for an interrupt \
only, and once")
{
	const uint64_t most = UINT64_MAX - 1;
	uint64_t n;

	config.ac_direct = true;
	start();
	ATF_REQUIRE(sink != NULL);
	sink(sink_arg, NULL);
	ATF_CHECK(!posted());
	raise_level = true;
	sink(sink_arg, NULL);
	ATF_CHECK(vfu_irq_pending(&ad->irq));
	sink(sink_arg, NULL);
	ATF_CHECK(posted());
	ATF_CHECK(!posted());
	work();
	ATF_CHECK(!vfu_irq_pending(&ad->irq));

	/* An event that cannot be posted is posted the next time. */
	raise_level = false;
	ops->eo_intr(ops_arg, false);
	ATF_REQUIRE_EQ((ssize_t)sizeof(most), write(ad->work_fd, &most,
	    sizeof(most)));
	raise_level = true;
	sink(sink_arg, NULL);
	ATF_CHECK_EQ(0, ad->work_posted);
	ATF_REQUIRE_EQ((ssize_t)sizeof(n), read(ad->work_fd, &n, sizeof(n)));
	ATF_CHECK_EQ(most, n);
	sink(sink_arg, NULL);
	ATF_CHECK(posted());
}

/* What adapter_look() says of a descriptor, and whether it looks again. */
static void
check_look(uint32_t head, uint64_t first, uint64_t second, const char *line)
{
	uint64_t *desc = (void *)(ram + RING + 16 * head);

	desc[0] = first;
	desc[1] = second;
	log_start();
	ops->eo_tx_kick(ops_arg);
	work();
	ATF_CHECK_STREQ(line, log_text());
	ATF_CHECK_EQ(line[0] != '\0', ad->looked);
}

TEST(looks, "One line tells of descriptors that are all zeros, at their \
address; none of others")
{
	const uint16_t none = 0, command = 7;

	start();
	fake = true;
	tx_state = E82545_TX_IDLE;
	rx_state = E82545_RX_IDLE;
	client();
	put(E82545_TDBAL, (GPA + RING) & UINT32_MAX);
	put(E82545_TDBAH, GPA >> 32);
	put(E82545_TDLEN, 16 * 64);
	put(E82545_TDH, 3);
	put(E82545_TDT, 4);
	check_look(3, 1, 0, "");
	check_look(3, 0, 1, "");
	check_look(3, UINT64_C(1) << 63, UINT64_C(1) << 63, "");
	vfu_pci_write(&ad->pci, 4, &none, sizeof(none));
	check_look(3, 0, 0, "");
	vfu_pci_write(&ad->pci, 4, &command, sizeof(command));
	/* Not in its memory. */
	put(E82545_TDBAH, 0);
	check_look(3, 0, 0, "");
	/* Nor in what it may read. */
	share(GPA << 1, PROT_WRITE);
	put(E82545_TDBAL, ((GPA << 1) + RING) & UINT32_MAX);
	put(E82545_TDBAH, (GPA << 1) >> 32);
	check_look(3, 0, 0, "");
	put(E82545_TDBAL, (GPA + RING) & UINT32_MAX);
	put(E82545_TDBAH, GPA >> 32);
	check_look(3, 0, 0, "valed: a: the guest's transmit descriptors are not "
	    "in its memory at 0x500001040: QEMU needs memory-backend-memfd "
	    "with share=on\n");
	/* Once. */
	ad->looked = false;
	log_start();
	ops->eo_tx_kick(ops_arg);
	work();
	ATF_CHECK_STREQ("", log_text());
	/* Nothing is pending: before the first packet, and behind it. */
	adapter_attach(ad);
	put(E82545_TDT, 3);
	ops->eo_tx_kick(ops_arg);
	work();
	ATF_CHECK(ad->looked);
	adapter_attach(ad);
	put(E82545_TDH, 0);
	put(E82545_TDT, 0);
	ops->eo_tx_kick(ops_arg);
	work();
	ATF_CHECK(!ad->looked);
	/* While the model polls, something was sent. */
	tx_state = E82545_TX_MORE;
	put(E82545_TDT, 4);
	check_look(0, 0, 0, "");
}

TEST(configures, "The model, the port and its descriptors are as configured")
{
	struct e82545_config want;

	config.ac_itr_256ns = 1000;
	config.ac_itr_min_256ns = 250;
	config.ac_csb = true;
	config.ac_mtu = 1500;
	config.ac_rate.rc_rate = 5000;
	config.ac_limit = 3;
	config.ac_private = true;
	config.ac_weight = 9;
	memset(&want, 0, sizeof(want));
	memcpy(want.ec_mac, "\2\0\0\0\0\7", 6);
	want.ec_itr_256ns = 1000;
	want.ec_itr_min_256ns = 250;
	want.ec_csb = true;
	start();
	want.ec_name = config.ac_name;
	ATF_CHECK_EQ(0, memcmp(&want, &model, sizeof(want)));
	ATF_CHECK_EQ(E82545_PCI_SUBDEVICE_CSB, ad->pci.subdevice);
	ATF_CHECK(ad->port->fp_offloads);
	ATF_CHECK_STREQ("a", thread_name);
	ATF_CHECK_EQ(1500 + E82545_HDRLEN_MAX, frame_max);
	ATF_CHECK_STREQ("rate 5000;limit 3;private 1;weight 9;", settings);
	ATF_CHECK(sink == NULL);
	ATF_CHECK_EQ(O_NONBLOCK, fcntl(ad->timer_fd, F_GETFL) & O_NONBLOCK);
	ATF_CHECK_EQ(O_NONBLOCK, fcntl(ad->work_fd, F_GETFL) & O_NONBLOCK);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(ad->timer_fd, F_GETFD));
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(ad->work_fd, F_GETFD));
	/* Frames wait in the port until there is a client. */
	ATF_CHECK(ad->rx_stopped);
	ATF_CHECK_EQ(3, events_on());
}

TEST(defaults, "What is not configured is not set")
{
	start();
	ATF_CHECK_STREQ("", settings);
	ATF_CHECK_EQ(UINT32_MAX, frame_max);
	ATF_CHECK(!model.ec_csb);
	ATF_CHECK_EQ(E82545_PCI_SUBDEVICE, ad->pci.subdevice);
	ATF_CHECK_EQ(-1, ad->irq.msi_fd);
	ATF_CHECK_EQ(-1, ad->irq.intx_fd);
	ATF_CHECK_EQ(0, model.ec_itr_256ns + model.ec_itr_min_256ns);
}

TEST(ends, "A signal interrupts no wait; at its end, all is undone, and freed")
{
	unsigned int i;

	configure();
	config.ac_direct = serves = true;
	for (i = 0; i < 3; i++) {
		interrupted = i;
		ad = adapter_start(&config);
		ATF_REQUIRE(ad != NULL);
		ATF_CHECK(!adapter_ended(ad));
		ad->live = malloc(8);
		freed = i == 0 ? (const void *)ad : ad->live;
		interrupted = i;
		adapter_stop(ad);
		adapter_go(ad);
		wait_until(adapter_ended(ad), "the thread's end");
		ATF_CHECK(was_freed);
		was_freed = false;
		ATF_CHECK_STREQ("no sink;destroy;no port;", calls);
		ATF_CHECK_EQ(0, events_used());
	}
}

/* Descriptors that this process has open. */
static unsigned int
open_fds(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < 256; i++)
		n += fcntl(i, F_GETFD) != -1;
	return (n);
}

TEST(fails, "A step that fails is named in one line, and undone")
{
	static const struct {
		const char *step, *line;
	} rows[] = {
		{ "timer", "event descriptors" },
		{ "event", "event descriptors" },
		{ "rate", "settings of the port" },
		{ "limit", "settings of the port" },
		{ "private", "settings of the port" },
		{ "weight", "settings of the port" },
		{ "port", "frame port" },
		{ "model", "adapter" },
		{ "fault", "spare page" },
		{ "server", "socket" },
		{ "sandbox", "capabilities" },
		{ "sem", "cannot start" },
		{ "sem2", "cannot start" },
		{ "thread", "cannot start" },
	};
	char line[128];
	unsigned int fds, i;

	config.ac_rate.rc_rate = 5000;
	config.ac_limit = 3;
	config.ac_private = true;
	config.ac_weight = 9;
	configure();
	fds = open_fds();
	for (i = 0; i < nitems(rows); i++) {
		fail_at = rows[i].step;
		settings[0] = '\0';
		errno = 0;
		log_start();
		ATF_CHECK_MSG(adapter_start(&config) == NULL, "%s",
		    rows[i].step);
		ATF_CHECK_EQ_MSG(ENOBUFS, errno, "%s: %d", rows[i].step, errno);
		snprintf(line, sizeof(line), "valed: a: %s: %s\n",
		    rows[i].line, strerror(ENOBUFS));
		ATF_CHECK_STREQ(line, log_text());
		ATF_CHECK_EQ_MSG(fds, open_fds(), "%s: %u", rows[i].step,
		    open_fds());
		ATF_CHECK_EQ(0, events_used());
	}
	/* Each event. */
	fail_at = NULL;
	for (i = 1; i <= 2; i++) {
		events_fail = i;
		ATF_CHECK(adapter_start(&config) == NULL);
		ATF_CHECK_EQ(ENOSPC, errno);
		ATF_CHECK_EQ(fds, open_fds());
		ATF_CHECK_EQ(0, events_used());
	}
	/* The backend says itself what is wrong. */
	set_config_value_node(config.ac_nvl, "backend", "vale0:");
	log_start();
	ATF_CHECK(adapter_start(&config) == NULL);
	ATF_CHECK_EQ(EIO, errno);
	ATF_CHECK(strstr(log_text(), "valed: a:") == NULL);
	ATF_CHECK_EQ(fds, open_fds());
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, transmits);
	ATF_TP_ADD_TC(tp, receives);
	ATF_TP_ADD_TC(tp, rounds);
	ATF_TP_ADD_TC(tp, attaches);
	ATF_TP_ADD_TC(tp, timers);
	ATF_TP_ADD_TC(tp, interrupts);
	ATF_TP_ADD_TC(tp, looks);
	ATF_TP_ADD_TC(tp, configures);
	ATF_TP_ADD_TC(tp, defaults);
	ATF_TP_ADD_TC(tp, ends);
	ATF_TP_ADD_TC(tp, fails);
	return (atf_no_error());
}
