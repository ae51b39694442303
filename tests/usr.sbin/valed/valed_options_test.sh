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
is created"
usage_body()
{
	local long=$(printf %0200d 0) ok=1,e1000,vale0:a,path=a.sock

	enter
	refused 64 "-s"
	refused 64 "-x" -x
	refused 64 "-s" -s
	refused 64 "more" -s $ok more
	refused 64 "-s, -a"
	refused 64 "port used twice" -s $ok -a vale0:a
	refused 64 "interface used twice" -a vale0:e0 -a vale1:e0
	while read -r option pattern; do
		refused 64 "$pattern" -s $ok -a "$option"
	done <<END
eth0				vale
vale0				vale0
vale0:				vale0
vale0:a/b			vale0:a/b
vale0:a123456789012345		a123456789012345: not an interface
vale0:e0,kind=			kind=
vale0:e0,kind=raw		raw: no such kind
vale0:e0,			unknown option
vale0:e0,speed=1		speed
vale0:e0,kind=packet,kind=packet	no such kind
END
	refused 64 "longer than 107 bytes" -s $ok -c $(printf %0108d 0)
	refused 64 "longer than 511 bytes" -s $ok -c x,$(printf %0600d 0)
	refused 64 "one path is needed" -s $ok -c x -c y
	refused 64 "one path is needed" -s $ok -c ""
	while read -r option pattern; do
		refused 64 "$pattern" -s $ok -c "$option"
	done <<END
,group=1			one path is needed
x,				unknown option ""
x,speed=1			unknown option "speed=1"
x,groups=1			unknown option "groups=1"
x,group				group=: the value is missing
x,group=			group=: the value is missing
x,group=no-such-group		group=no-such-group: no such group
x,group=-1			group=-1: no such group
x,group=4294967295		4294967295: not the number of a group
x,group=99999999999		99999999999: not the number of a group
x,group=1,group=1		group= twice
x,admin=1,admin=2		admin= twice
x,admin=no-such-group		admin=no-such-group: no such group
x,mem=0M			mem=0M: not a size from 1M to 1T
x,mem=1G,mem=1G			mem= twice
x,mem=				mem=: the value is missing
x,user_mem=2T			user_mem=2T: not a size from 1M to 1T
x,user_mem=1G,user_mem=2G	user_mem= twice
x,user_mem=1GB			user_mem=1GB: not a size
x,mode=				mode=: the value is missing
x,mode=1777			mode=1777: not an octal number up to 777
x,mode=4660			mode=4660: not an octal number up to 777
x,mode=678			mode=678: not an octal number up to 777
x,mode=-1			mode=-1: not an octal number up to 777
x,mode=0x1			mode=0x1: not an octal number up to 777
x,mode=7777777777777777777777777	not an octal number up to 777
x,mode=660,mode=660		mode= twice
fd=no				no such name in LISTEN_FDNAMES
fd=99				99: not a listening sequential-packet socket
END
	while read -r option pattern; do
		refused 64 "$pattern" -s $ok -s "$option"
		refused 64 "$pattern" -s "$option"
	done <<END
,e1000,vale0:b,path=b.sock		slot
x,e1000,vale0:b,path=b.sock		slot
32,e1000,vale0:b,path=b.sock		slot
-2,e1000,vale0:b,path=b.sock		slot
2:8,e1000,vale0:b,path=b.sock		slot
256:2:0,e1000,vale0:b,path=b.sock	slot
0:2:0:0,e1000,vale0:b,path=b.sock	slot
2:,e1000,vale0:b,path=b.sock		slot
2x,e1000,vale0:b,path=b.sock		slot
99999999999,e1000,vale0:b,path=b.sock	slot
2					device
2,					device
2,virtio-net,vale0:b,path=b.sock	virtio-net
2,e1000x,vale0:b,path=b.sock		e1000x
2,e1000					port
2,e1000,				port
2,e1000,path=b.sock			port
2,e1000,vale0,path=b.sock		vale0
2,e1000,vale0:,path=b.sock		vale0
2,e1000,vale0:b/c,path=b.sock		vale0:b/c
2,e1000,vale0:b:c,path=b.sock		vale0:b:c
2,e1000,vale0:$long,path=b.sock		vale0:0000
2,e1000,eth0,path=b.sock		eth0
2,e1000,tap$long,path=b.sock		tap0000
2,e1000,vale0:b				path=
2,e1000,vale0:b,path=			path=
2,e1000,vale0:b,path			path
2,e1000,vale0:b,path=$long		path=0000
2,e1000,vale0:b,path=b.sock,path=c	path=
2,e1000,vale0:b,path=b.sock,		unknown
2,e1000,vale0:b,path=b.sock,,itr=1	unknown
2,e1000,vale0:b,path=b.sock,speed=1	speed
2,e1000,vale0:b,path=b.sock,backend=x	backend
2,e1000,vale0:b,path=b.sock,mac=		mac=
2,e1000,vale0:b,path=b.sock,mac=1		mac=1
2,e1000,vale0:b,path=b.sock,mac=02:00:00:00:00	mac=02
2,e1000,vale0:b,path=b.sock,mac=02:00:00:00:00:01:02	mac=02
2,e1000,vale0:b,path=b.sock,mac=02:00:00:00:00:0g	mac=02
2,e1000,vale0:b,path=b.sock,mac=01:00:00:00:00:01	mac=01
2,e1000,vale0:b,path=b.sock,mac=00:00:00:00:00:00	mac=00
2,e1000,vale0:b,path=b.sock,itr=65536	itr=65536
2,e1000,vale0:b,path=b.sock,itr=-1	itr=-1
2,e1000,vale0:b,path=b.sock,itr=0x10	itr=0x10
2,e1000,vale0:b,path=b.sock,itr=1s	itr=1s
2,e1000,vale0:b,path=b.sock,itr=1,itr=2	itr=
2,e1000,vale0:b,path=b.sock,itr_min=65536	itr_min=65536
2,e1000,vale0:b,path=b.sock,itr_min=	itr_min=
2,e1000,vale0:b,path=b.sock,itr_min=1,itr_min=2	itr_min=
2,e1000,vale0:b,path=b.sock,csb=	csb=
2,e1000,vale0:b,path=b.sock,csb=1	csb=1
2,e1000,vale0:b,path=b.sock,csb=on,csb=on	csb=
2,e1000,vale0:b,path=b.sock,direct=yes	direct=yes
2,e1000,vale0:b,path=b.sock,mem=0M	mem=0M
2,e1000,vale0:b,path=b.sock,mem=M	mem=M
2,e1000,vale0:b,path=b.sock,mem=512	mem=512
2,e1000,vale0:b,path=b.sock,mem=512K	mem=512K
2,e1000,vale0:b,path=b.sock,mem=1GB	mem=1GB
2,e1000,vale0:b,path=b.sock,mem=-1G	mem=-1G
2,e1000,vale0:b,path=b.sock,mem=1025G	mem=1025G
2,e1000,vale0:b,path=b.sock,mem=16777217T	mem=16777217T
2,e1000,vale0:b,path=b.sock,mem=99999999999999999999M	mem=9999
2,e1000,vale0:b,path=b.sock,rate=	rate=
2,e1000,vale0:b,path=b.sock,rate=1	rate=1
2,e1000,vale0:b,path=b.sock,rate=1g	rate=1g
2,e1000,vale0:b,path=b.sock,rate=-1bit/s	rate=-1bit
2,e1000,vale0:b,path=b.sock,rate=1.5Mbit/s	rate=1.5
2,e1000,vale0:b,path=b.sock,rate=1Tbit/s	rate=1T
2,e1000,vale0:b,path=b.sock,rate=1001Gpkt/s	rate=1001G
2,e1000,vale0:b,path=b.sock,rate=126GByte/s	rate=126G
2,e1000,vale0:b,path=b.sock,rate=99999999999999999999pkt/s	rate=9999
2,e1000,vale0:b,path=b.sock,rate=1bit/s,rate=1bit/s	rate=
2,e1000,vale0:b,path=b.sock,burst=64K	without rate=
2,e1000,vale0:b,path=b.sock,rate=1Mbit/s,burst=0	burst=0
2,e1000,vale0:b,path=b.sock,rate=1Mbit/s,burst=513M	burst=513M
2,e1000,vale0:b,path=b.sock,rate=1Mbit/s,burst=64KB	burst=64KB
2,e1000,tap9,path=b.sock,rate=1Mbit/s	not a port
2,e1000,vale0:b,path=b.sock,limit=5121	limit=5121
2,e1000,vale0:b,path=b.sock,limit=	limit=
2,e1000,vale0:b,path=b.sock,weight=0	weight=0
2,e1000,vale0:b,path=b.sock,weight=101	weight=101
2,e1000,vale0:b,path=b.sock,private=yes	private=yes
2,e1000,tap9,path=b.sock,limit=1	not a port
2,e1000,tap9,path=b.sock,weight=2	not a port
2,e1000,tap9,path=b.sock,private=off	not a port
2,e1000,vale0:b,path=b.sock,mtu=67	mtu=67
2,e1000,vale0:b,path=b.sock,mtu=16111	mtu=16111
2,e1000,vale0:b,path=b.sock,mtu=no	mtu=no
END
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
	kill $pid
	wait $pid || atf_fail "valed failed"
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
	mkdir mine
	chown 61000:61000 mine
	cd mine
	atf_check -s exit:73 -e match:"-c control: group 61100: Operation not" \
	    setpriv --reuid=61000 --regid=61000 --clear-groups \
	    "$VALED" -c control,group=61100
	[ -z "$(ls -A)" ] || atf_fail "$(ls -A)"
}

test_case twice "A slot, port, path or MAC address given twice is refused"
twice_body()
{
	local m=mac=02:00:00:00:00:01

	enter
	refused 64 "0:1:0" -s 1,e1000,vale0:a,path=a -s 1,e1000,vale0:b,path=b
	refused 64 "0:1:2" -s 1:2,e1000,vale0:a,path=a \
	    -s 0:1:2,e1000,vale0:b,path=b
	refused 64 "vale0:a" -s 1,e1000,vale0:a,path=a \
	    -s 2,e1000,vale0:a,path=b
	refused 64 "path=a" -s 1,e1000,vale0:a,path=a \
	    -s 2,e1000,vale0:b,path=a
	refused 64 "$m" -s 1,e1000,vale0:a,path=a,$m \
	    -s 2,e1000,vale0:b,path=b,$m
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
	kill $pid
	wait $pid || atf_fail "valed failed"
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
	kill $pid
	wait $pid || atf_fail "valed failed"
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
