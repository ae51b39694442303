/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The time of a single frame through valed, without guests: this program runs
 * valed with two adapters and plays the client and the driver of each.
 *
 *	single [-c] [-a busy] [-i idle] [-n frames] [-o options] msix|msi|intx valed
 *
 * One sends a frame to the other, and then the other back.  The time is from
 * the message that writes TDT to the receiver's eventfd being readable in a
 * thread that waits for it.  Each driver does what Linux's does then: with
 * msix, of the 82574L, it unmasks the vector; with msi and intx, of the
 * 82545EM, it reads ICR, masks, and unmasks, each write followed by a read.
 *
 * Beside the two, -a has so many other adapters send all the time, each to one
 * of its own, and -i so many have clients and drivers, too, and send nothing.
 * -o is added to the options of each adapter.  A line of the CSV is
 *
 *	kind,busy,idle,frames,median_us,p99_us,messages,switches,busy_fps,memory_kb
 *
 * kind: with the options, as msix+poll=100; messages: of both clients, a frame;
 * switches: how often the threads of the two adapters have gone to sleep, a
 * frame; busy_fps: frames a second of the busy adapters, since they began;
 * memory_kb: of valed, without that of the guests.  With -c strace(1) counts
 * instead, and this program prints valed's system calls, a frame.  That takes
 * much longer, so fewer events come together.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <dev/e1000/e82574_reg.h>

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/pci_regs.h>

#include "bench.h"
#include "send_fds.h"
#include "vfu_message.h"

#define	RAM		(1 << 20)
#define	GPA		0x100000
#define	SLOTS		64
#define	TXRING		0x1000
#define	RXRING		0x2000
#define	TXBUF		0x10000
#define	RXBUF		0x40000
#define	LEN		60
#define	BUSY_MAX	64
#define	IDLE_MAX	250		/* a switch has 254 ports */
#define	MSIX_CAP	0xa0		/* of the 82574L */
#define	MSI_CAP		0xf0		/* of the 82545EM */
#define	WARM		200		/* frames that are not measured */

enum kind {
	MSIX,
	MSI,
	INTX
};

/* A client with its driver. */
struct guest {
	enum kind	 kind;
	int		 s;
	uint8_t		*ram;
	uint8_t		 mac;		/* its last byte */
	uint16_t	 id;		/* of the last message */
	uint64_t	 messages;
	int		 irq[3];	/* queues', and the other */
	uint32_t	 tail;
	uint32_t	 next;		/* descriptor to receive */
};

static char	dir[] = "/tmp/bench-single.XXXXXX";
static pid_t	valed_pid;
static const char *options = "";
static uint64_t	busy_frames;		/* atomic */
static uint32_t	busy_stop;		/* atomic */

/*
 * Messages.
 */

static void
put(struct guest *g, unsigned int command, uint32_t flags, const void *data,
    size_t len, const int *fds, unsigned int nfds)
{
	uint8_t buf[256];
	const size_t n = vfu_message(buf, ++g->id, command, flags, data, len);

	if (send_fds(g->s, buf, n, fds, nfds, 0) != (ssize_t)n)
		err(1, "send");
	g->messages++;
}

static void
take(struct guest *g, void *buf, size_t len)
{
	/* Of nothing, recv(2) would wait for a byte. */
	if (len > 0 && recv(g->s, buf, len, MSG_WAITALL) != (ssize_t)len)
		err(1, "no answer");
}

/* Send a command and wait for its reply, of which the last bytes are *value. */
static void
ask(struct guest *g, unsigned int command, const void *data, size_t len,
    const int *fds, unsigned int nfds, void *value, size_t size)
{
	struct vfio_user_header h;
	uint8_t buf[512];

	put(g, command, 0, data, len, fds, nfds);
	take(g, &h, sizeof(h));
	if (h.error != 0 || h.id != g->id || h.size - sizeof(h) > sizeof(buf))
		errx(1, "command %u: error %u", command, h.error);
	take(g, buf, h.size - sizeof(h));
	if (size > 0)
		memcpy(value, buf + h.size - sizeof(h) - size, size);
}

