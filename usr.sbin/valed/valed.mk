# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The sources of valed, each in one list.
#
#	ADAPTER_SRCS	an adapter
#	CTL_SRCS	the control socket's requests
#	VALED_SRCS	the program around them

ADAPTER_SRCS=	adapter.c adapter_net.c adapter_pci.c tap_port.c

CTL_SRCS=	ctl_hostif.c ctl_memory.c ctl_null.c ctl_owner.c \
		ctl_pipe.c ctl_port.c ctl_reload.c ctl_switch.c ctl_who.c \
		valed_names.c valed_pass.c

VALED_SRCS=	ctl.c valed.c ${CTL_SRCS}				\
		valed_activation.c					\
		valed_config.c valed_control.c valed_error.c valed_guard.c \
		valed_notify.c valed_options.c valed_plan.c		\
		valed_reload.c valed_sandbox.c valed_socket.c		\
		valed_stats.c valed_values.c
