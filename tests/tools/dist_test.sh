# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The archive of a release, tools/dist.sh: of a commit that has the files of this
# tree as they are.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tree.subr"

# clone_make: clone/ has a commit of the tree, without what was built.
clone_make()
{
	mkdir clone
	tar_tree | tar -C clone -xf -
	(cd clone && git init -q && git config user.name test &&
	    git config user.email test@localhost && git add -A &&
	    git commit -q -m all) || atf_fail "no commit"
}

# dist DIRECTORY: make the archive of a clone; archive is its file.
dist()
{
	alone make -s -C "$1" dist > made 2>&1 || atf_fail "$(cat made)"
	archive=$(tail -n 1 made)
	[ -f "$archive" ] || atf_fail "no archive: $(cat made)"
}

test_case archive "A commit makes the same archive again, with each of its \
files and no other; the ports have its checksum" require.progs "git make"
archive_body()
{
	local first name port sum

	clone_make
	dist clone
	first=$archive
	# Another user's clone, later.
	git clone -q clone other
	sleep 1
	(umask 077 && TZ=Asia/Tokyo && export TZ && dist other &&
	    echo "$archive" > second) || exit 1
	atf_check cmp "$first" "$(cat second)"
	atf_check diff -r clone/build/dist/ports other/build/dist/ports
	name=$(basename "$first" .tar.gz)

	git -C clone ls-files | sed "s,^,$name/," | sort > expected
	tar -tf "$first" | grep -v '/$' | sort > got
	atf_check diff expected got
	tar --full-time -tvf "$first" |
	    awk '{ print $2, $4, $5 }' | sort -u > owners
	atf_check_equal 1 $(wc -l < owners)
	atf_check -o match:'^root/root ' cat owners

	sum=$(sha256sum < "$first" | sed 's/ .*//')
	for port in "$top"/ports/net/*; do
		port=clone/build/dist/ports/net/${port##*/}
		sed 1d "$port/distinfo" > distinfo
		atf_check -o inline:"SHA256 ($name.tar.gz) = $sum\n\
SIZE ($name.tar.gz) = $(stat -c %s "$first")\n" cat distinfo
		atf_check_equal "$name" \
		    "bhyve-vale-$(sed -n 's/^DISTVERSION=[[:space:]]*//p' \
		    "$port/Makefile")"
	done
}

test_case refused "No archive is made of a clone with changes, or of what is no \
clone" require.progs git
refused_body()
{
	clone_make
	echo >> clone/README.md
	atf_check -s exit:1 -e match:'dist.sh: .*: has changes' \
	    sh clone/tools/dist.sh out
	git -C clone checkout -q README.md
	: > clone/new
	atf_check -s exit:1 -e match:'dist.sh: .*: has changes' \
	    sh clone/tools/dist.sh out
	rm clone/new
	# One that is in a clone is none.
	mkdir clone/build
	cp -R clone/tools clone/lib clone/ports clone/build
	atf_check -s exit:1 -e match:'dist.sh: .*/build: not a clone' \
	    sh clone/build/tools/dist.sh out
	atf_check -s exit:2 -e match:usage sh clone/tools/dist.sh
}

test_case build "What is in the archive builds for Linux and FreeBSD" \
    require.progs "git make" timeout 5400
build_body()
{
	clone_make
	dist clone
	tar -xf "$archive"
	cd "$(basename "$archive" .tar.gz)"
	alone make -s JOBS=2 WITHOUT_TESTS=yes all > ../log 2>&1 ||
	    atf_fail "make all: $(tail -5 ../log | paste -sd ' ')"
	atf_check -o inline:"valed $(basename "$PWD" | sed 's/.*-//')\n" \
	    build/usr.sbin/valed/valed --version
	if [ ! -x "$top/build/deps/zig/zig" ]; then
		echo "no zig: nothing is built for FreeBSD"
		return
	fi
	rmdir build/deps
	ln -s "$top/build/deps" build/deps
	alone bmake -m .../compat/mk -j 2 freebsd > ../log 2>&1 ||
	    atf_fail "freebsd: $(tail -5 ../log | paste -sd ' ')"
}
