# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The files and functions that the pages in docs/ name in backquotes must exist:
#
#	file.c:function		the file, and in it a definition of the function
#	function()		a definition of the function
#	struct name		a definition of the structure
#	dir/file, file.c, dir/	the file or directory; without a directory, a
#				file of that name anywhere; * is a pattern
#	some_name		a word of the sources
#
# Everything else in backquotes (commands, options, values) is not looked at.

top=$(atf_get_srcdir)/../../..
dirs="bench compat deps lib ports share sys tests tools usr.sbin"

# Gather what exists: files, functions (file:function), structs, words.
gather()
{
	(cd "$top" && find $dirs -type f ! -name '*.o') > files
	(cd "$top" && find $dirs -name '*.[ch]' -type f -exec grep -E \
	    -e '^([a-z_][a-z0-9_]*|#define[[:space:]]+[a-zA-Z_]+)\(' \
	    -e '^struct [a-z0-9_]+ \{' \
	    /dev/null {} + | sed -E 's/#define[[:space:]]+//; s/[({].*//') \
	    > defined
	(cd "$top" && find $dirs \( -name '*.[chd]' -o -name '*.py' \) \
	    -type f -exec grep -ohE '[A-Za-z_][A-Za-z0-9_]*' {} + |
	    sort -u) > words
}

# file_exists PATTERN
file_exists()
{
	case $1 in
	*/)	[ -d "$top/$1" ] ;;
	*/*)	(cd "$top" && ls -d $1 > /dev/null 2>&1) ;;
	*)	grep -q "\(^\|/\)$(printf '%s' "$1" |
		    sed 's/[.]/[.]/g; s/[*]/[^\/]*/g')\$" files ;;
	esac
}

# name_exists NAME
name_exists()
{
	local file function

	case $1 in
	*.[ch]:[a-z_]*)
		file=${1%%:*}
		function=${1#*:}
		grep -q "\(^\|/\)$file:$function\$" defined
		;;
	*"()")
		grep -q ":${1%()}\$" defined
		;;
	"struct "*)
		grep -q ":$1 *\$" defined
		;;
	/* | *" "* | -* | *=* | *,*)
		;;
	*/* | *.[chd] | *.[1-9] | *.sh | *.py | *.mk | *.pml | *.awk)
		file_exists "$1"
		;;
	*[!a-z0-9_]*)
		;;
	*_*)
		grep -qx "$1" words
		;;
	esac
}

# missing PAGE: print the names in a page that do not exist.
missing()
{
	local name

	grep -o '`[^`]*`' "$1" | tr -d '`' | sort -u | while read -r name; do
		name_exists "$name" || echo "$1: $name"
	done
}

# page PAGE NAMES: fail if a name in a page does not exist, or if there are fewer
# names.
page()
{
	gather
	missing "$top/docs/$1" > bad
	[ "$(grep -o '`[^`]*`' "$top/docs/$1" | wc -l)" -ge $2 ] ||
	    atf_fail "$1 has fewer than $2 names"
	[ ! -s bad ] || {
		cat bad
		atf_fail "$(wc -l < bad) names in $1 do not exist"
	}
}

atf_test_case architecture
architecture_head()
{
	atf_set descr "Files and functions in docs/architecture.md exist"
}
architecture_body()
{
	page architecture.md 50
}

atf_test_case security
security_head()
{
	atf_set descr "Files and functions in docs/security.md exist"
}
security_body()
{
	page security.md 50
}

atf_test_case upstream
upstream_head()
{
	atf_set descr "Files and functions in docs/upstream.md exist"
}
upstream_body()
{
	page upstream.md 20
}

atf_test_case found
found_head()
{
	atf_set descr "The check reports each kind of name that does not exist"
}
found_body()
{
	gather
	cat > good.md <<-'EOF'
	`e82545.c:e82545_write`, `e82545.c`, `usr.sbin/bhyve/`, `lem_*.c`,
	`e82545_tx()`, `struct e82545_ops`, `tx_mtx`, `make all`, `itr=250`
	EOF
	cat > bad.md <<-'EOF'
	`e82545.c:e82545_tx`, `e82546.c`, `usr.sbin/bhive/`, `lom_*.c`,
	`e82545_tix()`, `struct e82545_opps`, `tx_mutex_of_old`
	EOF
	missing good.md > out
	cat out
	atf_check_equal 0 "$(wc -l < out)"
	missing bad.md > out
	cat out
	atf_check_equal 7 "$(wc -l < out)"
}

atf_init_test_cases()
{

	atf_add_test_case architecture
	atf_add_test_case security
	atf_add_test_case upstream
	atf_add_test_case found
}
