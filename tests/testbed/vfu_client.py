# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""A scripted vfio-user client, a driver for the adapter behind it, and valed.

The client is written from the vfio-user specification alone and shares no code
with valed.
"""

import array
import atexit
import collections
import contextlib
import fcntl
import itertools
import json
import mmap
import os
import re
import select
import signal
import socket
import struct
import subprocess
import time

from wait_until import WAIT_S, wait_until

VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, GET_REGION_INFO = 1, 2, 3, 4, 5
GET_IRQ_INFO, SET_IRQS, REGION_READ, REGION_WRITE = 7, 8, 9, 10
RESET, WRITE_MULTI, FEATURE = 13, 15, 16

F_REPLY, F_NO_REPLY, F_ERROR = 1, 0x10, 0x20
IRQ_NONE, IRQ_EVENTFD, IRQ_UNMASK, IRQ_TRIGGER = 1, 4, 16, 32
INTX, MSI = 0, 1
BAR0, BAR2, CONFIG = 0, 2, 7

CAPS = {"max_peer_fds": 16, "max_data_xfer_size": 1048576,
        "pgsizes": 4096, "max_dma_maps": 65535, "write_multiple": True,
        "migration": {"pgsize": 4096, "max_bitmap_size": 268435456}}
# Of these, with valed's own limits.
GRANTED = {"max_peer_fds": 16, "max_data_xfer_size": 4096, "pgsizes": 4096,
           "max_dma_maps": 65535, "write_multiple": True}


class Gone(Exception):
    """The server closed the connection."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, errno):
        Exception.__init__(self, os.strerror(errno))
        self.errno = errno


def refused(code, fn, *args):
    """Check that a call is refused with this errno."""
    try:
        fn(*args)
    except Refused as e:
        assert e.errno == code, "errno %d, not %d" % (e.errno, code)
    else:
        assert False, "not refused"


def eventfd():
    return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)


def fired(fd):
    """The number of events in an eventfd, which is 0 afterwards."""
    try:
        return os.eventfd_read(fd)
    except BlockingIOError:
        return 0


def wait_event(fd):
    ready, _, _ = select.select([fd], [], [], WAIT_S)
    assert ready, "no event within %d s" % WAIT_S
    return fired(fd)


def memory(size, seals=fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW, flags=0):
    """Return a memfd of `size' bytes, sealed unless seals is 0."""
    fd = os.memfd_create("guest", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING |
                         flags)
    os.ftruncate(fd, size)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


class Skip(Exception):
    """This case cannot run here."""


class Client:
    """A connection.  It sends what the caller says, right or wrong."""

    def __init__(self, path, negotiate=True):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(WAIT_S)
        self.sock.connect(path)
        self.next_id = 0
        if negotiate:
            self.negotiate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def raw(self, data, fds=()):
        """Send bytes as they are, with descriptors."""
        anc = []
        if fds:
            anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                    array.array("i", fds))]
        try:
            while data:
                n = self.sock.sendmsg([data], anc)
                data, anc = data[n:], []
        except (BrokenPipeError, ConnectionResetError):
            raise Gone() from None

    def message(self, command, payload=b"", flags=0, size=None):
        self.next_id = (self.next_id + 1) & 0xffff
        if size is None:
            size = 16 + len(payload)
        return struct.pack("=HHIII", self.next_id, command, size, flags,
                           0) + payload

    def read(self, n):
        data = b""
        while len(data) < n:
            # QEMU does not survive ECONNRESET: peer_hang_up().
            part = self.sock.recv(n - len(data))
            if not part:
                raise Gone()
            data += part
        return data

    def reply(self):
        """Return the next reply, (id, command, payload), or raise Refused."""
        rid, command, size, flags, errno = struct.unpack("=HHIII",
                                                         self.read(16))
        assert flags & 0xf == F_REPLY, "not a reply"
        payload = self.read(size - 16)
        if flags & F_ERROR:
            assert not payload, "an error has no payload"
            raise Refused(errno)
        return rid, command, payload

    def call(self, command, payload=b"", fds=()):
        """Send a command, wait for its reply, and return the payload."""
        self.raw(self.message(command, payload), fds)
        rid, rcommand, data = self.reply()
        assert (rid, rcommand) == (self.next_id, command)
        return data

    def negotiate(self):
        text = json.dumps({"capabilities": CAPS}).encode() + b"\0"
        data = self.call(VERSION, bytes(4) + text)
        assert data[:4] == bytes(4) and data[-1] == 0
        assert json.loads(data[4:-1])["capabilities"] == GRANTED

    def dma_map(self, gpa, size, fd=None, offset=0, flags=3):
        self.call(DMA_MAP, struct.pack("=IIQQQ", 32, flags, offset, gpa,
                                       size), () if fd is None else (fd,))

    def dma_unmap(self, gpa, size, flags=0):
        return self.call(DMA_UNMAP, struct.pack("=IIQQ", 24, flags, gpa,
                                                size))

    def set_irqs(self, index, flags, start=0, count=1, data=b"", fds=()):
        self.call(SET_IRQS, struct.pack("=IIIII", 20 + len(data), flags,
                                        index, start, count) + data, fds)

    def region_read(self, region, offset, count):
        head = struct.pack("=QII", offset, region, count)
        data = self.call(REGION_READ, head)
        assert data[:16] == head
        assert len(data) == 16 + count
        return data[16:]

    def region_write(self, region, offset, data, post=False):
        payload = struct.pack("=QII", offset, region, len(data)) + data
        if post:
            self.raw(self.message(REGION_WRITE, payload, F_NO_REPLY))
        else:
            assert self.call(REGION_WRITE, payload) == payload[:16]

    def get(self, reg):
        return struct.unpack("<I", self.region_read(BAR0, reg, 4))[0]

    def set(self, reg, value, post=False):
        self.region_write(BAR0, reg, struct.pack("<I", value), post)

    def settle(self):
        """Wait until the adapter has counted the frames it delivered.  A guest
        sees a frame before its adapter counts it."""
        self.get(STATUS)


