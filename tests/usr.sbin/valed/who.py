# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Who may do what on the control socket, for valed_who_test.sh."""

import ctypes
import errno
import os
import shutil
import socket
import subprocess
import sys

from ctl_client import *
from vfu_client import *
from ctl_client import Refused             # not the one of vfu_client

CLONE_NEWNET = 0x40000000
# Users and groups that need not exist.
ONE, TWO, BOSS, TEAM = 61001, 61002, 61003, 61100
NOT_MINE = "the port belongs to another user"
# More supplementary groups than fit on a page.
MANY = list(range(70000, 72000))


def page():
    """The table of valed(8): who may make a request, for each kind of port."""
    rows = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "valed.8")) as f:
        for line in f:
            cells = line.rstrip("\n").split(" Ta ")
            if line.startswith(".It ") and len(cells) == 5 and \
                    not cells[0].startswith(".It Sy"):
                rows[cells[0][4:]] = cells[1:4]
    assert len(rows) == 23, rows
    return rows


def refused(fn, *args, error=errno.EPERM, why=""):
    try:
        fn(*args)
    except Refused as e:
        assert e.errno == error and why in e.why, e
        assert e.why != "" and "\n" not in e.why
    else:
        raise AssertionError("%s%r succeeds" % (fn.__name__, args))


class Switch:
    """Ports of three kinds: ONE's, TWO's, an adapter's and an interface's.
    Each has sent a frame."""

    def __init__(self):
        libc = ctypes.CDLL(None)
        if libc.unshare(CLONE_NEWNET) != 0 or shutil.which("ip") is None:
            raise Skip("no network namespace, or no ip(8)")
        for args in ("link add h0 type veth peer name w0", "link set h0 up",
                     "link set w0 up"):
            subprocess.run(["ip"] + args.split(), check=True)
        self.valed = Valed(["a"], args=["-c", "control,mode=666,admin=%d" %
                                        TEAM, "-a", "vale0:h0"])
        self.driver = Driver("a.sock")
        self.own = self.open(ONE, "vale0:one")
        self.more = self.open(ONE, "vale0:more")
        self.other = self.open(TWO, "vale0:two")
        self.own.send(ethernet(b"\xff" * 6, b"\2mine0", b""))
        self.other.send(ethernet(b"\xff" * 6, b"\2other", b""))
        self.driver.send(ethernet(b"\xff" * 6, b"\2adapt", b""))
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind(("w0", 0))
        with Control() as c:
            def learned():
                s.send(ethernet(b"\xff" * 6, b"\2iface", b""))
                return b"\2iface" in c.addrs("vale0")
            wait_until(learned, "the interface's frame")

    def open(self, uid, name):
        with user(uid):
            return Control().register(name)

    # What each kind of port is called, and its address.
    KINDS = (("vale0:one", b"\2mine0"), ("vale0:two", b"\2other"),
             ("vale0:a", b"\2adapt"), ("vale0:h0", b"\2iface"))


def column(kind):
    """The column of the table."""
    return min(kind, 2)


