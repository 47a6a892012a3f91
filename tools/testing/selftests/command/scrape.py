# SPDX-License-Identifier: GPL-2.0
"""
A client of rhist serve: runs it, scrapes it in each format, and checks that its counters never
fall.
"""

import atexit
import http.client
import os
import re
import signal
import socket
import struct
import subprocess
import time

from tap import ok

RHIST = os.environ.get("RHIST_COMMAND", f"{os.path.dirname(os.path.abspath(__file__))}/../../../../build/command/rhist")
KERNEL = "/sys/kernel/tracing"
TRACING = os.environ.get("TRACING", f"{KERNEL}/rhist")
TEXT = "text/plain;version=0.0.4"
OPEN = "application/openmetrics-text;version=1.0.0"
# Like rhist.service: root without capabilities.
BARE = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"


def same(got, expected, name):
    ok(got == expected, name, f"expected: {expected}", f"got:      {got}")


def soon(condition, seconds=180):
    """Waits until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def begin():
    """Sets up the loopback, and the module with events, which is removed when the test ends."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["insmod", os.environ.get("RHIST_EVENTS", "")], check=True)
    # Runs after the servers end, which are registered later.
    atexit.register(lambda: soon(lambda: subprocess.run(["rmmod", "rhist_events"], check=False, capture_output=True).returncode == 0))


def fire(text):
    """Fires events of the test module; in task context, on the CPU that the text names."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {int(text.split()[2])})
    with open("/dev/rhist_events", "w", encoding="ascii") as file:
        file.write(text)
    os.sched_setaffinity(0, before)


def instances():
    """Returns the instances of runs of rhist."""
    return sorted(name for name in os.listdir(f"{KERNEL}/instances") if name.startswith("rhist-"))


class Server:
    """rhist serve, with a folder of configuration."""

    def __init__(self, work):
        self.work = work
        self.folder = f"{work}/etc"
        self.log = f"{work}/log"
        self.port = 0
        self.process = None
        # Counters of the last scrape, by name and labels.
        self.counters = {}
        os.makedirs(self.folder, exist_ok=True)
        # A failed test leaves no server behind.
        atexit.register(lambda: self.process and self.process.poll() is None and self.process.kill())

    def write(self, text, name="a.toml"):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def start(self):
        """Starts it, and waits until it reports that it is ready."""
        path = f"{self.work}/notify"
        if os.path.exists(path):
            os.unlink(path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, open(self.log, "w", encoding="utf-8") as log:
            notify.bind(path)
            notify.settimeout(180)
            self.process = subprocess.Popen(
                [*BARE, RHIST, "serve", "--listen", "127.0.0.1:0", "--config", self.folder],
                stderr=log, env={**os.environ, "NOTIFY_SOCKET": path})
            ready = notify.recv(100)
        self.port = int(re.search(r"listening on http://127.0.0.1:(\d+)/", self.said())[1])
        self.counters = {}
        return ready

    def said(self):
        """Returns the service's log."""
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def reload(self):
        """Makes it read its configuration again, and waits until it has."""
        def number_of_answers():
            return sum(map(self.said().count, (" unchanged", "the new configuration is not used")))

        before = number_of_answers()
        self.process.send_signal(signal.SIGHUP)
        return soon(lambda: number_of_answers() > before)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(180)

    def get(self, path="/metrics", accept=None, method="GET", host=None):
        """Status, type and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=180)
        headers = {"Accept": accept, "Host": host}
        connection.request(method, path, headers={name: value for name, value in headers.items() if value})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, response.getheader("Content-Type"), body

    def scrape(self):
        """
        Scrapes the text format. Returns samples, by name and labels. A counter that has fallen is
        a failure.
        """
        time.sleep(2)  # What is younger than a second, and than a read takes, may be from memory.
        _, _, body = self.get(accept=TEXT)
        samples, kinds = parse_text(body.decode())
        counters = {key: value for key, value in samples.items() if is_counter(key[0], kinds)}
        fallen = [(key, value, counters.get(key)) for key, value in self.counters.items() if counters.get(key, 0) < value]
        if fallen:
            ok(False, "no counter falls", *fallen)
        self.counters.update(counters)
        return samples

    def runs(self, *names):
        """Waits until these histograms count, and no others."""
        def running():
            samples = self.scrape()
            return sorted((labels[0][1], value) for (name, labels), value in samples.items() if name == "rhist_serve_running")
        return soon(lambda: running() == sorted((name, 1) for name in names))

    def forget(self, *names):
        """Allows counters of these histograms to begin anew."""
        known = self.counters.items()
        self.counters = {key: value for key, value in known if not any(f"rhist_{name}" in key[0] or name in str(key[1]) for name in names)}

    def native(self):
        """Native histograms, by name and labels."""
        _, _, body = self.get(accept=PROTOBUF)
        return native_histograms(body)


def is_counter(name, kinds):
    # A sum of numbers falls with each that is below zero.
    if name.endswith("_change_sum"):
        return False
    family = re.sub(r"_(bucket|count|sum)$", "", name)
    return kinds.get(name) == "counter" or kinds.get(family) == "histogram"


def parse_text(text):
    """Samples, by name and labels, and the types of families."""
    samples, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            kinds[name] = kind
        elif line and not line.startswith("#"):
            name, labels, value = re.fullmatch(r"([a-z_0-9]+)(?:\{(.*)\})? (\S+)", line).groups()
            pairs = re.findall(r'([a-zA-Z_0-9]+)="((?:[^"\\]|\\.)*)"', labels or "")
            samples[name, tuple(pairs)] = float(value)
    return samples, kinds


# --- protocol buffers, as far as these messages use them

def varint(data, at):
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return result, at


def fields(data):
    """Numbers and values of the fields of a message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        match tag & 7:
            case 0:
                value, at = varint(data, at)
            case 1:
                value, at = struct.unpack_from("<d", data, at)[0], at + 8
            case 2:
                length, at = varint(data, at)
                value, at = data[at:at + length], at + length
            case other:
                raise ValueError(f"wire type {other}")
        yield tag >> 3, value


