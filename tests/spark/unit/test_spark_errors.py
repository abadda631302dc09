"""What Spark's texts hold of errors of Python."""

from __future__ import annotations

import pytest

from pybroker_spark.spark_errors import python_error

LOST = """Job aborted due to stage failure: Could not recover from a failed barrier ResultStage. Most recent failure
reason: Stage failed because barrier task ResultTask(0, 1) finished unsuccessfully.
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    run()
ZeroDivisionError: division by zero

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)

Driver stacktrace:"""
NOT_LOADED = """barrier task ResultTask(0, 0) finished unsuccessfully.
Traceback (most recent call last):
  File "serializers.py", line 1, in _read_with_length
    return self.loads(obj)
ModuleNotFoundError: No module named 'mine'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "worker.py", line 1, in main
    func = read()
pyspark.serializers.SerializationError: Caused by Traceback (most recent call last):
  File "serializers.py", line 1, in _read_with_length
    return self.loads(obj)
ModuleNotFoundError: No module named 'mine'

"""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (LOST, "ZeroDivisionError: division by zero"),
        (NOT_LOADED, "ModuleNotFoundError: No module named 'mine'"),
        ("Job 0 cancelled because SparkContext was shut down", None),
    ],
)
def test_an_error_of_python_is_found_at_the_end_of_its_traceback(text: str, error: str | None) -> None:
    assert python_error(text) == error
