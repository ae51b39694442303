# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The command line of valed, and what it leaves in the file system.

. "$(atf_get_srcdir)/valed.subr"

# sysexits.h
EX_USAGE=64
EX_UNAVAILABLE=69
EX_OSERR=71
EX_CANTCREAT=73

test_case usage "An invalid option is named on one line of stderr, and no file \
is created; what is invalid, valed_parse_test and its like know"
usage_body()
{
	local ok=1,e1000,vale0:a,path=a.sock

	enter
	refused 64 "-s"
	refused 64 "-x" -x
	refused 64 "more" -s $ok more
	refused 64 "group=no-such-group: no such group" -s $ok \
	    -c x,group=no-such-group
	refused 64 "99: not a listening sequential-packet socket" -s $ok -c fd=99
	refused 64 "0:1:0" -s $ok -s 1,e1000,vale0:b,path=b
}

# access mode option...: the mode and group of the control socket, and of an
# adapter's, are these.
access()
{
	local expected=$1 pid

	shift
	"$VALED" -c "$1" -s 1,e1000,vale0:a,path=a.sock &
	pid=$!
	listening control
	listening a.sock
	atf_check_equal "$expected" \
	    "$(stat -c %a:%g control) $(stat -c %a:%g a.sock)"
	valed_ends $pid
	[ ! -e control ] || atf_fail "valed did not remove the socket"
}

test_case access "The control socket has the group and mode that -c names, and \
others what they had" require.user root require.progs setpriv
access_body()
{
	umask 027
	access "750:0 750:0" control
	access "660:0 750:0" control,mode=0660
	access "750:61100 750:0" control,group=61100
	access "606:61100 750:0" control,mode=606,group=61100
	access "0:4294967294 750:0" control,group=4294967294,mode=0
	access "750:0 750:0" control,admin=61100
	access "750:1 750:0" control,group=$(getent group 1 | cut -d: -f1)
	# A group of which the user is no member.
	for_others
	mkdir mine
	chown 61000:61000 mine
	cd mine
	atf_check -s exit:73 -e match:"-c control: group 61100: Operation not" \
	    setpriv --reuid=61000 --regid=61000 --clear-groups \
	    "$VALED" -c control,group=61100
	[ -z "$(ls -A)" ] || atf_fail "$(ls -A)"
}

test_case help "-h prints the usage on stdout"
help_body()
{
	enter
	for option in -h --help "-v -h" -vh; do
		atf_check -o match:'usage: valed' -o match:'itr=' \
		    "$VALED" $option
	done
	refused 64 "unknown option --helpless" --helpless
	refused 64 "unknown option -x" -vx
}

test_case in_use "A path that valed cannot use is named and left unchanged"
in_use_body()
{
	enter
	"$VALED" -s 1,e1000,vale0:a,path=a.sock > ../out 2>&1 &
	pid=$!
	listening a.sock
	refused 73 "path=none/a.sock: its directory does not exist" \
	    -s 1,e1000,vale0:a,path=none/a.sock
	# The second socket is refused: the first must be removed.
	refused $EX_UNAVAILABLE "path=a.sock" -s 1,e1000,vale0:b,path=b.sock \
	    -s 2,e1000,vale0:a,path=a.sock
	refused $EX_UNAVAILABLE "path=./a.sock" -s 1,e1000,vale0:b,path=./a.sock
	refused $EX_UNAVAILABLE "path=./b.sock" \
	    -s 1,e1000,vale0:b,path=b.sock -s 2,e1000,vale0:a,path=./b.sock
	echo data > file
	mkdir dir
	refused $EX_CANTCREAT "path=file" -s 1,e1000,vale0:b,path=file
	atf_check -o inline:'data\n' cat file
	refused $EX_CANTCREAT "path=dir" -s 1,e1000,vale0:b,path=dir
	refused $EX_CANTCREAT "path=no/b" -s 1,e1000,vale0:b,path=no/b
	# Not enough descriptors.  How many are inherited is not known.
	for n in $(seq 6 64); do
		(ulimit -n $n; "$VALED" -s 1,e1000,vale0:b,path=b.sock) \
		    > ../short 2>&1
		case "$?:$(cat ../short)" in
		"$EX_OSERR:valed: descriptors: "*)
			short=yes ;;
		"$EX_UNAVAILABLE:valed: b: "*)
			break ;;
		esac
	done
	[ "${short:-no}" = yes ] || atf_fail "the reserve needs descriptors"
	[ $n -lt 64 ] || atf_fail "an adapter needs descriptors"
	[ ! -e b.sock ] || atf_fail "valed did not remove b.sock"
	valed_ends $pid
	[ ! -e a.sock ] || atf_fail "valed did not remove a.sock"
}

