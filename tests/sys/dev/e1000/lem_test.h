/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One guest (lem_guest.h) with one adapter on the host of the model's tests
 * (e82545_host.h): no threads, and a clock that the test advances.
 */

#ifndef _LEM_TEST_H_
#define	_LEM_TEST_H_

#include "e82545_host.h"
#include "lem_guest.h"
#include "test.h"

#define	TEST_RING	256		/* descriptors of each ring */

struct lem_test {
	struct host	*h;
	struct guest	 g;
	uint64_t	 exits;		/* at the last test_exits() */
	unsigned int	 raised;	/* the same */
	unsigned int	 served;	/* messages of MSI-X */
	uint64_t	 injected;	/* frames */
};

extern const uint8_t test_peer[6];

/* Accesses for an interrupt: ICR, IMC, IMS; with the CSB ICR alone. */
#define	INTR_EXITS	3
#define	INTR_EXITS_CSB	1

/*
 * Create an adapter, and start a driver in `mode', with buffers of `bufsize'.
 */
struct lem_test *test_create(uint32_t mode, uint32_t bufsize, uint32_t mtu);
/* The same, without starting the driver or setting a mode. */
struct lem_test *test_create_down(uint32_t bufsize);
void	test_destroy(struct lem_test *t);

/* The same on an 82574L with MSI-X, with buffers of 2048 bytes. */
struct lem_test *test_create_msix(uint32_t mode);

/* A test case with a guest, `t', which `create' creates; it is destroyed. */
#define	LEM_TEST(name, create, descr)					\
	static void name##_test(struct lem_test *t);			\
	TEST(name, descr)						\
	{								\
		struct lem_test *t = create;				\
									\
		name##_test(t);						\
		test_destroy(t);					\
	}								\
	static void							\
	name##_test(struct lem_test *t)

/* Queue `n' frames of `len' bytes, each followed by lem_tx_flush(). */
void	test_send(struct lem_test *t, unsigned int n, size_t len);
/* Have the adapter receive `n' numbered frames of `len' bytes. */
void	test_inject(struct lem_test *t, unsigned int n, size_t len);
/* Serve interrupts and run the model until there is nothing to do. */
void	test_settle(struct lem_test *t);

/* Register accesses and interrupts since the last call. */
uint64_t test_exits(struct lem_test *t);
unsigned int test_raised(struct lem_test *t);

/* Check that all packets were sent, in order. */
void	test_check_sent(struct lem_test *t, size_t len);

/* Check that all frames injected were received, in order. */
void	test_check_received(struct lem_test *t);

#endif /* !_LEM_TEST_H_ */
