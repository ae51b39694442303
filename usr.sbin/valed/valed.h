/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The files of valed:
 *
 *	valed.c		 main(): starts the threads, waits for signals
 *	valed_options.c	 the command line
 *	valed_config.c	 configuration files: variables as text
 *	valed_values.c	 their values
 *	valed_control.c	 the option -c
 *	valed_activation.c the sockets that are inherited
 *	valed_notify.c	 messages to the service manager
 *	valed_socket.c	 the sockets in the file system
 *	valed_error.c	 the first error of a reload
 *	valed_guard.c	 the guard: removes them, and reads files again
 *	valed_plan.c	 what a reload changes
 *	valed_reload.c	 changes of the adapters that the guard asks for
 *	valed_sandbox.c	 drops privileges
 *	valed_stats.c	 prints counters
 *	adapter.c	 an adapter: its thread, and the host side of the model
 *	adapter_net.c	 its network: a port of a switch, or a TAP
 *	adapter_pci.c	 what it is on the PCI bus
 *	tap_port.c	 a frame port over a TAP
 */

#ifndef _VALED_H_
#define	_VALED_H_

#include <sys/types.h>
#include <sys/un.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dev/netmap/vale_rate.h>

#include "ctl.h"
#include "hostif.h"

struct adapter;
struct adapter_list;

/* Bytes of a socket's path, with its NUL. */
#define	VALED_PATH_SIZE	sizeof(((struct sockaddr_un *)0)->sun_path)
/* Bytes of the name of a backend or an adapter, with its NUL. */
#define	VALED_NAME_SIZE		64
/* Bytes of ac_where, with its NUL. */
#define	VALED_WHERE_SIZE	512

/*
 * One adapter: a -s option, or a node of variables.  It points to nothing, so
 * that it can be copied, and sent to another process.
 */
struct adapter_config {
	int		ac_bus;
	int		ac_slot;
	int		ac_func;
	char		ac_backend[VALED_NAME_SIZE];	/* "vale0:vm1" */
	char		ac_name[VALED_NAME_SIZE];
					/* "vm1"; see valed.8, COUNTERS */
	char		ac_where[VALED_WHERE_SIZE];
					/* for messages: "vale0.conf:3", that of
					   its backend, or "-s ..."; its
					   beginning, if it is longer */
	char		ac_path[VALED_PATH_SIZE];
					/* "": the socket is inherited */
	int		ac_fd;		/* that socket, or -1 */
	uint8_t		ac_mac[6];
	uint32_t	ac_mtu;		/* bytes; 0: no limit */
	uint32_t	ac_itr_256ns;
	uint32_t	ac_itr_min_256ns;
	uint64_t	ac_mem;		/* bytes a client may share; 0: the
					   default of peer_mem_init() */
	struct vale_rate_conf ac_rate;	/* of what the guest sends */
	uint32_t	ac_limit;	/* addresses; 0: any number */
	uint32_t	ac_weight;	/* 0: the default */
	bool		ac_private;
	bool		ac_csb;
	bool		ac_direct;
	int		ac_listen;	/* the listening socket, or -1 */
	bool		ac_added;	/* by valed_reload.c, which frees it */
};

/* An adapter's place as a number, which no other has. */
static inline unsigned int
valed_place(const struct adapter_config *ac)
{
	return (ac->ac_bus << 8 | ac->ac_slot << 3 | ac->ac_func);
}

/* One -a option. */
struct hostif_config {
	const char	*hc_port;	/* "vale0:eth0" */
	const char	*hc_ifname;	/* "eth0" */
	struct hostif_options hc_options;
};

/* Who can connect to a socket. */
struct valed_access {
	gid_t		va_group;	/* or VALED_NOGROUP: as it is created */
	mode_t		va_mode;	/* or VALED_NOMODE: as umask(2) has it */
};
#define	VALED_NOGROUP	((gid_t)-1)
#define	VALED_NOMODE	((mode_t)-1)

/* The -c option. */
struct control_config {
	char		co_path[VALED_PATH_SIZE];
					/* "": the socket is inherited */
	int		co_fd;		/* that socket, or -1 */
	struct valed_access co_access;
	struct ctl_options co_options;
	int		co_listen;	/* the listening socket, or -1 */
};

/* As many as a PCI bus has: 32 slots with 8 functions. */
#define	VALED_MAXADAPTERS	256
/* Sockets: during a reload there may be old and new ones. */
#define	VALED_NAMES		(2 * VALED_MAXADAPTERS)

