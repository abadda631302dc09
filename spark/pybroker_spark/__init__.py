"""Spark for pybroker, the only distribution that needs PySpark.

Owns what is Spark's: session defaults and the data source `pybroker`. Knows nothing of the broker but
`pybroker.client`'s public face. Importing this package starts nothing, and does not import PySpark: the first call of
`session` or `register` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker_spark.session import SETTINGS, MasterError, SessionError, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SETTINGS", "MasterError", "SessionError", "register", "session"]


def register(spark: SparkSession) -> None:
    """Make the format `pybroker` known to a session: `spark.read.format("pybroker")`."""
    from pybroker_spark.source import datasource

    datasource.register(spark)
