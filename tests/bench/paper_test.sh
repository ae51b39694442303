# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# bench/paper/report.sh, from made-up results in which each rule holds.

. "$(atf_get_srcdir)/cases.subr"

tests=$(atf_get_srcdir)
paper=$tests/../../../bench/paper

# Writes results.tsv, skipped.tsv and machine.tsv.
made_up()
{
	awk -f "$paper/expand.awk" -f "$paper/results.awk" \
	    -f "$tests/paper_results.awk" what=series "$paper/series.tsv" \
	    > results.tsv || atf_fail "made-up results"
	: > skipped.tsv
	printf 'guest\t%s\nmachine\tA <b> & "c"\naccel\tTCG\n' "${1:-linux}" \
	    > machine.tsv
}

report()
{
	sh "$paper/report.sh" . > summary 2> err || {
		cat err
		atf_fail "report.sh fails"
	}
}

# plant SERIES X QUANTITY VALUE [ROUND]: VALUE instead, or for "none" no line.
plant()
{
	awk -F '\t' -v OFS='\t' -v s="$1" -v x="$2" -v q="$3" -v y="$4" -v r="$5" '
	$2 == s && $3 == x && $4 == q && (r == "" || $1 == r) {
		if (y == "none")
			next
		$5 = y
	}
	{ print }' results.tsv > planted && mv planted results.tsv
}

# verdict ID: ours and the verdict; why ID: the note.
verdict()
{
	awk -F '\t' -v id="$1" '$1 == id { print $5 ": " $6 }' verdicts.tsv
}

why()
{
	awk -F '\t' -v id="$1" '$1 == id { print $7 }' verdicts.tsv
}

# turns ID SERIES X QUANTITY VALUE: that value alone turns the verdict.
turns()
{
	made_up
	plant "$2" "$3" "$4" "$5"
	report
	case $(verdict "$1") in
	*": does not hold") ;;
	*) atf_fail "$1 with $5: $(verdict "$1")" ;;
	esac
}

# rule RULE: results of one claim with it.
rule()
{
	printf 'X1\tANCS\t4\tclaim\t-\t%s\t-\n' "$1" > claims.tsv
	CLAIMS=$PWD/claims.tsv sh "$paper/report.sh" . > summary 2> err
}

