/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a port may send, and the VLANs that it is in: vale_rules.c.
 */

#ifndef _VALE_RULES_H_
#define	_VALE_RULES_H_

#include <dev/netmap/vale_guard.h>
#include <dev/netmap/vale_vlan.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "vale_offload.h"
#include "vale_txq.h"

/* The rules of a port.  Constant while a view has them: vale_view.c. */
struct vale_rules {
	struct vale_vlan rls_vlan;
	struct vale_guard rls_guard;
	/* As they were set, or "". */
	char		 rls_ip[VALE_SETTING_SIZE];
	char		 rls_source[VALE_SETTING_SIZE];
	char		 rls_trunk[VALE_SETTING_SIZE];
};

/* The rules of a port that has no rules. */
extern const struct vale_rules vale_rules_none;

/* Free rules; not vale_rules_none's memory. */
void	vale_rules_free(const struct vale_rules *ru);

/* Return whether the rules forbid and change nothing. */
bool	vale_rules_empty(const struct vale_rules *ru);

/* Return whether the guard checks anything. */
static inline bool
vale_rules_guard(const struct vale_rules *ru)
{
	return (ru->rls_guard.gd_naddrs > 0 || ru->rls_guard.gd_nprefixes > 0);
}

/*
 * The rest is of a batch, on the sending thread.
 */

/*
 * The first bytes of a frame, with zeros if the frame is shorter: addresses,
 * type, and of a frame with a tag its number and the next type.
 */
#define	VALE_HEAD_TYPE		14
#define	VALE_HEAD_TCI		16
#define	VALE_HEAD_TAG		18

/* Return the tag's VLAN, 0 if only a priority; or VALE_TAG_NONE. */
#define	VALE_TAG_NONE		4096
static inline unsigned int
vale_rules_tag(const uint8_t *head)
{
	if ((head[12] << 8 | head[13]) != VALE_VLAN_TYPE)
		return (VALE_TAG_NONE);
	return ((head[14] << 8 | head[15]) & 0xfff);
}

/* Return whether a frame has the form that a member of `vlan' gets. */
static inline bool
vale_rules_has_form(const uint8_t *head, unsigned int vlan, bool tagged)
{
	return (vlan == 0 || vale_rules_tag(head) == (tagged ? vlan :
	    VALE_TAG_NONE));
}

/* Copy the first `len' bytes of a frame, with zeros behind its end. */
void	vale_rules_gather_split(const struct vale_frag *fg, uint32_t len,
	    uint8_t *to);

/* Do what vale_rules_gather_split() does, faster for a long first fragment. */
static inline void
vale_rules_gather(const struct vale_frag *fg, uint32_t len, uint8_t *to)
{
	if (fg->fg_len >= len)
		memcpy(to, fg->fg_buf, len);
	else
		vale_rules_gather_split(fg, len, to);
}

/*
 * Copy the first bytes of each frame of a batch that is in the memory of
 * others: what the rules look at can no longer change.  Frames that would have
 * too many fragments are dropped, *dropped of them.  Returns the first fragment
 * of a frame that was not copied whole.
 */
uint32_t vale_rules_copy(struct vale_txq *vt, uint32_t *dropped);

/*
 * Return the reason to drop the frame with the first fragment `fg', or 0, and
 * its VLAN in *vlan; `vlan' is NULL on a switch without VLANs.  `head' is the
 * frame's first VALE_HEAD_TAG bytes.
 */
enum vale_counter vale_rules_admit(const struct vale_rules *ru,
	    const struct vale_frag *fg, const uint8_t *head,
	    unsigned int *vlan);

/* Begin with a part of a batch: no other forms are in use. */
static inline void
vale_rules_begin(struct vale_txq *vt)
{
	vt->vt_nforms = vt->vt_form_frags = vt->vt_form_offloads = 0;
}

/* Return whether there is space for both forms of any frame. */
static inline bool
vale_rules_space(const struct vale_txq *vt)
{
	return (vt->vt_nforms <= VALE_FORMS - 2 &&
	    vt->vt_form_frags <= VALE_FORM_FRAGS - 2 * NETMAP_MAX_FRAGS &&
	    vt->vt_form_offloads <= VALE_FORM_OFFLOADS - 2);
}

/* Return whether a frame can be given another form. */
bool	vale_rules_formable(const struct vale_txq *vt,
	    const struct vale_frag *fg);

/*
 * Give the frame at index `frame' the form that a member of `vlan' gets, with a
 * tag if `tagged' is set, until the next vale_rules_begin().  There must be
 * space.  Returns the frame's index of vt_frag or that of its other form, or
 * VALE_END if the frame cannot be given that form.
 */
uint32_t vale_rules_form(struct vale_txq *vt, uint32_t frame,
	    unsigned int vlan, bool tagged);

#endif /* !_VALE_RULES_H_ */
