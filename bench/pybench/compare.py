"""`pybench compare`: runs pybroker and Apache Kafka interleaved. Writes bench/results/*.json and bench/REPORT.md.

Owns the brokers' processes and the machine's description. `pybench.turns` runs the rounds, `pybench.figures` defines
the figures, `pybench.report` writes the report.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pybench import report
from pybench.checkout import BENCH
from pybench.loads import plain_write, prepare
from pybench.peers.java import KAFKA_VERSION
from pybench.peers.kafka import Kafka
from pybench.peers.kafka_cluster import KafkaCluster
from pybench.peers.pybroker import Pybroker
from pybench.peers.pybroker_cluster import PybrokerCluster
from pybench.peers.scraped import SCRAPED, Scraped
from pybench.peers.secured import KINDS, Secured
from pybench.peers.sink import Sink
from pybench.process import congestion_control
from pybench.scenario import BROKERS, SUITES, Scenario, read_scenarios
from pybench.turns import OWN_BROKER, SINK, Node, run_scenario
from pybroker.cli.perf.options import ToolError

RESULTS = BENCH / "results"
_QUICK_ROUNDS = 2
_WARM_BYTES = 2 * 2**30
_SETTINGS = {"log.segment.delete.delay.ms": "1000", "group.initial.rebalance.delay.ms": "0"}
"""Non-default settings: segments of a deleted topic are deleted after a second instead of a minute, and the first
member of a group does not wait three seconds for others."""

VARIANTS: dict[str, dict[str, str]] = {
    "kafka": {},
    "kafka-cluster": {},
    "kafka-flush": {"log.flush.interval.messages": "1"},
    "pybroker": {},
    "pybroker-cluster": {},
    "pybroker-flush": {"log.flush.interval.messages": "1"},
    "pybroker-group": {"flush": "group"},
    # Without BBR's pacing, automatic send buffer sizing is better: fewer context switches, half the CPU time.
    **{f"{broker}-{kind}": {} for broker in ("kafka", "pybroker") for kind in KINDS},
    "pybroker-reno": {"congestion.control": "reno", "socket.send.buffer.bytes": "-1"},
    "pybroker-streams": {
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.streams.min.heartbeat.interval.ms": "1000",
        "group.streams.heartbeat.interval.ms": "1000",
        "group.streams.assignment.interval.ms": "0",
    },
    SCRAPED: {},
}
"""The brokers of scenarios, and their settings in addition to `_SETTINGS`."""


CLUSTER = "-cluster"
"""The suffix of the name of a three-node cluster."""
_SECURED = tuple(f"-{kind}" for kind in KINDS)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the rows to run and the number of rounds."""
    parser.add_argument(
        "--only", action="append", metavar="ROW", help="run this row only (may be repeated); part of its id is enough"
    )
    parser.add_argument(
        "--suite", choices=SUITES, default=BROKERS, help="brokers (default), streams, or what needs PySpark: spark"
    )
    parser.add_argument("--list", action="store_true", help="list the rows and end")
    parser.add_argument(
        "--rounds", type=int, default=5, metavar="N", help="counted rounds of each row (default: 5); some have more"
    )
    parser.add_argument("--warm-up", type=int, default=1, metavar="N", help="uncounted rounds before them (default: 1)")
    parser.add_argument(
        "--quick", action="store_true", help=f"fewer records, {_QUICK_ROUNDS} rounds, no warming of memory"
    )
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="DIR", help="where the figures go (default: bench/results)"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="where the report goes (default: bench/REPORT.md)")
    parser.add_argument(
        "--kafka-in-both-roles",
        action="store_true",
        help="run Apache Kafka also as pybroker: a check of the method, not of a broker",
    )


