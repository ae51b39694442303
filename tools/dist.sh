#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# dist.sh DIR: make the archive of the commit that is checked out, and ports that
# have its checksum:
#
#	DIR/bhyve-vale-VERSION.tar.gz
#	DIR/ports
#
# The archive depends on the commit only: its times are the commit's, too.

set -eu
LC_ALL=C
export LC_ALL
umask 022

die()
{
	echo "dist.sh: $*" >&2
	exit 1
}

[ $# -eq 1 ] || {
	echo "usage: dist.sh directory" >&2
	exit 2
}
mkdir -p "$1"
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
[ "$(git rev-parse --show-toplevel)" = "$(pwd -P)" ] ||
    die "$PWD: not a clone: an archive is made of a commit"
[ -z "$(git status --porcelain)" ] || die "$PWD: has changes"
name=bhyve-vale-$(sed -n 's/.*VALE_VERSION.*"\(.*\)"/\1/p' \
    lib/libvale/vale_version.h)
git -c tar.umask=0022 archive --format=tar --prefix="$name/" \
    -o "$dir/$name.tar" HEAD
gzip -9nf "$dir/$name.tar"

rm -rf "$dir/ports"
cp -R ports "$dir"
for port in "$dir"/ports/net/*; do
	cat > "$port/distinfo" <<-END
	TIMESTAMP = $(git log -1 --format=%ct)
	SHA256 ($name.tar.gz) = $(sha256sum < "$dir/$name.tar.gz" | cut -c 1-64)
	SIZE ($name.tar.gz) = $(wc -c < "$dir/$name.tar.gz")
	END
done
echo "$dir/$name.tar.gz"
