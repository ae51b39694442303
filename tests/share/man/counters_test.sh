# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The counters of the tables (sys/counter_table.h) in the manual pages.

. "$(atf_get_srcdir)/cases.subr"

# table header: prints the names in its tables.
table()
{
	sed -n 's/^	X([A-Z0-9_]*, "\([a-z0-9_]*\)",.*/\1/p' \
	    "$(atf_get_srcdir)/$1"
}

# described page: prints the items of the page that have a description, a line
# of text that follows the item, without the nodes of sysctl(8) above them.
described()
{
	awk 'name != "" && /^[A-Z]/ { print name }
	    { name = "" }
	    $1 == ".It" && $2 ~ /^(Cm|Va)$/ && NF == 3 { name = $3 }' \
	    "$(atf_get_srcdir)/$1" | sed 's/.*\.//'
}

# page_has page header...: the page describes each counter of the headers.
page_has()
{
	local header page=$1

	shift
	described "$page" | sort -u > described
	for header; do
		table "$header" | sort > table
		[ -s table ] || atf_fail "$header: no table"
		comm -23 table described > missing
		[ ! -s missing ] ||
		    atf_fail "$page: not described: $(xargs < missing)"
	done
}

# adapter page: prints its list of the adapter's counters.
adapter()
{
	sed -n '/^\.It Cm reg_reads$/,/^\.El$/p' "$(atf_get_srcdir)/$1"
}

test_case bhyve_e1000 "bhyve-e1000(8) describes the counters of the adapter \
and of its frame port, as valed(8) does"
bhyve_e1000_body()
{
	page_has bhyve-e1000.8 e82545.h frame_port.h
	adapter bhyve-e1000.8 > list
	adapter valed.8 > same
	[ -s list ] || atf_fail "bhyve-e1000.8: no list"
	atf_check diff -u list same
}

test_case lem "lem(4) describes the counters of the driver, and those of Linux"
lem_body()
{
	page_has lem.4 lem_core.h
	sed -n '/^} lem_more\[\]/,/^};/s/^	{ "\([a-z_]*\)",.*/\1/p' \
	    "$(atf_get_srcdir)/lem_ethtool.c" | sort > table
	[ -s table ] || atf_fail "lem_ethtool.c: no table"
	atf_check comm -23 table described
}

test_case vale_learn "vale_learn(4) describes the counters of the module"
vale_learn_body()
{
	page_has vale_learn.4 vale_learn.h
}
