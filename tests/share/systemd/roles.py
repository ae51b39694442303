# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Who reaches which socket of the units, for units_test.sh: valed runs as a unit
says, except for systemd."""

import errno
import os
import shlex
import subprocess

from ctl_client import *
from vfu_client import *
from ctl_client import Refused             # not the one of vfu_client

# Numbers of the dynamic user, of QEMU's and of a program's.
UNIT, QEMU, PROGRAM = 61000, 61001, 61002


def settings(path):
    """The settings of a unit, each of which is there once."""
    got = {}
    with open(path) as f:
        for line in f:
            name, eq, value = line.strip().partition("=")
            if eq and not name.startswith("#"):
                assert name not in got or name == "RestrictAddressFamilies"
                got[name] = value
    return got


class Unit:
    """valed with the user, groups, directory and mask of a unit."""

    def __init__(self, path, instance):
        where, name = os.path.split(path)
        directory = os.path.join(where, name.replace("valed",
                                                     "valed-directory"))
        unit = {k: v.replace("%i", instance) for p in (directory, path)
                for k, v in settings(p).items()}
        assert unit["DynamicUser"] == "yes"
        # The groups need not exist here.
        self.gids = {}
        for name in [unit["Group"]] + unit["SupplementaryGroups"].split():
            self.gids[name] = 61100 + len(self.gids)
        self.own = sorted(self.gids.values())
        self.group = self.gids[unit["Group"]]
        self.dir = unit["RuntimeDirectory"]
        os.mkdir(self.dir)
        os.chown(self.dir, UNIT, self.group)
        os.chmod(self.dir, int(unit["RuntimeDirectoryMode"], 8))
        self.mask = int(unit["UMask"], 8)
        args = shlex.split(unit["ExecStart"])
        assert args[0] == "@SBINDIR@/valed"
        args = [self.place(a) for a in args[1:args.index("-k")]]
        real = subprocess.Popen
        subprocess.Popen = lambda *a, **k: real(*a, preexec_fn=self.become,
                                                **k)
        try:
            self.valed = Valed([], args=args + [
                "-s", "1,e1000,vale0:a,path=%s/a.sock" % self.dir])
        finally:
            subprocess.Popen = real
        self.control = os.path.join(self.dir, "control")
        self.adapter = os.path.join(self.dir, "a.sock")

    def place(self, arg):
        """An argument, with numbers for groups, in this directory."""
        parts = arg.replace("/run/", "").split(",")
        for i, p in enumerate(parts):
            name, eq, value = p.partition("=")
            if eq and name in ("group", "admin"):
                gid = self.gids.setdefault(value, 61100 + len(self.gids))
                parts[i] = "%s=%d" % (name, gid)
        return ",".join(parts)

    def become(self):
        os.umask(self.mask)
        os.setgroups(self.own[1:])
        os.setgid(self.group)
        os.setuid(UNIT)


def reaches(connect, *who):
    with user(*who):
        try:
            connect()
            return True
        except PermissionError:
            return False


def check(path, instance):
    u = Unit(path, instance)
    kvm, valed = u.gids["kvm"], u.gids["valed"]
    control = lambda: Control(u.control).close()
    adapter = lambda: Client(u.adapter).close()
    with user(0):
        control()
        adapter()
    # The guest's, or what has taken over its QEMU.
    assert not reaches(control, QEMU, kvm)
    assert not reaches(control, QEMU, 1, (kvm,))
    assert reaches(adapter, QEMU, 1, (kvm,))
    # Programs, with the directory's name alone.
    assert reaches(control, PROGRAM, 1, (valed,))
    assert reaches(control, PROGRAM, valed)
    assert not reaches(adapter, PROGRAM, 1, (valed,))
    assert not reaches(control, PROGRAM)
    assert not reaches(adapter, PROGRAM)
    assert not reaches(lambda: os.listdir(u.dir), PROGRAM, 1, (valed,))
    assert not reaches(lambda: open(u.dir + "/x", "w"), PROGRAM, 1,
                       (kvm, valed))
    # They have ports, and nothing of the guest's.
    with user(PROGRAM, 1, (valed,)):
        c = Control(u.control)
        p = Control(u.control).register("vale0:mine")
    assert c.ports() == {"vale0:mine": 1}
    for fn, args in ((c.register, ("vale0:a", MONITOR_TX | MONITOR_RX)),
                     (c.set_limit, ("vale0:a", 1)),
                     (c.mirror, ("vale0:mine", "vale0:a"))):
        try:
            fn(*args)
        except Refused as e:
            assert e.errno == errno.EPERM, e
        else:
            raise AssertionError(fn)
    # Root, the unit's user and administrators do, who must be able to connect.
    # The process of a valed@.service is none of another's.
    admin = u.gids["valed-admin"]
    assert admin not in u.own
    assert not reaches(control, PROGRAM, admin)
    for who in ((0,), (UNIT, u.group), (PROGRAM, 1, (valed, admin))):
        with user(*who):
            with Control(u.control) as c2, Control(u.control) as c3:
                c2.set_limit("vale0:a", 1)
                c3.register("vale0:a", MONITOR_TX | MONITOR_RX)
    p.close()
    c.close()
    u.valed.proc.terminate()
    assert u.valed.proc.wait(WAIT_S) == 0


def roles():
    if os.geteuid() != 0:
        raise Skip("only root can be several users")
    check(os.environ["UNITS"] + "/valed.service", "")
    check(os.environ["UNITS"] + "/valed@.service", "vale0")


if __name__ == "__main__":
    main({"roles": roles})
