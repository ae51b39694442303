# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# How often the bytes of a large packet are read and written on their way from
# one guest's buffers to another's.  valgrind's lackey counts loads and stores
# of 16 bytes, which all copies and sums are made of: reading a packet's bytes
# for a copy and again for a sum would double the loads, copying them twice
# would double both.

. "$(atf_get_srcdir)/cases.subr"

# segments PACKETS MODE: the loads and stores of a run.
segments()
{
	local hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-ERMS,-FSRM

	hwcaps=$hwcaps,-AVX_Fast_Unaligned_Load
	GLIBC_TUNABLES="glibc.cpu.hwcaps=$hwcaps" valgrind --tool=lackey \
	    --detailed-counts=yes ./segments -n "$1" "$2" > log 2>&1 ||
	    atf_fail "$(cat log)"
	awk '$2 == "V128" { gsub(",", ""); print $3, $4 }' log
}

# check_once MODE: a packet has 44 segments of 1460 bytes, and headers.
check_once()
{
	local few more obj=$(atf_get_srcdir)/../..

	case $(basename "$(realpath "$obj")") in
	build)	;;
	*)	atf_skip "counted in the plain build only" ;;
	esac
	# Without clang's DWARF 5, which Debian 12's valgrind cannot read.
	llvm-strip -g -o segments "$obj/bench/segments"
	few=$(segments 56 "$1")
	more=$(segments 112 "$1")
	echo "$few $more" | awk '{
		packet = 56 * (54 + 44 * 1460) / 16
		loads = ($3 - $1) / packet
		stores = ($4 - $2) / packet
		printf "%.2f loads, %.2f stores of each byte\n", loads, stores
		exit !(loads >= 1 && loads < 1.5 &&
		    stores >= 1 && stores < 1.5)
	}' || atf_fail "bytes are read or written more than once"
}

test_case cut "A packet that is cut for the receiver is copied and summed by \
reading it once" require.progs "valgrind llvm-strip"
cut_body()
{
	check_once cut
}

test_case uncut "A packet that passes uncut is copied once, and not summed" \
    require.progs "valgrind llvm-strip"
uncut_body()
{
	check_once uncut
}
