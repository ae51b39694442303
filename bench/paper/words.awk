# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# What series are called where people read them: in tables, pictures and messages.

# mode_words(MODE): the last component of a series' name, a mode of the driver.
function mode_words(mode,	part, n, i, text) {
	if (!("base" in words)) {
		split("base plain itr moderation itr4000 moderation,_1_ms " \
		    "sc combining lazy lazy_completion poll polling " \
		    "csb shared_memory tso TSO notso no_TSO stock -", part, " ")
		for (i = 1; i in part; i += 2) {
			gsub(/_/, " ", part[i + 1])
			words[part[i]] = part[i + 1]
		}
	}
	n = split(mode, part, "+")
	for (i = 1; i <= n; i++)
		text = text (i == 1 ? "" : ", ") \
		    (part[i] in words ? words[part[i]] : part[i])
	return (text == "-" ? "" : text)
}

# joined(A, B): both, with a comma if there are two.
function joined(a, b) {
	return (a == "" || b == "" ? a b : a ", " b)
}

# series_words(SERIES): its driver, what connects the guests, the direction, how
# many processors a guest has, and the mode, as far as they are not the usual ones;
# the name itself if it is of another kind.
function series_words(series,	part, n, text) {
	n = split(series, part, "/")
	if (part[1] == "users" && n == 2)
		return (user_words(part[2]))
	if (part[1] == "livelock" && n == 2) {
		text = part[2]
		sub(/-/, "+", text)
		sub(/nolimit/, "without limit", text)
		sub(/virtio/, "virtio-net", text)
		return ("overload, " mode_words(text))
	}
	if (part[1] == "cost" && n >= 2) {
		text = part[2]
		sub(/lem-/, "lem+", text)
		sub(/virtio/, "virtio-net", text)
		return (joined(mode_words(text), \
		    part[3] == "full" ? "full rate" : \
		    part[3] == "10mbit" ? "10 Mbit/s" : ""))
	}
	if (n != 5)
		return (series)
	text = joined(driver_words(part[1], part[2]), \
	    part[3] == "tx" ? "to host" : part[3] == "rx" ? "from host" : "")
	text = joined(text, part[4] > 1 ? part[4] " CPUs" : "")
	return (joined(text, mode_words(part[5])))
}

function driver_words(driver, net) {
	if (net == "qemu-tap" || net == "vhost")
		return (driver != "virtio" ? driver " of QEMU" : \
		    net == "vhost" ? "virtio-net, vhost" : "virtio-net")
	if (driver ~ /^micro/)
		return ("no kernel" (net == "qemu" ? ", QEMU's e1000" : \
		    driver ~ /posted/ ? ", posted" : ""))
	if (net == "bhyve-vale")
		return (driver ", tree's bhyve")
	if (driver ~ /^e1000/)
		return (driver " of valed")
	return (driver ~ /82574l/ ? "lem, e1000e" : \
	    driver ~ /posted/ ? "lem, posted" : "lem, " toupper(net))
}

function user_words(name) {
	if (name == "virtio" || name == "vhost")
		return (name == "vhost" ? "virtio-net, vhost" : "virtio-net")
	if (sub(/^qemu-/, "", name))
		return (name " of QEMU")
	if (sub(/^lem-/, "", name))
		return (sub(/-82574l/, "", name) ? \
		    "lem, e1000e, " mode_words(name) : \
		    "lem, " mode_words(name))
	return (name " of valed")
}
