# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Hostile clients, for valed_hostile_test.sh.

valed has three VMs.  The client of vm1 attacks.  Those of vm2 and vm3 stay
connected and exchange frames before and after each attack; vm1 then must serve
a new client, and valed must have as many descriptors and mappings as before.
Messages that are refused, or end a connection, are in tests/lib/libvfu; ranges
of memory that are, in tests/lib/libpeer.
"""

import contextlib
import errno
import mmap
import os
import signal
import struct
import subprocess
import sys
import time

from vfu_client import *
from vfu_client import main as run_case

READ_STATUS = struct.pack("=QII", STATUS, BAR0, 4)


class Scene:
    """valed, with vm2 and vm3 connected."""

    def __init__(self, options=""):
        self.options = options

    def __enter__(self):
        names = ["vm1", "vm2", "vm3"]
        self.valed = Valed(names, dict.fromkeys(names, self.options))
        self.b = Driver("vm2.sock")
        self.c = Driver("vm3.sock")
        self.valed.idle("vm1")
        self.check_service()
        self.resources = self.valed.resources("vm1")
        return self

    def __exit__(self, kind, *rest):
        if kind is None:
            self.check_service()
        self.b.close()
        self.c.close()
        self.valed.__exit__(kind, *rest)

    def check_service(self):
        """vm2 and vm3 still work, and vm1 works for a new client."""
        exchange(self.b, self.c)
        self.valed.idle("vm1")
        with Driver("vm1.sock") as a:
            exchange(a, self.b)
            fd = eventfd()
            a.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(fd,))
            a.set(IMS, ICR_TXDW)
            a.set(ICS, ICR_TXDW)
            assert wait_event(fd) == 1
        self.valed.idle("vm1")

    def check_resources(self):
        """valed has released what vm1's former clients had."""
        # A thread of its own closes descriptors of unknown kinds.
        wait_until(lambda: self.valed.resources("vm1") == self.resources,
                   "%d descriptors and %d mappings" % self.resources,
                   lambda: self.valed.resources("vm1"))

    @contextlib.contextmanager
    def attack(self, negotiate=True):
        """Connect to vm1, and check afterwards that nothing is harmed."""
        with Client("vm1.sock", negotiate) as a:
            yield a
        self.check_service()
        self.check_resources()

    def disconnects(self, action):
        """Check that valed closes the connection after action(client)."""
        with self.attack() as a:
            action(a)
            closed(a)


def closed(a):
    """Check that the server closes the connection; skip earlier replies."""
    try:
        while True:
            with contextlib.suppress(Refused):
                a.reply()
    except Gone:
        pass


