#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# report.sh [-s] DIR: sets the results of paper.sh beside the papers' numbers.
#
# It reads DIR/results.tsv, skipped.tsv and machine.tsv; writes medians.csv,
# verdicts.tsv, the figures as SVG and index.html there, and prints the summary.
# It can run again on old results.  What series, rules and figures there are is
# data: series.tsv, claims.tsv, figures.tsv, curves.tsv, data/.  CLAIMS names
# another file of rules (the tests').  -s leaves out of the summary what was not
# measured.  Without gnuplot there are no pictures, which it says.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
short=
[ "${1-}" != -s ] || {
	short=yes
	shift
}
dir=${1:?"usage: report.sh [-s] DIR"}
claims=${CLAIMS:-$here/claims.tsv}
[ -r "$dir/results.tsv" ] || {
	echo "report.sh: no results.tsv in $dir" >&2
	exit 1
}

# optional NAME: DIR/NAME, or nothing.
optional()
{
	[ -r "$dir/$1" ] && echo "$dir/$1" || echo /dev/null
}

skipped=$(optional skipped.tsv)
machine=$(optional machine.tsv)

# over_results PROGRAM ...: awk with what reads results.tsv.
over_results()
{
	local program=$1

	shift
	awk -f "$here/../median.awk" -f "$here/expand.awk" -f "$here/results.awk" \
	    -f "$here/$program" what=series "$here/series.tsv" \
	    what=results "$dir/results.tsv" "$@"
}

# over_figures PROGRAM ...: awk with what reads the medians and the figures.
over_figures()
{
	local program=$1

	shift
	awk -v dir="$dir" -v here="$here" -f "$here/../median.awk" \
	    -f "$here/expand.awk" -f "$here/words.awk" -f "$here/rows.awk" \
	    -f "$here/$program" \
	    what=machine "$machine" \
	    what=figures "$here/figures.tsv" what=curves "$here/curves.tsv" \
	    what=skipped "$skipped" what=medians "$dir/medians.csv" \
	    what=data "$here"/data/*.tsv "$@"
}

draw()
{
	over_figures figures.awk > "$dir/figures"
	while read -r id program; do
		gnuplot -c "$here/$program.gp" "$dir/$id.par" || {
			echo "report.sh: gnuplot cannot draw $id" >&2
			exit 1
		}
	done < "$dir/figures"
	rm -f "$dir"/*.par "$dir"/*.dat "$dir/figures"
}

over_results medians.awk > "$dir/medians.csv"
over_results verdicts.awk what=machine "$machine" what=skipped "$skipped" \
    what=claims "$claims" \
    > "$dir/verdicts.tsv"
rm -f "$dir"/*.svg "$dir"/*.par "$dir"/*.dat
pictures=no
if command -v gnuplot > /dev/null; then
	pictures=yes
	draw
else
	echo "report.sh: there is no gnuplot, and so no pictures" >&2
fi
over_figures page.awk pictures=$pictures what=verdicts "$dir/verdicts.tsv" \
    > "$dir/index.html"
awk -v short="$short" -f "$here/summary.awk" "$dir/verdicts.tsv"
echo "$dir/index.html has the figures."
