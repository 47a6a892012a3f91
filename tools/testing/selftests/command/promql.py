# SPDX-License-Identifier: GPL-2.0
"""A Prometheus that scrapes and answers queries."""

import atexit
import json
import math
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request

FLEET = os.path.realpath(f"{os.path.dirname(os.path.abspath(__file__))}/../../../rhist/fleet")
ADDRESS = "127.0.0.1:9090"


class Prometheus:
    """
    Runs until the end of the test from `root`, where its package is unpacked, and scrapes
    machines (name, port) every `seconds`.
    """

    def __init__(self, root, work, machines, seconds):
        ms = round(1000 * seconds)
        targets = "".join(f"""
      - targets: ["127.0.0.1:{port}"]
        labels: {{ instance: "{name}" }}""" for name, port in machines)
        with open(f"{work}/prometheus.yml", "w", encoding="utf-8") as file:
            file.write(f"""
global: {{ scrape_interval: {ms}ms, scrape_timeout: {ms}ms, evaluation_interval: {ms}ms }}
rule_files: [ "{FLEET}/rules.yml" ]
scrape_configs:
  - job_name: rhist
    scrape_classic_histograms: true
    static_configs: {targets}
""")
        self.log = f"{work}/log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [f"{root}/usr/bin/prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/data",
                 "--enable-feature=native-histograms", f"--web.listen-address={ADDRESS}", "--web.console.libraries=/nonexistent",
                 "--web.console.templates=/nonexistent"], stdout=log, stderr=log)
        atexit.register(self.stop)

    def said(self):
        """The end of its log."""
        with open(self.log, encoding="utf-8") as file:
            return file.read()[-2000:]

    def stop(self):
        self.process.kill()
        self.process.wait()

    def ask(self, path, **parameters):
        """Returns the answer of its API."""
        url = f"http://{ADDRESS}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=180) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            return {"status": "error", "error": error.read().decode()}
        except OSError as error:
            return {"status": "error", "error": str(error)}

    def query(self, text):
        """Returns the result of a query, or None."""
        answer = self.ask("query", query=text)
        return answer["data"]["result"] if answer["status"] == "success" else None

    def value(self, text):
        """Returns the number that a query gives, or None."""
        result = self.query(text)
        return float(result[0]["value"][1]) if result else None

    def rules(self):
        """The health of rules, by their names."""
        return {rule["name"]: rule["health"] for group in self.ask("rules")["data"]["groups"] for rule in group["rules"]}


def buckets(histogram, scale):
    """
    Counts of a histogram in a result without negative values, by Prometheus' index: up to
    2^(index / 2^scale).
    """
    return {round(math.log2(float(upper)) * 2 ** scale): float(count) for _, _, upper, count in histogram["buckets"]
            if float(upper) > 0}


def dashboard(interval):
    """
    Returns the panels of the package's dashboard, each with its queries and their legends; rates
    are over this interval.
    """
    with open(f"{FLEET}/dashboard.json", encoding="utf-8") as file:
        panels = json.load(file)["panels"]
    for panel in panels:
        queries = [(target["expr"].replace("$__rate_interval", interval).replace("$instance", ".*"), target["legendFormat"])
                   for target in panel["targets"]]
        yield panel, queries
