# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Connections that valed refuses, or that take all of its descriptors, for
valed_crowd_test.sh."""

import contextlib
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys

from ctl_client import REGISTER, Control, Left, user
from hostile import closed, lingering
from vfu_client import *
from vfu_client import main as run_case


@contextlib.contextmanager
def stopped(valed):
    """valed does nothing meanwhile."""
    valed.stop()
    try:
        yield
    finally:
        valed.proc.send_signal(signal.SIGCONT)


def refused_blocks():
    """Such descriptors come with what valed does not read: of a client that is
    refused, and of a program that has left before its reply."""
    with socket.create_server(("127.0.0.1", 0)) as listener, \
            Valed(["vm1"], args=["-c", "control"]) as v, \
            Driver("vm1.sock") as a:
        port = listener.getsockname()[1]
        admin = Control()
        admin.served()
        before = v.descriptors()
        sent = [lingering(port) for _ in range(2)]
        with stopped(v):
            with Client("vm1.sock", negotiate=False) as b:
                b.raw(b"x", [sent[0].fileno()])
            sent[0].close()
            c = Control()
            c.send()
            c.send(fds=[sent[1].fileno()])
            c.close()
            sent[1].close()
        a.get(STATUS)
        admin.served()
        with contextlib.closing(Control()) as other:
            other.served()
        wait_until(lambda: v.descriptors() == before, "the end of both",
                   v.descriptors)
        # Administrators' programs end, and the descriptors that they had.
        admin.close()


def crowd():
    """A process of another user: connects until it is refused, tells how often
    it was not, and waits to be killed."""
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    held = [Control()]
    while held[-1].served():
        held.append(Control())
    # As often as it likes, also many at once.
    assert not any(Control().served() for _ in range(20))
    many = [Control() for _ in range(200)]
    assert not any(c.served() for c in many)
    print(len(held) - 1, flush=True)
    signal.pause()


def no_descriptors():
    """A program's connections take all descriptors that valed may have."""
    if os.getuid() != 0:
        raise Skip("needs another user: root can be one")
    os.umask(0)
    os.chmod(".", 0o755)
    with Valed(["vm1", "vm2", "vm3"], args=["-c", "control"]) as v, \
            Driver("vm2.sock") as b, Driver("vm3.sock") as c:
        v.idle("vm1")
        pid = v.proc.pid

        def events():
            """Count its eventfds: the reserve is copies of one."""
            return list(descriptor_links(pid).values()).count(
                "anon_inode:[eventfd]")
        whole = events()
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        last = max(map(int, os.listdir("/proc/%d/fd" % pid)))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (last + 6, limits[1]))
        before = v.counters("vm1")
        p = subprocess.Popen([sys.executable, "-c",
                              "import crowd; crowd.crowd()"],
                             stdout=subprocess.PIPE)
        try:
            assert int(p.stdout.readline()) >= 5
            # Clients are refused, administrators served, others untroubled.
            # A client sees its end before its descriptor is the reserve's.
            for _ in range(20):
                wait_until(lambda: events() == whole, "the reserve", events)
                with Client("vm1.sock", negotiate=False) as a:
                    closed(a)
            admins = [Control() for _ in range(5)]
            assert all(admin.served() for admin in admins)
            for admin in admins:
                admin.close()
            exchange(b, c)
            after = v.counters("vm1")
            assert after["refused"] - before["refused"] == 20, after
            assert after["accept_waits"] == 0, after
            # Nor is there a reserve.  The client waits, and valed looks for it
            # from time to time.
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
            with Client("vm1.sock", negotiate=False) as a:
                wait_until(lambda: v.counters("vm1")["accept_waits"] >= 2,
                           "two looks")
                exchange(b, c)
                assert v.counters("vm1")["refused"] == after["refused"]
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
                a.negotiate()
        finally:
            p.kill()
            p.wait()
            p.stdout.close()
        with Driver("vm1.sock") as a:
            exchange(a, b)
        assert Control().served()


def ask(control, name="vale0:x"):
    """Ask for a port with 16 rings: 34 descriptors."""
    control.send("REGISTER", name, struct.pack(
        REGISTER, 0, 0, 64, 64, 16, 16, *[0] * 4, 1, 0, 0))
    return control


