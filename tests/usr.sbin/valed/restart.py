# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""valed -R: what clients see of its restarts, for valed_restart_test.sh."""

import contextlib
import ctypes
import errno
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

import activation
from activation import Service, listener, manager
from ctl_client import HOSTIF
from vfu_client import *

VALECTL = os.environ["VALECTL"]
PR_SET_THP_DISABLE = 41


def ask(*args):
    """What valectl says on the control socket."""
    return subprocess.run([VALECTL, "-c", "control", *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def told_to(*args):
    """The same, which must succeed: what it prints."""
    p = ask(*args)
    assert p.returncode == 0, p
    return p.stdout


def answers():
    """Whether valed answers."""
    return ask().returncode == 0


def not_sanitized(why):
    with open(os.environ["VALED"], "rb") as f:
        if b"__asan_init" in f.read():
            raise Skip("a sanitizer " + why)


RESTARTED = (r"valed: restarted: \d+ clients go on: (\d+) saved, (\d+) "
             r"salvaged, (\d+) reset; (\d+) lost")


class Managed(Service):
    def messages(self):
        return re.sub(RESTARTED + r"\n|valed: end: .*\n", "",
                      Service.messages(self))


class Supervised(Valed):
    """valed -R with a control socket."""

    def __init__(self, names=("vm1", "vm2"), options=None, args=()):
        Valed.__init__(self, list(names), options,
                       ["-R", "-c", "control"] + list(args))
        wait_until(answers, "the control socket")
        self.serving = self.child()
        self.said = 0
        self.begin()

    def child(self):
        """The process that serves, or None."""
        pids = children(self.proc.pid)
        return pids[0] if pids else None

    def messages(self):
        """Without the lines of ways()."""
        return re.sub(RESTARTED + r"\n", "", Valed.messages(self))

    def ways(self, *want):
        """Clients that have gone on since the last call: saved, salvaged, reset,
        and lost, in each restart."""
        def lines():
            return re.findall(RESTARTED, Valed.messages(self))[self.said:]
        wait_until(lambda: len(lines()) >= len(want), "lines", lines)
        new = [tuple(map(int, line)) for line in lines()]
        self.said += len(new)
        assert new == list(want), (new, want)

    def restarted(self):
        """Wait until another process serves."""
        def another():
            now = self.child()
            if now in (None, self.serving):
                return None
            return now if answers() else None
        self.serving = wait_until(another, "a new process", self.messages)

    def crash(self, sig=signal.SIGKILL):
        os.kill(self.serving, sig)
        self.restarted()

    def restart(self):
        told_to("restart")
        before = self.serving
        self.serving = wait_until(
            lambda: self.child() not in (None, before) and self.child(),
            "another process", self.messages)

    def descriptors_kept(self):
        return len(os.listdir("/proc/%d/fd" % self.proc.pid))

    def settings_kept(self):
        """The file of settings that the store has."""
        fds = "/proc/%d/fd/" % self.proc.pid
        return [os.stat(fds + fd).st_ino for fd in os.listdir(fds)
                if "memfd:settings" in os.readlink(fds + fd)]

    def has_client(self):
        """Whether the store has one, whose pipes are the last that go, or what
        an earlier process has saved."""
        fds = "/proc/%d/fd/" % self.proc.pid
        try:
            return any(os.readlink(fds + fd).startswith(("pipe:",
                                                         "/memfd:saved"))
                       for fd in os.listdir(fds) if int(fd) > 2)
        except FileNotFoundError:
            return True

    def without_clients(self):
        """The descriptors of a store without clients; one looked at the start
        whether valed was there."""
        wait_until(lambda: not self.has_client(), "a store without clients")
        return self.descriptors_kept()


def inodes(paths):
    return [os.lstat(p).st_ino for p in paths]


def crashes():
    with Supervised() as v:
        paths = v.paths + ["control"]
        before = inodes(paths)
        for sig in signal.SIGKILL, signal.SIGABRT:
            v.crash(sig)
            assert inodes(paths) == before
        kept = v.without_clients()
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            exchange(a, b)
        wait_until(lambda: v.descriptors_kept() == kept,
                   "%d descriptors in the store" % kept, v.descriptors_kept)
        lines = v.messages().splitlines()
        # The kernel may take its time for the second one's core dump.
        serves = "valed: the process that serves "
        assert len(lines) == 2 and lines[0] == serves + "has ended: Killed" \
            and lines[1] in (serves + "has ended: Aborted", serves +
                             "does not end: another one takes its place"), lines


def signals():
    """A signal that comes while it starts does not end it, and is handled."""
    with Supervised() as v:
        def another():
            os.kill(v.proc.pid, signal.SIGUSR1)
            os.kill(v.proc.pid, signal.SIGHUP)
            now = v.child()
            return now not in (None, v.serving) and answers()
        for _ in range(5):
            os.kill(v.serving, signal.SIGKILL)
            wait_until(another, "a new process", v.messages)
            v.serving = v.child()
        assert v.messages() == 5 * (
            "valed: the process that serves has ended: Killed\n"), v.messages()


def restarts():
    write_conf("port.vale0:other.limit=5\n")
    with Supervised(args=["-k", "valed.conf"]) as v:
        before = inodes(v.paths)
        for _ in range(3):
            v.restart()
            assert inodes(v.paths) == before
        # A file that is wrong now keeps the process that serves.
        with open("valed.conf", "a") as f:
            f.write("port.vale0:other.limit=much\n")
        p = ask("restart")
        assert p.returncode == 1 and "valed.conf:2: " in p.stderr, p
        assert v.child() == v.serving
        assert v.messages() == "", v.messages()
    # Nor does a program that takes another state.
    p = subprocess.run([os.environ["VALED"], "-t", "--takes", "0.0.0", "-k",
                        "/dev/null"], stderr=subprocess.PIPE, text=True)
    assert p.returncode == 65 and "0.0.0" in p.stderr, p


def without():
    v = Valed(["vm1"], args=["-c", "control"])
    wait_until(answers, "valed")
    p = ask("restart")
    assert p.returncode == 1 and "has no option -R" in p.stderr, p
    v.__exit__(None)


def went():
    """A client that closed its connection before the process ended, or while
    the others wait, is not waited for."""
    good = "port.vale0:other.limit=5\n"
    for before in True, False:
        write_conf(good)
        v = Supervised(args=["-k", "valed.conf"])
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            exchange(a, b)
            v.stop(v.serving)
            write_conf("\nport.vale0:other.limit=much\n")
            if not before:
                os.kill(v.serving, signal.SIGKILL)
                waiting(v, 2)
        if before:
            # It was sent there before the process was stopped.
            wait_until(v.has_client, "the client in the store")
            os.kill(v.serving, signal.SIGKILL)
        assert v.proc.wait(WAIT_S) == 78, v.messages()
        assert ("clients wait" in v.messages()) != before, v.messages()
        assert "valed.conf:2: " in v.messages(), v.messages()


def waiting(v, line):
    """It has said so, and the error in a line."""
    wait_until(lambda: "clients wait until this is mended\n" in v.messages()
               and "valed: valed.conf:%d: limit=much: the value is not a "
               "number\n" % line in v.messages(), "an error in line %d" % line,
               v.messages)


def endless():
    """A program that ends by a signal each time before it serves is started six
    times."""
    def limit():
        # An adapter's memory is larger.
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    p = subprocess.run([os.environ["VALED"]] + ARGS, preexec_fn=limit,
                       stderr=subprocess.PIPE, text=True, timeout=WAIT_S)
    assert p.returncode == 70, p
    assert p.stderr.count("valed: the process that serves has ended: File size "
                          "limit exceeded\n") == 6, p


def waits():
    """If the configuration is wrong then, clients wait until it is mended."""
    good = "port.vale0:other.limit=5\n"
    wrong = "\nport.vale0:other.limit=much\n"
    write_conf(good)
    with Supervised(args=["-k", "valed.conf"]) as v, \
            Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
        write_conf(wrong)
        os.kill(v.serving, signal.SIGKILL)
        waiting(v, 2)
        # Another error is said, too, and the same one once.
        write_conf("\n" + wrong)
        os.kill(v.proc.pid, signal.SIGHUP)
        waiting(v, 3)
        os.kill(v.proc.pid, signal.SIGUSR1)
        write_conf(good)
        exchange(a, b)
        # Each error was said once.
        assert len(v.messages().splitlines()) == 4, v.messages()
    # The service manager, which ends what does not become ready.
    args = ARGS + ["-k", "valed.conf"]
    m = Manager()
    v = m.start(args)
    with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
        m.stop(v)
        write_conf(wrong)
        for _ in range(2):
            v = m.spawn(args)
            waiting(v, 2)
            m.stop(v, status=75)
        write_conf(good)
        v = m.start(args)
        exchange(a, b)
        m.stop(v)
        m.drop()
    # Without clients there is nothing to wait for.
    v = m.start(args)
    m.stop(v)
    write_conf(wrong)
    v = m.spawn(args)
    assert v.proc.wait(WAIT_S) == 78, v.messages()


class Manager:
    """A service manager that keeps descriptors, as systemd does: also those that
    it has passed, until it is told not to."""

    def __init__(self):
        self.sock = manager()
        self.stored = {}            # generations: name, descriptors
        self.close = os.close       # called for each that is removed

    @property
    def kept(self):
        return [fd for fds in self.stored.values() for fd in fds]

    def read(self, wanted):
        """Read messages until one begins so, or, if it is None, all that have
        come."""
        self.sock.settimeout(0 if wanted is None else WAIT_S)
        while True:
            try:
                text, fds, _, _ = socket.recv_fds(self.sock, 4096, 32)
            except BlockingIOError:
                return None
            text = text.decode()
            name = text.partition("FDNAME=")[2]
            assert re.fullmatch(r"|valed-store(\.\d+)?", name), text
            if text.startswith("FDSTORE=1\nFDPOLL=0\n"):
                self.stored.setdefault(name, []).extend(fds)
            elif text.startswith("FDSTOREREMOVE=1\n"):
                for fd in self.stored.pop(name, []):
                    self.close(fd)
            elif text.startswith("BARRIER=1"):
                os.close(fds[0])
            if wanted is not None and text.startswith(wanted):
                return text

    def add(self, name, fd):
        """Have a descriptor in the store, in place of valed's own."""
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(a, [name.encode() + b"\0"], [fd])
        a.close()
        os.close(fd)
        newest = list(self.stored)[-1:] or ["valed-store"]
        self.stored.setdefault(newest[0], []).append(b.detach())

    def drop(self):
        for fd in self.kept:
            os.close(fd)
        self.stored = {}

    def names(self):
        """What the newest generation has, but for the first 253."""
        found = set()
        for fd in list(self.stored.values())[-1]:
            with socket.socket(fileno=os.dup(fd)) as s:
                # Not recv_fds(), which ignores flags.
                names, sent, _, _ = s.recvmsg(
                    1 << 16, socket.CMSG_SPACE(4 * 253),
                    socket.MSG_PEEK | socket.MSG_DONTWAIT)
                found.update(names.decode().split("\0"))
                for _, _, data in sent:
                    for one in struct.unpack("=%di" % (len(data) // 4), data):
                        os.close(one)
        return found

    def has(self, *names):
        """Read messages until a generation has these."""
        while not self.stored or not self.names() >= set(names):
            self.read("FDSTORE=1")

    def spawn(self, args, fds=(), **env):
        """Sockets of other units come first, here without names.  What an earlier
        process has sent is read first, as systemd does."""
        self.read(None)
        env["LISTEN_FDNAMES"] = ":".join([""] * len(fds) + [
            name for name, kept in self.stored.items() for _ in kept])
        return Managed(args, list(fds) + self.kept,
                       NOTIFY_SOCKET=os.path.abspath("notify"), **env)

    def start(self, args, fds=(), **env):
        v = self.spawn(args, fds, **env)
        self.read("READY=1")
        return v

    def stop(self, v, sig=signal.SIGTERM, status=0):
        v.proc.send_signal(sig)
        self.read("BARRIER=1")
        assert v.proc.wait(WAIT_S) == status, v.messages()
        assert len(self.kept) == 1, self.stored


# What has become of two clients: saved, salvaged, reset, lost.
SAVED_2, SALVAGED_2 = (2, 0, 0, 0), (0, 2, 0, 0)


def clients():
    """A client goes on, whatever ends the process: on purpose, between two
    messages, or at any time."""
    with Supervised() as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            irq = eventfd()
            b.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(irq,))
            b.set(IMS, ICR_RXT0)
            b.set(RAL0, 0x44332211)
            exchange(a, b)
            for end, way in (
                    (v.restart, SAVED_2), (v.crash, SALVAGED_2),
                    (v.restart, SAVED_2), (v.restart, SAVED_2),
                    (v.crash, SALVAGED_2), (v.crash, SALVAGED_2)):
                fired(irq)
                b.get(ICR)
                end()
                v.ways(way)
                # What was saved lacks no interrupt of the rings.
                causes = b.get(ICR) & (ICR_TXDW | ICR_RXT0)
                assert way != SAVED_2 or causes == 0, causes
                assert b.get(RAL0) == 0x44332211
                exchange(a, b)
                wait_event(irq)
                assert b.get(ICR) & ICR_RXT0
            # One more looked whether valed was there.
            connects = v.counters("vm1")["connects"]
            assert connects == 2, connects
        # The next clients are served as always.
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            exchange(a, b)
            v.crash()
            exchange(a, b)


KILLS = int(os.environ.get("KILLS", 20))
ENDS = 3


def flood():
    """The process is killed again and again while two clients exchange frames:
    each is complete, none comes before an earlier one, and they go on."""
    with Supervised() as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            done = threading.Event()

            def kill():
                try:
                    for _ in range(KILLS):
                        time.sleep(random.random() / 50)
                        v.crash()
                finally:
                    done.set()
            threading.Thread(target=kill, daemon=True).start()
            last = arrived = n = 0
            while not done.is_set() or last < n - 1:
                n += 1
                a.send(ethernet(b.mac, a.mac, b"frame %d." % n))
                while frame := b.frame():
                    number = int(re.fullmatch(rb"frame (\d+)\.\0*",
                                              frame[14:])[1])
                    assert last <= number <= n, (last, number, n)
                    last = number
                    arrived += 1
            print("%d of %d frames, %d kills" % (arrived, n, KILLS))
            exchange(a, b)
        messages = v.messages().splitlines()
        assert len(messages) == KILLS, messages


def counting():
    """Counters of adapters go on, with a client and without one."""
    def others(name):
        """Those that others than the client's commands change, too."""
        return name.startswith("port_") or name in (
            "reg_reads", "wakeups", "recvs", "sends", "intr_asked", "intr_sent",
            "irq_sent", "resets", "connects", "accept_waits")

    def go_on(v):
        for end in v.restart, v.crash, v.restart, v.crash:
            before = v.counters("vm1")
            end()
            after = v.counters("vm1")
            for name, n in before.items():
                assert name.startswith("port_") or after[name] >= n, (
                    name, before, after)
                assert others(name) or after[name] == n, (
                    name, before, after)

    with Supervised() as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            for _ in range(5):
                exchange(a, b)
            go_on(v)
        v.idle("vm1")
        assert v.counters("vm1")["tx_frames"] == 5
        go_on(v)


def fault(v, name):
    """As if the adapter's thread had a fault, which ends the process."""
    assert ctypes.CDLL(None).tgkill(v.serving, thread(v.serving, name),
                                    signal.SIGSEGV) == 0
    v.restarted()


def gone(client):
    """Whether the client has lost its connection."""
    try:
        client.get(RAL0)
        return False
    except Gone:
        return True


def blamed():
    """A client whose adapter's thread ends the process twice within a minute
    is disconnected, and stays so; the others go on."""
    not_sanitized("handles faults")
    dropped = "valed: -s 1,e1000,vale0:vm1,path=vm1.sock: the client has " \
        "ended valed 2 times within 60 seconds: it is disconnected until " \
        "the next reload"
    write_conf("port.vale0:other.limit=5\n")
    with Supervised(("vm1", "vm2", "vm3"), args=["-k", "valed.conf"]) as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b, \
                Driver("vm3.sock") as c:
            fault(v, "vm1")
            exchange(a, b)
            # Neither is this one's fault, nor is one of another the second; a
            # restart does not forget the first.
            v.crash()
            v.restart()
            fault(v, "vm2")
            exchange(a, b)
            assert dropped not in v.messages(), v.messages()
            fault(v, "vm1")
            assert gone(a)
            exchange(b, c)
            for end in v.crash, v.restart, v.crash:
                end()
                wait_until(lambda: not os.path.exists("vm1.sock"),
                           "the end of vm1.sock")
                exchange(c, b)
            # A reload starts it again.
            os.kill(v.proc.pid, signal.SIGHUP)
            wait_until(lambda: os.path.exists("vm1.sock") and
                       v.connects("vm1.sock"), "a server at vm1.sock")
            with Driver("vm1.sock") as a:
                exchange(a, b)
                v.crash()
                exchange(a, b)
            assert v.messages().splitlines().count(dropped) == 4, v.messages()


class Accepted(Client):
    """A client that valed has accepted before, at the end of its connection."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(WAIT_S)
        self.next_id = 0


ARGS = ["-R", "-c", "control", "-s", "1,e1000,vale0:vm1,path=vm1.sock", "-s",
        "2,e1000,vale0:vm2,path=vm2.sock"]


PATHS = ["control", "vm1.sock", "vm2.sock"]


def alone():
    """A start without -R, while the manager is about to close what it has of one
    with -R: systemd closes that after the barrier."""
    m = Manager()
    late = []
    m.close = late.append
    m.stop(m.start(ARGS))
    v = m.start(ARGS[1:])
    with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
    assert late and answers()
    v.proc.terminate()
    assert v.proc.wait(WAIT_S) == 0, v.messages()


def managed():
    """The service manager has what is kept, and each restart is one on
    purpose."""
    m = Manager()
    v = m.start(ARGS)
    before = inodes(PATHS)
    with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        b.set(RAL0, 0x44332211)
        for _ in range(3):
            exchange(a, b)
            m.stop(v)
            assert "valed: end: 2 guests have no network until valed starts " \
                "again" in Service.messages(v)
            v = m.start(ARGS)
            assert inodes(PATHS) == before
            assert b.get(RAL0) == 0x44332211
            os.kill(children(v.proc.pid)[0], signal.SIGKILL)
            m.read("READY=1")
        exchange(a, b)
        m.stop(v)
        # Without -R nothing is kept.
        v = m.start(ARGS[1:])
        try:
            a.get(RAL0)
        except (Gone, ConnectionError):
            pass
        else:
            raise AssertionError("the client is there")
    with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
    v.end()


def access():
    """The next process's control socket is as its options say, whatever the one
    before it had."""
    os.umask(0o027)
    m = Manager()
    other = 1 if os.geteuid() == 0 else [os.getegid(), *os.getgroups()][-1]
    for options, mode, group in (
            (",mode=0666,group=%d" % other, 0o666, other),
            (",mode=0600", 0o600, os.getegid()),
            ("", 0o750, os.getegid())):
        v = m.start(["-R", "-c", "control" + options] + ARGS[3:])
        st = os.lstat("control")
        assert (st.st_mode & 0o777, st.st_gid) == (mode, group), st
        m.stop(v)
    m.drop()


def killed():
    """Somebody kills the supervisor, at any time: no process is left that serves,
    and the next one goes on with what the service manager has."""
    m = Manager()
    v = m.start(ARGS)
    before = inodes(PATHS)
    with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        b.set(RAL0, 0x44332211)
        for n in range(4):
            exchange(a, b)
            if n < 2:
                m.has(*("%s.%s" % (place, what) for place in ("0008", "0010")
                        for what in ("client", "mem.0", "memory", "journal")))
            pids = [v.proc.pid] + children(v.proc.pid)
            v.proc.kill()
            assert v.proc.wait(WAIT_S) == -signal.SIGKILL
            wait_until(lambda: not any(os.path.exists("/proc/%d/exe" % pid)
                                       for pid in pids), "the end", v.messages)
            v = m.start(ARGS)
            assert inodes(PATHS) == before
            assert b.get(RAL0) == 0x44332211
            assert Service.messages(v) == (
                "valed: restarted: 2 clients go on: 0 saved, 2 salvaged, "
                "0 reset; 0 lost\n"), v.messages()
        exchange(a, b)
    m.stop(v)
    m.start(ARGS)


def guard_of(pid):
    """Its guard, which has its name some time after it is there."""
    return next((c for c in children(pid) if comm(c) == "valed-guard"), None)


def guard_stop(v):
    """Have the process that serves wait at its end, for the guard."""
    pid = wait_until(lambda: guard_of(v.serving), "the guard", v.messages)
    os.kill(pid, signal.SIGSTOP)
    return pid


def in_call(pid, number):
    """Whether a process is in a system call."""
    with open("/proc/%d/syscall" % pid) as f:
        return f.read().split()[0] == str(number)


RECVMSG = 47


def late():
    """A process that does not end is not waited for, and a signal that ends valed
    during a restart does that."""
    v = Supervised()
    with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
        guard = guard_stop(v)
        v.restart()
        v.ways(SAVED_2)
        exchange(a, b)
        os.kill(guard, signal.SIGKILL)
        guard = guard_stop(v)
        with subprocess.Popen([VALECTL, "-c", "control", "restart"],
                              stderr=subprocess.DEVNULL) as p:
            wait_until(lambda: in_call(v.serving, RECVMSG), "the end")
            v.proc.terminate()
            assert v.proc.wait(WAIT_S) == 0, v.messages()
            p.kill()
        for path in PATHS:
            assert not os.path.exists(path), path
        os.kill(guard, signal.SIGKILL)


def ignored():
    """Whoever starts valed may ignore SIGCHLD."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    v = Supervised()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with v:
        v.crash()
        v.restart()


def numbers():
    """A socket that is inherited keeps its number, with LISTEN_FDS and without,
    and the check before a restart looks at it."""
    for pid in "$$", "1":
        a, b = listener("vm1.sock"), listener("vm2.sock")
        write_conf("")
        v = Managed(["-R", "-c", "control", "-k", "valed.conf", "-s",
                     "1,e1000,vale0:vm1,fd=3", "-s",
                     "2,e1000,vale0:vm2,fd=7"], [a, a, a, a, b], pid=pid)
        wait_until(answers, "the control socket", v.messages)
        with Driver("vm1.sock") as x, Driver("vm2.sock") as y:
            for crash in True, False, True:
                exchange(x, y)
                pid = children(v.proc.pid)[0]
                if crash:
                    os.kill(pid, signal.SIGKILL)
                else:
                    told_to("restart")
                exchange(x, y)
            write_conf("pci.0.3.0.device=e1000\npci.0.3.0.backend=vale0:c\n"
                       "pci.0.3.0.fd=9\n")
            p = ask("restart")
            assert p.returncode == 1 and "fd=9: not a listening" in p.stderr, p
            exchange(x, y)
        v.end()
        for path in "vm1.sock", "vm2.sock":
            os.unlink(path)


def quiet():
    """Processes that have nothing to do sleep, but for a check once a second."""
    with Supervised() as v, Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        for end in v.restart, v.crash:
            exchange(a, b)
            end()
            exchange(a, b)
            counts = []
            for _ in range(5):
                before = wait_until(v.switches, "all to sleep")
                time.sleep(1)
                counts.append(wait_until(v.switches, "all to sleep") - before)
                if counts[-1] < 20:
                    break
            print(counts)
            assert counts[-1] < 20, counts


def install(build, text=None):
    """A valed that differs in its build ID, or a script, replaces ./valed."""
    with open(os.environ["INSTALLED"], "rb") as f:
        data = f.read()
    note = struct.pack("<III4s", 4, 20, 3, b"GNU")
    at = data.index(note) + len(note)
    data = data[:at] + bytes([build]) + data[at + 1:]
    with open("new", "wb") as f:
        f.write(text or data)
    os.chmod("new", 0o755)
    os.replace("new", "valed")


def installed():
    """./valed is what is started."""
    os.environ["INSTALLED"] = os.environ["VALED"]
    os.environ["VALED"] = os.path.abspath("valed")
    install(0)


def upgrades():
    """Clients go on with one new program after the other, and with memory that
    they map then; a crash before the restart loses them."""
    installed()
    with Supervised() as v, Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        for build in 1, 2, 3:
            exchange(a, b)
            install(build)
            v.restart()
            v.ways(SAVED_2)
            fd = memory(65536)
            a.dma_map(build << 40, 65536, fd)
            os.close(fd)
            exchange(a, b)
            v.crash()
            v.ways(SALVAGED_2)
            a.dma_unmap(build << 40, 65536)
        exchange(a, b)
        install(4)
        v.crash()
        v.ways((0, 0, 0, 2))
        assert gone(a) and gone(b)


def hangs():
    """A program that hangs when it is checked is not started."""
    installed()
    with Supervised() as v, Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        install(1, b"#!/bin/sh\nexec sleep 1000\n")
        p = ask("restart")
        assert p.returncode == 1 and "cannot be started" in p.stderr, p
        exchange(a, b)
        v.ways()


def scarce():
    """The next process cannot be started for a moment: the supervisor cannot make
    one, or the one that serves none of its own."""
    if os.getuid() != 0:
        raise Skip("only root has processes of another user")
    uid = 100000 + os.getpid()
    user = ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid,
            "--clear-groups"]
    real = os.environ["VALED"]
    not_sanitized("makes a process of its own at the end")
    if subprocess.run(user + ["test", "-x", real]).returncode != 0:
        raise Skip("valed is not for other users")
    with open("valed", "w") as f:
        f.write('#!/bin/sh\nexec %s %s "$@"\n' % (" ".join(user), real))
    os.chmod("valed", 0o755)
    os.chmod(".", 0o777)
    os.environ["VALED"] = os.path.abspath("valed")

    def processes(pid, n):
        subprocess.run(user + ["prlimit", "--pid=%d" % pid,
                               "--nproc=%d:" % n], check=True)
    with Supervised() as v, Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        for n, said in (1, "supervisor: Resource temporarily unavailable\n"), \
                (2, "has ended: exit status 71\n"):
            exchange(a, b)
            processes(v.proc.pid, n)
            os.kill(v.serving, signal.SIGKILL)
            wait_until(lambda: said in v.messages(), said, v.messages)
            processes(v.proc.pid, 1000)
            v.restarted()
            v.ways(SALVAGED_2)
        exchange(a, b)


def noted():
    """A process is killed when it has put a new client's descriptors into the
    store, and not noted yet that there is one: the next process accepts the
    client, and the one after that goes on with it."""
    m = Manager()
    m.stop(m.start(ARGS))
    ours, theirs = socket.socketpair()
    pipe = os.pipe()
    for name, fd in (("client", theirs.detach()), ("pipe.0", pipe[0]),
                     ("pipe.1", pipe[1])):
        m.add("0008." + name, fd)
    v = m.start(ARGS)
    a = Accepted(ours)
    a.negotiate()
    a.set(RAL0, 0x44332211)
    for _ in range(2):
        os.kill(children(v.proc.pid)[0], signal.SIGKILL)
        m.read("READY=1")
        assert a.get(RAL0) == 0x44332211, v.messages()
    m.stop(v)


# What adapter_keep.c saves, a file of each device: lines of an offset and bytes,
# hexadecimal, between which there are zeros.
SAVED = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "adapter_saved_%s.txt")


def saved_read(device):
    with open(SAVED % device) as f:
        lines = [line.split() for line in f if not line.startswith("#")]
    data = bytearray(int(lines[0][1]))
    for at, digits in lines[1:]:
        piece = bytes.fromhex(digits)
        data[int(at):int(at) + len(piece)] = piece
    return bytes(data)


def saved_text(data):
    """The form of such a file."""
    lines = ["size %d" % len(data)]
    for piece in re.finditer(rb"[^\0](?:[^\0]|\0{1,3}(?=[^\0])){0,35}", data):
        lines.append("%d %s" % (piece.start(), piece[0].hex()))
    return "\n".join(lines)


def saved_last(m):
    """The file of the first adapter that a manager has been given."""
    pack = socket.socket(fileno=os.dup(m.kept[0]))
    found = None
    while True:
        try:
            names, fds, _, _ = socket.recv_fds(pack, 1 << 16, 253,
                                               socket.MSG_DONTWAIT)
        except BlockingIOError:
            break
        if not names:
            break
        for name, fd in zip(names.split(b"\0"), fds):
            if name == b"0008.saved":
                found = os.pread(fd, os.fstat(fd).st_size, 0)
            os.close(fd)
    return found


RDTR, IVAR, EITR, RSSRK, RXRING_1 = 0x2820, 0xe4, 0xe8, 0x5c80, 0x2900


def journal_v1():
    """A journal (peer_mem_journal.h) of one range, of the file mem.0."""
    fd = os.memfd_create("journal", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 24 + 2 * (16 + 40 * 132094))
    os.write(fd, b"\0PMEJNL1" + struct.pack(
        "<QQQQQQQQHHI", 132094, 1 * 2 + 0, 0, 1, 0x100000, 65536, 0, 0, 1, 3,
        1))
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK |
                fcntl.F_SEAL_GROW)
    return fd


