"""Runs a load as one Spark job in barrier mode.

The driver starts a stage with one long task for each slot; Spark runs all of them at once or none. Each task sends
reports over the channel, and receives the start time: after all have connected, the driver sends a time a little
ahead by wall clock. (Spark's own barrier would take a second, because of its polling interval.) Tasks get their
input by RDDs, not Arrow: only reports leave a task, and no query has to be planned.

A failed client is reported and the others continue. A lost task ends Spark's job; the other tasks get a message at
once, end their measurement and report it before Spark kills them.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pybroker.client import LATEST, Admin, ClientError, TopicPartition
from pybroker.client.settings import AdminSettings
from pybroker_spark.delegation import DelegationError, delegated_plan
from pybroker_spark.load import slots
from pybroker_spark.load.board import ENDED, FAILED, LOST, READY, RUNNING, Board
from pybroker_spark.load.channel import Address, Listener, Received
from pybroker_spark.load.channel_tls import make_identity
from pybroker_spark.load.errors import LoadError, TooFewSlotsError
from pybroker_spark.load.joined_groups import JoinedGroups
from pybroker_spark.load.plan import CONFLUENT, ConsumerPlan, LoadPlan, ProducerPlan
from pybroker_spark.load.result import Result
from pybroker_spark.load.task import run_task
from pybroker_spark.spark_errors import python_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MARGIN_S = 0.2
"""Seconds from the order to start to the start: longer than a message takes, short for the user."""
_POLL_INTERVAL_S = 0.1
_SLOTS_CHECK_FAILED = "BarrierJobSlotsNumberCheckFailed"
_FAREWELL_S = 10.0
"""Timeout in seconds for the last messages of tasks after Spark's job has ended."""

Watch = Callable[[Board, float], None]
"""Called with the board and the seconds since the start several times a second."""


def run(
    spark: SparkSession,
    plan: LoadPlan,
    watch: Watch = lambda _board, _elapsed_s: None,
    *,
    channel_tls: bool = False,
    delegation_token: bool = False,
) -> Result:
    """Run a load to its end. Raises TooFewSlotsError before anything is started, LoadError when it cannot start.

    With `channel_tls` tasks report by TLS, with a certificate generated for this run; that needs
    `pybroker-spark[tls]`. With `delegation_token` their clients authenticate by tokens, and the credentials of the
    plan stay in this program.
    """
    if not delegation_token:
        return _run(spark, plan, watch, channel_tls=channel_tls)
    if any(isinstance(client, ProducerPlan) and client.engine == CONFLUENT for client in plan.clients):
        raise LoadError(f"librdkafka cannot sign in by a delegation token: leave out {CONFLUENT}, or the token")
    try:
        with delegated_plan(plan) as delegated:
            return _run(spark, delegated, watch, channel_tls=channel_tls)
    except DelegationError as error:
        raise LoadError(str(error)) from error


def _run(spark: SparkSession, plan: LoadPlan, watch: Watch, *, channel_tls: bool) -> Result:
    identity = make_identity() if channel_tls else None
    context = slots.context_of(spark)
    slots.require_slots(context, plan.tasks)
    host = context.getConf().get("spark.driver.host", "127.0.0.1")
    with Listener(context.getConf().get("spark.driver.bindAddress", host), host, plan.tasks, identity) as listener:
        job = _Job(spark, plan, listener.address)
        job.thread.start()
        conductor = Conductor(plan, listener)
        try:
            while job.thread.is_alive():
                conductor.take(_POLL_INTERVAL_S)
                watch(conductor.board, conductor.elapsed_s())
        except KeyboardInterrupt:
            conductor.stop("interrupted")
            job.thread.join(_FAREWELL_S)
        conductor.finish(_FAREWELL_S, job.failure())
        watch(conductor.board, conductor.elapsed_s())
        return conductor.result()


def _spark_task(plan: LoadPlan, address: Address, rows: Iterator[int]) -> Iterator[int]:
    for task in rows:
        run_task(task, plan, address)
        yield task


class _Job:
    """Spark's job, in a thread of its own."""

    def __init__(self, spark: SparkSession, plan: LoadPlan, address: Address) -> None:
        self._context, self._plan, self._address = spark.sparkContext, plan, address
        self._error: Exception | None = None
        self.thread = threading.Thread(target=self._run, name="load-job", daemon=True)

    def _run(self) -> None:
        tasks = self._plan.tasks
        try:
            rows = self._context.parallelize(range(tasks), tasks).barrier()
            rows.mapPartitions(functools.partial(_spark_task, self._plan, self._address)).collect()
        except Exception as error:  # noqa: BLE001 (returned by `failure`, in the thread that waits)
            self._error = error

    def failure(self) -> str:
        """Return why the job ended early; empty when it did not. Raises TooFewSlotsError."""
        if self._error is None:
            return ""
        java = getattr(self._error, "java_exception", None)
        name = java.getClass().getSimpleName() if java is not None else ""
        if name == _SLOTS_CHECK_FAILED:
            raise TooFewSlotsError(slots.explain(slots.master_of(self._context), self._plan.tasks))
        text = (java.getMessage() if java is not None else str(self._error)) or name or type(self._error).__name__
        first = text.strip().splitlines()[0]
        cause = python_error(text)
        return first if cause is None else f"{cause} ({first})"


