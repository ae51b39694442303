# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The host for the model (e82545_host.h).

E82545_HOST_SRCS=	e82545_host.c e82545_host_driver.c e82545_host_net.c
