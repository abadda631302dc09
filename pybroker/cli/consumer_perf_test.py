"""`pybroker consumer-perf-test`: the command around `pybroker.cli.perf.consumer_perf`, which owns the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.perf import consumer_perf as tool
from pybroker.cli.perf.running import run_tool

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Measure consuming. Options and output are those of kafka-consumer-perf-test."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    tool.add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the tool, and return its status."""
    return run_tool(tool.main, arguments)
