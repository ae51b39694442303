# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Rogue clients of the control socket and of an adapter, for as many seconds as
the first argument says, beside clients that must be served.

One valed has two guests that send to each other, a rogue guest, an adapter that
each reload replaces, and one that reloads add and remove.  Two processes of each of two users are rogue
clients of the control socket (rogue.py).  This process, root, is the
administrator, who changes settings and undoes what others have set.  Every few
seconds, while the rogues go on,

  - a frame goes each way between the two guests;
  - the administrator's requests are answered, and so is a program with a port;
  - the adapters that a reload replaces and adds serve a guest, and what it
    removes is gone; the name of what is replaced was not free meanwhile;
  - all rogues live: valed has answered all that they asked.

At the end they leave: then there is no port but the adapters', descriptors and
threads are as before them, and memory as when there had been some for a while.
"""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

from rogue import *

HERE = os.path.dirname(os.path.abspath(__file__))
CONF = "valed.conf"
UIDS = (70002, 70003)
# Processes of each user.
PROCESSES = 2
GUESTS = ("vm1", "vm2")
STAYING = GUESTS + ("vm3", "vm4")
# Seconds between two checks, and until a frame that was lost is sent again.
ROUND, AGAIN = 2, 1
# KB that memory may grow by: rings of ports that were not open at the first
# measurement, and buffers of libc and of the sanitizers.
SLACK = 64 * 1024


def conf(extra):
    """Write the configuration: vm4 is replaced by each reload, and vm5 comes
    and goes."""
    names = STAYING + ("vm5",) * extra
    with open(CONF + ".new", "w") as f:
        for i, name in enumerate(names, 1):
            f.write("pci.0.%d.0.device=e1000\npci.0.%d.0.backend=vale0:%s\n"
                    "pci.0.%d.0.path=%s.sock\n" % (i, i, name, i, name))
        f.write("pci.0.4.0.itr=%d\n" % (100 + extra))
    os.rename(CONF + ".new", CONF)


class Server(Valed):
    """valed with that file, and a manager's socket to hear of reloads."""

    def __init__(self):
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.settimeout(WAIT_S)
        self.manager.bind("notify")
        os.environ["NOTIFY_SOCKET"] = os.path.abspath("notify")
        conf(False)
        Valed.__init__(self, [], args=["-k", CONF, "-c", "control"])
        self.names = STAYING
        self.hear(b"READY=1\n")
        for name in STAYING:
            wait_until(lambda: self.connects(name + ".sock"), name)
        self.begin()
        # Of other users, too.
        os.chmod("control", 0o666)

    def hear(self, start):
        while not self.manager.recv(512).startswith(start):
            assert self.proc.poll() is None, self.messages()

    def reload(self, extra):
        conf(extra)
        self.proc.send_signal(signal.SIGHUP)
        self.hear(b"RELOADING=1\n")
        self.hear(b"READY=1\n")


