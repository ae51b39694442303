/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The store; see valed_store.h.  The table is the supervisor's.  The serving
 * process has the copy that it was forked with, from which it takes.  There a
 * mutex protects what valed_store_put() looks at, which any thread calls.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter_config.h"
#include "peer_close.h"
#include "peer_fds.h"
#include "valed_activation.h"
#include "valed_socket.h"
#include "valed_store.h"

/*
 * Descriptors that the store takes of each adapter, whatever others have; and
 * those beyond that, of all adapters.
 */
#define	STORE_SHARE	24
#define	STORE_MORE	1500
_Static_assert(VALED_MAXADAPTERS * STORE_SHARE + STORE_MORE +
    2 * VALED_NAMES < VALED_STORE_MAX, "there is space for sockets and lists");
/* Of no adapter: valed_place() is less. */
#define	STORE_NPLACES	0x10000

/* Bytes of a text, with its NUL. */
#define	TEXT_MAX	(4 << 20)
/* What valed_store_leave() has left: a descriptor and generations. */
#define	STORE_ENV	"VALED_STORE"

struct store_entry {
	char	name[VALED_STORE_NAME];
	int	fd;			/* -1: taken */
	uint16_t next;			/* with this hash, as store_hash */
	bool	put;			/* the serving process has put another
					   one there */
};

static pthread_mutex_t entries_mtx = PTHREAD_MUTEX_INITIALIZER;
static struct store_entry entries[VALED_STORE_MAX];
static unsigned int nentries;
/* The first entry with a hash, counted from 1, or 0. */
static uint16_t	store_hash[VALED_STORE_MAX];
_Static_assert(VALED_STORE_MAX < UINT16_MAX, "an entry has a number");
static struct {
	uint16_t n;			/* there are */
	bool	said;			/* a line has said that no more fit */
} store_places[STORE_NPLACES];
static unsigned int nmore;		/* beyond the shares */
static int	store_fd = -1;		/* the serving process's */

/* Return the entries with the hash of a name (FNV-1a). */
static uint16_t *
entry_first(const char *name)
{
	uint32_t hash = 2166136261;

	for (; *name != '\0'; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619;
	return (&store_hash[hash % nitems(store_hash)]);
}

static struct store_entry *
entry_find(const char *name)
{
	uint16_t i;

	for (i = *entry_first(name); i != 0; i = entries[i - 1].next)
		if (strcmp(entries[i - 1].name, name) == 0)
			return (&entries[i - 1]);
	return (NULL);
}

static void
entry_link(struct store_entry *se)
{
	uint16_t *first = entry_first(se->name);

	se->next = *first;
	*first = (uint16_t)(se - entries + 1);
}

static void
entry_unlink(struct store_entry *se)
{
	uint16_t *i = entry_first(se->name);

	while (&entries[*i - 1] != se)
		i = &entries[*i - 1].next;
	*i = se->next;
}

/* Forget all entries. */
static void
entries_clear(void)
{
	nentries = nmore = 0;
	memset(store_hash, 0, sizeof(store_hash));
	memset(store_places, 0, sizeof(store_places));
}

/* Return the place of the adapter that has a name, or STORE_NPLACES. */
static unsigned int
place_of(const char *name)
{
	unsigned int i, place = 0;
	const char *digits = "0123456789abcdef", *p;

	for (i = 0; i < 4; i++) {
		p = name[i] == '\0' ? NULL : strchr(digits, name[i]);
		if (p == NULL)
			return (STORE_NPLACES);
		place = place << 4 | (unsigned int)(p - digits);
	}
	return (name[4] == '.' ? place : STORE_NPLACES);
}

/* Count a descriptor of an adapter.  Returns false if it has no place. */
static bool
place_add(const char *name)
{
	const unsigned int place = place_of(name);

	if (place == STORE_NPLACES)
		return (nentries < VALED_STORE_MAX);
	if (nentries < VALED_STORE_MAX &&
	    (store_places[place].n < STORE_SHARE || nmore < STORE_MORE)) {
		nmore += store_places[place].n++ >= STORE_SHARE;
		return (true);
	}
	if (!store_places[place].said)
		warnx("slot %u:%u:%u: too many descriptors: the client is "
		    "disconnected when valed is restarted", place >> 8,
		    place >> 3 & VALED_MAXSLOT, place & VALED_MAXFUNC);
	store_places[place].said = true;
	return (false);
}

static void
place_remove(const char *name)
{
	const unsigned int place = place_of(name);

	if (place == STORE_NPLACES)
		return;
	nmore -= store_places[place].n-- > STORE_SHARE;
	/* Of the next client. */
	if (store_places[place].n < STORE_SHARE)
		store_places[place].said = false;
}

void
valed_store_set(const char *name, int fd)
{
	struct store_entry *se = entry_find(name);

	if (se != NULL)
		close(se->fd);
	else if (!place_add(name)) {
		close(fd);
		return;
	} else {
		se = &entries[nentries++];
		strlcpy(se->name, name, sizeof(se->name));
		se->put = false;
		entry_link(se);
	}
	se->fd = fd;
}

void
valed_store_unset(const char *name)
{
	struct store_entry *se = entry_find(name), *last;

	if (se == NULL)
		return;
	close(se->fd);
	place_remove(name);
	last = &entries[--nentries];
	entry_unlink(se);
	if (se == last)
		return;
	entry_unlink(last);
	*se = *last;
	entry_link(se);
}

unsigned int
valed_store_count(void)
{
	return (nentries);
}

const char *
valed_store_entry(unsigned int i, int *fd)
{
	*fd = entries[i].fd;
	return (entries[i].name);
}

/*
 * The service manager: sockets with descriptors in their queues.
 */

/* A message: the names, each with its NUL, and as many descriptors. */
static char	pack_names[PEER_FDS_MAX * VALED_STORE_NAME];

/* Send those from the i-th on.  Returns how many, or 0 with errno. */
static unsigned int
pack_send(int s, unsigned int i, bool wait)
{
	const unsigned int n = MIN(nentries - i, PEER_FDS_MAX);
	int fds[PEER_FDS_MAX];
	unsigned int k;
	size_t len = 0;

	for (k = 0; k < n; k++) {
		fds[k] = entries[i + k].fd;
		len += strlcpy(pack_names + len, entries[i + k].name,
		    VALED_STORE_NAME) + 1;
	}
	return (peer_fds_send(s, pack_names, len, fds, n, wait ?
	    PEER_FDS_WAIT_LIMIT : PEER_FDS_WAIT_NOT) == -1 ? 0 : n);
}

int
valed_store_pack(unsigned int *i, bool wait)
{
	const unsigned int first = *i;
	unsigned int n = 0;
	int error, fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0, fds) == -1)
		return (-1);
	do {
		*i += n;
		n = *i < nentries ? pack_send(fds[0], *i, wait) : 0;
	} while (n > 0);
	error = errno;
	close(fds[0]);
	if (*i > first)
		return (fds[1]);
	close(fds[1]);
	errno = error;
	return (-1);
}

