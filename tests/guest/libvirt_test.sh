# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The domains of share/examples/libvirt, booted by libvirt, without a daemon: one
# virsh(1) has its driver for QEMU, and reads commands from a pipe.  In the
# domains the test guest's kernel replaces the disk, and emulation KVM; what the
# adapter takes is as it is there.  The second one's machine is q35, as
# virt-install(1) makes it, with an e1000e, which is in a valed of its own, as with
# share/examples/valed/vm1.conf, and its port on the switch of the first one's.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"
. "$(atf_get_srcdir)/restart.subr"

# What the domain of a file is here, with this name for its files.
domain()
{
	local name=$2

	python3 - "$1" <<-END
	import re, sys
	text = open(sys.argv[1]).read()

	def sub(pattern, new):
	    global text
	    text, n = re.subn(pattern, lambda m: new, text, flags=re.S)
	    assert n > 0, pattern

	sub('type="kvm"', 'type="qemu"')
	sub('<memory unit="MiB">[0-9]*', '<memory unit="MiB">$GUEST_MB')
	sub('<vcpu>2', '<vcpu>1')
	sub('<boot dev="hd"/>', '<kernel>$KERNEL</kernel>'
	    '<initrd>$INITRAMFS</initrd><cmdline>console=ttyS0 loglevel=5 '
	    'panic=-1 mitigations=off nokaslr no_timer_check nowatchdog '
	    'random.trust_cpu=on</cmdline>')
	sub('<disk.*</disk>', '')
	sub('<emulator>.*</emulator>', '<emulator>$QEMU</emulator>')
	sub('<serial type="pty"/>', '<serial type="file">'
	    '<source path="$PWD/$name.log"/><target port="0"/></serial>'
	    '<serial type="unix"><source mode="bind" path="$PWD/$name.ctl"/>'
	    '<target port="1"/></serial>')
	sub('<console type="pty"/>', '')
	sub('/run/valed/', '$PWD/')
	# With 20 other processes an answer takes longer: guest.subr.
	sub('"driver":"vfio-user-pci"',
	    '"driver":"vfio-user-pci","x-msg-timeout":60000')
	if "$name" == "vm2":
	    sub('machine="pc"', 'machine="q35"')
	    sub('"pci.0"', '"pcie.0"')
	if not $huge:
	    text = re.sub('<hugepages>.*</hugepages>', '', text, flags=re.S)
	print(text)
	END
}

# virsh_start: starts virsh(1) in a mount namespace in which libvirt's user
# exists, with its state in the directory root.
virsh_start()
{
	mkdir -p root/etc
	cat > root/etc/qemu.conf <<-END
	user = "root"
	group = "root"
	security_driver = "none"
	stdio_handler = "file"
	namespaces = []
	remember_owner = 0
	cgroup_controllers = []
	END
	mkfifo virsh.in
	unshare -m --propagation private sh -c "mount --bind passwd /etc/passwd
	    mount --bind group /etc/group
	    exec virsh -c 'qemu:///embed?root=$PWD/root'" \
	    > virsh.out 2>&1 < virsh.in &
	echo $! > virsh.pid
	exec 3> virsh.in
	virsh_n=0
}

# virsh COMMAND: has virsh(1) do that, which must succeed, and prints what it
# wrote.
virsh()
{
	local before=$(wc -l < virsh.out)

	virsh_n=$((virsh_n + 1))
	printf '%s\necho end %d\n' "$1" $virsh_n >&3
	wait_until "virsh" grep "^end $virsh_n\$" virsh.out ||
	    atf_fail "virsh does not answer"
	tail -n +$((before + 1)) virsh.out > virsh.new
	cat virsh.new
	! grep -q '^error:' virsh.new || atf_fail "$(grep ^error: virsh.new)"
}

# start NAME: starts the domain.
start()
{
	virsh "start $1"
	cp root/run/qemu/$1.pid $1.pid
}

