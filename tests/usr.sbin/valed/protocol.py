# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Clients that follow the protocol, for valed_protocol_test.sh: what valed makes
of it.  The protocol itself is tested beside its library, in tests/lib/libvfu."""

import contextlib
import errno
import os
import re
import signal
import struct

from vfu_client import *

MAC = "52:54:00:12:34:56"
MAC_RAL0, MAC_RAH0 = 0x12005452, 0x80005634
CTRL_DUP, EECD, EERD, MDIC, EEWR = 0x4, 0x10, 0x14, 0x20, 0x102c


def one_vm(options=""):
    return Valed(["vm1"], {"vm1": options})


def registers():
    """Both base address registers reach the adapter."""
    with one_vm(",mac=" + MAC), Client("vm1.sock") as c:
        assert (c.get(RAL0), c.get(RAH0)) == (MAC_RAL0, MAC_RAH0)
        assert c.get(CTRL) & 0x40 and c.get(STATUS) & 2     # up
        c.set(CTRL, 0)
        assert not c.get(STATUS) & 2
        c.set(CTRL, 0x40)               # set link up
        wait_until(lambda: c.get(STATUS) & 2, "link up")
        c.set(RDBAL, 0x12345670)
        # The same register through the I/O BAR: IOADDR, IODATA.
        c.region_write(BAR2, 0, struct.pack("<I", RDBAL))
        assert c.region_read(BAR2, 4, 4) == struct.pack("<I", 0x12345670)
        c.region_write(BAR2, 4, struct.pack("<I", 0xabcdef00))
        assert c.get(RDBAL) == 0xabcdef00
        # Parts of it, and an access that reaches two registers.
        for off in range(4):
            for bar, at in ((BAR0, RDBAL), (BAR2, 4)):
                assert c.region_read(bar, at + off, 1) == bytes(
                    (b"\x00\xef\xcd\xab"[off],))
        assert c.region_read(BAR0, RAL0 + 2, 4) == struct.pack("<II", MAC_RAL0,
            MAC_RAH0)[2:6]
        c.region_write(BAR0, RDBAL + 1, b"\x77")
        assert c.get(RDBAL) == 0xabcd7700
        c.region_write(BAR2, 4, b"\xf0")        # too short there
        assert c.get(RDBAL) == 0xabcd7700


def announced():
    """Without the CSB and with it configuration space differs by a capability,
    which cannot be written; with csb=compat the subsystem ID does, too."""
    for device, eerd, last in ("e1000", 8, 0xf0), ("e1000e", 2, 0xa0):
        seen = {}
        for option in ",csb=off", "", ",csb=on", ",csb=compat":
            with Valed(["vm1"], {"vm1": option}, device=device), \
                 Client("vm1.sock") as c:
                cfg = seen[option] = bytearray(c.region_read(CONFIG, 0, 256))
                c.set(EERD, 0x0b << eerd | 1)
                assert struct.pack("<H", c.get(EERD) >> 16) == cfg[0x2e:0x30]
                c.set(CSBAH, 1)
                assert c.get(CSBAH) == (option != ",csb=off")
                c.region_write(CONFIG, 0x40, b"\xa5" * 12)
                assert c.region_read(CONFIG, 0x40, 12) == cfg[0x40:0x4c]
        off = seen[",csb=off"]
        assert not any(off[0x40:0x4c]), off
        assert off[0x2e:0x30] != b"\x01\x11", off
        off[0x40:0x4c] = b"\x09\0\x0c\0PCSB\1\0\0\0"
        assert off[last + 1] == 0
        off[last + 1] = 0x40
        assert seen[""] == seen[",csb=on"] == off
        off[0x2e:0x30] = b"\x01\x11"
        assert seen[",csb=compat"] == off


# Offsets in configuration space, the contents there, and bits that a client can
# write.  All others are 0, and read-only.
CONFIG_CSB = {0x40: (0x000c0009, 0), 0x44: (0x42534350, 0), 0x48: (1, 0)}
CONFIG_WORDS = {
    "e1000": {
        0x00: (0x100f8086, 0), 0x04: (0x02300000, 0x0557),
        0x08: (0x02000003, 0), 0x0c: (0, 0xffff),
        0x10: (0, 0xfffe0000), 0x18: (1, 0xfffffff8),       # BARs
        0x2c: (0x10088086, 0), 0x34: (0xdc, 0), 0x3c: (0x00ff0100, 0xff),
        0xdc: (0x0002f001, 0), 0xe0: (8, 3),                # power management
        0xf0: (0x00804005, 0x00010000), 0xf4: (0, 0xfffffffc),      # MSI
        0xf8: (0, 0xffffffff), 0xfc: (0, 0xffff), **CONFIG_CSB},
    "e1000e": {
        0x00: (0x10d38086, 0), 0x04: (0x00100000, 0x0547),
        0x08: (0x02000000, 0), 0x0c: (0, 0xff),
        0x10: (0, 0xfffe0000), 0x14: (0, 0xfffe0000),       # BARs
        0x18: (1, 0xffffffe0), 0x1c: (0, 0xffffc000),
        0x2c: (0xa01f8086, 0), 0x34: (0xc8, 0), 0x3c: (0x0100, 0xff),
        0xa0: (0x00044011, 0xc0000000), 0xa4: (3, 0), 0xa8: (0x2003, 0), # MSI-X
        0xc8: (0x0003d001, 0), 0xcc: (8, 3),                # power management
        0xd0: (0x0080e005, 0x00010000), 0xd4: (0, 0xfffffffc),      # MSI
        0xd8: (0, 0xffffffff), 0xdc: (0, 0xffff),
        0xe0: (0x0001a010, 0), 0xe4: (0x8001, 0),           # PCI Express
        0xe8: (0x2810, 0x7fff), 0xec: (0x11, 0), 0xf0: (0x00110000, 0xcb),
        **CONFIG_CSB}}


def config_words(words):
    """All words of a new adapter, and when all bits were written as ones."""
    reset, ones = [0] * 64, [0] * 64
    for off, (value, writable) in words.items():
        reset[off // 4], ones[off // 4] = value, value | writable
    return reset, ones


def config_space():
    """An adapter of PCI Express has the configuration space of one, without
    extended capabilities; clients look for these at 0x100.  The rest is as a
    driver finds it, and can change it."""
    for device, size in ("e1000", 256), ("e1000e", 4096):
        with Valed(["vm1"], device=device), Client("vm1.sock") as c:
            info = c.call(GET_REGION_INFO,
                          struct.pack("=IIIIQQ", 32, 0, CONFIG, 0, 0, 0))
            assert info == struct.pack("=IIIIQQ", 32, 3, CONFIG, 0, size, 0)
            assert len(c.region_read(CONFIG, 0, size)) == size
            refused(errno.EINVAL, c.region_read, CONFIG, size, 4)
            if size > 0x100:
                c.region_write(CONFIG, 0x100, b"\xff" * (size - 0x100))
                assert not any(c.region_read(CONFIG, 0x100, size - 0x100))
            for want in config_words(CONFIG_WORDS[device]):
                got = struct.unpack("<64I", c.region_read(CONFIG, 0, 256))
                for i in range(64):
                    assert got[i] == want[i], (hex(4 * i), hex(got[i]))
                c.region_write(CONFIG, 0, b"\xff" * 256)


def interrupts():
    """What asserts the line sends an event, by MSI and by INTx, which the
    client unmasks by command and by eventfd."""
    with one_vm() as v, Driver("vm1.sock") as c:
        fd = eventfd()
        c.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(fd,))
        c.set(IMS, ICR_TXDW)
        for _ in range(2):
            c.set(ICS, ICR_TXDW)
            assert wait_event(fd) == 1
            c.set(ICS, ICR_TXDW)
            assert fired(fd) == 0
            assert c.get(ICR) & ICR_TXDW
        c.send(ethernet(b"\xff" * 6, c.mac, b"x"))
        assert wait_event(fd) == 1
        assert v.counters("vm1")["irq_sent"] == 3
        # What was sent does not come once the driver has turned it off.
        c.set(IMC, 0xffffffff)
        c.set(IMS, ICR_TXDW)
        c.set(ICS, ICR_TXDW)
        wait_until(lambda: v.counters("vm1")["irq_sent"] == 4, "irq_sent 4")
        c.set(IMC, ICR_TXDW)
        assert fired(fd) == 0
        c.get(ICR)
        c.set(IMS, ICR_TXDW)
        c.set_irqs(MSI, IRQ_NONE | IRQ_TRIGGER, 0, 0)
        c.get(ICR)

        c.set_irqs(INTX, IRQ_EVENTFD | IRQ_TRIGGER, fds=(fd,))
        c.set(ICS, ICR_TXDW)
        assert wait_event(fd) == 1
        # Until it is unmasked, the client asserts the guest's line.
        c.set(ICS, ICR_TXDW)
        c.get(STATUS)
        assert fired(fd) == 0
        c.set_irqs(INTX, IRQ_NONE | IRQ_UNMASK)
        assert wait_event(fd) == 1
        # As KVM's resampling does.
        unmask = eventfd()
        c.set_irqs(INTX, IRQ_EVENTFD | IRQ_UNMASK, fds=(unmask,))
        os.eventfd_write(unmask, 1)
        assert wait_event(fd) == 1


def traffic():
    with Valed(["vm1", "vm2"]) as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock", 0x7000000000) as b:
            for _ in range(100):
                exchange(a, b)
            # A batch posted at once.
            frames = [ethernet(b.mac, a.mac, b"%d" % i)
                      for i in range(20)]
            for frame in frames:
                a.queue(frame)
            a.set(TDT, a.tail, post=True)
            assert [b.receive() for _ in frames] == frames
            a.settle()
            one, two = v.counters("vm1"), v.counters("vm2")
            assert one["tx_frames"] == two["rx_frames"] == 120
            assert two["tx_frames"] == one["rx_frames"] == 100
            assert one["tx_kicks"] == 102       # one sets TDT to 0
            assert one["port_tx_frames"] == 120
            assert one["tx_bytes"] == two["rx_bytes"]
            # The receiver of a frame is interrupted.
            fd = eventfd()
            b.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(fd,))
            b.set(IMS, ICR_RXT0)
            for _ in range(3):
                b.get(ICR)
                fired(fd)
                a.send(frames[0])
                assert wait_event(fd) == 1
                assert b.receive() == frames[0]


def one_copy():
    """A frame is copied once from guest to guest, or twice if it goes through
    the port's ring, because it waits for a buffer or the receiver is at work;
    frames keep their order."""
    def check(frames, waited):
        c = v.counters("vm2")
        ring = c["port_rx_copies"]
        assert c["rx_frames"] == c["port_rx_frames"] == frames, c
        assert waited <= ring, c
        assert ring < frames or waited == frames, c
        assert c["port_rx_direct"] == frames - ring, c
        assert c["copies"] == frames + ring, c

    with Valed(["vm1", "vm2"]) as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            frames = [ethernet(b.mac, a.mac, b"%d" % i) for i in range(200)]
            for frame in frames:
                a.send(frame)
                assert b.receive() == frame
            check(200, 0)
            # All posted buffers are filled, and 19 frames wait.
            for frame in frames[:b.SLOTS - 1 + 19]:
                a.send(frame)
            for frame in frames[:b.SLOTS - 1 + 19]:
                assert b.receive() == frame
            check(200 + b.SLOTS - 1 + 19, 19)

            # Frames go direct again once the port's ring is empty.
            def again():
                before = v.counters("vm2")["port_rx_direct"]
                a.send(frames[0])
                assert b.receive() == frames[0]
                return v.counters("vm2")["port_rx_direct"] > before
            wait_until(again, "a frame that goes direct")
    with Valed(["vm1", "vm2"], {"vm2": ",direct=off"}) as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            for _ in range(10):
                exchange(a, b)
            check(10, 10)
            assert v.counters("vm1")["copies"] == 10


def no_bus_master_rx():
    """A VM without bus mastering or memory receives no frames."""
    with Valed(["vm1", "vm2"]) as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            def nothing():
                direct = v.counters("vm2")["port_rx_direct"]
                before = bytes(b.ram)
                a.send(frame)
                c = v.counters("vm2")
                assert c["port_rx_direct"] == direct, c
                assert bytes(b.ram) == before
                assert b.frame() is None

            exchange(a, b)
            frame = ethernet(b.mac, a.mac, b"waits")
            b.region_write(CONFIG, 4, struct.pack("<H", 3))
            nothing()
            b.region_write(CONFIG, 4, struct.pack("<H", 7))
            assert b.receive() == frame

            b.dma_unmap(b.gpa, b.SIZE)
            nothing()
            b.dma_map(b.gpa, b.SIZE, b.fd)
            assert b.receive() == frame
            exchange(a, b)

            b.call(RESET)
            nothing()
            b.start()
            exchange(a, b)


def live():
    """-v prints what was counted and dropped since the line before."""
    with Valed(["vm1", "vm2"], {"vm1": ",mtu=100"}, ["-v"]) as v:
        def total(pattern):
            return sum(map(int, re.findall("^vm1 tx .*" + pattern,
                                           read("valed.out"), re.M)))

        def lines():
            return read("valed.out").count("vm1 tx ")
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            exchange(a, b)
            for _ in range(5):
                a.send(ethernet(b.mac, a.mac, b"x"))
                b.receive()
            for _ in range(2):
                a.send(ethernet(b.mac, a.mac, bytes(500)))
        wait_until(lambda: total(r", tx_overmtu (\d+)") == 2, "two drops")
        # Nothing is counted again.
        n = lines()
        wait_until(lambda: lines() > n + 1, "two lines")
        for pattern, want in ((r", tx_overmtu (\d+)", 2),
                              (r", port tx (\d+) ", 6),
                              (r", port tx \d+ rx (\d+)", 1),
                              (r", rx (\d+) frames", 1)):
            assert total(pattern) == want, (pattern, read("valed.out"))


def delays_interrupts(option, itr):
    with one_vm(option) as v, Driver("vm1.sock") as c:
        fd = eventfd()
        c.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(fd,))
        c.set(ITR, itr)
        c.set(IMS, ICR_TXDW)
        c.set(ICS, ICR_TXDW)
        assert wait_event(fd) == 1

        # The interval is 17 ms; on a slow machine each interrupt may come
        # after it.
        def delayed():
            for _ in range(3):
                c.get(ICR)
                fired(fd)
                c.set(ICS, ICR_TXDW)
            return v.counters("vm1")["intr_held"]
        wait_until(delayed, "a delayed interrupt")
        assert wait_event(fd) == 1


def moderation():
    """itr= delays interrupts for a guest that leaves ITR at 0, and itr_min=
    for any guest."""
    delays_interrupts(",itr=65535", 0)
    delays_interrupts(",itr_min=65535", 1)


def csb():
    """The adapter sends frames up to the tail in the CSB, with a kick if it
    asks for one, and stops polling when the client disconnects."""
    page, tdt, need_rxkick, on, rdt, txkick_at = 0x8000, 0, 8, 12, 16, 20
    need_txkick, limit, rxkick_at = 68, 72, 92

    with Valed(["vm1", "vm2"]) as v, Driver("vm2.sock") as b:
        with Driver("vm1.sock") as a:
            # One load or store for each access: pack_into() clears first, and
            # the adapter, which polls, would see a tail of 0.
            block = memoryview(a.ram)[page:page + 4096].cast("I")

            def put(field, value):
                block[field // 4] = value

            def look(field):
                return block[field // 4]

            put(need_txkick, 1)
            put(need_rxkick, 1)
            put(txkick_at, 0xffffffff)
            put(limit, 0xffffffff)
            put(rdt, a.SLOTS - 1)
            put(on, 1)
            a.set(CSBAH, (a.gpa + page) >> 32)
            a.set(CSBAL, (a.gpa + page) & 0xffffffff)
            wait_until(lambda: look(rxkick_at) == 0xffffffff, "use of the CSB",
                       lambda: hex(look(rxkick_at)))
            kicks = v.counters("vm1")["tx_kicks"]
            for i in range(100):
                frame = ethernet(b.mac, a.mac, b"frame %d" % i)
                a.queue(frame)
                put(tdt, a.tail)
                # The system call is a full barrier.
                assert a.get(STATUS) & 2
                if look(need_txkick) & 1:
                    kicks += 1
                    a.set(TDT, a.tail)
                assert b.receive() == frame
            a.settle()
            counters = v.counters("vm1")
            assert counters["tx_kicks"] == kicks
            assert counters["tx_frames"] == 100
            assert counters["csb_on"] == 1
            # After this kick the adapter polls while the client disconnects.
            a.set(TDT, a.tail)
        wait_until(lambda: v.counters("vm1")["csb_off"] == 1, "csb_off")
        with Driver("vm1.sock") as a:
            exchange(a, b)


def bus_master():
    """Without bus mastering the adapter does not access memory."""
    with Valed(["vm1", "vm2"]) as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            exchange(a, b)
            a.region_write(CONFIG, 4, struct.pack("<H", 3))
            frame = ethernet(b"\xff" * 6, a.mac, b"posted")
            a.queue(frame)
            a.set(TDT, a.tail)
            b.send(ethernet(b"\xff" * 6, b.mac, b"waiting"))
            assert b.frame() is None and a.frame() is None
            assert v.counters("vm1")["tx_frames"] == 1
            a.region_write(CONFIG, 4, struct.pack("<H", 7))
            assert b.receive() == frame
            assert b"waiting" in a.receive()

            # Nor does a reset, though a CSB was in use.
            a.set(CSBAH, 0)
            a.set(CSBAL, a.gpa + 0x8000)
            a.settle()
            a.region_write(CONFIG, 4, struct.pack("<H", 3))
            a.set(TDT, a.tail)
            a.ram[0x8000:0x9000] = b"\xaa" * 4096
            before = bytes(a.ram)
            a.set(CTRL, 1 << 26)
            # A reply comes after all that its message caused.
            a.settle()
            assert bytes(a.ram) == before


def dma():
    """Ranges are mapped and unmapped; the adapter reaches what is mapped."""
    with Valed(["vm1", "vm2"]) as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            exchange(a, b)
            a.dma_unmap(a.gpa, a.SIZE)
            a.queue(ethernet(b"\xff" * 6, a.mac, b"lost"))
            a.set(TDT, a.tail)
            wait_until(lambda: v.counters("vm1")["tx_bad_ring"], "tx_bad_ring")
            # The file is unmapped when a while has passed.
            wait_until(lambda: v.mappings() == 1, "the file is mapped")
            # In two halves of the file, beside a range like a ROM's.
            half = a.SIZE // 2
            a.dma_map(a.gpa, half, a.fd, 0)
            a.dma_map(a.gpa + half, half, a.fd, half)
            a.dma_map(0xfffc0000, 0x40000)
            assert v.mappings() == 2
            a.call(RESET)
            a.start()
            exchange(a, b)
            # What may only be read is not written, nor the other way round.
            reads, writes = 0x1000000, 0x2000000
            a.dma_map(reads, 0x1000, a.fd, 0x80000, 1)
            a.dma_map(writes, 0x1000, a.fd, 0x80000, 2)
            before = bytes(a.ram[0x80000:0x81000])
            struct.pack_into("<Q", a.ram, a.RXRING + 16 * a.next_rx, reads)
            b.send(ethernet(a.mac, b.mac, b"lost"))
            wait_until(lambda: v.counters("vm1")["rx_bad_addr"] == 1,
                       "rx_bad_addr")
            assert a.ram[0x80000:0x81000] == before
            struct.pack_into("<QHBBBBH", a.ram, a.TXRING + 16 * a.tail,
                             writes, 60, 0, 0x0b, 0, 0, 0)
            a.tail = (a.tail + 1) % a.SLOTS
            a.set(TDT, a.tail)
            wait_until(lambda: v.counters("vm1")["tx_bad_addr"] == 1,
                       "tx_bad_addr")


def unshared():
    def lines(v, text):
        return sum(text in line for line in v.messages().splitlines())

    with Valed(["vm1"]) as v:
        # Of a client that asks about the device before it has memory.
        with Client("vm1.sock") as a:
            a.call(GET_INFO, struct.pack("=IIII", 16, 0, 0, 0))
            a.dma_map(0x100000, 0x100000)
            refused(errno.EOPNOTSUPP, a.call, GET_INFO,
                    struct.pack("=IIII", 16, 0, 0, 0))
            assert lines(v, "vm1: client refused: it shares no memory") == 1
            a.region_write(CONFIG, 4, struct.pack("<H", 7))
            a.set(TDBAL, 0x101000)
            a.set(TDLEN, 512)
            a.set(TCTL, 0x0a)
            for i in range(20):
                a.set(TDT, 1 + i % 2)
            wait_until(lambda: lines(v, "vm1: the guest uses memory that its "
                                     "client does not share, at 0x101000: "
                                     "QEMU needs"), "a line")
            a.get(STATUS)
            assert lines(v, "does not share") == 1, v.messages()
        v.idle("vm1")
        # Of one whose guest writes to a copy of the memory.
        with Driver("vm1.sock") as a:
            for i in range(20):
                a.set(TDT, 1 + i)
            wait_until(lambda: lines(v, "vm1: the guest's transmit descriptors "
                                     "are not in its memory at 0x101000"),
                       "a line")
            a.get(STATUS)
            assert lines(v, "are not in its memory") == 1, v.messages()
            assert len(v.messages().splitlines()) == 3, v.messages()
        v.idle("vm1")
        # Not of one that has sent.
        with Driver("vm1.sock") as a:
            a.send(ethernet(b"\xff" * 6, a.mac, b"sent"))
            a.set(TDT, 3)
            a.settle()
            assert len(v.messages().splitlines()) == 3, v.messages()


def reset():
    with Valed(["vm1", "vm2"]) as v:
        with Driver("vm1.sock") as a, Driver("vm2.sock") as b:
            fd = eventfd()
            a.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(fd,))
            exchange(a, b)
            a.set(IMS, ICR_TXDW)
            a.call(RESET)
            assert (a.get(TDT), a.get(RCTL), a.get(IMS)) == (0, 0, 0)
            assert a.region_read(CONFIG, 4, 2) == b"\0\0"
            assert v.counters("vm1")["resets"] >= 1
            # Memory and interrupts are still set up.
            a.start()
            exchange(a, b)
            a.get(ICR)
            fired(fd)
            a.set(IMS, ICR_TXDW)
            a.set(ICS, ICR_TXDW)
            assert wait_event(fd) == 1


def stopped():
    """valed is stopped, as by a debugger or together with its host, while
    frames, accesses and interrupts are due.  They are served afterwards, and
    no client is dropped."""
    with Valed(["vm1", "vm2"]) as v, Driver("vm1.sock") as a, \
            Driver("vm2.sock") as b:
        exchange(a, b)
        fd = eventfd()
        b.set_irqs(MSI, IRQ_EVENTFD | IRQ_TRIGGER, fds=(fd,))
        b.set(IMS, ICR_RXT0)
        b.get(ICR)
        before = [v.counters(n) for n in ("vm1", "vm2")]
        for i in range(3):
            fired(fd)
            v.stop()
            frames = [ethernet(b.mac, a.mac, b"%d %d" % (i, n))
                      for n in range(20)]
            for frame in frames:
                a.queue(frame)
            a.set(TDT, a.tail, post=True)
            b.raw(b.message(REGION_READ, struct.pack("=QII", STATUS, BAR0, 4)))
            v.proc.send_signal(signal.SIGCONT)
            b.reply()
            for frame in frames:
                assert b.receive() == frame
            wait_event(fd)
            assert b.get(ICR) & ICR_RXT0
        for n, was in zip(("vm1", "vm2"), before):
            now = v.counters(n)
            for c in "connects", "disconnects", "broken", "gone", "errors":
                assert now[c] == was[c], (n, c, was[c], now[c])


def word(c, device, i):
    """A word of the EEPROM."""
    c.set(EERD, i << (2 if device == "e1000e" else 8) | 1)
    return c.get(EERD) >> 16


def dump(c, device):
    """All that a client can read of the adapter: registers, words of the EEPROM,
    PHY registers of each page, configuration space."""
    def mdic(reg, value=None):
        op = 2 << 26 if value is None else 1 << 26 | value
        c.set(MDIC, op | 1 << 21 | reg << 16)
        return c.get(MDIC) & 0xffff
    config = c.region_read(CONFIG, 0, 256)
    regs = {reg: c.get(reg) for reg in range(0, 0xc000, 4)}
    io = c.region_read(BAR2, 0, 4)
    words = [word(c, device, i) for i in range(64)]
    phy = []
    for page in range(4):
        mdic(29, page)
        phy += [mdic(reg) for reg in range(29)] + [mdic(30), mdic(31)]
    return config, regs, io, words, phy


def scribble(c, device):
    """Write all that a client can write."""
    for value in 0xa5a5a5a5, 0xffffffff:
        for reg in range(0, 0xc000, 4):
            # Without a reset of the adapter or the PHY.
            c.set(reg, value & ~0x84000000 if reg in (CTRL, CTRL_DUP) else
                  value, post=True)
    for reg in range(32):
        for page in range(4):
            c.set(MDIC, 1 << 26 | 1 << 21 | 29 << 16 | page, post=True)
            c.set(MDIC, 1 << 26 | 1 << 21 | reg << 16 | 0x1e5a, post=True)
    c.region_write(BAR2, 0, struct.pack("<I", 0x5a5a))
    # The EEPROM: by EEWR; by the wires of EECD, an "enable" and "write all".
    if device == "e1000e":
        for i in range(64):
            c.set(EEWR, 0xbeef << 16 | i << 2 | 1)
    else:
        for bits in "100110000", "100010000" + format(0xbeef, "016b"):
            c.set(EECD, 0x40)
            c.set(EECD, 0x42)
            for bit in bits:
                for clock in 0, 1, 0:
                    c.set(EECD, 0x42 | int(bit) << 2 | clock)
            c.set(EECD, 0x40)
    assert word(c, device, 5) == 0xbeef, hex(word(c, device, 5))
    for off in range(4, 256):
        c.region_write(CONFIG, off, b"\xff")


def tenants():
    """Whatever a client has written, the next one finds an adapter as that of a
    valed that has just started."""
    for device in "e1000", "e1000e":
        with Valed(["vm1"], {"vm1": ",mac=" + MAC + ",csb=on"},
                   device=device) as v:
            with Client("vm1.sock") as c:
                new = dump(c, device)
            v.idle("vm1")
            with Client("vm1.sock") as c:
                scribble(c, device)
                assert c.get(RAL0) != MAC_RAL0
                # As before, also after a reset of the guest's.
                c.call(RESET)
                assert c.get(RAL0) != MAC_RAL0
            v.idle("vm1")
            with Client("vm1.sock") as c:
                for was, now in zip(new, dump(c, device)):
                    if was != now and isinstance(was, dict):
                        raise AssertionError([(hex(r), hex(was[r]), hex(now[r]))
                                              for r in was if was[r] != now[r]])
                    assert was == now, (was, now)


def serves():
    """Wait until valed answers at a.sock; for valed_options_test.sh."""
    def answers():
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            with Client("a.sock") as c:
                return c.region_read(CONFIG, 0, 2) == b"\x86\x80"
    wait_until(answers, "an adapter at a.sock")


if __name__ == "__main__":
    main({f.__name__: f for f in (
        registers, announced, config_space, interrupts, traffic, one_copy,
        no_bus_master_rx, live, moderation, csb, bus_master, dma, unshared,
        reset, tenants, stopped, serves)})