/* The greatest numbers of an adapter's place on the PCI buses. */
#define	VALED_MAXBUS		255
#define	VALED_MAXSLOT		31
#define	VALED_MAXFUNC		7

struct valed_options {
	bool		 vo_verbose;
	bool		 vo_check;	/* -t: that is all */
	unsigned int	 vo_nadapters;
	struct adapter_config *vo_adapters;
	struct control_config *vo_control;	/* or NULL */
	unsigned int	 vo_nhostifs;
	struct hostif_config *vo_hostifs;
};

/*
 * valed_options.c: parse and check the command line, and the files that it
 * names.  On an error, prints a line to stderr and exits, with EX_USAGE,
 * EX_CONFIG (a file's contents) or EX_NOINPUT (a file), before anything is
 * created.  May be called again; *opt is then as the files say now, and the
 * strings of an earlier *opt are gone.  With -t sockets need not be inherited.
 */
void	valed_options(int argc, char **argv, struct valed_options *opt);

/*
 * The variables of an adapter, each in one row: first those that are options of
 * -s, too.  To add one: a row here, its member, and what valed.8 says, which a
 * test compares with the table.
 *
 *	X(id, name, kind, member, min, max, default, setting, arg, help)
 *
 *	kind	says what text it is: valed_values.c
 *	setting	of a switch's port (vale_setting.h), whose range it has, or -1
 *	arg, help  are for the usage
 */
#define	VALED_VARIABLES(X)						\
	X(PATH, "path", PATH, ac_path, 0, 0, 0, -1, "file",		\
	    "the vfio-user socket, which QEMU connects to")		\
	X(FD, "fd", FD, ac_fd, 0, 0, 0, -1, "n|name",			\
	    "the same, inherited: a descriptor, or a name of\n"		\
	    "LISTEN_FDNAMES")						\
	X(MAC, "mac", MAC, ac_mac, 0, 0, 0, -1, "address",		\
	    "the adapter's Ethernet address")				\
	X(MTU, "mtu", NUMBER, ac_mtu, E82545_MTU_MIN, E82545_MTU_MAX, 0, -1, \
	    "bytes", "maximum transmission unit, 68 to 16110")		\
	X(ITR, "itr", NUMBER, ac_itr_256ns, 0, E82545_ITR_MAX, 0, -1, "n", \
	    "minimum interval between interrupts, in units of\n"	\
	    "256 ns, if the driver sets none; 0 to 65535")		\
	X(ITR_MIN, "itr_min", NUMBER, ac_itr_min_256ns, 0, E82545_ITR_MAX, 0, \
	    -1, "n", "the same, whatever the driver sets")		\
	X(CSB, "csb", BOOL, ac_csb, 0, 1, 1, -1, "on|off",		\
	    "offer the driver shared memory in place of most\n"		\
	    "register accesses and interrupts; default on")		\
	X(DIRECT, "direct", BOOL, ac_direct, 0, 1, 1, -1, "on|off",	\
	    "let other adapters of this process copy frames\n"		\
	    "straight to the guest; default on")			\
	X(MEM, "mem", SIZE, ac_mem, 0, 0, 0, -1, "size",		\
	    "memory that the client may share, 1M to 1T; default\n"	\
	    "that of the host")						\
	X(RATE, "rate", RATE, ac_rate, 0, 0, 0, VALE_SETTING_RATE,	\
	    "limit", "of what the guest sends to the switch, for example\n" \
	    "300Mbit/s or 100Kpkt/s; default none")			\
	X(BURST, "burst", BURST, ac_rate, 0, 0, 0, VALE_SETTING_RATE, "size", \
	    "bytes or packets that may exceed the rate")		\
	X(LIMIT, "limit", NUMBER, ac_limit, 0, 0, 0, VALE_SETTING_LIMIT, "n", \
	    "addresses of the guest that the switch learns, 1 to\n"	\
	    "5120; 0, the default: any number")				\
	X(PRIVATE, "private", BOOL, ac_private, 0, 1, 0,		\
	    VALE_SETTING_PRIVATE, "on|off",				\
	    "no frames from or to other private ports;\ndefault off")	\
	X(WEIGHT, "weight", NUMBER, ac_weight, 0, 0, 0,			\
	    VALE_SETTING_WEIGHT, "n",					\
	    "the guest's part of a ring that is short of space, 1\n"	\
	    "to 100; default 1")					\
	X(BACKEND, "backend", BACKEND, ac_backend, 0, 0, 0, -1, "", "")	\
	X(DEVICE, "device", DEVICE, ac_backend, 0, 0, 0, -1, "", "")

