# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Mutation testing: would a test notice if a line were wrong?

    mutants.py [-j jobs] [-o objdir] [-e n] [-s] [-t tree] [file...]

Copies the tree to objdir, rewrites the files so that all their mutants are
compiled in (sites.py, mutant.h), and builds that once.  Each test case runs
once to see which mutants it reaches.  Then each mutant runs, alone, with the
cases that reach it: first the one that killed it the last time, then those
that have the file's name or killed others in it, and those that are fast and
reach little else, until one fails.  A case fails by its exit status, by a
signal, or by ten times the processor time that it takes without a mutant,
whatever else the machine does.  A case that sleeps for eight seconds and twenty
times its usual time hangs.

What no case kills needs a reason in a file *.table here: a source and a function;
below them how many may live, and why; below that the lines, without their
comments, or none for the whole function:

    lib/libvale/vale_rxq.c vale_rxq_init
            3 reason
                    the text of a line
                    the text of another line

Each reason must speak of a mutant that lives.  RULES has reasons for kinds, and
../relacy/sites.table the fences.  The exit status is 0 if nothing else survived.

    -e n[,k]
            run one mutant of n, spread over all files: always the same ones;
            for k from 0, the default, to n - 1, others
    -s      run only those that survived the last time and have no reason
    -r      run only those that hung the last time, and wait for a minute
    -q n    leave out test cases that take longer than n seconds
    -m n    run n test cases for a mutant at most
    -n      find the mutants, and stop
    -f      find sources in no group, and not left out for a reason, and what a
            group builds before a library that it takes, and stop
