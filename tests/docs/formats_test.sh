# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The versions that docs/formats.md has are those of the sources: a number, or the
# last character of a text, which a number may be, too ("val1").

. "$(atf_get_srcdir)/cases.subr"

top=$(atf_get_srcdir)/../../..

# version FILE MACRO: print its version.
version()
{
	local file value

	file=$(cd "$top" && find lib sys usr.sbin usr.bin -name "$1")
	[ -f "$top/$file" ] || atf_fail "$1: not one file: $file"
	value=$(sed -nE "s/^#define[[:space:]]+$2[[:space:]]+//p" "$top/$file" |
	    sed -E 's/[[:space:]]*\/\*.*//')
	case $value in
	'"'*)	value=${value%\\n\"}
		value=${value%%\"}
		echo "${value##*[!0-9]}" ;;
	0x*)	printf "\\$(printf %o $((value & 0xff)))\n" ;;
	*)	echo "$value" ;;
	esac
}

test_case versions "docs/formats.md has the versions of the sources"
versions_body()
{
	sed -nE 's/^\|[^|]*\| ([0-9]+) \| `([^:`]*):([A-Z0-9_]+)`.*/\1 \2 \3/p' \
	    "$top/docs/formats.md" > rows
	[ $(wc -l < rows) -ge 9 ] || atf_fail "few rows: $(cat rows)"
	while read -r want file macro; do
		have=$(version "$file" "$macro")
		atf_check_equal "$macro $want" "$macro $have"
	done < rows
}