def signed(number):
    return (number >> 1) ^ -(number & 1)


def packed(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield signed(value)


def messages(data):
    """Yields messages that are each preceded by their length."""
    at = 0
    while at < len(data):
        length, at = varint(data, at)
        yield data[at:at + length]
        at += length


class Native:
    """A native histogram."""

    def __init__(self, data):
        self.count, self.sum, self.zero, self.schema, self.created = 0, None, 0, 0, None
        self.sparse = {"positive": ([], []), "negative": ([], [])}
        for number, value in fields(data):
            match number:
                case 1: self.count = value
                case 2: self.sum = value
                case 5: self.schema = signed(value)
                case 7: self.zero = value
                case 9 | 12:
                    span = dict(fields(value))
                    self.sparse["negative" if number == 9 else "positive"][0].append((signed(span.get(1, 0)), span.get(2, 0)))
                case 10 | 13:
                    self.sparse["negative" if number == 10 else "positive"][1].extend(packed(value))
                case 15:
                    self.created = dict(fields(value)).get(1)

    def buckets(self, sign="positive"):
        """Counts, by Prometheus' index."""
        spans, deltas = self.sparse[sign]
        index = count = 0
        buckets, rest = {}, iter(deltas)
        for offset, length in spans:
            index += offset
            for _ in range(length):
                count += next(rest)
                buckets[index] = count
                index += 1
        return buckets


def native_histograms(body):
    found = {}
    for family in messages(body):
        name = metric = None
        for number, value in fields(family):
            if number == 1:
                name = value.decode()
            elif number == 4:
                labels, metric = [], value
                for number, value in fields(metric):
                    if number == 1:
                        pair = dict(fields(value))
                        labels.append((pair[1].decode(), pair.get(2, b"").decode()))
                    elif number == 7:
                        found[name, tuple(labels)] = Native(value)
    return found
