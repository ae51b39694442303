# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""A session on the control socket as version 1.0 had it, for
valed_stored_test.sh: what is stored of it is not written again.

stored_control.txt has these lines:

        connect                 another connection; the first has the port
        > TYPE SIZE             a request, which is sent on the last connection
        < TYPE SIZE FDS         the reply, which came with so many descriptors
        frame SIZE              the user of the port sends a frame

Behind a SIZE are lines of an offset and bytes, hexadecimal, between which there are
zeros.  It was made by "stored.py make", with VALED and PYTHONPATH as in a test, in
an empty directory.
"""

import json
import os
import re
import socket
import struct
import subprocess
import threading

from ctl_client import *
from vfu_client import *

STORED = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "stored_control.txt")
VALECTL = os.environ["VALECTL"]

# Version 1: vale_wire.h.  ctl_client.py has what is the present one's.
V1_HEAD = "=Ii128s"
V1_HDR = "=HHI64sQQ"
V1_BEGIN = struct.calcsize(V1_HEAD) + struct.calcsize(V1_HDR)
V1_VALUE = 16 + 512
V1_PORT = "=64sHBBIII"
V1_DEVICE = "=64s64sBB6sQII"
V1_COUNTER = "=24s71sBQ"
V1_COUNTERS = 80
V1_MAGIC = 0x76616c31


#
# The file.
#

def lines_of(data):
    """The lines of bytes."""
    return ["\t%d %s\n" % (p.start(), p[0].hex()) for p in
            re.finditer(rb"[^\0](?:[^\0]|\0{1,3}(?=[^\0])){0,31}", data)]


def read_steps():
    """The steps of the session: (what, its fields, bytes)."""
    steps = []
    with open(STORED) as f:
        for line in f:
            if line.startswith("#"):
                continue
            fields = line.split()
            if line[0] == "\t":
                at, piece = int(fields[0]), bytes.fromhex(fields[1])
                steps[-1][2][at:at + len(piece)] = piece
                continue
            size = fields[1 if fields[0] == "frame" else 2] \
                if len(fields) > 1 else 0
            steps.append((fields[0], fields[1:], bytearray(int(size))))
    return steps


#
# A valed, and a client that knows nothing but what is stored.
#

def valed():
    with open("valed.conf", "w") as f:
        f.write("switch.vale0.ageing=60\nport.vale0:p.weight=2\n")
    return Valed(["vm1", "vm2"], {
        "vm1": ",mac=58:9c:fc:00:00:01,source=own,limit=5,itr=500",
        "vm2": ",mac=58:9c:fc:00:00:02,trunk=10,20-30,native=1"},
        args=["-c", "control", "-k", "valed.conf"])


class Session:
    """Connections to a control socket."""

    def __init__(self):
        self.socks, self.fds, self.port = [], [], None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.port is not None:
            self.port.ram.close()
        for fd in self.fds:
            os.close(fd)
        for s in self.socks:
            s.close()

    def connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(WAIT_S)
        wait_until(lambda: os.path.exists("control") and
                   not os.path.exists("control.lock"), "the control socket")
        s.connect("control")
        self.socks.append(s)

    def call(self, packet):
        """Send a request; returns the reply, and how many descriptors it has."""
        s = self.socks[-1]
        s.sendall(packet)
        reply, fds, _, _ = socket.recv_fds(s, 65536, 64)
        self.fds += fds
        reqtype, = struct.unpack_from("=H", packet,
                                      struct.calcsize(V1_HEAD) + 2)
        if reqtype == REQUESTS["REGISTER"] and fds and self.port is None:
            self.port = Port(s, (None, reply[V1_BEGIN:], fds))
        return reply, len(fds)


def session():
    """A client of version 1.0 has the answers that it had."""
    steps = read_steps()
    with valed(), Session() as s:
        for n, (what, fields, data) in enumerate(steps):
            if what == "connect":
                s.connect()
            elif what == "frame":
                s.port.send(bytes(data))
            elif what == ">":
                reply, fds = s.call(data)
                kind, then = fields[0], steps[n + 1]
                assert then[0] == "<" and then[1][0] == kind
                try:
                    compare(kind, bytes(then[2]), reply)
                    assert fds == int(then[1][2]), fds
                except (AssertionError, struct.error) as e:
                    raise AssertionError("step %d, %s: %s" % (n, kind, e))
    assert sum(what == ">" for what, _, _ in steps) >= 30


#
# Compare two replies.  Error texts may differ, and the new reply may have more
# counters; all else must be the same.
#

def compare(kind, then, now):
    why = slice(8, struct.calcsize(V1_HEAD))
    assert (now[:8], now[why.stop:V1_BEGIN]) == \
        (then[:8], then[why.stop:V1_BEGIN]), \
        (now[:V1_BEGIN], then[:V1_BEGIN])
    assert (now[why.start] == 0) == (then[why.start] == 0)
    parse = {"PORTS": ports, "ADDRS": addrs, "DEVICES": devices,
             "PORT_SETTINGS": values, "SWITCH_SETTINGS": values,
             }.get(kind, lambda body: {"body": body})
    then, now = parse(then[V1_BEGIN:]), parse(now[V1_BEGIN:])
    for key, value in then.items():
        assert now.get(key) == value, (key, now.get(key), value)


def values(body):
    """Settings, by their numbers."""
    assert len(body) % V1_VALUE == 0
    return {struct.unpack_from("=I", body, at): body[at:at + V1_VALUE]
            for at in range(0, len(body), V1_VALUE)}


def ports(body):
    """Ports, and each counter that is not 0, by its place."""
    first, n = struct.unpack_from("=II", body)
    at, found = 8, {"first": first, "ports": n}
    for _ in range(n):
        name, index, rings, down, _, _, counters = struct.unpack_from(
            V1_PORT, body, at)
        at += struct.calcsize(V1_PORT)
        found[name] = index, rings, down
        for i, value in enumerate(struct.unpack_from("=%dQ" % counters, body,
                                                     at)):
            if value != 0:
                found[name, i] = value
        at += 8 * counters
    assert at == len(body)
    return found


def addrs(body):
    """Addresses, whatever their ages."""
    first, n = struct.unpack_from("=II", body)
    assert len(body) == 8 + 16 * n
    found = {"first": first, "addrs": n}
    for at in range(8, len(body), 16):
        addr, port, _, _, vlan = struct.unpack_from("=6sBBIH", body, at)
        found[addr] = port, vlan
    return found


def devices(body):
    """Adapters, and the kinds of their counters, by name."""
    first, n = struct.unpack_from("=II", body)
    size = struct.calcsize(V1_DEVICE) + V1_COUNTERS * \
        struct.calcsize(V1_COUNTER)
    assert len(body) == 8 + n * size
    found = {"first": first, "devices": n}
    for at in range(8, len(body), size):
        name, port, kind, _, addr, _, itr, counters = struct.unpack_from(
            V1_DEVICE, body, at)
        found[name] = port, kind, addr, itr
        at += struct.calcsize(V1_DEVICE)
        for i in range(counters):
            counter, _, kind, _ = struct.unpack_from(
                V1_COUNTER, body, at + i * struct.calcsize(V1_COUNTER))
            found[name, counter] = kind
    return found


#
# A valed of version 1.0, for the present valectl.
#

def answers():
    """The last reply to each request, by its type and name."""
    found, key = {}, None
    for what, _, data in read_steps():
        if what == ">":
            _, reqtype, _, name, _, _ = struct.unpack_from(
                V1_HDR, data, struct.calcsize(V1_HEAD))
            key = reqtype, text(name)
        elif what == "<":
            found[key] = bytes(data)
    return found


def answer(found, packet):
    """What version 1.0 answers; of lists nothing behind their first page."""
    magic, _, _ = struct.unpack_from(V1_HEAD, packet)
    _, reqtype, _, name, _, _ = struct.unpack_from(
        V1_HDR, packet, struct.calcsize(V1_HEAD))
    assert magic == V1_MAGIC
    reply = found[reqtype, text(name)]
    if reqtype in (REQUESTS["PORTS"], REQUESTS["ADDRS"],
                   REQUESTS["DEVICES"]):
        first, = struct.unpack_from("=I", packet, V1_BEGIN)
        if first > 0:
            reply = reply[:V1_BEGIN] + struct.pack("=II", first, 0)
    return reply


def serve(listening, found, failed):
    while True:
        s, _ = listening.accept()
        with s:
            while packet := s.recv(65536):
                try:
                    s.sendall(answer(found, packet))
                except (AssertionError, KeyError, struct.error) as e:
                    failed.append(repr(e))
                    break


def served():
    """valectl reads the answers of a valed of version 1.0."""
    failed = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind("control")
        s.listen()
        threading.Thread(target=serve, args=(s, answers(), failed),
                         daemon=True).start()

        def says(*args):
            done = subprocess.run([VALECTL, "-c", "control", "-j"] +
                                  list(args), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            assert done.returncode == 0 and not failed, \
                (args, done.stderr, failed)
            return json.loads(done.stdout)
        assert [p["name"] for p in says("-l", "all")] == [
            "vale0:vm1", "vale0:vm2", "vale0:p"]
        assert says("-l", "vale0:vm2")["port_idx"] == 1
        assert says("-g", "vale0:p")["tx_slots"] == 64
        sent = says("-k", "vale0:p")["vale0:p"]
        assert (sent["tx_frames"], sent["tx_bytes"]) == (1, len(FRAME)), sent
        assert [(a["address"], a["port"]) for a in says("-t", "vale0")] == [
            ("02:00:00:00:00:01", "vale0:p")]
        for name, setting, value in (
                ("vale0:p", "limit", 7), ("vale0:p", "private", True),
                ("vale0:vm2", "native", 1), ("vale0", "ageing", 60)):
            assert says("-o", name)[setting] == value, (name, setting)


#
# To make the file.
#

def packet(kind, name="", body=b"", magic=V1_MAGIC, api=14, reqtype=None):
    return struct.pack(V1_HEAD, magic, 0, b"") + struct.pack(
        V1_HDR, api, REQUESTS[kind] if reqtype is None else reqtype, 0,
        name.encode(), 0, 0) + body


def value(setting, number=0, burst=0, words=b""):
    return struct.pack("=IIQ512s", setting, burst, number, words)


def register(name, flags=0):
    return packet("REGISTER", name, struct.pack(
        REGISTER, 0, 0, 64, 64, 1, 1, 0, 0, 0, 0, 1, 0, flags))


PAGE = bytes(8)
FRAME = b"\xff" * 6 + bytes.fromhex("020000000001") + b"\x88\xb5" + \
    bytes(range(46))
# Each request of version 1 but those that end something; FRAME is sent by the
# port.
MADE = (
    ("connect",),
    ("VALE_LIST", packet("VALE_LIST", "", PAGE)),
    ("VALE_LIST", packet("VALE_LIST", "vale0:vm2", PAGE)),
    ("REGISTER", register("vale0:p")),
    ("SHARE", packet("SHARE")),
    ("PORT_HDR_SET", packet("PORT_HDR_SET", "vale0:p",
                            struct.pack("=II", 12, 0))),
    ("PORT_HDR_GET", packet("PORT_HDR_GET", "vale0:p")),
    ("PORT_HDR_SET", packet("PORT_HDR_SET", "vale0:p", bytes(8))),
    ("MISSED", packet("MISSED")),
    ("PORT_INFO_GET", packet("PORT_INFO_GET", "vale0:p")),
    ("INFO", packet("INFO", "vale0:q", bytes(32))),
    ("frame",),
    ("connect",),
    ("PORTS", packet("PORTS", "", PAGE)),
    ("PORTS", packet("PORTS", "vale0", PAGE)),
    ("PORTS", packet("PORTS", "vale0:p", PAGE)),
    ("ADDRS", packet("ADDRS", "vale0", PAGE)),
    ("DEVICES", packet("DEVICES", "", PAGE)),
    ("SET", packet("SET", "vale0:p", value(2, 7))),
    ("SET", packet("SET", "vale0:p", value(3, 1000000, 65536) +
                   value(6, 1))),
    ("SET", packet("SET", "vale0:p", value(4, 5000, 100))),
    ("SET", packet("SET", "vale0:p", value(13, words=b"10.0.0.0/8"))),
    ("SET", packet("SET", "vale0:p", value(8, 1, words=b"vale0:vm1"))),
    ("SET", packet("SET", "vale0:vm1", value(99))),
    ("SET", packet("SET", "vale0", value(7, 64) + value(14, 0))),
    ("MIRROR", packet("MIRROR", "vale0:p",
                      struct.pack("=I64s", 3, b"vale0:vm2"))),
    ("PORT_SETTINGS", packet("PORT_SETTINGS", "vale0:p")),
    ("PORT_SETTINGS", packet("PORT_SETTINGS", "vale0:vm1")),
    ("PORT_SETTINGS", packet("PORT_SETTINGS", "vale0:vm2")),
    ("SWITCH_SETTINGS", packet("SWITCH_SETTINGS", "vale0")),
    ("RELOAD", packet("RELOAD")),
    ("REPLACE", packet("REPLACE")),
    ("VALE_DETACH", packet("VALE_DETACH", "vale0:eth0")),
    ("FILTER", packet("FILTER", "", struct.pack("=IHBBI", 1, 6, 0, 0, 96) +
                      bytes(511 * 8))),
    ("REGISTER", register("vale0:vm1", MONITOR_TX | MONITOR_RX)),
    ("connect",),
    ("REGISTER", register("vale0:p{1")),
    # No request; another version of the protocol, of netmap; a short one.
    ("none", packet(None, reqtype=0x76ff)),
    ("VALE_LIST", packet("VALE_LIST", "vale0:p", PAGE, magic=V1_MAGIC + 1)),
    ("VALE_LIST", packet("VALE_LIST", "vale0:p", PAGE, api=13)),
    ("VALE_LIST", packet("VALE_LIST", "vale0:p")),
)


def make():
    """Write the file anew, of what valed says now."""
    with valed(), Session() as s, open("stored_control.txt", "w") as f:
        f.write("# A session with valed 1.0: stored.py.\n")

        def put(what, data):
            f.write(what + "\n")
            f.writelines(lines_of(data))
        for what, *request in MADE:
            if what == "connect":
                s.connect()
                f.write("connect\n")
            elif what == "frame":
                s.port.send(FRAME)
                put("frame %d" % len(FRAME), FRAME)
            else:
                put("> %s %d" % (what, len(*request)), *request)
                reply, fds = s.call(*request)
                put("< %s %d %d" % (what, len(reply), fds), reply)

if __name__ == "__main__":
    main({f.__name__: f for f in (session, served, make)})