# The registers that a saved state sets: of both adapters, and of an 82574L.
SAVED_REGS = {RAL0: 0x44332211, RAL0 + 4: 0x80006655, IMS: ICR_RXT0,
              RDTR: 0x123}
SAVED_SLOT = "1,e1000,vale0:vm1,path=vm1.sock,mac=58:9c:fc:cd:72:4d"
SAVED_82574 = {IVAR: 0x80000008, EITR + 4: 0x321, RSSRK: 0x99887766,
               RXRING_1: 0x12345670}


def saved_start(m, state_bytes, options="", device="e1000", sent=b""):
    """Starts valed with what was saved, and what the client has sent since.
    Returns it and the client."""
    args = ARGS[:]
    args[4] = SAVED_SLOT.replace("e1000", device) + options
    ours, theirs = socket.socketpair()
    ours.sendall(sent)
    state = os.memfd_create("saved", os.MFD_ALLOW_SEALING)
    os.write(state, state_bytes)
    fcntl.fcntl(state, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK |
                fcntl.F_SEAL_GROW)
    pipe = os.pipe()
    for name, fd in (("saved", state), ("journal", journal_v1()),
                     ("mem.0", memory(65536)), ("client", theirs.detach()),
                     ("pipe.0", pipe[0]), ("pipe.1", pipe[1])):
        m.add("0008." + name, fd)
    return m.start(args), Accepted(ours)