CTRL, STATUS, ICR, ITR, ICS, IMS, IMC = 0, 8, 0xc0, 0xc4, 0xc8, 0xd0, 0xd8
RCTL, TCTL = 0x100, 0x400
RDBAL, RDLEN, RDH, RDT = 0x2800, 0x2808, 0x2810, 0x2818
CSBAL, CSBAH = 0x2830, 0x2834
TDBAL, TDLEN, TDH, TDT = 0x3800, 0x3808, 0x3810, 0x3818
RAL0, RAH0 = 0x5400, 0x5404
ICR_TXDW, ICR_RXT0 = 1 << 0, 1 << 7


class Driver(Client):
    """A client with guest memory that drives its adapter."""

    SIZE = 1 << 20
    SLOTS = 32
    TXRING, RXRING, TXBUF, RXBUF = 0x1000, 0x2000, 0x10000, 0x40000

    def __init__(self, path, gpa=0x100000):
        Client.__init__(self, path)
        self.gpa = gpa
        self.mac = b"\2" + path.encode()[:5]
        self.fd = memory(self.SIZE)
        self.ram = mmap.mmap(self.fd, self.SIZE)
        self.dma_map(gpa, self.SIZE, self.fd)
        self.start()

    def close(self):
        Client.close(self)
        with contextlib.suppress(OSError):
            os.close(self.fd)

    def start(self):
        """Turn on bus mastering, set up rings, send and receive all frames."""
        self.region_write(CONFIG, 4, struct.pack("<H", 7))
        for i in range(self.SLOTS):
            struct.pack_into("<QQ", self.ram, self.RXRING + 16 * i,
                             self.gpa + self.RXBUF + 2048 * i, 0)
            struct.pack_into("<QQ", self.ram, self.TXRING + 16 * i, 0, 0)
        for base, length, ring in ((TDBAL, TDLEN, self.TXRING),
                                   (RDBAL, RDLEN, self.RXRING)):
            self.set(base, (self.gpa + ring) & 0xffffffff)
            self.set(base + 4, (self.gpa + ring) >> 32)
            self.set(length, 16 * self.SLOTS)
        self.tail = self.next_rx = 0
        self.set(CTRL, 0x40)            # SLU: link up
        self.set(TDT, 0)
        self.set(RDT, self.SLOTS - 1)
        self.set(TCTL, 0x0a)            # EN, PSP
        self.set(RCTL, 0x0400801a)      # EN, UPE, MPE, BAM, SECRC

    def queue(self, frame):
        """Put a frame into the TX ring without writing TDT."""
        buf = self.TXBUF + 2048 * self.tail
        self.ram[buf:buf + len(frame)] = frame
        struct.pack_into("<QHBBBBH", self.ram, self.TXRING + 16 * self.tail,
                         self.gpa + buf, len(frame), 0, 0x0b, 0, 0, 0)
        self.tail = (self.tail + 1) % self.SLOTS

    def send(self, frame):
        slot = self.tail
        self.queue(frame)
        self.set(TDT, self.tail, post=True)
        wait_until(lambda: self.ram[self.TXRING + 16 * slot + 12] & 1,
                   "write-back of TX descriptor %d" % slot)

    def frame(self, post=False):
        """Return the next frame received, or None.  With `post' RDT is written
        without waiting for the answer."""
        at = self.RXRING + 16 * self.next_rx
        # DD is read first: unpack() reads the descriptor in several parts.
        if not self.ram[at + 12] & 1:
            return None
        _, length, _, status, errors, _ = struct.unpack_from(
            "<QHHBBH", self.ram, at)
        assert status & 2 and not errors, "one complete frame"
        buf = self.RXBUF + 2048 * self.next_rx
        data = bytes(self.ram[buf:buf + length])
        self.ram[at + 12] = 0
        self.set(RDT, self.next_rx, post)
        self.next_rx = (self.next_rx + 1) % self.SLOTS
        return data

    def state(self):
        """Return what tells why no frame comes, for a message."""
        names = ("STATUS", "RCTL", "TCTL", "TDH", "TDT", "RDH", "RDT")
        return dict(((n, hex(self.get(globals()[n]))) for n in names),
                    next_rx=self.next_rx, tail=self.tail)

    def receive(self):
        return wait_until(self.frame, "a frame received", self.state)