class Soak:
    def __init__(self, valed, rng):
        self.valed, self.rng = valed, rng
        self.done = {"checks": 0, "frames": 0, "resent": 0, "reloads": 0,
                     "settings": 0, "requests": 0}
        self.guests = [Driver(n + ".sock") for n in GUESTS]
        self.number = 0
        self.extra = False
        self.rogues = []
        self.worst = 0.0

    def start(self, seed):
        def rogue(*args):
            self.rogues.append(subprocess.Popen(
                [sys.executable, HERE + "/rogue.py", *args],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        for i in range(PROCESSES):
            for uid in UIDS:
                rogue("control", str(uid), "%d-%d-%d" % (seed, uid, i))
        rogue("guest", "vm3", "%d-vm3" % seed)

    def lives(self):
        status = self.valed.proc.poll()
        assert status is None, "valed has ended: %d" % status
        for p in self.rogues:
            assert p.poll() is None, "a rogue was not served: %r" % p.args

    def stop(self):
        """End them, and add up what they did."""
        total = {}
        for p in self.rogues:
            out, _ = p.communicate("stop\n")
            assert p.returncode == 0, "a rogue has failed: %r" % p.args
            for k, v in json.loads(out).items():
                k = p.args[2] + "_" + k
                total[k] = total.get(k, 0) + v
        self.rogues = []
        return total

    def exchange(self, a, b):
        """A frame each way.  Others fill the rings, and may have set a limit:
        one that does not arrive is sent again."""
        for src, dst in (a, b), (b, a):
            self.number += 1
            frame = ethernet(dst.mac, src.mac, b"soak %d" % self.number)
            sent = 0.0

            def arrived():
                nonlocal sent
                if time.monotonic() - sent > AGAIN:
                    self.done["resent"] += sent != 0.0
                    self.undo()
                    sent = time.monotonic()
                    src.send(frame)
                got = dst.frame()
                while got is not None and got != frame:
                    got = dst.frame()
                return got is not None
            start = time.monotonic()
            wait_until(arrived, "a frame from %s to %s" % (src.mac, dst.mac))
            self.worst = max(self.worst, time.monotonic() - start)
            self.done["frames"] += 1

    def admin(self, kind, name="", body=b""):
        """What root asks for is done, if there is such a port."""
        r = self.control.call(kind, name, body)
        assert r is not None, "valed has closed root's connection"
        for fd in r[2]:
            os.close(fd)
        self.done["requests"] += 1
        return r[0], r[1]

    def set(self, name, kind, value):
        return self.admin("SET", name, struct.pack("=IIQ512s", kind, 0, value,
                                                   b""))[0]

    def change(self):
        """Settings and mirrors of any port."""
        rng = self.rng
        for _ in range(20):
            kind = rng.randrange(1, 8)
            name = "vale0" if kind in (1, 7) else \
                "vale0:" + rng.choice(("vm1", "vm2", "vm3", "p70002-1"))
            self.set(name, kind, rng.randrange(1, 3))
            self.admin("MIRROR", "vale0:vm3", struct.pack(
                "=I64s", rng.randrange(4), b"vale0:vm1"))
            self.done["settings"] += 2

    def undo(self):
        for kind, value in (1, 300), (7, 1024):
            assert self.set("vale0", kind, value) == 0
        for name in STAYING + ("vm5",) * self.extra:
            for kind, value in (2, 0), (3, 0), (5, 1), (6, 0):
                error = self.set("vale0:" + name, kind, value)
                assert error == 0, (name, kind, error)
            error, _ = self.admin("MIRROR", "vale0:" + name,
                                  struct.pack("=I64s", 0, b""))
            assert error == 0, (name, error)

    def program(self):
        """A port of root's own: it is opened, listed, and closed."""
        c = Control()
        r = c.register("vale0:root", slots=(64, 64))
        assert r is not None and r[0] == 0, r
        assert "vale0:root" in self.ports()
        c.close()
        wait_until(lambda: "vale0:root" not in self.ports(),
                   "the end of root's port")

    def ports(self):
        """The names of all ports."""
        names, first = [], 0
        while True:
            error, body = self.admin("PORTS", "", struct.pack("=II", first, 0))
            assert error == 0
            _, n = struct.unpack_from("=II", body)
            if n == 0:
                return names
            size = (len(body) - 8) // n
            names += [body[8 + i * size:72 + i * size].split(b"\0")[0].decode()
                      for i in range(n)]
            first += n

    def reload(self):
        """Replace vm4, add or remove vm5, and have guests served there."""
        self.extra = not self.extra
        self.valed.reload(self.extra)
        self.done["reloads"] += 1
        assert os.path.exists("vm5.sock") == self.extra
        for name in ("vm4", "vm5")[:1 + self.extra]:
            with Driver(name + ".sock") as g:
                self.exchange(g, self.guests[0])
            self.valed.idle(name)

    def check(self):
        self.lives()
        self.change()
        self.undo()
        self.exchange(*self.guests)
        self.program()
        self.reload()
        self.done["checks"] += 1

    def usage(self):
        """Descriptors, threads, mappings of ports' memory, KB."""
        pid = self.valed.proc.pid
        with open("/proc/%d/maps" % pid) as f:
            maps = sum("memfd:vale" in line for line in f)
        with open("/proc/%d/status" % pid) as f:
            rss = [int(line.split()[1]) for line in f
                   if line.startswith("RssAnon")][0]
        return (self.valed.descriptors(),
                len(os.listdir("/proc/%d/task" % pid)), maps, rss)

    def settled(self):
        """Without rogues: what is used when only the adapters' ports are
        left."""
        if self.extra:
            self.reload()
        self.undo()
        self.valed.idle("vm3")
        own = sorted("vale0:" + n for n in STAYING)
        wait_until(lambda: sorted(self.ports()) == own, "the rogues' end",
                   self.ports)
        # What was passed is closed by a thread that sockets make wait.
        wait_until(lambda: self.usage()[:3] == self.before,
                   "descriptors, threads and mappings as before, %s" %
                   (self.before,), self.usage)
        return self.usage()[3]

    def run(self, seconds, seed):
        """Rogues for a while, and then for the rest of the time."""
        end = time.monotonic() + seconds
        total = {}
        with contextlib.closing(Control()) as self.control:
            # It has been accepted.
            self.ports()
            self.before = self.usage()[:3]
            first = None
            while first is None or time.monotonic() < end:
                self.start(seed + (first is not None))
                until = time.monotonic() + max(ROUND, seconds / 4)
                if first is not None:
                    until = max(end, until)
                while time.monotonic() < until or self.done["checks"] < 2:
                    self.check()
                    time.sleep(ROUND / 2)
                for k, v in self.stop().items():
                    total[k] = total.get(k, 0) + v
                now = self.settled()
                first = first or now
        assert now <= first + SLACK, (first, now)
        for what in ("ports", "pipes", "scribbles", "holes", "descriptors"):
            assert total.get("control_" + what), (what, total)
        assert total["guest_holes"] and total["guest_resets"], total
        self.done.update(total, rss_kb="%d..%d" % (first, now),
                         worst_ms="%d" % (1000 * self.worst))


def main():
    seed = int(os.environ.get("SOAK_SEED", "1"))
    # As soak.py.
    os.environ["ASAN_OPTIONS"] = (os.environ.get("ASAN_OPTIONS", "") +
                                  ":quarantine_size_mb=1"
                                  ":detect_stack_use_after_return=0")
    # Other users connect from here.
    os.chmod(".", 0o755)
    with Server() as valed:
        soak = Soak(valed, random.Random(seed))
        try:
            soak.run(float(sys.argv[1]), seed)
        except Exception:
            # Perhaps because valed ends.
            with contextlib.suppress(subprocess.TimeoutExpired):
                valed.proc.wait(10)
            soak.lives()
            raise
        finally:
            for p in soak.rogues:
                p.kill()
        for g in soak.guests:
            g.close()
        valed.reload(False)
    print(" ".join("%s=%s" % kv for kv in soak.done.items()))


if __name__ == "__main__":
    main()
