# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""A client of valed's control socket, and a port that it has opened.

vale_wire.h has the protocol, libvale.h the memory of a port.
"""

import array
import contextlib
import mmap
import os
import socket
import struct

from wait_until import WAIT_S, wait_until

MAGIC = 0x76616c31
REQUESTS = {"REGISTER": 1, "PORT_INFO_GET": 2, "VALE_ATTACH": 3,
            "VALE_DETACH": 4, "VALE_LIST": 5, "PORT_HDR_SET": 6,
            "PORT_HDR_GET": 7, "PORTS": 0x7600, "ADDRS": 0x7601,
            "SET": 0x7602, "MIRROR": 0x7603, "MISSED": 0x7604, "INFO": 0x7605,
            "SHARE": 0x7606, "RELOAD": 0x7607, "PORT_SETTINGS": 0x7608,
            "SWITCH_SETTINGS": 0x7609, "FILTER": 0x760b, "DEVICES": 0x760c,
            "RESTART": 0x760d, "REPLACE": 0x760e}
LIMIT = 2                               # of SET
MONITOR_TX, MONITOR_RX = 0x100, 0x200   # nr_flags
BOTH = 3                                # of MIRROR
NAME = 64
REGISTER = "=QQIIHHHHHHII4xQ"           # struct nmreq_register
HEAD = "=Ii128s"                        # struct vale_wire, without nmreq_header
HDR = "=HHI64sQQ"                       # struct nmreq_header
# struct hostif_fds: hf_name, hf_kind, hf_index, hf_flags, hf_family, hf_nfds
HOSTIF = "=16sIIIII17i"

# struct vale_wire_device, without its counters, and one of those
DEVICE = "=64s64sBB6sQII"
COUNTER = "=24s72sQ"
DEVICE_SIZE = struct.calcsize(DEVICE) + 80 * struct.calcsize(COUNTER)


class Refused(Exception):
    """valed answered with an error."""

    def __init__(self, errno, why):
        Exception.__init__(self, "%s: %s" % (os.strerror(errno), why))
        self.errno, self.why = errno, why


class Left(Exception):
    """valed closed the connection."""


def text(b):
    return b.split(b"\0")[0].decode()


@contextlib.contextmanager
def leaving():
    """valed may close the connection meanwhile."""
    try:
        yield
    except (BrokenPipeError, ConnectionResetError):
        raise Left() from None


@contextlib.contextmanager
def user(uid, gid=None, groups=()):
    """Connect as another user: effective, as the kernel tells valed."""
    before = os.getgroups(), os.getegid(), os.geteuid()
    os.setgroups(list(groups))
    os.setegid(uid if gid is None else gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(before[2])
        os.setegid(before[1])
        os.setgroups(before[0])


class Control:
    """A connection.  It sends what the caller says, right or wrong."""

    def __init__(self, path="control"):
        # valed serves its adapters before.
        wait_until(lambda: os.path.exists(path) and
                   not os.path.exists(path + ".lock"), "socket " + path)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(WAIT_S)
        self.sock.connect(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, request="VALE_LIST", name="", body=bytes(8), fds=(),
             creds=None):
        """Send a packet, with descriptors, and credentials if not None."""
        data = struct.pack(HEAD, MAGIC, 0, b"") + struct.pack(
            HDR, 14, REQUESTS[request], 0, name.encode(), 0, 0) + body
        anc = [(socket.SOL_SOCKET, 2, struct.pack("=3i", *creds))] \
            if creds is not None else []
        if fds:
            anc.append((socket.SOL_SOCKET, socket.SCM_RIGHTS,
                        array.array("i", fds)))
        with leaving():
            self.sock.sendmsg([data], anc)

    def reply(self):
        """The next one: its error, why, name, body and descriptors."""
        with leaving():
            data, anc, _, _ = self.sock.recvmsg(65536,
                                                socket.CMSG_SPACE(64 * 4))
        if not data:
            raise Left()
        fds = array.array("i")
        for _, kind, d in anc:
            if kind == socket.SCM_RIGHTS:
                fds.frombytes(d[:len(d) - len(d) % 4])
        size = struct.calcsize(HEAD)
        magic, error, why = struct.unpack_from(HEAD, data)
        hdr = struct.unpack_from(HDR, data, size)
        assert magic == MAGIC and (error == 0) == (text(why) == "")
        return (error, text(why), text(hdr[3]),
                data[size + struct.calcsize(HDR):], list(fds))

    def call(self, request, name="", body=b"", fds=()):
        """Returns the name, the body and the descriptors of the reply."""
        self.send(request, name, body, fds)
        error, why, *reply = self.reply()
        if error:
            raise Refused(error, why)
        return tuple(reply)

    def served(self):
        """Whether valed answers, and does not close the connection."""
        try:
            self.send()
            self.reply()
            return True
        except Left:
            return False

    def register(self, name, flags=0, mode=1, mem_id=0):
        return Port(self, self.call("REGISTER", name, struct.pack(
            REGISTER, 0, 0, 0, 0, 0, 0, 0, 0, mem_id, 0, mode, 0, flags)))

    def set_limit(self, name, n):
        self.call("SET", name, struct.pack("=IIQ512s", LIMIT, 0, n, b""))

    def mirror(self, name, of, what=BOTH):
        self.call("MIRROR", name, struct.pack("=I64s", what, of.encode()))

    def ports(self, switch=""):
        """The names of the ports that valed shows, and their indices."""
        _, body, _ = self.call("PORTS", switch, struct.pack("=II", 0, 0))
        _, n = struct.unpack_from("=II", body)
        ports, at = {}, 8
        for _ in range(n):
            name, index, _, _, _, counters = struct.unpack_from("=64sHHIII",
                                                                body, at)
            ports[text(name)] = index
            at += 80 + 8 * counters
        assert at == len(body)
        return ports

    def devices(self, name=""):
        """The adapters and interfaces that valed shows, by their ports: kind,
        flags, address, since, interval and counters."""
        found, first = {}, 0
        while True:
            _, body, _ = self.call("DEVICES", name,
                                   struct.pack("=II", first, 0))
            _, n = struct.unpack_from("=II", body)
            assert len(body) == 8 + n * DEVICE_SIZE
            if n == 0:
                return found
            first += n
            for at in range(8, len(body), DEVICE_SIZE):
                d = struct.unpack_from(DEVICE, body, at)
                counters = {}
                for i in range(d[7]):
                    c, _, value = struct.unpack_from(
                        COUNTER, body, at + struct.calcsize(DEVICE) +
                        i * struct.calcsize(COUNTER))
                    counters[text(c)] = value
                found[text(d[1])] = (text(d[0]), *d[2:7], counters)

    def addrs(self, switch):
        """The addresses that valed shows, and the indices of their ports."""
        _, body, _ = self.call("ADDRS", switch, struct.pack("=II", 0, 0))
        _, n = struct.unpack_from("=II", body)
        assert len(body) == 8 + 16 * n
        return {body[8 + 16 * i:14 + 16 * i]: body[14 + 16 * i]
                for i in range(n)}

    def list(self):
        """The names that VALE_LIST finds, one after another."""
        names, place = [], (0, 0)
        while True:
            try:
                name, body, _ = self.call("VALE_LIST", "",
                                          struct.pack("=HHI", place[0], 0,
                                                      place[1]))
            except Refused as e:
                assert "no further port" in e.why, e
                return names
            names.append(name)
            at = struct.unpack_from("=HHI", body)
            place = at[0], at[2] + 1

    def attach(self, name, ifname, kind, index, fds):
        self.call("VALE_ATTACH", name, struct.pack(
            HOSTIF, ifname.encode(), kind, index, 0, 0, len(fds), *17 * [0]),
            fds)


class Port:
    """A port or monitor: ring pair 0."""

    def __init__(self, control, reply):
        self.control = control
        self.name, body, self.fds = reply
        reg = struct.unpack_from(REGISTER, body)
        self.mem_id = reg[8]
        self.ram = mmap.mmap(self.fds[0], reg[1])
        # Behind the CSB: what valed uses, not the window at nr_offset.
        self.tx, self.rx = (256 + ofs for ofs in struct.unpack_from(
            "=2q", self.ram, 256 + 56))

    def close(self):
        self.ram.close()
        for fd in self.fds:
            os.close(fd)
        self.control.close()

    def slot(self, ring, i):
        """Where the slot is, and its buffer."""
        buf_ofs, n, size = struct.unpack_from("=qII", self.ram, ring)
        at = ring + 256 + 16 * (i % n)
        idx, = struct.unpack_from("=I", self.ram, at)
        return at, ring + buf_ofs + idx * size

    def word(self, at):
        return struct.unpack_from("=I", self.ram, at)[0]

    def send(self, frame):
        head = self.word(64)            # hwcur of the transmit ring
        at, buf = self.slot(self.tx, head)
        self.ram[buf:buf + len(frame)] = frame
        struct.pack_into("=HHQ", self.ram, at + 4, len(frame), 0, 0)
        # In one store: pack_into() clears first, and valed may look then, whom
        # an earlier kick has woken, and send the whole ring.
        self.ram[:8] = struct.pack("=II", head + 1, head + 1)
        os.write(self.fds[2], b"k")
        wait_until(lambda: self.word(64) == head + 1, "the frame to be sent")

    def frames(self, n):
        """All that is in the receive ring, which stays there, when there are
        `n' at least: copies for a monitor come on its own time."""
        wait_until(lambda: self.word(192 + 4) >= n, "%u frames" % n)
        got = []
        for i in range(self.word(192 + 4)):
            at, buf = self.slot(self.rx, i)
            n, = struct.unpack_from("=H", self.ram, at + 4)
            got.append(self.ram[buf:buf + n])
        return got
