# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints verdicts.tsv from claims.tsv, which says what a rule is: id, figure, what,
# theirs, ours, verdict, why, source.  It uses results.awk and ../median.awk.
#
# An expression has a value for each round; a round that lacks a term is left out.
# claims.tsv says what the verdict is.  A rule that cannot be read, or names a series
# that is not in series.tsv, ends the program.

function read_term(text,	at) {
	t_fn = t_x = ""
	if (text ~ /^(max|last|slope)[(].*[)]$/) {
		at = index(text, "(")
		t_fn = substr(text, 1, at - 1)
		text = substr(text, at + 1, length(text) - at - 1)
	}
	if ((at = index(text, "@")) > 0) {
		t_x = substr(text, at + 1)
		text = substr(text, 1, at - 1)
	}
	at = index(text, ":")
	t_series = substr(text, 1, at - 1)
	t_quantity = substr(text, at + 1)
}

# What is wrong with the term that was read, or "".
function term_error(text) {
	if (!(t_series in x_of))
		return ("unknown series in " text)
	if (!has(quantities_of[t_series], t_quantity))
		return ("unknown quantity in " text)
	if (t_fn != "" ? t_x != "" || x_of[t_series] == "-" : \
	    x_of[t_series] == "-" ? t_x != "" : !has(x_of[t_series], t_x))
		return ("no such x in " text)
	return ("")
}

function part_error(n, token,	i, error, bound) {
	if (n < 3 || n % 2 == 0)
		return ("not EXPR OP NUMBER")
	for (i = 1; i <= n - 2; i++) {
		if (i % 2 == 0) {
			if (token[i] != "/" && token[i] != "*")
				return ("unknown operator " token[i])
			continue
		}
		read_term(token[i])
		if ((error = term_error(token[i])) != "")
			return (error)
	}
	if (token[n - 1] == "in")
		return (split(token[n], bound, /[.][.]/) == 2 && \
		    number(bound[1]) && number(bound[2]) && \
		    bound[1] + 0 < bound[2] + 0 ? "" : \
		    "no range: " token[n])
	if (token[n - 1] != ">=" && token[n - 1] != "<=")
		return ("unknown comparison " token[n - 1])
	return (number(token[n]) ? "" : "no number: " token[n])
}

# A term over all x of its series.
function over_x(r,	x, n, i, y, best, low, high) {
	n = split(xs_of[t_series, t_quantity], x, " ")
	best = ""
	for (i = 1; i <= n; i++) {
		if (!((t_series, x[i], t_quantity, r) in values))
			continue
		y = median(values[t_series, x[i], t_quantity, r])
		if (best == "" || y > best)
			best = y
		if (low == "" || x[i] + 0 < low + 0) {
			low = x[i]
			first = y
		}
		if (high == "" || x[i] + 0 > high + 0) {
			high = x[i]
			last = y
		}
	}
	if (t_fn == "max" || best == "")
		return (best)
	if (t_fn == "last")
		return (last)
	return (low == high ? "" : (last - first) / (high - low))
}

function term_value(text, r,	x, y) {
	read_term(text)
	x = t_x == "" ? "-" : t_x + 0
	if (t_fn != "")
		y = over_x(r)
	else if ((t_series, x, t_quantity, r) in values)
		y = median(values[t_series, x, t_quantity, r])
	else
		y = ""
	if (y == "")
		missing[t_series ":" t_quantity] = 1
	return (y)
}

# a over b; BIG stands for more than any number, nothing for 0 over 0.
function quotient(a, b) {
	return (b != 0 ? a / b : a != 0 ? BIG : "")
}

function expr_value(n, token, r,	i, y, t) {
	y = term_value(token[1], r)
	for (i = 3; i <= n - 2; i += 2) {
		t = term_value(token[i], r)
		if (y != "" && t != "")
			y = token[i - 1] == "*" ? y * t : quotient(y, t)
		else
			y = ""
	}
	return (y)
}

