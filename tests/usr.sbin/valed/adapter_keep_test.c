/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Whose client is blamed when a process ends: processes that have an adapter
 * for each of two clients end, each in its own way, and the next one then has
 * the adapters, or not.  This process is the store.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter.h"
#include "adapter_keep.h"
#include "adapter_keep_impl.h"
#include "adapter_version.h"
#include "e82545.h"
#include "frame_none.h"
#include "peer_fault.h"
#include "peer_fds.h"
#include "peer_mem_journal.h"
#include "peer_signal.h"
#include "test.h"
#include "valed_sandbox.h"
#include "valed_store.h"
#include "wrap.h"

/* How the process ends. */
struct end {
	void	(*e_how)(void);
	int	e_signal;
	bool	e_sandbox;
	int	e_serves;	/* the thread's adapter, or -1 */
	int	e_receives;	/* another one, or -1 */
	bool	e_done;		/* no longer */
};

static time_t	later;		/* seconds that clocks are ahead */

WRAP(int, clock_gettime, clockid_t id, struct timespec *ts)
{
	const int error = __real_clock_gettime(id, ts);

	ts->tv_sec += later;
	return (error);
}

/*
 * The store.
 */

static void
drop_fd(void *arg __unused, int fd)
{
	close(fd);
}

/* Do what a process, which has ended, has told. */
static void
store_read(int s)
{
	struct valed_store_message vsm;
	union {
		struct cmsghdr	align;
		char		buf[PEER_FDS_SPACE(1)];
	} control;
	struct iovec iov = { &vsm, sizeof(vsm) };
	int fd;

	for (;;) {
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
		    .msg_control = control.buf,
		    .msg_controllen = sizeof(control.buf) };
		struct peer_fds mf = { .mf_fd = &fd, .mf_max = 1,
		    .mf_drop = drop_fd };

		if (recvmsg(s, &msg, MSG_CMSG_CLOEXEC) <= 0)
			return;
		(void)peer_fds_take(&msg, &mf);
		if (vsm.vsm_what == VALED_STORE_PUT)
			valed_store_set(vsm.vsm_text, fd);
		else if (vsm.vsm_what == VALED_STORE_REMOVE)
			valed_store_unset(vsm.vsm_text);
	}
}

static void
store_clear(void)
{
	int fd;

	while (valed_store_count() > 0)
		valed_store_unset(valed_store_entry(0, &fd));
}

/*
 * A process.
 */

static struct adapter *adapters[2];
static const struct end *the_end;

static void
on_pause(void *arg __unused, bool paused __unused)
{
}

/* Returns whether it may be there. */
static bool
adapter_make(unsigned int i)
{
	const struct adapter_config ac = { .ac_slot = (int)i + 1,
	    .ac_backend = "vale0:vm", .ac_name = "vm", .ac_where = "vm" };
	struct adapter *ad = adapter_keep_alloc(&ac);

	if (ad == NULL) {
		if (errno != EPERM)
			abort();
		return (false);
	}
	ad->config = ac;
	peer_mem_init(&ad->vfu.vdev_mem, 0, on_pause, ad);
	adapter_keep_live(ad);
	adapters[i] = ad;
	return (true);
}

static void *
thread_main(void *arg __unused)
{
	const struct end *e = the_end;

	if (e->e_serves != -1)
		adapter_keep_blame(adapters[e->e_serves]);
	if (e->e_receives != -1)
		adapter_keep_receiver(adapters[e->e_receives]);
	if (e->e_done)
		adapter_keep_receiver(NULL);
	e->e_how();
	return (NULL);
}

/* Exits with a bit for each adapter that may not be there. */
static void __dead2
process(int s)
{
	int refused = 0;
	unsigned int i;
	pthread_t thread;

	valed_store_serve(s);
	for (i = 0; i < 2; i++)
		if (!adapter_make(i))
			refused |= 1 << i;
	if (the_end == NULL)
		_exit(refused);
	if (refused != 0 || valed_store_pair(-1) == -1 ||
	    peer_fault_init() != 0)
		abort();
	adapter_keep_signals();
	if (the_end->e_sandbox && valed_sandbox_enter(-1,
	    valed_store_fd()) == -1)
		abort();
	if (pthread_create(&thread, NULL, thread_main, NULL) == 0)
		pthread_join(thread, NULL);
	_exit(0);
}

