# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""A valed that reads its configuration again, for valed_reload_test.sh."""

import contextlib
import errno
import os
import resource
import select
import signal
import socket
import subprocess
import threading

import ctl_client
from ctl_client import Control, MONITOR_TX
from vfu_client import *

CONF = "valed.conf"
DONE = "valed: reloaded: "


def node(slot, name, **variables):
    """The lines of an adapter."""
    variables = {"device": "e1000", "backend": "vale0:" + name,
                 "path": name + ".sock", **variables}
    return "".join("pci.0.%d.0.%s=%s\n" % (slot, n, v)
                   for n, v in variables.items() if v is not None)


def write(*nodes):
    with open(CONF + ".new", "w") as f:
        f.write("".join(nodes))
    os.rename(CONF + ".new", CONF)


class Server(Valed):
    """valed with a file, and a manager's socket to hear of reloads."""

    def __init__(self, *nodes, args=()):
        self.nodes = nodes
        write(*nodes)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.settimeout(WAIT_S)
        with contextlib.suppress(FileNotFoundError):
            os.unlink("notify")
        self.manager.bind("notify")
        os.environ["NOTIFY_SOCKET"] = os.path.abspath("notify")
        Valed.__init__(self, [], args=["-k", CONF, *args])
        self.first = self.hear(b"READY=1\n")
        self.begin()

    def check_rest(self):
        """With the file of the start."""
        self.reload_without(*self.nodes)
        Valed.check_rest(self)

    def hear(self, start):
        """Wait for a message that starts so, and return it."""
        while True:
            text = self.manager.recv(512)
            if text.startswith(start):
                return text

    def reload(self, *nodes):
        """Have valed read this, and wait until it has."""
        write(*nodes)
        self.proc.send_signal(signal.SIGHUP)
        assert b"\nMONOTONIC_USEC=" in self.hear(b"RELOADING=1\n")
        return self.hear(b"READY=1\n")

    def reload_without(self, *nodes):
        """The same, when the adapters have noticed that their clients have left:
        before, a reload that would disconnect one is refused."""
        wait_until(lambda: b"disconnects" not in self.reload(*nodes),
                   "a reload without clients", self.messages)
        self.seen = len(self.messages())

    def replace(self, *nodes):
        """The same, and clients may be disconnected."""
        write(*nodes)
        valectl("reload", "--replace")
        return self.hear(b"READY=1\n")

    def counters(self, name):
        self.names = [name]
        return Valed.counters(self, name)

    def messages(self):
        """What is printed, without lines about what a reload has done."""
        return "".join(line for line in Valed.messages(self).splitlines(True)
                       if not line.startswith(DONE))

    def done(self):
        """The lines about what was done since the last call."""
        lines = [line[len(DONE):-1]
                 for line in Valed.messages(self).splitlines(True)
                 if line.startswith(DONE)]
        new = lines[getattr(self, "told", 0):]
        self.told = len(lines)
        return new

    def error(self, lines=1):
        """The lines printed since the last call."""
        text = self.messages()
        new = text[getattr(self, "seen", 0):]
        self.seen = len(text)
        assert new.count("\n") == lines, new
        return new

    def quiet(self):
        text = self.messages()
        assert len(text) == getattr(self, "seen", 0), text


def valectl(*args, status=0):
    """Run valectl, and return what it prints on stderr."""
    p = subprocess.run([os.environ["VALECTL"], "-c", "control", *args],
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       text=True)
    assert p.returncode == status, p
    return p.stderr


A, B, C = (node(i, n) for i, n in enumerate("abc", 1))


def is_gone(client):
    with contextlib.suppress(Gone):
        while True:
            client.read(1)


def add_remove():
    with Server(A, B) as v:
        with Driver("a.sock") as a, Driver("b.sock") as b:
            exchange(a, b)
            before = v.counters("a")
            assert b"3 adapters" in v.reload(A, B, C)
            exchange(a, b)
            with Driver("c.sock") as c:
                exchange(a, c)
                assert b"2 adapters" in v.reload(A, B)
                is_gone(c)
            assert not os.path.lexists("c.sock")
            exchange(a, b)
            # Without any but one, which no longer has anybody to talk to.
            assert b"1 adapter." in v.reload(A)
            is_gone(b)
            v.reload(A, B)
            with Driver("b.sock") as b2:
                exchange(a, b2)
            after = v.counters("a")
            assert after["tx_frames"] == before["tx_frames"] + 4, after
            assert after["connects"] == 1 and after["disconnects"] == 0
            v.reload()
            is_gone(a)
        assert not [f for f in os.listdir(".") if f.endswith(".sock")]
        v.reload(A)
        with Driver("a.sock") as a:
            a.get(STATUS)
        v.quiet()


def changed():
    with Server(A, B, args=["-c", "control"]) as v, Driver("b.sock") as b:
        inode = os.stat("a.sock").st_ino
        with Driver("a.sock") as a:
            exchange(a, b)
            v.replace(node(1, "a", mac="02:00:00:00:00:07"), B)
            is_gone(a)
        with Driver("a.sock") as a:
            assert a.get(RAL0) == 2 and a.get(RAH0) & 0xffff == 0x700
            exchange(a, b)
            # The same values in another order, or with comments, are the same.
            v.reload("# a comment\n\n" + B + node(
                1, "a", mac="02:00:00:00:00:07"))
            exchange(a, b)
        assert os.stat("a.sock").st_ino == inode
        # Another path, and the old one is gone.
        v.reload_without(node(1, "a", path="z.sock"), B)
        assert not os.path.lexists("a.sock")
        with Driver("z.sock") as a:
            exchange(a, b)
        # -v and other adapters: b has not noticed.
        assert v.counters("b")["connects"] == 1
        v.quiet()


