/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * Packets: between mbufs and the descriptors that lem_core drives.
 *
 * Receive.  Each slot owns a cluster, loaded for DMA once.  A frame that fits
 * an mbuf is copied and leaves its cluster where it is; others take theirs
 * along.  A batch's frames, chained by m_nextpkt, go to the stack in one call
 * with no lock held.
 *
 * Transmit.  Packets enter a buf_ring; whoever gets tx_mtx moves all there is
 * to the adapter and tells it once.  A packet is loaded into the spare DMA map,
 * which then changes places with that of the slot it went to, since lem_core
 * alone knows which that is.
 */

#ifdef HAVE_KERNEL_OPTION_HEADERS
#include "opt_inet.h"
#include "opt_inet6.h"
#endif

#include <dev/e1000/if_lem.h>

#include <sys/buf_ring.h>
#include <sys/endian.h>
#include <sys/epoch.h>
#include <sys/mbuf.h>

#include <net/bpf.h>
#include <net/if_vlan_var.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet6/ip6_var.h>

#include <machine/in_cksum.h>

#define	LEM_CSUM_TCP	(CSUM_IP_TCP | CSUM_IP6_TCP)
#define	LEM_CSUM_UDP	(CSUM_IP_UDP | CSUM_IP6_UDP)
#define	LEM_CSUM_ALL	(CSUM_IP | LEM_CSUM_TCP | LEM_CSUM_UDP | CSUM_TSO)

/* Bytes of a frame that are copied rather than passed on with their cluster. */
#define	LEM_RX_COPY	((int)MHLEN - ETHER_ALIGN)

/*
 * The interface may be down, or gone from under a task that is still to run.
 */
static bool
lem_running(struct lem_softc *sc)
{
	return (sc->core.lc_running && !sc->core.lc_dead);
}

int
lem_txrx_alloc(struct lem_softc *sc, bus_dma_tag_t parent)
{
	int error, i;

	error = bus_dma_tag_create(parent, 1, 0, BUS_SPACE_MAXADDR,
	    BUS_SPACE_MAXADDR, NULL, NULL, MJUM16BYTES, 1, MJUM16BYTES, 0,
	    NULL, NULL, &sc->rx_tag);
	if (error == 0)
		error = bus_dma_tag_create(parent, 1, 0, BUS_SPACE_MAXADDR,
		    BUS_SPACE_MAXADDR, NULL, NULL,
		    LEM_TSO_MAX + ETHER_VLAN_ENCAP_LEN, LEM_TX_MAXSEGS,
		    PAGE_SIZE, 0, NULL, NULL, &sc->tx_tag);
	if (error == 0)
		error = bus_dmamap_create(sc->rx_tag, 0, &sc->rx_spare);
	if (error == 0)
		error = bus_dmamap_create(sc->tx_tag, 0, &sc->tx_spare);
	for (i = 0; error == 0 && i < LEM_NDESC; i++) {
		error = bus_dmamap_create(sc->rx_tag, 0, &sc->rx_buf[i].map);
		if (error == 0)
			error = bus_dmamap_create(sc->tx_tag, 0,
			    &sc->tx_buf[i].map);
	}
	if (error != 0)
		return (error);
	sc->rx_list_end = &sc->rx_list;
	sc->tx_br = buf_ring_alloc(LEM_BR_SLOTS, M_DEVBUF, M_WAITOK,
	    &sc->tx_mtx);
	return (0);
}

static void
lem_map_free(bus_dma_tag_t tag, bus_dmamap_t *map)
{
	if (*map != NULL)
		bus_dmamap_destroy(tag, *map);
	*map = NULL;
}

void
lem_txrx_free(struct lem_softc *sc)
{
	int i;

	if (sc->tx_br != NULL)
		buf_ring_free(sc->tx_br, M_DEVBUF);
	for (i = 0; i < LEM_NDESC; i++) {
		lem_map_free(sc->tx_tag, &sc->tx_buf[i].map);
		lem_map_free(sc->rx_tag, &sc->rx_buf[i].map);
	}
	lem_map_free(sc->tx_tag, &sc->tx_spare);
	lem_map_free(sc->rx_tag, &sc->rx_spare);
	if (sc->tx_tag != NULL)
		bus_dma_tag_destroy(sc->tx_tag);
	if (sc->rx_tag != NULL)
		bus_dma_tag_destroy(sc->rx_tag);
}

