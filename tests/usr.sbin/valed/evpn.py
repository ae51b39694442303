# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Guests on three hosts: evpn.py CASE PID PID PID, of the hosts' namespaces.

Host n has a valed in the directory hn, with adapters for vm1 and vm2, and tunnels,
whose tables BGP fills.  The file look has commands for host 2.
"""

import json
import os
import subprocess
import sys
import time

from vfu_client import *

PIDS = sys.argv[1:]     # the first one is the case
HOSTS = (1, 2, 3)
MAC = {"vm%d" % n: bytes((2, 0, 0, 0, 0, n)) for n in (1, 2, 3)}
IP = {"vm1": bytes((10, 9, 0, 1)), "vm2": bytes((10, 9, 0, 2))}
ALL = b"\xff" * 6
MTU = 1450


def on_host(host, *command):
    return subprocess.run(("nsenter", "-t", PIDS[host], "-n") + command,
                          check=True, stdout=subprocess.PIPE).stdout


def address(host):
    return "192.0.2.%d" % host


def text(mac):
    return mac.hex(":")


def table(host, interface, vni):
    """The bridge's and the interface's entries of a network: dictionaries."""
    return [e for e in json.loads(on_host(host, "bridge", "-j", "fdb", "show",
                                          "dev", interface))
            if e.get("src_vni", vni) == vni and
            e.get("vlan", vni // 10) == vni // 10]


def interfaces(vni):
    """The bridge's interfaces of a network: the tunnel, and to the switch."""
    if PIDS[0] == "trunk":
        return "vxlan0", "up1"
    return "vni%d" % vni, "up1" if vni == 100 else "up21"


def tunnel(host, vni=100):
    """What a host's tunnel knows: (address, host's address)."""
    return {(e["mac"], e["dst"])
            for e in table(host, interfaces(vni)[0], vni) if "dst" in e}


def at(host, name, vni=100):
    """Where a host sends frames for a guest: other hosts' addresses, and "here"
    for its own switch."""
    def learned(interface):
        return any(e["mac"] == text(MAC[name]) and "master" in e
                   for e in table(host, interface, vni))
    where = set()
    tunnels, switch = interfaces(vni)
    if learned(switch):
        where.add("here")
    # The tunnel may have an entry that the bridge does not use any more.
    if learned(tunnels):
        where |= {dst for mac, dst in tunnel(host, vni)
                  if mac == text(MAC[name])}
    return where


def known(name, there, hosts=HOSTS, vni=100):
    """Wait until all hosts send frames for a guest to this one."""
    for host in hosts:
        want = {"here" if host == there else address(there)}
        wait_until(lambda: at(host, name, vni) == want,
                   "%s of host %d at host %d" % (name, host, there),
                   lambda: (at(host, name, vni), tunnel(host, vni)))


def counter(host, kind, name, counter):
    """A counter of an adapter, or of an attached interface."""
    out = subprocess.run((os.environ["VALECTL"], "-c", "h%d/control" % host,
                          "-k", "all"), check=True, stdout=subprocess.PIPE,
                         text=True).stdout
    for line in out.splitlines():
        words = line.split()
        if words[:3] == [kind, name, counter]:
            return int(words[3])
    assert False, (kind, name, counter, out)


class Guest(Driver):
    """A guest on a host.  Its driver starts, and it sends nothing."""

    def __init__(self, host, name):
        self.host, self.name = host, name
        self.sent = self.count("tx_frames")
        Driver.__init__(self, "h%d/%s.sock" % (host, name))
        self.mac = MAC[name]

    def count(self, name):
        return counter(self.host, "adapter", self.name, name)

    def has_sent(self):
        return self.count("tx_frames") - self.sent


def arp(sender, ip):
    """A guest's request of ARP for an address."""
    return ethernet(ALL, MAC[sender], b"\0\1\x08\0\6\4\0\1" + MAC[sender] +
                    IP[sender] + bytes(6) + ip, b"\x08\x06")


def sessions(vni=100):
    """Each host knows the others' tunnels."""
    for host in HOSTS:
        want = {("00:00:00:00:00:00", address(h)) for h in HOSTS if h != host}
        wait_until(lambda: tunnel(host, vni) == want, "tunnels of host %d" %
                   host, lambda: tunnel(host, vni))


def learned(guest, vni=100):
    """The guest's address is known everywhere, although it has sent nothing."""
    known(guest.name, guest.host, vni=vni)
    assert guest.has_sent() == 0
    assert guest.count("announces") == 1


def looks(a):
    """What the page shows of host 2 has the guest on host 1."""
    shown = on_host(2, "sh", "-e", "look").decode()
    for line in ("%s dst %s self" % (text(a.mac), address(1)),
                 "10.9.0.1 lladdr %s" % text(a.mac), "%s remote" % text(a.mac)):
        assert line in shown, (line, shown)


