/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Functions to send and receive numbered frames.
 *
 * Station n has the address 02:00:00:00:nn:nn.  A frame has the number of its
 * station and its own number, which determine all its other bytes, so that the
 * receiver can check them.
 */

#ifndef _VALE_TEST_H_
#define	_VALE_TEST_H_

#include <dev/netmap/vale_fdb.h>

#include <stddef.h>
#include <stdint.h>

#include <libvale.h>

#define	EVERYBODY	0xffff		/* as a station: broadcast */
#define	T_FRAME_MIN	22		/* a header, the sender, the number */
#define	T_FRAME_MAX	(VALE_FRAME_MAX + VALE_FRAME_MAX / 2)

struct t_frame {
	uint32_t	tf_len;
	uint32_t	tf_src;
	uint32_t	tf_seq;
	uint32_t	tf_slots;	/* received in */
};

/* Write the address of a station; write the bytes of a frame. */
void	t_addr(uint8_t *addr, unsigned int station);
void	t_make(uint8_t *buf, uint32_t len, unsigned int dst, unsigned int src,
	    uint32_t seq);

/* Open or fail. */
struct vale_desc *t_open(const char *name, uint32_t tx_slots,
	    uint32_t rx_slots);

/*
 * Put bytes into the transmit ring, in fragments of up to `fraglen' bytes,
 * copied or, if `indirect', by reference; without a sync.
 */
void	t_put(struct vale_desc *d, const uint8_t *buf, uint32_t len,
	    uint32_t fraglen, bool indirect);

/* Put a numbered frame of `len' bytes there, copied, without a sync. */
void	t_queue(struct vale_desc *d, uint32_t len, unsigned int dst,
	    unsigned int src, uint32_t seq);
/* The same with a sync. */
void	t_send(struct vale_desc *d, uint32_t len, unsigned int dst,
	    unsigned int src, uint32_t seq);

/*
 * Take the next frame from the ring and check its bytes, without a sync.  False
 * if there is none.
 */
bool	t_take(struct vale_desc *d, struct t_frame *f);
/* Sync, and expect this frame and no other. */
void	t_expect(struct vale_desc *d, uint32_t len, unsigned int src,
	    uint32_t seq);
/* Sync, and expect no frame. */
void	t_expect_none(struct vale_desc *d);
/* Sync, discard all frames, and return their number. */
unsigned int t_drain(struct vale_desc *d);

/*
 * Ports of one switch, valet0:p0 to valet0:p4: open the first `n', close those
 * that are open, and set a setting of one.
 */
#define	T_PORTS		5
extern struct vale_desc *t_port[T_PORTS];
const char *t_port_name(unsigned int i);
void	t_ports_open(unsigned int n);
void	t_ports_close(void);
void	t_port_set(unsigned int i, const char *setting, const char *value);

/*
 * Frames with a tag behind their addresses, which is not in `len', or T_NONE.
 * Write one, and return its bytes; put one of 60 bytes into the transmit ring
 * of a port; the same with a sync; sync, and expect this one and no other.
 */
#define	T_NONE		UINT32_MAX	/* as a tag: none */
uint32_t t_make_tagged(uint8_t *buf, uint32_t len, uint32_t tci,
	    unsigned int dst, unsigned int src, uint32_t seq);
void	t_queue_tagged(unsigned int from, uint32_t tci, unsigned int dst,
	    unsigned int src, uint32_t seq);
void	t_send_tagged(unsigned int from, uint32_t tci, unsigned int dst,
	    unsigned int src, uint32_t seq);
void	t_expect_tagged(unsigned int at, uint32_t tci, unsigned int dst,
	    unsigned int src, uint32_t seq);

/*
 * Take the next frame's bytes from the ring, without a sync (0: there is none);
 * expect that it is this one.
 */
uint32_t t_take_bytes(struct vale_desc *d, uint8_t *buf);
void	t_expect_bytes(struct vale_desc *d, const uint8_t *frame, uint32_t len);

/* Whether poll(2) finds d->fd readable now. */
bool	t_readable(struct vale_desc *d);

uint64_t t_count(const struct vale_desc *d, enum vale_counter c);

#define	T_COUNT(d, c, n)	ATF_CHECK_EQ_MSG((uint64_t)(n),		\
	    t_count(d, VALE_C_##c), "%s " #c " is %ju, not %ju",	\
	    (d)->common->name,						\
	    (uintmax_t)t_count(d, VALE_C_##c), (uintmax_t)(n))

#endif /* !_VALE_TEST_H_ */
