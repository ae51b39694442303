# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Adapters whose port is on another valed's switch, for valed_remote_test.sh."""

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import socket
import struct
import subprocess
import time

import ctl_client
from ctl_client import Control
from vfu_client import *

VALECTL = os.environ["VALECTL"]
STATUS_LU = 0x2
CONTROL = os.path.abspath("control")
CLONE_NEWNET = 0x40000000


def openers(v):
    """The processes that open ports for a valed."""
    return [p for p in children(v.proc.pid) if comm(p) == "valed-port"]


class Remote(Valed):
    """A valed of one adapter, whose port is on the switch of another."""

    def __init__(self, name, more="", args=()):
        Valed.__init__(self, [name], {name: ",control=" + CONTROL + more},
                       args, name)
        if os.path.exists(CONTROL):
            wait_until(lambda: self.messages() or
                       ("valed", "memfd:vale (deleted)") in self.holds(),
                       "a port, or why there is none")
            self.begin()


class Switch(Valed):
    """The valed that has the switch, perhaps with adapters."""

    def __init__(self, names=(), args=()):
        Valed.__init__(self, list(names), None, ["-c", "control"] + list(args),
                       "switch")
        wait_until(answers, "the control socket")


def answers():
    return subprocess.run([VALECTL, "-c", "control"],
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def ports():
    with Control() as c:
        return sorted(c.ports())


def has(*names):
    wanted = sorted("vale0:" + n for n in names)
    wait_until(lambda: ports() == wanted, "ports " + str(wanted), ports)


def is_up(driver):
    return driver.get(STATUS) & STATUS_LU != 0


@contextlib.contextmanager
def guests(*valeds):
    """A driver for the adapter of each."""
    with contextlib.ExitStack() as s:
        yield [s.enter_context(Driver(v.paths[0])) for v in valeds]


def arrives(a, b, n=[0]):
    """Send a frame again and again until it arrives: then nothing that was sent
    before is pending, and no ring is full.  Take all of it."""
    n[0] += 1
    first = ethernet(b.mac, a.mac, b"first %d" % n[0])
    last = ethernet(b.mac, a.mac, b"last %d" % n[0])

    def send():
        a.send(first)
        arrived = False
        while frame := b.frame():
            arrived |= frame == first
        return arrived
    wait_until(send, "a frame received", b.state)
    # From now on no frame is lost.
    a.send(last)
    while b.receive() != last:
        pass


def meet(a, b):
    """Wait until the processes have their ports, and frames pass both ways."""
    arrives(a, b)
    arrives(b, a)


def frames():
    """Frames pass between processes of one adapter each, and with an adapter of
    the switch's own; a port is closed with its process."""
    with Switch(["vm3"]) as s:
        with Remote("vm1") as v1, Remote("vm2") as v2:
            has("vm1", "vm2", "vm3")
            with guests(v1, v2, s) as (a, b, c):
                meet(a, b)
                meet(b, c)
                sent = v1.counters("vm1")["tx_frames"]
                for _ in range(20):
                    exchange(a, b)
                    exchange(b, c)
                    exchange(c, a)
            assert v1.counters("vm1")["tx_frames"] == sent + 40
            # Those of the port are with the switch.
            assert v1.counters("vm1")["port_rx_drop_full"] == 0
            assert v1.messages() == "", v1.messages()
        has("vm3")
        # Also if that is killed.
        v1 = Remote("vm1")
        has("vm1", "vm3")
        v1.proc.kill()
        v1.proc.wait()
        has("vm3")
        with Remote("vm1") as v1, guests(v1, s) as (a, c):
            has("vm1", "vm3")
            meet(a, c)
            exchange(a, c)


def later():
    """The switch may come later: until then there is no link, frames are
    dropped and counted, and a line says so, once."""
    with Remote("vm1", ",mtu=1500") as v1, guests(v1) as (a,):
        wait_until(lambda: not is_up(a), "no link")
        for i in range(5):
            a.send(ethernet(b"\xff" * 6, a.mac, b"lost"))
        n = v1.counters("vm1")
        assert n["tx_frames"] == 0 and n["tx_linkdown"] == 5, n
        none = "valed: vm1: no port: %s: No such file or directory\n" % CONTROL
        assert v1.messages() == none, v1.messages()
        with Switch(["vm3"]) as s:
            wait_until(lambda: is_up(a), "a link")
            s.begin()
            with guests(s) as (c,):
                meet(a, c)
                for _ in range(5):
                    exchange(a, c)
                assert v1.messages() == none + (
                    "valed: vm1: %s: vale0:vm1: the port is open\n" % CONTROL)
        wait_until(lambda: not is_up(a), "no link")
        assert v1.messages().count("no port") == 2, v1.messages()
        with Switch(["vm3"]) as s:
            wait_until(lambda: is_up(a), "a link")
            s.begin()
            with guests(s) as (c,):
                meet(a, c)
    # A port that somebody else has.
    with Switch() as s, Control() as c:
        port = c.register("vale0:vm1")
        with Remote("vm1") as v1:
            wait_until(lambda: "the port is open already" in v1.messages(),
                       "a line", v1.messages)
            assert v1.messages() == ("valed: vm1: no port: %s: vale0:vm1: the "
                                     "port is open already\n" % CONTROL)
            port.close()
            wait_until(lambda: "the port is open\n" in v1.messages(),
                       "the port", v1.messages)
            v1.begin()


def switch_restarts():
    """The valed with the switch is restarted and crashes: guests go on, with
    their link, and their addresses are announced to the new switch."""
    def announces(v):
        return v.counters(v.names[0])["announces"]
    with Switch(args=["-R"]) as s, Remote("vm1") as v1, Remote("vm2") as v2, \
            guests(v1, v2) as (a, b):
        meet(a, b)
        for end in range(4):
            before = announces(v1), announces(v2)
            if end % 2 == 0:
                subprocess.run([VALECTL, "-c", "control", "restart"],
                               check=True)
            else:
                serving, = children(s.proc.pid)
                os.kill(serving, signal.SIGKILL)
                wait_until(lambda: children(s.proc.pid) not in ([], [serving])
                           and answers(), "a new process")
            has("vm1", "vm2")
            meet(a, b)
            exchange(a, b)
            assert is_up(a) and is_up(b)
            wait_until(lambda: announces(v1) > before[0] and
                       announces(v2) > before[1], "announcements")
        # Each client has been there all the time, and what was dropped counts.
        assert v1.counters("vm1")["connects"] == 2
        assert "no port" not in v1.messages(), v1.messages()


MSS = 50


def to_cut(dst, n, number):
    """A virtio-net header, and a packet of TCP of `n' segments, each with a
    number, which the adapter cuts."""
    payload = b"".join(struct.pack("=II", number, i).ljust(MSS, b"\0")
                       for i in range(n))
    addrs = b"\x0a\0\0\1\x0a\0\0\2"
    tcp = struct.pack(">BBH", 0, 6, 20 + len(payload))
    pseudo = sum(struct.unpack(">6H", addrs + tcp))
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0)
    tcp = struct.pack(">HHIIBBHHH", 1, 2, 0, 0, 0x50, 0x10, 1000,
                      (pseudo & 0xffff) + (pseudo >> 16), 0)
    return struct.pack("<BBHHHHH", 1, 1, 54, MSS, 34, 16, 0) + \
        dst + b"\2sends" + b"\x08\0" + ip + addrs + tcp + payload


