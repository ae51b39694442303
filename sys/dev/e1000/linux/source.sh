#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# source.sh TOP DIR: copies what lem(4) for Linux is built of from the tree TOP
# to the directory DIR, in which kbuild and DKMS build it.  A file that has not
# changed is left alone.

set -eu

top=$1
dir=$2
e1000=$top/sys/dev/e1000

put()
{
	cmp -s "$1" "$dir/$2" || cp "$1" "$dir/$2"
}

mkdir -p "$dir/net" "$dir/sys"
for f in "$e1000"/lem_*.[ch] "$e1000"/e825*_reg.h "$e1000"/linux/*.[ch] \
    "$e1000"/linux/compat/*.h "$e1000/linux/Kbuild"; do
	put "$f" "${f##*/}"
done
put "$top/sys/sys/counter_table.h" sys/counter_table.h
put "$top/compat/include/net/paravirt.h" net/paravirt.h