enum {
#define	VALED_VARIABLE_ID(id, ...)	VALED_V_##id,
	VALED_VARIABLES(VALED_VARIABLE_ID)
	VALED_NVARIABLES,
	VALED_NOPTIONS = VALED_V_BACKEND
};

struct valed_variable {
	const char	*var_name;
	enum valed_kind {
		VALED_KIND_BACKEND,	/* valed_backend_check() */
		VALED_KIND_BOOL,	/* on or off */
		VALED_KIND_BURST,	/* vale_rate_parse_burst() */
		VALED_KIND_DEVICE,	/* e1000 */
		VALED_KIND_FD,		/* valed_activation_fd() */
		VALED_KIND_MAC,		/* an Ethernet address */
		VALED_KIND_NUMBER,	/* a uint32_t */
		VALED_KIND_PATH,
		VALED_KIND_RATE,	/* vale_rate_parse() */
		VALED_KIND_SIZE		/* valed_size_parse() */
	}		 var_kind;
	size_t		 var_offset;	/* in struct adapter_config */
	size_t		 var_size;
	uint32_t	 var_min;
	uint32_t	 var_max;
	uint32_t	 var_default;
	int		 var_setting;
	const char	*var_arg;
	const char	*var_help;
};
extern const struct valed_variable valed_variables[VALED_NVARIABLES];
/* Bytes of a value, with its NUL: no variable takes more than a path. */
#define	VALED_VALUE_SIZE	VALED_PATH_SIZE

/*
 * valed_config.c: the variables of adapters as text, and where each was set.
 * They stay until valed_config_clear().
 */

/* Where something was set: "-s " and its value, or "" and "file:line". */
struct valed_where {
	const char	*wh_option;
	const char	*wh_text;
};

struct valed_node {
	int		 nd_bus;
	int		 nd_slot;
	int		 nd_func;
	const char	*nd_option;	/* the value of -s, or NULL */
	char		*nd_first;	/* where its first variable was set */
	struct {
		char		*nt_value;	/* or NULL */
		char		*nt_where;	/* "file:line", "-o ..." */
		unsigned int	 nt_file;	/* counts -k and -o */
	}		 nd_variable[VALED_NVARIABLES];
};

/* Print a line that says where something is wrong, and exit. */
void	valed_bad(struct valed_where where, const char *fmt, ...)
	    __attribute__((__noreturn__, __format__(__printf__, 2, 3)));

/* The index of a variable whose name has `len' characters, or -1. */
int	valed_variable(const char *name, size_t len);

/* Start again, without nodes. */
void	valed_config_clear(void);

/* Read a file: -k.  Checks only names; on an error prints a line and exits. */
void	valed_config_file(const char *path);

/* Set the variable of "name=value": -o.  Checks only its name, likewise. */
void	valed_config_option(const char *text);

/*
 * The node of a place that an option -s has, whose value must stay; there must
 * be none yet, and less than VALED_MAXADAPTERS others of options.
 */
struct valed_node *valed_config_slot(int bus, int slot, int func,
	    const char *option);

/* Set a variable of a node to `len' bytes of `value'. */
void	valed_config_set(struct valed_node *vn, int variable,
	    const char *value, size_t len);

/* The node of a place, or NULL. */
struct valed_node *valed_config_find(int bus, int slot, int func);

/*
 * The node of files and -o after `last', or the first one if that is NULL.
 * NULL at the end.
 */
const struct valed_node *valed_config_next(const struct valed_node *last);

/* Where a variable was set, or, if it was not, the first one of the node. */
struct valed_where valed_config_where(const struct valed_node *vn,
	    int variable);

/*
 * valed_values.c: the values of an adapter's variables.
 */

/*
 * Fill in *ac, except for ac_name, from a node with a valid backend.  On an
 * error prints a line and exits.
 */
void	valed_values(struct adapter_config *ac, const struct valed_node *vn);

/* Exit with a line if a text is not the name of a backend. */
void	valed_backend_check(struct valed_where where, const char *backend);

