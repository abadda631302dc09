"""Shared command line options of the Spark tools, and their Spark session.

PySpark and `pybroker_spark` are imported when a tool runs, not before: `pybench` installs and works without them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.waits import Waits
from pybroker.cli.perf.options import ToolError, check_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {"spark.ui.showConsoleProgress": "false"}
_LONGEST_INTERVAL_S = 1.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the master, the tasks and the output files."""
    add = parser.add_argument
    add(
        "--master",
        default="local[*]",
        metavar="URL",
        help="Spark's master: local[N], local-cluster[N,C,M] or a cluster's address (default: local[*]).",
    )
    add("--tasks", type=int, metavar="N", help="Tasks at once, one a slot (default: as many as there are slots).")
    add("--parquet", type=Path, metavar="DIR", help="Write intervals.parquet and acknowledged.parquet there.")
    add("--html", type=Path, metavar="FILE", help="Write a report with plots there; one file, nothing beside it.")
    add(
        "--channel-tls",
        action="store_true",
        help="Encrypt what the tasks report to the driver, by TLS with a certificate that is made for this run.",
    )
    add(
        "--delegation-token",
        action="store_true",
        help="Have the tasks sign in by a delegation token, which ends with the load, in place of credentials.",
    )
    parser.set_defaults(waits=Waits(), spark_version="")


def ways(options: argparse.Namespace) -> dict[str, bool]:
    """Return the arguments of `load.run` for the connections of tasks to the driver and the brokers."""
    return {"channel_tls": options.channel_tls, "delegation_token": options.delegation_token}


def check(options: argparse.Namespace) -> None:
    """Check the options and the output paths before the load starts. Raises ToolError."""
    if options.tasks is not None and options.tasks < 1:
        raise ToolError(f"--tasks {options.tasks}: must be at least 1")
    if options.reporting_interval <= 0:
        raise ToolError(f"--reporting-interval {options.reporting_interval}: must be above 0")
    check_file("--json", options.json)
    check_file("--html", options.html)
    directory: Path | None = options.parquet
    if directory is not None:
        there = next(one for one in (directory.absolute(), *directory.absolute().parents) if one.exists())
        if not there.is_dir():
            raise ToolError(f"--parquet {directory}: {there} is a file; must be, or become, a directory")
        if not os.access(there, os.W_OK | os.X_OK):
            raise ToolError(f"--parquet {directory}: {there} cannot be written in")


def import_load() -> Any:
    """Import `pybroker_spark.load`. Raises ToolError, with the package to install, if it is missing."""
    try:
        importlib.import_module("pyspark")
        return importlib.import_module("pybroker_spark.load")
    except ModuleNotFoundError as error:
        raise ToolError(
            f"the Spark tools need {error.name}, which is missing: pip install ./spark in a clone of pybroker"
        ) from None


@contextlib.contextmanager
def open_session(options: argparse.Namespace) -> Iterator[SparkSession]:
    """Yield the active Spark session, or a new one at `--master`, which is stopped at the end.

    Raises ToolError if no session can be created.
    """
    import_load()
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        options.spark_version = running.version
        yield running
        return
    from pybroker_spark import MasterError, SessionError, session

    try:
        with options.waits.wait("Spark"):
            spark = session(f"pybench {options.tool}", master=options.master, settings=_SETTINGS)
    except MasterError as error:
        raise ToolError(f"--master: {error}") from None
    except SessionError as error:
        raise ToolError(str(error)) from None
    try:
        spark.sparkContext.setLogLevel("OFF")
        options.spark_version = spark.version
        yield spark
    finally:
        spark.stop()


@contextlib.contextmanager
def reported_errors() -> Iterator[None]:
    """Convert LoadError to ToolError."""
    load = import_load()
    try:
        yield
    except load.LoadError as error:
        raise ToolError(str(error)) from None


def choose_tasks(options: argparse.Namespace, spark: SparkSession, most: int | None = None) -> int:
    """Return the number of tasks: that of `--tasks` or one for each slot, at most `most`."""
    load = import_load()
    with options.waits.wait("slots"):
        tasks: int = options.tasks or max(1, load.stable_slots(load.context_of(spark)))
    return tasks if most is None else min(tasks, most)


def interval_s(options: argparse.Namespace) -> float:
    """Return the interval of client reports in seconds: at most `--reporting-interval`, and at most one second."""
    return float(min(_LONGEST_INTERVAL_S, options.reporting_interval / 1000))


def new_run() -> int:
    """Return a number for this run that distinguishes its producers from those of other runs."""
    return int(time.time())