def frames(a, b, third):
    """Frames pass, up to the MTU, and not to the third host; longer ones are
    dropped by the adapter."""
    before = counter(third, "interface", "up0", "rx_frames")
    n = 50
    for i in range(n):
        exchange(a, b)
    for src, dst in ((a, b), (b, a)):
        longest = ethernet(dst.mac, src.mac, bytes(MTU))
        src.send(longest)
        assert dst.receive() == longest
    more = counter(third, "interface", "up0", "rx_frames") - before
    assert more < n, more
    a.send(ethernet(b.mac, a.mac, bytes(MTU + 20)))
    assert a.count("tx_overmtu") == 1
    exchange(a, b)


def suppressed(a, b, bridge="br0"):
    """A host answers ARP for a guest elsewhere, which does not get it."""
    # It is not sent to other hosts: BGP tells them.
    a.send(arp(a.name, IP[a.name]))
    wait_until(lambda: any(
        n["dst"] == "10.9.0.1" and n.get("lladdr") == text(a.mac)
        for n in json.loads(on_host(b.host, "ip", "-j", "neigh", "show",
                                    "dev", bridge))), "the guest's IP address")
    b.send(arp(b.name, IP[a.name]))
    got = b.receive()
    assert got[:14] == b.mac + a.mac + b"\x08\x06", got
    assert got[20:22] == b"\0\2" and got[28:32] == IP[a.name], got
    after = ethernet(a.mac, b.mac, b"after it")
    b.send(after)
    assert a.receive() == after


def moves(a, b, host, vni=100):
    """A guest moves while another one sends to it; returns it."""
    a.close()
    lost, start = 0, time.monotonic()
    a = Guest(host, a.name)
    ready = time.monotonic()
    while True:
        lost += 1
        frame = ethernet(a.mac, b.mac, b"for one that moves %d" % lost)
        b.send(frame)
        time.sleep(0.001)
        got = a.frame()
        if got is not None and got[:6] == a.mac:
            break
    end = time.monotonic()
    print("to host %d: %.0f ms without the driver, %.0f ms without frames, "
          "%d lost" % (host, (ready - start) * 1e3, (end - ready) * 1e3,
                       lost - 1))
    known(a.name, host, vni=vni)
    assert a.has_sent() == 0
    # Those that were under way come first.
    last = ethernet(a.mac, b.mac, b"the last one")
    b.send(last)
    wait_until(lambda: a.frame() == last, "the last frame", a.state)
    exchange(a, b)
    return a


def dies(a, b):
    """A host dies; its guest is started on that of the other one."""
    for name in ("bgpd", "zebra"):
        os.kill(int(read("frr%d/%s.pid" % (a.host, name))), signal.SIGKILL)
    on_host(a.host, "ip", "link", "set", "eth0", "down")
    left = [h for h in HOSTS if h != a.host]
    for host in left:
        wait_until(lambda: address(a.host) not in
                   [dst for _, dst in tunnel(host)],
                   "no tunnel of host %d to host %d" % (host, a.host),
                   lambda: tunnel(host))
    a.close()
    with Guest(b.host, a.name) as c:
        known(c.name, b.host, left)
        exchange(c, b)


def another(a):
    """The address is announced once more when an uplink comes up, although
    another one has been up."""
    before = a.count("announces")

    def again():
        # valed looks once a second.
        for state in "down", "up":
            on_host(a.host, "ip", "link", "set", "up21", state)
            time.sleep(1.1)
        return a.count("announces") > before
    wait_until(again, "an announcement")


def moving():
    sessions()
    a, b = Guest(1, "vm1"), Guest(2, "vm2")
    learned(a)
    learned(b)
    exchange(a, b)
    frames(a, b, 3)
    suppressed(a, b)
    looks(a)
    a = moves(a, b, 3)
    a = moves(a, b, 1)
    dies(a, b)


def apart():
    """vm1 and vm2 are in VLAN 20, vm3 in VLAN 10."""
    sessions(100)
    sessions(200)
    a, b, c = Guest(1, "vm1"), Guest(2, "vm2"), Guest(3, "vm3")
    learned(a, 200)
    learned(b, 200)
    learned(c, 100)
    for host in HOSTS:
        assert not at(host, "vm1") and not at(host, "vm3", 200)
    while c.frame() is not None:
        pass
    exchange(a, b)
    a.send(ethernet(ALL, a.mac, b"to the VLAN", b"\x88\x8e"))
    assert b.receive()[:12] == ALL + a.mac
    exchange(a, b)
    a.send(ethernet(c.mac, a.mac, b"to another one", b"\x88\x8e"))
    exchange(a, b)
    assert c.frame() is None
    return a, b, c


def vlans():
    a, b, c = apart()
    another(a)


def trunk():
    a, b, c = apart()
    frames(a, b, c.host)
    suppressed(a, b, "br0.20")
    moves(moves(a, b, 3, 200), b, 1, 200)


{"moves": moving, "vlans": vlans, "trunk": trunk}[sys.argv[1]]()