def subsystem(c):
    return c.region_read(CONFIG, 0x2c, 4)


def saved_of(m, device, regs):
    saved = saved_read(device)
    v, a = saved_start(m, saved, device=device)
    assert v.messages() == "", v.messages()
    for reg, value in regs.items():
        assert a.get(reg) == value, (hex(reg), hex(a.get(reg)))
    # With csb=compat it had this subsystem ID: the client keeps it.
    assert subsystem(a) == b"\x86\x80\x01\x11"
    a.call(RESET)
    assert subsystem(a) == b"\x86\x80\x01\x11"
    # The range is there, and no other.
    a.dma_unmap(0x100000, 65536)
    refused(errno.ENOENT, a.dma_unmap, 0x100000, 65536)
    assert v.messages() == "", v.messages()
    m.stop(v)
    now = saved_last(m)
    m.drop()
    # If the form has changed, so has its version (adapter_version.h), and what
    # is printed here is the file of the new one.
    print(saved_text(now))
    assert len(now) == len(saved), (len(now), len(saved))
    for at in slice(0, 12), slice(32, 48), slice(72, 92), slice(540, 550):
        assert now[at] == saved[at], (at, now[at], saved[at])


def saved():
    """A client goes on with what was saved in the form of this version, and with
    nothing of another one."""
    m = Manager()
    saved_of(m, "e1000", SAVED_REGS)
    saved_of(m, "e1000e", SAVED_REGS | SAVED_82574)
    # Without the CSB that state is lost, and so is what announced the CSB.
    v, a = saved_start(m, saved_read("e1000"), ",csb=off")
    assert subsystem(a) == b"\x86\x80\x08\x10"
    assert "the state of the adapter is lost" in v.messages(), v.messages()
    m.stop(v)
    m.drop()
    # Another version: of all, of the device's state, of the model's.
    for at, why in (
            (8, "valed: -s %s: vale0:vm1: the state was saved in version 2, not "
             "1: the adapter starts anew\n" % SAVED_SLOT),
            (84, "valed: vm1: the client is lost: a state of an unknown "
             "version\n"),
            (548, "valed: vm1: the state of the adapter is lost: it is "
             "reset\n")):
        other = bytearray(saved_read("e1000"))
        assert other[at] == 1
        other[at] = 2
        lost = at != 548
        v, a = saved_start(m, bytes(other), sent=b"unread" * lost)
        assert v.messages() == why, v.messages()
        # The client sees its end, and not ECONNRESET.
        assert not lost or a.sock.recv(1) == b""
        m.stop(v)
        m.drop()


