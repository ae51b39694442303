# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Prints register accesses a frame, from QEMU's trace of the 82545EM of a guest
# that sends and receives small frames, one descriptor each.  The driver has 256
# descriptors in each ring, advances TDT over those it fills and RDT over those
# it empties.

function hex(s,		i, v)
{
	v = 0
	for (i = 3; i <= length(s); i++)
		v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
	return v
}

function moved(ring, to)
{
	if (ring in at)
		frames += (to - at[ring] + 256) % 256
	at[ring] = to
}

/e1000-mmio/ {
	exits++
	register = hex($7) % 131072
	if ($1 ~ /write/ && register == 14360)		# TDT
		moved("tx", hex($9))
	else if ($1 ~ /write/ && register == 10264)	# RDT
		moved("rx", hex($9))
}

END {
	printf "%.2f", frames ? exits / frames : 0
}