def memory_limit():
    """A client cannot map more than mem=, without it as much as the host has:
    what it could make valed touch costs page tables, and pages of its file."""
    top = 1 << 40
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    for options, limit, said in (
            ("", min(host, top), ""), (",mem=3M", 3 << 20, "3M"),
            (",mem=2G", 2 << 30, "2G"), (",mem=1T", top, "1T")):
        with Scene(options) as s, s.attack() as a:
            fd = memory(top + 4096)
            part = min(4 << 20, limit // 3)
            refused(errno.ENOSPC, a.dma_map, 0, limit + 4096, fd)
            a.dma_map(0, part, fd)
            refused(errno.ENOSPC, a.dma_map, top, limit - part + 4096, fd)
            a.dma_map(top, limit - part, fd)
            refused(errno.ENOSPC, a.dma_map, top << 2, 4096, fd, top)
            # What is mapped counts once.
            a.dma_map(top << 2, 4096, fd, part // 2)
            a.dma_unmap(0, part)
            a.dma_unmap(top << 2, 4096)
            a.dma_map(top << 2, part, fd)
            a.dma_unmap(0, 0, 2)
            a.dma_map(0, limit, fd)
            assert (", refused: more than mem=%s" % said
                    in s.valed.messages()), s.valed.messages()
            assert "of pci.0.1.0 (vm1.sock)" in s.valed.messages()


def memory_vanishes():
    """Discard pages that the adapter uses; place rings beyond memory."""
    with Scene() as s:
        a = Driver("vm1.sock")
        for _ in range(50):
            a.queue(ethernet(b"\xff" * 6, a.mac, b"stray"))
            a.set(TDT, a.tail, post=True)
            a.ram.madvise(mmap.MADV_REMOVE)
            with contextlib.suppress(PermissionError):
                os.ftruncate(a.fd, 0)
                assert False, "the seal does not hold"
            a.get(STATUS)
        for base in (a.gpa + a.SIZE - 16, a.gpa + a.SIZE, a.gpa - 16, 0,
                     0xfffffffffffffff0, 1 << 63):
            for reg, length, tail in ((TDBAL, TDLEN, TDT),
                                      (RDBAL, RDLEN, RDT)):
                a.set(reg, base & 0xfffffff0)
                a.set(reg + 4, base >> 32)
                a.set(length, 16 * a.SLOTS)
                a.set(tail, 1)
            exchange(s.b, s.c)
        a.close()
        s.check_service()
        s.check_resources()


HUGE_PAGE = 2 << 20


def no_huge_pages():
    """Return memory in huge pages, of which the system has none: an access to
    it raises SIGBUS, as it does after a hole is punched."""
    free = []
    with contextlib.suppress(OSError):
        while True:
            free.append(mmap.mmap(-1, HUGE_PAGE, mmap.MAP_PRIVATE |
                                  mmap.MAP_ANONYMOUS | 0x40000))
    try:
        return memory(2 * HUGE_PAGE, flags=4), free
    except OSError as e:
        raise Skip("no memfd in huge pages: %s" % e) from None


class Vanisher(Driver):
    """A client that is known to the others, with a range without pages."""

    GONE = 1 << 32

    def __init__(self, scene, fd):
        Driver.__init__(self, "vm1.sock")
        exchange(self, scene.b)
        exchange(self, scene.c)
        self.dma_map(self.GONE, 2 * HUGE_PAGE, fd)

    def send_gone(self, scene):
        """Frames whose headers are there, but not what follows."""
        head = scene.b.mac + self.mac + b"\x88\xb5"
        self.ram[self.TXBUF:self.TXBUF + 14] = head
        for i in range(12):
            for at, size, eop in ((self.gpa + self.TXBUF, 14, 0),
                                  (self.GONE + 300000 * i, 1000, 1)):
                struct.pack_into("<QHBBBBH", self.ram, self.TXRING + 16 *
                                 self.tail, at, size, 0, 0x0a | eop, 0, 0, 0)
                self.tail = (self.tail + 1) % self.SLOTS
        self.set(TDT, self.tail, post=True)
        # They arrive, with other contents.
        for _ in range(12):
            frame = scene.b.receive()
            assert frame[:14] == head and len(frame) == 1014

    def receive_gone(self, scene):
        """Buffers that are not there, for frames of vm2, which also sends to
        vm3."""
        for i in range(self.SLOTS):
            struct.pack_into("<Q", self.ram, self.RXRING + 16 * i,
                             self.GONE + 100000 * i)
        frames = [ethernet((scene.c, self)[i % 2].mac, scene.b.mac,
                           b"%d" % i) for i in range(20)]
        for frame in frames[:-1]:
            scene.b.queue(frame)
        scene.b.send(frames[-1])
        for frame in frames[::2]:
            assert scene.c.receive() == frame

    def rings_gone(self, _):
        for base, tail in (RDBAL, RDT), (TDBAL, TDT):
            self.set(base, self.GONE & 0xffffffff, post=True)
            self.set(base + 4, self.GONE >> 32, post=True)
            self.set(tail, 5, post=True)

    def csb_gone(self, _):
        self.set(CSBAH, self.GONE >> 32, post=True)
        self.set(CSBAL, self.GONE & 0xffffffff, post=True)


def pages_vanish():
    """Each way to let valed access memory that is not there, in the thread of
    its adapter or in that of a sender: the client is dropped, and no frame
    between the others is lost."""
    fd, free = no_huge_pages()
    for options in ",direct=on", ",direct=off":
        with Scene(options) as s:
            for i, attack in enumerate((
                    Vanisher.send_gone, Vanisher.receive_gone,
                    Vanisher.rings_gone, Vanisher.csb_gone)):
                with Vanisher(s, fd) as a:
                    with contextlib.suppress(Gone):
                        attack(a, s)
                    closed(a)
                s.check_service()
                s.check_resources()
                assert s.valed.counters("vm1")["gone"] == i + 1
                lines = s.valed.messages().splitlines()
                assert len(lines) == i + 1, lines
                assert lines[i].startswith(
                    "valed: vm1: client dropped: its memory at 0x100"), lines
            assert s.valed.counters("vm2")["gone"] == 0
            direct = s.valed.counters("vm1")["port_rx_direct"]
            assert (direct > 0) == (options == ",direct=on"), direct
    del free


def interrupts():
    with Scene() as s:
        on = IRQ_EVENTFD | IRQ_TRIGGER
        # A full eventfd: a write to it blocks.
        with s.attack() as a:
            full = os.eventfd(0xfffffffe)
            os.eventfd_write(full, 0xfffffffffffffffe - 0xfffffffe)
            a.set_irqs(MSI, on, fds=(full,))
            a.set_irqs(MSI, IRQ_NONE | IRQ_TRIGGER)
            a.set(IMS, ICR_TXDW)
            a.set(ICS, ICR_TXDW)
            a.get(STATUS)
        # An eventfd that the client makes blocking later: valed's write is
        # interrupted, and valed does not write again.
        with s.attack() as a:
            full = eventfd()
            a.set_irqs(MSI, on, fds=(full,))
            os.set_blocking(full, True)
            os.eventfd_write(full, 0xfffffffffffffffe)
            for _ in range(20):
                a.raw(a.message(SET_IRQS, struct.pack(
                    "=IIIII", 20, IRQ_NONE | IRQ_TRIGGER, MSI, 0, 1)))
            exchange(s.b, s.c)
            for _ in range(20):
                a.reply()
        # An eventfd unmasks again and again while the line is asserted.
        with s.attack() as a:
            fd, unmask = eventfd(), eventfd()
            a.set_irqs(INTX, on, fds=(fd,))
            a.set_irqs(INTX, IRQ_EVENTFD | IRQ_UNMASK, fds=(unmask,))
            a.set(IMS, ICR_TXDW)
            a.set(ICS, ICR_TXDW)
            for _ in range(1000):
                os.eventfd_write(unmask, 1)
            a.set_irqs(INTX, IRQ_EVENTFD | IRQ_UNMASK, fds=(fd,))


def blocked_receiver():
    """An eventfd that would block a write blocks neither VMs that send to its VM,
    which signal it without a write, nor its VM's thread."""
    with Scene() as s:
        with contextlib.closing(Driver("vm1.sock")) as a:
            full = eventfd()
            a.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(full,))
            os.set_blocking(full, True)
            os.eventfd_write(full, 0xfffffffffffffffe)
            a.set(IMS, ICR_RXT0)
            for i in range(20):
                s.b.send(ethernet(a.mac, s.b.mac, b"%d" % i))
                assert a.ram[a.RXRING + 16 * i + 12] & 1, i
                # The read clears the cause: each frame has an event.
                assert a.get(ICR) & ICR_RXT0, i
            # It is at the maximum, which no write can add up to.
            assert os.eventfd_read(full) == 0xffffffffffffffff
            s.b.send(ethernet(a.mac, s.b.mac, b"last"))
            wait_event(full)
            os.close(full)
        s.check_service()
        s.check_resources()


def lingering(port):
    """Return a socket whose last close(2) blocks for a thousand seconds: its
    data cannot be sent, because the peer does not read.  exit(2) does not block
    on it."""
    s = socket.create_connection(("127.0.0.1", port))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                 struct.pack("ii", 1, 1000))
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            s.send(bytes(65536))
    return s


