# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Each fuzzer runs its corpus, and then new inputs for some seconds, which are
# the same each time as long as the program is.

. "$(atf_get_srcdir)/cases.subr"

seconds=5

fuzz()
{
	local name=$1 dir=$(atf_get_srcdir) bin inputs options

	bin=$dir/${name}_fuzz
	inputs=$(ls "$dir/corpus/$name" | wc -l)
	[ "$inputs" -gt 0 ] || atf_fail "corpus/$name.tar is empty"
	options=$(cat "$dir/$name.opts")
	[ ! -e "$dir/$name.dict" ] || options="$options -dict=$dir/$name.dict"
	mkdir new
	atf_check -o ignore -e save:more "$bin" $options -seed=1 \
	    -runs=$((inputs + 20000)) -max_total_time=$seconds \
	    new "$dir/corpus/$name"
	# The time ends new inputs, not the corpus.
	grep -q "seed corpus: files: $inputs " more && grep -q INITED more ||
	    atf_fail "not all $inputs inputs were run"
	tail -n 2 more
}

test_case server_e1000e "No finding in the corpus and new inputs: server, with \
the 82574L"
server_e1000e_body()
{
	SERVER_DEVICE=e1000e
	export SERVER_DEVICE
	fuzz server
}

for name in model server switch options core control hostif filter state; do
	test_case $name "No finding in the corpus and new inputs: $name"
	eval "${name}_body() { fuzz $name; }"
done