test_case holds "With made-up results every rule holds, and what has none is no \
conclusion or not measured, with a reason" require.progs gnuplot
holds_body()
{
	made_up
	report
	awk -F '\t' '
	FILENAME ~ /claims/ {
		if ($0 !~ /^(#|$)/) {
			rule[$1] = $6
			note[$1] = $7
		}
		next
	}
	{
		seen++
		want = rule[$1] != "-" ? "holds" : note[$1] ~ /^not measured: ./ ? \
		    "not measured" : "no conclusion"
		if (NF != 8 || $6 != want || $7 == "")
			print $1 ": " $5 ": " $6
	}
	END { if (seen < 180) print seen " claims" }' \
	    "$paper/claims.tsv" verdicts.tsv > wrong
	[ -s wrong ] && {
		cat wrong
		atf_fail "other verdicts"
	}
	awk 'length($0) > 110' summary > long
	atf_check cat long
	grep -q "^ANCS .* 0 " summary || atf_fail "no count"
}

# names COLUMN FILE: the series that its patterns stand for.
names()
{
	awk -F '\t' -v column="$1" -f "$paper/expand.awk" -f names.awk "$2" | sort -u
}

test_case complete "Each statement of the papers that is judged has a line, ids and \
columns are right, and the data name known series"
complete_body()
{
	local id

	for id in A1 M2 SC2 L1 P5 LL3 C7 E12 H2 T11 O1 VF1 VF48 N52 N54 EW10; do
		grep -q "^$id	" "$paper/claims.tsv" || atf_fail "no $id"
	done
	atf_check awk -F '\t' '/^[^#]/ && (NF != 7 || $4 == "")' "$paper/claims.tsv"
	sed -n 's/^[^#].*/1	&/p' "$paper"/data/*.tsv | cut -f 1-5 \
	    > results.tsv
	atf_check -o ignore awk -f "$paper/../median.awk" -f "$paper/expand.awk" \
	    -f "$paper/results.awk" what=series "$paper/series.tsv" \
	    what=results results.tsv
	# The series of figures and of count.sh are known, too.
	cat > names.awk <<-'EOF'
	/^[^#]/ {
		n = expand($column, list)
		for (i = 1; i <= n; i++) {
			sub(/@.*/, "", list[i])
			print list[i]
		}
	}
	EOF
	names 4 "$paper/curves.tsv" > used
	names 1 "$paper/series.tsv" > known
	[ "$(wc -l < used)" -gt 100 ] || atf_fail "few series"
	atf_check comm -23 used known
	sed -n 's|^count \([a-z][^ ]*\).*|instr/\1|p' "$paper/../count.sh" | sort > used
	[ -s used ] || atf_fail "count.sh counts nothing"
	atf_check comm -23 used known
	for id in "$paper"/data/*.tsv; do
		grep -q '^# [A-Z]' "$id" || atf_fail "$id: no source"
	done
}

test_case processors "A rule that takes more processors than the machine has is not \
applied" require.progs gnuplot
processors_body()
{
	local cpus rule="lem/tap/gg/2/csb:udp8_sent >= 1"

	made_up
	for cpus in 4 16; do
		printf 'cpus\t%s\n' $cpus > machine.tsv
		rule "if cpus >= 4: $rule" || atf_fail "$(cat err)"
		[ "$(verdict X1 | sed 's/.*: //')" = holds ] ||
		    atf_fail "$cpus: $(verdict X1)"
	done
	printf 'cpus\t2\n' > machine.tsv
	rule "if cpus >= 4: $rule" || atf_fail "$(cat err)"
	[ "$(verdict X1 | sed 's/.*: //')" = "not measured" ] ||
	    atf_fail "2: $(verdict X1)"
	[ "$(why X1)" = "it takes 4 processors; this machine has 2" ] ||
	    atf_fail "2: $(why X1)"
	! rule "if cpus >= 4: nothing" || atf_fail "a rule with an error"
}

test_case planted "A wrong number turns its verdict, in each kind of rule" \
	require.progs gnuplot
planted_body()
{
	turns M2 lem/tap/gg/1/itr - udp8_sent 40		# >=
	turns M2.irqs micro/vale/gg/1/itr4000 60 irqs 0.9		# <=
	turns M6 lem/tap/gg/2/itr - udp8_sent 200		# in, above
	turns T1 lem/tap/gg/2/itr+sc - rr 900			# in, below
	turns M4 lem/tap/gg/2/base - udp8_sent 20		# four terms
	turns C7 micro/vale/gg/1/csb 60 rtt 150			# second part
	turns LL3 livelock/poll 1000 goodput 1			# last
	turns P5 livelock/base-nolimit 50 goodput 20		# max
	turns LL5 micro/vale/gg/1/poll 60 irqs_rx 1		# *
	turns VF23 switch/bridge/size 1514 ns 9000		# slope
	turns VF1 switch/vale/unicast/60 1 mpps 3		# one value
}

test_case rounds "A quotient is taken in each round; what holds in some rounds only \
is undecided; what varies by more than a factor of two says so" require.progs gnuplot
rounds_body()
{
	local r

	# Medians 100 and 200, but the quotients are 4, 0.5 and 5.
	printf '%s\n' "1 base 50" "1 itr 200" "2 base 400" "2 itr 200" "3 base 100" \
	    "3 itr 500" | while read -r r m y; do
		printf '%s\tlem/tap/gg/1/%s\t-\tudp8\t%s\n' "$r" "$m" "$y"
	done > results.tsv
	rule "lem/tap/gg/1/itr:udp8 / lem/tap/gg/1/base:udp8 >= 3" ||
	    atf_fail "rule"
	atf_check_equal "4 (0.50 to 5): undecided" "$(verdict X1)"
	atf_check_equal "varies" "$(why X1)"
	rule "lem/tap/gg/1/itr:udp8 / lem/tap/gg/1/base:udp8 in 0.5..5" ||
	    atf_fail "rule"
	atf_check_equal "4 (0.50 to 5): holds" "$(verdict X1)"
	rule "lem/tap/gg/1/itr:udp8 / lem/tap/gg/1/base:udp8 >= 5.1" ||
	    atf_fail "rule"
	atf_check_equal "4 (0.50 to 5): does not hold" "$(verdict X1)"
	# The worst of its parts.
	rule "lem/tap/gg/1/itr:udp8 >= 1 & lem/tap/gg/1/itr:udp8 >= 201" ||
	    atf_fail "rule"
	atf_check_equal "200 (200 to 500); 200 (200 to 500): undecided" \
	    "$(verdict X1)"
	rule "lem/tap/gg/1/itr:udp8 >= 501 & lem/tap/gg/1/itr:udp8 >= 201" ||
	    atf_fail "rule"
	atf_check_equal "200 (200 to 500); 200 (200 to 500): does not hold" \
	    "$(verdict X1)"
	plant lem/tap/gg/1/itr - udp8 none 2
	rule "lem/tap/gg/1/itr:udp8 / lem/tap/gg/1/base:udp8 in 3..5" ||
	    atf_fail "rule"
	atf_check_equal "4 (4 to 5): holds" "$(verdict X1)"
	atf_check_equal "-" "$(why X1)"
	# Nothing at all of the divisor's.
	plant lem/tap/gg/1/base - udp8 0
	rule "lem/tap/gg/1/itr:udp8 / lem/tap/gg/1/base:udp8 >= 3" ||
	    atf_fail "rule"
	atf_check_equal "inf: holds" "$(verdict X1)"
	plant lem/tap/gg/1/itr - udp8 0
	rule "lem/tap/gg/1/itr:udp8 / lem/tap/gg/1/base:udp8 >= 3" ||
	    atf_fail "rule"
	atf_check_equal "-: not measured" "$(verdict X1)"
}

test_case missing "Missing results give \"not measured\", with the reason of \
skipped.tsv; a figure without any is named, with its reason" require.progs gnuplot
missing_body()
{
	made_up
	grep -v '	lem/tap/gg/2/\|	switch/ovs\|	rtt/\|	livelock/virtio' \
	    results.tsv > some
	mv some results.tsv
	printf '%s\t%s\n' switch/ovs 'no <ovs> & no module' rtt/ 'no time' \
	    rtt/b 'no bridge' > skipped.tsv
	report
	atf_check_equal "-: not measured" "$(verdict VF11)"
	atf_check_equal "no <ovs> & no module" "$(why VF11)"
	atf_check_equal "-: not measured" "$(verdict VF25)"
	atf_check_equal "no time" "$(why VF25)"
	atf_check_equal "no result of lem/tap/gg/2/base:udp8_sent" "$(why M5)"
	[ -e vale12.svg ] && atf_fail "a picture of nothing"
	# A legend has only what has a line.
	atf_check -o ignore grep '>plain, without limit<' fig3.svg
	atf_check -s exit:1 grep virtio-net fig3.svg
	atf_check -o ignore grep "Not measured: no time[.]" index.html
	# What was not measured is folded away, with the statement whose other form
	# it is; of one that was measured only that form is.
	awk '/<details>/ { folded = 1 } /<[/]details>/ { folded = 0 }
	    { print folded + 0, $0 }' index.html > folded
	atf_check -o ignore grep '^1 .*<h2 id="vale12"' folded
	atf_check -o ignore grep '^1 <tr id="VF11"' folded
	atf_check -o ignore grep '^0 <tr id="M2"' folded
	atf_check -o match:"sockets between guests pass 1 Mpps.*[.][.][.] times" \
	    grep '^0 <tr id="A2[.]ratio"' folded
	atf_check -o match:"^ +on bare metal [.][.][.] times BASE" \
	    sh "$paper/report.sh" -s .
	atf_check -o ignore grep "no &lt;ovs&gt; &amp; no module" index.html
	atf_check -s exit:1 grep "<ovs>" index.html
	# Nothing at all.
	: > results.tsv
	rm machine.tsv skipped.tsv
	report
	atf_check -o inline:'0\n' -s ignore grep -c 'holds$' verdicts.tsv
	atf_check find . -name "*.svg"
}

test_case plain "Without gnuplot there is one line that says so, and tables and \
verdicts"
plain_body()
{
	made_up freebsd
	: > old.svg
	mkdir only
	for p in awk cat dirname rm sh; do
		ln -s "$(command -v $p)" only/$p
	done
	atf_check -o match:"^ANCS " \
	    -e inline:"report.sh: there is no gnuplot, and so no pictures\n" \
	    env PATH="$PWD/only" sh "$paper/report.sh" .
	[ -s verdicts.tsv ] && [ -s medians.csv ] || atf_fail "no verdicts"
	atf_check -s exit:1 grep "<img" index.html
	atf_check -o ignore grep "no pictures: gnuplot" index.html
	atf_check -o ignore grep '<h2 id="fig10">' index.html
	atf_check find . -name "*.svg" -o -name "*.par"
}

# bad TEXT LINE: a results.tsv whose second line is that is refused with TEXT.
bad()
{
	{ printf '1\tinstr/tx-60-1\t-\tinstructions\t500\n'; printf "$2\n"; } \
	    > results.tsv
	atf_check -s exit:1 -e match:"results.tsv: line 2: .*$1" \
	    sh "$paper/report.sh" .
	sh "$paper/report.sh" . 2>&1 | wc -l | grep -q '^ *1$' ||
	    atf_fail "more lines"
}

test_case malformed "A line of results.tsv that is wrong is named by its number"
malformed_body()
{
	bad "4 fields" '1\tinstr/tx-60-1\t-\t500'
	bad "0 fields" ''
	bad "round" 'x\tinstr/tx-60-1\t-\tinstructions\t500'
	bad "unknown series" '1\tinstr/tx-60-2\t-\tinstructions\t500'
	bad "no quantity" '1\tinstr/tx-60-1\t-\tcycles\t500'
	bad "x of" '1\tinstr/tx-60-1\t5\tinstructions\t500'
	bad "x of" '1\trtt/vale\t-\tus\t500'
	bad "value" '1\trtt/vale\t60\tus\t5 us'
	bad "value" '1\trtt/vale\t60\tus\t'
	rm results.tsv
	atf_check -s exit:1 -e match:"no results.tsv" sh "$paper/report.sh" .
}

# bad_rule TEXT RULE: refused with one line that has TEXT.
bad_rule()
{
	rule "$2" && atf_fail "accepted: $2"
	atf_check -o match:"claims.tsv: line 1: X1: rule: .*$1" cat err
	atf_check_equal 1 "$(wc -l < err | tr -d ' ')"
}

test_case rules "A rule that cannot be read, or names what is not in series.tsv, is \
refused with one line"
rules_body()
{
	printf '1\tinstr/tx-60-1\t-\tinstructions\t500\n' > results.tsv
	bad_rule "not EXPR" "lem/tap/gg/1/itr:udp8"
	bad_rule "not EXPR" "lem/tap/gg/1/itr:udp8 >="
	bad_rule "unknown series" "lem/tap/gg/3/itr:udp8 >= 2"
	bad_rule "unknown quantity" "lem/tap/gg/1/itr:udp9 >= 2"
	bad_rule "no such x" "lem/tap/gg/1/itr:udp8@60 >= 2"
	bad_rule "no such x" "micro/vale/gg/1/itr:pkt >= 2"
	bad_rule "no such x" "micro/vale/gg/1/itr:pkt@61 >= 2"
	bad_rule "no such x" "max(lem/tap/gg/1/itr:udp8) >= 2"
	bad_rule "unknown comparison" "lem/tap/gg/1/itr:udp8 > 2"
	bad_rule "unknown operator" \
	    "lem/tap/gg/1/itr:udp8 + lem/tap/gg/1/base:udp8 >= 2"
	bad_rule "no number" "lem/tap/gg/1/itr:udp8 >= two"
	bad_rule "no range" "lem/tap/gg/1/itr:udp8 in 2..1"
	bad_rule "not EXPR" "lem/tap/gg/1/itr:udp8 >= 2 & "
}

# Pictures and page for guests with Linux, or FreeBSD.
page()
{
	made_up "$1"
	report
	awk -F '\t' -v guest="$1" '/^[^#]/ && ($2 == "-" || $2 == guest) {
		print $1, $5 }' "$paper/figures.tsv" > figures
	[ "$(wc -l < figures)" -ge 20 ] || atf_fail "few figures"
	# What users ask, then all pictures, then what the papers conclude.
	[ "$1" = freebsd ] || atf_check_equal users \
	    "$(sed -n 's/.*<h2 id="\([^"]*\)".*/\1/p' index.html | head -n 1)"
	awk '/<img/ { if (after) exit 1; n++ } /id="conclusions"/ { after = 1 }
	    END { if (!after || n < 5) exit 1 }' index.html ||
	    atf_fail "no pictures, or behind the conclusions"
	# People read words: no series, and no id of a rule.
	sed 's/<[^>]*>/ /g' index.html > text
	atf_check -s exit:1 grep -E '(lem|micro|virtio|livelock|users|switch)/' \
	    text
	awk -F '\t' '{ print $1 }' verdicts.tsv | grep '[.]' |
	    sed 's/[.]/[.]/g; s/.*/ & /' > ids
	[ -s ids ] || atf_fail "no ids"
	atf_check -s exit:1 grep -f ids text
	while read -r id kind; do
		grep -q "<h2 id=\"$id\">" index.html || atf_fail "no $id"
		[ "$kind" = table ] && continue
		grep -q "<img src=\"$id.svg\"" index.html || atf_fail "$id: no img"
		[ -s "$id.svg" ] || atf_fail "no $id.svg"
	done < figures
}