/* Receive. */

static int
lem_rx_cluster(struct lem_softc *sc, struct lem_buf *b)
{
	bus_dma_segment_t seg[1];
	bus_dmamap_t map;
	struct mbuf *m;
	int error, nsegs;

	m = m_getjcl(M_NOWAIT, MT_DATA, M_PKTHDR, sc->core.lc_rx_bufsize);
	if (m == NULL)
		return (ENOBUFS);
	m->m_len = m->m_pkthdr.len = sc->core.lc_rx_bufsize;
	error = bus_dmamap_load_mbuf_sg(sc->rx_tag, sc->rx_spare, m, seg,
	    &nsegs, BUS_DMA_NOWAIT);
	if (error != 0) {
		m_freem(m);
		return (error);
	}
	map = b->map;
	b->map = sc->rx_spare;
	sc->rx_spare = map;
	b->m = m;
	b->addr = seg[0].ds_addr;
	return (0);
}

uint64_t
lem_os_rx_buf(struct lem_core *lc, uint32_t slot)
{
	struct lem_softc *sc = lem_softc(lc);
	struct lem_buf *b = &sc->rx_buf[slot];

	mtx_assert(&sc->rx_mtx, MA_OWNED);
	if (sc->nm_rx)
		return (lem_netmap_rx_buf(sc, slot));
	if (b->m == NULL && lem_rx_cluster(sc, b) != 0)
		return (0);
	bus_dmamap_sync(sc->rx_tag, b->map, BUS_DMASYNC_PREREAD);
	return (b->addr);
}

static void
lem_rx_checksums(struct lem_softc *sc, struct mbuf *m, const struct lem_rx *rx)
{
	int enabled = if_getcapenable(sc->ifp);

	if ((enabled & (IFCAP_RXCSUM | IFCAP_RXCSUM_IPV6)) == 0)
		return;
	if (rx->ipsum_ok)
		m->m_pkthdr.csum_flags |= CSUM_IP_CHECKED | CSUM_IP_VALID;
	if (rx->l4sum_ok) {
		m->m_pkthdr.csum_flags |= CSUM_DATA_VALID | CSUM_PSEUDO_HDR;
		m->m_pkthdr.csum_data = 0xffff;
	}
}

/* The frame in rx_frame is whole. */
static void
lem_rx_frame(struct lem_softc *sc, const struct lem_rx *rx)
{
	struct mbuf *m = sc->rx_frame;

	if (m->m_len < ETHER_HDR_LEN) {
		lem_os_rx_drop(&sc->core);
		if_inc_counter(sc->ifp, IFCOUNTER_IERRORS, 1);
		return;
	}
	sc->rx_frame = sc->rx_frame_last = NULL;
	m->m_pkthdr.rcvif = sc->ifp;
	lem_rx_checksums(sc, m, rx);
	if (rx->vlan) {
		m->m_pkthdr.ether_vtag = rx->tag;
		m->m_flags |= M_VLANTAG;
	}
	sc->rx_bytes += m->m_pkthdr.len;
	sc->rx_frames++;
	*sc->rx_list_end = m;
	sc->rx_list_end = &m->m_nextpkt;
}

bool
lem_os_rx(struct lem_core *lc, uint32_t slot, const struct lem_rx *rx)
{
	struct lem_softc *sc = lem_softc(lc);
	struct lem_buf *b = &sc->rx_buf[slot];
	struct mbuf *m = NULL;

	if (sc->nm_rx) {
		lem_netmap_rx(sc, slot, rx);
		return (true);
	}
	bus_dmamap_sync(sc->rx_tag, b->map, BUS_DMASYNC_POSTREAD);
	if (rx->eop && sc->rx_frame == NULL && rx->len <= LEM_RX_COPY)
		m = m_gethdr(M_NOWAIT, MT_DATA);
	if (m != NULL) {
		m->m_data += ETHER_ALIGN;
		memcpy(mtod(m, void *), mtod(b->m, const void *), rx->len);
		bus_dmamap_sync(sc->rx_tag, b->map, BUS_DMASYNC_PREREAD);
	} else {
		m = b->m;
		b->m = NULL;
		bus_dmamap_unload(sc->rx_tag, b->map);
	}
	m->m_len = rx->len;
	if (sc->rx_frame == NULL) {
		sc->rx_frame = m;
		m->m_pkthdr.len = 0;
	} else {
		m_demote_pkthdr(m);
		sc->rx_frame_last->m_next = m;
	}
	sc->rx_frame_last = m;
	sc->rx_frame->m_pkthdr.len += rx->len;
	if (rx->eop)
		lem_rx_frame(sc, rx);
	return (b->m == NULL);
}

