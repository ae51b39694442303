#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# upstream.sh [-x command] source
#
# Lays this project into a FreeBSD source tree, as a series of commits to the
# branch that is checked out in `source', a clean clone of FreeBSD's repository.
# Each commit builds; -x runs a command in the source tree after each, and ends
# the series if it fails.  The author is the user of git(1) there.
# docs/upstream.md describes the series.
#
# The files are this tree's.  What they need of FreeBSD's own files, mostly
# lists in makefiles, is edited by the functions below, which fail if a file is
# not as they expect.

set -eu
LC_ALL=C
export LC_ALL

die()
{
	echo "upstream.sh: $*" >&2
	exit 1
}

usage()
{
	echo "usage: upstream.sh [-x command] source" >&2
	exit 2
}

check=:
while getopts x: option; do
	case $option in
	x)	check=$OPTARG ;;
	*)	usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || usage
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cd "$1" || exit 1
for f in usr.sbin/bhyve/bhyverun.c sys/dev/netmap/netmap_vale.c \
    share/man/man4/Makefile; do
	[ -f $f ] || die "$1: not a FreeBSD source tree: no $f"
done
git rev-parse -q --verify HEAD > /dev/null || die "$1: not a git repository"
[ -z "$(git status --porcelain)" ] || die "$1: has changes"

# fail MESSAGE: end; commits made so far stay, other changes do not.
fail()
{
	git reset -q --hard
	git clean -qfd
	die "$@"
}

# put DIRECTORY FILE...: copy files of this tree.  bhyve is compiled with the
# kernel's headers at hand, so its files take the kernel's names (atomic(9),
# KASSERT(9)) from a header of another name.
put()
{
	local dir=$1 f

	shift
	mkdir -p "$dir"
	for f; do
		cp "$top/$f" "$dir/"
		# The reasons of tests/mutants stay here.
		sed -i.orig -e '\,^[[:blank:]]*/\* mutants.* \*/$,d' \
		    -e 's, /\* mutants.* \*/$,,' "$dir/${f##*/}"
		[ "$dir" != usr.sbin/bhyve ] ||
			sed -i.orig -e 's,<sys/systm.h>,"kernel_names.h",' \
			    "$dir/${f##*/}"
		rm -f "$dir/${f##*/}.orig"
	done
}

# edit FILE EXPRESSION...: apply sed(1) expressions, each of which must match.
edit()
{
	local file=$1 expression

	shift
	for expression; do
		sed -e "$expression" "$file" > "$file.new"
		! cmp -s "$file" "$file.new" ||
			fail "$file: nothing matches $expression"
		mv "$file.new" "$file"
	done
}

# list FILE VARIABLE WORD...: insert words in a makefile's sorted list, a word a
# line, which begins where the variable is set first.
list()
{
	local file=$1 variable=$2 word

	shift 2
	for word; do
		awk -v variable="$variable" -v word="$word" '
		function entry(line) {
			sub(/^[^ \t]*=/, "", line)
			gsub(/[ \t\\]/, "", line)
			return (line)
		}
		# As the line `like`, which ends with a backslash or not.
		function add(like, last,   indent, gap) {
			match(like, /^[ \t]*/)
			indent = substr(like, 1, RLENGTH)
			gap = " "
			if (like ~ /\t\\$/)
				for (gap = "\t"; 8 + length(word) + \
				    8 * length(gap) < 32; )
					gap = gap "\t"
			print indent word (last ? "" : gap "\\")
			done = 1
		}
		!on && $0 ~ "^" variable "[+?]?=.*\\\\$" { on = 1 }
		on && !done {
			if ($0 !~ /=/ && entry($0) > word)
				add($0, 0)
			else if ($0 !~ /\\$/) {
				print $0 " \\"
				add(previous, 1)
				next
			}
			previous = $0
		}
		{ print }
		END { exit !done }' "$file" > "$file.new" ||
			fail "$file: no list $variable"
		mv "$file.new" "$file"
	done
}

# series SUBJECT: commit all changes; the message's body is standard input.
series()
{
	git add -A
	{ echo "$1"; echo; cat; } | git commit -q -F -
	echo "$(git log -1 --format=%h) $1"
	sh -c "$check" < /dev/null || die "$1: the command failed"
}

# sources MAKEFILE VARIABLE: print the files in a list of this tree.
sources()
{
	awk -v variable="$2" '
		$1 == variable "=" || index($1, variable "=") == 1 { on = 1 }
		on {
			for (i = 1; i <= NF; i++)
				if ($i ~ /\.c$/)
					print $i
			on = /\\$/
		}' "$top/$1"
}

