"""Spark's exceptions in words for the user: which option, which value, what would be right.

Owns the sentences. Goes by Spark's error conditions and by the classes of exceptions, never by their texts; what has no
sentence of its own is told with the innermost cause, as that says it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from pybroker_spark.pipelines.errors import JobError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

#: What a job meets as exceptions of Spark.
SPARK_ERRORS = (PySparkException, Py4JJavaError)

_DAMAGED = ("java.io.", "java.lang.IllegalStateException", "java.lang.AssertionError", "org.apache.hadoop.fs.")
"""Classes of what Spark meets in a checkpoint that is damaged, or of another query."""


class _Cause(NamedTuple):
    kind: str
    condition: str
    told: Mapping[str, str]
    message: str


def job_error(error: Exception, arguments: argparse.Namespace) -> JobError:
    """The sentence for one of `SPARK_ERRORS` that a job ended with."""
    causes = list(_causes(error))
    for cause in causes:
        if cause.condition == "PATH_NOT_FOUND":
            return UsageError(
                f"--source: nothing is at '{arguments.source}': give a file, a directory, or a pattern in quotes"
            )
        if cause.condition.startswith("FAILED_READ_FILE"):
            form = getattr(arguments, "format", "parquet")
            return JobError(f"{cause.told.get('path', 'a file')} cannot be read as {form}")
        if cause.condition == "USER_RAISED_EXCEPTION":
            return JobError(cause.told["errorMessage"])
    if not causes:
        return JobError(str(error).partition("\n")[0])
    last = causes[-1]
    text = last.message.strip()
    if "Traceback" in text:
        # Python's own error stands at the end of its traceback.
        text = next((line for line in reversed(_python_lines(text)) if line[:1].strip()), text)
    checkpoint = getattr(arguments, "checkpoint", None)
    if checkpoint is not None and last.kind.startswith(_DAMAGED):
        text += f"; if the checkpoint '{checkpoint}' is damaged or of another query, give a new directory"
    return JobError(text)


def _python_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("SQLSTATE")]


def _causes(error: Exception) -> Iterator[_Cause]:
    """The exceptions of the JVM behind one of Python, the outermost first."""
    java: Any = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while java is not None:
        kind = java.getClass().getName()
        told: dict[str, str] = {}
        condition = ""
        if is_instance_of(SparkContext._gateway, java, "org.apache.spark.SparkThrowable"):
            condition = java.getCondition() or ""
            told = dict(java.getMessageParameters())
        yield _Cause(kind, condition, told, java.getMessage() or kind)
        java = java.getCause()
