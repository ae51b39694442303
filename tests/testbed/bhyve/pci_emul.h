/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The part of bhyve's PCI emulation that a network device uses: enough to
 * compile pci_e82545.c on Linux and to test it with a stand-in for the rest of
 * bhyve.  The structures have the names of bhyve's members, not their layout.
 */

#ifndef _PCI_EMUL_H_
#define	_PCI_EMUL_H_

#include <sys/types.h>
#include <sys/linker_set.h>
#include <sys/nv.h>

#include <dev/pci/pcireg.h>

#include <assert.h>
#include <stdint.h>
#include <string.h>

struct vmctx;
struct pci_devinst;
struct vm_snapshot_meta;

/* A device model, selected by the name in `-s slot,name'. */
struct pci_devemu {
	const char *pe_emu;		/* the name */

	/* Create an instance.  Returns 0; after an error bhyve exits. */
	int	(*pe_init)(struct pci_devinst *, nvlist_t *);
	/* Set configuration nodes from the rest of the option. */
	int	(*pe_legacy_config)(nvlist_t *, const char *);

	/*
	 * The guest reads configuration space, as pe_cfgwrite() below.  Returns
	 * 0 with the value in *valuep, and otherwise bhyve reads what it has
	 * stored.  vCPU threads.
	 */
	int	(*pe_cfgread)(struct pci_devinst *pi, int offset, int bytes,
		    uint32_t *valuep);
	/*
	 * The guest writes `bytes' (1, 2, 4) bytes to `offset', a multiple of
	 * `bytes', of configuration space.  Returns 0 to have bhyve ignore
	 * that, and otherwise bhyve stores the bits that can be written.  vCPU
	 * threads.
	 */
	int	(*pe_cfgwrite)(struct pci_devinst *pi, int offset, int bytes,
		    uint32_t value);

	/* Access BAR `baridx'.  vCPU threads call these concurrently. */
	void	(*pe_barwrite)(struct pci_devinst *pi, int baridx,
		    uint64_t offset, int size, uint64_t value);
	uint64_t (*pe_barread)(struct pci_devinst *pi, int baridx,
		    uint64_t offset, int size);

	/*
	 * Save to `meta' or restore from it.  Called between pe_pause() and
	 * pe_resume(), while the vCPUs are paused.  Return 0 or an error.
	 */
	int	(*pe_snapshot)(struct vm_snapshot_meta *meta);
	int	(*pe_pause)(struct pci_devinst *pi);
	int	(*pe_resume)(struct pci_devinst *pi);
};
#define	PI_NAMESZ	40

#define	PCI_EMUL_SET(x)	DATA_SET(pci_devemu_set, x)

enum pcibar_type {
	PCIBAR_NONE,
	PCIBAR_IO,
	PCIBAR_MEM32,
	PCIBAR_MEM64,
};

/* A vector of MSI-X. */
struct msix_table_entry {
	uint64_t	addr;
	uint32_t	msg_data;
	uint32_t	vector_control;
};

/* An instance. */
struct pci_devinst {
	struct pci_devemu	*pi_d;
	struct vmctx		*pi_vmctx;
	uint8_t			 pi_bus, pi_slot, pi_func;
	char			 pi_name[PI_NAMESZ];
	int			 pi_prevcap;	/* the last capability */
	int			 pi_capend;	/* last byte of capabilities */
	struct {
		int		 enabled;
		int		 table_bar, pba_bar;
		int		 table_count;
		uint32_t	 pba_offset;	/* bytes */
		int		 function_mask;
		struct msix_table_entry *table;	/* or NULL */
	} pi_msix;
	void			*pi_arg;	/* the model's own */
	uint8_t			 pi_cfgdata[PCI_REGMAX + 1];
};

/*
 * Turn "a=1,b" into nodes a=1, b=true.  Returns 0, or -1 if there is no memory.
 */
int	pci_parse_legacy_config(nvlist_t *nvl, const char *opt);

/* For pe_init(). */
int	pci_emul_alloc_bar(struct pci_devinst *pi, int idx,
	    enum pcibar_type type, uint64_t size);
/* bhyve's own is static, unless tools/upstream/small.subr has been there. */
int	pci_emul_add_capability(struct pci_devinst *pi, u_char *capdata,
	    int caplen);
int	pci_emul_add_msicap(struct pci_devinst *pi, int msgnum);
int	pci_emul_add_pciecap(struct pci_devinst *pi, int pcie_device_type);
/* With the table and its pending bits in BAR `barnum', which is allocated. */
int	pci_emul_add_msixcap(struct pci_devinst *pi, int msgnum, int barnum);
void	pci_lintr_request(struct pci_devinst *pi);

/* Interrupts.  Any thread may call these. */
void	pci_lintr_assert(struct pci_devinst *pi);
void	pci_lintr_deassert(struct pci_devinst *pi);
int	pci_msi_enabled(struct pci_devinst *pi);
void	pci_generate_msi(struct pci_devinst *pi, int msgnum);

/*
 * MSI-X.  It is enabled only if MSI is not.  The message of a vector that is
 * masked is dropped.
 */
int	pci_msix_enabled(struct pci_devinst *pi);
void	pci_generate_msix(struct pci_devinst *pi, int msgnum);
/* The BAR of the table, or -1 if there is none. */
int	pci_msix_table_bar(struct pci_devinst *pi);
/*
 * Access that BAR.  The pending bits are read as 0; what cannot be accessed is
 * read as ones, and returns -1 when written.
 */
int	pci_emul_msix_twrite(struct pci_devinst *pi, uint64_t offset, int size,
	    uint64_t value);
uint64_t pci_emul_msix_tread(struct pci_devinst *pi, uint64_t offset,
	    int size);
/* Store a write to capabilities.  The last two arguments are 0. */
void	pci_emul_capwrite(struct pci_devinst *pi, int offset, int bytes,
	    uint32_t value, uint8_t capoff, int capid);

/* Configuration space, which is little endian. */
static inline void
pci_set_cfgdata8(struct pci_devinst *pi, int offset, uint8_t value)
{
	assert(offset >= 0 && offset <= PCI_REGMAX);
	pi->pi_cfgdata[offset] = value;
}

static inline void
pci_set_cfgdata16(struct pci_devinst *pi, int offset, uint16_t value)
{
	pci_set_cfgdata8(pi, offset, value & 0xff);
	pci_set_cfgdata8(pi, offset + 1, value >> 8);
}

static inline void
pci_set_cfgdata32(struct pci_devinst *pi, int offset, uint32_t value)
{
	pci_set_cfgdata16(pi, offset, value & 0xffff);
	pci_set_cfgdata16(pi, offset + 2, value >> 16);
}

static inline uint8_t
pci_get_cfgdata8(struct pci_devinst *pi, int offset)
{
	assert(offset >= 0 && offset <= PCI_REGMAX);
	return (pi->pi_cfgdata[offset]);
}

#endif /* !_PCI_EMUL_H_ */
