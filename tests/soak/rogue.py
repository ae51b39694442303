# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Clients that do anything, of a user, in a process of their own.

    rogue.py control UID SEED	of the control socket: ports, pipes, memory,
				monitors, settings, descriptors of any kind;
				they write to the memory and withdraw pages
    rogue.py guest NAME SEED	of adapter NAME: a guest that withdraws pages
				of its memory while it sends, and reconnects

They end when standard input does, and print how often they did what.  It is an
error if valed does not answer a valid packet, or connect, within WAIT_S; it may
refuse what they ask for, and close a connection, which are counted.
"""

import array
import contextlib
import ctypes
import errno
import json
import mmap
import os
import random
import select
import socket
import struct
import sys

import ctl_client
from vfu_client import *

# Requests with the sizes of their bodies: lib/libctl/ctl.c.
BODIES = {"REGISTER": 56, "PORT_INFO_GET": 0, "PORT_HDR_SET": 8,
          "PORT_HDR_GET": 0, "VALE_LIST": 8, "PORTS": 8, "ADDRS": 8, "SET": 528,
          "MIRROR": 68, "PORT_SETTINGS": 0, "SWITCH_SETTINGS": 0,
          "MISSED": 0, "INFO": 32, "SHARE": 0, "VALE_ATTACH": 104,
          "VALE_DETACH": 0, "RELOAD": 0, "FILTER": 4100}
ALL_NIC, NULL = 1, 7
MONITORS = (0x100, 0x200, 0x300)
CONNECTIONS = 6
AF_XDP = 44
PAGE = 4096
libc = ctypes.CDLL(None, use_errno=True)
PUNCH = 3                   # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE


def punch(fd, size, rng):
    """Withdraw some pages of a file, or all."""
    if rng.randrange(8) == 0:
        at, n = 0, size
    else:
        at = rng.randrange(size // PAGE) * PAGE
        n = PAGE * rng.randrange(1, 64)
    fallocate(fd, at, n)


def fallocate(fd, at, n):
    if libc.fallocate(fd, PUNCH, ctypes.c_long(at), ctypes.c_long(n)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


class Control(ctl_client.Control):
    """A connection to the control socket, and what it has registered."""

    def __init__(self):
        ctl_client.Control.__init__(self)
        self.fds = []
        self.memory = None
        self.name = ""

    def close(self):
        ctl_client.Control.close(self)
        if self.memory is not None:
            self.memory.close()
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        self.memory = None

    def call(self, kind, name="", body=b"", fds=(), creds=None, give=False):
        """Return the error, the body and the descriptors, or None if valed has
        closed the connection.  What is given is valed's alone."""
        try:
            try:
                self.send(kind, name, body, fds, creds)
            finally:
                for fd in fds if give else ():
                    os.close(fd)
            error, _, _, *r = self.reply()
        except ctl_client.Left:
            return None
        return error, *r

    def register(self, name, mode=ALL_NIC, slots=(0, 0), rings=1, mem_id=0,
                 extra=0, flags=0, fds=()):
        r = self.call("REGISTER", name, struct.pack(
            ctl_client.REGISTER, 0, 0, *slots, rings, rings, 0, 0, mem_id, 0,
            mode, extra, flags), fds)
        if r is None or r[0] != 0:
            return r
        self.name, self.fds = name, r[2]
        self.offset, self.size = struct.unpack_from("=QQ", r[1])
        self.rings, = struct.unpack_from("=H", r[1], 24)
        self.mem_id, = struct.unpack_from("=H", r[1], 32)
        self.memory = mmap.mmap(self.fds[0], self.size)
        return r


def stream(linger):
    """A connection that nobody reads, and its listening socket.  Who closes it
    last then waits a second, if it lingers."""
    server = socket.create_server(("127.0.0.1", 0))
    s = socket.socket()
    s.connect(server.getsockname())
    s.setblocking(False)
    if linger:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                     struct.pack("=ii", 1, 1))
        with contextlib.suppress(BlockingIOError):
            while True:
                s.send(bytes(1 << 16))
    return s, server