def segments(driver):
    """Take what has arrived: the number and the place of each segment."""
    got = []
    while frame := driver.frame():
        got.append(struct.unpack_from("=II", frame, 54))
    return got


def switch_restarts_cut():
    """The switch is restarted while a guest has a part of a packet that is cut
    for it: of the next one it gets all segments."""
    def sends(c):
        port = c.register("vale0:sends")
        c.call("PORT_HDR_SET", "vale0:sends", struct.pack("=II", 12, 0))
        return port

    with Switch(args=["-R"]) as s, Remote("vm1") as v1, guests(v1) as (a,):
        has("vm1")
        with Control() as c:
            port = sends(c)
            # More than the guest has posted descriptors for.
            wait_until(lambda: port.send(to_cut(a.mac, 38, 0)) or
                       v1.counters("vm1")["rx_stalls"], "a stall")
            serving, = children(s.proc.pid)
            subprocess.run([VALECTL, "-c", "control", "restart"], check=True)
            port.close()
        wait_until(lambda: children(s.proc.pid) not in ([], [serving]) and
                   answers(), "a new process")
        has("vm1")
        got = segments(a)
        assert got == [(0, i) for i in range(a.SLOTS - 1)], got
        with Control() as c:
            port = sends(c)
            numbers = iter(range(1, 1000000))

            def arrive():
                # The adapter may not have the port yet.
                port.send(to_cut(a.mac, 10, next(numbers)))
                got.extend(segments(a))
                return got
            got = []
            wait_until(arrive, "segments")
            # Frames of two numbers may have come, and none of the old one.
            wait_until(lambda: got.extend(segments(a)) or
                       got[-1][1] == 9, "the last segment")
            first = got[0][0]
            assert got[:10] == [(first, i) for i in range(10)], got
            port.close()