def settings(name):
    """The settings of a port or switch, as valectl prints them."""
    return dict(line.split("=", 1) for line in subprocess.run(
        [os.environ["VALECTL"], "-c", "control", "-o", name], check=True,
        stdout=subprocess.PIPE, text=True).stdout.splitlines())


def in_place():
    fast = "port.vale0:c.rate=8Mbit/s,burst=64K\n"
    first = node(1, "a", rate="1Mbit/s", vlan=10, source="own")
    switch = "switch.vale0.ageing=60\n"
    with Server(first, B, fast, switch, args=["-c", "control"]) as v, \
            Driver("a.sock") as a, Driver("b.sock") as b:
        assert settings("vale0")["ageing"] == "60"
        was = settings("vale0:a")
        assert was["vlan"] == "10" and was["source"] == "own", was
        # A program's port has its settings when it comes, and again.
        for _ in range(2):
            c = opened("vale0:c")
            assert settings("vale0:c")["rate"] == "8000000bit/s,burst=65536"
            c.close()
            wait_until(lambda: Control().served(), "the end of the port")
        c = opened("vale0:c")
        v.reload(node(1, "a", rate="2Mbit/s", itr=250, mtu=1400), B,
                 "switch.vale0.reserved=off\n",
                 "port.vale0:c.mirror=vale0:a/t\n")
        assert sorted(v.done()) == sorted([
            "vale0:a: rate=2000000bit/s", "vale0:a: vlan=0",
            "vale0:a: source=any", "vale0: reserved=off", "vale0: ageing=300",
            "vale0:c: mirror=vale0:a/t", "vale0:c: rate=0",
            "vale0:a: itr=250", "vale0:a: mtu=1400"])
        # Nobody has lost the network.
        exchange(a, b)
        for name in "ab":
            count = v.counters(name)
            assert count["connects"] == 1 and not count["disconnects"], count
        assert settings("vale0:c")["mirror"] == "vale0:a/t"
        # What valectl has set stays while its line does not change.
        subprocess.run([os.environ["VALECTL"], "-c", "control", "-o",
                        "vale0:a", "limit=3", "rate=3Mbit/s"], check=True)
        v.reload(node(1, "a", rate="2Mbit/s", itr=250, mtu=1400, weight=7), B)
        # What the last reload has changed is not changed again.
        done = v.done()
        assert "vale0:a: weight=7" in done and not [
            line for line in done if "itr=" in line or "mtu=" in line], done
        now = settings("vale0:a")
        assert now["limit"] == "3" and now["weight"] == "7", now
        assert now["rate"].startswith("3000000bit/s"), now
        # An adapter that starts anew has those of the file.
        v.replace(node(1, "a", rate="2Mbit/s", mem="5M", weight=7), B)
        now = settings("vale0:a")
        assert now["limit"] == "0" and now["weight"] == "7", now
        assert now["rate"].startswith("2000000bit/s"), now
        c.close()
        v.quiet()


def moved():
    with Server(A, B, C) as v:
        with Driver("c.sock") as c:
            v.reload(node(1, "b"), node(2, "a"), C)
            with Driver("a.sock") as a, Driver("b.sock") as b:
                exchange(a, b)
                exchange(a, c)
            v.reload_without(node(1, "b", path="a.sock"),
                             node(2, "a", path="b.sock"), C)
            with Driver("a.sock") as a, Driver("b.sock") as b:
                exchange(a, b)
                exchange(b, c)
                # A name that two switches have.
                v.reload(node(1, "b", path="a.sock"),
                         node(2, "a", path="b.sock"), C,
                         node(9, "c", backend="vale1:c", path="c1.sock"))
                exchange(a, c)
                assert v.counters("vale1:c")["connects"] == 0
                assert v.counters("c")["connects"] == 1
        v.quiet()


def at(slot, name, port, **variables):
    """The lines of an adapter with an address of its own."""
    return node(slot, name, backend=port, mac="02:00:00:00:00:%02x" % slot,
                **variables)


LSC, STATUS_LU = 4, 2


def unnoticed(*drivers):
    """The guests have noticed nothing: their registers are as they were, there
    was no interrupt for the link, and nothing was reset."""
    for d in drivers:
        assert d.get(STATUS) & STATUS_LU and not d.get(ICR) & LSC
        assert d.get(RAL0) == 0x44332211


