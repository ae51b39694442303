/* What the CSB needs of bhyve.  No adapter of these tests has one. */
#include "pci_e82545_csb.c"

bool
get_config_bool_node_default(const nvlist_t *parent __unused,
    const char *name __unused, bool def)
{
	return (def);
}

int
pci_emul_add_capability(struct pci_devinst *dev __unused,
    u_char *capdata __unused, int caplen __unused)
{
	return (0);
}

int
pci_emul_add_msicap(struct pci_devinst *dev __unused, int msgnum __unused)
{
	return (0);
}

int
pci_msi_enabled(struct pci_devinst *dev __unused)
{
	return (0);
}

void
pci_generate_msi(struct pci_devinst *dev __unused, int msg __unused)
{
}
