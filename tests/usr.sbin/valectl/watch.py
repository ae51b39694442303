# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""What valectl(8) shows of adapters, and as metrics, for watch_test.sh."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

from ctl_client import REQUESTS
from vfu_client import Driver, ethernet
from wait_until import wait_until

LABEL = r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"'
SAMPLE = re.compile(r'([a-z_]+)\{(%s(?:,%s)*)\} (-?[0-9.e+-]+)$' % (LABEL, LABEL))


def valectl(*args):
    return subprocess.run([os.environ["VALECTL"], *args], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def adapter():
    a, = json.loads(valectl("-j", "-k", "all"))["adapters"]
    return a


def client():
    """The client comes and goes; its driver sets the least interval."""
    a = adapter()
    assert a["name"] == "vm1" and a["port"] == "vale0:vm1", a
    assert a["address"] == "02:00:00:00:00:07"
    # itr=100, in units of 256 ns.
    assert a["itr_ns"] == 25600, a
    assert a["client_since"] is None and a["csb"] is False
    before = int(time.time())
    d = Driver("vm1.sock")
    a = adapter()
    assert before <= a["client_since"] <= time.time(), a
    assert a["counters"]["connects"] == 1
    assert a["counters"]["reg_writes"] > 0
    d.set(0xc4, 1000)                   # ITR
    assert adapter()["itr_ns"] == 256000
    text = valectl("-k", "all")
    assert re.search("^adapter vm1 client_since 20..-..-..T..:..:..Z$", text,
                     re.M), text
    assert ('vale_adapter_client_start_time_seconds{adapter="vm1",'
            'switch="vale0",port="vm1"} %d\n' % a["client_since"]) in \
        valectl("--openmetrics")
    d.close()
    wait_until(lambda: adapter()["client_since"] is None, "the client's end")
    assert "client_start_time" not in valectl("--openmetrics")


class Ports:
    """A program with ports (valed_ports.c)."""

    def __init__(self, *names):
        self.proc = subprocess.Popen([os.environ["VALED_PORTS"], *names],
                                     stdin=subprocess.PIPE, text=True,
                                     stdout=subprocess.PIPE)
        assert self.proc.stdout.readline() == "ready\n"

    def send(self, port, n):
        self.proc.stdin.write("%d %d\n" % (port, n))
        self.proc.stdin.flush()
        assert self.proc.stdout.readline() == "sent\n"

    def close(self):
        self.proc.stdin.close()
        assert self.proc.wait() == 0


def events():
    """Each kind of event, with its members."""
    valectl("-o", "vale0:vm1", "link=down")
    stream = subprocess.Popen([os.environ["VALECTL"], "--events"], text=True,
                              stdout=subprocess.PIPE)
    seen = []

    def next():
        line = stream.stdout.readline()
        e = json.loads(line)
        assert abs(e.pop("time") - time.time()) < 60, line
        seen.append(e)
        return e

    def wait(**members):
        """Read up to the event with these members."""
        while True:
            e = next()
            if members.items() <= e.items():
                return e

    def dropped(frames, **members):
        """Read events until so many frames were dropped."""
        while frames > 0:
            frames -= wait(event="dropped", **members)["frames"]
        assert frames == 0

    # What is there.
    assert next() == {"event": "port_added", "port": "vale0:vm1"}
    valectl("-o", "vale0:vm1", "link=up")
    assert next() == {"event": "link", "port": "vale0:vm1", "up": False}
    assert next() == {"event": "link", "port": "vale0:vm1", "up": True}
    d = Driver("vm1.sock")
    came = {"event": "client_came", "adapter": "vm1", "port": "vale0:vm1"}
    wait(**came)
    p = Ports("vale0:a", "vale0:b")
    wait(event="port_added", port="vale0:a")
    wait(event="port_added", port="vale0:b")
    valectl("-o", "vale0:a", "link=down")
    assert wait(event="link", port="vale0:a")["up"] is False
    p.send(0, 7)
    e = wait(event="dropped", port="vale0:a", reason="link")
    assert e["direction"] == "transmit" and "adapter" not in e
    assert e["frames"] <= 7
    if e["frames"] < 7:
        dropped(7 - e["frames"], port="vale0:a", reason="link")
    valectl("-o", "vale0:a", "link=up")
    assert wait(event="link", port="vale0:a")["up"] is True
    valectl("-o", "vale0:b", "rate=1pkt/s,burst=1")
    p.send(1, 100)
    e = wait(event="dropped", port="vale0:b", reason="rate")
    assert e["frames"] >= 90, e
    valectl("-o", "vale0:vm1", "limit=1")
    for addr in b"\2addr0", b"\2addr1":
        d.send(ethernet(b"\xff" * 6, addr, b""))
    wait(event="limit_reached", port="vale0:vm1")
    wait(event="dropped", port="vale0:vm1", reason="limit", frames=1)
    # What is for others is no loss.
    valectl("-o", "vale0", "reserved=off")
    for addr in b"\2addr0", b"\1\x80\xc2\0\0\0":
        d.send(ethernet(addr, b"\2addr0", b""))
    counters = valectl("-k", "vale0:vm1")
    assert "tx_drop_self 1\n" in counters, counters
    assert "tx_drop_reserved 1\n" in counters, counters
    d.close()
    wait(event="client_went", adapter="vm1")
    Driver("vm1.sock").close()
    d = Driver("vm1.sock")
    wait(**came)
    # A client or a port that went and came between two looks is another one.
    stream.send_signal(signal.SIGSTOP)
    d.close()
    d = Driver("vm1.sock")
    p.close()
    p = Ports("vale0:a")
    p.send(0, 1)
    stream.send_signal(signal.SIGCONT)
    wait(event="port_removed", port="vale0:a")
    wait(event="port_added", port="vale0:a")
    wait(event="client_went", port="vale0:vm1")
    wait(**came)
    d.close()
    wait(event="client_went", port="vale0:vm1")
    p.close()
    wait(event="port_removed", port="vale0:a")
    assert not [e for e in seen if e.get("reason") in
                ("filtered", "self", "reserved")]
    # Not more than one a second for a port and a reason.
    assert len([e for e in seen if e["event"] == "dropped" and
                e.get("reason") == "rate"]) <= 3
    stream.terminate()
    stream.wait()


def device(counters):
    """A struct vale_wire_device, of an adapter."""
    return struct.pack(
        "=64s64sBB6sQII", b"vm1", b"vale0:vm1", 1, 0, bytes(6), 0, 0,
        len(counters)) + b"".join(
        struct.pack("=24s71sBQ", *c) for c in counters).ljust(80 * 104, b"\0")


def kinds():
    """A counter's kind says what valectl makes of it, and not its description:
    here valed is this program."""
    counters = [[b"rx_one", b"reworded", 1, 5], [b"rx_two", b"reworded", 2, 6],
                [b"rx_drop_three", b"frames dropped", 0, 7],
                [b"rx_four", b"frames filtered", 99, 8]]
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind("fake")
    listener.listen()
    os.environ["VALE_SOCKET"] = "fake"

    def answer(c):
        """Answer a request: no port, and a device."""
        request = c.recv(65536)
        if request == b"":
            return False
        first, = struct.unpack_from("=I", request, 224)
        there = first == 0 and request[138:140] == struct.pack(
            "=H", REQUESTS["DEVICES"])
        c.send(request[:224] + struct.pack("=II", first, there) +
               (device(counters) if there else b""))
        for counter in counters:
            counter[3] += there
        return True

    def serve():
        while True:
            c, _ = listener.accept()
            while answer(c):
                pass

    threading.Thread(target=serve, daemon=True).start()
    text = valectl("--openmetrics")
    labels = '{adapter="vm1",switch="vale0",port="vm1"%s} %d\n'
    for name, reason, value in (
            ("dropped_frames", ',reason="one"', 5),
            ("filtered_frames", ',reason="two"', 6),
            ("drop_three", "", 7), ("four", "", 8)):
        line = "vale_adapter_receive_%s_total%s" % (
            name, labels % (reason, value))
        assert line in text, (line, text)
    stream = subprocess.Popen([os.environ["VALECTL"], "--events"], text=True,
                              stdout=subprocess.PIPE)
    for _ in range(2):
        e = json.loads(stream.stdout.readline())
        assert (e["event"], e["reason"], e["frames"]) == \
            ("dropped", "one", 1), e
    stream.terminate()
    stream.wait()


def rates():
    """A report has what came since the one before: of a report that has all of
    `n' frames the rate says how long that was, at most as long as all reports
    without a second for each of the others."""
    p = Ports("vale0:a", "vale0:b")
    begun, n = time.monotonic(), 1000
    reports = subprocess.Popen([os.environ["VALECTL"], "-j", "-s", "vale0", "1"],
                               text=True, stdout=subprocess.PIPE)

    def next():
        ports = json.loads(reports.stdout.readline())
        for port in ports:
            for way in "tx", "rx":
                # A frame has 60 bytes.
                assert abs(port[way + "_bits"] - 480 * port[way + "_frames"]) \
                    <= 1e-6 * port[way + "_bits"], port
        a, = [port for port in ports if port["name"] == "vale0:a"]
        return a["tx_frames"]

    others = rate = more = 0
    while rate == 0 or more > 0:
        next()
        p.send(0, n)
        rate = next()
        most = time.monotonic() - begun - (others + 1)
        more = next()
        others += 3
    assert n / rate <= most, (n / rate, most)
    # A port that was closed and opened since the report before began with 0.
    reports.send_signal(signal.SIGSTOP)
    p.close()
    p = Ports("vale0:a", "vale0:b")
    p.send(0, 10)
    reports.send_signal(signal.SIGCONT)
    while (rate := next()) == 0:
        pass
    assert 0 < rate <= 10, rate
    reports.terminate()
    reports.wait()
    p.close()


def parse(text, openmetrics):
    """Parse metrics, strictly.  Returns the samples, by names and labels."""
    lines = text.split("\n")
    assert lines.pop() == ""
    assert (lines[-1] == "# EOF") == openmetrics
    if openmetrics:
        lines.pop()
    seen, samples = {}, {}
    name = kind = unit = None
    for line in lines:
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in seen and line.split(" ", 3)[3], line
            seen[name] = kind = unit = None
        elif line.startswith("# TYPE "):
            _, _, of, kind = line.split(" ")
            assert of == name and kind in ("counter", "gauge", "info"), line
            assert openmetrics or kind != "info"
            seen[name] = kind
        elif line.startswith("# UNIT "):
            _, _, of, unit = line.split(" ")
            assert openmetrics and of == name and kind, line
            assert name.endswith("_" + unit), line
        else:
            m = SAMPLE.match(line)
            assert m, line
            suffix = {"counter": "_total", "info": "_info"}.get(kind, "")
            assert m[1] == name + (suffix if openmetrics else ""), line
            if not openmetrics and kind == "counter":
                assert name.endswith("_total"), line
            assert (m[1], m[2]) not in samples, line
            if kind == "counter":
                assert int(m[m.lastindex]) >= 0
            samples[m[1], m[2]] = m[m.lastindex]
    assert openmetrics or all(k for k in seen.values())
    return samples


def form(metrics, text, numbers):
    """Both forms have all that -k all has, under the same names."""
    with open(metrics) as f:
        m = parse(f.read(), True)
    with open(text) as f:
        t = parse(f.read(), False)
    assert m.keys() == t.keys()
    with open(numbers) as f:
        j = json.load(f)
    count = lambda prefix: sum(name.startswith(prefix) for name, _ in m)
    # And whether it has a link.
    assert count("vale_port_") == sum(len(p) + 1 for p in j["ports"].values())
    # And five of its state, of which that of a client is not there.
    assert count("vale_adapter_") == sum(len(a["counters"]) + 5
                                         for a in j["adapters"])


def dashboard(metrics):
    """Each metric of the dashboard for Grafana is there."""
    with open(metrics) as f:
        names = {name for name, _ in parse(f.read(), True)}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "grafana.json")) as f:
        shown = json.load(f)
    wanted = set(re.findall("vale_[a-z_]+", json.dumps(
        [shown["panels"], shown["templating"]])))
    assert len(wanted) > 10
    # There is no attached interface.
    wanted = {w for w in wanted if not w.startswith("vale_interface_")}
    assert wanted <= names, wanted - names


