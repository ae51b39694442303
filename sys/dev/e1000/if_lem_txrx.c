/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Packets: mbufs to and from the descriptors of lem_core.
 *
 * Receive.  A frame that fits into an mbuf is copied, and the slot keeps its
 * cluster; any other frame takes its clusters with it.  The frames of a batch
 * are passed to the stack in one call, with no lock held.
 *
 * Transmit.  Packets are enqueued in a buf_ring.  The thread that gets tx.mtx
 * moves all of them to the ring and flushes it once.  A packet uses the DMA map
 * of its first slot, at lem_core's tail.
 */

#include "opt_inet.h"
#include "opt_inet6.h"

#include <dev/e1000/if_lem.h>

#include <net/bpf.h>
#include <net/ifq.h>
#include <net/vnet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_var.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet6/ip6_var.h>

#include <machine/in_cksum.h>

#define	LEM_CSUM_TCP	(CSUM_IP_TCP | CSUM_IP6_TCP)
#define	LEM_CSUM_UDP	(CSUM_IP_UDP | CSUM_IP6_UDP)
#define	LEM_CSUM_ALL	(CSUM_IP | LEM_CSUM_TCP | LEM_CSUM_UDP | CSUM_TSO)

/* The longest frame that is copied, bytes. */
#define	LEM_RX_COPY	(MHLEN - ETHER_ALIGN)
/* The longest headers, bytes: IPv4 and TCP with all options. */
#define	LEM_HEADERS	(ETHER_HDR_LEN + ETHER_VLAN_ENCAP_LEN + 60 + 60)

int
lem_side_alloc(struct lem_softc *sc, struct lem_side *side, bus_size_t size,
    int nsegs)
{
	int error, i;

	error = bus_dma_tag_create(bus_get_dma_tag(sc->dev), 1, 0,
	    BUS_SPACE_MAXADDR, BUS_SPACE_MAXADDR, NULL, NULL, size, nsegs,
	    PAGE_SIZE, 0, NULL, NULL, &side->tag);
	for (i = 0; error == 0 && i < LEM_NDESC; i++)
		error = bus_dmamap_create(side->tag, 0, &side->buf[i].map);
	return (error);
}

void
lem_side_free(struct lem_side *side)
{
	int i;

	for (i = 0; i < LEM_NDESC; i++)
		if (side->buf[i].map != NULL)
			bus_dmamap_destroy(side->tag, side->buf[i].map);
	if (side->tag != NULL)
		bus_dma_tag_destroy(side->tag);
}

static void
lem_buf_drop(struct lem_side *side, uint32_t slot, bus_dmasync_op_t op)
{
	struct lem_buf *b = &side->buf[slot];

	if (b->m == NULL)
		return;
	bus_dmamap_sync(side->tag, b->map, op);
	bus_dmamap_unload(side->tag, b->map);
	m_freem(b->m);
	b->m = NULL;
}

#ifdef INVARIANTS
void
lem_os_assert_tx(const struct lem_core *lc)
{
	mtx_assert(&LEM_SOFTC(lc)->tx.mtx, MA_OWNED);
}

void
lem_os_assert_rx(const struct lem_core *lc)
{
	mtx_assert(&LEM_SOFTC(lc)->rx.mtx, MA_OWNED);
}
#endif

/* Receive. */

uint64_t
lem_os_rx_buf(struct lem_core *lc, uint32_t slot)
{
	struct lem_softc *sc = LEM_SOFTC(lc);
	struct lem_buf *b = &sc->rx.buf[slot];
	bus_dma_segment_t seg[1];
	struct mbuf *m;
	int nsegs;

	mtx_assert(&sc->rx.mtx, MA_OWNED);
	if (sc->rx.netmap)
		return (lem_netmap_rx_buf(sc, slot));
	KASSERT(b->m == NULL, ("slot %u has a buffer", slot));
	m = m_getjcl(M_NOWAIT, MT_DATA, M_PKTHDR, lc->lc_rx_bufsize);
	if (m == NULL)
		return (0);
	m->m_len = m->m_pkthdr.len = lc->lc_rx_bufsize;
	if (bus_dmamap_load_mbuf_sg(sc->rx.tag, b->map, m, seg, &nsegs,
	    BUS_DMA_NOWAIT) != 0) {
		m_freem(m);
		return (0);
	}
	bus_dmamap_sync(sc->rx.tag, b->map, BUS_DMASYNC_PREREAD);
	b->m = m;
	return (seg[0].ds_addr);
}

