# SPDX-License-Identifier: MIT OR Apache-2.0
"""
Recordings of one guest that was many machines, and totals of all their intervals: computed
without rhist's code.
"""

import collections
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path


def split(folder, target):
    """
    Makes recordings of machines, each in a folder below `target`, from the intervals of their
    own.
    """
    times = json.loads((folder / "times.json").read_text(encoding="utf-8"))
    for path in sorted(folder.glob("*.jsonl")):
        with open(path, encoding="utf-8") as file:
            lines = [(*_times(json.loads(line)), line) for line in file]
        for number, (begin, end) in enumerate(times):
            machine = target / f"machine-{number:02}"
            machine.mkdir(parents=True, exist_ok=True)
            own = [line for start, stop, line in lines if begin <= start and stop <= end]
            (machine / path.name).write_text("".join(own), encoding="utf-8")


def _metrics(interval):
    return interval["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]


def _times(interval):
    point = _metrics(interval)[0]["gauge"]["dataPoints"][0]
    return int(point["startTimeUnixNano"]) / 1e9, int(point["timeUnixNano"]) / 1e9


class Total:
    """Totals of a label set, or of several."""

    def __init__(self):
        self.hits = 0
        self.count = 0
        self.sum = Decimal(0)
        self.zero = 0
        self.scale = None
        # By OpenTelemetry's index: above 2^(index / 2^scale), up to the next one.
        self.buckets = collections.Counter()

    def add(self, other):
        self.hits += other.hits
        self.count += other.count
        self.sum += other.sum
        self.zero += other.zero
        assert None in (self.scale, other.scale) or self.scale == other.scale
        self.scale = other.scale if self.scale is None else self.scale
        self.buckets.update(other.buckets)

    def upper(self, index):
        return 2 ** ((index + 1) / 2 ** self.scale)

    def below(self, bound):
        """Number of values up to a bound of buckets."""
        return self.zero + sum(count for index, count in self.buckets.items() if self.upper(index) <= bound * (1 + 1e-9))

    def quantile(self, q):
        """Returns the bounds of a quantile: of the bucket with the value of this rank, and if the
        rank is between two values, of both buckets."""
        rank = Fraction(q) * self.count
        return self._bounds(math.ceil(rank))[0], self._bounds(min(math.floor(rank) + 1, self.count))[1]

    def _bounds(self, number):
        """Bounds of the bucket of a value, counted from 1 for the smallest."""
        seen = self.zero
        if number <= seen:
            return 0, 0
        for index in sorted(self.buckets):
            seen += self.buckets[index]
            if number <= seen:
                return self.upper(index - 1), self.upper(index)
        raise ValueError(number)


def _labels(point):
    def text(value):
        if "kvlistValue" in value:
            # The number, and its name if known.
            members = {member["key"]: member["value"] for member in value["kvlistValue"]["values"]}
            number = text(members.pop("value"))
            for kind, name in members.items():
                return name.get("stringValue", number if kind == "name" else f"{kind} {number}")
            return number
        return str(next(iter(value.values())))
    return tuple(sorted((one["key"], text(one["value"])) for one in point.get("attributes", [])))


def read(path):
    """Returns totals by labels. Negative values are in no bucket of these recordings."""
    found = collections.defaultdict(Total)
    with open(path, encoding="utf-8") as file:
        for line in file:
            for metric in _metrics(json.loads(line, parse_float=Decimal)):
                if metric["name"].startswith("rhist."):
                    continue
                if metric["name"].endswith(".hits"):
                    for point in metric["sum"]["dataPoints"]:
                        found[_labels(point)].hits += int(point["asInt"])
                for point in metric.get("exponentialHistogram", {}).get("dataPoints", []):
                    one = Total()
                    one.count, one.sum, one.zero = int(point["count"]), Decimal(point["sum"]), int(point["zeroCount"])
                    one.scale = int(point["scale"])
                    positive = point.get("positive", {})
                    first = int(positive.get("offset", 0))
                    for place, count in enumerate(positive.get("bucketCounts", [])):
                        one.buckets[first + place] += int(count)
                    assert "negative" not in point, point
                    found[_labels(point)].add(one)
    for total in found.values():
        total.buckets = +total.buckets
    return dict(found)


class Fleet:
    """Totals of all machines: by machine, then by labels."""

    def __init__(self, folder, name):
        self.machines = {}
        # Number of intervals of each machine.
        self.lengths = []
        for path in sorted(Path(folder).iterdir()):
            self.machines[path.name] = read(path / f"{name}.jsonl")
            with open(path / f"{name}.jsonl", encoding="utf-8") as file:
                self.lengths.append(sum(1 for _ in file))

    def all(self):
        return next(iter(self.by(lambda machine, labels: ()).values()), Total())

    def by(self, key):
        """Returns sums by `key(machine, labels)`."""
        found = collections.defaultdict(Total)
        for machine, totals in self.machines.items():
            for labels, total in totals.items():
                found[key(machine, labels)].add(total)
        return dict(found)