test_case stale "valed removes its sockets when it exits, and replaces stale \
ones"
stale_body()
{
	local s

	for s in TERM INT; do
		"$VALED" -s 1,e1000,vale0:a,path=a.sock &
		listening a.sock
		kill -$s $!
		wait $! || atf_fail "exit status $? after SIG$s"
		[ ! -e a.sock ] || atf_fail "a.sock not removed after SIG$s"
	done
	# Once it serves, valed's sockets are removed even after kill -9.
	"$VALED" -s 1,e1000,vale0:a,path=a.sock &
	pid=$!
	python_case protocol serves
	kill -KILL $pid
	wait $pid
	wait_until "removal of a.sock" [ ! -e a.sock ] ||
	    atf_fail "a.sock not removed after SIGKILL"
	# A stale socket: no process listens.
	atf_check python3 -c 'import socket
socket.socket(socket.AF_UNIX).bind("a.sock")'
	"$VALED" -s 1,e1000,vale0:a,path=a.sock > out 2>&1 &
	pid=$!
	python_case protocol serves
	# Another file has replaced the socket: valed does not remove it.
	rm a.sock
	echo other > a.sock
	kill $pid
	wait $pid
	atf_check -o inline:'other\n' cat a.sock
}

test_case lock "A lock on the sockets' directory does not keep valed from \
starting; a lock file that others can lock is refused" require.progs python3
lock_body()
{
	local i n pids=

	enter
	# What any user who may read the directory can do.
	python3 -c 'import fcntl, os, time
fcntl.flock(os.open(".", os.O_RDONLY), fcntl.LOCK_EX)
open("../held", "w").close()
time.sleep(600)' &
	holder=$!
	wait_until "the lock" [ -e ../held ] || atf_fail "no lock"
	"$VALED" -s 1,e1000,vale0:a,path=a.sock &
	pid=$!
	listening a.sock
	kill $holder
	valed_ends $pid
	atf_check ls -A

	# A file that another user can open, and lock.
	touch a.sock.lock
	chmod 644 a.sock.lock
	refused $EX_CANTCREAT "a.sock.lock" -s 1,e1000,vale0:a,path=a.sock
	rm a.sock.lock
	ln -s /dev/null a.sock.lock
	refused $EX_CANTCREAT "a.sock.lock" -s 1,e1000,vale0:a,path=a.sock
	rm a.sock.lock
	mkfifo -m 600 a.sock.lock
	refused $EX_CANTCREAT "a.sock.lock" -s 1,e1000,vale0:a,path=a.sock
	rm a.sock.lock
	# Only root can open another user's, and must not take its lock.
	if [ $(id -u) -eq 0 ]; then
		(umask 077; touch a.sock.lock)
		chown 65534 a.sock.lock
		refused $EX_CANTCREAT "a.sock.lock: not a lock file of this" \
		    -s 1,e1000,vale0:a,path=a.sock
		rm a.sock.lock
	fi
	# A killed valed's.
	(umask 077; touch a.sock.lock)

	# Of several that start at once, one gets the name.
	for i in 1 2 3 4 5 6 7 8; do
		"$VALED" -s 1,e1000,vale0:a,path=a.sock 2>../err.$i &
		pids="$pids $!"
	done
	wait_until "seven refused" sh -c \
	    "[ \$(cat ../err.* | grep -c 'socket in use') -eq 7 ]" ||
	    atf_fail "not seven refused"
	python_case protocol serves
	kill $pids 2>/dev/null
	n=0
	for pid in $pids; do
		wait $pid && n=$((n + 1))
	done
	atf_check_equal 1 $n
	atf_check ls -A
}

test_case counters "-v and SIGUSR1 print the counters of each VM"
counters_body()
{
	# Ports of the same name on two switches are printed with the switch.
	"$VALED" -v -s 1,e1000,vale0:a,path=a -s 2,e1000,vale1:a,path=b \
	    -s 3,e1000,vale1:c,path=c > out &
	pid=$!
	listening c
	wait_until "a line of -v" grep '^c tx 0 frames' out ||
	    atf_fail "-v prints nothing"
	kill -USR1 $pid
	wait_until "the last counter" grep '^c port_rx_drop_full 0$' out ||
	    atf_fail "SIGUSR1 prints nothing"
	kill $pid
	wait $pid
	for vm in vale0:a vale1:a c; do
		atf_check -o ignore grep "^$vm tx_frames 0\$" out
		atf_check -o ignore grep "^$vm intr_sent 0\$" out
		atf_check -o ignore grep "^$vm port_tx_drop_nodest 0\$" out
		atf_check -o ignore grep "^$vm connects 0\$" out
	done
	# No other lines, and no line twice.
	atf_check -s exit:1 grep -Ev \
	    '^[^ ]+ ([a-z0-9_]+ [0-9]+|tx 0 frames .*)$' out
	grep -v ' tx ' out | cut -d' ' -f1,2 | sort | uniq -d > twice
	atf_check cat twice
}

test_case sandbox "Every thread is sandboxed; memory stays below 32 MB" \
    require.progs python3
sandbox_body()
{
	grep -q __tsan_init "$VALED" &&
	    atf_skip "ThreadSanitizer's own thread keeps its rights"
	python_case sandbox sandbox
}
