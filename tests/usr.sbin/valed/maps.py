# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""What valed maps of others' memory, for valed_maps_test.sh.

VALED is valed_maps (maps_calls.c).  All of which valed maps memory is there:
adapters with clients, ports of programs, attached interfaces of both kinds, in a
network namespace of this test.
"""

import ctypes
import re
import subprocess
import sys

from vfu_client import *

CLONE_NEWNET = 0x40000000
HERE = os.path.dirname(__file__)
PORTS = os.path.join(HERE, "../valectl/valed_ports")


def interfaces():
    """h0 and x0, and the other ends of their wires."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        raise Skip("no network namespace")
    try:
        socket.socket(44, socket.SOCK_RAW).close()
        for name in "h", "x":
            subprocess.run(["ip", "link", "add", name + "0", "type", "veth",
                            "peer", "name", name + "1"], check=True)
            for end in "0", "1":
                subprocess.run(["ip", "link", "set", name + end, "up"],
                               check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        raise Skip("no AF_XDP, ip(8) or veth(4): %s" % e)
    subprocess.run([sys.executable, os.path.join(HERE, "capture.py"), "plain",
                    "x0"], check=True)


def look(v):
    """What valed says: mappings in tables, of the kernel's, unknown; and the
    unknown ones."""
    assert v.proc.poll() is None, v.messages()
    before = len(v.messages())
    v.proc.send_signal(signal.SIGRTMAX)
    said = wait_until(lambda: re.search(
        r"((?:.*\n)*)maps: (\d+) in tables, (\d+) of the kernel's, (\d+) "
        r"unknown\n", v.messages()[before:]), "what is mapped")
    return int(said[2]), int(said[3]), int(said[4]), said[1]


def maps(v, others, kernel):
    """Wait until valed maps this; all of the others' is in tables."""
    def seen():
        found = look(v)
        return found if (found[0] + found[2], found[1]) == (
            others, kernel) else None
    found = wait_until(seen, "%d mappings of others, %d of the kernel's" % (
        others, kernel), lambda: look(v))
    assert found[2] == 0, "not in the table of peer_fault.c:\n" + found[3]


def all_kinds():
    """Each mapping of memory that is not valed's own is in the handler's table,
    or is the kernel's."""
    interfaces()
    with Valed(["vm1", "vm2"], args=["-c", "control", "-a", "vale0:h0", "-a",
                                     "vale0:x0,kind=xdp"]) as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            exchange(a, b)
            # The rings of packet(7) are one; AF_XDP has four, and memory.
            # One has the ends of requests: peer_signal.c.
            maps(v, 3, 6)
            ports = subprocess.Popen(
                [PORTS, "vale0:a", "vale0:b"],
                env=dict(os.environ, VALE_SOCKET="control"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert ports.stdout.readline() == b"ready\n"
            maps(v, 5, 6)
            ports.stdin.close()
            assert ports.wait() == 0
            maps(v, 3, 6)
        maps(v, 1, 6)


def callers():
    """Only these files map memory, and this is why it cannot vanish."""
    known = {
        "lib/libpeer/peer_mem_file.c": "in the table",
        "lib/libpeer/peer_fault.c": "in place of such memory",
        "lib/libhostif/hostif_packet.c": "a packet socket's rings",
        "lib/libhostif/hostif_ring.c": "the same",
        "lib/libhostif/hostif_xdp.c": "rings of AF_XDP",
        "lib/libhostif/hostif_open_xdp.c": "made by the same function",
        "lib/libvale/vale_region.c": "of no file",
        "usr.sbin/valed/adapter_keep.c": "sealed, and of valed",
        "usr.sbin/valed/valed_guard.c": "of no file, with the guard",
        # Not in valed.
        "lib/libvaleport/vale_client.c": "a program's, of valed",
        "lib/libvaleport/vale_window.c": "the same",
        "lib/libvale/vale_netmap.c": "FreeBSD's netmap(4)",
    }
    # Tests run beside the sources.
    top = os.path.join(HERE, "../../../..")
    found = set()
    for place in "usr.sbin/valed", "lib/libctl", "lib/libframe", \
            "lib/libhostif", "lib/libpeer", "lib/libvale", \
            "lib/libvaleport", "usr.sbin/bhyve", "compat", "sys/dev/netmap":
        for root, _, names in os.walk(os.path.join(top, place)):
            for name in names:
                path = os.path.join(root, name)
                if name.endswith(".c"):
                    with open(path) as f:
                        if re.search(r"[^_a-z](mmap|mmap64|mremap|shmat)"
                                     r"\([^)\d]", f.read()):
                            found.add(os.path.relpath(path, top))
    assert found == set(known), found ^ set(known)


if __name__ == "__main__":
    main({"all_kinds": all_kinds, "callers": callers})