/* Have a process end so, or, if it is NULL, without that.  Returns its status. */
static int
run(const struct end *e)
{
	int fds[2], status;
	pid_t pid;

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
	    0, fds));
	the_end = e;
	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		close(fds[0]);
		process(fds[1]);
	}
	close(fds[1]);
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	store_read(fds[0]);
	close(fds[0]);
	return (status);
}

static void
ends(const struct end *e)
{
	const int status = run(e);

	ATF_CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == e->e_signal,
	    "status %#x, not signal %d", status, e->e_signal);
}

/* Those that may not be there, as bits. */
static int
refused(void)
{
	const int status = run(NULL);

	ATF_REQUIRE_MSG(WIFEXITED(status), "status %#x", status);
	return (WEXITSTATUS(status));
}

/*
 * How it ends.
 */

static void
by_segv(void)
{
	*(volatile char *)(uintptr_t)8 = 1;
}

/* Of a file that has become shorter; it is nobody's memory. */
static void
by_bus(void)
{
	const int fd = memfd_create("file", MFD_CLOEXEC);
	char *p = fd == -1 || ftruncate(fd, PEER_MEM_PAGE) == -1 ? MAP_FAILED :
	    mmap(NULL, PEER_MEM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	    0);

	if (p == MAP_FAILED || ftruncate(fd, 0) == -1)
		return;
	*(volatile char *)p = 1;
}

static void
by_ill(void)
{
	__builtin_trap();
}

static void
by_abort(void)
{
	abort();
}

static void
by_fpe(void)
{
	volatile int zero = 0, one = 1;

	one = one / zero;
}

static void
by_call(void)
{
	syscall(SYS_setuid, 0);
}

/* What an attacker does who would like to go on. */
static void
by_handler(void)
{
	signal(SIGSYS, SIG_IGN);
}

static void
by_kill(void)
{
	kill(getpid(), SIGKILL);
}

#ifdef SANITIZED
#define	NEEDS_FAULTS()	atf_tc_skip("a sanitizer handles faults")
#else
#define	NEEDS_FAULTS()
#endif

TEST(kinds, "A fault, or a system call that is not permitted, is the client's "
    "whose thread it was, and the second is one too many")
{
	static const struct end kinds[] = {
		{ by_segv, SIGSEGV, false, 0, -1, false },
		{ by_segv, SIGSEGV, true, 0, -1, false },
		{ by_bus, SIGBUS, false, 0, -1, false },
		{ by_bus, SIGBUS, true, 0, -1, false },
		{ by_ill, SIGILL, true, 0, -1, false },
		{ by_fpe, SIGFPE, true, 0, -1, false },
		{ by_abort, SIGABRT, true, 0, -1, false },
		{ by_call, SIGSYS, true, 0, -1, false },
		{ by_handler, SIGSYS, true, 0, -1, false },
	};
	unsigned int i;

	NEEDS_FAULTS();
	for (i = 0; i < nitems(kinds); i++) {
		ends(&kinds[i]);
		ATF_CHECK_EQ(0, refused());
		ends(&kinds[i]);
		ATF_CHECK_EQ_MSG(1, refused(), "%u", i);
		/* It stays so, and the other is not touched. */
		ATF_CHECK_EQ(1, refused());
		store_clear();
	}
}

TEST(nobody, "To be killed is nobody's fault, and neither is another thread's")
{
	static const struct end kill = { by_kill, SIGKILL, false, 0, 1, false };
	static const struct end other = { by_abort, SIGABRT, true, -1, -1,
	    false };
	unsigned int i;

	NEEDS_FAULTS();
	for (i = 0; i < 3; i++) {
		ends(&kill);
		ends(&other);
		ATF_CHECK_EQ(0, refused());
	}
}

TEST(both, "Who sends frames and who gets them are both blamed, as long as one "
    "of them has had to do with each end")
{
	static const struct end
	    there = { by_segv, SIGSEGV, true, 0, 1, false },
	    back = { by_call, SIGSYS, true, 1, 0, false },
	    after = { by_bus, SIGBUS, true, 0, 1, true },
	    outside = { by_bus, SIGBUS, true, -1, 1, false };

	NEEDS_FAULTS();
	ends(&there);
	ends(&back);
	ATF_CHECK_EQ(3, refused());
	store_clear();
	/* The one that was there both times. */
	ends(&there);
	ends(&after);
	ATF_CHECK_EQ(1, refused());
	store_clear();
	/* Frames of an interface, or of a program. */
	ends(&outside);
	ends(&outside);
	ATF_CHECK_EQ(2, refused());
	store_clear();
}