class Attempts:
    """A request of each row, for a port; an exception says that it failed."""

    def __init__(self, kind):
        self.kind = kind
        self.name, self.addr = Switch.KINDS[kind]

    def shown(self, yes):
        if not yes:
            raise Refused(errno.EPERM, "left out")

    def REGISTER(self, c):
        c.register("vale0:new" if self.kind == 0 else self.name).close()

    def REGISTER_monitor(self, c):
        c.register(self.name, flags=MONITOR_TX | MONITOR_RX).close()

    def PORT_INFO_GET(self, c):
        c.call("PORT_INFO_GET", self.name)

    def INFO(self, c):
        c.call("INFO", self.name, bytes(32))

    def VALE_LIST(self, c):
        self.shown(self.name in c.list())
        c.call("VALE_LIST", self.name, bytes(8))

    def PORTS(self, c):
        self.shown(self.name in c.ports())
        self.shown(self.name in c.ports("vale0"))

    def DEVICES(self, c):
        # A program's port has no device.
        if self.kind == 0:
            assert c.devices("vale0:one") == {}
        else:
            self.shown(self.kind == 1 and c.devices("vale9") == {} and
                       c.devices() != {} or
                       self.kind > 1 and self.name in c.devices() and
                       self.name in c.devices("vale0") and
                       list(c.devices(self.name)) == [self.name])

    def ADDRS(self, c):
        self.shown(self.addr in c.addrs("vale0"))

    def PORT_SETTINGS(self, c):
        c.call("PORT_SETTINGS", self.name)

    def SWITCH_SETTINGS(self, c):
        c.call("SWITCH_SETTINGS", "vale0")

    def own(self, c, request, *args):
        """A request about the connection's own port."""
        if self.kind == 0:
            name = "vale0:new"
            p = c.register(name)
            c.call(request, name, *args)
            p.close()
        else:
            c.call(request, self.name, *args)

    def PORT_HDR_SET(self, c):
        self.own(c, "PORT_HDR_SET", struct.pack("=II", 12, 0))

    def PORT_HDR_GET(self, c):
        self.own(c, "PORT_HDR_GET")

    def MISSED(self, c):
        self.own(c, "MISSED")

    def FILTER(self, c):
        # It names no port, and is about what the connection opens next.
        c.call("FILTER", self.name, bytes(4 + 512 * 8))

    def SHARE(self, c):
        self.own(c, "SHARE")

    def MIRROR(self, c):
        c.mirror(self.name, "vale0:more")
        c.mirror(self.name, "", 0)

    def MIRROR_mirrored(self, c):
        c.mirror("vale0:more", self.name)
        c.mirror("vale0:more", "", 0)

    def SET(self, c):
        c.set_limit(self.name, 100)

    def VALE_ATTACH(self, c):
        # There are no descriptors, and an adapter's name is reserved: that it
        # may ask is what it finds out.
        try:
            c.attach(self.name, "h0", 1, 1, ())
        except Refused as e:
            if "only administrators" in e.why:
                raise

    def VALE_DETACH(self, c):
        name = "vale9:none" if self.kind < 3 else self.name
        try:
            c.call("VALE_DETACH", name)
        except Refused as e:
            if e.errno != errno.ENXIO or self.kind == 3:
                raise

    def RELOAD(self, c):
        c.call("RELOAD")

    def REPLACE(self, c):
        c.call("REPLACE")

    def RESTART(self, c):
        # This valed has no -R: that it may ask is what it finds out.
        try:
            c.call("RESTART")
        except Refused as e:
            if "-R" not in e.why:
                raise


def attempt(who, row, kind):
    """Whether it succeeds.  `who' are the arguments of user()."""
    with user(*who):
        c = Control()
    a = Attempts(kind)
    try:
        getattr(a, row.replace(", ", "_"))(c)
        return True
    except Refused as e:
        assert e.why, row
        if row == "REGISTER":
            assert e.errno == (errno.EBUSY if kind == 1 else errno.EPERM), e
        elif page()[row][column(kind)] == "none":
            assert e.errno == errno.ENXIO, (row, e)
        else:
            assert e.errno == errno.EPERM, (row, e)
        return False
    finally:
        c.close()


def table():
    s = Switch()
    for row, cells in page().items():
        for kind in range(len(Switch.KINDS)):
            may = cells[column(kind)]
            assert may in ("all", "admin", "none"), row
            got = attempt((ONE,), row, kind)
            assert got == (may == "all"), (row, kind, "a program", got)
            # The interface is there only once to be detached.
            for who in ((BOSS, TEAM),) if row == "VALE_DETACH" else (
                    (0,), (BOSS, TEAM), (BOSS, 1, MANY + [TEAM])):
                got = attempt(who, row, kind)
                assert got == (may != "none"), (row, kind, who, got)
    # What was refused has changed nothing.
    with Control() as c:
        assert sorted(c.ports()) == ["vale0:a", "vale0:more", "vale0:one",
                                     "vale0:two"]
    assert s.valed.proc.poll() is None


def administrators():
    """root, the user of valed, and a group's members are administrators; with
    other groups, or without admin=, they are not."""
    # The build may be where root only looks.
    os.environ["VALED"] = shutil.copy(os.environ["VALED"], "./valed.copy")

    def start(*args):
        real = subprocess.Popen

        def popen(*a, **k):
            def drop():
                os.setgroups([])
                os.setgid(BOSS)
                os.setuid(BOSS)
            return real(*a, preexec_fn=drop, **k)
        os.chown(".", BOSS, BOSS)
        subprocess.Popen = popen
        try:
            v = Valed(["a"], args=["-c", *args])
        finally:
            subprocess.Popen = real
        return v

    def admin(*who):
        with user(*who):
            c = Control()
        with c:
            try:
                c.set_limit("vale0:a", 5)
            except Refused as e:
                assert e.errno == errno.EPERM
                assert "only administrators" in e.why
                return False
            return True

    with start("control,mode=666"):
        assert admin(0)
        assert admin(BOSS)
        assert admin(BOSS, TWO)
        assert not admin(ONE)
        assert not admin(ONE, BOSS)
        assert not admin(ONE, 0)
        assert not admin(ONE, TEAM, (TEAM,))
    with start("control,mode=666,admin=%d" % TEAM):
        assert admin(0) and admin(BOSS)
        assert admin(ONE, TEAM)
        assert admin(ONE, 1, (TEAM,))
        assert admin(ONE, 1, MANY + [TEAM])
        assert not admin(ONE, 1, MANY)
        assert not admin(ONE)
        assert not admin(ONE, 1, (TEAM - 1, TEAM + 1))
        # As whom it connects counts, not who asks.
        with user(ONE):
            c = Control()
        refused(c.set_limit, "vale0:a", 5, why="only administrators")
        c.close()


