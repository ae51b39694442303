# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The commands of a page in mdoc(7), in order: awk -f commands.awk dir=DIR PAGE.
# DIR/NN.MACHINE has command NN, and DIR/NN.out the lines that the page shows of
# its output.  With texts=DIR, DIR/NN has the NN-th literal text that is neither.
#
# Commands are in displays: Dl, and Bd -literal whose first line is a command.
# A command starts with a prompt: "# " on the host, "$ " there, as a user,
# "NAME# " on another machine, "guest# " on each guest.  It ends before a line that is not indented.  All
# other lines are output.

function name(suffix)
{
	return sprintf("%s/%02d.%s", dir, n, suffix)
}

function command(line)
{
	if (out != "")
		close(out)
	n++
	machine = line
	sub(/#.*/, "", machine)
	if (line ~ /^[$] /)
		machine = "user"
	sub(/^([a-z0-9]*#|[$]) /, "", line)
	out = name(machine == "" ? "host" : machine)
	print line > out
}

function text(line)
{
	if (texts != "")
		print line > sprintf("%s/%02d", texts, ntexts)
}

{ gsub(/\\&/, ""); gsub(/\\e/, "\\"); gsub(/\\-/, "-") }

/^[.]Dl ([a-z0-9]*#|[$]) / { command(substr($0, 5)); next }
/^[.]Bd -literal/ { display = "new"; next }
/^[.]Ed/ { display = ""; next }
display == "" { next }
display == "other" { text($0); next }
/^([a-z0-9]*#|[$]) / { command($0); display = "commands"; next }
display == "new" { display = "other"; ntexts++; text($0); next }
/^ / { print > out; next }
{
	if (out != name("out"))
		close(out)
	out = name("out")
	print > out
}
