# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Failing calls, for valed_failing_test.sh.

valed_failing (failing_calls.c) is a valed in which a chosen call fails.  A
first run without failures lists the call sites that the session below reaches.
Then valed runs once for each site, with one call from there failing: valed
either ends with one line on stderr, and leaves no socket behind, or goes on
and serves the next clients, with no descriptor, mapping or allocation more
than in the first run.  If an adapter cannot start, the other is served.
"""

import collections
import contextlib
import multiprocessing
import os
import signal
import subprocess

import ctl_client
import vfu_client
import wait_until as waits
from vfu_client import *
from vfu_client import main as run_case

LOG = "failing.log"
# A session in which a call fails may wait for what never happens.  One that is
# cut short on a busy machine is no error: another one follows.
FAILED_WAIT_S = 2
# A leak is one that shows each time.
LEAKS = 3
# Sessions at once: most of them wait.
WORKERS = 8
# What ends a session.
ENDS = (AssertionError, OSError, Gone, Refused, ctl_client.Refused,
        ctl_client.Left)
# If one of these fails at the end, a socket stays, for the next valed to
# replace.
REMOVAL = ("lstat", "unlink")


class Leak(AssertionError):
    """Allocations were left that a run without failures does not leave.  A
    thread may be about to free what it has closed: try again."""


class Failing(Valed):
    """valed_failing with two adapters; `site' is None or an offset."""

    whole = {}

    def __init__(self, site=None, call=1):
        self.tolerant = False       # in a session that the failure may end
        with contextlib.suppress(FileNotFoundError):
            os.unlink(LOG)
        os.environ["FAIL_LOG"] = LOG
        os.environ.pop("FAIL_SITE", None)
        if site is not None:
            os.environ["FAIL_SITE"] = site
            os.environ["FAIL_CALL"] = str(call)
        self.start()

    def start(self):
        Valed.__init__(self, ["vm1", "vm2"])

    def session(self):
        session(self)

    def holds(self):
        """Of all processes together: prctl(2) may fail, which names them."""
        found = collections.Counter()
        for (_, kind), n in Valed.holds(self).items():
            found[kind] += n
        return found

    def begin(self):
        """At rest it is to have what the first one has, for which no call
        fails."""
        Valed.begin(self)
        self.held = self.whole.setdefault(type(self), self.held)

    def connects(self, path):
        """Also true if valed ended, or has done without an adapter."""
        try:
            return Valed.connects(self, path) or self.without() is not None
        except AssertionError:
            return True

    def without(self):
        """The path of the adapter that could not be started, or None."""
        text = self.messages()
        if not self.failed() or text.count("\n") != 1:
            return None
        gone = [p for p in self.paths if not Valed.connects(self, p)]
        return gone[0] if len(gone) == 1 else None

    def failed(self):
        """Whether the call failed that was to fail."""
        return os.path.exists(LOG) and any(
            line[0] == "failed" for line in self.log())

    def log(self):
        with open(LOG) as f:
            return [line.split() for line in f]


class Reloading(Failing):
    """The same with a file, and a third adapter that comes and goes."""

    ARGS = []
    CONF = "valed.conf"

    def start(self):
        self.write(["vm1", "vm2"])
        Valed.__init__(self, [], args=["-k", self.CONF] + self.ARGS)
        self.names = ["vm1", "vm2"]
        self.paths = [n + ".sock" for n in self.names]
        for path in self.paths:
            wait_until(lambda: self.connects(path), "a server at " + path)
        self.begin()

    def write(self, names):
        with open(self.CONF + ".new", "w") as f:
            for slot, name in enumerate(names, 1):
                for v in ("device=e1000", "backend=vale0:" + name,
                          "path=%s.sock" % name):
                    f.write("pci.0.%d.0.%s\n" % (slot, v))
        os.rename(self.CONF + ".new", self.CONF)

    def reload(self, names, done):
        before = self.messages()
        self.write(names)
        self.proc.send_signal(signal.SIGHUP)
        wait_until(lambda: done() or self.refused(before), "the reload",
                   self.messages)
        assert done(), self.messages()

    def refused(self, before):
        """Whether the failure ends the reload: valed has said so."""
        return self.tolerant and self.failed() and self.messages() != before

    def session(self):
        with Driver("vm1.sock") as a:
            self.reload(self.names + ["vm3"],
                        lambda: Valed.connects(self, "vm3.sock"))
            with Driver("vm3.sock") as c:
                exchange(a, c)
                self.reload(self.names, lambda: not os.path.lexists("vm3.sock"))
                with contextlib.suppress(Gone):
                    c.read(1)
            with Driver("vm2.sock") as b:
                exchange(a, b)


class Controlled(Reloading):
    """The same with a control socket, whose clients have ports, change settings
    and ask for the reloads."""

    ARGS = ["-c", "control"]

    def reload(self, names, done):
        self.write(names)
        with ctl_client.Control() as c:
            _, why, _ = c.call("RELOAD")
        assert not why, why
        assert done(), self.messages()

    def passes(self):
        """Whether clients may have ports: not without the passer."""
        return "passes descriptors has ended" not in self.messages()

    def session(self):
        with ctl_client.Control() as c:
            c.set_limit("vale0:vm1", 7)
            assert set(c.ports()) >= {"vale0:vm1", "vale0:vm2"}
            assert set(c.devices()) == {"vale0:vm1", "vale0:vm2"}
            c.addrs("vale0")
            c.call("PORT_SETTINGS", "vale0:vm1")
            c.call("SWITCH_SETTINGS", "vale0")
        if self.passes():
            with ctl_client.Control() as a, ctl_client.Control() as b:
                wait_until(lambda: "vale0:a" not in a.ports(),
                           "the end of the former port")
                pa = a.register("vale0:a")
                pb = b.register("vale0:a", flags=ctl_client.MONITOR_TX)
                pa.send(b"\xff" * 6 + bytes(54))
                assert pb.frames(1)
                a.mirror("vale0:vm2", "vale0:a")
                pa.close()
                pb.close()
        self.reload(self.names + ["vm3"],
                    lambda: Valed.connects(self, "vm3.sock"))
        self.reload(self.names, lambda: not os.path.lexists("vm3.sock"))


def session(valed):
    """Do everything that valed serves, once or more."""
    valed.counters("vm1")
    with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
        fd = eventfd()
        b.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(fd,))
        b.set(ITR, 0xffff)
        b.set(IMS, ICR_RXT0)
        exchange(a, b)
        wait_event(fd)
        b.get(ICR)
        # The second one is moderated: the timer is armed.
        exchange(a, b)
        wait_event(fd)
        a.set(CSBAL, a.gpa)
        a.set(TCTL, 0)
        a.dma_unmap(a.gpa, a.SIZE)
        a.dma_map(a.gpa, a.SIZE, a.fd)
        a.call(RESET)
        a.start()
        exchange(a, b)
        with contextlib.suppress(Refused):
            a.dma_map(0, 0)
        # Invalid framing: a line in the log, and the end of the connection.
        a.raw(b"\xff" * 16)
        with contextlib.suppress(Gone):
            a.read(1)
            raise AssertionError("the connection was not closed")
    valed.idle("vm1")
    valed.idle("vm2")


def tolerant(valed):
    """A session that a failing call may end."""
    long = waits.WAIT_S
    waits.WAIT_S = vfu_client.WAIT_S = ctl_client.WAIT_S = FAILED_WAIT_S
    valed.tolerant = True
    try:
        valed.session()
    except ENDS:
        # If it was ended by the failure, it may still be about to end.
        with contextlib.suppress(subprocess.TimeoutExpired):
            valed.proc.wait(0.2 if valed.failed() else 0)
    finally:
        valed.tolerant = False
        waits.WAIT_S = vfu_client.WAIT_S = ctl_client.WAIT_S = long


def end(valed):
    """End valed, and return how many allocations it did not free."""
    valed.idle("vm1")
    valed.idle("vm2")
    valed.__exit__(None)
    live = [int(line[1]) for line in valed.log() if line[0] == "live"]
    # Guards end first: one, and one more for each reload.
    assert len(live) >= 2, live
    return live[-1]


def sites(kind, sessions=2):
    """The call sites, and what a run without failures leaves."""
    valed = kind()
    for _ in range(sessions):
        valed.session()
    have = valed.resources("vm1", "vm2")
    live = end(valed)
    return [tuple(line) for line in valed.log() if line[0] != "live"], \
        have, live


def fails(kind, name, offset, call, have, live):
    """Let one call fail.  Returns whether it happened, and what came of it."""
    valed = kind(offset, call)
    try:
        return outcome(valed, name, call, have, live)
    except Leak:
        raise
    except Exception as e:
        # A process left over would keep the sockets.
        valed.proc.kill()
        valed.proc.wait()
        for path in valed.paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        raise AssertionError("%s %s: %s: %s" % (
            name, offset, e, valed.messages())) from e


def outcome(valed, name, call, have, live):
    """See fails()."""
    for _ in range(call):
        if valed.proc.poll() is None:
            tolerant(valed)
    if valed.proc.poll() is not None:
        status = valed.proc.wait()
        text = valed.messages()
        assert status > 0, "exit status %d" % status
        # What is made once for all adapters keeps each from starting.
        lines = text.splitlines()
        assert len(lines) == 1 or (len(lines) == len(valed.paths) and all(
            ": event descriptors: " in line for line in lines)), "not one line"
        for path in valed.paths:
            assert not os.path.lexists(path), path + " was left behind"
        return "ended"
    gone = valed.without()
    if gone is not None:
        wait_until(lambda: not os.path.lexists(gone), "removal of " + gone)
        for path in valed.paths:
            if path != gone:
                Driver(path).close()
        Valed.begin(valed)
        valed.__exit__(None)
        return "without one"
    before = valed.failed()
    try:
        valed.session()
    except ENDS:
        # Where threads differ in speed, the call may be made only now.
        if before or not valed.failed():
            raise
        valed.session()
    # A reload ends for its client before what it opened is closed.
    wait_until(lambda: valed.resources("vm1", "vm2") == have,
               "descriptors and mappings: %s" % (have,),
               lambda: valed.resources("vm1", "vm2"))
    try:
        now = end(valed)
    except AssertionError:
        if name not in REMOVAL or not valed.failed():
            raise
        return "went on"
    # A reload allocates in processes that end.
    if not isinstance(valed, Reloading) and now > live:
        raise Leak((now, live))
    return "went on" if valed.failed() else "not reached"


def directory():
    """Each worker has sockets and files of its own."""
    name = "worker%d" % os.getpid()
    os.mkdir(name)
    os.chdir(name)


def tried(*args):
    """See fails().  What goes wrong is a result, too."""
    for _ in range(LEAKS):
        try:
            return fails(*args)
        except Leak as e:
            result = "wrong: %s allocations, not %s" % e.args[0]
        except AssertionError as e:
            return "wrong: %s" % e
    return result


def each(kind, calls, skip=()):
    """Let a call of each site fail: the one that calls(name, offset) says."""
    found, have, live = sites(kind)
    found = [site for site in found if site not in skip]
    with multiprocessing.get_context("fork").Pool(WORKERS, directory) as pool:
        came = pool.starmap(tried, [(kind, *site, calls(*site), have, live)
                                    for site in found], 1)
    results = {}
    for (name, offset), result in zip(found, came):
        print(name, offset, result)
        results.setdefault(result.split(":")[0], []).append(name)
    for result, names in sorted(results.items()):
        print("%s: %d of %d" % (result, len(names), len(found)))
    assert "wrong" not in results, results["wrong"]
    return results


def first():
    results = each(Failing, lambda *site: 1)
    # A few calls depend on which thread is faster.
    assert len(results.get("not reached", ())) < 10, results["not reached"]
    for result in "ended", "went on":
        assert len(results[result]) >= 20, result


def second():
    results = each(Failing, lambda *site: 2)
    assert len(results["went on"]) >= 20


def reload():
    # What starts an adapter is called for the third one last.  What serves its
    # clients does not know whether it was there from the start.
    start = sites(Failing, sessions=0)[0]
    serve = set(sites(Failing)[0]) - set(start)
    results = each(Reloading, lambda *site: 3 if site in start else 1, serve)
    assert len(results["went on"]) >= 30


def control():
    known = set(sites(Reloading)[0])
    results = each(Controlled, lambda *site: 1, known)
    assert len(results["went on"]) >= 30


if __name__ == "__main__":
    run_case({"first": first, "second": second, "reload": reload,
              "control": control})