test_case page "The page is well-formed, has every figure, escapes what results \
say, and refers to nothing outside" require.progs gnuplot
page_body()
{
	local guest

	for guest in freebsd linux; do
		page $guest
		atf_check python3 -c 'import xml.etree.ElementTree as t, glob
for f in ["index.html"] + glob.glob("*.svg"): t.parse(f)'
		atf_check -o ignore grep 'A &lt;b&gt; &amp; &quot;c&quot;' index.html
		atf_check -s exit:1 grep -E '(src|href)="[^"]*[:/]|url[(]|@import' \
		    index.html
	done
	[ ! -e fig5.svg ] || atf_fail "a picture of the run before"
	# Theirs stand beside ours, with the ratios.
	atf_check -o ignore grep '>82 <i>&#215;2.83</i><' index.html
	atf_check -o ignore grep 'class="n">73.5 <i>&#215;2.50</i>' index.html
	atf_check find . -name "*.par" -o -name "*.dat"
}

test_case labels "No two labels of a picture overlap, and none leaves it, with all \
results and with few" require.progs gnuplot
labels_body()
{
	local svg

	made_up
	plant micro/vale/gg/1/csb 60 pkt 0
	report
	# A zero is a figure; no other label of that picture is.
	atf_check -o inline:'1\n' grep -c '<text>0</text>' netmap.svg
	# Each line of a group's name is there.
	atf_check -o inline:'6\n' grep -c '<text>TAP</text>' fig4.svg
	atf_check -o inline:'4\n' grep -c '<text>from host</text>' fig4.svg
	for few in all some freebsd; do
		[ $few != freebsd ] || {
			made_up freebsd
			report
		}
		for svg in *.svg; do
			awk -f "$tests/svg_labels.awk" "$svg" > seen
			[ -s seen ] && {
				cat seen
				atf_fail "$few: $svg"
			}
		done
		# One point for each group is the narrowest.
		grep '/base	\|/stock	\|/1/csb	\|	60	' results.tsv > some
		mv some results.tsv
		report
	done
	made_up
	report
	# The check finds what it looks for.
	sed 's/translate([0-9.]*,/translate(500,/' fig4.svg > moved
	awk -f "$tests/svg_labels.awk" moved | grep -q overlap ||
	    atf_fail "finds none"
}

