# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# What helps to find something in a long page: a list of its sections, and lines of
# DIAGNOSTICS that are sorted.

. "$(atf_get_srcdir)/cases.subr"

top=$(cd "$(atf_get_srcdir)/../../../.." && pwd)

# sections PAGE: print the sections behind DESCRIPTION, in order, without SEE ALSO,
# HISTORY and AUTHORS.
sections()
{
	awk '/^[.]S[hs] / {
		sub(/^[.]S[hs] /, "")
		if (behind && $0 !~ /^(SEE ALSO|HISTORY|AUTHORS)$/)
			print
		behind = behind || $0 == "DESCRIPTION"
	}' "$1"
}

# listed PAGE: those that the first list of DESCRIPTION names, in order.
listed()
{
	awk '/^[.]Sh / { inside = $2 == "DESCRIPTION" }
	inside && /^[.]El/ { exit }
	inside && /^[.](It )?Sx / {
		sub(/^[.](It )?Sx /, "")
		sub(/ ,$/, "")
		print
	}' "$1"
}

# words PAGE: what each line of DIAGNOSTICS has behind the names of the program,
# adapters, ports and files.
words()
{
	sed -n '/^[.]Sh DIAGNOSTICS/,/^[.]Sh [^D]/s/^[.]It "\(.*\)"$/\1/p' "$1" |
	    awk '{
		sub(/^valed: /, "")
		while (sub(/^[^ ]*[0-9\/.][^ ]*: /, ""))
			;
		print tolower($0)
	}'
}

test_case listed "A page of more than 1000 lines begins with a list of its \
sections"
listed_body()
{
	local n=0 page

	for page in "$top"/share/man/man*/*.[1-9]; do
		[ "$(wc -l < "$page")" -gt 1000 ] || continue
		sections "$page" > sections
		listed "$page" > listed
		atf_check diff -u sections listed
		n=$((n + 1))
	done
	[ $n -gt 0 ] || atf_fail "no page is long"
}

test_case sorted "The lines of DIAGNOSTICS of valed(8) are sorted"
sorted_body()
{
	words "$top/share/man/man8/valed.8" > words
	[ "$(wc -l < words)" -gt 30 ] || atf_fail "few lines"
	LC_ALL=C sort words > sorted
	atf_check diff -u sorted words
	# Each is explained.
	atf_check -s exit:1 awk '/^[.]Sh/ { inside = $2 == "DIAGNOSTICS" }
	    inside && item && /^[.](It|El)/ { print; n++ }
	    { item = /^[.]It / }
	    END { exit n == 0 }' "$top/share/man/man8/valed.8"
}