"""

import argparse
import glob
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import sites

HERE = os.path.dirname(os.path.abspath(__file__))

# Files; the test programs that run their mutants; the directories to build.
LIBRARIES = ["compat", "lib/libframe", "lib/libpeer", "lib/libloop",
    "lib/libvfu", "lib/libhostif", "lib/libctl", "lib/libvale",
    "lib/libvaleport", "usr.sbin/bhyve", "tests/testbed", "tests/testbed/bhyve"]
PROGRAMS = ["usr.sbin/valed", "lib/libvale_valed", "usr.sbin/valectl",
    "lib/libnetmap_run", "usr.bin/netmap-run", "usr.bin/vale-cap",
    "tests/usr.sbin/valed", "tests/usr.sbin/valectl",
    "tests/usr.bin/netmap-run", "tests/usr.bin/vale-cap"]
LINUX = "sys/dev/e1000/linux"
GROUPS = [
    ("model", r"usr\.sbin/bhyve/(e825(45|74)[a-z_]*|vale_sender)\.[ch]$",
        r"tests/(usr\.sbin/bhyve|sys/dev/e1000)/",
        LIBRARIES + ["tests/usr.sbin/bhyve", "tests/sys/dev/e1000"]),
    ("driver", r"sys/dev/e1000/(lem_[a-z]*|em_pv[a-z_]*)\.[ch]$",
        r"tests/(sys/dev/e1000|usr\.sbin/bhyve)/",
        LIBRARIES + ["tests/sys/dev/e1000", "tests/usr.sbin/bhyve"]),
    # Ports of other processes, and the memory of ports.
    ("shared", r"lib/libvale(port/vale_[a-z_]*|/vale_(region|user))\.[ch]$",
        r"tests/(sys/net/vale|lib/libctl|usr\.sbin/valed|usr\.bin/netmap-run)/",
        LIBRARIES + ["usr.sbin/valed", "lib/libvale_valed",
        "lib/libnetmap_run", "usr.bin/netmap-run", "tests/sys/net/vale",
        "tests/lib/libctl", "tests/usr.sbin/valed",
        "tests/usr.bin/netmap-run"]),
    ("switch", r"lib/lib(vale/vale_[a-z_]*|frame/frame[a-z_]*)\.[ch]$"
        r"|sys/dev/netmap/vale_(fdb|guard|learn(_form|_rule)?|rate|share|vlan)"
        r"\.[ch]$",
        r"tests/(sys/net/vale|usr\.sbin/bhyve|lib/libframe|sys/dev/e1000)/",
        LIBRARIES + ["tests/sys/net/vale", "tests/usr.sbin/bhyve",
        "tests/lib/libframe", "tests/sys/dev/e1000"]),
    ("server", r"lib/lib(peer|loop|vfu)/\w*\.[ch]$",
        r"tests/(usr\.sbin/valed|lib/lib(ctl|loop|peer|vfu))/",
        LIBRARIES + ["usr.sbin/valed", "lib/libvale_valed",
        "usr.sbin/valectl", "usr.bin/vale-cap", "tests/usr.sbin/valed",
        "tests/lib/libctl", "tests/lib/libloop",
        "tests/lib/libpeer", "tests/lib/libvfu"]),
    # The program, which most of these tests start, and its other parts.
    ("valed", r"(usr\.sbin/valed/(adapter|tap|valed)|lib/lib(ctl/ctl|hostif/hostif))"
        r"[a-z_]*\.[ch]$",
        r"tests/(usr\.sbin/vale|usr\.bin/|lib/lib(ctl|hostif)/)",
        LIBRARIES + PROGRAMS + ["tests/lib/libctl", "tests/lib/libhostif"]),
    # netmap-run's library, which programs preload.
    ("run", r"lib/libnetmap_run/[a-z_]*\.[ch]$",
        r"tests/usr\.bin/netmap-run/",
        LIBRARIES + PROGRAMS),
    # Around the model and the switch in bhyve and in programs.
    ("bhyve", r"usr\.sbin/bhyve/(net_|pci_|kernel_fit)[a-z_0-9]*"
        r"\.[ch]$",
        r"tests/(usr\.sbin/bhyve|sys/net/vale)/",
        LIBRARIES + ["tests/usr.sbin/bhyve", "tests/sys/net/vale"]),
    ("programs", r"(usr\.sbin/valectl|usr\.bin/vale-cap)/[a-z_]*\.[ch]$",
        r"tests/usr\.(sbin/valectl|bin/vale-cap)/", LIBRARIES + PROGRAMS),
    # In guests, whose module has mutants: mutant_linux.c.
    ("linux", LINUX + r"/lem_[a-z]*\.[ch]$",
        r"tests/guest/(lem|lem_life|iommu|count)_test$",
        LIBRARIES + ["usr.sbin/valed", "lib/libvale_valed",
        "usr.sbin/valectl", "bench/nettest", LINUX, "tests/guest"]),
    # The test of this program.
    ("tiny", r"tests/mutants/tiny/tiny\.c$", r"tests/mutants/tiny/",
        ["compat", "tests/mutants/tiny"]),
]
# Files in no group, or left out of theirs, and why.
LEFT_OUT = [
    (r".*_probes\.[ch]$", "probes, which are no behaviour"),
    (r"lib/libvale/vale_netmap\.c$|sys/dev/netmap/vale_learn_(copy|mod|os|ruled|sysctl|var)\.[ch]$",
        "for FreeBSD, and not run on Linux"),
    (LINUX + r"/(compat/|lem_os\.h)", "few lines, of other names for Linux's"),
    (r"(.*/)?(vale_fdb_entry|vale_rate_conf|vale_vlan_conf|e825(45|74)_reg|e82545_csb_reg|libvale|vale_wire"
        r"|frame_port|kernel_fit|counter_table|fast_path)\.h$",
        "declarations, or macros, whose bodies are not changed"),
    (r"tests/testbed/|compat/", "for the tests, or another system's code"),
]
# Kinds of mutants that may live, "line: text -> mutated text", and why.
RULES = [
    (r"\b[cm]alloc\(.*: (1 -> 2|(\w+) -> \2 \+ 4)$",
        "more memory than is used"),
    (r"(\w[^?:]*) ([<>]) (\w[^?:]*) \? (\1 : \3|\3 : \1)\W.*: \1 \2 \3 -> "
        r"\1 \2= \3$", "the two are the same number"),
    (r": (MSG_\w+) -> \1 \+ 4$",
        "4 is MSG_DONTROUTE, which such sockets ignore"),
    (r": atomic_load_32\((&.+)\) != 0 && (atomic_(swap|cmpset)\w*\(\1, .*)"
        r" -> \2$", "it only spares an atomic operation"),
    (r": atomic_thread_fence_(acq|rel)\(\) -> $",
        "on x86 loads are in order, and stores are"),
    (r": pthread_(mutex|cond)(attr)?_destroy\(.*\) -> $",
        "in glibc it does nothing"),
]
CFLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-DINVARIANTS", "-DWITHOUT_DTRACE",
    "-DBHYVE_SNAPSHOT", "-DWITHOUT_CAPSICUM", "-w"]
INCLUDES = ["compat/include", "compat/kern", "tests/testbed/bhyve",
    "tests/testbed/bhyve/linux", "usr.sbin/bhyve", "lib/libframe", "lib/libpeer", "lib/libloop",
    "lib/libvfu", "lib/libhostif", "lib/libctl", "lib/libvale",
    "lib/libvaleport", "sys", "sys/dev/e1000",
    "usr.sbin/valed", "tests/testbed", "tests/sys/dev/e1000/em_pv"]


def group(name):
    for g in GROUPS:
        if re.match(g[1], name):
            return g
    raise SystemExit(f"{name}: in no group")


def sources(tree):
    """The tree's files, without what was built."""
    for d, dirs, names in os.walk(tree):
        dirs[:] = [i for i in dirs if i != ".git" and
            not i.startswith("build") and i != "corpus"]
        for n in names:
            yield os.path.relpath(os.path.join(d, n), tree)


