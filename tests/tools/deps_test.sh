# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# deps/deps.sh when everything is there.

. "$(atf_get_srcdir)/cases.subr"

top=$(cd "$(atf_get_srcdir)/../../.." && pwd)

test_case owner "What root has set up in another user's clone is that user's, \
who goes on with it" require.user root require.progs setpriv
owner_body()
{
	local deps=clone/build/deps f release

	mkdir clone
	cp -r "$top/deps" clone
	: > clone/deps/packages
	. clone/deps/deps.subr
	release=$(os_release VERSION_CODENAME)
	mkdir -p $deps/bin $deps/root $deps/kernel/$release/headers
	for f in .qemu .guest .dpdk .firmware .prometheus root/$release.tar \
	    kernel/$release/headers/Makefile; do
		: > $deps/$f
	done
	cp /bin/true $deps/bin/qemu-system-x86_64
	root_packages $release > $deps/root/$release.packages
	sha256sum < clone/deps/requirements.txt > $deps/.zig
	chmod 755 .
	chown 61000:61000 clone
	atf_check sh clone/deps/deps.sh
	atf_check find clone/build ! -user 61000
	atf_check setpriv --reuid=61000 --regid=61000 --clear-groups \
	    sh clone/deps/deps.sh
}
