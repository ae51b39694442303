# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""valed as a service manager starts it, for valed_activation_test.sh."""

import array
import contextlib
import os
import signal
import socket
import struct
import subprocess

from ctl_client import Control
from vfu_client import *

VALED = os.environ["VALED"]
EX_USAGE = 64


class Service(Daemon):
    """A valed with these arguments, and descriptors from 3 on."""

    def __init__(self, args, fds=(), pid="$$", stderr=None, **env):
        if fds:
            env["LISTEN_FDS"] = str(len(fds))
        # The shell's process becomes valed's.
        script = "LISTEN_PID=%s WATCHDOG_PID=$$ exec \"$@\"" % pid

        def place():
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in fds]
            for at, fd in enumerate(high, 3):
                os.dup2(fd, at, inheritable=True)
                os.close(fd)
        self.err = stderr or open("valed.err", "w+")
        self.proc = subprocess.Popen(
            ["sh", "-c", script, "sh", VALED] + args,
            stdin=subprocess.DEVNULL, stderr=self.err,
            preexec_fn=place, close_fds=False, env=dict(os.environ, **env))
        atexit.register(self.proc.kill)

    def end(self):
        self.check_idle()
        self.proc.terminate()
        assert self.proc.wait(WAIT_S) == 0, self.messages()

    def refused(self, status, text):
        assert self.proc.wait(WAIT_S) == status
        messages = self.messages()
        assert text in messages and messages.count("\n") == 1, messages

    def messages(self):
        with open("valed.err") as f:
            return f.read()


def listener(path, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path)
    if kind == socket.SOCK_STREAM:
        s.listen()
    return s


def manager(address="notify"):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(address)
    s.settimeout(WAIT_S)
    return s


def named():
    a, b = listener("vm1.sock"), listener("vm2.sock")
    v = Service(["-s", "1,e1000,vale0:x,fd=two", "-s",
                 "2,e1000,vale0:y,fd=one"], [a, b], LISTEN_FDNAMES="one:two",
                NOTIFY_SOCKET="notify")
    v.refused(EX_USAGE, "NOTIFY_SOCKET=notify")
    v = Service(["-s", "1,e1000,vale0:x,fd=one"], [a], pid="1",
                LISTEN_FDNAMES="one")
    v.refused(EX_USAGE, "fd=one: no such name in LISTEN_FDNAMES")
    m = manager()
    v = Service(["-s", "1,e1000,vale0:x,fd=two", "-s",
                 "2,e1000,vale0:y,fd=one,mac=02:00:00:00:00:01"], [a, b],
                LISTEN_FDNAMES="one:two",
                NOTIFY_SOCKET=os.path.abspath("notify"))
    assert m.recv(512).startswith(b"READY=1\n")
    with Driver("vm1.sock") as y, Driver("vm2.sock") as x:
        exchange(x, y)
        # vm1.sock is the one of "one".
        assert y.get(RAL0) == 2 and y.get(RAH0) & 0xffff == 0x100
    v.end()
    assert os.path.exists("vm1.sock") and os.path.exists("vm2.sock")


def number():
    a = listener("vm1.sock")
    v = Service(["-s", "1,e1000,vale0:x,fd=3"], [a])
    for _ in range(3):
        with Driver("vm1.sock") as d:
            d.get(STATUS)
    assert not os.path.exists("vm1.sock.lock")
    v.end()
    assert os.path.exists("vm1.sock")
    # The next valed takes the same socket.
    v = Service(["-k", "/dev/null", "-o", "pci.0.1.0.device=e1000", "-o",
                 "pci.0.1.0.backend=vale0:x", "-o", "pci.0.1.0.fd=3"], [a])
    with Driver("vm1.sock") as d:
        d.get(STATUS)
    v.proc.kill()
    v.proc.wait()
    assert os.path.exists("vm1.sock")


def credentials():
    """What PassCredentials= and PassSecurity= of a unit set, and pidfds."""
    a, b = listener("vm1.sock"), listener("vm2.sock")
    for option in (16, 34, 76):     # SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD
        with contextlib.suppress(OSError):
            a.setsockopt(socket.SOL_SOCKET, option, 1)
    v = Service(["-s", "1,e1000,vale0:x,fd=3", "-s", "2,e1000,vale0:y,fd=4"],
                [a, b])

    def descriptors():
        return sorted(descriptor_links(v.proc.pid).items())
    with Driver("vm1.sock") as x, Driver("vm2.sock") as y:
        exchange(x, y)
        before = descriptors()
        for fds in range(3):
            # Root's client says that its number is that of a descriptor.
            for fd, _ in before if os.getuid() == 0 else ():
                x.sock.sendmsg(
                    [x.message(FEATURE, flags=F_NO_REPLY)],
                    [(socket.SOL_SOCKET, 2,    # SCM_CREDENTIALS
                      struct.pack("=iII", os.getpid(), fd, fd))] +
                    [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                      array.array("i", [x.fd] * fds))] * (fds > 0))
        x.get(STATUS)
        assert descriptors() == before, (before, descriptors())
        exchange(x, y)
    v.end()


