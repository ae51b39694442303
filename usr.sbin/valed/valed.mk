# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The sources of valed, each in one list.
#
#	ADAPTER_SRCS	an adapter, and what it keeps
#	VALED_SRCS	the program around them

ADAPTER_SRCS=	adapter.c adapter_announce.c adapter_keep.c adapter_net.c \
		adapter_pci.c adapter_port.c adapter_resume.c adapter_work.c \
		tap_port.c valed_activation.c valed_store.c

VALED_SRCS=	valed.c valed_adapters.c valed_address.c valed_carrier.c \
		valed_config.c valed_control.c valed_counters_keep.c	\
		valed_guard.c valed_hostif_keep.c valed_interfaces.c	\
		valed_notify.c valed_opener.c				\
		valed_options.c valed_plan.c valed_print.c		\
		valed_reload.c valed_sandbox.c valed_serve.c		\
		valed_settings.c valed_settings_keep.c			\
		valed_socket.c valed_stats.c valed_supervisor.c		\
		valed_values.c valed_watch.c valed_why.c
