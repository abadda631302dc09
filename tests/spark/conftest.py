"""One Spark session for all Spark tests, and the broker that they read from and write to.

The session has the format `pybroker`, and `kafka` if Spark's Kafka connector could be fetched: its jars must exist when
the session is created.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest

from pybench.peers.errors import MissingToolError
from pybench.peers.java import fetch_connector_jars
from pybroker.client import Admin, NewTopic
from pybroker.testing import Broker
from pybroker_spark import register, session
from tests.support import programs
from tests.support.repository import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOTS = 2
TRIES = 4
"""Attempts of a task. The default of a local master is one."""

_numbers = itertools.count()


@cache
def connector_jars() -> tuple[str, str]:
    """Return the comma-separated jars of Spark's Kafka connector, or an empty string and the missing program."""
    try:
        return ",".join(str(jar) for jar in fetch_connector_jars()), ""
    except MissingToolError as error:
        return "", str(error)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of `local[2]` with retries. The C1 compiler and the serial GC halve the time of the first jobs."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.showConsoleProgress": "false",
        "spark.jars": connector_jars()[0],
        # Python workers import `examples`, which is not installed.
        "spark.executorEnv.PYTHONPATH": str(ROOT / "spark"),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # PySpark's own import warns
        spark = session("tests", master=f"local[{SLOTS},{TRIES}]", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def connector(spark: SparkSession) -> SparkSession:
    """The session, for tests of the format `kafka`. Skips (in CI: fails) the test if Maven is missing."""
    _, lacking = connector_jars()
    if lacking:
        programs.lacking(lacking)
    return spark


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """An embedded broker, shared by the tests that neither stop it nor check its global state."""
    # The records of tests have old timestamps.
    with Broker(log_retention_ms=-1) as broker:
        yield broker


@pytest.fixture(scope="session")
def make_topic(broker: Broker) -> Callable[..., str]:
    """A factory that creates a topic with the given number of partitions and returns its name."""

    def make(partitions: int = 1, name: str | None = None) -> str:
        name = name or f"topic-{next(_numbers)}"
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(name, partitions, 1)])
            admin.wait_for_leaders(name)
        return name

    return make
