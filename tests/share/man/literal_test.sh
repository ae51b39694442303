# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Text in pages and examples that is to be pasted, in what it is pasted into.
# Commands are run by debian_test and bench/freebsd.

. "$(atf_get_srcdir)/cases.subr"

top=$(cd "$(atf_get_srcdir)/../../../.." && pwd)
build=$(cd "$(atf_get_srcdir)/../../.." && pwd)

# literal_config FILE: lines of valed's configuration.
literal_config()
{
	atf_check "$build/usr.sbin/valed/valed" -t -k "$1"
}

# literal_json FILE: objects, one after the other.
literal_json()
{
	atf_check python3 -c 'import json, sys
text = sys.stdin.read().strip()
while text:
    text = text[json.JSONDecoder().raw_decode(text)[1]:].strip()' < "$1"
}

# literal_xml FILE
literal_xml()
{
	atf_check python3 -c 'import sys, xml.etree.ElementTree as e
e.parse(sys.argv[1])' "$1"
}

# prometheus_debian: the file of Debian's package, as far as its shape counts.
prometheus_debian()
{
	cat <<-END
	global:
	  scrape_interval: 15s
	rule_files:
	  # - "first.yml"
	scrape_configs:
	  # Prometheus itself.
	  - job_name: 'prometheus'
	    scrape_interval: 5s
	    static_configs:
	      - targets: ['localhost:9090']

	  - job_name: node
	    static_configs:
	      - targets: ['localhost:9100']
	END
}

# literal_yaml FILE: at the end of Prometheus's file, and at the list's beginning.
literal_yaml()
{
	local promtool=${build%-san}/deps/prometheus/usr/bin/promtool

	atf_check diff "$top/share/examples/valed/prometheus.yml" "$1"
	[ -x "$promtool" ] || promtool=$(command -v promtool) || {
		echo "no promtool(1): Prometheus's file is not checked"
		return
	}
	prometheus_debian > debian.yml
	cat debian.yml "$1" > end.yml
	sed "/^scrape_configs:/r $1" debian.yml > begin.yml
	for f in debian end begin; do
		atf_check -o ignore "$promtool" check config $f.yml
	done
	sed 's/^  //' "$1" | cat debian.yml - > wrong.yml
	atf_check -s exit:1 -o ignore -e ignore "$promtool" check config \
	    wrong.yml
}

# literal_unit FILE: a drop-in, of the unit that has these settings.
literal_unit()
{
	command -v systemd-analyze > /dev/null || return 0
	sed 's,@SBINDIR@/[a-z]*,/bin/true,' \
	    "$top/share/systemd/valectl-metrics@.service" > metrics@1.service
	rm -rf metrics@1.service.d
	mkdir metrics@1.service.d
	cp "$1" metrics@1.service.d/override.conf
	atf_check systemd-analyze verify --man=no ./metrics@1.service
}

# literal PAGE FILE: check a text by what its beginning says that it is.
literal()
{
	case $(head -n 1 "$2") in
	pci.*|switch.*|port.*|attach.*)	literal_config "$2" ;;
	memory.size=*)			# of bhyve
		atf_check -s exit:1 grep -v '^[a-z][a-z0-9_.]*=.' "$2" ;;
	\{*)				literal_json "$2" ;;
	\<*)				literal_xml "$2" ;;
	*-\ job_name:*)			literal_yaml "$2" ;;
	\[*\])				literal_unit "$2" ;;
	frr\ *|*===*)			;;	# run by valed_evpn_test; a picture
	valed\ *|systemctl\ *|ip\ *|ifconfig\ *|*_load=*|network0_*|ON_SHUTDOWN=*)
		atf_check sh -n "$2" ;;
	*)	case $1 in
		*.3|*.9)		;;	# C
		*)	atf_fail "$1: what is that: $(head -n 1 "$2")" ;;
		esac
	esac
}

test_case texts "What pages show literally is valid where it is pasted" \
    require.progs python3
texts_body()
{
	local file n=0 page

	for page in "$top"/share/man/man*/*.[1-9]; do
		rm -rf commands texts
		mkdir commands texts
		awk -f "$(atf_get_srcdir)/commands.awk" dir=commands \
		    texts=texts "$page"
		for file in texts/*; do
			[ -e "$file" ] || continue
			literal "$(basename "$page")" "$PWD/$file"
			n=$((n + 1))
		done
	done
	[ $n -gt 15 ] || atf_fail "$n texts"
}

test_case examples "Examples are valid, each as it is, and with the lines that \
are comments" require.progs python3
examples_body()
{
	local examples="$top/share/examples" f

	for f in valed vm1; do
		sed -E 's/^#(pci|port|attach)/\1/' \
		    "$examples/valed/$f.conf" > all.conf
		literal_config "$examples/valed/$f.conf"
		literal_config all.conf
	done
	for f in "$examples"/libvirt/*.xml; do
		literal_xml "$f"
		# virt-xml-validate runs xmllint, which its package recommends only.
		command -v virt-xml-validate > /dev/null &&
		    command -v xmllint > /dev/null || continue
		atf_check -o ignore -e ignore virt-xml-validate "$f" domain
	done
	literal_json "$examples/valed/grafana.json"
	command -v systemd-analyze > /dev/null || return 0
	mkdir valed.service.d
	for f in valed valed-directory; do
		sed 's,@SBINDIR@/[a-z]*,/bin/true,' \
		    "$top/share/systemd/$f.service" > $f.service
	done
	sed 's,^Service=.*,,' "$examples/valed/valed-vm1.socket" \
	    > valed-vm1.socket
	cp valed.service valed-vm1.service
	atf_check systemd-analyze verify --man=no ./valed-vm1.socket
	for f in uplink attach; do
		cp "$examples/valed/$f.conf" valed.service.d
		atf_check systemd-analyze verify --man=no ./valed.service
	done
	echo Unknown=yes >> valed.service.d/attach.conf
	atf_check -e match:"Unknown key" systemd-analyze verify --man=no \
	    ./valed.service
}