def left_out(name):
    """Why a file is left out, or None."""
    return next((why for p, why in LEFT_OUT if re.match(p, name)), None)


def matching(tree):
    return sorted(f for f in sources(tree) if not left_out(f) and
        any(re.match(g[1], f) for g in GROUPS if g[0] != "tiny"))


def forgotten(tree):
    """Sources that are in no group, and not left out for a reason."""
    return sorted(f for f in sources(tree) if
        re.match(r"(compat|lib|sys|usr\.s?bin)/.*\.[ch]$", f) and
        not left_out(f) and not any(re.match(g[1], f) for g in GROUPS))


def unordered(tree):
    """Directories that a group builds before a library that they take."""
    found = []
    for name, _, _, dirs in GROUPS:
        for i, d in enumerate(dirs):
            path = os.path.join(tree, d, "Makefile")
            if not os.path.exists(path):
                continue
            with open(path) as f:
                text = f.read().replace("\\\n", " ")
            libs = " ".join(re.findall(r"^LIBADD[.\w]*\+?=(.*)$", text, re.M))
            found += [f"{name}: {d} needs lib/lib{lib} before it"
                for lib in sorted(set(libs.split()))
                if os.path.exists(os.path.join(tree, "lib/lib" + lib)) and
                "lib/lib" + lib not in dirs[:i]]
    return found


def keep_newer(src, dst):
    """Copy a file, if it differs."""
    with open(src, "rb") as f:
        new = f.read()
    try:
        with open(dst, "rb") as f:
            if f.read() == new:
                return
    except FileNotFoundError:
        pass
    shutil.copy(src, dst)
    os.utime(dst)


class Case:
    """A test case: argv, and the time that it takes."""

    def __init__(self, program, name):
        self.program, self.name = program, name
        self.wall = self.cpu = 0.0
        self.reaches = frozenset()
        self.kills = {}        # file -> mutants

    def __str__(self):
        return f"{self.program}:{self.name}"


