"""What the driver knows of a running load: where each client stands, and what it has measured so far.

A pure machine: messages of tasks come in as events, nothing goes out, no clock is read. What a lost task had reported
stays. Stands between the channel and what shows or sums up a load.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pybroker_spark.disturbance import Disturbance
from pybroker_spark.load.channel import Message
from pybroker_spark.load.interval import Interval
from pybroker_spark.load.plan import LoadPlan

WAITING, READY, RUNNING = "waiting", "ready", "running"
DONE, STOPPED, FAILED, LOST = "done", "stopped", "failed", "lost"
ENDED = frozenset({DONE, STOPPED, FAILED, LOST})

#: By state, the states that may follow. `stopped`: it got the order to end before it was through.
TRANSITIONS: dict[str, frozenset[str]] = {
    WAITING: frozenset({READY, FAILED, LOST}),
    READY: frozenset({RUNNING, STOPPED, FAILED, LOST}),
    RUNNING: frozenset({DONE, STOPPED, FAILED, LOST}),
    **dict.fromkeys(ENDED, frozenset[str]()),
}


@dataclass(slots=True)
class Outcome:
    """What became of one producer's records to one partition, as far as is known."""

    acknowledged: int
    failed: int


@dataclass(slots=True)
class Standing:
    """One client."""

    client: int
    task: int
    role: str
    topic: str
    state: str = WAITING
    reason: str = ""
    """Why it has failed, was stopped or lost."""
    host: str = ""
    records: int = 0
    """Acknowledged or read, by its last word."""
    end_s: float = 0.0
    """When its last record was acknowledged or read, in seconds from the start; of a lost one, its last word's time."""
    steady_s: float | None = None
    """When its steady state began."""
    timed_out: bool = False
    """A consumer for which nothing came for too long."""
    rebalance_s: float = 0.0
    """How long a consumer was without partitions."""
    disturbance: Disturbance | None = None
    """What it has met of brokers that went away, known when it has ended."""
    outcomes: dict[tuple[str, int], Outcome] = field(default_factory=dict)
    """By topic and partition, of a producer."""

    def become(self, state: str, reason: str = "") -> None:
        """Change the state. Raises ValueError where the table has no such way."""
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"client {self.client} cannot go from {self.state} to {state}")
        self.state, self.reason = state, reason


class Board:
    """All clients' standings, and every interval that was reported."""

    def __init__(self, plan: LoadPlan) -> None:
        self.plan = plan
        self.clients = [
            Standing(number, plan.task_of(number), client.role, client.topic)
            for number, client in enumerate(plan.clients)
        ]
        self.intervals: list[Interval] = []
        self.clock_differences_s: dict[int, float] = {}
        """By task, how far its clock was ahead of the driver's when it was ready (and the message's way)."""

    def of_task(self, task: int) -> list[Standing]:
        """A task's clients."""
        return [standing for standing in self.clients if standing.task == task]

    def step(self, task: int, message: Message) -> None:
        """Take in one message of a task."""
        kind = message["type"]
        if kind == "hello":
            for standing in self.of_task(task):
                standing.host = message["host"]
        elif kind == "ready":
            self.clients[message["client"]].become(READY)
        elif kind == "progress":
            self._note(message)
        elif kind == "interval":
            self.intervals.append(Interval.from_message(message["interval"]))
        elif kind == "steady":
            self.clients[message["client"]].steady_s = message["at_s"]
        elif kind == "ended":
            standing = self._note(message)
            standing.timed_out, standing.rebalance_s = message["timed_out"], message["rebalance_s"]
            met = message["disturbance"]
            standing.disturbance = None if met is None else Disturbance(**met)
            standing.become(message["state"], message["reason"])
        else:
            raise ValueError(f"task {task} sent a message of the unknown type {kind!r}")

    def start(self) -> None:
        """The moment to begin has been sent to all."""
        for standing in self.clients:
            if standing.state == READY:
                standing.become(RUNNING)

    def lose(self, task: int, reason: str) -> list[Standing]:
        """A task's connection has gone: its clients that had not ended are lost. Returns them."""
        lost = [standing for standing in self.of_task(task) if standing.state not in ENDED]
        for standing in lost:
            standing.become(LOST, reason)
        return lost

    def all_are(self, *states: str) -> bool:
        """Whether every client is in one of these states."""
        return all(standing.state in states for standing in self.clients)

    def records(self, role: str) -> int:
        """So many have been acknowledged, or read, by now."""
        return sum(standing.records for standing in self.clients if standing.role == role)

    def _note(self, message: Message) -> Standing:
        standing = self.clients[message["client"]]
        standing.records, standing.end_s = message["records"], message["end_s"]
        for topic, partition, acknowledged, failed in message["outcomes"]:
            standing.outcomes[topic, partition] = Outcome(acknowledged, failed)
        return standing