class Conductor:
    """Decides which messages to send to tasks, from what the tasks have reported."""

    def __init__(self, plan: LoadPlan, listener: Listener) -> None:
        self.board = Board(plan)
        self._plan, self._listener = plan, listener
        self._started_at = 0.0
        self._reason = ""
        self._until_sent = self._consumers_stopped = False
        self._open: set[int] = set()
        """Tasks whose connection is open."""
        self._groups = JoinedGroups(plan)

    def elapsed_s(self) -> float:
        """Return the seconds since the start; 0 before it."""
        return max(0.0, time.time() - self._started_at) if self._started_at else 0.0

    def take(self, timeout_s: float) -> bool:
        """Process the next message; false when none arrived in time."""
        try:
            received = self._listener.received.get(timeout=timeout_s)
        except queue.Empty:
            self._act()  # groups become stable without a message
            return False
        self._step(received)
        return True

    def _step(self, received: Received) -> None:
        task, message = received.task, received.message
        if message is None:
            self._open.discard(task)
            if self.board.lose(task, "its connection broke: the task was killed, or its executor or host has gone"):
                self.stop(f"task {task} was lost")
            return
        self._open.add(task)
        if message["type"] == "ready":
            self.board.clock_differences_s[task] = message["clock"] - time.time()
        self.board.step(task, message)
        self._act()

    def _act(self) -> None:
        board = self.board
        if not self._started_at:
            unable = [c for c in board.clients if c.state == FAILED]
            if unable:
                self.stop(f"client {unable[0].client} cannot begin: {unable[0].reason}")
            elif board.all_are(READY) and self._groups.are_stable(self.stop):
                self._started_at = time.time() + _MARGIN_S
                self._listener.send({"type": "start", "at": self._started_at})
                board.start()
            return
        producers = [c for c in board.clients if c.role == "producer"]
        if producers and not self._until_sent and all(c.state in ENDED for c in producers):
            self._until_sent = True
            # Where the end offsets cannot be read, consumers end after their timeout without records.
            with contextlib.suppress(ClientError):
                self._send_until()
        self._maybe_stop_members()

    def _send_until(self) -> None:
        """Order consumers to read up to the current log end offsets, after all producers have ended."""
        consumers = [client for client in self._plan.clients if isinstance(client, ConsumerPlan)]
        offsets: list[tuple[str, int, int]] = []
        for servers, properties in {client.bootstrap_servers: client.properties for client in consumers}.items():
            here = [client for client in consumers if client.bootstrap_servers == servers]
            topics = {topic for client in here for topic in client.group_topics}
            topics |= {topic for client in here for topic, _ in client.assigned}
            with Admin(servers, AdminSettings.acting(properties)) as admin:
                described = admin.describe_topics(sorted(topics))
                where = [TopicPartition(topic.name, p.index) for topic in described for p in topic.partitions]
                found = admin.list_offsets(dict.fromkeys(where, LATEST))
            offsets += [(each.topic, each.partition, listed.offset) for each, listed in found.items()]
        self._listener.send({"type": "until", "offsets": offsets})

    def _maybe_stop_members(self) -> None:
        """Stop the members of a group once they have read all records together."""
        wanted = self._plan.group_records
        if wanted is None or self._consumers_stopped or self.board.records("consumer") < wanted:
            return
        self._consumers_stopped = True
        self._listener.send({"type": "stop", "reason": "", "role": "consumer"})

    def stop(self, reason: str) -> None:
        """Order every task to end its measurement."""
        self._reason = self._reason or reason
        self._listener.send({"type": "stop", "reason": reason})

    def finish(self, timeout_s: float, failure: str) -> None:
        """Process the remaining messages after Spark's job has ended. Raises LoadError when the load never started."""
        deadline = time.monotonic() + timeout_s
        while self._open and time.monotonic() < deadline:
            self.take(_POLL_INTERVAL_S)
        for task in range(self._plan.tasks):
            self.board.lose(task, failure or "it ended without a word")
        if failure and not self._reason:
            self._reason = failure
        if not self._started_at:
            lost = [c for c in self.board.clients if c.state == LOST and failure]
            raise LoadError(self._reason or (lost[0].reason if lost else "no task reported"))

    def result(self) -> Result:
        """Return the result of the load."""
        assert not any(c.state in (READY, RUNNING) for c in self.board.clients)
        return Result.of(self.board, self._started_at, self._reason)