void
lem_os_rx_drop(struct lem_core *lc)
{
	struct lem_softc *sc = lem_softc(lc);

	if (sc->nm_rx)
		lem_netmap_rx_drop(sc);
	m_freem(sc->rx_frame);
	sc->rx_frame = sc->rx_frame_last = NULL;
}

void
lem_rx_purge(struct lem_softc *sc)
{
	struct lem_buf *b;
	int i;

	m_freem(sc->rx_frame);
	sc->rx_frame = sc->rx_frame_last = NULL;
	for (i = 0; i < LEM_NDESC; i++) {
		b = &sc->rx_buf[i];
		if (b->m == NULL)
			continue;
		bus_dmamap_unload(sc->rx_tag, b->map);
		m_freem(b->m);
		b->m = NULL;
	}
}

u_int
lem_rxeof(struct lem_softc *sc, u_int budget)
{
	struct epoch_tracker et;
	struct mbuf *list;
	uint64_t bytes, frames;
	u_int n;

	mtx_lock(&sc->rx_mtx);
	n = lem_running(sc) ? lem_rx(&sc->core, budget) : 0;
	list = sc->rx_list;
	bytes = sc->rx_bytes;
	frames = sc->rx_frames;
	sc->rx_list = NULL;
	sc->rx_list_end = &sc->rx_list;
	sc->rx_bytes = sc->rx_frames = 0;
	mtx_unlock(&sc->rx_mtx);
	if (list != NULL) {
		if_inc_counter(sc->ifp, IFCOUNTER_IPACKETS, frames);
		if_inc_counter(sc->ifp, IFCOUNTER_IBYTES, bytes);
		NET_EPOCH_ENTER(et);
		if_input(sc->ifp, list);
		NET_EPOCH_EXIT(et);
	}
	return (n);
}

/* Transmit. */

void
lem_os_tx_done(struct lem_core *lc, uint32_t slot)
{
	struct lem_softc *sc = lem_softc(lc);
	struct lem_buf *b = &sc->tx_buf[slot];

	sc->tx_done++;
	if (b->m == NULL)
		return;
	bus_dmamap_sync(sc->tx_tag, b->map, BUS_DMASYNC_POSTWRITE);
	bus_dmamap_unload(sc->tx_tag, b->map);
	m_freem(b->m);
	b->m = NULL;
}

/* Make `len' bytes contiguous; on failure the packet is gone. */
static bool
lem_tx_pullup(struct mbuf **mp, int len)
{
	if ((*mp)->m_len < len)
		*mp = m_pullup(*mp, len);
	return (*mp != NULL);
}

/*
 * TCP's header: the adapter wants the sum of the pseudo header without the
 * length, and the lengths and sums of IP clear (8254x SDM section 3.5.6).
 */
static bool
lem_tx_tso(struct mbuf **mp, struct lem_packet *lp)
{
	int l4 = lp->lp_l2len + lp->lp_l3len;
	struct tcphdr *th;
	uint16_t sum = 0;

	if (!lem_tx_pullup(mp, l4 + sizeof(*th)))
		return (false);
	th = (struct tcphdr *)(mtod(*mp, char *) + l4);
	lp->lp_l4len = th->th_off << 2;
	lp->lp_mss = (*mp)->m_pkthdr.tso_segsz;
	if (!lem_tx_pullup(mp, l4 + lp->lp_l4len))
		return (false);
	th = (struct tcphdr *)(mtod(*mp, char *) + l4);
#ifdef INET
	if (lp->lp_flags & LEM_TX_TSO4) {
		struct ip *ip = (struct ip *)(mtod(*mp, char *) + lp->lp_l2len);

		ip->ip_len = ip->ip_sum = 0;
		sum = in_pseudo(ip->ip_src.s_addr, ip->ip_dst.s_addr,
		    htons(IPPROTO_TCP));
	}
#endif
#ifdef INET6
	if (lp->lp_flags & LEM_TX_TSO6) {
		struct ip6_hdr *ip6 =
		    (struct ip6_hdr *)(mtod(*mp, char *) + lp->lp_l2len);

		ip6->ip6_plen = 0;
		sum = in6_cksum_pseudo(ip6, 0, IPPROTO_TCP, 0);
	}
#endif
	th->th_sum = sum;
	return (true);
}

