# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Memory of others that valed maps.  The cases are functions of maps.py.

. "$(atf_get_srcdir)/valed.subr"

VALED=$(atf_get_srcdir)/valed_maps

test_case all_kinds "All memory that clients, programs and attached interfaces \
pass is in the table of what may vanish" require.user root \
    require.progs "python3 ip"
all_kinds_body()
{
	python_case maps all_kinds
}

python_cases maps <<'END'
callers: memory is mapped by files that are known, and nowhere else
END
