/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ruled frames of vale_learn(4): frames of a port with a guard, and all frames
 * of a switch with VLANs.
 *
 * A lookup function cannot change a frame or choose several ports, and the
 * sender can change the frame afterwards: netmap's buffers are mapped into its
 * process, and indirect slots are its memory.  So the module copies the whole
 * frame first, decides about the copy, and puts that into the receive rings
 * (vale_learn_copy.c), for each port with a tag or without.  The lookup then
 * returns no port, so that netmap delivers nothing.
 *
 * Each transmit ring has memory for one frame: a ring is synced by one thread,
 * and a frame is delivered before the next is looked up.  Rings get the memory
 * when rules are set, or with their port, so that nobody waits for memory here.
 */

#include <dev/netmap/vale_learn_os.h>

#include <dev/netmap/vale_learn_form.h>
#include <dev/netmap/vale_learn_probes.h>
#include <dev/netmap/vale_learn_var.h>

/*
 * The copy is described to netmap as slots of the receiver's buffers: of their
 * size less some room, for the offset of data in a buffer, and for netmap's
 * rounding to 64 bytes.  Smaller buffers than RULED_BUFFER get nothing, so a
 * frame has at most RULED_SLOTS.
 */
#define	RULED_ROOM	128
#define	RULED_BUFFER	512
#define	RULED_SLOTS	howmany(VALE_VLAN_TAG + VALE_LEARN_VNET_MAX +	\
			    VALE_LEARN_FRAME_MAX, RULED_BUFFER - RULED_ROOM)
_Static_assert(RULED_SLOTS <= UINT8_MAX, "ft_frags");
_Static_assert(RULED_ROOM >= 2 * VALE_LEARN_BEHIND, "room for the rounding");
_Static_assert(RULED_BUFFER - RULED_ROOM >= VALE_LEARN_VNET_MAX +
    VALE_LEARN_HEADERS + VALE_VLAN_TAG, "headers are in the first slot");

struct vale_learn_memory {
	struct vale_learn_frame me_frame;
	uint32_t	me_slot;	/* bytes of a slot; 0: not described */
	struct nm_bdg_fwd me_ft[RULED_SLOTS];
};

struct vale_learn_memory *
vale_learn_memory_new(int how)
{
	return (malloc(sizeof(struct vale_learn_memory), M_VALE_LEARN, how));
}

/* Copy a frame.  Returns the reason to drop it, or 0. */
static enum vale_learn_counter
ruled_gather(struct vale_learn_frame *lf, const struct nm_bdg_fwd *first,
    struct netmap_vp_adapter *na, uint32_t header)
{
	const struct nm_bdg_fwd *f;
	uint8_t *to;

	if (header > VALE_LEARN_VNET_MAX)
		return (VALE_LEARN_C_DROP_HEADER);
	vale_learn_frame_begin(lf, header);
	for (f = first; ; f++) {
		to = vale_learn_frame_append(lf, f->ft_len);
		if (to == NULL)
			return (VALE_LEARN_C_DROP_OVERSIZE);
		if ((f->ft_flags & NS_INDIRECT) != 0) {
			if (copyin(f->ft_buf, to, f->ft_len) != 0)
				return (VALE_LEARN_C_DROP_FAULT);
		} else if (f->ft_len > NETMAP_BUF_SIZE(&na->up))
			return (VALE_LEARN_C_DROP_OVERSIZE);
		else
			memcpy(to, f->ft_buf, f->ft_len);
		if ((f->ft_flags & NS_MOREFRAG) == 0)
			break;
	}
	if (!vale_learn_frame_end(lf))
		return (VALE_LEARN_C_DROP_RUNT);
	return (vale_learn_frame_complete(lf) ? 0 : VALE_LEARN_C_DROP_HEADER);
}

/* Return the copy's slots in buffers of `size' bytes; 0: too small. */
static uint32_t
ruled_slots(const struct vale_learn_frame *lf, uint32_t size)
{
	return (size < RULED_BUFFER ? 0 :
	    howmany(lf->lf_header + lf->lf_len, size - RULED_ROOM));
}

/* Describe the copy.  Returns false if the buffers are too small. */
static bool
ruled_describe(struct vale_learn_memory *me, uint32_t size)
{
	const struct vale_learn_frame *lf = &me->me_frame;
	uint32_t left = lf->lf_header + lf->lf_len;
	struct nm_bdg_fwd *ft = me->me_ft;
	uint8_t *p = lf->lf_start;
	uint32_t slot = size - RULED_ROOM;

	if (size < RULED_BUFFER)
		return (false);
	if (me->me_slot == slot)
		return (true);
	MPASS(ruled_slots(lf, size) <= RULED_SLOTS);
	for (; left > 0; ft++) {
		memset(ft, 0, sizeof(*ft));
		ft->ft_buf = p;
		ft->ft_len = MIN(left, slot);
		p += ft->ft_len;
		left -= ft->ft_len;
		ft->ft_flags = left > 0 ? NS_MOREFRAG : 0;
	}
	me->me_ft->ft_frags = ft - me->me_ft;
	me->me_ft->ft_offset = lf->lf_header;
	me->me_slot = slot;
	return (true);
}