model=$(sources usr.sbin/bhyve/e82545.mk E82545_SRCS)
csb=$(echo "$model" | grep e82545_csb)
model=$(echo "$model" | grep -v e82545_csb)
device=$(sources usr.sbin/bhyve/e82545.mk PCI_E82545_SRCS)
headers=$(cd "$top/usr.sbin/bhyve" && ls e825*.h)

in_bhyve()
{
	local f

	for f; do
		echo usr.sbin/bhyve/$f
	done
}

# 1
put sys/sys sys/sys/counter_table.h sys/sys/fast_path.h
put usr.sbin/bhyve lib/libframe/frame.h lib/libframe/frame_cursor.h \
    lib/libframe/frame_sum.h lib/libframe/frame_cut.h lib/libframe/frame_cut.c \
    lib/libframe/frame_hdr.h lib/libframe/frame_hdr.c \
    lib/libframe/frame_host.h lib/libframe/frame_host.c \
    lib/libframe/frame_vnet.h lib/libframe/frame_vnet.c \
    lib/libframe/frame_port.h lib/libframe/frame_port.c \
    $(in_bhyve net_port.h net_port.c)
cp "$top/compat/kern/sys/systm.h" usr.sbin/bhyve/kernel_names.h
edit usr.sbin/bhyve/kernel_names.h \
    's/_COMPAT_KERN_SYS_SYSTM_H_/_KERNEL_NAMES_H_/'
list usr.sbin/bhyve/Makefile SRCS frame_cut.c frame_hdr.c frame_host.c \
    frame_port.c frame_vnet.c net_port.c
series "bhyve: add frame ports, which pass batches of frames" <<EOF
A network backend sends and receives one frame a call, so that each costs a
system call.  A frame port is an interface between an adapter and a backend
that sends any number of frames with one flush, shows received frames where
they lie, and passes what is known of checksums and segmentation.  Over a
backend without a port of its own frames pass one by one, as before.

Nothing uses it yet.
EOF

# 2
put usr.sbin/bhyve lib/libvale/libvale.h lib/libvale/vale_frame_port.h \
    lib/libvale/vale_frame_port.c lib/libvale/vale_name.h \
    lib/libvale/vale_name.c lib/libvale/vale_netmap.c \
    $(in_bhyve net_backend_vale.c vale_sender.c vale_sender.h)
edit usr.sbin/bhyve/net_backend_netmap.c \
    '/^static struct net_backend vale_backend/,/^};/d' \
    '/DATA_SET(net_backend_set, vale_backend)/d'
list usr.sbin/bhyve/Makefile SRCS net_backend_vale.c vale_frame_port.c \
    vale_name.c vale_netmap.c vale_sender.c
series "bhyve: a backend for VALE of its own, which sends in batches" <<EOF
net_backend_netmap.c syncs for each frame.  The new backend has a frame port:
it describes a batch of frames by slots, those with NS_INDIRECT in guest memory
itself, and syncs once.  Over virtio-net it works as the old one does.
EOF

# 3
put usr.sbin/bhyve $(in_bhyve $model $headers e82545_provider.d $device \
    pci_e82545_opts.h pci_msix_pending.h) tools/upstream/e82545_csb_none.c
put sys/dev/e1000 sys/dev/e1000/e82545_reg.h sys/dev/e1000/e82574_reg.h
put share/man/man4 share/man/man4/dtrace_e82545.4
# Without the CSB: see e82545_csb_none.c.
edit usr.sbin/bhyve/pci_e82545.c \
    's/E82545_CSB_ON;/E82545_CSB_OFF;/'
edit usr.sbin/bhyve/pci_e82545_opts.c 's/"itr_min", "csb",/"itr_min",/'
list usr.sbin/bhyve/Makefile SRCS $model e82545_csb_none.c \
    pci_e82545_opts.c pci_msix_pending.c
edit usr.sbin/bhyve/Makefile '/^\.include <bsd\.prog\.mk>/i\
.if ${MK_DTRACE} != "no"\
SRCS+=	e82545_provider.d\
.else\
CFLAGS+=-DWITHOUT_DTRACE\
.endif\

'
list share/man/man4/Makefile _dtrace_provs dtrace_e82545.4
edit usr.sbin/bhyve/bhyve.8 '/^\.It [CL][im] uart$/i\
.It Cm e1000e\
Intel 82574L network interface.'
series "bhyve: e1000: a model with interrupt moderation, and batches" <<EOF
The model of the 82545EM is now apart from bhyve, with which pci_e82545.c
connects it.  It sends and receives in batches through a frame port, honours
ITR, RADV, RDTR, TADV and TIDV, for which it has a timer in nanoseconds, and
completes checksums in the pass that copies.  The options itr= and itr_min= set
the least interval between interrupts for guests that set none or a small one.
SIGINFO prints counters; probes are in dtrace_e82545(4).

