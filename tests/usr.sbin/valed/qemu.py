# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Valed's adapters and QEMU's own, side by side, for valed_qemu_test.sh: both
get the same registers, descriptors and frames, at random, and what a guest can
read afterwards is the same.  Qtest, a protocol of QEMU's, takes the place of a
guest.  SEED and ROUNDS in the environment choose others, and more."""

from random import (choice, getrandbits, randbytes, random, randrange, sample,
                    seed)

from vfu_client import *
from vfu_client import main as run_case

socket.setdefaulttimeout(WAIT_S)
QEMU = os.environ["QEMU"]
MAC, BAR, ALL = b"\x52\x54\0\x12\x34\x56", 0xe0000000, 0xffffffff
EERD, MDIC, VET, RXCSUM, RFCTL = 0x14, 0x20, 0x38, 0x5000, 0x5008
MTA, VFTA, MRQC, RETA, RSSRK, PSRCTL = (0x5200, 0x5600, 0x5818, 0x5c00, 0x5c80,
                                        0x2170)
RINGS, BUFS, BUFSIZE = (0x100000, 0x140000), (0x200000, 0x300000), 2048
LAST = b"\2end\0\0\x88\xb6".ljust(54, b"\0")    # behind a destination

# What QEMU's adapters do otherwise, and ours by the manual: the adapters, what
# is read, the first and last register, the bits.  Sections are those of the
# manual of the 8254x, or (L) of the datasheet of the 82574L.  None are asked
# for legacy checksums, which QEMU's do not insert (3.3.3).
BOTH, EM, L = ("e1000", "e1000e"), ("e1000",), ("e1000e",)
KNOWN = (
    (L, "reset", 0x28, 0x30, ALL, "flow control's are 0: L 10.2.2"),
    (L, "causes", ICR, ICS, 1 << 31, "INT_ASSERTED if masked: L 10.2.4"),
    (L, "masked", 0, 0, 1, "ICR is cleared if all is masked: L 10.2.4"),
    (BOTH, "raised", 0, 0, 1 << 15, "no TXD_LOW: 13.4.43, LWTHRESH"),
    (L, "raised", 0, 0, 1 << 31 | 1 << 17, "as above, and ACK: L 10.2.4"),
    (L, "raised", 0, 0, 1 << 4, "no RXDMT0 if a frame jumps it: 3.2.7.2"),
    (EM, "TSO of IPv6", 0, 0, 1, "its length is 40 too long: 3.5"),
    (EM, "full end", 0, 0, 1, "a segment without payload follows: 3.5"),
    (L, "TSO of UDP", 0, 0, 1, "fragments are sent: 3.5"),
    (L, "FIN, PSH", 0, 0, 1, "the last segment has none: 3.5"),
    (L, "CRC", 0, 0, 1, "it takes another descriptor: 13.4.22, SECRC"),
    (L, "padding", 0, 0, 18, "it is not counted: 13.7"),
    (BOTH, "MPE", 0, 0, 1 << 15, "broadcasts need BAM: 13.4.22"),
    (BOTH, "TSO", 0x4000, 0x4124, ALL, "one packet is counted: 13.7"),
    (BOTH, "counts", 0x405c, 0x4070, ALL, "PRC count no stripped CRC: 13.7"),
    (BOTH, "counts", 0x4088, 0x408c, ALL, "GORC, no stripped tags: 13.7"),
    (BOTH, "counts", 0x40c0, 0x40c4, ALL, "TOR, only what is taken: 13.7"),
    (BOTH, "counts", 0x40d0, 0x40d0, ALL, "TPR, the same: 13.7"),
    (EM, "counts", 0x4078, 0x407c, ALL, "no BPRC, MPRC: 13.7"),
    (EM, "counts", 0x4090, 0x40f4, ALL, "no GOTC, PTC; TOT without tags"),
    (BOTH, "packet checksum", 0, 0, 0xffff, "none: 3.2.3"),
    (EM, "status", 0, 0, 0x60f4, "no checksum is verified: 3.2.9"),
    (L, "status", 0, 0, 0xf8294, "PIF, UDPCS, types, IPIDV: L 7.1"),
)
# Registers that store what is written, and have no effect before others are:
# the adapters, the first and last, the bytes between them, and the bits.
STORED = (
    (BOTH, VET, VET, 4, 0xffff), (BOTH, RCTL, RCTL, 4, 0x6dfb3fc),
    (BOTH, TCTL, TCTL, 4, 0x3fffff8), (BOTH, MTA, 0x53fc, 4, ALL),
    (BOTH, RAL0, 0x5478, 8, ALL), (BOTH, RAH0, 0x547c, 8, 0x8003ffff),
    (BOTH, VFTA, 0x57fc, 4, ALL), (BOTH, RDBAL, RDBAL, 4, 0xfffffff0),
    (BOTH, RDH, RDT, 8, 0xffff), (BOTH, TDH, TDT, 8, 0xffff),
    (L, 0x28, 0x28, 4, ALL), (L, 0x2910, 0x2918, 8, 0xffff),
    (L, RFCTL, RFCTL, 4, 0xfffff), (L, MRQC, MRQC, 4, 0xffff0003),
    (L, PSRCTL, PSRCTL, 4, 0x3f3f3f7f), (L, RETA, 0x5ca4, 4, ALL))


class Qemu:
    """A QEMU with one adapter."""

    def __init__(self, name, device, *args):
        null = subprocess.DEVNULL
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(name)
            s.listen()
            self.proc = subprocess.Popen(
                [QEMU, *"-nodefaults -no-user-config -display none -m 64 "
                 "-machine q35,memory-backend=m -qtest-log none -accel qtest "
                 "-object memory-backend-memfd,id=m,size=64M,share=on -qtest"
                 .split(),
                 "unix:" + name, *args, "-device", json.dumps(device)],
                stdin=null, stdout=null, stderr=null)
            atexit.register(self.proc.kill)
            self.lines = s.accept()[0].makefile("rw")
        for reg, value in (0x10, BAR), (0x14, BAR + 0x100000), (4, 7):
            self.command("outl", 0xcf8, 0x80001000 | reg)
            self.command("outl", 0xcfc, value)

    def command(self, *words):
        print(*words, file=self.lines, flush=True)
        answer = self.lines.readline().split()
        assert answer[0] == "OK", answer
        return answer[-1]

    def get(self, reg):
        return int(self.command("readl", BAR + reg), 16)

    def read(self, at, n):
        return bytes.fromhex(self.command("read", at, n)[2:])


class Pair(contextlib.ExitStack):
    """Valed's adapter and QEMU's, and what sends to each on its wire."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.enter_context(Valed(
            ["vm1"], {"vm1": ",mac=52:54:00:12:34:56"},
            ("-s", "2,e1000,vale0:wire,path=wire.sock"), device=model))
        self.wire = self.enter_context(Driver("wire.sock"))
        at = {"bus": "pcie.0", "addr": "2"}
        with socket.socket(socket.AF_UNIX) as s:
            s.bind("net")
            s.listen()
            qemu = Qemu("qemu.qtest", dict(
                at, driver="e1000-82545em" if model == "e1000" else model,
                mac="52:54:00:12:34:56", netdev="n0"), "-netdev",
                "stream,id=n0,server=off,addr.type=unix,addr.path=net")
            self.net = s.accept()[0].makefile("rwb")
        self.both = Qemu("ours.qtest", dict(
            at, driver="vfio-user-pci",
            socket={"type": "unix", "path": "vm1.sock"})), qemu
        for q in self.both:
            self.callback(lambda q=q: (q.proc.kill(), q.proc.wait()))

    def get(self, reg):
        return [q.get(reg) for q in self.both]

    def set(self, reg, value):
        """Write a register, which has an effect when one has been read."""
        for q in self.both:
            q.command("writel", BAR + reg, value)

    def read(self, at, n):
        return [q.read(at, n) for q in self.both]

    def write(self, at, data):
        for q in self.both:
            q.command("write", at, len(data), "0x" + data.hex())

    def known(self, name, reg=0):
        """Return the bits that may differ."""
        bits = 0
        for models, what, first, last, known, _ in KNOWN:
            if self.model in models and name == what and first <= reg <= last:
                bits |= known
        return bits

    def same(self, what, ours, qemu, known=0):
        assert not (ours ^ qemu) & ~known & ALL, "%s: ours %x, QEMU's %x" % (
            what, ours, qemu)

    def same_after(self, what, tso=False):
        """Compare causes and statistics, which reading clears."""
        self.same(what + ": ICR", *self.get(ICR), self.known("raised"))
        for reg in range(0x4000, 0x4128, 4):
            self.same("%s: statistics register %x" % (what, reg),
                      *self.get(reg), self.known("counts", reg) |
                      (self.known("TSO", reg) if tso else 0))