/* A bridge does, too, but if_bridge(4) takes LRO from its members. */
bool
lem_forwards(struct lem_softc *sc)
{
	bool forwards = false;

	CURVNET_SET(if_getvnet(sc->ifp));
#ifdef INET
	forwards |= V_ipforwarding != 0;
#endif
#ifdef INET6
	forwards |= V_ip6_forwarding != 0;
#endif
	CURVNET_RESTORE();
	return (forwards);
}

/* In rx_queue: not 0 if the checksum of the frame is partial. */
#define	LEM_PARTIAL(m)	((m)->m_pkthdr.PH_loc.eight[0])

/*
 * A frame whose sender is on the same host, and has left its checksum to us:
 * the stack believes it, and takes the frame as one segment, however long.
 * Returns false if the frame must be dropped.
 */
static bool
lem_rx_offload(struct lem_softc *sc, struct mbuf *m)
{
	const struct lem_offload *lo = &sc->core.lc_rx_offload;

	if (lem_forwards(sc)) {
		/* Somebody else would get it so. */
		sc->rx_forwards = true;
		return (false);
	}
	m->m_pkthdr.csum_flags = CSUM_DATA_VALID | CSUM_PSEUDO_HDR;
	m->m_pkthdr.csum_data = 0xffff;
	LEM_PARTIAL(m) = 1;
	if (lo->lo_mss != 0)
		m->m_pkthdr.lro_nsegs = howmany(m->m_pkthdr.len -
		    lo->lo_csum_start, lo->lo_mss);
	return (true);
}

/* The frame in rx_frame is complete: queue it for the stack. */
static void
lem_rx_frame(struct lem_softc *sc, uint32_t flags, uint16_t vlan)
{
	struct mbuf *m = sc->rx_frame;

	mtx_assert(&sc->rx.mtx, MA_OWNED);
	sc->rx_frame = NULL;
	if ((flags & LEM_RX_OFFLOAD) != 0 && !lem_rx_offload(sc, m)) {
		m_freem(m);
		if_inc_counter(sc->ifp, IFCOUNTER_IQDROPS, 1);
		return;
	}
	m->m_pkthdr.rcvif = sc->ifp;
	if ((flags & LEM_RX_OFFLOAD) == 0 && (if_getcapenable(sc->ifp) &
	    (IFCAP_RXCSUM | IFCAP_RXCSUM_IPV6)) != 0) {
		m->m_pkthdr.csum_flags = (flags & LEM_RX_IPSUM ?
		    CSUM_IP_CHECKED | CSUM_IP_VALID : 0) |
		    (flags & LEM_RX_L4SUM ?
		    CSUM_DATA_VALID | CSUM_PSEUDO_HDR : 0);
		m->m_pkthdr.csum_data = 0xffff;
	}
	if (flags & LEM_RX_VLAN)
		m->m_flags |= M_VLANTAG;
	m->m_pkthdr.ether_vtag = vlan;
	if_inc_counter(sc->ifp, IFCOUNTER_IPACKETS, 1);
	(void)mbufq_enqueue(&sc->rx_queue, m);
}

