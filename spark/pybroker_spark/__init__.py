"""Spark for pybroker, the only distribution that needs PySpark.

Owns what is Spark's: session defaults, the data source `pybroker`, and tokens by which tasks sign in. Knows nothing of
the broker but `pybroker.client`'s public face. Importing this package starts nothing, and imports neither PySpark nor a
client: the first call of `session`, `register` or `delegated` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker_spark.session import SETTINGS, MasterError, SessionError, session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from pybroker_spark.delegation import Delegation

__all__ = ["SETTINGS", "MasterError", "SessionError", "delegated", "register", "session"]


def register(spark: SparkSession) -> None:
    """Make the format `pybroker` known to a session: `spark.read.format("pybroker")`."""
    from pybroker_spark.source import datasource

    datasource.register(spark)


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