def ports():
    """Adapters on other ports, of one switch, of others, and of each other."""
    with Server(at(1, "a", "vale0:a", source="own"), at(2, "b", "vale0:b"),
                at(3, "c", "vale1:c"), args=["-c", "control"]) as v, \
            Driver("a.sock") as a, Driver("b.sock") as b, \
            Driver("c.sock") as c:
        own = b"\2\0\0\0\0\1"
        a.mac = own
        for d in a, b, c:
            d.set(RAL0, 0x44332211)
            d.get(ICR)
        exchange(a, b)
        resets = v.counters("a")["resets"]
        frames = v.counters("a")["tx_frames"]
        # Another switch.
        v.reload(at(1, "a", "vale1:x", source="own", vlan=7),
                 at(2, "b", "vale0:b"), at(3, "c", "vale1:c", vlan=7))
        assert v.done()[-3:] == ["vale1:x: vlan=7",
                                 "vale1:x: the adapter has moved from vale0:a",
                                 "vale0:a: source=any"], v.done()
        exchange(a, c)
        refused("vale1:x")
        free("vale0:a")
        now = v.counters("x")
        assert now["tx_frames"] == frames + 1 and now["port_tx_frames"] == 1
        assert now["connects"] == 1 and now["resets"] == resets, now
        # All three change places, and the switch that is left is another one.
        v.reload(at(1, "a", "vale0:b"), at(2, "b", "vale1:c"),
                 at(3, "c", "vale1:x"))
        exchange(b, c)
        v.reload(at(1, "a", "vale1:c"), at(2, "b", "vale1:x"),
                 at(3, "c", "vale2:b", mtu=1400))
        exchange(a, b)
        v.reload(at(1, "a", "vale2:c"), at(2, "b", "vale1:x"),
                 at(3, "c", "vale2:b", mtu=1400))
        exchange(a, c)
        unnoticed(a, b, c)
        # One that goes, one that comes, and one that moves between them.
        v.reload(at(1, "a", "vale1:x"), at(4, "d", "vale2:c"),
                 at(3, "c", "vale2:b", mtu=1400))
        is_gone(b)
        with Driver("d.sock") as d:
            exchange(c, d)
            v.reload(at(1, "a", "vale2:a"), at(4, "d", "vale2:c"),
                     at(3, "c", "vale2:b", mtu=1400))
            exchange(a, d)
        unnoticed(a, c)
        # The link of each port is the guest's, also if only that changes.
        up = True
        for name, want in (("y", False), ("z", True), ("z", False),
                           ("z", True), ("a", True)):
            v.reload(at(1, "a", "vale2:" + name, link="up" if want else "down"),
                     at(3, "c", "vale2:b", mtu=1400))
            wait_until(lambda: bool(a.get(STATUS) & STATUS_LU) == want,
                       "the link of " + name)
            assert bool(a.get(ICR) & LSC) == (want != up), name
            up = want
        now = v.counters("a")
        assert now["connects"] == 1 and now["resets"] == resets, now
        v.quiet()


