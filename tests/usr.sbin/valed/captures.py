# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""vale-cap(1), and what it is to write, for orders.py.  Its files are read as
draft-ietf-opsawg-pcapng has them, without our code."""

import os
import random
import signal
import struct
import subprocess

from wait_until import WAIT_S, wait_until

CAP = os.path.join(os.path.dirname(os.environ["VALECTL"]),
                   "../../usr.bin/vale-cap/vale-cap")
# Expressions of captures, and what they mean.  The switch does not run one with
# protochain.
FILTERS = (("", lambda frame: True), ("vlan", lambda frame: tagged(frame)),
           ("not ip protochain 99 and less 60",
            lambda frame: not tagged(frame)),
           ("not ether src 02:6f:74:68:65:72",
            lambda frame: frame[6:12] != b"\2other"))


def tagged(frame):
    return frame[12:14] == b"\x81\0"


def options(body):
    """The options of a block of pcapng, by their codes."""
    found = {}
    while body:
        code, size = struct.unpack_from("<HH", body)
        found[code] = body[4:4 + size]
        body = body[4 + (size + 3 & ~3):]
    return found


def packets(path):
    """The interfaces and frames in the complete blocks of a pcapng file."""
    with open(path, "rb") as f:
        data = f.read()
    names, got = [], []
    while len(data) >= 8:
        kind, size = struct.unpack_from("<II", data)
        if size > len(data):
            break
        body, data = data[8:size - 4], data[size:]
        if kind == 1:                   # an interface: if_name
            names.append(options(body[8:])[2].decode())
        elif kind == 6:
            port, _, _, kept, length = struct.unpack_from("<5I", body)
            assert kept == length
            got.append((names[port], body[20:20 + kept]))
    return got


class Capture:
    """A vale-cap, and what it is to write of each port."""

    def __init__(self, number, ports):
        self.path = "%d.pcapng" % number
        self.way = random.choice(("in", "out", "inout"))
        self.filter, self.passes = random.choice(FILTERS)
        self.count = random.choice((1, 5, 1 << 60))
        self.want = {"vale0:" + name: [] for name in ports}
        self.restarts = 0
        with open(self.path + ".err", "w") as err:
            self.proc = subprocess.Popen(
                [CAP, "-c", "control", "-Q", self.way, "-n", str(self.count),
                 "-w", self.path, *self.want, self.filter], stderr=err)
        wait_until(lambda: os.path.exists(self.path) and
                   os.path.getsize(self.path), "the capture", self.messages)

    def messages(self):
        with open(self.path + ".err") as f:
            return f.read()

    def saw(self, name, way, frame):
        want = self.want.get("vale0:" + name)
        if want is not None and way in self.way and self.passes(frame):
            want.append(frame)

    def written(self):
        """Wait until the file has all that it is to have, and return that.
        The order of frames of several ports is any."""
        due = min(self.count, sum(map(len, self.want.values())))
        wait_until(lambda: len(packets(self.path)) >= due, "captured frames",
                   lambda: (vars(self), packets(self.path)))
        got = packets(self.path)
        assert len(got) == due, (vars(self), got)
        for name, want in self.want.items():
            mine = [frame for port, frame in got if port == name]
            assert mine == want[:len(mine)], (vars(self), got)
        return due

    def restarted(self):
        if self.written() < self.count:
            self.restarts += 1
            wait_until(lambda: self.messages().count("restarted\n") ==
                       self.restarts, "a restart", self.messages)

    def end(self):
        due = self.written()
        if due < self.count:
            self.proc.send_signal(signal.SIGINT)
        assert self.proc.wait(WAIT_S) == 0, self.messages()
        self.written()
        assert self.messages() == "vale-cap: valed has restarted\n" * \
            self.restarts + "%d frames captured, 0 dropped\n" % due, \
            self.messages()
        for path in self.path, self.path + ".err":
            os.unlink(path)