/*
 * Exit with a line about *ac if two adapters share a port, a socket or an
 * address.  If `checking' (-t), two names of inherited sockets are two sockets.
 */
void	valed_values_twice(const struct adapter_config *ac,
	    const struct adapter_config *other, bool checking);

/* Whether two adapters have the same values. */
bool	valed_values_same(const struct adapter_config *ac,
	    const struct adapter_config *other);

/*
 * valed_plan.c: what a reload does.  The functions look at their arguments
 * only.  An adapter is known by its place; one whose ac_backend is "" is not
 * there.
 */

struct valed_action {
	enum {
		VALED_TAP,		/* leave the adapter as it is: valed can
					   open no TAP interface any more */
		VALED_BUSY,		/* leave it: another has its port */
		VALED_CLASH,		/* leave it: it would be where one is
					   that is left */
		VALED_OPEN,		/* its socket */
		VALED_REMOVE_OLD,	/* the adapter */
		VALED_ADD_NEW,
		VALED_UNLINK		/* the socket of an old one */
	}		ax_what;
	unsigned int	ax_index;	/* of the old or new adapter */
};

/* As many actions as there may be. */
#define	VALED_ACTIONS(nold, nnew)	(2 * (nold) + 3 * (nnew))

struct valed_plan {
	const struct adapter_config *pn_old;	/* the adapters that there are */
	unsigned int	 pn_nold;
	const struct adapter_config *pn_new;	/* those that are wanted */
	unsigned int	 pn_nnew;
	const bool	*pn_refused;	/* whose ports cannot be reserved */
	struct adapter_config *pn_result;	/* what each of pn_new will be */
	struct valed_action *pn_action;		/* VALED_ACTIONS() of them */
	unsigned int	 pn_nactions;
};

/* The old adapter with the place of *ac, or NULL. */
const struct adapter_config *valed_plan_old(const struct valed_plan *vp,
	    const struct adapter_config *ac);

/* Whether the port of a new adapter is to be reserved. */
bool	valed_plan_reserves(const struct valed_plan *vp, unsigned int i);

/*
 * Set pn_result, pn_action and pn_nactions from the others: first what is left,
 * then sockets to open, adapters to remove and to add, and sockets to remove.
 */
void	valed_plan(struct valed_plan *vp);

/*
 * valed_control.c: parse the -c option.  Returns NULL, or what is wrong; that
 * is valid until the next call.
 */
const char *valed_control_parse(struct control_config *co, const char *option);
/* Parse a size from 1M to 1T.  False if `value' is none. */
bool	valed_size_parse(const char *value, uint64_t *size);

/*
 * valed_activation.c
 */

/* Look what this process inherits.  The main thread, first. */
void	valed_activation_init(void);

/* Whether nothing needs to be inherited: then every name stands for 0. */
void	valed_activation_ignore(bool ignore);

/*
 * The listening socket of a type (SOCK_*) that fd=`name' stands for, a number
 * or a name in LISTEN_FDNAMES.  Sets *fdp, and returns NULL or an error.  Also
 * in a child of the process that inherits it.
 */
const char *valed_activation_fd(const char *name, int type, int *fdp);

/*
 * valed_notify.c: messages to the service manager, if NOTIFY_SOCKET names one.
 * Only the main thread may call these functions.
 */

/* Connect, before the sandbox.  If that fails, prints a line and exits. */
void	valed_notify_open(void);

/* Send a message, as sd_notify(3) has it.  Does not wait. */
void	valed_notify(const char *fmt, ...)
	    __attribute__((__format__(__printf__, 1, 2)));

/*
 * valed serves so many adapters, after a reload with that error if it is not
 * ""; it reads its configuration again.
 */
void	valed_notify_ready(unsigned int nadapters, const char *why);
void	valed_notify_reloading(void);

/* Tell the manager's watchdog that valed lives.  Once a second. */
void	valed_notify_watch(void);

/*
 * valed_socket.c.  The functions remember the sockets that valed made, to
 * remove them.  The main thread of a process without others.
 */

/*
 * Create a socket of a type (SOCK_*) and listen on it.  Replaces one on which
 * no process listens.  Nobody can connect to it before it has its group and
 * mode of *access, which is NULL for those of bind(2).  On an error, removes
 * the sockets that valed_sockets_drop() would, prints a line to stderr, which
 * begins with `option' and the path, and exits.
 */