def control_fd():
    """-c fd= takes a socket of its type, also after a reload."""
    def seqpacket():
        s = listener("control", socket.SOCK_SEQPACKET)
        s.listen()
        return s
    a = seqpacket()
    m = manager()
    for _ in range(2):
        v = Service(["-c", "fd=ctl,admin=1", "-s",
                     "1,e1000,vale0:x,path=vm2.sock"], [a],
                    LISTEN_FDNAMES="ctl",
                    NOTIFY_SOCKET=os.path.abspath("notify"))
        assert m.recv(512).startswith(b"READY=1\n")
        with Control() as c:
            assert list(c.ports()) == ["vale0:x"]
        v.proc.send_signal(signal.SIGHUP)
        assert m.recv(512).startswith(b"RELOADING=1")
        assert m.recv(512).startswith(b"READY=1\n")
        with Control() as c:
            assert list(c.ports()) == ["vale0:x"]
        v.end()
        assert m.recv(512) == b"STOPPING=1"
        assert os.path.exists("control"), "valed removed it"
        assert v.messages() == "", v.messages()


ARGS = ["-s", "1,e1000,vale0:x,path=vm1.sock"]


def notify():
    m = manager()
    v = Service(ARGS, NOTIFY_SOCKET=os.path.abspath("notify"))
    assert m.recv(512) == b"READY=1\nSTATUS=Serving 1 adapter."
    # It is.
    with Driver("vm1.sock") as d:
        d.get(STATUS)
    v.proc.terminate()
    assert m.recv(512) == b"STOPPING=1"
    assert v.proc.wait(WAIT_S) == 0
    # A manager that reads nothing holds up nothing.
    v = Service(ARGS, NOTIFY_SOCKET=os.path.abspath("notify"),
                WATCHDOG_USEC="2000000")
    m.recv(512)
    m.close()
    with Driver("vm1.sock") as d:
        d.get(STATUS)
    v.end()


def watchdog():
    m = manager()
    path = os.path.abspath("notify")
    v = Service(ARGS, NOTIFY_SOCKET=path, WATCHDOG_USEC="2000000")
    m.recv(512)
    for _ in range(3):
        assert m.recv(512) == b"WATCHDOG=1"
    v.end()
    # Without WATCHDOG_USEC none is sent.
    while m.recv(512) != b"STOPPING=1":
        pass
    v = Service(ARGS + ["-v"], NOTIFY_SOCKET=path)
    assert m.recv(512).startswith(b"READY=1\n")
    m.settimeout(2.5)
    with contextlib.suppress(TimeoutError):
        raise AssertionError(m.recv(512))
    m.settimeout(WAIT_S)
    v.end()


def journal():
    # As the journal's stream, except that the other end is ours.
    ours, theirs = socket.socketpair()
    ours.settimeout(WAIT_S)
    st = os.fstat(theirs.fileno())
    stream = "%d:%d" % (st.st_dev, st.st_ino)
    v = Service(ARGS, stderr=theirs, JOURNAL_STREAM=stream)
    wait_until(lambda: os.path.exists("vm1.sock") and
               not os.path.exists("vm1.sock.lock"), "valed")
    lines = ours.makefile()
    with Client("vm1.sock") as a:
        Client("vm1.sock", negotiate=False)
        assert lines.readline() == "<5>valed: x: second client refused\n"
        a.raw(b"\xff" * 16)
        assert lines.readline().startswith("<4>valed: x: client dropped: ")
    # An error at the start.
    w = Service(ARGS, stderr=theirs, JOURNAL_STREAM=stream)
    assert w.proc.wait(WAIT_S) != 0
    line = lines.readline()
    assert line == ("<3>valed: -s 1,e1000,vale0:x,path=vm1.sock: "
                    "path=vm1.sock: socket in use\n"), line
    v.end()
    # Another stream than stderr's.
    v = Service(["-x"], JOURNAL_STREAM=stream)
    v.refused(EX_USAGE, "unknown option -x")
    assert v.messages().startswith("valed: "), v.messages()


if __name__ == "__main__":
    main({f.__name__: f for f in (named, number, credentials, control_fd,
                                  notify, watchdog, journal)})
