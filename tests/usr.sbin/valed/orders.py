# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""What administrators, programs and guests do of a valed -R, in random order,
for valed_orders_test.sh, beside a model of what then arrives where.

SEED repeats an order, STEPS is its length; with SECONDS it goes on so long."""

import contextlib
import errno
import os
import random
import struct
import subprocess
import threading
import time

import ctl_client
from captures import Capture
from ctl_client import Control, Left
from restart import Supervised
from vfu_client import *

VALECTL = os.environ["VALECTL"]
CONF = "valed.conf"
ADAPTERS = "a", "b", "c"
OTHER = b"\2other"
DEFAULTS = {"vlan": "0", "source": "any", "link": "up"}
# Sets of settings of a port that a program opens and closes meanwhile.
OPENED = ({}, {"vlan": "1"}, {"trunk": "1,2", "native": "1", "ip": "10.0.0.1"})


def text(mac):
    return ":".join("%02x" % byte for byte in mac)


class Model:
    """The settings of each port, those of the file, and what has come."""

    def __init__(self, macs):
        self.macs = macs
        self.file = {name: {} for name in macs}
        self.now = {name: dict(DEFAULTS) for name in macs}
        self.opened = {}

    def choose(self, name):
        """Other settings."""
        one = {}
        if random.random() < 0.6:
            one["vlan"] = random.choice("12")
        if random.random() < 0.3:
            one["source"] = text(random.choice((self.macs[name], OTHER)))
        if random.random() < 0.15:
            one["link"] = "down"
        return one

    def read(self, name, new):
        """A reload sets what has changed in the file, and nothing else."""
        old = self.file[name]
        for setting, default in DEFAULTS.items():
            if old.get(setting) != new.get(setting):
                self.now[name][setting] = new.get(setting, default)
        self.file[name] = new

    def arrives(self, src, frame, dst):
        """What a broadcast frame is there, or None.  A port that is in no VLAN
        gets frames of each, with its tag."""
        a, b = self.now[src], self.now[dst]
        if src == dst or "down" in (a["link"], b["link"]) or \
                a["source"] not in ("any", text(frame[6:12])):
            return None
        if a["vlan"] == b["vlan"]:
            return frame
        if b["vlan"] != "0":
            return None
        return frame[:12] + struct.pack(">HH", 0x8100, int(a["vlan"])) + \
            frame[12:]

    def write(self):
        """The file."""
        with open(CONF + ".new", "w") as f:
            for slot, name in enumerate(ADAPTERS, 1):
                lines = {"device": "e1000", "backend": "vale0:" + name,
                         "path": name + ".sock", **self.file[name]}
                for variable, value in lines.items():
                    f.write("pci.0.%d.0.%s=%s\n" % (slot, variable, value))
            for name, lines in ("p", self.file["p"]), ("q", self.opened):
                for variable, value in lines.items():
                    f.write("port.vale0:%s.%s=%s\n" % (name, variable, value))
        os.rename(CONF + ".new", CONF)


class Program:
    """A port of a program, which the model calls p."""

    mac = b"\2p    "

    def __init__(self):
        self.port = Control().register("vale0:p")
        self.seen = 0

    def send(self, frame):
        self.port.send(frame)

    def receive(self):
        self.seen += 1
        return self.port.frames(self.seen)[self.seen - 1]

    def close(self):
        self.port.close()
        with Control() as c:
            wait_until(lambda: "vale0:p" not in c.ports(), "the port's end")


class Opener(threading.Thread):
    """Opens and closes vale0:q all the time.  It is refused for no settings."""

    def __init__(self):
        threading.Thread.__init__(self)
        self.ends = False
        self.opens = 0
        self.refused = []

    def run(self):
        while not self.ends:
            try:
                Control().register("vale0:q").close()
                self.opens += 1
            except ctl_client.Refused as e:
                # It may not have gone yet, and descriptors may be unread.
                if e.errno not in (errno.EBUSY, errno.EPIPE, errno.EMFILE):
                    self.refused.append((e.errno, e.why))
            except (OSError, Left):
                time.sleep(0.01)


class Run:
    def __init__(self, v, drivers):
        self.v = v
        self.ports = dict(drivers)
        self.model = Model({**{n: d.mac for n, d in drivers.items()},
                            "p": Program.mac})
        self.sent = 0
        self.captures, self.number = [], 0
        self.waits = None           # the frame that is waited for

    def send(self):
        """From an address of its own, or another."""
        src = random.choice(list(self.ports))
        if self.model.now[src]["link"] == "down":
            return
        mac = random.choice((self.ports[src].mac, OTHER))
        self.sent += 1
        frame = ethernet(b"\xff" * 6, mac, b"%d" % self.sent)
        self.ports[src].send(frame)
        self.saw(src, "out", frame)
        for dst in self.ports:
            want = self.model.arrives(src, frame, dst)
            if want is not None:
                self.waits = src, dst, want
                self.saw(dst, "in", want)
                got = self.ports[dst].receive()
                assert got == want, (src, dst, got, want, self.model.now)

    def saw(self, *what):
        for capture in self.captures:
            capture.saw(*what)

    def capture(self):
        """Start one, of some ports that are there, or end one."""
        if random.random() < len(self.captures) / 4:
            self.captures.pop(random.randrange(len(self.captures))).end()
        else:
            names = random.sample(list(self.ports), random.randint(1, 3))
            self.number += 1
            self.captures.append(Capture(self.number, names))

    def linked(self):
        """Wait until guests see their links; before, frames are not theirs."""
        for name in ADAPTERS:
            up = self.model.now[name]["link"] == "up"
            wait_until(lambda: bool(self.ports[name].get(STATUS) & 2) == up,
                       "the link of " + name)

    def set(self):
        """An administrator changes one setting."""
        name = random.choice(ADAPTERS)
        new = {**DEFAULTS, **self.model.choose(name)}
        setting = random.choice(list(DEFAULTS))
        subprocess.run([VALECTL, "-c", "control", "-o", "vale0:" + name,
                        "%s=%s" % (setting, new[setting])], check=True)
        self.model.now[name][setting] = new[setting]
        self.linked()

    def reload(self):
        for name in random.sample(list(self.model.file), 2):
            self.model.read(name, self.model.choose(name))
        self.model.opened = random.choice(OPENED)
        self.model.write()
        subprocess.run([VALECTL, "-c", "control", "reload"], check=True)
        self.linked()

    def toggle(self):
        """The program opens its port, or closes it."""
        if "p" in self.ports:
            self.ports.pop("p").close()
        else:
            self.ports["p"] = Program()

    def restart(self, how=Supervised.restart):
        """No program's port is there afterwards, for one to capture it."""
        self.without_program()
        for capture in self.captures:
            capture.written()
        how(self.v)
        for capture in self.captures:
            capture.restarted()

    def crash(self):
        self.restart(Supervised.crash)

    def without_program(self):
        for capture in [c for c in self.captures if "vale0:p" in c.want]:
            self.captures.remove(capture)
            capture.end()
        if "p" in self.ports:
            self.ports.pop("p").close()

    def restore(self):
        """Have the settings of the start."""
        self.model.file = dict.fromkeys(self.model.file, {})
        self.model.opened = {}
        self.model.write()
        subprocess.run([VALECTL, "-c", "control", "reload"], check=True)
        for name in ADAPTERS:
            subprocess.run([VALECTL, "-c", "control", "-o", "vale0:" + name,
                            *map("=".join, DEFAULTS.items())], check=True)

    def nothing_more(self):
        """No port has a frame that the model does not know."""
        for driver in self.ports.values():
            if isinstance(driver, Driver):
                driver.settle()
                assert driver.frame() is None
            else:
                assert len(driver.port.frames(0)) == driver.seen