/* Take a message of `len' bytes, with these descriptors. */
static void
unpack_message(const char *names, size_t len, const struct peer_fds *mf)
{
	const char *end = names + len;
	unsigned int i;
	size_t n;

	for (i = 0; i < mf->mf_n; i++) {
		n = strnlen(names, (size_t)(end - names));
		if (n == 0 || n >= VALED_STORE_NAME || names + n == end) {
			close(mf->mf_fd[i]);
			continue;
		}
		valed_store_set(names, mf->mf_fd[i]);
		names += n + 1;
	}
}

/* Return the generation that a name says, or -1. */
static int64_t
pack_generation(const char *name, size_t len)
{
	const size_t prefix = strlen(VALED_STORE_FDNAME);
	unsigned int n = 0;
	size_t i;

	if (len < prefix || memcmp(name, VALED_STORE_FDNAME, prefix) != 0)
		return (-1);
	if (len > prefix && name[prefix] != '.')
		return (-1);
	for (i = prefix + 1; i < len; i++)
		n = 10 * n + (unsigned char)(name[i] - '0');
	return (n);
}

/* What packs_look() finds: generations, and the first descriptor. */
static int64_t	pack_newest, pack_oldest;
static int	pack_first;

static void
packs_look(const char *name, size_t len, int fd)
{
	const int64_t generation = pack_generation(name, len);

	if (generation == -1)
		return;
	if (pack_newest == -1) {
		pack_first = fd;
		pack_oldest = generation;
	}
	pack_newest = MAX(pack_newest, generation);
	pack_oldest = MIN(pack_oldest, generation);
}

/* Take what is in a pack of the newest generation, and close it. */
static void
unpack(const char *name, size_t len, int s)
{
	const struct iovec iov = { pack_names, sizeof(pack_names) };
	const int64_t generation = pack_generation(name, len);
	int fds[PEER_FDS_MAX];
	struct peer_fds mf = { .mf_fd = fds, .mf_max = PEER_FDS_MAX };
	ssize_t n;

	if (generation == -1)
		return;
	while (generation == pack_newest &&
	    (n = peer_fds_recv(s, &iov, 1, &mf, MSG_DONTWAIT)) > 0) {
		unpack_message(pack_names, (size_t)n, &mf);
		mf.mf_n = 0;
	}
	close(s);
}

