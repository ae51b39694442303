# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# What is installed on FreeBSD: where, and which pages its pages name.  For
# Debian's packages debian_test does that.

. "$(atf_get_srcdir)/cases.subr"

top=$(cd "$(atf_get_srcdir)/../../../.." && pwd)

# freebsd_make DIRECTORY VARIABLE: its value on FreeBSD, whose makefiles set
# nothing that these need.
freebsd_make()
{
	mkdir -p mk
	echo '.-include "${.CURDIR}/../Makefile.inc"' > mk/bsd.prog.mk
	env -i PATH="$PATH" MAKEOBJDIRPREFIX="$PWD/obj" bmake -r -m "$PWD/mk" \
	    -C "$top/$1" TARGET_OS=FreeBSD -V "\${$2}"
}

# installed: the pages of ours that are.
installed()
{
	local section

	for section in 4 7 8 9; do
		freebsd_make share/man/man$section MAN
	done | xargs -n 1
}

# named PAGE: those that it names, but for pages that it says are Linux's.
named()
{
	awk '/^[.]Pp/ { n = 0 }
	    { for (i = 1; i <= NF; i++)
		if ($i ~ /^[.]?Xr$/) {
			all[$(i + 1) "." $(i + 2)] = 1
			last[n++] = $(i + 1) "." $(i + 2)
		} }
	    /^(is a page|are pages) of Linux/ { for (i = 0; i < n; i++)
		delete all[last[i]] }
	    END { for (page in all) print page }' "$1"
}

test_case freebsd "Pages that are installed on FreeBSD name pages that are, too, \
or FreeBSD's" require.progs bmake
freebsd_body()
{
	local page

	installed > installed
	atf_check -o ignore grep -x em_pv.4 installed
	atf_check -s exit:1 grep -x -e lem.4 -e valed.8 installed
	{
		cat installed
		awk '$1 ~ /^(FreeBSD|base)$/ { for (i = 2; i <= NF; i++) print $i }' \
		    "$top/tests/tools/pages.table"
	} | sort > there
	for page in $(cat installed); do
		named "$top/share/man/man${page##*.}/$page" | sort |
		    comm -23 - there | sed "s/^/$page: /"
	done > missing
	atf_check cat missing
}

test_case places "On FreeBSD nothing is installed among the system's pages and \
scripts" require.progs bmake
places_body()
{
	freebsd_make share/dtrace FILESDIR > places
	freebsd_make share/man/man4 MANDIR >> places
	atf_check -o inline:"/usr/local/share/dtrace\n\
/usr/local/share/man/man\n" cat places
}