/* A write to a region. */
struct access {
	struct vfio_user_region_rw rw;
	uint32_t	value;		/* its first rw.count bytes */
};

static uint32_t
get(struct guest *g, uint32_t reg)
{
	const struct vfio_user_region_rw rw = { reg, 0, 4 };
	uint32_t value;

	ask(g, VFIO_USER_REGION_READ, &rw, sizeof(rw), NULL, 0, &value, 4);
	return (value);
}

/* As QEMU, a write does not wait. */
static void
set(struct guest *g, uint32_t reg, uint32_t value)
{
	const struct access a = { { reg, 0, 4 }, value };

	put(g, VFIO_USER_REGION_WRITE, VFIO_USER_F_NO_REPLY, &a,
	    sizeof(a.rw) + a.rw.count, NULL, 0);
}

static void
configure(struct guest *g, uint64_t off, uint16_t value)
{
	const struct access a = { { off, VFIO_PCI_CONFIG_REGION_INDEX, 2 },
	    value };

	ask(g, VFIO_USER_REGION_WRITE, &a, sizeof(a.rw) + a.rw.count, NULL, 0,
	    NULL, 0);
}

static void
set_irqs(struct guest *g, uint32_t index, uint32_t flags, const int *fds,
    uint32_t n)
{
	const struct vfio_user_irq_set is = { sizeof(is), flags, index, 0, n };

	ask(g, VFIO_USER_DEVICE_SET_IRQS, &is, sizeof(is), fds,
	    fds == NULL ? 0 : n, NULL, 0);
}

/*
 * A guest.
 */

static void
dial(struct guest *g, const char *name)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const uint64_t until_ns = bench_now_ns() + 60000000000ULL;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/%s", dir, name);
	g->s = socket(AF_UNIX, SOCK_STREAM, 0);
	while (connect(g->s, (void *)&sun, sizeof(sun)) == -1) {
		if (bench_now_ns() > until_ns ||
		    waitpid(valed_pid, NULL, WNOHANG) != 0)
			errx(1, "valed does not start");
		poll(NULL, 0, 10);
	}
}

static void
interrupts(struct guest *g)
{
	static const uint32_t index[] = { VFIO_PCI_MSIX_IRQ_INDEX,
	    VFIO_PCI_MSI_IRQ_INDEX, VFIO_PCI_INTX_IRQ_INDEX };
	const unsigned int n = g->kind == MSIX ? nitems(g->irq) : 1;
	unsigned int i;

	for (i = 0; i < n; i++)
		if ((g->irq[i] = eventfd(0, EFD_NONBLOCK)) == -1)
			err(1, "eventfd");
	set_irqs(g, index[g->kind], VFIO_IRQ_SET_DATA_EVENTFD |
	    VFIO_IRQ_SET_ACTION_TRIGGER, g->irq, n);
	if (g->kind == MSI)
		configure(g, MSI_CAP + PCI_MSI_FLAGS, PCI_MSI_FLAGS_ENABLE);
	if (g->kind != MSIX) {
		set(g, E82545_ITR, 195);
		set(g, E82545_IMS, E82545_ICR_TXDW | E82545_ICR_RXT0);
		return;
	}
	configure(g, MSIX_CAP + PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE);
	set(g, E82574_IVAR, 0x80000000 | 8 | 9 << 8 | 10 << 16);
	set(g, E82574_EIAC, E82574_ICR_MSIX);
	set(g, E82574_EITR(0), 195);
	set(g, E82574_EITR(1), 195);
	set(g, E82545_RDTR, 0x20);
	set(g, E82545_RADV, 0x20);
	set(g, E82545_IMS, E82574_ICR_RXQ0 | E82574_ICR_TXQ0);
}