/* Lengths of the headers; false: the packet is gone. */
static bool
lem_tx_headers(struct mbuf **mp, struct lem_packet *lp)
{
	struct ether_vlan_header *evh;
	struct mbuf *m;
	uint16_t type;

	if (!lem_tx_pullup(mp, ETHER_HDR_LEN + sizeof(struct ip)))
		return (false);
	evh = mtod(*mp, struct ether_vlan_header *);
	type = ntohs(evh->evl_encap_proto);
	lp->lp_l2len = ETHER_HDR_LEN;
	if (type == ETHERTYPE_VLAN) {
		type = ntohs(evh->evl_proto);
		lp->lp_l2len += ETHER_VLAN_ENCAP_LEN;
	}
	if (type == ETHERTYPE_IP) {
		if (!lem_tx_pullup(mp, lp->lp_l2len + sizeof(struct ip)))
			return (false);
		lp->lp_l3len = ((struct ip *)(mtod(*mp, char *) +
		    lp->lp_l2len))->ip_hl << 2;
	} else if (type == ETHERTYPE_IPV6) {
		/* The stack offloads nothing behind extension headers. */
		if (!lem_tx_pullup(mp, lp->lp_l2len + sizeof(struct ip6_hdr)))
			return (false);
		lp->lp_l3len = sizeof(struct ip6_hdr);
	} else {
		m_freem(*mp);
		*mp = NULL;
		return (false);
	}
	if (((*mp)->m_pkthdr.csum_flags & CSUM_TSO) == 0)
		return (true);
	lp->lp_flags |= type == ETHERTYPE_IP ?
	    LEM_TX_TSO4 | LEM_TX_IPSUM | LEM_TX_TCPSUM :
	    LEM_TX_TSO6 | LEM_TX_TCPSUM;
	if (!M_WRITABLE(*mp)) {
		m = m_dup(*mp, M_NOWAIT);
		m_freem(*mp);
		*mp = m;
		if (m == NULL)
			return (false);
	}
	return (lem_tx_tso(mp, lp));
}

static int
lem_tx_load(struct lem_softc *sc, struct mbuf **mp, int *nsegs)
{
	struct mbuf *m;
	int error;

	error = bus_dmamap_load_mbuf_sg(sc->tx_tag, sc->tx_spare, *mp,
	    sc->tx_dseg, nsegs, BUS_DMA_NOWAIT);
	if (error != EFBIG)
		return (error);
	m = m_collapse(*mp, M_NOWAIT, LEM_TX_MAXSEGS / 2);
	if (m == NULL)
		m = m_defrag(*mp, M_NOWAIT);
	if (m == NULL)
		return (ENOMEM);
	*mp = m;
	return (bus_dmamap_load_mbuf_sg(sc->tx_tag, sc->tx_spare, m,
	    sc->tx_dseg, nsegs, BUS_DMA_NOWAIT));
}

/*
 * Hand a packet to lem_core.  ENOBUFS: try again with what is in *mp; any other
 * error: drop *mp, if it is still there.
 */
