"""The content of Spark's exceptions: the causes in the JVM, and a message for the user.

Owns the conversion from an exception of PySpark to its causes. It depends on Spark's error conditions and exception
classes, never on texts. Must not know how programs handle them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The exceptions of Spark in a program.
SPARK_ERRORS = (PySparkException, Py4JJavaError)


@dataclass(frozen=True, slots=True)
class Cause:
    """One exception of the JVM."""

    kind: str
    """Its class."""
    condition: str
    """Spark's error condition, or empty."""
    parameters: Mapping[str, str]
    """The parameters of the condition."""
    message: str

    @property
    def sentence(self) -> str:
        """Return the message; of a Python error only the message at the end of its traceback."""
        return python_error(self.message) or self.message.strip()


_TRACEBACK = "Traceback (most recent call last):"
_NESTED = "Caused by " + _TRACEBACK
"""Prefix by which a message of PySpark quotes the traceback of a module that could not be loaded."""


def python_error(text: str) -> str | None:
    """Return the message of a Python error at the end of its traceback, from a text of Spark that contains one.

    Of several tracebacks the first counts where the later ones occurred during its handling, else the last.
    """
    if _TRACEBACK not in text:
        return None
    rest = text.split(_NESTED, 1)[1] if _NESTED in text else text.rsplit(_TRACEBACK, 1)[1]
    lines = iter(rest.splitlines()[1:])
    return next((line.strip() for line in lines if line.strip() and not line[0].isspace()), None)


def causes(error: Exception) -> Iterator[Cause]:
    """Yield the exceptions of the JVM behind one of `SPARK_ERRORS`, the outermost first."""
    java: Any = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while java is not None:
        kind = java.getClass().getName()
        parameters: dict[str, str] = {}
        condition = ""
        if is_instance_of(SparkContext._gateway, java, "org.apache.spark.SparkThrowable"):
            condition = java.getCondition() or ""
            parameters = dict(java.getMessageParameters())
        yield Cause(kind, condition, parameters, java.getMessage() or kind)
        java = java.getCause()


def sentence(error: Exception) -> str:
    """Return the message of the innermost cause of one of `SPARK_ERRORS`."""
    chain = list(causes(error))
    return chain[-1].sentence if chain else python_error(str(error)) or str(error).partition("\n")[0]