bool
lem_os_rx(struct lem_core *lc, uint32_t slot, uint32_t len, uint32_t flags,
    uint16_t vlan)
{
	const uint32_t whole = LEM_RX_SOP | LEM_RX_EOP;
	struct lem_softc *sc = LEM_SOFTC(lc);
	struct lem_buf *b = &sc->rx.buf[slot];
	struct mbuf *m = NULL;

	mtx_assert(&sc->rx.mtx, MA_OWNED);
	if (sc->rx.netmap) {
		lem_netmap_rx(sc, slot, len, flags);
		return (true);
	}
	if (flags & LEM_RX_BAD) {
		m_freem(sc->rx_frame);
		sc->rx_frame = NULL;
		if (flags & LEM_RX_EOP)
			if_inc_counter(sc->ifp, IFCOUNTER_IERRORS, 1);
		return (false);
	}
	bus_dmamap_sync(sc->rx.tag, b->map, BUS_DMASYNC_POSTREAD);
	if ((flags & whole) == whole && len <= LEM_RX_COPY)
		m = m_gethdr(M_NOWAIT, MT_DATA);
	if (m != NULL) {
		m->m_data += ETHER_ALIGN;
		memcpy(mtod(m, void *), mtod(b->m, const void *), len);
		bus_dmamap_sync(sc->rx.tag, b->map, BUS_DMASYNC_PREREAD);
	} else {
		m = b->m;
		b->m = NULL;
		bus_dmamap_unload(sc->rx.tag, b->map);
	}
	m->m_len = m->m_pkthdr.len = len;
	if (flags & LEM_RX_SOP)
		sc->rx_frame = m;
	else
		m_catpkt(sc->rx_frame, m);
	if (flags & LEM_RX_EOP)
		lem_rx_frame(sc, flags, vlan);
	return (b->m == NULL);
}

void
lem_rx_purge(struct lem_softc *sc)
{
	int i;

	mtx_assert(&sc->rx.mtx, MA_OWNED);
	m_freem(sc->rx_frame);
	sc->rx_frame = NULL;
	for (i = 0; i < LEM_NDESC; i++)
		lem_buf_drop(&sc->rx, i, BUS_DMASYNC_POSTREAD);
}

/*
 * Pass frames to tcp_lro(4), which joins segments, or to the stack at once if it
 * cannot join them: these must not overtake the others.  A frame with a partial
 * checksum comes uncut from this host; tcp_lro(4) computes with the checksum of
 * TCP, and must not get it.  tcp_lro(4) reads the clock for each list of frames,
 * which takes an exit if the guest's clock is a device: a lone frame has none to
 * be joined with.
 */
static void
lem_lro(struct lem_softc *sc, struct mbuf *list)
{
	const bool alone = list->m_nextpkt == NULL;
	struct mbuf *m;

	while ((m = list) != NULL) {
		list = m->m_nextpkt;
		m->m_nextpkt = NULL;
		if (!alone && LEM_PARTIAL(m) == 0 &&
		    (m->m_pkthdr.csum_flags & CSUM_DATA_VALID) != 0) {
			tcp_lro_queue_mbuf(&sc->rx_lro, m);
			continue;
		}
		LEM_PARTIAL(m) = 0;
		tcp_lro_flush_all(&sc->rx_lro);
		if_input(sc->ifp, m);
	}
	tcp_lro_flush_all(&sc->rx_lro);
}

u_int
lem_rxeof(struct lem_softc *sc, u_int budget, bool lro)
{
	struct lem_core *lc = &sc->core;
	struct epoch_tracker et;
	struct mbuf *list;
	u_int n;

	mtx_lock(&sc->rx.mtx);
	n = sc->rx.netmap ? 0 : lem_rx(lc, budget);
	list = mbufq_flush(&sc->rx_queue);
	lro = lro && lem_takes_offloads(sc);
	mtx_unlock(&sc->rx.mtx);
	if (list != NULL) {
		NET_EPOCH_ENTER(et);
		if (lro)
			lem_lro(sc, list);
		else
			if_input(sc->ifp, list);
		NET_EPOCH_EXIT(et);
	}
	return (n);
}

/* Transmit. */

void
lem_os_tx_done(struct lem_core *lc, uint32_t slot)
{
	struct lem_softc *sc = LEM_SOFTC(lc);

	mtx_assert(&sc->tx.mtx, MA_OWNED);
	lem_buf_drop(&sc->tx, slot, BUS_DMASYNC_POSTWRITE);
}

/*
 * TSO.  The adapter needs the sum of the pseudo header without the length in
 * TCP's checksum, and IP's length and checksum must be 0 (8254x SDM section
 * 3.5.6).  `hdr' is a copy of the headers.  Returns false if the packet cannot
 * be sent.
 */
