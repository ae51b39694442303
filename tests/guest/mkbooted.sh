# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# mkbooted.sh objtop driver: makes what vm_start() continues guests with that
# driver from, in place of booting each, which takes some seconds of a processor:
# the state of a guest without an adapter that has booted, as QEMU migrates it.

set -eu

OBJTOP=$1
DRIVER=$2
ACCEL=tcg
. "$OBJTOP/tests/guest/guest.subr"

dir=$(mktemp -d)
trap 'stop_all; rm -rf "$dir"' EXIT
cd "$dir"

# migrated: whether QEMU has written the state.
migrated()
{
	qmp vm '{"execute": "query-migrate"}' | tee migrate
	grep -q "'status': 'completed'" migrate
}

rm -f "$INITRAMFS.booted"
vm_start vm -qmp unix:vm.qmp,server=on,wait=off
vm_wait vm
qmp vm '{"execute": "migrate", "arguments": {"uri": "file:booted"}}' > migrate
wait_until "the state" migrated
mv booted "$INITRAMFS.booted"
