/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The settings of switches and ports.  Each has one row here: libvale's calls,
 * the control socket's requests, valectl(8) and options of valed(8) take the
 * name, the range and the default from it.  Besides the row there is the
 * setting's code, in vale_setting_switch.c, and what the manual pages say;
 * tests compare valectl.8 and valed.8 with the table.
 */

#ifndef _VALE_SETTING_H_
#define	_VALE_SETTING_H_

#include <sys/types.h>
#include <stdbool.h>
#include <stdint.h>

#include <dev/netmap/vale_fdb_entry.h>
#include <dev/netmap/vale_rate_conf.h>
#include <dev/netmap/vale_vlan_conf.h>

#include "libvale.h"

/*
 * The settings of switches and ports, in the order in which valectl(8) shows
 * them and in which they can be set: a trunk comes before its native VLAN.  A
 * setting is a row here, and what it does: vale_setting_switch.c.  The options
 * of an adapter (valed_config.h), usages and completion have the same rows.
 *
 * X(id, number, name, scope, kind, min, max, default, what, unit, arg, help)
 *
 *	number	is that of struct vale_wire_set
 *	scope	is SWITCH or PORT
 *	kind	is NUMBER, BOOL, RATE, MIRROR or TEXT: see struct
 *		vale_setting_value
 *	what	it is called in messages, with `unit' behind the number; of TEXT
 *		the sentence that says what is valid, and `unit' is the default
 *	arg	is the value in usages; `help' what it does, in lines
 */
#define	VALE_SETTINGS(X)						\
	X(AGEING, 1, "ageing", SWITCH, NUMBER, 0, VALE_FDB_AGEING_MAX_S, \
	    VALE_FDB_AGEING_S, "ageing time", "seconds", "seconds", "")	\
	X(BATCH, 7, "batch", SWITCH, NUMBER, 1, VALE_BATCH_MAX,		\
	    VALE_BATCH_MAX, "batch", "slots", "slots", "")		\
	X(IP, 13, "ip", PORT, TEXT, 0, 0, 0, "ip is a list of at most 16 " \
	    "addresses or prefixes, or any", "any",			\
	    "any|address[/length],...",					\
	    "IP addresses and prefixes from which the guest may send;\n" \
	    "default any")						\
	X(LIMIT, 2, "limit", PORT, NUMBER, 0, VALE_FDB_ENTRIES, 0,	\
	    "limit", "addresses", "addresses",				\
	    "of the guest that the switch learns, 1 to 5120; 0, the\n"	\
	    "default: any number")					\
	X(LINK, 15, "link", PORT, TEXT, 0, 0, 0, "link is up, down or " \
	    "uplink", "up", "up|down|uplink",				\
	    "what the guest sees of a cable: uplink follows the\n"	\
	    "switch's attached interface; default up")			\
	X(MIRROR, 8, "mirror", PORT, MIRROR, 0, VALE_MIRROR_BOTH, 0,	\
	    "mirror", "", "no|vale<switch>:<port>[/t|/r]",		\
	    "another port whose frames the guest gets, too: with /t\n"	\
	    "what the port sends, with /r what it gets; default no")	\
	X(PRIVATE, 6, "private", PORT, BOOL, 0, 1, 0, "private", "",	\
	    "on|off",							\
	    "no frames from or to other private ports; default off")	\
	X(RATE, 3, "rate", PORT, RATE, 0, VALE_RATE_MAX, 0, "rate", "",	\
	    "limit[,burst=size]",					\
	    "of what the guest sends to the switch, for example\n"	\
	    "300Mbit/s or 100Kpkt/s, and how many bytes or packets\n"	\
	    "may exceed the limit; default 0: none")			\
	X(RESERVED, 14, "reserved", SWITCH, BOOL, 0, 1, 1, "reserved", "", \
	    "on|off", "")						\
	X(SOURCE, 12, "source", PORT, TEXT, 0, 0, 0, "source is a list of " \
	    "at most 16 Ethernet addresses, own or any", "any",		\
	    "any|own|address,...",					\
	    "Ethernet addresses from which the guest may send; default\n" \
	    "any")							\
	X(TRUNK, 10, "trunk", PORT, TEXT, 0, 0, 0, "trunk is a list of " \
	    "VLANs and ranges from 1 to 4094, all or no", "no",		\
	    "no|all|vlan[-vlan],...",					\
	    "VLANs that the guest has with tags, as 10,20-30; default no") \
	X(NATIVE, 11, "native", PORT, NUMBER, 0, VALE_VLAN_MAX, 0,	\
	    "native VLAN", "", "vlan",					\
	    "the VLAN of a trunk without tags, 1 to 4094; default 0:\n" \
	    "none")							\
	X(VLAN, 9, "vlan", PORT, NUMBER, 0, VALE_VLAN_MAX, 0, "VLAN", "", \
	    "vlan",							\
	    "the guest's VLAN, without tags, 1 to 4094; default 0: none") \
	X(WEIGHT, 5, "weight", PORT, NUMBER, 1, VALE_WEIGHT_MAX, 1,	\
	    "weight", "", "n",						\
	    "the guest's part of a ring that is short of space, 1 to\n" \
	    "100; default 1")
/* A rate in frames has a number of its own in struct vale_wire_set. */
#define	VALE_SETTING_FRAMES	4

enum vale_setting_id {
#define	VALE_SETTING_ID(id, ...)	VALE_SETTING_##id,
	VALE_SETTINGS(VALE_SETTING_ID)
	VALE_NSETTINGS
};