def inherited():
    """Sockets of the service manager are not mixed up with what is kept."""
    m = Manager()
    a, b = listener("vm1.sock"), listener("vm2.sock")
    args = ["-R", "-s", "1,e1000,vale0:vm1,fd=3", "-s",
            "2,e1000,vale0:vm2,fd=4"]
    v = m.start(args, [a, b])
    with Driver("vm1.sock") as x, Driver("vm2.sock") as y:
        for _ in range(2):
            exchange(x, y)
            os.kill(children(v.proc.pid)[0], signal.SIGKILL)
            m.read("READY=1")
            exchange(x, y)
            m.stop(v)
            v = m.start(args, [a, b])
        exchange(x, y)
    # The next clients are served as always.
    with Driver("vm1.sock") as x, Driver("vm2.sock") as y:
        exchange(x, y)
    m.stop(v)


def no_program():
    """If there is no program to start, the service manager has what is kept."""
    m = Manager()
    installed = activation.VALED
    shutil.copy(installed, "valed")
    activation.VALED = "./valed"
    v = m.start(ARGS)
    activation.VALED = installed
    with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
        os.unlink("valed")
        os.kill(children(v.proc.pid)[0], signal.SIGKILL)
        m.read("BARRIER=1")
        assert v.proc.wait(WAIT_S) == 71, v.messages()
        assert "cannot start again: " in v.messages(), v.messages()
        assert len(m.kept) == 1, m.kept
        v = m.start(ARGS)
        exchange(a, b)
    m.stop(v)


