# SPDX-License-Identifier: GPL-2.0
"""
Prometheus scrapes rhist serve: quantiles are within their error bound, histograms of several
machines merge exactly, and the rules and the dashboard of the package find their series.
"""

import math
import os
import shutil
import subprocess
import tempfile
import time

from promql import FLEET, Prometheus, buckets, dashboard
from scrape import Server, begin, fire, same, soon
from tap import finish, ok, skip

ROOT = os.environ.get("RHIST_PROMETHEUS", "")
MACHINES = 3

if not os.path.exists(f"{ROOT}/usr/bin/prometheus"):
    skip("Prometheus", "the lab has it not: scripts/lab prometheus")
    finish()

work = tempfile.mkdtemp()
os.environ.update(RHIST_RUN=f"{work}/run", HOME=work)
begin()

# --- machines: services of their own; the first also has the configuration of the package

RUNS = '[histogram.runs]\ncount = "rhist_events:run --by next_who --dist total"\nbudget = "100%"\n'
servers = []
for n in range(MACHINES):
    server = Server(f"{work}/{n}")
    server.write(RUNS)
    if n == 0:
        shutil.copy(f"{FLEET}/rhist.toml", server.folder)
    server.start()
    servers.append(server)
ok(len(servers) == MACHINES, "services run", *[server.said() for server in servers])
print(f"# {servers[0].said()}".replace("\n", "\n# "))

prometheus = Prometheus(ROOT, work, [(f"machine-{n}", server.port) for n, server in enumerate(servers)], 2)
query, value = prometheus.query, prometheus.value
ok(soon(lambda: value("sum(up)") == MACHINES), "Prometheus scrapes all", prometheus.ask("targets"), prometheus.said())

# --- quantiles and buckets

values = [k * k for k in range(1, 501)] + [k * k for k in range(900, 1000)]
fire("run task 0 1 500 500")
fire("run task 0 900 100 100")
expected = len(values) * MACHINES
ok(soon(lambda: value("histogram_count(sum(rhist_runs_total))") == expected), "all is counted, and native",
   query("rhist_runs_total"))
same(value("histogram_sum(sum(rhist_runs_total))"), sum(values) * MACHINES, "sums are exact")
values.sort()
wrong = []
for q in (0.01, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999):
    truth = values[math.ceil(q * len(values)) - 1]
    got = value(f"histogram_quantile({q}, sum(rhist_runs_total))")
    # A bucket of scale 3 is 2^(1/8) wide: Prometheus' estimate within it is at most that far off.
    print(f"# quantile {q}: {got:.1f}, in truth {truth}: off by {got / truth - 1:+.3f}")
    if not 2 ** -0.125 <= got / truth <= 2 ** 0.125:
        wrong.append((q, truth, got))
ok(not wrong, "histogram_quantile() is within the bound of the truth", *wrong)
result = query("sum(rhist_runs_total)")
counts = {}
for number in values:
    index = next(i for i in range(400) if number <= 2 ** (i / 8) * (1 + 1e-12))
    counts[index] = counts.get(index, 0) + MACHINES
got = buckets(result[0]["histogram"][1], 3) if result else {}
same(got, counts, "buckets of several machines become one, exactly")
shares = [value(f'histogram_fraction(0, 65536, sum(rhist_runs_total{{instance="machine-{n}"}}))') for n in range(MACHINES)]
truth = sum(number <= 65536 for number in values) / len(values)
ok(all(abs(share - truth) < 1e-9 for share in shares), "so is the part that is below a bound of buckets", shares, truth)
classic = value('sum(rhist_runs_total_bucket{le=~"65536(.0)?"})')
same(classic, sum(number <= 65536 for number in values) * MACHINES, "and the classic bucket of this bound")

# --- rules and dashboard of the package

for _ in range(20):
    subprocess.run(["ls", "/", "/nonexistent"], capture_output=True, check=False)
    time.sleep(0.5)
with open(f"{FLEET}/rules.yml", encoding="utf-8") as file:
    rules = {line.split(": ", 1)[1].strip() for line in file if line.lstrip().startswith(("- alert:", "- record:"))}
ok(prometheus.rules().keys() == rules and soon(lambda: set(prometheus.rules().values()) == {"ok"}), "the rules are evaluated",
   prometheus.rules())
ok(soon(lambda: bool(query("fleet:rhist_runqlat_seconds:rate5m"))), "and record something")
empty, failed, asked = [], [], 0
for panel, queries in dashboard("30s"):
    for text, _ in queries:
        answer = prometheus.ask("query", query=text)
        asked += 1
        if answer["status"] != "success" or answer.get("warnings"):
            failed.append((panel["title"], text, answer))
        elif not answer["data"]["result"]:
            empty.append(panel["title"])
ok(asked > 10 and not failed, f"all {asked} queries of the dashboard are understood", *failed)
# A machine may lack disks, and paused histograms.
wanted = {"Disks: p50 and p99", "What is missing"}
ok(set(empty) <= wanted, "and find something", *empty)
print(f"# nothing was found for: {sorted(set(empty))}")
for server in servers:
    server.stop()
prometheus.stop()
finish()
