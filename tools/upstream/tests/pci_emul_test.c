/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The MSI-X table and pending bits of an emulated PCI device.
 */

#include "pci_emul.c"

#include <atf-c.h>

#define	NVECTORS	70		/* more than a word of pending bits */
#define	CONTROL		2		/* message control, in the capability */
#define	CAP		0x40

int raw_stdio;

static struct pci_devinst pi;
static unsigned int nsent;
static uint64_t sent_addr, sent_data;

int
vm_raise_msi(struct vmctx *ctx __unused, uint64_t addr, uint64_t msg,
    int bus __unused, int slot __unused, int func __unused)
{
	nsent++;
	sent_addr = addr;
	sent_data = msg;
	return (0);
}

void
pci_irq_assert(struct pci_devinst *dev __unused)
{
}

void
pci_irq_deassert(struct pci_devinst *dev __unused)
{
}

/* What else the file's devices and ports need of bhyve, but no test does. */
bool
bootrom_boot(void)
{
	return (false);
}

bool
get_config_bool_default(const char *path __unused, bool def)
{
	return (def);
}

int
register_mem(struct mem_range *range __unused)
{
	return (0);
}

int
unregister_mem(struct mem_range *range __unused)
{
	return (0);
}

int
register_inout(struct inout_port *port __unused)
{
	return (0);
}

int
unregister_inout(struct inout_port *port __unused)
{
	return (0);
}

static void
set_control(uint16_t control)
{
	msixcap_cfgwrite(&pi, CAP, CAP + CONTROL, 2, control);
}

static void
set_mask(int vector, bool masked)
{
	ATF_REQUIRE(pci_emul_msix_twrite(&pi, vector * MSIX_TABLE_ENTRY_SIZE +
	    offsetof(struct msix_table_entry, vector_control), 4,
	    masked ? PCIM_MSIX_VCTRL_MASK : 0) == 0);
}

static uint64_t
pending(int word)
{
	return (pci_emul_msix_tread(&pi, pi.pi_msix.pba_offset + word * 8, 8));
}

/* A device whose vectors are masked, as after a reset, and have addresses. */
static void
create(void)
{
	pci_msix_table_init(&pi, NVECTORS);
	pi.pi_msix.table_count = NVECTORS;
	pi.pi_msix.pba_offset = 4096;
	pi.pi_msix.pba_size = PBA_SIZE(NVECTORS);
	for (int i = 0; i < NVECTORS; i++) {
		pi.pi_msix.table[i].addr = 0xfee00000 + i * 4;
		pi.pi_msix.table[i].msg_data = i;
	}
	set_control(PCIM_MSIXCTRL_MSIX_ENABLE);
}

ATF_TC_WITHOUT_HEAD(sent);
ATF_TC_BODY(sent, tc)
{
	create();
	set_mask(3, false);
	pci_generate_msix(&pi, 3);
	ATF_CHECK_EQ(1, nsent);
	ATF_CHECK_EQ(0xfee0000c, sent_addr);
	ATF_CHECK_EQ(3, sent_data);
	ATF_CHECK_EQ(0, pending(0));
	pci_generate_msix(&pi, NVECTORS);
	ATF_CHECK_EQ(1, nsent);
}

ATF_TC_WITHOUT_HEAD(vector_masked);
ATF_TC_BODY(vector_masked, tc)
{
	create();
	pci_generate_msix(&pi, 1);
	pci_generate_msix(&pi, 1);
	pci_generate_msix(&pi, 65);
	ATF_CHECK_EQ(0, nsent);
	ATF_CHECK_EQ(1 << 1, pending(0));
	ATF_CHECK_EQ(1 << 1, pending(1));
	ATF_CHECK_EQ(1 << 1,
	    pci_emul_msix_tread(&pi, pi.pi_msix.pba_offset + 8, 4));
	set_mask(0, false);
	ATF_CHECK_EQ(0, nsent);
	set_mask(1, false);
	ATF_CHECK_EQ(1, nsent);
	ATF_CHECK_EQ(1, sent_data);
	ATF_CHECK_EQ(0, pending(0));
	set_mask(1, true);
	set_mask(1, false);
	ATF_CHECK_EQ(1, nsent);
	set_mask(65, false);
	ATF_CHECK_EQ(2, nsent);
	ATF_CHECK_EQ(65, sent_data);
}

ATF_TC_WITHOUT_HEAD(function_masked);
ATF_TC_BODY(function_masked, tc)
{
	create();
	set_mask(1, false);
	set_control(PCIM_MSIXCTRL_MSIX_ENABLE | PCIM_MSIXCTRL_FUNCTION_MASK);
	pci_generate_msix(&pi, 1);
	pci_generate_msix(&pi, 2);
	set_mask(1, true);
	set_mask(1, false);
	ATF_CHECK_EQ(0, nsent);
	ATF_CHECK_EQ(1 << 1 | 1 << 2, pending(0));
	set_control(PCIM_MSIXCTRL_MSIX_ENABLE);
	ATF_CHECK_EQ(1, nsent);
	ATF_CHECK_EQ(1, sent_data);
	ATF_CHECK_EQ(1 << 2, pending(0));
}

ATF_TC_WITHOUT_HEAD(disabled);
ATF_TC_BODY(disabled, tc)
{
	create();
	pci_generate_msix(&pi, 1);
	set_control(0);
	pci_generate_msix(&pi, 2);
	ATF_CHECK_EQ(0, pending(0));
	set_control(PCIM_MSIXCTRL_MSIX_ENABLE);
	set_mask(1, false);
	set_mask(2, false);
	ATF_CHECK_EQ(0, nsent);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, sent);
	ATF_TP_ADD_TC(tp, vector_masked);
	ATF_TP_ADD_TC(tp, function_masked);
	ATF_TP_ADD_TC(tp, disabled);
	return (atf_no_error());
}
