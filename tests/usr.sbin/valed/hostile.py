# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Hostile clients, for valed_hostile_test.sh.

valed has three VMs.  The client of vm1 attacks.  Those of vm2 and vm3 stay
connected and exchange frames before and after each attack; vm1 then must serve
a new client, and valed must have as many descriptors and mappings as before.
"""

import contextlib
import errno
import mmap
import os
import random
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
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


def refused(codes, fn, *args, **kwargs):
    codes = codes if isinstance(codes, tuple) else (codes,)
    try:
        fn(*args, **kwargs)
    except Refused as e:
        assert e.errno in codes, "errno %d, not of %s" % (e.errno, codes)
    else:
        assert False, "not refused"


def framing():
    with Scene() as s:
        for size in 0, 1, 15, 8193, 0x10000, 0x80000000, 0xffffffff:
            s.disconnects(lambda a: a.raw(a.message(REGION_READ, READ_STATUS,
                                                size=size)))
        for kind in range(1, 16):
            s.disconnects(lambda a: a.raw(a.message(REGION_READ, READ_STATUS,
                                                flags=kind)))
        # An error reply without a request.
        s.disconnects(lambda a: a.raw(a.message(DMA_READ, b"",
                                            flags=F_REPLY | F_ERROR)))
        # Good commands before the bad one are answered.
        with s.attack() as a:
            good = a.message(REGION_READ, READ_STATUS)
            a.raw(good * 10 + a.message(0, size=3) + good)
            for _ in range(10):
                a.reply()
            closed(a)
        assert s.valed.counters("vm1")["broken"] == 7 + 15 + 1 + 1


def payload_sizes():
    """Send every command with payloads of wrong lengths."""
    with Scene() as s, s.attack() as a:
        right = {DMA_MAP: 32, DMA_UNMAP: 24, GET_INFO: 16,
                 GET_REGION_INFO: 32, GET_IRQ_INFO: 16, REGION_READ: 16}
        for command, size in right.items():
            for n in range(size):
                refused(errno.EINVAL, a.call, command, b"\xff" * n)
        # What follows a structure is ignored.
        for n in 1, 8, 4096, 8192 - 16 - 32:
            more = b"\xff" * n
            for command, size in ((GET_INFO, 16), (GET_REGION_INFO, 32),
                                  (GET_IRQ_INFO, 16)):
                info = struct.pack("=I", 0xffffffff) + bytes(size - 4)
                assert a.call(command, info + more) == a.call(command, info)
            assert (a.call(REGION_READ, READ_STATUS + more) ==
                    a.call(REGION_READ, READ_STATUS))
            a.call(DMA_MAP, struct.pack("=IIQQQ", 32 + n, 3, 0, 0x1000,
                                        0x1000) + more)
            a.call(DMA_UNMAP, struct.pack("=IIQQ", 24, 0, 0x1000, 0x1000) +
                   more)
            a.call(RESET, more)
        for command, size in ((SET_IRQS, 20), (REGION_WRITE, 16),
                              (WRITE_MULTI, 8)):
            for n in range(size):
                refused(errno.EINVAL, a.call, command, b"\xff" * n)
        # The count of a write disagrees with the message.
        for count in 0, 3, 5, 8, 4096, 0xffffffff:
            refused(errno.EINVAL, a.call, REGION_WRITE, struct.pack(
                "=QIII", RDBAL, BAR0, count, 0))
        # argsz smaller than the reply.
        for command, size in ((GET_INFO, 16), (GET_REGION_INFO, 32),
                              (GET_IRQ_INFO, 16), (DMA_MAP, 32),
                              (DMA_UNMAP, 24), (SET_IRQS, 20)):
            refused(errno.EINVAL, a.call, command, struct.pack(
                "=I", size - 1) + bytes(size - 4))
        for index in 9, 100, 0xffffffff:
            refused(errno.EINVAL, a.call, GET_REGION_INFO, struct.pack(
                "=IIIIQQ", 32, 0, index, 0, 0, 0))
            refused(errno.EINVAL, a.call, GET_IRQ_INFO, struct.pack(
                "=IIII", 16, 0, index, 0))


def version():
    def hello(text, major=0):
        return struct.pack("=HH", major, 0) + text

    bad = [b"", b"\0", hello(b"{}\0", 1), hello(b"{}\0", 0xffff),
           hello(b"{}"), hello(b"\0"), hello(b"{\0"), hello(b"}\0"),
           hello(b"[]\0"), hello(b"{}{}\0"), hello(b"{\"a\"}\0"),
           hello(b"{\"a\":}\0"), hello(b"{\"a\":1,}\0"), hello(b"{\"a\0"),
           hello(b"{\"a\\\0"), hello(b"{\"a\":tru}\0"), hello(b"{a:1}\0"),
           hello(b"{\"capabilities\":1}\0"), hello(b"{\"a\":\"\n\"}\0"),
           hello(b"{\"capabilities\":{\"max_peer_fds\":\"1\"}}\0"),
           hello(b"{\"capabilities\":{\"pgsizes\":-}}\0"),
           hello(b"{\"capabilities\":\0}\0"), hello(b"{\"\xc3(\":1}\0"),
           hello(b"{\"a\":\"\\ud800\"}\0"), hello(b"{\"a\":\"\\u0000\"}\0"),
           hello(b"{\"a\":01}\0"), hello(b"{\"a\":1-2}\0"),
           hello(b"{\"a\":1" + b"0" * 400 + b"}\0"),
           hello(b"{\"a\":1,\"a\":1}\0"),
           hello(b"{\"capabilities\":{\"max_peer_fds\":1.5}}\0"),
           hello(b"{\"a\":" + b"[" * 8 + b"1" + b"]" * 8 + b"}\0"),
           hello(b"{\"a\":" * 9 + b"1" + b"}" * 9 + b"\0"),
           hello(b"{\"a\":" + b"[" * 2000 + b"]" * 2000 + b"}\0"),
           hello(b"{\"a\":" + b"[" * 4000 + b"]" * 4000 + b"}\0"),
           hello(b"{\"a\":" + b"[" * 8000 + b"\0"),
           hello(b"{\"a\":" * 1000 + b"\0"), hello(b"\xff" * 8000 + b"\0")]
    with Scene() as s:
        for payload in bad:
            with s.attack(False) as a:
                refused((errno.EINVAL, errno.ENOTSUP), a.call, VERSION,
                        payload)
                closed(a)
        for command in list(range(2, 20)) + [0, 0xffff]:
            with s.attack(False) as a:
                a.raw(a.message(command, bytes(16)))
                closed(a)


def bad_memory(a):
    """Map descriptors that are not memory, or whose pages may vanish."""
    plain = memory(8192, 0)
    grow = memory(8192, fcntl.F_SEAL_GROW)
    with tempfile.TemporaryFile(dir=".") as f:
        f.truncate(8192)
        pipe = os.pipe()
        sock = socket.socket()
        fds = [plain, grow, f.fileno(), *pipe, sock.fileno(), eventfd(),
               os.open("/dev/zero", os.O_RDWR), os.open(".", os.O_RDONLY),
               os.open("/proc/self/mem", os.O_RDWR)]
        for fd in fds:
            refused(errno.EPERM, a.dma_map, 0, 4096, fd)
    sealed = memory(8192, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE)
    refused((errno.EPERM, errno.EACCES), a.dma_map, 0, 4096, sealed)
    reader = os.open("/proc/self/fd/%d" % memory(8192), os.O_RDONLY)
    refused((errno.EPERM, errno.EACCES), a.dma_map, 0, 4096, reader)


def bad_ranges(a):
    fd = memory(16384)
    top = 1 << 64
    for gpa, size, offset in (
            (0, 0, 0), (0, 1, 0), (1, 4096, 0), (0, 4097, 0), (0, 4096, 1),
            (top - 4096, 8192, 0), (4096, top - 4096, 0),
            (0, 20480, 0), (0, 16384, 4096), (0, 4096, 16384),
            (0, 4096, 1 << 40), (0, 4096, 1 << 63), (0, 4096, top - 4096),
            (0, 8192, top - 4096)):
        refused(errno.EINVAL, a.dma_map, gpa, size, fd, offset)
    for flags in 0, 4, 8, 0xffffffff:
        refused(errno.EINVAL, a.dma_map, 0, 4096, fd, 0, flags)
    # The last page of the address space.
    a.dma_map(top - 4096, 4096, fd)
    refused(errno.EEXIST, a.dma_map, top - 4096, 4096, fd)
    a.dma_unmap(top - 4096, 4096)
    # Ranges that overlap.
    a.dma_map(0x10000, 0x4000, fd)
    for gpa, size in ((0x10000, 0x4000), (0xf000, 0x2000), (0x13000, 0x2000),
                      (0x11000, 0x1000), (0xf000, 0x6000), (0, top - 4096)):
        refused(errno.EEXIST, a.dma_map, gpa, size)
    a.dma_map(0xf000, 0x1000, fd)
    a.dma_map(0x14000, 0x1000)
    # Parts of ranges, and what was never mapped.
    for gpa, size in ((0x10000, 0x2000), (0x11000, 0x3000), (0xf000, 0x2000),
                      (0xe000, 0x6000 - 1), (0, 0), (0x12000, top - 0x12000),
                      (0x20000, top - 0x10000)):
        refused(errno.EINVAL, a.dma_unmap, gpa, size)
    for gpa, size in (0, 4096), (0x20000, 4096), (0x15000, top - 0x15000):
        refused(errno.ENOENT, a.dma_unmap, gpa, size)
    for gpa, size, flags in ((0, 0, 1), (0x10000, 0x4000, 2), (0, 0, 3),
                             (0, 0, 0x80000000)):
        refused(errno.EINVAL, a.dma_unmap, gpa, size, flags)
    a.dma_unmap(0x10000, 0x4000)
    refused(errno.ENOENT, a.dma_unmap, 0x10000, 0x4000)
    # Several at once.
    a.dma_unmap(0xe000, 0x10000)
    refused(errno.ENOENT, a.dma_unmap, 0, top - 4096)


def too_much_memory(a):
    # A mapping for each file.
    for i in range(256):
        fd = memory(4096)
        a.dma_map(0x10000 * (255 - i), 4096, fd)
        os.close(fd)
    fd = memory(4096)
    refused(errno.ENOSPC, a.dma_map, 0x8000000, 4096, fd)
    a.dma_map(0x8000000, 4096)
    a.dma_unmap(0x10000, 4096)
    a.dma_map(0x9000000, 4096, fd)
    a.dma_unmap(0, 0, 2)
    # As many ranges as max_dma_maps, of one file, some without.
    for i in range(65535):
        a.dma_map(0x4000 * i, 4096, fd if i % 16 else None)
    refused(errno.ENOSPC, a.dma_map, 0x80000000, 4096, fd)
    refused(errno.ENOSPC, a.dma_map, 0x80000000, 4096)
    a.dma_unmap(0x4000, 4096)
    a.dma_map(0x80000000, 4096, fd)
    a.dma_unmap(0, 0, 2)
    # More address space than a client may map; no page is touched.
    big = memory(1 << 40)
    a.dma_map(0, 1 << 39, big)
    a.dma_map(1 << 41, 1 << 39, big)
    refused(errno.ENOSPC, a.dma_map, 1 << 42, 4096, fd)


def memory_limit():
    """A client cannot map more than mem=, without it as much as the host has:
    what it could make valed touch costs page tables, and pages of its file."""
    top = 1 << 40
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    for options, limit in (("", min(host, top)), (",mem=3M", 3 << 20),
                           (",mem=2G", 2 << 30), (",mem=1T", top)):
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


def dma_ranges():
    with Scene(",mem=1T") as s:
        for action in bad_memory, bad_ranges, too_much_memory:
            with s.attack() as a:
                action(a)


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
        with s.attack() as a:
            fd = eventfd()
            on = IRQ_EVENTFD | IRQ_TRIGGER
            for index in MSIX, ERR, REQ, 5, 0xffffffff:
                refused(errno.EINVAL, a.set_irqs, index, on, fds=(fd,))
            for start, count in ((1, 1), (0, 2), (0, 0), (0xffffffff, 1),
                                 (0, 0xffffffff), (1, 0xffffffff)):
                for index in INTX, MSI:
                    refused(errno.EINVAL, a.set_irqs, index, on, start,
                            count, fds=(fd,))
            for flags in (0, IRQ_NONE, IRQ_EVENTFD, IRQ_TRIGGER, 7, 0x3f,
                          IRQ_NONE | IRQ_BOOL | IRQ_TRIGGER,
                          IRQ_EVENTFD | IRQ_MASK | IRQ_UNMASK, on | 0x40,
                          on | 0x80000000, IRQ_NONE | IRQ_TRIGGER):
                refused((errno.EINVAL, errno.ENOTSUP), a.set_irqs, INTX,
                        flags, fds=(fd,))
            refused(errno.EINVAL, a.set_irqs, INTX, IRQ_BOOL | IRQ_TRIGGER)
            refused(errno.EINVAL, a.set_irqs, MSI, on, fds=(fd, fd))
        # Descriptors that are not eventfds, or may block.
        with s.attack() as a:
            r, w = os.pipe()
            one, two = socket.socketpair()
            with tempfile.TemporaryFile(dir=".") as f:
                for bad in (r, w, one.fileno(), f.fileno(), memory(4096),
                            os.open("/dev/null", os.O_RDWR)):
                    for index, flags in ((INTX, on), (MSI, on), (
                            INTX, IRQ_EVENTFD | IRQ_UNMASK)):
                        refused(errno.EINVAL, a.set_irqs, index, flags,
                                fds=(bad,))
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
    """An eventfd blocks its VM's thread when a frame is received; VMs that send
    to it do not block."""
    with Scene() as s:
        def blocked_alone():
            with contextlib.closing(Driver("vm1.sock")) as a:
                full = eventfd()
                a.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(full,))
                os.set_blocking(full, True)
                os.eventfd_write(full, 0xfffffffffffffffe)
                a.set(IMS, ICR_RXT0)
                frames = [ethernet(a.mac, s.b.mac, b"%d" % i)
                          for i in range(20)]
                # The thread blocks in the interrupt for the first frame.
                s.b.send(frames[0])
                a.raw(a.message(REGION_READ, READ_STATUS))
                select.select([a.sock], [], [], 0.2)
                for frame in frames[1:-1]:
                    s.b.queue(frame)
                s.b.send(frames[-1])
                done = [a.ram[a.RXRING + 16 * i + 12] & 1 for i in range(20)]
                assert all(done), done
                answers = select.select([a.sock], [], [], 0)[0]
                os.close(full)
            s.valed.idle("vm1")
            return not answers
        # valed interrupts the write after a while; on a slow machine that may
        # be before the last frame is sent.
        wait_until(blocked_alone, "20 frames received while the thread blocks")
        s.check_service()
        s.check_resources()


def descriptors():
    """Descriptors: too many, with garbage, and with half a message."""
    with Scene() as s:
        fd = memory(4096)
        for n in 17, 100, 253:
            s.disconnects(lambda a: a.raw(a.message(REGION_READ, READ_STATUS),
                                      [fd] * n))
        s.disconnects(lambda a: a.raw(b"\xff" * 100, [fd] * 16))
        with s.attack() as a:
            a.raw(a.message(DMA_MAP, b"", size=48), [fd] * 16)
        with s.attack() as a:
            a.raw(b"\x01", [fd] * 16)
        # One with each byte, until there are too many.
        with s.attack() as a:
            msg = a.message(REGION_READ, READ_STATUS)
            for i in range(17):
                a.raw(msg[i:i + 1], [fd])
            closed(a)
        with s.attack(False) as a:
            a.raw(a.message(VERSION, struct.pack("=HH", 0, 0)), [fd] * 16)
            a.reply()


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


def descriptors_apart():
    """A message arrives in two parts, the first with its descriptor, and the
    second together with the next message, which also has one: each gets its
    own."""
    with Scene() as s:
        with s.attack() as a:
            mac = b"\2apart"
            fds = [memory(1 << 20) for _ in range(2)]
            for fd, mark in zip(fds, b"12"):
                os.pwrite(fd, ethernet(s.b.mac, mac, bytes([mark])), 0)
            msgs = [a.message(DMA_MAP, struct.pack(
                "=IIQQQ", 32, 3, 0, gpa, 1 << 20))
                for gpa in (0x100000, 0x300000)]
            recvs = s.valed.counters("vm1")["recvs"]
            a.raw(msgs[0][:20], fds[:1])
            wait_until(lambda: s.valed.counters("vm1")["recvs"] > recvs,
                       "the first part read")
            # valed finds both of the others when it reads again.
            s.valed.stop()
            a.raw(msgs[0][20:])
            a.raw(msgs[1], fds[1:])
            s.valed.proc.send_signal(signal.SIGCONT)
            a.reply()
            a.reply()
            # Send a frame from each range; the ring is in the second.
            for i, gpa in enumerate((0x100000, 0x300000)):
                os.pwrite(fds[1], struct.pack("<QHBBBBH", gpa, 60, 0, 0x0b, 0,
                                              0, 0), 0x1000 + 16 * i)
            a.region_write(CONFIG, 4, struct.pack("<H", 7))
            for reg, value in ((TDBAL, 0x301000), (TDLEN, 128), (CTRL, 0x40),
                               (TDT, 0), (TCTL, 0x0a), (TDT, 2)):
                a.set(reg, value)
            for mark in b"12":
                frame = s.b.receive()
                while frame[6:12] != mac:
                    frame = s.b.receive()
                assert frame[14] == mark, frame


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


def second_client():
    with Scene() as s:
        with Driver("vm1.sock") as a:
            before = s.valed.counters("vm1")["refused"]
            for _ in range(20):
                with contextlib.suppress(ConnectionResetError):
                    with Client("vm1.sock", False) as other:
                        closed(other)
            assert s.valed.counters("vm1")["refused"] == before + 20
            exchange(a, s.b)
        s.check_resources()


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


def unread_replies():
    """A client that sends without reading replies."""
    with Scene() as s:
        with Client("vm1.sock") as a:
            a.sock.setblocking(False)
            head = struct.pack("=QII", 0, CONFIG, 256)
            sent = 0
            part = b""
            idle = 0
            while idle < 50:
                try:
                    part = part or a.message(REGION_READ, head)
                    part = part[a.sock.send(part):]
                    sent += not part
                    idle = 0
                    # Sockets buffer some; valed must not read the rest.
                    assert sent < 10000
                except BlockingIOError:
                    idle += 1
                    exchange(s.b, s.c)
            assert sent > 100
            # All replies arrive when the client reads again.
            a.sock.settimeout(WAIT_S)
            for i in range(sent):
                rid, _, data = a.reply()
                assert len(data) == 272
            if part:
                a.raw(part)
                a.reply()
            a.get(STATUS)
        # A client that disconnects without reading any.
        with s.attack() as a:
            a.sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    a.sock.send(a.message(REGION_READ, head))


def flood():
    """A client sends at full rate to its own address, and is killed."""
    code = """
