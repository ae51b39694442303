# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# em_pv.sh: the lines of if_em.c that it changes, in a file that has these and
# little else.

. "$(atf_get_srcdir)/cases.subr"

# Each line that is expected, with - before those that -m needs only, and +
# before those of which it takes any number.
lines()
{
	cat << 'EOF'
static void	*em_register(device_t);
+	DEVMETHOD(device_probe, iflib_device_probe),
+	DEVMETHOD(device_probe, iflib_device_probe),
+static driver_t igb_driver = {
+static driver_t igbv_driver = {
-DRIVER_MODULE(em, pci, em_driver, 0, 0);
-MODULE_DEPEND(em, pci, 1, 1, 1);
-MODULE_DEPEND(em, ether, 1, 1, 1);
-MODULE_DEPEND(em, iflib, 1, 1, 1);
-IFLIB_PNP_INFO(pci, em, em_vendor_info_array);
+DRIVER_MODULE(igb, pci, igb_driver, 0, 0);
+DRIVER_MODULE(igbv, pci, igbv_driver, 0, 0);
+MODULE_DEPEND(igb, pci, 1, 1, 1);
+MODULE_DEPEND(igbv, iflib, 1, 1, 1);
+IFLIB_PNP_INFO(pci, igb, igb_vendor_info_array);
+IFLIB_PNP_INFO(pci, igbv_driver, igbv_vendor_info_array);
static driver_t em_if_driver = {
-static SYSCTL_NODE(_hw, OID_AUTO, em, CTLFLAG_RD, 0, "em");
static struct if_shared_ctx em_sctx_init = {
	return (&em_sctx_init);
EOF
}

# The file: these lines, and others like them.
write()
{
	echo '/* static driver_t em_if_driver = { */'
	lines | sed 's/^[-+]//'
	cat << 'EOF'
SYSCTL_INT(_hw_em, OID_AUTO, rdtr, CTLFLAG_RDTUN, &rdtr, 0, "");
static void	*igb_register(device_t);
	return (&igb_sctx_init);
static driver_t igb_if_driver = {
EOF
}

script="sh $(atf_get_srcdir)/em_pv.sh"

test_case changes "Four lines are changed, and all others are as they were"
changes_body()
{
	write > if_em.c
	cat > want << 'EOF'
1a2
> void	*em_pv_register(device_t);
18c19,20
< static driver_t em_if_driver = {
---
> extern driver_t em_if_driver;
> driver_t em_if_driver = {
20,21c22,26
< static struct if_shared_ctx em_sctx_init = {
< 	return (&em_sctx_init);
---
> extern struct if_shared_ctx em_sctx_init;
> struct if_shared_ctx em_sctx_init = {
> 	void *pv = em_pv_register(dev);
> 
> 	return (pv != NULL ? pv : &em_sctx_init);
EOF
	atf_check -o save:out $script if_em.c
	atf_check -s exit:1 -o file:want diff if_em.c out
}

test_case module "With -m names are those of a module beside em(4)"
module_body()
{
	write > if_em.c
	cat > want << 'EOF'
/* static driver_t em_if_driver = { */
void	*em_pv_register(device_t);
static void	*em_register(device_t);
	DEVMETHOD(device_probe, iflib_device_probe_vendor),
	DEVMETHOD(device_probe, iflib_device_probe_vendor),
static driver_t igb_driver __unused = {
static driver_t igbv_driver __unused = {
DRIVER_MODULE(em_pv, pci, em_driver, 0, 0);
MODULE_DEPEND(em_pv, pci, 1, 1, 1);
MODULE_DEPEND(em_pv, ether, 1, 1, 1);
MODULE_DEPEND(em_pv, iflib, 1, 1, 1);
IFLIB_PNP_INFO(pci, em_pv, em_vendor_info_array);






extern driver_t em_if_driver;
driver_t em_if_driver = {
static SYSCTL_NODE(_hw, OID_AUTO, em_pv, CTLFLAG_RD, 0, "em");
extern struct if_shared_ctx em_sctx_init;
struct if_shared_ctx em_sctx_init = {
	return (em_pv_register(dev));
SYSCTL_INT(_hw_em_pv, OID_AUTO, rdtr, CTLFLAG_RDTUN, &rdtr, 0, "");
static void	*igb_register(device_t);
	return (&igb_sctx_init);
static driver_t igb_if_driver = {
EOF
	atf_check -o file:want $script -m if_em.c
}

# Run with line N of the file missing, or there twice; "$@" are options.  The
# error names a pattern that the line matches, and nothing is written.
refuse()
{
	local n edit pattern

	n=$1 edit=$2
	shift 2
	sed "$n$edit" if_em.c > other.c
	atf_check -s exit:1 -e save:err $script "$@" other.c
	pattern=$(sed -n 's/^em_pv.sh: other.c: "\(.*\)": [0-9]* lines$/\1/p' err)
	[ -n "$pattern" ] || atf_fail "no pattern: $(cat err)"
	sed -n "${n}p" if_em.c | grep -q -e "$pattern" ||
	    atf_fail "line $n $edit: $(cat err)"
}

test_case unexpected "A line that is missing, or there twice, is named"
unexpected_body()
{
	local n line edit

	write > if_em.c
	n=1
	lines > lines
	while IFS= read -r line; do
		n=$((n + 1))
		for edit in d p; do
			case $line in
			+*)
				[ $edit = p ] || continue
				sed "$n$edit" if_em.c > other.c
				atf_check -o ignore $script -m other.c
				continue
				;;
			esac
			refuse $n $edit -m
			case $line in
			-*)
				sed "$n$edit" if_em.c > other.c
				atf_check -o ignore $script other.c
				;;
			*)
				refuse $n $edit
				;;
			esac
		done
	done < lines
	[ "$n" -eq 21 ] || atf_fail "$n lines"
	for line in device_probe 'DRIVER_MODULE(igb' 'MODULE_DEPEND(igb' \
	    'PNP_INFO(pci, igb' 'driver_t igbv*_driver'; do
		grep -v "$line" if_em.c > other.c
		atf_check -s exit:1 -e match:': 0 lines' $script -m other.c
		atf_check -o ignore $script other.c
	done
	atf_check -s exit:2 -e match:usage $script
	atf_check -s exit:2 -e match:usage $script missing.c
}