static void
rings(struct guest *g)
{
	union e82545_txd *txd = (void *)(g->ram + TXRING);
	uint64_t *rxd = (void *)(g->ram + RXRING);
	unsigned int i;

	for (i = 0; i < SLOTS; i++) {
		memset(&txd[i], 0, sizeof(txd[i]));
		txd[i].addr = GPA + TXBUF + 2048 * i;
		rxd[2 * i] = GPA + RXBUF + 2048 * i;
		rxd[2 * i + 1] = 0;
	}
	set(g, E82545_TDBAL, GPA + TXRING);
	set(g, E82545_TDLEN, SLOTS * sizeof(*txd));
	set(g, E82545_RDBAL, GPA + RXRING);
	set(g, E82545_RDLEN, SLOTS * 16);
	set(g, E82545_TIDV, 8);
	set(g, E82545_TADV, 32);
	set(g, E82545_CTRL, E82545_CTRL_SLU);
	set(g, E82545_RDT, SLOTS - 1);
	set(g, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	set(g, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_UPE |
	    E82545_RCTL_BAM | E82545_RCTL_SECRC);
}

static void
guest_start(struct guest *g, enum kind kind, const char *name, uint8_t mac)
{
	static const struct vfio_user_version version;
	const struct vfio_user_dma_map map = { sizeof(map),
	    VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE, 0, GPA, RAM };
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	memset(g, 0, sizeof(*g));
	g->kind = kind;
	g->mac = mac;
	if (fd == -1 || ftruncate(fd, RAM) == -1 || fcntl(fd, F_ADD_SEALS,
	    F_SEAL_SHRINK | F_SEAL_GROW) == -1)
		err(1, "memfd");
	g->ram = mmap(NULL, RAM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (g->ram == MAP_FAILED)
		err(1, "mmap");
	dial(g, name);
	ask(g, VFIO_USER_VERSION, &version, sizeof(version), NULL, 0, NULL, 0);
	ask(g, VFIO_USER_DMA_MAP, &map, sizeof(map), &fd, 1, NULL, 0);
	close(fd);
	configure(g, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	rings(g);
	interrupts(g);
	(void)get(g, E82545_STATUS);
}

/* Put a frame to address `to' into the ring. */
static void
queue(struct guest *g, uint8_t to)
{
	union e82545_txd *txd = (union e82545_txd *)(g->ram + TXRING) + g->tail;
	uint8_t *frame = g->ram + TXBUF + 2048 * g->tail;

	memset(frame, 0, LEN);
	frame[0] = frame[6] = 2;
	frame[5] = to;
	frame[11] = g->mac;
	txd->upper = 0;
	txd->lower = LEN | E82545_TXD_EOP | E82545_TXD_IFCS | E82545_TXD_RS |
	    E82545_TXD_IDE;
	g->tail = (g->tail + 1) % SLOTS;
}

/* Take the frames that have come; return how many. */
static unsigned int
receive(struct guest *g)
{
	volatile uint8_t *ring = g->ram + RXRING;
	unsigned int n = 0;

	while ((ring[16 * g->next + 12] & E82545_RXD_DD) != 0) {
		ring[16 * g->next + 12] = 0;
		g->next = (g->next + 1) % SLOTS;
		/* Buffers are given back for several frames at once. */
		if (g->next % 16 == 0)
			set(g, E82545_RDT, (g->next + SLOTS - 1) % SLOTS);
		n++;
	}
	return (n);
}

static bool
fired(int fd)
{
	uint64_t n;

	return (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n));
}

/* Handle the interrupts that there are, as the driver; return frames. */
static unsigned int
handle(struct guest *g)
{
	unsigned int n = 0;

	if (!fired(g->irq[0])) {
		if (g->kind == MSIX && fired(g->irq[1]))
			set(g, E82545_IMS, E82574_ICR_TXQ0);
		return (0);
	}
	if (g->kind == MSIX) {
		n = receive(g);
		set(g, E82545_IMS, E82574_ICR_RXQ0);
		return (n);
	}
	(void)get(g, E82545_ICR);
	if (g->kind == INTX)
		set_irqs(g, VFIO_PCI_INTX_IRQ_INDEX, VFIO_IRQ_SET_DATA_NONE |
		    VFIO_IRQ_SET_ACTION_UNMASK, NULL, 1);
	set(g, E82545_IMC, UINT32_MAX);
	(void)get(g, E82545_STATUS);
	n = receive(g);
	set(g, E82545_IMS, E82545_ICR_TXDW | E82545_ICR_RXT0);
	(void)get(g, E82545_STATUS);
	return (n);
}

/*
 * The measurement: g[0] and g[1] send a frame in turn.
 */
static void
exchange(struct guest g[2], uint32_t frames, uint64_t *times_ns)
{
	struct pollfd pfd[4];
	unsigned int from, i;
	uint64_t begun;
	uint32_t n;
	bool come;

	for (n = 0; n < frames; n++) {
		from = n % 2;
		queue(&g[from], g[!from].mac);
		begun = bench_now_ns();
		set(&g[from], E82545_TDT, g[from].tail);
		for (come = false; !come;) {
			for (i = 0; i < 4; i++)
				pfd[i] = (struct pollfd){ g[i / 2].irq[i % 2],
				    POLLIN, 0 };
			if (g[0].kind != MSIX)
				pfd[1].fd = pfd[3].fd = -1;
			if (poll(pfd, 4, 60000) < 1)
				errx(1, "a frame was lost");
			if (times_ns != NULL &&
			    (pfd[2 * !from].revents & POLLIN) != 0)
				times_ns[n] = bench_now_ns() - begun;
			for (i = 0; i < 2; i++)
				come |= handle(&g[i]) > 0 && i != from;
		}
	}
}

static int
compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y ? -1 : x > y);
}

