/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * VLANs (IEEE 802.1Q) of a switch's ports: which VLAN a frame is in that a port
 * sends, which ports are members, and whether these get the frame with a tag.
 *
 *	any	in no VLAN without a tag, else in the tag's.  Member of all
 *		VLANs; gets frames with the tag.  The default
 *	access	frames without a tag, or with one for VLAN 0 (priority only),
 *		are in one VLAN; others must not be sent.  Member of that VLAN;
 *		gets frames without the tag
 *	trunk	frames are in the VLAN of the tag, which must be in a set.
 *		Those without, or with one for VLAN 0, are in the native VLAN,
 *		and must not be sent if there is none.  Member of the set, with
 *		the tag, and of the native VLAN, without
 *
 * Only a tag with the type 0x8100 counts, and only the first.  A tag of another
 * type is the frame's own, as is a second tag.
 *
 * The user-space switch (lib/libvale) and vale_learn(4) use these.
 */

#ifndef _DEV_NETMAP_VALE_VLAN_H_
#define	_DEV_NETMAP_VALE_VLAN_H_

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_vlan_conf.h>

#define	VALE_VLAN_TYPE		0x8100	/* of a tag */
#define	VALE_VLAN_TAG		4	/* bytes of a tag */
#define	VALE_VLAN_REFUSED	4096	/* no VLAN: the frame must not be
					   sent */

enum vale_vlan_mode {
	VALE_VLAN_ANY,
	VALE_VLAN_ACCESS,
	VALE_VLAN_TRUNK
};

/* The VLANs of a port.  All zero: any. */
struct vale_vlan {
	uint8_t		vln_mode;	/* VALE_VLAN_* */
	uint16_t	vln_native;	/* of frames without a tag; 0: none */
	uint64_t	vln_set[4096 / 64];	/* VALE_VLAN_TRUNK */
};

/* Make *vn an access port of a VLAN, 1 to VALE_VLAN_MAX. */
void	vale_vlan_access(struct vale_vlan *vn, unsigned int vlan);

/*
 * Make *vn a trunk with the VLANs of a list: numbers and ranges from 1 to
 * VALE_VLAN_MAX, with commas between, as "10,20-30"; or "all".  A trunk's
 * native VLAN stays.  Returns false, and changes nothing, if the list is
 * invalid.
 */
bool	vale_vlan_trunk(struct vale_vlan *vn, const char *list);

/* Return whether a trunk has this VLAN, below 4096, in its list. */
static inline bool
vale_vlan_listed(const struct vale_vlan *vn, unsigned int vlan)
{
	return ((vn->vln_set[vlan / 64] >> vlan % 64 & 1) != 0);
}

/*
 * Return the VLAN of a frame that the port sends: 0 if the frame is in none,
 * VALE_VLAN_REFUSED if the port must not send the frame.  `type' and `tci' are
 * the two numbers behind the frame's addresses.
 */
static inline unsigned int
vale_vlan_of(const struct vale_vlan *vn, uint16_t type, uint16_t tci)
{
	const unsigned int vlan = type == VALE_VLAN_TYPE ? tci & 0xfff : 0;

	if (vlan == 0)
		return (vn->vln_mode == VALE_VLAN_TRUNK && vn->vln_native == 0 ?
		    VALE_VLAN_REFUSED : vn->vln_native);
	if (vn->vln_mode == VALE_VLAN_ANY ||
	    (vn->vln_mode == VALE_VLAN_TRUNK && vale_vlan_listed(vn, vlan)))
		return (vlan);
	return (VALE_VLAN_REFUSED);
}

/* Return whether the port gets frames of a VLAN, 0 to 4095. */
static inline bool
vale_vlan_member(const struct vale_vlan *vn, unsigned int vlan)
{
	return (vn->vln_mode == VALE_VLAN_ANY || (vlan != 0 &&
	    (vlan == vn->vln_native || (vn->vln_mode == VALE_VLAN_TRUNK &&
	    vale_vlan_listed(vn, vlan)))));
}

/* Return whether the port, a member, gets frames of a VLAN with a tag. */
static inline bool
vale_vlan_tagged(const struct vale_vlan *vn, unsigned int vlan)
{
	return (vlan != vn->vln_native);
}

#endif /* !_DEV_NETMAP_VALE_VLAN_H_ */