static int
lem_tx_packet(struct lem_softc *sc, struct mbuf **mp)
{
	struct lem_packet lp = { .lp_segs = sc->tx_seg };
	struct lem_buf *b;
	bus_dmamap_t map;
	uint32_t slot;
	int error, flags, i, nsegs;

	flags = (*mp)->m_pkthdr.csum_flags & LEM_CSUM_ALL;
	if (flags & CSUM_IP)
		lp.lp_flags |= LEM_TX_IPSUM;
	if (flags & LEM_CSUM_TCP)
		lp.lp_flags |= LEM_TX_TCPSUM;
	if (flags & LEM_CSUM_UDP)
		lp.lp_flags |= LEM_TX_UDPSUM;
	if ((*mp)->m_flags & M_VLANTAG) {
		lp.lp_flags |= LEM_TX_VLAN;
		lp.lp_vlan = (*mp)->m_pkthdr.ether_vtag;
	}
	if (flags != 0 && !lem_tx_headers(mp, &lp))
		return (EINVAL);
	error = lem_tx_load(sc, mp, &nsegs);
	if (error != 0)
		return (error == ENOBUFS ? ENOMEM : error);
	for (i = 0; i < nsegs; i++) {
		sc->tx_seg[i].ls_addr = sc->tx_dseg[i].ds_addr;
		sc->tx_seg[i].ls_len = sc->tx_dseg[i].ds_len;
	}
	lp.lp_nsegs = nsegs;
	lp.lp_len = (*mp)->m_pkthdr.len;
	bus_dmamap_sync(sc->tx_tag, sc->tx_spare, BUS_DMASYNC_PREWRITE);
	error = lem_tx(&sc->core, &lp, &slot);
	if (error != 0) {
		bus_dmamap_unload(sc->tx_tag, sc->tx_spare);
		return (error);
	}
	b = &sc->tx_buf[slot];
	map = b->map;
	b->map = sc->tx_spare;
	sc->tx_spare = map;
	b->m = *mp;
	return (0);
}

/* Send what waits, until the adapter has no room; tx_mtx held. */
static void
lem_tx_start(struct lem_softc *sc)
{
	struct mbuf *m;
	int error, len;
	bool mcast;

	mtx_assert(&sc->tx_mtx, MA_OWNED);
	while (lem_running(sc) &&
	    (m = buf_ring_peek_clear_sc(sc->tx_br)) != NULL) {
		len = m->m_pkthdr.len;
		mcast = (m->m_flags & M_MCAST) != 0;
		error = lem_tx_packet(sc, &m);
		if (error == ENOBUFS) {
			buf_ring_putback_sc(sc->tx_br, m);
			break;
		}
		buf_ring_advance_sc(sc->tx_br);
		if (error != 0) {
			m_freem(m);
			if_inc_counter(sc->ifp, IFCOUNTER_OERRORS, 1);
			continue;
		}
		if_inc_counter(sc->ifp, IFCOUNTER_OPACKETS, 1);
		if_inc_counter(sc->ifp, IFCOUNTER_OBYTES, len);
		if (mcast)
			if_inc_counter(sc->ifp, IFCOUNTER_OMCASTS, 1);
		ETHER_BPF_MTAP(sc->ifp, m);
	}
	if (lem_running(sc))
		lem_tx_flush(&sc->core);
}

void
lem_txeof_locked(struct lem_softc *sc)
{
	if (!lem_running(sc))
		return;
	lem_tx_clean(&sc->core);
	if (!sc->nm_tx)
		lem_tx_start(sc);
}

void
lem_txeof(struct lem_softc *sc)
{
	mtx_lock(&sc->tx_mtx);
	lem_txeof_locked(sc);
	mtx_unlock(&sc->tx_mtx);
}

int
lem_transmit(if_t ifp, struct mbuf *m)
{
	struct lem_softc *sc = if_getsoftc(ifp);
	int error;

	if ((if_getdrvflags(ifp) & IFF_DRV_RUNNING) == 0) {
		m_freem(m);
		return (ENETDOWN);
	}
	error = buf_ring_enqueue(sc->tx_br, m);
	if (error != 0) {
		if_inc_counter(ifp, IFCOUNTER_OQDROPS, 1);
		m_freem(m);
	}
	if (mtx_trylock(&sc->tx_mtx)) {
		lem_tx_start(sc);
		mtx_unlock(&sc->tx_mtx);
	} else
		taskqueue_enqueue(sc->tq, &sc->tx_task);
	return (error);
}

void
lem_qflush(if_t ifp)
{
	struct lem_softc *sc = if_getsoftc(ifp);
	struct mbuf *m;

	mtx_lock(&sc->tx_mtx);
	while ((m = buf_ring_dequeue_sc(sc->tx_br)) != NULL)
		m_freem(m);
	mtx_unlock(&sc->tx_mtx);
	if_qflush(ifp);
}
