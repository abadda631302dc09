"""A Spark task of a load: runs its clients concurrently, and reports their progress.

A failed client is reported and does not affect others. Only an unreachable driver is raised to Spark, since a failed
task of a barrier stage ends the whole job. Without its driver a task ends its load.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

from pybroker_spark.load.board import DONE, FAILED, STOPPED
from pybroker_spark.load.channel import Address, Link, Message
from pybroker_spark.load.clients import Client, Clock, Orders
from pybroker_spark.load.confluent import ConfluentProducer
from pybroker_spark.load.consuming import NativeConsumer
from pybroker_spark.load.interval import PHASES, Interval
from pybroker_spark.load.plan import CONFLUENT, ConsumerPlan, LoadPlan
from pybroker_spark.load.producing import NativeProducer

_POLL_INTERVAL_S = 0.05
"""Interval at which a task checks whether a client has ended."""


def make_client(plan: LoadPlan, number: int) -> Client:
    """Create the client of a plan."""
    client = plan.clients[number]
    if isinstance(client, ConsumerPlan):
        return NativeConsumer(client)
    if client.engine == CONFLUENT:
        return ConfluentProducer(client, plan.producer_number(number))
    return NativeProducer(client, plan.producer_number(number))


def run_task(task: int, plan: LoadPlan, address: Address) -> None:
    """Run one task's clients to their end. Raises OSError when the driver cannot be reached."""
    hello = {"type": "hello", "task": task, "host": socket.gethostname(), "pid": os.getpid()}
    link = Link.connect(address, hello)
    try:
        _Task(plan, link, plan.clients_of(task), task).run()
    finally:
        link.close()


class _Running:
    """One client in its thread."""

    def __init__(self, number: int, plan: LoadPlan) -> None:
        self.number, self.plan = number, plan.clients[number]
        self.make: Callable[[], Client] = lambda: make_client(plan, number)
        self.client: Client | None = None
        self.orders = Orders()
        self.failure = ""
        self.thread: threading.Thread | None = None
        self.reported_s = 0.0
        """End of the last reported interval."""
        self.steady_reported = False
        self.end_reported = False

    def prepare(self) -> None:
        """Create and connect it; a failure is stored."""
        try:
            self.client = self.make()
            self.client.prepare()
        except Exception as error:  # noqa: BLE001 (whatever it is, it is reported to the driver and the others go on)
            self.failure = f"{type(error).__name__}: {error}"

    def start(self, clock: Clock) -> None:
        """Start its thread."""
        self.thread = threading.Thread(target=self._run, args=(clock,), name=f"load-client-{self.number}", daemon=True)
        self.thread.start()

    def _run(self, clock: Clock) -> None:
        assert self.client is not None
        try:
            self.client.run(clock, self.orders)
        except Exception as error:  # noqa: BLE001 (see prepare)
            self.client.end_s = clock.elapsed()
            self.failure = f"{type(error).__name__}: {error}"

    def wait(self, timeout_s: float) -> None:
        """Wait for the end of its thread, with a timeout."""
        if self.thread is not None:
            self.thread.join(timeout_s)

    def is_over(self) -> bool:
        """Whether its thread has ended."""
        return self.thread is not None and not self.thread.is_alive()

    def state(self) -> tuple[str, str]:
        """Return its final state, and the reason."""
        if self.failure:
            return FAILED, self.failure
        if self.orders.stopped.is_set() and self.orders.reason:
            return STOPPED, self.orders.reason
        return DONE, ""