def registers(pair):
    stored = [(reg, bits) for models, first, last, step, bits in STORED
              if pair.model in models for reg in range(first, last + 1, step)]
    for reg, bits in stored:
        pair.same("%x after a reset" % reg, *pair.get(reg),
                  pair.known("reset", reg) | ~bits)
    for pattern in 0, ALL, 0x5a5a5a5a, 0xa5a5a5a5, getrandbits(32):
        for reg, bits in stored:
            pair.set(reg, pattern & bits)
        for reg, bits in stored:
            pair.same("%x after %x" % (reg, pattern), *pair.get(reg), ~bits)
    for reg in 0, 2, 3, 4:
        pair.set(MDIC, 1 << 27 | 1 << 21 | reg << 16)
        pair.same("register %d of the PHY" % reg, *pair.get(MDIC))
    for n in range(64):
        pair.set(EERD, 1 | n << (8 if pair.model == "e1000" else 2))
        # Other words than the address are the vendor's.
        pair.same("word %d of the EEPROM" % n, *pair.get(EERD),
                  (n > 2) * ALL << 16)
    causes = 0x1ffff if pair.model == "e1000" else 0x1f782d7
    for n in range(20 * ROUNDS):
        reg = choice((ICR, ICS, ICS, IMS, IMS, IMC))
        value = getrandbits(25) & getrandbits(25) & causes
        text = "%d: %x" % (n, reg)
        icr, ims = pair.get(ICS)[0], pair.get(IMS)[0]
        if getrandbits(1):
            pair.set(reg, value)
            text += " set to %x" % value
        elif reg != ICR or icr & ims or not (ims and pair.known("masked")):
            pair.same(text, *pair.get(reg), pair.known("causes", reg))
        pair.same(text + ": IMS", *pair.get(IMS))
        pair.same(text + ": ICS", *pair.get(ICS), pair.known("causes", ICS))