def unread():
    """Descriptors that a program has not received are bounded, also those of
    connections that valed has closed: all of valed's user have one limit."""
    if os.getuid() != 0:
        raise Skip("needs another user: root can be one")
    os.umask(0)
    os.chmod(".", 0o755)
    # valed raises its limit to the hard one.
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512))
    with Valed(["vm1"], args=["-c", "control"]) as v:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))
        with contextlib.closing(Control()) as admin:
            admin.served()
            before = v.descriptors()
        with user(1001):
            a = ask(Control())
            more(a)
            # One user has an eighth of 512 at most.
            with contextlib.closing(ask(Control())) as b:
                refused(b.reply)
        # All users have a quarter; administrators have what they like.
        others = []
        for uid in 1002, 1003:
            with user(uid):
                others.append(ask(Control(), "vale0:%d" % uid))
            assert select.select([others[-1].sock], [], [], WAIT_S)[0]
        with user(1004), contextlib.closing(ask(Control(), "vale0:y")) as c:
            refused(c.reply)
        with contextlib.closing(ask(Control(), "vale0:z")) as c:
            # But for a second answer before they receive the first.
            more(c)
            assert len(received(c)) == 34
            refused(c.reply)
        for c in others:
            assert len(received(c)) == 34
            c.close()
        for uid in 1002, 0:
            with user(uid), contextlib.closing(ask(Control())) as c:
                assert len(received(c)) == 34
        assert len(received(a)) == 34
        refused(a.reply)
        a.close()
        with user(1001), contextlib.closing(ask(Control())) as b:
            assert len(received(b)) == 34
        with contextlib.closing(Control()) as admin:
            wait_until(lambda: admin.served() and v.descriptors() == before,
                       "the end of all", v.descriptors)


def more(control):
    """Ask for more before the answer is received: valed closes the connection;
    what it has sent can still be received."""
    control.send("SHARE", "", b"")
    hang = select.poll()
    hang.register(control.sock, select.POLLRDHUP)
    assert hang.poll(WAIT_S * 1000), "it is served"


def received(control):
    """The descriptors of the next answer, which are closed."""
    error, why, _, _, fds = control.reply()
    assert error == 0, why
    for fd in fds:
        os.close(fd)
    return fds


def refused(fn):
    try:
        fn()
    except Left:
        return
    raise AssertionError("it is served")


def deaf():
    """A program that asks and reads no reply is dropped, and its port with it;
    others are served."""
    with Valed(["vm1"], args=["-c", "control"]):
        with contextlib.closing(Control()) as other, \
                contextlib.closing(Control()) as c:
            c.register("vale0:a")
            with contextlib.suppress(Left):
                while True:
                    c.send("PORTS")
            wait_until(lambda: list(other.ports()) == ["vale0:vm1"],
                       "the end of its port")
        # The next connection ends what was left unread.
        with contextlib.closing(Control()) as other:
            assert other.served()


def passer(valed):
    """The process that passes descriptors."""
    found, = (p for p in children(valed.proc.pid) if comm(p) == "valed-pass")
    return found


def no_passer():
    """The process that passes descriptors has ended: no port can be opened,
    which a program sees at once, and all else goes on."""
    with Valed(["vm1", "vm2"], args=["-c", "control"]) as v, \
            Driver("vm1.sock") as a, Driver("vm2.sock") as b, \
            contextlib.closing(Control()) as old, \
            contextlib.closing(Control()) as other:
        old.register("vale0:old")
        # valed knows that the reply was sent.
        assert old.served()
        pid = passer(v)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: ended(pid), "the end of the process")
        for _ in range(2):
            with contextlib.closing(Control()) as c:
                try:
                    raise AssertionError(c.register("vale0:p"))
                except Left:
                    pass
        exchange(a, b)
        assert other.served() and old.served()
        assert v.messages().count("until valed is restarted") == 1, \
            v.messages()
        for what in [what for what in v.held if what[0] == "valed-pass"]:
            del v.held[what]


if __name__ == "__main__":
    run_case({f.__name__: f for f in (refused_blocks, no_descriptors, unread,
                                      deaf, no_passer)})