def read(path):
    with open(path) as f:
        return f.read()


def children(pid):
    return [int(n) for n in read("/proc/%d/task/%d/children" % (pid,
                                                                 pid)).split()]


def comm(pid):
    return read("/proc/%d/comm" % pid).strip()


def ended(pid):
    """Whether the process has ended, a zombie included.  While another of its
    threads is there, a process of state Z still has its descriptors."""
    try:
        state = read("/proc/%d/stat" % pid).rpartition(")")[2].split()[0]
        return state == "Z" and len(os.listdir("/proc/%d/task" % pid)) == 1
    except (FileNotFoundError, ProcessLookupError):
        return True


def descriptor_links(pid):
    """Return what a process's descriptors are, by number.  One that is closed
    meanwhile is left out."""
    links = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):
            links[int(fd)] = os.readlink("/proc/%d/fd/%s" % (pid, fd))
    return links


def ethernet(dst, src, payload, kind=b"\x88\xb5"):
    """Return a frame of a type, padded to 60 bytes."""
    return (dst + src + kind + payload).ljust(60, b"\0")


def exchange(a, b, n=[0]):
    """Send a frame each way between two drivers, of a type that ip= lets pass.
    Frames for other addresses, which a third driver sent, are skipped."""
    for src, dst in ((a, b), (b, a)):
        n[0] += 1
        frame = ethernet(dst.mac, src.mac, b"frame %d" % n[0], b"\x88\x8e")
        src.send(frame)
        got = dst.receive()
        while got[:6] != dst.mac:
            got = dst.receive()
        assert got == frame, (got, frame)


class Daemon:
    """A valed with all its processes: those whose standard error is `err'.  At
    rest it has what it had at first, and does nothing."""

    def tasks(self):
        """Its processes, by the directories of proc(5) of their threads."""
        err = os.fstat(self.err.fileno())
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            proc = "/proc/%s/" % pid
            with contextlib.suppress(OSError):
                if os.path.samestat(os.stat(proc + "fd/2"), err):
                    found[int(pid)] = [proc + "task/" + t
                                       for t in os.listdir(proc + "task")]
        return found

    def holds(self):
        """How many processes it has, and how many descriptors of each kind, by
        the processes' names."""
        found = collections.Counter()
        for pid in self.tasks():
            with contextlib.suppress(OSError):
                name = read("/proc/%d/comm" % pid).strip()
                found[name, "process"] += 1
                for link in descriptor_links(pid).values():
                    kind = re.sub(r":\[\d+\]", "", os.path.basename(link))
                    found[name, kind] += 1
        return found

    def switches(self):
        """How often its threads have gone to sleep, or None if one does not."""
        n = 0
        for task in itertools.chain(*self.tasks().values()):
            with contextlib.suppress(OSError):
                status = read(task + "/status")
                if "State:\tS" not in status:
                    return None
                n += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)",
                                             status)))
        return n

    def begin(self):
        """Wait until it has started, and keep what it holds then."""
        def asleep():
            before = self.switches()
            self.held = self.holds()
            return before is not None and before == self.switches()
        wait_until(asleep, "the end of the start", self.holds)

    def more(self):
        """What it holds more than at first, and less."""
        now = self.holds()
        return now - self.held, self.held - now

    def ran(self):
        """For how many nanoseconds its threads have run, and the time."""
        n = 0
        for task in itertools.chain(*self.tasks().values()):
            with contextlib.suppress(OSError):
                n += int(read(task + "/schedstat").split()[0])
        return n, time.monotonic_ns()

    def rests(self):
        """Whether it runs for less than a fiftieth of half a second."""
        before = self.ran()
        time.sleep(0.5)
        ran, passed = (b - a for a, b in zip(before, self.ran()))
        return ran * 50 < passed

    def dead(self):
        """Children that have ended, and are not waited for."""
        found = []
        for task in itertools.chain(*self.tasks().values()):
            with contextlib.suppress(OSError):
                for pid in read(task + "/children").split():
                    if "State:\tZ" in read("/proc/%s/status" % pid):
                        found.append(pid)
        return found

    def check_idle(self):
        wait_until(lambda: not self.dead(), "its children's end", self.dead)
        wait_until(self.rests, "it to rest", self.ran)

    def check_rest(self):
        """Its clients have gone, and its settings are those of the start."""
        wait_until(lambda: self.more() == ({}, {}), "what it had at first",
                   self.more)
        self.check_idle()