def close_blocks_client(step, port):
    """One of four clients with such descriptors, which valed closes in
    different places.  It waits to be killed."""
    a = Client("vm1.sock")
    socks = [lingering(port) for _ in range(2)]
    fds = [s.fileno() for s in socks]
    if step == 3:
        # Behind messages that valed does not read: a megabyte of replies,
        # more than a socket takes, comes first.
        a.sock.settimeout(None)         # send(2) waits for less than poll(2)
        a.raw(a.message(REGION_READ, struct.pack("=QII", 0, CONFIG, 256)) *
              3000)
        a.raw(b"x", fds)
    else:
        # In a message that takes none, or that refuses two.
        msg = a.message(*(
            (REGION_READ, READ_STATUS),
            (DMA_MAP, struct.pack("=IIQQQ", 32, 3, 0, 0, 4096)),
            (SET_IRQS, struct.pack("=IIIII", 20, IRQ_EVENTFD | IRQ_TRIGGER,
                                   MSI, 0, 1)))[step])
        a.raw(msg[:8], fds[:1] if step else fds)
        # valed has them until it has all of the message.
        for s in socks[:1] if step else socks:
            s.close()
        a.raw(msg[8:])
        with contextlib.suppress(Refused):
            a.reply()
        a.get(STATUS)
        # With half a message.
        a.raw(msg[:8], fds[1:] if step else ())
    print("ready", flush=True)
    signal.pause()


