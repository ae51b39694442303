# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints the names of the C library by which a program may make a call that
# netmap-run's library intercepts, and that are not among those it has.
#
#	awk -f libc_names.awk ours libc
#
# Both files are of nm -D --defined-only.  Such a name is another one of the same
# code, or is made of the name of a call: __NAME, NAME64, NAME2, __NAME_chk,
# __NAME_2 and __NAME_time64 are.  Names of GLIBC_PRIVATE are not for programs.

function call(name)
{
	sub(/^_+/, "", name)
	sub(/^(libc|IO)_/, "", name)
	sub(/_(chk|2|time64|alias|nocancel)$/, "", name)
	sub(/64$/, "", name)
	sub(/[0-9]$/, "", name)
	return (name)
}

$2 !~ /^[TWi]$/ || /@GLIBC_PRIVATE$/ { next }
{
	name = $3
	sub(/@.*/, "", name)
}
FILENAME == ARGV[1] {
	ours[name]
	calls[call(name)]
	next
}
{
	code[name] = $1
	if (name in ours)
		intercepted[$1]
}
END {
	for (name in code)
		if (!(name in ours) && (code[name] in intercepted ||
		    call(name) in calls))
			print name
}
