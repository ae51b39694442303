/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The variables of adapters, switches and ports as text, and where each was
 * set.  They stay until valed_config_begin().  One thread.
 *
 * The first thing that is wrong is remembered; later ones are not, so that a
 * function may go on, as long as that does no harm.
 */

#ifndef _VALED_CONFIG_H_
#define	_VALED_CONFIG_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapter_config.h"
#include "libvale.h"
#include "vale_setting.h"
#include "valed_why.h"

#define	VALED_POLL_MAX	1000		/* microseconds */

/*
 * The variables of an adapter: the options of -s, which are its own and the
 * settings of its port (VALE_SETTINGS of vale_setting.h), then what -s has without
 * a name.  To add one of its own: a row here, its member, and what valed.8 says,
 * which a test compares with the table.
 *
 *	X(id, name, kind, member, min, max, default, arg, help)
 *
 *	kind	says what text it is: valed_values.c
 *	member	of struct adapter_config; ac_backend if it has none
 *	arg, help  are for the usage
 */
#define	VALED_OPTIONS(X)						\
	X(PATH, "path", PATH, ac_path, 0, 0, 0, "file",			\
	    "the vfio-user socket, which QEMU connects to")		\
	X(FD, "fd", FD, ac_fd, 0, 0, 0, "n|name",			\
	    "the same, inherited: a descriptor, or a name of\n"		\
	    "LISTEN_FDNAMES")						\
	X(CONTROL, "control", CONTROL, ac_control, 0, 0, 0, "socket",	\
	    "the control socket of the valed whose switch has the\n"	\
	    "port; default: this one")					\
	X(MAC, "mac", MAC, ac_mac, 0, 0, 0, "address",			\
	    "the adapter's Ethernet address")				\
	X(MTU, "mtu", NUMBER, ac_mtu, E82545_MTU_MIN, E82545_MTU_MAX, 0, \
	    "bytes", "maximum transmission unit, 68 to 16110")		\
	X(ITR, "itr", NUMBER, ac_itr_256ns, 0, E82545_ITR_MAX, 0, "n",	\
	    "minimum interval between interrupts, in units of\n"	\
	    "256 ns, if the driver sets none; 0 to 65535")		\
	X(ITR_MIN, "itr_min", NUMBER, ac_itr_min_256ns, 0, E82545_ITR_MAX, 0, \
	    "n", "the same, whatever the driver sets")			\
	X(CSB, "csb", CSB, ac_csb, 0, 0, E82545_CSB_ON, "on|compat|off", \
	    "offer the driver shared memory in place of most\n"		\
	    "register accesses and interrupts; default on\n"		\
	    "compat: with the subsystem ID for older drivers")		\
	X(DIRECT, "direct", BOOL, ac_direct, 0, 1, 1, "on|off",		\
	    "let other adapters of this process copy frames\n"		\
	    "straight to the guest; default on")			\
	X(ANNOUNCE, "announce", BOOL, ac_announce, 0, 1, 1, "on|off",	\
	    "announce the adapter's address to the network when the\n"	\
	    "guest's driver starts, and when a link or an uplink\n"	\
	    "comes up; default on")					\
	X(POLL, "poll", NUMBER, ac_poll_us, 0, VALED_POLL_MAX, 0, "n",	\
	    "microseconds that its thread looks for work before it\n"	\
	    "sleeps, 0 to 1000; default 0")				\
	X(MEM, "mem", SIZE, ac_mem, 0, 0, 0, "size",			\
	    "memory that the client may share, 1M to 1T; default\n"	\
	    "that of the host")
#define	VALED_POSITIONAL(X)							\
	X(BACKEND, "backend", BACKEND, ac_backend, 0, 0, 0, "", "")	\
	X(DEVICE, "device", DEVICE, ac_device, 0, 0, 0, "", "")

enum {
#define	VALED_VARIABLE_ID(id, ...)	VALED_V_##id,
#define	VALED_SETTING_ID(id, number, name, scope, ...)			\
	VALED_SETTING_ID_##scope(id)
#define	VALED_SETTING_ID_SWITCH(id)
#define	VALED_SETTING_ID_PORT(id)	VALED_V_##id,
	VALED_OPTIONS(VALED_VARIABLE_ID)
	VALE_SETTINGS(VALED_SETTING_ID)
	VALED_POSITIONAL(VALED_VARIABLE_ID)
	VALED_NVARIABLES,
	VALED_NOPTIONS = VALED_V_BACKEND
};

