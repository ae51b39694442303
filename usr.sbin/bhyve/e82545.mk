# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The sources of this directory, each in one list.
#
#	E82545_SRCS	the model
#	NETBE_SRCS	the VALE backend, and a frame port for every backend
#
# pci_e82545.c, which knows bhyve, is in neither.

E82545_SRCS=	e82545.c		\
		e82545_crc.c		\
		e82545_csb.c		\
		e82545_csb_rx.c		\
		e82545_csb_tail.c	\
		e82545_csb_tx.c		\
		e82545_csb_vnet.c	\
		e82545_eeprom.c		\
		e82545_em.c		\
		e82545_filter.c		\
		e82545_intr.c		\
		e82545_loop.c		\
		e82545_offload.c	\
		e82545_phy.c		\
		e82545_probes.c		\
		e82545_reg.c		\
		e82545_rx.c		\
		e82545_rx_copy.c	\
		e82545_rx_frame.c	\
		e82545_rx_stall.c	\
		e82545_salvage.c	\
		e82545_snap.c		\
		e82545_stat.c		\
		e82545_tx.c		\
		e82545_tx_collect.c	\
		e82545_tx_send.c	\
		e82545_tx_tso.c		\
		e82574.c		\
		e82574_eeprom.c		\
		e82574_intr.c		\
		e82574_rss.c		\
		e82574_rx.c

# bhyve's devices.
PCI_E82545_SRCS= pci_e82545.c		\
		pci_e82545_opts.c	\
		pci_msix_pending.c

NETBE_SRCS=	net_backend_vale.c	\
		net_port.c		\
		vale_sender.c
