#!/bin/sh
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Run a program with /dev/netmap being valed: netmap-run(1).

summary()
{
	cat <<-END
	usage: netmap-run [-c socket] program [argument ...]

	  -c  valed's control socket, in place of that of the environment,
	      VALE_SOCKET
	  -h, --help  print this
	  --version   print the version
	END
}

usage()
{
	summary >&2
	exit 64
}

while getopts c:h-: opt; do
	case $opt in
	c)	[ -n "$OPTARG" ] || usage
		# The program may change its directory.
		case $OPTARG in
		/*)	VALE_SOCKET=$OPTARG ;;
		*)	VALE_SOCKET=$(pwd)/$OPTARG ;;
		esac
		export VALE_SOCKET ;;
	h)	summary
		exit 0 ;;
	-)	case $OPTARG in
		help)	summary ;;
		version) echo "netmap-run @VERSION@" ;;
		*)	usage ;;
		esac
		exit 0 ;;
	*)	usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage

# Where this script is installed, or in the tree where it was built.
dir=$(dirname "$(readlink -f "$0")")
for lib in "$NETMAP_RUN_LIBRARY" "$dir/../lib/netmap-run/libnetmap-run.so" \
    "$dir/../../lib/libnetmap_run/libnetmap-run.so"; do
	[ ! -r "$lib" ] || break
done
if [ ! -r "$lib" ]; then
	echo "netmap-run: $dir/../lib/netmap-run/libnetmap-run.so: not found" >&2
	exit 69
fi
LD_PRELOAD=$lib${LD_PRELOAD:+:$LD_PRELOAD} exec "$@"
