/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Counters on demand.  A VM has those of its adapter, of its server, of its
 * interrupts and of its port; here they are one array, read without locks
 * while the others go on counting.  So is "copies", how many times frames were
 * copied on their way to the guest: each into its memory, and those that took
 * the way through the port's ring into that before.
 */

#include <sys/param.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "e82545.h"
#include "libvale.h"
#include "valed.h"
#include "vm.h"

enum {
	AT_MODEL	= 0,
	AT_VM		= AT_MODEL + E82545_NCOUNTERS,
	AT_IRQ_SENT	= AT_VM + VM_NCOUNTERS,
	AT_IRQ_UNMASKED,
	AT_COPIES,
	AT_PORT,
	NCOUNTERS	= AT_PORT + VALE_NCOUNTERS
};

/* Frames lost, one reason each. */
static const int drops[] = {
	AT_MODEL + E82545_C_TX_BAD_DESC, AT_MODEL + E82545_C_TX_BAD_ADDR,
	AT_MODEL + E82545_C_TX_BAD_LEN, AT_MODEL + E82545_C_TX_BAD_CTX,
	AT_MODEL + E82545_C_TX_NOROOM, AT_MODEL + E82545_C_TX_LINKDOWN,
	AT_MODEL + E82545_C_RX_OVERSIZE, AT_MODEL + E82545_C_RX_DISABLED,
	AT_MODEL + E82545_C_RX_BAD_ADDR, AT_VM + VM_C_TX_OVERMTU,
	AT_VM + VM_C_RX_OVERMTU, AT_PORT + VALE_C_TX_RUNT,
	AT_PORT + VALE_C_TX_OVERSIZE, AT_PORT + VALE_C_TX_BAD_BUF,
	AT_PORT + VALE_C_TX_BAD_LEN, AT_PORT + VALE_C_TX_FRAGS,
	AT_PORT + VALE_C_TX_CUT, AT_PORT + VALE_C_TX_NODEST,
	AT_PORT + VALE_C_TX_SELF, AT_PORT + VALE_C_TX_LIMIT,
	AT_PORT + VALE_C_RX_FULL,
};

static void
snapshot(const struct vm *vm, uint64_t value[NCOUNTERS])
{
	int i;

	e82545_counters(vm->dev, value + AT_MODEL);
	for (i = 0; i < VM_NCOUNTERS; i++)
		value[AT_VM + i] = __atomic_load_n(&vm->counters[i],
		    __ATOMIC_RELAXED);
	value[AT_IRQ_SENT] = __atomic_load_n(&vm->irq.sent, __ATOMIC_RELAXED);
	value[AT_IRQ_UNMASKED] = __atomic_load_n(&vm->irq.unmasked,
	    __ATOMIC_RELAXED);
	if (vale_port_counters(vm->config->vc_backend, value + AT_PORT) != 0)
		memset(value + AT_PORT, 0, VALE_NCOUNTERS * sizeof(*value));
	value[AT_COPIES] = value[AT_MODEL + E82545_C_RX_FRAME] +
	    value[AT_PORT + VALE_C_RX_COPY];
}

/* A counter's name; those of ports are told apart by `prefix'. */
static const char *
counter_name(int i, const char **prefix)
{
	static const char *const vm_names[] = {
#define	VM_COUNTER_NAME(id, name, what)	name,
		VM_COUNTERS(VM_COUNTER_NAME)
#undef VM_COUNTER_NAME
	};

	*prefix = "";
	if (i < AT_VM)
		return (e82545_counter_name((enum e82545_counter)i));
	if (i < AT_IRQ_SENT)
		return (vm_names[i - AT_VM]);
	if (i == AT_IRQ_SENT)
		return ("irq_sent");
	if (i == AT_IRQ_UNMASKED)
		return ("irq_unmasked");
	if (i == AT_COPIES)
		return ("copies");
	*prefix = "port_";
	return (vale_counter_name((enum vale_counter)(i - AT_PORT)));
}

void
valed_stats_print(struct vm **vms, unsigned int nvms)
{
	uint64_t value[NCOUNTERS];
	const char *name, *prefix;
	unsigned int v;
	int i;

	for (v = 0; v < nvms; v++) {
		snapshot(vms[v], value);
		for (i = 0; i < NCOUNTERS; i++) {
			name = counter_name(i, &prefix);
			printf("%s %s%s %" PRIu64 "\n", vms[v]->config->vc_name,
			    prefix, name, value[i]);
		}
	}
	fflush(stdout);
}

static void
live_line(const struct vm *vm, const uint64_t *now, const uint64_t *last)
{
	const char *name, *prefix;
	uint64_t d[NCOUNTERS];
	unsigned int i;

	for (i = 0; i < NCOUNTERS; i++)
		d[i] = now[i] - last[i];
	printf("%s tx %" PRIu64 " frames %" PRIu64 " batches %" PRIu64
	    " kicks, rx %" PRIu64 " frames %" PRIu64 " batches, "
	    "%" PRIu64 " interrupts, %" PRIu64 " exits, "
	    "port tx %" PRIu64 " rx %" PRIu64, vm->config->vc_name,
	    d[AT_MODEL + E82545_C_TX_FRAME], d[AT_MODEL + E82545_C_TX_BATCH],
	    d[AT_MODEL + E82545_C_TX_KICK], d[AT_MODEL + E82545_C_RX_FRAME],
	    d[AT_MODEL + E82545_C_RX_BATCH], d[AT_IRQ_SENT],
	    d[AT_MODEL + E82545_C_REG_READ] + d[AT_MODEL + E82545_C_REG_WRITE],
	    d[AT_PORT + VALE_C_TX_FRAME], d[AT_PORT + VALE_C_RX_FRAME]);
	for (i = 0; i < nitems(drops); i++) {
		if (d[drops[i]] == 0)
			continue;
		name = counter_name(drops[i], &prefix);
		printf(", %s%s %" PRIu64, prefix, name, d[drops[i]]);
	}
	putchar('\n');
}

void
valed_stats_live(struct vm **vms, unsigned int nvms)
{
	static uint64_t (*last)[NCOUNTERS];
	uint64_t now[NCOUNTERS];
	unsigned int v;

	if (last == NULL && (last = calloc(nvms, sizeof(*last))) == NULL)
		return;
	for (v = 0; v < nvms; v++) {
		snapshot(vms[v], now);
		live_line(vms[v], now, last[v]);
		memcpy(last[v], now, sizeof(now));
	}
	fflush(stdout);
}
