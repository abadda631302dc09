"""The `pybench` command: runs a tool, and reports an error as one line and an exit status."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from pybench.peers.errors import PeerError
from pybroker.cli.perf.options import ToolError
from pybroker.client import LatencyHistogram
from pybroker.client.errors import ClientError

TOOLS = {
    "producer-perf": ("pybroker.cli.perf.producer_perf", "Measure producing, as kafka-producer-perf-test does"),
    "consumer-perf": ("pybroker.cli.perf.consumer_perf", "Measure consuming, as kafka-consumer-perf-test does"),
    "e2e-latency": (
        "pybroker.cli.perf.e2e_latency",
        "Measure the way of one record and back, as kafka-e2e-latency does",
    ),
    "spark-producer-perf": (
        "pybench.spark_producer_perf",
        "Produce from many machines, as one Spark job",
    ),
    "spark-consumer-perf": ("pybench.spark_consumer_perf", "Consume on many machines, as one Spark job"),
    "spark-e2e-latency": ("pybench.spark_e2e_latency", "Measure stamped records from many producers to many consumers"),
    "spark-mix": ("pybench.spark_mix", "Run a scenario of many producers and consumers at once as one Spark job"),
    "spark-audit": ("pybench.spark_audit", "Check that each stamped record is in the log exactly once, as a Spark job"),
    "compare": ("pybench.compare", "Run the scenarios for pybroker and Apache Kafka in turns, and write the report"),
    "report": ("pybench.report", "Write bench/REPORT.md again from bench/results"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one tool. Returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="pybench", description="Kafka's performance tools, and comparisons of brokers."
    )
    tools = parser.add_subparsers(dest="tool", required=True, metavar="TOOL")
    for name, (module, summary) in TOOLS.items():
        tool = tools.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        if name in words[:1]:
            importlib.import_module(module).add_options(tool)
    options = parser.parse_args(words)
    try:
        # A pybroker built without load generation fails here, before the run.
        LatencyHistogram()
        return int(importlib.import_module(TOOLS[options.tool][0]).main(options))
    except (ToolError, ClientError, PeerError) as error:
        print(f"pybench {options.tool}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader has closed the pipe, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
