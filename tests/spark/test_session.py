"""Claims about `pybroker_spark.session`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import pybroker_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_importing_the_package_imports_no_pyspark() -> None:
    script = "import sys, pybroker_spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_nothing_is_bound_beyond_loopback() -> None:
    hosts = {key: value for key, value in pybroker_spark.SETTINGS.items() if key.startswith("spark.driver.")}
    assert hosts
    assert set(hosts.values()) == {"127.0.0.1"}


@pytest.mark.java
def test_workers_run_the_interpreter_of_the_driver(spark: SparkSession) -> None:
    executables = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert executables == [sys.executable]
