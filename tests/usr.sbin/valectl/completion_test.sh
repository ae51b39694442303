# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Completion by bash(1), of each command line in a table.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"
. "$(atf_get_srcdir)/valed_ports.subr"

# complete LINE: print what bash offers at its end, on one line.
complete()
{
	bash --norc -c '
		. "$1/${2%% *}"
		COMP_LINE=$2 COMP_POINT=${#2} COMP_TYPE=9 COMP_KEY=9
		spec=$(complete -p "${2%% *}")
		spec=${spec#*-F }
		${spec%% *}
		echo "${COMPREPLY[@]}"' bash "$top/share/bash-completion/completions" "$1"
}

# offers LINE WORDS: just these.
offers()
{
	complete "$1" > offered
	atf_check -o inline:"$2\n" cat offered
}

# offers_also LINE WORD...: and others.
offers_also()
{
	local word

	complete "$1" | tr ' ' '\n' > offered
	shift
	for word; do
		grep -qxFe "$word" offered || atf_fail "$word: $(cat offered)"
	done
}

test_case table "Options, ports, switches, settings and their values are \
completed" require.progs bash
table_body()
{
	setup vale0:a vale0:b-c.d vale1:x
	top=$(cd "$(atf_get_srcdir)/../../../.." && pwd)
	PATH=$(dirname "$(realpath "$VALECTL")"):$PATH
	PATH=$(realpath "$(atf_get_srcdir)/../../../usr.bin/vale-cap"):$PATH
	PATH=$(dirname "$(realpath "$VALED")"):$PATH

	offers "valectl -g " "vale0:a vale0:b-c.d vale1:x"
	# What is behind the colon takes the place of that.
	offers "valectl -g vale0:" "a b-c.d"
	offers "valectl -l vale0:b" "b-c.d"
	offers "valectl -l a" "all"
	offers "valectl -t " "vale0 vale1"
	offers "valectl -s v" "vale0 vale1"
	offers "valectl -k vale1" "vale1:x vale1"
	offers "valectl -o vale0 " "ageing= batch= reserved="
	offers "valectl -o vale0:a w" "weight="
	offers "valectl -o vale0:a vlan=1 w" "weight="
	offers "valectl -o vale0:a private=" "on off"
	offers "valectl -o vale0 reserved=" "on off"
	offers "valectl -o vale0:a link=u" "up uplink"
	offers "valectl -o vale0:a trunk=" "no all"
	offers "valectl -o vale0:a rate=" ""
	offers "valectl -o vale0:a mirror=vale1" "vale1:x"
	offers "valectl -a v" "vale0: vale1:"
	offers_also "valectl -a vale0:" lo
	offers "valectl re" "reload restart"
	offers "valectl reload " "--replace"
	offers_also "valectl " -a -h --help --events --openmetrics --save \
	    --version -j --json reload
	offers "valectl --ev" "--events"
	offers "valectl -c none -g " ""
	offers "valectl -c control -g vale1:" x
	: > control.conf
	offers "valectl --save control.c" control.conf
	offers "vale-cap -Q i" "in inout"
	offers "vale-cap vale1:" x
	offers_also "vale-cap " -n -w --help vale0:a
	offers "valed -k control.c" control.conf
	offers_also "valed " -k -R -T --help
	teardown
	# Nothing is said without a valed.
	offers "valectl -t " ""
}
