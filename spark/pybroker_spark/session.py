"""A Spark session with defaults for Python programs beside a broker on one machine.

Owns the settings and the reason for each. Must not know the use of the session. A program calls it once, before it
reads any record.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

LOOPBACK: Final = "127.0.0.1"

#: Arrow's vectors for Java check the null bit of each value on access, which Spark has just done.
_READ_ONCE: Final = "-Darrow.enable_null_check_for_get=false"

#: The settings of every session, overridden by the caller's.
SETTINGS: Final[Mapping[str, str]] = {
    # Driver and executors of a local master only connect to each other: no port is open to the network.
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    # No web UI by default: it needs a port and half a second.
    "spark.ui.enabled": "false",
    # JVM and Python workers exchange rows by a Unix socket: a short task takes a third of the time of loopback TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # A barrier job with more tasks than slots fails in two seconds with SPARK-24819, not after ten silent minutes.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "1",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "2s",
    # Required for filter pushdown: without it PySpark rejects a reader that defines `pushFilters`.
    "spark.sql.python.filterPushdown.enabled": "true",
    # One rename less for each file of a streaming checkpoint: 110 ms a micro-batch instead of 189 on ext4.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # 3 to 7 % less CPU time of the JVM for Arrow rows from Python; a job's own Java options follow these.
    "spark.driver.defaultJavaOptions": _READ_ONCE,
    "spark.executor.defaultJavaOptions": _READ_ONCE,
    "spark.sql.session.timeZone": "UTC",
    # Short jobs on few cores: Spark's 200 shuffle partitions are 200 tasks for a handful of rows.
    "spark.sql.shuffle.partitions": "8",
}

#: Prefixes of masters whose executors run on this machine: a standalone master on loopback has only local workers.
_HERE: Final = ("local", f"spark://{LOOPBACK}:", "spark://localhost:")

_CONNECT: Final = "sc://"
_STANDALONE: Final = "spark://"
_MASTER: Final = re.compile(
    r"local|local\[(\d+|\*)(\s*,\s*\d+)?\]|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^,]+:\d+(,[^,]+:\d+)*|yarn|k8s://.+"
)
_RESPONSE_S: Final = 10.0

#: Settings that are omitted where executors run on other machines, which connect to the driver.
LOCAL_ONLY: Final = frozenset({"spark.driver.host", "spark.driver.bindAddress"})


class SessionError(Exception):
    """Spark cannot be started. The message has the fix."""


class MasterError(SessionError, ValueError):
    """An invalid or unreachable master. The message has its name and the expected value."""


def check_master(master: str) -> None:
    """Check quickly for an invalid or unreachable master, which Spark reports after minutes, with stack traces.

    Raises MasterError.
    """
    if master.startswith(_CONNECT):
        raise MasterError(
            f"master {master!r} is a server of Spark Connect: SparkSession.builder.remote({master!r}) makes a session"
            " for the format pybroker; jobs and loads need the address of Spark's master"
        )
    if not _MASTER.fullmatch(master):
        raise MasterError(
            f"master {master!r} is none: must be local, local[N], local[*], local-cluster[N,CORES,MEMORY],"
            " spark://HOST:PORT, yarn or k8s://ADDRESS"
        )
    if not master.startswith(_STANDALONE):
        return
    failures = []
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _RESPONSE_S).close()
        except (OSError, OverflowError) as error:
            failures.append(f"{address}: {error}")
        else:
            return
    raise MasterError(f"master {master!r}: no master of Spark's answers ({'; '.join(failures)}); is it started?")


def check_java() -> None:
    """Check for a missing Java, which Spark reports with a stack trace. Raises SessionError."""
    home = os.environ.get("JAVA_HOME")
    if not _is_submitted() and shutil.which("java", path=f"{home}/bin" if home else None) is None:
        raise SessionError(
            "Spark needs a JRE of version 17 or newer, and no java was found: install one "
            "(Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
        )


def session(
    name: str = "pybroker", *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return the running Spark session, or start one with `SETTINGS` overridden by `settings`.

    In a program run by spark-submit, its `--master` and `--conf` are the defaults of the caller's values; otherwise
    the default master is `local[*]`. The driver binds to loopback where the master is local or listens there itself.

    Workers run this Python interpreter: without `PYSPARK_PYTHON` Spark uses the first `python3` of the search path,
    which lacks the packages of the environment. If the variable is set, it is unchanged.

    Raises `ModuleNotFoundError` where PySpark is not installed, MasterError for an invalid or unreachable master,
    and SessionError without Java.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    submitted = _submitted()
    master = master or submitted.get("spark.master") or "local[*]"
    check_master(master)
    check_java()
    local = master.startswith(_HERE)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    from pyspark.sql import SparkSession

    defaults = {key: value for key, value in SETTINGS.items() if local or key not in LOCAL_ONLY}
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**defaults, **submitted, **(settings or {}), "spark.master": master}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _submitted() -> dict[str, str]:
    """Return the settings of spark-submit, where it runs this program."""
    if not _is_submitted():
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    given = dict(SparkConf().getAll())
    given.pop("spark.app.name", None)  # the file's name by default
    return given