class Valed(Daemon):
    """valed with a VM for each name, in the current directory, where it writes
    files whose names begin with `prefix'."""

    def __init__(self, names, options=None, args=(), prefix="valed",
                 device="e1000"):
        options = options or {}
        self.names = names
        self.paths = [n + ".sock" for n in names]
        argv = [os.environ["VALED"]] + list(args)
        for slot, name in enumerate(names, 1):
            argv += ["-s", "%d,%s,vale0:%s,path=%s.sock%s" % (
                slot, device, name, name, options.get(name, ""))]
        self.prefix = prefix
        self.out = open(prefix + ".out", "w+")
        self.err = open(prefix + ".err", "w+")
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                     stdout=self.out, stderr=self.err)
        atexit.register(self.proc.kill)
        for path in self.paths:
            wait_until(lambda: self.connects(path), "a server at " + path)
        self.begin()

    def connects(self, path):
        assert self.proc.poll() is None, self.messages()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            with contextlib.suppress(FileNotFoundError,
                                     ConnectionRefusedError):
                s.connect(path)
                return True
        return False

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print(self.messages())
            self.proc.kill()
            self.proc.wait()
            return
        assert self.proc.poll() is None, "valed exited by itself"
        self.check_rest()
        self.proc.terminate()
        assert self.proc.wait(WAIT_S) == 0, self.messages()
        for path in self.paths:
            assert not os.path.lexists(path), path + " was left behind"

    def stop(self, pid=None):
        """Stop all threads of valed, or of its process `pid', until it gets a
        SIGCONT."""
        os.kill(pid or self.proc.pid, signal.SIGSTOP)
        tasks = "/proc/%d/task" % (pid or self.proc.pid)

        def state(task):
            with open("%s/%s/stat" % (tasks, task)) as f:
                return f.read().rsplit(")", 1)[1].split()[0]
        wait_until(lambda: all(state(t) == "T" for t in os.listdir(tasks)),
                   "the stop of valed")

    def messages(self):
        with open(self.prefix + ".err") as f:
            return f.read()

    def counters(self, name):
        """Return all counters of a VM, by name."""
        with open(self.prefix + ".out") as f:
            f.seek(0, os.SEEK_END)
            text = ""
            # Others may have been added to those of the start.
            last = ["%s port_rx_drop_full " % n
                    for n in (self.names[-1], name)]
            self.proc.send_signal(signal.SIGUSR1)

            def complete():
                nonlocal text
                assert self.proc.poll() is None, self.messages()
                text += f.read()
                return all(s in text for s in last) and text.endswith("\n")
            wait_until(complete, "counters", lambda: text)
        result = {}
        for line in text.splitlines():
            vm, counter, value = line.split()
            if vm == name:
                result[counter] = int(value)
        return result

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.proc.pid))

    def mappings(self):
        with open("/proc/%d/maps" % self.proc.pid) as f:
            return sum("memfd:guest" in line for line in f)

    def resources(self, *names):
        """Return how many descriptors and mappings of guest memory valed has
        while each of these VMs has an idle client.  valed releases those of a
        former client after it counts the disconnect, and before it serves the
        next client."""
        with contextlib.ExitStack() as clients:
            for name in names:
                self.idle(name)
                clients.enter_context(Client(name + ".sock"))
            return self.descriptors(), self.mappings()

    def idle(self, name):
        """Wait until a VM has no client."""
        def gone():
            c = self.counters(name)
            return c["connects"] == c["disconnects"]
        wait_until(gone, "the disconnect of the client of " + name)


def main(cases):
    """Run the case that the first argument names.  Exits 77 if it cannot
    run, and writes the reason to a file.  If the case fails, prints what valed
    has printed."""
    import glob
    import sys
    try:
        cases[sys.argv[1]]()
    except Skip as e:
        with open("skipped", "w") as f:
            f.write(str(e))
        sys.exit(77)
    except BaseException:
        for path in glob.glob("*.err"):
            sys.stderr.write("%s:\n%s" % (path, read(path)))
        raise