/*
 * The busy ones.
 */

struct pair {
	struct guest	 from, to;
	pthread_t	 thread;
	uint32_t	 sending;	/* atomic: has sent frames */
};

static void *
busy(void *arg)
{
	struct pair *p = arg;
	volatile uint8_t *ring = p->from.ram + TXRING;
	unsigned int i, last;

	/* A tail that the head never reaches: all buffers are used again. */
	set(&p->to, E82545_IMC, UINT32_MAX);
	set(&p->from, E82545_IMC, UINT32_MAX);
	set(&p->to, E82545_RDT, SLOTS);
	while (atomic_load_32(&busy_stop) == 0) {
		for (i = 0; i < SLOTS / 2; i++)
			queue(&p->from, p->to.mac);
		last = (p->from.tail + SLOTS - 1) % SLOTS;
		set(&p->from, E82545_TDT, p->from.tail);
		while ((ring[16 * last + 12] & E82545_TXD_DD) == 0)
			sched_yield();
		atomic_add_64(&busy_frames, SLOTS / 2);
		atomic_store_32(&p->sending, 1);
	}
	return (NULL);
}

/* Start them, and wait until each has sent frames. */
static void
busy_start(struct pair *p, unsigned int n)
{
	char name[16];
	unsigned int i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		guest_start(&p[i].from, MSI, name, 2 * i + 10);
		snprintf(name, sizeof(name), "t%u", i);
		guest_start(&p[i].to, MSI, name, 2 * i + 11);
		/* The switch learns where it is. */
		queue(&p[i].to, p[i].from.mac);
		set(&p[i].to, E82545_TDT, p[i].to.tail);
		(void)get(&p[i].to, E82545_STATUS);
	}
	for (i = 0; i < n; i++)
		if (pthread_create(&p[i].thread, NULL, busy, &p[i]) != 0)
			errx(1, "no thread");
	for (i = 0; i < n; i++)
		while (atomic_load_32(&p[i].sending) == 0)
			poll(NULL, 0, 1);
}

static void
busy_end(struct pair *p, unsigned int n)
{
	unsigned int i;

	atomic_store_32(&busy_stop, 1);
	for (i = 0; i < n; i++)
		pthread_join(p[i].thread, NULL);
}

/*
 * valed.
 */

/* An adapter's option. */
static char *
adapter(unsigned int place, const char *device, const char *port,
    const char *name)
{
	char *text;

	if (asprintf(&text, "%u:%u:0,%s,%s,path=%s/%s,mtu=1500%s", place / 32,
	    place % 32, device, port, dir, name, options) == -1)
		err(1, NULL);
	return (text);
}