/* Put the copy into the receive rings of some ports. */
static void
ruled_deliver(struct vale_learn_switch *sw, struct vale_learn_memory *me,
    struct netmap_vp_adapter *na, struct vale_learn_ring *lr,
    const struct vale_learn_set *to)
{
	const struct nm_bridge *b = sw->sw_bdg;
	struct netmap_vp_adapter *dst;
	uint32_t i, lost = 0, made = 0;

	rw_assert(&b->bdg_lock, RA_LOCKED);
	for (i = 0; i < b->bdg_active_ports; i++) {
		if (!vale_learn_set_has(to, b->bdg_port_index[i]))
			continue;
		dst = b->bdg_ports[b->bdg_port_index[i]];
		if (ruled_describe(me, NETMAP_BUF_SIZE(&dst->up)) &&
		    vale_learn_copy_slots(me->me_ft, na, dst)) {
			made++;
			continue;
		}
		lost++;
		VALE_LEARN_PROBE4(drop, dst->up.name,
		    vale_learn_counter_table[VALE_LEARN_C_DROP_COPY].cr_name, 1,
		    na->up.name);
	}
	vale_learn_count(lr, VALE_LEARN_C_COPY, made);
	vale_learn_count(lr, VALE_LEARN_C_DROP_COPY, lost);
}

static uint32_t
ruled_count(const struct vale_learn_set *s)
{
	uint32_t i, n = 0;

	for (i = 0; i < VALE_LEARN_WORDS; i++)
		n += bitcount64(s->s_word[i]);
	return (n);
}

/*
 * Leave the frame to mirrors only if the sender is over its share of the ring
 * of the single port `dst'.  Frames of this ring are in the receive rings at
 * once, so none is pending.
 */
static void
ruled_admit(struct vale_learn_switch *sw, const struct vale_learn_memory *me,
    const struct netmap_vp_adapter *na, struct vale_learn_ring *lr,
    unsigned int dst, struct vale_learn_plan *plan)
{
	const struct netmap_vp_adapter *to = sw->sw_bdg->bdg_ports[dst];
	uint32_t slots;

	slots = to == NULL ? 0 :
	    ruled_slots(&me->me_frame, NETMAP_BUF_SIZE(&to->up));
	lr->lr_pending = 0;
	if (slots == 0 || vale_learn_switch_admit(sw, lr, na, dst, 0, slots)) {
		lr->lr_pending = 0;
		return;
	}
	plan->lpn_to[0].s_word[dst / 64] &= ~(UINT64_C(1) << dst % 64);
	plan->lpn_to[1].s_word[dst / 64] &= ~(UINT64_C(1) << dst % 64);
}

void
vale_learn_ruled(struct vale_learn_switch *sw, const struct nm_bdg_fwd *first,
    struct netmap_vp_adapter *na, struct vale_learn_ring *lr, uint32_t len,
    uint32_t bytes)
{
	struct vale_learn_memory *me = lr->lr_memory;
	struct vale_learn_plan plan;
	enum vale_learn_counter drop;
	unsigned int dst, i;
	bool tagged;

	rw_assert(&sw->sw_bdg->bdg_lock, RA_LOCKED);
	MPASS(me != NULL);
	drop = len < VALE_LEARN_HEADER ? VALE_LEARN_C_DROP_RUNT :
	    ruled_gather(&me->me_frame, first, na, na->up.virt_hdr_len);
	if (drop != 0) {
		vale_learn_refuse(&sw->sw_learn, lr, na->bdg_port, bytes, drop);
		VALE_LEARN_PROBE3(lookup, na->up.name, VALE_LEARN_NONE, NULL);
		return;
	}
	dst = vale_learn_rule_frame(&sw->sw_learn, lr, na->bdg_port,
	    vale_learn_frame_data(&me->me_frame), me->me_frame.lf_len,
	    (uint32_t)time_uptime, &plan);
	VALE_LEARN_PROBE3(lookup, na->up.name, dst,
	    vale_learn_frame_data(&me->me_frame));
	if (dst == VALE_LEARN_NONE)
		return;
	if (dst == VALE_FDB_FLOOD)
		VALE_LEARN_PROBE3(flood, na->up.name, me->me_frame.lf_len,
		    ruled_count(&plan.lpn_to[0]) +
		    ruled_count(&plan.lpn_to[1]));
	else
		ruled_admit(sw, me, na, lr, dst, &plan);
	/* First in the form that was sent: another loses the tag's priority. */
	tagged = vale_learn_frame_tagged(&me->me_frame);
	for (i = 0; i < 2; i++, tagged = !tagged) {
		if (ruled_count(&plan.lpn_to[tagged]) == 0)
			continue;
		vale_learn_frame_form(&me->me_frame, plan.lpn_vlan, tagged);
		me->me_slot = 0;
		ruled_deliver(sw, me, na, lr, &plan.lpn_to[tagged]);
	}
}
