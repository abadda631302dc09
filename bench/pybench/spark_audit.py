"""`spark-audit`: a Spark job that verifies that each record of a load is in its topic exactly once.

Owns only the command line. `pybroker_spark.audit.job` is the implementation.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Any


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the job."""
    try:
        _job().add_options(parser)
    except ModuleNotFoundError as error:
        parser.error(f"{error.name} is missing: pip install ./spark in a clone of pybroker")


def main(options: argparse.Namespace) -> int:
    """Run the audit. Returns 0 if every record exists once, 1 if not, 2 if the load's report cannot be read."""
    return int(_job().main(options))


def _job() -> Any:
    return importlib.import_module("pybroker_spark.audit.job")
