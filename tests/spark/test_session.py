"""Claims about `pybroker_spark.session`."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pybroker_spark
from pybroker_spark.session import check_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_importing_the_package_imports_no_pyspark() -> None:
    script = "import sys, pybroker_spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_nothing_is_bound_beyond_loopback() -> None:
    hosts = {value for key, value in pybroker_spark.SETTINGS.items() if key.endswith((".host", ".bindAddress"))}
    assert hosts == {"127.0.0.1"}


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*,3]", "local[2, 3]", "local-cluster[2,1,1024]", "yarn", "k8s://h:1"]
)
def test_a_master_is_taken(master: str) -> None:
    check_master(master)


def test_a_standalone_master_is_taken_when_one_of_its_addresses_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize(
    ("master", "reason"),
    [
        ("loca", "master 'loca' is none: must be local, local[N]"),
        ("local[two]", "master 'local[two]' is none"),
        ("sc://127.0.0.1:15002", "master 'sc://127.0.0.1:15002' is a server of Spark Connect"),
        ("spark://127.0.0.1", "spark://HOST:PORT"),
        ("spark://127.0.0.1:1", "no master of Spark's answers (127.0.0.1:1: [Errno 111] Connection refused)"),
    ],
)
def test_a_master_that_cannot_be_is_refused_before_spark_starts(master: str, reason: str) -> None:
    with pytest.raises(pybroker_spark.MasterError) as refused:
        pybroker_spark.session(master=master)
    assert reason in str(refused.value)


def test_a_machine_without_java_is_reported_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("JAVA_HOME", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pybroker_spark.SessionError, match="no java was found: install one"):
        pybroker_spark.session()


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
