# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The sources of valed, each in one list.
#
#	VFU_DMA_SRCS	guest memory
#	VFU_SRCS	the vfio-user server and the adapters behind it
#	RING_SRCS	the receive ring of packet(7): the sandbox, too
#	HOSTIF_OPEN_SRCS opening an interface: valectl, too
#	HOSTIF_SRCS	attached interfaces
#	CTL_SRCS	the control socket's requests
#	VALED_SRCS	the program around them

VFU_DMA_SRCS=	vfu_dma.c vfu_dma_file.c vfu_dma_range.c
VFU_SRCS=	adapter.c valed_log.c vfu_accept.c vfu_close.c vfu_device.c	\
		vfu_fault.c						\
		vfu_irq.c vfu_pci.c vfu_server.c vfu_version.c watch.c	\
		${VFU_DMA_SRCS}

RING_SRCS=	hostif_ring.c

HOSTIF_OPEN_SRCS= hostif_drop.c hostif_ethtool.c hostif_open.c	\
		hostif_open_xdp.c ${RING_SRCS}

HOSTIF_SRCS=	hostif.c hostif_link.c hostif_packet.c hostif_table.c	\
		hostif_xdp.c ${HOSTIF_OPEN_SRCS}

CTL_SRCS=	ctl_hostif.c ctl_memory.c ctl_null.c ctl_owner.c \
		ctl_pipe.c ctl_port.c ctl_reload.c ctl_switch.c ctl_who.c \
		valed_names.c valed_pass.c

VALED_SRCS=	ctl.c valed.c ${CTL_SRCS}				\
		valed_activation.c					\
		valed_config.c valed_control.c valed_error.c valed_guard.c \
		valed_notify.c valed_options.c				\
		valed_reload.c valed_sandbox.c valed_socket.c valed_stats.c \
		${HOSTIF_SRCS}
