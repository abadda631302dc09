"""What a process of Spark is set up with before it works for the first time.

Spark's worker collects garbage after every task, and looks through all that PySpark, pyarrow and this package have
loaded each time: 13 ms a task, of the 75 that a micro-batch takes. Its processes of Python have no logging of their
own: Python then prints a warning's text alone.
"""

from __future__ import annotations

import gc
import logging
import sys
from typing import Final

_LOGGERS: Final = ("pybroker", "pybroker_spark")
_OF_SPARK: Final = "pyspark."
_LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_TIME: Final = "%y/%m/%d %H:%M:%S"
"""As the log of Spark's JVM, beside which these lines stand."""

_settled = False
"""A worker that is forked from a settled process is settled as well."""


def settle() -> None:
    """Leave what is loaded by now out of every later collection: it stays as long as the process. Once a process."""
    global _settled
    if not _settled:
        gc.freeze()
        _settled = True


def log_as_spark() -> None:
    """Have warnings written with date, level and logger, where this process is one of Spark's without any logging.

    In a program of the user's it changes nothing: how that logs is the program's matter.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None or not spec.name.startswith(_OF_SPARK):
        return
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not logger.hasHandlers():
            handler = logging.StreamHandler()
            handler.setFormatter(_SparkFormatter(_LINE, _TIME))
            logger.addHandler(handler)


class _SparkFormatter(logging.Formatter):
    """Names levels as Spark does."""

    def format(self, record: logging.LogRecord) -> str:
        """WARN for WARNING."""
        if record.levelno == logging.WARNING:
            record.levelname = "WARN"
        return super().format(record)
