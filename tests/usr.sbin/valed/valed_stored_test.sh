# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# What version 1.0 has written, or was given, is read: docs/formats.md.  The cases
# are functions of stored.py, and a file; valed_restart_test has the states of
# adapters.

. "$(atf_get_srcdir)/valed.subr"

python_cases stored <<'END'
session: valed answers a client of version 1.0
served: valectl reads the answers of a valed of version 1.0
END

# stored_conf.txt is what 1.0 printed of stored.conf, by "valed -T -k stored.conf".
test_case configuration "A file of version 1.0 has the meaning that it had"
configuration_body()
{
	atf_check "$VALED" -t -k "$(atf_get_srcdir)/stored.conf"
	atf_check -o save:printed "$VALED" -T -k "$(atf_get_srcdir)/stored.conf"
	# There may be more now.
	grep -vxFf printed "$(atf_get_srcdir)/stored_conf.txt" > missing
	atf_check cat missing
	[ $(wc -l < "$(atf_get_srcdir)/stored_conf.txt") -ge 50 ] ||
	    atf_fail "few lines"
}