int	valed_socket_open(const char *option, const char *path, int type,
	    const struct valed_access *access);

/* Remove the sockets that were made since valed_sockets_keep(). */
void	valed_sockets_drop(void);
void	valed_sockets_keep(void);

/* Remove one; remove all. */
void	valed_socket_remove(const char *path);
void	valed_sockets_remove(void);

/*
 * valed_error.c: in a process of one thread.
 */

/* Bytes of an error, with its NUL. */
#define	VALED_WHY_SIZE		CTL_RELOAD_WHY_SIZE

/*
 * From now on, remember the first line that err(3) or warn(3) prints, and send
 * it to `fd', unless that is -1, without a newline.  May be called again.
 */
void	valed_error_begin(int fd);

/* That line without the program's name, or "". */
const char *valed_error(void);

/* An error that others have printed is the first one, unless there is one. */
void	valed_error_set(const char *fmt, ...)
	    __attribute__((__format__(__printf__, 1, 2)));

/*
 * valed_guard.c
 */

/* A change of the adapters, as the guard sends it to the serving process. */
struct valed_change {
	enum {
		VALED_RESERVE,		/* the name of its port, before all
					   other changes: EBUSY if another has
					   it open */
		VALED_REMOVE,		/* the adapter with this place */
		VALED_ADD,
		VALED_END		/* no more changes */
	}		vc_what;
	struct adapter_config vc_config; /* ac_listen -1: that of the adapter
					   removed before that had this path */
	bool		vc_lost;	/* there was no descriptor for its
					   socket: valed_guard_change() */
	char		vc_why[VALED_WHY_SIZE];	/* VALED_END: the first error,
					   or "" */
};

/*
 * Create the sockets of all adapters, and start the guard.  The caller must
 * have no other thread yet, and must not change argv.  On an error, prints a
 * line, leaves no socket and exits.
 */
void	valed_guard_start(int argc, char **argv, struct valed_options *opt);

/*
 * The functions below are the main thread's.  The guard's descriptor is
 * readable when a change has come; then valed_guard_change() fills in *vc.  If
 * the guard has gone, there is none, and it returns false.  Each change but
 * VALED_END must be answered with 0 or an errno.  valed_guard_reload() asks for
 * changes, and VALED_END is the last one; returns false with errno if that
 * fails, with EPIPE if the guard has gone.
 */
int	valed_guard_fd(void);
bool	valed_guard_reload(void);
bool	valed_guard_change(struct valed_change *vc);
void	valed_guard_answer(int error);

/*
 * An adapter could not be started: have the guard remove its socket, and try
 * again with the next reload.  The main thread, before it serves.
 */
void	valed_guard_absent(const struct adapter_config *ac);

/* Let the guard remove the sockets, and wait until it has. */
void	valed_guard_end(void);

/*
 * valed_reload.c: carry out a change.  `look' is called while an adapter ends,
 * and must call adapter_watch() of all adapters, also of that one, when it is
 * due.  Answers the guard.  The main thread.
 */
void	valed_reload(const struct valed_change *vc,
	    struct adapter_list *adapters, void (*look)(struct adapter *ending));

/*
 * valed_sandbox.c
 */

/* Drop all capabilities of the calling thread.  0, or -1 with errno. */
int	valed_sandbox_drop(void);

/*
 * Enter the sandbox: no thread of the process can open a file, start a program
 * or gain privileges any more, and a system call that the filter does not allow
 * kills the process.  With a control socket, `pass' is the descriptor on which
 * sendmsg(2) is permitted, and memory and pairs of local sockets can be
 * created; without one it is -1.  0, or -1 with errno.
 */
int	valed_sandbox_enter(int pass);

/* The same for the process of ctl_pass.c, which has no other thread. */
int	valed_sandbox_enter_passer(void);

/*
 * valed_stats.c.  Only the main thread may call these functions.
 */

/* Print all counters to stdout: see valed(8), COUNTERS. */
void	valed_stats_print(const struct adapter_list *adapters);

/* Print those of an attached interface, under its name. */
void	valed_stats_hostif(struct hostif *hi, void *arg);

/* Print a line for each adapter to stdout: changes since the last call. */
void	valed_stats_live(const struct adapter_list *adapters);

/* Print such a line for an attached interface. */
void	valed_stats_hostif_live(struct hostif *hi, void *arg);

#endif /* !_VALED_H_ */