def captures():
    """A name that a program captures cannot become another user's port."""
    with Valed(["a"], args=["-c", "control,mode=666"]):
        def at(uid):
            with user(uid):
                return Control()

        def open_(uid, *args, **k):
            c = at(uid)
            try:
                return c.register(*args, **k)
            except Refused:
                c.close()
                raise

        port = open_(ONE, "vale0:x")
        refused(open_, TWO, "vale0:x", MONITOR_TX, why=NOT_MINE)
        monitor = open_(ONE, "vale0:x", MONITOR_TX)
        # It stays, and would have the frames of the next port.
        port.close()
        refused(open_, TWO, "vale0:x", error=errno.EBUSY, why="captures")
        refused(open_, 0, "vale0:x", error=errno.EBUSY, why="captures")
        port = open_(ONE, "vale0:x")
        port.send(ethernet(b"\xff" * 6, b"\2again", b""))
        assert [f[6:12] for f in monitor.frames(1)] == [b"\2again"]
        port.close()
        # Nor is it an interface's, which an administrator attaches.
        c = at(0)
        refused(c.attach, "vale0:x", "x", 1, 1, (), error=errno.EBUSY,
                why="captures")
        monitor.close()
        port = open_(TWO, "vale0:x")
        refused(open_, ONE, "vale0:x", MONITOR_TX)
        port.close()
        refused(open_, ONE, "vale0:x", MONITOR_TX, error=errno.ENXIO,
                why="no such port")
        # An administrator's stays as well, and keeps nobody out.
        port = open_(ONE, "vale0:x")
        monitor = open_(0, "vale0:x", MONITOR_TX)
        port.close()
        port = open_(TWO, "vale0:x")
        port.send(ethernet(b"\xff" * 6, b"\2other", b""))
        assert [f[6:12] for f in monitor.frames(1)] == [b"\2other"]
        port.close()
        monitor.close()

        # The same with a mirror.
        port, mirror = open_(ONE, "vale0:x"), open_(ONE, "vale0:y")
        one, two, root = at(ONE), at(TWO), at(0)
        refused(two.mirror, "vale0:y", "vale0:x", why=NOT_MINE)
        refused(one.mirror, "vale0:y", "vale0:a", why=NOT_MINE)
        refused(one.mirror, "vale0:y", "vale0:none", error=errno.ENXIO)
        refused(one.mirror, "vale0:y", "vale0:y", error=errno.EINVAL)
        refused(one.mirror, "vale0:y", "vale0:x", 4, error=errno.EINVAL)
        # What failed captures nothing.
        port.close()
        open_(TWO, "vale0:x").close()
        port = open_(ONE, "vale0:x")
        one.mirror("vale0:y", "vale0:x")
        port.close()
        refused(open_, TWO, "vale0:x", error=errno.EBUSY, why="captures")
        # A failed change leaves the mirror, and its claim.
        refused(one.mirror, "vale0:y", "vale0:y", error=errno.EINVAL)
        refused(open_, TWO, "vale0:x", error=errno.EBUSY, why="captures")
        # Nothing: whatever is named.
        one.mirror("vale0:y", "vale0:a", 0)
        port = open_(TWO, "vale0:x")
        # Root's mirror into the port is no capture of the port's user.
        root.mirror("vale0:y", "vale0:x")
        port.close()
        port = open_(TWO, "vale0:x")
        port.close()
        port = open_(ONE, "vale0:x")
        one.mirror("vale0:y", "vale0:x")
        port.close()
        # With the mirror its claim goes.
        mirror.close()
        wait_until(lambda: "vale0:y" not in root.ports(), "the mirror's end")
        open_(TWO, "vale0:x").close()
        for c in c, one, two, root:
            c.close()