# browser: print the command of a Chromium that is installed, of Debian's packages
# chromium and chromium-headless-shell.
browser()
{
	command -v chromium || command -v chromium-headless-shell
}

# framed: print a page that shows index.html in frames of two widths, and in a third
# one with something too wide, and has in its title what it measured there.
framed()
{
	python3 - <<-'EOF'
	from html import escape
	page = open("index.html").read()
	wide = page.replace("<h1>", '<p style="width: 2000px">wide</p><h1>')
	print("<!DOCTYPE html><title>nothing</title>")
	for name, width, text in (("large", 1200, page), ("small", 420, page),
	    ("wide", 420, wide)):
	    print('<iframe id="%s" width="%d" height="900" frameborder="0"'
	        ' srcdoc="%s"></iframe>' % (name, width, escape(text)))
	print("""<script>
	function measured(frame) {
		const d = frame.contentDocument;
		d.querySelectorAll("details").forEach(e => e.open = true);
		const all = d.documentElement.scrollWidth;
		const wrong = [...d.images].filter(i => !i.naturalWidth ||
		    i.width < 300 || i.width > frame.contentWindow.innerWidth);
		return frame.id + " " + frame.contentWindow.innerWidth + ": " +
		    (all <= frame.contentWindow.innerWidth ? "fits" : "too wide") +
		    ", images " + d.images.length + ", wrong " + wrong.length +
		    ", tables " + d.querySelectorAll("table").length;
	}
	window.addEventListener("load", () => { document.title = [
	    ...document.querySelectorAll("iframe")].map(measured).join("; "); });
	</script>""")
	EOF
}

test_case browser "Chromium shows the page and each picture on screens of 1200 and of \
420 pixels, and nothing is wider" require.progs "gnuplot python3"
browser_body()
{
	local browser n

	browser=$(browser) || atf_skip "neither chromium nor chromium-headless-shell"
	page linux
	framed > framed.html
	HOME=$PWD "$browser" --headless --no-sandbox --disable-gpu \
	    --hide-scrollbars --user-data-dir="$PWD/profile" \
	    --window-size=1400,2000 --dump-dom "file://$PWD/framed.html" \
	    > dom 2> err || {
		cat err
		atf_fail "$browser"
	}
	n=$(grep -c "<img" index.html)
	sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p' dom | head -n 1 | tr ';' '\n' |
	    sed 's/^ //' > title
	cat title
	atf_check -o match:"^large 1200: fits, images $n, wrong 0, tables [1-9]" \
	    -o match:"^small 420: fits, images $n, wrong 0, tables [1-9]" \
	    -o match:"^wide 420: too wide, images $n, " cat title
}