# plugged: QEMU has let go of vm1's adapter, and takes that again.
plugged()
{
	virsh "qemu-monitor-command vm1 '{\"execute\": \"device_add\", \
\"arguments\": $(valed_device "$PWD/vm1" \
	    '"id":"net1","bus":"pci.0","addr":"0x10"')}'" &&
	    grep -q '^{"return"' virsh.new
}

# replug: unplugs vm1's adapter and plugs that again, as valed(8) says.
replug()
{
	virsh "qemu-monitor-command vm1 '{\"execute\": \"device_del\", \
\"arguments\": {\"id\": \"net1\"}}'"
	wait_until "the adapter" plugged || atf_fail "not plugged"
	on vm1 "wait_until eth0 [ -d /sys/class/net/eth0 ] && address 1"
}

# other: vm1 cannot have vm2's adapter, and goes on.
other()
{
	virsh "qemu-monitor-command vm1 '{\"execute\": \"device_add\", \
\"arguments\": $(valed_device "$PWD/vm2" '"id":"other","bus":"pci.0"')}'"
	atf_check -o ignore grep '"error".*Device or resource busy' virsh.new
}

# booted: both guests boot, and reach each other.
booted()
{
	vm_wait vm1 vm2 || atf_fail "the guests do not start"
	up 1 2
	pings vm1 10.0.0.2
	pings vm2 fd00::1
}

guest_case domain "libvirt boots the domains of share/examples/libvirt, and \
their guests reach each other, also after what virsh(1) does with them" \
    require.user root require.progs "virsh unshare python3"
domain_body()
{
	local examples huge=0

	setup
	examples=$(atf_get_srcdir)/../../../share/examples/libvirt
	unshare -m true || atf_skip "no mount namespaces"
	for f in passwd group; do
		cp /etc/$f $f
		grep -q ^libvirt-qemu: $f ||
		    echo "libvirt-qemu:x:64055:64055::/:/bin/false" >> $f
	done
	grep -q ^kvm: group || echo "kvm:x:64056:" >> group
	# libvirt takes them from where they are mounted.
	if grep -q ' hugetlbfs ' /proc/mounts && [ $GUEST_MB -lt \
	    $(awk '/^HugePages_Free/ { print 2 * $2 }' /proc/meminfo) ]; then
		huge=1
	else
		echo "no huge pages: vm2-hugepages.xml is booted without"
	fi

	valed_start -R -c control -s 1,e1000,vale0:vm1,path=vm1.sock ||
	    atf_fail "no valed"
	"$VALED" -R -s 2,e1000e,vale0:vm2,path=vm2.sock,control=$PWD/control \
	    < /dev/null > valed2.log 2>&1 &
	echo $! > valed2.pid
	wait_until "vm2.sock" [ -S vm2.sock ] || atf_fail "$(cat valed2.log)"
	domain $examples/vm1.xml vm1 > vm1.xml || atf_fail "vm1.xml"
	domain $examples/vm2-hugepages.xml vm2 > vm2.xml || atf_fail "vm2.xml"
	virsh_start
	for f in vm1 vm2; do
		virsh "define $PWD/$f.xml"
		start $f
	done
	booted
	# Where the XML says.
	for f in vm1 vm2; do
		on $f readlink /sys/class/net/eth0/device > place
		atf_check -o ignore grep '00:10\.0$' place
	done
	for f in vm1 vm2; do
		virsh "suspend $f"
		restart
		virsh "resume $f"
		pings $f 10.0.0.$((3 - ${f#vm}))
	done
	other
	replug
	pings vm2 10.0.0.1
	# The second one's process finds its adapter free.
	virsh "destroy vm2"
	start vm2
	virsh "reset vm1"
	booted
	for f in vm1 vm2; do
		virsh "destroy $f"
	done
	rm -f vm1.pid vm2.pid
	echo quit >&3
	exec 3>&-
	wait $(cat virsh.pid)
	rm virsh.pid
	kill $(cat valed2.pid)
	wait $(cat valed2.pid) || atf_fail "$(cat valed2.log)"
	rm valed2.pid
	valed_stop || atf_fail "valed ended with status $?: $(cat valed.log)"
}