def descriptors(linger):
    """Open one of each kind."""
    kept = []

    def keep(*socks):
        kept.extend(s.detach() for s in socks)
    for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM:
        keep(*socket.socketpair(socket.AF_UNIX, kind))
    for args in ((socket.AF_INET, socket.SOCK_DGRAM),
                 (socket.AF_PACKET, socket.SOCK_RAW),
                 (socket.AF_NETLINK, socket.SOCK_RAW),
                 (AF_XDP, socket.SOCK_RAW)):
        with contextlib.suppress(OSError):
            keep(socket.socket(*args))
    keep(*stream(linger))
    kept += os.pipe()
    kept += [os.eventfd(0), memory(65536), memory(65536, 0),
             os.open("/dev/null", os.O_RDWR), os.open("/", os.O_RDONLY)]
    return kept


class Rogue:
    """Connections of a user that do anything."""

    def __init__(self, uid, rng):
        self.uid, self.rng = uid, rng
        self.conns = []
        self.done = {}

    def count(self, what, n=1):
        self.done[what] = self.done.get(what, 0) + n

    def name(self):
        """A port's: this user's, another one's, an adapter's, a pipe's."""
        rng = self.rng
        name = "vale0:" + rng.choice(
            ["p%d-%d" % (self.uid, rng.randrange(6))] * 4 +
            ["p%d-%d" % (self.uid ^ 1, rng.randrange(6)), "vm1", "vm4"])
        return name + rng.choice([""] * 6 + ["{1", "}1", "{x", "}x"])

    def answered(self, c, what, r):
        """Count a reply; close what it brought and the port does not need."""
        if r is None:
            self.count("closed")
            self.drop(c)
            return
        self.count(what if r[0] == 0 else
                   "refused_" + errno.errorcode.get(r[0], str(r[0])))
        for fd in r[2]:
            if fd not in c.fds:
                os.close(fd)

    def drop(self, c):
        self.conns.remove(c)
        c.close()

    def connect(self):
        self.conns.append(Control())
        self.count("connects")

    def register(self, c):
        rng = self.rng
        flags, mode, name = 0, ALL_NIC, self.name()
        if rng.randrange(6) == 0:
            flags = rng.choice(MONITORS)
        elif rng.randrange(8) == 0:
            mode = NULL
        known = [o.fds[0] for o in self.conns if o.fds]
        fds = [rng.choice(known)] if known and rng.randrange(4) == 0 else ()
        r = c.register(name, mode, rng.choice([(0, 0), (64, 64), (16, 1024)]),
                       rng.choice((1, 1, 1, 2, 4)),
                       rng.choice((0, 0, 0, 1, 2, 3, 7)),
                       rng.choice((0, 0, 8)), flags, fds)
        self.answered(c, "monitors" if flags else "pipes" if name[-2] in "{}"
                      else "memories" if mode == NULL else "ports", r)

    def request(self, c):
        """Any, with a body of its length, mostly."""
        rng = self.rng
        kind = rng.choice(list(BODIES))
        if kind == "REGISTER" and c.fds:
            return
        size = BODIES[kind] if rng.randrange(8) else rng.randrange(200)
        body = bytes(rng.choice((0, 0, 0, 1, 2, rng.randrange(256)))
                     for _ in range(size))
        if kind == "REGISTER":
            self.register(c)
            return
        self.answered(c, "requests", c.call(kind, rng.choice(
            (self.name(), c.name, "vale0", "")), body))

    def setting(self, c):
        """Of any port; an administrator undoes it."""
        rng = self.rng
        kind = rng.randrange(1, 8)
        name = "vale0" if kind in (1, 7) else self.name()
        self.answered(c, "settings", c.call("SET", name, struct.pack(
            "=IIQ512s", kind, 0, rng.randrange(4) * rng.choice((1, 1000)),
            b"")))

    def mirror(self, c):
        self.answered(c, "mirrors", c.call("MIRROR", self.name(), struct.pack(
            "=I64s", self.rng.randrange(4), self.name().encode())))

    def attach(self, c):
        """An interface that is none, of descriptors of any kind."""
        rng = self.rng
        fds = descriptors(rng.randrange(16) == 0)
        rng.shuffle(fds)
        some = fds[:rng.randrange(1, 18)]
        for fd in fds[len(some):]:
            os.close(fd)
        body = struct.pack("=16s5I", b"eth0", rng.randrange(4), 1, 0, 0,
                           len(some)) + bytes(68)
        creds = (os.getpid(), self.uid, self.uid)
        r = c.call("VALE_ATTACH", "vale0:eth%d" % rng.randrange(3), body, some,
                   creds if rng.randrange(3) == 0 else None, give=True)
        self.count("descriptors", len(some))
        self.answered(c, "attaches", r)
        if r is not None and r[0] == 0 and c in self.conns:
            c.call("VALE_DETACH", "vale0:eth0")

    def scribble(self, c):
        """Write to the memory: mostly CSB, rings and slots."""
        rng = self.rng
        for _ in range(rng.randrange(1, 200)):
            at = rng.randrange(min(c.size, rng.choice((512, 65536, c.size))))
            struct.pack_into("=I", c.memory, at & ~3,
                             rng.choice((0, 1, 60, rng.randrange(1 << 12),
                                         rng.randrange(1 << 32))))
        self.count("scribbles")

    def punch(self, c):
        punch(c.fds[0], c.size, self.rng)
        self.count("holes")

    def send(self, c):
        """Publish slots of a transmit ring, as they are, and kick."""
        rng = self.rng
        if len(c.fds) < 3:
            return
        struct.pack_into("=I", c.memory, 256 * rng.randrange(c.rings),
                         rng.randrange(1024))
        with socket.socket(fileno=os.dup(c.fds[2])) as s, \
                contextlib.suppress(OSError):
            s.send(b"k", socket.MSG_DONTWAIT)
        self.count("kicks")

    def share(self, c):
        """The port's descriptors once more."""
        self.answered(c, "shares", c.call("SHARE"))

    def step(self):
        rng = self.rng
        if len(self.conns) < 2 or (len(self.conns) < CONNECTIONS and
                                   rng.randrange(8) == 0):
            self.connect()
            return
        c = rng.choice(self.conns)
        if rng.randrange(20) == 0:
            self.drop(c)
        elif c.fds and rng.randrange(2):
            rng.choice((self.scribble, self.punch, self.send, self.send,
                        self.share))(c)
        elif not c.fds and rng.randrange(2):
            self.register(c)
        else:
            rng.choice((self.request, self.request, self.setting,
                        self.mirror, self.attach))(c)


