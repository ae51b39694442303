#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# mkaccel.sh objtop: prints kvm if the guests' kernel boots under it on this
# machine, else tcg (accel.subr).

set -eu

OBJTOP=$1
ACCEL=tcg
. "$OBJTOP/tests/guest/guest.subr"
accel_find "$KERNEL"
