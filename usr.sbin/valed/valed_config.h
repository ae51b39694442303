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
#include "valed_why.h"

#define	VALED_POLL_MAX	1000		/* microseconds */

/*
 * The variables of an adapter, each in one row: first those that are options of
 * -s, too.  To add one: a row here, its member, and what valed.8 says, which a
 * test compares with the table.
 *
 *	X(id, name, kind, member, min, max, default, setting, arg, help)
 *
 *	kind	says what text it is: valed_values.c
 *	member	of struct adapter_config; ac_backend if it has none
 *	setting	of a switch's port (vale_setting.h), whose range it has, or -1
 *	arg, help  are for the usage
 */
#define	VALED_VARIABLES(X)						\
	X(PATH, "path", PATH, ac_path, 0, 0, 0, -1, "file",		\
	    "the vfio-user socket, which QEMU connects to")		\
	X(FD, "fd", FD, ac_fd, 0, 0, 0, -1, "n|name",			\
	    "the same, inherited: a descriptor, or a name of\n"		\
	    "LISTEN_FDNAMES")						\
	X(CONTROL, "control", CONTROL, ac_control, 0, 0, 0, -1, "socket", \
	    "the control socket of the valed whose switch has the\n"	\
	    "port; default: this one")					\
	X(MAC, "mac", MAC, ac_mac, 0, 0, 0, -1, "address",		\
	    "the adapter's Ethernet address")				\
	X(MTU, "mtu", NUMBER, ac_mtu, E82545_MTU_MIN, E82545_MTU_MAX, 0, -1, \
	    "bytes", "maximum transmission unit, 68 to 16110")		\
	X(ITR, "itr", NUMBER, ac_itr_256ns, 0, E82545_ITR_MAX, 0, -1, "n", \
	    "minimum interval between interrupts, in units of\n"	\
	    "256 ns, if the driver sets none; 0 to 65535")		\
	X(ITR_MIN, "itr_min", NUMBER, ac_itr_min_256ns, 0, E82545_ITR_MAX, 0, \
	    -1, "n", "the same, whatever the driver sets")		\
	X(CSB, "csb", CSB, ac_csb, 0, 0, E82545_CSB_ON, -1,		\
	    "on|compat|off",						\
	    "offer the driver shared memory in place of most\n"		\
	    "register accesses and interrupts; default on\n"		\
	    "compat: with the subsystem ID for older drivers")		\
	X(DIRECT, "direct", BOOL, ac_direct, 0, 1, 1, -1, "on|off",	\
	    "let other adapters of this process copy frames\n"		\
	    "straight to the guest; default on")			\
	X(POLL, "poll", NUMBER, ac_poll_us, 0, VALED_POLL_MAX, 0, -1, "n", \
	    "microseconds that its thread looks for work before it\n"	\
	    "sleeps, 0 to 1000; default 0")				\
	X(MEM, "mem", SIZE, ac_mem, 0, 0, 0, -1, "size",		\
	    "memory that the client may share, 1M to 1T; default\n"	\
	    "that of the host")						\
	X(RATE, "rate", RATE, ac_backend, 0, 0, 0, VALE_SETTING_RATE,	\
	    "limit", "of what the guest sends to the switch, for example\n" \
	    "300Mbit/s or 100Kpkt/s; default none")			\
	X(BURST, "burst", BURST, ac_backend, 0, 0, 0, VALE_SETTING_RATE, \
	    "size", "bytes or packets that may exceed the rate")	\
	X(LIMIT, "limit", NUMBER, ac_backend, 0, 0, 0,			\
	    VALE_SETTING_LIMIT, "n",					\
	    "addresses of the guest that the switch learns, 1 to\n"	\
	    "5120; 0, the default: any number")				\
	X(PRIVATE, "private", BOOL, ac_backend, 0, 1, 0,		\
	    VALE_SETTING_PRIVATE, "on|off",				\
	    "no frames from or to other private ports;\ndefault off")	\
	X(WEIGHT, "weight", NUMBER, ac_backend, 0, 0, 0,		\
	    VALE_SETTING_WEIGHT, "n",					\
	    "the guest's part of a ring that is short of space, 1\n"	\
	    "to 100; default 1")					\
	X(VLAN, "vlan", NUMBER, ac_backend, 0, 0, 0, VALE_SETTING_VLAN,	\
	    "n", "the guest's VLAN, without tags, 1 to 4094; default 0:\n" \
	    "none")							\
	X(TRUNK, "trunk", TEXT, ac_backend, 0, 0, 0, VALE_SETTING_TRUNK, \
	    "list", "VLANs that the guest has with tags, as 10,20-30, or\n" \
	    "all; default no")						\
	X(NATIVE, "native", NUMBER, ac_backend, 0, 0, 0,		\
	    VALE_SETTING_NATIVE, "n", "the VLAN of a trunk without tags, " \
	    "1 to 4094;\ndefault 0: none")				\
	X(SOURCE, "source", TEXT, ac_backend, 0, 0, 0,			\
	    VALE_SETTING_SOURCE, "list",				\
	    "Ethernet addresses from which the guest may send, or\n"	\
	    "own; default any")						\
	X(IP, "ip", TEXT, ac_backend, 0, 0, 0, VALE_SETTING_IP, "list",	\
	    "IP addresses and prefixes from which it may send;\n"	\
	    "default any")						\
	X(MIRROR, "mirror", TEXT, ac_backend, 0, 0, 0,			\
	    VALE_SETTING_MIRROR, "port",				\
	    "another port whose frames the guest gets, too:\n"		\
	    "vale<switch>:<port>, or with /t what it sends, /r\n"	\
	    "gets; default no")						\
	X(LINK, "link", TEXT, ac_backend, 0, 0, 0, VALE_SETTING_LINK,	\
	    "up|down|uplink",						\
	    "what the guest sees of a cable: uplink follows the\n"	\
	    "switch's attached interface; default up")			\
	X(BACKEND, "backend", BACKEND, ac_backend, 0, 0, 0, -1, "", "")	\
	X(DEVICE, "device", DEVICE, ac_device, 0, 0, 0, -1, "", "")

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
		VALED_KIND_CONTROL,	/* an absolute path */
		VALED_KIND_CSB,		/* e82545_csb_names[] */
		VALED_KIND_DEVICE,	/* e1000 or e1000e */
		VALED_KIND_FD,		/* valed_activation_fd() */
		VALED_KIND_MAC,		/* an Ethernet address */
		VALED_KIND_NUMBER,	/* a uint32_t */
		VALED_KIND_PATH,
		VALED_KIND_RATE,	/* vale_rate_parse() */
		VALED_KIND_SIZE,	/* valed_size_parse() */
		VALED_KIND_TEXT		/* vale_setting_parse() */
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
/* Bytes of a value of the kind TEXT, and of another, none of which takes more
   than a path; with the NUL. */
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

/* The index of a variable whose name has `len' characters, or -1. */
int	valed_variable(const char *name, size_t len);

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
 * The node of a place that an option -s has, whose value must stay; there must
 * be none yet, and less than VALED_MAXADAPTERS others of options.
 */
struct valed_node *valed_config_slot(int bus, int slot, int func,
	    const char *option);

/* Set a variable of a node to `len' bytes of `value'. */
void	valed_config_set(struct valed_node *vn, int variable,
	    const char *value, size_t len);

/* The lines about switches, ports and interfaces; returns how many. */
unsigned int valed_config_lines(const struct valed_line **lines);

/* Where a line is. */
struct valed_where valed_line_where(const struct valed_line *line);

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

#endif /* !_VALED_CONFIG_H_ */
