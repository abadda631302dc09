"""Claims about `pybroker_spark.session`; the ones that start Spark need PySpark and Java."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pybroker_spark


def test_importing_the_package_imports_no_pyspark() -> None:
    script = "import sys, pybroker_spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_nothing_is_bound_beyond_loopback() -> None:
    hosts = {key: value for key, value in pybroker_spark.SETTINGS.items() if key.startswith("spark.driver.")}
    assert hosts
    assert set(hosts.values()) == {"127.0.0.1"}


@pytest.mark.java
@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("default")  # PySpark's own import warns; what is claimed here is that it works
def test_workers_run_the_interpreter_of_the_driver() -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install pybroker-spark")
    spark = pybroker_spark.session(master="local[1]", settings={"spark.driver.memory": "512m"})
    try:
        executables = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    finally:
        spark.stop()
    assert executables == [sys.executable]