enum vale_setting_kind {
	VALE_KIND_NUMBER,
	VALE_KIND_BOOL,
	VALE_KIND_RATE,
	VALE_KIND_MIRROR,
	VALE_KIND_TEXT
};

enum vale_setting_scope {
	VALE_OF_SWITCH,
	VALE_OF_PORT
};

struct vale_setting {
	unsigned int	se_number;
	const char	*se_name;
	enum vale_setting_scope se_scope;
	enum vale_setting_kind se_kind;
	uint64_t	se_min;
	uint64_t	se_max;
	uint64_t	se_default;
	const char	*se_what;
	const char	*se_unit;
	const char	*se_arg;
	const char	*se_help;
};
extern const struct vale_setting vale_setting_table[VALE_NSETTINGS];

/* A setting's value. */
struct vale_setting_value {
	uint64_t	sv_number;	/* a rate a second; what a mirror gets:
					   VALE_MIRROR_*, or 0 */
	uint32_t	sv_burst;	/* of a rate */
	bool		sv_frames;	/* the rate is one of frames */
	char		sv_text[VALE_SETTING_SIZE];	/* the port that is
					   mirrored; the value of TEXT */
};

/* Return the setting with a number of se_number, or VALE_NSETTINGS. */
unsigned int	vale_setting_find(unsigned int number);

/* Return the setting `name', of `len' bytes, or VALE_NSETTINGS. */
unsigned int	vale_setting_named(const char *name, size_t len);

/*
 * Parse a value.  Returns 0, or -1 with EINVAL and what vale_error() returns.
 * The switch's library checks ranges, and what is TEXT.
 */
int	vale_setting_parse(unsigned int setting, const char *text,
	    struct vale_setting_value *value);

/* Return the value that a switch or port has when nothing was set. */
void	vale_setting_default(unsigned int setting,
	    struct vale_setting_value *value);

/* Print a value into `text', VALE_SETTING_SIZE bytes, as it is parsed. */
void	vale_setting_print(unsigned int setting,
	    const struct vale_setting_value *value, char *text, size_t size);

/* Return whether two values of a setting are the same. */
bool	vale_setting_same(const struct vale_setting_value *a,
	    const struct vale_setting_value *b);

/* Give a rate without a burst the default burst, as when the rate is set. */
void	vale_setting_burst(struct vale_setting_value *value);

/* A setting of several that are changed together, of a switch or port. */
struct vale_setting_change {
	unsigned int	sc_setting;
	bool		sc_preset;	/* preset, else set the default */
	struct vale_setting_value sc_value;
};

/*
 * Set `n' settings of a switch or port, at least one, in this order, or get all
 * settings of a scope into value[VALE_NSETTINGS].  Each frame sees all of these
 * settings or none.  A mirror must be set alone.  Returns 0, or -1 with errno,
 * and what vale_error() returns.
 *	EINVAL	a value is invalid, and nothing has changed; or one does not go
 *		with the others, and these are set
 *	ENXIO	there is no such switch or port
 */
int	vale_setting_set_all(const char *name,
	    const struct vale_setting_change *sc, unsigned int n);
int	vale_setting_get(const char *name, enum vale_setting_scope scope,
	    struct vale_setting_value value[VALE_NSETTINGS]);

/* Set one setting: as vale_setting_set_all(). */
static inline int
vale_setting_set(const char *name, unsigned int setting,
    const struct vale_setting_value *value)
{
	return (vale_setting_set_all(name, &(struct vale_setting_change){
	    .sc_setting = setting, .sc_value = *value }, 1));
}

/*
 * What is below is in the switch's library only, not in that over valed.
 */

/*
 * Check a value, whatever the port.  Returns 0, or -1 with EINVAL and what
 * vale_error() returns.
 */
int	vale_setting_check(unsigned int setting,
	    const struct vale_setting_value *value);

/*
 * Preset `n' settings, at least one, of a switch or port that need not be
 * there: set them now, if the switch or port is there, and each time that the
 * switch or port comes, before a frame passes.  A port that comes meanwhile,
 * and each frame, sees all of these settings or none.  A mirror that finds no
 * space when its port comes is left out.  Any thread.  Returns 0, or -1 with
 * errno and what vale_error() returns.  If *failed is `n' then, a value was
 * invalid or memory was short, and everything is unchanged.  Otherwise all
 * settings are preset, sc[*failed] is the first that could not be set now, and
 * settings behind it may have failed, too.
 */
int	vale_setting_preset_all(const char *name,
	    const struct vale_setting_change *sc, unsigned int n,
	    unsigned int *failed);

/*
 * Set a setting of a switch or port that is not there, when the switch or port
 * comes next: only then, and in place of what is preset, unless that is changed
 * before.  Any thread.  Returns 0, or -1 with what vale_error() returns and
 * errno: EINVAL, ENOMEM.
 */
int	vale_setting_once(const char *name, unsigned int setting,
	    const struct vale_setting_value *value);

/*
 * Return the value that a switch or port has if only presets were set, or the
 * default.  A rate has a burst, as vale_setting_get() says.  Any thread.
 */
void	vale_preset_get(const char *name, unsigned int setting,
	    struct vale_setting_value *value);

/*
 * Have a counter of a port that is there, and that nobody uses yet, begin with
 * the value of an earlier port.  Returns 0, or -1 with errno ENXIO.
 */
int	vale_port_count(const char *name, unsigned int counter,
	    uint64_t value);

/* Set errno and what vale_error() returns; returns -1. */
int	vale_setting_error(int error, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 2, 3)));

#endif /* !_VALE_SETTING_H_ */