def watchdog():
    """WATCHDOG_PID is the supervisor; a process that hangs is one that has
    crashed."""
    m = Manager()
    v = m.start(ARGS, WATCHDOG_USEC="2000000")
    for _ in range(2):
        m.read("WATCHDOG=1")
    with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
        os.kill(children(v.proc.pid)[0], signal.SIGKILL)
        m.read("READY=1")
        m.read("WATCHDOG=1")
        exchange(a, b)
        os.kill(children(v.proc.pid)[0], signal.SIGSTOP)
        m.stop(v, signal.SIGABRT, 70)
        v = m.start(ARGS, WATCHDOG_USEC="2000000")
        m.read("WATCHDOG=1")
        exchange(a, b)
    m.stop(v)


def set_to(name, *settings):
    """Change settings by valectl."""
    told_to("-o", name, *settings)


def is_set(name, *settings):
    out = told_to("-o", name).split()
    for s in settings:
        assert s in out, "%s: %s, not %s" % (name, out, s)


def write_conf(text):
    """At once, for one that reads it at any time."""
    with open("valed.conf.new", "w") as f:
        f.write(text)
    os.replace("valed.conf.new", "valed.conf")


STATUS_LU = 0x2
CONF = "switch.vale0.batch=100\nport.vale0:vm2.limit=5\n"


def settings():
    """What valectl has changed stays, unless the configuration changes."""
    write_conf(CONF)
    with Supervised(args=["-k", "valed.conf"]) as v:
        v.restart()
        kept = v.without_clients()
        set_to("vale0", "ageing=17", "batch=50")
        set_to("vale0:vm1", "source=own", "rate=8Mbit/s", "private=on")
        set_to("vale0:vm2", "limit=7", "mirror=vale0:vm1/t")
        # One that has not changed is not stored again.
        told_to("reload")
        with Driver("vm1.sock"):
            wait_until(v.has_client, "a client in the store")
            before = v.settings_kept()
            told_to("reload")
        v.without_clients()
        assert v.settings_kept() == before != []
        for end in v.restart, v.crash, v.restart:
            end()
            is_set("vale0", "ageing=17", "batch=50")
            is_set("vale0:vm1", "source=own", "private=on",
                   "rate=8000000bit/s,burst=500000")
            is_set("vale0:vm2", "limit=7", "mirror=vale0:vm1/t")
        # What an administrator sets is kept at once, and not once a second.
        for n in 1, 2, 3, 0:
            set_to("vale0:vm1", "limit=%d" % (n + 6))
        v.crash()
        is_set("vale0:vm1", "limit=6")
        set_to("vale0:vm1", "limit=0")
        write_conf(CONF.replace("=5", "=6").replace("=100", "=99"))
        v.restart()
        is_set("vale0", "ageing=17", "batch=99")
        is_set("vale0:vm1", "source=own")
        is_set("vale0:vm2", "limit=6", "mirror=vale0:vm1/t")
        # A reload is the configuration's last word, too.
        set_to("vale0:vm2", "limit=8")
        write_conf(CONF)
        told_to("reload")
        v.crash()
        is_set("vale0:vm2", "limit=5")
        # Nothing is changed any more, and nothing kept.
        set_to("vale0", "ageing=300")
        set_to("vale0:vm1", "source=any", "rate=0", "private=off")
        set_to("vale0:vm2", "mirror=no")
        wait_until(lambda: v.descriptors_kept() == kept,
                   "%d descriptors in the store" % kept, v.descriptors_kept)
        v.restart()
        is_set("vale0", "ageing=300", "batch=100")
        # A native VLAN of a trunk that valectl has ended: the port has neither.
        trunk = CONF + "port.vale0:vm1.trunk=8\n"
        write_conf(trunk)
        told_to("reload")
        set_to("vale0:vm1", "trunk=no")
        write_conf(trunk + "port.vale0:vm1.native=8\n")
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            v.restart()
            exchange(a, b)
        is_set("vale0:vm1", "trunk=no", "native=0")
        write_conf(CONF)
        told_to("reload")


def closed():
    """What clients, adapters and processes had that are no longer is closed, in
    the process that serves and in the store."""
    write_conf(CONF)
    with Supervised(args=["-k", "valed.conf"]) as v:
        def have():
            with contextlib.suppress(FileNotFoundError):
                return [len(os.listdir("/proc/%d/fd" % pid))
                        for pid in (v.proc.pid, v.child())]

        def reload(text):
            write_conf(CONF + text)
            told_to("reload")

        def use():
            reload("pci.0.9.0.device=e1000\npci.0.9.0.backend=vale0:vm9\n"
                   "pci.0.9.0.path=vm9.sock\n")
            with Driver("vm1.sock") as a, Driver("vm2.sock") as b, \
                    Driver("vm9.sock") as c:
                for i in range(20):
                    fd = memory(4096)
                    a.dma_map((1 << 40) + i * 4096, 4096, fd)
                    os.close(fd)
                v.restart()
                exchange(a, c)
                v.crash()
                exchange(b, c)
            reload("")

        use()
        before = wait_until(have, "a process")
        for _ in range(8):
            use()

        def as_before():
            now = have()
            return now and all(a <= b for a, b in zip(now, before))
        wait_until(as_before, "descriptors as before: %s" % before, have)


