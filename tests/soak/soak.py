# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Guests of one valed, for as many seconds as the first argument says.

On one switch are clients of this process.  They send to one or to all, reset
their adapters in each possible way, disconnect at any time and reconnect.  On
another switch, if QEMU is installed, micro-guests run the driver in each of its
modes, until they end or are killed.  At times all traffic stops, and then the
counters must add up:

  - frames that a driver sent were sent by its adapter and taken by the port;
  - frames that the switch copied are in a port's ring or were dropped there;
  - frames from the ring were received by the adapter, or dropped with a reason;
  - descriptors, mappings and memory are those of the first check.
"""

import contextlib
import os
import random
import resource
import subprocess
import sys
import time

from vfu_client import *

NAMES = ["vm1", "vm2", "vm3", "vm4"]
MICRO = ["g1", "g2"]
# Most frames that a client sends at once.
BURST = 16
# Seconds between two checks of the counters.
ROUND = 5
# Slots of a port's ring, all of which are used before memory is measured.
SLOTS = 1024
# KB that memory may grow by: the receive rings of micro-guests, which may start
# after the first check; every port's transmit slots, to which vale_txsync()
# copies the frames of a slow sender; buffers of libc and of AddressSanitizer.
SLACK = (len(MICRO) + len(NAMES + MICRO)) * 2 * SLOTS + 8192
# Options of two micro-guests: leader, follower.
PAIRS = (
    ("role=source ms=1500", "role=sink"),
    ("role=source ms=1500 mode=csb batch=64", "role=sink mode=csb"),
    ("role=source ms=1500 mode=sc,itr=250 size=1514", "role=sink mode=itr=250"),
    ("role=source ms=1500 mode=poll batch=64", "role=sink mode=poll"),
    ("role=rr count=200 ms=0 mode=csb", "role=echo mode=csb"),
)


class Guest(Driver):
    """A driver that counts frames; those in its rings are lost by a reset."""

    def __init__(self, path):
        self.sent = self.received = 0
        Driver.__init__(self, path)

    def burst(self, frames):
        first = self.tail
        for f in frames:
            self.queue(f)
        self.set(TDT, self.tail, post=True)
        last = (self.tail - 1) % self.SLOTS
        wait_until(lambda: self.ram[self.TXRING + 16 * last + 12] & 1,
                   "write-back of TX descriptors %d to %d" % (first, last))
        self.sent += len(frames)

    def drain(self):
        while self.frame() is not None:
            self.received += 1

    def reset(self, rng):
        """Reset the adapter in one of three ways, and set up the rings."""
        way = rng.randrange(3)
        if way == 0:
            self.call(RESET)
        elif way == 1:
            self.set(CTRL, 1 << 26)
        else:
            # Unmap and map memory, too.
            self.set(RCTL, 0)
            self.set(TCTL, 0)
            self.dma_unmap(self.gpa, self.SIZE)
            self.dma_map(self.gpa, self.SIZE, self.fd)
            self.call(RESET)
        self.start()


class Micro:
    """Two micro-guests on QEMU, started again and again; none without QEMU."""

    def __init__(self, valed):
        self.valed = valed
        self.runs = self.kills = 0
        self.procs = []
        self.available = all(os.access(os.environ.get(e, ""), os.X_OK)
                             for e in ("QEMU", "MICRO"))

    def start(self, rng):
        for name, options in zip(MICRO, rng.choice(PAIRS)):
            self.valed.idle(name)
            self.procs.append(subprocess.Popen(
                [os.environ["QEMU"], "-nodefaults", "-no-user-config",
                 "-display", "none", "-machine", "pc,memory-backend=mem",
                 "-accel", "tcg", "-m", "64", "-smp", "1", "-object",
                 "memory-backend-memfd,id=mem,size=64M,share=on",
                 "-kernel", os.environ["MICRO"], "-append", options,
                 "-serial", "file:%s.log" % name, "-device",
                 '{"driver":"vfio-user-pci","x-msg-timeout":60000,'
                 '"socket":{"type":"unix","path":"%s.sock"}}' % name],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.STDOUT))

    def step(self, rng):
        """Start them, kill them at random, or check that they ended well."""
        if not self.available:
            return
        if not self.procs:
            self.start(rng)
        elif rng.randrange(400) == 0:
            self.stop()
            self.kills += 1
        elif all(p.poll() is not None for p in self.procs):
            for p, name in zip(self.procs, MICRO):
                with open(name + ".log") as f:
                    assert p.returncode == 0 and "done 1" in f.read(), name
            self.procs = []
            self.runs += 1

    def stop(self):
        for p in self.procs:
            p.kill()
        for p in self.procs:
            p.wait()
        self.procs = []


class Soak:
    def __init__(self, valed, rng):
        self.valed = valed
        self.rng = rng
        for name in NAMES[:2]:
            self.fill(name)
        self.guests = {n: Guest(n + ".sock") for n in NAMES}
        self.micro = Micro(valed)
        self.done = {"frames": 0, "bursts": 0, "resets": 0, "kills": 0,
                     "checks": 0}
        self.first = self.last = None

    def fill(self, name):
        """Fill the rings of the other ports, which have no guests yet."""
        with contextlib.closing(Guest(name + ".sock")) as g:
            frame = ethernet(b"\xff" * 6, g.mac, bytes(1500))
            for _ in range(SLOTS // BURST + 1):
                g.burst([frame] * BURST)
        self.valed.idle(name)

    def others(self, name):
        return [n for n in NAMES if n != name]

    def burst(self, name):
        g = self.guests[name]
        to = self.rng.choice(self.others(name) + ["all"])
        dst = b"\xff" * 6 if to == "all" else self.guests[to].mac
        size = self.rng.choice((60, 60, 300, 1514))
        n = self.rng.randrange(1, BURST)
        g.burst([ethernet(dst, g.mac, b"%d" % i).ljust(size, b"\0")
                 for i in range(n)])
        self.done["frames"] += n
        self.done["bursts"] += 1

    def kill(self, name):
        """Disconnect with frames under way, and connect another guest."""
        g = self.guests[name]
        for i in range(self.rng.randrange(BURST)):
            g.queue(ethernet(b"\xff" * 6, g.mac, b"last"))
        g.set(TDT, g.tail, post=True)
        g.close()
        self.valed.idle(name)
        self.guests[name] = Guest(name + ".sock")
        self.done["kills"] += 1

    def step(self):
        name = self.rng.choice(NAMES)
        n = self.rng.randrange(100)
        if n < 90:
            self.burst(name)
        elif n < 97:
            self.guests[name].reset(self.rng)
            self.done["resets"] += 1
        else:
            self.kill(name)
        for g in self.guests.values():
            g.drain()
        self.micro.step(self.rng)

    def still(self):
        """Stop all traffic, and return all counters, which do not change."""
        self.micro.stop()
        for name in MICRO:
            self.valed.idle(name)

        def counters():
            for g in self.guests.values():
                g.drain()
            # Each adapter's thread runs, and moves what waits for it.
            for g in self.guests.values():
                g.settle()
                g.settle()
            return {n: self.valed.counters(n) for n in NAMES + MICRO}

        def changes():
            return ["%s %s" % (n, c) for n in last for c in last[n]
                    if last[n][c] != now[n][c] and
                    ("frames" in c or "drop" in c or "copies" in c)]

        def unchanged():
            nonlocal last, now
            last, now = now, counters()
            return not changes()
        last, now = None, counters()
        wait_until(unchanged, "counters that do not change", changes)
        return now

    def check(self):
        now = self.still()
        for n, c in now.items():
            def eq(what, a, b):
                assert a == b, "%s: %s: %d, %d: %s" % (n, what, a, b, c)
            eq("adapter and port", c["tx_frames"], c["port_tx_frames"])
            drops = sum(v for k, v in c.items()
                        if k.startswith("port_tx_drop_"))
            flooded = c["port_tx_flooded"]
            unicast = c["port_tx_frames"] - flooded - drops
            nports = len(NAMES) if n in NAMES else len(MICRO)
            eq("port and switch", c["port_tx_copies"],
               unicast + flooded * (nports - 1))
            eq("port and adapter", c["port_rx_frames"],
               c["rx_frames"] + c["rx_filtered"] + c["rx_oversize"] +
               c["rx_disabled"] + c["rx_bad_addr"] + self.waiting(n, c))
            eq("direct or through the ring", c["port_rx_frames"],
               c["port_rx_direct"] + c["port_rx_copies"])
            eq("invalid input", 0, c["tx_bad_desc"] + c["tx_bad_len"] +
               c["tx_bad_ctx"] + c["broken"])
        for names in NAMES, MICRO:
            copies = sum(now[n]["port_tx_copies"] for n in names)
            arrived = sum(now[n]["port_rx_frames"] +
                          now[n]["port_rx_drop_full"] for n in names)
            assert copies == arrived, (names, copies, arrived)
        self.check_memory()
        self.done["checks"] += 1

    def waiting(self, name, c):
        """Return how many frames wait in a port's ring; with a guest, none."""
        if name in NAMES:
            return 0
        left = c["port_rx_frames"] - sum(c[k] for k in (
            "rx_frames", "rx_filtered", "rx_oversize", "rx_disabled",
            "rx_bad_addr"))
        assert 0 <= left < 1024, (name, left)
        return left

    def check_memory(self):
        """Descriptors, mappings and memory are those of the first check."""
        with open("/proc/%d/status" % self.valed.proc.pid) as f:
            rss = [int(line.split()[1]) for line in f
                   if line.startswith("RssAnon")][0]
        now = self.valed.resources(*MICRO) + (rss,)
        if self.first is None:
            self.first = now
        assert now[:2] == self.first[:2], (self.first, now)
        assert now[2] <= self.first[2] + SLACK, (self.first, now)
        self.last = now

    def run(self, seconds):
        start = time.monotonic()
        check = start + ROUND
        while (time.monotonic() < start + seconds or self.done["checks"] < 3 or
               not self.done["resets"] or not self.done["kills"]):
            self.step()
            if time.monotonic() >= check:
                self.check()
                check = time.monotonic() + ROUND
        self.check()
        self.done["seconds"] = int(time.monotonic() - start)
        self.done["micro_runs"] = self.micro.runs
        self.done["micro_kills"] = self.micro.kills
        self.done["micro_frames"] = sum(
            self.valed.counters(n)["tx_frames"] for n in MICRO)
        self.done["rss_kb"] = "%d..%d" % (self.first[2], self.last[2])


def main():
    seed = int(os.environ.get("SOAK_SEED", "1"))
    # AddressSanitizer keeps freed memory, and the stacks of functions that have
    # returned: little and none, so that growth is a leak.
    os.environ["ASAN_OPTIONS"] = (os.environ.get("ASAN_OPTIONS", "") +
                                  ":quarantine_size_mb=1"
                                  ":detect_stack_use_after_return=0")
    args = []
    for i, name in enumerate(MICRO):
        args += ["-s", "%d,e1000,vale1:%s,path=%s.sock" % (20 + i, name, name)]
    with Valed(NAMES, args=args) as valed:
        soak = Soak(valed, random.Random(seed))
        try:
            soak.run(float(sys.argv[1]))
        finally:
            soak.micro.stop()
        for g in soak.guests.values():
            g.close()
    print(" ".join("%s=%s" % kv for kv in soak.done.items()))
    assert soak.done["resets"] and soak.done["kills"]


if __name__ == "__main__":
    main()