def inet_sum(data):
    return sum(struct.unpack(">%dH" % (len(data) + 1 >> 1), data +
                             bytes(len(data) & 1))) % 0xffff


class Packet:
    """A random packet, with the checksum of the pseudo-header."""

    def __init__(self, payload, v6, tcp, dst, src, told=True, flags=0x10):
        self.v6, self.l3 = v6, 40 if v6 else choice((20, 28))
        address, proto = randbytes(32 if v6 else 8), 6 if tcp else 17
        l4 = choice((20, 32)) if tcp else 8
        size = told * (l4 + payload)
        self.sum = 14 + self.l3 + (16 if tcp else 6)
        self.header = 14 + self.l3 + l4
        head = struct.pack(">IHBB", 6 << 28 | getrandbits(20), size, proto,
                           64) if v6 else struct.pack(
            ">BBHIBBH", 0x40 | self.l3 // 4, 0, told * self.l3 + size,
            getrandbits(16) << 16 | 0x4000, 64, proto, 0)
        sum = inet_sum(address + struct.pack(">HH", proto, size))
        self.frame = bytearray(
            dst + src + (b"\x86\xdd" if v6 else b"\x08\0") +
            (head + address).ljust(self.l3, b"\1") +
            (struct.pack(">HHQBBHI", getrandbits(16), 80, getrandbits(64),
                         l4 // 4 << 4, flags, 1000, sum << 16) if tcp else
             struct.pack(">HHHH", getrandbits(16), 53, size, sum)).ljust(
                 l4, b"\1") + randbytes(payload))

    def put(self, at, value):
        struct.pack_into(">H", self.frame, at, value)

    def complete(self, fragment):
        self.put(self.sum, inet_sum(self.frame[14 + self.l3:]) ^ 0xffff)
        if not self.v6:
            self.put(20, fragment)
            self.put(24, inet_sum(self.frame[14:14 + self.l3]) ^ 0xffff)


class Sender:
    """The transmit rings of both."""

    def __init__(self, pair):
        self.pair, self.tail, self.at = pair, 0, BUFS[0]
        self.size = randrange(64, 257, 8)
        for reg, value in ((TCTL, 0), (TDBAL, RINGS[0]),
                           (TDBAL + 4, 0), (TDLEN, 16 * self.size), (TDH, 0),
                           (TDT, 0), (VET, 0x8100), (TCTL, 0x3f0fa)):
            pair.set(reg, value)

    def put(self, *fields):
        self.pair.write(RINGS[0] + 16 * self.tail, struct.pack(*fields))
        self.tail = (self.tail + 1) % self.size

    def pieces(self, frame, command):
        """Copy a frame to buffers, and return these with commands."""
        cuts = sorted(sample(range(1, len(frame)), choice((0, 0, 1, 2, 4))))
        for a, b in zip([0] + cuts, cuts + [len(frame)]):
            if self.at + b - a > BUFS[1]:
                self.at = BUFS[0]
            self.pair.write(self.at, bytes(frame[a:b]))
            yield self.at, b - a, command | 2 | (b == len(frame)) | (
                8 * (random() < .8))
            self.at += b - a + choice((0, 1, 3, 16))

    def legacy(self, frame, tag=0):
        for at, size, command in self.pieces(frame, 0x40 * (tag != 0)):
            self.put("<QHBBBBH", at, size, 0, command, 0, 0, tag)

    def packet(self):
        """Send a packet of some kind, and return which."""
        known = self.pair.known
        kind = choice(("legacy", "sums", "TSO", "TSO"))
        tso = kind == "TSO"
        v6 = random() < .4 and not (tso and known("TSO of IPv6"))
        tcp = random() < .6 or bool(tso and known("TSO of UDP"))
        tag = randrange(1, 0xffff) * (random() < .3)
        p = Packet(max(randrange(1, 9000 if tso else choice((20, 1400))),
                       known("padding")), v6, tcp, b"\xff" * 6, MAC, not tso,
                   0x10 if known("FIN, PSH") else choice((0x10, 0x18, 0x19)))
        told = kind, v6, tcp, tag, len(p.frame), p.header
        if kind == "legacy":
            self.legacy(p.frame, tag)
            return told
        payload = tso * (len(p.frame) - p.header)
        mss = tso * choice((100, 536, 1000, 1514 - p.header))
        if payload > 40 * mss or (tso and known("full end") and
                                  payload % mss == 0):
            mss = 537
        v4 = not v6
        self.put("<BBHBBHII", 14, 24, v4 * (13 + p.l3), 14 + p.l3, p.sum, 0,
                 payload | (0x28 | tcp | 2 * v4 | 4 * tso) << 24,
                 tso * (mss << 16 | p.header << 8))
        sums = 2 | v4 if tso else choice((2 | v4, 2, v4))
        for at, size, command in self.pieces(
                p.frame, 0x20 | 4 * tso | 0x40 * (tag != 0)):
            self.put("<QIBBH", at, size | 1 << 20 | command << 24, 0, sums,
                     tag)
        return told + (mss, sums)


def sent(pair):
    for n in range(ROUNDS):
        if n % 8 == 0:
            ring = Sender(pair)
        pair.set(CTRL, 0x41 | getrandbits(1) << 30)     # SLU, VME
        pair.get(ICR)
        told = [ring.packet() for _ in range(choice((1, 1, 2, 3)))]
        ring.legacy(b"\xff" * 6 + LAST)
        pair.set(TDT, ring.tail)
        what = "round %d, %s" % (n, told)
        ours = qemu = b""
        while ours[6:] != LAST:
            ours = pair.wire.receive()
            size, = struct.unpack(">I", pair.net.read(4))
            qemu = pair.net.read(size).ljust(60, b"\0")
            # QEMU's checksum of TCP is 0xffff for 0.
            assert ours.replace(b"\0\0", b"\xff\xff") == qemu.replace(
                b"\0\0", b"\xff\xff"), (what, ours.hex(), qemu.hex())
        pair.same(what + ": TDH", *pair.get(TDH))
        ours, qemu = pair.read(RINGS[0], 16 * ring.size)
        assert ours == qemu, (what, ours.hex(), qemu.hex())
        pair.same_after(what, any(t[0] == "TSO" for t in told))


def frame(src):
    """Return a random frame, and what it is."""
    dst = choice((MAC, MAC, MAC, b"\xff" * 6, b"\1\0\x5e" + randbytes(3)))
    v6, tcp, change = random() < .4, random() < .6, randrange(12)
    p = Packet(randrange(1, 1400), v6, tcp, dst, src)
    p.complete(choice((0x2000, 0x2010, 0x10)) * (change == 0))
    if change == 1:
        p.frame[p.sum] ^= 0x40
    elif change == 2:
        p.frame[24] ^= 1
    elif change == 3 and not v6 and not tcp:
        p.put(p.sum, 0)
    elif change == 4:
        p.frame += bytes(randrange(1, 20))
    elif change == 5:
        p.put(12, choice((0x88b5, 0x806, 0x5dc)))
    if random() < .3:
        p.frame[12:12] = struct.pack(">HH", 0x8100, getrandbits(4) << 12 |
                                     choice((getrandbits(12), 7, 8)))
    return bytes(p.frame).ljust(60, b"\0"), (
        len(p.frame), v6, tcp, change, p.frame[:18].hex())


class Receiver:
    """The receive rings of both, and filters, at random.  Descriptors are
    legacy, extended in two queues with RSS, or split."""

    def __init__(self, pair, kind):
        self.pair, self.kind = pair, kind
        self.places = 2 if kind == "split" else 1
        self.queues = range(2 if kind == "extended" else 1)
        # Enough for all frames, not far above the first threshold.
        self.size = choice((72, 80, 88))
        self.rss = len(self.queues) == 2 and random() < .7
        rctl = (2 | getrandbits(3) << 3 | getrandbits(4) << 12 |
                randrange(3) << 8 | getrandbits(1) << 18 |
                (0x400 if kind == "split" else choice((0, 1, 2, 3, 3)) << 16) |
                (pair.known("CRC") or random() < .8) << 26)
        rctl |= pair.known("MPE") * (rctl >> 4 & 1)
        pair.set(RCTL, 0)
        pair.set(CTRL, 0x41 | getrandbits(1) << 30)
        pair.get(STATUS)
        for n in self.queues:
            first = self.places * randrange(self.size // self.places)
            pair.write(RINGS[n], b"".join(
                struct.pack("<Q", (BUFS[n] + BUFSIZE * i) *
                            (i % 2 < self.places))
                for i in range(2 * self.size)))
            pair.write(BUFS[n], bytes(2 * BUFSIZE * self.size))
            for reg, value in ((RDBAL, RINGS[n]), (RDBAL + 4, 0),
                               (RDLEN, 16 * self.size), (RDH, first),
                               (RDT, (first + self.size // 2 + 2 *
                                      randrange(1, 9)) % self.size)):
                pair.set(reg + 0x100 * n, value)
        pair.write(BAR + MTA, randbytes(512))
        pair.write(BAR + VFTA, b"\x80" + randbytes(511))
        rxcsum = choice((0, 0x100, 0x200, 0x300, 0x30e)) | self.rss << 13
        if kind != "legacy":
            pair.set(RFCTL, 0x8000 | choice((0, 0x800, 0x10000, 0x20000)))
            pair.set(MRQC, self.rss * (choice((55, 1, 2, 51, 48)) << 16 | 1))
            pair.write(BAR + RSSRK, randbytes(40))
            pair.write(BAR + RETA, bytes(choice((0, 128)) for _ in range(128)))
            pair.set(PSRCTL, choice((1, 2, 4)) | choice((1, 2)) << 8 |
                     choice((0x1010000, 0x2010000, 0x1020000)))
        for reg, value in (RXCSUM, rxcsum), (VET, 0x8100), (RCTL, rctl):
            pair.set(reg, value)
        self.text = "RCTL %x, RXCSUM %x" % (rctl, rxcsum)
        for q in pair.both:
            q.command("clock_step", 2000000000)     # QEMU's receive then

    def ended(self, q):
        """Return whether the buffer before the head has the last frame."""
        at = 2 * BUFSIZE * ((q.get(RDH) - self.places) % self.size)
        return q.read(BUFS[0] + at + 6, len(LAST)) == LAST

    def descriptor(self, data):
        """Return what of a descriptor is compared."""
        if self.kind == "legacy":
            size, value, status, tag = struct.unpack("<8xHHHH", data)
            more = value & ~self.pair.known("packet checksum")
        else:
            kind, value, status, size, tag, *more = struct.unpack_from(
                "<IIIHH4H" if self.kind == "split" else "<IIIHH", data)
            more += [kind, value * self.rss] * (status >> 1 & 1)
        status &= ~self.pair.known("status")
        # Before the end of a frame only DD counts.
        return (size, status if status & 2 else status & 1,
                tag * (status & 10 == 10), more)

    def same(self, what):
        for n in self.queues:
            self.pair.same("%s: RDH %d" % (what, n),
                           *self.pair.get(RDH + 0x100 * n))
            ours, qemu = (
                [self.descriptor(ring[i:i + 16 * self.places])
                 for i in range(0, len(ring), 16 * self.places)]
                for ring in self.pair.read(RINGS[n], 16 * self.size))
            assert ours == qemu, (what, n, ours, qemu)
            ours, qemu = self.pair.read(BUFS[n], 2 * BUFSIZE * self.size)
            assert ours == qemu, (what, n, "buffers")


def received(pair):
    kinds = ("legacy", "extended", "split") if pair.model == "e1000e" else (
        "legacy", "legacy")
    for n in range(len(kinds) * ROUNDS):
        ring = Receiver(pair, kinds[n // ROUNDS])
        pair.get(ICR)
        frames = [frame(pair.wire.mac) for _ in range(randrange(1, 7))]
        what = "round %d, %s, %s" % (n, ring.text, [t for _, t in frames])
        for data in *(f for f, _ in frames), MAC + LAST:
            pair.wire.queue(data)
            pair.net.write(struct.pack(">I", len(data)) + data)
        pair.wire.set(TDT, pair.wire.tail)
        pair.net.flush()
        for q in pair.both:
            wait_until(lambda: ring.ended(q), "the last frame", lambda: what)
        ring.same(what)
        pair.same_after(what)


def case(part, model):
    if not os.access(QEMU, os.X_OK):
        raise Skip("no QEMU is set up")
    seed(int(os.environ.get("SEED", 1)))
    with Pair(model) as pair:
        part(pair)


ROUNDS = int(os.environ.get("ROUNDS", 16))
if __name__ == "__main__":
    run_case({"%s_%s" % (f.__name__, m): lambda f=f, m=m: case(f, m)
              for f in (registers, sent, received) for m in BOTH})
