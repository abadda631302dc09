"""The setup of a Spark worker process before its first task.

Spark's worker runs the garbage collector after every task, which scans all modules of PySpark, pyarrow and this
package: 13 ms a task, of the 75 ms of a micro-batch. Spark's Python processes have no logging configuration, so
Python prints only the text of a warning.
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
"""The format of the log of Spark's JVM, which contains these lines."""

_completed = False
"""A worker that is forked from a process with this setup has it too."""


def freeze_loaded() -> None:
    """Exclude all current objects from later collections, since they live as long as the process. Once a process."""
    global _completed
    if not _completed:
        gc.freeze()
        _completed = True


def log_as_spark() -> None:
    """Log warnings with date, level and logger, if this is a process of Spark without a logging configuration.

    Changes nothing in a user's program, which configures its own logging.
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
    """Formats levels as Spark does."""

    def format(self, record: logging.LogRecord) -> str:
        """Format WARNING as WARN."""
        if record.levelno == logging.WARNING:
            record.levelname = "WARN"
        return super().format(record)
