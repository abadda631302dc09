"""Claims about `pybroker_spark.session`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import pybroker_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_importing_the_package_imports_no_pyspark() -> None:
    script = "import sys, pybroker_spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_nothing_is_bound_beyond_loopback() -> None:
    hosts = {value for key, value in pybroker_spark.SETTINGS.items() if key.endswith((".host", ".bindAddress"))}
    assert hosts == {"127.0.0.1"}


@pytest.mark.java
def test_workers_run_the_interpreter_of_the_driver(spark: SparkSession) -> None:
    executables = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert executables == [sys.executable]


@pytest.mark.java
def test_the_defaults_for_java_hold_beside_a_job_s_own_options(spark: SparkSession) -> None:
    machine: Any = spark._jvm
    given = set(machine.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
    assert {"-Darrow.enable_null_check_for_get=false", "-XX:+UseSerialGC"} <= given
    assert not machine.org.apache.arrow.vector.NullCheckingForGet.NULL_CHECKING_ENABLED