class Runner:
    def __init__(self, objtop, scratch):
        self.objtop, self.scratch = objtop, scratch
        # All processes of a case end with it, if that is permitted.
        self.alone = ["unshare", "--pid", "--fork", "--kill-child",
            "--mount-proc"]
        if subprocess.run(self.alone + ["true"],
            stderr=subprocess.DEVNULL).returncode != 0:
            self.alone = []

    def run(self, case, env, wall, cpu):
        """(passed, timed out, output, wall time, processor time)"""
        prog = os.path.join(self.objtop, case.program)
        work = tempfile.mkdtemp(dir=self.scratch)
        # For processes of other users.
        os.chmod(work, 0o755)
        home = os.path.join(work, "work")
        os.mkdir(home)
        e = {k: v for k, v in os.environ.items()
            if not k.startswith(("LC_", "LANG", "TZ", "MAKE", "MFLAGS"))}
        e.update(env, HOME=home, TMPDIR=home, TZ="UTC",
            __RUNNING_INSIDE_ATF_RUN="internal-yes-value")

        limits = "ulimit -c 0; ulimit -t %s; exec \"$@\"" % \
            ("unlimited" if cpu is None else cpu)
        start = time.monotonic()
        timed_out = False
        log = os.path.join(work, "log")
        with open(log, "wb") as out:
            p = subprocess.Popen(self.alone + ["sh", "-c", limits, "sh", prog,
                "-r", work + "/result", "-s", os.path.dirname(prog), case.name], cwd=home,
                env=e, stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, start_new_session=True)
            timer = threading.Timer(wall, self.expire, [p])
            timer.start()
            _, status, used = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            timer.cancel()
            timed_out = getattr(p, "expired", False)
            self.kill_group(p)
        elapsed = time.monotonic() - start
        with open(log, "rb") as f:
            f.seek(max(0, os.path.getsize(log) - 65536))
            text = f.read().decode(errors="replace")
        result = ""
        if os.path.exists(work + "/result"):
            with open(work + "/result", errors="replace") as f:
                result = f.read()
        if "MUTANT_COVER" in env:
            self.cover_guests(home, env["MUTANT_COVER"])
        shutil.rmtree(work, ignore_errors=True)
        passed = p.returncode == 0 and result.startswith("passed")
        if p.returncode == 0 and result.startswith(("skipped",
            "expected")):
            passed = None
        return (passed, timed_out, text + result, elapsed,
            used.ru_utime + used.ru_stime)

    @staticmethod
    def cover_guests(home, path):
        """Add what a guest's kernel says that it has reached."""
        with open(path, "r+b") as cover:
            for log in glob.glob(os.path.join(home, "vm*.log")):
                with open(log, "rb") as f:
                    for n in re.findall(rb"mutant (\d+) reached", f.read()):
                        cover.seek(int(n))
                        cover.write(b"\1")

    @staticmethod
    def kill_group(p):
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    @classmethod
    def expire(cls, p):
        p.expired = True
        cls.kill_group(p)


def cases_of(objtop, pattern):
    """The test cases under objtop/tests that Kyuafiles name."""
    found = []
    for d, _, names in os.walk(os.path.join(objtop, "tests")):
        if "Kyuafile" not in names:
            continue
        with open(os.path.join(d, "Kyuafile")) as f:
            text = f.read()
        for name in re.findall(r"atf_test_program\{name=\"([^\"]*)\"",
            text):
            path = os.path.join(d, name)
            rel = os.path.relpath(path, objtop)
            if not os.path.exists(path) or \
                not re.search(pattern, rel):
                continue
            out = subprocess.run([path, "-l", "-s", d],
                capture_output=True, text=True,
                env=dict(os.environ, __RUNNING_INSIDE_ATF_RUN=
                "internal-yes-value")).stdout
            found += [Case(rel, i) for i in
                re.findall(r"^ident: (.*)$", out, re.M)]
    return found