def settings_file(text):
    fd = os.memfd_create("settings")
    os.write(fd, text.encode())
    return fd


FIRST = "valed settings 1\n"


def stored():
    """Settings that are in the store may be anybody's."""
    m = Manager()
    for text, good in (
            (FIRST + "vale0:vm1\tlimit\t9\t0\n", True),
            (FIRST, True),
            # Ports that valed does not serve are a program's.
            (FIRST + "vale0:other\tlimit\t9\t0\n", True),
            ("", False),
            ("valed settings 2\n", False),
            (FIRST[:-1], False),
            (FIRST + "vale0:vm1\tlimit\t9\n", False),
            (FIRST + "vale0:vm1\tlimit\t9\t0\t0\n", False),
            (FIRST + "vale0:vm1\tlimit\t9999\t0\n", False),
            (FIRST + "vale0:vm1\tlimit\tx\t0\n", False),
            (FIRST + "vale0:vm1\tlimit\t1\tx\n", False),
            (FIRST + "vale0:vm1\tageing\t1\t300\n", False),
            (FIRST + "vale0:vm1\tnone\t1\t1\n", False),
            (FIRST + "other\tageing\t1\t300\n", False),
            (FIRST + "vale0/:vm1\tlimit\t1\t0\n", False),
            (FIRST + "\0\n", False)):
        m.add("settings", settings_file(text))
        v = m.start(ARGS)
        is_set("vale0:vm1", "limit=9" if "vm1\tlimit\t9\t0\n" in text
               else "limit=0")
        assert ("settings of the earlier process are lost" in
                v.messages()) != good, (text, v.messages())
        set_to("vale0:vm1", "limit=0")
        m.stop(v)
    # What could block is not read: files that are not of memory, too.
    with open("file", "w") as f:
        f.write(FIRST)
    r, w = os.pipe()
    for fd in r, os.open("file", os.O_RDONLY):
        m.add("settings", fd)
        v = m.start(ARGS)
        assert "settings of the earlier process are lost" in v.messages()
        m.stop(v)
    os.close(w)


PUT, NOTIFY = 0, 2


def told():
    """What a process that a client has taken over tells the supervisor: names
    end, and nothing but valed's own words goes to the service manager."""
    m = Manager()
    v = m.start(ARGS)
    serving, = children(v.proc.pid)
    with open("/proc/%d/status" % serving) as f:
        size = int(re.search(r"FDSize:\t(\d+)", f.read())[1])
    pidfd = os.pidfd_open(serving)
    for fd in range(size):
        # pidfd_getfd(2)
        fd = ctypes.CDLL(None).syscall(438, pidfd, fd, 0)
        if fd == -1:
            continue
        try:
            s = socket.socket(fileno=fd)
            who = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except OSError:
            os.close(fd)
            continue
        if s.type == socket.SOCK_SEQPACKET and \
                struct.unpack("3i", who)[0] == v.proc.pid:
            break
    else:
        raise Skip("another process's descriptors are not permitted")

    def tell(what, text):
        socket.send_fds(s, [struct.pack("i", what) + text],
                        [settings_file("")] if what == PUT else [])
    tell(PUT, b"settings.long\0")
    tell(PUT, b"short.")
    m.has("settings.long", "short")
    for text in (b"MAINPID=1", b"READY=1\nMAINPID=1", b"FDSTORE=1",
                 b"STATUS=x\nFDSTOREREMOVE=1\nFDNAME=valed-store", b""):
        tell(NOTIFY, text + b"\0")
    tell(NOTIFY, b"STATUS=told\0")
    while (text := m.read("")) != "STATUS=told":
        assert text.startswith(("FDSTORE=1\nFDPOLL=0\n",
                                "FDSTOREREMOVE=1\nFDNAME=")), text
    s.close()
    m.stop(v)


def hostif(port=b"vale0:x", name=b"none0", kind=1, nfds=0,
           magic=b"valehif1"):
    """What is kept of an attached interface: valed_hostif_keep.c."""
    return struct.pack("=8s64s", magic, port) + struct.pack(
        HOSTIF, name, kind, 0, 0, 0, nfds, *[-1] * 17)


def interfaces():
    """Interfaces that are in the store may be anybody's, too."""
    lost = "valed: an attached interface of the earlier process is lost: " \
        "what was kept of it is not valid\n"
    other = "valed: vale0:x: the interface is not attached again: "
    good = hostif()
    m = Manager()
    for data, line in (
            (good, other), (good + bytes(100), other),
            # An interface has at least one descriptor, or is opened.
            (hostif(nfds=1), other), (hostif(nfds=17), other),
            (hostif(kind=2), other), (hostif(name=b""), other),
            (hostif(name=b"../../net"), other),
            (b"", lost), (good[:8], lost), (good[:-1], lost),
            (hostif(magic=b"valehif2"), lost),
            (hostif(port=b"vale0:" + b"x" * 58), lost),
            (hostif(port=b""), lost), (hostif(port=b"vale0"), lost),
            (hostif(port=b"eth0:x"), lost), (hostif(port=b"vale0:a/b"), lost),
            (hostif(name=b"n" * 16), lost), (hostif(kind=3), lost),
            (hostif(kind=(1 << 32) - 1), lost), (hostif(nfds=18), lost),
            (hostif(nfds=(1 << 32) - 1), lost),
            # That port is an adapter's.
            (hostif(port=b"vale0:vm1"), "")):
        fd = os.memfd_create("hostif")
        os.write(fd, data)
        m.add("hostif.5", fd)
        # Descriptors of other kinds; some are of no interface.
        r, w = os.pipe()
        os.close(w)
        m.add("hostif.5.0", r)
        m.add("hostif.5.1", os.memfd_create("other"))
        m.add("hostif.63.2", socket.socket(socket.AF_UNIX).detach())
        for text in line, "":
            v = m.start(ARGS)
            said = v.messages()
            assert said.startswith(text) and said.count("\n") == bool(text), (
                data, said)
            out = told_to()
            assert "vale0:x" not in out and out.count("vale0:") == 2, out
            m.stop(v)
    # What could block is not read; the others are looked at.
    r, w = os.pipe()
    m.add("hostif.0", r)
    fd = os.memfd_create("hostif")
    os.write(fd, good)
    m.add("hostif.1", os.dup(fd))
    m.add("hostif.64", fd)
    v = m.start(ARGS)
    said = v.messages()
    assert said.startswith(lost + other) and said.count("\n") == 2, said
    with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
    m.stop(v)
    os.close(w)


def link():
    """A guest sees the link of its port as it is then, after a restart, too."""
    def is_up():
        return a.get(STATUS) & STATUS_LU != 0

    write_conf("port.vale0:vm1.link=down\n")
    with Supervised(args=["-k", "valed.conf"]) as v, Driver("vm1.sock") as a:
        for end in v.restart, v.crash:
            wait_until(lambda: not is_up(), "no link")
            v.restart()
            v.crash()
            assert not is_up()
            write_conf("port.vale0:vm1.link=up\n")
            end()
            wait_until(is_up, "a link")
            write_conf("port.vale0:vm1.link=down\n")
            end()


def places(*ports, **more):
    """Adapters vm1, vm2, ... at these ports."""
    text = ""
    for slot, port in enumerate(ports, 1):
        for name, value in {"device": "e1000", "backend": port,
                            "path": "vm%d.sock" % slot,
                            "mac": "02:00:00:00:00:%02x" % slot,
                            **more}.items():
            text += "pci.0.%d.0.%s=%s\n" % (slot, name, value)
    return text


class Placed(Supervised):
    """valed -R with adapters of a file."""

    def __init__(self, *ports):
        write_conf(places(*ports))
        Supervised.__init__(self, (), args=["-k", "valed.conf"])

    def reload(self, *ports):
        write_conf(places(*ports))
        told_to("reload")