/*
 * execve(2): descriptors keep their numbers, and their names are in a file.
 */

int
valed_store_leave(unsigned int oldest, unsigned int newest)
{
	const int fd = memfd_create("store", 0);
	FILE *fp = fd == -1 ? NULL : fdopen(dup(fd), "w");
	char text[64];
	unsigned int i;

	for (i = 0; fp != NULL && i < nentries; i++) {
		(void)fcntl(entries[i].fd, F_SETFD, 0);
		fprintf(fp, "%d %s%c", entries[i].fd, entries[i].name, '\0');
	}
	snprintf(text, sizeof(text), "%d %u %u", fd, oldest, newest);
	if (fp != NULL && fclose(fp) == 0 && setenv(STORE_ENV, text, 1) == 0)
		return (fd);
	if (fd != -1)
		close(fd);
	return (-1);
}

/* Take the descriptors that are named in a file of valed_store_leave(). */
static void
table_take(int table)
{
	char record[16 + VALED_STORE_NAME], *name;
	FILE *fp = fdopen(table, "r");
	size_t len = 0;
	int c, fd;

	if (fp == NULL)
		return;
	rewind(fp);
	while ((c = getc(fp)) != EOF) {
		if (len < sizeof(record))
			record[len++] = (char)c;
		if (c != '\0')
			continue;
		record[len - 1] = '\0';
		len = 0;
		fd = (int)strtol(record, &name, 10);
		if (*name == ' ' && strlen(++name) < VALED_STORE_NAME &&
		    fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
			valed_store_set(name, fd);
	}
	fclose(fp);
}

/* Begin with what the program before execve(2) had. */
static bool
inherit_table(unsigned int *oldest, unsigned int *newest)
{
	const char *value = getenv(STORE_ENV);
	int fd;

	if (value == NULL || sscanf(value, "%d %u %u", &fd, oldest,
	    newest) != 3)
		return (false);
	unsetenv(STORE_ENV);
	table_take(fd);
	return (true);
}

bool
valed_store_inherit(unsigned int *oldest, unsigned int *newest)
{
	entries_clear();
	if (inherit_table(oldest, newest))
		return (nentries > 0);
	pack_newest = -1;
	valed_activation_each(packs_look);
	if (pack_newest == -1)
		return (false);
	valed_activation_each(unpack);
	valed_activation_until(pack_first);
	*oldest = (unsigned int)pack_oldest;
	*newest = (unsigned int)pack_newest;
	return (true);
}

/*
 * The serving process.
 */

void
valed_store_serve(int fd)
{
	store_fd = fd;
}

bool
valed_store_found(void)
{
	return (store_fd != -1 && nentries > 0);
}

bool
valed_store_active(void)
{
	return (store_fd != -1);
}

int
valed_store_fd(void)
{
	return (store_fd);
}

/*
 * Send a packet, with a descriptor if it is not -1.  This waits for the
 * supervisor, but not for others of the same user that have descriptors in
 * flight.
 */
static bool
store_send(const struct valed_store_message *vsm, int fd)
{
	const size_t len = offsetof(struct valed_store_message, vsm_text) +
	    strlen(vsm->vsm_text) + 1;
	struct pollfd pfd = { .fd = store_fd, .events = POLLOUT };

	while (peer_fds_send(store_fd, vsm, len, &fd, fd != -1,
	    PEER_FDS_WAIT_NOT) == -1) {
		if (errno != EAGAIN)
			return (false);
		(void)poll(&pfd, 1, -1);
	}
	return (true);
}

static bool
store_tell(enum valed_store_what what, const char *text, int fd)
{
	struct valed_store_message vsm;

	vsm.vsm_what = what;
	if (strlcpy(vsm.vsm_text, text, sizeof(vsm.vsm_text)) >=
	    (what == VALED_STORE_NOTIFY ? VALED_STORE_TEXT :
	    VALED_STORE_NAME)) {
		errno = ENAMETOOLONG;
		return (false);
	}
	return (store_send(&vsm, fd));
}

bool
valed_store_put(const char *name, int fd)
{
	struct store_entry *se;
	int error;

	if (store_fd == -1)
		return (true);
	/* Before: what is removed afterwards is not what is put here. */
	pthread_mutex_lock(&entries_mtx);
	se = entry_find(name);
	if (se != NULL)
		se->put = true;
	pthread_mutex_unlock(&entries_mtx);
	if (store_tell(VALED_STORE_PUT, name, fd))
		return (true);
	/* Another one of that name is not this one. */
	error = errno;
	valed_store_remove(name);
	errno = error;
	return (false);
}

void
valed_store_remove(const char *name)
{
	if (store_fd != -1)
		(void)store_tell(VALED_STORE_REMOVE, name, -1);
}

void
valed_store_tell(enum valed_store_what what, const char *text)
{
	if (store_fd != -1)
		(void)store_tell(what, text == NULL ? "" : text, -1);
}

bool
valed_store_reply(char *why, size_t size)
{
	ssize_t n;

	do
		n = recv(store_fd, why, size - 1, 0);
	while (n == -1 && errno == EINTR);
	why[MAX(n, 0)] = '\0';
	return (n > 0);
}

int
valed_store_take(const char *name)
{
	struct store_entry *se;
	int fd = -1;

	pthread_mutex_lock(&entries_mtx);
	se = store_fd == -1 ? NULL : entry_find(name);
	if (se != NULL) {
		fd = se->fd;
		se->fd = -1;
	}
	pthread_mutex_unlock(&entries_mtx);
	return (fd);
}

bool
valed_store_put_bytes(const char *name, const void *p, size_t len)
{
	const int fd = memfd_create(name, MFD_CLOEXEC);
	bool kept;

	if (fd == -1)
		return (false);
	kept = write(fd, p, len) == (ssize_t)len && valed_store_put(name, fd);
	close(fd);
	return (kept);
}

bool
valed_store_put_text(const char *name, const char *text)
{
	return (valed_store_put_bytes(name, text, strlen(text)));
}

bool
valed_store_take_text(const char *name, char **text)
{
	const int fd = valed_store_take(name);
	size_t len = 0;
	ssize_t n = -1;

	*text = NULL;
	if (fd == -1)
		return (false);
	if (fcntl(fd, F_GET_SEALS) != -1)
		*text = malloc(TEXT_MAX);
	while (*text != NULL && len < TEXT_MAX - 1 && (n = pread(fd,
	    *text + len, TEXT_MAX - 1 - len, (off_t)len)) > 0)
		len += (size_t)n;
	close(fd);
	if (*text != NULL && n == 0)
		(*text)[len] = '\0';
	if (*text == NULL || n != 0 || strlen(*text) != len) {
		free(*text);
		*text = NULL;
	}
	return (true);
}

void
valed_store_each(const char *prefix, void (*fn)(void *arg, const char *name,
    int fd), void *arg)
{
	const size_t len = strlen(prefix);
	unsigned int i;

	/* Another thread may take one with another prefix. */
	for (i = 0; i < nentries && store_fd != -1; i++)
		if (strncmp(entries[i].name, prefix, len) == 0 &&
		    entries[i].fd != -1)
			fn(arg, entries[i].name, entries[i].fd);
}

bool
valed_store_is_client(const char *name)
{
	const char *what = strchr(name, '.');

	return (what != NULL && strcmp(what, ".client") == 0);
}

void
valed_store_forget(void)
{
	unsigned int i;

	for (i = 0; i < nentries; i++)
		if (entries[i].fd != -1)
			close(entries[i].fd);
	entries_clear();
}

void
valed_store_started(void)
{
	unsigned int i;

	pthread_mutex_lock(&entries_mtx);
	for (i = 0; i < nentries; i++) {
		if (entries[i].fd == -1)
			continue;
		/* The client is lost. */
		if (valed_store_is_client(entries[i].name))
			peer_hang_up(entries[i].fd);
		if (!entries[i].put)
			valed_store_remove(entries[i].name);
	}
	valed_store_forget();
	pthread_mutex_unlock(&entries_mtx);
}

int
valed_store_pair(int other)
{
	int n = fcntl(store_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), next;

	/* Two numbers that differ in the lowest bit, and are not used. */
	while (n != -1 && (n % 2 != 0 || fcntl(n + 1, F_GETFD) != -1)) {
		next = (n | 1) + 1;
		close(n);
		n = fcntl(store_fd, F_DUPFD_CLOEXEC, next);
	}
	if (n == -1)
		return (-1);
	if (dup3(other != -1 ? other : store_fd, n + 1, O_CLOEXEC) == -1)
		return (-1);
	close(store_fd);
	store_fd = n;
	if (other != -1)
		close(other);
	return (n + 1);
}
