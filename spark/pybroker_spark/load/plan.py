"""The plan of a load: its producers and consumers, and the Spark task of each.

Plain values, pickled from the driver to the tasks. Must not know Spark or connections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pybroker_spark.load.schedule import Step

PYBROKER, CONFLUENT = "pybroker", "confluent-kafka"
ENGINES = (PYBROKER, CONFLUENT)
STAMP_BYTES = 24
"""The start of a stamped value: producer u64, sequence u64, time in microseconds since the epoch i64."""
TRANSACTIONAL_ID = "transactional.id"
PRODUCERS_OF_A_RUN = 10_000
"""Producer numbers are unique to a run, so an audit distinguishes two runs on one topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPlan:
    """One producer."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(repr=False)
    topic: str
    partitions: tuple[int, ...] = ()
    """The partitions used in rotation; none: the sticky partition of the client, whose records cannot be stamped."""
    record_size: int
    records: int | None = None
    """Number of records; None: until the steps are over."""
    steps: tuple[Step, ...] = (Step(),)
    warm_up_records: int = 0
    """Records of the warm-up; later ones are in the steady state."""
    warm_up_s: float = 0.0
    stamped: bool = False
    engine: str = PYBROKER
    nap_s: float = 0.001
    """The shortest wait between two checks of the schedule."""
    keys: int = 0
    """Number of different keys, which define the partitions; records are stamped. 0: no keys."""
    skew: float = 0.0
    """Exponent of Zipf's law over the keys: 0 is the uniform distribution."""
    transaction_s: float = 3.0
    """Duration of a transaction, where the properties contain a `transactional.id`."""

    @property
    def role(self) -> str:
        """Return the role for reports."""
        return "producer"

    @property
    def is_transactional(self) -> bool:
        """Whether its records are sent in transactions."""
        return bool(self.properties.get(TRANSACTIONAL_ID))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPlan:
    """One consumer: of assigned partitions, or a member of a group."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(repr=False)
    topic: str
    """Its topic, or the text in a report for several of them."""
    assigned: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition, the start offset."""
    group_topics: tuple[str, ...] = ()
    """Its subscribed topics, where it is a member of a group."""
    joins_before_start: bool = False
    """Whether the load starts when the group has all its members; else they join at the start."""
    records: int | None = None
    """Number of records to read; None: until the load ends."""
    idle_s: float = 10.0
    """Timeout without records, after which it ends."""
    warm_up_s: float = 0.0
    stamped: bool = False

    @property
    def role(self) -> str:
        """Return the role for reports."""
        return "consumer"


ClientPlan = ProducerPlan | ConsumerPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """All clients of a run."""

    run: int
    """Identifies the run: seconds since the epoch."""
    clients: tuple[ClientPlan, ...]
    tasks: int
    interval_s: float = 1.0
    """Interval of each client's reports."""
    group_records: int | None = None
    """Number of records after which the members of a group, counted together, end."""

    def producer_number(self, client: int) -> int:
        """Return the producer number in this client's stamps."""
        return self.run * PRODUCERS_OF_A_RUN + client

    def task_of(self, client: int) -> int:
        """Return the task that runs a client: round-robin."""
        return client % self.tasks

    def clients_of(self, task: int) -> list[int]:
        """Return the clients that a task runs."""
        return [client for client in range(len(self.clients)) if self.task_of(client) == task]


def build_producer_properties(properties: Mapping[str, str], number: int) -> dict[str, str]:
    """Return the properties of one of several producers: its number is appended to a `transactional.id`, so that
    producers do not fence each other.
    """
    own = dict(properties)
    if own.get(TRANSACTIONAL_ID):
        own[TRANSACTIONAL_ID] += f"-{number}"
    return own


def deal(total: int, shares: int) -> list[int]:
    """Split `total` into so many integers that differ by at most one."""
    return [total // shares + (number < total % shares) for number in range(shares)]


def deal_by_weight(total: int, weights: Sequence[int]) -> list[int]:
    """Split `total` into integers proportional to these weights; evenly where all are zero."""
    whole = sum(weights)
    if whole == 0:
        return deal(total, len(weights))
    parts, passed, given = [], 0, 0
    for weight in weights:
        passed += weight
        parts.append(total * passed // whole - given)
        given += parts[-1]
    return parts