def moves():
    """An adapter that was moved goes on at its new port, and so does one whose
    port is another one only then; one with another address starts anew."""
    one, other = ("vale0:a", "vale0:b", "vale1:c"), ("vale1:a", "vale0:b",
                                                     "vale1:c")
    with Placed(*one) as v, Driver("vm1.sock") as a, Driver("vm2.sock") as b, \
            Driver("vm3.sock") as c:
        for d in a, b, c:
            d.set(RAL0, 0x44332211)
        exchange(a, b)
        for end in v.restart, v.crash:
            v.reload(*other)
            exchange(a, c)
            end()
            exchange(a, c)
            write_conf(places(*one))
            end()
            exchange(a, b)
            # Two exchange their ports.
            v.reload("vale1:c", "vale0:b", "vale0:a")
            exchange(b, c)
            end()
            exchange(b, c)
            v.reload(*one)
        assert all(d.get(RAL0) == 0x44332211 for d in (a, b, c))
        lines = [line for line in v.messages().splitlines()
                 if "reloaded: " not in line]
        # Those of crashes.
        assert len(lines) == 3, lines
        write_conf(places(*one).replace("00:02\n", "00:22\n"))
        v.restart()
        wait_until(lambda: gone(b), "the end of the connection")
        assert ("valed.conf:6: vale0:b: the adapter has another address than "
                "before: it starts anew") in v.messages()
        with Driver("vm2.sock") as b:
            exchange(a, b)


class Tracer:
    """Stops a thread at each of its system calls."""

    SEIZE, INTERRUPT, SYSCALL, DETACH = 0x4206, 0x4207, 24, 17
    SYSGOOD, WALL = 1, 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 2 + [ctypes.c_void_p] * 2

    def __init__(self, tid):
        self.tid, self.calls, self.stopped = tid, 0, False
        if self.ptrace(self.SEIZE, self.SYSGOOD) == -1:
            raise Skip("ptrace(2): %s" % os.strerror(ctypes.get_errno()))
        self.ptrace(self.INTERRUPT)
        os.waitpid(tid, self.WALL)
        self.ptrace(self.SYSCALL)

    def ptrace(self, request, data=0):
        return self.libc.ptrace(request, self.tid, 0, data)

    def run(self, most, done):
        """Let it make so many calls, or until done().  Returns whether it is
        in one, before the kernel or after it, where it stays until the next
        run()."""
        if self.stopped:
            self.ptrace(self.SYSCALL)
        self.stopped = False
        while self.calls < most:
            tid, status = os.waitpid(self.tid, self.WALL | os.WNOHANG)
            if tid == 0:
                if done():
                    return False
                time.sleep(0.0005)
                continue
            if not os.WIFSTOPPED(status):
                return False
            sig = os.WSTOPSIG(status)
            if sig == signal.SIGTRAP | 0x80:
                self.calls += 1
                if self.calls == most:
                    self.stopped = True
                    return True
                sig = 0
            elif status >> 16:
                sig = 0
            self.ptrace(self.SYSCALL, sig)
        return True

    def end(self):
        """The process has been killed."""
        os.waitpid(self.tid, self.WALL)

    def detach(self):
        if not self.stopped:
            self.ptrace(self.INTERRUPT)
            os.waitpid(self.tid, self.WALL)
        self.ptrace(self.DETACH)


def thread(pid, name):
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, task)) as f:
            if f.read() == name + "\n":
                return int(task)
    raise AssertionError("no thread of " + name)


def moving():
    """The process is killed at the calls that the adapter's thread, or the main
    thread, makes to exchange the ports of two adapters: both go on, each at one
    of the ports."""
    conf = ("vale0:a", "vale1:b", "vale0:c"), ("vale1:b", "vale0:a", "vale0:c")
    with Placed(*conf[0]) as v, Driver("vm1.sock") as a, \
            Driver("vm2.sock") as b, Driver("vm3.sock") as c:
        a.set(RAL0, 0x44332211)
        b.set(RAL0, 0x44332212)
        killed = n = 0
        for which in 0, 1, None:
            most, step = 1, random.randint(1, 8 if KILLS < 100 else 1)
            while True:
                n += 1
                now = v.serving
                # The threads have the ports' names.
                here = conf[(n - 1) % 2]
                t = Tracer(now if which is None else
                           thread(now, here[which].split(":")[1]))
                told = v.messages().count("reloaded: ")
                write_conf(places(*conf[n % 2]))
                os.kill(v.proc.pid, signal.SIGHUP)
                stopped = t.run(most, lambda: v.messages().count(
                    "reloaded: ") >= told + 2)
                if stopped:
                    os.kill(now, signal.SIGKILL)
                    t.end()
                    killed += 1
                    v.restarted()
                else:
                    t.detach()
                assert a.get(RAL0) == 0x44332211 and b.get(RAL0) == 0x44332212
                exchange((a, b)[n % 2], c)
                if not stopped:
                    print("%s: %d calls" % (which, t.calls))
                    break
                most += step
                step = random.randint(1, 8 if KILLS < 100 else 1)
        print("%d kills" % killed)
        assert "is reset" not in v.messages() and \
            "is lost" not in v.messages(), v.messages()


POLL, POLL_ENTERED = 7, "7 0x0 0x0 0x1 "    # poll(NULL, 0, 1)


def numbered(a, b, done):
    """Send numbered frames until done(): each arrives, once and in order."""
    def arrive():
        nonlocal last
        while frame := b.frame(post=True):
            number = int(re.fullmatch(rb"frame (\d+)\.\0*", frame[14:])[1])
            assert number == last + 1, (number, last)
            last = number
        return last == n

    n = last = 0
    while not done():
        n += 1
        a.send(ethernet(b.mac, a.mac, b"frame %d." % n))
        # Those under way fit in the other's ring.
        wait_until(lambda: arrive() or n - last < b.SLOTS // 2, "frames",
                   lambda: (last, n))
    wait_until(arrive, "the last frames", lambda: (last, n))
    return n


def ending():
    """The main thread is slow when it ends the process on purpose: no frame of
    one client to the other is lost meanwhile."""
    with Supervised() as v, Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
        for src, dst in (a, b), (b, a):
            for _ in range(ENDS):
                t = Tracer(v.serving)
                restart = subprocess.Popen([VALECTL, "-c", "control",
                                            "restart"])
                ended = threading.Event()
                sent = []
                sender = threading.Thread(
                    target=lambda: sent.append(numbered(src, dst,
                                                        ended.is_set)))
                sender.start()
                most = 1
                while t.run(most, lambda: False):
                    time.sleep(0.02)
                    most += 1
                v.restarted()
                ended.set()
                sender.join()
                assert restart.wait() == 0
                print("%d calls, frames: %s" % (t.calls, sent))
                assert sent and sent[0] > 0
        exchange(a, b)
        assert v.messages() == "", v.messages()


EPOLL_WAIT = 232


def posted():
    """Frames wait in a port for descriptors when the process ends on purpose,
    and the client posts some at the last moment: none of these is lost."""
    with Supervised() as v, Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
        pid = v.serving
        one, two = thread(pid, "vm1"), thread(pid, "vm2")
        frames = [ethernet(b.mac, a.mac, b"frame %d." % i)
                  for i in range(b.SLOTS + 7)]
        for frame in frames:
            a.send(frame)
        wait_until(lambda: b.get(RDH) == b.get(RDT), "a ring in use", b.state)
        t = Tracer(two)
        restart = subprocess.Popen([VALECTL, "-c", "control", "restart"])

        def main_waits():
            return read("/proc/%d/syscall" % pid).startswith(POLL_ENTERED)

        def sleep():
            """Let it go on until it is about to sleep: calls are entered at odd
            numbers."""
            t.run(t.calls + 1, lambda: False)
            while not (t.calls % 2 and in_call(two, EPOLL_WAIT)):
                t.run(t.calls + 1, lambda: False)

        sleep()
        wait_until(main_waits, "a request to send nothing")
        sleep()
        # The other one has saved its state when it waits for the end.
        wait_until(lambda: in_call(one, POLL) and main_waits(),
                   "a request to save")
        # It knows that it has been asked, and of nothing else.
        t.run(t.calls + 1, lambda: False)
        got = []
        while frame := b.frame(post=True):
            got.append(frame)
        assert len(got) == b.SLOTS - 1, len(got)
        t.detach()
        v.restarted()
        assert restart.wait() == 0
        for _ in range(len(frames) - len(got)):
            got.append(b.receive())
        assert got == frames, got
        exchange(a, b)
        v.ways(SAVED_2)


