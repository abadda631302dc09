"""The driver's state of a running load: the state of each client, and its measurements so far.

A pure state machine: its events are the messages of tasks; it sends nothing and reads no clock. Reports of a lost
task are kept. It connects the channel with the display and the result of a load.
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

#: The allowed next states of each state. `stopped`: the client was ordered to end before it had finished.
TRANSITIONS: dict[str, frozenset[str]] = {
    WAITING: frozenset({READY, FAILED, LOST}),
    READY: frozenset({RUNNING, STOPPED, FAILED, LOST}),
    RUNNING: frozenset({DONE, STOPPED, FAILED, LOST}),
    **dict.fromkeys(ENDED, frozenset[str]()),
}


@dataclass(slots=True)
class Outcome:
    """The known outcome of one producer's records in one partition."""

    acknowledged: int
    failed: int


@dataclass(slots=True)
class Standing:
    """The state of one client."""

    client: int
    task: int
    role: str
    topic: str
    state: str = WAITING
    reason: str = ""
    """The reason of a failure, stop or loss."""
    host: str = ""
    records: int = 0
    """Records acknowledged or read, by its last report."""
    end_s: float = 0.0
    """Time of its last acknowledged or read record, in seconds from the start; of a lost client, of its last report."""
    steady_s: float | None = None
    """Start of its steady state."""
    timed_out: bool = False
    """Whether a consumer ended because it received nothing for too long."""
    rebalance_s: float = 0.0
    """Time that a consumer was without partitions."""
    disturbance: Disturbance | None = None
    """The effects of broker failures; known when the client has ended."""
    outcomes: dict[tuple[str, int], Outcome] = field(default_factory=dict)
    """Outcomes of a producer by topic and partition."""

    def become(self, state: str, reason: str = "") -> None:
        """Change the state. Raises ValueError for a transition that is not in the table."""
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"client {self.client} cannot go from {self.state} to {state}")
        self.state, self.reason = state, reason


class Board:
    """The states of all clients, and all reported intervals."""

    def __init__(self, plan: LoadPlan) -> None:
        self.plan = plan
        self.clients = [
            Standing(number, plan.task_of(number), client.role, client.topic)
            for number, client in enumerate(plan.clients)
        ]
        self.intervals: list[Interval] = []
        self.clock_differences_s: dict[int, float] = {}
        """By task, the offset of its clock from the driver's when it was ready, plus the message's latency."""

    def of_task(self, task: int) -> list[Standing]:
        """Return a task's clients."""
        return [standing for standing in self.clients if standing.task == task]

    def step(self, task: int, message: Message) -> None:
        """Process one message of a task."""
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
        """Record that the start time was sent to all tasks."""
        for standing in self.clients:
            if standing.state == READY:
                standing.become(RUNNING)

    def lose(self, task: int, reason: str) -> list[Standing]:
        """Mark the unfinished clients of a task whose connection was closed as lost, and return them."""
        lost = [standing for standing in self.of_task(task) if standing.state not in ENDED]
        for standing in lost:
            standing.become(LOST, reason)
        return lost

    def all_are(self, *states: str) -> bool:
        """Whether every client is in one of these states."""
        return all(standing.state in states for standing in self.clients)

    def records(self, role: str) -> int:
        """Return the number of records acknowledged or read so far."""
        return sum(standing.records for standing in self.clients if standing.role == role)

    def _note(self, message: Message) -> Standing:
        standing = self.clients[message["client"]]
        standing.records, standing.end_s = message["records"], message["end_s"]
        for topic, partition, acknowledged, failed in message["outcomes"]:
            standing.outcomes[topic, partition] = Outcome(acknowledged, failed)
        return standing
