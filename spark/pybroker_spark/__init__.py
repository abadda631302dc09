"""Spark for pybroker, the only distribution that needs PySpark.

Owns what is Spark's: session defaults, the data source `pybroker`, and tokens by which tasks sign in. Knows nothing of
the broker but `pybroker.client`'s public face. Importing this package starts nothing, and imports neither PySpark nor a
client: the first call of one of its functions does.
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
    """Make the format `pybroker` known to a session: `spark.read.format("pybroker")`."""
    from pybroker_spark.source import datasource

    datasource.register(spark)


def source_metrics(source: SourceProgress) -> dict[str, str]:
    """Return how far a source of a query's progress is behind the newest records, as Spark's Kafka connector has it.

    `source` is one of `query.lastProgress.sources`; Spark gives the format pybroker no place for these metrics.
    """
    from pybroker_spark import progress

    return progress.source_metrics(source)


def write_updates(frame: DataFrame, options: Mapping[str, str]) -> DataStreamWriter:
    """Return a writer of a stream in output mode `update`: its rows replace older ones of their key.

    `options` are those of a write by the format pybroker. A micro-batch that comes again after a crash writes its
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
    """Return what makes a delegation token for tasks, in a `with`: its `options` are for the format.

    `properties` are a client's, with credentials that stay in this program; `mechanism` is that of SCRAM by which tasks
    show the token, and `max_lifetime_ms` how long it may live (below 0: as long as brokers allow). Raises
    DelegationError.
    """
    from pybroker_spark.delegation import Delegation

    return Delegation(bootstrap_servers, properties, mechanism=mechanism, max_lifetime_ms=max_lifetime_ms)