TEST(minute, "Two that are more than a minute apart are not too many")
{
	static const struct end e = { by_abort, SIGABRT, true, 0, -1, false };

	NEEDS_FAULTS();
	ends(&e);
	ATF_CHECK_EQ(0, refused());
	later += 61;
	ends(&e);
	ATF_CHECK_EQ(0, refused());
	later += 40;
	ends(&e);
	ATF_CHECK_EQ(1, refused());
	/* Until the next reload, which removes the memory. */
	later += 100;
	ATF_CHECK_EQ(1, refused());
}

/*
 * What an earlier process has left in the store, which a client may have taken
 * over.
 */

enum { SAVED = 1, MEMORY = 2, JOURNAL = 4 };

/* What vfu_state_restore() got: not more than `most', or more. */
enum { NONE, GOOD, BAD };
static size_t	most;
static int	restored;

WRAP(int, vfu_state_restore, struct vfu_device *vd, const void *buf,
    size_t len, const struct peer_mem_journal *j, struct peer_kept *all,
    size_t n, const char **why)
{
	(void)__real_vfu_state_restore;
	(void)vd, (void)buf, (void)j, (void)all, (void)n, (void)why;
	restored = MAX(restored, len <= most ? GOOD : BAD);
	return (EINVAL);
}

static int
looks(struct adapter_keep *ak)
{
	/* All of it is there. */
	if (ak->ak_journal != NULL && ((volatile const char *)ak->ak_journal)
	    [sizeof(*ak->ak_journal) - 1] != 0)
		abort();
	return ((ak->ak_saved != NULL ? SAVED : 0) |
	    (ak->ak_old != NULL ? MEMORY : 0) |
	    (ak->ak_journal != NULL ? JOURNAL : 0));
}

static int
resumes(struct adapter_keep *ak)
{
	static const struct e82545_config config;

	adapter_keep_resume(&ak->ak_adapter, &config);
	return (restored);
}

/* What the next process finds, or does, with the first adapter. */
static int
next(int (*fn)(struct adapter_keep *))
{
	static const struct adapter_config ac = { .ac_slot = 1,
	    .ac_backend = "vale0:vm", .ac_name = "vm", .ac_where = "vm" };
	struct adapter_keep *ak;
	int fds[2], status;
	pid_t pid;

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
	    0, fds));
	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		close(fds[0]);
		valed_store_serve(fds[1]);
		ak = keep_of(adapter_keep_alloc(&ac));
		ak->ak_adapter.config = ac;
		ak->ak_adapter.vfu.vdev_server.fd = -1;
		_exit(fn(ak));
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	close(fds[0]);
	close(fds[1]);
	ATF_REQUIRE_MSG(WIFEXITED(status), "status %#x", status);
	return (WEXITSTATUS(status));
}

/* What the next process goes on from, of the first adapter. */
static int
goes_on_from(void)
{
	return (next(looks));
}

#define	SIZED		(F_SEAL_SHRINK | F_SEAL_GROW)

/* A file in the store, of these bytes and zeros. */
static void
leave(const char *name, const void *p, size_t len, size_t size, int seals)
{
	const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ATF_REQUIRE(fd != -1 && ftruncate(fd, (off_t)size) == 0);
	ATF_REQUIRE(pwrite(fd, p, MIN(len, size), 0) != -1);
	ATF_REQUIRE(fcntl(fd, F_ADD_SEALS, seals) == 0);
	valed_store_set(name, fd);
}

/* A field of eight bytes, at most, that is wrong. */
struct wrong {
	size_t		w_at;
	size_t		w_len;
	uint64_t	w_value;
	size_t		w_size;		/* of the file; 0: as it is */
	int		w_unsealed;	/* without this seal */
};

#define	FIELD(type, field, value) { .w_at = offsetof(struct type, field),  \
	.w_len = MIN(sizeof(((struct type *)0)->field), 8), .w_value = (value) }

