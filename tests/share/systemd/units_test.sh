# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The units of systemd(1), as far as they can be read.  debian_test:units starts
# them: their users, groups, sockets and directories.

. "$(atf_get_srcdir)/cases.subr"

units=$(cd "$(atf_get_srcdir)/../../../../share/systemd" && pwd)

# The units, for a program that exists here.
place()
{
	local u

	for u in valed.service valed@.service valed-directory.service \
	    valed-directory@.service valectl-metrics.socket \
	    valectl-metrics@.service; do
		sed 's,@SBINDIR@/[a-z]*,/bin/true,' "$units/$u" > $u
	done
	cp valed@.service valed@vale0.service
	cp valed-directory@.service valed-directory@vale0.service
	cp valectl-metrics@.service valectl-metrics@1.service
}

test_case verify "systemd finds nothing wrong with the units" \
    require.progs systemd-analyze
verify_body()
{
	place
	# A version that does not know a setting says so.
	atf_check -o empty -e empty systemd-analyze verify --man=no \
	    ./valed.service ./valed@vale0.service ./valectl-metrics.socket \
	    ./valectl-metrics@1.service
}

test_case security "systemd calls the services' exposure low: 2.5 of 10 at most" \
    require.progs systemd-analyze
security_body()
{
	local u

	place
	systemd-analyze --help | grep -q -e --threshold ||
	    atf_skip "systemd-analyze(1) has no --threshold"
	for u in valed.service valed@vale0.service \
	    valectl-metrics@1.service; do
		atf_check -o ignore systemd-analyze security --no-pager \
		    --offline=yes --threshold=25 ./$u
	done
}

test_case same "The templates differ from the services in the names only"
same_body()
{
	local u

	place
	for u in valed valed-directory; do
		sed -e 's, (%i),,' -e 's,valed-%i,valed,' \
		    -e 's,/etc/valed/%i.conf,/etc/valed/valed.conf,' \
		    -e 's,directory@%i,directory,' -e '/^#/d' $u@.service |
		    cat -s > template
		grep -v '^#' $u.service | cat -s > service
		atf_check diff -u service template
	done
}

test_case metrics "Metrics are read by the user of valed.service, from its \
control socket, and of loopback only"
metrics_body()
{
	local u=$units/valectl-metrics@.service

	for setting in User DynamicUser; do
		grep "^$setting=" "$units/valed.service" > expected
		atf_check -o file:expected grep "^$setting=" "$u"
	done
	socket=$(sed -n 's/^ExecStart=.* -c \([^,]*\),.*/\1/p' \
	    "$units/valed.service")
	# Where the administrator can change it.
	atf_check -o inline:"Environment=VALE_SOCKET=$socket\n" \
	    grep ^Environment= "$u"
	atf_check -o inline:"ExecStart=-@SBINDIR@/valectl --openmetrics=http\n" \
	    grep ^ExecStart= "$u"
	atf_check -o inline:"ListenStream=127.0.0.1:9955\n" \
	    grep ^Listen "$units/valectl-metrics.socket"
}