import struct
from vfu_client import *
with Driver("vm1.sock") as a:
    print("ready", flush=True)
    frame = ethernet(a.mac, a.mac, b"")
    while True:
        for _ in range(31):
            a.queue(frame)
        a.set(TDT, a.tail, post=True)
"""
    with Scene() as s:
        p = subprocess.Popen([sys.executable, "-c", code],
                             stdout=subprocess.PIPE)
        try:
            p.stdout.readline()
            for _ in range(50):
                exchange(s.b, s.c)
            # On a busy machine it may not have run yet.
            wait_until(lambda: s.valed.counters("vm1")["tx_frames"] > 1000,
                       "1000 frames of vm1")
        finally:
            p.kill()
            p.wait()
            p.stdout.close()
        s.check_service()
        s.check_resources()


def random_bytes():
    with Scene() as s:
        for seed in range(40):
            rng = random.Random(seed)
            with Client("vm1.sock", seed % 2) as a:
                with contextlib.suppress(Gone):
                    for _ in range(20):
                        a.raw(rng.randbytes(rng.randrange(1, 3000)))
            exchange(s.b, s.c)
        s.check_service()
        s.check_resources()


def random_message(rng, a, fds):
    """Send a well-framed message whose payload is nearly valid."""
    edges = (0, 1, 2, 4, 8, 15, 16, 20, 24, 32, 255, 256, 4096, 0x1ffff,
             0x20000, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 32, 1 << 40,
             (1 << 63), (1 << 64) - 4096, (1 << 64) - 1, 0x100000, 0x3818,
             0x2818, 0xc0, 0xd0, 0x100, 0x400)

    def number(bits):
        return (rng.choice(edges) if rng.random() < .8 else
                rng.getrandbits(bits)) & ((1 << bits) - 1)
    command = rng.choice((DMA_MAP, DMA_UNMAP, GET_REGION_INFO, GET_IRQ_INFO,
                          SET_IRQS, REGION_READ, REGION_WRITE, WRITE_MULTI,
                          RESET, rng.randrange(20)))
    if command == DMA_MAP:
        payload = struct.pack("=IIQQQ", 32, rng.randrange(4), number(64),
                              number(64), number(64))
    elif command == DMA_UNMAP:
        payload = struct.pack("=IIQQ", 24, rng.choice((0, 0, 2)), number(64),
                              number(64))
    elif command == SET_IRQS:
        payload = struct.pack("=IIIII", 20, rng.randrange(64),
                              rng.randrange(3), rng.choice((0, 0, 1)),
                              rng.choice((0, 1, 1, 2))) + bytes(1)
    elif command in (REGION_READ, REGION_WRITE):
        count = rng.choice((1, 2, 4, 4, 4, 8, 3, 64))
        payload = struct.pack("=QII", number(64), rng.randrange(9), count)
        if command == REGION_WRITE:
            payload += rng.randbytes(count)
    elif command == WRITE_MULTI:
        n = rng.randrange(8)
        payload = struct.pack("=Q", n) + b"".join(
            struct.pack("=QIIQ", number(16), rng.randrange(3), 4, number(64))
            for _ in range(n))
    else:
        payload = b"".join(struct.pack("=I", number(32))
                           for _ in range(rng.randrange(9)))
    if rng.random() < .05:
        payload = payload[:rng.randrange(len(payload) + 1)]
    send = rng.choices(fds, k=rng.choice((0, 0, 0, 0, 1, 1, 2)))
    a.raw(a.message(command, payload, rng.choice((0, F_NO_REPLY))), send)


def random_messages():
    with Scene() as s:
        ram = memory(1 << 20)
        fds = [ram, ram, ram, eventfd(), eventfd(), os.pipe()[1],
               memory(4096, 0)]
        for seed in range(30):
            rng = random.Random(seed)
            with Client("vm1.sock") as a:
                a.region_write(CONFIG, 4, struct.pack("<H", 7))
                a.dma_map(0x100000, 1 << 20, ram)
                for _ in range(200):
                    random_message(rng, a, fds)
                    # Replies are discarded.
                    a.sock.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        while a.sock.recv(65536):
                            pass
                    a.sock.settimeout(WAIT_S)
            exchange(s.b, s.c)
        s.check_service()
        s.check_resources()


if __name__ == "__main__":
    # For the 253 descriptors of this process; valed sets a limit of its own.
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    run_case({f.__name__: f for f in (
        framing, payload_sizes, version, dma_ranges, memory_limit, memory_vanishes,
        pages_vanish, interrupts, blocked_receiver, descriptors,
        descriptors_apart, close_blocks, log, second_client, stalls,
        unread_replies, flood, random_bytes, random_messages)})