def close_blocks():
    with Scene() as s, socket.create_server(("127.0.0.1", 0)) as listener:
        for step in range(4):
            p = subprocess.Popen(
                [sys.executable, "-c", "import hostile; "
                 "hostile.close_blocks_client(%d, %d)" %
                 (step, listener.getsockname()[1])], stdout=subprocess.PIPE)
            try:
                assert p.stdout.readline() == b"ready\n"
            finally:
                p.kill()
                p.wait()
                p.stdout.close()
            # The next client is served before the sockets are closed.
            s.check_service()
        s.check_resources()


def log():
    """A client causes thousands of messages; ten a second are written, and
    three of ranges that are refused."""
    with Scene() as s:
        with s.attack() as a:
            for _ in range(5000):
                refused(errno.EINVAL, a.dma_map, 0, 1)
            assert s.valed.counters("vm1")["dma_refused"] == 5000
        lines = s.valed.messages().splitlines()
        assert len(lines) == 3, lines
        assert "no more of this client" in lines[2], lines
        start = time.monotonic()
        for _ in range(1000):
            s.disconnects(lambda a: a.raw(a.message(0, size=3)))
        seconds = time.monotonic() - start
        lines = len(s.valed.messages().splitlines())
        assert 10 <= lines <= 3 + 10 * (seconds + 2), (lines, seconds)
        assert lines < 1000, seconds


def stalls():
    """Messages that are never completed."""
    with Scene() as s:
        msg = Client.message(type("", (), {"next_id": 0})(), DMA_MAP,
                             bytes(32))
        for n in (1, 8, 15, 16, 17, 47):
            with Client("vm1.sock") as a:
                a.raw(msg[:n])
                for _ in range(5):
                    exchange(s.b, s.c)
                assert not s.valed.counters("vm1")["broken"]
                a.raw(msg[n:])
                refused(errno.EINVAL, a.reply)
            with Client("vm1.sock", False) as a:
                a.raw(msg[:n])
                exchange(s.b, s.c)
        s.check_resources()


if __name__ == "__main__":
    run_case({f.__name__: f for f in (
        memory_limit, memory_vanishes, pages_vanish, interrupts,
        blocked_receiver, close_blocks, log, stalls)})