static void
valed_start(char *valed, enum kind kind, unsigned int nbusy,
    unsigned int nidle)
{
	const char *device = kind == MSIX ? "e1000e" : "e1000";
	char *argv[1 + 4 * (BUSY_MAX + 1) + 2 * IDLE_MAX + 1];
	char name[16], port[32];
	unsigned int i, n = 0;

	argv[n++] = valed;
	for (i = 0; i < 2 * (nbusy + 1); i++) {
		if (i < 2)
			snprintf(name, sizeof(name), "%c", 'a' + i);
		else
			snprintf(name, sizeof(name), "%c%u", "ft"[i % 2],
			    i / 2 - 1);
		snprintf(port, sizeof(port), "vale%u:%s", i / 2, name);
		argv[n++] = (char *)(uintptr_t)"-s";
		argv[n++] = adapter(i + 1, i < 2 ? device : "e1000", port,
		    name);
	}
	/* On the switch of the two. */
	while (nidle-- > 0) {
		snprintf(name, sizeof(name), "i%u", nidle);
		snprintf(port, sizeof(port), "vale0:%s", name);
		argv[n++] = (char *)(uintptr_t)"-s";
		argv[n++] = adapter(++i, device, port, name);
	}
	argv[n] = NULL;
	valed_pid = fork();
	if (valed_pid == 0) {
		execv(valed, argv);
		err(1, "%s", valed);
	}
	if (valed_pid == -1)
		err(1, "fork");
}

static void
valed_end(void)
{
	if (valed_pid > 0) {
		kill(valed_pid, SIGTERM);
		waitpid(valed_pid, NULL, 0);
	}
	rmdir(dir);
}

/* How often the threads of the two adapters have gone to sleep. */
static uint64_t
switches(void)
{
	char path[300], line[128];
	unsigned long n;
	uint64_t sum = 0;
	struct dirent *de;
	FILE *f;
	DIR *d;
	bool ours;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)valed_pid);
	d = opendir(path);
	while (d != NULL && (de = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status",
		    (int)valed_pid, de->d_name);
		f = fopen(path, "r");
		for (ours = false; f != NULL &&
		    fgets(line, sizeof(line), f) != NULL;) {
			ours |= strcmp(line, "Name:\ta\n") == 0 ||
			    strcmp(line, "Name:\tb\n") == 0;
			if (ours && sscanf(line, "voluntary_ctxt_switches: %lu",
			    &n) == 1)
				sum += n;
		}
		if (f != NULL)
			fclose(f);
	}
	if (d != NULL)
		closedir(d);
	return (sum);
}

/*
 * The memory of valed in KB, each page that it shares with others as a part,
 * but without that of the guests, which have its names.
 */
static unsigned long
memory(void)
{
	char path[64], line[512], name[32];
	unsigned long kb, sum = 0, from, to;
	bool guest = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)valed_pid);
	f = fopen(path, "r");
	if (f == NULL)
		err(1, "%s", path);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			guest = sscanf(line, "%*s %*s %*s %*s %*s /memfd:%31s",
			    name) == 1 && (strlen(name) == 1 ||
			    strspn(name + 1, "0123456789") == strlen(name) - 1);
		else if (!guest && sscanf(line, "Pss: %lu", &kb) == 1)
			sum += kb;
	}
	fclose(f);
	return (sum);
}

/* Have strace(1) count system calls until count_end(). */
static pid_t
count_start(const char *file)
{
	char pid[16], path[64], line[128];
	bool traced = false;
	pid_t child;
	FILE *f;
	int n;

	snprintf(pid, sizeof(pid), "%d", (int)valed_pid);
	child = fork();
	if (child == 0) {
		(void)!freopen("/dev/null", "w", stderr);
		execlp("strace", "strace", "-c", "-f", "-o", file, "-p", pid,
		    NULL);
		_exit(1);
	}
	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	while (!traced) {
		if (waitpid(child, NULL, WNOHANG) != 0)
			errx(1, "strace does not run");
		f = fopen(path, "r");
		while (f != NULL && fgets(line, sizeof(line), f) != NULL)
			if (sscanf(line, "TracerPid: %d", &n) == 1 && n != 0)
				traced = true;
		if (f != NULL)
			fclose(f);
		poll(NULL, 0, 10);
	}
	/* All of its threads. */
	poll(NULL, 0, 200);
	return (child);
}

