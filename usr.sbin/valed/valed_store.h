/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The store: descriptors, by name, that outlast the process that serves.
 *
 * With -R the supervisor (valed_supervisor.h) has them.  The serving process
 * puts duplicates of descriptors there while it has them, and takes those that
 * an earlier one has put there.  Without -R there is no store: nothing is kept,
 * and nothing is found.
 */

#ifndef _VALED_STORE_H_
#define	_VALED_STORE_H_

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a name, with its NUL.  It is not empty. */
#define	VALED_STORE_NAME	128
/* Descriptors, at most. */
#define	VALED_STORE_MAX		8704
/*
 * In LISTEN_FDNAMES, and FDNAME of sd_notify(3): what valed_store_pack() makes.
 * Behind it are a "." and a number, the generation; without them that is 0.
 */
#define	VALED_STORE_FDNAME	"valed-store"
/* Bytes of a text for the service manager. */
#define	VALED_STORE_TEXT	512

/* What the serving process tells the supervisor; one packet each. */
struct valed_store_message {
	enum valed_store_what {
		VALED_STORE_PUT,	/* vsm_text is the name of the
					   descriptor that comes with it */
		VALED_STORE_REMOVE,	/* the descriptor of this name */
		VALED_STORE_NOTIFY,	/* for the service manager */
		VALED_STORE_SERVES,	/* it has started */
		VALED_STORE_CHECK,	/* can it be started again?  The reply
					   is a packet with the reason why not,
					   or "" */
		VALED_STORE_RESTART,	/* it ends, to be started again */
		VALED_STORE_END,	/* it ends on purpose */
		VALED_STORE_CRASHES	/* it ends by a fault */
	}	vsm_what;
	char	vsm_text[VALED_STORE_TEXT];
};

/*
 * The functions of the serving process.  Any thread may call those that do not
 * say something else.  They wait for the supervisor, never for a client.
 */

/*
 * Return whether there is a store; and whether an earlier process has left
 * something there, until valed_store_started().
 */
bool	valed_store_active(void);
bool	valed_store_found(void);

/*
 * Keep a duplicate of `fd' under a name, in place of another one there.  The
 * caller has checked that close(2) of it does not block.  Returns false if it
 * is not kept: errno says why.  Without a store, returns true.
 */
bool	valed_store_put(const char *name, int fd);

/* Keep what has the name no longer, if there is something. */
void	valed_store_remove(const char *name);

/*
 * Return the descriptor that an earlier process has put there, which is the
 * caller's then, or -1.  The store still has it.  Any thread, until
 * valed_store_started().
 */
int	valed_store_take(const char *name);

/*
 * Keep a text, or bytes, in the store, in memory of their own.  Returns false
 * with errno.
 * And take one, as valed_store_take(), as a string that is the caller's, or
 * NULL if what is there is none: only memory is read, which cannot block.
 * Returns whether there is something.
 */
bool	valed_store_put_text(const char *name, const char *text);
bool	valed_store_put_bytes(const char *name, const void *p, size_t len);
bool	valed_store_take_text(const char *name, char **text);

/*
 * Call fn() for each that has not been taken and whose name begins so.  As
 * valed_store_take().
 */
void	valed_store_each(const char *prefix,
	    void (*fn)(void *arg, const char *name, int fd), void *arg);

/*
 * Close what the process has not taken, which has what it needs, and remove
 * that from the store, unless the process has put another one there.  The main
 * thread.
 */
void	valed_store_started(void);

/* Return whether an entry of this name is the socket of an adapter's client. */
bool	valed_store_is_client(const char *name);

/*
 * Close what has not been taken, which stays in the store: for a process that
 * was forked and needs none of it.  A client's descriptors that it had would
 * outlast the client.  Its only thread.
 */
void	valed_store_forget(void);

/*
 * Tell the supervisor, with a text or NULL.  The main thread;
 * VALED_STORE_CRASHES is also for the handler of a signal.
 */
void	valed_store_tell(enum valed_store_what what, const char *text);

/*
 * Return the connection, on which sendmsg(2) must be permitted, or -1; readable
 * when the reply to VALED_STORE_CHECK has come, which valed_store_reply()
 * copies to `why', a string.  Returns false if the supervisor has gone.  The
 * main thread.
 */
int	valed_store_fd(void);
bool	valed_store_reply(char *why, size_t size);

/*
 * Give the connection another number, n, and put `other', which may be -1, at
 * n ^ 1; a descriptor that is -1 becomes a duplicate of the connection.  The
 * sandbox protects such a pair with one rule.  Returns the number of `other',
 * or -1 with errno.  The main thread, before the sandbox.
 */
int	valed_store_pair(int other);

/*
 * The functions of the supervisor, and of the process that becomes one.
 */

/*
 * Begin with what this process inherits: from the program that has executed it,
 * with valed_store_leave(), or from the service manager, of which the newest
 * generation counts (valed_activation.h).  Sets *oldest and *newest to the
 * generations that the service manager has, if it has any.  Returns whether
 * there was something.
 */
bool	valed_store_inherit(unsigned int *oldest, unsigned int *newest);

/*
 * Have the program that this process executes next inherit the store, and the
 * generations that the service manager has.  Returns a descriptor, to be closed
 * if there is no such program, or -1 with errno.
 */
int	valed_store_leave(unsigned int oldest, unsigned int newest);

/*
 * Make a socket in whose queue the descriptors from the *i-th on are, with
 * their names, and set *i to the first that has no place in it.  For the
 * service manager this is one descriptor, whatever the number of those: it
 * compares each with all that it has.  They are still in the store.  With
 * `wait', it waits as peer_fds_send() does.  Returns -1 with errno.
 */
int	valed_store_pack(unsigned int *i, bool wait);

/* Serve, with this connection to the supervisor. */
void	valed_store_serve(int fd);

/* Do what PUT and REMOVE say.  The store has the descriptor then. */
void	valed_store_set(const char *name, int fd);
void	valed_store_unset(const char *name);

/* Return how many there are; the i-th name and descriptor. */
unsigned int valed_store_count(void);
const char *valed_store_entry(unsigned int i, int *fd);

#endif /* !_VALED_STORE_H_ */
