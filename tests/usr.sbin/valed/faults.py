# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Faults that other e1000 emulations had, from a client, for
valed_faults_test.sh.  e1000_faults_test has all of them against the model; here
are those that concern the host around it: how much it does at once, what it
takes for memory, and what others receive."""

import signal

from vfu_client import *
from vfu_client import main as run_case

MDIC, RAL15, RAH15 = 0x20, 0x5478, 0x547c
MDIC_LOOPBACK = 0x04204140      # BMCR: loopback, full duplex, 1000 Mb/s
RCTL_ON, RCTL_LBM = 0x0400801a, 0x40
BAR = 0xfebc0000

DEXT, DATA, RS, TSE, IFCS, EOP = (1 << 29, 1 << 20, 1 << 27, 1 << 26, 1 << 25,
                                  1 << 24)
TCP4 = 3 << 24
TSO_FRAMES = 4096               # docs/security.md
TX_FRAMES = 256                 # in a batch
RX_FRAMES = 256
GPRC, GPTC = 0x4074, 0x4080     # frames received, sent; cleared when read
UNKNOWN = 99                    # a command


class Guest(Driver):
    """A driver that writes any descriptor."""

    def descriptor(self, first, second):
        struct.pack_into("<QQ", self.ram, self.TXRING + 16 * self.tail, first,
                         second)
        self.tail = (self.tail + 1) % self.SLOTS
        return self.TXRING + 16 * ((self.tail - 1) % self.SLOTS)

    def tso(self, dst, mss, length):
        """Queue a TCP packet of `length' bytes with a header of 54, to be cut
        into segments.  Return the offset of its last descriptor."""
        at = self.TXBUF
        self.ram[at:at + length] = bytes(length)
        self.ram[at:at + 15] = dst + self.mac + b"\x08\x00\x45"
        self.ram[at + 23] = 6           # TCP
        self.ram[at + 46] = 0x50        # its header: 20 bytes
        self.descriptor(14 | 24 << 8 | 33 << 16 | 34 << 32 | 50 << 40,
                        DEXT | TSE | TCP4 | length - 54 | 54 << 40 | mss << 48)
        return self.descriptor(self.gpa + at, DEXT | DATA | RS | TSE | IFCS |
                               EOP | length | 3 << 40)

    def kick(self, last):
        self.set(TDT, self.tail)
        wait_until(lambda: self.ram[last + 12] & 1, "the last descriptor")
        self.settle()


def sent(counters):
    return counters["tx_frames"] + counters["tx_noroom"]


def amplification():
    """One descriptor makes a bounded number of frames, in as many rounds as
    they are batches; one more is refused."""
    with Valed(["vm1", "vm2", "vm3", "vm4"]) as v:
        with Guest("vm1.sock") as a, Driver("vm2.sock") as b, \
                Driver("vm3.sock") as c, Driver("vm4.sock") as d:
            exchange(a, b)
            before = v.counters("vm1")
            last = a.tso(b.mac, 1, 54 + TSO_FRAMES)
            a.set(TDT, a.tail)
            # Others, and this one's registers, are served meanwhile.
            exchange(c, d)
            assert a.get(STATUS) & 2
            wait_until(lambda: a.ram[last + 12] & 1, "the last descriptor")
            a.settle()
            after = v.counters("vm1")
            assert sent(after) - sent(before) == TSO_FRAMES, after
            rounds = after["wakeups"] - before["wakeups"]
            assert rounds >= TSO_FRAMES // TX_FRAMES, rounds
            batches = after["tx_batches"] - before["tx_batches"]
            assert batches == TSO_FRAMES // TX_FRAMES, batches

            a.kick(a.tso(b.mac, 1, 54 + TSO_FRAMES + 1))
            a.kick(a.tso(b.mac, 0, 1000))
            last = v.counters("vm1")
            assert sent(last) == sent(after), last
            assert last["tx_bad_ctx"] == 2, last
            b.call(RESET)
            b.start()
            exchange(a, b)
            exchange(c, d)


def turns():
    """A guest's accesses to registers wait for one batch each way at most: of
    the frames that it sends, and of those that others send to it."""
    # More segments than a packet may have uncut, in a ring that has them all.
    ring, slots, frames = 0x80000, 2048, 1400
    with Valed(["vm1", "vm2"]) as v:
        with Guest("vm1.sock") as a, Guest("vm2.sock") as b:
            a.set(RDLEN, 0)
            before = v.counters("vm2")
            b.kick(b.tso(a.mac, 1, 54 + frames))
            assert sent(v.counters("vm2")) - sent(before) == frames
            for i in range(slots):
                struct.pack_into("<QQ", a.ram, ring + 16 * i, a.gpa + a.RXBUF,
                                 0)
            for reg in GPRC, GPTC:
                a.get(reg)
            a.tso(b.mac, 1, 54 + 3000)

            # All that follows is in the socket before valed reads any of it.
            # A descriptor ends a read.
            v.stop()
            for reg, value in ((RDBAL, a.gpa + ring), (RDLEN, 16 * slots),
                               (RDH, 0), (RDT, slots - 1), (TDT, a.tail)):
                a.set(reg, value, post=True)
            reads = 20
            for _ in range(reads):
                a.raw(b"".join(a.message(REGION_READ,
                                         struct.pack("=QII", reg, BAR0, 4))
                               for reg in (GPTC, GPRC)) +
                      a.message(UNKNOWN, b"", F_NO_REPLY), (a.fd,))
            v.proc.send_signal(signal.SIGCONT)
            got = [struct.unpack("<I", a.reply()[2][16:])[0]
                   for _ in range(2 * reads)]
            for most, n in ((TX_FRAMES, got[0::2]), (RX_FRAMES, got[1::2])):
                n = [x for x in n if x]
                assert len(n) >= 3 and max(n) <= most, n
            b.call(RESET)
            b.start()
            wait_until(lambda: a.get(TDH) == a.tail, "the end of the packet")


def own_bar():
    """The adapter's registers are no memory: as a receive buffer, looped back
    to or from the network, and as a ring."""
    with Valed(["vm1", "vm2"]) as v:
        with Guest("vm1.sock") as a, Driver("vm2.sock") as b:
            a.region_write(CONFIG, 0x10, struct.pack("<I", BAR))
            for slot in range(6):
                struct.pack_into("<Q", a.ram, a.RXRING + 16 * slot,
                                 BAR + (TDT, RCTL, CTRL)[slot % 3])
            for i in range(3):
                b.send(ethernet(a.mac, b.mac, b"%d" % i))
            a.set(MDIC, MDIC_LOOPBACK)
            for i in range(3):
                a.send(ethernet(a.mac, a.mac, b"%d" % i))
            wait_until(lambda: v.counters("vm1")["rx_bad_addr"] == 6,
                       "six frames without memory", lambda: v.counters("vm1"))
            assert a.get(TDT) == 3 and a.get(RCTL) == RCTL_ON
            assert a.get(TDH) == 3 and a.get(RDH) == 6
            counters = v.counters("vm1")
            assert counters["loopback"] == 3, counters
            assert counters["tx_frames"] == 0, counters
            assert v.counters("vm2")["rx_frames"] == 0
            a.set(MDIC, 0x04201140)
            a.set(TDBAL, BAR + TDBAL)
            a.set(TDT, 9)
            a.set(RDBAL, BAR + RDBAL)
            b.send(ethernet(a.mac, b.mac, b"waits"))
            wait_until(lambda: v.counters("vm1")["rx_bad_ring"], "rx_bad_ring")
            assert v.counters("vm1")["tx_bad_ring"]
            a.set(TDT, a.tail)
            a.set(TDBAL, a.gpa + a.TXRING)
            a.set(RDBAL, a.gpa + a.RXRING)
            a.next_rx = 6
            assert b"waits" in a.receive()
            exchange(a, b)


def loopback():
    """A frame looped back is received once, whole, and by nobody else."""
    with Valed(["vm1", "vm2"]) as v:
        with Guest("vm1.sock") as a, Driver("vm2.sock") as b:
            a.set(RCTL, RCTL_ON | RCTL_LBM)
            for length in 14, 15, 42, 59, 60, 1514:
                frame = (a.mac + a.mac + b"\x88\xb5").ljust(length, b"\5")
                a.send(frame)
                assert a.receive() == frame.ljust(60, b"\0")
                assert a.frame() is None
            a.settle()
            counters = v.counters("vm1")
            assert counters["loopback"] == counters["rx_frames"] == 6, counters
            # More than a frame may have.
            a.kick(a.tso(a.mac, 16289 - 54, 65535))
            assert v.counters("vm1")["tx_bad_len"] == 1
            assert a.frame() is None
            a.set(RCTL, RCTL_ON)
            assert v.counters("vm1")["tx_frames"] == 0
            assert v.counters("vm2")["rx_frames"] == 0
            exchange(a, b)


def registers():
    """Accesses of odd sizes and places change nothing; rings move while they
    are on, and may have no descriptors."""
    with Valed(["vm1", "vm2"]) as v:
        with Guest("vm1.sock") as a, Driver("vm2.sock") as b:
            for reg in 0x102, 0x280a, 0x2815, 0x3ff, 0x380a, 0x3818:
                for size in 1, 3, 4:
                    if (reg, size) == (TDT, 4):
                        continue
                    with contextlib.suppress(Refused):
                        a.region_write(BAR0, reg, b"\xff" * size)
                    with contextlib.suppress(Refused):
                        a.region_read(BAR0, reg, size)
            # Writes of less than a register change only its bytes.
            assert a.get(RCTL) & 1 << 25       # BSEX
            a.call(RESET)
            a.start()
            assert a.get(RCTL) == RCTL_ON and a.get(TDT) == 0
            assert a.get(RDLEN) == a.get(TDLEN) == 16 * a.SLOTS
            assert a.get(RDT) == a.SLOTS - 1
            for i in range(1, 16):
                a.set(RAL0 + 8 * i, 0)
                a.set(RAH0 + 8 * i, 0)
            assert a.get(RAL15) == a.get(RAH15) == 0
            exchange(a, b)
            # Without descriptors, then outside memory, and back each time.
            for reg, bad, good in ((RDLEN, 0, 16 * a.SLOTS),
                                   (RDBAL + 4, 1, 0)):
                a.set(reg, bad)
                b.send(ethernet(a.mac, b.mac, b"waits"))
                wait_until(lambda: v.counters("vm1")["rx_stalls"] > (reg !=
                           RDLEN), "a stall", lambda: v.counters("vm1"))
                assert a.frame() is None
                a.set(reg, good)
                assert b"waits" in a.receive()
            for reg in TDH, RDH:
                a.set(reg, a.SLOTS)
                a.set(TDT, a.tail)
                a.call(RESET)
                a.start()
            exchange(a, b)


if __name__ == "__main__":
    run_case({f.__name__: f for f in (amplification, turns, own_bar,
                                      loopback, registers)})
