"""`spark-audit`: proves of what load generators sent that each record is in its topic exactly once, as a Spark job.

Everything is `pybroker_spark.audit.job`'s; here is the word of the command line.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Any


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the job."""
    try:
        _job().add_options(parser)
    except ModuleNotFoundError as error:
        parser.error(f"{error.name} is missing: pip install ./spark in a clone of pybroker")


def main(options: argparse.Namespace) -> int:
    """Audit; 0 when every record is there once, 1 when not, 2 when the load's report cannot be read."""
    return int(_job().main(options))


def _job() -> Any:
    return importlib.import_module("pybroker_spark.audit.job")
