"""The audit at scale: a load of stamped records and its audit, then a stream with deliberate damage.

`python -m pybench.large_audit --records 100000000` starts a broker, runs `spark-producer-perf --stamped` and
`spark-audit` like a user, and measures the memory of the audit. Then it does the same with a tenth of the records, of
which some are left out, sent twice or swapped. It prints one JSON document. The exit status is 0 if the audit's figures
are correct. The records take 115 bytes each on disk during the run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pybench.peers.pybroker import Pybroker
from pybench.process import descendants, peak_resident_bytes, program
from pybroker.cli.perf.options import ToolError
from pybroker.client import Admin, LoadGenerator, NewTopic, Producer

RECORD_BYTES = 100
_ON_DISK_BYTES = 115
_PARTITIONS = 4
_POLL_INTERVAL_S = 0.25
_TOPIC = {"message.timestamp.type": "LogAppendTime"}
"""Latency then refers to the broker's clock."""
_LIMITS = {"java": 3 << 30, "python": 1 << 30}
"""Memory limits, in bytes, of the driver's JVM and of each Python process: far below the size of the records."""


@dataclass(slots=True)
class Memory:
    """The peak resident memory of a process's descendants, by program."""

    pid: int
    largest: dict[str, int] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Poll until `over` is set."""
        while not self.over.wait(_POLL_INTERVAL_S):
            for pid in descendants(self.pid):
                kind = "java" if program(pid) == "java" else "python"
                self.largest[kind] = max(self.largest.get(kind, 0), peak_resident_bytes(pid))


@dataclass(frozen=True, slots=True)
class Damage:
    """A stream of sequence blocks. In each hundred blocks, some are left out, sent twice, or swapped with the next."""

    blocks: int
    size: int = 1000

    def order(self) -> list[int]:
        """Return the blocks in the order of sending."""
        order: list[int] = []
        for block in range(self.blocks):
            kind = block % 100
            if kind == 21 and block + 1 < self.blocks:
                order += [block + 1, block]
            elif kind == 13:
                order += [block, block]
            elif kind not in (7, 22):  # block 22 was sent together with 21
                order.append(block)
        return order

    def truth(self) -> dict[str, int]:
        """Return the figures that a correct audit reports."""
        order, seen, greatest = self.order(), set[int](), -1
        counts = {"records": len(order) * self.size, "lost": 0, "duplicated": 0, "reordered": 0}
        for block in order:
            if block in seen:
                counts["duplicated"] += self.size
            elif block < greatest:
                counts["reordered"] += self.size
            seen.add(block)
            greatest = max(greatest, block)
        counts["lost"] = (greatest + 1 - len(seen)) * self.size
        return counts


def send_damaged(servers: str, topic: str, records: int) -> dict[str, int]:
    """Send the streams of two producers to each partition. Returns the expected audit figures."""
    damage = Damage(records // (2 * _PARTITIONS * 1000))
    with Producer(servers, {"batch.size": 131_072}) as producer:
        load = LoadGenerator(producer)
        for block in damage.order():
            for number in (1, 2):
                for partition in range(_PARTITIONS):
                    first = block * damage.size
                    load.send_stamped(topic, partition, number, first, RECORD_BYTES, damage.size)
        producer.flush()
    return {name: count * 2 * _PARTITIONS for name, count in damage.truth().items()}


def load(servers: str, topic: str, records: int, master: str, report: Path) -> dict[str, int]:
    """Run `spark-producer-perf --stamped` with this many records. Raises ToolError."""
    words = ["spark-producer-perf", "--bootstrap-server", servers, "--topic", topic, "--master", master]
    words += ["--num-records", str(records), "--record-size", str(RECORD_BYTES), "--throughput", "-1", "--stamped"]
    _run([*words, "--command-property", "batch.size=131072", "--json", str(report)], expected=0)
    return {"records": records, "lost": 0, "duplicated": 0, "reordered": 0}


def audit(servers: str, topic: str, truth: dict[str, int], master: str, load_report: Path | None) -> dict[str, Any]:
    """Run `spark-audit` of a topic. Returns its figures, time and memory. Raises ToolError if the figures are wrong."""
    with tempfile.TemporaryDirectory(prefix="pybench-audit-") as folder:
        path = Path(folder) / "audit.json"
        words = ["spark-audit", "--bootstrap-server", servers, "--topic", topic, "--master", master]
        words += ["--json", str(path)] + ([] if load_report is None else ["--expect", str(load_report)])
        begun = time.monotonic()
        largest = _run(words, expected=0 if truth["lost"] + truth["duplicated"] == 0 else 1)
        seconds = time.monotonic() - begun
        found = json.loads(path.read_text())
    if (wrong := {name: found[name] for name in truth if found[name] != truth[name]}) != {}:
        raise ToolError(f"{topic}: the audit found {wrong}, and there is {truth}")
    if (large := {kind: size for kind, size in largest.items() if size > _LIMITS[kind]}) != {}:
        raise ToolError(f"{topic}: the audit took {large} bytes of memory, more than {_LIMITS}")
    memory = {f"{kind}_mib": round(size / 2**20) for kind, size in sorted(largest.items())}
    return {**{name: found[name] for name in truth}, "latency": found["latency"], "seconds": seconds, **memory}


def _run(words: list[str], *, expected: int) -> dict[str, int]:
    """Run a tool of pybench with its output on standard error. Returns the peak memory of its processes."""
    print("$ pybench " + " ".join(words), file=sys.stderr, flush=True)
    with subprocess.Popen([str(Path(sys.executable).with_name("pybench")), *words], stdout=sys.stderr) as process:
        memory = Memory(process.pid)
        watcher = threading.Thread(target=memory.watch)
        watcher.start()
        try:
            status = process.wait()
        finally:
            memory.over.set()
            watcher.join()
    if status != expected:
        raise ToolError(f"{words[0]} ended with status {status}, not {expected}")
    return memory.largest


def run(records: int, master: str, directory: Path | None) -> dict[str, Any]:
    """Run both streams, one after the other, and remove the data. Raises ToolError."""
    with tempfile.TemporaryDirectory(prefix="pybench-audit-", dir=directory) as folder:
        needed, free = records * _ON_DISK_BYTES * 5 // 4, shutil.disk_usage(folder).free
        if free < needed:
            raise ToolError(f"{folder}: {free >> 30} GiB are free, and {needed >> 30} GiB are needed; set --directory")
        with Pybroker(Path(folder) / "broker") as broker:
            servers, report = broker.bootstrap_servers, Path(folder) / "load.json"
            with Admin(servers) as admin:
                admin.create_topics([NewTopic(name, _PARTITIONS, 1, _TOPIC) for name in ("whole", "damaged")])
                for name in ("whole", "damaged"):
                    admin.wait_for_leaders(name)
            whole = audit(servers, "whole", load(servers, "whole", records, master, report), master, report)
            truth = send_damaged(servers, "damaged", records // 10)
            return {"master": master, "whole": whole, "damaged": audit(servers, "damaged", truth, master, None)}


def main(arguments: list[str] | None = None) -> int:
    """Run both streams and print the results."""
    parser = argparse.ArgumentParser(prog="python -m pybench.large_audit", description="The audit of many records.")
    parser.add_argument("--master", default="local[2]", metavar="URL", help="where Spark runs (default: local[2])")
    parser.add_argument("--records", type=int, default=100_000_000, metavar="N", help="records of 100 bytes (100 M)")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="where the records lie meanwhile")
    options = parser.parse_args(arguments)
    if options.records < 2_000_000:
        parser.error("--records must be at least 2000000: a tenth of them is damaged by the block of 1000")
    try:
        found = run(options.records, options.master, options.directory)
    except ToolError as error:
        print(f"large_audit: {error}", file=sys.stderr)
        return 1
    print(json.dumps(found, indent=1), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