def uplinks():
    """An uplink of a switch that has the same name is another switch's, and
    nothing is announced because of it."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0 or not shutil.which("ip"):
        raise Skip("no network namespace, or no ip(8)")

    def ip(*args):
        subprocess.run(["ip", "link", *args], check=True)
    ip("add", "h0", "type", "veth", "peer", "name", "w0")
    ip("set", "w0", "up")

    def announces(name):
        return v.counters(name)["announces"]

    def comes():
        before = announces("own")

        def again():
            # valed looks once a second.
            for state in "down", "up":
                ip("set", "h0", state)
                time.sleep(1.1)
            return announces("own") > before
        wait_until(again, "an announcement")
    with Switch() as s, Valed(
            ["vm1", "own"], {"vm1": ",control=" + CONTROL},
            ["-c", "local", "-a", "vale0:h0"], "local") as v, \
            Driver("vm1.sock") as a, Driver("own.sock") as b:
        has("vm1")
        wait_until(lambda: is_up(a) and announces("vm1") > 0, "the port")
        # The first shows, too, that nothing of the start is pending.
        comes()
        before = announces("vm1")
        comes()
        # A second has passed since both were told.
        assert announces("vm1") == before, announces("vm1")


def own_restarts():
    """The valed of an adapter is restarted and crashes: its guest goes on, and
    has its port again."""
    with Switch(["vm3"]) as s, \
            Remote("vm1", args=["-R", "-c", "own"]) as v1, \
            guests(v1, s) as (a, c):
        meet(a, c)
        for end in range(4):
            serving, = children(v1.proc.pid)
            if end % 2 == 0:
                subprocess.run([VALECTL, "-c", "own", "restart"], check=True)
            else:
                os.kill(serving, signal.SIGKILL)
            wait_until(lambda: children(v1.proc.pid) not in ([], [serving]),
                       "a new process")
            meet(a, c)
            exchange(a, c)
        assert "no port" not in v1.messages(), v1.messages()


def conf(*lines):
    with open("valed.conf", "w") as f:
        for slot, name, control in lines:
            f.write("pci.0.%d.0.device=e1000\npci.0.%d.0.backend=vale0:%s\n"
                    "pci.0.%d.0.path=%s.sock\n" % (slot, slot, name, slot,
                                                   name))
            if control:
                f.write("pci.0.%d.0.control=%s\n" % (slot, control))


def reload():
    """A reload adds, removes and moves such adapters."""
    def again(*lines):
        conf(*lines)
        subprocess.run([VALECTL, "-c", "own", "reload", "--replace"],
                       check=True)

    other = os.path.abspath("other")
    conf((1, "vm1", None))
    with Switch(["vm3"]) as s, Valed([], args=[
            "-c", "own", "-k", "valed.conf"], prefix="own") as v:
        v.names = ["vm1"]
        # The adapter's socket may be there before this one.
        wait_until(lambda: subprocess.run([VALECTL, "-c", "own"],
                                          capture_output=True).returncode == 0,
                   "valed")
        assert openers(v) == []
        again((1, "vm1", CONTROL), (2, "vm2", CONTROL))
        has("vm1", "vm2", "vm3")
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b, \
                guests(s) as (c,):
            meet(a, b)
            meet(b, c)
            # Who is moved to another valed's switch loses his client.
            conf((1, "vm1", CONTROL), (2, "vm2", other))
            p = subprocess.run([VALECTL, "-c", "own", "reload"],
                               stderr=subprocess.PIPE, text=True)
            assert p.returncode == 1 and "another control=" in p.stderr, p
            exchange(a, b)
            # One that is left alone keeps its client and its port.
            again((1, "vm1", CONTROL), (2, "vm2", other))
            has("vm1", "vm3")
            exchange(a, c)
            assert os.path.exists("vm2.sock")
            again((1, "vm1", CONTROL), (2, "vm2", CONTROL))
            has("vm1", "vm2", "vm3")
            again((1, "vm1", CONTROL))
            has("vm1", "vm3")
            exchange(a, c)
        again((1, "vm1", None))
        has("vm3")
        # What is wrong changes nothing.
        conf((1, "vm1", "relative"))
        p = subprocess.run([VALECTL, "-c", "own", "reload"],
                           stderr=subprocess.PIPE, text=True)
        assert p.returncode == 1 and p.stderr == (
            "valectl: valed.conf:4: control=relative: not an absolute path\n"
        ), p


def stops():
    """A switch that does not run holds nobody up, nor does its end leave a
    process."""
    with Switch(["vm3"]) as s, Remote("vm1") as v1, guests(v1) as (a,):
        has("vm1", "vm3")
        # The switch has the port; now the adapter has it, too.
        def sent():
            a.send(ethernet(b"\xff" * 6, a.mac, b"first"))
            return v1.counters("vm1")["tx_frames"]
        wait_until(sent, "a frame sent")
        before = v1.counters("vm1")
        s.stop()
        # More than the port's ring has.
        for i in range(1100):
            a.send(ethernet(b"\xff" * 6, a.mac, b"%d" % i))
        after = v1.counters("vm1")
        n = {k: after[k] - before[k] for k in ("tx_frames", "tx_noroom")}
        assert n["tx_frames"] + n["tx_noroom"] == 1100, n
        assert n["tx_noroom"] >= 1100 - 1023, n
        s.proc.send_signal(signal.SIGCONT)
        with guests(s) as (c,):
            meet(a, c)
            exchange(a, c)
        v2 = Remote("vm2")
        has("vm1", "vm2", "vm3")
        opener, = openers(v2)
        s.stop()
        v2.proc.terminate()
        assert v2.proc.wait(WAIT_S) == 0
        wait_until(lambda: ended(opener), "the end of the opener")
        s.proc.send_signal(signal.SIGCONT)


def hostile():
    """A valed that answers with anything: the adapter goes on without a port,
    and has one when there is one."""
    file = open("file", "w+")
    head = struct.pack(ctl_client.HEAD, ctl_client.MAGIC, 0, b"")
    hdr = struct.pack(ctl_client.HDR, 14, 0, 0, b"", 0, 0)
    reg = struct.calcsize(ctl_client.REGISTER)
    pair = socket.socketpair()
    memfd = memory(1 << 20)
    kicks = [pair[0].fileno()] * 2
    # What is sent for each connection: packets, each with descriptors.
    answers = [
        [],
        [(b"", [])],
        [(head, [])],
        [(head + hdr + bytes(reg), [])],
        [(head + hdr + bytes(reg), [file.fileno()] * 4)],
        [(head + hdr + bytes(reg), [memfd, memfd, file.fileno(), memfd])],
        [(head + hdr + bytes(reg), [memfd, memfd] + kicks),
         (struct.pack(ctl_client.HEAD, ctl_client.MAGIC, errno.EIO, b"no") +
          hdr, [])],
        [(head + hdr + b"\xff" * reg, [memfd, memfd] + kicks),
         (head + hdr, [])],
        [(head + hdr + os.urandom(reg), [memfd, memfd] + kicks),
         (head + hdr, [])],
    ]
    with Remote("vm1") as v1, guests(v1) as (a,):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.bind("control")
        s.listen(8)
        s.settimeout(WAIT_S)
        for packets in answers:
            c = s.accept()[0]
            for data, fds in packets:
                with contextlib.suppress(BrokenPipeError):
                    socket.send_fds(c, [data], fds)
            a.send(ethernet(b"\xff" * 6, a.mac, b"x"))
            if packets:
                # It gives up by itself, unless it believes in a port.
                c.settimeout(0.2)
                with contextlib.suppress(ConnectionResetError, TimeoutError):
                    while c.recv(65536):
                        pass
            c.close()
        a.get(STATUS)
        s.close()
        # Standard input, output and error, and the adapter's.
        opener, = openers(v1)
        wait_until(lambda: len(descriptor_links(opener)) == 4, "no others",
                   lambda: descriptor_links(opener))
        os.unlink("control")
        with Switch(["vm3"]) as sw:
            has("vm1", "vm3")
            sw.begin()
            with guests(sw) as (c,):
                meet(a, c)
                exchange(a, c)


def confined():
    """The process that serves a guest has no connection to the other valed, and
    the process that has one has nothing of the guest."""
    with Switch() as s, Remote("vm1") as v1, guests(v1) as (a,):
        has("vm1")
        opener, = openers(v1)

        def links(pid):
            return list(descriptor_links(pid).values())

        def inode(link):
            return link[len("socket:["):-1]

        with open("/proc/net/unix") as f:
            seqpacket = {line.split()[6]: line.split()
                         for line in f.readlines()[1:]
                         if line.split()[4] == "0005"}
        # The guard's, and the opener's.
        mine = [l for l in links(v1.proc.pid) if l.startswith("socket:") and
                inode(l) in seqpacket]
        assert len(mine) == 2, (mine, seqpacket)
        # Standard input, output and error, the adapter's and the connection.
        wait_until(lambda: len(links(opener)) == 5, "descriptors passed on",
                   lambda: links(opener))
        theirs = sorted(links(opener))
        assert sum(l.startswith("socket:") for l in theirs) == 2, theirs
        with open("/proc/%d/status" % opener) as f:
            status = dict(line.split(":\t", 1) for line in f
                          if ":\t" in line)
        assert status["Seccomp"] == "2\n", status
        assert int(status["CapEff"], 16) == 0, status
        assert status["NoNewPrivs"] == "1\n", status


if __name__ == "__main__":
    main({f.__name__: f for f in (frames, later, switch_restarts,
                                  switch_restarts_cut, uplinks, own_restarts,
                                  reload, stops, hostile, confined)})