class Bad:
    """A guest whose pages go while it sends, and whose client goes."""

    def __init__(self, name, rng):
        self.path, self.rng = name + ".sock", rng
        self.done = {"frames": 0, "holes": 0, "resets": 0, "connects": 0}
        self.guest = None

    def connect(self):
        # One that left is served to its end first.
        wait_until(self.connected, "a connection to " + self.path)
        self.done["connects"] += 1

    def connected(self):
        with contextlib.suppress(Gone):
            self.guest = Driver(self.path)
            return True
        return False

    def step(self):
        rng, g = self.rng, self.guest
        if g is None:
            self.connect()
            return
        for _ in range(rng.randrange(1, g.SLOTS)):
            dst = rng.choice((b"\xff" * 6, b"\2nobod", b"\2vm3.s"))
            g.queue(ethernet(dst, g.mac, bytes(rng.choice((1, 1400)))))
            self.done["frames"] += 1
        # The pages of what it sends, of its rings, of what it receives.
        if rng.randrange(2):
            punch(g.fd, g.SIZE, rng)
            self.done["holes"] += 1
        g.set(TDT, g.tail, post=True)
        g.set(RDT, rng.randrange(g.SLOTS), post=True)
        if rng.randrange(50) == 0:
            g.call(RESET)
            g.start()
            self.done["resets"] += 1
        elif rng.randrange(200) == 0:
            g.close()
            self.guest = None


def main():
    kind, who, seed = sys.argv[1:]
    rng = random.Random(seed)
    if kind == "control":
        os.setgroups([])
        os.setresgid(int(who), int(who), int(who))
        os.setresuid(int(who), int(who), int(who))
        rogue = Rogue(int(who), rng)
    else:
        rogue = Bad(who, rng)
    while not select.select([0], [], [], 0)[0]:
        rogue.step()
    print(json.dumps(rogue.done))


if __name__ == "__main__":
    main()
