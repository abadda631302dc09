"""Messages for Spark's exceptions: option, value, and expected value.

Owns the messages. They depend on Spark's error conditions and exception classes, never on texts. An exception
without a message here is reported with the message of its innermost cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker_spark.pipelines.errors import JobError, UsageError
from pybroker_spark.spark_errors import SPARK_ERRORS, causes

if TYPE_CHECKING:
    import argparse

__all__ = ["SPARK_ERRORS", "job_error"]

_DAMAGED = ("java.io.", "java.lang.IllegalStateException", "java.lang.AssertionError", "org.apache.hadoop.fs.")
"""Exception classes of a checkpoint that is damaged, or belongs to another query."""


def job_error(error: Exception, arguments: argparse.Namespace) -> JobError:
    """Return the error with the message for one of `SPARK_ERRORS`."""
    chain = list(causes(error))
    for cause in chain:
        if cause.condition == "PATH_NOT_FOUND":
            return UsageError(
                f"--source: nothing is at '{arguments.source}': give a file, a directory, or a pattern in quotes"
            )
        if cause.condition.startswith("FAILED_READ_FILE"):
            form = getattr(arguments, "format", "parquet")
            return JobError(f"{cause.parameters.get('path', 'a file')} cannot be read as {form}")
        if cause.condition == "USER_RAISED_EXCEPTION":
            return JobError(cause.parameters["errorMessage"])
    if not chain:
        return JobError(str(error).partition("\n")[0])
    last = chain[-1]
    text = last.sentence
    checkpoint = getattr(arguments, "checkpoint", None)
    if checkpoint is not None and last.kind.startswith(_DAMAGED):
        text += f"; if the checkpoint '{checkpoint}' is damaged or of another query, give a new directory"
    return JobError(text)