def adapters(n):
    """So many of one switch, which has 254 ports, from bus 1 on."""
    return [node(1 + i % 31, "p%d" % i).replace(
        "pci.0.", "pci.%d." % (1 + i // 31)) for i in range(n)]


def no_room():
    """An adapter stays where it was, with its settings, if the other switch is
    full, and those stay that were to have its port."""
    limit = "pci.0.1.0.limit=3\n"
    many = adapters(254)
    where = [at(1, "a", "vale1:a"), at(2, "b", "vale1:b")]
    with Server(*many, *where, limit) as v, Driver("a.sock") as a, \
            Driver("b.sock") as b:
        exchange(a, b)
        v.reload(*many, at(1, "a", "vale0:a"), at(2, "b", "vale1:a"), limit)
        assert v.done() == ["vale0:a: limit=3", "vale0:a: limit=0"]
        assert v.error(3) == (
            "valed: %s:764: backend=vale0:a: the switch has no port left\n"
            "valed: %s:764: vale0:a: the adapter cannot be moved, and stays "
            "as it was\n"
            "valed: %s:768: vale1:a: the adapter cannot be moved, and stays "
            "as it was\n" % (CONF, CONF, CONF))
        exchange(a, b)
        # There is room now.
        v.reload(*many[1:], at(1, "a", "vale0:a"), at(2, "b", "vale1:a"),
                 limit)
        with Driver("p1.sock") as c:
            exchange(a, c)
        v.quiet()


def moving():
    """An adapter is moved again and again while two others send to all ports of
    its switches: each frame is complete, none comes twice, and none before an
    earlier one."""
    def conf(port, other):
        return (at(1, "a", port), at(2, "b", "vale0:b"), at(3, "c", "vale1:c"),
                at(4, "d", other))

    places = [("vale0:x", "vale0:y"), ("vale0:y", "vale0:x"),
              ("vale1:y", "vale0:x"), ("vale1:x", "vale0:z")]
    with Server(*conf(*places[-1])) as v, Driver("a.sock") as a, \
            Driver("b.sock") as b, Driver("c.sock") as c:
        a.set(RAL0, 0x44332211)
        a.get(ICR)
        resets = v.counters("x")["resets"]
        v.reload(*conf("vale0:x", "vale0:y"))
        have = v.descriptors(), v.mappings()
        last, sent, got = {b: 0, c: 0}, {b: 0, c: 0}, {b: 0, c: 0}
        moves, asked = 0, False
        while moves < 24 or not (got[b] and got[c]):
            if not asked:
                write(*conf(*places[moves % len(places)]))
                v.proc.send_signal(signal.SIGHUP)
                asked = True
            for d in b, c:
                sent[d] += 1
                d.send(ethernet(b"\xff" * 6, d.mac, b"%d " % sent[d]))
            while frame := a.frame():
                d, = (x for x in (b, c) if x.mac == frame[6:12])
                n = int(frame[14:].split()[0])
                assert last[d] < n <= sent[d], (d.mac, last[d], n, sent[d])
                last[d] = n
                got[d] += 1
            told = select.select([v.manager], [], [], 0)[0]
            if told and v.manager.recv(512).startswith(b"READY=1\n"):
                moves, asked = moves + 1, False
        print("got %d and %d of %d" % (got[b], got[c], sent[b]))
        if asked:
            v.hear(b"READY=1\n")
        assert a.get(STATUS) & STATUS_LU and not a.get(ICR) & LSC
        assert a.get(RAL0) == 0x44332211
        v.reload(*conf("vale0:x", "vale0:y"))
        now = v.counters("x")
        assert now["resets"] == resets and now["connects"] == 1, now
        exchange(a, b)
        assert have == (v.descriptors(), v.mappings()), have
        v.quiet()


# What a reload does with each variable of an adapter with a client: its value,
# and what valectl then shows, or that it is refused.  Those of a port are set.
REPLACES = object()
CHANGES = {
    "device": None,                     # has one value only
    "path": ("z.sock", REPLACES), "mac": ("02:00:00:00:00:77", REPLACES),
    "csb": ("off", REPLACES), "mem": ("5M", REPLACES),
    "backend": ("vale1:a", "moved"), "mtu": ("1400", "mtu=1400"),
    "itr": ("9", "itr=9"), "itr_min": ("9", "itr_min=9"),
    "direct": ("off", "direct=off"), "announce": ("off", "announce=off"),
    "poll": ("9", "poll=9"),
    "rate": ("8Mbit/s,burst=70000", "rate=8000000bit/s,burst=70000"),
    "limit": ("3", "limit=3"), "private": ("on", "private=on"),
    "weight": ("3", "weight=3"), "vlan": ("7", "vlan=7"),
    "trunk": ("8,9", "trunk=8,9"), "native": ("8", "native=8"),
    "source": ("own", "source=own"), "ip": ("10.0.0.1", "ip=10.0.0.1"),
    "mirror": ("vale0:b", "mirror=vale0:b"), "link": ("down", "link=down"),
}


def each():
    """Each variable that valed has is changed in place, or a client must not be
    disconnected for it unless that was confirmed."""
    first = {"device": "e1000", "backend": "vale0:a", "path": "a.sock",
             "mac": "02:00:00:00:00:01"}
    lines = "".join("pci.0.1.0.%s=%s\n" % x for x in first.items())
    write(lines)
    printed = subprocess.run([os.environ["VALED"], "-T", "-k", CONF],
                             check=True, stdout=subprocess.PIPE,
                             text=True).stdout
    printed = [line.split("=")[0].split(".")[-1]
               for line in printed.splitlines()]
    # fd= is in place of path=.
    known = set(CHANGES) - {"fd"}
    assert set(printed) <= known, set(printed) - known
    usage = subprocess.run([os.environ["VALED"], "-h"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    for name in known - {"device", "backend"}:
        assert name + "=" in usage, name
    with Server(lines, B, args=["-c", "control"]) as v, \
            Driver("a.sock") as a, Driver("b.sock") as b:
        a.set(RAL0, 0x44332211)
        exchange(a, b)
        for name, change in CHANGES.items():
            if change is None:
                continue
            value, what = change
            new = dict(first, **{name: value})
            if name == "native":
                new["trunk"] = "8"
            text = "".join("pci.0.1.0.%s=%s\n" % x for x in new.items())
            v.done()
            if what is REPLACES:
                told = v.reload(text, B, C)
                line = v.error()
                assert line.startswith("valed: %s:" % CONF) and (
                    ": vale0:a: another %s= disconnects the client: see "
                    "reload --replace\n" % name) in line, line
                assert told.decode().endswith(line[len("valed: "):-1]), told
                assert valectl("reload", status=1) == line.replace(
                    "valed: ", "valectl: ")
                v.hear(b"READY=1\n")
                v.error()
                # Nothing is done, of nobody.
                assert v.done() == [] and not os.path.exists("c.sock")
            else:
                v.reload(text, B)
                done = v.done()
                assert any(what in line for line in done), (name, done)
                v.reload(lines, B)
            assert a.get(RAL0) == 0x44332211
            exchange(a, b)
        assert v.counters("a")["connects"] == 1
        for name, (value, what) in ((n, c) for n, c in CHANGES.items() if c):
            if what is not REPLACES:
                continue
            v.replace(lines.replace(first.get(name, "!"), value) if
                      name in first else
                      lines + "pci.0.1.0.%s=%s\n" % (name, value), B)
            is_gone(a)
            v.reload(lines, B)
            a = Driver("a.sock")
            exchange(a, b)
        v.quiet()
        a.close()


def unconfirmed():
    """Without a client nothing is lost, and nobody asked; an adapter that goes
    is one that was taken out."""
    with Server(at(1, "a", "vale0:a"), B, args=["-c", "control"]) as v, \
            Driver("b.sock") as b:
        v.reload(at(1, "a", "vale0:a", csb="off"), B)
        v.reload(at(1, "z", "vale1:x", mem="5M"), B)
        v.reload(node(1, "a"), B)
        with Driver("a.sock") as a:
            exchange(a, b)
            # The address is that of the port.
            v.reload(node(1, "a", backend="vale1:a"), B)
            line = v.error()
            mac = line.split("mac=")[1].split(",")[0]
            assert line == (
                "valed: %s:2: vale1:a: another address disconnects the "
                "client: set mac=%s, or see reload --replace\n" % (CONF, mac))
            v.reload(node(1, "a", backend="vale1:a", mac=mac), B)
            assert v.done()[-1] == "vale1:a: the adapter has moved from vale0:a"
            v.reload(node(1, "a", mac=mac), B)
            v.reload(A, B)
            exchange(a, b)
            v.reload(B)
            is_gone(a)
        assert valectl("--replace", status=64)
        v.quiet()


def wrong():
    with Server(A, B) as v:
        with Driver("a.sock") as a, Driver("b.sock") as b:
            for text, line in ((A + "pci.0.2.0.speed=1\n", 4), ("x\n" + B, 1),
                               (A + C + node(4, "d", itr="x"), 10)):
                told = v.reload(text)
                error = v.error()
                assert error.startswith("valed: %s:%d: " % (CONF, line))
                assert told.endswith(b". The last reload failed: " +
                                     error[7:-1].encode()), told
                exchange(a, b)
                assert not os.path.lexists("c.sock")
            os.unlink(CONF)
            v.proc.send_signal(signal.SIGHUP)
            v.hear(b"READY=1\n")
            assert v.error().startswith("valed: -k %s: " % CONF)
            exchange(a, b)
            assert v.reload(A, B, C).endswith(b"Serving 3 adapters.")
            exchange(a, b)
        v.quiet()


def in_use():
    with Server(A) as v, Driver("a.sock") as a:
        other = socket.socket(socket.AF_UNIX)
        other.bind("c.sock")
        other.listen()
        v.reload(node(1, "a", itr=5), B, C)
        assert v.error() == ("valed: %s:10: path=c.sock: socket in use\n" %
                             CONF)
        assert os.path.lexists("c.sock") and not os.path.lexists("b.sock")
        assert not os.path.lexists("c.sock.lock")
        a.get(STATUS)
        other.close()
        v.reload(A, B, C)
        with Driver("b.sock") as b, Driver("c.sock") as c:
            exchange(a, b)
            exchange(b, c)
        v.quiet()


def tap():
    late = ("valed: %s:%d: tap0: takes a new start of valed: the adapter "
            "%s\n")
    with Server(A) as v, Driver("a.sock") as a:
        # The others are added, and those that are there stay.
        v.reload(A, node(3, "c", backend="tap0"), B)
        assert v.error() == late % (CONF, 5, "is not added")
        with Driver("b.sock") as b:
            exchange(a, b)
        assert not os.path.lexists("c.sock")
        v.reload(A, node(2, "c", backend="tap0", path="b.sock"))
        assert v.error() == late % (CONF, 5, "stays as it was")
        with Driver("b.sock") as b:
            exchange(a, b)
        v.reload(A)
        assert not os.path.lexists("b.sock")
        v.quiet()


def no_tap():
    """A TAP interface that nobody has created, without privileges."""
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as e:
        raise Skip("/dev/net/tun: %s" % e.strerror) from e
    with open("valed.sh", "w") as f:
        f.write("#!/bin/sh\nexec %s '%s' \"$@\"\n" % (
            "setpriv --bounding-set=-net_admin" if os.geteuid() == 0 else "",
            os.path.abspath(os.environ["VALED"])))
    os.chmod("valed.sh", 0o755)
    os.environ["VALED"] = "./valed.sh"
    with Server(A, node(4, "t", backend="tap9"), B) as v:
        assert v.first.startswith(b"READY=1\nSTATUS=Serving 2 adapters."), \
            v.first
        assert v.error() == (
            "valed: %s:5: tap9: cannot open the interface: Operation not "
            "permitted: it takes CAP_NET_ADMIN, or an interface that was "
            "created for this user or its group\n" % CONF)
        wait_until(lambda: not os.path.lexists("t.sock"), "the removal")
        with Driver("a.sock") as a, Driver("b.sock") as b:
            exchange(a, b)
            # It is tried again, which takes a new start; the others change.
            v.reload(A, node(4, "t", backend="tap9"), C)
            assert "%s:5: tap9: takes a new start" % CONF in v.error()
            is_gone(b)
            with Driver("c.sock") as c:
                exchange(a, c)
                # Something else in its place, and on its path.
                v.reload(A, node(4, "t"), C)
                with Driver("t.sock") as t:
                    exchange(a, t)
                    exchange(c, t)
        v.quiet()
        # This line would leave the adapter that is in its place now.
        v.nodes = A, B


def no_port():
    """The same for a switch that has too many ports."""
    many = adapters(255)
    with Server(*many) as v:
        text = v.messages()
        assert text == ("valed: %s:764: backend=vale0:p254: the switch has no "
                        "port left\n" % CONF), text
        assert b"254 adapters" in v.first, v.first
        wait_until(lambda: not os.path.lexists("p254.sock"), "the removal")
        with Driver("p0.sock") as a, Driver("p253.sock") as b:
            exchange(a, b)
        # The next reload tries again.
        v.reload(*many[1:])
        with Driver("p253.sock") as a, Driver("p254.sock") as b:
            exchange(a, b)


def refused(name, whose="an adapter's", error=errno.EPERM):
    """A program cannot open this port."""
    with Control() as c:
        try:
            raise AssertionError(c.register(name))
        except ctl_client.Refused as e:
            assert e.errno == error and whose in e.why, e


def opened(name, flags=0):
    """A program can; it has it until it is closed."""
    return Control().register(name, flags)


def free(name, flags=0):
    """A program can, and has closed it when this returns."""
    Control().register(name, flags).close()

    def gone():
        with Control() as c:
            return name not in c.ports()
    if flags == 0:
        wait_until(gone, "the end of the port")


def reserved():
    with Server(A, B, args=["-c", "control"]) as v:
        refused("vale0:a")
        refused("vale0:b")
        # A monitor has no port.  Others are free.
        free("vale0:a", MONITOR_TX)
        free("vale0:c")
        free("vale1:a")
        v.reload(A, B, C)
        refused("vale0:c")
        # Not one that cannot be added: no descriptor for its socket.
        v.reload(A, B)
        free("vale0:c")
        Control().served()
        limits = resource.prlimit(v.proc.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(v.proc.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        v.reload(A, B, C)
        resource.prlimit(v.proc.pid, resource.RLIMIT_NOFILE, limits)
        assert v.error() == "valed: Too many open files\n"
        assert not os.path.lexists("c.sock")
        free("vale0:c")
        v.reload(A, B, C)
        with Driver("a.sock") as a, Driver("c.sock") as c:
            exchange(a, c)
        refused("vale0:c")
        # An error leaves what is reserved, and reserves nothing.
        other = socket.socket(socket.AF_UNIX)
        other.bind("e.sock")
        other.listen()
        v.reload(A, node(4, "d"), node(5, "e"))
        assert "socket in use" in v.error()
        free("vale0:d")
        for name in "abc":
            refused("vale0:" + name)
        # What is removed is free when the reload has ended.
        v.reload(A)
        free("vale0:b")
        free("vale0:c")
        refused("vale0:a")
        v.quiet()


def between():
    """An adapter is removed and added again, and a program wants its port."""
    with Server(A, B, args=["-c", "control"]) as v:
        stop = threading.Event()
        answers = {}

        def want():
            c = Control()
            while not stop.is_set():
                try:
                    c.register("vale0:a")
                    error = 0
                except ctl_client.Refused as e:
                    error = e.errno
                answers[error] = answers.get(error, 0) + 1
            c.close()
        threads = [threading.Thread(target=want) for _ in range(2)]
        for t in threads:
            t.start()
        try:
            for i in range(10):
                wait_until(lambda: answers, "an answer")
                v.reload(node(1, "a", mem="%dM" % (5 + i)), B)
                v.reload(node(2, "a", mem="%dM" % (5 + i)), node(1, "b"))
        finally:
            stop.set()
            for t in threads:
                t.join()
        assert list(answers) == [errno.EPERM], answers
        with Driver("a.sock") as a, Driver("b.sock") as b:
            exchange(a, b)
        v.quiet()


def taken():
    """A program has the port that an adapter is to have."""
    with Server(node(1, "a", limit=3), B, args=["-c", "control"]) as v, \
            Driver("a.sock") as a, Driver("b.sock") as b:
        x = opened("vale0:x")
        as_x = node(1, "a", backend="vale0:x", mem="5M", limit=4)
        line = "valed: %s:%%d: vale0:%%s: %%s: the adapter %%s\n" % CONF
        busy = "the port is open already, or another user captures its name"
        stays = "stays as it was"
        v.reload(as_x, B, C)
        assert v.error() == line % (2, "x", busy, stays)
        # x is unchanged; the others have the new configuration.
        assert settings("vale0:a")["limit"] == "3"
        assert settings("vale0:x")["limit"] != "4"
        exchange(a, b)
        refused("vale0:a")
        with Driver("c.sock") as c:
            exchange(a, c)
            # One more that is to have what the first one keeps, and one that
            # is to have what this one keeps.
            keeps = "another adapter keeps its port or socket"
            v.reload(as_x.replace("a.sock", "z.sock"),
                     node(2, "b", backend="vale0:a", path="y.sock"),
                     node(3, "c", path="b.sock"))
            assert v.error(3) == (line % (2, "x", busy, stays) +
                                  line % (7, "a", keeps, stays) +
                                  line % (10, "c", keeps, stays))
            exchange(a, b)
            exchange(b, c)
        assert not os.path.lexists("z.sock") and not os.path.lexists("y.sock")
        # A new one.
        v.reload(A, B, node(4, "x"))
        assert v.error() == line % (8, "x", busy, "is not added")
        v.reload(A, B, node(4, "x", mem="5M"))
        assert v.error() == line % (8, "x", busy, "is not added")
        assert not os.path.lexists("x.sock")
        # It is the program's as before, and after it the adapter's.
        refused("vale0:x", "", errno.EBUSY)
        x.close()
        wait_until(lambda: Control().served(), "the end of the port")
        v.reload(A, B, node(4, "x"))
        with Driver("x.sock") as c:
            exchange(b, c)
        exchange(a, b)
        refused("vale0:x")
        assert v.counters("a")["connects"] == 1
        v.quiet()


def functions():
    """Adapters of one slot are known by their functions."""
    same = [n.replace("pci.0.%d.0" % i, "pci.0.3.%d" % f) for n, i, f in
            ((A, 1, 0), (B, 2, 1), (C, 3, 7))]
    with Server(*same) as v:
        with Driver("a.sock") as a, Driver("b.sock") as b, \
                Driver("c.sock") as c:
            for left in (same[0], same[2]), (same[0],):
                v.reload(*left)
                is_gone(b)
                b = c
                a.get(STATUS)
                assert sorted(sockets()) == sorted(
                    n + ".sock" for n in "abc" if any(
                        "=vale0:%s\n" % n in text for text in left))
            assert v.counters("a")["disconnects"] == 0
        v.quiet()


def inherited():
    # fd= is a number here: valed_activation_test has names.
    s = socket.socket(socket.AF_UNIX)
    s.bind("in.sock")
    s.listen()
    fd = s.fileno()
    os.set_inheritable(fd, True)
    popen = subprocess.Popen
    subprocess.Popen = lambda *args, **kw: popen(*args, pass_fds=(fd,), **kw)
    taken = node(2, "b", path=None, fd=fd)
    with Server(A, taken, args=["-c", "control"]) as v, Driver(
            "a.sock") as a:
        for _ in range(3):
            with Driver("in.sock") as b:
                exchange(a, b)
                v.reload(A)
                is_gone(b)
            v.reload(A, taken)
        with Driver("in.sock") as b:
            v.replace(A, taken + "pci.0.2.0.mem=9M\n")
            is_gone(b)
        with Driver("in.sock") as b:
            exchange(a, b)
        v.quiet()
    assert os.path.exists("in.sock")


def sockets():
    return [f for f in os.listdir(".") if ".sock" in f]


def killed():
    v = Server(A)
    v.reload(A, B, C)
    v.reload(A, C)
    assert sorted(sockets()) == ["a.sock", "c.sock"]
    v.proc.kill()
    v.proc.wait()
    wait_until(lambda: not sockets(), "removal of the sockets")


def guards():
    """The processes that have valed's command line, by name."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/comm" % pid) as f, \
                    open("/proc/%s/cwd/%s" % (pid, "valed.out")):
                if f.read() == "valed-guard\n" and os.path.samefile(
                        "/proc/%s/cwd" % pid, "."):
                    found.append(int(pid))
    return found


GONE = "the process that reads the files has ended: restart valed\n"
NO_RELOAD = "valed: cannot reload: " + GONE


def no_guard():
    v = Server(A)
    with Driver("a.sock") as a:
        guard, = wait_until(guards, "the guard")
        os.kill(guard, signal.SIGKILL)
        wait_until(lambda: not guards(), "the end of the guard")
        wait_until(v.messages, "a line")
        assert v.error() == "valed: " + GONE
        v.proc.send_signal(signal.SIGHUP)
        wait_until(lambda: v.messages().count("\n") == 2, "an error")
        assert v.error() == NO_RELOAD
        a.get(STATUS)
    v.proc.terminate()
    assert v.proc.wait(WAIT_S) == 0


def guard_lost():
    v = Server(A)
    with Driver("a.sock") as a:
        guard, = wait_until(guards, "the guard")
        os.kill(guard, signal.SIGSTOP)
        v.proc.send_signal(signal.SIGHUP)
        v.hear(b"RELOADING=1\n")
        os.kill(guard, signal.SIGKILL)
        v.hear(b"READY=1\n")
        assert v.error() == NO_RELOAD
        a.get(STATUS)
        v.proc.send_signal(signal.SIGHUP)
        wait_until(lambda: v.messages().count("\n") == 2, "an error")
        assert v.error() == NO_RELOAD
    v.proc.terminate()
    assert v.proc.wait(WAIT_S) == 0


def block(a):
    """Have the client's adapter wait in a system call, until the watchdog ends
    that."""
    fd = eventfd()
    a.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(fd,))
    os.eventfd_write(fd, (1 << 64) - 2)
    os.set_blocking(fd, True)
    a.set(IMS, ICR_TXDW, post=True)
    a.set(ICS, ICR_TXDW, post=True)
    return fd


def midst(v, a):
    """Have a reload wait for an adapter's end.  Returns what holds that up."""
    fd = block(a)
    write(B)
    v.proc.send_signal(signal.SIGHUP)

    def ending():
        with Control() as c:
            return "vale0:a" not in c.devices()
    wait_until(ending, "the end of the adapter")
    return fd


def another():
    with Server(A, B, args=["-c", "control"]) as v:
        with Driver("a.sock") as a:
            fd = midst(v, a)
            write(B, C)
            v.proc.send_signal(signal.SIGHUP)
            # This one reads what is there when the first one has ended.
            wait_until(lambda: "vale0:c: the adapter is added\n" in
                       Valed.messages(v), "the next reload")
            assert v.done() == ["vale0:a: the adapter is removed",
                                "vale0:c: the adapter is added"]
            os.close(fd)


def asked():
    """While valed waits for the guard to look for an interface."""
    v = Server(A, "attach.vale0:none0=packet\n")
    assert "none0: no such interface" in v.error()
    guard, = guards()
    os.kill(guard, signal.SIGSTOP)

    def waits():
        # poll(2) of one descriptor, for WATCH_MS of valed_guard.c.
        call = read("/proc/%d/syscall" % v.proc.pid).split()
        return call[2:4] == ["0x1", "0xa"]
    wait_until(waits, "a request to the guard")
    write(A, B)
    v.proc.send_signal(signal.SIGHUP)
    # It has the signal when it waits again.
    wait_until(lambda: not pending(v.proc.pid), "the signal")
    os.kill(guard, signal.SIGCONT)
    wait_until(lambda: v.connects("b.sock"), "the reload")
    v.proc.terminate()
    assert v.proc.wait(WAIT_S) == 0


def pending(pid):
    """The signals that wait for a process."""
    return int(re.search(r"ShdPnd:\s*(\w+)",
                         read("/proc/%d/status" % pid))[1], 16)


def told():
    """While the guard hangs, as in a file system."""
    v = Server(A, B, args=["-c", "control"])
    with Driver("a.sock") as a:
        fd = midst(v, a)
        guard, = guards()
        os.kill(guard, signal.SIGSTOP)
        v.proc.terminate()
        v.hear(b"STOPPING=1")
        os.kill(guard, signal.SIGCONT)
        assert v.proc.wait(WAIT_S) == 0
        os.close(fd)
    wait_until(lambda: not sockets(), "removal of the sockets")


def guard_dies():
    """In the midst of a reload, while an adapter ends."""
    v = Server(A, B, args=["-c", "control"])
    with Driver("b.sock") as b, Driver("a.sock") as a:
        fd = midst(v, a)
        guard, = guards()
        os.kill(guard, signal.SIGKILL)
        assert v.hear(b"READY=1\n").endswith(
            b"a.sock is not removed: " + GONE.rstrip().encode())
        is_gone(a)
        b.get(STATUS)
        os.close(fd)
    v.proc.terminate()
    assert v.proc.wait(WAIT_S) == 0


def settings_fail():
    """Two at once, of a port that a program has."""
    port = "port.vale0:x."
    with Server(A, port + "trunk=8\n", args=["-c", "control"]) as v:
        x = opened("vale0:x")
        valectl("-o", "vale0:x", "trunk=no")
        v.reload(A, node(4, "x"), *(port + setting + "\n" for setting in
                                    ("trunk=8", "native=8", "limit=3",
                                     "source=own")))
        lines = v.error(3)
        for line in ("native=8: a native VLAN is that of a trunk\n",
                     "source=own: the switch does not know the port's own "
                     "address: source must be a list\n"):
            assert "valed: vale0:x: " + line in lines, lines
        assert v.done() == ["vale0:x: limit=3"]
        x.close()


def crashed():
    """The guard removes what the next process, which has the file, does not."""
    v = Server(A, B, args=["-R", "-c", "control"])
    with Driver("b.sock") as b, Driver("a.sock") as a:
        fd = midst(v, a)
        os.kill(children(v.proc.pid)[0], signal.SIGKILL)
        v.hear(b"READY=1\n")
        wait_until(lambda: not os.path.exists("a.sock"), "no socket")
        b.get(STATUS)
        os.close(fd)
    v.proc.terminate()
    assert v.proc.wait(WAIT_S) == 0


def again():
    with Server(A, B) as v:
        with Driver("a.sock") as a, Driver("b.sock") as b:
            exchange(a, b)
            v.reload(A, B, C)
            v.reload(A, B)
            guard, = wait_until(guards, "the guard")
            fds = "/proc/%d/fd" % guard
            have = v.descriptors(), v.mappings(), len(os.listdir(fds))
            threads = len(os.listdir("/proc/%d/task" % v.proc.pid))
            for i in range(20):
                v.reload(A, B, node(3, "c%d" % i), C.replace(".3.", ".4."))
                with Driver("c.sock") as c:
                    exchange(a, c)
                v.reload(A, B)
                exchange(a, b)
                v.reload("x\n")
                assert v.error() == "valed: valed.conf:1: not name=value\n"
            # The serving process hears of the end before the guard rests.
            wait_until(lambda: (v.descriptors(), v.mappings(), len(
                os.listdir(fds))) == have, "as many descriptors", lambda: have)
            assert len(os.listdir("/proc/%d/task" % v.proc.pid)) == threads
            assert guards() == [guard]
            # Signals that come faster than they are served.
            for i in range(50):
                write(A, B, *([C] if i % 2 else []))
                v.proc.send_signal(signal.SIGHUP)
            # Only the last one has four adapters.  So many messages are more
            # than the manager's socket takes while nobody reads it.
            write(A, B, C, node(4, "d"))
            v.proc.send_signal(signal.SIGHUP)
            wait_until(lambda: v.connects("d.sock"), "the last reload")
            with Driver("c.sock") as c:
                exchange(a, c)
        v.quiet()


if __name__ == "__main__":
    main({f.__name__: f for f in (
        add_remove, changed, in_place, moved, wrong, in_use, tap, no_tap,
        no_port, inherited, killed, no_guard, guard_lost, guard_dies,
        crashed, settings_fail, another, asked, told, again, reserved, between,
        taken, functions, ports, no_room, moving, each, unconfirmed)})