struct valed_variable {
	const char	*var_name;
	enum valed_kind {
		VALED_KIND_BACKEND,	/* valed_backend_check() */
		VALED_KIND_BOOL,	/* on or off */
		VALED_KIND_CONTROL,	/* an absolute path */
		VALED_KIND_CSB,		/* e82545_csb_names[] */
		VALED_KIND_DEVICE,	/* e1000 or e1000e */
		VALED_KIND_FD,		/* valed_activation_fd() */
		VALED_KIND_MAC,		/* an Ethernet address */
		VALED_KIND_NUMBER,	/* a uint32_t */
		VALED_KIND_PATH,
		VALED_KIND_SETTING,	/* vale_setting_parse() */
		VALED_KIND_SIZE		/* valed_size_parse() */
	}		 var_kind;
	size_t		 var_offset;	/* in struct adapter_config */
	size_t		 var_size;
	uint32_t	 var_min;
	uint32_t	 var_max;
	uint32_t	 var_default;
	int		 var_setting;	/* of SETTING: enum vale_setting_id */
	const char	*var_arg;
	const char	*var_help;
};
extern const struct valed_variable valed_variables[VALED_NVARIABLES];
/* Bytes of a setting, and of another variable, none of which takes more than a
   path; with the NUL. */
#define	VALED_TEXT_SIZE		VALE_SETTING_SIZE
#define	VALED_VALUE_SIZE	VALED_PATH_SIZE

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

/* A line about a switch, a port, or an interface of the host. */
struct valed_line {
	enum valed_of {
		VALED_OF_SWITCH,	/* switch.NAME.SETTING=VALUE */
		VALED_OF_PORT,		/* port.NAME.SETTING=VALUE */
		VALED_OF_ATTACH		/* attach.NAME=KIND */
	}		 ln_of;
	char		 ln_name[VALE_NAME_SIZE];	/* valid */
	unsigned int	 ln_setting;	/* of its scope: vale_setting.h */
	char		*ln_value;
	char		*ln_where;	/* "file:line", "-o ..." */
	unsigned int	 ln_file;	/* counts -k and -o */
};

/*
 * Something is wrong: at a place, with the status EX_USAGE, or EX_CONFIG if
 * that is in a file; or with another status.  Both return false.
 */
bool	valed_bad(struct valed_where where, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 2, 3)));
bool	valed_wrong(int status, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 2, 3)));

/* Return whether nothing has been wrong. */
bool	valed_config_ok(void);

/* Return the index of a variable whose name has `len' characters, or -1. */
int	valed_variable(const char *name, size_t len);

/* Return what to say of an unknown variable whose name has `len' characters. */
const char *valed_unknown(const char *name, size_t len);

/* Start again, without nodes and lines; *why gets what is wrong, if it has no
   error yet. */
void	valed_config_begin(struct valed_why *why);

/* Bytes of a file; variables of switches, ports and interfaces. */
#define	VALED_FILE_MAX	(16 << 20)
#define	VALED_LINES_MAX	8192

/* Read a regular file: -k.  Checks only names. */
void	valed_config_file(const char *path);

/* Set the variable of "name=value": -o.  Checks only its name. */
void	valed_config_option(const char *text);

/*
 * Add the node of a place that an option -s has, whose value must stay; there
 * must be none yet, and less than VALED_MAXADAPTERS others of options.
 */
struct valed_node *valed_config_slot(int bus, int slot, int func,
	    const char *option);

/* Set a variable of a node to `len' bytes of `value'. */
void	valed_config_set(struct valed_node *vn, int variable,
	    const char *value, size_t len);

/* Get the lines about switches, ports and interfaces; returns how many. */
unsigned int valed_config_lines(const struct valed_line **lines);

/* Return where a line is. */
struct valed_where valed_line_where(const struct valed_line *line);

/* Find the node of a place, or return NULL. */
struct valed_node *valed_config_find(int bus, int slot, int func);

/*
 * Return the node of files and -o after `last', or the first one if that is
 * NULL.  NULL at the end.
 */
const struct valed_node *valed_config_next(const struct valed_node *last);

/* Return where a variable was set, or, if it was not, the node's first one. */
struct valed_where valed_config_where(const struct valed_node *vn,
	    int variable);

#endif /* !_VALED_CONFIG_H_ */
