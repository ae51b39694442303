# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""The rights of a valed that serves, for valed_options_test.sh."""

import os

from vfu_client import *


def status(path):
    with open(path + "/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f
                    if ":\t" in line)


def sandbox():
    with Valed(["vm1", "vm2"]) as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            exchange(a, b)
            proc = "/proc/%d" % v.proc.pid
            threads = os.listdir(proc + "/task")
            assert len(threads) == 4, threads
            for t in threads:
                s = status(proc + "/task/" + t)
                assert s["Seccomp"] == "2", s["Seccomp"]
                assert s["NoNewPrivs"] == "1"
                for caps in "CapEff", "CapPrm", "CapInh", "CapAmb":
                    assert int(s[caps], 16) == 0, (caps, s[caps])
            # No page is both writable and executable.
            with open(proc + "/maps") as f:
                assert not [m for m in f if " rwxp " in m or " rwxs " in m]
            # Memory for two ports, with the guests' 2 MB.  A sanitizer's shadow
            # takes terabytes of address space: then nothing is measured.
            if int(s["VmSize"].split()[0]) < 1 << 30:
                assert int(s["VmHWM"].split()[0]) < 32 * 1024, s["VmHWM"]


if __name__ == "__main__":
    main({"sandbox": sandbox})
