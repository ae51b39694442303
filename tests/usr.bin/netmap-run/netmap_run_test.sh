# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# netmap-run itself: its options, and programs that have nothing to do with
# netmap.  netmap_test has programs that do.

. "$(atf_get_srcdir)/cases.subr"

tree()
{
	run=$(atf_get_srcdir)/../../../usr.bin/netmap-run/netmap-run
	[ -x "$run" ] || run=$(command -v netmap-run) ||
	    atf_skip "netmap-run is not installed, nor in the tree"
}

test_case usage "Wrong options get a summary"
usage_body()
{
	tree
	for args in "" "-c" "-x true" "-c s" "--helpless" "-c s --"; do
		atf_check -s exit:64 -e match:"^usage: netmap-run" "$run" $args
	done
	atf_check -s exit:64 -e match:"^usage" "$run" -c "" true
}

test_case plain "A program without netmap is as without netmap-run"
plain_body()
{
	tree
	atf_check -o inline:"a b|c\n" "$run" printf '%s|%s\n' "a b" c
	atf_check -s exit:7 "$run" sh -c 'exit 7'
	atf_check -s exit:127 -e ignore "$run" ./nothing
	echo text > file
	atf_check -o inline:"text\n" "$run" cat < file
	atf_check -o inline:"3\n" "$run" sh -c 'seq 3 | sort | tail -1'
	atf_check -s exit:1 -e match:"No such file" "$run" cat /dev/netmap0
}

test_case environment "The socket and what was preloaded before are passed on"
environment_body()
{
	tree
	atf_check -o inline:"$(pwd)/s\n" "$run" -c s printenv VALE_SOCKET
	atf_check -o inline:"/s\n" "$run" -c /s printenv VALE_SOCKET
	atf_check -s exit:1 env -u VALE_SOCKET "$run" printenv VALE_SOCKET
	lib=$("$run" printenv LD_PRELOAD)
	atf_check -o inline:"$lib:$lib\n" env LD_PRELOAD="$lib" "$run" \
	    printenv LD_PRELOAD
	atf_check test -r "$lib"
}