function within(y, op, bound,	b) {
	if (op == ">=")
		return (y >= bound + 0)
	if (op == "<=")
		return (y <= bound + 0)
	split(bound, b, /[.][.]/)
	return (y >= b[1] + 0 && y <= b[2] + 0)
}

function text_of(y) {
	if (y >= BIG)
		return ("inf")
	return (y >= 99.5 || y == int(y) ? sprintf("%.0f", y) : \
	    y >= 9.95 ? sprintf("%.1f", y) : y >= 0.0995 ? sprintf("%.2f", y) : \
	    sprintf("%.2g", y))
}

# One part of a rule: adds to ours and to varies, returns the verdict.
function judge(part,	token, n, r, y, list, v, m, inside) {
	n = split(part, token, " ")
	for (r = 1; r <= rounds; r++)
		if ((y = expr_value(n, token, r)) != "")
			list = list " " y
	if ((m = sorted(list, v)) == 0) {
		ours = ours (ours == "" ? "" : "; ") "-"
		return ("not measured")
	}
	y = median(list) + 0
	ours = ours (ours == "" ? "" : "; ") text_of(y)
	if (text_of(v[1] + 0) != text_of(v[m] + 0))
		ours = ours " (" text_of(v[1] + 0) " to " text_of(v[m] + 0) ")"
	if (v[m] + 0 > 2 * v[1])
		varies = "varies"
	for (r = 1; r <= m; r++)
		inside += within(v[r] + 0, token[n - 1], token[n])
	return (inside == m ? "holds" : inside > 0 ? "undecided" : \
	    "does not hold")
}

# Why what a rule needs is not there.
function reason(	key, i, best, text) {
	for (key in missing)
		for (i = 1; i <= nskipped; i++)
			if (index(key, skipped[i]) == 1 && \
			    length(skipped[i]) >= length(best)) {
				best = skipped[i]
				text = skipped_why[i]
			}
	if (text != "")
		return (text)
	for (key in missing)
		if (text == "" || key < text)
			text = key
	return (text == "" ? "0 of 0" : "no result of " text)
}

function apply(rule,	part, n, i, token, error, verdict, worst) {
	split("", missing)
	ours = varies = ""
	worst = "holds"
	n = split(rule, part, / *& */)
	for (i = 1; i <= n; i++) {
		error = part_error(split(part[i], token, " "), token)
		if (error != "")
			fail($1 ": rule: " error)
		verdict = judge(part[i])
		if (rank[verdict] > rank[worst])
			worst = verdict
	}
	return (worst)
}

# Take the condition off a rule; returns why the rule is not applied, or "".
function condition(	at, cpus) {
	if ($6 !~ /^if cpus >= [0-9]+: /)
		return ("")
	at = index($6, ":")
	cpus = substr($6, 12, at - 12)
	$6 = substr($6, at + 2)
	if (machine["cpus"] == "" || machine["cpus"] + 0 >= cpus + 0)
		return ("")
	return ("it takes " cpus " processors; this machine has " \
	    machine["cpus"])
}

function read_claim(	verdict, why, unmet) {
	if (NF != 7)
		fail(NF " fields, not id, source, figure, what, theirs, rule, note")
	if ($1 in known)
		fail("id " $1 " is used twice")
	known[$1] = 1
	ours = "-"
	why = $7
	unmet = condition()
	if ($6 != "-") {
		verdict = apply($6)
		if (unmet != "") {
			verdict = "not measured"
			why = unmet
		} else if (verdict == "not measured")
			why = reason()
		else if (varies != "")
			why = varies (why == "-" ? "" : "; " why)
	} else {
		verdict = sub(/^not measured: /, "", why) ? "not measured" : \
		    "no conclusion"
	}
	print $1, $3, $4, $5, ours, verdict, why, $2
}

BEGIN {
	BIG = 1e30
	rank["holds"] = 1
	rank["undecided"] = 2
	rank["does not hold"] = 3
	rank["not measured"] = 4
}
/^#/ || /^$/ { next }
what == "skipped" {
	skipped[++nskipped] = $1
	skipped_why[nskipped] = $2
}
what == "machine" { machine[$1] = $2 }
what == "claims" { read_claim() }
