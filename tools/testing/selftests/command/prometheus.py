# SPDX-License-Identifier: GPL-2.0
"""
Prometheus scrapes rhist serve: quantiles are within the bound of the truth, histograms of several machines become one exactly,
and the rules and the dashboard of the package find what they ask for.
"""

import atexit
import json
import math
import os
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

from scrape import Server, begin, fire, same, soon
from tap import finish, ok

PROMETHEUS = os.environ.get("RHIST_PROMETHEUS", "")
FLEET = f"{os.path.dirname(os.path.abspath(__file__))}/../../../rhist/fleet"
ADDRESS = "127.0.0.1:9090"
MACHINES = 3

if not os.path.exists(f"{PROMETHEUS}/usr/bin/prometheus"):
    print("ok 1 - Prometheus # SKIP the lab has it not: scripts/lab prometheus")
    print("1..1")
    print("# 1 passed, 0 failed")
    raise SystemExit(0)

work = tempfile.mkdtemp()
os.environ.update(RHIST_RUN=f"{work}/run", HOME=work)
begin()

# --- machines: services of their own, of which the first has the configuration of the package, too

RUNS = '[histogram.runs]\ncount = "rhist_events:run --by next_who --dist total"\n'
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

scrapes = "".join(f"""
      - targets: ["127.0.0.1:{server.port}"]
        labels: {{ instance: "machine-{n}" }}""" for n, server in enumerate(servers))
with open(f"{work}/prometheus.yml", "w", encoding="utf-8") as file:
    file.write(f"""
global: {{ scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 2s }}
rule_files: [ "{FLEET}/rules.yml" ]
scrape_configs:
  - job_name: rhist
    scrape_classic_histograms: true
    static_configs: {scrapes}
""")
with open(f"{work}/log", "w", encoding="utf-8") as log:
    prometheus = subprocess.Popen(
        [f"{PROMETHEUS}/usr/bin/prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/data",
         "--enable-feature=native-histograms", f"--web.listen-address={ADDRESS}", "--web.console.libraries=/nonexistent",
         "--web.console.templates=/nonexistent"], stdout=log, stderr=log)
atexit.register(prometheus.kill)


def ask(path, **parameters):
    url = f"http://{ADDRESS}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return {"status": "error", "error": error.read().decode()}
    except OSError as error:
        return {"status": "error", "error": str(error)}


def query(text):
    """The result of a query, or none."""
    answer = ask("query", query=text)
    return answer["data"]["result"] if answer["status"] == "success" else None


def value(text):
    result = query(text)
    return float(result[0]["value"][1]) if result else None


with open(f"{work}/log", encoding="utf-8") as log:
    ok(soon(lambda: value("sum(up)") == MACHINES, 150), "Prometheus scrapes all", ask("targets"), log.read()[-2000:])

# --- quantiles and buckets

values = [k * k for k in range(1, 501)] + [k * k for k in range(900, 1000)]
fire("run task 0 1 500 500")
fire("run task 0 900 100 100")
expected = len(values) * MACHINES
ok(soon(lambda: value("histogram_count(sum(rhist_runs_total))") == expected, 60), "all is counted, and native",
   query("rhist_runs_total"))
same(value("histogram_sum(sum(rhist_runs_total))"), sum(values) * MACHINES, "sums are exact")
values.sort()
wrong = []
for q in (0.01, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999):
    truth = values[math.ceil(q * len(values)) - 1]
    got = value(f"histogram_quantile({q}, sum(rhist_runs_total))")
    # A bucket of scale 3 is 2^(1/8) wide: whatever Prometheus takes in it, is not further away than that.
    print(f"# quantile {q}: {got:.1f}, in truth {truth}: off by {got / truth - 1:+.3f}")
    if not 2 ** -0.125 <= got / truth <= 2 ** 0.125:
        wrong.append((q, truth, got))
ok(not wrong, "histogram_quantile() is within the bound of the truth", *wrong)
result = query("sum(rhist_runs_total)")
counts = {}
for number in values:
    index = next(i for i in range(400) if number <= 2 ** (i / 8) * (1 + 1e-12))
    counts[index] = counts.get(index, 0) + MACHINES
buckets = result[0]["histogram"][1]["buckets"] if result else []
got = {round(8 * math.log2(float(upper))): float(count) for _, _, upper, count in buckets}
same(got, counts, "buckets of several machines become one, exactly")
shares = [value(f'histogram_fraction(0, 65536, sum(rhist_runs_total{{instance="machine-{n}"}}))') for n in range(MACHINES)]
truth = sum(number <= 65536 for number in values) / len(values)
ok(all(abs(share - truth) < 1e-9 for share in shares), "so is the part that is below a bound of buckets", shares, truth)
classic = value('sum(rhist_runs_total_bucket{le=~"65536(.0)?"})')
same(classic, sum(number <= 65536 for number in values) * MACHINES, "and the classic bucket of this bound")

# --- what the package has for Prometheus and Grafana

for _ in range(20):
    subprocess.run(["ls", "/", "/nonexistent"], capture_output=True, check=False)
    time.sleep(0.5)
rules = ask("rules")["data"]["groups"]
states = {rule["name"]: rule["health"] for group in rules for rule in group["rules"]}
ok(len(states) == 6 and soon(lambda: all(rule["health"] == "ok" for group in ask("rules")["data"]["groups"]
                                         for rule in group["rules"]), 60), "the rules are evaluated", states)
ok(soon(lambda: bool(query("fleet:rhist_runqlat_seconds:rate5m")), 60), "and record something")
with open(f"{FLEET}/dashboard.json", encoding="utf-8") as file:
    dashboard = json.load(file)
empty, failed, asked = [], [], 0
for panel in dashboard["panels"]:
    for target in panel["targets"]:
        text = target["expr"].replace("$__rate_interval", "30s").replace("$instance", ".*")
        answer = ask("query", query=text)
        asked += 1
        if answer["status"] != "success" or answer.get("warnings"):
            failed.append((panel["title"], text, answer))
        elif not answer["data"]["result"]:
            empty.append(panel["title"])
ok(asked > 10 and not failed, f"all {asked} queries of the dashboard are understood", *failed)
# There may be no disk, and nothing that is paused.
wanted = {"Disks: p50 and p99", "What is missing"}
ok(set(empty) <= wanted, "and find something", *empty)
print(f"# nothing was found for: {sorted(set(empty))}")
for server in servers:
    server.stop()
prometheus.kill()
finish()
