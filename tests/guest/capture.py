# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""A wire seen from its far end: what arrives there, and what leaves.

capture.py plain INTERFACE	the interface's driver shall get and give frames
				as they are on a wire: no checksum left to it,
				nothing to cut, VLAN tags in their place
capture.py watch INTERFACE	check the checksums of all IPv4 packets until
				SIGTERM, then print counters, "direction name
				value" each:
	frames		IPv4 packets
	partial		of them, those whose checksum is left to the receiver
	bad		those with a wrong checksum, or cut short
	fragments	fragments; of their checksums, only the header's counts
	longest		bytes of the longest, with its Ethernet header
	tcp_bytes	of TCP's data in the others
	lost		packets of both directions that were not seen

Packets that leave are seen as the driver gets them.
"""

import ctypes
import fcntl
import signal
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
# ETHTOOL_STXCSUM, _SSG, _STSO, _SGSO and _SFLAGS.
SET = (0x17, 0x19, 0x1f, 0x24, 0x26)
ETHTOOL_GSTRINGS = 0x1b
ETHTOOL_SFEATURES = 0x3b
ETH_SS_FEATURES = 4
FEATURES = 256
# <linux/if_packet.h>
ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_AUXDATA = 8
STATUS_PARTIAL = 1 << 3
SO_RCVBUFFORCE = 33
BUFFER = 128 << 20
TRANSPORT = {socket.IPPROTO_ICMP: False, socket.IPPROTO_TCP: True,
             socket.IPPROTO_UDP: True}


def ethtool(s, interface, *words, space=0):
    """The words, and the space after them, as the kernel leaves them."""
    value = bytearray(struct.pack("%dI" % len(words), *words) + bytes(space))
    address = (ctypes.c_char * len(value)).from_buffer(value)
    fcntl.ioctl(s, SIOCETHTOOL, struct.pack(
        "16sP16x", interface.encode(), ctypes.addressof(address)))
    return bytes(value)


def plain(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in SET:
            ethtool(s, interface, command, 0)
        # Those of 802.1ad have no command of their own.
        names = ethtool(s, interface, ETHTOOL_GSTRINGS, ETH_SS_FEATURES, 0,
                        space=32 * FEATURES)
        n, = struct.unpack_from("I", names, 8)
        names = [names[i:i + 32].split(b"\0")[0]
                 for i in range(12, 12 + 32 * n, 32)]
        blocks = (n + 31) // 32
        for name in b"rx-vlan-stag-hw-parse", b"tx-vlan-stag-hw-insert":
            words = [0] * (2 * blocks)
            i = names.index(name)
            words[i // 32 * 2] = 1 << i % 32
            ethtool(s, interface, ETHTOOL_SFEATURES, blocks, *words)


def right(data):
    """Whether the words' sum, with the checksum among them, is that of 0."""
    return int.from_bytes(data + b"\0" * (len(data) % 2), "big") % 0xffff == 0


class Counters:
    """Of one direction."""

    def __init__(self):
        self.value = dict.fromkeys(("frames", "partial", "bad", "fragments",
                                    "longest", "tcp_bytes"), 0)

    def add(self, name, n=1):
        self.value[name] += n

    def frame(self, data, partial):
        packet = data[14:]
        head = 4 * (packet[0] & 15)
        size, = struct.unpack_from(">H", packet, 2)
        packet = packet[:size]
        self.add("frames")
        self.value["longest"] = max(self.value["longest"], len(data))
        if len(packet) < size or not right(packet[:head]):
            self.add("bad")
        elif struct.unpack_from(">H", packet, 6)[0] & 0x3fff:
            self.add("fragments")
        elif partial:
            self.add("partial")
        else:
            self.payload(packet[:head], packet[head:])

    def payload(self, head, payload):
        """What follows a complete header."""
        protocol = head[9]
        pseudo = head[12:20] + struct.pack(">HH", protocol, len(payload))
        if protocol == socket.IPPROTO_UDP and payload[6:8] == b"\0\0":
            return
        if protocol not in TRANSPORT:
            return
        if not right((pseudo if TRANSPORT[protocol] else b"") + payload):
            self.add("bad")
        elif protocol == socket.IPPROTO_TCP:
            self.add("tcp_bytes", len(payload) - 4 * (payload[12] >> 4))


def watch(interface):
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    s.bind((interface, ETH_P_ALL))
    s.settimeout(0.2)
    print("watching", flush=True)
    seen = {"in": Counters(), "out": Counters()}
    while True:
        try:
            data, control, _, address = s.recvmsg(1 << 17, 64)
        except TimeoutError:
            if stop:
                break
            continue
        status, = struct.unpack_from("I", control[0][2])
        way = "out" if address[2] == socket.PACKET_OUTGOING else "in"
        if address[1] == 0x800:
            seen[way].frame(data, status & STATUS_PARTIAL)
    for way, counters in seen.items():
        for name, value in counters.value.items():
            print(way, name, value)
    print("both lost", struct.unpack(
        "II", s.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1])


{"plain": plain, "watch": watch}[sys.argv[1]](sys.argv[2])
