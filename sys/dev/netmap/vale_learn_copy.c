/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Copies of a frame to ports that netmap does not deliver it to: a lookup
 * function returns one port or all, never some.
 *
 * Many senders may put frames into a VALE port's receive ring at once.  Each
 * leases slots under the ring's q_lock, fills the slots without the lock, and
 * ends the lease under the lock; slots become visible in the order of the
 * leases (struct netmap_kring in netmap_kern.h).  A copy follows the same
 * protocol, with a lease for a single frame.  The caller holds the bridge's
 * lock for reading, so ports do not change.
 *
 * If only one of source and destination has a virtio-net header before each
 * frame, netmap's own function converts the frame, and may split it into
 * several.
 */

#include <dev/netmap/vale_learn_os.h>

#include <dev/netmap/vale_learn_var.h>

/* Leased slots of a receive ring. */
struct copy_lease {
	uint32_t	cl_index;	/* in nkr_leases */
	uint32_t	cl_first;
	uint32_t	cl_slots;
};

static uint32_t
copy_slot_add(const struct netmap_kring *kring, uint32_t i, uint32_t n)
{
	i += n;
	return (i >= kring->nkr_num_slots ? i - kring->nkr_num_slots : i);
}

static bool
copy_lease(struct netmap_kring *kring, uint32_t slots, struct copy_lease *cl)
{
	uint32_t last, used;
	bool fits = false;

	mtx_lock(&kring->q_lock);
	last = kring->nkr_num_slots - 1;
	used = kring->nkr_hwlease - kring->nr_hwcur;
	if (kring->nkr_hwlease < kring->nr_hwcur)
		used += kring->nkr_num_slots;
	if (!kring->nkr_stopped && used <= last && last - used >= slots) {
		cl->cl_slots = slots;
		cl->cl_first = kring->nkr_hwlease;
		cl->cl_index = kring->nkr_lease_idx;
		kring->nkr_leases[cl->cl_index] = NR_NOSLOT;
		kring->nkr_lease_idx = nm_next(cl->cl_index, last);
		kring->nkr_hwlease = copy_slot_add(kring, cl->cl_first, slots);
		fits = true;
	}
	mtx_unlock(&kring->q_lock);
	return (fits);
}

/*
 * Return the rest of the lease, from `end' on, if the lease is the last; else
 * make empty frames of the rest, which receivers skip.
 */
static void
copy_return(struct netmap_kring *kring, const struct copy_lease *cl,
    uint32_t *end)
{
	struct netmap_slot *slot;
	uint32_t after = copy_slot_add(kring, cl->cl_first, cl->cl_slots);

	mtx_assert(&kring->q_lock, MA_OWNED);
	if (*end == after)
		return;
	if (nm_next(cl->cl_index, kring->nkr_num_slots - 1) ==
	    kring->nkr_lease_idx) {
		kring->nkr_hwlease = *end;
		return;
	}
	for (; *end != after; *end = copy_slot_add(kring, *end, 1)) {
		slot = &kring->ring->slot[*end];
		slot->len = 0;
		slot->flags = 0;
	}
}

/* End the lease; make all slots visible that no older lease holds back. */
static void
copy_publish(struct netmap_kring *kring, const struct copy_lease *cl,
    uint32_t end)
{
	uint32_t i = cl->cl_index, tail;
	bool news = false;

	mtx_lock(&kring->q_lock);
	MPASS(kring->nkr_leases[i] == NR_NOSLOT);
	copy_return(kring, cl, &end);
	kring->nkr_leases[i] = end;
	if (kring->nr_hwtail == cl->cl_first) {
		for (tail = end; i != kring->nkr_lease_idx &&
		    kring->nkr_leases[i] != NR_NOSLOT;
		    i = nm_next(i, kring->nkr_num_slots - 1)) {
			tail = kring->nkr_leases[i];
			kring->nkr_leases[i] = NR_NOSLOT;
		}
		news = tail != cl->cl_first;
		kring->nr_hwtail = tail;
	}
	mtx_unlock(&kring->q_lock);
	if (news)
		kring->nm_notify(kring, 0);
}

/* Copy slot by slot.  Returns the slot behind the last. */
static uint32_t
copy_frame(struct netmap_kring *kring, const struct nm_bdg_fwd *ft,
    uint32_t slots, uint32_t i)
{
	struct netmap_slot *slot;
	uint64_t offset;
	uint32_t n;
	char *buf;
	int error;

	for (n = 0; n < slots; n++, ft++, i = copy_slot_add(kring, i, 1)) {
		slot = &kring->ring->slot[i];
		offset = nm_get_offset(kring, slot);
		buf = (char *)NMB(kring->na, slot) + offset;
		slot->len = ft->ft_len;
		slot->flags = slots << 8 | (n + 1 < slots ? NS_MOREFRAG : 0);
		error = 0;
		if (offset > NETMAP_BUF_SIZE(kring->na) ||
		    ft->ft_len > NETMAP_BUF_SIZE(kring->na) - offset)
			error = EMSGSIZE;
		else if ((ft->ft_flags & NS_INDIRECT) != 0)
			error = copyin(ft->ft_buf, buf, ft->ft_len);
		else
			memcpy(buf, ft->ft_buf, ft->ft_len);
		if (error != 0)
			slot->len = 0;
	}
	return (i);
}

/* Return the maximum of slots that the frame needs at its destination. */
static uint32_t
copy_slots(uint32_t slots, const struct netmap_vp_adapter *src,
    const struct netmap_vp_adapter *dst)
{
	if (src->up.virt_hdr_len == dst->up.virt_hdr_len ||
	    dst->mfs >= src->mfs || dst->mfs <= WORST_CASE_GSO_HEADER)
		return (slots);
	/* Each segment has a header of its own. */
	return (slots * src->mfs / (dst->mfs - WORST_CASE_GSO_HEADER) + 1);
}

bool
vale_learn_copy_slots(const struct nm_bdg_fwd *ft,
    struct netmap_vp_adapter *src, struct netmap_vp_adapter *dst)
{
	struct netmap_kring *kring;
	struct copy_lease cl;
	uint32_t end, left, slots;

	rw_assert(&src->na_bdg->bdg_lock, RA_LOCKED);
	if ((dst->up.na_flags & NAF_SW_ONLY) != 0 || !nm_netmap_on(&dst->up))
		return (false);
	kring = dst->up.rx_rings[0];
	if (kring->ring == NULL || kring->nr_mode != NKR_NETMAP_ON)
		return (false);
	slots = ft->ft_frags;
	left = copy_slots(slots, src, dst);
	if (!copy_lease(kring, left, &cl)) {
		if (!dst->retry)
			return (false);
		/* A hardware adapter's ring: nobody else empties it. */
		kring->nm_notify(kring, NAF_FORCE_RECLAIM);
		if (!copy_lease(kring, left, &cl))
			return (false);
	}
	end = cl.cl_first;
	if (src->up.virt_hdr_len != dst->up.virt_hdr_len)
		bdg_mismatch_datapath(src, dst, ft, kring->ring, &end,
		    kring->nkr_num_slots - 1, &left);
	else
		end = copy_frame(kring, ft, slots, end);
	copy_publish(kring, &cl, end);
	return (true);
}

bool
vale_learn_copy(const struct nm_bdg_fwd *ft, struct netmap_vp_adapter *src,
    struct netmap_vp_adapter *dst)
{
	/* The virtio-net header may be in a slot of its own, before `ft'. */
	if (src->up.virt_hdr_len != 0 && ft->ft_offset == 0)
		ft--;
	return (vale_learn_copy_slots(ft, src, dst));
}