static void
leave_wrong(const char *name, const void *good, size_t size,
    const struct wrong *w)
{
	uint8_t *p = malloc(size);

	ATF_REQUIRE(p != NULL);
	memcpy(p, good, size);
	memcpy(p + w->w_at, &w->w_value, w->w_len);
	leave(name, p, size, w->w_size != 0 ? w->w_size : size,
	    SIZED & ~w->w_unsealed);
	free(p);
}

TEST(left, "A file of an earlier process with one wrong field is as none")
{
	static const struct adapter_saved saved = { .as_magic = SAVED_MAGIC,
	    .as_version = ADAPTER_SAVED_VERSION, .as_generation = 5 };
	static struct adapter_keep memory;
	static const struct wrong of_saved[] = {
		FIELD(adapter_saved, as_magic, 'v'),
		FIELD(adapter_saved, as_version, ADAPTER_SAVED_VERSION + 1),
		FIELD(adapter_saved, as_version, 0),
		FIELD(adapter_saved, as_device, 1),
		FIELD(adapter_saved, as_device, UINT64_MAX),
		FIELD(adapter_saved, as_model, 1),
		FIELD(adapter_saved, as_model, UINT64_MAX),
		FIELD(adapter_saved, as_mac, 1),
		{ .w_size = sizeof(saved) - 1 }, { .w_size = 1 },
		{ .w_size = (64 << 20) + 1 },
		{ .w_unsealed = F_SEAL_SHRINK }, { .w_unsealed = F_SEAL_GROW },
	}, of_memory[] = {
		FIELD(adapter_keep, ak_magic, 'v'),
		FIELD(adapter_keep, ak_size, sizeof(memory) - 1),
		FIELD(adapter_keep, ak_size, UINT64_MAX),
		FIELD(adapter_keep, ak_model_at, sizeof(memory) + 1),
		FIELD(adapter_keep, ak_model_at, UINT64_MAX),
		FIELD(adapter_keep, ak_mac, 1),
		{ .w_size = sizeof(memory) - 1 }, { .w_size = 1 },
		{ .w_unsealed = F_SEAL_SHRINK }, { .w_unsealed = F_SEAL_GROW },
	};
	const struct wrong none = { .w_at = 0 };
	unsigned int i;
	int pipes[2];

	memcpy(memory.ak_magic, KEEP_MAGIC, sizeof(memory.ak_magic));
	memory.ak_size = sizeof(memory);
	memory.ak_generation = 5;
	ATF_CHECK_EQ(JOURNAL, goes_on_from());
	leave_wrong("0008.saved", &saved, sizeof(saved), &none);
	leave_wrong("0008.memory", &memory, sizeof(memory), &none);
	ATF_CHECK_EQ(SAVED | MEMORY | JOURNAL, goes_on_from());
	for (i = 0; i < nitems(of_saved); i++) {
		leave_wrong("0008.saved", &saved, sizeof(saved), &of_saved[i]);
		ATF_CHECK_EQ_MSG(MEMORY | JOURNAL, goes_on_from(), "%u", i);
	}
	leave_wrong("0008.saved", &saved, sizeof(saved), &none);
	for (i = 0; i < nitems(of_memory); i++) {
		leave_wrong("0008.memory", &memory, sizeof(memory),
		    &of_memory[i]);
		ATF_CHECK_EQ_MSG(SAVED | JOURNAL, goes_on_from(), "%u", i);
	}
	/* The newer one counts, and what is saved has the same number. */
	memory.ak_generation = 6;
	leave_wrong("0008.memory", &memory, sizeof(memory), &none);
	ATF_CHECK_EQ(MEMORY | JOURNAL, goes_on_from());
	/* What is no memory could block. */
	ATF_REQUIRE_EQ(0, pipe(pipes));
	valed_store_set("0008.saved", pipes[0]);
	valed_store_set("0008.memory", dup(pipes[0]));
	valed_store_set("0008.journal", dup(pipes[0]));
	ATF_CHECK_EQ(JOURNAL, goes_on_from());
	/* In place of a journal of another form there is a new one. */
	leave("0008.journal", "", 0, PEER_MEM_PAGE, SIZED);
	ATF_CHECK_EQ(JOURNAL, goes_on_from());
	leave("0008.journal", "", 0, sizeof(struct peer_mem_journal), 0);
	ATF_CHECK_EQ(JOURNAL, goes_on_from());
	store_clear();
}