def hanging():
    """An adapter's thread hangs when the process ends on purpose, and the main
    thread is woken late: it looks again for as long as it has said, not for as
    many times; and not again for what cannot come, a saved state."""
    with Supervised() as v, Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        exchange(a, b)
        pid = v.serving
        hangs, other = Tracer(thread(pid, "vm1")), thread(pid, "vm2")
        assert hangs.run(1, lambda: a.set(ITR, 0, post=True))
        t = Tracer(pid)
        restart = subprocess.Popen([VALECTL, "-c", "control", "restart"])
        looks, more, most = 0, 0, 1
        while t.run(most, lambda: "State:\tZ" in read("/proc/%d/status" % pid)):
            most += 1
            if read("/proc/%d/syscall" % pid).startswith(POLL_ENTERED):
                looks += 1
                # The other one has saved its state when it waits for the end.
                more += in_call(other, POLL)
                assert looks < 2000 and more < 50, (looks, more)
                time.sleep(0.005)
        assert looks > 0
        hangs.end()
        t.end()
        v.restarted()
        assert restart.wait() == 0
        v.ways((1, 1, 0, 0))
        exchange(a, b)
        assert v.messages() == "", v.messages()


CAP = os.path.join(os.path.dirname(VALECTL), "../../usr.bin/vale-cap/vale-cap")


def programs():
    """Programs that look at the ports go on with the next process."""
    env = dict(os.environ, VALE_SOCKET="control")
    with Supervised() as v, open("events", "w") as out:
        cap = subprocess.Popen(
            [CAP, "-w", "cap.pcapng", "vale0:vm1", "vale0:vm2"], env=env,
            stderr=subprocess.PIPE, text=True)
        wait_until(lambda: os.path.exists("cap.pcapng") and
                   os.path.getsize("cap.pcapng") > 0, "the capture")
        events = subprocess.Popen([VALECTL, "--events"], stdout=out, env=env)
        rates = subprocess.Popen([VALECTL, "-s", "all"], env=env,
                                 stdout=subprocess.DEVNULL)

        def last_event():
            """The last one of a client of vm1."""
            with open("events") as f:
                found = re.findall(r'"event": ?"(client_\w+)".*"vm1"', f.read())
            return found[-1] if found else None

        def watches():
            """Whether it asks, and so sees a client that comes."""
            with Driver("vm1.sock"):
                end = time.monotonic() + 3
                while time.monotonic() < end:
                    if last_event() == "client_came":
                        return True
                    time.sleep(0.05)
            return False
        wait_until(watches, "the first event")
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            exchange(a, b)
            wait_until(lambda: last_event() == "client_came", "that it came")
            for end in v.restart, v.crash, v.restart:
                end()
                said = cap.stderr.readline()
                assert said == "vale-cap: valed has restarted\n", said
                size = os.path.getsize("cap.pcapng")
                exchange(a, b)
                wait_until(lambda: os.path.getsize("cap.pcapng") > size,
                           "frames after the restart")
        wait_until(lambda: last_event() == "client_went", "that it went")
        for p in events, rates:
            assert p.poll() is None, p.returncode
            p.kill()
            p.wait()
        cap.send_signal(signal.SIGINT)
        assert cap.wait(WAIT_S) == 0, cap.stderr.read()
        v.check_rest()
        # One that is no longer an administrator's cannot go on, and says so.
        if os.getuid() == 0:
            os.chmod(".", 0o777)
            cap = subprocess.Popen(
                [CAP, "-Z", "nobody", "-w", "his.pcapng", "vale0:vm1"],
                env=env, stderr=subprocess.PIPE, text=True)
            wait_until(lambda: os.path.exists("his.pcapng") and
                       os.path.getsize("his.pcapng") > 0, "the capture")
            v.restart()
            assert cap.wait(WAIT_S) == 77, cap.stderr.read()
            said = cap.stderr.read()
            assert said == ("vale-cap: vale0:vm1: valed has restarted, and "
                            "only administrators of valed may capture it: -Z "
                            "nobody\n"), said
        # Another one ends with valed.
        cap = subprocess.Popen([CAP, "-w", "other.pcapng", "vale0:vm1"],
                               env=env, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: os.path.exists("other.pcapng") and
                   os.path.getsize("other.pcapng") > 0, "the capture")
        v.begin()
    assert cap.wait(WAIT_S) == 69, cap.stderr.read()


def resident(pid):
    """KB of a process's memory, without that of the guests."""
    kb, guest = 0, False
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            if re.match("[0-9a-f]+-[0-9a-f]+ ", line):
                guest = "/memfd:guest" in line
            elif line.startswith("Pss:") and not guest:
                kb += int(line.split()[1])
    return kb


def idle():
    """An adapter whose guest does nothing takes few pages: none for buffers and
    for what batches use, also in memory that is kept; restarts leave none."""
    not_sanitized("has memory for each page")

    def taken(valed, n):
        """KB with so many adapters, first, and after each of the ends."""
        kb = []
        with valed(["vm%d" % i for i in range(n)]) as v, \
                contextlib.ExitStack() as stack:
            drivers = [stack.enter_context(Driver(p)) for p in v.paths]
            ends = [lambda: None]
            if valed is Supervised:
                ends += [v.restart, v.crash]
            for end in ends:
                end()
                for d in drivers:
                    d.get(STATUS)
                kb.append(resident(getattr(v, "serving", v.proc.pid)))
        return kb
    # Huge pages would be the kernel's choice; children inherit this.
    assert ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0
    for valed in Valed, Supervised:
        each = [(many - few) / 16 for few, many in zip(taken(valed, 4),
                                                       taken(valed, 20))]
        print("%s: %s KB" % (valed.__name__, each))
        assert each[0] <= 250 and max(each) <= 300, (valed, each)


def port_counters():
    counters = json.loads(told_to("-j", "-k", "vale0:vm1"))
    return counters.get("vale0:vm1", counters)


def counters():
    """The counters of an adapter's port continue after a restart."""
    with Supervised() as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            for n in range(1, 4):
                exchange(a, b)
                seen = port_counters()
                assert seen["tx_frames"] == seen["rx_frames"] == n, seen
                v.restart()
                now = port_counters()
                for name, value in seen.items():
                    assert now[name] >= value, (name, value, now)
            v.crash()
            assert port_counters()["tx_frames"] == 0
            exchange(a, b)
            assert port_counters()["tx_frames"] == 1
    # What is stored may be anybody's.
    m = Manager()
    for text, n in (("vale0:vm1\ttx_frames\t7\n", 7),
                    ("vale0:vm1\ttx_frames\t7", 7),
                    ("vale0:vm1\ttx_frames\t%d\n" % (1 << 63), 0),
                    ("vale0:vm1\ttx_frames\t7x\n\n\t\n\t\t\n", 0),
                    ("vale0:vm1\tother\t7\nvale0:other\ttx_frames\t7\n", 0),
                    ("\0", 0)):
        m.drop()
        m.add("counters", settings_file(text))
        v = m.start(ARGS)
        assert port_counters()["tx_frames"] == n, text
        m.stop(v)


if __name__ == "__main__":
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print("SEED=%d" % seed, flush=True)
    random.seed(seed)
    main({f.__name__: f for f in (
        crashes, restarts, without, went, clients, flood, blamed, managed,
        access, inherited, no_program, watchdog, settings, stored, told,
        endless, counting, link, programs, counters, saved, closed, waits,
        killed, late, ignored, numbers, quiet, upgrades, hangs, scarce,
        signals, moves, moving, interfaces, ending, posted, noted, alone,
        hanging, idle)})
