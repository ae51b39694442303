# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""What hosts, tunnels and guests of others send through an attached interface,
for valed_outside_test.

outside.py inject INTERFACE	send the frames on stdin, a line each: a virtio-net
				header of 10 bytes and the frame, in hex.  A
				kernel with a veth interface passes both on, as
				it passes on what it leaves to an adapter.
outside.py udp ADDRESS SIZE BYTES
				send datagrams of SIZE bytes by one UDP_SEGMENT
outside.py watch INTERFACE N	print the payload of N frames of type 0x88b5
outside.py CASE PID		a case; PID is in the host at the other end
"""

import os
import socket
import struct
import subprocess
import sys

SOL_PACKET, PACKET_VNET_HDR = 263, 15
UDP_SEGMENT = 103
MAC = bytes.fromhex("525400825401")
PEER = bytes.fromhex("020000000001")
MSS, SEGMENTS = 1000, 10
TEXT = bytes(i * 7 % 251 for i in range(MSS * SEGMENTS - 9))


# Packets, without a line of the project's code.

def checksum(data):
    """RFC 1071; 0 if the data have a right one."""
    return -int.from_bytes(data + b"\0" * (len(data) & 1), "big") % 0xffff


def ip4(proto, payload, ident=1):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), ident, 0,
                       64, proto, 0, b"\x0a\7\0\1", b"\x0a\7\0\2")
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def ip6(proto, payload, _=1):
    return struct.pack(">IHBB", 6 << 28, len(payload), proto, 64) + \
        b"\xfd" + bytes(14) + b"\1" + b"\xfd" + bytes(14) + b"\2" + payload


def pseudo(ip, proto, length):
    if ip[0] >> 4 == 4:
        return ip[12:20] + struct.pack(">HH", proto, length)
    return ip[8:40] + struct.pack(">IHH", length, 0, proto)


def tcp(wrap, number, count=SEGMENTS, partial=False):
    """A packet of TCP with a part of TEXT."""
    data = struct.pack(">HHIIBBHHH", 4000, 80, 1000 + MSS * number, 77, 0x50,
                       0x18 if number == count - 1 else 0x10, 500, 0, 0) + \
        TEXT[MSS * number:MSS * (number + 1)]
    part = pseudo(wrap(6, data), 6, len(data))
    value = checksum(part) ^ 0xffff if partial else checksum(part + data)
    return wrap(6, data[:16] + struct.pack(">H", value) + data[18:], number)


def udp(payload, port, summed=b""):
    head = struct.pack(">HHHH", 4444, port, 8 + len(payload), 0)
    if summed:
        head = head[:6] + struct.pack(">H", checksum(summed + head + payload))
    return head + payload


def datagram(wrap, number):
    """One of UDP, with its number."""
    part = bytes([number]) + TEXT[MSS * number:MSS * (number + 1)]
    length = 8 + len(part)
    summed = pseudo(wrap(17, bytes(length)), 17, length)
    return wrap(17, udp(part, 9, summed), number)


def ether(packet):
    return MAC + PEER + (b"\x08\0" if packet[0] >> 4 == 4 else b"\x86\xdd") + \
        packet


def gre(packet, flags=0, more=b""):
    kind = 0x0800 if packet[0] >> 4 == 4 else 0x86dd
    return struct.pack(">HH", flags, kind) + more + packet


def gre_summed(packet):
    data = gre(packet, 0x8000, bytes(4))
    return data[:4] + struct.pack(">H", checksum(data)) + data[6:]


VXLAN = struct.pack(">II", 0x08000000, 7 << 8)
GENEVE = struct.pack(">BBHI", 1, 0, 0x6558, 7 << 8) + b"\0\1\1\0"

# Each name, and the packet around an inner one, the n-th.
TUNNELS = {
    "plain": lambda p, n: p,
    "ipip": lambda p, n: ip4(4 if p[0] >> 4 == 4 else 41, p, n),
    "ip6ip6": lambda p, n: ip6(4 if p[0] >> 4 == 4 else 41, p),
    "gre": lambda p, n: ip4(47, gre(p), n),
    "gre, key": lambda p, n: ip4(47, gre(p, 0x2000, b"abcd"), n),
    "gre, checksum": lambda p, n: ip4(47, gre_summed(p), n),
    "gretap": lambda p, n: ip4(47, b"\0\0\x65\x58" + ether(p), n),
    "vxlan": lambda p, n: ip4(17, udp(VXLAN + ether(p), 4789), n),
    "geneve": lambda p, n: ip4(17, udp(GENEVE + ether(p), 6081), n),
}


def inner(data, kind):
    """The inner packet of a frame, whose lengths and checksums are right from
    the outside to the inside: (sequence number, payload)."""
    data, proto = data[14:], None
    while True:
        head = 4 * (data[0] & 15) if data[0] >> 4 == 4 else 40
        if head == 40:
            assert len(data) == 40 + struct.unpack(">H", data[4:6])[0], kind
            proto = data[6]
        else:
            assert len(data) == struct.unpack(">H", data[2:4])[0], kind
            assert checksum(data[:head]) == 0, kind
            proto = data[9]
        body = data[head:]
        if proto == 6:
            assert checksum(pseudo(data, 6, len(body)) + body) == 0, kind
            return struct.unpack(">I", body[4:8])[0], body[20:]
        if proto in (4, 41):
            data = body
        elif proto == 47:
            flags, ethertype = struct.unpack(">HH", body[:4])
            assert not flags & 0x8000 or checksum(body) == 0, kind
            data = body[4 + (4 if flags & 0x8000 else 0) +
                        (4 if flags & 0x2000 else 0):]
            if ethertype == 0x6558:
                data = data[14:]
        else:
            port, length, value = struct.unpack(">HHH", body[2:8])
            assert proto == 17 and length == len(body), kind
            assert not value or checksum(pseudo(data, 17, length) +
                                         body) == 0, kind
            if port == 9:
                return 1000 + MSS * body[8], body[9:]
            data = body[{4789: 8 + 8 + 14, 6081: 8 + 12 + 14, 5555: 8}[port]:]


# Programs in the host at the other end.

def there(pid, *args, **options):
    return subprocess.Popen(["nsenter", "-t", pid, "-n", sys.executable,
                             sys.argv[0]] + list(args), text=True, **options)


def send(pid, frames):
    with there(pid, "inject", "ea", stdin=subprocess.PIPE) as program:
        for header, frame in frames:
            program.stdin.write("%s %s\n" % (header.hex(), frame.hex()))
    assert program.returncode == 0


def inject(interface):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as s:
        s.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        s.bind((interface, 0))
        for line in sys.stdin:
            s.send(b"".join(map(bytes.fromhex, line.split())))


def datagrams(address, size, length):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, int(size))
        s.sendto(bytes(i % 251 for i in range(int(length))), (address, 9))


def watch(interface, n):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                       socket.htons(0x88b5)) as s:
        s.bind((interface, 0x88b5))
        print("ready", flush=True)
        for _ in range(int(n)):
            print(s.recv(2000)[14:].rstrip(b"\0").decode(), flush=True)


# Cases.

def guest(path="vm1.sock"):
    d = vfu_client.Driver(path)
    d.mac = MAC
    # The switch learns where it is.
    d.send(vfu_client.ethernet(b"\xff" * 6, MAC, b"hello"))
    return d


def receive(d, wanted):
    """The next frame that has this."""
    while True:
        frame = d.receive()
        if wanted(frame):
            return frame


def from_peer(frame):
    return frame[6:12] == PEER


def tunnels(pid):
    """Segments that the host's kernel puts together (GRO) arrive as they were
    sent, with all headers right."""
    d = guest()
    for kind, wrap in TUNNELS.items():
        for what, inside in ((w, i) for w in (tcp, datagram)
                             for i in (ip4, ip6)):
            send(pid, [(bytes(10), ether(wrap(what(inside, n), n)))
                       for n in range(SEGMENTS)])
            got = dict(inner(receive(d, from_peer), kind)
                       for _ in range(SEGMENTS))
            for i in range(SEGMENTS):
                part = TEXT[MSS * i:MSS * (i + 1)]
                assert got.get(1000 + MSS * i) == part, (kind, what, i)


def checksums(pid):
    """Partial checksums that no guest can complete are completed."""
    d = guest()
    sctp = bytes.fromhex("8e3c8e3c00000000deadbeef0100001411223344"
                         "00010000000a000a55667788")
    for wrap, start in (lambda p: ether(p), 34), \
            (lambda p: ether(TUNNELS["vxlan"](p, 1)), 34 + 50):
        send(pid, [(struct.pack("<BBHHHH", 1, 0, 0, 0, start, 8),
                    wrap(ip4(132, sctp)))])
        got = receive(d, from_peer)
        assert got[start:start + 32] == sctp[:8] + \
            bytes.fromhex("beb148aa") + sctp[12:], got.hex()
    # TCP in a tunnel.
    send(pid, [(struct.pack("<BBHHHH", 1, 0, 0, 0, 84, 16),
                ether(TUNNELS["vxlan"](tcp(ip4, 0, partial=True), 1)))])
    assert inner(receive(d, from_peer), "one")[1] == TEXT[:MSS]


def segments(pid):
    """Datagrams that a program sends by UDP_SEGMENT arrive as it means them."""
    d = guest()
    for address, size, length in (("192.0.2.2", 1408, 8 * 1408 + 7),
                                  ("192.0.2.2", 1, 20),
                                  ("192.0.2.2", 512, 1024),
                                  ("fd00::2", 1400, 8 * 1400 + 1),
                                  ("192.0.2.2", 1472, 1472)):
        program = there(pid, "udp", address, str(size), str(length))
        text = b""
        while len(text) < length:
            f = receive(d, lambda f: f[12:14] in (b"\x08\0", b"\x86\xdd") and
                        f[23 if f[12] == 8 else 20] == 17)
            ip = f[14:14 + struct.unpack(">H", f[16:18])[0]] if f[12] == 8 \
                else f[14:54 + struct.unpack(">H", f[18:20])[0]]
            body = ip[20 if f[12] == 8 else 40:]
            assert len(body) == struct.unpack(">H", body[4:6])[0]
            assert checksum(pseudo(ip, 17, len(body)) + body) == 0, (
                address, size)
            assert len(body) - 8 in (size, length % size), len(body)
            text += body[8:]
        assert text == bytes(i % 251 for i in range(length)), (address, size)
        assert program.wait() == 0


def invalid(pid):
    """Whatever a guest asks to be cut, the others' frames leave."""
    bad = vfu_client.Driver("vm1.sock")
    good = vfu_client.Driver("vm2.sock")
    at = bad.TXBUF
    head = struct.pack(">HHIIBBHHH", 1, 2, 3, 4, 0x50, 0x10, 5, 0, 0)
    options = bytes([6, 0, 1, 4, 0, 0, 0, 0])
    # TSO of each, and the offset of TCP's header.
    kinds = {
        "UDP": (b"\x08\0" + ip4(17, head + bytes(3000)), 34),
        "ICMP": (b"\x08\0" + ip4(1, head + bytes(3000)), 34),
        "another type": (b"\x88\xb6" + ip4(6, head + bytes(3000)), 34),
        "IPv6's type": (b"\x86\xdd" + ip4(6, head + bytes(3000)), 34),
        "a fragment": (b"\x08\0" + ip4(6, head + bytes(3000))[:6] +
                       b"\x20\0" + ip4(6, head + bytes(3000))[8:], 34),
        "an unknown extension": (b"\x86\xdd" + ip6(253, options + head +
                                                   bytes(3000)), 62),
        "hop-by-hop options": (b"\x86\xdd" + ip6(0, options + head +
                                                 bytes(3000)), 62),
        "MPLS": (b"\x88\x47\0\1\1\x40" + ip4(6, head + bytes(3000)), 38),
        "PPPoE": (b"\x88\x64\x11\0\0\1\x0b\xe2\0\x21" +
                  ip4(6, head + bytes(3000)), 42),
        "three tags": (b"\x81\0\0\5" * 3 + b"\x08\0" +
                       ip4(6, head + bytes(3000)), 46),
        "GRE": (b"\x08\0" + ip4(47, gre(ip4(6, head + bytes(3000)))), 58),
    }
    watcher = there(pid, "watch", "ea", str(len(kinds)),
                    stdout=subprocess.PIPE)
    assert watcher.stdout.readline() == "ready\n"
    for kind, (frame, l4) in kinds.items():
        frame = b"\xff" * 6 + bad.mac + frame
        v6 = frame[l4 - 40] >> 4 == 6 or options in frame
        net = l4 - (48 if options in frame else 20)
        bad.ram[at:at + len(frame)] = frame
        slot = bad.TXRING + 16 * bad.tail
        struct.pack_into("<BBHBBHIBBH", bad.ram, slot, net, net + 10, l4 - 1,
                         l4, l4 + 16, 0, 0x25000000 | (0 if v6 else 1 << 25) |
                         (len(frame) - l4 - 20), 0, l4 + 20, 1000)
        last = bad.TXRING + 16 * ((bad.tail + 1) % bad.SLOTS)
        struct.pack_into("<QIBBH", bad.ram, last, bad.gpa + at,
                         0x2f100000 | len(frame), 0, 3, 0)
        bad.tail = (bad.tail + 2) % bad.SLOTS
        bad.set(vfu_client.TDT, bad.tail)
        wait_until(lambda: bad.ram[last + 12] & 1, "write-back")
        good.send(vfu_client.ethernet(b"\xff" * 6, good.mac, kind.encode()))
        assert watcher.stdout.readline() == kind + "\n", kind
    assert watcher.wait() == 0


COMMANDS = {"inject": inject, "udp": datagrams, "watch": watch}
CASES = {f.__name__: f for f in (tunnels, checksums, segments, invalid)}

if __name__ == "__main__":
    if sys.argv[1] in COMMANDS:
        COMMANDS[sys.argv[1]](*sys.argv[2:])
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        import vfu_client
        from wait_until import wait_until
        CASES[sys.argv[1]](*sys.argv[2:])
