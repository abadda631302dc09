"""A Spark session with defaults that suit Python work beside a broker on one machine.

Owns the settings and the reason for each. Must not know what a job does with the session. Stands before any record's
way: it is called once by a program that wants Spark.
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

#: Arrow's vectors for Java check the null bit of each value when it is read, which Spark has just done.
_READ_ONCE: Final = "-Darrow.enable_null_check_for_get=false"

#: What every session starts from, before the caller's own settings.
SETTINGS: Final[Mapping[str, str]] = {
    # Driver and executors of a local master talk to each other only: nothing is opened to a network.
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    # No web page unless it is asked for: it takes a port and half a second.
    "spark.ui.enabled": "false",
    # JVM and Python workers exchange rows by a Unix socket: a short task takes a third of the time of loopback TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    # A barrier job with more tasks than slots fails in two seconds with SPARK-24819, not after ten silent minutes.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "1",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "2s",
    # A Python data source may push filters down; without this PySpark refuses a reader that defines `pushFilters`.
    "spark.sql.python.filterPushdown.enabled": "true",
    # One rename less per file of a streaming checkpoint: 110 ms a micro-batch in place of 189 on ext4.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # 3 to 7 % less CPU time of the JVM for Arrow rows from Python; a job's own Java options come after these.
    "spark.driver.defaultJavaOptions": _READ_ONCE,
    "spark.executor.defaultJavaOptions": _READ_ONCE,
    "spark.sql.session.timeZone": "UTC",
    # Short jobs on few cores: Spark's 200 shuffle partitions are 200 tasks for a handful of rows.
    "spark.sql.shuffle.partitions": "8",
}

#: How masters begin whose executors run on this machine: a standalone master on loopback has no worker elsewhere.
_HERE: Final = ("local", f"spark://{LOOPBACK}:", "spark://localhost:")

_CONNECT: Final = "sc://"
_STANDALONE: Final = "spark://"
_MASTER: Final = re.compile(
    r"local|local\[(\d+|\*)(\s*,\s*\d+)?\]|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^,]+:\d+(,[^,]+:\d+)*|yarn|k8s://.+"
)
_ANSWER_S: Final = 10.0

#: Where executors run on other machines, they have to reach the driver.
LOCAL_ONLY: Final = frozenset({"spark.driver.host", "spark.driver.bindAddress"})


class SessionError(Exception):
    """Spark cannot be started; the text says what to do."""


class MasterError(SessionError, ValueError):
    """A master that Spark cannot start with; the text names it and what would be right."""


def check_master(master: str) -> None:
    """Find out in a moment what Spark says after minutes, in traces: that a master is none, or does not answer.

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
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
        except (OSError, OverflowError) as error:
            failures.append(f"{address}: {error}")
        else:
            return
    raise MasterError(f"master {master!r}: no master of Spark's answers ({'; '.join(failures)}); is it started?")


def check_java() -> None:
    """Find out what Spark reports in a trace: that there is no Java to start it with. Raises SessionError."""
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

    In a program that spark-submit runs, its `--master` and `--conf` stand where the caller says nothing else; elsewhere
    the master is `local[*]`. The driver is bound to loopback where the master is local or listens there itself.

    The workers run this interpreter: without `PYSPARK_PYTHON` Spark takes the first `python3` of the search path, which
    lacks the packages of the environment. A variable that is set already stays as it is.

    Raises `ModuleNotFoundError` where PySpark is not installed, MasterError where the master cannot be, and
    SessionError where there is no Java.
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
    """The settings that spark-submit was given, where this program is run by it."""
    if not _is_submitted():
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    given = dict(SparkConf().getAll())
    given.pop("spark.app.name", None)  # the file's name, unless somebody says another
    return given