With other tables the model is an 82574L, which is the device e1000e: guests
that no longer have a driver for the 82545EM have one for it, and with MSI-X
they handle an interrupt without reading a register.
EOF

# 4
put usr.sbin/bhyve $(in_bhyve $csb pci_e82545.c pci_e82545_opts.c)
put usr.sbin/bhyve share/man/man8/bhyve-e1000.8
put share/man/man9 share/man/man9/paravirt_csb.9
rm usr.sbin/bhyve/e82545_csb_none.c
edit usr.sbin/bhyve/Makefile '/e82545_csb_none.c/d' \
    's/^\(MAN=.*bhyve\.8\)/\1 bhyve-e1000.8/'
list usr.sbin/bhyve/Makefile SRCS $csb
edit usr.sbin/bhyve/bhyve.8 '/^\.Sh SEE ALSO/,$ {
/^\.Xr bhyvectl 8 ,/i\
.Xr bhyve-e1000 8 ,
}'
list share/man/man9/Makefile MAN paravirt_csb.9
series "bhyve: e1000: add the communication status block" <<EOF
A driver that knows <net/paravirt.h> gives the adapter a page of memory in which
both sides publish their ring indices and whether they wait.  A register write
or an interrupt is then needed only if the other side sleeps.  The option csb=
turns it off.
EOF

# 5
put sys/dev/netmap $(cd "$top" && ls sys/dev/netmap/*.[ch])
put sys/modules/vale_learn sys/modules/vale_learn/Makefile
put share/man/man4 share/man/man4/vale_learn.4 share/man/man4/dtrace_vale.4
list sys/modules/Makefile SUBDIR vale_learn
list share/man/man4/Makefile MAN vale_learn.4
list share/man/man4/Makefile _dtrace_provs dtrace_vale.4
series "netmap: vale_learn: counters, ageing and limits for VALE" <<EOF
A module that replaces the learning function of VALE switches by one whose
addresses age and can be listed, limited and bound to ports, with counters for
each port.
EOF

# 6
put sys/dev/e1000 sys/dev/e1000/em_pv.c sys/dev/e1000/lem_spin.c \
    sys/dev/e1000/lem_spin.h
sh "$top/sys/dev/e1000/em_pv.sh" sys/dev/e1000/if_em.c \
    > sys/dev/e1000/if_em.c.new || fail "sys/dev/e1000/if_em.c: not changed"
mv sys/dev/e1000/if_em.c.new sys/dev/e1000/if_em.c
edit sys/modules/em/Makefile 's/^CORE_SRC = if_em\.c .*/& em_pv.c lem_spin.c/'
edit sys/conf/files '/^dev\/e1000\/e1000_osdep\.c/{
N
a\
dev/e1000/em_pv.c\t\toptional em \\\
	compile-with "${NORMAL_C} -I$S/dev/e1000"\
dev/e1000/lem_spin.c\t\toptional em \\\
	compile-with "${NORMAL_C} -I$S/dev/e1000"
}'
put share/man/man4 share/man/man4/dtrace_lem.4
edit share/man/man4/dtrace_lem.4 's/em_pv(4)/em(4)/' 's/em_pv 4/em 4/' \
    '/^The module has the probes/,/WITHOUT_DTRACE/d'
list share/man/man4/Makefile _dtrace_provs dtrace_lem.4
# The variables, as em_pv(4) describes them for a module.
awk '/^\.Sh / { on = $2 == "SYSCTL" }
    on && /^The tunables of/ { skip = 1 }
    skip && /^\.Pp/ { skip = 0; next }
    /^These variables can be set/ {
	sub(/^These/, "On adapters that a hypervisor emulates, these")
    }
    /^1: use the CSB\.$/ {
	print "1: use the communication status block (CSB,"
	print ".Xr paravirt_csb 9 ) ."
	next
    }
    on && !skip { sub(/^\.Xr em 4( |$)/, "the driver"); print
    }' "$top/share/man/man4/em_pv.4" > em.section
edit share/man/man4/em.4 '/^\.Sh LOADER TUNABLES/,/^\.Sh FILES/{
/^\.Sh FILES/{
r em.section
N
}
}' '/^\.Xr arp 4 ,/a\
.Xr dtrace_lem 4 ,'
rm em.section
series "em: send combining, the CSB and polling in virtual machines" <<EOF
An adapter that a hypervisor emulates gets a class of its own, which inherits
em(4)'s methods and functions of the rings: it sends several packets with one
register write, uses the communication status block if the adapter offers it,
polls if asked to, and bounds the processor's share of reception.  Its knobs are
dev.em.N.{itr,sc,csb,poll,rx_share}.  In if_em.c four lines change; nothing
changes for all other adapters, nor in iflib(4).
EOF
