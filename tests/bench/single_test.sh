# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# single: the time of a single frame beside other adapters, and the table of it;
# and remote, which prints lines as it does.

. "$(atf_get_srcdir)/cases.subr"

top=$(cd "$(atf_get_srcdir)/../.." && pwd)

test_case run "Each kind of interrupt, beside busy and idle adapters"
run_body()
{
	local kind

	for kind in msix msi intx; do
		"$top/bench/single" -n 100 -a 1 -i 2 $kind \
		    "$top/usr.sbin/valed/valed" > line || atf_fail "$kind"
		cat line
		# A frame, and more messages than frames; some were sent beside.
		awk -F, -v kind=$kind 'NF == 10 && $1 == kind && $2 == 1 &&
		    $3 == 2 && $4 == 100 && $5 > 0 && $6 >= $5 && $7 > 1 &&
		    $9 > 0 && $10 > 0 { n++ } END { exit n != 1 }' line ||
		    atf_fail "$kind: another line than expected"
	done
	"$top/bench/single" -n 100 -o ,poll=50,itr=0 msix \
	    "$top/usr.sbin/valed/valed" > line || atf_fail "options"
	atf_check -o match:'^msix[+]poll=50[+]itr=0,0,0,100,' cat line
	# An idle one takes at most 1 MB beside its guest's.
	for n in 0 8; do
		"$top/bench/single" -n 100 -i $n msix \
		    "$top/usr.sbin/valed/valed" || atf_fail "$n idle"
	done > lines
	cat lines
	awk -F, '{ kb[NR] = $10 } END { exit kb[2] <= kb[1] ||
	    kb[2] - kb[1] > 8 * 1024 }' lines || atf_fail "memory"
}

test_case remote "Ports of another process: frames pass, with and without waiting for \
each" timeout 60
remote_body()
{
	local batch

	for batch in 1 16; do
		atf_check -o match:"^remote,64,$batch,1,1,0,[0-9.]*,[0-9.]*," \
		    "$top/bench/remote" -s 64 -b $batch
	done
}

table()
{
	awk -F, -f "$(atf_get_srcdir)/median.awk" \
	    -f "$(atf_get_srcdir)/single.awk" "$1"
}

test_case table "Medians of the rounds, and what an idle adapter takes"
table_body()
{
	cat > single.csv <<-'EOF'
	msix,0,0,100,10.0,20.0,3.0,2.0,0,1000
	msix,4,60,100,30.0,90.0,3.0,2.0,500,43000
	msix,0,60,100,11.0,20.0,3.0,2.0,0,7000
	msix,0,0,100,90.0,21.0,3.0,2.0,0,1000
	msix,0,60,100,12.0,20.0,3.0,2.0,0,7060
	msix,0,0,100,12.0,99.0,3.0,2.0,0,1200
	msix,0,60,100,9.0,20.0,3.0,2.0,0,7000
	EOF
	table single.csv | tr -s ' ' | grep '^ ms' > seen
	cat > expected <<-'EOF'
	 msix 0 0 12.0 21.0 0 -
	 msix 4 60 30.0 90.0 500 -
	 msix 0 60 11.0 20.0 0 100
	EOF
	diff expected seen || atf_fail "another table"
	table /dev/null > none
	[ ! -s none ] || atf_fail "a table of nothing"
}