def orders():
    steps = int(os.environ.get("STEPS", 300))
    end = time.monotonic() + float(os.environ.get("SECONDS", 0))
    with open(CONF, "w") as f:
        for slot, name in enumerate(ADAPTERS, 1):
            f.write("".join("pci.0.%d.0.%s\n" % (slot, line) for line in (
                "device=e1000", "backend=vale0:" + name,
                "path=%s.sock" % name)))
    with contextlib.ExitStack() as stack:
        v = stack.enter_context(Supervised(names=(), args=["-k", CONF]))
        run = Run(v, {n: stack.enter_context(Driver(n + ".sock"))
                      for n in ADAPTERS})
        opener = Opener()
        opener.start()
        stack.callback(opener.join)
        stack.callback(setattr, opener, "ends", True)
        step = 0
        while step < steps or time.monotonic() < end:
            step += 1
            act, = random.choices(
                (run.send, run.set, run.reload, run.toggle, run.restart,
                 run.crash, run.capture), (60, 12, 12, 8, 4, 4, 10))
            print(step, act.__name__, flush=True)
            try:
                act()
            except Exception:
                print(run.waits, run.model.now, run.model.file)
                raise
            if step % 50 == 0:
                run.nothing_more()
            assert not opener.refused and opener.is_alive(), opener.refused
        assert opener.opens > steps / 4 and run.sent > steps / 4
        run.nothing_more()
        run.without_program()
        for capture in run.captures:
            capture.end()
        run.restore()


if __name__ == "__main__":
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print("SEED=%d" % seed, flush=True)
    random.seed(seed)
    main({"orders": orders})