static bool
lem_tx_tso(struct mbuf **mp, uint8_t *hdr, struct lem_packet *lp)
{
	uint8_t *ip = hdr + lp->lpk_l2len;
	struct tcphdr *th = (struct tcphdr *)(ip + lp->lpk_l3len);
	int from = lp->lpk_l2len, headers, to = lp->lpk_l2len;

	lp->lpk_mss = (*mp)->m_pkthdr.tso_segsz;
	lp->lpk_l4len = th->th_off << 2;
	headers = lp->lpk_l2len + lp->lpk_l3len + lp->lpk_l4len;
	if (lp->lpk_flags & LEM_TX_TSO4) {
		((struct ip *)ip)->ip_len = ((struct ip *)ip)->ip_sum = 0;
		from += offsetof(struct ip, ip_src);
		to += sizeof(struct ip);
	} else {
		((struct ip6_hdr *)ip)->ip6_plen = 0;
		from += offsetof(struct ip6_hdr, ip6_src);
		to += sizeof(struct ip6_hdr);
	}
	if (imax(headers, to) > (*mp)->m_pkthdr.len)
		return (false);
	th->th_sum = in_addword(~in_cksum_skip(*mp, to, from),
	    htons(IPPROTO_TCP));
	if ((*mp)->m_len < headers || !M_WRITABLE(*mp))
		*mp = m_copyup(*mp, headers, 0);
	if (*mp == NULL)
		return (false);
	m_copyback(*mp, 0, headers, hdr);
	return (true);
}

/*
 * Fill in the lengths of the headers, for offloads.  Returns false if the
 * caller must drop the packet.
 */
static bool
lem_tx_headers(struct mbuf **mp, struct lem_packet *lp)
{
	uint8_t buf[ETHER_ALIGN + LEM_HEADERS] __aligned(4) = { 0 };
	uint8_t *hdr = buf + ETHER_ALIGN;
	struct ether_vlan_header *evh = (struct ether_vlan_header *)hdr;
	uint16_t type;
	bool tagged;

	m_copydata(*mp, 0, imin((*mp)->m_pkthdr.len, LEM_HEADERS), hdr);
	tagged = evh->evl_encap_proto == htons(ETHERTYPE_VLAN);
	type = ntohs(tagged ? evh->evl_proto : evh->evl_encap_proto);
	lp->lpk_l2len = ETHER_HDR_LEN + (tagged ? ETHER_VLAN_ENCAP_LEN : 0);
	if (type == ETHERTYPE_IP)
		lp->lpk_l3len =
		    ((struct ip *)(hdr + lp->lpk_l2len))->ip_hl << 2;
	else if (type == ETHERTYPE_IPV6)
		/* The stack uses no offload with extension headers. */
		lp->lpk_l3len = sizeof(struct ip6_hdr);
	else
		return (false);
	/*
	 * When TSO is turned off, ip6_output() fragments what TCP has built for
	 * it.  The fragments keep CSUM_TSO, and their checksum is complete.
	 */
	if (type == ETHERTYPE_IPV6 && ((struct ip6_hdr *)(hdr +
	    lp->lpk_l2len))->ip6_nxt == IPPROTO_FRAGMENT) {
		lp->lpk_flags &= LEM_TX_VLAN;
		return (true);
	}
	if (((*mp)->m_pkthdr.csum_flags & CSUM_TSO) == 0)
		return (true);
	lp->lpk_flags |= LEM_TX_TCPSUM | (type == ETHERTYPE_IP ?
	    LEM_TX_TSO4 | LEM_TX_IPSUM : LEM_TX_TSO6);
	return (lem_tx_tso(mp, hdr, lp));
}

/*
 * Pass a packet to lem_core, defragmented if it has too many segments.  The
 * packet may be replaced.  On ENOBUFS the caller must retry with *mp later; on
 * any other error it must free *mp, which may be NULL.
 */