/* A duplicate of a file in the store, as the service manager has one. */
static int
stored(const char *name)
{
	unsigned int i;
	int fd;

	for (i = 0; i < valed_store_count(); i++)
		if (strcmp(valed_store_entry(i, &fd), name) == 0)
			return (dup(fd));
	return (-1);
}

TEST(once, "No process goes on from files that another one has gone on from, "
    "or tries that more than three times")
{
	static const struct adapter_saved saved = { .as_magic = SAVED_MAGIC,
	    .as_version = ADAPTER_SAVED_VERSION, .as_generation = 5 };
	static struct adapter_keep memory;
	static const struct wrong none;
	int files[2], i;

	memcpy(memory.ak_magic, KEEP_MAGIC, sizeof(memory.ak_magic));
	memory.ak_size = sizeof(memory);
	leave_wrong("0008.saved", &saved, sizeof(saved), &none);
	leave_wrong("0008.memory", &memory, sizeof(memory), &none);
	for (i = 0; i < 5; i++)
		ATF_CHECK_EQ_MSG(i < 3 ? GOOD : NONE, next(resumes), "%d", i);
	files[0] = stored("0008.saved");
	files[1] = stored("0008.memory");
	ATF_CHECK_EQ(SAVED | MEMORY | JOURNAL, goes_on_from());
	ATF_CHECK_EQ(0, refused());
	valed_store_set("0008.saved", files[0]);
	ATF_CHECK_EQ(MEMORY | JOURNAL, goes_on_from());
	valed_store_set("0008.memory", files[1]);
	ATF_CHECK_EQ(JOURNAL, goes_on_from());
	store_clear();
}

/*
 * A client that has taken over the earlier process may write to the file, whose
 * first bytes are old when the last ones are copied.
 */
#define	LARGE		(4 << 20)

static void *
flip(void *arg)
{
	volatile struct adapter_saved *as = arg;

	for (;;)
		as->as_device = as->as_device == 0 ? LARGE + 1 : 0;
	return (NULL);
}

static int
resumes_much(struct adapter_keep *ak)
{
	pthread_t thread;
	int i;

	ak->ak_saved->as_device = 0;
	if (pthread_create(&thread, NULL, flip, ak->ak_saved) != 0)
		abort();
	for (i = 0; i < 500 && restored != BAD; i++) {
		ak->ak_saved->as_resumes = 0;
		(void)resumes(ak);
	}
	return (restored);
}

TEST(changed, "A file that changes while it is looked at is used as it was "
    "looked at")
{
	static const struct adapter_saved saved = { .as_magic = SAVED_MAGIC,
	    .as_version = ADAPTER_SAVED_VERSION, .as_generation = 5 };

	leave("0008.saved", &saved, sizeof(saved), LARGE, SIZED);
	most = LARGE;
	ATF_CHECK_EQ(GOOD, next(resumes_much));
	store_clear();
}

static uint64_t
saves_now(void *arg __unused)
{
	return (1);
}

/* Save the state with an interrupt pending; GOOD if it stays so. */
static int
saves(struct adapter_keep *ak)
{
	static const struct e82545_ops ops = { .eo_now = saves_now };
	struct adapter *ad = &ak->ak_adapter;
	struct vfu_irq *irq = &ad->vfu.vdev_irq;
	struct e82545_config config = { .ec_kind = E82545_KIND_EM };
	struct frame_source source;
	struct frame_port port;
	eventfd_t n;

	frame_none_init(&port, &source);
	config.ec_memory = adapter_keep_model(ad, &config.ec_memory_size);
	ad->dev = e82545_create(&config, &ops, NULL, &port);
	vfu_irq_init(irq, VFU_IRQ_VECTORS);
	irq->msi_fd = eventfd(0, EFD_NONBLOCK);
	if (ad->dev == NULL || irq->msi_fd == -1 || peer_signal_start() != 0)
		abort();
	vfu_irq_level(irq, true);
	(void)vfu_irq_signal(irq);
	if (eventfd_read(irq->msi_fd, &n) == -1)
		return (NONE);
	vfu_irq_level(irq, true);
	adapter_keep_save(ad);
	(void)vfu_irq_signal(irq);
	return (eventfd_read(irq->msi_fd, &n) == -1 ? GOOD : BAD);
}

TEST(held, "What is saved of interrupts is what the client has got: no thread "
    "sends another one")
{
	ATF_CHECK_EQ(GOOD, next(saves));
	store_clear();
}

TEST_PROGRAM
