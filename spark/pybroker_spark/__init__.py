"""Spark for pybroker, the only distribution that depends on PySpark.

Owns the Spark side: session defaults, the data source `pybroker`, and delegation tokens of tasks. It uses only the
public API of `pybroker.client`. Importing this package starts nothing, and imports neither PySpark nor a client: the
first call of one of its functions does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker_spark.session import SETTINGS, MasterError, SessionError, session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import SourceProgress
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from pybroker_spark.delegation import Delegation

__all__ = [
    "SETTINGS",
    "MasterError",
    "SessionError",
    "delegated",
    "register",
    "session",
    "source_metrics",
    "write_updates",
]


def register(spark: SparkSession) -> None:
    """Register the format `pybroker` in a session: `spark.read.format("pybroker")`."""
    from pybroker_spark.source import datasource

    datasource.register(spark)


def source_metrics(source: SourceProgress) -> dict[str, str]:
    """Return the lag of a source behind the newest records, with the metrics of Spark's Kafka connector.

    `source` is one of `query.lastProgress.sources`; Spark has no field for these metrics of a Python source.
    """
    from pybroker_spark import progress

    return progress.source_metrics(source)


def write_updates(frame: DataFrame, options: Mapping[str, str]) -> DataStreamWriter:
    """Return a stream writer for output mode `update`: its rows replace older ones with the same key.

    `options` are those of a write by the format pybroker. A micro-batch that is repeated after a crash writes its
    records again.
    """
    from pybroker_spark import updates

    return updates.write_updates(frame, options)


def delegated(
    bootstrap_servers: str,
    properties: Mapping[str, Any],
    *,
    mechanism: str = "SCRAM-SHA-512",
    max_lifetime_ms: int = -1,
) -> Delegation:
    """Return a context manager that owns a delegation token for tasks; its `options` are for the format.

    `properties` are a client's, with credentials that stay in this program. `mechanism` is the SCRAM mechanism with
    which tasks use the token, and `max_lifetime_ms` its maximum lifetime (below 0: the brokers' maximum). Raises
    DelegationError.
    """
    from pybroker_spark.delegation import Delegation

    return Delegation(bootstrap_servers, properties, mechanism=mechanism, max_lifetime_ms=max_lifetime_ms)