def reply(path):
    """A reply's length is what it says, and its body has the form."""
    with open(path, newline="") as f:
        head, body = f.read().split("\r\n\r\n", 1)
    length = re.search("^Content-Length: ([0-9]+)$", head.replace("\r", ""), re.M)
    assert int(length[1]) == len(body)
    assert re.search("^Connection: close$", head.replace("\r", ""), re.M)
    parse(body, "openmetrics" in head)


def ask(path):
    with urllib.request.urlopen("http://127.0.0.1:9090/api/v1/" + path) as f:
        answer = json.load(f)
    assert answer["status"] == "success", answer
    return answer["data"]


def query(text):
    return ask("query?" + urllib.parse.urlencode({"query": text}))["result"]


def scrape(prometheus):
    """A server that scrapes has the values, the types and the units."""
    with open("prometheus.yml", "w") as f:
        f.write("""global:
  scrape_interval: 1s
scrape_configs:
- job_name: vale
  static_configs:
  - targets: ['127.0.0.1:9955']
""")
    # As a unit of systemd(1) with Accept=yes does it.
    listener = subprocess.Popen(
        ["socat", "TCP-LISTEN:9955,bind=127.0.0.1,fork,reuseaddr",
         "EXEC:%s --openmetrics=http" % os.environ["VALECTL"]])
    log = open("prometheus.log", "w")
    server = subprocess.Popen(
        [prometheus, "--config.file=prometheus.yml", "--storage.tsdb.path=data",
         "--web.listen-address=127.0.0.1:9090", "--log.level=warn"],
        stdout=log, stderr=log)

    def scraped():
        assert server.poll() is None, "prometheus has ended"
        try:
            r = query('vale_port_transmit_frames_total{switch="vale0",'
                      'port="a"}')
        except OSError:
            return False
        return [x["value"][1] for x in r] == ["7"]

    try:
        wait_until(scraped, "the metrics")
        meta = ask("metadata")
        # The server calls a metric as its samples are called, or not.
        m, = meta.get("vale_port_transmit_bytes_total") or \
            meta["vale_port_transmit_bytes"]
        assert m["type"] == "counter" and m["unit"] == "bytes", m
        assert m["help"] == "bytes of well-formed frames", m
        r = query("sum by (reason) (vale_port_transmit_dropped_frames_total)")
        assert {x["metric"]["reason"] for x in r} >= {"rate", "limit"}, r
        assert query("vale_adapter_info")[0]["metric"]["address"] == \
            "02:00:00:00:00:07"
        # A rate over time, as a dashboard shows.
        wait_until(lambda: query("rate(vale_port_transmit_frames_total"
                                 "{port='a'}[1m])"), "two scrapes")
        assert query("up") and all(x["value"][1] == "1" for x in query("up"))
    finally:
        server.terminate()
        server.wait()
        listener.terminate()
        listener.wait()


if __name__ == "__main__":
    {"client": client, "events": events, "kinds": kinds, "rates": rates,
     "form": form, "reply": reply, "dashboard": dashboard,
     "scrape": scrape}[sys.argv[1]](*sys.argv[2:])