class _Task:
    def __init__(self, plan: LoadPlan, link: Link, clients: list[int], task: int) -> None:
        self._plan, self._link, self._task = plan, link, task
        self._running = [_Running(number, plan) for number in clients]
        self._started = threading.Event()
        self._clock: Clock | None = None

    def run(self) -> None:
        threading.Thread(target=self._obey, name="load-orders", daemon=True).start()
        for running in self._running:
            running.prepare()
            if running.failure:
                self._report_end(running, 0.0)
            else:
                self._link.send({"type": "ready", "client": running.number, "clock": time.time()})
        self._started.wait()
        live = [running for running in self._running if not running.end_reported]
        if self._clock is not None:
            for running in live:
                running.start(self._clock)
            self._report(live, self._clock)
        for running in live:
            if not running.end_reported:
                self._report_end(running, 0.0)
            if running.client is not None:
                running.client.close()

    def _obey(self) -> None:
        """Process the driver's orders; a closed connection is an order to stop."""
        while (message := self._link.receive()) is not None:
            kind = message["type"]
            if kind == "start":
                self._clock = Clock(message["at"])
                self._started.set()
            elif kind == "until":
                until = {(topic, partition): offset for topic, partition, offset in message["offsets"]}
                for running in self._running:
                    running.orders.until = until
            else:
                self._stop(message["reason"], message.get("role"))
        self._stop("the driver has gone", None)

    def _stop(self, reason: str, role: str | None) -> None:
        for running in self._running:
            if role in (None, running.plan.role):
                running.orders.reason = running.orders.reason or reason
                running.orders.stopped.set()
        if role is None:
            self._started.set()

    def _report(self, live: list[_Running], clock: Clock) -> None:
        """Report progress frequently and intervals when they are due, until every client has ended."""
        left, next_s = list(live), self._plan.interval_s
        while left:
            over = [running for running in left if running.is_over()]
            now = clock.elapsed()
            whole = now >= next_s
            for running in left:
                if running in over:
                    self._report_interval(running, self._end_of(running))
                    self._report_end(running, self._end_of(running))
                elif whole:
                    self._report_interval(running, now)
                    self._report_progress(running, now)
            if whole:
                next_s = now + self._plan.interval_s
            left = [running for running in left if running not in over]
            if left:
                left[0].wait(_POLL_INTERVAL_S)

    def _end_of(self, running: _Running) -> float:
        return running.client.end_s if running.client is not None else 0.0

    def _report_interval(self, running: _Running, end_s: float) -> None:
        client = running.client
        assert client is not None
        if client.steady_s is not None and not running.steady_reported:
            running.steady_reported = True
            self._link.send({"type": "steady", "client": running.number, "at_s": client.steady_s})
        for number, phase in enumerate(PHASES):
            sample = client.sample(number)
            if sample.is_empty():
                continue
            interval = Interval(
                client=running.number,
                task=self._task,
                role=running.plan.role,
                topic=running.plan.topic,
                phase=phase,
                begin_s=running.reported_s,
                end_s=max(end_s, running.reported_s),
                records=sample.records,
                bytes=sample.bytes,
                failed=sample.failed,
                latency_sum_us=sample.latency_sum_us,
                latency_max_us=sample.latency_max_us,
                histogram=sample.histogram.encode() if sample.histogram is not None else b"",
            )
            self._link.send({"type": "interval", "interval": interval.to_message()})
        running.reported_s = max(end_s, running.reported_s)

    def _report_progress(self, running: _Running, end_s: float) -> None:
        self._link.send({"type": "progress", **self._numbers(running, end_s)})

    def _report_end(self, running: _Running, end_s: float) -> None:
        running.end_reported = True
        state, reason = running.state()
        client = running.client
        failure = client.first_failure() if client is not None else ""
        disturbance = client.disturbance() if client is not None else None
        numbers: Message = {
            "state": state,
            "reason": reason or failure,
            "timed_out": client is not None and client.timed_out,
            "rebalance_s": client.rebalance_s if client is not None else 0.0,
            "disturbance": None if disturbance is None else asdict(disturbance),
        }
        self._link.send({"type": "ended", **self._numbers(running, end_s), **numbers})

    def _numbers(self, running: _Running, end_s: float) -> Message:
        client = running.client
        return {
            "client": running.number,
            "records": client.records if client is not None else 0,
            "end_s": end_s,
            "outcomes": [] if client is None else client.outcomes(),
        }