static void
count_end(pid_t child, const char *file, uint32_t frames)
{
	char line[256], name[64];
	unsigned long calls;
	FILE *f;

	kill(child, SIGINT);
	waitpid(child, NULL, 0);
	f = fopen(file, "r");
	if (f == NULL)
		err(1, "%s", file);
	while (fgets(line, sizeof(line), f) != NULL)
		if ((sscanf(line, "%*f %*f %*d %lu %*d %63[a-z_0-9]", &calls,
		    name) == 2 || sscanf(line, "%*f %*f %*d %lu %63[a-z_0-9]",
		    &calls, name) == 2) && strcmp(name, "total") != 0 &&
		    calls >= frames / 50)
			printf("%-16s%6.2f\n", name, (double)calls / frames);
	fclose(f);
	unlink(file);
}

static void __dead2
usage(void)
{
	fprintf(stderr, "usage: single [-c] [-a busy] [-i idle] "
	    "[-n frames] [-o options] msix|msi|intx valed\n");
	exit(1);
}

int
main(int argc, char **argv)
{
	static const char *const kinds[] = { "msix", "msi", "intx" };
	static struct pair pairs[BUSY_MAX];
	uint64_t begun, messages, slept, *times_ns;
	uint32_t frames = 4000, i, nbusy = 0, nidle = 0;
	static struct guest g[2], idle[IDLE_MAX];
	enum kind kind;
	char file[64], name[16];
	bool count = false;
	double busy_fps;
	pid_t child;
	int ch;

	while ((ch = getopt(argc, argv, "a:ci:n:o:")) != -1) {
		switch (ch) {
		case 'a':
			nbusy = bench_number(optarg, 0, BUSY_MAX);
			break;
		case 'c':
			count = true;
			break;
		case 'i':
			nidle = bench_number(optarg, 0, IDLE_MAX);
			break;
		case 'n':
			frames = bench_number(optarg, 100, 10000000);
			break;
		case 'o':
			options = optarg;
			break;
		default:
			usage();
		}
	}
	if (argc - optind != 2)
		usage();
	for (kind = MSIX; kind < nitems(kinds) &&
	    strcmp(argv[optind], kinds[kind]) != 0;)
		kind++;
	if (kind == nitems(kinds))
		usage();
	if (mkdtemp(dir) == NULL)
		err(1, "%s", dir);
	atexit(valed_end);
	valed_start(argv[optind + 1], kind, nbusy, nidle);
	for (i = 0; i < nidle; i++) {
		snprintf(name, sizeof(name), "i%u", i);
		guest_start(&idle[i], kind, name, 3);
	}
	guest_start(&g[0], kind, "a", 1);
	guest_start(&g[1], kind, "b", 2);
	begun = bench_now_ns();
	busy_start(pairs, nbusy);
	exchange(g, WARM, NULL);
	if (count) {
		snprintf(file, sizeof(file), "%s/strace", dir);
		child = count_start(file);
		exchange(g, frames, NULL);
		count_end(child, file, frames);
		busy_end(pairs, nbusy);
		return (0);
	}
	times_ns = calloc(frames, sizeof(*times_ns));
	if (times_ns == NULL)
		err(1, NULL);
	slept = switches();
	messages = g[0].messages + g[1].messages;
	exchange(g, frames, times_ns);
	busy_fps = atomic_load_64(&busy_frames) * 1e9 / (bench_now_ns() - begun);
	printf("%s", kinds[kind]);
	/* The options, with a + in place of each comma. */
	for (i = 0; options[i] != '\0'; i++)
		putchar(options[i] == ',' ? '+' : options[i]);
	printf(",%u,%u,%u,", nbusy, nidle, frames);
	qsort(times_ns, frames, sizeof(*times_ns), compare);
	printf("%.1f,%.1f,%.2f,%.2f,%.0f,%lu\n", times_ns[frames / 2] / 1e3,
	    times_ns[frames - 1 - frames / 100] / 1e3,
	    (double)(g[0].messages + g[1].messages - messages) / frames,
	    (double)(switches() - slept) / frames, busy_fps, memory());
	busy_end(pairs, nbusy);
	return (0);
}