def parallel(jobs, items, work):
    """Call work(item) for all items, in order, in some threads."""
    lock = threading.Lock()
    it = iter(items)
    errors = []

    def loop():
        while not errors:
            with lock:
                item = next(it, None)
            if item is None:
                return
            try:
                work(item)
            except Exception as e:
                errors.append(e)
                raise

    threads = [threading.Thread(target=loop) for _ in range(jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


class Run:
    def __init__(self, args):
        self.args = args
        self.tree = os.path.abspath(args.t)
        self.obj = os.path.abspath(args.o)
        self.copy = os.path.join(self.obj, "tree")
        self.objtop = os.path.join(self.copy, "build")
        self.saved = os.path.join(self.obj, "results.json")
        self.scratch = os.path.join(self.obj, "scratch")
        self.lock = threading.Lock()
        self.results = {}
        self.last = {}

    def say(self, text):
        print(text, flush=True)

    def kernel_args(self):
        """What of kbuild's command for lem(4) is about the files that the source
        includes."""
        src = os.path.join(self.obj, "kbuild")
        headers = os.path.join(self.obj, "../deps/kernel",
            platform.freedesktop_os_release()["VERSION_CODENAME"], "headers")
        subprocess.run(["sh", os.path.join(self.tree, LINUX, "source.sh"),
            self.tree, src], check=True)
        subprocess.run(["make", "-s", "-C", headers, "M=" + src, "modules"],
            check=True, env={"PATH": os.environ["PATH"]},
            stdout=subprocess.DEVNULL)
        with open(os.path.join(src, ".lem_main.o.cmd")) as f:
            words = iter(shlex.split(f.readline().partition(":=")[2]))
        args = ["-w", "-working-directory=" + os.path.realpath(headers)]
        for w in words:
            if w in ("-include", "-isystem"):
                args += [w, next(words)]
            elif w.startswith(("-I", "-D", "-nostdinc", "-std")):
                args.append(w)
        return args

    def find(self, names):
        """Find the mutants of the files."""
        self.files = {}
        for n in names:
            p = os.path.join(self.tree, n)
            self.files[p] = sites.File(n, p)
        args = CFLAGS + ["-resource-dir", sites.resource_dir()] + \
            [f"-I{os.path.join(self.tree, i)}" for i in INCLUDES]
        for n in names:
            args.append(f"-I{os.path.dirname(os.path.join(self.tree, n))}")
        finder = sites.Finder(self.files, list(dict.fromkeys(args)))
        linux = None
        sources = [n for n in names if n.endswith(".c")]
        if len(sources) < len(names):
            # Headers are found through the sources of their
            # directory.
            dirs = {os.path.dirname(n) for n in names
                if n.endswith(".h")}
            sources += [n for n in matching(self.tree)
                if n.endswith(".c") and os.path.dirname(n) in dirs
                and n not in sources]
        for s in sources:
            if os.path.dirname(s) == LINUX:
                linux = linux or sites.Finder(self.files, self.kernel_args())
                linux.run(os.path.join(self.tree, s))
            else:
                finder.run(os.path.join(self.tree, s))
        self.linux = linux is not None
        self.number()

    def number(self):
        n = 1
        for f in self.files.values():
            n = f.number(n)
        self.total = n
        self.mutants = [m for f in self.files.values()
            for m in f.ordered()]

    def write(self):
        for f in self.files.values():
            if not f.mutants:
                continue
            dst = os.path.join(self.copy, f.name)
            tmp = dst + ".mutated"
            f.write(tmp, os.path.join(HERE, "mutant.h"),
                self.total)
            keep_newer(tmp, dst)
            os.remove(tmp)
        if self.linux:
            self.write_linux()

    def write_linux(self):
        """Add mutant_linux.c to the module."""
        def put(name, text):
            tmp = os.path.join(self.obj, name)
            with open(tmp, "w") as f:
                f.write(text)
            keep_newer(tmp, os.path.join(self.copy, LINUX, name))

        with open(os.path.join(self.tree, LINUX, "Kbuild")) as f:
            put("Kbuild", f.read() + "lem-y += lem_mutant.o\n")
        put("lem_mutant.c", f"#define\tMUTANT_MAX\t{self.total}\n"
            f"#include \"{HERE}/mutant_linux.c\"\n")

    def bmake(self, subdir):
        return subprocess.run(["nice", "bmake", "-m", ".../compat/mk",
            "-j", str(self.args.j), "-k", "MK_DTRACE=no",
            "OPTFLAGS=-O1 -g1 -fbracket-depth=2048 "
            "-fno-color-diagnostics -ftrivial-auto-var-init=pattern",
            "WARNFLAGS=-w", "KCFLAGS=-w",
            f"OBJTOP={self.objtop}", "all"],
            cwd=os.path.join(self.copy, subdir),
            env={k: v for k, v in os.environ.items()
            if not k.startswith(("MAKE", "MFLAGS", "FILES"))},
            capture_output=True, text=True)

    def build(self):
        """Build everything; drop mutants that do not compile."""
        self.copy_tree({f.name for f in self.files.values()
            if f.mutants})
        dirs = list(dict.fromkeys(d for f in self.files.values()
            for d in group(f.name)[3]))
        deps = os.path.join(self.objtop, "deps")
        if self.linux and not os.path.exists(deps):
            os.makedirs(self.objtop, exist_ok=True)
            os.symlink(os.path.realpath(os.path.join(self.obj, "../deps")), deps)
        for _ in range(8):
            self.write()
            text = ""
            failed = False
            for d in dirs:
                p = self.bmake(d)
                text += p.stdout + p.stderr
                if p.returncode != 0:
                    failed = True
                    break
            if not failed:
                return
            if not self.drop(text):
                print(text[-4000:], file=sys.stderr)
                raise SystemExit("the mutants do not compile")
            # bmake(1) compares whole seconds: what was just compiled has the
            # old numbers.
            time.sleep(1.1)
        raise SystemExit("the mutants do not compile")

    def copy_tree(self, skip):
        for f in sources(self.tree):
            src = os.path.join(self.tree, f)
            if f in skip or not os.path.isfile(src):
                continue
            dst = os.path.join(self.copy, f)
            os.makedirs(os.path.dirname(dst), exist_ok=True)
            keep_newer(src, dst)
        for f in skip:
            os.makedirs(os.path.dirname(os.path.join(self.copy,
                f)), exist_ok=True)

    def drop(self, text):
        dropped = 0
        for path, line in set(re.findall(
            r"^(\S+?):(\d+):\d+: (?:fatal )?error", text, re.M)):
            f = self.files.get(path)
            if f is None:
                continue
            for k, m in list(f.mutants.items()):
                last = m.line + f.text.count("\n", m.start,
                    m.end)
                if m.line == int(line) or (m.code is not None
                    and m.line <= int(line) <= last):
                    del f.mutants[k]
                    f.dropped.add(k)
                    dropped += 1
        self.number()
        return dropped

    def cover(self):
        """Run all cases without a mutant; see what they reach."""
        pattern = "|".join(sorted({group(f.name)[2]
            for f in self.files.values()}))
        if self.args.p:
            pattern = self.args.p
        self.cases = cases_of(self.objtop, pattern)
        self.runner = Runner(self.objtop, self.scratch)
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.makedirs(self.scratch)
        bad = []

        def one(case):
            fd, path = tempfile.mkstemp(dir=self.scratch)
            os.ftruncate(fd, self.total)
            os.fchmod(fd, 0o666)
            passed, _, out, case.wall, case.cpu = self.runner.run(
                case, {"MUTANT_COVER": path}, 600, None)
            data = os.pread(fd, self.total, 0)
            os.close(fd)
            os.remove(path)
            if passed is None:
                return
            if not passed:
                bad.append(f"{case}: {out[-300:]}")
                return
            case.reaches = frozenset(i for i, b in enumerate(data)
                if b)

        parallel(self.args.j, self.cases, one)
        for b in bad:
            self.say(f"fails without a mutant: {b}")
        if len(bad) > 5:
            raise SystemExit("too many cases fail without a mutant")
        self.cases = sorted((c for c in self.cases if c.reaches and
            c.wall <= self.args.q),
            key=lambda c: c.wall)
        if not self.cases:
            raise SystemExit("no case reaches a mutant")

    def limit(self, case):
        return ((60 if self.args.r else 8) + 20 * case.wall,
            int(2 + 10 * case.cpu))

    def test(self, m):
        """Run a mutant; return how it ended."""
        tests = self.args.p or group(m.file)[2]
        cases = [c for c in self.cases if m.number in c.reaches and
            re.search(tests, c.program)]
        if not cases:
            return {"status": "not reached"}
        first = self.last.get(m.key(), {}).get("by")
        recent = self.recent
        stem = os.path.splitext(os.path.basename(m.file))[0]
        cases.sort(key=lambda c: (str(c) != first, c not in recent,
            stem not in c.program, -c.kills.get(m.file, 0),
            len(c.reaches) * (0.005 + c.wall)))
        for c in cases[:self.args.m]:
            wall, cpu = self.limit(c)
            passed, late, out, _, _ = self.runner.run(c,
                {"MUTANT": str(m.number)}, wall, cpu)
            if passed:
                continue
            with self.lock:
                c.kills[m.file] = c.kills.get(m.file, 0) + 1
                if c in recent:
                    recent.remove(c)
                recent.insert(0, c)
                del recent[3:]
            how = "killed"
            if late:
                how = "hung"
            elif re.search(r"[Aa]ssertion .*failed|panic: ", out):
                how = "asserted"
            return {"status": how, "by": str(c)}
        return {"status": "survived", "cases": len(cases)}

    def load(self):
        try:
            with open(self.saved) as f:
                for k, v in json.load(f):
                    self.last[tuple(k)] = v
        except (FileNotFoundError, ValueError):
            pass

    def save(self):
        rows = dict(self.last)
        rows.update({m.key(): r for m, r in self.results.items()})
        tmp = self.saved + ".tmp"
        with open(tmp, "w") as f:
            json.dump([[list(k), v] for k, v in rows.items()], f,
                indent=0)
        os.replace(tmp, self.saved)

    def chosen(self, m):
        n, k = self.args.e
        return zlib.crc32(repr(m.key()).encode()) % n == k

    def run(self, known):
        self.recent = []
        self.load()
        todo = []
        for m in self.mutants:
            if not self.chosen(m):
                continue
            old = self.last.get(m.key())
            status = old["status"] if old else "new"
            alive = status in ("survived", "not reached")
            if self.args.s and status != "new" and \
                (not alive or known.covers(m)) or \
                self.args.r and status not in ("new", "hung"):
                self.results[m] = old
            else:
                todo.append(m)
        todo.sort(key=lambda m: m.key() in self.last)
        start = time.monotonic()
        count = [0]

        def one(m):
            r = self.test(m)
            with self.lock:
                self.results[m] = r
                count[0] += 1
                if count[0] % 50 == 0:
                    self.save()
                    self.say(f"{count[0]} of {len(todo)}, "
                        f"{time.monotonic() - start:.0f} s")

        try:
            parallel(self.args.j, todo, one)
        finally:
            self.save()

    def report(self, known):
        names = [f.name for f in self.files.values() if f.mutants]
        width = max(len(n) for n in names)
        print(f"{'file':{width}} mutants killed (assert hang) known "
            f"alive  killed left out")
        unlisted = []
        totals = {}
        for f in self.files.values():
            if not f.mutants:
                continue
            g = group(f.name)[0]
            row = [0] * 7
            for m in f.ordered():
                if m not in self.results:
                    continue
                s = self.results[m]["status"]
                row[0] += 1
                if s in ("killed", "asserted", "hung"):
                    row[1] += 1
                    row[2] += s == "asserted"
                    row[3] += s == "hung"
                elif self.is_fence(m) or known.permits(m):
                    row[4] += 1
                else:
                    row[5] += 1
                    unlisted.append(m)
            row[6] = len(f.unmapped) + len(f.dropped)
            self.row(f.name, width, row)
            t = totals.setdefault(g, [0] * 7)
            for i, v in enumerate(row):
                t[i] += v
        for g, row in totals.items():
            self.row(f"[{g}]", width, row)
        for m in unlisted:
            s = self.results[m]["status"]
            print(f"{m.file}:{m.line}: {s}: {m.op}\n\t"
                f"{describe(m)}")
        stale = known.stale() if self.args.e[0] == 1 else []
        for r in stale:
            print(f"{r.file}:{r.line}: no mutant lives there")
        return not unlisted and not stale

    def is_fence(self, m):
        f = re.match(r"atomic_thread_(fence_[a-z_]+)\(\)$", m.old)
        return m.op == "delete" and f is not None and \
            (m.function, f.group(1)) in self.fences

    @staticmethod
    def row(name, width, r):
        print(f"{name:{width}} {r[0]:7} {r[1]:6} {r[2]:7} {r[3]:5} "
            f"{r[4]:6} {r[5]:5} {100 * r[1] / max(1, r[0]):6.1f}% "
            f"{r[6]:7}")


def describe(m):
    return f"{m.function}: `{m.context}`: `{m.old}` -> `{m.new}`"


class Row:
    """A reason of a table: see the top."""

    def __init__(self, table, row, file, function, most):
        self.file, self.line = table, row
        self.source, self.function, self.most = file, function, most
        self.lines = []
        self.alive = 0

    @property
    def size(self):
        return len(self.lines) or 1000

    def covers(self, m):
        return m.file == self.source and m.function == self.function and \
            (not self.lines or m.context in self.lines)

    @classmethod
    def read(cls, path, sources):
        """The reasons of a table that speak of these sources."""
        found = []
        with open(path) as f:
            for i, line in enumerate(f):
                text = line.strip()
                if not text or text[0] == "#":
                    continue
                depth = len(line) - len(line.lstrip("\t"))
                if depth == 0:
                    source, function = text.split()
                elif depth == 1:
                    found.append(cls(os.path.basename(path), i + 1, source,
                        function, int(text.split()[0])))
                else:
                    found[-1].lines.append(text)
        return [r for r in found if r.source in sources]


class Reasons:
    """What is known of mutants that live."""

    def __init__(self, files, tree):
        self.all = []
        names = {f.name for f in files}
        for t in sorted(glob.glob(os.path.join(tree,
            "tests/mutants/*.table"))):
            self.all += Row.read(t, names)

    def covers(self, m):
        return by_rule(m) or any(r.covers(m) for r in self.all)

    def permits(self, m):
        """Count a mutant that lives: the smallest part that speaks of it and
        has not as many.  Returns false if none does."""
        if by_rule(m):
            return True
        fit = [r for r in self.all if r.covers(m) and r.alive < r.most]
        if fit:
            min(fit, key=lambda r: r.size).alive += 1
        return bool(fit)

    def stale(self):
        return [r for r in self.all if r.alive == 0]


def by_rule(m):
    return any(re.search(p, f"{m.context}: {m.old} -> {m.new}")
        for p, _ in RULES)


def read_fences(path):
    """The fences whose removal the checker of memory models looks at."""
    fences = set()
    site = None
    try:
        with open(path) as f:
            for line in f:
                words = line.split()
                if line.startswith("#") or len(words) < 2:
                    continue
                if not line[0].isspace():
                    site = (words[0], words[1])
                elif words[0] == "none":
                    fences.add(site)
    except FileNotFoundError:
        pass
    return fences


def sample(text):
    """The argument of -e."""
    n, _, k = text.partition(",")
    n, k = int(n), int(k or 0)
    if not 0 <= k < n:
        raise ValueError
    return n, k


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-j", type=int, default=os.cpu_count())
    p.add_argument("-o", default="build/mutants")
    p.add_argument("-t", default=os.path.join(HERE, "../.."))
    p.add_argument("-p", help="a pattern: run these test programs only")
    p.add_argument("-n", action="store_true")
    p.add_argument("-f", action="store_true")
    p.add_argument("-m", type=int, default=None)
    p.add_argument("-q", type=float, default=600)
    p.add_argument("-r", action="store_true")
    p.add_argument("-e", type=sample, default=(1, 0))
    p.add_argument("-s", action="store_true")
    p.add_argument("files", nargs="*")
    args = p.parse_args()
    if args.f:
        bad = [f"{f}: in no group" for f in forgotten(args.t)]
        bad += unordered(args.t)
        for line in bad:
            print(line)
        return 1 if bad else 0

    run = Run(args)
    run.fences = read_fences(os.path.join(HERE, "../relacy/sites.table"))
    run.find([f for f in args.files if not left_out(f)] or
        matching(run.tree))
    run.say(f"{len(run.mutants)} mutants")
    if args.n:
        for m in run.mutants:
            print(f"{m.file}:{m.line}: {m.op}: {describe(m)}")
        return 0
    run.build()
    run.say("built")
    run.cover()
    run.say(f"{len(run.cases)} test cases reach "
        f"{len(frozenset().union(*(c.reaches for c in run.cases)))}")
    known = Reasons(run.files.values(), run.tree)
    run.run(known)
    return 0 if run.report(known) else 1


if __name__ == "__main__":
    sys.exit(main())
