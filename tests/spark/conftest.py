"""One Spark session for all tests of Spark, and the broker that they read and write."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pybroker.testing import Broker
from pybroker_spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOTS = 2
TRIES = 4
"""Attempts of a task; a local master gives one unless it is asked for more."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """`local[2]` with retries. A compiler of one tier and a serial collector halve the time of the first jobs."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # PySpark's own import warns
        spark = session("tests", master=f"local[{SLOTS},{TRIES}]", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """An embedded broker for all tests that neither stop it nor look at it as a whole."""
    with Broker() as broker:
        yield broker
