#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# em_pv.sh [-m] if_em.c
#
# Writes FreeBSD's if_em.c, from the argument to standard output, with the four
# lines changed that em_pv.c needs: em(4)'s class and its shared context are
# not static, and em_register() asks em_pv_register() first.
#
# With -m the output is for a module beside a kernel that has em(4): the driver
# takes the adapters of em_pv_register() only, with a higher probe priority;
# modules and the node of its tunables (hw.em_pv) have names of their own; and
# there is no igb(4) or igbv(4).
#
# A file that is not as expected ends with an error that names the line.

set -eu
LC_ALL=C
export LC_ALL

module=false
if [ "${1-}" = -m ]; then
	module=true
	shift
fi
if [ $# -ne 1 ] || [ ! -r "$1" ]; then
	echo "usage: em_pv.sh [-m] if_em.c" >&2
	exit 2
fi
out=$(mktemp)
trap 'rm -f "$out" "$out.new"' EXIT
cp "$1" "$out"

# change COUNT PATTERN FILE SUBSTITUTE: change the lines that match; there must
# be COUNT of them, at least one for COUNT 0.
change()
{
	local found

	found=$(grep -c "$2" "$out" || :)
	if [ "$found" -eq 0 ] || [ "$1" -ne 0 -a "$found" -ne "$1" ]; then
		echo "em_pv.sh: $3: \"$2\": $found lines" >&2
		exit 1
	fi
	sed "s/$2/$4/" "$out" > "$out.new"
	mv "$out.new" "$out"
}

file=$1
change 1 '^static driver_t em_if_driver = {$' "$file" \
    'extern driver_t em_if_driver;\
driver_t em_if_driver = {'
change 1 '^static struct if_shared_ctx em_sctx_init = {$' "$file" \
    'extern struct if_shared_ctx em_sctx_init;\
struct if_shared_ctx em_sctx_init = {'
change 1 '^static void[[:blank:]]*\*em_register(device_t.*);$' "$file" \
    'void	*em_pv_register(device_t);\
&'
if $module; then
	change 1 '^	return (&em_sctx_init);$' "$file" \
	    '	return (em_pv_register(dev));'
	change 0 '\(device_probe, iflib_device_probe\))' "$file" '\1_vendor)'
	change 1 '^DRIVER_MODULE(em, pci, ' "$file" 'DRIVER_MODULE(em_pv, pci, '
	change 3 '^MODULE_DEPEND(em, ' "$file" 'MODULE_DEPEND(em_pv, '
	change 1 '^IFLIB_PNP_INFO(pci, em, ' "$file" \
	    'IFLIB_PNP_INFO(pci, em_pv, '
	change 0 '^DRIVER_MODULE(igbv\{0,1\}, .*$' "$file" ''
	change 0 '^MODULE_DEPEND(igbv\{0,1\}, .*$' "$file" ''
	change 0 '^IFLIB_PNP_INFO(pci, igb.*$' "$file" ''
	change 0 '^static driver_t \(igbv\{0,1\}_driver\) = {$' "$file" \
	    'static driver_t \1 __unused = {'
	change 1 'SYSCTL_NODE(_hw, OID_AUTO, em,' "$file" \
	    'SYSCTL_NODE(_hw, OID_AUTO, em_pv,'
	sed 's/(_hw_em,/(_hw_em_pv,/' "$out" > "$out.new"
	mv "$out.new" "$out"
else
	change 1 '^	return (&em_sctx_init);$' "$file" \
	    '	void *pv = em_pv_register(dev);\
\
	return (pv != NULL ? pv : \&em_sctx_init);'
fi
cat "$out"