def main(options: argparse.Namespace) -> int:
    """Run the rows. Returns 0 even if a figure misses its target, which the report shows."""
    scenarios = choose([s for s in read_scenarios() if s.suite == options.suite], options.only)
    if options.list:
        for scenario in scenarios:
            print(f"{scenario.id:<24} {scenario.title}", flush=True)
        return 0
    rounds = min(options.rounds, _QUICK_ROUNDS) if options.quick else options.rounds
    if rounds < 1 or options.warm_up < 0:
        raise ToolError("--rounds must be at least 1, --warm-up at least 0")
    prepare({c.load for s in scenarios for c in s.contestants})
    options.results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pybench-compare-") as folder:
        work = Path(folder)
        if not options.quick:
            log("first touch of memory: writing and deleting 2 GiB")
            plain_write(work, _WARM_BYTES // 1024, 1024)
        wanted = {c.broker for s in scenarios for c in s.contestants if c.load not in OWN_BROKER} - {"none"}
        with running(wanted, work, kafka_in_both_roles=options.kafka_in_both_roles) as nodes:
            for scenario in scenarios:
                records = scenario.quick_records if options.quick else scenario.records
                begun = time.monotonic()
                counted = rounds if options.quick else max(rounds, scenario.rounds)
                # A row may need more warm-up, for example for the JIT compiler of a JVM.
                warm_up = max(options.warm_up, int(scenario.properties.get("warm_up", 0)))
                seen = run_scenario(scenario, nodes, work, rounds=counted, warm_up=warm_up, records=records, log=log)
                document = describe(scenario, records, (warm_up, counted), options, seen)
                (options.results / f"{scenario.id}.json").write_text(json.dumps(document, indent=1) + "\n")
                log(f"{scenario.id} took {time.monotonic() - begun:.0f} s")
                for line in report.verdicts(scenario, document):
                    log("  " + line)
    path = report.write(options.results, options.report)
    log(f"report: {path}")
    return 0


def choose(scenarios: list[Scenario], only: list[str] | None) -> list[Scenario]:
    """Return the rows whose ids contain one of the words. Raises ToolError if a word matches no row."""
    if not only:
        return scenarios
    for word in only:
        if not any(word in s.id for s in scenarios):
            raise ToolError(f"--only {word}: no such row; known are {', '.join(s.id for s in scenarios)}")
    return [s for s in scenarios if any(word in s.id for word in only)]


@contextlib.contextmanager
def running(wanted: set[str], work: Path, *, kafka_in_both_roles: bool) -> Iterator[dict[str, Node]]:
    """Yield the brokers that the rows need, running side by side. A broker without load is idle."""
    with contextlib.ExitStack() as stack:
        nodes: dict[str, Node] = {}
        for name in sorted(wanted):
            log(f"starting {name}")
            if name == SINK:
                nodes[name] = stack.enter_context(Sink(work / name))
                continue
            settings = {**_SETTINGS, **VARIANTS[name]}
            if name.endswith(CLUSTER):
                if name.startswith("kafka") or kafka_in_both_roles:
                    nodes[name] = stack.enter_context(KafkaCluster(work / name, settings))
                else:
                    nodes[name] = stack.enter_context(PybrokerCluster(work / name, settings))
            elif name.endswith(_SECURED):
                is_kafka = name.startswith("kafka") or kafka_in_both_roles
                secured = Secured(name.rpartition("-")[2], is_kafka=is_kafka, directory=work / name, overrides=settings)
                nodes[name] = stack.enter_context(secured)
            elif name.startswith("kafka"):
                nodes[name] = stack.enter_context(Kafka(work / name, settings))
            elif kafka_in_both_roles:
                nodes[name] = stack.enter_context(Kafka(work / name, _SETTINGS))
            elif name == SCRAPED:
                nodes[name] = stack.enter_context(Scraped(work / name, settings))
            else:
                nodes[name] = stack.enter_context(Pybroker(work / name, settings))
        yield nodes


def describe(
    scenario: Scenario, records: int, rounds: tuple[int, int], options: argparse.Namespace, seen: dict[str, Any]
) -> dict[str, Any]:
    """Return the content of a results file: the raw rounds and their environment. `rounds` are (warm-up, counted)."""
    return {
        "scenario": scenario.id,
        "title": scenario.title,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "kafka_in_both_roles": options.kafka_in_both_roles,
        "records": records,
        "size": scenario.size,
        "rounds": rounds[1],
        "warm_up_rounds": rounds[0],
        "contestants": seen,
        "congestion_control": congestion_control(),
        "versions": {
            "pybroker": version("pybroker"),
            "kafka": KAFKA_VERSION,
            "python": platform.python_version(),
            "kernel": platform.release(),
        },
        "cores": os.cpu_count(),
        "processor": processor(),
    }


def processor() -> str:
    """Return the name of the processor from Linux: figures of different machines are not comparable."""
    with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        return next(names, platform.machine())


def log(line: str) -> None:
    """Log progress to standard error."""
    print(f"{datetime.now():%H:%M:%S} {line}", file=sys.stderr, flush=True)