def reloads():
    """An adapter that a reload adds is not captured by who had its name."""
    def write(*names):
        with open("conf", "w") as f:
            for i, n in enumerate(names, 1):
                for v in ("device=e1000", "backend=vale0:" + n,
                          "path=%s.sock" % n):
                    f.write("pci.0.%d.0.%s\n" % (i, v))

    def reload(*names):
        write(*names)
        v.proc.send_signal(signal.SIGHUP)

    write("a")
    with Valed([], args=["-c", "control,mode=666", "-k", "conf"]) as v:
        with user(ONE):
            port = Control().register("vale0:b")
            monitor = Control().register("vale0:b", MONITOR_TX)
        root = Control()
        port.close()
        wait_until(lambda: "vale0:b" not in root.ports(), "the port's end")
        reload("a", "b")
        wait_until(lambda: "another user captures" in v.messages(),
                   "the refusal", v.messages)
        assert sorted(root.ports()) == ["vale0:a"]
        monitor.close()

        def added():
            reload("a", "b")
            return "vale0:b" in root.ports()
        wait_until(added, "the adapter")
        root.close()
        reload("a")


def attached():
    """Nor is an interface attached at a port whose name somebody captures,
    until nobody does."""
    try:
        if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
            raise Skip("no network namespace")
        subprocess.run(["ip", "link", "add", "d0", "type", "veth", "peer",
                        "name", "d1"], check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        raise Skip("no veth(4), or ip(8): %s" % e)
    with open("conf", "w"):
        pass
    with Valed([], args=["-c", "control,mode=666", "-k", "conf"]) as v:
        with user(ONE):
            port = Control().register("vale0:d0")
            monitor = Control().register("vale0:d0", MONITOR_TX)
        root = Control()
        port.close()
        wait_until(lambda: "vale0:d0" not in root.ports(), "the port's end")
        with open("conf", "w") as f:
            f.write("attach.vale0:d0=packet\n")
        v.proc.send_signal(signal.SIGHUP)
        wait_until(lambda: "vale0:d0: the interface is not attached: Device "
                   "or resource busy\n" in v.messages(), "the refusal",
                   v.messages)
        assert "vale0:d0" not in root.ports()
        monitor.close()
        wait_until(lambda: "vale0:d0" in root.ports(), "the interface",
                   v.messages)
        root.close()
        with open("conf", "w"):
            pass
        v.proc.send_signal(signal.SIGHUP)
        wait_until(lambda: "vale0:d0: the interface is detached" in
                   v.messages(), "the detaching", v.messages)


def lists():
    """Places of ports that are not shown are skipped, and addresses follow
    ports that come and go."""
    with Valed(["a"], args=["-c", "control,mode=666"]):
        with user(ONE):
            one = Control()
        with user(TWO):
            two = Control()
        names = ["vale%d:%s%d" % (i % 3, "ot"[i % 2], i) for i in range(9)]
        ports = {}
        for i, n in enumerate(names):
            with user((ONE, TWO)[i % 2]):
                ports[n] = Control().register(n)
            ports[n].send(ethernet(b"\xff" * 6, b"\2addr%d" % i, b""))
        mine, others = names[::2], names[1::2]
        # In the order of switches, and of places there.
        assert sorted(one.list()) == sorted(mine)
        assert sorted(two.list()) == sorted(others)
        assert sorted(one.ports()) == sorted(mine)
        with Control() as root:
            assert sorted(root.list()) == sorted(names + ["vale0:a"])
            index = root.ports()
        for c, seen in ((one, mine), (two, others)):
            for switch in ("vale0", "vale1", "vale2"):
                want = {b"\2addr%d" % names.index(n): index[n] for n in seen
                        if n.startswith(switch)}
                assert c.addrs(switch) == want, switch
        # A place that becomes another's.
        ports.pop(mine[0]).close()
        wait_until(lambda: mine[0] not in one.ports(), "the port's end")
        with user(TWO):
            p = Control().register("vale0:new")
        p.send(ethernet(b"\xff" * 6, b"\2newer", b""))
        assert b"\2newer" not in one.addrs("vale0")
        assert b"\2newer" in two.addrs("vale0")
        refused(one.call, "VALE_LIST", "vale0:new", bytes(8), why=NOT_MINE)
        refused(one.call, "VALE_LIST", "vale0:no", bytes(8),
                error=errno.ENXIO)
        refused(one.call, "PORT_SETTINGS", "vale0:no", error=errno.ENXIO)
        # Of one that is not there, INFO tells what it would have.
        one.call("INFO", "vale0:no", bytes(32))
        refused(one.call, "ADDRS", "vale9", struct.pack("=II", 0, 0),
                error=errno.ENXIO)
        for c in one, two, p, *ports.values():
            c.close()


if __name__ == "__main__":
    cases = {f.__name__: f for f in (table, administrators, captures,
                                      reloads, attached, lists)}

    def as_root():
        if os.geteuid() != 0:
            raise Skip("only root can be several users")
        cases[sys.argv[1]]()
    main({c: as_root for c in cases})