static int
lem_tx_packet(struct lem_softc *sc, struct mbuf **mp)
{
	const int flags = (*mp)->m_pkthdr.csum_flags & LEM_CSUM_ALL;
	struct lem_packet lp = {
		.lpk_segs = sc->tx_seg,
		.lpk_flags = (flags & CSUM_IP ? LEM_TX_IPSUM : 0) |
		    (flags & LEM_CSUM_TCP ? LEM_TX_TCPSUM : 0) |
		    (flags & LEM_CSUM_UDP ? LEM_TX_UDPSUM : 0) |
		    ((*mp)->m_flags & M_VLANTAG ? LEM_TX_VLAN : 0),
		.lpk_vlan = (*mp)->m_pkthdr.ether_vtag,
	};
	struct lem_buf *b = &sc->tx.buf[sc->core.lc_tx_tail];
	bus_dma_segment_t seg[LEM_TX_MAXSEGS];
	struct mbuf *m;
	int error, i, nsegs;

	mtx_assert(&sc->tx.mtx, MA_OWNED);
	if (flags != 0 && !lem_tx_headers(mp, &lp))
		return (EINVAL);
	error = bus_dmamap_load_mbuf_sg(sc->tx.tag, b->map, *mp, seg, &nsegs,
	    BUS_DMA_NOWAIT);
	if (error == EFBIG && (m = m_defrag(*mp, M_NOWAIT)) != NULL) {
		*mp = m;
		error = bus_dmamap_load_mbuf_sg(sc->tx.tag, b->map, m, seg,
		    &nsegs, BUS_DMA_NOWAIT);
	}
	if (error != 0)
		return (error == ENOBUFS ? ENOMEM : error);
	bus_dmamap_sync(sc->tx.tag, b->map, BUS_DMASYNC_PREWRITE);
	for (i = 0; i < nsegs; i++)
		sc->tx_seg[i] = (struct lem_seg){ .ls_addr = seg[i].ds_addr,
		    .ls_len = seg[i].ds_len };
	lp.lpk_nsegs = nsegs;
	error = lem_tx(&sc->core, &lp);
	if (error != 0)
		bus_dmamap_unload(sc->tx.tag, b->map);
	else
		b->m = *mp;
	return (error);
}

/*
 * Send the packets in the buf_ring, until there are no free descriptors.  They
 * wait there while netmap has the ring.
 */
static void
lem_tx_start(struct lem_softc *sc)
{
	if_t ifp = sc->ifp;
	struct mbuf *m;
	int error;

	mtx_assert(&sc->tx.mtx, MA_OWNED);
	if (sc->tx.netmap)
		return;
	while ((m = drbr_peek(ifp, sc->tx_br)) != NULL) {
		error = lem_tx_packet(sc, &m);
		if (error == ENOBUFS) {
			drbr_putback(ifp, sc->tx_br, m);
			break;
		}
		drbr_advance(ifp, sc->tx_br);
		if (error != 0) {
			m_freem(m);
			if_inc_counter(ifp, IFCOUNTER_OERRORS, 1);
			continue;
		}
		if_inc_counter(ifp, IFCOUNTER_OPACKETS, 1);
		if_inc_counter(ifp, IFCOUNTER_OBYTES, m->m_pkthdr.len);
		if_inc_counter(ifp, IFCOUNTER_OMCASTS,
		    (m->m_flags & M_MCAST) != 0);
		ETHER_BPF_MTAP(ifp, m);
	}
	lem_tx_flush(&sc->core);
}

void
lem_txeof(struct lem_softc *sc)
{
	mtx_lock(&sc->tx.mtx);
	lem_tx_clean(&sc->core);
	lem_tx_start(sc);
	mtx_unlock(&sc->tx.mtx);
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
	error = drbr_enqueue(ifp, sc->tx_br, m);
	if (error != 0)
		if_inc_counter(ifp, IFCOUNTER_OQDROPS, 1);
	if (mtx_trylock(&sc->tx.mtx)) {
		lem_tx_start(sc);
		mtx_unlock(&sc->tx.mtx);
	} else
		taskqueue_enqueue(sc->tq, &sc->intr_task);
	return (error);
}

void
lem_qflush(if_t ifp)
{
	struct lem_softc *sc = if_getsoftc(ifp);

	mtx_lock(&sc->tx.mtx);
	drbr_flush(ifp, sc->tx_br);
	mtx_unlock(&sc->tx.mtx);
	if_qflush(ifp);
}
