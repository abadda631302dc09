"""`pybroker e2e-latency`: the command around `pybroker.cli.perf.e2e_latency`, which owns options and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.perf import e2e_latency as tool
from pybroker.cli.perf.running import run_tool

if TYPE_CHECKING:
    import argparse

DESCRIPTION = (
    "Measure the time from producing a record to consuming it. Options and output are those of kafka-e2e-latency."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    tool.add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the tool, and return its status."""
    return run_tool(tool.main, arguments)
